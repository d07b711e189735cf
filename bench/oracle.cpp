// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
//
// The certified oracle's tiers on one head of random unit keys (fp32-valued), d = K = V, against the measured peak of
// multiply-adds, fp64 token loops (Eigen, numpy, torch) and rows of MPFR and Arb with 128 bits. Every row of a table is timed
// in turn, round after round, by the processor time of its thread, and medians are printed, so that what else the machine
// does falls on all rows alike. Then whole questions by wall clock, the goals beside what was measured, and the same rows as
// ordinary benchmarks. MPFR and Arb run 2 of the d value rows; their time is printed times d/2. The peak is 3 d^2
// multiply-adds a step without memory. `--page DIR` writes the report oracle-bench there; `--tables-only` ends after it,
// `--gradients-only` after the first table.
#include <benchmark/benchmark.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#ifdef DELTAPROOF_ARB
#include <arb.h>
#endif

#include <hwy/highway.h>

#include <Eigen/Core>
#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <functional>
#include <map>
#include <memory>
#include <numeric>
#include <random>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "bench/token_loop.hpp"
#include "deltaproof/inputs/regimes.hpp"
#include "deltaproof/oracle/certify.hpp"
#include "deltaproof/oracle/reference.hpp"
#include "deltaproof/study/report.hpp"
#include "oracle/mpfr_value.hpp"
#include "oracle/tiers/double_double_rows.hpp"
#include "oracle/tiers/fp64_coefficients.hpp"
#include "oracle/tiers/fp64_rows.hpp"
#include "oracle/tiers/lower_double_double.hpp"
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
    const Eigen::Map<const vector> k(s.k.data() + t * s.key_dim, K), q(s.q.data() + t * s.key_dim, K),
        v(s.v.data() + t * s.value_dim, V);
    w.noalias() = S * k;
    w = s.step[t] * (v - w);
    S.noalias() += w * k.transpose();
    o.noalias() = S * q;
    sum += o[0];
  }
  return sum;
}

constexpr std::size_t slow_rows = 2;

lowered<mpfr_value> two_rows_in_mpfr(const lowered<double>& in, int bits) {
  lowered<mpfr_value> out;
  out.scale = in.scale;
  sequence<double> two = in.scan;
  two.value_dim = slow_rows;
  two.v.resize(two.rows() * slow_rows);
  two.initial_state = matrix<double>(two.key_dim, slow_rows);
  out.scan = convert<mpfr_value>(two, [&](double x) {
    mpfr_value y(bits);
    mpfr_set_d(y.get(), x, MPFR_RNDN);
    return y;
  });
  return out;
}

#ifdef DELTAPROOF_ARB
/// Two rows of balls of 128 bits, entry by entry.
double arb_loop(const sequence<double>& s) {
  constexpr slong precision = 128;
  const auto K = static_cast<slong>(s.key_dim);
  arb_ptr state = _arb_vec_init(K * static_cast<slong>(slow_rows)), k = _arb_vec_init(K), q = _arb_vec_init(K);
  arb_t w, o;
  arb_init(w);
  arb_init(o);
  double width = 0;
  for (std::size_t t = 0; t < s.tokens; ++t) {
    for (slong j = 0; j < K; ++j) {
      arb_set_d(k + j, s.k[t * s.key_dim + static_cast<std::size_t>(j)]);
      arb_set_d(q + j, s.q[t * s.key_dim + static_cast<std::size_t>(j)]);
    }
    for (std::size_t r = 0; r < slow_rows; ++r) {
      arb_ptr row = state + static_cast<slong>(r) * K;
      arb_set_d(w, s.v[t * s.value_dim + r]);
      arb_dot(w, w, 1, row, 1, k, 1, K, precision);  // v - S k
      arb_set_d(o, s.step[t]);
      arb_mul(w, w, o, precision);
      for (slong j = 0; j < K; ++j) arb_addmul(row + j, k + j, w, precision);
      arb_dot(o, nullptr, 0, row, 1, q, 1, K, precision);
      width = mag_get_d(arb_radref(o));
    }
  }
  arb_clear(w);
  arb_clear(o);
  _arb_vec_clear(state, K * static_cast<slong>(slow_rows));
  _arb_vec_clear(k, K);
  _arb_vec_clear(q, K);
  return width;
}
#endif

double seconds_on(clockid_t clock) {
  timespec t{};
  clock_gettime(clock, &t);
  return static_cast<double>(t.tv_sec) + 1e-9 * static_cast<double>(t.tv_nsec);
}

