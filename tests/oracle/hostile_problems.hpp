// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
//
// Small problems at the ends of what a problem may say: magnitudes over the whole range of their formats, gates from -1e30 to
// 300 and -inf, sums of gates that go down and come back, everything at one end of fp64, rules beside their poles and zeros,
// exact cancellations, zeros of every kind. `hostile_problem(seed, number)` is the same on every machine.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "deltaproof/number/random.hpp"
#include "deltaproof/oracle/problem.hpp"

namespace deltaproof::testing {

class hostile_maker {
 public:
  hostile_maker(std::uint64_t seed, std::uint64_t number) : random_{seed, number} {}

  problem make() {
    shape();
    exponents();
    p_.q = tensor_of("q", {1, T_, 1, K_}, queries());
    const std::vector<double> k = keys(), beta = steps(k);
    p_.k = tensor_of("k", {1, T_ * n_, 1, K_}, k);
    p_.beta = tensor_of("beta", {1, T_ * n_, 1}, beta);
    const bool starts = one_in(2);
    std::vector<double> start(K_ * V_, 0.0);
    for (double& x : start) x = starts ? number(start_, start_law_) : 0;
    if (starts) p_.initial_state = tensor_of("initial_state", {1, 1, K_, V_}, start);
    gates();
    p_.v = tensor_of("v", {1, T_ * n_, 1, V_}, values(k, start));
    p_.scale = scale();
    return p_;
  }

 private:
  enum class law { near, any, mixed, zeros };

  std::uint64_t below(std::uint64_t n) { return random_.below(n); }
  bool one_in(std::uint64_t n) { return below(n) == 0; }
  int between(int low, int high) { return low + static_cast<int>(below(static_cast<std::uint64_t>(high - low + 1))); }
  template <class T, std::size_t N>
  T one_of(const T (&list)[N]) {
    return list[below(N)];
  }

  void shape() {
    const format formats[] = {fp64, fp64, fp64, fp64, fp32, bf16, fp16};
    format_ = one_of(formats);
    K_ = one_in(20) ? 9 : 1 + below(4);
    V_ = one_in(20) ? 9 : 1 + below(3);
    n_ = one_in(4) ? 2 + below(2) : 1;
    T_ = 1 + below(one_in(3) ? 12 : 5);
    if (one_in(40)) {  // beyond the 64 steps that the vectorised tiers bound at one time
      T_ = one_of({std::size_t{63}, std::size_t{66}, std::size_t{131}});
      K_ = 1 + below(2);
      V_ = 1;
      n_ = 1;
    }
    p_.num_householder = n_;
    p_.qk_l2norm = one_in(6);
    const rule_kind rules[] = {rule_kind::euler,    rule_kind::euler,    rule_kind::euler,          rule_kind::exact,
                               rule_kind::implicit, rule_kind::implicit, rule_kind::crank_nicolson, rule_kind::rk2,
                               rule_kind::rk3,      rule_kind::rk4};
    p_.rule = one_of(rules);
    const activation_kind activations[] = {activation_kind::none, activation_kind::none,    activation_kind::none,
                                           activation_kind::none, activation_kind::sigmoid, activation_kind::two_sigmoid};
    p_.beta_activation = one_of(activations);
  }

  /// Powers of two of the tensors. Half of the time they are such that x = beta |k|^2 is near 1 and v near k^T S, wherever
  /// that lies; else each is its own.
  void exponents() {
    const auto wild = [&] {
      const int edges[] = {0,    0,    -150, -300, -302, 299,   301,   -360,  -450, 450,
                           -500, -537, -540, 500,  -600, -1000, -1022, -1060, 900,  1000};
      return one_in(2) ? one_of(edges) : between(-1074, 1000);
    };
    const auto plain = [&] { return between(-3, 3); };
    ends_ = one_in(10) ? 1 + static_cast<int>(below(2)) : 0;
    if (ends_ == 1) key_ = value_ = query_ = step_ = start_ = -1074;
    if (ends_ == 2) {
      key_ = value_ = query_ = step_ = 0;
      start_ = 1023;
    }
    if (ends_ == 0) switch (below(4)) {
        case 0:
          key_ = value_ = query_ = step_ = start_ = 0;
          break;
        case 1:
        case 2:
          key_ = one_in(3) ? plain() : std::clamp(wild(), -520, 500);
          value_ = one_in(3) ? plain() : wild();
          query_ = one_in(2) ? plain() : wild();
          step_ = -2 * key_;
          start_ = std::clamp(value_ - key_, -1070, 1010);
          break;
        default:
          key_ = one_in(2) ? plain() : wild();
          value_ = one_in(2) ? plain() : wild();
          query_ = one_in(2) ? plain() : wild();
          step_ = one_in(2) ? -2 * key_ : wild();
          start_ = one_in(2) ? plain() : wild();
      }
    const law laws[] = {law::near, law::near, law::near, law::near, law::near, law::any, law::mixed, law::zeros};
    key_law_ = one_of(laws);
    value_law_ = one_of(laws);
    query_law_ = one_of(laws);
    start_law_ = one_of(laws);
    mantissa_ = static_cast<int>(below(4));
    axis_keys_ = one_in(6);
    same_keys_ = one_in(5);
  }

