// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
//
// A chunk kernel of a few lines for the tests of the stage checker: float arithmetic, bf16 operands and stores, one planted
// fault at a time. It favours being read over being fast, and shares no code with what it tests.
#pragma once

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "stages/stages_cases.hpp"

namespace deltaproof::testing {

class pipeline {
 public:
  explicit pipeline(const pipeline_case& c) : c_(c), p_(draw_problem(c)) {}

  const problem& given() const { return p_; }

  result run(const std::string& fault = {}) {
    fault_ = fault;
    const std::size_t rows = c_.batch * c_.tokens * c_.steps * c_.value_heads;
    const std::size_t chunks = chunk_count(p_, c_.chunk) * c_.batch;
    // What a kernel does not write holds NaN.
    const auto empty = [](std::size_t n) { return std::vector<double>(n, std::numeric_limits<double>::quiet_NaN()); };
    g_ = empty(rows * channels());
    a_ = ai_ = aqk_ = empty(rows * c_.chunk);
    w_ = empty(rows * c_.keys);
    u_ = v_new_ = empty(rows * c_.values);
    h_ = empty(chunks * c_.value_heads * c_.keys * c_.values);
    o_ = empty(c_.batch * c_.tokens * c_.value_heads * c_.values);
    final_ = empty(p_.sequence_count() * c_.value_heads * c_.keys * c_.values);
    std::size_t first_chunk = 0;
    const auto sequences = p_.sequences();
    for (std::size_t s = 0; s < sequences.size(); ++s) {
      if (c_.cu_seqlens.empty()) first_chunk = 0;
      for (std::size_t head = 0; head < c_.value_heads; ++head) run_head(sequences[s], s, head, first_chunk);
      first_chunk += (sequences[s].tokens * c_.steps + c_.chunk - 1) / c_.chunk;
    }
    return pack();
  }

 private:
  using matrix = std::vector<std::vector<float>>;

  double narrow(double x) const { return narrow_to(c_.operands, x); }
  double chop(double x) const {
    return c_.operands == fp16 ? round_to<fp16>(x, toward_zero{}).value() : round_to<bf16>(x, toward_zero{}).value();
  }
  bool is(const char* name) const { return fault_ == name; }
  bool per_channel() const { return c_.per_channel(); }
  std::size_t channels() const { return c_.channels(); }

  std::vector<double> normalised(const tensor& t, std::size_t row, std::size_t head) const {
    std::vector<double> x(c_.keys);
    t.read((row * c_.key_heads + head) * c_.keys, x);
    if (!c_.l2norm) return x;
    const float inverse = inverse_norm(x);
    for (double& value : x) value = narrow(static_cast<float>(value) * inverse);
    return x;
  }

  float inverse_norm(const std::vector<double>& x) const {
    float sum = 0;
    const auto kept = [&](float value) { return c_.ways.norm_rounded ? rounded(value) : value; };
    for (const double value : x) sum += kept(static_cast<float>(value) * static_cast<float>(value));
    return kept(1 / std::sqrt(kept(sum + static_cast<float>(c_.ways.epsilon))));
  }

  float rounded(float x) const { return static_cast<float>(narrow(x)); }
  float stated_scale() const {
    return c_.ways.scale_rounded ? rounded(static_cast<float>(p_.scale)) : static_cast<float>(p_.scale);
  }
  /// 2^x for a difference or a sum of gates.
  float power(float x) const {
    if (c_.ways.gates_rounded) x = rounded(x);
    if (c_.ways.clipped) x = std::max(x, -0.5F * 1.44269504F);
    const float y = c_.exp2(x);
    return c_.ways.gates_rounded ? rounded(y) : y;
  }

  bool scales_query() const { return c_.ways.scale_on_q || c_.ways.scale_in_norm; }

  /// q as the products read it.
  std::vector<double> query(std::size_t row, std::size_t head) const {
    const float scale = is("o: not scaled") ? 1 : stated_scale();
    std::vector<double> q = normalised(p_.q, row, head);
    if (!scales_query()) return q;
    if (c_.ways.scale_in_norm && c_.l2norm) {
      p_.q.read((row * c_.key_heads + head) * c_.keys, q);
      const float inverse = inverse_norm(q);
      for (double& value : q) value = static_cast<double>(static_cast<float>(value) * inverse);
    }
    for (double& value : q) value = narrow(static_cast<float>(value) * scale);
    return q;
  }

