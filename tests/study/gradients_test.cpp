// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT

#include "studies/gradients/runs.hpp"
#include "support/study.hpp"

namespace deltaproof {
namespace {

using namespace detail::gradients;
using wide = real<192>;

sequence<wide> adjoint_of(const head& in) {
  cotangents<wide> with{matrix<wide>(in.with.o.rows(), in.with.o.cols()), {}};
  for (std::size_t i = 0; i < with.o.size(); ++i) with.o.data()[i] = lift<wide>(in.with.o.data()[i]);
  return adjoint(convert<wide>(in.tokens, [](double x) { return lift<wide>(x); }), with);
}
std::array<std::vector<wide>, kinds> listed(const sequence<wide>& d) {
  const auto state = d.initial_state.entries();
  return {d.q, d.k, d.v, d.step, d.decay, {state.begin(), state.end()}};
}

// Both references against the plain adjoint in 192 bits: inside their radius, and off by something.
TEST(gradients_reference, holds_in_its_radius) {
  for (const law& which : laws) {
    const head in = make_head(which, 70, 8, 3);
    const auto want = listed(adjoint_of(in));
    for (const bool pairs : {false, true}) {
      const certified_gradients got = pairs ? exact_in_pairs(in) : exact_gradients(in);
      for (std::size_t kind = 0; kind < kinds; ++kind) {
        ASSERT_EQ(got.value[kind].size(), want[kind].size());
        wide off = 0, size = 0;
        for (std::size_t i = 0; i < want[kind].size(); ++i) {
          const wide low = pairs ? lift<wide>(got.low[kind][i]) : wide(0);
          const wide d = want[kind][i] - lift<wide>(got.value[kind][i]) - low;
          off += d * d;
          size += want[kind][i] * want[kind][i];
        }
        const auto error = round_to<double>(wide(sqrt(wide(off / size))));
        EXPECT_LE(error, got.radius[kind]) << which.name << ' ' << gradient_names[kind];
        EXPECT_GT(error, 0) << which.name << ' ' << gradient_names[kind];
        EXPECT_LT(got.radius[kind], pairs ? 1e-22 : 1e-8) << which.name << ' ' << gradient_names[kind];
      }
    }
  }
}

// Each format errs by its own roundoff: no more where keys are many, no less where it stores anything.
TEST(gradients_formats, err_by_their_roundoff) {
  const head in = make_head(laws[1], 200, 16, 3);
  const certified_gradients exact = exact_in_pairs(in);
  for (const std::string_view name : stage_formats) {
    const double u = name == "bf16" ? 0x1p-8 : name == "fp16" ? 0x1p-11 : name == "fp32" ? 0x1p-24 : 0x1p-53;
    const gradient_set got = run_backward(name, in);
    for (std::size_t kind = 0; kind < kinds; ++kind) {
      EXPECT_LT(error_of(got[kind], exact, kind), 100 * u) << name << ' ' << gradient_names[kind];
      EXPECT_GT(error_of(got[kind], exact, kind), u / 100) << name << ' ' << gradient_names[kind];
    }
  }
  EXPECT_THROW((void)run_backward("e4m3", in), format_error);
}

TEST(gradients_head, first_tokens_are_those_of_the_whole) {
  const head whole = make_head(laws[5], 40, 8, 5), part = first_tokens(whole, 25);
  part.tokens.validate();
  for (std::size_t t = 0; t < 25; ++t) {
    EXPECT_TRUE(std::ranges::equal(part.tokens.k_row(t), whole.tokens.k_row(t)));
    EXPECT_TRUE(std::ranges::equal(part.with.o.row(t), whole.with.o.row(t)));
  }
}

TEST(gradients_head, before_rounding_rounds_to_what_was_given) {
  const head given = make_head(laws[4], 30, 8, 5), before = before_rounding(given, 9);
  std::size_t moved = 0;
  const auto same = [&](const std::vector<double>& a, const std::vector<double>& b) {
    for (std::size_t i = 0; i < a.size(); ++i) {
      // Below a power of two the unit is half as large, and another neighbour may be nearer.
      if (a[i] == 0 || std::fabs(a[i]) == std::ldexp(1.0, std::ilogb(a[i]))) continue;
      EXPECT_EQ(round_to<bf16>(b[i]).value(), a[i]);
      moved += a[i] != b[i] ? 1 : 0;
    }
  };
  same(given.tokens.q, before.tokens.q);
  same(given.tokens.k, before.tokens.k);
  same(given.tokens.v, before.tokens.v);
  same(given.tokens.step, before.tokens.step);
  EXPECT_GT(moved, 500U);
  EXPECT_TRUE(std::ranges::equal(before.tokens.k_row(0), before.tokens.k_row(29)));
}

}  // namespace
}  // namespace deltaproof
