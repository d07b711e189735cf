// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "oracle/tiers_cases.hpp"

namespace deltaproof {
namespace {

/// Any shape, family, decay and magnitude: no exact value lies outside the radius of a row that stayed.
RC_GTEST_PROP(tiers, are_never_further_from_the_truth_than_their_radius, ()) {
  testing::head_shape shape;
  shape.key_dim = *rc::gen::inRange<std::size_t>(1, 20);
  shape.value_dim = *rc::gen::inRange<std::size_t>(1, 12);
  shape.steps_per_token = *rc::gen::element<std::size_t>(1, 1, 1, 2, 5);
  shape.tokens = *rc::gen::inRange<std::size_t>(0, 90);
  shape.decays = *rc::gen::elementOf(std::vector<decay_kind>(std::begin(testing::decay_kinds), std::end(testing::decay_kinds)));
  const auto family =
      *rc::gen::elementOf(std::vector<testing::key_family>(std::begin(testing::key_families), std::end(testing::key_families)));
  const double size = *rc::gen::element(1.0, 1.0, 1e-90, 1e-10, 1e10, 1e90);
  const auto in = testing::make_head(shape, family, *rc::gen::inRange<std::uint64_t>(0, 1000000), size, *rc::gen::arbitrary<bool>());
  const auto want = testing::exact_run(in);
  const auto columns = testing::all_columns(in);
  tiers::tier_rows rows;
  tiers::run_fp64(in, columns, rows);
  const auto first = testing::compare(rows, want, columns, in.scan);
  RC_ASSERT(first.o <= 1);
  RC_ASSERT(first.state <= 1);
  RC_ASSERT(!first.left);
  tiers::double_double_head head;
  head.high = in;
  tiers::run_double_double(head, columns, rows);
  const auto second = testing::compare(rows, want, columns, in.scan);
  RC_ASSERT(second.o <= 1);
  RC_ASSERT(second.state <= 1);
  RC_ASSERT(!second.left);
}

}  // namespace
}  // namespace deltaproof
