// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
//
// A second implementation of everything the catalogue of identities asks for, in plain loops over a ring, into which any
// one fault of faults.hpp can be planted: `faulty<S>(fault::gate_after)`. Without a fault it must satisfy every identity;
// with one it must not. It shares no code with the library's scan and inverses, nor with the dense right-hand sides.
#pragma once

#include <algorithm>
#include <cstddef>
#include <span>
#include <utility>
#include <vector>

#include "deltaproof/algebra/matrix.hpp"
#include "deltaproof/algebra/triangular.hpp"
#include "deltaproof/scan/chunkwise.hpp"
#include "deltaproof/scan/recurrent.hpp"
#include "deltaproof/scan/sequence.hpp"
#include "deltaproof/scan/wy.hpp"
#include "support/faults.hpp"
#include "support/faulty_inverse.hpp"

namespace deltaproof::testing {

template <class S>
class faulty {
 public:
  using scalar = S;

  explicit faulty(fault planted = fault::none) : planted_{planted} {}

  template <class T>
  [[nodiscard]] faulty<T> over() const {
    return faulty<T>(planted_);
  }

  [[nodiscard]] trace<S> recurrent(const sequence<S>& s) const {
    s.validate();
    trace<S> out{matrix<S>(s.tokens, s.value_dim),
                 is(fault::recurrence_ignores_start) ? matrix<S>(s.key_dim, s.value_dim) : start_of(s)};
    matrix<S>& state = out.final_state;
    const std::size_t n = s.steps_per_token;
    const auto decay = [&](std::size_t t) {
      for (std::size_t c = 0; c < s.key_dim; ++c) {
        for (S& x : state.row(c)) x = x * gate(s, t, c);
      }
    };
    for (std::size_t t = 0; t < s.tokens; ++t) {
      const matrix<S> before = state;
      if (!is(fault::recurrence_gate_after)) decay(t);
      for (std::size_t step = 0; step < n; ++step) {
        if (is(fault::recurrence_gate_each_step) && step > 0) decay(t);
        if (is(fault::recurrence_reads_early) && step + 1 == n) read(state, s.q_row(t), out.o.row(t));
        const std::size_t row = t * n + step;
        std::vector<S> change(s.value_dim, zero<S>());
        read(is(fault::recurrence_predicts_undecayed) && step == 0 ? before : state, s.k_row(row), std::span<S>(change));
        for (std::size_t c = 0; c < s.value_dim; ++c) {
          const S error = s.v_row(row)[c] - change[c];
          change[c] = s.step[row] * (is(fault::recurrence_error_squared) ? S(error * error) : error);
          if (is(fault::recurrence_beta_twice)) change[c] = s.step[row] * change[c];
        }
        add(state, s.k_row(row), std::span<const S>(change));
      }
      if (is(fault::recurrence_gate_after)) decay(t);
      if (!is(fault::recurrence_reads_early)) read(state, s.q_row(t), out.o.row(t));
    }
    return out;
  }