  double mantissa() {
    switch (one_in(5) ? below(4) : static_cast<std::uint64_t>(mantissa_)) {
      case 0:
        return 1;
      case 1:
        return 1 + static_cast<double>(below(8)) / 8;
      case 2:
        return 1 + static_cast<double>(below(128)) / 128;
      default:
        return 1 + random_.uniform();
    }
  }

  double number(int exponent, law from) {
    if (one_in(12)) return 0;
    if (from == law::zeros && !one_in(4)) return 0;
    if (from == law::any || (from == law::mixed && one_in(3))) exponent = between(-1074, 1010);
    const double x = std::ldexp(mantissa(), std::clamp(exponent + between(-2, 2), -1074, 1023));
    return one_in(2) ? x : -x;
  }

  std::vector<double> queries() {
    std::vector<double> q(T_ * K_);
    for (double& x : q) x = number(query_, query_law_);
    return q;
  }

  std::vector<double> keys() {
    std::vector<double> k(T_ * n_ * K_);
    for (std::size_t r = 0; r < T_ * n_; ++r) {
      double* to = k.data() + r * K_;
      if (axis_keys_) {
        to[below(K_)] = std::ldexp(one_in(2) ? 1.0 : -1.0, std::clamp(key_, -1074, 1000));
      } else {
        for (std::size_t j = 0; j < K_; ++j) to[j] = number(key_, key_law_);
      }
      if (same_keys_ && r > 0 && !one_in(4)) {
        const double sign = one_in(2) ? 1 : -1;
        for (std::size_t j = 0; j < K_; ++j) to[j] = sign * k[j];
      }
    }
    return k;
  }

  std::vector<double> steps(const std::vector<double>& k) {
    std::vector<double> beta(T_ * n_);
    const bool logits = p_.beta_activation != activation_kind::none, poles = one_in(2);
    for (std::size_t r = 0; r < beta.size(); ++r) {
      if (logits) {
        const double far[] = {0, 0, 20, -20, 40, -40, 599, -599, 601, -601, 700, -745, 1000, -1000, 1e5, -1e10, -1e30, 1e30};
        beta[r] = one_in(2) ? one_of(far) : number(one_in(2) ? 0 : step_, law::near);
        continue;
      }
      double square = 0;
      for (std::size_t j = 0; j < K_; ++j) square += narrow(k[r * K_ + j]) * narrow(k[r * K_ + j]);
      if (p_.qk_l2norm) square = square / (square + 1e-6);
      const bool normal = square > 1e-300 && square < 1e300;
      if (axis_keys_ && normal && one_in(2)) {
        const double whole[] = {1, 2, 0.5, -1, 1};
        beta[r] = one_of(whole) / square;
      } else if (poles && normal) {
        beta[r] = stretched() / square;
      } else {
        beta[r] = number(step_, one_in(6) ? law::any : law::near);
      }
    }
    return beta;
  }

  /// x = beta |k|^2 at the poles, zeros and limits of the rules, or beside them.
  double stretched() {
    const double points[] = {
        -1, -1, -2,  -2,  1,    2,   2,   2.5127453266183286, 2.7852935634052813, 1.5960716379833215, 0.5, 1e-9,
        40, -3, -40, 700, -700, 1e9, 1e18};
    const double x = one_of(points);
    switch (below(4)) {
      case 0:
        return x;
      case 1:
        return std::nextafter(x, one_in(2) ? 1e30 : -1e30);
      case 2:
        return x * (1 + std::ldexp(one_in(2) ? 1.0 : -1.0, -between(1, 52)));
      default:
        return x * (1 + std::ldexp(random_.uniform() - 0.5, -between(0, 20)));
    }
  }

