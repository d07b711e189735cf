// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
//
// The backward pass of one head, compiled for float and double: `adjoint<Real>` takes a forward run and what it kept of its
// chunks, and goes through the stages of [backward] on the chunk path, or token by token. As in machine.hpp every stage reads and
// writes a site and nothing else, so that a planted fault can stand between any two of them.
#pragma once

#include <array>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "emulate/backward_fault.hpp"
#include "emulate/machine.hpp"

namespace deltaproof::emulation_detail {

template <class Real>
class adjoint {
 public:
  /// `forward` has run; `saved` are its chunks, none on the recurrent path.
  adjoint(machine<Real>& forward, std::vector<saved_chunk<Real>> saved, const head_cotangents& d,
          const emulation_options& options, std::span<const tile_order> other_orders);

  backward_site<Real>& run();
  /// Of the chunk path, where the options ask for them; by their names in files.
  std::map<std::string, matrix<double>, std::less<>>& stages() { return stages_; }
  /// T x (0, 1 or K) for each of the other orders; none on the recurrent path.
  const std::vector<matrix<Real>>& dg_in_other_orders() const { return other_dg_; }

 private:
  using chunk = backward_chunk<Real>;

  void run_chunks();
  void run_chunk(saved_chunk<Real> saved, bool kept);
  void run_tokens();
  void finish();

  // Stages of a chunk.
  void take(saved_chunk<Real> from);
  void local_values(chunk& c);
  void value_gradients(chunk& c);
  void state_gradient(chunk& c);
  void transform_gradients(chunk& c);
  void weight_gradients(chunk& c);
  void through_states(chunk& c);
  void overlap_gradients(chunk& c);
  void inside(chunk& c);
  void inside_by_channels(chunk& c);
  void through_residual(chunk& c);
  void inverse_gradients(chunk& c);
  void inside_of_residual(chunk& c);
  void add_dg_of_residual(chunk& c);
  void through_transforms(chunk& c);
  void gate_gradients(chunk& c);
  void add_dg_of_rows(chunk& c);
  void add_dg_of_channels(chunk& c);
  void keep(const chunk& c);
  /// dg_local to dg, from the end of each chunk to its start.
  void cumulate(const matrix<Real>& dg_local, matrix<Real>& dg);
  /// <h, dh> times the decay of the chunk, of the tile or of each of its rows: in the declared order, then in each other one.
  [[nodiscard]] std::vector<std::vector<Real>> decayed_state_sums(const chunk& c, bool by_row);
  /// Adds to the last row of dg what decays over all of the chunk, `at_end` for each order.
  void add_at_end(chunk& c, const std::vector<std::vector<Real>>& at_end);

  // Token by token.
  struct replayed;
  void save_residuals();
  void decay(matrix<Real>& state, std::size_t t, std::span<Real> decays);
  void write(matrix<Real>& state, std::size_t row, std::span<const Real> residual);
  void replay(std::size_t first, std::size_t last, matrix<Real>& state, replayed& to);
  void step_back(std::size_t t, const replayed& from);
  void step_back_row(std::size_t row, const matrix<Real>& before);

