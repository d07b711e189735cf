// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT

#include "studies/discretisation/orders.hpp"

#include <cmath>
#include <limits>

#include "deltaproof/number/real.hpp"
#include "deltaproof/rule/rules.hpp"
#include "deltaproof/scan/recurrent.hpp"
#include "studies/shared/exponential.hpp"
#include "studies/shared/keys.hpp"

namespace deltaproof::detail::discretisation {
namespace {

using wide = real<256>;
constexpr std::size_t tokens = 64;

/// The exact state at time 1 under the key (cos t, sin t) and the value 1, from 0. In the frame that turns with the key,
/// z = (S k, S k'), k' the derivative of k: z' = M z + (1, 0), M = (-1 1; -1 0), so z(1) = phi_1(M) (1, 0).
std::array<wide, 2> turned_exactly() {
  matrix<wide> m(2, 2);
  m(0, 0) = -1;
  m(0, 1) = 1;
  m(1, 0) = -1;
  const auto e = shared::exponentials_of(m);
  const wide c = cos(wide(1));
  const wide s = sin(wide(1));
  const wide along = e.phi(0, 0);
  const wide across = e.phi(1, 0);
  return {wide(along * c - across * s), wide(along * s + across * c)};
}

template <class Rule>
wide turning_error(std::size_t steps, const wide& place) {
  const wide h = wide(1) / static_cast<unsigned>(steps);
  const wide b = effective_step(Rule{}, h, wide(1));
  recurrence<wide> machine(2, 1);
  const std::array<wide, 1> value{wide(1)};
  for (std::size_t i = 0; i < steps; ++i) {
    const wide t = (wide(static_cast<unsigned>(i)) + place) * h;
    const std::array<wide, 2> key{wide(cos(t)), wide(sin(t))};
    machine.step(key, value, b);
  }
  static const std::array<wide, 2> truth = turned_exactly();
  const wide dx = machine.state()(0, 0) - truth[0];
  const wide dy = machine.state()(1, 0) - truth[1];
  return sqrt(wide(dx * dx + dy * dy));
}

template <class Rule>
wide error_at(sense which, std::size_t steps) {
  const wide x = wide(1) / static_cast<unsigned>(steps);
  const wide decay = exp(wide(-x));
  const wide r = Rule::stability(x);
  switch (which) {
    case sense::eigenvalue:
      return abs(wide(r - decay));
    case sense::gain:
      return abs(wide(Rule::gain(x) / exact_flow::gain(x) - 1));
    case sense::horizon:
      return abs(wide(pow(r, static_cast<unsigned>(steps)) - exp(wide(-1))));
    case sense::horizon_relative:
      return abs(wide(pow(r, static_cast<unsigned>(steps)) / exp(wide(-1)) - 1));
    case sense::tokens:
      return abs(wide(pow(r, static_cast<unsigned>(tokens)) - pow(decay, static_cast<unsigned>(tokens))));
    case sense::turning:
      return turning_error<Rule>(steps, wide(1));
    case sense::turning_middle:
      return turning_error<Rule>(steps, wide(1) / 2);
  }
  return 0;
}

wide error_wide(std::string_view rule, sense which, std::size_t steps) {
  wide result = 0;
  visit_rule(rule, [&](auto r) { result = error_at<decltype(r)>(which, steps); });
  return result;
}

}  // namespace

std::string_view name_of(sense which) {
  switch (which) {
    case sense::eigenvalue:
      return "eigenvalue, one step";
    case sense::gain:
      return "what a step writes, relative";
    case sense::horizon:
      return "fixed time, absolute";
    case sense::horizon_relative:
      return "fixed time, relative";
    case sense::tokens:
      return "fixed number of tokens";
    case sense::turning:
      return "key turns, frozen at the end";
    case sense::turning_middle:
      return "key turns, frozen in the middle";
  }
  return "";
}

double error_of(std::string_view rule, sense which, std::size_t steps) {
  return round_to<double>(error_wide(rule, which, steps));
}

double measured_order(std::string_view rule, sense which, std::size_t steps) {
  const wide coarse = error_wide(rule, which, steps);
  const wide fine = error_wide(rule, which, 2 * steps);
  // Below this an error is that of 256 bits.
  if (coarse < ldexp(wide(1), -200) || fine < ldexp(wide(1), -200)) return std::numeric_limits<double>::quiet_NaN();
  return round_to<double>(wide(log2(wide(coarse / fine))));
}

comparison compare(std::string_view rule, double x) {
  comparison result;
  visit_rule(rule, [&](auto r) {
    const wide at = lift<wide>(x);
    const wide decay = exp(wide(-at));
    const wide value = r.stability(at);
    result.stability = round_to<double>(value);
    result.absolute = round_to<double>(wide(abs(wide(value - decay))));
    result.relative = round_to<double>(wide(abs(wide(value / decay - 1))));
    result.gain = round_to<double>(wide(r.gain(at) / exact_flow::gain(at) - 1));
  });
  return result;
}

}  // namespace deltaproof::detail::discretisation
