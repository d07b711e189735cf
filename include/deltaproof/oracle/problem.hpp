// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
//
// After including this you can hold what a kernel was given (`problem`), ask for its dimensions, its
// sequences and its head map, and `validate` it. Nothing is computed here: the tensors keep the bits
// and the format they came with, and activations, norms, gains and decays are applied where a problem
// is lowered. Row-major layouts, with B batches, T tokens, n steps per token, H key heads, HV value
// heads, N sequences: q [B,T,H,K], k [B,T*n,H,K], v [B,T*n,HV,V], beta [B,T*n,HV], g [B,T,HV] or
// [B,T,HV,K], initial_state [N,HV,K,V]. It exists so that the reference and a kernel model read one
// and the same statement of the question.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "deltaproof/algebra/tensor.hpp"
#include "deltaproof/rule/rules.hpp"
#include "deltaproof/support/errors.hpp"

namespace deltaproof {

namespace detail {

template <class Kind, std::size_t N>
using kind_names = std::array<std::pair<Kind, std::string_view>, N>;

template <class Kind, std::size_t N>
[[nodiscard]] std::string_view name_in(const kind_names<Kind, N>& names, Kind kind) {
  for (const auto& [value, name] : names) {
    if (value == kind) return name;
  }
  throw domain_error("name_of: the value is none of the enumerators of its type; pass one of them");
}

template <class Kind, std::size_t N>
[[nodiscard]] Kind named_in(const kind_names<Kind, N>& names, std::string_view what, std::string_view name) {
  std::string known;
  for (const auto& [value, known_name] : names) {
    if (known_name == name) return value;
    known += (known.empty() ? "" : ", ") + std::string(known_name);
  }
  throw format_error("unknown " + std::string(what) + " \"" + std::string(name) + "\"; use one of " + known);
}

}  // namespace detail

/// Which recurrence: what g means, and how many steps a token takes, is all that tells them apart.
enum class op_kind { delta_rule, gated_delta_rule, kda, gated_delta_product };
/// beta, sigmoid(beta) or 2 sigmoid(beta), applied by the kernel before the rule.
enum class activation_kind { none, sigmoid, two_sigmoid };
/// What a kernel makes of a raw gate; `none`: it is given the log decay.
enum class gate_kind { none, softplus, bounded };

/// What g is of: nothing, [B, T, HV] or [B, T, HV, K].
enum class gate_axes { none, heads, channels };

struct op_row {
  op_kind kind;
  std::string_view name;
  gate_axes gates;
  std::size_t usual_steps;  ///< num_householder where nothing is said
  std::string_view what;
};

/// The one table of the recurrences. Files, generators, plans, `list ops` and the checks of shapes go through it; a new op is an
/// entry of op_kind and a row.
inline constexpr auto op_table = std::to_array<op_row>({
    {op_kind::delta_rule, "delta_rule", gate_axes::none, 1, "DeltaNet: no decay"},
    {op_kind::gated_delta_rule, "gated_delta_rule", gate_axes::heads, 1, "Gated DeltaNet: one gate per head"},
    {op_kind::kda, "kda", gate_axes::channels, 1, "Kimi Delta Attention: one gate per head and channel of k"},
    {op_kind::gated_delta_product, "gated_delta_product", gate_axes::heads, 2,
     "Gated DeltaProduct: one gate per head, several steps per token"},
});
inline constexpr auto op_names = [] {
  detail::kind_names<op_kind, op_table.size()> names{};
  for (std::size_t i = 0; i < op_table.size(); ++i) names[i] = {op_table[i].kind, op_table[i].name};
  return names;
}();
inline constexpr detail::kind_names<activation_kind, 3> activation_names{{
    {activation_kind::none, "none"},
    {activation_kind::sigmoid, "sigmoid"},
    {activation_kind::two_sigmoid, "two_sigmoid"},
}};

inline constexpr detail::kind_names<gate_kind, 3> gate_names{{
    {gate_kind::none, "none"},
    {gate_kind::softplus, "softplus"},
    {gate_kind::bounded, "bounded"},
}};

[[nodiscard]] inline std::string_view name_of(gate_kind activation) { return detail::name_in(gate_names, activation); }
[[nodiscard]] inline std::string_view name_of(op_kind op) { return detail::name_in(op_names, op); }
/// "delta_rule, gated_delta_rule, ...".
[[nodiscard]] inline std::string op_list() {
  std::string all;
  for (const op_row& row : op_table) all += (all.empty() ? "" : ", ") + std::string(row.name);
  return all;
}
[[nodiscard]] constexpr const op_row& row_of(op_kind op) {
  for (const op_row& row : op_table) {
    if (row.kind == op) return row;
  }
  throw domain_error("row_of: the value is none of the enumerators of op_kind; pass one of them");
}
[[nodiscard]] constexpr gate_axes gates_of(op_kind op) { return row_of(op).gates; }
/// "[B, T, HV, K]"; empty where there is no gate.
[[nodiscard]] constexpr std::string_view gate_shape(op_kind op) {
  return gates_of(op) == gate_axes::none ? "" : gates_of(op) == gate_axes::heads ? "[B, T, HV]" : "[B, T, HV, K]";
}
[[nodiscard]] inline std::string_view name_of(activation_kind activation) {
  return detail::name_in(activation_names, activation);
}

/// The kind with this name. Throws: format_error that lists the names there are.
[[nodiscard]] inline op_kind op_named(std::string_view name) { return detail::named_in(op_names, "op", name); }
[[nodiscard]] inline activation_kind activation_named(std::string_view name) {
  return detail::named_in(activation_names, "beta_activation", name);
}

[[nodiscard]] inline gate_kind gate_named(std::string_view name) { return detail::named_in(gate_names, "gate_activation", name); }

/// K^(-1/2) correctly rounded to fp64: the scale of a problem that states none, as in fla.
[[nodiscard]] double default_scale(std::size_t key_dim);

/// One sequence of a problem: tokens [first_token, first_token + tokens) of `batch`.
struct sequence_range {
  std::size_t batch = 0;
  std::size_t first_token = 0;
  std::size_t tokens = 0;

