// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT

#include "studies/hippo/intervals.hpp"

#include <algorithm>
#include <cmath>
#include <vector>

#include "deltaproof/number/random.hpp"
#include "deltaproof/rule/rules.hpp"
#include "deltaproof/scan/recurrent.hpp"
#include "studies/shared/keys.hpp"

namespace deltaproof::detail::hippo {
namespace {

constexpr std::uint64_t stream_of_sequences = 0x6869707000000000U;
constexpr std::size_t value_columns = 2;

struct token {
  std::vector<double> k;
  std::vector<double> v;
  double eta = 0;
};

/// The exact flow of one token for a time; the step of a unit key.
void act(recurrence<double>& machine, const token& of, double time) {
  if (time == 0) return;
  const double b = effective_step(exact_flow{}, rounded<fp64>::from_exact(time), rounded<fp64>::from_exact(1)).value();
  machine.step(of.k, of.v, b);
}

matrix<double> solve(reading how, const std::vector<token>& tokens) {
  recurrence<double> machine(tokens[0].k.size(), value_columns);
  for (std::size_t t = 0; t < tokens.size(); ++t) {
    const token& now = tokens[t];
    switch (how) {
      case reading::clock:
      case reading::waiting:
        act(machine, now, now.eta);
        break;
      case reading::running:
        act(machine, now, 1);
        break;
      case reading::lingering:
        // Where eta > 1 the new equation starts before the old one is over, and takes over at once.
        if (t > 0) act(machine, tokens[t - 1], std::max(0.0, 1 - now.eta));
        act(machine, now, std::min(1.0, now.eta));
        break;
    }
  }
  return machine.state();
}

}  // namespace

std::string_view name_of(reading how) {
  switch (how) {
    case reading::clock:
      return "clock: intervals of length η end to end";
    case reading::waiting:
      return "waiting: nothing happens before t − η";
    case reading::running:
      return "running: the token's equation from t − 1 on";
    case reading::lingering:
      return "lingering: the last token's equation until t − η";
  }
  return "";
}

gap measure(reading how, double low, double high, std::size_t key_dim, std::size_t tokens, std::size_t streams,
            std::uint64_t seed) {
  gap result;
  result.how = how;
  result.low = low;
  result.high = high;
  result.streams = streams;
  double sum = 0;
  double squares = 0;
  std::size_t above = 0;
  for (std::size_t i = 0; i < streams; ++i) {
    philox random(seed, stream_of_sequences + i);
    std::vector<token> sequence(tokens);
    for (token& one : sequence) {
      one.k.resize(key_dim);
      one.v.resize(value_columns);
      shared::draw(random, one.k);
      (void)shared::normalise(one.k);
      shared::draw(random, one.v);
      one.eta = low + (high - low) * random.uniform();
      above += one.eta > 1 ? 1 : 0;
    }
    const matrix<double> a = solve(reading::clock, sequence);
    const matrix<double> b = solve(how, sequence);
    double distance = 0;
    double length = 0;
    for (std::size_t j = 0; j < a.size(); ++j) {
      distance += (a.data()[j] - b.data()[j]) * (a.data()[j] - b.data()[j]);
      length += a.data()[j] * a.data()[j];
    }
    const double value = std::sqrt(distance / length);
    sum += value;
    squares += value * value;
    result.largest = std::max(result.largest, value);
  }
  const auto n = static_cast<double>(streams);
  result.mean = sum / n;
  result.deviation = std::sqrt(std::max(0.0, squares / n - result.mean * result.mean));
  result.overlapping = static_cast<double>(above) / (n * static_cast<double>(tokens));
  return result;
}

}  // namespace deltaproof::detail::hippo
