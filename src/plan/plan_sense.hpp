// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
//
// The sense of a plan whose shape is right: what must be stated, what can mean nothing and what cannot be together.
#pragma once

#include <string>
#include <vector>

#include "deltaproof/plan/plan.hpp"
#include "support/toml.hpp"

namespace deltaproof::plan_detail {

struct read_plan {
  const plan& p;
  const toml::table& root;
  const std::string& where;
  const std::vector<std::string>& when_lines;  ///< "line 104: " of each exception
};
/// Throws: format_error with `where`, the key and why.
void require_sense(const read_plan& read);

}  // namespace deltaproof::plan_detail
