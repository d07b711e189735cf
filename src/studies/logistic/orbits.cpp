// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT

#include "studies/logistic/orbits.hpp"

#include "deltaproof/number/elementary.hpp"
#include "deltaproof/number/real.hpp"
#include "deltaproof/rule/rules.hpp"
#include "studies/logistic/maps.hpp"
#include "studies/shared/formats.hpp"

namespace deltaproof::detail::logistic {
namespace {

using shared::from_ordinal;
using shared::ordinal;

template <class S>
S mapped(const S& r, const S& x) {
  const S rest = one<S>() - x;
  const S product = x * rest;
  return r * product;
}

void require_parameter(double r, format f) {
  if (!(r > 0 && r <= 4 && round_nearest(r, f) == r))
    throw domain_error("r = " + std::to_string(r) + " is not a number of " + std::string(deltaproof::name_of(f)) +
                       " in (0, 4]; round it first");
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
  std::vector<std::uint32_t> cycle_of(count, unknown), distance(count, 0), seen_in(count, unknown), path;
  cycle_census result;
  result.starts = count;
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
      const auto id = static_cast<std::uint32_t>(result.cycles++);
      std::size_t length = 0;
      std::uint32_t on = at;
      do {
        cycle_of[on] = id;
        distance[on] = 0;
        result.on_cycles.push_back(from_ordinal<F>(on));
        on = next[on];
        ++length;
      } while (on != at);
      result.longest_cycle = std::max(result.longest_cycle, length);
    }
    for (std::size_t i = path.size(); i-- > 0;) {
      const std::uint32_t node = path[i];
      if (cycle_of[node] != unknown) continue;
      cycle_of[node] = cycle_of[next[node]];
      distance[node] = distance[next[node]] + 1;
    }
  }
  result.longest_transient = *std::max_element(distance.begin(), distance.end());
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
  const scalar at = scalar::from_exact(x);
  return shared::after<F>(
      shared::last_with<F>(1, 1024, [&](double h) { return isfinite(naive_flow<F>(scalar::from_exact(h), at)); }));
}

template <format F>
frame_row flow_in() {
  using scalar = rounded<F>;
  using wide = real<256>;
  std::uint64_t cases = 0, naive_not_finite = 0, safe_not_finite = 0, decreases = 0;
  double naive_worst = 0, safe_worst = 0;
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
        const scalar naive = naive_flow<F>(h, x);
        const scalar safe = safe_flow(unit, unit, h, x);
        const wide exact_x = lift<wide>(x);
        const wide value = exact_x / (true_decay + true_growth * exact_x);
        ++cases;
        const auto look = [&](scalar computed, std::uint64_t& not_finite, double& worst_error) {
          if (!isfinite(computed)) return void(++not_finite);
          worst_error = std::max(worst_error, round_to<double>(wide(abs(wide(lift<wide>(computed) / value - 1)))));
        };
        look(naive, naive_not_finite, naive_worst);
        look(safe, safe_not_finite, safe_worst);
        if (safe.value() < before) ++decreases;
        before = safe.value();
      }
    }
  }
  const double u = unit_roundoff(F);
  frame_row row{cases, naive_not_finite, naive_fails_from<F>(large_x), naive_fails_from<F>(1), naive_worst / u};
  row.insert(row.end(), {safe_not_finite, safe_worst / u, decreases});
  return row;
}

}  // namespace

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

frame survey_flow(const run_options& options) {
  return grid(
      options, "exact map",
      {"cases", "first_not_finite", "from", "from_one", "first_worst", "second_not_finite", "second_worst", "out_of_order"},
      [](const format& f) { return shared::with_studied_format(f, []<format F>() { return flow_in<F>(); }); },
      grid_axis<format>{"format", {bf16, fp16, fp32, fp64}});
}

}  // namespace deltaproof::detail::logistic
