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
  const auto in =
      testing::make_head(shape, family, *rc::gen::inRange<std::uint64_t>(0, 1000000), size, *rc::gen::arbitrary<bool>());
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

/// Numbers at the edges of their binades, low parts as large as they can be, one to three channels: where the constants of
/// the double-double tier are nearest to what happens.
RC_GTEST_PROP(double_double_tier, is_never_further_from_the_truth_than_its_radius_at_the_edges, ()) {
  std::mt19937_64 bits(*rc::gen::inRange<std::uint64_t>(0, 1000000000));
  std::uniform_real_distribution<double> uniform;
  const auto edge = [&](double size) {
    const double near[] = {1, 1 - 0x1p-53, 1 + 0x1p-52, 1 + uniform(bits), uniform(bits) + 1e-6};
    return std::ldexp(near[bits() % 5], -static_cast<int>(bits() % 4)) * (bits() % 2 == 0 ? size : -size);
  };
  const std::size_t K = 1 + bits() % 3, T = bits() % 8 == 0 ? 130 : 1 + bits() % 70, steps = bits() % 5 == 0 ? 2 : 1;
  tiers::double_double_head head;
  auto& s = head.high.scan;
  s = sequence<double>::zeros(T, steps, K, 16, testing::decay_kinds[bits() % 3]);
  head.high.scale = edge(1);
  for (auto* list : {&s.q, &s.v, &s.k}) {
    for (double& x : *list) x = edge(list == &s.k ? 0.7 : 1);
  }
  for (double& x : s.initial_state.entries()) x = edge(1);
  for (double& x : s.decay) x = bits() % 3 == 0 ? 1 : bits() % 7 == 0 ? 0 : std::fabs(edge(0.9));
  for (std::size_t r = 0; r < s.rows(); ++r) {
    double square = 0;
    for (std::size_t j = 0; j < K; ++j) square += s.k[r * K + j] * s.k[r * K + j];
    const double steps_of[] = {1, 2 / square * (1 - 0x1p-20), uniform(bits), std::ldexp(1.0, std::ilogb(1 / square))};
    s.step[r] = std::min(steps_of[bits() % 4], 2 / square);
  }
  if (bits() % 2 == 0) {
    const auto low_of = [&](const std::vector<double>& from) {
      std::vector<double> low(from.size());
      for (std::size_t i = 0; i < from.size(); ++i) {
        int e = 0;
        const double half = std::frexp(std::fabs(from[i]), &e) == 0.5 ? 0x1p-55 : 0x1p-54;
        low[i] = from[i] == 0 ? 0 : std::ldexp(half, e) * (bits() % 2 == 0 ? 1 : uniform(bits)) * (bits() % 2 == 0 ? 1 : -1);
      }
      return low;
    };
    head.k_low = low_of(s.k);
    head.q_low = low_of(s.q);
    head.step_low = low_of(s.step);
    if (bits() % 2 == 0) head.decay_low = low_of(s.decay);
  }
  auto fine = testing::in_mpfr(head.high);
  const auto add = [](std::vector<mpfr_value>& to, const std::vector<double>& low) {
    for (std::size_t i = 0; i < low.size(); ++i) mpfr_add_d(to[i].get(), to[i].get(), low[i], MPFR_RNDN);
  };
  add(fine.scan.q, head.q_low);
  add(fine.scan.k, head.k_low);
  add(fine.scan.step, head.step_low);
  add(fine.scan.decay, head.decay_low);
  certifier<mpfr_field> engine(mpfr_field{400}, std::ldexp(1.0, -400), fine);
  const auto want = engine.run({});
  tiers::tier_rows rows;
  const auto columns = testing::all_columns(head.high);
  tiers::run_double_double(head, columns, rows);
  const auto got = testing::compare(rows, want, columns, s);
  RC_ASSERT(got.o <= 1);
  RC_ASSERT(got.state <= 1);
}

}  // namespace
}  // namespace deltaproof
