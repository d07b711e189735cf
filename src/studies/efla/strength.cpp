// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT

#include "studies/efla/strength.hpp"

#include <algorithm>
#include <cmath>

#include "deltaproof/number/random.hpp"
#include "deltaproof/number/rounded.hpp"
#include "deltaproof/rule/rules.hpp"
#include "deltaproof/scan/recurrent.hpp"
#include "studies/efla/coefficient.hpp"
#include "studies/shared/keys.hpp"

namespace deltaproof::detail::efla {

std::string_view name_of(normalisation how) {
  switch (how) {
    case normalisation::l2:
      return "L2";
    case normalisation::l1:
      return "L1";
    case normalisation::rms:
      return "RMS";
    case normalisation::none:
      return "none";
  }
  return "";
}

norm_sample sample_norms(normalisation how, std::size_t key_dim, std::size_t keys, std::uint64_t seed) {
  norm_sample result;
  result.how = how;
  result.key_dim = key_dim;
  result.keys = keys;
  result.smallest = INFINITY;
  // The same keys and strengths for every normalisation.
  philox random(seed, 0x65666c6300000000U + key_dim);
  std::vector<double> k(key_dim);
  double sum = 0;
  double squares = 0;
  for (std::size_t i = 0; i < keys; ++i) {
    shared::draw(random, k);
    const double beta = random.uniform();
    double absolute = 0;
    double square = 0;
    for (const double x : k) {
      absolute += std::fabs(x);
      square += x * x;
    }
    const auto d = static_cast<double>(key_dim);
    const double n = how == normalisation::l2    ? 1
                     : how == normalisation::l1  ? square / (absolute * absolute)
                     : how == normalisation::rms ? d
                                                 : square;
    sum += n;
    squares += n * n;
    result.smallest = std::min(result.smallest, n);
    result.largest = std::max(result.largest, n);
    if (beta * n > 2) ++result.euler_unstable;
    const double beta_in_format = round_to<bf16>(beta).value();
    const double n_in_format = round_to<bf16>(n).value();
    if (beta_in_format == 0) continue;
    const double naive = coefficient("bf16", form::naive, beta_in_format, n_in_format);
    const double careful = coefficient("bf16", form::expm1, beta_in_format, n_in_format);
    const double truth =
        effective_step(exact_flow{}, rounded<fp64>::from_exact(beta_in_format), rounded<fp64>::from_exact(n_in_format)).value();
    if (naive == 0) ++result.naive_dead;
    if (std::fabs(naive / truth - 1) > 0.1) ++result.naive_off;
    if (careful * n_in_format >= 1) ++result.saturated;
  }
  const auto count = static_cast<double>(keys);
  result.mean = sum / count;
  result.deviation = std::sqrt(std::max(0.0, squares / count - result.mean * result.mean));
  return result;
}

std::vector<rational_key> rational_keys() {
  std::vector<rational_key> result;
  const std::vector<std::pair<std::vector<int>, int>> integers{
      {{3, 4}, 5}, {{1, 2, 2}, 3}, {{2, 3, 6}, 7}, {{1, 4, 8}, 9}, {{4, 4, 7}, 9}};
  for (const auto& [entries, norm] : integers) {
    for (const rational& scale : {rational(1), rational(2, 7), rational(11, 3)}) {
      rational_key key;
      for (const int x : entries) key.k.push_back(scale * x);
      key.norm = scale * norm;
      result.push_back(std::move(key));
    }
  }
  return result;
}

identity_check efla_is_deltanet() {
  identity_check result;
  for (const rational_key& key : rational_keys()) {
    for (const rational& decayed : {rational(0), rational(1, 3), rational(22, 25), rational(-2, 5)}) {
      const std::size_t d = key.k.size();
      matrix<rational> start(d, 2);
      for (std::size_t i = 0; i < start.size(); ++i)
        start.data()[i] = rational(static_cast<int>(i * i) - 3, static_cast<int>(i) + 2);
      const std::vector<rational> v{rational(5, 3), rational(-7, 2)};
      recurrence<rational> efla(start);
      efla.step(key.k, v, (1 - decayed) / (key.norm * key.norm));
      std::vector<rational> unit;
      for (const rational& x : key.k) unit.push_back(x / key.norm);
      const std::vector<rational> value{v[0] / key.norm, v[1] / key.norm};
      recurrence<rational> deltanet(start);
      deltanet.step(unit, value, 1 - decayed);
      ++result.cases;
      if (efla.state() == deltanet.state()) ++result.equal;
    }
  }
  return result;
}

}  // namespace deltaproof::detail::efla
