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

/// Of pairs on grids (lines G1 to G5), in units of u times the window.
struct grid_lines {
  double keys = 0;
  double root = 0;  ///< sqrt(K) / 16

  /// What a product adds to the low parts, a decay, and what they are on a new grid, in units of the grid; no more than `widest`
  /// before a row.
  static constexpr double of_product = 1.6, of_decay = 0.8, renewed = 0.8, widest = 32;

  [[nodiscard]] double entry(double spread) const { return root * (4 + spread); }
  [[nodiscard]] double decay(double spread) const { return root * (2 + 3 * spread); }
  /// Sums over channels, times the power of two above the key's norm.
  [[nodiscard]] double channels(double spread) const {
    return (20 + (keys + 15) / 16) * (keys / 2 + 16 * root * spread + 1) / 16;
  }
  /// Sums over columns of so many products a lane, times the window of the sum.
  [[nodiscard]] static double columns(double products, double spread) { return 4 * (products / 2 + spread + 1); }
};

struct adjoint_step {
  double key = 0;                                                                ///< kappa
  double key_power = 0;                                                          ///< a power of two above it
  double step_plus = 0;                                                          ///< beta+
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

/// A power of two above x, 0 where that is 0.
[[nodiscard]] double power_above(double x);

struct adjoint_factors {
  std::vector<adjoint_step> steps;
  std::vector<adjoint_token> tokens;
  double u = 0, under = 0;                  ///< line U
  double column_sum = 0, gate_sum = 0;      ///< gamma / u of sums over columns, and over columns and channels
  double decay_local = 0, decay_floor = 0;  ///< times M after and before the decay
  double outer = 0;                         ///< times chi |c|
  grid_lines grid;
  bool fits = true;  ///< keys, steps, queries and decays are 0 or within 2^+-300, values and cotangents below 2^600
};

/// Of doubles that are summed over columns in so many `lanes`.
[[nodiscard]] adjoint_factors factors_of_adjoint(const double_double_head& in, const column_cotangents& with, bool pairs,
                                                 std::size_t lanes);

}  // namespace deltaproof::tiers

// Theorems behind this file, by their names in proofs/README.md.
// proved: float.adjoint_radius.rounded_to_grid, float.adjoint_radius.entry_line, float.adjoint_radius.decay_line,
// proved: float.adjoint_radius.sum_line
