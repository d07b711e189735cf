// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
//
// One sequence of a problem. `problem::sequences` lists them all, which costs a problem of 10^5 sequences too much where it is
// asked anew for each of them.
#pragma once

#include <cstddef>

#include "deltaproof/oracle/problem.hpp"

namespace deltaproof {

/// sequences().at(index).
[[nodiscard]] sequence_range sequence_at(const problem& p, std::size_t index);

}  // namespace deltaproof
