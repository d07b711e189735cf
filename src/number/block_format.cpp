// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
#include "deltaproof/number/block_format.hpp"

#include <algorithm>
#include <bit>
#include <charconv>
#include <cmath>
#include <limits>
#include <type_traits>

#include "deltaproof/number/rounding.hpp"
#include "support/widest_vectors.hpp"

namespace deltaproof {

namespace {

constexpr std::size_t nvfp4_block = 16;
constexpr std::size_t mx_block = 32;

std::size_t groups_of(std::size_t all, std::size_t each) { return each == 0 ? (all > 0 ? 1 : 0) : (all + each - 1) / each; }

int bits_of(scale_format f) {
  switch (f) {
    case scale_format::fp32:
      return 32;
    case scale_format::bf16:
    case scale_format::fp16:
      return 16;
    default:
      return 8;
  }
}

/// To nearest, saturating; e8m0 is not among them.
double rounded_scale(double x, scale_format f) {
  nearest_saturating mode;
  switch (f) {
    case scale_format::fp32:
      return detail::round_value<fp32>(x, mode);
    case scale_format::bf16:
      return detail::round_value<bf16>(x, mode);
    case scale_format::fp16:
      return detail::round_value<fp16>(x, mode);
    default:
      return detail::round_value<e4m3>(x, mode);
  }
}

double power_scale(double amax, int emax) {
  int exponent = 0;
  std::frexp(amax, &exponent);
  return std::ldexp(1.0, std::clamp(exponent - 1 - emax, -127, 127));
}

/// A number of rows or columns, or nothing where the text is no such number.
std::optional<std::size_t> count_in(std::string_view text) {
  std::size_t value = 0;
  const auto [end, bad] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (bad != std::errc() || end != text.data() + text.size() || value == 0) return std::nullopt;
  return value;
}

bool needs_scale(const element_format& e) { return e.integer || e.name == "e2m1"; }

std::string names_of_elements() {
  std::string all;
  for (const element_format& e : element_formats) all += (all.empty() ? "" : ", ") + std::string(e.name);
  return all;
}

/// The grid of an element in Real, without branches, so that a loop over it vectorises.
template <class Real>
struct element_grid {
  using bits_type = std::conditional_t<sizeof(Real) == 4, std::uint32_t, std::uint64_t>;
  static constexpr bits_type sign = bits_type{1} << (sizeof(Real) * 8 - 1);
  static constexpr bits_type exponent_field = std::bit_cast<bits_type>(std::numeric_limits<Real>::infinity());
  static constexpr Real magic = sizeof(Real) == 4 ? Real(0x1p23) : Real(0x1p52);

  Real lowest, highest, unit, largest, beyond;

  element_grid(const element_format& e, bool saturates)
      : lowest{static_cast<Real>(detail::power_of_two(e.emin))},
        highest{static_cast<Real>(detail::power_of_two(std::max(e.emax, e.emin)))},
        unit{static_cast<Real>(detail::power_of_two(1 - e.precision))},
        largest{static_cast<Real>(e.largest)},
        beyond{saturates        ? static_cast<Real>(e.largest)
               : e.has_infinity ? std::numeric_limits<Real>::infinity()
                                : std::numeric_limits<Real>::quiet_NaN()} {}

