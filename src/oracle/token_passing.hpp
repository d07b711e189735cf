// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
//
// What was read of a problem whose tensors lie in a mapped file leaves memory as its tokens are passed, some megabytes at a
// time. Of other problems nothing changes.
#pragma once

#include <algorithm>
#include <cstddef>

#include "deltaproof/oracle/problem.hpp"

namespace deltaproof {

class token_passing {
 public:
  /// From token `from` of a sequence on.
  token_passing(const problem& p, const sequence_range& range, std::size_t from = 0)
      : p_{p}, range_{range}, kept_{from}, back_{range.tokens} {
    std::size_t bytes = 0;
    each([&](const tensor& t, std::size_t per_token) { bytes += t.size() == 0 ? 0 : per_token * (t.bytes().size() / t.size()); });
    many_ = std::max<std::size_t>(1, at_once / std::max<std::size_t>(bytes, 1));
  }
  token_passing(const token_passing&) = delete;
  token_passing& operator=(const token_passing&) = delete;
  ~token_passing() {
    if (seen_ > kept_) forget(seen_);
    if (back_ < range_.tokens) forget(0, back_);
  }

  /// Those before `token` were read; fewer than before begin anew.
  void through(std::size_t token) {
    if (token < seen_) {
      if (seen_ > kept_) forget(seen_);
      kept_ = 0;
    }
    seen_ = token;
    if (token >= kept_ + many_) forget(token);
  }

  /// In reverse: those from `token` on were read.
  void back_to(std::size_t token) {
    if (token + many_ > back_) return;
    forget(token, back_);
    back_ = token;
  }

 private:
  static constexpr std::size_t at_once = std::size_t{1} << 21;  // bytes

  template <class F>
  void each(const F& f) const {
    const std::size_t n = p_.num_householder, HV = p_.value_heads();
    f(p_.q, p_.key_heads() * p_.key_dim());
    f(p_.k, n * p_.key_heads() * p_.key_dim());
    f(p_.v, n * HV * p_.value_dim());
    f(p_.beta, n * HV);
    if (p_.g) f(*p_.g, HV * (p_.gate_per_channel() ? p_.key_dim() : 1));
    if (p_.d_o) f(*p_.d_o, HV * p_.value_dim());
  }
  void forget(std::size_t from, std::size_t to) const {
    const std::size_t first = range_.batch * p_.tokens() + range_.first_token;
    each([&](const tensor& t, std::size_t per_token) { t.forget((first + from) * per_token, (to - from) * per_token); });
  }
  void forget(std::size_t to) {
    forget(kept_, to);
    kept_ = to;
  }

  const problem& p_;
  sequence_range range_;
  std::size_t kept_, back_;
  std::size_t seen_ = 0;
  std::size_t many_ = 1;
};

}  // namespace deltaproof
