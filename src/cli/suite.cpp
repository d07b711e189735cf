// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT

#include "cli/suite.hpp"

#include "deltaproof/check/request.hpp"
#include "deltaproof/check/suite.hpp"
#include "deltaproof/support/read_file.hpp"
#include "support/text.hpp"

namespace deltaproof::cli {
namespace {

/// The command that judges one case alone, with what the suite was asked to do for all.
std::string command_of(const suite_case& c, const suite_arguments& args) {
  check_request asked{c.plan, c.no_plan, args.judge};
  asked.judge.accuracy = c.accuracy;
  common_options alone;
  alone.arguments = {"check", c.problem.string(), c.result.string()};
  return command_line(alone) + options_text(asked);
}

junit_case junit_of(const case_report& c, const std::string& command) {
  junit_case out{c.what.name, "", c.verdict_text};
  out.seconds = c.seconds;
  if (c.state == case_state::skipped) {
    out.skipped = c.reason;
  } else if (c.state == case_state::failed) {
    out.error = "no answer: " + c.reason;
    out.output = c.reason + "\nagain        " + command + "\n";
  } else if (c.state == case_state::stopped) {
    out.failure = std::string(name_of(c.state)) + ": " + c.reason;
  } else if (!c.as_expected()) {
    out.failure = std::string(name_of(c.judged)) + ", expected " + std::string(name_of(c.what.expect)) + ": " + c.reason;
  }
  return out;
}

}  // namespace

int run_suite_file(const suite_arguments& args, const common_options& common) {
  const suite s = read_suite(args.file);
  run_files files = common.files;
  for (const suite_case& c : s.cases) {
    const std::string where = "case " + in_quotes(c.name);
    files.reads(where, c.problem);
    files.reads(where, c.result);
    if (c.plan.ends_with(".toml")) files.reads(where, c.plan);
  }
  files.require_apart();
  // Read first: a wrong name should not cost the judging.
  const std::string baseline = args.baseline.empty() ? "" : read_file(args.baseline, suite_verdict_limit);
  if (!args.baseline.empty()) (void)compare_baseline({}, baseline, args.baseline);

  suite_options options;
  options.judge = args.judge;
  options.skip_missing = args.skip_missing;
  options.threads = common.threads;
  options.stop = &stop_requested();
  options.version = DELTAPROOF_VERSION;
  options.reproduce = [&](const suite_case& c) { return command_of(c, args); };

  suite_report report;
  {
    progress_line line("reading the cases");
    options.progress = [&line](std::size_t done, std::size_t all) {
      const std::string name =
          std::to_string(done) + " of " + std::to_string(all) + (all == 1 ? " case judged" : " cases judged");
      done == 0 ? line.stage(name) : line.rename(name);
      line.update(static_cast<double>(done) / static_cast<double>(std::max<std::size_t>(all, 1)));
    };
    report = run_suite(s, options);
  }
  if (stop_requested()) {
    for (case_report& c : report.cases) {
      if (c.state == case_state::stopped) c.reason = why_stopped(common) + ": " + c.reason;
    }
  }
  report.reproduce = command_line(common);
  if (!args.baseline.empty()) report.drift = compare_baseline(report, baseline, args.baseline);

  output out{"check", to_text(report), to_json(report), to_markdown(report), {}};
  for (const case_report& c : report.cases) out.cases.push_back(junit_of(c, command_of(c.what, args)));
  publish(common, out);
  return report.count(case_state::failed) > 0 ? bad_usage : exit_code(report.judged);
}

}  // namespace deltaproof::cli
