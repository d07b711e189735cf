// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
//
// The files of the ledger, embedded by cmake/claims.cmake, and what is read from them.
#pragma once

#include <array>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "deltaproof/study/claim.hpp"

namespace deltaproof::claim_detail {

/// By the values of claim_kind and claim_verdict.
inline constexpr std::array<std::string_view, 9> kind_names{"identity",   "bound",    "definition", "algorithm",    "experiment",
                                                            "conclusion", "practice", "misprint",   "contradiction"};
inline constexpr std::array<std::string_view, 8> verdict_names{"holds",   "conditional", "fails_in_format", "artefact",
                                                               "refuted", "misprint",    "contradiction",   "not_testable"};

struct embedded_file {
  std::string_view name;  ///< without .toml
  std::string_view text;
};
/// Every src/claims/*.toml.
[[nodiscard]] std::span<const embedded_file> embedded_files();
/// The templates of the ledger's page and of a subject's.
[[nodiscard]] std::string_view overview_page();
[[nodiscard]] std::string_view subject_page();

/// What src/claims/ledger.toml says, and the rows of every subject that it lists.
struct ledger {
  std::vector<claim_document> documents;
  std::vector<claim_subject> subjects;
  std::vector<named_system> systems;
  std::vector<std::string> first_read;
  std::vector<claim> claims;
};
/// Throws: format_error naming the file, the row and the key that is missing, unknown or of the wrong type.
[[nodiscard]] ledger read_ledger(std::span<const embedded_file>);

}  // namespace deltaproof::claim_detail
