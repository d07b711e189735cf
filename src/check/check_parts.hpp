// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
//
// The parts of check: a tensor beside what it is compared with, and what a verdict may rest on.
#pragma once

#include <string>
#include <vector>

#include "deltaproof/check/check.hpp"

namespace deltaproof::check_detail {

/// One tensor of the result beside what it is compared with.
struct pairing {
  std::string name;
  const tensor* stored;
  std::vector<double> got;  ///< in the reference's order
  std::vector<bool> skip;
  std::vector<bool> overflowed = {};  ///< not finite where a sum may overflow; empty: none
};

/// Of each plan of the options, or of everything in fp32 where there are none, the places where its sums may overflow: made when
/// they are first asked for.
class overflow_of_plans {
 public:
  overflow_of_plans(const problem& p, const result& r, const check_options& options) : p_{p}, r_{r}, options_{options} {}

  /// What is not finite in `got` and not skipped, where sums of any plan may overflow; empty: nothing.
  [[nodiscard]] std::vector<bool> excused(std::string_view tensor, const std::vector<double>& got, const std::vector<bool>& skip);
  /// Those of plan i; null where nobody has asked yet.
  [[nodiscard]] const overflow_places* known(std::size_t i) const { return i < places_.size() ? &places_[i] : nullptr; }

 private:
  const problem& p_;
  const result& r_;
  const check_options& options_;
  std::vector<overflow_places> places_;
};
/// Both, as one mask.
[[nodiscard]] std::vector<bool> either(std::vector<bool> a, const std::vector<bool>& b);

[[nodiscard]] element_location locate(const problem& p, bool is_state, const element_error& e);
/// "sequence 0, head 1, token 70, element 5", the token from the start of its sequence.
[[nodiscard]] std::string place(const std::string& tensor, const element_location& at);

/// Whether the reference's radii are as large as what they enclose: of the relative error no digit can be told, not even that it
/// is below 1.
[[nodiscard]] inline bool no_digit_known(const measurement& m) {
  return m.unknown == 0 && m.rel_fro.upper >= 1 && m.rel_fro.lower < m.rel_fro.upper / 2;
}
/// Whether that is for want of precision: what is known to half the smallest number of the format is known to all that the tensor
/// can show.
[[nodiscard]] inline bool is_imprecise(const measurement& m, const format& stored) {
  return no_digit_known(m) && m.radius > smallest_subnormal(stored) / 2;
}

/// check without require_valid: for callers that were asked once and share what is allowed among several calls.
[[nodiscard]] check_report judge(const problem& p, const result& r, const check_options& options);

/// Elements of o at or after a divergence (from the start of its chunk on the chunk path), all of a diverged state: marks them in
/// `skip`.
void mark_skipped(const problem& p, const result& r, const reference& ref, pairing& o, pairing* state);
/// Looks for finite elements where the exact value is certainly beyond the format of the tensor, in heads that diverge, and marks
/// their tensors refuted. `pairs` and `out.tensors`: o and, where the result has it, final_state.
void refute_finite_beyond_range(const problem& p, const reference& ref, const std::vector<pairing>& pairs,
                                const check_options& options, check_report& out);

/// Fills tensor_report::coverage from what was skipped and from the reach of the plan's limits.
void count_coverage(const std::vector<pairing>& pairs, check_report& out);
/// Takes a `holds` or `measured` back that rests on too little, and says in the reason how much of which tensor is not judged.
void judge_coverage(check_report& out);
/// What to do where a verdict is vacuous or undecided; else nothing.
[[nodiscard]] std::string remedy_for(const check_report& out, int max_bits);

/// Counts what the plan's limits on gradients say nothing of; a gradient of which too little is judged is vacuous.
void judge_gradient_coverage(check_report& out);
/// Says of a result with some gradients which others the problem has.
void note_missing_gradients(const problem& p, const result& r, check_report& out);

/// A report on each gradient of the result, if the problem has cotangents. Where a head's exact state or cotangent leaves fp32,
/// or an element its own format, infinity or NaN is due and nothing else is judged; where a sum may overflow, neither is.
struct judged_gradients {
  std::vector<tensor_report> tensors;
  std::vector<gradient_divergence> divergences;
  bool stopped = false;
  reference_gradients exact;
  std::map<std::string, std::vector<bool>> skip;  ///< by tensor, where some element is not judged
};
[[nodiscard]] judged_gradients judge_gradients(const problem& p, const result& r, const check_options& options,
                                               overflow_of_plans& overflow);

/// An o that nobody stored, its elements skipped where mark_skipped would: for a plan that is asked about gradients alone.
[[nodiscard]] pairing outputs_in_range(const problem& p, const result& r, const std::vector<gradient_divergence>& divergences);

/// What lies in entries of A, Ai and Aqk that nobody reads; stages that hold only zeros there are left out.
[[nodiscard]] std::vector<unread_entries> find_unread(const problem& p, const result& r);
/// One line on such a stage.
[[nodiscard]] std::string describe(const unread_entries& x);

/// The share of its limit; negative where it has none.
[[nodiscard]] double closeness(const judged_statistic& s);
/// The statistic of a tensor closest to its limit, or nothing.
[[nodiscard]] const judged_statistic* closest(const plan_report& plan, const std::string& tensor, norm_kind norm);
/// The first bad stage of the kernel; of the plan where the kernel keeps one that is inadequate.
[[nodiscard]] std::string first_bad_of(const plan_report& plan);
/// Stored stages that were not recomputed. Outputs and gradients are compared with the reference and are none of them.
[[nodiscard]] std::vector<unjudged_stage> stages_without_bounds(const plan_report& plan);
[[nodiscard]] bool judged_without_faults(const check_report& report);
/// What divergences do where a tensor is not judged for them.
[[nodiscard]] std::string range_is_left(std::string_view tensor);
/// Why elements are not judged, said after how many they are.
inline constexpr std::string_view not_finite_by_sums =
    "not finite where an intermediate sum may overflow: in some order its terms leave the range, although the total does not";
inline constexpr std::string_view no_limits_on_faults =
    "with --no-power the result was not compared with planted faults, so a fault whose error is as small as rounding errors may "
    "pass";

}  // namespace deltaproof::check_detail
