// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
//
// Claims about what a step of each memory costs, and what least squares is.

#include "claims/recall_parts.hpp"
#include "deltaproof/number/counting.hpp"
#include "deltaproof/rule/baselines.hpp"
#include "deltaproof/scan/recurrent.hpp"

namespace deltaproof::claim_detail {
namespace {

using kind = claim_kind;
using verdict = claim_verdict;

/// Operations a step, K = V, over counting<double>: doubling K multiplies a K² law by 4, a K³ law by 8.
claim_values cost_a_step() {
  using number = counting<double>;
  const auto counted = [](std::size_t d, int which) {
    std::vector<number> k(d, number(1));
    hebbian<number> linear(d, d);
    recurrence<number> delta(d, d);
    recursive_least_squares<number> squares_of(d, d, number(1));
    const auto counts = count_operations([&] {
      if (which == 0) linear.step(k, k);
      if (which == 1) delta.step(k, k, number(1));
      if (which == 2) squares_of.step(k, k);
    });
    return static_cast<double>(counts.total());
  };
  return {{"linear_attention_64_over_32", counted(64, 0) / counted(32, 0)},
          {"deltanet_64_over_32", counted(64, 1) / counted(32, 1)},
          {"rls_64_over_32", counted(64, 2) / counted(32, 2)},
          {"rls_over_deltanet_64", counted(64, 2) / counted(64, 1)}};
}

/// Four pairs in three channels: the document's formula, the library's rank-one updates, and what is short of three.
claim_values least_squares() {
  const fraction_matrix keys = sample_matrix(4, 3, 110);
  const fraction_matrix values = sample_matrix(4, 2, 111);
  const rational ridge = fraction(1, 3);
  recursive_least_squares<rational> machine(3, 2, ridge);
  for (std::size_t t = 0; t < 4; ++t) machine.step(row_of(keys, t), row_of(values, t));
  const fraction_matrix gram = product(transpose(keys), keys);
  const fraction_matrix with_ridge =
      product(product(transpose(values), keys), inverse(combined(gram, ridge, identity<rational>(3))));
  const fraction_matrix best = product(product(transpose(values), keys), inverse(gram));
  const auto objective = [&](const fraction_matrix& s) { return squares(combined(product(keys, transpose(s)), -1, values)); };
  bool least = true;
  for (std::size_t i = 0; i < best.size(); ++i) {
    for (const rational& h : {fraction(1, 100), fraction(-1, 100)}) {
      fraction_matrix other = best;
      other.data()[i] += h;
      least = least && objective(other) > objective(best);
    }
  }
  bool two_pairs_have_an_inverse = true;
  try {
    const fraction_matrix few = sample_matrix(2, 3, 112);
    (void)inverse(product(transpose(few), few));
  } catch (const domain_error&) {
    two_pairs_have_an_inverse = false;
  }
  return {{"rank_one_updates_equal", transpose(machine.state()) == with_ridge},
          {"least", least},
          {"two_pairs_have_an_inverse", two_pairs_have_an_inverse}};
}

}  // namespace

claim_table recall_cost_claims() {
  return {
      {"cost-of-linear-attention",
       recall,
       kind::bound,
       verdict::holds,
       "Linear attention costs O(d²) a step.",
       "d = K = V; operations",
       {exact_check("operations counted in the code that runs, d = 32 and 64", cost_a_step,
                    [](const claim_values& v) { return within(number_at(v, "linear_attention_64_over_32"), 4, 0.02); })}},
      {"cost-of-deltanet",
       recall,
       kind::bound,
       verdict::holds,
       "DeltaNet costs O(d²) a step.",
       "3 K V + V products and as many additions",
       {exact_check("operations counted in the code that runs, d = 32 and 64", cost_a_step,
                    [](const claim_values& v) { return within(number_at(v, "deltanet_64_over_32"), 4, 0.02); }),
        finding_of("wy", "counts-are-polynomials", "cases whose counted operations are those of the polynomial",
                   [](const claim_values& v) {
                     return number_at(v, "equal") == number_at(v, "cases") && number_at(v, "cases") > 400;
                   })}},
      {"cost-of-rls",
       recall,
       kind::bound,
       verdict::refuted,
       "RLS costs O(t d² + d³) where DeltaNet costs O(d²).",
       "that is the cost of solving afresh; by rank-one updates of the inverse RLS gives the same state at O(d²) a step, twice "
       "DeltaNet's operations",
       {exact_check("operations counted in the code that runs, d = 32 and 64", cost_a_step,
                    [](const claim_values& v) {
                      return within(number_at(v, "rls_64_over_32"), 4, 0.02) && number_at(v, "rls_over_deltanet_64") < 2.01;
                    }),
        finding_of("recall", "cost", "counted operations of both ways over those of a DeltaNet token, at t = 1000",
                   [](const claim_values& v) {
                     return truth_at(v, "agree") && number_at(v, "ratio") < 2.01 && number_at(v, "anew_ratio") > 500;
                   }),
        exact_check("the state by rank-one updates and by the formula, in fractions", least_squares,
                    [](const claim_values& v) { return truth_at(v, "rank_one_updates_equal"); })}},
      {"rls-maintains-and-inverts",
       recall,
       kind::contradiction,
       verdict::contradiction,
       "RLS is said to maintain (KᵀK)⁻¹ at every step, and to pay for a matrix inversion of O(d³).",
       "maintained by rank-one updates it costs O(d²) a step, and nothing is inverted. The printed costs are of different things: "
       "O(t d² + d³) is that of one state from t tokens, DeltaNet's O(d²) that of one step, of which the same state takes t",
       {exact_check("operations counted in the code that runs, d = 32 and 64: a factor of 4, not 8", cost_a_step,
                    [](const claim_values& v) { return within(number_at(v, "rls_64_over_32"), 4, 0.02); }),
        exact_check("the state by rank-one updates and by the formula, in fractions", least_squares,
                    [](const claim_values& v) { return truth_at(v, "rank_one_updates_equal"); })}},
      {"rls-formula",
       recall,
       kind::definition,
       verdict::conditional,
       "RLS holds S = VᵀK (KᵀK)⁻¹.",
       "only from d independent keys on; before, KᵀK has no inverse and a ridge λI must be added",
       {exact_check("two and four pairs in three channels, in fractions", least_squares,
                    [](const claim_values& v) {
                      return truth_at(v, "rank_one_updates_equal") && !truth_at(v, "two_pairs_have_an_inverse");
                    })}},
      {"rls-is-the-linear-optimum",
       recall,
       kind::conclusion,
       verdict::conditional,
       "RLS is the best linear fit of all pairs at every step.",
       "of the sum of squared errors, without a ridge and with d independent keys",
       {exact_check("the objective at that state against twelve states beside it, in fractions", least_squares,
                    [](const claim_values& v) { return truth_at(v, "least"); })}},
  };
}

}  // namespace deltaproof::claim_detail
