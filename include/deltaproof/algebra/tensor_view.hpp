// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
//
// Looks at memory that somebody else owns: a pointer, a format, a shape and strides, as a kernel's own buffers have them.
// `copied(view, name)` makes the tensor of the same values, bit for bit and row-major; nothing is rounded, and the memory is
// not needed afterwards. Strides count elements, may be negative or 0, and are row-major where none are given. The memory is
// the host's: what lies on a device is copied from it first. Made from a span, a view knows how far it may reach and says so
// where it does not; made from a bare pointer, it takes the caller's word.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "deltaproof/algebra/tensor.hpp"

namespace deltaproof {

class tensor_view {
 public:
  using extents = std::vector<std::size_t>;
  using steps = std::vector<std::ptrdiff_t>;  ///< one an axis, in elements

  /// No tensor: an optional one that is absent.
  tensor_view() = default;
  /// `first` is the element of index [0, ..., 0]; how far the memory reaches is not known.
  tensor_view(format of, const void* first, extents shape, steps strides = {});
  /// Bits of bf16 or fp16. Throws: format_error for a format of another width.
  tensor_view(format of, std::span<const std::uint16_t> bits, extents shape, steps strides = {});
  tensor_view(std::span<const float> values, extents shape, steps strides = {});   ///< fp32
  tensor_view(std::span<const double> values, extents shape, steps strides = {});  ///< fp64
  /// All of a tensor. It must outlive the view.
  explicit tensor_view(const tensor& of);

  [[nodiscard]] bool given() const noexcept { return given_; }
  [[nodiscard]] const format& element_format() const noexcept { return format_; }
  [[nodiscard]] const void* first() const noexcept { return first_; }
  [[nodiscard]] const extents& shape() const noexcept { return shape_; }
  [[nodiscard]] const steps& strides() const noexcept { return strides_; }  ///< as given: empty for row-major
  /// How many elements there are from the first on; nothing where only a pointer was given.
  [[nodiscard]] const std::optional<std::size_t>& reach() const noexcept { return reach_; }

  /// The same memory with the last two axes in the other order: a [V, K] state as (K, V). Throws: shape_error below two axes.
  [[nodiscard]] tensor_view with_last_axes_swapped() const;

 private:
  bool given_ = false;
  format format_ = fp32;
  const void* first_ = nullptr;
  extents shape_;
  steps strides_;
  std::optional<std::size_t> reach_;
};

/// "[4096, 64, 1]", for messages.
[[nodiscard]] std::string strides_text(std::span<const std::ptrdiff_t> strides);

/// The elements of `view`, row-major, with the same bits. Throws: shape_error if strides and shape have different lengths or
/// reach beyond the memory, domain_error for a null pointer, format_error for a format without a dtype (tf32); each names
/// `name`, the shape and the strides.
[[nodiscard]] tensor copied(const tensor_view& view, std::string name);

/// The stored words of `t`, aligned as Word: std::uint16_t for bf16 and fp16, float or std::uint32_t for fp32, double for fp64.
/// What a kernel is launched with. Throws: format_error if an element of `t` is not as wide as Word.
template <class Word>
[[nodiscard]] std::vector<Word> words_of(const tensor& t) {
  if (t.bytes().size() != t.size() * sizeof(Word)) {
    throw format_error("words_of: tensor " + t.name() + " holds " + t.dtype() + ", but words of " +
                       std::to_string(8 * sizeof(Word)) +
                       " bits were asked for; use std::uint16_t for BF16 and F16, float for F32, double for F64");
  }
  std::vector<Word> out(t.size());
  if (!out.empty()) std::memcpy(out.data(), t.bytes().data(), t.bytes().size());
  return out;
}

}  // namespace deltaproof
