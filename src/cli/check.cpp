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

  check_report report;
  {
    progress_line line("reference");
    options.progress = [&line](std::size_t done, std::size_t all) { line.update(static_cast<double>(done) / static_cast<double>(all)); };
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
  auto* command = app.add_subcommand("check", "Measure a kernel's result against the certified reference");
  const auto args = std::make_shared<check_arguments>();
  command->add_option("PROBLEM", args->problem, "What the kernel was given (deltaproof.problem/1)")->required();
  command->add_option("RESULT", args->result, "What came out (deltaproof.result/1)")->required();
  command->add_option("--max-error", args->limits, "Budget [TENSOR:]METRIC=E; METRIC is max_abs, rel_fro, fla_ratio or ulps; repeatable")->type_name("LIMIT")->allow_extra_args(false);
  command->add_option("--because", args->reason, "Where the limits come from; required with --max-error")->type_name("TEXT");
  command->add_flag("--no-plan", args->no_plan, "Judge against no precision plan: errors only, unless --max-error gives a budget");
  command->add_option("--max-bits", args->max_bits, "Highest precision of the reference")->type_name("N")->check(CLI::Range(53, 1024));
  return {command, [args, &common] { return run(*args, common); }};
}

}  // namespace deltaproof::cli
