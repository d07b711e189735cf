// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT

#include <cmath>
#include <initializer_list>
#include <limits>
#include <map>
#include <string>
#include <vector>

#include "deltaproof/number/convert.hpp"
#include "deltaproof/rule/rules.hpp"
#include "studies/discretisation/limits.hpp"
#include "studies/discretisation/sections.hpp"
#include "studies/shared/text.hpp"

namespace deltaproof::detail::discretisation {
namespace {

using shared::shortened;
constexpr double one_over_e = 0.36787944117144232160;

figure stability_figure(const std::vector<double>& taylor_limits) {
  figure f;
  f.id = "stability";
  f.title = "Where the stability function leaves [−1, 1], and what order does about it";
  f.columns = 2;
  f.caption =
      "Left: R(x), the factor that one step applies along its key, x = β|k|². Euler, rk2, rk3 and rk4 are polynomials and leave "
      "the strip for good; implicit Euler, Crank–Nicolson and the exact flow stay in it for every x. Right: the limit of "
      "stability of the Taylor polynomial of e^−x against its degree. Each further order moves it by about 1/e = 0.37 (line "
      "through the last point with that slope): order postpones the explosion and never removes it.";
  f.alt =
      "Left: seven curves against x; four leave the band between minus one and one near two to three, three stay. Right: points "
      "on a nearly straight line.";
  panel left;
  left.title = "R(x)";
  left.x = {"x = β|k|²", axis_scale::linear, 0, 8};
  left.y = {"R", axis_scale::linear, -3, 3};
  left.marks = {{mark_direction::horizontal, 1, ""}, {mark_direction::horizontal, -1, ""}};
  for_each_rule([&](auto rule) {
    series s{std::string(rule.name), {}, {}};
    for (int i = 0; i <= 160; ++i) {
      const double x = i / 20.0;
      const double value = rule.stability(rounded<fp64>::from_exact(x)).value();
      if (std::fabs(value) > 3.2) break;
      s.x.push_back(x);
      s.y.push_back(value);
    }
    left.curves.push_back(std::move(s));
  });
  panel right;
  right.title = "largest stable x of the Taylor polynomial";
  right.x = {"degree = order"};
  right.y = {"limit of stability", axis_scale::linear, 0, {}};
  series points{"", {}, {}, series_style::points};
  series line{"", {}, {}};
  const auto n = static_cast<double>(taylor_limits.size());
  for (std::size_t i = 0; i < taylor_limits.size(); ++i) {
    const auto degree = static_cast<double>(i + 1);
    points.x.push_back(degree);
    points.y.push_back(taylor_limits[i]);
    line.x.push_back(degree);
    line.y.push_back(taylor_limits.back() + (degree - n) * one_over_e);
  }
  right.curves = {std::move(line), std::move(points)};
  f.panels = {std::move(left), std::move(right)};
  return f;
}

}  // namespace

void add_limits(const run_options& options, const settings& size, report& r) {
  if (options.stopped()) {
    r.unfinished.emplace_back("Limits of stability: interrupted.");
    return;
  }
  table t;
  t.id = "limits";
  t.title = "Where |R| ≤ 1 ends, for x ≥ 0";
  t.columns = {"rule", "order", "limit of x", "beyond it", "R as x → ∞"};
  std::map<std::string, cell> values;
  bool constants_agree = true;
  for_each_rule([&](auto rule) {
    using Rule = decltype(rule);
    const std::string name(rule.name);
    const cell order = Rule::order == exact_order ? cell("∞") : cell(Rule::order);
    if constexpr (Rule::limit == std::numeric_limits<double>::infinity()) {
      t.rows.push_back({name, order, "none", "", name == "crank_nicolson" ? "−1" : "0"});
    } else {
      const auto limit = limit_of(rule.name, size.digits);
      if (!limit) throw domain_error("rule '" + name + "' states a limit of stability and has none");
      const double constant = Rule::limit;
      const double next = std::nextafter(constant, 4.0);
      constants_agree = constants_agree && exact(constant) <= limit->lower && exact(next) > limit->lower;
      const bool whole = denominator(limit->lower) == 1;
      const std::string text = whole ? numerator(limit->lower).str() : limit->text();
      values[name] = text;
      t.rows.push_back(
          {name, order, whole ? text : text + "…", limit->leaves_below ? "R < −1" : "R > 1", Rule::order % 2 == 0 ? "+∞" : "−∞"});
    }
  });
  t.note =
      "Decimals are those of the exact limit, cut off, not rounded: |R| ≤ 1 at the number shown and |R| > 1 one unit of its "
      "last digit further, decided in rationals by the rule's own code. That |R| ≤ 1 all the way from 0, and nowhere beyond, "
      "are the theorems ode.stability.*_stable.";
  const std::string rk3_limit = std::get<std::string>(values.at("rk3").value());
  const std::string rk4_limit = std::get<std::string>(values.at("rk4").value());
  values["constants_agree"] = constants_agree;
  r.findings.push_back(
      {"stability-limits",
       "|R(x)| ≤ 1 holds exactly up to x = 2 for Euler and rk2, 2.5127… for rk3 and 2.7852… for rk4: x = " +
           shortened(rk3_limit, 32) + " and " + shortened(rk4_limit, 32) + " (" + std::to_string(size.digits) +
           " decimals in the table); " +
           (constants_agree ? "the constants of the library are the largest doubles below them"
                            : "the constants of the library are not the largest doubles below them") +
           ". Implicit Euler, Crank–Nicolson and the exact flow have no limit.",
       evidence::certified(), values,
       "Both ends of a decimal place evaluated in rationals; radius 10^−" + std::to_string(size.digits) +
           ". The limits are 1 + c − 1/c with c³ = 4 + √17, and (4 + ∛(172 + 36√29) − ∛(36√29 − 172))/3. One crossing only: "
           "ode.stability.rk3_stable, ode.stability.rk4_stable."});
  r.tables.push_back(std::move(t));

  std::vector<double> limits(static_cast<std::size_t>(size.largest_degree));
  const std::size_t done = for_each_index(limits.size(), options, "Taylor polynomials", [&](std::size_t i) {
    limits[i] = round_to<double>(taylor_limit(static_cast<int>(i) + 1, 20).lower);
  });
  if (done < limits.size()) {
    r.unfinished.emplace_back("Limits of Taylor polynomials: interrupted.");
    return;
  }
  const std::size_t last = limits.size() - 1;
  const double per_order = (limits[last] - limits[last / 2]) / static_cast<double>(last - last / 2);
  bool never_less = true;
  for (std::size_t i = 1; i < limits.size(); ++i) never_less = never_less && limits[i] >= limits[i - 1];
  r.findings.push_back(
      {"order-buys-little",
       std::string("The Taylor polynomials of e^−x, the stability functions of explicit methods of as many stages as their order "
                   "(rk2, rk3, rk4 among them), ") +
           (never_less ? "gain stability with every second order, never lose it"
                       : "gain and lose stability from order to order") +
           ", and gain " + number(per_order, 3) + " of x per order (1/e = 0.368): order " + std::to_string(last + 1) +
           " is stable up to x = " + number(limits[last], 4) + " and explodes beyond.",
       evidence::certified(),
       {{"gain_per_order", per_order},
        {"largest_order", last + 1},
        {"limit_of_largest_order", limits[last]},
        {"limit_of_order_8", limits[7]},
        {"never_less", never_less}},
       "First crossing after steps of 1/64, then 20 decimals, in rationals (a shorter excursion between two steps would not be "
       "seen). Where the term x^m/m! of the remainder reaches 1, x is near m/e by Stirling's formula."});
  table of_degrees;
  of_degrees.id = "taylor";
  of_degrees.title = "Limit of stability of the Taylor polynomial of e^−x";
  of_degrees.columns = {"degree", {"limit", 10}, {"limit / degree", 4}};
  for (const std::size_t degree : std::initializer_list<std::size_t>{1, 2, 3, 4, 5, 6, 8, 12, 16, 24, 32, 48}) {
    if (degree > limits.size()) break;
    of_degrees.rows.push_back({degree, limits[degree - 1], limits[degree - 1] / static_cast<double>(degree)});
  }
  r.tables.push_back(std::move(of_degrees));
  r.figures.push_back(stability_figure(limits));
}

}  // namespace deltaproof::detail::discretisation
