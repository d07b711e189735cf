// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT

#include "deltaproof/rule/rules.hpp"

#include "deltaproof/number/real.hpp"
#include "studies/eigenvalues/parts.hpp"

namespace deltaproof::detail::eigenvalues {
namespace {

// beta, n and x are exact in it.
using wide = real<192>;
using shared::significand;
using shared::significands;

/// A case: beta and n, numbers of the format, and the side of n on which the exact |k|^2 lies.
struct pair {
  double beta;
  double n;
  int end = 0;
};

template <class Rule>
inline constexpr bool decays = std::is_same_v<Rule, exact_flow> || std::is_same_v<Rule, implicit_euler> ||
                               std::is_same_v<Rule, rk2> || std::is_same_v<Rule, rk4>;

/// What a rule is at x: the step b = beta phi(x), in rationals or, for e^-x, with 192 bits; R = 1 - b n.
template <class Rule>
using truth = std::conditional_t<std::is_same_v<Rule, exact_flow>, wide, rational>;

template <class Rule>
truth<Rule> exact_step(const rational& beta, const rational& x) {
  using scalar = truth<Rule>;
  if constexpr (std::is_same_v<scalar, rational>) {
    return beta * Rule::gain(x);
  } else {
    return round_to<wide>(beta) * Rule::gain(round_to<wide>(x));
  }
}

rational cast(const rational& x, const rational&) { return x; }
wide cast(const rational& x, const wide&) { return round_to<wide>(x); }

/// The cases that leave an interval: how many, the least x and the largest distance, in u.
struct outside {
  std::uint64_t times = 0;
  double first = HUGE_VAL;
  double worst = 0;

  void count(double x, double distance) {
    ++times;
    first = std::min(first, x);
    worst = std::max(worst, distance);
  }
};

/// The cases of one rule, format and place. Cases where |R(x)| > 1 are the rule's own affair and not counted.
struct tally {
  rounding_place place = rounding_place::step_only;
  bool promises_decay = false;
  std::uint64_t cases = 0, not_finite = 0, negative = 0, beyond_bound = 0;
  double worst_error = 0;
  outside unit, decay;
  bool worst_is_unit = false;
  pair worst_case{0, 0};  // of the unit interval, or of the decay's if none leaves that
  rational worst_lambda = 0, worst = 0;

  template <class Truth>
  void count(const pair& c, const rational& x, const rational& lambda, const Truth& stability, double u, double tiny) {
    ++cases;
    const double x_value = to_double(x);
    const Truth difference = cast(lambda, stability) - stability;
    const double error = std::fabs(round_to<double>(difference)) / u;
    worst_error = std::max(worst_error, error);
    if (place == rounding_place::step_only) {
      const Truth bound = cast(exact(u), stability) * (1 - stability) + cast(exact(tiny / 2) * exact(c.n), stability);
      if (difference > bound || -difference > bound) ++beyond_bound;
    }
    if (lambda > 1 || lambda < -1) {
      const rational distance = lambda > 1 ? rational(lambda - 1) : rational(-1 - lambda);
      unit.count(x_value, to_double(distance) / u);
      keep(c, lambda, distance, true);
    }
    if (promises_decay && (lambda > 1 || lambda <= 0)) {
      if (lambda < 0) ++negative;
      const rational distance = lambda > 1 ? rational(lambda - 1) : rational(-lambda);
      decay.count(x_value, to_double(distance) / u);
      if (!worst_is_unit) keep(c, lambda, distance, false);
    }
  }

  [[nodiscard]] frame_row row() const {
    const auto where = [](std::uint64_t times, const auto& value) { return times > 0 ? cell(value) : cell(); };
    const auto promised = [&](std::uint64_t times) { return promises_decay ? cell(times) : cell(); };
    const auto worst = [&](const auto& value) { return where(unit.times + decay.times, value); };
    frame_row row{cases, not_finite, beyond_bound, worst_error, unit.times};
    row.insert(row.end(), {where(unit.times, unit.first), where(unit.times, unit.worst), unit.worst});
    row.insert(row.end(), {promised(decay.times), promised(negative)});
    row.insert(row.end(), {where(decay.times, decay.first), where(decay.times, decay.worst), decay.worst});
    row.insert(row.end(), {worst(worst_case.beta), worst(worst_case.n), worst(worst_case.end), worst(worst_lambda.str())});
    return row;
  }