  float tensor_core(float x) const { return c_.tf32_cut ? static_cast<float>(round_to<tf32>(x, toward_zero{}).value()) : x; }

  /// <x, k> e^{G_i - G_j} over the channels from `from` on; the decay is inside the sum where it has channels.
  float decayed_dot(const std::vector<double>& x, const std::vector<double>& k, std::size_t i, std::size_t j,
                    std::size_t from) const {
    constexpr std::size_t block = 16;
    const bool inside = i / block == j / block;
    const bool split = per_channel() && c_.tf32_cut && (!inside || c_.safe_gate);
    const std::size_t reference = inside ? std::min(i / block * block + block / 2, cumulative_.size() - 1) : i / block * block;
    float sum = 0;
    for (std::size_t c = from; c < c_.keys; ++c) {
      const float a = static_cast<float>(x[c]);
      const float b = static_cast<float>(k[c]);
      if (split) {
        const float left = c_.exp2(cumulative_[i][c] - cumulative_[reference][c]);
        const float right = c_.exp2(cumulative_[reference][c] - cumulative_[j][c]);
        sum += tensor_core(a * left) * tensor_core(b * right);
      } else {
        sum += per_channel() ? a * b * decay(i, j, c) : a * b;
      }
    }
    if (c_.ways.product_rounded) sum = rounded(sum);
    return per_channel() ? sum : sum * decay(i, j, 0);
  }

  /// e^{G_i - G_j}; the product of the decays between where both are 0.
  float decay(std::size_t i, std::size_t j, std::size_t c) const {
    if (channels() == 0) return 1;
    const std::size_t channel = per_channel() ? c : 0;
    const float difference = cumulative_[i][channel] - cumulative_[j][channel];
    if (!std::isnan(difference)) return power(difference);
    float product = 1;
    for (std::size_t m = j + 1; m <= i; ++m) product *= std::exp(gates_[m][channel]);
    return product;
  }
  float decay_from_start(std::size_t i, std::size_t c) const {
    return channels() == 0 ? 1 : power(cumulative_[i][per_channel() ? c : 0]);
  }

  void run_head(const sequence_range& range, std::size_t sequence, std::size_t head, std::size_t first_chunk) {
    const std::size_t rows = range.tokens * c_.steps;
    const std::size_t first = (range.batch * c_.tokens + range.first_token) * c_.steps;
    state_.assign(c_.keys, std::vector<float>(c_.values, 0));
    if (p_.initial_state) {
      for (std::size_t k = 0; k < c_.keys; ++k) {
        for (std::size_t v = 0; v < c_.values; ++v) {
          state_[k][v] =
              static_cast<float>(p_.initial_state->at(((sequence * c_.value_heads + head) * c_.keys + k) * c_.values + v));
        }
      }
    }
    const std::size_t chunks = chunk_count(p_, c_.chunk);
    for (std::size_t begin = 0, chunk = 0; begin < rows; begin += c_.chunk, ++chunk) {
      const std::size_t at = (range.batch * chunks + first_chunk + chunk) * c_.value_heads + head;
      run_chunk(first, begin, std::min(c_.chunk, rows - begin), head, at, begin + c_.chunk >= rows);
    }
    for (std::size_t k = 0; k < c_.keys; ++k) {
      for (std::size_t v = 0; v < c_.values; ++v) {
        const float x = is("final_state: transposed") && k < c_.values && v < c_.keys ? state_[v][k] : state_[k][v];
        final_[((sequence * c_.value_heads + head) * c_.keys + k) * c_.values + v] =
            is("final_state: bf16") ? round_to<bf16>(x).value() : static_cast<double>(x);
      }
    }
  }

  /// k as A multiplies it from the left.
  std::vector<double> stepped(std::vector<double> k, float beta) const {
    if (!c_.ways.step_on_rows) return k;
    for (double& x : k) x = narrow(static_cast<float>(x) * beta);
    return k;
  }
  /// An entry of Ai, and of a row that it multiplies, as they enter the product.
  double entering(double x) const { return c_.ways.inverse_kept ? static_cast<double>(static_cast<float>(x)) : narrow(x); }

