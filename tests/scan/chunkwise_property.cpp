// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
//
// What the chunkwise form does in formats. On the exact family nothing rounds, so any differing bit is an error of logic:
// chunkwise = recurrence in fp32 and on tensor cores, in every order and with every inverse. Elsewhere: outputs never read
// what comes later, and rows that are not there are not read. (Its identities in a ring: identities_property.cpp.)
#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <algorithm>
#include <bit>
#include <cstdint>
#include <vector>

#include "deltaproof/number/rational.hpp"
#include "deltaproof/scan/chunkwise.hpp"
#include "deltaproof/scan/recurrent.hpp"
#include "support/identities/identity.hpp"
#include "support/sequence_generators.hpp"

namespace deltaproof {
namespace {

using testing::check_property;
using testing::key_regime;
using testing::sequence_recipe;

using half = rounded<bf16>;
using pairs = arithmetic<float, float, float, pairwise>;
using blocks = arithmetic<float, exact_product, float, blocked<3>>;
using tensor_cores = arithmetic<half, exact_product, float, tensor_core<hopper>>;
using mixed = arithmetic<half, exact_product, float, sequential>;

template <class S>
std::vector<std::uint64_t> bits(const matrix<S>& m) {
  std::vector<std::uint64_t> result;
  for (const S& x : m.entries()) result.push_back(std::bit_cast<std::uint64_t>(lift<double>(x) + 0.0));  // -0 counts as 0
  return result;
}

/// Keys with entries +-1/4 (K = 16) or +-1/2 (K = 4), steps 1/2 or 1, values small integers. A step of unit_signs adds at
/// most five bits to the state, so four steps fit a float; orthogonal rows only add up until they come back.
sequence_recipe exact_recipe(bool orthogonal) {
  auto r = *testing::recipes({.tokens = 16, .steps_per_token = 2, .key_dim = 16, .value_dim = 4, .chunk = 8});
  r.regime = orthogonal ? key_regime::hadamard : key_regime::unit_signs;
  if (!orthogonal) r.tokens = (r.seed / 2 % 8 == 0 ? r.seed / 16 % 3 : 3 + r.seed / 16 % 2) / r.steps_per_token;
  if (orthogonal) r.tokens = std::min(r.tokens, testing::power_of_four(r.key_dim) / r.steps_per_token);
  r.decays = decay_kind::none;
  r.step_from = r.step_to = r.seed % 2 == 0 ? 4 : 8;
  r.initial_state = false;
  return r;
}

template <class A>
void exact_family_gives_the_bits_of_the_recurrence(std::uint64_t seed, bool orthogonal) {
  check_property(1500, seed, [orthogonal] {
    using S = typename A::storage_type;
    const auto r = exact_recipe(orthogonal);
    auto stream = testing::choices(r, 70);
    const auto s = testing::make_sequence<float>(r);
    const auto want = recurrent(s);
    const auto exact_want = recurrent(testing::make_sequence<rational>(r));
    for (std::size_t i = 0; i < want.o.size(); ++i) RC_ASSERT(exact(want.o.data()[i]) == exact_want.o.data()[i]);
    const auto in_storage = convert<S>(s, [](float x) { return round_to<S>(x); });
    const auto got = chunkwise<A>(in_storage, r.chunk, testing::any_method(stream));
    RC_CLASSIFY(s.rows() > r.chunk, "several chunks");
    RC_CLASSIFY(s.rows() > 2, "more than two steps");
    RC_ASSERT(bits(got.o) == bits(want.o));
    RC_ASSERT(bits(got.final_state) == bits(want.final_state));
  });
}

TEST(chunkwise_property, sign_keys_give_the_bits_of_the_recurrence) {
  exact_family_gives_the_bits_of_the_recurrence<plain<float>>(4001, false);
}
TEST(chunkwise_property, sign_keys_in_pairs) { exact_family_gives_the_bits_of_the_recurrence<pairs>(4002, false); }
TEST(chunkwise_property, sign_keys_in_blocks) { exact_family_gives_the_bits_of_the_recurrence<blocks>(4003, false); }
TEST(chunkwise_property, orthogonal_keys_give_the_bits_of_the_recurrence) {
  exact_family_gives_the_bits_of_the_recurrence<plain<float>>(4004, true);
}
TEST(chunkwise_property, orthogonal_keys_in_pairs) { exact_family_gives_the_bits_of_the_recurrence<pairs>(4005, true); }
TEST(chunkwise_property, orthogonal_keys_in_bf16_with_fp32_sums) {
  exact_family_gives_the_bits_of_the_recurrence<mixed>(4006, true);
}
TEST(chunkwise_property, orthogonal_keys_on_tensor_cores) {
  exact_family_gives_the_bits_of_the_recurrence<tensor_cores>(4007, true);
}

/// Values that round everywhere: thirds of the recipe's.
template <class S>
sequence<S> rounding_sequence(const sequence_recipe& r) {
  return convert<S>(testing::make_sequence<float>(r), [](float x) { return round_to<S>(static_cast<double>(x) / 3); });
}

// Rows that come later change no output before them by a bit, in any arithmetic.
template <class A>
void outputs_never_read_what_comes_later(std::uint64_t seed) {
  check_property(1500, seed, [] {
    using S = typename A::storage_type;
    const auto r = *testing::recipes({.tokens = 12, .steps_per_token = 2, .key_dim = 6, .value_dim = 4, .chunk = 16});
    auto stream = testing::choices(r, 71);
    const auto method = testing::any_method(stream);
    const auto s = rounding_sequence<S>(r);
    const std::size_t from = testing::below(stream, s.tokens + 1);
    auto other = s;
    const auto change = [&](std::vector<S>& values, std::size_t per_token) {
      for (std::size_t i = from * per_token; i < values.size(); ++i) values[i] = round_to<S>(stream.between(-20, 20) / 7.0);
    };
    change(other.q, s.key_dim);
    change(other.k, s.steps_per_token * s.key_dim);
    change(other.v, s.steps_per_token * s.value_dim);
    change(other.step, s.steps_per_token);
    change(other.decay, s.tokens == 0 ? 0 : s.decay.size() / s.tokens);
    const auto a = bits(chunkwise<A>(s, r.chunk, method).o);
    const auto b = bits(chunkwise<A>(other, r.chunk, method).o);
    RC_CLASSIFY(from > 0 && from < s.tokens, "cut inside");
    RC_ASSERT(std::equal(a.begin(), a.begin() + static_cast<std::ptrdiff_t>(from * s.value_dim), b.begin()));
  });
}

TEST(chunkwise_property, outputs_never_read_what_comes_later_in_floats) {
  outputs_never_read_what_comes_later<plain<float>>(4101);
}
TEST(chunkwise_property, outputs_never_read_what_comes_later_in_bf16) { outputs_never_read_what_comes_later<mixed>(4102); }

// A whole number of chunks and a tail do the same to the rows they share: what a chunk makes depends on its own rows.
TEST(chunkwise_property, a_tail_is_made_like_a_full_chunk) {
  check_property(1500, 4201, [] {
    const auto r = *testing::recipes({.tokens = 12, .steps_per_token = 1, .key_dim = 6, .value_dim = 4, .chunk = 8});
    auto stream = testing::choices(r, 72);
    const auto method = testing::any_method(stream);
    const auto s = rounding_sequence<half>(r);
    const std::size_t tokens = testing::below(stream, s.tokens + 1);
    auto shorter = s;
    const std::size_t width = s.tokens == 0 ? 0 : s.decay.size() / s.tokens;
    shorter.tokens = tokens;
    shorter.q.resize(tokens * s.key_dim);
    shorter.k.resize(tokens * s.key_dim);
    shorter.v.resize(tokens * s.value_dim);
    shorter.step.resize(tokens);
    shorter.decay.resize(tokens * width);
    const auto whole = chunkwise<mixed>(s, r.chunk, method);
    const auto part = chunkwise<mixed>(shorter, r.chunk, method);
    const auto same = [](const auto& of_part, const auto& of_whole) {
      const auto a = bits(of_part);
      const auto b = bits(of_whole);
      return a.size() <= b.size() && std::equal(a.begin(), a.end(), b.begin());
    };
    RC_CLASSIFY(tokens % r.chunk != 0 && tokens < s.tokens, "a tail cut out of a chunk");
    RC_ASSERT(same(part.A, whole.A) && same(part.Aqk, whole.Aqk) && same(part.u, whole.u) && same(part.w, whole.w));
    RC_ASSERT(same(part.v_new, whole.v_new) && same(part.o, whole.o) && same(part.cumulative_decay, whole.cumulative_decay));
    for (std::size_t c = 0; c < part.h.size(); ++c) RC_ASSERT(bits(part.h[c]) == bits(whole.h[c]));
  });
}

}  // namespace
}  // namespace deltaproof
