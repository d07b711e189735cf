// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
//
// `gen --for INVARIANT --dir DIR`: the problems of every call that an invariant compares, with a manifest that the recorder and
// `invariant INVARIANT DIR` follow.
#pragma once

#include <string>

#include "cli/program.hpp"
#include "deltaproof/check/invariant_set.hpp"
#include "deltaproof/inputs/regimes.hpp"

namespace deltaproof::cli {

struct gen_for_arguments {
  std::string kind;
  std::string folder;
  generation wanted;
  std::optional<std::size_t> calls, drafted;
};

[[nodiscard]] int run_gen_for(const gen_for_arguments& args, const common_options& common);

}  // namespace deltaproof::cli
