// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
//
// A gated delta rule over a million tokens, one head at a time: tokens with model-like gates and steps, the oracle's state at
// checkpoints with a radius carried from block to block, and the same tokens executed with state, beta and decay each kept in a
// format of choice. Everything else is fp32.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "deltaproof/algebra/matrix.hpp"
#include "deltaproof/number/format.hpp"
#include "deltaproof/number/random.hpp"

namespace deltaproof::detail::state_precision {

/// g = -rate softplus(N(0,1) + bias), softplus(bias) = dt, as gated DeltaNet models start; rate 0: no gate.
/// beta = sigmoid(N(0,1) + logit). Keys: a vocabulary of unit vectors rounded to bf16, the r-th word with frequency 1/r; values:
/// one for each word and noise half as large, rounded to bf16.
struct head {
  std::string_view name;
  double rate = 0;
  double dt = 0.001;
  double logit = 0;
};
inline constexpr std::array<head, 6> heads{{{"short", 8, 0.05, 0},
                                            {"medium", 1, 0.01, 0},
                                            {"long", 0.05, 0.001, 0},
                                            {"long-slow", 0.05, 0.001, -5},
                                            {"no-gate", 0, 0.001, 0},
                                            {"no-gate-slow", 0, 0.001, -5}}};

struct shape {
  std::size_t key_dim = 32;
  std::size_t value_dim = 4;
  std::size_t words = 256;
};

/// Tokens first ... first + count - 1 of a head. k and v are bf16 values; beta, g and decay (e^g rounded once) fp32 values.
struct tokens {
  std::vector<double> k, v, beta, g, decay;
};
/// Makes the tokens of a head block after block; equal arguments give equal tokens, whatever the blocks.
class token_source {
 public:
  token_source(const head&, const shape&, std::uint64_t seed);
  [[nodiscard]] tokens next(std::size_t count);

 private:
  head head_;
  shape shape_;
  philox choice_, gate_, step_, noise_;
  double bias_ = 0;
  std::vector<double> words_, values_, frequency_;
};

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
