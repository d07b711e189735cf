// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
//
// The theorems on gradients (algebra: ordered_product, adjoint_run, gradient_chain; ode: gain_slopes), asked of the library's
// recurrence, adjoint, products of transitions and rules, and of the factors of src/oracle/gradients/chain.hpp: a test has the
// name of its theorem. Identities modulo 2^61 - 1; factors against derivatives that numbers of 4200 bits carry.
#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>

#include <cmath>
#include <cstddef>
#include <span>
#include <vector>

#include "deltaproof/number/dual.hpp"
#include "deltaproof/number/modular.hpp"
#include "deltaproof/rule/rules.hpp"
#include "deltaproof/scan/adjoint.hpp"
#include "deltaproof/scan/transition.hpp"
#include "oracle/gradient_judge.hpp"
#include "oracle/gradients/chain.hpp"
#include "support/gradient_cases.hpp"
#include "support/sequence_generators.hpp"

namespace deltaproof {
namespace {

using testing::gradient_case;
using mod = modular;

int any(int low, int high) { return *rc::gen::resize(rc::kNominalSize, rc::gen::inRange(low, high + 1)); }

gradient_case<mod> any_case() {
  return gradient_case<mod>(*testing::recipes({.tokens = 6, .steps_per_token = 3, .key_dim = 5, .value_dim = 4, .chunk = 1}));
}

std::vector<mod> any_vector(std::size_t n) {
  std::vector<mod> out(n);
  for (mod& x : out) x = from_int<mod>(any(-9, 9));
  return out;
}

matrix<mod> any_matrix(std::size_t rows, std::size_t cols) { return matrix<mod>(rows, cols, any_vector(rows * cols)); }

mod inner(const std::vector<mod>& a, const std::vector<mod>& b) {
  mod sum = zero<mod>();
  for (std::size_t i = 0; i < a.size(); ++i) sum = sum + a[i] * b[i];
  return sum;
}

/// The product of all transitions of a sequence, as the state meets them.
matrix<mod> forward_product(const sequence<mod>& s) {
  transition_product<mod> product(s.key_dim);
  for (std::size_t t = 0; t < s.tokens; ++t) {
    product.decay(s.decay_of(t));
    for (std::size_t row = t * s.steps_per_token; row < (t + 1) * s.steps_per_token; ++row)
      product.step(s.k_row(row), s.step[row]);
  }
  return product.block();
}
/// The same against the order of time, each factor transposed: steps are symmetric, and come before their decay.
matrix<mod> backward_product(const sequence<mod>& s) {
  transition_product<mod> product(s.key_dim);
  for (std::size_t t = s.tokens; t-- > 0;) {
    for (std::size_t row = (t + 1) * s.steps_per_token; row-- > t * s.steps_per_token;) product.step(s.k_row(row), s.step[row]);
    product.decay(s.decay_of(t));
  }
  return product.block();
}
matrix<mod> transposed(const matrix<mod>& m) {
  matrix<mod> out(m.cols(), m.rows());
  for (std::size_t i = 0; i < m.rows(); ++i) {
    for (std::size_t j = 0; j < m.cols(); ++j) out(j, i) = m(i, j);
  }
  return out;
}
matrix<mod> times(const matrix<mod>& a, const matrix<mod>& b) {
  matrix<mod> out(a.rows(), b.cols(), zero<mod>());
  for (std::size_t i = 0; i < a.rows(); ++i) {
    for (std::size_t l = 0; l < a.cols(); ++l) {
      for (std::size_t j = 0; j < b.cols(); ++j) out(i, j) = out(i, j) + a(i, l) * b(l, j);
    }
  }
  return out;
}

TEST(gradient_theorems, ordered_product_transposed) {
  testing::check_property(60, 3101, [] {
    const auto c = any_case();
    RC_ASSERT(transposed(forward_product(c.s)) == backward_product(c.s));
  });
}

TEST(gradient_theorems, run_start_moved) {
  testing::check_property(60, 3102, [] {
    auto c = any_case();
    const matrix<mod> before = recurrent(c.s).final_state, by = any_matrix(c.s.key_dim, c.s.value_dim);
    matrix<mod> moved = c.s.start();
    for (std::size_t i = 0; i < moved.size(); ++i) moved.data()[i] = moved.data()[i] + by.data()[i];
    c.s.initial_state = moved;
    const matrix<mod> after = recurrent(c.s).final_state, goes = times(forward_product(c.s), by);
    for (std::size_t i = 0; i < after.size(); ++i) RC_ASSERT(after.data()[i] == before.data()[i] + goes.data()[i]);
  });
}

// L_0 = P L_T + sum of P_[0, t] q_t c_t^T, each product formed by itself.
TEST(gradient_theorems, run_cotangent) {
  testing::check_property(60, 3103, [] {
    const auto c = any_case();
    matrix<mod> want = times(backward_product(c.s), c.last_cotangent());
    for (std::size_t t = 0; t < c.s.tokens; ++t) {
      transition_product<mod> way(matrix<mod>(c.s.key_dim, 1, std::vector<mod>(c.s.q_row(t).begin(), c.s.q_row(t).end())));
      for (std::size_t u = t + 1; u-- > 0;) {
        for (std::size_t row = (u + 1) * c.s.steps_per_token; row-- > u * c.s.steps_per_token;)
          way.step(c.s.k_row(row), c.s.step[row]);
        way.decay(c.s.decay_of(u));
      }
      for (std::size_t i = 0; i < c.s.key_dim; ++i) {
        for (std::size_t j = 0; j < c.s.value_dim; ++j) want(i, j) = want(i, j) + way.block()(i, 0) * c.with.o(t, j);
      }
    }
    RC_ASSERT(adjoint(c.s, c.with).initial_state == want);
  });
}

// S^T x = S_0^T x_0 + sum of (b k . x) v with x on its way back, as src/oracle/gradients/elements.cpp goes.
TEST(gradient_theorems, state_along) {
  testing::check_property(60, 3104, [] {
    const auto c = any_case();
    const std::vector<mod> x = any_vector(c.s.key_dim);
    transition_product<mod> way(matrix<mod>(c.s.key_dim, 1, x));
    const auto shown = [&](std::span<const mod> y) {
      mod sum = zero<mod>();
      for (std::size_t i = 0; i < y.size(); ++i) sum = sum + y[i] * way.block()(i, 0);
      return sum;
    };
    std::vector<mod> want(c.s.value_dim, zero<mod>());
    for (std::size_t t = c.s.tokens; t-- > 0;) {
      for (std::size_t row = (t + 1) * c.s.steps_per_token; row-- > t * c.s.steps_per_token;) {
        const mod a = c.s.step[row] * shown(c.s.k_row(row));
        for (std::size_t j = 0; j < c.s.value_dim; ++j) want[j] = want[j] + a * c.s.v_row(row)[j];
        way.step(c.s.k_row(row), c.s.step[row]);
      }
      way.decay(c.s.decay_of(t));
    }
    const matrix<mod> start = c.s.start(), end = recurrent(c.s).final_state;
    for (std::size_t j = 0; j < c.s.value_dim; ++j) {
      mod got = zero<mod>();
      for (std::size_t i = 0; i < c.s.key_dim; ++i) {
        want[j] = want[j] + start(i, j) * way.block()(i, 0);
        got = got + end(i, j) * x[i];
      }
      RC_ASSERT(got == want[j]);
    }
  });
}

// L_0^T x = L_T^T x_T + sum of (q . x) c with x on its way on.
TEST(gradient_theorems, cotangent_along) {
  testing::check_property(60, 3105, [] {
    const auto c = any_case();
    const std::vector<mod> x = any_vector(c.s.key_dim);
    transition_product<mod> way(matrix<mod>(c.s.key_dim, 1, x));
    std::vector<mod> want(c.s.value_dim, zero<mod>());
    for (std::size_t t = 0; t < c.s.tokens; ++t) {
      way.decay(c.s.decay_of(t));
      for (std::size_t row = t * c.s.steps_per_token; row < (t + 1) * c.s.steps_per_token; ++row)
        way.step(c.s.k_row(row), c.s.step[row]);
      mod f = zero<mod>();
      for (std::size_t i = 0; i < c.s.key_dim; ++i) f = f + c.s.q_row(t)[i] * way.block()(i, 0);
      for (std::size_t j = 0; j < c.s.value_dim; ++j) want[j] = want[j] + f * c.with.o(t, j);
    }
    const matrix<mod> first = adjoint(c.s, c.with).initial_state, last = c.last_cotangent();
    for (std::size_t j = 0; j < c.s.value_dim; ++j) {
      mod got = zero<mod>();
      for (std::size_t i = 0; i < c.s.key_dim; ++i) {
        want[j] = want[j] + last(i, j) * way.block()(i, 0);
        got = got + first(i, j) * x[i];
      }
      RC_ASSERT(got == want[j]);
    }
  });
}

/// Of implicit Euler or Crank-Nicolson.
bool is_pole(const mod& x) { return x == from_int<mod>(-1) || x == from_int<mod>(-2); }

/// A case whose steps are beta phi(beta |k|^2), with phi and its slope at every row.
template <class Rule>
struct rule_case {
  gradient_case<mod> c = any_case();
  std::vector<mod> beta = any_vector(c.s.rows()), gain, slope;

