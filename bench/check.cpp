// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
//
// How long a verdict takes: `check` without options, and without a search for planted faults, on a head count and length that
// kernel authors test with, on a small problem, and on each recording that is carried (or of the folder DELTAPROOF_RECORDINGS).
// Wall time, one check each. Beside it processor seconds of all threads, which other work on the machine disturbs less: `cpu_s`;
// `times_oracle`, over those of the outputs rounded to fp32, just before; `errors_s`, what the reference and the measured errors
// alone take; and the goal for one of them. Gradients: a result of a backward pass alone, with `times_forward`, its time over
// that of the outputs of the same kernel, and `goal_times`.
#include "deltaproof/check/check.hpp"

#include <benchmark/benchmark.h>

#include <chrono>
#include <cstdlib>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>

#include "deltaproof/emulate/emulate.hpp"
#include "deltaproof/emulate/emulate_gradients.hpp"
#include "deltaproof/files/exchange.hpp"
#include "deltaproof/files/golden.hpp"
#include "deltaproof/inputs/regimes.hpp"

namespace {

using namespace deltaproof;
namespace fs = std::filesystem;

struct pair_to_judge {
  problem p;
  result r;
};
using made = std::shared_ptr<const pair_to_judge>;

double seconds_of(const pair_to_judge& x, const check_options& options) {
  const auto began = std::chrono::steady_clock::now();
  benchmark::DoNotOptimize(check(x.p, x.r, options));
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count();
}

template <class Work>
double cpu_seconds_of(const Work& work) {
  const std::clock_t began = std::clock();
  work();
  return static_cast<double>(std::clock() - began) / CLOCKS_PER_SEC;
}

/// `goal`: a counter and what it may be at most.
template <class Make>
void time_check(const std::string& name, bool power, const std::pair<std::string, double>& goal, Make make) {
  benchmark::RegisterBenchmark(("check/" + name + (power ? "" : "/no_power")).c_str(),
                               [=](benchmark::State& state) {
                                 const pair_to_judge x = make();
                                 check_options options;
                                 golden_request outputs;
                                 outputs.round = fp32;
                                 const double oracle =
                                     cpu_seconds_of([&] { benchmark::DoNotOptimize(make_golden(x.p, outputs)); });
                                 const double errors = cpu_seconds_of([&] { seconds_of(x, options); });
                                 options.plans = plans_of(x.r, x.p);
                                 options.judge.power = power;
                                 double cpu = 0;
                                 for (auto _ : state)
                                   cpu = cpu_seconds_of([&] { state.SetIterationTime(seconds_of(x, options)); });
                                 state.counters["cpu_s"] = cpu;
                                 state.counters["times_oracle"] = cpu / oracle;
                                 state.counters["errors_s"] = errors;
                                 state.counters["goal_" + goal.first] = goal.second;
                               })
      ->UseManualTime()
      ->MeasureProcessCPUTime()
      ->Iterations(1)
      ->Unit(benchmark::kSecond);
}

pair_to_judge of_size(op_kind op, const std::string& plan_name, std::size_t tokens, std::size_t heads, std::size_t dim) {
  generation g;
  g.regime = "regbench";
  g.op = op;
  g.batch = 1;
  g.tokens = tokens;
  g.key_dim = dim;
  g.value_dim = dim;
  g.key_heads = heads;
  g.value_heads = heads;
  pair_to_judge x{generate(g), {}};
  const plan kept = plan_named(plan_name);
  emulation_options how;
  how.stages = true;
  x.r = emulate(x.p, variants(kept, x.p, path_kind::chunk, 64).front(), how);
  x.r.kernel = kept.kernels.front();
  return x;
}

pair_to_judge of_the_usual_size(op_kind op, const std::string& plan_name) { return of_size(op, plan_name, 4096, 4, 128); }

void time_gradients(const std::string& name, op_kind op, const std::string& plan_name) {
  benchmark::RegisterBenchmark(("check/" + name + "/gradients/no_power").c_str(),
                               [=](benchmark::State& state) {
                                 pair_to_judge forward = of_the_usual_size(op, plan_name);
                                 pair_to_judge backward = forward;
                                 // Any tensors of these shapes are cotangents.
                                 backward.p.d_o = forward.r.o;
                                 backward.p.d_final_state = forward.r.final_state;
                                 const plan kept = plan_named(plan_name);
                                 backward.r = emulate_gradients(
                                     backward.p, gradient_variants(kept, backward.p, path_kind::chunk, 64).front());
                                 backward.r.kernel = kept.kernels.front();
                                 backward.r.o = tensor();
                                 backward.r.final_state.reset();
                                 check_options options;
                                 options.plans = plans_of(backward.r, backward.p);
                                 options.judge.power = false;
                                 const double outputs = seconds_of(forward, options);
                                 double gradients = 0;
                                 for (auto _ : state) state.SetIterationTime(gradients = seconds_of(backward, options));
                                 state.counters["times_forward"] = gradients / outputs;
                                 state.counters["goal_times"] = 2.5;
                               })
      ->UseManualTime()
      ->Iterations(1)
      ->Unit(benchmark::kSecond);
}

pair_to_judge recorded(const fs::path& folder, const std::string& name, const std::string& path) {
  notes_list notes;
  const safetensors_file file = read_safetensors(folder / (name + ".problem.safetensors"));
  pair_to_judge x{parse_problem(file, notes), {}};
  x.r = read_result(folder / (name + "." + path + ".safetensors"), x.p, sha256_hex(file.bytes()), notes);
  return x;
}

}  // namespace

int main(int argc, char** argv) {
  for (const bool power : {false, true}) {
    const std::pair<std::string, double> goal{"times_oracle", power ? 12 : 6};
    time_check("T4096_H4_K128_V128/gdn", power, goal,
               [] { return of_the_usual_size(op_kind::gated_delta_rule, "fla-chunk-gdn"); });
    time_check("T4096_H4_K128_V128/kda", power, goal, [] { return of_the_usual_size(op_kind::kda, "fla-chunk-kda"); });
  }
  time_check("T256_H2_K64_V64/gdn", true, {"cpu_s", 0.5},
             [] { return of_size(op_kind::gated_delta_rule, "fla-chunk-gdn", 256, 2, 64); });
  time_gradients("T4096_H4_K128_V128/gdn", op_kind::gated_delta_rule, "fla-chunk-gdn");
  time_gradients("T4096_H4_K128_V128/kda", op_kind::kda, "fla-chunk-kda");
  const char* const other = std::getenv("DELTAPROOF_RECORDINGS");
  const fs::path folder = other != nullptr ? fs::path(other) : fs::path(DELTAPROOF_SOURCE_DIR) / "tests" / "recordings";
  for (const auto& entry : nlohmann::json::parse(std::ifstream(folder / "index.json"))) {
    const std::string name = entry["case"];
    for (const char* path : {"chunk", "recurrent", "ref64"}) {
      if (!fs::exists(folder / (name + "." + path + ".safetensors"))) continue;
      time_check(name + "." + path, true, {"cpu_s", 5}, [=] { return recorded(folder, name, path); });
    }
  }
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 1;
  benchmark::RunSpecifiedBenchmarks();
  return 0;
}
