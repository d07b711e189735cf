// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT

#include "studies/recall/tasks.hpp"

#include "deltaproof/number/real.hpp"

namespace deltaproof::detail::recall {
namespace {

using wide = real<moment_bits>;

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

void average(matrix<double>& x, std::size_t width) {
  const matrix<double> before = x;
  for (std::size_t t = 0; t < x.rows(); ++t) {
    for (std::size_t i = 0; i < x.cols(); ++i) {
      double sum = 0;
      for (std::size_t back = 0; back < width && back <= t; ++back) sum += before(t - back, i);
      x(t, i) = sum / static_cast<double>(width);
    }
  }
}

/// r^n and (1/T) sum of r^t over t = first ... first + T - 1, r = 1 - 1/d.
struct geometric {
  double power = 1;
  double mean = 0;
};
geometric powers(std::size_t key_dim, std::size_t first, std::size_t tokens) {
  const double r = 1 - 1 / static_cast<double>(key_dim);
  geometric g;
  for (std::size_t t = 0; t < first; ++t) g.power *= r;
  for (std::size_t t = 0; t < tokens; ++t) {
    if (t > 0) g.power *= r;
    g.mean += g.power / static_cast<double>(tokens);
  }
  return g;
}

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

expectation hebbian_apart(const moments& m, std::size_t key_dim, std::size_t tokens) {
  const auto d = static_cast<double>(key_dim), t = static_cast<double>(tokens);
  const double mu = m.with_key * m.with_key / d;
  return {m.square * (1 + t / d) + t * (t - 1) * mu, m.square * (1 + (t + 1) / (2 * d)) + (t * t - 1) / 3 * mu};
}

expectation delta_apart(const moments& m, std::size_t key_dim, std::size_t tokens) {
  const geometric g = powers(key_dim, 1, tokens);
  return {m.square * (2 - g.power), m.square * (2 - g.mean)};
}

expectation delta_own_before(const moments& m, std::size_t key_dim, std::size_t tokens) {
  const geometric g = powers(key_dim, 0, tokens);
  const double linear = 2 * static_cast<double>(key_dim) * m.with_key * m.with_key;
  return {m.square * (2 - g.power) - linear * (1 - g.power), m.square * (2 - g.mean) - linear * (1 - g.mean)};
}

expectation identity_least_squares_apart(std::size_t key_dim, std::size_t tokens) {
  const auto d = static_cast<double>(key_dim);
  double mean = 0;
  for (std::size_t t = 1; t <= tokens; ++t) mean += std::min(static_cast<double>(t) / d, 1.0) / static_cast<double>(tokens);
  return {(1 + std::min(static_cast<double>(tokens) / d, 1.0)) / d, (1 + mean) / d};
}

double delta_own_before_limit(const moments& m, std::size_t key_dim, double beta) {
  return 2 * (m.square - static_cast<double>(key_dim) * m.with_key * m.with_key) / (2 - beta);
}

inputs make_inputs(const task& t, std::uint64_t seed, std::uint64_t run) {
  inputs in;
  in.k = unit_gaussian(philox(seed, 2 * run + 100), t.tokens, t.key_dim);
  in.q = unit_gaussian(philox(seed, 2 * run + 101), t.tokens, t.key_dim);
  in.v = matrix<double>(t.tokens, t.key_dim);
  for (std::size_t i = 0; i < in.k.size(); ++i) in.v.data()[i] = apply(t.f, in.k.data()[i]);
  if (t.averaged > 1) {
    average(in.k, t.averaged);
    unit_rows(in.k);
    average(in.v, t.averaged);
  }
  if (t.normalise_values) unit_rows(in.v);
  return in;
}

}  // namespace deltaproof::detail::recall
