// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
//
// Faults of kernels that take one token after the other, decode kernels among them: the order of decay, predict, write and
// read, and what is rounded between them. The wrong token is made here from the state before it; its sums are in sequence.
#include "emulate/faults.hpp"

namespace deltaproof::emulation_detail {
namespace {

/// One token in the making. Wrong orders are written with these.
template <class Real>
struct wrong_token {
  site<Real>& s;
  std::size_t t = s.token;
  std::size_t n = s.all.steps_per_token;
  matrix<Real> state = s.before->state;

  void decay() {
    for (std::size_t i = 0; i < state.rows() && s.all.gated; ++i) {
      const Real e = std::exp(s.all.g(t, s.all.channels ? i : 0));
      for (Real& x : state.row(i)) x *= e;
    }
  }
  std::vector<Real> predicted(const matrix<Real>& from, std::size_t row) const {
    std::vector<Real> out(from.cols(), Real(0));
    for (std::size_t i = 0; i < from.rows(); ++i) {
      for (std::size_t j = 0; j < from.cols(); ++j) out[j] += s.all.k(row, i) * from(i, j);
    }
    return out;
  }
  void write(std::size_t row, const std::vector<Real>& change) {
    for (std::size_t i = 0; i < state.rows(); ++i) {
      for (std::size_t j = 0; j < state.cols(); ++j) state(i, j) += s.all.k(row, i) * change[j];
    }
  }
  std::vector<Real> correction(const matrix<Real>& from, std::size_t row) const {
    std::vector<Real> change = predicted(from, row);
    for (std::size_t j = 0; j < change.size(); ++j) change[j] = s.all.step[row] * (s.all.v(row, j) - change[j]);
    return change;
  }
  void step(std::size_t row) { write(row, correction(state, row)); }
  void steps() {
    for (std::size_t row = t * n; row < (t + 1) * n; ++row) step(row);
  }
  void read() {
    if (s.plan.state.between_tokens) narrow_all(state, {*s.plan.state.between_tokens, false});
    read_as_is();
  }
  void read_as_is() {
    const auto o = s.o.row(t);
    std::fill(o.begin(), o.end(), Real(0));
    for (std::size_t i = 0; i < state.rows(); ++i) {
      const Real q = s.all.q(t, i) * s.all.scale;
      for (std::size_t j = 0; j < o.size(); ++j) o[j] += q * state(i, j);
    }
  }
};

/// Each token is made again from the state before it, as `body` says.
template <class Body>
fault_code token(condition needs, Body) {
  return hooks(needs, {before(step_kind::token,
                              []<class Real>(site<Real>& s) {
                                if (!s.before) s.before.emplace();
                                s.before->state = s.now.state;
                              }),
                       after(step_kind::token, []<class Real>(site<Real>& s) {
                         wrong_token<Real> made{s};
                         Body{}(made);
                         s.now.state = std::move(made.state);
                       })});
}

fault_table decays_and_reads() {
  return {
      {"token-decays-after-predict", "o", "the prediction is made from the state before its decay", paths::recurrent,
       token(gated,
             [](auto& x) {
               const auto undecayed = x.state;
               x.decay();
               x.write(x.t * x.n, x.correction(undecayed, x.t * x.n));
               for (std::size_t row = x.t * x.n + 1; row < (x.t + 1) * x.n; ++row) x.step(row);
               x.read();
             })},
      {"token-decays-after-write", "o", "the decay comes after the write and before the read-out", paths::recurrent,
       token(gated,
             [](auto& x) {
               x.steps();
               x.decay();
               x.read();
             })},
      {"token-decays-after-read", "o", "the decay comes last: it acts on the next token", paths::recurrent,
       token(gated,
             [](auto& x) {
               x.steps();
               x.read();
               x.decay();
             })},
      {"token-decays-at-every-step", "o", "the decay of a token acts at each of its steps, not once", paths::recurrent,
       token(gated_several_steps,
             [](auto& x) {
               for (std::size_t row = x.t * x.n; row < (x.t + 1) * x.n; ++row) {
                 x.decay();
                 x.step(row);
               }
               x.read();
             })},
      {"token-decays-at-last-step", "o",
       "where a token has several steps, its decay acts before the last of them, not before the first", paths::recurrent,
       token(gated_several_steps,
             [](auto& x) {
               for (std::size_t row = x.t * x.n; row < (x.t + 1) * x.n; ++row) {
                 if (row == (x.t + 1) * x.n - 1) x.decay();
                 x.step(row);
               }
               x.read();
             })},
      {"token-reads-before-write",
       "o",
       "o is read before the token is written",
       paths::recurrent,
       token(always,
             [](auto& x) {
               x.decay();
               x.read_as_is();
               x.steps();
               if (x.s.plan.state.between_tokens) narrow_all(x.state, {*x.s.plan.state.between_tokens, false});
             }),
       {"o"}},
      {"token-reads-after-first-step",
       "o",
       "o is read after the first of a token's steps",
       paths::recurrent,
       token(several_steps,
             [](auto& x) {
               x.decay();
               x.step(x.t * x.n);
               x.read_as_is();
               for (std::size_t row = x.t * x.n + 1; row < (x.t + 1) * x.n; ++row) x.step(row);
               if (x.s.plan.state.between_tokens) narrow_all(x.state, {*x.s.plan.state.between_tokens, false});
             }),
       {"o"}},
  };
}

fault_table predictions_and_writes() {
  return {
      {"token-predicts-nothing", "o", "b v is written: k^T S is not subtracted, as in plain linear attention", paths::recurrent,
       token(always,
             [](auto& x) {
               x.decay();
               for (std::size_t row = x.t * x.n; row < (x.t + 1) * x.n; ++row) {
                 auto change = x.correction(x.state, row);
                 for (std::size_t j = 0; j < change.size(); ++j) change[j] = x.s.all.step[row] * x.s.all.v(row, j);
                 x.write(row, change);
               }
               x.read();
             })},
      {"token-adds-prediction", "o", "b (v + k^T S) is written; the state may become infinite", paths::recurrent,
       token(always,
             [](auto& x) {
               x.decay();
               for (std::size_t row = x.t * x.n; row < (x.t + 1) * x.n; ++row) {
                 auto change = x.predicted(x.state, row);
                 for (std::size_t j = 0; j < change.size(); ++j) change[j] = x.s.all.step[row] * (x.s.all.v(row, j) + change[j]);
                 x.write(row, change);
               }
               x.read();
             })},
      {"token-beta-on-v-only", "o", "b v - k^T S is written: beta does not multiply the prediction", paths::recurrent,
       token(always,
             [](auto& x) {
               x.decay();
               for (std::size_t row = x.t * x.n; row < (x.t + 1) * x.n; ++row) {
                 auto change = x.predicted(x.state, row);
                 for (std::size_t j = 0; j < change.size(); ++j) change[j] = x.s.all.step[row] * x.s.all.v(row, j) - change[j];
                 x.write(row, change);
               }
               x.read();
             })},
      {"token-beta-on-prediction-only", "o", "v - b k^T S is written: beta does not multiply v", paths::recurrent,
       token(always,
             [](auto& x) {
               x.decay();
               for (std::size_t row = x.t * x.n; row < (x.t + 1) * x.n; ++row) {
                 auto change = x.predicted(x.state, row);
                 for (std::size_t j = 0; j < change.size(); ++j) change[j] = x.s.all.v(row, j) - x.s.all.step[row] * change[j];
                 x.write(row, change);
               }
               x.read();
             })},
  };
}

fault_table steps_and_roundings() {
  return {
      {"token-steps-predict-together", "o", "every step of a token predicts from the state before the token's first step",
       paths::recurrent,
       token(several_steps,
             [](auto& x) {
               x.decay();
               const auto start = x.state;
               for (std::size_t row = x.t * x.n; row < (x.t + 1) * x.n; ++row) x.write(row, x.correction(start, row));
               x.read();
             })},
      {"token-cancels-in-x", "o", "v - k^T S is formed in the format of q: k^T S and the difference are rounded to it",
       paths::recurrent,
       token(always,
             [](auto& x) {
               x.decay();
               const narrowing to{x.s.in.x, false};
               for (std::size_t row = x.t * x.n; row < (x.t + 1) * x.n; ++row) {
                 auto change = x.predicted(x.state, row);
                 for (std::size_t j = 0; j < change.size(); ++j) {
                   change[j] = x.s.all.step[row] * narrowed(x.s.all.v(row, j) - narrowed(change[j], to), to);
                 }
                 x.write(row, change);
               }
               x.read();
             })},
      {"token-write-rounded-to-x", "o", "k and b (v - k^T S) are rounded to the format of q before their product is added",
       paths::recurrent,
       token(always,
             [](auto& x) {
               x.decay();
               const narrowing to{x.s.in.x, false};
               for (std::size_t row = x.t * x.n; row < (x.t + 1) * x.n; ++row) {
                 auto change = x.correction(x.state, row);
                 for (auto& c : change) c = narrowed(c, to);
                 x.write(row, change);
               }
               x.read();
             })},
      {"token-decay-rounded-to-bf16", "o", "the factor e^g is rounded to bf16", paths::recurrent,
       token(gated,
             [](auto& x) {
               for (std::size_t i = 0; i < x.state.rows() && x.s.all.gated; ++i) {
                 const auto e = narrowed(std::exp(x.s.all.g(x.t, x.s.all.channels ? i : 0)), {bf16, false});
                 for (auto& y : x.state.row(i)) y *= e;
               }
               x.steps();
               x.read();
             })},
      {"token-state-stored-late", "final_state", "the final state misses the last token", paths::recurrent,
       hooks(always, {before(step_kind::token,
                             [](auto& s) {
                               if (!s.before) s.before.emplace();
                               s.before->state = s.now.state;
                             }),
                      after(step_kind::finish,
                            [](auto& s) {
                              if (s.before) s.now.state = s.before->state;
                            })})},
  };
}

}  // namespace

fault_table recurrent_faults() { return joined({decays_and_reads, predictions_and_writes, steps_and_roundings}); }

}  // namespace deltaproof::emulation_detail
