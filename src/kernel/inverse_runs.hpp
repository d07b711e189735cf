// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
//
// The arithmetics an inverse is compiled for, as rows of a table: an operand format, an accumulator that holds every
// operand, and the algorithms run in them and over their magnitudes.
#pragma once

#include <array>
#include <cmath>
#include <span>
#include <type_traits>
#include <utility>

#include "deltaproof/algebra/growth.hpp"
#include "deltaproof/number/double_double.hpp"

namespace deltaproof::detail {

struct inverse_arithmetic {
  format operand;
  format accumulate;
  std::pair<matrix<double>, growth> (*run)(const inverse_method&, const matrix<double>&);
  growth (*bound)(const inverse_method&, const matrix<double>&);
};

template <format F>
using number_of = std::conditional_t<(F == fp64), double, rounded<F>>;

template <format Operand, format Accumulate>
constexpr inverse_arithmetic inverse_in() {
  using A = arithmetic<number_of<Operand>, exact_product, number_of<Accumulate>, sequential>;
  return {Operand, Accumulate,
          [](const inverse_method& method, const matrix<double>& lower) {
            largest_intermediate seen;
            const auto x = run_inverse<A>(method, lower, seen);
            seen("result", x);
            matrix<double> result(x.rows(), x.cols());
            for (std::size_t i = 0; i < x.size(); ++i) result.data()[i] = static_cast<double>(x.data()[i]);
            return std::pair{std::move(result), seen.found()};
          },
          [](const inverse_method& method, const matrix<double>& lower) { return growth_bound<A>(method, lower); }};
}

/// (I + L)^-1 by forward substitution, one column after the other, in double-doubles: not the code on trial.
[[nodiscard]] matrix<double_double> true_inverse(const matrix<double>& lower);
/// x rounded to nearest even to a format that an inverse can be tried in.
[[nodiscard]] double stored_in(format f, double x);

/// In two files, for the time they take to compile.
[[nodiscard]] std::span<const inverse_arithmetic> inverse_arithmetics_16_bit();
[[nodiscard]] std::span<const inverse_arithmetic> inverse_arithmetics_wide();

}  // namespace deltaproof::detail
