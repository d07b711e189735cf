// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
//
// Correct and faulty models of what keeps a state between calls: a decode kernel with a ring (`ring_decode`) and the ranks of a
// split sequence (`split_over_ranks`). They compute in fp32 and record what the exchange format asks of them.
#pragma once

#include "deltaproof/check/invariant.hpp"
#include "deltaproof/emulate/emulate.hpp"
#include "deltaproof/oracle/lower.hpp"
#include "deltaproof/plan/plan.hpp"
#include "studies/shared/common.hpp"

namespace deltaproof::detail::state_life {

inline tensor tensor_of(const format& f, std::vector<std::size_t> shape, std::vector<double> values, const std::string& name) {
  for (double& x : values) x = round_nearest(x, f);
  return tensor::from_doubles(f, std::move(shape), values, name);
}

/// What a kernel that keeps `plan_name` gives, without stages.
inline recorded_run emulated(const problem& p, std::string_view plan_name, std::size_t chunk, const std::string& name) {
  const plan declared = plan_named(plan_name);
  const path_kind path = chunk > 0 ? path_kind::chunk : path_kind::recurrent;
  plan_variant variant = variants(declared, p, path, chunk).front();
  variant.exp2_ulps = variant.rsqrt_ulps = 0;
  recorded_run out;
  out.given = p;
  out.gave = emulate(p, variant);
  out.gave.kernel = declared.kernels.front();
  out.problem_path = name + ".problem.safetensors";
  out.result_path = name + ".result.safetensors";
  return out;
}

/// Rows [first, first + count) along T of every tensor of a problem with one sequence, starting from `state`.
inline problem cut(const problem& p, std::size_t first, std::size_t count, std::optional<tensor> state) {
  const auto rows = [&](const tensor& t, std::size_t steps) {
    std::vector<std::size_t> shape = t.shape();
    const std::size_t width = t.size() / shape[1];
    shape[1] = count * steps;
    std::vector<double> values(count * steps * width);
    if (!values.empty()) t.read(first * steps * width, values);
    return tensor::from_doubles(t.element_format(), shape, values, t.name());
  };
  problem out = p;
  out.q = rows(p.q, 1);
  out.k = rows(p.k, p.num_householder);
  out.v = rows(p.v, p.num_householder);
  out.beta = rows(p.beta, p.num_householder);
  if (p.g) out.g = rows(*p.g, 1);
  out.initial_state = std::move(state);
  return out;
}

enum class ring_fault {
  none,
  lost_flush,
  last_entry_lost,
  gate_twice,
  entry_of_last_lap,
  foreign_scale,
  unsaved_tail,
  flush_early
};

struct ring_options {
  std::size_t every = 0;  ///< 0: plain decode, without a ring
  format k = fp32, u = fp32, g = fp32, state = fp32;
  ring_fault fault = ring_fault::none;
};

/// One head of one sequence of a ring, in fp32.
class ring_head {
 public:
  ring_head(const problem& p, std::size_t head, const ring_options& how)
      : low_(lower(p, 0, head)), how_(how), K_(low_.scan.key_dim), V_(low_.scan.value_dim) {
    for (const double x : low_.scan.initial_state.entries()) state_.push_back(stored(x, how.every > 0 ? how.state : fp32));
    if (state_.empty()) state_.assign(K_ * V_, 0.0F);
    if (p.g) {
      const std::size_t heads = p.value_heads();
      for (std::size_t t = 0; t < low_.scan.tokens; ++t) gates_.push_back(p.g->at(t * heads + head));
    }
  }

  void run() {
    for (std::size_t t = 0; t < low_.scan.tokens; ++t) {
      if (how_.every > 0 && t % how_.every == 0) {
        base_ = state_;
        bases.insert(bases.end(), state_.begin(), state_.end());
      }
      const double gate = gates_.empty() ? 0 : stored(gates_[t], ring(how_.g));
      std::vector<float> k(K_), u(V_);
      for (std::size_t i = 0; i < K_; ++i) k[i] = stored(low_.scan.k[t * K_ + i], ring(how_.k));
      decay(gate);
      for (std::size_t j = 0; j < V_; ++j) {
        float r = 0;
        for (std::size_t i = 0; i < K_; ++i) r += k[i] * state_[i * V_ + j];
        u[j] = stored(static_cast<float>(low_.scan.step[t]) * (static_cast<float>(low_.scan.v[t * V_ + j]) - r), ring(how_.u));
      }
      write(k, u);
      for (std::size_t j = 0; j < V_; ++j) {
        float sum = 0;
        for (std::size_t i = 0; i < K_; ++i)
          sum += static_cast<float>(low_.scan.q[t * K_ + i]) * static_cast<float>(low_.scale) * state_[i * V_ + j];
        o.push_back(sum);
      }
      ring_g.push_back(gate);
      ring_k.insert(ring_k.end(), k.begin(), k.end());
      ring_u.insert(ring_u.end(), u.begin(), u.end());
      if (how_.every > 0 && (t + 1) % how_.every == 0) flush(t + 1 - how_.every, t + 1);
    }
    if (how_.fault == ring_fault::unsaved_tail && how_.every > 0 && low_.scan.tokens % how_.every != 0) state_ = base_;
  }

