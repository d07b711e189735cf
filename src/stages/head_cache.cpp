// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
#include <algorithm>
#include <cmath>

#include "stages/head_measurement.hpp"

namespace deltaproof::stages_detail {

namespace {

std::size_t or_all(std::size_t some, std::size_t all) { return some == 0 ? std::max<std::size_t>(all, 1) : some; }

/// What is read back: the same within the largest error of a store, group by group, and within what is carried over. Returns the
/// most that error feedback then carries.
double stored(balls& state, const state_cache& cache, double carried) {
  if (state.exact()) state.radius.assign(state.value.size(), 0);
  const block_format& f = cache.format;
  const std::size_t height = or_all(f.tensor_scale ? 0 : f.rows, state.rows),
                    width = or_all(f.tensor_scale ? 0 : f.cols, state.cols);
  double lost = 0;
  for (std::size_t top = 0; top < state.rows; top += height) {
    for (std::size_t left = 0; left < state.cols; left += width) {
      const std::size_t bottom = std::min(top + height, state.rows), right = std::min(left + width, state.cols);
      double amax = 0;
      bool known = true;
      for (std::size_t i = top; i < bottom; ++i) {
        for (std::size_t j = left; j < right; ++j) {
          const double reach = state.at(i, j).upper();
          known = known && std::isfinite(reach);
          amax = std::max(amax, reach);
        }
      }
      if (!known) amax = std::numeric_limits<double>::infinity();
      const double error = largest_error(f, cache.rounding, amax + carried);
      lost = std::max(lost, error);
      for (std::size_t i = top; i < bottom; ++i) {
        for (std::size_t j = left; j < right; ++j) state.radius[i * state.cols + j] += error + carried;
      }
    }
  }
  if (cache.rounding != block_rounding::error_feedback) return 0;
  return lost + largest_error(unscaled(cache.residual.name), block_rounding::nearest, lost);
}

}  // namespace

void head_measurement::pass_caches(std::size_t alternative) {
  const state_rounding& how = r_.state[alternative];
  const std::size_t n = p_.num_householder, rows = begin_ + rows_, tokens = rows / n;
  auto& [in_cache, in_calls] = residuals_[alternative];
  if (how.cache && (chunk_ + 1) % how.cache->every == 0) in_cache = stored(states_[alternative], *how.cache, in_cache);
  if (!how.between_calls || rows % n != 0) return;
  const std::size_t call = how.between_calls->every;
  if (tokens == place_.sequence.tokens || (call > 0 && tokens % call == 0))
    in_calls = stored(states_[alternative], *how.between_calls, in_calls);
}

}  // namespace deltaproof::stages_detail
