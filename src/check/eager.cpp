// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT

#include <algorithm>
#include <cmath>
#include <limits>
#include <mutex>
#include <span>
#include <utility>
#include <vector>

#include "deltaproof/check/check.hpp"
#include "deltaproof/oracle/lower.hpp"
#include "emulate/lane_rounding.hpp"
#include "emulate/products.hpp"
#include "oracle/tiers/lower_double_double.hpp"
#include "support/parallel.hpp"
#include "support/widest_vectors.hpp"

namespace deltaproof {
namespace {

/// Columns of the state that pass through all tokens together: few enough to stay in a near cache.
constexpr std::size_t state_columns = 32;

// Roundings to a format, as emulation::narrow has them, that a loop can hold.
struct not_rounded {
  [[gnu::always_inline]] double operator()(double x) const { return x; }
};
struct to_float {
  [[gnu::always_inline]] double operator()(double x) const { return static_cast<double>(static_cast<float>(x)); }
};
struct to_nearest {
  emulation::rounding<double> to;
  [[gnu::always_inline]] double operator()(double x) const { return to.nearest(x); }
};

/// One block of columns of a head. `state`: K rows of them; `values` and `out`: a row of them for each row of k, for each token.
template <class RoundX, class RoundState>
void run_columns(const sequence<double>& s, double scale, const RoundX& to_x, const RoundState& kept, double* state,
                 const double* values, double* out) {
  constexpr std::size_t columns = state_columns;
  const std::size_t n = s.steps_per_token, rows = s.rows(), keys = s.key_dim, decays = s.decay_of(0).size();
  const double *const all_keys = s.k.data(), *const queries = s.q.data(), *const decay = s.decay.data(),
                      *const step = s.step.data();
  detail::in_widest_vectors([&]() __attribute__((always_inline)) {
    // Copies that the state cannot alias.
    const RoundX x_of = to_x;
    const RoundState state_of = kept;
    for (std::size_t row = 0; row < rows; ++row) {
      const std::size_t t = row / n;
      const double *const k = all_keys + row * keys, *const q = queries + t * keys, *const a = decay + t * decays;
      double sum[columns] = {}, write[columns];
      if (decays > 0 && row % n == 0) {
        for (std::size_t i = 0; i < keys; ++i) {
          const double ki = k[i], ai = a[decays == 1 ? 0 : i];
          for (std::size_t j = 0; j < columns; ++j) {
            const double x = state_of(state[i * columns + j] * ai);
            state[i * columns + j] = x;
            sum[j] += ki * x;
          }
        }
      } else {
        for (std::size_t i = 0; i < keys; ++i) {
          for (std::size_t j = 0; j < columns; ++j) sum[j] += k[i] * state[i * columns + j];
        }
      }
      for (std::size_t j = 0; j < columns; ++j) {
        write[j] = x_of(x_of(values[row * columns + j] - x_of(sum[j])) * step[row]);
        sum[j] = 0;
      }
      for (std::size_t i = 0; i < keys; ++i) {
        const double ki = k[i], qi = q[i];
        for (std::size_t j = 0; j < columns; ++j) {
          const double x = state_of(state[i * columns + j] + x_of(ki * write[j]));
          state[i * columns + j] = x;
          sum[j] += qi * x;
        }
      }
      // Of the last step of a token it stays.
      for (std::size_t j = 0; j < columns; ++j) out[t * columns + j] = x_of(scale * x_of(sum[j]));
    }
  });
}

/// o of one head, T x V: sums inside a matvec are fp64, its result is rounded once to X. `in`: rounded to X already.
template <class RoundX, class RoundState>
std::vector<double> run(const sequence<double>& s, double scale, const RoundX& to_x, const RoundState& kept) {
  const std::size_t keys = s.key_dim, cols = s.value_dim, rows = s.rows();
  const auto start = s.start();
  std::vector<double> out(s.tokens * cols), state(keys * state_columns), values(rows * state_columns),
      read(s.tokens * state_columns);
  for (std::size_t first = 0; first < cols && rows > 0; first += state_columns) {
    const std::size_t width = std::min(state_columns, cols - first);
    for (std::size_t i = 0; i < keys; ++i) {
      for (std::size_t j = 0; j < width; ++j) state[i * state_columns + j] = kept(start(i, first + j));
    }
    for (std::size_t row = 0; row < rows; ++row)
      std::copy_n(s.v.data() + row * cols + first, width, values.data() + row * state_columns);
    run_columns(s, scale, to_x, kept, state.data(), values.data(), read.data());
    for (std::size_t t = 0; t < s.tokens; ++t) std::copy_n(read.data() + t * state_columns, width, out.data() + t * cols + first);
  }
  return out;
}

/// Of numbers that are rounded to `x`, its state in that format or in fp32.
std::vector<double> run_in(const format& x, bool fp32_state, const sequence<double>& s, double scale) {
  if (is_lossless(fp64, x)) return run(s, scale, not_rounded{}, not_rounded{});
  if (x == fp32) return run(s, scale, to_float{}, to_float{});
  const to_nearest to_x{emulation::rounding<double>(x)};
  return fp32_state && x.precision < fp32.precision ? run(s, scale, to_x, to_float{}) : run(s, scale, to_x, to_x);
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
    auto pairs = tiers::lower_double_double(p, n, h, 1);
    lowered<double> in = pairs.underflowed ? lower(p, n, h) : std::move(pairs.high);
    const format x = p.q.element_format();
    for (std::vector<double>* rounded : {&in.scan.q, &in.scan.k, &in.scan.v, &in.scan.step, &in.scan.decay})
      emulation::narrow(std::span<double>(*rounded), {x, false});
    const double scale = emulation::narrowed(in.scale, {x, false});
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
    const double same = worst_of(run_in(x, false, in.scan, scale)), wide = worst_of(run_in(x, true, in.scan, scale));
    const std::lock_guard guard(lock);
    largest.same_format_state = same <= largest.same_format_state ? largest.same_format_state : same;
    largest.fp32_state = wide <= largest.fp32_state ? largest.fp32_state : wide;
  });
  return largest;
}

}  // namespace deltaproof
