// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
//
// The backward half of judge_plan: one group of heads (those that read one head of q and k) of one sequence at a time. Its
// gradients are parts: dq and dk of the group, dv, dbeta, dg and dinitial_state of each of its heads. dq is made of states, and
// its buckets are counted from the first token; all others are made of cotangents, and theirs are counted from the last chunk.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "deltaproof/emulate/emulate_gradients.hpp"
#include "deltaproof/oracle/gradients.hpp"
#include "referee/parts.hpp"

namespace deltaproof::referee_detail {

/// One gradient of one head: rows x width elements, row i of which lies at first + i stride in the tensor.
struct gradient_part {
  std::size_t tensor = 0;  ///< of gradient_names
  std::size_t head = 0;    ///< of q and k where the tensor is dq or dk, else of v
  std::size_t pool = 0;    ///< the same, counted on over the sequences
  std::size_t rows = 0;
  std::size_t width = 0;
  std::size_t steps = 0;  ///< rows a token; 0: a state
  std::size_t first = 0;
  std::size_t stride = 0;
  std::size_t chunk = 0;      ///< rows of a chunk; 0: of a state
  std::vector<bucket> where;  ///< tokens; of a state one, of all tokens
  std::vector<bool> skip;     ///< elements that are not judged; empty: none
  bool judged = false;        ///< the result holds it, and it has elements to judge

  [[nodiscard]] std::string_view name() const { return gradient_names[tensor]; }
  [[nodiscard]] bool is_state() const { return steps == 0; }
  /// Whether what its error changes by inside a chunk is judged too (changes_of).
  [[nodiscard]] bool has_changes() const { return name() == "dg"; }
  [[nodiscard]] tiling tiles() const { return {rows, width, is_state() ? tiling::width : chunk}; }
  /// Rows of a bucket.
  [[nodiscard]] bucket rows_of(const bucket& b) const {
    return is_state() ? bucket{0, rows} : bucket{b.first * steps, b.last * steps};
  }
};

/// The heads of one key head in one sequence.
struct gradient_lane {
  std::size_t sequence = 0;
  std::size_t key_head = 0;
  sequence_range range;
  std::vector<gradient_part> parts;
  bool whole = true;  ///< every element is judged
};

/// By part of a lane, each rows x width.
using part_values = std::vector<std::vector<double>>;

struct gradient_trial {
  const trial& forward;
  const problem& p;
  const result& r;
  const plan& declared;
  gradient_reference exact;
  const referee_options& options;
  path_kind path;
  std::vector<plan_variant> variants;  ///< those with runs of their own first
  /// So many have them. The others differ from the first in the order of <h, dh> alone: theirs is another dg of its runs.
  std::size_t own;
  std::vector<run_kind> kinds;  ///< of those that have
  std::size_t unit;             ///< tokens of the bucket at the end
  std::vector<gradient_lane> lanes;
  std::vector<std::size_t> slice;  ///< lanes emulated several times, by index
  runs_of_kind runs{};             ///< of those lanes
  /// By tensor: finite elements of the result that are not judged, for runs of the plan may overflow there.
  std::map<std::string, std::size_t> without_limit = {};

