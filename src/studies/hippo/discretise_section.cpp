// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT

#include <algorithm>
#include <array>
#include <cmath>
#include <initializer_list>
#include <limits>
#include <map>
#include <string>
#include <vector>

#include "deltaproof/number/random.hpp"
#include "studies/hippo/discretise.hpp"
#include "studies/hippo/sections.hpp"
#include "studies/shared/functions.hpp"

namespace deltaproof::detail::hippo {
namespace {

constexpr double unit = 0x1p-53;

/// Of the steps with norms.
constexpr int smallest_shown = -8;

std::string step_text(double step) { return number(step, 3); }

struct survey {
  std::vector<comparison> all;  ///< kind-major, steps ascending
  std::size_t steps = 0;
  bool complete = false;

  [[nodiscard]] const comparison& at(kind which, double step) const {
    for (const comparison& c : all) {
      if (c.of == which && c.step == step) return c;
    }
    throw domain_error("no comparison at step " + std::to_string(step));
  }
};

survey run_survey(const run_options& options, const settings& size) {
  survey s;
  s.steps = static_cast<std::size_t>(size.largest_exponent - size.smallest_exponent + 1);
  s.all.resize(kinds.size() * s.steps);
  const std::size_t done = for_each_index(s.all.size(), options, "matrix exponentials", [&](std::size_t i) {
    const kind which = kinds[i / s.steps];
    const int exponent = size.smallest_exponent + static_cast<int>(i % s.steps);
    // Decompositions take most of the time: only those that are shown.
    const bool shown = exponent >= smallest_shown && (which == kind::legs || which == kind::rank_one);
    s.all[i] = compare(which, size.size, exponent, shown || exponent == 0 || exponent == size.largest_exponent);
  });
  s.complete = done == s.all.size();
  return s;
}

figure error_figure(const survey& s) {
  figure f;
  f.id = "errors";
  f.title = "Relative error of one step against the matrix exponential";
  f.columns = 2;
  f.shared_x = true;
  f.caption =
      "1-norm, truth over 512 bits. Bilinear and Euler: error of the rule itself, over 512 bits; slopes 3 and 2, until the step "
      "is too long for the rule. Scaling and squaring: "
      "the exact step computed in double, the larger error of transition and input (φ₁): near u max(1, |tA|) for every A. "
      "A⁻¹(e^tA − I): the formula as printed, in double; it loses digits as t shrinks, "
      "and is absent where A has no inverse.";
  f.alt = "Five log-log panels. Two rising lines, a flat cluster near 1e-15, and in two panels a falling line.";
  for (const kind which : kinds) {
    panel p;
    p.title = std::string(name_of(which));
    p.x = {"step t", axis_scale::logarithmic};
    p.y = {"relative error", axis_scale::logarithmic, 1e-17, 1e3};
    series bilinear_curve{"bilinear", {}, {}};
    series euler_curve{"Euler", {}, {}};
    series exact_curve{"scaling and squaring", {}, {}};
    series inverse_curve{"A⁻¹(e^tA − I)", {}, {}};
    for (const comparison& c : s.all) {
      if (c.of != which) continue;
      const auto add = [&](series& curve, double y) {
        curve.x.push_back(c.step);
        curve.y.push_back(y > 0 ? y : std::numeric_limits<double>::quiet_NaN());
      };
      add(bilinear_curve, c.bilinear_error);
      add(euler_curve, c.euler_error);
      add(exact_curve, std::max(c.double_error, c.double_phi_error));
      add(inverse_curve, c.inverse_error);
    }
    p.curves = {std::move(bilinear_curve), std::move(euler_curve), std::move(exact_curve), std::move(inverse_curve)};
    f.panels.push_back(std::move(p));
  }
  return f;
}

figure norm_figure(const survey& s) {
  figure f;
  f.id = "norms";
  f.title = "Spectral norm of one step";
  f.columns = 2;
  f.shared_x = true;
  f.caption =
      "What one step can do to a state. HiPPO-LegS: the exact step shrinks at least as e^(−t/2); the bilinear one stays below 1, "
      "but only just, because its fast "
      "modes are multiplied by (2 − x)/(2 + x) → −1; Euler's leaves 1 at the latest at t = 2/n. −k kᵀ: nothing moves outside k, "
      "so the norm is 1 until Euler's leaves it at t|k|² = 2.";
  f.alt =
      "Two panels; Euler's curve rises steeply in both; in the first the exact one falls while the bilinear one stays near one.";
  for (const kind which : {kind::legs, kind::rank_one}) {
    panel p;
    p.title = std::string(name_of(which));
    p.x = {"step t", axis_scale::logarithmic, detail::power_of_two(smallest_shown), {}};
    p.y = {"spectral norm", axis_scale::linear, 0, 2};
    p.marks = {{mark_direction::horizontal, 1, ""}};
    series bilinear_curve{"bilinear", {}, {}};
    series euler_curve{"Euler", {}, {}};
    series exact_curve{"exact", {}, {}};
    for (const comparison& c : s.all) {
      if (c.of != which || c.step < detail::power_of_two(smallest_shown)) continue;
      bilinear_curve.x.push_back(c.step);
      bilinear_curve.y.push_back(c.bilinear_norm);
      exact_curve.x.push_back(c.step);
      exact_curve.y.push_back(c.exact_norm);
      if (c.euler_norm > 3) continue;
      euler_curve.x.push_back(c.step);
      euler_curve.y.push_back(c.euler_norm);
    }
    p.curves = {std::move(bilinear_curve), std::move(euler_curve), std::move(exact_curve)};
    f.panels.push_back(std::move(p));
  }
  return f;
}

}  // namespace

void add_discretisations(const run_options& options, const settings& size, report& r) {
  const survey s = run_survey(options, size);
  if (!s.complete) {
    r.unfinished.emplace_back("Exact against bilinear discretisation: interrupted.");
    return;
  }
  double radius = 0;
  double worst_double = 0;
  double worst_phi = 0;
  double longest = 0;
  for (const comparison& c : s.all) {
    radius = std::max(radius, c.truth_radius);
    // Rounding A already moves e^(tA) by |tA| u: errors are compared with that.
    const double condition = unit * std::max(1.0, c.length);
    worst_double = std::max(worst_double, c.double_error / condition);
    worst_phi = std::max(worst_phi, c.double_phi_error / condition);
    longest = std::max(longest, c.length);
  }
  const double smallest = detail::power_of_two(size.smallest_exponent);
  const double largest = detail::power_of_two(size.largest_exponent);
  const std::string n_text = std::to_string(size.size);
  r.findings.push_back({"ruler",
                        "e^(tA) and φ₁(tA) over 512 bits are within " + number(radius, 2) +
                            " (relative, 1-norm) of the exact ones for all " + std::to_string(s.all.size()) +
                            " pairs of A and t.",
                        evidence::certified(),
                        {{"largest_radius", radius}, {"pairs", s.all.size()}},
                        "Scaling and squaring with a bound carried along: remainder of the Taylor series, γ of every product, "
                        "squares (2|E| e + e²)."});
  const bool accurate = worst_double < 100 && worst_phi < 100;
  r.findings.push_back({"exact-needs-no-inverse",
                        std::string("In double, scaling and squaring gives e^(tA) within ") + number(worst_double, 3) +
                            " u max(1, |tA|) and φ₁(tA) within " + number(worst_phi, 3) +
                            " u max(1, |tA|) for HiPPO-LegS, −k kᵀ, nilpotent, singular and defective A alike (n = " + n_text +
                            ", t = " + step_text(smallest) + " … " + step_text(largest) + ", |tA| up to " + number(longest, 3) +
                            "): " +
                            (accurate ? "A⁻¹(e^tA − I) read as a power series needs no inverse, whatever A is."
                                      : "it loses two digits more than it must."),
                        evidence::measured(),
                        {{"worst_exp", worst_double}, {"worst_phi", worst_phi}, {"accurate", accurate}},
                        "Against the ruler; error relative in the 1-norm, u = 2^−53. Rounding the entries of A alone moves "
                        "e^(tA) by up to |tA| u."});
  const comparison& legs_small = s.at(kind::legs, smallest);
  const comparison& legs_middle = s.at(kind::legs, 1);
  double inverse_singular = 0;
  std::size_t refused = 0;
  std::size_t unnoticed = 0;
  for (const kind which : {kind::rank_one, kind::nilpotent, kind::singular}) {
    const comparison& c = s.at(which, 1);
    if (std::isnan(c.inverse_error)) {
      ++refused;
    } else {
      ++unnoticed;
      inverse_singular = std::max(inverse_singular, c.inverse_error);
    }
  }
  r.findings.push_back(
      {"inverse-formula",
       std::string("Computed as printed, A⁻¹(e^tA − I) does not exist for −k kᵀ, nilpotent or singular A") +
           (unnoticed > 0
                ? " (elimination in double stops at " + std::to_string(refused) + " of the three and passes " +
                      std::to_string(unnoticed) + ", with a relative error of " + number(inverse_singular, 2) + " at t = 1)"
                : " (elimination stops at a zero pivot)") +
           "; where A has an inverse it " +
           (legs_small.inverse_error > 100 * legs_middle.inverse_error ? "loses digits as t shrinks: " : "loses few digits: ") +
           "for HiPPO-LegS the relative error is " + number(legs_middle.inverse_error, 2) + " at t = 1 and " +
           number(legs_small.inverse_error, 2) + " at t = " + step_text(smallest) + ", where the series gives " +
           number(legs_small.double_phi_error, 2) + ".",
       evidence::measured(),
       {{"legs_smallest_step", legs_small.inverse_error},
        {"legs_step_1", legs_middle.inverse_error},
        {"refused", refused},
        {"unnoticed", unnoticed},
        {"unnoticed_error", inverse_singular}},
       "e^(tA) by scaling and squaring in double, minus I, solved with A by elimination with pivoting; −k kᵀ has rank 1, so for "
       "d > 1 the printed formula never has an inverse to use."});
  double slope_low = 100;
  double slope_high = 0;
  double euler_slope_low = 100;
  double euler_slope_high = 0;
  for (std::size_t i = 0; i < kinds.size(); ++i) {
    const comparison& a = s.all[i * s.steps];
    const comparison& b = s.all[i * s.steps + 1];
    if (!(a.bilinear_error > 0)) continue;
    const double slope = shared::ln(b.bilinear_error / a.bilinear_error) / shared::ln(2);
    const double euler_slope = shared::ln(b.euler_error / a.euler_error) / shared::ln(2);
    slope_low = std::min(slope_low, slope);
    slope_high = std::max(slope_high, slope);
    euler_slope_low = std::min(euler_slope_low, euler_slope);
    euler_slope_high = std::max(euler_slope_high, euler_slope);
  }
  const bool third_order = slope_low > 2.9 && slope_high < 3.1;
  r.findings.push_back({"bilinear-order",
                        std::string("One bilinear step errs like t^") + number(slope_low, 3) +
                            (slope_high - slope_low > 0.005 ? " … t^" + number(slope_high, 3) : std::string()) +
                            (third_order ? ", order 2 whatever A is" : ", not order 2 for every A") + " (Euler: t^" +
                            number(euler_slope_low, 3) + "); at t = 1 it is off by " +
                            number(100 * legs_middle.bilinear_error, 3) + " % for HiPPO-LegS, " +
                            number(100 * s.at(kind::rank_one, 1).bilinear_error, 3) + " % for −k kᵀ with |k|² = " +
                            number(
                                -[&] {
                                  const matrix<double> a = make(kind::rank_one, size.size);
                                  double trace = 0;
                                  for (std::size_t i = 0; i < a.rows(); ++i) trace += a(i, i);
                                  return trace;
                                }(),
                                4) +
                            ", " + number(100 * s.at(kind::defective, 1).bilinear_error, 3) +
                            " % for the Jordan block, whose exact step is off by rounding only.",
                        evidence::measured(),
                        {{"slope_low", slope_low},
                         {"slope_high", slope_high},
                         {"euler_slope_low", euler_slope_low},
                         {"euler_slope_high", euler_slope_high},
                         {"order_two", third_order},
                         {"legs_at_1", legs_middle.bilinear_error}},
                        "Errors of the rules over 512 bits at the two smallest steps."});
  const comparison& legs_large = s.at(kind::legs, largest);
  const bool rings = legs_large.bilinear_norm > 0.5 && legs_large.exact_norm < 0.01;
  r.findings.push_back(
      {"bilinear-rings",
       std::string("Both keep HiPPO-LegS stable, ") + (rings ? "only the exact one forgets" : "and both forget") +
           ": the exact transition has norm " + number(legs_middle.exact_norm, 4) + " at t = 1 and " +
           number(legs_large.exact_norm, 2) + " at t = " + step_text(largest) + ", the bilinear one " +
           number(legs_middle.bilinear_norm, 4) + " and " + number(legs_large.bilinear_norm, 6) +
           ": fast modes are reflected instead of damped. Euler's exceeds 1 from t = 2/n on at the latest: its norm at "
           "t = 1 is " +
           number(legs_middle.euler_norm, 3) + ".",
       evidence::measured(),
       {{"exact_norm_at_1", legs_middle.exact_norm},
        {"bilinear_norm_at_1", legs_middle.bilinear_norm},
        {"exact_norm", legs_large.exact_norm},
        {"bilinear_norm", legs_large.bilinear_norm},
        {"euler_norm_at_1", legs_middle.euler_norm},
        {"rings", rings}},
       "Spectral norms by a singular value decomposition over 128 bits of matrices known to 512; the eigenvalues of A are −1 … "
       "−n, those of a bilinear step (2 − tj)/(2 + tj)."});
  r.findings.push_back({"legs-contracts",
                        "A + Aᵀ = −(I + b bᵀ) for HiPPO-LegS with b the input vector: every exact step has norm at most "
                        "e^(−t/2), every bilinear step at most 1, although A is far from "
                        "symmetric.",
                        evidence::proved(),
                        {},
                        "Entry by entry: −√((2i+1)(2j+1)) below and 0 above the diagonal, −(i + 1) on it, b_i b_j = "
                        "√((2i+1)(2j+1)). Then d|x|²/dt = −|x|² − (bᵀx)², and a Cayley transform of "
                        "a dissipative matrix is a contraction."});
  table t;
  t.id = "errors";
  t.title = "Relative errors of one step (1-norm)";
  t.columns = {"A",
               "t",
               {"bilinear", 3},
               {"bilinear, input", 3},
               {"Euler", 3},
               {"exact in double: e^tA", 3},
               {"φ₁", 3},
               {"A⁻¹(e^tA − I) in double", 3},
               {"norm exact", 4},
               {"bilinear", 4},
               {"Euler", 4}};
  for (const comparison& c : s.all) {
    if (!(c.step == smallest || c.step == 0x1p-8 || c.step == 0x1p-4 || c.step == 0.25 || c.step == 1 || c.step == largest))
      continue;
    const auto shown = [](double norm) { return std::isnan(norm) ? cell("") : cell(norm); };
    t.rows.push_back({std::string(name_of(c.of)), step_text(c.step), c.bilinear_error, c.bilinear_input_error, c.euler_error,
                      c.double_error, c.double_phi_error,
                      std::isnan(c.inverse_error) ? cell("no inverse") : cell(c.inverse_error), shown(c.exact_norm),
                      shown(c.bilinear_norm), shown(c.euler_norm)});
  }
  t.note = "n = " + n_text +
           "; entries of A are doubles (LegS: square roots rounded once), the same bits for every precision. "
           "Norms: spectral, where computed.";
  r.tables.push_back(std::move(t));
  r.figures.push_back(error_figure(s));
  r.figures.push_back(norm_figure(s));

  table clocked_table;
  clocked_table.id = "legs-clock";
  clocked_table.title = "HiPPO-LegS in its own time, A/time: relative error of the step from t − 1 to t";
  clocked_table.columns = {"t", {"bilinear", 3}, {"Euler", 3}};
  double at_small = 0;
  double at_large = 0;
  for (const std::size_t token : std::initializer_list<std::size_t>{2, 4, 8, 16, 32, 64, 128, 256, 1024}) {
    if (options.stopped()) break;
    const clocked c = compare_clocked(size.size, token);
    if (token == 4) at_small = c.bilinear_error;
    if (token == 1024) at_large = c.bilinear_error;
    clocked_table.rows.push_back({token, c.bilinear_error, c.euler_error});
  }
  r.findings.push_back({"legs-clock",
                        "HiPPO-LegS as published has A/t: its exact step from t − 1 to t is the constant-coefficient one of "
                        "length ln(t/(t − 1)), a clock whose steps shrink. With the step 1/t the "
                        "bilinear rule is off by " +
                            number(100 * at_small, 3) + " % at t = 4 and " + number(at_large, 2) +
                            " (relative) at t = 1024 (n = " + n_text + ").",
                        evidence::measured(),
                        {{"bilinear_at_4", at_small}, {"bilinear_at_1024", at_large}},
                        "Substituting τ = ln t in dx/dt = A x/t + B f/t with f held; truth over 512 bits."});
  r.tables.push_back(std::move(clocked_table));
}

void add_rank_one(const run_options& options, const settings& size, report& r) {
  if (options.stopped()) {
    r.unfinished.emplace_back("Rank-one formula: interrupted.");
    return;
  }
  constexpr std::size_t cases = 24;
  philox random(options.seed, 0x6869707100000000U);
  double worst = 0;
  double radius = 0;
  std::size_t zeros = 0;
  for (std::size_t i = 0; i < cases; ++i) {
    std::vector<double> x(size.key_dim);
    std::vector<double> y(size.key_dim);
    // Multiples of 1/8: y^T x is exact, and every fourth one is made 0.
    for (double& entry : x) entry = (static_cast<double>(random.below(33)) - 16) / 8;
    for (double& entry : y) entry = (static_cast<double>(random.below(33)) - 16) / 8;
    if (i % 4 == 0) {
      for (std::size_t j = 0; j + 1 < x.size(); j += 2) {
        y[j] = x[j + 1];
        y[j + 1] = -x[j];
      }
      if (x.size() % 2 == 1) y.back() = 0;
    }
    if (i % 4 == 1) {
      y = x;
      for (double& entry : y) entry = -entry;
    }
    const rank_one_error e = check_rank_one(x, y);
    worst = std::max({worst, e.exp, e.phi});
    radius = std::max(radius, e.radius);
    if (e.product == 0) ++zeros;
  }
  // The closed form itself is rounded to 512 bits, a few operations of it.
  const bool holds = worst <= radius + 0x1p-480;
  r.findings.push_back({"rank-one-formula",
                        std::string("f(x yᵀ) = f(0) I + x [(f(yᵀx) − f(0))/(yᵀx)] yᵀ ") + (holds ? "holds" : "does not hold") +
                            " for f = exp and φ₁ in all " + std::to_string(cases) + " cases, −k kᵀ and " + std::to_string(zeros) +
                            " with yᵀx = 0 among them, where the bracket is f′(0): the largest difference from the series is " +
                            number(worst, 2) + ".",
                        evidence::worst_found(cases, options.seed),
                        {{"largest_difference", worst}, {"radius", radius}, {"holds", holds}, {"with_zero_product", zeros}},
                        "Both over 512 bits, entries multiples of 1/8; the ruler's radius is " + number(radius, 2) +
                            ". Powers of x yᵀ are multiples of it: algebra.rank_one.outer_power."});
}

}  // namespace deltaproof::detail::hippo
