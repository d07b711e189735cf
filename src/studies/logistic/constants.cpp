// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT

#include "studies/logistic/constants.hpp"

#include <numbers>

#include "deltaproof/algebra/matrix.hpp"
#include "studies/shared/factored.hpp"

namespace deltaproof::detail::logistic {
namespace {

using shared::factored;

template <class R>
class doubling_operator {
 public:
  explicit doubling_operator(std::size_t terms) : terms_(terms), vandermonde_(points(terms)) {}

  /// T f for f = 1 + sum c_k x^2k, interpolated at the points.
  [[nodiscard]] std::vector<R> apply(const std::vector<R>& c) const { return vandermonde_.solve(values(c)); }

  /// The coefficients of the fixed point, by Newton's method.
  [[nodiscard]] std::vector<R> fixed_point() const {
    // Four decimals of the known solution are close enough.
    std::vector<R> c(terms_, R(0));
    const double start[] = {-1.5276, 0.1048, 0.0267, -0.0035, 0.0001};
    for (std::size_t k = 0; k < std::min<std::size_t>(5, terms_); ++k) c[k] = R(start[k]);
    R last = 1;
    for (int i = 0; i < 40; ++i) {
      matrix<R> jacobian = derivative(c);
      const std::vector<R> image = values(c);
      std::vector<R> residual(terms_);
      for (std::size_t j = 0; j < terms_; ++j) {
        R power = points_[j];
        R value = 0;
        for (std::size_t k = 0; k < terms_; ++k) {
          jacobian(j, k) = power - jacobian(j, k);
          value = value + c[k] * power;
          power = power * points_[j];
        }
        residual[j] = image[j] - value;
      }
      const std::vector<R> step = factored<R>(std::move(jacobian)).solve(residual);
      R size = 0;
      for (std::size_t k = 0; k < terms_; ++k) {
        c[k] = c[k] + step[k];
        size = std::max(size, R(abs(step[k])));
      }
      // Quadratic until rounding stops it.
      if (size == 0 || (size < R(1e-20) && size >= last)) return c;
      last = size;
    }
    return c;
  }

  struct leading {
    R value;
    std::vector<R> left;
  };
  /// The largest eigenvalue of the derivative at c, and its left eigenvector, by repeated application.
  [[nodiscard]] leading eigenvalue(const std::vector<R>& c) const {
    const matrix<R> m = derivative(c);
    leading result{0, std::vector<R>(terms_, R(1))};
    R before = 0;
    R change = 1;
    for (int i = 0; i < 2000; ++i) {
      const std::vector<R> z = vandermonde_.solve_transposed(result.left);
      std::vector<R> next(terms_, R(0));
      for (std::size_t j = 0; j < terms_; ++j) {
        for (std::size_t k = 0; k < terms_; ++k) next[k] = next[k] + m(j, k) * z[j];
      }
      result.value = next[0] / result.left[0];
      for (R& x : next) x = x / result.value;
      const R moved = abs(R(result.value - before));
      const bool stalled = i > 20 && moved < R(1e-20) && moved >= change;
      before = result.value;
      change = moved;
      result.left = std::move(next);
      if (moved == 0 || stalled) break;
    }
    return result;
  }

 private:
  matrix<R> points(std::size_t terms) {
    matrix<R> v(terms, terms);
    const R pi = acos(R(-1));
    for (std::size_t j = 0; j < terms; ++j) {
      const R angle = pi * R(static_cast<unsigned>(2 * j + 1)) / R(static_cast<unsigned>(2 * terms));
      points_.push_back((1 - cos(angle)) / 2);
      R power = points_.back();
      for (std::size_t k = 0; k < terms; ++k) {
        v(j, k) = power;
        power = power * points_.back();
      }
    }
    return v;
  }

  [[nodiscard]] R at(const std::vector<R>& c, const R& y) const {
    R value = 0;
    for (std::size_t k = terms_; k-- > 0;) value = (value + c[k]) * y;
    return 1 + value;
  }
  /// dG/dy.
  [[nodiscard]] R slope(const std::vector<R>& c, const R& y) const {
    R value = 0;
    for (std::size_t k = terms_; k-- > 0;) value = value * y + static_cast<unsigned>(k + 1) * c[k];
    return value;
  }

  /// (T f)(x_j) - 1.
  [[nodiscard]] std::vector<R> values(const std::vector<R>& c) const {
    const R a = at(c, R(1));
    std::vector<R> result;
    for (const R& y : points_) {
      const R w = at(c, a * a * y);
      result.push_back(at(c, w * w) / a - 1);
    }
    return result;
  }

