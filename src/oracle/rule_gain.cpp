// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
#include "oracle/rule_gain.hpp"

#include <cmath>
#include <limits>
#include <stdexcept>

namespace deltaproof {
namespace {

[[noreturn]] void refuse(std::string_view rule, const std::string& x, const std::string& where) {
  throw domain_error(where + ": rule " + std::string(rule) + " has no finite gain at x = beta |k|^2 = " + x +
                     "; change that beta");
}

}  // namespace

wide_bound apply_gain(mpfr_ptr beta, mpfr_srcptr x, rule_kind rule, int bits, const std::string& where) {
  wide_bound amplification;
  visit_rule(rule, [&](auto one) {
    const mpfr_ball phi = one.gain(mpfr_ball::around(x, -(bits + 40)));
    mpfr_mul(beta, beta, phi.value(), MPFR_RNDN);
    amplification = phi.error() * wide_bound::scaled(1, bits + 40);
    if (amplification.finite()) return;
    // Beside a pole more bits help; beyond MPFR's exponents nothing does.
    mpfr_clear_overflow();
    static_cast<void>(one.gain(mpfr_ball::around(x, -(bits + 40)).exactly()));
    if (mpfr_overflow_p() != 0) refuse(one.name, std::to_string(mpfr_get_d(x, MPFR_RNDN)), where);
  });
  return amplification;
}

std::optional<rational> rational_step(rule_kind rule, const rational& beta, const rational& squared_norm,
                                      const std::string& where) {
  std::optional<rational> step;
  visit_rule(rule, [&](auto one) {
    if constexpr (RuleOver<decltype(one), rational>) {
      try {
        step = effective_step(one, beta, squared_norm);
      } catch (const std::overflow_error&) {  // a division by 0
        refuse(one.name, rational(beta * squared_norm).str(), where);
      }
    }
  });
  return step;
}

void refuse_if_at_pole(const problem& p, double beta, std::span<const double> key, const std::string& where) {
  // A sigmoid is positive, and with an epsilon that is none |k|^2 / (|k|^2 + epsilon) is no dyadic fraction of a beta that is
  // one.
  if (p.beta_activation != activation_kind::none) return;
  mpfr_value epsilon(128);
  set_decimal(epsilon.get(), p.l2norm_epsilon);
  if (p.qk_l2norm && mpfr_cmp_d(epsilon.get(), p.l2norm_epsilon) != 0) return;
  rational norm = 0;
  for (const double x : key) norm += exact(x) * exact(x);
  if (p.qk_l2norm) norm /= norm + exact(p.l2norm_epsilon);
  static_cast<void>(rational_step(p.rule, exact(beta), norm, where));
}

/// The derivatives of (1 - e^-x) / x.
gain_slopes<mpfr_ball> flow_slopes(const mpfr_ball& x) {
  const mpfr_prec_t bits = mpfr_get_prec(x.value());
  const mpfr_ball one(bits, 1), decayed = exp(-x);
  // Near 0 (e^-x - phi)/x cancels: phi' is the sum of m (-1)^m x^(m-1) / (m+1)! there, whose terms fall by more than
  // 2^-(log2 m!) each.
  if (x.surely_below(1) && (-x).surely_below(1)) {
    int terms = 8;
    for (double bits_known = 0; bits_known < static_cast<double>(bits); ++terms)
      bits_known += std::log2(static_cast<double>(terms));
    mpfr_ball sum(bits, 0), power(bits, 1);
    for (int m = 1; m <= terms; ++m) {
      power = power / mpfr_ball(bits, m + 1);  // (-x)^(m-1) / (m+1)!
      sum = sum - mpfr_ball(bits, m) * power;
      power = -(power * x);
    }
    return {sum + mpfr_ball(bits, 0).widened(wide_bound::scaled(1, -bits)), decayed};
  }
  const mpfr_ball gain = (one - decayed) / x;
  return {(decayed - gain) / x, decayed};
}

gain_slopes<mpfr_ball> slopes_of(rule_kind rule, const mpfr_ball& x) {
  gain_slopes<mpfr_ball> slopes{x, x};
  visit_rule(rule, [&](auto one) { slopes = slopes_of(one, x); });
  return slopes;
}

}  // namespace deltaproof

// Theorems behind this file, by their names in proofs/README.md.
// proved: ode.gain_slopes.exact_gain_slope, ode.gain_slopes.exact_slope_tail
