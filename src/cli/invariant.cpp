// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT

#include "deltaproof/check/invariant.hpp"

#include <algorithm>
#include <filesystem>

#include "cli/judging.hpp"
#include "cli/numbers.hpp"
#include "cli/program.hpp"
#include "cli/stopped.hpp"
#include "cli/verbs.hpp"
#include "deltaproof/check/invariant_set.hpp"
#include "support/text.hpp"

namespace deltaproof::cli {
namespace {

struct invariant_arguments {
  const CLI::App* command = nullptr;
  std::string kind;
  std::vector<std::string> whole;
  std::vector<std::string> parts;  // problem, result, problem, result, ...
  std::string directory;
  std::vector<std::string> plans;
  bool no_plan = false;
  judging judge;
  std::optional<double> drop_below;
};

/// Every NAME.problem.safetensors of the folder with its NAME.result.safetensors, by name.
std::vector<std::string> pairs_in(const std::string& directory) {
  const std::string problem_end = ".problem.safetensors", result_end = ".result.safetensors";
  std::vector<std::string> names, out;
  std::error_code failed;
  for (const auto& entry : std::filesystem::directory_iterator(directory, failed)) {
    const std::string name = entry.path().filename().string();
    if (name.size() > problem_end.size() && name.ends_with(problem_end))
      names.push_back(name.substr(0, name.size() - problem_end.size()));
  }
  if (failed) throw format_error("--parts-dir " + directory + ": " + failed.message());
  if (names.empty())
    throw format_error("--parts-dir " + directory + " holds no file NAME" + problem_end + "; each part is that file and NAME" +
                       result_end + ", not in a subfolder");
  std::sort(names.begin(), names.end());
  for (const std::string& name : names) {
    const auto base = std::filesystem::path(directory) / name;
    if (!std::filesystem::exists(base.string() + result_end))
      throw format_error(base.string() + problem_end + ": there is no " + name + result_end + " beside it");
    out.push_back(base.string() + problem_end);
    out.push_back(base.string() + result_end);
  }
  return out;
}

/// The same note for each of many parts is one note.
notes_list merged(const notes_list& notes) {
  notes_list out;
  std::vector<std::size_t> more;
  std::vector<std::string> keys;
  for (const std::string& note : notes) {
    const auto colon = note.find(": ");
    const std::string key = colon == std::string::npos ? note : note.substr(colon);
    const auto known = std::find(keys.begin(), keys.end(), key);
    if (known != keys.end()) {
      ++more[static_cast<std::size_t>(known - keys.begin())];
      continue;
    }
    keys.push_back(key);
    out.push_back(note);
    more.push_back(0);
  }
  for (std::size_t i = 0; i < out.size(); ++i) {
    if (more[i] > 0) out[i] += " (the same in " + std::to_string(more[i]) + (more[i] == 1 ? " other file)" : " other files)");
  }
  return out;
}

/// Options of judging that this invariant does not read. Throws: format_error where one is given.
void refuse_without_effect(invariant_kind kind, const CLI::App& command) {
  const bool equations = kind == invariant_kind::gradients;
  const bool bits = kind == invariant_kind::prefix || kind == invariant_kind::pad || kind == invariant_kind::repeat;
  if (!equations && !bits) return;
  std::vector<std::string> unread{"--false-alarm", "--no-power", "--strict-padding"};
  if (bits) unread.insert(unread.end(), {"--accuracy", "--max-bits"});
  for (const std::string& option : unread) {
    if (command.get_option(option)->count() == 0) continue;
    throw format_error("invariant " + std::string(name_of(kind)) + ": " + option + " has no effect here: this invariant " +
                       (bits ? "compares bits" : "compares the two sides of equations") + " and uses no plan; leave " + option +
                       " out");
  }
}

recorded_set read_files(invariant_kind kind, const std::vector<std::string>& whole, const std::vector<std::string>& files,
                        notes_list& notes) {
  recorded_set out{kind, read_run(whole[0], whole[1], notes), {}};
  for (std::size_t i = 0; i < files.size(); i += 2) out.parts.push_back(read_run(files[i], files[i + 1], notes));
  return out;
}

int run(const invariant_arguments& args, const common_options& common) {
  const invariant_kind kind = invariant_named(args.kind);
  refuse_without_effect(kind, *args.command);
  if (args.drop_below && kind != invariant_kind::cp)
    throw format_error("invariant " + args.kind + ": --drop-below has no effect here: only cp folds ranks; leave it out");
  if (args.drop_below && !(*args.drop_below > 0 && *args.drop_below <= 1))
    throw format_error("invariant cp: --drop-below " + detail::shortest(*args.drop_below) +
                       " is out of range; give a factor above 0 and at most 1");
  if (!args.plans.empty() && args.no_plan)
    throw format_error("invariant: --plan and --no-plan cannot be given together; leave one out");
  if (kind == invariant_kind::gradients && (!args.plans.empty() || args.no_plan))
    throw format_error("invariant gradients: it uses no plan; leave out --plan and --no-plan");
  if (!args.directory.empty() && !args.parts.empty())
    throw format_error("invariant: --part and --parts-dir cannot be given together; leave one out");
  const bool is_set = args.whole.size() == 1 && std::filesystem::is_directory(args.whole.front());
  if (is_set && (!args.parts.empty() || !args.directory.empty()))
    throw format_error("invariant: a folder of gen --for names its parts itself; leave out --part and --parts-dir");
  if (!is_set && args.whole.size() != 2)
    throw format_error("invariant " + args.kind +
                       (args.whole.empty() ? ": no files are given" : ": " + args.whole.front() + " is not a folder") +
                       "; give a folder that gen --for made, or PROBLEM and RESULT of the whole");
  const std::vector<std::string> files = args.directory.empty() ? args.parts : pairs_in(args.directory);
  if (files.empty() && !is_set && kind != invariant_kind::gradients)
    throw format_error("invariant " + args.kind + ": no part; give each with --part PROBLEM RESULT, or all with --parts-dir DIR");
  if (files.size() % 2 != 0) throw format_error("invariant: --part takes two files, PROBLEM and RESULT");

  check_identity identity;
  notes_list notes;
  const recorded_set given = is_set ? read_set(args.whole.front(), notes) : read_files(kind, args.whole, files, notes);
  if (given.kind != kind)
    throw format_error(args.whole.front() + ": this folder was made for invariant " + std::string(name_of(given.kind)) +
                       ", not " + args.kind + "; run deltaproof invariant " + std::string(name_of(given.kind)) +
                       " on it, or give another folder");
  const recorded_run& whole = given.whole;
  const std::vector<recorded_run>& parts = given.parts;
  identity.notes = merged(notes);
  identity.version = DELTAPROOF_VERSION;
  identity.reproduce = command_line(common);

  invariant_report report;
  {
    progress_line line("reference");
    invariant_options options{watched(common, line), args.no_plan, args.drop_below};
    for (const std::string& name : args.plans) options.check.plans.push_back(plan_named(name));
    options.check.judge = args.judge;
    options.check.judge.seed = common.seed;
    report = check_invariant(kind, whole, parts, options);
  }
  say_why_stopped(report, common);
  const std::string text = to_text(report, whole, parts, identity);
  output out{"invariant",
             text,
             to_json(report, whole, parts, identity),
             "## " + args.kind + ": " + std::string(name_of(report.judged)) + "\n\n```\n" + text + "```\n",
             {}};
  const auto failure = [](verdict v, const std::string& reason) {
    return exit_code(v) != 0 ? std::string(name_of(v)) + ": " + reason : std::string();
  };
  if (report.runs.empty())
    out.cases.push_back({args.kind + ":" + args.whole.back(), failure(report.judged, report.reason), text});
  for (const judged_run& judged : report.runs)
    out.cases.push_back({args.kind + ":" + judged.what, failure(judged.report.judged, judged.report.reason), text});
  publish(common, out);
  return exit_code(report.judged);
}

}  // namespace

verb add_invariant(CLI::App* command, common_options& common) {
  const auto args = std::make_shared<invariant_arguments>();
  args->command = command;
  command
      ->add_option(
          "KIND", args->kind,
          "prefix: later tokens change nothing; split: several calls that hand on the state give what one call gives; pad: "
          "padding changes nothing; varlen: a packed sequence equals the sequence alone; chunk-size: any chunk length is within "
          "the limits; "
          "path: the chunk path and the recurrent path are within the limits; repeat: the same call again gives the same bits; "
          "batch: a sequence at "
          "another index or beside others gives the same outputs; snapshot: a state that was stored and restored gives what an "
          "uninterrupted run gives; rollback: drafted tokens that were not accepted change nothing; flush: a decode kernel that "
          "replays a ring every L tokens gives what plain decode gives; "
          "cp: the ranks of a split sequence give what one call gives; gradients: six equations that correct gradients of any "
          "kernel satisfy")
      ->required();
  run_files& files = common.files;
  files.reads(command
                  ->add_option("FILES,--whole", args->whole,
                               "A folder that gen --for made; or PROBLEM and RESULT of the whole, the run that the parts are "
                               "compared with (gradients: the only run). Give FILES or --whole, which mean the same")
                  ->expected(1, 2)
                  ->type_name("FILE"));
  files.reads(command
                  ->add_option("--part", args->parts,
                               "PROBLEM and RESULT of one part; give --part once for each part, in the order of their tokens "
                               "(varlen: in the order of the sequences)")
                  ->type_size(2)
                  ->expected(1, 1 << 20)
                  ->type_name("FILE"));
  files.reads(
      command
          ->add_option("--parts-dir", args->directory,
                       "Folder with NAME.problem.safetensors and NAME.result.safetensors of each part; the parts are taken in "
                       "the order of their names")
          ->type_name("DIR"));
  files.reads_plan(
      command
          ->add_option("--plan", args->plans,
                       "The plan that the kernel promises: a preset or a .toml file; give one for each path (chunk, recurrent) "
                       "that the results come from (default: the presets that list the kernels of the results)")
          ->type_name("PLAN")
          ->allow_extra_args(false));
  command->add_flag("--no-plan", args->no_plan, "Use no precision plan: compare errors and bits only");
  command
      ->add_option("--drop-below", args->drop_below,
                   "cp: a fold leaves out the state that a rank starts from if the gates of this rank, all multiplied, are below "
                   "FACTOR (default: nothing is left out; drop_below in the metadata of a result takes precedence)")
      ->type_name("FACTOR")
      ->check(positive_number());
  add_judging_options(*command, args->judge);
  return [args, &common] { return run(*args, common); };
}

}  // namespace deltaproof::cli
