// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
//
// Heads for the tests of the vectorised tiers, and how far their answers are from MPFR rows of 400 bits, in radii.
#pragma once

#include <mpfr.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <numeric>
#include <random>
#include <string>
#include <vector>

#include "deltaproof/oracle/certify.hpp"
#include "oracle/mpfr_value.hpp"
#include "oracle/tiers/double_double_rows.hpp"
#include "oracle/tiers/fp64_rows.hpp"
#include "oracle/tiers/simd.hpp"

namespace deltaproof::testing {

struct head_shape {
  std::size_t key_dim = 8;
  std::size_t value_dim = 8;
  std::size_t tokens = 16;
  std::size_t steps_per_token = 1;
  decay_kind decays = decay_kind::none;
};

enum class key_family { unit, near_parallel, bf16_unit_at_two, alternating, some_zero, unscaled };
inline constexpr key_family key_families[] = {key_family::unit,        key_family::near_parallel, key_family::bf16_unit_at_two,
                                              key_family::alternating, key_family::some_zero,     key_family::unscaled};
inline constexpr decay_kind decay_kinds[] = {decay_kind::none, decay_kind::per_token, decay_kind::per_channel};

/// To 8 significant bits, toward zero.
inline double short_of(double x) {
  int e = 0;
  const double m = std::frexp(x, &e);
  return std::ldexp(std::trunc(std::ldexp(m, 8)), e - 8);
}

inline lowered<double> make_head(const head_shape& shape, key_family family, std::uint64_t seed, double size = 1,
                                 bool start = true) {
  std::mt19937_64 bits(seed);
  std::normal_distribution<double> normal;
  std::uniform_real_distribution<double> uniform;
  lowered<double> in;
  in.scan = sequence<double>::zeros(shape.tokens, shape.steps_per_token, shape.key_dim, shape.value_dim, shape.decays);
  auto& s = in.scan;
  in.scale = 1 / std::sqrt(static_cast<double>(shape.key_dim));
  for (double& x : s.q) x = short_of(normal(bits));
  for (double& x : s.v) x = normal(bits) * size;
  if (start) {
    for (double& x : s.initial_state.entries()) x = normal(bits) * size;
  }
  const double gates[] = {0, -1e-9, -0.05, -0.5, -5.5, -20, -3000};
  for (double& x : s.decay) x = std::exp(gates[bits() % 7]);
  std::vector<double> common(shape.key_dim);
  for (double& x : common) x = normal(bits);
  for (std::size_t r = 0; r < s.rows(); ++r) {
    double* k = s.k.data() + r * shape.key_dim;
    double square = 0;
    for (std::size_t j = 0; j < shape.key_dim; ++j) {
      k[j] = family == key_family::near_parallel ? common[j] + 1e-3 * normal(bits)
             : family == key_family::alternating ? common[j]
                                                 : normal(bits);
      square += k[j] * k[j];
    }
    const double sign = family == key_family::alternating && r % 2 == 1 ? -1 : 1;
    for (std::size_t j = 0; j < shape.key_dim; ++j) {
      if (family != key_family::unscaled) k[j] *= sign / std::sqrt(square);
      if (family == key_family::bf16_unit_at_two) k[j] = short_of(k[j] * (1 + 0x1p-9));
      if (family == key_family::some_zero && r % 3 == 1) k[j] = 0;
    }
    s.step[r] = family == key_family::bf16_unit_at_two ? 2
                : family == key_family::unscaled       ? uniform(bits) * 2 / square
                                                       : short_of(uniform(bits) * 2);
  }
  return in;
}

inline lowered<mpfr_value> in_mpfr(const lowered<double>& in, int bits = 400) {
  lowered<mpfr_value> out;
  out.scale = in.scale;
  out.scan = convert<mpfr_value>(in.scan, [&](double x) {
    mpfr_value y(bits);
    mpfr_set_d(y.get(), x, MPFR_RNDN);
    return y;
  });
  return out;
}

struct containment {
  double o = 0;  ///< largest |error| / radius of the outputs
  double state = 0;
  bool left = false;
};

/// Distance of every selected row from `want`, in radii, of one that left up to there; infinity where a radius of 0 has an error.
inline containment compare(const tiers::tier_rows& got, const certified<mpfr_value>& want,
                           const std::vector<std::size_t>& columns, const sequence<double>& s) {
  containment out;
  mpfr_value rest(400);
  const auto distance = [&](const mpfr_value& exact, double high, double low, double radius) {
    mpfr_sub_d(rest.get(), exact.get(), high, MPFR_RNDN);
    mpfr_sub_d(rest.get(), rest.get(), low, MPFR_RNDN);
    const double error = std::fabs(mpfr_get_d(rest.get(), MPFR_RNDA));
    return error == 0 ? 0 : error / radius;
  };
  for (std::size_t r = 0; r < columns.size(); ++r) {
    for (std::size_t t = 0; t < got.valid[r]; ++t) {
      const std::size_t i = tiers::tier_rows::panel(t, r, s.tokens);
      out.o = std::max(out.o, distance(want.o[t * s.value_dim + columns[r]], got.o[i], got.o_low.empty() ? 0 : got.o_low[i],
                                       got.radius(t, r)));
    }
    if (got.left[r] != 0) {
      out.left = true;
      continue;
    }
    for (std::size_t j = 0; j < s.key_dim; ++j) {
      const std::size_t i = tiers::tier_rows::panel(j, r, s.key_dim);
      out.state = std::max(out.state, distance(want.final_state[j * s.value_dim + columns[r]], got.final_state[i],
                                               got.final_state_low.empty() ? 0 : got.final_state_low[i], got.state_radius[r]));
    }
  }
  return out;
}

inline std::vector<std::size_t> all_columns(const lowered<double>& in) {
  std::vector<std::size_t> columns(in.scan.value_dim);
  std::iota(columns.begin(), columns.end(), std::size_t{0});
  return columns;
}

inline certified<mpfr_value> exact_run(const lowered<double>& in) {
  const auto fine = in_mpfr(in);
  certifier<mpfr_field> engine(mpfr_field{400}, std::ldexp(1.0, -400), fine);
  return engine.run({});
}

/// Every target this machine has, plain x86-64 among them.
class each_target {
 public:
  template <class F>
  static void run(const F& f) {
    for (long long rest = tiers::available_targets(); rest != 0; rest &= rest - 1) {
      tiers::restrict_targets(rest & -rest);
      f();
    }
    tiers::restrict_targets(0);
  }
};

inline tiers::double_double_head pairs_of(const lowered<double>& in) {
  tiers::double_double_head head;
  head.high = in;
  return head;
}

}  // namespace deltaproof::testing
