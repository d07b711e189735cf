// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
//
// Sequences with cotangents, and the identities that every gradient obeys, each as a yes or no: they need no reference.
#pragma once

#include <array>
#include <cstddef>
#include <string_view>
#include <vector>

#include "deltaproof/number/scalar.hpp"
#include "deltaproof/scan/adjoint.hpp"
#include "deltaproof/scan/recurrent.hpp"
#include "support/recipes.hpp"

namespace deltaproof::testing {

template <class S>
struct gradient_case {
  sequence<S> s;
  cotangents<S> with;
  std::size_t chunk = 1;

  explicit gradient_case(const sequence_recipe& recipe) : s{make_sequence<S>(recipe)}, chunk{recipe.chunk} {
    recipe_stream rest(recipe.seed ^ 0x0d0);
    with.o = matrix<S>(s.tokens, s.value_dim);
    for (S& x : with.o.entries()) x = from_int<S>(rest.between(-3, 3));
    if (rest.between(0, 1) == 0) return;
    with.final_state = matrix<S>(s.key_dim, s.value_dim);
    for (S& x : with.final_state.entries()) x = from_int<S>(rest.between(-3, 3));
  }
  [[nodiscard]] matrix<S> last_cotangent() const {
    return with.final_state.empty() ? matrix<S>(s.key_dim, s.value_dim, zero<S>()) : with.final_state;
  }
};

template <class S>
S sum_of_products(const matrix<S>& a, const matrix<S>& b) {
  S sum = zero<S>();
  for (std::size_t i = 0; i < b.size(); ++i) sum = sum + a.data()[i] * b.data()[i];
  return sum;
}
/// Of row `row` of two lists whose rows have `width` numbers.
template <class S>
S row_dot(const std::vector<S>& a, const std::vector<S>& b, std::size_t row, std::size_t width) {
  S sum = zero<S>();
  for (std::size_t i = row * width; i < (row + 1) * width; ++i) sum = sum + a[i] * b[i];
  return sum;
}

/// q . dq = o . do, token by token.
template <class S>
bool reads_agree(const gradient_case<S>& c, const sequence<S>& d) {
  const matrix<S> o = recurrent(c.s).o;
  for (std::size_t t = 0; t < c.s.tokens; ++t) {
    S read = zero<S>();
    for (std::size_t j = 0; j < c.s.value_dim; ++j) read = read + o(t, j) * c.with.o(t, j);
    if (!(row_dot(c.s.q, d.q, t, c.s.key_dim) == read)) return false;
  }
  return true;
}
/// k . dk + v . dv = 2 b db, row by row: k -> c k, v -> c v, b -> b / c^2 changes nothing.
template <class S>
bool writes_agree(const gradient_case<S>& c, const sequence<S>& d) {
  for (std::size_t row = 0; row < c.s.rows(); ++row) {
    const S b_db = c.s.step[row] * d.step[row];
    if (!(row_dot(c.s.k, d.k, row, c.s.key_dim) + row_dot(c.s.v, d.v, row, c.s.value_dim) == b_db + b_db)) return false;
  }
  return true;
}
/// What a token reads less what it writes.
template <class S>
S read_less_written(const gradient_case<S>& c, const sequence<S>& d, std::size_t t) {
  S sum = row_dot(c.s.q, d.q, t, c.s.key_dim);
  for (std::size_t row = t * c.s.steps_per_token; row < (t + 1) * c.s.steps_per_token; ++row)
    sum = sum - row_dot(c.s.v, d.v, row, c.s.value_dim);
  return sum;
}
/// dg_t - dg_(t+1) = q . dq - v . dv, from dg_(T+1) = <S_T, dS_T>.
template <class S>
bool decays_agree(const gradient_case<S>& c, const sequence<S>& d) {
  const std::size_t width = c.s.tokens == 0 ? 0 : c.s.decay.size() / c.s.tokens;
  if (width == 0) return true;
  S later = sum_of_products(recurrent(c.s).final_state, c.last_cotangent());
  for (std::size_t t = c.s.tokens; t-- > 0;) {
    S now = zero<S>();
    for (std::size_t i = 0; i < width; ++i) now = now + d.decay[t * width + i];
    if (!(now - later == read_less_written(c, d, t))) return false;
    later = now;
  }
  return true;
}
/// sum v . dv + <S_0, dS_0> = sum o . do + <S_T, dS_T>.
template <class S>
bool sums_agree(const gradient_case<S>& c, const sequence<S>& d) {
  const trace<S> run = recurrent(c.s);
  S left = sum_of_products(c.s.start(), d.initial_state),
    right = sum_of_products(run.o, c.with.o) + sum_of_products(run.final_state, c.last_cotangent());
  for (std::size_t i = 0; i < c.s.v.size(); ++i) left = left + c.s.v[i] * d.v[i];
  return left == right;
}
/// The same as matrices, V x V: sum v dv^T + S_0^T dS_0 = sum o do^T + S_T^T dS_T.
template <class S>
bool value_sums_agree(const gradient_case<S>& c, const sequence<S>& d) {
  const auto& s = c.s;
  const trace<S> run = recurrent(s);
  const matrix<S> start = s.start(), last = c.last_cotangent();
  for (std::size_t i = 0; i < s.value_dim; ++i) {
    for (std::size_t j = 0; j < s.value_dim; ++j) {
      S sum = zero<S>();
      for (std::size_t row = 0; row < s.rows(); ++row) sum = sum + s.v[row * s.value_dim + i] * d.v[row * s.value_dim + j];
      for (std::size_t t = 0; t < s.tokens; ++t) sum = sum - run.o(t, i) * c.with.o(t, j);
      for (std::size_t m = 0; m < s.key_dim; ++m)
        sum = sum + start(m, i) * d.initial_state(m, j) - run.final_state(m, i) * last(m, j);
      if (!(sum == zero<S>())) return false;
    }
  }
  return true;
}
/// sum q dq^T + sum k dk^T + S_0 dS_0^T + dS_T S_T^T is symmetric, K x K, where a decay is one number.
template <class S>
bool key_sums_are_symmetric(const gradient_case<S>& c, const sequence<S>& d) {
  const auto& s = c.s;
  if (s.decays() == decay_kind::per_channel) return true;
  const matrix<S> start = s.start(), last = c.last_cotangent(), end = recurrent(s).final_state;
  const auto entry = [&](std::size_t i, std::size_t j) {
    S sum = zero<S>();
    for (std::size_t t = 0; t < s.tokens; ++t) sum = sum + s.q[t * s.key_dim + i] * d.q[t * s.key_dim + j];
    for (std::size_t row = 0; row < s.rows(); ++row) sum = sum + s.k[row * s.key_dim + i] * d.k[row * s.key_dim + j];
    for (std::size_t m = 0; m < s.value_dim; ++m) sum = sum + start(i, m) * d.initial_state(j, m) + last(i, m) * end(j, m);
    return sum;
  };
  for (std::size_t i = 0; i < s.key_dim; ++i) {
    for (std::size_t j = 0; j < i; ++j) {
      if (!(entry(i, j) == entry(j, i))) return false;
    }
  }
  return true;
}

template <class S>
struct gradient_identity {
  std::string_view name;
  bool (*holds)(const gradient_case<S>&, const sequence<S>&);
};
template <class S>
inline constexpr std::array<gradient_identity<S>, 6> identities_of_gradients{{{"q.dq = o.do", &reads_agree<S>},
                                                                              {"k.dk + v.dv = 2 b db", &writes_agree<S>},
                                                                              {"dg falls", &decays_agree<S>},
                                                                              {"sums", &sums_agree<S>},
                                                                              {"sums, V x V", &value_sums_agree<S>},
                                                                              {"symmetry, K x K", &key_sums_are_symmetric<S>}}};

}  // namespace deltaproof::testing