double median(std::vector<double> x) {
  std::nth_element(x.begin(), x.begin() + static_cast<std::ptrdiff_t>(x.size() / 2), x.end());
  return x[x.size() / 2];
}

/// One row of a table: what runs and answers with its seconds, and how many times those stand for a whole head.
struct contender {
  std::string name;
  std::function<double()> seconds;
  double factor = 1;
  int every = 1;  ///< rounds between two turns: slow ones take part in few
};

/// Timed by the processor time of this thread.
contender here(std::string name, std::function<void()> run, double factor = 1, int every = 1) {
  return {std::move(name),
          [run = std::move(run)] {
            const double start = seconds_on(CLOCK_THREAD_CPUTIME_ID);
            run();
            return seconds_on(CLOCK_THREAD_CPUTIME_ID) - start;
          },
          factor, every};
}

struct bench_case {
  std::size_t d, T;
  lowered<double> plain, gated, kda, few;
  tiers::double_double_head pairs, pairs_low, pairs_kda;
  lowered<mpfr_value> mpfr;
  std::vector<std::size_t> columns;
  tiers::tier_rows rows;
  double sink = 0;

  bench_case(std::size_t dim, std::size_t tokens)
      : d(dim),
        T(tokens),
        plain(make_head(d, T, decay_kind::none)),
        gated(make_head(d, T, decay_kind::per_token)),
        kda(make_head(d, T, decay_kind::per_channel)),
        few(make_head(d, 256, decay_kind::none)),
        columns(d) {
    std::iota(columns.begin(), columns.end(), std::size_t{0});
    pairs.high = pairs_low.high = plain;
    pairs_low.k_low.assign(plain.scan.k.size(), 0.0);
    pairs_low.q_low.assign(plain.scan.q.size(), 0.0);
    pairs_kda = pairs_low;
    pairs_kda.high = kda;
    pairs_kda.decay_low.assign(kda.scan.decay.size(), 0.0);
    if (T <= 1024) mpfr = two_rows_in_mpfr(plain, 128);
  }

  /// What the certificate needs of the head alone, for as many blocks of steps as there are. One block over and over: in a head
  /// keys and queries are fetched for the values too.
  void coefficients() {
    tiers::block_coefficients c;
    for (std::size_t t = 0; t < T; t += tiers::block_steps)
      tiers::fp64_coefficients(plain, true, 0, std::min(T, tiers::block_steps), 0, c);
    sink += c.read;
  }

  /// T steps as heads of 256 tokens, whose numbers stay in the caches next to the core.
  void near(bool radius) {
    for (std::size_t t = 0; t < T; t += few.scan.tokens) {
      if (radius) tiers::run_fp64(few, columns, rows);
      if (!radius) tiers::run_fp64_uncertified(few, columns, rows);
    }
  }

  /// Ratios to fp64 of the slow ones hardly depend on T: they take part at T = 1024 only.
  std::vector<contender> contenders(bench::token_loop_worker* loops) {
    std::vector<contender> all{
        here("multiply-adds, peak", [this] { tiers::run_multiply_adds(3 * d * d * T, sink); }),
        here("fp64, its inner loop alone", [this] { tiers::run_passes(d, 3 * d * d * T, sink); }),
        here("fp64 without radius", [this] { tiers::run_fp64_uncertified(plain, columns, rows); }),
        here("fp64", [this] { tiers::run_fp64(plain, columns, rows); }),
        here("fp64 without radius, 256 tokens over and over", [this] { near(false); }),
        here("fp64, 256 tokens over and over", [this] { near(true); }),
        here("fp64, its coefficients alone", [this] { coefficients(); }),
        here("fp64, scalar gate", [this] { tiers::run_fp64(gated, columns, rows); }),
        here("fp64, gate by channel", [this] { tiers::run_fp64(kda, columns, rows); }),
        here(
            "double-double", [this] { tiers::run_double_double(pairs, columns, rows); }, 1, 4),
        here(
            "double-double, normalised keys", [this] { tiers::run_double_double(pairs_low, columns, rows); }, 1, 4),
        here(
            "double-double, gate by channel", [this] { tiers::run_double_double(pairs_kda, columns, rows); }, 1, 4),
        here("Eigen fp64 loop", [this] { sink += eigen_loop(plain.scan); }, 1, 2)};
    if (loops != nullptr) {
      for (const char* loop : {"numpy", "torch_naive", "torch_in_place"}) {
        const std::string name = loop;
        const std::string package = name.substr(0, name.find('_'));
        if (!loops->has(package)) continue;
        all.push_back({name + " fp64 loop", [this, loops, name] { return loops->seconds(name, d, T); }, 1, 4});
      }
    }
    if (T > 1024) return all;
    const double factor = static_cast<double>(d) / static_cast<double>(slow_rows);
    all.push_back(here(
        "MPFR 128 bits, radius", [this] { sink += certifier<mpfr_field>(mpfr_field{128}, 0x1p-128, mpfr).run({}).o_radius[0]; },
        factor, 1000));
#ifdef DELTAPROOF_ARB
    all.push_back(here("Arb 128 bits", [this] { sink += arb_loop(plain.scan); }, factor, 20));
#endif
    return all;
  }
};

