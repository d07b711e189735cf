// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
//
// What the tables of planted faults of the backward pass are written with, as faults.hpp is for those of the forward pass. A new
// fault is one row.
#pragma once

#include <string_view>
#include <utility>
#include <vector>

#include "emulate/backward_fault.hpp"
#include "emulate/faults.hpp"

namespace deltaproof::emulation_detail {

[[nodiscard]] fault_table cotangent_faults();
[[nodiscard]] fault_table state_gradient_faults();
[[nodiscard]] fault_table product_faults();
[[nodiscard]] fault_table gate_gradient_faults();
[[nodiscard]] fault_table token_gradient_faults();
[[nodiscard]] fault_table head_gradient_faults();
[[nodiscard]] fault_table group_gradient_faults();

/// From a generic lambda without captures.
template <class F>
[[nodiscard]] backward_hook make_backward_hook(F) {
  return {[](backward_site<float>& s) { F{}(s); }, [](backward_site<double>& s) { F{}(s); }};
}
/// The stage reads a changed copy.
template <class F>
[[nodiscard]] backward_fault_code before_step(backward_step at, F change) {
  return {nullptr, nullptr, {{at, true, make_backward_hook(change)}}, {}};
}
/// What the stage left is changed for everyone.
template <class F>
[[nodiscard]] backward_fault_code after_step(backward_step at, F change) {
  return {nullptr, nullptr, {{at, false, make_backward_hook(change)}}, {}};
}
/// After the sum over heads (group) or the norm's backward pass (norm).
template <class F>
[[nodiscard]] backward_fault_code after_group(backward_step at, F) {
  return {nullptr, nullptr, {}, {{at, {[](backward_group<float>& g) { F{}(g); }, [](backward_group<double>& g) { F{}(g); }}}}};
}
[[nodiscard]] inline backward_fault_code backward_arithmetic(void (*change)(backward_variant&, const head_input&)) {
  return {change, nullptr, {}, {}};
}
[[nodiscard]] inline backward_fault_code reads_cotangents(void (*change)(const problem&, std::size_t, std::size_t,
                                                                         const plan_variant&, head_cotangents&)) {
  return {nullptr, change, {}, {}};
}

inline constexpr condition one_gate_a_head{"one gate per head", [](const problem& p) { return !p.gate_per_channel(); }};
inline constexpr condition with_do{"the tensor do", [](const problem& p) { return p.d_o.has_value(); }};
inline constexpr condition with_dfinal_state{"the tensor dfinal_state",
                                             [](const problem& p) { return p.d_final_state.has_value(); }};
inline constexpr condition scaled_do = with_do & scaled;
inline constexpr condition gated_do = with_do & gated;
inline constexpr condition several_heads_with_do = with_do & several_heads;
inline constexpr condition several_with_dfinal_state = with_dfinal_state & several_sequences;
inline constexpr condition grouped{"more heads of v than of k", [](const problem& p) { return p.value_heads() > p.key_heads(); }};
inline constexpr condition derived_step{"an activation of beta or an update rule other than euler", [](const problem& p) {
                                          return p.rule != rule_kind::euler || p.beta_activation != activation_kind::none;
                                        }};

/// G of all rows but the last is 0: what stands there is not decayed.
template <class Real>
void forget_gates(backward_chunk<Real>& c) {
  for (std::size_t r = 0; r + 1 < c.rows && c.G.cols() > 0; ++r) zero_row(c.G, r);
}
/// The sum of a row of x times the row of y.
template <class Real>
[[nodiscard]] Real along(const matrix<Real>& x, const matrix<Real>& y, std::size_t row) {
  Real sum = 0;
  for (std::size_t m = 0; m < x.cols(); ++m) sum += x(row, m) * y(row, m);
  return sum;
}
/// k e^G.
template <class Real>
[[nodiscard]] matrix<Real> decayed_keys(const backward_chunk<Real>& c) {
  matrix<Real> keys = c.k;
  for (std::size_t r = 0; r < c.rows && c.G.cols() > 0; ++r) {
    for (std::size_t m = 0; m < keys.cols(); ++m) keys(r, m) *= std::exp2(c.G(r, c.G.cols() > 1 ? m : 0));
  }
  return keys;
}

}  // namespace deltaproof::emulation_detail
