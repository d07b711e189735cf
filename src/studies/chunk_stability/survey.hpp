// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
//
// The numbers of the chunk-stability study: `survey_chunks` looks at single chunks (kinds of keys x formats x C x beta x
// seeds), `survey_origins` at which stored stage moves the transition, `survey_arithmetics` at other inverses, and
// `survey_horizon` runs kernels and recurrences over many chunks. Sections turn them into findings.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "deltaproof/study/study.hpp"
#include "studies/shared/chunks/keys.hpp"

namespace deltaproof::detail::chunk_stability {

struct settings {
  std::size_t key_dim = 64;
  std::size_t value_dim = 4;
  std::size_t seeds = 4;           ///< draws of each kind of keys
  std::size_t repeated_seeds = 8;  ///< draws of the repeated key
  std::size_t tokens = 4096;       ///< horizon of the executed runs
  std::vector<std::size_t> chunks{16, 32, 64, 128};
};
[[nodiscard]] settings settings_for(const run_options&);

inline constexpr std::array<std::string_view, 3> stored_formats{"bf16", "fp16", "fp32"};
inline constexpr std::string_view inverse_name = "forward16+block";
/// A chunk that is met for ever explodes where its spectral radius is at least this: it doubles every 70 chunks or sooner.
inline constexpr double explodes_at = 1.01;

/// The steps looked at, multiples of 2^-7 from 1 to 2: fine where one key repeats, coarse elsewhere, fewest in fp32.
[[nodiscard]] std::vector<double> betas_of(chunks::key_kind, std::string_view format);
/// Seed of draw i.
[[nodiscard]] std::uint64_t draw_seed(const run_options&, std::size_t i);
[[nodiscard]] inline bool one_direction(chunks::key_kind kind) {
  return kind == chunks::key_kind::repeated || kind == chunks::key_kind::alternating;
}

/// One kind, format and C, over its betas; the worst of all draws.
struct chunk_curve {
  chunks::key_kind keys{};
  std::string_view format;
  std::size_t chunk = 0;
  std::size_t draws = 0;
  std::vector<double> beta;
  std::vector<double> radius;      ///< of the realised transition
  std::vector<double> along;       ///< |eigenvalue along k|, where one key repeats; else empty
  std::vector<double> norm;        ///< of the realised transition; only C = 64
  std::vector<double> exact_norm;  ///< only C = 64
  std::vector<double> distance;    ///< |realised - exact|_F

  /// The first beta whose radius is at least explodes_at, or 0.
  [[nodiscard]] double first_explosion() const;
  [[nodiscard]] double worst_radius() const;
};

struct chunk_survey {
  std::vector<chunk_curve> curves;  ///< kind-major, then format, then C
  double largest_square = 0;        ///< |k|^2 over all keys drawn
  double largest_exact = 0;         ///< exact norm over all chunks of C = 64
  std::uint64_t chunks = 0;         ///< realised transitions looked at
  bool complete = false;

  [[nodiscard]] const chunk_curve& at(chunks::key_kind, std::string_view format, std::size_t chunk) const;
};
[[nodiscard]] chunk_survey survey_chunks(const run_options&, const settings&);

/// For one repeated key: x^2 / (2 - x) C u, the bound on what storing Ai alone does to the eigenvalue along k.
[[nodiscard]] double storage_bound(double x, std::size_t chunk, double unit_roundoff);
/// The largest x with (x - 1)^C + storage_bound <= 1 (x >= 1), by bisection, rounded down.
[[nodiscard]] double proved_safe_x(std::size_t chunk, double unit_roundoff);

/// What rounding one thing alone, in bf16 and the rest in fp64, does to one chunk; the worst of the draws.
struct origin_row {
  chunks::key_kind keys{};
  double beta = 0;
  std::array<double, 3> distance{};  ///< Ai stored, beta k rounded, w stored
  std::array<double, 3> radius{};
  double largest_of_bound = 0;  ///< repeated keys: |eigenvalue error| of Ai alone / storage_bound
};
[[nodiscard]] std::vector<origin_row> survey_origins(const run_options&, const settings&);

struct arithmetic_row {
  std::string_view arithmetic;
  std::string_view inverse;
  chunks::key_kind keys{};
  double beta = 0;
  double radius = 0;
  double distance = 0;
};
[[nodiscard]] std::vector<arithmetic_row> survey_arithmetics(const run_options&, const settings&);

/// Steps drawn anew for each token, bf16; the worst of the draws.
struct range_row {
  chunks::key_kind keys{};
  chunks::step_law steps;
  std::size_t chunk = 0;
  std::size_t draws = 0;
  double radius = 0;
  double distance = 0;
};
[[nodiscard]] std::vector<range_row> survey_ranges(const run_options&, const settings&);

/// How often k, -k in turn give the eigenvalue of the repeated key, bit for bit (bf16).
struct agreement {
  std::uint64_t equal = 0;
  std::uint64_t cases = 0;
};
[[nodiscard]] agreement compare_alternating(const run_options&, const settings&);

/// The control: the recurrence over `tokens` tokens, v = 0, for every kind and the coarse betas.
struct control_result {
  std::array<std::array<double, 3>, 8> by_keys{};  ///< the same for each of key_kinds
  std::array<double, 3> largest_ratio{};           ///< |S_T| / |S_0|; state kept in fp32, in bf16, in fp16
  std::uint64_t runs = 0;                          ///< of each
};
[[nodiscard]] control_result survey_control(const run_options&, const settings&);

/// |S| after 0, C, 2 C, ... tokens, for one way to run the same tokens.
struct horizon_run {
  std::string_view label;
  bool chunkwise = false;
  std::vector<double> norm;
};
struct horizon_case {
  chunks::key_kind keys{};
  std::size_t chunk = 0;
  chunks::step_law steps;
  double value_scale = 0;
  std::size_t draw = 0;           ///< which draw of the keys
  double radius = 0;              ///< of the first realised bf16 chunk
  std::vector<horizon_run> runs;  ///< chunk bf16, fp16, fp32; recurrence fp32 state, bf16 state, fp16 state; exact (fp64)
};
[[nodiscard]] std::vector<horizon_case> survey_horizon(const run_options&, const settings&, const chunk_survey&);

}  // namespace deltaproof::detail::chunk_stability