  /// a b, both narrowed to [backward] operand.
  [[nodiscard]] matrix<Real> times(matrix<Real> a, matrix<Real> b) {
    return times(std::move(a), std::move(b), site_.declared.operand);
  }
  [[nodiscard]] matrix<Real> times(matrix<Real> a, matrix<Real> b, const narrowing& operand);
  /// c + scale a b, each term added to what the sum is so far; a and b are rounded to `operand` before b is scaled.
  [[nodiscard]] matrix<Real> plus_times(matrix<Real> c, matrix<Real> a, matrix<Real> b, const narrowing& operand, Real scale = 1);
  struct decayed_sum {
    const matrix<Real>* m;
    const matrix<Real>* x;          ///< term by term
    const matrix<Real>* in_blocks;  ///< the same, as a factor of products of blocks
    matrix<Real> out = {};
  };
  /// Two sums that meet the same decays: each exponential is formed once, as kernels form it.
  using decayed_sums = std::array<decayed_sum, 2>;
  struct row_range {
    std::size_t first, last;
  };
  /// out: by rows, row i is the sum over j <= i of m(i, j) x_j e^{G_i - G_j}, channel by channel, m lower; by columns, row j is
  /// that over i >= j of m(i, j) x_i e^{G_i - G_j}.
  void add_decayed(decayed_sums& by_rows, decayed_sums& by_columns, const matrix<Real>& G);
  /// Between blocks of rows, and inside blocks where a reference lies between the rows.
  void add_products(decayed_sums& all, const matrix<Real>& G, bool rows);
  void add_products(decayed_sums& all, const matrix<Real>& G, bool rows, const row_range& to, const row_range& from,
                    const std::vector<Real>& reference);
  /// Inside a block, term by term.
  void add_terms(decayed_sums& by_rows, decayed_sums& by_columns, const matrix<Real>& G, const row_range& block);
  /// Rows of x times e^{G}, or e^{G_C - G}.
  [[nodiscard]] matrix<Real> decayed_to_row(matrix<Real> x, const matrix<Real>& G);
  [[nodiscard]] matrix<Real> gated_keys(const chunk& c);
  [[nodiscard]] matrix<Real> decayed_to_end(matrix<Real> x, const matrix<Real>& G);
  /// What these multiply by. Several stages of a chunk do so, by the same numbers.
  void take_decays(const matrix<Real>& G);
  /// As emulation_options::in_any_order says: `sum` of so many terms is NaN where these may overflow in some order.
  template <class Term>
  void guard(Real& sum, std::size_t terms, const Term& term) const {
    partial_sums partial;
    for (std::size_t j = 0; j < terms; ++j) partial.add(static_cast<double>(term(j)));
    sum = partial.guarded(sum, site_.declared.accumulate);
  }
  /// The sum of each row of x times the row of y. Another build begins each call's sums at a term of its own.
  [[nodiscard]] std::vector<Real> row_sums(const matrix<Real>& x, const matrix<Real>& y);
  /// Another build fuses products with their additions: where two that are equal cancel, one keeps what the other is rounded by.
  void fuse_products(chunk& c);
  /// v_new is made of what is left of v, not of u and w.
  [[nodiscard]] bool by_residual() const { return site_.plan.v_new.form == change_form::residual; }
  [[nodiscard]] narrowing kept() const { return {site_.declared.accumulate, false}; }

  template <class Compute, class Keep>
  void stage(backward_step which, const Compute& compute, const Keep& keep);
  void planted(backward_step which, bool input);
  void store_again(chunk& c);

  machine<Real>& forward_;
  std::vector<saved_chunk<Real>> saved_;
  emulation_options options_;
  philox starts_;  // of sums of rows
  // A plan does not say whether products are added to the cotangent of the state term by term, as the accumulator of a matrix
  // unit is, nor whether dg is summed up row by row or by a parallel scan.
  bool adds_in_place_ = false;
  bool scans_dg_ = false;
  backward_site<Real> site_;
  matrix<Real> residuals_;  // on the recurrent path, a row for each row of k
  struct {
    matrix<Real> of, to_row, to_end;
  } decays_;
  std::vector<tile_order> other_orders_;
  std::vector<std::vector<Real>> other_ends_;  // the last row of dg of a chunk, in each other order
  std::vector<matrix<Real>> other_local_, other_dg_;
  std::map<std::string, matrix<double>, std::less<>> stages_;
};

/// <h, dh> over a tile, or over its columns of V for each row: in the format that is declared.
template <class Real>
[[nodiscard]] std::vector<Real> state_sums(const matrix<Real>& h, const matrix<Real>& dh, const backward_variant& declared,
                                           tile_order order, bool by_row);

/// dq and dk of a group: heads added up, then through the l2norm. `any_order`: as emulation_options::in_any_order.
template <class Real>
void finish_group(backward_group<Real>& g, const fault* planted, bool any_order);

extern template class adjoint<float>;
extern template class adjoint<double>;
extern template void finish_group<float>(backward_group<float>&, const fault*, bool);
extern template void finish_group<double>(backward_group<double>&, const fault*, bool);

}  // namespace deltaproof::emulation_detail
