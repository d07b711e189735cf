// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT

#include <cmath>
#include <functional>

#include "deltaproof/number/elementary.hpp"
#include "studies/eigenvalues/parts.hpp"

namespace deltaproof::detail::eigenvalues {
namespace {

/// Correctly rounded, so monotone: the exact function is, and so is rounding.
template <format Out>
double correct(double x) {
  return sigmoid(rounded<Out>::from_exact(x)).value();
}

/// Every operation is rounded and monotone, so this is monotone too where e^-x does not become NaN.
template <format Out>
double naive(double x) {
  const auto one = rounded<Out>(1);
  return (one / (one + exp(-rounded<Out>::from_exact(x)))).value();
}

/// The first ordinal in [low, high] with `holds`, which stays true from there on; nothing if there is none.
std::optional<std::int64_t> first_with(std::int64_t low, std::int64_t high, const std::function<bool(std::int64_t)>& holds) {
  if (!holds(high)) return std::nullopt;
  while (low < high) {
    // Rounded down, for negative sums too.
    const std::int64_t middle =
        low + static_cast<std::int64_t>((static_cast<std::uint64_t>(high) - static_cast<std::uint64_t>(low)) / 2);
    if (holds(middle))
      high = middle;
    else
      low = middle + 1;
  }
  return low;
}

struct case_of {
  std::string name;
  frame_row (*run)();
};

template <format In, format Out>
frame_row examine() {
  static_assert(is_lossless(In, Out));
  constexpr bool exhaustive = In.storage_bits <= 16;  // every input is evaluated; else bisection over ordered numbers
  const std::int64_t top = ordinal<In>(largest(In));
  std::optional<std::int64_t> one;
  std::optional<std::int64_t> above_zero;
  std::uint64_t evaluations = 0;
  bool monotone = true;
  if (exhaustive) {
    double before = -1;
    for (std::int64_t i = -top; i <= top; ++i) {
      const double y = correct<Out>(from_ordinal<In>(i));
      ++evaluations;
      monotone = monotone && y >= before;
      before = y;
      if (!one && y == 1) one = i;
      if (!above_zero && y > 0) above_zero = i;
    }
  } else {
    one = first_with(-top, top, [&](std::int64_t i) { return correct<Out>(from_ordinal<In>(i)) == 1; });
    above_zero = first_with(-top, top, [&](std::int64_t i) { return correct<Out>(from_ordinal<In>(i)) > 0; });
  }
  const auto at = [&](const std::optional<std::int64_t>& i, int offset) {
    return i && *i > -top ? cell(from_ordinal<In>(*i + offset)) : cell();
  };
  const auto naive_one = first_with(0, top, [](std::int64_t i) { return naive<Out>(from_ordinal<In>(i)) == 1; });
  // Without infinities e^-x becomes NaN there, and the naive quotient too.
  std::optional<std::int64_t> naive_zero;
  if constexpr (Out.has_infinity) {
    naive_zero = first_with(-top, 0, [](std::int64_t i) { return naive<Out>(from_ordinal<In>(i)) > 0; });
  }
  return {name_of(In), name_of(Out), exhaustive,         evaluations,      monotone,
          at(one, 0),  at(one, -1),  at(above_zero, -1), at(naive_one, 0), at(naive_zero, -1)};
}

}  // namespace

frame survey_sigmoid(const run_options& options) {
  const grid_axis<case_of> cases{"case",
                                 {{"bf16", &examine<bf16, bf16>},
                                  {"fp16", &examine<fp16, fp16>},
                                  {"tf32", &examine<tf32, tf32>},
                                  {"e4m3", &examine<e4m3, e4m3>},
                                  {"e5m2", &examine<e5m2, e5m2>},
                                  {"fp32", &examine<fp32, fp32>},
                                  {"fp64", &examine<fp64, fp64>},
                                  {"bf16 to fp32", &examine<bf16, fp32>},
                                  {"fp16 to fp32", &examine<fp16, fp32>}}};
  return grid(
      options, "sigmoid",
      {"input", "output", "exhaustive", "evaluations", "monotone", "one_from", "last_below_one", "zero_until", "naive_one_from",
       "naive_zero_until"},
      [](const case_of& c) { return c.run(); }, cases);
}

}  // namespace deltaproof::detail::eigenvalues

// Theorems behind this file, by their names in proofs/README.md.
// proved: float.sigmoid.sigmoid_saturates_from, code.constants.sigmoid_bf16_saturates
