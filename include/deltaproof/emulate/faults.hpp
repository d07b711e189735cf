// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
//
// The one catalogue of planted faults: each a mistake that a kernel can be shipped with, made in the emulator and nowhere else.
// `fault_catalogue()` lists them, forward and backward; `emulate` runs one. It serves power (which of these could the inputs at
// hand have shown?), diagnosis (which is the error most like?), sweeps, studies, `list faults`, docs/faults.md and the tests of
// the referee. A new fault is one row in src/emulate/.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "deltaproof/files/exchange.hpp"
#include "deltaproof/oracle/problem.hpp"

namespace deltaproof {

namespace emulation_detail {
struct fault_code;
}

/// Something that a problem must have for a fault to happen.
struct fault_need {
  std::string_view what;  ///< after "it needs"
  bool (*met)(const problem&) = nullptr;
};

enum class pass_kind { forward, backward };

struct fault {
  std::string_view name;
  /// The first stage that is wrong: a name of stage_names, o, final_state, or `inputs`. A result that does not hold this
  /// stage, as one of the recurrent path, shows it in the next that it holds.
  std::string_view stage;
  std::string_view what;  ///< what the kernel does instead
  /// Of backward: o, final_state and the stages of the forward pass are right, and `stage` is a name of backward_stage_names or
  /// gradient_names. The plan needs a section [backward].
  pass_kind pass = pass_kind::forward;
  bool chunk = true;                      ///< can happen on the chunk path
  bool recurrent = false;                 ///< can happen on the recurrent path
  std::vector<std::string_view> tensors;  ///< the results that it can change, of this pass
  std::vector<std::string> acts;          ///< where it acts: "arithmetic", "reads", "before w", "after o"
  std::span<const fault_need> needs;      ///< what the problem must have
  const emulation_detail::fault_code* code = nullptr;
};

/// All of them, those of the forward pass first; in each pass in the order of the stages.
[[nodiscard]] std::span<const fault> fault_catalogue();
/// Those of one pass.
[[nodiscard]] std::span<const fault> faults(pass_kind pass);
/// Throws: format_error with the nearest name.
[[nodiscard]] const fault& fault_named(std::string_view name);
/// Whether the fault can happen to this problem at all: the path, a gate, several sequences, grouped heads are there. Not
/// whether these inputs show it: that is the emulator's answer. A fault that cannot happen changes no bit of an emulation.
[[nodiscard]] bool applies(const fault& f, const problem& p, path_kind path);
/// Why it does not apply, in words ("it needs gates"); empty where it does.
[[nodiscard]] std::string why_impossible(const fault& f, const problem& p, path_kind path);

}  // namespace deltaproof
