// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
//
// Faults of the read-out: the masked product q k^T, the two parts of o, where o is written.
#include "emulate/faults.hpp"

namespace deltaproof::emulation_detail {
namespace {

/// q_t . k_j with the decay between them, where the mask would have it 0.
template <class Real>
Real masked_entry(const site<Real>& s, std::size_t t, std::size_t j) {
  const auto& c = s.now;
  Real sum = 0;
  for (std::size_t ch = 0; ch < c.q.cols(); ++ch) {
    const std::size_t g = c.span_G.cols() > 1 ? ch : 0;
    const Real decay = c.span_G.cols() > 0 ? std::exp2(c.span_G(c.last_row[t], g) - c.span_G(j, g)) : Real(1);
    sum += c.q(t, ch) * c.span_k(j, ch) * decay;
  }
  return s.all.channels && s.all.gated && s.plan.o.scale == read_scale::o ? sum * s.all.scale : sum;
}

template <class Real>
void unmask(site<Real>& s, std::size_t columns) {
  auto& c = s.now;
  for (std::size_t t = 0; t < c.Aqk.rows(); ++t) {
    const std::size_t end = columns == 0 ? c.Aqk.cols() : std::min(c.Aqk.cols(), c.last_row[t] + 1 + columns);
    for (std::size_t j = c.last_row[t] + 1; j < end; ++j) c.Aqk(t, j) = masked_entry(s, t, j);
  }
}

constexpr condition resets = gated & condition{"a gate of -inf", [](const problem& p) {
                                                 const std::vector<double> g = p.g->to_doubles();
                                                 return std::any_of(g.begin(), g.end(), [](double x) { return std::isinf(x); });
                                               }};

}  // namespace

fault_table output_faults() {
  return {
      {"Aqk-strict", "Aqk", "the mask of q k^T is i > j, not i >= j: no token reads what its own last step writes", paths::chunk,
       hooks(always, {after(step_kind::Aqk,
                            [](auto& s) {
                              for (std::size_t t = 0; t < s.now.Aqk.rows(); ++t) s.now.Aqk(t, s.now.last_row[t]) = 0;
                            })})},
      {"Aqk-first-column-lost", "Aqk", "no row reads what the first row of its chunk wrote", paths::chunk,
       hooks(always, {after(step_kind::Aqk,
                            [](auto& s) {
                              for (std::size_t t = 0; t < s.now.Aqk.rows(); ++t) s.now.Aqk(t, 0) = 0;
                            })})},
      {"Aqk-times-beta", "Aqk", "entry (i, j) of q k^T is multiplied by beta_j, which v_new already contains", paths::chunk,
       hooks(always, {after(step_kind::Aqk,
                            [](auto& s) {
                              for (std::size_t t = 0; t < s.now.Aqk.rows(); ++t) {
                                for (std::size_t j = 0; j < s.now.Aqk.cols(); ++j)
                                  s.now.Aqk(t, j) *= s.all.step[s.now.span_first + j];
                              }
                              narrow_all(s.now.Aqk, s.plan.o.operand);
                            })})},
      {"Aqk-of-first-step", "Aqk", "o is read after the first of a token's steps", paths::chunk,
       hooks(several_steps, {before(step_kind::Aqk,
                                    [](auto& s) {
                                      for (auto& row : s.now.last_row) row -= s.all.steps_per_token - 1;
                                    }),
                             before(step_kind::output,
                                    [](auto& s) {
                                      for (auto& row : s.now.last_row) row -= s.all.steps_per_token - 1;
                                    })})},
      {"o-mask-off-by-one", "o", "the mask of q k^T is i >= j - 1: a token reads what the next row writes", paths::chunk,
       hooks(always, {before(step_kind::output, [](auto& s) { unmask(s, 1); })})},
      {"o-unmasked", "o", "q k^T is not masked: a token reads the rest of its chunk; strong decays make o infinite", paths::chunk,
       hooks(always, {before(step_kind::output, [](auto& s) { unmask(s, 0); })})},
      {"o-misses-state", "o", "o has no part from the state before the chunk", paths::chunk,
       hooks(always, {before(step_kind::output, [](auto& s) { zero_all(s.now.span_h); })})},
      {"o-misses-chunk", "o", "o has no part from inside the chunk", paths::chunk,
       hooks(always, {before(step_kind::output, [](auto& s) { zero_all(s.now.Aqk); })})},
      {"o-uses-u", "o", "o is formed with u in place of v_new", paths::chunk,
       hooks(always, {before(step_kind::output,
                             [](auto& s) {
                               auto& c = s.now;
                               std::copy(c.u.entries().begin(), c.u.entries().end(),
                                         c.span_v_new.data() + (c.span_v_new.size() - c.u.size()));
                             })})},
      {"o-state-unscaled", "o", "only the part of o from inside the chunk is scaled, not that from the state", paths::chunk,
       hooks(scaled, {before(step_kind::output,
                             []<class Real>(site<Real>& s) {
                               if (s.all.scale != 0) scale_all(s.now.q, Real(1) / s.all.scale);
                             })})},
      {"o-chunk-unscaled", "o", "only the part of o from the state is scaled, not that from inside the chunk", paths::chunk,
       hooks(scaled, {before(step_kind::output,
                             []<class Real>(site<Real>& s) {
                               if (s.all.scale != 0) scale_all(s.now.Aqk, Real(1) / s.all.scale);
                             })})},
      {"o-partial-chunk-dropped", "o", "the tokens of a partial last chunk have outputs of 0", paths::chunk,
       hooks(always, {after(step_kind::output,
                            [](auto& s) {
                              const auto& c = s.now;
                              if (c.rows == c.full_rows) return;
                              for (std::size_t t = 0; t < c.o.rows(); ++t) {
                                if (c.span_first + c.last_row[t] >= c.first) zero_row(s.now.o, t);
                              }
                            })})},
      {"o-written-one-row-late", "o", "outputs are written one token late, the first one twice", paths::both,
       hooks(always, {after(step_kind::finish,
                            [](auto& s) {
                              if (s.o.empty()) return;
                              const auto all = s.o.entries();
                              std::copy_backward(all.begin(), all.end() - static_cast<std::ptrdiff_t>(s.o.cols()), all.end());
                            })})},
      {"nan-to-num", "o", "NaN in o and in the final state, which a gate of -inf can cause, is replaced by 0", paths::chunk,
       hooks(resets, {after(step_kind::finish,
                            []<class Real>(site<Real>& s) {
                              for (matrix<Real>* m : {&s.o, &s.now.state}) {
                                for (Real& x : m->entries()) x = std::isnan(x) ? Real(0) : x;
                              }
                            })})},
  };
}

}  // namespace deltaproof::emulation_detail
