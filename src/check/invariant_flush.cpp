// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
//
// flush of invariant.hpp: a decode kernel that holds the last L tokens as (u, k, g) in a ring and replays them into its state
// every L tokens, beside plain decode of the same problem.
#include <algorithm>
#include <cmath>
#include <utility>

#include "check/check_parts.hpp"
#include "check/state_equations.hpp"
#include "deltaproof/oracle/reference.hpp"
#include "support/text.hpp"

namespace deltaproof::invariant_detail {
namespace {

/// The formats of what a ring holds; where they are not recorded, those that lose nothing.
struct ring_formats {
  format k = fp64, u = fp64, g = fp64, state = fp64;
  bool recorded = false;
  bool lossless = true;  ///< of the keys and gates as given, and an fp32 state and change
};

ring_formats formats_of(const recorded_run& part) {
  ring_formats f;
  const auto take = [&](const char* name, format& to, const format& given) {
    const tensor* t = part.exchanged.find(name);
    if (t == nullptr) return;
    to = t->element_format();
    f.recorded = true;
    f.lossless = f.lossless && is_lossless(given, to);
  };
  take("ring_k", f.k, part.given.qk_l2norm ? fp32 : part.given.k.element_format());
  take("ring_u", f.u, fp32);
  take("ring_g", f.g, part.given.g ? part.given.g->element_format() : fp32);
  take("ring_state", f.state, fp32);
  return f;
}

/// Log decays of token t of a head: none, one, or K of them.
std::vector<double> gates_of(const tensor* g, std::size_t token, std::size_t head) {
  return g == nullptr ? std::vector<double>{} : head_rows(*g, token, 1, head);
}

template <class Real>
std::vector<Real> factors_of(const std::vector<double>& gates) {
  std::vector<Real> out;
  out.reserve(gates.size());
  for (const double g : gates) out.push_back(std::exp(static_cast<Real>(g)));
  return out;
}

/// What a correct ring kernel gives that computes in Real and stores in `f`: o of one head, and the state after the last token.
template <class Real>
struct ring_run {
  std::vector<Real> o;
  running_state<Real> state;

  ring_run(const recorded_run& part, std::size_t sequence, std::size_t head, std::size_t every, const ring_formats& f) {
    const problem& p = part.given;
    const head_numbers<Real> in(p, sequence, head);
    const std::size_t from = flat_token(p, sequence_at(p, sequence));
    state.s = in.initial;
    const auto narrow = [](std::vector<Real> x, const format& to) {
      for (Real& y : x) y = static_cast<Real>(round_nearest(static_cast<double>(y), to));
      return x;
    };
    const auto narrow_state = [&] { state.s = {in.K, in.V, narrow(entries_of(state.s), f.state)}; };
    narrow_state();
    for (std::size_t t = 0; t < in.tokens; ++t) {
      std::vector<double> gates = gates_of(p.g ? &*p.g : nullptr, from + t, head);
      for (double& g : gates) g = round_nearest(g, f.g);
      state.decay(factors_of<Real>(gates));
      for (std::size_t row = t * in.steps; row < (t + 1) * in.steps; ++row) {
        const std::vector<Real> k = narrow({in.key(row).begin(), in.key(row).end()}, f.k);
        state.write(k, narrow(in.change(row, state.read(k)), f.u));
      }
      const std::vector<Real> out = in.out(t, state);
      o.insert(o.end(), out.begin(), out.end());
      if ((t + 1) % every == 0) narrow_state();
    }
  }
};

/// What the outputs would be if no flush ever reached the state: each window starts from the initial state.
std::vector<wide> outputs_without_flushes(const head_numbers<wide>& in, std::size_t every) {
  std::vector<wide> out;
  for (std::size_t first = 0; first < in.tokens; first += every) {
    running_state<wide> state{in.initial};
    const std::vector<wide> o = run_tokens(in, first, std::min(in.tokens, first + every), state);
    out.insert(out.end(), o.begin(), o.end());
  }
  return out;
}

/// The ring's equations of one part.
class ring_equations {
 public:
  ring_equations(const recorded_run& part, std::size_t index)
      : part_(part),
        every_(*part.exchanged.flush_every),
        keys_("keys", "ring_k is the key, rounded once", index),
        gates_("gates", "ring_g is g, rounded once", index),
        entries_("entries", "ring_u is b (v - k^T S), where S is ring_state with the ring's earlier entries replayed", index),
        replay_("replay", "the state after a flush is the state before it with the ring's entries replayed", index) {
    const bool channels = !part.given.g;
    ring_k_ = need("ring_k", keys_);
    ring_g_ = channels ? nullptr : need("ring_g", gates_);
    if (channels) gates_.lacks("the problem has no g");
    ring_u_ = part.exchanged.find("ring_u");
    ring_state_ = part.exchanged.find("ring_state");
    final_ = part.gave.final_state_kv();
    whole_ring_ = ring_k_ != nullptr && ring_u_ != nullptr && ring_state_ != nullptr && (channels || ring_g_ != nullptr);
    if (!whole_ring_) {
      for (measured_equation* e : {&entries_, &replay_}) {
        e->lacks(std::string("the result lacks ") + (ring_k_ == nullptr       ? "ring_k"
                                                     : ring_u_ == nullptr     ? "ring_u"
                                                     : ring_state_ == nullptr ? "ring_state"
                                                                              : "ring_g"));
      }
    }
  }

