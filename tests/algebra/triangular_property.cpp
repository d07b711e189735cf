// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
//
// What the inverses of I + L do in formats: exact where every intermediate is a short integer, within the bound of
// substitution elsewhere, blind to what they do not read and never blind to what they do. (Their identities in a ring
// are in the catalogue, tests/support/identities/inverse.hpp, and run with the chunkwise form's.)
#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "deltaproof/algebra/growth.hpp"
#include "deltaproof/algebra/triangular.hpp"
#include "deltaproof/number/rational.hpp"
#include "support/identities/identity.hpp"
#include "support/sequence_generators.hpp"

namespace deltaproof {
namespace {

using half = rounded<bf16>;
using testing::check_property;
using testing::recipe_stream;
using pairs = arithmetic<float, float, float, pairwise>;
using blocks = arithmetic<float, exact_product, float, blocked<3>>;
using tensor_cores = arithmetic<half, exact_product, float, tensor_core<hopper>>;

struct drawn {
  recipe_stream stream;
  std::size_t rows;
  inverse_method method;
};

drawn any_case(std::size_t most) {
  const auto seed = *rc::gen::resize(rc::kNominalSize, rc::gen::arbitrary<std::uint64_t>());
  recipe_stream stream(seed);
  const std::size_t rows = 1 + testing::below(stream, most);
  const auto method = testing::any_method(stream);
  return {stream, rows, method};
}

template <class S>
matrix<S> any_lower(drawn& d, int largest, int denominator) {
  matrix<S> lower(d.rows, d.rows);
  for (std::size_t i = 0; i < d.rows; ++i) {
    for (std::size_t j = 0; j < i; ++j)
      lower(i, j) = round_to<S>(static_cast<double>(d.stream.between(-largest, largest)) / denominator);
  }
  return lower;
}

template <class S>
std::vector<std::uint64_t> bits(const matrix<S>& m) {
  std::vector<std::uint64_t> result;
  for (const S& x : m.entries()) result.push_back(std::bit_cast<std::uint64_t>(lift<double>(x) + 0.0));  // -0 counts as 0
  return result;
}

// Integers below 2^24 (2^8 where operands are bf16) are exact: where the bound on every intermediate says so, no method
// and no order may differ in a bit from substitution in doubles, which is exact there too.
template <class A>
void integers_are_exact(std::size_t most, double limit) {
  check_property(3000, 3100 + most, [most, limit] {
    auto d = any_case(most);
    const auto lower = any_lower<double>(d, 1, 1);
    matrix<double> magnitudes = lower;
    for (double& x : magnitudes.entries()) x = std::fabs(x);
    RC_PRE(growth_bound<plain<double>>(d.method, magnitudes).largest < limit);
    matrix<typename A::storage_type> rounded_lower(d.rows, d.rows);
    for (std::size_t i = 0; i < lower.size(); ++i) rounded_lower.data()[i] = round_to<typename A::storage_type>(lower.data()[i]);
    const auto want = run_inverse<plain<double>>(inverse_named("forward"), lower);
    RC_CLASSIFY(d.rows > 4, "more than 4 rows");
    RC_ASSERT(bits(run_inverse<A>(d.method, rounded_lower)) == bits(want));
  });
}

TEST(triangular_property, integers_are_exact_in_floats) { integers_are_exact<plain<float>>(12, 0x1p24); }
TEST(triangular_property, integers_are_exact_in_pairs) { integers_are_exact<pairs>(13, 0x1p24); }
TEST(triangular_property, integers_are_exact_in_blocks) { integers_are_exact<blocks>(11, 0x1p24); }
TEST(triangular_property, integers_are_exact_on_tensor_cores) { integers_are_exact<tensor_cores>(7, 0x1p8); }

// Substitution solves a nearby system: each entry of (I + L) X - I is at most g (|I + L| |X|), g = C u / (1 - C u), in any
// order of summation. Source: Higham, Accuracy and Stability of Numerical Algorithms, theorem 8.5. Judged in rationals.
template <class A>
void substitution_has_a_small_residual(std::uint64_t seed) {
  check_property(400, seed, [] {
    auto d = any_case(24);
    const auto lower = any_lower<float>(d, 1000, 997);
    const auto x = run_inverse<A>(inverse_named("forward"), lower);
    const rational cu = rational(static_cast<int>(d.rows)) / (1 << 24);
    const rational g = cu / (1 - cu);
    for (std::size_t i = 0; i < d.rows; ++i) {
      for (std::size_t j = 0; j <= i; ++j) {
        rational residual = exact(x(i, j)) - (i == j ? 1 : 0);
        rational size = abs(exact(x(i, j)));
        for (std::size_t m = j; m < i; ++m) {
          const rational term = exact(lower(i, m)) * exact(x(m, j));
          residual += term;
          size += abs(term);
        }
        RC_ASSERT(abs(residual) <= g * size);
      }
    }
  });
}

TEST(triangular_property, substitution_has_a_small_residual) { substitution_has_a_small_residual<plain<float>>(3201); }
TEST(triangular_property, substitution_in_pairs_has_a_small_residual) { substitution_has_a_small_residual<pairs>(3202); }
TEST(triangular_property, substitution_in_blocks_has_a_small_residual) { substitution_has_a_small_residual<blocks>(3203); }

// What lies on and above the diagonal may be anything.
template <class A>
void unread_entries_change_no_bit(std::uint64_t seed) {
  check_property(1500, seed, [] {
    using S = typename A::storage_type;
    auto d = any_case(40);
    const auto lower = any_lower<S>(d, 100, 101);
    auto filled = lower;
    constexpr double infinity = std::numeric_limits<double>::infinity();
    const std::vector<double> fills{std::numeric_limits<double>::quiet_NaN(), infinity, -infinity, 1e30, 3};
    for (std::size_t i = 0; i < d.rows; ++i) {
      for (std::size_t j = i; j < d.rows; ++j) filled(i, j) = round_to<S>(fills[testing::below(d.stream, fills.size())]);
    }
    RC_ASSERT(bits(run_inverse<A>(d.method, filled)) == bits(run_inverse<A>(d.method, lower)));
  });
}

TEST(triangular_property, unread_entries_change_no_bit) { unread_entries_change_no_bit<plain<float>>(3301); }
TEST(triangular_property, unread_entries_change_no_bit_in_pairs) { unread_entries_change_no_bit<pairs>(3302); }
TEST(triangular_property, unread_entries_change_no_bit_on_tensor_cores) { unread_entries_change_no_bit<tensor_cores>(3303); }

// Every entry below the diagonal is read: a NaN there is seen at its place, or refused by it.
TEST(triangular_property, every_read_entry_is_seen) {
  check_property(3000, 3401, [] {
    auto d = any_case(40);
    RC_PRE(d.rows > 1);
    auto lower = any_lower<float>(d, 100, 101);
    const std::size_t i = 1 + testing::below(d.stream, d.rows - 1);
    const std::size_t j = testing::below(d.stream, i);
    lower(i, j) = std::numeric_limits<float>::quiet_NaN();
    RC_ASSERT(std::isnan(run_inverse<plain<float>>(d.method, lower)(i, j)));
    RC_ASSERT(std::isnan(run_inverse<pairs>(d.method, lower)(i, j)));
    std::string message;
    try {
      (void)invert_unit_lower<plain<float>>(d.method, lower);
    } catch (const domain_error& e) {
      message = e.what();
    }
    RC_ASSERT(message.find("L(" + std::to_string(i) + ", " + std::to_string(j) + ")") != std::string::npos);
  });
}

}  // namespace
}  // namespace deltaproof
