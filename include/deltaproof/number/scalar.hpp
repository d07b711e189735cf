// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
//
// What generic code may ask of any number type: its name, its zero, one and small integers, whether
// its arithmetic is exact, and whether it has exp. float, double and rounded<F> are known here; other
// types join when their own header is included.
#pragma once

#include <cmath>
#include <concepts>
#include <string>

#include "deltaproof/number/elementary.hpp"
#include "deltaproof/number/rounded.hpp"
#include "deltaproof/number/traits.hpp"

namespace deltaproof {

/// A number type of the library: a field (or its rounded image) with a name.
template <class S>
concept Scalar = std::regular<S> && requires(const S& a, const S& b) {
  { scalar_traits<S>::name() } -> std::convertible_to<std::string>;
  { scalar_traits<S>::from_int(1) } -> std::same_as<S>;
  { a + b } -> std::convertible_to<S>;
  { a - b } -> std::convertible_to<S>;
  { a* b } -> std::convertible_to<S>;
  { a / b } -> std::convertible_to<S>;
  { -a } -> std::convertible_to<S>;
};

/// "bf16", "real<128>", "rational", ...
template <class S>
std::string scalar_name() {
  return scalar_traits<S>::name();
}

template <class S>
constexpr S zero() {
  return scalar_traits<S>::from_int(0);
}

template <class S>
constexpr S one() {
  return scalar_traits<S>::from_int(1);
}

/// The integer n as an S.
/// Throws domain_error where n is not a value of S.
template <class S>
constexpr S from_int(int n) {
  return scalar_traits<S>::from_int(n);
}

/// Whether +, -, *, / of S are exact: rational and modular.
template <class S>
inline constexpr bool is_exact_scalar_v = scalar_traits<S>::is_exact;

namespace detail::elementary_lookup {

using std::exp;
using std::expm1;

template <class S>
concept Has = requires(const S& x) {
  { exp(x) } -> std::same_as<S>;
  { expm1(x) } -> std::same_as<S>;
};

}  // namespace detail::elementary_lookup

/// exp and expm1 exist: float, double, rounded<F>, real<P>. Not for exact scalars.
template <class S>
concept HasExp = detail::elementary_lookup::Has<S>;

}  // namespace deltaproof