/// Medians of seconds of a head, in the order of `rows`.
std::vector<double> timed(const std::vector<contender>& rows, int rounds) {
  std::vector<std::vector<double>> times(rows.size());
  for (int round = 0; round < rounds; ++round) {
    for (std::size_t i = 0; i < rows.size(); ++i) {
      if (round % rows[i].every == 0) times[i].push_back(rows[i].seconds() * rows[i].factor);
    }
  }
  std::vector<double> out;
  for (const auto& x : times) out.push_back(median(x));
  return out;
}

void print(const table& t) {
  std::printf("\n%s\n", t.title.c_str());
  std::vector<std::size_t> width;
  const auto text = [&](const std::vector<cell>& row, std::size_t c) { return row[c].text(t.columns[c].digits); };
  for (std::size_t c = 0; c < t.columns.size(); ++c) {
    width.push_back(t.columns[c].name.size());
    for (const auto& row : t.rows) width[c] = std::max(width[c], text(row, c).size());
  }
  const auto put = [&](std::size_t c, const std::string& x) {
    std::printf(c == 0 ? "%-*s" : "  %*s", static_cast<int>(width[c]), x.c_str());
  };
  for (std::size_t c = 0; c < t.columns.size(); ++c) put(c, t.columns[c].name);
  for (const auto& row : t.rows) {
    std::printf("\n");
    for (std::size_t c = 0; c < t.columns.size(); ++c) put(c, text(row, c));
  }
  std::printf("\n");
  std::fflush(stdout);
}

/// Goals of the tiers, each with what was measured.
struct goals {
  table t{"goals", "Goals", {"what", {"measured", 3}, "goal", "met", "what binds"}, {}};
  void at_most(const std::string& what, double got, double goal, const std::string& binds = "") {
    add(what, got, "at most " + number(goal), got <= goal, binds);
  }
  void at_least(const std::string& what, double got, double goal, const std::string& binds = "") {
    add(what, got, "at least " + number(goal), got >= goal, binds);
  }

 private:
  void add(const std::string& what, double got, const std::string& goal, bool met, const std::string& binds) {
    t.rows.push_back({what, got, goal, met, met ? std::string() : binds});
  }
};

const contender& named(const std::vector<contender>& rows, const std::string& name) {
  return *std::find_if(rows.begin(), rows.end(), [&](const contender& row) { return row.name == name; });
}

double of(const std::vector<contender>& rows, const std::vector<double>& times, const std::string& name) {
  for (std::size_t i = 0; i < rows.size(); ++i) {
    if (rows[i].name == name) return times[i];
  }
  return std::nan("");
}

