// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "deltaproof/number/convert.hpp"
#include "deltaproof/number/real.hpp"
#include "deltaproof/scan/recurrent.hpp"
#include "deltaproof/study/study.hpp"
#include "studies/state_precision/runs.hpp"
#include "studies/state_precision/sections.hpp"
#include "support/study.hpp"

namespace deltaproof {
namespace {

using namespace detail::state_precision;
using wide = real<192>;

const shape tiny{8, 2, 12};

TEST(state_precision_tokens, do_not_depend_on_the_blocks) {
  for (const head& h : heads) {
    token_source whole(h, tiny, 3);
    token_source parts(h, tiny, 3);
    const tokens all = whole.next(50);
    tokens joined = parts.next(20);
    const tokens rest = parts.next(30);
    joined.k.insert(joined.k.end(), rest.k.begin(), rest.k.end());
    joined.g.insert(joined.g.end(), rest.g.begin(), rest.g.end());
    joined.beta.insert(joined.beta.end(), rest.beta.begin(), rest.beta.end());
    EXPECT_EQ(all.k, joined.k);
    EXPECT_EQ(all.g, joined.g);
    EXPECT_EQ(all.beta, joined.beta);
    for (const double g : all.g) {
      EXPECT_LE(g, 0);
      EXPECT_EQ(g == 0, h.rate == 0);
    }
    for (const double b : all.beta) {
      EXPECT_GT(b, 0);
      EXPECT_LT(b, 1);
    }
  }
}

// The reference against a recurrence in 192 bits from the same tokens: inside its radius, across blocks.
TEST(state_precision_reference, holds_across_blocks) {
  const std::vector<std::size_t> at{7, 500, 9000};
  for (const std::size_t which : {1U, 3U, 4U}) {
    const head_run run = run_head(heads[which], tiny, at, 5);
    token_source source(heads[which], tiny, 5);
    recurrence<wide> exact(tiny.key_dim, tiny.value_dim);
    std::size_t done = 0;
    for (std::size_t c = 0; c < at.size(); ++c) {
      const tokens t = source.next(at[c] - done);
      done = at[c];
      for (std::size_t i = 0; i < t.beta.size(); ++i) {
        std::vector<wide> k;
        std::vector<wide> v;
        for (std::size_t j = 0; j < tiny.key_dim; ++j) k.push_back(lift<wide>(t.k[i * tiny.key_dim + j]));
        for (std::size_t j = 0; j < tiny.value_dim; ++j) v.push_back(lift<wide>(t.v[i * tiny.value_dim + j]));
        const wide decay = exp(lift<wide>(t.g[i]));
        exact.decay({&decay, 1});
        exact.step(k, v, lift<wide>(t.beta[i]));
      }
      wide square = 0;
      for (std::size_t i = 0; i < exact.state().size(); ++i) {
        const wide d = exact.state().data()[i] - lift<wide>(run.reference.states[c].data()[i]);
        square += d * d;
      }
      const auto error = round_to<double>(wide(sqrt(square)));
      EXPECT_LE(error, run.reference.radius[c]) << heads[which].id << ' ' << at[c];
      EXPECT_GT(error, 0);
      EXPECT_LT(run.reference.radius[c], 1e-9);
    }
  }
}

std::size_t named(std::string_view name) {
  return static_cast<std::size_t>(std::find_if(choices.begin(), choices.end(), [&](const choice& c) { return c.name == name; }) -
                                  choices.begin());
}

TEST(state_precision_runs, order_as_the_formats_do) {
  const std::vector<std::size_t> at{100, 3000};
  for (const head& h : heads) {
    const head_run run = run_head(h, tiny, at, 2);
    const auto error = [&](std::string_view name) { return run.runs[named(name)].error.back(); };
    EXPECT_LT(error("all fp32"), 1e-5) << h.id;
    EXPECT_GT(error("state bf16"), 3 * error("state fp16")) << h.id;
    EXPECT_GT(error("state fp16"), 100 * error("all fp32")) << h.id;
    EXPECT_GT(error("β bf16"), 10 * error("all fp32")) << h.id;
    // Without a gate every way of keeping it is the same, bit for bit.
    if (h.rate == 0) {
      EXPECT_EQ(run.runs[named("decay e^g bf16")].error, run.runs[named("all fp32")].error);
    } else {
      EXPECT_GT(error("decay e^g bf16"), error("log decay g bf16")) << h.id;
    }
    EXPECT_EQ(std::isinf(run.half_life), h.rate == 0);
  }
}

TEST(state_precision_runs, horizons_are_first_checkpoints_above) {
  const measured_run run{{0.001, 0.02, 0.005, 0.2}, {}};
  const std::vector<std::size_t> at{1, 10, 100, 1000};
  EXPECT_EQ(horizon(run, at, 0.01), 10U);
  EXPECT_EQ(horizon(run, at, 0.1), 1000U);
  EXPECT_EQ(horizon(run, at, 0.5), 0U);
  EXPECT_EQ(largest(run), 0.2);
  EXPECT_EQ(horizon({{std::numeric_limits<double>::quiet_NaN()}, {}}, {5}, 1), 5U);
}

report report_of(const survey& s, const settings& size) {
  report r = reports::empty("state-precision");
  add_findings({}, size, s, r);
  return r;
}

TEST(state_precision_study, findings_follow_the_runs) {
  settings size;
  size.dims = tiny;
  size.tokens = 2000;
  survey s = run_survey({}, size);
  ASSERT_TRUE(s.complete);
  const report before = report_of(s, size);
  EXPECT_NO_THROW(validate(before));
  run_options two;
  two.threads = 2;
  EXPECT_EQ(to_json(before), to_json(report_of(run_survey(two, size), size)));
  for (head_run& h : s.heads) {
    for (measured_run& m : h.runs) {
      for (double& e : m.error) e = 0.3;
    }
    for (double& x : h.reference.radius) x = 0.01;
  }
  const report after = report_of(s, size);
  for (const finding& f : before.findings) EXPECT_NE(f.statement, reports::found(after, f.id).statement) << f.id;
  EXPECT_EQ(reports::found(after, "decay").statement.find("Keep g"), std::string::npos);
  EXPECT_EQ(reports::found(after, "stochastic-state").statement.find("takes the drift away"), std::string::npos);
}

TEST(state_precision_study, interrupted_says_what_is_missing) {
  const report r = reports::interrupted("state-precision");
  EXPECT_EQ(r.unfinished.size(), 1U);
  EXPECT_TRUE(r.findings.empty());
}

}  // namespace
}  // namespace deltaproof
