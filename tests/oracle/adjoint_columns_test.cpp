// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
//
// Gradients by columns against the adjoint in 400 bits: no radius is below its error, on any instruction set, and none is far
// above what it was entry by entry.
#include "oracle/tiers/adjoint_columns.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <numeric>
#include <vector>

#include "deltaproof/oracle/certify_adjoint.hpp"
#include "oracle/tiers_cases.hpp"

namespace deltaproof {
namespace {

using namespace testing;

/// A head with its cotangents; with low parts, what is derived has them.
struct backward_case {
  tiers::double_double_head head;
  tiers::column_cotangents with;
};

backward_case make_case(const head_shape& shape, key_family family, std::uint64_t seed, bool low) {
  backward_case out;
  out.head.high = make_head(shape, family, seed);
  std::mt19937_64 bits(seed + 1);
  std::normal_distribution<double> normal;
  const auto& s = out.head.high.scan;
  out.with.o.resize(s.tokens * s.value_dim);
  for (double& x : out.with.o) x = bits() % 5 == 0 ? 0 : normal(bits);
  for (const double x : out.with.o) out.with.o_size.push_back(std::fabs(x));
  out.with.o_low.assign(out.with.o.size(), 0.0);
  out.with.state.resize(s.key_dim * s.value_dim);
  for (double& x : out.with.state) x = normal(bits);
  const auto beneath = [&](const std::vector<double>& of, std::vector<double>& to) {
    for (const double x : of) to.push_back(std::fabs(x) > 0x1p-500 ? x * 0x1p-54 * normal(bits) / 8 : 0);
  };
  if (!low) return out;
  beneath(s.q, out.head.q_low);
  beneath(s.k, out.head.k_low);
  beneath(s.step, out.head.step_low);
  beneath(s.decay, out.head.decay_low);
  return out;
}

template <class T>
void join(std::vector<T>& to, const std::vector<T>& from) {
  to.insert(to.begin(), from.begin(), from.end());
}

/// The gradients of all segments, put together; with `sliced`, what is read is made anew for each of them.
bool run_adjoint(const backward_case& in, bool pairs, double range, tiers::column_gradients& out, bool sliced = false) {
  const auto& s = in.head.high.scan;
  const std::size_t T = s.tokens, n = s.steps_per_token, K = s.key_dim, V = s.value_dim;
  backward_case part;
  const auto slice = [&](std::size_t first, std::size_t count) -> tiers::column_slice {
    if (!sliced) return {0, in.head, in.with};
    part.head = in.head;
    part.with = {};
    auto& of = part.head.high.scan;
    of.tokens = count;
    const auto cut = [&](const std::vector<double>& from, std::size_t width, std::vector<double>& to) {
      if (from.empty()) return;
      const auto at = from.begin() + static_cast<std::ptrdiff_t>(first * width);
      to.assign(at, at + static_cast<std::ptrdiff_t>(count * width));
    };
    const std::size_t channels = s.decay.size() / std::max<std::size_t>(T, 1);
    cut(s.q, K, of.q);
    cut(s.k, n * K, of.k);
    cut(s.v, n * V, of.v);
    cut(s.step, n, of.step);
    cut(s.decay, channels, of.decay);
    cut(in.head.q_low, K, part.head.q_low);
    cut(in.head.k_low, n * K, part.head.k_low);
    cut(in.head.step_low, n, part.head.step_low);
    cut(in.head.decay_low, channels, part.head.decay_low);
    cut(in.with.o, V, part.with.o);
    cut(in.with.o_low, V, part.with.o_low);
    cut(in.with.o_size, V, part.with.o_size);
    if (first > 0) of.initial_state = {};
    if (first + count == T) part.with.state = in.with.state;
    return {first, part.head, part.with};
  };
  out = {};
  std::size_t last = T;
  const bool ran = tiers::run_adjoint({T, n, K, V, slice}, pairs, range, nullptr, [&](tiers::column_gradients& found) {
    EXPECT_EQ(found.first + found.step.error.size() / n, last);  // the last tokens first, without a gap
    last = found.first;
    const auto add = [](const tiers::column_numbers& from, tiers::column_numbers& to) {
      join(to.high, from.high);
      join(to.low, from.low);
      join(to.error, from.error);
      to.by_column = from.by_column;
    };
    add(found.q, out.q);
    add(found.k, out.k);
    add(found.v, out.v);
    add(found.step, out.step);
    add(found.decay, out.decay);
    add(found.state, out.state);
  });
  EXPECT_TRUE(!ran || last == 0);
  return ran;
}

certified_adjoint<mpfr_field> exact_adjoint(const backward_case& in) {
  lowered<mpfr_value> fine = in_mpfr(in.head.high);
  const auto add = [](std::vector<mpfr_value>& to, const std::vector<double>& low) {
    for (std::size_t i = 0; i < low.size(); ++i) mpfr_add_d(to[i].get(), to[i].get(), low[i], MPFR_RNDN);
  };
  add(fine.scan.q, in.head.q_low);
  add(fine.scan.k, in.head.k_low);
  add(fine.scan.step, in.head.step_low);
  add(fine.scan.decay, in.head.decay_low);
  std::vector<mpfr_value> o, state;
  std::vector<wide_bound> o_size;
  const auto exact = [](double x) {
    mpfr_value y(400);
    mpfr_set_d(y.get(), x, MPFR_RNDN);
    return y;
  };
  for (const double x : in.with.o) {
    o.push_back(exact(x));
    o_size.emplace_back(std::fabs(x));
  }
  for (const double x : in.with.state) state.push_back(exact(x));
  return adjoint_certifier<mpfr_field>(mpfr_field{400}, wide_bound::scaled(1, -400), fine, o, o_size, state, 0,
                                       fine.scan.value_dim, std::numeric_limits<double>::infinity())
      .run();
}

/// Largest |error| / radius of one gradient; infinity where a radius of 0 has an error.
double worst(const tiers::column_numbers& got, double u, const certified_entries<mpfr_field>& want) {
  double out = 0;
  mpfr_value rest(400);
  for (std::size_t i = 0; i < want.value.size(); ++i) {
    mpfr_sub_d(rest.get(), want.value[i].get(), got.high[i], MPFR_RNDN);
    if (!got.low.empty()) mpfr_sub_d(rest.get(), rest.get(), got.low[i], MPFR_RNDN);
    const double error = std::fabs(mpfr_get_d(rest.get(), MPFR_RNDA));
    const std::size_t count = got.error.size(), at = got.by_column ? i % count : i / (want.value.size() / count);
    if (error > 0) out = std::max(out, error / (got.error[at] * u));
  }
  return out;
}

struct backward_ratios {
  double q, k, v, step, decay, state;
  [[nodiscard]] double most() const { return std::max({q, k, v, step, decay, state}); }
};

backward_ratios judge(const backward_case& in, bool pairs, const certified_adjoint<mpfr_field>& want) {
  tiers::column_gradients got;
  EXPECT_TRUE(run_adjoint(in, pairs, std::numeric_limits<double>::infinity(), got));
  const double u = pairs ? tiers::adjoint_pair_unit : tiers::fp64_unit;
  return {worst(got.q, u, want.q),
          worst(got.k, u, want.k),
          worst(got.v, u, want.v),
          worst(got.step, u, want.step),
          want.decay.value.empty() ? 0 : worst(got.decay, u, want.decay),
          worst(got.state, u, want.initial_state)};
}

/// Keys in several chunks and beyond them, columns in several blocks, tokens in several segments.
constexpr head_shape shapes[] = {{1, 1, 1, 1}, {3, 2, 5, 2}, {8, 17, 70, 1}, {37, 5, 35, 2}};

TEST(adjoint_columns, no_radius_is_below_its_error) {
  std::vector<double> all;
  for (head_shape shape : shapes) {
    for (const decay_kind decays : decay_kinds) {
      shape.decays = decays;
      for (const key_family family : key_families) {
        for (const bool pairs : {false, true}) {
          const backward_case in = make_case(shape, family, 7 + all.size(), pairs && family != key_family::alternating);
          const auto want = exact_adjoint(in);
          each_target::run([&] {
            const backward_ratios found = judge(in, pairs, want);
            EXPECT_LE(found.most(), 1) << "K = " << shape.key_dim << ", keys " << static_cast<int>(family)
                                       << (pairs ? ", pairs" : "");
            all.push_back(found.most());
          });
        }
      }
    }
  }
  std::sort(all.begin(), all.end());
  std::printf("largest error/radius of %zu heads: median %.2g, 90 %% %.2g, largest %.2g\n", all.size(), all[all.size() / 2],
              all[all.size() * 9 / 10], all.back());
  EXPECT_GE(all.back(), 0.1);  // no room is given away where little is rounded
}

/// Means of radii by columns over those entry by entry, in fp64: smaller, but that carried norms know one decay of a token's
/// channels alone until they are made anew, here where channels part by gates from 0 to -3000.
TEST(adjoint_columns, radii_are_hardly_larger_than_entry_by_entry) {
  for (const decay_kind decays : decay_kinds) {
    const backward_case in = make_case({48, 24, 100, 1, decays}, key_family::unit, 5, false);
    tiers::column_gradients got;
    ASSERT_TRUE(run_adjoint(in, false, std::numeric_limits<double>::infinity(), got));
    const auto want = adjoint_certifier<fp64_field>({}, tiers::fp64_unit, in.head.high, in.with.o, in.with.o_size, in.with.state,
                                                    0, 24, std::numeric_limits<double>::infinity())
                          .run();
    const auto mean = [](const std::vector<double>& x) {
      return x.empty() ? 0 : std::accumulate(x.begin(), x.end(), 0.0) / static_cast<double>(x.size());
    };
    const double ratios[] = {mean(got.q.error) / mean(want.q.error),
                             mean(got.k.error) / mean(want.k.error),
                             mean(got.v.error) / mean(want.v.error),
                             mean(got.step.error) / mean(want.step.error),
                             decays == decay_kind::none ? 0 : mean(got.decay.error) / mean(want.decay.error),
                             mean(got.state.error) / mean(want.initial_state.error)};
    for (const double ratio : ratios) EXPECT_LE(ratio, decays == decay_kind::per_channel ? 1.25 : 1);
    EXPECT_LE(ratios[1], 0.5);
    std::printf("dq %.2g dk %.2g dv %.2g dbeta %.2g dg %.2g dinitial_state %.2g\n", ratios[0], ratios[1], ratios[2], ratios[3],
                ratios[4], ratios[5]);
  }
}

/// What is read a segment at a time gives the bits of what is read as a whole, radii included.
TEST(adjoint_columns, slices_give_the_bits_of_the_whole) {
  for (head_shape shape : {head_shape{8, 17, 70, 1}, head_shape{5, 3, 130, 2}, head_shape{1, 1, 65, 1}}) {
    for (const decay_kind decays : decay_kinds) {
      shape.decays = decays;
      for (const bool pairs : {false, true}) {
        const backward_case in = make_case(shape, key_family::unit, 11, pairs);
        each_target::run([&] {
          tiers::column_gradients whole, sliced;
          const double infinity = std::numeric_limits<double>::infinity();
          ASSERT_TRUE(run_adjoint(in, pairs, infinity, whole));
          ASSERT_TRUE(run_adjoint(in, pairs, infinity, sliced, true));
          for (const auto part :
               {&tiers::column_gradients::q, &tiers::column_gradients::k, &tiers::column_gradients::v,
                &tiers::column_gradients::step, &tiers::column_gradients::decay, &tiers::column_gradients::state}) {
            EXPECT_EQ((whole.*part).high, (sliced.*part).high);
            EXPECT_EQ((whole.*part).low, (sliced.*part).low);
            EXPECT_EQ((whole.*part).error, (sliced.*part).error);
          }
        });
      }
    }
  }
}

/// What is exactly 0 has no radius, and what is out of range is refused.
TEST(adjoint_columns, zeros_are_exact_and_ends_are_refused) {
  backward_case in = make_case({9, 3, 20, 1, decay_kind::per_channel}, key_family::unit, 3, false);
  in.with = {};
  tiers::column_gradients got;
  const double infinity = std::numeric_limits<double>::infinity();
  ASSERT_TRUE(run_adjoint(in, false, infinity, got));
  for (const auto* errors : {&got.q.error, &got.k.error, &got.v.error, &got.step.error, &got.decay.error, &got.state.error}) {
    EXPECT_EQ(*std::max_element(errors->begin(), errors->end()), 0);
  }
  in = make_case({9, 3, 20, 1}, key_family::unit, 3, false);
  EXPECT_FALSE(run_adjoint(in, false, 1e-3, got));  // entries pass the range
  in.head.high.scan.k[4] = 0x1p-400;
  for (std::size_t i = 0; i < 9; ++i) in.head.high.scan.k[9 + i] = 0x1p-400;
  EXPECT_FALSE(run_adjoint(in, false, infinity, got));
}

}  // namespace
}  // namespace deltaproof
