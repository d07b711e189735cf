// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
//
// The study `eigenvalues`: what rounding does to the one eigenvalue of I - b k k^T that a rule controls. The numbers
// come from studies/eigenvalues/; here they are put into words, chosen by their values.

#include <algorithm>
#include <cmath>
#include <limits>

#include "deltaproof/rule/rules.hpp"
#include "studies/eigenvalues/parts.hpp"
#include "studies/eigenvalues/views.hpp"

namespace deltaproof {
namespace {

using namespace detail::eigenvalues;

struct sizes {
  std::size_t rule_samples;
  std::size_t keys;
  std::size_t transition_keys;
};
constexpr sizes quick_sizes{200, 10'000, 100};
constexpr sizes full_sizes{5'000, 100'000, 1'000};

std::string percent(std::uint64_t part, std::uint64_t whole) {
  return number(100.0 * static_cast<double>(part) / static_cast<double>(whole), 3) + " %";
}

double excess_in_units(const norm_result& r) { return to_double(r.largest - 1) / unit_roundoff(format_named(r.format_name)); }

template <class Rows, class Value>
auto largest_of(const Rows& rows, Value value) {
  return *std::max_element(rows.begin(), rows.end(), [&](const auto& a, const auto& b) { return value(a) < value(b); });
}

template <class Rows, class Keep>
auto only(const Rows& rows, Keep keep) {
  Rows result;
  std::copy_if(rows.begin(), rows.end(), std::back_inserter(result), keep);
  return result;
}

std::uint64_t total(const auto& rows, auto value) {
  std::uint64_t sum = 0;
  for (const auto& r : rows) sum += value(r);
  return sum;
}

/// "`exact` from x = 5.16 by up to 2.28 u, ..." for the rules that leave.
std::string leavers(const std::vector<rule_result>& rows, bool decay) {
  std::string text;
  for (const rule_result& r : rows) {
    const auto& first = decay ? r.first_decay : r.first_unit;
    if (!first) continue;
    text += (text.empty() ? "`" : ", `") + r.rule + "` from x = " + number(*first, 4) + " by up to " +
            number(decay ? r.worst_decay : r.worst_unit, 3) + " u";
  }
  return text;
}

void rule_findings(const rule_survey& survey, const run_options& options, report& into) {
  const auto steps = [](const rule_result& r) { return r.cases; };
  const auto eulers = only(survey.results, [](const rule_result& r) { return r.rule == euler::name; });
  const double euler_error = largest_of(eulers, [](const rule_result& r) { return r.worst_error; }).worst_error;
  into.findings.push_back(
      {"euler-adds-nothing",
       euler_error == 0 ? "`euler` forms its step without rounding, so λ = R(x) = 1 − β|k|² exactly for the k and β it is given: "
                          "all of its error is in the key."
                        : "`euler` misses R(x) by up to " + number(euler_error, 3) + " u although its step needs no rounding.",
       evidence::proved("algebra.rank_one.step_eigenvector"),
       {{"largest_error_in_u", euler_error}, {"steps_checked", total(eulers, steps)}},
       "φ = 1, so b = β; no operation rounds. Every step looked at agrees."});

  const auto once = only(survey.results, [](const rule_result& r) { return r.place == rounding_place::step_only; });
  const std::uint64_t beyond = total(once, [](const rule_result& r) { return r.beyond_bound; });
  const std::uint64_t once_steps = total(once, steps);
  into.findings.push_back(
      {"one-rounding-of-the-step",
       "If only b = β φ(x) is rounded, |λ − R(x)| ≤ u(1 − R(x)) + |k|² h/2, h the smallest subnormal; " +
           (beyond == 0 ? "none of " + count(once_steps) + " steps contradicts it."
                        : count(beyond) + " of " + count(once_steps) +
                              " steps contradict it, so the arithmetic of this run is at fault."),
       evidence::proved("float.formats.standard_model"),
       {{"steps_checked", once_steps}, {"steps_beyond", beyond}},
       "Rounding to nearest moves b by at most ub, below the normal range by at most h/2, and 1 − λ = b|k|²."});

  const auto bf16_rows = only(
      survey.results, [](const rule_result& r) { return r.format_name == name_of(bf16) && r.place == rounding_place::norm_too; });
  const std::string unit_leavers = leavers(bf16_rows, false);
  const std::string decay_leavers = leavers(bf16_rows, true);
  const auto unit_worst = largest_of(bf16_rows, [](const rule_result& r) { return r.worst_unit; });
  const auto decay_worst = largest_of(bf16_rows, [](const rule_result& r) { return r.worst_decay; });
  into.findings.push_back(
      {"bf16-rules-outside-unit-interval",
       unit_leavers.empty() ? "In bf16 no rule leaves [−1, 1] at any x where |R(x)| ≤ 1."
                            : "In bf16, with |k|² and every operation rounded, λ leaves [−1, 1] although |R(x)| ≤ 1: " +
                                  unit_leavers + ". The other rules never do.",
       evidence::exhaustive(total(bf16_rows, steps)),
       {{"worst_rule", unit_worst.rule},
        {"worst_in_u", unit_worst.worst_unit},
        {"beta", unit_worst.worst_beta},
        {"rounded_norm", unit_worst.worst_n},
        {"lambda", unit_worst.worst_lambda}},
       "All pairs of significands of β and the rounded |k|², x from 2⁻¹⁰ to 2¹², the exact |k|² at either end of the rounding "
       "interval; λ is decided in rationals. Where λ leaves, R lies within a few u of ±1."});
  const rule_result exact_row = only(bf16_rows, [](const rule_result& r) { return r.rule == exact_flow::name; }).at(0);
  const std::uint64_t zero_or_less = total(bf16_rows, [](const rule_result& r) { return r.outside_decay; });
  into.findings.push_back(
      {"bf16-rules-outside-zero-one",
       decay_leavers.empty() ? "In bf16 the rules that promise 0 < λ ≤ 1 keep it."
                             : "In bf16, with |k|² and every operation rounded, the promise 0 < λ ≤ 1 fails: " + decay_leavers +
                                   ". There R(x) lies within a few u of 0 or 1, and rounding decides on which side λ falls.",
       evidence::exhaustive(total(bf16_rows, [](const rule_result& r) { return r.promises_decay ? r.cases : 0; })),
       {{"steps_outside", zero_or_less},
        {"steps_negative", total(bf16_rows, [](const rule_result& r) { return r.negative; })},
        {"worst_rule", decay_worst.rule},
        {"worst_in_u", decay_worst.worst_decay},
        {"beta", decay_worst.worst_beta},
        {"rounded_norm", decay_worst.worst_n},
        {"lambda", decay_worst.worst_lambda},
        {"exact_leaves_from", exact_row.first_decay.value_or(std::numeric_limits<double>::quiet_NaN())},
        {"exact_leaves_by_u", exact_row.worst_decay}},
       "As above; `exact`, `implicit`, `rk2` and `rk4` promise it."});

  const auto eight = only(survey.results, [](const rule_result& r) {
    return format_named(r.format_name).storage_bits == 8 && r.place == rounding_place::norm_too;
  });
  const auto eight_unit = largest_of(eight, [](const rule_result& r) { return r.worst_unit; });
  const auto eight_decay = largest_of(eight, [](const rule_result& r) { return r.worst_decay; });
  into.findings.push_back({"eight-bit-rules",
                           "In the 8-bit formats λ gets as far as " + number(eight_unit.worst_unit, 3) + " u outside [−1, 1] (`" +
                               eight_unit.rule + "`, " + eight_unit.format_name +
                               ", λ = " + number(to_double(rational(eight_unit.worst_lambda)), 4) + ") and " +
                               number(eight_decay.worst_decay, 3) + " u outside [0, 1] (`" + eight_decay.rule + "`, " +
                               eight_decay.format_name + ").",
                           evidence::exhaustive(total(eight, steps)),
                           {{"unit_in_u", eight_unit.worst_unit},
                            {"decay_in_u", eight_decay.worst_decay},
                            {"steps_outside_unit", total(eight, [](const rule_result& r) { return r.outside_unit; })},
                            {"steps_outside_decay", total(eight, [](const rule_result& r) { return r.outside_decay; })}},
                           "All pairs of numbers with β ≤ 2, |k|² ≤ 256, x < 256, everything rounded."});

  const auto wide_rows =
      only(survey.results, [](const rule_result& r) { return !r.exhaustive && r.place == rounding_place::norm_too; });
  const auto wide_unit = largest_of(wide_rows, [](const rule_result& r) { return r.worst_unit; });
  const auto wide_decay = largest_of(wide_rows, [](const rule_result& r) { return r.worst_decay; });
  into.findings.push_back({"wider-formats-rules",
                           "In fp16, tf32, fp32 and fp64 the same rules leave by the same few u: at most " +
                               number(wide_unit.worst_unit, 3) + " u outside [−1, 1] (`" + wide_unit.rule + "`, " +
                               wide_unit.format_name + ") and " + number(wide_decay.worst_decay, 3) + " u outside [0, 1] (`" +
                               wide_decay.rule + "`, " + wide_decay.format_name + ").",
                           evidence::worst_found(total(wide_rows, steps), options.seed),
                           {{"unit_in_u", wide_unit.worst_unit}, {"decay_in_u", wide_decay.worst_decay}},
                           "Random significands of β and |k|² in every octave of x, and at each rule's stability limit; "
                           "everything rounded, λ decided in rationals."});
}

void norm_findings(const norm_survey& survey, const run_options& options, report& into) {
  const auto once = only(survey.results, [](const norm_result& r) { return r.how == normalisation::once && r.keys > 0; });
  const std::uint64_t keys = total(once, [](const norm_result& r) { return r.keys; });
  const std::uint64_t above = total(once, [](const norm_result& r) { return r.above_one; });
  const auto worst = largest_of(once, excess_in_units);
  const auto share = [](const norm_result& r) { return static_cast<double>(r.above_one) / static_cast<double>(r.keys); };
  const auto most = largest_of(once, share);
  const auto least = largest_of(once, [&](const norm_result& r) { return -share(r); });
  const double p = static_cast<double>(above) / static_cast<double>(keys);
  into.findings.push_back({"beta-two-leaves",
                           "At β = 2 a unit key rounded once to a format gives λ = 1 − 2|k|² < −1 in " + percent(above, keys) +
                               " of the keys drawn, between " + percent(least.above_one, least.keys) + " (" + least.format_name +
                               ", d = " + std::to_string(least.dim) + ") and " + percent(most.above_one, most.keys) + " (" +
                               most.format_name + ", d = " + std::to_string(most.dim) + ").",
                           evidence::sampled(keys, options.seed,
                                             "standard error of a row's share at most " +
                                                 number(0.5 / std::sqrt(static_cast<double>(survey.keys_per_dim)), 2)),
                           {{"share", p}, {"least_share", share(least)}, {"largest_share", share(most)}},
                           "|k|² > 1 decided exactly for each key; Gaussian directions, d = 16 … 256, all seven formats."});
  const std::uint64_t below_two = total(once, [](const norm_result& r) { return r.leaves_below_two; });
  into.findings.push_back(
      {"largest-norm-found",
       "The largest |k|² found is 1 + " + number(excess_in_units(worst), 3) + " u (" + worst.format_name +
           ", d = " + std::to_string(worst.dim) + "). At β = 2(1 − u), the last number before 2, " +
           (below_two == 0 ? "no key drawn leaves [−1, 1]."
                           : count(below_two) + " keys of " + count(keys) + " still leave [−1, 1]."),
       evidence::worst_found(keys, options.seed),
       {{"excess_in_u", excess_in_units(worst)}, {"squared_norm", worst.largest.str()}, {"leave_below_two", below_two}},
       "Exact sums of squares of random keys; made-up keys do worse, see `safe-beta-is-sharp`."});

  bool proved = true;
  bool sharp = true;
  std::size_t witnesses = 0;
  double least_excess = std::numeric_limits<double>::infinity();
  for (const named_format& f : formats) {
    for (const std::size_t dim : key_dims) {
      proved = proved && safe_step_is_proved(f.value, dim);
      const norm_witness w = make_witness(f.name, dim);
      sharp = sharp && w.verified && w.leaves_below_two;
      least_excess = std::min(least_excess, to_double(w.squared_norm - 1) / unit_roundoff(f.value));
      ++witnesses;
    }
  }
  const std::uint64_t at_safe = total(once, [](const norm_result& r) { return r.leaves_at_safe; });
  into.findings.push_back({"safe-beta",
                           proved && at_safe == 0 ? "β ≤ 2(1 − 2u) is safe: |λ| ≤ 1 for every unit vector of up to 256 entries "
                                                    "rounded elementwise to the format. For bf16 that is β ≤ 1.984375, "
                                                    "two numbers below 2; for fp32 β ≤ 1.9999997615814209."
                                                  : "β ≤ 2(1 − 2u) is not safe for every rounded unit vector.",
                           evidence::proved("float.key_norm.safe_step"),
                           {{"keys_checked", keys}, {"keys_that_leave", at_safe}, {"condition_holds", proved}},
                           "|k̂ᵢ| ≤ (1 + u)|kᵢ|, or |kᵢ| + h/2 below the normal range, so |k̂|² ≤ (1 + u)² + d h(2^emin + h/4); (1 "
                           "− 2u) times that is at most 1, checked in rationals for each format and d. "
                           "Flushed entries only lower |k̂|²."});
  into.findings.push_back({"safe-beta-is-sharp",
                           sharp ? "No larger β of the key's own format is safe: for every format and d there is a unit vector "
                                   "that rounds to |k|² ≥ 1 + " +
                                       number(least_excess, 3) + " u, so that 2(1 − u), the next number, gives λ < −1."
                                 : "For some format or d the constructed key does not make 2(1 − u) leave.",
                           evidence::proved("float.key_norm.safe_step_sharp"),
                           {{"keys_constructed", witnesses}, {"least_excess_in_u", least_excess}, {"all_verified", sharp}},
                           "Up to 15 entries just above the midpoint (1 + u)/4, the others equal; each rounding and β|k|² > 2 "
                           "are confirmed in rationals."});

  const auto inside = only(survey.results, [](const norm_result& r) { return r.how == normalisation::in_format && r.keys > 0; });
  const auto inside_worst = largest_of(inside, excess_in_units);
  const auto bf16_inside =
      largest_of(only(inside, [](const norm_result& r) { return r.format_name == name_of(bf16); }), excess_in_units);
  into.findings.push_back(
      {"normalised-in-the-format",
       "Normalising with every operation in the format is worse: |k|² reaches " + number(to_double(bf16_inside.largest), 4) +
           " in bf16 (d = " + std::to_string(bf16_inside.dim) + ", safe β " + number(bf16_inside.safe_beta, 5) + ") and " +
           number(to_double(inside_worst.largest), 4) + " in " + inside_worst.format_name + " (d = " +
           std::to_string(inside_worst.dim) + "), because the running sum of squares drops what is below half its last digit.",
       evidence::worst_found(total(inside, [](const norm_result& r) { return r.keys; }), options.seed),
       {{"bf16_largest", to_double(bf16_inside.largest)},
        {"bf16_safe_beta", bf16_inside.safe_beta},
        {"largest", to_double(inside_worst.largest)},
        {"largest_format", inside_worst.format_name},
        {"largest_in_u", excess_in_units(inside_worst)}},
       "Sums in order, one rounding per product, sum, root and quotient."});

  const auto of = [&](std::string_view format, normalisation how) {
    return largest_of(
        only(survey.results, [&](const norm_result& r) { return r.format_name == format && r.how == how && r.dim == 256; }),
        [](const norm_result&) { return 0; });
  };
  const norm_result direct = of("bf16", normalisation::once);
  const norm_result again = of("bf16", normalisation::inside_fp32);
  const auto fp32_rows =
      only(survey.results, [](const norm_result& r) { return r.how == normalisation::inside_fp32 && r.keys > 0; });
  into.findings.push_back(
      {"rounded-keys-average-less",
       "A key that is already in bf16, normalised in fp32 and rounded again, spreads " +
           number(again.deviation / direct.deviation, 3) + " times as wide as a unit vector rounded once at d = 256: " +
           "divided by a norm near a power of two, numbers of few significands round back the same way, and long keys do not "
           "average their roundings out. " +
           (total(fp32_rows, [](const norm_result& r) { return r.leaves_at_safe; }) == 0
                ? "No key so made leaves [−1, 1] at β = 2(1 − 2u)."
                : "Some keys so made leave [−1, 1] even at β = 2(1 − 2u)."),
       evidence::sampled(again.keys, options.seed,
                         "deviations " + number(again.deviation, 3) + " u and " + number(direct.deviation, 3) + " u"),
       {{"deviation_in_u", again.deviation},
        {"deviation_rounded_once_in_u", direct.deviation},
        {"leave_at_safe_beta", total(fp32_rows, [](const norm_result& r) { return r.leaves_at_safe; })}},
       "x / sqrt(Σx² + 10⁻⁶) in fp32; exact |k|² of what is stored."});
}

void saturation_findings(const saturation_survey& survey, report& into) {
  const auto all = only(survey.results, [](const saturation& s) { return s.exhaustive; });
  const auto find = [&](std::string_view in, std::string_view out) {
    return largest_of(only(survey.results, [&](const saturation& s) { return s.input == in && s.output == out; }),
                      [](const saturation&) { return 0; });
  };
  const auto text = [](const std::optional<double>& x, int digits) { return x ? number(*x, digits) : std::string("nowhere"); };
  const saturation b = find("bf16", "bf16");
  const saturation h = find("fp16", "fp16");
  const saturation mixed = find("bf16", "fp32");
  const bool monotone = std::all_of(all.begin(), all.end(), [](const saturation& s) { return s.monotone; });
  into.findings.push_back({"sigmoid-saturates",
                           "sigmoid(x) is exactly 1, and 2·sigmoid(x) exactly 2, from x = " + text(b.one_from, 6) +
                               " in bf16 and " + text(h.one_from, 9) +
                               " in fp16; a bf16 logit through an fp32 sigmoid from x = " + text(mixed.one_from, 6) +
                               ". From there λ is exactly 1 − |k|² or 1 − 2|k|², and the sign of |k|² − 1 decides.",
                           evidence::exhaustive(total(all, [](const saturation& s) { return s.evaluations; })),
                           {{"bf16", b.one_from.value_or(std::numeric_limits<double>::quiet_NaN())},
                            {"fp16", h.one_from.value_or(std::numeric_limits<double>::quiet_NaN())},
                            {"bf16_through_fp32", mixed.one_from.value_or(std::numeric_limits<double>::quiet_NaN())},
                            {"bf16_naive", b.naive_one_from.value_or(std::numeric_limits<double>::quiet_NaN())},
                            {"monotone", monotone}},
                           "The correctly rounded sigmoid of every finite input of the 8- and 16-bit formats; 1/(1 + e⁻ˣ) with "
                           "every operation rounded saturates earlier (table)."});
  const saturation s32 = find("fp32", "fp32");
  const saturation s64 = find("fp64", "fp64");
  into.findings.push_back(
      {"sigmoid-saturates-wide",
       "In fp32 it is 1 from x = " + text(s32.one_from, 9) + ", in fp64 from x = " + text(s64.one_from, 17) +
           "; it is 0 up to x = " + text(s32.zero_until, 9) + " and " + text(s64.zero_until, 17) + ".",
       evidence::proved("float.sigmoid.sigmoid_saturates_from"),
       {{"fp32_one", *s32.one_from}, {"fp64_one", *s64.one_from}, {"fp32_zero", *s32.zero_until}, {"fp64_zero", *s64.zero_until}},
       "The function and rounding are monotone, so two neighbouring inputs on either side of the step prove it; found by "
       "bisection over the ordered numbers. (The theorem is any format at 1.)"});
}

void transition_findings(const transition_survey& survey, const run_options& options, report& into) {
  const auto keys = [](const transition_result& r) { return r.keys; };
  const std::uint64_t matrices = total(survey.results, keys);
  const std::uint64_t expansive = total(survey.results, [](const transition_result& r) { return r.expansive; });
  const auto contracting = only(survey.results, [](const transition_result& r) { return r.beta <= 1; });
  std::vector<double> bf16_excess;
  for (const transition_result& r : contracting) {
    if (r.format_name == name_of(bf16) && r.dim == 64)
      bf16_excess.insert(bf16_excess.end(), r.radius_excess.begin(), r.radius_excess.end());
  }
  std::sort(bf16_excess.begin(), bf16_excess.end());
  const double median = bf16_excess[bf16_excess.size() / 2];
  const double doubling = std::round(0.69314718 / (median * unit_roundoff(bf16)));
  const auto worst = largest_of(survey.results, [](const transition_result& r) { return r.largest_added; });
  into.findings.push_back(
      {"materialised-expands",
       "Stored as a matrix with rounded entries, " +
           std::string(expansive == matrices ? "every" : percent(expansive, matrices) + " of the") + " transition" +
           (expansive == matrices ? "" : "s") +
           " looked at has spectral radius above 1, for β = ½ and 1 as well, where the exact factor never has: typically by " +
           number(median, 2) +
           " u (bf16, d = 64), so that one repeated matrix doubles a state along its top eigenvector in about " +
           number(doubling, 3) + " steps.",
       evidence::sampled(matrices, options.seed,
                         "all of the bf16, d = 64, β ≤ 1 excesses lie in " + number(bf16_excess.front(), 2) + " … " +
                             number(bf16_excess.back(), 2) + " u"),
       {{"expansive", expansive},
        {"bf16_median_in_u", median},
        {"most_above_exact_factor_in_u", worst.largest_added},
        {"spot_checks", survey.spot_checks},
        {"double_agrees_to_1e-12", survey.worst_disagreement < 1e-12}},
       "Symmetric matrices, so radius = norm; eigenvalues over double (fp64 over real<128>), spot-checked over real<128>."});
  const std::uint64_t proved = total(survey.results, [](const transition_result& r) { return r.proved; });
  const std::uint64_t contradicting =
      total(survey.results, [](const transition_result& r) { return r.proved > r.expansive ? r.proved - r.expansive : 0; });
  into.findings.push_back(
      {"materialised-expands-surely",
       "It must: wherever b kᵢ² ≤ u/2 for an entry of the key, 1 − b kᵢ² rounds to 1, and a row with diagonal 1 and any other "
       "entry forces radius > 1, whatever b > 0 is. That decides " +
           count(proved) + " of the " + count(matrices) + " matrices without an eigenvalue" +
           (contradicting == 0 ? "." : ", and contradicts the computed eigenvalues."),
       evidence::proved("algebra.materialised.unit_diagonal_exceeds_one"),
       {{"decided", proved}, {"matrices", matrices}, {"contradicting", contradicting}},
       "The 2 × 2 principal part (1 c; c m), c ≠ 0, has an eigenvalue above 1, and interlacing hands it to the whole matrix."});
}

void recording_findings(const recording_survey& survey, report& into) {
  for (const std::string& fault : survey.unreadable) into.unfinished.push_back("Not read: " + fault);
  if (survey.results.empty()) return;
  const std::uint64_t steps = total(survey.results, [](const recording_result& r) { return r.steps; });
  const auto leaving = only(survey.results, [](const recording_result& r) { return r.outside_unit > 0; });
  std::string names;
  for (const recording_result& r : leaving)
    names += (names.empty() ? "`" : ", `") + r.name + "` (" + count(r.outside_unit) + " of " + count(r.steps) + ", first at " +
             r.first + ", λ down to " + number(r.smallest, 4) + ")";
  const std::uint64_t above = total(survey.results, [](const recording_result& r) { return r.norm_above_one; });
  const std::uint64_t rows = total(survey.results, [](const recording_result& r) { return r.rows; });
  const bool exact = std::all_of(survey.results.begin(), survey.results.end(), [](const recording_result& r) { return r.exact; });
  into.findings.push_back(
      {"recordings",
       (leaving.empty() ? "No step of the " + std::to_string(survey.results.size()) + " recorded problems leaves [−1, 1]"
                        : "Of " + std::to_string(survey.results.size()) + " recorded problems " + std::to_string(leaving.size()) +
                              " leave" + (leaving.size() == 1 ? "s" : "") + " [−1, 1]: " + names) +
           ". " + percent(above, rows) + " of all keys have |k|² > 1; what keeps the others inside is their β.",
       evidence::exhaustive(steps),
       {{"problems", survey.results.size()}, {"leaving", leaving.size()}, {"keys", rows}, {"keys_above_one", above}},
       exact ? "λ = R(β|k|²) of every step in rationals, from the stored k and β."
             : "λ = R(β|k|²) of every step, in rationals where it is rational, else with 256 bits."});
}

std::string answer(const rule_survey& rules_found, const norm_survey& norms, const transition_survey& transitions) {
  if (!rules_found.complete || norms.keys_per_dim == 0 || !transitions.complete)
    return "The run was interrupted before the question could be answered; what was finished stands below.";
  const bool rules_leave = std::any_of(rules_found.results.begin(), rules_found.results.end(),
                                       [](const rule_result& r) { return r.outside_unit + r.outside_decay > 0; });
  const bool keys_leave = std::any_of(norms.results.begin(), norms.results.end(),
                                      [](const norm_result& r) { return r.how == normalisation::once && r.above_one > 0; });
  const bool matrices_leave = std::any_of(transitions.results.begin(), transitions.results.end(),
                                          [](const transition_result& r) { return r.beta <= 1 && r.expansive > 0; });
  if (!rules_leave && !keys_leave && !matrices_leave)
    return "Yes: in every format and for every rule looked at the eigenvalue stays in its interval.";
  std::string text = "Only to within a few u, and so not at the ends of its interval: ";
  if (keys_leave)
    text +=
        "at β = 2 about half of all rounded unit keys give λ < −1, β ≤ 2(1 − 2u) prevents it for every such key and nothing "
        "larger does";
  if (rules_leave)
    text += std::string(keys_leave ? "; " : "") +
            "the rules that promise 0 < λ ≤ 1 miss it by a few u once R(x) is that close to an end";
  if (matrices_leave) {
    const bool all = std::all_of(transitions.results.begin(), transitions.results.end(),
                                 [](const transition_result& r) { return r.expansive == r.keys; });
    text += std::string(keys_leave || rules_leave ? "; and " : "") +
            (all ? "every transition stored entry by entry was expansive, at β = ½ as at 2"
                 : "a transition stored entry by entry can be expansive at β ≤ 1");
  }
  return text + ".";
}

report run(const run_options& options) {
  const sizes size = options.full ? full_sizes : quick_sizes;
  report result;
  result.parameters["keys_per_dim"] = size.keys;
  result.parameters["rule_samples_per_octave"] = size.rule_samples;
  result.parameters["transition_keys"] = size.transition_keys;
  result.method =
      "λ = 1 − b n is formed in rationals from the rounded b and the exact n = |k|²; nothing is compared with a tolerance. u = "
      "2^−p is the unit roundoff of the format named. "
      "*Rules*: β and n are numbers of the format. *b once*: n = |k|², and b is the exact βφ(βn) rounded once, as where a kernel "
      "computes in a wide format and stores b. *Every operation*: x = βn, "
      "each operation of φ(x) in the order of the catalogue, and b = βφ(x) are rounded, e^x and expm1 correctly. *|k|² too*: n "
      "is a rounded |k|², which itself lies just inside an end of n's rounding "
      "interval; both ends are counted. Steps with |R(x)| > 1 are not counted. *Unit keys*: a Gaussian direction, the same for "
      "every format; *rounded once* divides by the norm to 100 bits and rounds each entry; *fp32 inside* "
      "rounds the direction to the format and computes x/sqrt(Σx² + 10⁻⁶) in fp32, as a kernel that normalises does; *in the "
      "format* computes everything there. |k|² is the exact sum of squares. "
      "*Materialised*: each entry of I − βkkᵀ, k a unit key rounded once, is rounded once from its exact value.";
  result.not_claimed = {
      "That a product of transitions grows: a factor slightly above 1 says nothing about many different factors; see the study "
      "`horizon`.",
      "Anything about keys that are not unit vectors rounded elementwise to nearest, about more than 256 entries, or that the "
      "safe β covers the error of a normalisation done in fp32.",
      "That the kernels evaluate φ in the order used here; other orders move the worst cases by a few u.",
      "The worst cases of fp16, tf32, fp32 and fp64 rules: they are the worst found.",
      "Materialised spectra are computed eigenvalues, not enclosures; only what the diagonal decides is proved."};

  const auto left_out = [&](const char* what) {
    result.unfinished.push_back(std::string(what) + " were left out: the run was interrupted.");
  };
  const rule_survey rules_found = survey_rules(options, size.rule_samples);
  const norm_survey norms = options.stopped() ? norm_survey{} : survey_norms(options, size.keys);
  const saturation_survey saturations = options.stopped() ? saturation_survey{} : survey_sigmoid(options);
  const transition_survey transitions =
      options.stopped() ? transition_survey{} : survey_transitions(options, size.transition_keys);
  const recording_survey recordings = survey_recordings(options);

  if (norms.keys_per_dim > 0) {
    norm_findings(norms, options, result);
    add_views(norms, result);
    result.parameters["keys_per_dim"] = norms.keys_per_dim;
  }
  if (!norms.complete) left_out("Some or all unit keys");
  if (rules_found.complete) {
    rule_findings(rules_found, options, result);
    add_views(rules_found, result);
  } else {
    left_out("The rules");
  }
  if (saturations.complete) {
    saturation_findings(saturations, result);
    add_views(saturations, result);
  } else {
    left_out("The sigmoids");
  }
  if (transitions.complete) {
    transition_findings(transitions, options, result);
    add_views(transitions, result);
  } else {
    left_out("The materialised transitions");
  }
  recording_findings(recordings, result);
  add_views(recordings, result);
  if (!recordings.complete)
    left_out("Some or all recordings");
  else if (recordings.results.empty() && recordings.unreadable.empty())
    result.unfinished.emplace_back("No recordings were given, so the eigenvalues of recorded kernels are missing.");
  result.answer = answer(rules_found, norms, transitions);
  return result;
}

}  // namespace

extern const study eigenvalues_study{
    "eigenvalues", "Does rounding leave the eigenvalue of the transition I - b k kᵀ where the theory puts it?", &run};

}  // namespace deltaproof
