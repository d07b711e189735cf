// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT

#include <charconv>
#include <cmath>
#include <nlohmann/json.hpp>

#include "cli/program.hpp"
#include "cli/verbs.hpp"
#include "deltaproof/inverse/inverse_trial.hpp"
#include "support/json_number.hpp"
#include "support/text.hpp"

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
  std::string merge;
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

format format_of(const std::string& option, const std::string& name) {
  try {
    return format_named(name);
  } catch (const format_error&) {
    throw format_error("inverse: " + option + " " + name + ": there is no such format; use fp64, fp32, tf32, fp16 or bf16");
  }
}

// What a workstation can spare beside its other work.
constexpr double most_bytes = 4.0 * 1024 * 1024 * 1024;

void require_memory(const inverse_problem& problem, unsigned threads) {
  const double bytes = bytes_needed(problem, threads);
  if (bytes <= most_bytes) return;
  throw domain_error("inverse: " + std::to_string(problem.samples) + " draws of " + std::to_string(problem.chunk) + " x " +
                     std::to_string(problem.chunk) + " from keys of d = " + std::to_string(problem.key_dim) + " need about " +
                     detail::general(bytes / (1024 * 1024 * 1024), 3) + " GiB, more than the " +
                     detail::general(most_bytes / (1024 * 1024 * 1024), 3) + " GiB allowed; take a smaller --chunk" +
                     (problem.samples > 1 ? ", fewer --samples" : "") + (threads != 1 ? ", or one thread (--threads 1)" : ""));
}

std::string line(const std::string& name, const std::string& text) { return detail::padded(name, 13) + text + "\n"; }

struct inverse_names {
  std::string method, keys, beta, operand, accumulate, store, merge;

  inverse_names(const inverse_plan& plan, const inverse_problem& problem)
      : method(name_of(plan.method)),
        keys(name_of(problem.keys)),
        beta(name_of(problem.beta)),
        operand(name_of(plan.operand)),
        accumulate(name_of(plan.accumulate)),
        store(name_of(plan.store)),
        merge(name_of(plan.merge.value_or(plan.operand))) {}
};

std::string word_of(const inverse_trial& trial) { return trial.verdict.safe ? "safe" : "unsafe"; }

std::string text_of(const inverse_trial& trial, const inverse_plan& plan, const inverse_problem& problem,
                    const std::string& again) {
  const inverse_verdict& v = trial.verdict;
  const auto [method, keys, beta, operand, accumulate, store, merge] = inverse_names(plan, problem);
  const double u = unit_roundoff(coarsest_operand(plan));
  std::string text = line("verdict", word_of(trial) + ": " + v.reason);
  text += line("inverse", method + " of " + std::to_string(problem.chunk) + " x " + std::to_string(problem.chunk) +
                              ": operands " + operand + (merge == operand ? "" : ", merge operands " + merge) +
                              ", accumulated in " + accumulate + ", stored in " + store);
  text += line("keys", keys + ", d = " + std::to_string(problem.key_dim) + " (mean cosine " +
                           detail::scientific(trial.mean_cosine) + "), beta " + beta + "; " + std::to_string(problem.samples) +
                           (problem.samples == 1 ? " draw, seed " : " draws, seed ") + std::to_string(problem.seed));
  text += line("", "largest    times u    in");
  const auto growth_line = [&](const std::string& name, const growth& g, const std::string& note) {
    text += line(name, detail::padded(detail::scientific(g.largest), 11) + detail::padded(detail::scientific(g.largest * u), 11) +
                           std::string(g.stage) + note);
  };
  const auto decides = [&](std::string_view what) {
    return std::string(v.decided_by == what ? "; the verdict uses this one" : "");
  };
  growth_line("predicted", trial.predicted, ", from the nominal cosine of the keys, d and beta alone" + decides("prediction"));
  growth_line("observed", v.observed, ", in these draws" + decides("observation"));
  growth_line("bound", trial.bound, ", proved from |L| for these draws, rounding errors included" + decides("bound"));
  text +=
      line("error", detail::scientific(v.error) + ", limit " + detail::scientific(v.limit) +
                        " = 8 u max(1, largest entry of the true inverse), u = " + detail::scientific(unit_roundoff(plan.store)) +
                        " of " + store);
  text += line(
      "", detail::scientific(trial.error_unrounded) + " against the inverse of L as drawn, before L was rounded to " + operand);
  text += line("true inverse", "largest entry " + detail::scientific(v.largest_entry) + ", entries known to within " +
                                   detail::scientific(v.radius));
  text += line("again", again);
  return text;
}

