// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
//
// Faults as small as rounding are refuted by the roundings that they draw anew.
#include "referee/signature_cases.hpp"

namespace deltaproof {
namespace {

TEST(signatures, of_faults_as_small_as_rounding_refute_them_by_the_outputs_alone) {
  testing::refuted_counts counts;
  testing::count_refuted({"fla-chunk-gdn", op_kind::gated_delta_rule, "typical", 512}, 2, 11, counts);
  testing::count_refuted({"fla-chunk-kda", op_kind::kda, "typical", 512}, 2, 11, counts);
  testing::expect_half(counts);
}

}  // namespace
}  // namespace deltaproof
