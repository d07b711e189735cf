// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
//
// The grid of the study `inverse`: every algorithm in every arithmetic and stored format, for every kind of keys and
// steps and every chunk length, each judged by `judge_inverse`, the function of the program's verb. Apart from the study so
// that tests can run it small.
#pragma once

#include <array>
#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "deltaproof/kernel/inverse_trial.hpp"
#include "deltaproof/study/study.hpp"

namespace deltaproof::detail::inverse {

namespace order {

// Those that form no powers first, then by the rows that powers are summed over.
constexpr std::size_t place(const inverse_method& m) {
  if (m.diagonal != diagonal_kind::neumann) return 0;
  return m.block == 0 ? static_cast<std::size_t>(-1) : m.block;
}

constexpr auto sorted_names() {
  std::array<std::string_view, inverse_methods.size()> names{};
  std::array<std::size_t, inverse_methods.size()> places{};
  for (std::size_t n = 0; n < inverse_methods.size(); ++n) {
    std::size_t at = n;
    for (; at > 0 && places[at - 1] > place(inverse_methods[n].method); --at) {
      names[at] = names[at - 1];
      places[at] = places[at - 1];
    }
    names[at] = inverse_methods[n].name;
    places[at] = place(inverse_methods[n].method);
  }
  return names;
}

}  // namespace order

/// Every named algorithm; those that sum powers last, the longest sums at the end.
inline constexpr auto methods = order::sorted_names();
/// In the order of their correlation.
inline constexpr std::array<std::string_view, 9> key_laws{"gaussian", "silu",       "cos=0.3",   "elu1",       "cos=0.9",
                                                          "cos=0.99", "cos=0.9999", "identical", "alternating"};
/// The first `moderate_steps` stay below or at 1.
inline constexpr std::array<std::string_view, 5> step_laws{"U(0,1)", "0.9", "1", "U(1.9,2)", "2"};
inline constexpr std::size_t moderate_steps = 3;

/// Formats of operands, sums and result.
struct arithmetic_plan {
  format operand, accumulate, store;
};
/// Rows with the operands and sums of the row before share its runs.
inline constexpr std::array<arithmetic_plan, 11> arithmetics{{{fp64, fp64, fp64},
                                                              {fp32, fp32, fp32},
                                                              {fp32, fp32, bf16},
                                                              {tf32, fp32, tf32},
                                                              {tf32, fp32, bf16},
                                                              {fp16, fp32, fp16},
                                                              {fp16, fp32, bf16},
                                                              {fp16, fp16, fp16},
                                                              {fp16, fp16, bf16},
                                                              {bf16, fp32, bf16},
                                                              {bf16, bf16, bf16}}};
/// "fp16/fp32 to bf16": operands, sums where they differ, result where it differs from the operands.
[[nodiscard]] std::string name_of(const arithmetic_plan& a);

struct settings {
  std::vector<std::size_t> chunks;   ///< ascending
  std::vector<std::size_t> samples;  ///< draws for each of them
  std::size_t key_dim = 128;
};
[[nodiscard]] settings settings_for(const run_options& options);

struct outcome {
  bool safe = false;
  bool lucky = false;  ///< in every draw within the limit and within its formats, but not promised
  double predicted = 0;
  double observed = 0;
  double promised_error = 0;  ///< predicted times u of the operand, over the limit
  double observed_error = 0;  ///< observed times the same
  double error = 0;           ///< over the limit
};

struct survey {
  settings size;
  std::vector<outcome> outcomes;      ///< see at()
  std::vector<double> largest_entry;  ///< of the true inverse, for each chunk, keys, steps (of L rounded to fp64)
  bool complete = false;

  [[nodiscard]] const outcome& at(std::size_t chunk, std::size_t keys, std::size_t steps, std::size_t method,
                                  std::size_t arithmetic) const {
    return outcomes[((((chunk * key_laws.size()) + keys) * step_laws.size() + steps) * methods.size() + method) *
                        arithmetics.size() +
                    arithmetic];
  }
  [[nodiscard]] double entry(std::size_t chunk, std::size_t keys, std::size_t steps) const {
    return largest_entry[(chunk * key_laws.size() + keys) * step_laws.size() + steps];
  }
};

[[nodiscard]] survey run_survey(const run_options& options, const settings& size);

/// The views, each from the survey and few small runs of their own.
void add_tables(const survey& s, report& r);
void add_figures(const survey& s, const run_options& options, report& r);
void add_findings(const survey& s, const run_options& options, report& r);

/// How many of the leading key laws are safe with all the steps [0, steps): 0 ... key_laws.size().
[[nodiscard]] std::size_t safe_prefix(const survey& s, std::size_t chunk, std::size_t steps, std::size_t method,
                                      std::size_t arithmetic);

}  // namespace deltaproof::detail::inverse
