// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT

#include "oracle/solve/decided.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <string>

#include "deltaproof/number/rational.hpp"
#include "deltaproof/number/rounding.hpp"
#include "deltaproof/number/visit_format.hpp"
#include "deltaproof/oracle/certify.hpp"
#include "oracle/mpfr_value.hpp"
#include "oracle/tiers/integer_steps.hpp"

namespace deltaproof {
namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();

/// |x| > radius / 64, and not 0.
bool exceeds(mpfr_srcptr x, double radius) { return mpfr_zero_p(x) == 0 && std::fabs(mpfr_get_d(x, MPFR_RNDA)) > radius / 64; }

/// Nearest-even rounding to a format known at run time.
double round_nearest(const detail::unrounded& x, const format& to) {
  nearest_even mode;
  return visit_format(to, [&]<format F>() { return detail::round_unrounded<F>(x, mode); });
}

}  // namespace

void split(head_part& part, std::size_t i, mpfr_srcptr x, mpfr_ptr rest, double radius, std::size_t most) {
  part.value[i] = mpfr_get_d(x, MPFR_RNDN);
  for (auto& low : part.low) low[i] = 0;
  if (!std::isfinite(part.value[i])) {
    part.radius[i] = infinity;
    return;
  }
  mpfr_sub_d(rest, x, part.value[i], MPFR_RNDN);  // exact: the leading bits of x are gone
  for (std::size_t c = 0; c < most && exceeds(rest, radius); ++c) {
    const double low = mpfr_get_d(rest, MPFR_RNDN);
    if (low == 0) break;
    if (c == part.low.size()) part.low.emplace_back(part.value.size(), 0.0);
    part.low[c][i] = low;
    mpfr_sub_d(rest, rest, low, MPFR_RNDN);
  }
  const double left = std::fabs(mpfr_get_d(rest, MPFR_RNDA));
  part.radius[i] = left == 0 ? radius : detail::finite_or_infinite((radius + left) * detail::radius_slack);
}

double round_nearest(mpfr_srcptr x, const format& to) {
  if (mpfr_zero_p(x) != 0) return 0;
  tiers::integer m;
  const mpfr_exp_t exponent = mpfr_get_z_2exp(m.get(), x);
  detail::unrounded wide = detail::leading_bits(m.get());
  wide.exponent += static_cast<int>(std::clamp<mpfr_exp_t>(exponent, -1000000, 1000000));
  const double rounded = round_nearest(wide, to);
  return rounded == 0 ? 0.0 : rounded;
}

double keep_exact(mpfr_srcptr x, std::size_t i, rounded_part& to) {
  mpfr_value rest(mpfr_get_prec(x));
  mpfr_set(rest.get(), x, MPFR_RNDN);
  to.value[i] = round_nearest(rest.get(), fp64);
  const bool finite = std::isfinite(to.value[i]);
  if (finite) mpfr_sub_d(rest.get(), rest.get(), to.value[i], MPFR_RNDN);  // exact, as in split
  for (auto& low : to.low) {
    low[i] = finite ? round_nearest(rest.get(), fp64) : 0.0;
    if (finite) mpfr_sub_d(rest.get(), rest.get(), low[i], MPFR_RNDN);
  }
  return finite ? std::fabs(mpfr_get_d(rest.get(), MPFR_RNDA)) : infinity;
}

void keep_certain(mpfr_srcptr x, const wide_bound& radius, std::size_t i, const question& q, const format& to,
                  rounded_part& rounded, double& left) {
  if (!rounded.open(i) || !radius.finite() || !std::isfinite(mpfr_get_d(x, MPFR_RNDN))) return;
  mpfr_value off(53), below(mpfr_get_prec(x) + 64), above(mpfr_get_prec(x) + 64);
  mpfr_set_d(off.get(), radius.significand(), MPFR_RNDU);
  mpfr_mul_2si(off.get(), off.get(), static_cast<long>(radius.scale()), MPFR_RNDU);
  if (mpfr_number_p(off.get()) == 0) return;
  mpfr_sub(below.get(), x, off.get(), MPFR_RNDD);
  mpfr_add(above.get(), x, off.get(), MPFR_RNDU);
  for (std::size_t c = 0; c < std::max<std::size_t>(q.parts, 1); ++c) {
    const double part = round_nearest(below.get(), to);
    if (part != round_nearest(above.get(), to)) return;
    (c == 0 ? rounded.value : rounded.low[c - 1])[i] = part;
    if (!std::isfinite(part)) return;
    mpfr_sub_d(below.get(), below.get(), part, MPFR_RNDD);
    mpfr_sub_d(above.get(), above.get(), part, MPFR_RNDU);
  }
  const auto size = [](mpfr_srcptr end) { return std::fabs(mpfr_get_d(end, MPFR_RNDA)); };
  left = std::max(left, q.parts == 0 ? radius.above() : std::max(size(below.get()), size(above.get())));
}

