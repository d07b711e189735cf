// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
//
// Associative recall as the second source document states it: unit keys of Gaussian direction, values f(k) element by element,
// queries that are drawn apart from the keys. `make_inputs` draws one run; `moments_of` gives the moments of f of a coordinate
// on the sphere to within a radius, from E k^2m = (2m-1)!! / (d (d+2) ... (d+2m-2)). exp and sin are sums and products, so that
// the inputs have the same bits on every machine. Then two expected errors in closed form, and the memories. Errors are means
// over the elements.
#pragma once

#include "deltaproof/algebra/matrix.hpp"
#include "deltaproof/number/rational.hpp"
#include "studies/shared/common.hpp"

namespace deltaproof::detail::recall {

enum class relation { identity, quadratic, cubic, quartic, exponential, sine };  // k, k^2, k^3, k^4, e^k, sin(10 pi k)
inline constexpr std::array<relation, 6> relations{relation::identity, relation::quadratic,   relation::cubic,
                                                   relation::quartic,  relation::exponential, relation::sine};
[[nodiscard]] std::string_view name_of(relation);

/// e^x and sin(2 pi x), by + - * alone. Error: below 2^-43 relative, 2^-46 absolute, for |x| <= 20 and |x| <= 10.
[[nodiscard]] double portable_exp(double x);
[[nodiscard]] double sine_of_turns(double x);
/// f(k). Rounds: a few operations in double.
[[nodiscard]] double apply(relation f, double k);

/// E k^2m of one coordinate of a uniform unit vector in d dimensions, exactly.
[[nodiscard]] rational even_moment(std::size_t key_dim, int m);

/// Of v = f(k) for one coordinate k. |exact - value| <= radius for each of the three.
struct moments {
  double mean = 0;      ///< E v
  double square = 0;    ///< E v^2
  double with_key = 0;  ///< E v k
  double radius = 0;

  /// The squared cosine of f(k) and k over the law of k: the share of E v^2 that a linear map of k explains.
  [[nodiscard]] double linear_share(std::size_t key_dim) const {
    return with_key * with_key * static_cast<double>(key_dim) / square;
  }
  /// The same of a map of (1, k).
  [[nodiscard]] double affine_share(std::size_t key_dim) const { return linear_share(key_dim) + mean * mean / square; }
};
inline constexpr unsigned moment_bits = 256;
/// Error: as the radius says; series in that many bits, the tail and the rounding bounded.
[[nodiscard]] moments moments_of(relation f, std::size_t key_dim);

/// Expected errors of the delta rule with beta = 1 in closed form, for keys and queries that are independent uniform unit vectors
/// and values v = f(k) element by element. With m = E f^2, mu = E f(k) k of one coordinate and r = 1 - 1/d, both exact:
///   query apart, after the update, the mean over tokens 1 ... t from S = 0:  m (2 - mean of r^s)
///   own key, before the update, t at infinity:  2 (m - d mu^2), and m - d mu^2 is the error of the best linear map.
/// First: |S'|^2 = |S - S k k^T|^2 + |v|^2 since (I - k k^T) k = 0, E |S k|^2 = E |S|^2 / d, and E q = 0. Second: E S' = r E S +
/// mu I, as E f(k_i) k_j = 0 for i != j (k_j and -k_j are alike).
[[nodiscard]] double delta_apart(const moments&, std::size_t key_dim, std::size_t tokens);
[[nodiscard]] double delta_own_before(const moments&, std::size_t key_dim);

struct task {
  relation f{};
  bool normalise_values = false;  ///< to length 1
  std::size_t key_dim = 64;
  std::size_t tokens = 1000;
};

/// Rows are tokens. Keys and queries are unit vectors.
struct inputs {
  matrix<double> q, k, v;
};
/// Normalises every row.
void unit_rows(matrix<double>&);
/// The keys and queries of a run depend on (seed, run, key_dim, tokens) alone, so that relations can be compared on them.
[[nodiscard]] inputs make_inputs(const task&, std::uint64_t seed, std::uint64_t run);

/// A memory that is written with pairs and read with queries. Shapes: k, q (K), v, o (V).
struct memory {
  std::function<void(std::span<const double> k, std::span<const double> v)> write;
  std::function<void(std::span<const double> q, std::span<double> o)> read;
};
/// The library's baselines and its recurrence: S + v k^T; beta = 1 with the key divided by its length, and as it comes; exact
/// flow and implicit Euler, beta = 1; least squares.
inline constexpr std::array<std::string_view, 6> memories{"hebbian", "delta", "raw", "efla", "longhorn", "rls"};
inline constexpr double ridge = 1e-6;  ///< of "rls"
/// K = V = dim. Throws: domain_error for a name that is not in the list.
[[nodiscard]] memory make_memory(std::string_view name, std::size_t dim);
/// The delta rule with one step length for all tokens; least squares, by rank-one updates.
[[nodiscard]] memory delta_rule(std::size_t key_dim, std::size_t value_dim, double beta);
[[nodiscard]] memory least_squares(std::size_t key_dim, std::size_t value_dim);

/// Mean squared error and cosine against a value.
struct score {
  double error = 0;
  double cosine = 0;
};
[[nodiscard]] score score_of(std::span<const double> o, std::span<const double> v);

/// Reading with a query apart after each update, the mean over the tokens, against the token's own value.
[[nodiscard]] score read_apart(const memory&, const inputs&);
inline constexpr double diverged = 1e30;
/// Reading with the own key before the update, over tokens [first, T), against `truth`; an error of `diverged` or more is
/// infinite.
[[nodiscard]] score late_prediction(const memory&, const inputs&, std::size_t first, const matrix<double>& truth);

/// The mean of each column under its name and the standard deviation (n - 1; 0 of one value) under its name and _sd.
[[nodiscard]] std::vector<aggregate> means(const std::vector<std::string>& columns);

}  // namespace deltaproof::detail::recall
