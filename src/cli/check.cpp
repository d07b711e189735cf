// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT

#include "cli/program.hpp"
#include "deltaproof/kernel/check.hpp"

namespace deltaproof::cli {
namespace {

struct check_arguments {
  std::string problem;
  std::string result;
  std::vector<std::string> limits;
  std::string reason;
  bool no_plan = false;
  std::string plan;
  double false_alarm = 1e-4;
  std::optional<double> accuracy;
  bool no_power = false;
  int max_bits = 1024;
};

std::string markdown(const check_report& report, const check_identity& identity) {
  return "## " + identity.result_path + ": " + std::string(name_of(report.judged)) + "\n\n```\n" + to_text(report, identity) + "```\n";
}

int run(const check_arguments& args, const common_options& common) {
  check_options options;
  if (!args.limits.empty() && args.reason.empty()) {
    throw format_error("check: --max-error needs --because TEXT: which theorem, measurement or agreement the limit comes from");
  }
  if (args.limits.empty() && !args.reason.empty()) throw format_error("check: --because without --max-error; there is no limit to give a reason for");
  for (const std::string& limit : args.limits) options.bounds.push_back(parse_tensor_bound(limit, because(args.reason)));
  options.max_bits = args.max_bits;
  options.threads = common.threads;
  options.stop = &stop_requested();

  check_identity identity;
  const safetensors_file problem_file = read_safetensors(args.problem);
  const problem p = parse_problem(problem_file, identity.notes);
  identity.problem_sha256 = sha256_hex(problem_file.bytes());
  const safetensors_file result_file = read_safetensors(args.result);
  const result r = parse_result(result_file, p, identity.problem_sha256, identity.notes);
  identity.result_sha256 = sha256_hex(result_file.bytes());
  identity.version = DELTAPROOF_VERSION;
  identity.problem_path = args.problem;
  identity.result_path = args.result;
  identity.kernel = r.kernel;
  identity.producer = r.producer;
  if (r.path) identity.path = name_of(*r.path);
  identity.reproduce = command_line(common);

  if (!args.plan.empty() && args.no_plan) throw format_error("check: --plan and --no-plan together; give one of them");
  if (!args.plan.empty()) {
    options.plans.push_back(plan_named(args.plan));
    require_fit(options.plans.back(), p, path_of(r), r.chunk_size.value_or(0));
  } else if (!args.no_plan) {
    const bool other_budget = !args.limits.empty();
    if (!other_budget || !plans_for_kernel(r.kernel, p, path_of(r)).empty()) options.plans = plans_of(r, p);
  }
  options.referee.false_alarm = args.false_alarm;
  options.referee.accuracy = args.accuracy;
  options.referee.power = !args.no_power;
  options.referee.seed = common.seed;

  check_report report;
  {
    progress_line line("reference");
    options.progress = [&line](std::size_t done, std::size_t all) { line.update(static_cast<double>(done) / static_cast<double>(all)); };
    options.referee.progress = [&line](const char* what, double done) {
      line.stage(what);
      line.update(done);
    };
    report = check(p, r, options);
  }
  output out{"check", to_text(report, identity), to_json(report, identity), markdown(report, identity), {}};
  for (const tensor_report& t : report.tensors) {
    const bool bad = exit_code(t.judged) != 0 && report.judged == t.judged;
    out.cases.push_back({args.result + ":" + t.name, bad ? std::string(name_of(t.judged)) + ": " + report.reason : "", out.text});
  }
  publish(common, out);
  return exit_code(report.judged);
}

}  // namespace

registered_verb add_check(CLI::App& app, common_options& common) {
  auto* command = app.add_subcommand("check", "Judge a kernel's result against its precision plan and the certified reference");
  const auto args = std::make_shared<check_arguments>();
  command->add_option("PROBLEM", args->problem, "What the kernel was given (deltaproof.problem/1)")->required();
  command->add_option("RESULT", args->result, "What came out (deltaproof.result/1)")->required();
  command->add_option("--max-error", args->limits, "Budget [TENSOR:]METRIC=E; METRIC is max_abs, rel_fro, fla_ratio or ulps; repeatable")->type_name("LIMIT")->allow_extra_args(false);
  command->add_option("--because", args->reason, "Where the limits come from; required with --max-error")->type_name("TEXT");
  command->add_flag("--no-plan", args->no_plan, "Judge against no precision plan: errors only, unless --max-error gives a budget");
  command->add_option("--plan", args->plan, "The precision plan the kernel promises: a preset (deltaproof list plans) or a file ending in .toml")->type_name("PLAN");
  command->add_option("--false-alarm", args->false_alarm, "Probability that a kernel which keeps the plan is refuted, for the whole check")->type_name("P")->check(CLI::Range(1e-12, 0.1));
  command->add_option("--accuracy", args->accuracy, "Relative error the plan itself may have in any horizon bucket (default: 8 times what its formats alone cost)")->type_name("E")->check(CLI::PositiveNumber);
  command->add_flag("--no-power", args->no_power, "Do not run the planted faults: no power, no diagnosis");
  command->add_option("--max-bits", args->max_bits, "Highest precision of the reference")->type_name("N")->check(CLI::Range(53, 1024));
  return {command, [args, &common] { return run(*args, common); }};
}

}  // namespace deltaproof::cli
