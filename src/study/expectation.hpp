// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
//
// What a page expects of values: `worst < 1e-4`, `5.54 < limits.sixteen < 5.55`, `inside`, `store == 'fp32'`,
// `rule in 'euler', 'rk2'`. No arithmetic: numbers are made in the study.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "deltaproof/study/report.hpp"

namespace deltaproof::detail {

struct bad_expectation {
  std::string what;
};

/// Nothing where it holds; otherwise its named values, "worst = 0.02". NaN and an empty cell hold in no comparison.
/// Throws: bad_expectation where it is not one.
[[nodiscard]] std::optional<std::string> failed(std::string_view expectation,
                                                const std::function<cell(const std::string&)>& value_of);

}  // namespace deltaproof::detail
