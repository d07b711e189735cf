// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
//
// Problems cut into others, and what an emulated kernel makes of them: `run_of(problem, plan)` is a run as the author of a
// kernel records it, `cut(problem, first, count)` its tokens [first, first + count) with a state to start from.
#pragma once

#include <algorithm>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "deltaproof/check/invariant.hpp"
#include "deltaproof/emulate/emulate.hpp"
#include "deltaproof/emulate/faults.hpp"
#include "deltaproof/inputs/regimes.hpp"
#include "deltaproof/plan/plan.hpp"

namespace deltaproof::testing {

inline problem gated_problem(std::size_t tokens, std::size_t heads = 2, const std::string& regime = "typical") {
  generation g;
  g.regime = regime;
  g.op = op_kind::gated_delta_rule;
  g.gate = "typical";
  g.tokens = tokens;
  g.key_dim = 16;
  g.value_dim = 12;
  g.key_heads = g.value_heads = heads;
  g.dtype = bf16;
  g.initial_state = "normal";
  g.seed = 7;
  return generate(g);
}

/// Rows [first, first + count) along T of a tensor with B = 1.
inline tensor rows_of(const tensor& t, std::size_t first, std::size_t count) {
  std::vector<std::size_t> shape = t.shape();
  const std::size_t width = shape[1] == 0 ? 0 : t.size() / shape[1];
  shape[1] = count;
  std::vector<double> values(count * width);
  if (!values.empty()) t.read(first * width, values);
  return tensor::from_doubles(t.element_format(), shape, values, t.name());
}

inline problem cut(const problem& p, std::size_t first, std::size_t count, std::optional<tensor> state) {
  problem out = p;
  const std::size_t n = p.num_householder;
  out.q = rows_of(p.q, first, count);
  out.k = rows_of(p.k, first * n, count * n);
  out.v = rows_of(p.v, first * n, count * n);
  out.beta = rows_of(p.beta, first * n, count * n);
  if (p.g) out.g = rows_of(*p.g, first, count);
  out.initial_state = std::move(state);
  out.cu_seqlens.clear();
  return out;
}

/// The same tensor with element `at` set to `value`.
inline tensor with(const tensor& t, std::size_t at, double value) {
  std::vector<double> values = t.to_doubles();
  values.at(at) = value;
  return tensor::from_doubles(t.element_format(), t.shape(), values, t.name());
}

inline recorded_run run_of(const problem& p, std::string_view plan_name, std::size_t chunk = 64, std::string_view fault = {},
                           std::string name = "whole") {
  const plan declared = plan_named(plan_name);
  const path_kind path = chunk > 0 ? path_kind::chunk : path_kind::recurrent;
  emulation_options how;
  how.stages = false;
  if (!fault.empty()) how.planted = &fault_named(fault);
  recorded_run out;
  out.given = p;
  plan_variant variant = variants(declared, p, path, chunk).front();
  // A unit that errs gives the same error to the same argument; the emulator's errs by place.
  variant.exp2_ulps = variant.rsqrt_ulps = 0;
  out.gave = emulate(p, variant, how);
  out.gave.kernel = declared.kernels.front();
  out.problem_path = name + ".problem.safetensors";
  out.result_path = name + ".result.safetensors";
  return out;
}

inline invariant_options quick() {
  invariant_options out;
  out.check.judge.power = false;
  return out;
}

}  // namespace deltaproof::testing
