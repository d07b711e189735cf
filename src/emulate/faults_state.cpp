// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
//
// Faults of the state: what a chunk corrects by it, how it is written and carried, what is left of it at the end.
#include "emulate/faults.hpp"

namespace deltaproof::emulation_detail {
namespace {

/// An update that leaves the state as it is.
template <class Real>
void write_nothing(chunk_state<Real>& c) {
  zero_all(c.k);
  zero_all(c.G);
}

fault_table corrections() {
  return {
      {"h-of-previous-chunk", "h", "a chunk uses the h of the previous chunk for v_new and o", paths::chunk,
       hooks(always, {before(step_kind::v_new,
                             [](auto& s) {
                               if (s.before) s.now.state = s.before->h;
                             })})},
      {"v_new-sign", "v_new", "v_new is u + w h, not u - w h; the state may become infinite", paths::chunk,
       hooks(always, {before(step_kind::v_new, []<class Real>(site<Real>& s) { scale_all(s.now.w, Real(-1)); })})},
      {"v_new-misses-state", "v_new", "v_new is u, not u - w h: the part from the state is not subtracted", paths::chunk,
       hooks(always, {before(step_kind::v_new, [](auto& s) { zero_all(s.now.w); })})},
      {"v_new-cancelled-in-x", "v_new", "u - w h is formed in the format of q: u, w h and the difference are rounded to it",
       paths::chunk,
       hooks(always, {after(step_kind::v_new,
                            []<class Real>(site<Real>& s) {
                              auto& c = s.now;
                              matrix<Real> predicted = c.change;
                              for (std::size_t i = 0; i < predicted.size(); ++i)
                                predicted.data()[i] = c.u.data()[i] - c.change.data()[i];
                              narrow_all(predicted, {s.in.x, false});
                              for (std::size_t i = 0; i < predicted.size(); ++i)
                                c.change.data()[i] = narrowed(c.u.data()[i], {s.in.x, false}) - predicted.data()[i];
                              narrow_all(c.change, {s.in.x, false});
                              c.v_new = c.change;
                              narrow_all(c.v_new, {s.plan.v_new.store, false});
                            })})},
  };
}

fault_table updates() {
  return {
      {"update-uses-u", "h", "the state is updated with u in place of v_new", paths::chunk,
       hooks(always, {before(step_kind::update,
                             [](auto& s) {
                               s.now.change = s.now.u;
                               s.now.v_new = s.now.u;
                             })})},
      {"update-uses-stored-v_new", "h",
       "the state is updated with the stored v_new, which is rounded once more than the plan says", paths::chunk,
       arithmetic(always, [](plan_variant& v, const head_input&) { v.v_new.update = update_source::stored; })},
      {"update-sign", "h", "k v_new is subtracted from the state, not added; the state may become infinite", paths::both,
       hooks(always, {before(step_kind::update, []<class Real>(site<Real>& s) { scale_all(s.now.k, Real(-1)); }),
                      after(step_kind::load,
                            []<class Real>(site<Real>& s) {
                              if (s.plan.path != path_kind::recurrent) return;
                              for (Real& b : s.all.step) b = -b;
                            })})},
      {"update-of-raw-k", "h", "the state is updated with k before its normalisation", paths::chunk,
       hooks(normalised, {before(step_kind::update,
                                 []<class Real>(site<Real>& s) {
                                   if (!s.in.qk_l2norm) return;
                                   for (std::size_t r = 0; r < s.now.rows; ++r) {
                                     const auto given = s.in.k.row(s.now.first + r);
                                     std::transform(given.begin(), given.end(), s.now.k.row(r).begin(),
                                                    [](double x) { return static_cast<Real>(x); });
                                   }
                                 })})},
  };
}

fault_table rows_of_updates() {
  return {
      {"update-misses-first-row", "h", "the first row of each chunk does not update the state", paths::chunk,
       hooks(always, {before(step_kind::update, [](auto& s) { zero_row(s.now.k, 0); })})},
      {"update-misses-last-row", "h", "the last row of each chunk does not update the state", paths::chunk,
       hooks(always, {before(step_kind::update, [](auto& s) { zero_row(s.now.k, s.now.rows - 1); })})},
      {"update-pads-with-last-row", "final_state",
       "a partial last chunk is padded with copies of its last row, and these update the state too", paths::chunk,
       hooks(always, {before(step_kind::update,
                             [](auto& s) {
                               auto& c = s.now;
                               const std::size_t rows = c.rows, pads = c.full_rows - c.rows;
                               for (std::size_t i = 0; i < pads; ++i) {
                                 append_row(c, [&](std::size_t ch) { return c.G(rows - 1, ch); });
                                 std::copy(c.k.row(rows - 1).begin(), c.k.row(rows - 1).end(), c.k.row(c.rows - 1).begin());
                                 std::copy(c.change.row(rows - 1).begin(), c.change.row(rows - 1).end(),
                                           c.change.row(c.rows - 1).begin());
                                 std::copy(c.v_new.row(rows - 1).begin(), c.v_new.row(rows - 1).end(),
                                           c.v_new.row(c.rows - 1).begin());
                               }
                             })})},
      {"update-multiplies-padding", "final_state",
       "a partial last chunk is padded with NaN, and 0 times NaN updates the state with NaN", paths::chunk,
       hooks(always, {after(step_kind::update,
                            [](auto& s) {
                              if (s.now.rows == s.now.full_rows) return;
                              for (std::size_t i = 0; i < s.now.state.size(); ++i) s.now.state.data()[i] *= std::nanf("");
                            })})},
      {"update-skips-last-chunk", "final_state", "the final state misses the last chunk", paths::chunk,
       hooks(always, {before(step_kind::update,
                             [](auto& s) {
                               if (s.now.last) write_nothing(s.now);
                             })})},
      {"update-skips-partial-chunk", "final_state", "the final state misses a partial last chunk", paths::chunk,
       hooks(always, {before(step_kind::update,
                             [](auto& s) {
                               if (s.now.rows < s.now.full_rows) write_nothing(s.now);
                             })})},
      {"carry-lost", "h", "every chunk starts from the initial state, not from the state that the chunk before it left",
       paths::chunk,
       hooks(always, {after(step_kind::update,
                            []<class Real>(site<Real>& s) {
                              if (!s.now.last) s.now.state = as<Real>(s.in.state);
                            })})},
      {"carry-by-rounded-transition", "h",
       "the state is updated as M S + k^T u, with M = e^(G_C) I - k^T w rounded to bf16 and k decayed to the chunk's end",
       paths::chunk,
       hooks(always, {before(step_kind::update,
                             []<class Real>(site<Real>& s) {
                               auto& c = s.now;
                               const std::size_t K = c.k.cols();
                               matrix<Real> carry(K, K, Real(0));
                               for (std::size_t i = 0; i < K; ++i) carry(i, i) = 1;
                               std::swap(carry, c.state);
                               decay_state(c);
                               std::swap(carry, c.state);
                               decay_writes(c);
                               const matrix<Real> written = plain_product(transpose(c.k), c.w);
                               for (std::size_t i = 0; i < carry.size(); ++i) carry.data()[i] -= written.data()[i];
                               narrow_all(carry, {bf16, false});
                               c.state = plain_product(carry, c.state);
                               c.change = c.u;
                               c.v_new = c.u;
                               zero_all(c.G);
                             })})},
  };
}

fault_table ends() {
  return {
      {"layout-final-state-transposed", "final_state",
       "the final state is written as (V, K); if K = V, the shape does not show it", paths::both,
       hooks(oblong, {after(step_kind::finish, [](auto& s) { transpose_layout(s.now.state); })})},
      {"final-state-rounded-to-x", "final_state", "the final state is rounded to the format of q", paths::both,
       hooks(always, {after(step_kind::finish, [](auto& s) { narrow_all(s.now.state, {s.in.x, false}); })})},
      {"final-state-never-written", "final_state", "final_state is the initial state: the state never advances from call to call",
       paths::both,
       hooks(always, {after(step_kind::finish, []<class Real>(site<Real>& s) { s.now.state = as<Real>(s.in.state); })})},
  };
}

}  // namespace

fault_table state_faults() { return joined({corrections, updates, rows_of_updates, ends}); }

}  // namespace deltaproof::emulation_detail
