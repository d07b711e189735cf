// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT

#include "cli/program.hpp"
#include "cli/verbs.hpp"
#ifdef DELTAPROOF_WITHOUT_STUDIES

namespace deltaproof::cli {
namespace {

/// A verb that says why it is not here, whatever stands behind it.
verb absent(CLI::App* command) {
  command->description(command->get_description() + " (" + std::string(without_studies) + ")");
  command->allow_extras();
  return [command]() -> int { throw format_error(command->get_name() + ": " + std::string(without_studies)); };
}

}  // namespace

verb add_study(CLI::App* command, common_options&) { return absent(command); }
verb add_report(CLI::App* command, common_options&) { return absent(command); }

}  // namespace deltaproof::cli

#else

#include <algorithm>
#include <filesystem>
#include <iostream>
#include <iterator>
#include <thread>

#include "cli/page.hpp"
#include "cli/problem_report.hpp"
#include "deltaproof/study/claim.hpp"
#include "deltaproof/study/report.hpp"
#include "deltaproof/study/study.hpp"
#include "deltaproof/support/errors.hpp"
#include "deltaproof/support/read_file.hpp"
#include "deltaproof/support/write_file.hpp"

namespace deltaproof::cli {
namespace {

struct study_arguments {
  std::vector<std::string> names;
  std::string output;
  bool full = false;
  bool quick = false;
  bool resume = false;
};

/// Whether the folder has this study's whole report, made with the same seed and mode by this build of the program.
bool is_made(const study& s, const std::string& folder, const run_options& options) {
  const std::filesystem::path file = std::filesystem::path(folder) / (std::string(s.name) + ".json");
  std::error_code none;
  const auto made = std::filesystem::last_write_time(file, none);
  if (none || made < std::filesystem::last_write_time("/proc/self/exe", none)) return false;
  try {
    const report r = report_from_json(read_file(file, report_limit));
    const auto is = [&](const char* name, const cell& value) {
      return r.parameters.count(name) != 0 && r.parameters.at(name).text() == value.text();
    };
    return r.unfinished.empty() && is("seed", cell(options.seed)) && is("mode", cell(options.full ? "full" : "quick"));
  } catch (const format_error&) {
    return false;
  }
}

int run(const study_arguments& args, const common_options& common) {
  std::vector<const study*> chosen;
  for (const std::string& name : args.names) chosen.push_back(&study_named(name));
  if (chosen.empty()) {
    std::copy_if(studies().begin(), studies().end(), std::back_inserter(chosen),
                 [&](const study* s) { return args.full || !s->hours; });
  }

  run_files files = common.files;
  if (!args.output.empty()) {
    files.writes_in("-o", args.output, [&](const std::string& name) {
      return name == "index.html" || name == "README.md" || name.starts_with("claims") ||
             std::any_of(chosen.begin(), chosen.end(), [&](const study* s) { return is_report_file(s->name, name); });
    });
  }
  files.require_apart();
  run_options options;
  options.seed = common.seed;
  options.full = args.full;
  options.threads = common.threads == 0 ? std::max(1U, std::thread::hardware_concurrency()) : common.threads;
  options.interrupted = &stop_requested();

  std::string text, json = "[", markdown;
  std::vector<std::string> failed;
  const bool views = !(common.json.empty() && common.junit.empty() && common.markdown.empty());
  for (const study* s : chosen) {
    if (options.stopped()) {
      text += std::string(s->name) + ": not begun (" + why_stopped(common) + ")\n";
      continue;
    }
    if (args.resume && is_made(*s, args.output, options)) {
      text += std::string(s->name) + ": skipped, its report is already in " + args.output + "\n";
      continue;
    }
    report r;
    {
      progress_line line{std::string(s->name)};
      options.on_progress = [&](std::string_view stage, double fraction) {
        line.stage(std::string(s->name) + ": " + std::string(stage));
        line.update(fraction);
      };
      r = run_study(*s, options);
    }
    if (!args.output.empty()) write_report(r, args.output);
    if (views) {
      json += (json.size() > 1 ? ",\n" : "") + to_json(r);
      markdown += to_markdown(r) + "\n";
    }
    text += std::string(s->name) + ": " + r.answer + "\n";
    for (const std::string& left : r.unfinished) text += "  unfinished: " + left + "\n";
    failed.insert(failed.end(), r.failed.begin(), r.failed.end());
  }
  if (!args.output.empty()) {
    named_files last;
    if (args.names.empty()) last = claims_pages();
    last["README.md"] = index_of(args.output, last);
    last["index.html"] = page_of(args.output, last);
    write_together(args.output, last);
    text += "written to " + args.output + "\n";
  }
  // One study is one report; several are an array of them.
  publish(common, {"study", text, chosen.size() == 1 && json.size() > 1 ? json.substr(1) : json + "]\n", markdown});
  for (const std::string& one : failed) std::cerr << one << '\n';
  if (!failed.empty()) return 1;
  return options.stopped() ? 3 : 0;
}

/// The studies that `report` leaves out unless asked for everything.
std::string long_studies() {
  std::string names;
  for (const study* s : studies()) {
    if (s->hours) names += (names.empty() ? "" : ", ") + std::string(s->name);
  }
  return names;
}

void add_sizes(CLI::App* command, const std::shared_ptr<study_arguments>& args, const std::string& full_says,
               const std::string& with = "") {
  auto* full = command->add_flag("--full", args->full, with + full_says);
  command->add_flag("--quick", args->quick, with + "Smaller sizes: seconds to a minute for each study (the default)")
      ->excludes(full);
}

constexpr const char *with_problem = "With PROBLEM: ", *without_problem = "Without PROBLEM: ";

/// What the help says of an option, the program keeps.
void refuse_without_effect(const CLI::App& command, bool given) {
  for (const CLI::Option* option : command.get_options()) {
    if (option->count() == 0 || !option->get_description().starts_with(given ? without_problem : with_problem)) continue;
    throw format_error("report: " + option->get_name() + " has no effect " + (given ? "with" : "without") + " PROBLEM; " +
                       (given ? "" : "name one, or ") + "leave it out");
  }
}

}  // namespace

verb add_study(CLI::App* command, common_options& common) {
  const auto args = std::make_shared<study_arguments>();
  command->add_option("STUDY", args->names, "Name of a study (deltaproof list studies)")->required();
  command->add_option("-o,--output", args->output, "Folder for Markdown, JSON and figures")->type_name("DIR")->check(not_empty());
  add_sizes(command, args, "Full sizes: minutes for most studies");
  return [args, &common] { return run(*args, common); };
}

verb add_report(CLI::App* command, common_options& common) {
  command->footer("Studies that take part only with --full: " + long_studies() + ".");
  const auto args = std::make_shared<study_arguments>();
  const auto own = std::make_shared<problem_report_arguments>();
  common.files.reads(command
                         ->add_option("PROBLEM", own->problem,
                                      "A problem file (deltaproof.problem/1): write a page on it instead of running the studies")
                         ->type_name("FILE"));
  common.files.reads(
      command->add_option("RESULT", own->results, "The kernel's results (deltaproof.result/1), any number")->type_name("FILE"));
  command->add_option("-o,--output", args->output, "Folder for index.html, Markdown, JSON and figures")
      ->required()
      ->type_name("DIR")
      ->check(not_empty());
  command->add_flag("--resume", args->resume,
                    std::string(without_problem) +
                        "Skip studies whose complete report this build has already written to DIR, with the same seed and mode");
  add_problem_report_options(*command, *own, common);
  add_sizes(command, args, "Full sizes, and every study, also the long ones: most of an hour", without_problem);
  return [args, own, command, &common] {
    refuse_without_effect(*command, !own->problem.empty());
    if (own->problem.empty()) return run(*args, common);
    own->output = args->output;
    return run_problem_report(*own, common);
  };
}

}  // namespace deltaproof::cli
#endif
