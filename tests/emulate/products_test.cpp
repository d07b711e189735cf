// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
#include "emulate/products.hpp"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

#include "deltaproof/algebra/dot.hpp"
#include "deltaproof/number/random.hpp"
#include "emulate/product_kernels.hpp"
#include "support/multiplier.hpp"

namespace deltaproof::emulation {
namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();
constexpr double nan = std::numeric_limits<double>::quiet_NaN();

template <class Real>
bool same_bits(Real x, Real y) {
  return (x != x && y != y) || std::memcmp(&x, &y, sizeof(Real)) == 0;
}

/// What the entries of a trial are. `cancelling`: few small integers, so that sums pass through zero. `full`: all near the
/// largest of their binade and of one sign, which fills the integers of the block model.
enum class entries { normal, whole_range, tiny, huge, special, cancelling, full };
constexpr std::array<entries, 7> all_entries{entries::normal,  entries::whole_range, entries::tiny, entries::huge,
                                             entries::special, entries::cancelling,  entries::full};

/// A value of F. Independent of the code under test: rounded by round_to.
template <format F>
double draw(philox& generator, entries of) {
  const double sign = generator.below(2) == 0 ? 1 : -1;
  const auto scaled_to = [&](int lowest, int span) {
    const int exponent = lowest + static_cast<int>(generator.below(static_cast<std::uint64_t>(span)));
    const double x = lift<double>(round_to<F>(sign * std::ldexp(1 + generator.uniform(), exponent)));
    return std::isfinite(x) ? x : 0.0;
  };
  if (of != entries::full && generator.below(12) == 0) return sign * 0.0;
  switch (of) {
    case entries::normal:
      return lift<double>(round_to<F>(generator.normal()));
    case entries::whole_range:
      return scaled_to(F.emin - F.precision + 1, F.emax - F.emin + F.precision);
    case entries::tiny:
      return scaled_to(generator.below(2) == 0 ? F.emin - F.precision + 1 : std::max(F.emin, -76), F.precision);
    case entries::huge:
      return scaled_to(generator.below(2) == 0 ? F.emax - 2 : F.emax / 2 - 2, 4);
    case entries::special:
      if (generator.below(60) == 0) return generator.below(4) == 0 ? nan : F.has_infinity ? sign * infinity : nan;
      return scaled_to(-6, 12);
    case entries::cancelling:
      return sign * static_cast<double>(generator.below(4));
    case entries::full:
      return 2 - std::ldexp(static_cast<double>(1 + generator.below(2)), 1 - F.precision);
  }
  return 0;
}

struct shape {
  std::size_t rows, inner, cols;
};

std::vector<shape> shapes() {
  // Of 16 rows on, sets with fused steps look whether products are exact.
  std::vector<shape> result{{0, 3, 4},    {3, 4, 0},    {5, 127, 33}, {9, 65, 70},
                            {4, 128, 32}, {11, 257, 5}, {16, 48, 32}, {21, 66, 41}};
  for (std::size_t n = 0; n <= 40; ++n) result.push_back({1 + n * 3 % 6, n, 1 + n * 7 % 41});
  return result;
}

/// Every entry of c + a b, by every instruction set, against reference(row of a, column of b, c). Rows are padded with NaN
/// that must stay, and what a shape does not hold is NaN that must not be read.
template <format F, format Start, class Real>
void expect_products(const sum_rule& rule, const char* what, auto reference) {
  philox generator(17, static_cast<std::uint64_t>(F.precision + 100 * Start.precision));
  const Real hole = static_cast<Real>(nan);
  for (const entries of : all_entries) {
    for (const shape& s : shapes()) {
      const std::size_t a_stride = s.inner + generator.below(3);
      const std::size_t b_stride = s.cols + generator.below(3);
      const std::size_t c_stride = s.cols + generator.below(3);
      std::vector<Real> a(s.rows * a_stride, hole);
      std::vector<Real> b(s.inner * b_stride, hole);
      std::vector<Real> start(s.rows * c_stride, hole);
      const bool from_zero = generator.below(2) == 0;
      for (std::size_t i = 0; i < s.rows; ++i) {
        for (std::size_t k = 0; k < s.inner; ++k) a[i * a_stride + k] = static_cast<Real>(draw<F>(generator, of));
        for (std::size_t j = 0; j < s.cols; ++j) {
          start[i * c_stride + j] = from_zero ? Real{0} : static_cast<Real>(draw<Start>(generator, of));
        }
      }
      for (std::size_t k = 0; k < s.inner; ++k) {
        for (std::size_t j = 0; j < s.cols; ++j) b[k * b_stride + j] = static_cast<Real>(draw<F>(generator, of));
      }
      std::vector<Real> expected = start;
      for (std::size_t j = 0; j < s.cols; ++j) {
        std::vector<Real> column(s.inner);
        for (std::size_t k = 0; k < s.inner; ++k) column[k] = b[k * b_stride + j];
        for (std::size_t i = 0; i < s.rows; ++i) {
          const std::vector<Real> row(a.data() + i * a_stride, a.data() + i * a_stride + s.inner);
          expected[i * c_stride + j] = static_cast<Real>(reference(row, column, start[i * c_stride + j]));
        }
      }
      for (const instruction_set set : supported_sets()) {
        std::vector<Real> c = start;
        multiply(product<Real>{a.data(), a_stride, b.data(), b_stride, c.data(), c_stride, s.rows, s.inner, s.cols}, rule,
                 kernels_of(set));
        for (std::size_t at = 0; at < c.size(); ++at) {
          ASSERT_TRUE(same_bits(c[at], expected[at]))
              << what << ", entries " << static_cast<int>(of) << ", set " << static_cast<int>(set) << ", " << s.rows << "x"
              << s.inner << "x" << s.cols << " at " << at / c_stride << "," << at % c_stride << ": " << std::hexfloat << c[at]
              << " for " << expected[at] << ", start " << start[at];
        }
      }
    }
  }
}

template <class Storage, class Real>
std::vector<Storage> as(const std::vector<Real>& x) {
  std::vector<Storage> result;
  for (const Real value : x) {
    if constexpr (FormatScalar<Storage> && !std::is_floating_point_v<Storage>) {
      result.push_back(Storage::from_exact(static_cast<double>(value)));
    } else {
      result.push_back(static_cast<Storage>(value));
    }
  }
  return result;
}

template <class S>
S value_as(double x) {
  return as<S>(std::vector<double>{x})[0];
}

/// The order chain_of_16, from algebra's sequential sums and a tree spelled out.
template <class Storage, class Product, class Sum>
Sum chain_of_16(const std::vector<Storage>& x, const std::vector<Storage>& y, Sum start) {
  if (x.empty()) return start;
  std::vector<Sum> sums;
  for (std::size_t r = 0; r < 16; ++r) {
    std::vector<Storage> left;
    std::vector<Storage> right;
    for (std::size_t k = r; k < x.size(); k += 16) {
      left.push_back(x[k]);
      right.push_back(y[k]);
    }
    sums.push_back(dot<arithmetic<Storage, Product, Sum, sequential>>(left, right));
  }
  for (std::size_t width = 8; width > 0; width /= 2) {
    for (std::size_t i = 0; i < width; ++i) sums[i] = sums[2 * i] + sums[2 * i + 1];
  }
  return start + sums[0];
}

/// All four orders of arithmetic<Storage, Product, Sum, .>, operands values of F.
template <format F, class Storage, class Product, class Sum, class Real>
void expect_orders(const format& accumulate, const char* what) {
  constexpr format start = format_of<Sum>;
  const auto by = [](auto order) {
    return [](const std::vector<Real>& x, const std::vector<Real>& y, Real c) {
      using A = arithmetic<Storage, Product, Sum, decltype(order)>;
      return lift<double>(dot<A>(as<Storage>(x), as<Storage>(y), value_as<Sum>(static_cast<double>(c))));
    };
  };
  const auto chain = [](const std::vector<Real>& x, const std::vector<Real>& y, Real c) {
    return lift<double>(
        chain_of_16<Storage, Product, Sum>(as<Storage>(x), as<Storage>(y), value_as<Sum>(static_cast<double>(c))));
  };
  expect_products<F, start, Real>({.order = sum_order::sequential, .accumulate = accumulate}, what, by(sequential{}));
  expect_products<F, start, Real>({.order = sum_order::pairwise, .accumulate = accumulate}, what, by(pairwise{}));
  expect_products<F, start, Real>({.order = sum_order::blocks_of_16, .accumulate = accumulate}, what, by(blocked<16>{}));
  expect_products<F, start, Real>({.order = sum_order::chain_of_16, .accumulate = accumulate}, what, chain);
}

TEST(products, equal_algebra_in_the_format_of_real) {
  expect_orders<bf16, float, float, float, float>(fp32, "bf16 into fp32");
  expect_orders<fp16, float, float, float, float>(fp32, "fp16 into fp32");
  expect_orders<fp32, float, float, float, float>(fp32, "fp32 into fp32");
  expect_orders<fp32, double, double, double, double>(fp64, "fp32 into fp64");
  expect_orders<fp64, double, double, double, double>(fp64, "fp64 into fp64");
}

TEST(products, fp16_products_are_exact_in_float) {
  expect_orders<fp16, rounded<fp16>, exact_product, float, float>(fp32, "exact fp16 products into fp32");
}

TEST(products, round_once_into_a_narrower_accumulator) {
  expect_orders<fp16, rounded<fp16>, exact_product, rounded<fp16>, float>(fp16, "fp16 into fp16");
  expect_orders<bf16, rounded<bf16>, exact_product, rounded<bf16>, float>(bf16, "bf16 into bf16");
  expect_orders<bf16, rounded<bf16>, exact_product, rounded<fp16>, float>(fp16, "bf16 into fp16");
  expect_orders<fp16, rounded<fp16>, exact_product, rounded<e5m2>, double>(e5m2, "fp16 into e5m2");
  expect_orders<e4m3, rounded<e4m3>, exact_product, rounded<e4m3>, float>(e4m3, "e4m3 into e4m3");
  expect_orders<fp32, float, exact_product, float, double>(fp32, "fused fp32");
}

TEST(products, a_tiny_accumulator_decides_a_tie) {
  // 259 lies halfway between 258 and 260 in bf16. 259 - 2^-60 is 259 in double; 259 - 1.5 2^-45 has an odd neighbour there.
  for (const instruction_set set : supported_sets()) {
    for (const double tiny : {0x1p-60, -0x1p-60, 0x1.8p-45, -0x1.8p-45}) {
      const float a = 7;
      const float b = 37;
      float c = static_cast<float>(tiny);
      multiply(product<float>{&a, 1, &b, 1, &c, 1, 1, 1, 1}, {.accumulate = bf16}, kernels_of(set));
      EXPECT_EQ(c, tiny < 0 ? 258.0F : 260.0F);
    }
  }
}

// 4095 and 8191 have 12 and 13 bits, their product 25. Its last one is lost where the product is rounded by itself.
TEST(products, of_one_bit_too_many_are_rounded_before_they_are_added) {
  const std::vector<float> a(16, 4095), b(1, 8191);
  for (const instruction_set set : supported_sets()) {
    std::vector<float> c(16, -4095.0F * 8191.0F);
    multiply(product<float>{a.data(), 1, b.data(), 1, c.data(), 1, 16, 1, 1}, {}, kernels_of(set));
    for (const float x : c) EXPECT_EQ(x, 0);
  }
}

template <class Generation, format F>
void expect_block_model() {
  constexpr core_parameters model = core_model<Generation, F>;
  const auto reference = [](const std::vector<float>& x, const std::vector<float>& y, float c) {
    using A = arithmetic<rounded<F>, exact_product, float, tensor_core<Generation>>;
    return dot<A>(as<rounded<F>>(x), as<rounded<F>>(y), c);
  };
  const sum_rule rule{sum_order::tensor_core, fp32, model.fraction_bits, model.block, F};
  expect_products<F, fp32, float>(rule, Generation::name.data(), reference);
  expect_products<F, F, float>(rule, Generation::name.data(), reference);
}

TEST(products, equal_the_block_model_on_bf16) {
  expect_block_model<hopper, bf16>();
  expect_block_model<ampere, bf16>();
}
TEST(products, equal_the_block_model_on_fp16) {
  expect_block_model<hopper, fp16>();
  expect_block_model<turing, fp16>();
  expect_block_model<volta, fp16>();
}
TEST(products, equal_the_block_model_on_tf32) {
  expect_block_model<hopper, tf32>();
  expect_block_model<ampere, tf32>();
}

TEST(products, a_block_too_long_for_32_bits_is_still_the_model) {
  const auto reference = [](const std::vector<float>& x, const std::vector<float>& y, float c) {
    std::vector<core_operand> left;
    std::vector<core_operand> right;
    for (const float v : x) left.push_back(take_apart(static_cast<double>(v), bf16.precision, bf16.emin));
    for (const float v : y) right.push_back(take_apart(static_cast<double>(v), bf16.precision, bf16.emin));
    double acc = static_cast<double>(c);
    for (std::size_t k = 0; k < x.size(); k += 40) {
      const std::size_t count = std::min<std::size_t>(40, x.size() - k);
      acc = fused_block({left.data() + k, count}, {right.data() + k, count}, bf16.precision, acc, {40, 25, 23, -133});
    }
    return acc;
  };
  expect_products<bf16, fp32, float>({sum_order::tensor_core, fp32, 25, 40, bf16}, "blocks of 40", reference);
}

TEST(products, a_block_sum_at_the_end_of_32_bits_is_truncated) {
  // 16 (2 - 2^-10)^2 = (2^31 - 2^21 + 2^9) 2^-25; the accumulator brings it to (2^31 - 1) 2^-25, then to 64.
  for (const instruction_set set : supported_sets()) {
    for (const float sign : {1.0F, -1.0F}) {
      const std::vector<float> a(16, 2 - 0x1p-10F);
      const std::vector<float> b(16, sign * (2 - 0x1p-10F));
      for (const float more : {0.0F, 1.0F}) {
        float c = sign * (0x1p21F - 513 + more) * 0x1p-25F;
        multiply(product<float>{a.data(), 16, b.data(), 1, &c, 1, 1, 16, 1}, {.order = sum_order::tensor_core, .operand = fp16},
                 kernels_of(set));
        EXPECT_EQ(c, sign * (more > 0 ? 64 : 64 - 0x1p-18F)) << static_cast<int>(set);
      }
    }
  }
}

TEST(products, the_operands_format_decides_where_a_subnormal_counts) {
  // 2^-24 is subnormal in fp16 and counts with exponent -14; in tf32 with its own. 2^-24 2^-14 + 2^-52 keeps its last bit only
  // where the largest exponent is low enough.
  const float a = 0x1p-24F;
  const float b = 0x1p-14F;
  for (const format& f : {fp16, tf32}) {
    float c = 0x1p-54F;
    multiply(product<float>{&a, 1, &b, 1, &c, 1, 1, 1, 1}, {sum_order::tensor_core, fp32, 25, 16, f});
    EXPECT_EQ(c, f == fp16 ? 0x1p-38F : 0x1p-38F + 0x1p-54F) << name_of(f);
  }
}

template <class Real, format F, class Nearest>
void expect_narrow(const std::vector<Real>& values) {
  // To nearest, tf32 rounds a tie away from zero.
  using Mode = std::conditional_t<F == tf32 && !std::is_same_v<Nearest, toward_zero>, nearest_away, Nearest>;
  const narrowing to{F, std::is_same_v<Mode, toward_zero>};
  std::vector<Real> expected;
  Mode mode;
  for (const Real x : values) {
    // A format that holds every Real leaves it; the others are held by double.
    expected.push_back(is_lossless(format_of<Real>, F) ? x
                                                       : static_cast<Real>(detail::round_value<F>(static_cast<double>(x), mode)));
  }
  for (const instruction_set set : supported_sets()) {
    std::vector<Real> got = values;
    if constexpr (sizeof(Real) == 4) {
      kernels_of(set).narrow_floats(got.data(), got.size(), rounding<float>(F), to.toward_zero);
    } else {
      kernels_of(set).narrow_doubles(got.data(), got.size(), rounding<double>(F), to.toward_zero);
    }
    for (std::size_t i = 0; i < values.size(); ++i) {
      ASSERT_TRUE(same_bits(got[i], expected[i]))
          << name_of(F) << (to.toward_zero ? " toward zero" : "") << ", set " << static_cast<int>(set) << ": " << std::hexfloat
          << values[i] << " gave " << got[i] << " for " << expected[i];
    }
  }
  for (std::size_t i = 0; i < values.size(); ++i) ASSERT_TRUE(same_bits(narrowed(values[i], to), expected[i])) << values[i];
}

/// Bit patterns over the whole range, and around every power of two and the largest values of the table.
template <class Real>
std::vector<Real> hard_values() {
  using bits_type = std::conditional_t<sizeof(Real) == 4, std::uint32_t, std::uint64_t>;
  philox generator(23, sizeof(Real));
  std::vector<Real> values;
  for (std::size_t i = 0; i < scaled(60000); ++i) values.push_back(std::bit_cast<Real>(static_cast<bits_type>(generator())));
  for (const auto& row : formats) {
    for (int e = std::max(row.value.emin - row.value.precision - 1, -1074); e <= std::min(row.value.emax + 1, 1023); ++e) {
      for (const double last : {0.0, 0.5, 1.0, 1.5, 2.0, 3.0}) {
        const double middle = std::ldexp(1 + last * std::ldexp(1, 1 - row.value.precision), e);
        for (const Real x : {static_cast<Real>(middle), std::nextafter(static_cast<Real>(middle), Real{0}),
                             std::nextafter(static_cast<Real>(middle), static_cast<Real>(infinity))}) {
          values.push_back(x);
          values.push_back(-x);
        }
      }
    }
    const auto most = static_cast<Real>(largest(row.value));
    const auto half = static_cast<Real>(largest(row.value) + std::ldexp(0.5, row.value.emax + 1 - row.value.precision));
    for (const Real x : {most, half, std::nextafter(half, Real{0}), std::nextafter(half, static_cast<Real>(infinity))}) {
      values.push_back(x);
      values.push_back(-x);
    }
  }
  for (const double x : {0.0, -0.0, infinity, -infinity, nan}) values.push_back(static_cast<Real>(x));
  // NaN whose payload is all in the bits that are dropped.
  values.push_back(std::bit_cast<Real>(static_cast<bits_type>(std::bit_cast<bits_type>(static_cast<Real>(infinity)) + 1)));
  return values;
}

template <class Real, class Mode>
void expect_narrow_to_all() {
  const std::vector<Real> values = hard_values<Real>();
  expect_narrow<Real, bf16, Mode>(values);
  expect_narrow<Real, fp16, Mode>(values);
  expect_narrow<Real, tf32, Mode>(values);
  expect_narrow<Real, e4m3, Mode>(values);
  expect_narrow<Real, e5m2, Mode>(values);
  expect_narrow<Real, fp32, Mode>(values);
  expect_narrow<Real, fp64, Mode>(values);
}

TEST(narrow, rounds_floats_to_nearest) { expect_narrow_to_all<float, nearest_even>(); }
TEST(narrow, rounds_floats_toward_zero) { expect_narrow_to_all<float, toward_zero>(); }
TEST(narrow, rounds_doubles_to_nearest) { expect_narrow_to_all<double, nearest_even>(); }
TEST(narrow, rounds_doubles_toward_zero) { expect_narrow_to_all<double, toward_zero>(); }

TEST(exp2, is_the_rounded_power_in_every_instruction_set) {
  std::vector<float> x{0.0F,
                       -0.0F,
                       1.0F,
                       -1.0F,
                       0.5F,
                       127.0F,
                       128.0F,
                       1000.0F,
                       -126.0F,
                       -126.5F,
                       -149.0F,
                       -150.0F,
                       -150.00002F,
                       -1000.0F,
                       1e-38F,
                       -1e-45F,
                       std::numeric_limits<float>::infinity(),
                       -std::numeric_limits<float>::infinity()};
  for (std::uint32_t bits = 0; bits < 0xffff0000U; bits += 65521) {
    const auto value = std::bit_cast<float>(bits);
    if (value == value) x.push_back(value);
  }
  for (int i = -200000; i < 200000; ++i) x.push_back(static_cast<float>(i) * 0.00073F);
  for (const instruction_set set : supported_sets()) {
    std::vector<float> got = x;
    kernels_of(set).exp2_floats(got.data(), got.size());
    for (std::size_t i = 0; i < x.size(); ++i) {
      ASSERT_EQ(got[i], static_cast<float>(std::exp2(static_cast<double>(x[i]))))
          << "x = " << x[i] << ", set " << static_cast<int>(set);
    }
    float nan = std::numeric_limits<float>::quiet_NaN();
    kernels_of(set).exp2_floats(&nan, 1);
    EXPECT_TRUE(std::isnan(nan));
  }
}

TEST(narrow, spans_are_rounded_where_they_lie) {
  std::vector<float> x{1 + 0x1p-9F, 3.0F, 0x1p-30F, 1e30F};
  narrow(std::span<float>(x).subspan(0, 3), {bf16});
  EXPECT_EQ(x, (std::vector<float>{1.0F, 3.0F, 0x1p-30F, 1e30F}));
  narrow(std::span<float>(x), {fp16, true});
  EXPECT_EQ(x, (std::vector<float>{1.0F, 3.0F, 0.0F, 65504.0F}));
  std::vector<double> y{1 + 0x1p-11, 1 + 0x1p-11 + 0x1p-52};
  narrow(std::span<double>(y), {fp16});
  EXPECT_EQ(y, (std::vector<double>{1, 1 + 0x1p-10}));
}

TEST(products, refuse_what_they_cannot_do) {
  const float a = 1 + 0x1p-10F;
  const float b = 1;
  float c = 0;
  const product<float> p{&a, 1, &b, 1, &c, 1, 1, 1, 1};
  EXPECT_THROW(multiply(p, {.accumulate = fp64}), format_error);
  EXPECT_THROW(multiply(p, {.order = sum_order::tensor_core, .accumulate = fp16}), format_error);
  EXPECT_THROW(multiply(p, {.order = sum_order::tensor_core, .operand = fp32}), format_error);
  EXPECT_THROW(multiply(p, {.order = sum_order::tensor_core, .operand = bf16}), format_error);  // 1 + 2^-10 is none
  EXPECT_THROW(multiply(p, {.order = sum_order::tensor_core, .block = 0, .operand = fp16}), format_error);
  EXPECT_THROW(multiply(p, {.order = sum_order::tensor_core, .fraction_bits = 40, .operand = fp16}), format_error);
  const double x = 1;
  double z = 0;
  EXPECT_THROW(multiply(product<double>{&x, 1, &x, 1, &z, 1, 1, 1, 1}, {.order = sum_order::tensor_core}), format_error);
  EXPECT_EQ(c, 0);
  EXPECT_EQ(z, 0);
}

}  // namespace
}  // namespace deltaproof::emulation
