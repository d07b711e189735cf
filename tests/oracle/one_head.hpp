// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
//
// A problem of one head in fp64 from the numbers of its tensors.
#pragma once

#include <cstddef>
#include <vector>

#include "deltaproof/oracle/problem.hpp"

namespace deltaproof::testing {

using numbers = std::vector<double>;

/// One head in fp64: T from q and K, V from v; `g` by token or by channel.
inline problem head(std::size_t K, const numbers& q, const numbers& k, const numbers& v, const numbers& beta,
                    const numbers& g = {}, const numbers& start = {}) {
  problem p;
  const std::size_t T = q.size() / K, V = v.size() / T;
  p.q = tensor::from_doubles(fp64, {1, T, 1, K}, q, "q");
  p.k = tensor::from_doubles(fp64, {1, T, 1, K}, k, "k");
  p.v = tensor::from_doubles(fp64, {1, T, 1, V}, v, "v");
  p.beta = tensor::from_doubles(fp64, {1, T, 1}, beta, "beta");
  if (!g.empty()) {
    p.op = g.size() == T ? op_kind::gated_delta_rule : op_kind::kda;
    p.g = g.size() == T ? tensor::from_doubles(fp64, {1, T, 1}, g, "g") : tensor::from_doubles(fp64, {1, T, 1, K}, g, "g");
  }
  if (!start.empty()) p.initial_state = tensor::from_doubles(fp64, {1, 1, K, V}, start, "initial_state");
  validate(p, "one head");
  return p;
}

}  // namespace deltaproof::testing
