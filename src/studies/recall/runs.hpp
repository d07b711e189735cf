// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
//
// Runs a memory over the tokens of a recall task and reads it in every way that the protocol of the second source document
// leaves open; what it costs, and what a histogram says of the information it keeps. Means are over the elements of a vector.
#pragma once

#include <array>
#include <cstddef>
#include <functional>
#include <span>
#include <string_view>
#include <vector>

#include "deltaproof/number/counting.hpp"
#include "deltaproof/study/report.hpp"
#include "studies/recall/tasks.hpp"

namespace deltaproof::detail::recall {

/// A memory that is written with pairs and read with queries. Shapes: k, q (K), v, o (V).
struct memory {
  std::function<void(std::span<const double> k, std::span<const double> v)> write;
  std::function<void(std::span<const double> q, std::span<double> o)> read;
};
/// The library's baselines and its recurrence: S + v k^T; beta = 1 with the key divided by its length, and as it comes; exact
/// flow and implicit Euler, beta = 1; Longhorn as published; erasing with 2 beta, writing with beta or 2 beta; least squares.
inline constexpr std::array<std::string_view, 9> memories{"hebbian",  "delta", "raw",  "efla", "longhorn",
                                                          "diagonal", "erase", "both", "rls"};
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

/// What one run shows.
struct observation {
  std::array<score, readings.size()> scores;
  double value_square = 0;    ///< mean of v^2: the error of the predictor 0
  double value_variance = 0;  ///< of the predictor that is the mean of v over the run
  double shuffled = 0;        ///< of the predictor v_(t+1): a value of another token

  /// Throws: domain_error for a name that is not in `readings`.
  [[nodiscard]] const score& by(std::string_view reading) const;
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

/// The standard deviation (n - 1) of a sample; 0 of one value.
[[nodiscard]] cell deviation(std::span<const double>);
[[nodiscard]] cell root_mean_square(std::span<const double>);

/// One token of each memory with K = V = d, counted: the library's templates over a counting scalar. `least_squares_anew` is
/// the printed formula evaluated from all t tokens, the inverse by Gauss-Jordan.
struct costs {
  operation_counts hebbian, delta, least_squares, least_squares_anew;
};
[[nodiscard]] costs count_costs(std::size_t dim, std::size_t tokens);

/// Mutual information of two samples by a histogram, in bits: equal cells between the least and the largest value, the plug-in
/// estimate of the cells' frequencies. It depends on the number of cells, and is positive where there is nothing to be found:
/// by (cells_x - 1)(cells_y - 1) / (2 n ln 2) on average, for cells in use and n large (Miller and Madow): `bias`.
/// A constant sample has one cell and no information. Throws: shape_error unless both have one length, at least 1.
struct information {
  double bits = 0;
  double bias = 0;
};
[[nodiscard]] information mutual_information(std::span<const double> x, std::span<const double> y, std::size_t cells);

}  // namespace deltaproof::detail::recall
