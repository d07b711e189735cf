// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
#include "deltaproof/algebra/tensor_view.hpp"

#include <algorithm>
#include <memory>
#include <utility>

namespace deltaproof {
namespace {

std::string of_view(const tensor_view& view, const std::string& name) {
  return "tensor " + name + ": shape " + shape_text(view.shape()) +
         (view.strides().empty() ? "" : " with strides " + strides_text(view.strides()));
}

/// Row-major where none are given.
tensor_view::steps strides_of(const tensor_view& view) {
  if (!view.strides().empty() || view.shape().empty()) return view.strides();
  tensor_view::steps out(view.shape().size(), 1);
  for (std::size_t axis = out.size() - 1; axis-- > 0;)
    out[axis] = out[axis + 1] * static_cast<std::ptrdiff_t>(view.shape()[axis + 1]);
  return out;
}

/// Offsets of the first and the last element that the view touches.
std::pair<std::ptrdiff_t, std::ptrdiff_t> touched(const tensor_view& view, const tensor_view::steps& strides,
                                                  const std::string& name) {
  std::ptrdiff_t low = 0, high = 0;
  for (std::size_t axis = 0; axis < strides.size(); ++axis) {
    std::ptrdiff_t span = 0;
    std::ptrdiff_t& end = strides[axis] < 0 ? low : high;
    if (__builtin_mul_overflow(strides[axis], static_cast<std::ptrdiff_t>(view.shape()[axis]) - 1, &span) ||
        __builtin_add_overflow(end, span, &end))
      throw shape_error(of_view(view, name) + " reaches beyond the address space; strides count elements");
  }
  return {low, high};
}

void require_reach(const tensor_view& view, const tensor_view::steps& strides, const std::string& name) {
  if (view.first() == nullptr) {
    throw domain_error(of_view(view, name) + " has a null pointer; set the pointer, or leave the tensor out");
  }
  const auto [low, high] = touched(view, strides, name);
  if (!view.reach()) return;
  if (low < 0) {
    throw shape_error(of_view(view, name) + " begins " + std::to_string(-low) +
                      " elements before the span that was given; with negative strides, give a format and a pointer to element "
                      "[0, ..., 0] in place of a span");
  }
  if (static_cast<std::size_t>(high) >= *view.reach()) {
    throw shape_error(of_view(view, name) + " needs " + std::to_string(high + 1) + " elements, but the span given has " +
                      std::to_string(*view.reach()) + "; strides count elements, not bytes, one for each axis of the shape");
  }
}

}  // namespace

tensor_view::tensor_view(format of, const void* first, extents shape, steps strides)
    : given_(true), format_(of), first_(first), shape_(std::move(shape)), strides_(std::move(strides)) {}

tensor_view::tensor_view(format of, std::span<const std::uint16_t> bits, extents shape, steps strides)
    : tensor_view(of, bits.data(), std::move(shape), std::move(strides)) {
  if (of.storage_bits != 16) {
    throw format_error("tensor_view: words of 16 bits hold bf16 or fp16, and the format is " + std::string(name_of(of)) +
                       "; name the 16-bit format that the words hold, or give a span of float, a span of double or a pointer");
  }
  reach_ = bits.size();
}

tensor_view::tensor_view(std::span<const float> values, extents shape, steps strides)
    : tensor_view(fp32, values.data(), std::move(shape), std::move(strides)) {
  reach_ = values.size();
}

tensor_view::tensor_view(std::span<const double> values, extents shape, steps strides)
    : tensor_view(fp64, values.data(), std::move(shape), std::move(strides)) {
  reach_ = values.size();
}

tensor_view::tensor_view(const tensor& of) : tensor_view(of.element_format(), of.bytes().data(), of.shape()) {
  reach_ = of.size();
}

tensor_view tensor_view::with_last_axes_swapped() const {
  if (shape_.size() < 2)
    throw shape_error("tensor_view: shape " + shape_text(shape_) +
                      " has fewer than two axes; with_last_axes_swapped needs two or more");
  tensor_view out = *this;
  out.strides_ = strides_of(*this);
  std::swap(out.shape_[shape_.size() - 2], out.shape_[shape_.size() - 1]);
  if (out.strides_.size() == shape_.size()) std::swap(out.strides_[shape_.size() - 2], out.strides_[shape_.size() - 1]);
  return out;
}

std::string strides_text(std::span<const std::ptrdiff_t> strides) {
  std::string out = "[";
  for (std::size_t i = 0; i < strides.size(); ++i) out += (i == 0 ? "" : ", ") + std::to_string(strides[i]);
  return out + "]";
}

tensor copied(const tensor_view& view, std::string name) {
  if (!view.given()) throw domain_error("tensor " + name + ": it was not given; set its pointer, format and shape");
  if (!view.strides().empty() && view.strides().size() != view.shape().size()) {
    throw shape_error(of_view(view, name) + ": " + std::to_string(view.strides().size()) + " strides for " +
                      std::to_string(view.shape().size()) + " axes; give one for each axis, in elements, or none for row-major");
  }
  const std::size_t count = element_count(view.shape()), width = static_cast<std::size_t>(view.element_format().storage_bits) / 8;
  const tensor_view::steps strides = strides_of(view);
  if (count > 0) require_reach(view, strides, name);
  const std::shared_ptr<std::byte[]> bytes(new std::byte[std::max<std::size_t>(count * width, 1)]);
  tensor_view::extents index(view.shape().size(), 0);
  const auto* from = static_cast<const std::byte*>(view.first());
  const auto step = static_cast<std::ptrdiff_t>(width);
  for (std::size_t i = 0; i < count; ++i) {
    std::memcpy(bytes.get() + i * width, from, width);
    for (std::size_t axis = index.size(); axis-- > 0;) {
      from += strides[axis] * step;
      if (++index[axis] < view.shape()[axis]) break;
      from -= strides[axis] * step * static_cast<std::ptrdiff_t>(view.shape()[axis]);
      index[axis] = 0;
    }
  }
  return tensor(view.element_format(), view.shape(), bytes, count * width, std::move(name));
}

}  // namespace deltaproof
