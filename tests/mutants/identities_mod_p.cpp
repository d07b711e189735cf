// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
//
// The catalogue of identities modulo 2^61 - 1 in one small program, built once for every mutant:
//   identities_mod_p [--control]
// exits 0 if all hold, and 1 after naming the first that does not. --control asks with what a usual test has: random
// keys, no gate, one step a token, K = V, whole chunks, steps below 1.
#include <exception>
#include <iostream>
#include <string_view>

#include "deltaproof/number/modular.hpp"
#include "support/identities.hpp"

namespace {

using namespace deltaproof;
using namespace deltaproof::testing;

sequence_recipe usual(sequence_recipe r) {
  r.regime = key_regime::generic;
  r.decays = decay_kind::none;
  r.initial_state = false;
  r.steps_per_token = 1;
  r.value_dim = r.key_dim;
  r.chunk = 4;
  r.tokens = 8;
  r.step_from = 0;
  r.step_to = 8;
  return r;
}

int run(int argc, char** argv) {
  const bool control = argc > 1 && std::string_view(argv[1]) == "--control";
  const int cases = control ? 20 : 60;
  const auto all = identities<modular>();
  recipe_stream stream(20260);
  for (int i = 0; i < cases; ++i) {
    for (const auto& entry : all) {
      sequence_recipe recipe = draw_recipe(stream, entry.limits);
      if (control) recipe = usual(recipe);
      bool holds = false;
      try {
        holds = entry.holds({}, recipe);
      } catch (const std::exception& e) {
        std::cout << entry.name << " throws: " << e.what() << "\n";
        return 1;
      }
      if (!holds) {
        std::cout << entry.name << " fails on " << recipe << "\n";
        return 1;
      }
    }
  }
  return 0;
}

}  // namespace

int main(int argc, char** argv) { return run(argc, argv); }
