// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
#include "studies/referee_limits/limits.hpp"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <limits>

#include "deltaproof/kernel/faults.hpp"
#include "kernel/emulate/products.hpp"
#include "studies/shared/trials/bench.hpp"

namespace deltaproof::detail::referee_limits {
namespace {

using trials::bench;
using trials::trial_case;

/// o, then final_state, each in units of the rms error of a correct run, so that neither drowns the other.
std::vector<double> scaled_errors(const bench& b, const result& r) {
  std::vector<double> out;
  const auto add = [&](const tensor& got, const reference_tensor& want, double unit) {
    const std::vector<double> x = got.to_doubles();
    for (std::size_t i = 0; i < x.size(); ++i) out.push_back((x[i] - want.value[i]) / (unit > 0 ? unit : 1));
  };
  add(r.o, b.truth.o, b.o_error);
  add(*r.final_state, b.truth.final_state, b.state_error);
  return out;
}

double dot(const std::vector<double>& x, const std::vector<double>& y) {
  double sum = 0;
  for (std::size_t i = 0; i < x.size(); ++i) sum += x[i] * y[i];
  return sum;
}

tensor blended(const tensor& correct, const tensor& faulty, double s) {
  std::vector<double> x = correct.to_doubles();
  const std::vector<double> y = faulty.to_doubles();
  for (std::size_t i = 0; i < x.size(); ++i) x[i] += s * (y[i] - x[i]);
  const format store = correct.element_format();
  emulation::narrow(std::span<double>(x), {store, false});
  return tensor::from_doubles(store, correct.shape(), x, correct.name());
}

/// round(correct + s (faulty - correct)), o and final_state.
result blended(const result& correct, const result& faulty, double s) {
  result out = correct;
  out.o = blended(correct.o, faulty.o, s);
  out.final_state = blended(*correct.final_state, *faulty.final_state, s);
  return out;
}

bool all_finite(const result& r) {
  const auto finite = [](const tensor& t) {
    const std::vector<double> x = t.to_doubles();
    return std::all_of(x.begin(), x.end(), [](double v) { return std::isfinite(v); });
  };
  return finite(r.o) && finite(*r.final_state);
}

bool comparable(const result& x, const result& y) {
  return x.o.shape() == y.o.shape() && x.final_state->shape() == y.final_state->shape();
}

/// Halves s from 1 while `seen` accepts it, then tries the half step between: s is known to a factor of sqrt(2).
std::optional<double> least(const std::function<bool(double)>& seen) {
  if (!seen(1)) return std::nullopt;
  double s = 1;
  for (int i = 0; i < halvings && seen(s / 2); ++i) s /= 2;
  const double between = s * std::sqrt(0.5);
  return s > std::ldexp(1.0, -halvings) && seen(between) ? between : s;
}

struct prepared {
  bench b;
  std::vector<result> correct;               ///< `seeds` runs to be made faulty
  std::vector<std::vector<double>> spread;   ///< errors of `correct_runs` other runs
};

emulation_options disturbed(const run_options& options, std::size_t at, std::size_t run) {
  emulation_options how;
  how.noise_ulps = 1;
  how.seed = (options.seed << 24) ^ (at << 12) ^ (run + 1);
  return how;
}

prepared prepare(const run_options& options, const trial_case& c, std::size_t at) {
  prepared out{trials::make_bench(c), {}, {}};
  out.b.correct.stages.clear();
  for (std::size_t i = 0; i < seeds; ++i) {
    out.correct.push_back(emulated(out.b, c, out.b.allowed.front(), disturbed(options, at, i)));
  }
  for (std::size_t i = 0; i < correct_runs; ++i) {
    out.spread.push_back(scaled_errors(out.b, emulated(out.b, c, out.b.allowed.front(), disturbed(options, at, seeds + i))));
  }
  // Leaves the plan's own draws for all that follow.
  (void)check(out.b.p, out.correct.front(), out.b.options);
  return out;
}

/// The projection of an error on a fault, beside those of correct runs.
struct filter {
  std::vector<double> along;
  double mean = 0;
  double deviation = 0;

