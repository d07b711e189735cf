// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
//
// What the exact values are known to, of a statistic: of what it reads. One element of 1e37 is known to 1e21, and that says
// nothing of values of 0.1 elsewhere.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "deltaproof/check/check.hpp"
#include "deltaproof/emulate/emulate_gradients.hpp"
#include "deltaproof/inputs/regimes.hpp"

namespace deltaproof {
namespace {

void set_one(tensor& t, std::size_t at, double to) {
  std::vector<double> values = t.to_doubles();
  values[at] = to;
  t = tensor::from_doubles(t.element_format(), t.shape(), values, t.name());
}

problem drawn() {
  generation g;
  g.op = op_kind::gated_delta_rule;
  g.tokens = 256;
  g.key_dim = g.value_dim = 16;
  g.key_heads = g.value_heads = 2;
  g.initial_state = "normal";
  g.cotangents = true;
  return generate(g);
}

/// The smallest limit of a tensor.
double least_limit(const check_report& report, const std::string& tensor) {
  double least = 1e300;
  for (const judged_statistic& s : report.conformance->statistics) {
    if (s.tensor == tensor) least = std::min(least, s.limit.value);
  }
  return least;
}

TEST(floors, are_of_what_a_statistic_reads) {
  const plan declared = plan_named("fla-chunk-gdn");
  for (const bool gradients : {false, true}) {
    problem p = drawn();
    // The last token of head 1 writes it; or the first of both heads is given it back, and only what came before it has a part.
    if (gradients) {
      set_one(*p.d_o, 5, 0x1p110);
    } else {
      set_one(p.v, 256 * 2 * 16 - 3, 0x1p110);
    }
    result r = emulate_gradients(p, gradient_variants(declared, p, path_kind::chunk, 64).front(), {}, 1);
    if (!gradients) r.gradients.clear();
    check_options how;
    how.plans = {declared};
    how.judge.power = false;
    const check_report report = check(p, r, how);
    // Nothing is wrong; but beside an element of 1e33 what else lies in its range could be zeros. Of the outputs tiles are
    // judged.
    EXPECT_EQ(report.judged, gradients ? verdict::vacuous : verdict::holds) << report.reason;
    const bool says_so = report.reason.find("a kernel that writes only zeros would pass for 12.5 %") != std::string::npos;
    EXPECT_EQ(says_so, gradients) << report.reason;
    for (const char* tensor : {"o", "final_state"}) EXPECT_LT(least_limit(report, tensor), 0.1) << tensor;
    for (const auto& [name, t] : r.gradients) EXPECT_LT(least_limit(report, name), 0.5) << name;
  }
}

}  // namespace
}  // namespace deltaproof
