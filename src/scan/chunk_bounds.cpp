// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT

#include "deltaproof/scan/chunk_bounds.hpp"

#include <algorithm>
#include <limits>
#include <string>

#include "deltaproof/support/errors.hpp"
#include "support/text.hpp"

namespace deltaproof {
namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();

/// gamma_n(u) = n u / (1 - n u), infinite from n u = 1 on.
double gamma(std::size_t n, double u) {
  const double nu = static_cast<double>(n) * u;
  return nu < 1 ? nu / (1 - nu) : infinity;
}

}  // namespace

chunk_bounds exact_chunk_bounds(double beta, std::size_t chunk) {
  if (!(beta >= 0 && beta <= 2)) {
    throw domain_error("chunk bounds: the largest step is " + detail::shortest(beta) +
                       "; the bounds hold for keys of length at most 1 and steps in [0, 2]");
  }
  if (chunk == 0) throw domain_error("chunk bounds: the chunk length is 0; give at least 1 row");
  const double row = 1 + beta * static_cast<double>(chunk - 1);
  return {std::max(1.0, beta), std::max(beta, beta * beta), beta, 1, row * row};
}

chunk_bounds rounded_chunk_bounds(double beta, std::size_t chunk, std::size_t key_dim, const chunk_roundoffs& u) {
  for (const double roundoff : {u.gram, u.substitution, u.operand, u.product, u.store}) {
    if (!(roundoff >= 0 && roundoff < 1)) {
      throw domain_error("chunk bounds: " + detail::shortest(roundoff) + " is not a unit roundoff; give 2^-p, or 0 for exact");
    }
  }
  chunk_bounds result = exact_chunk_bounds(beta, chunk);
  const double rows = static_cast<double>(chunk);
  const double row = 1 + beta * (rows - 1);
  const double overlap = gamma(key_dim + 1, u.gram) * beta;
  const double perturbation = (overlap + gamma(chunk, u.substitution) * (beta + overlap)) * (rows - 1) * row;
  if (!(perturbation < 0.9)) {  // nearer to 1 the denominator itself loses its digits
    result.inverse_entry = result.w_norm = result.transition_norm = infinity;
    return result;
  }
  const double entry = std::max(1.0, beta) / (1 - perturbation);
  const double stored_error = perturbation * entry + u.store * entry;
  const double rounding = (1 + u.operand) * (1 + gamma(chunk, u.product)) * (1 + u.store) - 1;
  const double w_error = rows * beta * (stored_error + rounding * (1 + u.store) * entry);
  // Eleven roundings of these lines themselves lie far inside this factor.
  constexpr double up = 1 + 0x1p-40;
  // Infinity times zero: nothing is known there either.
  const auto bounded = [](double x) { return x == x ? x * up : infinity; };
  result.inverse_entry = bounded((1 + u.store) * entry);
  result.w_norm = bounded(beta + w_error);
  result.transition_norm = bounded(1 + rows * w_error);
  return result;
}

}  // namespace deltaproof