  [[nodiscard]] bool runs_often(std::size_t lane) const { return std::find(slice.begin(), slice.end(), lane) != slice.end(); }
  [[nodiscard]] std::size_t runs_of(std::size_t lane, std::size_t law) const {
    return runs_often(lane) ? runs.of(law, kinds) : 1;
  }
  /// As `trial` has it.
  [[nodiscard]] std::size_t variant_of_run(std::size_t lane, std::size_t law, std::size_t run) const {
    const run_kind& kind = kinds[law / 2];
    return kind[(run + (runs_often(lane) ? 0 : lane)) % kind.size()];
  }
  [[nodiscard]] bool stopped() const { return options.stop != nullptr && options.stop->load(std::memory_order_relaxed); }
  [[nodiscard]] std::uint64_t seed(std::uint64_t what, std::uint64_t lane, std::uint64_t run) const {
    return (options.judge.seed << 40) ^ (what << 56) ^ (lane << 16) ^ run;
  }
  /// What runs of the plan depend on beside problem, plan and options.
  [[nodiscard]] std::string lanes_key() const;
};

/// Nothing where the plan says nothing of gradients.
[[nodiscard]] std::optional<gradient_trial> gradient_trial_of(const trial& t, const gradient_reference& exact);

/// Tokens [from, until), counted from the end in whole chunks of `unit` tokens: the last chunk, the one before it, then two, four
/// ... of them. The first of the list is the last of the tokens.
[[nodiscard]] std::vector<bucket> buckets_from_the_end(std::size_t from, std::size_t until, std::size_t unit);

[[nodiscard]] std::vector<gradient_lane> gradient_lanes_of(const problem& p, const result& r, const gradient_reference& exact,
                                                           std::size_t unit);

/// What the result, or the exact gradients, say of the parts of a lane; of parts that the result does not hold: nothing.
[[nodiscard]] part_values errors_of_result(const gradient_trial& t, const gradient_lane& at);
[[nodiscard]] part_values exact_values(const gradient_trial& t, const gradient_lane& at);
[[nodiscard]] part_values values_of(const group_gradients& run, const gradient_lane& at);
/// values - exact.
[[nodiscard]] part_values errors_of_values(const gradient_trial& t, const part_values& values, const gradient_lane& at);

/// What a run says of its forward pass, if asked for.
struct forward_pass {
  range_seen range{};          ///< of all heads
  const lane* errs = nullptr;  ///< where the first head's errors are asked for
  lane_errors errors;
};
/// What a run says of dg in other orders of <h, dh>, if asked for: values less those of its own dg; of other parts nothing.
struct other_sums {
  std::vector<tile_order> orders;
  std::vector<part_values> less_own;  ///< by order
};
/// The run on the inputs as given, its sums in another build's order: its errors.
[[nodiscard]] part_values gradient_errors_on_given(const gradient_trial& t, const gradient_lane& at,
                                                   const std::vector<gradient_head>& group, const plan_variant& variant,
                                                   std::uint64_t seed, forward_pass* forward = nullptr,
                                                   other_sums* others = nullptr);
/// The errors of a run on its own, moved, inputs.
[[nodiscard]] part_values gradient_errors_of_draw(const gradient_lane& at, const std::vector<gradient_head>& group,
                                                  const plan_variant& variant, std::uint64_t seed,
                                                  forward_pass* forward = nullptr, other_sums* others = nullptr);

/// {rms, max} of each bucket of a part, `changes` of dg and the rms of its tiles; infinite where something that is judged is not
/// finite.
[[nodiscard]] lane_norms norms_of(const gradient_part& part, const std::vector<double>& values);
/// Of dg, by bucket, the rms of what neighbouring rows of one chunk differ by; of other parts nothing. A dg is summed up from the
/// end of its chunk: what is added to its last row, the sum <h, dh> above all, is in every row of it and in no difference.
/// `sums`: of what they add up to, which bounds the differences of what has these magnitudes.
[[nodiscard]] std::vector<double> changes_of(const gradient_part& part, const std::vector<double>& values, bool sums = false);
/// Elements of a bucket that are judged.
[[nodiscard]] std::size_t judged_elements(const gradient_part& part, const bucket& b);

/// About how long one run of the backward pass takes on one core, in seconds, its forward pass and its own truth included.
[[nodiscard]] double seconds_of_gradient_run(const problem& p, const plan_variant& variant, std::size_t tokens);

/// Errors of emulated draws as samples. Places: two (rms, max) for each bucket of each part that the result holds, lane by lane;
/// then one (changes) for each bucket of dg, lane by lane; then one (tiles) for each bucket of each part of a lane that ran
/// often.
struct drawn_gradients {
  std::vector<statistic> statistics;
  std::vector<judged_statistic> places;   ///< with `got` and `truth`, without limits
  std::vector<std::size_t> first_place;   ///< by lane
  std::vector<std::size_t> first_change;  ///< by lane, of the places of changes
  /// Of each place of tiles, which are the last, the place of its rms; and by lane and part what runs err in each tile.
  std::vector<std::size_t> beside;
  std::vector<std::vector<std::vector<double>>> scales;
  range_seen range{};       ///< of the forward passes of these runs
  forward_samples forward;  ///< their errors, of runs that a forward check makes too
};
/// Chooses the slice and how often it runs; draws. What overflows in the runs is left out.
[[nodiscard]] drawn_gradients draw_gradients(gradient_trial& t, overflow_question& overflow);
/// As leave_out_overflowed and leave_out_overflowing.
void leave_out_overflowed_gradients(gradient_trial& t, overflow_question& overflow);
[[nodiscard]] bool leave_out_overflowing_gradients(gradient_trial& t, const drawn_gradients& runs, overflow_question& overflow);

/// limits_beside_truth. dg and dbeta are inner products of rows that dq, dk and dv show, and cancel more than those: what these
/// are off by in a head says what the factors are.
[[nodiscard]] std::vector<threshold> gradient_limits(const drawn_gradients& runs, const false_alarm& alarm);

/// Adds the statistics of the gradients to `out`, judged.
void judge_gradient_statistics(const drawn_gradients& runs, const std::vector<threshold>& limits, plan_report& out);
/// Adds the stored stages of the backward pass to `out`, judged by their bounds. Of a head whose exact gradients leave their
/// range, and of a result that stores more bits than the plan, nothing is said.
void judge_backward_stages(const gradient_trial& t, plan_report& out);
/// As judge_reach, for the statistics from `first` on.
[[nodiscard]] std::string judge_gradient_reach(const gradient_trial& t, const drawn_gradients& runs, std::size_t first,
                                               plan_report& out);
/// Adds what the plan's backward pass costs beside its formats alone.
void judge_gradient_adequacy(const gradient_trial& t, const drawn_gradients& runs, adequacy_report& out);
[[nodiscard]] std::string gradient_slice_text(const gradient_trial& t);

/// Planted faults of the backward pass that can happen to this problem.
[[nodiscard]] std::vector<const fault*> gradient_faults_of(const gradient_trial& t);
/// Tests of their shapes, known before any is run.
[[nodiscard]] std::size_t gradient_fault_tests(const gradient_trial& t);
/// As draw_faults. `limits` belong to `runs.statistics`.
[[nodiscard]] fault_draws draw_gradient_faults(const gradient_trial& t, const drawn_gradients& runs,
                                               const std::vector<threshold>& limits);

}  // namespace deltaproof::referee_detail
