// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "deltaproof/kernel/regimes.hpp"
#include "deltaproof/oracle/reference.hpp"
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
  const auto regime = *rc::gen::inRange<std::size_t>(0, regimes().size());
  generation g;
  g.regime = std::string(regimes()[regime].name);
  g.seed = *rc::gen::inRange<std::uint64_t>(0, 1000000);
  if (g.regime != "varlen" && g.regime != "tails") g.tokens = *rc::gen::inRange<std::size_t>(1, 16);
  if (g.regime != "exact") g.key_dim = *rc::gen::inRange<std::size_t>(2, 9);
  g.value_dim = *rc::gen::inRange<std::size_t>(1, 4);
  problem p;
  try {
    p = generate(g);
  } catch (const error&) {
    RC_DISCARD("the regime does not come in this shape");
  }
  p.rule = rule_names[*rc::gen::inRange<std::size_t>(0, rule_names.size())].first;
  if (p.qk_l2norm == false) p.qk_l2norm = *rc::gen::arbitrary<bool>();
  RC_TAG(g.regime);
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
