// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT

#include "cli/judging.hpp"
#include "cli/numbers.hpp"
#include "cli/program.hpp"
#include "cli/stopped.hpp"
#include "cli/suite.hpp"
#include "cli/verbs.hpp"
#include "deltaproof/check/request.hpp"

namespace deltaproof::cli {
namespace {

struct check_arguments {
  std::string problem;
  std::string result;
  std::vector<std::string> limits;
  std::string reason;
  bool no_plan = false;
  std::string plan;
  judging judge;
  std::string baseline;
  bool skip_missing = false;
  std::string witness;
};

std::string markdown(const check_report& report, const check_identity& identity) {
  return "## " + identity.result_path + ": " + std::string(name_of(report.judged)) + "\n\n```\n" + to_text(report, identity) +
         "```\n";
}

int run_suite_of(const check_arguments& args, const common_options& common) {
  if (!args.witness.empty())
    throw format_error(
        "check: --witness works only with one result, not with a suite: deltaproof check PROBLEM RESULT --witness DIR");
  if (!args.limits.empty() || !args.reason.empty() || !args.plan.empty() || args.no_plan || args.judge.accuracy) {
    throw format_error("check: " + args.problem +
                       " is a suite, which takes no --plan, --no-plan, --accuracy, --max-error or --because; write plan, no_plan "
                       "and accuracy into its [[case]] tables");
  }
  suite_arguments suite;
  suite.file = args.problem;
  suite.baseline = args.baseline;
  suite.skip_missing = args.skip_missing;
  suite.judge = args.judge;
  suite.judge.seed = common.seed;
  return run_suite_file(suite, common);
}

/// A witness does not change the verdict, and a second one is refused.
common_options without_witness(common_options common) {
  std::vector<std::string> kept;
  for (std::size_t i = 0; i < common.arguments.size(); ++i) {
    const std::string& word = common.arguments[i];
    if (word == "--witness")
      ++i;
    else if (!word.starts_with("--witness="))
      kept.push_back(word);
  }
  common.arguments = std::move(kept);
  return common;
}

int run(const check_arguments& args, const common_options& common) {
  if (args.result.empty() && args.problem.ends_with(".toml")) return run_suite_of(args, common);
  if (args.result.empty())
    throw format_error("check: " + args.problem +
                       ": RESULT is missing; give PROBLEM RESULT, or one suite, a file ending in .toml");
  if (!args.baseline.empty() || args.skip_missing)
    throw format_error(
        "check: --baseline and --skip-missing work only with a suite (deltaproof check SUITE.toml); leave them out");
  if (!args.limits.empty() && args.reason.empty()) {
    throw format_error("check: --max-error needs --because TEXT: which theorem, measurement or agreement the limit comes from");
  }
  if (args.limits.empty() && !args.reason.empty())
    throw format_error(
        "check: --because states the reason for --max-error, which is missing; add --max-error, or leave --because out");
  if (!args.plan.empty() && args.no_plan)
    throw format_error("check: --plan and --no-plan cannot be given together; leave one out");
  if (!args.witness.empty()) {
    run_files files = common.files;
    files.writes_in("--witness", args.witness, is_witness_file);
    files.require_apart();
  }
  check_request asked;
  asked.judge = args.judge;
  asked.judge.seed = common.seed;
  for (const std::string& limit : args.limits) asked.judge.bounds.push_back(parse_tensor_bound(limit, because(args.reason)));
  asked.plan = args.plan;
  asked.no_plan = args.no_plan;
  asked.threads = common.threads;
  asked.witness = args.witness;

  check_identity identity;
  const safetensors_file problem_file = read_safetensors(args.problem);
  const problem p = parse_problem(problem_file, identity.notes);
  identity.problem_sha256 = sha256_hex(problem_file.bytes());
  const safetensors_file result_file = read_safetensors(args.result);
  const result r = parse_result(result_file, p, identity.problem_sha256, identity.notes);
  identity.result_sha256 = sha256_hex(result_file.bytes());
  identity.problem_path = args.problem;
  identity.result_path = args.result;
  identity.reproduce = command_line(without_witness(common));

  answered_check answered;
  {
    progress_line line("reference");
    answered = answer(p, r, asked, std::move(identity), watched(common, line), [&line](std::size_t, const head_slice& at) {
      line.stage("witness: head " + std::to_string(at.value_head) + ", " + std::to_string(at.tokens) + " tokens");
      line.update(0);
    });
  }
  check_report& report = answered.report;
  say_why_stopped(report, common);
  output out{
      "check", to_text(report, answered.identity), to_json(report, answered.identity), markdown(report, answered.identity), {}};
  for (const tensor_report& t : report.tensors) {
    const bool bad = exit_code(t.judged) != 0 && report.judged == t.judged;
    out.cases.push_back({args.result + ":" + t.name, bad ? std::string(name_of(t.judged)) + ": " + report.reason : "", out.text});
  }
  if (!answered.witness_lost.empty()) lost_output(answered.witness_lost);
  publish(common, out);
  return exit_code(report.judged);
}

}  // namespace

verb add_check(CLI::App* command, common_options& common) {
  const auto args = std::make_shared<check_arguments>();
  run_files& files = common.files;
  files.reads(command
                  ->add_option("PROBLEM", args->problem,
                               "The inputs of the kernel (deltaproof.problem/1). Without RESULT: a suite, a file ending in .toml "
                               "whose [[case]] tables have the keys problem and result, and may have plan, expect, accuracy, "
                               "name and no_plan")
                  ->required()
                  ->type_name("FILE"));
  files.reads(command->add_option("RESULT", args->result, "The outputs of the kernel (deltaproof.result/1)")->type_name("FILE"));
  command
      ->add_option("--max-error", args->limits,
                   "Error limit [TENSOR:]METRIC=E. TENSOR is o, final_state or a gradient; without TENSOR the limit applies to "
                   "each of them. METRIC is one of " +
                       metric_list() + ". Give the option once for each limit")
      ->type_name("LIMIT")
      ->allow_extra_args(false);
  command
      ->add_option("--because", args->reason,
                   "Reason for the limits: the theorem, measurement or agreement that they come from; required with --max-error")
      ->type_name("TEXT");
  command->add_flag("--no-plan", args->no_plan, "Use no precision plan: measure errors, and judge only by --max-error");
  files.reads_plan(
      command
          ->add_option("--plan", args->plan,
                       "The precision plan that the kernel promises: a preset (deltaproof list plans) or a file ending in .toml "
                       "(default: the preset that lists the result's kernel)")
          ->type_name("PLAN"));
  add_judging_options(*command, args->judge);
  command
      ->add_option(
          "--witness", args->witness,
          "If refuted: write a witness, the smallest part of the result that is still refuted, to this new folder (see replay)")
      ->type_name("DIR")
      ->check(not_empty());
  files.reads(command
                  ->add_option("--baseline", args->baseline,
                               "With a suite: the file that --json wrote in an earlier run. The output then lists what changed; "
                               "the verdict stays the same")
                  ->type_name("FILE"));
  command->add_flag("--skip-missing", args->skip_missing, "With a suite: skip and count cases whose result file does not exist");
  return [args, &common] { return run(*args, common); };
}

}  // namespace deltaproof::cli
