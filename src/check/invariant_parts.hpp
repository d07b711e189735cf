// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
//
// What the invariants are made of: stretches of rows compared bit for bit, and the verification that one problem is a cut
// of another. Rows count along the first two axes of a tensor, [B, T, ...], from 0.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "deltaproof/check/invariant.hpp"

namespace deltaproof::invariant_detail {

/// Row range of one tensor.
struct rows {
  const tensor* of;
  std::size_t first;
  std::size_t count;

  [[nodiscard]] std::size_t width() const;  ///< elements of a row
  [[nodiscard]] std::span<const std::byte> bytes() const;
};
[[nodiscard]] std::size_t element_bytes(const tensor& t);
/// Index (from the first of `a`) of the first element whose bits differ.
[[nodiscard]] std::optional<std::size_t> first_difference(const rows& a, const rows& b);
/// "0x3f80"
[[nodiscard]] std::string bits_of(const tensor& t, std::size_t flat);

/// Same op, scale, rule, activations, heads, dimensions and formats. Throws: format_error or shape_error naming the key.
void require_same_question(const recorded_run& whole, const recorded_run& part);
/// The same bits of q, k, v, beta and g on `tokens` tokens from `from` and `at`, tokens along the flattened [B, T].
/// Throws: domain_error naming tensor, index and both values.
void require_same_tokens(const recorded_run& whole, std::size_t from, const recorded_run& part, std::size_t at,
                         std::size_t tokens);
/// The same initial state; none is zeros. Throws: as above.
void require_same_state(const recorded_run& whole, std::size_t sequence, const recorded_run& part, std::size_t at);
/// The same do and dfinal_state of two sequences of one length, or neither has them. Throws: format_error, domain_error.
void require_same_cotangents(const recorded_run& whole, std::size_t sequence, const recorded_run& part, std::size_t at);
/// The initial state of each sequence of `part` is the final state `before` left, rounded to nearest where it is narrower.
void require_carried(const recorded_run& before, const recorded_run& part, notes_list& notes);
/// For gradients: do of each part is that of the whole, and its dfinal_state the dinitial_state of the part after it, rounded to
/// nearest where it is narrower; of the last part, the whole's dfinal_state. Throws: format_error, domain_error.
void require_handed_back(const recorded_run& whole, std::span<const recorded_run> parts, notes_list& notes);
/// Steps that cannot change a state: b = 0 or k = 0, and no decay. Throws: domain_error at the first token that may.
void require_padding(const recorded_run& whole, std::size_t first, std::size_t tokens);
/// The same kernel, path and chunk_size, without which nobody promises the same bits. Throws: format_error.
void require_same_kernel(const recorded_run& whole, const recorded_run& part);

/// o of `tokens` tokens, added to `to`. `token`: that of the first, inside its sequence of the whole.
void compare_o(bit_comparison& to, const recorded_run& whole, std::size_t from, const recorded_run& part, std::size_t at,
               std::size_t tokens, std::size_t part_index, std::size_t sequence, std::size_t token);
/// final_state in (K, V) order, added to `to`; nothing is added where one of them has none.
void compare_state(bit_comparison& to, const recorded_run& whole, std::size_t sequence, const recorded_run& part, std::size_t at,
                   std::size_t part_index);

/// The comparisons of o, final_state and each gradient of the whole, in this order, nothing compared yet.
[[nodiscard]] std::vector<bit_comparison> comparisons_of(const recorded_run& whole);
/// All tokens of sequence `sequence` of the whole beside sequence `at` of a part, added to `to`, which comparisons_of made. What
/// one of them lacks is left out.
void compare_sequence(std::vector<bit_comparison>& to, const recorded_run& whole, std::size_t sequence, const recorded_run& part,
                      std::size_t at, std::size_t part_index);

/// o and final_state of parts that follow each other in time, beside the whole's.
[[nodiscard]] std::vector<bit_comparison> compare_in_turn(const recorded_run& whole, std::span<const recorded_run> parts);

/// First token of a sequence along the flattened [B, T].
[[nodiscard]] inline std::size_t flat_token(const problem& p, const sequence_range& s) {
  return s.batch * p.tokens() + s.first_token;
}

/// What check is asked of: `parts` of the parts (0: the whole), as one run.
struct question_to_judge {
  std::string what;
  std::size_t parts;
  bool against_whole;  ///< the problem is the whole's
  recorded_run run;
};

/// Whether a part starts from a state that holds NaN or an infinity, which refutes what restored it; `out` says where. Throws:
/// domain_error where no call of the set left that state: it is an input then.
[[nodiscard]] bool restored_nothing(const recorded_run& whole, std::span<const recorded_run> parts, invariant_report& out);

/// repeat: o, final_state and gradients of each part beside the whole's, bit for bit. Throws: as require_same_question.
void compare_repeats(const recorded_run& whole, std::span<const recorded_run> parts, invariant_report& out);
/// Sequence `at` of a part is sequence `sequence` of the whole.
struct batch_match {
  std::size_t part, at, sequence;
};
/// batch: finds each sequence of the parts in the whole, by its bits, and compares. A reason is given where outputs agree.
/// Throws: domain_error where there is none.
std::vector<batch_match> compare_batches(const recorded_run& whole, std::span<const recorded_run> parts, invariant_report& out);
/// Where gradients of batch differ in bits: each beside the exact one, which no plan is needed for.
void judge_batch_gradients(const recorded_run& whole, std::span<const recorded_run> parts, std::span<const batch_match> matches,
                           const check_options& options, invariant_report& out);
/// As many sequences in both. Throws: shape_error.
void require_sequences(const recorded_run& whole, const recorded_run& part);
/// snapshot and rollback: what each part kept, with the state that the next one starts from, and all of it beside the whole.
/// Throws: shape_error, format_error or domain_error where the parts do not follow each other in the whole.
[[nodiscard]] std::vector<question_to_judge> kept_parts(const recorded_run& whole, std::span<const recorded_run> parts,
                                                        invariant_report& out);
/// Why equal bits of these elements say nothing; empty where they do.
[[nodiscard]] std::string why_vacuous(const bit_comparison& c);
[[nodiscard]] std::string part_name(std::size_t i);

/// ", by up to 0.25", of the differences that are finite; empty where there are none.
[[nodiscard]] std::string by_up_to(const bit_comparison& c);
/// The first difference: "sequence 0, head 1, token 17, element 3: 0x3f80 (1) in the whole, 0x3f81 (1.0078) in part 2"
[[nodiscard]] std::string describe(const bit_comparison& c);

}  // namespace deltaproof::invariant_detail
