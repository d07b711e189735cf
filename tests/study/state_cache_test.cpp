// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
//
// The runs of the study of state caches: what they measure where the answer is known, and what feedback does to it.

#include "studies/state_cache/runs.hpp"
#include "support/study.hpp"

namespace deltaproof {
namespace {

using namespace detail::state_cache;

const shape tiny{8, 8, 12};

std::vector<double> errors_of(const token_list& t, const choice& c, const std::vector<std::size_t>& at) {
  return run_tokens(t, tiny, std::vector<choice>{c}, at, 1).runs[0].error;
}

TEST(state_cache_runs, without_a_store_err_by_fp32_alone) {
  const token_list t = draw_tokens(heads[2], tiny, 300, 4);
  const std::vector<std::size_t> at{100, 300};
  const auto plain = errors_of(t, {"fp32", "fp32", "none", to_nearest}, at);
  const auto never = errors_of(t, {"later", "int4", "row", to_nearest, 1000}, at);
  EXPECT_EQ(plain, never);
  for (const double e : plain) {
    EXPECT_GT(e, 0);
    EXPECT_LT(e, 1e-5);
  }
  EXPECT_GT(errors_of(t, {"int8", "int8", "row", to_nearest}, at).back(), 1e-3);
}

// One token, then nothing is written and nothing decays: o of the second is off by what one store lost, and only that.
TEST(state_cache_runs, read_before_they_store) {
  token_list t;
  t.k.assign(2 * 8, 0.0);
  t.v.assign(2 * 8, 0.0);
  t.k[0] = t.k[8] = 1;
  for (std::size_t j = 0; j < 8; ++j) t.v[j] = 1 + 0.1 * static_cast<double>(j);
  t.beta = {1, 0};
  t.decay = {1, 1};
  t.g = {0, 0};
  const auto error = errors_of(t, {"int4", "int4", "row", to_nearest}, {1, 2});
  EXPECT_LT(error[0], 1e-6);
  double lost = 0, size = 0;
  for (std::size_t j = 0; j < 8; ++j) {
    const double x = t.v[j], step = 1.7 / 7;
    lost += std::pow(std::nearbyint(x / step) * step - x, 2);
    size += x * x;
  }
  EXPECT_NEAR(error[1], std::sqrt(lost / size), 1e-6);
}

TEST(state_cache_runs, with_feedback_do_not_grow_with_the_memory) {
  std::vector<double> with, without;
  for (const std::size_t h : {0U, 2U}) {
    const token_list t = draw_tokens(heads[h], tiny, 2000, 4);
    with.push_back(errors_of(t, {"f", "int8", "row", fed_back}, {1000, 2000}).back());
    without.push_back(errors_of(t, {"n", "int8", "row", to_nearest}, {1000, 2000}).back());
  }
  EXPECT_LT(with[1], 4 * with[0]);
  EXPECT_GT(without[1], 2 * with[1]);
}

TEST(state_cache_choices, are_formats_that_can_be_stored) {
  for (const choice& c : stored_choices) EXPECT_GT(stored_bits(stored_as(c), 4, 4), 0U) << c.name;
}

}  // namespace
}  // namespace deltaproof
