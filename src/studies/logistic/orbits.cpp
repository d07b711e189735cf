// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT

#include "studies/logistic/orbits.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "deltaproof/number/elementary.hpp"
#include "deltaproof/number/random.hpp"
#include "deltaproof/number/real.hpp"
#include "deltaproof/rule/rules.hpp"
#include "studies/shared/formats.hpp"
#include "studies/shared/functions.hpp"

namespace deltaproof::detail::logistic {
namespace {

using shared::from_ordinal;
using shared::ordinal;
using shared::with_format;
using truth = real<2200>;

enum stream : std::uint64_t { of_exponent = 0x6c6f676900000000U, of_starts = 0x6c6f676a00000000U };

template <class S>
S mapped(const S& r, const S& x) {
  const S rest = one<S>() - x;
  const S product = x * rest;
  return r * product;
}

struct running {
  double sum = 0;
  double squares = 0;
  std::size_t n = 0;
  void add(double x) {
    sum += x;
    squares += x * x;
    ++n;
  }
  [[nodiscard]] estimate result() const {
    if (n == 0) return {std::numeric_limits<double>::quiet_NaN(), 0, 0};
    const auto count = static_cast<double>(n);
    const double mean = sum / count;
    return {mean, n > 1 ? std::sqrt(std::max(0.0, squares / count - mean * mean) * count / (count - 1)) : 0, n};
  }
};

void require_parameter(double r, format f) {
  bool known = r > 0 && r <= 4;
  with_format(deltaproof::name_of(f), [&](auto tag) { known = known && round_to<decltype(tag)::value>(r).value() == r; });
  if (!known)
    throw domain_error("r = " + std::to_string(r) + " is not a number of " + std::string(deltaproof::name_of(f)) +
                       " in (0, 4]; round it first");
}

/// Values of the true orbit in double, and the orbit itself in other scalars beside it.
template <class S>
std::size_t first_far(const std::vector<double>& true_orbit, double r, double start) {
  const S parameter = lift<S>(r);
  S x = lift<S>(start);
  for (std::size_t t = 0; t < true_orbit.size(); ++t) {
    x = mapped(parameter, x);
    if (std::fabs(round_to<double>(x) - true_orbit[t]) > far) return t + 1;
  }
  return 0;
}
template <format F>
std::size_t first_far_in(const std::vector<double>& true_orbit, double r, double start) {
  const auto parameter = rounded<F>::from_exact(r);
  auto x = rounded<F>::from_exact(start);
  for (std::size_t t = 0; t < true_orbit.size(); ++t) {
    x = mapped(parameter, x);
    if (std::fabs(x.value() - true_orbit[t]) > far) return t + 1;
  }
  return 0;
}

template <format F>
cycle_census census_in(double r_value) {
  const auto r = rounded<F>::from_exact(r_value);
  const auto count = static_cast<std::size_t>(ordinal<F>(1)) + 1;
  std::vector<std::uint32_t> next(count);
  for (std::size_t i = 0; i < count; ++i) {
    const auto x = rounded<F>::from_exact(from_ordinal<F>(static_cast<std::int64_t>(i)));
    next[i] = static_cast<std::uint32_t>(ordinal<F>(mapped(r, x).value()));
  }
  constexpr std::uint32_t unknown = 0xffffffffU;
  std::vector<std::uint32_t> cycle_of(count, unknown);
  std::vector<std::uint32_t> distance(count, 0);
  std::vector<std::uint32_t> seen_in(count, unknown);
  std::vector<std::size_t> lengths;
  std::vector<std::size_t> basin;
  std::vector<std::uint32_t> path;
  cycle_census result;
  result.r = r_value;
  result.starts = count;
  std::size_t zero_cycle = count;
  for (std::uint32_t start = 0; start < count; ++start) {
    path.clear();
    std::uint32_t at = start;
    while (cycle_of[at] == unknown && seen_in[at] != start) {
      seen_in[at] = start;
      path.push_back(at);
      at = next[at];
    }
    if (cycle_of[at] == unknown) {
      // A new cycle, through `at`.
      const auto id = static_cast<std::uint32_t>(lengths.size());
      std::size_t length = 0;
      std::uint32_t on = at;
      do {
        cycle_of[on] = id;
        distance[on] = 0;
        result.on_cycles.push_back(from_ordinal<F>(on));
        if (on == 0) zero_cycle = id;
        on = next[on];
        ++length;
      } while (on != at);
      lengths.push_back(length);
      basin.push_back(0);
    }
    for (std::size_t i = path.size(); i-- > 0;) {
      const std::uint32_t node = path[i];
      if (cycle_of[node] != unknown) continue;
      cycle_of[node] = cycle_of[next[node]];
      distance[node] = distance[next[node]] + 1;
    }
  }
  double sum = 0;
  for (std::size_t i = 0; i < count; ++i) {
    ++basin[cycle_of[i]];
    sum += distance[i];
    result.longest_transient = std::max<std::size_t>(result.longest_transient, distance[i]);
  }
  result.cycles = lengths.size();
  result.longest_cycle = *std::max_element(lengths.begin(), lengths.end());
  result.mean_transient = sum / static_cast<double>(count);
  result.ends_at_zero = zero_cycle < count ? basin[zero_cycle] : 0;
  const auto largest = static_cast<std::size_t>(std::max_element(basin.begin(), basin.end()) - basin.begin());
  result.largest_basin_cycle = lengths[largest];
  result.largest_basin = static_cast<double>(basin[largest]) / static_cast<double>(count);
  std::sort(result.on_cycles.begin(), result.on_cycles.end());
  return result;
}

/// x/(e^(-ah) + b h phi(ah) x).
template <format F>
rounded<F> safe_flow(rounded<F> a, rounded<F> b, rounded<F> h, rounded<F> x) {
  const rounded<F> length = a * h;
  return x / (exp(-length) + b * h * exact_flow::gain(length) * x);
}

/// a = b = 1: x E/(1 + x (E - 1)).
template <format F>
rounded<F> naive_flow(rounded<F> h, rounded<F> x) {
  const rounded<F> unit(1);
  const rounded<F> growth = exp(h);
  return x * growth / (unit + x * (growth - unit));
}

/// The least number h of the format, between 1 and 2^10, at which the naive form is not finite.
template <format F>
double naive_fails_from(double x) {
  using scalar = rounded<F>;
  double low = 1;
  double high = 1024;
  for (;;) {
    const double middle = round_to<scalar>(low + (high - low) / 2).value();
    if (middle <= low || middle >= high) return high;
    (isfinite(naive_flow<F>(scalar::from_exact(middle), scalar::from_exact(x))) ? low : high) = middle;
  }
}

template <format F>
flow_census flow_in() {
  using scalar = rounded<F>;
  using wide = real<256>;
  flow_census result;
  result.format_name = std::string(deltaproof::name_of(F));
  result.naive_fails_from = naive_fails_from<F>(8);
  result.naive_fails_from_one = naive_fails_from<F>(1);
  const scalar unit(1);
  for (int eighth = -96; eighth <= 80; ++eighth) {
    const double exact_h = round_to<double>(wide(pow(wide(2), wide(eighth) / 8)));
    const scalar h = round_to<F>(exact_h);
    const wide true_decay = exp(wide(-lift<wide>(h)));
    const wide true_growth = -expm1(wide(-lift<wide>(h)));
    double before = -1;
    for (int octave = -12; octave <= 3; ++octave) {
      for (int part = 0; part < 8; ++part) {
        if (octave == 3 && part > 0) break;
        const scalar x = scalar::from_exact(detail::power_of_two(octave) * (1 + part / 8.0));
        // a = b = 1: x E/(1 + x (E - 1)), and x/(e^-h + h phi(h) x).
        const scalar naive = naive_flow<F>(h, x);
        const scalar safe = safe_flow(unit, unit, h, x);
        const wide exact_x = lift<wide>(x);
        const wide value = exact_x / (true_decay + true_growth * exact_x);
        ++result.cases;
        const auto error = [&](scalar computed) { return round_to<double>(wide(abs(wide(lift<wide>(computed) / value - 1)))); };
        if (isfinite(naive)) {
          result.naive_worst = std::max(result.naive_worst, error(naive));
        } else {
          ++result.naive_not_finite;
        }
        if (isfinite(safe)) {
          result.safe_worst = std::max(result.safe_worst, error(safe));
        } else {
          ++result.safe_not_finite;
        }
        if (safe.value() < before) ++result.safe_decreases;
        before = safe.value();
      }
    }
  }
  for (int part = 0; part < 8; ++part) {
    const scalar x = scalar::from_exact(1 + part / 8.0);
    const scalar b = scalar::from_exact(1.5);
    const scalar h = scalar::from_exact(0.25);
    result.holds_at_zero = result.holds_at_zero && safe_flow(scalar(0), b, h, x) == x / (unit + b * h * x);
  }
  return result;
}

}  // namespace

double estimate::standard_error() const { return n > 0 ? deviation / std::sqrt(static_cast<double>(n)) : 0; }

estimate lyapunov(double r, std::size_t steps, std::size_t streams, std::uint64_t seed) {
  running all;
  for (std::size_t i = 0; i < streams; ++i) {
    philox random(seed, of_exponent + i);
    double x = 0.1 + 0.8 * random.uniform();
    double product = 1;
    long long exponent = 0;
    for (std::size_t t = 0; t < 1000 + steps; ++t) {
      if (t >= 1000) {
        product *= r * (1 - 2 * x);
        int e = 0;
        product = std::frexp(product, &e);
        exponent += e;
      }
      x = mapped(r, x);
    }
    all.add((shared::ln(std::fabs(product)) + static_cast<double>(exponent) * shared::ln(2)) / static_cast<double>(steps));
  }
  return all.result();
}

std::vector<runner> runners() {
  return {{"bf16", bf16.precision},
          {"fp16", fp16.precision},
          {"fp32", fp32.precision},
          {"fp64", fp64.precision},
          {scalar_name<real<100>>(), precision_bits<real<100>>},
          {scalar_name<real<160>>(), precision_bits<real<160>>}};
}

std::vector<race> decorrelation(double r, std::size_t starts, std::size_t steps, std::uint64_t seed) {
  require_parameter(r, bf16);
  const std::vector<runner> all = runners();
  std::vector<running> sums(all.size());
  std::vector<race> result(all.size());
  for (std::size_t i = 0; i < all.size(); ++i) {
    result[i].r = r;
    result[i].format_name = all[i].name;
    result[i].precision = all[i].precision;
    result[i].smallest = std::numeric_limits<double>::infinity();
  }
  philox random(seed, of_starts);
  std::vector<double> orbit(steps);
  for (std::size_t s = 0; s < starts; ++s) {
    const double start = round_to<bf16>(0.125 + 0.75 * random.uniform()).value();
    const truth parameter = lift<truth>(r);
    truth x = lift<truth>(start);
    for (double& value : orbit) {
      x = mapped(parameter, x);
      value = round_to<double>(x);
    }
    const std::array<std::size_t, 6> first{first_far_in<bf16>(orbit, r, start),   first_far_in<fp16>(orbit, r, start),
                                           first_far_in<fp32>(orbit, r, start),   first_far_in<fp64>(orbit, r, start),
                                           first_far<real<100>>(orbit, r, start), first_far<real<160>>(orbit, r, start)};
    for (std::size_t i = 0; i < all.size(); ++i) {
      if (first[i] == 0) {
        ++result[i].never;
        continue;
      }
      const auto t = static_cast<double>(first[i]);
      sums[i].add(t);
      result[i].smallest = std::min(result[i].smallest, t);
      result[i].largest = std::max(result[i].largest, t);
    }
  }
  for (std::size_t i = 0; i < all.size(); ++i) result[i].steps = sums[i].result();
  return result;
}

line fit(const std::vector<double>& x, const std::vector<double>& y) {
  double mean_x = 0;
  double mean_y = 0;
  const auto n = static_cast<double>(x.size());
  for (std::size_t i = 0; i < x.size(); ++i) {
    mean_x += x[i] / n;
    mean_y += y[i] / n;
  }
  double xx = 0;
  double xy = 0;
  for (std::size_t i = 0; i < x.size(); ++i) {
    xx += (x[i] - mean_x) * (x[i] - mean_x);
    xy += (x[i] - mean_x) * (y[i] - mean_y);
  }
  const double slope = xy / xx;
  return {slope, mean_y - slope * mean_x};
}

cycle_census census(std::string_view format_name, double r) {
  if (format_name != "bf16" && format_name != "fp16")
    throw format_error("census: all numbers of bf16 or fp16; got '" + std::string(format_name) + "'");
  require_parameter(r, format_named(format_name));
  return format_name == "bf16" ? census_in<bf16>(r) : census_in<fp16>(r);
}

std::vector<double> bf16_parameters() {
  std::vector<double> result;
  for (std::int64_t i = ordinal<bf16>(1); i <= ordinal<bf16>(4); ++i) result.push_back(from_ordinal<bf16>(i));
  return result;
}

flow_census survey_flow(std::string_view format_name) {
  flow_census result;
  with_format(format_name, [&](auto tag) { result = flow_in<decltype(tag)::value>(); });
  return result;
}

}  // namespace deltaproof::detail::logistic