  void measure(std::vector<state_equation>& out) {
    const problem& p = part_.given;
    keys_.counts_key_heads();
    std::size_t windows = 0;  // of the sequences before, all batches
    for (std::size_t s = 0; s < p.sequence_count(); ++s) {
      for (std::size_t h = 0; h < p.value_heads(); ++h) measure_head(s, h, windows);
      windows += (sequence_at(p, s).tokens + every_ - 1) / every_;
    }
    for (measured_equation* e : {&keys_, &gates_, &entries_, &replay_}) out.push_back(std::move(*e).done());
  }

 private:
  const tensor* need(const char* name, measured_equation& e) {
    const tensor* t = part_.exchanged.find(name);
    if (t == nullptr) e.lacks(std::string("the result lacks ") + name);
    return t;
  }

  void measure_head(std::size_t s, std::size_t h, std::size_t windows) {
    const problem& p = part_.given;
    const head_numbers<wide> in(p, s, h);
    const std::size_t from = flat_token(p, sequence_at(p, s)), n = p.num_householder, group = p.value_heads() / p.key_heads();
    const double fp32_unit = unit_roundoff(fp32);
    if (ring_k_ != nullptr && h % group == 0) {
      const std::vector<double> got = head_rows(*ring_k_, from * n, in.tokens * n, p.key_head(h));
      const double made = p.qk_l2norm ? 4 * fp32_unit : 0;  // a norm is computed before it is stored
      compare_stored(keys_, s, p.key_head(h), got, in.k, ring_k_->element_format(), made);
    }
    if (ring_g_ != nullptr) {
      const std::vector<double> given = head_rows(*p.g, from, in.tokens, h);
      compare_stored(gates_, s, h, head_rows(*ring_g_, from, in.tokens, h), {given.begin(), given.end()},
                     ring_g_->element_format(), 0);
    }
    if (!whole_ring_) return;
    const head_numbers<float> narrow(p, s, h);
    for (std::size_t first = 0, w = 0; first < in.tokens; first += every_, ++w)
      measure_window(in, narrow, s, h, windows + w, w, from, first);
  }

  /// What is only stored must be the number rounded once, up to what making it costs.
  static void compare_stored(measured_equation& e, std::size_t s, std::size_t h, const std::vector<double>& got,
                             const std::vector<wide>& want, const format& stored, double made) {
    e.add(s, h, std::nullopt, got, want, want, stored, made);
  }

