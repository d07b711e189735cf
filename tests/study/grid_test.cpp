// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT

#include "deltaproof/study/grid.hpp"

#include <atomic>
#include <chrono>
#include <stdexcept>
#include <thread>

#include "deltaproof/number/format.hpp"
#include "support/study.hpp"

namespace deltaproof {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

const grid_axis<std::size_t> chunks{"chunk", {16, 32}, {16, 32, 64}};
const grid_axis<format> stores{"store", {fp32, bf16}};

frame products(const run_options& options) {
  return grid(
      options, "products", {"product"},
      [](std::size_t chunk, const format& store, std::size_t draw) -> frame_row {
        return {static_cast<double>(chunk * draw) * (store == fp32 ? 1 : -1)};
      },
      chunks, stores, draws(3, 5));
}

TEST(grid, has_a_row_for_each_combination_on_any_number_of_threads) {
  const frame one = products({});
  EXPECT_THAT(one.columns(), ElementsAre("chunk", "store", "draw", "product"));
  ASSERT_EQ(one.size(), 12U);
  EXPECT_THAT(one.rows()[1], ElementsAre(cell(16), cell("fp32"), cell(1), cell(16.0)));
  EXPECT_THAT(one.rows()[11], ElementsAre(cell(32), cell("bf16"), cell(2), cell(-64.0)));
  run_options threads;
  threads.threads = 4;
  EXPECT_EQ(products(threads).rows(), one.rows());
  run_options full;
  full.full = true;
  EXPECT_EQ(products(full).size(), 30U);
}

const grid_axis<std::size_t>& thousand() {
  static const grid_axis<std::size_t> axis = draws(1000, 1000);
  return axis;
}

TEST(grid, calls_each_once_and_tells_how_far_it_is) {
  for (const unsigned threads : {0U, 1U, 2U, 8U}) {
    std::vector<std::atomic<int>> calls(1000);
    run_options options;
    options.threads = threads;
    double last = 0;
    options.on_progress = [&](std::string_view stage, double fraction) {
      EXPECT_EQ(stage, "stage");
      EXPECT_GT(fraction, last);
      last = fraction;
    };
    const auto count = [&](std::size_t i) { return frame_row{++calls[i]}; };
    EXPECT_EQ(grid(options, "stage", {"calls"}, count, thousand()).where("calls", 1).size(), calls.size());
    EXPECT_EQ(last, 1);
    EXPECT_EQ(grid(options, "stage", {"calls"}, count, draws(0, 0)).size(), 0U);
  }
}

TEST(grid, interrupted_or_failing_starts_no_further_case) {
  for (const unsigned threads : {1U, 4U}) {
    for (const bool fails : {false, true}) {
      std::vector<std::atomic<int>> calls(1000);
      std::atomic<bool> interrupted{false}, reached{false};
      run_options options;
      options.threads = threads;
      options.interrupted = &interrupted;
      const auto run = [&] {
        (void)grid(
            options, "stage", {},
            [&](std::size_t i) -> frame_row {
              ++calls[i];
              // Those behind case 50 wait for it: its thread may be held up here while others run on.
              while (i > 50 && !reached) std::this_thread::yield();
              if (i > 50) std::this_thread::sleep_for(std::chrono::milliseconds(1));
              if (i == 50 && !fails) interrupted = true;
              if (i == 50) reached = true;
              if (i == 50 && fails) throw std::runtime_error("fifty");
              return {};
            },
            thousand());
      };
      if (fails) {
        EXPECT_THROW(run(), std::runtime_error);
      } else {
        EXPECT_THROW(run(), interrupted_part);
      }
      const auto made = static_cast<std::size_t>(std::count(calls.begin(), calls.end(), 1));
      EXPECT_GT(made, 50U);
      // Between a throw and its being noticed others may start a few; none after an interruption.
      EXPECT_LE(made, fails && threads > 1 ? 500U : 50U + threads);
      for (std::size_t i = 0; i < calls.size(); ++i) EXPECT_EQ(calls[i].load(), i < made ? 1 : 0);
    }
  }
}

TEST(grid, may_give_several_rows_at_a_place) {
  const frame f = grid(
      run_options{}, "steps", {"t", "value"},
      [](std::size_t chunk) { return std::vector<frame_row>{{0, 1.0}, {1, static_cast<double>(chunk)}}; }, chunks);
  EXPECT_EQ(f.size(), 4U);
  EXPECT_THAT(f.rows()[3], ElementsAre(cell(32), cell(1), cell(32.0)));
}

TEST(grid, interrupted_says_how_far_it_came) {
  std::atomic<bool> stop{false};
  run_options options;
  options.interrupted = &stop;
  const results r = in_parts(options, {{"first", [](const run_options&, results& into) { into.values("kept", {{"x", 1}}); }},
                                       {"second",
                                        [&](const run_options& o, results& into) {
                                          into.values("dropped", {{"x", 1}});
                                          (void)grid(
                                              o, "s", {"x"},
                                              [&](std::size_t) -> frame_row {
                                                stop = true;
                                                return {1};
                                              },
                                              chunks);
                                        }},
                                       {"third", [](const run_options&, results&) { FAIL(); }}});
  EXPECT_EQ(r.groups.size(), 1U);
  ASSERT_EQ(r.unfinished.size(), 2U);
  EXPECT_EQ(r.unfinished[0].name, "second");
  EXPECT_EQ(r.unfinished[0].done, 1U);
  EXPECT_EQ(r.unfinished[0].all, 2U);
  EXPECT_EQ(r.unfinished[1].all, 0U);
}

TEST(frame, aggregates_leave_out_empty_cells) {
  frame f({"how", "error"});
  for (const double x : {3.0, 1.0, 2.0, 10.0}) f.add({"a", x});
  f.add({"b", HUGE_VAL}).add({"b", cell()}).add({"b", -1.0}).add({"b", std::nan("")});
  const frame by = f.by({"how"}, {{"n", "error", size_of},
                                  {"worst", "error", worst},
                                  {"median", "error", median},
                                  {"least", "error", least},
                                  {"greatest", "error", greatest},
                                  {"tenth", "error", quantile(0.9)}});
  EXPECT_THAT(by.rows()[0], ElementsAre(cell("a"), cell(4), cell(10.0), cell(2.0), cell(1.0), cell(10.0), cell(3.0)));
  EXPECT_THAT(by.rows()[1], ElementsAre(cell("b"), cell(3), cell(HUGE_VAL), cell(-1.0), cell(-1.0), cell(HUGE_VAL), cell(-1.0)));
  EXPECT_EQ(as_number(mean(std::vector<double>{1, 2, 6})), 3);
  EXPECT_EQ(as_number(total(std::vector<double>{1, 2, 6})), 9);
  EXPECT_TRUE(is_missing(median({})));
}

TEST(frame, finds_one_row_and_refuses_what_is_not_there) {
  frame f = products({});
  EXPECT_EQ(f.find({{"chunk", 32}, {"store", "bf16"}, {"draw", 1}}, "product"), -32);
  EXPECT_THROW((void)f.find({{"chunk", 32}}, "product"), domain_error);
  EXPECT_THROW((void)f.find({{"chunk", 33}}, "product"), domain_error);
  const auto at = f.finder({"store", "draw", "chunk"});
  EXPECT_EQ(at("bf16", 1, 32, "product"), -32);
  EXPECT_THROW((void)at("bf16", 1, "product"), domain_error);
  EXPECT_THROW(f.add({1, 2}), domain_error);
  f.derive("half", [](const auto& row) { return row.number("product") / 2; });
  EXPECT_EQ(f[1].number("half"), 8);
  EXPECT_EQ(f.where("store", "bf16").size(), 6U);
  EXPECT_THAT(testing::thrown([&] { (void)f.numbers("products"); }), HasSubstr("did you mean \"product\""));
}

TEST(frame, refuses_a_row_that_is_not_there_and_rows_outlive_it) {
  const frame f = products({});
  EXPECT_THROW((void)f.where("store", "fp8").at(0, "product"), domain_error);
  EXPECT_THROW((void)f[f.size()].number("product"), domain_error);
  static_assert(!std::is_reference_v<decltype(products({}).rows())>);
  std::size_t rows = 0;
  for (const frame_row& row : products({}).rows()) rows += row.size() == 4 ? 1 : 0;
  EXPECT_EQ(rows, f.size());
}

TEST(results, are_given_once) {
  results r;
  r.values("a", {{"x", 1}});
  EXPECT_THROW(r.values("a", {{"x", 2}}), domain_error);
  (void)r.table("t", frame({"x"}));
  EXPECT_THROW((void)r.table("t", frame({"x"})), domain_error);
}

}  // namespace
}  // namespace deltaproof
