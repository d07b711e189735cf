// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
//
// Turns emulated runs of a precision plan into limits with a declared false-alarm probability. Give `thresholds` the errors
// (rms and max, for each tensor, horizon bucket and head) of every run of every variant of the plan, and it answers with one
// one-sided limit each: a kernel that keeps the plan exceeds any of them with probability at most `false_alarm::family`.
// `signed_thresholds` does it for numbers with a sign (biases, cosines of the error with a planted fault). Shapes: samples are
// [variant][run], in the same order of variants throughout; numbers of runs may differ. Rounds: fp64; nothing here is
// rigorous arithmetic. Knows no tensors and no problems. It exists because "worst of n runs" alarms once in n + 1 times for
// each statistic. What the limits rest on is derived, and what they do not, in proofs/notes/false-alarm.md.
#pragma once

#include <cstddef>
#include <limits>
#include <span>
#include <string>
#include <vector>

namespace deltaproof {

/// The probability that a kernel which keeps its plan is refuted by any of the statistics tested, shared evenly: no
/// independence is assumed (Bonferroni). Count every statistic of the check, signed ones included.
struct false_alarm {
  double family = 1e-4;        ///< in (0, 0.1]
  std::size_t statistics = 1;  ///< at least 1

  /// family / statistics. Throws: domain_error if either is out of range.
  [[nodiscard]] double each() const;
};

/// Degrees of freedom that stand behind a spread: of the wide pool, and of the near one (see `threshold`).
inline constexpr std::size_t wide_pool_degrees = 64;
inline constexpr std::size_t near_pool_degrees = 16;

/// `changes`: the rms of what neighbouring rows differ by. `tiles`: the largest rms of a tile, in units of what runs err in it.
enum class norm_kind { rms, max, changes, tiles };
[[nodiscard]] constexpr std::string_view name_of(norm_kind norm) {
  switch (norm) {
    case norm_kind::rms:
      return "rms";
    case norm_kind::max:
      return "max";
    case norm_kind::changes:
      return "changes";
    case norm_kind::tiles:
      break;
  }
  return "tiles";
}
/// A maximum, the law of which is Gumbel's; otherwise an rms.
[[nodiscard]] constexpr bool is_maximum(norm_kind norm) { return norm == norm_kind::max || norm == norm_kind::tiles; }

/// One error norm of one head in one horizon bucket, as the emulated runs gave it. Neighbouring buckets of a tensor have
/// neighbouring numbers.
struct statistic {
  std::string tensor;
  std::size_t bucket = 0;
  std::size_t head = 0;
  norm_kind norm = norm_kind::rms;
  double floor = 0;                          ///< errors up to this mean nothing: radius, format
  std::vector<std::vector<double>> samples;  ///< [variant][run], >= 0; of a head outside the emulated slice one of each, or few
  /// [variant][run] of something alike that is not judged. They stand for the next bucket, which must not be given then, and fill
  /// pools as its runs would. Empty: none.
  std::vector<std::vector<double>> neighbours = {};
  /// The error is small beside the truth: a sum of what each rounding alone does, its tail no heavier than a normal law's on
  /// the linear scale. Otherwise sizes may differ by factors, and the limit is that of the log scale alone.
  bool first_order = false;
  /// The limit is this many times what the runs show, for what they do not draw: `open_order`, or nothing.
  double allowance = 1;
  /// Likewise, for what errors of second order add where one of first order is at its limit.
  double second_order = 1;
  /// Runs scatter by no less, on the log scale: what is known of the error beside them (its own standard error over elements).
  double least_spread = 0;
  /// So many leading variants have runs of their own. Those after them are other readings of the same runs: each has its mean and
  /// its limit, and its residuals add nothing to a pool.
  std::size_t independent = std::numeric_limits<std::size_t>::max();
  /// Degrees that the wide pool is to have. Fewer for a key that has no neighbours: no bucket beside it.
  std::size_t wide_degrees = wide_pool_degrees;
  /// So many neighbours among the samples are laws of one variant. What one of them exceeds the pools by stretches the limits of
  /// all. Where there are several, runs of the first repeat each other's roundings: their residuals add nothing to a pool.
  std::size_t laws_of_variant = 1;
  /// The runs of this head are too few for a spread of its own: what they say is how much more it scatters than heads that ran
  /// often.
  bool few_runs = false;
};

/// What another order of summation may do to an error that the sums make, beside the roughest order that was run: sums in turn.
/// Its partial sums grow to the total; where they are as large from the start, the error is sqrt 3 times as large.
inline constexpr double open_order = 1.75;

/// The limit on a statistic: max over variants v of exp(mean_v + r), r = quantile spread_v sqrt(1 + 1/n_v), mean and spread on
/// the log scale; exp(mean_v) (1 + r) where the error is of first order and that is less, r there at least 1.6 times that of
/// Student's law for rms; times the allowance; never below the floor or a run that was seen. The spread is that of pooled
/// residuals times what the variant's residuals exceed those of all variants by. Two pools are tried and the larger limit counts:
/// the key's own head, all variants, its bucket, then buckets +-1, +-2 ... until near_pool_degrees; and likewise until
/// wide_pool_degrees, with all heads if the head alone has too few. The near pool scatters no less than the bucket itself. A head
/// of `few_runs` takes the noisiest of the other heads, times what its few runs scatter more; where its error is of first order,
/// the factor over the mean is at least the most of (1 + a cos x) exp(b sin x), a = quantile spread_v and b what the mean of n_v
/// logs may be low by. The quantile is Student's for rms; for max, Gumbel's times Student/normal; for either, where that is
/// larger, the Gamma law's with the skewness of all residuals of the tensor and norm (plus three standard errors) times
/// Student/normal. No spread is below `least_spread`. Runs at the floor are left out where others of the variant are above it.
struct threshold {
  double value = 0;         ///< infinite where no finite budget exists: then nothing can be refuted
  double typical = 0;       ///< exp(mean) of the variant that decides
  std::size_t variant = 0;  ///< which decides
  double spread = 0;        ///< of the pool that decides, for this variant, on the log scale
  double quantile = 0;      ///< in spreads, one-sided, at `alpha`
  std::size_t degrees = 0;  ///< of the pool that decides
  std::size_t pooled = 0;   ///< degrees of the wide pool
  double alpha = 0;
  bool finite = true;
  bool enough = true;      ///< pooled >= wide_degrees of the statistic; if not, more runs are needed (`runs_needed`)
  bool at_floor = false;   ///< every run of every variant was: the value is the floor
  std::string provenance;  ///< one line
};

/// One threshold for each statistic, in their order. A variant with a non-finite run has no finite budget, and a tensor none
/// of whose keys was run twice has none.
/// Throws: domain_error for a sample or floor that is negative, a floor that is not finite, or a key given twice;
/// shape_error where a variant has no run or keys of one tensor and norm differ in their number of variants.
[[nodiscard]] std::vector<threshold> thresholds(std::span<const statistic> statistics, const false_alarm& alarm);

/// Runs of each variant so that 64 degrees of freedom stand behind the wide pool and 16 behind the near pool without
/// neighbours: 1 + max(ceil(64 / (keys variants)), ceil(16 / variants)), keys = (head, bucket) pairs of a tensor that are run
/// more than once. Throws: domain_error if either is 0.
[[nodiscard]] std::size_t runs_needed(std::size_t keys, std::size_t variants);

/// A number with a sign. Spread is pooled over variants only: give enough runs (near_pool_degrees and more).
struct signed_statistic {
  std::string name;
  bool two_sided = true;                     ///< alpha/2 on each side; otherwise only large values are tested
  double floor = 0;                          ///< distances from the mean up to this mean nothing
  std::vector<std::vector<double>> samples;  ///< [variant][run]
};

/// The interval [lower, upper] that a kernel which keeps the plan leaves with probability at most alpha: the union over
/// variants of mean_v -+ max(floor, t spread sqrt(1 + 1/n_v)), Student's t, and of the runs seen.
struct signed_threshold {
  double lower = 0;
  double upper = 0;
  double mean = 0;          ///< of all runs
  double least_mean = 0;    ///< over variants
  double largest_mean = 0;  ///< likewise
  double spread = 0;        ///< within variants
  double predictive = 0;    ///< spread sqrt(1 + 1/n), n the fewest runs of a variant: the spread of a new value about a mean
  std::size_t degrees = 0;
  double quantile = 0;
  double alpha = 0;
  bool finite = true;
  std::string provenance;  ///< one line

  [[nodiscard]] bool holds(double value) const { return value >= lower && value <= upper; }
  /// (value - nearest mean of a variant) / predictive; 0 between the least and the largest mean or without a finite budget,
  /// infinite where the spread is 0. A measure to print, not a verdict: `holds` is.
  [[nodiscard]] double z_score(double value) const;
};

/// One interval for each statistic, in their order. Fewer than one degree of freedom, or a non-finite run: no finite budget.
/// Throws: domain_error for a floor that is negative or not finite; shape_error where a variant has no run.
[[nodiscard]] std::vector<signed_threshold> signed_thresholds(std::span<const signed_statistic> statistics,
                                                              const false_alarm& alarm);

/// Limit on |e| cos(e, d), the projection of an error e on the direction d, from those of its cosine and of its size: a kernel
/// that keeps the plan exceeds it with probability at most their alpha, where size and cosine are independent. Infinite
/// without a finite budget. Source: false-alarm.md, L6.
[[nodiscard]] double projection_limit(const signed_threshold& cosine, const threshold& size);

/// What the limits assume, a few lines for the program to print.
[[nodiscard]] std::string budget_argument(const false_alarm& alarm);

}  // namespace deltaproof