  /// d (T f)(x_j) / d c_k.
  [[nodiscard]] matrix<R> derivative(const std::vector<R>& c) const {
    const R a = at(c, R(1));
    matrix<R> m(terms_, terms_);
    for (std::size_t j = 0; j < terms_; ++j) {
      const R& y = points_[j];
      const R inner = a * a * y;
      const R w = at(c, inner);
      const R outer = w * w;
      const R value = at(c, outer);
      const R chain = slope(c, outer) * 2 * w;
      const R inner_slope = slope(c, inner) * 2 * a * y;
      R inner_power = inner;
      R outer_power = outer;
      for (std::size_t k = 0; k < terms_; ++k) {
        m(j, k) = -value / (a * a) + (outer_power + chain * (inner_power + inner_slope)) / a;
        inner_power = inner_power * inner;
        outer_power = outer_power * outer;
      }
    }
    return m;
  }

  std::size_t terms_;
  std::vector<R> points_;
  factored<R> vandermonde_;
};

template <class R>
struct raw_constants {
  R delta, alpha, r_infinity;
};

template <class R>
raw_constants<R> constants_at(std::size_t terms, std::size_t doublings) {
  const doubling_operator<R> doubling(terms);
  const std::vector<R> g = doubling.fixed_point();
  const auto unstable = doubling.eigenvalue(g);
  R a = 1;
  for (const R& x : g) a = a + x;
  // The unstable coordinate of T^m f for f = 1 - mu x^2, mu = r(r - 2)/4; its zero tends to the accumulation point.
  const auto coordinate = [&](const R& mu, std::size_t times) {
    std::vector<R> c(terms, R(0));
    c[0] = -mu;
    for (std::size_t i = 0; i < times; ++i) c = doubling.apply(c);
    R sum = 0;
    for (std::size_t k = 0; k < terms; ++k) sum = sum + unstable.left[k] * (c[k] - g[k]);
    return sum;
  };
  R mu = R(1.401155189), width = R(1e-9);
  for (std::size_t times = 4;; times = std::min(2 * times, doublings)) {
    R before = mu - width;
    R value_before = coordinate(before, times);
    R change = width;
    for (int i = 0; i < 40; ++i) {
      const R value = coordinate(mu, times);
      if (value == value_before) break;
      const R next = mu - value * (mu - before) / (value - value_before);
      before = mu;
      value_before = value;
      const R moved = abs(R(next - mu));
      mu = next;
      if (moved == 0 || (moved < R(1e-12) * width && moved >= change)) break;
      change = moved;
    }
    // At `times` doublings the zero is this far from the limit or nearer.
    width = pow(unstable.value, -static_cast<int>(times)) / 1024;
    if (times == doublings) break;
  }
  return {unstable.value, -1 / a, 1 + sqrt(R(1 + 4 * mu))};
}

template <class R>
universal constants_in(std::size_t terms, std::size_t doublings) {
  const auto coarse = constants_at<R>(terms, doublings - 2);
  const auto fine = constants_at<R>(terms + 6, doublings);
  return {agreement(fine.delta, coarse.delta), agreement(fine.alpha, coarse.alpha), agreement(fine.r_infinity, coarse.r_infinity),
          precision_bits<R>};
}

using wide = real<256>;

/// f^count(1/2) and its derivative by r.
std::pair<wide, wide> from_half(const wide& r, std::size_t count) {
  wide x = wide(1) / 2;
  wide slope = 0;
  for (std::size_t i = 0; i < count; ++i) {
    const wide product = x * (1 - x);
    slope = product + r * (1 - 2 * x) * slope;
    x = r * product;
  }
  return {x, slope};
}

wide superstable_near(wide r, std::size_t period) {
  wide before = 1;
  for (int i = 0; i < 60; ++i) {
    const auto [x, slope] = from_half(r, period);
    const wide step = (x - wide(1) / 2) / slope;
    r = r - step;
    const wide size = abs(step);
    if (size == 0 || (size < wide(1e-30) && size >= before)) break;
    before = size;
  }
  return r;
}

/// The last entry of Wynn's epsilon table of the first `count` numbers.
wide epsilon_limit(const std::vector<wide>& sequence, std::size_t count) {
  std::vector<wide> older(count + 1, wide(0));
  std::vector<wide> row(sequence.begin(), sequence.begin() + static_cast<std::ptrdiff_t>(count));
  wide best = row.back();
  for (std::size_t column = 1; column < count; ++column) {
    std::vector<wide> next;
    for (std::size_t i = 0; i + 1 < row.size(); ++i) {
      const wide difference = row[i + 1] - row[i];
      if (difference == 0) return best;
      next.push_back(older[i + 1] + 1 / difference);
    }
    older = std::move(row);
    row = std::move(next);
    if (column % 2 == 0) best = row.back();
  }
  return best;
}

}  // namespace

universal universal_constants(std::size_t terms, std::size_t doublings, bool full) {
  return full ? constants_in<real<1000>>(terms, doublings) : constants_in<real<480>>(terms, doublings);
}

cascade superstable_cascade(std::size_t last) {
  cascade result;
  result.superstable.push_back(wide(2));
  result.superstable.push_back(1 + sqrt(wide(5)));
  for (std::size_t n = 2; n <= last; ++n) {
    const wide& a = result.superstable[n - 2];
    const wide& b = result.superstable[n - 1];
    result.superstable.push_back(superstable_near(b + (b - a) / wide(4.669), std::size_t{1} << n));
  }
  result.r_infinity = agreement(epsilon_limit(result.superstable, last + 1), epsilon_limit(result.superstable, last));
  std::vector<wide> ratios;
  for (std::size_t n = 2; n <= last; ++n) {
    const wide numerator = result.superstable[n - 1] - result.superstable[n - 2];
    ratios.push_back(numerator / (result.superstable[n] - result.superstable[n - 1]));
  }
  result.delta = agreement(epsilon_limit(ratios, ratios.size()), epsilon_limit(ratios, ratios.size() - 1));
  return result;
}

orbit_point orbit_of_multiplier(std::size_t period, int multiplier, const real<256>& x, const real<256>& r) {
  orbit_point at{x, r, false};
  for (int tenth = 1; tenth <= 10; ++tenth) {
    const wide target = wide(multiplier * tenth) / 10;
    wide before = 1;
    at.converged = false;
    for (int i = 0; i < 40; ++i) {
      // The orbit's end and its derivatives: by the start, by r, twice by the start, by the start and r.
      wide end = at.x;
      wide by_r = 0, by_x = 1, by_xx = 0, by_xr = 0;
      for (std::size_t t = 0; t < period; ++t) {
        const wide slope = 1 - 2 * end;
        const wide f_x = at.r * slope;
        by_xr = slope * by_x - 2 * at.r * by_r * by_x + f_x * by_xr;
        by_xx = f_x * by_xx - 2 * at.r * by_x * by_x;
        const wide product = end * (1 - end);
        by_r = f_x * by_r + product;
        by_x = f_x * by_x;
        end = at.r * product;
      }
      const wide first = at.x - end;
      const wide second = target - by_x;
      const wide determinant = (by_x - 1) * by_xr - by_r * by_xx;
      if (determinant == 0) break;
      const wide dx = (first * by_xr - by_r * second) / determinant;
      const wide dr = ((by_x - 1) * second - by_xx * first) / determinant;
      at.x = at.x + dx;
      at.r = at.r + dr;
      const wide size = abs(dx) + abs(dr);
      if (size < wide(1e-60) || (size < wide(1e-40) && size >= before)) {
        at.converged = true;
        break;
      }
      before = size;
    }
    if (!at.converged) return at;
  }
  return at;
}

std::vector<real<256>> superstable_parameters(std::size_t period) {
  const auto end = [](double r, std::size_t count) {
    double x = 0.5;
    for (std::size_t i = 0; i < count; ++i) x = r * (x * (1 - x));
    return x - 0.5;
  };
  std::vector<wide> result;
  double before = end(3, period);
  for (int i = 1; i <= window_grid; ++i) {
    const double r = 3 + static_cast<double>(i) / window_grid;
    const double value = end(r, period);
    if ((before < 0) != (value < 0)) {
      const wide root = superstable_near(lift<wide>(r - 0.5 / window_grid), period);
      bool shorter = false;
      for (std::size_t d = 1; d < period; ++d) {
        if (period % d == 0) shorter = shorter || abs(wide(from_half(root, d).first - wide(1) / 2)) < wide(1e-40);
      }
      if (!shorter && abs(wide(root - lift<wide>(r))) < 0.001) result.push_back(root);
    }
    before = value;
  }
  return result;
}

}  // namespace deltaproof::detail::logistic
