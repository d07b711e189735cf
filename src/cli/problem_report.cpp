// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT

#include "cli/problem_report.hpp"

#include <cctype>
#include <filesystem>
#include <thread>

#include "cli/judging.hpp"
#include "cli/numbers.hpp"
#include "cli/page.hpp"
#include "deltaproof/check/request.hpp"
#include "deltaproof/files/exchange.hpp"
#include "deltaproof/study/problem_report.hpp"
#include "support/text.hpp"

namespace deltaproof::cli {
namespace {

/// The file's name as a report may be called: lower case letters, digits, '-'.
std::string report_name(const std::string& path) {
  std::string stem = std::filesystem::path(path).filename().string();
  for (const char* suffix : {".safetensors", ".problem"}) {
    if (stem.ends_with(suffix)) stem.resize(stem.size() - std::string_view(suffix).size());
  }
  std::string name;
  for (const char c : stem) {
    const auto u = static_cast<unsigned char>(c);
    if (u < 128 && std::isalnum(u) != 0) {
      name += static_cast<char>(std::tolower(u));
    } else if (!name.empty() && name.back() != '-') {
      name += '-';
    }
  }
  while (!name.empty() && name.back() == '-') name.pop_back();
  return name.empty() ? "problem" : name;
}

verdict verdict_of(const finding& f) {
  const auto* word = std::get_if<std::string>(&f.values.at("verdict").value());
  for (const verdict v : {verdict::holds, verdict::measured, verdict::vacuous, verdict::undecided, verdict::refuted}) {
    if (word != nullptr && *word == name_of(v)) return v;
  }
  return verdict::undecided;
}

/// Judges one result alone as the report does.
std::string check_command(const problem_report_arguments& args, const std::string& result, const common_options& common) {
  check_request asked{args.plan, args.no_plan, args.judge};
  asked.judge.seed = common.seed;
  return "deltaproof check " + shell_quoted(args.problem) + " " + shell_quoted(result) + options_text(asked);
}

}  // namespace

void add_problem_report_options(CLI::App& command, problem_report_arguments& args, common_options& common) {
  auto* plan =
      command
          .add_option("--plan", args.plan, "With PROBLEM: the plan every RESULT promises (a preset or a file ending in .toml)")
          ->type_name("PLAN");
  common.files.reads_plan(plan);
  command.add_flag("--no-plan", args.no_plan, "With PROBLEM: use no precision plan, measure errors only")->excludes(plan);
  add_judging_options(command, args.judge, "With PROBLEM: ");
  command
      .add_option("--chunk", args.chunk,
                  "With PROBLEM: chunk length for the inverses and the gate exponents (default: the chunk_size of the first "
                  "RESULT that states one, else 64)")
      ->type_name("C")
      ->check(integer_within(1, 1024));
}

int run_problem_report(const problem_report_arguments& args, const common_options& common) {
  run_files files = common.files;
  files.writes_in("-o", args.output, [study = report_name(args.problem)](const std::string& name) {
    return name == "index.html" || name == "README.md" || is_report_file(study, name);
  });
  files.require_apart();
  notes_list notes;
  const safetensors_file file = read_safetensors(args.problem);
  const problem p = parse_problem(file, notes);
  const std::string hash = sha256_hex(file.bytes());
  std::vector<named_result> results;
  for (const std::string& path : args.results) {
    named_result r{path, read_result(path, p, hash, notes), {}, check_command(args, path, common)};
    if (!r.values.has_outputs()) throw format_error(path + ": tensor o is missing; the page needs outputs: record o");
    if (!args.plan.empty()) {
      r.plans.push_back(plan_named(args.plan));
      require_fit(r.plans.back(), p, path_of(r.values), r.values.chunk_size.value_or(0));
    } else if (!args.no_plan) {
      r.plans = plans_of(r.values, p);
    }
    results.push_back(std::move(r));
  }
  problem_report_options options;
  options.judge = args.judge;
  options.judge.seed = common.seed;
  options.run.threads = common.threads == 0 ? std::max(1U, std::thread::hardware_concurrency()) : common.threads;
  options.run.interrupted = &stop_requested();
  options.chunk = args.chunk;
  report r;
  {
    progress_line line("report");
    options.run.on_progress = [&line](std::string_view stage, double fraction) {
      line.stage(std::string(stage));
      line.update(fraction);
    };
    r = report_on(p, {report_name(args.problem), args.problem, command_line(common)}, results, options);
  }
  if (options.run.stopped()) {
    say(common, "report: " + why_stopped(common) + "; nothing was written\n");
    return 3;
  }
  named_files made = report_files(r);
  made["README.md"] = index_of(args.output, made);
  made["index.html"] = page_of(args.output, made);
  write_together(args.output, made);
  std::string text = r.answer + "\n";
  for (const std::string& note : notes) text += "note: " + note + "\n";
  text += "written to " + args.output + "/index.html and " + args.output + "/" + r.study + ".md\n";
  publish(common, {"report", text, to_json(r), to_markdown(r)});
  int code = 0;
  for (const finding& f : r.findings) {
    if (f.id.starts_with("result-")) code = std::max(code, exit_code(verdict_of(f)));
  }
  return code;
}

}  // namespace deltaproof::cli
