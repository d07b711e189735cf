// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
//
// Claims about many steps at once: the parallel form of linear attention, WY, UT and the chunkwise form.

#include <algorithm>
#include <array>

#include "claims/checks/parts.hpp"
#include "deltaproof/rule/baselines.hpp"
#include "deltaproof/scan/chunkwise.hpp"
#include "deltaproof/scan/recurrent.hpp"
#include "deltaproof/scan/wy.hpp"

namespace deltaproof::claim_detail {
namespace {

constexpr std::size_t tokens = 6;
constexpr std::size_t channels = 3;
constexpr std::size_t width = 2;

/// A chunk of six tokens with a state before it, everything the notes derive of it by their own formulas.
struct chunk {
  fraction_matrix q = sample_matrix(tokens, channels, 80);
  fraction_matrix k = sample_matrix(tokens, channels, 81);
  fraction_matrix v = sample_matrix(tokens, width, 82);
  fraction_matrix start = sample_matrix(width, channels, 83);
  fraction_vector beta = sample_vector(tokens, 84);

  fraction_matrix scaled_rows(const fraction_matrix& m) const {
    fraction_matrix out = m;
    for (std::size_t i = 0; i < tokens; ++i) {
      for (rational& entry : out.row(i)) entry *= beta[i];
    }
    return out;
  }
  fraction_matrix lower() const { return scaled_rows(lower_part(product(k, transpose(k)), true)); }
  fraction_matrix solve(const fraction_matrix& right) const {
    return product(inverse(combined(identity<rational>(tokens), 1, lower())), scaled_rows(right));
  }
  fraction_matrix w() const { return solve(k); }
  fraction_matrix u() const { return solve(v); }