 private:
  void keep(const pair& c, const rational& lambda, const rational& distance, bool is_unit) {
    if (unit.times + decay.times > 1 && is_unit == worst_is_unit && distance <= worst) return;
    worst = distance;
    worst_is_unit = is_unit;
    worst_case = c;
    worst_lambda = lambda;
  }
};

template <class Rule, format F>
double formed_step(const pair& c) {
  return effective_step(Rule{}, rounded<F>::from_exact(c.beta), rounded<F>::from_exact(c.n)).value();
}

/// The step as a kernel forms it, or NaN / infinity.
template <class Rule, format F>
double kernel_step(const pair& c, rounding_place place, const truth<Rule>& exact_b) {
  if (place == rounding_place::step_only) return round_to<F>(exact_b).value();
  return formed_step<Rule, F>(c);
}

/// The |k|^2 behind the n that the kernel has.
template <format F>
rational norm_behind(const pair& c) {
  const rational value = exact(c.n);
  if (c.end == 0) return value;
  const rational half_gap = (exact(from_ordinal<F>(ordinal<F>(c.n) + c.end)) - value) / 2;
  return value + half_gap * (1 - power_of_two(-20));
}

/// The same where double holds it.
template <format F>
double norm_in_double(const pair& c) {
  return c.end == 0 ? c.n : c.n + (from_ordinal<F>(ordinal<F>(c.n) + c.end) - c.n) / 2 * (1 - 0x1p-20);
}

using tallies = std::array<tally, rounding_places.size()>;

/// A case in exact numbers.
template <class Rule, format F>
struct exact_case {
  rational n, x;
  truth<Rule> b, stability;

