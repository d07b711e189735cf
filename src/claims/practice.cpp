// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
//
// Claims about what models, papers and training do, most of which nothing here can decide, and the systems that are named.

#include <algorithm>
#include <array>
#include <charconv>

#include "claims/parts.hpp"
#include "deltaproof/kernel/emulate.hpp"
#include "deltaproof/kernel/plan.hpp"
#include "deltaproof/kernel/regimes.hpp"

namespace deltaproof {
namespace claim_detail {
namespace {

using kind = claim_kind;
using verdict = claim_verdict;

claim untestable(std::string_view id, unsigned sources, std::string_view statement, std::string_view reason) {
  return {id, sources, kind::practice, verdict::not_testable, statement, reason, {}};
}

/// Every format that the plans of public kernels state for a result, an operand or an accumulator.
claim_values formats_of_kernels() {
  std::uint64_t kernel_plans = 0;
  std::uint64_t formats = 0;
  std::uint64_t normalising = 0;

  std::uint64_t narrower_than_bf16 = 0;
  std::uint64_t as_narrow_as_bf16 = 0;
  std::uint64_t states_narrower_than_fp32 = 0;
  for (const plan& p : plans()) {
    if (!p.name.starts_with("fla")) continue;  // fla-* and flashkda-*: read from public sources
    ++kernel_plans;
    normalising += p.l2norm.compute.empty() ? 0 : 1;
    const auto look = [&](const format& f) {
      ++formats;
      narrower_than_bf16 += f.precision < bf16.precision ? 1 : 0;
      as_narrow_as_bf16 += f.precision == bf16.precision ? 1 : 0;
    };
    for (const format& f : p.dtypes) look(f);
    for (const auto* list : {&p.l2norm.compute,
                             &p.l2norm.store,
                             &p.gate.cumsum,
                             &p.beta.format,
                             &p.A.operand,
                             &p.A.accumulate,
                             &p.A.store,
                             &p.inverse.operand,
                             &p.inverse.accumulate,
                             &p.inverse.merge_operand,
                             &p.inverse.merge_accumulate,
                             &p.inverse.between,
                             &p.inverse.store,
                             &p.u.operand_store,
                             &p.u.accumulate,
                             &p.u.store,
                             &p.w.operand_store,
                             &p.w.accumulate,
                             &p.w.store,
                             &p.state.accumulate,
                             &p.state.store,
                             &p.state.between_tokens,
                             &p.v_new.store,
                             &p.v_new.state_operand,
                             &p.v_new.update_operand,
                             &p.v_new.key_operand,
                             &p.o.operand,
                             &p.o.accumulate,
                             &p.o.store,
                             &p.o.state_operand,
                             &p.o.value_operand,
                             &p.o.read_store}) {
      for (const format_choice& choice : *list) {
        if (choice.which == format_choice::kind::fixed) look(choice.value);
      }
    }
    for (const format_choice& choice : p.state.accumulate)
      states_narrower_than_fp32 += choice.which == format_choice::kind::fixed && choice.value.precision < fp32.precision ? 1 : 0;
  }
  return {{"plans_of_kernels", kernel_plans},
          {"formats", formats},
          {"plans_that_normalise_q_and_k", normalising},
          {"narrower_than_bf16", narrower_than_bf16},
          {"as_narrow_as_bf16", as_narrow_as_bf16},
          {"state_sums_narrower_than_fp32", states_narrower_than_fp32}};
}

/// A kernel of each of those plans, q and k normalised, on a problem and on the same with every value doubled: a normalised
/// value would not show it, one that is read as it is doubles every output, bit for bit.
claim_values values_doubled() {
  std::uint64_t kernels = 0;
  std::uint64_t doubled = 0;
  for (const plan& p : plans()) {
    if (!p.name.starts_with("fla")) continue;
    generation wanted;
    wanted.op = p.ops.front();
    wanted.dtype = p.dtypes.front();
    wanted.tokens = 20;
    wanted.key_dim = wanted.value_dim = 16;
    wanted.key_heads = wanted.value_heads = 1;
    if (wanted.op != op_kind::delta_rule) wanted.gate = "typical";
    problem given = generate(wanted);
    given.qk_l2norm = true;
    given.initial_state.reset();
    const path_kind path = p.path.front();
    const std::size_t chunk = path == path_kind::recurrent ? 0 : p.chunk.empty() ? 16 : p.chunk.front();
    const plan_variant variant = variants(p, given, path, chunk).front();
    head_input head = take_head(given, 0, 0);
    const matrix<double> once = emulate_head(head, variant).o;
    for (double& v : head.v.entries()) v *= 2;
    const matrix<double> twice = emulate_head(head, variant).o;
    ++kernels;
    doubled += std::equal(once.entries().begin(), once.entries().end(), twice.entries().begin(),
                          [](double a, double b) { return b == 2 * a; }) &&
                       std::any_of(once.entries().begin(), once.entries().end(), [](double a) { return a != 0; })
                   ? 1
                   : 0;
  }
  return {{"plans_of_kernels", kernels}, {"outputs_doubled", doubled}};
}

/// A state space model whose A moves every entry down by one, B = e_1: its outputs, and the causal convolution with C.
claim_values shift_model() {
  constexpr std::size_t size = 4;
  const fraction_vector u = sample_vector(12, 140);
  const fraction_vector c = sample_vector(size, 141);
  fraction_matrix shift(size, size);
  for (std::size_t i = 1; i < size; ++i) shift(i, i - 1) = 1;
  fraction_vector state(size);
  bool equal = true;
  bool wider_equal = true;
  for (std::size_t t = 0; t < u.size(); ++t) {
    state = product(shift, state);
    state[0] += u[t];
    rational convolved = 0;
    for (std::size_t i = 0; i < size && i <= t; ++i) convolved += c[i] * u[t - i];
    const rational without_the_last = convolved - (t + 1 >= size ? c[size - 1] * u[t + 1 - size] : rational(0));
    equal = equal && inner(c, state) == convolved;
    wider_equal = wider_equal && inner(c, state) == without_the_last;
  }
  return {{"equal", equal}, {"one_tap_less_equal", wider_equal}};
}

/// Year and month of the two papers by their arXiv numbers, which the documents give.
claim_values order_of_papers() {
  const auto month_of = [](std::string_view number) {
    int month = 0;
    std::from_chars(number.data(), number.data() + 4, month);
    return month;
  };
  return {{"paper_noted", month_of("2406.06484")}, {"paper_on_gdn", month_of("2412.06464")}};
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
      {"short-convolution-on-k-matters-most",
       blog,
       kind::conclusion,
       verdict::conditional,
       "Of short convolutions the one on k matters most.",
       "where the answer is the next token, fixed weights over two tokens, nothing trained: on k the successor is found in 65 % "
       "of "
       "cases, on v in 1 %, on both in 5 %, without any in 3 %. The post that it rests on, on trained models, is not among the "
       "documents",
       {finding_of("recall", "convolution-on-keys", "share of successors found with a convolution on k, on v, and with none",
                   [](const claim_values& v) {
                     return within(number_at(v, "keys"), 0.655, 0.01) && number_at(v, "values") < 0.015 &&
                            within(number_at(v, "none"), 0.03, 0.15) && within(number_at(v, "both"), 0.05, 0.1);
                   })}},
      {"successors-normalise-q-and-k",
       blog,
       kind::practice,
       verdict::conditional,
       "DeltaNet and the works after it normalise q and k by their L2 norm.",
       "every public kernel whose plan is here (delta rule, GDN, KDA, gated DeltaProduct) normalises both itself where it is "
       "asked "
       "to; that models ask is not known here. EFLA and Longhorn are works after it that need not",
       {exact_check("plans of public kernels that state how q and k are normalised", formats_of_kernels,
                    [](const claim_values& v) {
                      return number_at(v, "plans_of_kernels") >= 6 &&
                             number_at(v, "plans_that_normalise_q_and_k") == number_at(v, "plans_of_kernels");
                    })}},
      {"at-least-bf16",
       blog,
       kind::practice,
       verdict::conditional,
       "Implementations compute in bf16 at least, for efficiency.",
       "of the public kernels whose plans are here (deltaproof list plans): inputs and stored stages in bf16 or fp16, nothing "
       "narrower, and states summed in fp32. So bf16 rounds what is stored; what else is in use is not known here",
       {exact_check("every format that those plans state for inputs, results, operands and sums", formats_of_kernels,
                    [](const claim_values& v) {
                      return number_at(v, "plans_of_kernels") >= 6 && number_at(v, "narrower_than_bf16") == 0 &&
                             number_at(v, "as_narrow_as_bf16") > 0 && number_at(v, "state_sums_narrower_than_fp32") == 0;
                    })}},
      untestable(
          "efla-beats-deltanet", blog,
          "EFLA generally does slightly better than DeltaNet, as experiments of its paper show; nothing revolutionary is "
          "to be expected.",
          "about trained models; that its step is a DeltaNet step is efla-is-another-step-length, what both do with raw keys of "
          "spread norms is finding recall: spread-norms"),
      untestable("name-of-efla", blog, "The paper names the exact rule EFLA, error-free linear attention.",
                 "about a name; what is free of which error is frozen-coefficients"),
      untestable("fast-weight-paper-on-l1", blog_zh, "The paper on fast-weight programmers explains the L1 norm.",
                 "about the text of a paper; the norm itself is l1-normalised-keys-are-stable"),
      untestable("exact-solutions-are-not-new", blog,
                 "Recursions from exact solutions of differential equations were used before, by HiPPO and state space models.",
                 "about who wrote first; the formula itself is general-solution, with HiPPO's own matrix among the cases of "
                 "study hippo"),
      untestable("linear-attention-trails-transformers", notes,
                 "Most linear attention models trail transformers where retrieval from context is needed.",
                 "about trained models"),
      {"delta-rule-training-was-slow",
       notes,
       kind::conclusion,
       verdict::conditional,
       "Training with the delta rule was not efficient enough.",
       "of a recurrence whose state lives in memory, 128 channels, in a model of memory: it moves 26 times the bytes of chunks "
       "of "
       "64, which need 1.6 times its operations. A recurrence that keeps its state on the chip moves a fifth of theirs: what it "
       "lacks is parallel work, not bytes. No training was timed",
       {finding_of("wy", "operations-for-bytes", "bytes and operations of chunks of 64 against both recurrences",
                   [](const claim_values& v) {
                     return within(number_at(v, "bytes_saved"), 26, 0.02) && within(number_at(v, "operations_ratio"), 1.6, 0.01) &&
                            within(number_at(v, "bytes_more"), 5, 0.02);
                   })}},
      untestable("rmsnorm-steadies-training", notes, "RMSNorm makes training more stable, as in VMamba and Mamba-2.",
                 "about training; no layer outside the recurrence is modelled"),
      untestable("silu-replaces-elu", notes, "q and k are SiLU of a projection, L2-normalised; SiLU took the place of ELU + 1.",
                 "a choice of architecture; activations are applied before a problem's tensors are recorded. What keys of ELU + "
                 "1 do to an inverse is finding inverse: powers-need-uncorrelated-keys"),
      {"shift-ssm-is-a-short-convolution",
       notes,
       kind::identity,
       verdict::holds,
       "The shift state space model of H3 is a short convolution.",
       "its matrix moves the state down by one and the input enters at the top: a causal convolution as wide as its state",
       {exact_check("a shift of four over twelve inputs against four taps, and against three, in fractions", shift_model,
                    [](const claim_values& v) { return truth_at(v, "equal") && !truth_at(v, "one_tap_less_equal"); })}},
      untestable("short-convolution-from-h3", notes, "Short convolution is kept, with the motivation of H3.",
                 "about the origin of a choice of architecture; that the shift of H3 is one is shift-ssm-is-a-short-convolution"),
      {"hybrid-of-gdn-swa-and-attention",
       notes,
       kind::misprint,
       verdict::misprint,
       "The network of the paper is given as a hybrid of GDN, sliding-window attention and full attention.",
       "DeltaNet is meant: by its arXiv number the paper noted (2406.06484) is half a year older than the one on GDN "
       "(2412.06464, as blog-zh cites it). Which layers it combines is not testable here",
       {exact_check("year and month in the two numbers", order_of_papers,
                    [](const claim_values& v) { return number_at(v, "paper_noted") < number_at(v, "paper_on_gdn"); })}},
      untestable(
          "benchmarks-of-the-paper", notes,
          "MQAR, from an earlier paper, measures recall, here without convolution and otherwise as there; MAD is a set of "
          "synthetic tasks on tokens for linear attention; the language models are set up as for GLA.",
          "origins and settings of trained models; MQAR, MAD and RegBench are only patterns of repeated keys here (deltaproof list "
          "regimes)"),
      untestable("mamba-without-convolution", notes,
                 "Mamba loses surprisingly much without convolution, perhaps for its smaller state.",
                 "about trained models of another family"),
      untestable("configuration-is-standard", recall, "1000 tokens of 64 channels match standard transformers.",
                 "about what is customary"),
      untestable(
          "values-are-normalised-in-practice", recall,
          "Real transformers project their inputs by learned weights and normalise afterwards, universally, because stability "
          "outweighs the loss.",
          "about what is customary; what kernels do to values is kernels-normalise-values"),
      {"kernels-normalise-values",
       recall,
       kind::practice,
       verdict::refuted,
       "Normalisation acts on projected values as it does on queries and keys.",
       "on none of the public kernels whose plans are here: queries and keys are normalised where asked for, values are read as "
       "they are. So of the two scenarios the one called real is the other. What layers in other models do is not known here",
       {exact_check("a kernel of each of those plans, emulated on a problem and on the same with values doubled", values_doubled,
                    [](const claim_values& v) {
                      return number_at(v, "plans_of_kernels") >= 6 &&
                             number_at(v, "outputs_doubled") == number_at(v, "plans_of_kernels");
                    }),
        exact_check("plans of public kernels that state how q and k are normalised", formats_of_kernels,
                    [](const claim_values& v) {
                      return number_at(v, "plans_that_normalise_q_and_k") == number_at(v, "plans_of_kernels");
                    })}},
      untestable("normalisation-steadies-training", recall,
                 "Uniform errors make training stable; the measurements quantify both sides, stability and information lost.",
                 "nothing was trained, there or here; that the errors are uniform for another reason is normalised-errors, what "
                 "learning rates have to do with values is values-set-the-learning-rate"),
      untestable("applications-need-long-contexts", recall, "Modern applications process 32 000 tokens or more.",
                 "about what applications ask for"),
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
      named_system{"HiPPO and SSM exact discretisation", "src/studies/hippo/discretise.cpp",
                   "study hippo: exact and bilinear, for HiPPO-LegS and any other A; claim general-solution"},
      named_system{"Crank–Nicolson (bilinear), RK2, RK3, RK4", "include/deltaproof/rule/rules.hpp",
                   "rules crank_nicolson, rk2, rk3, rk4"},
      named_system{"L2 normalisation", "include/deltaproof/oracle/problem.hpp", "qk_l2norm of a problem"},
      named_system{"L1 normalisation", "src/claims/stability.cpp", "claim l1-normalised-keys-are-stable; study efla beside L2"},
      named_system{"sigmoid", "include/deltaproof/number/elementary.hpp", "correctly rounded in every format"},
      named_system{"logistic equation and map", "src/studies/logistic/orbits.cpp", "studies logistic and horizon"},
      named_system{"MQAR, MAD, RegBench", "src/kernel/regimes.cpp", "as input generators only: keys that repeat"},
      named_system{"short convolution", "src/studies/recall/tasks.hpp",
                   "study recall: on k, on v, on both; claims convolution-* and shift-ssm-is-a-short-convolution"},
      named_system{"SiLU, ELU + 1", "include/deltaproof/kernel/inverse_trial.hpp",
                   "as laws of keys, silu and elu1; a problem's tensors are recorded after them"},
      named_system{"RMS normalisation", "src/claims/stability.cpp",
                   "of keys, in condition-is-not-unique-to-l2: it does not meet the condition. Around a layer, where the models "
                   "put it, no state depends on it"},
      named_system{"softmax attention, transformers", "", "keeps every token, has no state and so none that could explode"},
      named_system{"sliding-window attention (SWA), hybrid networks", "",
                   "as softmax attention; how layers are combined does not change a layer's recurrence"},
      named_system{"Mamba, Mamba-2, VMamba", "", "diagonal state space models: nothing is erased along a key, no rank-one step"},
      named_system{"H3, shift SSM", "", "its shift is a short convolution"},
      named_system{"fast-weight programmers", "",
                   "the name under which the same rule was first published (Schlag, Irie, Schmidhuber, 2021); their L1 "
                   "normalisation is l1-normalised-keys-are-stable"},
      named_system{"capsule networks", "", "only the squash is used, see there"},
      named_system{"flash-linear-attention (fla)", "src/plans/fla-chunk-delta.toml",
                   "plans fla-*: what its kernels round and where; its code is not part of this project"},
      named_system{"Performer, hyper-connections, Muon, AdamW, MLA and others in the page around the Chinese post", "",
                   "titles and comments of other posts; nothing is said of them that bears on a delta rule"},
  };
  return systems;
}

}  // namespace deltaproof
