// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT

#include "studies/shared/long_tokens.hpp"

#include <algorithm>

#include "deltaproof/number/format.hpp"
#include "studies/shared/formats.hpp"
#include "studies/shared/functions.hpp"
#include "studies/shared/keys.hpp"

namespace deltaproof::detail::shared {

namespace {

// ln(1 + e^x).
double softplus(double x) { return x > 30 ? x : ln(1 + exp64(x)); }

}  // namespace

token_source::token_source(const head& h, const shape& s, std::uint64_t seed)
    : head_{h}, shape_{s}, choice_(seed, 21), gate_(seed, 22), step_(seed, 23), noise_(seed, 24) {
  // softplus(b) = dt: b = dt + ln(1 - e^-dt).
  bias_ = h.dt + ln(1 - exp64(-h.dt));
  philox words(seed, 25);
  words_.resize(s.words * s.key_dim);
  values_.resize(s.words * s.value_dim);
  for (std::size_t w = 0; w < s.words; ++w) {
    const std::span<double> key(words_.data() + w * s.key_dim, s.key_dim);
    draw(words, key);
    normalise(key);
    for (double& x : key) x = round_nearest(x, bf16);
    draw(words, {values_.data() + w * s.value_dim, s.value_dim});
    frequency_.push_back((frequency_.empty() ? 0 : frequency_.back()) + 1 / static_cast<double>(w + 1));
  }
}

tokens token_source::next(std::size_t count) {
  tokens t;
  for (std::size_t i = 0; i < count; ++i) {
    const double at = choice_.uniform() * frequency_.back();
    const auto word = static_cast<std::size_t>(std::upper_bound(frequency_.begin(), frequency_.end(), at) - frequency_.begin());
    const auto key = words_.begin() + static_cast<std::ptrdiff_t>(word * shape_.key_dim);
    t.k.insert(t.k.end(), key, key + static_cast<std::ptrdiff_t>(shape_.key_dim));
    for (std::size_t j = 0; j < shape_.value_dim; ++j) {
      t.v.push_back(round_nearest(values_[word * shape_.value_dim + j] + 0.5 * noise_.normal(), bf16));
    }
    t.beta.push_back(round_nearest(1 / (1 + exp64(-(step_.normal() + head_.logit))), fp32));
    const double drawn = gate_.normal();
    t.g.push_back(head_.rate == 0 ? 0 : round_nearest(-head_.rate * softplus(drawn + bias_), fp32));
    t.decay.push_back(t.g.back() == 0 ? 1 : exp32(t.g.back()));
  }
  return t;
}

}  // namespace deltaproof::detail::shared
