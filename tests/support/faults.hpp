// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
//
// The catalogue of planted faults for the forms of the delta rule in a ring: a misprint, a bound off by one, a factor
// forgotten, each in one place of faulty.hpp's implementation. A test of identities is worth as much as the faults it
// finds.
#pragma once

#include <array>
#include <cstddef>
#include <string_view>

namespace deltaproof::testing {

enum class fault {
  none,
  // the token recurrence
  recurrence_gate_after,
  recurrence_gate_each_step,
  recurrence_predicts_undecayed,
  recurrence_beta_twice,
  recurrence_reads_early,
  recurrence_ignores_start,
  recurrence_error_squared,
  // the WY recursion
  wy_overlap_of_w,
  wy_wrong_index,
  wy_beta_on_first_term,
  wy_reversed,
  wy_transition_turned,
  wy_start_ignored,
  // the gate, in WY and chunk form
  gate_after,
  gate_each_step,
  gate_of_neighbour,
  gate_first_channel,
  ratio_off_by_one,
  ratio_by_quotient,
  boundary_drops_decay,
  boundary_repeats_decay,
  zero_key_skips_decay,
  // A and Aqk
  a_mask_inclusive,
  a_beta_twice,
  a_beta_of_column,
  a_without_beta,
  a_undecayed,
  a_equal_keys_are_unit,
  aqk_mask_strict,
  aqk_mask_future,
  aqk_undecayed,
  query_of_row,
  // UT
  u_without_beta,
  w_without_beta,
  u_beta_twice,
  w_undecayed_key,
  w_u_of_wrong_chunk_row,
  // chunk state and output
  v_for_u,
  v_new_sign,
  v_new_ignores_state,
  h_after_chunk,
  state_not_carried,
  start_ignored,
  o_undecayed,
  o_from_u,
  o_before_last_step,
  o_from_next_state,
  state_not_decayed,
  state_keys_undecayed,
  state_from_u,
  state_misses_last_row,
  state_transposed,
  tail_decay_at_full_row,
  tail_dropped,
  state_key_of_query,
  o_adds_value,
  o_channels_of_value,
  v_new_error_squared,
  // inverses
  forward_stops_early,
  forward_sign,
  doubling_forgets_sum,
  doubling_power_not_squared,
  doubling_power_late,
  doubling_sum_squared,
  doubling_positive,
  doubling_truncated,
  block_missing_term,
  block_without_diagonal,
  block_sides_swapped,
  merge_sign,
  ragged_block_dropped,
};

struct planted_fault {
  fault id;
  std::string_view name;
  std::string_view stage;
  std::string_view what;
};

inline constexpr std::array planted_faults{
    planted_fault{fault::recurrence_gate_after, "gate_after_step", "recurrence", "the state is decayed after the steps of a token"},
    planted_fault{fault::recurrence_gate_each_step, "gate_each_step", "recurrence", "a token's decay acts before each of its steps"},
    planted_fault{fault::recurrence_predicts_undecayed, "predicts_undecayed", "recurrence", "k^T S of the state before its decay"},
    planted_fault{fault::recurrence_beta_twice, "beta_twice", "recurrence", "b on the prediction and on the write"},
    planted_fault{fault::recurrence_reads_early, "reads_early", "recurrence", "o is read before the last step of a token"},
    planted_fault{fault::recurrence_ignores_start, "start_ignored", "recurrence", "starts from zeros"},
    planted_fault{fault::recurrence_error_squared, "error_squared", "recurrence", "b (v - k^T S)^2: the loss for its gradient"},
    planted_fault{fault::wy_overlap_of_w, "w_for_k", "wy", "<w_i, k_r> in place of <k_i, k_r>"},
    planted_fault{fault::wy_wrong_index, "wrong_index", "wy", "<k_(r-1), k_r> in every term"},
    planted_fault{fault::wy_beta_on_first_term, "beta_on_first_term", "wy", "b k_r - sum: b misses the sum"},
    planted_fault{fault::wy_reversed, "reversed_product", "wy", "factors multiplied from the other side"},
    planted_fault{fault::wy_transition_turned, "transition_turned", "wy", "sum of k w^T in place of w k^T"},
    planted_fault{fault::wy_start_ignored, "start_ignored", "wy", "the run is applied to zeros"},
    planted_fault{fault::gate_after, "gate_after", "gate", "the decay of row r acts after it: [j, r) for (j, r]"},
    planted_fault{fault::gate_each_step, "gate_each_step", "gate", "the decay of a token acts before each of its rows"},
    planted_fault{fault::gate_of_neighbour, "gate_of_neighbour", "gate", "decay of token t - 1"},
    planted_fault{fault::gate_first_channel, "gate_first_channel", "gate", "channel 0's decay for all channels"},
    planted_fault{fault::ratio_off_by_one, "ratio_off_by_one", "gate", "product over (j + 1, r]"},
    planted_fault{fault::ratio_by_quotient, "ratio_by_quotient", "gate", "D_r / D_j, and 0 where D_j = 0"},
    planted_fault{fault::boundary_drops_decay, "boundary_drops_decay", "gate", "the first row of a chunk has no decay"},
    planted_fault{fault::boundary_repeats_decay, "boundary_repeats_decay", "gate", "a chunk that begins inside a token decays again"},
    planted_fault{fault::zero_key_skips_decay, "zero_key_skips_decay", "gate", "a row whose key is zero is skipped, decay and all"},
    planted_fault{fault::a_mask_inclusive, "mask_inclusive", "A", "j <= r for j < r"},
    planted_fault{fault::a_beta_twice, "beta_twice", "A", "b_r^2"},
    planted_fault{fault::a_beta_of_column, "beta_of_column", "A", "b_j for b_r"},
    planted_fault{fault::a_without_beta, "without_beta", "A", "b_r is missing"},
    planted_fault{fault::a_undecayed, "undecayed", "A", "<k_r, k_j> without its decay"},
    planted_fault{fault::a_equal_keys_are_unit, "equal_keys_are_unit", "A", "<k, k> taken as 1"},
    planted_fault{fault::aqk_mask_strict, "mask_strict", "Aqk", "j < r for j <= r"},
    planted_fault{fault::aqk_mask_future, "mask_future", "Aqk", "j <= r + 1 for j <= r"},
    planted_fault{fault::aqk_undecayed, "undecayed", "Aqk", "<q, k_j> without its decay"},
    planted_fault{fault::query_of_row, "query_of_row", "Aqk", "query r for query r / n"},
    planted_fault{fault::u_without_beta, "without_beta", "u", "T = (I + L)^-1 for values"},
    planted_fault{fault::w_without_beta, "without_beta", "w", "T = (I + L)^-1 for keys"},
    planted_fault{fault::u_beta_twice, "beta_twice", "u", "b_r^2 v_r"},
    planted_fault{fault::w_undecayed_key, "undecayed_key", "w", "k_r for D_r k_r"},
    planted_fault{fault::w_u_of_wrong_chunk_row, "row_of_first_chunk", "u", "later chunks take the values of the first"},
    planted_fault{fault::v_for_u, "v_for_u", "v_new", "v - w h"},
    planted_fault{fault::v_new_sign, "sign", "v_new", "u + w h"},
    planted_fault{fault::v_new_ignores_state, "ignores_state", "v_new", "u"},
    planted_fault{fault::h_after_chunk, "after_chunk", "h", "the state after the chunk is stored"},
    planted_fault{fault::state_not_carried, "not_carried", "h", "every chunk starts from S_0"},
    planted_fault{fault::start_ignored, "start_ignored", "h", "starts from zeros"},
    planted_fault{fault::o_undecayed, "undecayed", "o", "q reads h without D_r"},
    planted_fault{fault::o_from_u, "from_u", "o", "Aqk u for Aqk v_new"},
    planted_fault{fault::o_before_last_step, "before_last_step", "o", "the last step of a token is not seen"},
    planted_fault{fault::o_from_next_state, "from_next_state", "o", "q reads the state after the chunk"},
    planted_fault{fault::state_not_decayed, "not_decayed", "state", "S + .. for D S + .."},
    planted_fault{fault::state_keys_undecayed, "keys_undecayed", "state", "k_j for D_(j, R] k_j"},
    planted_fault{fault::state_from_u, "from_u", "state", "u for v_new"},
    planted_fault{fault::state_misses_last_row, "misses_last_row", "state", "sum over j < R - 1"},
    planted_fault{fault::state_transposed, "transposed", "state", "handed out as (V, K)"},
    planted_fault{fault::tail_decay_at_full_row, "tail_decay_at_full_row", "state",
                  "a short chunk takes its decay at row C - 1, which is padding"},
    planted_fault{fault::tail_dropped, "tail_dropped", "state", "a short chunk writes nothing"},
    planted_fault{fault::state_key_of_query, "key_of_query", "state", "q for k at the last row of a token"},
    planted_fault{fault::o_adds_value, "adds_value", "o", "o + v: a residual connection left in"},
    planted_fault{fault::o_channels_of_value, "channels_of_value", "o", "q and h multiplied over V channels, not K"},
    planted_fault{fault::v_new_error_squared, "error_squared", "v_new", "(u - w h)^2"},
    planted_fault{fault::forward_stops_early, "stops_early", "forward", "sum over m < i - 1"},
    planted_fault{fault::forward_sign, "sign", "forward", "-L_ij + sum"},
    planted_fault{fault::doubling_forgets_sum, "forgets_sum", "neumann", "S_{j+1} = I + G_j: the misprint S_{j+1} = S_{j+1} (I + G_j)"},
    planted_fault{fault::doubling_power_not_squared, "power_not_squared", "neumann", "G_{j+1} = G_j"},
    planted_fault{fault::doubling_power_late, "power_late", "neumann", "S_{j+1} = S_j (I + G_{j-1})"},
    planted_fault{fault::doubling_sum_squared, "sum_squared", "neumann", "S_{j+1} = S_j S_j"},
    planted_fault{fault::doubling_positive, "positive", "neumann", "G_0 = L"},
    planted_fault{fault::doubling_truncated, "truncated", "neumann", "one doubling too few"},
    planted_fault{fault::block_missing_term, "missing_term", "block", "sum over j < m < i"},
    planted_fault{fault::block_without_diagonal, "without_diagonal", "block", "-sum for -X_ii sum"},
    planted_fault{fault::block_sides_swapped, "sides_swapped", "block", "-sum X_ii"},
    planted_fault{fault::merge_sign, "sign", "block", "+X_ii sum"},
    planted_fault{fault::ragged_block_dropped, "ragged_block_dropped", "block", "a last block that is shorter is not joined"},
};

}  // namespace deltaproof::testing
