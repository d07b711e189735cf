// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
//
// What the tables of claims are written with: where a claim comes from, its three kinds of evidence, and small exact
// matrices in the documents' own orientation (states V x K, o = S q). A table is a function of src/claims/<subject>.cpp,
// named here and joined in src/claims/claims.cpp; a new claim is one row, its check stands above it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

#include "deltaproof/algebra/matrix.hpp"
#include "deltaproof/number/rational.hpp"
#include "deltaproof/study/claim.hpp"

namespace deltaproof::claim_detail {

/// Bits of claim::sources, in the order of claim_documents().
inline constexpr unsigned blog_en = 1;
inline constexpr unsigned blog_zh = 2;
inline constexpr unsigned recall = 4;
inline constexpr unsigned blog_en_2 = 8;
inline constexpr unsigned notes = 16;
inline constexpr unsigned blog = blog_en | blog_zh | blog_en_2;

using claim_table = std::vector<claim>;
[[nodiscard]] claim_table step_claims();
[[nodiscard]] claim_table stability_claims();
[[nodiscard]] claim_table flow_claims();
[[nodiscard]] claim_table logistic_claims();
[[nodiscard]] claim_table chunk_claims();
[[nodiscard]] claim_table inverse_claims();
[[nodiscard]] claim_table recall_cost_claims();
[[nodiscard]] claim_table recall_error_claims();
[[nodiscard]] claim_table recall_length_claims();
[[nodiscard]] claim_table recall_moment_claims();
[[nodiscard]] claim_table recall_memory_claims();
[[nodiscard]] claim_table recall_information_claims();
[[nodiscard]] claim_table practice_claims();

[[nodiscard]] claim_evidence theorem(std::string_view path);
[[nodiscard]] claim_evidence finding_of(std::string_view study, std::string_view id, std::string_view because,
                                        claim_predicate holds);
[[nodiscard]] claim_evidence exact_check(std::string_view because, claim_values (*evaluate)(), claim_predicate holds);
[[nodiscard]] claim_evidence certified(std::string_view because, claim_values (*evaluate)(), claim_predicate holds);
[[nodiscard]] claim_evidence sampled(std::uint64_t n, std::uint64_t seed, std::string_view because, claim_values (*evaluate)(),
                                     claim_predicate holds);

/// `equal` is true: what an identity's check evaluates to.
[[nodiscard]] bool is_equal(const claim_values&);
/// |a - b| <= part |b|.
[[nodiscard]] bool within(double a, double b, double part);

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
