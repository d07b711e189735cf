// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT

#include "studies/wy/errors.hpp"

#include <algorithm>
#include <cmath>
#include <string>

#include "deltaproof/number/double_double.hpp"
#include "deltaproof/number/errors.hpp"
#include "deltaproof/scan/recurrent.hpp"
#include "studies/shared/chunks/arithmetics.hpp"

namespace deltaproof::detail::wy {
namespace {

/// |x - reference| / |reference| over entries first .. end - 1, squared.
double squared_error(std::span<const double> x, std::span<const double> reference, std::size_t first, std::size_t end) {
  double difference = 0;
  double square = 0;
  for (std::size_t i = first; i < end; ++i) {
    difference += (x[i] - reference[i]) * (x[i] - reference[i]);
    square += reference[i] * reference[i];
  }
  const double ratio = difference / square;
  return std::isnan(ratio) ? HUGE_VAL : ratio;
}

// Sums of squares over the draws, in the places of the roots of their means.
void add(error_pair& to, const matrix<double>& o, const matrix<double>& state, const reference& exact) {
  to.o += squared_error(o.entries(), exact.o, 0, exact.o.size());
  to.state += squared_error(state.entries(), exact.state, 0, exact.state.size());
}

void finish(double& sum, std::size_t draws) { sum = std::sqrt(sum / static_cast<double>(draws)); }
void finish(error_pair& sum, std::size_t draws) {
  finish(sum.o, draws);
  finish(sum.state, draws);
}

void add_windows(std::vector<double>& to, const matrix<double>& o, const reference& exact,
                 std::span<const std::size_t> horizons) {
  for (std::size_t i = 0; i < horizons.size(); ++i) {
    to[i] += squared_error(o.entries(), exact.o, horizons[i] / 2 * o.cols(), horizons[i] * o.cols());
  }
}

sequence<double> draw(const run_options& options, const settings& size, std::size_t which, std::size_t tokens, std::size_t i) {
  return chunks::make_sequence(regimes[which].keys, regimes[which].steps, tokens, size.key_dim, size.value_dim, 1,
                               1000 * options.seed + i);
}

}  // namespace

settings settings_for(const run_options& options) {
  settings size;
  if (options.full) {
    size.tokens = 4096;
    size.horizon_tokens = 65536;
    size.draws = 4;
  }
  return size;
}

const error_curve& error_survey::at(std::size_t regime, std::string_view arithmetic) const {
  for (const error_curve& c : curves) {
    if (c.regime == regime && c.arithmetic == arithmetic) return c;
  }
  throw domain_error("wy: no curve for regime " + std::to_string(regime) + ", " + std::string(arithmetic));
}

reference run_reference(const sequence<double>& s) {
  const auto run = recurrent(convert<double_double>(s, [](double x) { return lift<double_double>(x); }));
  reference result;
  for (const double_double& x : run.o.entries()) result.o.push_back(x.hi());
  for (const double_double& x : run.final_state.entries()) result.state.push_back(x.hi());
  return result;
}

error_survey survey_errors(const run_options& options, const settings& size) {
  error_survey survey;
  for (std::size_t t = horizon_chunk; t <= size.horizon_tokens; t *= 2) survey.horizons.push_back(t);
  std::vector<reference> exact(regimes.size() * size.draws);
  std::vector<reference> exact_long(regimes.size());
  const std::size_t references = for_each_index(exact.size() + exact_long.size(), options, "references", [&](std::size_t i) {
    if (i < exact.size()) {
      exact[i] = run_reference(draw(options, size, i / size.draws, size.tokens, i % size.draws));
    } else {
      exact_long[i - exact.size()] = run_reference(draw(options, size, i - exact.size(), size.horizon_tokens, 0));
    }
  });
  if (references < exact.size() + exact_long.size()) return survey;
  for (std::size_t which = 0; which < regimes.size(); ++which) {
    for (const std::string_view name : studied)
      survey.curves.push_back({which, name, std::vector<error_pair>(size.chunks.size()), {}, {}, {}, {}});
  }
  const inverse_method method = inverse_named(inverse_name);
  const std::size_t done = for_each_index(survey.curves.size(), options, "chunk lengths and horizons", [&](std::size_t i) {
    error_curve& c = survey.curves[i];
    const chunks::chunk_arithmetic& arithmetic = chunks::arithmetic_named(c.arithmetic);
    for (std::size_t d = 0; d < size.draws; ++d) {
      const auto s = draw(options, size, c.regime, size.tokens, d);
      const reference& truth = exact[c.regime * size.draws + d];
      for (std::size_t k = 0; k < size.chunks.size(); ++k) {
        const auto run = arithmetic.chunkwise(s, size.chunks[k], method);
        add(c.by_chunk[k], run.o, run.final_state, truth);
      }
      const auto accumulator = arithmetic.recurrent(s, chunks::state_format::accumulator, 1, nullptr);
      const auto storage = arithmetic.recurrent(s, chunks::state_format::storage, 1, nullptr);
      add(c.recurrent_accumulator, accumulator.o, accumulator.final_state, truth);
      add(c.recurrent_storage, storage.o, storage.final_state, truth);
    }
    for (error_pair& e : c.by_chunk) finish(e, size.draws);
    finish(c.recurrent_accumulator, size.draws);
    finish(c.recurrent_storage, size.draws);
    const auto s = draw(options, size, c.regime, size.horizon_tokens, 0);
    c.by_horizon.resize(survey.horizons.size());
    c.recurrent_by_horizon.resize(survey.horizons.size());
    add_windows(c.by_horizon, arithmetic.chunkwise(s, horizon_chunk, method).o, exact_long[c.regime], survey.horizons);
    add_windows(c.recurrent_by_horizon, arithmetic.recurrent(s, chunks::state_format::storage, 1, nullptr).o,
                exact_long[c.regime], survey.horizons);
    for (double& e : c.by_horizon) finish(e, 1);
    for (double& e : c.recurrent_by_horizon) finish(e, 1);
  });
  survey.complete = done == survey.curves.size();
  return survey;
}

}  // namespace deltaproof::detail::wy
