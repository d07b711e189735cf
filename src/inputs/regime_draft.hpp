// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
//
// What the laws of inputs/regimes.hpp share: `draft`, a problem still in doubles, with the random streams it draws
// from, and the names of the laws for keys, steps and gates that the table of regimes is made of.
#pragma once

#include <mpfr.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <span>
#include <string_view>
#include <vector>

#include "deltaproof/inputs/regimes.hpp"
#include "deltaproof/number/random.hpp"

namespace deltaproof::detail {

// exp and log1p correctly rounded to fp64: a system's libm differs from the next in the last bit.
class elementary {
 public:
  elementary() { mpfr_init2(x_, std::numeric_limits<double>::digits); }
  ~elementary() { mpfr_clear(x_); }
  elementary(const elementary&) = delete;
  elementary& operator=(const elementary&) = delete;

  double exp(double x) {
    return apply(x, [](mpfr_t y) { mpfr_exp(y, y, MPFR_RNDN); });
  }
  double log1p(double x) {
    return apply(x, [](mpfr_t y) { mpfr_log1p(y, y, MPFR_RNDN); });
  }
  double sigmoid(double x) { return 1 / (1 + exp(-x)); }
  double softplus(double x) { return x > 0 ? x + log1p(exp(-x)) : log1p(exp(x)); }
  double log_sigmoid(double x) { return -softplus(-x); }

 private:
  template <class Function>
  double apply(double x, Function function) {
    mpfr_set_d(x_, x, MPFR_RNDN);
    function(x_);
    return mpfr_get_d(x_, MPFR_RNDN);
  }

  mpfr_t x_;
};

// Each tensor draws from a stream of its own, so that changing one law leaves the other tensors as they were.
enum class stream : std::uint64_t { q = 1, k, v, beta, g, initial_state, plan, heads };

// A problem on its way: doubles, rounded to their formats only when they are done.
struct draft {
  explicit draft(const generation& completed)
      : spec(completed),
        batch(*spec.batch),
        tokens(*spec.tokens),
        steps_per_token(*spec.num_householder),
        rows(tokens * steps_per_token),
        key_heads(*spec.key_heads),
        value_heads(*spec.value_heads),
        group(value_heads / key_heads),
        key_dim(*spec.key_dim),
        value_dim(*spec.value_dim) {
    if (spec.cu_seqlens->empty()) {
      for (std::size_t b = 0; b < batch; ++b) sequences.push_back({b, 0, tokens});
    } else {
      for (std::size_t i = 0; i + 1 < spec.cu_seqlens->size(); ++i) {
        const auto first = static_cast<std::size_t>((*spec.cu_seqlens)[i]);
        sequences.push_back({0, first, static_cast<std::size_t>((*spec.cu_seqlens)[i + 1]) - first});
      }
    }
    q.resize(batch * tokens * key_heads * key_dim);
    k.resize(batch * rows * key_heads * key_dim);
    v.resize(batch * rows * value_heads * value_dim);
    beta.resize(batch * rows * value_heads);
    channels = gates_of(*spec.op) == gate_axes::channels ? key_dim : 1;
  }

  philox random(stream s) const { return philox(spec.seed, static_cast<std::uint64_t>(s)); }

  std::span<double> q_at(std::size_t b, std::size_t token, std::size_t head) {
    return std::span(q).subspan(((b * tokens + token) * key_heads + head) * key_dim, key_dim);
  }
  std::span<double> k_at(std::size_t b, std::size_t row, std::size_t head) {
    return std::span(k).subspan(((b * rows + row) * key_heads + head) * key_dim, key_dim);
  }
  std::span<double> v_at(std::size_t b, std::size_t row, std::size_t head) {
    return std::span(v).subspan(((b * rows + row) * value_heads + head) * value_dim, value_dim);
  }
  double& beta_at(std::size_t b, std::size_t row, std::size_t head) { return beta[(b * rows + row) * value_heads + head]; }

