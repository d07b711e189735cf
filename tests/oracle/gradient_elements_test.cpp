// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
//
// Elements of gradients that are run by themselves: within their radii of the derivative that the forward pass carries, the same
// as those of whole groups, and what decides the few that a run of a group leaves open.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "deltaproof/inputs/regimes.hpp"
#include "oracle/gradient_checks.hpp"
#include "oracle/gradients/elements.hpp"
#include "oracle/gradients/group.hpp"
#include "support/multiplier.hpp"

namespace deltaproof {
namespace {

using namespace testing;

/// The part of one tensor in a group of one head, and how many numbers it has.
std::size_t elements_in(const problem& p, std::size_t tensor) {
  const std::size_t counts[] = {
      p.q.size(), p.k.size(), p.v.size(), p.beta.size(), p.g ? p.g->size() : 0, p.initial_state ? p.initial_state->size() : 0};
  return counts[tensor];
}

TEST(gradient_elements, of_hostile_problems_are_within_their_radii) {
  gradient_tally all;
  for (std::uint64_t number = 0; number < scaled(40) && !HasFailure(); ++number) {
    const problem p = with_cotangents(hostile_problem(3, number), number);
    philox random(81, number);
    std::vector<gradient_element> asked;
    for (std::size_t tensor = 0; tensor < gradient_names.size(); ++tensor) {
      const std::size_t count = elements_in(p, tensor);
      for (int some = 0; some < 2 && count > 0; ++some) asked.push_back({tensor, 0, random.below(count)});
    }
    testing::slopes_so_far slopes;
    for (const int bits : {106, 300}) {
      head_part got;
      try {
        if (!run_elements(p, 0, 0, bits, asked, nullptr, got)) continue;
      } catch (const domain_error&) {
        continue;  // at a pole
      }
      for (std::size_t n = 0; n < asked.size(); ++n) {
        reference_tensor whole;
        const std::size_t count = elements_in(p, asked[n].tensor), at = asked[n].index;
        whole.value.assign(count, 0.0);
        whole.radius.assign(count, 0.0);
        whole.low.assign(got.low.size(), std::vector<double>(count, 0.0));
        whole.value[at] = got.value[n];
        whole.radius[at] = got.radius[n];
        for (std::size_t c = 0; c < got.low.size(); ++c) whole.low[c][at] = got.low[c][n];
        judge_element(p, whole, {asked[n].tensor, at},
                      "hostile problem " + std::to_string(number) + ", elements at " + std::to_string(bits) + " bits", all,
                      slopes);
      }
    }
  }
  std::sort(all.ratios.begin(), all.ratios.end());
  ASSERT_GT(all.ratios.size(), 150U);
  EXPECT_LT(all.infinite, all.radii / 4);
  std::printf("%zu radii: %zu infinite, %zu zero; largest error/radius %.2g\n", all.radii, all.infinite, all.exact,
              all.ratios.back());
}

problem in_groups(op_kind op, bool l2norm, std::size_t steps) {
  generation g;
  g.regime = "typical";
  g.op = op;
  g.tokens = 20;
  g.key_dim = 6;
  g.value_dim = 5;
  g.key_heads = 2;
  g.value_heads = 4;
  g.num_householder = steps;
  g.cotangents = true;
  problem p = generate(g);
  p.qk_l2norm = l2norm;
  return p;
}

/// Every element of a group of two heads, against the group run as a whole at the same precision.
void expect_as_in_group(const problem& p, const std::string& where) {
  std::map<std::pair<std::size_t, std::size_t>, head_part> whole;  // of one segment: each as one slice
  const slice_sink sink{[&] { whole.clear(); }, [&](gradient_slice&& s) { whole[{s.tensor, s.head}] = std::move(s.part); }};
  group_outcome outcome;
  ASSERT_TRUE(run_group(p, 0, 1, 106, std::numeric_limits<double>::infinity(), nullptr, nullptr, sink, outcome)) << where;
  ASSERT_EQ(outcome.heads.size(), 2U);
  const auto compare = [&](const head_part& part, std::size_t tensor, std::size_t head) {
    std::vector<gradient_element> asked;
    for (std::size_t i = 0; i < part.value.size(); ++i) asked.push_back({tensor, head, i});
    head_part got;
    ASSERT_TRUE(run_elements(p, 0, 1, 106, asked, nullptr, got)) << where;
    for (std::size_t i = 0; i < asked.size(); ++i) {
      const double low = part.low.empty() ? 0 : part.low[0][i], other = got.low.empty() ? 0 : got.low[0][i];
      EXPECT_LE(std::fabs((part.value[i] - got.value[i]) + (low - other)), (part.radius[i] + got.radius[i]) * (1 + 0x1p-20))
          << where << ", " << gradient_names[tensor] << "[" << i << "] of head " << head;
      EXPECT_LE(got.radius[i], 0x1p-60 * (1 + std::fabs(got.value[i]))) << where << ", " << gradient_names[tensor];
    }
  };
  EXPECT_EQ(whole.size(), 2 + 2 * (2 + (p.g ? 1U : 0U) + (p.initial_state ? 1U : 0U)));
  for (const auto& [at, part] : whole) compare(part, at.first, at.second);
}

TEST(gradient_elements, are_those_of_the_whole_group) {
  for (const op_kind op : {op_kind::gated_delta_rule, op_kind::kda}) {
    for (const bool l2norm : {false, true}) {
      problem p = in_groups(op, l2norm, 1);
      expect_as_in_group(p, std::string(name_of(op)));
      p.rule = rule_kind::exact;
      expect_as_in_group(p, std::string(name_of(op)) + ", exact rule");
    }
  }
  expect_as_in_group(in_groups(op_kind::gated_delta_product, true, 2), "two steps a token");
}

/// What few elements are left open by fp64 is answered by themselves, and as by the whole group.
TEST(gradient_elements, decide_what_a_run_leaves_open) {
  generation g;
  g.regime = "typical";
  g.op = op_kind::kda;
  g.tokens = 300;
  g.key_dim = g.value_dim = 64;
  g.key_heads = g.value_heads = 1;
  g.cotangents = true;
  const problem p = generate(g);
  question q;
  q.max_bits = 53;
  double largest = 0;
  for (const auto& [name, t] : solve_gradients(p, q).tensors) {
    double most = 0, radius = 0;
    for (std::size_t i = 0; i < t.value.size(); ++i) {
      most = std::max(most, std::fabs(t.value[i]));
      radius = std::max(radius, t.radius[i]);
    }
    largest = std::max(largest, radius / most);
  }
  q.max_bits = 1024;
  q.round_output = q.round_state = bf16;
  q.relative_radius = largest * (1 - 1e-6);
  const reference_gradients some = solve_gradients(p, q);
  ASSERT_EQ(some.unanswered, 0U);
  ASSERT_EQ(some.tiers.count("fp64 and elements in double-double"), 1U) << some.tiers.begin()->first;
  q.relative_radius = 0x1p-60;  // of a whole run
  const reference_gradients fine = solve_gradients(p, q);
  ASSERT_EQ(fine.tiers.count("double-double"), 1U) << fine.tiers.begin()->first;
  for (const auto& [name, t] : some.tensors) {
    const reference_tensor& other = fine.tensors.find(name)->second;
    for (std::size_t i = 0; i < t.value.size(); ++i) {
      ASSERT_EQ(decided_rounding(t, i, bf16), decided_rounding(other, i, bf16)) << name << "[" << i << "]";
    }
  }
}

/// A decay of 0 has a gradient of exactly 0, and so has what it hides of the initial state: no group goes to more bits for them.
TEST(gradient_elements, behind_resets_are_zeros) {
  for (const op_kind op : {op_kind::gated_delta_rule, op_kind::kda}) {
    problem p = in_groups(op, true, 1);
    std::vector<double> g = p.g->to_doubles();
    for (std::size_t i = 0; i < g.size(); i += 3) g[i] = -std::numeric_limits<double>::infinity();
    p.g = tensor::from_doubles(fp32, p.g->shape(), g, "g");
    question q;
    q.round_output = q.round_state = fp64;
    const reference_gradients got = solve_gradients(p, q);
    EXPECT_EQ(got.unanswered, 0U);
    // Entries of the initial state to a decay of the first token.
    const std::size_t hidden = p.initial_state->size() / (g.size() / p.tokens());
    for (const auto& [name, each] : {std::pair<std::string_view, std::size_t>{"dg", 1}, {"dinitial_state", hidden}}) {
      const reference_tensor& t = got.tensors.find(name)->second;
      for (std::size_t i = 0; i < t.value.size(); ++i) {
        const std::optional<double> rounded = decided_rounding(t, i, fp64);
        ASSERT_TRUE(rounded) << name_of(op) << ", " << name << "[" << i << "]";
        EXPECT_EQ(*rounded == 0, i / each % 3 == 0) << name_of(op) << ", " << name << "[" << i << "]: " << *rounded;
      }
    }
  }
}

}  // namespace
}  // namespace deltaproof
