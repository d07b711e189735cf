// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
//
// What holds of the library's own interface and of no ring: every arithmetic of an exact scalar gives one result, names
// and methods come back, a stream is a sequence, and a wrong shape is refused whichever operand it is in.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "deltaproof/support/errors.hpp"
#include "support/identities/baseline.hpp"
#include "support/identities/chunk.hpp"
#include "support/identities/dense.hpp"
#include "support/identities/identity.hpp"
#include "support/identities/inverse.hpp"

namespace deltaproof::testing {

template <class A, class M>
struct arithmetics {};

template <class I>
bool orders_of_sums_agree_in_inverses(const I&, const sequence_recipe& r) {
  using S = typename I::scalar;
  recipe_stream stream = choices(r, 60);
  const auto method = any_method(stream);
  const auto lower = with_unread_entries(any_lower<S>(r), r);
  const auto want = run_inverse<plain<S>>(method, lower);
  using paired = arithmetic<S, S, S, pairwise>;
  using in_blocks = arithmetic<S, exact_product, S, blocked<3>>;
  const auto seen_by = [&]<class A, class M>(arithmetics<A, M>) {
    std::vector<shown<S>> seen;
    const auto observe = [&seen](std::string_view stage, const matrix<S>& m) { seen.push_back({stage, m}); };
    const auto result = run_inverse<A, M>(method, lower, observe);
    return std::pair{result, seen};
  };
  return seen_by(arithmetics<plain<S>, plain<S>>{}) == seen_by(arithmetics<paired, in_blocks>{}) &&
         run_inverse<in_blocks, paired>(method, lower) == want && invert_unit_lower<plain<S>>(method, lower) == want &&
         invert_unit_lower<paired, in_blocks>(method, lower) == want;
}

template <class I>
bool orders_of_sums_agree_in_chunks(const I&, const sequence_recipe& r) {
  using S = typename I::scalar;
  recipe_stream stream = choices(r, 61);
  const auto s = make_sequence<S>(r);
  const auto method = any_method(stream);
  using paired = arithmetic<S, S, S, pairwise>;
  using in_blocks = arithmetic<S, exact_product, S, blocked<2>>;
  const auto want = chunkwise<plain<S>>(s, r.chunk, method);
  const auto same = [&want](const auto& got) {
    return got.A == want.A && got.Ai == want.Ai && got.w == want.w && got.u == want.u && got.h == want.h &&
           got.v_new == want.v_new && got.Aqk == want.Aqk && got.o == want.o && got.final_state == want.final_state &&
           got.cumulative_decay == want.cumulative_decay;
  };
  return same(chunkwise<paired>(s, r.chunk, method)) && same(chunkwise<in_blocks>(s, r.chunk, method)) &&
         same(chunkwise<plain<S>, in_blocks, paired>(s, r.chunk, method));
}

/// A method's name names the method, whatever its block length, and near misses name nothing.
template <class I>
bool names_of_inverses(const I&, const sequence_recipe& r) {
  recipe_stream stream = choices(r, 62);
  auto method = any_method(stream);
  if (method.diagonal != diagonal_kind::split && method.block != 0)
    method.block = 1 + below(stream, stream.next() % 4 == 0 ? 2 : 300);
  const std::string name = name_of(method);
  if (!(inverse_named(name) == method)) return false;
  using enum diagonal_kind;
  const std::pair<std::string_view, inverse_method> meant[] = {{"forward", {forward, 0, merge_kind::block}},
                                                               {"neumann", {neumann, 0, merge_kind::block}},
                                                               {"block2", {split, 1, merge_kind::block2}},
                                                               {"block", {split, 1, merge_kind::block}},
                                                               {"forward16+block", {forward, 16, merge_kind::block}},
                                                               {"forward16+block2", {forward, 16, merge_kind::block2}},
                                                               {"neumann16+block", {neumann, 16, merge_kind::block}},
                                                               {"neumann8+block", {neumann, 8, merge_kind::block}}};
  for (std::size_t i = 0; i < inverse_methods.size(); ++i) {
    if (inverse_methods[i].name != meant[i].first || !(inverse_methods[i].method == meant[i].second)) return false;
  }
  const std::string wrong[] = {
      name + "x",        "x" + name, name + "+block3",  "", "+", "neumann+block", "forward0+block", "block2+block",
      "forward-1+block", "Neumann",  "forward1 6+block"};
  for (const std::string& other : wrong) {
    try {
      (void)inverse_named(other);
      return false;
    } catch (const format_error& e) {
      const std::string message = e.what();
      if (message.find("'" + other + "'") == std::string::npos) return false;
      for (const named_inverse& row : inverse_methods) {
        if (message.find(std::string(row.name)) == std::string::npos) return false;
      }
    }
  }
  return true;
}

template <class F>
[[nodiscard]] bool refused_shape(F&& f) {
  try {
    f();
    return false;
  } catch (const shape_error&) {
    return true;
  }
}

/// A sequence with one operand longer or shorter than its shape, or a shape of 0, is refused by everything that reads one.
template <class I>
bool wrong_sequences_are_refused(const I&, const sequence_recipe& recipe) {
  using S = typename I::scalar;
  auto r = recipe;
  r.tokens += 1;
  const auto good = make_sequence<S>(r);
  good.validate();
  recipe_stream stream = choices(r, 63);
  const auto resized = [&stream](std::vector<S> values) {
    if (stream.next() % 2 == 0 && !values.empty()) {
      values.pop_back();
    } else {
      values.push_back(one<S>());
    }
    return values;
  };
  for (int operand = 0; operand < 12; ++operand) {
    auto bad = good;
    switch (operand) {
      case 0:
        bad.q = resized(good.q);
        break;
      case 1:
        bad.k = resized(good.k);
        break;
      case 2:
        bad.v = resized(good.v);
        break;
      case 3:
        bad.step = resized(good.step);
        break;
      case 4:
        bad.decay = resized(good.decay.empty() ? std::vector<S>(good.tokens * good.key_dim, one<S>()) : good.decay);
        break;
      case 5:
        bad.initial_state = matrix<S>(good.key_dim + 1, good.value_dim);
        break;
      case 6:
        bad.initial_state = matrix<S>(good.key_dim, good.value_dim + 1);
        break;
      case 10:
        bad.initial_state = matrix<S>(0, good.value_dim);
        break;
      case 11:
        bad.initial_state = matrix<S>(good.key_dim, 0);
        break;
      case 7:
        bad = sequence<S>{}, bad.steps_per_token = 0;
        break;
      case 8:
        bad = sequence<S>{}, bad.key_dim = 0;
        break;
      default:
        bad = sequence<S>{}, bad.value_dim = 0;
        break;
    }
    // Some lengths are right for another kind of gate.
    if (operand == 4 && (bad.decay.empty() || bad.decay.size() == bad.tokens || bad.decay.size() == bad.tokens * bad.key_dim))
      continue;
    if (!refused_shape([&] { bad.validate(); })) return false;
    if (!refused_shape([&] { (void)recurrent(bad); })) return false;
    if (!refused_shape([&] { (void)wy_recursion(bad, 0, 0); })) return false;
    if (!refused_shape([&] { (void)chunkwise<plain<S>>(bad, 1, inverse_methods[0].method); })) return false;
  }
  return refused_shape([&] { (void)sequence<S>::zeros(1, 0, 1, 1); }) &&
         refused_shape([&] { (void)sequence<S>::zeros(1, 1, 0, 1); }) &&
         refused_shape([&] { (void)sequence<S>::zeros(1, 1, 1, 0); });
}

/// Operands of a machine, of a run and of an inverse that do not fit are refused; those that just fit are not.
template <class I>
bool wrong_operands_are_refused(const I&, const sequence_recipe& r) {
  using S = typename I::scalar;
  const auto s = make_sequence<S>(r);
  const std::size_t rows = dense::rows(s);
  const auto form = wy_recursion(s, rows, 0);
  const matrix<S> state(s.key_dim, s.value_dim);
  recurrence<S> machine(state);
  std::vector<S> key(s.key_dim), value(s.value_dim), longer(std::max(s.key_dim, s.value_dim) + 1);
  const auto span = [](const std::vector<S>& x) { return std::span<const S>(x); };
  machine.step(span(key), span(value), one<S>());
  machine.decay(span(key));
  machine.decay({});
  machine.read(span(key), std::span<S>(value));
  (void)wy_apply(form, state);
  const auto lower = any_lower<S>(r);
  return refused_shape([&] { (void)wy_recursion(s, rows + 1, 0); }) &&
         refused_shape([&] { (void)wy_recursion(s, 0, rows + 1); }) && refused_shape([&] { (void)wy_recursion(s, rows, 1); }) &&
         refused_shape([&] { (void)wy_recursion(s, 1, static_cast<std::size_t>(-1)); }) &&
         refused_shape([&] { (void)wy_apply(form, matrix<S>(s.key_dim + 1, s.value_dim)); }) &&
         refused_shape([&] { (void)wy_apply(form, matrix<S>(s.key_dim, s.value_dim + 1)); }) &&
         refused_shape([&] { machine.step(span(longer), span(value), one<S>()); }) &&
         refused_shape([&] { machine.step(span(key), span(longer), one<S>()); }) &&
         refused_shape([&] { machine.decay(span(longer)); }) &&
         refused_shape([&] { machine.read(span(longer), std::span<S>(value)); }) &&
         refused_shape([&] { machine.read(span(key), std::span<S>(longer)); }) &&
         refused_shape([&] { machine.read(span(key), std::span<S>(value).first(s.value_dim - 1)); }) && refused_shape([&] {
           (void)invert_unit_lower<plain<double>>(inverse_methods[2].method, matrix<double>(lower.rows() + 2, lower.rows()));
         }) &&
         refused_shape([&] { (void)chunkwise<plain<S>>(s, 0, inverse_methods[0].method); }) && refused_shape([&] {
           (void)run_inverse<plain<S>>(inverse_methods[1].method, matrix<S>(lower.rows(), lower.rows() + 1));
         }) &&
         refused_shape(
             [&] { (void)invert_unit_lower<plain<S>>(inverse_methods[2].method, matrix<S>(lower.rows() + 2, lower.rows())); }) &&
         refused_shape([&] { require_strictly_lower(matrix<S>(lower.rows() + 1, lower.rows()), "L"); });
}

/// Strictly lower matrices pass; one entry on or above the diagonal is refused and named by its place.
template <class I>
bool strictly_lower_is_required(const I&, const sequence_recipe& r) {
  using S = typename I::scalar;
  recipe_stream stream = choices(r, 64);
  auto lower = any_lower<S>(r);
  require_strictly_lower(lower, "L");
  if (lower.rows() == 0) return true;
  const std::size_t i = below(stream, lower.rows());
  const std::size_t j = i + below(stream, lower.rows() - i);
  lower(i, j) = one<S>();
  try {
    require_strictly_lower(lower, "L");
    return false;
  } catch (const domain_error& e) {
    return std::string(e.what()).find("L(" + std::to_string(i) + ", " + std::to_string(j) + ")") != std::string::npos;
  }
}

/// A machine fed by hand, and run_tokens with a watcher, are the recurrence; store replaces every entry once.
template <class I>
bool streams_are_the_recurrence(const I&, const sequence_recipe& r) {
  using S = typename I::scalar;
  const auto s = make_sequence<S>(r);
  const auto states = dense::states(s);
  recurrence<S> watched(dense::start(s));
  bool same = true;
  std::size_t seen = 0;
  run_tokens(s, watched, [&](std::size_t t, const recurrence<S>& now) {
    same = same && t == seen++ && now.state() == states[(t + 1) * s.steps_per_token];
  });
  recurrence<S> zeros(s.key_dim, s.value_dim);
  if (!(zeros.state() == dense::zeros<S>(s.key_dim, s.value_dim)) || seen != s.tokens || !same) return false;
  const S three = from_int<S>(3);
  watched.store([&three](const S& x) { return S(x * three); });
  return watched.state() == dense::scaled(three, states.back());
}

/// convert keeps every shape and takes each value through f once.
template <class I>
bool conversion_of_sequences(const I&, const sequence_recipe& r) {
  using S = typename I::scalar;
  const auto s = make_sequence<S>(r);
  std::size_t count = 0;
  const auto there = convert<S>(s, [&count](const S& x) { return ++count, S(x + one<S>()); });
  const auto same = [](const std::vector<S>& a, const std::vector<S>& b) {
    if (a.size() != b.size()) return false;
    for (std::size_t i = 0; i < a.size(); ++i) {
      if (!(b[i] == S(a[i] + one<S>()))) return false;
    }
    return true;
  };
  const auto state = [](const matrix<S>& m) { return std::vector<S>(m.entries().begin(), m.entries().end()); };
  return count == s.q.size() + s.k.size() + s.v.size() + s.step.size() + s.decay.size() + s.initial_state.size() &&
         same(s.q, there.q) && same(s.k, there.k) && same(s.v, there.v) && same(s.step, there.step) &&
         same(s.decay, there.decay) && same(state(s.initial_state), state(there.initial_state)) && there.tokens == s.tokens &&
         there.steps_per_token == s.steps_per_token && there.key_dim == s.key_dim && there.value_dim == s.value_dim &&
         there.initial_state.rows() == s.initial_state.rows();
}

/// The rows a sequence shows are its values at row * width; its kind of gate is told by their number.
template <class I>
bool rows_of_sequences(const I&, const sequence_recipe& r) {
  using S = typename I::scalar;
  const auto s = make_sequence<S>(r);
  const auto same = [](std::span<const S> got, const std::vector<S>& want) {
    return std::vector<S>(got.begin(), got.end()) == want;
  };
  if (s.rows() != s.tokens * s.steps_per_token || !(s.start() == dense::start(s))) return false;
  const decay_kind kind = s.decay.empty()              ? decay_kind::none
                          : s.decay.size() == s.tokens ? decay_kind::per_token
                                                       : decay_kind::per_channel;
  if (s.decays() != kind) return false;
  for (std::size_t row = 0; row < s.rows(); ++row) {
    if (!same(s.k_row(row), dense::key(s, row)) || !same(s.v_row(row), dense::value(s, row))) return false;
  }
  const std::size_t width = kind == decay_kind::none ? 0 : kind == decay_kind::per_token ? 1 : s.key_dim;
  for (std::size_t t = 0; t < s.tokens; ++t) {
    if (!same(s.q_row(t), dense::query(s, t)) || !same(s.decay_of(t), dense::entries(s.decay, t, width))) return false;
  }
  return true;
}

/// sequence::zeros has the shapes it was asked for, zeros everywhere, and the kind of gate it was asked for.
template <class I>
bool sequences_of_zeros(const I&, const sequence_recipe& r) {
  using S = typename I::scalar;
  const auto s = sequence<S>::zeros(r.tokens, r.steps_per_token, r.key_dim, r.value_dim, r.decays);
  const std::size_t rows = r.tokens * r.steps_per_token;
  const std::size_t decays = r.decays == decay_kind::none        ? 0
                             : r.decays == decay_kind::per_token ? r.tokens
                                                                 : r.tokens * r.key_dim;
  const auto none = [](const std::vector<S>& values, std::size_t count) { return values == std::vector<S>(count, zero<S>()); };
  const sequence<S> empty;  // no tokens, one step, one channel each
  if (empty.tokens != 0 || empty.steps_per_token != 1 || empty.key_dim != 1 || empty.value_dim != 1) return false;
  if (chunkwise_stages<S, S>().chunk != 1 || !(inverse_method() == inverse_named("forward"))) return false;
  return s.tokens == r.tokens && s.steps_per_token == r.steps_per_token && s.key_dim == r.key_dim && s.value_dim == r.value_dim &&
         none(s.q, r.tokens * r.key_dim) && none(s.k, rows * r.key_dim) && none(s.v, rows * r.value_dim) && none(s.step, rows) &&
         none(s.decay, decays) && s.initial_state == dense::zeros<S>(r.key_dim, r.value_dim);
}

/// In doubles: an entry below the diagonal that is not finite is refused by its place, one elsewhere is not read.
template <class I>
bool entries_must_be_finite(const I&, const sequence_recipe& r) {
  constexpr double infinity = std::numeric_limits<double>::infinity();
  recipe_stream stream = choices(r, 65);
  const auto method = any_method(stream);
  matrix<double> lower(r.chunk, r.chunk, stream.next() % 2 == 0 ? infinity : std::numeric_limits<double>::quiet_NaN());
  for (std::size_t i = 0; i < r.chunk; ++i) {
    for (std::size_t j = 0; j < i; ++j) lower(i, j) = stream.between(-1, 1);
  }
  const auto x = invert_unit_lower<plain<double>>(method, lower);
  for (std::size_t i = 0; i < r.chunk; ++i) {
    for (std::size_t j = 0; j < r.chunk; ++j) {
      if (!(std::abs(x(i, j)) < infinity)) return false;
    }
  }
  if (r.chunk < 2) return true;
  const std::size_t i = 1 + below(stream, r.chunk - 1);
  const std::size_t j = below(stream, i);
  lower(i, j) = stream.next() % 2 == 0 ? -infinity : std::numeric_limits<double>::quiet_NaN();
  try {
    (void)invert_unit_lower<plain<double>>(method, lower);
    return false;
  } catch (const domain_error& e) {
    return std::string(e.what()).find("L(" + std::to_string(i) + ", " + std::to_string(j) + ")") != std::string::npos;
  }
}

/// In doubles, with decays that are powers of two or 0: g_cumsum_log2 is the sum of their exponents, or -inf.
template <class I>
bool log2_of_decays(const I&, const sequence_recipe& r) {
  auto s = make_sequence<double>(r);
  for (double& x : s.decay) x = x == 0 ? 0 : x < 0.6 ? 0.25 : 0.5;
  const auto got = g_cumsum_log2(chunkwise<plain<double>>(s, r.chunk, inverse_methods[0].method));
  if (got.rows() != dense::rows(s)) return false;
  for (std::size_t row = 0; row < got.rows(); ++row) {
    for (std::size_t c = 0; c < got.cols(); ++c) {
      double want = 0;
      for (std::size_t i = row - row % r.chunk; i <= row; ++i) {
        const double a = dense::decay_before(s, i, c);
        want += a == 0 ? -std::numeric_limits<double>::infinity() : a == 0.25 ? -2 : a == 0.5 ? -1 : 0;
      }
      if (got(row, c) != want) return false;
    }
  }
  return true;
}

template <class I>
inline constexpr identity<I> library_identities[] = {
    {"least_squares_batch", "rank-one RLS = (K^T K + l I)^-1 K^T V", short_runs, &least_squares_is_the_batch<I>},
    {"orders_in_inverses", "one inverse in every order of summation", small_sizes, &orders_of_sums_agree_in_inverses<I>},
    {"orders_in_chunks", "one chunkwise form in every order of summation", wide_runs, &orders_of_sums_agree_in_chunks<I>},
    {"names_of_inverses", "inverse_named(name_of(m)) = m", short_runs, &names_of_inverses<I>},
    {"wrong_sequences", "a sequence of wrong shape is refused", short_runs, &wrong_sequences_are_refused<I>},
    {"wrong_operands", "operands of wrong shape are refused", short_runs, &wrong_operands_are_refused<I>},
    {"strictly_lower", "an entry on or above the diagonal is refused by its place", small_sizes, &strictly_lower_is_required<I>},
    {"streams", "a machine fed token by token = recurrence", wide_runs, &streams_are_the_recurrence<I>},
    {"conversion", "convert takes every value through f once", short_runs, &conversion_of_sequences<I>},
    {"finite_entries", "an entry of L that is not finite is refused by its place, or not read", short_runs,
     &entries_must_be_finite<I>},
    {"log2_of_decays", "g_cumsum_log2 = sum of the exponents of the decays", wide_runs, &log2_of_decays<I>},
    {"zeros", "sequence::zeros has the shapes and the gate asked for", short_runs, &sequences_of_zeros<I>},
    {"rows_of_sequences", "row r of k is k[r K .. r K + K - 1]", wide_runs, &rows_of_sequences<I>},
};

}  // namespace deltaproof::testing
