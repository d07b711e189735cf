// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
//
// What the checks of the claims are written with: small exact matrices in the documents' own orientation (states V x K,
// o = S q), and enclosures. A check is a function of src/claims/checks/<subject>.cpp that returns named values, and a row
// of the table at that file's end; rows of src/claims/*.toml name it and say what must hold of the values.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "deltaproof/algebra/matrix.hpp"
#include "deltaproof/number/rational.hpp"
#include "deltaproof/study/claim.hpp"

namespace deltaproof::claim_detail {

[[nodiscard]] std::span<const claim_check> step_checks();
[[nodiscard]] std::span<const claim_check> stability_checks();
[[nodiscard]] std::span<const claim_check> flow_checks();
[[nodiscard]] std::span<const claim_check> logistic_checks();
[[nodiscard]] std::span<const claim_check> chunk_checks();
[[nodiscard]] std::span<const claim_check> inverse_checks();
[[nodiscard]] std::span<const claim_check> recall_checks();
[[nodiscard]] std::span<const claim_check> recall_run_checks();
[[nodiscard]] std::span<const claim_check> practice_checks();

/// A number known to lie in low ... high.
struct enclosure {
  rational low;
  rational high;
  enclosure(const rational& exactly) : low(exactly), high(exactly) {}
  enclosure(const rational& least, const rational& most) : low(least), high(most) {}
};
[[nodiscard]] enclosure operator+(const enclosure&, const enclosure&);
[[nodiscard]] enclosure operator-(const enclosure&, const enclosure&);
[[nodiscard]] enclosure operator*(const enclosure&, const enclosure&);
/// Throws domain_error if 0 may be the divisor.
[[nodiscard]] enclosure operator/(const enclosure&, const enclosure&);
/// `name`, the middle in double, and `name_radius`, within which the number lies.
void put(claim_values&, const std::string& name, const enclosure&);
/// The same of its square root, of what is not below 0.
void put_root(claim_values&, const std::string& name, const enclosure&);

using fraction_matrix = matrix<rational>;
using fraction_vector = std::vector<rational>;

[[nodiscard]] rational fraction(long numerator, long denominator);
[[nodiscard]] std::string text_of(const rational&);
[[nodiscard]] double approximate(const rational&);

/// Deterministic small fractions: different `which`, different entries.
[[nodiscard]] fraction_matrix sample_matrix(std::size_t rows, std::size_t columns, unsigned which);
[[nodiscard]] fraction_vector sample_vector(std::size_t length, unsigned which);

[[nodiscard]] fraction_matrix product(const fraction_matrix&, const fraction_matrix&);
[[nodiscard]] fraction_vector product(const fraction_matrix&, const fraction_vector&);
/// a + factor * b.
[[nodiscard]] fraction_matrix combined(const fraction_matrix& a, const rational& factor, const fraction_matrix& b);
/// x y^T.
[[nodiscard]] fraction_matrix outer(const fraction_vector& x, const fraction_vector& y);
[[nodiscard]] rational inner(const fraction_vector&, const fraction_vector&);
[[nodiscard]] fraction_vector scaled(const rational& factor, const fraction_vector&);
/// Row t of a matrix as a column.
[[nodiscard]] fraction_vector row_of(const fraction_matrix&, std::size_t t);
/// Sum of squares of the entries.
[[nodiscard]] rational squares(const fraction_matrix&);
/// Entry by entry, above the diagonal 0; without the diagonal if `strict`.
[[nodiscard]] fraction_matrix lower_part(const fraction_matrix&, bool strict);
/// Gauss-Jordan. Throws domain_error if there is none.
[[nodiscard]] fraction_matrix inverse(const fraction_matrix&);
/// I - b k k^T.
[[nodiscard]] fraction_matrix transition(const fraction_vector& k, const rational& b);
/// S - b (S k - v) k^T.
[[nodiscard]] fraction_matrix delta_step(const fraction_matrix& s, const fraction_vector& k, const fraction_vector& v,
                                         const rational& b);

}  // namespace deltaproof::claim_detail
