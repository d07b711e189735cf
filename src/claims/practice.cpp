// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
//
// Claims about what models, papers and training do, which nothing here can decide, and the systems that are named.

#include <array>

#include "claims/parts.hpp"

namespace deltaproof {
namespace claim_detail {
namespace {

using kind = claim_kind;
using verdict = claim_verdict;

claim untestable(std::string_view id, unsigned sources, std::string_view statement, std::string_view reason) {
  return {id, sources, kind::practice, verdict::not_testable, statement, reason, {}};
}

}  // namespace

claim_table practice_claims() {
  return {
      untestable("origin-of-l2-normalisation", blog,
                 "L2 normalisation of keys comes from the wish for stable eigenvalues; that of queries was added for symmetry.",
                 "about why authors did something; that it does stabilise is stability-interval, that queries do not need it is "
                 "q-normalisation-not-necessary"),
      untestable("habit-of-positive-eigenvalues", blog,
                 "For a long time people kept eigenvalues in (0, 1] by habit and so chose a sigmoid.", "history of a field"),
      untestable("state-tracking-is-syntactic", blog,
                 "State tracking is a skill for special syntax such as code; on natural language the change may not show.",
                 "about trained language models; none is trained here"),
      untestable("short-convolution-on-k-matters-most", blog, "Of short convolutions the one on k matters most.",
                 "rests on trained models in another post, which is not among the documents"),
      untestable("at-least-bf16", blog, "Implementations compute in bf16 at least, for efficiency.",
                 "about what is customary; the plans of this project name what each known kernel does (deltaproof list plans)"),
      untestable("efla-beats-deltanet", blog,
                 "EFLA generally does slightly better than DeltaNet, as experiments of its paper show; nothing revolutionary is "
                 "to be expected.",
                 "about trained models; that its step is a DeltaNet step is efla-is-another-step-length"),
      untestable("name-of-efla", blog, "The paper names the exact rule EFLA, error-free linear attention.",
                 "about a name; what is free of which error is frozen-coefficients"),
      untestable("fast-weight-paper-on-l1", blog_zh, "The paper on fast-weight programmers explains the L1 norm.",
                 "about the text of a paper; the norm itself is l1-normalised-keys-are-stable"),
      untestable("exact-solutions-are-not-new", blog,
                 "Recursions from exact solutions of differential equations were used before, by HiPPO and state space models.",
                 "about who wrote first; the formula itself is general-solution"),
      untestable("linear-attention-trails-transformers", notes,
                 "Most linear attention models trail transformers where retrieval from context is needed.",
                 "about trained models"),
      untestable("delta-rule-training-was-slow", notes, "Training with the delta rule was not efficient enough.",
                 "about the speed of other programs on other machines; what the chunkwise form costs in operations and bytes is "
                 "finding wy: operations-for-bytes"),
      untestable("rmsnorm-steadies-training", notes, "RMSNorm makes training more stable, as in VMamba and Mamba-2.",
                 "about training; no layer outside the recurrence is modelled"),
      untestable("silu-replaces-elu", notes, "q and k are SiLU of a projection, L2-normalised; SiLU took the place of ELU + 1.",
                 "a choice of architecture; activations are applied before a problem's tensors are recorded. What keys of ELU + "
                 "1 do to an inverse is finding inverse: powers-need-uncorrelated-keys"),
      untestable("short-convolution-from-h3", notes, "Short convolution, the shift of H3, is kept, with its motivation.",
                 "about the origin of a choice of architecture"),
      untestable("hybrid-of-gdn-swa-and-attention", notes,
                 "The network is a hybrid of GDN, sliding-window attention and full attention.",
                 "a choice of architecture. By their arXiv numbers, both given in the documents, the paper noted (2406.06484) is "
                 "older than the one on GDN (2412.06464)"),
      untestable(
          "benchmarks-of-the-paper", notes,
          "MQAR measures recall, there without convolution; MAD and the language models follow earlier set-ups.",
          "settings of trained models; MQAR, MAD and RegBench are only patterns of repeated keys here (deltaproof list regimes)"),
      untestable("mamba-without-convolution", notes,
                 "Mamba loses surprisingly much without convolution, perhaps for its smaller state.",
                 "about trained models of another family"),
      untestable("configuration-is-standard", recall, "1000 tokens of 64 channels in one head match standard transformers.",
                 "about what is customary"),
      untestable(
          "values-are-normalised-in-practice", recall,
          "Real transformers normalise queries, keys and values after their projections, universally, because stability "
          "outweighs the loss.",
          "about what is customary. In the kernels this project reads, queries and keys are normalised and values are not"),
      untestable("normalisation-steadies-training", recall,
                 "Uniform errors make training stable; without normalisation layers need different learning rates.",
                 "nothing was trained, there or here; that the errors are uniform for another reason is normalised-errors"),
      untestable("direction-is-enough-for-attention", recall,
                 "For attention that routes by similarity direction is often what is wanted.", "about trained models"),
      untestable("realistic-conditions-matter-more", recall,
                 "Testing under realistic conditions matters more than theory of the worst case.", "a preference"),
  };
}

}  // namespace claim_detail

std::span<const named_system> named_systems() {
  static constexpr std::array systems{
      named_system{"linear attention", "include/deltaproof/rule/baselines.hpp", "class hebbian"},
      named_system{"DeltaNet", "include/deltaproof/rule/rules.hpp", "rule euler; its recurrence in scan/recurrent.hpp"},
      named_system{"recursive least squares", "include/deltaproof/rule/baselines.hpp", "class recursive_least_squares"},
      named_system{"test-time training, SGD view", "src/claims/step.cpp", "claim sgd-view: one step of gradient descent"},
      named_system{"negative eigenvalues, transition doubled", "include/deltaproof/rule/baselines.hpp",
                   "class negative_eigenvalues_erase"},
      named_system{"negative eigenvalues, both terms doubled", "include/deltaproof/rule/baselines.hpp",
                   "class negative_eigenvalues_both"},
      named_system{"Householder products, WY form", "include/deltaproof/scan/wy.hpp", "wy_recursion"},
      named_system{"UT transform, chunkwise form", "include/deltaproof/scan/chunkwise.hpp", "chunkwise"},
      named_system{"forward substitution, Neumann doubling, 2 × 2 blocks, block recursion",
                   "include/deltaproof/algebra/triangular.hpp", "inverse_methods"},
      named_system{"gated linear attention (GLA)", "include/deltaproof/rule/baselines.hpp", "class gated_hebbian"},
      named_system{"gated DeltaNet (GDN)", "include/deltaproof/scan/sequence.hpp", "one decay per token"},
      named_system{"Kimi delta attention (KDA)", "include/deltaproof/scan/sequence.hpp", "a decay per channel"},
      named_system{"gated DeltaProduct", "include/deltaproof/scan/sequence.hpp", "several steps per token"},
      named_system{"EFLA", "include/deltaproof/rule/rules.hpp", "rule exact"},
      named_system{"Longhorn", "include/deltaproof/rule/baselines.hpp",
                   "class diagonal_longhorn as published; rule implicit before the approximation"},
      named_system{"capsule squash", "src/claims/stability.cpp", "claim longhorn-is-a-squash"},
      named_system{"HiPPO and SSM exact discretisation", "src/claims/flow.cpp", "claim general-solution, for any A"},
      named_system{"Crank–Nicolson (bilinear), RK2, RK3, RK4", "include/deltaproof/rule/rules.hpp",
                   "rules crank_nicolson, rk2, rk3, rk4"},
      named_system{"L2 normalisation", "include/deltaproof/oracle/problem.hpp", "qk_l2norm of a problem"},
      named_system{"L1 normalisation", "src/claims/stability.cpp", "claim l1-normalised-keys-are-stable"},
      named_system{"sigmoid", "include/deltaproof/number/elementary.hpp", "correctly rounded in every format"},
      named_system{"logistic equation and map", "src/studies/horizon/maps.cpp", "study horizon"},
      named_system{"MQAR, MAD, RegBench", "src/kernel/regimes.cpp", "as input generators only: keys that repeat"},
      named_system{"short convolution", "", "acts before a problem's tensors are recorded: not part of the recurrence"},
      named_system{"SiLU, ELU + 1", "",
                   "applied before a problem's tensors are recorded; keys such as ELU + 1 makes are a regime"},
      named_system{"RMS normalisation", "", "normalises what enters or leaves a layer, not keys: no state depends on it"},
      named_system{"softmax attention, transformers", "", "keeps every token, has no state and so none that could explode"},
      named_system{"sliding-window attention (SWA), hybrid networks", "",
                   "as softmax attention; how layers are combined does not change a layer's recurrence"},
      named_system{"Mamba, Mamba-2, VMamba", "", "diagonal state space models: nothing is erased along a key, no rank-one step"},
      named_system{"H3, shift SSM", "", "its shift is a short convolution"},
      named_system{"fast-weight programmers", "",
                   "the name under which the same rule was first published (Schlag, Irie, Schmidhuber, 2021); their L1 "
                   "normalisation is l1-normalised-keys-are-stable"},
      named_system{"capsule networks", "", "only the squash is used, see there"},
  };
  return systems;
}

}  // namespace deltaproof
