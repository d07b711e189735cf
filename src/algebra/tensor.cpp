// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
#include "deltaproof/algebra/tensor.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <limits>
#include <utility>

#include "deltaproof/number/convert.hpp"
#include "deltaproof/number/rounded.hpp"
#include "deltaproof/number/visit_format.hpp"
#include "support/mapped_bytes.hpp"
#include "support/widest_vectors.hpp"

namespace deltaproof {
namespace {

static_assert(std::endian::native == std::endian::little, "deltaproof needs a little-endian machine: tensors are read in place");

constexpr std::size_t integer_bytes = 8;

std::string hex(double x) {
  char text[64];
  std::snprintf(text, sizeof text, "%a (%.17g)", x, x);
  return text;
}

template <class T>
[[gnu::always_inline]] inline T load(const std::byte* from) {
  T value;
  std::memcpy(&value, from, sizeof value);
  return value;
}

shared_bytes copy_of(std::span<const std::byte> bytes) {
  std::shared_ptr<std::byte[]> copy(new std::byte[bytes.size()]);
  std::copy(bytes.begin(), bytes.end(), copy.get());
  return copy;
}

/// One storable format: its bits as an unsigned integer, and the way to and from exact doubles.
template <format F>
struct codec {
  using bits = std::conditional_t<F.storage_bits == 8, std::uint8_t,
                                  std::conditional_t<F.storage_bits == 16, std::uint16_t,
                                                     std::conditional_t<F.storage_bits == 32, std::uint32_t, std::uint64_t>>>;

  [[gnu::always_inline]] static double decode(bits b) {
    if constexpr (F == fp64) {
      return std::bit_cast<double>(b);
    } else if constexpr (F == fp32) {
      return static_cast<double>(std::bit_cast<float>(b));
    } else if constexpr (F == bf16) {
      return static_cast<double>(std::bit_cast<float>(static_cast<std::uint32_t>(b) << 16));
    } else {
      return detail::encoding<F>::decode(b);
    }
  }

  static void decode_all(const std::byte* from, std::span<double> out) {
    detail::in_widest_vectors([=, to = out.data(), count = out.size()]() __attribute__((always_inline)) {
      for (std::size_t i = 0; i < count; ++i) to[i] = decode(load<bits>(from + i * sizeof(bits)));
    });
  }

