// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT

#include <string>

#include "deltaproof/study/study.hpp"
#include "studies/shared/findings.hpp"
#include "studies/wy/sections.hpp"

namespace deltaproof {
namespace {

using namespace detail::wy;
using detail::shared::value_of;

std::string answer(const report& r) {
  const auto stages = [&](const char* key) { return number(value_of(r, "stages-and-chunk-length", key), 2); };
  const auto recurrence = [&](const char* key) { return number(value_of(r, "against-the-recurrence", key), 2); };
  return "In accuracy, what its stages are stored in: with bf16 stages and C = 64 the outputs err by " + stages("ordinary_C64") +
         " on ordinary inputs and " + stages("hard_C64") + " on hard ones, " + recurrence("lowest") + " to " +
         recurrence("highest") + " times less than a recurrence with a bf16 state and at least " + recurrence("over_fp32_state") +
         " times more than one with an fp32 state, while C = " + number(value_of(r, "stages-and-chunk-length", "longest"), 4) +
         " errs " + stages("ordinary_ratio") + " to " + stages("hard_ratio") +
         " times as much as C = 1; in one format throughout hard inputs make that " +
         number(value_of(r, "one-format-and-chunk-length", "fp32_hard"), 2) + " (fp32). In operations, " +
         number(value_of(r, "operations-for-bytes", "operations_ratio"), 3) + " times those of the recurrence at C = 64, for " +
         number(value_of(r, "operations-for-bytes", "bytes_saved"), 3) +
         " times fewer bytes than a recurrence whose state lives in memory.";
}

report run(const run_options& options) {
  const settings size = settings_for(options);
  report r;
  add_cost(options, size, r);
  const error_survey survey = survey_errors(options, size);
  if (survey.complete) {
    add_errors(options, size, survey, r);
    r.answer = answer(r);
  } else {
    r.answer = "Interrupted: the cost is known, the errors are not.";
    r.unfinished.emplace_back("Errors: interrupted before all runs were done.");
  }
  r.method =
      "Inputs are values of bf16 and of fp16 (keys with |k|² ≤ 1, β in multiples of 2⁻⁷), so every arithmetic gets the same "
      "bits. The library's chunkwise form and its recurrence run in each arithmetic; the inverse is " +
      std::string(inverse_name) +
      ". The reference is the recurrence in double-double, rounded once to fp64. Operations are counted by running the same "
      "templates over a scalar that counts; bytes follow the model in the table.";
  r.not_claimed = {
      "Errors are those of the stated draws and shapes (K = " + std::to_string(size.key_dim) + ", V = " +
          std::to_string(size.value_dim) + "), not bounds; one repeated key is the subject of study `chunk-stability`.",
      "Sums are sequential; tensor cores add in blocks and truncate, and o is not rounded to the output format, which would add "
      "up to u to every arithmetic alike.",
      "No gates; an fp16 run does not meet its range here.",
      "The reference is not an enclosure: its error is argued (T K 2⁻¹⁰⁰ of the largest state), the fp64 columns are within "
      "10⁻¹⁴.",
      "Bytes are a model of memory without caches; no time is claimed. `./run bench` measures this machine.",
  };
  r.parameters = {{"key_dim", size.key_dim},
                  {"value_dim", size.value_dim},
                  {"tokens", size.tokens},
                  {"horizon_tokens", size.horizon_tokens},
                  {"draws", size.draws}};
  return r;
}

}  // namespace

extern const study wy_study{"wy", "What does the chunkwise form cost in accuracy and in operations, against the recurrence?",
                            &run};

}  // namespace deltaproof