  // Sets beta of every value head that reads `key_head` at this row.
  void set_beta(std::size_t b, std::size_t row, std::size_t key_head, double value) {
    for (std::size_t i = 0; i < group; ++i) beta_at(b, row, key_head * group + i) = value;
  }

  // function(b, row, key head, row within the sequence) for every key, in the order of the tensor.
  template <class Function>
  void for_each_key(Function function) const {
    for (const sequence_range& s : sequences) {
      for (std::size_t row = 0; row < s.tokens * steps_per_token; ++row) {
        for (std::size_t h = 0; h < key_heads; ++h) {
          function(s.batch, s.first_token * steps_per_token + row, h, row);
        }
      }
    }
  }

  // g[b, token, head, channel] = function(token within the sequence, head, channel), in the order of the tensor.
  template <class Function>
  void fill_gate(Function function) {
    g.reserve(batch * tokens * value_heads * channels);
    for (const sequence_range& s : sequences) {
      for (std::size_t t = 0; t < s.tokens; ++t) {
        for (std::size_t h = 0; h < value_heads; ++h) {
          for (std::size_t c = 0; c < channels; ++c) g.push_back(function(t, h, c));
        }
      }
    }
  }

  generation spec;
  std::size_t batch;
  std::size_t tokens;
  std::size_t steps_per_token;
  std::size_t rows;
  std::size_t key_heads;
  std::size_t value_heads;
  std::size_t group;
  std::size_t key_dim;
  std::size_t value_dim;
  std::size_t channels = 1;  // decays of one token and head
  std::vector<sequence_range> sequences;
  std::vector<double> q;
  std::vector<double> k;
  std::vector<double> v;
  std::vector<double> beta;
  std::vector<double> g;
  std::vector<double> initial_state;
  bool qk_l2norm = false;
  activation_kind activation = activation_kind::none;
  elementary math;
};

inline void fill_normal(std::span<double> x, philox& random) {
  for (double& value : x) value = random.normal();
}

inline void scale_to(std::span<double> x, double norm) {
  double sum = 0;
  for (const double value : x) sum += value * value;
  if (sum == 0) return;
  const double factor = norm / std::sqrt(sum);
  for (double& value : x) value *= factor;
}

inline void fill_unit(std::span<double> x, philox& random) {
  fill_normal(x, random);
  scale_to(x, 1);
}

inline void copy(std::span<const double> from, std::span<double> to) { std::copy(from.begin(), from.end(), to.begin()); }

// Laws for keys; those called tasks set queries, values and steps as well.
void unit_keys(draft& d);
void collinear_keys(draft& d);
void elu1_keys(draft& d);
void silu_keys(draft& d);
void repeated_keys(draft& d);
void near_repeated_keys(draft& d);
void correlated_keys(draft& d);
void alternating_keys(draft& d);
void tiny_keys(draft& d);
void huge_keys(draft& d);
void unit_keys_large_values(draft& d);
void recall_task(draft& d);
void copy_task(draft& d);
void automaton_task(draft& d);
void exact_task(draft& d);
void law_task(draft& d);
/// The parameters of a law that are not as usual, in the order of their table. Throws: format_error.
std::string law_text(std::string_view text);
void absent_steps(draft& d);
void states_of_powers(draft& d);
void queries_along_outputs(draft& d);

/// `count` powers of two from 2^-25 to 2^5 with random signs.
[[nodiscard]] std::vector<double> signed_powers(std::size_t count, philox& random);

/// The law that leaves beta to the task of the regime, and the gates to the regime law.
inline constexpr std::string_view beta_of_task = "regime";

/// Throws: format_error that lists the laws, domain_error of a number that `f` does not hold.
void require_beta_law(std::string_view name, const format& f);
void require_gate_law(std::string_view name, const format& f);
/// `values` rounded to `f`. Throws: domain_error where a number is beyond its range.
tensor tensor_in(const format& f, std::vector<std::size_t> shape, std::vector<double> values, std::string name);

/// Fill d.beta and d.g by the laws that d.spec names.
void fill_steps(draft& d);
void fill_gates(draft& d);

}  // namespace deltaproof::detail
