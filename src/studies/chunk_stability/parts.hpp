// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
//
// What the two files of the study share: its sizes, inputs and steps, and one chunk run in an arithmetic.
#pragma once

#include "studies/shared/chunks/arithmetics.hpp"
#include "studies/shared/chunks/keys.hpp"
#include "studies/shared/common.hpp"

namespace deltaproof::detail::chunk_stability {

using chunks::key_kind;

inline constexpr std::size_t key_dim = 64;
inline constexpr std::size_t value_dim = 4;
inline constexpr std::size_t middle = 64;  // the chunk that is looked at most closely
inline constexpr std::string_view inverse_name = "forward16+block";
inline constexpr double hard_beta = 1.984375;

inline const grid_axis<format> stores{"store", {bf16, fp16, fp32}};

inline std::size_t some_draws(const run_options& options) { return options.size(4, 16); }
inline std::size_t many_draws(const run_options& options) { return options.size(8, 64); }
inline std::size_t tokens(const run_options& options) { return options.size(4096, 65536); }

inline sequence<double> inputs(const run_options& options, key_kind keys, const chunks::step_law& steps, std::size_t chunk,
                               std::size_t draw) {
  return chunks::make_sequence(keys, steps, chunk, key_dim, 1, 0, 1000 * options.seed + draw);
}

inline chunks::chunk_run run_chunk(std::string_view arithmetic, const sequence<double>& s, std::size_t chunk) {
  return chunks::arithmetic_named(arithmetic).chunkwise(s, chunk, inverse_named(inverse_name));
}

/// Multiples of 2^-7 from 1 to 2: fine where one key repeats, coarse elsewhere, fewest in fp32.
inline std::vector<double> betas_of(key_kind kind, const format& store) {
  if (store == fp32) return {1, 1.5, 1.75, 1.9375, hard_beta, 1.9921875, 2};
  if (kind != key_kind::repeated) return {1, 1.25, 1.5, 1.75, 1.875, 1.9375, 1.96875, 1.9765625, hard_beta, 1.9921875, 2};
  std::vector<double> betas;
  for (int i = 128; i <= 256; ++i) {
    if (i <= 224 ? i % 4 == 0 : i <= 248 ? i % 2 == 0 : true) betas.push_back(i / 128.0);
  }
  return betas;
}

/// The recurrence over many tokens, v = 0, for every kind of keys.
void add_control(const run_options&, results&);
/// The first beta at which the repeated key explodes in bf16, in the frame first-explosion; 2 where it never does.
double beta_of_many_chunks(const results&);
/// The kernel and the recurrence on the same tokens, at that beta.
void add_horizon(const run_options&, results&);

}  // namespace deltaproof::detail::chunk_stability
