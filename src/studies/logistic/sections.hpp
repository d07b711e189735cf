// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
//
// The sections of the study of the logistic analogy: the constants of period doubling, chaos and what number formats make
// of it, the exact flow, and where the likeness to the delta rule ends. Tests run them small.
#pragma once

#include <cstddef>
#include <string>

#include "deltaproof/study/study.hpp"

namespace deltaproof::detail::logistic {

struct settings {
  std::size_t terms = 60;           ///< of g in the functional equation
  std::size_t doublings = 36;       ///< of the family, for the accumulation point
  std::size_t superstable = 16;     ///< last n of R_n
  std::size_t doubling_points = 8;  ///< r_1 ... r_n
  std::size_t starts = 200;         ///< of the decorrelation
  std::size_t exponent_steps = 20000;
  std::size_t exponent_streams = 32;
  std::size_t sweep = 600;  ///< parameters of the bifurcation diagram
};

[[nodiscard]] inline settings settings_for(const run_options& options) {
  settings s;
  if (options.full) {
    s.terms = 120;
    s.doublings = 70;
    s.superstable = 19;
    s.doubling_points = 10;
    s.starts = 2000;
    s.exponent_steps = 200000;
  }
  return s;
}

void add_constants(const run_options&, const settings&, report&);
void add_chaos(const run_options&, const settings&, report&);
void add_cycles(const run_options&, const settings&, report&);
void add_flow(const run_options&, const settings&, report&);
void add_analogy(const run_options&, const settings&, report&);

/// The sentence of the page, chosen by the values of the findings.
[[nodiscard]] std::string answer(const report&);

}  // namespace deltaproof::detail::logistic
