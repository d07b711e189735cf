// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
//
// The files of a folder of reports before they are written: what a report and the index will say is known first, so that all of
// it appears together or, on a full disk, nothing does.
#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "deltaproof/study/report.hpp"

namespace deltaproof {

/// Content by name, inside one folder.
using named_files = std::map<std::string, std::string>;

/// Markdown, JSON and figures of a report. Throws: domain_error as validate.
[[nodiscard]] named_files report_files(const report& r);
/// The reports of a folder once `fresh` are in it, by name; other JSON is left out.
[[nodiscard]] std::vector<report> reports_in(const std::filesystem::path& directory, const named_files& fresh = {});
/// README.md of the folder once `fresh` are in it.
[[nodiscard]] std::string index_of(const std::filesystem::path& directory, const named_files& fresh = {});
/// All of them or none. Figures of the reports that they replace, and that they have no more, go. Throws: format_error.
void write_together(const std::filesystem::path& directory, const named_files& files);
/// The text of a file of the folder, the fresh one if there is one; empty where there is none.
[[nodiscard]] std::string content_in(const std::filesystem::path& directory, const std::string& name, const named_files& fresh);

}  // namespace deltaproof
