// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
//
// What `machine` does beside the stages of a chunk (machine_chunk.hpp): arithmetic, inputs, token by token, a whole head.
#pragma once

#include <array>
#include <bit>
#include <cstdint>
#include <cstring>
#include <limits>
#include <numbers>
#include <type_traits>
#include <utility>

#include "deltaproof/number/rounding.hpp"
#include "deltaproof/rule/rules.hpp"
#include "emulate/inverse.hpp"
#include "emulate/packs.hpp"
#include "support/widest_vectors.hpp"

namespace deltaproof::emulation_detail {

namespace {

template <class Real>
matrix<Real> rows_of(const matrix<Real>& m, std::size_t first, std::size_t count) {
  const Real* const begin = m.data() + first * m.cols();
  return matrix<Real>(count, m.cols(), std::vector<Real>(begin, begin + count * m.cols()));
}

template <class Real>
void put_rows(matrix<double>& to, std::size_t first, const matrix<Real>& from) {
  for (std::size_t i = 0; i < from.rows(); ++i) std::copy(from.row(i).begin(), from.row(i).end(), to.row(first + i).begin());
}

/// What waits for a product is kept in the format that files hold it in: fp32 for an operand of tf32.
inline narrowing as_stored(const narrowing& operand) {
  return has_dtype(operand.to) ? operand : narrowing{stored_as(operand.to), false};
}

/// beta times a row is a value of the wider of the two formats.
inline format wider(const format& a, const format& b) { return a.precision >= b.precision ? a : b; }

/// The reference of a diagonal block, with the plan's shift. `natural`: gates are natural logarithms, as the shift is.
template <class Real>
std::vector<Real> shifted_reference(std::vector<Real> reference, const plan_variant& plan, bool natural) {
  const Real shift = static_cast<Real>(plan.gate_shift * (natural ? 1 : std::numbers::log2e));
  if (shift != 0) {
    for (Real& x : reference) x += shift;
  }
  return reference;
}

/// sums[j] = the sum over c of x[c] keys[c key_stride + j] decays[c decay_stride + j], in the order of c. Whole vectors are read:
/// `keys` and `decays` must go on for one vector behind their last column.
template <class Real>
void sum_decayed(std::span<const Real> x, const Real* keys, std::size_t key_stride, const Real* decays, std::size_t decay_stride,
                 std::span<Real> sums) {
  using numbers = pack<Real>;
  deltaproof::detail::in_widest_vectors([=]() __attribute__((always_inline)) {
    for (std::size_t begin = 0; begin < sums.size(); begin += numbers::count) {
      typename numbers::type sum{}, row{}, key, decay;
      for (std::size_t c = 0; c < x.size(); ++c) {
        numbers::fill(row, x[c]);
        numbers::load(key, keys + c * key_stride + begin);
        numbers::load(decay, decays + c * decay_stride + begin);
        sum += row * key * decay;
      }
      Real lanes[numbers::count];
      numbers::store(lanes, sum);
      std::copy_n(lanes, std::min(numbers::count, sums.size() - begin), sums.data() + begin);
    }
  });
}

template <class Real>
Real effective_step_of(const head_input& in, Real beta, Real squared_norm) {
  if (in.activation != activation_kind::none) {
    beta = Real(1) / (Real(1) + std::exp(-beta));
    if (in.activation == activation_kind::two_sigmoid) beta *= 2;
  }
  return static_cast<Real>(effective_step(in.rule, static_cast<double>(beta), static_cast<double>(squared_norm)));
}

}  // namespace

template <class Real>
matrix<Real> machine<Real>::times(const matrix<Real>& a, const matrix<Real>& b, const format& operand, const format& accumulate) {
  matrix<Real> c(a.rows(), b.cols(), Real(0));
  this->accumulate({a.data(), a.cols(), b.data(), b.cols(), c.data(), c.cols(), a.rows(), a.cols(), b.cols()},
                   sums(operand, accumulate));
  return c;
}

template <class Real>
void machine<Real>::accumulate(product<Real> p, const sum_rule& rule) {
  if (options_.in_any_order) return multiply_in_any_order(p, rule);
  multiply_from(p, options_.noise_ulps > 0 ? drawn_start(p.inner, rule, noise_) : 0, rule);
  for (std::size_t i = 0; i < p.rows; ++i) disturb({p.c + i * p.c_stride, p.cols});
}

template <class Real>
void machine<Real>::disturb(std::span<Real> sums) {
  if (!(options_.noise_ulps > 1)) return;
  const auto size = static_cast<Real>(options_.noise_ulps * std::numeric_limits<Real>::epsilon());
  std::size_t i = 0;
  while (i < sums.size()) {
    std::uint64_t bits = noise_();
    for (int part = 0; part < 4 && i < sums.size(); ++part, ++i, bits >>= 16) {
      sums[i] += sums[i] * (size * (static_cast<Real>(static_cast<std::int16_t>(bits & 0xffff)) * Real(0x1p-15)));
    }
  }
}

template <class Real>
void machine<Real>::load() {
  const head_input& in = site_.in;
  auto& all = site_.all;
  all.steps_per_token = in.steps_per_token;
  all.channels = in.channels();
  all.gated = in.gated();
  all.q = cast<Real>(in.q);
  all.k = cast<Real>(in.k);
  all.v = cast<Real>(in.v);
  all.g = cast<Real>(in.g);
  if (in.gate_slack && options_.noise_ulps > 0) {
    constexpr double units = 4 * 0x1p-24;
    const auto drawn = [&] { return 2 * noise_.uniform() - 1; };
    for (Real& g : all.g.entries()) g += static_cast<Real>(static_cast<double>(g) * units * drawn() + *in.gate_slack * drawn());
  }
  if (site_.plan.decay.precision < fp32.precision) narrow(std::span<Real>(all.g.data(), all.g.size()), {site_.plan.decay, false});
  all.scale = static_cast<Real>(in.scale);
  if (site_.plan.o.scale_format) all.scale = narrowed(all.scale, {*site_.plan.o.scale_format, false});
  const narrowing norm{site_.plan.l2norm_compute, false};
  const bool coarse_norm = norm.to.precision < fp32.precision;
  const auto in_norm = [&](Real x) { return coarse_norm ? narrowed(x, norm) : x; };
  if (in.qk_l2norm) {
    for (matrix<Real>* rows : {&all.q, &all.k}) {
      for (std::size_t i = 0; i < rows->rows(); ++i) {
        const auto row = rows->row(i);
        Real sum = 0;
        for (const Real x : row) sum += in_norm(x * x);
        Real inverse = Real(1) / std::sqrt(in_norm(sum + static_cast<Real>(site_.plan.l2norm_epsilon)));
        if (inexact_units_ && site_.plan.rsqrt_ulps > 0) {
          using bits = std::conditional_t<sizeof(Real) == 4, std::uint32_t, std::uint64_t>;
          const Real ulps = static_cast<Real>(site_.plan.rsqrt_ulps) * rsqrt_unit_.of(std::bit_cast<bits>(sum));
          inverse += ulps * (std::nextafter(inverse, std::numeric_limits<Real>::infinity()) - inverse);
        }
        inverse = in_norm(inverse);
        for (Real& x : row) x = in_norm(x * inverse);
        const bool waits = rows == &all.q && site_.plan.o.scale == read_scale::l2norm;  // for the scale
        if (site_.plan.l2norm_store && !waits) narrow(row, {*site_.plan.l2norm_store, false});
      }
    }
  }
  all.step.resize(in.rows());
  for (std::size_t r = 0; r < in.rows(); ++r) {
    Real squared_norm = 0;
    if (in.rule != rule_kind::euler) {
      for (const Real x : all.k.row(r)) squared_norm += x * x;
    }
    all.step[r] = effective_step_of(in, static_cast<Real>(in.beta[r]), squared_norm);
  }
  narrow(std::span<Real>(all.step), {site_.plan.beta, false});
  site_.now.state = cast<Real>(in.state);
  site_.o = matrix<Real>(in.tokens(), in.value_dim(), Real(0));
  if (options_.stages && site_.plan.path == path_kind::chunk) {
    const std::size_t C = site_.plan.chunk, chunks = (in.rows() + C - 1) / C;
    out_.g_cumsum_log2 = matrix<double>(in.rows(), in.g.cols());
    out_.A = out_.Ai = out_.Aqk = matrix<double>(in.rows(), C, 0.0);
    out_.w = matrix<double>(in.rows(), in.key_dim());
    out_.u = out_.v_new = matrix<double>(in.rows(), in.value_dim());
    out_.h = matrix<double>(chunks * in.key_dim(), in.value_dim());
  }
}

template <class Real>
void machine<Real>::planted(step_kind which, bool input, chunk_state<Real>& c) {
  if (options_.planted == nullptr) return;
  for (const planted_hook& h : options_.planted->code->hooks) {
    if (h.at != which || h.before != input) continue;
    if (&c == &site_.now) {
      call(h.change, site_);
    } else {
      std::swap(c, site_.now);
      call(h.change, site_);
      std::swap(c, site_.now);
    }
  }
}

template <class Real>
template <class Compute, class Keep>
void machine<Real>::stage(step_kind which, const Compute& compute, const Keep& keep) {
  const bool of_rows = which <= step_kind::u || which == step_kind::Aqk;
  if (known_ != nullptr && of_rows && which < first_change_) return keep(site_.now, (*known_)[site_.now.index]);
  bool reads_wrongly = false;
  if (options_.planted != nullptr) {
    for (const planted_hook& h : options_.planted->code->hooks) reads_wrongly = reads_wrongly || (h.at == which && h.before);
  }
  if (reads_wrongly) {
    chunk_state<Real> copy = site_.now;
    planted(which, true, copy);
    compute(copy);
    keep(site_.now, copy);
  } else {
    compute(site_.now);
  }
  planted(which, false, site_.now);
}

template <class Real>
void machine<Real>::scale_query(std::span<Real> q) {
  const auto& plan = site_.plan;
  for (Real& x : q) x *= site_.all.scale;
  if (plan.o.scale == read_scale::l2norm && site_.in.qk_l2norm) {
    if (plan.l2norm_store) narrow(q, {*plan.l2norm_store, false});
  } else {
    narrow(q, plan.o.scale_store ? narrowing{*plan.o.scale_store, false} : as_stored(plan.o.operand));
  }
}

template <class Real>
format machine<Real>::key_format() const {
  return !site_.in.qk_l2norm ? site_.in.x : site_.plan.l2norm_store.value_or(site_.plan.l2norm_compute);
}

template <class Real>
void machine<Real>::step_row(std::span<Real> row, Real step, const format& of_row) const {
  for (Real& x : row) x *= step;
  narrow(row, {wider(site_.plan.beta, of_row), false});
}

template <class Real>
void machine<Real>::step_token(std::size_t t, matrix<Real>& state) {
  const auto& all = site_.all;
  const auto& plan = site_.plan;
  const std::size_t n = all.steps_per_token, K = all.k.cols(), V = all.v.cols();
  if (all.gated) {
    for (std::size_t i = 0; i < K; ++i) {
      if (!all.channels && i > 0) break;
      const Real e = narrowed(exp_of(all.g(t, all.channels ? i : 0)), {plan.cumsum, false});
      if (all.channels) {
        for (Real& x : state.row(i)) x *= e;
      } else {
        for (std::size_t j = 0; j < state.size(); ++j) state.data()[j] *= e;
      }
    }
  }
  std::vector<Real> change(V);
  for (std::size_t s = 0; s < n; ++s) {
    const std::size_t row = t * n + s;
    std::fill(change.begin(), change.end(), Real(0));
    const auto read = [&](const Real* key) {
      accumulate({key, K, state.data(), V, change.data(), V, 1, K, V}, sums(fp32, plan.state.accumulate));
    };
    if (plan.step == step_factor::rows) {
      std::vector<Real> key(all.k.row(row).begin(), all.k.row(row).end()), value(all.v.row(row).begin(), all.v.row(row).end());
      step_row(key, all.step[row], key_format());
      step_row(value, all.step[row], site_.in.x);
      read(key.data());
      for (std::size_t j = 0; j < V; ++j) change[j] = value[j] - change[j];
    } else {
      read(all.k.row(row).data());
      for (std::size_t j = 0; j < V; ++j) change[j] = all.step[row] * (all.v(row, j) - change[j]);
    }
    for (std::size_t i = 0; i < K; ++i) {
      const Real k = all.k(row, i);
      Real* out = state.data() + i * V;
      for (std::size_t j = 0; j < V; ++j) out[j] += k * change[j];
      for (std::size_t j = 0; options_.in_any_order && j < V; ++j) {
        partial_sums partial;
        partial.add(static_cast<double>(out[j]));
        out[j] = partial.guarded(out[j], plan.state.accumulate);
      }
    }
  }
  if (plan.state.between_tokens) narrow(std::span<Real>(state.data(), state.size()), {*plan.state.between_tokens, false});
  std::vector<Real> q(all.q.row(t).begin(), all.q.row(t).end());
  if (scales_query()) {
    scale_query(q);
  } else {
    for (Real& x : q) x *= all.scale;
  }
  const auto out = site_.o.row(t);
  accumulate({q.data(), K, state.data(), V, out.data(), V, 1, K, V}, sums(fp32, plan.o.accumulate));
}

template <class Real>
void machine<Real>::store_state(std::size_t steps, std::size_t tokens) {
  const auto& plan = site_.plan.state;
  matrix<Real>& state = site_.now.state;
  const auto store = [&](block_store<Real>& to, std::size_t n) {
    to(std::span<Real>(state.data(), state.size()), state.rows(), state.cols(), n);
  };
  if (cache_ && steps % plan.cache->every == 0) store(*cache_, steps / plan.cache->every - 1);
  if (!calls_ || tokens == 0) return;
  const std::size_t call = plan.between_calls->every;
  if (tokens == site_.all.q.rows() || (call > 0 && tokens % call == 0)) store(*calls_, call == 0 ? 0 : (tokens - 1) / call);
}

template <class Real>
void machine<Real>::begin_chunk(std::size_t first, std::size_t rows) {
  auto& c = site_.now;
  const auto& all = site_.all;
  if (options_.planted != nullptr && first > 0) {
    const chunk_state<Real>& last = site_.before.emplace(std::move(c));
    c = chunk_state<Real>();
    c.state = last.state;
    c.span_first = last.span_first;
    c.span_h = last.span_h;
    c.span_v_new = last.span_v_new;
  }
  const std::size_t C = site_.plan.chunk;
  c.index = first / C;
  c.first = first;
  c.rows = rows;
  c.full_rows = C;
  c.last = first + rows == all.k.rows();
  c.k = rows_of(all.k, first, rows);
  c.v = rows_of(all.v, first, rows);
  c.step.assign(all.step.begin() + static_cast<std::ptrdiff_t>(first),
                all.step.begin() + static_cast<std::ptrdiff_t>(first + rows));
  const std::size_t span = C * all.steps_per_token;
  if (first % span == 0) {
    c.span_first = first;
    c.span_h = matrix<Real>();
  }
}

template <class Real>
void machine<Real>::run_tokens() {
  using chunk = chunk_state<Real>;
  for (std::size_t t = 0; t < site_.all.q.rows(); ++t) {
    site_.token = t;
    stage(
        step_kind::token, [&](chunk& x) { step_token(t, x.state); }, [](chunk& to, const chunk& from) { to.state = from.state; });
    store_state(t + 1, t + 1);
    if (options_.in_any_order) see(formed::state, site_.now.state);
  }
  see(formed::state, site_.now.state);
  see(formed::output, site_.o);
  narrow(std::span<Real>(site_.o.data(), site_.o.size()), {site_.plan.o.store, false});
}

template <class Real>
head_output machine<Real>::run() {
  load();
  planted(step_kind::load, false, site_.now);
  if (site_.plan.path == path_kind::chunk) {
    run_chunks();
  } else {
    run_tokens();
  }
  planted(step_kind::finish, false, site_.now);
  out_.o = widened(site_.o);
  out_.final_state = widened(site_.now.state);
  see(formed::gate_exponent, largest_exponent_);
  see(formed::gate_factor, largest_factor_);
  out_.range = range_;
  return std::move(out_);
}

}  // namespace deltaproof::emulation_detail
