// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
//
// Bounds on magnitudes whose products, sums and roots neither underflow nor overflow: what the radius of MPFR rows is carried in,
// whose numbers have wider exponents than doubles. Every operation commits a relative error of 2^-53 at most, as a double would
// within its range: line F of proofs/notes/oracle-radius.md covers it.
#pragma once

#include <cmath>
#include <cstdint>
#include <limits>

namespace deltaproof {

/// m 2^(512 e) with m within [2^-256, 2^256), or 0, or infinite; a NaN counts as infinite.
class wide_bound {
 public:
  wide_bound() = default;
  /// x >= 0.
  wide_bound(double x) : m_{x} { normalise(); }
  /// m 2^exponent, m >= 0, exactly.
  static wide_bound scaled(double m, std::int64_t exponent) {
    std::int64_t e = exponent / 512, rest = exponent % 512;
    if (rest < 0) {
      rest += 512;
      --e;
    }
    wide_bound out = wide_bound(m) * wide_bound(std::ldexp(1.0, static_cast<int>(rest)));
    if (out.m_ > 0 && std::isfinite(out.m_)) out.e_ += e;
    return out;
  }

  /// The least double that is not below it: 0 for 0 alone.
  [[nodiscard]] double above() const {
    constexpr double infinity = std::numeric_limits<double>::infinity();
    if (m_ == 0 || e_ == 0) return m_;
    if (e_ > 2 || std::isinf(m_)) return infinity;
    if (e_ == 2) return m_ * 0x1p512 * 0x1p512;
    if (e_ == 1) return m_ * 0x1p512;
    if (e_ == -1) return m_ * 0x1p-512;
    if (e_ < -2) return std::numeric_limits<double>::denorm_min();
    const double high = m_ * 0x1p-512, low = high * 0x1p-512;  // only the second product rounds
    return low * 0x1p512 < high ? std::nextafter(low, infinity) : low;
  }
  /// significand() 2^scale().
  [[nodiscard]] double significand() const { return m_; }
  [[nodiscard]] std::int64_t scale() const { return 512 * e_; }
  [[nodiscard]] bool finite() const { return std::isfinite(m_); }
  /// 2^(exponent - 1) <= it < 2^exponent; it is finite and not 0.
  [[nodiscard]] std::int64_t exponent() const { return std::ilogb(m_) + 1 + 512 * e_; }

  friend wide_bound operator*(const wide_bound& a, const wide_bound& b) {
    if (a.m_ == 0 || b.m_ == 0) return {};  // nothing is left of an infinite one
    wide_bound out;
    out.m_ = a.m_ * b.m_;
    out.e_ = a.e_ + b.e_;
    out.normalise();
    return out;
  }
  friend wide_bound operator+(const wide_bound& a, const wide_bound& b) {
    if (a.e_ == b.e_ || a.m_ == 0 || b.m_ == 0 || !a.finite() || !b.finite()) {
      wide_bound out;
      out.m_ = a.m_ + b.m_;
      out.e_ = a.m_ == 0 ? b.e_ : a.e_;
      out.normalise();
      return out;
    }
    const wide_bound &large = a.e_ > b.e_ ? a : b, &small = a.e_ > b.e_ ? b : a;
    if (large.e_ - small.e_ > 1) return large;  // the other is less than 2^-512 of it
    wide_bound out;
    out.m_ = large.m_ + small.m_ * 0x1p-512;
    out.e_ = large.e_;
    out.normalise();
    return out;
  }
  wide_bound& operator+=(const wide_bound& b) { return *this = *this + b; }
  friend wide_bound sqrt(const wide_bound& a) {
    wide_bound out;
    const bool odd = a.e_ % 2 != 0;
    out.m_ = std::sqrt(a.m_) * (odd ? 0x1p256 : 1);
    out.e_ = (a.e_ - (odd ? 1 : 0)) / 2;
    out.normalise();
    return out;
  }

  friend bool operator==(const wide_bound& a, const wide_bound& b) { return a.m_ == b.m_ && a.e_ == b.e_; }
  friend bool operator<(const wide_bound& a, const wide_bound& b) {
    if (a.m_ == 0 || b.m_ == 0 || !a.finite() || !b.finite() || a.e_ == b.e_) return a.m_ < b.m_;
    return a.e_ < b.e_;
  }
  friend bool operator>(const wide_bound& a, const wide_bound& b) { return b < a; }
  friend bool operator<=(const wide_bound& a, const wide_bound& b) { return !(b < a); }

 private:
  void normalise() {
    if (m_ >= 0x1p-256 && m_ < 0x1p256) return;
    if (m_ == 0 || !(m_ < std::numeric_limits<double>::infinity())) {
      m_ = m_ == 0 ? 0 : std::numeric_limits<double>::infinity();
      e_ = 0;
      return;
    }
    for (; m_ >= 0x1p256; ++e_) m_ *= 0x1p-512;
    for (; m_ < 0x1p-256; --e_) m_ *= 0x1p512;
  }

  double m_ = 0;
  std::int64_t e_ = 0;
};

}  // namespace deltaproof
