// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
//
// A lowered head and its cotangents token by token, in double-double or MPFR: a block of tokens is made when one of them is asked
// for. What is pointed to stays until another block is.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <optional>
#include <type_traits>
#include <utility>
#include <vector>

#include "oracle/gradients/chain.hpp"
#include "oracle/gradients/known.hpp"
#include "oracle/tiers/lower_double_double.hpp"
#include "oracle/token_passing.hpp"

namespace deltaproof {

/// A head of the double-double tiers as numbers of the field.
inline lowered<double_pair> joined(tiers::double_double_head head) {
  lowered<double_pair> out;
  auto& from = head.high.scan;
  auto& to = out.scan;
  to.tokens = from.tokens;
  to.steps_per_token = from.steps_per_token;
  to.key_dim = from.key_dim;
  to.value_dim = from.value_dim;
  const auto join = [](std::vector<double>& high, std::vector<double>&& low, std::vector<double_pair>& pairs) {
    pairs.reserve(high.size());
    for (std::size_t i = 0; i < high.size(); ++i) pairs.push_back({high[i], low.empty() ? 0 : low[i]});
    high = low = {};
  };
  join(from.q, std::move(head.q_low), to.q);
  join(from.k, std::move(head.k_low), to.k);
  join(from.v, {}, to.v);
  join(from.step, std::move(head.step_low), to.step);
  join(from.decay, std::move(head.decay_low), to.decay);
  to.initial_state = matrix<double_pair>(from.key_dim, from.value_dim);
  const auto& state = from.initial_state.entries();
  for (std::size_t i = 0; i < state.size(); ++i) to.initial_state.data()[i] = {state[i], 0};
  out.error = head.error;
  for (double* e :
       {&out.error.key, &out.error.query, &out.error.step, &out.error.decay, &out.error.step_floor, &out.error.decay_floor}) {
    *e *= tiers::pair_unit / pair_field::unit_roundoff;
  }
  return out;
}

template <class Field>
class head_tokens {
 public:
  using value = typename Field::value;
  using radius = typename Field::radius;

  head_tokens(const Field& field, int bits, const problem& p, std::size_t sequence_index, std::size_t h)
      : field_{field},
        bits_{bits},
        p_{p},
        sequence_{sequence_index},
        h_{h},
        range_{sequence_at(p, sequence_index)},
        passing_(p, range_) {
    if constexpr (in_pairs) {
      pairs_.emplace(p, sequence_index, h, 1, std::min(range_.tokens, block));
      underflowed_ = pairs_->underflowed();
    }
    load(0);
    error_ = in_.error;
    if constexpr (!in_pairs) {
      underflowed_ = in_.underflowed;
      for (std::size_t first = block; first < range_.tokens; first += block) {
        load(first);
        underflowed_ = underflowed_ || in_.underflowed;
        const auto join = [&](double lowering_error::* e) { error_.*e = std::max(error_.*e, in_.error.*e); };
        for (const auto e : {&lowering_error::key, &lowering_error::query, &lowering_error::step, &lowering_error::decay,
                             &lowering_error::step_floor, &lowering_error::decay_floor})
          join(e);
      }
      if (p.raw) error_.decay += std::ldexp(raw_gate_error(p, sequence_index, h), bits);
    }
  }

  [[nodiscard]] std::size_t tokens() const { return range_.tokens; }
  [[nodiscard]] bool underflowed() const { return underflowed_; }
  /// Of the whole head.
  [[nodiscard]] const lowering_error& error() const { return error_; }
  [[nodiscard]] bool normalises() const { return p_.qk_l2norm; }
  [[nodiscard]] bool decays() const { return p_.g.has_value(); }

  [[nodiscard]] const value* query(std::size_t t) { return of_token(t).q.data() + (t - first_) * p_.key_dim(); }
  [[nodiscard]] const value* decay(std::size_t t) {
    return of_token(t).decay.data() + (t - first_) * (p_.gate_per_channel() ? p_.key_dim() : 1);
  }
  [[nodiscard]] const value* key(std::size_t row) { return of_row(row).k.data() + own(row) * p_.key_dim(); }
  [[nodiscard]] const value* values(std::size_t row) { return of_row(row).v.data() + own(row) * p_.value_dim(); }
  [[nodiscard]] const value& step(std::size_t row) { return of_row(row).step[own(row)]; }
  [[nodiscard]] radius step_floor(std::size_t row) {
    of_row(row);
    if constexpr (!in_pairs) {
      if (!in_.step_floor.empty()) return in_.step_floor[own(row)];
    }
    return error_.step_floor;
  }
  [[nodiscard]] matrix<value> start() {
    load(0);
    return in_.scan.start();
  }
  /// Those of one token.
  [[nodiscard]] chain_factors factors(std::size_t t) const { return factors_of(p_, sequence_, h_, bits_, t, 1); }
  /// Times the scale, and what their magnitudes are at least.
  [[nodiscard]] const value* cotangents(std::size_t t) { return with(t).o.data() + (t - first_) * p_.value_dim(); }
  [[nodiscard]] const radius* cotangent_sizes(std::size_t t) { return with(t).o_size.data() + (t - first_) * p_.value_dim(); }
  [[nodiscard]] std::vector<value> state_cotangent() const { return state_cotangent_of(field_, p_, sequence_, h_); }

 private:
  static constexpr bool in_pairs = std::is_same_v<Field, pair_field>;
  static constexpr std::size_t block = 128;

  [[nodiscard]] std::size_t own(std::size_t row) const { return row - first_ * p_.num_householder; }
  const sequence<value>& of_token(std::size_t t) {
    load(t / block * block);
    return in_.scan;
  }
  const sequence<value>& of_row(std::size_t row) { return of_token(row / p_.num_householder); }
  [[nodiscard, gnu::noinline]] const token_cotangents<Field>& with(std::size_t t) {
    load(t / block * block);
    if (!with_) with_ = cotangents_of(field_, p_, sequence_, h_, first_, count());
    return *with_;
  }
  [[nodiscard]] std::size_t count() const { return std::min(block, range_.tokens - first_); }
  void load(std::size_t first) {
    if (!loaded_ || first != first_) make(first);
  }
  [[gnu::noinline]] void make(std::size_t first) {
    if (loaded_ && first < first_)
      passing_.back_to(first_);
    else
      passing_.through(first);
    loaded_ = true;
    first_ = first;
    with_.reset();
    if constexpr (in_pairs)
      in_ = joined(pairs_->block(first, count()));
    else
      in_ = lower_mpfr_tokens(p_, sequence_, h_, bits_, first, count());
  }

  Field field_;
  int bits_;
  const problem& p_;
  std::size_t sequence_, h_;
  sequence_range range_;
  std::optional<tiers::head_lowering> pairs_;
  token_passing passing_;
  lowered<value> in_;
  std::optional<token_cotangents<Field>> with_;
  lowering_error error_;
  std::size_t first_ = 0;
  bool loaded_ = false, underflowed_ = false;
};

}  // namespace deltaproof
