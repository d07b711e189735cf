// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
#include "deltaproof/algebra/dot.hpp"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "algebra/slow_sums.hpp"
#include "deltaproof/number/double_double.hpp"
#include "deltaproof/number/modular.hpp"
#include "deltaproof/number/random.hpp"
#include "deltaproof/number/rational.hpp"
#include "deltaproof/number/real.hpp"

namespace deltaproof {

/// A scalar that writes down what is done to it.
struct symbol {
  std::string text;
  friend bool operator==(const symbol&, const symbol&) = default;
  friend symbol operator+(const symbol& a, const symbol& b) { return {"(" + a.text + "+" + b.text + ")"}; }
  friend symbol operator*(const symbol& a, const symbol& b) { return {a.text + b.text}; }
};

template <>
struct scalar_traits<symbol> {
  static constexpr bool is_exact = false;
  static std::string name() { return "symbol"; }
  static symbol from_int(int n) { return {std::to_string(n)}; }
};

namespace {

using half = rounded<bf16>;
using single = rounded<fp32>;

template <class Order>
std::string written(std::size_t count) {
  std::vector<symbol> x;
  std::vector<symbol> y;
  for (std::size_t i = 0; i < count; ++i) {
    x.push_back({std::string(1, static_cast<char>('a' + i))});
    y.push_back({""});
  }
  return dot<arithmetic<symbol, symbol, symbol, Order>>(x, y).text;
}

TEST(dot, sequential_adds_first_to_last) {
  EXPECT_EQ(written<sequential>(0), "0");
  EXPECT_EQ(written<sequential>(1), "(0+a)");
  EXPECT_EQ(written<sequential>(4), "((((0+a)+b)+c)+d)");
}

TEST(dot, pairwise_adds_neighbours_and_carries_an_odd_one_up) {
  EXPECT_EQ(written<pairwise>(0), "0");
  EXPECT_EQ(written<pairwise>(1), "(0+a)");
  EXPECT_EQ(written<pairwise>(2), "(0+(a+b))");
  EXPECT_EQ(written<pairwise>(3), "(0+((a+b)+c))");
  EXPECT_EQ(written<pairwise>(5), "(0+(((a+b)+(c+d))+e))");
  EXPECT_EQ(written<pairwise>(6), "(0+(((a+b)+(c+d))+(e+f)))");
  EXPECT_EQ(written<pairwise>(7), "(0+(((a+b)+(c+d))+((e+f)+g)))");
}

TEST(dot, blocked_sums_blocks_and_then_their_sums) {
  EXPECT_EQ(written<blocked<3>>(0), "0");
  EXPECT_EQ(written<blocked<3>>(2), "(0+((0+a)+b))");
  EXPECT_EQ(written<blocked<3>>(7), "(((0+(((0+a)+b)+c))+(((0+d)+e)+f))+(0+g))");
  EXPECT_EQ(written<blocked<1>>(2), "((0+(0+a))+(0+b))");
}

TEST(dot, begins_every_order_at_start) {
  const std::vector<symbol> x{{"a"}, {"b"}, {"c"}};
  const std::vector<symbol> y{{"p"}, {"q"}, {"r"}};
  const symbol start{"s"};
  EXPECT_EQ((dot<plain<symbol>>(x, y, start).text), "(((s+ap)+bq)+cr)");
  EXPECT_EQ((dot<arithmetic<symbol, symbol, symbol, pairwise>>(x, y, start).text), "(s+((ap+bq)+cr))");
  EXPECT_EQ((dot<arithmetic<symbol, symbol, symbol, blocked<2>>>(x, y, start).text), "((s+((0+ap)+bq))+(0+cr))");
}

template <class S, class Order, class Product = S>
double sum_of_ones(std::size_t count) {
  const std::vector<S> ones(count, one<S>());
  return lift<double>(dot<arithmetic<S, Product, S, Order>>(ones, ones));
}

TEST(dot, ones_in_bf16_stop_where_their_order_says) {
  EXPECT_EQ((sum_of_ones<half, sequential>(4096)), 256.0);
  EXPECT_EQ((sum_of_ones<half, sequential, exact_product>(4096)), 256.0);
  EXPECT_EQ((sum_of_ones<half, blocked<2>>(4096)), 512.0);
  EXPECT_EQ((sum_of_ones<half, blocked<16>>(8192)), 4096.0);
  EXPECT_EQ((sum_of_ones<half, pairwise>(4096)), 4096.0);
  EXPECT_EQ((sum_of_ones<rounded<fp16>, sequential>(4096)), 2048.0);
  EXPECT_EQ((sum_of_ones<rounded<e4m3>, sequential>(4096)), 16.0);
}

TEST(dot, exact_product_rounds_once) {
  // 1 - (1 + 2^-7)(1 - 2^-7) = 2^-14, and the product alone rounds to 1.
  const std::vector<half> x{half(1), round_to<bf16>(1 + 0x1p-7)};
  const std::vector<half> y{half(1), round_to<bf16>(-(1 - 0x1p-7))};
  EXPECT_EQ(lift<double>(dot<arithmetic<half, exact_product, half, sequential>>(x, y)), 0x1p-14);
  EXPECT_EQ(lift<double>(dot<plain<half>>(x, y)), 0.0);
}

TEST(dot, stores_multiplies_and_sums_in_formats_of_their_own) {
  const std::vector<half> x{round_to<bf16>(1 + 0x1p-7), half(256)};
  const std::vector<half> y{round_to<bf16>(1 + 0x1p-7), half(1)};
  const double product = 1 + 0x1p-6 + 0x1p-14;
  EXPECT_EQ(lift<double>(dot<arithmetic<half, exact_product, single, sequential>>(x, y)), 256 + product);
  EXPECT_EQ(lift<double>(dot<arithmetic<half, single, single, sequential>>(x, y)), 256 + product);
  EXPECT_EQ(lift<double>(dot<arithmetic<half, half, single, sequential>>(x, y)), 256 + 1 + 0x1p-6);
  EXPECT_EQ(lift<double>(dot<arithmetic<half, half, half, sequential>>(x, y)), 258.0);  // 257.01 to a multiple of 2
  EXPECT_EQ((dot<arithmetic<half, float, double, sequential>>(x, y)), 256 + product);
}

TEST(dot, of_nothing_is_start) {
  const std::vector<half> none;
  EXPECT_EQ(lift<double>(dot<plain<half>>(none, none)), 0.0);
  EXPECT_FALSE(signbit(dot<plain<half>>(none, none)));
  EXPECT_EQ(lift<double>(dot<arithmetic<half, half, half, pairwise>>(none, none, half(3))), 3.0);
  EXPECT_EQ(lift<double>(dot<arithmetic<half, exact_product, single, tensor_core<hopper>>>(none, none, single(3))), 3.0);
}

TEST(dot, is_plus_zero_when_everything_is_minus_zero) {
  const std::vector<double> zeros(5, 0.0);
  const std::vector<double> minus(5, -1.0);
  EXPECT_FALSE(std::signbit(dot<plain<double>>(zeros, minus)));
  EXPECT_FALSE(std::signbit(dot<arithmetic<double, double, double, pairwise>>(zeros, minus)));
  EXPECT_FALSE(std::signbit(dot<arithmetic<double, exact_product, double, blocked<2>>>(zeros, minus)));
  EXPECT_TRUE(std::signbit(dot<arithmetic<double, exact_product, double, pairwise>>(zeros, minus, -0.0)));
  EXPECT_TRUE(std::signbit(dot<arithmetic<double, double, double, pairwise>>(zeros, minus, -0.0)));
}

TEST(dot, refuses_two_lengths_and_names_them) {
  const std::vector<double> x(3);
  const std::vector<double> y(4);
  try {
    static_cast<void>(dot<plain<double>>(x, y));
    FAIL() << "no exception";
  } catch (const shape_error& e) {
    EXPECT_NE(std::string(e.what()).find('3'), std::string::npos) << e.what();
    EXPECT_NE(std::string(e.what()).find('4'), std::string::npos) << e.what();
  }
}

TEST(dot, reads_its_spans_and_nothing_around_them) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  for (std::size_t count = 0; count < 70; ++count) {
    std::vector<double> x(count + 40, nan);
    std::vector<double> y(count + 40, nan);
    std::fill_n(x.begin() + 20, count, 1.0);
    std::fill_n(y.begin() + 20, count, 2.0);
    const auto left = std::span(x).subspan(20, count);
    const auto right = std::span(y).subspan(20, count);
    const double want = 2.0 * static_cast<double>(count);
    EXPECT_EQ((dot<plain<double>>(left, right)), want);
    EXPECT_EQ((dot<arithmetic<double, exact_product, double, pairwise>>(left, right)), want);
    EXPECT_EQ((dot<arithmetic<double, double, double, blocked<16>>>(left, right)), want);
  }
}

template <class A>
void expect_special_values() {
  using S = typename A::storage_type;
  const double infinity = std::numeric_limits<double>::infinity();
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const auto value = [](double a, double b, double c, double d) {
    const auto of = [](double x) { return round_to<S>(x); };
    return lift<double>(dot<A>(std::vector<S>{of(a), of(b)}, std::vector<S>{of(c), of(d)}));
  };
  EXPECT_EQ(value(infinity, 1, 2, 1), infinity);
  EXPECT_EQ(value(1, infinity, 1, -2), -infinity);
  EXPECT_TRUE(std::isnan(value(infinity, infinity, 1, -1)));
  EXPECT_TRUE(std::isnan(value(infinity, 1, 0, 1)));
  EXPECT_TRUE(std::isnan(value(1, nan, 1, 0)));
}

TEST(dot, carries_infinities_and_nan_as_ieee_754_does) {
  expect_special_values<plain<double>>();
  expect_special_values<plain<half>>();
  expect_special_values<arithmetic<half, exact_product, single, pairwise>>();
  expect_special_values<arithmetic<half, exact_product, single, blocked<1>>>();
  expect_special_values<arithmetic<half, exact_product, single, tensor_core<hopper>>>();
  expect_special_values<arithmetic<rounded<fp16>, exact_product, single, tensor_core<volta>>>();
}

std::vector<double> normals(std::uint64_t stream, std::size_t count) {
  philox generator(20260101, stream);
  std::vector<double> values(count);
  for (double& x : values) x = generator.normal();
  return values;
}

/// Normals rounded to the storage type.
template <class S>
std::vector<S> stored(std::uint64_t stream, std::size_t count) {
  std::vector<S> result;
  for (const double x : normals(stream, count)) result.push_back(round_to<S>(x));
  return result;
}

/// A against exact rationals rounded once per step.
template <class X, class Product, class S>
void expect_slow_forms(std::uint64_t seed) {
  constexpr bool fused = std::is_same_v<Product, exact_product>;
  using P = std::conditional_t<fused, S, Product>;
  for (const std::size_t count : {1U, 2U, 3U, 7U, 8U, 31U, 64U, 100U}) {
    const auto x = stored<X>(seed, count);
    const auto y = stored<X>(seed + 1, count);
    const S start = round_to<S>(normals(seed + 2, 1)[0]);
    const auto bits = [](const S& value) { return std::bit_cast<std::uint64_t>(lift<double>(value)); };
    EXPECT_EQ(bits(dot<arithmetic<X, Product, S, sequential>>(x, y, start)), bits(slow::run<P, S>(x, y, 0, count, start, fused)));
    EXPECT_EQ(bits(dot<arithmetic<X, Product, S, pairwise>>(x, y, start)), bits(slow::pairs<P, S>(x, y, start, fused)));
    EXPECT_EQ(bits(dot<arithmetic<X, Product, S, blocked<8>>>(x, y, start)), bits(slow::blocks<P, S>(x, y, 8, start, fused)));
    EXPECT_EQ(bits(dot<arithmetic<X, Product, S, blocked<5>>>(x, y, start)), bits(slow::blocks<P, S>(x, y, 5, start, fused)));
  }
}

TEST(dot, equals_exact_arithmetic_rounded_once_per_step) {
  expect_slow_forms<half, half, half>(1);
  expect_slow_forms<half, exact_product, half>(2);
  expect_slow_forms<half, exact_product, single>(3);
  expect_slow_forms<half, half, single>(4);
  expect_slow_forms<rounded<fp16>, exact_product, rounded<fp16>>(5);
  expect_slow_forms<rounded<e4m3>, rounded<e4m3>, half>(6);
  expect_slow_forms<single, exact_product, half>(7);
  expect_slow_forms<float, exact_product, float>(8);
  expect_slow_forms<float, float, double>(9);
  expect_slow_forms<double, exact_product, double>(10);
}

TEST(dot, float_and_rounded_fp32_are_the_same_arithmetic) {
  const auto x = stored<float>(21, 300);
  const auto y = stored<float>(22, 300);
  std::vector<single> wrapped_x;
  std::vector<single> wrapped_y;
  for (const float value : x) wrapped_x.push_back(lift<single>(value));
  for (const float value : y) wrapped_y.push_back(lift<single>(value));
  EXPECT_EQ(static_cast<double>(dot<plain<float>>(x, y)), lift<double>(dot<plain<single>>(wrapped_x, wrapped_y)));
}

template <class S>
void expect_one_value_in_every_order(const std::vector<S>& x, const std::vector<S>& y, const S& want) {
  EXPECT_TRUE(dot<plain<S>>(x, y) == want);
  EXPECT_TRUE((dot<arithmetic<S, S, S, pairwise>>(x, y) == want));
  EXPECT_TRUE((dot<arithmetic<S, S, S, blocked<7>>>(x, y) == want));
  EXPECT_TRUE((dot<arithmetic<S, exact_product, S, sequential>>(x, y) == want));
  EXPECT_TRUE((dot<arithmetic<S, exact_product, S, pairwise>>(x, y) == want));
}

TEST(dot, of_exact_scalars_is_the_sum_whatever_the_order) {
  const auto x = normals(31, 100);
  const auto y = normals(32, 100);
  std::vector<rational> rx;
  std::vector<rational> ry;
  std::vector<modular> mx;
  std::vector<modular> my;
  for (std::size_t i = 0; i < x.size(); ++i) {
    rx.push_back(exact(x[i]));
    ry.push_back(exact(y[i]));
    mx.push_back(reduce(x[i]));
    my.push_back(reduce(y[i]));
  }
  const rational want = slow::exact_dot(x, y);
  expect_one_value_in_every_order(rx, ry, want);
  expect_one_value_in_every_order(mx, my, reduce(want));
}

TEST(dot, of_wide_scalars_is_near_the_exact_sum) {
  const auto x = normals(41, 200);
  const auto y = normals(42, 200);
  const rational want = slow::exact_dot(x, y);
  std::vector<double_double> dx;
  std::vector<double_double> dy;
  std::vector<real<128>> rx;
  std::vector<real<128>> ry;
  rational size = 0;  // sum of |x_i y_i|
  for (std::size_t i = 0; i < x.size(); ++i) {
    dx.emplace_back(x[i]);
    dy.emplace_back(y[i]);
    rx.push_back(lift<real<128>>(x[i]));
    ry.push_back(lift<real<128>>(y[i]));
    size += abs(exact(x[i]) * exact(y[i]));
  }
  // 200 additions of relative error at most 4 u^2 each for double_double, 2^-128 for real<128>.
  const double_double pair = dot<arithmetic<double_double, double_double, double_double, pairwise>>(dx, dy);
  EXPECT_LE(abs(exact(pair.hi()) + exact(pair.lo()) - want), size * exact(200 * 4 * 0x1p-106));
  const rational wide = lift<rational>(dot<plain<real<128>>>(rx, ry));
  EXPECT_LE(abs(wide - want), size * exact(400 * 0x1p-128));
}

}  // namespace
}  // namespace deltaproof
