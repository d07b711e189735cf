// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
#include "deltaproof/files/exchange.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cmath>
#include <filesystem>
#include <limits>
#include <numeric>

#include "deltaproof/support/errors.hpp"
#include "files/corpus.hpp"
#include "files/parse.hpp"
#include "support/thrown.hpp"

namespace deltaproof {
namespace {

using ::testing::HasSubstr;
using testing::packed_problem;
using testing::parse;
using testing::plain_problem;

bool same(const std::optional<tensor>& a, const std::optional<tensor>& b) {
  return a.has_value() == b.has_value() && (!a || same_bits(*a, *b));
}

void expect_same(const problem& a, const problem& b) {
  EXPECT_EQ(a.op, b.op);
  EXPECT_TRUE(same_bits(a.q, b.q) && same_bits(a.k, b.k) && same_bits(a.v, b.v) && same_bits(a.beta, b.beta));
  EXPECT_TRUE(same(a.g, b.g) && same(a.initial_state, b.initial_state));
  EXPECT_EQ(a.cu_seqlens, b.cu_seqlens);
  EXPECT_EQ(a.scale, b.scale);
  EXPECT_EQ(a.qk_l2norm, b.qk_l2norm);
  EXPECT_EQ(a.l2norm_epsilon, b.l2norm_epsilon);
  EXPECT_EQ(a.rule, b.rule);
  EXPECT_EQ(a.beta_activation, b.beta_activation);
  EXPECT_EQ(a.num_householder, b.num_householder);
  EXPECT_EQ(a.note, b.note);
}

tensor counting(const format& f, const std::vector<std::size_t>& shape, const std::string& name) {
  std::vector<double> values(element_count(shape));
  std::iota(values.begin(), values.end(), 1);
  return tensor::from_doubles(f, shape, values, name);
}

problem full_problem() {
  problem p = packed_problem();
  p.q = counting(fp32, {1, 3, 1, 2}, "q");
  p.g = tensor::from_doubles(fp32, {1, 3, 2, 2},
                             std::vector<double>{0, -1, -0.0, 2, -std::numeric_limits<double>::infinity(), 0, 0, 0, 0, 0, 0, 0});
  p.initial_state = counting(fp64, {2, 2, 2, 3}, "");
  p.scale = 0.1;
  p.qk_l2norm = true;
  p.l2norm_epsilon = 1e-5;
  p.rule = rule_kind::crank_nicolson;
  p.beta_activation = activation_kind::two_sigmoid;
  p.note = "a \"note\"";
  return p;
}

TEST(exchange, reads_the_problem_it_wrote_bit_for_bit) {
  for (const problem& p : {full_problem(), plain_problem(), packed_problem()}) {
    notes_list notes;
    const std::string bytes = problem_bytes(p);
    const problem back = parse_problem(parse(bytes), notes);
    expect_same(p, back);
    EXPECT_TRUE(notes.empty()) << notes.front();
    EXPECT_EQ(problem_bytes(back), bytes);
  }
}

TEST(exchange, writes_every_scale_so_that_it_reads_back) {
  problem p = plain_problem();
  for (const double scale : {0.0, -1.0, 0x1.fffffffffffffp1023, 0x1p-1022, 0x1p-1074, 1.0 / 3, 0.125}) {
    p.scale = scale;
    notes_list notes;
    EXPECT_EQ(parse_problem(parse(problem_bytes(p)), notes).scale, scale);
  }
  for (const double scale : {std::numeric_limits<double>::infinity(), std::numeric_limits<double>::quiet_NaN()}) {
    p.scale = scale;
    EXPECT_THROW((void)problem_bytes(p), domain_error);
  }
}

TEST(exchange, takes_the_root_of_K_for_an_absent_scale) {
  notes_list notes;
  const std::string bytes = testing::corpus::problem_file().drop("scale").bytes();
  EXPECT_EQ(parse_problem(parse(bytes), notes).scale, 1);
  EXPECT_EQ(default_scale(64), 0.125);
  EXPECT_EQ(default_scale(128), 0.08838834764831845);
}

TEST(exchange, takes_the_published_defaults_for_absent_keys) {
  notes_list notes;
  const problem p = parse_problem(parse(testing::corpus::problem_file().bytes()), notes);
  EXPECT_EQ(p.rule, rule_kind::euler);
  EXPECT_EQ(p.beta_activation, activation_kind::none);
  EXPECT_EQ(p.num_householder, 1U);
  EXPECT_EQ(p.l2norm_epsilon, 1e-6);
  EXPECT_EQ(problem_bytes(p).find("l2norm_eps"), std::string::npos) << "files of before stay what they were";
  EXPECT_FALSE(p.qk_l2norm || p.g.has_value() || p.initial_state.has_value());
  EXPECT_TRUE(p.note.empty());
}

TEST(exchange, notes_extra_keys_of_a_problem) {
  notes_list notes;
  expect_same(parse_problem(parse(problem_bytes(plain_problem(), {{"maker", "me"}})), notes), plain_problem());
  ASSERT_EQ(notes.size(), 1U);
  EXPECT_THAT(notes[0], HasSubstr("\"maker\" is unknown; ignored"));
}

TEST(exchange, says_what_asks_for_a_tensor_or_a_key) {
  using testing::corpus::problem_file;
  const auto refusal = [](const testing::raw_file& f) {
    notes_list notes;
    return testing::thrown([&] { (void)parse_problem(parse(f.bytes()), notes); });
  };
  EXPECT_THAT(refusal(problem_file().add("cu_seqlens", "I16", "[2]", 4)),
              HasSubstr("cu_seqlens: dtype I16 where I64 is required; save it as int64"));
  auto gated = problem_file().add("g", "F32", "[1,1,1]", 4);
  EXPECT_THAT(refusal(testing::raw_file(gated).key("gate_activation", "softplus")),
              HasSubstr("tensor A_log is missing; gate_activation = softplus needs it"));
  gated.add("A_log", "F32", "[1]", 4);
  EXPECT_THAT(refusal(testing::raw_file(gated).key("gate_activation", "bounded")),
              HasSubstr("gate_lower_bound is absent; gate_activation = bounded needs it"));
  notes_list notes;
  (void)parse_problem(parse(gated.bytes()), notes);
  EXPECT_THAT(notes, ::testing::Contains(HasSubstr("tensor \"A_log\" is ignored: gate_activation is none")));
}

class written_result : public ::testing::Test {
 protected:
  written_result() : path_(std::filesystem::temp_directory_path() / ("deltaproof-result-" + std::to_string(::getpid()))) {}
  ~written_result() override { std::filesystem::remove(path_); }

