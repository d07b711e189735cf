// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
//
// `solve_gradients` for those who round what each group of heads answers and keep no more: whole tensors with their radii are
// large.
#pragma once

#include <cstddef>
#include <functional>
#include <string_view>

#include "deltaproof/oracle/gradients.hpp"

namespace deltaproof {

/// What one group of heads, or one head of it, adds to a gradient: its runs of `width` elements lie in the whole tensor at
/// first, first + stride, ...
struct solved_gradient {
  std::string_view name;  ///< of gradient_names
  const reference_tensor& part;
  std::size_t first = 0, stride = 0, width = 0;
};

/// What stands in such a part: numbers, or what each certainly rounds to in the format asked for, NaN where that is open. Its
/// radius is that of the number before it was rounded.
enum class gradient_form { numbers, roundings };

/// As solve_gradients, without tensors: `sink` is given each part when it is known, by several threads at a time, for different
/// elements. Roundings: of a question with both formats and no radius.
[[nodiscard]] reference_gradients solve_gradients_by_group(const problem& p, const question& q, gradient_form form,
                                                           const std::function<void(const solved_gradient&)>& sink);

}  // namespace deltaproof
