// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
#include "stages/backward_inner.hpp"

#include <algorithm>
#include <bit>
#include <functional>
#include <initializer_list>

namespace deltaproof::stages_detail {

namespace {

double unit_of(const narrowing& n) { return unit_roundoff(n.to) * (n.toward_zero ? 2 : 1); }

/// Additions that a term of the sum of h dh goes through, of `count` terms that a kernel adds in this order.
std::size_t additions(tile_order order, std::size_t rows, std::size_t cols) {
  const std::size_t count = std::max<std::size_t>(1, rows * cols);
  const auto tiled = [&](std::size_t threads) {
    const std::size_t held = std::min<std::size_t>(std::bit_ceil(count), 128 * 128);
    const std::size_t used = std::min(threads, std::max<std::size_t>(1, held / 8));
    return held / used + static_cast<std::size_t>(std::bit_width(used)) + (count + held - 1) / held + 1;
  };
  switch (order) {
    case tile_order::sequential:
      return count;
    case tile_order::pairwise:
      return static_cast<std::size_t>(std::bit_width(count)) + 1;
    case tile_order::warps_2:
    case tile_order::warps_4:
    case tile_order::warps_8:
      return tiled(64);  // those of the longest way
  }
  return count;
}

/// `x` as stored, where the plan multiplies what was there before it was stored, or rounds it further.
balls before_storing(balls x, const std::optional<narrowing>& itself, const format& stored) {
  if (!itself) return x;
  if (itself->to.precision <= stored.precision) return narrow(std::move(x), *itself);
  for (std::size_t i = 0; i < x.value.size(); ++i) x.set(i / x.cols, i % x.cols, {x.value[i], half_ulp(x.value[i], stored)});
  return x;
}

}  // namespace

chunk_backward::chunk_backward(const problem& p, const plan_variant& v, const arithmetic_errors& errors, chunk_decays& decays,
                               const chunk_given& given)
    : p_{p},
      v_{v},
      b_{*v.backward},
      errors_{errors},
      decays_{decays},
      at_{given},
      rows_{given.k.rows},
      gated_{decays.channels() > 0},
      channels_{p.gate_per_channel()},
      u_{unit_roundoff(b_.accumulate)} {
  const balls h = before_storing(at_.h, b_.h, v.state.store.to), v_new = before_storing(at_.v_new, b_.v_new, v.v_new.store);
  ds_ = at_.ds ? *at_.ds : times(at_.d_o, v_new.transposed(), b_.operand);
  const ball scale{p.scale, std::fabs(p.scale) * errors_.elementwise};
  for (std::size_t i = 0; i < rows_; ++i) {
    for (std::size_t j = 0; j < rows_; ++j) {
      ball x = j <= i ? ds_.at(i, j) : ball{};
      if (j <= i && !at_.ds && gated_) {
        if (!channels_) x = product_of(x, decays_.between(i, j, 0));
        x = product_of(x, scale);
      }
      ds_.set(i, j, j <= i && !at_.ds ? narrow(x, {b_.ds, false}) : x);
    }
  }
  dq_read_ = times(at_.d_o, h.transposed(), b_.operand);
  if (gated_) dq_read_ = decayed(dq_read_, false);
  for (std::size_t i = 0; i < rows_ && gated_; ++i) {
    for (std::size_t m = 0; m < dq_read_.cols; ++m) dq_read_.set(i, m, product_of(dq_read_.at(i, m), scale));
  }
  if (at_.dh.rows == 0) return;  // dq alone is asked for
  dk_write_ = times(v_new, at_.dh.transposed(), b_.operand);
  if (gated_) dk_write_ = decayed(dk_write_, true);
  if (at_.dv2.rows == 0) return;
  if (at_.dw) {
    dw_ = *at_.dw;
  } else {
    dw_ = times(at_.dv2, h.transposed(), b_.operand);
    for (double& x : dw_.value) x = -x;
    dw_ = narrow(std::move(dw_), {b_.dw, false});
  }
}

balls chunk_backward::times(const balls& a, const balls& b, const narrowing& operand, std::size_t more) const {
  product m = multiply(narrow(a, operand), narrow(b, operand));
  std::vector<double> radius = sum_bound(errors_, a.cols + more, u_).of_all(m);
  return {a.rows, b.cols, std::move(m.value), std::move(radius)};
}

// a b + c d in one accumulator.
balls chunk_backward::times_two(const balls& a, const balls& b, const balls& c, const balls& d, const narrowing& operand) const {
  product m = multiply(narrow(a, operand), narrow(b, operand));
  const product n = multiply(narrow(c, operand), narrow(d, operand));
  const auto add = [](std::vector<double>& to, const std::vector<double>& from) {
    std::transform(to.begin(), to.end(), from.begin(), to.begin(), std::plus());
  };
  add(m.value, n.value);
  add(m.terms, n.terms);
  add(m.upper, n.upper);
  std::vector<double> radius = sum_bound(errors_, a.cols + c.cols + 1, u_).of_all(m);
  return {a.rows, b.cols, std::move(m.value), std::move(radius)};
}

ball chunk_backward::product_of(ball x, ball y) const {
  const double upper = x.upper() * y.upper(), value = x.value * y.value;
  return {value, (upper - std::fabs(value)) + upper * (errors_.elementwise + own_roundoff) + errors_.underflow};
}

// Rounded once for each term, in whatever order.
ball chunk_backward::sum_of(std::initializer_list<ball> terms) const {
  ball out;
  double upper = 0;
  for (const ball& x : terms) {
    out.value += x.value;
    out.radius += x.radius;
    upper += x.upper();
  }
  out.radius += upper * (gamma(terms.size() + 1, std::max(u_, errors_.elementwise)) + own_roundoff * 8);
  return out;
}

ball chunk_backward::row_sum(const balls& x, const balls& y, std::size_t row) const {
  double value = 0, terms = 0, upper = 0;
  for (std::size_t m = 0; m < x.cols; ++m) {
    value += x.at(row, m).value * y.at(row, m).value;
    terms += std::fabs(x.at(row, m).value * y.at(row, m).value);
    upper += x.at(row, m).upper() * y.at(row, m).upper();
  }
  return {value, errors_.bound(terms, upper, 1, 1, x.cols + 1, u_)};
}

balls chunk_backward::decayed(const balls& x, bool to_end) const {
  balls out = x;
  for (std::size_t i = 0; i < x.rows && gated_; ++i) {
    ball decay;
    for (std::size_t m = 0; m < x.cols; ++m) {
      if (m == 0 || channels_) decay = to_end ? decays_.between(rows_ - 1, i, m) : decays_.since_start(i, m);
      out.set(i, m, product_of(x.at(i, m), decay));
    }
  }
  return out;
}

balls chunk_backward::scaled_by_step(const balls& x) const {
  balls out = x;
  for (std::size_t i = 0; i < x.rows; ++i) {
    const ball step = narrow(at_.step.at(i, 0), {v_.beta, false});
    for (std::size_t m = 0; m < x.cols; ++m) out.set(i, m, product_of(x.at(i, m), step));
  }
  return out;
}

balls chunk_backward::by_channels(const balls& m, const balls& x, const balls& in_blocks, bool rows) const {
  balls out(rows_, x.cols);
  // Blocks are products of factors that are rounded on their own; term by term nothing but the product is.
  const gate_form form = b_.blocks.value_or(v_.form);
  const bool factored = form != gate_form::difference;
  const auto term_by_term = [&](std::size_t i, std::size_t j) {
    return !factored || (form == gate_form::reference_block && i / v_.gate_block == j / v_.gate_block);
  };
  const double factors = factored ? 2 * gamma(2, std::max(errors_.exp2_relative, errors_.elementwise)) : 0;
  const double operands = factored ? 2.01 * unit_of(b_.intra_operand) : 0;
  for (std::size_t i = 0; i < rows_; ++i) {
    std::vector<double> value(x.cols, 0.0), terms(x.cols, 0.0), upper(x.cols, 0.0);
    for (std::size_t j = rows ? 0 : i; j < (rows ? i + 1 : rows_); ++j) {
      const ball weight = rows ? m.at(i, j) : m.at(j, i);
      const std::span<const ball> decay = rows ? decays_.channels_between(i, j) : decays_.channels_between(j, i);
      const balls& factor = term_by_term(i, j) ? x : in_blocks;
      for (std::size_t c = 0; c < x.cols; ++c) {
        const double term = weight.value * factor.at(j, c).value * decay[c].value;
        value[c] += term;
        terms[c] += std::fabs(term);
        upper[c] += weight.upper() * factor.at(j, c).upper() * decay[c].upper();
      }
    }
    const double more = 1 + operands + factors + 4 * errors_.elementwise;
    for (std::size_t c = 0; c < x.cols; ++c)
      out.set(i, c, {value[c], errors_.bound(terms[c], upper[c] * more, 1, 1, rows_ + 4, u_)});
  }
  return out;
}

balls chunk_backward::inside(const balls& m, const balls& x, bool rows) const {
  if (gated_ && channels_) return by_channels(m, x, x, rows);
  return times(rows ? m : m.transposed(), x, b_.intra_operand);
}

balls chunk_backward::queries() const {
  balls out = gated_ && channels_ ? by_channels(ds_, at_.k, at_.k, true) : times(ds_, at_.k, b_.intra_operand, 1);
  for (std::size_t i = 0; i < rows_; ++i) {
    for (std::size_t m = 0; m < out.cols; ++m) {
      ball x = sum_of({out.at(i, m), dq_read_.at(i, m)});
      if (!gated_) x = product_of(x, {p_.scale, std::fabs(p_.scale) * errors_.elementwise});
      out.set(i, m, narrow(x, {b_.dq, false}));
    }
  }
  return out;
}

balls chunk_backward::inverse() const {
  const bool by_channel = gated_ && channels_;
  balls keys = at_.k, values = at_.v;
  if (!by_channel) {
    keys = scaled_by_step(keys);
    values = scaled_by_step(values);
  }
  if (gated_) keys = decayed(keys, false);
  balls d = times_two(dw_, keys.transposed(), at_.dv2, values.transposed(), b_.operand);
  std::vector<ball> step(rows_);
  for (std::size_t j = 0; j < rows_; ++j) step[j] = narrow(at_.step.at(j, 0), {v_.beta, false});
  for (std::size_t i = 0; i < rows_; ++i) {
    for (std::size_t j = 0; j < rows_; ++j) {
      ball x = j < i ? d.at(i, j) : ball{};
      if (j < i && by_channel) x = product_of(x, step[j]);
      d.set(i, j, x);
    }
  }
  balls between = times(d, at_.Ai.transposed(), b_.operand);
  if (b_.dA_between) between = narrow(std::move(between), {*b_.dA_between, false});
  balls out = times(at_.Ai.transposed(), between, b_.operand);
  for (std::size_t i = 0; i < rows_; ++i) {
    for (std::size_t j = 0; j < rows_; ++j) {
      ball x = j < i ? out.at(i, j) : ball{};
      x.value = -x.value;
      if (j < i && gated_ && !channels_) x = product_of(x, decays_.between(i, j, 0));
      out.set(i, j, x);
    }
  }
  return out;
}

// <h, dh> of channels [first, last), times the decay of the chunk.
ball chunk_backward::state_sum(std::size_t first, std::size_t last) const {
  const balls h = before_storing(at_.h, b_.h, v_.state.store.to);
  double value = 0, terms = 0, upper = 0;
  for (std::size_t i = first; i < last; ++i) {
    for (std::size_t j = 0; j < at_.dh.cols; ++j) {
      value += h.at(i, j).value * at_.dh.at(i, j).value;
      terms += std::fabs(h.at(i, j).value * at_.dh.at(i, j).value);
      upper += h.at(i, j).upper() * at_.dh.at(i, j).upper();
    }
  }
  const double u = unit_roundoff(b_.state_sum);
  const std::size_t n = additions(b_.state_sum_order, last - first, at_.dh.cols) + 1;
  return product_of({value, sum_bound(errors_, n, std::max(u, u_), (last - first) * at_.dh.cols).of(terms, upper)},
                    decays_.since_start(rows_ - 1, channels_ ? first : 0));
}

chunk_gradients chunk_backward::all(const balls& dA) const {
  chunk_gradients out;
  const std::size_t K = at_.k.cols;
  out.dA = dA;
  out.dq = queries();
  const balls steps = scaled_by_step(at_.k);
  const format row_format = !p_.qk_l2norm ? p_.q.element_format() : v_.l2norm_store.value_or(v_.l2norm_compute);
  const format joined = v_.beta.precision > row_format.precision ? v_.beta : row_format;
  const balls bk = narrow(steps, {joined, false});
  const balls dk_gated = inside(ds_, at_.q, false), dk_overlap = inside(dA, at_.k, true);
  const balls dk_overlapped = gated_ && channels_ ? by_channels(dA, steps, bk, false) : inside(dA, bk, false);
  const balls dk_transform = times(at_.Ai.transposed(), dw_, b_.operand), dv = times(at_.Ai.transposed(), at_.dv2, b_.operand);
  const balls keys = gated_keys(), through = scaled_by_step(decayed(dk_transform, false));
  out.d_step = balls(rows_, 1);
  out.dk = balls(rows_, K);
  const narrowing part{b_.dk, false};
  for (std::size_t r = 0; r < rows_; ++r) {
    out.d_step.set(r, 0, sum_of({row_sum(dk_transform, keys, r), row_sum(dv, at_.v, r), row_sum(dk_overlap, at_.k, r)}));
    const ball step = narrow(at_.step.at(r, 0), {v_.beta, false});
    for (std::size_t m = 0; m < K; ++m) {
      ball inner = dk_gated.at(r, m);
      if (!gated_) inner = product_of(inner, {p_.scale, std::fabs(p_.scale) * errors_.elementwise});
      inner = narrow(sum_of({dk_write_.at(r, m), inner}), part);
      const ball first = narrow(through.at(r, m), part);
      const ball rest = narrow(sum_of({first, dk_overlapped.at(r, m), product_of(dk_overlap.at(r, m), step)}), part);
      out.dk.set(r, m, whole_key(inner, rest));
    }
  }
  if (gated_) {
    out.dg = balls(rows_, decays_.channels());
    const balls dq_gated = inside(ds_, at_.k, true);
    add_gates(dA, dq_gated, dk_gated, dk_overlap, dk_overlapped, dk_transform, out.dg);
  }
  return out;
}

// k e^G as it meets Ai^T dw for db and dg.
balls chunk_backward::gated_keys() const {
  balls out = decayed(at_.k, false);
  return b_.gated_key ? narrow(std::move(out), {*b_.gated_key, false}) : out;
}

// Heads that share k are added up before or after dk has both of its parts: half an ulp of each sum, whichever is formed.
ball chunk_backward::whole_key(ball inner, ball rest) const {
  const ball sum = sum_of({inner, rest});
  if (p_.value_heads() == p_.key_heads()) return narrow(sum, {b_.dk, false});
  const double open = half_ulp(sum.upper(), b_.dk) + 2 * half_ulp(inner.upper(), b_.dk) + 2 * half_ulp(rest.upper(), b_.dk);
  return {sum.value, sum.radius + open};
}

void chunk_backward::add_gates(const balls& dA, const balls& dq_gated, const balls& dk_gated, const balls& dk_overlap,
                               const balls& dk_overlapped, const balls& dk_transform, balls& dg) const {
  const balls keys = gated_keys();
  const auto minus = [](ball x) { return ball{-x.value, x.radius}; };
  if (channels_) {
    for (std::size_t m = 0; m < dg.cols; ++m) {
      ball at_end = state_sum(m, m + 1);
      for (std::size_t r = 0; r < rows_; ++r) {
        const ball k = at_.k.at(r, m), q = at_.q.at(r, m), written = product_of(k, dk_write_.at(r, m));
        const ball step = narrow(at_.step.at(r, 0), {v_.beta, false});
        at_end = sum_of({at_end, written});
        dg.set(r, m,
               sum_of({product_of(q, dq_read_.at(r, m)), minus(written),
                       product_of(product_of(keys.at(r, m), dk_transform.at(r, m)), step), product_of(q, dq_gated.at(r, m)),
                       product_of(product_of(dk_overlap.at(r, m), step), k), minus(product_of(dk_gated.at(r, m), k)),
                       minus(product_of(dk_overlapped.at(r, m), k))}));
      }
      dg.set(rows_ - 1, m, sum_of({dg.at(rows_ - 1, m), at_end}));
    }
    return;
  }
  const bool products = b_.dg_form == gate_gradient::products;
  const balls overlaps = scaled_by_step(times(at_.k, at_.k.transposed(), b_.operand));
  const balls weights = products ? times(at_.q, at_.k.transposed(), b_.operand) : balls();
  ball at_end = state_sum(0, at_.dh.rows);
  for (std::size_t r = 0; r < rows_; ++r) {
    const ball written = row_sum(dk_write_, at_.k, r), step = narrow(at_.step.at(r, 0), {v_.beta, false});
    at_end = sum_of({at_end, written});
    ball across, down;
    double upper = 0;
    for (std::size_t j = 0; j < rows_; ++j) {
      ball x = j < r ? product_of(dA.at(r, j), overlaps.at(r, j)) : ball{};
      ball y = j > r ? product_of(dA.at(j, r), overlaps.at(j, r)) : ball{};
      if (products && j <= r) x = sum_of({x, product_of(ds_.at(r, j), weights.at(r, j))});
      if (products && j >= r) y = sum_of({y, product_of(ds_.at(j, r), weights.at(j, r))});
      across = {across.value + x.value, across.radius + x.radius};
      down = {down.value + y.value, down.radius + y.radius};
      upper += x.upper() + y.upper();
    }
    across.radius += upper * gamma(2 * rows_ + 2, u_);
    const ball from_queries = products ? ball{} : row_sum(dq_gated, at_.q, r);
    const ball from_keys = products ? ball{} : row_sum(dk_gated, at_.k, r);
    dg.set(r, 0,
           sum_of({row_sum(dq_read_, at_.q, r), minus(written), from_queries, minus(from_keys),
                   product_of(row_sum(dk_transform, keys, r), step), across, minus(down)}));
  }
  dg.set(rows_ - 1, 0, sum_of({dg.at(rows_ - 1, 0), at_end}));
}

}  // namespace deltaproof::stages_detail
