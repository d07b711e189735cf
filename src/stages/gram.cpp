// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
#include <algorithm>
#include <limits>
#include <utility>

#include "stages/parts.hpp"
#include "support/widest_vectors.hpp"

namespace deltaproof::stages_detail {

namespace {

struct gram_call {
  const balls& x;
  std::span<const std::size_t> row_of;
  const balls& k;
  chunk_decays& decays;
  const balls& multiplier;
  std::size_t extra;
  bool strict;
  const gram_rounding& how;
  const arithmetic_errors& errors;

  [[nodiscard]] double roundoff() const { return std::max(how.accumulate, errors.elementwise); }
  [[nodiscard]] std::size_t columns(std::size_t i) const { return row_of[i] + (strict ? 0 : 1); }
};

/// A sum of n roundings in u, rounded to what the products are stored in.
ball rounded_sum(const gram_call& call, double value, double terms, double upper, std::size_t n, double u) {
  return narrow(ball{value, call.errors.bound(terms, upper, 1, 1, n, u)}, narrowing{*call.how.product_store, false});
}

// K products and their additions, the decay, the multiplier: K + 2 roundings and what the multiplier costs.
void on_finished_product(const gram_call& call, balls& out) {
  const product dot = multiply(narrow(call.x, call.how.operand), narrow(call.k.transposed(), call.how.operand));
  for (std::size_t i = 0; i < call.x.rows; ++i) {
    const ball m = call.multiplier.at(i, 0);
    for (std::size_t j = 0; j < call.columns(i); ++j) {
      const ball e = call.decays.between(call.row_of[i], j, 0);
      const std::size_t at = i * dot.cols + j;
      const double factor = std::fabs(m.value) * e.value;
      if (call.how.product_store) {
        const ball sum = rounded_sum(call, dot.value[at], dot.terms[at], dot.upper[at], call.x.cols, call.roundoff());
        out.set(
            i, j,
            {m.value * e.value * sum.value, call.errors.bound(std::fabs(sum.value), sum.upper(), factor, m.upper() * e.upper(),
                                                              2 + call.extra, call.errors.elementwise)});
        continue;
      }
      const double error = call.errors.bound(dot.terms[at], dot.upper[at], factor, m.upper() * e.upper(),
                                             call.x.cols + 2 + call.extra, call.roundoff());
      out.set(i, j, {m.value * e.value * dot.value[at], error});
    }
  }
}

/// A finished sum times the multiplier of its row.
ball multiplied(const gram_call& call, ball sum, ball m) {
  return {m.value * sum.value, call.errors.bound(std::fabs(sum.value), sum.upper(), std::fabs(m.value), m.upper(), 1 + call.extra,
                                                 call.errors.elementwise)};
}

struct three_sums {
  double value, terms, upper;
};

/// Of row i of x times row j of k times the decays: each sum in eight side by side. Both have radii.
three_sums decayed_sums(const balls& x, std::size_t i, const balls& k, std::size_t j, std::span<const ball> decays) {
  constexpr std::size_t lanes = 8;
  const std::size_t count = x.cols, whole = count / lanes * lanes;
  const double *const xs = x.value.data() + i * count, *const ks = k.value.data() + j * count,
                      *const x_radius = x.radius.data() + i * count, *const k_radius = k.radius.data() + j * count;
  double value[lanes] = {}, terms[lanes] = {}, upper[lanes] = {};
  deltaproof::detail::in_widest_vectors([&]() __attribute__((always_inline)) {
    const auto add = [&](std::size_t c, std::size_t lane) __attribute__((always_inline)) {
      const ball& e = decays[c];
      const double product = xs[c] * ks[c] * e.value;
      value[lane] += product;
      terms[lane] += std::fabs(product);
      upper[lane] += (std::fabs(xs[c]) + x_radius[c]) * (std::fabs(ks[c]) + k_radius[c]) * (std::fabs(e.value) + e.radius);
    };
    for (std::size_t c = 0; c < whole; c += lanes) {
      for (std::size_t lane = 0; lane < lanes; ++lane) add(c + lane, lane);
    }
    for (std::size_t c = whole; c < count; ++c) add(c, 0);
  });
  three_sums out{0, 0, 0};
  for (std::size_t lane = 0; lane < lanes; ++lane) {
    out.value += value[lane];
    out.terms += terms[lane];
    out.upper += upper[lane];
  }
  return out;
}

// In each term the decay, the multiplier (before or after the sum), the product; K - 1 additions: K + 3 at most.
void term_by_term(const gram_call& call, std::size_t i, std::size_t j, balls& out) {
  const ball m = call.multiplier.at(i, 0);
  const auto [value, terms, upper] = decayed_sums(call.x, i, call.k, j, call.decays.channels_between(call.row_of[i], j));
  const double u = call.errors.elementwise;
  if (call.how.product_store) {
    out.set(i, j, multiplied(call, rounded_sum(call, value, terms, upper, call.x.cols + 3, u), m));
    return;
  }
  const double error = call.errors.bound(terms, upper, std::fabs(m.value), m.upper(), call.x.cols + 3 + call.extra, u);
  out.set(i, j, {m.value * value, error});
}

struct block_range {
  std::size_t begin, end;   // queries
  std::size_t first, last;  // columns
  std::size_t reference;    // the row whose G both factors are relative to
  double shift = 0;         // added to it, to base 2
};

/// x e^{G_i - R} times k e^{R - G_j}, both narrowed. Answers which columns are left out: all where R is not finite, and those
/// behind a gate of -inf, whose factor is infinite.
std::vector<bool> by_reference(const gram_call& call, const block_range& at, balls& out) {
  const std::size_t columns = at.last - at.first;
  const std::size_t channels = call.x.cols;
  std::vector<bool> left_out(columns, false);
  std::vector<ball> e(channels);
  if (columns > 0 && !call.decays.signed_between(at.reference, at.reference, e)) return std::vector<bool>(columns, true);
  balls left = call.x.slice(at.begin, at.end - at.begin), right = call.k.slice(at.first, columns);
  for (std::size_t i = at.begin; i < at.end; ++i) {
    if (!call.decays.signed_between(call.row_of[i], at.reference, e, -at.shift)) {
      for (std::size_t c = 0; c < channels; ++c) {
        if (!call.decays.signed_between(call.row_of[i], at.reference, c, e[c], -at.shift)) e[c] = call.decays.emptied();
      }
    }
    decay_row(left, i - at.begin, e, call.errors);
  }
  for (std::size_t j = at.first; j < at.last; ++j) {
    if (!call.decays.signed_between(at.reference, j, e, at.shift)) {
      for (std::size_t c = 0; c < channels; ++c) {
        if (!call.decays.signed_between(at.reference, j, c, e[c], at.shift)) e[c] = {0, 0}, left_out[j - at.first] = true;
      }
    }
    decay_row(right, j - at.first, e, call.errors);
  }
  const product dot = multiply(narrow(std::move(left), call.how.operand), narrow(right.transposed(), call.how.operand));
  for (std::size_t i = at.begin; i < at.end; ++i) {
    const ball m = call.multiplier.at(i, 0);
    for (std::size_t j = at.first; j < std::min(at.last, call.columns(i)); ++j) {
      if (left_out[j - at.first]) continue;
      const std::size_t cell = (i - at.begin) * columns + j - at.first;
      if (call.how.product_store) {
        out.set(
            i, j,
            multiplied(call, rounded_sum(call, dot.value[cell], dot.terms[cell], dot.upper[cell], channels, call.roundoff()), m));
        continue;
      }
      const double error = call.errors.bound(dot.terms[cell], dot.upper[cell], std::fabs(m.value), m.upper(),
                                             channels + 1 + call.extra, call.roundoff());
      out.set(i, j, {m.value * dot.value[cell], error});
    }
  }
  return left_out;
}

void by_blocks(const gram_call& call, balls& out) {
  std::size_t begin = 0;
  while (begin < call.x.rows) {
    const std::size_t first = call.row_of[begin] / call.how.block * call.how.block;
    const std::size_t last = std::min(first + call.how.block, call.k.rows);
    std::size_t end = begin;
    while (end < call.x.rows && call.row_of[end] < last) ++end;
    std::vector<bool> left_out = by_reference(call, {begin, end, 0, first, first}, out);
    const std::size_t within = call.how.form == gram_form::middle_blocks ? call.how.block / 2 : 0;
    const std::size_t reference = std::min(first + within, call.k.rows - 1);
    const std::vector<bool> inside = call.how.form == gram_form::reference_blocks
                                         ? std::vector<bool>(last - first, true)
                                         : by_reference(call, {begin, end, first, last, reference, call.how.shift}, out);
    left_out.insert(left_out.end(), inside.begin(), inside.end());
    for (std::size_t i = begin; i < end; ++i) {
      for (std::size_t j = 0; j < call.columns(i); ++j) {
        if (left_out[j]) term_by_term(call, i, j, out);
      }
    }
    begin = end;
  }
}

}  // namespace

balls decayed_gram(const balls& x, std::span<const std::size_t> row_of, const balls& k, chunk_decays& decays, bool in_sum,
                   const balls& multiplier, std::size_t extra, bool strict, const gram_rounding& how,
                   const arithmetic_errors& errors) {
  balls rows, keys;
  if (in_sum) {
    rows = x, keys = k;
    rows.radii(), keys.radii();
  }
  const gram_call call{in_sum ? rows : x, row_of, in_sum ? keys : k, decays, multiplier, extra, strict, how, errors};
  balls out(x.rows, k.rows);
  out.radius.assign(out.value.size(), 0);
  if (!(how.accumulate < std::numeric_limits<double>::infinity())) {
    out.value.assign(out.value.size(), std::numeric_limits<double>::quiet_NaN());
  } else if (!in_sum) {
    on_finished_product(call, out);
  } else if (how.form != gram_form::difference) {
    by_blocks(call, out);
  } else {
    for (std::size_t i = 0; i < x.rows; ++i) {
      for (std::size_t j = 0; j < call.columns(i); ++j) term_by_term(call, i, j, out);
    }
  }
  return out;
}

// Rounded exactly as declared where both are given.
balls stepped_rows(const balls& x, const balls& step, const format& to) {
  balls out(x.rows, x.cols);
  for (std::size_t i = 0; i < x.rows; ++i) {
    const ball b = step.at(i, 0);
    for (std::size_t c = 0; c < x.cols; ++c) {
      const ball from = x.at(i, c);
      const double value = b.value * from.value;
      out.set(i, c, {value, b.radius == 0 && from.radius == 0 ? 0 : b.upper() * from.upper() - std::fabs(value)});
    }
  }
  return narrow(std::move(out), narrowing{to, false});
}

// The decay is one more rounding.
balls scaled_rows(const balls& x, const balls& step, const chunk_decays* decays, const scaled_rounding& how,
                  const arithmetic_errors& errors) {
  balls out = stepped_rows(x, step, how.beta_product);
  const std::size_t channels = decays != nullptr ? decays->channels() : 0;
  std::vector<ball> e(channels);
  for (std::size_t i = 0; i < x.rows && channels > 0; ++i) {
    decays->since_start(i, std::span(e));
    decay_row(out, i, e, errors);
  }
  return narrow(std::move(out), how.operand);
}

}  // namespace deltaproof::stages_detail
