// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
//
// Words in the symmetric group, followed by a delta rule: a transposition (i j) is the step with the key e_i - e_j, |k|^2 = 2,
// and b = 1, or with (e_i - e_j) / sqrt 2 and b = 2; a permutation of n things is at most n - 1 of them. The state starts as I
// and should be the permutation matrix of the word so far; the answer is read as the largest entry of each row.
#pragma once

#include "deltaproof/number/rational.hpp"
#include "studies/shared/common.hpp"

namespace deltaproof::detail::negative_eigenvalues {

/// The elements of S_n as images of 0 ... n-1, and the transpositions.
using permutation = std::vector<std::size_t>;
struct transposition {
  std::size_t i = 0, j = 0;
};
[[nodiscard]] std::vector<permutation> all_permutations(std::size_t n);
[[nodiscard]] std::vector<transposition> all_transpositions(std::size_t n);
/// Steps that, one after the other, bring rows 0 ... n-1 into the order p: row i of the result is row p[i]. At most n - 1.
[[nodiscard]] std::vector<transposition> as_transpositions(const permutation& p);

/// Every element times every transposition, as steps with k = e_i - e_j and b = 1, over rationals and over bf16, fp16 and e4m3
/// with every operation rounded: by induction, every word.
struct exactness {
  std::uint64_t cases = 0;
  std::uint64_t exact = 0;
};
[[nodiscard]] exactness check_every_step(std::size_t n);

/// How a run is executed: the key's entry 1/sqrt 2 rounded to a format, the state in a format after each step, sums in fp32
/// (fp64 where the state is fp64). `reference`: 256 bits, key entry and all.
struct execution {
  std::string_view name;
  format key;
  format state;
  bool reference = false;
};
inline constexpr std::array<execution, 6> executions{{{"bf16", bf16, bf16},
                                                      {"fp16", fp16, fp16},
                                                      {"mixed", bf16, fp32},
                                                      {"fp32", fp32, fp32},
                                                      {"fp64", fp64, fp64},
                                                      {"reference", fp64, fp64, true}}};

/// What is read along one word of uniformly random elements of S_n. The lead of a state is the least, over its rows, of the right
/// entry less the largest other one: 1 for a permutation matrix, and an answer is wrong where it is not positive.
struct horizon {
  std::size_t wrong = 0;  ///< first token with a wrong answer; 0: none
  std::size_t faint = 0;  ///< first token with a lead below 1/2; 0: none
  double lead = 1;        ///< at the last token looked at; the run ends with a wrong answer
};
/// The key is (e_i - e_j) / sqrt 2 and the step b, or e_i - e_j and the step b / 2.
[[nodiscard]] horizon follow_word(const execution&, std::size_t n, double step, bool unit_key, std::size_t tokens,
                                  std::uint64_t seed, std::uint64_t word);
/// The horizon at q (n - 1), rounded down, in ascending order, 0 ("none") after all others.
[[nodiscard]] aggregate_function horizon_at(double q);

/// |k|^2 of the key (x, -x) with x = 1/sqrt 2 rounded to a format, exactly.
[[nodiscard]] rational unit_key_square(const format& f);
/// ln 2 / -ln |lambda|: after how many reflections half of an eigen-direction is left. Infinite for |lambda| = 1. Error: below
/// 1e-15 relative, computed in 256 bits.
[[nodiscard]] double half_life(const rational& lambda);

}  // namespace deltaproof::detail::negative_eigenvalues
