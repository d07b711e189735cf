// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
//
// Holds a tensor as a file holds it: a name, a shape, a format and little-endian bytes, read back as exact
// doubles. Shapes: row-major, the last index runs fastest; flat indices count elements; no dimensions is
// one element. Nothing here rounds: each value of BF16, F16, F8_E4M3, F8_E5M2, F32 and F64 is a double, and
// from_doubles refuses what its format does not hold. Integer tensors (I64, for offsets of packed
// sequences) have their own accessors. Copies share the bytes, which never change after construction.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "deltaproof/number/format.hpp"
#include "deltaproof/support/errors.hpp"

namespace deltaproof {

/// Shared immutable storage; several tensors may point into one buffer (a whole file, say).
using shared_bytes = std::shared_ptr<const std::byte[]>;

/// Product of the dimensions. Throws: shape_error if it exceeds std::size_t.
[[nodiscard]] std::size_t element_count(std::span<const std::size_t> shape);

/// "[2, 64, 4]", for messages.
[[nodiscard]] std::string shape_text(std::span<const std::size_t> shape);

class tensor {
 public:
  /// A nameless F64 tensor of shape [0].
  tensor();

  /// Takes `byte_count` bytes as they lie. Throws: shape_error if the shape needs another number of bytes;
  /// format_error for a format without a safetensors dtype (tf32).
  tensor(format of, std::vector<std::size_t> shape, shared_bytes bytes, std::size_t byte_count, std::string name = {});
  tensor(format of, std::vector<std::size_t> shape, std::span<const std::byte> bytes, std::string name = {});

  /// The same for I64.
  static tensor integers(std::vector<std::size_t> shape, shared_bytes bytes, std::size_t byte_count, std::string name = {});

  /// Stores each value exactly; NaN becomes the format's quiet NaN. Throws: domain_error at the first value the
  /// format does not hold (round it first), shape_error if the count is not that of the shape.
  static tensor from_doubles(format of, std::vector<std::size_t> shape, std::span<const double> values, std::string name = {});
  static tensor from_integers(std::vector<std::size_t> shape, std::span<const std::int64_t> values, std::string name = {});

  [[nodiscard]] const std::string& name() const noexcept { return name_; }
  [[nodiscard]] const std::vector<std::size_t>& shape() const noexcept { return shape_; }
  [[nodiscard]] std::size_t rank() const noexcept { return shape_.size(); }
  /// Dimension `axis`. Throws: shape_error if there are fewer.
  [[nodiscard]] std::size_t dim(std::size_t axis) const;
  /// Number of elements.
  [[nodiscard]] std::size_t size() const noexcept { return size_; }

  /// The safetensors name of the element type: BF16 F16 F8_E4M3 F8_E5M2 F32 F64 I64.
  [[nodiscard]] std::string dtype() const;
  [[nodiscard]] bool is_integer() const noexcept { return !format_; }
  /// Element format. Throws: format_error for an I64 tensor.
  [[nodiscard]] const format& element_format() const;

  [[nodiscard]] std::span<const std::byte> bytes() const noexcept { return {bytes_.get(), byte_count_}; }

  /// Element `flat`, exactly. Throws: domain_error past the end, format_error for an I64 tensor.
  [[nodiscard]] double at(std::size_t flat) const;
  /// out[i] = element offset + i, exactly, at memory speed. Throws: as at().
  void read(std::size_t offset, std::span<double> out) const;
  /// Every element, exactly. Throws: format_error for an I64 tensor.
  [[nodiscard]] std::vector<double> to_doubles() const;
  /// A hint that `count` elements from `offset` on will not be read for a while: what lies in a mapped file leaves memory.
  /// Throws: domain_error past the end.
  void forget(std::size_t offset, std::size_t count) const;

  /// Element `flat` of an I64 tensor. Throws: domain_error past the end, format_error for any other dtype.
  [[nodiscard]] std::int64_t integer_at(std::size_t flat) const;
  [[nodiscard]] std::vector<std::int64_t> to_integers() const;

  /// The same elements under another name.
  [[nodiscard]] tensor named(std::string name) const;

 private:
  tensor(std::optional<format> of, std::vector<std::size_t> shape, shared_bytes bytes, std::size_t byte_count, std::string name,
         std::size_t element_bytes);
  [[nodiscard]] std::string label() const;
  void require_range(std::size_t offset, std::size_t count) const;
  void require_integer() const;

  std::string name_;
  std::optional<format> format_;  // none: I64
  std::vector<std::size_t> shape_;
  std::size_t size_ = 0;
  shared_bytes bytes_;
  std::size_t byte_count_ = 0;
};

/// Same dtype, shape and bytes, whatever the names: NaN equals the same NaN, -0 differs from +0.
[[nodiscard]] bool same_bits(const tensor& a, const tensor& b);

}  // namespace deltaproof
