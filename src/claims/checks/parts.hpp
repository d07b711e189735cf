// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
//
// What the checks of the claims are written with: matrices of fractions in the documents' own orientation (states V x K,
// o = S q), and enclosures. A check is a function of src/claims/checks/<subject>.cpp that returns named values, and a row
// of the table at that file's end; rows of src/claims/*.toml name it and say what must hold of the values.
#pragma once

#include <Eigen/LU>
#include <algorithm>
#include <array>
#include <boost/multiprecision/eigen.hpp>
#include <boost/numeric/interval.hpp>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <map>
#include <numeric>
#include <span>
#include <string>
#include <vector>

#include "deltaproof/algebra/matrix.hpp"
#include "deltaproof/number/rational.hpp"
#include "deltaproof/study/claim.hpp"
#include "deltaproof/support/errors.hpp"

namespace deltaproof::claim_detail {

[[nodiscard]] std::span<const claim_check> step_checks();
[[nodiscard]] std::span<const claim_check> stability_checks();
[[nodiscard]] std::span<const claim_check> flow_checks();
[[nodiscard]] std::span<const claim_check> chunk_checks();
[[nodiscard]] std::span<const claim_check> recall_checks();
[[nodiscard]] std::span<const claim_check> recall_run_checks();
[[nodiscard]] std::span<const claim_check> practice_checks();
inline constexpr claim_method exactly = claim_method::exact_check;

/// Of arithmetic on enclosures: without infinities a quotient by what may be 0 has no bounds.
struct bounded : boost::numeric::interval_lib::checking_base<rational> {
  [[noreturn]] static rational pos_inf() { throw domain_error("enclosure: the divisor may be 0"); }
  [[noreturn]] static rational neg_inf() { pos_inf(); }
};
/// A number known to lie between two fractions.
using enclosure = boost::numeric::interval<
    rational,
    boost::numeric::interval_lib::policies<
        boost::numeric::interval_lib::save_state_nothing<boost::numeric::interval_lib::rounded_arith_exact<rational>>, bounded>>;
/// `name`, the middle in double, and `name_radius`, within which the number lies.
void put(claim_values&, const std::string& name, const enclosure&);
/// The same of its square root, of what is not below 0.
void put_root(claim_values&, const std::string& name, const enclosure&);

using fraction_matrix = Eigen::Matrix<rational, Eigen::Dynamic, Eigen::Dynamic>;
using fraction_vector = Eigen::Matrix<rational, Eigen::Dynamic, 1>;
/// Of samples: K and V.
inline constexpr std::size_t channels = 3, width = 2;

[[nodiscard]] rational fraction(long numerator, long denominator);
[[nodiscard]] std::string text_of(const rational&);
[[nodiscard]] double approximate(const rational&);

/// Deterministic small fractions: different `which`, different entries.
[[nodiscard]] fraction_matrix sample_matrix(std::size_t rows, std::size_t columns, unsigned which);
[[nodiscard]] fraction_vector sample_vector(std::size_t length, unsigned which);
/// 1 on the diagonal.
[[nodiscard]] fraction_matrix eye(std::size_t n);
[[nodiscard]] fraction_matrix zeros(std::size_t rows, std::size_t columns);
/// Without the diagonal.
[[nodiscard]] fraction_matrix strictly_lower(const fraction_matrix&);
/// I - b k k^T.
[[nodiscard]] fraction_matrix transition(const fraction_vector& k, const rational& b);
/// S - b (S k - v) k^T.
[[nodiscard]] fraction_matrix delta_step(const fraction_matrix& s, const fraction_vector& k, const fraction_vector& v,
                                         const rational& b);

/// The library's states are K x V, by rows: the same numbers in the same order.
[[nodiscard]] matrix<rational> library_state(const fraction_matrix&);
[[nodiscard]] fraction_matrix state_of(const matrix<rational>&);
[[nodiscard]] inline std::span<const rational> span_of(const fraction_vector& x) {
  return {x.data(), static_cast<std::size_t>(x.size())};
}

}  // namespace deltaproof::claim_detail
