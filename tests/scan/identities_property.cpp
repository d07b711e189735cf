// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
//
// Every identity of the catalogue, with ==, modulo 2^61 - 1 and in rationals: one test for each and either. A test counts
// the sequences it has seen that have a row; the program ends with their number and with what ran.
#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <iostream>
#include <string>
#include <type_traits>
#include <vector>

#include "deltaproof/number/modular.hpp"
#include "deltaproof/number/rational.hpp"
#include "support/distribution.hpp"
#include "support/identities.hpp"
#include "support/identities/transition.hpp"
#include "support/sequence_generators.hpp"

namespace deltaproof {
namespace {

using testing::distribution;
using testing::identity;
using testing::library;
using testing::recipe_limits;
using testing::sequence_recipe;

constexpr std::size_t cases_modulo_a_prime = 4500;
constexpr std::size_t cases_in_rationals = 250;

distribution& what_ran() {
  static distribution all;
  return all;
}

/// Fractions grow with every step: shorter runs, chunks up to 12 rows, and sixty-four in a test of their own.
constexpr recipe_limits in_rationals(const recipe_limits& limits) {
  return {.tokens = std::min<std::size_t>(limits.tokens, 5),
          .steps_per_token = 2,
          .key_dim = std::min<std::size_t>(limits.key_dim, 4),
          .value_dim = std::min<std::size_t>(limits.value_dim, 3),
          .chunk = std::min<std::size_t>(limits.chunk, 12)};
}

template <class S>
class identity_test : public ::testing::Test {
 public:
  identity_test(const identity<library<S>>& of, std::uint64_t seed) : identity_{of}, seed_{seed} {}

  void TestBody() override {
    constexpr bool rationals = std::is_same_v<S, rational>;
    std::cout << identity_.formula << "\n";
    const recipe_limits limits = rationals ? in_rationals(identity_.limits) : identity_.limits;
    testing::check_property(rationals ? cases_in_rationals : cases_modulo_a_prime, seed_, [&] {
      const auto recipe = *testing::recipes(limits);
      RC_ASSERT(identity_.holds({}, recipe));
      what_ran().add(recipe);
    });
  }

 private:
  identity<library<S>> identity_;
  std::uint64_t seed_;
};

template <class S>
std::vector<identity<library<S>>> all_identities() {
  auto all = testing::identities<S>();
  testing::append(all, testing::transition_identities<library<S>>);
  return all;
}

template <class S>
bool register_identities(const char* suite, std::uint64_t seed) {
  for (const auto& each : all_identities<S>()) {
    ++seed;
    ::testing::RegisterTest(suite, std::string(each.name).c_str(), nullptr, nullptr, __FILE__, __LINE__,
                            [each, seed]() -> ::testing::Test* { return new identity_test<S>(each, seed); });
  }
  return true;
}

const bool registered = register_identities<modular>("identities_modulo_a_prime", 1000) &&
                        register_identities<rational>("identities_in_rationals", 2000);

// 64 rows in one chunk, and 64 with a tail, in fractions: each regime and gate once.
TEST(identities_in_rationals, chunks_of_64_rows) {
  for (const auto& [regime, name] : testing::key_regimes) {
    for (const auto decays : {decay_kind::none, decay_kind::per_token, decay_kind::per_channel}) {
      const sequence_recipe recipe{.regime = regime,
                                   .seed = 64,
                                   .tokens = 70,
                                   .key_dim = 2,
                                   .value_dim = 3,
                                   .chunk = 64,
                                   .decays = decays,
                                   .step_from = 0,
                                   .step_to = 16,
                                   .initial_state = true};
      const library<rational> impl;
      EXPECT_TRUE(testing::chunkwise_is_the_recurrence(impl, recipe)) << name;
      EXPECT_TRUE(testing::inverse_from_the_right(impl, recipe)) << name;
      EXPECT_TRUE(testing::inverse_from_the_left(impl, recipe)) << name;
      for (int i = 0; i < 3; ++i) what_ran().add(recipe);
    }
  }
}

// What is asked for, counted: 200 000 instances and a margin for the sequences without a row.
TEST(identities, are_two_hundred_thousand_instances) {
  const std::size_t count = testing::identities<modular>().size() + std::size(testing::transition_identities<library<modular>>);
  EXPECT_GE(count * (cases_modulo_a_prime + cases_in_rationals), 250'000U) << "about a ninth of which has no row";
}

class report : public ::testing::Environment {
 public:
  void TearDown() override {
    if (what_ran().recipes() == 0) return;
    std::cout << "identity instances checked: " << what_ran().recipes() - what_ran().empty() << "\n" << what_ran();
  }
};
const ::testing::Environment* const reported = ::testing::AddGlobalTestEnvironment(new report);

}  // namespace
}  // namespace deltaproof
