// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
//
// The theorems of proofs/theories/algebra on runs and chunks (wy, unit_lower, ut, ut_bounds, repeated_keys), asked of the
// library's WY form, inverses and chunkwise form: a test has the name of its theorem. Identities modulo 2^61 - 1, by
// the catalogue of tests/support where it has them; bounds in rationals; forward errors of substitutions in fp32, exactly.
#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <string_view>
#include <vector>

#include "deltaproof/algebra/triangular.hpp"
#include "deltaproof/number/modular.hpp"
#include "deltaproof/number/rational.hpp"
#include "deltaproof/scan/chunk_bounds.hpp"
#include "deltaproof/scan/chunkwise.hpp"
#include "deltaproof/scan/transition.hpp"
#include "deltaproof/scan/wy.hpp"
#include "support/identities/baseline.hpp"
#include "support/identities/chunk.hpp"
#include "support/identities/inverse.hpp"
#include "support/identities/step.hpp"
#include "support/identities/wy.hpp"
#include "support/sequence_generators.hpp"

namespace deltaproof {
namespace {

namespace dense = testing::dense;
using testing::library;
using modulo = library<modular>;

/// One identity of the catalogue on one drawn sequence, with gates of `kind` where one is named.
template <std::size_t N>
void catalogue(const testing::identity<modulo> (&part)[N], std::string_view name, const decay_kind* kind = nullptr) {
  const auto found = std::find_if(std::begin(part), std::end(part), [name](const auto& each) { return each.name == name; });
  RC_ASSERT(found != std::end(part));
  auto recipe = *testing::recipes(found->limits);
  if (kind != nullptr) recipe.decays = *kind;
  RC_ASSERT(found->holds({}, recipe));
}

template <std::size_t N>
void catalogue(const testing::identity<modulo> (&part)[N], std::string_view name, decay_kind kind) {
  catalogue(part, name, &kind);
}

rational absolute(const rational& x) { return x < 0 ? rational(-x) : x; }
rational squared(const rational& x) { return x * x; }
rational squared_norm(const std::vector<rational>& x) { return dense::inner(x, x); }

/// Any number of [low, high], whatever the size RapidCheck is at.
int any(int low, int high) { return *rc::gen::resize(rc::kNominalSize, rc::gen::inRange(low, high + 1)); }

template <class S>
sequence<S> any_chunk(std::size_t tokens, const decay_kind* kind = nullptr) {
  auto recipe = *testing::recipes({.tokens = tokens, .steps_per_token = 2, .key_dim = 4, .value_dim = 2});
  recipe.tokens = std::max<std::size_t>(recipe.tokens, 1);
  if (kind != nullptr) recipe.decays = *kind;
  return testing::make_sequence<S>(recipe);
}

inverse_method any_inverse() {
  testing::recipe_stream stream(*rc::gen::arbitrary<std::uint64_t>());
  return testing::any_method(stream);
}

template <class S>
chunkwise_stages<S, S> one_chunk(const sequence<S>& s, const inverse_method& method = inverse_named("forward")) {
  return chunkwise<plain<S>>(s, s.rows(), method);
}

// ---- wy

RC_GTEST_PROP(algebra_wy, wy_transition, ()) { catalogue(testing::wy_identities<modulo>, "wy_transition"); }
RC_GTEST_PROP(algebra_wy, wy_write, ()) { catalogue(testing::wy_identities<modulo>, "wy_write"); }
RC_GTEST_PROP(algebra_wy, w_recursion, ()) { catalogue(testing::wy_identities<modulo>, "wy_rows"); }
RC_GTEST_PROP(algebra_wy, u_recursion, ()) { catalogue(testing::wy_identities<modulo>, "wy_rows"); }
RC_GTEST_PROP(algebra_wy, state_is_affine, ()) { catalogue(testing::chunk_identities<modulo>, "linear_in_v_and_start"); }
RC_GTEST_PROP(algebra_wy, wy_state, ()) { catalogue(testing::wy_identities<modulo>, "wy_apply"); }
RC_GTEST_PROP(algebra_wy, wy_output, ()) { catalogue(testing::wy_identities<modulo>, "recurrence_output"); }
RC_GTEST_PROP(algebra_wy, run_cut, ()) { catalogue(testing::wy_identities<modulo>, "wy_runs"); }
RC_GTEST_PROP(algebra_wy, negative_eigenvalue_conventions, ()) {
  catalogue(testing::baseline_identities<modulo>, "negative_eigenvalues");
}
RC_GTEST_PROP(algebra_wy, delta_rule_row, ()) { catalogue(testing::step_identities<modulo>, "gradient_step"); }
RC_GTEST_PROP(algebra_wy, ungated_overlap, ()) { catalogue(testing::chunk_identities<modulo>, "chunk_A", decay_kind::none); }
RC_GTEST_PROP(algebra_wy, scalar_gate_overlap, ()) {
  catalogue(testing::chunk_identities<modulo>, "chunk_A", decay_kind::per_token);
}
RC_GTEST_PROP(algebra_wy, channel_gate_overlap, ()) {
  catalogue(testing::chunk_identities<modulo>, "chunk_A", decay_kind::per_channel);
}

// The recursion and the inverse are two algorithms for the same w and u.
RC_GTEST_PROP(algebra_wy, wy_recursion_unique, ()) {
  const auto s = any_chunk<modular>(10);
  const auto form = wy_recursion(s, 0, s.rows());
  const auto stages = one_chunk(s, any_inverse());
  RC_ASSERT(form.w == stages.w);
  RC_ASSERT(form.u == stages.u);
}

RC_GTEST_PROP(algebra_wy, wy_correction, ()) {
  const auto s = any_chunk<modular>(8);
  const auto form = wy_recursion(s, 0, s.rows());
  const auto states = dense::states(s);
  for (std::size_t r = 0; r < s.rows(); ++r) {
    const auto taken = dense::read(dense::start(s), dense::row_of(form.w, r));
    const auto predicted = dense::read(states[r], dense::decayed(s, r, r, dense::key(s, r)));
    for (std::size_t c = 0; c < s.value_dim; ++c) {
      RC_ASSERT(form.u(r, c) - taken[c] == s.step[r] * (dense::value(s, r)[c] - predicted[c]));
    }
  }
}

// Rows from a token on are rows from 0 of the sequence that starts there.
RC_GTEST_PROP(algebra_wy, run_shift, ()) {
  const auto s = any_chunk<modular>(8);
  const auto cut = static_cast<std::size_t>(any(0, static_cast<int>(s.tokens)));
  auto tail = sequence<modular>::zeros(s.tokens - cut, s.steps_per_token, s.key_dim, s.value_dim, s.decays());
  const auto last = [](const std::vector<modular>& from, std::vector<modular>& to) {
    to.assign(from.end() - static_cast<std::ptrdiff_t>(to.size()), from.end());
  };
  last(s.k, tail.k);
  last(s.v, tail.v);
  last(s.step, tail.step);
  if (!s.decay.empty()) tail.decay.resize((s.tokens - cut) * (s.decay.size() / s.tokens));
  last(s.decay, tail.decay);
  const auto here = wy_recursion(s, cut * s.steps_per_token, tail.rows());
  const auto there = wy_recursion(tail, 0, tail.rows());
  RC_ASSERT(here.w == there.w);
  RC_ASSERT(here.u == there.u);
  RC_ASSERT(here.keys == there.keys);
  RC_ASSERT(wy_transition(here) == wy_transition(there));
}

TEST(algebra_wy, decay_zero_instance) {
  auto s = sequence<rational>::zeros(2, 1, 1, 1, decay_kind::per_token);
  s.k = {1, 1};
  s.v = {1, 1};
  s.step = {1, 1};
  s.decay = {1, 0};
  s.initial_state(0, 0) = 7;
  const auto form = wy_recursion(s, 0, 2);
  EXPECT_EQ(form.w(0, 0), 1);
  EXPECT_EQ(form.w(1, 0), 0);
  EXPECT_EQ(wy_apply(form, s.initial_state)(0, 0), 1);
}

// ---- unit_lower

RC_GTEST_PROP(algebra_unit_lower, unit_lower_invertible, ()) {
  catalogue(testing::inverse_identities<modulo>, "inverse_right");
  catalogue(testing::inverse_identities<modulo>, "inverse_left");
}
RC_GTEST_PROP(algebra_unit_lower, strictly_lower_nilpotent, ()) { catalogue(testing::inverse_identities<modulo>, "nilpotent"); }
RC_GTEST_PROP(algebra_unit_lower, doubling_sums_powers, ()) { catalogue(testing::inverse_identities<modulo>, "doubling"); }
RC_GTEST_PROP(algebra_unit_lower, neumann_series, ()) { catalogue(testing::inverse_identities<modulo>, "neumann_finite"); }
RC_GTEST_PROP(algebra_unit_lower, two_by_two_blocks, ()) { catalogue(testing::inverse_identities<modulo>, "two_by_two_blocks"); }
RC_GTEST_PROP(algebra_unit_lower, block_recursion, ()) { catalogue(testing::inverse_identities<modulo>, "general_blocks"); }

template <class S>
matrix<S> any_lower(std::size_t rows) {
  matrix<S> lower(rows, rows);
  for (std::size_t i = 0; i < rows; ++i) {
    for (std::size_t j = 0; j < i; ++j) lower(i, j) = from_int<S>(any(-9, 9));
  }
  return lower;
}

RC_GTEST_PROP(algebra_unit_lower, forward_substitution, ()) {
  const auto lower = any_lower<modular>(static_cast<std::size_t>(any(1, 12)));
  const auto x = run_inverse<plain<modular>>(any_inverse(), lower);
  for (std::size_t r = 0; r < x.rows(); ++r) {
    for (std::size_t c = 0; c < x.cols(); ++c) {
      modular want(r == c ? 1 : 0);
      for (std::size_t j = 0; j < r; ++j) want -= lower(r, j) * x(j, c);
      RC_ASSERT(x(r, c) == want);
    }
  }
}

RC_GTEST_PROP(algebra_unit_lower, doubling_inverts, ()) {
  const auto lower = any_lower<modular>(static_cast<std::size_t>(any(1, 17)));
  RC_ASSERT(run_inverse<plain<modular>>(inverse_named("neumann"), lower) ==
            run_inverse<plain<modular>>(inverse_named("forward"), lower));
}

void triangular_result() {
  const auto lower = any_lower<modular>(static_cast<std::size_t>(any(1, 17)));
  const auto x = run_inverse<plain<modular>>(any_inverse(), lower);
  for (std::size_t i = 0; i < x.rows(); ++i) {
    RC_ASSERT(x(i, i) == modular(1));
    for (std::size_t j = i + 1; j < x.cols(); ++j) RC_ASSERT(x(i, j) == modular(0));
  }
}
RC_GTEST_PROP(algebra_unit_lower, block_inverse_lower, ()) { triangular_result(); }
RC_GTEST_PROP(algebra_unit_lower, block_inverse_diagonal, ()) { triangular_result(); }

// The shift by one row: its power C - 1 is the last that an algorithm may not leave out.
TEST(algebra_unit_lower, nilpotency_is_sharp) {
  for (const std::size_t rows : {2U, 3U, 8U, 9U, 33U}) {
    matrix<rational> shift(rows, rows);
    for (std::size_t i = 1; i < rows; ++i) shift(i, i - 1) = 1;
    for (const auto& [name, method, what] : inverse_methods) {
      EXPECT_EQ(run_inverse<plain<rational>>(method, shift)(rows - 1, 0), rows % 2 == 0 ? -1 : 1) << name << " " << what;
    }
  }
}

// ---- ut

RC_GTEST_PROP(algebra_ut, chunk_solution, ()) { catalogue(testing::wy_identities<modulo>, "ut_recursion"); }
RC_GTEST_PROP(algebra_ut, chunk_w_rows, ()) { catalogue(testing::chunk_identities<modulo>, "chunk_w"); }
RC_GTEST_PROP(algebra_ut, chunk_u_rows, ()) { catalogue(testing::chunk_identities<modulo>, "chunk_u"); }
RC_GTEST_PROP(algebra_ut, chunk_v_new_rows, ()) { catalogue(testing::chunk_identities<modulo>, "chunk_v_new"); }
RC_GTEST_PROP(algebra_ut, chunk_state, ()) { catalogue(testing::chunk_identities<modulo>, "chunk_h"); }
RC_GTEST_PROP(algebra_ut, chunk_output, ()) { catalogue(testing::chunk_identities<modulo>, "chunk_o"); }
RC_GTEST_PROP(algebra_ut, chunk_Ai_unique, ()) { catalogue(testing::inverse_identities<modulo>, "inverses_equal"); }
RC_GTEST_PROP(algebra_ut, ut_w, ()) { catalogue(testing::wy_identities<modulo>, "ut_transform", decay_kind::none); }
RC_GTEST_PROP(algebra_ut, ut_u, ()) { catalogue(testing::wy_identities<modulo>, "ut_transform", decay_kind::none); }
RC_GTEST_PROP(algebra_ut, ut_state, ()) { catalogue(testing::chunk_identities<modulo>, "chunkwise_recurrent", decay_kind::none); }
RC_GTEST_PROP(algebra_ut, ut_output, ()) {
  catalogue(testing::chunk_identities<modulo>, "chunkwise_recurrent", decay_kind::none);
}

// ---- ut_bounds

RC_GTEST_PROP(algebra_ut_bounds, inverse_entry, ()) {
  const auto s = any_chunk<modular>(5);
  const auto stages = one_chunk(s, any_inverse());
  for (std::size_t r = 0; r < s.rows(); ++r) {
    for (std::size_t j = 0; j < r; ++j) {
      // -k_j^T (transition of the rows between) D_r b_r k_r, states (K, V): read from the left
      const auto between = dense::turned(exact_transition(s, j + 1, r - j - 1));
      auto x = dense::decayed(s, r, r, dense::key(s, r));
      for (modular& entry : x) entry = s.step[r] * entry;
      const auto moved = dense::times(between, matrix<modular>(x.size(), 1, x));
      RC_ASSERT(stages.Ai(r, j) == -dense::inner(dense::key(s, j), dense::row_of(dense::turned(moved), 0)));
    }
    RC_ASSERT(stages.Ai(r, r) == modular(1));
  }
}

/// One chunk in rationals with decays in [-1, 1], the factors of its rows, and the largest step and key.
struct bounded_chunk {
  sequence<rational> s;
  chunkwise_stages<rational, rational> stages;
  std::vector<rational> norm, rho;  // |k_r|^2 and max(1, |1 - b_r |k_r|^2|)
  rational beta, key, scale, growth;

