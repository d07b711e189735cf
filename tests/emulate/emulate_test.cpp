// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
#include "deltaproof/emulate/emulate.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <numbers>
#include <numeric>
#include <string>
#include <vector>

#include "deltaproof/inputs/regimes.hpp"
#include "deltaproof/number/convert.hpp"
#include "deltaproof/number/rounded.hpp"
#include "deltaproof/oracle/reference.hpp"
#include "deltaproof/scan/chunkwise.hpp"
#include "deltaproof/stages/stages.hpp"

namespace deltaproof {
namespace {

namespace fs = std::filesystem;

const plan& preset(std::string_view name) {
  return *std::find_if(plans().begin(), plans().end(), [&](const plan& x) { return x.name == name; });
}

/// Chunk lengths to try a plan with: its own, or some if any will do; 0 on the recurrent path.
std::vector<std::size_t> chunks_of(const plan& x, path_kind path) {
  if (path == path_kind::recurrent) return {0};
  return x.chunk.empty() ? std::vector<std::size_t>{1, 7, 16, 64} : x.chunk;
}

double norm(const matrix<double>& m) {
  double sum = 0;
  for (const double x : m.entries()) sum += x * x;
  return std::sqrt(sum);
}

double distance(const matrix<double>& a, const matrix<double>& b) {
  double sum = 0;
  for (std::size_t i = 0; i < a.size(); ++i) sum += (a.data()[i] - b.data()[i]) * (a.data()[i] - b.data()[i]);
  return std::sqrt(sum);
}

generation small(op_kind op, std::size_t tokens) {
  generation g;
  g.op = op;
  g.tokens = tokens;
  g.key_dim = 16;
  g.value_dim = 12;
  g.key_heads = g.value_heads = 1;
  if (op != op_kind::delta_rule) g.gate = "typical";
  return g;
}

constexpr std::array all_ops{op_kind::delta_rule, op_kind::gated_delta_rule, op_kind::kda, op_kind::gated_delta_product};

// Keys (+-1)/4, beta 1/2 and 1, small integers: all that a kernel forms has few bits, so every plan gives the exact answer.
TEST(emulate, where_everything_is_exact_every_variant_of_every_preset_gives_the_exact_bits) {
  std::size_t runs = 0;
  for (const plan& x : plans()) {
    for (const op_kind op : x.ops) {
      for (const format& dtype : x.dtypes) {
        for (const std::size_t tokens : {5U, 9U}) {
          generation g = small(op, tokens);
          g.regime = "exact";
          g.gate.reset();
          g.dtype = dtype;
          const problem p = generate(g);
          const reference truth = solve(p);
          for (const double r : truth.o.value) ASSERT_EQ(r, lift<double>(round_to<bf16>(r))) << "the family is not exact in bf16";
          for (const path_kind path : x.path) {
            for (const std::size_t chunk : chunks_of(x, path)) {
              for (const plan_variant& v : variants(x, p, path, chunk)) {
                if (v.gate_shift != 0) continue;  // its factors are no powers of two
                const result r = emulate(p, v, {}, 1);
                const auto o = r.o.to_doubles(), state = r.final_state->to_doubles();
                EXPECT_TRUE(std::equal(o.begin(), o.end(), truth.o.value.begin())) << v.name << ", " << options_text(complete(g));
                EXPECT_TRUE(std::equal(state.begin(), state.end(), truth.final_state.value.begin()))
                    << v.name << ", " << options_text(complete(g));
                ++runs;
              }
            }
          }
        }
      }
    }
  }
  EXPECT_GT(runs, 16U * 4U);
}

// T tokens of n steps with K terms each: where steps do not expand, errors add up at most to some T n K roundings of the
// size of the largest state. Unit roundoff 2^-53.
TEST(emulate, in_fp64_chunks_tokens_and_reference_agree) {
  double worst = 0;
  for (const op_kind op : all_ops) {
    for (const std::size_t chunk : {1U, 7U, 16U, 64U}) {
      for (const std::size_t tokens : {chunk - 1, chunk, chunk + 1, 2 * chunk}) {
        if (tokens == 0) continue;
        const problem p = generate(small(op, tokens));
        for (const path_kind path : {path_kind::chunk, path_kind::recurrent}) {
          for (plan_variant v : variants(preset("fp64"), p, path, path == path_kind::chunk ? chunk : 0)) {
            v.o.store = fp64;
            const head_input in = take_head(p, 0, 0);
            const head_output got = emulate_head(in, v), want = reference_run(in);
            const double unit = static_cast<double>(in.rows() * in.key_dim()) * 0x1p-53;
            const double o = distance(got.o, want.o) / (unit * norm(want.o)),
                         state = distance(got.final_state, want.final_state) / (unit * norm(want.final_state));
            EXPECT_LE(o, 8) << v.name << " T = " << tokens << " " << name_of(op);
            EXPECT_LE(state, 8) << v.name << " T = " << tokens << " " << name_of(op);
            worst = std::max({worst, o, state});
          }
        }
      }
    }
  }
  EXPECT_GT(worst, 0);
}

// Whole problems: packed sequences, grouped heads, several batches.
TEST(emulate, every_head_of_every_sequence_lands_in_its_place) {
  for (const char* regime : {"varlen", "gva", "tails", "typical"}) {
    for (const op_kind op : all_ops) {
      generation g;
      g.regime = regime;
      g.op = op;
      g.tokens = 100;
      g.key_dim = 16;
      g.value_dim = 12;
      if (std::string(regime) == "typical") g.batch = 3;
      const problem p = generate(g);
      const reference truth = solve(p);
      for (const path_kind path : {path_kind::chunk, path_kind::recurrent}) {
        const result r = emulate(p, variants(preset("fp64"), p, path, path == path_kind::chunk ? 16 : 0).front(), {}, 2);
        const auto compare = [&](const std::vector<double>& got, const reference_tensor& want, const char* tensor) {
          double error = 0, size = 0;
          for (std::size_t i = 0; i < got.size(); ++i) {
            error = std::max(error, std::fabs(got[i] - want.value[i]));
            size = std::max(size, std::fabs(want.value[i]));
          }
          // A misplaced row is wrong by its own size; o is stored in bf16.
          EXPECT_LE(error, size * (std::string(tensor) == "o" ? unit_roundoff(r.o.element_format()) * 2 : 1e-12))
              << regime << " " << name_of(op) << " " << tensor;
        };
        compare(r.o.to_doubles(), truth.o, "o");
        compare(r.final_state->to_doubles(), truth.final_state, "final_state");
      }
    }
  }
}

using half = rounded<bf16>;
using mixed = arithmetic<half, float, float, sequential>;

sequence<half> sequence_of(const head_input& in) {
  auto s = sequence<half>::zeros(in.tokens(), in.steps_per_token, in.key_dim(), in.value_dim());
  const auto fill = [](std::vector<half>& to, const double* from) {
    for (std::size_t i = 0; i < to.size(); ++i) to[i] = round_to<half>(from[i]);
  };
  fill(s.q, in.q.data());
  fill(s.k, in.k.data());
  fill(s.v, in.v.data());
  fill(s.step, in.beta.data());
  s.initial_state = matrix<half>(in.key_dim(), in.value_dim());
  for (std::size_t i = 0; i < in.state.size(); ++i) s.initial_state.data()[i] = round_to<half>(in.state.data()[i]);
  return s;
}

template <class S>
void expect_same(const matrix<double>& got, const matrix<S>& want, const std::string& what) {
  ASSERT_EQ(got.size(), want.size()) << what;
  std::size_t different = 0;
  for (std::size_t i = 0; i < got.size(); ++i) different += got.data()[i] == static_cast<double>(want.data()[i]) ? 0 : 1;
  EXPECT_EQ(different, 0U) << what;
}

// The emulator and scan's chunkwise share no code: in one arithmetic, bf16 operands and fp32 sums one after the other, they
// promise the same bits, where the inverse multiplies in the same order: plain substitution and merges of two halves.
TEST(emulate, gives_the_bits_of_the_chunkwise_form_in_the_same_arithmetic) {
  for (const char* const method : {"forward", "forward16+block2", "forward16+block"}) {
    for (const std::size_t chunk : {5U, 16U, 32U, 64U}) {
      // General block merges multiply (X_ii L_ij) X_jj here, X_ii (L_ij X_jj) there: the same bits only without merges.
      if (std::string(method) == "forward16+block" && chunk > 16) continue;
      for (const std::size_t tokens : {chunk - 1, 2 * chunk, 3 * chunk + 2}) {
        generation g = small(op_kind::delta_rule, tokens);
        g.beta = "two-sigmoid";
        g.seed = tokens;
        problem p = generate(g);
        p.scale = 1;
        plan_variant v = variants(preset("fla-chunk-delta"), p, path_kind::chunk, 16).front();
        ASSERT_EQ(v.order, sum_order::sequential);
        v.chunk = chunk;
        v.inverse.method = inverse_named(method);
        v.o.store = fp32;
        head_input in = take_head(p, 0, 0);
        for (std::size_t i = 0; i < in.state.size(); ++i) in.state.data()[i] = lift<double>(round_to<half>(in.state.data()[i]));
        emulation_options options;
        options.stages = true;
        const head_output got = emulate_head(in, v, options);
        const auto want = chunkwise<mixed>(sequence_of(in), chunk, inverse_named(method));
        const std::string what =
            std::string(method) + ", C = " + std::to_string(chunk) + ", T = " + std::to_string(tokens) + ", ";
        expect_same(got.A, want.A, what + "A");
        expect_same(got.Ai, want.Ai, what + "Ai");
        expect_same(got.w, want.w, what + "w");
        expect_same(got.u, want.u, what + "u");
        expect_same(got.v_new, want.v_new, what + "v_new");
        for (std::size_t c = 0; c < want.h.size(); ++c) {
          matrix<double> h(want.h[c].rows(), want.h[c].cols());
          std::copy_n(got.h.data() + c * h.size(), h.size(), h.data());
          expect_same(h, want.h[c], what + "h of chunk " + std::to_string(c));
        }
        expect_same(got.o, want.o, what + "o");
        expect_same(got.final_state, want.final_state, what + "final_state");
      }
    }
  }
}

TEST(perturbed, keeps_what_has_a_meaning_and_moves_the_rest_by_two_units_at_most) {
  generation g = small(op_kind::kda, 60);
  g.gate = "reset";
  g.regime = "mad-copy";
  g.dtype = bf16;
  g.initial_state = "normal";
  head_input in = take_head(generate(g), 0, 0);
  in.g(3, 2) = 0;
  in.k(5, 1) = 0;
  const head_input a = perturbed(in, 7), b = perturbed(in, 7), c = perturbed(in, 8);
  std::size_t moved = 0, zeros = 0, infinite = 0;
  const auto compare = [&](const double* was, const double* is, std::size_t count, const format& own, const format& unit) {
    for (std::size_t i = 0; i < count; ++i) {
      if (was[i] == 0 || std::isinf(was[i])) {
        EXPECT_EQ(was[i], is[i]);
        (was[i] == 0 ? zeros : infinite) += 1;
        continue;
      }
      // Two units, and half a unit more where it is rounded to its format again.
      EXPECT_LE(std::fabs(is[i] - was[i]), std::fabs(was[i]) * (4 * unit_roundoff(unit) + 2 * unit_roundoff(own)));
      moved += is[i] != was[i] ? 1 : 0;
      EXPECT_EQ(is[i], own == bf16 ? lift<double>(round_to<half>(is[i])) : static_cast<double>(static_cast<float>(is[i])));
    }
  };
  compare(in.q.data(), a.q.data(), in.q.size(), bf16, bf16);
  compare(in.k.data(), a.k.data(), in.k.size(), bf16, bf16);
  compare(in.v.data(), a.v.data(), in.v.size(), bf16, bf16);
  compare(in.beta.data(), a.beta.data(), in.beta.size(), bf16, bf16);
  compare(in.g.data(), a.g.data(), in.g.size(), fp32, fp32);
  compare(in.state.data(), a.state.data(), in.state.size(), fp32, bf16);
  EXPECT_GT(zeros, 2U);
  EXPECT_GT(infinite, 0U);
  EXPECT_GT(moved, in.q.size());
  EXPECT_EQ(a.q, b.q);
  EXPECT_EQ(a.state, b.state);
  EXPECT_NE(a.q, c.q);
}

// fp32 inputs that a plan reads in tf32: two units of fp32 would leave every rounding to tf32 as it is.
TEST(perturbed, moves_by_units_of_what_rows_are_read_in) {
  generation g = small(op_kind::gated_delta_rule, 60);
  g.dtype = fp32;
  const head_input in = take_head(generate(g), 0, 0), fine = perturbed(in, 7), coarse = perturbed(in, 7, tf32);
  EXPECT_EQ(fine.g, coarse.g);
  EXPECT_EQ(fine.beta, coarse.beta);
  double largest_fine = 0, largest_coarse = 0;
  for (std::size_t i = 0; i < in.k.size(); ++i) {
    const double was = in.k.data()[i];
    if (was == 0) continue;
    largest_fine = std::max(largest_fine, std::fabs(fine.k.data()[i] - was) / std::fabs(was));
    largest_coarse = std::max(largest_coarse, std::fabs(coarse.k.data()[i] - was) / std::fabs(was));
    EXPECT_EQ(coarse.k.data()[i], static_cast<double>(static_cast<float>(coarse.k.data()[i])));
  }
  EXPECT_LE(largest_fine, 6 * unit_roundoff(fp32));
  EXPECT_LE(largest_coarse, 6 * unit_roundoff(tf32));
  EXPECT_GT(largest_coarse, unit_roundoff(tf32));
}

TEST(emulate, noise_moves_bits_and_no_more_than_sums_in_another_order_would) {
  problem p = generate(small(op_kind::delta_rule, 100));
  plan_variant v = variants(preset("fp32"), p, path_kind::chunk, 16).front();
  v.o.store = fp32;
  const head_input in = take_head(p, 0, 0);
  const head_output plain = emulate_head(in, v);
  emulation_options options;
  options.noise_ulps = 1;
  for (const std::uint64_t seed : {1U, 2U, 3U}) {
    options.seed = seed;
    const head_output moved = emulate_head(in, v, options), again = emulate_head(in, v, options);
    EXPECT_EQ(moved.o, again.o);
    const double relative = distance(moved.o, plain.o) / norm(plain.o);
    EXPECT_GT(relative, 0x1p-26) << "less than an eighth of a unit: no noise";
    // An ulp in each of the five products between an input and o, where steps do not expand and chunks are seven.
    EXPECT_LT(relative, 0x1p-23 * 5 * 7);
  }
  options.noise_ulps = 0;
  options.seed = 9;
  EXPECT_EQ(emulate_head(in, v, options).o, plain.o);
}

// The decays between rows are those of natural sums; the stage is a copy in another unit, from which they cannot be had.
TEST(emulate, natural_exponents_are_of_sums_that_no_stage_holds) {
  generation g = small(op_kind::gated_delta_rule, 48);
  g.gate = "strong";
  problem p = generate(g);
  p.k = tensor::from_doubles(fp32, p.k.shape(), std::vector<double>(p.k.size(), 1.0), "k");
  p.q = tensor::from_doubles(fp32, p.q.shape(), p.q.to_doubles(), "q");
  p.v = tensor::from_doubles(fp32, p.v.shape(), p.v.to_doubles(), "v");
  p.qk_l2norm = false;
  const head_input in = take_head(p, 0, 0);
  emulation_options options;
  options.stages = options.natural_exponents = true;
  const head_output run = emulate_head(in, variants(preset("fp32"), p, path_kind::chunk, 48).front(), options);
  std::vector<float> G(48);
  for (std::size_t r = 0; r < G.size(); ++r) G[r] = (r == 0 ? 0 : G[r - 1]) + static_cast<float>(in.g(r, 0));
  double from_sums = 0, from_stage = 0;
  for (std::size_t i = 1; i < G.size(); ++i) {
    EXPECT_EQ(run.g_cumsum_log2(i, 0), static_cast<double>(G[i] * std::numbers::log2e_v<float>));
    // A_ij = beta K e^{G_i - G_j}: K ones.
    const double decay =
        run.A(i, i - 1) / (static_cast<double>(static_cast<float>(in.beta[i])) * static_cast<double>(in.key_dim()));
    from_sums = std::max(from_sums, std::fabs(decay / std::exp(static_cast<double>(G[i] - G[i - 1])) - 1));
    from_stage = std::max(from_stage, std::fabs(decay / std::exp2(run.g_cumsum_log2(i, 0) - run.g_cumsum_log2(i - 1, 0)) - 1));
  }
  EXPECT_LT(from_sums, 0x1p-22);
  EXPECT_GT(from_stage, 0x1p-20);
}

TEST(emulate, sums_gates_in_every_way_that_a_plan_leaves_open_once_there_is_noise) {
  generation g = small(op_kind::gated_delta_product, 48);
  g.gate = "strong";
  const problem p = generate(g);
  const head_input in = take_head(p, 0, 0);
  const std::size_t C = 48, n = in.steps_per_token;
  const plan_variant v = variants(preset("fp32"), p, path_kind::chunk, C).front();
  // The first chunk's, by the definitions.
  std::array<std::vector<float>, 4> want;
  for (const bool first : {false, true}) {
    std::vector<float> gates(C), turn(C), scan;
    const float log2_e = std::numbers::log2e_v<float>;
    for (std::size_t r = 0; r < C; ++r) gates[r] = r % n == 0 ? static_cast<float>(in.g(r / n, 0)) * (first ? log2_e : 1) : 0;
    std::partial_sum(gates.begin(), gates.end(), turn.begin());
    scan = gates;
    for (std::size_t step = 1; step < C; step *= 2) {
      const std::vector<float> before = scan;
      for (std::size_t r = step; r < C; ++r) scan[r] = before[r] + before[r - step];
    }
    for (auto* sums : {&turn, &scan}) {
      for (float& x : *sums) x *= first ? 1 : log2_e;
    }
    want[first ? 1 : 0] = turn;
    want[first ? 3 : 2] = scan;
  }
  std::array<std::size_t, 4> seen{};
  emulation_options options;
  options.stages = true;
  for (options.seed = 0; options.seed < 40; ++options.seed) {
    options.noise_ulps = options.seed == 0 ? 0 : 1;
    const matrix<double> got = emulate_head(in, v, options).g_cumsum_log2;
    const auto way = std::find_if(want.begin(), want.end(),
                                  [&](const std::vector<float>& w) { return std::equal(w.begin(), w.end(), got.data()); });
    ASSERT_NE(way, want.end()) << "seed " << options.seed;
    if (options.noise_ulps > 0)
      ++seen[static_cast<std::size_t>(way - want.begin())];
    else
      EXPECT_EQ(way, want.begin()) << "without noise: in turn, then scaled";
  }
  for (const std::size_t count : seen) EXPECT_GT(count, 2U);
}

TEST(error_of_wide_run, is_the_distance_to_the_certified_solution) {
  for (const std::size_t n : {1U, 2U}) {
    generation g = small(n == 1 ? op_kind::delta_rule : op_kind::gated_delta_product, 50);
    if (n == 2) g.gate = "zero";
    const problem p = generate(g);
    const head_input in = take_head(p, 0, 0);
    plan_variant v = variants(preset("fp64"), p, path_kind::chunk, 16).front();
    v.o.store = fp64;
    const head_output run = emulate_head(in, v), error = error_of_wide_run(in, run);
    question ask;
    ask.relative_radius = 0x1p-90;
    const reference truth = solve(p, ask);
    const auto compare = [&](const matrix<double>& got, const matrix<double>& said, const reference_tensor& want) {
      double largest = 0, difference = 0;
      for (std::size_t i = 0; i < got.size(); ++i) {
        double e = got.data()[i] - want.value[i];
        for (const auto& low : want.low) e -= low[i];
        largest = std::max(largest, std::fabs(e));
        difference = std::max(difference, std::fabs(e - said.data()[i]));
      }
      EXPECT_GT(largest, 0);
      // The loop in double-doubles and the radius lie 2^-37 below an error of fp64, some hundred roundings of it.
      EXPECT_LT(difference, 0x1p-28 * largest);
    };
    compare(run.o, error.o, truth.o);
    compare(run.final_state, error.final_state, truth.final_state);
  }
}

TEST(take_head, reads_the_rows_of_its_sequence_and_the_head_of_its_group) {
  generation g;
  g.regime = "varlen";
  g.op = op_kind::kda;
  g.tokens = 90;
  g.key_heads = 2;
  g.value_heads = 4;
  g.key_dim = 8;
  g.value_dim = 6;
  const problem packed = generate(g);
  g.regime = "typical";
  g.op = op_kind::gated_delta_product;
  g.num_householder = 2;
  g.batch = 3;
  g.tokens = 11;
  const problem batched = generate(g);
  for (const problem* p : {&packed, &batched}) {
    const auto q = p->q.to_doubles(), k = p->k.to_doubles(), v = p->v.to_doubles(), beta = p->beta.to_doubles(),
               gate = p->g->to_doubles(), state = p->initial_state->to_doubles();
    const std::size_t n = p->num_householder, H = p->key_heads(), HV = p->value_heads(), K = p->key_dim(), V = p->value_dim(),
                      W = p->gate_per_channel() ? K : 1;
    for (std::size_t s = 0; s < p->sequence_count(); ++s) {
      const std::size_t first = p->cu_seqlens.empty() ? s * p->tokens() : static_cast<std::size_t>(p->cu_seqlens[s]);
      const std::size_t tokens = p->cu_seqlens.empty() ? p->tokens() : static_cast<std::size_t>(p->cu_seqlens[s + 1]) - first;
      for (std::size_t h = 0; h < HV; ++h) {
        const head_input in = take_head(*p, s, h);
        ASSERT_EQ(in.tokens(), tokens);
        ASSERT_EQ(in.rows(), tokens * n);
        EXPECT_EQ(in.channels(), p->gate_per_channel());
        for (std::size_t t = 0; t < tokens; ++t) {
          for (std::size_t c = 0; c < K; ++c) EXPECT_EQ(in.q(t, c), q[((first + t) * H + h / 2) * K + c]);
          for (std::size_t c = 0; c < W; ++c) EXPECT_EQ(in.g(t, c), gate[((first + t) * HV + h) * W + c]);
        }
        for (std::size_t r = 0; r < tokens * n; ++r) {
          for (std::size_t c = 0; c < K; ++c) EXPECT_EQ(in.k(r, c), k[((first * n + r) * H + h / 2) * K + c]);
          for (std::size_t c = 0; c < V; ++c) EXPECT_EQ(in.v(r, c), v[((first * n + r) * HV + h) * V + c]);
          EXPECT_EQ(in.beta[r], beta[(first * n + r) * HV + h]);
        }
        for (std::size_t i = 0; i < K * V; ++i) EXPECT_EQ(in.state.data()[i], state[(s * HV + h) * K * V + i]);
      }
    }
  }
}

// What an emulated kernel of a plan leaves passes as a file, and no element of any stage lies outside the bounds that the
// stage checker derives from the same plan.
TEST(emulate, leaves_files_whose_stages_keep_the_plan) {
  const fs::path folder = fs::temp_directory_path() / "deltaproof_emulate_test";
  fs::create_directories(folder);
  std::string table;
  for (const plan& x : plans()) {
    if (std::find(x.path.begin(), x.path.end(), path_kind::chunk) == x.path.end()) continue;
    for (std::size_t i = 0; i < x.ops.size() * x.dtypes.size(); ++i) {
      const op_kind op = x.ops[i / x.dtypes.size()];
      const format dtype = x.dtypes[i % x.dtypes.size()];
      if (x.chunk.empty() && dtype != x.dtypes.back() && dtype != x.dtypes.front()) continue;
      generation g = small(op, 100);
      g.regime = "gva";
      g.key_heads = 1;
      g.value_heads = 2;
      g.dtype = dtype;
      const problem p = generate(g);
      const std::size_t chunk = x.chunk.empty() ? 24 : x.chunk.back();
      const stage_roundings roundings = roundings_of(x, p, path_kind::chunk, chunk);
      write_problem(folder / "p.safetensors", p);
      for (const plan_variant& v : variants(x, p, path_kind::chunk, chunk)) {
        emulation_options options;
        options.stages = true;
        write_result(folder / "r.safetensors", emulate(p, v, options, 1));
        notes_list notes;
        const result r = read_result(folder / "r.safetensors", p, "", notes);
        const stage_report report = measure_stages(p, r, roundings, {{}, 1});
        // G and o need no more than a kernel without u and w leaves; a problem without gates has no G.
        const std::size_t of_residual = op == op_kind::delta_rule ? 1 : 2;
        EXPECT_EQ(report.stages.size(), v.v_new.form == change_form::residual ? of_residual : r.stages.size() + 2);
        std::string line = v.name + ", " + std::string(name_of(op)) + ", " + std::string(name_of(dtype)) + ":";
        for (const stage_measurement& m : report.stages) {
          EXPECT_EQ(m.bad, 0U) << v.name << ", " << name_of(op) << ", " << name_of(dtype) << ": " << describe(m);
          std::array<char, 48> text{};
          std::snprintf(text.data(), text.size(), " %s %.3f", m.name.c_str(), m.worst ? m.worst->ratio : 0.0);
          line += text.data();
        }
        table += line + "\n";
      }
    }
  }
  std::printf("worst error in units of its bound\n%s", table.c_str());
  fs::remove_all(folder);
}

}  // namespace
}  // namespace deltaproof
