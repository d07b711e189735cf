// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
//
// Claims about what models, papers and kernels do.

#include "claims/checks/parts.hpp"
#include "deltaproof/emulate/emulate.hpp"
#include "deltaproof/inputs/regimes.hpp"
#include "deltaproof/number/random.hpp"
#include "deltaproof/plan/plan.hpp"

namespace deltaproof::claim_detail {
namespace {

/// The plans that the claims count: fla-* and flashkda-*, read from public sources.
bool is_counted(const plan& p) { return p.name.starts_with("fla-") || p.name.starts_with("flashkda"); }

/// Every format that the plans of public kernels state for a result, an operand or an accumulator.
claim_values formats_of_kernels() {
  std::uint64_t kernel_plans = 0;
  std::uint64_t normalising = 0;
  std::uint64_t narrower_than_bf16 = 0;
  std::uint64_t as_narrow_as_bf16 = 0;
  std::uint64_t states_narrower_than_fp32 = 0;
  for (const plan& p : plans()) {
    if (!is_counted(p)) continue;
    ++kernel_plans;
    normalising += p.l2norm.compute.empty() ? 0 : 1;
    const auto look = [&](const format& f) {
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
    if (!is_counted(p)) continue;
    generation wanted;
    wanted.op = p.ops.front();
    wanted.dtype = p.dtypes.front();
    wanted.tokens = 20;
    wanted.key_dim = wanted.value_dim = 16;
    wanted.key_heads = wanted.value_heads = 1;
    if (gates_of(*wanted.op) != gate_axes::none) wanted.gate = "typical";
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
  constexpr Eigen::Index size = 4;
  const fraction_vector u = sample_vector(12, 140);
  const fraction_vector c = sample_vector(size, 141);
  fraction_matrix shift = zeros(size, size);
  for (Eigen::Index i = 1; i < size; ++i) shift(i, i - 1) = 1;
  fraction_vector state = fraction_vector::Zero(size);
  bool equal = true;
  bool wider_equal = true;
  for (Eigen::Index t = 0; t < u.size(); ++t) {
    state = shift * state;
    state[0] += u[t];
    rational convolved = 0;
    for (Eigen::Index i = 0; i < size && i <= t; ++i) convolved += c[i] * u[t - i];
    const rational without_the_last = convolved - (t + 1 >= size ? c[size - 1] * u[t + 1 - size] : rational(0));
    equal = equal && c.dot(state) == convolved;
    wider_equal = wider_equal && c.dot(state) == without_the_last;
  }
  return {{"equal", equal}, {"one_tap_less_equal", wider_equal}};
}

/// Keys of public layers before their norm: SiLU, x / (1 + e^−x), or ELU + 1, of Gaussian projections; then of length 1.
claim_values keys_of_layers() {
  constexpr std::size_t rows = 200;
  constexpr std::size_t channels = 64;
  claim_values out;
  double largest = 0;
  for (const bool silu : {true, false}) {
    philox stream(1, silu ? 300 : 301);
    std::vector<std::vector<double>> keys;
    double below = 0;
    double least_entry = 0;
    for (std::size_t t = 0; t < rows; ++t) {
      std::vector<double> k(channels);
      double squared = 0;
      for (double& x : k) {
        const double p = stream.normal();
        x = silu ? p / (1 + std::exp(-p)) : (p > 0 ? p + 1 : std::exp(p));
        squared += x * x;
        below += x < 0 ? 1 : 0;
        least_entry = std::min(least_entry, x);
      }
      for (double& x : k) x /= std::sqrt(squared);
      keys.push_back(std::move(k));
    }
    double least = 1;
    for (std::size_t i = 0; i < rows; ++i) {
      for (std::size_t j = 0; j < i; ++j)
        least = std::min(least, std::inner_product(keys[i].begin(), keys[i].end(), keys[j].begin(), 0.0));
      largest = std::max(largest, std::inner_product(keys[i].begin(), keys[i].end(), keys[i].begin(), 0.0));
    }
    const std::string name = silu ? "silu" : "elu";
    out[name + "_share_below_0"] = below / static_cast<double>(rows * channels);
    out[name + "_least_cosine"] = least;
    out[name + "_least_entry"] = least_entry;
  }
  out["largest_squared_length"] = largest;
  return out;
}

}  // namespace

std::span<const claim_check> practice_checks() {
  static constexpr auto all = std::to_array<claim_check>({{"formats_of_kernels", exactly, formats_of_kernels},
                                                          {"values_doubled", exactly, values_doubled},
                                                          {"shift_model", exactly, shift_model},
                                                          {"keys_of_layers", claim_method::measurement, keys_of_layers, 400, 1}});
  return all;
}

}  // namespace deltaproof::claim_detail
