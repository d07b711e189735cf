// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
#include "deltaproof/emulate/emulate.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <mutex>
#include <span>
#include <tuple>
#include <utility>

#include "deltaproof/emulate/faults.hpp"
#include "deltaproof/number/double_double.hpp"
#include "deltaproof/number/random.hpp"
#include "deltaproof/oracle/lower.hpp"
#include "deltaproof/rule/rules.hpp"
#include "deltaproof/support/errors.hpp"
#include "emulate/fault.hpp"
#include "emulate/filling.hpp"
#include "emulate/inputs.hpp"
#include "emulate/machine.hpp"
#include "emulate/packs.hpp"
#include "emulate/step_slopes.hpp"
#include "support/parallel.hpp"
#include "support/text.hpp"
#include "support/widest_vectors.hpp"

namespace deltaproof {

using emulation_detail::head_rows;
using emulation_detail::machine;

matrix<double> emulation_detail::head_rows(const tensor& t, std::size_t batch, std::size_t first, std::size_t count,
                                           std::size_t head, std::size_t width) {
  const std::size_t steps = t.dim(1), heads = t.dim(2);
  matrix<double> out(count, width);
  for (std::size_t i = 0; i < count; ++i) t.read(((batch * steps + first + i) * heads + head) * width, out.row(i));
  return out;
}

void emulation_detail::move_all(std::span<double> x, const format& own, const format& unit, philox& draw) {
  const double size = 4 * unit_roundoff(unit);
  constexpr std::size_t block = 1024;
  std::int32_t drawn[block];
  for (std::size_t first = 0; first < x.size(); first += block) {
    const std::span<double> part = x.subspan(first, std::min(block, x.size() - first));
    for (std::size_t i = 0; i < part.size(); i += 2) {
      const std::uint64_t bits = draw();
      drawn[i] = static_cast<std::int32_t>(bits & 0xffffffffU);
      drawn[i + 1] = static_cast<std::int32_t>(bits >> 32);
    }
    detail::in_widest_vectors([&drawn, size, count = part.size(), to = part.data()]() __attribute__((always_inline)) {
      for (std::size_t i = 0; i < count; ++i) {
        const double moved = to[i] + to[i] * (size * (static_cast<double>(drawn[i]) * 0x1p-31));
        to[i] = std::fabs(to[i]) < std::numeric_limits<double>::infinity() ? moved : to[i];
      }
    });
    emulation::narrow(part, {own, false});
  }
}

namespace {

void move_all(matrix<double>& m, const format& own, const format& unit, philox& draw) {
  emulation_detail::move_all(std::span<double>(m.data(), m.size()), own, unit, draw);
}

}  // namespace

head_input first_tokens(const head_input& in, std::size_t tokens) {
  const auto top = [](const matrix<double>& m, std::size_t rows) {
    return matrix<double>(rows, m.cols(), std::vector<double>(m.data(), m.data() + rows * m.cols()));
  };
  const std::size_t rows = tokens * in.steps_per_token;
  return {{in},
          top(in.q, tokens),
          top(in.k, rows),
          top(in.v, rows),
          std::vector<double>(in.beta.begin(), in.beta.begin() + static_cast<std::ptrdiff_t>(rows)),
          top(in.g, tokens),
          in.state};
}

problem problem_of(const head_input& in, const problem& like) {
  const auto as_tensor = [](const matrix<double>& m, const format& of, const char* name) {
    return tensor::from_doubles(of, {1, m.rows(), 1, m.cols()}, {m.data(), m.size()}, name);
  };
  problem out = like;
  out.q = as_tensor(in.q, in.x, "q");
  out.k = as_tensor(in.k, in.x, "k");
  out.v = as_tensor(in.v, in.x, "v");
  out.beta = tensor::from_doubles(in.beta_format, {1, in.rows(), 1}, in.beta, "beta");
  if (in.gated()) {
    std::vector<std::size_t> shape{1, in.tokens(), 1};
    if (in.channels()) shape.push_back(in.g.cols());
    out.g = tensor::from_doubles(in.g_format, shape, {in.g.data(), in.g.size()}, "g");
    out.raw.reset();
  }
  if (like.initial_state) {
    out.initial_state = tensor::from_doubles(like.initial_state->element_format(), {1, 1, in.state.rows(), in.state.cols()},
                                             {in.state.data(), in.state.size()}, "initial_state");
  }
  out.cu_seqlens.clear();
  return out;
}

/// What an activation in fp32 may err on a log decay, beside some units in its last place: ln(1 + e^x) loses the roundoff of 1.
double slack_of(const raw_gate& raw, std::size_t value_head) {
  return raw.activation == gate_kind::softplus ? unit_roundoff(fp32) * 2 * std::exp(raw.rate.at(value_head)) : 0;
}

matrix<double> gates_of_head(const problem& p, std::size_t sequence, std::size_t value_head) {
  const sequence_range range = sequence_at(p, sequence);
  if (!p.g) return {range.tokens, 0};
  return head_rows(*p.g, range.batch, range.first_token, range.tokens, value_head, p.gate_per_channel() ? p.key_dim() : 1);
}

head_input take_head(const problem& p, std::size_t sequence, std::size_t value_head) {
  const sequence_range range = sequence_at(p, sequence);
  const std::size_t n = p.num_householder, key_head = p.key_head(value_head);
  head_input in;
  in.steps_per_token = n;
  in.q = head_rows(p.q, range.batch, range.first_token, range.tokens, key_head, p.key_dim());
  in.k = head_rows(p.k, range.batch, range.first_token * n, range.tokens * n, key_head, p.key_dim());
  in.v = head_rows(p.v, range.batch, range.first_token * n, range.tokens * n, value_head, p.value_dim());
  const matrix<double> beta = head_rows(p.beta, range.batch, range.first_token * n, range.tokens * n, value_head, 1);
  in.beta.assign(beta.entries().begin(), beta.entries().end());
  in.per_channel = p.gate_per_channel();
  in.g = gates_of_head(p, sequence, value_head);
  in.state = matrix<double>(p.key_dim(), p.value_dim(), 0.0);
  if (p.initial_state)
    p.initial_state->read((sequence * p.value_heads() + value_head) * in.state.size(), {in.state.data(), in.state.size()});
  in.scale = p.scale;
  in.qk_l2norm = p.qk_l2norm;
  in.l2norm_epsilon = p.l2norm_epsilon;
  in.rule = p.rule;
  in.activation = p.beta_activation;
  in.x = p.q.element_format();
  in.beta_format = p.beta.element_format();
  if (p.g) in.g_format = p.g->element_format();
  if (p.raw) in.gate_slack = slack_of(*p.raw, value_head);
  if (p.initial_state) in.state_format = p.initial_state->element_format();
  return in;
}

head_input perturbed(const head_input& in, std::uint64_t seed, const format& read) {
  head_input out = in;
  philox draw(seed, 0x9e47);
  const auto unit = [](const format& own) { return own.precision < fp32.precision ? own : fp32; };
  const format rows = read.precision < unit(in.x).precision ? read : unit(in.x);
  move_all(out.q, in.x, rows, draw);
  move_all(out.k, in.x, rows, draw);
  move_all(out.v, in.x, rows, draw);
  emulation_detail::move_all(std::span<double>(out.beta), in.beta_format, unit(in.beta_format), draw);
  move_all(out.g, in.g_format, unit(in.g_format), draw);
  move_all(out.state, in.state_format, rows, draw);
  return out;
}

bool measured_by_fp64(const plan_variant& v) {
  for (const format& f : {v.state.accumulate, v.A.accumulate, v.o.accumulate, v.u.accumulate, v.w.accumulate}) {
    if (f.precision > fp32.precision) return false;
  }
  return true;
}

std::vector<emulation_detail::chunk_visit> emulation_detail::visits_of(const head_input& in, const plan_variant& plan,
                                                                       bool backward) {
  const std::size_t C = plan.chunk, chunks = (in.rows() + C - 1) / C, part = plan.split.chunks;
  const bool split = part > 0 && in.g.cols() == 1 && in.rows() == in.tokens();
  std::vector<chunk_visit> out;
  for (std::size_t i = 0; i < chunks; ++i) {
    const std::size_t at = backward ? chunks - 1 - i : i;
    // The chunks of the part that was last run, from its end on, until their decay suffices.
    const bool begins = split && i > 0 && (backward ? at + 1 : at) % part == 0;
    double decay = 0;
    std::size_t warm = 0;
    for (; begins && warm < std::min(part, i) && decay >= plan.split.truncation; ++warm) {
      const std::size_t past = backward ? at + 1 + warm : at - 1 - warm;
      for (std::size_t t = past * C; t < std::min((past + 1) * C, in.tokens()); ++t) decay += in.g(t, 0);
    }
    if (begins && decay < plan.split.truncation) {
      for (std::size_t before = warm; before > 0; --before)
        out.push_back({backward ? at + before : at - before, false, before == warm});
    }
    out.push_back({at, true, false});
  }
  return out;
}

head_output emulate_head(const head_input& in, const plan_variant& variant, const emulation_options& options) {
  plan_variant plan = variant;
  emulation_options run = options;
  if (run.planted != nullptr && !(variant.path == path_kind::chunk ? run.planted->chunk : run.planted->recurrent))
    run.planted = nullptr;
  if (run.planted != nullptr && run.planted->code->arithmetic != nullptr) run.planted->code->arithmetic(plan, in);
  return measured_by_fp64(variant) ? machine<float>(in, plan, variant, run).run() : machine<double>(in, plan, variant, run).run();
}

struct head_runs::known {
  head_input in;
  plan_variant variant;
  head_output plain;
  std::vector<emulation_detail::chunk_state<float>> single;
  std::vector<emulation_detail::chunk_state<double>> wide;
};

head_runs::head_runs(head_input in, plan_variant variant) {
  const auto made = std::make_shared<known>(known{std::move(in), std::move(variant), {}, {}, {}});
  const auto run = [&]<class Real>(std::vector<emulation_detail::chunk_state<Real>>& to) {
    machine<Real> one(made->in, made->variant, made->variant, {});
    // The chunks before a part of a split sequence are visited twice.
    if (made->variant.split.chunks == 0) one.keep_rows(to);
    made->plain = one.run();
  };
  measured_by_fp64(made->variant) ? run(made->single) : run(made->wide);
  known_ = made;
}

const head_input& head_runs::input() const { return known_->in; }
const head_output& head_runs::without_fault() const { return known_->plain; }

head_output head_runs::with(const fault& f) const {
  emulation_options options;
  options.planted = &f;
  const auto run = [&]<class Real>(const std::vector<emulation_detail::chunk_state<Real>>& rows) {
    machine<Real> one(known_->in, known_->variant, known_->variant, options);
    one.take_rows(rows);
    return one.run();
  };
  const bool shares = f.chunk && f.code->arithmetic == nullptr && !(known_->single.empty() && known_->wide.empty());
  if (!shares) return emulate_head(known_->in, known_->variant, options);
  return known_->single.empty() ? run(known_->wide) : run(known_->single);
}

head_output emulate_head(const problem& p, std::size_t sequence, std::size_t value_head, const plan_variant& variant,
                         const emulation_options& options) {
  head_input in = take_head(p, sequence, value_head);
  emulation_options run = options;
  run.cache_stream = sequence * p.value_heads() + value_head;
  if (run.planted != nullptr && !applies(*run.planted, p, variant.path)) run.planted = nullptr;
  if (run.planted != nullptr && run.planted->code->reads != nullptr)
    run.planted->code->reads(p, sequence, value_head, variant, in);
  return emulate_head(in, variant, run);
}

namespace {

/// Columns of the state that pass through all steps of a batch together: few enough to stay in the nearest cache.
constexpr std::size_t block_columns = 32;
constexpr std::size_t batch_steps = 64;

/// One step of the recurrence as its columns see it: all but v.
template <class S>
struct token_step {
  const S* k = nullptr;
  const S* q = nullptr;     ///< zeros where nothing is read
  const S* next = nullptr;  ///< k of the step after it, or zeros
  const S* decay = nullptr;
  S beta = S(0);
};

/// S <- S + k change^T, row by row, while read <- q^T S and predicted <- next^T (decay S) are summed over the rows in their
/// order: one pass over the state does the work of a write, a read and the next prediction.
template <class S>
[[gnu::always_inline]] inline void one_pass(const token_step<S>& at, std::size_t keys, std::size_t decay_stride, S* state,
                                            const S* change, S* read, S* predicted) {
  using numbers = pack<S>;
  constexpr std::size_t vectors = block_columns / numbers::count;
  typename numbers::type sum_read[vectors] = {}, sum_predicted[vectors] = {}, write[vectors], ki{}, qi{}, ni{}, a{};
  for (std::size_t j = 0; j < vectors; ++j) numbers::load(write[j], change + j * numbers::count);
  for (std::size_t i = 0; i < keys; ++i) {
    numbers::fill(ki, at.k[i]);
    numbers::fill(qi, at.q[i]);
    numbers::fill(ni, at.next[i]);
    numbers::fill(a, at.decay[i * decay_stride]);
    for (std::size_t j = 0; j < vectors; ++j) {
      S* const row = state + i * block_columns + j * numbers::count;
      typename numbers::type x;
      numbers::load(x, row);
      x = x + ki * write[j];
      sum_read[j] = sum_read[j] + qi * x;
      x = x * a;
      sum_predicted[j] = sum_predicted[j] + ni * x;
      numbers::store(row, x);
    }
  }
  for (std::size_t j = 0; j < vectors; ++j) {
    numbers::store(read + j * numbers::count, sum_read[j]);
    numbers::store(predicted + j * numbers::count, sum_predicted[j]);
  }
}

/// A batch of steps on one block of columns. `values` and `read`: a row of block_columns for each step.
template <class S>
void run_block(std::span<const token_step<S>> steps, std::size_t keys, std::size_t decay_stride, S* state, const double* values,
               S* read, S* predicted) {
  detail::in_widest_vectors([&]() __attribute__((always_inline)) {
    S change[block_columns];
    for (std::size_t r = 0; r < steps.size(); ++r) {
      const S beta = steps[r].beta;
      for (std::size_t j = 0; j < block_columns; ++j) change[j] = beta * (S(values[r * block_columns + j]) - predicted[j]);
      one_pass(steps[r], keys, decay_stride, state, change, read + r * block_columns, predicted);
    }
  });
}

/// The step length of a row of k, without rounding.
double step_of(const head_input& in, const matrix<double>& k, std::size_t row) {
  double squared_norm = 0;
  if (in.rule != rule_kind::euler) {
    for (const double x : k.row(row)) squared_norm += x * x;
  }
  return emulation_detail::reference_step(in, in.beta[row], squared_norm);
}

/// The same matrix in S; no copy where it is in S.
template <class S>
decltype(auto) numbers_in(const matrix<double>& m) {
  if constexpr (std::is_same_v<S, double>) {
    return (m);
  } else {
    matrix<S> out(m.rows(), m.cols());
    std::transform(m.entries().begin(), m.entries().end(), out.data(), [](double x) { return S(x); });
    return out;
  }
}

// The order of docs/exchange-format.md: activation, norm, effective step; then decay, predict, write, read.
template <class S>
std::pair<matrix<S>, matrix<S>> token_loop(const head_input& in) {
  const std::size_t K = in.key_dim(), V = in.value_dim(), n = in.steps_per_token, rows = in.rows();
  std::array<matrix<double>, 2> normalised;
  if (in.qk_l2norm) {
    normalised = {in.q, in.k};
    for (matrix<double>& m : normalised) {
      for (std::size_t i = 0; i < m.rows(); ++i) {
        double sum = in.l2norm_epsilon;
        for (const double x : m.row(i)) sum += x * x;
        for (double& x : m.row(i)) x /= std::sqrt(sum);
      }
    }
  }
  const matrix<double>& rows_of_k = in.qk_l2norm ? normalised[1] : in.k;
  const matrix<S>&q = numbers_in<S>(in.qk_l2norm ? normalised[0] : in.q), &k = numbers_in<S>(rows_of_k);
  matrix<S> o(in.tokens(), V, S(0)), state(K, V, S(0));
  for (std::size_t i = 0; i < state.size(); ++i) state.data()[i] = S(in.state.data()[i]);
  if (rows == 0) return {std::move(o), std::move(state)};
  // Block after block of columns, each with all of its rows; nobody reads those beyond the last column.
  const std::size_t blocks = (V + block_columns - 1) / block_columns, of_block = K * block_columns;
  const auto width = [&](std::size_t b) { return std::min(block_columns, V - b * block_columns); };
  std::vector<S> columns(blocks * of_block, S(0)), predicted(blocks * block_columns, S(0)), read(batch_steps * block_columns);
  for (std::size_t b = 0; b < blocks; ++b) {
    for (std::size_t i = 0; i < K; ++i)
      std::copy_n(state.row(i).data() + b * block_columns, width(b), columns.data() + b * of_block + i * block_columns);
  }
  const std::vector<S> nothing(K, S(0));
  const std::size_t stride = in.gated() && in.channels() ? 1 : 0, decays = stride == 1 ? K : 1;
  // The decay of a token acts before the first of its steps, so at the end of the pass before: that of step r is at r.
  std::vector<S> decay((batch_steps + 1) * decays, S(1));
  std::vector<double> values(batch_steps * block_columns, 0.0);
  const auto set_decay = [&](std::size_t place, std::size_t row) {
    for (std::size_t i = 0; i < decays; ++i)
      decay[place * decays + i] = S(in.gated() && row < rows && row % n == 0 ? std::exp(in.g(row / n, i)) : 1.0);
  };
  set_decay(0, 0);
  const token_step<S> before{nothing.data(), nothing.data(), k.row(0).data(), decay.data(), S(0)};
  for (std::size_t b = 0; b < blocks; ++b)
    run_block<S>({&before, 1}, K, stride, columns.data() + b * of_block, values.data(), read.data(),
                 predicted.data() + b * block_columns);
  std::vector<token_step<S>> steps;
  for (std::size_t first = 0; first < rows; first += batch_steps) {
    const std::size_t last = std::min(first + batch_steps, rows);
    steps.clear();
    for (std::size_t row = first; row < last; ++row) {
      set_decay(row - first, row + 1);
      steps.push_back({k.row(row).data(), row % n == n - 1 ? q.row(row / n).data() : nothing.data(),
                       row + 1 < rows ? k.row(row + 1).data() : nothing.data(), decay.data() + (row - first) * decays,
                       S(step_of(in, rows_of_k, row))});
    }
    for (std::size_t b = 0; b < blocks; ++b) {
      for (std::size_t row = first; row < last; ++row)
        std::copy_n(in.v.row(row).data() + b * block_columns, width(b), values.data() + (row - first) * block_columns);
      run_block<S>(steps, K, stride, columns.data() + b * of_block, values.data(), read.data(),
                   predicted.data() + b * block_columns);
      for (std::size_t row = first; row < last; ++row) {
        if (row % n != n - 1) continue;
        const S* const from = read.data() + (row - first) * block_columns;
        for (std::size_t j = 0; j < width(b); ++j) o(row / n, b * block_columns + j) = from[j] * S(in.scale);
      }
    }
  }
  for (std::size_t b = 0; b < blocks; ++b) {
    for (std::size_t i = 0; i < K; ++i)
      std::copy_n(columns.data() + b * of_block + i * block_columns, width(b), state.row(i).data() + b * block_columns);
  }
  return {std::move(o), std::move(state)};
}

matrix<double> difference(const matrix<double>& run, const matrix<double_double>& truth) {
  matrix<double> out(run.rows(), run.cols());
  for (std::size_t i = 0; i < out.size(); ++i) out.data()[i] = (double_double(run.data()[i]) - truth.data()[i]).hi();
  return out;
}

}  // namespace

head_output reference_run(const head_input& in) {
  head_output out;
  std::tie(out.o, out.final_state) = token_loop<double>(in);
  return out;
}

head_output reference_run_in_fp32(const head_input& in) {
  const auto [o, state] = token_loop<float>(in);
  head_output out;
  out.o = emulation_detail::widened(o);
  out.final_state = emulation_detail::widened(state);
  return out;
}

head_output error_of_wide_run(const head_input& in, const head_output& run) {
  const auto [o, state] = token_loop<double_double>(in);
  head_output out;
  out.o = difference(run.o, o);
  out.final_state = difference(run.final_state, state);
  return out;
}

result emulate(const problem& p, const plan_variant& variant, const emulation_options& options, unsigned threads) {
  if (!(options.noise_ulps >= 0 && options.noise_ulps <= 0x1p20))
    throw format_error("emulate: the noise is " + detail::general(options.noise_ulps, 6) + " ulps; use a number from 0 to 2^20");
  if (options.planted != nullptr && options.planted->pass == pass_kind::backward) {
    throw format_error("emulate: the fault " + std::string(options.planted->name) +
                       " is a fault of the backward pass and does not change the forward pass; take a fault of the forward pass, "
                       "or call emulate_gradients");
  }
  if (variant.path == path_kind::chunk && variant.chunk == 0)
    throw format_error("emulate: the chunk length is 0; use at least 1 row of k");
  refuse_poles(p);
  const auto sequences = p.sequences();
  const std::size_t HV = p.value_heads();
  const bool chunked = variant.path == path_kind::chunk;
  emulation_detail::forward_tensors tensors(p, variant, chunked && options.stages);
  const std::vector<std::size_t> first_chunk = emulation_detail::first_chunks(p, sequences, chunked ? variant.chunk : 0);
  std::mutex lock;
  std::size_t done = 0;
  parallel_for(sequences.size() * HV, threads, [&](std::size_t job) {
    if (options.stop != nullptr && *options.stop) return;
    const std::size_t s = job / HV, head = job % HV;
    const head_output out = emulate_head(p, s, head, variant, options);
    const std::lock_guard guard(lock);
    tensors.put(out, s, sequences[s], head, first_chunk[s]);
    if (options.progress) options.progress(static_cast<double>(++done) / static_cast<double>(sequences.size() * HV));
  });
  return tensors.finished(options);
}

}  // namespace deltaproof
