// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT

#include "deltaproof/number/rational.hpp"
#include "deltaproof/scan/transition.hpp"
#include "studies/horizon/growth.hpp"

namespace deltaproof::detail::horizon {
namespace {

using shared::stability_of;

/// (I - k k^T) diag(a), k = (1, 2), a = (1, 1/16), and the same with the two channels exchanged: one token each.
sequence<rational> gated_pair(std::size_t tokens, bool alternate) {
  sequence<rational> s = sequence<rational>::zeros(tokens, 1, 2, 1, decay_kind::per_channel);
  for (std::size_t t = 0; t < tokens; ++t) {
    const std::size_t first = alternate && t % 2 == 1 ? 1 : 0;
    s.k[2 * t + first] = 1;
    s.k[2 * t + 1 - first] = 2;
    s.decay[2 * t + first] = 1;
    s.decay[2 * t + 1 - first] = rational(1, 16);
    s.step[t] = 1;
  }
  return s;
}

void add_pair(results& r) {
  const matrix<rational> one = exact_transition(gated_pair(1, true), 0, 1);
  const matrix<rational> two = exact_transition(gated_pair(2, true), 0, 2);
  const rational trace = one(0, 0) + one(1, 1);
  const rational determinant = one(0, 0) * one(1, 1) - one(0, 1) * one(1, 0);
  const auto size = [](const rational& x) { return x < 0 ? rational(-x) : x; };
  r.values("not-sufficient-gated", evidence::measured(),
           {{"trace", trace.str()},
            {"determinant", determinant.str()},
            // Both eigenvalues, by Jury's criterion, exactly.
            {"eigenvalues_inside_disc", size(determinant) < 1 && size(trace) < 1 + determinant},
            {"corner_of_the_pair", two(0, 0).str()},
            {"pair_is_triangular", two(1, 0) == 0}});
  r.values("pair", {{"gate", gated_pair(1, true).decay[1].str()}, {"square", 1 + 2 * 2}});  // the second: |k|^2
}

frame fixed_steps(const run_options& options, const key_set& keys, const grid_axis<double>& xs) {
  frame fixed = grid(
      options, "exponents", {"largest", "expected", "mean", "error", "scaled"},
      [&](const std::string& rule, double x) -> frame_row {
        const double stability = stability_of(rule, x);
        const std::array<double, 1> strength{rule == "euler" ? x : 1 - stability};
        const estimated_exponent e = estimate_exponent(keys, strength);
        return {std::max(1.0, std::fabs(stability)), fresh_exponent(stability, key_dim), e.mean, e.standard_error,
                key_dim * e.mean};
      },
      grid_axis<std::string>{"rule", {"euler", "exact"}}, xs);
  fixed.derive("off", [](const auto& row) { return (row.number("mean") - row.number("expected")) / row.number("error"); });
  return fixed;
}

}  // namespace

void add_exponents(const run_options& options, results& r) {
  const std::size_t tokens = exponent_tokens(options);
  const key_set keys = make_keys(key_kind::fresh, tokens, key_dim, options.seed + 1);
  const grid_axis<double> xs{"x", {0.125, 0.25, 0.5, 1, 1.5, 1.9, 2.1, 2.5, 3, 8, 32}};
  frame fixed = fixed_steps(options, keys, xs);

  // Keys that are not normalised, below, at and above the mean square at which their exponent is 0.
  const double critical = crossing([](double mean) { return gaussian_exponent(mean, key_dim); }, 1.5, 2.5);
  const grid_axis<double> around{"around", {0.97, 1, 1.03}};
  const frame drawn = grid(
      options, "Gaussian keys", {"x", "expected", "mean", "error"},
      [&](double relative) -> frame_row {
        const double limit = relative * critical;
        std::vector<double> strength;
        for (const double square : keys.relative_square) strength.push_back(square * limit);
        const estimated_exponent e = estimate_exponent(keys, strength);
        return {limit, gaussian_exponent(limit, key_dim), e.mean, e.standard_error};
      },
      around);

  constexpr double norm = 4;
  const double at_four = fresh_exponent(1 - norm, key_dim);
  r.values("exponent-value", evidence::certified(),
           {{"exponent", at_four}, {"radius", 1e-16}, {"ln_max_eigenvalue", ln(norm - 1)}});
  r.values("exponent-measured", evidence::sampled(fixed.size() * tokens, options.seed + 1, {}),
           {{"largest_deviation_in_standard_errors", fixed.over("off", worst)}});
  const auto beyond = std::count_if(keys.relative_square.begin(), keys.relative_square.end(),
                                    [&](double square) { return square * around.quick[0] * critical > 2; });
  r.values("not-necessary", evidence::sampled(drawn.size() * tokens, options.seed + 1, {}),
           {{"critical_mean_square", critical},
            {"share_of_factors_beyond_1", static_cast<double>(beyond) / static_cast<double>(tokens)},
            {"gaussian_exponent_below", drawn[0].number("mean")},
            {"predicted_signs", drawn[0].number("mean") < 0 && drawn[2].number("mean") > 0}});
  const auto leaves_one = [](const char* rule) {
    return crossing([rule](double x) { return std::fabs(stability_of(rule, x)) - 1; }, 2, 3.5);
  };
  r.values("exponents", {{"norm", norm},
                         {"size", norm - 1},
                         {"overstates", ln(norm - 1) / at_four},
                         {"bits", exponent_bits},
                         {"operations", 4 * key_dim},
                         {"deviations", fixed.size()},
                         {"first", xs.quick.front()},
                         {"last", xs.quick.back()},
                         {"block", exponent_block},
                         {"away", 1 - around.quick[0]},
                         {"below_error", drawn[0]["error"]},
                         {"rk3", leaves_one("rk3")},
                         {"rk4", leaves_one("rk4")}});
  frame table({"keys", "x", "largest", "expected", "mean", "error"});
  for (std::size_t i = 0; i < fixed.size(); ++i) {
    const auto row = fixed[i];
    table.add({row["rule"], row["x"], row["largest"], row["expected"], row["mean"], row["error"]});
  }
  for (std::size_t i = 0; i < drawn.size(); ++i) {
    const auto row = drawn[i];
    table.add({"gaussian", row["x"], cell(), row["expected"], row["mean"], row["error"]});
  }
  r.table("exponents", std::move(table));
  r.table("measured", std::move(fixed));
  std::vector<double> shown;
  for (int i = 0; i <= 160; ++i) shown.push_back(0.0625 * shared::exp64(6.93147180559945309 * i / 160));
  r.table("curves", grid(
                        options, "closed forms", {"size", "exponent"},
                        [](const std::string& rule, double x) -> frame_row {
                          const double stability = stability_of(rule, x);
                          return {std::max(1.0, std::fabs(stability)), key_dim * fresh_exponent(stability, key_dim)};
                        },
                        rule_axis(), grid_axis<double>{"x", shown}));
  add_pair(r);
}

}  // namespace deltaproof::detail::horizon

// Theorems behind this file, by their names in proofs/README.md.
// proved: algebra.non_expansive.energy_balance
