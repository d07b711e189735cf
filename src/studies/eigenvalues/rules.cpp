// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT

#include "deltaproof/rule/rules.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "deltaproof/number/real.hpp"
#include "studies/eigenvalues/parts.hpp"

namespace deltaproof::detail::eigenvalues {
namespace {

// beta, n and x are exact in it.
using wide = real<192>;

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

double magnitude(const rational& x) { return std::fabs(to_double(x)); }
double magnitude(const wide& x) { return std::fabs(round_to<double>(x)); }

rational cast(const rational& x, const rational&) { return x; }
wide cast(const rational& x, const wide&) { return round_to<wide>(x); }

/// Bins of x: eight per octave, equal in the significand, over the octaves of bf16.
constexpr int first_octave = -10;
constexpr int last_octave = 10;
constexpr std::size_t bins_per_octave = 8;
constexpr std::size_t bins = static_cast<std::size_t>(last_octave - first_octave + 1) * bins_per_octave;

std::size_t bin_of(double x) {
  int exponent = 0;
  const double significand = 2 * std::frexp(x, &exponent);
  const int octave = exponent - 1;
  if (octave < first_octave || octave > last_octave) return bins;
  return static_cast<std::size_t>(octave - first_octave) * bins_per_octave +
         static_cast<std::size_t>((significand - 1) * static_cast<double>(bins_per_octave));
}

/// Counts the cases of one rule, format and place.
struct tally {
  rule_result result;
  rational worst = 0;  // distance of the case kept as the worst
  bool worst_is_unit = false;
  std::vector<double> envelope = std::vector<double>(bins, std::numeric_limits<double>::quiet_NaN());

  template <class Truth>
  void count(const pair& c, const rational& x, const rational& lambda, const Truth& stability, double unit, double tiny) {
    ++result.cases;
    const double x_value = to_double(x);
    const Truth difference = cast(lambda, stability) - stability;
    const double error = magnitude(difference) / unit;
    result.worst_error = std::max(result.worst_error, error);
    if (result.place == rounding_place::step_only) {
      const Truth bound = cast(exact(unit), stability) * (1 - stability) + cast(exact(tiny / 2) * exact(c.n), stability);
      if (difference > bound || -difference > bound) ++result.beyond_bound;
    }
    if (const std::size_t bin = bin_of(x_value); bin < bins)
      envelope[bin] = std::isnan(envelope[bin]) ? error : std::max(envelope[bin], error);

    if (lambda > 1 || lambda < -1) {
      ++result.outside_unit;
      const rational distance = lambda > 1 ? rational(lambda - 1) : rational(-1 - lambda);
      result.worst_unit = std::max(result.worst_unit, to_double(distance) / unit);
      if (!result.first_unit || x_value < *result.first_unit) result.first_unit = x_value;
      keep(c, lambda, distance, true);
    }
    if (result.promises_decay && (lambda > 1 || lambda <= 0)) {
      ++result.outside_decay;
      if (lambda < 0) ++result.negative;
      const rational distance = lambda > 1 ? rational(lambda - 1) : rational(-lambda);
      result.worst_decay = std::max(result.worst_decay, to_double(distance) / unit);
      if (!result.first_decay || x_value < *result.first_decay) result.first_decay = x_value;
      if (!worst_is_unit) keep(c, lambda, distance, false);
    }
  }

  void merge(const tally& other) {
    rule_result& a = result;
    const rule_result& b = other.result;
    a.cases += b.cases;
    a.not_finite += b.not_finite;
    a.outside_unit += b.outside_unit;
    a.outside_decay += b.outside_decay;
    a.negative += b.negative;
    a.beyond_bound += b.beyond_bound;
    a.worst_unit = std::max(a.worst_unit, b.worst_unit);
    a.worst_decay = std::max(a.worst_decay, b.worst_decay);
    a.worst_error = std::max(a.worst_error, b.worst_error);
    const auto smaller = [](std::optional<double>& x, const std::optional<double>& y) {
      if (y && (!x || *y < *x)) x = y;
    };
    smaller(a.first_unit, b.first_unit);
    smaller(a.first_decay, b.first_decay);
    const bool has_case = !b.worst_lambda.empty();
    if (has_case && (a.worst_lambda.empty() || (other.worst_is_unit && !worst_is_unit) ||
                     (other.worst_is_unit == worst_is_unit && other.worst > worst))) {
      worst = other.worst;
      worst_is_unit = other.worst_is_unit;
      a.worst_beta = b.worst_beta;
      a.worst_n = b.worst_n;
      a.worst_end = b.worst_end;
      a.worst_lambda = b.worst_lambda;
    }
    for (std::size_t i = 0; i < bins; ++i) {
      if (!std::isnan(other.envelope[i])) {
        envelope[i] = std::isnan(envelope[i]) ? other.envelope[i] : std::max(envelope[i], other.envelope[i]);
      }
    }
  }