  void gates() {
    p_.op = op_kind::delta_rule;
    if (one_in(3)) return;
    const bool by_channel = one_in(2);
    p_.op = by_channel ? op_kind::kda : n_ > 1 ? op_kind::gated_delta_product : op_kind::gated_delta_rule;
    const double infinity = std::numeric_limits<double>::infinity();
    const double dyadic[] = {0, 0, -infinity}, mild[] = {0, -1e-9, -0.05, -0.5, -5.5, -20, 1e-9, 0.5, -infinity},
                 deep[] = {0, -0.5, -300, -372, -375, -599, -600, -600.5, -650, -709, -745, -746, -1500, 50, 200, -infinity},
                 high[] = {0, 49, 100, 133, 150, 200, 207, 208, 209, 250, 300, 300, -300, -599, -650, -700},
                 abyss[] = {0, -1e3, -1e4, -1e10, -1e15, -1e30, 300, -0.5, -650};
    const std::size_t kind = below(ends_ == 2 ? 3 : 6), channels = by_channel ? K_ : 1;
    std::vector<double> g(T_ * channels), gone(channels, 0.0);
    // Down, and up again to where it began or beside it.
    const double down[] = {0, -0.5, -300, -650, -700, -745, -800, -1000}, all_the_way[] = {1, 1, 0.5, 1.01};
    for (std::size_t i = 0; i < g.size() && kind == 5; ++i) {
      double& sum = gone[i % channels];
      g[i] = sum < -20 ? std::min(300.0, -sum * one_of(all_the_way)) : one_of(down);
      sum += g[i];
    }
    for (double& x : g) {
      if (kind == 5) break;
      x = kind == 0   ? one_of(dyadic)
          : kind == 1 ? one_of(mild)
          : kind == 2 ? one_of(deep)
          : kind == 3 ? one_of(high)
                      : one_of(abyss);
      if (one_in(8) && kind > 0 && std::isfinite(x)) x = std::clamp(x * (1 + random_.uniform() / 8), -1e30, 300.0);
    }
    p_.g = by_channel ? tensor::from_doubles(fp64, {1, T_, 1, K_}, g, "g") : tensor::from_doubles(fp64, {1, T_, 1}, g, "g");
  }

  /// Now and then what the key reads of the start or the value before, so that something cancels.
  std::vector<double> values(const std::vector<double>& k, const std::vector<double>& start) {
    std::vector<double> v(T_ * n_ * V_);
    const bool cancels = one_in(3);
    for (std::size_t r = 0; r < T_ * n_; ++r) {
      for (std::size_t j = 0; j < V_; ++j) {
        double& x = v[r * V_ + j];
        x = number(value_, value_law_);
        if (!cancels || one_in(3)) continue;
        double read = 0;
        for (std::size_t i = 0; i < K_; ++i) read += narrow(k[r * K_ + i]) * narrow(start[i * V_ + j]);
        if (r > 0 && one_in(2)) read = v[(r - 1) * V_ + j] * (one_in(3) ? -1 : 1);
        if (std::isfinite(read)) x = one_in(4) ? 0 : read;
      }
    }
    return v;
  }

  double scale() {
    if (one_in(2)) return one_in(2) ? 1 : 1 / std::sqrt(static_cast<double>(K_));
    const double list[] = {0, -1, 1e-300, -1e-300, 1e300, 0x1p-1074, 0x1p-1022, 0x1.fp1023, 0x1p-540, 3e-160, -7e150};
    return one_in(2) ? one_of(list) : number(between(-1074, 1000), law::near);
  }

  /// x in the problem's format: cut to its digits, its exponent brought into its range.
  double narrow(double x) const {
    if (format_ == fp64 || x == 0) return x;
    int e = 0;
    const double m = std::frexp(x, &e);
    const double range = static_cast<double>(format_.emax) / 1023;
    if (e - 1 > format_.emax - 1 || e - 1 < format_.emin) e = static_cast<int>(static_cast<double>(e) * range);
    e = std::clamp(e, format_.emin - format_.precision + 2, format_.emax);
    const int kept = std::min(format_.precision, e - (format_.emin - format_.precision + 1));
    return std::ldexp(std::trunc(std::ldexp(m, kept)), e - kept);
  }

  tensor tensor_of(const char* name, std::vector<std::size_t> shape, std::vector<double> x) const {
    const bool is_state = std::string(name) == "initial_state";
    for (double& xi : x) {
      if (!std::isfinite(xi)) xi = std::numeric_limits<double>::max();
      if (!is_state) xi = narrow(xi);
    }
    return tensor::from_doubles(is_state ? fp64 : format_, std::move(shape), x, name);
  }

  philox random_;
  problem p_;
  format format_ = fp64;
  std::size_t K_ = 1, V_ = 1, T_ = 1, n_ = 1;
  int key_ = 0, value_ = 0, query_ = 0, step_ = 0, start_ = 0, mantissa_ = 0;
  law key_law_ = law::near, value_law_ = law::near, query_law_ = law::near, start_law_ = law::near;
  int ends_ = 0;  // 1: everything near the least number; 2: a start near the largest
  bool axis_keys_ = false, same_keys_ = false;
};

inline problem hostile_problem(std::uint64_t seed, std::uint64_t number) { return hostile_maker(seed, number).make(); }

}  // namespace deltaproof::testing
