// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
//
// The sections of the study of EFLA's coefficient: its relative error in each format, the eigenvalue it leaves, and how
// strongly a step writes under each normalisation of the key. Tests run them small.
#pragma once

#include <cstddef>
#include <string>

#include "deltaproof/study/study.hpp"

namespace deltaproof::detail::efla {

struct settings {
  std::size_t per_octave = 150;  ///< random x in each octave, fp32 and fp64
  std::size_t fp16_stride = 16;  ///< every so many-th significand of beta in fp16
  std::size_t bf16_stride = 1;   ///< the same in bf16; 1: all pairs
  std::size_t pairs = 300;       ///< random (beta, n) in each octave, fp32 and fp64
  std::size_t keys = 4000;       ///< random keys behind each row of the normalisations
};

[[nodiscard]] inline settings settings_for(const run_options& options) {
  settings s;
  if (options.full) {
    s.per_octave = 2000;
    s.fp16_stride = 1;
    s.pairs = 4000;
    s.keys = 50000;
  }
  return s;
}

void add_coefficient(const run_options&, const settings&, report&);
void add_eigenvalue(const run_options&, const settings&, report&);
void add_strength(const run_options&, const settings&, report&);

/// The sentence of the page, chosen by the values of the findings.
[[nodiscard]] std::string answer(const report&);

}  // namespace deltaproof::detail::efla
