// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
//
// What sound kernels do otherwise than the public ones of fla, each as the kernel of stages_pipeline.hpp does it and as a plan
// says it.
#pragma once

#include <algorithm>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "emulate/products.hpp"
#include "stages/stages_pipeline.hpp"

namespace deltaproof::testing {

inline float exp2_of_the_emulator(float x) {
  if (x == 0) return 1;
  emulation::exp2_all(std::span<float>(&x, 1));
  return x;
}

inline const format_choice x_format{format_choice::kind::x, fp32}, wide{format_choice::kind::fixed, fp32};

/// One way in which a kernel differs from the public ones: as the kernel does it and as a plan says it.
struct way {
  const char* name;
  std::function<void(pipeline_case&)> kernel;
  std::function<void(plan&)> said;
  const char* stage;    ///< that is bad where the plan does not say it; "" where nothing is
  bool finer = false;   ///< it rounds less than the public kernels, so that it keeps their plans too
  bool scalar = false;  ///< needs a gate of one number a token: one of channels does so anyway
  bool gated = false;   ///< needs a gate
  /// Its plan allows what the public kernels do too: it reads what was not stored, which is known within an ulp alone.
  bool allows = false;
  double nearest = 0.5;  ///< some element of o is this near its bound
};

inline const std::vector<way>& all_ways() {
  static const std::vector<way> all{
      {"as the public kernels", [](pipeline_case&) {}, [](plan&) {}, ""},
      {"decay on k", [](pipeline_case& c) { c.ways.decay_on_k = true; }, [](plan& p) { p.v_new.decay = {write_decay::k}; },
       "final_state", false, true},
      {"decay on q", [](pipeline_case& c) { c.ways.decay_on_q = true; }, [](plan& p) { p.o.decay = {read_decay::q}; }, "o", false,
       true},
      {"w by the state", [](pipeline_case& c) { c.ways.w_by_state = true; }, [](plan& p) { p.v_new.state_operand = {wide}; },
       "v_new", true},
      {"q by the state", [](pipeline_case& c) { c.ways.q_by_state = true; }, [](plan& p) { p.o.state_operand = {wide}; }, "o",
       true},
      {"q h rounded", [](pipeline_case& c) { c.ways.read_rounded = true; }, [](plan& p) { p.o.read_store = {x_format}; }, "o"},
      {"scale on q", [](pipeline_case& c) { c.ways.scale_on_q = true, c.scale = 0.3125; },
       [](plan& p) { p.backward = {}, p.o.scale = {read_scale::q}; }, "o"},
      {"scale in the l2norm", [](pipeline_case& c) { c.ways.scale_in_norm = c.l2norm = true, c.scale = 0.3125; },
       [](plan& p) { p.backward = {}, p.o.scale = {read_scale::l2norm}; }, "o"},
      {"v_new kept", [](pipeline_case& c) { c.ways.update_wide_value = c.ways.wide_value_in_o = true; },
       [](plan& p) {
         p.v_new.store = p.v_new.update_operand = p.o.value_operand = {wide};
         p.v_new.key_operand = {x_format};
       },
       "v_new", true},
      {"stored v_new, decay on k", [](pipeline_case& c) { c.ways.update_stored = c.ways.decay_on_k = true; },
       [](plan& p) {
         p.v_new.update_operand.clear();
         p.v_new.update = {update_source::stored};
         p.v_new.decay = {write_decay::k};
       },
       "final_state", false, true},
      {"as in a CPU kernel",
       [](pipeline_case& c) {
         c.ways.decay_on_k = c.ways.decay_on_q = c.ways.update_stored = true;
         c.ways.epsilon = 1e-5;
         c.ways.scale_in_norm = c.l2norm = true;
         c.scale = 0.3125;
         c.key_size = 1.0 / 64;
       },
       [](plan& p) {
         p.backward = {};
         p.o.scale = {read_scale::l2norm};
         p.v_new.update_operand.clear();
         p.v_new.update = {update_source::stored};
         p.v_new.decay = {write_decay::k};
         p.o.decay = {read_decay::q};
         p.l2norm.epsilon = {1e-5};
       },
       "A", false, true},
      {"as XLA multiplies",
       [](pipeline_case& c) {
         c.ways.w_by_state = c.ways.read_rounded = c.ways.update_wide_value = c.ways.wide_value_in_o = true;
         c.ways.decay_on_k = c.ways.decay_on_q = true;
       },
       [](plan& p) {
         p.v_new.state_operand = {wide};
         p.v_new.store = p.v_new.update_operand = p.o.value_operand = {wide};
         p.v_new.key_operand = {x_format};
         p.o.read_store = {x_format};
         if (p.ops.front() != op_kind::kda) {
           p.v_new.decay = {write_decay::k};
           p.o.decay = {read_decay::q};
         }
       },
       "v_new"},
      {"beta into k",
       [](pipeline_case& c) {
         c.ways.step_on_rows = true;
         c.beta_fp32 = false;
       },
       [](plan& p) { p.backward = {}, p.beta.into = {step_factor::rows}; }, "A"},
      {"products rounded", [](pipeline_case& c) { c.ways.product_rounded = true; },
       [](plan& p) { p.backward = {}, p.A.product_store = p.o.product_store = {x_format}; }, "A"},
      {"the scale rounded", [](pipeline_case& c) { c.ways.scale_rounded = true, c.scale = 0.3; },
       [](plan& p) { p.backward = {}, p.o.scale_format = {x_format}; }, "o"},
      {"A before it is stored", [](pipeline_case& c) { c.ways.a_kept = true; },
       [](plan& p) {
         p.backward = {};
         p.A.store = {x_format};
         p.A.read = {wide};
       },
       "Ai", false, false, false, true},
      {"Ai before it is stored", [](pipeline_case& c) { c.ways.inverse_kept = true; },
       [](plan& p) {
         p.backward = {};
         p.inverse.read = p.u.operand_store = p.w.operand_store = {wide};
       },
       "w", false, false, false, true},
      {"u and w before they are stored", [](pipeline_case& c) { c.ways.transforms_kept = c.ways.w_by_state = true; },
       [](plan& p) {
         p.backward = {};
         p.u.read = p.w.read = p.v_new.state_operand = {wide};
       },
       "v_new", false, false, false, true},
      {"the norm rounded", [](pipeline_case& c) { c.ways.norm_rounded = c.l2norm = true; },
       [](plan& p) { p.backward = {}, p.l2norm.compute = {x_format}; }, "A", false, false, false, true, 0.1},
      {"gates rounded", [](pipeline_case& c) { c.ways.gates_rounded = true; },
       [](plan& p) { p.backward = {}, p.gate.cumsum = {x_format}; }, "g_cumsum_log2", false, false, true, true, 0.1},
      {"exponents clipped", [](pipeline_case& c) { c.ways.clipped = true; },
       [](plan& p) { p.backward = {}, p.gate.clip = std::pair{-0.5, 20.0}; }, "A", false, true},
      {"as MaxText reads",
       [](pipeline_case& c) {
         c.ways.step_on_rows = c.ways.product_rounded = c.ways.scale_rounded = c.ways.scale_on_q = c.ways.plain_read = true;
         c.ways.decay_on_q = c.ways.inverse_kept = true;
         c.beta_fp32 = false;
         c.scale = 0.3;
       },
       [](plan& p) {
         p.backward = {};
         p.beta.into = {step_factor::rows};
         p.A.product_store = p.o.product_store = p.o.scale_format = p.o.scale_store = {x_format};
         p.o.scale = {read_scale::q};
         p.o.operand = p.inverse.read = p.u.operand_store = p.w.operand_store = {wide};
         p.o.decay = {read_decay::q};
       },
       "A", false, true},
  };
  return all;
}

inline const char* public_plan(op_kind op) {
  return op == op_kind::delta_rule         ? "fla-chunk-delta"
         : op == op_kind::gated_delta_rule ? "fla-chunk-gdn"
         : op == op_kind::kda              ? "fla-chunk-kda"
                                           : "fla-chunk-gdp";
}

/// The plan of the public kernel of this op, with what the way says; of any chunk length and one order of sums.
inline plan plan_of(const way& w, op_kind op) {
  plan p = plan_named(public_plan(op));
  p.chunk.clear();
  p.A.order = {sum_order::sequential};
  w.said(p);
  return p;
}

inline std::vector<std::pair<std::string, pipeline_case>> cases_of(const way& w) {
  std::vector<std::pair<std::string, pipeline_case>> all;
  const auto add = [&](const char* name, op_kind op, auto change) {
    if (w.scalar && op != op_kind::gated_delta_rule && op != op_kind::gated_delta_product) return;
    if (w.gated && op == op_kind::delta_rule) return;
    pipeline_case c;
    c.op = op;
    c.chunk = 16;
    c.tokens = 70;
    c.scale = 0.25;
    c.exp2 = exp2_of_the_emulator;
    c.ways.added_to_state = true;
    change(c);
    w.kernel(c);
    all.emplace_back(std::string(w.name) + ", " + name, c);
  };
  add("delta", op_kind::delta_rule, [](pipeline_case&) {});
  add("gated", op_kind::gated_delta_rule, [](pipeline_case&) {});
  add("gated fp16", op_kind::gated_delta_rule, [](pipeline_case& c) { c.operands = fp16; });
  add("gated, packed", op_kind::gated_delta_rule, [](pipeline_case& c) { c.cu_seqlens = {0, 1, 1, 33, 70}; });
  add("gated, GVA, batches, l2norm", op_kind::gated_delta_rule,
      [](pipeline_case& c) { c.batch = 2, c.key_heads = 2, c.value_heads = 4, c.l2norm = true, c.beta_fp32 = false; });
  add("kda", op_kind::kda, [](pipeline_case&) {});
  add("kda fp16, packed", op_kind::kda, [](pipeline_case& c) { c.operands = fp16, c.cu_seqlens = {0, 16, 17, 70}; });
  add("two steps a token", op_kind::gated_delta_product, [](pipeline_case& c) { c.steps = c.output_span = 2, c.tokens = 45; });
  add("three steps, packed", op_kind::gated_delta_product,
      [](pipeline_case& c) { c.steps = c.output_span = 3, c.tokens = 45, c.cu_seqlens = {0, 20, 45}; });
  return all;
}

}  // namespace deltaproof::testing
