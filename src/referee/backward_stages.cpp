// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
//
// What the bounds on the stored stages of a backward pass say of a result.
#include "deltaproof/stages/backward_stages.hpp"

#include <algorithm>

#include "referee/gradients.hpp"

namespace deltaproof::referee_detail {

namespace {

/// A kernel that stores more bits than its plan may round less on the way too, and the bounds know the plan's roundings only.
bool stores_what_the_plan_stores(const gradient_trial& t) {
  const auto finer = [](const tensor& stored, const format& planned) {
    return stored.element_format().precision > planned.precision;
  };
  const plan_variant& v = t.variants.front();
  for (const auto& [name, stage] : t.r.stages) {
    if (finer(stage, stored_format(v, name))) return false;
  }
  for (const auto* list : {&t.r.backward_stages, &t.r.gradients}) {
    for (const auto& [name, stage] : *list) {
      if (finer(stage, stored_gradient_format(v, t.p, name))) return false;
    }
  }
  return true;
}

}  // namespace

void judge_backward_stages(const gradient_trial& t, plan_report& out) {
  if (t.path != path_kind::chunk || t.r.backward_stages.empty()) return;
  if (!out.measured_stages) out.measured_stages.emplace();
  const bool whole = std::all_of(t.lanes.begin(), t.lanes.end(), [](const gradient_lane& at) { return at.whole; });
  if (!whole || !stores_what_the_plan_stores(t)) {
    const char* const why = whole ? "the kernel stores more bits than its plan, and bounds know the plan's roundings only"
                                  : "an exact state, its cotangent or a gradient leaves the range of its format";
    for (const auto& [name, stage] : t.r.backward_stages) out.measured_stages->unjudged.push_back({name, why, true});
    return;
  }
  const bool overflows = std::any_of(out.statistics.begin(), out.statistics.end(),
                                     [](const judged_statistic& s) { return s.tensor.front() == 'd' && !s.limit.finite; });
  const backward_stage_report measured = measure_backward_stages(t.declared, t.p, t.r, t.options.threads);
  auto& unjudged = out.measured_stages->unjudged;
  unjudged.insert(unjudged.end(), measured.unjudged.begin(), measured.unjudged.end());
  for (const stage_measurement& m : measured.stages) {
    judged_stage s;
    s.name = m.name;
    s.rms_ratio = m.rms_ratio;
    s.bias = m.bias.mean;
    if (m.judged == 0) {
      s.judged = verdict::vacuous;
      s.reason = why_unjudged(m);
    }
    if (m.bad > 0) {
      const bool plans_own = m.bad == m.nonfinite && overflows;
      s.judged = plans_own ? verdict::undecided : verdict::refuted;
      s.reason = describe(m) + (plans_own ? "; emulated runs of the plan overflow there too" : "");
    }
    out.measured_stages->stages.push_back(m);
    out.stages.push_back(std::move(s));
  }
}

}  // namespace deltaproof::referee_detail
