// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
//
// The bounds of proofs/notes/chunk-bounds.md from both sides: they hold in exact rationals on unit keys of any kind, they
// are attained, and after rounding they still hold.
#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <iostream>
#include <limits>
#include <vector>

#include "deltaproof/number/rational.hpp"
#include "deltaproof/scan/chunk_bounds.hpp"
#include "deltaproof/scan/chunkwise.hpp"
#include "deltaproof/scan/wy.hpp"
#include "support/sequence_generators.hpp"

namespace deltaproof {
namespace {

constexpr const char* forward = "forward";

rational squared(const rational& x) { return x * x; }
rational magnitude_of(const rational& x) { return x < 0 ? rational(-x) : x; }

// e_m - 2 v v_m / |v|^2: the reflection of a coordinate vector, a rational unit vector.
std::vector<rational> unit_vector(std::vector<int> v, std::size_t m) {
  rational norm = 0;
  for (const int x : v) norm += x * x;
  std::vector<rational> key(v.size());
  for (std::size_t c = 0; c < v.size(); ++c) key[c] = rational(c == m ? 1 : 0) - rational(2 * v[c] * v[m]) / norm;
  return key;
}

enum class unit_keys { generic, one_key, alternating, near_parallel };

struct bound_case {
  sequence<rational> s;
  rational beta;  // largest step allowed
};

// One chunk of unit keys with steps in [0, beta] and decays in [0, 1].
bound_case draw_case() {
  const auto in = [](int low, int high) { return *rc::gen::resize(rc::kNominalSize, rc::gen::inRange(low, high + 1)); };
  const auto regime = static_cast<unit_keys>(in(0, 3));
  const auto rows = static_cast<std::size_t>(in(1, 10));
  const auto key_dim = static_cast<std::size_t>(in(1, 4));
  const rational beta = rational(in(1, 4)) / 2;
  const bool largest_steps = in(0, 2) == 0;
  auto s = sequence<rational>::zeros(rows, 1, key_dim, 2, static_cast<decay_kind>(in(0, 2)));
  std::vector<int> base(key_dim);
  const auto reflect = [&](int size) {
    std::vector<int> v(key_dim);
    for (int& x : v) x = in(-size, size);
    if (std::all_of(v.begin(), v.end(), [](int x) { return x == 0; })) v[0] = 1;
    return v;
  };
  const std::vector<int> shared = reflect(3);
  for (std::size_t r = 0; r < rows; ++r) {
    std::vector<int> v = shared;
    if (regime == unit_keys::generic) v = reflect(3);
    if (regime == unit_keys::near_parallel) {
      for (std::size_t c = 0; c < key_dim; ++c) v[c] = 20 * shared[c] + in(-1, 1);
    }
    const std::vector<rational> key = unit_vector(v, 0);
    const bool flip = regime == unit_keys::alternating && r % 2 == 1;
    for (std::size_t c = 0; c < key_dim; ++c) s.k[r * key_dim + c] = flip ? rational(-key[c]) : key[c];
    s.step[r] = largest_steps ? beta : rational(beta * in(0, 4) / 4);
  }
  for (rational& x : s.decay) x = rational(in(0, 4)) / 4;
  return {std::move(s), beta};
}

rational row_sum(const matrix<rational>& m, std::size_t r) {
  rational sum = 0;
  for (const rational& x : m.row(r)) sum += magnitude_of(x);
  return sum;
}

TEST(chunk_bounds_property, hold_in_rationals_on_unit_keys) {
  testing::check_property(1500, 71, [] {
    const auto [s, beta] = draw_case();
    const std::size_t rows = s.rows();
    const auto limits = exact_chunk_bounds(round_to<double>(beta), rows);  // beta is a multiple of 1/2
    const auto stages = chunkwise<plain<rational>>(s, rows, inverse_named(forward));
    rational largest_i_plus_l = 0;
    rational largest_inverse = 0;
    for (std::size_t r = 0; r < rows; ++r) {
      for (std::size_t j = 0; j < r; ++j) {
        RC_ASSERT(magnitude_of(stages.Ai(r, j)) <= s.step[r]);                                              // B1
        RC_ASSERT(magnitude_of(rational(stages.Ai(r, j) * s.step[j])) <= rational(s.step[r] * s.step[j]));  // B2
        RC_ASSERT(round_to<double>(magnitude_of(stages.Ai(r, j))) <= limits.inverse_entry);
        RC_ASSERT(round_to<double>(magnitude_of(rational(stages.Ai(r, j) * s.step[j]))) <= limits.t_entry);
      }
      rational norm = 0;
      for (const rational& x : stages.w.row(r)) norm += squared(x);
      RC_ASSERT(norm <= squared(s.step[r]));  // B3
      largest_i_plus_l = std::max(largest_i_plus_l, rational(1 + row_sum(stages.A, r)));
      largest_inverse = std::max(largest_inverse, row_sum(stages.Ai, r));
    }
    RC_ASSERT(rational(largest_i_plus_l * largest_inverse) <= squared(rational(1 + beta * static_cast<int>(rows - 1))));  // B5
    const matrix<rational> p = wy_transition(wy_recursion(s, 0, rows));
    for (int probe = 0; probe < 3; ++probe) {  // B4
      rational before = 0;
      rational after = 0;
      std::vector<rational> x(s.key_dim);
      for (rational& entry : x) entry = *rc::gen::inRange(-4, 5);
      for (std::size_t a = 0; a < s.key_dim; ++a) {
        rational sum = 0;
        for (std::size_t c = 0; c < s.key_dim; ++c) sum += p(a, c) * x[c];
        after += squared(sum);
        before += squared(x[a]);
      }
      RC_ASSERT(after <= before);
    }
  });
}

// B1 and B3 for any keys and steps, the factors rho carried.
TEST(chunk_bounds_property, hold_with_expansive_steps_carried) {
  testing::check_property(600, 72, [] {
    auto recipe = *testing::recipes({.tokens = 8, .steps_per_token = 2, .key_dim = 4, .value_dim = 2, .chunk = 64});
    recipe.step_from = 0;
    const auto s = testing::make_sequence<rational>(recipe);
    const std::size_t rows = std::min(recipe.chunk, s.rows());
    const auto stages = chunkwise<plain<rational>>(s, recipe.chunk, inverse_named(forward));
    std::vector<rational> norm(rows);
    std::vector<rational> rho(rows);
    bool expansive = false;
    for (std::size_t r = 0; r < rows; ++r) {
      for (const rational& x : s.k_row(r)) norm[r] += squared(x);
      rho[r] = std::max(rational(1), magnitude_of(rational(1 - s.step[r] * norm[r])));
      expansive = expansive || rho[r] > 1;
    }
    RC_CLASSIFY(expansive, "with an expansive step");
    for (std::size_t r = 0; r < rows; ++r) {
      rational factors = 1;
      for (std::size_t j = r; j-- > 0;) {
        RC_ASSERT(squared(stages.Ai(r, j)) <= rational(squared(s.step[r]) * norm[r] * norm[j] * squared(factors)));
        factors *= rho[j];
      }
      rational w_norm = 0;
      for (const rational& x : stages.w.row(r)) w_norm += squared(x);
      RC_ASSERT(w_norm <= rational(squared(s.step[r]) * norm[r] * squared(factors)));
    }
  });
}

// One unit key, repeated, every step 2: entries +-2 and +-4, |w| = 2, kappa = (2C - 1)^2.
TEST(chunk_bounds_property, are_attained_by_one_key_and_steps_of_two) {
  for (const std::size_t rows : {1U, 2U, 3U, 16U, 64U}) {
    auto s = sequence<rational>::zeros(rows, 1, 3, 1);
    const auto key = unit_vector({1, 2, 3}, 0);
    for (std::size_t r = 0; r < rows; ++r) {
      std::copy(key.begin(), key.end(), s.k.begin() + static_cast<std::ptrdiff_t>(3 * r));
      s.step[r] = 2;
    }
    const auto limits = exact_chunk_bounds(2, rows);
    const auto stages = chunkwise<plain<rational>>(s, rows, inverse_named(forward));
    for (std::size_t r = 0; r < rows; ++r) {
      for (std::size_t j = 0; j < r; ++j) EXPECT_EQ(magnitude_of(stages.Ai(r, j)), rational(limits.inverse_entry));
      rational norm = 0;
      for (const rational& x : stages.w.row(r)) norm += squared(x);
      EXPECT_EQ(norm, squared(rational(limits.w_norm)));
    }
    if (rows > 1) {
      EXPECT_EQ(magnitude_of(rational(stages.Ai(1, 0) * s.step[0])), rational(limits.t_entry));
    }
    rational largest_i_plus_l = 0;
    rational largest_inverse = 0;
    for (std::size_t r = 0; r < rows; ++r) {
      largest_i_plus_l = std::max(largest_i_plus_l, rational(1 + row_sum(stages.A, r)));
      largest_inverse = std::max(largest_inverse, row_sum(stages.Ai, r));
    }
    EXPECT_EQ(rational(largest_i_plus_l * largest_inverse), rational(limits.condition));
  }
}

TEST(chunk_bounds_property, are_attained_at_step_one_by_neighbours) {
  auto s = sequence<rational>::zeros(8, 1, 1, 1);
  for (rational& x : s.k) x = 1;
  for (rational& x : s.step) x = 1;
  const auto stages = chunkwise<plain<rational>>(s, 8, inverse_named(forward));
  for (std::size_t r = 1; r < 8; ++r)
    EXPECT_EQ(magnitude_of(stages.Ai(r, r - 1)), rational(exact_chunk_bounds(1, 8).inverse_entry));
}

struct observed {
  double inverse_entry = 0;
  double w_norm = 0;
  double transition_norm = 0;  // from below: the largest |P x| / |x| seen
};

template <class A>
observed observe(const testing::sequence_recipe& recipe) {
  const auto s = testing::make_sequence<typename A::storage_type>(recipe);
  const auto stages = chunkwise<A>(s, s.rows(), inverse_named(forward));
  observed seen;
  for (const auto& x : stages.Ai.entries()) seen.inverse_entry = std::max(seen.inverse_entry, std::fabs(static_cast<double>(x)));
  for (std::size_t r = 0; r < s.rows(); ++r) {
    double norm = 0;
    for (const auto& x : stages.w.row(r)) norm += static_cast<double>(x) * static_cast<double>(x);
    seen.w_norm = std::max(seen.w_norm, std::sqrt(norm));
  }
  for (std::size_t probe = 0; probe < s.rows(); ++probe) {  // P k for each key
    double before = 0;
    std::vector<double> x(s.key_dim);
    for (std::size_t c = 0; c < s.key_dim; ++c) {
      x[c] = static_cast<double>(s.k_row(probe)[c]);
      before += x[c] * x[c];
    }
    std::vector<double> y = x;
    for (std::size_t r = 0; r < s.rows(); ++r) {
      double along = 0;
      for (std::size_t c = 0; c < s.key_dim; ++c) along += static_cast<double>(s.k_row(r)[c]) * x[c];
      for (std::size_t c = 0; c < s.key_dim; ++c) y[c] -= static_cast<double>(stages.w(r, c)) * along;
    }
    double after = 0;
    for (const double entry : y) after += entry * entry;
    seen.transition_norm = std::max(seen.transition_norm, std::sqrt(after / before));
  }
  return seen;
}

template <class A>
void holds_after_rounding(const char* name, const chunk_roundoffs& u, double attained_within) {
  double least_slack = 1e300;
  for (const auto regime : {testing::key_regime::unit_signs, testing::key_regime::hadamard}) {
    for (const std::size_t rows : {1U, 5U, 16U, 32U, 64U}) {
      for (std::uint64_t seed = 0; seed < scaled(6); ++seed) {
        testing::sequence_recipe recipe{.regime = regime,
                                        .seed = seed,
                                        .tokens = rows,
                                        .key_dim = seed % 2 == 0 ? std::size_t{16} : std::size_t{4},
                                        .value_dim = 1};
        recipe.step_from = seed % 3 == 0 ? 16 : 0;
        recipe.step_to = 16;
        const observed seen = observe<A>(recipe);
        const chunk_bounds limits = rounded_chunk_bounds(2, rows, recipe.key_dim, u);
        EXPECT_LE(seen.inverse_entry, limits.inverse_entry) << name << " " << recipe;
        EXPECT_LE(seen.w_norm, limits.w_norm * (1 + 0x1p-40)) << name << " " << recipe;
        EXPECT_LE(seen.transition_norm, limits.transition_norm * (1 + 0x1p-40)) << name << " " << recipe;
        if (rows == 64) least_slack = std::min(least_slack, limits.inverse_entry / seen.inverse_entry);
        if (rows == 64 && seed == 0) {
          std::cout << name << " C = 64: inverse " << seen.inverse_entry << " <= " << limits.inverse_entry << ", |w| "
                    << seen.w_norm << " <= " << limits.w_norm << ", |P| at least " << seen.transition_norm
                    << " <= " << limits.transition_norm << "\n";
        }
      }
    }
  }
  EXPECT_LE(least_slack, attained_within) << name;
}

TEST(chunk_bounds_property, hold_after_rounding) {
  using h = rounded<bf16>;
  using half = rounded<fp16>;
  constexpr double single = unit_roundoff(fp32);
  holds_after_rounding<plain<float>>("fp32", {single, single, single, single, single}, 1.2);
  holds_after_rounding<arithmetic<h, exact_product, float, sequential>>(
      "bf16, fp32 sums", {single, single, unit_roundoff(bf16), single, unit_roundoff(bf16)}, 1.2);
  holds_after_rounding<arithmetic<half, exact_product, float, sequential>>(
      "fp16, fp32 sums", {single, single, unit_roundoff(fp16), single, unit_roundoff(fp16)}, 1.2);
  holds_after_rounding<plain<double>>("fp64", {0x1p-53, 0x1p-53, 0x1p-53, 0x1p-53, 0x1p-53}, 1.0001);
}

TEST(chunk_bounds_property, refuse_what_they_do_not_cover) {
  EXPECT_THROW((void)exact_chunk_bounds(2.1, 4), domain_error);
  EXPECT_THROW((void)exact_chunk_bounds(-1, 4), domain_error);
  EXPECT_THROW((void)exact_chunk_bounds(std::nan(""), 4), domain_error);
  EXPECT_THROW((void)exact_chunk_bounds(1, 0), domain_error);
  EXPECT_THROW((void)rounded_chunk_bounds(1, 4, 4, {.store = 1}), domain_error);
  EXPECT_EQ(rounded_chunk_bounds(0, 512, 64, {.product = unit_roundoff(bf16)}).w_norm, std::numeric_limits<double>::infinity());
  EXPECT_EQ(rounded_chunk_bounds(2, 128, 128, {.substitution = unit_roundoff(bf16)}).inverse_entry,
            std::numeric_limits<double>::infinity());
}

}  // namespace
}  // namespace deltaproof
