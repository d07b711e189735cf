// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
#include "emulate/product_kernels.hpp"

#include <bit>
#include <cstring>
#include <limits>
#include <type_traits>
#include <utility>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace deltaproof::emulation {
namespace {

// Not target_clones: it clones after vectors have been split to the width of the default set. No set contracts, because the
// whole library is compiled with -ffp-contract=off.
namespace baseline {
constexpr std::size_t width = 16;
constexpr bool fuses = false;  // no instruction for sum + a b with one rounding
#include "emulate/product_tiles.inc"
}  // namespace baseline

#if defined(__x86_64__)
#if defined(__clang__)
#pragma clang attribute push(__attribute__((target("avx2,fma"))), apply_to = function)
#else
#pragma GCC push_options
#pragma GCC target("avx2,fma")
#endif
namespace avx2 {
constexpr std::size_t width = 32;
constexpr bool fuses = true;
template <class Vector>
[[gnu::always_inline]] inline void fuse(Vector& sum, float a, const Vector& b) {
  sum = _mm256_fmadd_ps(_mm256_set1_ps(a), b, sum);
}
template <class Vector>
[[gnu::always_inline]] inline void fuse(Vector& sum, double a, const Vector& b) {
  sum = _mm256_fmadd_pd(_mm256_set1_pd(a), b, sum);
}
#include "emulate/product_tiles.inc"  // NOLINT(readability-duplicate-include): once for each set
}  // namespace avx2
#if defined(__clang__)
#pragma clang attribute pop
#pragma clang attribute push(__attribute__((target("avx512f,avx512vl,avx512bw,avx512dq"))), apply_to = function)
#else
#pragma GCC pop_options
#pragma GCC push_options
#pragma GCC target("avx512f,avx512vl,avx512bw,avx512dq")
#endif
namespace avx512 {
constexpr std::size_t width = 64;
constexpr bool fuses = true;
template <class Vector>
[[gnu::always_inline]] inline void fuse(Vector& sum, float a, const Vector& b) {
  sum = _mm512_fmadd_ps(_mm512_set1_ps(a), b, sum);
}
template <class Vector>
[[gnu::always_inline]] inline void fuse(Vector& sum, double a, const Vector& b) {
  sum = _mm512_fmadd_pd(_mm512_set1_pd(a), b, sum);
}
#include "emulate/product_tiles.inc"  // NOLINT(readability-duplicate-include): once for each set
}  // namespace avx512
#if defined(__clang__)
#pragma clang attribute pop
#else
#pragma GCC pop_options
#endif
#endif

}  // namespace

std::vector<instruction_set> supported_sets() {
  std::vector<instruction_set> result{instruction_set::baseline};
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) result.push_back(instruction_set::avx2);
  if (result.size() > 1 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512vl") &&
      __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512dq")) {
    result.push_back(instruction_set::avx512);
  }
#endif
  return result;
}

const kernels& kernels_of(instruction_set set) {
#if defined(__x86_64__)
  if (set == instruction_set::avx512) return avx512::table;
  if (set == instruction_set::avx2) return avx2::table;
#endif
  static_cast<void>(set);
  return baseline::table;
}

const kernels& best_kernels() {
  static const kernels& best = kernels_of(supported_sets().back());
  return best;
}

}  // namespace deltaproof::emulation
