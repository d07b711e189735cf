// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
//
// The certified oracle's tiers on one head of random unit keys (fp32-valued), d = K = V, against the measured peak of
// multiply-adds, an fp64 token loop in Eigen and MPFR rows of 128 bits. First a table of ratios: every row is timed in
// turn, round after round, by the processor time of this thread, and the median and the best of the rounds are printed,
// so that what else the machine does falls on all rows alike. Then the same rows as ordinary benchmarks.
// MPFR runs 2 of the d value rows; its time is printed times d/2. The peak is 3 d^2 multiply-adds a step without memory.
#include <benchmark/benchmark.h>
#include <time.h>

#include <Eigen/Core>
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <functional>
#include <numeric>
#include <random>
#include <string>
#include <vector>

#include "deltaproof/oracle/certify.hpp"
#include "oracle/mpfr_value.hpp"
#include "oracle/tiers/double_double_rows.hpp"
#include "oracle/tiers/fp64_rows.hpp"
#include "oracle/tiers/peak.hpp"

namespace {

using namespace deltaproof;

lowered<double> make_head(std::size_t d, std::size_t T, decay_kind decays) {
  std::mt19937_64 bits(1);
  std::normal_distribution<double> normal;
  std::uniform_real_distribution<double> uniform;
  lowered<double> in;
  in.scan = sequence<double>::zeros(T, 1, d, d, decays);
  auto& s = in.scan;
  in.scale = 1 / std::sqrt(static_cast<double>(d));
  for (double& x : s.q) x = normal(bits);
  for (double& x : s.v) x = normal(bits);
  for (double& x : s.step) x = uniform(bits);
  for (double& x : s.decay) x = std::exp(-0.1 * std::fabs(normal(bits)));
  for (std::size_t t = 0; t < T; ++t) {
    double* k = s.k.data() + t * d;
    double square = 0;
    for (std::size_t j = 0; j < d; ++j) {
      k[j] = normal(bits);
      square += k[j] * k[j];
    }
    for (std::size_t j = 0; j < d; ++j) k[j] = static_cast<double>(static_cast<float>(k[j] / std::sqrt(square)));
  }
  return in;
}

/// The token loop as one would write it: o = S q after S += (b (v - S k)) k^T.
double eigen_loop(const sequence<double>& s) {
  using vector = Eigen::VectorXd;
  const auto K = static_cast<Eigen::Index>(s.key_dim), V = static_cast<Eigen::Index>(s.value_dim);
  Eigen::MatrixXd S = Eigen::MatrixXd::Zero(V, K);
  vector w(V), o(V);
  double sum = 0;
  for (std::size_t t = 0; t < s.tokens; ++t) {
    const Eigen::Map<const vector> k(s.k.data() + t * s.key_dim, K), q(s.q.data() + t * s.key_dim, K), v(s.v.data() + t * s.value_dim, V);
    w.noalias() = S * k;
    w = s.step[t] * (v - w);
    S.noalias() += w * k.transpose();
    o.noalias() = S * q;
    sum += o[0];
  }
  return sum;
}

lowered<mpfr_value> two_rows_in_mpfr(const lowered<double>& in, int bits) {
  lowered<mpfr_value> out;
  out.scale = in.scale;
  sequence<double> two = in.scan;
  two.value_dim = 2;
  two.v.resize(two.rows() * 2);
  two.initial_state = matrix<double>(two.key_dim, 2);
  out.scan = convert<mpfr_value>(two, [&](double x) {
    mpfr_value y(bits);
    mpfr_set_d(y.get(), x, MPFR_RNDN);
    return y;
  });
  return out;
}

double thread_seconds() {
  timespec t{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return static_cast<double>(t.tv_sec) + 1e-9 * static_cast<double>(t.tv_nsec);
}

/// One row of the table: what runs, and how many times its time stands for a whole head.
struct contender {
  std::string name;
  std::function<void()> run;
  double factor = 1;
  int every = 1;  ///< rounds between two turns: slow ones take part in few
};

struct bench_case {
  std::size_t d, T;
  lowered<double> plain, gated, kda;
  tiers::double_double_head pairs, pairs_low, pairs_kda;
  lowered<mpfr_value> mpfr;
  std::vector<std::size_t> columns;
  tiers::tier_rows rows;
  double sink = 0;

  bench_case(std::size_t dim, std::size_t tokens)
      : d(dim), T(tokens), plain(make_head(d, T, decay_kind::none)), gated(make_head(d, T, decay_kind::per_token)),
        kda(make_head(d, T, decay_kind::per_channel)), columns(d) {
    std::iota(columns.begin(), columns.end(), std::size_t{0});
    pairs.high = pairs_low.high = plain;
    pairs_low.k_low.assign(plain.scan.k.size(), 0.0);
    pairs_low.q_low.assign(plain.scan.q.size(), 0.0);
    pairs_kda = pairs_low;
    pairs_kda.high = kda;
    pairs_kda.decay_low.assign(kda.scan.decay.size(), 0.0);
    mpfr = two_rows_in_mpfr(plain, 128);
  }

  std::vector<contender> contenders() {
    return {
        {"peak", [this] { tiers::run_multiply_adds(3 * d * d * T, sink); }},
        {"fp64_without_radius", [this] { tiers::run_fp64_uncertified(plain, columns, rows); }},
        {"fp64", [this] { tiers::run_fp64(plain, columns, rows); }},
        {"fp64_gate", [this] { tiers::run_fp64(gated, columns, rows); }},
        {"fp64_kda", [this] { tiers::run_fp64(kda, columns, rows); }},
        {"double_double", [this] { tiers::run_double_double(pairs, columns, rows); }, 1, 4},
        {"double_double_low_keys", [this] { tiers::run_double_double(pairs_low, columns, rows); }, 1, 4},
        {"double_double_kda", [this] { tiers::run_double_double(pairs_kda, columns, rows); }, 1, 4},
        {"eigen_fp64", [this] { sink += eigen_loop(plain.scan); }, 1, 2},
        {"mpfr_128",
         [this] {
           certifier<mpfr_field> engine(mpfr_field{128}, std::ldexp(1.0, -128), mpfr);
           sink += engine.run({}).o_radius[0];
         },
         static_cast<double>(d) / 2, 1000},
    };
  }
};

void print_table(bench_case& c, int rounds) {
  auto rows = c.contenders();
  std::vector<std::vector<double>> times(rows.size());
  for (int round = 0; round < rounds; ++round) {
    for (std::size_t i = 0; i < rows.size(); ++i) {
      if (round % rows[i].every != 0) continue;
      const double start = thread_seconds();
      rows[i].run();
      times[i].push_back((thread_seconds() - start) * rows[i].factor);
    }
  }
  const auto median = [](std::vector<double> x) {
    std::nth_element(x.begin(), x.begin() + static_cast<std::ptrdiff_t>(x.size() / 2), x.end());
    return x[x.size() / 2];
  };
  const auto best = [](const std::vector<double>& x) { return *std::min_element(x.begin(), x.end()); };
  const double peak = median(times[0]), peak_best = best(times[0]), fp64 = median(times[2]), fp64_best = best(times[2]);
  std::printf("d = %zu, T = %zu, %d rounds\n%-24s %12s %10s %10s %10s %10s\n", c.d, c.T, rounds, "", "ns a step", "of peak", "best", "x fp64", "best");
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const double m = median(times[i]), b = best(times[i]);
    std::printf("%-24s %12.1f %9.1f%% %9.1f%% %10.3f %10.3f\n", rows[i].name.c_str(), m / static_cast<double>(c.T) * 1e9, 100 * peak / m,
                100 * peak_best / b, m / fp64, b / fp64_best);
  }
  std::fflush(stdout);
}

}  // namespace

int main(int argc, char** argv) {
  std::vector<std::unique_ptr<bench_case>> cases;
  for (const std::size_t d : {64U, 128U}) {
    for (const std::size_t T : {1024U, 4096U}) cases.push_back(std::make_unique<bench_case>(d, T));
  }
  for (auto& c : cases) print_table(*c, 40);
  for (auto& c : cases) {
    for (const contender& row : c->contenders()) {
      const std::string name = row.name + "/d=" + std::to_string(c->d) + "/T=" + std::to_string(c->T);
      const std::size_t T = c->T;
      const double factor = row.factor;
      const auto run = row.run;
      benchmark::RegisterBenchmark(name.c_str(), [run, T, factor](benchmark::State& state) {
        for (auto _ : state) run();
        state.counters["s_per_head"] = benchmark::Counter(1 / factor, benchmark::Counter::kIsIterationInvariantRate | benchmark::Counter::kInvert);
        state.SetItemsProcessed(static_cast<std::int64_t>(state.iterations()) * static_cast<std::int64_t>(T));
      })->Unit(benchmark::kMillisecond);
    }
  }
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 2;
  benchmark::RunSpecifiedBenchmarks();
  return 0;
}
