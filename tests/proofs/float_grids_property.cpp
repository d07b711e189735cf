// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
//
// The lines of proofs/theories/float/adjoint_radius.v: the operations that src/oracle/tiers/adjoint_numbers.inc makes on pairs of
// doubles on a grid, in doubles, with what they lose in rationals. A test has the name of its theorem. The shares of each bound
// that the cases reach are part of what is asserted: a line that is far too wide is not the line of the note.
#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <vector>

#include "deltaproof/number/random.hpp"
#include "deltaproof/number/rational.hpp"
#include "oracle/tiers/adjoint_factors.hpp"

namespace deltaproof {
namespace {

using tiers::grid_lines;

constexpr double window = 16;
constexpr double grid = window * 0x1p-51;
const rational unit(0x1p-100 * window);  // in which the code's lines are

/// The lines of the code, for so many channels.
grid_lines lines_of(std::size_t channels) {
  return {.keys = static_cast<double>(channels), .root = std::sqrt(static_cast<double>(channels)) / 16};
}

rational magnitude(const rational& x) { return x < 0 ? rational(-x) : x; }

/// As rest_of_product: what `kept` leaves of a b, with the shares of the low parts.
double rest_of(double a_hi, double a_lo, double b_hi, double b_lo, double kept) {
  return std::fma(a_lo, b_hi, std::fma(a_hi, b_lo, std::fma(a_hi, b_hi, -kept)));
}

class draws {
 public:
  explicit draws(std::uint64_t stream) : random_(91, stream) {}
  /// In (-size, size).
  double number(double size) { return (2 * random_.uniform() - 1) * size; }
  /// A multiple of the grid within the window.
  double entry() { return std::nearbyint(number(window / 2) / grid) * grid; }
  double low_of(double high) { return number(0x1p-53 * std::fabs(high)); }

