// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
#include "chunk_kernel.hpp"

#include <algorithm>
#include <cstring>
#include <vector>

namespace {

float bf16_to_float(std::uint16_t bits) {
  const std::uint32_t wide = static_cast<std::uint32_t>(bits) << 16;
  float x;
  std::memcpy(&x, &wide, sizeof x);
  return x;
}

std::uint16_t float_to_bf16(float x) {  // to nearest even, as __float2bfloat16_rn
  std::uint32_t bits;
  std::memcpy(&bits, &x, sizeof bits);
  if ((bits & 0x7fffffffU) > 0x7f800000U) return 0x7fc0;
  return static_cast<std::uint16_t>((bits + 0x7fffU + ((bits >> 16) & 1U)) >> 16);
}

float rounded(float x) { return bf16_to_float(float_to_bf16(x)); }

/// Shared memory of one block. With the fault the tile of the inverse is bf16, which halves it: each row is rounded
/// before the next ones read it.
struct shared_memory {
  static constexpr int rows = 64, width = 128;
#ifdef INVERSE_TILE_IN_BF16
  std::uint16_t inverse[rows][rows];
  float load(int i, int j) const { return bf16_to_float(inverse[i][j]); }
  void store(int i, int j, float x) { inverse[i][j] = float_to_bf16(x); }
#else
  float inverse[rows][rows];
  float load(int i, int j) const { return inverse[i][j]; }
  void store(int i, int j, float x) { inverse[i][j] = x; }
#endif
  float A[rows][rows], score[rows][rows];
  float q[rows][width], k[rows][width], v[rows][width], beta[rows];
  float w[rows][width], u[rows][width], v_new[rows][width];
  float state[width][width], h[width][width];  // [V][K]
};

/// for (int i = threadIdx.x; i < n; i += blockDim.x) body(i); __syncthreads();
template <class Body>
void each_thread(int n, const Body& body) {
  constexpr int threads = 128;
  for (int thread = 0; thread < threads; ++thread) {
    for (int i = thread; i < n; i += threads) body(i);
  }
}

float dot(const float* a, const float* b, int n) {
  float sum = 0;
  for (int i = 0; i < n; ++i) sum += a[i] * b[i];
  return sum;
}

void keep(std::uint16_t* stage, std::int64_t at, float x) {
  if (stage != nullptr) stage[at] = float_to_bf16(x);
}

/// One block: all chunks of one head of one sequence.
void chunk_delta_rule_block(const chunk_delta_arguments& a, int b, int head, shared_memory& s) {
  const int K = a.K, V = a.V, C = a.C;
  const auto row = [&](int t) { return (static_cast<std::int64_t>(b) * a.T + t) * a.H + head; };
  const std::int64_t state = (static_cast<std::int64_t>(b) * a.H + head) * V * K;
  each_thread(V * K, [&](int i) { s.state[i / K][i % K] = a.initial_state != nullptr ? a.initial_state[state + i] : 0.F; });
  for (int first = 0, chunk = 0; first < a.T; first += C, ++chunk) {
    const int n = std::min(C, a.T - first);
    const std::int64_t h_at = ((static_cast<std::int64_t>(b) * ((a.T + C - 1) / C) + chunk) * a.H + head) * V * K;
    each_thread(V * K, [&](int i) {
      s.h[i / K][i % K] = rounded(s.state[i / K][i % K]);
      keep(a.h, h_at + i, s.h[i / K][i % K]);
    });
    each_thread(n * K, [&](int i) {
      s.q[i / K][i % K] = bf16_to_float(a.q[row(first + i / K) * K + i % K]);
      s.k[i / K][i % K] = bf16_to_float(a.k[row(first + i / K) * K + i % K]);
    });
    each_thread(n * V, [&](int i) { s.v[i / V][i % V] = bf16_to_float(a.v[row(first + i / V) * V + i % V]); });
    each_thread(n, [&](int i) { s.beta[i] = bf16_to_float(a.beta[row(first + i)]); });
    each_thread(n * n, [&](int at) {
      const int i = at / n, j = at % n;
      s.A[i][j] = j < i ? s.beta[i] * dot(s.k[i], s.k[j], K) : 0.F;
      s.score[i][j] = j <= i ? rounded(dot(s.q[i], s.k[j], K)) : 0.F;
    });
    // (I + A)^-1, row by row; a thread owns a column.
    for (int i = 0; i < n; ++i) {
      each_thread(n, [&](int j) {
        float sum = i == j ? 1.F : 0.F;
        for (int m = j; m < i; ++m) sum -= s.A[i][m] * s.load(m, j);
        s.store(i, j, j <= i ? sum : 0.F);
      });
    }
    each_thread(n * n, [&](int at) { keep(a.Ai, row(first + at / n) * C + at % n, s.load(at / n, at % n)); });
    each_thread(n * K, [&](int at) {
      const int i = at / K, c = at % K;
      float sum = 0;
      for (int j = 0; j <= i; ++j) sum += rounded(s.load(i, j)) * rounded(s.beta[j] * s.k[j][c]);
      s.w[i][c] = rounded(sum);
      keep(a.w, row(first + i) * K + c, sum);
    });
    each_thread(n * V, [&](int at) {
      const int i = at / V, c = at % V;
      float sum = 0;
      for (int j = 0; j <= i; ++j) sum += rounded(s.load(i, j)) * rounded(s.beta[j] * s.v[j][c]);
      s.u[i][c] = rounded(sum);
      keep(a.u, row(first + i) * V + c, sum);
    });
    each_thread(n * V, [&](int at) {
      const int i = at / V, c = at % V;
      s.v_new[i][c] = rounded(s.u[i][c] - dot(s.w[i], s.h[c], K));
      keep(a.v_new, row(first + i) * V + c, s.v_new[i][c]);
    });
    each_thread(n * V, [&](int at) {
      const int i = at / V, c = at % V;
      float inside = 0;
      for (int j = 0; j <= i; ++j) inside += s.score[i][j] * s.v_new[j][c];
      a.o[row(first + i) * V + c] = float_to_bf16(a.scale * dot(s.q[i], s.h[c], K) + a.scale * inside);
    });
    each_thread(V * K, [&](int at) {
      float sum = 0;
      for (int j = 0; j < n; ++j) sum += s.v_new[j][at / K] * s.k[j][at % K];
      s.state[at / K][at % K] += sum;
    });
  }
  each_thread(V * K, [&](int i) { a.final_state[state + i] = s.state[i / K][i % K]; });
}

}  // namespace

void launch_chunk_delta_rule(const chunk_delta_arguments& a) {
  std::vector<shared_memory> shared(1);
  for (int b = 0; b < a.B; ++b) {
    for (int head = 0; head < a.H; ++head) chunk_delta_rule_block(a, b, head, shared.front());
  }
}
