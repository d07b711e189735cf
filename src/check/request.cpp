// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
#include "deltaproof/check/request.hpp"

#include <utility>

#include "deltaproof/plan/plan.hpp"

namespace deltaproof {
namespace {

check_options options_for(const problem& p, const result& r, const check_request& asked, const check_options& how) {
  if (!asked.plan.empty() && asked.no_plan) throw format_error("check: both a plan and no_plan are given; give one of them");
  check_options options = how;
  options.judge = asked.judge;
  options.threads = asked.threads;
  options.plans.clear();
  require_valid(options.judge, options.threads);
  if (!asked.plan.empty()) {
    options.plans.push_back(plan_named(asked.plan));
    require_fit(options.plans.back(), p, path_of(r), r.chunk_size.value_or(0));
  } else if (!asked.no_plan && (asked.judge.bounds.empty() || !plans_for_kernel(r.kernel, p, path_of(r)).empty())) {
    options.plans = plans_of(r, p);
  }
  return options;
}

check_record record_of(const check_options& options, const check_request& asked) {
  check_record out{asked.no_plan, asked.judge, {}};
  for (const plan& one : options.plans) out.plans.push_back(source_of(asked.plan.empty() ? one.name : asked.plan));
  return out;
}

void add_witness(answered_check& out, const problem& p, const result& r, const check_request& asked, check_options options,
                 const trial_progress& shrinking) {
  if (out.report.judged != verdict::refuted) {
    if (!asked.replace_witness)
      out.identity.notes.push_back("no witness is written: only a refuted result has one, and this verdict is " +
                                   std::string(name_of(out.report.judged)));
    return;
  }
  if (!r.has_outputs()) {
    out.identity.notes.push_back("no witness is written: a witness needs o, and the result holds only gradients");
    return;
  }
  const std::string folder = asked.witness.string(), again = "deltaproof replay " + shell_quoted(folder);
  options.progress = {};
  const small_failure kept = smallest_failure(p, r, out.report, options, 8, shrinking);
  try {
    write_witness(folder, kept, out.identity);
  } catch (const format_error& e) {
    // The verdict is worth more than its witness.
    out.witness_lost = e.what();
    out.identity.notes.push_back("no witness is written: " + out.witness_lost);
    return;
  }
  out.witness_says = kept.says;
  out.identity.notes.push_back("witness " + folder + ": " + kept.says + "; judge it again: " + again);
  if (out.identity.problem_path.empty() || out.identity.result_path.empty()) out.identity.reproduce = again;
}

}  // namespace

std::string_view library_version() { return DELTAPROOF_VERSION; }

std::string options_text(const check_request& asked) {
  return (asked.no_plan ? " --no-plan" : "") + (asked.plan.empty() ? "" : " --plan " + shell_quoted(asked.plan)) +
         options_text(asked.judge);
}

answered_check answer(const problem& p, const result& r, const check_request& asked, check_identity identity,
                      const check_options& how, const trial_progress& shrinking) {
  const check_options options = options_for(p, r, asked, how);
  if (!asked.witness.empty()) (asked.replace_witness ? require_witness_place : require_new_witness_place)(asked.witness);
  answered_check out;
  out.identity = std::move(identity);
  check_identity& self = out.identity;
  self.version = library_version();
  self.kernel = r.kernel;
  self.producer = r.producer;
  if (r.path) self.path = name_of(*r.path);
  if (self.reproduce.empty()) {
    self.reproduce =
        "deltaproof::record(\"case\", problem, result); then deltaproof check case.problem.safetensors case.result.safetensors" +
        options_text(asked);
  }
  self.record = record_of(options, asked);
  out.report = check(p, r, options);
  if (!asked.witness.empty()) add_witness(out, p, r, asked, options, shrinking);
  return out;
}

}  // namespace deltaproof
