// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
//
// + - * / sqrt and fma of rounded<F> against MPFR and one integer rounding, in three modes: all pairs of
// the 8-bit formats, one whole operand against a hard set for the 16-bit ones, hard and random pairs
// for the wider ones.
#include <gtest/gtest.h>

#include <cstdint>
#include <random>
#include <vector>

#include "deltaproof/number/rounded.hpp"
#include "number/truth.hpp"
#include "support/multiplier.hpp"

namespace {

using namespace deltaproof;

constexpr int shown_failures = 10;

/// Away from zero whenever anything is lost: sees every bit that a mode is told of.
struct away_from_zero {
  static constexpr overflow on_overflow = overflow::infinity;
  static constexpr bool rounds_away(bool, std::uint64_t fraction, bool rest) { return fraction != 0 || rest; }
};

template <format F>
class checker {
 public:
  using nearest = rounded<F, nearest_even>;
  using zero = rounded<F, toward_zero>;
  using away = rounded<F, away_from_zero>;
  using bits_type = typename nearest::bits_type;

  static constexpr std::uint64_t all_codes = F.storage_bits <= 16 ? std::uint64_t{1} << F.storage_bits : 0;

  void pair(std::uint64_t a, std::uint64_t b) {
    const double x = layout_.value(a);
    const double y = layout_.value(b);
    const nearest na = load<nearest>(a);
    const nearest nb = load<nearest>(b);
    const zero za = load<zero>(a);
    const zero zb = load<zero>(b);
    const away wa = load<away>(a);
    const away wb = load<away>(b);
    exact_.add(x, y);
    check("+", a, b, na + nb, za + zb, wa + wb);
    exact_.sub(x, y);
    check("-", a, b, na - nb, za - zb, wa - wb);
    exact_.mul(x, y);
    check("*", a, b, na * nb, za * zb, wa * wb);
    exact_.div(x, y);
    check("/", a, b, na / nb, za / zb, wa / wb);
  }

  void root(std::uint64_t a) {
    exact_.sqrt(layout_.value(a));
    check("sqrt", a, 0, sqrt(load<nearest>(a)), sqrt(load<zero>(a)), sqrt(load<away>(a)));
  }

  template <format G = F>
  void fused(std::uint64_t a, std::uint64_t b, std::uint64_t c) {
    const auto& g = truth::layout_of(G);
    exact_.fma(g.value(a), g.value(b), layout_.value(c));
    check("fma", a, b, fma(load<rounded<G>>(a), load<rounded<G>>(b), load<nearest>(c)),
          fma(load<rounded<G>>(a), load<rounded<G>>(b), load<zero>(c)),
          fma(load<rounded<G>>(a), load<rounded<G>>(b), load<away>(c)));
  }

  std::size_t count() const { return count_; }

 private:
  template <class T>
  static T load(std::uint64_t code) {
    return T::from_bits(static_cast<typename T::bits_type>(code << truth::layout_of(T::number_format).zero_bits));
  }

  void check(const char* operation, std::uint64_t a, std::uint64_t b, nearest got_nearest, zero got_zero, away got_away) {
    expect(operation, a, b, got_nearest.bits(), exact_.round(layout_, truth::mode::nearest), "nearest");
    expect(operation, a, b, got_zero.bits(), exact_.round(layout_, truth::mode::zero), "toward zero");
    expect(operation, a, b, got_away.bits(), exact_.round(layout_, truth::mode::away), "away from zero");
    ++count_;
  }

  void expect(const char* operation, std::uint64_t a, std::uint64_t b, std::uint64_t got, std::uint64_t wanted,
              const char* mode) {
    const std::uint64_t stored = wanted << layout_.zero_bits;
    if (got == stored) return;
    if (++failures_ > shown_failures) return;
    ADD_FAILURE() << name_of(F) << " " << operation << " " << mode << ": " << truth::hex(a) << ", " << truth::hex(b) << " ("
                  << layout_.value(a) << ", " << layout_.value(b) << ") gives " << truth::hex(got) << ", MPFR says "
                  << truth::hex(stored);
  }

