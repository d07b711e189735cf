// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
//
// The lowering of oracle/lower.hpp for the double-double tier: one head of a problem with every derived number as
// high + low, as a whole or some tokens at a time. Its high parts are the head of the fp64 tier.
#pragma once

#include <cstddef>
#include <vector>

#include "deltaproof/oracle/problem.hpp"
#include "oracle/tiers/head.hpp"

namespace deltaproof::tiers {

/// Head `value_head` of sequence `sequence_index`. Given values have no low part; `high.error` is in units of 2^-53,
/// `error` in units of 2^-106. The same bits with any number of threads. Throws: as lower.
[[nodiscard]] double_double_head lower_double_double(const problem& p, std::size_t sequence_index, std::size_t value_head,
                                                     unsigned threads = 1);

/// What the error constants of a head follow from, over all of its tokens.
struct lowering_facts {
  bool fits = true;            ///< false: a derived key, query or step is too small for a low part, or a gate too large
  bool gates_derived = false;  ///< a gate is neither 0 nor -inf
  bool floored = false;        ///< a decay that is nearly nothing became nothing
};

/// Effective steps of a rule that is not Euler's, as 106 bits; empty with Euler's.
struct derived_steps {
  std::vector<double> high, low;
  double floor = 0;          ///< lowering_error::step_floor in units of 2^-106
  double largest_value = 0;  ///< of |v|
  bool fits = true;
};

/// The same head some tokens at a time: the same bits and error constants. Memory: a block of tokens, and two numbers a step
/// with any rule but Euler's, whose gains MPFR evaluates once; the head as a whole where a block is. Throws: as lower.
class head_lowering {
 public:
  head_lowering(const problem& p, std::size_t sequence_index, std::size_t value_head, unsigned threads, std::size_t block_tokens);

  [[nodiscard]] std::size_t tokens() const { return range_.tokens; }
  [[nodiscard]] bool underflowed() const { return !facts_.fits; }
  /// As tiers::largest_value of the whole head.
  [[nodiscard]] double largest_value() const { return steps_.floor > 0 ? steps_.largest_value : 0; }
  /// Tokens [first, first + count), until the next call.
  [[nodiscard]] const double_double_head& block(std::size_t first, std::size_t count);

 private:
  const problem& p_;
  std::size_t sequence_;
  std::size_t head_;
  unsigned threads_;
  sequence_range range_;
  lowering_facts facts_;
  derived_steps steps_;
  double raw_gate_ = 0;
  bool is_whole_ = false;  // what block_ is
  double_double_head block_;
};

}  // namespace deltaproof::tiers
