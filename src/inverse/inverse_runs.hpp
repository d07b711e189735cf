// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
//
// The arithmetics an inverse is compiled for, as rows of a table: a format of operands, one of the operands of merges, an
// accumulator that holds both, and the algorithms run in them and over their magnitudes, until a flag says stop.
#pragma once

#include <array>
#include <atomic>
#include <cmath>
#include <span>
#include <type_traits>
#include <utility>

#include "deltaproof/algebra/growth.hpp"
#include "deltaproof/inverse/inverse_trial.hpp"
#include "deltaproof/number/double_double.hpp"

namespace deltaproof::detail {

/// Throws: inverse_stopped where the flag is set.
inline void go_on(const std::atomic<bool>* stop) {
  if (stop != nullptr && stop->load(std::memory_order_relaxed)) throw inverse_stopped("inverse: stopped before its end");
}

/// largest_intermediate that looks at the flag before each matrix.
struct stoppable_observer {
  const std::atomic<bool>* stop;
  largest_intermediate seen = {};

  template <class S>
  void operator()(std::string_view stage, const matrix<S>& m) {
    go_on(stop);
    seen(stage, m);
  }
  [[nodiscard]] const growth& found() const noexcept { return seen.found(); }
};

struct inverse_arithmetic {
  format operand;
  format merge;
  format accumulate;
  std::pair<matrix<double>, growth> (*run)(const inverse_method&, const matrix<double>&, const std::atomic<bool>*);
  growth (*bound)(const inverse_method&, const matrix<double>&, const std::atomic<bool>*);
};

template <format F>
using number_of = std::conditional_t<(F == fp64), double, rounded<F>>;

template <format Operand, format Accumulate, format Merge = Operand>
constexpr inverse_arithmetic inverse_in() {
  using A = arithmetic<number_of<Operand>, exact_product, number_of<Accumulate>, sequential>;
  using M = arithmetic<number_of<Merge>, exact_product, number_of<Accumulate>, sequential>;
  return {Operand, Merge, Accumulate,
          [](const inverse_method& method, const matrix<double>& lower, const std::atomic<bool>* stop) {
            stoppable_observer observe{stop};
            const auto x = run_inverse<A, M>(method, lower, observe);
            observe("result", x);
            matrix<double> result(x.rows(), x.cols());
            for (std::size_t i = 0; i < x.size(); ++i) result.data()[i] = static_cast<double>(x.data()[i]);
            return std::pair{std::move(result), observe.found()};
          },
          [](const inverse_method& method, const matrix<double>& lower, const std::atomic<bool>* stop) {
            return growth_bound<A, M>(method, lower, stoppable_observer{stop});
          }};
}

/// (I + L)^-1 by forward substitution, one column after the other, in double-doubles: not the code on trial.
[[nodiscard]] matrix<double_double> true_inverse(const matrix<double>& lower, const std::atomic<bool>* stop = nullptr);

/// In three files, for the time they take to compile.
[[nodiscard]] std::span<const inverse_arithmetic> inverse_arithmetics_16_bit();
[[nodiscard]] std::span<const inverse_arithmetic> inverse_arithmetics_wide();
/// Those whose merges have operands of their own.
[[nodiscard]] std::span<const inverse_arithmetic> inverse_arithmetics_mixed();

}  // namespace deltaproof::detail
