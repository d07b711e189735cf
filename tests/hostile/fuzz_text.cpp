// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
//
// The fuzz targets of what is read as text: a plan, a suite, a recorded verdict and a baseline, one program each
// (DELTAPROOF_FUZZ_KIND). The library's own errors are the expected end; anything else is a fault.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "deltaproof/support/errors.hpp"
#include "hostile/readers.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace deltaproof;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  constexpr auto kind = testing::hostile_kind::DELTAPROOF_FUZZ_KIND;
  try {
    if constexpr (kind == testing::hostile_kind::plan) testing::use_plan(parse_plan(text, "input"));
    if constexpr (kind == testing::hostile_kind::suite) (void)parse_suite(text, "input");
    if constexpr (kind == testing::hostile_kind::verdict) (void)parse_verdict(text, "input");
    if constexpr (kind == testing::hostile_kind::baseline) (void)compare_baseline({}, text, "input");
  } catch (const error&) {
    return 0;
  }
  return 0;
}
