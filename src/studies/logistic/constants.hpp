// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
//
// The constants of period doubling over MPFR: Feigenbaum's delta and alpha from the functional equation, the accumulation
// point of the logistic map from that and, independently, from superstable orbits, and parameters at which an orbit of a
// given period has a given multiplier. Each comes twice, from two truncations; what they agree on are its digits.
#pragma once

#include "deltaproof/number/real.hpp"
#include "studies/shared/common.hpp"

namespace deltaproof::detail::logistic {

/// Decimal digits, without those that two computations do not share, and their count.
struct agreed {
  std::string text;
  int digits = 0;  ///< significant
};

/// The leading decimal digits that a and b, of size 1 or more, have in common, the last of them left out.
template <class R>
[[nodiscard]] agreed agreement(const R& a, const R& b) {
  constexpr int kept = std::numeric_limits<R>::digits10 - 3;
  const std::string first = a.str(kept, std::ios_base::fmtflags(0));
  const std::string second = b.str(kept, std::ios_base::fmtflags(0));
  std::size_t common = 0;
  while (common < first.size() && common < second.size() && first[common] == second[common]) ++common;
  agreed result{first.substr(0, common > 0 ? common - 1 : 0), 0};
  if (!result.text.empty() && result.text.back() == '.') result.text.pop_back();
  result.digits =
      static_cast<int>(std::count_if(result.text.begin(), result.text.end(), [](char c) { return c >= '0' && c <= '9'; }));
  return result;
}

/// Feigenbaum's functional equation g(x) = g(g(a x))/a, a = g(1), g(0) = 1, for even g, by Newton's method at `terms`
/// Chebyshev points in x^2: g = 1 + c_1 x^2 + ... + c_n x^(2n).
/// alpha = -1/a; delta is the largest eigenvalue of the derivative at g. r_infinity: the parameter at which period
/// doubling applied to the logistic family `doublings` times stays on the side from which it tends to g, by secants.
struct universal {
  agreed delta;
  agreed alpha;
  agreed r_infinity;
  int bits = 0;
};
/// From truncations at `terms` and `terms + 6`. Quick: real<480>; full: real<1000>.
[[nodiscard]] universal universal_constants(std::size_t terms, std::size_t doublings, bool full);

/// Superstable parameters R_n: 1/2 has period 2^n, n = 0 ... last, over real<256>, and what they tend to by Wynn's
/// epsilon algorithm from all and from all but the last.
struct cascade {
  std::vector<real<256>> superstable;
  agreed r_infinity;
  agreed delta;
};
[[nodiscard]] cascade superstable_cascade(std::size_t last);

/// The orbit of the period near (x, r) whose multiplier is `multiplier`: +1 where a window opens, 0 superstable, -1 where it
/// doubles. Newton in x and r, the multiplier moved from 0 in tenths. (x, r) must be superstable.
struct orbit_point {
  real<256> x;
  real<256> r;
  bool converged = false;
};
[[nodiscard]] orbit_point orbit_of_multiplier(std::size_t period, int multiplier, const real<256>& x, const real<256>& r);

inline constexpr int window_grid = 200000;  ///< points of it
/// All r in (3, 4] for which 1/2 has exactly this period, ascending, by bisection between points of a grid and Newton.
[[nodiscard]] std::vector<real<256>> superstable_parameters(std::size_t period);

}  // namespace deltaproof::detail::logistic
