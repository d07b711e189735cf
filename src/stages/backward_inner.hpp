// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
//
// What a chunk of a backward pass gives q, k, beta and the gate, from what the kernel stored of it, with a bound. What it holds
// in registers only (ds, dA, dw of a gate of channels) is known within its roundings.
#pragma once

#include <optional>

#include "stages/parts.hpp"

namespace deltaproof::stages_detail {

/// Rows of one chunk; states are K x V.
struct chunk_given {
  balls q, k, v, step, d_o;
  balls h, dh, v_new, dv2;
  balls Ai;                 ///< rows x rows
  std::optional<balls> dw;  ///< as stored; nothing: made of dv2 and h
  std::optional<balls> ds;  ///< dAqk as stored, likewise
};

struct chunk_gradients {
  balls dA;          ///< rows x rows, below the diagonal; with its decay where the gate is one number
  balls dq, dk;      ///< of this head, in the formats of [backward] dq and dk; dq has a row for each row of k
  balls d_step, dg;  ///< dg before its reversed sum
};

/// dq and dA alone need fewer tensors than the rest.
class chunk_backward {
 public:
  chunk_backward(const problem& p, const plan_variant& v, const arithmetic_errors& errors, chunk_decays& decays,
                 const chunk_given& given);

  [[nodiscard]] balls queries() const;  ///< dq
  [[nodiscard]] balls inverse() const;  ///< dA
  [[nodiscard]] chunk_gradients all(const balls& dA) const;

 private:
  [[nodiscard]] balls times(const balls& a, const balls& b, const narrowing& operand, std::size_t more = 0) const;
  [[nodiscard]] balls times_two(const balls& a, const balls& b, const balls& c, const balls& d, const narrowing& operand) const;
  [[nodiscard]] balls decayed(const balls& x, bool to_end) const;
  [[nodiscard]] balls scaled_by_step(const balls& x) const;
  [[nodiscard]] balls gated_keys() const;
  /// Row i: the sum of m(i, j) x_j e^{G_i - G_j} over j <= i, channel by channel; or that of column i over rows j >= i.
  /// in_blocks: x where it is a factor of a product of blocks.
  [[nodiscard]] balls by_channels(const balls& m, const balls& x, const balls& in_blocks, bool rows) const;
  [[nodiscard]] balls inside(const balls& m, const balls& x, bool rows) const;
  [[nodiscard]] ball product_of(ball x, ball y) const;
  [[nodiscard]] ball sum_of(std::initializer_list<ball> terms) const;
  [[nodiscard]] ball row_sum(const balls& x, const balls& y, std::size_t row) const;
  [[nodiscard]] ball whole_key(ball inner, ball rest) const;
  [[nodiscard]] ball state_sum(std::size_t first, std::size_t last) const;
  void add_gates(const balls& dA, const balls& dq_gated, const balls& dk_gated, const balls& dk_overlap,
                 const balls& dk_overlapped, const balls& dk_transform, balls& dg) const;

  const problem& p_;
  const plan_variant& v_;
  const backward_variant& b_;
  const arithmetic_errors& errors_;
  chunk_decays& decays_;
  const chunk_given& at_;
  std::size_t rows_;
  bool gated_, channels_;
  double u_;
  balls ds_, dw_, dq_read_, dk_write_;
};

}  // namespace deltaproof::stages_detail
