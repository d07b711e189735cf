// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
//
// Rounding errors of the chunkwise form and of the recurrence against a double-double run of the recurrence on the same
// bits, over chunk length.
#pragma once

#include "deltaproof/number/double_double.hpp"
#include "deltaproof/scan/recurrent.hpp"
#include "studies/shared/chunks/arithmetics.hpp"
#include "studies/shared/chunks/keys.hpp"
#include "studies/shared/common.hpp"

namespace deltaproof::detail::wy {

struct regime {
  std::string_view name;
  chunks::key_kind keys{};
  chunks::step_law steps;
};
inline constexpr std::array<regime, 4> regimes{{{"ordinary", chunks::key_kind::fresh, {0, 1}},
                                                {"reflecting", chunks::key_kind::fresh, {1.9, 2}},
                                                {"clustered", chunks::key_kind::cosine_90, {0, 1}},
                                                {"hard", chunks::key_kind::cosine_90, {1.9, 2}}}};

/// In the order of the tables. The last sums in bf16 too.
inline constexpr std::array<std::string_view, 6> studied{"bf16", "fp16", "tf32", "fp32", "fp64", "bf16 native"};
inline constexpr std::size_t usual_chunk = 64;
inline constexpr std::string_view inverse_name = "forward16+block";
inline const std::vector<std::string> error_columns{"arithmetic", "chunk", "o", "state", "accumulator", "storage"};

/// The recurrence in double-double, rounded once to double: o and the state. Each operation is within 2^-102, and as every
/// transition has norm 1 at most, errors of steps add: below T K 2^-100 of the largest state.
struct reference {
  std::vector<double> o;
  std::vector<double> state;
};

/// |x - reference| / |reference| over all entries, squared.
inline double squared_error(const matrix<double>& x, const std::vector<double>& reference) {
  double difference = 0, square = 0;
  for (std::size_t i = 0; i < reference.size(); ++i) {
    difference += (x.data()[i] - reference[i]) * (x.data()[i] - reference[i]);
    square += reference[i] * reference[i];
  }
  const double ratio = difference / square;
  return std::isnan(ratio) ? HUGE_VAL : ratio;
}

[[nodiscard]] inline reference run_reference(const sequence<double>& s) {
  const auto run = recurrent(convert<double_double>(s, [](double x) { return lift<double_double>(x); }));
  reference result;
  for (const double_double& x : run.o.entries()) result.o.push_back(x.hi());
  for (const double_double& x : run.final_state.entries()) result.state.push_back(x.hi());
  return result;
}

/// (|x' - x| / |x|)^2 over all entries (Frobenius) for each arithmetic and chunk length, infinite where it is not a number. o,
/// state: of the chunkwise form; accumulator, storage: of the recurrence's o, its state in the accumulator's format or rounded to
/// the storage format after every token.
[[nodiscard]] inline frame squared_errors(const sequence<double>& s, std::span<const std::size_t> chunk_lengths) {
  const reference truth = run_reference(s);
  frame result(error_columns);
  for (const std::string_view name : studied) {
    const chunks::chunk_arithmetic& arithmetic = chunks::arithmetic_named(name);
    const auto accumulator = arithmetic.recurrent(s, chunks::state_format::accumulator, 1, nullptr);
    const auto storage = arithmetic.recurrent(s, chunks::state_format::storage, 1, nullptr);
    for (const std::size_t chunk : chunk_lengths) {
      const auto run = arithmetic.chunkwise(s, chunk, inverse_named(inverse_name));
      result.add({name, chunk, squared_error(run.o, truth.o), squared_error(run.final_state, truth.state),
                  squared_error(accumulator.o, truth.o), squared_error(storage.o, truth.o)});
    }
  }
  return result;
}

}  // namespace deltaproof::detail::wy
