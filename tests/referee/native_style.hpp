// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
//
// What plans leave open, as one kernel of native_kernel.hpp does it: `drawn_style` draws all of it.
#pragma once

#include <array>
#include <cmath>
#include <string>
#include <utility>

#include "deltaproof/number/convert.hpp"
#include "deltaproof/number/random.hpp"
#include "deltaproof/plan/plan.hpp"

namespace deltaproof::testing {

inline double native_narrow(double x, const narrowing& how) {
  if (how.to == bf16) return how.toward_zero ? round_to<bf16>(x, toward_zero{}).value() : round_to<bf16>(x).value();
  if (how.to == fp16) return how.toward_zero ? round_to<fp16>(x, toward_zero{}).value() : round_to<fp16>(x).value();
  if (how.to == tf32 && how.toward_zero) return round_to<tf32>(x, toward_zero{}).value();
  if (how.to == tf32) return round_to<tf32>(x, nearest_away{}).value();
  return how.to == fp32 ? static_cast<double>(static_cast<float>(x)) : x;
}

/// What a plan leaves open, as one kernel does it.
struct native_style {
  /// One term after the other, from either end; `width` interleaved partial sums, or blocks of `width` terms, added one after
  /// the other or as a tree; halves of halves; a large-to-small order of magnitudes.
  enum class order { sequential, backward, lanes, lane_tree, blocks, pairwise, by_size } sums = order::sequential;
  std::size_t width = 8;
  bool fused = false;       ///< a product is not rounded before it is added
  bool state_last = false;  ///< the sum over a chunk is made from zero and added to the decayed state
  bool natural = false;     ///< natural logarithms and e^x; g_cumsum_log2 is a copy that the kernel does not read
  int unit_errs = 0;        ///< every exponential lies so many ulps above what the C library returns
  bool gates_scaled_first = false;
  bool gates_scanned = false;
  bool scale_first = false;  ///< q times the scale; otherwise what is read
  bool merges_by_right = false;
  double decay_factor = 1;  ///< of every e^{G_i - G_j}, i > j: 1 is right

  [[nodiscard]] std::string text() const {
    static constexpr std::array<const char*, 7> names{"sequential", "backward", "lanes",  "lane tree",
                                                      "blocks",     "pairwise", "by size"};
    std::string out = std::string(names[static_cast<std::size_t>(sums)]) + " " + std::to_string(width);
    for (const auto& [on, word] : {std::pair{fused, " fused"},
                                   {state_last, " state-last"},
                                   {natural, " natural"},
                                   {gates_scaled_first, " scaled-gates"},
                                   {gates_scanned, " scanned-gates"},
                                   {scale_first, " scaled-q"},
                                   {merges_by_right, " right-merges"}}) {
      if (on) out += word;
    }
    if (unit_errs != 0) out += " exponentials " + std::to_string(unit_errs) + " ulp off";
    return out;
  }
};

inline native_style drawn_style(philox& draw) {
  native_style s;
  s.sums = static_cast<native_style::order>(draw.below(7));
  constexpr std::array<std::size_t, 5> widths{2, 4, 8, 16, 32};
  s.width = widths[static_cast<std::size_t>(draw.below(widths.size()))];
  for (bool* open :
       {&s.fused, &s.state_last, &s.natural, &s.gates_scaled_first, &s.gates_scanned, &s.scale_first, &s.merges_by_right}) {
    *open = draw.below(2) == 0;
  }
  s.unit_errs = static_cast<int>(draw.below(3)) - 1;
  return s;
}

}  // namespace deltaproof::testing
