// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT

#include "studies/shared/functions.hpp"

#include "deltaproof/number/elementary.hpp"
#include "deltaproof/number/rounded.hpp"
#include "deltaproof/rule/rules.hpp"

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

}  // namespace deltaproof::detail::shared
