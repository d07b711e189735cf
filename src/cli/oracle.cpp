// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <nlohmann/json.hpp>

#include "cli/program.hpp"
#include "deltaproof/kernel/exchange.hpp"
#include "deltaproof/kernel/write_file.hpp"
#include "deltaproof/oracle/reference.hpp"
#include "number/text.hpp"

namespace deltaproof::cli {
namespace {

using json = nlohmann::ordered_json;

struct oracle_arguments {
  std::string problem;
  std::string output;
  std::string round = "fp64";
  int bits = 1024;
};

/// No more of the elements that nothing decided are listed; all are counted.
constexpr std::size_t most_listed = 1000;

/// One tensor of the answer as it comes in, head by head; NaN where nothing decided.
struct rounded_tensor {
  std::vector<std::size_t> shape;
  std::vector<double> values;
  double radius = 0;
  std::size_t undecided = 0;
  std::vector<std::size_t> listed;  // flat indices, in order

  explicit rounded_tensor(std::vector<std::size_t> of) : shape(std::move(of)), values(element_count(shape), std::nan("")) {}

  void place(std::size_t at, const reference_tensor& from, const std::vector<double>& rounded, std::size_t first,
             std::size_t count) {
    for (std::size_t i = first; i < std::min(first + count, rounded.size()); ++i) {
      values[at + i - first] = rounded[i];
      radius = std::max(radius, from.radius[i]);
    }
  }
  /// Heads come in any order, the list is in that of the file.
  void count() {
    for (std::size_t i = 0; i < values.size(); ++i) {
      if (!std::isnan(values[i])) continue;
      if (undecided++ < most_listed) listed.push_back(i);
    }
  }
  [[nodiscard]] json indices() const {
    json list = json::array();
    for (const std::size_t flat : listed) {
      json index = json::array();
      std::size_t below = values.size(), rest = flat;
      for (const std::size_t extent : shape) {
        below /= extent;
        index.push_back(rest / below);
        rest %= below;
      }
      list.push_back(std::move(index));
    }
    return list;
  }
};

std::string names_and_counts(const std::map<std::string, std::size_t>& counts) {
  std::string text;
  for (const auto& [name, count] : counts) text += (text.empty() ? "" : ", ") + name + ": " + std::to_string(count);
  return text.empty() ? "none" : text;
}

int run(const oracle_arguments& args, const common_options& common) {
  require_writable(args.output);
  const format to = format_named(args.round);
  notes_list notes;
  std::string problem_hash;
  const problem p = [&] {
    const safetensors_file source = read_safetensors(args.problem);
    problem_hash = sha256_hex(source.bytes());
    return parse_problem(source, notes);
  }();
  const auto sequences = p.sequences();
  const std::size_t heads = p.value_heads(), cols = p.value_dim(), keys = p.key_dim();
  question ask;
  ask.round_output = ask.round_state = to;
  ask.max_bits = args.bits;
  ask.always_exact = true;
  ask.threads = common.threads;
  ask.stop = &stop_requested();
  rounded_tensor o({p.batch(), p.tokens(), heads, cols}), state({sequences.size(), heads, keys, cols});
  reference ref;
  {
    progress_line line("reference");
    ask.progress = [&line](std::size_t done, std::size_t all) {
      line.update(static_cast<double>(done) / static_cast<double>(all));
    };
    ref = solve_by_head(p, ask, [&](const solved_head& head) {
      const sequence_range& range = sequences[head.sequence];
      const std::size_t first = range.batch * p.tokens() + range.first_token;
      for (std::size_t t = 0; t < range.tokens; ++t)
        o.place(((first + t) * heads + head.value_head) * cols, head.o, head.rounded_o, t * cols, cols);
      state.place((head.sequence * heads + head.value_head) * keys * cols, head.final_state, head.rounded_state, 0, keys * cols);
    });
  }
  if (ref.stopped) {
    say(common, "oracle: stopped before the reference was complete; nothing was written\n");
    return 3;
  }
  o.count();
  state.count();
  result out;
  out.o = tensor::from_doubles(to, o.shape, o.values, "o");
  out.final_state = tensor::from_doubles(to, state.shape, state.values, "final_state");
  out.kernel = "deltaproof oracle";
  out.path = path_kind::reference;
  out.problem_sha256 = problem_hash;
  out.producer = "deltaproof " DELTAPROOF_VERSION ", correctly rounded to " + args.round;
  safetensors_metadata extra;
  json j{{"schema", "deltaproof.oracle/1"},
         {"output", args.output},
         {"round", args.round},
         {"bits", args.bits},
         {"tiers", ref.tiers},
         {"notes", notes}};
  std::string text = args.output + ": o and final_state of " + args.problem + ", correctly rounded to " + args.round + "\n";
  for (const auto& [name, part, decided] :
       {std::tuple{"o", &o, &ref.o_decided}, std::tuple{"final_state", &state, &ref.state_decided}}) {
    const std::string key = name, radius = detail::general(part->radius, 17), who = names_and_counts(*decided);
    extra.emplace_back("radius." + key, radius);
    extra.emplace_back("tier." + key, who);
    extra.emplace_back("undecided." + key, std::to_string(part->undecided));
    if (part->undecided > 0) extra.emplace_back("undecided." + key + ".indices", part->indices().dump());
    j["radius"][key] = radius;
    j["decided"][key] = *decided;
    j["undecided"][key] = part->undecided;
    j["undecided_indices"][key] = part->indices();
    text += key + ": elements by the tier that decided them: " + who + "; largest radius before rounding " + radius + "\n";
  }
  if (!ref.fallbacks.empty()) extra.emplace_back("fallbacks", names_and_counts(ref.fallbacks));
  j["fallbacks"] = ref.fallbacks;
  write_result(args.output, out, extra);
  if (!ref.fallbacks.empty()) text += "fall-backs: " + names_and_counts(ref.fallbacks) + "\n";
  if (o.undecided + state.undecided > 0) {
    text += std::to_string(o.undecided) + " outputs and " + std::to_string(state.undecided) +
            " state entries could not be rounded with certainty (ties that are not dyadic, zeros, or magnitudes beyond fp64); "
            "they are NaN in the file, whose metadata lists the first " +
            std::to_string(most_listed) + " of each\n";
  }
  for (const auto& note : notes) text += "note: " + note + "\n";
  publish(common, {"oracle", text, j.dump(2, ' ', false, json::error_handler_t::replace) + "\n"});
  return o.undecided + state.undecided > 0 ? 3 : 0;
}

}  // namespace

registered_verb add_oracle(CLI::App& app, common_options& common) {
  auto* command = app.add_subcommand("oracle", "Write the correctly rounded true outputs of a problem");
  command->footer(
      "Precision rises by value row until every element is decided: fp64, double-double, fixed point with 128, 256, 512 and 1024 "
      "bits, and exact\n"
      "dyadic numbers (no gate or gates of 0 and -inf, no in-kernel normalisation, dyadic steps; at most 32768 bits a number). "
      "What none\n"
      "decides is NaN in the file, counted and listed there. Metadata: radius.*, tier.*, undecided.*, fallbacks.");
  const auto args = std::make_shared<oracle_arguments>();
  command->add_option("PROBLEM", args->problem, "deltaproof.problem/1")->required();
  command->add_option("-o,--output", args->output, "deltaproof.result/1 to write")->required()->type_name("FILE");
  command->add_option("--round", args->round, "Format of the outputs")
      ->check(CLI::IsMember({"bf16", "fp16", "fp32", "fp64"}))
      ->type_name("FORMAT");
  command->add_option("--bits", args->bits, "Highest working precision; exact numbers are tried whatever it says")
      ->check(CLI::Range(53, 1024))
      ->type_name("N")
      ->capture_default_str();
  return {command, [args, &common] { return run(*args, common); }};
}

}  // namespace deltaproof::cli
