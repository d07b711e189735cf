// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
//
// Judges results of one kernel against each other: `check_invariant(kind, whole, parts)` asks whether a kernel that is
// given a question in another cut gives the same answer. prefix, pad and repeat ask for the same bits; the others ask that every
// result is within its plan's budget of one oracle, and report whether the bits agree (batch: the same bits suffice). That the
// parts are cuts of the whole is verified bit for bit first. Sequence s of a part belongs to sequence s of the whole,
// packed or not (varlen: part s to sequence s). It exists because causality, carried states, padding and packing are
// broken in ways that no single result shows.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "deltaproof/check/check.hpp"
#include "deltaproof/check/gradient_identities.hpp"
#include "deltaproof/files/exchange.hpp"
#include "deltaproof/files/state_exchange.hpp"

namespace deltaproof {

/// prefix: a part is the first tokens of each sequence. pad: the whole is a part followed by tokens that cannot change the
/// state. split: the parts follow each other in time. varlen: part s is sequence s of a packed whole, alone. chunk_size:
/// the same problem in chunks of another length. path: the same problem on another path, chunk or recurrent. repeat: the same
/// call again. batch: each sequence of a part is one of the whole's, alone, at another index or beside others. snapshot: as
/// split, but the state that a part starts from is judged, whatever the part before it left: it was stored and restored.
/// rollback: as snapshot, but a part may go on with drafted tokens that the next one does not accept. flush: the whole is plain
/// decode, a part the same problem by a kernel that keeps the last L tokens in a ring and replays them into the state every L.
/// cp: the parts are the ranks of a split sequence, each with its summary. gradients: no parts, the whole beside the equations
/// that every correct gradient satisfies (gradient_identities.hpp).
enum class invariant_kind {
  prefix,
  split,
  pad,
  varlen,
  chunk_size,
  path,
  repeat,
  batch,
  snapshot,
  rollback,
  flush,
  cp,
  gradients
};
inline constexpr detail::kind_names<invariant_kind, 13> invariant_names{{
    {invariant_kind::prefix, "prefix"},
    {invariant_kind::split, "split"},
    {invariant_kind::pad, "pad"},
    {invariant_kind::varlen, "varlen"},
    {invariant_kind::chunk_size, "chunk-size"},
    {invariant_kind::path, "path"},
    {invariant_kind::repeat, "repeat"},
    {invariant_kind::batch, "batch"},
    {invariant_kind::snapshot, "snapshot"},
    {invariant_kind::rollback, "rollback"},
    {invariant_kind::flush, "flush"},
    {invariant_kind::cp, "cp"},
    {invariant_kind::gradients, "gradients"},
}};
[[nodiscard]] inline std::string_view name_of(invariant_kind kind) { return detail::name_in(invariant_names, kind); }
/// Throws: format_error that lists the names there are.
[[nodiscard]] inline invariant_kind invariant_named(std::string_view name) {
  return detail::named_in(invariant_names, "invariant", name);
}

/// A problem, what a kernel made of it, and where both were read.
struct recorded_run {
  problem given;
  result gave;
  std::string problem_path, problem_sha256;
  std::string result_path, result_sha256;
  state_exchange exchanged = {};  ///< what flush and cp look at
};
/// Throws: as read_problem and read_result.
[[nodiscard]] recorded_run read_run(const std::filesystem::path& problem, const std::filesystem::path& result, notes_list& notes);

/// An element whose bits differ. `token` counts from the start of the sequence in the whole, nothing for a state.
struct bit_difference {
  std::size_t part = 0;
  std::size_t sequence = 0;
  std::size_t head = 0;
  std::optional<std::size_t> token;
  std::vector<std::size_t> element;   ///< [v], or [k, v] of a state
  std::string whole_bits, part_bits;  ///< "0x3f80"
  double whole_value = 0;
  double part_value = 0;
};

/// One tensor of the whole beside that of the parts, bit for bit; -0 differs from 0.
struct bit_comparison {
  std::string tensor;
  std::size_t elements = 0;
  std::size_t differing = 0;
  double largest = 0;         ///< |whole - part| where both are finite
  bool other_format = false;  ///< somewhere the formats differ: nothing was compared there
  std::optional<bit_difference> first;
  std::optional<double> only_value = {};  ///< of every element of the whole that was compared, where they are all one value
  std::size_t nonfinite = 0;              ///< of the whole's
};

/// One call of check. Parts of one kernel, path and set of formats are judged together, packed as sequences.
struct judged_run {
  std::string what;
  std::size_t parts = 0;  ///< how many it covers; 0: the whole
  check_report report;
};

/// A window: the tokens between two flushes, or nothing where a head's all together are meant.
struct state_place {
  std::size_t sequence = 0;
  std::size_t head = 0;
  std::optional<std::size_t> window;
};

/// An equation that tensors of one part satisfy, of flush and cp. Numbers are root mean squares in units of the size of the right
/// side, at the place nearest its limit: how far the sides are apart, what the formats cost in a run of the same operation, and
/// what is allowed: 8 times that over a head, 32 times in one window.
struct state_equation {
  std::string name;
  std::string statement;
  std::size_t part = 0;
  bool of_all_parts = false;  ///< `part` is then the last
  bool by_key_head = false;   ///< heads are those of q and k
  std::string missing = {};   ///< what the files lack for it; empty: it was formed
  verdict judged = verdict::vacuous;
  std::size_t heads = 0;  ///< of all sequences
  std::size_t numbers = 0;
  double residual = 0;
  double expected = 0;
  double limit = 0;
  std::optional<state_place> worst = {};
};

struct invariant_report {
  invariant_kind kind = invariant_kind::prefix;
  verdict judged = verdict::holds;
  std::string reason;
  std::string remedy;  ///< empty: none
  std::vector<bit_comparison> bits;
  std::vector<judged_run> runs;                       ///< empty where bits alone decide
  std::optional<gradient_identities> gradients = {};  ///< of invariant_kind::gradients
  std::vector<state_equation> equations = {};         ///< of flush and cp
  notes_list notes;
  bool stopped = false;  ///< before its own comparison with the exact numbers was done; of a run or of gradients it is said there
};

struct invariant_options {
  check_options check;  ///< its false_alarm is shared by the runs; `plans`: those that fit a result's path, empty: its presets
  bool no_plan = false;
  std::optional<double> drop_below = {};  ///< cp: where the results do not state it themselves
};

/// Throws: format_error, shape_error or domain_error where the parts are not cuts of the whole, naming file, tensor and
/// index and what to do; as check.
[[nodiscard]] invariant_report check_invariant(invariant_kind kind, const recorded_run& whole,
                                               std::span<const recorded_run> parts, const invariant_options& options = {});

/// The problem and result whose sequences are those of `parts`, one after the other: B = 1, the same bits.
/// Throws: shape_error or format_error if they do not stack (heads, formats, chunk_size, op and what else a problem states).
[[nodiscard]] recorded_run packed(std::span<const recorded_run* const> parts);
/// What `parts`, consecutive in time, answer to the whole's problem: o along T, final_state of the last, no stages.
[[nodiscard]] result concatenated(const recorded_run& whole, std::span<const recorded_run> parts);

/// Schema deltaproof.invariant/1.
[[nodiscard]] std::string to_json(const invariant_report& report, const recorded_run& whole, std::span<const recorded_run> parts,
                                  const check_identity& identity);
/// About a dozen lines for a terminal.
[[nodiscard]] std::string to_text(const invariant_report& report, const recorded_run& whole, std::span<const recorded_run> parts,
                                  const check_identity& identity);

}  // namespace deltaproof
