// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
#include "deltaproof/algebra/tensor.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <numeric>

#include "deltaproof/number/convert.hpp"
#include "deltaproof/number/rounded.hpp"
#include "support/thrown.hpp"

namespace deltaproof {
namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();
constexpr double nan = std::numeric_limits<double>::quiet_NaN();

std::uint64_t bits_of(double x) { return std::bit_cast<std::uint64_t>(x); }

/// All patterns of a format of at most 16 bits, read singly and in bulk, are what the number says they are.
template <format F>
void expect_every_pattern(const char* dtype) {
  using bits_type = typename rounded<F>::bits_type;
  const std::size_t count = std::size_t{1} << F.storage_bits;
  std::vector<bits_type> patterns(count);
  std::iota(patterns.begin(), patterns.end(), bits_type{0});
  const tensor t(F, {count}, std::as_bytes(std::span(patterns)));
  EXPECT_EQ(t.dtype(), dtype);
  const auto values = t.to_doubles();
  for (std::size_t i = 0; i < count; ++i) {
    const double want = lift<double>(rounded<F>::from_bits(patterns[i]));
    ASSERT_EQ(std::isnan(values[i]), std::isnan(want)) << i;
    if (std::isnan(want)) continue;
    ASSERT_EQ(bits_of(values[i]), bits_of(want)) << i;
    ASSERT_EQ(bits_of(t.at(i)), bits_of(want)) << i;
  }
  const tensor back = tensor::from_doubles(F, {count}, values);
  for (std::size_t i = 0; i < count; ++i) {
    if (std::isnan(values[i])) {
      EXPECT_TRUE(std::isnan(back.at(i))) << i;
    } else {
      bits_type stored;
      std::memcpy(&stored, back.bytes().data() + i * sizeof stored, sizeof stored);
      ASSERT_EQ(stored, patterns[i]);
    }
  }
}

TEST(tensor, reads_and_stores_every_bf16) { expect_every_pattern<bf16>("BF16"); }
TEST(tensor, reads_and_stores_every_fp16) { expect_every_pattern<fp16>("F16"); }
TEST(tensor, reads_and_stores_every_e4m3) { expect_every_pattern<e4m3>("F8_E4M3"); }
TEST(tensor, reads_and_stores_every_e5m2) { expect_every_pattern<e5m2>("F8_E5M2"); }

TEST(tensor, keeps_wide_values_exactly) {
  const std::vector<double> values{0.0, -0.0, 1.0, 0x1.fffffep127, -0x1p-149, infinity, -infinity};
  for (const format& f : {fp32, fp64}) {
    const tensor t = tensor::from_doubles(f, {values.size()}, values);
    for (std::size_t i = 0; i < values.size(); ++i) EXPECT_EQ(bits_of(t.at(i)), bits_of(values[i]));
  }
  const std::vector<double> fine{0x1.0000000000001p0, 0x1p-1074};
  EXPECT_EQ(tensor::from_doubles(fp64, {2}, fine).to_doubles(), fine);
}

TEST(tensor, refuses_what_the_format_does_not_hold) {
  const auto refuses = [](const format& f, double x) {
    const std::vector<double> values{0.0, x};
    try {
      static_cast<void>(tensor::from_doubles(f, {2}, values, "k"));
      return false;
    } catch (const domain_error& e) {
      const std::string what = e.what();
      return what.find("'k'") != std::string::npos && what.find("element 1") != std::string::npos;
    }
  };
  EXPECT_THAT(testing::thrown([] { static_cast<void>(tensor::from_doubles(bf16, {1}, std::vector<double>{0.1}, "k")); }),
              ::testing::HasSubstr("0x1.999999999999ap-4 (0.10000000000000001), is not a value of BF16"));
  EXPECT_TRUE(refuses(bf16, 1 + 0x1p-8));
  EXPECT_FALSE(refuses(bf16, 1 + 0x1p-7));
  EXPECT_TRUE(refuses(bf16, 0x1p-134));
  EXPECT_FALSE(refuses(bf16, 0x1p-133));
  EXPECT_TRUE(refuses(fp16, 65520.0));
  EXPECT_FALSE(refuses(fp16, 65504.0));
  EXPECT_TRUE(refuses(fp32, 1e300));
  EXPECT_TRUE(refuses(e4m3, infinity));
  EXPECT_TRUE(refuses(e4m3, 449.0));
  EXPECT_FALSE(refuses(e4m3, 448.0));
  EXPECT_FALSE(refuses(e5m2, infinity));
  EXPECT_FALSE(refuses(e4m3, nan));
}

TEST(tensor, reads_a_part_and_writes_nothing_else) {
  std::vector<double> values(100);
  std::iota(values.begin(), values.end(), 0.0);
  const tensor t = tensor::from_doubles(fp16, {10, 10}, values);
  std::vector<double> out(30, nan);
  t.read(37, std::span(out).subspan(10, 7));
  for (std::size_t i = 0; i < out.size(); ++i) {
    if (i >= 10 && i < 17) {
      EXPECT_EQ(out[i], 37.0 + static_cast<double>(i - 10));
    } else {
      EXPECT_TRUE(std::isnan(out[i])) << i;
    }
  }
}

TEST(tensor, refuses_to_read_past_the_end) {
  const tensor t = tensor::from_doubles(fp32, {3}, std::vector<double>{1, 2, 3});
  std::vector<double> out(2);
  EXPECT_NO_THROW(t.read(1, out));
  EXPECT_THROW(t.read(2, out), domain_error);
  EXPECT_THROW(static_cast<void>(t.at(3)), domain_error);
  EXPECT_THROW(t.read(std::numeric_limits<std::size_t>::max(), out), domain_error);
  EXPECT_NO_THROW(t.read(3, std::span<double>{}));
}

TEST(tensor, checks_bytes_against_the_shape) {
  const std::vector<std::byte> bytes(12);
  EXPECT_NO_THROW(tensor(fp32, {3}, bytes));
  EXPECT_NO_THROW(tensor(bf16, {2, 3}, bytes));
  EXPECT_THROW(tensor(fp64, {2}, bytes), shape_error);
  EXPECT_THROW(tensor(fp32, {4}, bytes), shape_error);
  EXPECT_THROW(static_cast<void>(tensor::from_doubles(fp32, {4}, std::vector<double>(3))), shape_error);
}

TEST(tensor, refuses_shapes_that_overflow) {
  const std::size_t huge = std::size_t{1} << 40;
  EXPECT_THROW(tensor(fp32, {huge, huge}, std::span<const std::byte>{}), shape_error);
  EXPECT_THROW(tensor(fp64, {std::size_t{1} << 62}, std::span<const std::byte>{}), shape_error);
  EXPECT_NO_THROW(tensor(fp32, {huge, 0, huge}, std::span<const std::byte>{}));
}

TEST(tensor, may_be_empty_or_a_scalar) {
  EXPECT_EQ(tensor().size(), 0U);
  EXPECT_TRUE(tensor().to_doubles().empty());
  const tensor one = tensor::from_doubles(fp32, {}, std::vector<double>{4.0});
  EXPECT_EQ(one.size(), 1U);
  EXPECT_EQ(one.at(0), 4.0);
  EXPECT_EQ(shape_text(one.shape()), "[]");
}

TEST(tensor, refuses_a_format_that_files_do_not_have) {
  EXPECT_THROW(tensor(tf32, {1}, std::vector<std::byte>(4)), format_error);
  EXPECT_THROW(static_cast<void>(tensor::from_doubles(tf32, {1}, std::vector<double>(1))), format_error);
}

TEST(tensor, keeps_integers_apart_from_numbers) {
  const std::vector<std::int64_t> offsets{0, 17, -3, std::numeric_limits<std::int64_t>::max()};
  const tensor t = tensor::from_integers({4}, offsets, "cu_seqlens");
  EXPECT_TRUE(t.is_integer());
  EXPECT_EQ(t.dtype(), "I64");
  EXPECT_EQ(t.to_integers(), offsets);
  EXPECT_EQ(t.integer_at(3), offsets[3]);
  EXPECT_THROW(static_cast<void>(t.integer_at(4)), domain_error);
  EXPECT_THROW(static_cast<void>(t.at(0)), format_error);
  EXPECT_THROW(static_cast<void>(t.to_doubles()), format_error);
  EXPECT_THROW(static_cast<void>(t.element_format()), format_error);
  const tensor numbers = tensor::from_doubles(fp64, {1}, std::vector<double>{1});
  EXPECT_THROW(static_cast<void>(numbers.to_integers()), format_error);
  EXPECT_THROW(static_cast<void>(numbers.integer_at(0)), format_error);
}

TEST(tensor, copies_share_their_bytes) {
  const tensor t = tensor::from_doubles(bf16, {2}, std::vector<double>{1, 2}, "q");
  const tensor other = t.named("k");
  EXPECT_EQ(other.bytes().data(), t.bytes().data());
  EXPECT_EQ(other.name(), "k");
  EXPECT_EQ(t.name(), "q");
}

TEST(tensor, same_bits_compares_shape_dtype_and_patterns) {
  const std::vector<double> plus{0.0, nan};
  const std::vector<double> minus{-0.0, nan};
  const tensor a = tensor::from_doubles(fp32, {2}, plus, "a");
  EXPECT_TRUE(same_bits(a, tensor::from_doubles(fp32, {2}, plus, "b")));
  EXPECT_FALSE(same_bits(a, tensor::from_doubles(fp32, {2}, minus)));
  EXPECT_FALSE(same_bits(a, tensor::from_doubles(fp32, {2, 1}, plus)));
  EXPECT_FALSE(same_bits(a, tensor::from_doubles(fp64, {2}, plus)));
}

TEST(tensor, dimensions_are_asked_by_axis) {
  const tensor t = tensor::from_doubles(fp32, {2, 3}, std::vector<double>(6));
  EXPECT_EQ(t.rank(), 2U);
  EXPECT_EQ(t.dim(1), 3U);
  EXPECT_THROW(static_cast<void>(t.dim(2)), shape_error);
}

}  // namespace
}  // namespace deltaproof