  void run_chunk(std::size_t first, std::size_t begin, std::size_t m, std::size_t head, std::size_t h_at, bool last_chunk) {
    const std::size_t key_head = p_.key_head(head);
    const auto index = [&](std::size_t i, std::size_t width) { return ((first + begin + i) * c_.value_heads + head) * width; };
    std::vector<std::vector<double>> k(m);
    std::vector<float> beta(m);
    for (std::size_t i = 0; i < m; ++i) {
      k[i] = normalised(p_.k, first + begin + i, key_head);
      beta[i] = static_cast<float>(p_.beta.at((first + begin + i) * c_.value_heads + head));
    }
    // g_cumsum_log2
    gates_.assign(m, std::vector<float>(channels(), 0));
    cumulative_.assign(m, std::vector<float>(channels(), 0));
    for (std::size_t c = 0; c < channels(); ++c) {
      float sum = 0;
      for (std::size_t i = 0; i < m; ++i) {
        const std::size_t row = first + begin + i;
        if (row % c_.steps == 0) {
          gates_[i][c] = static_cast<float>(p_.g->at((row / c_.steps * c_.value_heads + head) * channels() + c));
          if (c_.ways.gates_rounded) gates_[i][c] = rounded(gates_[i][c]);
        }
        if (i > 0 || !is("cumsum starts one row late")) sum += gates_[i][c];
        if (c_.ways.gates_rounded) sum = rounded(sum);
        cumulative_[i][c] = c_.ways.gates_rounded ? rounded(sum * 1.44269504F) : sum * 1.44269504F;
        g_[index(i, channels()) + c] = static_cast<double>(cumulative_[i][c]);
      }
    }
    // A, Ai
    matrix a(m, std::vector<float>(m, 0));
    for (std::size_t i = 0; i < m; ++i) {
      for (std::size_t j = 0; j < i; ++j) {
        const std::size_t gate = is("A: gate of the next row") ? std::min(j + 1, i) : j;
        const float sum = decayed_dot(stepped(k[i], beta[i]), k[j], i, gate, is("A: one channel short") ? 1 : 0);
        a[i][j] = sum * (c_.ways.step_on_rows ? 1 : beta[i]) * (is("A: beta twice") ? beta[i] : 1);
        a_[index(i, c_.chunk) + j] = c_.ways.a_kept ? narrow(a[i][j]) : static_cast<double>(a[i][j]);
      }
    }
    const matrix inverse = invert(a, m);
    std::vector<std::vector<double>> ai(m, std::vector<double>(m, 0));
    for (std::size_t i = 0; i < m; ++i) {
      for (std::size_t j = 0; j <= i; ++j) {
        ai[i][j] = is("Ai: truncated") ? chop(inverse[i][j]) : narrow(inverse[i][j]);
        ai_[index(i, c_.chunk) + j] = ai[i][j];
        if (c_.ways.inverse_kept) ai[i][j] = static_cast<double>(inverse[i][j]);
      }
    }
    // w, u
    std::vector<std::vector<double>> w(m, std::vector<double>(c_.keys)), u(m, std::vector<double>(c_.values));
    for (std::size_t i = 0; i < m; ++i) {
      for (std::size_t c = 0; c < c_.keys; ++c) {
        float sum = 0;
        for (std::size_t j = 0; j <= i; ++j) {
          float scaled = static_cast<float>(k[j][c]) * beta[j];
          if (!c_.beta_fp32) scaled = static_cast<float>(narrow(scaled));
          if (is("w: beta twice")) scaled *= beta[j];
          const std::size_t gate = is("w: gate of the row before") && j > 0 ? j - 1 : j;
          sum += static_cast<float>(ai[i][j] * entering(scaled * decay_from_start(gate, c)));
        }
        w_[index(i, c_.keys) + c] = w[i][c] = narrow(sum);
        if (c_.ways.transforms_kept) w[i][c] = static_cast<double>(sum);
      }
      for (std::size_t c = 0; c < c_.values; ++c) {
        float sum = 0;
        for (std::size_t j = 0; j <= i; ++j) {
          const float b = is("u: beta of the row before") && j > 0 ? beta[j - 1] : beta[j];
          float scaled = static_cast<float>(p_.v.at(index(j, c_.values) + c)) * b;
          if (!c_.beta_fp32) scaled = rounded(scaled);
          sum += static_cast<float>(ai[i][j] * entering(scaled));
        }
        u_[index(i, c_.values) + c] = u[i][c] = is("u: truncated") ? chop(sum) : narrow(sum);
        if (c_.ways.transforms_kept) u[i][c] = static_cast<double>(sum);
      }
    }
    // h, v_new
    std::vector<std::vector<double>> h(c_.keys, std::vector<double>(c_.values));
    for (std::size_t c = 0; c < c_.keys; ++c) {
      for (std::size_t v = 0; v < c_.values; ++v)
        h_[(h_at * c_.keys + c) * c_.values + v] = h[c][v] = is("h: truncated copy") ? chop(state_[c][v]) : narrow(state_[c][v]);
    }
    matrix fresh(m, std::vector<float>(c_.values));
    std::vector<std::vector<double>> v_new(m, std::vector<double>(c_.values));
    for (std::size_t i = 0; i < m; ++i) {
      for (std::size_t v = 0; v < c_.values; ++v) {
        float sum = 0;
        for (std::size_t c = 0; c < c_.keys; ++c) {
          const float state = c_.ways.w_by_state ? state_[c][v] : static_cast<float>(h[c][v]);
          sum += static_cast<float>(w[i][c]) * state;
        }
        fresh[i][v] = static_cast<float>(u[i][v]) - sum;
        const double stored = is("v_new: plus for minus") ? static_cast<double>(static_cast<float>(u[i][v]) + sum)
                                                          : static_cast<double>(fresh[i][v]);
        const double rounded_value = is("v_new: truncated") ? chop(stored) : narrow(stored);
        v_new_[index(i, c_.values) + v] = v_new[i][v] = c_.ways.wide_value_in_o ? stored : rounded_value;
      }
    }
    read_out(first, begin, head, k, h, v_new, last_chunk);
    // state
    const std::size_t last = is("h: decayed to the row before the last") && m > 1 && !last_chunk ? m - 2 : m - 1;
    matrix next = state_;
    const bool on_keys = per_channel() || c_.ways.decay_on_k;
    for (std::size_t c = 0; c < c_.keys; ++c) {
      for (std::size_t v = 0; v < c_.values; ++v) {
        const float kept = state_[c][v] * decay_from_start(last, c);
        float sum = c_.ways.added_to_state ? kept : 0;
        for (std::size_t i = 0; i < m; ++i) {
          const float e = is("h: update takes the undecayed v_new") && !last_chunk ? 1 : decay(m - 1, i, c);
          const float key = static_cast<float>(k[i][c]),
                      value = c_.ways.update_stored ? static_cast<float>(v_new[i][v]) : fresh[i][v];
          const auto of_value = [&](float x) { return c_.ways.update_wide_value ? x : static_cast<float>(narrow(x)); };
          sum += on_keys ? static_cast<float>(narrow(key * e)) * of_value(value) : key * of_value(value * e);
        }
        next[c][v] = c_.ways.added_to_state ? sum : kept + sum;
        if (is("h: bf16 state between chunks") && !last_chunk) next[c][v] = static_cast<float>(narrow(next[c][v]));
      }
    }
    state_ = next;
  }

