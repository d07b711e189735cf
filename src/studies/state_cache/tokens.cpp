// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT

#include "studies/state_cache/tokens.hpp"

namespace deltaproof::detail::state_cache {

namespace {

// ln(1 + e^x).
double softplus(double x) { return x > 30 ? x : shared::ln(1 + shared::exp64(x)); }

}  // namespace

token_list draw_tokens(const head& h, const shape& s, std::size_t count, std::uint64_t seed) {
  std::vector<double> keys(s.words * s.key_dim), values(s.words * s.value_dim), frequency;
  philox words(seed, 25);
  for (std::size_t w = 0; w < s.words; ++w) {
    const std::span<double> key(keys.data() + w * s.key_dim, s.key_dim);
    shared::draw(words, key);
    shared::normalise(key);
    for (double& x : key) x = round_nearest(x, bf16);
    shared::draw(words, {values.data() + w * s.value_dim, s.value_dim});
    frequency.push_back((frequency.empty() ? 0 : frequency.back()) + 1 / static_cast<double>(w + 1));
  }
  // softplus(bias) = dt: bias = dt + ln(1 - e^-dt).
  const double bias = h.dt + shared::ln(1 - shared::exp64(-h.dt));
  philox choice(seed, 21), gate(seed, 22), step(seed, 23), noise(seed, 24);
  token_list t;
  for (std::size_t i = 0; i < count; ++i) {
    const double at = choice.uniform() * frequency.back();
    const auto word = static_cast<std::size_t>(std::upper_bound(frequency.begin(), frequency.end(), at) - frequency.begin());
    const auto key = keys.begin() + static_cast<std::ptrdiff_t>(word * s.key_dim);
    t.k.insert(t.k.end(), key, key + static_cast<std::ptrdiff_t>(s.key_dim));
    for (std::size_t j = 0; j < s.value_dim; ++j) {
      t.v.push_back(round_nearest(values[word * s.value_dim + j] + 0.5 * noise.normal(), bf16));
    }
    t.beta.push_back(round_nearest(1 / (1 + shared::exp64(-(step.normal() + h.logit))), fp32));
    t.g.push_back(round_nearest(-h.rate * softplus(gate.normal() + bias), fp32));
    t.decay.push_back(shared::exp32(t.g.back()));
  }
  return t;
}

}  // namespace deltaproof::detail::state_cache
