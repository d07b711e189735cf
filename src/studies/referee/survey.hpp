// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
//
// The numbers of the referee study: `run_survey` plants every fault of the catalogue in every case it can happen in, has the
// emulator make the tensors, and asks `check` and the field's rules about the same tensors; beside them correct runs.
#pragma once

#include <array>
#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "deltaproof/kernel/check.hpp"
#include "studies/shared/trials/cases.hpp"

namespace deltaproof::detail::referee_study {

using trials::trial_case;

/// Who refuses. `stages` is check on everything the result holds; `outputs` is check on o and final_state alone.
enum class judge_kind { stages, outputs, fla, flash_attention, attention_gym, allclose, nmse };
inline constexpr std::array<std::string_view, 7> judge_names{
    "check, stages given", "check, outputs alone", "fla", "FlashAttention", "attention-gym", "allclose", "NMSE"};
inline constexpr std::array<std::string_view, 7> judge_rules{
    "refuted by its plan, intermediates stored",
    "refuted by its plan, o and final_state stored",
    "rms(error)/rms(exact) of o or final_state is 0.005 or more",
    "max error of o is above 2 times that of an eager run in bf16",
    "max error of o is above 2 times that of an eager run with an fp32 state",
    "an element of o or final_state beyond torch's defaults of its dtype",
    "NMSE of o or final_state is 1e-7 or more",
};

struct judgement {
  std::array<bool, judge_names.size()> refuses{};
  bool changed = true;     ///< some bit of the result differs from the correct run's
  double size = 0;         ///< largest over o and final_state of rms(result - correct run) / rms(error of the correct run)
  std::string first_bad;   ///< with stages
  std::string suspect;     ///< the fault most alike, with stages
  bool suspected = false;  ///< the planted one is among the suspects
  bool diagnosed = false;  ///< and is the first, or projects exactly as the first
  std::string word;        ///< of check, with stages

  [[nodiscard]] bool refused_by(judge_kind who) const { return refuses[static_cast<std::size_t>(who)]; }
};

struct faulty_run {
  std::size_t fault = 0;  ///< index in faults()
  std::size_t at = 0;     ///< index in the cases
  judgement judged;
  std::string shown_in;  ///< the stage at which it must show: its own, or the next that the result holds; empty: any
};

struct correct_run {
  std::size_t at = 0;
  std::string variant;
  std::uint64_t seed = 0;  ///< of the order of sums; 0: none was disturbed
  judgement judged;
  std::string reason;  ///< of check, where it refuses
};

struct survey {
  std::vector<trial_case> cases;
  std::vector<faulty_run> faulty;  ///< case-major, faults in the order of the catalogue
  std::vector<correct_run> correct;
  bool complete = false;
};
[[nodiscard]] survey run_survey(const run_options&);

}  // namespace deltaproof::detail::referee_study
