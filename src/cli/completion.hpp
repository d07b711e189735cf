// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
//
// `deltaproof completion bash`: a script made from the command line's own tables, so that a new option or plan completes
// without a word here.
#pragma once

#include <string>
#include <vector>

namespace deltaproof::cli {

/// The names that a value of this type can be: of an axis of `list` ("PLAN": plans), or of all of them ("ID"); empty: no such
/// type.
[[nodiscard]] std::vector<std::string> names_of_type(const std::string& type);

}  // namespace deltaproof::cli
