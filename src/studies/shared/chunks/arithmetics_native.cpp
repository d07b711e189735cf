// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT

#include <array>

#include "studies/shared/chunks/instantiate.hpp"

namespace deltaproof::detail::chunks {

std::span<const chunk_arithmetic> native_arithmetics() {
  static const std::array table{
      entry<half_arithmetic<bf16>, plain<rounded<fp16>>>("bf16, inverse fp16 native",
                                                         "as bf16, the whole inverse in fp16, sums included"),
      entry<plain<rounded<bf16>>>("bf16 native", "everything bf16, sums and state included"),
  };
  return table;
}

}  // namespace deltaproof::detail::chunks
