// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT

#include "cli/gen_for.hpp"

#include <nlohmann/json.hpp>

#include "cli/gen_folder.hpp"
#include "deltaproof/check/invariant_set.hpp"

namespace deltaproof::cli {
namespace {

/// A gate that still remembers a thousandth after 160 tokens and more, so that a state matters when it is read.
constexpr const char* slow_gate = "-0.01";
constexpr std::size_t tokens_of_set = 160;

std::string readme_text(const std::string& kind, const std::string& folder, const std::string& command) {
  return "Problems for the calls that `deltaproof invariant " + kind + "` compares, made by: " + command + R"(

Run your kernel once for each call, and save the results in this folder.
In Python, where the kernel runs (recorder.py alone is enough):
    from deltaproof import record_set      # or: from recorder import record_set
    def kernel(problem, call): ...         # returns dict(o=..., final_state=..., kernel=..., path=...)
    if __name__ == "__main__":             # repeat makes each call in a process of its own
        record_set(FOLDER, kernel)
By hand: manifest.json lists the calls in their order. For each call, read the file that its key `problem` names, run your kernel
on it, and save the outputs in the file that its key `result` names (docs/exchange-format.md).
If the key `tokens` is not null, the file `problem` does not exist yet. Make it before you run the call: take the tensors of the
file that `tokens` names, and add a tensor initial_state. `state` says which state that is: the one that your server restores
from the call `after`, with the first `kept[s]` tokens of each sequence s of that call processed.
If path, chunk_size or flush_every is not null, run your kernel with that value.
When every result is in this folder, judge it:

deltaproof invariant )" +
         kind + " " + folder + "\n";
}

/// Refuses numbers that the calls of this invariant do not depend on.
void require_used(invariant_kind kind, const gen_for_arguments& args) {
  const auto refuse = [&args](const std::string& option) {
    return format_error("gen: " + option + " has no effect with --for " + args.kind + "; leave it out");
  };
  if (args.calls && !counts_calls(kind)) throw refuse("--calls");
  if (args.drafted && kind != invariant_kind::rollback) throw refuse("--drafted");
}

}  // namespace

int run_gen_for(const gen_for_arguments& args, const common_options& common) {
  const invariant_kind kind = invariant_named(args.kind);
  require_used(kind, args);
  run_files files = common.files;
  files.writes_in("--dir", args.folder, [](const std::string& name) {
    return name == manifest_name || name == "README.txt" || name.ends_with(".safetensors");
  });
  files.require_apart();
  const std::vector<std::string> earlier = earlier_files(args.folder);
  set_options set;
  set.calls = args.calls.value_or(set.calls);
  set.drafted = args.drafted.value_or(set.drafted);
  generation g = args.wanted;
  if (!g.op) g.op = op_kind::gated_delta_rule;
  if (!g.gate && gates_of(*g.op) != gate_axes::none && g.regime == "typical") g.gate = slow_gate;
  if (!g.tokens && !g.cu_seqlens) g.tokens = tokens_of_set;
  if (!g.initial_state) g.initial_state = "normal";
  if (kind == invariant_kind::batch && !g.batch && !g.cu_seqlens) g.batch = 3;
  if (kind == invariant_kind::varlen && !g.cu_seqlens) {
    if (*g.tokens < 52)
      throw format_error(
          "gen: --for varlen makes sequences of 50, 1 and --T - 51 tokens, so --T must be at least 52; or give "
          "--cu-seqlens");
    g.cu_seqlens = std::vector<std::int64_t>{0, 50, 51, static_cast<std::int64_t>(*g.tokens)};
  }
  if (kind == invariant_kind::varlen) g.tokens.reset();
  g.cotangents = g.cotangents || kind == invariant_kind::gradients;
  const generation completed = complete(g);
  generation drafts = completed;
  drafts.seed = completed.seed + 1;
  const std::vector<set_call> calls = problems_for(kind, generate(completed), generate(drafts), set);
  const std::string options = options_text(completed);
  unfinished_folder folder{std::filesystem::path(args.folder)};
  for (const set_call& c : calls) {
    if (!c.problem_of.empty()) continue;
    folder.add(c.name + (c.after.empty() ? ".problem.safetensors" : ".tokens.safetensors"), problem_bytes(c.given));
  }
  folder.add("README.txt", readme_text(args.kind, args.folder, command_line(common)));
  folder.finish(earlier, set_manifest(kind, calls, options));
  const std::string text = args.folder + ": " + std::to_string(calls.size()) + (calls.size() == 1 ? " call" : " calls") +
                           " for invariant " + args.kind + ", made with " + options +
                           "\nrecord them as README.txt in that folder says, then run: deltaproof invariant " + args.kind + " " +
                           args.folder + "\n";
  nlohmann::ordered_json j{{"schema", "deltaproof.generation/1"},
                           {"output", args.folder},
                           {"options", options},
                           {"invariant", args.kind},
                           {"calls", nlohmann::ordered_json::array()}};
  for (const set_call& c : calls) j["calls"].push_back(c.name);
  publish(common, {"gen", text, j.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n"});
  return 0;
}

}  // namespace deltaproof::cli