  std::vector<double> o, ring_k, ring_u, ring_g, bases;
  [[nodiscard]] std::vector<double> state() const { return {state_.begin(), state_.end()}; }

 private:
  [[nodiscard]] const format& ring(const format& f) const { return how_.every > 0 ? f : fp32; }
  static float stored(double x, const format& f) { return static_cast<float>(round_nearest(x, f)); }
  void decay(double gate) {
    const float factor = std::exp(static_cast<float>(gate));
    for (float& x : state_) x *= factor;
  }
  void write(const std::vector<float>& k, const std::vector<float>& u) {
    for (std::size_t i = 0; i < K_; ++i) {
      for (std::size_t j = 0; j < V_; ++j) state_[i * V_ + j] += k[i] * u[j];
    }
  }
  [[nodiscard]] std::vector<float> entry(const std::vector<double>& of, std::size_t t, std::size_t width) const {
    return {of.begin() + static_cast<std::ptrdiff_t>(t * width), of.begin() + static_cast<std::ptrdiff_t>((t + 1) * width)};
  }
  /// Replays the entries of tokens [first, last) into the state before them.
  void flush(std::size_t first, std::size_t last) {
    const bool second = first == how_.every;  // the second flush is the faulty one
    const ring_fault f = second ? how_.fault : ring_fault::none;
    state_ = base_;
    if (f == ring_fault::lost_flush) return;
    for (std::size_t t = first; t < last; ++t) {
      if (f == ring_fault::last_entry_lost && t + 1 == last) break;
      const std::size_t from = f == ring_fault::entry_of_last_lap && t == first ? t - how_.every : t;
      if (f == ring_fault::flush_early && t + 2 >= last) break;
      decay(ring_g[t]);
      write(entry(ring_k, from, K_), entry(ring_u, from, V_));
    }
    if (f == ring_fault::gate_twice) decay(ring_g[last - 1]);
    if (f == ring_fault::foreign_scale) {
      for (std::size_t j = 0; j < V_; ++j) state_[j] *= 1.5F;
    }
    for (float& x : state_) x = stored(x, how_.state);
  }

