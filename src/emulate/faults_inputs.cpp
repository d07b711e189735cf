// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
//
// Faults of what a kernel makes of its inputs before the first stage: norms, step lengths, scale, layouts.
#include "emulate/faults.hpp"

namespace deltaproof::emulation_detail {
namespace {

/// q and k as given, divided by `divisor(row)`, stored as the plan says; then the steps that follow.
template <class Real, class Divisor>
void normalise(site<Real>& s, const Divisor& divisor) {
  if (!s.in.qk_l2norm) return;
  const auto rows = [&](const matrix<double>& given, matrix<Real>& out) {
    for (std::size_t i = 0; i < out.rows(); ++i) {
      const double d = divisor(given.row(i));
      for (std::size_t ch = 0; ch < out.cols(); ++ch) out(i, ch) = static_cast<Real>(given(i, ch) / d);
    }
    if (s.plan.l2norm_store) narrow_all(out, {*s.plan.l2norm_store, false});
  };
  rows(s.in.q, s.all.q);
  rows(s.in.k, s.all.k);
  set_steps(s, s.all.k, [&](double b) { return activated(s.in, b); });
}

double sum_of_squares(std::span<const double> row) {
  double sum = 0;
  for (const double x : row) sum += x * x;
  return sum;
}

/// x rounded to `to` after every operation of the norm.
template <class Real>
void normalise_in_x(site<Real>& s) {
  const narrowing x{s.in.x, false};
  normalise(s, [&](std::span<const double> row) {
    double sum = 0;
    for (const double v : row) sum = narrowed(sum + narrowed(v * v, x), x);
    return narrowed(std::sqrt(narrowed(sum + s.plan.l2norm_epsilon, x)), x);
  });
}

template <class Real>
void normalise_unasked(site<Real>& s) {
  if (s.in.qk_l2norm) return;
  for (matrix<Real>* m : {&s.all.q, &s.all.k}) {
    for (std::size_t i = 0; i < m->rows(); ++i) {
      Real sum = static_cast<Real>(s.plan.l2norm_epsilon);
      for (const Real x : m->row(i)) sum += x * x;
      for (Real& x : m->row(i)) x /= std::sqrt(sum);
      narrow(m->row(i), {s.in.x, false});
    }
  }
  set_steps(s, s.all.k, [&](double b) { return activated(s.in, b); });
}

constexpr condition unnormalised{"q and k that the kernel does not normalise", [](const problem& p) { return !p.qk_l2norm; }};
constexpr condition activation_asked{"an activation of beta",
                                     [](const problem& p) { return p.beta_activation != activation_kind::none; }};
constexpr condition two_sigmoid_asked{"beta_activation two_sigmoid",
                                      [](const problem& p) { return p.beta_activation == activation_kind::two_sigmoid; }};
constexpr condition other_rule_normalised = other_rule & normalised;
constexpr condition beta_wider_than_bf16{"effective steps in a format more precise than bf16", [](const problem& p) {
                                           return p.beta.element_format().precision > bf16.precision ||
                                                  p.beta_activation != activation_kind::none || p.rule != rule_kind::euler;
                                         }};
constexpr condition several_columns{"V above 2", [](const problem& p) { return p.value_dim() > 2; }};
constexpr condition scaled_by_another{"a scale other than 1/sqrt(V)",
                                      [](const problem& p) { return p.scale != default_scale(p.value_dim()); }};
constexpr condition oblong_state_given = with_initial_state & oblong;
constexpr condition state_of_longer_sequence =
    with_initial_state &
    condition{"a sequence of several tokens", [](const problem& p) {
                const auto all = p.sequences();
                return std::any_of(all.begin(), all.end(), [](const sequence_range& r) { return r.tokens > 1; });
              }};
constexpr condition wide_initial_state =
    with_initial_state & condition{"an initial state in a format more precise than that of q", [](const problem& p) {
                                     return p.initial_state->element_format().precision > p.q.element_format().precision;
                                   }};

fault_table norms() {
  return {
      {"l2norm-mean-for-sum", "inputs",
       "q and k are divided by sqrt(mean x^2 + eps): |k|^2 becomes K, and the state soon overflows", paths::both,
       hooks(normalised, {after(step_kind::load,
                                [](auto& s) {
                                  normalise(s, [&](std::span<const double> row) {
                                    return std::sqrt(sum_of_squares(row) / static_cast<double>(row.size()) +
                                                     s.plan.l2norm_epsilon);
                                  });
                                })})},
      {"l2norm-max-for-sum", "inputs", "q and k are divided by max(sqrt(sum x^2), eps), not by sqrt(sum x^2 + eps)", paths::both,
       hooks(normalised, {after(step_kind::load,
                                [](auto& s) {
                                  normalise(s, [&](std::span<const double> row) {
                                    return std::max(std::sqrt(sum_of_squares(row)), s.plan.l2norm_epsilon);
                                  });
                                })})},
      {"l2norm-epsilon-outside-root", "inputs", "q and k are divided by sqrt(sum x^2) + eps, not by sqrt(sum x^2 + eps)",
       paths::both,
       hooks(normalised, {after(step_kind::load,
                                [](auto& s) {
                                  normalise(s, [&](std::span<const double> row) {
                                    return std::sqrt(sum_of_squares(row)) + s.plan.l2norm_epsilon;
                                  });
                                })})},
      {"l2norm-ignored", "inputs",
       "q and k are not normalised, though the problem asks for it; keys of large norm make the state infinite", paths::both,
       hooks(normalised, {after(step_kind::load, [](auto& s) { normalise(s, [](std::span<const double>) { return 1.0; }); })})},
      {"l2norm-missing-for-q",
       "inputs",
       "k is normalised, q is not",
       paths::both,
       hooks(normalised, {after(step_kind::load,
                                []<class Real>(site<Real>& s) {
                                  if (s.in.qk_l2norm) s.all.q = as<Real>(s.in.q);
                                })}),
       {"o"}},
      {"l2norm-missing-for-k", "inputs", "q is normalised, k is not; keys of large norm make the state infinite", paths::both,
       hooks(normalised, {after(step_kind::load,
                                []<class Real>(site<Real>& s) {
                                  if (!s.in.qk_l2norm) return;
                                  s.all.k = as<Real>(s.in.k);
                                  set_steps(s, s.all.k, [&](double b) { return activated(s.in, b); });
                                })})},
      {"l2norm-unasked", "inputs", "q and k are normalised though the problem does not ask for it", paths::both,
       hooks(unnormalised, {after(step_kind::load, [](auto& s) { normalise_unasked(s); })})},
      {"l2norm-in-x", "inputs", "in the l2norm, the squares, each partial sum and the root are rounded to the format of q and k",
       paths::both, hooks(normalised, {after(step_kind::load, [](auto& s) { normalise_in_x(s); })})},
      {"l2norm-epsilon-1e-5", "inputs", "q and k are divided by sqrt(sum x^2 + 1e-5)", paths::both,
       arithmetic(normalised, [](plan_variant& v, const head_input&) { v.l2norm_epsilon = 1e-5; })},
  };
}

fault_table steps() {
  return {
      {"beta-shifted-by-one-row", "inputs", "each row of k uses the effective step of the next row; the last row uses its own",
       paths::both,
       hooks(always, {after(step_kind::load,
                            [](auto& s) {
                              if (s.all.step.size() > 1) std::copy(s.all.step.begin() + 1, s.all.step.end(), s.all.step.begin());
                            })})},
      {"beta-rounded-to-bf16", "inputs", "the effective step is rounded to bf16", paths::both,
       hooks(beta_wider_than_bf16,
             {after(step_kind::load, []<class Real>(site<Real>& s) { narrow(std::span<Real>(s.all.step), {bf16, false}); })})},
      {"beta-sigmoid-twice", "inputs", "the activation of beta is applied twice", paths::both,
       hooks(activation_asked, {after(step_kind::load,
                                      [](auto& s) {
                                        if (s.in.activation == activation_kind::none) return;
                                        set_steps(s, s.all.k, [&](double b) { return activated(s.in, activated(s.in, b)); });
                                      })})},
      {"beta-sigmoid-missing", "inputs", "beta is used without its activation; large logits make the state infinite", paths::both,
       hooks(activation_asked, {after(step_kind::load,
                                      [](auto& s) {
                                        if (s.in.activation != activation_kind::none)
                                          set_steps(s, s.all.k, [](double b) { return b; });
                                      })})},
      {"beta-two-missing", "inputs", "the step is sigmoid(beta), though the problem asks for 2 sigmoid(beta)", paths::both,
       hooks(two_sigmoid_asked, {after(step_kind::load,
                                       [](auto& s) {
                                         if (s.in.activation == activation_kind::two_sigmoid)
                                           set_steps(s, s.all.k, [&](double b) { return activated(s.in, b) / 2; });
                                       })})},
      {"rule-gain-missing", "inputs", "the step is beta, not beta phi(beta |k|^2); keys of large norm make the state infinite",
       paths::both,
       hooks(other_rule, {after(step_kind::load,
                                [](auto& s) {
                                  if (s.in.rule != rule_kind::euler)
                                    set_steps(s, s.all.k, [&](double b) { return activated(s.in, b); }, false);
                                })})},
      {"rule-gain-of-raw-key", "inputs", "phi(beta |k|^2) is computed from k before its normalisation", paths::both,
       hooks(other_rule_normalised, {after(step_kind::load,
                                           []<class Real>(site<Real>& s) {
                                             if (s.in.rule == rule_kind::euler || !s.in.qk_l2norm) return;
                                             set_steps(s, as<Real>(s.in.k), [&](double b) { return activated(s.in, b); });
                                           })})},
      {"steps-share-the-first-beta", "inputs", "all steps of a token use the beta of its first step", paths::both,
       hooks(several_steps, {after(step_kind::load,
                                   [](auto& s) {
                                     for (std::size_t r = 0; r < s.all.step.size(); ++r)
                                       s.all.step[r] = s.all.step[r - r % s.all.steps_per_token];
                                   })})},
      {"steps-only-the-last", "inputs", "only the last step of each token is applied", paths::both,
       hooks(several_steps, {after(step_kind::load,
                                   [](auto& s) {
                                     const std::size_t n = s.all.steps_per_token;
                                     for (std::size_t r = 0; r < s.all.step.size(); ++r) {
                                       if (r % n != n - 1) s.all.step[r] = 0;
                                     }
                                   })})},
      {"steps-reversed", "inputs", "the steps of a token are applied in reverse order, the last one first", paths::both,
       hooks(several_steps, {after(step_kind::load,
                                   [](auto& s) {
                                     const std::size_t n = s.all.steps_per_token;
                                     for (std::size_t r = 0; r < s.all.step.size(); ++r) {
                                       const std::size_t other = r - r % n + (n - 1 - r % n);
                                       if (other <= r) continue;
                                       std::swap(s.all.step[r], s.all.step[other]);
                                       std::swap_ranges(s.all.k.row(r).begin(), s.all.k.row(r).end(), s.all.k.row(other).begin());
                                       std::swap_ranges(s.all.v.row(r).begin(), s.all.v.row(r).end(), s.all.v.row(other).begin());
                                     }
                                   })})},
  };
}

fault_table scales_and_layouts() {
  return {
      {"scale-missing", "Aqk", "the outputs are not scaled", paths::both,
       hooks(scaled, {after(step_kind::load, [](auto& s) { s.all.scale = 1; })})},
      {"scale-twice", "Aqk", "the outputs are multiplied by the scale twice", paths::both,
       hooks(scaled, {after(step_kind::load, [](auto& s) { s.all.scale *= s.all.scale; })})},
      {"scale-of-value-dim", "Aqk", "the scale is 1/sqrt(V)", paths::both,
       hooks(scaled_by_another,
             {after(step_kind::load,
                    []<class Real>(site<Real>& s) { s.all.scale = static_cast<Real>(default_scale(s.in.value_dim())); })})},
      {"q-and-k-swapped", "inputs", "q is read as k and k as q; a q of large norm makes the state infinite", paths::both,
       hooks(one_step, {after(step_kind::load,
                              [](auto& s) {
                                if (s.all.steps_per_token == 1) std::swap(s.all.q, s.all.k);
                              })})},
      {"layout-v-columns-interleaved", "inputs", "column i of v and column i + V/2 are read as neighbours", paths::both,
       hooks(several_columns, {after(step_kind::load,
                                     [](auto& s) {
                                       const auto given = s.all.v;
                                       const std::size_t V = given.cols(), half = (V + 1) / 2;
                                       for (std::size_t i = 0; i < given.rows(); ++i) {
                                         for (std::size_t j = 0; j < V; ++j) s.all.v(i, j) = given(i, j % 2 * half + j / 2);
                                       }
                                     })})},
      {"layout-initial-state-transposed", "h", "the initial state is read as (V, K); if K = V, the shape does not show it",
       paths::both, hooks(oblong_state_given, {after(step_kind::load, [](auto& s) { transpose_layout(s.now.state); })})},
      {"initial-state-ignored", "h", "sequences of more than one token start from a state of zeros", paths::both,
       hooks(state_of_longer_sequence, {after(step_kind::load,
                                              [](auto& s) {
                                                if (s.in.tokens() > 1) zero_all(s.now.state);
                                              })})},
      {"initial-state-rounded-to-x", "h", "the initial state is rounded to the format of q", paths::both,
       hooks(wide_initial_state, {after(step_kind::load, [](auto& s) { narrow_all(s.now.state, {s.in.x, false}); })})},
      {"last-token-dropped", "inputs",
       "the last token of a sequence is not processed: its output is 0, and the final state misses it", paths::both,
       hooks(always, {after(step_kind::load,
                            [](auto& s) {
                              const std::size_t T = s.in.tokens(), n = s.all.steps_per_token;
                              if (T == 0) return;
                              for (std::size_t r = (T - 1) * n; r < T * n; ++r) s.all.step[r] = 0;
                              if (s.all.gated) zero_row(s.all.g, T - 1);
                            }),
                      after(step_kind::finish,
                            [](auto& s) {
                              if (s.o.rows() > 0) zero_row(s.o, s.o.rows() - 1);
                            })})},
  };
}

}  // namespace

fault_table input_faults() {
  fault_table all = norms();
  for (auto* table : {steps, scales_and_layouts}) {
    fault_table part = table();
    std::move(part.begin(), part.end(), std::back_inserter(all));
  }
  return all;
}

}  // namespace deltaproof::emulation_detail
