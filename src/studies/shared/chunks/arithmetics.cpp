// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT

#include "studies/shared/chunks/arithmetics.hpp"

#include <algorithm>
#include <array>
#include <string>

#include "studies/shared/chunks/instantiate.hpp"

namespace deltaproof::detail::chunks {

std::span<const chunk_arithmetic> arithmetics() {
  static const std::array all{
      entry<half_arithmetic<bf16>>("bf16"), entry<half_arithmetic<fp16>>("fp16"), entry<half_arithmetic<tf32>>("tf32"),
      entry<single_arithmetic>("fp32"),     entry<plain<double>>("fp64"),         entry<plain<rounded<bf16>>>("bf16 native"),
  };
  return all;
}

const chunk_arithmetic& arithmetic_named(std::string_view name) {
  const auto found = std::ranges::find(arithmetics(), name, &chunk_arithmetic::name);
  if (found != arithmetics().end()) return *found;
  std::string names;
  for (const chunk_arithmetic& a : arithmetics()) names.append(names.empty() ? "" : "; ").append(a.name);
  throw domain_error("no arithmetic '" + std::string(name) + "' in the chunk studies; there is: " + names);
}

}  // namespace deltaproof::detail::chunks
