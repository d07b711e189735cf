// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
//
// How many bits a run needs so that MPFR rounds nothing, where every number of it is dyadic: gates of 0 and -inf alone, nothing
// normalised, no gain that is a quotient, no sigmoid but that of 0. An estimate: whether a run did round is MPFR's to say.
#pragma once

#include <cstddef>
#include <optional>

#include "deltaproof/oracle/problem.hpp"

namespace deltaproof {

/// Of the gradients of one group of heads; nothing where something is not dyadic.
[[nodiscard]] std::optional<double> bits_of_exact_run(const problem& p, std::size_t sequence_index, std::size_t key_head);

}  // namespace deltaproof
