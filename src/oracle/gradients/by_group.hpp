// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
//
// `solve_gradients` for those who round what is known and keep no more: whole tensors with their radii are large.
#pragma once

#include <array>
#include <cstddef>
#include <filesystem>
#include <functional>
#include <limits>

#include "deltaproof/oracle/gradients.hpp"

namespace deltaproof {

/// How elements of a gradient (of gradient_names) lie: rows of `width` numbers, `rows` of them a token, each for so many heads.
/// Of an initial state: one row, of a sequence.
struct gradient_layout {
  std::size_t rows = 1, heads = 1, width = 1;
};
[[nodiscard]] gradient_layout layout_of(const problem& p, std::size_t tensor);
/// What it is the gradient of; null where the problem has none.
[[nodiscard]] const tensor* given_of(const problem& p, std::size_t tensor);

/// Elements of one head in one sequence, as they follow each other there: from `first` on.
struct solved_gradient {
  std::size_t tensor = 0;  ///< of gradient_names
  std::size_t sequence = 0, head = 0, first = 0;
  const reference_tensor& part;
  unsigned turn = 0;  ///< 0 or 1: parts of one turn take the place of none of the other
};

/// What stands in such a part: numbers, or what each certainly rounds to in the format asked for, NaN where that is open. Its
/// radius is that of the number before it was rounded.
enum class gradient_form { numbers, roundings };

/// A group of heads, when nothing more will be known of it.
struct settled_group {
  std::size_t sequence = 0, key_head = 0;
  unsigned turn = 0;   ///< that of the parts that count
  bool some = false;   ///< there are such parts
  bool known = false;  ///< of roundings: no element is NaN
  /// Of roundings, by tensor: the largest radius of an element that is known, below 0 where none is.
  std::array<double, 6> radius{-1, -1, -1, -1, -1, -1};
};

/// Called by several threads at a time, for different groups.
struct gradient_sinks {
  std::function<void(const solved_gradient&)> part;
  std::function<void(const settled_group&)> settled;
};

/// As solve_gradients, without tensors: `sinks` is given what is known. Roundings come slice by slice, of a question with both
/// formats and no radius; numbers once, of a whole group. Sums over heads wait in a file beside `beside`, if that is given.
[[nodiscard]] reference_gradients solve_gradients_by_group(const problem& p, const question& q, gradient_form form,
                                                           const gradient_sinks& sinks,
                                                           const std::filesystem::path* beside = nullptr);

}  // namespace deltaproof
