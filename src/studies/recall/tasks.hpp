// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
//
// Associative recall as the second source document states it: unit keys of Gaussian direction, values f(k) element by element,
// queries that are drawn apart from the keys. `make_inputs` draws one run; `moments_of` gives the moments of f of a coordinate
// on the sphere to within a radius, from E k^2m = (2m-1)!! / (d (d+2) ... (d+2m-2)). exp and sin are sums and products, so that
// the inputs have the same bits on every machine. Then the closed forms of the expected errors, the memories and every way of
// reading them that the document leaves open. Errors are means over the elements.
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

/// Expected errors in closed form, for keys and queries that are independent uniform unit vectors and values v = f(k) element by
/// element. With m = E f^2, mu = E f(k) k of one coordinate and r = 1 - 1/d, after t tokens from S = 0:
///   Hebbian, query apart:   E (Sq - v)^2 = m (1 + t/d) + t (t-1) mu^2 / d
///   delta rule, beta = 1, query apart:      m (2 - r^t)
///   delta rule, beta = 1, own key, before:  m (2 - r^(t-1)) - 2 d mu^2 (1 - r^(t-1))
///   least squares of k, identity, query apart, no ridge: (1 + min(t/d, 1)) / d
/// all of them exact. Second line: |S'|^2 = |S - S k k^T|^2 + |v|^2 since (I - k k^T) k = 0, E |S k|^2 = E |S|^2 / d, and
/// E q = 0. Third: E S' = r E S + mu I, as E f(k_i) k_j = 0 for i != j (k_j and -k_j are alike). For a step beta, at t =
/// infinity:
///   own key, before:  2 (m - d mu^2) / (2 - beta), and m - d mu^2 is the error of the best linear map.
struct expectation {
  double last = 0;    ///< at token t >= 1
  double prefix = 0;  ///< the mean over tokens 1 ... t
};
[[nodiscard]] expectation hebbian_apart(const moments&, std::size_t key_dim, std::size_t tokens);
[[nodiscard]] expectation delta_apart(const moments&, std::size_t key_dim, std::size_t tokens);
[[nodiscard]] expectation delta_own_before(const moments&, std::size_t key_dim, std::size_t tokens);
[[nodiscard]] expectation identity_least_squares_apart(std::size_t key_dim, std::size_t tokens);
/// 2 (m - d mu^2) / (2 - beta).
[[nodiscard]] double delta_own_before_limit(const moments&, std::size_t key_dim, double beta);

struct task {
  relation f{};
  bool normalise_values = false;  ///< to length 1, after the mean
  std::size_t key_dim = 64;
  std::size_t tokens = 1000;
  std::size_t averaged = 1;  ///< tokens of a causal mean over keys and values, before all else
};

/// Rows are tokens. Keys are unit vectors (normalised again after a mean), queries unit vectors.
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
/// flow and implicit Euler, beta = 1; erasing with 2 beta, writing with beta or 2 beta; least squares.
inline constexpr std::array<std::string_view, 8> memories{"hebbian", "delta", "raw", "efla", "longhorn", "erase", "both", "rls"};
inline constexpr double ridge = 1e-6;  ///< of "rls"
inline constexpr double strong = 0.9;  ///< beta of "erase" and "both"
/// K = V = dim. Throws: domain_error for a name that is not in the list.
[[nodiscard]] memory make_memory(std::string_view name, std::size_t dim);
/// The delta rule with one step length for all tokens; least squares with that ridge, by rank-one updates.
[[nodiscard]] memory delta_rule(std::size_t key_dim, std::size_t value_dim, double beta);
[[nodiscard]] memory least_squares(std::size_t key_dim, std::size_t value_dim, double ridge);

/// Mean squared error and cosine against a value.
struct score {
  double error = 0;
  double cosine = 0;
};
[[nodiscard]] score score_of(std::span<const double> o, std::span<const double> v);

