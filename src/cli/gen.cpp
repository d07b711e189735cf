// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT

#include <charconv>
#include <nlohmann/json.hpp>

#include "cli/gen_all.hpp"
#include "cli/gen_for.hpp"
#include "cli/program.hpp"
#include "cli/verbs.hpp"
#include "deltaproof/files/exchange.hpp"
#include "deltaproof/inputs/regimes.hpp"

namespace deltaproof::cli {
namespace {

struct gen_arguments {
  std::string output;
  std::string all;
  std::string invariant, folder;
  std::optional<std::size_t> calls, drafted;
  bool cotangents = false;
  std::optional<std::string> regime, op, rule, dtype, beta, gate, initial_state, law, cu_seqlens;
  std::optional<std::size_t> batch, tokens, key_dim, value_dim, key_heads, value_heads, num_householder;
};

std::vector<std::int64_t> offsets(const std::string& text) {
  std::vector<std::int64_t> out;
  std::size_t at = 0;
  while (at < text.size()) {
    const std::size_t comma = std::min(text.find(',', at), text.size());
    std::int64_t value = 0;
    const auto [end, error] = std::from_chars(text.data() + at, text.data() + comma, value);
    if (error != std::errc{} || end != text.data() + comma) {
      throw format_error("gen: --cu-seqlens " + text + ": '" + text.substr(at, comma - at) +
                         "' is not an integer; write for example 0,5,16");
    }
    out.push_back(value);
    at = comma + 1;
  }
  return out;
}

format dtype_named(const std::string& name) {
  try {
    return format_named(name);
  } catch (const format_error&) {
    throw format_error("--dtype " + name + " is not known; use bf16, fp16, fp32 or fp64");
  }
}

int run(const gen_arguments& args, const common_options& common) {
  if (args.invariant.empty() != args.folder.empty())
    throw format_error("gen: --for INVARIANT and --dir DIR belong together; give both or neither");
  if ((args.output.empty() ? 0 : 1) + (args.all.empty() ? 0 : 1) + (args.folder.empty() ? 0 : 1) != 1) {
    throw format_error(
        "gen: give exactly one of these: -o FILE for one problem, --all DIR for one problem of each regime, op and dtype, or "
        "--for INVARIANT --dir DIR for the calls of an invariant");
  }
  if (args.invariant.empty() && (args.calls || args.drafted))
    throw format_error("gen: --calls and --drafted belong to --for; give --for, or leave them out");
  generation g;
  g.regime = args.regime.value_or(g.regime);
  g.seed = common.seed_given ? common.seed : 0;
  if (args.op) g.op = op_named(*args.op);
  if (args.rule) g.rule = rule_named(*args.rule);
  if (args.dtype) g.dtype = dtype_named(*args.dtype);
  g.beta = args.beta;
  g.gate = args.gate;
  g.initial_state = args.initial_state;
  g.law = args.law;
  if (args.cu_seqlens) g.cu_seqlens = offsets(*args.cu_seqlens);
  g.batch = args.batch;
  g.tokens = args.tokens;
  g.key_dim = args.key_dim;
  g.value_dim = args.value_dim;
  g.key_heads = args.key_heads;
  g.value_heads = args.value_heads;
  g.num_householder = args.num_householder;
  g.cotangents = args.cotangents;
  if (!args.all.empty()) return run_gen_all({args.all, g, args.regime, g.op, g.dtype}, common);
  if (!args.invariant.empty()) return run_gen_for({args.invariant, args.folder, g, args.calls, args.drafted}, common);
  const generation completed = complete(g);
  write_problem(args.output, generate(completed));
  const std::string text = "deltaproof gen " + options_text(completed) + " -o " + args.output + "\n";
  const nlohmann::ordered_json j{
      {"schema", "deltaproof.generation/1"}, {"output", args.output}, {"options", options_text(completed)}};
  publish(common, {"gen", text, j.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n"});
  return 0;
}

}  // namespace

verb add_gen(CLI::App* command, common_options& common) {
  const auto args = std::make_shared<gen_arguments>();
  common.files.writes(
      command->add_option("-o,--output", args->output, "The problem file to write (deltaproof.problem/1)")->type_name("FILE"));
  command
      ->add_option("--all", args->all,
                   "Instead of -o: the folder to write, with one problem for each regime, op and dtype (bf16, fp16, fp32) and "
                   "the suite that judges their results; --regime, --op and --dtype select some of them")
      ->type_name("DIR")
      ->check(not_empty());
  command
      ->add_option("--for", args->invariant,
                   "Write the problems of all calls that this invariant compares, and manifest.json, to the folder --dir, which "
                   "record_set and deltaproof invariant KIND DIR read (deltaproof invariant --help lists the invariants)")
      ->type_name("INVARIANT")
      ->check(not_empty());
  command
      ->add_option("--dir", args->folder,
                   "With --for: the folder to write; it must be new, empty, or unchanged since gen wrote it")
      ->type_name("DIR")
      ->check(not_empty());
  command
      ->add_option("--calls", args->calls,
                   "With --for split, snapshot, cp or prefix: number of parts; with --for repeat: number of repetitions (default "
                   "3 for each)")
      ->type_name("N")
      ->check(whole_number());
  command
      ->add_option("--drafted", args->drafted, "With --for rollback: number of drafted tokens that are not accepted (default 5)")
      ->type_name("N")
      ->check(whole_number());
  command->add_option("--regime", args->regime, "Kind of inputs (deltaproof list regimes)")->type_name("REGIME");
  command->add_option("--op", args->op, "Recurrence (deltaproof list ops)")->type_name("OP");
  command->add_option("--rule", args->rule, "Update rule (deltaproof list rules)")->type_name("RULE");
  command->add_option("--dtype", args->dtype, "Format of q, k, v: bf16, fp16, fp32 or fp64")->type_name("FORMAT");
  command->add_option("--beta", args->beta, "Distribution of beta (deltaproof list beta-laws), or a decimal")
      ->type_name("BETA-LAW");
  command
      ->add_option("--gate", args->gate,
                   "Distribution of the log decays (deltaproof list gate-laws), or a decimal: the same log decay everywhere")
      ->type_name("GATE-LAW");
  command
      ->add_option("--initial-state", args->initial_state,
                   "Distribution of the initial state (deltaproof list initial-state-laws)")
      ->type_name("INITIAL-STATE-LAW");
  command
      ->add_option("--law", args->law,
                   "Parameters of --regime law (deltaproof list law-parameters), for example cosine=0.9,flip=0.5")
      ->type_name("LAW");
  command->add_option("--cu-seqlens", args->cu_seqlens, "Offsets of packed sequences, for example 0,5,16")
      ->type_name("LIST")
      ->check(not_empty());
  command->add_option("--B", args->batch, "Batch size")->type_name("N")->check(whole_number());
  command->add_option("--T", args->tokens, "Tokens")->type_name("N")->check(whole_number());
  command->add_option("--K", args->key_dim, "Key dimension")->type_name("N")->check(whole_number());
  command->add_option("--V", args->value_dim, "Value dimension")->type_name("N")->check(whole_number());
  command->add_option("--H", args->key_heads, "Heads of q and k")->type_name("N")->check(whole_number());
  command->add_option("--HV", args->value_heads, "Heads of v")->type_name("N")->check(whole_number());
  command->add_option("--num-householder", args->num_householder, "Steps per token")->type_name("N")->check(whole_number());
  command->add_flag("--cotangents", args->cotangents,
                    "Also draw do and dfinal_state (standard normal), the cotangents of a backward pass");
  return [args, &common] { return run(*args, common); };
}

}  // namespace deltaproof::cli
