// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT

#include "oracle/solve/fresh.hpp"

#if __has_include(<sys/mman.h>)
#include <sys/mman.h>
#endif

#include <cstdint>
#include <limits>
#include <vector>

#include "support/parallel.hpp"

namespace deltaproof {
namespace {

/// n copies of x. A large answer is fresh memory, whose first touch costs a fault for each page: large ones where the system
/// has them.
void fill_fresh(std::vector<double>& to, std::size_t n, double x) {
  to.reserve(n);
#ifdef MADV_HUGEPAGE
  constexpr std::uintptr_t large = std::uintptr_t{1} << 21;
  const std::size_t bytes = n * sizeof(double), before = (large - reinterpret_cast<std::uintptr_t>(to.data()) % large) % large;
  const std::size_t whole = bytes > before ? (bytes - before) / large * large : 0;
  // Advice: its failure changes nothing.
  if (whole > 0) madvise(reinterpret_cast<std::byte*>(to.data()) + before, whole, MADV_HUGEPAGE);
#endif
  to.assign(n, x);
}

}  // namespace

void fill_both(reference_tensor& t, std::size_t n, unsigned threads) {
  constexpr std::size_t few = 65536;  // a thread costs more than they do
  parallel_for(2, n < few ? 1 : threads, [&](std::size_t i) {
    if (i == 0) fill_fresh(t.value, n, std::numeric_limits<double>::quiet_NaN());
    if (i == 1) fill_fresh(t.radius, n, std::numeric_limits<double>::infinity());
  });
}

}  // namespace deltaproof
