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

template <format In, format Out>
saturation examine() {
  static_assert(is_lossless(In, Out));
  saturation s;
  s.input = name_of(In);
  s.output = name_of(Out);
  s.exhaustive = In.storage_bits <= 16;
  const std::int64_t top = ordinal<In>(largest(In));
  std::optional<std::int64_t> one;
  std::optional<std::int64_t> above_zero;
  if (s.exhaustive) {
    double before = -1;
    for (std::int64_t i = -top; i <= top; ++i) {
      const double y = correct<Out>(from_ordinal<In>(i));
      ++s.evaluations;
      s.monotone = s.monotone && y >= before;
      before = y;
      if (!one && y == 1) one = i;
      if (!above_zero && y > 0) above_zero = i;
    }
  } else {
    one = first_with(-top, top, [&](std::int64_t i) { return ++s.evaluations, correct<Out>(from_ordinal<In>(i)) == 1; });
    above_zero = first_with(-top, top, [&](std::int64_t i) { return ++s.evaluations, correct<Out>(from_ordinal<In>(i)) > 0; });
  }
  if (one) {
    s.one_from = from_ordinal<In>(*one);
    s.last_below_one = from_ordinal<In>(*one - 1);
  }
  if (above_zero && *above_zero > -top) s.zero_until = from_ordinal<In>(*above_zero - 1);
  if (const auto i = first_with(0, top, [](std::int64_t at) { return naive<Out>(from_ordinal<In>(at)) == 1; })) {
    s.naive_one_from = from_ordinal<In>(*i);
  }
  // Without infinities e^-x becomes NaN there, and the naive quotient too.
  if constexpr (Out.has_infinity) {
    const auto i = first_with(-top, 0, [](std::int64_t at) { return naive<Out>(from_ordinal<In>(at)) > 0; });
    if (i && *i > -top) s.naive_zero_until = from_ordinal<In>(*i - 1);
  }
  return s;
}

}  // namespace

saturation_survey survey_sigmoid(const run_options& options) {
  const std::array<saturation (*)(), 9> examinations{&examine<bf16, bf16>, &examine<fp16, fp16>, &examine<tf32, tf32>,
                                                     &examine<e4m3, e4m3>, &examine<e5m2, e5m2>, &examine<fp32, fp32>,
                                                     &examine<fp64, fp64>, &examine<bf16, fp32>, &examine<fp16, fp32>};
  saturation_survey survey;
  survey.results.resize(examinations.size());
  const std::size_t done =
      for_each_index(examinations.size(), options, "sigmoid", [&](std::size_t i) { survey.results[i] = examinations[i](); });
  survey.complete = done == examinations.size();
  survey.results.resize(done);
  return survey;
}

}  // namespace deltaproof::detail::eigenvalues

// Theorems behind this file, by their names in proofs/README.md.
// proved: float.sigmoid.sigmoid_saturates_from, code.constants.sigmoid_bf16_saturates