json json_of(const inverse_trial& trial, const inverse_plan& plan, const inverse_problem& problem, bool worst_case,
             const std::string& again) {
  const inverse_verdict& v = trial.verdict;
  const auto [method, keys, beta, operand, accumulate, store, merge] = inverse_names(plan, problem);
  json j{{"schema", "deltaproof.inverse/1"},
         {"method", method},
         {"keys", keys},
         {"beta", beta},
         {"chunk", problem.chunk},
         {"d", problem.key_dim},
         {"format", operand},
         {"merge", merge},
         {"accumulate", accumulate},
         {"store", store},
         {"samples", problem.samples},
         {"seed", problem.seed},
         {"worst_case", worst_case},
         {"safe", v.safe},
         {"reason", v.reason}};
  j["predicted_growth"] = detail::json_number(trial.predicted.largest);
  j["predicted_stage"] = trial.predicted.stage;
  j["observed_growth"] = detail::json_number(v.observed.largest);
  j["growth_stage"] = v.observed.stage;
  j["growth_decided_by"] = v.decided_by;
  j["growth_bound"] = detail::json_number(trial.bound.largest);
  j["error"] = detail::json_number(v.error);
  j["error_unrounded"] = detail::json_number(trial.error_unrounded);
  j["limit"] = detail::json_number(v.limit);
  j["roundoff"] = unit_roundoff(coarsest_operand(plan));
  j["store_roundoff"] = unit_roundoff(plan.store);
  j["largest_entry"] = v.largest_entry;
  j["radius"] = v.radius;
  j["mean_cosine"] = trial.mean_cosine;
  j["correlation"] = correlation_of(problem.keys);
  j["left_format"] = v.left_format;
  j["beyond_limit"] = v.beyond_limit;
  j["reproduce"] = again;
  return j;
}

int run(const inverse_arguments& args, const common_options& common) {
  inverse_plan plan;
  plan.method = inverse_named(args.method);
  plan.operand = format_of("--format", args.format_name);
  plan.accumulate = args.accumulate.empty() ? plan.operand : format_of("--accumulate", args.accumulate);
  plan.store = args.store.empty() ? plan.operand : format_of("--store", args.store);
  if (!args.merge.empty()) plan.merge = format_of("--merge-format", args.merge);
  if (plan.merge && plan.method.block == 0)
    throw format_error("inverse: --merge-format has no effect: method " + args.method + " merges nothing; leave it out");
  require_possible(plan);
  inverse_problem problem;
  problem.keys = key_law_named(args.keys);
  problem.beta = step_law_named(args.beta);
  problem.chunk = positive("--chunk", args.chunk);
  problem.key_dim = positive("--d", args.key_dim);
  problem.samples = positive("--samples", args.samples);
  problem.seed = common.seed;
  require_memory(problem, common.threads);
  const inverse_trial trial = try_inverse(plan, problem, args.worst_case, common.threads, &stop_requested());
  if (trial.stopped) {
    say(common, "inverse: " + why_stopped(common) + "; stopped before there was a verdict\n");
    return 3;
  }
  const inverse_verdict& v = trial.verdict;
  const std::string again = command_line(common), text = text_of(trial, plan, problem, again);
  const inverse_names name(plan, problem);
  output out{"inverse", text, json_of(trial, plan, problem, args.worst_case, again).dump(2) + "\n", {}, {}};
  out.cases.push_back({name.method + " " + name.operand + (name.merge == name.operand ? "" : "+" + name.merge) + "/" +
                           name.accumulate + "/" + name.store + " " + name.keys + " beta " + name.beta + " chunk " + args.chunk,
                       v.safe ? "" : word_of(trial) + ": " + v.reason, text});
  publish(common, out);
  return v.safe ? 0 : 1;
}

}  // namespace

verb add_inverse(CLI::App* command, common_options& common) {
  const auto args = std::make_shared<inverse_arguments>();
  command
      ->add_option("--keys", args->keys,
                   "Kind of keys: gaussian, silu, elu1 (elu(x) + 1), cos=C (mean cosine C), identical (one key) or alternating "
                   "(k, -k, k, ...)")
      ->required()
      ->type_name("DISTRIBUTION");
  command->add_option("--beta", args->beta, "beta of every row: a decimal, or U(a,b), drawn uniformly from a to b")
      ->required()
      ->type_name("DISTRIBUTION");
  command->add_option("--method", args->method, "Algorithm of the inverse (deltaproof list inverses)")
      ->required()
      ->type_name("INVERSE");
  command->add_option("--format", args->format_name, "Format of the operands: fp64, fp32, tf32, fp16 or bf16")
      ->required()
      ->type_name("FORMAT");
  command->add_option("--accumulate", args->accumulate, "Format of the sums (default: that of the operands)")
      ->check(not_empty())
      ->type_name("FORMAT");
  command->add_option("--store", args->store, "Format that the inverse is stored in (default: that of the operands)")
      ->check(not_empty())
      ->type_name("FORMAT");
  command
      ->add_option("--merge-format", args->merge,
                   "Format of the operands in the products that merge diagonal blocks (default: that of --format)")
      ->check(not_empty())
      ->type_name("FORMAT");
  command->add_option("--chunk", args->chunk, "Rows of L (default 64)")->type_name("C");
  command->add_option("--d", args->key_dim, "Dimension of the keys (default 128)")->type_name("N");
  command->add_option("--samples", args->samples, "Draws (default 16)")->type_name("N");
  command->add_flag(
      "--worst-case", args->worst_case,
      "Judge the intermediates by their bound, proved from |L| of the drawn keys, in place of the larger of their predicted and "
      "observed size");
  return [args, &common] { return run(*args, common); };
}

}  // namespace deltaproof::cli
