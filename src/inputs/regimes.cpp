// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
#include "deltaproof/inputs/regimes.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <string>
#include <utility>

#include "deltaproof/number/visit_format.hpp"
#include "deltaproof/support/errors.hpp"
#include "inputs/regime_draft.hpp"
#include "support/nearest_name.hpp"

namespace deltaproof {
namespace detail {
namespace {

constexpr std::size_t default_tokens = 256;
constexpr std::size_t largest_tensor = std::size_t{1} << 33;

constexpr std::array<law_info, 3> initial_state_table{{
    {"none", "no tensor initial_state"},
    {"zeros", "a tensor of zeros"},
    {"normal", "entries N(0,1), so that the state differs from its transpose (in the regime exact: entries -1, 0 or 1)"},
}};

struct regime {
  regime_info info;
  void (*keys)(draft&) = unit_keys;
  std::string_view beta = "sigmoid";
  std::string_view gate = "none";
  op_kind op = op_kind::delta_rule;
  rule_kind rule = rule_kind::euler;
  std::size_t key_heads = 2;
  std::size_t group = 1;  // HV / H
  std::size_t value_dim = 64;
  std::string_view law = {};                        // of law_task
  void (*cotangents)(problem&, philox&) = nullptr;  // what becomes of do and dfinal_state once they are drawn
};

// Nothing but the final state is asked for.
void state_alone(problem& p, philox& random) {
  p.d_o.reset();
  const tensor& drawn = *p.d_final_state;
  p.d_final_state = tensor::from_doubles(drawn.element_format(), drawn.shape(),
                                         signed_powers(element_count(drawn.shape()), random), "dfinal_state");
}

// do = q of its head, as far as V reaches: with a state of ones on its diagonal dq lies along q.
void along_queries(problem& p, philox&) {
  const std::size_t K = p.key_dim(), V = p.value_dim(), group = p.value_heads() / p.key_heads(), rows = p.batch() * p.tokens();
  const std::vector<double> q = p.q.to_doubles();
  std::vector<double> d(rows * p.value_heads() * V, 0.0);
  for (std::size_t row = 0; row < rows * p.value_heads(); ++row) {
    const std::size_t from = row / p.value_heads() * p.key_heads() + row % p.value_heads() / group;
    for (std::size_t j = 0; j < std::min(K, V); ++j) d[row * V + j] = q[from * K + j];
  }
  p.d_o = tensor::from_doubles(p.q.element_format(), p.d_o->shape(), d, "do");
}

constexpr op_kind gated = op_kind::gated_delta_rule;

// The last three of an info: whether keys are unit, and the least and the most of the mean cosine.
constexpr bool unit = true;
constexpr bool not_unit = false;

constexpr auto regime_table = std::to_array<regime>({
    {.info = {"typical", "unit keys of random direction, steps in (0, 1)",
              "kernels are usually tested with such inputs: a kernel that fails here fails everywhere, and one that passes here "
              "may still fail elsewhere",
              unit, -0.05, 0.05}},
    {.info = {"slow-decay", "random unit keys, log decays of about -0.001",
              "errors live as long as the state: shows a state or a transition rounded between tokens or chunks", unit, -0.05,
              0.05},
     .gate = "slow",
     .op = gated},
    {.info = {"no-decay", "random unit keys, g = 0 exactly",
              "outputs must equal those of the op without a gate: shows kernels that set exp(G_i - G_j) to 0 where G_i = G_j",
              unit, -0.05, 0.05},
     .gate = "zero",
     .op = gated},
    {.info = {"strong-decay", "random unit keys, log decays from -25 to -5 in each channel",
              "exp(G_i) exp(-G_j) overflows where exp(G_i - G_j) does not: shows gates in factored form", unit, -0.05, 0.05},
     .gate = "strong",
     .op = op_kind::kda},
    {.info = {"collinear", "keys about 3 degrees from one direction, steps near 1",
              "the intermediates of inverses by powers grow like binomial coefficients, while the inverse itself stays small",
              unit, 0.99, 1},
     .keys = collinear_keys,
     .beta = "near-one"},
    {.info = {"elu1", "keys elu(x) + 1, normalised: all entries positive",
              "a positive feature map correlates keys: inverses that are accurate for keys with random signs lose digits here",
              unit, 0.55, 0.8},
     .keys = elu1_keys},
    {.info = {"silu", "keys silu(x), normalised", "the mild correlation that keys of trained models have", unit, 0.05, 0.25},
     .keys = silu_keys},
    {.info = {"repeated", "one key throughout, steps near 1",
              "k k^T is all ones: an inverse by powers of A then has its largest intermediates, which overflow fp16", unit, 0.99,
              1.01},
     .keys = repeated_keys,
     .beta = "near-one"},
    {.info = {"mqar", "associative recall: pairs written with beta 1, then asked for with beta 0",
              "each o reads back one stored v: a lost or misplaced row is an error as large as that v and is not averaged away",
              unit, -0.2, 0.6},
     .keys = recall_task,
     .beta = beta_of_task},
    {.info = {"mad-copy", "selective copying: content (beta 1) among noise (beta 0), then read back in order",
              "rows with beta exactly 0 must leave no trace: shows padding that enters the state, and shifted rows", unit, -0.05,
              0.05},
     .keys = copy_task,
     .beta = beta_of_task},
    {.info = {"regbench", "a random automaton of 8 symbols: keys recur at irregular distances",
              "equal keys with different values: shows faults that cancel out where keys never recur or recur at equal distances",
              unit, -0.2, 1.01},
     .keys = automaton_task,
     .beta = beta_of_task},
    {.info = {"alternating", "k and -k in turn, log decays 0 and -20 in turn",
              "neighbouring rows differ as much as they can: shows a gate or key taken from the row before or after", unit, -0.1,
              0.1},
     .keys = alternating_keys,
     .gate = "alternating",
     .op = gated},
    {.info = {"beta-two", "random unit keys, steps that round to 2",
              "half of all unit keys have norms above 1 once rounded: with beta 2 the state grows, and its usual bounds fail",
              unit, -0.05, 0.05},
     .beta = "saturated"},
    {.info = {"tiny-keys", "rows of norm 0, 1e-4, 1e-3, 1e-2 and 1, normalised by the kernel",
              "shows max(norm, eps) in place of sqrt(sum + eps), a mean in place of a sum, and an ignored qk_l2norm", not_unit,
              -0.2, 0.2},
     .keys = tiny_keys},
    {.info = {"huge-keys", "|k|^2 from 1 to 1024, not normalised, update rule exact",
              "most beta |k|^2 are far beyond 2: shows squares that overflow, and kernels that ignore the update rule", not_unit,
              -0.05, 0.05},
     .keys = huge_keys,
     .rule = rule_kind::exact},
    {.info = {"model-gates", "silu keys, gates as in a gated DeltaNet model before training",
              "the heads of one call remember from one token to thousands: shows a precision that is too low for some heads only",
              unit, 0.05, 0.25},
     .keys = silu_keys,
     .gate = "model",
     .op = gated},
    {.info = {"tails", "a last chunk of 1 to 63 rows (chunks of 64), chosen by the seed",
              "the last row of a partial chunk is not row C - 1: shows gates read there, and padding that is not zero", unit,
              -0.05, 0.05},
     .gate = "typical",
     .op = gated},
    {.info = {"varlen", "packed sequences of 0, 1, 15, 64 and 128 tokens, and one of the rest",
              "chunks restart at each sequence: shows states that leak into the next sequence, and sequences of length 0 and 1 "
              "that are skipped",
              unit, -0.05, 0.05},
     .gate = "typical",
     .op = gated,
     .key_heads = 1},
    {.info = {"gva", "two heads of q and k, two heads of v for each",
              "head i of v reads head floor(i / 2) of q and k, not i mod 2: shows a wrong assignment of heads, which is "
              "invisible if HV = H",
              unit, -0.05, 0.05},
     .gate = "typical",
     .op = gated,
     .group = 2},
    {.info = {"k-ne-v", "K = 64, V = 128", "shows (K, V) read as (V, K), which is invisible if K = V", unit, -0.05, 0.05},
     .value_dim = 128},
    {.info = {"exact", "Hadamard keys, steps 1/2 and 1, integer values: nothing is ever rounded in fp32",
              "any bit that differs is an error of logic, not of rounding", unit, -0.1, 0.1},
     .keys = exact_task,
     .beta = beta_of_task},
    {.info =
         {"near-repeated", "one key with 0.001 N(0,1) added to each entry, steps sigmoid(8), log decays -0.001",
          "such keys are nearly those of the regime `repeated`, and a model can produce them; public kernels whose inverses form "
          "powers of A failed on them",
          unit, 0.99, 1.01},
     .keys = near_repeated_keys,
     .beta = "0.99966464986953",
     .gate = "-0.001",
     .op = gated},
    {.info = {"correlated", "keys of norm 0.9 and mean cosine 0.92, beta 1, log decays from -0.034 to -0.012",
              "the keys of a trained layer were like these, and a kernel's inverse failed on them, though they are less extreme "
              "than the keys of the regime repeated",
              not_unit, 0.9, 0.94},
     .keys = correlated_keys,
     .beta = "1",
     .gate = "narrow",
     .op = gated},
    {.info =
         {"reset", "random unit keys; a log decay of -inf about once in 64 tokens, and one of -10000 as often",
          "differences of cumulative gate sums are NaN after -inf and lose three digits after -10000; a kernel that goes token "
          "by token loses nothing",
          unit, -0.05, 0.05},
     .gate = "resets",
     .op = gated},
    {.info = {"large", "random unit keys; v and the initial state are 4096 N(0,1)",
              "absolute tolerances refuse correct kernels, sums in fp16 overflow, and a lost write shows", unit, -0.05, 0.05},
     .keys = unit_keys_large_values,
     .gate = "typical",
     .op = gated},
    {.info = {"law", "whatever --law states (deltaproof list law-parameters); without it unit keys, steps in (0, 1)",
              "each property that makes inputs hard is a parameter: a search varies these to find the inputs on which a plan "
              "errs most",
              not_unit, -0.05, 0.05},
     .keys = law_task,
     .beta = beta_of_task,
     .gate = beta_of_task,
     .op = gated},
    {.info =
         {"rewritten",
          "the same key at every token, beta = 1.5 sigmoid(3 + 1.5 N(0,1)), each v scaled by its own exp(2 N(0,1)), gates that "
          "forget over about 1000 tokens",
          "found by a search for the inputs on which a sound plan errs most: each step erases what was written before, and the "
          "rounding errors of large values remain beside small values",
          unit, 0.99, 1.01},
     .keys = law_task,
     .beta = beta_of_task,
     .gate = beta_of_task,
     .op = gated,
     .law = "repeat=1,beta_top=1.5,beta_logit=3,beta_spread=1.5,gate_log=-7,value_spread=2,state_scale=0.01"},
    {.info = {"saturated-gates", "random unit keys, every log decay -5",
              "the gradient of a gate contains terms that are added and subtracted again: shows kernels that lose its digits in "
              "this cancellation",
              unit, -0.05, 0.05},
     .gate = "-5",
     .op = op_kind::kda},
    {.info = {"beta-zero", "steps 0, 2^-24 and sigmoid(N(0,1)) in turn",
              "shows kernels that compute dbeta by dividing by beta, and formats that flush small steps to 0", unit, -0.05, 0.05},
     .keys = absent_steps,
     .beta = beta_of_task,
     .gate = "typical",
     .op = gated},
    {.info = {"state-cotangent",
              "signed powers of two in initial_state and, with --cotangents, in dfinal_state, without a tensor do; log decays of "
              "about -0.001",
              "shows a dfinal_state that is not read, and a sum of h dh (in dg) whose products underflow or whose small terms "
              "are lost",
              unit, -0.05, 0.05},
     .keys = states_of_powers,
     .gate = "slow",
     .op = gated,
     .cotangents = state_alone},
    {.info = {"along-q",
              "rows of q with norms from 0.01 to 10, normalised by the kernel; K = V by default, beta = 0, the state is the "
              "identity, with --cotangents do = q: the gradient of the normalised q lies along q",
              "the backward pass of the l2norm cancels the whole gradient of the normalised q: shows a kernel that projects on "
              "the normalised q after it was rounded",
              unit, -0.05, 0.05},
     .keys = queries_along_outputs,
     .beta = beta_of_task,
     .cotangents = along_queries},
});

const regime& row_named(std::string_view name) {
  std::vector<std::string_view> known;
  for (const regime& row : regime_table) {
    if (row.info.name == name) return row;
    known.push_back(row.info.name);
  }
  throw format_error("unknown regime \"" + std::string(name) + "\"" + detail::suggestion(name, known));
}

void require_initial_state_law(std::string_view name) {
  std::string known;
  for (const law_info& law : initial_state_table) {
    if (law.name == name) return;
    known += (known.empty() ? "" : ", ") + std::string(law.name);
  }
  throw format_error("unknown initial state \"" + std::string(name) + "\"; use one of " + known);
}

// Lengths 0, 1, 15, 64, 128 while they fit, then the rest.
std::vector<std::int64_t> packed_lengths(std::size_t tokens) {
  std::vector<std::int64_t> offsets{0};
  const auto total = static_cast<std::int64_t>(tokens);
  for (const std::int64_t length : {0, 1, 15, 64, 128}) {
    if (offsets.back() + length <= total) offsets.push_back(offsets.back() + length);
  }
  if (offsets.back() < total) offsets.push_back(total);
  return offsets;
}

void complete_shape(generation& w, const regime& row) {
  if (!w.cu_seqlens) {
    if (row.info.name == "varlen")
      w.cu_seqlens = packed_lengths(w.tokens.value_or(300));
    else
      w.cu_seqlens.emplace();
  }
  const std::vector<std::int64_t>& offsets = *w.cu_seqlens;
  if (!w.tokens) {
    if (!offsets.empty()) {
      w.tokens = offsets.back() < 0 ? 0 : static_cast<std::size_t>(offsets.back());
    } else {
      w.tokens = row.info.name == "tails" ? 129 + static_cast<std::size_t>(w.seed % 63) : default_tokens;
    }
  }
  if (!w.batch) w.batch = 1;
  if (!w.key_heads) {
    w.key_heads = !w.value_heads ? row.key_heads : *w.value_heads % row.group == 0 ? *w.value_heads / row.group : *w.value_heads;
  }
  if (!w.value_heads) w.value_heads = *w.key_heads * row.group;
  if (!w.key_dim) w.key_dim = 64;
  if (!w.value_dim) w.value_dim = row.value_dim;
  if (!w.num_householder) w.num_householder = row_of(*w.op).usual_steps;
}

void require_shape(const generation& w) {
  const auto positive = [](const char* name, std::size_t value) {
    if (value == 0) throw shape_error(std::string(name) + " = 0; it must be at least 1");
  };
  positive("B", *w.batch);
  positive("H", *w.key_heads);
  positive("HV", *w.value_heads);
  positive("K", *w.key_dim);
  positive("V", *w.value_dim);
  positive("num-householder", *w.num_householder);
  if (*w.value_heads % *w.key_heads != 0) {
    throw shape_error("HV = " + std::to_string(*w.value_heads) + " is not a multiple of H = " + std::to_string(*w.key_heads));
  }
  const std::vector<std::int64_t>& offsets = *w.cu_seqlens;
  if (!offsets.empty()) {
    const bool partition = offsets.size() > 1 && offsets.front() == 0 && std::is_sorted(offsets.begin(), offsets.end()) &&
                           static_cast<std::uint64_t>(offsets.back()) == *w.tokens;
    if (!partition)
      throw domain_error("cu-seqlens must be two or more offsets that begin with 0, never decrease and end with T = " +
                         std::to_string(*w.tokens) + "; these end with " + std::to_string(offsets.back()));
    if (*w.batch != 1) {
      throw shape_error("packed sequences (cu-seqlens, or those of regime varlen) need B = 1, not " + std::to_string(*w.batch));
    }
  }
  const std::size_t widest = std::max(*w.key_dim, *w.value_dim);
  const std::vector<std::size_t> largest{*w.batch, *w.tokens, *w.num_householder, *w.value_heads, widest};
  const std::size_t sequences = offsets.empty() ? *w.batch : offsets.size() - 1;
  const std::vector<std::size_t> state{sequences, *w.value_heads, *w.key_dim, *w.value_dim};
  if (element_count(largest) > largest_tensor || element_count(state) > largest_tensor) {
    throw shape_error("this problem would have a tensor of more than 2^33 elements; make B, T, HV, K or V smaller");
  }
}

}  // namespace
}  // namespace detail

std::span<const regime_info> regimes() {
  static const auto infos = [] {
    std::array<regime_info, detail::regime_table.size()> result{};
    std::transform(detail::regime_table.begin(), detail::regime_table.end(), result.begin(),
                   [](const detail::regime& row) { return row.info; });
    return result;
  }();
  return infos;
}

std::span<const law_info> initial_state_laws() { return detail::initial_state_table; }

const regime_info& regime_named(std::string_view name) { return detail::row_named(name).info; }

generation complete(generation w) {
  const detail::regime& row = detail::row_named(w.regime);
  const bool wants_gate = w.gate.has_value() && *w.gate != "none";
  if (!w.op) w.op = wants_gate && gates_of(row.op) == gate_axes::none ? op_kind::gated_delta_rule : row.op;
  const bool without_gate = gates_of(*w.op) == gate_axes::none;
  if (without_gate && wants_gate) {
    throw domain_error("op " + std::string(name_of(*w.op)) + " has no decay, but gate \"" + *w.gate +
                       "\" was asked for; name another op, or leave the gate out");
  }
  if (!w.gate) {
    if (without_gate)
      w.gate = "none";
    else if (row.info.name == "exact")
      w.gate = "zero";
    else
      w.gate = row.gate == "none" ? "typical" : row.gate;
  }
  if (!w.rule) w.rule = row.rule;
  if (!w.beta) w.beta = row.beta;
  if (!w.initial_state) w.initial_state = row.info.name == "exact" ? "none" : "normal";
  if (!w.dtype) w.dtype = bf16;
  detail::complete_shape(w, row);

  const bool by_law = row.keys == detail::law_task;
  if (w.law && !by_law)
    throw domain_error("regime " + w.regime + " takes no law, but --law \"" + *w.law +
                       "\" was given; use --regime law, or leave --law out");
  if (by_law) w.law = detail::law_text(w.law.value_or(std::string(row.law)));

  detail::require_beta_law(*w.beta, *w.dtype);
  if (!by_law || *w.gate != detail::beta_of_task) detail::require_gate_law(*w.gate, *w.dtype == fp64 ? fp64 : fp32);
  detail::require_initial_state_law(*w.initial_state);
  detail::require_shape(w);
  if (*w.beta == detail::beta_of_task && row.beta != detail::beta_of_task) {
    throw domain_error("--beta regime: regime " + w.regime + " has the law of beta " + std::string(row.beta) +
                       "; leave --beta out to get it, or name another law (deltaproof list beta-laws)");
  }
  if (*w.dtype != bf16 && *w.dtype != fp16 && *w.dtype != fp32 && *w.dtype != fp64) {
    throw format_error("dtype " + std::string(name_of(*w.dtype)) + " cannot hold q, k and v; use bf16, fp16, fp32 or fp64");
  }
  if (row.info.name == "exact" && (!std::has_single_bit(*w.key_dim) || std::countr_zero(*w.key_dim) % 2 != 0)) {
    throw shape_error("regime exact needs K = 4, 16, 64, 256, ...; K is " + std::to_string(*w.key_dim));
  }
  return w;
}

std::string options_text(const generation& w) {
  std::string text = "--regime " + w.regime;
  const auto add = [&](const char* option, const auto& value) {
    using Value = std::remove_cvref_t<decltype(*value)>;
    if (!value) return;
    text += std::string(" --") + option + " ";
    if constexpr (std::is_same_v<Value, std::size_t>)
      text += std::to_string(*value);
    else if constexpr (std::is_same_v<Value, std::string>)
      text += *value;
    else
      text += name_of(*value);
  };
  add("op", w.op);
  add("rule", w.rule);
  add("B", w.batch);
  add("T", w.tokens);
  add("K", w.key_dim);
  add("V", w.value_dim);
  add("H", w.key_heads);
  add("HV", w.value_heads);
  add("num-householder", w.num_householder);
  add("dtype", w.dtype);
  add("beta", w.beta);
  if (w.gate != std::string(detail::beta_of_task)) add("gate", w.gate);  // what is drawn without the option
  add("initial-state", w.initial_state);
  if (w.law && !w.law->empty()) text += " --law " + *w.law;
  if (w.cu_seqlens && w.cu_seqlens->empty() && w.regime == "varlen") text += " --cu-seqlens ''";
  if (w.cu_seqlens && !w.cu_seqlens->empty()) {
    text += " --cu-seqlens ";
    for (std::size_t i = 0; i < w.cu_seqlens->size(); ++i) text += (i == 0 ? "" : ",") + std::to_string((*w.cu_seqlens)[i]);
  }
  if (w.cotangents) text += " --cotangents";
  return text + " --seed " + std::to_string(w.seed);
}

problem generate(const generation& wanted) {
  using detail::draft;
  using detail::stream;
  draft d(complete(wanted));
  const generation& spec = d.spec;
  const std::vector<std::size_t> state_shape{d.sequences.size(), d.value_heads, d.key_dim, d.value_dim};
  philox q_random = d.random(stream::q);
  for (std::size_t i = 0; i < d.q.size(); i += d.key_dim) {
    detail::fill_unit(std::span(d.q).subspan(i, d.key_dim), q_random);
  }
  philox v_random = d.random(stream::v);
  detail::fill_normal(d.v, v_random);
  if (*spec.initial_state != "none") d.initial_state.resize(element_count(state_shape));
  if (*spec.initial_state == "normal") {
    philox random = d.random(stream::initial_state);
    detail::fill_normal(d.initial_state, random);
  }
  detail::fill_steps(d);
  detail::fill_gates(d);
  detail::row_named(spec.regime).keys(d);

  const format wide = *spec.dtype == fp64 ? fp64 : fp32;
  problem p;
  p.op = *spec.op;
  p.rule = *spec.rule;
  p.num_householder = d.steps_per_token;
  p.scale = default_scale(d.key_dim);
  p.qk_l2norm = d.qk_l2norm;
  p.beta_activation = d.activation;
  p.cu_seqlens = *spec.cu_seqlens;
  p.note = "regime " + spec.regime + ", seed " + std::to_string(spec.seed);
  p.q = detail::tensor_in(*spec.dtype, {d.batch, d.tokens, d.key_heads, d.key_dim}, std::move(d.q), "q");
  p.k = detail::tensor_in(*spec.dtype, {d.batch, d.rows, d.key_heads, d.key_dim}, std::move(d.k), "k");
  p.v = detail::tensor_in(*spec.dtype, {d.batch, d.rows, d.value_heads, d.value_dim}, std::move(d.v), "v");
  p.beta = detail::tensor_in(*spec.dtype, {d.batch, d.rows, d.value_heads}, std::move(d.beta), "beta");
  if (*spec.gate != "none") {
    std::vector<std::size_t> shape{d.batch, d.tokens, d.value_heads};
    if (gates_of(p.op) == gate_axes::channels) shape.push_back(d.key_dim);
    p.g = detail::tensor_in(wide, std::move(shape), std::move(d.g), "g");
  }
  if (*spec.initial_state != "none") {
    p.initial_state = detail::tensor_in(wide, state_shape, std::move(d.initial_state), "initial_state");
  }
  if (spec.cotangents) {
    philox random(spec.seed, 0xd0);
    const auto normal = [&](const format& to, std::vector<std::size_t> shape, const char* name) {
      std::vector<double> x(element_count(shape));
      detail::fill_normal(x, random);
      return detail::tensor_in(to, std::move(shape), std::move(x), name);
    };
    p.d_o = normal(*spec.dtype, {d.batch, d.tokens, d.value_heads, d.value_dim}, "do");
    p.d_final_state = normal(wide, state_shape, "dfinal_state");
    if (const auto change = detail::row_named(spec.regime).cotangents; change != nullptr) change(p, random);
  }
  validate(p, p.note);
  return p;
}

}  // namespace deltaproof
