// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
//
// Claims about many steps at once: the parallel form of linear attention, WY, UT and the chunkwise form.

#include <algorithm>

#include "claims/parts.hpp"
#include "deltaproof/rule/baselines.hpp"
#include "deltaproof/scan/chunkwise.hpp"
#include "deltaproof/scan/recurrent.hpp"
#include "deltaproof/scan/wy.hpp"

namespace deltaproof::claim_detail {
namespace {

using kind = claim_kind;
using verdict = claim_verdict;

constexpr std::size_t tokens = 6;
constexpr std::size_t channels = 3;
constexpr std::size_t width = 2;

/// A chunk of six tokens with a state before it, everything the notes derive of it by their own formulas.
struct chunk {
  fraction_matrix q = sample_matrix(tokens, channels, 80);
  fraction_matrix k = sample_matrix(tokens, channels, 81);
  fraction_matrix v = sample_matrix(tokens, width, 82);
  fraction_matrix start = sample_matrix(width, channels, 83);
  fraction_vector beta = sample_vector(tokens, 84);

  fraction_matrix scaled_rows(const fraction_matrix& m) const {
    fraction_matrix out = m;
    for (std::size_t i = 0; i < tokens; ++i) {
      for (rational& entry : out.row(i)) entry *= beta[i];
    }
    return out;
  }
  fraction_matrix lower() const { return scaled_rows(lower_part(product(k, transpose(k)), true)); }
  fraction_matrix solve(const fraction_matrix& right) const {
    return product(inverse(combined(identity<rational>(tokens), 1, lower())), scaled_rows(right));
  }
  fraction_matrix w() const { return solve(k); }
  fraction_matrix u() const { return solve(v); }

