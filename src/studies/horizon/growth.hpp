// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
//
// Long sequences of directions of four kinds, the same for every rule and every norm; everything is a function of the seed.
// How large the product of exact factors becomes: the spectral norm of prod (I - s u u^T), s = x phi(x) = 1 - R(x),
// |u| = 1, of the whole d x d product at chosen token counts, from both sides; and the exponents that theory gives.
// Scaling a key by a power of two changes no bit of the product, so (u, s) stands for every key of that direction.
#pragma once

#include "deltaproof/algebra/matrix.hpp"
#include "deltaproof/rule/rules.hpp"
#include "deltaproof/scan/transition.hpp"
#include "studies/shared/common.hpp"

namespace deltaproof::detail::horizon {

using shared::checkpoints;
using shared::ln;
using shared::log10_of;

enum class key_kind { fresh, repeated, vocabulary, clustered };

inline constexpr std::array<key_kind, 4> key_kinds{key_kind::fresh, key_kind::repeated, key_kind::vocabulary,
                                                   key_kind::clustered};
[[nodiscard]] std::string_view name_of(key_kind);

inline constexpr std::size_t vocabulary_size = 8;  ///< words, and cluster centres
/// A clustered key is sqrt(1 - spread^2) centre + spread times a fresh direction, normalised.
inline constexpr double cluster_spread = 0.3;

/// Directions of length 1 (but for rounding), and for fresh keys |g|^2 / d of the Gaussian vector g each came from.
struct key_set {
  std::size_t key_dim = 0;
  std::vector<double> directions;       ///< distinct ones, key_dim each
  std::vector<std::uint32_t> index;     ///< token -> direction
  std::vector<double> relative_square;  ///< of each direction: |g|^2 / d, mean 1

  [[nodiscard]] std::size_t tokens() const { return index.size(); }
  [[nodiscard]] std::span<const double> direction(std::size_t t) const {
    return std::span<const double>(directions).subspan(index[t] * key_dim, key_dim);
  }
};

/// Rounds: normals as `philox`, norms and quotients in double, first to last.
[[nodiscard]] key_set make_keys(key_kind, std::size_t tokens, std::size_t key_dim, std::uint64_t seed);

struct log_bracket {
  double lower = 0;
  double upper = 0;
};

/// log10 of the spectral norm of 2^exponent block, between bounds less than 1e-6 apart for up to 1000 columns: with G = block^T
/// block squared j times, tr G^2 / tr G <= |block|^(2^(j+1)) <= sqrt(tr G^2). Rounds: sums in double, so the bounds hold for the
/// block but for a relative d 2^-50.
[[nodiscard]] log_bracket log10_spectral_norm(const matrix<double>& block, long long exponent);

/// The norm of the product of the first `at[i]` factors. `strength` holds one s for all, or one for each token, |s| < 2^200.
/// Error: each step rounds to about d 2^-52 of the block it meets, which is the exact product of factors that far
/// from the given ones.
[[nodiscard]] std::vector<log_bracket> product_growth(const key_set& keys, std::span<const double> strength,
                                                      std::span<const std::size_t> at);

inline constexpr unsigned exponent_bits = 128;

/// Top Lyapunov exponent of prod (I - (1 - R) u u^T) for independent directions u, uniform on the sphere of an even
/// dimension d:  ln((1 + |R|)/2) - sum_{m=1}^{n} (rho^m / m) C_m,  n = d/2 - 1, rho = (|R| - 1)/(|R| + 1),
/// C_m = prod_{i<=m} (n + 1 - i)/(n + i).  Because |M y|^2 = |y|^2 (1 - (1 - R^2) c^2) with c^2 ~ Beta(1/2, (d-1)/2)
/// independent of y. Rounds: in `exponent_bits`, the result once. Throws: domain_error for odd or zero d.
[[nodiscard]] double fresh_exponent(double stability, std::size_t key_dim);

/// The same where x = mean chi^2_d / d (Gaussian keys that are not normalised) under the Euler rule.
/// Error: trapezoidal rule; for d >= 16 halving its step changes nothing above 1e-12.
[[nodiscard]] double gaussian_exponent(double mean, std::size_t key_dim);

/// The root of an f that changes sign once in (low, high), by bisection to 2^-40 of the interval.
template <class F>
[[nodiscard]] double crossing(F&& f, double low, double high) {
  const bool rises = f(high) > 0;
  for (int i = 0; i < 40; ++i) {
    const double middle = 0.5 * (low + high);
    ((f(middle) > 0) == rises ? high : low) = middle;
  }
  return 0.5 * (low + high);
}

/// Mean growth of ln|y| a token of one vector y, with its standard error from blocks of `exponent_block` tokens.
struct estimated_exponent {
  double mean = 0;
  double standard_error = 0;
};

inline constexpr std::size_t exponent_block = 100;
/// Under exact factors; `strength` as for product_growth. Throws: domain_error for fewer than 200 tokens.
[[nodiscard]] estimated_exponent estimate_exponent(const key_set& keys, std::span<const double> strength);

// The parts of the study that stand in other files than study.cpp, and what they share.

inline constexpr std::size_t key_dim = 64;  ///< even
[[nodiscard]] inline std::size_t exponent_tokens(const run_options& o) { return o.size(100000, 300000); }

using shared::rule_axis;

/// Lyapunov exponents, closed and measured; where eigenvalues of single factors do not decide.
void add_exponents(const run_options&, results&);

}  // namespace deltaproof::detail::horizon

// Theorems behind this file, by their names in proofs/README.md.
// proved: algebra.rank_one.step_power_on_key
