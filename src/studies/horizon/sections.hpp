// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
//
// The sections of the horizon study: each computes one part of the question and appends its findings, tables and
// figures to the report. `settings` says how large everything is; tests run the same sections small.
#pragma once

#include <cstddef>
#include <string>

#include "deltaproof/study/study.hpp"

namespace deltaproof::detail::horizon {

struct settings {
  std::size_t key_dim = 64;     ///< d, even
  std::size_t tokens = 100000;  ///< horizon of products
  std::size_t format_tokens = 100000;
  std::size_t value_rows = 4;
  std::size_t rounding_streams = 3;  ///< independent runs with stochastic rounding
  std::size_t exponent_tokens = 100000;
};

[[nodiscard]] inline settings settings_for(const run_options& options) {
  settings s;
  if (options.full) {
    s.format_tokens = 1000000;
    s.rounding_streams = 4;
    s.exponent_tokens = 300000;
  }
  return s;
}

void add_growth(const run_options&, const settings&, report&);
void add_exponents(const run_options&, const settings&, report&);
void add_formats(const run_options&, const settings&, report&);
void add_rest(const run_options&, const settings&, report&);
void add_maps(const run_options&, const settings&, report&);

}  // namespace deltaproof::detail::horizon
