// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
//
// The one function between a test and the kernel: buffers, launch, views. On a card the vectors are what cudaMemcpy fills.
#pragma once

#include <cstdint>
#include <vector>

#include "chunk_kernel.hpp"
#include "deltaproof/files/view.hpp"

inline deltaproof::result run_kernel(const deltaproof::problem& p, std::size_t C) {
  using namespace deltaproof;
  using bits = std::vector<std::uint16_t>;
  const std::size_t B = p.batch(), T = p.tokens(), H = p.value_heads(), K = p.key_dim(), V = p.value_dim(),
                    NT = chunk_count(p, C);
  const bits q = words_of<std::uint16_t>(p.q), k = words_of<std::uint16_t>(p.k), v = words_of<std::uint16_t>(p.v);
  const bits beta = words_of<std::uint16_t>(p.beta);
  std::vector<float> state;  // [B, H, V, K]: the problem has it as (K, V)
  if (p.initial_state) state = words_of<float>(copied(tensor_view(*p.initial_state).with_last_axes_swapped(), "initial_state"));
  bits o(B * T * H * V), Ai(B * T * H * C), w(B * T * H * K), u(o.size()), h(B * NT * H * V * K), v_new(o.size());
  std::vector<float> final_state(B * H * V * K);
  const auto as_int = [](std::size_t n) { return static_cast<int>(n); };
  launch_chunk_delta_rule({q.data(), k.data(), v.data(), beta.data(), p.initial_state ? state.data() : nullptr,
                           static_cast<float>(p.scale), as_int(B), as_int(T), as_int(H), as_int(K), as_int(V), as_int(C),
                           o.data(), final_state.data(), Ai.data(), w.data(), u.data(), h.data(), v_new.data()});
  return copied(result_view{.o = {bf16, o, {B, T, H, V}},
                            .final_state = {final_state, {B, H, V, K}},
                            .state_layout = layout_kind::vk,
                            .stages = {{"Ai", {bf16, Ai, {B, T, H, C}}},
                                       {"w", {bf16, w, {B, T, H, K}}},
                                       {"u", {bf16, u, {B, T, H, V}}},
                                       {"h", {bf16, h, {B, NT, H, V, K}}},
                                       {"v_new", {bf16, v_new, {B, T, H, V}}}},
                            .kernel = "chunk_kernel.cpp",
                            .chunk_size = C},
                p);
}
