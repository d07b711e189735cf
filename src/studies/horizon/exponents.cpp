// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT

#include "deltaproof/number/rational.hpp"
#include "deltaproof/scan/transition.hpp"
#include "studies/horizon/growth.hpp"

namespace deltaproof::detail::horizon {
namespace {

using shared::stability_of;

enum step_stream : std::uint64_t { of_steps = 21, of_gates = 22 };

std::vector<double> uniform_steps(std::size_t tokens, double limit, std::uint64_t seed) {
  philox random(seed, of_steps);
  std::vector<double> steps(tokens);
  for (double& beta : steps) beta = limit * random.uniform();
  return steps;
}

/// Euler steps of one kind: the exponent by the mean of x or by the limit of a uniform step, where it changes sign, and the
/// figure's.
struct varying {
  std::string_view name;
  std::function<double(double)> exponent;
  double low, high;       ///< of the root
  double limit_per_mean;  ///< what `exponent` takes, over the mean of x
  double scale;           ///< of the figure: d for fresh keys
};
const grid_axis<varying> laws{"law",
                              {{"fixed", [](double x) { return fresh_exponent(1 - x, key_dim); }, 1, 3, 1, key_dim},
                               {"gaussian", [](double n) { return gaussian_exponent(n, key_dim); }, 1.5, 2.5, 1, key_dim},
                               {"uniform", [](double b) { return uniform_step_exponent(b, key_dim); }, 2, 4, 2, key_dim},
                               {"repeated", [](double b) { return repeated_uniform_step_exponent(b); }, 3, 6, 2, 1}}};

/// Per-channel gates uniform in (floor, 1) before each step of strength x on fresh directions: the share of single factors with
/// an eigenvalue beyond -1, the exponent and its standard error.
frame_row run_gated(const key_set& keys, double x, double floor, std::uint64_t seed) {
  philox random(seed, of_gates);
  std::vector<double> gate(keys.key_dim);
  std::size_t outside = 0;
  const auto e = estimate_exponent(keys.key_dim, keys.tokens(), [&](transition_product<double>& product, std::size_t t) {
    const auto u = keys.direction(t);
    double overlap = 0;
    for (std::size_t i = 0; i < gate.size(); ++i) {
      gate[i] = floor + (1 - floor) * random.uniform();
      overlap += gate[i] * u[i] * u[i] / (1 + gate[i]);
    }
    // (I - x u u^T) diag(a) is similar to the symmetric diag(a) - x w w^T, w = sqrt(a) u, which has an eigenvalue
    // below -1 exactly where x w^T (I + diag(a))^-1 w > 1.
    if (x * overlap > 1) ++outside;
    product.decay(gate);
    product.step(u, x);
  });
  return {floor, static_cast<double>(outside) / static_cast<double>(keys.tokens()), x - 1, e.mean, e.standard_error};
}

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

double log10_frobenius(const matrix<rational>& m) {
  rational sum = 0;
  for (const rational& x : m.entries()) sum += x * x;
  return 0.5 * log10_of(round_to<fp64>(sum).value());
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
  const std::size_t last = 30;
  const auto alternating = gated_pair(last, true), repeated = gated_pair(last, false);
  frame growth({"tokens", "alternating", "repeated"});
  for (std::size_t t = 1; t <= last; ++t) {
    growth.add({t, log10_frobenius(exact_transition(alternating, 0, t)), log10_frobenius(exact_transition(repeated, 0, t))});
  }
  r.table("pair", std::move(growth));
}

/// What the figures draw: every rule's largest eigenvalue and exponent, and the exponents of the four laws.
void add_curves(const run_options& options, results& r) {
  std::vector<double> xs, means;
  for (int i = 0; i <= 160; ++i) xs.push_back(0.0625 * shared::exp64(6.93147180559945309 * i / 160));
  for (int i = 1; i <= 60; ++i) means.push_back(3.0 * i / 60);
  r.table("curves", grid(
                        options, "closed forms", {"size", "exponent"},
                        [](const std::string& rule, double x) -> frame_row {
                          const double stability = stability_of(rule, x);
                          return {std::max(1.0, std::fabs(stability)), key_dim * fresh_exponent(stability, key_dim)};
                        },
                        rule_axis(), grid_axis<double>{"x", xs}));
  r.table("crossings", grid(
                           options, "crossings", {"exponent"},
                           [](const varying& law, double mean_x) -> frame_row {
                             return {law.scale * law.exponent(law.limit_per_mean * mean_x)};
                           },
                           laws, grid_axis<double>{"x", means}));
}

frame gated_steps(const run_options& options, const key_set& keys) {
  const std::map<double, double> floors{{2.5, 0.98}, {3, 0.94}, {4, 0.85}};
  return grid(
      options, "gates", {"floor", "share", "largest", "mean", "error"},
      [&](double x) { return run_gated(keys, x, floors.at(x), options.seed); }, grid_axis<double>{"x", {2.5, 3, 4}});
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

frame all_exponents(const frame& fixed, const frame& varied, const frame& gated) {
  frame table({"keys", "x", "floor", "share", "largest", "expected", "mean", "error"});
  const auto append = [&](const frame& from, const char* name, const char* x) {
    for (std::size_t i = 0; i < from.size(); ++i) {
      const auto row = from[i];
      const auto optional = [&](const char* column) { return from.has(column) ? row[column] : cell(); };
      table.add({from.has(name) ? row[name] : cell(name), row[x], optional("floor"), optional("share"), row["largest"],
                 optional("expected"), row["mean"], row["error"]});
    }
  };
  append(fixed, "rule", "x");
  append(varied, "law", "limit");
  append(gated, "gated", "x");
  return table;
}

}  // namespace

void add_exponents(const run_options& options, results& r) {
  const std::size_t tokens = exponent_tokens(options);
  const key_set keys = make_keys(key_kind::fresh, tokens, key_dim, options.seed + 1);
  const key_set line{1, {1.0}, std::vector<std::uint32_t>(tokens, 0), {1.0}};
  const grid_axis<double> xs{"x", {0.125, 0.25, 0.5, 1, 1.5, 1.9, 2.1, 2.5, 3, 8, 32}};
  frame fixed = fixed_steps(options, keys, xs);
  std::map<std::string_view, double> roots;
  for (const varying& law : laws.quick) roots[law.name] = crossing(law.exponent, law.low, law.high);
  const grid_axis<double> around{"around", {0.97, 1, 1.03}};
  const frame varied = grid(
      options, "varying steps", {"limit", "largest", "expected", "mean", "error"},
      [&](const varying& law, double relative) -> frame_row {
        const double limit = relative * roots.at(law.name);
        std::vector<double> strength = uniform_steps(tokens, limit, options.seed);
        if (law.name == "gaussian") {
          std::transform(keys.relative_square.begin(), keys.relative_square.end(), strength.begin(),
                         [limit](double square) { return square * limit; });
        }
        const estimated_exponent e = estimate_exponent(law.name == "repeated" ? line : keys, strength);
        return {limit, law.name == "gaussian" ? cell() : cell(limit - 1), law.exponent(limit), e.mean, e.standard_error};
      },
      grid_axis<varying>{"law", {laws.quick.begin() + 1, laws.quick.end()}}, around);

  const frame gated = gated_steps(options, keys);

  constexpr double norm = 4;
  const double at_four = fresh_exponent(1 - norm, key_dim);
  r.values("exponent-value", evidence::certified(),
           {{"exponent", at_four}, {"radius", 1e-16}, {"ln_max_eigenvalue", ln(norm - 1)}});
  r.values("exponent-measured", evidence::sampled(fixed.size() * tokens, options.seed + 1, {}),
           {{"largest_deviation_in_standard_errors", fixed.over("off", worst)}});
  r.values("critical-steps", evidence::measured(),
           {{"gaussian_critical_mean_square", roots["gaussian"]},
            {"uniform_step_critical_limit", roots["uniform"]},
            {"repeated_key_critical_limit", roots["repeated"]}});
  const auto beyond = std::count_if(keys.relative_square.begin(), keys.relative_square.end(),
                                    [&](double square) { return square * around.quick[0] * roots["gaussian"] > 2; });
  const auto below = [&](const char* column) { return varied.find({{"law", "gaussian"}, {"around", around.quick[0]}}, column); };
  const bool signs = varied.where("around", around.quick[0]).over("mean", greatest) < 0 &&
                     varied.where("around", around.quick[2]).over("mean", least) > 0;
  r.values("not-necessary", evidence::sampled(varied.size() * tokens, options.seed + 1, {}),
           {{"share_of_factors_beyond_1", static_cast<double>(beyond) / static_cast<double>(tokens)},
            {"gaussian_exponent_below", below("mean")},
            {"predicted_signs", signs}});
  const auto strongest = gated[gated.size() - 1];
  const double ungated = fresh_exponent(1 - strongest.number("x"), key_dim);
  r.values("gated-not-necessary", evidence::sampled(tokens, options.seed, {}),
           {{"share_outside", strongest["share"]}, {"exponent", strongest["mean"]}, {"ungated_exponent", ungated}});
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
                         {"below_error", below("error")},
                         {"gated_x", strongest["x"]},
                         {"gated_floor", strongest["floor"]},
                         {"gated_error", strongest["error"]},
                         {"repeated_largest", roots["repeated"] - 1},
                         {"uniform_mean", roots["uniform"] / 2},
                         {"rk3", leaves_one("rk3")},
                         {"rk4", leaves_one("rk4")}});
  r.table("exponents", all_exponents(fixed, varied, gated));
  r.table("measured", std::move(fixed));
  add_curves(options, r);
  add_pair(r);
}

}  // namespace deltaproof::detail::horizon

// Theorems behind this file, by their names in proofs/README.md.
// proved: algebra.non_expansive.energy_balance
