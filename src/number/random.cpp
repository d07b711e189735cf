// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
#include "deltaproof/number/random.hpp"

// The library's multiplication in assembler is one at a time; compilers put the plain one into vectors.
#define R123_USE_MULHILO32_ASM 0
#include <Random123/philox.h>

#include <bit>
#include <cmath>
#include <span>
#include <string>

#include "deltaproof/number/wide.hpp"
#include "deltaproof/support/errors.hpp"
#include "support/widest_vectors.hpp"

namespace deltaproof {

namespace {

/// Horner's rule, the leading coefficient first.
double polynomial(std::span<const double> coefficients, double x) {
  double value = 0;
  for (const double c : coefficients) value = value * x + c;
  return value;
}

/// log x for normal x > 0: x = m 2^e with m in [sqrt(1/2), sqrt(2)) and log m = 2 atanh((m - 1)/(m + 1)).
/// The library function would differ between machines.
double portable_log(double x) {
  const auto bits = std::bit_cast<std::uint64_t>(x);
  int exponent = static_cast<int>(bits >> 52) - 1023;
  double mantissa = std::bit_cast<double>((bits & 0xfffffffffffffU) | std::uint64_t{1023} << 52);
  if (mantissa > 1.4142135623730951) {
    mantissa /= 2;
    exponent += 1;
  }
  const double s = (mantissa - 1) / (mantissa + 1);
  const double square = s * s;
  double series = 0;
  for (int k = 12; k >= 1; --k) series = (series + 1.0 / (2 * k + 1)) * square;
  // log 2 in two parts; the first has trailing zeros, so that its product is exact.
  constexpr double log2_high = 0x1.62e42fefa3800p-1;
  constexpr double log2_low = 0x1.ef35793c76730p-45;
  const double e = exponent;
  return e * log2_high + (2 * s + (2 * s * series + e * log2_low));
}

constexpr std::array<double, 8> central_numerator{2509.0809287301226727, 33430.575583588128105, 67265.770927008700853,
                                                  45921.953931549871457, 13731.693765509461125, 1971.5909503065514427,
                                                  133.14166789178437745, 3.387132872796366608};
constexpr std::array<double, 8> central_denominator{
    5226.495278852545925,  28729.085735721942674, 39307.89580009271061,  21213.794301586595867,
    5394.1960214247511077, 687.1870074920579083,  42.313330701600911252, 1.0};
constexpr std::array<double, 8> middle_numerator{7.7454501427834140764e-4, 0.0227238449892691845833, 0.24178072517745061177,
                                                 1.27045825245236838258,   3.64784832476320460504,   5.7694972214606914055,
                                                 4.6303378461565452959,    1.42343711074968357734};
constexpr std::array<double, 8> middle_denominator{
    1.05075007164441684324e-9, 5.475938084995344946e-4, 0.0151986665636164571966, 0.14810397642748007459,
    0.68976733498510000455,    1.6763848301838038494,   2.05319162663775882187,   1.0};
constexpr std::array<double, 8> far_numerator{2.01033439929228813265e-7, 2.71155556874348757815e-5, 0.0012426609473880784386,
                                              0.026532189526576123093,   0.29656057182850489123,    1.7848265399172913358,
                                              5.4637849111641143699,     6.6579046435011037772};
constexpr std::array<double, 8> far_denominator{
    2.04426310338993978564e-15, 1.4215117583164458887e-7, 1.8463183175100546818e-5, 7.868691311456132591e-4,
    0.0148753612908506148525,   0.13692988092273580531,   0.59983220655588793769,   1.0};

std::uint32_t low(std::uint64_t x) { return static_cast<std::uint32_t>(x); }
std::uint32_t high(std::uint64_t x) { return static_cast<std::uint32_t>(x >> 32); }

// Blocks of two numbers do not depend on each other, so that many are made at once, in the lanes of vectors.
using many = std::array<std::uint64_t, 32>;

[[gnu::always_inline]] inline void fill(many& numbers, std::uint64_t first_block, std::uint64_t stream, std::uint64_t seed) {
  using generator = r123::Philox4x32;
  const generator::key_type key{{low(seed), high(seed)}};
  for (std::size_t i = 0; i < numbers.size() / 2; ++i) {
    const std::uint64_t index = (first_block + i) & ~std::uint64_t{0} >> 1;  // the position after 2^64 - 1 is 0
    const generator::ctr_type block = generator{}(generator::ctr_type{{low(index), high(index), low(stream), high(stream)}}, key);
    numbers[2 * i] = std::uint64_t{block[1]} << 32 | block[0];
    numbers[2 * i + 1] = std::uint64_t{block[3]} << 32 | block[2];
  }
}

}  // namespace

void philox::refill(std::uint64_t index) {
  first_ = index - index % 2;
  made_ = numbers_.size();
  detail::in_widest_vectors([this]() __attribute__((always_inline)) { fill(numbers_, first_ / 2, stream_, seed_); });
}

double philox::normal() {
  const std::uint64_t k = (*this)() >> 12;
  return standard_normal_quantile((static_cast<double>(k) + 0.5) * 0x1p-52);
}

std::uint64_t philox::below(std::uint64_t bound) {
  if (bound == 0) throw domain_error("no integer lies in [0, 0); give philox::below a bound of at least 1");
  // The high half of a product is uniform once the few low halves that occur too often are drawn again.
  const std::uint64_t threshold = (0 - bound) % bound;
  while (true) {
    const detail::uint128 product = static_cast<detail::uint128>((*this)()) * bound;
    if (static_cast<std::uint64_t>(product) >= threshold) return static_cast<std::uint64_t>(product >> 64);
  }
}

double standard_normal_quantile(double p) {
  if (!(p > 0 && p < 1)) {
    throw domain_error("standard_normal_quantile: the probability is " + std::to_string(p) + "; it must be above 0 and below 1");
  }
  const double q = p - 0.5;
  if (q >= -0.425 && q <= 0.425) {
    const double r = 0.180625 - q * q;
    return q * polynomial(central_numerator, r) / polynomial(central_denominator, r);
  }
  const double tail = q < 0 ? p : 1 - p;
  const double r = std::sqrt(-portable_log(tail < 0x1p-1022 ? 0x1p-1022 : tail));
  const double x = r <= 5 ? polynomial(middle_numerator, r - 1.6) / polynomial(middle_denominator, r - 1.6)
                          : polynomial(far_numerator, r - 5) / polynomial(far_denominator, r - 5);
  return q < 0 ? -x : x;
}

}  // namespace deltaproof