  filter(const prepared& given, std::vector<double> direction) : along(std::move(direction)) {
    std::vector<double> shares;
    for (const auto& e : given.spread) shares.push_back(dot(e, along));
    for (const double x : shares) mean += x / static_cast<double>(shares.size());
    double squares = 0;
    for (const double x : shares) squares += (x - mean) * (x - mean);
    deviation = std::sqrt(squares / static_cast<double>(shares.size() - 1));
  }
  [[nodiscard]] double separated(const std::vector<double>& error) const {
    const double away = dot(error, along) - mean;
    return deviation > 0 ? away / deviation : away > 0 ? std::numeric_limits<double>::infinity() : 0;
  }
};

void find(const run_options& options, const trial_case& c, const prepared& given, limit& row, std::atomic<std::size_t>& checks) {
  const bench& b = given.b;
  std::vector<result> faulty;
  row.finite = true;
  for (std::size_t i = 0; i < seeds; ++i) {
    emulation_options how = disturbed(options, row.at, i);
    how.planted = &faults()[row.fault];
    faulty.push_back(emulated(b, c, b.allowed.front(), how));
    if (!comparable(faulty.back(), given.correct[i])) return;
    row.changed = row.changed || !same_bits(faulty.back().o, given.correct[i].o) ||
                  !same_bits(*faulty.back().final_state, *given.correct[i].final_state);
    row.finite = row.finite && all_finite(faulty.back());
  }
  if (!row.scaled()) return;
  const auto each = [&](const auto& accepts) {
    return [&, accepts](double s) {
      for (std::size_t i = 0; i < seeds; ++i) {
        if (options.stopped() || !accepts(blended(given.correct[i], faulty[i], s))) return false;
      }
      return true;
    };
  };
  row.check = least(each([&](const result& r) {
    ++checks;
    return check(b.p, r, b.options).judged == verdict::refuted;
  }));

  std::vector<double> direction = scaled_errors(b, faulty.front());
  const std::vector<double> without = scaled_errors(b, given.correct.front());
  for (std::size_t i = 0; i < direction.size(); ++i) direction[i] -= without[i];
  const filter matched(given, std::move(direction));
  row.separated = std::numeric_limits<double>::infinity();
  for (const result& r : faulty) row.separated = std::min(row.separated, matched.separated(scaled_errors(b, r)));
  row.filter = least(each([&](const result& r) { return matched.separated(scaled_errors(b, r)) > separation; }));
}

}  // namespace

limits run_limits(const run_options& options, const selection& chosen) {
  limits out;
  out.cases = trials::cases(options);
  std::vector<std::optional<prepared>> ready(out.cases.size());
  for (std::size_t i = 0; i < out.cases.size(); ++i) {
    if (chosen.at && !chosen.at(i)) continue;
    const problem p = generate(out.cases[i].inputs);
    for (std::size_t f = 0; f < faults().size(); ++f) {
      if ((!chosen.fault || chosen.fault(f)) && applies(faults()[f], p, out.cases[i].path)) out.rows.push_back({f, i, false, false, 0, {}, {}});
    }
  }
  std::size_t done = for_each_index(out.cases.size(), options, "cases", [&](std::size_t i) {
    if (!chosen.at || chosen.at(i)) ready[i] = prepare(options, out.cases[i], i);
  });
  if (done < out.cases.size()) return out;
  std::atomic<std::size_t> checks{0};
  done = for_each_index(out.rows.size(), options, "faults scaled down", [&](std::size_t i) {
    find(options, out.cases[out.rows[i].at], *ready[out.rows[i].at], out.rows[i], checks);
  });
  out.checks = checks;
  out.complete = done == out.rows.size() && !options.stopped();
  return out;
}

}  // namespace deltaproof::detail::referee_limits
