// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
//
// `index.html` of a folder of reports: one file that opens from disk without network or scripts, made from the JSON and SVG
// files that are there. Answers come first, then the ledger of claims, then each report with its figures, tables, what is
// not claimed and the command that makes it again.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace deltaproof::cli {

/// A row of the ledger as the page shows it.
struct ledger_row {
  std::string id;
  std::string verdict;
  std::string statement;
  std::string conditions;
  std::string source;
  std::string evidence;
  bool first_to_read = false;  ///< shown before everything else
};

/// Reads: `<study>.json` and the figures named in them; other files are left alone. An empty ledger is left out.
/// Throws: format_error if the page cannot be written.
void write_page(const std::filesystem::path& folder, const std::vector<ledger_row>& ledger);

}  // namespace deltaproof::cli
