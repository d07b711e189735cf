// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
//
// The cases on which the stage checker is tested: what kind of kernel, what inputs, and which line of it is wrong.
#pragma once

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include "deltaproof/files/exchange.hpp"
#include "deltaproof/number/convert.hpp"
#include "deltaproof/stages/stages.hpp"

namespace deltaproof::testing {

/// What a kernel does with a state, v_new and their decays; the public chunk kernels do the first of each.
struct kernel_ways {
  bool decay_on_k = false;         ///< of the update: k e^{G_C-G} is rounded, and v_new
  bool decay_on_q = false;         ///< of the read-out: q e^G is rounded
  bool update_stored = false;      ///< the stored v_new is written
  bool update_wide_value = false;  ///< v_new is not rounded in the update
  bool w_by_state = false;         ///< w multiplies the fp32 state, whose copy is stored all the same
  bool q_by_state = false;         ///< so does q
  bool wide_value_in_o = false;    ///< o takes v_new in fp32, and it is stored so
  bool scale_on_q = false;         ///< q times the scale is rounded
  bool scale_in_norm = false;      ///< so, but before the l2norm rounds q
  bool read_rounded = false;       ///< q h is rounded before anything is done with it
  double epsilon = 1e-6;           ///< of the l2norm
  bool step_on_rows = false;       ///< beta k is rounded before A is formed
  bool product_rounded = false;    ///< q k^T and k k^T are rounded before their decay
  bool scale_rounded = false;      ///< the scale itself is
  bool plain_read = false;         ///< q e^G and q k^T with its decay are not rounded
  bool a_kept = false;             ///< A is stored in 16 bits and inverted before that
  bool inverse_kept = false;       ///< Ai, b v and b e^G k are multiplied in fp32, and Ai is stored rounded all the same
  bool transforms_kept = false;    ///< so are u and w
  bool norm_rounded = false;       ///< every step of the l2norm is rounded
  bool gates_rounded = false;      ///< gates, their sums, differences and exponentials are
  bool clipped = false;            ///< exponents are at least -1/2
  bool added_to_state = false;     ///< the update is added to the decayed state row by row, not summed first
};

struct pipeline_case {
  op_kind op = op_kind::gated_delta_rule;
  std::size_t batch = 1, tokens = 100, key_heads = 1, value_heads = 2, keys = 8, values = 12, chunk = 48, steps = 1;
  std::vector<std::int64_t> cu_seqlens;
  bool initial_state = true;
  bool resets = false;  ///< some gates are -inf
  bool l2norm = false;
  bool beta_fp32 = true;
  format operands = bf16;  ///< of q, k, v and every stored stage but A: bf16, fp16 or fp32
  layout_kind layout = layout_kind::kv;
  bool tf32_cut = false;   ///< tf32 operands, cut off, in the merges and in KDA's products between blocks
  bool safe_gate = false;  ///< and in those inside a block
  std::size_t output_span = 1;
  double largest_beta = 1;
  double scale = 0.3125;
  double key_size = 1;  ///< of the rows of q and k before the l2norm
  kernel_ways ways;
  float (*exp2)(float) = [](float x) { return std::exp2(x); };
  std::uint32_t seed = 1;

