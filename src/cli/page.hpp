// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
//
// `index.html` of a folder of reports: one file that opens from disk without network or scripts, made from the JSON and SVG
// files that are there. Answers come first, then the ledger of claims, then each report with its figures, tables, what is
// not claimed and the command that makes it again.
#pragma once

#include <filesystem>

namespace deltaproof::cli {

/// Reads: `<study>.json`, the figures named in them, and whether `claims.md` is there: with it the page has the ledger. Other
/// files are left alone. Throws: format_error if the page cannot be written.
void write_page(const std::filesystem::path& folder);

}  // namespace deltaproof::cli
