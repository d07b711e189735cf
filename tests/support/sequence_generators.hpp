// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
//
// Draws the recipes of recipes.hpp with RapidCheck, which shrinks them, and runs properties: `check_property` runs one
// a stated number of times inside a gtest test with a fixed, printed seed.
#pragma once

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <iostream>
#include <string>
#include <tuple>
#include <utility>

#include "support/multiplier.hpp"
#include "support/recipes.hpp"

namespace deltaproof::testing {

/// A RapidCheck generator of recipes within `limits`: each regime and gate, T from 0, K and V apart, half of the chunks
/// short and some the longest, steps in [0, 2], at 2, or negative.
[[nodiscard]] inline rc::Gen<sequence_recipe> recipes(recipe_limits limits) {
  // From the whole range at once: RapidCheck would start with sequences too short to show anything.
  const auto any = [](auto low, auto high) { return rc::gen::resize(rc::kNominalSize, rc::gen::inRange(low, high)); };
  const auto up_to = [any](std::size_t low, std::size_t high) { return any(low, high + 1); };
  const auto steps = rc::gen::elementOf(step_ranges);
  const auto chunk = rc::gen::weightedOneOf<std::size_t>(
      {{4, up_to(1, std::min<std::size_t>(limits.chunk, 8))}, {3, up_to(1, limits.chunk)}, {1, rc::gen::just(limits.chunk)}});
  return rc::gen::map(rc::gen::tuple(any(std::size_t{0}, key_regimes.size()), any(std::uint64_t{0}, std::uint64_t{1} << 32),
                                     up_to(0, limits.tokens), up_to(1, limits.steps_per_token), up_to(1, limits.key_dim),
                                     up_to(1, limits.value_dim), chunk, any(0, 3), steps, rc::gen::arbitrary<bool>()),
                      [](const auto& drawn) {
                        sequence_recipe r;
                        std::pair<int, int> range;
                        std::size_t regime = 0;
                        int decays = 0;
                        std::tie(regime, r.seed, r.tokens, r.steps_per_token, r.key_dim, r.value_dim, r.chunk, decays, range,
                                 r.initial_state) = drawn;
                        r.regime = key_regimes[regime].first;
                        r.decays = static_cast<decay_kind>(decays);
                        r.step_from = range.first;
                        r.step_to = range.second;
                        return r;
                      });
}

/// Runs a RapidCheck property `cases` times (scaled by DELTAPROOF_TEST_MULTIPLIER) inside a gtest test, with
/// this seed unless RC_PARAMS says otherwise, and prints both, and what was classified.
template <class Property>
void check_property(std::size_t cases, std::uint64_t seed, Property&& property) {
  const auto* info = ::testing::UnitTest::GetInstance()->current_test_info();
  rc::detail::TestMetadata metadata;
  metadata.id = std::string(info->test_suite_name()) + "/" + info->name();
  metadata.description = info->name();
  const rc::detail::Configuration& config = rc::detail::configuration();
  rc::detail::TestParams params = config.testParams;
  if (!deltaproof::detail::rapidcheck_was_asked) {
    params.seed = seed;
    params.maxSuccess = static_cast<int>(scaled(cases));
  }
  std::cout << metadata.id << ": " << params.maxSuccess << " cases, seed " << params.seed << "\n";
  const rc::detail::TestResult result = config.reproduce.count(metadata.id) != 0
                                            ? rc::detail::checkTestable(std::forward<Property>(property), metadata)
                                            : rc::detail::checkTestable(std::forward<Property>(property), metadata, params);
  if (result.template is<rc::detail::SuccessResult>()) {
    if (!result.template get<rc::detail::SuccessResult>().distribution.empty()) {
      rc::detail::printResultMessage(result, std::cout);
      std::cout << "\n";
    }
    return;
  }
  rc::detail::printResultMessage(result, std::cerr);
  std::cerr << "\n";
  FAIL() << metadata.id << ": see the counterexample on stderr";
}

}  // namespace deltaproof::testing
