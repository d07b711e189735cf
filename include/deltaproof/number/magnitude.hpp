// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
//
// Bounds what a computation may reach, by running it: `magnitude<F>` stands for any value of the format F whose
// absolute value is at most value(), and each operation returns such a bound for the rounded result,
//   |fl(x op y)| <= (|x| op |y|) (1 + 2u) + smallest subnormal,     - counting as +,
// which holds for nearest and for directed rounding. A template over scalars run with magnitudes so bounds its own
// intermediates, rounding included, whatever the signs of its inputs. A bound beyond the largest value of F is
// infinite: the value itself may be. Rounds: bounds are doubles, rounded up.
#pragma once

#include <cmath>
#include <limits>
#include <string>

#include "deltaproof/number/convert.hpp"
#include "deltaproof/number/scalar.hpp"

namespace deltaproof {

template <format F>
class magnitude {
 public:
  constexpr magnitude() = default;

  /// A bound on |x| for a value x of F, or for one that is rounded to F afterwards.
  /// Throws: domain_error for a negative bound or NaN.
  explicit magnitude(double bound) : value_{bound} {
    if (!(bound >= 0))
      throw domain_error("magnitude: " + std::to_string(bound) + " is not >= 0, so it cannot bound an absolute value; give |x|");
    if (bound > largest(F)) value_ = std::numeric_limits<double>::infinity();
  }

  [[nodiscard]] constexpr double value() const { return value_; }
  explicit constexpr operator double() const { return value_; }

  constexpr magnitude operator-() const { return *this; }
  friend magnitude operator+(magnitude a, magnitude b) { return rounded_result(a.value_ + b.value_); }
  friend magnitude operator-(magnitude a, magnitude b) { return a + b; }
  friend magnitude operator*(magnitude a, magnitude b) { return rounded_result(product(a.value_, b.value_)); }
  /// No bound from above on b says how large a / b may be.
  friend magnitude operator/(magnitude, magnitude) { return infinite(); }
  friend magnitude fma(magnitude a, magnitude b, magnitude c) { return rounded_result(product(a.value_, b.value_) + c.value_); }
  friend constexpr bool operator==(magnitude, magnitude) = default;

  /// A bound on |fl(x)| for |x| <= bound.
  [[nodiscard]] static magnitude rounded_result(double bound) {
    if (bound == 0) return {};
    // The factor covers 2u, and the roundings of the bound itself, which is a double.
    const double grown = bound * (1 + 2 * unit_roundoff(F)) * (1 + 0x1p-50) + smallest_subnormal(F);
    return grown <= largest(F) ? magnitude(grown) : infinite();
  }

 private:
  [[nodiscard]] static magnitude infinite() {
    magnitude result;
    result.value_ = std::numeric_limits<double>::infinity();
    return result;
  }
  // Infinity times zero is NaN in a kernel; here the bound is lost. A product that is no normal double may have lost
  // up to a subnormal of it.
  static double product(double a, double b) {
    const double result = a * b;
    if (std::isnan(result)) return std::numeric_limits<double>::infinity();
    const bool lost = a > 0 && b > 0 && result < std::numeric_limits<double>::min();
    return lost ? result + std::numeric_limits<double>::denorm_min() : result;
  }

  double value_ = 0;
};

namespace detail {

template <format From, format To>
  requires(is_lossless(From, To) && From != To)
struct lift_rule<magnitude<From>, magnitude<To>> {
  static constexpr bool exact = true;
  static magnitude<To> apply(magnitude<From> x) { return magnitude<To>(x.value()); }
};

template <format To, format From>
struct round_rule<magnitude<To>, magnitude<From>> {
  static magnitude<To> apply(magnitude<From> x) { return magnitude<To>::rounded_result(x.value()); }
};

}  // namespace detail

template <format F>
struct scalar_traits<magnitude<F>> {
  static constexpr bool is_exact = false;
  static std::string name() { return "magnitude<" + std::string(name_of(F)) + ">"; }
  static magnitude<F> from_int(int n) { return magnitude<F>(n < 0 ? -static_cast<double>(n) : static_cast<double>(n)); }
};

}  // namespace deltaproof
