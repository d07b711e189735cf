// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
//
// The stages of a chunk. Included by the two files that compile `machine`, one for each precision.
#pragma once

#include "emulate/machine_body.hpp"
#include "emulate/machine_decays.hpp"

namespace deltaproof::emulation_detail {

// Inclusive, times 1/ln 2. Without noise one row after the other and then scaled, as fla's cumsum with its scale. A scan
// (Hillis and Steele, Comm. ACM 29, 1986) associates the sum of each row otherwise, so that rows whose own gates are 0
// differ too.
template <class Real>
void machine<Real>::gate(chunk_state<Real>& c) {
  const auto& all = site_.all;
  const std::size_t n = all.steps_per_token, width = all.g.cols();
  const Real log2_e = options_.natural_exponents ? 1 : static_cast<Real>(std::numbers::log2e);
  const narrowing to{site_.plan.cumsum, false};
  // A sum in Real needs no second rounding where the format is Real's own.
  const bool own = site_.plan.cumsum.precision >= std::numeric_limits<Real>::digits;
  const auto kept = [&](Real x) { return own ? x : narrowed(x, to); };
  const auto add_row = [&](matrix<Real>& G, std::size_t to, std::size_t from) {
    for (std::size_t ch = 0; ch < width; ++ch) G(to, ch) = kept(G(to, ch) + G(from, ch));
  };
  const auto sums_from = [&](std::size_t first, std::size_t rows) {
    matrix<Real> G(rows, width, Real(0));
    if (rows == 0) return G;
    for (std::size_t r = 0; r < rows; ++r) {
      if ((first + r) % n != 0) continue;
      for (std::size_t ch = 0; ch < width; ++ch) {
        const Real gate = Real(0) + all.g((first + r) / n, ch);  // no -0
        G(r, ch) = scales_gates_first_ ? kept(gate * log2_e) : gate;
      }
    }
    if (scans_gates_) {
      for (std::size_t step = 1; step < rows; step *= 2) {
        for (std::size_t r = rows; r-- > step;) add_row(G, r, r - step);
      }
    } else {
      for (Real& x : G.row(0)) x = kept(x);
      for (std::size_t r = 1; r < rows; ++r) add_row(G, r, r - 1);
    }
    if (!scales_gates_first_) {
      for (Real& x : G.entries()) x = kept(x * log2_e);
    }
    return G;
  };
  c.G = sums_from(c.first, c.rows);
  const std::size_t span_rows = c.first + c.rows - c.span_first;
  c.span_G = c.span_first == c.first ? c.G : sums_from(c.span_first, span_rows);
}

template <class Real>
matrix<Real> machine<Real>::decayed_products(const matrix<Real>& x, const std::vector<std::size_t>& row_of,
                                             const std::vector<std::size_t>& columns, const matrix<Real>& k,
                                             const matrix<Real>& G, const narrowing& operand, format accumulate,
                                             const std::optional<format>& store) {
  const std::size_t rows = x.rows(), cols = k.rows(), channels = x.cols();
  matrix<Real> out(rows, cols, Real(0));
  const bool gated = G.cols() > 0;
  const auto finish = [&](matrix<Real>& products) {
    if (store) narrow(std::span<Real>(products.data(), products.size()), {*store, false});
  };
  const auto place = [&](const matrix<Real>& part, std::size_t first_row, std::size_t first_col) {
    for (std::size_t i = 0; i < part.rows(); ++i) {
      for (std::size_t j = 0; j < part.cols() && first_col + j < columns[first_row + i]; ++j)
        out(first_row + i, first_col + j) = part(i, j);
    }
  };
  if (!site_.all.channels || !gated) {
    if (gated && site_.plan.form == gate_form::factored) {
      matrix<Real> left = x, right = k;
      for (std::size_t i = 0; i < rows; ++i) {
        const Real e = exp2_of(G(row_of[i], 0));
        for (Real& value : left.row(i)) value *= e;
      }
      for (std::size_t j = 0; j < cols; ++j) {
        const Real e = exp2_of(-G(j, 0));
        for (Real& value : right.row(j)) value *= e;
      }
      place(
          times(narrow_copy(std::move(left), operand), transpose(narrow_copy(std::move(right), operand)), operand.to, accumulate),
          0, 0);
      finish(out);
      return out;
    }
    place(times(narrow_copy(x, operand), transpose(narrow_copy(k, operand)), operand.to, accumulate), 0, 0);
    finish(out);
    if (!gated) return out;
    const std::span<const Real> decays = decays_of_pairs(G);
    for (std::size_t i = 0; i < rows; ++i) {
      const auto of_row = decays.subspan(row_of[i] * (row_of[i] + 1) / 2, columns[i]);
      for (std::size_t j = 0; j < columns[i]; ++j) out(i, j) *= of_row[j];
    }
    return out;
  }

  // Columns side by side: the sum of each stays in the order of the channels.
  kept_decays& known = decays_of(G);
  if (known.rows.empty()) {
    known.rows.resize(G.rows());
    known.channels = transpose(G);
  }
  const matrix<Real> keys = transpose(k);
  constexpr std::size_t padding = pack<Real>::count;  // sum_decayed reads whole vectors
  std::vector<Real> padded_keys(keys.entries().begin(), keys.entries().end());
  padded_keys.resize(keys.size() + padding);
  const auto term_by_term = [&](std::size_t i, std::size_t first, std::size_t last) {
    last = std::min(last, columns[i]);
    if (first >= last) return;
    const std::size_t width = last - first, all = row_of[i] + 1 - first;  // with the row itself
    std::vector<Real>& decays = known.rows[row_of[i]];
    if (decays.size() != channels * all + padding) {
      decays.resize(channels * all);
      for (std::size_t ch = 0; ch < channels; ++ch) {
        const Real own = G(row_of[i], ch);
        const Real* const others = known.channels.row(ch).data() + first;
        for (std::size_t j = 0; j < all; ++j) decays[ch * all + j] = own - others[j];
      }
      exp2_of_all(decays);
      decays.resize(channels * all + padding, Real(0));
    }
    sum_decayed(x.row(i), padded_keys.data() + first, keys.cols(), decays.data(), all, out.row(i).subspan(first, width));
    for (std::size_t j = 0; options_.in_any_order && j < width; ++j) {
      partial_sums partial;
      for (std::size_t ch = 0; ch < channels; ++ch)
        partial.add(static_cast<double>(x(i, ch)) * keys(ch, first + j) * decays[ch * all + j]);
      out(i, first + j) = partial.guarded(out(i, first + j), accumulate);
    }
  };
  const auto by_reference = [&](std::size_t begin, std::size_t end, std::size_t first, std::size_t last,
                                const std::vector<Real>& reference) {
    if (begin == end || first >= last) return;
    const auto& decays = decays_by_reference(G, std::span(row_of).subspan(begin, end - begin), first, last, reference);
    matrix<Real> left = rows_of(x, begin, end - begin), right = rows_of(k, first, last - first);
    for (std::size_t i = 0; i < left.size(); ++i) left.data()[i] *= decays.left.data()[i];
    for (std::size_t j = 0; j < right.size(); ++j) right.data()[j] *= decays.right.data()[j];
    place(times(narrow_copy(std::move(left), operand), transpose(narrow_copy(std::move(right), operand)), operand.to, accumulate),
          begin, first);
  };
  const auto gate_of = [&](std::size_t row) { return std::vector<Real>(G.row(row).begin(), G.row(row).end()); };
  switch (site_.plan.form) {
    case gate_form::difference:
      for (std::size_t i = 0; i < rows; ++i) term_by_term(i, 0, cols);
      break;
    case gate_form::factored:
      by_reference(0, rows, 0, cols, std::vector<Real>(channels, Real(0)));
      break;
    case gate_form::reference_block:
    case gate_form::middle_block:
    case gate_form::first_block: {
      const std::size_t block = site_.plan.gate_block;
      std::size_t begin = 0;
      while (begin < rows) {
        const std::size_t first = row_of[begin] / block * block, last = std::min(first + block, cols);
        std::size_t end = begin;
        while (end < rows && row_of[end] < last) ++end;
        by_reference(begin, end, 0, first, gate_of(first));
        if (site_.plan.form != gate_form::reference_block) {
          const std::size_t inside = site_.plan.form == gate_form::first_block ? 0 : block / 2;
          by_reference(begin, end, first, last,
                       shifted_reference(gate_of(std::min(first + inside, cols - 1)), site_.plan, options_.natural_exponents));
        } else {
          for (std::size_t i = begin; i < end; ++i) term_by_term(i, first, last);
        }
        begin = end;
      }
    }
  }
  finish(out);
  return out;
}

template <class Real>
void machine<Real>::overlaps(chunk_state<Real>& c) {
  std::vector<std::size_t> row_of(c.rows), strict(c.rows);
  for (std::size_t r = 0; r < c.rows; ++r) row_of[r] = strict[r] = r;
  const matrix<Real> ungated(c.rows, 0);
  const bool gated = site_.plan.v_new.form == change_form::transforms;
  const auto& plan = site_.plan;
  const bool on_rows = plan.step == step_factor::rows;
  matrix<Real> stepped = on_rows ? c.k : matrix<Real>();
  for (std::size_t r = 0; r < stepped.rows(); ++r) step_row(stepped.row(r), c.step[r], key_format());
  const matrix<Real> products = decayed_products(on_rows ? stepped : c.k, row_of, strict, c.k, gated ? c.G : ungated,
                                                 plan.A.operand, plan.A.accumulate, plan.A.product_store);
  c.A = matrix<Real>(c.rows, c.full_rows, Real(0));
  for (std::size_t r = 0; r < c.rows; ++r) {
    for (std::size_t j = 0; j < r; ++j) c.A(r, j) = (on_rows ? Real(1) : c.step[r]) * products(r, j);
  }
  narrow(std::span<Real>(c.A.data(), c.A.size()), {plan.A.read.value_or(plan.A.store), false});
}

// w = Ai (b e^G k).
template <class Real>
void machine<Real>::transform_keys(chunk_state<Real>& c) {
  const auto& plan = site_.plan;
  c.key_operand = c.k;
  for (std::size_t r = 0; r < c.rows; ++r) step_row(c.key_operand.row(r), c.step[r], key_format());
  if (c.G.cols() > 0) {
    const matrix<Real>& decays = decays_from_start(c.G);
    for (std::size_t r = 0; r < c.rows; ++r) multiply_row(c.key_operand.row(r), decays.row(r));
  }
  narrow(std::span<Real>(c.key_operand.data(), c.key_operand.size()), plan.w.operand);
  matrix<Real> own;
  c.w = narrow_copy(times(inverse_operand(c, plan.w.operand, own), c.key_operand, plan.w.operand.to, plan.w.accumulate),
                    {plan.w.read.value_or(plan.w.store), false});
}

// u = Ai (b v).
template <class Real>
void machine<Real>::transform_values(chunk_state<Real>& c) {
  const auto& plan = site_.plan;
  c.value_operand = c.v;
  for (std::size_t r = 0; r < c.rows; ++r) step_row(c.value_operand.row(r), c.step[r], site_.in.x);
  narrow(std::span<Real>(c.value_operand.data(), c.value_operand.size()), plan.u.operand);
  matrix<Real> own;
  c.u = narrow_copy(times(inverse_operand(c, plan.u.operand, own), c.value_operand, plan.u.operand.to, plan.u.accumulate),
                    {plan.u.read.value_or(plan.u.store), false});
}

// Ai b_j e^{G_i - G_j}, as it is multiplied where v_new is made of a residual; Ai has no gate then.
template <class Real>
matrix<Real> machine<Real>::gated_inverse(const matrix<Real>& Ai, std::span<const Real> step, const matrix<Real>& G) {
  matrix<Real> out = Ai;
  std::vector<Real> decays;
  for (std::size_t i = 0; i < out.rows(); ++i) {
    decays.assign(i + 1, Real(1));
    if (G.cols() > 0) {
      for (std::size_t j = 0; j <= i; ++j) decays[j] = G(i, 0) - G(j, 0);
      exp2_of_all(decays);
    }
    for (std::size_t j = 0; j < out.cols(); ++j) out(i, j) = j <= i ? out(i, j) * step[j] * decays[j] : Real(0);
  }
  return narrow_copy(std::move(out), site_.plan.u.operand);
}

// v - e^G (k S), as it is multiplied; `read` is k S.
template <class Real>
matrix<Real> machine<Real>::residual(const matrix<Real>& v, matrix<Real> read, const matrix<Real>& G) {
  for (std::size_t r = 0; r < read.rows() && G.cols() > 0; ++r) decay_row(read.row(r), G.row(r), {});
  narrow(std::span<Real>(read.data(), read.size()), {site_.plan.w.store, false});
  for (std::size_t r = 0; r < read.rows(); ++r) {
    for (std::size_t j = 0; j < read.cols(); ++j) read(r, j) = v(r, j) - read(r, j);
  }
  return narrow_copy(std::move(read), site_.plan.u.operand);
}

// v_new = u - w S, S its stored copy unless the plan says that w multiplies the state itself; or from the residual of v.
template <class Real>
void machine<Real>::correct(chunk_state<Real>& c) {
  const auto& plan = site_.plan;
  const narrowing& store = plan.state.store;
  c.h = narrow_copy(c.state, as_stored(store));
  const narrowing operand = plan.v_new.state_operand.value_or(store);
  const format held = as_stored(store).to;
  const bool by_residual = plan.v_new.form == change_form::residual;
  matrix<Real> own_state, own_rows;
  const matrix<Real>& read =
      plan.v_new.state_operand ? own_state = narrow_copy(c.state, operand) : as_operand(c.h, held, operand, own_state);
  const matrix<Real>& rows =
      by_residual ? own_rows = narrow_copy(c.k, operand) : as_operand(c.w, plan.w.read.value_or(plan.w.store), operand, own_rows);
  c.change = times(rows, read, operand.to, plan.state.accumulate);
  if (by_residual) {
    c.value_operand = residual(c.v, std::move(c.change), c.G);
    c.change = times(gated_inverse(square_of(c.Ai, c.rows), c.step, c.G), c.value_operand, plan.u.operand.to, plan.u.accumulate);
  } else {
    for (std::size_t i = 0; i < c.change.size(); ++i) c.change.data()[i] = c.u.data()[i] - c.change.data()[i];
  }
  c.v_new = narrow_copy(c.change, {plan.v_new.store, false});
  c.read_state = plan.o.state_operand ? c.state : c.h;
}

template <class Real>
void machine<Real>::weigh(chunk_state<Real>& c) {
  const auto& all = site_.all;
  const auto& plan = site_.plan;
  const std::size_t tokens = c.q.rows();
  std::vector<std::size_t> columns(tokens);
  for (std::size_t t = 0; t < tokens; ++t) columns[t] = c.last_row[t] + 1;
  c.Aqk = decayed_products(c.q, c.last_row, columns, c.span_k, c.span_G, all.channels ? plan.A.operand : plan.o.operand,
                           plan.o.accumulate, plan.o.product_store);
  if (!all.channels || !all.gated) return;
  for (std::size_t i = 0; i < c.Aqk.size() && !scales_query(); ++i) c.Aqk.data()[i] *= all.scale;
  narrow(std::span<Real>(c.Aqk.data(), c.Aqk.size()), as_stored(plan.o.operand));
}

template <class Real>
void machine<Real>::read_out(chunk_state<Real>& c) {
  const auto& all = site_.all;
  const auto& plan = site_.plan;
  const std::size_t tokens = c.q.rows();
  matrix<Real> query = c.q;
  const bool on_query = all.gated && (all.channels || plan.o.decay == read_decay::q);
  const matrix<Real>* const decays = all.gated ? &decays_from_start(c.span_G) : nullptr;
  for (std::size_t t = 0; t < tokens && on_query; ++t) multiply_row(query.row(t), decays->row(c.last_row[t]));
  const narrowing of_state = plan.o.state_operand.value_or(plan.o.operand),
                  of_values = plan.o.value_operand.value_or(plan.o.operand);
  const matrix<Real> weights = narrow_copy(c.Aqk, plan.o.operand);
  matrix<Real> own_state, own_values;
  const matrix<Real>& state = plan.o.state_operand ? own_state = narrow_copy(c.span_h, of_state)
                                                   : as_operand(c.span_h, as_stored(plan.state.store).to, of_state, own_state);
  matrix<Real> read =
      times(narrow_copy(std::move(query), plan.o.operand), state, wider(plan.o.operand.to, of_state.to), plan.o.accumulate);
  if (plan.o.read_store) narrow(std::span<Real>(read.data(), read.size()), {*plan.o.read_store, false});
  const matrix<Real> inside = times(weights, as_operand(c.span_v_new, plan.v_new.store, of_values, own_values),
                                    wider(plan.o.operand.to, of_values.to), plan.o.accumulate);
  const bool scaled = all.channels && all.gated;  // the weights are
  const Real scale = scales_query() ? Real(1) : all.scale;
  c.o = matrix<Real>(tokens, all.v.cols());
  for (std::size_t t = 0; t < tokens; ++t) {
    const Real decay = all.gated && !on_query ? (*decays)(c.last_row[t], 0) : Real(1);
    for (std::size_t j = 0; j < c.o.cols(); ++j) {
      c.o(t, j) = scaled ? read(t, j) * scale + inside(t, j) : (read(t, j) * decay) * scale + inside(t, j) * scale;
      if (!options_.in_any_order) continue;
      // Kernels add both products in one accumulator, before or after the scale.
      partial_sums partial;
      for (const Real part : {read(t, j) * decay, inside(t, j)}) partial.add(static_cast<double>(part));
      c.o(t, j) = partial.guarded(c.o(t, j), plan.o.accumulate);
    }
  }
  see(formed::output, c.o);
  narrow(std::span<Real>(c.o.data(), c.o.size()), {plan.o.store, false});
}

// S <- e^{G_C} S + k^T v_new, the decay to the end of the chunk on v_new where it is one number and the plan says no more,
// else on the keys.
template <class Real>
void machine<Real>::update(chunk_state<Real>& c) {
  const auto& plan = site_.plan;
  const bool channels = site_.all.channels, on_keys = channels || plan.v_new.decay == write_decay::k;
  const bool gated = c.G.cols() > 0;
  const narrowing of_keys = plan.v_new.key_operand.value_or(plan.v_new.update_operand);
  matrix<Real> keys = c.k;
  matrix<Real> values = plan.v_new.update == update_source::stored ? c.v_new : c.change;
  const std::size_t last = c.rows - 1;
  for (std::size_t r = 0; r < c.rows && gated; ++r) decay_row(on_keys ? keys.row(r) : values.row(r), c.G.row(last), c.G.row(r));
  narrow(std::span<Real>(keys.data(), keys.size()), of_keys);
  narrow(std::span<Real>(values.data(), values.size()), plan.v_new.update_operand);
  if (gated) {
    for (std::size_t i = 0; i < c.state.rows(); ++i) {
      const Real e = exp2_of(c.G(last, channels ? i : 0));
      for (Real& x : c.state.row(i)) x *= e;
    }
  }
  const matrix<Real> left = transpose(keys);
  accumulate({left.data(), left.cols(), values.data(), values.cols(), c.state.data(), c.state.cols(), left.rows(), left.cols(),
              values.cols()},
             sums(wider(of_keys.to, plan.v_new.update_operand.to), plan.state.accumulate));
  narrow(std::span<Real>(c.state.data(), c.state.size()), {plan.state.accumulate, false});
  if (plan.state.between_tokens) narrow(std::span<Real>(c.state.data(), c.state.size()), {*plan.state.between_tokens, false});
  see(formed::state, c.state);
}

template <class Real>
void machine<Real>::keep_stages(const chunk_state<Real>& c) {
  if (!options_.stages) return;
  matrix<Real> log2_sums = c.G;
  for (Real& x : log2_sums.entries()) {
    if (options_.natural_exponents) x = narrowed(x * static_cast<Real>(std::numbers::log2e), {site_.plan.cumsum, false});
  }
  put_rows(out_.g_cumsum_log2, c.first, log2_sums);
  put_rows(out_.v_new, c.first, c.v_new);
  const auto& plan = site_.plan;
  // What is read in another format than the stored one is stored after that.
  const auto put = [&](matrix<double>& to, const matrix<Real>& m, const std::optional<format>& read, const format& store) {
    put_rows(to, c.first, read ? narrow_copy(m, {store, false}) : m);
  };
  if (plan.v_new.form == change_form::transforms) {
    put(out_.A, c.A, plan.A.read, plan.A.store);
    put(out_.Ai, c.Ai, plan.inverse.read, plan.inverse.store);
    put(out_.w, c.w, plan.w.read, plan.w.store);
    put(out_.u, c.u, plan.u.read, plan.u.store);
  }
  put_rows(out_.h, c.index * c.h.rows(), c.h);
}

template <class Real>
void machine<Real>::keep_for_faults(const chunk_state<Real>& c) {
  if (of_rows_ == nullptr) return;
  chunk_state<Real>& own = of_rows_->emplace_back();
  own.G = c.G;
  own.span_G = c.span_G;
  own.A = c.A;
  own.Ai = c.Ai;
  own.key_operand = c.key_operand;
  own.w = c.w;
  own.value_operand = c.value_operand;
  own.u = c.u;
  own.Aqk = c.Aqk;
}

// What `update` reads is copied; what only a planted fault would read after this is moved out of the chunk.
template <class Real>
void machine<Real>::keep_for_backward(chunk_state<Real>& c) {
  if (kept_ == nullptr) return;
  const bool reads_weights = site_.all.channels && site_.all.gated && site_.all.steps_per_token == 1;
  const backward_variant& b = *site_.plan.backward;
  const auto take = [this](auto& x) { return options_.planted == nullptr ? std::move(x) : x; };
  kept_->push_back({c.index, c.first, c.rows, c.k, take(c.v), take(c.step), c.G, take(c.Ai), take(c.w),
                    b.h ? matrix<Real>() : take(c.h), b.h ? c.state : matrix<Real>(), b.v_new ? matrix<Real>() : c.v_new,
                    b.v_new ? c.change : matrix<Real>(), reads_weights ? take(c.Aqk) : matrix<Real>()});
}

template <class Real>
void machine<Real>::run_chunks() {
  const std::size_t C = site_.plan.chunk, rows = site_.all.k.rows();
  for (const chunk_visit& visit : visits_of(site_.in, site_.plan, false)) {
    const std::size_t first = visit.chunk * C;
    if (visit.from_zero) site_.now.state = matrix<Real>(site_.now.state.rows(), site_.now.state.cols(), Real(0));
    run_chunk(first, std::min(C, rows - first), visit.kept);
  }
}

template <class Real>
void machine<Real>::run_chunk(std::size_t first, std::size_t rows, bool kept) {
  const auto& all = site_.all;
  auto& c = site_.now;
  const std::size_t C = site_.plan.chunk, n = all.steps_per_token, span = C * n;
  begin_chunk(first, rows);
  using chunk = chunk_state<Real>;
  stage(
      step_kind::gate, [&](chunk& x) { gate(x); },
      [](chunk& to, const chunk& from) {
        to.G = from.G;
        to.span_G = from.span_G;
      });
  stage(step_kind::A, [&](chunk& x) { overlaps(x); }, [](chunk& to, const chunk& from) { to.A = from.A; });
  stage(step_kind::Ai, [&](chunk& x) { invert(x); }, [](chunk& to, const chunk& from) { to.Ai = from.Ai; });
  stage(
      step_kind::w, [&](chunk& x) { transform_keys(x); },
      [](chunk& to, const chunk& from) {
        to.key_operand = from.key_operand;
        to.w = from.w;
      });
  stage(
      step_kind::u, [&](chunk& x) { transform_values(x); },
      [](chunk& to, const chunk& from) {
        to.value_operand = from.value_operand;
        to.u = from.u;
      });
  stage(
      step_kind::v_new, [&](chunk& x) { correct(x); },
      [](chunk& to, const chunk& from) {
        to.h = from.h;
        to.change = from.change;
        to.v_new = from.v_new;
        to.read_state = from.read_state;
      });
  if (c.span_first == first) c.span_h = options_.planted == nullptr ? std::move(c.read_state) : c.read_state;
  if (c.span_first == first) {
    c.span_v_new = c.v_new;
  } else {
    std::vector<Real> span_v_new(c.span_v_new.entries().begin(), c.span_v_new.entries().end());
    span_v_new.insert(span_v_new.end(), c.v_new.entries().begin(), c.v_new.entries().end());
    c.span_v_new = matrix<Real>(c.span_v_new.rows() + c.rows, all.v.cols(), std::move(span_v_new));
  }
  if (c.last || (first + C) % span == 0) {
    const std::size_t end = first + c.rows, first_token = c.span_first / n, tokens = end / n - first_token;
    c.span_k = rows_of(all.k, c.span_first, end - c.span_first);
    c.q = rows_of(all.q, first_token, tokens);
    if (scales_query()) scale_query({c.q.data(), c.q.size()});
    c.last_row.resize(tokens);
    for (std::size_t t = 0; t < tokens; ++t) c.last_row[t] = (first_token + t + 1) * n - 1 - c.span_first;
    stage(step_kind::Aqk, [&](chunk& x) { weigh(x); }, [](chunk& to, const chunk& from) { to.Aqk = from.Aqk; });
    stage(step_kind::output, [&](chunk& x) { read_out(x); }, [](chunk& to, const chunk& from) { to.o = from.o; });
    if (kept) std::copy(c.o.entries().begin(), c.o.entries().end(), site_.o.data() + first_token * c.o.cols());
    if (kept && options_.stages && n == 1)
      put_rows(
          out_.Aqk, first, c.Aqk.cols() == C ? c.Aqk : [&] {
            matrix<Real> padded(c.Aqk.rows(), C, Real(0));
            for (std::size_t i = 0; i < c.Aqk.rows(); ++i)
              std::copy(c.Aqk.row(i).begin(), c.Aqk.row(i).end(), padded.row(i).begin());
            return padded;
          }());
  }
  if (kept) {
    keep_stages(c);
    keep_for_backward(c);
    keep_for_faults(c);
  }
  stage(step_kind::update, [&](chunk& x) { update(x); }, [](chunk& to, const chunk& from) { to.state = from.state; });
  store_state(c.index + 1, (first + c.rows) % n == 0 ? (first + c.rows) / n : 0);
}

}  // namespace deltaproof::emulation_detail
