// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
//
// The two conversions between number types. `lift<To>(x)` widens and compiles only where every value of the
// source is a value of the target, which the format table decides; `round_to<F>(x)` rounds once, from
// whatever type x has, and is always spelled. rational.hpp, real.hpp and double_double.hpp add their
// types to both when they are included.
#pragma once

#include <concepts>
#include <type_traits>

#include "deltaproof/number/rounded.hpp"
#include "deltaproof/number/traits.hpp"

namespace deltaproof {

namespace detail {

template <FormatScalar From, FormatScalar To>
  requires(is_lossless(format_of<From>, format_of<To>))
struct lift_rule<From, To> {
  static constexpr bool exact = true;
  static constexpr To apply(From x) {
    if constexpr (std::is_floating_point_v<To>)
      return static_cast<To>(static_cast<double>(x));
    else
      return To::from_exact(static_cast<double>(x));
  }
};

template <FormatScalar S>
struct exact_source<S> {
  static constexpr double get(S x) { return static_cast<double>(x); }
};

template <format F, class Mode>
constexpr double round_exact(double x, Mode& mode) {
  return round_value<F>(x, mode);
}
template <format F, class Mode>
double round_exact(const unrounded& x, Mode& mode) {
  return round_unrounded<F>(x, mode);
}

}  // namespace detail

/// Whether `lift<To>(from)` is exact for every value, infinities and NaN included where the target is
/// a floating-point type. Into rational it is exact for every finite value and throws for the others.
template <class From, class To>
concept Lossless = std::same_as<From, To> || detail::lift_rule<From, To>::exact;

/// A type whose values can be rounded to a format.
template <class From>
concept Roundable = requires(const From& x) { detail::exact_source<From>::get(x); };

/// The same value in a type that holds every value of From.
template <class To, class From>
  requires Lossless<From, To>
constexpr To lift(const From& x) {
  if constexpr (std::same_as<From, To>)
    return x;
  else
    return detail::lift_rule<From, To>::apply(x);
}

/// x rounded once to the format F, to nearest even.
template <format F, Roundable From>
constexpr rounded<F> round_to(const From& x) {
  nearest_even mode;
  return rounded<F>::from_exact(detail::round_exact<F>(detail::exact_source<From>::get(x), mode));
}

/// x rounded once to the format F by the given mode, which may be stochastic.
template <format F, Roundable From, RoundingModeRef Mode>
constexpr rounded<F> round_to(const From& x, Mode&& mode) {
  return rounded<F>::from_exact(detail::round_exact<F>(detail::exact_source<From>::get(x), mode));
}

/// x rounded once to the scalar type To (float, double, rounded<F, Mode>, real<P>, double_double) by
/// the mode of that type.
template <class To, class From>
  requires(FormatScalar<To> && Roundable<From>) || requires(const From& x) { detail::round_rule<To, From>::apply(x); }
constexpr To round_to(const From& x) {
  if constexpr (std::is_floating_point_v<To>) {
    return static_cast<To>(round_to<format_of<To>>(x).value());
  } else if constexpr (FormatScalar<To>) {
    typename To::mode_type mode;
    return To::from_exact(detail::round_exact<To::number_format>(detail::exact_source<From>::get(x), mode));
  } else {
    return detail::round_rule<To, From>::apply(x);
  }
}

}  // namespace deltaproof

// Theorems behind this file, by their names in proofs/README.md.
// proved: golden.bf16_operators.add_correct
