// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT

#include <nlohmann/json.hpp>

#include "cli/judging.hpp"
#include "cli/program.hpp"
#include "cli/stopped.hpp"
#include "cli/verbs.hpp"
#include "deltaproof/check/witness.hpp"

namespace deltaproof::cli {
namespace {

void require_no_seed(const common_options& common, const char* verb) {
  if (common.seed_given) throw format_error(std::string(verb) + ": the seed is the recorded one; leave --seed out");
}

int run_replay(const std::string& where, const common_options& common) {
  require_no_seed(common, "replay");
  run_files files = common.files;
  for (const std::filesystem::path& file : files_of(read_verdict(where))) files.reads("WHERE", file);
  files.require_apart();
  replayed again;
  {
    progress_line line("replay");
    again = replay(where, watched(common, line), DELTAPROOF_VERSION);
  }
  if (!again.reproduced && stop_requested() && ended_early(again.report)) {
    // Not judged again is not judged otherwise.
    say(common, "replay: " + why_stopped(common) + " before the result was judged again; nothing was written\n");
    return exit_code(verdict::undecided);
  }
  const std::string text = to_text(again);
  publish(
      common,
      {"replay", text, to_json(again), {}, {{"replay:" + where, again.reproduced ? "" : text.substr(0, text.find('\n')), text}}});
  return again.reproduced ? exit_code(again.report.judged) : bad_usage;
}

int run_shrink(const std::string& folder, const common_options& common) {
  require_no_seed(common, "shrink");
  require_witness(folder);
  small_failure kept;
  replayed again;
  std::size_t before = 0;
  {
    progress_line line("replay");
    again = replay(folder, watched(common, line), DELTAPROOF_VERSION);
    if (again.report.stopped) {
      say(common, "shrink: " + why_stopped(common) + " before the witness was judged once; nothing was changed\n");
      return exit_code(verdict::undecided);
    }
    if (!again.reproduced)
      throw format_error(folder + ": the witness was not changed: judging it again does not give what it records (" +
                         again.differences.front() + "); deltaproof replay " + shell_quoted(folder) +
                         " lists every difference; if another build or machine made the witness, write it again with "
                         "check --witness");
    before = again.given.tokens();
    check_options quiet = again.options;
    quiet.progress = {};
    kept = shrunk(again.given, again.gave, again.report, quiet, [&line](std::size_t, const head_slice& at) {
      line.stage("head " + std::to_string(at.value_head) + ", " + std::to_string(at.tokens) + " tokens");
      line.update(0);
    });
  }
  const bool smaller = kept.at.has_value();
  if (smaller) {
    check_identity whole = again.identity;
    whole.record = again.recorded.identity.record;
    write_witness(folder, kept, whole, again.recorded.witness);
  }
  const std::size_t all_heads = again.given.value_heads() * again.given.sequence_count();
  const std::string heads = smaller && all_heads > 1 ? ", one head kept of " + std::to_string(all_heads) : "";
  // Nothing smaller was written: the record of an earlier search stands.
  const std::string says = !smaller ? "not changed" : again.recorded.of ? renumbered(kept.says, *again.recorded.of) : kept.says;
  std::string text =
      folder + ": " +
      (smaller ? std::to_string(before) + " tokens shortened to " + std::to_string(kept.given.tokens()) + heads +
                     "; the witness is " + says
               : "nothing smaller found: it stays as it was, " + std::to_string(before) + (before == 1 ? " token" : " tokens") +
                     " of " + std::to_string(all_heads) + (all_heads == 1 ? " head" : " heads") +
                     (stop_requested() ? "; the search was stopped early" : "")) +
      "\n";
  text += "deltaproof replay " + shell_quoted(folder) + "\n";
  const nlohmann::ordered_json j{
      {"schema", "deltaproof.shrink/1"}, {"witness", folder},     {"smaller", smaller}, {"tokens_before", before},
      {"tokens", kept.given.tokens()},   {"judged", kept.judged}, {"says", says}};
  publish(common, {"shrink", text, j.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n"});
  return 0;
}

}  // namespace

verb add_replay(CLI::App* command, common_options& common) {
  const auto where = std::make_shared<std::string>();
  common.files.reads(command->add_option("WHERE", *where, "A witness folder, or the file that check --json wrote for one result")
                         ->required()
                         ->type_name("FILE"));
  return [where, &common] { return run_replay(*where, common); };
}

verb add_shrink(CLI::App* command, common_options& common) {
  const auto folder = std::make_shared<std::string>();
  common.files.reads(
      command->add_option("DIR", *folder, "A witness folder, as check --witness writes it")->required()->type_name("DIR"));
  return [folder, &common] { return run_shrink(*folder, common); };
}

}  // namespace deltaproof::cli
