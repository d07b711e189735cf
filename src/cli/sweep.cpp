// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT

#include "deltaproof/sweep/sweep.hpp"

#include <link.h>

#include <array>
#include <charconv>
#include <cstdlib>
#include <iostream>
#include <nlohmann/json.hpp>
#include <span>
#include <string_view>

#include "cli/program.hpp"
#include "cli/progress.hpp"
#include "cli/sweep_kinds.hpp"
#include "cli/terminal.hpp"
#include "cli/verbs.hpp"
#include "deltaproof/files/text_hash.hpp"
#include "deltaproof/support/read_file.hpp"
#include "deltaproof/support/write_file.hpp"
#include "deltaproof/sweep/merge.hpp"
#include "support/text.hpp"

namespace deltaproof::cli {
namespace {

using json = nlohmann::ordered_json;

struct sweep_arguments {
  std::string campaign, folder, shard, tasks;
  std::optional<std::uint64_t> shards;
  bool list = false, worker = false, propose = false;
};
struct merge_arguments {
  std::string folder, output, page, baseline;
};

/// Finds the build ID, which the linker makes of the program's bytes and leaves in a note. The program is the first object that
/// dl_iterate_phdr visits; returning 1 ends the visit.
int read_build_id(dl_phdr_info* program, std::size_t, void* id) {
  // Size of the name, size of a SHA-1, type NT_GNU_BUILD_ID, and the name.
  constexpr std::array<char, 16> header{4, 0, 0, 0, 20, 0, 0, 0, 3, 0, 0, 0, 'G', 'N', 'U', 0};
  for (const auto& segment : std::span(program->dlpi_phdr, program->dlpi_phnum)) {
    if (segment.p_type != PT_NOTE) continue;
    const std::string_view notes(reinterpret_cast<const char*>(program->dlpi_addr + segment.p_vaddr), segment.p_memsz);
    if (const std::size_t at = notes.find(std::string_view(header.data(), header.size())); at < notes.size())
      *static_cast<std::string*>(id) = notes.substr(at + header.size(), 20);
  }
  return 1;
}

/// The version and the program's build ID: what another compiler made may round otherwise, until it is shown that it does not.
std::string build_of_this() {
  std::string id;
  dl_iterate_phdr(read_build_id, &id);
  if (id.empty())
    throw domain_error("sweep: this program has no build ID, which names its build; link it with -Wl,--build-id=sha1");
  return DELTAPROOF_VERSION " " + sha256_hex(id).substr(0, 16);
}

/// "0,5,7-9"
std::vector<std::uint64_t> indices_in(const std::string& text, std::uint64_t count) {
  const auto refuse = [&] {
    return format_error("sweep: --tasks " + text + " is not a list of task numbers below " + std::to_string(count) +
                        "; write for example 0,5,7-9");
  };
  std::vector<std::uint64_t> out;
  for (std::size_t at = 0; at <= text.size();) {
    const std::size_t comma = std::min(text.find(',', at), text.size());
    const char* const end = text.data() + comma;
    std::uint64_t from = 0;
    auto [stop, bad] = std::from_chars(text.data() + at, end, from);
    std::uint64_t to = from;
    if (bad == std::errc{} && stop < end && *stop == '-')
      std::tie(stop, bad) = [&] {
        const auto r = std::from_chars(stop + 1, end, to);
        return std::pair(r.ptr, r.ec);
      }();
    if (bad != std::errc{} || stop != end || to < from || to >= count) throw refuse();
    for (std::uint64_t i = from; i <= to; ++i) out.push_back(i);
    at = comma + 1;
  }
  return out;
}

sweep_shard shard_for(const sweep_arguments& args) {
  if (!args.shard.empty() && args.shards)
    throw format_error("sweep: --shard I/N already states the number of parts, N; leave --shards out");
  if (!args.shard.empty()) return parse_shard(args.shard);
  const char* const index = std::getenv("JOB_COMPLETION_INDEX");
  if (args.shards && (index == nullptr || *index == '\0'))
    throw format_error(
        "sweep: --shards N has an effect only where the environment variable JOB_COMPLETION_INDEX is set and not empty; give "
        "--shard I/N");
  return shard_of_environment(args.shards, [](const char* name) { return std::getenv(name); }).value_or(sweep_shard{});
}

json head_of(const campaign& c, const sweep_shard& shard) {
  return {{"schema", "deltaproof.sweep/1"},
          {"campaign", c.file.filename().string()},
          {"kind", name_of(c.kind)},
          {"build", c.build},
          {"shard", {{"index", shard.index}, {"count", shard.count}}}};
}

std::string_view word_for(sweep_folder::state state) {
  switch (state) {
    case sweep_folder::state::done:
      return "done";
    case sweep_folder::state::failed:
      return "failed";
    case sweep_folder::state::damaged:
      return "damaged";
    case sweep_folder::state::other_build:
      return "other-build";
    case sweep_folder::state::missing:
      break;
  }
  return "todo";
}

int run_list(const campaign& c, const sweep_arguments& args, const common_options& common) {
  const sweep_shard shard = shard_for(args);
  const sweep_folder folder(args.folder);
  if (!args.folder.empty()) folder.refuse_another_build(c);
  json j = head_of(c, shard);
  j["tasks"] = json::array();
  std::string text;
  for (std::uint64_t i = shard.index; i < c.count(); i += shard.count) {
    const sweep_task t = c.task(i);
    std::string_view word = args.folder.empty() ? "todo" : word_for(folder.look(c, t.key));
    if (word == "todo" && !args.folder.empty() && folder.tries(t.key).size() >= most_tries) word = "lost";
    text += std::to_string(i) + " " + t.key + " " + std::string(word) + " " + t.line + "\n";
    j["tasks"].push_back({{"index", i}, {"key", t.key}, {"state", word}, {"task", t.line}, {"command", command_of(c, t)}});
  }
  if (c.search && c.proposals.empty())
    std::cerr << "deltaproof: " << args.campaign << ": no tasks" << (args.folder.empty() ? "" : " yet")
              << ", an optimiser proposes them"
              << (args.folder.empty() ? "; -o DIR lists those that the folder of a search holds\n"
                                      : ": run python -m deltaproof.sweep " + args.campaign + " -o " + args.folder + "\n");
  publish(common, {"sweep", text, j.dump(1, ' ', false, json::error_handler_t::replace) + "\n", {}, {}, true});
  return 0;
}

std::string progress_text(const sweep_progress& p, double seconds, std::uint64_t before) {
  const double rate = seconds > 0 ? static_cast<double>(p.done - before) / seconds : 0;
  std::string out = std::to_string(p.done) + " of " + std::to_string(p.all) + (p.all == 1 ? " task" : " tasks");
  if (rate > 0) out += ", " + detail::general(rate, 3) + " a second";
  if (p.failed > 0) out += ", " + std::to_string(p.failed) + " failed";
  return p.lost > 0 ? out + ", " + std::to_string(p.lost) + " lost" : out;
}

sweep_outcome run_watched(const campaign& c, const sweep_folder& folder, sweep_options& options) {
  progress_line line("looking for results");
  std::optional<std::uint64_t> before;
  std::chrono::steady_clock::time_point began;
  options.progress = [&](const sweep_progress& p) {
    if (!before) {
      before = p.done;
      began = std::chrono::steady_clock::now();
      line.stage("tasks");
    }
    const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count();
    line.rename(progress_text(p, seconds, *before));
    // Of what is left to run: what was there before took no time.
    const std::uint64_t all = p.all - *before;
    line.update(all == 0 ? 1 : static_cast<double>(p.done - *before) / static_cast<double>(all));
  };
  return run_sweep(c, folder, options);
}

std::string text_of(const sweep_outcome& o, const campaign& c, const std::string& folder) {
  std::string out;
  for (const sweep_task& t : o.lost)
    out += "lost " + t.line + ": the process that ran this task ended " + std::to_string(most_tries) +
           " times without a verdict; to run the task by hand: " + command_of(c, t) + "\n";
  out += folder + ": " + std::to_string(o.tasks) + (o.tasks == 1 ? " task, " : " tasks, ") + std::to_string(o.before) +
         " done before, " + std::to_string(o.ran) + " run";
  const auto add = [&out](std::uint64_t n, const char* what) {
    if (n > 0) out += ", " + std::to_string(n) + " " + what;
  };
  add(o.damaged, "whose file in the folder was damaged (each was run again, or is counted as lost or left to run)");
  if (o.failed > 0)
    add(o.failed,
        ("that could not be judged (deltaproof merge " + shell_quoted(folder) + " -o FILE names them and says why)").c_str());
  add(o.lost.size(), "lost");
  add(o.left, "left to run (the same command goes on with them)");
  return out + "\n";
}

json json_of(const sweep_outcome& o, const campaign& c, const sweep_shard& shard) {
  json j = head_of(c, shard);
  j["counts"] = {{"tasks", o.tasks},   {"before", o.before},    {"ran", o.ran},  {"damaged", o.damaged},
                 {"failed", o.failed}, {"lost", o.lost.size()}, {"left", o.left}};
  j["lost"] = json::array();
  for (const sweep_task& t : o.lost) j["lost"].push_back({{"key", t.key}, {"task", t.line}, {"command", command_of(c, t)}});
  return j;
}

int run(const sweep_arguments& args, const common_options& common) {
  if (common.seed_given)
    throw format_error("sweep: --seed has no effect here; write seed into [axes] or [judging] of the campaign");
  campaign c = read_campaign(args.campaign, build_of_this());
  require_studies(c);
  const sweep_folder folder(args.folder);
  if (!args.folder.empty() && !args.propose) folder.take_proposals(c);
  if (args.list) return run_list(c, args, common);
  if (args.folder.empty()) throw format_error("sweep: give -o DIR, where results are kept");
  if (args.propose) return run_propose(c, folder, std::cin, common);
  if (args.worker) {
    work_off(c, folder, std::cin, std::cout, &stop_requested(), run_any_task);
    return 0;
  }
  if (c.search && c.proposals.empty())
    throw format_error(args.campaign + ": this search has no tasks yet: an optimiser proposes them, and " + args.folder +
                       " holds no proposals; run python -m deltaproof.sweep " + args.campaign + " -o " + args.folder);
  sweep_options options;
  if (!args.tasks.empty()) {
    if (!args.shard.empty() || args.shards)
      throw format_error("sweep: --tasks cannot be given with --shard or --shards; give the tasks, or the part");
    options.only = indices_in(args.tasks, c.count());
  } else {
    options.shard = shard_for(args);
  }
  options.threads = common.threads;
  options.stop = &stop_requested();
  options.worker = {
      std::filesystem::read_symlink("/proc/self/exe").string(), "sweep", args.campaign, "-o", args.folder, "--worker"};
  const sweep_outcome o = run_watched(c, folder, options);
  publish(common, {"sweep", text_of(o, c, args.folder),
                   json_of(o, c, options.shard).dump(1, ' ', false, json::error_handler_t::replace) + "\n"});
  if (o.failed > 0) return bad_usage;
  return o.left > 0 || !o.lost.empty() ? exit_code(verdict::undecided) : 0;
}

int run_merge(const merge_arguments& args, const common_options& common) {
  run_files files = common.files;
  if (!args.page.empty()) files.writes_in("--page", args.page, [](const std::string& name) { return name == "index.html"; });
  files.require_apart();
  const std::string baseline = args.baseline.empty() ? "" : read_file(args.baseline, suite_verdict_limit);
  sweep_report report = merge_sweep(sweep_folder(args.folder), build_of_this());
  if (!args.baseline.empty()) add_drift(report, baseline, args.baseline);
  const std::string data = to_json(report);
  write_file(args.output, data);
  if (!args.page.empty()) {
    make_folder(args.page);
    write_file(std::filesystem::path(args.page) / "index.html", to_html(report));
  }
  publish(common, {"merge", to_text(report), data});
  return report.exit_code();
}

}  // namespace

verb add_sweep(CLI::App* command, common_options& common) {
  const auto args = std::make_shared<sweep_arguments>();
  common.files.reads(command->add_option("CAMPAIGN", args->campaign, "What to run: a TOML file, see docs/sweep.md")
                         ->required()
                         ->type_name("FILE"));
  command->add_option("-o,--output", args->folder, "The folder of the results")->type_name("DIR")->check(not_empty());
  command
      ->add_option("--shard", args->shard,
                   "Run only part I of N, counted from 1. Default: the part that the environment variables GTEST_*, TEST_*, "
                   "SLURM_ARRAY_TASK_* or JOB_COMPLETION_INDEX state, else all tasks")
      ->type_name("I/N")
      ->check(not_empty());
  command->add_option("--shards", args->shards, "With JOB_COMPLETION_INDEX: how many parts there are")
      ->type_name("N")
      ->check(whole_number());
  command->add_option("--tasks", args->tasks, "Run only these tasks, by their numbers in --list: 0,5,7-9")
      ->type_name("LIST")
      ->check(not_empty());
  command->add_flag("--list", args->list, "Print the tasks, and which are done, and run none");
  command
      ->add_flag("--propose", args->propose,
                 "Read the points that a search proposes from stdin, keep them in DIR, and print the state and score of each")
      ->group("");
  command
      ->add_flag("--worker", args->worker,
                 "Run the tasks that stdin names; sweep starts its own child processes with this option")
      ->group("");
  return [args, &common] { return run(*args, common); };
}

verb add_merge(CLI::App* command, common_options& common) {
  const auto args = std::make_shared<merge_arguments>();
  common.files.reads(
      command->add_option("DIR", args->folder, "The folder that sweep filled")->required()->type_name("DIR")->check(not_empty()));
  common.files.writes(command->add_option("-o,--output", args->output, "The report to write, as JSON (deltaproof.merge/1)")
                          ->required()
                          ->type_name("FILE"));
  command->add_option("--page", args->page, "Also write the report as a page, index.html in this folder")
      ->type_name("DIR")
      ->check(not_empty());
  common.files.reads(
      command->add_option("--baseline", args->baseline, "The report (-o) of an earlier merge: say what changed since")
          ->type_name("FILE"));
  return [args, &common] { return run_merge(*args, common); };
}

}  // namespace deltaproof::cli
