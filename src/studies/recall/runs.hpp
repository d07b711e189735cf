// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
//
// Runs a memory over the tokens of a recall task and reads it in every way that the protocol of the second source document
// leaves open: with the token's own key or with a query drawn apart, before or after the update, as a mean over the tokens so
// far or at the last token, and, at the end, with all keys of the past. All means are over the elements of a vector.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "deltaproof/number/counting.hpp"
#include "studies/recall/tasks.hpp"

namespace deltaproof::detail::recall {

/// A memory that is written with pairs and read with queries. Shapes: k, q (K), v, o (V).
class memory {
 public:
  virtual ~memory() = default;
  virtual void write(std::span<const double> k, std::span<const double> v) = 0;
  virtual void read(std::span<const double> q, std::span<double> o) const = 0;
};

/// The memories of the study: the library's baselines and its recurrence. `normalise`: the key is divided by its length first,
/// for writing and for reading.
struct named_memory {
  std::string_view name;
  std::string_view rule;  ///< in formulas
  bool normalise = false;
};
inline constexpr std::array<named_memory, 9> memories{{
    {"Hebbian", "S + v kᵀ"},
    {"DeltaNet", "β = 1, keys normalised", true},
    {"DeltaNet, raw keys", "β = 1, keys as they come"},
    {"EFLA", "β = 1, φ(x) = (1 − e⁻ˣ)/x"},
    {"Longhorn", "β = 1, φ(x) = 1/(1 + x)"},
    {"Longhorn, diagonal", "as published, β = 1"},
    {"± erase", "S(I − 2βkkᵀ) + βvkᵀ, β = 0.9, keys normalised", true},
    {"± both", "S(I − 2βkkᵀ) + 2βvkᵀ, β = 0.9, keys normalised", true},
    {"RLS", "least squares, ridge 10⁻⁶"},
}};
/// Throws: domain_error for a name that is not in the table.
[[nodiscard]] std::unique_ptr<memory> make_memory(std::string_view name, std::size_t key_dim, std::size_t value_dim);
/// The delta rule with one step length for all tokens.
[[nodiscard]] std::unique_ptr<memory> delta_rule(std::size_t key_dim, std::size_t value_dim, double beta);
/// Least squares with that ridge, by rank-one updates.
[[nodiscard]] std::unique_ptr<memory> least_squares(std::size_t key_dim, std::size_t value_dim, double ridge);

/// Mean squared error and cosine against the token's value.
struct score {
  double error = 0;
  double cosine = 0;
};
enum class query { own_key, apart };
enum class when { before, after };

/// What one run shows. Means over all T tokens ("prefix"), and of the last token.
struct observation {
  std::array<std::array<score, 2>, 2> prefix;  ///< [query][when]
  std::array<std::array<score, 2>, 2> last;
  std::array<score, 2> final_state;  ///< [query]: the state after the last token, read at all tokens
  double value_square = 0;           ///< mean of v^2: the error of the predictor 0
  double value_variance = 0;         ///< of the predictor that is the mean of v over the run
  double shuffled = 0;               ///< of the predictor v_(t+1): a value of another token

  [[nodiscard]] const score& over_prefix(query q, when w) const { return prefix[std::size_t(q)][std::size_t(w)]; }
  [[nodiscard]] const score& at_last(query q, when w) const { return last[std::size_t(q)][std::size_t(w)]; }
};
[[nodiscard]] observation observe(memory&, const inputs&);

/// Error of own-key reading before the update over tokens [first, T), its cosine, and |o| / |v|.
[[nodiscard]] score late_prediction(memory&, const inputs&, std::size_t first);

/// The error against the value after each of the token counts `at`, prefix means, queries drawn apart, after the update; and
/// the same of the cosine.
[[nodiscard]] std::vector<score> growth(memory&, const inputs&, std::span<const std::size_t> at);

/// o of the state after the last token, read with every key: T x V.
[[nodiscard]] matrix<double> recollect(memory&, const inputs&);

/// Mean and standard deviation (n - 1) of a sample.
struct spread {
  double mean = 0;
  double deviation = 0;
};
[[nodiscard]] spread spread_of(std::span<const double> x);
/// "0.412 ± 0.03".
[[nodiscard]] std::string text(const spread&);

/// One token of each memory with K = V = d, counted: the library's templates over a counting scalar. `least_squares_anew` is
/// the printed formula evaluated from all t tokens, the inverse by Gauss-Jordan.
struct costs {
  operation_counts hebbian, delta, least_squares, least_squares_anew;
};
[[nodiscard]] costs count_costs(std::size_t dim, std::size_t tokens);

}  // namespace deltaproof::detail::recall