void add_ratios(bench_case& c, bench::token_loop_worker& loops, int rounds, report& page, goals& wanted) {
  const auto rows = c.contenders(&loops);
  const auto times = timed(rows, rounds);
  const std::string d = std::to_string(c.d), T = std::to_string(c.T);
  table t{"ratios-d" + d + "-t" + T,
          "One head, d = " + d + ", T = " + T,
          {"", {"ns a step", 4}, {"% of the peak", 3}, {"times fp64", 3}},
          {}};
  const double peak = times[0], fp64 = of(rows, times, "fp64");
  for (std::size_t i = 0; i < rows.size(); ++i) {
    t.rows.push_back({rows[i].name, times[i] / static_cast<double>(c.T) * 1e9, 100 * peak / times[i], times[i] / fp64});
  }
  print(t);
  page.tables.push_back(std::move(t));
  const std::string at = ", d = " + d + ", T = " + T;
  if (c.T == 4096 && c.d <= 128) {
    const double plain = of(rows, times, "fp64 without radius"), coefficients = of(rows, times, "fp64, its coefficients alone");
    const auto percent = [&](const std::string& name) { return number(100 * peak / of(rows, times, name)); };
    wanted.at_least("fp64 with radius, % of the peak" + at, 100 * peak / fp64, 85,
                    "% of the peak: " + percent("fp64, its inner loop alone") + " the inner loop alone; without radius " +
                        percent("fp64 without radius, 256 tokens over and over") + " in near caches and " +
                        percent("fp64 without radius") + " here; with it " + percent("fp64, 256 tokens over and over") +
                        " in near caches");
    wanted.at_most("fp64: time with radius / without" + at, fp64 / plain, 1.05,
                   "its coefficients alone take " + number(100 * coefficients / plain) +
                       " % of the time without; in near caches the ratio is " +
                       number(of(rows, times, "fp64, 256 tokens over and over") /
                              of(rows, times, "fp64 without radius, 256 tokens over and over")));
    wanted.at_most("fp64: scalar gate / none" + at, of(rows, times, "fp64, scalar gate") / fp64, 1.6);
    wanted.at_most("fp64: gate by channel / none" + at, of(rows, times, "fp64, gate by channel") / fp64, 1.6);
    wanted.at_most("double-double / fp64" + at, of(rows, times, "double-double") / fp64, 6);
  }
  if (c.T == 4096 && c.d == 64) {
    tiers::run_double_double(c.pairs, c.columns, c.rows);
    double radius = 0;
    for (std::size_t r = 0; r < c.rows.rows; ++r) {
      for (std::size_t token = 0; token < c.T; ++token) radius = std::max(radius, c.rows.radius(token, r));
    }
    wanted.at_most("double-double: largest radius of o" + at, radius, 2e-22);
  }
}

void add_growth(int rounds, report& page) {
  table t{"growth", "Growth with T, d = 64: ns a step", {{"T", 6}, {"fp64", 4}, {"double-double", 4}}, {}};
  series fp64{"fp64", {}, {}}, pairs{"double-double", {}, {}};
  for (std::size_t T = 1024; T <= 32768; T *= 2) {
    bench_case c(64, T);
    const std::vector<contender> all = c.contenders(nullptr);
    std::vector<contender> two{named(all, "fp64"), named(all, "double-double")};
    two[1].every = 2;
    auto times = timed(two, rounds);
    for (double& x : times) x *= 1e9 / static_cast<double>(T);
    t.rows.push_back({T, times[0], times[1]});
    fp64.x.push_back(static_cast<double>(T));
    pairs.x.push_back(static_cast<double>(T));
    fp64.y.push_back(times[0]);
    pairs.y.push_back(times[1]);
  }
  print(t);
  page.tables.push_back(std::move(t));
  panel p{"", {"tokens T", axis_scale::logarithmic}, {"ns a step", axis_scale::logarithmic}, {fp64, pairs}};
  page.figures.push_back({"growth",
                          "Time a step against T",
                          "A level line is time linear in T.",
                          "Two curves, fp64 and double-double, of nanoseconds a step over T from 1024 to 32768.",
                          {p}});
}

/// Wall time, and the processor time of all threads.
std::pair<double, double> seconds_of(const problem& p, const question& q) {
  const double start = seconds_on(CLOCK_MONOTONIC), used = seconds_on(CLOCK_PROCESS_CPUTIME_ID);
  benchmark::DoNotOptimize(solve(p, q).unanswered);
  return {seconds_on(CLOCK_MONOTONIC) - start, seconds_on(CLOCK_PROCESS_CPUTIME_ID) - used};
}

/// Time of the rows of one head by one thread over that by two with half of them each, beside nothing else.
double rows_by_two_threads(int rounds) {
  constexpr std::size_t d = 128;
  const lowered<double> head = make_head(d, 4096, decay_kind::none);
  std::vector<std::size_t> columns(d);
  std::iota(columns.begin(), columns.end(), std::size_t{0});
  std::array<tiers::tier_rows, 3> out;
  std::vector<double> one, two;
  const auto wall = [](const auto& run) {
    const double start = seconds_on(CLOCK_MONOTONIC);
    run();
    return seconds_on(CLOCK_MONOTONIC) - start;
  };
  for (int round = 0; round < rounds; ++round) {
    one.push_back(wall([&] { tiers::run_fp64(head, columns, out[2]); }));
    two.push_back(wall([&] {
      const std::span all(columns);
      std::thread other([&] { tiers::run_fp64(head, all.subspan(d / 2), out[1]); });
      tiers::run_fp64(head, all.first(d / 2), out[0]);
      other.join();
    }));
  }
  return median(one) / median(two);
}

