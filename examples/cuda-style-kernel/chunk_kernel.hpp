// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
//
// A chunk kernel of the delta rule as a CUDA author writes it: bf16 bits in and out, fp32 accumulators, the state in [V, K].
#pragma once

#include <cstdint>

/// Buffers of one launch, row-major. Those of the stages may be null.
struct chunk_delta_arguments {
  const std::uint16_t* q;      // [B, T, H, K]
  const std::uint16_t* k;      // [B, T, H, K]
  const std::uint16_t* v;      // [B, T, H, V]
  const std::uint16_t* beta;   // [B, T, H]
  const float* initial_state;  // [B, H, V, K], or null
  float scale;
  int B, T, H, K, V, C;  // C <= 64, K and V <= 128
  std::uint16_t* o;      // [B, T, H, V]
  float* final_state;    // [B, H, V, K]
  std::uint16_t* Ai;     // [B, T, H, C]
  std::uint16_t* w;      // [B, T, H, K]
  std::uint16_t* u;      // [B, T, H, V]
  std::uint16_t* h;      // [B, ceil(T / C), H, V, K]
  std::uint16_t* v_new;  // [B, T, H, V]
};

void launch_chunk_delta_rule(const chunk_delta_arguments& a);
