// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
//
// Faults of gates: which decay is read, how it is summed, where it enters.
#include <limits>

#include "emulate/faults.hpp"

namespace deltaproof::emulation_detail {
namespace {

/// log2 decays of rows [0, end) in one channel, summed.
template <class Real>
double decay_before(const site<Real>& s, std::size_t end, std::size_t channel) {
  double sum = 0;
  const std::size_t n = s.all.steps_per_token;
  for (std::size_t r = 0; r < end; r += n) sum += static_cast<double>(s.all.g(r / n, channel));
  return sum * std::numbers::log2e;
}

constexpr condition wide_gate = gated & condition{"gates in a format more precise than bf16", [](const problem& p) {
                                                    return p.g->element_format().precision > bf16.precision;
                                                  }};

/// Columns move one to the left, the first becomes the last.
template <class Real>
void rotate_columns(matrix<Real>& m) {
  for (std::size_t i = 0; i < m.rows(); ++i)
    std::rotate(m.row(i).begin(), m.row(i).begin() + (m.cols() > 1 ? 1 : 0), m.row(i).end());
}

fault_table read_gates() {
  return {
      {"gate-of-next-token", "g_cumsum_log2", "each token decays by the gate of the next token, the last not at all", paths::both,
       hooks(gated, {after(step_kind::load,
                           [](auto& s) {
                             if (s.all.g.empty()) return;
                             std::copy(s.all.g.entries().begin() + static_cast<std::ptrdiff_t>(s.all.g.cols()),
                                       s.all.g.entries().end(), s.all.g.data());
                             zero_row(s.all.g, s.all.g.rows() - 1);
                           })})},
      {"gate-of-previous-token", "g_cumsum_log2", "each token decays by the gate of the previous token, the first not at all",
       paths::both,
       hooks(gated, {after(step_kind::load,
                           [](auto& s) {
                             if (s.all.g.empty()) return;
                             const auto all = s.all.g.entries();
                             std::copy_backward(all.begin(), all.end() - static_cast<std::ptrdiff_t>(s.all.g.cols()), all.end());
                             zero_row(s.all.g, 0);
                           })})},
      {"gate-natural-for-log2", "g_cumsum_log2", "exp2 is taken of natural logarithms: the factor 1/ln 2 is missing", paths::both,
       hooks(gated, {after(step_kind::load,
                           []<class Real>(site<Real>& s) { scale_all(s.all.g, static_cast<Real>(std::numbers::ln2)); })})},
      {"gate-log2-twice", "g_cumsum_log2", "the cumulative sum of gates is multiplied by 1/ln 2 twice", paths::both,
       hooks(gated, {after(step_kind::load,
                           []<class Real>(site<Real>& s) { scale_all(s.all.g, static_cast<Real>(std::numbers::log2e)); })})},
      {"gate-sign", "g_cumsum_log2", "the state grows by exp(-g) where it should decay; strong decays make it infinite",
       paths::both, hooks(gated, {after(step_kind::load, []<class Real>(site<Real>& s) { scale_all(s.all.g, Real(-1)); })})},
      {"gate-rounded-to-bf16", "g_cumsum_log2", "the log decay g is rounded to bf16 before it is used", paths::both,
       hooks(wide_gate, {after(step_kind::load, [](auto& s) { narrow_all(s.all.g, {bf16, false}); })})},
      {"gate-rounded-to-fp16", "g_cumsum_log2", "the log decay g is rounded to fp16 before it is used", paths::both,
       hooks(wide_gate, {after(step_kind::load, [](auto& s) { narrow_all(s.all.g, {fp16, false}); })})},
      {"gate-clamped", "g_cumsum_log2", "a log decay below -5 is taken as -5", paths::both,
       hooks(gated, {after(step_kind::load,
                           []<class Real>(site<Real>& s) {
                             for (std::size_t i = 0; i < s.all.g.size(); ++i)
                               s.all.g.data()[i] = std::max(s.all.g.data()[i], Real(-5));
                           })})},
      {"gate-of-first-channel", "g_cumsum_log2", "all channels decay by the gate of the first", paths::both,
       hooks(gated_by_channel, {after(step_kind::load,
                                      [](auto& s) {
                                        if (!s.all.channels) return;
                                        for (std::size_t t = 0; t < s.all.g.rows(); ++t)
                                          std::fill(s.all.g.row(t).begin(), s.all.g.row(t).end(), s.all.g(t, 0));
                                      })})},
  };
}

fault_table summed_gates() {
  return {
      {"gate-cumsum-exclusive", "g_cumsum_log2", "the cumulative sum of gates leaves out the row's own gate", paths::chunk,
       hooks(gated, {after(step_kind::gate,
                           [](auto& s) {
                             const std::size_t n = s.all.steps_per_token;
                             cumulate(
                                 s,
                                 [&](std::size_t row, std::size_t ch) {
                                   return row % n == 0 ? static_cast<double>(s.all.g(row / n, ch)) : 0;
                                 },
                                 true);
                           })})},
      {"gate-cumsum-not-restarted", "g_cumsum_log2", "the cumulative sum of gates does not restart at each chunk", paths::chunk,
       hooks(gated, {after(step_kind::gate,
                           []<class Real>(site<Real>& s) {
                             auto& c = s.now;
                             for (std::size_t ch = 0; ch < c.G.cols(); ++ch) {
                               const auto own = static_cast<Real>(decay_before(s, c.first, ch)),
                                          spans = static_cast<Real>(decay_before(s, c.span_first, ch));
                               for (std::size_t r = 0; r < c.G.rows(); ++r) c.G(r, ch) += own;
                               for (std::size_t r = 0; r < c.span_G.rows(); ++r) c.span_G(r, ch) += spans;
                             }
                           })})},
      {"gate-of-first-row-lost", "g_cumsum_log2", "the decay at the first row of each chunk is lost", paths::chunk,
       hooks(gated, {after(step_kind::gate,
                           [](auto& s) {
                             const std::size_t n = s.all.steps_per_token, C = s.now.full_rows;
                             cumulate(s, [&](std::size_t row, std::size_t ch) {
                               return row % n == 0 && row % C != 0 ? static_cast<double>(s.all.g(row / n, ch)) : 0;
                             });
                           })})},
      {"gate-cumsum-in-bf16", "g_cumsum_log2", "the cumulative sum of gates is rounded to bf16 at each row", paths::chunk,
       arithmetic(gated, [](plan_variant& v, const head_input&) { v.cumsum = bf16; })},
      {"gate-at-every-step", "g_cumsum_log2", "the decay of a token acts at each of its steps, not once", paths::chunk,
       hooks(gated_several_steps, {after(step_kind::gate,
                                         [](auto& s) {
                                           const std::size_t n = s.all.steps_per_token;
                                           cumulate(s, [&](std::size_t row, std::size_t ch) {
                                             return static_cast<double>(s.all.g(row / n, ch));
                                           });
                                         })})},
      {"gate-at-last-step", "g_cumsum_log2",
       "where a token has several steps, its decay acts before the last of them, not before the first", paths::chunk,
       hooks(gated_several_steps, {after(step_kind::gate,
                                         [](auto& s) {
                                           const std::size_t n = s.all.steps_per_token;
                                           cumulate(s, [&](std::size_t row, std::size_t ch) {
                                             return row % n == n - 1 ? static_cast<double>(s.all.g(row / n, ch)) : 0;
                                           });
                                         })})},
      {"gate-cumsum-clipped", "g_cumsum_log2",
       "the cumulative sum of gates is clipped at -20: rows whose sums are below -20 have no decay between them", paths::chunk,
       hooks(gated, {after(step_kind::gate,
                           []<class Real>(site<Real>& s) {
                             constexpr auto least = static_cast<Real>(-20 * std::numbers::log2e);
                             for (matrix<Real>* sums : {&s.now.G, &s.now.span_G}) {
                               for (Real& x : sums->entries()) x = std::max(x, least);
                             }
                           })})},
  };
}

fault_table gates_in_products() {
  return {
      {"gate-missing-in-A", "A", "A is formed without decay", paths::chunk,
       hooks(gated, {before(step_kind::A, [](auto& s) { zero_all(s.now.G); })})},
      {"gate-sign-in-A", "A", "A is formed with e^{G_j - G_i}; strong decays make it infinite", paths::chunk,
       hooks(gated, {before(step_kind::A, []<class Real>(site<Real>& s) { scale_all(s.now.G, Real(-1)); })})},
      {"gate-factored", "A", "e^{G_i - G_j} is formed as e^{G_i} e^{-G_j}; strong decays make it infinite or NaN", paths::chunk,
       arithmetic(gated, [](plan_variant& v, const head_input&) { v.form = gate_form::factored; })},
      {"gate-zero-masked", "A",
       "e^{G_i - G_j} is set to 0 where G_i = G_j: A_ij is 0 where rows i and j have no decay between them", paths::chunk,
       hooks(gated, {after(step_kind::A,
                           [](auto& s) {
                             const auto& G = s.now.G;
                             for (std::size_t r = 0; r < G.rows() && G.cols() > 0; ++r) {
                               for (std::size_t j = 0; j < r; ++j) {
                                 if (std::equal(G.row(r).begin(), G.row(r).end(), G.row(j).begin())) s.now.A(r, j) = 0;
                               }
                             }
                           })})},
      {"gate-after-inverse-in-w", "w", "w is e^G (Ai b k): the decay multiplies the rows of the product, not those of k",
       paths::chunk,
       hooks(gated, {before(step_kind::w, [](auto& s) { zero_all(s.now.G); }),
                     after(step_kind::w,
                           [](auto& s) {
                             auto& c = s.now;
                             for (std::size_t r = 0; r < c.rows && c.G.cols() > 0; ++r) {
                               for (std::size_t ch = 0; ch < c.w.cols(); ++ch)
                                 c.w(r, ch) *= std::exp2(c.G(r, c.G.cols() > 1 ? ch : 0));
                             }
                             narrow_all(c.w, {s.plan.w.store, false});
                           })})},
      {"gate-missing-in-w", "w", "w is formed of b k without e^G", paths::chunk,
       hooks(gated, {before(step_kind::w, [](auto& s) { zero_all(s.now.G); })})},
      {"gate-of-chunk-end-in-w", "w", "w is formed with the decay of the whole chunk, e^(G_C), at each row", paths::chunk,
       hooks(gated, {before(step_kind::w,
                            [](auto& s) {
                              auto& G = s.now.G;
                              for (std::size_t r = 0; r + 1 < G.rows(); ++r)
                                std::copy(G.row(G.rows() - 1).begin(), G.row(G.rows() - 1).end(), G.row(r).begin());
                            })})},
      {"gate-also-in-u", "u", "u is formed of b e^G v; e^G belongs to w alone", paths::chunk,
       hooks(gated, {before(step_kind::u,
                            [](auto& s) {
                              for (std::size_t r = 0; r < s.now.v.rows() && s.now.G.cols() > 0; ++r) {
                                for (auto& x : s.now.v.row(r)) x *= std::exp2(s.now.G(r, 0));
                              }
                            })})},
      {"gate-missing-in-Aqk", "Aqk", "Aqk is formed without the decay e^{G_i - G_j}", paths::chunk,
       hooks(gated, {before(step_kind::Aqk, [](auto& s) { zero_all(s.now.span_G); })})},
      {"gate-in-masked-lanes", "o",
       "masked entries of Aqk are multiplied by 0, not set to 0: they are NaN where e^{G_i - G_j} is infinite", paths::chunk,
       hooks(gated, {before(step_kind::output,
                            []<class Real>(site<Real>& s) {
                              auto& c = s.now;
                              for (std::size_t t = 0; t < c.Aqk.rows(); ++t) {
                                for (std::size_t j = c.last_row[t] + 1; j < c.Aqk.cols(); ++j) {
                                  Real most = 0;
                                  for (std::size_t ch = 0; ch < c.span_G.cols(); ++ch)
                                    most = std::max(most, c.span_G(c.last_row[t], ch) - c.span_G(j, ch));
                                  c.Aqk(t, j) = static_cast<Real>(std::exp2(static_cast<float>(most))) * Real(0);
                                }
                              }
                            })})},
  };
}

fault_table gates_on_states() {
  return {
      {"gate-missing-in-read", "o", "the state is read without its decay since the chunk began", paths::chunk,
       hooks(gated, {before(step_kind::output, [](auto& s) { zero_all(s.now.span_G); })})},
      {"gate-missing-on-state", "h", "the state does not decay over a chunk", paths::chunk,
       hooks(gated, {before(step_kind::update,
                            [](auto& s) {
                              decay_writes(s.now);
                              zero_all(s.now.G);
                            })})},
      {"gate-twice-on-state", "h", "the state decays twice over each chunk", paths::chunk,
       hooks(gated, {before(step_kind::update, [](auto& s) { decay_state(s.now); })})},
      {"gate-missing-on-writes", "h", "what a chunk writes does not decay to the chunk's end", paths::chunk,
       hooks(gated, {before(step_kind::update,
                            [](auto& s) {
                              decay_state(s.now);
                              zero_all(s.now.G);
                            })})},
      {"gate-after-the-write", "h", "state and writes both decay over the whole chunk, as if decay came after the write",
       paths::chunk,
       hooks(gated, {before(step_kind::update, [](auto& s) { zero_all(s.now.G); }),
                     after(step_kind::update, [](auto& s) { decay_state(s.now); })})},
      {"gate-end-off-by-one", "h", "the decay to a chunk's end is read from the row before its last row", paths::chunk,
       hooks(gated, {before(step_kind::update,
                            [](auto& s) {
                              if (s.now.rows < 2 || s.now.G.cols() == 0) return;
                              const std::size_t row = s.now.rows - 2;
                              append_row(s.now, [&](std::size_t ch) { return s.now.G(row, ch); });
                            })})},
      {"gate-end-of-padding", "final_state",
       "a partial last chunk reads its last G at row C - 1, where the padding holds 0; strong decays make the state infinite",
       paths::chunk,
       hooks(gated, {before(step_kind::update,
                            []<class Real>(site<Real>& s) {
                              if (s.now.rows < s.now.full_rows && s.now.G.cols() > 0)
                                append_row(s.now, [](std::size_t) { return Real(0); });
                            })})},
      {"gate-of-neighbouring-column", "h", "in the update of the state, S and k decay by the gate of the next channel",
       paths::both,
       hooks(gated_by_channel, {before(step_kind::update, [](auto& s) { rotate_columns(s.now.G); }),
                                after(step_kind::load,
                                      [](auto& s) {
                                        if (s.plan.path == path_kind::recurrent) rotate_columns(s.all.g);
                                      })})},
      {"gate-on-columns-of-state", "h", "the gate of a channel decays a column of the state, not a row", paths::both,
       hooks(gated_by_channel, {before(step_kind::update,
                                       [](auto& s) {
                                         if (!s.all.channels) return;
                                         auto& c = s.now;
                                         decay_writes(c);
                                         for (std::size_t i = 0; i < c.state.rows(); ++i) {
                                           for (std::size_t j = 0; j < c.state.cols(); ++j)
                                             c.state(i, j) *= std::exp2(c.G(c.rows - 1, j % c.G.cols()));
                                         }
                                         zero_all(c.G);
                                       }),
                                before(step_kind::token,
                                       [](auto& s) {
                                         if (!s.all.channels) return;
                                         auto& state = s.now.state;
                                         for (std::size_t i = 0; i < state.rows(); ++i) {
                                           for (std::size_t j = 0; j < state.cols(); ++j)
                                             state(i, j) *= std::exp(s.all.g(s.token, j % s.all.g.cols()));
                                         }
                                         zero_row(s.all.g, s.token);
                                       })})},
      {"exp2-of-few-bits", "A", "exponentials of gates are accurate to 10 bits only", paths::both,
       arithmetic(gated, [](plan_variant& v, const head_input&) { v.exp2_ulps = measured_by_fp64(v) ? 0x1p13 : 0x1p42; })},
  };
}

}  // namespace

fault_table gate_faults() { return joined({read_gates, summed_gates, gates_in_products, gates_on_states}); }

}  // namespace deltaproof::emulation_detail