  void read_out(std::size_t first, std::size_t begin, std::size_t head, const std::vector<std::vector<double>>& k,
                const std::vector<std::vector<double>>& h, const std::vector<std::vector<double>>& v_new, bool last_chunk) {
    // The rows of a span of chunks, with decays of their own.
    if (span_k_.empty()) {
      span_h_ = h;
      for (std::size_t c = 0; c < c_.keys && c_.ways.q_by_state; ++c) span_h_[c].assign(state_[c].begin(), state_[c].end());
      span_begin_ = begin;
    }
    span_k_.insert(span_k_.end(), k.begin(), k.end());
    span_v_.insert(span_v_.end(), v_new.begin(), v_new.end());
    if (!last_chunk && (begin / c_.chunk + 1) % c_.output_span != 0) {
      span_gates_.insert(span_gates_.end(), gates_.begin(), gates_.end());
      return;
    }
    const matrix own_gates = gates_;
    const matrix own_cumulative = cumulative_;
    span_gates_.insert(span_gates_.end(), gates_.begin(), gates_.end());
    if (c_.output_span > 1) {
      gates_ = span_gates_;
      cumulative_ = span_gates_;
      for (std::size_t i = 1; i < gates_.size(); ++i) {
        for (std::size_t c = 0; c < channels(); ++c) {
          const float sum = cumulative_[i - 1][c] + gates_[i][c];
          cumulative_[i][c] = c_.ways.gates_rounded ? rounded(sum) : sum;
        }
      }
      for (auto& row : cumulative_) {
        for (float& x : row) x = c_.ways.gates_rounded ? rounded(x * 1.44269504F) : x * 1.44269504F;
      }
    }
    const float stated = stated_scale(), scale = scales_query() ? 1 : stated;
    const auto entering = [&](float x) { return c_.ways.plain_read ? static_cast<double>(x) : narrow(x); };
    const bool on_query = per_channel() || (channels() > 0 && c_.ways.decay_on_q);
    const std::size_t rows = span_k_.size();
    for (std::size_t i = 0; i < rows; ++i) {
      const std::size_t row = first + span_begin_ + i;
      if (row % c_.steps != c_.steps - 1) continue;
      const std::vector<double> q = query(row / c_.steps, p_.key_head(head));
      std::vector<double> weights(i + 1);
      for (std::size_t j = 0; j <= i; ++j) {
        const float sum = decayed_dot(q, span_k_[j], i, j, 0);
        weights[j] = per_channel() ? entering(sum * (is("Aqk: not scaled") ? scale / stated : scale)) : entering(sum);
        if (per_channel()) aqk_[(row * c_.value_heads + head) * c_.chunk + j] = weights[j];
      }
      if (is("o: diagonal masked")) weights[i] = 0;
      const std::size_t gate = is("o: gate of the row before") && i > 0 ? i - 1 : i;
      for (std::size_t v = 0; v < c_.values; ++v) {
        float past = 0;
        float inside = 0;
        for (std::size_t c = 0; c < c_.keys; ++c) {
          const float decayed = static_cast<float>(q[c]) * decay_from_start(gate, c);
          const double gated = !on_query                               ? q[c]
                               : is("o: q with its decay not rounded") ? static_cast<double>(decayed)
                                                                       : entering(decayed);
          past += static_cast<float>(gated) * static_cast<float>(span_h_[c][v]);
        }
        if (c_.ways.read_rounded) past = static_cast<float>(narrow(past));
        for (std::size_t j = 0; j <= i; ++j) inside += static_cast<float>(weights[j]) * static_cast<float>(span_v_[j][v]);
        if (!on_query) past *= decay_from_start(gate, 0);
        const float factor = is("o: not scaled") ? 1 : scale;  // a power of 2, or rounded in each of two products
        const float unscaled = per_channel()           ? past * scale + inside
                               : c_.ways.scale_rounded ? past * factor + inside * factor
                                                       : (past + inside) * factor;
        o_[(row / c_.steps * c_.value_heads + head) * c_.values + v] = is("o: truncated") ? chop(unscaled) : narrow(unscaled);
      }
    }
    gates_ = own_gates;
    cumulative_ = own_cumulative;
    span_k_.clear();
    span_v_.clear();
    span_gates_.clear();
  }

