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
#include "emulate/packs.hpp"
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
  template <class Real>
  [[gnu::always_inline]] Real operator()(Real x) const {
    return x;
  }
};
using rounding = emulation::rounding<float>;
template <float (rounding::*nearest)(float) const>
struct to_nearest {
  rounding to;
  [[gnu::always_inline]] float operator()(float x) const { return (to.*nearest)(x); }
};

/// What the steps of a head read, in the type that they add in.
template <class Real>
struct eager_head {
  std::size_t tokens, keys, cols, steps, decays;
  std::vector<Real> q, k, v, decay, step, start;
  Real scale;

  eager_head(const sequence<double>& s, double read_scale)
      : tokens(s.tokens),
        keys(s.key_dim),
        cols(s.value_dim),
        steps(s.steps_per_token),
        decays(s.decay.empty() ? 0 : s.decay.size() / s.tokens),
        q(s.q.begin(), s.q.end()),
        k(s.k.begin(), s.k.end()),
        v(s.v.begin(), s.v.end()),
        decay(s.decay.begin(), s.decay.end()),
        step(s.step.begin(), s.step.end()),
        start(keys * cols),
        scale(static_cast<Real>(read_scale)) {
    const auto first = s.start();
    for (std::size_t i = 0; i < start.size(); ++i) start[i] = static_cast<Real>(first(i / cols, i % cols));
  }
  [[nodiscard]] std::size_t rows() const { return step.size(); }
};

/// sums += factor row, column by column; a vector of sums each, which stays in its register.
template <class Real>
struct column_sums {
  using numbers = pack<Real>;
  static constexpr std::size_t vectors = state_columns / numbers::count;
  typename numbers::type at[vectors] = {};

  [[gnu::always_inline]] void add(Real factor, const Real* row) {
    typename numbers::type by{}, x;
    numbers::fill(by, factor);
    for (std::size_t j = 0; j < vectors; ++j) {
      numbers::load(x, row + j * numbers::count);
      at[j] += by * x;
    }
  }
  [[gnu::always_inline]] void store(Real* to) const {
    for (std::size_t j = 0; j < vectors; ++j) numbers::store(to + j * numbers::count, at[j]);
  }
};

/// One block of columns of a head. `state`: K rows of them; `values` and `out`: a row of them for each row of k, for each token.
template <class Real, class RoundX, class RoundState>
void run_columns(const eager_head<Real>& h, const RoundX& to_x, const RoundState& kept, Real* state, const Real* values,
                 Real* out) {
  constexpr std::size_t columns = state_columns;
  const std::size_t n = h.steps, rows = h.rows(), keys = h.keys, decays = h.decays;
  const Real *const all_keys = h.k.data(), *const queries = h.q.data(), *const decay = h.decay.data(),
                    *const step = h.step.data();
  const Real scale = h.scale;
  detail::in_widest_vectors([&]() __attribute__((always_inline)) {
    // Copies that the state cannot alias.
    const RoundX x_of = to_x;
    const RoundState state_of = kept;
    for (std::size_t row = 0; row < rows; ++row) {
      const std::size_t t = row / n;
      const Real *const k = all_keys + row * keys, *const q = queries + t * keys, *const a = decay + t * decays;
      Real sum[columns], write[columns];
      column_sums<Real> predicted, read;
      const bool decays_now = decays > 0 && row % n == 0;
      for (std::size_t i = 0; i < keys; ++i) {
        Real* const of_key = state + i * columns;
        if (decays_now) {
          const Real ai = a[decays == 1 ? 0 : i];
          for (std::size_t j = 0; j < columns; ++j) of_key[j] = state_of(of_key[j] * ai);
        }
        predicted.add(k[i], of_key);
      }
      predicted.store(sum);
      for (std::size_t j = 0; j < columns; ++j) write[j] = x_of(x_of(values[row * columns + j] - x_of(sum[j])) * step[row]);
      for (std::size_t i = 0; i < keys; ++i) {
        Real* const of_key = state + i * columns;
        const Real ki = k[i];
        for (std::size_t j = 0; j < columns; ++j) of_key[j] = state_of(of_key[j] + x_of(ki * write[j]));
        read.add(q[i], of_key);
      }
      read.store(sum);
      // Of the last step of a token it stays.
      for (std::size_t j = 0; j < columns; ++j) out[t * columns + j] = x_of(scale * x_of(sum[j]));
    }
  });
}

/// o of one head, T x V: the result of a matvec is rounded once to X.
template <class Real, class RoundX, class RoundState>
std::vector<Real> run(const eager_head<Real>& h, const RoundX& to_x, const RoundState& kept) {
  std::vector<Real> out(h.tokens * h.cols), state(h.keys * state_columns), values(h.rows() * state_columns),
      read(h.tokens * state_columns);
  for (std::size_t first = 0; first < h.cols && h.rows() > 0; first += state_columns) {
    const std::size_t width = std::min(state_columns, h.cols - first);
    for (std::size_t i = 0; i < h.keys; ++i) {
      for (std::size_t j = 0; j < width; ++j) state[i * state_columns + j] = kept(h.start[i * h.cols + first + j]);
    }
    for (std::size_t row = 0; row < h.rows(); ++row)
      std::copy_n(h.v.data() + row * h.cols + first, width, values.data() + row * state_columns);
    run_columns(h, to_x, kept, state.data(), values.data(), read.data());
    for (std::size_t t = 0; t < h.tokens; ++t)
      std::copy_n(read.data() + t * state_columns, width, out.data() + t * h.cols + first);
  }
  return out;
}

/// The largest errors of runs on numbers that are rounded to `x`: the state in that format, and in fp32. Sums inside a matvec are
/// fp32, or fp64 where `x` has more bits.
template <class WorstOf>
eager_errors run_in(const format& x, const sequence<double>& s, double scale, const WorstOf& worst_of) {
  if (is_lossless(fp64, x)) {
    const double worst = worst_of(run(eager_head<double>(s, scale), not_rounded{}, not_rounded{}));
    return {worst, worst};
  }
  const eager_head<float> head(s, scale);
  if (x == fp32) {
    const double worst = worst_of(run(head, not_rounded{}, not_rounded{}));
    return {worst, worst};
  }
  const auto both = [&](const auto& to_x) -> eager_errors {
    return {worst_of(run(head, to_x, to_x)), worst_of(run(head, to_x, not_rounded{}))};
  };
  const rounding to(x);
  return to.how == rounding::method::bits ? both(to_nearest<&rounding::nearest_bits>{to})
                                          : both(to_nearest<&rounding::nearest>{to});
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
    const auto worst_of = [&](const auto& o) {
      double worst = 0;
      for (std::size_t t = 0; t < sequences[n].tokens; ++t) {
        const std::size_t at = ((sequences[n].batch * p.tokens() + sequences[n].first_token + t) * heads + h) * cols;
        for (std::size_t v = 0; v < cols; ++v) {
          if (!skip.empty() && skip[at + v]) continue;
          const double e = std::fabs(static_cast<double>(o[t * cols + v]) - want.value[at + v]);
          worst = e <= worst ? worst : e;  // keeps NaN
        }
      }
      return worst;
    };
    const auto [same, wide] = run_in(x, in.scan, scale, worst_of);
    const std::lock_guard guard(lock);
    largest.same_format_state = same <= largest.same_format_state ? largest.same_format_state : same;
    largest.fp32_state = wide <= largest.fp32_state ? largest.fp32_state : wide;
  });
  return largest;
}

}  // namespace deltaproof
