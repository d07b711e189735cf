// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT

#include <string>

#include "deltaproof/study/study.hpp"
#include "studies/shared/findings.hpp"
#include "studies/shared/text.hpp"
#include "studies/state_precision/sections.hpp"

namespace deltaproof {

namespace detail::state_precision {

settings settings_for(const run_options& options) {
  settings size;
  if (options.full) size.tokens = 1000000;
  return size;
}

}  // namespace detail::state_precision

namespace {

using namespace detail::state_precision;
using detail::shared::value_of;

std::string answer(const report& r, const settings& size) {
  const auto percent = [&](const char* id, const char* key) { return detail::shared::percent(value_of(r, id, key), 2); };
  const bool keep_g = value_of(r, "decay", "exponential_bf16") > 10 * value_of(r, "decay", "logarithm_bf16");
  const bool step_decides =
      value_of(r, "sixteen-bit-state", "ordinary") < 0.05 && value_of(r, "sixteen-bit-state", "bf16_worst") > 0.1;
  std::string text = value_of(r, "fp32", "worst") < 1e-4 ? "An fp32 state for every horizon to " + count(size.tokens) + " tokens"
                                                         : "No choice for every horizon";
  text += step_decides
              ? "; a bf16 state where β is near ½ (error " + percent("sixteen-bit-state", "ordinary") +
                    " at any horizon), not where steps are small and memories long (" +
                    percent("sixteen-bit-state", "bf16_worst") + ", fp16 " + percent("sixteen-bit-state", "fp16_worst") + ")"
              : "; a bf16 state errs by up to " + percent("sixteen-bit-state", "bf16_worst");
  text += keep_g ? "; the decay as g in bf16 (" + percent("decay", "logarithm_bf16") + ") but never as e^g (" +
                       percent("decay", "exponential_bf16") + ")"
                 : "; the decay as g or as e^g alike";
  return text + "; β in bf16 anywhere (" + percent("beta", "worst") + ").";
}

report run(const run_options& options) {
  const settings size = settings_for(options);
  report r;
  const survey s = run_survey(options, size);
  if (s.complete) {
    add_findings(options, size, s, r);
    r.answer = answer(r, size);
  } else {
    r.answer = "Interrupted: not all heads were run.";
    r.unfinished.emplace_back("Interrupted before all heads were run.");
  }
  r.method =
      "Six heads of the gated delta rule, K = 32, V = 4: gates g = −A softplus(N(0,1) + b) as gated DeltaNet models start (fast, "
      "medium, slow, none), β = "
      "sigmoid(N(0,1) + c), c = 0 or −5, keys from a vocabulary of 256 unit vectors with frequencies 1/r, values a fixed one for "
      "each word plus noise. "
      "The reference is `solve`, block after block, its radius carried. Each choice runs the library's recurrence in fp32 on the "
      "same tokens with one "
      "number (state after each token, β, decay) kept in its format; rounding to nearest unless said.";
  r.not_claimed = {
      "That trained models have these gates, steps and keys: the gates are those of initialisation, and small β with long memory "
      "is the hard corner, not the "
      "average.",
      "Errors are of the state, relative to its norm, of one run; what they do to outputs and losses depends on the queries.",
      "A chunk kernel keeps its state in fp32 inside a chunk and rounds other things; this is the recurrence of decoding.",
      "Range: no state here comes near 65 504, where fp16 overflows.",
  };
  r.parameters = {
      {"key_dim", size.dims.key_dim}, {"value_dim", size.dims.value_dim}, {"words", size.dims.words}, {"tokens", size.tokens}};
  return r;
}

}  // namespace

extern const study state_precision_study{"state-precision", "In which formats may state, β and decay be kept, for which horizon?",
                                         &run};

}  // namespace deltaproof