  [[nodiscard]] wy_form<S> wy(const sequence<S>& given, std::size_t first, std::size_t rows) const {
    sequence<S> s = given;
    if (is(fault::wy_reversed)) {
      for (std::size_t r = 0; r < rows / 2; ++r) swap_rows(s, first + r, first + rows - 1 - r);
    }
    wy_form<S> form{matrix<S>(rows, s.key_dim), matrix<S>(rows, s.value_dim), matrix<S>(rows, s.key_dim),
                    std::vector<S>(s.key_dim, one<S>())};
    for (std::size_t r = 0; r < rows; ++r) {
      const std::size_t row = first + r;
      const S b = s.step[row];
      const S at_once = is(fault::wy_beta_on_first_term) ? b : one<S>();
      const S at_last = is(fault::wy_beta_on_first_term) ? one<S>() : b;
      for (std::size_t c = 0; c < s.key_dim; ++c) form.w(r, c) = at_once * cumulative(s, first, row, c) * s.k_row(row)[c];
      for (std::size_t c = 0; c < s.value_dim; ++c) form.u(r, c) = at_once * s.v_row(row)[c];
      for (std::size_t i = 0; i < r; ++i) {
        S overlap = zero<S>();
        for (std::size_t c = 0; c < s.key_dim; ++c) {
          const S left = is(fault::wy_overlap_of_w) ? form.w(i, c) : s.k_row(is(fault::wy_wrong_index) ? row - 1 : first + i)[c];
          overlap = overlap + left * ratio(s, first, first + i, row, c) * s.k_row(row)[c];
        }
        for (std::size_t c = 0; c < s.key_dim; ++c) form.w(r, c) = form.w(r, c) - form.w(i, c) * overlap;
        for (std::size_t c = 0; c < s.value_dim; ++c) form.u(r, c) = form.u(r, c) - form.u(i, c) * overlap;
      }
      for (S& x : form.w.row(r)) x = at_last * x;
      for (S& x : form.u.row(r)) x = at_last * x;
    }
    for (std::size_t c = 0; c < s.key_dim && rows > 0; ++c) {
      form.decay[c] = cumulative(s, first, first + rows - 1, c);
      for (std::size_t i = 0; i < rows; ++i)
        form.keys(i, c) = ratio(s, first, first + i, first + rows - 1, c) * s.k_row(first + i)[c];
    }
    return form;
  }

  [[nodiscard]] matrix<S> transition(const wy_form<S>& form) const {
    matrix<S> result(form.decay.size(), form.decay.size());
    for (std::size_t c = 0; c < form.decay.size(); ++c) result(c, c) = form.decay[c];
    for (std::size_t i = 0; i < form.w.rows(); ++i) {
      for (std::size_t a = 0; a < result.rows(); ++a) {
        for (std::size_t b = 0; b < result.cols(); ++b) {
          S& entry = is(fault::wy_transition_turned) ? result(b, a) : result(a, b);
          entry = entry - form.keys(i, a) * form.w(i, b);
        }
      }
    }
    return result;
  }

  [[nodiscard]] matrix<S> write(const wy_form<S>& form) const {
    matrix<S> result(form.decay.size(), form.u.cols());
    for (std::size_t i = 0; i < form.u.rows(); ++i) add(result, form.keys.row(i), form.u.row(i));
    return result;
  }

  [[nodiscard]] matrix<S> apply(const wy_form<S>& form, const matrix<S>& given) const {
    const matrix<S> state = is(fault::wy_start_ignored) ? matrix<S>(given.rows(), given.cols()) : given;
    matrix<S> result = state;
    for (std::size_t c = 0; c < form.decay.size(); ++c) {
      for (S& x : result.row(c)) x = form.decay[c] * x;
    }
    for (std::size_t i = 0; i < form.u.rows(); ++i) {
      std::vector<S> change(state.cols(), zero<S>());
      read(state, form.w.row(i), std::span<S>(change));
      for (std::size_t c = 0; c < change.size(); ++c) change[c] = form.u(i, c) - change[c];
      add(result, form.keys.row(i), std::span<const S>(change));
    }
    return result;
  }

  template <class Observer = ignore_intermediates>
  [[nodiscard]] matrix<S> inverse(const inverse_method& method, const matrix<S>& lower, Observer&& observe = {}) const {
    return faulty_inverse<S>(planted_).run(method, lower, observe);
  }