  /// States and outputs by the recurrence.
  std::vector<fraction_matrix> states() const {
    std::vector<fraction_matrix> all{start};
    for (std::size_t t = 0; t < tokens; ++t) all.push_back(delta_step(all.back(), row_of(k, t), row_of(v, t), beta[t]));
    return all;
  }
  sequence<rational> as_sequence() const {
    auto s = sequence<rational>::zeros(tokens, 1, channels, width);
    s.q.assign(q.entries().begin(), q.entries().end());
    s.k.assign(k.entries().begin(), k.entries().end());
    s.v.assign(v.entries().begin(), v.entries().end());
    s.step = beta;
    s.initial_state = transpose(start);
    return s;
  }
};

claim_values parallel_form() {
  const chunk c;
  hebbian<rational> machine(channels, width);
  gated_hebbian<rational> gated(channels, width);
  fraction_matrix outputs(tokens, width);
  fraction_matrix gated_outputs(tokens, width);
  const fraction_vector decay{fraction(1, 2)};
  for (std::size_t t = 0; t < tokens; ++t) {
    machine.step(row_of(c.k, t), row_of(c.v, t));
    machine.read(row_of(c.q, t), outputs.row(t));
    gated.step(decay, row_of(c.k, t), row_of(c.v, t));
    gated.read(row_of(c.q, t), gated_outputs.row(t));
  }
  const fraction_matrix printed = product(lower_part(product(c.q, transpose(c.k)), false), c.v);
  return {{"equal", printed == outputs}, {"gated_equal", printed == gated_outputs}};
}

/// P^r and H^r by their definitions, and S^r = S P^r + H^r at every r.
claim_values chunk_state() {
  const chunk c;
  const auto states = c.states();
  fraction_matrix p = identity<rational>(channels);
  bool equal = true;
  bool w_form = true;
  bool u_form = true;
  bool state_form = true;
  bool output_form = true;
  const fraction_matrix w = c.w();
  const fraction_matrix u = c.u();
  for (std::size_t r = 1; r <= tokens; ++r) {
    p = product(p, transition(row_of(c.k, r - 1), c.beta[r - 1]));
    fraction_matrix h(width, channels);
    for (std::size_t i = 0; i < r; ++i) {
      fraction_matrix term = outer(scaled(c.beta[i], row_of(c.v, i)), row_of(c.k, i));
      for (std::size_t j = i + 1; j < r; ++j) term = product(term, transition(row_of(c.k, j), c.beta[j]));
      h = combined(h, 1, term);
    }
    fraction_matrix low_rank = identity<rational>(channels);
    fraction_matrix written(width, channels);
    fraction_matrix state = c.start;
    const fraction_vector q = row_of(c.q, r - 1);
    fraction_vector output = product(c.start, q);
    for (std::size_t i = 0; i < r; ++i) {
      const fraction_vector key = row_of(c.k, i);
      low_rank = combined(low_rank, -1, outer(row_of(w, i), key));
      written = combined(written, 1, outer(row_of(u, i), key));
      fraction_vector change = row_of(u, i);
      const fraction_vector predicted = product(c.start, row_of(w, i));
      for (std::size_t a = 0; a < width; ++a) change[a] -= predicted[a];
      state = combined(state, 1, outer(change, key));
      for (std::size_t a = 0; a < width; ++a) output[a] += change[a] * inner(key, q);
    }
    equal = equal && states[r] == combined(product(c.start, p), 1, h);
    w_form = w_form && low_rank == p;
    u_form = u_form && written == h;
    state_form = state_form && state == states[r];
    output_form = output_form && output == product(states[r], q);
  }
  return {{"equal", equal},
          {"w_form_equal", w_form},
          {"u_form_equal", u_form},
          {"state_form_equal", state_form},
          {"output_form_equal", output_form}};
}

/// From a state of zeros: S_t = sum u_i k_i^T, without it the start is missing.
claim_values sum_of_writes() {
  chunk c;
  const auto holds = [&](const chunk& of) {
    fraction_matrix sum(width, channels);
    const fraction_matrix u = of.u();
    for (std::size_t i = 0; i < tokens; ++i) sum = combined(sum, 1, outer(row_of(u, i), row_of(of.k, i)));
    return sum == of.states().back();
  };
  const bool from_elsewhere = holds(c);
  c.start = fraction_matrix(width, channels);
  return {{"from_zero_equal", holds(c)}, {"from_elsewhere_equal", from_elsewhere}};
}

/// w and u by their recursions against the solutions of the triangular systems, and the library's.
claim_values recursions() {
  const chunk c;
  const auto by_recursion = [&](const fraction_matrix& right) {
    fraction_matrix x(tokens, right.cols());
    for (std::size_t r = 0; r < tokens; ++r) {
      fraction_vector row = row_of(right, r);
      for (std::size_t i = 0; i < r; ++i) {
        for (std::size_t a = 0; a < row.size(); ++a) row[a] -= x(i, a) * inner(row_of(c.k, i), row_of(c.k, r));
      }
      for (std::size_t a = 0; a < row.size(); ++a) x(r, a) = c.beta[r] * row[a];
    }
    return x;
  };
  const wy_form<rational> form = wy_recursion(c.as_sequence(), 0, tokens);
  return {{"w_equal", by_recursion(c.k) == c.w()},
          {"u_equal", by_recursion(c.v) == c.u()},
          {"library_equal", form.w == c.w() && form.u == c.u()}};
}

claim_values matrix_form() {
  const chunk c;
  const auto states = c.states();
  const fraction_matrix w = c.w();
  const fraction_matrix u = c.u();
  const fraction_matrix state = combined(c.start, 1, product(combined(transpose(u), -1, product(c.start, transpose(w))), c.k));
  const fraction_matrix outputs =
      combined(product(c.q, transpose(c.start)), 1,
               product(lower_part(product(c.q, transpose(c.k)), false), combined(u, -1, product(w, transpose(c.start)))));
  fraction_matrix expected(tokens, width);
  for (std::size_t t = 0; t < tokens; ++t) {
    const fraction_vector o = product(states[t + 1], row_of(c.q, t));
    std::copy(o.begin(), o.end(), expected.row(t).begin());
  }
  using plain = arithmetic<rational, rational, rational, sequential>;
  const auto stages = chunkwise<plain>(c.as_sequence(), tokens, inverse_method{});
  const auto halves = chunkwise<plain>(c.as_sequence(), tokens / 2, inverse_method{});
  const fraction_matrix strict = lower_part(fraction_matrix(4, 4, rational(1)), true);
  return {{"state_equal", state == states.back()},
          {"outputs_equal", outputs == expected},
          {"library_equal", stages.o == expected && transpose(stages.final_state) == states.back()},
          {"two_chunks_equal", halves.o == expected && transpose(halves.final_state) == states.back()},
          {"mask_equal", combined(lower_part(fraction_matrix(4, 4, rational(1)), false), -1, identity<rational>(4)) == strict}};
}

/// T = (I + L)⁻¹ Diag(β): W = T K, U = T V and its diagonal.
claim_values ut_transform() {
  const chunk c;
  fraction_matrix t = c.solve(identity<rational>(tokens));
  bool diagonal = true;
  for (std::size_t i = 0; i < tokens; ++i) diagonal = diagonal && t(i, i) == c.beta[i];
  return {{"w_equal", product(t, c.k) == c.w()}, {"u_equal", product(t, c.v) == c.u()}, {"diagonal_is_beta", diagonal}};
}

/// W of a chunk, and of the same keys with one β changed.
claim_values w_from_the_inputs() {
  chunk c;
  const fraction_matrix w = c.w();
  const bool from_t = product(c.solve(identity<rational>(tokens)), c.k) == w;
  c.beta[0] += 1;
  return {{"equal", from_t}, {"other_beta_equal", c.w() == w}};
}

/// (I + L)⁻¹ of six keys, all with one β.
fraction_matrix inverse_of(const std::vector<fraction_vector>& keys, const rational& beta) {
  fraction_matrix a = identity<rational>(tokens);
  for (std::size_t i = 0; i < tokens; ++i) {
    for (std::size_t j = 0; j < i; ++j) a(i, j) = beta * inner(keys[i % keys.size()], keys[j % keys.size()]);
  }
  return inverse(a);
}

claim_values entries_of_the_inverse() {
  const fraction_vector first{fraction(2, 7), fraction(3, 7), fraction(6, 7)};
  const std::vector<fraction_vector> mixed{first, {fraction(3, 5), fraction(4, 5), 0}, {0, fraction(5, 13), fraction(12, 13)}};
  rational largest = 0;
  for (const auto& keys : {mixed, std::vector<fraction_vector>{first}}) {
    for (const rational& beta : {fraction(1, 2), rational(1), rational(2)}) {
      const fraction_matrix x = inverse_of(keys, beta);
      for (const rational& entry : x.entries()) largest = std::max<rational>(largest, abs(entry));
    }
  }
  return {{"largest_with_unit_keys", approximate(largest)},
          {"last_entry_of_long_keys", approximate(abs(inverse_of({scaled(2, first)}, 1)(tokens - 1, 0)))}};
}

}  // namespace

std::span<const claim_check> chunk_checks() {
  static constexpr std::array all{
      claim_check{"parallel_form", claim_method::exact_check, parallel_form},
      claim_check{"chunk_state", claim_method::exact_check, chunk_state},
      claim_check{"sum_of_writes", claim_method::exact_check, sum_of_writes},
      claim_check{"recursions", claim_method::exact_check, recursions},
      claim_check{"matrix_form", claim_method::exact_check, matrix_form},
      claim_check{"ut_transform", claim_method::exact_check, ut_transform},
      claim_check{"entries_of_the_inverse", claim_method::exact_check, entries_of_the_inverse},
      claim_check{"w_from_the_inputs", claim_method::exact_check, w_from_the_inputs},
  };
  return all;
}

}  // namespace deltaproof::claim_detail
