// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT

#include "deltaproof/check/check.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>

#include "check/check_parts.hpp"
#include "deltaproof/oracle/gradients.hpp"
#include "support/text.hpp"

namespace deltaproof {

using check_detail::judge_gradient_coverage;
using check_detail::judged_gradients;
using check_detail::locate;
using check_detail::note_missing_gradients;
using check_detail::overflow_of_plans;
using check_detail::pairing;
using check_detail::place;

namespace {

std::size_t token_along_t(const problem& p, const divergence& d) { return sequence_at(p, d.sequence).first_token + d.token; }

}  // namespace

element_location check_detail::locate(const problem& p, bool is_state, const element_error& e) {
  const std::size_t heads = p.value_heads(), cols = p.value_dim();
  element_location at;
  at.got = e.got;
  at.want = e.want;
  std::size_t rest = e.index;
  const std::size_t v = rest % cols;
  rest /= cols;
  if (is_state) {
    const std::size_t k = rest % p.key_dim();
    rest /= p.key_dim();
    at.element = {k, v};
    at.head = rest % heads;
    at.sequence = rest / heads;
    at.batch = sequence_at(p, at.sequence).batch;
    return at;
  }
  at.element = {v};
  at.head = rest % heads;
  rest /= heads;
  at.token = rest % p.tokens();
  at.batch = rest / p.tokens();
  const auto sequences = p.sequences();
  for (std::size_t s = 0; s < sequences.size(); ++s) {
    const auto& range = sequences[s];
    if (range.batch == at.batch && *at.token >= range.first_token && *at.token < range.first_token + range.tokens) {
      at.sequence = s;
      at.token_in_sequence = *at.token - range.first_token;
    }
  }
  return at;
}

std::string check_detail::place(const std::string& tensor, const element_location& at) {
  std::string text = "sequence " + std::to_string(at.sequence) + ", " + detail::head_text(tensor, at.head);
  if (at.token) text += ", token " + std::to_string(at.token_in_sequence.value_or(*at.token));
  if (!at.element.empty()) text += ", element ";
  for (std::size_t i = 0; i < at.element.size(); ++i) text += (i ? "," : "") + std::to_string(at.element[i]);
  return text;
}

namespace {

std::string digits(double x) { return detail::general(x, 6); }

/// The bound that decides `judged`, or that comes closest to deciding otherwise.
std::string decisive_bound(const tensor_report& t) {
  for (const metric_bound& b : t.bounds) {
    if (judge_interval(value_of(t.errors, b.which), b.limit) != t.judged) continue;
    return t.name + " " + std::string(name_of(b.which)) + " " + digits(value_of(t.errors, b.which).value) +
           (t.judged == verdict::refuted     ? " is above "
            : t.judged == verdict::undecided ? " is known too imprecisely to compare with "
                                             : " is within ") +
           digits(b.limit.value) + " (" + b.limit.provenance.text() + ")";
  }
  return t.name;
}

std::string reason_for(const check_report& c) {
  if (c.stopped) return "the check was stopped before the reference was complete";
  for (const tensor_report& t : c.tensors) {
    if (t.judged != c.judged) continue;
    if (t.first_nonfinite) {
      // A reference whose radius is as large as its value does not know the value.
      const bool known = t.first_nonfinite->radius == 0 || t.first_nonfinite->radius < std::fabs(t.first_nonfinite->want);
      return t.name + " is " + digits(t.first_nonfinite->got) + " at " + place(t.name, *t.first_nonfinite) +
             " where the exact value is " +
             (known ? digits(t.first_nonfinite->want)
                    : "within " + digits(t.first_nonfinite->radius) + " of " + digits(t.first_nonfinite->want)) +
             "; " + detail::counted(t.errors.nonfinite, "such element");
    }
    if (t.first_beyond_range) {
      return t.name + " is " + digits(t.first_beyond_range->got) + " at " + place(t.name, *t.first_beyond_range) +
             " where the exact value is " + digits(t.first_beyond_range->want) + ", more than twice the largest number of " +
             t.dtype + ": infinity, NaN or that largest number was expected; " + detail::counted(t.beyond_range, "such element");
    }
    if (c.judged == verdict::vacuous && t.bounds_are_blind) {
      const metric_bound& b = t.bounds.front();
      return "the limits on " + t.name + " are too wide: zeros in every element would pass them too; the first is " +
             std::string(name_of(b.which)) + " " + digits(b.limit.value) + " (" + b.limit.provenance.text() + ")";
    }
    if (c.judged == verdict::vacuous && t.errors.skipped == 0) return "no element could be judged: " + t.name + " is empty";
    if (c.judged == verdict::vacuous && t.coverage.overflowed_sums > 0)
      return "no element of " + t.name + " could be judged: " + std::to_string(t.coverage.overflowed_sums) + " of " +
             std::to_string(t.coverage.elements) + " are " + std::string(check_detail::not_finite_by_sums) +
             (t.errors.skipped > t.coverage.overflowed_sums ? "; for the others, " + check_detail::range_is_left(t.name) : "");
    if (c.judged == verdict::vacuous)
      return "no element of " + t.name + " could be judged: for each of them, " + check_detail::range_is_left(t.name);
    if (c.judged == verdict::measured) return "no limit was given, so errors are measured and not judged";
    if (t.errors.unknown > 0) {
      return "the reference has no error bound for " + std::to_string(t.errors.unknown) + " elements of " + t.name +
             ": numbers of the recurrence leave the range of fp64 there, so it is not known whether the recurrence diverges";
    }
    if (t.bounds.empty() && check_detail::no_digit_known(t.errors)) {
      return "the reference is too imprecise to measure " + t.name + ": with radii of up to " + digits(t.errors.radius) +
             " the relative error of " + t.name + " lies between " + digits(t.errors.rel_fro.lower) + " and " +
             digits(t.errors.rel_fro.upper);
    }
    return decisive_bound(t);
  }
  return "";
}

/// Relative radius that is small beside one rounding of the finest result tensor.
double first_radius(const result& r) {
  int precision = r.o.element_format().precision;
  if (r.final_state) precision = std::max(precision, r.final_state->element_format().precision);
  return std::ldexp(1.0, -precision - 4);
}

}  // namespace

std::vector<plan> plans_of(const result& r, const problem& p, std::string_view naming, std::string_view without) {
  std::vector<plan> out;
  const bool gradients_alone = !r.has_outputs() && !r.gradients.empty();
  for (const plan* fits : plans_for_kernel(r.kernel, p, path_of(r))) {
    if (!gradients_alone || fits->backward.stated) out.push_back(*fits);
  }
  // Without a plan that says what a backward pass may cost, gradients are measured.
  if (!out.empty() || gradients_alone) return out;
  std::string candidates;
  for (const plan* fits : candidate_plans(p, path_of(r))) candidates += (candidates.empty() ? "" : ", ") + fits->name;
  const std::string which = std::string(name_of(p.op)) + " on the " + std::string(name_of(r.path.value_or(path_of(r)))) +
                            " path in " + std::string(name_of(p.q.element_format()));
  throw format_error((r.kernel.empty() ? "the result states no kernel, so no preset can be chosen for " + which
                                       : "no preset lists the kernel " + in_quotes(r.kernel) + " for " + which) +
                     "; name a plan with " + std::string(naming) + " (candidates: " + (candidates.empty() ? "none" : candidates) +
                     "), " + std::string(without));
}

namespace {

/// The plan the kernel keeps, or the one that says most about why it keeps none.
void judge_plans(const problem& p, const result& r, const reference& ref, const std::vector<pairing>& pairs,
                 const judged_gradients& gradients, const overflow_of_plans& overflow, const check_options& options,
                 check_report& out) {
  const referee_options referee{options.judge, options.threads, options.stop, options.progress, options.memory};
  const std::vector<bool> none, &skip_o = pairs.empty() ? none : pairs[0].skip,
                                &skip_state = pairs.size() > 1 ? pairs[1].skip : none;
  std::optional<gradient_reference> exact;
  if (!gradients.tensors.empty() && !gradients.stopped) exact.emplace(gradient_reference{gradients.exact, gradients.skip});
  std::vector<plan_report> reports;
  for (std::size_t i = 0; i < options.plans.size(); ++i) {
    reports.push_back(judge_plan(p, r, options.plans[i], ref, skip_o, skip_state, referee, exact, overflow.known(i)));
    if (combined(reports.back()) == verdict::holds) break;
  }
  const auto broken = [](const plan_report& x) {
    return std::any_of(x.adequacy.ranges.begin(), x.adequacy.ranges.end(),
                       [](const range_report& range) { return range.violated; });
  };
  auto chosen = std::find_if(reports.begin(), reports.end(), [](const plan_report& x) { return combined(x) == verdict::holds; });
  if (chosen == reports.end())
    chosen = std::find_if(reports.begin(), reports.end(),
                          [](const plan_report& x) { return x.stopped && combined(x) != verdict::refuted; });
  // The plans are alternatives: one that does not refute the kernel speaks for it.
  if (chosen == reports.end())
    chosen = std::find_if(reports.begin(), reports.end(), [](const plan_report& x) { return combined(x) != verdict::refuted; });
  // Then one that the kernel conforms to on inputs that the plan cannot work on; of the others, one that could work.
  if (chosen == reports.end())
    chosen = std::find_if(reports.begin(), reports.end(),
                          [&](const plan_report& x) { return broken(x) && x.conforms != verdict::refuted; });
  if (chosen == reports.end()) chosen = std::find_if_not(reports.begin(), reports.end(), broken);
  if (chosen == reports.end()) chosen = reports.begin();
  for (auto other = reports.begin(); other != reports.end(); ++other) {
    if (other == chosen) continue;
    const bool plan_alone = other->conforms != verdict::refuted && !other->adequacy.adequate;
    out.other_plans.push_back(other->plan + ": " + std::string(name_of(combined(*other))) + ": " +
                              (plan_alone ? other->adequacy.reason : other->reason));
  }
  out.conformance = std::move(*chosen);
}

question question_of(const result& r, const check_options& options) {
  question ask;
  ask.relative_radius = first_radius(r);
  ask.range.output = largest(r.o.element_format());
  // The state lives in fp32 unless the result says wider.
  ask.range.state = largest(r.final_state && r.final_state->element_format() == fp64 ? fp64 : fp32);
  ask.max_bits = options.judge.max_bits;
  ask.threads = options.threads;
  ask.stop = options.stop;
  if (options.progress) {
    ask.progress = [&](std::size_t done, std::size_t all) {
      options.progress("reference", static_cast<double>(done) / static_cast<double>(all));
    };
  }
  return ask;
}

tensor_report report_of(const problem& p, const pairing& pair, const reference& ref, const std::vector<tensor_bound>& bounds) {
  const bool is_state = pair.name == "final_state";
  tensor_report t;
  t.name = pair.name;
  t.dtype = pair.stored->dtype();
  t.shape = pair.stored->shape();
  for (const tensor_bound& b : bounds) {
    if (b.tensor.empty() || b.tensor == t.name) t.bounds.push_back(b.limit);
  }
  const std::vector<bool> skip = check_detail::either(pair.skip, pair.overflowed);
  t.errors = measure(pair.got, is_state ? ref.final_state : ref.o, pair.stored->element_format(), skip);
  t.judged = judge(t.errors, t.bounds);
  if (t.judged == verdict::measured && check_detail::is_imprecise(t.errors, pair.stored->element_format()))
    t.judged = verdict::undecided;
  if (t.judged == verdict::holds && !t.bounds.empty()) {
    // A bound says something where zeros in the place of these values would not keep it.
    const std::vector<double> nothing(pair.got.size(), 0.0);
    const measurement zeros = measure(nothing, is_state ? ref.final_state : ref.o, pair.stored->element_format(), skip);
    t.bounds_are_blind = std::none_of(t.bounds.begin(), t.bounds.end(),
                                      [&](const metric_bound& b) { return value_of(zeros, b.which).lower > b.limit.value; });
    if (t.bounds_are_blind) t.judged = verdict::vacuous;
    t.exact_is_zero = zeros.max_abs.upper == 0;
  }
  t.coverage.overflowed_sums = static_cast<std::size_t>(std::count(pair.overflowed.begin(), pair.overflowed.end(), true));
  if (t.errors.worst) t.worst = locate(p, is_state, *t.errors.worst);
  if (t.errors.first_nonfinite) {
    t.first_nonfinite = locate(p, is_state, *t.errors.first_nonfinite);
    t.first_nonfinite->radius = (is_state ? ref.final_state : ref.o).radius[t.errors.first_nonfinite->index];
  }
  return t;
}

/// A tensor with nothing left to judge says nothing beside one that was judged, unless a budget names it. One that zeros would
/// pass for does, unless its exact values are zeros.
verdict verdict_of(const std::vector<tensor_report>& tensors, const std::vector<tensor_bound>& bounds) {
  std::optional<verdict> judged;
  for (const tensor_report& t : tensors) {
    const bool named = std::any_of(bounds.begin(), bounds.end(), [&](const tensor_bound& b) { return b.tensor == t.name; });
    const bool zeros_pass = t.bounds_are_blind && (t.name == "o" || !t.exact_is_zero);
    const bool no_outputs = t.name == "o" && t.errors.elements + t.errors.skipped == 0;
    if (t.judged != verdict::vacuous || named || zeros_pass || no_outputs)
      judged = judged ? combine(*judged, t.judged) : t.judged;
  }
  return judged.value_or(verdict::vacuous);
}

/// Whether a tier has all the bits that may be asked for.
bool is_finest(std::string_view tier, int max_bits) {
  const std::size_t dash = tier.rfind('-');
  int bits = 0;
  if (dash != std::string_view::npos) std::from_chars(tier.data() + dash + 1, tier.data() + tier.size(), bits);
  return bits >= max_bits;
}

/// Asks for a smaller radius until every tensor is decided or the last tier has answered.
reference compare(const problem& p, const result& r, std::vector<pairing>& pairs, const check_options& options,
                  overflow_of_plans& overflow, check_report& out) {
  question ask = question_of(r, options);
  for (;;) {
    reference ref = options.solver ? options.solver(p, ask) : solve(p, ask);
    out.tensors.clear();
    out.tiers = ref.tiers;
    out.stopped = ref.stopped;
    check_detail::mark_skipped(p, r, ref, pairs[0], pairs.size() > 1 ? &pairs[1] : nullptr);
    for (pairing& pair : pairs) {
      if (!out.stopped) pair.overflowed = overflow.excused(pair.name, pair.got, pair.skip);
      out.tensors.push_back(report_of(p, pair, ref, options.judge.bounds));
    }
    out.judged = out.stopped ? verdict::undecided : verdict_of(out.tensors, options.judge.bounds);
    const bool finest = std::all_of(ref.tiers.begin(), ref.tiers.end(), [&](const auto& tier) {
      return tier.first == "exact" || is_finest(tier.first, options.judge.max_bits);
    });
    if (out.stopped || out.judged != verdict::undecided || finest ||
        ask.relative_radius < std::ldexp(1.0, -options.judge.max_bits))
      return ref;
    ask.relative_radius *= 0x1p-60;
  }
}

std::optional<divergence_report> first_divergence(const problem& p, const reference& ref, std::size_t skipped) {
  if (ref.divergences.empty()) return std::nullopt;
  divergence_report d;
  d.first = *std::min_element(ref.divergences.begin(), ref.divergences.end(),
                              [](const divergence& a, const divergence& b) { return a.token < b.token; });
  d.token = token_along_t(p, d.first);
  d.heads = ref.divergences.size();
  d.skipped = skipped;
  return d;
}

/// The errors of o as FlashAttention's and Attention-Gym's rules see them.
void compare_with_eager(const problem& p, const reference& ref, const std::vector<bool>& skip, unsigned threads,
                        check_report& out) {
  const auto& errors = out.tensors[0].errors;
  const eager_errors eager = measure_eager(p, ref.o, skip, threads);
  const auto factor = [&](double eager_error) -> std::optional<double> {
    if (!(eager_error > 0) || std::isinf(eager_error) || errors.nonfinite > 0) return std::nullopt;
    return errors.max_abs.value / eager_error;
  };
  out.flash_attention_factor = factor(eager.same_format_state);
  out.attention_gym_factor = factor(eager.fp32_state);
}

/// Joins the plan's verdict to that of the errors alone.
void join_plan(check_report& out) {
  const plan_report& plan = *out.conformance;
  // Bounds that zeros would keep say nothing; limits of a plan beside them may.
  const bool blind = out.judged == verdict::vacuous &&
                     std::all_of(out.tensors.begin(), out.tensors.end(),
                                 [](const tensor_report& t) { return t.judged != verdict::vacuous || t.bounds_are_blind; });
  const verdict alone = out.judged == verdict::measured || blind ? verdict::holds : out.judged;
  const bool nonfinite =
      alone == verdict::refuted && std::any_of(out.tensors.begin(), out.tensors.end(), [](const tensor_report& t) {
        return t.first_nonfinite.has_value() || t.first_beyond_range.has_value();
      });
  out.judged = combine(alone, combined(plan));
  if (!plan.adequacy.adequate) {
    out.reason = (plan.conforms == verdict::holds
                      ? "the kernel conforms to its plan " + plan.plan + ", but the plan is not adequate on these inputs: "
                      : "the plan " + plan.plan + " is not adequate on these inputs: ") +
                 plan.adequacy.reason +
                 (plan.conforms == verdict::refuted ? "; and the kernel does not conform to it: " + plan.reason : "") +
                 (nonfinite ? "; " + out.reason : "");
  } else if (nonfinite) {
    const bool earlier = plan.conforms == verdict::refuted && !plan.first_bad_stage.empty() && plan.first_bad_stage != "o";
    out.reason += earlier ? "; first bad: " + plan.reason : "";
  } else if (alone == verdict::holds || combined(plan) == verdict::refuted) {
    out.reason = plan.reason;
  }
}

constexpr const char* stopped_in_gradients = "the check was stopped before the exact gradients were computed";

/// What the errors of the gradients say beside those of the outputs, and of a plan.
void add_gradients(judged_gradients& gradients, check_report& out) {
  if (gradients.stopped) {
    out.stopped = true;
    out.judged = combine(out.judged, verdict::undecided);
    if (out.judged == verdict::undecided) out.reason = stopped_in_gradients;
    return;
  }
  out.gradients_diverge = std::move(gradients.divergences);
  check_report alone;
  alone.tensors = std::move(gradients.tensors);
  std::optional<verdict> judged;
  for (const tensor_report& t : alone.tensors) {
    if (t.judged != verdict::vacuous || !t.bounds.empty()) judged = judged ? combine(*judged, t.judged) : t.judged;
  }
  const bool not_finite = std::any_of(alone.tensors.begin(), alone.tensors.end(),
                                      [](const tensor_report& t) { return t.first_nonfinite.has_value(); });
  const bool of_gradients = out.conformance && out.conformance->first_bad_stage.starts_with('d');
  if (judged && (combine(out.judged, *judged) != out.judged || (not_finite && of_gradients))) {
    alone.judged = *judged;
    out.judged = combine(out.judged, *judged);
    out.reason = reason_for(alone);
  }
  for (tensor_report& t : alone.tensors) out.tensors.push_back(std::move(t));
}

check_report judge_gradients_alone(const problem& p, const result& r, const check_options& options) {
  for (const plan& one : options.plans) {
    if (one.backward.stated) continue;
    throw domain_error(
        "check: the result holds only gradients, and plan " + one.name +
        " has no [backward] section to judge them by; judge by a plan that has one, or by none (--no-plan; in a suite no_plan = "
        "true)");
  }
  if (!p.has_cotangents()) {
    throw domain_error(
        "check: the result holds only gradients, and the problem has neither do nor dfinal_state; record in the problem the do "
        "or dfinal_state that the backward pass was given");
  }
  check_report out;
  out.preconditions = inspect(p);
  overflow_of_plans overflow(p, r, options);
  judged_gradients gradients = check_detail::judge_gradients(p, r, options, overflow);
  out.tensors = gradients.tensors;
  out.gradients_diverge = gradients.divergences;
  out.stopped = gradients.stopped;
  out.judged = out.stopped ? verdict::undecided : verdict_of(out.tensors, options.judge.bounds);
  out.reason = out.stopped ? stopped_in_gradients : reason_for(out);
  if (!options.plans.empty() && !out.stopped) {
    judge_plans(p, r, {}, {check_detail::outputs_in_range(p, r, gradients.divergences)}, gradients, overflow, options, out);
    join_plan(out);
    out.stopped = out.conformance->stopped;
    judge_gradient_coverage(out);
  }
  note_missing_gradients(p, r, out);
  out.remedy = check_detail::remedy_for(out, options.judge.max_bits);
  return out;
}

/// As --strict-padding asks.
void refute_unread(check_report& out) {
  if (out.unread.empty()) return;
  const std::string text = check_detail::describe(out.unread.front()) + "; --strict-padding requires zeros there";
  out.reason = out.judged == verdict::refuted ? out.reason + "; " + text : text;
  out.judged = verdict::refuted;
}

}  // namespace

check_report check(const problem& p, const result& r, const check_options& options) {
  require_valid(options.judge, options.threads);
  return check_detail::judge(p, r, options);
}

check_report check_detail::judge(const problem& p, const result& r, const check_options& options) {
  if (path_of(r) == path_kind::chunk && r.chunk_size == std::size_t{0})
    throw domain_error("check: the result's chunk_size is 0; it must be at least 1 row of k");
  for (const tensor_bound& b : options.judge.bounds) {
    if (b.tensor.empty()) continue;
    const std::string given = "check: an error limit on " + b.tensor + " is given, but ";
    const bool held = b.tensor == "o"             ? r.has_outputs()
                      : b.tensor == "final_state" ? r.final_state.has_value()
                                                  : r.gradients.contains(b.tensor);
    if (!held) throw domain_error(given + "the result does not hold " + b.tensor + "; drop the limit or record " + b.tensor);
    if (b.tensor.starts_with('d') && !p.has_cotangents())
      throw domain_error(
          given + "the problem has neither do nor dfinal_state; record the do or dfinal_state that the backward pass was given");
  }
  if (!r.has_outputs()) return judge_gradients_alone(p, r, options);
  check_report out;
  out.preconditions = inspect(p);
  std::vector<pairing> pairs;
  pairs.push_back({"o", &r.o, r.o.to_doubles(), {}});
  if (r.final_state) pairs.push_back({"final_state", &*r.final_state, r.final_state_kv()->to_doubles(), {}});
  overflow_of_plans overflow(p, r, options);
  const reference ref = compare(p, r, pairs, options, overflow, out);
  const auto& errors = out.tensors[0].errors;
  if (!out.stopped) refute_finite_beyond_range(p, ref, pairs, options, out);

  out.diverges = first_divergence(p, ref, static_cast<std::size_t>(std::count(pairs[0].skip.begin(), pairs[0].skip.end(), true)));
  if (!out.stopped && errors.elements > 0)
    compare_with_eager(p, ref, check_detail::either(pairs[0].skip, pairs[0].overflowed), options.threads, out);
  out.reason = reason_for(out);
  const bool known = std::any_of(out.tensors.begin(), out.tensors.end(),
                                 [](const tensor_report& t) { return t.errors.elements > t.errors.unknown; });
  judged_gradients gradients = out.stopped ? judged_gradients{} : check_detail::judge_gradients(p, r, options, overflow);
  if (!options.plans.empty() && !out.stopped && known) {
    judge_plans(p, r, ref, pairs, gradients, overflow, options, out);
    join_plan(out);
    out.stopped = out.conformance->stopped;
  }
  count_coverage(pairs, out);
  judge_coverage(out);
  if (!out.stopped || gradients.stopped) add_gradients(gradients, out);
  judge_gradient_coverage(out);
  note_missing_gradients(p, r, out);
  out.unread = find_unread(p, r);
  if (options.judge.strict_padding) refute_unread(out);
  out.remedy = check_detail::remedy_for(out, options.judge.max_bits);
  return out;
}

}  // namespace deltaproof
