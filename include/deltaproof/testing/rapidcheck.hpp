// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
//
// RapidCheck generators of problems that shrink: a kernel that fails on 200 tokens of four heads is shown failing on the
// fewest tokens, heads and channels, in the simplest regime, that still fail, as the command that makes the problem.
//
//     RC_GTEST_PROP(my_kernel, keeps_its_plan, ()) {
//       const auto c = *problem_cases({.regimes = {"typical", "repeated"}, .ops = {op_kind::delta_rule}, .most_tokens = 200});
//       require_accepted(against_plan(c.given, my_kernel(c.given, c.chunk_size), "fla-chunk-delta", {.power = false}));
//     }
//
// A `const problem_case&` argument of a property draws from the limits' defaults. Link deltaproof::deltaproof and your
// RapidCheck.
#pragma once

#include <rapidcheck.h>

#include <ostream>
#include <utility>

#include "deltaproof/testing/problem_case.hpp"
#include "deltaproof/testing/trial.hpp"

namespace deltaproof::testing {

inline void showValue(const problem_case& c, std::ostream& out) {
  out << gen_command(c.made) << "  # chunks of " << c.chunk_size;
}

/// Cases within the limits; they shrink as `simpler` says. The size of RapidCheck plays no part. Throws: as draw_case.
[[nodiscard]] inline rc::Gen<problem_case> problem_cases(case_limits limits = {}) {
  const rc::Gen<case_recipe> recipes([limits](const rc::Random& random, int) {
    rc::Random fresh = random;
    philox draw(fresh.next());
    return rc::shrinkable::shrinkRecur(
        draw_case(draw, limits), [limits](const case_recipe& from) { return rc::seq::fromContainer(simpler(from, limits)); });
  });
  return rc::gen::map(recipes, [](const case_recipe& recipe) { return make_case(recipe); });
}

/// Fails the property with the answer's text where it is not accepted.
inline void require_accepted(const trial_answer& answer) {
  if (!answer.accepted) RC_FAIL("deltaproof says of the result:\n" + answer.text);
}

}  // namespace deltaproof::testing

namespace rc {

template <>
struct Arbitrary<deltaproof::testing::problem_case> {
  static Gen<deltaproof::testing::problem_case> arbitrary() { return deltaproof::testing::problem_cases(); }
};

}  // namespace rc
