// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
//
// Stored matrices a second time, by lists of values: what each published bit layout can hold, decoded code by code, the nearer of
// the two neighbours, and scales found by comparing. Shares nothing with number/block_format.cpp but names.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <map>
#include <string>
#include <vector>

#include "number/truth.hpp"

namespace deltaproof::truth {

/// A value and the code whose parity decides a tie.
struct coded {
  double value;
  unsigned code;
};

/// The magnitudes of a format of 1 + exponent + mantissa bits, smallest first, from its bit layout. `specials`: codes at the end
/// that are no numbers (OCP: one of e4m3, the last binade of e5m2, none of e2m1).
inline std::vector<coded> magnitudes(int exponent_bits, int mantissa_bits, unsigned specials) {
  std::vector<coded> all;
  const int bias = (1 << (exponent_bits - 1)) - 1;
  const unsigned codes = (1U << (exponent_bits + mantissa_bits)) - specials;
  for (unsigned code = 0; code < codes; ++code) {
    const auto field = static_cast<int>(code >> mantissa_bits);
    const double fraction = std::ldexp(static_cast<double>(code & ((1U << mantissa_bits) - 1)), -mantissa_bits);
    all.push_back({field == 0 ? std::ldexp(fraction, 1 - bias) : std::ldexp(1 + fraction, field - bias), code});
  }
  return all;
}

inline std::vector<coded> integers(unsigned most) {
  std::vector<coded> all;
  for (unsigned i = 0; i <= most; ++i) all.push_back({static_cast<double>(i), i});
  return all;
}

inline const std::vector<coded>& magnitudes_of(const std::string& element) {
  static const std::map<std::string, std::vector<coded>> all{{"fp16", magnitudes(5, 10, 1024)},
                                                             {"bf16", magnitudes(8, 7, 128)},
                                                             {"e4m3", magnitudes(4, 3, 1)},
                                                             {"e5m2", magnitudes(5, 2, 4)},
                                                             {"e2m1", magnitudes(2, 1, 0)},
                                                             {"int8", integers(127)},
                                                             {"int4", integers(7)}};
  return all.at(element);
}

/// The nearest of all values, a tie to the even code; beyond the last one that.
inline double nearest_value(const std::vector<coded>& all, double x) {
  const double size = std::fabs(x);
  const auto above = std::partition_point(all.begin(), all.end(), [&](const coded& c) { return c.value < size; });
  if (above == all.end()) return std::copysign(all.back().value, x);
  if (above == all.begin()) return std::copysign(above->value, x);
  const coded &low = *(above - 1), &high = *above;
  const double down = size - low.value, up = high.value - size;  // exact: neighbours of few bits
  return std::copysign(down < up || (down == up && low.code % 2 == 0) ? low.value : high.value, x);
}

/// 2^e of the E8M0 code that OCP MX v1.0 (6.3) takes: the largest power of two that is at most amax, by that of the element.
inline double power_of_two_scale(double amax, double largest_power_of_element) {
  double power = std::ldexp(1.0, -149);
  while (2 * power <= amax) power *= 2;
  const double scale = power / largest_power_of_element;
  return std::clamp(scale, std::ldexp(1.0, -127), std::ldexp(1.0, 127));
}

/// A matrix of floats stored and read back; sizes 0 mean all. `scale`: fp32, bf16, fp16, e4m3, e8m0 or "" for none.
struct stored_matrix {
  std::string element, scale;
  std::size_t rows = 0, cols = 0;
  bool tensor_scale = false;

  [[nodiscard]] float scale_of(float amax, float tensor) const {
    const std::vector<coded>& all = magnitudes_of(element);
    const double largest = all.back().value;
    if (amax == 0) return 0;
    if (scale == "e8m0") {
      double power = 1;
      while (2 * power <= largest) power *= 2;
      return static_cast<float>(power_of_two_scale(amax, power));
    }
    float wanted = amax / static_cast<float>(largest);
    if (tensor_scale) wanted /= tensor;
    const float s = scale == "fp32" ? wanted : static_cast<float>(nearest_value(magnitudes_of(scale), wanted));
    return tensor_scale ? s * tensor : s;
  }
  [[nodiscard]] std::vector<float> operator()(const std::vector<float>& x, std::size_t height, std::size_t width) const {
    std::vector<float> out(x.size());
    float whole = 0;
    for (const float v : x) whole = std::max(whole, std::fabs(v));
    const float tensor = whole / static_cast<float>(magnitudes_of(element).back().value * 448);
    const std::size_t tall = rows == 0 ? height : rows, wide = cols == 0 ? width : cols;
    for (std::size_t i = 0; i < height; ++i) {
      for (std::size_t j = 0; j < width; ++j) {
        float amax = 0;
        for (std::size_t a = i / tall * tall; a < std::min(height, i / tall * tall + tall); ++a) {
          for (std::size_t b = j / wide * wide; b < std::min(width, j / wide * wide + wide); ++b)
            amax = std::max(amax, std::fabs(x[a * width + b]));
        }
        const float s = scale.empty() ? 1 : scale_of(amax, tensor), here = x[i * width + j];
        const double code = s == 0 ? 0.0 : nearest_value(magnitudes_of(element), here / s);
        out[i * width + j] = static_cast<float>(code) * s;
      }
    }
    return out;
  }
};

}  // namespace deltaproof::truth
