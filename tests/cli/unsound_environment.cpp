// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
//
// Preloaded into the program by a test: spoils the floating-point environment before main, as a careless plugin would.

#include <xmmintrin.h>

#include <cfenv>
#include <cstdlib>
#include <string_view>

namespace {

[[gnu::constructor]] void spoil() {
  const char* how = std::getenv("SPOIL");
  const std::string_view what = how ? how : "";
  if (what == "ftz") _mm_setcsr(_mm_getcsr() | 0x8000);
  if (what == "daz") _mm_setcsr(_mm_getcsr() | 0x0040);
  if (what == "upward") std::fesetround(FE_UPWARD);
  if (what == "toward_zero") std::fesetround(FE_TOWARDZERO);
}

}  // namespace
