// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
//
// Claims about the differential equation, its exact solution (EFLA) and what follows from it. e^−x is no fraction: where an
// identity must hold for any value of it, a free fraction E in (0, 1) stands for it; matrix exponentials are nilpotent or
// truncated alike on both sides.

#include <algorithm>
#include <cmath>

#include "claims/parts.hpp"
#include "deltaproof/number/elementary.hpp"
#include "deltaproof/number/rounded.hpp"
#include "deltaproof/rule/rules.hpp"

namespace deltaproof::claim_detail {
namespace {

using kind = claim_kind;
using verdict = claim_verdict;

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
  return {{"forced_solves", solves(forced, b, a)},
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

/// |R| of the exact step and of Euler's at step lengths from 1/16 to 25.
claim_values exact_against_euler() {
  const auto of_exact = [](long sixteenths) { return std::exp(-static_cast<double>(sixteenths) / 16); };
  const auto of_euler = [](long sixteenths) { return approximate(abs(euler::stability(fraction(sixteenths, 16)))); };
  double largest = 0;
  bool larger_for_short_steps = true;
  for (long i = 1; i <= 400; ++i) {
    largest = std::max(largest, of_exact(i));
    if (i <= 20) larger_for_short_steps = larger_for_short_steps && of_exact(i) > of_euler(i);
  }
  return {{"largest_exact", largest},
          {"euler_at_3", of_euler(48)},
          {"euler_at_1", of_euler(16)},
          {"exact_at_1", of_exact(16)},
          {"exact_at_1.278", std::exp(-1.278)},
          {"exact_at_1.279", std::exp(-1.279)},
          {"exact_is_larger_up_to_x_1.25", larger_for_short_steps}};
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
bool printed_fails_at_zero(const claim_values& v) {
  return !truth_at(v, "printed_is_a_number") && number_at(v, "exact_rule_over_eta") == 1 && truth_at(v, "step_leaves_the_state");
}
constexpr std::string_view at_zero = "a key of zeros: 0/0 in double, the limit in the library's rule, and the step in fractions";

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

claim_table flow_claims() {
  return {
      {"delta-rule-is-euler",
       blog,
       kind::identity,
       verdict::holds,
       "The delta rule is one Euler step, of length η, of dS/dt = −S k kᵀ + v kᵀ.",
       "k and v held fixed over the step",
       {exact_check("S + η dS/dt against the step, in fractions", euler_step, is_equal)}},
      {"interval-of-a-step",
       blog,
       kind::definition,
       verdict::conditional,
       "Token t covers the time from t − η to t, and the state at t − η is the one after token t − 1.",
       "the two agree for η = 1 only; below it the state must be taken to rest from t − 1 to t − η, or time to run by η per "
       "token; for η > 1, which negative eigenvalues use, intervals overlap and only the second reading is left",
       {theorem("ode.exact_flow.flow_step_composition"),
        exact_check("one frozen equation solved in fractions over the step of length 1/2, twice that, and the unit of time",
                    time_between_tokens,
                    [](const claim_values& v) { return !truth_at(v, "eta_one_half_equal") && truth_at(v, "eta_one_equal"); }),
        finding_of("hippo", "intervals-assume-one",
                   "distance of the last state under three other readings, η all 1 and η uniform in (0, 1)",
                   [](const claim_values& v) {
                     return truth_at(v, "only_at_one") && number_at(v, "largest_at_one") < 1e-12 &&
                            number_at(v, "running") > 0.05;
                   }),
        finding_of("hippo", "clock-reading", "share of intervals that overlap the one before, η uniform in (0, 2)",
                   [](const claim_values& v) { return number_at(v, "overlapping_share") > 0.3; })}},
      {"start-of-a-step-misprinted",
       blog_zh,
       kind::misprint,
       verdict::misprint,
       "The Chinese post renames the state at t + η to that of token t − 1.",
       "t − η is meant, as its own formula and both translations have it: the printed sign would invert every transition",
       {exact_check("a step in fractions from the solution a time η before, and η after", printed_start,
                    [](const claim_values& v) {
                      return truth_at(v, "from_t_minus_eta_equal") && !truth_at(v, "from_t_plus_eta_equal") &&
                             truth_at(v, "back_from_t_plus_eta_equal");
                    })}},
      {"frozen-coefficients",
       blog,
       kind::definition,
       verdict::conditional,
       "k and v are constant over a step, so the equation is linear with constant coefficients and its solution free of error.",
       "an assumption, not a finding: there is no path of keys between two tokens to compare with. Free of error as a solution "
       "of that equation; against a key that turns, and is frozen at the end of each step, its order is 1, as Euler's",
       {theorem("ode.exact_flow.exact_flow_solves"), theorem("ode.exact_flow.exact_flow_unique"),
        finding_of("discretisation", "exact-for-frozen-keys",
                   "order at a fixed time for a key that turns steadily, frozen at the end of each step",
                   [](const claim_values& v) {
                     return number_at(v, "order_frozen_at_end") > 0.9 && number_at(v, "order_frozen_at_end") < 1.1;
                   })}},
      {"general-solution",
       blog,
       kind::identity,
       verdict::conditional,
       "dS/dt = S A + B has the solution S₀ e^{tA} + B A⁻¹ (e^{tA} − I).",
       "A invertible, or A⁻¹(e^{tA} − I) read as its power series t φ₁(tA)",
       {exact_check("coefficients of the power series against the equation, A nilpotent of order 4 and so singular, in fractions",
                    nilpotent_solution,
                    [](const claim_values& v) { return truth_at(v, "forced_solves") && truth_at(v, "starts_at_s0"); }),
        finding_of("hippo", "exact-needs-no-inverse",
                   "e^(tA) and φ₁(tA) in double against enclosures, for HiPPO-LegS, −k kᵀ, nilpotent, singular and defective A",
                   [](const claim_values& v) { return truth_at(v, "accurate") && number_at(v, "worst_phi") < 100; })}},
      {"homogeneous-solution",
       blog,
       kind::identity,
       verdict::holds,
       "dS/dt = S A has the solution S₀ e^{tA}.",
       "any A",
       {exact_check("the same with B = 0", nilpotent_solution,
                    [](const claim_values& v) { return truth_at(v, "unforced_solves"); })}},
      {"shifted-variable",
       blog,
       kind::identity,
       verdict::conditional,
       "S + B A⁻¹ obeys the equation without B.",
       "an invertible A; −k kᵀ has no inverse beyond one channel, so for the delta rule this line proves nothing",
       {exact_check("an invertible A in fractions; −k kᵀ for a unit key in three channels", shifted_variable,
                    [](const claim_values& v) { return truth_at(v, "equal") && !truth_at(v, "minus_k_kt_has_an_inverse"); }),
        finding_of("hippo", "inverse-formula",
                   "elimination on −k kᵀ, nilpotent and singular A, 16 channels: refused or wrong, and HiPPO-LegS at a short "
                   "step against a step of 1",
                   [](const claim_values& v) {
                     return number_at(v, "refused") + number_at(v, "unnoticed") == 3 &&
                            number_at(v, "legs_smallest_step") > 10 * number_at(v, "legs_step_1");
                   })}},
      {"no-inverse-needed",
       blog,
       kind::conclusion,
       verdict::holds,
       "In the solution of dS/dt = S A + B the matrix A need not be invertible: the last term is a power series.",
       "any A",
       {theorem("ode.exact_flow.exact_flow_solves"), exact_check("a nilpotent A of order 4", nilpotent_solution,
                                                                 [](const claim_values& v) {
                                                                   return truth_at(v, "forced_solves") &&
                                                                          number_at(v, "order_of_nilpotency") == 4;
                                                                 })}},
      {"argument-of-phi",
       blog,
       kind::misprint,
       verdict::misprint,
       "The series of (eˣ − 1)/x is to be taken at x = A.",
       "at x = ηA, and multiplied by η: only then does it give A⁻¹(e^{ηA} − I)",
       {exact_check(
           "both against the solution for a nilpotent A and η = 1/2", argument_of_phi,
           [](const claim_values& v) { return !truth_at(v, "phi_of_a_equal") && truth_at(v, "eta_phi_of_eta_a_equal"); })}},
      {"function-of-rank-one",
       blog,
       kind::identity,
       verdict::conditional,
       "f(x yᵀ) = f(0) I + x [(f(yᵀx) − f(0)) / yᵀx] yᵀ.",
       "f a power series that converges at yᵀx; at yᵀx = 0 the bracket as printed is 0/0 and means f′(0). Beyond convergence the "
       "closed form still has a value and the series has none: 1/(1 − z) at yᵀx = 2",
       {theorem("algebra.rank_one.outer_power"),
        exact_check("a polynomial of degree 4, with yᵀx not 0 and with 0; the series of 1/(1 − z) at 2", rank_one_function,
                    [](const claim_values& v) {
                      return truth_at(v, "equal") && truth_at(v, "inner_product_0_equal") && truth_at(v, "inner_product_is_0") &&
                             truth_at(v, "series_of_the_inverse_diverges_at_2");
                    }),
        finding_of("hippo", "rank-one-formula", "f = exp and φ₁ against their series over 512 bits, with yᵀx = 0 among the cases",
                   [](const claim_values& v) { return truth_at(v, "holds") && number_at(v, "with_zero_product") > 0; })}},
      {"exponential-of-minus-k-kt",
       blog,
       kind::identity,
       verdict::conditional,
       "e^{−η k kᵀ} = I − (1 − e^{−η‖k‖²})/‖k‖² k kᵀ.",
       "k not 0; at k = 0 the coefficient as printed is 0/0 and means η",
       {theorem("ode.exact_flow.flow_step_eigenvalue"),
        exact_check("both sides with the exponential cut after the same power, in fractions", exponential_of_the_key,
                    [](const claim_values& v) { return truth_at(v, "exponential_equal"); }),
        exact_check(at_zero, key_of_zeros, printed_fails_at_zero)}},
      {"forcing-term-of-efla",
       blog,
       kind::identity,
       verdict::conditional,
       "With A = −k kᵀ and B = v kᵀ the term B A⁻¹(e^{ηA} − I) is (1 − e^{−η‖k‖²})/‖k‖² v kᵀ.",
       "k not 0; at k = 0 the coefficient as printed is 0/0, and the term 0",
       {theorem("ode.exact_flow.exact_flow_solves"),
        exact_check("both sides with the series cut after the same power, in fractions", exponential_of_the_key,
                    [](const claim_values& v) { return truth_at(v, "forcing_equal"); }),
        exact_check(at_zero, key_of_zeros, printed_fails_at_zero)}},
      {"efla-update",
       blog,
       kind::identity,
       verdict::conditional,
       "EFLA's step: S (I − c k kᵀ) + c v kᵀ with c = (1 − e^{−η‖k‖²})/‖k‖².",
       "the only solution of the frozen equation, in exact arithmetic, for k not 0; a key of zeros, which padding gives, makes c "
       "0/0 where η is meant",
       {theorem("ode.exact_flow.exact_flow_solves"), theorem("ode.exact_flow.exact_flow_unique"),
        theorem("ode.exact_flow.exact_flow_start"), exact_check(at_zero, key_of_zeros, printed_fails_at_zero)}},
      {"efla-coefficient-as-printed",
       blog,
       kind::algorithm,
       verdict::fails_in_format,
       "EFLA's coefficient is (1 − e^{−x})/‖k‖².",
       "evaluated as printed it is exactly 0 for x ≤ u/2 and for no larger x in bf16, fp16, fp32 and fp64, nearly twice too "
       "large "
       "just above, and in fp32 wrong by 1.3 % at x = 10⁻⁶; at k = 0 it is not a number: use expm1, and η at 0",
       {theorem("float.alpha.one_minus_exp_condition"),
        exact_check("1 − e^−x with each operation correctly rounded, at x = u/2, the next number, and 10⁻⁶, against expm1",
                    printed_coefficient,
                    [](const claim_values& v) {
                      return truth_at(v, "bf16_vanishes") && truth_at(v, "fp16_vanishes") && truth_at(v, "fp32_vanishes") &&
                             truth_at(v, "fp64_vanishes") && std::abs(number_at(v, "fp32_relative_error_at_1e-6")) > 0.01;
                    }),
        exact_check(at_zero, key_of_zeros, printed_fails_at_zero),
        finding_of("efla", "dead-zone", "the largest x at which the printed form is 0, by bisection over the numbers of a format",
                   [](const claim_values& v) { return truth_at(v, "as_predicted") && number_at(v, "bf16") == 0x1p-9; }),
        finding_of("efla", "naive-error-exhaustive",
                   "every bf16 and fp16 number from 10⁻¹² to 10³: just above the dead zone, and for x in [0.1, 1)",
                   [](const claim_values& v) {
                     return truth_at(v, "doubles_above_dead_zone") && number_at(v, "bf16_worst_in_tenths") > 0.01;
                   }),
        finding_of("efla", "expm1-error-exhaustive", "the same numbers through expm1: never 0, and the largest error in u",
                   [](const claim_values& v) {
                     return number_at(v, "zeros") == 0 && number_at(v, "bf16_worst_in_u") < 2 &&
                            number_at(v, "fp16_worst_in_u") < 2;
                   })}},
      {"efla-is-another-step-length",
       blog,
       kind::identity,
       verdict::conditional,
       "EFLA is DeltaNet with η replaced by (1 − e^{−η‖k‖²})/‖k‖², and keeps its form.",
       "any state and value, k not 0; at k = 0 the replacement is 0/0 and means η",
       {exact_check("both steps in fractions, a free fraction for the exponential", efla_forms,
                    [](const claim_values& v) { return truth_at(v, "delta_step_equal"); }),
        exact_check(at_zero, key_of_zeros, printed_fails_at_zero)}},
      {"efla-normalises-keys",
       blog,
       kind::identity,
       verdict::conditional,
       "Multiplied by k kᵀ, the ‖k‖² in EFLA's denominator is exactly the L2 normalisation of the key.",
       "of the transition, k not 0: it is that of k/‖k‖ with strength 1 − e^{−η‖k‖²}, in which the length remains. The whole step "
       "is not that of the normalised key",
       {exact_check("transition of a key of length 7/3 against that of the unit key, a free fraction for the exponential",
                    efla_forms,
                    [](const claim_values& v) {
                      return truth_at(v, "transition_is_of_the_unit_key") && !truth_at(v, "unit_key_same_value_equal");
                    })}},
      {"efla-explains-normalisation",
       blog,
       kind::conclusion,
       verdict::conditional,
       "The exact solution can be seen as an explanation of the L2 normalisation of DeltaNet's keys.",
       "of the direction in the transition, yes. It does not lead to the step with a normalised key: what is written is v/‖k‖ at "
       "the unit key, and the strength depends on the length, which L2 normalisation discards",
       {exact_check("transition and step of a key of length 7/3 against those of the unit key", efla_forms,
                    [](const claim_values& v) {
                      return truth_at(v, "transition_is_of_the_unit_key") && truth_at(v, "unit_key_value_over_length_equal") &&
                             !truth_at(v, "unit_key_same_value_equal");
                    }),
        exact_check("the written terms for lengths 1 and 2", length_matters,
                    [](const claim_values& v) { return !truth_at(v, "equal"); })}},
      {"efla-normalises-and-keeps-the-length",
       blog,
       kind::contradiction,
       verdict::contradiction,
       "EFLA is said to be exactly the L2 normalisation of the key, and to keep the length that L2 normalisation discards.",
       "the direction of the transition is normalised; the length stays in the strength 1 − e^{−η‖k‖²} and in the value v/‖k‖. "
       "Were it the normalisation, keys of one direction would write the same",
       {exact_check("the step of a key of length 7/3 against that of the unit key with the same value", efla_forms,
                    [](const claim_values& v) {
                      return truth_at(v, "transition_is_of_the_unit_key") && !truth_at(v, "unit_key_same_value_equal");
                    }),
        exact_check("the written terms for lengths 1 and 2", length_matters,
                    [](const claim_values& v) { return !truth_at(v, "equal"); })}},
      {"efla-depends-on-length",
       blog,
       kind::conclusion,
       verdict::holds,
       "What EFLA writes depends on the length of the key: a degree of freedom that normalised DeltaNet lacks.",
       "same direction, same η",
       {exact_check("the written terms for lengths 1 and 2", length_matters,
                    [](const claim_values& v) { return !truth_at(v, "equal"); })}},
      {"efla-has-a-higher-ceiling",
       blog,
       kind::conclusion,
       verdict::conditional,
       "The freedom that EFLA keeps, the length of the key, raises the theoretical limit.",
       "not of the steps themselves: each EFLA step is the DeltaNet step on k/‖k‖ and v/‖k‖ with strength 1 − e^{−x} in [0, 1), "
       "which a sigmoid gate and a free value reach; strength 1, an exact overwrite, it does not reach, and where values ignore "
       "the length of keys that length is noise. Of what projections learn nothing is claimed",
       {exact_check("an EFLA step against that DeltaNet step, in fractions", efla_forms,
                    [](const claim_values& v) { return truth_at(v, "unit_key_value_over_length_equal"); }),
        finding_of(
            "efla", "efla-is-deltanet", "whole recurrences in rationals, EFLA against that DeltaNet",
            [](const claim_values& v) { return number_at(v, "equal") == number_at(v, "cases") && number_at(v, "cases") >= 10; }),
        finding_of("efla", "l2-caps-strength", "the part of a new value that EFLA writes with normalised keys and β below 1",
                   [](const claim_values& v) { return within(number_at(v, "below_one"), 0.632121, 1e-5); }),
        finding_of("recall", "spread-norms",
                   "identity values on raw keys of spread norms: errors of EFLA and of DeltaNet with normalised keys",
                   [](const claim_values& v) { return number_at(v, "normalised") < 1e-6 && number_at(v, "efla") > 0.1; })}},
      {"explosion-is-low-accuracy",
       blog,
       kind::conclusion,
       verdict::refuted,
       "Numerical explosion comes from a discretisation of too little accuracy.",
       "it is stability, not order: at η‖k‖² = 3 implicit Euler (order 1) and Crank–Nicolson (2) shrink, RK2, RK3 and RK4 "
       "(orders 2 to 4) explode with Euler. Among explicit methods an order more moves the limit by 0.37, and removes it never. "
       "Read as precision of numbers, as the "
       "translations have it, it is refuted too: Euler explodes in fractions",
       {theorem("ode.stability.implicit_euler_range"), theorem("ode.stability.rk4_limit"),
        exact_check("|R(3)| of six rules in fractions", order_or_stability,
                    [](const claim_values& v) {
                      return number_at(v, "implicit_order_1") < 1 && number_at(v, "crank_nicolson_order_2") < 1 &&
                             number_at(v, "euler_order_1") > 1 && number_at(v, "rk2_order_2") > 1 &&
                             number_at(v, "rk3_order_3") > 1 && number_at(v, "rk4_order_4") > 1;
                    }),
        finding_of("discretisation", "order-or-stability",
                   "pairs of equal order with different fates, and an explicit method of order 32 at x = 64",
                   [](const claim_values& v) {
                     return truth_at(v, "stability_decides") && number_at(v, "taylor_32_growth") > 0 &&
                            number_at(v, "implicit_growth") < 0;
                   }),
        finding_of("discretisation", "order-buys-little", "the limit of stability of Taylor polynomials, by degree",
                   [](const claim_values& v) {
                     return within(number_at(v, "gain_per_order"), 0.37, 0.02) &&
                            number_at(v, "limit_of_largest_order") < number_at(v, "largest_order");
                   })}},
      {"efla-eigenvalues-unit-interval",
       blog,
       kind::bound,
       verdict::holds,
       "EFLA's eigenvalues lie in (0, 1] of themselves.",
       "exact arithmetic, η ≥ 0, keys of any length",
       {theorem("ode.exact_flow.flow_eigenvalue_range"), theorem("ode.stability.exact_range")}},
      {"efla-eigenvalues-in-formats",
       blog,
       kind::bound,
       verdict::fails_in_format,
       "EFLA's eigenvalues lie in (0, 1] as it is computed.",
       "bf16: where ‖k‖² and every operation round, the eigenvalue of the exact rule falls below 0 from x = 4.707 on by up to "
       "2.86 u; never below −1. With the coefficient as printed it is exactly 1, nothing written, up to x = u/2",
       {theorem("float.gain.gain_robust"),
        finding_of("eigenvalues", "bf16-rules-outside-zero-one",
                   "steps that leave (0, 1], of all significands of β and ‖k‖² in bf16",
                   [](const claim_values& v) {
                     return number_at(v, "steps_negative") > 0 && within(number_at(v, "exact_leaves_from"), 4.707, 5e-4) &&
                            within(number_at(v, "exact_leaves_by_u"), 2.86, 0.01);
                   }),
        finding_of("efla", "eigenvalue-ends",
                   "pairs of bf16 significands of β and ‖k‖²: eigenvalues above 1, exactly 1, and the lowest",
                   [](const claim_values& v) {
                     return number_at(v, "above_one") == 0 && number_at(v, "naive_exactly_one") > 0 &&
                            number_at(v, "expm1_exactly_one") == 0 && number_at(v, "lowest_in_u") > 0;
                   })}},
      {"exact-step-is-more-stable",
       blog,
       kind::conclusion,
       verdict::conditional,
       "The recursion from the exact solution is by nature more stable than DeltaNet's.",
       "it has no limit of η‖k‖² where DeltaNet has 2: more stable for keys of any length. With normalised keys and η ≤ 1 both "
       "are stable, and up to η‖k‖² = 1.278 DeltaNet damps the more: at 1 to 0 where EFLA keeps 0.368",
       {theorem("ode.stability.exact_range"), theorem("ode.stability.euler_limit"),
        certified("|R| of both at 400 step lengths from 1/16 to 25, and where they cross", exact_against_euler,
                  [](const claim_values& v) {
                    return number_at(v, "largest_exact") < 1 && number_at(v, "euler_at_3") == 2 &&
                           number_at(v, "euler_at_1") == 0 && within(number_at(v, "exact_at_1"), 0.367879, 1e-5) &&
                           truth_at(v, "exact_is_larger_up_to_x_1.25") && number_at(v, "exact_at_1.278") > 1.278 - 1 &&
                           number_at(v, "exact_at_1.279") < 1.279 - 1;
                  })}},
      {"flow-is-stable",
       blog,
       kind::conclusion,
       verdict::conditional,
       "−k kᵀ is negative semi-definite, so the solution is stable.",
       "stable, not attracting: what is orthogonal to the key stays. With values the state that fits a frozen pair is v kᵀ/‖k‖², "
       "of norm ‖v‖/‖k‖: bounded, but large for a short key; and keys chosen against the state let it grow as √T. That time is "
       "continuous has no part in it: dS/dt = S k kᵀ is as continuous and grows",
       {theorem("algebra.non_expansive.run_non_expansive"),
        exact_check("50 vectors, one across the key, and the state that fits a key of length 1/1000", semidefinite,
                    [](const claim_values& v) {
                      return truth_at(v, "never_above_0") && truth_at(v, "zero_across_the_key") &&
                             truth_at(v, "plus_k_kt_grows") &&
                             number_at(v, "squared_norm_of_the_fixed_state_key_1e-3") == 1e6;
                    }),
        finding_of(
            "discretisation", "forced-all-rules",
            "the norm that EFLA at x = 1 is driven to by values of length 1 and keys chosen against the state, 2000 tokens",
            [](const claim_values& v) { return number_at(v, "exact_at_1") > 10; })}},
  };
}

}  // namespace deltaproof::claim_detail