/// Heads and threads: one question, wall time, the median of rounds taken in turn.
void add_threads(int rounds, report& page, goals& wanted) {
  table t{"threads",
          "solve with any radius, T = 4096, K = V = 128: seconds of wall time",
          {"heads", {"1 thread", 3}, {"2 threads", 3}, {"ratio", 3}},
          {}};
  double one_head = 0, one_by_head = 0;
  const double of_rows = rows_by_two_threads(3 * rounds);
  for (const std::size_t heads : {1U, 2U, 4U, 8U}) {
    generation g;
    g.op = op_kind::delta_rule;
    g.tokens = 4096;
    g.key_dim = g.value_dim = 128;
    g.key_heads = g.value_heads = heads;
    g.initial_state = "none";
    const problem p = generate(g);
    std::vector<double> one, two, work, by_head;
    for (int round = 0; round < rounds; ++round) {
      question q;
      q.threads = 1;
      const double start = seconds_on(CLOCK_MONOTONIC);
      solve_by_head(p, q, [](const solved_head&) {});
      by_head.push_back(seconds_on(CLOCK_MONOTONIC) - start);
      const auto alone = seconds_of(p, q);
      q.threads = 2;
      const auto both = seconds_of(p, q);
      one.push_back(alone.first);
      two.push_back(both.first);
      work.push_back(both.second / alone.second);
    }
    const double a = median(one), b = median(two);
    t.rows.push_back({heads, a, b, a / b});
    if (heads == 1) {
      one_head = a;
      one_by_head = median(by_head);
    }
    if (heads == 1 || heads == 8)
      wanted.at_least("two threads against one, " + std::to_string(heads) + (heads == 1 ? " head" : " heads"), a / b, 1.85,
                      "processor time of both is " + number(median(work)) +
                          " times that of one; the rows alone, half to a thread: " + number(of_rows));
    if (heads == 8)
      wanted.at_most("8 heads / (8 times one head), one thread", a / (8 * one_head), 1.1,
                     number(median(by_head) / (8 * one_by_head)) +
                         " where each head is given away (solve_by_head) instead of put into one tensor");
  }
  print(t);
  page.tables.push_back(std::move(t));
}

/// The program itself on B = 1, H = 4, T = 4096, K = V = 128: wall time and peak memory of the child.
void add_program(const std::string& program, report& page, goals& wanted) {
  table t{"program",
          "deltaproof oracle, B = 1, H = 4, T = 4096, K = V = 128, two threads",
          {"op", "rounded to", {"seconds", 3}, {"peak memory, MB", 4}},
          {}};
  const std::string folder = std::filesystem::temp_directory_path() / ("deltaproof-bench-" + std::to_string(getpid()));
  std::filesystem::create_directories(folder);
  for (const char* op : {"delta_rule", "gated_delta_rule", "kda"}) {
    const std::string problem = folder + "/p.safetensors";
    const std::string make = "'" + program + "' gen --regime typical --op " + op + " --T 4096 --K 128 --V 128 --H 4 --HV 4 -o '" +
                             problem + "' > /dev/null 2>&1";
    if (std::system(make.c_str()) != 0) continue;
    for (const char* to : {"bf16", "fp32"}) {
      std::vector<double> seconds;
      long peak = 0;
      for (int round = 0; round < 3; ++round) {
        const double start = seconds_on(CLOCK_MONOTONIC);
        const pid_t child = fork();
        if (child == 0) {
          if (std::freopen("/dev/null", "w", stdout) == nullptr || std::freopen("/dev/null", "w", stderr) == nullptr) _exit(127);
          execl(program.c_str(), program.c_str(), "oracle", problem.c_str(), "--round", to, "-o",
                (folder + "/r.safetensors").c_str(), "--threads", "2", nullptr);
          _exit(127);
        }
        int status = 0;
        rusage use{};
        wait4(child, &status, 0, &use);
        seconds.push_back(seconds_on(CLOCK_MONOTONIC) - start);
        peak = std::max(peak, use.ru_maxrss);
      }
      const double s = median(seconds), megabytes = static_cast<double>(peak) / 1e3;
      t.rows.push_back({op, to, s, megabytes});
      const std::string what = std::string("deltaproof oracle, ") + op + " to " + to;
      wanted.at_most(what + ", seconds", s, std::string(op) == "kda" ? 3 : 2);
      wanted.at_most(what + ", peak MB", megabytes, 200);
    }
  }
  std::filesystem::remove_all(folder);
  print(t);
  page.tables.push_back(std::move(t));
}

