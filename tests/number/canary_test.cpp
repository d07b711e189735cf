// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
//
// The start-up canary: silent on a sound machine, and each fault that can be switched on at run time
// trips it. Faults of compiler flags are tested in tests/compile_fail, in programs of their own.
#include "deltaproof/number/canary.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cfenv>
#include <string>
#if defined(__SSE2__)
#include <xmmintrin.h>
#endif

namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using namespace deltaproof;

/// Puts the floating-point environment back at the end of a test, whatever happens in it.
class environment : public ::testing::Test {
 protected:
  environment() { std::fegetenv(&saved_); }
  ~environment() override { std::fesetenv(&saved_); }

 private:
  std::fenv_t saved_{};
};

std::string refusal() {
  try {
    require_sound_environment();
    return "";
  } catch (const environment_error& e) {
    return e.what();
  }
}

using canary = environment;

TEST_F(canary, a_sound_environment_is_silent) {
  EXPECT_THAT(environment_faults(), IsEmpty());
  EXPECT_THAT(environment_faults_here(), IsEmpty());
  EXPECT_EQ(refusal(), "");
}

TEST_F(canary, every_other_rounding_mode_is_a_fault) {
  for (const int mode : {FE_UPWARD, FE_DOWNWARD, FE_TOWARDZERO}) {
    ASSERT_EQ(std::fesetround(mode), 0);
    EXPECT_THAT(environment_faults(), ElementsAre(HasSubstr("rounding mode"))) << mode;
    EXPECT_THAT(refusal(), HasSubstr("rounding mode")) << mode;
  }
}

#if defined(__SSE2__)
TEST_F(canary, flush_to_zero_is_a_fault) {
  _mm_setcsr(_mm_getcsr() | 0x8000U);
  const auto faults = environment_faults();
  const auto here = environment_faults_here();
  const std::string message = refusal();
  _mm_setcsr(_mm_getcsr() & ~0x8000U);
  EXPECT_THAT(faults, ElementsAre(HasSubstr("FTZ")));
  EXPECT_THAT(here, ElementsAre(HasSubstr("FTZ")));
  EXPECT_THAT(message, HasSubstr("FTZ"));
}

TEST_F(canary, denormals_are_zero_is_a_fault) {
  _mm_setcsr(_mm_getcsr() | 0x0040U);
  const auto faults = environment_faults();
  _mm_setcsr(_mm_getcsr() & ~0x0040U);
  EXPECT_THAT(faults, ElementsAre(HasSubstr("DAZ")));
}
#endif

TEST_F(canary, the_environment_is_restored) { EXPECT_THAT(environment_faults(), IsEmpty()); }

}  // namespace
