// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
//
// The measurements of the study `eigenvalues`. Each decides exactly (rationals of the rounded numbers), counts, and keeps the
// worst case it met. Distances are in units of u = unit_roundoff of the format named. Apart from the study so that tests can
// run them small.
#pragma once

#include "deltaproof/number/encoding.hpp"
#include "deltaproof/number/rational.hpp"
#include "deltaproof/number/rounded.hpp"
#include "studies/shared/common.hpp"
#include "studies/shared/formats.hpp"

namespace deltaproof::detail::eigenvalues {

using shared::from_ordinal;
using shared::ordinal;

/// The double nearest to a rational.
[[nodiscard]] double to_double(const rational& x);
/// 2^exponent.
[[nodiscard]] rational power_of_two(int exponent);
/// |k|^2, exactly. Throws: domain_error where an entry is not finite.
[[nodiscard]] rational exact_squared_norm(std::span<const double> k);

// ---- Rules ----

/// step_only: b is beta phi(x) rounded once. every_operation: x, each operation of phi, and b = beta phi are rounded.
/// norm_too: the same, and n is a rounded |k|^2; the exact one lies just inside an end of n's rounding interval, and
/// both ends are cases.
enum class rounding_place { step_only, every_operation, norm_too };
inline constexpr std::array<rounding_place, 3> rounding_places{rounding_place::step_only, rounding_place::every_operation,
                                                               rounding_place::norm_too};
[[nodiscard]] std::string_view name_of(rounding_place place);

/// lambda = 1 - b n for beta and n = |k|^2 in the format. bf16: all pairs of significands, beta in [1, 2) and n in
/// [2^e, 2^(e+1)) for |e| <= p + 2. 8-bit formats: all pairs of numbers with beta <= 2, n <= 256, beta n < 256. The
/// others: `samples_per_octave` pairs for each e, as many at the rule's stability limit; fp16 and tf32 get the same. With
/// `bf16_stride` > 1 only every so many-th significand of beta in bf16.
/// Rows by rule, format and `rounded` (the place). Cases with |R(x)| > 1 are not counted, nor, in other numbers, steps that
/// overflow. unit: lambda outside [-1, 1]; decay: outside (0, 1], where promised; by, worst: the largest distance, in u;
/// beyond_bound: step_only: |lambda - R| > u (1 - R) + n h/2, h the smallest subnormal; worst_beta ... worst_lambda: the case of
/// worst_unit, or of worst_decay if that is 0, worst_end the side of n on which the exact |k|^2 lies.
[[nodiscard]] frame survey_rules(const run_options& options, std::size_t samples_per_octave, std::size_t bf16_stride = 1);

/// lambda of one case, `end` as worst_end, or nothing if b is not finite. Throws: format_error for an unknown rule or
/// format.
[[nodiscard]] std::optional<rational> realised_eigenvalue(std::string_view rule, std::string_view format_name,
                                                          rounding_place place, double beta, double n, int end = 0);

// ---- Unit keys ----

// The unit vector of a Gaussian direction, each entry rounded once.

inline constexpr double bin_width = 0.05;  ///< of histograms, in u
inline constexpr double bin_limit = 2.5;   ///< they span [-bin_limit, bin_limit]
inline constexpr std::size_t bin_count = 100;

[[nodiscard]] inline grid_axis<std::size_t> key_dims() { return {"dim", {16, 32, 64, 128, 256}}; }
[[nodiscard]] inline grid_axis<format> all_formats() {
  grid_axis<format> axis{"format", {}};
  for (const named_format& f : formats) axis.quick.push_back(f.value);
  return axis;
}

/// Rows by format, dim and `bin` of (|k|^2 - 1)/u; all but bin_from and share is said of all keys. mean, deviation, smallest,
/// largest: of (|k|^2 - 1)/u; leaves_below_two, leaves_at_safe: lambda < -1 at beta = 2(1 - u), 2(1 - 2u); safe_beta: the largest
/// number of the format with lambda >= -1 for every key.
[[nodiscard]] frame survey_norms(const run_options& options, std::size_t keys);

/// Whether (1 - 2u) ((1 + u)^2 + d h (2^emin + h/4)) <= 1, h the smallest subnormal: then lambda >= -1 for every
/// beta <= 2(1 - 2u) and every unit vector of d entries rounded elementwise to the format, subnormals included.
[[nodiscard]] bool safe_step_is_proved(const format& f, std::size_t dim);

// ---- Sigmoid ----

/// Where sigmoid(x), correctly rounded, is 1 and 0 for `input` to `output`; last_below_one: the number before one_from.
/// Exhaustive: every input was evaluated; else bisection.
[[nodiscard]] frame survey_sigmoid(const run_options& options);

// ---- Materialised transitions ----

/// M = I - b k k^T with every entry rounded once; k a unit key rounded once to the format. M is symmetric. Rows by format, dim,
/// beta, key: norm_excess = (|k|^2 - 1)/u; radius_excess = (radius - 1)/u, three digits; added: radius above max(1,
/// |1 - b |k|^2|), in u; expansive: radius above 1 by more than its estimated error; proved: some M_ii >= 1 with another entry
/// != 0 in its row; disagreement: of the radius over double and over real<128>, where both were computed.
[[nodiscard]] frame survey_transitions(const run_options& options, std::size_t keys);

/// The entries of a unit key: key number `index` of dimension `dim` of this seed, rounded once to the format.
[[nodiscard]] std::vector<double> unit_key(std::string_view format_name, std::uint64_t seed, std::size_t dim,
                                           std::uint64_t index);

}  // namespace deltaproof::detail::eigenvalues
