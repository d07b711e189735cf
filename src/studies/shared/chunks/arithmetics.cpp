// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT

#include "studies/shared/chunks/arithmetics.hpp"

#include <string>

#include "deltaproof/support/errors.hpp"

namespace deltaproof::detail::chunks {

std::span<const chunk_arithmetic> arithmetics() {
  static const std::vector<chunk_arithmetic> all = [] {
    std::vector<chunk_arithmetic> result;
    for (const auto table : {half_arithmetics(), wide_arithmetics(), inverse_arithmetics(), native_arithmetics()}) {
      result.insert(result.end(), table.begin(), table.end());
    }
    return result;
  }();
  return all;
}

const chunk_arithmetic& arithmetic_named(std::string_view name) {
  std::string names;
  for (const chunk_arithmetic& a : arithmetics()) {
    if (a.name == name) return a;
    names.append(names.empty() ? "" : "; ").append(a.name);
  }
  throw domain_error("no arithmetic '" + std::string(name) + "' in the chunk studies; there is: " + names);
}

}  // namespace deltaproof::detail::chunks