  explicit exact_case(const pair& c)
      : n(norm_behind<F>(c)), x(exact(c.beta) * n), b(exact_step<Rule>(exact(c.beta), x)), stability(1 - b * cast(n, b)) {}
};

/// In these formats |k|^2, x, and b n for a rounded b are exact in double.
template <format F>
constexpr bool is_narrow = F.precision <= 11;

/// Counts a case as the exact numbers would, or returns false where double does not decide it: next to a boundary, or where the
/// case may be a new worst. Double knows beta phi(x) to 2^-45 beta where |R(x)| <= 1.
template <class Rule, format F>
bool count_in_double(const pair& c, tally& into) {
  constexpr bool is_exact = std::is_same_v<Rule, euler>;
  constexpr double u = unit_roundoff(F);
  const double n = norm_in_double<F>(c), x = c.beta * n, b = c.beta * Rule::gain(x), of_b = is_exact ? 0 : c.beta * 0x1p-45;
  const double bn = b * n, of_bn = is_exact ? 0 : of_b * n + std::fabs(bn) * 0x1p-50;
  if (bn + of_bn < 0 || bn - of_bn > 2) return true;  // |R(x)| > 1
  if (bn - of_bn < 0 || bn + of_bn > 2) return false;
  double step = round_to<F>(b - of_b).value();
  if (into.place != rounding_place::step_only) {
    step = formed_step<Rule, F>(c);
  } else if (step != round_to<F>(b + of_b).value()) {
    return false;
  }
  const double got = step * n, error = std::fabs(got - bn) + of_bn;  // lambda = 1 - got
  const bool beyond_unit = got < 0 || got > 2, beyond_decay = into.promises_decay && (got < 0 || got >= 1);
  const double by_unit = (got < 0 ? -got : got - 2) / u, by_decay = (got < 0 ? -got : got - 1) / u;
  if (!std::isfinite(step) || error > into.worst_error * u || (beyond_unit && by_unit >= into.unit.worst) ||
      (beyond_decay && by_decay >= into.decay.worst) ||
      (into.place == rounding_place::step_only && error > u * bn * (1 - 0x1p-40) && !is_exact))
    return false;
  ++into.cases;
  if (beyond_unit) into.unit.count(x, by_unit);
  if (beyond_decay) into.decay.count(x, by_decay);
  if (beyond_decay && got > 1) ++into.negative;
  return true;
}

template <class Rule, format F>
void look_at(pair c, tallies& into) {
  for (const int end : {0, -1, 1}) {
    c.end = end;
    std::optional<exact_case<Rule, F>> exactly;
    for (tally& of_place : into) {
      if ((end != 0) != (of_place.place == rounding_place::norm_too)) continue;
      if constexpr (is_narrow<F>) {
        if (count_in_double<Rule, F>(c, of_place)) continue;
      }
      if (!exactly) exactly.emplace(c);
      if (exactly->stability > 1 || exactly->stability < -1) continue;
      const double step = kernel_step<Rule, F>(c, of_place.place, exactly->b);
      if (!std::isfinite(step)) {
        ++of_place.not_finite;
        continue;
      }
      const rational lambda = 1 - exact(step) * exactly->n;
      of_place.count(c, exactly->x, lambda, exactly->stability, unit_roundoff(F), smallest_subnormal(F));
    }
  }
}

/// All positive numbers of the format up to `top`, ascending.
template <format F>
std::vector<double> positives(double top) {
  std::vector<double> result;
  for (std::int64_t i = 1; from_ordinal<F>(i) <= top; ++i) result.push_back(from_ordinal<F>(i));
  return result;
}

/// x covers 2^-(p+2), where R is next to 1, to 2^(p+3), where it is next to its limit.
template <format F>
constexpr int lowest_octave = -(F.precision + 2);
template <format F>
constexpr int octaves = 2 * F.precision + 5;

template <format F>
constexpr bool all_significands = F == bf16;
template <format F>
constexpr bool all_numbers = F.storage_bits == 8;

struct sampling {
  std::uint64_t seed;
  std::size_t per_octave;
  std::size_t bf16_stride;
};

/// The pairs of one octave of x (of everything, for the 8-bit formats).
template <format F>
std::vector<pair> pairs_of(int octave, const sampling& how) {
  std::vector<pair> result;
  if constexpr (all_numbers<F>) {
    const std::vector<double> norms = positives<F>(256);
    for (const double beta : positives<F>(2)) {
      for (const double n : norms) {
        if (beta * n < 256) result.push_back({beta, n});
      }
    }
  } else {
    // beta in [1, 2), n carries the octave: a power of two moved between them changes no significand.
    const double scale = detail::power_of_two(octave);
    if constexpr (all_significands<F>) {
      for (std::uint64_t i = 0; i < significands<F>; i += how.bf16_stride) {
        for (std::uint64_t j = 0; j < significands<F>; ++j) result.push_back({significand<F>(i), significand<F>(j) * scale});
      }
    } else {
      philox random(how.seed, 0x65696731'00000000U + static_cast<std::uint64_t>(F.precision * 4096 + octave + 1000));
      for (std::size_t i = 0; i < how.per_octave; ++i) {
        const double beta = significand<F>(random.below(significands<F>));
        result.push_back({beta, significand<F>(random.below(significands<F>)) * scale});
      }
    }
  }
  return result;
}

/// Pairs whose x lies on either side of a rule's finite limit, within a few units of beta.
template <class Rule, format F>
std::vector<pair> pairs_at_limit(const sampling& how) {
  std::vector<pair> result;
  if constexpr (Rule::limit < 100 && !all_numbers<F> && !all_significands<F>) {
    philox random(how.seed, 0x65696732'00000000U + static_cast<std::uint64_t>(F.precision * 4096));
    for (std::size_t i = 0; i < how.per_octave; ++i) {
      const double n = significand<F>(random.below(significands<F>));
      double beta = round_to<F>(Rule::limit / n).value();
      for (int step = 0; step < 6; ++step) {
        result.push_back({beta, n});
        beta = round_to<F>(beta * (1 - 1.5 * unit_roundoff(F))).value();
      }
    }
  }
  return result;
}

/// Rows of one rule in one format: see survey_rules.
template <class Rule, format F>
std::vector<frame_row> rows_of(const sampling& how) {
  tallies all;
  for (std::size_t i = 0; i < all.size(); ++i) {
    all[i].place = rounding_places[i];
    all[i].promises_decay = decays<Rule>;
  }
  for (int i = 0; i < (all_numbers<F> ? 1 : octaves<F>); ++i) {
    for (const pair& c : pairs_of<F>(lowest_octave<F> + i, how)) look_at<Rule, F>(c, all);
  }
  for (const pair& c : pairs_at_limit<Rule, F>(how)) look_at<Rule, F>(c, all);
  const bool exhaustive = all_numbers<F> || (all_significands<F> && how.bf16_stride == 1);
  std::vector<frame_row> rows;
  for (const tally& t : all) {
    const frame_row whole = t.row();
    frame_row row{name_of(t.place), decays<Rule>, exhaustive};
    row.insert(row.end(), whole.begin(), whole.end());
    rows.push_back(std::move(row));
  }
  return rows;
}

}  // namespace

std::string_view name_of(rounding_place place) {
  constexpr std::array<std::string_view, rounding_places.size()> names{"step_only", "every_operation", "norm_too"};
  return names[static_cast<std::size_t>(place)];
}

frame survey_rules(const run_options& options, std::size_t samples_per_octave, std::size_t bf16_stride) {
  const sampling how{options.seed, samples_per_octave, bf16_stride};
  return grid(
      options, "rules",
      {"rounded",      "promises_decay", "exhaustive", "cases",      "not_finite",    "beyond_bound", "worst_error",
       "outside_unit", "first_unit",     "unit_by",    "worst_unit", "outside_decay", "negative",     "first_decay",
       "decay_by",     "worst_decay",    "worst_beta", "worst_n",    "worst_end",     "worst_lambda"},
      [&](const std::string& rule_name, const format& wanted) {
        std::vector<frame_row> rows;
        visit_rule(rule_name,
                   [&](auto rule) { rows = visit_format(wanted, [&]<format F>() { return rows_of<decltype(rule), F>(how); }); });
        return rows;
      },
      shared::rule_axis(), all_formats());
}

std::optional<rational> realised_eigenvalue(std::string_view rule_name, std::string_view format_name, rounding_place place,
                                            double beta, double n, int end) {
  std::optional<rational> result;
  visit_rule(rule_name, [&](auto rule) {
    using Rule = decltype(rule);
    visit_format(format_named(format_name), [&]<format F>() {
      const rational norm = norm_behind<F>({beta, n, end});
      const truth<Rule> b = exact_step<Rule>(exact(beta), exact(beta) * norm);
      const double step = kernel_step<Rule, F>({beta, n}, place, b);
      if (std::isfinite(step)) result = 1 - exact(step) * norm;
    });
  });
  return result;
}

}  // namespace deltaproof::detail::eigenvalues
