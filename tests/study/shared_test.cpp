// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT

#include "deltaproof/rule/rules.hpp"
#include "studies/shared/formats.hpp"
#include "studies/shared/functions.hpp"
#include "studies/shared/keys.hpp"
#include "support/study.hpp"

namespace deltaproof {
namespace {

using namespace detail::shared;

TEST(shared_formats, are_chosen_by_name_and_by_value) {
  std::string seen;
  for (const format f : {bf16, fp16, fp32, fp64}) {
    with_studied_format(f, [&]<format F>() { seen += std::string(name_of(F)) + " "; });
  }
  EXPECT_EQ(seen, "bf16 fp16 fp32 fp64 ");
  EXPECT_THROW(with_studied_format(tf32, []<format F>() {}), format_error);
}

TEST(shared_formats, ordinals_count_the_numbers) {
  EXPECT_EQ(ordinal<bf16>(0), 0);
  EXPECT_EQ(from_ordinal<bf16>(1), 0x1p-133);
  EXPECT_EQ(ordinal<bf16>(2) - ordinal<bf16>(1), 128);
  EXPECT_EQ(ordinal<tf32>(2) - ordinal<tf32>(1), 1024);
  EXPECT_EQ(from_ordinal<fp16>(ordinal<fp16>(-1.5) - 1), -1.5 - 0x1p-10);
}

TEST(shared_functions, round_correctly) {
  EXPECT_EQ(ln(0), -std::numeric_limits<double>::infinity());
  EXPECT_EQ(ln(2), 0x1.62e42fefa39efp-1);
  EXPECT_NEAR(log10_of(1000), 3, 1e-15);
  EXPECT_EQ(exp64(1), 0x1.5bf0a8b145769p+1);
  EXPECT_EQ(exp32(1), 0x1.5bf0a8p+1);
  EXPECT_EQ(exp32(-std::numeric_limits<double>::infinity()), 0);
  EXPECT_EQ(stability_of("euler", 0.75), 0.25);
  EXPECT_EQ(stability_of("exact", 1), 0x1.78b56362cef38p-2);
  EXPECT_THROW((void)stability_of("rk5", 1), format_error);
}

TEST(shared_keys, squares_are_what_normalise_returns) {
  std::array<double, 2> x{3, 4};
  EXPECT_EQ(squared_norm(x), 25);
  EXPECT_EQ(normalise(x), 25);
  EXPECT_EQ(x, (std::array<double, 2>{0.6, 0.8}));
}

}  // namespace
}  // namespace deltaproof
