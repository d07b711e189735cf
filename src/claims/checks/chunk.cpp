// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
//
// Claims about many steps at once: the parallel form of linear attention, WY, UT and the chunkwise form.

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

fraction_matrix lower_part(const fraction_matrix& m) { return m.triangularView<Eigen::Lower>(); }
/// The library keeps a token in a row: its matrices are the transposes of states.
fraction_matrix rows_of(const matrix<rational>& m) { return state_of(m).transpose(); }
std::vector<rational> by_rows(const fraction_matrix& m) {
  const fraction_matrix columns = m.transpose();
  return {columns.data(), columns.data() + columns.size()};
}

/// A chunk of six tokens with a state before it, everything the notes derive of it by their own formulas.
struct chunk {
  fraction_matrix q = sample_matrix(tokens, channels, 80);
  fraction_matrix k = sample_matrix(tokens, channels, 81);
  fraction_matrix v = sample_matrix(tokens, width, 82);
  fraction_matrix start = sample_matrix(width, channels, 83);
  fraction_vector beta = sample_vector(tokens, 84);

  fraction_matrix lower() const { return beta.asDiagonal() * strictly_lower(k * k.transpose()); }
  fraction_matrix solve(const fraction_matrix& right) const {
    return (eye(tokens) + lower()).inverse() * beta.asDiagonal() * right;
  }
  fraction_matrix w() const { return solve(k); }
  fraction_matrix u() const { return solve(v); }

  /// States by the recurrence.
  std::vector<fraction_matrix> states() const {
    std::vector<fraction_matrix> all{start};
    for (Eigen::Index t = 0; t < k.rows(); ++t) all.push_back(delta_step(all.back(), k.row(t), v.row(t), beta[t]));
    return all;
  }
  sequence<rational> as_sequence() const {
    auto s = sequence<rational>::zeros(tokens, 1, channels, width);
    s.q = by_rows(q);
    s.k = by_rows(k);
    s.v = by_rows(v);
    s.step = by_rows(beta);
    s.initial_state = library_state(start);
    return s;
  }
};

claim_values parallel_form() {
  const chunk c;
  hebbian<rational> machine(channels, width);
  gated_hebbian<rational> gated(channels, width);
  matrix<rational> outputs(tokens, width), gated_outputs(tokens, width);
  const std::vector<rational> decay{fraction(1, 2)};
  for (std::size_t t = 0; t < tokens; ++t) {
    const auto row = [t](const fraction_matrix& m) -> fraction_vector { return m.row(static_cast<Eigen::Index>(t)); };
    machine.step(span_of(row(c.k)), span_of(row(c.v)));
    machine.read(span_of(row(c.q)), outputs.row(t));
    gated.step(decay, span_of(row(c.k)), span_of(row(c.v)));
    gated.read(span_of(row(c.q)), gated_outputs.row(t));
  }
  const fraction_matrix printed = lower_part(c.q * c.k.transpose()) * c.v;
  return {{"equal", printed == rows_of(outputs)}, {"gated_equal", printed == rows_of(gated_outputs)}};
}

