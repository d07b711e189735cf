// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
//
// The equations of gradient_identities.hpp on given numbers: `equations_of(asked, given)`.
#pragma once

#include <array>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "deltaproof/number/format.hpp"
#include "deltaproof/oracle/problem.hpp"

namespace deltaproof::check_detail {

/// What a result gives; the inputs of a problem are the coefficients.
enum quantity : std::size_t { of_o, of_final_state, of_dq, of_dk, of_dv, of_dbeta, of_dg, of_dinitial_state, quantities };
inline constexpr std::array<std::string_view, quantities> quantity_names{"o",  "final_state", "dq", "dk",
                                                                         "dv", "dbeta",       "dg", "dinitial_state"};

/// Row-major as in the exchange format, states (K, V); no format: absent.
struct answers {
  std::array<std::vector<double>, quantities> value;
  std::array<std::vector<double>, quantities> variance;  ///< what each may be off by, beside the rounding to its format; or empty
  std::array<std::optional<format>, quantities> stored;

  [[nodiscard]] bool has(quantity x) const { return stored[x].has_value(); }
  /// The variance of rounding element i to its format; 0 where it is not finite.
  [[nodiscard]] double rounding(quantity x, std::size_t i) const;
  [[nodiscard]] double off(quantity x, std::size_t i) const { return variance[x].empty() ? 0 : variance[x][i]; }
};

/// The problem's tensors; empty where absent.
struct inputs_as_doubles {
  explicit inputs_as_doubles(const problem& p);
  const problem& asked;
  std::vector<double> q, k, v, beta, initial_state, d_o, d_final_state;
};

/// The equations of one identity in one head of one sequence.
struct head_equations {
  std::size_t sequence = 0;
  std::size_t head = 0;
  std::vector<double> residual;  ///< left side less right side
  std::vector<double> expected;  ///< its variance where answers err by themselves; empty where they have no order in time
  double rounding_sum = 0;       ///< variance from storing the answers, summed over the equations
  double expected_sum = 0;       ///< the same with what answers may be off by
  std::array<double, quantities> squares{};  ///< sum over the equations of the squares of the terms with this quantity

  [[nodiscard]] double terms() const;  ///< the sum of `squares`
};

struct identity_equations {
  std::string_view name;
  std::string_view statement;
  std::string missing;  ///< empty: formed
  bool by_token = false;
  bool by_key_head = false;
  std::size_t steps = 1;  ///< equations a token
  std::vector<head_equations> heads = {};

  /// Of the sequence of one of its heads; I3 has an equation more.
  [[nodiscard]] std::size_t tokens(const head_equations& of) const { return of.residual.size() / steps - (name == "I3" ? 1 : 0); }
};

/// I1, I2, I3, I4, I4M and I5, in this order.
[[nodiscard]] std::vector<identity_equations> equations_of(const inputs_as_doubles& asked, const answers& given);

}  // namespace deltaproof::check_detail
