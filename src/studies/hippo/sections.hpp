// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
//
// The sections of the study of exact against bilinear discretisation for a general A, and of the time intervals that the
// continuous view of the delta rule assumes. Tests run them small.
#pragma once

#include <cstddef>
#include <string>

#include "deltaproof/study/study.hpp"

namespace deltaproof::detail::hippo {

struct settings {
  std::size_t size = 16;        ///< n of the n x n matrices
  int smallest_exponent = -20;  ///< steps 2^smallest ... 2^largest
  int largest_exponent = 4;
  std::size_t streams = 32;  ///< random sequences of the intervals
  std::size_t tokens = 200;
  std::size_t key_dim = 8;
};

[[nodiscard]] inline settings settings_for(const run_options& options) {
  settings s;
  if (options.full) {
    s.size = 32;
    s.streams = 400;
    s.tokens = 1000;
  }
  return s;
}

void add_discretisations(const run_options&, const settings&, report&);
void add_rank_one(const run_options&, const settings&, report&);
void add_intervals(const run_options&, const settings&, report&);

/// The sentence of the page, chosen by the values of the findings.
[[nodiscard]] std::string answer(const report&);

}  // namespace deltaproof::detail::hippo