  void measure_window(const head_numbers<wide>& in, const head_numbers<float>& narrow, std::size_t s, std::size_t h,
                      std::size_t index, std::size_t w, std::size_t from, std::size_t first) {
    const problem& p = part_.given;
    const std::size_t n = in.steps, heads = p.value_heads(), last = std::min(in.tokens, first + every_);
    running_state<wide> exact{matrix_of<wide>(*ring_state_, index * heads + h, in.K, in.V)};
    running_state<float> rough{matrix_of<float>(*ring_state_, index * heads + h, in.K, in.V)};
    std::vector<wide> want;
    std::vector<float> modelled;
    const format& stored = ring_u_->element_format();
    for (std::size_t t = first; t < last; ++t) {
      const std::vector<double> gates = gates_of(ring_g_, from + t, h);
      exact.decay(factors_of<wide>(gates));
      rough.decay(factors_of<float>(gates));
      for (std::size_t row = t * n; row < (t + 1) * n; ++row) {
        const std::vector<double> k = head_rows(*ring_k_, from * n + row, 1, p.key_head(h));
        const std::vector<double> u = head_rows(*ring_u_, from * n + row, 1, h);
        const std::vector<wide> wide_k(k.begin(), k.end()), wide_u(u.begin(), u.end());
        const std::vector<float> float_k(k.begin(), k.end()), float_u(u.begin(), u.end());
        for (const wide x : in.change(row, exact.read(wide_k))) want.push_back(x);
        for (const float x : narrow.change(row, rough.read(float_k))) modelled.push_back(x);
        exact.write(wide_k, wide_u);
        rough.write(float_k, float_u);
      }
    }
    entries_.add(s, h, w, head_rows(*ring_u_, (from + first) * n, (last - first) * n, h), want, modelled, stored,
                 unit_roundoff(fp32));
    const bool ends = last == in.tokens;
    const tensor* after = ends ? (final_ ? &*final_ : nullptr) : ring_state_;
    if (after == nullptr) return;
    const std::size_t at = ends ? s * heads + h : (index + 1) * heads + h;
    replay_.add(s, h, w, numbers_of(*after, at * in.K * in.V, in.K * in.V), entries_of(exact.s), entries_of(rough.s),
                after->element_format(), unit_roundoff(fp32));
  }

