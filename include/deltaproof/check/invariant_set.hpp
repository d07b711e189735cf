// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
//
// The calls of a kernel that an invariant compares, as problems: `problems_for(kind, problem, calls)` cuts one problem into them,
// and `read_set(folder)` reads the results that were recorded of them. Where a call starts from the state that an earlier call
// left, its problem has no initial state yet: the recorder fills it in (`record_set`). It exists so that nobody keeps books.
#pragma once

#include <cstddef>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "deltaproof/check/invariant.hpp"

namespace deltaproof {

struct set_call {
  std::string name;             ///< of its files: NAME.problem.safetensors, or NAME.tokens.safetensors where a state is to come
  std::string problem_of = {};  ///< the call whose problem it has, where it is not its own; empty: its own
  problem given;                ///< without an initial state where `after` says from which call it comes
  std::string after = {};       ///< the call whose state it starts from; empty: none
  std::vector<std::size_t> kept = {};           ///< tokens of that call, of each sequence, which that state is of
  std::optional<path_kind> path = {};           ///< where the call must take this one
  std::optional<std::size_t> flush_every = {};  ///< L, for flush
  std::optional<std::size_t> chunk_size = {};   ///< for chunk-size
};

struct set_options {
  std::size_t calls = 3;    ///< parts of split, snapshot and cp, repetitions of repeat
  std::size_t drafted = 5;  ///< tokens that rollback drafts and does not accept
};

/// Whether the number of calls of its set is `calls`.
[[nodiscard]] bool counts_calls(invariant_kind kind);
/// The whole first, then the parts in their order. `other`: a problem of the same shapes, whose tokens rollback drafts. Throws:
/// format_error for an invariant that has no set (pad), domain_error where the problem is too short for so many calls,
/// or gradients are asked of one without cotangents.
[[nodiscard]] std::vector<set_call> problems_for(invariant_kind kind, const problem& p, const problem& other,
                                                 const set_options& options = {});

/// What `gen --for` writes as manifest.json and `invariant KIND FOLDER` reads, without the hashes of the files.
[[nodiscard]] std::string set_manifest(invariant_kind kind, const std::vector<set_call>& calls, const std::string& options);

struct recorded_set {
  invariant_kind kind;
  recorded_run whole;
  std::vector<recorded_run> parts;
};
/// Throws: format_error where the folder is no such set, or a call has not been recorded; as read_run.
[[nodiscard]] recorded_set read_set(const std::filesystem::path& folder, notes_list& notes);

}  // namespace deltaproof
