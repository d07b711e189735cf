// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
//
// The limit on what dg changes by inside a chunk: where <h, dh> is summed in 16 bits and gates decay slowly, the limit on the
// rms of dg is that of one rounded number, and lets pass what this one does not.
#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <vector>

#include "deltaproof/check/check.hpp"
#include "deltaproof/emulate/emulate_gradients.hpp"
#include "deltaproof/inputs/regimes.hpp"

namespace deltaproof {
namespace {

constexpr std::size_t tokens = 234, chunk = 64;

problem slow_gates() {
  generation g;
  g.op = op_kind::gated_delta_rule;
  g.regime = "slow-decay";
  g.tokens = tokens;
  g.key_dim = g.value_dim = 64;
  g.key_heads = 1;
  g.value_heads = 2;
  g.initial_state = "normal";
  g.seed = 20;
  g.cotangents = true;
  return generate(g);
}

/// A kernel of fla's plan that sums <h, dh> in 16 bits, its dg as `spoil` leaves it: of (T x heads), row by row.
result run(const problem& p, std::size_t variant, std::uint64_t seed,
           const std::function<void(std::vector<double>& dg, std::size_t heads)>& spoil = {}) {
  const plan declared = plan_named("fla-chunk-gdn");
  emulation_options options;
  options.noise_ulps = 1;
  options.seed = seed;
  const std::vector<plan_variant> all = gradient_variants(declared, p, path_kind::chunk, chunk);
  result r = emulate_gradients(p, all[variant % all.size()], options);
  r.o = tensor();
  r.final_state.reset();
  tensor& dg = r.gradients.at("dg");
  std::vector<double> values = dg.to_doubles();
  if (spoil) spoil(values, dg.shape().back());
  for (double& x : values) x = static_cast<float>(x);
  dg = tensor::from_doubles(dg.element_format(), dg.shape(), values, "dg");
  return r;
}

check_report judged(const problem& p, const result& r) {
  check_options options;
  options.plans = {plan_named("fla-chunk-gdn")};
  options.judge.power = false;
  return check(p, r, options);
}

bool refuted_by(const check_report& report, bool changes) {
  for (const judged_statistic& s : report.conformance->statistics) {
    if (s.judged == verdict::refuted && (s.norm == norm_kind::changes) == changes) return true;
  }
  return false;
}

TEST(changes_of_dg, of_correct_kernels_are_within_their_limits) {
  const problem p = slow_gates();
  for (std::size_t kernel = 0; kernel < 6; ++kernel) {
    const check_report report = judged(p, run(p, 5 * kernel, 100 + kernel));
    EXPECT_EQ(report.conformance->conforms, verdict::holds) << kernel << ": " << report.reason;
    std::size_t limits = 0;
    for (const judged_statistic& s : report.conformance->statistics) limits += s.norm == norm_kind::changes ? 1 : 0;
    EXPECT_EQ(limits, 2U * 3U);  // heads, and tokens 192-233, 128-191, 0-127
  }
}

TEST(changes_of_dg, show_faults_that_its_rms_hides) {
  const problem p = slow_gates();
  const auto restart = [](std::size_t every) {
    return [every](std::vector<double>& dg, std::size_t heads) {
      const std::vector<double> whole = dg;
      for (std::size_t t = 0; t < tokens; ++t) {
        const std::size_t next = (t / every + 1) * every;
        if (next % chunk != 0 && next < tokens) dg[t * heads + 1] -= whole[next * heads + 1];
      }
    };
  };
  struct planted {
    const char* what;
    std::function<void(std::vector<double>&, std::size_t)> spoil;
    bool hidden;
  };
  const planted all[] = {
      {"a gradient by g in base 2 in one chunk",
       [](std::vector<double>& dg, std::size_t heads) {
         for (std::size_t t = chunk; t < 2 * chunk; ++t) dg[t * heads + 1] *= 0.6931471805599453;
       },
       true},
      {"a sum that restarts at 32 in head 1", restart(32), false},
      {"two rows of one chunk in each other's place",
       [](std::vector<double>& dg, std::size_t heads) { std::swap(dg[70 * heads + 1], dg[71 * heads + 1]); }, true},
      {"a chunk one token late",
       [](std::vector<double>& dg, std::size_t heads) {
         for (std::size_t t = 2 * chunk - 1; t > chunk; --t) dg[t * heads + 1] = dg[(t - 1) * heads + 1];
       },
       true}};
  for (const planted& fault : all) {
    const check_report report = judged(p, run(p, 0, 7, fault.spoil));
    EXPECT_EQ(report.conformance->conforms, verdict::refuted) << fault.what;
    EXPECT_TRUE(refuted_by(report, true)) << fault.what;
    if (!fault.hidden) continue;
    EXPECT_FALSE(refuted_by(report, false)) << fault.what << " needs no limit on changes";
    EXPECT_NE(report.reason.find("changes from token to token by"), std::string::npos) << report.reason;
  }
}

/// What a whole chunk of dg is moved by is in no change: that is left to the other norms.
TEST(changes_of_dg, do_not_see_what_moves_a_whole_chunk) {
  const problem p = slow_gates();
  const check_report report = judged(p, run(p, 0, 7, [](std::vector<double>& dg, std::size_t heads) {
                                       for (std::size_t t = chunk; t < 2 * chunk; ++t) dg[t * heads] += 1000;
                                     }));
  EXPECT_FALSE(refuted_by(report, true));
  EXPECT_TRUE(refuted_by(report, false));
}

}  // namespace
}  // namespace deltaproof
