// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
#include "oracle/gradients/chain.hpp"

#include <cmath>
#include <span>
#include <utility>

#include "oracle/rule_gain.hpp"

namespace deltaproof {
namespace {

constexpr int guard_bits = 192;

/// A step length and its derivative with respect to what the file holds.
struct activated {
  mpfr_ball beta, slope;
};

/// With E = e^-|x|: sigmoid(x) = 1/(1 + E), or E/(1 + E) below 0; its derivative is E/(1 + E)^2.
activated activate(double given, activation_kind activation, mpfr_prec_t bits) {
  const mpfr_ball one(bits, 1);
  if (activation == activation_kind::none) return {mpfr_ball(bits, given), one};
  const mpfr_ball times(bits, activation == activation_kind::two_sigmoid ? 2 : 1);
  const mpfr_ball small = exp(mpfr_ball(bits, -std::fabs(given)));
  const mpfr_ball inverse = one / (one + small);
  return {times * (given >= 0 ? inverse : small * inverse), times * (small * (inverse * inverse))};
}

mpfr_ball square_sum(std::span<const double> x, mpfr_prec_t bits) {
  mpfr_ball sum(bits, 0);
  for (const double xi : x) {
    if (xi == 0) continue;
    const mpfr_ball part(bits, xi);
    sum = sum + part * part;
  }
  return sum;
}

}  // namespace

chain_factors factors_of(const problem& p, std::size_t sequence_index, std::size_t value_head, int target_bits, std::size_t first,
                         std::size_t count) {
  const mpfr_prec_t bits = target_bits + guard_bits;
  const sequence_range range = sequence_at(p, sequence_index);
  const std::size_t keys = p.key_dim(), rows = count * p.num_householder;
  const std::size_t first_token = range.batch * p.tokens() + range.first_token + first;
  const std::size_t first_row = range.batch * p.steps() + (range.first_token + first) * p.num_householder;
  const mpfr_ball one(bits, 1), two(bits, 2),
      epsilon = p.qk_l2norm ? mpfr_ball::decimal(bits, p.l2norm_epsilon) : mpfr_ball(bits, 0);
  chain_factors out;
  std::vector<double> x(keys);
  for (std::size_t t = 0; t < count && p.qk_l2norm; ++t) {
    p.q.read(((first_token + t) * p.key_heads() + p.key_head(value_head)) * keys, x);
    out.query_scale.push_back(one / sqrt(square_sum(x, bits) + epsilon));
  }
  const bool derived = p.rule != rule_kind::euler;
  if (!p.qk_l2norm && !derived && p.beta_activation == activation_kind::none) return out;
  for (std::size_t r = 0; r < rows; ++r) {
    mpfr_ball norm(bits, 0);
    if (p.qk_l2norm || derived) {
      p.k.read(((first_row + r) * p.key_heads() + p.key_head(value_head)) * keys, x);
      norm = square_sum(x, bits);
    }
    if (p.qk_l2norm) {
      out.key_scale.push_back(one / sqrt(norm + epsilon));
      norm = norm / (norm + epsilon);
    }
    if (!derived && p.beta_activation == activation_kind::none) continue;
    activated step = activate(p.beta.at((first_row + r) * p.value_heads() + value_head), p.beta_activation, bits);
    if (!derived) {
      out.by_beta.push_back(std::move(step.slope));
      continue;
    }
    const gain_slopes<mpfr_ball> slopes = slopes_of(p.rule, step.beta * norm);
    out.by_beta.push_back(step.slope * slopes.of_product);
    out.by_key.push_back(two * (step.beta * step.beta) * slopes.of_gain);
  }
  return out;
}

}  // namespace deltaproof

// Theorems behind this file, by their names in proofs/README.md.
// proved: ode.gain_slopes.sigmoid_slope
