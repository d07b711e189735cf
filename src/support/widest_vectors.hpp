// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
//
// `in_widest_vectors` runs a plain loop as compiled for the widest vectors the machine has. The library is compiled with
// -ffp-contract=off, so that results do not depend on which those are.
#pragma once

// Where the compiler was told of a machine (-march) all is compiled for it, and cannot be inlined into what is not.
#if defined(__x86_64__) && !defined(__AVX2__)
#define DELTAPROOF_CHOOSES_VECTORS 1
#else
#define DELTAPROOF_CHOOSES_VECTORS 0
#endif

namespace deltaproof::detail {

#if DELTAPROOF_CHOOSES_VECTORS
// Its sets by name: told of arch=x86-64-v4, clang takes vectors of half the width.
template <class Loop>
[[gnu::target("avx512f,avx512vl,avx512bw,avx512dq,avx512cd")]] void in_vectors_of_v4(const Loop& loop) {
  loop();
}
template <class Loop>
[[gnu::target("avx2")]] void in_vectors_of_v3(const Loop& loop) {
  loop();
}
#endif

/// Calls loop(), which must be always_inline to be compiled so, with all it calls.
template <class Loop>
void in_widest_vectors(const Loop& loop) {
#if DELTAPROOF_CHOOSES_VECTORS
  static const bool has_v4 = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512vl") &&
                             __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512dq") &&
                             __builtin_cpu_supports("avx512cd");
  static const bool has_v3 = __builtin_cpu_supports("avx2");
  if (has_v4) return in_vectors_of_v4(loop);
  if (has_v3) return in_vectors_of_v3(loop);
#endif
  loop();
}

}  // namespace deltaproof::detail