 private:
  void keep(const pair& c, const rational& lambda, const rational& distance, bool is_unit) {
    if (!result.worst_lambda.empty() && is_unit == worst_is_unit && distance <= worst) return;
    worst = distance;
    worst_is_unit = is_unit;
    result.worst_beta = c.beta;
    result.worst_n = c.n;
    result.worst_end = c.end;
    result.worst_lambda = lambda.str();
  }
};

/// The step as a kernel forms it, or NaN / infinity.
template <class Rule, format F>
double kernel_step(const pair& c, rounding_place place, const truth<Rule>& exact_b) {
  if (place == rounding_place::step_only) return round_to<F>(exact_b).value();
  return effective_step(Rule{}, rounded<F>::from_exact(c.beta), rounded<F>::from_exact(c.n)).value();
}

/// The |k|^2 behind the n that the kernel has.
template <format F>
rational norm_behind(const pair& c) {
  const rational value = exact(c.n);
  if (c.end == 0) return value;
  const rational half_gap = (exact(from_ordinal<F>(ordinal<F>(c.n) + c.end)) - value) / 2;
  return value + half_gap * (1 - power_of_two(-20));
}

using tallies = std::array<tally, rounding_places.size()>;

template <class Rule, format F>
void look_at(pair c, tallies& into) {
  const rational beta = exact(c.beta);
  for (const int end : {0, -1, 1}) {
    c.end = end;
    const rational n = norm_behind<F>(c);
    const rational x = beta * n;
    const truth<Rule> b = exact_step<Rule>(beta, x);
    const truth<Rule> stability = 1 - b * cast(n, b);
    if (stability > 1 || stability < -1) continue;
    for (std::size_t i = 0; i < rounding_places.size(); ++i) {
      if ((end != 0) != (rounding_places[i] == rounding_place::norm_too)) continue;
      const double step = kernel_step<Rule, F>(c, rounding_places[i], b);
      if (!std::isfinite(step)) {
        ++into[i].result.not_finite;
        continue;
      }
      const rational lambda = 1 - exact(step) * n;
      into[i].count(c, x, lambda, stability, unit_roundoff(F), smallest_subnormal(F));
    }
  }
}

/// Significand i of [1, 2).
template <format F>
double significand(std::uint64_t i) {
  return 1 + static_cast<double>(i) * 2 * unit_roundoff(F);
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

/// A job for each octave (one for all numbers) and one for the rule's limit.
template <format F>
constexpr int jobs_per_rule = (all_numbers<F> ? 1 : octaves<F>)+1;

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
    const std::uint64_t count = std::uint64_t{1} << (F.precision - 1);
    const double scale = detail::power_of_two(octave);
    if constexpr (all_significands<F>) {
      for (std::uint64_t i = 0; i < count; i += how.bf16_stride) {
        for (std::uint64_t j = 0; j < count; ++j) result.push_back({significand<F>(i), significand<F>(j) * scale});
      }
    } else {
      philox random(how.seed, 0x65696731'00000000U + static_cast<std::uint64_t>(F.precision * 4096 + octave + 1000));
      for (std::size_t i = 0; i < how.per_octave; ++i) {
        const double beta = significand<F>(random.below(count));
        result.push_back({beta, significand<F>(random.below(count)) * scale});
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
    const std::uint64_t count = std::uint64_t{1} << (F.precision - 1);
    philox random(how.seed, 0x65696732'00000000U + static_cast<std::uint64_t>(F.precision * 4096));
    for (std::size_t i = 0; i < how.per_octave; ++i) {
      const double n = significand<F>(random.below(count));
      double beta = round_to<F>(Rule::limit / n).value();
      for (int step = 0; step < 6; ++step) {
        result.push_back({beta, n});
        beta = round_to<F>(beta * (1 - 1.5 * unit_roundoff(F))).value();
      }
    }
  }
  return result;
}

/// The cases of one octave of x; beyond the last octave, those at the rule's limit.
template <class Rule, format F>
void run_job(int i, const sampling& how, tallies& into) {
  const auto cases = i < jobs_per_rule<F> - 1 ? pairs_of<F>(lowest_octave<F> + i, how) : pairs_at_limit<Rule, F>(how);
  for (const pair& c : cases) look_at<Rule, F>(c, into);
}

template <class Rule, format F>
tallies empty_tallies(const sampling& how) {
  tallies fresh;
  for (std::size_t i = 0; i < rounding_places.size(); ++i) {
    rule_result& r = fresh[i].result;
    r.rule = Rule::name;
    r.format_name = name_of(F);
    r.place = rounding_places[i];
    r.promises_decay = decays<Rule>;
    r.exhaustive = all_numbers<F> || (all_significands<F> && how.bf16_stride == 1);
  }
  return fresh;
}

}  // namespace

rule_survey survey_rules(const run_options& options, std::size_t samples_per_octave, std::size_t bf16_stride) {
  const sampling how{options.seed, samples_per_octave, bf16_stride};
  struct job {
    std::size_t total;
    int part;
    void (*run)(int, const sampling&, tallies&);
  };
  std::vector<job> jobs;
  std::vector<tallies> totals;
  rule_survey survey;
  for_each_rule([&](auto rule) {
    for_each_format([&](auto tag, std::size_t) {
      using Rule = std::remove_cvref_t<decltype(rule)>;
      using Tag = decltype(tag);
      for (int i = 0; i < jobs_per_rule<Tag::value>; ++i) jobs.push_back({totals.size(), i, &run_job<Rule, Tag::value>});
      totals.push_back(empty_tallies<Rule, Tag::value>(how));
    });
  });

  std::vector<tallies> parts(jobs.size());
  const std::size_t done = for_each_index(jobs.size(), options, "rules", [&](std::size_t i) {
    tallies& own = parts[i];
    own = totals[jobs[i].total];
    jobs[i].run(jobs[i].part, how, own);
  });
  for (std::size_t i = 0; i < done; ++i) {
    tallies& total = totals[jobs[i].total];
    for (std::size_t p = 0; p < rounding_places.size(); ++p) total[p].merge(parts[i][p]);
  }
  survey.complete = done == jobs.size();
  for (const tallies& total : totals) {
    for (const tally& t : total) {
      survey.results.push_back(t.result);
      survey.pairs += t.result.place == rounding_place::every_operation ? t.result.cases : 0;
      if (t.result.format_name != name_of(bf16)) continue;
      rule_envelope e{t.result.rule, t.result.place, {}, t.envelope};
      for (std::size_t i = 0; i < bins; ++i) {
        const double base = detail::power_of_two(first_octave + static_cast<int>(i / bins_per_octave));
        e.x.push_back(base * (1 + (static_cast<double>(i % bins_per_octave) + 0.5) / static_cast<double>(bins_per_octave)));
      }
      survey.envelopes.push_back(std::move(e));
    }
  }
  return survey;
}

std::optional<rational> realised_eigenvalue(std::string_view rule_name, std::string_view format_name, rounding_place place,
                                            double beta, double n, int end) {
  const format wanted = format_named(format_name);
  std::optional<rational> result;
  visit_rule(rule_name, [&](auto rule) {
    using Rule = decltype(rule);
    for_each_format([&](auto tag, std::size_t) {
      constexpr format F = decltype(tag)::value;
      if (F != wanted) return;
      const rational exact_beta = exact(beta);
      const rational norm = norm_behind<F>({beta, n, end});
      const truth<Rule> b = exact_step<Rule>(exact_beta, exact_beta * norm);
      const double step = kernel_step<Rule, F>({beta, n}, place, b);
      if (std::isfinite(step)) result = 1 - exact(step) * norm;
    });
  });
  return result;
}

}  // namespace deltaproof::detail::eigenvalues
