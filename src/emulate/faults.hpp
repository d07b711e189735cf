// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
//
// What the tables of planted faults are written with: a row, the conditions a problem must meet, and the few things that
// wrong kernels do to a chunk or a token. A table is a function; faults.cpp joins them, those of backward_faults.hpp too. A new
// fault is one row.
#pragma once

#include <algorithm>
#include <cmath>
#include <initializer_list>
#include <numbers>
#include <string_view>
#include <utility>
#include <vector>

#include "emulate/fault.hpp"

namespace deltaproof::emulation_detail {

enum class paths { chunk, recurrent, both };

struct fault_row {
  fault_row(std::string_view its_name, std::string_view first_stage, std::string_view mistake, paths possible, fault_code made,
            std::vector<std::string_view> changed = {})
      : name{its_name}, stage{first_stage}, what{mistake}, where{possible}, code{std::move(made)}, results{std::move(changed)} {}
  /// Of the backward pass.
  fault_row(std::string_view its_name, std::string_view first_stage, std::string_view mistake, paths possible, condition needs,
            backward_fault_code made, std::vector<std::string_view> changed = {});

  std::string_view name;
  std::string_view stage;
  std::string_view what;
  paths where;
  fault_code code;
  std::vector<std::string_view> results;  ///< that it can change; empty: those computed from the stage
};
using fault_table = std::vector<fault_row>;
using table_maker = fault_table (*)();
/// The rows of each, one table after the other.
[[nodiscard]] fault_table joined(std::initializer_list<table_maker> tables);

[[nodiscard]] fault_table input_faults();
[[nodiscard]] fault_table head_faults();
[[nodiscard]] fault_table gate_faults();
[[nodiscard]] fault_table chunk_faults();
[[nodiscard]] fault_table state_faults();
[[nodiscard]] fault_table output_faults();
[[nodiscard]] fault_table precision_faults();
[[nodiscard]] fault_table recurrent_faults();

inline constexpr condition always;
inline constexpr condition gated{"gates", [](const problem& p) { return p.g.has_value(); }};
inline constexpr condition gated_by_channel{"a gate for each of several channels",
                                            [](const problem& p) { return p.gate_per_channel() && p.key_dim() > 1; }};
inline constexpr condition one_step{"one step a token", [](const problem& p) { return p.num_householder == 1; }};
inline constexpr condition several_steps{"several steps per token", [](const problem& p) { return p.num_householder > 1; }};
inline constexpr condition gated_several_steps = gated & several_steps;
inline constexpr condition normalised{"q and k that the kernel normalises", [](const problem& p) { return p.qk_l2norm; }};
inline constexpr condition scaled{"a scale other than 1", [](const problem& p) { return p.scale != 1; }};
inline constexpr condition other_rule{"an update rule other than euler",
                                      [](const problem& p) { return p.rule != rule_kind::euler; }};
inline constexpr condition with_initial_state{"an initial state", [](const problem& p) { return p.initial_state.has_value(); }};
inline constexpr condition several_sequences{"several sequences", [](const problem& p) { return p.sequence_count() > 1; }};
inline constexpr condition several_heads{"several heads of v", [](const problem& p) { return p.value_heads() > 1; }};
inline constexpr condition oblong{"K and V above 1", [](const problem& p) { return p.key_dim() > 1 && p.value_dim() > 1; }};

/// The stage reads a changed copy.
template <class F>
[[nodiscard]] planted_hook before(step_kind at, F change) {
  return {at, true, make_hook(change)};
}
/// What the stage left is changed for everyone.
template <class F>
[[nodiscard]] planted_hook after(step_kind at, F change) {
  return {at, false, make_hook(change)};
}
[[nodiscard]] inline fault_code hooks(condition needs, std::vector<planted_hook> at) {
  return {nullptr, nullptr, std::move(at), needs};
}
[[nodiscard]] inline fault_code arithmetic(condition needs, void (*change)(plan_variant&, const head_input&)) {
  return {change, nullptr, {}, needs};
}
[[nodiscard]] inline fault_code reads(condition needs, void (*change)(const problem&, std::size_t, std::size_t,
                                                                      const plan_variant&, head_input&)) {
  return {nullptr, change, {}, needs};
}

template <class Real>
[[nodiscard]] matrix<Real> as(const matrix<double>& m) {
  matrix<Real> out(m.rows(), m.cols());
  std::transform(m.entries().begin(), m.entries().end(), out.data(), [](double x) { return static_cast<Real>(x); });
  return out;
}
template <class Real>
void narrow_all(matrix<Real>& m, const narrowing& to) {
  narrow(std::span<Real>(m.data(), m.size()), to);
}
template <class Real>
void scale_all(matrix<Real>& m, Real factor) {
  for (std::size_t i = 0; i < m.size(); ++i) m.data()[i] *= factor;
}
template <class Real>
void zero_all(matrix<Real>& m) {
  std::fill_n(m.data(), m.size(), Real(0));
}
template <class Real>
void zero_row(matrix<Real>& m, std::size_t row) {
  std::fill(m.row(row).begin(), m.row(row).end(), Real(0));
}

/// Entries laid out as [cols, rows] and read as [rows, cols], or the other way round.
template <class Real>
void transpose_layout(matrix<Real>& m) {
  const matrix<Real> given = m;
  for (std::size_t i = 0; i < m.rows(); ++i) {
    for (std::size_t j = 0; j < m.cols(); ++j) m(i, j) = given.data()[j * m.rows() + i];
  }
}

/// a b, term after term in Real.
template <class Real>
[[nodiscard]] matrix<Real> plain_product(const matrix<Real>& a, const matrix<Real>& b) {
  matrix<Real> c(a.rows(), b.cols(), Real(0));
  for (std::size_t i = 0; i < a.rows(); ++i) {
    for (std::size_t m = 0; m < a.cols(); ++m) {
      for (std::size_t j = 0; j < b.cols(); ++j) c(i, j) += a(i, m) * b(m, j);
    }
  }
  return c;
}

/// The effective steps again, from step lengths `beta_of(given)` and the keys as they are.
template <class Real, class Beta>
void set_steps(site<Real>& s, const matrix<Real>& keys, const Beta& beta_of, bool with_gain = true);
[[nodiscard]] double activated(const head_input& in, double beta);

template <class Real, class Beta>
void set_steps(site<Real>& s, const matrix<Real>& keys, const Beta& beta_of, bool with_gain) {
  for (std::size_t r = 0; r < s.all.step.size(); ++r) {
    double norm = 0;
    for (const Real x : keys.row(r)) norm += static_cast<double>(x) * static_cast<double>(x);
    const double beta = beta_of(s.in.beta[r]);
    s.all.step[r] = static_cast<Real>(with_gain ? effective_step(s.in.rule, beta, norm) : beta);
  }
  narrow(std::span<Real>(s.all.step), {s.plan.beta, false});
}

/// Sum of log2 decays again, where row r of the sequence adds `decay(r, channel)`; inclusive unless said otherwise.
template <class Real, class Decay>
void cumulate(site<Real>& s, const Decay& decay, bool exclusive = false) {
  auto& c = s.now;
  const narrowing to{s.plan.cumsum, false};
  const std::size_t n = s.all.steps_per_token;
  const auto sums_from = [&](std::size_t first, std::size_t rows) {
    matrix<Real> G(rows, s.all.g.cols(), Real(0));
    for (std::size_t ch = 0; ch < G.cols(); ++ch) {
      Real sum = 0, shown = 0;
      for (std::size_t r = 0; r < rows; ++r) {
        if (!exclusive || (first + r) % n == 0) shown = sum;
        sum = narrowed(sum + static_cast<Real>(decay(first + r, ch)), to);
        G(r, ch) = narrowed((exclusive ? shown : sum) * static_cast<Real>(std::numbers::log2e), to);
      }
    }
    return G;
  };
  c.G = sums_from(c.first, c.rows);
  c.span_G = c.span_first == c.first ? c.G : sums_from(c.span_first, c.first + c.rows - c.span_first);
}

/// The update with one row more, at which the sum of gates is `gate`: its key and its write are zero.
template <class Real, class Gate>
void append_row(chunk_state<Real>& c, const Gate& gate) {
  const auto longer = [&](matrix<Real>& m) {
    matrix<Real> out(m.rows() + 1, m.cols(), Real(0));
    std::copy(m.entries().begin(), m.entries().end(), out.data());
    m = std::move(out);
  };
  longer(c.k);
  longer(c.change);
  longer(c.v_new);
  longer(c.G);
  for (std::size_t ch = 0; ch < c.G.cols(); ++ch) c.G(c.rows, ch) = gate(ch);
  ++c.rows;
}

/// The parts of the decay in an update, done by hand on the copy it reads: of what is written, and of the state.
template <class Real>
void decay_writes(chunk_state<Real>& c) {
  for (std::size_t r = 0; r < c.rows && c.G.cols() > 0; ++r) {
    for (std::size_t ch = 0; ch < c.k.cols(); ++ch) {
      const std::size_t g = c.G.cols() > 1 ? ch : 0;
      c.k(r, ch) *= std::exp2(c.G(c.rows - 1, g) - c.G(r, g));
    }
  }
}
template <class Real>
void decay_state(chunk_state<Real>& c) {
  for (std::size_t i = 0; i < c.state.rows() && c.G.cols() > 0; ++i) {
    const Real e = std::exp2(c.G(c.rows - 1, c.G.cols() > 1 ? i : 0));
    for (Real& x : c.state.row(i)) x *= e;
  }
}

}  // namespace deltaproof::emulation_detail