/// P^r and H^r by their definitions, and S^r = S P^r + H^r at every r.
claim_values chunk_state() {
  const chunk c;
  const auto states = c.states();
  const fraction_matrix w = c.w();
  const fraction_matrix u = c.u();
  fraction_matrix p = eye(channels);
  bool equal = true;
  bool w_form = true;
  bool u_form = true;
  bool state_form = true;
  bool output_form = true;
  for (Eigen::Index r = 0; r < c.k.rows(); ++r) {
    p = p * transition(c.k.row(r), c.beta[r]);
    fraction_matrix h = zeros(width, channels);
    for (Eigen::Index i = 0; i <= r; ++i) {
      fraction_matrix term = c.beta[i] * c.v.row(i).transpose() * c.k.row(i);
      for (Eigen::Index j = i + 1; j <= r; ++j) term = term * transition(c.k.row(j), c.beta[j]);
      h += term;
    }
    fraction_matrix low_rank = eye(channels);
    fraction_matrix written = zeros(width, channels);
    fraction_matrix state = c.start;
    const fraction_vector q = c.q.row(r);
    fraction_vector output = c.start * q;
    for (Eigen::Index i = 0; i <= r; ++i) {
      const fraction_vector change = u.row(i).transpose() - c.start * w.row(i).transpose();
      low_rank -= w.row(i).transpose() * c.k.row(i);
      written += u.row(i).transpose() * c.k.row(i);
      state += change * c.k.row(i);
      output += change * c.k.row(i).dot(q);
    }
    const fraction_matrix& after = states[static_cast<std::size_t>(r) + 1];
    equal = equal && after == c.start * p + h;
    w_form = w_form && low_rank == p;
    u_form = u_form && written == h;
    state_form = state_form && state == after;
    output_form = output_form && output == after * q;
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
  const auto holds = [](const chunk& of) { return of.u().transpose() * of.k == of.states().back(); };
  const bool from_elsewhere = holds(c);
  c.start.setZero();
  return {{"from_zero_equal", holds(c)}, {"from_elsewhere_equal", from_elsewhere}};
}

/// w and u by their recursions against the solutions of the triangular systems, and the library's.
claim_values recursions() {
  const chunk c;
  const auto by_recursion = [&](const fraction_matrix& right) {
    fraction_matrix x = right;
    for (Eigen::Index r = 0; r < x.rows(); ++r) {
      for (Eigen::Index i = 0; i < r; ++i) x.row(r) -= c.k.row(i).dot(c.k.row(r)) * x.row(i);
      x.row(r) *= c.beta[r];
    }
    return x;
  };
  const wy_form<rational> form = wy_recursion(c.as_sequence(), 0, tokens);
  return {{"w_equal", by_recursion(c.k) == c.w()},
          {"u_equal", by_recursion(c.v) == c.u()},
          {"library_equal", rows_of(form.w) == c.w() && rows_of(form.u) == c.u()}};
}

claim_values matrix_form() {
  const chunk c;
  const auto states = c.states();
  const fraction_matrix change = c.u() - c.w() * c.start.transpose();
  const fraction_matrix outputs = c.q * c.start.transpose() + lower_part(c.q * c.k.transpose()) * change;
  fraction_matrix expected(tokens, width);
  for (std::size_t t = 0; t < tokens; ++t) {
    const auto row = static_cast<Eigen::Index>(t);
    expected.row(row) = c.q.row(row) * states[t + 1].transpose();
  }
  using plain = arithmetic<rational, rational, rational, sequential>;
  const auto in_chunks_of = [&](std::size_t rows) {
    const auto stages = chunkwise<plain>(c.as_sequence(), rows, inverse_method{});
    return rows_of(stages.o) == expected && state_of(stages.final_state) == states.back();
  };
  const fraction_matrix ones = fraction_matrix::Ones(4, 4);
  return {{"state_equal", c.start + change.transpose() * c.k == states.back()},
          {"outputs_equal", outputs == expected},
          {"library_equal", in_chunks_of(tokens)},
          {"two_chunks_equal", in_chunks_of(tokens / 2)},
          {"mask_equal", lower_part(ones) - eye(4) == strictly_lower(ones)}};
}

/// T = (I + L)⁻¹ Diag(β): W = T K, U = T V and its diagonal.
claim_values ut_transform() {
  const chunk c;
  const fraction_matrix t = c.solve(eye(tokens));
  return {{"w_equal", t * c.k == c.w()}, {"u_equal", t * c.v == c.u()}, {"diagonal_is_beta", t.diagonal() == c.beta}};
}

/// W of a chunk, and of the same keys with one β changed.
claim_values w_from_the_inputs() {
  chunk c;
  const fraction_matrix w = c.w();
  const bool from_t = c.solve(eye(tokens)) * c.k == w;
  c.beta[0] += 1;
  return {{"equal", from_t}, {"other_beta_equal", c.w() == w}};
}

claim_values entries_of_the_inverse() {
  const fraction_vector first{{fraction(2, 7), fraction(3, 7), fraction(6, 7)}};
  const fraction_vector second{{fraction(3, 5), fraction(4, 5), 0}};
  const fraction_vector third{{0, fraction(5, 13), fraction(12, 13)}};
  /// (I + L)⁻¹ of these keys in turn, all with one β.
  const auto inverse_of = [](const std::vector<fraction_vector>& keys, const rational& beta) -> fraction_matrix {
    fraction_matrix a = eye(tokens);
    for (std::size_t i = 0; i < tokens; ++i) {
      for (std::size_t j = 0; j < i; ++j)
        a(static_cast<Eigen::Index>(i), static_cast<Eigen::Index>(j)) = beta * keys[i % keys.size()].dot(keys[j % keys.size()]);
    }
    return a.inverse();
  };
  rational largest = 0;
  for (const auto& keys : {std::vector{first, second, third}, std::vector{first}}) {
    for (const rational& beta : {fraction(1, 2), rational(1), rational(2)})
      largest = std::max<rational>(largest, inverse_of(keys, beta).cwiseAbs().maxCoeff());
  }
  return {{"largest_with_unit_keys", approximate(largest)},
          {"last_entry_of_long_keys", approximate(abs(inverse_of({2 * first}, 1)(tokens - 1, 0)))}};
}

}  // namespace

std::span<const claim_check> chunk_checks() {
  static constexpr auto all = std::to_array<claim_check>({{"parallel_form", exactly, parallel_form},
                                                          {"chunk_state", exactly, chunk_state},
                                                          {"sum_of_writes", exactly, sum_of_writes},
                                                          {"recursions", exactly, recursions},
                                                          {"matrix_form", exactly, matrix_form},
                                                          {"ut_transform", exactly, ut_transform},
                                                          {"entries_of_the_inverse", exactly, entries_of_the_inverse},
                                                          {"w_from_the_inputs", exactly, w_from_the_inputs}});
  return all;
}

}  // namespace deltaproof::claim_detail
