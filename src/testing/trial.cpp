// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
#include "deltaproof/testing/trial.hpp"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <map>
#include <utility>

#include "deltaproof/check/request.hpp"
#include "deltaproof/files/text_hash.hpp"
#include "deltaproof/oracle/measure.hpp"
#include "deltaproof/oracle/reference.hpp"

namespace deltaproof::testing {
namespace {

trial_answer checked(const problem& p, const result& r, const trial_options& options, check_request asked) {
  const std::vector<tensor_bound> bounds = std::exchange(asked.judge, options.judge).bounds;
  asked.judge.bounds.insert(asked.judge.bounds.end(), bounds.begin(), bounds.end());
  asked.threads = options.threads;
  asked.witness = options.witness.value_or("");
  asked.replace_witness = true;
  check_identity identity;
  identity.problem_sha256 = sha256_hex(problem_bytes(p));
  identity.result_sha256 = sha256_hex(result_bytes(r));
  const answered_check answered = answer(p, r, asked, std::move(identity));
  trial_answer out;
  out.judged = answered.report.judged;
  out.reason = answered.report.reason;
  out.text = to_text(answered.report, answered.identity);
  if (!answered.witness_says.empty()) out.witness = asked.witness.string();
  return out;
}

std::string exactly(double x) {
  char text[64];
  std::snprintf(text, sizeof text, "%.9g (%a)", x, x);
  return text;
}

/// How the elements of one tensor compare with the exact ones, rounded.
struct rounding_count {
  std::string line;
  std::size_t wrong = 0;
  std::size_t undecided = 0;
  std::size_t telling = 0;  ///< elements of which something else than 0 was due
};

rounding_count compared(const tensor& got, const reference_tensor& want, const char* axes) {
  rounding_count out;
  const format& to = got.element_format();
  double worst = 0;
  std::size_t endless = 0;  // wrong, and not finite
  std::string first;
  for (std::size_t i = 0; i < want.value.size(); ++i) {
    const std::optional<double> due = decided_rounding(want, i, to);
    if (!due) {
      ++out.undecided;
      continue;
    }
    const double value = got.at(i);
    out.telling += *due != 0 ? 1 : 0;
    if (value == *due) continue;
    ++out.wrong;
    if (std::isfinite(value))
      worst = std::max(worst, std::abs(value - *due) / ulp_at(*due, to));
    else
      ++endless;
    if (!first.empty()) continue;
    std::vector<std::size_t> index(want.shape.size());
    for (std::size_t axis = index.size(), flat = i; axis-- > 0; flat /= want.shape[axis]) index[axis] = flat % want.shape[axis];
    first = "; the first at " + std::string(axes) + " = " + shape_text(index) + ": " + exactly(value) + " where " +
            exactly(*due) + " was expected";
  }
  char text[64] = "";
  if (out.wrong > endless) std::snprintf(text, sizeof text, ", %sby at most %.3g ulps", endless > 0 ? "the others " : "", worst);
  const std::string lost = endless > 0 ? ", " + std::to_string(endless) + " of them not finite" : "";
  out.line = std::to_string(out.wrong) + " of " + std::to_string(want.value.size()) +
             " elements differ from the exact value rounded to " + got.dtype() + lost + text + first +
             (out.undecided > 0 ? "; for " + std::to_string(out.undecided) +
                                      " elements the radius of the reference is too wide to decide the rounding"
                                : "");
  return out;
}

trial_answer rounded_correctly(const problem& p, const result& r, const trial_options& options) {
  require_valid(options.judge, options.threads);
  question ask;
  ask.round_output = r.o.element_format();
  if (r.final_state) ask.round_state = r.final_state->element_format();
  ask.max_bits = options.judge.max_bits;
  ask.threads = options.threads;
  const reference truth = solve(p, ask);
  const auto line = [](std::string label, const std::string& text) {
    label.resize(13, ' ');
    return label + text + "\n";
  };
  std::vector<std::pair<std::string, rounding_count>> found{{"o", compared(r.o, truth.o, "[batch, token, head, v]")}};
  if (const std::optional<tensor> state = r.final_state_kv()) {
    found.emplace_back("final_state", compared(*state, truth.final_state, "[sequence, head, k, v]"));
  }
  trial_answer out;
  out.judged = verdict::holds;
  std::string body;
  for (const auto& [name, count] : found) {
    const bool says_nothing = name == "o" && count.telling == 0;
    const verdict one = count.wrong > 0       ? verdict::refuted
                        : count.undecided > 0 ? verdict::undecided
                        : says_nothing        ? verdict::vacuous
                                              : verdict::holds;
    if (one != verdict::holds && (out.reason.empty() || combine(out.judged, one) != out.judged)) {
      out.reason = one == verdict::vacuous
                       ? "every exact value of o is 0 or rounds to 0: a kernel that writes only zeros would pass"
                       : name + ": " + count.line;
    }
    out.judged = combine(out.judged, one);
    body += line(name, count.line);
  }
  if (out.reason.empty()) out.reason = "every element is the exact value, rounded once to nearest even";
  std::string tiers;
  for (const auto& [name, heads] : truth.tiers)
    tiers += (tiers.empty() ? "" : ", ") + name + " for " + std::to_string(heads) + (heads == 1 ? " head" : " heads");
  out.text = line("verdict", std::string(name_of(out.judged)) + ": " + out.reason) + line("kernel", description(r)) + body +
             line("reference", tiers);
  const std::string format(name_of(*ask.round_output));
  const std::string state = r.final_state ? std::string(name_of(r.final_state->element_format())) : format;
  out.text +=
      line("again", "deltaproof::record(\"case\", problem, result); then deltaproof oracle case.problem.safetensors --round " +
                        format + " -o true.safetensors writes the expected " +
                        (state == format ? "values" : "o (for final_state give --round " + state + ")"));
  return out;
}

bool is_among(const std::vector<verdict>& words, verdict one) {
  return std::find(words.begin(), words.end(), one) != words.end();
}

}  // namespace

trial::trial(problem p, trial_options options, std::string expects, std::string negated,
             std::function<trial_answer(const problem&, const result&, const trial_options&)> judge)
    : given_(std::move(p)),
      options_(std::move(options)),
      expects_(std::move(expects)),
      negated_(std::move(negated)),
      judge_(std::move(judge)) {
  validate(given_, "problem of a trial");
}

const trial_answer& trial::operator()(const result& got, const std::filesystem::path& usual_witness) {
  validate(got, given_, "result");
  const std::string hash = sha256_hex(result_bytes(got));
  if (hash == last_) return last_answer_;
  trial_options options = options_;
  if (!options.witness) options.witness = usual_witness;
  last_answer_ = judge_(given_, got, options);
  last_answer_.accepted = is_among(options.accept, last_answer_.judged);
  last_ = hash;
  return last_answer_;
}

trial plan_trial(problem p, std::string plan, trial_options options) {
  const std::string what = (plan.empty() ? "the plan of its kernel" : "the plan " + plan) + " on " + description(p);
  return {std::move(p), std::move(options), "conforms to " + what, "does not conform to " + what,
          [plan = std::move(plan)](const problem& given, const result& got, const trial_options& how) {
            check_request asked;
            asked.plan = plan;
            return checked(given, got, how, std::move(asked));
          }};
}

trial bound_trial(problem p, std::string_view limit, const because& reason, trial_options options) {
  const tensor_bound bound = parse_tensor_bound(limit, reason);
  const std::string what = "within " + std::string(limit) + " (" + reason.text() + ") on " + description(p);
  return {std::move(p), std::move(options), "is " + what, "is not " + what,
          [bound](const problem& given, const result& got, const trial_options& how) {
            check_request asked;
            asked.judge.bounds = {bound};
            asked.no_plan = true;
            return checked(given, got, how, std::move(asked));
          }};
}

trial rounding_trial(problem p, trial_options options) {
  const std::string what =
      " correctly rounded (each element is the exact value, rounded once to nearest even) on " + description(p);
  return {std::move(p), std::move(options), "is" + what, "is not" + what, rounded_correctly};
}

trial_answer against_plan(const problem& p, const result& r, const std::string& plan, const trial_options& options) {
  return plan_trial(p, plan, options)(r);
}

std::string description(const problem& p) {
  std::string out = (p.note.empty() ? std::string("a problem") : p.note) + ": " + std::string(name_of(p.op));
  const auto add = [&out](const char* name, std::size_t value) { out += std::string(", ") + name + " " + std::to_string(value); };
  add("B", p.batch());
  add("T", p.tokens());
  if (p.num_householder > 1) add("n", p.num_householder);
  add("H", p.key_heads());
  add("HV", p.value_heads());
  add("K", p.key_dim());
  add("V", p.value_dim());
  if (!p.cu_seqlens.empty()) add("sequences", p.sequence_count());
  return out + ", " + p.q.dtype();
}

std::string description(const result& r) {
  std::string out = r.kernel.empty() ? "result of a kernel without a name" : "result of " + r.kernel;
  if (r.path) out += " (" + std::string(name_of(*r.path)) + (r.chunk_size ? ", C " + std::to_string(*r.chunk_size) : "") + ")";
  out += ": o " + r.o.dtype() + " " + shape_text(r.o.shape());
  if (r.final_state) {
    out += ", final_state " + r.final_state->dtype() + " " + shape_text(r.final_state->shape()) +
           (r.state_layout == layout_kind::vk ? " as (V, K)" : "");
  }
  std::string stages;
  for (const std::string_view name : stage_names) {
    if (r.stages.contains(std::string(name))) stages += (stages.empty() ? "" : ", ") + std::string(name);
  }
  return out + (stages.empty() ? "" : ", stages " + stages);
}

}  // namespace deltaproof::testing
