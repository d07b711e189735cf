// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
//
// One place of the study `inverse`: every algorithm in every arithmetic and stored format, for one kind of keys, one law of
// steps and one chunk length, each judged by `judge_inverse`, the function of the program's verb.
#pragma once

#include "deltaproof/inverse/inverse_trial.hpp"
#include "studies/shared/common.hpp"

namespace deltaproof::detail::inverse {

/// Every named algorithm; those that sum powers last, the longest sums at the end.
[[nodiscard]] std::vector<std::string> sorted_methods();
[[nodiscard]] inline bool sums_powers(std::string_view method) { return method.starts_with("neumann"); }

/// In the order of their correlation.
inline constexpr std::array<std::string_view, 9> key_laws{"gaussian", "silu",       "cos=0.3",   "elu1",       "cos=0.9",
                                                          "cos=0.99", "cos=0.9999", "identical", "alternating"};
inline constexpr std::array<std::string_view, 5> step_laws{"U(0,1)", "0.9", "1", "U(1.9,2)", "2"};

/// Formats of operands, sums and result.
struct arithmetic_plan {
  std::string_view name;
  format operand, accumulate, store;
};
/// Rows with the operands and sums of the row before share its runs.
inline constexpr std::array<arithmetic_plan, 11> arithmetics{{{"fp64", fp64, fp64, fp64},
                                                              {"fp32", fp32, fp32, fp32},
                                                              {"fp32-bf16", fp32, fp32, bf16},
                                                              {"tf32-fp32", tf32, fp32, tf32},
                                                              {"tf32-fp32-bf16", tf32, fp32, bf16},
                                                              {"fp16-fp32", fp16, fp32, fp16},
                                                              {"fp16-fp32-bf16", fp16, fp32, bf16},
                                                              {"fp16", fp16, fp16, fp16},
                                                              {"fp16-bf16", fp16, fp16, bf16},
                                                              {"bf16-fp32", bf16, fp32, bf16},
                                                              {"bf16", bf16, bf16, bf16}}};

/// A row for each method and arithmetic, the latter fastest. error: over the limit; largest_entry: of the true inverse of L
/// rounded to fp64.
[[nodiscard]] frame judge_all(const inverse_problem&);
inline const std::vector<std::string> judged_columns{"method", "arithmetic", "safe", "observed", "error", "largest_entry"};

}  // namespace deltaproof::detail::inverse
