// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
//
// Claims about inverting I + L: results, and what the algorithms form on their way.

#include <array>

#include "claims/checks/parts.hpp"
#include "deltaproof/algebra/triangular.hpp"

namespace deltaproof::claim_detail {
namespace {

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

std::span<const claim_check> inverse_checks() {
  static constexpr std::array all{
      claim_check{"neumann", claim_method::exact_check, neumann},
      claim_check{"doubling", claim_method::exact_check, doubling},
      claim_check{"blocks", claim_method::exact_check, blocks},
      claim_check{"all_algorithms", claim_method::exact_check, all_algorithms},
  };
  return all;
}

}  // namespace deltaproof::claim_detail
