// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
//
// The logistic equation u' = a u (1 - u) stepped by the Euler method and exactly, beside the delta rule on one
// key, over one axis: x = a h for the maps, x = beta |k|^2 for the rule. At the fixed point u = 1 the multipliers are
// 1 - x and e^-x, the stability functions of Euler and EFLA. Orbits use + - * / in double only.
#pragma once

#include "studies/shared/common.hpp"

namespace deltaproof::detail::logistic {

enum class one_step { logistic_euler, logistic_exact };

/// One step at x from u. `decay` is e^-x, for the exact one.
[[nodiscard]] inline double advance(one_step map, double x, double decay, double u) {
  return map == one_step::logistic_euler ? u + x * u * (1 - u) : u / (u + (1 - u) * decay);
}

/// A product of many factors, as a significand and a power of two.
class long_product {
 public:
  long_product& operator*=(double factor) {
    int e = 0;
    significand_ = std::frexp(significand_ * factor, &e);
    exponent_ += e;
    return *this;
  }
  /// ln of its size.
  [[nodiscard]] double log() const {
    return shared::ln(std::fabs(significand_)) + static_cast<double>(exponent_) * shared::ln(2);
  }

 private:
  double significand_ = 1;
  long long exponent_ = 0;
};

/// e^-x, correctly rounded.
[[nodiscard]] double decay_of(double x);

/// u after `skip` steps from u = 1/4, then the next `keep` values, nearly equal ones
/// (2^-20) once.
[[nodiscard]] std::vector<double> orbit(one_step map, double x, std::size_t skip, std::size_t keep);

/// Mean of ln|d u_{t+1} / d u_t| over `steps` steps after `skip`: the Lyapunov exponent of the orbit.
[[nodiscard]] double logistic_exponent(one_step map, double x, std::size_t skip, std::size_t steps);

/// Points of the attractor told apart at 2^-20, 0 for more than 64.
[[nodiscard]] std::size_t attractor_period(double x);

}  // namespace deltaproof::detail::logistic

// Theorems behind this file, by their names in proofs/README.md.
// proved: ode.logistic.logistic_flow_solves, ode.logistic.logistic_flow_start, ode.logistic.logistic_flow_range,
// proved: ode.logistic.logistic_flow_monotone, ode.logistic.logistic_flow_semigroup, ode.logistic.logistic_flow_multiplier,
// proved: ode.logistic.euler_map_conjugate, ode.logistic.euler_map_fixed_points, ode.logistic.euler_map_at_fixed_point,
// proved: ode.logistic.euler_map_multiplier, ode.logistic.period_two, ode.logistic.li_yorke_hypothesis,
// proved: ode.logistic.period_three, ode.logistic.orbit_at_four
