// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT

#include "studies/wy/errors.hpp"

#include "deltaproof/number/double_double.hpp"
#include "deltaproof/scan/recurrent.hpp"
#include "studies/shared/chunks/arithmetics.hpp"

namespace deltaproof::detail::wy {
namespace {

/// |x - reference| / |reference| over entries first .. end - 1.
double error_of(const matrix<double>& x, const std::vector<double>& reference, std::size_t first, std::size_t end) {
  return shared::nearness_of(x.entries().subspan(first, end - first), std::span(reference).subspan(first, end - first)).error;
}
double squared_error(const matrix<double>& x, const std::vector<double>& reference) {
  const double error = error_of(x, reference, 0, reference.size());
  return error * error;
}

}  // namespace

reference run_reference(const sequence<double>& s) {
  const auto run = recurrent(convert<double_double>(s, [](double x) { return lift<double_double>(x); }));
  reference result;
  for (const double_double& x : run.o.entries()) result.o.push_back(x.hi());
  for (const double_double& x : run.final_state.entries()) result.state.push_back(x.hi());
  return result;
}

frame squared_errors(const sequence<double>& s, std::span<const std::size_t> chunk_lengths) {
  const reference truth = run_reference(s);
  frame result(error_columns);
  for (const std::string_view name : studied) {
    const chunks::chunk_arithmetic& arithmetic = chunks::arithmetic_named(name);
    const auto accumulator = arithmetic.recurrent(s, chunks::state_format::accumulator, 1, nullptr);
    const auto storage = arithmetic.recurrent(s, chunks::state_format::storage, 1, nullptr);
    for (const std::size_t chunk : chunk_lengths) {
      const auto run = arithmetic.chunkwise(s, chunk, inverse_named(inverse_name));
      result.add({name, chunk, squared_error(run.o, truth.o), squared_error(run.final_state, truth.state),
                  squared_error(accumulator.o, truth.o), squared_error(storage.o, truth.o)});
    }
  }
  return result;
}

frame window_errors(const sequence<double>& s, std::span<const std::size_t> horizons) {
  const reference truth = run_reference(s);
  frame result(window_columns);
  for (const std::string_view name : {"bf16", "fp16", "fp32"}) {
    const chunks::chunk_arithmetic& arithmetic = chunks::arithmetic_named(name);
    const auto add = [&](std::string_view run, const matrix<double>& o) {
      for (const std::size_t t : horizons) {
        result.add({name, run, t, error_of(o, truth.o, t / 2 * o.cols(), t * o.cols())});
      }
    };
    add("chunkwise", arithmetic.chunkwise(s, horizon_chunk, inverse_named(inverse_name)).o);
    add("recurrence", arithmetic.recurrent(s, chunks::state_format::storage, 1, nullptr).o);
  }
  return result;
}

}  // namespace deltaproof::detail::wy
