// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
//
// The kill table: each planted fault against each identity of the catalogue, modulo 2^61 - 1. The faultless
// implementation satisfies every identity on the very recipes that are used; every fault fails some identity on one of
// them. Controls repeat it with poorer recipes, or by comparing outputs only, and show what such tests would miss.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <initializer_list>
#include <iomanip>
#include <iostream>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

#include "deltaproof/number/modular.hpp"
#include "deltaproof/number/rational.hpp"
#include "support/distribution.hpp"
#include "support/faulty.hpp"
#include "support/identities.hpp"
#include "support/multiplier.hpp"

namespace deltaproof {
namespace {

using testing::draw_recipe;
using testing::fault;
using testing::faulty;
using testing::identity;
using testing::key_regime;
using testing::planted_fault;
using testing::planted_faults;
using testing::recipe_limits;
using testing::recipe_stream;
using testing::sequence_recipe;
using ring_identity = identity<faulty<modular>>;

constexpr recipe_limits everyday{.tokens = 8, .steps_per_token = 3, .key_dim = 4, .value_dim = 4, .chunk = 8};

/// Case `i` of an identity: an everyday recipe, and every eighth as long as the identity allows.
sequence_recipe recipe_for(const ring_identity& of, std::size_t i, std::uint64_t salt) {
  recipe_stream stream(i * 0x9e3779b97f4a7c15ULL + salt);
  return draw_recipe(stream, i % 8 == 7 ? of.limits : everyday);
}

/// An identity that throws on finite input does not hold.
bool holds(const ring_identity& of, fault planted, const sequence_recipe& recipe) {
  try {
    return of.holds(faulty<modular>(planted), recipe);
  } catch (const std::exception&) {
    return false;
  }
}

/// After how many cases an identity sees a fault; 0 if it does not.
template <class Recipe>
std::size_t cases_needed(const ring_identity& of, fault planted, std::size_t cases, Recipe&& recipe) {
  for (std::size_t i = 0; i < cases; ++i) {
    if (!holds(of, planted, recipe(i))) return i + 1;
  }
  return 0;
}

std::string full_name(const planted_fault& f) { return std::string(f.stage) + "/" + std::string(f.name); }

TEST(kill_table, the_faultless_implementation_satisfies_every_identity) {
  testing::distribution what_ran;
  for (const auto& each : testing::ring_identities<faulty<modular>>()) {
    for (std::size_t i = 0; i < scaled(200); ++i) {
      const auto recipe = recipe_for(each, i, 1);
      what_ran.add(recipe);
      ASSERT_TRUE(holds(each, fault::none, recipe)) << each.name << " " << recipe;
    }
  }
  for (const auto& each : testing::ring_identities<faulty<rational>>()) {
    for (std::size_t i = 0; i < scaled(8); ++i) {
      recipe_stream stream(i);
      const auto recipe = draw_recipe(stream, {.tokens = 4, .steps_per_token = 2, .key_dim = 3, .value_dim = 3, .chunk = 6});
      ASSERT_TRUE(each.holds(faulty<rational>(), recipe)) << each.name << " " << recipe;
    }
  }
  std::cout << what_ran;
}

TEST(kill_table, every_planted_fault_dies) {
  const auto all = testing::ring_identities<faulty<modular>>();
  const std::size_t cases = scaled(48);
  testing::distribution what_ran;
  std::vector<std::size_t> kills(all.size(), 0);
  std::cout << "rows: faults, and how many identities see each within " << cases
            << " cases; columns: identities, by number, and the case in which each saw it\n"
            << std::string(37, ' ');
  for (std::size_t i = 0; i < all.size(); ++i) std::cout << std::setw(3) << i + 1;
  std::cout << "\n";
  for (const planted_fault& f : planted_faults) {
    std::ostringstream cells;
    std::size_t seen = 0;
    for (std::size_t i = 0; i < all.size(); ++i) {
      const std::size_t needed = cases_needed(all[i], f.id, cases, [&](std::size_t c) {
        const auto recipe = recipe_for(all[i], c, 1000 + i);
        what_ran.add(recipe);
        return recipe;
      });
      if (needed == 0) {
        cells << "  .";
        continue;
      }
      cells << std::setw(3) << needed;
      ++seen;
      ++kills[i];
    }
    std::cout << "  " << std::left << std::setw(32) << full_name(f) << std::right << std::setw(3) << seen << cells.str() << "\n";
    EXPECT_NE(seen, 0U) << full_name(f) << " (" << f.what << ") is seen by no identity";
  }
  std::cout << "identities, and how many of " << planted_faults.size() << " faults each sees:";
  for (std::size_t i = 0; i < all.size(); ++i) {
    std::cout << (i % 4 == 0 ? "\n  " : "  ") << std::setw(2) << i + 1 << " " << std::left << std::setw(25) << all[i].name
              << std::right << std::setw(3) << kills[i];
    EXPECT_NE(kills[i], 0U) << all[i].name << " sees no fault: is it vacuous?";
  }
  std::cout << "\n" << what_ran;
}

/// A poorer way to test: what it makes of a recipe, and whether it looks at outputs and the last state only.
struct control {
  std::string_view name;
  void (*restrict_recipe)(sequence_recipe&);
  bool outputs_only;
};

/// Nine channels, so that no key is zero or comes twice, as with Gaussian ones.
void random_keys(sequence_recipe& r) {
  r.regime = key_regime::generic;
  r.key_dim = 9;
}

constexpr control controls[] = {
    {"random keys only", [](sequence_recipe& r) { random_keys(r); }, false},
    {"no gate", [](sequence_recipe& r) { r.decays = decay_kind::none; }, false},
    {"one decay a token at most",
     [](sequence_recipe& r) { r.decays = r.decays == decay_kind::per_channel ? decay_kind::per_token : r.decays; }, false},
    {"no decay of 0", [](sequence_recipe& r) { r.decay_from = 1; }, false},
    {"T a multiple of C", [](sequence_recipe& r) { r.tokens = std::max<std::size_t>(1, r.tokens / r.chunk) * r.chunk; }, false},
    {"one chunk", [](sequence_recipe& r) { r.chunk = std::max<std::size_t>(1, r.tokens * r.steps_per_token); }, false},
    {"one step a token", [](sequence_recipe& r) { r.steps_per_token = 1; }, false},
    {"K = V", [](sequence_recipe& r) { r.key_dim = r.value_dim = testing::power_of_four(r.key_dim); }, false},
    {"b = 1", [](sequence_recipe& r) { r.step_from = r.step_to = 8; }, false},
    {"no initial state", [](sequence_recipe& r) { r.initial_state = false; }, false},
    {"outputs and state only", [](sequence_recipe&) {}, true},
    {"all of these at once",
     [](sequence_recipe& r) {
       random_keys(r);
       r.decays = decay_kind::none;
       r.steps_per_token = 1;
       r.tokens = std::max<std::size_t>(1, r.tokens / r.chunk) * r.chunk;
       r.value_dim = r.key_dim;
       r.step_from = r.step_to = 8;
       r.initial_state = false;
     },
     true},
};

/// The identities whose recipe is taken as it comes: the others bring gates, states or values of their own.
std::vector<ring_identity> plain_identities(bool outputs_only) {
  std::vector<ring_identity> result;
  for (const auto& each : testing::ring_identities<faulty<modular>>()) {
    const auto among = [&each](std::initializer_list<std::string_view> names) {
      return std::find(names.begin(), names.end(), each.name) != names.end();
    };
    const bool outputs = among({"recurrence_final_state", "recurrence_output", "wy_runs", "chunkwise_recurrent"});
    const bool inside =
        among({"wy_transition", "wy_write", "wy_apply", "wy_keys", "wy_rows", "ut_recursion", "ut_transform", "chunk_decay",
               "chunk_A", "chunk_Aqk", "chunk_Ai", "chunk_w", "chunk_u", "chunk_h", "chunk_v_new", "chunk_o"});
    if (outputs || (inside && !outputs_only)) result.push_back(each);
  }
  return result;
}

TEST(kill_table, controls_miss_faults) {
  const std::size_t cases = scaled(64);
  const auto missed_by = [cases](const control& by) {
    std::vector<std::string> missed;
    const auto identities = plain_identities(by.outputs_only);
    std::vector<sequence_recipe> recipes;
    for (std::size_t i = 0; i < cases; ++i) {
      recipe_stream stream(i + 1);
      recipes.push_back(draw_recipe(stream, everyday));
      by.restrict_recipe(recipes.back());
    }
    // Case by case, not identity by identity: most faults are seen in an early case.
    for (const planted_fault& f : planted_faults) {
      const bool seen = std::any_of(recipes.begin(), recipes.end(), [&](const sequence_recipe& recipe) {
        return std::any_of(identities.begin(), identities.end(),
                           [&](const ring_identity& each) { return !holds(each, f.id, recipe); });
      });
      if (!seen) missed.push_back(full_name(f));
    }
    return missed;
  };
  const auto print = [](std::string_view name, const std::vector<std::string>& missed) {
    std::cout << "  " << std::left << std::setw(28) << name << std::right << std::setw(3) << missed.size() << " ";
    for (const auto& f : missed) std::cout << " " << f;
    std::cout << "\n";
  };
  std::cout << "control: faults that it misses in " << cases << " cases of each identity\n";
  const auto unrestricted = missed_by({"every recipe", [](sequence_recipe&) {}, false});
  print("every recipe", unrestricted);
  EXPECT_TRUE(unrestricted.empty());
  for (const control& by : controls) {
    const auto missed = missed_by(by);
    print(by.name, missed);
    if (by.name == "no gate" || by.name == "all of these at once") {
      EXPECT_FALSE(missed.empty()) << by.name << ": a control that misses nothing shows nothing";
    }
  }
}

}  // namespace
}  // namespace deltaproof
