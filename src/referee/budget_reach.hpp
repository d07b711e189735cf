// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
//
// How far above the mean of the runs a limit lies: the quantiles of the laws that log errors may have, the pools that say how
// much they scatter, and the factor that both come to.
#pragma once

#include <algorithm>
#include <boost/math/distributions/gamma.hpp>
#include <boost/math/distributions/normal.hpp>
#include <boost/math/distributions/students_t.hpp>
#include <boost/math/tools/minima.hpp>
#include <cmath>
#include <cstddef>
#include <map>
#include <string_view>
#include <utility>

#include "deltaproof/referee/budget.hpp"
#include "referee/budget_pools.hpp"

namespace deltaproof::detail {

[[nodiscard]] inline double student_quantile(std::size_t degrees, double alpha) {
  return boost::math::quantile(boost::math::complement(boost::math::students_t(static_cast<double>(degrees)), alpha));
}

/// The quantiles of the laws at one alpha, each found once.
class quantile_table {
 public:
  explicit quantile_table(double alpha)
      : alpha_{alpha},
        normal_{boost::math::quantile(boost::math::complement(boost::math::normal(), alpha))},
        gumbel_{gumbel_quantile(alpha)} {}

  /// The upper one of the heavier of the norm's own law and the Gamma law with this skewness.
  [[nodiscard]] std::pair<double, std::string_view> known_spread(norm_kind norm, double skewness) {
    const std::pair<double, std::string_view> own =
        is_maximum(norm) ? std::pair{gumbel_, "Gumbel"} : std::pair{normal_, "Student"};
    if (skewness <= nearly_normal) return own;
    double& gamma = gamma_[skewness];
    if (gamma == 0) gamma = gamma_quantile(skewness, alpha_);
    return gamma > own.first ? std::pair{gamma, std::string_view("Gamma")} : own;
  }
  /// How far below its mean the Gamma law with this skewness, of either sign, lies.
  [[nodiscard]] double below(double skewness) {
    if (std::fabs(skewness) <= nearly_normal) return normal_;
    double& kept = below_[skewness];
    if (kept == 0) kept = skewness < 0 ? gamma_quantile(-skewness, alpha_) : -gamma_quantile(skewness, 1 - alpha_);
    return kept;
  }
  /// What an estimated spread costs: Student's quantile over the normal one.
  [[nodiscard]] double estimated_spread(std::size_t degrees) {
    double& kept = student_over_normal_[degrees];
    if (kept == 0) kept = student_quantile(degrees, alpha_) / normal_;
    return kept;
  }

 private:
  // With less skewness the Gamma law's quantile exceeds the normal one by less than 2 % down to alpha = 1e-9.
  static constexpr double nearly_normal = 0.02;

  // Of the Gumbel law with mean 0 and variance 1: (-log(-log(1 - alpha)) - gamma) sqrt(6) / pi.
  static double gumbel_quantile(double alpha) {
    constexpr double euler_gamma = 0.57721566490153286;
    constexpr double sqrt_6_over_pi = 0.77969680123367553;
    return (-std::log(-std::log1p(-alpha)) - euler_gamma) * sqrt_6_over_pi;
  }
  // Of the Gamma law with mean 0, variance 1 and this skewness > 0: shape k = 4 / skewness^2, (G - k) / sqrt k.
  static double gamma_quantile(double skewness, double alpha) {
    const double shape = 4 / (skewness * skewness);
    return (boost::math::quantile(boost::math::complement(boost::math::gamma_distribution<double>(shape), alpha)) - shape) /
           std::sqrt(shape);
  }

  double alpha_, normal_, gumbel_;
  std::map<std::size_t, double> student_over_normal_;
  std::map<double, double> gamma_, below_;
};

/// The largest quantile spread sqrt(1 + 1/n) of the pools considered for one variant of n runs.
struct widest_reach {
  double reach = -1, quantile = 0, spread = 0;
  double estimated = 1;  ///< what an estimated spread costs; part of the quantile
  double times = 1;      ///< what the head scatters more than those in the pool; part of the spread
  std::string_view law;
  const named_pool* from = nullptr;

  void consider(const named_pool& p, const std::pair<double, std::string_view>& law_at_alpha, double variant, double runs,
                double least, quantile_table& table) {
    if (p.residuals.degrees == 0) return;
    const double student = table.estimated_spread(p.residuals.degrees), q = law_at_alpha.first * student;
    const double s = std::max(p.residuals.spread() * variant, least);
    const double r = q * s * std::sqrt(1 + 1 / runs);
    if (r > reach) *this = {r, q, s, student, 1, law_at_alpha.second, &p};
  }
  void scatters(double more) {
    times = more;
    reach *= more;
    spread *= more;
  }
};

/// What a reach on the log scale is as a factor. `own_share`: of the quantile, what it is by the norm's own law, without
/// skewness. An error of first order is a linear image of many independent roundings: the tail of its rms is at most that of the
/// largest weight alone, of its maximum at most Gumbel's, on the linear scale. Such a weight is 1.55 spreads of the log for a
/// single element, 1.42 for many.
///
/// Of a head of few runs nothing but `runs` of them says where its errors lie. Their mean errs on the log scale: where few
/// roundings make the error it may be low by a factor, as the Gamma law with the skewness of the logs says. In units of their
/// quantiles the error and the mean lie inside the unit disk; log(1 + above cos) + below sin has one maximum.
[[nodiscard]] inline double limit_over_mean(const statistic& s, const widest_reach& of, double own_share, double runs,
                                            double skewness, quantile_table& table) {
  const double log_law = std::exp(of.reach);
  if (!s.first_order) return log_law;
  const double heavier = is_maximum(s.norm) ? 1.0 : std::max(1.0, 1.6 * own_share);
  const double linear = 1 + of.reach * heavier;
  if (!s.few_runs) return std::min(log_law, linear);
  const double above = of.quantile * of.spread * heavier;
  const double below = of.estimated * of.spread * table.below(skewness / std::sqrt(runs)) / std::sqrt(runs);
  constexpr double quarter = 1.5707963267948966;
  const double both =
      -boost::math::tools::brent_find_minima(
           [&](double angle) { return -std::log1p(above * std::cos(angle)) - below * std::sin(angle); }, 0.0, quarter, 24)
           .second;
  return std::min(log_law, std::max(std::exp(both), linear));
}

}  // namespace deltaproof::detail