  std::filesystem::path path_;
};

TEST_F(written_result, reads_back_bit_for_bit) {
  const problem p = packed_problem();
  result r;
  r.o = counting(bf16, {1, 3, 2, 3}, "anything");
  r.final_state = counting(fp32, {2, 2, 3, 2}, "");
  r.state_layout = layout_kind::vk;
  r.stages.emplace("A", counting(fp32, {1, 3, 2, 2}, ""));
  r.stages.emplace("h", counting(fp32, {1, 2, 2, 2, 3}, ""));
  r.kernel = "a kernel";
  r.producer = "a test";
  r.path = path_kind::chunk;
  r.chunk_size = 2;
  r.problem_sha256 = testing::known_sha256;
  const std::vector<tensor> extra{counting(fp64, {1, 3, 2, 3}, "o_lo")};
  write_result(path_, r, {{"radius.o", "1e-9"}, {"colour", "blue"}}, extra);
  notes_list notes;
  const result back = read_result(path_, p, testing::known_sha256, notes);
  EXPECT_TRUE(same_bits(back.o, r.o));
  EXPECT_TRUE(same(back.final_state, r.final_state));
  ASSERT_EQ(back.stages.size(), 2U);
  EXPECT_TRUE(same_bits(back.stages.at("A"), r.stages.at("A")));
  EXPECT_TRUE(same_bits(back.stages.at("h"), r.stages.at("h")));
  EXPECT_EQ(back.kernel, r.kernel);
  EXPECT_EQ(back.producer, r.producer);
  EXPECT_EQ(back.path, r.path);
  EXPECT_EQ(back.chunk_size, r.chunk_size);
  EXPECT_EQ(back.state_layout, r.state_layout);
  EXPECT_EQ(back.problem_sha256, r.problem_sha256);
  EXPECT_EQ(back.metadata.at("radius.o"), "1e-9");
  ASSERT_EQ(notes.size(), 2U);
  EXPECT_THAT(notes[0], HasSubstr("\"o_lo\" is unknown"));
  EXPECT_THAT(notes[1], HasSubstr("\"colour\" is unknown"));
}

/// What `oracle` writes beside a reference is known, and checked; of another path's result it is not.
TEST(sum_parts, of_a_reference_are_known_and_checked) {
  result r;
  r.o = counting(fp64, {1, 3, 2, 3}, "o");
  r.path = path_kind::reference;
  const safetensors_metadata extra{{"radius.o", "1"}, {"undecided.o", "0"}, {"fallbacks", "none"}, {"problem_sha256", "aa"}};
  const auto notes_of = [&](const std::vector<tensor>& parts) {
    notes_list notes;
    (void)parse_result(parse(result_bytes(r, extra, parts)), packed_problem(), "aa", notes);
    return notes;
  };
  const tensor lo = counting(fp64, {1, 3, 2, 3}, "o_lo"), lo2 = lo.named("o_lo2"), lo4 = lo.named("o_lo4");
  EXPECT_TRUE(notes_of({lo, lo2}).empty());
  const notes_list gap = notes_of({lo, lo4});
  ASSERT_EQ(gap.size(), 1U);
  EXPECT_THAT(gap[0], HasSubstr("\"o_lo4\" is unknown"));
  EXPECT_THROW(notes_of({counting(fp32, {1, 3, 2, 3}, "o_lo")}), format_error);
  EXPECT_THROW(notes_of({counting(fp64, {1, 3, 2, 2}, "o_lo")}), shape_error);
  EXPECT_EQ(sum_parts(parse(result_bytes(r, extra, std::vector<tensor>{lo, lo2, lo4})), "o").size(), 3U);
  EXPECT_EQ(part_name("final_state", 3), "final_state_lo3");
  r.path = path_kind::recurrent;
  EXPECT_EQ(notes_of({lo}).size(), 2U);  // the tensor and `fallbacks`
}

TEST_F(written_result, says_which_hash_was_wanted) {
  result r;
  r.o = counting(bf16, {1, 3, 2, 3}, "o");
  r.problem_sha256 = testing::known_sha256;
  write_result(path_, r);
  notes_list notes;
  try {
    (void)read_result(path_, packed_problem(), std::string(64, '6'), notes);
    FAIL() << "read as a result of another problem";
  } catch (const format_error& e) {
    EXPECT_THAT(e.what(), HasSubstr(testing::known_sha256));
    EXPECT_THAT(e.what(), HasSubstr(std::string(64, '6')));
    EXPECT_THAT(e.what(), HasSubstr(path_.string()));
  }
}

TEST(final_state, comes_in_key_value_order_whatever_the_file_has) {
  result r;
  EXPECT_FALSE(r.final_state_kv().has_value());
  r.final_state = counting(bf16, {1, 2, 2, 3}, "final_state");
  EXPECT_TRUE(same(r.final_state_kv(), r.final_state));
  r.state_layout = layout_kind::vk;
  const tensor kv = *r.final_state_kv();
  EXPECT_EQ(kv.shape(), (std::vector<std::size_t>{1, 2, 3, 2}));
  EXPECT_EQ(kv.to_doubles(), (std::vector<double>{1, 4, 2, 5, 3, 6, 7, 10, 8, 11, 9, 12}));
  EXPECT_EQ(kv.dtype(), "BF16");
  r.final_state = tensor::from_doubles(fp32, {0, 2, 2, 3}, std::vector<double>{}, "final_state");
  EXPECT_EQ(r.final_state_kv()->shape(), (std::vector<std::size_t>{0, 2, 3, 2}));
}

TEST(chunk_count, restarts_at_each_sequence) {
  problem p = packed_problem();
  EXPECT_EQ(chunk_count(p, 1), 3U);
  EXPECT_EQ(chunk_count(p, 2), 2U);
  EXPECT_EQ(chunk_count(p, 64), 2U);
  p.cu_seqlens = {0, 0, 3};
  EXPECT_EQ(chunk_count(p, 2), 2U);
  EXPECT_EQ(chunk_count(plain_problem(), 4), 2U);  // 3 tokens of 2 steps in each batch
  EXPECT_THROW((void)chunk_count(p, 0), domain_error);
}

}  // namespace
}  // namespace deltaproof
