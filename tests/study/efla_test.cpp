// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT

#include "deltaproof/rule/rules.hpp"
#include "studies/efla/coefficient.hpp"
#include "support/study.hpp"

namespace deltaproof {
namespace {

using namespace detail::efla;

TEST(efla_coefficient, is_what_one_computes_by_hand) {
  // bf16: e^-2^-9 = 1 - 2^-9 + ... rounds to 1; the next number, 2^-9 (1 + 2^-7), to 1 - 2^-8.
  EXPECT_EQ(coefficient("bf16", form::naive, 0x1p-9, 1), 0);
  EXPECT_EQ(coefficient("bf16", form::naive, 0x1.02p-9, 1), 0x1p-8);
  EXPECT_EQ(coefficient("bf16", form::expm1, 0x1p-9, 1), 0x1p-9);
  EXPECT_EQ(coefficient("bf16", form::library, 0x1p-9, 1), 0x1p-9);
  // Large x: 1/n rounded.
  EXPECT_EQ(coefficient("bf16", form::expm1, 64, 3), round_to<bf16>(1.0 / 3).value());
  EXPECT_EQ(coefficient("fp32", form::naive, 0, 1), 0);
  EXPECT_EQ(coefficient("fp32", form::library, 0.5, 0), 0.5);
  EXPECT_THROW((void)coefficient("tf32", form::naive, 1, 1), format_error);
}

TEST(efla_coefficient, of_the_library_is_its_effective_step) {
  for (const double beta : {0.03125, 0.75, 1.0, 1.9375}) {
    for (const double n : {0.0078125, 1.0, 13.0}) {
      const auto b = rounded<bf16>::from_exact(beta);
      EXPECT_EQ(coefficient("bf16", form::library, beta, n),
                effective_step(exact_flow{}, b, rounded<bf16>::from_exact(n)).value());
    }
  }
}

TEST(efla_coefficient, dead_zone_ends_at_half_u_in_every_format) {
  for (const format& f : {bf16, fp16, fp32, fp64}) {
    const std::string_view name = name_of(f);
    const dead_zone z = dead_zone_of(name);
    EXPECT_EQ(z.last_zero, unit_roundoff(f) / 2) << name;
    EXPECT_EQ(coefficient(name, form::naive, z.last_zero, 1), 0) << name;
    EXPECT_EQ(coefficient(name, form::naive, z.first_alive, 1), unit_roundoff(f)) << name;
    // 1 - e^-x is 1 once e^-x <= u/2.
    EXPECT_NEAR(z.saturates_from, (f.precision + 1) * std::log(2.0), 0.1) << name;
    EXPECT_EQ(coefficient(name, form::naive, z.saturates_from, 1), 1) << name;
  }
}

}  // namespace
}  // namespace deltaproof