/// One run of the program with these arguments: processor time of the child in seconds, and its peak memory.
struct child_use {
  double seconds = 0;
  long peak = 0;
};
child_use run_program(const std::string& program, std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(), program);
  std::vector<char*> words;
  for (std::string& word : arguments) words.push_back(word.data());
  words.push_back(nullptr);
  const pid_t child = fork();
  if (child == 0) {
    if (std::freopen("/dev/null", "w", stdout) == nullptr || std::freopen("/dev/null", "w", stderr) == nullptr) _exit(127);
    execv(program.c_str(), words.data());
    _exit(127);
  }
  int status = 0;
  rusage use{};
  wait4(child, &status, 0, &use);
  const auto seconds = [](const timeval& t) { return static_cast<double>(t.tv_sec) + 1e-6 * static_cast<double>(t.tv_usec); };
  return {seconds(use.ru_utime) + seconds(use.ru_stime), use.ru_maxrss};
}

/// Gradients beside outputs, B = 1, H = 4, T = 4096, K = V = 128: processor time of the program, in turns, and torch's autograd.
void add_gradients(const std::string& program, bench::token_loop_worker& loops, report& page, goals& wanted) {
  table t{"gradients",
          "deltaproof oracle --gradients, B = 1, H = 4, T = 4096, K = V = 128: processor time of all threads",
          {"op", "rounded to", {"outputs, seconds", 3}, {"gradients, seconds", 3}, {"ratio", 3}, {"peak memory, MB", 4}},
          {}};
  const std::string folder = std::filesystem::temp_directory_path() / ("deltaproof-bench-gradients-" + std::to_string(getpid()));
  std::filesystem::create_directories(folder);
  for (const std::string op : {"gated_delta_rule", "kda"}) {
    const std::string file = folder + "/p.safetensors";
    run_program(program, {"gen", "--regime", "typical", "--op", op, "--T", "4096", "--K", "128", "--V", "128", "--H", "4", "--HV",
                          "4", "--cotangents", "-o", file});
    for (const std::string to : {"bf16", "fp32"}) {
      std::vector<double> forward, backward;
      long peak = 0;
      for (int round = 0; round < 5; ++round) {
        const std::vector<std::string> asked{"oracle", file, "--round", to, "-o", folder + "/r.safetensors", "--threads", "2"};
        forward.push_back(run_program(program, asked).seconds);
        auto gradients = asked;
        gradients.push_back("--gradients");
        const child_use use = run_program(program, gradients);
        backward.push_back(use.seconds);
        peak = std::max(peak, use.peak);
      }
      const double a = median(forward), b = median(backward), megabytes = static_cast<double>(peak) / 1e3;
      t.rows.push_back({op, to, a, b, b / a, megabytes});
      wanted.at_most("gradients against outputs, " + op + " to " + to, b / a, to == "bf16" ? 4 : 6);
      wanted.at_most("gradients, " + op + " to " + to + ", peak MB", megabytes, 300);
    }
  }
  if (loops.has("torch")) {
    // A quarter of the tokens of one of the four heads: autograd keeps every state.
    t.rows.push_back(
        {"torch autograd, fp64 loop without gates", "", "", 16 * loops.seconds("torch_autograd", 128, 1024), "", ""});
  }
  std::filesystem::remove_all(folder);
  print(t);
  page.tables.push_back(std::move(t));
}

std::string processor() {
  std::ifstream info("/proc/cpuinfo");
  for (std::string line; std::getline(info, line);) {
    if (line.rfind("model name", 0) == 0) return line.substr(line.find(':') + 2);
  }
  return "an unnamed processor";
}

/// The instruction set that the loops over vectors take here: of those compiled in, the best this processor has.
std::string widest_vectors() {
  const std::int64_t there = hwy::SupportedTargets() & HWY_TARGETS;
  return hwy::TargetName(there & -there);
}

