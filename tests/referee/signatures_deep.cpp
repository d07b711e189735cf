// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
//
// The same over presets, regimes and lengths.
#include "referee/signature_cases.hpp"

namespace deltaproof {
namespace {

TEST(signatures, of_faults_as_small_as_rounding_refute_half_of_them_over_presets_and_regimes) {
  testing::refuted_counts counts;
  std::uint64_t seed = 20;
  for (const auto& [name, op] : {std::pair{"fla-chunk-gdn", op_kind::gated_delta_rule},
                                 {"flashqla", op_kind::gated_delta_rule},
                                 {"public-fp32-chunk", op_kind::gated_delta_rule},
                                 {"fla-chunk-delta", op_kind::delta_rule},
                                 {"fla-chunk-kda", op_kind::kda},
                                 {"fla-chunk-gdp", op_kind::gated_delta_product}}) {
    for (const char* const regime : {"typical", "silu", "model-gates", "slow-decay", "tails", "correlated"}) {
      for (const std::size_t tokens : {512U, 1024U}) testing::count_refuted({name, op, regime, tokens}, 3, ++seed, counts);
    }
  }
  testing::expect_half(counts);
}

}  // namespace
}  // namespace deltaproof
