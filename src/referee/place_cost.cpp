// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
#include "referee/place_cost.hpp"

#include <algorithm>
#include <boost/math/distributions/students_t.hpp>
#include <cmath>
#include <limits>

#include "support/parallel.hpp"
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

/// On the given inputs most roundings repeat: however many runs there are, their mean is one draw of each error.
bool repeats(std::size_t law) { return law % 2 == 0; }

/// What log errors scatter by inside their laws, and the degrees of freedom that say so.
struct log_scatter {
  double spread = 0, degrees = 0;
};
/// The larger of that of runs on the given inputs and of runs on perturbed ones: repeated roundings do not scatter.
log_scatter scatter_of(std::span<const std::vector<double>> laws, const std::array<double, 2>& least) {
  std::array<double, 2> squares{};
  std::array<double, 2> degrees{};
  for (std::size_t law = 0; law < laws.size(); ++law) {
    if (laws[law].empty()) continue;
    const log_errors of(laws[law], least[law % 2]);
    squares[law % 2] += of.squares;
    degrees[law % 2] += of.count - 1;
  }
  log_scatter out;
  for (std::size_t law = 0; law < 2; ++law) {
    if (!(degrees[law] > 0)) continue;
    const double spread = std::sqrt(squares[law] / degrees[law]);
    if (spread >= out.spread) out = {spread, degrees[law]};
  }
  return out;
}

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
  b.gated_key.reset();
  b.state_sum_order = tile_order::sequential;
  b.diagonal = diagonal_terms::excluded;
  b.dbeta_form = step_gradient::sum;
  b.l2norm_from = norm_source::computed;
  return v;
}

double place_cost::ratio() const {
  double most = 0;
  for (std::size_t law = 0; law < runs.size(); ++law) most = std::max(most, ratio_of(law));
  return most;
}

double place_cost::ratio_of(std::size_t law) const {
  if (plan <= 0) return 0;
  if (!std::isfinite(plan)) return infinity;
  const bool errs = std::any_of(runs[law].begin(), runs[law].end(), [](double x) { return !(x <= 0); });
  if (!errs) return 0;
  const auto typical = [&](const std::vector<double>& errors) {
    return log_errors(errors, std::max(least[law % 2], median(errors) / far_below)).mean;
  };
  const double log_ratio = typical(runs[law]) - typical(alone[law % 2]);
  if (!std::isfinite(log_ratio)) return infinity;
  const double scatter = repeats(law) ? std::hypot(scatter_of(runs, least).spread, scatter_of(alone, least).spread) : 0;
  return std::exp(log_ratio - 2 * scatter);
}

bool place_cost::allows(std::size_t number, const std::optional<double>& accuracy) const {
  if (2 * number >= runs.size()) number = 0;
  for (std::size_t law = 2 * number; law < std::min(runs.size(), 2 * number + 2); ++law) {
    double mean = 0;
    for (const double x : runs[law]) mean += x / static_cast<double>(runs[law].size());
    if (accuracy ? !(mean <= *accuracy * magnitude) : !(ratio_of(law) <= allowed_ratio)) return false;
  }
  return true;
}

bool place_cost::surely_above(double alpha) const {
  // The two spreads may be far apart. Student's law with the fewer degrees of freedom is on the safe side (Mickey and Brown
  // 1966).
  const log_scatter own = scatter_of(runs, least), formats = scatter_of(alone, least);
  const double degrees = std::min(own.degrees, formats.degrees);
  if (!(degrees > 0)) return false;
  const double quantile = boost::math::quantile(boost::math::complement(boost::math::students_t(degrees), alpha));
  for (std::size_t law = 0; law < runs.size(); ++law) {
    if (runs[law].empty()) continue;
    const log_errors of_plan(runs[law], least[law % 2]), of_formats(alone[law % 2], least[law % 2]);
    const double by_chance =
        repeats(law) ? std::hypot(own.spread, formats.spread)
                     : std::hypot(own.spread / std::sqrt(of_plan.count), formats.spread / std::sqrt(of_formats.count));
    if (of_plan.mean - of_formats.mean - std::log(allowed_ratio) > quantile * by_chance) return true;
  }
  return false;
}

bool place_cost::is_above() const {
  const double most = ratio();
  return most > allowed_ratio && std::isfinite(most);
}