  const recorded_run& part_;
  std::size_t every_;
  measured_equation keys_, gates_, entries_, replay_;
  const tensor *ring_k_ = nullptr, *ring_u_ = nullptr, *ring_g_ = nullptr, *ring_state_ = nullptr;
  std::optional<tensor> final_;
  bool whole_ring_ = false;
};

/// The outputs of a part beside the exact ones, with what a correct ring of its formats costs and what plain decode errs.
struct ring_cost {
  state_equation o;
  bool shows_lost_flushes = false;
};

ring_cost cost_of(const recorded_run& whole, const recorded_run& part, std::size_t index, const reference& exact) {
  const problem& p = part.given;
  const std::size_t every = *part.exchanged.flush_every, V = p.value_dim(), heads = p.value_heads();
  const ring_formats f = formats_of(part);
  const format& stored = part.gave.o.element_format();
  measured_equation o("cost", "o is as close to the exact o as plain decode, or as a ring in the recorded formats", index);
  ring_cost out;
  for (std::size_t s = 0; s < p.sequence_count(); ++s) {
    const sequence_range here = sequence_at(p, s), there = sequence_at(whole.given, s);
    for (std::size_t h = 0; h < heads; ++h) {
      const head_numbers<wide> in(p, s, h);
      std::vector<wide> want;
      for (std::size_t t = 0; t < here.tokens; ++t) {
        for (std::size_t j = 0; j < V; ++j)
          want.push_back(exact.o.value[((flat_token(whole.given, there) + t) * heads + h) * V + j]);
      }
      const std::vector<double> got = head_rows(part.gave.o, flat_token(p, here), here.tokens, h);
      const std::vector<float> modelled = ring_run<float>(part, s, h, every, f).o;
      const distance plain = distance_of(head_rows(whole.gave.o, flat_token(whole.given, there), there.tokens, h), want);
      const double floor = plain.size > 0 ? std::max(plain.apart / plain.size, unit_roundoff(stored)) : 0;
      o.add(s, h, std::nullopt, got, want, modelled, stored, std::isfinite(floor) ? floor : 0);
      const double limit = most_of_head * std::max(distance_of(modelled, want).apart, floor * plain.size);
      if (here.tokens > every && distance_of(outputs_without_flushes(in, every), want).apart > limit)
        out.shows_lost_flushes = true;
    }
  }
  out.o = std::move(o).done();
  return out;
}

}  // namespace

std::vector<question_to_judge> compare_flushes(const recorded_run& whole, std::span<const recorded_run> parts,
                                               invariant_report& out) {
  if (path_of(whole.gave) == path_kind::chunk || whole.exchanged.flush_every)
    throw format_error(whole.result_path +
                       (whole.exchanged.flush_every ? ": metadata key flush_every is set" : ": the path is chunk") +
                       "; for invariant flush record the whole as plain decode: path recurrent, and no flush_every");
  out.bits = comparisons_of(whole);
  out.bits.resize(2);
  std::vector<question_to_judge> asked{{"the whole", 0, true, whole}};
  for (std::size_t i = 0; i < parts.size(); ++i) {
    const recorded_run& part = parts[i];
    require_same_question(whole, part);
    require_sequences(whole, part);
    if (!part.exchanged.flush_every)
      throw format_error(part.result_path +
                         ": metadata key flush_every is absent; state how many tokens lie between two flushes of the ring");
    std::vector<bit_comparison> own = comparisons_of(whole);
    for (std::size_t s = 0; s < whole.given.sequence_count(); ++s) {
      const sequence_range w = sequence_at(whole.given, s), p = sequence_at(part.given, s);
      if (w.tokens != p.tokens)
        throw shape_error(part.problem_path + ": sequence " + std::to_string(s) + " has " + std::to_string(p.tokens) +
                          " tokens here, but " + std::to_string(w.tokens) + " in " + whole.problem_path +
                          "; flush compares results of one problem: run both on the same problem file");
      require_same_state(whole, s, part, s);
      require_same_tokens(whole, flat_token(whole.given, w), part, flat_token(part.given, p), w.tokens);
      compare_sequence(out.bits, whole, s, part, s, i);
      compare_sequence(own, whole, s, part, s, i);
    }
    if (*part.exchanged.flush_every == 1) {
      for (std::size_t c = 0; c < 2; ++c) {
        if (own[c].other_format)
          throw format_error(part.result_path + ": " + own[c].tensor +
                             " has another format than in the whole; a ring of one token is compared bit for bit: record both in "
                             "the same format");
        if (!own[c].first || out.judged == verdict::refuted) continue;
        out.judged = verdict::refuted;
        out.reason = "with a ring of one token a kernel must give the bits of plain decode, but " + own[c].tensor +
                     " differs at " + describe(own[c]);
      }
    }
    if (formats_of(part).lossless) asked.push_back({part_name(i), 1, true, part});
  }
  return asked;
}

void judge_flushes(const recorded_run& whole, std::span<const recorded_run> parts, const invariant_options& options,
                   invariant_report& out) {
  question ask;
  ask.max_bits = options.check.judge.max_bits;
  ask.threads = options.check.threads;
  ask.stop = options.check.stop;
  const reference exact = solve(whole.given, ask);
  if (exact.stopped) {
    out.stopped = true;
    out.judged = combine(out.judged, verdict::undecided);
    if (out.judged != verdict::undecided) return;
    out.reason = "the check was stopped before the exact outputs were computed";
    out.remedy = "allow more time: give a larger --max-seconds, or leave it out";
    return;
  }
  bool telling = false;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    ring_cost cost = cost_of(whole, parts[i], i, exact);
    telling = telling || cost.shows_lost_flushes;
    out.equations.push_back(std::move(cost.o));
    ring_equations(parts[i], i).measure(out.equations);
  }
  join_equations(out);
  if (out.judged != verdict::holds || telling) return;
  out.judged = verdict::vacuous;
  out.reason =
      "nothing is wrong, but a kernel that lost every flush would give the same outputs on these inputs: no sequence is "
      "longer than a ring, or the gates forget a state within one ring";
  out.remedy = "record sequences longer than the ring, with gates that decay more slowly (gen --for flush makes such problems)";
}

}  // namespace deltaproof::invariant_detail
