// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
//
// Refuses to compute where the machine or the compiler does not do IEEE 754 arithmetic: contraction of
// a * b + c, reassociation, flush to zero, denormals are zero, another rounding mode, double rounding in
// wider registers. Programs call `require_sound_environment()` first. Flags belong to a translation
// unit, so a user of the headers asks `environment_faults_here()` in each unit that computes.
#pragma once

#include <bit>
#include <cstdint>
#include <string>
#include <vector>

#include "deltaproof/number/format.hpp"
#include "deltaproof/support/errors.hpp"

namespace deltaproof {

/// The environment does not compute as IEEE 754 says.
struct environment_error : error {
  using error::error;
};

/// What is wrong with the arithmetic of this translation unit and thread, one sentence each; empty if
/// nothing. Internal linkage on purpose: each translation unit must test its own compiler flags.
[[nodiscard, maybe_unused]] static inline std::vector<std::string> environment_faults_here() {
  std::vector<std::string> faults;
  // volatile, so that nothing is computed by the compiler.
  const volatile double one = 1;
  const volatile double tiny = 0x1p-60;
  const volatile double half_ulp = 0x1p-53;
  const double unit = one;

  const volatile double up = unit + tiny;
  const volatile double down = -unit - tiny;
  const volatile double inward = unit - tiny;
  const volatile double tie = (1 + 0x1p-52) * unit + half_ulp;
  if (up != 1 || down != -1 || inward != 1 || tie != 1 + 0x1p-51) {
    faults.emplace_back("the rounding mode is not round to nearest, ties to even: call fesetround(FE_TONEAREST)");
  } else {
    // These three tell faults apart only where single operations round to nearest.
    const volatile double factor = 1 + 0x1p-30;
    const volatile double minus_square = -(1 + 0x1p-29);
    const double a = factor;
    const double c = minus_square;
    const volatile double large = 0x1p53;
    const double big = large;
    const volatile double above_half_ulp = 0x1.001p-53;
    const volatile double widened = unit + above_half_ulp;
    const volatile double contracted = a * a + c;
    const volatile double reassociated = (unit + big) - big;
    if (widened != 1 + 0x1p-52) {
      faults.emplace_back("results are rounded twice, first to a wider register: compile for SSE2 (-mfpmath=sse)");
    } else {
      if (contracted != 0) faults.emplace_back("a * b + c is contracted to fma: compile with -ffp-contract=off");
      if (reassociated != 0) faults.emplace_back("sums are reassociated: compile without -fassociative-math");
    }
  }

  const volatile double least_normal = 0x1p-1022;
  const volatile double flushed = least_normal * 0.5;
  if (std::bit_cast<std::uint64_t>(static_cast<double>(flushed)) == 0) {
    faults.emplace_back("subnormal results are flushed to zero (FTZ): clear MXCSR bit 15, and link without -ffast-math");
  }
  const volatile double subnormal = 0x1p-1060;
  const volatile double scaled = subnormal * 0x1p100;
  if (std::bit_cast<std::uint64_t>(static_cast<double>(scaled)) == 0) {
    faults.emplace_back("subnormal operands are read as zero (DAZ): clear MXCSR bit 6, and link without -ffast-math");
  }
  return faults;
}

/// The same for the compiled library.
std::vector<std::string> environment_faults();

/// Throws environment_error with every fault of the compiled library's arithmetic.
void require_sound_environment();

}  // namespace deltaproof
