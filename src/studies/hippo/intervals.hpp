// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
//
// Four readings of "the equation of token t holds on [t - eta_t, t]", each solved exactly by the exact flow, and how far their
// states part. Only for eta = 1 do these intervals tile the time axis.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace deltaproof::detail::hippo {

/// clock: token t's equation acts for a time eta_t, intervals laid end to end; this is the update formula. waiting: nothing
/// happens between t - 1 and t - eta_t; needs eta <= 1 and is the same. running: token t's equation holds on all of
/// (t - 1, t] and eta is only where one starts to look. lingering: token t - 1's equation goes on until t - eta_t.
enum class reading { clock, waiting, running, lingering };
inline constexpr std::array<reading, 4> readings{reading::clock, reading::waiting, reading::running, reading::lingering};
[[nodiscard]] std::string_view name_of(reading);

/// |S' - S| / |S|, S by the clock, S' by the other reading, after all tokens; unit keys of fresh directions, values with
/// standard normal entries in two columns. eta uniform in (low, high); where high = low it is that number. Mean and
/// standard deviation over the streams. Where eta > 1, intervals overlap: `lingering` lets the new equation take over at t - 1.
struct gap {
  reading how = reading::clock;
  double low = 0;
  double high = 0;
  double mean = 0;
  double deviation = 0;
  double largest = 0;
  std::size_t streams = 0;
  double overlapping = 0;  ///< share of tokens with eta > 1
};
[[nodiscard]] gap measure(reading, double low, double high, std::size_t key_dim, std::size_t tokens, std::size_t streams,
                          std::uint64_t seed);

}  // namespace deltaproof::detail::hippo
