// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
//
// GoogleMock matchers for a kernel's result. A failing test prints the dozen lines of `deltaproof check`: the verdict, the first
// bad stage, what the error is like, and the command that judges it again.
//
//     const problem p = generate({.regime = "repeated", .tokens = 256});      // or copied(problem_view{...}) of your own tensors
//     EXPECT_THAT(copied(result_view{.o = {bf16, o, {B, T, HV, V}}, .chunk_size = 64}, p), keeps_plan(p, "fla-chunk-delta"));
//
// A refuted result leaves a witness, the smallest part that still fails and all that judges it again, in a folder named after
// the test: under $DELTAPROOF_WITNESS_DIR, else the temporary folder. Verdict, reason and witness become properties of the test
// in --gtest_output=xml. `Not(keeps_plan(...))` also accepts what is undecided or vacuous; to demand that a fault is caught,
// write .accept = {verdict::refuted}. Link deltaproof::deltaproof and your GTest::gmock: the library needs neither.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <memory>
#include <ostream>
#include <string>
#include <string_view>
#include <utility>

#include "deltaproof/files/exchange.hpp"
#include "deltaproof/files/view.hpp"
#include "deltaproof/testing/trial.hpp"

namespace deltaproof {

/// How GoogleTest names them; without it a failure would begin with their bytes.
inline void PrintTo(const problem& p, std::ostream* out) { *out << "problem " << testing::description(p); }
inline void PrintTo(const result& r, std::ostream* out) { *out << testing::description(r); }
inline void PrintTo(const result_view& r, std::ostream* out) {
  *out << (r.kernel.empty() ? "result of a kernel without a name" : "result of " + r.kernel) << ", o " << shape_text(r.o.shape());
}

}  // namespace deltaproof

namespace deltaproof::testing {

namespace detail {

/// A folder of this test alone, "SUITE.TEST", and for a second witness "SUITE.TEST-2"; running the test again replaces them.
inline std::filesystem::path usual_witness() {
  static const ::testing::TestInfo* last = nullptr;
  static ::testing::TimeInMillis since = 0;
  static int count = 0;
  const auto* test = ::testing::UnitTest::GetInstance()->current_test_info();
  const ::testing::TimeInMillis started = test == nullptr ? 0 : test->result()->start_timestamp();
  if (test != last || started != since) count = 0;
  last = test;
  since = started;
  std::string name = test == nullptr ? "no-test" : std::string(test->test_suite_name()) + "." + test->name();
  for (char& c : name) c = c == '/' ? '-' : c;
  if (++count > 1) name += "-" + std::to_string(count);
  const char* given = std::getenv("DELTAPROOF_WITNESS_DIR");
  std::filesystem::path folder = given == nullptr ? "" : given;
  if (folder.empty()) folder = std::filesystem::path(::testing::TempDir()) / ("deltaproof-" + std::to_string(getuid()));
  std::error_code failed;
  std::filesystem::create_directories(folder, failed);
  return folder / name;
}

}  // namespace detail

/// Matches a `result` or a `result_view` that its trial accepts.
class verdict_matcher {
 public:
  using is_gtest_matcher = void;

  explicit verdict_matcher(trial asked)
      : trial_(std::make_shared<trial>(std::move(asked))), place_(std::make_shared<std::filesystem::path>()) {}

  bool MatchAndExplain(const result& got, ::testing::MatchResultListener* listener) const {
    if (place_->empty()) *place_ = detail::usual_witness();
    const trial_answer& answer = (*trial_)(got, *place_);
    if (::testing::UnitTest::GetInstance()->current_test_info() != nullptr) {
      ::testing::Test::RecordProperty("deltaproof.verdict", std::string(name_of(answer.judged)));
      ::testing::Test::RecordProperty("deltaproof.reason", answer.reason);
      if (!answer.witness.empty()) ::testing::Test::RecordProperty("deltaproof.witness", answer.witness);
    }
    if (listener->IsInterested()) *listener << "and deltaproof says of it:\n" << answer.text;
    return answer.accepted;
  }
  bool MatchAndExplain(const result_view& got, ::testing::MatchResultListener* listener) const {
    return MatchAndExplain(copied(got, trial_->given()), listener);
  }

  void DescribeTo(std::ostream* out) const { *out << trial_->expects(); }
  void DescribeNegationTo(std::ostream* out) const { *out << trial_->negated(); }

 private:
  std::shared_ptr<trial> trial_;
  std::shared_ptr<std::filesystem::path> place_;  // of the witness; chosen when a result is first judged
};

/// The result is one that a kernel which keeps the precision plan may give, and the plan is accurate enough on these inputs.
/// `plan`: a preset (`deltaproof list plans`) or a file ending in .toml; empty: the presets that list the result's kernel.
/// Throws: where matched, format_error for a plan that does not exist or fit, shape_error or format_error where what is
/// matched is no result of `p`; here, as validate.
[[nodiscard]] inline verdict_matcher keeps_plan(problem p, std::string plan, trial_options options = {}) {
  return verdict_matcher(plan_trial(std::move(p), std::move(plan), std::move(options)));
}

/// The result is within a limit of your own, "[TENSOR:]METRIC=E" (`deltaproof list metrics`), and there is a reason
/// for it: within(p, "o:rel_fro=0.005", because("our release criterion")). Throws: format_error for another limit.
[[nodiscard]] inline verdict_matcher within(problem p, std::string_view limit, const because& reason,
                                            trial_options options = {}) {
  return verdict_matcher(bound_trial(std::move(p), limit, reason, std::move(options)));
}

/// Every element of o and final_state is the exact value rounded once, to nearest even, to the format of its tensor.
[[nodiscard]] inline verdict_matcher correctly_rounded(problem p, trial_options options = {}) {
  return verdict_matcher(rounding_trial(std::move(p), std::move(options)));
}

}  // namespace deltaproof::testing