 private:
  philox random_;
};

double share(const rational& error, const rational& bound) { return static_cast<double>(rational(error / bound)); }

TEST(grid_theorems, entry_line) {
  double most = 0;
  for (std::uint64_t n = 0; n < 20000; ++n) {
    draws draw(n);
    const double l = 2, high = draw.entry(), low = draw.number(l * grid);
    const double a_hi = draw.number(4), b_hi = draw.number(2), a_lo = draw.low_of(a_hi), b_lo = draw.low_of(b_hi);
    if (std::fabs(high + a_hi * b_hi) > 0.99 * window) continue;
    const double base = 3 * window + high, now = std::fma(a_hi, b_hi, base), kept = now - base;
    const double after = now - 3 * window, after_low = low + rest_of(a_hi, a_lo, b_hi, b_lo, kept);
    const rational exact = rational(high) + rational(low) + (rational(a_hi) + rational(a_lo)) * (rational(b_hi) + rational(b_lo));
    const rational error = magnitude(rational(after) + rational(after_low) - exact);
    const rational bound = rational(lines_of(1).entry(l + grid_lines::of_product)) * unit;
    ASSERT_LE(error, bound);
    ASSERT_LE(std::fabs(after_low), (l + grid_lines::of_product) * grid);
    ASSERT_EQ(after / grid, std::nearbyint(after / grid));
    most = std::max(most, share(error, bound));
  }
  EXPECT_GT(most, 0.3);
}

TEST(grid_theorems, decay_line) {
  double most = 0;
  for (std::uint64_t n = 0; n < 20000; ++n) {
    draws draw(n + 100000);
    const double l = 2, high = draw.entry(), low = draw.number(l * grid), a_hi = draw.number(1), a_lo = draw.low_of(a_hi);
    const double kept = std::fma(a_hi, high, 3 * window) - 3 * window, rest = rest_of(a_hi, a_lo, high, low, kept);
    const rational exact = (rational(a_hi) + rational(a_lo)) * (rational(high) + rational(low));
    const rational error = magnitude(rational(kept) + rational(rest) - exact);
    const rational bound = rational(lines_of(1).decay(l + grid_lines::of_decay)) * unit;
    ASSERT_LE(error, bound);
    ASSERT_LE(std::fabs(rest), (l + grid_lines::of_decay) * grid);
    most = std::max(most, share(error, bound));
  }
  EXPECT_GT(most, 0.3);
}

TEST(grid_theorems, renewal_line) {
  double most = 0;
  for (std::uint64_t n = 0; n < 20000; ++n) {
    draws draw(n + 200000);
    const double x = std::ldexp(draw.number(1), static_cast<int>(4 - n % 60)), y = draw.number(grid / 4);
    const double kept = (x + 3 * window) - 3 * window, rest = (x - kept) + y;
    const rational error = magnitude(rational(kept) + rational(rest) - rational(x) - rational(y));
    const rational bound = rational(0.75 * lines_of(1).root) * unit;
    ASSERT_LE(error, bound);
    ASSERT_LE(std::fabs(rest), grid_lines::renewed * grid);
    most = std::max(most, share(error, bound));
  }
  EXPECT_GT(most, 0.3);
}

/// Sums over channels; the rests are added in sequence, in chunks of 16 as in the code.
TEST(grid_theorems, sum_constant) {
  double most = 0;
  for (std::uint64_t n = 0; n < 4000; ++n) {
    draws draw(n + 300000);
    const std::size_t terms = 1 + n % 16;
    const double l = 1, root = std::sqrt(static_cast<double>(terms)), scale = window / static_cast<double>(terms) / 4;
    double high = 3 * window, low = 0;
    rational exact = 0;
    for (std::size_t j = 0; j < terms; ++j) {
      const double a_hi = draw.number(1 / root), a_lo = draw.low_of(a_hi);
      const double b_hi = draw.number(scale), b_lo = draw.number(l * grid);
      const double now = std::fma(a_hi, b_hi, high);
      low += rest_of(a_hi, a_lo, b_hi, b_lo, now - high);
      high = now;
      exact += (rational(a_hi) + rational(a_lo)) * (rational(b_hi) + rational(b_lo));
    }
    const rational error = magnitude(rational(high - 3 * window) + rational(low) - exact);
    const rational bound = rational(lines_of(terms).channels(l)) * unit;
    ASSERT_LE(error, bound);
    most = std::max(most, share(error, bound));
  }
  EXPECT_GT(most, 0.03);
}

/// Line P, and a prediction by it: sums of products of numbers with errors of their own, summed in doubles.
TEST(grid_theorems, product_sum_line) {
  double most = 0;
  for (std::uint64_t n = 0; n < 4000; ++n) {
    draws draw(n + 400000);
    const std::size_t terms = 1 + n % 12;
    double sum = 0;
    rational exact = 0, bound = 0;
    const rational gamma = rational(static_cast<double>(terms) * 0x1p-53 * (1 + 0x1p-40));
    for (std::size_t v = 0; v < terms; ++v) {
      const double a = draw.number(8), b = draw.number(8);
      const rational e_a = rational(std::fabs(draw.number(0x1p-40))), e_b = rational(std::fabs(draw.number(0x1p-40)));
      sum = std::fma(a, b, sum);
      const auto away = [](double x) { return rational(x < 0 ? -1 : 1); };  // errors that add up
      exact += (rational(a) + away(a * b * a) * e_a) * (rational(b) + away(a * b * b) * e_b);
      const rational a_size = magnitude(rational(a)), b_size = magnitude(rational(b));
      bound += e_a * b_size + a_size * e_b + e_a * e_b + gamma * a_size * b_size;
    }
    const rational error = magnitude(rational(sum) - exact);
    ASSERT_LE(error, bound);
    most = std::max(most, share(error, bound));
  }
  EXPECT_GT(most, 0.9);
}

}  // namespace
}  // namespace deltaproof
