// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
//
// The sections of the study of discretisations: where each rule is stable, how accurate it is and in which sense, what
// values from outside do to the state, and the trial of order against stability. Tests run them small.
#pragma once

#include <cstddef>
#include <string>

#include "deltaproof/study/study.hpp"

namespace deltaproof::detail::discretisation {

struct settings {
  int digits = 60;            ///< of the stability limits
  int largest_degree = 32;    ///< of the Taylor polynomials whose limit is looked for
  std::size_t key_dim = 16;   ///< of the forced states
  std::size_t streams = 400;  ///< independent runs behind a sampled mean
  std::size_t tokens = 2000;  ///< of the runs against an adversary
};

[[nodiscard]] inline settings settings_for(const run_options& options) {
  settings s;
  if (options.full) {
    s.digits = 100;
    s.largest_degree = 48;
    s.streams = 2000;
    s.tokens = 20000;
  }
  return s;
}

void add_limits(const run_options&, const settings&, report&);
void add_orders(const run_options&, const settings&, report&);
void add_forced(const run_options&, const settings&, report&);
/// Reads the findings of the other sections.
void add_trial(const run_options&, const settings&, report&);

/// The sentence of the page, chosen by the values of the findings.
[[nodiscard]] std::string answer(const report&);

}  // namespace deltaproof::detail::discretisation
