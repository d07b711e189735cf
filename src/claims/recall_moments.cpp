// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
//
// Claims about powers of a coordinate of a unit vector in 64 channels: moments in closed form, and what they mean for a
// linear map.

#include <cmath>

#include "claims/recall_parts.hpp"

namespace deltaproof::claim_detail {
namespace {

using kind = claim_kind;
using verdict = claim_verdict;

/// Of k^power: root mean square length of the vector, variance of an entry (exact), and what the document prints.
claim_values powers(long power, double printed_length, double printed_variance) {
  const rational square = coordinate_moment(power);
  const rational mean = power % 2 == 0 ? coordinate_moment(power / 2) : rational(0);
  return {{"length", std::sqrt(approximate(square * recall_channels))},
          {"variance", approximate(square - mean * mean)},
          {"printed_length", printed_length},
          {"printed_variance", printed_variance}};
}

claim_values identity_moments() { return powers(1, 1.0, 0.0156); }
claim_values quadratic_moments() { return powers(2, 0.21, 0.00046); }
claim_values cubic_moments() { return powers(3, 0.056, 0.000051); }
claim_values quartic_moments() { return powers(4, 0.017, 0.000005); }

/// A printed mean of lengths lies below the root mean square, by little.
bool as_printed(const claim_values& v) {
  return within(number_at(v, "printed_variance"), number_at(v, "variance"), 0.07) &&
         number_at(v, "printed_length") <= 1.001 * number_at(v, "length") &&
         within(number_at(v, "printed_length"), number_at(v, "length"), 0.08);
}

/// P(|k_i| > 1/2) ≤ E k^8 / (1/2)^8.
claim_values beyond_one_half() {
  const rational bound = coordinate_moment(4) * 256;
  return {{"share_beyond_at_most", approximate(bound)}, {"root_mean_square", 1 / std::sqrt(64.0)}};
}

/// Powers of 1/2, and root mean squares of k, k², k³, k⁴ over one another.
claim_values halving() {
  const rational k = fraction(1, 2);
  const auto ratio = [](long m) { return std::sqrt(approximate(coordinate_moment(m + 1) / coordinate_moment(m))); };
  return {{"square", text_of(k * k)},      {"cube", text_of(k * k * k)},   {"fourth", text_of(k * k * k * k)},
          {"square_over_first", ratio(1)}, {"cube_over_square", ratio(2)}, {"fourth_over_cube", ratio(3)}};
}

/// Variance over squared mean of k² and of k⁴: 0 would be constant.
claim_values constancy() {
  const auto variation = [](long power) {
    const rational mean = coordinate_moment(power / 2);
    return std::sqrt(approximate(coordinate_moment(power) / (mean * mean) - 1));
  };
  return {{"quadratic_deviation_over_mean", variation(2)}, {"quartic_deviation_over_mean", variation(4)}};
}

/// The part of E f² that the best linear map of the whole key keeps. By symmetry that map is c I with c = E k f / E k².
claim_values linear_part() {
  const auto of = [](long power) {
    if (power % 2 == 0) return 0.0;  // E k · k^power is an odd moment
    const rational with_key = coordinate_moment((power + 1) / 2);
    return approximate(with_key * with_key / (coordinate_moment(1) * coordinate_moment(power)));
  };
  return {{"identity", of(1)}, {"quadratic", of(2)}, {"cubic", of(3)}, {"quartic", of(4)}};
}

/// The error of the map I on quartic values, over that of predicting 0.
claim_values any_linear_function() {
  const rational error = coordinate_moment(1) + coordinate_moment(4);  // E (k − k⁴)²: the cross term is an odd moment
  return {{"identity_map_over_zero_map", approximate(error / coordinate_moment(4))}};
}

/// e^k: its range, its deviation, and the part of its variance that a linear map with an intercept keeps.
claim_values exponential_shape() {
  const value_moments m = moments_of(relationship::exponential);
  const double variance = m.square - m.mean * m.mean;
  const value_moments s = moments_of(relationship::sine);
  return {{"mean", m.mean},
          {"standard_deviation", std::sqrt(variance)},
          {"mean_square", m.square},
          {"mean_square_kept_without", m.with_key * m.with_key * recall_channels / m.square},
          {"variance_explained_with_intercept", m.with_key * m.with_key * recall_channels / variance},
          {"sine_variance_explained", s.with_key * s.with_key * recall_channels / (s.square - s.mean * s.mean)},
          {"exponential_variance_over_that_of_the_key", variance * recall_channels},
          {"sine_variance_over_that_of_the_key", (s.square - s.mean * s.mean) * recall_channels}};
}

/// Scaled values normalise to the same vector; lengths are rational here.
claim_values normalised_values() {
  const fraction_vector v{3, 4};
  const auto normalised = [](const fraction_vector& x, const rational& length) { return scaled(1 / length, x); };
  return {{"equal", normalised(v, 5) == normalised(scaled(7, v), 35)},
          {"lengths", text_of(inner(v, v)) + " and " + text_of(inner(scaled(7, v), scaled(7, v)))}};
}

}  // namespace

claim_table recall_moment_claims() {
  return {
      {"normalising-drops-magnitude",
       recall,
       kind::identity,
       verdict::holds,
       "Normalised values keep their direction and lose their length.",
       "values not 0",
       {exact_check("(3, 4) and seven times it, in fractions", normalised_values,
                    [](const claim_values& v) { return truth_at(v, "equal") && text_at(v, "lengths") == "25 and 1225"; })}},
      {"most-entries-below-one-half",
       recall,
       kind::bound,
       verdict::holds,
       "Most entries of a unit key lie in [−0.5, 0.5].",
       "64 channels: at least 99.8 %; a typical entry is 0.125",
       {exact_check("Markov's inequality with the exact eighth moment", beyond_one_half,
                    [](const claim_values& v) {
                      return number_at(v, "share_beyond_at_most") < 0.002 && number_at(v, "root_mean_square") == 0.125;
                    })}},
      {"powers-of-one-half",
       recall,
       kind::identity,
       verdict::holds,
       "0.5 has the powers 0.25, 0.125 and 0.0625.",
       "exact",
       {exact_check("fractions", halving,
                    [](const claim_values& v) {
                      return text_at(v, "square") == "1/4" && text_at(v, "cube") == "1/8" && text_at(v, "fourth") == "1/16";
                    })}},
      {"each-power-halves",
       recall,
       kind::conclusion,
       verdict::conditional,
       "Each further power halves an entry of a unit key.",
       "an entry of 0.5, which is four standard deviations out; root mean squares fall by 4.7, 3.7 and 3.2",
       {exact_check("ratios of exact moments", halving,
                    [](const claim_values& v) {
                      return within(1 / number_at(v, "square_over_first"), 4.7, 0.01) &&
                             within(1 / number_at(v, "cube_over_square"), 3.7, 0.01) &&
                             within(1 / number_at(v, "fourth_over_cube"), 3.2, 0.015);
                    })}},
      {"moments-of-identity",
       recall,
       kind::experiment,
       verdict::holds,
       "Identity values have mean length 1 and variance 0.0156.",
       "64 channels; exactly 1 and 1/64",
       {exact_check("the second moment of a coordinate", identity_moments, as_printed)}},
      {"moments-of-squares",
       recall,
       kind::experiment,
       verdict::holds,
       "k² has mean length 0.21, a fifth, and variance 0.00046, a 34th.",
       "64 channels; root mean square length √(3/66), variance 3/(64·66) − 1/64²",
       {exact_check("the fourth moment of a coordinate", quadratic_moments,
                    [](const claim_values& v) {
                      return as_printed(v) && within(1 / number_at(v, "length"), 5, 0.07) &&
                             within(1 / 64.0 / number_at(v, "variance"), 34, 0.02);
                    })}},
      {"moments-of-cubes",
       recall,
       kind::experiment,
       verdict::holds,
       "k³ has mean length 0.056 and variance 0.000051.",
       "64 channels; root mean square length 0.0578, variance 15/(64·66·68)",
       {exact_check("the sixth moment of a coordinate", cubic_moments, as_printed)}},
      {"moments-of-fourth-powers",
       recall,
       kind::experiment,
       verdict::holds,
       "k⁴ has mean length 0.017 and variance 0.000005.",
       "64 channels; root mean square length 0.0183, variance 4.7·10⁻⁶",
       {exact_check("the eighth moment of a coordinate", quartic_moments, as_printed)}},
      {"fourth-powers-nearly-constant",
       recall,
       kind::conclusion,
       verdict::refuted,
       "Vectors of fourth powers, of so small variance, are nearly constant.",
       "relative to their mean they vary more the higher the power: by 1.38 times the mean for k², by 3.06 times for k⁴. Small "
       "is not constant",
       {exact_check("standard deviation over mean from exact moments", constancy,
                    [](const claim_values& v) {
                      return within(number_at(v, "quadratic_deviation_over_mean"), 1.38, 0.005) &&
                             within(number_at(v, "quartic_deviation_over_mean"), 3.06, 0.005);
                    })}},
      {"flat-line-captures-the-signal",
       recall,
       kind::conclusion,
       verdict::refuted,
       "Powers of a unit key vary so little that a nearly flat line captures most of the signal.",
       "the best linear map is 0 for k² and k⁴ and captures nothing of them; of k³ it captures 61.8 %. A small error is that of "
       "predicting 0",
       {exact_check("explained part of the second moment from exact moments", linear_part,
                    [](const claim_values& v) {
                      return number_at(v, "quadratic") == 0 && number_at(v, "quartic") == 0 &&
                             within(number_at(v, "cubic"), 0.618, 0.01) && number_at(v, "identity") == 1;
                    })}},
      {"any-linear-function-fits",
       recall,
       kind::conclusion,
       verdict::refuted,
       "For fourth powers almost any linear function fits.",
       "the identity errs 2993 times as much as predicting 0",
       {exact_check("expected squared errors from exact moments", any_linear_function,
                    [](const claim_values& v) { return within(number_at(v, "identity_map_over_zero_map"), 2993, 1e-3); })}},
      {"difficulty-is-variance",
       recall,
       kind::conclusion,
       verdict::refuted,
       "How hard a relationship is for a linear model depends on variance and range, not on the degree.",
       "scaling values by c scales error and baseline by c²: variance cannot matter. What matters is the correlation with the "
       "key: none for even powers, whatever their variance",
       {exact_check("explained part of the second moment from exact moments", linear_part,
                    [](const claim_values& v) {
                      return number_at(v, "cubic") > 0.6 && number_at(v, "quadratic") == 0 && number_at(v, "quartic") == 0;
                    })}},
      {"signal-characteristics-decide",
       recall,
       kind::conclusion,
       verdict::conditional,
       "Variance, range and correlation structure tell more than the functional form.",
       "correlation with the key does, exactly: it is the part that a linear map keeps. Variance and range do not, see "
       "difficulty-is-variance",
       {exact_check("explained part of the second moment from exact moments, k³ against k²", linear_part,
                    [](const claim_values& v) {
                      return within(number_at(v, "cubic"), 0.618, 0.01) && number_at(v, "quadratic") == 0 &&
                             number_at(v, "identity") == 1;
                    })}},
      {"exponential-has-large-range",
       recall,
       kind::conclusion,
       verdict::refuted,
       "eᵏ has a large dynamic range even when clipped.",
       "unit keys: entries of eᵏ are 1.008 ± 0.126. Their mean square, 1.03, is that of a constant, and there is nothing to "
       "clip. "
       "Keys that are not of unit length would have given 14.7 where 1.92 is printed",
       {certified("mean and deviation by quadrature over the law of a coordinate", exponential_shape,
                  [](const claim_values& v) {
                    return within(number_at(v, "standard_deviation"), 0.126, 0.005) && within(number_at(v, "mean"), 1.0079, 1e-3);
                  }),
        finding_of("recall", "norm-before-f", "errors if f were applied before the norm, against those printed",
                   [](const claim_values& v) { return truth_at(v, "excluded") && within(number_at(v, "raw_exponential"), 14.7, 0.01); })}},
      {"nonlinearity-before-and-after-the-norm",
       recall,
       kind::contradiction,
       verdict::contradiction,
       "The nonlinearity is said to act before the projections, normalisation after them; and powers are taken of keys that are "
       "normalised already.",
       "the numbers are those of powers of unit keys: the variance of k², 0.00046, and the errors; taken before the norm, k² of "
       "standard Gaussian keys has variance 2",
       {exact_check("variance of k² of a unit key beside the printed one", quadratic_moments, as_printed),
        finding_of("recall", "norm-before-f", "the error of k² if f were applied before the norm, printed as 0.001",
                   [](const claim_values& v) { return truth_at(v, "excluded") && number_at(v, "raw_quadratic") > 1; })}},
      {"exponential-and-sine-keep-variance",
       recall,
       kind::conclusion,
       verdict::holds,
       "The exponential and the fast sine keep or amplify the variance of a key.",
       "unit keys, 64 channels: 1.02 times for eᵏ, 32 times for sin(10πk). The 1.92 of eᵏ does not come from there: its variance "
       "is "
       "0.016, its mean square 1.03",
       {certified("variances by quadrature over that of a coordinate", exponential_shape,
                  [](const claim_values& v) {
                    return within(number_at(v, "exponential_variance_over_that_of_the_key"), 1.02, 0.01) &&
                           within(number_at(v, "sine_variance_over_that_of_the_key"), 32, 0.01) &&
                           number_at(v, "mean_square") >
                               60 * number_at(v, "standard_deviation") * number_at(v, "standard_deviation");
                  })}},
      {"exponential-is-not-linear",
       recall,
       kind::conclusion,
       verdict::conditional,
       "The state cannot hold the exponential relationship, for it is not linear.",
       "unit keys: a state alone keeps 1.5 % of the mean square of eᵏ, nearly all of which is the constant 1; with an intercept "
       "a linear map explains 99.3 % of its variance. What is missing is the intercept, not a nonlinearity",
       {certified("parts of mean square and variance by quadrature", exponential_shape,
                  [](const claim_values& v) {
                    return within(number_at(v, "variance_explained_with_intercept"), 0.993, 1e-3) &&
                           within(number_at(v, "mean_square_kept_without"), 0.015, 0.03);
                  }),
        finding_of("recall", "constant-feature", "what least squares leaves of eᵏ with one constant feature and without",
                   [](const claim_values& v) { return number_at(v, "with") < 0.001 && number_at(v, "without") > 0.9; })}},
      {"sine-is-hard",
       recall,
       kind::conclusion,
       verdict::holds,
       "sin(10πk) is genuinely hard for a linear map.",
       "unit keys, 64 channels: linearly it is noise, less than 10⁻⁵ of its variance is explained",
       {certified("explained variance by quadrature", exponential_shape,
                  [](const claim_values& v) { return number_at(v, "sine_variance_explained") < 1e-5; })}},
  };
}

}  // namespace deltaproof::claim_detail
