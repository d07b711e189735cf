// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
//
// The emulator's arithmetic beside what it could be at best: products in each order and accumulator, a float product by Eigen
// and by a plain triple loop, and the rounding of an array beside its copy. Counter `per_step`: time over multiply-adds (or
// entries). One thread; compare rows of one run only.
#include <benchmark/benchmark.h>

#include <Eigen/Core>
#include <array>
#include <cstring>
#include <string>
#include <vector>

#include "deltaproof/number/random.hpp"
#include "emulate/products.hpp"

namespace {

using namespace deltaproof;
using emulation::product;
using emulation::sum_rule;

struct shape {
  std::size_t rows, inner, cols;
  [[nodiscard]] std::string text() const {
    return std::to_string(rows) + "x" + std::to_string(inner) + "x" + std::to_string(cols);
  }
};
constexpr std::array<shape, 5> shapes{{{64, 64, 128}, {64, 128, 128}, {128, 64, 128}, {16, 16, 16}, {1, 128, 128}}};

std::vector<float> operands(std::size_t count, std::uint64_t stream, const format& to) {
  philox generator(1, stream);
  std::vector<float> result(count);
  for (float& x : result) x = static_cast<float>(generator.normal());
  emulation::narrow(std::span<float>(result), {to});
  return result;
}

void per_step(benchmark::State& state, double steps) {
  state.counters["per_step"] =
      benchmark::Counter(steps, benchmark::Counter::kIsIterationInvariantRate | benchmark::Counter::kInvert);
}

void time_product(const std::string& name, const shape& s, auto multiply_once) {
  benchmark::RegisterBenchmark((name + "/" + s.text()).c_str(), [=](benchmark::State& state) {
    const std::vector<float> a = operands(s.rows * s.inner, 1, bf16);
    const std::vector<float> b = operands(s.inner * s.cols, 2, bf16);
    std::vector<float> c(s.rows * s.cols);
    for (auto _ : state) {
      std::fill(c.begin(), c.end(), 0.0F);
      multiply_once(product<float>{a.data(), s.inner, b.data(), s.cols, c.data(), s.cols, s.rows, s.inner, s.cols});
      benchmark::DoNotOptimize(c.data());
      benchmark::ClobberMemory();
    }
    per_step(state, static_cast<double>(s.rows * s.inner * s.cols));
  });
}

void plain_loop(const product<float>& p) {
  for (std::size_t i = 0; i < p.rows; ++i) {
    for (std::size_t k = 0; k < p.inner; ++k) {
      for (std::size_t j = 0; j < p.cols; ++j) {
        p.c[i * p.c_stride + j] += p.a[i * p.a_stride + k] * p.b[k * p.b_stride + j];
      }
    }
  }
}

void eigen(const product<float>& p) {
  using matrix = Eigen::Matrix<float, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
  const auto size = [](std::size_t n) { return static_cast<Eigen::Index>(n); };
  const Eigen::Map<const matrix> a(p.a, size(p.rows), size(p.inner));
  const Eigen::Map<const matrix> b(p.b, size(p.inner), size(p.cols));
  Eigen::Map<matrix>(p.c, size(p.rows), size(p.cols)).noalias() += a * b;
}

void time_narrowing(const std::string& name, auto change) {
  benchmark::RegisterBenchmark(("narrow/" + name).c_str(), [=](benchmark::State& state) {
    const std::vector<float> from = operands(std::size_t{1} << 22, 3, fp32);
    std::vector<float> to(from.size());
    for (auto _ : state) {
      std::memcpy(to.data(), from.data(), from.size() * sizeof(float));
      change(std::span<float>(to));
      benchmark::DoNotOptimize(to.data());
      benchmark::ClobberMemory();
    }
    per_step(state, static_cast<double>(from.size()));
  })->Unit(benchmark::kMillisecond);
}

}  // namespace

int main(int argc, char** argv) {
  const auto by_rule = [](const sum_rule& rule) { return [rule](const product<float>& p) { emulation::multiply(p, rule); }; };
  for (const shape& s : shapes) {
    time_product("plain loop", s, plain_loop);
    time_product("eigen", s, eigen);
    for (const auto& [order, name] : sum_order_names) {
      time_product(std::string(name) + " fp32", s, by_rule({.order = order}));
    }
    time_product("sequential fp16", s, by_rule({.accumulate = fp16}));
  }
  time_narrowing("copy alone", [](std::span<float>) {});
  for (const format& f : {bf16, fp16, tf32, e4m3}) {
    time_narrowing(std::string(name_of(f)), [f](std::span<float> x) { emulation::narrow(x, {f}); });
  }
  time_narrowing("tf32 toward zero", [](std::span<float> x) { emulation::narrow(x, {tf32, true}); });
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 2;
  benchmark::RunSpecifiedBenchmarks();
  return 0;
}