  rule_case() {
    for (std::size_t row = 0; row < c.s.rows(); ++row) {
      if (is_pole(x(row))) beta[row] = zero<mod>();
      const dual<mod> phi = Rule::gain(dual<mod>(x(row), one<mod>()));
      gain.push_back(phi.value());
      slope.push_back(phi.slope());
      c.s.step[row] = beta[row] * phi.value();
    }
  }
  [[nodiscard]] std::vector<mod> key(std::size_t row) const { return {c.s.k_row(row).begin(), c.s.k_row(row).end()}; }
  [[nodiscard]] mod x(std::size_t row) const { return beta[row] * inner(key(row), key(row)); }
  [[nodiscard]] mod by_beta(std::size_t row) const { return gain[row] + x(row) * slope[row]; }
  /// dk with what the key does through x.
  [[nodiscard]] std::vector<mod> dk(const sequence<mod>& d, std::size_t row) const {
    std::vector<mod> out(c.s.key_dim);
    const mod factor = from_int<mod>(2) * beta[row] * beta[row] * slope[row] * d.step[row];
    for (std::size_t i = 0; i < out.size(); ++i) out[i] = d.k[row * c.s.key_dim + i] + factor * c.s.k_row(row)[i];
    return out;
  }
};

template <class F>
void for_each_rational_rule(F&& f) {
  f(euler{}), f(implicit_euler{}), f(crank_nicolson{}), f(rk2{}), f(rk3{}), f(rk4{});
}

// The loss along directions of every beta and key, by dual numbers through gain, recurrence and read-out.
TEST(gradient_theorems, rule_row_transposed) {
  for_each_rational_rule([](auto rule) {
    testing::check_property(40, 3106, [rule] {
      const rule_case<decltype(rule)> r;
      const auto& s = r.c.s;
      const std::vector<mod> beta_way = any_vector(s.rows()), key_way = any_vector(s.k.size());
      auto moving = convert<dual<mod>>(s, [](const mod& x) { return dual<mod>(x); });
      for (std::size_t i = 0; i < s.k.size(); ++i) moving.k[i] = dual<mod>(s.k[i], key_way[i]);
      for (std::size_t row = 0; row < s.rows(); ++row) {
        dual<mod> norm(zero<mod>());
        for (const dual<mod>& k : moving.k_row(row)) norm = norm + k * k;
        const dual<mod> beta(r.beta[row], beta_way[row]);
        moving.step[row] = beta * rule.gain(beta * norm);
      }
      const trace<dual<mod>> run = recurrent(moving);
      mod moved = zero<mod>(), said = zero<mod>();
      for (std::size_t i = 0; i < run.o.size(); ++i) moved = moved + run.o.data()[i].slope() * r.c.with.o.data()[i];
      const matrix<mod> last = r.c.last_cotangent();
      for (std::size_t i = 0; i < last.size(); ++i) moved = moved + run.final_state.data()[i].slope() * last.data()[i];
      const auto d = adjoint(s, r.c.with);
      for (std::size_t row = 0; row < s.rows(); ++row) {
        const std::vector<mod> dk = r.dk(d, row);
        for (std::size_t i = 0; i < dk.size(); ++i) said = said + dk[i] * key_way[row * s.key_dim + i];
        said = said + r.by_beta(row) * d.step[row] * beta_way[row];
      }
      RC_ASSERT(moved == said);
    });
  });
}

TEST(gradient_theorems, rule_writes_agree) {
  for_each_rational_rule([](auto rule) {
    testing::check_property(40, 3107, [] {
      const rule_case<decltype(rule)> r;
      const auto& s = r.c.s;
      const auto d = adjoint(s, r.c.with);
      for (std::size_t row = 0; row < s.rows(); ++row) {
        const mod left = inner(r.key(row), r.dk(d, row)) + testing::row_dot(s.v, d.v, row, s.value_dim);
        RC_ASSERT(left == from_int<mod>(2) * r.beta[row] * r.by_beta(row) * d.step[row]);
      }
    });
  });
}

TEST(gradient_theorems, rule_key_sums) {
  for_each_rational_rule([](auto rule) {
    testing::check_property(40, 3108, [] {
      const rule_case<decltype(rule)> r;
      auto d = adjoint(r.c.s, r.c.with);
      for (std::size_t row = 0; row < r.c.s.rows(); ++row) {
        const std::vector<mod> dk = r.dk(d, row);
        for (std::size_t i = 0; i < dk.size(); ++i) d.k[row * dk.size() + i] = dk[i];
      }
      RC_ASSERT(testing::key_sums_are_symmetric(r.c, d));
    });
  });
}

// -R' = phi + x phi' for every rule of the catalogue that rationals can evaluate.
TEST(gradient_theorems, stability_slope) {
  for_each_rational_rule([](auto rule) {
    testing::check_property(40, 3109, [rule] {
      const dual<mod> x(any_vector(1)[0], one<mod>());
      if (is_pole(x.value())) return;
      const dual<mod> phi = rule.gain(x), stability = rule.stability(x);
      RC_ASSERT(-stability.slope() == phi.value() + x.value() * phi.slope());
    });
  });
}

using many_bits = real<4200>;
using jet = testing::jet<many_bits>;

bool encloses(const mpfr_ball& ball, const many_bits& exact) {
  mpfr_value error(64);
  mpfr_set_d(error.get(), ball.error().significand(), MPFR_RNDU);
  mpfr_mul_2si(error.get(), error.get(), ball.error().scale(), MPFR_RNDU);
  return abs(many_bits(ball.value()) - exact) <= many_bits(error.get());
}

/// The factors of gradients that are to be known to 53 bits have far more, whatever the rule's derivative is made of.
bool is_known(const mpfr_ball& ball) { return ball.error() < wide_bound::scaled(1, -150); }

/// One token with one head: keys, a step length, a rule.
struct chain_case {
  problem p;
  std::vector<double> key;
  double beta = 0;

