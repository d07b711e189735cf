// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
//
// Recomputes the stages of one head of one sequence, chunk by chunk, into tallies: one for each stage and alternative of
// its roundings.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "stages/parts.hpp"
#include "stages/tally.hpp"

namespace deltaproof::stages_detail {

using tallies = std::map<std::string, std::vector<tally>, std::less<>>;

/// What is stored and what of it can be judged.
struct stage_inputs {
  const tensor* cumsum = nullptr;
  const tensor* a = nullptr;
  const tensor* ai = nullptr;
  const tensor* w = nullptr;
  const tensor* u = nullptr;
  const tensor* h = nullptr;
  const tensor* v_new = nullptr;
  const tensor* aqk = nullptr;
  const tensor* o = nullptr;
  std::optional<tensor> final_state;  ///< in (K, V) order

  stage_inputs(const result& r, bool output);
  [[nodiscard]] bool has_state() const { return u != nullptr && w != nullptr; }
  [[nodiscard]] bool has_output() const { return has_state() || (h != nullptr && v_new != nullptr); }
  [[nodiscard]] const tensor* find(std::string_view name) const;
};

/// The alternatives of A and Aqk matter to another stage only where those are not stored.
inline std::size_t gram_choices(bool stored, const stage_roundings& r) { return stored ? 1 : r.gram.size(); }

/// How many v_new and h there are for o to read: one where both are stored or none can be rebuilt.
std::size_t output_states(const stage_inputs& stored, const stage_roundings& roundings);

/// Where one head of one sequence lies in the result.
struct head_place {
  sequence_range sequence;
  std::size_t number = 0;  ///< of the sequence
  std::size_t head = 0;
  std::size_t first_chunk = 0;  ///< in the batch, along NT of h
  std::size_t judged_tokens = 0;
};

/// The alternatives of a stage, in the order of its tallies.
std::vector<std::string> alternative_names(std::string_view stage, const stage_inputs& stored, const stage_roundings& roundings);

/// Under which alternatives of the grams A and Aqk are measured, and under which of the inverses Ai; where A is not stored, of
/// pairs of a gram and an inverse, as `alternative_names` lists them.
struct alternatives {
  std::vector<std::size_t> gram, inverse;
};

/// `out` has the tallies of every stage that can be judged, and one for each whose inputs are not stored.
void measure_head(const problem& p, const stage_inputs& stored, std::size_t chunk_size, const stage_roundings& roundings,
                  const head_place& place, const alternatives& tried, tallies& out);
/// A, Aqk and Ai alone, in so many chunks from the beginning.
void measure_alternatives(const problem& p, const stage_inputs& stored, std::size_t chunk_size, const stage_roundings& roundings,
                          const head_place& place, const alternatives& tried, std::size_t chunks, tallies& out);

}  // namespace deltaproof::stages_detail
