// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "cli/program.hpp"
#include "deltaproof/kernel/exchange.hpp"
#include "deltaproof/oracle/reference.hpp"
#include "number/text.hpp"

namespace deltaproof::cli {
namespace {

using json = nlohmann::ordered_json;

struct oracle_arguments {
  std::string problem;
  std::string output;
  std::string round = "fp64";
};

/// Elements rounded to `to`; NaN where no precision decided, counted.
tensor rounded_tensor(const reference_tensor& t, const format& to, std::string name, std::size_t& undecided, double& radius) {
  std::vector<double> values(t.value.size());
  for (std::size_t i = 0; i < values.size(); ++i) {
    radius = std::max(radius, t.radius[i]);
    const auto decided = decided_rounding(t, i, to);
    if (!decided) ++undecided;
    values[i] = decided.value_or(std::nan(""));
  }
  return tensor::from_doubles(to, t.shape, values, std::move(name));
}

int run(const oracle_arguments& args, const common_options& common) {
  const format to = format_named(args.round);
  notes_list notes;
  const safetensors_file source = read_safetensors(args.problem);
  const problem p = parse_problem(source, notes);
  question ask;
  ask.round_output = ask.round_state = to;
  ask.threads = common.threads;
  ask.stop = &stop_requested();
  reference ref;
  {
    progress_line line("reference");
    ask.progress = [&line](std::size_t done, std::size_t all) { line.update(static_cast<double>(done) / static_cast<double>(all)); };
    ref = solve(p, ask);
  }
  if (ref.stopped) {
    say(common, "oracle: stopped before the reference was complete; nothing was written\n");
    return 3;
  }
  std::size_t undecided_o = 0, undecided_state = 0;
  double radius_o = 0, radius_state = 0;
  result out;
  out.o = rounded_tensor(ref.o, to, "o", undecided_o, radius_o);
  out.final_state = rounded_tensor(ref.final_state, to, "final_state", undecided_state, radius_state);
  out.kernel = "deltaproof oracle";
  out.path = path_kind::reference;
  out.problem_sha256 = sha256_hex(source.bytes());
  out.producer = "deltaproof " DELTAPROOF_VERSION ", correctly rounded to " + args.round;
  std::string tiers;
  for (const auto& [name, heads] : ref.tiers) tiers += (tiers.empty() ? "" : ", ") + name + ": " + std::to_string(heads);
  write_result(args.output, out,
               {{"radius.o", detail::general(radius_o, 17)}, {"radius.final_state", detail::general(radius_state, 17)}, {"tier.o", tiers}, {"tier.final_state", tiers},
                {"undecided.o", std::to_string(undecided_o)}, {"undecided.final_state", std::to_string(undecided_state)}});
  std::string text = args.output + ": o and final_state of " + args.problem + ", correctly rounded to " + args.round + "\n";
  text += "heads by tier: " + tiers + "; largest radius before rounding: o " + detail::general(radius_o, 17) + ", final_state " + detail::general(radius_state, 17) + "\n";
  if (undecided_o + undecided_state > 0) {
    text += std::to_string(undecided_o) + " outputs and " + std::to_string(undecided_state) + " state entries could not be rounded with certainty (ties, zeros, or magnitudes beyond fp64); they are NaN in the file\n";
  }
  for (const auto& note : notes) text += "note: " + note + "\n";
  json j{{"schema", "deltaproof.oracle/1"}, {"output", args.output}, {"round", args.round}, {"tiers", ref.tiers}, {"notes", notes}};
  j["radius"] = {{"o", detail::general(radius_o, 17)}, {"final_state", detail::general(radius_state, 17)}};
  j["undecided"] = {{"o", undecided_o}, {"final_state", undecided_state}};
  publish(common, {"oracle", text, j.dump(2, ' ', false, json::error_handler_t::replace) + "\n"});
  return undecided_o + undecided_state > 0 ? 3 : 0;
}

}  // namespace

registered_verb add_oracle(CLI::App& app, common_options& common) {
  auto* command = app.add_subcommand("oracle", "Write the correctly rounded true outputs of a problem");
  const auto args = std::make_shared<oracle_arguments>();
  command->add_option("PROBLEM", args->problem, "deltaproof.problem/1")->required();
  command->add_option("-o,--output", args->output, "deltaproof.result/1 to write")->required()->type_name("FILE");
  command->add_option("--round", args->round, "Format of the outputs")->check(CLI::IsMember({"bf16", "fp16", "fp32", "fp64"}))->type_name("FORMAT");
  return {command, [args, &common] { return run(*args, common); }};
}

}  // namespace deltaproof::cli
