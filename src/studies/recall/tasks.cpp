// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT

#include "studies/recall/tasks.hpp"

#include <memory>

#include "deltaproof/number/real.hpp"
#include "deltaproof/rule/baselines.hpp"
#include "deltaproof/rule/rules.hpp"
#include "deltaproof/scan/recurrent.hpp"

namespace deltaproof::detail::recall {
namespace {

using wide = real<moment_bits>;
using row = std::span<const double>;

wide pi() {
  wide result;
  mpfr_const_pi(result.backend().data(), MPFR_RNDN);
  return result;
}

// sum_m sign^m a^(2m + shift) / (2m + shift)! E k^(2m + 2 shift), shift 0 or 1, without its first term if `later`. Terms fall by
// half from some m on, so the rest is below twice the first term left out.
double series(const wide& a, int sign, int shift, bool later, std::size_t key_dim, double& radius) {
  wide sum = 0;
  wide power = shift == 0 ? wide(1) : a;
  wide largest = 1;
  for (int m = 0;; ++m) {
    const wide term = power * round_to<wide>(even_moment(key_dim, m + shift));
    if (!(later && m == 0)) sum += (sign < 0 && m % 2 != 0) ? wide(-term) : term;
    if (term > largest) largest = term;
    const wide n(2 * m + shift);
    const wide factor = a * a / ((n + 1) * (n + 2));
    if (factor < wide(0.5) && term < wide(1e-40)) break;
    power *= factor;
  }
  const auto result = round_to<double>(sum);
  // The tail, 2^10 operations on terms of at most `largest`, and the rounding to double.
  radius = std::max(radius, 2e-40 + round_to<double>(largest) * 0x1p-240 + std::fabs(result) * 0x1p-53);
  return result;
}

matrix<double> unit_gaussian(philox random, std::size_t tokens, std::size_t key_dim) {
  matrix<double> result(tokens, key_dim);
  for (std::size_t t = 0; t < tokens; ++t) shared::draw(random, result.row(t));
  unit_rows(result);
  return result;
}

/// A baseline of the library; `step(machine, k, v)` says how it is written.
template <class Machine, class Step>
memory adapt(Machine made, Step step, bool normalise = false) {
  const auto machine = std::make_shared<Machine>(std::move(made));
  const auto key = [normalise](row x) {
    std::vector<double> k(x.begin(), x.end());
    if (normalise) shared::normalise(k);
    return k;
  };
  return {[=](row k, row v) { step(*machine, row(key(k)), v); },
          [=](row q, std::span<double> o) { machine->read(row(key(q)), o); }};
}

template <class Rule>
memory by_rule(std::size_t dim) {
  // e^x correctly rounded, so that the bits are those of every machine.
  return adapt(recurrence<double>(dim, dim), [](recurrence<double>& m, row k, row v) {
    const auto one = rounded<fp64>::from_exact(1);
    m.step(k, v, effective_step(Rule{}, one, rounded<fp64>::from_exact(shared::squared_norm(k))).value());
  });
}

struct score_mean {
  score sum;
  double n = 0;

