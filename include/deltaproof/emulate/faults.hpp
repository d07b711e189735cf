// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
//
// The catalogue of planted faults: each a mistake that a kernel can be shipped with, made in the emulator and nowhere else.
// `faults()` lists them, `emulate` runs one. It serves power (which of these could the inputs at hand have shown?),
// diagnosis (which is the error most like?) and the tests of the referee. A new fault is one row in src/emulate/.
#pragma once

#include <span>
#include <string_view>

#include "deltaproof/files/exchange.hpp"
#include "deltaproof/oracle/problem.hpp"

namespace deltaproof {

namespace emulation_detail {
struct fault_code;
}

struct fault {
  std::string_view name;
  /// The first stage that is wrong: a name of stage_names, o, final_state, or `inputs`. A result that does not hold this
  /// stage, as one of the recurrent path, shows it in the next that it holds.
  std::string_view stage;
  std::string_view what;   ///< what the kernel does instead
  bool chunk = true;       ///< can happen on the chunk path
  bool recurrent = false;  ///< can happen on the recurrent path
  const emulation_detail::fault_code* code = nullptr;
  bool backward = false;  ///< of the backward pass: o, final_state and the stages of the forward pass are right
};

/// Of the forward pass.
[[nodiscard]] std::span<const fault> faults();
/// Of the backward pass; `stage` is a name of backward_stage_names or gradient_names, or `inputs`.
[[nodiscard]] std::span<const fault> backward_faults();
/// Of either.
/// Throws: format_error with the nearest name.
[[nodiscard]] const fault& fault_named(std::string_view name);
/// Whether the fault can happen to this problem at all: the path, a gate, several sequences, grouped heads are there. Not
/// whether these inputs show it: that is the emulator's answer. A fault that cannot happen changes no bit of an emulation.
[[nodiscard]] bool applies(const fault& f, const problem& p, path_kind path);

}  // namespace deltaproof