  [[nodiscard]] chunkwise_stages<S, S> chunkwise(const sequence<S>& s, std::size_t chunk, const inverse_method& method) const {
    s.validate();
    const std::size_t rows = s.tokens * s.steps_per_token;
    const std::size_t width = s.decay.empty() ? 0 : s.decay.size() == s.tokens ? 1 : s.key_dim;
    chunkwise_stages<S, S> out;
    out.chunk = chunk;
    out.cumulative_decay = matrix<S>(rows, width);
    out.A = out.Ai = out.Aqk = matrix<S>(rows, chunk);
    out.w = matrix<S>(rows, s.key_dim);
    out.u = out.v_new = matrix<S>(rows, s.value_dim);
    out.o = matrix<S>(s.tokens, s.value_dim);
    const matrix<S> start = is(fault::start_ignored) ? matrix<S>(s.key_dim, s.value_dim) : start_of(s);
    out.final_state = start;
    for (std::size_t first = 0; first < rows; first += chunk) {
      const std::size_t size = std::min(chunk, rows - first);
      if (is(fault::state_not_carried)) out.final_state = start;
      overlaps(s, first, size, out);
      transform(s, first, size, method, out);
      const matrix<S> before = out.final_state;
      corrections(s, first, size, before, out);
      advance(s, first, size, out);
      outputs(s, first, size, is(fault::o_from_next_state) ? out.final_state : before, out);
      out.h.push_back(is(fault::h_after_chunk) ? out.final_state : before);
    }
    if (is(fault::state_transposed)) out.final_state = transpose(out.final_state);
    return out;
  }

 private:
  [[nodiscard]] bool is(fault f) const { return planted_ == f; }

  [[nodiscard]] static matrix<S> start_of(const sequence<S>& s) {
    return s.initial_state.rows() == 0 ? matrix<S>(s.key_dim, s.value_dim) : s.initial_state;
  }

  static void read(const matrix<S>& state, std::span<const S> x, std::span<S> out) {
    for (std::size_t j = 0; j < state.cols(); ++j) {
      out[j] = zero<S>();
      for (std::size_t i = 0; i < state.rows(); ++i) out[j] = out[j] + state(i, j) * x[i];
    }
  }

  static void add(matrix<S>& state, std::span<const S> x, std::span<const S> y) {
    for (std::size_t i = 0; i < state.rows(); ++i) {
      for (std::size_t j = 0; j < state.cols(); ++j) state(i, j) = state(i, j) + x[i] * y[j];
    }
  }

  static void swap_rows(sequence<S>& s, std::size_t a, std::size_t b) {
    for (std::size_t c = 0; c < s.key_dim; ++c) std::swap(s.k[a * s.key_dim + c], s.k[b * s.key_dim + c]);
    for (std::size_t c = 0; c < s.value_dim; ++c) std::swap(s.v[a * s.value_dim + c], s.v[b * s.value_dim + c]);
    std::swap(s.step[a], s.step[b]);
  }

  [[nodiscard]] static bool is_zero_key(const sequence<S>& s, std::size_t row) {
    return std::all_of(s.k_row(row).begin(), s.k_row(row).end(), [](const S& x) { return x == zero<S>(); });
  }

  /// The decay of a token in channel c.
  [[nodiscard]] static S gate(const sequence<S>& s, std::size_t t, std::size_t c) {
    if (s.decay.empty()) return one<S>();
    return s.decay.size() == s.tokens ? s.decay[t] : s.decay[t * s.key_dim + c];
  }

  /// What acts before a row of a chunk that begins at row `first`.
  [[nodiscard]] S row_gate(const sequence<S>& s, std::size_t first, std::size_t row, std::size_t c) const {
    if (is(fault::boundary_drops_decay) && row == first) return one<S>();
    if (is(fault::zero_key_skips_decay) && is_zero_key(s, row)) return one<S>();
    const bool begins =
        row % s.steps_per_token == 0 || is(fault::gate_each_step) || (is(fault::boundary_repeats_decay) && row == first);
    if (!begins) return one<S>();
    std::size_t t = row / s.steps_per_token;
    if (is(fault::gate_of_neighbour) && t > 0) --t;
    return gate(s, t, is(fault::gate_first_channel) ? 0 : c);
  }

  /// D_(0, r] of a chunk.
  [[nodiscard]] S cumulative(const sequence<S>& s, std::size_t first, std::size_t row, std::size_t c) const {
    S result = one<S>();
    const std::size_t end = is(fault::gate_after) ? row : row + 1;
    for (std::size_t i = first; i < end; ++i) result = result * row_gate(s, first, i, c);
    return result;
  }

