// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
//
// Single numbers of a field, each with its error: what becomes of gradients of a lowered head behind the recurrence. And what
// the recurrence in a field reads of a problem: a lowered head, its cotangents.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <type_traits>
#include <utility>
#include <vector>

#include "deltaproof/oracle/certified_rows.hpp"
#include "oracle/lower_mpfr.hpp"
#include "oracle/mpfr_ball.hpp"
#include "oracle/pair_field.hpp"
#include "oracle/solve/decided.hpp"
#include "support/widest_vectors.hpp"

namespace deltaproof {

/// A number of a field and its error in units of u.
template <class Field>
struct known {
  typename Field::value x;
  typename Field::radius error = 0;
};

/// Arithmetic on such numbers. An exact 0 stays one.
template <class Field>
class known_arithmetic {
 public:
  using value = typename Field::value;
  using radius = typename Field::radius;
  using number = known<Field>;

  known_arithmetic(const Field& field, const radius& u) : field_{field}, u_{u} {}

  [[nodiscard]] number zero() const { return {field_.zero(), 0}; }
  [[nodiscard]] number from(const mpfr_ball& b, int bits) const {
    number out = zero();
    const wide_bound scaled_error = b.error() * wide_bound::scaled(1, bits);
    if constexpr (std::is_same_v<radius, double>) {
      if constexpr (std::is_same_v<value, double>) {
        out.x = mpfr_get_d(b.value(), MPFR_RNDN);
      } else {
        out.x.hi = mpfr_get_d(b.value(), MPFR_RNDN);
        mpfr_value rest(mpfr_get_prec(b.value()));
        mpfr_sub_d(rest.get(), b.value(), out.x.hi, MPFR_RNDN);  // exact
        out.x.lo = mpfr_get_d(rest.get(), MPFR_RNDN);
      }
      out.error = scaled_error.above() + Field::magnitude(out.x);
      if (!b.is_exact_zero()) out.error += Field::underflow_unit;
    } else {
      mpfr_set(out.x.get(), b.value(), MPFR_RNDN);
      out.error = scaled_error + Field::magnitude(out.x);
    }
    return out;
  }
  [[nodiscard]] number product(const number& a, const number& b) const {
    if (is_exact_zero(a) || is_exact_zero(b)) return zero();
    number out{field_.product(a.x, b.x), 0};
    const radius size_a = Field::magnitude(a.x), size_b = Field::magnitude(b.x);
    out.error = closed(size_a * b.error + a.error * size_b + u_ * a.error * b.error + Field::magnitude(out.x) +
                       Field::underflow_unit * (1 + size_a + size_b));
    return out;
  }
  [[nodiscard]] number sum(const number& a, const number& b) const {
    if (is_exact_zero(a)) return b;
    if (is_exact_zero(b)) return a;
    number out{field_.sum(a.x, b.x), 0};
    out.error = closed(a.error + b.error + Field::magnitude(out.x));
    return out;
  }
  [[nodiscard]] number difference(const number& a, const number& b) const { return sum(a, {field_.negated(b.x), b.error}); }

 private:
  [[nodiscard]] static bool is_exact_zero(const number& a) { return Field::is_zero(a.x) && a.error == radius(0); }
  [[nodiscard]] static radius closed(const radius& e) { return detail::finite_or_infinite(e * detail::radius_slack); }

