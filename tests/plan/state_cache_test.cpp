// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
//
// How a plan says that a state is stored between tokens and between calls: what is read, what must be stated, what is refused.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "plan/plan_cases.hpp"

namespace deltaproof {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::ThrowsMessage;
using namespace testing;

constexpr const char* int8_row = R"({format = "int8", scale = "row", scale_format = "fp16", rounding = "error-feedback", )"
                                 R"(residual = "bf16", every = 16})";

plan_lines with(const std::string& key, const std::string& value) {
  plan_lines t = plan_lines::full();
  t.set("state", key, value);
  return t;
}
plan_variant first_of(const plan_lines& t) {
  return variants(t.read(), small(op_kind::kda, bf16, bf16), path_kind::chunk, 64).front();
}

TEST(state_caches, say_format_scale_rounding_residual_and_period) {
  const plan_variant v = first_of(with("between_tokens", int8_row));
  ASSERT_TRUE(v.state.cache);
  EXPECT_FALSE(v.state.between_tokens);
  EXPECT_EQ(*v.state.cache, (state_cache{scaled("int8", "row", scale_format::fp16), block_rounding::error_feedback,
                                         element_named("bf16"), 0, 16}));
  EXPECT_EQ(text_of(*v.state.cache, "chunks"),
            "int8, scale row in fp16, rounding error-feedback with a residual in bf16, stored every 16 chunks");
}

TEST(state_caches, stand_in_lists_beside_plain_formats) {
  const plan p = with("between_tokens", "[\"fp32\", {format = \"nvfp4\", rounding = \"stochastic\", seed = 5}]").read();
  const auto all = variants(p, small(op_kind::kda, bf16, bf16), path_kind::chunk, 64);
  EXPECT_EQ(all.front().state.between_tokens, fp32);
  EXPECT_FALSE(all.front().state.cache);
  const auto cached = std::find_if(all.begin(), all.end(), [](const plan_variant& v) { return v.state.cache.has_value(); });
  ASSERT_NE(cached, all.end());
  EXPECT_EQ(cached->name, "mine ([state] between_tokens nvfp4, rounding stochastic with seed 5)");
  EXPECT_EQ(cached->state.cache->seed, 5U);
  EXPECT_EQ(cached->state.cache->every, 1U);
}

TEST(state_caches, of_calls_are_formats_too) {
  EXPECT_EQ(first_of(with("between_calls", "\"X\"")).state.between_calls,
            (state_cache{unscaled("bf16"), block_rounding::nearest, element_formats[0], 0, 0}));
  EXPECT_FALSE(first_of(with("between_calls", "\"none\"")).state.between_calls);
  EXPECT_FALSE(first_of(with("between_calls", "\"fp64\"")).state.between_calls);
  const auto calls =
      first_of(with("between_calls", "{format = \"mxfp8\", rounding = \"nearest\", every = 128}")).state.between_calls;
  ASSERT_TRUE(calls);
  EXPECT_EQ(calls->every, 128U);
  EXPECT_EQ(calls->format, block_format_named("mxfp8"));
}

TEST(state_caches, of_calls_end_with_a_chunk) {
  EXPECT_THAT([] { (void)first_of(with("between_calls", "{format = \"mxfp8\", rounding = \"nearest\", every = 100}")); },
              ThrowsMessage<format_error>(
                  AllOf(HasSubstr("every 100 tokens"), HasSubstr("chunks of 64 rows"), HasSubstr("a multiple of 64 tokens"))));
}

TEST(state_caches, leave_nothing_implicit_and_refuse_what_can_mean_nothing) {
  const std::vector<std::pair<std::string, std::vector<std::string>>> refused{
      {R"({scale = "row", scale_format = "fp32", rounding = "nearest"})", {"format is not stated"}},
      {R"({format = "int8", scale_format = "fp32", rounding = "nearest"})", {"scale is not stated"}},
      {R"({format = "int8", scale = "row", rounding = "nearest"})", {"scale_format is not stated; a scale needs it: fp32"}},
      {R"({format = "int8", scale = "row", scale_format = "fp32"})", {"rounding is not stated"}},
      {R"({format = "mxfp8", rounding = "error-feedback"})",
       {"line ", "residual is not stated; rounding = \"error-feedback\" needs it: fp32"}},
      {R"({format = "mxfp8", rounding = "stochastic"})", {"seed is not stated"}},
      {R"({format = "mxfp8", scale = "row", rounding = "nearest"})", {"scale = \"row\"", "has no effect", "fixes its scales"}},
      {R"({format = "mxfp8", rounding = "nearest", residual = "fp32"})", {"residual = \"fp32\"", "has no effect"}},
      {R"({format = "mxfp8", rounding = "nearest", seed = 1})", {"seed = 1", "has no effect"}},
      {R"({format = "fp16", scale = "none", scale_format = "fp32", rounding = "nearest"})", {"there is no scale"}},
      {R"({format = "int8", scale = "none", rounding = "nearest"})", {"scale = \"none\"", "need a scale"}},
      {R"({format = "bf16", scale = "row", scale_format = "fp32", rounding = "nearest"})", {"exponents of fp32"}},
      {R"({format = "int8", scale = "tile:4", scale_format = "fp32", rounding = "nearest"})", {"\"tile:4\"", "tile:RxC"}},
      {R"({format = "int9", scale = "row", scale_format = "fp32", rounding = "nearest"})",
       {"\"int9\"", "did you mean \"int8\"?"}},
      {R"({format = "mxfp8", rounding = "nearest", every = 0})", {"every = 0", "1 or more"}},
      {R"({format = "mxfp8", rounding = "stochastic", seed = -1})", {"seed = -1", "0 or more"}},
      {R"({format = "mxfp8", rounding = "nearest", evry = 2})", {"\"evry\"", "did you mean \"every\"?"}},
      {R"([{format = "mxfp8", rounding = "nearest"}, {format = "mxfp8", rounding = "nearest"}])", {"listed twice"}},
  };
  for (const char* key : {"between_tokens", "between_calls"}) {
    for (const auto& [value, parts] : refused) {
      try {
        (void)with(key, value).read();
        ADD_FAILURE() << "read: " << value;
      } catch (const format_error& e) {
        EXPECT_THAT(e.what(), AllOf(HasSubstr("mine.toml"), HasSubstr(key))) << value;
        for (const std::string& part : parts) EXPECT_THAT(e.what(), HasSubstr(part)) << value;
      }
    }
  }
  // Elsewhere a table is no format.
  EXPECT_THAT([] { (void)plan_lines::full().set("u", "store", int8_row).read(); },
              ThrowsMessage<format_error>(AllOf(HasSubstr("[u] store is a table; it must be text"))));
}

}  // namespace
}  // namespace deltaproof
