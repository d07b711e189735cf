// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
//
// Puts one question to the results of one problem: does it keep a plan, is it within a limit, is it correctly rounded? A
// `trial` answers with the dozen lines of `deltaproof check` and, where the result is refuted, leaves a witness. It needs no
// test framework: testing/gtest.hpp makes matchers of it, and `against_plan` serves any other.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "deltaproof/files/exchange.hpp"
#include "deltaproof/oracle/problem.hpp"
#include "deltaproof/oracle/verdict.hpp"
#include "deltaproof/referee/judging.hpp"

namespace deltaproof::testing {

struct trial_options {
  judging judge = {};
  unsigned threads = 0;                         ///< 0: one for each core
  std::vector<verdict> accept{verdict::holds};  ///< what passes; with vacuous: on inputs that need not show faults
  /// Folder for what is refuted, "" for none. Nothing: the matchers name one after the test, a trial of its own writes none.
  std::optional<std::filesystem::path> witness = {};
};

struct trial_answer {
  bool accepted = false;
  verdict judged = verdict::measured;
  std::string reason = {};
  std::string text = {};     ///< about a dozen lines
  std::string witness = {};  ///< the folder; empty: none was written
};

class trial {
 public:
  /// `expects`: what an accepted result does, "keeps the plan fp32 on ...", and what another does not: "keep ...".
  trial(problem p, trial_options options, std::string expects, std::string negated,
        std::function<trial_answer(const problem&, const result&, const trial_options&)> judge);

  /// The answer for `got`; the last one is remembered, so that asking twice costs once. One thread at a time.
  /// `usual_witness`: used where the options name none. Throws: shape_error or format_error where `got` is no result of the
  /// problem; as check/request.hpp's answer.
  const trial_answer& operator()(const result& got, const std::filesystem::path& usual_witness = {});

  [[nodiscard]] const problem& given() const noexcept { return given_; }
  [[nodiscard]] const std::string& expects() const noexcept { return expects_; }
  [[nodiscard]] const std::string& negated() const noexcept { return negated_; }

 private:
  problem given_;
  trial_options options_;
  std::string expects_, negated_;
  std::function<trial_answer(const problem&, const result&, const trial_options&)> judge_;
  std::string last_;  // hash of the result that last_answer_ is about
  trial_answer last_answer_;
};

/// `plan`: a preset or a file ending in .toml; empty: the presets that list the result's kernel.
[[nodiscard]] trial plan_trial(problem p, std::string plan, trial_options options = {});
/// `limit`: "[TENSOR:]METRIC=E", METRIC one of `deltaproof list metrics`. Judged by no plan. Throws: format_error.
[[nodiscard]] trial bound_trial(problem p, std::string_view limit, const because& reason, trial_options options = {});
/// Every element of o and final_state is the exact value rounded once to nearest even in its tensor's format; -0 counts as +0.
[[nodiscard]] trial rounding_trial(problem p, trial_options options = {});

/// One result of one problem. Throws: as trial.
[[nodiscard]] trial_answer against_plan(const problem& p, const result& r, const std::string& plan,
                                        const trial_options& options = {});

/// "regime repeated, seed 0: delta_rule, B 1, T 160, H 2, HV 2, K 32, V 32, BF16".
[[nodiscard]] std::string description(const problem& p);
/// "result of my_kernel (chunk, C 64): o BF16 [1, 160, 2, 32], final_state F32 [1, 2, 32, 32], stages Ai, h".
[[nodiscard]] std::string description(const result& r);

}  // namespace deltaproof::testing
