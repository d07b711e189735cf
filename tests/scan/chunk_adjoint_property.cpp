// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
//
// The chunkwise backward pass equals the adjoint of the recurrence, with ==, in rationals and modulo a prime; its stages are what
// their names say; and a kill table: planted faults of shipped backward kernels against identities that need no reference.
#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <iomanip>
#include <iostream>
#include <utility>
#include <vector>

#include "deltaproof/number/convert.hpp"
#include "deltaproof/number/modular.hpp"
#include "deltaproof/number/rational.hpp"
#include "deltaproof/scan/chunk_adjoint.hpp"
#include "support/faulty_gradient.hpp"
#include "support/gradient_cases.hpp"
#include "support/multiplier.hpp"
#include "support/sequence_generators.hpp"

namespace deltaproof {
namespace {

using testing::gradient_case;
using testing::gradient_fault;
using testing::identities_of_gradients;

constexpr testing::recipe_limits short_chunks{.tokens = 6, .steps_per_token = 3, .key_dim = 4, .value_dim = 3, .chunk = 8};
constexpr testing::recipe_limits long_chunks{.tokens = 60, .steps_per_token = 3, .key_dim = 9, .value_dim = 7, .chunk = 64};

template <class S>
chunkwise_stages<S, S> forward_of(const gradient_case<S>& c) {
  return chunkwise<plain<S>>(c.s, c.chunk, inverse_named("forward16+block"));
}
template <class S>
std::vector<S> numbers(const sequence<S>& s) {
  std::vector<S> out;
  for (const auto* list : {&s.q, &s.k, &s.v, &s.step, &s.decay}) out.insert(out.end(), list->begin(), list->end());
  out.insert(out.end(), s.initial_state.entries().begin(), s.initial_state.entries().end());
  return out;
}

template <class S>
void equals_the_adjoint_of_the_recurrence(testing::recipe_limits limits) {
  const gradient_case<S> c(*testing::recipes(limits));
  const auto want = numbers(adjoint(c.s, c.with));
  const auto forward = forward_of(c);
  RC_ASSERT(numbers(chunk_adjoint(c.s, forward, c.with).gradient) == want);
  RC_ASSERT(numbers(testing::faulty_gradient<S>(c, forward, gradient_fault::none).run()) == want);
}

TEST(chunk_adjoint, equals_the_adjoint_in_rationals) {
  testing::check_property(60, 2301, [] { equals_the_adjoint_of_the_recurrence<rational>(short_chunks); });
}
TEST(chunk_adjoint, equals_the_adjoint_modulo_a_prime) {
  testing::check_property(300, 2302, [] { equals_the_adjoint_of_the_recurrence<modular>(short_chunks); });
}
TEST(chunk_adjoint, equals_the_adjoint_in_chunks_up_to_64) {
  testing::check_property(40, 2303, [] { equals_the_adjoint_of_the_recurrence<modular>(long_chunks); });
}

/// Tokens [from, T) of a case.
template <class S>
gradient_case<S> tail_of(const gradient_case<S>& c, std::size_t from, const matrix<S>& state) {
  gradient_case<S> out = c;
  const auto drop = [](std::vector<S>& list, std::size_t count) {
    list.erase(list.begin(), list.begin() + static_cast<std::ptrdiff_t>(count));
  };
  const std::size_t width = c.s.decay.size() / c.s.tokens;
  out.s.tokens -= from;
  drop(out.s.q, from * c.s.key_dim);
  for (const auto& [list, each] : {std::pair{&out.s.k, c.s.key_dim}, {&out.s.v, c.s.value_dim}, {&out.s.step, std::size_t{1}}}) {
    drop(*list, from * c.s.steps_per_token * each);
  }
  drop(out.s.decay, from * width);
  out.s.initial_state = state;
  out.with.o = matrix<S>(out.s.tokens, c.s.value_dim);
  for (std::size_t i = 0; i < out.with.o.size(); ++i) out.with.o.data()[i] = c.with.o.data()[from * c.s.value_dim + i];
  return out;
}

// The cotangent of a state is the gradient by the initial state of what comes after it.
template <class S>
void has_the_cotangents_of_its_states() {
  const gradient_case<S> c(*testing::recipes(short_chunks));
  const auto forward = forward_of(c);
  const auto got = chunk_adjoint(c.s, forward, c.with);
  for (std::size_t chunk = 0; chunk + 1 < forward.h.size(); ++chunk) {
    const std::size_t row = (chunk + 1) * c.chunk;
    if (row % c.s.steps_per_token != 0) continue;
    const auto tail = tail_of(c, row / c.s.steps_per_token, forward.h[chunk + 1]);
    RC_ASSERT(got.dh[chunk] == adjoint(tail.s, tail.with).initial_state);
  }
  if (!forward.h.empty()) RC_ASSERT(got.dh.back() == c.last_cotangent());
}
TEST(chunk_adjoint, has_the_cotangents_of_its_states) {
  testing::check_property(100, 2304, has_the_cotangents_of_its_states<modular>);
}

// v_new is u and more: where u moves, the loss moves by dv2; where w moves, by dw. Here u and w are made anew from b v and b k of
// moved inverses, so that dA is met too: <dv2, du> + <dw, dw'> = -<dA, A'> for a change A' of A.
template <class S>
void has_the_derivative_by_its_overlaps() {
  const gradient_case<S> c(*testing::recipes(short_chunks));
  const auto f = forward_of(c);
  const auto got = chunk_adjoint(c.s, f, c.with);
  testing::recipe_stream stream(c.s.tokens * 31 + c.chunk);
  S by_stages = zero<S>(), by_overlaps = zero<S>();
  for (std::size_t first = 0; first < c.s.rows(); first += c.chunk) {
    const std::size_t rows = std::min(c.chunk, c.s.rows() - first);
    matrix<S> moved(rows, rows, zero<S>());  // A' below the diagonal; d(Ai x) = -Ai A' (Ai x)
    for (std::size_t r = 0; r < rows; ++r) {
      for (std::size_t j = 0; j < r; ++j) {
        moved(r, j) = from_int<S>(stream.between(-3, 3));
        by_overlaps = by_overlaps + got.dA(first + r, j) * moved(r, j);
      }
    }
    const auto add = [&](const matrix<S>& stage, const matrix<S>& slope) {
      for (std::size_t r = 0; r < rows; ++r) {
        for (std::size_t i = 0; i <= r; ++i) {
          for (std::size_t j = 0; j < i; ++j) {
            const S entry = f.Ai(first + r, i) * moved(i, j);
            for (std::size_t x = 0; x < stage.cols(); ++x)
              by_stages = by_stages - entry * stage(first + j, x) * slope(first + r, x);
          }
        }
      }
    };
    add(f.u, got.dv2);
    add(f.w, got.dw);
  }
  RC_ASSERT(by_stages == by_overlaps);
}
TEST(chunk_adjoint, has_the_derivative_by_its_overlaps) {
  testing::check_property(100, 2305, has_the_derivative_by_its_overlaps<modular>);
}

using bf16_operands = arithmetic<rounded<bf16>, float, float, sequential>;

/// T tokens of K = V = 8 and cotangents of their outputs; `number` gives what is neither a step nor a decay.
template <class Number>
std::pair<sequence<double>, cotangents<double>> formats_case(std::size_t tokens, decay_kind decays, Number&& number) {
  auto s = sequence<double>::zeros(tokens, 1, 8, 8, decays);
  for (auto* list : {&s.q, &s.k, &s.v}) std::generate(list->begin(), list->end(), number);
  std::generate(s.initial_state.entries().begin(), s.initial_state.entries().end(), number);
  cotangents<double> with{matrix<double>(tokens, 8), matrix<double>(8, 8)};
  std::generate(with.o.entries().begin(), with.o.entries().end(), number);
  std::generate(with.final_state.entries().begin(), with.final_state.entries().end(), number);
  return {std::move(s), std::move(with)};
}
chunk_adjoint_stages<rounded<bf16>, float> in_bf16(const sequence<double>& s, const cotangents<double>& with) {
  const auto round = [](double x) { return round_to<rounded<bf16>>(x); };
  const auto rounded_matrix = [&](const matrix<double>& m) {
    matrix<rounded<bf16>> out(m.rows(), m.cols());
    std::transform(m.entries().begin(), m.entries().end(), out.entries().begin(), round);
    return out;
  };
  const auto x = convert<rounded<bf16>>(s, round);
  return chunk_adjoint(x, chunkwise<bf16_operands>(x, 16, inverse_named("forward16+block")),
                       {rounded_matrix(with.o), rounded_matrix(with.final_state)});
}

// Orthogonal keys, small integers and halves: every number of every stage is one of bf16, so that nothing rounds.
TEST(chunk_adjoint, in_formats_that_hold_every_number_is_exact) {
  for (const decay_kind decays : {decay_kind::per_token, decay_kind::per_channel}) {
    testing::recipe_stream stream(2310);
    auto [s, with] = formats_case(12, decays, [&] { return static_cast<double>(stream.between(-1, 1)); });
    for (std::size_t t = 0; t < s.tokens; ++t) {
      for (std::size_t c = 0; c < 8; ++c) s.k[t * 8 + c] = c == t % 8 ? 1 : 0;
      s.step[t] = 1;
    }
    for (std::size_t i = 0; i < s.decay.size(); ++i) s.decay[i] = i % 7 == 3 ? 0.5 : 1;
    const auto got = numbers(in_bf16(s, with).gradient);
    const auto want = numbers(adjoint(s, with));
    ASSERT_EQ(got.size(), want.size());
    for (std::size_t i = 0; i < want.size(); ++i) EXPECT_EQ(got[i], want[i]) << i;
  }
}

// Inputs that bf16 holds: what differs is what storing stages in bf16 costs, near its unit roundoff of 2^-8 and not of another
// size.
TEST(chunk_adjoint, in_bf16_errs_by_roundings_of_bf16) {
  for (const decay_kind decays : {decay_kind::none, decay_kind::per_token, decay_kind::per_channel}) {
    testing::recipe_stream stream(2311);
    auto [s, with] = formats_case(60, decays, [&] { return static_cast<double>(stream.between(-127, 127)) / 128; });
    for (double& k : s.k) k = std::floor(k * 64) / 128;
    for (double& b : s.step) b = static_cast<double>(stream.between(1, 127)) / 128;
    for (double& a : s.decay) a = static_cast<double>(stream.between(200, 256)) / 256;
    const auto got = in_bf16(s, with).gradient;
    const auto want = adjoint(s, with);
    const auto error = [](const auto& g, const std::vector<double>& w) {
      double difference = 0, size = 0;
      for (std::size_t i = 0; i < w.size(); ++i) {
        difference += (static_cast<double>(g[i]) - w[i]) * (static_cast<double>(g[i]) - w[i]);
        size += w[i] * w[i];
      }
      return std::sqrt(difference / size);
    };
    for (const double e : {error(got.q, want.q), error(got.k, want.k), error(got.v, want.v), error(got.step, want.step)}) {
      EXPECT_GT(e, 0x1p-12);
      EXPECT_LT(e, 0x1p-6);
    }
    if (decays == decay_kind::none) continue;
    EXPECT_LT(error(got.decay, want.decay), 0x1p-6);
  }
}

TEST(chunk_adjoint, refuses_stages_of_another_sequence) {
  const auto s = sequence<rational>::zeros(4, 1, 3, 2), other = sequence<rational>::zeros(5, 1, 3, 2);
  const auto forward = chunkwise<plain<rational>>(other, 2, inverse_named("forward"));
  EXPECT_THROW((void)chunk_adjoint(s, forward, {}), shape_error);
}

TEST(chunk_adjoint, kills_every_planted_fault) {
  const std::size_t cases = scaled(120);
  std::vector<gradient_case<modular>> drawn;
  for (std::size_t i = 0; i < cases; ++i) {
    testing::recipe_stream stream(i * 0x9e3779b97f4a7c15ULL + 7);
    drawn.emplace_back(
        testing::draw_recipe(stream, {.tokens = 8, .steps_per_token = 3, .key_dim = 4, .value_dim = 4, .chunk = 8}));
  }
  std::cout << "rows: faults; columns: the first of " << cases
            << " cases in which the gradient differs, and in which each identity fails\n";
  std::cout << std::left << std::setw(48) << "" << " differs";
  for (const auto& each : identities_of_gradients<modular>) std::cout << "  " << each.name;
  std::cout << "\n";
  std::vector<std::size_t> seen_by(identities_of_gradients<modular>.size(), 0);
  for (const auto& fault : testing::gradient_faults) {
    std::size_t differs = 0;
    std::vector<std::size_t> first(seen_by.size(), 0);
    for (std::size_t i = 0; i < cases; ++i) {
      const auto& c = drawn[i];
      const auto d = testing::faulty_gradient<modular>(c, forward_of(c), fault.id).run();
      if (differs == 0 && numbers(d) != numbers(adjoint(c.s, c.with))) differs = i + 1;
      for (std::size_t j = 0; j < first.size(); ++j) {
        if (first[j] == 0 && !identities_of_gradients<modular>[j].holds(c, d)) first[j] = i + 1;
      }
    }
    std::cout << std::left << std::setw(48) << fault.name << std::right << std::setw(8) << differs;
    for (std::size_t j = 0; j < first.size(); ++j) {
      std::cout << std::setw(static_cast<int>(identities_of_gradients<modular>[j].name.size()) + 2)
                << (first[j] == 0 ? "." : std::to_string(first[j]));
      seen_by[j] += first[j] == 0 ? 0 : 1;
    }
    std::cout << "\n";
    EXPECT_NE(differs, 0U) << fault.name;
  }
  for (std::size_t j = 0; j < seen_by.size(); ++j) {
    std::cout << identities_of_gradients<modular>[j].name << ": " << seen_by[j] << " of " << testing::gradient_faults.size()
              << "\n";
    EXPECT_NE(seen_by[j], 0U) << identities_of_gradients<modular>[j].name << " sees no fault: is it vacuous?";
  }
}

}  // namespace
}  // namespace deltaproof