  const truth::layout& layout_ = truth::layout_of(F);
  truth::exact_result exact_;
  std::size_t count_ = 0;
  int failures_ = 0;
};

template <format F>
void all_pairs() {
  checker<F> check;
  for (std::uint64_t a = 0; a < check.all_codes; ++a) {
    check.root(a);
    for (std::uint64_t b = 0; b < check.all_codes; ++b) check.pair(a, b);
  }
  EXPECT_EQ(check.count(), check.all_codes * (4 * check.all_codes + 1));
}

template <format F>
void all_against_hard() {
  checker<F> check;
  std::mt19937_64 random(1);
  const auto hard = truth::layout_of(F).hard(random, 6);
  for (std::uint64_t a = 0; a < check.all_codes; ++a) {
    check.root(a);
    for (std::size_t i = 0; i < hard.size(); ++i) {
      check.pair(a, hard[i]);
      if (i % 3 == 0) check.pair(hard[i], a);
    }
  }
}

/// Random patterns whose exponents stay within a few binades, where cancellation and ties live, and
/// mantissas with long runs of zeros or ones.
template <format F>
std::uint64_t random_code(std::mt19937_64& random) {
  const auto& f = truth::layout_of(F);
  const std::uint64_t mantissa_mask = (std::uint64_t{1} << f.mantissa_bits) - 1;
  std::uint64_t mantissa = random() & mantissa_mask;
  const auto length = random() % static_cast<unsigned>(f.mantissa_bits + 1);
  switch (random() % 4) {
    case 0:
      mantissa = (mantissa >> length) << length;
      break;
    case 1:
      mantissa = mantissa | ((std::uint64_t{1} << length) - 1);
      break;
    case 2:
      mantissa = (std::uint64_t{1} << length) & mantissa_mask;
      break;
    default:
      break;
  }
  const auto exponents = (std::uint64_t{1} << f.exponent_bits) - 1;
  std::uint64_t exponent = random() % exponents;
  switch (random() % 4) {
    case 0:
      exponent = static_cast<std::uint64_t>(f.bias()) + random() % 60 % exponents / 2;
      break;
    case 1:
      exponent = random() % 4;
      break;
    case 2:
      exponent = exponents - 1 - random() % 4;
      break;
    default:
      break;
  }
  if (exponent >= exponents) exponent = exponents - 1;
  return (exponent << f.mantissa_bits) + mantissa + (random() % 2 != 0 ? f.sign() : 0);
}

template <format F>
void hard_and_random() {
  checker<F> check;
  std::mt19937_64 random(2);
  const auto hard = truth::layout_of(F).hard(random, 40);
  for (const std::uint64_t a : hard) {
    check.root(a);
    for (const std::uint64_t b : hard) check.pair(a, b);
  }
  for (std::size_t i = 0; i < scaled(300000); ++i) {
    const std::uint64_t a = random_code<F>(random);
    check.pair(a, random_code<F>(random));
    check.root(a);
  }
}

template <format F, format G>
void fused_products() {
  checker<F> check;
  std::mt19937_64 random(3);
  const auto hard = truth::layout_of(F).hard(random, 4);
  const auto operands = truth::layout_of(G).hard(random, 4);
  for (const std::uint64_t c : hard) {
    for (const std::uint64_t a : operands) {
      for (const std::uint64_t b : operands) check.template fused<G>(a, b, c);
    }
  }
  const auto& f = truth::layout_of(F);
  const auto& g = truth::layout_of(G);
  for (std::size_t i = 0; i < scaled(200000); ++i) {
    const std::uint64_t a = random_code<G>(random);
    const std::uint64_t b = random_code<G>(random);
    std::uint64_t c = random_code<F>(random);
    if (i % 2 == 0) {
      // An addend that nearly cancels the product, or lies just below its last bit.
      truth::exact_result product;
      product.mul(-g.value(a), g.value(b));
      c = product.round(f, truth::mode::zero) + random() % 3;
      if (i % 4 == 0) {
        product.mul(f.value(c), std::ldexp(1, -f.mantissa_bits - 1 - static_cast<int>(random() % 4)));
        c = product.round(f, truth::mode::zero);
      }
      if ((c & (f.sign() - 1)) >= f.end()) continue;
    }
    check.template fused<G>(a, b, c);
  }
}

TEST(arithmetic, e4m3_all_pairs) { all_pairs<e4m3>(); }
TEST(arithmetic, e5m2_all_pairs) { all_pairs<e5m2>(); }
TEST(arithmetic, bf16_all_values_against_the_hard_set) { all_against_hard<bf16>(); }
TEST(arithmetic, fp16_all_values_against_the_hard_set) { all_against_hard<fp16>(); }
TEST(arithmetic, tf32_hard_and_random_pairs) { hard_and_random<tf32>(); }
TEST(arithmetic, fp32_hard_and_random_pairs) { hard_and_random<fp32>(); }
TEST(arithmetic, fp64_hard_and_random_pairs) { hard_and_random<fp64>(); }

TEST(arithmetic, fma_rounds_once_bf16) { fused_products<bf16, bf16>(); }
TEST(arithmetic, fma_rounds_once_e4m3) { fused_products<e4m3, e4m3>(); }
TEST(arithmetic, fma_rounds_once_fp32) { fused_products<fp32, fp32>(); }
TEST(arithmetic, fma_rounds_once_fp64) { fused_products<fp64, fp64>(); }
TEST(arithmetic, fma_rounds_once_bf16_products_into_fp32) { fused_products<fp32, bf16>(); }
TEST(arithmetic, fma_rounds_once_fp32_products_into_fp64) { fused_products<fp64, fp32>(); }
TEST(arithmetic, fma_rounds_once_fp64_products_into_bf16) { fused_products<bf16, fp64>(); }

TEST(arithmetic, signs_of_zero) {
  using S = rounded<bf16>;
  const S zero(0);
  EXPECT_FALSE(signbit(S(2) - S(2)));
  EXPECT_TRUE(signbit(-zero));
  EXPECT_TRUE(signbit(-zero + -zero));
  EXPECT_FALSE(signbit(zero + -zero));
  EXPECT_TRUE(signbit(S(-1) * zero));
  EXPECT_TRUE(signbit(sqrt(-zero)));
  EXPECT_FALSE(signbit(abs(-zero)));
  EXPECT_EQ(-zero, zero);
}

TEST(arithmetic, overflow_is_what_the_mode_says) {
  const auto top = rounded<e4m3>::from_exact(448);
  EXPECT_TRUE(isnan(top + top));
  EXPECT_EQ(add(top, top, toward_zero{}).value(), 448);
  EXPECT_EQ(add(-top, -top, nearest_saturating{}).value(), -448);
  EXPECT_EQ((top + rounded<e4m3>(16)).value(), 448);  // 464 is the tie between 448 and the missing 480
  EXPECT_TRUE(isnan(top + rounded<e4m3>(18)));
  const auto big = rounded<bf16>::from_exact(largest(bf16));
  EXPECT_TRUE(isinf(big + big));
  EXPECT_EQ(add(big, big, toward_zero{}), big);
  EXPECT_TRUE(isinf(rounded<bf16>(1) / rounded<bf16>(0)));
  EXPECT_TRUE(isnan(rounded<e4m3>(1) / rounded<e4m3>(0)));
  EXPECT_TRUE(isnan(rounded<bf16>(0) / rounded<bf16>(0)));
  EXPECT_TRUE(isnan(sqrt(rounded<bf16>(-1))));
}

TEST(arithmetic, comparisons_are_those_of_the_values) {
  using S = rounded<fp16>;
  EXPECT_LT(S(1), S(2));
  EXPECT_GE(S(2), S(2));
  const S nan = S(0) / S(0);
  EXPECT_FALSE(nan == nan);
  EXPECT_FALSE(nan < nan);
  EXPECT_TRUE(nan != nan);
}

TEST(arithmetic, integers_must_be_values_of_the_format) {
  static_assert(rounded<bf16>(256) + rounded<bf16>(1) == rounded<bf16>(256));
  EXPECT_THROW(rounded<bf16>(257), domain_error);
  EXPECT_THROW(rounded<e4m3>(17), domain_error);
  EXPECT_THROW(rounded<fp32>((1 << 24) + 1), domain_error);
  EXPECT_EQ(rounded<e4m3>(448).value(), 448);
}

}  // namespace
