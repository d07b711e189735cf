// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
//
// Faults of what a backward pass reads from outside, and of the cotangent of the state with what it gives v_new and w.
#include "deltaproof/emulate/emulate_gradients.hpp"
#include "emulate/backward_faults.hpp"

namespace deltaproof::emulation_detail {

fault_table cotangent_faults() {
  return {
      {"do-of-next-head",
       "dv_local",
       "the cotangent do is read from the next head",
       paths::both,
       several_heads_with_do,
       reads_cotangents([](const problem& p, std::size_t sequence, std::size_t head, const plan_variant&, head_cotangents& d) {
         d.d_o = take_cotangents(p, sequence, (head + 1) % p.value_heads()).d_o;
       }),
       {"dq", "dk", "dv", "dbeta", "dg", "dinitial_state"}},
      {"do-late-by-a-token",
       "dv_local",
       "each token reads the do of the token before it, the first reads 0",
       paths::both,
       with_do,
       reads_cotangents([](const problem&, std::size_t, std::size_t, const plan_variant&, head_cotangents& d) {
         for (std::size_t t = d.d_o.rows(); t-- > 1;)
           std::copy(d.d_o.row(t - 1).begin(), d.d_o.row(t - 1).end(), d.d_o.row(t).begin());
         if (d.d_o.rows() > 0) zero_row(d.d_o, 0);
       }),
       {"dq", "dk", "dv", "dbeta", "dg", "dinitial_state"}},
      {"dht-ignored", "dh", "dfinal_state is not read", paths::both, with_dfinal_state,
       after_step(backward_step::start, [](auto& s) { zero_all(s.now.d_state); })},
      {"dht-transposed", "dh", "dfinal_state is read as [V, K]", paths::both, with_dfinal_state,
       after_step(backward_step::start, [](auto& s) { transpose_layout(s.now.d_state); })},
      {"dht-of-first-sequence", "dh", "every sequence reads the dfinal_state of the first", paths::both,
       several_with_dfinal_state,
       reads_cotangents([](const problem& p, std::size_t, std::size_t head, const plan_variant&, head_cotangents& d) {
         d.d_final_state = take_cotangents(p, 0, head).d_final_state;
       })},
      {"varlen-dstate-leak", "dh", "a sequence adds the dfinal_state of the next sequence to its own", paths::both,
       several_with_dfinal_state,
       reads_cotangents([](const problem& p, std::size_t sequence, std::size_t head, const plan_variant&, head_cotangents& d) {
         if (sequence + 1 >= p.sequence_count()) return;
         const matrix<double> next = take_cotangents(p, sequence + 1, head).d_final_state;
         for (std::size_t i = 0; i < next.size(); ++i) d.d_final_state.data()[i] += next.data()[i];
       })},
  };
}

fault_table state_gradient_faults() {
  using enum backward_step;
  return {
      {"dv-local-unscaled", "dv_local", "dv_local is formed from q k^T without the scale", paths::chunk, scaled_do,
       after_step(dv_local, [](auto& s) { scale_all(s.now.dv_local, 1 / s.all.scale); })},
      {"dv-local-strict", "dv_local", "dv_local is formed without the diagonal of q k^T, by which a token reads its own write",
       paths::chunk, with_do,
       after_step(dv_local,
                  [](auto& s) {
                    auto& c = s.now;
                    for (std::size_t r = 0; r < c.rows; ++r) {
                      for (std::size_t j = 0; j < c.dv_local.cols(); ++j) c.dv_local(r, j) -= c.weights(r, r) * c.d_o(r, j);
                    }
                    narrow_all(c.dv_local, {s.declared.dv_local, false});
                  })},
      {"dh-undecayed", "dh", "the cotangent of the state is carried back over a chunk without the chunk's decay", paths::chunk,
       gated,
       before_step(state,
                   [](auto& s) {
                     auto& c = s.now;
                     for (std::size_t i = 0; i < c.d_state.rows() && c.G.cols() > 0; ++i) {
                       const auto grown = std::exp2(-c.G(c.rows - 1, c.G.cols() > 1 ? i : 0));
                       for (auto& x : c.d_state.row(i)) x *= std::isfinite(grown) ? grown : 1;
                     }
                   })},
      {"q-ungated-in-dh", "dh", "q enters the cotangent of the state without its decay e^G", paths::chunk, gated_do,
       before_step(state, [](auto& s) { forget_gates(s.now); })},
      {"scale-missing-in-dh", "dh", "(q e^G)^T do is added to the cotangent of the state without the scale", paths::chunk,
       scaled_do, before_step(state, [](auto& s) { scale_all(s.now.q, 1 / s.all.scale); })},
      {"dv2-not-used-for-dh", "dh", "w^T dv_local is subtracted from the cotangent of the state, not w^T dv2", paths::chunk,
       always, before_step(state, [](auto& s) { s.now.d_change = s.now.dv_local; })},
      {"w-added-in-dh", "dh", "w^T dv2 is added to the cotangent of the state, not subtracted", paths::chunk, always,
       before_step(state, [](auto& s) { scale_all(s.now.w, decltype(s.all.scale)(-1)); })},
      {"dh-late-by-a-chunk", "dh", "dh holds the cotangent of the state at the end of the next chunk", paths::chunk, always,
       before_step(dv2,
                   [](auto& s) {
                     if (s.after) s.now.d_state = s.after->dh;
                   })},
      {"dv2-undecayed", "dv2", "the part of dv2 from the cotangent of the state lacks the decay to the end of the chunk",
       paths::chunk, gated, before_step(dv2, [](auto& s) { zero_all(s.now.G); })},
      {"dv2-without-local", "dv2", "dv_local is not added to dv2", paths::chunk, with_do,
       before_step(dv2, [](auto& s) { zero_all(s.now.dv_local); })},
      {"dw-sign", "dw", "dw has the wrong sign", paths::chunk, always,
       after_step(dw, [](auto& s) { scale_all(s.now.dw, decltype(s.all.scale)(-1)); })},
      {"dw-from-local", "dw", "dw is made of dv_local, not of dv2", paths::chunk, always,
       before_step(dw, [](auto& s) { s.now.dv2 = s.now.dv_local; })},
      {"h-late-by-a-chunk",
       "dw",
       "the backward pass of a chunk reads the state after the chunk, not the state before it",
       paths::chunk,
       always,
       after_step(chunk,
                  [](auto& s) {
                    if (s.after) s.now.h = s.after->h;
                  }),
       {"dq", "dk", "dbeta", "dg"}},
  };
}

namespace {

/// dS gains `factor` times q of token `row` times do of the token that is passed.
template <class Site>
void read_again(Site& s, std::size_t row, decltype(s.all.scale) factor) {
  auto& d = s.now.d_state;
  for (std::size_t i = 0; i < d.rows(); ++i) {
    for (std::size_t j = 0; j < d.cols(); ++j) d(i, j) += factor * s.all.q(row, i) * s.d_o(s.token, j);
  }
}

}  // namespace

// Of a backward pass that goes token by token.
fault_table token_gradient_faults() {
  using enum backward_step;
  constexpr auto path = paths::recurrent;
  return {
      {"token-scale-missing",
       "dv",
       "q do^T of a token is added to the cotangent of the state without the scale",
       path,
       scaled_do,
       before_step(token, [](auto& s) { read_again(s, s.token, 1 - s.all.scale); }),
       {"dk", "dv", "dbeta", "dg", "dinitial_state"}},
      {"token-reads-next-q",
       "dv",
       "q do^T is added to the cotangent of the state with do of the token, but q of the next token",
       path,
       with_do,
       before_step(token,
                   [](auto& s) {
                     if (s.token + 1 >= s.all.q.rows()) return;
                     read_again(s, s.token, -s.all.scale);
                     read_again(s, s.token + 1, s.all.scale);
                   }),
       {"dk", "dv", "dbeta", "dg", "dinitial_state"}},
      {"token-read-after-step",
       "dv",
       "q do^T of a token is added to the cotangent of the state too late: after the token's backward step, not before it",
       path,
       with_do,
       {nullptr,
        nullptr,
        {{token, true, make_backward_hook([](auto& s) { read_again(s, s.token, -s.all.scale); })},
         {token, false, make_backward_hook([](auto& s) { read_again(s, s.token, s.all.scale); })}},
        {}},
       {"dk", "dv", "dbeta", "dg", "dinitial_state"}},
      {"token-undecayed",
       "dv",
       "the cotangent of the state is carried back over a token without the token's decay",
       path,
       gated,
       after_step(token,
                  [](auto& s) {
                    auto& d = s.now.d_state;
                    for (std::size_t i = 0; i < d.rows(); ++i) {
                      const auto grown = std::exp(-s.all.g(s.token, s.all.channels ? i : 0));
                      for (auto& x : d.row(i)) x *= std::isfinite(grown) ? grown : 1;
                    }
                  }),
       {"dk", "dv", "dbeta", "dg", "dinitial_state"}},
      {"dh0-of-second-token",
       "dinitial_state",
       "dinitial_state lacks the backward step through the first token",
       path,
       with_initial_state,
       {nullptr,
        nullptr,
        {{token, true, make_backward_hook([](auto& s) {
            if (s.token == 0) s.state = s.now.d_state;
          })},
         {head, false, make_backward_hook([](auto& s) {
            if (!s.state.empty()) s.d_initial_state = s.state;
          })}},
        {}}},
  };
}

}  // namespace deltaproof::emulation_detail
