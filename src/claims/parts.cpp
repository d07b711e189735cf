// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT

#include "claims/parts.hpp"

#include <cmath>

#include "deltaproof/number/errors.hpp"

namespace deltaproof::claim_detail {

claim_evidence theorem(std::string_view path) {
  return {claim_evidence_kind::theorem,
          path,
          {},
          "checked by machine; the index names the test that tries it on the code",
          0,
          0,
          nullptr,
          [](const claim_values& v) { return truth_at(v, "indexed"); }};
}

claim_evidence finding_of(std::string_view study, std::string_view id, std::string_view because, claim_predicate holds) {
  return {claim_evidence_kind::finding, id, study, because, 0, 0, nullptr, holds};
}

claim_evidence exact_check(std::string_view because, claim_values (*evaluate)(), claim_predicate holds) {
  return {claim_evidence_kind::exact_check, {}, {}, because, 0, 0, evaluate, holds};
}

claim_evidence certified(std::string_view because, claim_values (*evaluate)(), claim_predicate holds) {
  return {claim_evidence_kind::certified, {}, {}, because, 0, 0, evaluate, holds};
}

claim_evidence sampled(std::uint64_t n, std::uint64_t seed, std::string_view because, claim_values (*evaluate)(),
                       claim_predicate holds) {
  return {claim_evidence_kind::sampled, {}, {}, because, n, seed, evaluate, holds};
}

bool is_equal(const claim_values& v) { return truth_at(v, "equal"); }
bool within(double a, double b, double part) { return std::abs(a - b) <= part * std::abs(b); }

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
