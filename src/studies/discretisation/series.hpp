// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
//
// Power series in x, cut off after a fixed number of terms, with rational coefficients: a scalar, so that a rule's own
// code can be asked for the series of its R and phi. Division needs a divisor whose constant term is not 0.
#pragma once

#include "deltaproof/number/rational.hpp"
#include "deltaproof/number/scalar.hpp"
#include "studies/shared/common.hpp"

namespace deltaproof::detail::discretisation {

/// sum_{m < Terms} c_m x^m.
template <std::size_t Terms>
class power_series {
 public:
  power_series() = default;
  explicit power_series(int constant) { coefficients_[0] = constant; }
  /// x itself.
  static power_series variable() {
    power_series result;
    result.coefficients_[1] = 1;
    return result;
  }
  /// e^-x.
  static power_series decay() {
    power_series result(1);
    for (std::size_t m = 1; m < Terms; ++m) result.coefficients_[m] = -result.coefficients_[m - 1] / static_cast<int>(m);
    return result;
  }

  [[nodiscard]] const rational& operator[](std::size_t m) const { return coefficients_[m]; }

  friend power_series operator+(const power_series& a, const power_series& b) {
    power_series result;
    for (std::size_t m = 0; m < Terms; ++m) result.coefficients_[m] = a[m] + b[m];
    return result;
  }
  friend power_series operator-(const power_series& a, const power_series& b) {
    power_series result;
    for (std::size_t m = 0; m < Terms; ++m) result.coefficients_[m] = a[m] - b[m];
    return result;
  }
  power_series operator-() const { return power_series(0) - *this; }
  friend power_series operator*(const power_series& a, const power_series& b) {
    power_series result;
    for (std::size_t i = 0; i < Terms; ++i) {
      for (std::size_t j = 0; i + j < Terms; ++j) result.coefficients_[i + j] += a[i] * b[j];
    }
    return result;
  }
  friend power_series operator/(const power_series& a, const power_series& b) {
    if (b[0] == 0) throw domain_error("power_series: the divisor's constant term is 0; divide by x first");
    power_series result;
    for (std::size_t m = 0; m < Terms; ++m) {
      rational rest = a[m];
      for (std::size_t i = 0; i < m; ++i) rest -= result[i] * b[m - i];
      result.coefficients_[m] = rest / b[0];
    }
    return result;
  }
  friend bool operator==(const power_series&, const power_series&) = default;

 private:
  std::array<rational, Terms> coefficients_{};
};

/// The first power of x at which a and b differ and the difference there; order Terms and 0 where they do not.
template <std::size_t Terms>
struct first_difference {
  std::size_t power = Terms;
  rational coefficient = 0;

  first_difference(const power_series<Terms>& a, const power_series<Terms>& b) {
    for (std::size_t m = Terms; m-- > 0;) {
      if (a[m] == b[m]) continue;
      power = m;
      coefficient = a[m] - b[m];
    }
  }
};

}  // namespace deltaproof::detail::discretisation

namespace deltaproof {

template <std::size_t Terms>
struct scalar_traits<detail::discretisation::power_series<Terms>> {
  static constexpr bool is_exact = true;
  static std::string name() { return "power series"; }
  static detail::discretisation::power_series<Terms> from_int(int n) { return detail::discretisation::power_series<Terms>(n); }
};

}  // namespace deltaproof
