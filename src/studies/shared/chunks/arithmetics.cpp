// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT

#include "studies/shared/chunks/arithmetics.hpp"

#include <algorithm>
#include <array>
#include <string>

#include "studies/shared/chunks/instantiate.hpp"

namespace deltaproof::detail::chunks {

std::span<const chunk_arithmetic> arithmetics() {
  using half = half_arithmetic<bf16>;
  static const std::array all{
      entry<half>("bf16", "operands and stages bf16; sums, state and inverse fp32"),
      entry<half_arithmetic<fp16>>("fp16", "operands and stages fp16; sums, state and inverse fp32"),
      entry<half_arithmetic<tf32>>("tf32", "operands and stages tf32; sums, state and inverse fp32"),
      entry<single_arithmetic>("fp32", "everything fp32"),
      entry<plain<double>>("fp64", "everything fp64"),
      entry<half, single_arithmetic, half_arithmetic<tf32>>("bf16, merges tf32",
                                                            "as bf16, merges of the inverse with tf32 operands"),
      entry<half, half>("bf16, inverse bf16", "as bf16, the whole inverse with bf16 operands and fp32 sums"),
      entry<half, plain<rounded<fp16>>>("bf16, inverse fp16 native", "as bf16, the whole inverse in fp16, sums included"),
      entry<plain<rounded<bf16>>>("bf16 native", "everything bf16, sums and state included"),
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
