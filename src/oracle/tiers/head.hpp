// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
//
// What the vectorised tiers of the oracle read and give: a lowered head in one or two doubles a number, the selected
// value rows of its answer with a radius for every element, and the coefficients of the certificate that depend on the
// head alone. A value row is a column of the (K, V) state: rows never mix, so any selection of them can be run.
// Source of every coefficient: proofs/notes/oracle-radius.md, "The vectorised tiers"; the letters are its lines.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "deltaproof/oracle/lower.hpp"

namespace deltaproof::tiers {

/// Units of the tiers: an error constant of a head in doubles is in units of 2^-53, one in pairs in units of 2^-106.
inline constexpr double fp64_unit = 0x1p-53;
inline constexpr double pair_unit = 0x1p-106;

/// A head whose numbers are unevaluated sums high + low, |low| <= ulp(high)/2. An empty low part stands for zeros;
/// values, initial state and scale are given, so they have none. `error` is in units of 2^-106.
struct head_of_pairs {
  lowered<double> high;
  std::vector<double> q_low;
  std::vector<double> k_low;
  std::vector<double> step_low;
  std::vector<double> decay_low;
  lowering_error error;
};

/// Row r of a selection is column r of these tables, `stride` apart; what lies beyond `rows` is padding.
struct tier_rows {
  std::size_t rows = 0;
  std::size_t stride = 0;
  std::vector<double> o, o_low, o_radius;           ///< T x stride; o_low only from the pair tier
  std::vector<double> final_state, final_state_low;  ///< K x stride
  std::vector<double> state_radius;                  ///< stride
  std::vector<double> largest_norm;                  ///< stride: no |S| of that row exceeds it at any step
  /// The row left the tier's range (magnitudes, NaN) and all its numbers are void.
  std::vector<std::uint8_t> left;

  /// Sizes the tables; keeps what memory there is and clears nothing.
  void shape(const sequence<double>& scan, std::size_t selected, bool pairs);
};

/// Steps between two exact evaluations of the norms: pairs of steps without decay, single steps, the pair tier.
inline constexpr std::size_t paired_block = 64;
inline constexpr std::size_t single_refresh = 16;
inline constexpr std::size_t pair_tier_block = 64;

/// Coefficients of one step's lines, in units of the tier's u, by step number r = t*n + j.
/// |e_after| <= rho e + from_norm M_before + from_write |w| + M_after + constant.
struct step_coefficients {
  std::vector<double> step;         ///< the step, 0 where the key is 0: then nothing happens
  std::vector<double> half_square;  ///< a bound on |k|^2 / 2
  std::vector<double> norm;         ///< kappa
  std::vector<double> gram;         ///< k_r . k_(r-1) for odd r, computed; 0 where steps are not paired
  std::vector<double> rho;
  std::vector<double> from_norm;
  std::vector<double> from_write;
  std::vector<double> constant;
  std::vector<double> query;        ///< chi^+, by token; 0 for a zero query
  // Decays, by token; empty without a gate.
  std::vector<double> decay_largest;  ///< max |alpha|
  std::vector<double> decay_factor;   ///< a of line D
  double decay_local = 0;             ///< factor of M_d
  double decay_floor = 0;             ///< factor of M_s
  double dot = 0;                     ///< gamma / u
  double read = 0;                    ///< gamma / u + epsilon_q
  bool fits = true;                   ///< every key, step and query is 0 or within 2^+-300
};

}  // namespace deltaproof::tiers
