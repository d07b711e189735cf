// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
//
// Reads how a state is stored, the table that [state] between_tokens and between_calls may hold.
#pragma once

#include <string>

#include "deltaproof/plan/plan.hpp"
#include "plan/plan_keys.hpp"
#include "support/toml.hpp"

namespace deltaproof::plan_detail {

/// What a value of the file says, as a message quotes it.
[[nodiscard]] std::string quoted(const toml::node& node);
/// What follows a key in a message: " = 5 ", or " is a table; it " of what is not quoted.
[[nodiscard]] std::string as_stated(const toml::node& node);

/// Throws: format_error with `where`, the line, the key, its value and what would do.
[[nodiscard]] state_cache read_state_cache(const toml::table& table, const key& k, const std::string& where);

}  // namespace deltaproof::plan_detail
