// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
#include "deltaproof/referee/referee.hpp"

#include <algorithm>
#include <boost/math/special_functions/erf.hpp>
#include <cmath>
#include <limits>
#include <numbers>
#include <set>
#include <tuple>

#include "emulate/products.hpp"
#include "referee/gradients.hpp"
#include "referee/parts.hpp"
#include "support/text.hpp"

namespace deltaproof {

namespace {

using namespace referee_detail;

/// x with P(|N(0,1)| > x) = p.
double two_sided_normal(double p) { return std::numbers::sqrt2 * boost::math::erfc_inv(p); }

void judge_statistics(const drawn& runs, const std::vector<threshold>& limits, plan_report& out) {
  for (std::size_t i = 0; i < runs.places.size(); ++i) {
    judged_statistic s = runs.places[i];
    s.limit = limits[i];
    if (!s.limit.finite || !s.limit.enough) {
      s.judged = verdict::undecided;
    } else if (!(s.got <= s.limit.value)) {
      s.judged = verdict::refuted;
    }
    out.statistics.push_back(s);
  }
}

/// h of a chunk is made before its v_new, but from that of the chunk before.
bool v_new_came_first(const stage_report& stages) {
  const stage_measurement *h = stages.find("h"), *v_new = stages.find("v_new");
  if (h == nullptr || v_new == nullptr || !h->first_bad || !v_new->first_bad) return false;
  const auto at = [](const stage_place& x) { return std::tuple(x.batch, x.sequence, x.head, x.chunk); };
  return at(*v_new->first_bad) < at(*h->first_bad);
}

/// The worst refuted statistic of a tensor, in words.
std::string statistic_reason(const plan_report& report, const std::string& tensor) {
  const judged_statistic* worst = nullptr;
  // A tile is named where no other norm shows the error.
  const auto excess = [](const judged_statistic& s) {
    return std::pair(s.norm != norm_kind::tiles, s.limit.value > 0 ? s.got / s.limit.value : infinity);
  };
  for (const judged_statistic& s : report.statistics) {
    if (s.judged == verdict::refuted && s.tensor == tensor && (worst == nullptr || excess(s) > excess(*worst))) worst = &s;
  }
  if (worst == nullptr) return {};
  const std::string conforms = "a kernel that conforms to the plan",
                    below = " stays below " + digits(worst->limit.value) + " (typically " + digits(worst->limit.typical) + ")";
  const std::string place = place_text(*worst), got = digits(worst->got);
  switch (worst->norm) {
    case norm_kind::rms:
      return "the rms error of " + place + " is " + got + "; " + conforms + below;
    case norm_kind::max:
      return "the largest error of " + place + " is " + got + "; " + conforms + below;
    case norm_kind::changes:
      return "inside a chunk, the error of " + place + " changes from token to token by " + got + " (rms); " + conforms + below;
    case norm_kind::tiles:
      break;
  }
  return "the rms error of " + place + " is " + got + " times that of an emulated run; for " + conforms + " this factor" + below;
}

void judge_stage_list(const trial& t, const stage_roundings& roundings, const stage_draws& draws, const false_alarm& alarm,
                      overflow_question& overflow, plan_report& out) {
  stage_options how;
  how.threads = t.options.threads;
  for (const lane& at : t.lanes) how.judged_tokens.push_back(at.judged);
  out.measured_stages = measure_stages_at_least(t.p, t.r, roundings, how);
  const auto rms_limits = thresholds(draws.rms, alarm);
  std::vector<signed_statistic> bias = draws.bias;
  // Where the errors of an element are independent, the mean of n of them leaves z standard errors with this probability.
  const double z = two_sided_normal(alarm.each());
  bool overflowed = false;
  // A stage in which a kernel rounds less, and those after it, which read it, are no draws of the plan's law: bounds judge them.
  bool rounds_less = false;
  for (const stage_measurement& m : out.measured_stages->stages) {
    judged_stage s;
    s.name = m.name;
    s.rms_ratio = m.rms_ratio;
    if (m.judged == 0) {
      s.judged = verdict::vacuous;
      s.reason = why_unjudged(m);
    }
    rounds_less = rounds_less || m.finer || draws.stored_in_more_bits.count(m.name) != 0;
    // What overflows in every kernel of the plan, and what is made of it, is the plan's doing: adequacy says so.
    overflowed = overflowed || draws.overflowing.count(m.name) != 0;
    if (m.bad > 0) {
      const bool plans_own = m.bad == m.nonfinite && (overflowed || overflow_explains(t.r, m.name, overflow));
      s.judged = plans_own ? verdict::undecided : verdict::refuted;
      s.reason = describe(m) + (plans_own ? whose_overflow(overflowed) : "");
    }
    for (std::size_t i = 0; i < draws.rms.size(); ++i) {
      if (draws.rms[i].tensor != m.name || rounds_less) continue;  // the runs round as the plan says
      s.rms_limit = rms_limits[i];
      s.rms_ratio = draws.rms_got[i];
      const double rest = draws.rms_of_the_rest[i];
      if (rms_limits[i].finite && !(rest <= rms_limits[i].value) && s.judged != verdict::refuted) {
        s.judged = verdict::refuted;
        s.reason = m.name + ": on " + draws.slice + ", the rms of error/bound is " + digits(rest) + " even if the " +
                   std::to_string(excused_lines) + " worst rows and columns are left out; a kernel that conforms to the plan " +
                   "stays below " + digits(rms_limits[i].value);
      }
    }
    s.bias = m.bias.mean;
    for (signed_statistic& b : bias) {
      if (b.name != m.name) continue;
      b.floor = m.bias.allowance + z * m.bias.standard_error;
      s.bias_limit = signed_thresholds({&b, 1}, alarm).front();
      // Inputs may make a plan's own roundings lean; a kernel whose errors lean less does nothing wrong.
      s.bias_limit->lower = std::min(s.bias_limit->lower, 0.0);
      s.bias_limit->upper = std::max(s.bias_limit->upper, 0.0);
      if (!rounds_less && s.bias_limit->finite && !s.bias_limit->holds(s.bias) && s.judged != verdict::refuted) {
        s.judged = verdict::refuted;
        s.reason = m.name + ": its errors are biased, by " + digits(s.bias) + " ulp on average over " +
                   std::to_string(m.bias.count) +
                   " elements (a negative bias is toward zero); a kernel that conforms to the plan stays between " +
                   digits(s.bias_limit->lower) + " and " + digits(s.bias_limit->upper) + " (truncation gives -0.5)";
      }
    }
    out.stages.push_back(std::move(s));
  }
}

/// Statistics behind the limits on projections, beside two for each fault: the size of the error in each tensor.
constexpr std::size_t sizes_tested = 2;

/// Where a head diverges, runs of the plan may overflow some tokens before the exact recurrence leaves the range. No limit can be
/// drawn there; what lies before is judged by itself. Where the exact recurrence stays in range the plan is not adequate.
bool leave_out_overflow(trial& t, const drawn& runs) {
  bool any = false;
  for (std::size_t i = 0; i < t.lanes.size(); ++i) {
    lane& at = t.lanes[i];
    if (at.judged == at.range.tokens || runs.finite[i] >= at.judged) continue;
    any = true;
    at.lost = at.judged - runs.finite[i];
    at.judged = runs.finite[i];
  }
  return any;
}

/// A place whose runs are not finite, or lie at the floor, leaves the pool: the others then need more of them.
drawn enough_runs(trial& t, overflow_question& overflow) {
  drawn runs = draw_runs(t);
  if (leave_out_overflow(t, runs)) runs = draw_runs(t);
  if (!t.stopped() && leave_out_overflowing(t, runs, overflow)) {
    t.known.clear();
    runs = draw_runs(t);
  }
  for (int more = 0; more < 3 && !t.stopped(); ++more) {
    if (!need_more_runs(runs.statistics, t.options.judge.own_false_alarm(), t.kinds)) break;
    t.runs.moved *= 2;
    t.runs.whole *= 2;
    runs = draw_runs(t);
  }
  return runs;
}

/// The slice of the stages is short: runs of the whole heads may overflow after it, and stages then say nothing.
stage_draws draw_stages_beside(const trial& t, const stage_roundings& roundings, const drawn& runs) {
  stage_draws stages = draw_stages(t, roundings);
  const bool plan_overflows = std::any_of(runs.statistics.begin(), runs.statistics.end(), [](const statistic& s) {
    return std::any_of(s.samples.begin(), s.samples.end(), [](const auto& law) {
      return std::any_of(law.begin(), law.end(), [](double x) { return !std::isfinite(x); });
    });
  });
  for (const auto& stage : t.r.stages) {
    if (plan_overflows) stages.overflowing.insert(stage.first);
  }
  return stages;
}

/// The number of faults is known before any is run; each is tested in at most two tensors.
std::size_t fault_tests(const trial& t) {
  if (!t.options.judge.power) return 0;
  const std::span<const fault> all = faults(pass_kind::forward);
  const auto planted = std::count_if(all.begin(), all.end(), [&](const fault& f) { return applies(f, t.p, t.path); });
  return planted > 0 ? 2 * (2 * static_cast<std::size_t>(planted)) + sizes_tested : 0;
}

/// The first thing that is wrong in the order a kernel computes: a stage, a tensor, the direction of the error.
void find_first_bad(const trial& t, plan_report& out) {
  const bool forward_is_wrong = std::any_of(out.statistics.begin(), out.statistics.end(), [](const judged_statistic& s) {
    return s.judged == verdict::refuted && (s.tensor == "o" || s.tensor == "final_state");
  });
  for (const judged_stage& s : out.stages) {
    if (s.judged != verdict::refuted) continue;
    const bool is_backward = std::find(judged_stages.begin(), judged_stages.end(), s.name) == judged_stages.end();
    if (is_backward && forward_is_wrong) continue;
    const bool behind_v_new = s.name == "v_new" && out.first_bad_stage == "h" && v_new_came_first(*out.measured_stages);
    if (!out.first_bad_stage.empty() && !behind_v_new) continue;
    out.first_bad_stage = s.name;
    out.first_bad_is_stage = true;
    out.reason = s.reason;
  }
  const auto look = [&](const char* tensor, const std::string& reason) {
    if (reason.empty()) return;
    if (out.first_bad_stage.empty()) out.first_bad_stage = tensor;
    if (out.reason.empty()) out.reason = reason;
  };
  for (const char* tensor : {"o", "final_state"}) look(tensor, statistic_reason(out, tensor));
  look("final_state", coarser_state(t));
  // In the order in which a kernel makes them: the cotangents of the state, what reads the states, then what reads both.
  for (const char* tensor : {"dinitial_state", "dq", "dv", "dk", "dbeta", "dg"}) look(tensor, statistic_reason(out, tensor));
  for (const suspect& s : out.suspects) {
    if (!(s.share > s.limit)) continue;
    if (out.first_bad_stage.empty()) out.first_bad_stage = s.tensor;
    if (out.reason.empty()) {
      out.reason = "the error of " + s.tensor + (s.beside_run ? " (minus that of an emulated run on the same inputs)" : "") +
                   " contains " + digits(s.share) + " times the error that the planted fault " + std::string(s.planted->name) +
                   (s.is_alike() ? " (" + std::string(s.planted->what) + ")" : "") + " would cause" +
                   (s.is_alike() ? "" : ", beside errors that this fault does not explain") +
                   "; for a kernel that conforms to the plan this factor stays below " + digits(s.limit);
    }
  }
}

/// What else a kernel of this path could have stored: the first bad stage lies among them, or among those that were stored.
std::vector<std::string> stages_missing(const trial& t) {
  std::vector<std::string> out;
  if (t.path != path_kind::chunk) return out;
  for (const std::string_view name : stage_names) {
    if (name == "g_cumsum_log2" && !t.p.g) continue;
    if (name == "Aqk" && gates_of(t.p.op) != gate_axes::channels) continue;
    if (t.r.stages.count(std::string(name)) == 0) out.emplace_back(name);
  }
  return out;
}

/// `says_nothing`: why no verdict of `holds` may rest on the limits; empty where it may.
void conclude(const trial& t, const std::string& says_nothing, plan_report& out) {
  if (t.r.has_outputs()) out.stages_missing = stages_missing(t);
  out.judged = std::any_of(out.statistics.begin(), out.statistics.end(),
                           [](const judged_statistic& s) { return s.judged != verdict::undecided; });
  if (!out.first_bad_stage.empty()) {
    out.conforms = verdict::refuted;
  } else if (out.stopped) {
    out.conforms = verdict::undecided;
    out.reason =
        "no limit is exceeded so far, but the check was stopped before " +
        std::string(out.adequacy.judged ? "the planted faults were looked for" : "it was known whether the plan is adequate");
  } else if (out.statistics.empty()) {
    out.conforms = verdict::vacuous;
    out.reason = "no element could be judged";
  } else if (!out.judged) {
    out.conforms = verdict::undecided;
    std::set<std::string> tensors;
    for (const judged_statistic& s : out.statistics) {
      if (!s.limit.finite && s.limit.enough) tensors.insert(s.tensor);
    }
    std::string overflowing;
    for (const std::string& tensor : tensors) overflowing += (overflowing.empty() ? "" : ", ") + tensor;
    out.reason = (overflowing.empty() ? "too few emulated runs have an error on these inputs"
                                      : "emulating the plan on these inputs overflows in " + overflowing) +
                 ", so no error limit can be derived";
  } else if (out.power.ran && out.power.visible.empty()) {
    out.conforms = verdict::vacuous;
    out.reason = "no limit is exceeded, but these inputs can show none of the " + std::to_string(out.power.invisible.size()) +
                 " planted faults";
  } else if (!says_nothing.empty()) {
    out.conforms = verdict::vacuous;
    out.reason = "no limit is exceeded, but " + says_nothing;
  } else if (!out.adequacy.judged) {
    out.conforms = verdict::undecided;
    out.reason = "no limit is exceeded, but it is not known whether the plan is adequate: " + out.adequacy.reason;
  } else {
    out.reason = "every judged tensor and stage is within the plan's error limits on these inputs";
  }
}

/// The tensor in the plan's own format, where the file has a wider one that holds nothing else: a copy in more bits is the
/// same kernel. Of final_state it would be another.
std::optional<tensor> as_the_plan_stores(const tensor& given, format to, const std::string& name) {
  const format from = given.element_format();
  if (!is_lossless(to, from) || is_lossless(from, to)) return std::nullopt;
  const std::vector<double> values = given.to_doubles();
  const bool same = std::all_of(values.begin(), values.end(),
                                [&](double x) { return std::isnan(x) || emulation::narrowed(x, {to, false}) == x; });
  if (!same) return std::nullopt;
  return tensor::from_doubles(to, given.shape(), values, name);
}

/// Nothing where every tensor is in the plan's format already, or holds more than that.
std::optional<result> as_the_plan_stores(const result& r, const plan_variant& plan) {
  std::optional<result> out;
  const auto kept = [&]() -> result& { return out ? *out : out.emplace(r); };
  for (const auto& [name, given] : r.stages) {
    if (auto own = as_the_plan_stores(given, stored_format(plan, name), name)) kept().stages.at(name) = std::move(*own);
  }
  if (auto own = as_the_plan_stores(r.o, stored_format(plan, "o"), "o")) kept().o = std::move(*own);
  return out;
}

/// A finite output beyond the format in which the plan stores o was not rounded to it: runs keep the format found.
void store_o_as_found(std::vector<plan_variant>& plans, const tensor& o) {
  const std::vector<double> values = o.to_doubles();
  double most = 0;
  for (const double x : values) most = std::isfinite(x) ? std::max(most, std::fabs(x)) : most;
  for (plan_variant& v : plans) {
    if (most > largest(v.o.store)) v.o.store = o.element_format();
  }
}

/// Everything that limits are drawn from, and how many of them there are.
struct emulated_runs {
  drawn outputs;
  drawn_gradients gradients;
  stage_draws stages;
  stage_roundings roundings;
  bool has_stages = false;
  false_alarm alarm;
};

void begins(const trial& t, const char* what) {
  if (t.options.progress) t.options.progress(what, 0);
}

emulated_runs emulate_runs(trial& t, std::optional<gradient_trial>& back, overflow_question& overflow, plan_report& out) {
  emulated_runs runs;
  if (back) {
    begins(t, "emulation of gradients");
    runs.gradients = draw_gradients(*back, overflow);
    t.known = std::move(runs.gradients.forward);
  }
  if (t.r.has_outputs() && !t.stopped()) runs.outputs = enough_runs(t, overflow);
  out.runs = t.runs.moved;
  out.whole_runs = out.runs;
  for (const std::size_t i : t.slice) out.whole_runs = std::min(out.whole_runs, t.whole_runs_of(i, 1));
  runs.has_stages = t.r.has_outputs() && t.path == path_kind::chunk && !t.r.stages.empty();
  if (runs.has_stages && !t.stopped()) {
    begins(t, "stages of emulated runs");
    runs.roundings = roundings_of(t.declared, t.p, t.path, t.chunk);
    if (t.r.stages.count("Aqk") != 0) runs.roundings.output_span = 1;  // of one chunk, so o is
    runs.stages = draw_stages_beside(t, runs.roundings, runs.outputs);
  }
  if (back && !t.stopped()) {
    if (!t.r.has_outputs()) runs.outputs.range = runs.gradients.range;
    out.gradients = {true, true, runs.gradients.statistics.size() + gradient_fault_tests(*back), back->runs.moved,
                     gradient_slice_text(*back)};
    if (!t.r.has_outputs()) {
      out.runs = out.whole_runs = back->runs.moved;
      out.slice = out.gradients.slice;
    }
  }
  const std::size_t of_faults = t.r.has_outputs() ? fault_tests(t) : 0;
  const std::size_t tests = runs.outputs.statistics.size() + runs.stages.rms.size() + runs.stages.bias.size() + of_faults;
  runs.alarm = {t.options.judge.own_false_alarm(), std::max<std::size_t>(1, tests + out.gradients.tests)};
  out.tests = runs.alarm.statistics;
  out.argument = budget_argument(runs.alarm);
  return runs;
}

void judge_runs(const trial& t, const std::optional<gradient_trial>& back, const emulated_runs& runs, overflow_question& overflow,
                plan_report& out) {
  const auto limits = limits_beside_truth(runs.outputs.statistics, runs.outputs.places, of_each_variant(runs.alarm, t.kinds));
  const auto of_gradients =
      back ? gradient_limits(runs.gradients, of_each_variant(runs.alarm, back->kinds)) : std::vector<threshold>{};
  judge_statistics(runs.outputs, limits, out);
  const std::size_t first_gradient = out.statistics.size();
  if (back) judge_gradient_statistics(runs.gradients, of_gradients, out);
  if (runs.has_stages) {
    begins(t, "stages of the result");
    judge_stage_list(t, runs.roundings, runs.stages, runs.alarm, overflow, out);
  }
  if (back && !t.stopped()) judge_backward_stages(*back, out);
  if (t.options.judge.power) {
    begins(t, "runs without planted faults");
    const fault_draws draws = t.r.has_outputs() ? draw_faults(t, runs.outputs, limits) : fault_draws{};
    const fault_draws backward = back ? draw_gradient_faults(*back, runs.gradients, of_gradients) : fault_draws{};
    if (!t.stopped() && t.r.has_outputs()) judge_faults(draws, runs.alarm, out);
    if (!t.stopped() && back) judge_faults(backward, runs.alarm, out);
  }
  begins(t, "adequacy");
  out.adequacy = judge_adequacy(t, runs.outputs, limits);
  if (back && !t.stopped()) judge_gradient_adequacy(*back, runs.gradients, out.adequacy);
  const bool wants_faults = t.options.judge.power && (t.r.has_outputs() || back);
  out.stopped = (!out.adequacy.judged && out.adequacy.reason.empty()) || (wants_faults && !out.power.ran);
  find_first_bad(t, out);
  order_suspects(out);
  std::string says_nothing =
      t.r.has_outputs() ? judge_reach(t, runs.outputs, runs.has_stages ? &runs.roundings : nullptr, out) : std::string();
  if (back) {
    const std::string backward = judge_gradient_reach(*back, runs.gradients, first_gradient, out);
    if (says_nothing.empty()) says_nothing = backward;
  }
  conclude(t, says_nothing, out);
}

}  // namespace

std::shared_ptr<referee_memory> make_referee_memory() { return std::make_shared<referee_memory>(); }

verdict combined(const plan_report& report) {
  if (!report.adequacy.adequate || report.conforms == verdict::refuted) return verdict::refuted;
  return report.conforms;
}

plan_report judge_plan(const problem& p, const result& r, const plan& declared, const reference& truth,
                       const std::vector<bool>& skip_o, const std::vector<bool>& skip_state, const referee_options& options,
                       const std::optional<gradient_reference>& gradients, const overflow_places* known_overflow) {
  require_valid(options.judge, options.threads);
  const path_kind path = path_of(r);
  const std::size_t chunk = path == path_kind::chunk ? r.chunk_size.value_or(0) : 0;
  std::vector<plan_variant> arithmetics = variants(declared, p, path, chunk);
  store_o_as_found(arithmetics, r.o);
  const std::optional<result> own = path == path_kind::chunk ? as_the_plan_stores(r, arithmetics.front()) : std::nullopt;
  trial t{p,
          own ? *own : r,
          declared,
          truth,
          options,
          path,
          chunk,
          arithmetics,
          lanes_of(p, r, skip_o, skip_state),
          unit_of(arithmetics.front(), p.num_householder),
          {},
          kinds_of(arithmetics, p),
          {},
          {}};
  overflow_question overflow(p, t.r, declared, options, known_overflow);
  leave_out_overflowed(t, overflow);
  std::optional<gradient_trial> back = gradients ? gradient_trial_of(t, *gradients) : std::nullopt;
  if (back) leave_out_overflowed_gradients(*back, overflow);
  plan_report out;
  out.plan = declared.name;
  out.gradients.stated = declared.backward.stated;
  out.false_alarm = options.judge.own_false_alarm();
  for (const plan_variant& v : t.variants) out.variants.push_back(v.name);
  plan_runs(t, !back);
  out.slice = slice_text(t);
  const emulated_runs runs = emulate_runs(t, back, overflow, out);
  if (!t.stopped()) {
    judge_runs(t, back, runs, overflow, out);
    return out;
  }
  out.stopped = true;
  out.conforms = verdict::undecided;
  out.reason = "the check was stopped before the result could be compared with emulated runs of the plan";
  return out;
}

}  // namespace deltaproof