std::optional<double> decided_rounding(const reference_tensor& t, std::size_t i, const format& to) {
  const double value = t.value[i], radius = t.radius[i];
  if (!std::isfinite(value) || !(radius < infinity)) return std::nullopt;
  if (const auto far = rounded_far_from_a_tie(t, i, to)) return far;
  // An end of the interval: the last component moved by the radius and then outward by one step of its own last place,
  // the others added with rounding to odd, so that nothing is lost to the one rounding at the end.
  const auto end = [&](double direction) {
    double sum = 0;
    bool moved = radius == 0;
    for (std::size_t c = t.low.size(); c-- > 0;) {
      if (!moved && t.low[c][i] == 0) continue;
      sum = moved ? detail::odd_sum(t.low[c][i], sum) : std::nextafter(t.low[c][i] + direction * radius, direction * infinity);
      moved = true;
    }
    if (!moved) sum = direction * std::nextafter(radius, infinity);
    return round_nearest(detail::wide_sum(value, sum), to);
  };
  const double below = end(-1), above = end(1);
  if (below != above) return std::nullopt;
  return below == 0 ? 0.0 : below;
}

double decided_parts(const reference_tensor& t, std::size_t i, std::span<double> parts) {
  std::fill(parts.begin(), parts.end(), std::numeric_limits<double>::quiet_NaN());
  const double radius = t.radius[i];
  if (!std::isfinite(t.value[i]) || !(radius < infinity)) return infinity;
  const auto component = [&](std::size_t c) { return c == 0 ? t.value[i] : c <= t.low.size() ? t.low[c - 1][i] : 0.0; };
  const std::size_t components = t.low.size() + 1;
  /// All that lies beyond the first c components, radius included.
  const auto beyond = [&](std::size_t c) {
    double sum = 0;
    for (std::size_t d = components; d-- > c;) sum += std::fabs(component(d));
    return sum == 0 ? radius : (sum + radius) * (1 + 0x1p-40);
  };
  // A component is a part where the rest stays below half a unit of its last place.
  std::size_t c = 0;
  for (; c < parts.size(); ++c) {
    constexpr std::uint64_t fraction = (std::uint64_t{1} << 52) - 1;
    const double head = component(c), rest = beyond(c + 1);
    const auto bits = std::bit_cast<std::uint64_t>(head);
    const bool exact = rest == 0;
    const double half = std::bit_cast<double>(bits & ~fraction & ~(std::uint64_t{1} << 63)) * 0x1p-53;
    if (!exact && !((bits & fraction) != 0 && std::fabs(head) > 0x1p-900 && rest < half)) break;
    parts[c] = head == 0 ? 0.0 : head;
  }
  if (c == parts.size()) return beyond(c);
  // Else both ends of what is left are followed exactly: every sum of doubles fits 2200 bits.
  const double width = beyond(c);
  if (radius > 0x1p-50 * width && radius > 0x1p-1070) return infinity;
  constexpr mpfr_prec_t whole = 2200;
  mpfr_value below(whole), above(whole);
  for (std::size_t d = components; d-- > c;) mpfr_add_d(below.get(), below.get(), component(d), MPFR_RNDN);
  mpfr_add_d(above.get(), below.get(), radius, MPFR_RNDN);
  mpfr_sub_d(below.get(), below.get(), radius, MPFR_RNDN);
  for (; c < parts.size(); ++c) {
    const double part = mpfr_get_d(below.get(), MPFR_RNDN);
    if (part != mpfr_get_d(above.get(), MPFR_RNDN) || std::isinf(part)) return infinity;
    parts[c] = part == 0 ? 0.0 : part;
    mpfr_sub_d(below.get(), below.get(), part, MPFR_RNDN);
    mpfr_sub_d(above.get(), above.get(), part, MPFR_RNDN);
  }
  return std::max(std::fabs(mpfr_get_d(below.get(), MPFR_RNDA)), std::fabs(mpfr_get_d(above.get(), MPFR_RNDA)));
}

}  // namespace deltaproof

// Theorems behind this file, by their names in proofs/README.md.
// proved: float.tier_run.rounding_decided
