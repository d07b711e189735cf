// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
//
// What the vectorised tiers of the oracle read and give: a lowered head in one or two doubles a number, the selected
// value rows of its answer with a radius for every element, and the coefficients of the certificate that depend on the
// head alone. A value row is a column of the (K, V) state: rows never mix, so any selection of them can be run.
// Source of every coefficient: proofs/notes/oracle-radius.md, "The vectorised tiers"; the letters are its lines.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <new>
#include <utility>
#include <vector>

#include "deltaproof/oracle/lower.hpp"

namespace deltaproof::tiers {

/// Units of the tiers: an error constant of a head in doubles is in units of 2^-53, one in pairs in units of 2^-106.
inline constexpr double fp64_unit = 0x1p-53;
inline constexpr double pair_unit = 0x1p-106;

/// A head whose numbers are unevaluated sums high + low, |low| <= ulp(high)/2. An empty low part stands for zeros;
/// values, initial state and scale are given, so they have none. `error` is in units of 2^-106.
struct double_double_head {
  lowered<double> high;
  std::vector<double> q_low;
  std::vector<double> k_low;
  std::vector<double> step_low;
  std::vector<double> decay_low;
  lowering_error error;
  /// A derived key, query or step is too small for a low part: nothing is known of this head here.
  bool underflowed = false;
};

/// Whole cache lines: a vector of eight that crosses two costs twice. What is allocated is left as it is: a tier writes all of
/// its tables, and a pass that clears them first costs as much as the writing.
template <class T>
struct line_allocator {
  using value_type = T;
  line_allocator() = default;
  template <class U>
  line_allocator(const line_allocator<U>&) noexcept {}
  [[nodiscard]] T* allocate(std::size_t n) { return static_cast<T*>(::operator new(n * sizeof(T), std::align_val_t{64})); }
  void deallocate(T* p, std::size_t) noexcept { ::operator delete(p, std::align_val_t{64}); }
  void construct(T* p) noexcept { ::new (static_cast<void*>(p)) T; }
  template <class... Values>
  void construct(T* p, Values&&... values) {
    ::new (static_cast<void*>(p)) T(std::forward<Values>(values)...);
  }
  friend bool operator==(const line_allocator&, const line_allocator&) = default;
};
using table = std::vector<double, line_allocator<double>>;

/// The answer for selected rows, in panels of eight: whole cache lines, in the order in which they are computed. Row
/// r of the selection at token t is o[panel(t, r, T)], its state entry j final_state[panel(j, r, K)]; rows beyond
/// `rows` are padding.
struct tier_rows {
  std::size_t rows = 0;
  std::size_t tokens = 0;
  table o, o_low;  ///< o_low only from the double-double tier
  /// Radii of o: each on its own, or (where o_radius is empty) from a factor for each token and one for each row and 64
  /// tokens, which costs neither memory nor time.
  table o_radius, query_factor, row_factor;
  table final_state, final_state_low;
  table state_radius;  ///< by row
  table largest_norm;  ///< by row: no exact |S| of it exceeds this at any step
  /// By row: it left the tier's range (magnitudes, NaN); its state and the numbers of the tokens from `valid` on are void.
  std::vector<std::uint8_t> left;
  std::vector<std::size_t> valid;

  [[nodiscard]] static std::size_t panel(std::size_t i, std::size_t row, std::size_t count) {
    return (row / 8 * count + i) * 8 + row % 8;
  }
  [[nodiscard]] double radius(std::size_t t, std::size_t row) const {
    double of_panel[8];
    radii(t, row / 8 * 8, of_panel);
    return of_panel[row % 8];
  }
  /// The radii of the eight rows from `first`, a multiple of 8.
  void radii(std::size_t t, std::size_t first, double (&out)[8]) const {
    const double* at = o.data() + panel(t, first, tokens);
    if (row_factor.empty()) {
      std::copy_n(o_radius.data() + panel(t, first, tokens), 8, out);
      return;
    }
    const double* factor = row_factor.data() + panel(t / 64, first, (tokens + 63) / 64);
    for (std::size_t n = 0; n < 8; ++n) out[n] = (std::fabs(at[n]) * fp64_unit + query_factor[t] * factor[n]) * (1 + 0x1p-46);
  }
  /// Sizes the tables for so many tokens; keeps what memory there is and clears nothing.
  void shape(const sequence<double>& scan, std::size_t count, std::size_t selected, bool pairs, bool by_block = false);
};

/// What the rows of one selection carry from one run of tokens to the next: states and what bounds them.
struct carried_rows {
  table memory;
  std::size_t steps = 0;   ///< run so far
  bool predicted = false;  ///< fp64: what the next pair of steps predicts is in its place
  bool fits = true;        ///< false: a key or a step was out of range, and every row has left
};

/// A head may be run some tokens at a time: so many, a multiple of 64 but for the last ones, and as many of the tokens behind
/// them as are looked at ahead or are left.
inline constexpr std::size_t tokens_ahead = 2;

/// Steps whose coefficients are made at one time, and after which the first tier evaluates the norms anew.
inline constexpr std::size_t block_steps = 64;
/// The same where steps are not paired and the norms are carried by each step.
inline constexpr std::size_t single_refresh = 16;

/// What the certificate needs of the head alone, for the steps [from, from + 64) and their tokens, in units of the
/// tier's u: |e_after| <= rho e + from_norm M_before + from_write |w| + (M_after) + constant.
struct block_coefficients {
  static constexpr std::size_t room = block_steps + 8;
  alignas(64) double step[room];         ///< b; 0 where the key is 0: then nothing happens
  alignas(64) double half_square[room];  ///< a bound on |k|^2 / 2
  alignas(64) double norm[room];         ///< kappa
  alignas(64) double gram[room];         ///< k_r . k_(r-1) for odd r, computed
  alignas(64) double rho[room];
  alignas(64) double from_norm[room];
  alignas(64) double from_write[room];
  alignas(64) double constant[room];
  alignas(64) double query[room];  ///< chi^+ by token, the block's first token at 0; 0 for a zero query
  double decay_largest[room];      ///< max |alpha| by token
  double decay_factor[room];       ///< a of line D by token
  double decay_local = 0;          ///< factor of M_d
  double decay_floor = 0;          ///< factor of M_s
  double read = 0;                 ///< gamma / u + epsilon_q
  double growth = 1;               ///< product of rho
  double from_norms = 0;           ///< sum of from_norm + 1
  double constants = 0;            ///< sum of constant
  bool fits = true;                ///< every key, step, query and decay is 0 or within 2^+-300
};

}  // namespace deltaproof::tiers
