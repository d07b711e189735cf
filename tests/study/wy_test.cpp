// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <initializer_list>
#include <string>
#include <vector>

#include "deltaproof/number/convert.hpp"
#include "deltaproof/number/errors.hpp"
#include "deltaproof/number/real.hpp"
#include "deltaproof/scan/recurrent.hpp"
#include "deltaproof/study/study.hpp"
#include "studies/wy/cost.hpp"
#include "studies/wy/errors.hpp"
#include "studies/wy/sections.hpp"
#include "support/study.hpp"

namespace deltaproof {
namespace {

using namespace detail::wy;

settings small() { return {16, 2, 128, 256, 1, {1, 16, 64}}; }

TEST(wy_cost, of_two_rows_is_what_one_counts_by_hand) {
  // K = V = 1, C = 2. Products: A 1 + 1, Aqk 3, inverse 1, b k and b v 4, w and u 8, w h 2, q h 2, k v_new 2, inside 3.
  EXPECT_EQ(chunk_operations(2, 1, 1).multiplications, 27U);
  // The same but the 1 of b in A and the 4 of b k, b v, and 2 more where the two parts of o meet.
  EXPECT_EQ(chunk_operations(2, 1, 1).additions, 24U);
  EXPECT_EQ(chunk_operations(2, 1, 1).subtractions, 2U);
  EXPECT_EQ(recurrent_operations(1, 1, 1), (operation_counts{3, 1, 4, 0, 0}));
  EXPECT_EQ(chunk_operations(0, 4, 4), operation_counts{});
}

TEST(wy_cost, polynomials_are_what_the_code_does) {
  const inverse_method forward_substitution = inverse_named("forward");
  for (const std::size_t tokens : std::initializer_list<std::size_t>{0, 1, 5, 32, 47}) {
    for (const std::size_t chunk : std::initializer_list<std::size_t>{1, 4, 7, 32, 64}) {
      EXPECT_EQ(counted_chunkwise(tokens, chunk, 5, 3, forward_substitution), chunkwise_operations(tokens, chunk, 5, 3))
          << tokens << ' ' << chunk;
    }
    EXPECT_EQ(counted_recurrent(tokens, 5, 3), recurrent_operations(tokens, 5, 3));
  }
  EXPECT_NE(counted_chunkwise(32, 16, 5, 3, inverse_named("neumann")), chunkwise_operations(32, 16, 5, 3));
}

TEST(wy_cost, of_an_inverse_is_known_for_substitution) {
  for (const std::size_t c : std::initializer_list<std::size_t>{1, 2, 16, 33}) {
    EXPECT_EQ(counted_inverse(c, inverse_named("forward")),
              (operation_counts{(c * c * c - c) / 6, 0, (c * c * c - c) / 6, 0, 0}));
  }
  EXPECT_EQ(counted_inverse(16, inverse_named("forward16+block")), counted_inverse(16, inverse_named("forward")));
}

TEST(wy_cost, bytes_follow_the_model) {
  const traffic t = traffic_of(1, 1, 1, 1);
  EXPECT_EQ(t.recurrent_on_chip, 5);
  EXPECT_EQ(t.recurrent_in_memory, 13);
  EXPECT_EQ(t.chunk_fused, 5);
  // A: k, b in, A out; A in, Ai out; Ai, k, v, b in, w, u out; k, w, u in, h, v_new out; q, k, v_new, h in, o out.
  EXPECT_EQ(t.chunk_stages, (2 + 4) + (4 + 1) + (4 + 2) + (3 + 2) + (4 + 1));
}

TEST(wy_errors, reference_agrees_with_more_bits) {
  const auto s = detail::chunks::make_sequence(detail::chunks::key_kind::cosine_90, {1.9, 2}, 200, 8, 2, 1, 7);
  const reference r = run_reference(s);
  const auto exact = recurrent(convert<real<256>>(s, [](double x) { return lift<real<256>>(x); }));
  for (std::size_t i = 0; i < r.o.size(); ++i) EXPECT_EQ(r.o[i], round_to<double>(exact.o.data()[i]));
  for (std::size_t i = 0; i < r.state.size(); ++i) EXPECT_EQ(r.state[i], round_to<double>(exact.final_state.data()[i]));
}

TEST(wy_errors, order_as_the_formats_do) {
  const auto survey = survey_errors({}, small());
  ASSERT_TRUE(survey.complete);
  EXPECT_EQ(survey.horizons, (std::vector<std::size_t>{64, 128, 256}));
  for (std::size_t which = 0; which < regimes.size(); ++which) {
    for (std::size_t k = 0; k < 3; ++k) {
      const auto error = [&](std::string_view arithmetic) { return survey.at(which, arithmetic).by_chunk[k].o; };
      EXPECT_GT(error("bf16"), 4 * error("fp16"));
      EXPECT_GT(error("fp16"), 50 * error("fp32"));
      EXPECT_GT(error("fp32"), 1e6 * error("fp64"));
      EXPECT_GT(error("bf16 native"), error("bf16"));
      EXPECT_LT(error("fp64"), 1e-13);
      EXPECT_NEAR(error("tf32") / error("fp16"), 1, 0.2);
    }
    EXPECT_EQ(survey.at(which, "fp32").recurrent_accumulator.o, survey.at(which, "fp32").recurrent_storage.o);
    EXPECT_GT(survey.at(which, "bf16").recurrent_storage.o, 100 * survey.at(which, "bf16").recurrent_accumulator.o);
  }
  EXPECT_THROW((void)survey.at(0, "fp128"), domain_error);
}

report run_small(const run_options& options, const error_survey& survey) {
  report r = reports::empty("wy");
  add_cost(options, small(), r);
  add_errors(options, small(), survey, r);
  return r;
}

TEST(wy_study, sections_make_a_valid_report_that_threads_do_not_change) {
  const report a = reports::alike_on_two_threads(
      [](const run_options& options) { return run_small(options, survey_errors(options, small())); });
  EXPECT_EQ(reports::value(a, "counts-are-polynomials", "equal"), reports::value(a, "counts-are-polynomials", "cases"));
  EXPECT_EQ(a.figures.size(), 3U);
  EXPECT_EQ(a.tables.size(), 3U);
}

// Every sentence is chosen by its numbers: other numbers, another sentence.
TEST(wy_study, findings_turn_red_on_other_numbers) {
  auto survey = survey_errors({}, small());
  const report before = run_small({}, survey);
  for (error_curve& c : survey.curves) {
    for (error_pair& e : c.by_chunk) e.o = 1;
    c.recurrent_storage.o = 0.5;
    c.by_horizon.back() = 7;
  }
  const report after = run_small({}, survey);
  for (const char* id : {"stages-and-chunk-length", "one-format-and-chunk-length", "error-is-proportional-to-u",
                         "against-the-recurrence", "horizon-levels-off"}) {
    EXPECT_NE(reports::found(before, id).statement, reports::found(after, id).statement) << id;
  }
  EXPECT_NE(reports::found(after, "one-format-and-chunk-length").statement.find("matters little"), std::string::npos);
  EXPECT_NE(reports::found(after, "error-is-proportional-to-u").statement.find("more than the storing"), std::string::npos);
}

TEST(wy_study, interrupted_keeps_the_cost_and_says_what_is_missing) {
  const report r = reports::interrupted("wy");
  EXPECT_EQ(r.unfinished.size(), 1U);
  EXPECT_EQ(r.findings.size(), 2U);
}

}  // namespace
}  // namespace deltaproof
