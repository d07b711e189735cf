// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
//
// Holds one head of one sequence as plain data: queries, keys, values, effective steps, decays and a
// start state, in any scalar. Shapes: T tokens, n steps a token, row r = t*n + j of k, v and step is
// step j of token t; the state is (K, V), as files store it. For each token:
//   S <- diag(decay) S, once, before its first step;
//   S <- S + k (step (v - k^T S)) for each of its n steps;
//   o = S^T q, after its last step.
// Steps and decays are taken as given: whoever fills the sequence has applied activations, norms, the
// rule's gain and exp, and multiplies by the scale afterwards. Nothing here rounds. It exists so that
// reference, chunkwise form and kernel model all read the same numbers.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "deltaproof/algebra/matrix.hpp"
#include "deltaproof/support/errors.hpp"

namespace deltaproof {

/// What the decay of a sequence holds: nothing, one number a token, or K numbers a token.
enum class decay_kind { none, per_token, per_channel };

template <class S>
struct sequence {
  using scalar_type = S;

  std::size_t tokens = 0;           ///< T, may be 0
  std::size_t steps_per_token = 1;  ///< n
  std::size_t key_dim = 1;          ///< K
  std::size_t value_dim = 1;        ///< V
  std::vector<S> q;                 ///< T*K
  std::vector<S> k;                 ///< T*n*K
  std::vector<S> v;                 ///< T*n*V
  std::vector<S> step;              ///< T*n: the effective step b = beta phi(beta |k|^2)
  std::vector<S> decay;             ///< empty, T, or T*K: factors of the rows of the state
  matrix<S> initial_state;          ///< K x V; 0 x 0 stands for zeros

  /// A sequence of zeros in these shapes, initial state included, to be filled.
  /// Throws: shape_error if n, K or V is 0.
  [[nodiscard]] static sequence zeros(std::size_t tokens, std::size_t steps_per_token, std::size_t key_dim, std::size_t value_dim,
                                      decay_kind decays = decay_kind::none) {
    sequence result;
    result.tokens = tokens;
    result.steps_per_token = steps_per_token;
    result.key_dim = key_dim;
    result.value_dim = value_dim;
    const std::size_t rows = tokens * steps_per_token;
    result.q.resize(tokens * key_dim, S{});
    result.k.resize(rows * key_dim, S{});
    result.v.resize(rows * value_dim, S{});
    result.step.resize(rows, S{});
    if (decays == decay_kind::per_token) result.decay.resize(tokens, S{});
    if (decays == decay_kind::per_channel) result.decay.resize(tokens * key_dim, S{});
    result.initial_state = matrix<S>(key_dim, value_dim);
    result.validate();
    return result;
  }

  /// T*n, the number of rows of k.
  [[nodiscard]] std::size_t rows() const { return tokens * steps_per_token; }

  /// Told by the size of `decay`; with K = 1 the two kinds mean the same and this says per_token.
  [[nodiscard]] decay_kind decays() const {
    if (decay.empty()) return decay_kind::none;
    return decay.size() == tokens ? decay_kind::per_token : decay_kind::per_channel;
  }

  [[nodiscard]] std::span<const S> q_row(std::size_t t) const { return part(q, t, key_dim); }
  [[nodiscard]] std::span<const S> k_row(std::size_t row) const { return part(k, row, key_dim); }
  [[nodiscard]] std::span<const S> v_row(std::size_t row) const { return part(v, row, value_dim); }

  /// The decays of token t: no number, one, or K.
  [[nodiscard]] std::span<const S> decay_of(std::size_t t) const {
    switch (decays()) {
      case decay_kind::per_token:
        return part(decay, t, 1);
      case decay_kind::per_channel:
        return part(decay, t, key_dim);
      case decay_kind::none:
        break;
    }
    return {};
  }

  /// The K x V state to start from.
  [[nodiscard]] matrix<S> start() const { return initial_state.empty() ? matrix<S>(key_dim, value_dim) : initial_state; }

  /// Checks every shape against T, n, K and V. Values are not looked at: NaN, infinity and an expansive
  /// step are legal here. Throws: shape_error naming the operand, what it holds and what it needs.
  void validate() const {
    if (steps_per_token == 0 || key_dim == 0 || value_dim == 0) {
      throw shape_error("sequence: steps_per_token is " + std::to_string(steps_per_token) + ", key_dim " +
                        std::to_string(key_dim) + " and value_dim " + std::to_string(value_dim) + "; each must be at least 1");
    }
    require_size("q", q.size(), "tokens * key_dim", tokens * key_dim);
    require_size("k", k.size(), "tokens * steps_per_token * key_dim", rows() * key_dim);
    require_size("v", v.size(), "tokens * steps_per_token * value_dim", rows() * value_dim);
    require_size("step", step.size(), "tokens * steps_per_token", rows());
    if (!decay.empty() && decay.size() != tokens && decay.size() != tokens * key_dim) {
      throw shape_error("sequence: decay holds " + std::to_string(decay.size()) + " values; give none, one per token (" +
                        std::to_string(tokens) + ") or one per token and channel (" + std::to_string(tokens * key_dim) + ")");
    }
    if (!(initial_state.rows() == 0 && initial_state.cols() == 0) &&
        !(initial_state.rows() == key_dim && initial_state.cols() == value_dim)) {
      throw shape_error("sequence: initial_state is " + shape_text(initial_state) +
                        ", needs key_dim x value_dim = " + std::to_string(key_dim) + " x " + std::to_string(value_dim) +
                        "; a state stored (V, K) must be transposed; leave it 0 x 0 for a state of zeros");
    }
  }

 private:
  static std::span<const S> part(const std::vector<S>& values, std::size_t index, std::size_t length) {
    return std::span<const S>(values).subspan(index * length, length);
  }

  static void require_size(const char* name, std::size_t holds, const char* formula, std::size_t needs) {
    if (holds != needs) {
      throw shape_error("sequence: " + std::string(name) + " holds " + std::to_string(holds) + " values, needs " + formula +
                        " = " + std::to_string(needs));
    }
  }
};

/// The same sequence in another scalar, each value through `f`: the way to lift or to round a whole
/// sequence, with the conversion spelled by the caller.
template <class To, class From, class Convert>
[[nodiscard]] sequence<To> convert(const sequence<From>& from, Convert&& f) {
  const auto each = [&f](const std::vector<From>& values) {
    std::vector<To> result;
    result.reserve(values.size());
    for (const From& x : values) result.push_back(f(x));
    return result;
  };
  sequence<To> to;
  to.tokens = from.tokens;
  to.steps_per_token = from.steps_per_token;
  to.key_dim = from.key_dim;
  to.value_dim = from.value_dim;
  to.q = each(from.q);
  to.k = each(from.k);
  to.v = each(from.v);
  to.step = each(from.step);
  to.decay = each(from.decay);
  to.initial_state = matrix<To>(from.initial_state.rows(), from.initial_state.cols());
  for (std::size_t i = 0; i < from.initial_state.size(); ++i) {
    to.initial_state.data()[i] = f(from.initial_state.data()[i]);
  }
  return to;
}

}  // namespace deltaproof