  /// States and outputs by the recurrence.
  std::vector<fraction_matrix> states() const {
    std::vector<fraction_matrix> all{start};
    for (std::size_t t = 0; t < tokens; ++t) all.push_back(delta_step(all.back(), row_of(k, t), row_of(v, t), beta[t]));
    return all;
  }
  sequence<rational> as_sequence() const {
    auto s = sequence<rational>::zeros(tokens, 1, channels, width);
    s.q.assign(q.entries().begin(), q.entries().end());
    s.k.assign(k.entries().begin(), k.entries().end());
    s.v.assign(v.entries().begin(), v.entries().end());
    s.step = beta;
    s.initial_state = transpose(start);
    return s;
  }
};

claim_values parallel_form() {
  const chunk c;
  hebbian<rational> machine(channels, width);
  gated_hebbian<rational> gated(channels, width);
  fraction_matrix outputs(tokens, width);
  fraction_matrix gated_outputs(tokens, width);
  const fraction_vector decay{fraction(1, 2)};
  for (std::size_t t = 0; t < tokens; ++t) {
    machine.step(row_of(c.k, t), row_of(c.v, t));
    machine.read(row_of(c.q, t), outputs.row(t));
    gated.step(decay, row_of(c.k, t), row_of(c.v, t));
    gated.read(row_of(c.q, t), gated_outputs.row(t));
  }
  const fraction_matrix printed = product(lower_part(product(c.q, transpose(c.k)), false), c.v);
  return {{"equal", printed == outputs}, {"gated_equal", printed == gated_outputs}};
}

/// P^r and H^r by their definitions, and S^r = S P^r + H^r at every r.
claim_values chunk_state() {
  const chunk c;
  const auto states = c.states();
  fraction_matrix p = identity<rational>(channels);
  bool equal = true;
  bool w_form = true;
  bool u_form = true;
  bool state_form = true;
  bool output_form = true;
  const fraction_matrix w = c.w();
  const fraction_matrix u = c.u();
  for (std::size_t r = 1; r <= tokens; ++r) {
    p = product(p, transition(row_of(c.k, r - 1), c.beta[r - 1]));
    fraction_matrix h(width, channels);
    for (std::size_t i = 0; i < r; ++i) {
      fraction_matrix term = outer(scaled(c.beta[i], row_of(c.v, i)), row_of(c.k, i));
      for (std::size_t j = i + 1; j < r; ++j) term = product(term, transition(row_of(c.k, j), c.beta[j]));
      h = combined(h, 1, term);
    }
    fraction_matrix low_rank = identity<rational>(channels);
    fraction_matrix written(width, channels);
    fraction_matrix state = c.start;
    const fraction_vector q = row_of(c.q, r - 1);
    fraction_vector output = product(c.start, q);
    for (std::size_t i = 0; i < r; ++i) {
      const fraction_vector key = row_of(c.k, i);
      low_rank = combined(low_rank, -1, outer(row_of(w, i), key));
      written = combined(written, 1, outer(row_of(u, i), key));
      fraction_vector change = row_of(u, i);
      const fraction_vector predicted = product(c.start, row_of(w, i));
      for (std::size_t a = 0; a < width; ++a) change[a] -= predicted[a];
      state = combined(state, 1, outer(change, key));
      for (std::size_t a = 0; a < width; ++a) output[a] += change[a] * inner(key, q);
    }
    equal = equal && states[r] == combined(product(c.start, p), 1, h);
    w_form = w_form && low_rank == p;
    u_form = u_form && written == h;
    state_form = state_form && state == states[r];
    output_form = output_form && output == product(states[r], q);
  }
  return {{"equal", equal},
          {"w_form_equal", w_form},
          {"u_form_equal", u_form},
          {"state_form_equal", state_form},
          {"output_form_equal", output_form}};
}

/// From a state of zeros: S_t = sum u_i k_i^T, without it the start is missing.
claim_values sum_of_writes() {
  chunk c;
  const auto holds = [&](const chunk& of) {
    fraction_matrix sum(width, channels);
    const fraction_matrix u = of.u();
    for (std::size_t i = 0; i < tokens; ++i) sum = combined(sum, 1, outer(row_of(u, i), row_of(of.k, i)));
    return sum == of.states().back();
  };
  const bool from_elsewhere = holds(c);
  c.start = fraction_matrix(width, channels);
  return {{"from_zero_equal", holds(c)}, {"from_elsewhere_equal", from_elsewhere}};
}

/// w and u by their recursions against the solutions of the triangular systems, and the library's.
claim_values recursions() {
  const chunk c;
  const auto by_recursion = [&](const fraction_matrix& right) {
    fraction_matrix x(tokens, right.cols());
    for (std::size_t r = 0; r < tokens; ++r) {
      fraction_vector row = row_of(right, r);
      for (std::size_t i = 0; i < r; ++i) {
        for (std::size_t a = 0; a < row.size(); ++a) row[a] -= x(i, a) * inner(row_of(c.k, i), row_of(c.k, r));
      }
      for (std::size_t a = 0; a < row.size(); ++a) x(r, a) = c.beta[r] * row[a];
    }
    return x;
  };
  const wy_form<rational> form = wy_recursion(c.as_sequence(), 0, tokens);
  return {{"w_equal", by_recursion(c.k) == c.w()},
          {"u_equal", by_recursion(c.v) == c.u()},
          {"library_equal", form.w == c.w() && form.u == c.u()}};
}

claim_values matrix_form() {
  const chunk c;
  const auto states = c.states();
  const fraction_matrix w = c.w();
  const fraction_matrix u = c.u();
  const fraction_matrix state = combined(c.start, 1, product(combined(transpose(u), -1, product(c.start, transpose(w))), c.k));
  const fraction_matrix outputs =
      combined(product(c.q, transpose(c.start)), 1,
               product(lower_part(product(c.q, transpose(c.k)), false), combined(u, -1, product(w, transpose(c.start)))));
  fraction_matrix expected(tokens, width);
  for (std::size_t t = 0; t < tokens; ++t) {
    const fraction_vector o = product(states[t + 1], row_of(c.q, t));
    std::copy(o.begin(), o.end(), expected.row(t).begin());
  }
  using plain = arithmetic<rational, rational, rational, sequential>;
  const auto stages = chunkwise<plain>(c.as_sequence(), tokens, inverse_method{});
  const auto halves = chunkwise<plain>(c.as_sequence(), tokens / 2, inverse_method{});
  const fraction_matrix strict = lower_part(fraction_matrix(4, 4, rational(1)), true);
  return {{"state_equal", state == states.back()},
          {"outputs_equal", outputs == expected},
          {"library_equal", stages.o == expected && transpose(stages.final_state) == states.back()},
          {"two_chunks_equal", halves.o == expected && transpose(halves.final_state) == states.back()},
          {"mask_equal", combined(lower_part(fraction_matrix(4, 4, rational(1)), false), -1, identity<rational>(4)) == strict}};
}

/// T = (I + L)⁻¹ Diag(β): W = T K, U = T V and its diagonal.
claim_values ut_transform() {
  const chunk c;
  fraction_matrix t = c.solve(identity<rational>(tokens));
  bool diagonal = true;
  for (std::size_t i = 0; i < tokens; ++i) diagonal = diagonal && t(i, i) == c.beta[i];
  return {{"w_equal", product(t, c.k) == c.w()}, {"u_equal", product(t, c.v) == c.u()}, {"diagonal_is_beta", diagonal}};
}

/// W of a chunk, and of the same keys with one β changed.
claim_values w_from_the_inputs() {
  chunk c;
  const fraction_matrix w = c.w();
  const bool from_t = product(c.solve(identity<rational>(tokens)), c.k) == w;
  c.beta[0] += 1;
  return {{"equal", from_t}, {"other_beta_equal", c.w() == w}};
}

}  // namespace

claim_table chunk_claims() {
  return {
      {"rows-are-columns",
       notes,
       kind::definition,
       verdict::conditional,
       "q_t is a column of shape [d, 1], and the t-th row of Q.",
       "up to a transpose, which is why the matrix forms carry one where the forms by rows do not",
       {exact_check("a chunk of six, rows of the matrices taken as columns, against the matrix forms", matrix_form,
                    [](const claim_values& v) { return truth_at(v, "state_equal") && truth_at(v, "outputs_equal"); })}},
      {"w-is-learnable",
       notes,
       kind::definition,
       verdict::conditional,
       "W with an index stands for learnable parameters.",
       "in the projections W x_t. The W of a chunk holds no parameters: it is T K, another for every β. S too has two meanings, a "
       "state and a partial sum of powers, and C, a chunk's length and an exponent",
       {exact_check("W of a chunk of six from T and K, and with another β", w_from_the_inputs,
                    [](const claim_values& v) { return truth_at(v, "equal") && !truth_at(v, "other_beta_equal"); })}},
      {"linear-attention-parallel-form",
       notes,
       kind::identity,
       verdict::holds,
       "(Q Kᵀ ⊙ M) V has the rows Σ_{i ≤ r} v_i k_iᵀ q_r.",
       "M lower triangular ones, diagonal included",
       {exact_check("six tokens in fractions against the library's linear attention", parallel_form, is_equal)}},
      {"gla-without-its-gate",
       notes,
       kind::misprint,
       verdict::misprint,
       "The formula (Q Kᵀ ⊙ M) V is headed GLA, gated linear attention.",
       "it has no gate: it is linear attention. With a decay of 1/2 a token the outputs differ",
       {exact_check("the same six tokens against the library's gated linear attention", parallel_form,
                    [](const claim_values& v) { return !truth_at(v, "gated_equal"); })}},
      {"chunk-state",
       notes,
       kind::identity,
       verdict::holds,
       "The state r rows into a chunk is S P^r + H^r, with P^r the product of the transitions and H^r what the rows write.",
       "products in the order of time, from the left. The notes have K = V and start from zeros; neither is needed",
       {theorem("algebra.wy.state_is_affine"), exact_check("every r of a chunk of six in fractions", chunk_state, is_equal),
        exact_check("six tokens as two chunks of three, the second from the state after the first", matrix_form,
                    [](const claim_values& v) { return truth_at(v, "two_chunks_equal"); })}},
      {"state-is-a-sum-of-writes",
       notes,
       kind::identity,
       verdict::conditional,
       "S_t = Σ u_i k_iᵀ with u_t = β_t (v_t − Σ u_i (k_iᵀ k_t)).",
       "from a state of zeros, as the notes start it",
       {theorem("algebra.wy.u_recursion"),
        exact_check(
            "six tokens in fractions, from zeros and from another state", sum_of_writes,
            [](const claim_values& v) { return truth_at(v, "from_zero_equal") && !truth_at(v, "from_elsewhere_equal"); })}},
      {"h-is-a-sum-of-writes",
       notes,
       kind::identity,
       verdict::holds,
       "H^r = Σ_{i ≤ r} u_i k_iᵀ, with the recursion of u inside the chunk.",
       "any chunk, whatever the state before it",
       {theorem("algebra.wy.wy_write"), exact_check("every r of a chunk of six", chunk_state,
                                                    [](const claim_values& v) { return truth_at(v, "u_form_equal"); })}},
      {"products-have-a-wy-form",
       notes,
       kind::identity,
       verdict::holds,
       "A product of factors I − β k kᵀ is I − Σ w_i k_iᵀ.",
       "always, with as many terms as factors; low rank while they are fewer than channels",
       {theorem("algebra.wy.wy_transition"), exact_check("every r of a chunk of six", chunk_state,
                                                         [](const claim_values& v) { return truth_at(v, "w_form_equal"); })}},
      {"w-recursion",
       notes,
       kind::identity,
       verdict::holds,
       "w_r = β_r (k_r − Σ_{i<r} w_i k_iᵀ k_r).",
       "any commutative ring",
       {theorem("algebra.wy.w_recursion"),
        exact_check("the recursion against the triangular system and the library", recursions,
                    [](const claim_values& v) { return truth_at(v, "w_equal") && truth_at(v, "library_equal"); })}},
      {"u-recursion",
       notes,
       kind::identity,
       verdict::holds,
       "u_r = β_r (v_r − Σ_{i<r} u_i k_iᵀ k_r).",
       "any commutative ring",
       {theorem("algebra.wy.u_recursion"),
        exact_check("the recursion against the triangular system and the library", recursions,
                    [](const claim_values& v) { return truth_at(v, "u_equal") && truth_at(v, "library_equal"); })}},
      {"chunk-state-by-rows",
       notes,
       kind::identity,
       verdict::holds,
       "S^r = S + Σ (u_i − S w_i) k_iᵀ.",
       "any commutative ring",
       {theorem("algebra.wy.wy_state"), exact_check("every r of a chunk of six", chunk_state,
                                                    [](const claim_values& v) { return truth_at(v, "state_form_equal"); })}},
      {"chunk-output-by-rows",
       notes,
       kind::identity,
       verdict::holds,
       "o^r = S q_r + Σ_{i ≤ r} (u_i − S w_i) k_iᵀ q_r.",
       "the row itself included; any commutative ring",
       {theorem("algebra.wy.wy_output"), exact_check("every r of a chunk of six", chunk_state,
                                                     [](const claim_values& v) { return truth_at(v, "output_form_equal"); })}},
      {"chunk-matrix-state",
       notes,
       kind::identity,
       verdict::holds,
       "S^C = S + (Uᵀ − S Wᵀ) K.",
       "any commutative ring",
       {theorem("algebra.ut.ut_state"),
        exact_check("a chunk of six against the recurrence and the library", matrix_form,
                    [](const claim_values& v) { return truth_at(v, "state_equal") && truth_at(v, "library_equal"); })}},
      {"chunk-matrix-output",
       notes,
       kind::identity,
       verdict::holds,
       "O = Q Sᵀ + (Q Kᵀ ⊙ M)(U − W Sᵀ).",
       "M with its diagonal; no scale",
       {theorem("algebra.ut.ut_output"),
        exact_check("a chunk of six against the recurrence and the library", matrix_form,
                    [](const claim_values& v) { return truth_at(v, "outputs_equal") && truth_at(v, "library_equal"); })}},
      {"strict-mask",
       notes,
       kind::definition,
       verdict::holds,
       "M − I is the strictly lower triangular mask.",
       "M lower triangular ones, diagonal included",
       {exact_check("four rows", matrix_form, [](const claim_values& v) { return truth_at(v, "mask_equal"); })}},
      {"ut-u",
       notes,
       kind::identity,
       verdict::holds,
       "U = (I + Diag(β)(K Kᵀ ⊙ M₋₁))⁻¹ Diag(β) V.",
       "the inverse always exists",
       {theorem("algebra.ut.ut_u"), theorem("algebra.unit_lower.unit_lower_invertible"),
        exact_check("the triangular system against the recursion", recursions,
                    [](const claim_values& v) { return truth_at(v, "u_equal"); })}},
      {"ut-w",
       notes,
       kind::identity,
       verdict::holds,
       "W = (I + Diag(β)(K Kᵀ ⊙ M₋₁))⁻¹ Diag(β) K.",
       "the inverse always exists",
       {theorem("algebra.ut.ut_w"), exact_check("the triangular system against the recursion", recursions,
                                                [](const claim_values& v) { return truth_at(v, "w_equal"); })}},
      {"ut-t-serves-both",
       notes,
       kind::conclusion,
       verdict::holds,
       "One matrix T = (I + Diag(β)(K Kᵀ ⊙ M₋₁))⁻¹ Diag(β) gives both U and W.",
       "W = T K and U = T V; T_rr = β_r",
       {theorem("algebra.ut_bounds.t_diagonal"), exact_check("T of a chunk of six", ut_transform,
                                                             [](const claim_values& v) {
                                                               return truth_at(v, "w_equal") && truth_at(v, "u_equal") &&
                                                                      truth_at(v, "diagonal_is_beta");
                                                             })}},
  };
}

}  // namespace deltaproof::claim_detail
