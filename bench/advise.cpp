// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
//
// How long advice takes on one head of T = 4096, K = V = 128, in two threads, on the regimes that its test has. Wall time and,
// beside it, processor time of all threads, which other work on the machine does not change; `goal_s` on two cores.
#include "deltaproof/check/advise.hpp"

#include <benchmark/benchmark.h>

#include <string>

#include "deltaproof/inputs/regimes.hpp"

namespace {

using namespace deltaproof;

void time_advice(const std::string& regime) {
  benchmark::RegisterBenchmark(("advise/T4096_H1_K128_V128/" + regime).c_str(),
                               [=](benchmark::State& state) {
                                 generation g;
                                 g.regime = regime;
                                 g.op = op_kind::gated_delta_rule;
                                 g.batch = 1;
                                 g.tokens = 4096;
                                 g.key_dim = g.value_dim = 128;
                                 g.key_heads = g.value_heads = 1;
                                 g.seed = 3;
                                 const problem p = generate(g);
                                 advise_options options;
                                 options.threads = 2;
                                 for (auto _ : state) benchmark::DoNotOptimize(advise(p, options));
                                 state.counters["goal_s"] = 20;
                               })
      ->UseRealTime()
      ->MeasureProcessCPUTime()
      ->Iterations(1)
      ->Unit(benchmark::kSecond);
}

}  // namespace

int main(int argc, char** argv) {
  for (const char* regime : {"model-gates", "slow-decay", "collinear"}) time_advice(regime);
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 1;
  benchmark::RunSpecifiedBenchmarks();
  return 0;
}
