// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT

#include "deltaproof/check/advise.hpp"

#include <filesystem>

#include "cli/numbers.hpp"
#include "cli/program.hpp"
#include "cli/progress.hpp"
#include "cli/verbs.hpp"
#include "deltaproof/files/exchange.hpp"
#include "deltaproof/referee/judging.hpp"
#include "deltaproof/support/write_file.hpp"
#include "support/text.hpp"

namespace deltaproof::cli {
namespace {

struct advise_arguments {
  std::string problem;
  std::string recurrent_plan = "decode-fp32";
  std::string chunk_plan;
  std::string output;
  double accuracy = 0;
  bool accuracy_given = false;
  std::size_t wanted = 3;
};

/// What judges a kernel that computes as the choice says. A stored g is no plan's: its errors are measured.
std::string check_of(const advise_arguments& args, const advised_kind& kind, const advised_choice& c) {
  const std::string problem = "deltaproof check " + shell_quoted(args.problem) + " RESULT ", limit = detail::shortest(kind.limit);
  if (c.plan.empty()) return problem + "--no-plan --max-error rel_fro=" + limit + " --because 'error allowed'";
  const std::string file = (std::filesystem::path(args.output) / (c.name + ".toml")).string();
  return problem + "--plan " + shell_quoted(file) + " --accuracy " + limit;
}

bool is_ours(const std::string& name) { return name.ends_with(".toml"); }

/// The plans of what is adequate, and of what is refused beside it.
std::size_t write_plans(const std::string& folder, const advice& found) {
  make_folder(folder);
  file_batch files;
  std::size_t written = 0;
  const auto add = [&](const advised_choice& c) {
    if (c.plan.empty()) return;
    files.add(std::filesystem::path(folder) / (c.name + ".toml"), c.plan);
    ++written;
  };
  for (const advised_kind& kind : found.kinds) {
    for (const advised_choice& c : kind.choices) {
      if (c.word == advice_word::adequate) add(c);
    }
    if (const advised_choice* refused = refused_beside(kind)) add(*refused);
  }
  files.finish();
  return written;
}

int run(const advise_arguments& args, const common_options& common) {
  notes_list notes;
  const problem p = parse_problem(read_safetensors(args.problem), notes);
  advise_options options;
  options.recurrent_plan = args.recurrent_plan;
  options.chunk_plan = args.chunk_plan;
  if (args.accuracy_given) options.accuracy = args.accuracy;
  options.wanted = args.wanted;
  options.threads = common.threads;
  options.stop = &stop_requested();
  if (!args.output.empty()) common.files.require_apart();
  const advice found = [&] {
    progress_line line("choices");
    options.progress = [&line](const char*, double share) { line.update(share); };
    return advise(p, options);
  }();
  const auto command = [&](const advised_kind& kind, const advised_choice& c) { return check_of(args, kind, c); };
  std::string text = advice_text(found, command);
  if (found.stopped)
    text += "\nadvise: " + why_stopped(common) + "; the list above has only the choices that were examined by then\n";
  if (!args.output.empty()) {
    const std::size_t written = write_plans(args.output, found);
    text += "\n" + args.output + ": " + std::to_string(written) + (written == 1 ? " plan" : " plans") + " written\n";
  } else if (text.find(".toml") != std::string::npos) {
    text += "\nthe commands above name plan files that do not exist yet; run advise with -o DIR to write them\n";
  }
  for (const std::string& note : notes) text += "note: " + note + "\n";
  publish(common, {"advise", text, advice_json(found, command)});
  return found.stopped ? 3 : 0;
}

}  // namespace

verb add_advise(CLI::App* command, common_options& common) {
  const auto args = std::make_shared<advise_arguments>();
  run_files& files = common.files;
  files.reads(
      command->add_option("PROBLEM", args->problem, "The problem file (deltaproof.problem/1)")->required()->type_name("FILE"));
  auto* accuracy =
      command
          ->add_option("--accuracy", args->accuracy,
                       "Largest relative error allowed in o and final_state (default: 8 times the error of the unchanged plan)")
          ->type_name("E")
          ->check(positive_number());
  files.reads_plan(
      command->add_option("--recurrent-plan", args->recurrent_plan, "Plan of the recurrent (decode) kernel (default decode-fp32)")
          ->type_name("PLAN"));
  files.reads_plan(
      command
          ->add_option("--chunk-plan", args->chunk_plan,
                       "Plan of the chunk kernel (default: the first fla-chunk preset that fits the problem, else fp32)")
          ->type_name("PLAN"));
  command
      ->add_option("--wanted", args->wanted,
                   "Number of adequate choices to find for each kind: state cache, chunk, decay (default 3)")
      ->type_name("N")
      ->check(integer_within(1, 1000));
  command
      ->add_option(
          "-o,--output", args->output,
          "Folder for plan files: one for each adequate choice and, for each kind, one for the nearest cheaper choice that is "
          "not adequate")
      ->type_name("DIR")
      ->check(not_empty());
  return [args, accuracy, &common] {
    args->accuracy_given = accuracy->count() > 0;
    if (!args->output.empty()) common.files.writes_in("--output", args->output, is_ours);
    return run(*args, common);
  };
}

}  // namespace deltaproof::cli