  [[gnu::always_inline]] Real quantum(bits_type magnitude) const {
    Real power = std::bit_cast<Real>(magnitude & exponent_field);
    power = power < lowest ? lowest : power;
    power = power > highest ? highest : power;
    return power * unit;
  }
  /// `away`: a fraction of a quantum below it rounds away from zero; nothing in `nearest`.
  [[gnu::always_inline]] Real nearest(Real x) const {
    const auto bits = std::bit_cast<bits_type>(x);
    const Real q = quantum(bits & ~sign);
    const Real steps = std::bit_cast<Real>(bits & ~sign) / q;
    return finished((steps + magic) - magic, steps, q, bits);
  }
  [[gnu::always_inline]] Real stochastic(Real x, Real uniform) const {
    const auto bits = std::bit_cast<bits_type>(x);
    const Real q = quantum(bits & ~sign);
    const Real steps = std::bit_cast<Real>(bits & ~sign) / q;
    Real below = (steps + magic) - magic;
    below -= below > steps ? Real(1) : Real(0);
    below += uniform < steps - below ? Real(1) : Real(0);
    return finished(below, steps, q, bits);
  }
  [[gnu::always_inline]] Real finished(Real rounded, Real steps, Real q, bits_type bits) const {
    rounded = steps >= magic ? steps : rounded;  // far beyond the largest value
    const Real kept = rounded * q;
    const Real magnitude = kept > largest ? beyond : kept;
    return std::bit_cast<Real>(std::bit_cast<bits_type>(magnitude) | (bits & sign));
  }
};

}  // namespace

const element_format& element_named(std::string_view name) {
  for (const element_format& e : element_formats) {
    if (e.name == name) return e;
  }
  throw format_error("unknown element format \"" + std::string(name) + "\"; the element formats are " + names_of_elements());
}

block_format unscaled(std::string_view element) {
  const element_format& e = element_named(element);
  if (needs_scale(e))
    throw format_error("numbers in " + std::string(element) +
                       " need a scale; set scale to tensor, row, column, tile:RxC or block:N");
  return {e, false, 0, 0, scale_format::fp32, false};
}

block_format scaled(std::string_view element, std::string_view layout, scale_format scale) {
  block_format f{element_named(element), true, 0, 0, scale, false};
  if (f.element.emax == fp32.emax) {
    throw format_error("a scale does nothing for " + std::string(element) +
                       ", which has the exponents of fp32; use no scale (in a plan: scale = \"none\" and no scale_format), or "
                       "take fp16, e4m3, e5m2, int8 or int4");
  }
  const auto after = [&](std::string_view word) {
    return layout.starts_with(word) ? layout.substr(word.size()) : std::string_view();
  };
  if (layout == "tensor") return f;
  if (layout == "row") f.rows = 1;
  if (layout == "column") f.cols = 1;
  if (f.rows + f.cols > 0) return f;
  if (const auto n = count_in(after("block:"))) {
    f.rows = 1;
    f.cols = *n;
    return f;
  }
  const std::string_view tile = after("tile:");
  const std::size_t by = tile.find('x');
  if (by != std::string_view::npos) {
    const auto rows = count_in(tile.substr(0, by)), cols = count_in(tile.substr(by + 1));
    if (rows && cols) {
      f.rows = *rows;
      f.cols = *cols;
      return f;
    }
  }
  throw format_error("unknown layout of scales \"" + std::string(layout) +
                     "\"; use tensor, row, column, tile:RxC or block:N, where R, C and N are whole numbers of at least 1");
}

block_format block_format_named(std::string_view name) {
  if (name == "mxfp8" || name == "mxfp8-e5m2")
    return {element_named(name == "mxfp8" ? "e4m3" : "e5m2"), true, 1, mx_block, scale_format::e8m0, false};
  if (name == "nvfp4") return {element_named("e2m1"), true, 1, nvfp4_block, scale_format::e4m3, true};
  for (const element_format& e : element_formats) {
    if (e.name == name) return unscaled(name);
  }
  std::string known;
  for (const element_format& e : element_formats) {
    if (!needs_scale(e)) known += std::string(e.name) + ", ";
  }
  throw format_error("unknown stored format \"" + std::string(name) + "\"; there are " + known + "mxfp8, mxfp8-e5m2, nvfp4");
}

std::string layout_of(const block_format& f) {
  if (!f.scaled) return "none";
  if (f.rows == 0 && f.cols == 0) return "tensor";
  if (f.rows == 1 && f.cols == 0) return "row";
  if (f.rows == 0) return "column";
  if (f.rows == 1) return "block:" + std::to_string(f.cols);
  return "tile:" + std::to_string(f.rows) + "x" + std::to_string(f.cols);
}

std::string text_of(const block_format& f) {
  for (const std::string_view name : fixed_block_formats) {
    if (block_format_named(name) == f) return std::string(name);
  }
  const std::string element(f.element.name);
  return f.scaled ? element + ", scale " + layout_of(f) + " in " + std::string(name_of(f.scale)) : element;
}

std::size_t stored_bits(const block_format& f, std::size_t rows, std::size_t cols) {
  std::size_t bits = rows * cols * static_cast<std::size_t>(f.element.bits);
  if (f.scaled) bits += groups_of(rows, f.rows) * groups_of(cols, f.cols) * static_cast<std::size_t>(bits_of(f.scale));
  return bits + (f.tensor_scale ? 32 : 0);
}

// The largest quantum of a code is that of L; a rounded code errs by half of it (stochastically: by all), in units of s, and a
// clipped one by what amax / s exceeds L. Both are taken at the largest s and at the smallest that amax allows.
double largest_error(const block_format& f, block_rounding r, double amax) {
  constexpr double infinity = std::numeric_limits<double>::infinity();
  if (!(amax < infinity)) return infinity;
  const element_format& e = f.element;
  const double whole = r == block_rounding::stochastic ? 1 : 0.5;
  const auto step_at = [&](double x) {
    return std::ldexp(1.0, std::max(x > 0 ? std::ilogb(x) : e.emin, e.emin) - e.precision + 1) * whole;
  };
  if (!f.scaled) return amax + step_at(amax) > e.largest ? infinity : step_at(amax) * (1 + 0x1p-20);
  const double top = step_at(e.largest);
  if (f.scale == scale_format::e8m0) {
    const double s = power_scale(amax, e.emax);
    return (amax == 0 ? 0 : std::max(top * s, amax - e.largest * s)) * (1 + 0x1p-20) + amax * 0x1p-20;
  }
  const double u = f.scale == scale_format::fp32   ? unit_roundoff(fp32)
                   : f.scale == scale_format::bf16 ? unit_roundoff(bf16)
                   : f.scale == scale_format::fp16 ? unit_roundoff(fp16)
                                                   : unit_roundoff(e4m3);
  const format of_scale = f.scale == scale_format::fp16   ? fp16
                          : f.scale == scale_format::e4m3 ? e4m3
                          : f.scale == scale_format::bf16 ? bf16
                                                          : fp32;
  // Below its normal range a scale errs by half its smallest value; beyond its largest one it saturates.
  const double unit = f.tensor_scale ? amax / (e.largest * largest(e4m3)) : 1;
  const double ideal = amax / e.largest, most = largest(of_scale) * unit, lost = smallest_subnormal(of_scale) / 2 * unit;
  const double s = ideal * (1 + u) + lost;
  const double clipped = std::max(amax * u + e.largest * lost, amax - e.largest * most);
  const double bound = std::max(top * s, clipped) * (1 + 0x1p-18) + amax * 0x1p-20;
  // To nearest, 0 among the values: never more than x itself.
  return r == block_rounding::stochastic ? bound : std::min(bound, amax);
}

template <class Real>
block_store<Real>::block_store(const block_format& f, block_rounding rounding, const element_format& residual, std::uint64_t seed,
                               std::uint64_t stream)
    : format_{f}, rounding_{rounding}, residual_format_{residual}, random_{seed, stream} {}

template <class Real>
Real block_store<Real>::scale_of(Real amax) const {
  if (!(amax <= std::numeric_limits<Real>::max())) return std::numeric_limits<Real>::quiet_NaN();
  if (amax == 0) return 0;
  if (format_.scale == scale_format::e8m0) return static_cast<Real>(power_scale(static_cast<double>(amax), format_.element.emax));
  const Real wanted = amax / static_cast<Real>(format_.element.largest);
  if (!format_.tensor_scale) return static_cast<Real>(rounded_scale(static_cast<double>(wanted), format_.scale));
  if (!(tensor_scale_ > 0)) return tensor_scale_;
  return static_cast<Real>(rounded_scale(static_cast<double>(wanted / tensor_scale_), format_.scale)) * tensor_scale_;
}

/// The largest magnitude by its bits, so that NaN is above infinity; of each column, then of each group of columns.
template <class Real>
void block_store<Real>::find_scales(const Real* x, std::size_t rows, std::size_t cols) {
  using bits_type = typename element_grid<Real>::bits_type;
  amax_.assign(cols, Real(0));
  detail::in_widest_vectors([&]() __attribute__((always_inline)) {
    for (std::size_t i = 0; i < rows; ++i) {
      const Real* const row = x + i * cols;
      for (std::size_t j = 0; j < cols; ++j) {
        const bits_type size = std::bit_cast<bits_type>(row[j]) & ~element_grid<Real>::sign;
        const auto most = std::bit_cast<bits_type>(amax_[j]);
        amax_[j] = std::bit_cast<Real>(size > most ? size : most);
      }
    }
  });
  const std::size_t width = format_.cols == 0 ? std::max<std::size_t>(cols, 1) : format_.cols;
  for (std::size_t first = 0; first < cols; first += width) {
    const std::size_t end = std::min(first + width, cols);
    bits_type most = 0;
    for (std::size_t j = first; j < end; ++j) most = std::max(most, std::bit_cast<bits_type>(amax_[j]));
    const Real s = scale_of(std::bit_cast<Real>(most));
    for (std::size_t j = first; j < end; ++j) {
      scale_[j] = s;
      divisor_[j] = s == 0 ? std::numeric_limits<Real>::infinity() : s;
    }
  }
}

template <class Real>
void block_store<Real>::draw(std::size_t count, std::uint64_t word) {
  random_.seek(word / 2);
  std::uint64_t number = 0;
  for (std::size_t i = 0; i < count; ++i, ++word) {
    if (i == 0 || word % 2 == 0) number = random_();
    const auto bits = static_cast<std::uint32_t>(word % 2 == 0 ? number : number >> 32);
    uniform_[i] = static_cast<Real>(bits >> 8) * Real(0x1p-24);
  }
}

template <class Real>
void block_store<Real>::round_row(Real* x, std::size_t cols) {
  const element_grid<Real> grid(format_.element, format_.scaled);
  const Real* const uniform = uniform_.data();
  const Real* const divisor = divisor_.data();
  const Real* const scale = scale_.data();
  // +0 takes the sign off a zero of an integer.
  const Real plain = format_.element.integer ? Real(0) : -Real(0);
  if (rounding_ == block_rounding::stochastic) {
    detail::in_widest_vectors([&]() __attribute__((always_inline)) {
      for (std::size_t j = 0; j < cols; ++j) x[j] = (grid.stochastic(x[j] / divisor[j], uniform[j]) + plain) * scale[j];
    });
  } else {
    detail::in_widest_vectors([&]() __attribute__((always_inline)) {
      for (std::size_t j = 0; j < cols; ++j) x[j] = (grid.nearest(x[j] / divisor[j]) + plain) * scale[j];
    });
  }
}

template <class Real>
void block_store<Real>::operator()(std::span<Real> x, std::size_t rows, std::size_t cols, std::uint64_t n,
                                   std::vector<Real>* scales) {
  if (x.size() != rows * cols)
    throw shape_error("block_store: " + std::to_string(x.size()) + " numbers for a matrix of " + std::to_string(rows) + " x " +
                      std::to_string(cols) + "; give rows x columns numbers");
  if (!residual_.empty() && residual_.size() != x.size())
    throw shape_error("block_store: " + std::to_string(x.size()) + " numbers, but " + std::to_string(residual_.size()) +
                      " at the first call; give as many at every call");
  const bool feeds_back = rounding_ == block_rounding::error_feedback;
  if (feeds_back) {
    if (!last_) residual_.assign(x.size(), Real(0));
    if (last_ != n) before_ = residual_;
    detail::in_widest_vectors([&]() __attribute__((always_inline)) {
      for (std::size_t i = 0; i < x.size(); ++i) x[i] += before_[i];
    });
    residual_.assign(x.begin(), x.end());  // what is wanted, until it is known what is kept of it
  }
  last_ = n;
  divisor_.assign(cols, Real(1));
  scale_.assign(cols, Real(1));
  uniform_.resize(cols);
  if (scales != nullptr) scales->clear();
  const bool rounds = !(std::is_same_v<Real, float> && format_.element.name == "fp32");
  if (format_.tensor_scale) {
    Real amax = 0;
    for (const Real value : x) amax = std::fabs(value) <= amax ? amax : amax == amax ? std::fabs(value) : amax;
    tensor_scale_ =
        amax <= std::numeric_limits<Real>::max()
            ? static_cast<Real>(rounded_scale(
                  static_cast<double>(amax / static_cast<Real>(format_.element.largest * largest(e4m3))), scale_format::fp32))
            : std::numeric_limits<Real>::quiet_NaN();
  }
  const std::size_t height = format_.rows == 0 ? std::max<std::size_t>(rows, 1) : format_.rows;
  for (std::size_t first = 0; first < rows && rounds; first += height) {
    const std::size_t end = std::min(first + height, rows);
    if (format_.scaled) find_scales(x.data() + first * cols, end - first, cols);
    for (std::size_t i = first; i < end; ++i) {
      if (rounding_ == block_rounding::stochastic) draw(cols, n * x.size() + i * cols);
      round_row(x.data() + i * cols, cols);
      if (scales != nullptr) scales->insert(scales->end(), scale_.begin(), scale_.end());
    }
  }
  if (!feeds_back) return;
  const bool kept_whole = residual_format_.name == "fp32" && std::is_same_v<Real, float>;
  const element_grid<Real> grid(residual_format_, false);
  Real* const rest = residual_.data();
  detail::in_widest_vectors([&]() __attribute__((always_inline)) {
    if (kept_whole) {
      for (std::size_t i = 0; i < x.size(); ++i) rest[i] -= x[i];
    } else {
      for (std::size_t i = 0; i < x.size(); ++i) rest[i] = grid.nearest(rest[i] - x[i]);
    }
  });
}

template class block_store<float>;
template class block_store<double>;

}  // namespace deltaproof
