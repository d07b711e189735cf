// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
//
// How a head's numbers are read from tensors, and moved by less than their own precision.
#pragma once

#include <cstddef>
#include <span>

#include "deltaproof/algebra/matrix.hpp"
#include "deltaproof/algebra/tensor.hpp"
#include "deltaproof/number/random.hpp"

namespace deltaproof::emulation_detail {

/// Rows of [B, T, heads, width] for one head, or of [B, T, heads] with width 1.
[[nodiscard]] matrix<double> head_rows(const tensor& t, std::size_t batch, std::size_t first, std::size_t count, std::size_t head,
                                       std::size_t width);
/// Each nonzero finite entry times 1 + d, |d| <= 2 units in the last place of `unit`, rounded to its own format once.
void move_all(std::span<double> x, const format& own, const format& unit, philox& draw);

}  // namespace deltaproof::emulation_detail
