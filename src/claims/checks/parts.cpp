// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT

#include "claims/checks/parts.hpp"

#include <cfloat>

namespace deltaproof::claim_detail {

namespace {

/// Past every rounding of what is done in double here.
void put_between(claim_values& values, const std::string& name, double low, double high) {
  values[name] = low + (high - low) / 2;
  values[name + "_radius"] = (high - low) / 2 + 4 * DBL_EPSILON * std::max(std::abs(low), std::abs(high));
}

}  // namespace

void put(claim_values& values, const std::string& name, const enclosure& x) {
  put_between(values, name, approximate(x.lower()), approximate(x.upper()));
}
void put_root(claim_values& values, const std::string& name, const enclosure& x) {
  put_between(values, name, std::sqrt(approximate(x.lower())), std::sqrt(approximate(x.upper())));
}

std::span<const claim_check> all_checks() {
  static const std::vector<claim_check> all = [] {
    std::vector<claim_check> joined;
    for (const auto checks : {step_checks(), stability_checks(), flow_checks(), chunk_checks(), recall_checks(),
                              recall_run_checks(), practice_checks()})
      joined.insert(joined.end(), checks.begin(), checks.end());
    return joined;
  }();
  return all;
}

rational fraction(long numerator, long denominator) { return rational(numerator) / rational(denominator); }
std::string text_of(const rational& x) { return x.str(); }
double approximate(const rational& x) { return round_to<double>(x); }

fraction_matrix sample_matrix(std::size_t rows, std::size_t columns, unsigned which) {
  fraction_matrix m(rows, columns);
  unsigned long state = 7919UL * which + 104729UL;
  const auto next = [&state](unsigned long below) {
    state = (1103515245UL * state + 12345UL) & 0x7fffffffUL;
    return static_cast<long>((state >> 8) % below);
  };
  for (auto row : m.rowwise()) {
    for (rational& entry : row) {
      const long numerator = next(9) - 4;
      entry = fraction(numerator == 0 ? 5 : numerator, 1 + next(3));
    }
  }
  return m;
}

fraction_vector sample_vector(std::size_t length, unsigned which) { return sample_matrix(1, length, which).transpose(); }
fraction_matrix eye(std::size_t n) {
  return fraction_matrix::Identity(static_cast<Eigen::Index>(n), static_cast<Eigen::Index>(n));
}
fraction_matrix zeros(std::size_t rows, std::size_t columns) {
  return fraction_matrix::Zero(static_cast<Eigen::Index>(rows), static_cast<Eigen::Index>(columns));
}
fraction_matrix strictly_lower(const fraction_matrix& m) { return m.triangularView<Eigen::StrictlyLower>(); }

fraction_matrix transition(const fraction_vector& k, const rational& b) {
  return fraction_matrix::Identity(k.size(), k.size()) - b * k * k.transpose();
}

fraction_matrix delta_step(const fraction_matrix& s, const fraction_vector& k, const fraction_vector& v, const rational& b) {
  return s - b * (s * k - v) * k.transpose();
}

matrix<rational> library_state(const fraction_matrix& s) {
  return {static_cast<std::size_t>(s.cols()), static_cast<std::size_t>(s.rows()), {s.data(), s.data() + s.size()}};
}
fraction_matrix state_of(const matrix<rational>& m) {
  return Eigen::Map<const fraction_matrix>(m.data(), static_cast<Eigen::Index>(m.cols()), static_cast<Eigen::Index>(m.rows()));
}

}  // namespace deltaproof::claim_detail

namespace deltaproof {
std::span<const claim_check> claim_checks() { return claim_detail::all_checks(); }
}  // namespace deltaproof
