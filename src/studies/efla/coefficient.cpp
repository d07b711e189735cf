// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT

#include "studies/efla/coefficient.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <unordered_map>

#include "deltaproof/number/elementary.hpp"
#include "deltaproof/number/random.hpp"
#include "deltaproof/number/real.hpp"
#include "deltaproof/rule/rules.hpp"
#include "studies/shared/formats.hpp"

namespace deltaproof::detail::efla {
namespace {

using shared::from_ordinal;
using shared::ordinal;
using shared::with_format;
// Has at least twice the bits of fp64, and what cancels in 1 - e^-x at 1e-12 besides.
using wide = real<192>;

/// e^-x and e^-x - 1 of a format, remembered: a format of 16 bits asks for few different ones, often.
template <format F>
class functions {
 public:
  struct pair {
    rounded<F> exp;
    rounded<F> expm1;
  };
  pair operator()(rounded<F> x) {
    if constexpr (F.storage_bits > 16) {
      return {exp(-x), deltaproof::expm1(-x)};
    } else {
      const auto [at, is_new] = known_.try_emplace(static_cast<std::uint64_t>(x.bits()));
      if (is_new) at->second = {exp(-x), deltaproof::expm1(-x)};
      return at->second;
    }
  }

 private:
  std::unordered_map<std::uint64_t, pair> known_;
};

template <format F>
rounded<F> formed(form how, rounded<F> beta, rounded<F> n, rounded<F> x, const typename functions<F>::pair& at_x) {
  switch (how) {
    case form::naive:
      return (rounded<F>(1) - at_x.exp) / n;
    case form::expm1:
      return -at_x.expm1 / n;
    case form::library:
      return x.value() == 0 ? beta : beta * (at_x.expm1 / -x);
  }
  return beta;
}

double power_of_ten(std::size_t exponent_plus_12) {
  constexpr std::array<double, 16> powers{1e-12, 1e-11, 1e-10, 1e-9, 1e-8, 1e-7, 1e-6, 1e-5,
                                          1e-4,  1e-3,  1e-2,  1e-1, 1,    1e1,  1e2,  1e3};
  return powers[exponent_plus_12];
}

std::size_t decade_of(double x) {
  std::size_t d = 0;
  while (d + 1 < decades && x >= power_of_ten(d + 1)) ++d;
  return d;
}

std::size_t bin_of(double x) {
  const std::size_t d = decade_of(x);
  // 10^(1/4), 10^(1/2), 10^(3/4)
  constexpr std::array<double, 3> steps{1.7782794100389228, 3.1622776601683795, 5.6234132519034912};
  std::size_t part = 0;
  while (part < 3 && x >= power_of_ten(d) * steps[part]) ++part;
  return d * bins_per_decade + part;
}

template <format F>
std::vector<double> arguments(const run_options& options, const settings& size) {
  std::vector<double> result;
  const std::int64_t first = ordinal<F>(round_to<F>(smallest_x).value());
  const std::int64_t last = ordinal<F>(round_to<F>(largest_x).value());
  if constexpr (F.storage_bits <= 16) {
    for (std::int64_t i = std::max<std::int64_t>(first, 1); i <= last; ++i) {
      const double x = from_ordinal<F>(i);
      if (x >= smallest_x && x <= largest_x) result.push_back(x);
    }
  } else {
    const std::uint64_t count = std::uint64_t{1} << (F.precision - 1);
    for (int octave = -40; octave <= 9; ++octave) {
      philox random(options.seed, 0x65666c6100000000U + static_cast<std::uint64_t>(F.precision * 256 + octave + 64));
      const double base = detail::power_of_two(octave);
      for (std::size_t i = 0; i < size.per_octave; ++i) {
        const double x = base * (1 + static_cast<double>(random.below(count)) * 2 * unit_roundoff(F));
        if (x >= smallest_x && x <= largest_x) result.push_back(x);
      }
    }
    // The edge of the dead zone, where chance would not land.
    for (const double factor : {1.0, 1 + 2 * unit_roundoff(F), 1.5, 3.0})
      if (const double x = factor * unit_roundoff(F) / 2; x >= smallest_x) result.push_back(x);
  }
  return result;
}

template <format F>
std::array<error_result, forms.size()> errors_of(const run_options& options, const settings& size) {
  std::array<error_result, forms.size()> results;
  for (std::size_t i = 0; i < forms.size(); ++i) {
    results[i].format_name = std::string(name_of(F));
    results[i].how = forms[i];
    results[i].exhaustive = F.storage_bits <= 16;
    results[i].envelope.fill(std::numeric_limits<double>::quiet_NaN());
  }
  functions<F> at;
  const auto one = rounded<F>(1);
  for (const double x : arguments<F>(options, size)) {
    const auto argument = rounded<F>::from_exact(x);
    const auto values = at(argument);
    const wide truth = -expm1(wide(-lift<wide>(x)));
    const std::size_t d = decade_of(x);
    const std::size_t bin = bin_of(x);
    for (std::size_t i = 0; i < forms.size(); ++i) {
      error_result& r = results[i];
      const double c = formed<F>(forms[i], argument, one, argument, values).value();
      const double error = round_to<double>(wide(abs(wide(lift<wide>(c) / truth - 1))));
      ++r.cases;
      ++r.looked_at[d];
      r.zeros[d] += c == 0 ? 1 : 0;
      r.worst[d] = std::max(r.worst[d], error);
      r.envelope[bin] = std::isnan(r.envelope[bin]) ? error : std::max(r.envelope[bin], error);
      if (error > r.worst_error) {
        r.worst_error = error;
        r.worst_at = x;
      }
    }
  }
  for (error_result& r : results) r.worst_in_u = r.worst_error / unit_roundoff(F);
  return results;
}

/// The smallest positive number of the format for which `holds`, which is monotone.
template <format F, class Predicate>
double first_number(const Predicate& holds) {
  std::int64_t low = 0;
  std::int64_t high = ordinal<F>(largest(F));
  while (high - low > 1) {
    const std::int64_t middle = low + (high - low) / 2;
    (holds(rounded<F>::from_exact(from_ordinal<F>(middle))) ? high : low) = middle;
  }
  return from_ordinal<F>(high);
}

template <format F>
dead_zone zone_of() {
  dead_zone z;
  z.format_name = std::string(name_of(F));
  const auto naive = [](rounded<F> x) { return rounded<F>(1) - exp(-x); };
  z.first_alive = first_number<F>([&](rounded<F> x) { return naive(x).value() > 0; });
  z.last_zero = from_ordinal<F>(ordinal<F>(z.first_alive) - 1);
  z.value_there = naive(rounded<F>::from_exact(z.first_alive)).value();
  const wide truth = -expm1(wide(-lift<wide>(z.first_alive)));
  z.error_there = round_to<double>(wide(abs(wide(lift<wide>(z.value_there) / truth - 1))));
  z.saturates_from = first_number<F>([&](rounded<F> x) { return naive(x).value() == 1; });
  return z;
}

template <format F>
struct octave_job {
  std::array<eigenvalue_result, forms.size()> results;

