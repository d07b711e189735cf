// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <bit>
#include <cmath>
#include <cstdint>
#include <vector>

#include "algebra/slow_sums.hpp"
#include "deltaproof/algebra/multiply.hpp"
#include "deltaproof/number/modular.hpp"
#include "deltaproof/number/random.hpp"
#include "deltaproof/number/rational.hpp"
#include "support/sequence_generators.hpp"

namespace deltaproof {
namespace {

using half = rounded<bf16>;
using single = rounded<fp32>;
using testing::check_property;

/// Values of S with exponents spread over `spread` bits.
template <class S>
std::vector<S> draw(std::uint64_t seed, std::uint64_t stream, std::size_t count, int spread) {
  philox generator(seed, stream);
  std::vector<S> values;
  for (std::size_t i = 0; i < count; ++i) {
    const int exponent = static_cast<int>(generator.below(static_cast<std::uint64_t>(spread) + 1)) - spread / 2;
    values.push_back(round_to<S>(std::ldexp(generator.normal(), exponent)));
  }
  return values;
}

template <class S>
std::uint64_t bits(const S& x) {
  return std::bit_cast<std::uint64_t>(lift<double>(x));
}

TEST(dot, exact_scalars_give_one_sum_in_every_order) {
  check_property(200, 101, [] {
    const auto seed = *rc::gen::arbitrary<std::uint64_t>();
    const auto count = *rc::gen::inRange<std::size_t>(0, 60);
    const auto x = draw<double>(seed, 0, count, 40);
    const auto y = draw<double>(seed, 1, count, 40);
    std::vector<modular> mx;
    std::vector<modular> my;
    for (std::size_t i = 0; i < count; ++i) {
      mx.push_back(reduce(x[i]));
      my.push_back(reduce(y[i]));
    }
    const modular want = reduce(slow::exact_dot(x, y));
    RC_ASSERT((dot<plain<modular>>(mx, my) == want));
    RC_ASSERT((dot<arithmetic<modular, exact_product, modular, pairwise>>(mx, my) == want));
    RC_ASSERT((dot<arithmetic<modular, modular, modular, blocked<6>>>(mx, my) == want));
  });
}

TEST(dot, every_order_rounds_once_per_step) {
  check_property(200, 102, [] {
    const auto seed = *rc::gen::arbitrary<std::uint64_t>();
    const auto count = *rc::gen::inRange<std::size_t>(0, 40);
    const auto spread = *rc::gen::inRange(0, 60);
    const auto x = draw<half>(seed, 0, count, spread);
    const auto y = draw<half>(seed, 1, count, spread);
    const single start = draw<single>(seed, 2, 1, spread)[0];
    RC_ASSERT((bits(dot<arithmetic<half, exact_product, single, sequential>>(x, y, start)) ==
               bits(slow::run<single, single>(x, y, 0, count, start, true))));
    RC_ASSERT((bits(dot<arithmetic<half, half, single, pairwise>>(x, y, start)) ==
               bits(slow::pairs<half, single>(x, y, start, false))));
    RC_ASSERT((bits(dot<arithmetic<half, exact_product, single, blocked<4>>>(x, y, start)) ==
               bits(slow::blocks<single, single>(x, y, 4, start, true))));
  });
}

TEST(dot, tensor_core_is_the_big_integer_model) {
  check_property(200, 103, [] {
    const auto seed = *rc::gen::arbitrary<std::uint64_t>();
    const auto count = *rc::gen::inRange<std::size_t>(0, 60);
    const auto spread = *rc::gen::inRange(0, 120);
    const auto x = draw<half>(seed, 0, count, spread);
    const auto y = draw<half>(seed, 1, count, spread);
    const single start = draw<single>(seed, 2, 1, spread)[0];
    std::vector<double> dx;
    std::vector<double> dy;
    for (std::size_t i = 0; i < count; ++i) {
      dx.push_back(lift<double>(x[i]));
      dy.push_back(lift<double>(y[i]));
    }
    const auto got = dot<arithmetic<half, exact_product, single, tensor_core<hopper>>>(x, y, start);
    RC_ASSERT(bits(got) ==
              std::bit_cast<std::uint64_t>(slow::tensor_core(dx, dy, -126, {16, 25, -133, false}, lift<double>(start))));
  });
}

// |dot - exact| <= gamma * sum |x_i y_i|: the classical bound of each order, in the absence of underflow.
TEST(dot, error_stays_within_the_bound_of_its_order) {
  check_property(200, 104, [] {
    const auto seed = *rc::gen::arbitrary<std::uint64_t>();
    const auto count = *rc::gen::inRange<std::size_t>(1, 100);
    const auto x = draw<single>(seed, 0, count, 8);
    const auto y = draw<single>(seed, 1, count, 8);
    const rational want = slow::exact_dot(x, y);
    rational size = 0;
    for (std::size_t i = 0; i < count; ++i) size += abs(slow::as_rational(x[i]) * slow::as_rational(y[i]));
    const auto within = [&](const single& got, std::size_t roundings) {
      const rational nu = rational(static_cast<int>(roundings)) * exact(0x1p-24);
      return abs(slow::as_rational(got) - want) <= nu / (1 - nu) * size;
    };
    const auto levels = static_cast<std::size_t>(std::bit_width(count - 1));
    RC_ASSERT(within(dot<plain<single>>(x, y), count));
    RC_ASSERT(within((dot<arithmetic<single, single, single, pairwise>>(x, y)), levels + 1));
    RC_ASSERT(within((dot<arithmetic<single, exact_product, single, sequential>>(x, y)), count));
  });
}

TEST(multiply, product_of_products_over_a_field_is_associative) {
  check_property(200, 105, [] {
    const auto seed = *rc::gen::arbitrary<std::uint64_t>();
    const auto size = *rc::gen::inRange<std::size_t>(1, 8);
    philox generator(seed, 0);
    const auto square = [&] {
      matrix<modular> m(size, size);
      for (modular& x : m.entries()) x = modular(static_cast<std::int64_t>(generator() >> 2));
      return m;
    };
    const auto a = square();
    const auto b = square();
    const auto c = square();
    using A = plain<modular>;
    RC_ASSERT(matmul<A>(matmul<A>(a, b), c) == matmul<A>(a, matmul<A>(b, c)));
  });
}

}  // namespace
}  // namespace deltaproof