  bool per_channel() const { return op == op_kind::kda; }
  std::size_t channels() const { return op == op_kind::delta_rule ? 0 : per_channel() ? keys : 1; }
};

inline double narrow_to(const format& f, double x) {
  if (f == fp16) return round_to<fp16>(x).value();
  return f == fp32 ? round_to<fp32>(x).value() : round_to<bf16>(x).value();
}

/// Random inputs of the case; keys have norms near 1.
inline problem draw_problem(const pipeline_case& c) {
  std::mt19937 random(c.seed);
  problem p;
  p.op = c.op;
  p.num_householder = c.steps;
  p.cu_seqlens = c.cu_seqlens;
  p.qk_l2norm = c.l2norm;
  p.scale = c.scale;
  std::normal_distribution<double> normal;
  const auto fill = [&](std::vector<std::size_t> shape, const format& f, const std::function<double()>& draw) {
    std::vector<double> x(element_count(shape));
    for (double& value : x)
      value = f == c.operands ? narrow_to(c.operands, draw()) : static_cast<double>(static_cast<float>(draw()));
    return tensor::from_doubles(f, std::move(shape), x);
  };
  const double size = c.key_size * (c.l2norm ? 1.0 : 1 / std::sqrt(static_cast<double>(c.keys)));
  const std::size_t rows = c.tokens * c.steps;
  p.q = fill({c.batch, c.tokens, c.key_heads, c.keys}, c.operands, [&] { return size * normal(random); });
  p.k = fill({c.batch, rows, c.key_heads, c.keys}, c.operands, [&] { return size * normal(random); });
  p.v = fill({c.batch, rows, c.value_heads, c.values}, c.operands, [&] { return normal(random); });
  p.beta = fill({c.batch, rows, c.value_heads}, c.beta_fp32 ? fp32 : c.operands,
                [&] { return c.largest_beta / (1 + std::exp(-normal(random))); });
  if (c.channels() > 0) {
    std::vector<std::size_t> shape{c.batch, c.tokens, c.value_heads};
    if (c.per_channel()) shape.push_back(c.keys);
    std::size_t count = 0;
    p.g = fill(shape, fp32, [&] {
      if (c.resets && ++count % 23 == 0) return -std::numeric_limits<double>::infinity();
      return -0.2 * std::fabs(normal(random));
    });
  }
  if (c.initial_state) {
    p.initial_state = fill({p.sequence_count(), c.value_heads, c.keys, c.values}, fp32, [&] { return normal(random); });
  }
  validate(p, "test");
  return p;
}

/// What the preset of the public chunk kernel of this op declares, for chunks of any length.
inline stage_roundings public_roundings(const problem& p, std::size_t chunk, bool safe_gate = false) {
  const char* const name = p.op == op_kind::delta_rule            ? "fla-chunk-delta"
                           : p.op == op_kind::gated_delta_rule    ? "fla-chunk-gdn"
                           : p.op == op_kind::gated_delta_product ? "fla-chunk-gdp"
                           : safe_gate                            ? "fla-chunk-kda-safe-gate"
                                                                  : "fla-chunk-kda";
  plan declared = plan_named(name);
  declared.chunk.clear();
  return roundings_of(declared, p, path_kind::chunk, chunk);
}
inline stage_report measure(const problem& p, const result& r, std::size_t span = 1, bool safe_gate = false) {
  stage_roundings roundings = public_roundings(p, *r.chunk_size, safe_gate);
  roundings.output_span = span;
  return measure_stages(p, r, roundings);
}

/// One wrong line each; the stage in which it is.
struct planted {
  std::string name;
  std::string stage;
};
inline const std::vector<planted>& planted_faults() {
  static const std::vector<planted> all{
      {"cumsum starts one row late", "g_cumsum_log2"},
      {"A: beta twice", "A"},
      {"A: gate of the next row", "A"},
      {"A: one channel short", "A"},
      {"Ai: truncated", "Ai"},
      {"Ai: a block transposed", "Ai"},
      {"Ai: a block term missing", "Ai"},
      {"Ai: bf16 between the merges", "Ai"},
      {"w: gate of the row before", "w"},
      {"w: beta twice", "w"},
      {"u: truncated", "u"},
      {"u: beta of the row before", "u"},
      {"h: decayed to the row before the last", "h"},
      {"h: bf16 state between chunks", "h"},
      {"h: truncated copy", "h"},
      {"h: update takes the undecayed v_new", "h"},
      {"v_new: plus for minus", "v_new"},
      {"v_new: truncated", "v_new"},
      {"o: not scaled", "o"},
      {"o: diagonal masked", "o"},
      {"o: gate of the row before", "o"},
      {"o: truncated", "o"},
      {"final_state: transposed", "final_state"},
      {"final_state: bf16", "final_state"},
      {"Aqk: not scaled", "Aqk"},
  };
  return all;
}

}  // namespace deltaproof::testing
