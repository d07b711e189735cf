// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT

#include "studies/shared/functions.hpp"

#include <cmath>

#include "deltaproof/number/elementary.hpp"
#include "deltaproof/number/rounded.hpp"
#include "deltaproof/rule/rules.hpp"
#include "studies/shared/keys.hpp"

namespace deltaproof::detail::shared {

double ln(double x) { return log(rounded<fp64>::from_exact(x)).value(); }

double log10_of(double x) { return ln(x) * 0.43429448190325182765; }

double exp64(double x) { return exp(rounded<fp64>::from_exact(x)).value(); }

double exp32(double x) { return exp(rounded<fp32>::from_exact(x)).value(); }

double stability_of(std::string_view rule, double x) {
  double result = 0;
  visit_rule(rule, [&](auto r) { result = r.stability(rounded<fp64>::from_exact(x)).value(); });
  return result;
}

grid_axis<std::string> rule_axis() {
  grid_axis<std::string> axis{"rule", {}};
  for_each_rule([&](auto rule) { axis.quick.emplace_back(rule.name); });
  return axis;
}

cell root_mean_square(std::span<const double> x) { return std::sqrt(squared_norm(x) / static_cast<double>(x.size())); }

cell count_of(std::span<const double> x) { return static_cast<std::uint64_t>(as_number(total(x))); }

std::vector<aggregate> each(const std::vector<std::string>& columns, const aggregate_function& of) {
  std::vector<aggregate> result;
  for (const std::string& column : columns) result.push_back({column, column, of});
  return result;
}

frame::row top(const frame& f, std::string_view column, int sign) {
  std::size_t best = 0;
  for (std::size_t i = 1; i < f.size(); ++i) {
    const double x = sign * f[i].number(column), most = sign * f[best].number(column);
    if (x > most || (std::isnan(most) && !std::isnan(x))) best = i;
  }
  return f[best];
}

}  // namespace deltaproof::detail::shared
