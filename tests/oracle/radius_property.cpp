// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "deltaproof/oracle/reference.hpp"
#include "deltaproof/testing/rapidcheck.hpp"
#include "oracle/slow_reference.hpp"

namespace deltaproof {
namespace {

using testing::slow_real;

bool contains(const reference_tensor& got, const std::vector<slow_real>& want) {
  for (std::size_t i = 0; i < want.size(); ++i) {
    slow_real error = want[i] - got.value[i];
    for (const auto& low : got.low) error -= low[i];
    if (abs(error) > slow_real(got.radius[i])) return false;
  }
  return true;
}

/// Any regime, rule, shape and tier: no exact value lies outside its radius.
RC_GTEST_PROP(radius, is_never_below_the_true_error, ()) {
  testing::case_limits limits;
  for (const auto& [rule, name] : rule_names) limits.rules.push_back(rule);
  limits.most_tokens = 15;
  limits.key_dims = {2, 3, 4, 5, 6, 7, 8};
  limits.value_dims = {1, 2, 3};
  limits.chunk_sizes = {1};
  problem p = (*testing::problem_cases(limits)).given;
  if (!p.qk_l2norm) p.qk_l2norm = *rc::gen::arbitrary<bool>();
  RC_TAG(p.note.substr(0, p.note.find(',')));
  question q;
  q.threads = 1;
  q.min_bits = *rc::gen::element(53, 106, 128, 512);
  const reference ref = solve(p, q);
  const auto want = testing::slow_solve(p);
  RC_ASSERT(contains(ref.o, want.o));
  RC_ASSERT(contains(ref.final_state, want.final_state));
}

}  // namespace
}  // namespace deltaproof
