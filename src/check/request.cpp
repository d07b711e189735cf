// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
#include "deltaproof/check/request.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>
#include <cmath>
#include <utility>

#include "deltaproof/plan/plan.hpp"

namespace deltaproof {
namespace {

std::string number_text(double x) {
  std::array<char, 32> text{};
  return {text.data(), std::to_chars(text.data(), text.data() + text.size(), x).ptr};
}

check_options options_for(const problem& p, const result& r, const check_request& asked, const check_options& how) {
  if (!asked.plan.empty() && asked.no_plan) throw format_error("check: a plan and no plan together; give one of them");
  check_options options = how;
  options.bounds = asked.bounds;
  options.max_bits = asked.max_bits;
  options.strict_padding = asked.strict_padding;
  options.threads = asked.threads;
  options.referee.false_alarm = asked.false_alarm;
  options.referee.accuracy = asked.accuracy;
  options.referee.power = asked.power;
  options.referee.seed = asked.seed;
  options.plans.clear();
  require_valid(options);
  if (!asked.plan.empty()) {
    options.plans.push_back(plan_named(asked.plan));
    require_fit(options.plans.back(), p, path_of(r), r.chunk_size.value_or(0));
  } else if (!asked.no_plan && (asked.bounds.empty() || !plans_for_kernel(r.kernel, p, path_of(r)).empty())) {
    options.plans = plans_of(r, p);
  }
  return options;
}

check_record record_of(const check_options& options, const check_request& asked) {
  check_record out;
  out.no_plan = asked.no_plan;
  out.power = asked.power;
  out.false_alarm = asked.false_alarm;
  out.seconds = options.referee.seconds;
  out.accuracy = asked.accuracy;
  out.seed = asked.seed;
  out.max_bits = asked.max_bits;
  out.strict_padding = asked.strict_padding;
  out.bounds = asked.bounds;
  for (const plan& one : options.plans) out.plans.push_back(source_of(asked.plan.empty() ? one.name : asked.plan));
  return out;
}

void add_witness(answered_check& out, const problem& p, const result& r, const check_request& asked, check_options options,
                 const trial_progress& shrinking) {
  if (out.report.judged != verdict::refuted) {
    out.identity.notes.push_back("no witness is written: the verdict is " + std::string(name_of(out.report.judged)));
    return;
  }
  if (!r.has_outputs()) {
    out.identity.notes.push_back("no witness is written: the result holds gradients alone");
    return;
  }
  const std::string folder = asked.witness.string(), again = "deltaproof replay " + shell_quoted(folder);
  options.progress = {};
  options.referee.progress = {};
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
  out.identity.notes.push_back("witness " + folder + ": " + kept.says + "; " + again);
  if (out.identity.problem_path.empty() || out.identity.result_path.empty()) out.identity.reproduce = again;
}

}  // namespace

std::string_view library_version() { return DELTAPROOF_VERSION; }

std::string options_text(const check_request& asked) {
  std::string out;
  const auto add = [&out](const char* option, const std::string& value) {
    out += std::string(" ") + option + " " + shell_quoted(value);
  };
  for (const tensor_bound& b : asked.bounds) {
    add("--max-error",
        (b.tensor.empty() ? "" : b.tensor + ":") + std::string(name_of(b.limit.which)) + "=" + number_text(b.limit.limit.value));
  }
  if (!asked.bounds.empty()) add("--because", asked.bounds.front().limit.limit.provenance.text());
  if (asked.no_plan) out += " --no-plan";
  if (!asked.plan.empty()) add("--plan", asked.plan);
  if (asked.false_alarm != 1e-4) add("--false-alarm", number_text(asked.false_alarm));
  if (asked.accuracy) add("--accuracy", number_text(*asked.accuracy));
  if (!asked.power) out += " --no-power";
  if (asked.max_bits != 1024) add("--max-bits", std::to_string(asked.max_bits));
  if (asked.strict_padding) out += " --strict-padding";
  if (asked.seed != 1) add("--seed", std::to_string(asked.seed));
  return out;
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

std::string shell_quoted(const std::string& word) {
  const auto plain = [](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) != 0 || std::string_view("._-/=:,+@%").find(c) != std::string_view::npos;
  };
  if (!word.empty() && std::all_of(word.begin(), word.end(), plain)) return word;
  std::string out = "'";
  for (const char c : word) out += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return out + "'";
}

}  // namespace deltaproof