  void look_at(functions<F>& at, double beta_value, double n_value) {
    const auto beta = rounded<F>::from_exact(beta_value);
    const auto n = rounded<F>::from_exact(n_value);
    const auto x = beta * n;
    const auto values = at(x);
    for (std::size_t i = 0; i < forms.size(); ++i) {
      eigenvalue_result& r = results[i];
      const double b = formed<F>(forms[i], beta, n, x, values).value();
      ++r.cases;
      // Exact in sign; for significands of at most 26 bits, or near 0, exact.
      const double lambda = std::fma(-b, n_value, 1.0);
      const double exact_x = beta_value * n_value;
      if (b == 0) {
        ++r.exactly_one;
        r.largest_dead_x = std::max(r.largest_dead_x, exact_x);
      }
      if (lambda == 0) ++r.exactly_zero;
      if (lambda < 0) {
        ++r.negative;
        r.lowest_in_u = std::max(r.lowest_in_u, -lambda / unit_roundoff(F));
      }
      if (b < 0) ++r.above_one;
      if (lambda <= 0 && (r.smallest_full_x == 0 || exact_x < r.smallest_full_x)) r.smallest_full_x = exact_x;
    }
  }
};

template <format F>
std::array<eigenvalue_result, forms.size()> eigenvalues_of(int octave, const run_options& options, const settings& size) {
  octave_job<F> job;
  functions<F> at;
  const std::uint64_t count = std::uint64_t{1} << (F.precision - 1);
  const double scale = detail::power_of_two(octave);
  const auto significand = [](std::uint64_t i) { return 1 + static_cast<double>(i) * 2 * unit_roundoff(F); };
  if (scale < smallest_normal(F)) return job.results;
  if constexpr (F.storage_bits <= 16) {
    const std::size_t stride = F == bf16 ? size.bf16_stride : size.fp16_stride;
    for (std::uint64_t i = 0; i < count; i += stride) {
      for (std::uint64_t j = 0; j < count; ++j) job.look_at(at, significand(i), significand(j) * scale);
    }
  } else {
    philox random(options.seed, 0x65666c6200000000U + static_cast<std::uint64_t>(F.precision * 256 + octave + 64));
    for (std::size_t i = 0; i < size.pairs; ++i) {
      const double beta = significand(random.below(count));
      job.look_at(at, beta, significand(random.below(count)) * scale);
    }
  }
  return job.results;
}

void merge(eigenvalue_result& total, const eigenvalue_result& part) {
  total.cases += part.cases;
  total.exactly_one += part.exactly_one;
  total.exactly_zero += part.exactly_zero;
  total.negative += part.negative;
  total.above_one += part.above_one;
  total.largest_dead_x = std::max(total.largest_dead_x, part.largest_dead_x);
  if (part.smallest_full_x > 0 && (total.smallest_full_x == 0 || part.smallest_full_x < total.smallest_full_x))
    total.smallest_full_x = part.smallest_full_x;
  total.lowest_in_u = std::max(total.lowest_in_u, part.lowest_in_u);
}

}  // namespace

std::string_view name_of(form how) {
  switch (how) {
    case form::naive:
      return "(1 − exp(−x))/n";
    case form::expm1:
      return "−expm1(−x)/n";
    case form::library:
      return "β·expm1(−x)/(−x)";
  }
  return "";
}

double coefficient(std::string_view format_name, form how, double beta, double n) {
  double result = 0;
  with_format(format_name, [&](auto tag) {
    constexpr format F = decltype(tag)::value;
    const auto b = rounded<F>::from_exact(beta);
    const auto norm = rounded<F>::from_exact(n);
    const auto x = b * norm;
    functions<F> at;
    result = formed<F>(how, b, norm, x, at(x)).value();
  });
  return result;
}

error_survey survey_errors(const run_options& options, const settings& size) {
  error_survey survey;
  std::array<std::array<error_result, forms.size()>, format_names.size()> parts;
  survey.zones.resize(format_names.size());
  const std::size_t done = for_each_index(format_names.size(), options, "coefficients", [&](std::size_t i) {
    with_format(format_names[i], [&](auto tag) {
      constexpr format F = decltype(tag)::value;
      parts[i] = errors_of<F>(options, size);
      survey.zones[i] = zone_of<F>();
    });
  });
  survey.complete = done == format_names.size();
  for (const auto& part : parts) survey.results.insert(survey.results.end(), part.begin(), part.end());
  return survey;
}

eigenvalue_survey survey_eigenvalues(const run_options& options, const settings& size) {
  constexpr auto octaves = static_cast<std::size_t>(highest_octave - lowest_octave + 1);
  std::vector<std::array<eigenvalue_result, forms.size()>> parts(octaves * format_names.size());
  const std::size_t done = for_each_index(parts.size(), options, "eigenvalues", [&](std::size_t i) {
    with_format(format_names[i / octaves], [&](auto tag) {
      parts[i] = eigenvalues_of<decltype(tag)::value>(lowest_octave + static_cast<int>(i % octaves), options, size);
    });
  });
  eigenvalue_survey survey;
  survey.complete = done == parts.size();
  for (std::size_t f = 0; f < format_names.size(); ++f) {
    for (std::size_t j = 0; j < forms.size(); ++j) {
      eigenvalue_result total;
      total.format_name = std::string(format_names[f]);
      total.how = forms[j];
      total.exhaustive =
          (format_names[f] == "bf16" && size.bf16_stride == 1) || (format_names[f] == "fp16" && size.fp16_stride == 1);
      for (std::size_t o = 0; o < octaves; ++o) merge(total, parts[f * octaves + o][j]);
      survey.results.push_back(std::move(total));
    }
  }
  return survey;
}

}  // namespace deltaproof::detail::efla
