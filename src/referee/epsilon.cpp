// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
//
// What a plan's own epsilon of the l2norm costs beside that of the problem, which is what the reference divides by.
#include <algorithm>
#include <cmath>

#include "referee/parts.hpp"
#include "support/text.hpp"

namespace deltaproof::referee_detail {

std::optional<range_report> other_epsilon(const trial& t) {
  if (!t.p.qk_l2norm) return std::nullopt;
  const double given = t.p.l2norm_epsilon;
  double epsilon = given;
  const auto away = [&](double e) { return std::fabs(std::log(e / given)); };
  for (const plan_variant& v : t.variants) {
    if (away(v.l2norm_epsilon) > away(epsilon)) epsilon = v.l2norm_epsilon;
  }
  if (epsilon == given) return std::nullopt;
  // The shortest row changes most; one of zeros stays zero.
  double largest_change = 0, shortest = 0;
  for (const lane& at : t.lanes) {
    const head_input in = take_head(t.p, at.sequence, at.head);
    for (const matrix<double>* rows : {&in.q, &in.k}) {
      for (std::size_t i = 0; i < rows->rows(); ++i) {
        double sum = 0;
        for (const double x : rows->row(i)) sum += x * x;
        const double change = sum > 0 ? std::fabs(std::sqrt((sum + given) / (sum + epsilon)) - 1) : 0;
        if (change <= largest_change) continue;
        largest_change = change;
        shortest = sum;
      }
    }
  }
  const format x = t.p.q.element_format();
  const auto digits = [](double value) { return detail::general(value, 3); };
  return range_report{"l2norm epsilon",
                      largest_change,
                      unit_roundoff(x),
                      std::string(name_of(x)),
                      "bound",
                      false,
                      "the plan divides q and k by sqrt(sum x^2 + " + digits(epsilon) +
                          "); the problem, and so the reference, has sqrt(sum x^2 + " + digits(given) +
                          "). This difference alone changes a row by up to " + digits(largest_change) +
                          " of its length (where sum x^2 = " + digits(shortest) + "; one rounding to " + std::string(name_of(x)) +
                          " changes it by up to " + digits(unit_roundoff(x)) +
                          "). Errors are measured from the reference, so the plan's limits contain this difference"};
}

}  // namespace deltaproof::referee_detail
