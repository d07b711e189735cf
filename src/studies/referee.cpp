// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT

#include "deltaproof/study/study.hpp"
#include "studies/referee/sections.hpp"

namespace deltaproof {
namespace {

using namespace detail::referee_study;

/// The demonstration of the first finding on inverses, as commands.
constexpr std::string_view commands =
    "The same by hand, with keys that `gen` makes (exactly one key, no noise):\n\n"
    "```sh\n"
    "deltaproof gen --regime repeated --op gated_delta_rule --T 1024 --K 128 --V 128 --H 1 --HV 1 --beta 0.99966 --gate -0.001 "
    "--initial-state none -o one-key.problem.safetensors\n"
    "deltaproof emulate one-key.problem.safetensors --plan neumann-64 -o neumann.safetensors\n"
    "deltaproof check one-key.problem.safetensors neumann.safetensors\n"
    "deltaproof emulate one-key.problem.safetensors --plan bf16-between-steps -o between.safetensors\n"
    "deltaproof check one-key.problem.safetensors between.safetensors --plan fla-chunk-gdn\n"
    "deltaproof emulate one-key.problem.safetensors --plan fla-chunk-gdn -o repaired.safetensors\n"
    "deltaproof check one-key.problem.safetensors repaired.safetensors\n"
    "```\n";

report run(const run_options& options) {
  report r;
  const survey s = run_survey(options);
  if (s.complete) {
    add_faults(s, r);
    add_fault_tables(s, r);
  } else {
    r.unfinished.emplace_back("The planted faults were interrupted: none is counted.");
  }
  inverse_survey inverses;
  if (!options.stopped()) inverses = run_inverses(options);
  if (inverses.complete) {
    add_inverses(inverses, r);
  } else {
    r.unfinished.emplace_back("The inverses were interrupted: none is shown.");
  }
  r.answer = s.complete ? answer(s, inverses) : "Interrupted before the faults were counted.";
  r.method =
      "Each case is a problem made by `deltaproof gen` and a plan that fits it. The emulator makes what a kernel that keeps the "
      "plan may give, and the same with each fault of the catalogue "
      "(`deltaproof list faults`) that can happen to the problem; every result is judged twice by `check`, with its "
      "intermediates and without, at a false-alarm probability of 1e-4 for each "
      "check, and by the rules in use elsewhere, from the same certified errors. The emulator and the part of check that "
      "recomputes stages share nothing but the plan. "
      "Inverses: kernels that were found wrong in public, as plans, on two laws of correlated keys.\n\n" +
      std::string(commands);
  r.not_claimed = {
      "The faults are those of the catalogue; a fault nobody thought of is not among them, and shares are of these faults on "
      "these inputs, not of faults in the wild.",
      "Faulty and correct tensors come from the project's own emulator, not from a GPU. Check's thresholds come from the same "
      "emulator; its stage bounds do not.",
      "The rules in use elsewhere are applied as published (their tolerance on one tensor), not with what their authors do "
      "beside them: other references, warnings, inputs chosen with care.",
      "No correct result refused among these is consistent with the declared probability and does not measure it.",
      "The laws of correlated keys follow the mechanism of the public reports, not their tensors.",
  };
  r.parameters = {{"cases", s.cases.size()}, {"false_alarm", "1e-4"}};
  return r;
}

}  // namespace

extern const study referee_study{
    "referee", "Which faults does the referee catch, and where do the field's usual rules stand on the same tensors?", &run};

}  // namespace deltaproof
