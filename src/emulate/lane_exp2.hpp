// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
//
// 2^x of a float without branches, so that a loop over it vectorises and every instruction set gives the same bits. Rounds:
// to nearest, but for an x whose 2^x lies within 2^-22 ulp of the middle of two floats. It exists because the exponentials
// of gates per channel are the larger part of an emulation of KDA.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>

namespace deltaproof::emulation {

/// With n the integer next to x and z = (x - n) ln 2, |z| <= 0.3466: 2^n times the Taylor polynomial of e^z of degree 11,
/// whose remainder is below 0.3466^12 / 12! * 1.42 < 2^-46 of the result; the roundings of doubles add less than 2^-50.
[[gnu::always_inline]] inline float exp2_lane(float x) {
  constexpr double shift = 0x1.8p52;  // adding it leaves the nearest integer in the low bits
  // Beyond +-200 the result is infinity or 0 as at 200: compared as integers, which g++ vectorises. NaN returns at the end.
  const auto bits = std::bit_cast<std::uint32_t>(x);
  const std::uint32_t magnitude = std::min(bits & 0x7fffffffU, std::bit_cast<std::uint32_t>(200.0F));
  const double held = std::bit_cast<float>(magnitude | (bits & 0x80000000U));
  const double shifted = held + shift;
  const double z = (held - (shifted - shift)) * 0x1.62e42fefa39efp-1;
  double sum = 1.0 / 39916800;
  sum = sum * z + 1.0 / 3628800;
  sum = sum * z + 1.0 / 362880;
  sum = sum * z + 1.0 / 40320;
  sum = sum * z + 1.0 / 5040;
  sum = sum * z + 1.0 / 720;
  sum = sum * z + 1.0 / 120;
  sum = sum * z + 1.0 / 24;
  sum = sum * z + 1.0 / 6;
  sum = sum * z + 0.5;
  sum = sum * z + 1;
  sum = sum * z + 1;
  const auto power = std::bit_cast<double>((std::bit_cast<std::uint64_t>(shifted) << 52) + std::bit_cast<std::uint64_t>(1.0));
  const std::uint32_t not_a_number = (bits & 0x7fffffffU) > 0x7f800000U ? 0x7fc00000U : 0U;
  return std::bit_cast<float>(std::bit_cast<std::uint32_t>(static_cast<float>(sum * power)) | not_a_number);
}

}  // namespace deltaproof::emulation
