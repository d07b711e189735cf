// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
//
// Faults of what happens to gradients once their chunks are done: chains, tails, groups of heads, the l2norm.
#include "emulate/backward_faults.hpp"
#include "emulate/step_slopes.hpp"

namespace deltaproof::emulation_detail {

namespace {

constexpr condition tails{"at least one token", [](const problem& p) { return p.tokens() > 0; }};

}  // namespace

fault_table head_gradient_faults() {
  using enum backward_step;
  return {
      {"dh0-of-first-chunk-end", "dinitial_state", "dinitial_state is the cotangent of the state after the first chunk",
       paths::chunk, with_initial_state, after_step(head, [](auto& s) { s.d_initial_state = s.now.dh; })},
      {"dh0-unwritten", "dinitial_state", "dinitial_state is not written: it stays 0", paths::both, with_initial_state,
       after_step(head, [](auto& s) { zero_all(s.d_initial_state); })},
      {"tail-gradients-unwritten",
       "dv",
       "dq, dk, dv and dbeta of the rows of a partial last chunk are not written: they stay 0",
       paths::chunk,
       tails,
       after_step(head,
                  [](auto& s) {
                    const std::size_t n = s.all.steps_per_token, C = s.plan.chunk, rows = s.dk.rows(), first = rows / C * C;
                    for (std::size_t row = first; row < rows; ++row) {
                      zero_row(s.dk, row);
                      zero_row(s.dv, row);
                      s.d_beta[row] = 0;
                      if ((row + 1) % n == 0) zero_row(s.dq, row / n);
                    }
                  }),
       {"dq", "dk", "dv", "dbeta"}},
      {"db-divided",
       "dbeta",
       "dbeta is multiplied by beta, then divided by beta + 1e-10",
       paths::both,
       always,
       backward_arithmetic([](backward_variant& b, const head_input&) { b.dbeta_form = step_gradient::divide; }),
       {"dk", "dbeta"}},
      {"rule-chain-missing", "dbeta", "dbeta is the gradient of the effective step, not of beta", paths::both, derived_step,
       after_step(head, [](auto& s) { s.d_beta = s.d_step; })},
      {"rule-chain-missing-in-dk", "dk_hat", "dk lacks the part through the effective step, which depends on k", paths::both,
       other_rule,
       after_step(head,
                  [](auto& s) {
                    using Real = std::decay_t<decltype(s.all.scale)>;
                    for (std::size_t r = 0; r < s.dk.rows(); ++r) {
                      double norm = 0;
                      for (const auto x : s.all.k.row(r)) norm += static_cast<double>(x) * static_cast<double>(x);
                      const auto by_key = static_cast<Real>(slopes_of_step(s.in, s.in.beta[r], norm).by_key);
                      for (std::size_t m = 0; m < s.dk.cols(); ++m) s.dk(r, m) -= s.d_step[r] * by_key * s.all.k(r, m);
                    }
                  })},
  };
}

fault_table group_gradient_faults() {
  using enum backward_step;
  return {
      {"gva-not-summed", "dq_hat", "dq and dk are those of the first v head that shares q and k, not the sum over all of them",
       paths::both, grouped,
       after_group(group,
                   [](auto& g) {
                     g.dq_hat = g.dq_heads.front();
                     g.dk_hat = g.dk_heads.front();
                   })},
      {"gva-averaged", "dq_hat", "dq and dk are the mean over the v heads that share q and k, not the sum", paths::both, grouped,
       after_group(group,
                   [](auto& g) {
                     using Real = std::decay_t<decltype(g.dq_hat(0, 0))>;
                     scale_all(g.dq_hat, 1 / static_cast<Real>(g.dq_heads.size()));
                     scale_all(g.dk_hat, 1 / static_cast<Real>(g.dk_heads.size()));
                   })},
      {"l2-bwd-skipped", "dq", "dq and dk are the gradients of the normalised rows, not of q and k", paths::both, normalised,
       after_group(norm,
                   [](auto& g) {
                     g.dq = g.dq_hat;
                     g.dk = g.dk_hat;
                   })},
      {"l2-bwd-without-projection", "dq",
       "the l2norm's backward pass does not subtract the part of dq along q, nor that of dk along k", paths::both, normalised,
       after_group(norm,
                   [](auto& g) {
                     const auto unprojected = [&](auto& d, const auto& hat, const matrix<double>& x) {
                       using Real = std::decay_t<decltype(d(0, 0))>;
                       for (std::size_t i = 0; i < d.rows(); ++i) {
                         double squares = g.plan.l2norm_epsilon;
                         for (const double value : x.row(i)) squares += value * value;
                         for (std::size_t m = 0; m < d.cols(); ++m)
                           d(i, m) = hat(i, m) * static_cast<Real>(1 / std::sqrt(squares));
                       }
                     };
                     unprojected(g.dq, g.dq_hat, g.in.q);
                     unprojected(g.dk, g.dk_hat, g.in.k);
                   })},
      {"l2-bwd-swapped", "dq", "the l2norm's backward pass subtracts from dq its part along k, and from dk its part along q",
       paths::both, normalised & one_step, after_group(group, [](auto& g) { std::swap(g.q, g.k); })},
      {"l2-bwd-from-bf16",
       "dq",
       "the normalised q and k are rounded to bf16 before the l2norm's backward pass reads them",
       paths::both,
       normalised,
       {[](backward_variant& b, const head_input&) { b.l2norm_from = norm_source::stored; },
        nullptr,
        {},
        after_group(group,
                    [](auto& g) {
                      narrow_all(g.q, {bf16, false});
                      narrow_all(g.k, {bf16, false});
                    })
            .group_hooks}},
  };
}

}  // namespace deltaproof::emulation_detail
