// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT

#include <algorithm>
#include <array>
#include <cmath>
#include <initializer_list>
#include <string>
#include <vector>

#include "studies/logistic/constants.hpp"
#include "studies/logistic/sections.hpp"
#include "studies/shared/text.hpp"

namespace deltaproof::detail::logistic {
namespace {

using shared::shortened;
using wide = real<256>;

/// How many leading characters two decimals share.
std::size_t shared_digits(const std::string& a, const std::string& b) {
  std::size_t n = 0;
  while (n < a.size() && n < b.size() && a[n] == b[n]) ++n;
  return n > 1 ? n - 1 : n;  // the point
}

/// Superstable orbits of a prime period: (2^(p-1) - 1)/p, a classical count.
std::size_t expected_count(std::size_t prime) { return ((std::size_t{1} << (prime - 1)) - 1) / prime; }

std::string digits(const wide& x, int count) { return x.str(count, std::ios_base::fmtflags(0)); }

void add_windows(report& r) {
  table t;
  t.id = "windows";
  t.title = "Windows of the logistic map: where an orbit of the period appears, is superstable, and doubles";
  t.columns = {"period", "opens", "superstable", "doubles", {"width", 3}};
  bool counts_agree = true;
  std::string three;
  wide three_error = 1;
  for (const std::size_t period : std::initializer_list<std::size_t>{3, 5, 7}) {
    const std::vector<wide> found = superstable_parameters(period);
    counts_agree = counts_agree && found.size() == expected_count(period);
    for (const wide& r_s : found) {
      const orbit_point opens = orbit_of_multiplier(period, 1, wide(1) / 2, r_s);
      const orbit_point doubles = orbit_of_multiplier(period, -1, wide(1) / 2, r_s);
      if (!opens.converged || !doubles.converged) {
        counts_agree = false;
        continue;
      }
      t.rows.push_back(
          {period, digits(opens.r, 22), digits(r_s, 22), digits(doubles.r, 22), round_to<double>(wide(doubles.r - opens.r))});
      if (period == 3) {
        three = digits(opens.r, 30);
        three_error = abs(wide(opens.r - 1 - sqrt(wide(8))));
      }
    }
  }
  const bool three_agrees = three_error < wide(1e-30);
  r.findings.push_back({"windows",
                        std::string("The window of period 3 opens at r = ") + three + ", " +
                            (three_agrees ? "which is 1 + √8 to 30 digits" : "which is not 1 + √8") + "; " +
                            std::to_string(t.rows.size()) + " windows of periods 3, 5 and 7 were found" +
                            (counts_agree ? ", as many as there are: 1 + 3 + 9." : ", not as many as there are: 1 + 3 + 9."),
                        evidence::measured(),
                        {{"period_three_opens", three},
                         {"is_one_plus_root_eight", three_agrees},
                         {"windows", t.rows.size()},
                         {"counts_agree", counts_agree}},
                        "Superstable parameters by sign changes on a grid of 1/200 000, then Newton in (x, r) for multipliers 0 "
                        "… ±1 over 256 bits; a prime period p "
                        "has (2^(p−1) − 1)/p superstable parameters (Metropolis, Stein, Stein 1973)."});
  r.tables.push_back(std::move(t));
}

}  // namespace

void add_constants(const run_options& options, const settings& size, report& r) {
  if (options.stopped()) {
    r.unfinished.emplace_back("Constants of period doubling: interrupted.");
    return;
  }
  options.progress("functional equation", 0);
  const universal u = universal_constants(size.terms, size.doublings, options.full);
  const std::string agree_on = "Truncations at " + std::to_string(size.terms) + " and " + std::to_string(size.terms + 6) +
                               " terms over " + std::to_string(u.bits) +
                               " bits; stated are the digits that both give, less one. Not an enclosure.";
  r.findings.push_back(
      {"feigenbaum-delta",
       "δ = " + shortened(u.delta.text, 52) + " (" + std::to_string(u.delta.digits) +
           " digits) and α = " + shortened(u.alpha.text, 52) + " (" + std::to_string(u.alpha.digits) +
           " digits), from Feigenbaum's functional equation.",
       evidence::measured(),
       {{"delta", u.delta.text}, {"alpha", u.alpha.text}, {"delta_digits", u.delta.digits}, {"alpha_digits", u.alpha.digits}},
       "g(x) = g(g(ax))/a, a = g(1) = −1/α, g even, by Newton at Chebyshev points; δ is the largest eigenvalue of its "
       "derivative. " +
           agree_on});
  if (options.stopped()) {
    r.unfinished.emplace_back("Superstable orbits and windows: interrupted.");
    return;
  }
  options.progress("superstable orbits", 0.6);
  const cascade c = superstable_cascade(size.superstable);
  const std::size_t common = shared_digits(u.r_infinity.text, c.r_infinity.text);
  const bool independent = common + 1 >= static_cast<std::size_t>(std::min(c.r_infinity.digits, u.r_infinity.digits));
  const std::size_t delta_common = shared_digits(u.delta.text, c.delta.text);
  r.findings.push_back(
      {"accumulation-point",
       "Period doubling accumulates at r∞ = " + shortened(u.r_infinity.text, 52) + " (" + std::to_string(u.r_infinity.digits) +
           " digits, from the renormalised family). Superstable orbits of periods 1 … 2^" + std::to_string(size.superstable) +
           ", extrapolated, give " + c.r_infinity.text +
           (independent ? ", the same to all of their " : ", which differs within their ") + std::to_string(c.r_infinity.digits) +
           " digits, and δ to " + std::to_string(delta_common) + " digits.",
       evidence::measured(),
       {{"r_infinity", u.r_infinity.text},
        {"digits", u.r_infinity.digits},
        {"from_superstable_orbits", c.r_infinity.text},
        {"methods_agree", independent},
        {"digits_in_common", common},
        {"delta_from_superstable_orbits", c.delta.text}},
       "First: the parameter whose " + std::to_string(size.doublings) +
           "-fold renormalisation has no unstable coordinate, by secants, two truncations. Second: Newton for f^(2^n)(1/2) = 1/2 "
           "over 256 bits, Wynn's "
           "epsilon algorithm with and without the last orbit. The two share no step."});
  table t;
  t.id = "period-doubling";
  t.title = "Period doubling: where the period doubles (r_n) and where it is superstable (R_n)";
  t.columns = {"period 2^n", "r_n: period 2^(n−1) doubles", "R_n: superstable", {"(R_n − R_(n−1)) / (R_(n+1) − R_n)", 10}};
  bool second_agrees = false;
  double last_ratio = 0;
  for (std::size_t n = 1; n <= size.doubling_points && n + 1 < c.superstable.size(); ++n) {
    const orbit_point doubles = orbit_of_multiplier(std::size_t{1} << (n - 1), -1, wide(1) / 2, c.superstable[n - 1]);
    if (n == 2) second_agrees = doubles.converged && abs(wide(doubles.r - 1 - sqrt(wide(6)))) < wide(1e-40);
    const wide ratio = (c.superstable[n] - c.superstable[n - 1]) / (c.superstable[n + 1] - c.superstable[n]);
    last_ratio = round_to<double>(ratio);
    t.rows.push_back({"2^" + std::to_string(n), doubles.converged ? cell(digits(doubles.r, 26)) : cell("not found"),
                      digits(c.superstable[n], 26), last_ratio});
  }
  t.note = "256 bits; digits shown are rounded. The ratios tend to δ.";
  r.findings.push_back({"doubling-points",
                        std::string("The period doubles at r = 3, ") + (second_agrees ? "1 + √6 = " : "(not 1 + √6) ") +
                            std::get<std::string>(t.rows[1][1].value()) + ", " + std::get<std::string>(t.rows[2][1].value()) +
                            ", …; the first " + std::to_string(t.rows.size()) +
                            " are in the table, and consecutive distances of superstable parameters already stand " +
                            number(last_ratio, 8) + " to 1.",
                        evidence::measured(),
                        {{"second_is_one_plus_root_six", second_agrees},
                         {"third", std::get<std::string>(t.rows[2][1].value())},
                         {"last_ratio", last_ratio}},
                        "Newton in (x, r) for an orbit of the period with multiplier −1, followed from multiplier 0."});
  r.tables.push_back(std::move(t));
  add_windows(r);
}

}  // namespace deltaproof::detail::logistic