  explicit bounded_chunk(bool stable = false, const rational& key_scale = 1) : s{any_chunk<rational>(5)} {
    for (rational& x : s.k) x *= key_scale;
    for (rational& a : s.decay) a = rational(any(-4, 4)) / 4;
    for (std::size_t r = 0; r < s.rows(); ++r) {
      norm.push_back(squared_norm(dense::key(s, r)));
      s.step[r] =
          stable ? rational(norm[r] == 0 ? rational(2) : rational(rational(any(0, 16)) / (8 * norm[r]))) : absolute(s.step[r]);
      rho.push_back(std::max(rational(1), absolute(rational(1 - s.step[r] * norm[r]))));
      beta = std::max(beta, s.step[r]);
      key = std::max(key, norm[r]);
    }
    scale = beta * key;
    growth = std::max(rational(1), rational(scale - 1));
    stages = one_chunk(s);
  }
  /// The factors of rows first .. end - 1.
  [[nodiscard]] rational factors(std::size_t first, std::size_t end) const {
    rational result = 1;
    for (std::size_t t = first; t < end; ++t) result *= rho[t];
    return result;
  }
  /// 1 + scale (1 + growth + ... + growth^(r-1)).
  [[nodiscard]] rational row_bound(std::size_t r) const {
    rational sum = 0;
    rational power = 1;
    for (std::size_t m = 0; m < r; ++m, power *= growth) sum += power;
    return 1 + scale * sum;
  }
};

RC_GTEST_PROP(algebra_ut_bounds, w_norm, ()) {
  const bounded_chunk c;
  RC_CLASSIFY(c.factors(0, c.s.rows()) > 1);
  for (std::size_t r = 0; r < c.s.rows(); ++r) {
    RC_ASSERT(squared_norm(dense::row_of(c.stages.w, r)) <=
              rational(squared(rational(c.s.step[r] * c.factors(0, r))) * c.norm[r]));
  }
}

RC_GTEST_PROP(algebra_ut_bounds, inverse_entry_bound, ()) {
  const bounded_chunk c;
  for (std::size_t r = 0; r < c.s.rows(); ++r) {
    for (std::size_t j = 0; j < r; ++j) {
      RC_ASSERT(squared(c.stages.Ai(r, j)) <=
                rational(squared(rational(c.s.step[r] * c.factors(j + 1, r))) * c.norm[r] * c.norm[j]));
    }
  }
}

RC_GTEST_PROP(algebra_ut_bounds, t_entry_bound, ()) {
  const bounded_chunk c;
  for (std::size_t r = 0; r < c.s.rows(); ++r) {
    for (std::size_t j = 0; j < r; ++j) {
      const rational t = c.stages.Ai(r, j) * c.s.step[j];
      RC_ASSERT(squared(t) <=
                rational(squared(rational(c.s.step[r] * c.s.step[j] * c.factors(j + 1, r))) * c.norm[r] * c.norm[j]));
    }
  }
}

RC_GTEST_PROP(algebra_ut_bounds, t_entry_bound_stable, ()) {
  const bounded_chunk c(true);
  RC_ASSERT(c.factors(0, c.s.rows()) == 1);
  for (std::size_t r = 0; r < c.s.rows(); ++r) {
    for (std::size_t j = 0; j < r; ++j) {
      const rational t = c.stages.Ai(r, j) * c.s.step[j];
      RC_ASSERT(squared(t) <= rational(squared(rational(c.s.step[r] * c.s.step[j])) * c.norm[r] * c.norm[j]));
    }
  }
}

RC_GTEST_PROP(algebra_ut_bounds, t_diagonal, ()) {
  const bounded_chunk c;
  for (std::size_t r = 0; r < c.s.rows(); ++r) RC_ASSERT(rational(c.stages.Ai(r, r) * c.s.step[r]) == c.s.step[r]);
}

RC_GTEST_PROP(algebra_ut_bounds, inverse_entry_growth, ()) {
  const bounded_chunk c;
  for (std::size_t r = 0; r < c.s.rows(); ++r) {
    rational bound = c.scale;
    for (std::size_t j = r; j-- > 0; bound *= c.growth) RC_ASSERT(absolute(c.stages.Ai(r, j)) <= bound);
  }
}

RC_GTEST_PROP(algebra_ut_bounds, overlap_bound, ()) {
  const bounded_chunk c;
  for (const rational& x : c.stages.A.entries()) RC_ASSERT(absolute(x) <= c.scale);
}

rational absolute_sum(const matrix<rational>& m, std::size_t r) {
  rational sum = 0;
  for (const rational& x : m.row(r)) sum += absolute(x);
  return sum;
}

RC_GTEST_PROP(algebra_ut_bounds, inverse_row_sum, ()) {
  const bounded_chunk c;
  for (std::size_t r = 0; r < c.s.rows(); ++r) RC_ASSERT(absolute_sum(c.stages.Ai, r) <= c.row_bound(r));
}

RC_GTEST_PROP(algebra_ut_bounds, overlap_row_sum, ()) {
  const bounded_chunk c;
  for (std::size_t r = 0; r < c.s.rows(); ++r)
    RC_ASSERT(rational(1 + absolute_sum(c.stages.A, r)) <= rational(1 + c.scale * static_cast<int>(r)));
}

RC_GTEST_PROP(algebra_ut_bounds, condition_bound, ()) {
  const bounded_chunk c;
  const auto last = static_cast<int>(c.s.rows() - 1);
  rational of_sum = 0;
  rational of_inverse = 0;
  for (std::size_t r = 0; r < c.s.rows(); ++r) {
    of_sum = std::max(of_sum, rational(1 + absolute_sum(c.stages.A, r)));
    of_inverse = std::max(of_inverse, absolute_sum(c.stages.Ai, r));
  }
  RC_ASSERT(rational(of_sum * of_inverse) <= rational((1 + c.scale * last) * c.row_bound(c.s.rows() - 1)));
}

/// A chunk whose inverse is computed in fp32 by forward substitution, and what that leaves: Z, (I + A) Z - I, Z - Ai. Keys
/// are sevenths, so that most operations round.
struct rounded_inverse {
  bounded_chunk c{false, rational(3) / 7};
  matrix<rational> z, residual, error;

