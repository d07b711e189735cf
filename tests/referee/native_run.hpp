// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
//
// `native_run(problem, variant, style, stages)`: the result file of a native kernel, every head of it.
#pragma once

#include <algorithm>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "referee/native_kernel.hpp"

namespace deltaproof::testing {

/// Whether the native kernel computes this problem, and rounds nowhere that the variant does not: it reads A, Ai, u, w, v_new and
/// the state as they are stored, sums in an order of its own, and has gates, decays and a state of fp32 or wider.
inline bool is_native(const problem& p, const plan_variant& v) {
  const bool reads_stored = !v.A.read && !v.inverse.read && !v.u.read && !v.w.read && !v.v_new.state_operand &&
                            !v.o.state_operand && !v.o.value_operand;
  const bool plain = !v.clip && v.v_new.form == change_form::transforms && v.split.chunks == 0 && !v.state.cache &&
                     !v.state.between_calls && !v.flush_to_zero && v.order != sum_order::tensor_core &&
                     v.cumsum.precision >= fp32.precision && v.decay.precision >= fp32.precision;
  return p.rule == rule_kind::euler && p.beta_activation == activation_kind::none && reads_stored && plain;
}

/// The result of such a kernel: the shapes, formats and names are those of an emulated result, every number its own.
inline result native_run(const problem& p, const plan_variant& v, const native_style& style, bool stages) {
  emulation_options like;
  like.stages = stages;
  result r = emulate(p, v, like, 1);
  const std::size_t HV = p.value_heads(), n = p.num_householder;
  std::map<std::string, std::vector<double>> values;
  for (const auto& [name, t] : r.stages) values[name].assign(t.size(), 0.0);
  values["o"].assign(r.o.size(), 0.0);
  values["final_state"].assign(r.final_state->size(), 0.0);
  std::size_t chunk = 0, batch = 0;
  const auto sequences = p.sequences();
  for (std::size_t s = 0; s < sequences.size(); ++s) {
    const sequence_range& at = sequences[s];
    if (at.batch != batch) chunk = 0, batch = at.batch;
    for (std::size_t head = 0; head < HV; ++head) {
      const head_input in = take_head(p, s, head);
      const bool wide = !measured_by_fp64(v);
      const head_output out = wide ? native_head<double>(in, v, style).run() : native_head<float>(in, v, style).run();
      const auto put = [&](const char* name, const matrix<double>& from, std::size_t first, std::size_t of) {
        if (values.count(name) == 0) return;
        for (std::size_t i = 0; i < from.rows(); ++i) {
          std::copy(from.row(i).begin(), from.row(i).end(),
                    values[name].begin() + static_cast<std::ptrdiff_t>(((at.batch * of + first + i) * HV + head) * from.cols()));
        }
      };
      put("o", out.o, at.first_token, p.tokens());
      std::copy(out.final_state.entries().begin(), out.final_state.entries().end(),
                values["final_state"].begin() + static_cast<std::ptrdiff_t>((s * HV + head) * out.final_state.size()));
      for (const auto& [name, m] : {std::pair{"g_cumsum_log2", &out.g_cumsum_log2},
                                    {"A", &out.A},
                                    {"Ai", &out.Ai},
                                    {"w", &out.w},
                                    {"u", &out.u},
                                    {"v_new", &out.v_new},
                                    {"Aqk", &out.Aqk}}) {
        put(name, *m, at.first_token * n, p.steps());
      }
      const std::size_t K = p.key_dim(), chunks = stages ? chunk_count(p, v.chunk) : 0;
      for (std::size_t row = 0; values.count("h") != 0 && row < out.h.rows(); ++row) {
        const std::size_t to = ((at.batch * chunks + chunk + row / K) * HV + head) * K + row % K;
        std::copy(out.h.row(row).begin(), out.h.row(row).end(),
                  values["h"].begin() + static_cast<std::ptrdiff_t>(to * p.value_dim()));
      }
    }
    if (v.path == path_kind::chunk) chunk += (at.tokens * n + v.chunk - 1) / v.chunk;
  }
  const auto made = [&](const tensor& like_this, const std::string& name) {
    return tensor::from_doubles(like_this.element_format(), like_this.shape(), values[name], name);
  };
  for (auto& [name, t] : r.stages) t = made(t, name);
  r.o = made(r.o, "o");
  r.final_state = made(*r.final_state, "final_state");
  r.producer = "a native kernel, " + style.text();
  return r;
}

}  // namespace deltaproof::testing
