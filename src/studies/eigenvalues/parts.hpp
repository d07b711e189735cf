// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
//
// The measurements of the study `eigenvalues`, as data; the study itself chooses words and figures. Each
// function decides exactly (rationals of the rounded numbers), counts, and keeps the worst case it met.
// Distances are in units of u = unit_roundoff of the format named. Each ends early when interrupted and
// says by `complete` whether it did. Apart from the study so that tests can run them small.
#pragma once

#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "deltaproof/number/encoding.hpp"
#include "deltaproof/number/rational.hpp"
#include "deltaproof/number/rounded.hpp"
#include "deltaproof/study/study.hpp"
#include "studies/shared/formats.hpp"

namespace deltaproof::detail::eigenvalues {

using shared::for_each_format;
using shared::format_count;
using shared::format_tag;
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

/// One rule in one format. Cases where |R(x)| > 1 are the rule's own affair and not counted.
struct rule_result {
  std::string rule;
  std::string format_name;
  rounding_place place = rounding_place::step_only;
  bool promises_decay = false;  ///< 0 < R(x) <= 1 wherever |R(x)| <= 1
  bool exhaustive = false;      ///< all significands (or all numbers) of the format
  std::uint64_t cases = 0;
  std::uint64_t not_finite = 0;       ///< b overflowed; counted, in no other number
  std::uint64_t outside_unit = 0;     ///< lambda outside [-1, 1]
  std::uint64_t outside_decay = 0;    ///< lambda outside (0, 1], where promised
  std::uint64_t negative = 0;         ///< lambda < 0, where (0, 1] is promised
  double worst_unit = 0;              ///< largest distance from [-1, 1], in u
  double worst_decay = 0;             ///< largest distance from [0, 1], in u, where promised
  double worst_error = 0;             ///< largest |lambda - R(x)|, in u
  std::uint64_t beyond_bound = 0;     ///< step_only: |lambda - R| > u (1 - R) + n h/2, h the smallest subnormal
  std::optional<double> first_unit;   ///< smallest x with lambda outside [-1, 1]
  std::optional<double> first_decay;  ///< smallest x with lambda outside (0, 1]
  double worst_beta = 0;              ///< beta and the rounded n of worst_unit, or of worst_decay if that is 0
  double worst_n = 0;
  int worst_end = 0;         ///< where the exact |k|^2 lies: -1 below n, 0 at n, 1 above n
  std::string worst_lambda;  ///< exactly
};

/// max |lambda - R| in u over bins of x, for one format.
struct rule_envelope {
  std::string rule;
  rounding_place place = rounding_place::step_only;
  std::vector<double> x;      ///< centre of a bin
  std::vector<double> error;  ///< NaN where the bin is empty
};

struct rule_survey {
  std::vector<rule_result> results;      ///< rule-major, then format, then place
  std::vector<rule_envelope> envelopes;  ///< of bf16
  std::uint64_t pairs = 0;               ///< (beta, n) looked at, over all formats
  bool complete = false;
};

/// lambda = 1 - b n for beta and n = |k|^2 in the format. bf16: all pairs of significands, beta in [1, 2) and n in
/// [2^e, 2^(e+1)) for |e| <= p + 2. 8-bit formats: all pairs of numbers with beta <= 2, n <= 256, beta n < 256. The
/// others: `samples_per_octave` pairs for each e, as many at the rule's stability limit; fp16 and tf32 get the same. With
/// `bf16_stride` > 1 only every so many-th significand of beta in bf16.
[[nodiscard]] rule_survey survey_rules(const run_options& options, std::size_t samples_per_octave, std::size_t bf16_stride = 1);

/// lambda of one case, `end` as worst_end, or nothing if b is not finite. Throws: format_error for an unknown rule or
/// format.
[[nodiscard]] std::optional<rational> realised_eigenvalue(std::string_view rule, std::string_view format_name,
                                                          rounding_place place, double beta, double n, int end = 0);

// ---- Unit keys ----

/// once: the unit vector of a Gaussian direction, each entry rounded once. inside_fp32: the direction rounded to
/// the format, x / sqrt(sum x^2 + 10^-6) in fp32, rounded. in_format: the same without 10^-6, all in the format.
enum class normalisation { once, inside_fp32, in_format };
inline constexpr std::array<normalisation, 3> normalisations{normalisation::once, normalisation::inside_fp32,
                                                             normalisation::in_format};
[[nodiscard]] std::string_view name_of(normalisation how);

inline constexpr double bin_width = 0.05;  ///< of histograms, in u
inline constexpr double bin_limit = 2.5;   ///< they span [-bin_limit, bin_limit]
inline constexpr std::size_t bin_count = 100;

struct norm_result {
  std::string format_name;
  normalisation how = normalisation::once;
  std::size_t dim = 0;
  std::uint64_t keys = 0;
  std::uint64_t not_finite = 0;        ///< keys with an entry that is not finite; in no other number
  std::uint64_t above_one = 0;         ///< |k|^2 > 1: lambda < -1 at beta = 2
  std::uint64_t leaves_below_two = 0;  ///< lambda < -1 at beta = 2(1 - u), the number before 2
  std::uint64_t leaves_at_safe = 0;    ///< lambda < -1 at beta = 2(1 - 2u)
  double mean = 0;                     ///< of |k|^2 - 1, in u
  double deviation = 0;                ///< standard deviation of the same
  rational smallest = 0;               ///< |k|^2
  rational largest = 0;
  double safe_beta = 0;         ///< largest number of the format with lambda >= -1 for every key found
  std::uint64_t subnormal = 0;  ///< entries, zeros included
  std::uint64_t zeros = 0;
  std::vector<std::uint64_t> histogram;  ///< of (|k|^2 - 1) / u, bin_count bins; the rest lies outside
};

struct norm_survey {
  std::vector<norm_result> results;  ///< by format, then normalisation, then dim; fp32 and fp64 lack inside_fp32
  std::uint64_t keys_per_dim = 0;    ///< drawn; fewer than asked only after an interruption
  bool complete = false;
};

inline constexpr std::array<std::size_t, 5> key_dims{16, 32, 64, 128, 256};

[[nodiscard]] norm_survey survey_norms(const run_options& options, std::size_t keys);

/// A unit vector whose entries, rounded to the format, give |k|^2 far above 1: `high` entries just above the
/// midpoint (1 + u)/4, the others equal. All of it is checked in rationals; `verified` says the outcome.
struct norm_witness {
  std::string format_name;
  std::size_t dim = 0;
  std::size_t high = 0;  ///< how many entries round up to (1 + 2u)/4
  double rest = 0;       ///< the other entries, rounded
  rational squared_norm = 0;
  bool verified = false;          ///< the rounding of every entry of the exact unit vector was confirmed
  bool leaves_below_two = false;  ///< 2(1 - u) |k|^2 > 2
};
[[nodiscard]] norm_witness make_witness(std::string_view format_name, std::size_t dim);

/// Whether (1 - 2u) ((1 + u)^2 + d h (2^emin + h/4)) <= 1, h the smallest subnormal: then lambda >= -1 for every
/// beta <= 2(1 - 2u) and every unit vector of d entries rounded elementwise to the format, subnormals included.
[[nodiscard]] bool safe_step_is_proved(const format& f, std::size_t dim);

// ---- Sigmoid ----

/// Where sigmoid(x) rounds to 1 and to 0: `input` to `output`, correctly rounded.
struct saturation {
  std::string input;
  std::string output;
  bool exhaustive = false;  ///< every input was evaluated; else bisection over ordered numbers
  std::uint64_t evaluations = 0;
  bool monotone = true;                  ///< over all inputs, where exhaustive
  std::optional<double> one_from;        ///< smallest input that gives 1
  std::optional<double> last_below_one;  ///< the number before it
  std::optional<double> zero_until;      ///< largest input that gives 0
  std::optional<double> naive_one_from;  ///< the same for 1/(1 + e^-x) with every operation rounded
  std::optional<double> naive_zero_until;
};

struct saturation_survey {
  std::vector<saturation> results;
  bool complete = false;
};
[[nodiscard]] saturation_survey survey_sigmoid(const run_options& options);

// ---- Materialised transitions ----

/// M = I - b k k^T with every entry rounded once; k a unit key rounded once to the format. M is symmetric.
struct transition_result {
  std::string format_name;
  std::size_t dim = 0;
  double beta = 0;
  std::uint64_t keys = 0;
  std::uint64_t expansive = 0;        ///< spectral radius above 1, by more than its estimated error
  std::uint64_t proved = 0;           ///< some M_ii >= 1 with another entry != 0 in its row: radius > 1
  std::vector<double> norm_excess;    ///< (|k|^2 - 1) / u, per key
  std::vector<double> radius_excess;  ///< (radius - 1) / u, per key, three digits
  double largest_added = 0;           ///< radius above max(1, |1 - b |k|^2|), in u, three digits
};

struct transition_survey {
  std::vector<transition_result> results;  ///< by format, dim, beta
  std::uint64_t spot_checks = 0;           ///< matrices whose radius was computed over real<128> too
  double worst_disagreement = 0;           ///< between double and real<128>, relative
  bool complete = false;
};

inline constexpr std::array<std::size_t, 2> transition_dims{16, 64};
inline constexpr std::array<double, 3> transition_betas{0.5, 1, 2};

[[nodiscard]] transition_survey survey_transitions(const run_options& options, std::size_t keys);

/// The entries of a unit key: key number `index` of dimension `dim` of this seed, rounded once to the format.
[[nodiscard]] std::vector<double> unit_key(std::string_view format_name, std::uint64_t seed, std::size_t dim,
                                           std::uint64_t index);

// ---- Recordings ----

/// lambda of every step of one recorded problem; decays are not part of it.
struct recording_result {
  std::string name;
  std::string key_format;
  std::string beta_format;
  std::string rule;
  bool exact = true;  ///< decided in rationals; else with 256 bits
  bool normalised_inside = false;
  std::uint64_t steps = 0;  ///< rows of k times value heads
  double smallest = 0;      ///< lambda
  double largest = 0;
  std::uint64_t outside_unit = 0;    ///< outside [-1, 1]
  std::uint64_t outside_decay = 0;   ///< outside (0, 1]
  std::uint64_t norm_above_one = 0;  ///< |k|^2 > 1, per row of k and key head
  std::uint64_t rows = 0;            ///< rows of k times key heads
  std::string first;                 ///< where lambda first leaves [-1, 1]; empty: nowhere
};

struct recording_survey {
  std::vector<recording_result> results;
  std::vector<std::string> unreadable;  ///< file and reason
  bool complete = false;
};
[[nodiscard]] recording_survey survey_recordings(const run_options& options);

}  // namespace deltaproof::detail::eigenvalues
