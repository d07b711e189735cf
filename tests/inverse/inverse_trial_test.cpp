// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT

#include "deltaproof/inverse/inverse_trial.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <limits>
#include <string>
#include <thread>
#include <vector>

#include "deltaproof/number/rational.hpp"

namespace deltaproof {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

// {method, operand, accumulate, store} on {keys, beta, C}.
struct known_case {
  const char* method;
  format operand, accumulate, store;
  const char* keys;
  const char* beta;
  std::size_t chunk;
  bool safe;
};

inverse_trial tried(const known_case& c, bool worst_case = false, unsigned threads = 1) {
  const inverse_problem problem{key_law_named(c.keys), step_law_named(c.beta), 128, c.chunk, 16, 1};
  return try_inverse({inverse_named(c.method), c.operand, c.accumulate, c.store}, problem, worst_case, threads);
}

TEST(inverse_trial, knows_what_shipped_and_what_repaired_it) {
  const known_case cases[] = {
      {"neumann", fp16, fp16, fp16, "cos=0.9", "1", 64, false},
      {"neumann", fp32, fp32, fp32, "cos=0.9", "1", 64, false},
      {"neumann", fp64, fp64, fp64, "cos=0.9", "1", 64, false},
      {"neumann", fp16, fp16, fp16, "gaussian", "1", 64, true},  // random keys hide it
      {"neumann", fp16, fp16, fp16, "silu", "1", 64, false},
      {"neumann16+block", fp16, fp16, fp16, "cos=0.9", "1", 64, false},  // as FlashKDA shipped it, C = 16 and 64
      {"neumann16+block", fp16, fp16, bf16, "cos=0.9", "1", 16, false},
      {"forward8+block", fp32, fp32, bf16, "cos=0.9", "1", 16, true},  // and as it was repaired
      {"forward8+block", bf16, fp32, bf16, "cos=0.9", "1", 16, true},
      {"forward16+block", fp32, fp32, bf16, "cos=0.9", "1", 64, true},  // as fla, but for its merges in tf32
      {"forward16+block", tf32, fp32, bf16, "cos=0.9999", "1", 64, true},
      {"forward", fp32, fp32, fp32, "cos=0.9", "1", 64, true},
      {"forward", fp16, fp16, fp16, "cos=0.9999", "1", 64, true},
      {"block2", bf16, bf16, bf16, "cos=0.9", "1", 64, true},
      {"forward", fp32, fp32, fp32, "cos=0.99", "2", 64, false},  // no power, yet kappa(I + L) grows with beta
      {"forward", fp32, fp32, bf16, "cos=0.99", "2", 64, true},
  };
  for (const known_case& c : cases) {
    const inverse_trial t = tried(c);
    EXPECT_EQ(t.verdict.safe, c.safe) << c.method << " " << name_of(c.operand) << "/" << name_of(c.accumulate) << "/"
                                      << name_of(c.store) << " " << c.keys << " beta " << c.beta << " C " << c.chunk << ": "
                                      << t.verdict.reason;
    EXPECT_LE(t.verdict.largest_entry, c.beta[0] == '2' ? 2.01 : 1.0 + 1e-9);  // small throughout: no argument
    EXPECT_FALSE(t.verdict.reason.empty());
  }
}

TEST(inverse_trial, does_not_trust_luck) {
  for (const char* keys : {"identical", "alternating"}) {
    const inverse_trial t = tried({"neumann", fp64, fp64, fp64, keys, "1", 64, false});
    EXPECT_EQ(t.verdict.error, 0) << "every power is a small integer";
    EXPECT_FALSE(t.verdict.safe);
    EXPECT_THAT(t.verdict.reason, HasSubstr("nothing guarantees it"));
    EXPECT_NEAR(t.predicted.largest, 4.654e17, 1e15);  // C(62, 31)
  }
}

TEST(inverse_trial, lets_the_bound_decide_in_the_worst_case) {
  const known_case forward{"forward", fp32, fp32, fp32, "cos=0.9", "1", 64, true};
  EXPECT_TRUE(tried(forward).verdict.safe);
  const inverse_trial worst = tried(forward, true);
  EXPECT_FALSE(worst.verdict.safe);
  EXPECT_EQ(worst.verdict.promised.largest, worst.bound.largest);
  EXPECT_GT(worst.bound.largest, 1e17);
  EXPECT_TRUE(tried({"forward", fp32, fp32, fp32, "gaussian", "0", 64, true}, true).verdict.safe);
}

TEST(inverse_trial, says_that_the_bound_holds_for_the_draws_made) {
  const inverse_trial safe = tried({"forward", fp32, fp32, bf16, "cos=0.9", "1", 16, true}, true);
  EXPECT_TRUE(safe.verdict.safe);
  EXPECT_EQ(safe.verdict.decided_by, "bound");
  EXPECT_THAT(safe.verdict.reason, ::testing::MatchesRegex(".* cannot exceed [^ ]* in these draws"));
  EXPECT_THAT(tried({"forward", fp32, fp32, fp32, "cos=0.9", "1", 64, false}, true).verdict.reason,
              ::testing::ContainsRegex("is only proved to stay below [^ ]* in these draws"));
}

TEST(inverse_trial, decides_on_what_was_seen_where_it_is_more_than_predicted) {
  const inverse_plan plan{inverse_named("neumann"), fp32, fp32, fp32};
  const inverse_problem problems[] = {{key_law_named("elu1"), step_law_named("U(0,2)"), 128, 7, 16, 1},
                                      {key_law_named("elu1"), step_law_named("1"), 1, 8, 16, 1},  // d = 1: the keys are identical
                                      {key_law_named("identical"), step_law_named("1"), 1, 8, 16, 1}};
  for (const inverse_problem& p : problems) {
    const inverse_trial t = try_inverse(plan, p);
    const bool identical = p.keys.family == key_family::identical;
    EXPECT_FALSE(t.verdict.safe) << name_of(p.keys);
    EXPECT_EQ(t.verdict.beyond_limit, 0U);
    EXPECT_EQ(t.verdict.decided_by, identical ? "prediction" : "observation");
    EXPECT_EQ(t.verdict.decisive.largest, std::max(t.predicted.largest, t.verdict.observed.largest));
    EXPECT_EQ(t.verdict.promised_error <= t.verdict.smallest_limit, !identical);  // the prediction alone would let them pass
    EXPECT_THAT(t.verdict.reason, HasSubstr(identical ? "is expected to reach 20," : "a power of L reached"));
  }
}

TEST(inverse_trial, ends_when_told_to_stop) {
  const inverse_plan plan{inverse_named("neumann"), fp32, fp32, fp32};
  inverse_problem problem{key_law_named("gaussian"), step_law_named("0.1"), 16, 8, 2, 1};
  std::atomic<bool> stop{false};
  EXPECT_FALSE(try_inverse(plan, problem, false, 1, &stop).stopped);
  const auto cases = inverse_inputs(problem, &stop).rounded_to(fp32, 1, &stop);
  stop = true;
  EXPECT_THROW(inverse_inputs(problem, &stop), inverse_stopped);
  EXPECT_THROW((void)inverse_inputs(problem).rounded_to(fp32, 2, &stop), inverse_stopped);
  EXPECT_THROW((void)run_cases(plan, cases, 2, &stop), inverse_stopped);
  EXPECT_THROW((void)bound_growth(plan, cases, &stop), inverse_stopped);
  const inverse_trial none = try_inverse(plan, problem, false, 2, &stop);
  EXPECT_TRUE(none.stopped);
  EXPECT_FALSE(none.verdict.safe);
  EXPECT_TRUE(none.verdict.reason.empty());

  stop = false;  // and inside a draw: one of this length alone takes much longer than the delay
  problem.chunk = 1000;
  problem.samples = 1;
  std::thread later([&stop] {
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    stop = true;
  });
  EXPECT_TRUE(try_inverse(plan, problem, false, 1, &stop).stopped);
  later.join();
}

TEST(inverse_trial, merges_in_a_format_of_its_own) {
  const inverse_problem problem{key_law_named("cos=0.9"), step_law_named("0.9"), 128, 40, 2, 1};
  const auto cases = inverse_inputs(problem).rounded_to(fp32);
  inverse_plan plan{inverse_named("forward16+block"), fp32, fp32, fp32};
  const inverse_runs same = run_cases(plan, cases);
  plan.merge = fp32;
  EXPECT_EQ(run_cases(plan, cases).results[1].entries()[40 * 40 - 40], same.results[1].entries()[40 * 40 - 40]);
  EXPECT_EQ(coarsest_operand(plan), fp32);
  double before = 0;
  for (const format merge : {tf32, fp16, bf16}) {
    plan.merge = merge;
    EXPECT_EQ(coarsest_operand(plan), merge);
    const inverse_runs mixed = run_cases(plan, cases);
    double error = 0;
    for (std::size_t s = 0; s < cases.size(); ++s) {
      for (std::size_t i = 0; i < 40; ++i) {
        for (std::size_t j = 0; j <= i; ++j) {
          if (i / 16 == j / 16) {  // substitution is in fp32 still
            EXPECT_EQ(mixed.results[s](i, j), same.results[s](i, j));
          }
          error = std::max(error, std::fabs(mixed.results[s](i, j) - cases[s].inverse(i, j).hi()));
        }
      }
    }
    EXPECT_GT(error, unit_roundoff(merge) / 16);  // fp32 throughout: below 2^-20
    EXPECT_LT(error, 8 * unit_roundoff(merge));
    EXPECT_GE(error, before);
    before = error;
    EXPECT_GE(bound_growth(plan, cases).largest, 1);
  }
  const inverse_trial fla = try_inverse({plan.method, fp32, fp32, bf16, tf32}, problem);
  EXPECT_TRUE(fla.verdict.safe) << fla.verdict.reason;
  EXPECT_THAT(fla.verdict.reason, HasSubstr("left the range of fp32 or tf32,"));
}

TEST(inverse_trial, asks_nothing_of_merges_where_nothing_is_merged) {
  const inverse_problem problem{key_law_named("gaussian"), step_law_named("1"), 64, 64, 2, 1};
  inverse_plan plan{inverse_named("forward"), fp32, fp32, fp32};
  const std::string alone = try_inverse(plan, problem).verdict.reason;
  plan.merge = bf16;
  EXPECT_EQ(coarsest_operand(plan), fp32);
  EXPECT_EQ(try_inverse(plan, problem).verdict.reason, alone);
}

TEST(inverse_problem, tells_the_memory_it_needs) {
  const inverse_problem p{key_law_named("cos=0.5"), step_law_named("1"), 128, 64, 16, 1};
  EXPECT_EQ(bytes_needed(p, 1), 64 * 64 * (40.0 * 16 + 64) + 8 * 64 * 128);
  EXPECT_EQ(bytes_needed(p, 99), bytes_needed(p, 16));  // a thread a draw at most
}

TEST(inverse_trial, says_which_intermediate_left_its_format) {
  const inverse_trial t = tried({"neumann", fp16, fp16, fp16, "cos=0.99", "1", 64, false});
  EXPECT_EQ(t.verdict.left_format, 16U);
  EXPECT_EQ(t.verdict.observed.stage, "partial sum");  // I - L + ... - L^15, before L^16 is made
  EXPECT_THAT(t.verdict.reason, HasSubstr("a partial sum of the powers of L left the range of fp16 in 16 of 16 draws"));
}

TEST(inverse_trial, does_not_depend_on_the_number_of_threads) {
  const known_case c{"neumann8+block", bf16, fp32, bf16, "elu1", "U(0,1)", 48, true};
  const inverse_trial one = tried(c, false, 1), many = tried(c, false, 5);
  EXPECT_EQ(one.verdict.error, many.verdict.error);
  EXPECT_EQ(one.error_unrounded, many.error_unrounded);
  EXPECT_EQ(one.verdict.reason, many.verdict.reason);
}

TEST(inverse_inputs, begin_alike_for_every_chunk) {
  const inverse_problem large{key_law_named("elu1"), step_law_named("U(1.9,2)"), 32, 40, 3, 9};
  inverse_problem small = large;
  small.chunk = 7;
  small.samples = 2;
  const inverse_inputs a(large), b(small);
  for (std::size_t s = 0; s < 2; ++s) {
    for (std::size_t i = 0; i < 7; ++i) {
      for (std::size_t j = 0; j < 7; ++j) EXPECT_EQ(a.drawn()[s](i, j), b.drawn()[s](i, j));
    }
  }
  EXPECT_NE(a.drawn()[0](1, 0), a.drawn()[1](1, 0));
}

TEST(inverse_inputs, have_the_cosines_and_steps_of_their_laws) {
  for (const char* keys : {"gaussian", "silu", "elu1", "cos=0", "cos=0.3", "cos=0.99", "cos=1", "identical"}) {
    const inverse_problem p{key_law_named(keys), step_law_named("1"), 256, 64, 8, 4};
    const inverse_inputs in(p);
    EXPECT_NEAR(in.mean_cosine(), correlation_of(p.keys), 0.01) << keys;
    double square = 0, count = 0;
    for (const auto& lower : in.drawn()) {
      for (std::size_t i = 0; i < 64; ++i) {
        for (std::size_t j = 0; j < i; ++j) square += std::pow(lower(i, j) - in.mean_cosine(), 2), ++count;
      }
    }
    const double expected = entries_of_keys(correlation_of(p.keys), 256, 1, 1).spread;
    EXPECT_NEAR(std::sqrt(square / count), expected, 0.25 * expected + 1e-12) << keys;
  }
  const inverse_inputs in({key_law_named("alternating"), step_law_named("U(1.9,2)"), 128, 20, 2, 4});
  for (const auto& lower : in.drawn()) {
    for (std::size_t i = 1; i < 20; ++i) {
      for (std::size_t j = 0; j < i; ++j) {
        EXPECT_EQ(std::signbit(lower(i, j)), (i - j) % 2 == 1);
        EXPECT_EQ(std::fabs(lower(i, j)), std::fabs(lower(i, 0)));
        EXPECT_GE(std::fabs(lower(i, j)), 1.9);
        EXPECT_LT(std::fabs(lower(i, j)), 2);
      }
    }
  }
}

TEST(inverse_inputs, know_the_true_inverse_within_the_radius) {
  for (const char* keys : {"gaussian", "cos=0.9", "identical"}) {
    for (const format f : {bf16, fp64}) {
      const auto cases = inverse_inputs({key_law_named(keys), step_law_named("U(1.9,2)"), 16, 14, 2, 3}).rounded_to(f);
      for (const inverse_case& c : cases) {
        matrix<rational> exact(14, 14, 0);
        matrix<rational> lower(14, 14, 0);
        for (std::size_t i = 0; i < 14; ++i) {
          for (std::size_t j = 0; j < i; ++j) lower(i, j) = lift<rational>(c.lower(i, j));
        }
        const auto inverse = run_inverse<plain<rational>>(inverse_named("block2"), lower);
        for (std::size_t i = 0; i < inverse.size(); ++i) {
          const double_double x = c.inverse.data()[i];
          const rational off = inverse.data()[i] - lift<rational>(x.hi()) - lift<rational>(x.lo());
          EXPECT_LE(std::fabs(off.convert_to<double>()), c.radius) << keys;
        }
        EXPECT_LT(c.radius, 1e-24);
      }
    }
  }
}

TEST(correlation, of_activated_keys_is_the_quadrature) {
  const auto of = [](auto f) {
    double mean = 0, square = 0;
    for (int i = -14000; i <= 14000; ++i) {
      const double z = i / 1000.0;
      const double weight = std::exp(-z * z / 2) / std::sqrt(2 * M_PI) / 1000;
      mean += weight * f(z);
      square += weight * f(z) * f(z);
    }
    return mean * mean / square;
  };
  EXPECT_NEAR(correlation_of(key_law_named("silu")), of([](double z) { return z / (1 + std::exp(-z)); }), 1e-12);
  EXPECT_NEAR(correlation_of(key_law_named("elu1")), of([](double z) { return z > 0 ? z + 1 : std::exp(z); }),
              1e-7);  // a kink at 0
}

TEST(laws, read_back_their_names) {
  for (const char* keys : {"gaussian", "silu", "elu1", "cos=0.9", "cos=0", "cos=1", "identical", "alternating"})
    EXPECT_EQ(name_of(key_law_named(keys)), keys);
  for (const char* beta : {"0", "0.9", "2", "U(0,1)", "U(1.9,2)"}) EXPECT_EQ(name_of(step_law_named(beta)), beta);
  EXPECT_EQ(step_law_named("U(0.5, 1)"), (step_law{0.5, 1}));
}

TEST(laws, refuse_what_they_do_not_mean) {
  for (const char* keys : {"", "cos=1.5", "cos=-0.1", "cos=nan", "cos=", "cos=0.9x", "Gaussian", "ones"}) {
    EXPECT_THROW((void)key_law_named(keys), format_error) << keys;
  }
  for (const char* beta : {"", "nan", "inf", "-0.1", "2.1", "U(0,1", "U(1,0)", "U(0,3)", "U(0)", "U(a,1)", "1e400"}) {
    EXPECT_THROW((void)step_law_named(beta), format_error) << beta;
  }
  try {
    (void)key_law_named("ones");
  } catch (const format_error& e) {
    EXPECT_THAT(e.what(), HasSubstr("ones"));
    EXPECT_THAT(e.what(), HasSubstr("alternating"));
  }
}

TEST(inverse_trial, refuses_impossible_configurations) {
  const inverse_problem good{key_law_named("cos=0.5"), step_law_named("1"), 8, 4, 1, 1};
  const auto message = [](const inverse_plan& plan, const inverse_problem& problem) -> std::string {
    try {
      (void)try_inverse(plan, problem);
    } catch (const error& e) {
      return e.what();
    }
    return "nothing was thrown";
  };
  const inverse_method forward = inverse_named("forward"), merged = inverse_named("forward16+block");
  EXPECT_THAT(message({forward, fp32, fp16, fp32}, good), HasSubstr("cannot hold every fp32 operand"));
  EXPECT_THAT(message({forward, fp16, bf16, fp16}, good), HasSubstr("--accumulate fp16"));
  EXPECT_THAT(message({forward, e4m3, fp32, fp32}, good), HasSubstr("e4m3"));
  EXPECT_THAT(message({merged, fp32, fp32, fp32, e5m2}, good), HasSubstr("e5m2"));
  EXPECT_THAT(message({merged, fp16, fp32, fp16, bf16}, good), HasSubstr("--format fp32 --merge-format tf32 --accumulate fp32"));
  EXPECT_THAT(message({merged, fp32, fp64, fp32, tf32}, good), HasSubstr("cannot be tried"));
  for (auto field : {&inverse_problem::chunk, &inverse_problem::samples, &inverse_problem::key_dim}) {
    inverse_problem bad = good;
    bad.*field = 0;
    EXPECT_THAT(message({forward, fp32, fp32, fp32}, bad), HasSubstr("at least 1"));
  }
  inverse_problem narrow = good;
  narrow.key_dim = 1;
  EXPECT_THAT(message({forward, fp32, fp32, fp32}, narrow), HasSubstr("d = 2"));
}

TEST(judge_inverse, counts_what_is_not_finite_against_the_inverse) {
  const inverse_plan plan{inverse_named("forward"), fp32, fp32, fp16};
  const auto cases = inverse_inputs({key_law_named("identical"), step_law_named("1"), 8, 4, 1, 1}).rounded_to(fp32);
  const growth small{1, "result"};
  inverse_runs runs = run_cases(plan, cases);
  EXPECT_TRUE(judge_inverse(plan, cases, runs, small).safe);
  for (const double bad : {std::nan(""), std::numeric_limits<double>::infinity(), 65520.0}) {
    inverse_runs spoiled = runs;
    spoiled.results[0](3, 1) = bad;
    const inverse_verdict v = judge_inverse(plan, cases, spoiled, small);
    EXPECT_FALSE(v.safe) << bad;
    EXPECT_EQ(v.left_format, 1U);
    EXPECT_THAT(v.reason, HasSubstr("stored result left the range of fp16"));
  }
  runs.results[0](3, 1) += 0.004;  // the limit is 8 u = 0.0039
  EXPECT_FALSE(judge_inverse(plan, cases, runs, small).safe);
  runs.results[0](3, 1) -= 0.001;
  EXPECT_TRUE(judge_inverse(plan, cases, runs, small).safe);
  EXPECT_FALSE(judge_inverse(plan, cases, runs, {1e5, "power"}).safe);

  runs.results[0](3, 1) += 0.1;  // small intermediates, then a large one that no one predicted
  EXPECT_THAT(judge_inverse(plan, cases, runs, small).reason, HasSubstr("the intermediates are small (1)"));
  runs.observed[0] = {1e5, "power"};
  EXPECT_THAT(judge_inverse(plan, cases, runs, small).reason, HasSubstr("a power of L reached 1e+05"));
  EXPECT_THAT(judge_inverse(plan, cases, runs, small).reason, Not(HasSubstr("the intermediates are small")));
}

}  // namespace
}  // namespace deltaproof