/// Takes `name` (and its value) out of the arguments.
bool option(std::vector<char*>& arguments, const std::string& name, std::string* value) {
  for (std::size_t i = 1; i < arguments.size(); ++i) {
    if (name != arguments[i]) continue;
    const std::size_t count = value != nullptr ? 2 : 1;
    if (i + count > arguments.size()) return false;
    if (value != nullptr) *value = arguments[i + 1];
    arguments.erase(arguments.begin() + static_cast<std::ptrdiff_t>(i),
                    arguments.begin() + static_cast<std::ptrdiff_t>(i + count));
    return true;
  }
  return false;
}

}  // namespace

int main(int argc, char** argv) {
  std::vector<char*> arguments(argv, argv + argc);
  std::string folder;
  const bool with_page = option(arguments, "--page", &folder), tables_only = option(arguments, "--tables-only", nullptr);
  const bool gradients_only = option(arguments, "--gradients-only", nullptr);
  bench::token_loop_worker loops(DELTAPROOF_SOURCE_DIR "/bench/token_loop.py");
  std::printf("python loops: %s\n", loops.found().empty() ? "neither numpy nor torch is there; skipped" : loops.found().c_str());
#ifndef DELTAPROOF_ARB
  std::printf("Arb was not there when this was built; skipped\n");
#endif
  report page;
  goals wanted;
  // First: a child's peak memory counts that of the process it was forked from.
  const std::string program = (std::filesystem::path(argv[0]).parent_path() / "deltaproof").string();
  if (std::filesystem::exists(program)) {
    add_gradients(program, loops, page, wanted);
    if (gradients_only) return 0;
    add_program(program, page, wanted);
  }
  std::vector<std::unique_ptr<bench_case>> cases;
  for (const std::size_t d : {64U, 128U, 256U}) {
    for (const std::size_t T : {1024U, 4096U}) {
      cases.push_back(std::make_unique<bench_case>(d, T));
      add_ratios(*cases.back(), loops, d == 256 ? 12 : 40, page, wanted);
    }
  }
  add_growth(12, page);
  add_threads(7, page, wanted);
  print(wanted.t);
  if (with_page) {
    const auto met = static_cast<std::size_t>(
        std::count_if(wanted.t.rows.begin(), wanted.t.rows.end(), [](const auto& row) { return row[3] == cell(true); }));
    page.study = "oracle-bench";
    page.question = "How fast is the certified oracle beside the loops it replaces?";
    page.answer = std::to_string(met) + " of " + std::to_string(wanted.t.rows.size()) + " goals are met on " + processor() + ".";
    page.method =
        "Rows of one table were timed in turn, round after round, by the processor time of their thread; medians. One thread but "
        "where the table says otherwise. Python: " +
        (loops.found().empty() ? "not there" : loops.found()) + ".";
    page.findings.push_back({"goals",
                             page.answer,
                             evidence::measured(),
                             {{"met", met}, {"of", wanted.t.rows.size()}},
                             "the table of goals, one run on one machine",
                             "./run bench page"});
    page.tables.insert(page.tables.begin(), wanted.t);
    page.not_claimed = {
        "Times are of one run on one machine; they are not compared with other machines, and no test depends on them.",
        "Rows of MPFR and Arb are two of d, scaled; they are entrywise enclosures, whose radius grows by a constant factor a "
        "step."};
    page.command = "./run bench page";
    page.parameters = {{"processor", processor()}, {"cores", std::thread::hardware_concurrency()}, {"vectors", widest_vectors()}};
    write_report(page, folder);
    write_index(folder);
  }
  if (tables_only) return 0;
  for (auto& c : cases) {
    for (const contender& row : c->contenders(nullptr)) {
      const std::string name = row.name + "/d=" + std::to_string(c->d) + "/T=" + std::to_string(c->T);
      const std::size_t T = c->T;
      const auto run = row.seconds;
      benchmark::RegisterBenchmark(name.c_str(), [run, T](benchmark::State& state) {
        for (auto _ : state) benchmark::DoNotOptimize(run());
        state.SetItemsProcessed(static_cast<std::int64_t>(state.iterations()) * static_cast<std::int64_t>(T));
      })->Unit(benchmark::kMillisecond);
    }
  }
  auto count = static_cast<int>(arguments.size());
  benchmark::Initialize(&count, arguments.data());
  if (benchmark::ReportUnrecognizedArguments(count, arguments.data())) return 2;
  benchmark::RunSpecifiedBenchmarks();
  return 0;
}