  explicit chain_case(rule_kind rule, activation_kind activation, bool normalise) {
    const std::size_t keys = static_cast<std::size_t>(any(1, 4));
    for (std::size_t i = 0; i < keys; ++i) key.push_back(std::ldexp(any(-4096, 4096), any(-20, -10)));
    beta = std::ldexp(any(-4096, 4096), any(-16, -9));
    const auto held = [](std::vector<std::size_t> shape, const std::vector<double>& x, const char* name) {
      return tensor::from_doubles(fp64, std::move(shape), x, name);
    };
    p.q = held({1, 1, 1, keys}, key, "q");
    p.k = held({1, 1, 1, keys}, key, "k");
    p.v = held({1, 1, 1, 1}, {1.0}, "v");
    p.beta = held({1, 1, 1}, {beta}, "beta");
    p.rule = rule;
    p.beta_activation = activation;
    p.qk_l2norm = normalise;
  }
  [[nodiscard]] many_bits squares() const {
    many_bits n(0);
    for (const double k : key) n += many_bits(k) * many_bits(k);
    return n;
  }
  [[nodiscard]] many_bits epsilon() const { return many_bits(1) / many_bits(1000000); }
  /// beta as the rule has it, with its slope by the given one.
  [[nodiscard]] jet activated() const {
    const jet given(many_bits(beta), many_bits(1));
    if (p.beta_activation == activation_kind::none) return given;
    const jet sigmoid = jet(1.0) / (jet(1.0) + exp_of(jet(-1.0) * given));
    return p.beta_activation == activation_kind::sigmoid ? sigmoid : jet(2.0) * sigmoid;
  }
};

void factors_are_enclosed(rule_kind rule, activation_kind activation, bool normalise) {
  const chain_case one(rule, activation, normalise);
  const chain_factors got = factors_of(one.p, 0, 0, 53, 0, 1);
  const many_bits n = one.squares(), kept = normalise ? many_bits(n / (n + one.epsilon())) : n;
  const jet beta = one.activated();
  if (rule != rule_kind::euler || activation != activation_kind::none) {
    const jet step = beta * testing::gain_of(rule, beta * jet(kept, many_bits(0)));
    RC_ASSERT(encloses(got.by_beta.at(0), step.d));
    RC_ASSERT(is_known(got.by_beta.at(0)));
  }
  if (rule != rule_kind::euler) {
    const jet phi = testing::gain_of(rule, jet(many_bits(beta.x * kept), many_bits(1)));
    RC_ASSERT(encloses(got.by_key.at(0), many_bits(2 * beta.x * beta.x * phi.d)));
    RC_ASSERT(is_known(got.by_key.at(0)));
  }
  if (normalise) RC_ASSERT(encloses(got.key_scale.at(0), many_bits(1 / sqrt(many_bits(n + one.epsilon())))));
}

TEST(gradient_theorems, step_slope) {
  for (const rule_kind rule : {rule_kind::euler, rule_kind::exact, rule_kind::implicit, rule_kind::crank_nicolson, rule_kind::rk2,
                               rule_kind::rk3, rule_kind::rk4}) {
    testing::check_property(40, 3110, [rule] { factors_are_enclosed(rule, activation_kind::none, any(0, 1) == 1); });
  }
}
TEST(gradient_theorems, sigmoid_slope) {
  for (const rule_kind rule : {rule_kind::euler, rule_kind::exact, rule_kind::implicit}) {
    for (const activation_kind activation : {activation_kind::sigmoid, activation_kind::two_sigmoid}) {
      testing::check_property(40, 3111, [=] { factors_are_enclosed(rule, activation, false); });
    }
  }
}

// dx = r (dy - y <y, dy>) against the derivative that y = r x carries; what eps leaves of x . dx.
TEST(gradient_theorems, norm_transposed) {
  testing::check_property(60, 3112, [] {
    const chain_case one(rule_kind::euler, activation_kind::none, true);
    const std::size_t keys = one.key.size();
    const many_bits r(factors_of(one.p, 0, 0, 4000, 0, 1).key_scale.at(0).value());
    std::vector<many_bits> dy(keys), way(keys), dx(keys);
    many_bits radial(0);
    for (std::size_t i = 0; i < keys; ++i) {
      dy[i] = many_bits(any(-99, 99));
      way[i] = many_bits(any(-99, 99));
      radial += r * many_bits(one.key[i]) * dy[i];
    }
    jet n(one.epsilon(), many_bits(0));
    for (std::size_t i = 0; i < keys; ++i) n = n + jet(many_bits(one.key[i]), way[i]) * jet(many_bits(one.key[i]), way[i]);
    many_bits moved(0), said(0), along(0);
    for (std::size_t i = 0; i < keys; ++i) {
      moved += dy[i] * (jet(many_bits(one.key[i]), way[i]) / sqrt_of(n)).d;
      dx[i] = r * (dy[i] - r * many_bits(one.key[i]) * radial);
      said += dx[i] * way[i];
      along += dx[i] * many_bits(one.key[i]);
    }
    // The map is symmetric: <dx(dy), way> = <dy, dx(way)>.
    many_bits other(0), turned(0);
    for (std::size_t i = 0; i < keys; ++i) other += r * many_bits(one.key[i]) * way[i];
    for (std::size_t i = 0; i < keys; ++i) turned += dy[i] * r * (way[i] - r * many_bits(one.key[i]) * other);
    const many_bits bound = ldexp(many_bits(1), -3000);
    RC_ASSERT(abs(turned - said) <= bound);
    RC_ASSERT(abs(moved - said) <= bound);
    RC_ASSERT(abs(along - r * r * one.epsilon() * radial) <= bound);
  });
}

}  // namespace
}  // namespace deltaproof
