// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
//
// Errors projected on what planted faults do, for outputs and gradients: runs of the plan, runs with a fault and the
// result leave errors of some tensors in some lanes; their products are added up over the lanes, and `projection_on` makes of the
// sums what a verdict needs (false-alarm.md, L6).
#pragma once

#include <cstddef>
#include <limits>
#include <span>
#include <string>
#include <vector>

#include "referee/parts.hpp"

namespace deltaproof::referee_detail {

using flat = std::vector<float>;
using by_run = std::vector<std::vector<double>>;  ///< [variant][run]

/// Sum of x y; what is not finite in either counts as 0: a fault must show by its error.
[[nodiscard]] double inner(const flat& x, const flat& y);

/// Several of these, each summed in its own order: the entries of all x lie side by side, and are read once for a few y.
class columns_beside {
 public:
  /// Finite, of the same length, or empty: their sum is 0 then. They are emptied.
  void take(const std::vector<flat*>& x);
  /// [y][x]; all y are finite and of one length.
  [[nodiscard]] by_run inner(std::span<const flat* const> y) const;

 private:
  static constexpr std::size_t width = 32, together = 4;
  std::size_t count_ = 0;
  std::vector<flat> groups_;  ///< of `width` each: element by element, 0 where there is no more of them
};
/// What is not finite in fp32 is 0.
[[nodiscard]] flat difference(const double* a, const double* b, std::size_t count);
[[nodiscard]] flat as_flat(const double* a, std::size_t count);

/// How many directions x, `columns` wide, is spread over by its squares, (tr G)^2 / tr G^2 of its Gram matrix G: 1 where its rows
/// are parallel. Estimated from some of its rows and a few probes.
[[nodiscard]] double directions_of(const flat& x, std::size_t columns);

/// One of the judged tensors of a lane, as runs of the plan leave it.
struct tensor_errors {
  std::size_t columns = 1;
  flat base;                             ///< error of the plain run
  std::vector<std::vector<flat>> same;   ///< [variant][run]: run - plain run, on the same inputs
  std::vector<std::vector<flat>> moved;  ///< [variant][run]: errors of draws
  flat mean_same;                        ///< of same
  by_run same_size, moved_size;          ///< sums of squares of the errors of these runs
  columns_beside runs;                   ///< same, moved

  /// The last four, from the others: same and moved have no entries then.
  void sum_up();
  /// Squared distance of `error` to the runs of each variant on the same inputs, in the mean, as a share of their squared size.
  [[nodiscard]] std::vector<double> distances(const flat& error) const;
};

/// Sums over lanes for one tensor: squared sizes of errors, [variant][run].
struct error_sizes {
  by_run same, moved;

  void add(const tensor_errors& x);
};

/// Sums over lanes for one (fault, tensor).
struct fault_sums {
  double own = 0;                                               ///< <d, d>
  double fourths = 0;                                           ///< of the entries of d
  double directions = std::numeric_limits<double>::infinity();  ///< the fewest of a lane
  double got = 0;
  double base = 0;
  double without = 0;    ///< <error of the run that the fault is planted in, d>
  bool departs = false;  ///< where nothing is rounded but sums, it changes more than another build does
  double deviation = 0;  ///< <got - base - mean(same), d>
  double deviation_size = 0;
  double apart = 0;    ///< squared distance of the result to the run that the fault is planted in
  double by_sums = 0;  ///< squared; see result_errors
  double values = 0;   ///< likewise
  by_run same, moved;
  std::vector<double> finer, finer_size;  ///< by rounding left out; squared norms of what leaving it out does
};

/// One planted fault in one lane; `difference` is faulty - correct in each tensor.
struct fault_run {
  bool lost_tokens = false;
  std::vector<flat> difference;
  lane_norms finite_norms;      ///< of its error, where the whole lane was run
  bool breaks = false;          ///< something is not finite there that is in the run without the fault
  std::vector<fault_sums> own;  ///< what no result enters
};

/// fp32 ends at 3.4e38; terms and factors of a sum take the rest.
inline constexpr double far_from_the_end = 1e20;
/// Puts the values of a correct run where those of a faulty one are not finite. Whether any of them is finite.
bool mend(std::span<double> faulty, std::span<const double> correct);
/// Whether what is not finite in a faulty run is the fault's doing alone: no sum of the plan may overflow (overflow.hpp) where
/// its own runs stay this far below the end of the range.
[[nodiscard]] bool is_far_from_the_end(const range_seen& range);

/// A run that faults are planted in.
struct run_without {
  flat error;
  double size = 0;       ///< sum of squares of the values
  columns_beside finer;  ///< [rounding left out]: another run without a fault - this one
  std::vector<double> finer_size;

  /// They are emptied.
  void take_finer(std::vector<flat>& runs);
};

/// What no result enters, of each fault.
[[nodiscard]] std::vector<fault_sums> sums_of(const tensor_errors& x, const run_without& plain,
                                              std::span<const flat* const> differences);
/// Sets `own` of runs that have their differences. Faults in blocks of `faults_together` share what is read.
void take_sums(std::span<fault_run> runs, const std::vector<tensor_errors>& x, const std::vector<run_without>& plain);
inline constexpr std::size_t faults_together = 8;

/// The result's errors in one lane, and what they are beyond those of the plan's runs.
struct result_errors {
  std::vector<flat> got, deviation;
  std::vector<double> deviation_size;
  std::vector<double> apart;    ///< squared distances to the run that faults are planted in
  std::vector<double> by_sums;  ///< squares of what sums in fp32, truncated all in one direction, may move its tensors by
  std::vector<double> values;   ///< sums of their squares

  /// `updates`: of the state, in the lane.
  void compare_with(const std::vector<run_without>& plain, std::size_t updates);
};
[[nodiscard]] result_errors errors_beyond(const std::vector<tensor_errors>& runs, std::vector<flat> got);

/// Adds one lane of one fault to its sums, by tensor.
void add_lane(const fault_run& run, const std::vector<tensor_errors>& runs, const result_errors& result,
              std::vector<fault_sums>& to);

[[nodiscard]] fault_draws::projection projection_on(const fault& planted, const std::string& tensor, fault_sums s,
                                                    const error_sizes& sizes);
/// The size of the error itself, from the sums of its squares.
[[nodiscard]] statistic size_of_error(const std::string& tensor, const error_sizes& squares);

/// Runs of each variant and law: 24 in all leave at least near_pool_degrees behind the spread of a projection for up to eight
/// variants.
[[nodiscard]] std::size_t runs_beside_faults(std::size_t variants);

/// The variant with none of these roundings, and o in fp32 at least.
[[nodiscard]] plan_variant unrounded(plan_variant v);

/// The variant with one of its roundings left out, each in turn: kernels that keep the plan, and lie in a direction of their own.
[[nodiscard]] std::vector<plan_variant> one_rounding_fewer(const plan_variant& v);

}  // namespace deltaproof::referee_detail