namespace {

/// Twice as many runs of one head on perturbed inputs, and four times as many of the formats alone; false where there is no time.
bool double_runs(const more_runs& from, std::size_t head, std::size_t look, std::span<place_cost> places, double& seconds) {
  struct batch {
    std::size_t law, count, before;  ///< so many, behind those there are
    bool formats;                    ///< of the formats alone
    std::vector<double>& (*of)(place_cost&, std::size_t law);
  };
  std::vector<batch> batches;
  for (std::size_t law = 1; law < places.front().runs.size(); law += 2) {
    const std::size_t count = places.front().runs[law].size();
    batches.push_back({law, count, count, false, [](place_cost& c, std::size_t l) -> std::vector<double>& { return c.runs[l]; }});
  }
  // Few against those of all laws of the plan, and all of them are compared with these.
  batches.push_back({1, 3 * places.front().alone[1].size(), 0, true,
                     [](place_cost& c, std::size_t l) -> std::vector<double>& { return c.alone[l]; }});
  for (const batch& b : batches) seconds += from.seconds(head) * static_cast<double>(b.count);
  const auto stopped = [&] { return from.options.stop != nullptr && from.options.stop->load(std::memory_order_relaxed); };
  if (seconds > from.options.judge.seconds / 4 || stopped()) return false;
  for (const batch& b : batches) {
    std::vector<std::vector<double>> made(b.count);
    parallel_for(b.count, from.options.threads, [&](std::size_t run) {
      if (!stopped())
        made[run] =
            from.errors(head, b.formats ? from.alone : from.variant(b.law, b.before + run), (look << 12) + (b.law << 8) + run);
    });
    if (stopped()) return false;
    for (const std::vector<double>& errors : made) {
      for (std::size_t i = 0; i < places.size(); ++i) b.of(places[i], b.law).push_back(errors[i]);
    }
  }
  return true;
}

}  // namespace

void draw_until_decided(const more_runs& from, double alpha, const std::vector<std::size_t>& first_place,
                        std::span<place_cost> places) {
  double seconds = 0;
  for (std::size_t look = 1; look < adequacy_looks; ++look) {
    for (std::size_t head = 0; head + 1 < first_place.size(); ++head) {
      const auto here = places.subspan(first_place[head], first_place[head + 1] - first_place[head]);
      const auto wants_more = [&](const place_cost& c) { return look == 1 ? c.is_above() : c.is_undecided(alpha); };
      if (std::any_of(here.begin(), here.end(), wants_more) && !double_runs(from, head, look, here, seconds)) return;
    }
  }
}

namespace {

std::string above_the_formats(const place_cost& c, double ratio) {
  if (std::isfinite(c.plan))
    return "the plan's own error in " + c.tensor + " is " + digits(ratio) +
           " times that of its formats alone (at most 8 times is allowed: 3 bits of precision, the difference between fp16 and "
           "bf16)";
  const bool alone = std::any_of(c.alone.begin(), c.alone.end(), [](const std::vector<double>& errors) {
    return std::any_of(errors.begin(), errors.end(), [](double x) { return !std::isfinite(x); });
  });
  return "emulated runs of the plan overflow in " + c.tensor +
         (alone ? ", and so do runs in its formats alone: these inputs leave their range"
                : ", and runs in its formats alone do not");
}

}  // namespace

void judge_place(const place_cost& c, double alpha, adequacy_report& out) {
  const double error = c.magnitude > 0 ? c.plan / c.magnitude : c.plan > 0 ? infinity : 0;
  const double ratio = c.ratio();
  const bool bad = out.accuracy ? error > *out.accuracy : ratio > allowed_ratio && !c.is_undecided(alpha);
  out.worst_error = std::max(out.worst_error, error);
  if (ratio > out.worst_ratio) {
    out.worst_ratio = ratio;
    out.worst_tensor = c.tensor;
  }
  // A final state says only that the end is inadequate.
  if (bad && c.tensor == "o") out.until_token = std::min(out.until_token.value_or(c.first), c.first);
  if (!bad && !out.accuracy && ratio > allowed_ratio && out.adequate && out.reason.empty()) {
    out.reason = "the plan's error in " + c.tensor + " is typically " + digits(ratio) +
                 " times that of its formats alone, and at most 8 times is allowed; the plan's " +
                 std::to_string(c.runs.back().size()) +
                 " runs on perturbed inputs scatter too much to say whether its error really exceeds 8 times";
    out.stage = c.tensor;
  }
  if (!bad || !out.adequate) return;
  out.adequate = false;
  out.stage = c.tensor;
  out.reason = out.accuracy ? "the plan's own relative error in " + c.tensor + " is " + digits(error) + ", more than the " +
                                  digits(*out.accuracy) + " that --accuracy allows"
                            : above_the_formats(c, ratio);
}

void judge_places(std::span<const place_cost> places, double alpha, std::size_t numbers,
                  const std::function<std::string(std::size_t)>& name, adequacy_report& out) {
  const bool before = out.adequate;
  for (const place_cost& c : places) judge_place(c, alpha, out);
  if (!before || out.adequate) return;
  std::string adequate;
  std::size_t count = 0;
  for (std::size_t number = 0; number < numbers; ++number) {
    if (!std::all_of(places.begin(), places.end(), [&](const place_cost& c) { return c.allows(number, out.accuracy); })) continue;
    if (count++ < 3)
      adequate += (count == 1 ? "" : ", ") + name(number) + (number == 0 ? " (the first entry of every list)" : "");
  }
  if (count == 0) return;
  if (count > 3) adequate += " and " + std::to_string(count - 3) + " more";
  out.reason += "; the plan allows several arithmetics and is judged by the least accurate of them; " +
                std::string(count == 1 ? "one is adequate alone: " : "each of these is adequate alone: ") + adequate +
                "; if the kernel uses " + (count == 1 ? "it" : "one of these") +
                ", judge by a copy of the plan that lists no other (--plan FILE.toml)";
}

}  // namespace deltaproof::referee_detail
