// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
#include "referee/place_cost.hpp"

#include <algorithm>
#include <boost/math/distributions/students_t.hpp>
#include <cmath>
#include <limits>

#include "support/text.hpp"

namespace deltaproof::referee_detail {

namespace {

format wider(const format& a, const format& b) { return a.precision >= b.precision ? a : b; }

/// What exponentials and square roots cost on the hardware there is, in ulps beyond the half of rounding: the approximate units
/// of GPUs stay within it. An error that a plan declares beyond that is the plan's own doing, as a coarse sum is.
constexpr double usual_ulps = 2;

/// Errors this far below the median of their law are those of runs in which the decisive rounding did not happen: a mean of logs
/// would be theirs alone.
constexpr double far_below = 16;

double median(std::vector<double> of) {
  std::nth_element(of.begin(), of.begin() + static_cast<std::ptrdiff_t>(of.size() / 2), of.end());
  return of[of.size() / 2];
}

/// The runs of one law: how many, and the mean and scatter of their log errors.
struct log_errors {
  double count = 0, mean = 0, squares = 0;

  /// Errors below `least` count as that.
  log_errors(const std::vector<double>& errors, double least) : count{static_cast<double>(errors.size())} {
    for (const double x : errors) mean += std::log(std::max(x, least)) / count;
    for (const double x : errors) squares += (std::log(std::max(x, least)) - mean) * (std::log(std::max(x, least)) - mean);
  }
};

}  // namespace

plan_variant formats_alone(plan_variant v, double l2norm_epsilon) {
  v.name += ", formats alone";
  for (format* f : {&v.A.accumulate, &v.u.accumulate, &v.w.accumulate, &v.state.accumulate, &v.o.accumulate, &v.cumsum, &v.decay})
    *f = wider(*f, fp32);
  v.inverse.method = inverse_method{diagonal_kind::forward, 0, merge_kind::block};
  v.inverse.accumulate = v.inverse.merge_accumulate = wider(v.inverse.store, fp32);
  v.inverse.operand = v.inverse.merge_operand = {v.inverse.accumulate, false};
  v.inverse.between.reset();
  v.state.between_tokens.reset();
  v.state.cache.reset();
  v.state.between_calls.reset();
  v.l2norm_epsilon = l2norm_epsilon;  // another one is no format
  v.clip.reset();
  v.exp2_ulps = std::min(v.exp2_ulps, usual_ulps);
  v.rsqrt_ulps = std::min(v.rsqrt_ulps, usual_ulps);
  if (v.order == sum_order::tensor_core) v.order = sum_order::sequential;
  v.accumulator_bits = 0;
  if (!v.backward) return v;
  backward_variant& b = *v.backward;
  for (format* f : {&b.accumulate, &b.state_sum, &b.dg, &b.group_sum}) *f = wider(*f, fp32);
  b.dA_between.reset();
  b.state_sum_order = tile_order::sequential;
  b.diagonal = diagonal_terms::excluded;
  b.dbeta_form = step_gradient::sum;
  b.l2norm_from = norm_source::computed;
  return v;
}

double place_cost::ratio() const {
  if (plan <= 0) return 0;
  double most = 0;
  for (std::size_t law = 0; law < runs->samples.size(); ++law) {
    const bool errs = std::any_of(runs->samples[law].begin(), runs->samples[law].end(), [](double x) { return !(x <= 0); });
    if (!errs) continue;
    const auto typical = [&](const std::vector<double>& errors) {
      return log_errors(errors, std::max(least[law % 2], median(errors) / far_below));
    };
    const log_errors own = typical(runs->samples[law]), formats = typical(alone[law % 2]);
    most = std::max(most, std::isfinite(own.mean) ? std::exp(own.mean - formats.mean) : infinity);
  }
  return std::isfinite(plan) ? most : infinity;
}

bool place_cost::surely_above(double alpha) const {
  double squares = 0, degrees = 0;
  std::vector<log_errors> of_plan, of_formats;
  for (std::size_t i = 0; i < 2; ++i) of_formats.emplace_back(alone[i], least[i]);
  for (std::size_t law = 0; law < runs->samples.size(); ++law) {
    if (!runs->samples[law].empty()) of_plan.emplace_back(runs->samples[law], least[law % 2]);
  }
  for (const auto* laws : {&of_plan, &of_formats}) {
    for (const log_errors& law : *laws) {
      squares += law.squares;
      degrees += law.count - 1;
    }
  }
  if (!(degrees > 0)) return false;
  const double quantile = boost::math::quantile(boost::math::complement(boost::math::students_t(degrees), alpha));
  for (std::size_t i = 0; i < of_plan.size(); ++i) {
    const log_errors &own = of_plan[i], &formats = of_formats[i % 2];
    const double error = std::sqrt(squares / degrees * (1 / own.count + 1 / formats.count));
    if (own.mean - formats.mean - std::log(allowed_ratio) > quantile * error) return true;
  }
  return false;
}

void judge_place(const place_cost& c, double alpha, adequacy_report& out) {
  const double error = c.magnitude > 0 ? c.plan / c.magnitude : c.plan > 0 ? infinity : 0;
  const double ratio = c.ratio();
  const bool bad = out.accuracy ? error > *out.accuracy : ratio > allowed_ratio && (std::isinf(ratio) || c.surely_above(alpha));
  out.worst_error = std::max(out.worst_error, error);
  if (ratio > out.worst_ratio) {
    out.worst_ratio = ratio;
    out.worst_tensor = c.tensor;
  }
  // A final state says only that the end is inadequate.
  if (bad && c.tensor == "o") out.until_token = std::min(out.until_token.value_or(c.first), c.first);
  if (!bad || !out.adequate) return;
  out.adequate = false;
  out.stage = c.tensor;
  out.reason = out.accuracy ? "its own relative error in " + c.tensor + " is " + digits(error) + ", more than the " +
                                  digits(*out.accuracy) + " that --accuracy allows"
                            : "its own error in " + c.tensor + " is " + digits(ratio) +
                                  " times that of its formats alone (8 are allowed: three bits, as between fp16 and bf16)";
}

}  // namespace deltaproof::referee_detail
