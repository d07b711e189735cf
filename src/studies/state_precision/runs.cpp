// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT

#include "studies/state_precision/runs.hpp"

#include <memory>

#include "deltaproof/number/elementary.hpp"
#include "deltaproof/oracle/reference.hpp"
#include "deltaproof/scan/recurrent.hpp"
#include "studies/shared/formats.hpp"

namespace deltaproof::detail::state_precision {
namespace {

using shared::exp32;

/// One executed recurrence.
class machine {
 public:
  machine(const choice& c, const shape& s, std::uint64_t seed, std::uint64_t stream)
      : choice_{c}, shape_{s}, state_(s.key_dim, s.value_dim), mode_(seed, stream) {}

  void run(const tokens& t) {
    const std::size_t n = t.beta.size();
    std::vector<float> k(shape_.key_dim), v(shape_.value_dim);
    for (std::size_t i = 0; i < n; ++i) {
      for (std::size_t j = 0; j < k.size(); ++j) k[j] = static_cast<float>(t.k[i * k.size() + j]);
      for (std::size_t j = 0; j < v.size(); ++j) v[j] = static_cast<float>(t.v[i * v.size() + j]);
      const auto decay = static_cast<float>(decay_of(t, i));
      const auto beta = static_cast<float>(round_nearest(t.beta[i], choice_.beta));
      state_.decay({&decay, 1});
      state_.step(k, v, beta);
      store();
    }
  }
  [[nodiscard]] const matrix<float>& state() const { return state_.state(); }

 private:
  double decay_of(const tokens& t, std::size_t i) const {
    if (choice_.place == decay_place::logarithm) return exp32(round_nearest(t.g[i], choice_.decay));
    return round_nearest(t.decay[i], choice_.decay);
  }
  void store() {
    if (choice_.state == fp32) return;
    shared::with_kept_format(choice_.state, [&]<format F>() {
      state_.store(
          [&](float x) { return static_cast<float>((choice_.stochastic ? round_to<F>(x, mode_) : round_to<F>(x)).value()); });
    });
  }

  choice choice_;
  shape shape_;
  recurrence<float> state_;
  stochastic mode_;
};

double frobenius(std::span<const double> x) { return std::sqrt(shared::squared_norm(x)) * (1 + 0x1p-40); }

/// Carries state and radius over one block by the oracle.
void advance(matrix<double>& state, double& radius, const tokens& t, const shape& s) {
  const std::size_t n = t.beta.size();
  problem p;
  p.op = op_kind::gated_delta_rule;
  p.k = tensor::from_doubles(bf16, {1, n, 1, s.key_dim}, t.k, "k");
  p.q = tensor::from_doubles(bf16, {1, n, 1, s.key_dim}, t.k, "q");
  p.v = tensor::from_doubles(bf16, {1, n, 1, s.value_dim}, t.v, "v");
  p.beta = tensor::from_doubles(fp32, {1, n, 1}, t.beta, "beta");
  p.g = tensor::from_doubles(fp32, {1, n, 1}, t.g, "g");
  p.initial_state = tensor::from_doubles(fp64, {1, 1, s.key_dim, s.value_dim}, state.entries(), "initial_state");
  question q;
  q.threads = 1;
  const reference result = solve(p, q);
  double dropped = 0;  // what the oracle knows beyond one double
  for (const std::vector<double>& low : result.final_state.low) dropped += frobenius(low);
  double kept = 1;
  for (std::size_t i = 0; i < n; ++i) {
    const double square = shared::squared_norm({t.k.data() + i * s.key_dim, s.key_dim});
    // Sum and product are off by less than 2^-40; only then does no step expand.
    if (!(t.beta[i] * square <= 2 - 0x1p-30)) {
      throw domain_error("state-precision: beta |k|^2 = " + std::to_string(t.beta[i] * square) +
                         " > 2; the radius would not add up");
    }
    kept *= std::min(1.0, t.decay[i] * (1 + 0x1p-22));
  }
  state = matrix<double>(s.key_dim, s.value_dim, result.final_state.value);
  radius = (radius * kept + frobenius(result.final_state.radius) + dropped) * (1 + 0x1p-40);
}

}  // namespace

head_run run_head(const head& h, const shape& s, std::span<const std::size_t> at, std::uint64_t seed) {
  head_run result;
  result.runs.resize(choices.size());
  std::vector<machine> machines;
  for (std::size_t c = 0; c < choices.size(); ++c) machines.emplace_back(choices[c], s, seed, 1000 + c);
  token_source source(h, s, seed);
  matrix<double> state(s.key_dim, s.value_dim);
  double radius = 0, gates = 0;
  std::size_t done = 0;
  for (const std::size_t target : at) {
    while (done < target) {
      const tokens t = source.next(std::min(target - done, longest_block));
      advance(state, radius, t, s);
      for (machine& m : machines) m.run(t);
      for (const double g : t.g) gates -= g;
      done += t.beta.size();
    }
    result.states.push_back(state);
    result.radius.push_back(radius);
    for (std::size_t c = 0; c < machines.size(); ++c) {
      const std::vector<double> found(machines[c].state().entries().begin(), machines[c].state().entries().end());
      const auto [error, kept] = shared::nearness_of(found, state.entries());
      result.runs[c].error.push_back(error);
      result.runs[c].kept.push_back(kept);
    }
  }
  result.half_life =
      gates > 0 ? 0.69314718055994530942 * static_cast<double>(done) / gates : std::numeric_limits<double>::infinity();
  return result;
}

}  // namespace deltaproof::detail::state_precision