  float merged(float x) const { return is("Ai: bf16 between the merges") ? static_cast<float>(narrow(x)) : tensor_core(x); }

  /// -(X_ii A_ij) X_jj beside the diagonal, -X_ii (sum A_im X_mj) elsewhere.
  void merge(const matrix& a, matrix& x, std::size_t start, std::size_t end, std::size_t column) const {
    constexpr std::size_t block = 16;
    const bool beside = column + block == start;
    matrix first(end - start, std::vector<float>(block, 0));
    for (std::size_t i = start; i < end; ++i) {
      for (std::size_t c = column; c < column + block; ++c) {
        float& sum = first[i - start][c - column];
        for (std::size_t t = start; beside && t <= i; ++t) sum += merged(x[i][t]) * merged(a[t][c]);
        for (std::size_t j = column; !beside && j < start; ++j) {
          if (is("Ai: a block term missing") && j >= column + block && j < column + 2 * block) continue;
          sum += merged(a[i][j]) * merged(x[j][c]);
        }
      }
    }
    for (std::size_t i = start; i < end; ++i) {
      for (std::size_t c = column; c < column + block; ++c) {
        float sum = 0;
        for (std::size_t j = column; beside && j < start; ++j) sum += merged(first[i - start][j - column]) * merged(x[j][c]);
        for (std::size_t t = start; !beside && t <= i; ++t) sum += merged(x[i][t]) * merged(first[t - start][c - column]);
        x[i][c] = -sum;
      }
    }
  }