  Field field_;
  radius u_;
};

/// x . d_x chain: dx^ is the gradient with respect to x^ = r x, and becomes that with respect to x.
template <class Field>
void through_norm(const known_arithmetic<Field>& at, const known<Field>& r, const typename Field::value* normalised,
                  double relative_error, known<Field>* d, std::size_t keys) {
  std::vector<known<Field>> x;
  auto along = at.zero();
  for (std::size_t i = 0; i < keys; ++i) {
    x.push_back({normalised[i], Field::magnitude(normalised[i]) * relative_error});
    along = at.sum(along, at.product(x[i], d[i]));
  }
  for (std::size_t i = 0; i < keys; ++i) d[i] = at.product(r, at.difference(d[i], at.product(x[i], along)));
}

/// u of a field of so many bits.
template <class Field>
[[nodiscard]] typename Field::radius unit_of(int bits) {
  if constexpr (std::is_same_v<typename Field::radius, double>)
    return std::ldexp(1.0, -bits);
  else
    return wide_bound::scaled(1, -bits);
}

/// Begins a run in MPFR that put_number is told of. A gate that was made of a raw one is not what it stands for.
inline void begin_exact_run(const problem& p) {
  mpfr_clear_inexflag();
  if (p.raw) mpfr_set_inexflag();
}

/// A double, exactly.
template <class Field>
[[nodiscard]] typename Field::value given_to(const Field& field, double x) {
  typename Field::value out = field.zero();
  if constexpr (std::is_same_v<typename Field::value, double>)
    out = x;
  else if constexpr (std::is_same_v<typename Field::value, double_pair>)
    out.hi = x;
  else
    mpfr_set_d(out.get(), x, MPFR_RNDN);
  return out;
}

/// Element i of a part: the number as a sum of doubles, and its radius; of MPFR numbers 0 where no result of the run they are of
/// was rounded so far.
template <class Field>
void put_number(head_part& part, std::size_t i, const typename Field::value& x, const typename Field::radius& error,
                const typename Field::radius& u, mpfr_ptr rest) {
  constexpr double infinity = std::numeric_limits<double>::infinity();
  const double absolute = detail::absolute_radius(error, u);
  if constexpr (std::is_same_v<typename Field::value, double>) {
    part.value[i] = x;
    part.radius[i] = std::isfinite(x) ? absolute : infinity;
  } else if constexpr (std::is_same_v<typename Field::value, double_pair>) {
    part.value[i] = x.hi;
    part.radius[i] = std::isfinite(x.hi) && std::isfinite(x.lo) ? absolute : infinity;
    if (x.lo == 0 || !std::isfinite(x.lo)) return;
    if (part.low.empty()) part.low.emplace_back(part.value.size(), 0.0);
    part.low[0][i] = x.lo;
  } else {
    split(part, i, x.get(), rest, nothing_was_rounded() && error.finite() ? 0 : absolute);
  }
}

// The same text, compiled for wider vectors with all that it calls but what is noinline: contraction is off, so the bits are the
// same. What runs once a block of tokens is noinline: g++ takes minutes to inline all of it.
#if DELTAPROOF_CHOOSES_VECTORS && defined(__GNUC__) && !defined(__clang__)
template <class Job>
[[gnu::target("avx2,fma"), gnu::flatten]] auto compiled_for_fused_vectors(const Job& job) {
  return job();
}
#else
template <class Job>
auto compiled_for_fused_vectors(const Job& job) {
  return job();
}
#endif
/// job() as compiled for what the machine has.
template <class Job>
auto in_fused_vectors(const Job& job) {
#if DELTAPROOF_CHOOSES_VECTORS
  static const bool wide = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
  if (wide) return compiled_for_fused_vectors(job);
#endif
  return job();
}

/// scale d_o of some tokens, T x V, each product rounded once, and what its magnitude is at least.
template <class Field>
struct token_cotangents {
  std::vector<typename Field::value> o;
  std::vector<typename Field::radius> o_size;
};

template <class Field>
[[nodiscard]] token_cotangents<Field> cotangents_of(const Field& field, const problem& p, std::size_t sequence_index,
                                                    std::size_t h, std::size_t first, std::size_t count) {
  using radius = typename Field::radius;
  const sequence_range range = sequence_at(p, sequence_index);
  const std::size_t cols = p.value_dim();
  token_cotangents<Field> out;
  std::vector<double> x(cols);
  const auto scale = given_to(field, p.scale);
  out.o.reserve(count * cols);
  out.o_size.reserve(count * cols);
  for (std::size_t t = first; t < first + count; ++t) {
    const std::size_t row = range.batch * p.tokens() + range.first_token + t;
    if (p.d_o) p.d_o->read((row * p.value_heads() + h) * cols, x);
    for (const double one : x) {
      out.o.push_back(field.product(scale, given_to(field, one)));
      radius size = Field::magnitude(out.o.back());
      // A product that underflows to 0 is none.
      if (Field::is_zero(out.o.back()) && one != 0 && p.scale != 0) size = radius(std::numeric_limits<double>::denorm_min());
      out.o_size.push_back(size);
    }
  }
  return out;
}

/// d_final_state of a head, K x V.
template <class Field>
[[nodiscard]] std::vector<typename Field::value> state_cotangent_of(const Field& field, const problem& p,
                                                                    std::size_t sequence_index, std::size_t h) {
  std::vector<typename Field::value> out;
  std::vector<double> x(p.value_dim());
  for (std::size_t i = 0; i < p.key_dim(); ++i) {
    if (p.d_final_state) p.d_final_state->read(((sequence_index * p.value_heads() + h) * p.key_dim() + i) * x.size(), x);
    for (const double one : x) out.push_back(given_to(field, one));
  }
  return out;
}

}  // namespace deltaproof
