// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
//
// A gated delta rule over a million tokens, one head at a time: tokens with model-like gates and steps, the oracle's state at
// checkpoints with a radius carried from block to block, and the same tokens executed with state, beta and decay each kept in a
// format of choice. Everything else is fp32.
#pragma once

#include "deltaproof/algebra/matrix.hpp"
#include "studies/shared/common.hpp"
#include "studies/shared/long_tokens.hpp"

namespace deltaproof::detail::state_precision {

using shared::head;
using shared::heads;
using shared::shape;
using shared::token_source;
using shared::tokens;

/// How the decay is kept: as e^g in a format, or as g in a format with e^g taken in fp32.
enum class decay_place { exponential, logarithm };
struct choice {
  std::string_view name;
  format state = fp32;
  format beta = fp32;
  format decay = fp32;
  decay_place place = decay_place::exponential;
  bool stochastic = false;  ///< of the state's rounding
};
inline constexpr std::array<choice, 10> choices{{{"fp32"},
                                                 {"state-bf16", bf16},
                                                 {"state-bf16-stochastic", bf16, fp32, fp32, decay_place::exponential, true},
                                                 {"state-fp16", fp16},
                                                 {"state-fp16-stochastic", fp16, fp32, fp32, decay_place::exponential, true},
                                                 {"beta-bf16", fp32, bf16},
                                                 {"decay-bf16", fp32, fp32, bf16},
                                                 {"decay-fp16", fp32, fp32, fp16},
                                                 {"log-decay-bf16", fp32, fp32, bf16, decay_place::logarithm},
                                                 {"all-bf16", bf16, bf16, bf16}}};

struct measured_run {
  std::vector<double> error;  ///< |S' - S|_F / |S|_F at the checkpoints; infinite where S' is not finite
  std::vector<double> kept;   ///< <S', S> / <S, S>
};
/// One head: the oracle and every choice at the checkpoints, in one pass over the tokens. |exact - state|_F <= radius: blocks
/// start from the state of the one before; what that was off by is multiplied by the decays since (every step has
/// b |k|^2 <= 2, checked) and added.
struct head_run {
  std::vector<matrix<double>> states;
  std::vector<double> radius;
  std::vector<measured_run> runs;  ///< as `choices`
  double half_life = 0;            ///< ln 2 / mean of -g over the run; infinite without a gate
};
inline constexpr std::size_t longest_block = 4096;
/// Throws: domain_error where a step has beta |k|^2 > 2.
[[nodiscard]] head_run run_head(const head&, const shape&, std::span<const std::size_t> at, std::uint64_t seed);

}  // namespace deltaproof::detail::state_precision
