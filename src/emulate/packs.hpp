// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
//
// Neighbouring floats, doubles or double-doubles as one vector. By itself g++ makes no vectors of double-doubles, and clang keeps
// an array of sums in memory through the loop that adds to it.
#pragma once

#include <cstddef>
#include <type_traits>

#include "deltaproof/number/double_double.hpp"

namespace deltaproof {

namespace {

typedef double eight __attribute__((vector_size(64)));
typedef float sixteen __attribute__((vector_size(64)));

/// Neighbouring numbers at once. Vectors go by reference: how they are passed by value depends on the machine.
template <class S>
struct pack;
template <class Real, class Vector>
struct pack_of_vectors {
  using type = Vector;
  static constexpr std::size_t count = sizeof(type) / sizeof(Real);
  [[gnu::always_inline]] static void load(type& to, const Real* from) { __builtin_memcpy(&to, from, sizeof(type)); }
  [[gnu::always_inline]] static void store(Real* to, const type& from) { __builtin_memcpy(to, &from, sizeof(type)); }
  [[gnu::always_inline]] static void fill(type& to, Real x) { to = x - type{}; }  // minus, which keeps -0
};
template <>
struct pack<float> : pack_of_vectors<float, sixteen> {};
template <>
struct pack<double> : pack_of_vectors<double, eight> {
  [[gnu::always_inline]] static double sum(const type& x) {
    return ((x[0] + x[1]) + (x[2] + x[3])) + ((x[4] + x[5]) + (x[6] + x[7]));
  }
};
/// In memory each number is its two parts.
template <>
struct pack<double_double> {
  using type = basic_double_double<eight>;
  static constexpr std::size_t count = 8;
  [[gnu::always_inline]] static void load(type& to, const double_double* from) {
    eight a, b;
    __builtin_memcpy(&a, from, sizeof(a));
    __builtin_memcpy(&b, from + 4, sizeof(b));
    to = type::of_parts(__builtin_shufflevector(a, b, 0, 2, 4, 6, 8, 10, 12, 14),
                        __builtin_shufflevector(a, b, 1, 3, 5, 7, 9, 11, 13, 15));
  }
  [[gnu::always_inline]] static void store(double_double* to, const type& from) {
    const eight a = __builtin_shufflevector(from.hi(), from.lo(), 0, 8, 1, 9, 2, 10, 3, 11),
                b = __builtin_shufflevector(from.hi(), from.lo(), 4, 12, 5, 13, 6, 14, 7, 15);
    __builtin_memcpy(static_cast<void*>(to), &a, sizeof(a));
    __builtin_memcpy(static_cast<void*>(to + 4), &b, sizeof(b));
  }
  [[gnu::always_inline]] static void fill(type& to, const double_double& x) { to = type(x); }
  [[gnu::always_inline]] static double_double sum(const type& x) {
    double_double parts[count];
    store(parts, x);
    return ((parts[0] + parts[1]) + (parts[2] + parts[3])) + ((parts[4] + parts[5]) + (parts[6] + parts[7]));
  }
};
/// Of what is given in doubles.
template <class S>
[[gnu::always_inline]] inline void load_given(typename pack<S>::type& to, const double* from) {
  eight given;
  pack<double>::load(given, from);
  to = typename pack<S>::type(given);
}

}  // namespace

}  // namespace deltaproof
