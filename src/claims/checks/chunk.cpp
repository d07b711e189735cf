// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
//
// Claims about many steps at once: the parallel form of linear attention, WY, UT, the chunkwise form, and inverting I + L.

#include "claims/checks/parts.hpp"
#include "deltaproof/algebra/triangular.hpp"
#include "deltaproof/rule/baselines.hpp"
#include "deltaproof/scan/chunkwise.hpp"
#include "deltaproof/scan/recurrent.hpp"

namespace deltaproof::claim_detail {
namespace {

constexpr std::size_t tokens = 6;

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

/// From a state of zeros: S_t = sum u_i k_i^T, without it the start is missing.
claim_values sum_of_writes() {
  chunk c;
  const auto holds = [](const chunk& of) { return of.u().transpose() * of.k == of.states().back(); };
  const bool from_elsewhere = holds(c);
  c.start.setZero();
  return {{"from_zero_equal", holds(c)}, {"from_elsewhere_equal", from_elsewhere}};
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
  // P is the product of the transitions; H the sum of β_i v_i k_iᵀ, each times the transitions of the rows after it.
  fraction_matrix p = eye(channels), h = zeros(width, channels), from_its_own_row = h;
  for (Eigen::Index t = 0; t < c.k.rows(); ++t) {
    const fraction_vector k = c.k.row(t);
    const fraction_matrix moved = transition(k, c.beta[t]), written = c.beta[t] * c.v.row(t).transpose() * k.transpose();
    p = p * moved;
    h = h * moved + written;
    from_its_own_row = (from_its_own_row + written) * moved;
  }
  return {{"p_and_h_equal", c.start * p + h == states.back()},
          {"h_from_its_own_row_equal", c.start * p + from_its_own_row == states.back()},
          {"state_equal", c.start + change.transpose() * c.k == states.back()},
          {"outputs_equal", outputs == expected},
          {"library_equal", in_chunks_of(tokens)},
          {"two_chunks_equal", in_chunks_of(tokens / 2)},
          {"mask_equal", lower_part(ones) - eye(4) == strictly_lower(ones)}};
}

/// W of a chunk as T K and by its recursion over the rows before, w_r = β_r (k_r − Σ w_i k_iᵀ k_r); and with one
/// β changed.
claim_values w_from_the_inputs() {
  chunk c;
  const fraction_matrix w = c.w();
  const bool from_t = c.solve(eye(tokens)) * c.k == w;
  fraction_matrix by_recursion(tokens, channels);
  for (Eigen::Index r = 0; r < c.k.rows(); ++r) {
    fraction_vector left = c.k.row(r);
    for (Eigen::Index i = 0; i < r; ++i) left -= c.k.row(i).dot(c.k.row(r)) * by_recursion.row(i).transpose();
    by_recursion.row(r) = c.beta[r] * left.transpose();
  }
  const bool by_rows_equal = by_recursion == w;
  c.beta[0] += 1;
  return {{"equal", from_t}, {"recursion_equal", by_rows_equal}, {"other_beta_equal", c.w() == w}};
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
  rational largest = 0, largest_of_t = 0;
  for (const auto& keys : {std::vector{first, second, third}, std::vector{first}}) {
    for (const rational& beta : {fraction(1, 2), rational(1), rational(2)}) {
      const rational entry = inverse_of(keys, beta).cwiseAbs().maxCoeff();
      largest = std::max<rational>(largest, entry);
      largest_of_t = std::max<rational>(largest_of_t, entry * beta);
    }
  }
  return {{"largest_with_unit_keys", text_of(largest)},
          {"largest_of_t_with_unit_keys", text_of(largest_of_t)},
          {"last_entry_of_long_keys", text_of(inverse_of({2 * first}, 1)(tokens - 1, 0))}};
}

/// A of blocks of 1, 3 and 2 rows, its inverse above them; and A with a diagonal block whose rows are dependent.
claim_values block_triangles() {
  fraction_matrix a = sample_matrix(6, 6, 95);
  a.block(0, 1, 1, 5).setZero();
  a.block(1, 4, 3, 2).setZero();
  const fraction_matrix b = a.inverse();
  fraction_matrix singular = a;
  for (Eigen::Index j = 1; j < 4; ++j) singular(3, j) = singular(1, j) + singular(2, j);
  return {{"is_inverse", a * b == eye(6)},
          {"is_block_lower", b.block(0, 1, 1, 5).isZero(0) && b.block(1, 4, 3, 2).isZero(0)},
          {"singular_block_has_an_inverse", singular.determinant() != 0}};
}

/// S₂ of 8 rows by the recursion as it must be, and as it is printed.
claim_values doubling() {
  const fraction_matrix l = strictly_lower(sample_matrix(8, 8, 91));
  const fraction_matrix first = eye(8) - l;
  const fraction_matrix second = first + l * l - l * l * l;
  const fraction_matrix factor = eye(8) + l * l;
  return {{"recursion_equal", first * factor == second}, {"printed_equal", second * factor == second}};
}

/// Every algorithm of the library on one L, in fractions.
claim_values all_algorithms() {
  using plain = arithmetic<rational, rational, rational, sequential>;
  const fraction_matrix l = strictly_lower(sample_matrix(20, 20, 93));
  const fraction_matrix x = (eye(20) + l).inverse();
  const auto inverts = [&](const inverse_method& method) {
    return state_of(invert_unit_lower<plain>(method, library_state(l.transpose()))).transpose() == x;
  };
  std::uint64_t equal = 0;
  for (const named_inverse& row : inverse_methods) equal += inverts(row.method) ? 1 : 0;
  return {{"algorithms", inverse_methods.size()},
          {"equal", equal},
          {"doubling_in_blocks_equal", inverts(inverse_named("neumann8+block"))}};
}

}  // namespace

std::span<const claim_check> chunk_checks() {
  static constexpr auto all = std::to_array<claim_check>({{"parallel_form", exactly, parallel_form},
                                                          {"sum_of_writes", exactly, sum_of_writes},
                                                          {"matrix_form", exactly, matrix_form},
                                                          {"entries_of_the_inverse", exactly, entries_of_the_inverse},
                                                          {"w_from_the_inputs", exactly, w_from_the_inputs},
                                                          {"block_triangles", exactly, block_triangles},
                                                          {"doubling", exactly, doubling},
                                                          {"all_algorithms", exactly, all_algorithms}});
  return all;
}

}  // namespace deltaproof::claim_detail
