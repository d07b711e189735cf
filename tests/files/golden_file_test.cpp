// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
//
// A golden file that is written as it is decided: the bytes of one that is written from memory, and memory that does not grow
// with the number of tokens.

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <stdexcept>
#include <string>
#include <vector>

#include "deltaproof/files/golden.hpp"
#include "deltaproof/files/safetensors.hpp"
#include "deltaproof/inputs/regimes.hpp"
#include "deltaproof/oracle/gradients.hpp"
#include "deltaproof/support/errors.hpp"
#include "deltaproof/support/write_file.hpp"

namespace deltaproof {
namespace {

using ::testing::IsEmpty;

std::string read_all(const std::filesystem::path& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

class golden_file : public ::testing::Test {
 protected:
  golden_file() : folder_{std::filesystem::temp_directory_path() / ("deltaproof-golden-file-" + std::to_string(::getpid()))} {
    std::filesystem::create_directories(folder_);
  }
  ~golden_file() override { std::filesystem::remove_all(folder_); }

  [[nodiscard]] std::vector<std::string> names() const {
    std::vector<std::string> out;
    for (const auto& entry : std::filesystem::directory_iterator(folder_)) out.push_back(entry.path().filename().string());
    return out;
  }

  void expect_same_file(const problem& p, golden_request asked) {
    asked.threads = 1;
    const golden want = make_golden(p, asked);
    result r = result_of(want, asked);
    r.problem_sha256 = "of the problem";
    const std::string bytes = result_bytes(r, {}, low_parts_of(want));
    for (const unsigned threads : {1U, 3U}) {
      asked.threads = threads;
      const golden got = write_golden(folder_ / "r", p, asked, r.problem_sha256);
      EXPECT_TRUE(read_all(folder_ / "r") == bytes);
      EXPECT_EQ(got.o.undecided, want.o.undecided);
      EXPECT_EQ(got.tiers, want.tiers);
      EXPECT_THAT(names(), ::testing::ElementsAre("r"));
    }
  }

  /// Gradients as they are written slice by slice, against those kept in memory, and against whole gradients with their radii.
  void expect_same_gradients(const problem& p, golden_request asked) {
    const golden_gradients want = make_golden_gradients(p, asked);
    question q;
    q.round_output = q.round_state = asked.round;
    q.max_bits = asked.max_bits;
    q.always_exact = true;
    if (asked.bits != 0) q.relative_radius = std::ldexp(1.0, -static_cast<int>(53 * parts_of(asked.bits)) - 8);
    const reference_gradients whole = solve_gradients(p, q);
    EXPECT_EQ(want.tiers, whole.tiers);
    for (const unsigned threads : {1U, 3U}) {
      asked.threads = threads;
      const golden_gradients got = write_golden_gradients(folder_ / "r", p, asked, "of the problem");
      EXPECT_EQ(got.tiers, want.tiers);
      EXPECT_THAT(names(), ::testing::ElementsAre("r"));
      const safetensors_file file = read_safetensors(folder_ / "r");
      ASSERT_EQ(got.tensors.size(), whole.tensors.size());
      for (const auto& [name, t] : whole.tensors) {
        SCOPED_TRACE(name);
        const golden_tensor& kept = want.tensors.at(name);
        EXPECT_EQ(got.tensors.at(name).radius, kept.radius);
        EXPECT_EQ(got.tensors.at(name).undecided_indices, kept.undecided_indices);
        for (std::size_t c = 0; c < kept.parts.size(); ++c)
          EXPECT_TRUE(same_bits(file.load(*file.find(part_name(name, c))), kept.parts[c]));
        std::vector<double> parts(kept.parts.size());
        std::size_t undecided = 0, differ = 0;
        for (std::size_t i = 0; i < t.value.size(); ++i) {
          const double nan = std::nan("");
          if (asked.bits != 0)
            (void)decided_parts(t, i, parts);
          else
            parts[0] = decided_rounding(t, i, asked.round).value_or(nan);
          for (std::size_t c = 0; c < parts.size(); ++c) {
            const double one = kept.parts[c].at(i), other = c > 0 && std::isnan(parts[c - 1]) ? nan : parts[c];
            differ += one == other || (std::isnan(one) && std::isnan(other)) ? 0 : 1;
          }
          undecided += std::isnan(parts.back()) ? 1 : 0;
        }
        EXPECT_EQ(differ, 0U);
        EXPECT_EQ(kept.undecided, undecided);
      }
    }
  }

  std::filesystem::path folder_;
};

golden_request asked_for(const format& round, std::size_t bits = 0) {
  golden_request asked;
  asked.round = round;
  asked.bits = bits;
  return asked;
}

problem of(const char* regime, op_kind op, bool cotangents = false) {
  generation g;
  g.regime = regime;
  g.op = op;
  if (g.regime != "varlen") g.tokens = 600;  // more than a block
  g.key_dim = 5;
  g.value_dim = 3;
  g.key_heads = 1;
  g.value_heads = 2;
  g.batch = g.regime == "varlen" ? 1 : 2;
  if (op == op_kind::gated_delta_product) g.num_householder = 3;
  g.cotangents = cotangents;
  return generate(g);
}

TEST_F(golden_file, holds_the_bytes_of_one_written_from_memory) {
  for (const char* regime : {"typical", "varlen"}) {
    for (const op_kind op : {op_kind::delta_rule, op_kind::gated_delta_rule, op_kind::kda, op_kind::gated_delta_product}) {
      SCOPED_TRACE(std::string(regime) + " " + std::string(name_of(op)));
      const problem p = of(regime, op);
      expect_same_file(p, asked_for(bf16));
      expect_same_file(p, asked_for(fp64));
      expect_same_file(p, asked_for(fp64, 106));
    }
  }
}

/// 600 tokens are several segments, and more than are read at once.
TEST_F(golden_file, holds_gradients_that_were_never_whole) {
  for (const char* regime : {"typical", "varlen"}) {
    for (const op_kind op : {op_kind::delta_rule, op_kind::gated_delta_rule, op_kind::kda, op_kind::gated_delta_product}) {
      SCOPED_TRACE(std::string(regime) + " " + std::string(name_of(op)));
      problem p = of(regime, op, true);
      expect_same_gradients(p, asked_for(bf16));
      expect_same_gradients(p, asked_for(fp64));
      if ((op == op_kind::delta_rule || op == op_kind::kda) != (p.batch() > 1)) continue;  // slow: each op once
      p.qk_l2norm = true;
      p.rule = rule_kind::exact;
      p.beta_activation = activation_kind::sigmoid;
      expect_same_gradients(p, asked_for(fp32));
    }
  }
}

/// Elements that a tier leaves open go to the next, group by group or by themselves; what none decides is listed.
TEST_F(golden_file, holds_gradients_of_several_tiers) {
  problem p = of("typical", op_kind::kda, true);
  golden_request asked = asked_for(fp64);
  asked.max_bits = 53;
  expect_same_gradients(p, asked);
  EXPECT_GT(make_golden_gradients(p, asked).tensors.at("dk").undecided, 0U);
  asked.max_bits = 128;
  expect_same_gradients(p, asked);
  const std::vector<double> zeros(p.d_o->size(), 0.0);
  p.d_o = tensor::from_doubles(fp64, p.d_o->shape(), zeros, "do");
  p.d_final_state = tensor::from_doubles(fp64, p.d_final_state->shape(), std::vector<double>(p.d_final_state->size(), 0x1p900));
  expect_same_gradients(p, asked);  // beyond the columns' range
}

TEST_F(golden_file, lists_what_is_open) {
  const problem p = of("typical", op_kind::kda);
  golden_request asked = asked_for(fp64);
  asked.max_bits = 53;
  expect_same_file(p, asked);
  EXPECT_GT(make_golden(p, asked).o.undecided, 0U);
  asked = asked_for(fp64, 212);
  asked.max_bits = 212;
  expect_same_file(p, asked);
}

TEST_F(golden_file, leaves_nothing_behind_where_it_is_not_finished) {
  const problem p = of("typical", op_kind::delta_rule);
  EXPECT_THROW((void)write_golden(folder_ / "r", p, asked_for(bf16), "", [] { throw std::runtime_error("no"); }),
               std::runtime_error);
  EXPECT_THAT(names(), IsEmpty());
  std::atomic<bool> stop = true;
  golden_request asked = asked_for(bf16);
  asked.stop = &stop;
  EXPECT_TRUE(write_golden(folder_ / "r", p, asked, "").stopped);
  EXPECT_THAT(names(), IsEmpty());
  EXPECT_THROW((void)write_golden(folder_ / "no" / "r", p, asked_for(bf16), ""), format_error);
}

TEST_F(golden_file, is_of_the_problem_that_was_mapped) {
  const problem p = of("typical", op_kind::kda);
  write_problem(folder_ / "p", p);
  const safetensors_file read = read_safetensors(folder_ / "p"), mapped = map_safetensors(folder_ / "p");
  EXPECT_EQ(mapped.sha256(), sha256_hex(read.bytes()));
  notes_list notes;
  const problem from = parse_problem(mapped, notes);
  EXPECT_TRUE(same_bits(from.v, p.v) && same_bits(*from.g, *p.g));
  from.v.forget(0, from.v.size());
  p.v.forget(0, p.v.size());  // of memory nothing is forgotten
  EXPECT_TRUE(same_bits(from.v, p.v));
  EXPECT_FALSE(mapped.changed());
  std::filesystem::last_write_time(folder_ / "p", std::filesystem::last_write_time(folder_ / "p") + std::chrono::seconds(2));
  EXPECT_TRUE(mapped.changed());
  EXPECT_FALSE(read.changed());
}

TEST_F(golden_file, of_any_kind_is_there_as_a_whole_or_not_at_all) {
  write_file(folder_ / "x", "before");
  {
    file_writer out(folder_ / "x");
    out.write("half");
    EXPECT_EQ(read_all(folder_ / "x"), "before");
  }
  EXPECT_EQ(read_all(folder_ / "x"), "before");
  file_writer out(folder_ / "x");
  out.write("af");
  out.write("ter");
  out.finish();
  EXPECT_EQ(read_all(folder_ / "x"), "after");
  const scratch_file scratch(folder_ / "y");
  const std::vector<std::byte> bytes(3, std::byte{7});
  scratch.write(5, bytes);
  std::vector<std::byte> got(3);
  scratch.read(5, got);
  EXPECT_EQ(got, bytes);
  EXPECT_THROW(scratch.read(6, got), format_error);
  EXPECT_THAT(names(), ::testing::ElementsAre("x"));
}

/// Peak resident memory of a process of its own that runs `work`, in kB.
template <class Work>
long peak_of(const Work& work) {
  const pid_t child = fork();
  if (child == 0) {
    try {
      work();
    } catch (...) {
      _exit(1);
    }
    _exit(0);
  }
  int status = 0;
  rusage use{};
  EXPECT_EQ(wait4(child, &status, 0, &use), child);
  EXPECT_EQ(status, 0);
  return use.ru_maxrss;
}

void write_problem_of(const std::filesystem::path& at, std::size_t tokens) {
  generation g;
  g.op = op_kind::gated_delta_rule;
  g.tokens = tokens;
  g.key_dim = g.value_dim = 64;
  g.key_heads = g.value_heads = 1;
  g.cotangents = true;
  write_problem(at, generate(g));
}

/// What `solve` takes of a mapped problem.
template <class Solve>
long peak_of_solving(const std::filesystem::path& at, const Solve& solve) {
  return peak_of([&] {
    notes_list notes;
    golden_request asked = asked_for(fp32);
    asked.threads = 1;
    solve(parse_problem(map_safetensors(at), notes), asked);
  });
}

/// One number a token and column in fp64 is 25 MB more; pages of the mapped file, of 2 MB where the system likes, are not.
TEST_F(golden_file, takes_memory_that_does_not_grow_with_its_tokens) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "a sanitizer's memory is its own";
#endif
  const auto outputs = [&](const problem& p, const golden_request& asked) {
    if (write_golden(folder_ / "r", p, asked, "").o.undecided != 0) throw std::runtime_error("open");
  };
  // A state in pairs is 64 KiB; every sqrt(T) tokens one is kept: 128 of them more.
  const auto gradients = [&](const problem& p, const golden_request& asked) {
    for (const auto& [name, t] : write_golden_gradients(folder_ / "r", p, asked, "").tensors) {
      if (t.undecided != 0) throw std::runtime_error("open");
    }
  };
  // Made by processes of their own, so that their memory does not count.
  EXPECT_GT(peak_of([&] { write_problem_of(folder_ / "few", 16384); }), 0);
  EXPECT_GT(peak_of([&] { write_problem_of(folder_ / "many", 65536); }), 0);
  const auto grows = [&](const auto& solve) {
    const long few = peak_of_solving(folder_ / "few", solve), many = peak_of_solving(folder_ / "many", solve);
    std::printf("%ld and %ld kB\n", few, many);
    return many - few;
  };
  EXPECT_LT(grows(outputs), 16000);
  EXPECT_LT(grows(gradients), 16000 + 128 * 64);
}

}  // namespace
}  // namespace deltaproof
