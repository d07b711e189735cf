// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
//
// Stored matrices against lists of the values that each published layout holds: every 16-bit input through every element, every
// power of two through E8M0, every layout of scales; then stochastic rounding, error feedback, costs, bounds and refusals.
#include "deltaproof/number/block_format.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <random>

#include "number/block_truth.hpp"

namespace deltaproof {
namespace {

constexpr float infinity = std::numeric_limits<float>::infinity();
constexpr auto nearest = block_rounding::nearest;

template <class Real>
block_store<Real> store_of(const block_format& f, block_rounding how = nearest) {
  return {f, how, element_named("fp32"), 7, 3};
}
std::vector<float> stored(const block_format& f, std::vector<float> x, std::size_t rows, std::size_t cols) {
  store_of<float>(f)(x, rows, cols, 0);
  return x;
}
block_format row_of(std::string_view element) { return scaled(element, "row", scale_format::fp32); }

/// Every finite bf16 and fp16 number.
std::vector<float> sixteen_bit_numbers() {
  std::vector<float> all;
  for (const char* name : {"bf16", "fp16"}) {
    for (const truth::coded& c : truth::magnitudes_of(name)) {
      all.push_back(static_cast<float>(c.value));
      all.push_back(-static_cast<float>(c.value));
    }
  }
  return all;
}

TEST(elements, hold_the_values_of_their_published_layouts) {
  const auto values = [](const char* name) {
    std::vector<double> out;
    for (const truth::coded& c : truth::magnitudes_of(name)) out.push_back(c.value);
    return out;
  };
  EXPECT_EQ(values("e2m1"), (std::vector<double>{0, 0.5, 1, 1.5, 2, 3, 4, 6}));
  EXPECT_EQ(values("e4m3").back(), 448);
  EXPECT_EQ(values("e5m2").back(), 57344);
  for (const element_format& e : element_formats) {
    if (e.name == "fp32") continue;
    const std::vector<truth::coded>& all = truth::magnitudes_of(std::string(e.name));
    EXPECT_EQ(e.largest, all.back().value) << e.name;
    // Each value of the layout is stored as itself, whole.
    std::vector<float> x;
    for (const truth::coded& c : all) x.insert(x.end(), {static_cast<float>(c.value), -static_cast<float>(c.value)});
    const block_format f = e.integer || e.name == "e2m1" ? row_of(e.name) : unscaled(e.name);
    EXPECT_EQ(stored(f, x, 1, x.size()), x) << e.name;
  }
}

// A row that holds the element's largest value has the scale 1.
TEST(conversions, are_those_of_the_lists_for_every_sixteen_bit_number) {
  std::size_t compared = 0;
  for (const char* element : {"e4m3", "e5m2", "e2m1", "int8", "int4", "fp16"}) {
    const std::vector<truth::coded>& all = truth::magnitudes_of(element);
    const auto largest = static_cast<float>(all.back().value);
    std::vector<float> x{largest};
    for (const float value : sixteen_bit_numbers()) {
      if (std::fabs(value) <= largest) x.push_back(value);
    }
    const std::vector<float> got = stored(row_of(element), x, 1, x.size());
    for (std::size_t i = 0; i < x.size(); ++i) {
      const float want = static_cast<float>(truth::nearest_value(all, x[i]));
      ASSERT_EQ(got[i], want) << element << " of " << x[i];
      const bool integer = std::string_view(element).starts_with("int");
      ASSERT_EQ(std::signbit(got[i]), integer && want == 0 ? false : std::signbit(x[i])) << element << " of " << x[i];
    }
    compared += x.size();
  }
  EXPECT_GT(compared, 300000U);
}

TEST(conversions, take_halves_to_even_and_neighbours_of_halves_to_the_nearer_side) {
  for (const char* element : {"e4m3", "e5m2", "e2m1", "int8", "int4"}) {
    const std::vector<truth::coded>& all = truth::magnitudes_of(element);
    const auto largest = static_cast<float>(all.back().value);
    for (std::size_t i = 0; i + 1 < all.size(); ++i) {
      const auto half = static_cast<float>((all[i].value + all[i + 1].value) / 2);
      const auto even = static_cast<float>(all[i].code % 2 == 0 ? all[i].value : all[i + 1].value);
      const auto got = stored(row_of(element), {largest, half, std::nextafter(half, 0.0F), std::nextafter(half, infinity)}, 1, 4);
      EXPECT_EQ(got[1], even) << element << " " << half;
      EXPECT_EQ(got[2], static_cast<float>(all[i].value)) << element << " below " << half;
      EXPECT_EQ(got[3], static_cast<float>(all[i + 1].value)) << element << " above " << half;
    }
  }
}

TEST(unscaled_elements, overflow_as_their_format_does) {
  EXPECT_EQ(stored(unscaled("fp16"), {65519, 65520, -65520, infinity}, 1, 4),
            (std::vector<float>{65504, infinity, -infinity, infinity}));
  EXPECT_EQ(stored(unscaled("e5m2"), {61439, 61440}, 1, 2), (std::vector<float>{57344, infinity}));
  const auto e4m3 = stored(unscaled("e4m3"), {464, 465, infinity}, 1, 3);
  EXPECT_EQ(e4m3[0], 448);
  EXPECT_TRUE(std::isnan(e4m3[1]) && std::isnan(e4m3[2]));
  EXPECT_EQ(stored(unscaled("bf16"), {0x1.fep127F, 0x1.ffp127F, 0x1p-149F}, 1, 3),
            (std::vector<float>{0x1.fep127F, infinity, 0}));
}

// OCP MX v1.0, 6.3: the scale of a block is the largest power of two at most amax, by that of the element.
TEST(mx, takes_the_scale_of_the_standard_for_every_power_of_two_and_its_neighbours) {
  for (const char* name : {"mxfp8", "mxfp8-e5m2"}) {
    const block_format f = block_format_named(name);
    EXPECT_EQ(f.cols, 32U);
    for (int e = -149; e <= 127; ++e) {
      const float power = std::ldexp(1.0F, e);
      for (const float amax : {power, std::nextafter(power, infinity), std::nextafter(power, 0.0F), 1.75F * power}) {
        if (amax == 0 || !std::isfinite(amax)) continue;
        std::vector<float> x{amax, -amax / 3}, scales;
        store_of<float>(f)(x, 1, 2, 0, &scales);
        const double element_power = std::string_view(name) == "mxfp8" ? 256 : 32768;
        ASSERT_EQ(static_cast<double>(scales[0]), truth::power_of_two_scale(amax, element_power)) << name << " " << amax;
      }
    }
  }
}

TEST(mx, clips_what_its_scale_leaves_beyond_the_largest_element) {
  // floor(log2 500) = 8: scale 1, and 500 is beyond 448. The standard clamps.
  EXPECT_EQ(stored(block_format_named("mxfp8"), {500, 1, -470}, 1, 3), (std::vector<float>{448, 1, -448}));
  EXPECT_EQ(stored(scaled("int8", "row", scale_format::e8m0), {127.75F, -3.4F}, 1, 2), (std::vector<float>{127, -3}));
}

// Tensor scale 2688 / (6 448) = 1; block scales e4m3(amax / 6).
TEST(nvfp4, has_a_scale_for_16_numbers_and_one_for_the_tensor) {
  std::vector<float> x(32, 0.0F), scales;
  x[0] = 2688;
  x[1] = 1000;
  x[16] = 6;
  x[17] = 0.74F;
  x[18] = 5;
  store_of<float>(block_format_named("nvfp4"))(x, 1, 32, 0, &scales);
  EXPECT_EQ(scales[0], 448);
  EXPECT_EQ(scales[16], 1);
  EXPECT_EQ(x[0], 2688);
  EXPECT_EQ(x[1], 2 * 448);  // 2.23 of the scale
  EXPECT_EQ(x[17], 0.5);
  EXPECT_EQ(x[18], 4);  // a tie between 4 and 6
}

struct layout_case {
  const char* text;
  std::size_t rows, cols;
};

TEST(stored_matrices, are_those_of_the_lists_in_every_layout_and_format_of_scales) {
  std::mt19937_64 random(5);
  std::normal_distribution<float> normal;
  std::size_t compared = 0;
  const auto compare = [&](const block_format& f, const truth::stored_matrix& truth) {
    for (const auto& [height, width] : {std::pair{8, 8}, std::pair{5, 37}, std::pair{1, 16}, std::pair{3, 1}}) {
      std::vector<float> x(static_cast<std::size_t>(height * width));
      for (float& value : x) value = normal(random) * std::ldexp(1.0F, static_cast<int>(random() % 24) - 12);
      if (x.size() > 20) std::fill_n(x.begin(), 20, 0.0F);
      const auto rows = static_cast<std::size_t>(height), cols = static_cast<std::size_t>(width);
      ASSERT_EQ(stored(f, x, rows, cols), truth(x, rows, cols)) << text_of(f) << ", " << height << " x " << width;
      compared += x.size();
    }
  };
  for (const layout_case& layout : {layout_case{"tensor", 0, 0},
                                    {"row", 1, 0},
                                    {"column", 0, 1},
                                    {"tile:2x3", 2, 3},
                                    {"tile:4x16", 4, 16},
                                    {"block:16", 1, 16},
                                    {"block:5", 1, 5}}) {
    for (const char* element : {"e4m3", "e5m2", "int8", "int4", "fp16"}) {
      for (std::size_t s = 0; s < scale_format_names.size(); ++s) {
        const block_format f = scaled(element, layout.text, static_cast<scale_format>(s));
        EXPECT_EQ(layout_of(f), layout.text);
        compare(f, {element, std::string(scale_format_names[s]), layout.rows, layout.cols, false});
      }
    }
  }
  compare(block_format_named("mxfp8"), {"e4m3", "e8m0", 1, 32, false});
  compare(block_format_named("mxfp8-e5m2"), {"e5m2", "e8m0", 1, 32, false});
  compare(block_format_named("nvfp4"), {"e2m1", "e4m3", 1, 16, true});
  for (const char* element : {"fp16", "bf16"}) compare(unscaled(element), {element, "", 0, 0, false});
  EXPECT_GT(compared, 48000U);
}

TEST(stored_matrices, are_the_same_in_double_where_every_number_is_a_float_and_the_scale_a_power_of_two) {
  std::mt19937_64 random(6);
  std::normal_distribution<float> normal;
  std::vector<float> x(300);
  for (float& value : x) value = normal(random);
  const std::vector<float> single = stored(block_format_named("mxfp8"), x, 3, 100);
  std::vector<double> wide(x.begin(), x.end());
  store_of<double>(block_format_named("mxfp8"))(wide, 3, 100, 0);
  EXPECT_EQ(wide, std::vector<double>(single.begin(), single.end()));
}

TEST(a_group, with_something_that_is_no_number_is_none) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  for (const float bad : {nan, infinity, -infinity}) {
    for (const scale_format s : {scale_format::fp32, scale_format::e8m0}) {
      const auto got = stored(scaled("int8", "row", s), {1, bad, 2, 1, 2, 3}, 2, 3);
      EXPECT_TRUE(std::isnan(got[0]) && std::isnan(got[1]) && std::isnan(got[2]));
      EXPECT_EQ(got[5], s == scale_format::fp32 ? 127 * (3 / 127.0F) : 3);
    }
    for (const float x : stored(block_format_named("nvfp4"), {1, bad, 2}, 1, 3)) EXPECT_TRUE(std::isnan(x));
  }
}

TEST(stochastic_rounding, takes_the_word_of_its_entry_and_is_right_on_average) {
  const block_format f = row_of("int8");
  const std::size_t rows = 3, cols = 5;  // an odd number of words a store
  std::vector<float> x(rows * cols, 0.3F);
  for (std::size_t i = 0; i < rows; ++i) x[i * cols] = 127;
  double sum = 0;
  const std::uint64_t stores = 4000;
  block_store<float> store = store_of<float>(f, block_rounding::stochastic);
  for (std::uint64_t n = 0; n < stores; ++n) {
    std::vector<float> got = x;
    store(got, rows, cols, n);
    philox random(7, 3);
    random.seek((n * 15 + 7) / 2);
    const std::uint64_t number = random();
    const auto word = static_cast<std::uint32_t>((n * 15 + 7) % 2 == 0 ? number : number >> 32);
    ASSERT_EQ(got[7], static_cast<float>(word >> 8) * 0x1p-24F < 0.3F ? 1 : 0) << n;
    EXPECT_EQ(got[5], 127);
    for (const std::size_t i : {1U, 2U, 7U, 14U}) sum += got[i];
  }
  EXPECT_NEAR(sum / (4 * static_cast<double>(stores)), 0.3, 5 * std::sqrt(0.21 / (4 * static_cast<double>(stores))));
}

// Sums of what was stored are sums of what was given less the last residual: integers, so that every sum is exact.
TEST(error_feedback, loses_nothing_but_the_last_residual) {
  block_store<float> store = store_of<float>(scaled("int8", "row", scale_format::e8m0), block_rounding::error_feedback);
  std::mt19937_64 random(8);
  std::vector<double> given(8), kept(8);
  for (std::uint64_t n = 0; n < 100; ++n) {
    std::vector<float> x(8);
    for (float& value : x) value = static_cast<float>(static_cast<int>(random() % 2001) - 1000);
    std::vector<float> again = x, got = x;
    store(got, 1, 8, n);
    store(again, 1, 8, n);
    ASSERT_EQ(again, got) << "the same store again";
    for (std::size_t i = 0; i < 8; ++i) {
      given[i] += x[i];
      kept[i] += got[i];
      ASSERT_LE(std::fabs(given[i] - kept[i]), 32) << "more than a residual is gone";  // clipping included: 1024 - 127 * 8 = 8
    }
  }
  // Without feedback the same sums drift apart.
  EXPECT_NE(given, kept);
  std::vector<float> other(6);
  EXPECT_THAT(
      [&] { store(other, 1, 6, 100); },
      testing::ThrowsMessage<shape_error>(testing::HasSubstr("6 numbers, but 8 at the first call; give as many at every call")));
}

TEST(error_feedback, keeps_its_residual_in_the_format_that_it_says) {
  block_store<float> store(unscaled("bf16"), block_rounding::error_feedback, element_named("e5m2"), 0, 0);
  const float x = 1 + 0x1.6p-10F;  // bf16 leaves 1.375 2^-10, of which e5m2 keeps 1.5 2^-10: a tie to even
  std::vector<float> first{x}, second{1.0F};
  store(first, 1, 1, 0);
  EXPECT_EQ(first[0], 1);
  store(second, 1, 1, 1);
  EXPECT_EQ(second[0], 1);
  std::vector<float> third{1 + 0x1p-8F - 0x1.8p-10F};  // with 1.5 2^-10 carried a tie, with less below it
  store(third, 1, 1, 1);
  EXPECT_EQ(third[0], 1);
  std::vector<float> above{1 + 0x1p-8F - 0x1.7p-10F};
  store(above, 1, 1, 1);
  EXPECT_EQ(above[0], 1 + 0x1p-7F);
}

TEST(largest_error, holds_and_is_reached_to_a_factor) {
  std::mt19937_64 random(9);
  for (const char* text : {"int8", "int4", "e4m3", "e5m2", "fp16"}) {
    for (std::size_t s = 0; s < scale_format_names.size(); ++s) {
      const block_format f = scaled(text, "row", static_cast<scale_format>(s));
      for (const block_rounding how : {nearest, block_rounding::stochastic}) {
        double most = 0;
        for (std::uint64_t n = 0; n < 200; ++n) {
          std::vector<float> x(64);
          for (float& v : x)
            v = static_cast<float>(static_cast<int>(random() % 65537) - 32768) * 0x1p-15F * static_cast<float>(f.element.largest);
          double amax = 0;
          for (const float v : x) amax = std::max(amax, std::fabs(static_cast<double>(v)));
          std::vector<float> got = x;
          block_store<float>(f, how, element_named("fp32"), n, 0)(got, 1, 64, 0);
          const double bound = largest_error(f, how, amax);
          for (std::size_t i = 0; i < x.size(); ++i) {
            const double error = std::fabs(static_cast<double>(got[i]) - static_cast<double>(x[i]));
            ASSERT_LE(error, bound) << text_of(f);
            most = std::max(most, error / bound);
          }
        }
        EXPECT_GT(most, 0.4) << text_of(f) << " " << name_of(how);
      }
    }
  }
  EXPECT_EQ(largest_error(unscaled("fp16"), nearest, 70000), std::numeric_limits<double>::infinity());
}

TEST(stored_bits, count_scales) {
  EXPECT_EQ(stored_bits(unscaled("bf16"), 128, 128), 128U * 128 * 16);
  EXPECT_EQ(stored_bits(row_of("int8"), 128, 128), 128U * 128 * 8 + 128 * 32);
  EXPECT_EQ(stored_bits(scaled("int4", "tile:16x32", scale_format::fp16), 20, 40), 20U * 40 * 4 + 4 * 16);
  EXPECT_EQ(stored_bits(block_format_named("mxfp8"), 128, 128), 128U * 128 * 8 + 128 * 4 * 8);
  EXPECT_EQ(stored_bits(block_format_named("nvfp4"), 128, 128), 128U * 128 * 4 + 128 * 8 * 8 + 32);
}

TEST(block_formats, are_refused_with_what_would_do) {
  const auto refusal = [](const auto& make) -> std::string {
    try {
      make();
    } catch (const error& e) {
      return e.what();
    }
    return "";
  };
  EXPECT_NE(refusal([] { (void)block_format_named("int9"); }).find("e4m3"), std::string::npos);
  EXPECT_NE(refusal([] { (void)unscaled("int8"); }).find("need a scale"), std::string::npos);
  EXPECT_NE(refusal([] { (void)scaled("bf16", "row", scale_format::fp32); }).find("exponents of fp32"), std::string::npos);
  for (const char* layout : {"tile:4", "tile:0x4", "block:", "block:x", "rows", "tile:4x", ""}) {
    EXPECT_NE(refusal([&] { (void)scaled("int8", layout, scale_format::fp32); }).find("tile:RxC"), std::string::npos) << layout;
  }
  EXPECT_NE(refusal([] {
              std::vector<float> x(5);
              store_of<float>(unscaled("fp16"))(x, 2, 3, 0);
            }).find("2 x 3"),
            std::string::npos);
}

}  // namespace
}  // namespace deltaproof
