// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
//
// What gradients by columns read of a problem, some tokens at a time: a lowered head and its cotangents. What lies in a mapped
// file leaves memory as it is passed, forwards and in reverse.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <vector>

#include "oracle/tiers/adjoint_columns.hpp"
#include "oracle/tiers/lower_double_double.hpp"
#include "oracle/token_passing.hpp"

namespace deltaproof {

class column_reader {
 public:
  column_reader(const problem& p, std::size_t sequence_index, std::size_t h, bool pairs)
      : p_{p},
        sequence_{sequence_index},
        head_{h},
        pairs_{pairs},
        range_{sequence_at(p, sequence_index)},
        lowering_(p, sequence_index, h, 1, std::min(range_.tokens, whole_tokens)),
        passing_(p, range_) {}

  [[nodiscard]] tiers::column_source source() {
    return {range_.tokens, p_.num_householder, p_.key_dim(), p_.value_dim(),
            [this](std::size_t first, std::size_t count) { return slice(first, count); }};
  }
  /// The slice that was given last.
  [[nodiscard]] std::size_t first() const { return first_; }
  [[nodiscard]] const tiers::double_double_head& head() const { return *given_; }

 private:
  /// Fewer are read once, as a whole.
  static constexpr std::size_t whole_tokens = 512;

  [[nodiscard]] tiers::column_slice slice(std::size_t first, std::size_t count) {
    if (range_.tokens <= whole_tokens) {
      first = 0;
      count = range_.tokens;
    }
    if (first + count == range_.tokens) turned_ = true;
    first_ = first;
    given_ = &lowering_.block(first, count);
    read_cotangents(first, count);
    if (turned_)
      passing_.back_to(first + 1);
    else
      passing_.through(first);
    return {first, *given_, with_};
  }
  void read_cotangents(std::size_t first, std::size_t count) {
    const std::size_t cols = p_.value_dim(), keys = p_.key_dim(), heads = p_.value_heads();
    with_ = {};
    std::vector<double> x(cols);
    if (p_.d_o) {
      with_.o.resize(count * cols);
      if (pairs_) with_.o_low.resize(count * cols);
    }
    for (std::size_t t = 0; p_.d_o && t < count; ++t) {
      p_.d_o->read(((range_.batch * p_.tokens() + range_.first_token + first + t) * heads + head_) * cols, x);
      for (std::size_t v = 0; v < cols; ++v) {
        const double c = p_.scale * x[v];
        with_.o[t * cols + v] = c;
        if (pairs_) with_.o_low[t * cols + v] = std::fma(p_.scale, x[v], -c);
        if (c != 0 || x[v] == 0 || p_.scale == 0) continue;
        // A product that underflows to 0 is none.
        with_.o_size.resize(count * cols);
        with_.o_size[t * cols + v] = std::numeric_limits<double>::denorm_min();
      }
    }
    for (std::size_t i = 0; i < with_.o_size.size(); ++i) with_.o_size[i] = std::max(with_.o_size[i], std::fabs(with_.o[i]));
    if (!p_.d_final_state || first + count < range_.tokens) return;
    with_.state.resize(keys * cols);
    for (std::size_t i = 0; i < keys; ++i) {
      p_.d_final_state->read(((sequence_ * heads + head_) * keys + i) * cols, x);
      std::copy(x.begin(), x.end(), with_.state.begin() + static_cast<std::ptrdiff_t>(i * cols));
    }
  }

  const problem& p_;
  std::size_t sequence_, head_;
  bool pairs_;
  sequence_range range_;
  tiers::head_lowering lowering_;
  token_passing passing_;
  tiers::column_cotangents with_;
  const tiers::double_double_head* given_ = nullptr;
  std::size_t first_ = 0;
  bool turned_ = false;
};

}  // namespace deltaproof
