// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT

#include <initializer_list>

#include "deltaproof/scan/recurrent.hpp"
#include "studies/wy/cost.hpp"
#include "studies/wy/errors.hpp"
#include "support/study.hpp"

namespace deltaproof {
namespace {

using namespace detail::wy;

TEST(wy_cost, of_two_rows_is_what_one_counts_by_hand) {
  // K = V = 1, C = 2. Products: A 1 + 1, Aqk 3, inverse 1, b k and b v 4, w and u 8, w h 2, q h 2, k v_new 2, inside 3.
  EXPECT_EQ(chunk_operations(2, 1, 1).multiplications, 27U);
  // The same but the 1 of b in A and the 4 of b k, b v, and 2 more where the two parts of o meet.
  EXPECT_EQ(chunk_operations(2, 1, 1).additions, 24U);
  EXPECT_EQ(chunk_operations(2, 1, 1).subtractions, 2U);
  EXPECT_EQ(recurrent_operations(1, 1, 1), (operation_counts{3, 1, 4, 0, 0}));
  EXPECT_EQ(chunk_operations(0, 4, 4), operation_counts{});
}

TEST(wy_cost, of_an_inverse_is_known_for_substitution) {
  for (const std::size_t c : std::initializer_list<std::size_t>{1, 2, 16, 33}) {
    EXPECT_EQ(counted_inverse(c, inverse_named("forward")),
              (operation_counts{(c * c * c - c) / 6, 0, (c * c * c - c) / 6, 0, 0}));
  }
  EXPECT_EQ(counted_inverse(16, inverse_named("forward16+block")), counted_inverse(16, inverse_named("forward")));
}

TEST(wy_cost, bytes_follow_the_model) {
  const traffic t = traffic_of(1, 1, 1, 1);
  EXPECT_EQ(t.recurrent_on_chip, 5);
  EXPECT_EQ(t.recurrent_in_memory, 13);
  EXPECT_EQ(t.chunk_fused, 5);
  // A: k, b in, A out; A in, Ai out; Ai, k, v, b in, w, u out; k, w, u in, h, v_new out; q, k, v_new, h in, o out.
  EXPECT_EQ(t.chunk_stages, (2 + 4) + (4 + 1) + (4 + 2) + (3 + 2) + (4 + 1));
}

TEST(wy_errors, reference_agrees_with_more_bits) {
  const auto s = detail::chunks::make_sequence(detail::chunks::key_kind::cosine_90, {1.9, 2}, 200, 8, 2, 1, 7);
  const auto r = run_reference(s);
  const auto exact = recurrent(convert<real<256>>(s, [](double x) { return lift<real<256>>(x); }));
  for (std::size_t i = 0; i < r.o.size(); ++i) EXPECT_EQ(r.o[i], round_to<double>(exact.o.data()[i]));
  for (std::size_t i = 0; i < r.state.size(); ++i) EXPECT_EQ(r.state[i], round_to<double>(exact.final_state.data()[i]));
}

}  // namespace
}  // namespace deltaproof
