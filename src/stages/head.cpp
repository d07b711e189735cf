// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
#include <algorithm>

#include "emulate/products.hpp"
#include "stages/parts.hpp"

namespace deltaproof::stages_detail {

namespace {

double activated(activation_kind how, double x) {
  if (how == activation_kind::none) return x;
  return (how == activation_kind::two_sigmoid ? 2 : 1) / (1 + std::exp(-x));
}

/// Whether the arithmetic holds every input as it is given.
bool holds_inputs(const stage_roundings& r) { return r.elementwise < 0x1p-40; }

/// What converting x to the format of the arithmetic may change: nothing, where that holds it.
double loading(double x, const stage_roundings& r) {
  return holds_inputs(r) ? 0 : std::fabs(narrow(x, narrowing{fp32, false}) - x);
}

/// Inputs in more bits than the arithmetic has: a kernel may convert them first, or form products of them as they are.
void load(balls& rows, const stage_roundings& r) {
  if (holds_inputs(r)) return;
  std::vector<double> loaded = rows.value;
  emulation::narrow(std::span(loaded), {fp32, false});
  for (std::size_t i = 0; i < loaded.size(); ++i) {
    const double x = rows.value[i];
    if (!(loaded[i] == x)) rows.set(i / rows.cols, i % rows.cols, {x, std::fabs(loaded[i] - x)});
  }
}

/// The effective step and what computing it from beta and |k|^2 in the elementwise arithmetic may cost: the gain moves with
/// its argument, which is known within gamma(K + 2); the function itself within `activation_ulps`.
ball effective_step(const problem& p, double beta, const balls& k, std::size_t row, const stage_roundings& r) {
  const double loaded = loading(beta, r);
  if (p.rule == rule_kind::euler && p.beta_activation == activation_kind::none) return {beta, loaded};
  // A sigmoid changes relatively by no more than its argument does absolutely, to first order.
  const double moved = loaded == 0                                  ? 0
                       : p.beta_activation == activation_kind::none ? loaded / std::fabs(beta)
                                                                    : std::expm1(loaded);
  const double relative = r.activation_ulps * 2 * r.elementwise + moved + 0x1p-50;
  const double b = activated(p.beta_activation, beta);
  if (p.rule == rule_kind::euler) return {b, relative * std::fabs(b)};
  double squared_norm = 0;
  double upper = 0;
  for (std::size_t c = 0; c < k.cols; ++c) {
    const ball x = k.at(row, c);
    squared_norm += x.value * x.value;
    upper += x.upper() * x.upper();
  }
  const double x = b * squared_norm;
  const double dx = std::fabs(b) * (upper * (1 + gamma(k.cols + 2, r.elementwise)) * (1 + relative) - squared_norm);
  const double centre = b * gain(p.rule, x);
  const double spread = std::fabs(b) * std::max(std::fabs(gain(p.rule, x + dx) - gain(p.rule, x)),
                                                std::fabs(gain(p.rule, x - dx) - gain(p.rule, x)));
  return {centre, 2 * (spread + relative * (std::fabs(centre) + std::fabs(b)))};
}

/// x / sqrt(sum x^2 + epsilon): the sum loses gamma(K + 2), half of it after the root; then 1/sqrt and one product.
void normalise(balls& rows, const stage_roundings& r, const std::optional<format>& store) {
  const double sum_error = gamma(rows.cols + 2, r.elementwise);
  const double root_error = r.rsqrt_ulps * 2 * r.elementwise + r.elementwise + 0x1p-50;
  const double u = r.rows.norm_roundoff, sums = (1 + sum_error) * (1 + u) * (1 + u) - 1;  // the squares and their sum
  const double conversion = rows.exact() ? 0 : 2 * r.elementwise / (1 - r.elementwise);
  const double relative = (1 + sums / 2 / (1 - sums)) * (1 + root_error) * (1 + u) * (1 + u) * (1 + conversion) - 1;
  for (std::size_t i = 0; i < rows.rows; ++i) {
    double sum = r.rows.epsilon;
    for (std::size_t c = 0; c < rows.cols; ++c) sum += rows.at(i, c).value * rows.at(i, c).value;
    const double inverse = 1 / std::sqrt(sum);
    for (std::size_t c = 0; c < rows.cols; ++c) {
      ball x{rows.at(i, c).value * inverse, 0};
      x.radius = relative * std::fabs(x.value);
      rows.set(i, c, store ? narrow(x, narrowing{*store, false}) : x);
    }
  }
}

/// q times the scale, which is rounded to the elementwise format first: a power of 2 costs nothing.
void scale_rows(balls& q, double scale, const std::optional<narrowing>& to, const stage_roundings& r) {
  int exponent = 0;
  const bool exact = std::fabs(std::frexp(scale, &exponent)) == 0.5;
  const double relative = exact ? 0 : 2 * r.elementwise + 4 * own_roundoff;
  for (std::size_t i = 0; i < q.rows; ++i) {
    for (std::size_t c = 0; c < q.cols; ++c) {
      const ball x = q.at(i, c);
      const double value = x.value * scale, above = x.upper() * std::fabs(scale) * (1 + relative);
      const ball scaled{value, above - std::fabs(value) + (exact ? 0 : 4 * own_roundoff * above)};
      q.set(i, c, to ? narrow(scaled, *to) : scaled);
    }
  }
}

}  // namespace

balls load_rows(const tensor& t, std::size_t first, std::size_t rows, std::size_t stride, std::size_t offset, std::size_t width) {
  balls out(rows, width);
  for (std::size_t i = 0; i < rows; ++i) t.read((first + i) * stride + offset, std::span(out.value).subspan(i * width, width));
  return out;
}

head_inputs load_head(const problem& p, const sequence_range& sequence, std::size_t head, const stage_roundings& roundings) {
  head_inputs in;
  const std::size_t n = p.num_householder;
  in.tokens = sequence.tokens;
  in.rows = sequence.tokens * n;
  const std::size_t first_token = sequence.batch * p.tokens() + sequence.first_token;
  const std::size_t first = first_token * n;
  const std::size_t keys = p.key_dim();
  const std::size_t values = p.value_dim();
  const std::size_t heads = p.value_heads();
  const std::size_t key_stride = p.key_heads() * keys;
  const std::size_t key_offset = p.key_head(head) * keys;
  in.q = load_rows(p.q, first_token, in.tokens, key_stride, key_offset, keys);
  in.k = load_rows(p.k, first, in.rows, key_stride, key_offset, keys);
  in.v = load_rows(p.v, first, in.rows, heads * values, head * values, values);
  for (balls* rows : {&in.q, &in.k, &in.v}) load(*rows, roundings);
  const row_rounding& how = roundings.rows;
  const bool stored_scaled = p.qk_l2norm && how.scale == read_scale::l2norm;
  if (p.qk_l2norm) {
    normalise(in.q, roundings, stored_scaled ? std::nullopt : how.store);
    normalise(in.k, roundings, how.store);
  }
  if (how.scale != read_scale::o) {
    std::optional<narrowing> to = how.scaled_query;
    if (stored_scaled) to = how.store ? std::optional(narrowing{*how.store, false}) : std::nullopt;
    scale_rows(in.q, scale_as_read(p, how), to, roundings);
  }
  const balls beta = load_rows(p.beta, first, in.rows, heads, head, 1);
  in.step = balls(in.rows, 1);
  for (std::size_t i = 0; i < in.rows; ++i) {
    in.step.set(i, 0, effective_step(p, beta.value[i], in.k, i, roundings));
  }
  if (!p.g) {
    in.log_gates = balls(in.rows, 0);
    return in;
  }
  // The decay of a token acts before its first step; the other steps have none.
  const std::size_t channels = p.gate_per_channel() ? keys : 1;
  const balls gates = load_rows(*p.g, first_token, in.tokens, heads * channels, head * channels, channels);
  in.log_gates = balls(in.rows, channels);
  for (std::size_t t = 0; t < in.tokens; ++t) {
    for (std::size_t c = 0; c < channels; ++c) in.log_gates.value[t * n * channels + c] = gates.value[t * channels + c];
  }
  return in;
}

}  // namespace deltaproof::stages_detail