  /// D_(j, r].
  [[nodiscard]] S ratio(const sequence<S>& s, std::size_t first, std::size_t j, std::size_t row, std::size_t c) const {
    if (is(fault::ratio_by_quotient)) {
      const S below = cumulative(s, first, j, c);
      return below == zero<S>() ? zero<S>() : S(cumulative(s, first, row, c) / below);
    }
    const std::size_t shift = is(fault::ratio_off_by_one) ? 2 : is(fault::gate_after) ? 0 : 1;
    const std::size_t end = is(fault::gate_after) ? row : row + 1;
    S result = one<S>();
    for (std::size_t i = j + shift; i < end; ++i) result = result * row_gate(s, first, i, c);
    return result;
  }

  /// <x, D_(j, r] k_j>.
  [[nodiscard]] S overlap(const sequence<S>& s, std::size_t first, std::span<const S> x, std::size_t j, std::size_t row,
                          bool decayed) const {
    S sum = zero<S>();
    for (std::size_t c = 0; c < s.key_dim; ++c) {
      const S product = x[c] * s.k_row(j)[c];
      sum = sum + (decayed ? S(product * ratio(s, first, j, row, c)) : product);
    }
    return sum;
  }

  void overlaps(const sequence<S>& s, std::size_t first, std::size_t size, chunkwise_stages<S, S>& out) const {
    const std::size_t n = s.steps_per_token;
    for (std::size_t row = first; row < first + size; ++row) {
      for (std::size_t c = 0; c < out.cumulative_decay.cols(); ++c) out.cumulative_decay(row, c) = cumulative(s, first, row, c);
      const S b = s.step[row];
      for (std::size_t j = first; j < (is(fault::a_mask_inclusive) ? row + 1 : row); ++j) {
        const bool equal =
            is(fault::a_equal_keys_are_unit) && std::equal(s.k_row(row).begin(), s.k_row(row).end(), s.k_row(j).begin());
        const S product =
            equal ? S(one<S>() * ratio(s, first, j, row, 0)) : overlap(s, first, s.k_row(row), j, row, !is(fault::a_undecayed));
        const S weight = is(fault::a_beta_twice)       ? S(b * b)
                         : is(fault::a_beta_of_column) ? s.step[j]
                         : is(fault::a_without_beta)   ? one<S>()
                                                       : b;
        out.A(row, j - first) = weight * product;
      }
      if (row % n != n - 1) continue;
      const std::size_t t = is(fault::query_of_row) ? std::min(row, s.tokens - 1) : row / n;
      const std::size_t end = is(fault::aqk_mask_strict)   ? row
                              : is(fault::aqk_mask_future) ? std::min(row + 2, first + size)
                                                           : row + 1;
      for (std::size_t j = first; j < end; ++j)
        out.Aqk(row, j - first) = overlap(s, first, s.q_row(t), j, row, !is(fault::aqk_undecayed));
    }
  }

  void transform(const sequence<S>& s, std::size_t first, std::size_t size, const inverse_method& method,
                 chunkwise_stages<S, S>& out) const {
    matrix<S> lower(size, size);
    for (std::size_t i = 0; i < size; ++i) {
      for (std::size_t j = 0; j < size; ++j) lower(i, j) = out.A(first + i, j);
    }
    const matrix<S> x = inverse(method, lower);
    for (std::size_t i = 0; i < size; ++i) {
      for (std::size_t j = 0; j < size; ++j) {
        out.Ai(first + i, j) = x(i, j);
        const std::size_t row = first + j;
        const S b = s.step[row];
        const std::size_t value_row = is(fault::w_u_of_wrong_chunk_row) ? j : row;
        for (std::size_t c = 0; c < s.key_dim; ++c) {
          const S key = is(fault::w_undecayed_key) ? s.k_row(row)[c] : S(cumulative(s, first, row, c) * s.k_row(row)[c]);
          out.w(first + i, c) = out.w(first + i, c) + x(i, j) * (is(fault::w_without_beta) ? key : S(b * key));
        }
        for (std::size_t c = 0; c < s.value_dim; ++c) {
          const S value = s.v_row(value_row)[c];
          const S weighted = is(fault::u_without_beta) ? value : is(fault::u_beta_twice) ? S(b * b * value) : S(b * value);
          out.u(first + i, c) = out.u(first + i, c) + x(i, j) * weighted;
        }
      }
    }
  }

