// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
//
// Draws problems to try a kernel on, and makes them smaller: a `case_recipe` is a few words (regime, seed, shapes, steps,
// gates, chunk length), never tensors, so that what fails is one `deltaproof gen` command to send. `draw_case` draws one within
// limits; `simpler` lists what to try next in its place, so that a failing case shrinks. It needs no test framework:
// testing/rapidcheck.hpp makes a generator of it.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "deltaproof/inputs/regimes.hpp"
#include "deltaproof/number/random.hpp"
#include "deltaproof/oracle/problem.hpp"

namespace deltaproof::testing {

/// What cases are drawn from. In each list the first entry counts as the simplest; an empty one takes what the regime has.
struct case_limits {
  std::vector<std::string> regimes = {};  ///< empty: all of them
  std::vector<op_kind> ops = {};
  std::vector<rule_kind> rules = {};
  std::vector<format> dtypes{bf16};
  std::size_t least_tokens = 1;  ///< T; half of the cases lie at a multiple of C or beside it
  std::size_t most_tokens = 256;
  std::size_t most_batch = 1;
  std::size_t most_key_heads = 2;        ///< H
  std::size_t most_group = 2;            ///< HV / H
  std::size_t most_steps_per_token = 1;  ///< n
  std::vector<std::size_t> key_dims{16, 32, 64};
  std::vector<std::size_t> value_dims{16, 32, 64};
  std::vector<std::size_t> chunk_sizes{16, 32, 64};  ///< C, for the kernel
  std::vector<std::string> betas = {};               ///< names in beta_laws() or decimals
  std::optional<std::pair<double, double>> beta_range =
      {};                               ///< a step of the same length throughout from here, where `betas` is empty
  std::vector<std::string> gates = {};  ///< names in gate_laws() or decimals; only for ops with a decay
  std::vector<std::string> initial_states = {};
};

/// A case in words: what complete() completes, and the chunk length to run it with.
struct case_recipe {
  generation wanted;
  std::size_t chunk_size = 0;

  friend bool operator==(const case_recipe&, const case_recipe&) = default;
};

struct problem_case {
  generation made = {};  ///< every field set
  std::size_t chunk_size = 0;
  problem given = {};
};

/// A case within the limits, from all of them at once: no small ones first. Draws of shapes that a regime does not come in
/// are drawn again. Throws: domain_error if a list that must have an entry has none, a least exceeds its most, or nothing
/// fits after many draws, with the last reason.
[[nodiscard]] case_recipe draw_case(philox& random, const case_limits& limits);
/// Cases to try in its place, the boldest first: fewer tokens, heads and channels, an earlier entry of each list, a seed near
/// 0. Each lies within the limits, and following them always ends.
[[nodiscard]] std::vector<case_recipe> simpler(const case_recipe& from, const case_limits& limits);
[[nodiscard]] problem_case make_case(const case_recipe& recipe);

/// "deltaproof gen --regime repeated ... --seed 3 -o case.problem.safetensors".
[[nodiscard]] std::string gen_command(const generation& completed);

}  // namespace deltaproof::testing
