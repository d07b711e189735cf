// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
//
// The stages of a chunk of the backward pass, from the last chunk to the first. Included by the two files that compile `adjoint`.
#pragma once

#include "emulate/backward_gates.hpp"

namespace deltaproof::emulation_detail {

template <class Real>
void adjoint<Real>::take(saved_chunk<Real> from) {
  chunk& c = site_.now;
  if (options_.planted != nullptr && from.first + from.rows < site_.all.k.rows()) site_.after = c;
  const backward_variant& b = site_.declared;
  const std::size_t n = site_.all.steps_per_token;
  c.index = from.index;
  c.first = from.first;
  c.rows = from.rows;
  c.full_rows = site_.plan.chunk;
  c.last = from.first + from.rows == site_.all.k.rows();
  c.q = matrix<Real>(c.rows, site_.all.q.cols(), Real(0));
  c.d_o = matrix<Real>(c.rows, site_.all.v.cols(), Real(0));
  for (std::size_t r = 0; r < c.rows; ++r) {
    if ((c.first + r + 1) % n != 0) continue;
    const std::size_t token = (c.first + r) / n;
    std::copy(site_.all.q.row(token).begin(), site_.all.q.row(token).end(), c.q.row(r).begin());
    std::copy(site_.d_o.row(token).begin(), site_.d_o.row(token).end(), c.d_o.row(r).begin());
  }
  c.k = std::move(from.k);
  c.v = std::move(from.v);
  c.step = std::move(from.step);
  c.G = std::move(from.G);
  c.Ai = square_of(from.Ai, c.rows);
  c.w = std::move(from.w);
  c.h = b.h ? narrow_copy(std::move(from.state), *b.h) : std::move(from.h);
  c.v_new = b.v_new ? narrow_copy(std::move(from.change), *b.v_new) : std::move(from.v_new);
  c.weights = from.weights.empty() ? matrix<Real>() : square_of(from.weights, c.rows);
  if (!by_residual()) return;
  c.read = forward_.times(narrow_copy(c.k, b.operand), narrow_copy(c.h, b.operand), b.operand.to, b.accumulate);
  c.residual = forward_.residual(c.v, c.read, c.G);
  c.gated = forward_.gated_inverse(c.Ai, c.step, c.G);
  // What this form does not make gives nothing.
  c.dw = c.dq_gated = c.dk_gated = c.dk_overlap = c.dk_overlapped = c.dk_transform = matrix<Real>(c.rows, c.k.cols(), Real(0));
}

// P^T do; P is what the forward pass saved where a gate has channels.
template <class Real>
void adjoint<Real>::local_values(chunk& c) {
  const plan_variant& plan = site_.plan;
  if (c.weights.empty()) {
    std::vector<std::size_t> row_of(c.rows), columns(c.rows);
    for (std::size_t r = 0; r < c.rows; ++r) {
      row_of[r] = r;
      columns[r] = r + 1;
    }
    c.weights = forward_.decayed_products(c.q, row_of, columns, c.k, c.G,
                                          site_.all.channels && site_.all.gated ? plan.A.operand : site_.declared.operand,
                                          site_.declared.accumulate, std::nullopt);
    for (std::size_t i = 0; i < c.weights.size(); ++i) c.weights.data()[i] *= site_.all.scale;
    for (std::size_t i = 0; i < c.rows; ++i)
      std::fill(c.weights.row(i).begin() + static_cast<std::ptrdiff_t>(i) + 1, c.weights.row(i).end(), Real(0));
    if (site_.all.channels && site_.all.gated) c.weights = narrow_copy(std::move(c.weights), as_stored(plan.o.operand));
  }
  c.dv_local = narrow_copy(times(transpose(c.weights), c.d_o), {site_.declared.dv_local, false});
}

// dv2 = k dh, decayed, + dv_local.
template <class Real>
void adjoint<Real>::value_gradients(chunk& c) {
  c.dh = narrow_copy(c.d_state, {site_.declared.dh, false});
  const bool gated = c.G.cols() > 0, on_keys = gated && site_.all.channels;
  c.d_change = times(on_keys ? decayed_to_end(c.k, c.G) : c.k, c.dh);
  if (gated && !on_keys) c.d_change = decayed_to_end(std::move(c.d_change), c.G);
  for (std::size_t i = 0; i < c.d_change.size(); ++i) c.d_change.data()[i] += c.dv_local.data()[i];
  c.d_change = narrow_copy(std::move(c.d_change), kept());
  c.dv2 = narrow_copy(c.d_change, {site_.declared.dv2, false});
  if (by_residual()) through_residual(c);
}

// dS <- e^{G_C} dS + scale (q e^G)^T do - w^T dv2.
template <class Real>
void adjoint<Real>::state_gradient(chunk& c) {
  const bool gated = c.G.cols() > 0;
  const narrowing& reads = site_.declared.read_operand;
  const bool on_do = site_.declared.read_decay == cotangent_decay::d_o;
  matrix<Real> cotangent = c.d_o;
  for (std::size_t i = 0; i < cotangent.size() && on_do; ++i) cotangent.data()[i] *= site_.all.scale;
  if (on_do) cotangent = decayed_to_row(std::move(cotangent), c.G);
  const Real scale = on_do ? Real(1) : site_.all.scale;
  matrix<Real> queries = transpose(on_do ? c.q : decayed_to_row(c.q, c.G));
  for (std::size_t i = 0; i < c.d_state.rows() && gated; ++i) {
    const Real decay = forward_.exp2_of(c.G(c.rows - 1, site_.all.channels ? i : 0));
    for (Real& x : c.d_state.row(i)) x *= decay;
  }
  if (adds_in_place_ && !options_.in_any_order) {
    c.d_state = plus_times(std::move(c.d_state), std::move(queries), std::move(cotangent), reads, scale);
    c.d_state = plus_times(std::move(c.d_state), transpose(by_residual() ? c.k : c.w), by_residual() ? c.d_read : c.d_change,
                           site_.declared.operand, by_residual() ? Real(1) : Real(-1));
  } else {
    const matrix<Real> read = times(std::move(queries), std::move(cotangent), reads);
    matrix<Real> write = by_residual() ? times(transpose(c.k), c.d_read) : times(transpose(c.w), c.d_change);
    for (std::size_t i = 0; i < write.size() && by_residual(); ++i) write.data()[i] = -write.data()[i];
    for (std::size_t i = 0; i < c.d_state.size(); ++i) {
      Real& x = c.d_state.data()[i];
      const std::array<Real, 3> parts{x, read.data()[i] * scale, -write.data()[i]};
      x += parts[1] + parts[2];
      if (options_.in_any_order) guard(x, parts.size(), [&](std::size_t part) { return parts[part]; });
    }
  }
  c.d_state = narrow_copy(std::move(c.d_state), kept());
}

// dw = -dv2 h^T.
template <class Real>
void adjoint<Real>::transform_gradients(chunk& c) {
  if (by_residual()) return;
  c.dw = times(c.dv2, transpose(c.h));
  for (std::size_t i = 0; i < c.dw.size(); ++i) c.dw.data()[i] = -c.dw.data()[i];
  c.dw = narrow_copy(std::move(c.dw), {site_.declared.dw, false});
}

// ds = do v_new^T on and below the diagonal, with the decay of one number. Without a gate the scale comes later.
template <class Real>
void adjoint<Real>::weight_gradients(chunk& c) {
  c.ds = times(c.d_o, transpose(c.v_new));
  const bool gated = site_.all.gated;
  std::vector<Real> decays;
  for (std::size_t i = 0; i < c.rows; ++i) {
    if (gated && !site_.all.channels) {
      decays.resize(i + 1);
      for (std::size_t j = 0; j <= i; ++j) decays[j] = c.G(i, 0) - c.G(j, 0);
      forward_.exp2_of_all(decays);
      for (std::size_t j = 0; j <= i; ++j) c.ds(i, j) *= decays[j];
    }
    for (std::size_t j = 0; j <= i && (gated || by_residual()); ++j) c.ds(i, j) *= site_.all.scale;
    std::fill(c.ds.row(i).begin() + static_cast<std::ptrdiff_t>(i) + 1, c.ds.row(i).end(), Real(0));
  }
  c.ds = narrow_copy(std::move(c.ds), {site_.declared.ds, false});
}

// What the states before and after the chunk give q and k.
template <class Real>
void adjoint<Real>::through_states(chunk& c) {
  c.dq_read = times(c.d_o, transpose(c.h));
  c.dk_write = times(c.v_new, transpose(c.dh));
  if (c.G.cols() == 0 && !by_residual()) return;
  c.dq_read = decayed_to_row(std::move(c.dq_read), c.G);
  for (std::size_t i = 0; i < c.dq_read.size(); ++i) c.dq_read.data()[i] *= site_.all.scale;
  c.dk_write = decayed_to_end(std::move(c.dk_write), c.G);
}

// dA = -Ai^T (dw (b e^G k)^T + dv2 (b v)^T) Ai^T below the diagonal. A gate of channels has b on the columns instead.
template <class Real>
void adjoint<Real>::overlap_gradients(chunk& c) {
  if (by_residual()) return inverse_gradients(c);
  const backward_variant& b = site_.declared;
  const bool gated = c.G.cols() > 0, by_channel = gated && site_.all.channels;
  matrix<Real> keys = c.k, values = c.v;
  for (std::size_t r = 0; r < c.rows && !by_channel; ++r) {
    for (Real& x : keys.row(r)) x *= c.step[r];
    for (Real& x : values.row(r)) x *= c.step[r];
  }
  if (gated) keys = decayed_to_row(std::move(keys), c.G);
  matrix<Real> d = plus_times(times(c.dw, transpose(keys)), c.dv2, transpose(values), b.operand);
  for (std::size_t i = 0; i < c.rows; ++i) {
    for (std::size_t j = 0; j < c.rows; ++j) d(i, j) = j >= i ? Real(0) : by_channel ? d(i, j) * c.step[j] : d(i, j);
  }
  matrix<Real> between = times(std::move(d), transpose(c.Ai));
  if (b.dA_between) between = narrow_copy(std::move(between), {*b.dA_between, false});
  c.dA = times(transpose(c.Ai), std::move(between));
  std::vector<Real> decays;
  for (std::size_t i = 0; i < c.rows; ++i) {
    decays.assign(i, Real(1));
    if (gated && !by_channel) {
      for (std::size_t j = 0; j < i; ++j) decays[j] = c.G(i, 0) - c.G(j, 0);
      forward_.exp2_of_all(decays);
    }
    for (std::size_t j = 0; j < c.rows; ++j) c.dA(i, j) = j < i ? -c.dA(i, j) * decays[j] : Real(0);
  }
  c.dA = narrow_copy(std::move(c.dA), {b.dA, false});
}

// What the products inside the chunk give q and k.
template <class Real>
void adjoint<Real>::inside(chunk& c) {
  const backward_variant& b = site_.declared;
  if (by_residual()) return inside_of_residual(c);
  if (site_.all.channels && site_.all.gated) return inside_by_channels(c);
  const bool apart = b.diagonal == diagonal_terms::excluded && site_.all.gated;
  matrix<Real> ds = c.ds;
  for (std::size_t i = 0; i < c.rows && apart; ++i) ds(i, i) = 0;
  if (site_.all.gated) {
    c.dq = plus_times(c.dq_read, ds, c.k, b.intra_operand);
    c.dk_inside = plus_times(c.dk_write, transpose(ds), c.q, b.intra_operand);
  } else {
    c.dq = plus_times(c.dq_read, ds, c.k, b.intra_operand);
    for (std::size_t i = 0; i < c.dq.size(); ++i) c.dq.data()[i] *= site_.all.scale;
    c.dk_inside = times(transpose(ds), c.q, b.intra_operand);
    for (std::size_t i = 0; i < c.dq.size(); ++i)
      c.dk_inside.data()[i] = c.dk_write.data()[i] + c.dk_inside.data()[i] * site_.all.scale;
  }
  c.dq_gated = c.dq;
  c.dk_gated = c.dk_inside;
  for (std::size_t i = 0; i < c.rows && apart; ++i) {
    for (std::size_t m = 0; m < c.k.cols(); ++m) {
      c.dq(i, m) += c.ds(i, i) * c.k(i, m);
      c.dk_inside(i, m) += c.ds(i, i) * c.q(i, m);
    }
  }
  matrix<Real> keys = c.k;
  for (std::size_t r = 0; r < c.rows; ++r) {
    for (Real& x : keys.row(r)) x *= c.step[r];
  }
  keys = narrow_copy(std::move(keys), {wider(site_.plan.beta, site_.in.x), false});
  c.dk_overlap = times(c.dA, c.k, b.intra_operand);
  c.dk_overlapped = times(transpose(c.dA), std::move(keys), b.intra_operand);
}

template <class Real>
void adjoint<Real>::inside_by_channels(chunk& c) {
  const bool apart = site_.declared.diagonal == diagonal_terms::excluded;
  matrix<Real> ds = c.ds, keys = c.k;
  for (std::size_t i = 0; i < c.rows && apart; ++i) ds(i, i) = 0;
  for (std::size_t r = 0; r < c.rows; ++r) {
    for (Real& x : keys.row(r)) x *= c.step[r];
  }
  // b k is a row of its own where blocks are multiplied, and a product of three numbers term by term.
  const matrix<Real> stepped = narrow_copy(keys, {wider(site_.plan.beta, site_.in.x), false});
  decayed_sums by_rows{{{&ds, &c.k, &c.k}, {&c.dA, &c.k, &c.k}}}, by_columns{{{&ds, &c.q, &c.q}, {&c.dA, &keys, &stepped}}};
  add_decayed(by_rows, by_columns, c.G);
  c.dq = std::move(by_rows[0].out);
  c.dk_overlap = std::move(by_rows[1].out);
  c.dk_inside = std::move(by_columns[0].out);
  c.dk_overlapped = std::move(by_columns[1].out);
  c.dq_gated = c.dq;
  c.dk_gated = c.dk_inside;
  for (std::size_t i = 0; i < c.rows; ++i) {
    const Real own = apart ? c.ds(i, i) : Real(0);
    for (std::size_t m = 0; m < c.k.cols(); ++m) {
      c.dq(i, m) += c.dq_read(i, m) + own * c.k(i, m);
      c.dk_inside(i, m) += c.dk_write(i, m) + own * c.q(i, m);
    }
  }
}

// k e^G as it meets Ai^T dw for db and dg.
template <class Real>
matrix<Real> adjoint<Real>::gated_keys(const chunk& c) {
  matrix<Real> out = decayed_to_row(c.k, c.G);
  return site_.declared.gated_key ? narrow_copy(std::move(out), {*site_.declared.gated_key, false}) : out;
}

// What w and u give k, v and b, and dk from its parts.
template <class Real>
void adjoint<Real>::through_transforms(chunk& c) {
  if (by_residual()) {
    c.dk = narrow_copy(c.dk_inside, {site_.declared.dk, false});
    return;
  }
  const backward_variant& b = site_.declared;
  matrix<Real> inverse = transpose(c.Ai);
  c.dk_transform = times(inverse, c.dw);
  c.dv = times(std::move(inverse), c.dv2);
  const matrix<Real> keys = gated_keys(c);
  c.d_step = row_sums(c.dk_transform, keys);
  const std::vector<Real> by_value = row_sums(c.dv, c.v), by_overlap = row_sums(c.dk_overlap, c.k);
  for (std::size_t r = 0; r < c.rows; ++r) {
    c.d_step[r] += by_value[r];
    c.d_step[r] += by_overlap[r];
    for (Real& x : c.dv.row(r)) x *= c.step[r];
  }
  const narrowing part{b.dk, false};
  matrix<Real> of_transform = decayed_to_row(c.dk_transform, c.G);
  for (std::size_t r = 0; r < c.rows; ++r) {
    for (Real& x : of_transform.row(r)) x *= c.step[r];
  }
  of_transform = narrow_copy(std::move(of_transform), part);
  for (std::size_t r = 0; r < c.rows; ++r) {
    for (std::size_t m = 0; m < c.k.cols(); ++m) of_transform(r, m) += c.dk_overlapped(r, m) + c.dk_overlap(r, m) * c.step[r];
  }
  of_transform = narrow_copy(std::move(of_transform), part);
  c.dk = narrow_copy(c.dk_inside, part);
  for (std::size_t i = 0; i < c.dk.size(); ++i) c.dk.data()[i] += of_transform.data()[i];
  c.dk = narrow_copy(std::move(c.dk), part);
}

template <class Real>
void adjoint<Real>::keep(const chunk& c) {
  const std::size_t n = site_.all.steps_per_token;
  for (std::size_t o = 0; o < other_local_.size(); ++o) {
    for (std::size_t r = 0; r < c.rows; ++r) {
      const auto from = r + 1 == c.rows && o < other_ends_.size() ? std::span<const Real>(other_ends_[o]) : c.dg.row(r);
      std::copy(from.begin(), from.end(), other_local_[o].row(c.first + r).begin());
    }
  }
  for (std::size_t r = 0; r < c.rows; ++r) {
    const std::size_t row = c.first + r;
    std::copy(c.dk.row(r).begin(), c.dk.row(r).end(), site_.dk.row(row).begin());
    std::copy(c.dv.row(r).begin(), c.dv.row(r).end(), site_.dv.row(row).begin());
    std::copy(c.dg.row(r).begin(), c.dg.row(r).end(), site_.dg_local.row(row).begin());
    site_.d_step[row] = c.d_step[r];
    if ((row + 1) % n == 0) std::copy(c.dq.row(r).begin(), c.dq.row(r).end(), site_.dq.row(row / n).begin());
  }
  if (!options_.stages) return;
  const bool by_channel = site_.all.channels && site_.all.gated;
  put_rows(stages_["dv_local"], c.first, c.dv_local);
  put_rows(stages_["dv2"], c.first, c.dv2);
  put_rows(stages_["dh"], c.index * c.dh.rows(), c.dh);
  if (by_residual()) return;
  if (!by_channel) return put_rows(stages_["dw"], c.first, c.dw);
  put_rows(stages_["dAqk"], c.first, c.ds);
  put_rows(stages_["dAkk"], c.first, c.dA);
}

template <class Real>
void adjoint<Real>::run_chunks() {
  chunk& c = site_.now;
  if (options_.stages) {
    const std::size_t rows = site_.all.k.rows(), V = site_.all.v.cols(), K = site_.all.k.cols(), C = site_.plan.chunk;
    stages_["dv_local"] = stages_["dv2"] = matrix<double>(rows, V);
    stages_["dh"] = matrix<double>(saved_.size() * K, V);
    if (site_.all.channels && site_.all.gated) {
      stages_["dAqk"] = stages_["dAkk"] = matrix<double>(rows, C, 0.0);
    } else if (!by_residual()) {
      stages_["dw"] = matrix<double>(rows, K);
    }
  }
  for (const chunk_visit& visit : visits_of(site_.in, site_.plan, true)) {
    if (visit.from_zero) c.d_state = matrix<Real>(c.d_state.rows(), c.d_state.cols(), Real(0));
    // Where sequences are split a chunk may be asked for again.
    run_chunk(site_.plan.split.chunks > 0 ? saved_[visit.chunk] : std::move(saved_[visit.chunk]), visit.kept);
  }
  site_.d_initial_state = c.d_state;
  if (options_.stages && site_.all.gated) stages_["dg_local"] = widened(site_.dg_local);
  planted(backward_step::cumsum, true);
  cumulate(site_.dg_local, site_.dg);
  for (std::size_t o = 0; o < other_local_.size(); ++o) cumulate(other_local_[o], other_dg_[o]);
  planted(backward_step::cumsum, false);
}

template <class Real>
void adjoint<Real>::run_chunk(saved_chunk<Real> saved, bool kept) {
  chunk& c = site_.now;
  take(std::move(saved));
  planted(backward_step::chunk, false);
  const auto move = [](auto... members) {
    return [=](chunk& to, chunk& from) { ((to.*members = std::move(from.*members)), ...); };
  };
  using step = backward_step;
  stage(step::dv_local, [&](chunk& x) { local_values(x); }, move(&chunk::weights, &chunk::dv_local));
  stage(
      step::dv2, [&](chunk& x) { value_gradients(x); },
      [this](chunk& to, chunk& from) {
        to.dh = std::move(from.dh);
        to.d_change = std::move(from.d_change);
        to.dv2 = std::move(from.dv2);
        if (!by_residual()) return;
        to.dv = std::move(from.dv);
        to.d_read = std::move(from.d_read);
      });
  stage(step::state, [&](chunk& x) { state_gradient(x); }, move(&chunk::d_state));
  stage(step::dw, [&](chunk& x) { transform_gradients(x); }, move(&chunk::dw));
  stage(step::ds, [&](chunk& x) { weight_gradients(x); }, move(&chunk::ds));
  stage(step::read, [&](chunk& x) { through_states(x); }, move(&chunk::dq_read, &chunk::dk_write));
  stage(
      step::dA, [&](chunk& x) { overlap_gradients(x); },
      [this](chunk& to, chunk& from) {
        to.dA = std::move(from.dA);
        if (!by_residual()) return;
        to.d_inverse = std::move(from.d_inverse);
        to.d_step = std::move(from.d_step);
      });
  stage(
      step::intra, [&](chunk& x) { inside(x); },
      move(&chunk::dq, &chunk::dk_inside, &chunk::dq_gated, &chunk::dk_gated, &chunk::dk_overlap, &chunk::dk_overlapped));
  stage(
      step::wy, [&](chunk& x) { through_transforms(x); },
      [this](chunk& to, chunk& from) {
        to.dk = std::move(from.dk);
        if (by_residual()) return;
        to.dk_transform = std::move(from.dk_transform);
        to.dv = std::move(from.dv);
        to.d_step = std::move(from.d_step);
      });
  stage(step::gate, [&](chunk& x) { gate_gradients(x); }, move(&chunk::dg));
  if (kept) keep(c);
}

}  // namespace deltaproof::emulation_detail
