// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
//
// What a kernel holds in its backward pass: one chunk at a time, from the last to the first, then the gradients of a head, then
// those of a group of heads. Rows are rows of k: with several steps a token, q and do have rows of zeros at all but the last.
// The emulator fills it; a planted fault changes it, either what one stage reads (and nobody else) or what it leaves.
#pragma once

#include <cstddef>
#include <optional>
#include <vector>

#include "deltaproof/emulate/emulate_gradients.hpp"
#include "emulate/site.hpp"

namespace deltaproof::emulation_detail {

/// The stages of a backward pass in their order; `start` and those from `cumsum` on happen once a head, `group` and `norm` once a
/// group, `token` and `replay` once a token on the recurrent path.
enum class backward_step {
  start,
  chunk,
  dv_local,
  dv2,
  state,
  dw,
  ds,
  read,
  dA,
  intra,
  wy,
  gate,
  cumsum,
  token,
  replay,
  head,
  group,
  norm
};
/// What `list faults` writes after "before" or "after".
inline constexpr std::string_view backward_step_words[] = {"the cotangents are loaded",
                                                           "the recomputed forward pass of a chunk",
                                                           "dv_local",
                                                           "dv2",
                                                           "dh",
                                                           "dw",
                                                           "dAqk",
                                                           "the gradients of q and k from the state",
                                                           "dAkk",
                                                           "the gradients of q and k inside a chunk",
                                                           "the gradients through w and u",
                                                           "dg_local",
                                                           "dg",
                                                           "the gradients of a token",
                                                           "the state before a token",
                                                           "the gradients of a head",
                                                           "the sums over a group of heads",
                                                           "the gradients through l2norm"};

/// One chunk in progress. Matrices have a row for each row of the chunk unless said otherwise.
template <class Real>
struct backward_chunk {
  std::size_t index = 0, first = 0, rows = 0, full_rows = 0;
  bool last = false;  ///< of the sequence
  matrix<Real> q, k, v, d_o;
  std::vector<Real> step;
  matrix<Real> G;
  matrix<Real> Ai;           ///< rows x rows
  matrix<Real> w, h, v_new;  ///< as this pass multiplies them
  matrix<Real> weights;      ///< P, rows x rows, as dv_local multiplies it
  matrix<Real> d_state;      ///< K x V: dS at the end of the chunk, after stage `state` at its start
  matrix<Real> dv_local;
  matrix<Real> dh;        ///< K x V
  matrix<Real> d_change;  ///< dv2 before it is stored
  matrix<Real> dv2;
  matrix<Real> dw;
  matrix<Real> ds;        ///< rows x rows
  matrix<Real> dq_read;   ///< from the state, decayed and scaled
  matrix<Real> dk_write;  ///< from dS, decayed
  matrix<Real> dA;        ///< rows x rows, strictly lower
  matrix<Real> dq;
  matrix<Real> dk_inside;           ///< dk_write and what the products with q gave, before it is stored
  matrix<Real> dq_gated, dk_gated;  ///< what dg takes of dq and of dk_inside
  matrix<Real> dk_overlap;          ///< dA k, without b
  matrix<Real> dk_overlapped;       ///< dA^T (b k)
  matrix<Real> dk_transform;        ///< Ai^T dw
  matrix<Real> dk;
  matrix<Real> dv;
  std::vector<Real> d_step;
  // Where v_new is made of a residual.
  matrix<Real> read;       ///< k S
  matrix<Real> residual;   ///< v - e^G k S
  matrix<Real> gated;      ///< Ai b_j e^{G_i - G_j}, rows x rows
  matrix<Real> d_read;     ///< -e^G dv, the gradient of k S
  matrix<Real> d_inverse;  ///< of Ai b_j e^{G_i - G_j} times itself: what G gains of it, rows x rows
  matrix<Real> dg;         ///< rows x (0, 1 or K), before the reversed sum
};

/// The backward pass of one head.
template <class Real>
struct backward_site {
  const head_input& in;
  const head_cotangents& d;
  const plan_variant& plan;
  const backward_variant& declared;
  loaded<Real> all;
  matrix<Real> d_o;  ///< T x V
  backward_chunk<Real> now;
  std::optional<backward_chunk<Real>> after;  ///< the chunk after this one in time; kept only where a fault is planted
  std::size_t token = 0;                      ///< on the recurrent path
  matrix<Real> state;                         ///< K x V, likewise
  // Of the whole head.
  matrix<Real> dq;               ///< T x K
  matrix<Real> dk;               ///< T n x K
  matrix<Real> dv;               ///< T n x V
  std::vector<Real> d_step;      ///< T n: of the effective step
  matrix<Real> dg_local;         ///< T n x (0, 1 or K)
  matrix<Real> dg;               ///< T x (0, 1 or K)
  matrix<Real> d_initial_state;  ///< K x V
  std::vector<Real> d_beta;      ///< T n
};

/// dq and dk of the value heads that share q and k.
template <class Real>
struct backward_group {
  const head_input& in;  ///< of the first head
  const plan_variant& plan;
  const backward_variant& declared;
  std::vector<matrix<Real>> dq_heads, dk_heads;
  matrix<Real> q, k;            ///< normalised, in the format in which they were stored
  matrix<Real> dq_hat, dk_hat;  ///< heads added up
  matrix<Real> dq, dk;
};

}  // namespace deltaproof::emulation_detail
