// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT

#include "cli/gen_all.hpp"

#include <algorithm>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>

#include "cli/gen_folder.hpp"
#include "deltaproof/files/exchange.hpp"
#include "deltaproof/files/text_hash.hpp"
#include "support/text.hpp"

namespace deltaproof::cli {
namespace {

using json = nlohmann::ordered_json;

/// Two chunks of 64 and a part of one: small, and every path between chunks is taken.
constexpr std::size_t default_tokens = 160;

struct made_case {
  std::string name, options;
};
struct skipped_case {
  std::string name, why;
};

std::string suite_text(const std::vector<made_case>& made, const std::string& command) {
  std::string text =
      "# Made by: " + command +
      "\n# Keys of a case: problem, result, name, plan, no_plan, expect, accuracy.\n"
      "# A plan may be left out where the result's metadata names a kernel that a preset lists: deltaproof list plans\n";
  for (const made_case& c : made) {
    text += "\n# deltaproof gen " + c.options + "\n[[case]]\nname = \"" + c.name + "\"\nproblem = \"" + c.name +
            ".problem.safetensors\"\nresult = \"" + c.name + ".result.safetensors\"\n";
  }
  return text;
}

std::string readme_text(std::size_t cases, const std::string& command) {
  return detail::counted(cases, "problem") + " for a delta-rule kernel, made by: " + command + "\n" +
         R"(1. Copy this folder to the GPU machine. NAME.problem.safetensors holds q, k, v, beta and, where the case has them, g, initial_state, cu_seqlens.
2. Its metadata names op, scale, qk_l2norm, rule, beta_activation and num_householder. Skip the problems that your kernel does not support.
3. Run the kernel once on each problem, on these very tensors: no cast, no padding, no other seed.
4. Save NAME.result.safetensors beside it: o, and final_state as [N, HV, K, V] if there is one. In Python:
   safetensors.torch.save_file({"o": o, "final_state": ht}, path, metadata={"format": "deltaproof.result/1", "kernel": KERNEL_NAME, "path": "chunk", "chunk_size": "64"})
5. If you also save A, Ai, w, u, h and v_new of a chunk kernel, the verdict names the first bad stage.
   Shapes: docs/exchange-format.md of deltaproof.
6. Bring the results back. Where no preset lists the kernel, add plan = "..." to its cases in suite.toml; deltaproof list plans names them.
7. deltaproof check suite.toml --skip-missing --json then.json       exit 0: all as expected, 1: refuted, 2: bad input, 3: undecided or vacuous
8. After a change of the kernel: deltaproof check suite.toml --skip-missing --baseline then.json
)";
}

}  // namespace

int run_gen_all(const gen_all_arguments& args, const common_options& common) {
  run_files files = common.files;
  files.writes_in("--all", args.folder, [](const std::string& name) {
    return name == manifest_name || name == "suite.toml" || name == "README.txt" || name.ends_with(".problem.safetensors");
  });
  files.require_apart();
  const std::vector<std::string> earlier = earlier_files(args.folder);
  if (args.regime) (void)regime_named(*args.regime);
  const std::vector<format> dtypes = args.dtype ? std::vector<format>{*args.dtype} : std::vector<format>{bf16, fp16, fp32};
  std::vector<generation> wanted;
  for (const regime_info& regime : regimes()) {
    if (args.regime && *args.regime != regime.name) continue;
    for (const auto& [op, op_name] : op_names) {
      if (args.op && *args.op != op) continue;
      for (const format& dtype : dtypes) {
        generation g = args.wanted;
        g.regime = regime.name;
        g.op = op;
        g.dtype = dtype;
        const bool own_length = regime.name == "tails" || regime.name == "varlen" || g.cu_seqlens;
        if (!g.tokens && !own_length) g.tokens = default_tokens;
        wanted.push_back(g);
      }
    }
  }

  const std::string command = command_line(common);
  std::vector<made_case> made;
  std::vector<skipped_case> skipped;
  std::map<std::string, std::string> same;  // hash of the tensors -> the case that has them
  {
    unfinished_folder folder{std::filesystem::path(args.folder)};
    progress_line line("problems");
    for (std::size_t i = 0; i < wanted.size(); ++i) {
      if (stop_requested()) {
        say(common, "gen: " + why_stopped(common) + " after " + std::to_string(i) + " of " + std::to_string(wanted.size()) +
                        " problems; nothing was written\n");
        return 3;
      }
      line.update(static_cast<double>(i) / static_cast<double>(wanted.size()));
      const generation& g = wanted[i];
      const std::string name = g.regime + "-" + std::string(name_of(*g.op)) + "-" + std::string(name_of(*g.dtype));
      try {
        const generation completed = complete(g);
        problem p = generate(completed);
        const std::string note = std::exchange(p.note, "");
        // A regime that is about its gate is another regime under an op without one.
        const auto [known, fresh] = same.try_emplace(sha256_hex(problem_bytes(p)), name);
        if (!fresh) {
          skipped.push_back({name, "the same tensors as " + known->second});
          continue;
        }
        p.note = note;
        folder.add(name + ".problem.safetensors", problem_bytes(p));
        made.push_back({name, options_text(completed)});
      } catch (const format_error& e) {
        skipped.push_back({name, e.what()});
      } catch (const shape_error& e) {
        skipped.push_back({name, e.what()});
      } catch (const domain_error& e) {
        skipped.push_back({name, e.what()});
      }
    }
    if (made.empty()) throw format_error("gen: no problem could be made: " + skipped.front().name + ": " + skipped.front().why);
    folder.add("suite.toml", suite_text(made, command));
    folder.add("README.txt", readme_text(made.size(), command));
    folder.finish(earlier);
  }

  std::string text;
  for (const skipped_case& s : skipped) text += "skipped " + s.name + ": " + s.why + "\n";
  text += args.folder + ": " + detail::counted(made.size(), "problem") + ", suite.toml, README.txt and " + manifest_name + "; " +
          std::to_string(skipped.size()) + " of " + std::to_string(wanted.size()) +
          " combinations of regime, op and dtype skipped\n";
  json j{{"schema", "deltaproof.generation/1"}, {"output", args.folder}, {"cases", json::array()}, {"skipped", json::array()}};
  for (const made_case& c : made) j["cases"].push_back({{"name", c.name}, {"options", c.options}});
  for (const skipped_case& s : skipped) j["skipped"].push_back({{"name", s.name}, {"reason", s.why}});
  publish(common, {"gen", text, j.dump(2, ' ', false, json::error_handler_t::replace) + "\n"});
  return 0;
}

}  // namespace deltaproof::cli