  rounded_inverse() {
    matrix<float> lower(c.s.rows(), c.s.rows());
    for (std::size_t i = 0; i < lower.size(); ++i) lower.data()[i] = round_to<float>(c.stages.A.data()[i]);
    const auto computed = run_inverse<plain<float>>(inverse_named("forward"), lower);
    z = matrix<rational>(lower.rows(), lower.rows());
    for (std::size_t i = 0; i < z.size(); ++i) z.data()[i] = exact(static_cast<double>(computed.data()[i]));
    const auto unit = dense::unit<rational>(lower.rows());
    residual = dense::difference(dense::times(dense::sum(unit, c.stages.A), z), unit);
    error = dense::difference(z, c.stages.Ai);
  }
};

RC_GTEST_PROP(algebra_ut_bounds, forward_error, ()) {
  const rounded_inverse run;
  rational eps = 0;
  for (const rational& x : run.residual.entries()) eps = std::max(eps, absolute(x));
  RC_CLASSIFY(eps > 0);
  for (std::size_t r = 0; r < run.z.rows(); ++r) {
    for (const rational& x : run.error.row(r)) RC_ASSERT(absolute(x) <= rational(eps * run.c.row_bound(r)));
  }
}

/// Keys of length at most 1 + delta for a rational delta, steps in [0, 2], inverses in fp32: row sums of the errors against
/// eps (1 + 2 (1 + delta)^2 (1 + rho + ...)).
void forward_error_of_keys(const rational& length) {
  rounded_inverse run;
  RC_PRE(run.c.beta <= 2 && run.c.key <= rational(length * length));
  rational eps = 0;
  for (const rational& x : run.residual.entries()) eps = std::max(eps, absolute(x));
  const rational rho = 2 * length * length - 1;
  rational sum = 0;
  rational rho_power = 1;
  for (std::size_t r = 0; r < run.z.rows(); ++r) {
    for (const rational& x : run.error.row(r)) RC_ASSERT(absolute(x) <= rational(eps * (1 + 2 * length * length * sum)));
    sum += rho_power;
    rho_power *= rho;
  }
  RC_CLASSIFY(eps > 0);
}

RC_GTEST_PROP(algebra_ut_bounds, forward_error_nearly_unit_keys, ()) {
  forward_error_of_keys(rational(*rc::gen::element(33, 40, 64)) / 32);
}
RC_GTEST_PROP(algebra_ut_bounds, forward_error_unit_keys, ()) { forward_error_of_keys(1); }

// h, the smallest factor with |E| <= h max |Z| column by column, measured; then the conclusion without Z.
RC_GTEST_PROP(algebra_ut_bounds, forward_error_a_priori, ()) {
  const rounded_inverse run;
  const std::size_t rows = run.z.rows();
  for (std::size_t c = 0; c < rows; ++c) {
    rational largest = 0, eps = 0, m = 0;
    for (std::size_t r = 0; r < rows; ++r) {
      largest = std::max(largest, absolute(run.z(r, c)));
      eps = std::max(eps, absolute(run.residual(r, c)));
      m = std::max(m, absolute(run.c.stages.Ai(r, c)));
    }
    const rational q = eps / largest * run.c.row_bound(rows - 1);
    RC_PRE(q < 1);
    RC_ASSERT(largest <= rational(m / (1 - q)));
    for (std::size_t r = 0; r < rows; ++r) RC_ASSERT(absolute(run.error(r, c)) <= rational(q * m / (1 - q)));
  }
}

RC_GTEST_PROP(algebra_ut_bounds, substitution_forward_error, ()) {
  const rounded_inverse run;
  const std::size_t rows = run.z.rows();
  for (std::size_t c = 0; c < rows; ++c) {
    rational g = 0, m = 0;
    for (std::size_t r = 0; r < rows; ++r) {
      rational size = absolute(run.z(r, c));
      for (std::size_t j = 0; j < r; ++j) size += absolute(rational(run.c.stages.A(r, j) * run.z(j, c)));
      if (size == 0) RC_ASSERT(run.residual(r, c) == 0);
      if (size != 0) g = std::max(g, rational(absolute(run.residual(r, c)) / size));
      m = std::max(m, absolute(run.c.stages.Ai(r, c)));
    }
    const rational q = g * (1 + run.c.scale * static_cast<int>(rows - 1)) * run.c.row_bound(rows - 1);
    RC_ASSERT(g <= rational(2 * static_cast<int>(rows)) / (1 << 24));  // rounding A and substituting: a few units
    RC_PRE(q < 1);
    for (std::size_t r = 0; r < rows; ++r) RC_ASSERT(absolute(run.error(r, c)) <= rational(q * m / (1 - q)));
  }
}

RC_GTEST_PROP(algebra_ut_bounds, perturbed_forward_error, ()) {
  const bounded_chunk c;
  const std::size_t rows = c.s.rows();
  const rational tau = rational(1) / (1 << any(6, 20));
  auto perturbed = c.stages.A;
  for (std::size_t i = 0; i < rows; ++i) {
    for (std::size_t j = 0; j < i; ++j) perturbed(i, j) += tau * any(-2, 2) / 2;
  }
  const rational q = tau * static_cast<int>(rows - 1) * c.row_bound(rows - 1);
  RC_PRE(q < 1);
  const auto z = run_inverse<plain<rational>>(any_inverse(), perturbed);
  for (std::size_t col = 0; col < rows; ++col) {
    rational m = 0;
    for (std::size_t r = 0; r < rows; ++r) m = std::max(m, absolute(c.stages.Ai(r, col)));
    for (std::size_t r = 0; r < rows; ++r) {
      RC_ASSERT(absolute(rational(z(r, col) - c.stages.Ai(r, col))) <= rational(q * m / (1 - q)));
      RC_ASSERT(absolute(z(r, col)) <= rational(m / (1 - q)));
    }
  }
}

// ---- repeated_keys

sequence<rational> equal_keys(std::size_t rows, const rational& b) {
  auto s = sequence<rational>::zeros(rows, 1, 2, 1);
  for (std::size_t r = 0; r < rows; ++r) {
    s.k[2 * r] = rational(3) / 5;
    s.k[2 * r + 1] = rational(4) / 5;
    s.step[r] = b;
  }
  return s;
}

rational binomial(std::size_t n, std::size_t p) {
  rational result = p > n ? 0 : 1;
  for (std::size_t i = 0; p <= n && i < p; ++i) result = result * static_cast<int>(n - i) / static_cast<int>(i + 1);
  return result;
}

rational power(const rational& x, std::size_t n) {
  rational result = 1;
  for (std::size_t i = 0; i < n; ++i) result *= x;
  return result;
}

// The powers that doubling shows: (-A)^1, (-A)^2, (-A)^4, ...
RC_GTEST_PROP(algebra_repeated_keys, powers_are_binomials, ()) {
  const auto rows = static_cast<std::size_t>(any(2, 20));
  const rational c = rational(any(-8, 16)) / 8;
  const auto lower = one_chunk(equal_keys(rows, c)).A;
  std::size_t p = 1;
  (void)run_inverse<plain<rational>>(inverse_named("neumann"), lower, [&](std::string_view stage, const matrix<rational>& m) {
    if (stage != "power") return;
    for (std::size_t i = 0; i < rows; ++i) {
      for (std::size_t j = 0; j < i; ++j) RC_ASSERT(m(i, j) == rational(power(rational(-c), p) * binomial(i - j - 1, p - 1)));
    }
    p *= 2;
  });
  RC_ASSERT(p >= rows);
}

TEST(algebra_repeated_keys, powers_are_binomials_instance) {
  rational largest = 0;
  const auto lower = one_chunk(equal_keys(16, 1)).A;
  const auto inverse =
      run_inverse<plain<rational>>(inverse_named("neumann"), lower, [&](std::string_view stage, const matrix<rational>& m) {
        for (const rational& x : m.entries()) largest = stage == "power" ? std::max(largest, absolute(x)) : largest;
      });
  EXPECT_EQ(largest, 3432);
  for (const rational& x : inverse.entries()) EXPECT_LE(absolute(x), 1);
}

RC_GTEST_PROP(algebra_repeated_keys, inverse_is_geometric, ()) {
  const auto rows = static_cast<std::size_t>(any(1, 20));
  const rational c = rational(any(-8, 24)) / 8;
  const auto stages = one_chunk(equal_keys(rows, c), any_inverse());
  for (std::size_t i = 0; i < rows; ++i) {
    for (std::size_t j = 0; j < i; ++j) RC_ASSERT(stages.Ai(i, j) == rational(-c * power(rational(1 - c), i - j - 1)));
  }
}

RC_GTEST_PROP(algebra_repeated_keys, equal_keys_overlaps, ()) {
  // k_r = common + a unit vector of its own: equal inner products, keys that differ.
  const auto rows = static_cast<std::size_t>(any(1, 8));
  auto s = sequence<rational>::zeros(rows, 1, rows + 1, 1);
  const rational common = rational(any(-6, 6)) / 4;
  const rational b = rational(any(0, 16)) / 8;
  for (std::size_t r = 0; r < rows; ++r) {
    s.k[r * (rows + 1)] = common;
    s.k[r * (rows + 1) + r + 1] = 1;
    s.step[r] = b;
  }
  const auto stages = one_chunk(s);
  for (std::size_t i = 0; i < rows; ++i) {
    for (std::size_t j = 0; j < i; ++j) RC_ASSERT(stages.A(i, j) == rational(b * common * common));
  }
}

TEST(algebra_repeated_keys, inverse_bounds_attained) {
  const auto stages = one_chunk(equal_keys(64, 2));
  const chunk_bounds bounds = exact_chunk_bounds(2, 64);
  for (std::size_t i = 0; i < 64; ++i) {
    for (std::size_t j = 0; j < i; ++j) {
      EXPECT_EQ(absolute(stages.Ai(i, j)), rational(bounds.inverse_entry));
      EXPECT_EQ(absolute(rational(stages.Ai(i, j) * 2)), rational(bounds.t_entry));
    }
  }
}

// (I + A) Z = E with E along the signs of the last row of the inverse.
TEST(algebra_repeated_keys, forward_error_attained) {
  const std::size_t rows = 33;
  const auto stages = one_chunk(equal_keys(rows, 2));
  const rational eps = rational(1) / 1024;
  rational moved = 0;
  for (std::size_t j = 0; j < rows; ++j) moved += stages.Ai(rows - 1, j) * (stages.Ai(rows - 1, j) < 0 ? rational(-eps) : eps);
  EXPECT_EQ(moved, rational(eps * (2 * static_cast<int>(rows) - 1)));
}

TEST(algebra_repeated_keys, condition_attained) {
  for (const std::size_t rows : {1U, 2U, 17U, 64U}) {
    const auto stages = one_chunk(equal_keys(rows, 2));
    EXPECT_EQ(absolute_sum(stages.Ai, rows - 1), rational(2 * static_cast<int>(rows) - 1));
    EXPECT_EQ(rational((1 + absolute_sum(stages.A, rows - 1)) * absolute_sum(stages.Ai, rows - 1)),
              rational(exact_chunk_bounds(2, rows).condition));
  }
}

// Ai of one repeated key stored in bf16: the eigenvalue along the key, 1 - x sum Ai_ij, from the stored bits.
RC_GTEST_PROP(algebra_repeated_keys, stored_inverse_moves_eigenvalue, ()) {
  const auto rows = static_cast<std::size_t>(any(1, 24));
  const rational x = 1 + rational(any(0, 127)) / 128;
  const auto stages = one_chunk(equal_keys(rows, x));
  rational exact_sum = 0;
  rational stored_sum = 0;
  for (const rational& entry : stages.Ai.entries()) {
    exact_sum += entry;
    stored_sum += lift<rational>(round_to<rounded<bf16>>(entry));
  }
  const rational u = rational(1) / 256;
  RC_CLASSIFY(stored_sum != exact_sum);
  RC_ASSERT(absolute(rational(x * (stored_sum - exact_sum))) <= rational(static_cast<int>(rows) * u * x * x / (2 - x)));
}

}  // namespace
}  // namespace deltaproof
