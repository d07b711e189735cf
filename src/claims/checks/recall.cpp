// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
//
// What is known of the experiments of document `recall` in closed form: DeltaNet with β = 1 and linear attention, a query
// independent of the keys, the error of S_t q_t against the token's own value, after its update, averaged over tokens and
// channels. Moments of a coordinate are fractions; those of eᵏ and sin(10πk) are enclosed by their power series.

#include "claims/checks/recall.hpp"

#include "deltaproof/number/counting.hpp"
#include "deltaproof/rule/baselines.hpp"
#include "deltaproof/scan/recurrent.hpp"

namespace deltaproof::claim_detail {
namespace {

constexpr long d = recall_channels;

/// E k_i^(2m) of a coordinate on the unit sphere: (2m − 1)!! / (d (d + 2) ... (d + 2m − 2)).
rational coordinate_moment(long m) {
  rational moment = 1;
  for (long i = 0; i < m; ++i) moment *= fraction(2 * i + 1, d + 2 * i);
  return moment;
}

/// Σ (−1)^m c^(2m + odd) / (2m + odd)! E k^(2m + 2 odd), signs only if `alternating`: E cosh(c k) or E cos(c k), and with
/// `odd` E k sinh(c k) or E k sin(c k). Once a term is below half of the one before, the rest is below the last term.
enclosure series(const enclosure& c, bool alternating, long odd) {
  enclosure sum = rational(0);
  enclosure power = odd != 0 ? c : enclosure(rational(1));  // c^(2m + odd) / (2m + odd)!
  rational last = 0;
  for (long m = 0;; ++m) {
    const enclosure term = power * coordinate_moment(m + odd);
    sum = alternating && m % 2 != 0 ? sum - term : sum + term;
    if (term.upper() < last / 2 && term.upper() < fraction(1, 1L << 62) * fraction(1, 1L << 62))
      return sum + enclosure(-term.upper(), term.upper());
    last = term.upper();
    power = power * c * c * fraction(1, (2 * m + odd + 1) * (2 * m + odd + 2));
  }
}

/// 10π, from 31 digits of π.
enclosure ten_pi() {
  const rational unit = fraction(1, 1'000'000'000'000'000) * fraction(1, 1'000'000'000'000'000);
  const rational digits = rational(3'141'592'653'589'793) * rational(1'000'000'000'000'000) + rational(238'462'643'383'279);
  return {10 * digits * unit, 10 * (digits + 1) * unit};
}

/// E f(k)², E f(k) and E k f(k) of one coordinate.
struct value_moments {
  enclosure square;
  enclosure mean;
  enclosure with_key;
};
value_moments moments_of(relationship f) {
  if (f == relationship::exponential)
    return {series(rational(2), false, 0), series(rational(1), false, 0), series(rational(1), false, 1)};
  if (f == relationship::sine)
    return {(enclosure(rational(1)) - series(ten_pi() * rational(2), true, 0)) * fraction(1, 2), rational(0),
            series(ten_pi(), true, 1)};
  const long power = 1 + static_cast<long>(f);
  return {coordinate_moment(power), power % 2 == 0 ? coordinate_moment(power / 2) : rational(0),
          power % 2 == 0 ? rational(0) : coordinate_moment((power + 1) / 2)};
}
enclosure variance_of(const value_moments& m) { return m.square - m.mean * m.mean; }
/// The part of the mean square that the best linear map of the whole key keeps: by symmetry that map is c I.
enclosure explained_by_linear(const value_moments& m) { return m.with_key * m.with_key * rational(d) / m.square; }

/// Mean over t = 1 ... T of (1 − 1/d)^t.
rational mean_survival(long tokens) {
  rational left = 1;
  rational kept = fraction(d - 1, d);
  for (long t = tokens; t > 0; t /= 2, kept *= kept) left *= t % 2 != 0 ? kept : rational(1);
  return (1 - left) * fraction(d - 1, tokens);
}

/// DeltaNet: E f² (2 − mean_survival), exact for every f, and for unit values with E f² = 1/d.
enclosure delta_error(relationship f, long tokens) { return moments_of(f).square * (2 - mean_survival(tokens)); }
/// Linear attention: E f² ((T + 1)/(2d) + 1) + (T² − 1)/3 (E k f)² / d; the second part is that of pairs of keys.
enclosure pairs_error(const value_moments& m, long tokens) {
  return fraction(tokens * tokens - 1, 3 * d) * m.with_key * m.with_key;
}
enclosure hebbian_error(relationship f, long tokens) {
  const value_moments m = moments_of(f);
  return m.square * (fraction(tokens + 1, 2 * d) + 1) + pairs_error(m, tokens);
}

claim_values errors_of_relationships() {
  claim_values out{{"zero_predictor", 1.0 / d}};
  for (const auto& [name, f] : relationships) {
    const std::string of(name);
    put(out, of, delta_error(f, 1000));
    put(out, of + "_mean_square", moments_of(f).square);
    put(out, of + "_in_units", delta_error(f, 1000) / moments_of(f).square);
  }
  return out;
}

/// A stored key read back, v = k: E kᵀ S k = 1 + (T − 1)/d, E ‖S k‖² = 1 + 3 (T − 1)/d + (T − 1)(T − 2)/d².
rational squared_cosine(long tokens) {
  const rational along = 1 + fraction(tokens - 1, d);
  return along * along / (1 + 3 * fraction(tokens - 1, d) + fraction((tokens - 1) * (tokens - 2), d * d));
}

claim_values errors_over_length() {
  claim_values out{{"zero_predictor", 1.0 / d}, {"two_unrelated_unit_vectors", 2.0 / d}};
  for (const long tokens : {500L, 4000L, 32000L}) {
    const std::string at = "_" + std::to_string(tokens);
    const enclosure delta = delta_error(relationship::identity, tokens);
    const enclosure hebbian = hebbian_error(relationship::identity, tokens);
    put(out, "delta" + at, delta);
    // RLS with v = k holds the projector on the keys so far, after d keys I: E ‖S q − v‖² is t/d + 1, then 2.
    put(out, "rls" + at, (2 - fraction(d - 1, 2 * tokens)) * fraction(1, d));
    put(out, "linear_attention" + at, hebbian);
    put(out, "gap" + at, hebbian / delta);
    put(out, "share_of_pairs" + at, pairs_error(moments_of(relationship::identity), tokens) / hebbian);
    put(out, "share_of_pairs_of_quadratic" + at,
        pairs_error(moments_of(relationship::quadratic), tokens) / hebbian_error(relationship::quadratic, tokens));
  }
  for (const long tokens : {65L, 500L, 4000L, 32000L})
    put(out, "squared_cosine_" + std::to_string(tokens), squared_cosine(tokens));
  put(out, "exponential_delta", delta_error(relationship::exponential, 32000));
  put(out, "exponential_linear_attention", hebbian_error(relationship::exponential, 32000));
  put(out, "exponential_twice_mean_square", moments_of(relationship::exponential).square * rational(2));
  return out;
}

/// E ‖S_T‖² with unit values: d (1 − (1 − 1/d)^T) of DeltaNet, T + T (T − 1)/d of linear attention with identity values.
claim_values state_sizes() {
  claim_values out;
  rational kept = 1;
  for (long t = 1; t <= 1000; ++t) kept *= fraction(d - 1, d);
  put(out, "delta_1000", d * (1 - kept));
  rational far = 1;
  for (int i = 0; i < 32; ++i) far *= kept;
  put(out, "delta_32000", d * (1 - far));
  for (const long t : {1000L, 32000L}) put(out, "linear_attention_" + std::to_string(t), t + fraction(t * (t - 1), d));
  return out;
}

/// Root mean square length of the vector of powers, variance of an entry, and what a linear map keeps.
claim_values powers_of_a_key() {
  claim_values out;
  for (const auto& [name, f] : relationships) {
    if (f == relationship::exponential || f == relationship::sine) continue;
    const std::string of(name);
    const value_moments m = moments_of(f);
    put_root(out, of + "_root_mean_square_length", m.square * rational(d));
    put(out, of + "_variance", variance_of(m));
    put(out, of + "_explained", explained_by_linear(m));
    if (m.mean.lower() > 0) put_root(out, of + "_deviation_over_mean", variance_of(m) / (m.mean * m.mean));
  }
  const auto falls = [](long m) { return coordinate_moment(m) / coordinate_moment(m + 1); };
  put_root(out, "first_over_square", falls(1));
  put_root(out, "square_over_cube", falls(2));
  put_root(out, "cube_over_fourth", falls(3));
  put(out, "share_beyond_one_half_at_most", coordinate_moment(4) * 256);  // Markov
  // A map A of k misses k⁴ by ‖A‖² / d² a channel more than 0 does: of root mean square gain g by g² E k².
  put_root(out, "quartic_gain_that_doubles_the_error", enclosure(coordinate_moment(4) / coordinate_moment(1)));
  put(out, "quartic_by_identity_over_by_zero", (coordinate_moment(1) + coordinate_moment(4)) / coordinate_moment(4));
  return out;
}

claim_values exponential_and_sine() {
  claim_values out;
  const value_moments e = moments_of(relationship::exponential);
  const value_moments s = moments_of(relationship::sine);
  put(out, "mean", e.mean);
  put(out, "variance", variance_of(e));
  put_root(out, "standard_deviation", variance_of(e));
  put(out, "mean_square", e.square);
  put(out, "mean_square_kept_by_linear", explained_by_linear(e));
  put(out, "variance_explained_with_intercept", e.with_key * e.with_key * rational(d) / variance_of(e));
  put(out, "exponential_variance_over_that_of_the_key", variance_of(e) * rational(d));
  put(out, "sine_variance_over_that_of_the_key", variance_of(s) * rational(d));
  put(out, "sine_variance_explained", explained_by_linear(s));
  // Whatever the keys, values of this mean err by its square at a query that knows nothing of them.
  put(out, "mean_alone_errs_by", e.mean * e.mean);
  // Values e^z of standard normal z whose direction is the key: E e^2z is e².
  out["before_the_norm_errs_by"] = approximate(2 - mean_survival(1000)) * std::exp(2.0);
  put(out, "mean_alone_errs_by_with_independent_keys", e.mean * e.mean * (2 - mean_survival(1000)));
  return out;
}

/// Unit values of three kinds, all words of 4 keys ±e_i in 3 channels (signs cancel): E ‖S_4‖², d (1 − (1 − 1/d)^4) each.
claim_values values_do_not_matter() {
  const auto axis = [](std::size_t i) -> fraction_vector { return eye(3).col(static_cast<Eigen::Index>(i)); };
  const auto mean_squares = [&](auto value) {
    rational sum = 0;
    for (std::size_t word = 0; word < 81; ++word) {
      fraction_matrix s = zeros(3, 3);
      for (std::size_t t = 0, rest = word; t < 4; ++t, rest /= 3) s = delta_step(s, axis(rest % 3), axis(value(rest % 3, t)), 1);
      sum += s.squaredNorm();
    }
    return text_of(sum / 81);
  };
  return {{"value_is_the_key", mean_squares([](std::size_t key, std::size_t) { return key; })},
          {"value_is_constant", mean_squares([](std::size_t, std::size_t) { return std::size_t{0}; })},
          {"value_follows_time", mean_squares([](std::size_t, std::size_t t) { return t % 3; })}};
}

/// Scaled values scale the state, so that an error in units of the values does not see it.
claim_values values_scale_the_state() {
  fraction_matrix s = zeros(2, 3);
  fraction_matrix small = s;
  for (unsigned t = 0; t < 5; ++t) {
    const fraction_vector k = sample_vector(3, 190 + t);
    const fraction_vector v = sample_vector(2, 200 + t);
    s = delta_step(s, k, v, fraction(1, 3));
    small = delta_step(small, k, v / 1000, fraction(1, 3));
  }
  return {{"state_scales", small == s / 1000}, {"state_is_zero", s.isZero(0)}};
}

/// (3, 4) and seven times it normalise to one vector, of length 1, (4, 3) to another; an identity value of a unit key to itself.
claim_values normalised_values() {
  const auto normalised = [](const fraction_vector& x) -> fraction_vector {
    const rational squared = x.squaredNorm();
    const rational length(std::lround(std::sqrt(approximate(squared))));
    if (length * length != squared) throw domain_error("normalised_values: a length that is no whole number");
    return x / length;
  };
  const fraction_vector v{{3, 4}};
  const fraction_vector seven_times = 7 * v;
  const fraction_vector elsewhere{{4, 3}};
  const fraction_vector k{{fraction(2, 7), fraction(3, 7), fraction(6, 7)}};
  return {{"equal", normalised(v) == normalised(seven_times)},
          {"values_equal", v == seven_times},
          {"has_length_1", normalised(seven_times).squaredNorm() == 1},
          {"other_directions_equal", normalised(v) == normalised(elsewhere)},
          {"identity_value_has_length_1", normalised(k) == k}};
}

/// The state of RLS with a ridge of 10⁻⁶ after these keys and values, its squared distance from `expected`.
double distance_of_rls(const fraction_matrix& keys, const fraction_matrix& values, const fraction_matrix& expected) {
  recursive_least_squares<rational> machine(static_cast<std::size_t>(keys.cols()), static_cast<std::size_t>(values.cols()),
                                            fraction(1, 1'000'000));
  for (Eigen::Index t = 0; t < keys.rows(); ++t) machine.step(span_of(keys.row(t)), span_of(values.row(t)));
  return approximate((state_of(machine.state()) - expected).squaredNorm());
}

/// Unit keys of three channels, v = k: DeltaNet after six, RLS after three, after two, and after three other keys; one linear map
/// of the keys instead; and by symmetry the sum of v kᵀ over a key and its images under changes of sign, v = k²: 0, so that no
/// linear fit says anything of v.
claim_values linear_fits() {
  const fraction_matrix keys{{fraction(2, 7), fraction(3, 7), fraction(6, 7)},
                             {fraction(3, 5), fraction(4, 5), 0},
                             {0, fraction(5, 13), fraction(12, 13)}};
  fraction_matrix delta = zeros(3, 3);
  for (Eigen::Index t = 0; t < 6; ++t) delta = delta_step(delta, keys.row(t % 3), keys.row(t % 3), 1);
  const fraction_matrix others{{fraction(3, 5), 0, fraction(-4, 5)},
                               {fraction(5, 13), fraction(12, 13), 0},
                               {fraction(6, 7), fraction(-2, 7), fraction(3, 7)}};
  const fraction_matrix map = sample_matrix(2, 3, 113);
  fraction_matrix even = zeros(3, 3);
  for (int signs = 0; signs < 8; ++signs) {
    fraction_vector k{{1, 2, fraction(1, 2)}};
    for (int i = 0; i < 3; ++i) k[i] *= (signs >> i & 1) != 0 ? -1 : 1;
    even += k.cwiseAbs2() * k.transpose();
  }
  const fraction_matrix two = keys.topRows(2);
  return {{"rls_from_identity", distance_of_rls(keys, keys, eye(3))},
          {"rls_of_two_keys_from_identity", distance_of_rls(two, two, eye(3))},
          {"keys_equal", keys == others},
          {"rls_of_other_keys_from_identity", distance_of_rls(others, others, eye(3))},
          {"rls_from_the_map", distance_of_rls(keys, keys * map.transpose(), map)},
          {"delta_is_identity", delta == eye(3)},
          {"squared_distance_of_delta", approximate((delta - eye(3)).squaredNorm())},
          {"squared_norm_of_even_powers", approximate(even.squaredNorm())}};
}

/// Two histories of values at the same four keys in three channels, and the state of least squares after each.
claim_values two_histories() {
  const fraction_matrix keys = sample_matrix(4, 3, 110);
  const fraction_matrix values = sample_matrix(4, 2, 111);
  const fraction_matrix pseudo = (keys.transpose() * keys).inverse() * keys.transpose();
  // What projects off the columns of the keys changes the values and not the state.
  const fraction_matrix others = values + (eye(4) - keys * pseudo) * sample_matrix(4, 2, 114);
  return {{"values_equal", values == others}, {"states_equal", pseudo * values == pseudo * others}};
}

/// Three correlated keys in three channels: least squares gives every value back, DeltaNet the last alone.
claim_values correlated_keys() {
  const fraction_matrix keys{{1, 0, 0}, {fraction(4, 5), fraction(3, 5), 0}, {fraction(4, 5), 0, fraction(3, 5)}};
  const fraction_matrix values{{fraction(3, 5), fraction(4, 5)},  // of length 1
                               {fraction(-12, 13), fraction(5, 13)},
                               {fraction(8, 17), fraction(-15, 17)}};
  fraction_matrix delta = zeros(2, 3);
  for (Eigen::Index t = 0; t < 3; ++t) delta = delta_step(delta, keys.row(t), values.row(t), 1);
  const fraction_matrix best = values.transpose() * keys * (keys.transpose() * keys).inverse();
  const auto error = [&](const fraction_matrix& s) -> rational { return (keys * s.transpose() - values).squaredNorm(); };
  const auto read_back = [&](Eigen::Index t) { return delta * keys.row(t).transpose() == values.row(t).transpose(); };
  return {{"least_squares_error_is_0", error(best) == 0},
          {"delta_gives_the_first", read_back(0)},
          {"delta_gives_the_second", read_back(1)},
          {"delta_gives_the_last", read_back(2)},
          {"delta_error_over_values", approximate(error(delta) / values.squaredNorm())}};
}

/// Operations a step, K = V, over counting<double>: doubling K multiplies a K² law by 4, a K³ law by 8.
claim_values cost_a_step() {
  using number = counting<double>;
  const auto counted = [](std::size_t size, int which) {
    std::vector<number> k(size, number(1));
    hebbian<number> linear(size, size);
    recurrence<number> delta(size, size);
    recursive_least_squares<number> squares_of(size, size, number(1));
    const auto counts = count_operations([&] {
      if (which == 0) linear.step(k, k);
      if (which == 1) delta.step(k, k, number(1));
      if (which == 2) squares_of.step(k, k);
    });
    return static_cast<double>(counts.total());
  };
  return {{"linear_attention_64_over_32", counted(64, 0) / counted(32, 0)},
          {"deltanet_64_over_32", counted(64, 1) / counted(32, 1)},
          {"rls_64_over_32", counted(64, 2) / counted(32, 2)},
          {"deltanet_64", counted(64, 1)},
          {"rls_over_deltanet_64", counted(64, 2) / counted(64, 1)}};
}

/// Four pairs in three channels: the document's formula, the library's rank-one updates, and what is short of three.
claim_values least_squares() {
  const fraction_matrix keys = sample_matrix(4, 3, 110);
  const fraction_matrix values = sample_matrix(4, 2, 111);
  const rational ridge = fraction(1, 3);
  recursive_least_squares<rational> machine(3, 2, ridge);
  for (Eigen::Index t = 0; t < 4; ++t) machine.step(span_of(keys.row(t)), span_of(values.row(t)));
  const fraction_matrix gram = keys.transpose() * keys;
  const fraction_matrix sums = values.transpose() * keys;
  const fraction_matrix best = sums * gram.inverse();
  const auto objective = [&](const fraction_matrix& s) -> rational { return (keys * s.transpose() - values).squaredNorm(); };
  bool least = true;
  for (Eigen::Index i = 0; i < best.size(); ++i) {
    for (const rational& h : {fraction(1, 100), fraction(-1, 100)}) {
      fraction_matrix other = best;
      other(i) += h;
      least = least && objective(other) > objective(best);
    }
  }
  // Necessary and, the objective being convex, enough.
  const auto normal_equations = [&](const fraction_matrix& s) {
    return ((values - keys * s.transpose()).transpose() * keys).isZero(0);
  };
  const fraction_matrix few = sample_matrix(2, 3, 112);
  // No ridge: the formula of the first three pairs, and the fourth by a rank-one update of its inverse.
  const fraction_matrix three = keys.topRows(3);
  const fraction_matrix inverse = (three.transpose() * three).inverse();
  const fraction_matrix before = values.topRows(3).transpose() * three * inverse;
  const fraction_vector k = keys.row(3);
  const fraction_vector v = values.row(3);
  const fraction_vector image = inverse * k;
  const fraction_vector gain = image / (1 + k.dot(image));
  const fraction_vector miss = v - before * k;
  return {{"rank_one_updates_equal", state_of(machine.state()) == sums * (gram + ridge * eye(3)).inverse()},
          {"formula_by_a_rank_one_update", before + miss * gain.transpose() == best},
          {"ridge_gives_the_formula", state_of(machine.state()) == best},
          {"least", least},
          {"normal_equations", normal_equations(best)},
          {"normal_equations_with_a_ridge", normal_equations(state_of(machine.state()))},
          {"two_pairs_have_an_inverse", (few.transpose() * few).determinant() != 0}};
}

/// Two runs of linear attention whose first token differs, six more tokens: their difference.
claim_values linear_attention_keeps_distances() {
  hebbian<rational> a(3, 2), b(3, 2);
  a.step(span_of(sample_vector(3, 150)), span_of(sample_vector(2, 151)));
  b.step(span_of(sample_vector(3, 152)), span_of(sample_vector(2, 153)));
  const auto difference = [&]() -> fraction_matrix { return state_of(a.state()) - state_of(b.state()); };
  const fraction_matrix before = difference();
  for (unsigned t = 0; t < 6; ++t) {
    for (auto* run : {&a, &b}) run->step(span_of(sample_vector(3, 170 + t)), span_of(sample_vector(2, 160 + t)));
  }
  return {{"difference_unchanged", difference() == before}, {"difference_is_zero", before.isZero(0)}};
}

/// Mean of KᵀK over all words of four keys e_i in three channels: the entry on its diagonal, if it is that times I.
std::string mean_kt_k() {
  fraction_matrix sum = zeros(3, 3);
  for (std::size_t word = 0; word < 81; ++word) {
    for (std::size_t t = 0, rest = word; t < 4; ++t, rest /= 3) {
      const fraction_vector k = eye(3).col(static_cast<Eigen::Index>(rest % 3));
      sum += k * k.transpose();
    }
  }
  const rational entry = sum(0, 0) / 81;
  return sum / 81 == entry * eye(3) ? text_of(entry) : "no multiple of I";
}

/// Four orthonormal keys, three times in turn, and what is read of a key among others that are not orthogonal to it.
claim_values orthogonal_keys() {
  fraction_matrix s = zeros(4, 4);
  fraction_matrix delta = s;
  fraction_matrix after_one_round = s;
  for (Eigen::Index t = 0; t < 12; ++t) {
    const fraction_vector k = eye(4).col(t % 4);
    s += k * k.transpose();
    delta = delta_step(delta, k, k, 1);
    if (t == 3) after_one_round = s;
  }
  const fraction_matrix others = sample_matrix(3, 4, 180);  // keys, and their values
  const fraction_matrix values = sample_matrix(3, 2, 181);
  hebbian<rational> among_others(4, 2);
  for (Eigen::Index i = 0; i < 3; ++i) among_others.step(span_of(others.row(i)), span_of(values.row(i)));
  fraction_vector read = state_of(among_others.state()) * others.row(0).transpose();
  for (Eigen::Index i = 0; i < 3; ++i) read -= others.row(i).dot(others.row(0)) * values.row(i).transpose();
  // Columns of length 1, orthogonal to each other, though every key comes twice: linear attention is least squares there.
  const fraction_matrix columns = fraction_matrix{{1, 1}, {1, -1}, {1, 1}, {1, -1}} / 2;
  const fraction_matrix given = sample_matrix(4, 2, 182);
  hebbian<rational> writer(2, 2);
  for (Eigen::Index t = 0; t < 4; ++t) writer.step(span_of(columns.row(t)), span_of(given.row(t)));
  const fraction_matrix left = given - columns * state_of(writer.state()).transpose();
  const fraction_matrix gram = columns.transpose() * columns;
  const fraction_matrix first = eye(4).topRows(2);  // two orthonormal keys of four channels
  return {{"state_is_three_times_identity", s == 3 * eye(4)},
          {"state_after_one_round_is_identity", after_one_round == eye(4)},
          {"delta_is_identity", delta == eye(4)},
          {"read_is_the_sum_of_correlations", read.isZero(0)},
          {"kt_k_of_keys_that_return_is_identity", gram == eye(2)},
          {"linear_attention_is_least_squares_there", (left.transpose() * columns).isZero(0)},
          {"k_kt_of_two_orthonormal_keys_is_identity", first * first.transpose() == eye(2)},
          {"kt_k_of_two_orthonormal_keys_is_identity", first.transpose() * first == eye(4)},
          {"mean_kt_k_of_four_keys_in_three", mean_kt_k()}};
}

/// Ten keys read one by one and together: a read is a product with the state, which it leaves alone.
claim_values reads_together() {
  const fraction_matrix s = sample_matrix(3, 4, 120);
  recurrence<rational> machine(library_state(s));
  const fraction_matrix keys = sample_matrix(10, 4, 121);
  const fraction_matrix together = keys * s.transpose();
  bool equal = true;
  for (Eigen::Index t = 0; t < 10; ++t) {
    fraction_vector read(3);
    machine.read(span_of(keys.row(t)), {read.data(), 3});
    equal = equal && read == together.row(t).transpose();
  }
  return {{"equal", equal}, {"state_unchanged", state_of(machine.state()) == s}};
}

/// A causal average of width 7: it keeps a mean, and lowers a mean square of positive values.
claim_values averaging() {
  const fraction_vector k = sample_vector(60, 130);
  const auto averaged = [](Eigen::Index t, auto value) {
    rational sum = 0;
    for (Eigen::Index i = 0; i < 7; ++i) sum += value(t - i) / 7;
    return sum;
  };
  rational mean_after = 0;
  rational before = 0;
  rational after = 0;
  for (Eigen::Index t = 6; t < 12; ++t)
    mean_after += averaged(t, [](Eigen::Index s) { return 1 + fraction(s % 2 == 0 ? 1 : -1, 8); }) / 6;
  for (Eigen::Index t = 6; t < 60; ++t) {
    const rational mean = averaged(t, [&](Eigen::Index s) { return k[s] * k[s]; });
    after += mean * mean;
    before += averaged(t, [&](Eigen::Index s) { return k[s] * k[s] * k[s] * k[s]; });
  }
  return {{"mean_after_where_1_before", text_of(mean_after)}, {"mean_square_after_over_before", approximate(after / before)}};
}

}  // namespace

std::span<const claim_check> recall_checks() {
  static constexpr auto all =
      std::to_array<claim_check>({{"errors_of_relationships", claim_method::enclosure, errors_of_relationships},
                                  {"errors_over_length", claim_method::enclosure, errors_over_length},
                                  {"state_sizes", claim_method::enclosure, state_sizes},
                                  {"powers_of_a_key", claim_method::enclosure, powers_of_a_key},
                                  {"exponential_and_sine", claim_method::enclosure, exponential_and_sine},
                                  {"values_do_not_matter", exactly, values_do_not_matter},
                                  {"values_scale_the_state", exactly, values_scale_the_state},
                                  {"normalised_values", exactly, normalised_values},
                                  {"linear_fits", exactly, linear_fits},
                                  {"two_histories", exactly, two_histories},
                                  {"correlated_keys", exactly, correlated_keys},
                                  {"cost_a_step", exactly, cost_a_step},
                                  {"least_squares", exactly, least_squares},
                                  {"linear_attention_keeps_distances", exactly, linear_attention_keeps_distances},
                                  {"orthogonal_keys", exactly, orthogonal_keys},
                                  {"reads_together", exactly, reads_together},
                                  {"averaging", exactly, averaging}});
  return all;
}

}  // namespace deltaproof::claim_detail
