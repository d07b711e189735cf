// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
//
// Words in the symmetric group, followed by a delta rule: a transposition (i j) is the step with the key e_i - e_j, |k|^2 = 2,
// and b = 1, or with (e_i - e_j) / sqrt 2 and b = 2; a permutation of n things is at most n - 1 of them. The state starts as I
// and should be the permutation matrix of the word so far; the answer is read as the largest entry of each row.
#pragma once

#include "deltaproof/number/rational.hpp"
#include "deltaproof/number/real.hpp"
#include "deltaproof/scan/recurrent.hpp"
#include "studies/shared/common.hpp"
#include "studies/shared/formats.hpp"

namespace deltaproof::detail::negative_eigenvalues {

/// The elements of S_n as images of 0 ... n-1, and the transpositions.
using permutation = std::vector<std::size_t>;

struct transposition {
  std::size_t i = 0, j = 0;
};

/// Every element times every transposition, as steps with k = e_i - e_j and b = 1, over rationals and over bf16, fp16 and e4m3
/// with every operation rounded: by induction, every word.
struct exactness {
  std::uint64_t cases = 0;
  std::uint64_t exact = 0;
};

/// How a run is executed: the key's entry 1/sqrt 2 rounded to a format, the state in a format after each step, sums in fp32
/// (fp64 where the state is fp64). `reference`: 256 bits, key entry and all.
struct execution {
  std::string_view name;
  format key;
  format state;
  bool reference = false;
};

inline constexpr std::array<execution, 6> executions{{{"bf16", bf16, bf16},
                                                      {"fp16", fp16, fp16},
                                                      {"mixed", bf16, fp32},
                                                      {"fp32", fp32, fp32},
                                                      {"fp64", fp64, fp64},
                                                      {"reference", fp64, fp64, true}}};

/// What is read along one word of uniformly random elements of S_n. The lead of a state is the least, over its rows, of the right
/// entry less the largest other one: 1 for a permutation matrix, and an answer is wrong where it is not positive.
struct horizon {
  std::size_t wrong = 0;  ///< first token with a wrong answer; 0: none
  std::size_t faint = 0;  ///< first token with a lead below 1/2; 0: none
  double lead = 1;        ///< at the last token looked at; the run ends with a wrong answer
};

inline permutation identity_permutation(std::size_t n) {
  permutation p(n);
  std::iota(p.begin(), p.end(), std::size_t{0});
  return p;
}

[[nodiscard]] inline std::vector<permutation> all_permutations(std::size_t n) {
  std::vector<permutation> result;
  permutation p = identity_permutation(n);
  do result.push_back(p);
  while (std::next_permutation(p.begin(), p.end()));
  return result;
}

[[nodiscard]] inline std::vector<transposition> all_transpositions(std::size_t n) {
  std::vector<transposition> result;
  for (std::size_t i = 0; i < n; ++i) {
    for (std::size_t j = i + 1; j < n; ++j) result.push_back({i, j});
  }
  return result;
}

/// Steps that, one after the other, bring rows 0 ... n-1 into the order p: row i of the result is row p[i]. At most n - 1.
[[nodiscard]] inline std::vector<transposition> as_transpositions(const permutation& p) {
  std::vector<transposition> result;
  permutation now = identity_permutation(p.size());
  for (std::size_t i = 0; i < p.size(); ++i) {
    if (now[i] == p[i]) continue;
    const auto at = static_cast<std::size_t>(std::find(now.begin(), now.end(), p[i]) - now.begin());
    std::swap(now[i], now[at]);
    result.push_back({i, at});
  }
  return result;
}

template <class S>
matrix<S> matrix_of(const permutation& p) {
  matrix<S> m(p.size(), p.size(), zero<S>());
  for (std::size_t i = 0; i < p.size(); ++i) m(i, p[i]) = one<S>();
  return m;
}

template <class S>
std::uint64_t exact_steps(std::size_t n) {
  std::uint64_t exact = 0;
  const std::vector<S> nothing(n, zero<S>());
  for (const permutation& p : all_permutations(n)) {
    for (const transposition& t : all_transpositions(n)) {
      std::vector<S> key = nothing;
      key[t.i] = one<S>();
      key[t.j] = -one<S>();
      recurrence<S> machine(matrix_of<S>(p));
      machine.step(key, nothing, one<S>());
      permutation expected = p;
      std::swap(expected[t.i], expected[t.j]);
      if (machine.state() == matrix_of<S>(expected)) ++exact;
    }
  }
  return exact;
}

template <class S>
S lead_of(const matrix<S>& state, const permutation& expected) {
  S least = one<S>();
  for (std::size_t i = 0; i < expected.size(); ++i) {
    for (std::size_t j = 0; j < expected.size(); ++j) {
      if (j == expected[i]) continue;
      const S lead = state(i, expected[i]) - state(i, j);
      if (!(lead >= least)) least = lead;
    }
  }
  return least;
}

template <class S, class Store>
horizon follow(std::size_t n, const S& entry, const S& step, std::size_t tokens, philox random, Store&& store) {
  const std::vector<permutation> elements = all_permutations(n);
  std::vector<std::vector<transposition>> steps;
  for (const permutation& p : elements) steps.push_back(as_transpositions(p));
  recurrence<S> machine(matrix_of<S>(identity_permutation(n)));
  permutation expected = identity_permutation(n);
  const std::vector<S> nothing(n, zero<S>());
  std::vector<S> key = nothing;
  horizon result;
  for (std::size_t t = 1; t <= tokens; ++t) {
    const auto element = static_cast<std::size_t>(random.below(elements.size()));
    for (const transposition& swap : steps[element]) {
      key[swap.i] = entry;
      key[swap.j] = -entry;
      machine.step(key, nothing, step);
      machine.store(store);
      key[swap.i] = zero<S>();
      key[swap.j] = zero<S>();
      std::swap(expected[swap.i], expected[swap.j]);
    }
    const S lead = lead_of(machine.state(), expected);
    result.lead = round_to<double>(lead);
    if (result.faint == 0 && !(result.lead >= 0.5)) result.faint = t;
    if (lead > zero<S>()) continue;
    result.wrong = t;
    break;
  }
  return result;
}

/// 1 / sqrt 2 to 256 bits.
inline real<256> inverse_root() { return 1 / sqrt(real<256>(2)); }

inline double rounded_root(const format& f) { return round_nearest(inverse_root(), f); }

[[nodiscard]] inline exactness check_every_step(std::size_t n) {
  exactness result;
  result.cases = 4 * all_permutations(n).size() * all_transpositions(n).size();
  result.exact =
      exact_steps<rational>(n) + exact_steps<rounded<bf16>>(n) + exact_steps<rounded<fp16>>(n) + exact_steps<rounded<e4m3>>(n);
  return result;
}

/// The key is (e_i - e_j) / sqrt 2 and the step b, or e_i - e_j and the step b / 2.
[[nodiscard]] inline horizon follow_word(const execution& how, std::size_t n, double step, bool unit_key, std::size_t tokens,
                                         std::uint64_t seed, std::uint64_t word) {
  const philox random(seed, 40 + word);
  if (how.reference) {
    const real<256> entry = unit_key ? inverse_root() : real<256>(1);
    return follow<real<256>>(n, entry, real<256>(unit_key ? step : step / 2), tokens, random,
                             [](const real<256>& x) { return x; });
  }
  const double entry = unit_key ? rounded_root(how.key) : 1;
  const double b = unit_key ? step : step / 2;
  if (how.state == fp64) return follow<double>(n, entry, b, tokens, random, [](double x) { return x; });
  return shared::with_kept_format(how.state, [&]<format F>() {
    return follow<float>(n, static_cast<float>(entry), static_cast<float>(b), tokens, random,
                         [](float x) { return static_cast<float>(round_to<F>(x).value()); });
  });
}

/// The horizon at q (n - 1), rounded down, in ascending order, 0 ("none") after all others.
[[nodiscard]] inline aggregate_function horizon_at(double q) {
  return [q](std::span<const double> horizons) -> cell {
    std::vector<double> ascending(horizons.begin(), horizons.end());
    std::sort(ascending.begin(), ascending.end(), [](double a, double b) { return a != 0 && (b == 0 || a < b); });
    return static_cast<std::size_t>(ascending[static_cast<std::size_t>(q * static_cast<double>(ascending.size() - 1))]);
  };
}

/// ln 2 / -ln |lambda|: after how many reflections half of an eigen-direction is left. Infinite for |lambda| = 1. Error: below
/// 1e-15 relative, computed in 256 bits.
[[nodiscard]] inline double half_life(const rational& lambda) {
  const rational size = lambda < 0 ? rational(-lambda) : lambda;
  if (size == 1) return std::numeric_limits<double>::infinity();
  if (size == 0) return 0;
  // log1p: |lambda| may be within 2^-53 of 1, and the difference is exact.
  const real<256> away = log1p(round_to<real<256>>(rational(size - 1)));
  return round_to<double>(real<256>(-log(real<256>(2)) / away));
}

}  // namespace deltaproof::detail::negative_eigenvalues