  lowered<double> low_;
  ring_options how_;
  std::size_t K_, V_;
  std::vector<float> state_, base_;
  std::vector<double> gates_;
};

/// A problem of one sequence, one step a token and one gate a token, as many heads of q and k as of v.
inline recorded_run ring_decode(const problem& p, const ring_options& how, const std::string& name) {
  const std::size_t T = p.tokens(), H = p.value_heads(), K = p.key_dim(), V = p.value_dim();
  const std::size_t windows = how.every > 0 ? (T + how.every - 1) / how.every : 0;
  std::vector<double> o(T * H * V), k(T * H * K), u(T * H * V), g(T * H), bases(windows * H * K * V), last;
  for (std::size_t h = 0; h < H; ++h) {
    ring_head head(p, h, how);
    head.run();
    const auto spread = [&](const std::vector<double>& from, std::vector<double>& to, std::size_t width) {
      for (std::size_t i = 0; i < from.size(); ++i) to[(i / width * H + h) * width + i % width] = from[i];
    };
    spread(head.o, o, V);
    spread(head.ring_k, k, K);
    spread(head.ring_u, u, V);
    spread(head.ring_g, g, 1);
    spread(head.bases, bases, K * V);
    const std::vector<double> state = head.state();
    last.insert(last.end(), state.begin(), state.end());
  }
  recorded_run out;
  out.given = p;
  out.gave.o = tensor_of(p.q.element_format(), {1, T, H, V}, o, "o");
  out.gave.final_state = tensor_of(fp32, {1, H, K, V}, last, "final_state");
  out.gave.path = path_kind::recurrent;
  out.gave.kernel = plan_named("fla-recurrent-gdn").kernels.front();
  out.problem_path = name + ".problem.safetensors";
  out.result_path = name + ".result.safetensors";
  if (how.every == 0) return out;
  auto& tensors = out.exchanged.tensors;
  tensors.emplace("ring_k", tensor_of(how.k, {1, T, H, K}, k, "ring_k"));
  tensors.emplace("ring_u", tensor_of(how.u, {1, T, H, V}, u, "ring_u"));
  if (p.g) tensors.emplace("ring_g", tensor_of(how.g, {1, T, H}, g, "ring_g"));
  tensors.emplace("ring_state", tensor_of(how.state, {1, windows, H, K, V}, bases, "ring_state"));
  out.exchanged.flush_every = how.every;
  return out;
}

enum class rank_fault { none, transposed, gate_twice, history_lost, rank_skipped, foreign_head, tail_token_lost, not_from_zeros };

struct rank_options {
  std::vector<std::size_t> cuts;  ///< where ranks after the first begin
  fold_kind fold = fold_kind::sequential;
  std::optional<double> drop_below;  ///< declared, and done
  rank_fault fault = rank_fault::none;
};

inline constexpr std::string_view rank_plan = "fla-chunk-gdn";

/// transition [K x K] and summary [K x V] of each head, as a kernel that keeps the plan makes them.
inline void summarise(recorded_run& rank, rank_fault fault) {
  const problem& p = rank.given;
  const std::size_t H = p.value_heads(), K = p.key_dim(), V = p.value_dim();
  plan_variant variant = variants(plan_named(rank_plan), p, path_kind::chunk, *rank.gave.chunk_size).front();
  variant.exp2_ulps = variant.rsqrt_ulps = 0;
  std::vector<double> transitions, summaries;
  for (std::size_t h = 0; h < H; ++h) {
    head_input in = take_head(p, 0, fault == rank_fault::foreign_head ? (h + 1) % H : h);
    const matrix<double> start = in.state;
    if (fault == rank_fault::tail_token_lost) in = first_tokens(in, in.tokens() - 1);
    head_input moved = in;
    moved.v = matrix<double>(in.rows(), K, 0.0);
    moved.state = matrix<double>(K, K, 0.0);
    for (std::size_t i = 0; i < K; ++i) moved.state(i, i) = 1;
    in.state = fault == rank_fault::not_from_zeros ? start : matrix<double>(K, V, 0.0);
    const matrix<double> transition = emulate_head(moved, variant).final_state, summary = emulate_head(in, variant).final_state;
    transitions.insert(transitions.end(), transition.data(), transition.data() + transition.size());
    summaries.insert(summaries.end(), summary.data(), summary.data() + summary.size());
  }
  rank.exchanged.tensors.emplace("rank_transition", tensor_of(fp32, {1, H, K, K}, transitions, "rank_transition"));
  rank.exchanged.tensors.emplace("rank_state", tensor_of(fp32, {1, H, K, V}, summaries, "rank_state"));
}

/// The state after a rank, in fp32. `gates[h]`: the sum of the rank's log decays.
inline tensor fold_after(const recorded_run& rank, const std::vector<double>& gates, const rank_options& how, rank_fault fault) {
  const problem& p = rank.given;
  const std::size_t H = p.value_heads(), K = p.key_dim(), V = p.value_dim();
  const tensor &transition = *rank.exchanged.find("rank_transition"), &summary = *rank.exchanged.find("rank_state");
  std::vector<double> out;
  for (std::size_t h = 0; h < H; ++h) {
    const bool drops = fault == rank_fault::history_lost || (how.drop_below && std::exp(gates[h]) < *how.drop_below);
    for (std::size_t i = 0; i < K; ++i) {
      for (std::size_t j = 0; j < V; ++j) {
        auto sum = static_cast<float>(summary.at((h * K + i) * V + j));
        for (std::size_t m = 0; m < K && !drops; ++m) {
          const std::size_t at = fault == rank_fault::transposed ? (h * K + m) * K + i : (h * K + i) * K + m;
          sum += static_cast<float>(transition.at(at)) * static_cast<float>(p.initial_state->at((h * K + m) * V + j));
        }
        if (fault == rank_fault::gate_twice) sum *= std::exp(static_cast<float>(gates[h] / static_cast<double>(p.tokens())));
        out.push_back(sum);
      }
    }
  }
  return fault == rank_fault::rank_skipped ? *p.initial_state : tensor_of(fp32, {1, H, K, V}, out, "initial_state");
}

/// The ranks of a problem of one sequence with an initial state. The fault is that of the second rank, or of the fold behind it.
inline std::vector<recorded_run> split_over_ranks(const problem& p, const rank_options& how) {
  std::vector<recorded_run> ranks;
  std::optional<tensor> state = p.initial_state;
  std::size_t first = 0;
  for (std::size_t r = 0; r <= how.cuts.size(); ++r) {
    const std::size_t last = r < how.cuts.size() ? how.cuts[r] : p.tokens();
    const rank_fault fault = r == 1 ? how.fault : rank_fault::none;
    ranks.push_back(emulated(cut(p, first, last - first, state), rank_plan, 64, "rank-" + std::to_string(r)));
    recorded_run& rank = ranks.back();
    summarise(rank, fault);
    rank.exchanged.fold = how.fold;
    rank.exchanged.drop_below = how.drop_below;
    std::vector<double> gates(p.value_heads(), 0.0);
    for (std::size_t t = first; t < last && p.g; ++t) {
      for (std::size_t h = 0; h < gates.size(); ++h) gates[h] += p.g->at(t * gates.size() + h);
    }
    state = fold_after(rank, gates, how, fault);
    first = last;
  }
  return ranks;
}

}  // namespace deltaproof::detail::state_life
