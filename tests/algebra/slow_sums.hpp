// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
//
// The sums of algebra once more, slow and by other means: exact rationals, one spelled rounding per step, levels
// of pairs instead of a recursion, and the tensor core on big integers with a table of its own. Tests compare
// against these; they share nothing with the code under test but the number floor. Operands are finite here.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <vector>

#include "deltaproof/number/convert.hpp"
#include "deltaproof/number/rational.hpp"
#include "deltaproof/number/rounded.hpp"

namespace deltaproof::slow {

/// A value of F as the exact rational it is.
template <class S>
rational as_rational(const S& x) {
  return exact(lift<double>(x));
}

/// The exact value rounded once to S, a rounded<F>; the sum of +0 and anything is never -0 for what is tested.
template <class S>
S once(const rational& x) {
  return round_to<S>(x);
}

/// The exact dot product.
template <class S>
rational exact_dot(const std::vector<S>& x, const std::vector<S>& y) {
  rational sum = 0;
  for (std::size_t i = 0; i < x.size(); ++i) sum += as_rational(x[i]) * as_rational(y[i]);
  return sum;
}

/// acc + x_i y_i for i in [first, last), one rounding each if `fused`, else the product is rounded to P before.
template <class P, class S, class X>
S run(const std::vector<X>& x, const std::vector<X>& y, std::size_t first, std::size_t last, S acc, bool fused) {
  for (std::size_t i = first; i < last; ++i) {
    rational product = as_rational(x[i]) * as_rational(y[i]);
    if (!fused) product = as_rational(once<P>(product));
    acc = once<S>(as_rational(acc) + product);
  }
  return acc;
}

template <class P, class S, class X>
S blocks(const std::vector<X>& x, const std::vector<X>& y, std::size_t length, S acc, bool fused) {
  for (std::size_t i = 0; i < x.size(); i += length) {
    const S block = run<P, S>(x, y, i, std::min(i + length, x.size()), S(), fused);
    acc = once<S>(as_rational(acc) + as_rational(block));
  }
  return acc;
}

/// Level after level: neighbours are added, an odd last one moves up.
template <class P, class S, class X>
S pairs(const std::vector<X>& x, const std::vector<X>& y, S acc, bool fused) {
  std::vector<S> level;
  for (std::size_t i = 0; i < x.size(); ++i) {
    rational product = as_rational(x[i]) * as_rational(y[i]);
    if (!fused) product = as_rational(once<P>(product));
    level.push_back(once<S>(product));
  }
  if (level.empty()) return acc;
  while (level.size() > 1) {
    std::vector<S> next;
    for (std::size_t i = 0; i + 1 < level.size(); i += 2)
      next.push_back(once<S>(as_rational(level[i]) + as_rational(level[i + 1])));
    if (level.size() % 2 == 1) next.push_back(level.back());
    level = next;
  }
  return once<S>(as_rational(acc) + as_rational(level[0]));
}

struct core {
  std::size_t block;
  int fraction_bits;
  int zero_exponent;
  bool short_result;  // 13 fraction bits
};

/// The exponent field of x as the format of smallest normal exponent emin stores it.
inline int field(double x, int emin) { return std::max(std::ilogb(x), emin); }

/// v / 2^k toward zero, an integer.
inline boost::multiprecision::mpz_int toward_zero_at(const rational& v, int k) {
  using boost::multiprecision::mpz_int;
  const mpz_int power = mpz_int(1) << std::abs(k);
  const rational scaled = k >= 0 ? v / rational(power) : v * rational(power);
  const mpz_int quotient = abs(numerator(scaled)) / denominator(scaled);
  return scaled < 0 ? mpz_int(-quotient) : quotient;
}

/// acc + sum x_i y_i, block after block, of a format with smallest normal exponent emin. An exact zero is +0.
inline double tensor_core(const std::vector<double>& x, const std::vector<double>& y, int emin, const core& model, double acc) {
  for (std::size_t begin = 0; begin < x.size(); begin += model.block) {
    std::vector<rational> terms{exact(acc)};
    int largest = acc == 0 ? model.zero_exponent : field(acc, -126);
    for (std::size_t i = begin; i < begin + model.block; ++i) {
      const double a = i < x.size() ? x[i] : 0.0;
      const double b = i < x.size() ? y[i] : 0.0;
      largest = std::max(largest, a == 0 || b == 0 ? model.zero_exponent : field(a, emin) + field(b, emin));
      terms.push_back(exact(a) * exact(b));
    }
    boost::multiprecision::mpz_int sum = 0;
    for (const rational& term : terms) sum += toward_zero_at(term, largest - model.fraction_bits);
    rational total = sum;
    const boost::multiprecision::mpz_int power = boost::multiprecision::mpz_int(1) << std::abs(largest - model.fraction_bits);
    total = largest >= model.fraction_bits ? total * rational(power) : total / rational(power);
    if (abs(total) >= exact(0x1p128)) {
      acc = total < 0 ? -std::numeric_limits<double>::infinity() : std::numeric_limits<double>::infinity();
      return acc;  // the caller gives no infinities, so nothing that follows can change this one but NaN
    }
    constexpr format short_format{14, -126, 127, 32, true};
    acc = model.short_result ? lift<double>(round_to<short_format>(total, toward_zero{}))
                             : lift<double>(round_to<fp32>(total, toward_zero{}));
    acc += 0.0;  // -0 from a negative underflow becomes +0
  }
  return acc;
}

}  // namespace deltaproof::slow
