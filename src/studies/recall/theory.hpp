// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
//
// Expected errors in closed form, for keys and queries that are independent uniform unit vectors and values v = f(k) element by
// element. With m = E f^2, mu = E f(k) k of one coordinate and r = 1 - 1/d, after t tokens from S = 0:
//   Hebbian, query apart:   E (Sq - v)^2 = m (1 + t/d) + t (t-1) mu^2 / d
//   delta rule, beta = 1, query apart:      m (2 - r^t)
//   delta rule, beta = 1, own key, before:  m (2 - r^(t-1)) - 2 d mu^2 (1 - r^(t-1))
//   least squares of k, identity, query apart, no ridge: (1 + min(t/d, 1)) / d
// all of them exact. Second line: |S'|^2 = |S - S k k^T|^2 + |v|^2 since (I - k k^T) k = 0, E |S k|^2 = E |S|^2 / d, and
// E q = 0. Third: E S' = r E S + mu I, as E f(k_i) k_j = 0 for i != j (k_j and -k_j are alike). For a step beta, at t = infinity:
//   own key, before:  2 (m - d mu^2) / (2 - beta), and m - d mu^2 is the error of the best linear map.
#pragma once

#include <cstddef>

#include "studies/recall/tasks.hpp"

namespace deltaproof::detail::recall {

/// At token t >= 1 (`last`), and the mean over tokens 1 ... T (`prefix`).
struct expectation {
  double last = 0;
  double prefix = 0;
};
[[nodiscard]] expectation hebbian_apart(const moments&, std::size_t key_dim, std::size_t tokens);
[[nodiscard]] expectation delta_apart(const moments&, std::size_t key_dim, std::size_t tokens);
[[nodiscard]] expectation delta_own_before(const moments&, std::size_t key_dim, std::size_t tokens);
[[nodiscard]] expectation identity_least_squares_apart(std::size_t key_dim, std::size_t tokens);
/// 2 (m - d mu^2) / (2 - beta).
[[nodiscard]] double delta_own_before_limit(const moments&, std::size_t key_dim, double beta);

}  // namespace deltaproof::detail::recall
