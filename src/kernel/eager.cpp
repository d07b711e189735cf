// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT

#include <algorithm>
#include <cmath>
#include <limits>
#include <mutex>
#include <vector>

#include "deltaproof/kernel/check.hpp"
#include "deltaproof/number/rounding.hpp"
#include "deltaproof/oracle/lower.hpp"
#include "oracle/parallel.hpp"

namespace deltaproof {
namespace {

template <format F>
double rounded_to(double x) {
  nearest_even mode;
  return detail::round_value<F>(x, mode);
}

/// o of one head, T x V: sums inside a matvec are fp64, its result is rounded once to X.
template <format X, format State>
std::vector<double> run(const lowered<double>& in) {
  const auto& s = in.scan;
  const std::size_t keys = s.key_dim, cols = s.value_dim;
  const auto rounded_span = [](std::span<const double> from) {
    std::vector<double> to(from.size());
    std::transform(from.begin(), from.end(), to.begin(), rounded_to<X>);
    return to;
  };
  auto start = s.start();
  std::vector<double> state(start.size()), out(s.tokens * cols), sum(cols);
  std::transform(start.entries().begin(), start.entries().end(), state.begin(), rounded_to<State>);
  const double scale = rounded_to<X>(in.scale);
  const auto matvec = [&](const std::vector<double>& x) {
    std::fill(sum.begin(), sum.end(), 0.0);
    for (std::size_t i = 0; i < keys; ++i) {
      for (std::size_t v = 0; v < cols; ++v) sum[v] += x[i] * state[i * cols + v];
    }
    for (double& y : sum) y = rounded_to<X>(y);
  };
  for (std::size_t t = 0; t < s.tokens; ++t) {
    const auto decay = rounded_span(s.decay_of(t));
    for (std::size_t i = 0; i < keys && !decay.empty(); ++i) {
      const double a = decay[decay.size() == 1 ? 0 : i];
      for (std::size_t v = 0; v < cols; ++v) state[i * cols + v] = rounded_to<State>(a * state[i * cols + v]);
    }
    for (std::size_t j = 0; j < s.steps_per_token; ++j) {
      const std::size_t row = t * s.steps_per_token + j;
      const auto k = rounded_span(s.k_row(row)), value = rounded_span(s.v_row(row));
      const double b = rounded_to<X>(s.step[row]);
      matvec(k);
      for (std::size_t v = 0; v < cols; ++v) sum[v] = rounded_to<X>(b * rounded_to<X>(value[v] - sum[v]));
      for (std::size_t i = 0; i < keys; ++i) {
        for (std::size_t v = 0; v < cols; ++v) {
          state[i * cols + v] = rounded_to<State>(state[i * cols + v] + rounded_to<X>(k[i] * sum[v]));
        }
      }
    }
    matvec(rounded_span(s.q_row(t)));
    for (std::size_t v = 0; v < cols; ++v) out[t * cols + v] = rounded_to<X>(scale * sum[v]);
  }
  return out;
}

std::vector<double> run_in(const format& x, bool fp32_state, const lowered<double>& in) {
  if (x == bf16) return fp32_state ? run<bf16, fp32>(in) : run<bf16, bf16>(in);
  if (x == fp16) return fp32_state ? run<fp16, fp32>(in) : run<fp16, fp16>(in);
  if (x == fp32) return run<fp32, fp32>(in);
  return run<fp64, fp64>(in);
}

}  // namespace

eager_errors measure_eager(const problem& p, const reference_tensor& want, const std::vector<bool>& skip, unsigned threads) {
  const auto sequences = p.sequences();
  const std::size_t heads = p.value_heads(), cols = p.value_dim();
  std::mutex lock;
  eager_errors largest{0, 0};
  parallel_for(sequences.size() * heads, threads, [&](std::size_t job) {
    const std::size_t n = job / heads, h = job % heads;
    const auto in = lower(p, n, h);
    const auto worst_of = [&](const std::vector<double>& o) {
      double worst = 0;
      for (std::size_t t = 0; t < sequences[n].tokens; ++t) {
        const std::size_t at = ((sequences[n].batch * p.tokens() + sequences[n].first_token + t) * heads + h) * cols;
        for (std::size_t v = 0; v < cols; ++v) {
          if (!skip.empty() && skip[at + v]) continue;
          const double e = std::fabs(o[t * cols + v] - want.value[at + v]);
          worst = e <= worst ? worst : e;  // keeps NaN
        }
      }
      return worst;
    };
    const double same = worst_of(run_in(p.q.element_format(), false, in)), wide = worst_of(run_in(p.q.element_format(), true, in));
    const std::lock_guard guard(lock);
    largest.same_format_state = same <= largest.same_format_state ? largest.same_format_state : same;
    largest.fp32_state = wide <= largest.fp32_state ? largest.fp32_state : wide;
  });
  return largest;
}

}  // namespace deltaproof
