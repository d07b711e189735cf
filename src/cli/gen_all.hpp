// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
//
// `gen --all DIR`: a folder of problems to take to the machine a kernel runs on, and the suite that judges what comes back.
// It exists so that a kernel meets every regime, not the two its author thought of.
#pragma once

#include <optional>
#include <string>

#include "cli/program.hpp"
#include "deltaproof/inputs/regimes.hpp"

namespace deltaproof::cli {

struct gen_all_arguments {
  std::string folder;
  generation wanted;                  ///< of every problem; its regime, op and dtype are not read
  std::optional<std::string> regime;  ///< nothing: each of them
  std::optional<op_kind> op;
  std::optional<format> dtype;  ///< nothing: bf16, fp16, fp32
};

/// The exit code: 0, or 3 where it was stopped and nothing was written.
[[nodiscard]] int run_gen_all(const gen_all_arguments& args, const common_options& common);

}  // namespace deltaproof::cli
