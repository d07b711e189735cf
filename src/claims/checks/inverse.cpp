// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
//
// Claims about inverting I + L: results, and what the algorithms form on their way.

#include "claims/checks/parts.hpp"
#include "deltaproof/algebra/triangular.hpp"

namespace deltaproof::claim_detail {
namespace {

/// Sum of the first n powers of -L.
fraction_matrix power_sum(const fraction_matrix& l, std::size_t n) {
  fraction_matrix sum = 0 * l;
  fraction_matrix power = fraction_matrix::Identity(l.rows(), l.rows());
  for (std::size_t i = 0; i < n; ++i) {
    sum += power;
    power = -power * l;
  }
  return sum;
}

claim_values neumann() {
  const std::size_t n = 6;
  const fraction_matrix l = strictly_lower(sample_matrix(n, n, 90));
  fraction_matrix power = eye(n);
  for (std::size_t i = 0; i + 1 < n; ++i) power = power * l;
  const fraction_matrix x = (eye(n) + l).inverse();
  return {{"n_terms_equal", power_sum(l, n) == x},
          {"fewer_terms_equal", power_sum(l, n - 1) == x},
          {"more_terms_equal", power_sum(l, n + 5) == x},
          {"power_n_is_zero", (power * l).isZero(0)},
          {"power_n_minus_1_is_zero", power.isZero(0)}};
}

/// Doubling over 8 rows, by the closed forms of S_j and G_j, by the recursion as it must be, and as it is printed.
claim_values doubling() {
  const fraction_matrix l = strictly_lower(sample_matrix(8, 8, 91));
  bool closed_forms = true;
  bool recursion = true;
  bool printed = true;
  bool powers = true;
  fraction_matrix power = -l;
  fraction_matrix s = eye(8);
  fraction_matrix g = -l;
  for (std::size_t j = 0; j < 3; ++j) {
    closed_forms = closed_forms && s == power_sum(l, std::size_t{1} << j);
    powers = powers && g == power;  // (−L)^(2^j), multiplied out
    for (std::size_t i = std::size_t{1} << j; i < std::size_t{2} << j; ++i) power = -power * l;
    const fraction_matrix next = power_sum(l, std::size_t{2} << j);
    const fraction_matrix factor = eye(8) + g;
    recursion = recursion && s * factor == next;
    printed = printed && next * factor == next;
    s = s * factor;
    g = g * g;
  }
  return {{"closed_forms_equal", closed_forms},
          {"recursion_equal", recursion},
          {"powers_equal", powers},
          {"printed_equal", printed},
          {"inverts", s == (eye(8) + l).inverse()}};
}

/// A of 3 x 3 blocks of 2 x 2, lower triangular by blocks, its diagonal blocks full.
claim_values blocks() {
  fraction_matrix a = sample_matrix(6, 6, 92) + 9 * eye(6);
  a.block(0, 2, 2, 4).setZero();
  a.block(2, 4, 2, 2).setZero();
  const fraction_matrix b = a.inverse();
  const auto of = [](const fraction_matrix& m, int i, int j) -> fraction_matrix { return m.block(2 * i, 2 * j, 2, 2); };
  bool lower = true;
  bool diagonal = true;
  bool recursion = true;
  for (int i = 0; i < 3; ++i) {
    diagonal = diagonal && of(b, i, i) == of(a, i, i).inverse();
    for (int j = i + 1; j < 3; ++j) lower = lower && of(b, i, j).isZero(0);
    for (int j = 0; j < i; ++j) {
      fraction_matrix sum = zeros(2, 2);
      for (int m = j; m < i; ++m) sum += of(a, i, m) * of(b, m, j);
      recursion = recursion && of(b, i, j) == -of(a, i, i).inverse() * sum;
    }
  }
  // Two by two: the first four rows as 2 + 2.
  const fraction_matrix corner = -of(a, 1, 1).inverse() * of(a, 1, 0) * of(a, 0, 0).inverse();
  return {{"lower", lower}, {"diagonal", diagonal}, {"recursion_equal", recursion}, {"two_by_two_equal", of(b, 1, 0) == corner}};
}

/// Every algorithm of the library on one L, in fractions.
claim_values all_algorithms() {
  using plain = arithmetic<rational, rational, rational, sequential>;
  const fraction_matrix l = strictly_lower(sample_matrix(20, 20, 93));
  const fraction_matrix x = (eye(20) + l).inverse();
  const auto inverts = [&](const inverse_method& method) {
    return state_of(invert_unit_lower<plain>(method, library_state(l.transpose()))).transpose() == x;
  };
  std::uint64_t equal = 0;
  for (const named_inverse& row : inverse_methods) equal += inverts(row.method) ? 1 : 0;
  return {{"algorithms", inverse_methods.size()},
          {"equal", equal},
          {"doubling_in_blocks_equal", inverts(inverse_named("neumann8+block"))}};
}

}  // namespace

std::span<const claim_check> inverse_checks() {
  static constexpr auto all = std::to_array<claim_check>({{"neumann", exactly, neumann},
                                                          {"doubling", exactly, doubling},
                                                          {"blocks", exactly, blocks},
                                                          {"all_algorithms", exactly, all_algorithms}});
  return all;
}

}  // namespace deltaproof::claim_detail
