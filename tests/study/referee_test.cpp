// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT

#include "deltaproof/check/check.hpp"
#include "deltaproof/emulate/emulate.hpp"
#include "deltaproof/emulate/faults.hpp"
#include "deltaproof/inputs/regimes.hpp"
#include "studies/referee/inverses.hpp"
#include "support/study.hpp"

namespace deltaproof {
namespace {

using namespace detail::referee_study;

TEST(referee_study, laws_of_keys_are_what_they_say) {
  for (const key_law& law : key_laws) {
    const problem p = make_problem(law, op_kind::gated_delta_rule, 64, 1);
    const std::vector<double> k = p.k.to_doubles();
    double cosine = 0, squares = 0;
    for (std::size_t i = 0; i < 64; ++i) {
      double own = 0, other = 0, first = 0;
      for (std::size_t c = 0; c < 128; ++c) {
        own += k[i * 128 + c] * k[i * 128 + c];
        first += k[c] * k[c];
        other += k[i * 128 + c] * k[c];
      }
      squares += own / 64;
      cosine += i == 0 ? 0 : other / std::sqrt(own * first) / 63;
    }
    EXPECT_NEAR(std::sqrt(squares), law.name == "one_key" ? 1 : 0.9, 4e-3) << law.name;
    EXPECT_GE(cosine, 0.9) << law.name;
    EXPECT_EQ(p.g->element_format(), fp32);
  }
}

TEST(referee, memory_changes_no_report) {
  generation g;
  g.op = op_kind::gated_delta_rule;
  g.tokens = 40;
  g.key_heads = g.value_heads = 1;
  g.key_dim = g.value_dim = 16;
  const problem p = generate(g);
  check_options plain;
  plain.plans = {plan_named("fla-chunk-gdn")};
  check_options remembering = plain;
  remembering.memory = make_referee_memory();
  const plan_variant v = variants(plain.plans.front(), p, path_kind::chunk, 16).front();
  for (const char* name : {"", "w-beta-missing", "gate-rounded-to-bf16"}) {
    emulation_options how;
    how.stages = true;
    how.planted = *name == '\0' ? nullptr : &fault_named(name);
    result r = emulate(p, v, how);
    r.path = path_kind::chunk;
    r.chunk_size = 16;
    EXPECT_EQ(to_json(check(p, r, plain), {}), to_json(check(p, r, remembering), {})) << name;
  }
}

}  // namespace
}  // namespace deltaproof