  matrix invert(const matrix& a, std::size_t m) const {
    constexpr std::size_t block = 16;
    matrix x(m, std::vector<float>(m, 0));
    for (std::size_t start = 0; start < m; start += block) {
      const std::size_t end = std::min(start + block, m);
      for (std::size_t i = start; i < end; ++i) {
        for (std::size_t c = start; c < i; ++c) {
          float sum = a[i][c];
          for (std::size_t j = c + 1; j < i; ++j) sum += a[i][j] * x[j][c];
          x[i][c] = -sum;
        }
        x[i][i] = 1;
      }
      for (std::size_t column = start; column >= block;) {
        column -= block;
        merge(a, x, start, end, column);
      }
    }
    if (is("Ai: a block transposed") && m >= 2 * block) {
      for (std::size_t i = 0; i < block; ++i) {
        for (std::size_t j = 0; j < i; ++j) std::swap(x[block + i][j], x[block + j][i]);
      }
    }
    return x;
  }

  result pack() const {
    const std::size_t rows = c_.tokens * c_.steps;
    result r;
    r.path = path_kind::chunk;
    r.chunk_size = c_.chunk;
    const auto stage = [&](const char* name, const format& f, std::vector<std::size_t> shape, const std::vector<double>& x) {
      r.stages.emplace(name, tensor::from_doubles(f, std::move(shape), x, name));
    };
    if (channels() == 1) stage("g_cumsum_log2", fp32, {c_.batch, rows, c_.value_heads}, g_);
    if (channels() > 1) stage("g_cumsum_log2", fp32, {c_.batch, rows, c_.value_heads, c_.keys}, g_);
    stage("A", c_.ways.a_kept ? c_.operands : fp32, {c_.batch, rows, c_.value_heads, c_.chunk}, a_);
    stage("Ai", c_.operands, {c_.batch, rows, c_.value_heads, c_.chunk}, ai_);
    stage("w", c_.operands, {c_.batch, rows, c_.value_heads, c_.keys}, w_);
    stage("u", c_.operands, {c_.batch, rows, c_.value_heads, c_.values}, u_);
    stage("h", c_.operands, {c_.batch, chunk_count(p_, c_.chunk), c_.value_heads, c_.keys, c_.values}, h_);
    stage("v_new", c_.ways.wide_value_in_o ? fp32 : c_.operands, {c_.batch, rows, c_.value_heads, c_.values}, v_new_);
    if (per_channel()) stage("Aqk", c_.ways.plain_read ? fp32 : c_.operands, {c_.batch, rows, c_.value_heads, c_.chunk}, aqk_);
    r.o = tensor::from_doubles(c_.operands, {c_.batch, c_.tokens, c_.value_heads, c_.values}, o_, "o");
    r.state_layout = c_.layout;
    std::vector<double> state = final_;
    std::vector<std::size_t> shape{p_.sequence_count(), c_.value_heads, c_.keys, c_.values};
    if (c_.layout == layout_kind::vk) {
      const std::size_t size = c_.keys * c_.values;
      for (std::size_t i = 0; i < final_.size(); ++i) {
        state[i / size * size + i % c_.values * c_.keys + i % size / c_.values] = final_[i];
      }
      std::swap(shape[2], shape[3]);
    }
    r.final_state = tensor::from_doubles(fp32, shape, state, "final_state");
    return r;
  }

  pipeline_case c_;
  problem p_;
  std::string fault_;
  std::vector<double> g_, a_, ai_, aqk_, w_, u_, v_new_, h_, o_, final_;
  matrix gates_, cumulative_, state_, span_gates_;
  std::vector<std::vector<double>> span_k_, span_v_, span_h_;
  std::size_t span_begin_ = 0;
};

}  // namespace deltaproof::testing
