// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT

#include "claims/checks/parts.hpp"

#include <algorithm>
#include <cfloat>
#include <cmath>

#include "deltaproof/support/errors.hpp"

namespace deltaproof::claim_detail {

namespace {

/// Past every rounding of what is done in double here.
void put_between(claim_values& values, const std::string& name, double low, double high) {
  values[name] = low + (high - low) / 2;
  values[name + "_radius"] = (high - low) / 2 + 4 * DBL_EPSILON * std::max(std::abs(low), std::abs(high));
}

}  // namespace

enclosure operator+(const enclosure& a, const enclosure& b) { return {a.low + b.low, a.high + b.high}; }
enclosure operator-(const enclosure& a, const enclosure& b) { return {a.low - b.high, a.high - b.low}; }
enclosure operator*(const enclosure& a, const enclosure& b) {
  const auto [least, most] = std::minmax({a.low * b.low, a.low * b.high, a.high * b.low, a.high * b.high});
  return {least, most};
}
enclosure operator/(const enclosure& a, const enclosure& b) {
  if (b.low <= 0 && b.high >= 0)
    throw domain_error("enclosure: the divisor may be 0, between " + b.low.str() + " and " + b.high.str());
  return a * enclosure(1 / b.high, 1 / b.low);
}

void put(claim_values& values, const std::string& name, const enclosure& x) {
  put_between(values, name, approximate(x.low), approximate(x.high));
}
void put_root(claim_values& values, const std::string& name, const enclosure& x) {
  put_between(values, name, std::sqrt(approximate(x.low)), std::sqrt(approximate(x.high)));
}

std::span<const claim_check> all_checks() {
  static const std::vector<claim_check> all = [] {
    std::vector<claim_check> joined;
    for (const auto checks : {step_checks(), stability_checks(), flow_checks(), logistic_checks(), chunk_checks(),
                              inverse_checks(), recall_checks(), recall_run_checks(), practice_checks()})
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
  for (rational& entry : m.entries()) {
    const long numerator = next(9) - 4;
    entry = fraction(numerator == 0 ? 5 : numerator, 1 + next(3));
  }
  return m;
}

fraction_vector sample_vector(std::size_t length, unsigned which) { return row_of(sample_matrix(1, length, which), 0); }

fraction_matrix product(const fraction_matrix& a, const fraction_matrix& b) {
  fraction_matrix out(a.rows(), b.cols());
  for (std::size_t i = 0; i < a.rows(); ++i) {
    for (std::size_t m = 0; m < a.cols(); ++m) {
      for (std::size_t j = 0; j < b.cols(); ++j) out(i, j) += a(i, m) * b(m, j);
    }
  }
  return out;
}

fraction_vector product(const fraction_matrix& a, const fraction_vector& x) {
  fraction_vector out(a.rows());
  for (std::size_t i = 0; i < a.rows(); ++i) {
    for (std::size_t j = 0; j < a.cols(); ++j) out[i] += a(i, j) * x[j];
  }
  return out;
}

fraction_matrix combined(const fraction_matrix& a, const rational& factor, const fraction_matrix& b) {
  fraction_matrix out = a;
  for (std::size_t i = 0; i < out.size(); ++i) out.data()[i] += factor * b.data()[i];
  return out;
}

fraction_matrix outer(const fraction_vector& x, const fraction_vector& y) {
  fraction_matrix out(x.size(), y.size());
  for (std::size_t i = 0; i < x.size(); ++i) {
    for (std::size_t j = 0; j < y.size(); ++j) out(i, j) = x[i] * y[j];
  }
  return out;
}

rational inner(const fraction_vector& x, const fraction_vector& y) {
  rational sum = 0;
  for (std::size_t i = 0; i < x.size(); ++i) sum += x[i] * y[i];
  return sum;
}

fraction_vector scaled(const rational& factor, const fraction_vector& x) {
  fraction_vector out = x;
  for (rational& entry : out) entry *= factor;
  return out;
}

fraction_vector row_of(const fraction_matrix& m, std::size_t t) { return {m.row(t).begin(), m.row(t).end()}; }

rational squares(const fraction_matrix& m) {
  rational sum = 0;
  for (const rational& entry : m.entries()) sum += entry * entry;
  return sum;
}

fraction_matrix lower_part(const fraction_matrix& m, bool strict) {
  fraction_matrix out(m.rows(), m.cols());
  for (std::size_t i = 0; i < m.rows(); ++i) {
    for (std::size_t j = 0; j < (strict ? i : i + 1) && j < m.cols(); ++j) out(i, j) = m(i, j);
  }
  return out;
}

fraction_matrix inverse(const fraction_matrix& m) {
  const std::size_t n = m.rows();
  fraction_matrix a = m;
  fraction_matrix x = identity<rational>(n);
  for (std::size_t c = 0; c < n; ++c) {
    std::size_t pivot = c;
    while (pivot < n && a(pivot, c) == 0) ++pivot;
    if (pivot == n) throw domain_error("inverse: a " + shape_text(m) + " matrix of determinant 0 has none");
    for (std::size_t j = 0; j < n; ++j) {
      std::swap(a(c, j), a(pivot, j));
      std::swap(x(c, j), x(pivot, j));
    }
    const rational scale = 1 / a(c, c);
    for (std::size_t j = 0; j < n; ++j) {
      a(c, j) *= scale;
      x(c, j) *= scale;
    }
    for (std::size_t i = 0; i < n; ++i) {
      if (i == c) continue;
      const rational factor = a(i, c);
      for (std::size_t j = 0; j < n; ++j) {
        a(i, j) -= factor * a(c, j);
        x(i, j) -= factor * x(c, j);
      }
    }
  }
  return x;
}

fraction_matrix transition(const fraction_vector& k, const rational& b) {
  return combined(identity<rational>(k.size()), -b, outer(k, k));
}

fraction_matrix delta_step(const fraction_matrix& s, const fraction_vector& k, const fraction_vector& v, const rational& b) {
  fraction_vector error = product(s, k);
  for (std::size_t i = 0; i < v.size(); ++i) error[i] -= v[i];
  return combined(s, -b, outer(error, k));
}

}  // namespace deltaproof::claim_detail

namespace deltaproof {
std::span<const claim_check> claim_checks() { return claim_detail::all_checks(); }
}  // namespace deltaproof
