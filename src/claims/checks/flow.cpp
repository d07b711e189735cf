// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
//
// Claims about the differential equation, its exact solution (EFLA) and what follows from it. e^−x is no fraction: where an
// identity must hold for any value of it, a free fraction E in (0, 1) stands for it; matrix exponentials are nilpotent or
// truncated alike on both sides.

#include <algorithm>
#include <array>
#include <cmath>

#include "claims/checks/parts.hpp"
#include "deltaproof/number/elementary.hpp"
#include "deltaproof/number/rounded.hpp"
#include "deltaproof/rule/rules.hpp"

namespace deltaproof::claim_detail {
namespace {

const fraction_vector unit{fraction(3, 5), fraction(4, 5), 0};

claim_values euler_step() {
  const fraction_matrix s = sample_matrix(2, 3, 1);
  const fraction_vector k = sample_vector(3, 2);
  const fraction_vector v = sample_vector(2, 3);
  const rational eta = fraction(3, 11);
  const fraction_matrix a = combined(fraction_matrix(3, 3), -1, outer(k, k));
  const fraction_matrix derivative = combined(product(s, a), 1, outer(v, k));
  return {{"equal", combined(s, eta, derivative) == delta_step(s, k, v, eta)}};
}

/// Coefficients of powers of t of S(t) = S0 Σ (tA)^n / n! + B Σ t^(n+1) A^n / (n+1)!, with A nilpotent of order 4.
std::vector<fraction_matrix> solution(const fraction_matrix& s0, const fraction_matrix& b, const fraction_matrix& a) {
  std::vector<fraction_matrix> coefficients;
  fraction_matrix power = identity<rational>(a.rows());
  fraction_matrix previous(s0.rows(), s0.cols());  // B A^(n-1) / n!
  rational factorial = 1;
  for (long n = 0; n <= 5; ++n) {
    if (n > 0) factorial *= rational(n);
    coefficients.push_back(combined(previous, 1 / factorial, product(s0, power)));
    previous = combined(fraction_matrix(s0.rows(), s0.cols()), 1 / (factorial * rational(n + 1)), product(b, power));
    power = product(power, a);
  }
  return coefficients;
}

bool solves(const std::vector<fraction_matrix>& s, const fraction_matrix& b, const fraction_matrix& a) {
  bool all = true;
  for (std::size_t n = 0; n + 1 < s.size(); ++n) {
    const fraction_matrix derivative =
        combined(fraction_matrix(b.rows(), b.cols()), rational(static_cast<long>(n + 1)), s[n + 1]);
    const fraction_matrix right = combined(product(s[n], a), n == 0 ? 1 : 0, b);
    all = all && derivative == right;
  }
  return all;
}

claim_values nilpotent_solution() {
  const fraction_matrix a = lower_part(sample_matrix(4, 4, 11), true);
  const fraction_matrix s0 = sample_matrix(2, 4, 12);
  const fraction_matrix b = sample_matrix(2, 4, 13);
  const auto forced = solution(s0, b, a);
  const fraction_matrix none(2, 4);
  int order = 1;
  for (fraction_matrix power = a; squares(power) != 0; power = product(power, a)) ++order;
  const fraction_matrix full = sample_matrix(4, 4, 15);  // term by term, up to t⁵
  return {{"forced_solves", solves(forced, b, a)},
          {"full_matrix_solves", solves(solution(s0, b, full), b, full)},
          {"full_matrix_unforced_solves", solves(solution(s0, none, full), none, full)},
          {"starts_at_s0", forced[0] == s0},
          {"unforced_solves", solves(solution(s0, none, a), none, a)},
          {"order_of_nilpotency", order}};
}

/// The state a time `t` after `start`: the polynomial that `solution` gives, evaluated.
fraction_matrix flow(const fraction_matrix& start, const fraction_matrix& b, const fraction_matrix& a, const rational& t) {
  fraction_matrix state(start.rows(), start.cols());
  rational power = 1;
  for (const fraction_matrix& coefficient : solution(start, b, a)) {
    state = combined(state, power, coefficient);
    power *= t;
  }
  return state;
}

/// From the state after token t − 1 to time t under token t's equation: by the formula of a step of length η, and by the
/// equation on the whole of (t − 1, t].
claim_values time_between_tokens() {
  const fraction_matrix a = lower_part(sample_matrix(4, 4, 11), true);
  const fraction_matrix s = sample_matrix(2, 4, 12);
  const fraction_matrix b = sample_matrix(2, 4, 13);
  const fraction_matrix whole = flow(s, b, a, 1);
  return {{"eta_one_half_equal", flow(s, b, a, fraction(1, 2)) == whole},
          {"eta_one_equal", flow(flow(s, b, a, fraction(1, 2)), b, a, fraction(1, 2)) == whole}};
}

/// One solution at three times η apart: the step taken from the first, and, as the Chinese post prints it, from the last.
claim_values printed_start() {
  const fraction_matrix a = lower_part(sample_matrix(4, 4, 11), true);
  const fraction_matrix b = sample_matrix(2, 4, 13);
  const rational eta = fraction(1, 2);
  const fraction_matrix before = sample_matrix(2, 4, 12);
  const fraction_matrix now = flow(before, b, a, eta);
  const fraction_matrix after = flow(now, b, a, eta);
  return {{"from_t_minus_eta_equal", flow(before, b, a, eta) == now},
          {"from_t_plus_eta_equal", flow(after, b, a, eta) == now},
          {"back_from_t_plus_eta_equal", flow(after, b, a, -eta) == now}};
}

/// |R| of the exact step and of Euler's at step lengths from 1/16 to 25; e^−x is correctly rounded, so known within one unit.
claim_values exact_against_euler() {
  const auto of_exact = [](double x) { return exp(rounded<fp64>::from_exact(-x)).value(); };
  const auto of_euler = [](long sixteenths) { return approximate(abs(euler::stability(fraction(sixteenths, 16)))); };
  double largest = 0;
  bool larger_for_short_steps = true;
  for (long i = 1; i <= 400; ++i) {
    const double x = static_cast<double>(i) / 16;
    largest = std::max(largest, of_exact(x));
    if (i <= 20) larger_for_short_steps = larger_for_short_steps && of_exact(x) > of_euler(i) + 1e-15;
  }
  claim_values out{{"largest_exact", largest},
                   {"exact_at_1", of_exact(1)},
                   {"exact_at_1.278", of_exact(1.278)},
                   {"exact_at_1.279", of_exact(1.279)}};
  for (const char* name : {"largest_exact", "exact_at_1", "exact_at_1.278", "exact_at_1.279"})
    out[std::string(name) + "_radius"] = 1e-15;
  out["euler_at_3"] = of_euler(48);
  out["euler_at_1"] = of_euler(16);
  out["exact_is_larger_up_to_x_1.25"] = larger_for_short_steps;
  return out;
}

/// d(S + B A⁻¹)/dt = (S + B A⁻¹) A says S A + B on both sides, where A has an inverse.
claim_values shifted_variable() {
  const fraction_matrix a = sample_matrix(3, 3, 14);
  const fraction_matrix s = sample_matrix(2, 3, 15);
  const fraction_matrix b = sample_matrix(2, 3, 16);
  const fraction_matrix derivative = combined(product(s, a), 1, b);
  const fraction_matrix shifted = combined(s, 1, product(b, inverse(a)));
  bool key_has_inverse = true;
  try {
    (void)inverse(combined(fraction_matrix(3, 3), -1, outer(unit, unit)));
  } catch (const domain_error&) {
    key_has_inverse = false;
  }
  return {{"equal", product(shifted, a) == derivative}, {"minus_k_kt_has_an_inverse", key_has_inverse}};
}

/// The forcing term over a time η with A nilpotent: η φ1(ηA), and what φ1(A) alone gives.
claim_values argument_of_phi() {
  fraction_matrix a(2, 2);
  a(1, 0) = 3;
  const rational eta = fraction(1, 2);
  const fraction_matrix solved =
      combined(combined(fraction_matrix(2, 2), eta, identity<rational>(2)), eta * eta / 2, a);  // ηI + η²A/2
  const fraction_matrix printed = combined(identity<rational>(2), fraction(1, 2), a);           // I + A/2
  const fraction_matrix scaled_argument = combined(identity<rational>(2), eta / 2, a);          // I + ηA/2
  return {{"phi_of_a_equal", printed == solved},
          {"eta_phi_of_eta_a_equal", combined(fraction_matrix(2, 2), eta, scaled_argument) == solved}};
}

/// f(x y^T) of a polynomial against f(0) I + x bracket y^T, for y^T x not 0 and for 0, where the bracket is f′(0).
claim_values rank_one_function() {
  const std::vector<rational> a{fraction(2, 3), -1, fraction(5, 2), 4, fraction(-1, 7)};
  const auto check = [&](const fraction_vector& x, const fraction_vector& y) {
    const fraction_matrix m = outer(x, y);
    const rational z = inner(y, x);
    fraction_matrix left(3, 3);
    fraction_matrix power = identity<rational>(3);
    rational f = 0;
    rational zn = 1;
    for (const rational& coefficient : a) {
      left = combined(left, coefficient, power);
      power = product(power, m);
      f += coefficient * zn;
      zn *= z;
    }
    const rational bracket = z == 0 ? a[1] : (f - a[0]) / z;
    return left == combined(combined(fraction_matrix(3, 3), a[0], identity<rational>(3)), bracket, m);
  };
  const fraction_vector x{1, 2, fraction(1, 3)};
  const fraction_vector y{fraction(1, 2), -1, 3};
  const fraction_vector orthogonal{2, -1, 0};
  // 1/(1 − z) at z = 2: −1 by the closed form; the partial sums of its series, 2^n − 1, move away from it.
  rational partial = 0;
  rational power_of_two = 1;
  rational distance = 0;
  bool diverges = true;
  for (int n = 0; n < 10; ++n) {
    partial += power_of_two;
    power_of_two *= 2;
    diverges = diverges && abs(partial + 1) > distance;
    distance = abs(partial + 1);
  }
  return {{"equal", check(x, y)},
          {"inner_product_0_equal", check(x, orthogonal)},
          {"inner_product_is_0", inner(x, orthogonal) == 0},
          {"series_of_the_inverse_diverges_at_2", diverges}};
}

/// Both sides of e^(ηA) and of the forcing term, A = −k k^T, with the exponential cut after the same power on both sides.
claim_values exponential_of_the_key() {
  const fraction_vector k = sample_vector(3, 17);
  const fraction_vector v = sample_vector(2, 18);
  const rational n = inner(k, k);
  const rational eta = fraction(2, 5);
  const fraction_matrix a = combined(fraction_matrix(3, 3), -1, outer(k, k));
  fraction_matrix exponential = identity<rational>(3);
  fraction_matrix forcing = combined(fraction_matrix(2, 3), eta, outer(v, k));
  fraction_matrix power = identity<rational>(3);
  rational scalar = 1;        // Σ (−ηn)^m / m!
  rational scalar_phi = eta;  // Σ η^(m+1) (−n)^m / (m+1)!
  rational term = 1;
  for (long m = 1; m <= 8; ++m) {
    term *= eta / rational(m);
    power = product(power, a);
    exponential = combined(exponential, term, power);
    forcing = combined(forcing, term * eta / rational(m + 1), product(outer(v, k), power));
    rational minus_n = 1;
    for (long i = 0; i < m; ++i) minus_n *= -n;
    scalar += term * minus_n;
    scalar_phi += term * eta / rational(m + 1) * minus_n;
  }
  const rational coefficient = (1 - scalar) / n;
  return {{"exponential_equal", exponential == combined(identity<rational>(3), -coefficient, outer(k, k))},
          {"forcing_equal", forcing == combined(fraction_matrix(2, 3), scalar_phi, outer(v, k))}};
}

/// E for e^−x: the EFLA step, DeltaNet with the coefficient (1 − E)/‖k‖², and DeltaNet on the unit key.
claim_values efla_forms() {
  const rational e = fraction(2, 9);
  const rational length = fraction(7, 3);
  const fraction_vector k = scaled(length, unit);
  const rational n = inner(k, k);
  const rational coefficient = (1 - e) / n;
  const fraction_matrix s = sample_matrix(2, 3, 19);
  const fraction_vector v = sample_vector(2, 21);
  const fraction_matrix printed =
      combined(product(s, combined(identity<rational>(3), -coefficient, outer(k, k))), coefficient, outer(v, k));
  const fraction_matrix unit_key_same_value = delta_step(s, unit, v, 1 - e);
  const fraction_matrix unit_key_scaled_value = delta_step(s, unit, scaled(1 / length, v), 1 - e);
  return {{"delta_step_equal", printed == delta_step(s, k, v, coefficient)},
          {"transition_is_of_the_unit_key", transition(k, coefficient) == transition(unit, 1 - e)},
          {"unit_key_same_value_equal", printed == unit_key_same_value},
          {"unit_key_value_over_length_equal", printed == unit_key_scaled_value}};
}

/// A key of zeros: the coefficient as printed, what the exact rule makes of it, and a step with it.
claim_values key_of_zeros() {
  using number = rounded<fp64>;
  const number eta(1);
  const number none(0);
  const double printed = ((number(1) - exp(-(eta * none))) / none).value();
  const fraction_matrix s = sample_matrix(2, 3, 19);
  const fraction_vector zero(3);
  return {{"printed_is_a_number", !std::isnan(printed)},
          {"exact_rule_over_eta", (effective_step(exact_flow{}, eta, none) / eta).value()},
          {"step_leaves_the_state", delta_step(s, zero, sample_vector(2, 21), fraction(3, 11)) == s}};
}

/// Two keys of one direction, E = e^−x of each: the written terms differ.
claim_values length_matters() {
  const fraction_vector v{1, 2};
  const auto written = [&](const rational& length, const rational& e) {
    return combined(fraction_matrix(2, 3), (1 - e) / (length * length), outer(v, scaled(length, unit)));
  };
  return {{"equal", written(1, fraction(1, 2)) == written(2, fraction(1, 16))}};  // e^−x and (e^−x)^4
}

/// R of the rules at x = 3, where Euler explodes.
claim_values order_or_stability() {
  const rational x = 3;
  const auto size = [&](auto rule) { return approximate(abs(decltype(rule)::stability(x))); };
  return {{"euler_order_1", size(euler{})}, {"implicit_order_1", size(implicit_euler{})},
          {"rk2_order_2", size(rk2{})},     {"crank_nicolson_order_2", size(crank_nicolson{})},
          {"rk3_order_3", size(rk3{})},     {"rk4_order_4", size(rk4{})}};
}

/// (1 − e^−x) as printed, each operation rounded, at x = u/2 and at the next number; and −expm1(−x).
template <format F>
bool printed_vanishes() {
  using number = rounded<F>;
  const auto printed = [](const number& x) { return number(1) - exp(-x); };
  const number x = number::from_exact(std::ldexp(1.0, -F.precision - 1));
  const number next = number::from_exact(x.value() * (1 + std::ldexp(1.0, 1 - F.precision)));
  return printed(x) == number(0) && !(printed(next) == number(0)) && !(expm1(-x) == number(0));
}

claim_values printed_coefficient() {
  using number = rounded<fp32>;
  const number x = round_to<number>(1e-6);
  const double printed = (number(1) - exp(-x)).value();
  const double careful = -expm1(-x).value();
  return {{"bf16_vanishes", printed_vanishes<bf16>()},
          {"fp16_vanishes", printed_vanishes<fp16>()},
          {"fp32_vanishes", printed_vanishes<fp32>()},
          {"fp64_vanishes", printed_vanishes<fp64>()},
          {"fp32_relative_error_at_1e-6", (printed - careful) / careful}};
}

/// z^T (−k k^T) z for vectors z, and the fixed point of a frozen pair.
claim_values semidefinite() {
  const fraction_vector k = sample_vector(3, 22);
  const fraction_matrix a = combined(fraction_matrix(3, 3), -1, outer(k, k));
  bool below = true;
  for (unsigned i = 0; i < 50; ++i) {
    const fraction_vector z = sample_vector(3, 100 + i);
    below = below && inner(z, product(a, z)) <= 0;
  }
  const rational grown = inner(k, product(combined(fraction_matrix(3, 3), -1, a), k));  // the same equation, + k k^T
  const fraction_vector across{-k[1], k[0], 0};
  const fraction_vector zero(3);
  // A short key makes the state that fits it long: v k^T / ‖k‖² has norm ‖v‖ / ‖k‖.
  const fraction_vector tiny = scaled(fraction(1, 1000), unit);
  const rational fixed = squares(combined(fraction_matrix(2, 3), 1 / inner(tiny, tiny), outer({1, 0}, tiny)));
  return {{"never_above_0", below},
          {"zero_across_the_key", product(a, across) == zero},
          {"plus_k_kt_grows", grown > 0},
          {"squared_norm_of_the_fixed_state_key_1e-3", approximate(fixed)}};
}

}  // namespace

std::span<const claim_check> flow_checks() {
  static constexpr std::array all{
      claim_check{"euler_step", claim_method::exact_check, euler_step},
      claim_check{"nilpotent_solution", claim_method::exact_check, nilpotent_solution},
      claim_check{"time_between_tokens", claim_method::exact_check, time_between_tokens},
      claim_check{"printed_start", claim_method::exact_check, printed_start},
      claim_check{"exact_against_euler", claim_method::enclosure, exact_against_euler},
      claim_check{"shifted_variable", claim_method::exact_check, shifted_variable},
      claim_check{"argument_of_phi", claim_method::exact_check, argument_of_phi},
      claim_check{"rank_one_function", claim_method::exact_check, rank_one_function},
      claim_check{"exponential_of_the_key", claim_method::exact_check, exponential_of_the_key},
      claim_check{"efla_forms", claim_method::exact_check, efla_forms},
      claim_check{"key_of_zeros", claim_method::exact_check, key_of_zeros},
      claim_check{"length_matters", claim_method::exact_check, length_matters},
      claim_check{"order_or_stability", claim_method::exact_check, order_or_stability},
      claim_check{"printed_coefficient", claim_method::exact_check, printed_coefficient},
      claim_check{"semidefinite", claim_method::exact_check, semidefinite},
  };
  return all;
}

}  // namespace deltaproof::claim_detail