/// A way to read a run: with the token's own key or with a query drawn apart; before or after the update, or from the state
/// after the last token; the mean over the tokens so far, or of the last token.
struct reading {
  enum moment { before, after, at_the_end };
  std::string_view name;
  bool own_key;
  moment when;
  bool last;
};
inline constexpr std::array<reading, 10> readings{{{"apart after prefix", false, reading::after, false},
                                                   {"apart before prefix", false, reading::before, false},
                                                   {"apart after last", false, reading::after, true},
                                                   {"apart before last", false, reading::before, true},
                                                   {"apart final", false, reading::at_the_end, false},
                                                   {"own before prefix", true, reading::before, false},
                                                   {"own after prefix", true, reading::after, false},
                                                   {"own before last", true, reading::before, true},
                                                   {"own after last", true, reading::after, true},
                                                   {"own final", true, reading::at_the_end, false}}};
/// Throws: domain_error for a name that is not in `readings`.
[[nodiscard]] const reading& reading_named(std::string_view);

/// What one run shows.
struct observation {
  std::array<score, readings.size()> scores;
  double value_square = 0;  ///< mean of v^2: the error of the predictor 0

  [[nodiscard]] const score& by(std::string_view name) const {
    return scores[static_cast<std::size_t>(&reading_named(name) - readings.data())];
  }
};
[[nodiscard]] observation observe(const memory&, const inputs&);

inline constexpr double diverged = 1e30;
/// Reading with the own key before the update, over tokens [first, T), against `truth`; an error of `diverged` or more is
/// infinite.
[[nodiscard]] score late_prediction(const memory&, const inputs&, std::size_t first, const matrix<double>& truth);

/// After each of the token counts `at`: the mean error so far of queries drawn apart, after the update, and the cosine of what
/// the last of them reads with the query itself (for v = k the right answer to any query).
[[nodiscard]] std::vector<score> growth(const memory&, const inputs&, std::span<const std::size_t> at);

/// o of the state after the last token, read with every key: T x V.
[[nodiscard]] matrix<double> recollect(const memory&, const inputs&);

// The parts of the study that stand in other files than study.cpp, and what all share: its sizes, and how a figure of the
// document is given. Figures without a note are of its tables at T = 1000.

inline constexpr std::size_t key_dim = 64;
inline constexpr std::size_t tokens = 1000;  ///< T of the document's tables
[[nodiscard]] inline std::size_t retrieval_runs(const run_options& o) { return o.size(24, 200); }
[[nodiscard]] inline std::size_t rule_tokens(const run_options& o) { return o.size(3000, 8000); }
inline const grid_axis<std::size_t> many_runs = draws(6, 12), few_runs = draws(3, 6);

inline const grid_axis<relation> formulas{"formula", {relations.begin(), relations.end()}};

/// A figure and the unit of its last printed digit.
struct printed {
  double value = 0;
  double unit = 0;
};

/// Table "Normalized MSE, Unnormalized MSE", DeltaNet.
[[nodiscard]] inline printed printed_error(relation f, bool normalised) {
  constexpr std::array<printed, relations.size()> raw{
      {{0.026, 1e-3}, {0.001, 1e-3}, {0.0001, 1e-4}, {0.00001, 1e-5}, {1.92, 1e-2}, {0.96, 1e-2}}};
  if (normalised) return {f == relation::identity ? 0.028 : 0.030, 1e-3};
  return raw[static_cast<std::size_t>(f)];
}

/// The reading that the printed figures come from.
inline constexpr std::string_view chosen = "apart after prefix";

using shared::root_mean_square;
/// The mean of each column under its name and the standard deviation (n - 1; 0 of one value) under its name and _sd.
[[nodiscard]] std::vector<aggregate> means(const std::vector<std::string>& columns);

/// What the text leaves open before a memory sees a token: norm before or after f, projections or none.
void add_axes(const run_options&, results&);
/// What is learnt, read with the token's own key; least squares, with and without a constant feature; gradients.
void add_learning(const run_options&, results&);
/// Keys of the past.
void add_retrieval(const run_options&, results&);
void add_convolution(const run_options&, results&);
/// A task whose answer is the next token: a mean over two tokens on q, k, v.
void add_successors(const run_options&, results&);
/// All memories, on keys of one norm and of spread norms, with and without noise.
void add_rules(const run_options&, results&);

}  // namespace deltaproof::detail::recall