  void corrections(const sequence<S>& s, std::size_t first, std::size_t size, const matrix<S>& state,
                   chunkwise_stages<S, S>& out) const {
    for (std::size_t row = first; row < first + size; ++row) {
      std::vector<S> predicted(s.value_dim, zero<S>());
      read(state, out.w.row(row), std::span<S>(predicted));
      for (std::size_t c = 0; c < s.value_dim; ++c) {
        const S value = is(fault::v_for_u) ? s.v_row(row)[c] : out.u(row, c);
        const S correction = is(fault::v_new_ignores_state) ? zero<S>() : predicted[c];
        out.v_new(row, c) = is(fault::v_new_sign) ? value + correction : value - correction;
        if (is(fault::v_new_error_squared)) out.v_new(row, c) = out.v_new(row, c) * out.v_new(row, c);
      }
    }
  }

  void advance(const sequence<S>& s, std::size_t first, std::size_t size, chunkwise_stages<S, S>& out) const {
    const bool tail = size < out.chunk;
    if (tail && is(fault::tail_dropped)) return;
    const std::size_t last = first + size - 1;
    for (std::size_t c = 0; c < s.key_dim; ++c) {
      const bool kept = is(fault::state_not_decayed) || (tail && is(fault::tail_decay_at_full_row));
      for (S& x : out.final_state.row(c)) x = kept ? x : S(x * cumulative(s, first, last, c));
      for (std::size_t j = first; j < (is(fault::state_misses_last_row) ? last : last + 1); ++j) {
        const bool of_query = is(fault::state_key_of_query) && j % s.steps_per_token == s.steps_per_token - 1;
        const S key = of_query                          ? s.q_row(j / s.steps_per_token)[c]
                      : is(fault::state_keys_undecayed) ? s.k_row(j)[c]
                                                        : S(ratio(s, first, j, last, c) * s.k_row(j)[c]);
        const matrix<S>& changes = is(fault::state_from_u) ? out.u : out.v_new;
        for (std::size_t v = 0; v < s.value_dim; ++v) out.final_state(c, v) = out.final_state(c, v) + key * changes(j, v);
      }
    }
  }

  void outputs(const sequence<S>& s, std::size_t first, std::size_t size, const matrix<S>& state,
               chunkwise_stages<S, S>& out) const {
    const std::size_t n = s.steps_per_token;
    for (std::size_t row = first; row < first + size; ++row) {
      if (row % n != n - 1) continue;
      const std::size_t t = is(fault::query_of_row) ? std::min(row, s.tokens - 1) : row / n;
      std::vector<S> query(s.q_row(t).begin(), s.q_row(t).end());
      for (std::size_t c = 0; c < s.key_dim && !is(fault::o_undecayed); ++c) query[c] = query[c] * cumulative(s, first, row, c);
      for (std::size_t c = s.value_dim; c < s.key_dim && is(fault::o_channels_of_value); ++c) query[c] = zero<S>();
      const auto o = out.o.row(row / n);
      read(state, std::span<const S>(query), o);
      for (std::size_t v = 0; v < s.value_dim && is(fault::o_adds_value); ++v) o[v] = o[v] + s.v_row(row)[v];
      const std::size_t end = is(fault::o_before_last_step) && n > 1 ? row
                              : is(fault::aqk_mask_future)           ? std::min(row + 2, first + size)
                                                                     : row + 1;
      const matrix<S>& changes = is(fault::o_from_u) ? out.u : out.v_new;
      for (std::size_t j = first; j < end; ++j) {
        for (std::size_t v = 0; v < s.value_dim; ++v) o[v] = o[v] + out.Aqk(row, j - first) * changes(j, v);
      }
    }
  }

  fault planted_;
};

}  // namespace deltaproof::testing
