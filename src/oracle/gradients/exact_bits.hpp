// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
//
// How many bits MPFR needs to run the gradients of a group of heads without rounding anything. There is such a number only where
// every value of the run is dyadic: gates are 0 or -inf, nothing is normalised, no gain is a quotient, and no sigmoid is taken
// but that of 0. The number is an estimate: after the run, MPFR's inexact flag says whether something was rounded.
#pragma once

#include <cstddef>
#include <optional>

#include "deltaproof/oracle/problem.hpp"

namespace deltaproof {

/// For one group of heads; nothing where a value is not dyadic.
[[nodiscard]] std::optional<double> bits_of_exact_run(const problem& p, std::size_t sequence_index, std::size_t key_head);

}  // namespace deltaproof