  /// False if x is not a value of F; NaN of any payload is F's own.
  static bool encode(double x, std::byte* to) {
    const rounded<F> nearest = round_to<F>(x);
    const double back = lift<double>(nearest);
    if (std::isnan(x) != std::isnan(back)) return false;
    if (!std::isnan(x) && std::bit_cast<std::uint64_t>(back) != std::bit_cast<std::uint64_t>(x)) return false;
    const auto b = static_cast<bits>(nearest.bits());
    std::memcpy(to, &b, sizeof b);
    return true;
  }
};

format_error no_dtype(const format& of) {
  return format_error("tensor: format " + std::string(name_of(of)) +
                      " has no safetensors dtype; use BF16, F16, F32, F64, F8_E4M3 or F8_E5M2");
}

/// Calls use with the codec of a format that files can hold.
template <class Use>
auto with_codec(const format& of, Use use) {
  return visit_format(of, [&]<format F>() -> decltype(use(codec<bf16>{})) {
    if constexpr (has_dtype(F))
      return use(codec<F>{});
    else
      throw no_dtype(F);
  });
}

std::string_view dtype_of(const format& of) {
  for (const auto& row : formats) {
    if (row.value == of && !row.dtype.empty()) return row.dtype;
  }
  throw no_dtype(of);
}

}  // namespace

std::size_t element_count(std::span<const std::size_t> shape) {
  if (std::find(shape.begin(), shape.end(), 0U) != shape.end()) return 0;
  std::size_t count = 1;
  for (const std::size_t dimension : shape) {
    if (count > std::numeric_limits<std::size_t>::max() / dimension) {
      throw shape_error("tensor: shape " + shape_text(shape) + " has more elements than this machine can count");
    }
    count *= dimension;
  }
  return count;
}

std::string shape_text(std::span<const std::size_t> shape) {
  std::string text = "[";
  for (std::size_t i = 0; i < shape.size(); ++i) text += (i == 0 ? "" : ", ") + std::to_string(shape[i]);
  return text + "]";
}

tensor::tensor() : tensor(fp64, {0}, shared_bytes{}, 0) {}

tensor::tensor(std::optional<format> of, std::vector<std::size_t> shape, shared_bytes bytes, std::size_t byte_count,
               std::string name, std::size_t element_bytes)
    : name_(std::move(name)),
      format_(of),
      shape_(std::move(shape)),
      size_(element_count(shape_)),
      bytes_(std::move(bytes)),
      byte_count_(byte_count) {
  if (size_ > std::numeric_limits<std::size_t>::max() / element_bytes || size_ * element_bytes != byte_count) {
    throw shape_error(label() + ": shape " + shape_text(shape_) + " of " + dtype() + " needs " + std::to_string(size_) + " x " +
                      std::to_string(element_bytes) + " bytes, got " + std::to_string(byte_count));
  }
}

tensor::tensor(format of, std::vector<std::size_t> shape, shared_bytes bytes, std::size_t byte_count, std::string name)
    : tensor(std::optional<format>(of), std::move(shape), std::move(bytes), byte_count, std::move(name),
             with_codec(of, [](auto c) { return sizeof(typename decltype(c)::bits); })) {}

tensor::tensor(format of, std::vector<std::size_t> shape, std::span<const std::byte> bytes, std::string name)
    : tensor(of, std::move(shape), copy_of(bytes), bytes.size(), std::move(name)) {}

tensor tensor::integers(std::vector<std::size_t> shape, shared_bytes bytes, std::size_t byte_count, std::string name) {
  return tensor(std::nullopt, std::move(shape), std::move(bytes), byte_count, std::move(name), integer_bytes);
}

tensor tensor::from_doubles(format of, std::vector<std::size_t> shape, std::span<const double> values, std::string name) {
  return with_codec(of, [&](auto c) {
    using codec_type = decltype(c);
    const std::size_t width = sizeof(typename codec_type::bits);
    std::shared_ptr<std::byte[]> bytes(new std::byte[values.size() * width]);
    tensor result(of, std::move(shape), bytes, values.size() * width, std::move(name));
    for (std::size_t i = 0; i < values.size(); ++i) {
      if (!codec_type::encode(values[i], bytes.get() + i * width)) {
        throw domain_error(result.label() + ": element " + std::to_string(i) + ", " + hex(values[i]) + ", is not a value of " +
                           result.dtype() + "; round it first (round_to)");
      }
    }
    return result;
  });
}

tensor tensor::from_integers(std::vector<std::size_t> shape, std::span<const std::int64_t> values, std::string name) {
  return integers(std::move(shape), copy_of(std::as_bytes(values)), values.size_bytes(), std::move(name));
}

std::size_t tensor::dim(std::size_t axis) const {
  if (axis >= shape_.size()) {
    throw shape_error(label() + ": no dimension " + std::to_string(axis) + " in shape " + shape_text(shape_));
  }
  return shape_[axis];
}

std::string tensor::dtype() const { return format_ ? std::string(dtype_of(*format_)) : "I64"; }

const format& tensor::element_format() const {
  if (!format_) throw format_error(label() + ": I64 holds integers; read it with integer_at or to_integers");
  return *format_;
}

double tensor::at(std::size_t flat) const {
  double value = 0;
  read(flat, {&value, 1});
  return value;
}

void tensor::read(std::size_t offset, std::span<double> out) const {
  const format& of = element_format();
  require_range(offset, out.size());
  with_codec(of, [&](auto c) {
    using codec_type = decltype(c);
    codec_type::decode_all(bytes_.get() + offset * sizeof(typename codec_type::bits), out);
  });
}

void tensor::forget(std::size_t offset, std::size_t count) const {
  require_range(offset, count);
  if (size_ == 0) return;
  const std::size_t width = byte_count_ / size_;
  detail::forget(bytes_, bytes_.get() + offset * width, count * width);
}

std::vector<double> tensor::to_doubles() const {
  static_cast<void>(element_format());
  std::vector<double> values(size_);
  read(0, values);
  return values;
}

std::int64_t tensor::integer_at(std::size_t flat) const {
  require_integer();
  require_range(flat, 1);
  return load<std::int64_t>(bytes_.get() + flat * integer_bytes);
}

std::vector<std::int64_t> tensor::to_integers() const {
  require_integer();
  std::vector<std::int64_t> values(size_);
  if (size_ > 0) std::memcpy(values.data(), bytes_.get(), byte_count_);
  return values;
}

tensor tensor::named(std::string name) const {
  tensor copy = *this;
  copy.name_ = std::move(name);
  return copy;
}

std::string tensor::label() const { return name_.empty() ? "tensor" : "tensor '" + name_ + "'"; }

void tensor::require_range(std::size_t offset, std::size_t count) const {
  if (offset > size_ || count > size_ - offset) {
    throw domain_error(label() + ": " + std::to_string(count) + " elements from element " + std::to_string(offset) +
                       " on were asked for, but the tensor has " + std::to_string(size_) + " elements, shape " +
                       shape_text(shape_));
  }
}

void tensor::require_integer() const {
  if (format_) throw format_error(label() + ": " + dtype() + " holds floating-point values; read it with at, read or to_doubles");
}

bool same_bits(const tensor& a, const tensor& b) {
  return a.dtype() == b.dtype() && a.shape() == b.shape() &&
         std::equal(a.bytes().begin(), a.bytes().end(), b.bytes().begin(), b.bytes().end());
}

}  // namespace deltaproof
