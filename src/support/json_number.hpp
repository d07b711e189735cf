// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
//
// A double in JSON, which has no NaN and no infinity: they are the words "nan", "inf" and "-inf".
#pragma once

#include <cmath>
#include <nlohmann/json.hpp>

namespace deltaproof::detail {

[[nodiscard]] inline nlohmann::ordered_json json_number(double x) {
  if (std::isnan(x)) return "nan";
  if (std::isinf(x)) return x > 0 ? "inf" : "-inf";
  return x;
}

}  // namespace deltaproof::detail
