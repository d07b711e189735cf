// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
//
// The points where a number type tells the library about itself: its name, whether its arithmetic is
// exact, its format, and which conversions from and to it are exact. Each type's own header
// specialises them; user code includes scalar.hpp and convert.hpp instead.
#pragma once

#include <type_traits>

#include "deltaproof/number/format.hpp"

namespace deltaproof {

/// Specialised for every scalar: `name()`, `from_int(int)`, `is_exact`.
template <class S>
struct scalar_traits;

template <>
struct scalar_traits<double> {
  static constexpr bool is_exact = false;
  static std::string name() { return "double"; }
  static constexpr double from_int(int n) { return n; }
};

template <>
struct scalar_traits<float> {
  static constexpr bool is_exact = false;
  static std::string name() { return "float"; }
  static constexpr float from_int(int n) {
    const auto x = static_cast<float>(n);
    if (static_cast<double>(x) != n) {
      throw domain_error(std::to_string(n) + " has no exact float; round_to<float> rounds it");
    }
    return x;
  }
};

namespace detail {

/// Specialised for types whose values are exactly those of a row of the format table.
template <class S>
struct format_trait {};
template <>
struct format_trait<float> {
  static constexpr format value = fp32;
};
template <>
struct format_trait<double> {
  static constexpr format value = fp64;
};

/// Specialised for conversions that lose nothing: `exact = true` and `apply`.
template <class From, class To>
struct lift_rule {
  static constexpr bool exact = false;
};

/// Specialised for types that can be rounded: `get(x)` is a double or an `unrounded`, exactly x.
template <class S>
struct exact_source {};

/// Specialised for types that `round_to<To>(x)` rounds to by a way of their own.
template <class To, class From>
struct round_rule {};

}  // namespace detail

/// float, double and rounded<F>: a type with a format.
template <class S>
concept FormatScalar = requires { detail::format_trait<S>::value; };

template <FormatScalar S>
inline constexpr format format_of = detail::format_trait<S>::value;

/// Significant bits of a floating-point scalar.
template <class S>
inline constexpr int precision_bits = 0;
template <FormatScalar S>
inline constexpr int precision_bits<S> = format_of<S>.precision;

}  // namespace deltaproof
