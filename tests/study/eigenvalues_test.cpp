// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT

#include "studies/eigenvalues/parts.hpp"
#include "support/study.hpp"

namespace deltaproof {
namespace {

using namespace detail::eigenvalues;

run_options small() {
  run_options options;
  options.threads = 2;
  return options;
}

TEST(eigenvalues, agree_with_rationals_worked_out_by_hand) {
  const auto at = [](const char* rule, rounding_place place, double beta, double n, int end = 0) {
    return realised_eigenvalue(rule, "bf16", place, beta, n, end).value();
  };
  // bf16 has 8 bits: 1/3 is 171/512 there, 2/3 is 171/256.
  EXPECT_EQ(at("euler", rounding_place::every_operation, 1.5, 3), rational(-7, 2));
  EXPECT_EQ(at("implicit", rounding_place::every_operation, 1, 2), rational(1) - rational(171, 512) * 2);
  EXPECT_EQ(at("crank_nicolson", rounding_place::step_only, 1, 1), rational(1) - rational(171, 256));
  // phi(1) = 1 - 1/2 (1 - 1/3): 1/3 -> 171/512, 1 - 171/512 = 341/512 is a tie -> 170/256, half of it 85/256,
  // 1 - 85/256 = 171/256.
  EXPECT_EQ(at("rk3", rounding_place::every_operation, 1, 1), rational(85, 256));
  // 257 is not in bf16: 1 + 256 gives 256, so phi = 1/256 and lambda = 0, where 1/257 was promised.
  EXPECT_EQ(at("implicit", rounding_place::every_operation, 1, 256), 0);
  // |k|^2 just below the midpoint of 1 and 1 + 1/128: Euler does not read the rounded one.
  const rational norm = 1 + rational(1, 256) * (1 - rational(1, 1 << 20));
  EXPECT_EQ(at("euler", rounding_place::norm_too, 2, 1, 1), rational(1) - 2 * norm);
  EXPECT_EQ(at("implicit", rounding_place::norm_too, 1, 1, 1), rational(1) - norm / 2);
  // Below 1 the numbers lie twice as close.
  const rational below = 1 - rational(1, 512) * (1 - rational(1, 1 << 20));
  EXPECT_EQ(at("implicit", rounding_place::norm_too, 1, 1, -1), rational(1) - below / 2);
}

TEST(eigenvalues, exact_flow_rounds_the_step_once) {
  // expm1(-1) = -0.6321205588: between 161/256 = 0.62890625 and 162/256 = 0.6328125, nearer to the latter.
  EXPECT_EQ(realised_eigenvalue("exact", "bf16", rounding_place::step_only, 1, 1), rational(1) - rational(162, 256));
  // In e5m2 (3 bits) 1 - e^-4 = 0.9817 rounds to 1: the state is erased.
  EXPECT_EQ(realised_eigenvalue("exact", "e5m2", rounding_place::step_only, 2, 2), rational(1) - rational(1, 2) * 2);
}

TEST(eigenvalues, squared_norms_are_exact_on_both_paths) {
  const std::vector<double> short_grid{0.5, -0.25, 0x1p-60};
  EXPECT_EQ(exact_squared_norm(short_grid), rational(5, 16) + power_of_two(-120));
  const std::vector<double> long_grid{0.5, 0x1p-61, -0x1.fffffffffffffp-1};
  const rational last = 1 - power_of_two(-53);
  EXPECT_EQ(exact_squared_norm(long_grid), rational(1, 4) + power_of_two(-122) + last * last);
  const std::vector<double> far{0x1p500, 0x1p-1074};
  EXPECT_EQ(exact_squared_norm(far), power_of_two(1000) + power_of_two(-2148));
  const std::vector<double> zeros{0.0, -0.0};
  EXPECT_EQ(exact_squared_norm(zeros), 0);
  const std::vector<double> bad{1.0, std::nan("")};
  EXPECT_THROW(static_cast<void>(exact_squared_norm(bad)), domain_error);
}

// A second way to the same key: 256 bits instead of double-double.
TEST(eigenvalues, unit_keys_are_the_rounded_direction) {
  for (const std::uint64_t index : {0U, 7U}) {
    const std::size_t dim = 32;
    philox random(1, (std::uint64_t{0x6b657900} + dim) << 32 | index);
    std::vector<real<256>> g(dim);
    real<256> sum = 0;
    for (real<256>& x : g) {
      x = lift<real<256>>(random.normal());
      sum += x * x;
    }
    const std::vector<double> bf16_key = unit_key("bf16", 1, dim, index);
    const std::vector<double> fp64_key = unit_key("fp64", 1, dim, index);
    for (std::size_t i = 0; i < dim; ++i) {
      EXPECT_EQ(bf16_key[i], round_to<bf16>(real<256>(g[i] / sqrt(sum))).value());
      EXPECT_EQ(fp64_key[i], round_to<double>(real<256>(g[i] / sqrt(sum))));
    }
  }
}

TEST(eigenvalues, safe_beta_is_proved_where_subnormals_are_few) {
  for (const named_format& f : formats) {
    for (const std::size_t dim : key_dims().quick) EXPECT_TRUE(safe_step_is_proved(f.value, dim)) << f.name << " d = " << dim;
  }
  // The condition can fail: with enough subnormal entries nothing is proved.
  EXPECT_FALSE(safe_step_is_proved(e4m3, 100'000));
}

TEST(eigenvalues, norms_are_counted_over_all_keys) {
  const frame survey = survey_norms(small(), 400);
  EXPECT_EQ(survey.size(), 7 * bin_count * key_dims().quick.size());
  for (std::size_t i = 0; i < survey.size(); i += bin_count) {
    const auto r = survey[i];
    const std::string where = r["format"].text() + " d = " + r["dim"].text();
    ASSERT_EQ(r.number("keys"), 400) << where;
    EXPECT_LE(exact(r.number("safe_beta")) * rational(r["largest_norm"].text()), 2) << where;
    EXPECT_NEAR(r.number("deviation") / std::sqrt(2.0 / r.number("dim")), 1, 0.15) << where;
    EXPECT_NEAR(survey.where("format", r["format"]).where("dim", r["dim"]).over("share", total), 1, 1e-12) << where;
  }
  // One of the keys, counted again by hand.
  std::uint64_t above = 0;
  for (std::uint64_t i = 0; i < 400; ++i) above += exact_squared_norm(unit_key("fp16", 1, 64, i)) > 1 ? 1 : 0;
  EXPECT_EQ(survey.find({{"format", "fp16"}, {"dim", 64}, {"bin", 0}}, "above_one"), static_cast<double>(above));
}

TEST(eigenvalues, sigmoid_saturates_where_its_inverse_says) {
  const frame survey = survey_sigmoid(small());
  for (std::size_t i = 0; i < survey.size(); ++i) {
    const auto s = survey[i];
    const format in = format_named(s["input"].text());
    const format out = format_named(s["output"].text());
    const std::string where = s["case"].text();
    EXPECT_EQ(s["monotone"], cell(true));
    ASSERT_FALSE(is_missing(s["one_from"]) || is_missing(s["zero_until"])) << where;
    // sigmoid(x) >= 1 - u/2, the midpoint below 1, from x = log(2/u - 1); sigmoid(x) <= h/2 up to log(h / (2 - h)).
    const real<256> u = lift<real<256>>(unit_roundoff(out));
    const real<256> one = log(real<256>(2 / u - 1));
    EXPECT_GE(lift<real<256>>(s.number("one_from")), one) << where;
    EXPECT_LT(lift<real<256>>(s.number("last_below_one")), one) << where;
    EXPECT_LE(s.number("one_from") - s.number("last_below_one"), 2 * unit_roundoff(in) * s.number("one_from"))
        << "are not neighbours, " << where;
    const real<256> h = lift<real<256>>(smallest_subnormal(out));
    const real<256> nought = log(real<256>(h / (2 - h)));
    EXPECT_LE(lift<real<256>>(s.number("zero_until")), nought) << where;
    EXPECT_GT(lift<real<256>>(s.number("zero_until") * (1 - 2.5 * unit_roundoff(in))), nought) << where;
  }
}

TEST(eigenvalues, rules_are_looked_at_in_every_case_and_the_worst_is_one_of_them) {
  const frame survey = survey_rules(small(), 4, 16);
  EXPECT_EQ(survey.size(), 7 * formats.size() * rounding_places.size());
  for (std::size_t i = 0; i < survey.size(); ++i) {
    const auto r = survey[i];
    const std::string rule = r["rule"].text();
    const std::string where = rule + " " + r["format"].text();
    EXPECT_EQ(r.number("not_finite"), 0) << where;
    EXPECT_EQ(r.number("beyond_bound"), 0) << where;
    if (r["format"] != cell("bf16")) continue;
    EXPECT_EQ(r["exhaustive"], cell(false));
    // 8 x 128 significands in 21 octaves of x, for the rules without a limit.
    if (rule == "exact" || rule == "implicit" || rule == "crank_nicolson") {
      EXPECT_EQ(r.number("cases"), 8 * 128 * 21 * (r["rounded"] == cell("norm_too") ? 2 : 1)) << where;
    }
    // The worst case, again.
    if (is_missing(r["worst_lambda"])) continue;
    const auto place = *std::find_if(rounding_places.begin(), rounding_places.end(),
                                     [&](rounding_place p) { return r["rounded"] == cell(name_of(p)); });
    const auto again = realised_eigenvalue(rule, "bf16", place, r.number("worst_beta"), r.number("worst_n"),
                                           static_cast<int>(r.number("worst_end")));
    EXPECT_EQ(again->str(), r["worst_lambda"].text()) << where;
  }
}

}  // namespace
}  // namespace deltaproof
