// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
//
// What the radius of gradients by columns needs of a head alone: the coefficients of its lines for each step and each token, in
// units of u. Source: proofs/notes/oracle-radius.md, "Gradients by columns".
#pragma once

#include <cstddef>
#include <vector>

#include "oracle/tiers/adjoint_columns.hpp"

namespace deltaproof::tiers {

/// A sum over channels is made of sums of so many.
inline constexpr std::size_t sum_chunk = 16;

struct adjoint_step {
  double key = 0;                                                                ///< kappa
  double predicted = 0, key_plus = 0;                                            ///< of k^T S, times M and e
  double write_norm = 0, write_size = 0, write_innovation = 0, write_error = 0;  ///< of the write, times M, |w|, |r| and e
  double rho = 1, from_norm = 0, from_write = 0, from_innovation = 0;            ///< of the state, times e, M, |w| and |r|
  double norm_growth = 1, norm_of_value = 0;                                     ///< of M, times M and |v|
  double under = 0;                                                              ///< line U
  bool acts = false;                                                             ///< the step can write
};

struct adjoint_token {
  double query = 0;                            ///< chi
  double decay_largest = 1, decay_factor = 1;  ///< max |alpha|, a of line D
};

struct adjoint_factors {
  std::vector<adjoint_step> steps;
  std::vector<adjoint_token> tokens;
  double u = 0, under = 0;                  ///< line U
  double column_sum = 0, gate_sum = 0;      ///< gamma / u of sums over columns, and over columns and channels
  double decay_local = 0, decay_floor = 0;  ///< times M after and before the decay
  double outer = 0;                         ///< times chi |c|
  bool fits = true;  ///< keys, steps, queries and decays are 0 or within 2^+-300, values and cotangents below 2^600
};

[[nodiscard]] adjoint_factors factors_of_adjoint(const double_double_head& in, const column_cotangents& with, bool pairs);

}  // namespace deltaproof::tiers
