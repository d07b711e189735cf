// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
//
// EFLA's coefficient (1 - e^-x)/n, x = beta n, as three pieces of code would form it in one format, every operation rounded
// once to it, exp and expm1 correctly rounded; and where the first of them is 0.
#pragma once

#include <unordered_map>

#include "deltaproof/number/elementary.hpp"
#include "deltaproof/number/real.hpp"
#include "deltaproof/number/rounded.hpp"
#include "studies/shared/common.hpp"
#include "studies/shared/formats.hpp"

namespace deltaproof::detail::efla {

using shared::significand;
using shared::significands;

/// naive: (1 - exp(-x))/n. expm1: -expm1(-x)/n. library: beta (expm1(-x)/(-x)), as rule/rules.hpp.
enum class form { naive, expm1, library };
struct named_form {
  form id{};
  std::string_view name;
};
inline constexpr std::array<named_form, 3> forms{{{form::naive, "naive"}, {form::expm1, "expm1"}, {form::library, "library"}}};

/// e^-x and e^-x - 1 of a format, remembered: a format of 16 bits asks for few different ones, often.
template <format F>
class exponentials {
 public:
  struct pair {
    rounded<F> exp;
    rounded<F> expm1;
  };
  pair operator()(rounded<F> x) {
    if constexpr (F.storage_bits > 16) {
      return {exp(-x), deltaproof::expm1(-x)};
    } else {
      const auto [at, is_new] = known_.try_emplace(static_cast<std::uint64_t>(x.bits()));
      if (is_new) at->second = {exp(-x), deltaproof::expm1(-x)};
      return at->second;
    }
  }

 private:
  std::unordered_map<std::uint64_t, pair> known_;
};

template <format F>
[[nodiscard]] rounded<F> formed(form how, rounded<F> beta, rounded<F> n, rounded<F> x,
                                const typename exponentials<F>::pair& at_x) {
  switch (how) {
    case form::naive:
      return (rounded<F>(1) - at_x.exp) / n;
    case form::expm1:
      return -at_x.expm1 / n;
    case form::library:
      return x.value() == 0 ? beta : beta * (at_x.expm1 / -x);
  }
  return beta;
}

/// The coefficient for numbers beta and n of the format. Throws: format_error for a format other than bf16, fp16, fp32, fp64.
[[nodiscard]] inline double coefficient(std::string_view format_name, form how, double beta, double n) {
  return shared::with_studied_format(format_named(format_name), [&]<format F>() {
    const auto b = rounded<F>::from_exact(beta);
    const auto norm = rounded<F>::from_exact(n);
    const auto x = b * norm;
    return formed<F>(how, b, norm, x, exponentials<F>()(x)).value();
  });
}

/// Has at least twice the bits of fp64, and what cancels in 1 - e^-x at 1e-12 besides.
inline constexpr int ruler_bits = 192;
/// |c / (1 - e^-x) - 1|, the relative error of a coefficient c with n = 1.
[[nodiscard]] inline double error_of(double c, double x) {
  using wide = real<ruler_bits>;
  const wide truth = -expm1(wide(-lift<wide>(x)));
  return round_to<double>(wide(abs(wide(lift<wide>(c) / truth - 1))));
}

/// Of the naive form with n = 1.
struct dead_zone {
  double last_zero = 0;       ///< the largest x at which it is 0
  double first_alive = 0;     ///< the next number
  double saturates_from = 0;  ///< the smallest x at which it is 1
};
/// Throws: as coefficient.
[[nodiscard]] inline dead_zone dead_zone_of(std::string_view format_name) {
  return shared::with_studied_format(format_named(format_name), [&]<format F>() -> dead_zone {
    // The form is monotone.
    const auto last_below = [&](double reached) {
      return shared::last_with<F>(0, largest(F), [&](double x) { return coefficient(format_name, form::naive, x, 1) < reached; });
    };
    const double zero = last_below(smallest_subnormal(F));
    return {zero, shared::after<F>(zero), shared::after<F>(last_below(1))};
  });
}

}  // namespace deltaproof::detail::efla
