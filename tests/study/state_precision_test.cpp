// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT

#include "deltaproof/scan/recurrent.hpp"
#include "studies/state_precision/runs.hpp"
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
        const wide decay = exp(lift<wide>(t.g[i]));
        exact.decay({&decay, 1});
        exact.step(reports::lifted<wide>(std::span(t.k).subspan(i * tiny.key_dim, tiny.key_dim)),
                   reports::lifted<wide>(std::span(t.v).subspan(i * tiny.value_dim, tiny.value_dim)), lift<wide>(t.beta[i]));
      }
      const double error = reports::distance_of(exact.state(), run.states[c]);
      EXPECT_LE(error, run.radius[c]) << heads[which].name << ' ' << at[c];
      EXPECT_GT(error, 0);
      EXPECT_LT(run.radius[c], 1e-9);
    }
  }
}

}  // namespace
}  // namespace deltaproof
