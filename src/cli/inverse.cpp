// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT

#include <charconv>
#include <cmath>
#include <nlohmann/json.hpp>

#include "cli/program.hpp"
#include "deltaproof/kernel/inverse_trial.hpp"

namespace deltaproof::cli {
namespace {

using json = nlohmann::ordered_json;

struct inverse_arguments {
  std::string keys;
  std::string beta;
  std::string method;
  std::string format_name;
  std::string accumulate;
  std::string store;
  std::string chunk = "64";
  std::string key_dim = "128";
  std::string samples = "16";
  bool worst_case = false;
};

std::size_t positive(const std::string& option, const std::string& text) {
  std::size_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size() || value == 0 || value > 1'000'000) {
    throw format_error("inverse: " + option + " " + text + ": give an integer from 1 to 1000000");
  }
  return value;
}

std::string digits(double x) {
  char buffer[32];
  std::snprintf(buffer, sizeof buffer, "%.3e", x);
  return buffer;
}

json finite_or_word(double x) {
  if (std::isnan(x)) return "nan";
  if (std::isinf(x)) return x > 0 ? "inf" : "-inf";
  return x;
}

std::string line(const std::string& name, const std::string& text) {
  return name + std::string(name.size() < 13 ? 13 - name.size() : 1, ' ') + text + "\n";
}

int run(const inverse_arguments& args, const common_options& common) {
  inverse_plan plan;
  plan.method = inverse_named(args.method);
  plan.operand = format_named(args.format_name);
  plan.accumulate = args.accumulate.empty() ? plan.operand : format_named(args.accumulate);
  plan.store = args.store.empty() ? plan.operand : format_named(args.store);
  require_possible(plan);
  inverse_problem problem;
  problem.keys = key_law_named(args.keys);
  problem.beta = step_law_named(args.beta);
  problem.chunk = positive("--chunk", args.chunk);
  problem.key_dim = positive("--d", args.key_dim);
  problem.samples = positive("--samples", args.samples);
  problem.seed = common.seed;
  const inverse_trial trial = try_inverse(plan, problem, args.worst_case, common.threads);
  const inverse_verdict& v = trial.verdict;

  const std::string method = name_of(plan.method), keys = name_of(problem.keys), beta = name_of(problem.beta);
  const std::string operand(name_of(plan.operand)), accumulate(name_of(plan.accumulate)), store(name_of(plan.store));
  const std::string word = v.safe ? "safe" : "unsafe";
  const double u = unit_roundoff(plan.operand);
  std::string text = line("verdict", word + ": " + v.reason);
  text += line("inverse", method + " of " + std::to_string(problem.chunk) + " x " + std::to_string(problem.chunk) +
                              ": operands " + operand + ", accumulated in " + accumulate + ", stored in " + store);
  text +=
      line("keys", keys + ", d = " + std::to_string(problem.key_dim) + " (mean cosine " + digits(trial.mean_cosine) + "), beta " +
                       beta + "; " + std::to_string(problem.samples) + " draws, seed " + std::to_string(problem.seed));
  text += line("", "largest    times u    in");
  const auto growth_line = [&](const std::string& name, const growth& g, const std::string& note) {
    const auto column = [](std::string number) { return number + std::string(number.size() < 11 ? 11 - number.size() : 1, ' '); };
    text += line(name, column(digits(g.largest)) + column(digits(g.largest * u)) + std::string(g.stage) + note);
  };
  growth_line("predicted", trial.predicted,
              ", from the mean cosine and beta alone" + std::string(args.worst_case ? "" : "; decides"));
  growth_line("observed", v.observed, "");
  growth_line("bound", trial.bound, ", proved through |L|, roundings included" + std::string(args.worst_case ? "; decides" : ""));
  text += line("error", digits(v.error) + ", limit " + digits(v.limit) +
                            " = 8 u max(1, largest entry of the true inverse), u = " + digits(unit_roundoff(plan.store)) +
                            " of " + store);
  text += line("", digits(trial.error_unrounded) + " against the inverse of L before it was rounded to " + operand);
  text += line("true inverse", "largest entry " + digits(v.largest_entry) + ", known to " + digits(v.radius));
  text += line("again", command_line(common));

  json j{{"schema", "deltaproof.inverse/1"},
         {"method", method},
         {"keys", keys},
         {"beta", beta},
         {"chunk", problem.chunk},
         {"d", problem.key_dim},
         {"format", operand},
         {"accumulate", accumulate},
         {"store", store},
         {"samples", problem.samples},
         {"seed", problem.seed},
         {"worst_case", args.worst_case},
         {"safe", v.safe},
         {"reason", v.reason}};
  j["predicted_growth"] = finite_or_word(trial.predicted.largest);
  j["predicted_stage"] = trial.predicted.stage;
  j["observed_growth"] = finite_or_word(v.observed.largest);
  j["growth_stage"] = v.observed.stage;
  j["growth_bound"] = finite_or_word(trial.bound.largest);
  j["error"] = finite_or_word(v.error);
  j["error_unrounded"] = finite_or_word(trial.error_unrounded);
  j["limit"] = finite_or_word(v.limit);
  j["roundoff"] = u;
  j["store_roundoff"] = unit_roundoff(plan.store);
  j["largest_entry"] = v.largest_entry;
  j["radius"] = v.radius;
  j["mean_cosine"] = trial.mean_cosine;
  j["correlation"] = correlation_of(problem.keys);
  j["left_format"] = v.left_format;
  j["beyond_limit"] = v.beyond_limit;
  j["reproduce"] = command_line(common);
  output out{"inverse", text, j.dump(2) + "\n", {}, {}};
  out.cases.push_back(
      {method + " " + operand + "/" + accumulate + "/" + store + " " + keys + " beta " + beta + " chunk " + args.chunk,
       v.safe ? "" : word + ": " + v.reason, text});
  publish(common, out);
  return v.safe ? 0 : 1;
}

}  // namespace

registered_verb add_inverse(CLI::App& app, common_options& common) {
  auto* command = app.add_subcommand(
      "inverse", "Say whether an inverse of I + L is safe for such keys and steps in such formats (0 safe, 1 unsafe)");
  const auto args = std::make_shared<inverse_arguments>();
  command->add_option("--keys", args->keys, "gaussian, silu, elu1, cos=C, identical or alternating")
      ->required()
      ->type_name("LAW");
  command->add_option("--beta", args->beta, "A decimal, or U(a,b)")->required()->type_name("LAW");
  command->add_option("--method", args->method, "See: deltaproof list inverses")->required()->type_name("NAME");
  command->add_option("--format", args->format_name, "Format of the operands: fp64, fp32, tf32, fp16 or bf16")
      ->required()
      ->type_name("FORMAT");
  command->add_option("--accumulate", args->accumulate, "Format of the sums (default: that of the operands)")
      ->type_name("FORMAT");
  command->add_option("--store", args->store, "Format of the result (default: that of the operands)")->type_name("FORMAT");
  command->add_option("--chunk", args->chunk, "Rows of L (default 64)")->type_name("C");
  command->add_option("--d", args->key_dim, "Dimension of the keys (default 128)")->type_name("N");
  command->add_option("--samples", args->samples, "Draws (default 16)")->type_name("N");
  command->add_flag("--worst-case", args->worst_case, "Let the bound through |L| decide instead of the prediction");
  return {command, [args, &common] { return run(*args, common); }};
}

}  // namespace deltaproof::cli
