// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
//
// Faults that change an error's size by a few percent at most, so that no norm tells them from rounding: `count_refuted` judges
// results with each of them by o and final_state alone, and correct results of the same problem beside them.
#pragma once

#include <gtest/gtest.h>

#include <array>
#include <cstdio>
#include <map>
#include <string>
#include <string_view>

#include "deltaproof/check/check.hpp"
#include "deltaproof/emulate/emulate.hpp"
#include "deltaproof/inputs/regimes.hpp"

namespace deltaproof::testing {

/// A row, a block or the diagonal inside the inverse in fewer bits, wrong keys in one block, gates rounded before their sum.
inline constexpr std::array<std::string_view, 9> seen_by_signature{
    "inverse-row-in-bf16", "inverse-block-in-bf16", "inverse-diagonal-in-bf16", "inverse-bf16-between-steps", "inverse-in-tf32",
    "inverse-in-x",        "A-block-of-wrong-keys", "gate-rounded-to-bf16",     "gate-rounded-to-fp16"};

struct refuted_count {
  std::size_t refuted = 0, results = 0;
};
using refuted_counts = std::map<std::string_view, refuted_count>;

struct signature_case {
  const char* plan;
  op_kind op;
  const char* regime;
  std::size_t tokens;
};

/// Other builds of variant after variant, each with every fault. A fault that changes no bit of a result is not counted.
inline void count_refuted(const signature_case& c, std::size_t results, std::uint64_t seed, refuted_counts& to) {
  generation g;
  g.regime = c.regime;
  g.op = c.op;
  g.tokens = c.tokens;
  g.key_dim = g.value_dim = 64;
  g.key_heads = g.value_heads = 1;
  g.seed = seed;
  const problem p = generate(g);
  const plan declared = plan_named(c.plan);
  const auto all = variants(declared, p, path_kind::chunk, 64);
  check_options options;
  options.plans = {declared};
  options.threads = 1;
  options.memory = make_referee_memory();
  for (std::size_t i = 0; i < results; ++i) {
    const auto run = [&](const fault* planted) {
      emulation_options how;
      how.noise_ulps = 1;
      how.seed = 1000 * seed + i;
      how.planted = planted;
      return emulate(p, all[i % all.size()], how, 1);
    };
    const result correct = run(nullptr);
    const check_report right = check(p, correct, options);
    EXPECT_EQ(right.judged, verdict::holds) << c.plan << ", " << c.regime << ", result " << i << ": " << right.reason;
    for (const std::string_view name : seen_by_signature) {
      const fault& planted = fault_named(name);
      if (!applies(planted, p, path_kind::chunk)) continue;
      const result wrong = run(&planted);
      if (same_bits(wrong.o, correct.o) && same_bits(*wrong.final_state, *correct.final_state)) continue;
      refuted_count& count = to[name];
      ++count.results;
      count.refuted += check(p, wrong, options).judged == verdict::refuted ? 1 : 0;
    }
  }
}

inline void expect_half(const refuted_counts& counts) {
  for (const std::string_view name : seen_by_signature) {
    const auto at = counts.find(name);
    ASSERT_NE(at, counts.end()) << name;
    std::printf("%s: %zu of %zu refuted\n", std::string(name).c_str(), at->second.refuted, at->second.results);
    EXPECT_GE(2 * at->second.refuted, at->second.results) << name;
  }
}

}  // namespace deltaproof::testing