  friend bool operator==(const sequence_range&, const sequence_range&) = default;
};

/// What is added under the root of the l2norm where a problem does not say otherwise.
inline constexpr double reference_l2norm_epsilon = 1e-6;

/// A gate as a generator leaves it and the kernel receives it. softplus: g = -e^rate softplus(x + bias). bounded:
/// g = lower_bound sigmoid(e^rate (x + bias)).
struct raw_gate {
  gate_kind activation = gate_kind::softplus;
  tensor x;                    ///< of the shape of g
  tensor rate;                 ///< A_log: [HV]
  std::optional<tensor> bias;  ///< dt_bias: [HV], of a gate of channels [HV, K]; absent: 0
  double lower_bound = 0;      ///< of bounded, below 0
};
/// How far a fp64 number is from the gate that it was rounded from, relative to itself.
inline constexpr double raw_gate_roundoff = 0x1p-53 * (1 + 0x1p-20);

struct problem {
  op_kind op = op_kind::delta_rule;
  tensor q;
  tensor k;
  tensor v;
  tensor beta;
  std::optional<tensor> g;               ///< natural log of the decay; absent: no decay
  std::optional<raw_gate> raw;           ///< what g was made of, by `gate_of`: g is fp64, and within raw_gate_roundoff
  std::optional<tensor> initial_state;   ///< always (K, V); absent: zeros
  std::optional<tensor> d_o;             ///< [B, T, HV, V]: derivatives of a loss with respect to o; absent: zeros
  std::optional<tensor> d_final_state;   ///< [N, HV, K, V], likewise
  std::vector<std::int64_t> cu_seqlens;  ///< empty: each batch is one sequence
  double scale = 1;                      ///< multiplies q in the read-out only, exact
  bool qk_l2norm = false;                ///< the kernel reads x / sqrt(sum x^2 + l2norm_epsilon) for q and k
  /// Between 0 and 1. It stands for the decimal that it is nearest to: 1e-6 is one millionth.
  double l2norm_epsilon = reference_l2norm_epsilon;
  rule_kind rule = rule_kind::euler;
  activation_kind beta_activation = activation_kind::none;
  std::size_t num_householder = 1;  ///< n, steps per token; row t*n + j of k is step j of token t
  std::string note;

  // The dimensions, read off q and v; meaningful once `validate` has passed.
  [[nodiscard]] std::size_t batch() const { return q.shape().at(0); }             ///< B
  [[nodiscard]] std::size_t tokens() const { return q.shape().at(1); }            ///< T, of one batch
  [[nodiscard]] std::size_t steps() const { return tokens() * num_householder; }  ///< T*n, rows of k
  [[nodiscard]] std::size_t key_heads() const { return q.shape().at(2); }         ///< H
  [[nodiscard]] std::size_t value_heads() const { return v.shape().at(2); }       ///< HV
  [[nodiscard]] std::size_t key_dim() const { return q.shape().at(3); }           ///< K
  [[nodiscard]] std::size_t value_dim() const { return v.shape().at(3); }         ///< V
  [[nodiscard]] std::size_t sequence_count() const {                              ///< N
    return cu_seqlens.empty() ? batch() : cu_seqlens.size() - 1;
  }
  /// Whether g has one decay for each channel of the key (KDA).
  [[nodiscard]] bool gate_per_channel() const { return g.has_value() && g->rank() == 4; }

  /// The sequences in the order of initial_state and final_state; some may have no token.
  [[nodiscard]] std::vector<sequence_range> sequences() const;

  /// Whether it asks for gradients too.
  [[nodiscard]] bool has_cotangents() const { return d_o.has_value() || d_final_state.has_value(); }

  /// floor(value_head / (HV/H)): the head of q and k that a head of v, beta and g reads.
  [[nodiscard]] std::size_t key_head(std::size_t value_head) const { return value_head / (value_heads() / key_heads()); }
};

/// Checks that `p` states a question: ranks and shapes agree, q, k and v share one format, nothing is
/// NaN or infinite (but -inf in g, a decay of 0), cu_seqlens partitions the tokens. T = 0, sequences
/// without tokens, g > 0 and expansive steps are legal.
/// Throws: shape_error, format_error (formats) or domain_error (values, with tensor and index), each
/// opening with `where`, the name of the file or caller.
void validate(const problem& p, std::string_view where);

/// The gate that a raw one stands for, in fp64, each number rounded once. Throws: shape_error, format_error or domain_error where
/// `raw` does not fit the problem, opening with `where`.
[[nodiscard]] tensor gate_of(const problem& p, const raw_gate& raw, std::string_view where);

/// sequences().at(index), without listing the others.
[[nodiscard]] sequence_range sequence_at(const problem& p, std::size_t index);

}  // namespace deltaproof
