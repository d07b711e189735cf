// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
//
// Faults planted in every case they can happen in, and several rules asked about the same tensors: `add_planted(options, survey,
// results)` makes the frames and values of the page, for faults of the forward pass and of the backward pass alike.
#pragma once

#include "deltaproof/emulate/faults.hpp"
#include "studies/shared/common.hpp"
#include "studies/shared/trials.hpp"

namespace deltaproof::detail::referee_study {

struct judgement {
  std::vector<cell> refuses;  ///< by each judge
  std::string first_bad;      ///< stage, of check on all that is stored
  bool diagnosed = false;     ///< the planted fault is the first suspect, or projects exactly as the first
};

struct survey {
  std::string prefix;               ///< of the names of its frames and values: "" or "gradient-"
  std::vector<std::string> judges;  ///< check on all that is stored, called `stages`; check without stages; other rules
  std::vector<fault> faults;
  std::vector<trials::trial_case> cases;
  judgement (*judge)(const trials::bench&, const result&, const fault* planted);
  bool (*changed)(const trials::bench&, const result&);
  double (*size)(const trials::bench&, const result&);  ///< of the change, in errors of a correct kernel
  /// Whether the stage that check names is where the fault must show first.
  bool (*named)(const fault&, const trials::bench&, const result&, const std::string& first_bad);
  std::size_t (*place_of)(std::string_view stage);  ///< sorts stages as they come
};

/// What check says of the suspects, and of where the first bad stage is.
void take_diagnosis(const check_report& full, const fault* planted, judgement& out);
/// rms(got - correct) / error_rms; infinite where that is not finite, or correct is exact.
[[nodiscard]] double relative_change(const tensor& got, const tensor& correct, double error_rms);

void add_planted(const run_options& options, const survey& s, results& r);

/// The faults of the backward pass, beside the rules for gradients in public tests.
void add_gradients(const run_options& options, results& r);

}  // namespace deltaproof::detail::referee_study
