// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
//
// `index.html` of a folder of reports: one file that opens from disk without network or scripts, made from the JSON and SVG
// files that are there. Answers come first, then the ledger of claims, then each report with its figures, tables, what is
// not claimed and the command that makes it again.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>

#include "deltaproof/study/report_files.hpp"

namespace deltaproof::cli {

/// The page of the folder once `fresh` are in it. Reads: `<study>.json`, the figures named in them, and whether `claims.md` is
/// there: with it the page has the ledger. Other files are left alone.
[[nodiscard]] std::string page_of(const std::filesystem::path& folder, const named_files& fresh = {});

/// Whether a report of this name writes a file of that name.
[[nodiscard]] bool is_report_file(std::string_view study, std::string_view name);

}  // namespace deltaproof::cli
