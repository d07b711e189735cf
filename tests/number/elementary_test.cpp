// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
//
// exp, expm1, log and sigmoid of rounded<F> against MPFR: every argument of the 8-bit formats, many of
// the 16-bit ones, hard and random ones of the others, in two modes.
#include "deltaproof/number/elementary.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <random>

#include "deltaproof/number/convert.hpp"
#include "deltaproof/number/modular.hpp"
#include "deltaproof/number/scalar.hpp"
#include "number/truth.hpp"
#include "support/multiplier.hpp"

namespace {

using namespace deltaproof;

/// The sigmoid through tanh, another way than the library's: (1 + tanh(x / 2)) / 2 or e^x / (1 + e^x).
/// Its precision covers the whole cancellation, so a truncation and a sticky bit are the truth.
int sigmoid_truth(mpfr_ptr result, mpfr_srcptr x, mpfr_rnd_t) {
  if (mpfr_nan_p(x) != 0) {
    mpfr_set_nan(result);
    return 0;
  }
  if (mpfr_inf_p(x) != 0 || mpfr_zero_p(x) != 0) {
    mpfr_set_d(result, mpfr_zero_p(x) != 0 ? 0.5 : mpfr_sgn(x) > 0 ? 1 : 0, MPFR_RNDZ);
    return 0;
  }
  mpfr_set_prec(result, 3000);
  if (mpfr_cmp_si(x, -1) < 0) {
    mpfr_exp(result, x, MPFR_RNDZ);
    mpfr_t below;
    mpfr_init2(below, 3000);
    mpfr_add_ui(below, result, 1, MPFR_RNDU);
    mpfr_div(result, result, below, MPFR_RNDZ);
    mpfr_clear(below);
  } else {
    mpfr_div_2ui(result, x, 1, MPFR_RNDN);
    mpfr_tanh(result, result, MPFR_RNDD);
    mpfr_add_ui(result, result, 1, MPFR_RNDD);
    mpfr_div_2ui(result, result, 1, MPFR_RNDD);
    // Exactly 1 only where the distance is below 2^-3000.
    if (mpfr_cmp_ui(result, 1) >= 0) {
      mpfr_set_ui(result, 1, MPFR_RNDN);
      mpfr_nextbelow(result);
    }
  }
  return 1;
}

template <format F>
class checker {
 public:
  void operator()(std::uint64_t code, bool with_sigmoid) {
    const double x = f_.value(code);
    check("exp", x, mpfr_exp, [](auto v) { return exp(v); });
    check("expm1", x, mpfr_expm1, [](auto v) { return expm1(v); });
    check("log", x, mpfr_log, [](auto v) { return log(v); });
    if (with_sigmoid) check("sigmoid", x, sigmoid_truth, [](auto v) { return sigmoid(v); });
  }

 private:
  template <class Truth, class Function>
  void check(const char* name, double x, Truth truth_function, Function function) {
    exact_.apply(truth_function, x);
    const auto nearest = function(rounded<F>::from_exact(x));
    const auto zero = function(rounded<F, toward_zero>::from_exact(x));
    if (failures_ > 10) return;
    expect(name, x, nearest.bits(), exact_.round(f_, truth::mode::nearest) << f_.zero_bits, "nearest");
    expect(name, x, zero.bits(), exact_.round(f_, truth::mode::zero) << f_.zero_bits, "toward zero");
  }

  void expect(const char* name, double x, std::uint64_t got, std::uint64_t wanted, const char* mode) {
    if (got == wanted) return;
    ++failures_;
    ADD_FAILURE() << name_of(F) << " " << mode << " " << name << "(" << x << ") gives " << truth::hex(got) << ", MPFR says "
                  << truth::hex(wanted);
  }

  const truth::layout& f_ = truth::layout_of(F);
  truth::exact_result exact_;
  int failures_ = 0;
};

template <format F>
void all_arguments() {
  checker<F> check;
  const std::uint64_t count = std::uint64_t{1} << F.storage_bits;
  for (std::uint64_t code = 0; code < count; ++code) check(code, true);
}

/// One argument in 11, and all of them with a test multiplier of 11; one sigmoid in 10 of those.
template <format F>
void many_arguments() {
  checker<F> check;
  const std::uint64_t stride = 11 / std::min<std::uint64_t>(scaled(1), 11);
  for (std::uint64_t i = 0; i * stride < 0x10000; ++i) check(i * stride, i % 10 == 0);
}

template <format F>
void hard_arguments() {
  checker<F> check;
  std::mt19937_64 random(4);
  const truth::layout& f = truth::layout_of(F);
  for (const std::uint64_t code : f.hard(random, 200)) check(code, true);
  // Arguments around 1, where no result is trivial, and around the midpoints next to 1/2 and 1.
  for (int i = 0; i < 1000; ++i) {
    const double x = std::ldexp(static_cast<double>(random() % 2000001) - 1e6, static_cast<int>(random() % 24) - 40);
    check(round_to<F>(x).bits() >> f.zero_bits, i % 10 == 0);
  }
  for (int e = -1; e > -140; --e) {
    check(round_to<F>(std::ldexp(1, e)).bits() >> f.zero_bits, true);
    check(round_to<F>(-std::ldexp(1, e)).bits() >> f.zero_bits, true);
  }
}

TEST(elementary, every_argument_e4m3) { all_arguments<e4m3>(); }
TEST(elementary, every_argument_e5m2) { all_arguments<e5m2>(); }
TEST(elementary, many_arguments_bf16) { many_arguments<bf16>(); }
TEST(elementary, many_arguments_fp16) { many_arguments<fp16>(); }
TEST(elementary, hard_arguments_tf32) { hard_arguments<tf32>(); }
TEST(elementary, hard_arguments_fp32) { hard_arguments<fp32>(); }
TEST(elementary, hard_arguments_fp64) { hard_arguments<fp64>(); }

TEST(elementary, special_values) {
  using S = rounded<fp32>;
  const double infinity = std::numeric_limits<double>::infinity();
  const S plus = S::from_exact(infinity);
  EXPECT_EQ(exp(-plus).value(), 0);
  EXPECT_EQ(expm1(-plus).value(), -1);
  EXPECT_TRUE(signbit(expm1(-S(0))));
  EXPECT_EQ(log(S(0)).value(), -infinity);
  EXPECT_TRUE(isnan(log(S(-1))));
  EXPECT_TRUE(isnan(log(rounded<e4m3>(0))));
  EXPECT_EQ(sigmoid(plus).value(), 1);
  EXPECT_EQ(sigmoid(-plus).value(), 0);
  EXPECT_EQ(sigmoid(S(0)).value(), 0.5);
  EXPECT_TRUE(isnan(sigmoid(S(0) / S(0))));
  EXPECT_TRUE(isnan(exp(rounded<e4m3>(7))));  // 1096 has no e4m3
  EXPECT_LT(sigmoid(rounded<fp64, toward_zero>(700)).value(), 1);
  EXPECT_EQ(sigmoid(rounded<fp64>(700)).value(), 1);
  static_assert(HasExp<rounded<bf16>> && HasExp<float> && HasExp<double> && !HasExp<modular>);
}

}  // namespace
