// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
//
// Random numbers that are the same on every machine and with every compiler. `philox` is Philox4x32-10
// (Random123) in counter mode: the n-th number of a stream is a function of (seed, stream, n), so
// streams never share numbers and any position can be reached at once. Normals come from the inverse
// of the normal distribution function, evaluated with + - * / and sqrt alone.
#pragma once

#include <array>
#include <cstdint>
#include <limits>

namespace deltaproof {

/// Counter-based generator; satisfies std::uniform_random_bit_generator.
/// Source: Salmon, Moraes, Dror, Shaw, "Parallel random numbers: as easy as 1, 2, 3", SC 2011.
class philox {
 public:
  using result_type = std::uint64_t;

  explicit philox(std::uint64_t seed, std::uint64_t stream = 0) : seed_(seed), stream_(stream) {}

  static constexpr result_type min() { return 0; }
  static constexpr result_type max() { return std::numeric_limits<result_type>::max(); }

  /// The next 64 bits of the stream.
  result_type operator()() {
    const std::uint64_t index = position_++;
    if (index - first_ >= made_) refill(index);
    return numbers_[index - first_];
  }

  /// Uniform on the multiples of 2^-53 in [0, 1).
  double uniform() { return static_cast<double>((*this)() >> 11) * 0x1p-53; }

  /// Standard normal: standard_normal_quantile((k + 1/2) 2^-52), k uniform in [0, 2^52); |x| < 8.3.
  double normal();

  /// Uniform integer in [0, bound), without bias.
  /// Throws domain_error if bound is 0.
  std::uint64_t below(std::uint64_t bound);

  /// How many 64-bit numbers were drawn; `seek(n)` makes the n-th (from 0) the next one.
  std::uint64_t position() const { return position_; }
  void seek(std::uint64_t position) { position_ = position; }

  std::uint64_t seed() const { return seed_; }
  std::uint64_t stream() const { return stream_; }

 private:
  void refill(std::uint64_t index);

  std::uint64_t seed_;
  std::uint64_t stream_;
  std::uint64_t position_ = 0;
  std::uint64_t first_ = 0;  ///< position of numbers_[0]
  std::uint64_t made_ = 0;   ///< how many of them there are
  std::array<std::uint64_t, 32> numbers_{};
};

/// x with Phi(x) = p, for 0 < p < 1; only + - * / sqrt, so the same bits everywhere.
/// Error: below 1e-15 relative or absolute, whichever is larger (tested against MPFR).
/// Throws domain_error outside (0, 1).
/// Source: Wichura, "Algorithm AS 241", Applied Statistics 37 (1988), PPND16.
double standard_normal_quantile(double p);

}  // namespace deltaproof
