// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
#include "deltaproof/files/golden.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <set>
#include <sstream>

#include "deltaproof/inputs/regimes.hpp"
#include "deltaproof/support/errors.hpp"
#include "files/parse.hpp"
#include "oracle/slow_reference.hpp"

namespace deltaproof {
namespace {

using ::testing::HasSubstr;
using testing::parse;
using testing::slow_real;
using testing::slow_solve;

const double nan = std::numeric_limits<double>::quiet_NaN();

problem gated(std::size_t T, std::size_t K, std::size_t V) {
  generation g;
  g.regime = "model-gates";
  g.tokens = T;
  g.key_dim = K;
  g.value_dim = V;
  g.key_heads = 2;
  return generate(g);
}

golden_request bits(std::size_t n) {
  golden_request asked;
  asked.bits = n;
  asked.threads = 1;
  return asked;
}

std::string file_of(const golden& truth, const golden_request& asked) {
  return result_bytes(result_of(truth, asked), {}, low_parts_of(truth));
}

/// Every part against the rest that 1000-bit reals leave, and the sum against them within the radius that the file states.
void expect_rounded_rests(const std::vector<tensor>& parts, const std::vector<slow_real>& want, double radius) {
  slow_real most = 0;
  for (std::size_t i = 0; i < want.size(); ++i) {
    slow_real rest = want[i];
    for (const tensor& part : parts) {
      ASSERT_EQ(part.at(i), static_cast<double>(rest)) << part.name() << " " << i;
      rest -= part.at(i);
    }
    if (abs(rest) > most) most = abs(rest);
  }
  EXPECT_LE(most, slow_real(radius));
  EXPECT_GT(most, slow_real(radius) / 1024);  // the bound is of the sum, not of a part
}

TEST(golden, a_sum_is_the_truth_rest_by_rest) {
  const problem p = gated(24, 5, 3);
  const auto want = slow_solve(p);
  for (const std::size_t n : {53U, 54U, 106U, 107U, 200U, 400U}) {
    const golden_request asked = bits(n);
    const golden truth = make_golden(p, asked);
    notes_list notes;
    const safetensors_file file = parse(file_of(truth, asked));
    (void)parse_result(file, p, "", notes);
    for (const auto& note : notes) EXPECT_THAT(note, ::testing::Not(HasSubstr("unknown")));
    const std::vector<tensor> o = sum_parts(file, "o"), state = sum_parts(file, "final_state");
    ASSERT_EQ(o.size(), (n + 52) / 53);
    ASSERT_EQ(state.size(), o.size());
    EXPECT_EQ(file.metadata("undecided.o"), "0");
    EXPECT_EQ(file.metadata("undecided.final_state"), "0");
    expect_rounded_rests(o, want.o, std::stod(std::string(file.metadata("radius.o").value())));
    expect_rounded_rests(state, want.final_state, std::stod(std::string(file.metadata("radius.final_state").value())));
  }
}

TEST(golden, a_sum_does_not_depend_on_threads) {
  const problem p = gated(40, 7, 19);
  golden_request asked = bits(160);
  const std::string one = file_of(make_golden(p, asked), asked);
  asked.threads = 3;
  EXPECT_EQ(file_of(make_golden(p, asked), asked), one);
}

/// Two tokens that write nothing and read the first row of the state (start, away), whose second channel has weight `small`.
problem reader(double start, double away, double small) {
  problem p;
  p.q = tensor::from_doubles(fp64, {1, 2, 1, 2}, std::vector<double>{1, small, 1, small}, "q");
  p.k = tensor::from_doubles(fp64, {1, 2, 1, 2}, std::vector<double>(4, 0.0), "k");
  p.v = tensor::from_doubles(fp64, {1, 2, 1, 1}, std::vector<double>(2, 1.0), "v");
  p.beta = tensor::from_doubles(fp64, {1, 2, 1}, std::vector<double>(2, 0.5), "beta");
  p.scale = 1;
  p.initial_state = tensor::from_doubles(fp64, {1, 1, 2, 1}, std::vector<double>{start, away}, "initial_state");
  return p;
}

TEST(golden, exact_numbers_fill_as_many_parts_as_they_have) {
  const problem p = reader(1, 0x1p-100, -0x1p-100);  // o = 1 - 2^-200
  const golden truth = make_golden(p, bits(300));
  ASSERT_EQ(truth.o.parts.size(), 6U);
  EXPECT_EQ(truth.o.parts[0].at(1), 1.0);
  EXPECT_EQ(truth.o.parts[1].at(1), -0x1p-200);
  for (std::size_t c = 2; c < 6; ++c) EXPECT_EQ(truth.o.parts[c].at(1), 0.0);
  EXPECT_EQ(truth.o.radius, 0);
  const golden two = make_golden(p, bits(53));
  EXPECT_EQ(two.o.parts.size(), 1U);
  EXPECT_GE(two.o.radius, 0x1p-200);
  EXPECT_LE(two.o.radius, 0x1p-90);
}

/// 1 + 2^-20 beside a number near 2^-62 that is not dyadic: 128 bits know two parts of it.
TEST(golden, keeps_the_parts_that_are_certain_and_lists_the_others) {
  problem p = reader(1 + 0x1p-20, 0.5, 0);
  p.op = op_kind::kda;
  p.g = tensor::from_doubles(fp64, {1, 2, 1, 2}, std::vector<double>{0, 0, 0, -0.5}, "g");
  p.q = tensor::from_doubles(fp64, {1, 2, 1, 2}, std::vector<double>{1, 0, 1, 0x1p-60}, "q");
  golden_request asked = bits(160);
  asked.max_bits = 160;
  const golden truth = make_golden(p, asked);
  ASSERT_EQ(truth.o.parts.size(), 4U);
  EXPECT_EQ(truth.o.parts[0].at(1), 1 + 0x1p-20);
  EXPECT_FALSE(std::isnan(truth.o.parts[1].at(1)));
  EXPECT_TRUE(std::isnan(truth.o.parts[3].at(1)));
  EXPECT_EQ(truth.o.undecided, 1U);
  EXPECT_EQ(truth.o.undecided_indices, "1");
  const result r = result_of(truth, asked);
  EXPECT_EQ(r.metadata.at("undecided.o.indices"), "1");
  EXPECT_EQ(r.metadata.at("undecided.o"), "1");
}

TEST(golden, refuses_bits_of_a_narrower_format) {
  golden_request asked = bits(100);
  asked.round = bf16;
  EXPECT_THROW((void)make_golden(gated(1, 1, 1), asked), format_error);
  EXPECT_THROW((void)make_golden(gated(1, 1, 1), bits(1100)), domain_error);
}

/// Reads a list back the slow way.
std::set<std::size_t> members(const std::string& text) {
  std::set<std::size_t> out;
  std::istringstream in(text);
  for (std::string run; std::getline(in, run, ',');) {
    const auto dash = run.find('-');
    const std::size_t first = std::stoul(run), last = dash == std::string::npos ? first : std::stoul(run.substr(dash + 1));
    for (std::size_t i = first; i <= last; ++i) EXPECT_TRUE(out.insert(i).second) << i;
  }
  return out;
}

index_list listed(const std::vector<double>& values, std::size_t most = most_index_bytes) {
  return nan_indices(tensor::from_doubles(fp32, {values.size()}, values, "x"), most);
}

TEST(nan_indices, are_all_there) {
  EXPECT_EQ(listed({}).text, "");
  EXPECT_EQ(listed({nan}).text, "0");
  EXPECT_EQ(listed({1, nan, nan, 2, nan}).text, "1-2,4");
  const std::size_t n = 3 * 4096 + 7;  // more than are read at a time
  std::vector<double> all(n, nan), every_second(n, 0.0), thirds(n, nan);
  for (std::size_t i = 0; i < n; ++i) {
    if (i % 2 == 1) every_second[i] = nan;
    if (i % 3 == 0) thirds[i] = 1;
  }
  EXPECT_EQ(listed(all).text, "0-12294");
  EXPECT_EQ(listed(all).count, n);
  for (const auto& values : {every_second, thirds}) {
    const index_list got = listed(values);
    const std::set<std::size_t> indices = members(got.text);
    EXPECT_EQ(indices.size(), got.count);
    for (std::size_t i = 0; i < n; ++i) ASSERT_EQ(indices.contains(i), std::isnan(values[i])) << i;
  }
}

TEST(nan_indices, say_where_they_are_cut) {
  const std::vector<double> values{nan, 0, nan, 0, nan};
  EXPECT_EQ(listed(values, 5).text, "0,2,4");
  const index_list cut = listed(values, 4);
  EXPECT_EQ(cut.text, "0,2,...");
  EXPECT_EQ(cut.count, 3U);
}

}  // namespace
}  // namespace deltaproof
