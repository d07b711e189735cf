// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
//
// One key: a rounded state that stops learning.

#include "studies/horizon/formats.hpp"

namespace deltaproof::detail::horizon {
namespace {

constexpr int value_count = 128;  // the bf16 values of [1, 2): v = 1 + i/128, values of fp16 as well
constexpr int smallest_step = 12;

double ulp(double x, format f) { return power_of_two(std::max(std::ilogb(x), f.emin) - f.precision + 1); }

/// Errors at rest over all v, the largest of |v - S| / (ulp(S) / (2 b)), and the bound: |v - S| <= c S, c = u / b, is
/// (v - S) / v <= c / (1 + c).
frame_row examine(format state, int exponent) {
  const double b = power_of_two(-exponent);
  double smallest = HUGE_VAL, largest = 0, of_bound = 0;
  std::size_t steps = 0;
  for (int i = 0; i < value_count; ++i) {
    const double v = 1 + static_cast<double>(i) / value_count;
    const resting_point p = rest(state, b, v);
    smallest = std::min(smallest, (v - p.state) / v);
    largest = std::max(largest, (v - p.state) / v);
    of_bound = std::max(of_bound, (v - p.state) / (ulp(p.state, state) / (2 * b)));
    steps = std::max(steps, p.steps);
  }
  const double bound = unit_roundoff(state) / (b + unit_roundoff(state));
  return {b, smallest, largest, bound, of_bound, steps, std::max(smallest, 1e-4), std::max(largest, 1e-4)};
}

}  // namespace

void add_rest(const run_options& options, results& r) {
  grid_axis<int> exponents{"exponent", std::vector<int>(smallest_step + 1)};
  std::iota(exponents.quick.begin(), exponents.quick.end(), 0);
  const grid_axis<format> states{"state", {bf16, fp16}};
  frame rows = grid(options, "dead zone", {"b", "smallest", "largest", "bound", "of_bound", "steps", "low", "high"}, &examine,
                    states, exponents);
  for (const char* state : {"bf16", "fp16"}) r.table(std::string("rest-") + state, rows.where("state", state));
  const auto at_rest = rows.finder({"state", "exponent"});
  r.values("dead-zone", evidence::exhaustive(rows.size() * static_cast<std::size_t>(value_count)),
           {{"largest_of_bound", rows.over("of_bound", greatest)},
            {"bf16_b64_smallest", at_rest("bf16", 6, "smallest")},
            {"bf16_b64_largest", at_rest("bf16", 6, "largest")}});
  r.values("rest", {{"values", value_count},
                    {"exponent", smallest_step},
                    {"smallest_b", power_of_two(-smallest_step)},
                    {"small_one_in", 64},
                    {"small_cost", at_rest("bf16", 6, "largest")},
                    {"smaller_one_in", 1024},
                    {"smaller_cost", at_rest("bf16", 10, "largest")}});
  r.table("dead-zone", std::move(rows));
}

}  // namespace deltaproof::detail::horizon
