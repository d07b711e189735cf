// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <string>
#include <vector>

#include "deltaproof/number/convert.hpp"
#include "deltaproof/rule/rules.hpp"
#include "studies/discretisation/orders.hpp"
#include "studies/discretisation/sections.hpp"
#include "studies/discretisation/series.hpp"

namespace deltaproof::detail::discretisation {
namespace {

using power = power_series<8>;
constexpr std::size_t fine_steps = 256;

struct rule_order {
  std::string name;
  int stated = 0;
  std::size_t eigenvalue_power = 0;  ///< first power of x at which R and e^-x differ
  std::string eigenvalue_coefficient;
  std::size_t gain_power = 0;
  std::vector<double> measured;  ///< by sense
};

std::vector<rule_order> orders() {
  std::vector<rule_order> result;
  for_each_rule([&](auto rule) {
    using Rule = decltype(rule);
    rule_order o;
    o.name = std::string(rule.name);
    o.stated = Rule::order;
    if constexpr (RuleOver<Rule, power>) {
      // phi of the exact flow is (1 - e^-x)/x: its series is that of 1 - e^-x, one power down.
      const first_difference<8> eigenvalue(Rule::stability(power::variable()), power::decay());
      const first_difference<8> gain(power::variable() * Rule::gain(power::variable()), power(1) - power::decay());
      o.eigenvalue_power = eigenvalue.power;
      o.eigenvalue_coefficient = eigenvalue.coefficient.str();
      o.gain_power = gain.power - 1;
    }
    // T x must be small too before T tokens show their order.
    for (const sense s : senses)
      o.measured.push_back(measured_order(rule.name, s, s == sense::tokens ? 64 * fine_steps : fine_steps));
    result.push_back(std::move(o));
  });
  return result;
}

/// The order that a sense should show for a method of order p; for turning keys 1, in the middle at most 2.
int expected(sense s, int p) {
  switch (s) {
    case sense::eigenvalue:
    case sense::tokens:
      return p + 1;
    case sense::gain:
    case sense::horizon:
    case sense::horizon_relative:
      return p;
    case sense::turning:
      return 1;
    case sense::turning_middle:
      return std::min(p, 2);
  }
  return 0;
}

figure error_figure() {
  figure f;
  f.id = "errors";
  f.title = "Error against the step, in the senses in which people state it";
  f.columns = 2;
  f.shared_x = true;
  f.caption =
      "Over 256 bits, x from 1 down to 1/256. First panel: the eigenvalue after one step, slope p + 1. Second: what one step "
      "writes, relative, slope p; for DeltaNet against EFLA it is x/2. Third: at a fixed time, slope p. "
      "Fourth: at a fixed time under a key that turns once in 2π, frozen within each step: every rule has slope 1, the exact one "
      "too. Its error is that of freezing the key.";
  f.alt =
      "Four log-log panels of falling lines; in the first three the lines have slopes from one to five, in the last all run "
      "parallel.";
  for (const sense s : {sense::eigenvalue, sense::gain, sense::horizon, sense::turning}) {
    panel p;
    p.title = std::string(name_of(s));
    p.x = {"step x", axis_scale::logarithmic, 1.0 / 256, 1};
    p.y = {"error", axis_scale::logarithmic, 1e-14, 2};
    for_each_rule([&](auto rule) {
      series c{std::string(rule.name), {}, {}};
      for (std::size_t steps = 256; steps >= 1; steps /= 2) {
        const double error = error_of(rule.name, s, steps);
        c.x.push_back(1 / static_cast<double>(steps));
        c.y.push_back(error > 1e-14 ? error : std::numeric_limits<double>::quiet_NaN());
      }
      p.curves.push_back(std::move(c));
    });
    f.panels.push_back(std::move(p));
  }
  return f;
}

}  // namespace

void add_orders(const run_options& options, const settings&, report& r) {
  if (options.stopped()) {
    r.unfinished.emplace_back("Orders of accuracy: interrupted.");
    return;
  }
  options.progress("orders of accuracy", 0);
  const std::vector<rule_order> all = orders();
  bool series_agree = true;
  bool slopes_agree = true;
  double worst_slope = 0;
  std::map<std::string, cell> constants;
  table t;
  t.id = "orders";
  t.title = "Orders of accuracy: the power of x with which each error shrinks";
  t.columns = {"rule", "order p", "R − e^−x = c x^(p+1) + …, c"};
  for (const sense s : senses) t.columns.push_back({std::string(name_of(s)), 4});
  double exact_turning = 0;
  double exact_middle = 0;
  for (const rule_order& o : all) {
    const bool is_exact = o.stated == exact_order;
    std::vector<cell> row{o.name, is_exact ? cell("∞") : cell(o.stated), is_exact ? cell("0") : cell(o.eigenvalue_coefficient)};
    for (std::size_t i = 0; i < senses.size(); ++i) {
      row.push_back(std::isnan(o.measured[i]) ? cell("no error") : cell(o.measured[i]));
      const int power = is_exact ? 100 : o.stated;
      if (std::isnan(o.measured[i])) {
        slopes_agree = slopes_agree && is_exact;
        continue;
      }
      const double deviation = std::fabs(o.measured[i] - expected(senses[i], power));
      worst_slope = std::max(worst_slope, deviation);
      slopes_agree = slopes_agree && deviation < 0.1;
    }
    t.rows.push_back(std::move(row));
    if (is_exact) {
      exact_turning = o.measured[5];
      exact_middle = o.measured[6];
      continue;
    }
    const auto p = static_cast<std::size_t>(o.stated);
    series_agree = series_agree && o.eigenvalue_power == p + 1 && o.gain_power == p;
    constants[o.name] = o.eigenvalue_coefficient;
  }
  t.note =
      "Measured: log₂ of the ratio of the errors at x = 1/256 and 1/512, 256 bits. Fixed time: x times the number of steps is "
      "1. Fixed number of tokens: 64, at x = 2⁻¹⁴ and 2⁻¹⁵.";
  constants["agree"] = series_agree;
  r.findings.push_back(
      {"orders-exact",
       std::string("The series of R and e^−x ") +
           (series_agree ? "part at x^(p+1), those of x φ and 1 − e^−x too, with p the stated order: "
                         : "do not part where the stated orders say: ") +
           "1 for Euler and implicit Euler, 2 for Crank–Nicolson and rk2, 3 and 4 for rk3 and rk4. First difference " +
           [&] {
             std::string text;
             for (const rule_order& o : all) {
               if (o.stated == exact_order) continue;
               text += (text.empty() ? "" : ", ") + o.eigenvalue_coefficient + " x^" + std::to_string(o.eigenvalue_power) + " (" +
                       o.name + ")";
             }
             return text;
           }() +
           ".",
       evidence::exhaustive(all.size() - 1), constants, "The rules' own code run over power series with rational coefficients."});
  r.findings.push_back(
      {"which-order-is-which",
       std::string(
           "A method of order p errs with the power p or p + 1 of the step, depending on what is compared: the eigenvalue of one "
           "step errs like x^(p+1), "
           "absolutely and relatively alike (e^−x is near 1); what the step writes and erases, relatively, like x^p; after a "
           "fixed time like x^p in both senses; after a fixed number of tokens like x^(p+1). ") +
           (slopes_agree ? "The measured slopes agree to " : "The measured slopes disagree by up to ") + number(worst_slope, 2) +
           ".",
       evidence::measured(),
       {{"agree", slopes_agree}, {"largest_deviation", worst_slope}},
       "Errors over 256 bits at x = 1/256 and 1/512; no random numbers."});
  r.findings.push_back(
      {"exact-for-frozen-keys",
       std::string(
           "The exact flow is exact for a key that stands still within a step. For a key that turns steadily and is frozen at "
           "the end of each step its order at a fixed time is ") +
           number(exact_turning, 3) + ", " + (exact_turning < 1.1 ? "the same as Euler's" : "above Euler's") +
           "; frozen in the middle it is " + number(exact_middle, 3) + ".",
       evidence::measured(),
       {{"order_frozen_at_end", exact_turning}, {"order_frozen_in_middle", exact_middle}},
       "Key (cos t, sin t), value 1, S(0) = 0, time 1. The truth is φ₁ of a constant 2 × 2 matrix in the frame that turns with "
       "the "
       "key, 256 bits."});
  r.tables.push_back(std::move(t));

  table at;
  at.id = "errors-at-x";
  at.title =
      "Error of one step at the steps that models take (|R − e^−x|, the same ÷ e^−x, and what is written ÷ what the exact flow "
      "writes − 1)";
  at.columns = {"x", "e^−x"};
  for (const char* rule : {"euler", "implicit", "crank_nicolson", "rk4"}) {
    at.columns.push_back({std::string(rule) + ": absolute", 3});
    at.columns.push_back({"relative", 3});
    at.columns.push_back({"written", 3});
  }
  for (const double x : {0.125, 0.25, 0.5, 1.0, 1.5, 2.0}) {
    std::vector<cell> row{x, exact_flow::stability(rounded<fp64>::from_exact(x)).value()};
    for (const char* rule : {"euler", "implicit", "crank_nicolson", "rk4"}) {
      const comparison c = compare(rule, x);
      row.emplace_back(c.absolute);
      row.emplace_back(c.relative);
      row.emplace_back(c.gain);
    }
    at.rows.push_back(std::move(row));
  }
  const comparison euler_at_one = compare("euler", 1);
  r.findings.push_back(
      {"deltanet-against-flow",
       "Seen as a discretisation, DeltaNet at β|k|² = 1 is off by " + number(euler_at_one.absolute, 3) + " in the eigenvalue, " +
           number(100 * euler_at_one.relative, 3) + " % of it, and writes " + number(100 * euler_at_one.gain, 3) +
           " % more than the flow: there it erases everything along the key, which is what makes it an exact associative write. "
           "Accuracy toward the flow is not what the delta rule is for.",
       evidence::certified(),
       {{"absolute", euler_at_one.absolute}, {"relative", euler_at_one.relative}, {"written", euler_at_one.gain}},
       "256 bits, rounded once; radius below half a unit of the last of 53 bits and 2^−240."});
  r.tables.push_back(std::move(at));
  r.figures.push_back(error_figure());
}

}  // namespace deltaproof::detail::discretisation
