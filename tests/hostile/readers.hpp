// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
//
// What the program does first with a file of each kind, without the judging: shared by the hostile set and the fuzzers. Only the
// library's own errors may come out of it.
#pragma once

#include <array>
#include <filesystem>
#include <string>
#include <string_view>

#include "deltaproof/check/suite.hpp"
#include "deltaproof/check/witness.hpp"
#include "deltaproof/oracle/inspect.hpp"
#include "deltaproof/support/read_file.hpp"
#include "files/corpus.hpp"

namespace deltaproof::testing {

enum class hostile_kind { tensors, plan, suite, verdict, baseline };
inline constexpr std::array<std::string_view, 5> hostile_kind_names{"tensors", "plan", "suite", "verdict", "baseline"};
inline std::string_view name_of(hostile_kind kind) { return hostile_kind_names.at(static_cast<std::size_t>(kind)); }

inline void use_plan(const plan& read) {
  static const problem small = packed_problem();
  for (const path_kind path : read.path) {
    try {
      require_fit(read, small, path, 64);
    } catch (const format_error&) {
      continue;  // a plan for other problems than this one
    }
    (void)variants(read, small, path, 64);
  }
}

inline void use_tensors(const safetensors_file& file) {
  static const problem packed = packed_problem();
  notes_list notes;
  for (const safetensors_entry& entry : file.entries()) {
    try {
      (void)file.load(entry);
    } catch (const format_error&) {
      continue;  // of a dtype that is measured and not read
    }
  }
  const bool is_result = file.metadata("format") == result_format;
  if (is_result) {
    (void)parse_result(file, packed, known_sha256, notes).final_state_kv();
    return;
  }
  const problem p = parse_problem(file, notes);
  if (p.sequence_count() * p.value_heads() * p.key_dim() * p.value_dim() < 100000) (void)inspect(p);
}

/// As the program reads the file at `path`.
inline void read_hostile(hostile_kind kind, const std::filesystem::path& path) {
  switch (kind) {
    case hostile_kind::tensors:
      return use_tensors(read_safetensors(path));
    case hostile_kind::plan:
      return use_plan(plan_named(path.string()));
    case hostile_kind::suite:
      return (void)read_suite(path);
    case hostile_kind::verdict:
      return (void)files_of(read_verdict(path));
    case hostile_kind::baseline:
      return (void)compare_baseline({}, read_file(path, suite_verdict_limit), path.string());
  }
}

}  // namespace deltaproof::testing
