// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
#include "oracle/gradients/exact_bits.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <span>
#include <vector>

#include "oracle/token_passing.hpp"

namespace deltaproof {
namespace {

/// Every number is a multiple of 2^lowest and below 2^highest in magnitude.
struct bit_range {
  double lowest = 0, highest = 0;
  bool any = false;

  void add(double x) {
    if (x == 0) return;
    int exponent = 0;
    const auto digits = static_cast<std::uint64_t>(std::ldexp(std::frexp(std::fabs(x), &exponent), 53));
    const double low = exponent - 53 + std::countr_zero(digits);
    lowest = any ? std::min(lowest, low) : low;
    highest = any ? std::max<double>(highest, exponent) : exponent;
    any = true;
  }
  void add(std::span<const double> x) {
    for (const double xi : x) add(xi);
  }
  void add(const tensor& t, std::size_t first, std::span<double> room) {
    t.read(first, room);
    add(std::span<const double>(room));
  }
  [[nodiscard]] double width() const { return highest - lowest; }
};

/// beta after its activation, where that is dyadic.
std::optional<double> dyadic_step(double beta, activation_kind activation) {
  if (activation == activation_kind::none) return beta;
  if (beta != 0) return std::nullopt;
  return activation == activation_kind::two_sigmoid ? 1 : 0.5;
}

}  // namespace

std::optional<double> bits_of_exact_run(const problem& p, std::size_t sequence_index, std::size_t key_head) {
  if (p.qk_l2norm || p.raw || (p.rule != rule_kind::euler && p.rule != rule_kind::rk2)) return std::nullopt;
  const sequence_range range = sequence_at(p, sequence_index);
  const std::size_t H = p.key_heads(), HV = p.value_heads(), K = p.key_dim(), V = p.value_dim(), group = HV / H;
  const std::size_t token = range.batch * p.tokens() + range.first_token, rows = range.tokens * p.num_householder,
                    row = range.batch * p.steps() + range.first_token * p.num_householder;
  const std::size_t channels = p.gate_per_channel() ? K : 1;
  std::vector<double> x(std::max(K, V));
  const std::span<double> keys(x.data(), K), values(x.data(), V), gates(x.data(), channels);
  double most = 0;
  for (std::size_t h = key_head * group; h < (key_head + 1) * group; ++h) {
    bit_range all_keys, all_values, all_cotangents, all_steps, queries;
    double bits = 0;
    token_passing passing(p, range);
    for (std::size_t r = 0; r < rows; ++r) {
      if (r % p.num_householder == 0) passing.through(r / p.num_householder);
      bit_range key, step;
      key.add(p.k, ((row + r) * H + key_head) * K, keys);
      double norm = 0;
      for (const double k : keys) norm += k * k;
      const auto beta = dyadic_step(p.beta.at((row + r) * HV + h), p.beta_activation);
      if (!beta) return std::nullopt;
      all_keys.add(std::span<const double>(keys));
      all_values.add(p.v, ((row + r) * HV + h) * V, values);
      step.add(*beta);
      all_steps.add(*beta);
      if (!key.any || !step.any) continue;
      // (I - b k k^T) x: as many bits below, and what a factor beyond 1 adds above. b of rk2 is beta (1 - x / 2).
      const double low = p.rule == rule_kind::rk2 ? step.lowest + std::min(0.0, step.lowest + 2 * key.lowest - 1) : step.lowest;
      const double stretch = std::fabs(*beta) * norm;
      bits +=
          std::max(0.0, -(low + 2 * key.lowest)) + std::log2(1 + (p.rule == rule_kind::rk2 ? stretch * (1 + stretch) : stretch));
    }
    for (std::size_t t = 0; t < range.tokens; ++t) {
      passing.through(t);
      queries.add(p.q, ((token + t) * H + key_head) * K, keys);
      if (p.d_o) all_cotangents.add(*p.d_o, ((token + t) * HV + h) * V, values);
      if (!p.g) continue;
      p.g->read(((token + t) * HV + h) * channels, gates);
      for (const double g : gates) {
        if (g != 0 && !std::isinf(g)) return std::nullopt;
      }
    }
    for (std::size_t i = 0; i < K; ++i) {
      const std::size_t at = ((sequence_index * HV + h) * K + i) * V;
      if (p.initial_state) all_values.add(*p.initial_state, at, values);
      if (p.d_final_state) all_cotangents.add(*p.d_final_state, at, values);
    }
    bit_range scale;
    scale.add(p.scale);
    // The products and sums that a derivative is made of at its end.
    bits += all_values.width() + all_cotangents.width() + queries.width() + scale.width() + 4 * all_keys.width() +
            4 * all_steps.width() + 4 * std::log2(static_cast<double>((rows + 1) * K * V)) + 128;
    most = std::max(most, bits);
  }
  return most;
}

}  // namespace deltaproof
