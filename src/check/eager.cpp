// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT

#include <algorithm>
#include <cmath>
#include <limits>
#include <mutex>
#include <vector>

#include "deltaproof/check/check.hpp"
#include "deltaproof/oracle/lower.hpp"
#include "emulate/products.hpp"
#include "oracle/tiers/lower_double_double.hpp"
#include "support/parallel.hpp"

namespace deltaproof {
namespace {

using emulation::narrow;

/// o of one head, T x V: sums inside a matvec are fp64, its result is rounded once to X.
std::vector<double> run(const lowered<double>& in, const narrowing& x, const narrowing& kept) {
  const auto& s = in.scan;
  const std::size_t keys = s.key_dim, cols = s.value_dim;
  const auto rounded_span = [&](std::span<const double> from) {
    std::vector<double> to(from.begin(), from.end());
    narrow(std::span<double>(to), x);
    return to;
  };
  const auto start = s.start();
  std::vector<double> state(start.entries().begin(), start.entries().end()), out(s.tokens * cols), sum(cols), write(cols);
  narrow(std::span<double>(state), kept);
  const double scale = emulation::narrowed(in.scale, x);
  const auto matvec = [&](const std::vector<double>& by) {
    std::fill(sum.begin(), sum.end(), 0.0);
    emulation::multiply({by.data(), keys, state.data(), cols, sum.data(), cols, 1, keys, cols},
                        {sum_order::sequential, fp64, 0, 0, fp64});
    narrow(std::span<double>(sum), x);
  };
  for (std::size_t t = 0; t < s.tokens; ++t) {
    const auto decay = rounded_span(s.decay_of(t));
    for (std::size_t i = 0; i < keys && !decay.empty(); ++i) {
      const double a = decay[decay.size() == 1 ? 0 : i];
      for (std::size_t v = 0; v < cols; ++v) state[i * cols + v] *= a;
    }
    if (!decay.empty()) narrow(std::span<double>(state), kept);
    for (std::size_t j = 0; j < s.steps_per_token; ++j) {
      const std::size_t row = t * s.steps_per_token + j;
      const auto k = rounded_span(s.k_row(row)), value = rounded_span(s.v_row(row));
      const double b = emulation::narrowed(s.step[row], x);
      matvec(k);
      for (std::size_t v = 0; v < cols; ++v) sum[v] = value[v] - sum[v];
      narrow(std::span<double>(sum), x);
      for (double& y : sum) y *= b;
      narrow(std::span<double>(sum), x);
      for (std::size_t i = 0; i < keys; ++i) {
        for (std::size_t v = 0; v < cols; ++v) write[v] = k[i] * sum[v];
        narrow(std::span<double>(write), x);
        for (std::size_t v = 0; v < cols; ++v) state[i * cols + v] += write[v];
      }
      narrow(std::span<double>(state), kept);
    }
    matvec(rounded_span(s.q_row(t)));
    for (std::size_t v = 0; v < cols; ++v) out[t * cols + v] = scale * sum[v];
    narrow(std::span<double>(out.data() + t * cols, cols), x);
  }
  return out;
}

std::vector<double> run_in(const format& x, bool fp32_state, const lowered<double>& in) {
  return run(in, {x, false}, {fp32_state && x.precision < fp32.precision ? fp32 : x, false});
}

}  // namespace

eager_errors measure_eager(const problem& p, const reference_tensor& want, const std::vector<bool>& skip, unsigned threads) {
  const auto sequences = p.sequences();
  const std::size_t heads = p.value_heads(), cols = p.value_dim();
  std::mutex lock;
  eager_errors largest{0, 0};
  parallel_for(sequences.size() * heads, threads, [&](std::size_t job) {
    const std::size_t n = job / heads, h = job % heads;
    // Quicker than `lower`, and but for few last bits the same; where numbers are too small for it, nothing is known of them.
    const auto pairs = tiers::lower_double_double(p, n, h, 1);
    const auto in = pairs.underflowed ? lower(p, n, h) : pairs.high;
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
    const double same = worst_of(run_in(p.q.element_format(), false, in)),
                 wide = worst_of(run_in(p.q.element_format(), true, in));
    const std::lock_guard guard(lock);
    largest.same_format_state = same <= largest.same_format_state ? largest.same_format_state : same;
    largest.fp32_state = wide <= largest.fp32_state ? largest.fp32_state : wide;
  });
  return largest;
}

}  // namespace deltaproof
