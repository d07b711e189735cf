// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
//
// The sum of h dh, and what happens to dq and dk once the heads that share q and k are done.
#include <algorithm>
#include <bit>
#include <cmath>
#include <utility>

#include "emulate/backward.hpp"

namespace deltaproof::emulation_detail {

namespace {

constexpr std::size_t vector_length = 8;
constexpr std::size_t warp = 32;

/// The sum of `x` in `to`, each addition rounded.
template <class Real>
Real sequential_sum(std::span<const Real> x, const narrowing& to) {
  Real sum = x.empty() ? Real(0) : x[0];
  for (std::size_t i = 1; i < x.size(); ++i) sum = narrowed(sum + x[i], to);
  return sum;
}

template <class Real>
Real pairwise_sum(std::span<const Real> x, const narrowing& to) {
  if (x.size() <= 2) return sequential_sum(x, to);
  const std::size_t half = (x.size() + 1) / 2;
  return narrowed(pairwise_sum(x.first(half), to) + pairwise_sum(x.subspan(half), to), to);
}

/// Vectors of 8 dealt to `threads` in turn; each adds its entries, then thread i and thread i + half are added.
template <class Real>
Real dealt_sum(std::span<const Real> x, std::size_t threads, const narrowing& to) {
  const std::size_t vectors = x.size() / vector_length;
  threads = std::min(threads, std::bit_ceil(std::max<std::size_t>(vectors, 1)));
  std::vector<Real> sums(threads, Real(0));
  // All threads at once, an entry of each: they are rounded together.
  for (std::size_t first = 0; first < vectors; first += threads) {
    const std::size_t busy = std::min(threads, vectors - first);
    for (std::size_t i = 0; i < vector_length; ++i) {
      const Real* const next = x.data() + first * vector_length + i;
      const bool begins = first + i == 0;
      for (std::size_t t = 0; t < busy; ++t) sums[t] = begins ? next[t * vector_length] : sums[t] + next[t * vector_length];
      if (!begins) narrow(std::span<Real>(sums.data(), busy), to);
    }
  }
  for (std::size_t half = threads / 2; half > 0; half /= 2) {
    for (std::size_t t = 0; t < half; ++t) sums[t] = narrowed(sums[t] + sums[t + half], to);
  }
  return sums[0];
}

template <class Real>
Real sum_in_order(std::span<const Real> x, tile_order order, const narrowing& to) {
  switch (order) {
    case tile_order::sequential:
      return sequential_sum(x, to);
    case tile_order::pairwise:
      return pairwise_sum(x, to);
    case tile_order::warps_2:
      return dealt_sum(x, 2 * warp, to);
    case tile_order::warps_4:
      return dealt_sum(x, 4 * warp, to);
    case tile_order::warps_8:
      return dealt_sum(x, 8 * warp, to);
  }
  return 0;
}

/// Tiles hold a power of two of rows and columns, zeros beyond those there are.
std::size_t tile_length(std::size_t length, std::size_t most) {
  return std::clamp<std::size_t>(std::bit_ceil(std::max<std::size_t>(length, 1)), vector_length, most);
}

}  // namespace

template <class Real>
std::vector<Real> state_sums(const matrix<Real>& h, const matrix<Real>& dh, const backward_variant& declared, tile_order order,
                             bool by_row) {
  const narrowing to{declared.state_sum, false}, kept{declared.accumulate, false};
  const std::size_t K = h.rows(), V = h.cols();
  const bool tiled = order != tile_order::sequential && order != tile_order::pairwise;
  const std::size_t columns = tiled ? tile_length(V, by_row ? 64 : 128) : std::max<std::size_t>(V, 1);
  const std::size_t rows = by_row ? 1 : tiled ? tile_length(K, 128) : std::max<std::size_t>(K, 1);
  std::vector<Real> sums(by_row ? K : 1, Real(0)), tile;
  for (std::size_t top = 0; top < K; top += rows) {
    Real& sum = sums[by_row ? top : 0];
    for (std::size_t left = 0; left < V; left += columns) {
      tile.assign(rows * columns, Real(0));
      for (std::size_t i = top; i < std::min(top + rows, K); ++i) {
        for (std::size_t j = left; j < std::min(left + columns, V); ++j)
          tile[(i - top) * columns + (j - left)] = h(i, j) * dh(i, j);
      }
      narrow(std::span<Real>(tile), to);
      sum = narrowed(sum + sum_in_order<Real>(tile, order, to), kept);
    }
  }
  return sums;
}

namespace {

// With y = r x, r = (|x|^2 + epsilon)^(-1/2): dx = r (dy - y <dy, y>).
template <class Real>
matrix<Real> through_norm(const matrix<Real>& dy, const matrix<double>& x, const matrix<Real>& stored, const plan_variant& plan,
                          bool any_order) {
  matrix<Real> out(dy.rows(), dy.cols());
  std::vector<Real> y(dy.cols());
  for (std::size_t i = 0; i < dy.rows(); ++i) {
    Real squares = 0, along = 0;
    for (const double given : x.row(i)) squares += static_cast<Real>(given) * static_cast<Real>(given);
    const Real r = Real(1) / std::sqrt(squares + static_cast<Real>(plan.l2norm_epsilon));
    for (std::size_t m = 0; m < y.size(); ++m)
      y[m] = plan.backward->l2norm_from == norm_source::stored ? stored(i, m) : static_cast<Real>(x(i, m)) * r;
    for (std::size_t m = 0; m < y.size(); ++m) along += dy(i, m) * y[m];
    partial_sums partial;
    for (std::size_t m = 0; any_order && m < y.size(); ++m) partial.add(static_cast<double>(dy(i, m)) * y[m]);
    if (any_order) along = partial.guarded(along, plan.backward->accumulate);
    for (std::size_t m = 0; m < y.size(); ++m) out(i, m) = r * (dy(i, m) - y[m] * along);
  }
  return out;
}

template <class Real>
void run_hooks(backward_group<Real>& g, const fault* planted, backward_step at) {
  if (planted == nullptr || planted->code->backward == nullptr) return;
  for (const planted_group_hook& h : planted->code->backward->group_hooks) {
    if (h.at == at) call(h.change, g);
  }
}

}  // namespace

template <class Real>
void finish_group(backward_group<Real>& g, const fault* planted, bool any_order) {
  const narrowing sum{g.declared.group_sum, false}, store{g.declared.group_store, false}, own{g.in.x, false};
  // Only a planted fault reads again what was added up.
  const auto take = [&](matrix<Real>& x) { return planted == nullptr ? std::move(x) : x; };
  const auto joined = [&](std::vector<matrix<Real>>& heads) {
    matrix<Real> all = take(heads.front());
    std::vector<partial_sums> partial(any_order ? all.size() : 0);
    for (std::size_t i = 0; i < partial.size(); ++i) partial[i].add(static_cast<double>(all.data()[i]));
    for (std::size_t head = 1; head < heads.size(); ++head) {
      for (std::size_t i = 0; i < all.size(); ++i) all.data()[i] = narrowed(all.data()[i] + heads[head].data()[i], sum);
      for (std::size_t i = 0; i < partial.size(); ++i) partial[i].add(static_cast<double>(heads[head].data()[i]));
    }
    for (std::size_t i = 0; i < partial.size(); ++i) all.data()[i] = partial[i].guarded(all.data()[i], sum.to);
    narrow(std::span<Real>(all.data(), all.size()), store);
    return all;
  };
  g.dq_hat = joined(g.dq_heads);
  g.dk_hat = joined(g.dk_heads);
  run_hooks(g, planted, backward_step::group);
  for (matrix<Real>* m : {&g.dq_hat, &g.dk_hat}) narrow(std::span<Real>(m->data(), m->size()), store);
  g.dq = g.in.qk_l2norm ? through_norm(g.dq_hat, g.in.q, g.q, g.plan, any_order) : take(g.dq_hat);
  g.dk = g.in.qk_l2norm ? through_norm(g.dk_hat, g.in.k, g.k, g.plan, any_order) : take(g.dk_hat);
  run_hooks(g, planted, backward_step::norm);
  narrow(std::span<Real>(g.dq.data(), g.dq.size()), own);
  narrow(std::span<Real>(g.dk.data(), g.dk.size()), own);
}

template std::vector<float> state_sums<float>(const matrix<float>&, const matrix<float>&, const backward_variant&, tile_order,
                                              bool);
template std::vector<double> state_sums<double>(const matrix<double>&, const matrix<double>&, const backward_variant&, tile_order,
                                                bool);
template void finish_group<float>(backward_group<float>&, const fault*, bool);
template void finish_group<double>(backward_group<double>&, const fault*, bool);

}  // namespace deltaproof::emulation_detail
