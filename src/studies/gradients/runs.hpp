// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
//
// Gradients of one head on inputs that every format holds: exact to within a radius, and as a chunk kernel gives them whose
// stages are stored in a format.
#pragma once

#include "deltaproof/algebra/matrix.hpp"
#include "deltaproof/oracle/gradients.hpp"
#include "deltaproof/scan/adjoint.hpp"
#include "deltaproof/scan/sequence.hpp"
#include "studies/shared/chunks/keys.hpp"
#include "studies/shared/common.hpp"

namespace deltaproof::detail::gradients {

/// One decay for every token, a value of bf16.
struct law {
  std::string_view name;
  chunks::key_kind keys = chunks::key_kind::fresh;
  chunks::step_law steps{0, 1};
  double decay = 1;
};
inline constexpr chunks::step_law near_two{1.9, 2};
inline constexpr std::array<law, 9> laws{{{"ordinary"},
                                          {"slow-gate", chunks::key_kind::fresh, {0, 1}, 1 - 0x1p-8},
                                          {"fast-gate", chunks::key_kind::fresh, {0, 1}, 0.125},
                                          {"clustered", chunks::key_kind::cosine_90, {0, 1}},
                                          {"repeated", chunks::key_kind::repeated, {0, 1}},
                                          {"near-two", chunks::key_kind::fresh, near_two},
                                          {"clustered-near-two", chunks::key_kind::cosine_90, near_two},
                                          {"repeated-near-two", chunks::key_kind::repeated, near_two},
                                          {"reflecting", chunks::key_kind::fresh, {2, 2}}}};

/// One step a token, S_0 = 0, dfinal_state = 0; q, v and d_o normal. All numbers are values of bf16 and of fp16.
struct head {
  sequence<double> tokens;
  cotangents<double> with;
};
[[nodiscard]] head make_head(const law&, std::size_t tokens, std::size_t dim, std::uint64_t seed);
/// The first `count` tokens.
[[nodiscard]] head first_tokens(const head&, std::size_t count);
/// A head that rounds to the given one: q, k, v, beta and d_o each moved by a uniform share, from -1/2 to 1/2, of their unit in
/// the last place of bf16; keys that follow their equals stay equal.
[[nodiscard]] head before_rounding(const head&, std::uint64_t seed);

constexpr std::size_t kinds = gradient_names.size();
inline constexpr std::size_t dq = 0, dk = 1, dv = 2, dbeta = 3, dg = 4, dinitial_state = 5;

/// By gradient_names; dg is by the logarithm of the decay.
using gradient_set = std::array<std::vector<double>, kinds>;

struct certified_gradients {
  gradient_set value;
  gradient_set low;                  ///< of pairs: what value leaves; else empty
  std::array<double, kinds> radius;  ///< relative: |exact - value - low| <= radius |value| (Frobenius)
};
[[nodiscard]] certified_gradients exact_gradients(const head&);  ///< fp64 with its radius
[[nodiscard]] certified_gradients exact_in_pairs(const head&);   ///< double-double with its radius

/// |x - exact| / |exact| over all entries (Frobenius); infinite where it is not a number.
[[nodiscard]] double error_of(const std::vector<double>& x, const certified_gradients& exact, std::size_t kind);

/// The backward pass of scan/chunk_adjoint.hpp: stages, operands, dq, dk and dv in the format; sums, dbeta, dg and dinitial_state
/// in fp32 (of fp64: in fp64).
inline constexpr std::array<std::string_view, 4> stage_formats{"bf16", "fp16", "fp32", "fp64"};
inline constexpr std::size_t chunk_length = 64;
[[nodiscard]] gradient_set run_backward(std::string_view format, const head&);

// What the parts of the study share: sizes, laws and seeds.

inline constexpr std::size_t dim = 64;  ///< K = V of most runs
[[nodiscard]] inline std::size_t tokens_of(const run_options& options) { return options.size(512, 2048); }

inline const grid_axis<law> all_laws{"law", {laws.begin(), laws.end()}};
[[nodiscard]] inline std::uint64_t seed_of(const run_options& options, std::size_t draw) { return 1000 * options.seed + draw; }

}  // namespace deltaproof::detail::gradients
