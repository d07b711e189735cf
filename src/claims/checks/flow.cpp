// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
//
// Claims about the differential equation, its exact solution (EFLA) and what follows from it. e^−x is no fraction: where an
// identity must hold for any value of it, a free fraction E in (0, 1) stands for it; matrix exponentials are nilpotent or
// truncated alike on both sides.

#include "claims/checks/parts.hpp"
#include "deltaproof/number/elementary.hpp"
#include "deltaproof/number/rounded.hpp"
#include "deltaproof/rule/rules.hpp"

namespace deltaproof::claim_detail {
namespace {

const fraction_vector unit{{fraction(3, 5), fraction(4, 5), 0}};
/// A = −k kᵀ of the equation.
fraction_matrix minus_square(const fraction_vector& k) { return -k * k.transpose(); }

claim_values euler_step() {
  const fraction_matrix s = sample_matrix(2, 3, 1);
  const fraction_vector k = sample_vector(3, 2);
  const fraction_vector v = sample_vector(2, 3);
  const rational eta = fraction(3, 11);
  const fraction_matrix derivative = s * minus_square(k) + v * k.transpose();
  return {{"equal", s + eta * derivative == delta_step(s, k, v, eta)}};
}

/// Coefficients of powers of t of S(t) = S0 Σ (tA)^n / n! + B Σ t^(n+1) A^n / (n+1)!, with A nilpotent of order 4.
std::vector<fraction_matrix> solution(const fraction_matrix& s0, const fraction_matrix& b, const fraction_matrix& a) {
  std::vector<fraction_matrix> coefficients;
  fraction_matrix power = fraction_matrix::Identity(a.rows(), a.rows());
  fraction_matrix previous = 0 * s0;  // B A^(n-1) / n!
  rational factorial = 1;
  for (long n = 0; n <= 5; ++n) {
    if (n > 0) factorial *= n;
    coefficients.push_back(previous + s0 * power / factorial);
    previous = b * power / (factorial * (n + 1));
    power = power * a;
  }
  return coefficients;
}

bool solves(const std::vector<fraction_matrix>& s, const fraction_matrix& b, const fraction_matrix& a) {
  bool all = true;
  for (std::size_t n = 0; n + 1 < s.size(); ++n)
    all = all && rational(n + 1) * s[n + 1] == s[n] * a + rational(n == 0 ? 1 : 0) * b;
  return all;
}

claim_values nilpotent_solution() {
  const fraction_matrix a = strictly_lower(sample_matrix(4, 4, 11));
  const fraction_matrix s0 = sample_matrix(2, 4, 12);
  const fraction_matrix b = sample_matrix(2, 4, 13);
  const auto forced = solution(s0, b, a);
  const fraction_matrix none = zeros(2, 4);
  int order = 1;
  for (fraction_matrix power = a; !power.isZero(0); power = power * a) ++order;
  const fraction_matrix full = sample_matrix(4, 4, 15);  // term by term, up to t⁵
  // B A⁻¹ (e^{tA} − I) as printed, from a state of zeros.
  const auto from_zeros = solution(none, b, full);
  fraction_matrix term = b * full.inverse();
  bool printed = from_zeros[0].isZero(0);
  for (long n = 1; n <= 5; ++n) {
    term = term * full / rational(n);
    printed = printed && term == from_zeros[static_cast<std::size_t>(n)];
  }
  return {{"forced_solves", solves(forced, b, a)}, {"full_matrix_solves", solves(solution(s0, b, full), b, full)},
          {"printed_inverse_equal", printed},      {"full_matrix_unforced_solves", solves(solution(s0, none, full), none, full)},
          {"starts_at_s0", forced[0] == s0},       {"unforced_solves", solves(solution(s0, none, a), none, a)},
          {"order_of_nilpotency", order}};
}

/// The state a time `t` after `start`: the polynomial that `solution` gives, evaluated.
fraction_matrix flow(const fraction_matrix& start, const fraction_matrix& b, const fraction_matrix& a, const rational& t) {
  fraction_matrix state = 0 * start;
  rational power = 1;
  for (const fraction_matrix& coefficient : solution(start, b, a)) {
    state += power * coefficient;
    power *= t;
  }
  return state;
}

/// From the state after token t − 1 to time t under token t's equation: by the formula of a step of length η, and by the
/// equation on the whole of (t − 1, t].
claim_values time_between_tokens() {
  const fraction_matrix a = strictly_lower(sample_matrix(4, 4, 11));
  const fraction_matrix s = sample_matrix(2, 4, 12);
  const fraction_matrix b = sample_matrix(2, 4, 13);
  const fraction_matrix whole = flow(s, b, a, 1);
  return {{"eta_one_half_equal", flow(s, b, a, fraction(1, 2)) == whole},
          {"two_halves_equal", flow(flow(s, b, a, fraction(1, 2)), b, a, fraction(1, 2)) == whole}};
}

/// One solution at three times η apart: the step taken from the first, and, as the Chinese post prints it, from the last.
claim_values printed_start() {
  const fraction_matrix a = strictly_lower(sample_matrix(4, 4, 11));
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

/// The state at time 1 under the exact rule, the key (cos t, sin t), frozen at a place of each step, and the value 1, from 0.
std::array<double, 2> turned(int steps, double place) {
  const double h = 1.0 / steps, b = -std::expm1(-h);
  std::array<double, 2> s{};
  for (int i = 0; i < steps; ++i) {
    const double t = (i + place) * h;
    const std::array<double, 2> k{std::cos(t), std::sin(t)};
    const double change = b * (1 - (s[0] * k[0] + s[1] * k[1]));
    s = {s[0] + change * k[0], s[1] + change * k[1]};
  }
  return s;
}

/// log2 of the ratio of the errors of 256 and 512 steps; the truth is 2^14 steps frozen in their middle.
claim_values turning_key() {
  const auto truth = turned(1 << 14, 0.5);
  const auto order = [&](double place) {
    const auto error = [&](int steps) {
      const auto s = turned(steps, place);
      return std::hypot(s[0] - truth[0], s[1] - truth[1]);
    };
    return std::log2(error(256) / error(512));
  };
  return {{"order_frozen_at_end", order(1)}, {"order_frozen_in_middle", order(0.5)}};
}

/// d(S + B A⁻¹)/dt = (S + B A⁻¹) A says S A + B on both sides, where A has an inverse.
claim_values shifted_variable() {
  const fraction_matrix a = sample_matrix(3, 3, 14);
  const fraction_matrix s = sample_matrix(2, 3, 15);
  const fraction_matrix b = sample_matrix(2, 3, 16);
  const fraction_matrix shifted = s + b * a.inverse();
  const fraction_vector k = sample_vector(3, 17);
  const fraction_matrix written = sample_vector(2, 18) * k.transpose();
  const fraction_matrix fitted = s - written / k.squaredNorm();
  return {{"equal", shifted * a == s * a + b},
          {"minus_k_kt_has_an_inverse", minus_square(unit).determinant() != 0},
          {"pseudoinverse_equal", fitted * minus_square(k) == s * minus_square(k) + written}};
}

/// The forcing term over a time η with A nilpotent: η φ1(ηA), and what φ1(A) alone gives.
claim_values argument_of_phi() {
  const fraction_matrix a{{0, 0}, {3, 0}};
  const rational eta = fraction(1, 2);
  const fraction_matrix solved = eta * eye(2) + eta * eta / 2 * a;
  return {{"phi_of_a_equal", eye(2) + a / 2 == solved}, {"eta_phi_of_eta_a_equal", eta * (eye(2) + eta / 2 * a) == solved}};
}

/// f(x y^T) of a polynomial against f(0) I + x bracket y^T, for y^T x not 0 and for 0, where the bracket is f′(0).
claim_values rank_one_function() {
  const std::vector<rational> a{fraction(2, 3), -1, fraction(5, 2), 4, fraction(-1, 7)};
  const auto check = [&](const fraction_vector& x, const fraction_vector& y) {
    const fraction_matrix m = x * y.transpose();
    const rational z = y.dot(x);
    fraction_matrix left = zeros(3, 3);
    fraction_matrix power = eye(3);
    rational f = 0;
    rational zn = 1;
    for (const rational& coefficient : a) {
      left += coefficient * power;
      power = power * m;
      f += coefficient * zn;
      zn *= z;
    }
    const rational bracket = z == 0 ? a[1] : (f - a[0]) / z;
    return left == a[0] * eye(3) + bracket * m;
  };
  const fraction_vector x{{1, 2, fraction(1, 3)}};
  const fraction_vector y{{fraction(1, 2), -1, 3}};
  const fraction_vector orthogonal{{2, -1, 0}};
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
          {"inner_product_is_0", x.dot(orthogonal) == 0},
          {"series_of_the_inverse_diverges_at_2", diverges}};
}

/// Both sides of e^(ηA) and of the forcing term, A = −k k^T, with the exponential cut after the same power on both sides.
claim_values exponential_of_the_key() {
  const fraction_vector k = sample_vector(3, 17);
  const fraction_vector v = sample_vector(2, 18);
  const rational n = k.squaredNorm();
  const rational eta = fraction(2, 5);
  const fraction_matrix a = minus_square(k);
  const fraction_matrix written = v * k.transpose();
  fraction_matrix exponential = eye(3);
  fraction_matrix forcing = eta * written;
  fraction_matrix power = eye(3);
  rational scalar = 1;        // Σ (−ηn)^m / m!
  rational scalar_phi = eta;  // Σ η^(m+1) (−n)^m / (m+1)!
  rational term = 1;
  rational minus_n = 1;
  for (long m = 1; m <= 8; ++m) {
    term *= eta / m;
    power = power * a;
    minus_n *= -n;
    exponential += term * power;
    forcing += term * eta / (m + 1) * (written * power);
    scalar += term * minus_n;
    scalar_phi += term * eta / (m + 1) * minus_n;
  }
  return {{"exponential_equal", exponential == transition(k, (1 - scalar) / n)},
          {"forcing_equal", forcing == scalar_phi * written}};
}

/// E for e^−x: the EFLA step, DeltaNet with the coefficient (1 − E)/‖k‖², and DeltaNet on the unit key.
claim_values efla_forms() {
  const rational e = fraction(2, 9);
  const rational length = fraction(7, 3);
  const fraction_vector k = length * unit;
  const rational coefficient = (1 - e) / k.squaredNorm();
  const fraction_matrix s = sample_matrix(2, 3, 19);
  const fraction_vector v = sample_vector(2, 21);
  const fraction_matrix printed = s * (eye(3) - coefficient * k * k.transpose()) + coefficient * v * k.transpose();
  const double eta = 1.0 / 3, squared = 49.0 / 9;
  return {{"printed_over_exact_rule", -std::expm1(-eta * squared) / squared / effective_step(exact_flow{}, eta, squared)},
          {"delta_step_equal", printed == delta_step(s, k, v, coefficient)},
          {"transition_is_of_the_unit_key", transition(k, coefficient) == transition(unit, 1 - e)},
          {"unit_key_same_value_equal", printed == delta_step(s, unit, v, 1 - e)},
          {"unit_key_value_over_length_equal", printed == delta_step(s, unit, v / length, 1 - e)}};
}

/// A key of zeros: the coefficient as printed, what the exact rule makes of it, and a step with it.
claim_values key_of_zeros() {
  using number = rounded<fp64>;
  const number eta(1);
  const number none(0);
  const double printed = ((number(1) - exp(-(eta * none))) / none).value();
  const fraction_matrix s = sample_matrix(2, 3, 19);
  const fraction_vector zero = 0 * unit;
  return {{"printed_is_a_number", !std::isnan(printed)},
          {"exact_rule_over_eta", (effective_step(exact_flow{}, eta, none) / eta).value()},
          {"step_leaves_the_state", delta_step(s, zero, sample_vector(2, 21), fraction(3, 11)) == s}};
}

/// Two keys of one direction, E = e^−x of each: the written terms differ.
claim_values length_matters() {
  const fraction_vector v{{1, 2}};
  const auto written = [&](const rational& length, const rational& e) -> fraction_matrix {
    return (1 - e) / (length * length) * v * (length * unit).transpose();
  };
  return {{"equal", written(1, fraction(1, 2)) == written(2, fraction(1, 16))}};  // e^−x and (e^−x)^4
}

/// Values that are the keys, of lengths 1 and 2 in three directions: the squared error of the best state, read with raw keys and
/// with unit keys. The normal equations of six pairs.
claim_values length_carried() {
  fraction_matrix raw(6, 3), normalised(6, 3);
  for (Eigen::Index i = 0; i < 3; ++i) {
    for (const Eigen::Index length : {1, 2}) {
      raw.row(2 * i + length - 1) = rational(length) * eye(3).row(i);
      normalised.row(2 * i + length - 1) = eye(3).row(i);
    }
  }
  const auto least_error = [&](const fraction_matrix& keys) {
    const fraction_matrix best = (keys.transpose() * keys).inverse() * keys.transpose() * raw;
    return text_of((keys * best - raw).squaredNorm());
  };
  return {{"least_error_of_raw_keys", least_error(raw)}, {"least_error_of_unit_keys", least_error(normalised)}};
}

/// R of the rules at x = 3, where Euler explodes.
claim_values order_or_stability() {
  const rational x = 3;
  const auto size = [&](auto rule) { return approximate(abs(decltype(rule)::stability(x))); };
  return {{"euler_order_1", size(euler{})}, {"implicit_order_1", size(implicit_euler{})},
          {"rk2_order_2", size(rk2{})},     {"crank_nicolson_order_2", size(crank_nicolson{})},
          {"rk3_order_3", size(rk3{})},     {"rk4_order_4", size(rk4{})}};
}

/// |R| of Euler at x = 1.9 and of RK4 at 2.8, and |R − e^−x|.
claim_values inaccurate_yet_stable() {
  claim_values out;
  const auto put_at = [&out](const std::string& rule, const std::string& at, const rational& r, double x) {
    out[rule + "_size_at_" + at] = approximate(abs(r));
    out[rule + "_error_at_" + at] = std::abs(approximate(r) - exp(rounded<fp64>::from_exact(-x)).value());
    out[rule + "_error_at_" + at + "_radius"] = 1e-15;
  };
  put_at("euler", "1.9", euler::stability(fraction(19, 10)), 1.9);
  put_at("rk4", "2.8", rk4::stability(fraction(28, 10)), 2.8);
  return out;
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
  const fraction_matrix a = minus_square(k);
  bool below = true;
  for (unsigned i = 0; i < 50; ++i) {
    const fraction_vector z = sample_vector(3, 100 + i);
    below = below && z.dot(a * z) <= 0;
  }
  const fraction_vector across{{-k[1], k[0], 0}};
  // A short key makes the state that fits it long: v k^T / ‖k‖² has norm ‖v‖ / ‖k‖.
  const fraction_vector tiny = unit / 1000;
  const fraction_matrix fixed = fraction_vector{{1, 0}} * tiny.transpose() / tiny.squaredNorm();
  return {{"never_above_0", below},
          {"zero_across_the_key", (a * across).isZero(0)},
          {"plus_k_kt_grows", k.dot(-a * k) > 0},  // the same equation, + k k^T
          {"is_fixed", (fixed * minus_square(tiny) + fraction_vector{{1, 0}} * tiny.transpose()).isZero(0)},
          {"squared_norm_of_the_fixed_state_key_1e-3", approximate(fixed.squaredNorm())}};
}

/// x E / (1 + (b/a) x (E − 1)) for a = b = 1: the exactly discretised map, E = e^h a free number above 1.
rational exact_map(const rational& x, const rational& e) { return x * e / (1 + x * (e - 1)); }

/// The exact map from −1, a = b = 1, around E = 2, where its denominator 2 − E is 0; and from 2, above the equilibrium.
claim_values exact_map_elsewhere() {
  bool falls = true;  // from 2 towards 1, never below it
  for (long exponent = 1; exponent <= 20; ++exponent) {
    const rational x = exact_map(2, rational(1L << exponent));
    falls = falls && x > 1 && x < exact_map(2, fraction(1L << exponent, 2));
  }
  return {{"from_minus_1_just_before", approximate(exact_map(-1, fraction(1999, 1000)))},
          {"from_minus_1_just_after", approximate(exact_map(-1, fraction(2001, 1000)))},
          {"falls_from_above", falls}};
}

}  // namespace

std::span<const claim_check> flow_checks() {
  static constexpr auto all =
      std::to_array<claim_check>({{"euler_step", exactly, euler_step},
                                  {"nilpotent_solution", exactly, nilpotent_solution},
                                  {"time_between_tokens", exactly, time_between_tokens},
                                  {"printed_start", exactly, printed_start},
                                  {"exact_against_euler", claim_method::enclosure, exact_against_euler},
                                  {"turning_key", claim_method::measurement, turning_key},
                                  {"shifted_variable", exactly, shifted_variable},
                                  {"argument_of_phi", exactly, argument_of_phi},
                                  {"rank_one_function", exactly, rank_one_function},
                                  {"exponential_of_the_key", exactly, exponential_of_the_key},
                                  {"efla_forms", exactly, efla_forms},
                                  {"key_of_zeros", exactly, key_of_zeros},
                                  {"length_matters", exactly, length_matters},
                                  {"order_or_stability", exactly, order_or_stability},
                                  {"inaccurate_yet_stable", claim_method::enclosure, inaccurate_yet_stable},
                                  {"length_carried", exactly, length_carried},
                                  {"printed_coefficient", exactly, printed_coefficient},
                                  {"semidefinite", exactly, semidefinite},
                                  {"exact_map_elsewhere", exactly, exact_map_elsewhere}});
  return all;
}

}  // namespace deltaproof::claim_detail