  void add(const score& s) { sum = {sum.error + s.error, sum.cosine + s.cosine}, ++n; }
  [[nodiscard]] score of() const { return {sum.error / n, sum.cosine / n}; }
};

}  // namespace

void unit_rows(matrix<double>& x) {
  for (std::size_t t = 0; t < x.rows(); ++t) shared::normalise(x.row(t));
}

std::string_view name_of(relation f) {
  constexpr std::array<std::string_view, relations.size()> names{"identity", "quadratic",   "cubic",
                                                                 "quartic",  "exponential", "sine"};
  return names[static_cast<std::size_t>(f)];
}

double portable_exp(double x) {
  // e^x = (e^(x / 2^s))^(2^s) with |x| / 2^s below 1/8, and e^y by its series.
  int squarings = 0;
  while (std::fabs(x) > 0.125) {
    x /= 2;
    ++squarings;
  }
  double sum = 1;
  for (int m = 12; m >= 1; --m) sum = 1 + x / m * sum;
  for (int s = 0; s < squarings; ++s) sum *= sum;
  return sum;
}

double sine_of_turns(double x) {
  double turn = x - std::nearbyint(x);  // exact
  if (turn > 0.25) turn = 0.5 - turn;
  if (turn < -0.25) turn = -0.5 - turn;
  const double y = 6.283185307179586477 * turn;
  double sum = 1;
  for (int m = 12; m >= 1; --m) sum = 1 - y * y / ((2 * m) * (2 * m + 1)) * sum;
  return y * sum;
}

double apply(relation f, double k) {
  if (f == relation::exponential) return portable_exp(k);
  if (f == relation::sine) return sine_of_turns(5 * k);
  if (f == relation::identity) return k;
  if (f == relation::cubic) return k * k * k;
  return f == relation::quadratic ? k * k : k * k * (k * k);
}

rational even_moment(std::size_t key_dim, int m) {
  rational result(1);
  for (int j = 0; j < m; ++j) {
    result *= rational(2 * j + 1) / rational(static_cast<std::int64_t>(key_dim) + 2 * j);
  }
  return result;
}

moments moments_of(relation f, std::size_t key_dim) {
  if (key_dim == 0) throw domain_error("recall: key_dim is 0, needs at least 1");
  moments result;
  const auto even = [&](int m) {
    const auto value = round_to<double>(even_moment(key_dim, m));
    result.radius = std::max(result.radius, value * 0x1p-53);
    return value;
  };
  if (f == relation::exponential) {
    result.mean = series(wide(1), 1, 0, false, key_dim, result.radius);
    result.square = series(wide(2), 1, 0, false, key_dim, result.radius);
    result.with_key = series(wide(1), 1, 1, false, key_dim, result.radius);
  } else if (f == relation::sine) {  // sin^2 x = (1 - cos 2x) / 2
    result.square = -0.5 * series(20 * pi(), -1, 0, true, key_dim, result.radius);
    result.with_key = series(10 * pi(), -1, 1, false, key_dim, result.radius);
  } else {
    const int power = 1 + static_cast<int>(f);
    if (power % 2 == 0) result.mean = even(power / 2);
    if (power % 2 != 0) result.with_key = even((power + 1) / 2);
    result.square = even(power);
  }
  return result;
}

double delta_apart(const moments& m, std::size_t key_dim, std::size_t tokens) {
  double power = 1, mean = 0;
  for (std::size_t t = 0; t < tokens; ++t) {
    power *= 1 - 1 / static_cast<double>(key_dim);
    mean += power / static_cast<double>(tokens);
  }
  return m.square * (2 - mean);
}

double delta_own_before(const moments& m, std::size_t key_dim) {
  return 2 * (m.square - static_cast<double>(key_dim) * m.with_key * m.with_key);
}

inputs make_inputs(const task& t, std::uint64_t seed, std::uint64_t run) {
  inputs in;
  in.k = unit_gaussian(philox(seed, 2 * run + 100), t.tokens, t.key_dim);
  in.q = unit_gaussian(philox(seed, 2 * run + 101), t.tokens, t.key_dim);
  in.v = matrix<double>(t.tokens, t.key_dim);
  for (std::size_t i = 0; i < in.k.size(); ++i) in.v.data()[i] = apply(t.f, in.k.data()[i]);
  if (t.normalise_values) unit_rows(in.v);
  return in;
}

memory delta_rule(std::size_t key_dim, std::size_t value_dim, double beta) {
  return adapt(recurrence<double>(key_dim, value_dim), [beta](recurrence<double>& m, row k, row v) { m.step(k, v, beta); });
}

memory least_squares(std::size_t key_dim, std::size_t value_dim) {
  return adapt(recursive_least_squares<double>(key_dim, value_dim, ridge), [](auto& m, row k, row v) { m.step(k, v); });
}

memory make_memory(std::string_view name, std::size_t d) {
  const auto one = [](auto& m, row k, row v) { m.step(k, v, 1.0); };
  if (name == "hebbian") return adapt(hebbian<double>(d, d), [](auto& m, row k, row v) { m.step(k, v); });
  if (name == "delta") return adapt(recurrence<double>(d, d), one, true);
  if (name == "raw") return delta_rule(d, d, 1);
  if (name == "efla") return by_rule<exact_flow>(d);
  if (name == "longhorn") return by_rule<implicit_euler>(d);
  if (name == "rls") return least_squares(d, d);
  throw domain_error("recall: no memory is named '" + std::string(name) + "'");
}

score score_of(row o, row v) {
  score s;
  for (std::size_t j = 0; j < v.size(); ++j) s.error += (o[j] - v[j]) * (o[j] - v[j]);
  s.error /= static_cast<double>(v.size());
  const double lengths = std::sqrt(shared::squared_norm(o) * shared::squared_norm(v));
  if (lengths > 0) s.cosine = shared::dot(o, v) / lengths;
  return s;
}

score read_apart(const memory& m, const inputs& in) {
  score_mean mean;
  std::vector<double> o(in.v.cols());
  for (std::size_t t = 0; t < in.k.rows(); ++t) {
    m.write(in.k.row(t), in.v.row(t));
    m.read(in.q.row(t), o);
    mean.add(score_of(o, in.v.row(t)));
  }
  return mean.of();
}

score late_prediction(const memory& m, const inputs& in, std::size_t first, const matrix<double>& truth) {
  score_mean mean;
  std::vector<double> o(in.v.cols());
  for (std::size_t t = 0; t < in.k.rows(); ++t) {
    if (t >= first) {
      m.read(in.k.row(t), o);
      mean.add(score_of(o, truth.row(t)));
    }
    m.write(in.k.row(t), in.v.row(t));
  }
  const score result = mean.of();
  return result.error < diverged ? result : score{HUGE_VAL, 0};
}

std::vector<aggregate> means(const std::vector<std::string>& columns) {
  const auto deviation = [](row x) -> cell {
    const auto n = static_cast<double>(x.size());
    double mean = 0, squares = 0;
    for (const double value : x) mean += value / n;
    for (const double value : x) squares += (value - mean) * (value - mean);
    return x.size() > 1 ? std::sqrt(squares / (n - 1)) : 0;
  };
  std::vector<aggregate> result;
  for (const std::string& column : columns) {
    result.push_back({column, column, mean});
    result.push_back({column + "_sd", column, deviation});
  }
  return result;
}

}  // namespace deltaproof::detail::recall
