// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
//
// Time beside error: the library's recurrence and chunkwise form over 1024 tokens, K = 64, V = 8, as study `wy` runs them.
// Counters: `error` is |o' - o| / |o| against the double-double recurrence, `operations` the exact count a token. What is
// timed is this library on this machine, not a GPU kernel: of the ratio between two rows only the count travels.
#include <benchmark/benchmark.h>

#include <cmath>
#include <initializer_list>
#include <string>

#include "studies/shared/chunks/arithmetics.hpp"
#include "studies/wy/cost.hpp"
#include "studies/wy/errors.hpp"

namespace {

using namespace deltaproof;
using namespace deltaproof::detail;

constexpr std::size_t tokens = 1024;
constexpr std::size_t key_dim = 64;
constexpr std::size_t value_dim = 8;

double error_of(const matrix<double>& o, const wy::reference& exact) {
  double difference = 0;
  double square = 0;
  for (std::size_t i = 0; i < o.size(); ++i) {
    difference += (o.data()[i] - exact.o[i]) * (o.data()[i] - exact.o[i]);
    square += exact.o[i] * exact.o[i];
  }
  return std::sqrt(difference / square);
}

void finish(benchmark::State& state, const matrix<double>& o, const sequence<double>& s, const operation_counts& counts) {
  state.SetItemsProcessed(static_cast<std::int64_t>(state.iterations() * tokens));
  state.counters["error"] = error_of(o, wy::run_reference(s));
  state.counters["operations"] = static_cast<double>(counts.total()) / tokens;
}

}  // namespace

int main(int argc, char** argv) {
  static const auto s = chunks::make_sequence(chunks::key_kind::fresh, {0, 1}, tokens, key_dim, value_dim, 1, 1000);
  static const inverse_method method = inverse_named("forward");
  for (const std::string_view name : wy::studied) {
    const chunks::chunk_arithmetic& arithmetic = chunks::arithmetic_named(name);
    benchmark::RegisterBenchmark((std::string(name) + "/recurrence").c_str(), [&arithmetic](benchmark::State& state) {
      trace<double> run;
      for (auto _ : state) run = arithmetic.recurrent(s, chunks::state_format::accumulator, 1, nullptr);
      finish(state, run.o, s, wy::recurrent_operations(tokens, key_dim, value_dim));
    })->Unit(benchmark::kMillisecond);
    for (const std::size_t chunk : std::initializer_list<std::size_t>{1, 4, 16, 64, 128}) {
      benchmark::RegisterBenchmark((std::string(name) + "/C=" + std::to_string(chunk)).c_str(), [&arithmetic,
                                                                                                 chunk](benchmark::State& state) {
        chunks::chunk_run run;
        for (auto _ : state) run = arithmetic.chunkwise(s, chunk, method);
        finish(state, run.o, s, wy::chunkwise_operations(tokens, chunk, key_dim, value_dim));
      })->Unit(benchmark::kMillisecond);
    }
  }
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 2;
  benchmark::RunSpecifiedBenchmarks();
  return 0;
}
