// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
//
// Claims about inverting I + L: results, and what the algorithms form on their way.

#include "claims/parts.hpp"
#include "deltaproof/algebra/triangular.hpp"

namespace deltaproof::claim_detail {
namespace {

using kind = claim_kind;
using verdict = claim_verdict;

fraction_matrix unit_lower(const fraction_matrix& l) { return combined(identity<rational>(l.rows()), 1, l); }
fraction_matrix negative(const fraction_matrix& m) { return combined(fraction_matrix(m.rows(), m.cols()), -1, m); }

/// Sum of the first n powers of -L.
fraction_matrix power_sum(const fraction_matrix& l, std::size_t n) {
  fraction_matrix sum(l.rows(), l.rows());
  fraction_matrix power = identity<rational>(l.rows());
  for (std::size_t i = 0; i < n; ++i) {
    sum = combined(sum, 1, power);
    power = negative(product(power, l));
  }
  return sum;
}

claim_values neumann() {
  const std::size_t n = 6;
  const fraction_matrix l = lower_part(sample_matrix(n, n, 90), true);
  fraction_matrix power = identity<rational>(n);
  for (std::size_t i = 0; i + 1 < n; ++i) power = product(power, l);
  const bool before_is_zero = squares(power) == 0;
  const bool zero_at_n = squares(product(power, l)) == 0;
  const fraction_matrix x = inverse(unit_lower(l));
  return {{"n_terms_equal", power_sum(l, n) == x},
          {"fewer_terms_equal", power_sum(l, n - 1) == x},
          {"more_terms_equal", power_sum(l, n + 5) == x},
          {"power_n_is_zero", zero_at_n},
          {"power_n_minus_1_is_zero", before_is_zero}};
}

/// Doubling over 8 rows, by the closed forms of S_j and G_j, by the recursion as it must be, and as it is printed.
claim_values doubling() {
  const std::size_t n = 8;
  const fraction_matrix l = lower_part(sample_matrix(n, n, 91), true);
  bool closed_forms = true;
  bool recursion = true;
  bool printed = true;
  bool powers = true;
  fraction_matrix power = negative(l);
  fraction_matrix s = identity<rational>(n);
  fraction_matrix g = negative(l);
  for (std::size_t j = 0; j < 3; ++j) {
    closed_forms = closed_forms && s == power_sum(l, std::size_t{1} << j);
    powers = powers && g == power;  // (−L)^(2^j), multiplied out
    for (std::size_t i = std::size_t{1} << j; i < std::size_t{2} << j; ++i) power = negative(product(power, l));
    const fraction_matrix next = power_sum(l, std::size_t{2} << j);
    const fraction_matrix factor = combined(identity<rational>(n), 1, g);
    recursion = recursion && product(s, factor) == next;
    printed = printed && product(next, factor) == next;
    s = product(s, factor);
    g = product(g, g);
  }
  return {{"closed_forms_equal", closed_forms},
          {"recursion_equal", recursion},
          {"powers_equal", powers},
          {"printed_equal", printed},
          {"inverts", s == inverse(unit_lower(l))}};
}

fraction_matrix block_of(const fraction_matrix& m, std::size_t first_row, std::size_t rows, std::size_t first_column,
                         std::size_t columns) {
  fraction_matrix out(rows, columns);
  for (std::size_t i = 0; i < rows; ++i) {
    for (std::size_t j = 0; j < columns; ++j) out(i, j) = m(first_row + i, first_column + j);
  }
  return out;
}

/// A of 3 x 3 blocks of 2 x 2, lower triangular by blocks, its diagonal blocks full.
claim_values blocks() {
  fraction_matrix a = sample_matrix(6, 6, 92);
  for (std::size_t i = 0; i < 6; ++i) {
    for (std::size_t j = 0; j < 6; ++j) {
      if (j / 2 > i / 2) a(i, j) = 0;
    }
    a(i, i) += 9;
  }
  const fraction_matrix b = inverse(a);
  const auto of = [](const fraction_matrix& m, std::size_t i, std::size_t j) { return block_of(m, 2 * i, 2, 2 * j, 2); };
  bool lower = true;
  bool diagonal = true;
  bool recursion = true;
  for (std::size_t i = 0; i < 3; ++i) {
    diagonal = diagonal && of(b, i, i) == inverse(of(a, i, i));
    for (std::size_t j = i + 1; j < 3; ++j) lower = lower && squares(of(b, i, j)) == 0;
    for (std::size_t j = 0; j < i; ++j) {
      fraction_matrix sum(2, 2);
      for (std::size_t m = j; m < i; ++m) sum = combined(sum, 1, product(of(a, i, m), of(b, m, j)));
      recursion = recursion && of(b, i, j) == negative(product(inverse(of(a, i, i)), sum));
    }
  }
  // Two by two: the first four rows as 2 + 2.
  const fraction_matrix corner = negative(product(product(inverse(of(a, 1, 1)), of(a, 1, 0)), inverse(of(a, 0, 0))));
  return {{"lower", lower}, {"diagonal", diagonal}, {"recursion_equal", recursion}, {"two_by_two_equal", of(b, 1, 0) == corner}};
}

/// Every algorithm of the library on one L, in fractions.
claim_values all_algorithms() {
  using plain = arithmetic<rational, rational, rational, sequential>;
  const fraction_matrix l = lower_part(sample_matrix(20, 20, 93), true);
  const fraction_matrix x = inverse(unit_lower(l));
  std::uint64_t equal = 0;
  for (const named_inverse& row : inverse_methods) equal += invert_unit_lower<plain>(row.method, l) == x ? 1 : 0;
  return {{"algorithms", inverse_methods.size()},
          {"equal", equal},
          {"doubling_in_blocks_equal", invert_unit_lower<plain>(inverse_named("neumann8+block"), l) == x}};
}

}  // namespace

claim_table inverse_claims() {
  return {
      {"inversion-is-the-task",
       notes,
       kind::conclusion,
       verdict::holds,
       "T comes down to inverting a unit lower triangular matrix I + L.",
       "every algorithm gives the same matrix in exact arithmetic",
       {theorem("algebra.ut.chunk_Ai_unique"),
        exact_check("the eight algorithms of the library on 20 rows, in fractions", all_algorithms,
                    [](const claim_values& v) {
                      return number_at(v, "algorithms") == 8 && number_at(v, "equal") == number_at(v, "algorithms");
                    })}},
      {"neumann-series",
       notes,
       kind::identity,
       verdict::holds,
       "(I + L)⁻¹ = Σ (−L)ⁿ, without end.",
       "a finite sum for strictly lower triangular L: further terms are 0",
       {theorem("algebra.unit_lower.neumann_series"),
        exact_check("6 rows, 11 terms, in fractions", neumann,
                    [](const claim_values& v) { return truth_at(v, "more_terms_equal"); })}},
      {"nilpotent",
       notes,
       kind::identity,
       verdict::holds,
       "A strictly lower triangular N × N matrix has Lᶜ = 0 for every C > N.",
       "true, and already for C = N",
       {theorem("algebra.unit_lower.strictly_lower_nilpotent"),
        exact_check("6 rows in fractions", neumann, [](const claim_values& v) { return truth_at(v, "power_n_is_zero"); })}},
      {"nilpotent-from-n-on",
       notes,
       kind::misprint,
       verdict::misprint,
       "The exponent is printed as C > N, and the sum below it stops at N − 1.",
       "C ≥ N is meant: with C > N alone the term of power N would have to stay. And C is the chunk length elsewhere",
       {theorem("algebra.unit_lower.nilpotency_is_sharp"),
        exact_check("powers N and N − 1 of 6 rows, and the sum with a term less", neumann,
                    [](const claim_values& v) {
                      return truth_at(v, "power_n_is_zero") && !truth_at(v, "power_n_minus_1_is_zero") &&
                             !truth_at(v, "fewer_terms_equal");
                    })}},
      {"neumann-stops",
       notes,
       kind::identity,
       verdict::holds,
       "(I + L)⁻¹ = Σ_{n<N} (−L)ⁿ.",
       "N rows",
       {theorem("algebra.unit_lower.neumann_series"),
        exact_check("6 rows in fractions", neumann,
                    [](const claim_values& v) { return truth_at(v, "n_terms_equal") && !truth_at(v, "fewer_terms_equal"); })}},
      {"doubling-definitions",
       notes,
       kind::definition,
       verdict::holds,
       "S_k is the sum of the first 2ᵏ powers of −L and G_k its power 2ᵏ.",
       "they start at S₀ = I, G₀ = −L; S is no state here",
       {theorem("algebra.unit_lower.doubling_sums_powers"),
        exact_check(
            "8 rows in fractions: sums, and powers by squaring against powers multiplied out", doubling,
            [](const claim_values& v) { return truth_at(v, "closed_forms_equal") && truth_at(v, "powers_equal"); })}},
      {"doubling-recursion-misprinted",
       notes,
       kind::misprint,
       verdict::misprint,
       "The recursion is printed as S_{k+1} = S_{k+1} (I + G_k).",
       "S_k stands on the right: S_{k+1} = S_k (I + G_k)",
       {theorem("algebra.unit_lower.doubling_sums_powers"),
        exact_check("8 rows in fractions, both ways", doubling,
                    [](const claim_values& v) { return truth_at(v, "recursion_equal") && !truth_at(v, "printed_equal"); })}},
      {"doubling-inverts",
       notes,
       kind::algorithm,
       verdict::holds,
       "Blocks are inverted by the Neumann series with recursive doubling: the result.",
       "the diagonal blocks; those below, which need have no inverse, are merged. Exact arithmetic, 2ᵏ at least the rows of a "
       "block",
       {theorem("algebra.unit_lower.doubling_inverts"),
        exact_check("8 rows in fractions, three doublings", doubling,
                    [](const claim_values& v) { return truth_at(v, "inverts"); }),
        exact_check("blocks of 8 by doubling, then merged, and every other way of the library, on 20 rows in fractions",
                    all_algorithms,
                    [](const claim_values& v) {
                      return truth_at(v, "doubling_in_blocks_equal") && number_at(v, "equal") == number_at(v, "algorithms");
                    })}},
      {"doubling-intermediates",
       notes,
       kind::algorithm,
       verdict::fails_in_format,
       "Blocks are inverted by the Neumann series with recursive doubling: what it forms on the way, in a finite format.",
       "correlated keys: at cosine 0.9 and β = 1 powers reach 1.5·10³ in blocks of 16 and 1.6·10¹⁶ in 64 rows although the "
       "inverse holds nothing above 1; fp16 on blocks of 16 and fp32 on 64 rows err by more than the result. Blocks of 8, or "
       "fp32 for a result in bf16, are safe for β ≤ 1",
       {theorem("algebra.repeated_keys.powers_are_binomials"), theorem("algebra.ut_bounds.inverse_entry_bound"),
        finding_of("inverse", "powers-are-binomials", "the largest power over blocks of 8, 16 and 64 rows",
                   [](const claim_values& v) {
                     return number_at(v, "block_8") < 20 && within(number_at(v, "block_16"), 1.5e3, 0.02) &&
                            within(number_at(v, "block_64"), 1.6e16, 0.01);
                   }),
        finding_of("inverse", "plan-fp16-product-of-powers",
                   "the verdict on fp16 over blocks of 16, its error and the largest entry of the result",
                   [](const claim_values& v) {
                     return !truth_at(v, "safe") && number_at(v, "error") > number_at(v, "limit") &&
                            number_at(v, "largest_entry_of_the_inverse") <= 1;
                   }),
        finding_of("inverse", "plan-whole-chunk-squaring", "the verdict on fp32 over 64 rows",
                   [](const claim_values& v) { return !truth_at(v, "safe") && number_at(v, "error") > 1; })}},
      {"two-by-two-blocks",
       notes,
       kind::identity,
       verdict::holds,
       "The inverse of a 2 × 2 block lower triangular matrix has −A₂₂⁻¹ A₂₁ A₁₁⁻¹ in its corner.",
       "invertible diagonal blocks, which need not commute",
       {theorem("algebra.unit_lower.two_by_two_blocks"),
        exact_check("blocks of 2 × 2 in fractions", blocks,
                    [](const claim_values& v) { return truth_at(v, "two_by_two_equal"); })}},
      {"block-inverse-is-lower",
       notes,
       kind::identity,
       verdict::holds,
       "If A B = I and A is block lower triangular, so is B.",
       "square diagonal blocks; A B = I makes them invertible",
       {theorem("algebra.unit_lower.block_inverse_lower"),
        exact_check("3 × 3 blocks in fractions", blocks,
                    [](const claim_values& v) { return truth_at(v, "lower") && truth_at(v, "diagonal"); })}},
      {"block-recursion",
       notes,
       kind::identity,
       verdict::holds,
       "B_ij = −A_ii⁻¹ Σ_{j ≤ m < i} A_im B_mj for i > j.",
       "over blocks that do not commute",
       {theorem("algebra.unit_lower.block_recursion"),
        exact_check("3 × 3 blocks in fractions", blocks, [](const claim_values& v) { return truth_at(v, "recursion_equal"); })}},
  };
}

}  // namespace deltaproof::claim_detail
