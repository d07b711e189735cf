// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
//
// A few tokens of one head as integers with powers of two, for the tiers whose rows are integers. What a problem states
// exactly is exact here: keys and queries are single limbs (more where their exponents spread), also where the kernel
// normalises them, since x / |x| is an exact vector times one derived number. Derived numbers are enclosed to 128 bits
// beyond the working precision. Source: proofs/notes/oracle-radius.md, "The fixed-point tier".
#pragma once

#include <gmp.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "deltaproof/oracle/problem.hpp"

namespace deltaproof::tiers {

/// An integer that owns its limbs; arithmetic is written out as GMP calls.
class integer {
 public:
  integer() { mpz_init(x_); }
  integer(const integer& other) { mpz_init_set(x_, other.x_); }
  integer(integer&& other) noexcept : integer() { mpz_swap(x_, other.x_); }
  integer& operator=(const integer& other) {
    mpz_set(x_, other.x_);
    return *this;
  }
  integer& operator=(integer&& other) noexcept {
    mpz_swap(x_, other.x_);
    return *this;
  }
  ~integer() { mpz_clear(x_); }

  [[nodiscard]] mpz_ptr get() noexcept { return x_; }
  [[nodiscard]] mpz_srcptr get() const noexcept { return x_; }

 private:
  mpz_t x_;
};

/// m 2^exponent; `relative` bounds |exact - this| / |this| and `floor` what comes on top, both in units of 2^-bits.
struct integer_scalar {
  integer m;
  long exponent = 0;
  double relative = 0;
  double floor = 0;
  double size = 0;  ///< |m 2^exponent|, rounded up

  /// The double x, exactly.
  void set(double x);
};

/// A vector of doubles as m_j 2^exponent. Zeros are left out; what is positive comes first.
struct integer_vector {
  long exponent = 0;
  std::size_t limbs = 0;  ///< of each m_j; 0 where every entry is 0
  std::size_t positive = 0;
  std::vector<std::uint32_t> channel;
  std::vector<mp_limb_t> magnitude;  ///< |m_j|
  double norm = 0;                   ///< a bound on |m| 2^-(64 (limbs - 1))
  double rounded = 0;                ///< a bound on |x 2^-exponent - m|; 0: nothing was rounded

  /// Reads: x. Rounds: to nearest where exponents spread over more than 64 `most_limbs` bits.
  void set(std::span<const double> x, std::size_t most_limbs);
  [[nodiscard]] long top_exponent() const { return exponent + 64 * (static_cast<long>(limbs) - 1); }
};

/// S += key write (v - inverse key^T S); the step is `write` without normalisation.
struct integer_step {
  integer_vector key;
  integer_scalar write;
  integer_scalar inverse;  ///< of the key's norm, where it is normalised
  bool normalised = false;
  double rho = 1;  ///< line R
};

/// The factor of one row of the state, or of all: m 2^(-64 shift), m of `decay_limbs` limbs.
enum class decay_value : std::uint8_t { one, zero, other };

struct integer_token {
  integer_vector query;
  integer_scalar inverse;
  bool normalised = false;
  std::vector<decay_value> decay;  ///< empty, 1 or K
  std::vector<mp_limb_t> decay_m;  ///< decay_limbs each
  std::vector<long> decay_shift;
  double decay_largest = 0;  ///< >= max |alpha|
  bool fits = true;          ///< no decay is beyond what can be carried
};

struct integer_block {
  std::size_t first = 0;  ///< token
  std::vector<integer_token> tokens;
  std::vector<integer_step> steps;
  std::size_t decay_limbs = 0;
  std::size_t wide = 0;     ///< vectors of more than one limb
  std::size_t rounded = 0;  ///< vectors that were rounded
};

/// Tokens of one head, block by block.
class integer_lowering {
 public:
  /// For a working precision of `bits`; 0: exactly.
  integer_lowering(const problem& p, std::size_t sequence_index, std::size_t value_head, int bits);

  [[nodiscard]] std::size_t tokens() const { return range_.tokens; }
  /// Tokens [first, first + count), shared among `threads`. Exactly: as many of them as have only dyadic factors.
  /// Throws: as lower.
  void block(std::size_t first, std::size_t count, unsigned threads, integer_block& out) const;

  [[nodiscard]] double value(std::size_t row, std::size_t column) const { return p_.v.at(value_base(row) + column); }
  [[nodiscard]] double start(std::size_t channel, std::size_t column) const;

  /// Limbs of a number of the exact state, summed over the first ends[i] tokens, from the powers of two of keys, steps and
  /// values and from log2 |S| <= size: cancellation and common powers of two may leave fewer. `ends` ascend; what comes out is
  /// shorter where a factor is not dyadic, beyond `cap` bits a number or beyond a sum of `limit`.
  [[nodiscard]] std::vector<double> exact_limbs(std::span<const std::size_t> ends, double size, double cap, double limit) const;

 private:
  [[nodiscard]] bool lower_token(std::size_t t, std::size_t decay_limbs, integer_token& out) const;
  [[nodiscard]] bool lower_step(std::size_t row, integer_step& out) const;
  [[nodiscard]] bool exact_step(std::size_t row, std::span<const double> key, integer_scalar& out) const;
  [[nodiscard]] std::string place_of(std::size_t row) const;
  [[nodiscard]] std::size_t token_at(std::size_t t) const { return range_.batch * p_.tokens() + range_.first_token + t; }
  [[nodiscard]] std::size_t row_at(std::size_t r) const {
    return range_.batch * p_.steps() + range_.first_token * p_.num_householder + r;
  }
  [[nodiscard]] std::size_t value_base(std::size_t r) const { return (row_at(r) * p_.value_heads() + head_) * p_.value_dim(); }

  const problem& p_;
  std::size_t sequence_;
  std::size_t head_;
  sequence_range range_;
  int bits_;
};

}  // namespace deltaproof::tiers
