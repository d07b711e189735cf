// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
//
// What the verb `sweep` adds to the library for two kinds of campaigns: the studies that this program holds are its tasks, and
// the points that an optimiser proposes are those of a search.
#pragma once

#include <iosfwd>

#include "cli/program.hpp"
#include "deltaproof/sweep/sweep.hpp"

namespace deltaproof::cli {

/// Throws: domain_error or format_error where a campaign names a study that is not in this program.
void require_studies(const campaign& c);

/// run_task, and studies.
[[nodiscard]] std::optional<std::string> run_any_task(const campaign& c, const sweep_task& t, const std::atomic<bool>* stop);

/// Reads lines "BY POINT", keeps the points as the next tasks of a search, and publishes what each of them is now:
/// deltaproof.sweep/1 with the search, and each task's score where it has one.
int run_propose(campaign& c, const sweep_folder& folder, std::istream& in, const common_options& common);

}  // namespace deltaproof::cli
