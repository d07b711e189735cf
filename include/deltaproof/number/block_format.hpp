// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
//
// Matrices stored as small numbers with scales: e4m3, e5m2, int8, int4 with a scale for the tensor, a row, a column, a tile or
// a block, and the formats whose scales a standard fixes, mxfp8 and nvfp4. After including it you can name such a format
// (`block_format_named`, `scaled`), ask what it costs (`stored_bits`, `largest_error`), and pass a matrix through it, bit for bit
// (`block_store`). Matrices are row-major; rows and columns are those of the matrix, a block lies along a row.
//
// What is stored, in the arithmetic of Real (float or double, every operation rounded to nearest once):
//   amax = the largest magnitude of a group; a group with a NaN or an infinity becomes NaN
//   scale s = amax / L rounded to nearest to the scale's format, saturating; L the element's largest value
//   in e8m0: s = 2^(floor(log2 amax) - emax), emax the exponent of the element's largest power of two, held to -127 ... 127
//   nvfp4: t = amax of the tensor / (6 * 448) in fp32, the block's scale (amax / 6) / t in e4m3, s their product
//   code = x / s rounded to the element, beyond L saturating; where s is 0 the group is 0
//   what is read back is code * s
// Without a scale x is rounded to the element itself, and overflow is that of the format: infinity, in e4m3 NaN.
// Sources: OCP Microscaling Formats (MX) Specification v1.0, sections 5 and 6.3; OCP 8-bit floating point v1.0; NVIDIA's recipe
// for NVFP4 (arXiv 2509.25149, appendix), its multiplications by reciprocals written as divisions.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "deltaproof/number/format.hpp"
#include "deltaproof/number/random.hpp"

namespace deltaproof {

/// One number of a block. Its values are the multiples of 2^(max(e, emin) - precision + 1) up to `largest`, e the exponent of the
/// value: integers are such numbers too, none of them beyond 2^emin.
struct element_format {
  std::string_view name;
  int precision = 24;
  int emin = -126;
  int emax = 127;  ///< of the largest power of two
  double largest = 0;
  int bits = 32;
  bool integer = false;       ///< -largest ... largest, without a negative zero
  bool has_infinity = false;  ///< overflow without a scale gives it, else NaN

  friend constexpr bool operator==(const element_format&, const element_format&) = default;
};

inline constexpr auto element_formats = std::to_array<element_format>({
    {"fp32", fp32.precision, fp32.emin, fp32.emax, largest(fp32), 32, false, true},
    {"bf16", bf16.precision, bf16.emin, bf16.emax, largest(bf16), 16, false, true},
    {"fp16", fp16.precision, fp16.emin, fp16.emax, largest(fp16), 16, false, true},
    {"e4m3", e4m3.precision, e4m3.emin, e4m3.emax, largest(e4m3), 8, false, false},
    {"e5m2", e5m2.precision, e5m2.emin, e5m2.emax, largest(e5m2), 8, false, true},
    {"e2m1", 2, 0, 2, 6, 4, false, false},
    {"int8", 8, 7, 6, 127, 8, true, false},
    {"int4", 4, 3, 2, 7, 4, true, false},
});
/// Throws: format_error with the names.
[[nodiscard]] const element_format& element_named(std::string_view name);

/// What a scale is stored in. e8m0: a power of two, 2^-127 ... 2^127.
enum class scale_format { fp32, bf16, fp16, e4m3, e8m0 };
inline constexpr std::array<std::string_view, 5> scale_format_names{"fp32", "bf16", "fp16", "e4m3", "e8m0"};
[[nodiscard]] constexpr std::string_view name_of(scale_format f) { return scale_format_names[static_cast<std::size_t>(f)]; }

struct block_format {
  element_format element = element_formats[0];
  bool scaled = false;
  std::size_t rows = 0;  ///< of a group that shares a scale; 0: all of the matrix
  std::size_t cols = 0;
  scale_format scale = scale_format::fp32;
  bool tensor_scale = false;  ///< an fp32 scale of the whole matrix besides (nvfp4)

  friend constexpr bool operator==(const block_format&, const block_format&) = default;
};

/// Elements without a scale.
[[nodiscard]] block_format unscaled(std::string_view element);
/// layout: "tensor", "row", "column", "tile:RxC" or "block:N". Throws: format_error for another layout, or an element that no
/// scale helps (fp32, bf16).
[[nodiscard]] block_format scaled(std::string_view element, std::string_view layout, scale_format scale);
/// "mxfp8" (elements e4m3), "mxfp8-e5m2", "nvfp4", or an element without a scale. Throws: format_error with the names.
[[nodiscard]] block_format block_format_named(std::string_view name);
/// The names whose scales are part of the format.
inline constexpr std::array<std::string_view, 3> fixed_block_formats{"mxfp8", "mxfp8-e5m2", "nvfp4"};
/// "int8, scale row in fp32", "nvfp4", "bf16".
[[nodiscard]] std::string text_of(const block_format& f);
/// "row", "tile:4x16", "none".
[[nodiscard]] std::string layout_of(const block_format& f);

/// Bits that a rows x cols matrix takes, scales included.
[[nodiscard]] std::size_t stored_bits(const block_format& f, std::size_t rows, std::size_t cols);

/// How an element is rounded. `nearest`: a tie to even. `stochastic`: away from zero with the probability that makes the
/// expectation exact, rounded up to a multiple of 2^-24. `error_feedback`: to nearest, after what the last store lost was added.
enum class block_rounding { nearest, stochastic, error_feedback };
inline constexpr std::array<std::string_view, 3> block_rounding_names{"nearest", "stochastic", "error-feedback"};
[[nodiscard]] constexpr std::string_view name_of(block_rounding r) { return block_rounding_names[static_cast<std::size_t>(r)]; }

/// What |stored - x| cannot exceed for any x of a group whose largest magnitude is at most amax (in nvfp4: of the whole matrix),
/// error feedback's carried residual aside. Infinite where the format may overflow.
[[nodiscard]] double largest_error(const block_format& f, block_rounding r, double amax);

/// A matrix on its way through a cache: what was carried over and which random numbers come next.
template <class Real>
class block_store {
 public:
  /// `residual`: of what error feedback carries, without a scale. `seed`, `stream`: of stochastic rounding.
  block_store(const block_format& f, block_rounding rounding, const element_format& residual, std::uint64_t seed,
              std::uint64_t stream);

  /// x stored and read back, in place. Entry i of the n-th store takes the 32-bit word n * rows * cols + i of the stream, two
  /// words a number, the low one first; its upper 24 bits are the fraction that rounds away. A store that comes again with the
  /// same n begins with the residual it began with before. `scales`, where it is given, gets the scale of each entry. Throws:
  /// shape_error unless x has rows * cols entries, and as many as in the store before.
  void operator()(std::span<Real> x, std::size_t rows, std::size_t cols, std::uint64_t n, std::vector<Real>* scales = nullptr);

 private:
  void find_scales(const Real* x, std::size_t rows, std::size_t cols);
  [[nodiscard]] Real scale_of(Real amax) const;
  void round_row(Real* x, std::size_t cols);
  void draw(std::size_t count, std::uint64_t word);

  block_format format_;
  block_rounding rounding_;
  element_format residual_format_;
  philox random_;
  Real tensor_scale_ = 1;
  std::vector<Real> amax_, divisor_, scale_;  // of each column of the rows at hand
  std::vector<Real> uniform_;
  std::vector<Real> residual_, before_;  // after the last store, and before it
  std::optional<std::uint64_t> last_;
};

extern template class block_store<float>;
extern template class block_store<double>;

}  // namespace deltaproof
