// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
//
// What a result file may say of how a state was kept or handed on, beside its outputs: the ring of a decode kernel that replays
// its last L tokens into the state at once, and the summaries that ranks exchange when they split a sequence. `invariant flush`
// and `invariant cp` judge them. Shapes (n steps a token, docs/exchange-format.md):
//   ring_k [B,T*n,H,K], ring_u [B,T*n,HV,V], ring_g as g: what the ring held of each token: the key that is written, the vector
//     b (v - k^T S) that is written along it, and the log decay; ring_state [B,windows,HV,K,V]: the state before each window of L
//     tokens, windows begin again with each sequence;
//   rank_transition [N,HV,K,K], rank_state [N,HV,K,V]: of the tokens of this result, S after = rank_transition S before +
//     rank_state.
#pragma once

#include <array>
#include <cstddef>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "deltaproof/files/exchange.hpp"
#include "deltaproof/number/format.hpp"

namespace deltaproof {

inline constexpr std::array<std::string_view, 6> state_exchange_tensors{"ring_k",     "ring_u",          "ring_g",
                                                                        "ring_state", "rank_transition", "rank_state"};
inline constexpr std::array<std::string_view, 4> state_exchange_keys{"flush_every", "fold", "fold_operand", "drop_below"};

/// How the states that ranks start from are made of the summaries before them: one after the other, or by pairs of summaries.
enum class fold_kind { sequential, tree };
inline constexpr detail::kind_names<fold_kind, 2> fold_names{{{fold_kind::sequential, "sequential"}, {fold_kind::tree, "tree"}}};
[[nodiscard]] inline std::string_view name_of(fold_kind fold) { return detail::name_in(fold_names, fold); }
[[nodiscard]] inline fold_kind fold_named(std::string_view name) { return detail::named_in(fold_names, "fold", name); }

struct state_exchange {
  std::map<std::string, tensor, std::less<>> tensors;  ///< by state_exchange_tensors; may be empty
  std::optional<std::size_t> flush_every;              ///< L, in tokens
  fold_kind fold = fold_kind::sequential;              ///< how the initial state of this rank was made
  format fold_operand = fp32;                          ///< what the factors of those products are rounded to
  std::optional<double> drop_below;  ///< a history that the gates of a rank multiply by less than this was left out of the fold

  /// Nothing where the file does not hold it.
  [[nodiscard]] const tensor* find(std::string_view name) const;
};

/// As parse_problem, but initial_state may hold NaN and infinities: of a call that starts from what a server restored, which may
/// be a slot that was never written.
[[nodiscard]] problem parse_restored_problem(const safetensors_file& file, notes_list& notes);
/// Throws: format_error for a value that means nothing, shape_error for a shape that does not fit `p`.
[[nodiscard]] state_exchange parse_state_exchange(const safetensors_file& file, const problem& p);
/// The keys of `x`, for write_result.
[[nodiscard]] safetensors_metadata state_exchange_metadata(const state_exchange& x);

}  // namespace deltaproof
