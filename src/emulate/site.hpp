// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
//
// What a kernel holds while it works on one head: the whole sequence as loaded, and the chunk (or token) at hand, stage by
// stage. The emulator fills it; a planted fault changes it, either what one stage reads (and nobody else) or what it leaves.
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "deltaproof/emulate/emulate.hpp"
#include "deltaproof/number/random.hpp"
#include "emulate/products.hpp"

namespace deltaproof::emulation_detail {

using emulation::exp2_all;
using emulation::multiply;
using emulation::narrow;
using emulation::narrowed;
using emulation::product;
using emulation::sum_rule;

/// The stages of a run in their order; `load` and `finish` happen once a sequence.
enum class step_kind { load, gate, A, Ai, w, u, v_new, Aqk, output, update, finish, token };
/// What `list faults` writes after "before" or "after".
inline constexpr std::string_view step_words[] = {
    "the inputs are loaded",    "g_cumsum_log2", "A", "Ai", "w", "u", "v_new", "Aqk", "o", "the update of the state",
    "the results are complete", "a token"};

/// What a sequence is after it was loaded: normalised, activated, in the formats the plan says.
template <class Real>
struct loaded {
  std::size_t steps_per_token = 1;
  bool channels = false;
  bool gated = false;
  matrix<Real> q, k, v;    ///< T, T n, T n rows
  std::vector<Real> step;  ///< b, T n
  matrix<Real> g;          ///< T x (0, 1, K), natural logarithm
  Real scale = 1;
};

/// One chunk in progress. Matrices have a row for each row of the chunk unless said otherwise.
template <class Real>
struct chunk_state {
  std::size_t index = 0;  ///< of the chunk
  std::size_t first = 0;  ///< its first row of k
  std::size_t rows = 0;
  std::size_t full_rows = 0;  ///< C
  bool last = false;
  matrix<Real> k, v;
  std::vector<Real> step;
  matrix<Real> G;  ///< chunk-local inclusive sum of log2 decays; no columns without gate
  matrix<Real> A;  ///< rows x C, as Ai
  matrix<Real> Ai;
  matrix<Real> key_operand, value_operand;  ///< b e^G k and b v as they enter the product with Ai
  matrix<Real> w, u;
  matrix<Real> state;       ///< K x V, before the chunk; after it once `update` is done
  matrix<Real> h;           ///< K x V
  matrix<Real> read_state;  ///< what the read-out multiplies of it: h, or the state before it was stored
  matrix<Real> change;      ///< v_new before it is stored
  matrix<Real> v_new;
  // The read-out: of the tokens that end in this span of chunks, which is one chunk unless a token has several steps.
  std::size_t span_first = 0;  ///< row of k
  matrix<Real> span_k;         ///< rows from span_first on
  matrix<Real> span_v_new;
  matrix<Real> span_G;                ///< sum of log2 decays from span_first on, a row for each row of span_k
  matrix<Real> span_h;                ///< state before the span, as the read-out multiplies it
  matrix<Real> q;                     ///< a row for each token of the span
  std::vector<std::size_t> last_row;  ///< of each token, counted from span_first
  matrix<Real> Aqk;                   ///< tokens x span rows
  matrix<Real> o;                     ///< tokens x V
};

/// Part of an inverse when it is finished, before other parts are made of it: a row of a diagonal block (of `cols` rows), a
/// diagonal block, a merged block.
struct inverse_part {
  std::size_t row, col, rows, cols;
};

/// The run of one head.
template <class Real>
struct site {
  const head_input& in;
  const plan_variant& plan;
  const plan_variant& promised;  ///< the plan without what a planted fault changes in it
  loaded<Real> all;
  chunk_state<Real> now;
  std::optional<chunk_state<Real>> before;     ///< the chunk before this one; kept only where a fault is planted
  matrix<Real> o;                              ///< T x V
  std::size_t token = 0;                       ///< on the recurrent path
  bool (*cut)(const inverse_part&) = nullptr;  ///< set by a fault: these parts are rounded to bf16
};

/// What the backward pass reads of a chunk of the forward pass, saved or computed again: the same bits.
template <class Real>
struct saved_chunk {
  std::size_t index = 0, first = 0, rows = 0;
  matrix<Real> k, v;
  std::vector<Real> step;
  matrix<Real> G;
  matrix<Real> Ai;     ///< rows x C
  matrix<Real> w;      ///< as stored
  matrix<Real> h;      ///< K x V, the state before the chunk as it was stored
  matrix<Real> state;  ///< the same before it was stored
  matrix<Real> v_new;  ///< as stored
  matrix<Real> change;
  matrix<Real> weights;  ///< of a gate of channels and one step a token Aqk, rows x columns; else empty
};

}  // namespace deltaproof::emulation_detail
