// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
//
// The table of binary floating-point formats: what a number can be. After including it you can name
// a format, pass it as a template argument (`template <format F>`), and ask for its limits.
// Exponents are those of the value 1.x * 2^e; subnormals go down to 2^(emin - precision + 1). A format
// without infinities gives its largest pattern to NaN, as OCP's e4m3 does. A new format is a new row here;
// its bit layout stands once more in tests/number/truth.hpp, which trusts nothing of this table.
#pragma once

#include <array>
#include <bit>
#include <cstdint>
#include <limits>
#include <string>
#include <string_view>

#include "deltaproof/support/errors.hpp"

#if defined(__FAST_MATH__) || (defined(__FINITE_MATH_ONLY__) && __FINITE_MATH_ONLY__ > 0)
#error "deltaproof: -ffast-math and -ffinite-math-only may change any result; compile without them"
#endif
static_assert(std::numeric_limits<double>::is_iec559 && std::numeric_limits<float>::is_iec559,
              "deltaproof needs IEEE 754 float and double");

namespace deltaproof {

struct format {
  int precision;      // significant bits, the leading one included
  int emin;           // exponent of the smallest normal
  int emax;           // exponent of the largest value
  int storage_bits;   // bits a stored value takes; tf32 is fp32 with 13 zero bits at the end
  bool has_infinity;  // if not, overflow gives NaN

  friend constexpr bool operator==(const format&, const format&) = default;
};

inline constexpr format bf16{8, -126, 127, 16, true};
inline constexpr format fp16{11, -14, 15, 16, true};
inline constexpr format tf32{11, -126, 127, 32, true};
inline constexpr format e4m3{4, -6, 8, 8, false};
inline constexpr format e5m2{3, -14, 15, 8, true};
inline constexpr format fp32{24, -126, 127, 32, true};
inline constexpr format fp64{53, -1022, 1023, 64, true};

/// A row of the table: `dtype` is the name in safetensors, empty where there is none.
struct named_format {
  std::string_view name;
  format value;
  std::string_view dtype;
};

inline constexpr auto formats = std::to_array<named_format>({
    {"bf16", bf16, "BF16"},
    {"fp16", fp16, "F16"},
    {"tf32", tf32, ""},
    {"e4m3", e4m3, "F8_E4M3"},
    {"e5m2", e5m2, "F8_E5M2"},
    {"fp32", fp32, "F32"},
    {"fp64", fp64, "F64"},
});

namespace detail {

/// 2^exponent, exact, for -1074 <= exponent <= 1023.
constexpr double power_of_two(int exponent) {
  return exponent >= -1022 ? std::bit_cast<double>(static_cast<std::uint64_t>(exponent + 1023) << 52)
                           : std::bit_cast<double>(std::uint64_t{1} << (exponent + 1074));
}

inline constexpr std::uint64_t sign_bit = std::uint64_t{1} << 63;
inline constexpr std::uint64_t infinity_bits = std::uint64_t{0x7ff} << 52;

constexpr double with_sign(double magnitude, bool negative) { return negative ? -magnitude : magnitude; }

}  // namespace detail

/// The largest finite value.
constexpr double largest(format f) {
  const int missing = f.has_infinity ? 1 - f.precision : 2 - f.precision;
  return (2.0 - detail::power_of_two(missing)) * detail::power_of_two(f.emax);
}

/// 2^emin, below which precision is lost.
constexpr double smallest_normal(format f) { return detail::power_of_two(f.emin); }

/// 2^(emin - precision + 1), the distance between neighbours around zero.
constexpr double smallest_subnormal(format f) { return detail::power_of_two(f.emin - f.precision + 1); }

/// u = 2^-precision, the largest relative error of rounding to nearest in the normal range.
constexpr double unit_roundoff(format f) { return detail::power_of_two(-f.precision); }

/// Whether every value of `from` (subnormals, infinities and NaN included) is a value of `to`.
constexpr bool is_lossless(format from, format to) {
  return from.precision <= to.precision && largest(from) <= largest(to) && smallest_subnormal(from) >= smallest_subnormal(to) &&
         (to.has_infinity || !from.has_infinity);
}

/// The name in the table, or "" for a format that is not in it.
constexpr std::string_view name_of(format f) {
  for (const named_format& row : formats) {
    if (row.value == f) return row.name;
  }
  return "";
}

/// Whether tensors in files can have it; otherwise only operands of products can.
constexpr bool has_dtype(format f) {
  for (const named_format& row : formats) {
    if (row.value == f) return !row.dtype.empty();
  }
  return false;
}

/// The format in which its values are stored: itself, or the one of as many bits that holds them all (fp32 for tf32).
constexpr format stored_as(format f) {
  if (has_dtype(f)) return f;
  for (const named_format& row : formats) {
    if (!row.dtype.empty() && row.value.storage_bits == f.storage_bits && is_lossless(f, row.value)) return row.value;
  }
  return f;
}

/// The format of that name.
/// Throws format_error, with the valid names.
inline format format_named(std::string_view name) {
  std::string valid;
  for (const named_format& row : formats) {
    if (row.name == name) return row.value;
    valid += valid.empty() ? "" : ", ";
    valid += row.name;
  }
  throw format_error("unknown number format '" + std::string(name) + "'; the formats are " + valid);
}

}  // namespace deltaproof

// Theorems behind this file, by their names in proofs/README.md.
// proved: float.formats.standard_model, float.formats.relative_error, float.formats.subnormal_error,
// proved: float.formats.bf16_unit_roundoff, float.formats.bf16_relative_error, float.rounding.no_format_is_a_model,
// proved: code.constants.unit_roundoff_bf16_is_one
