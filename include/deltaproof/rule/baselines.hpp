// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
//
// The memories that are compared with the delta rule but are not one-step methods of its ODE: Hebbian
// and gated Hebbian (linear attention, GLA), recursive least squares, the two conventions called
// "negative eigenvalues", and the diagonal form in which Longhorn is published. Each is a class with
// `step(...)`, `state()` and `read(q, o)`, o = S^T q. Shapes: k, q (K), v, o (V),
// state (K, V). Scalars: any; least squares and Longhorn divide. Everything rounds as S does, in the
// order written, sums over channels from channel 0 on.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "deltaproof/algebra/matrix.hpp"
#include "deltaproof/number/scalar.hpp"
#include "deltaproof/support/errors.hpp"

namespace deltaproof {

namespace detail {

inline void require_length(const char* who, const char* operand, std::size_t holds, const char* formula, std::size_t needs) {
  if (holds != needs) {
    throw shape_error(std::string(who) + ": " + operand + " holds " + std::to_string(holds) + " values, needs " + formula +
                      " = " + std::to_string(needs));
  }
}

/// sum = S^T x, channel after channel.
template <class S>
void read_into(const matrix<S>& state, std::span<const S> x, std::span<S> sum) {
  for (S& entry : sum) entry = zero<S>();
  for (std::size_t i = 0; i < state.rows(); ++i) {
    for (std::size_t j = 0; j < state.cols(); ++j) sum[j] = sum[j] + x[i] * state(i, j);
  }
}

/// S <- S + x y^T.
template <class S>
void add_outer(matrix<S>& state, std::span<const S> x, std::span<const S> y) {
  for (std::size_t i = 0; i < state.rows(); ++i) {
    for (std::size_t j = 0; j < state.cols(); ++j) state(i, j) = state(i, j) + x[i] * y[j];
  }
}

/// The state that every baseline has, and the check of k and v against it.
template <class S>
class baseline {
 public:
  baseline(const char* who, std::size_t key_dim, std::size_t value_dim) : who_{who}, state_(key_dim, value_dim) {
    if (key_dim == 0 || value_dim == 0) {
      throw shape_error(std::string(who) + ": key_dim is " + std::to_string(key_dim) + " and value_dim " +
                        std::to_string(value_dim) + "; each must be at least 1");
    }
  }
  [[nodiscard]] const matrix<S>& state() const noexcept { return state_; }

  /// o = S^T q. Shapes: q (K), o (V).
  void read(std::span<const S> q, std::span<S> o) const {
    require_length(who_, "q", q.size(), "key_dim", state_.rows());
    require_length(who_, "o", o.size(), "value_dim", state_.cols());
    read_into(state_, q, o);
  }

 protected:
  void require(std::span<const S> k, std::span<const S> v) const {
    require_length(who_, "k", k.size(), "key_dim", state_.rows());
    require_length(who_, "v", v.size(), "value_dim", state_.cols());
  }
  const char* who_;
  matrix<S> state_;
};

}  // namespace detail

/// Linear attention: S <- S + k v^T.
template <class S>
class hebbian : public detail::baseline<S> {
 public:
  static constexpr const char* name = "hebbian";
  hebbian(std::size_t key_dim, std::size_t value_dim) : detail::baseline<S>(name, key_dim, value_dim) {}

  void step(std::span<const S> k, std::span<const S> v) {
    this->require(k, v);
    detail::add_outer(this->state_, k, v);
  }
};

/// Gated linear attention (GLA): S <- diag(a) S + k v^T, a of length 1 or K.
template <class S>
class gated_hebbian : public detail::baseline<S> {
 public:
  static constexpr const char* name = "gated_hebbian";
  gated_hebbian(std::size_t key_dim, std::size_t value_dim) : detail::baseline<S>(name, key_dim, value_dim) {}

  void step(std::span<const S> a, std::span<const S> k, std::span<const S> v) {
    this->require(k, v);
    if (a.size() != 1) detail::require_length(name, "decay", a.size(), "1 or key_dim", this->state_.rows());
    for (std::size_t i = 0; i < this->state_.rows(); ++i) {
      for (S& entry : this->state_.row(i)) entry = entry * (a.size() == 1 ? a[0] : a[i]);
    }
    detail::add_outer(this->state_, k, v);
  }
};

/// Recursive least squares: after t steps S^T = V^T K (K^T K + lambda I)^-1, rows of K and V the keys and
/// values so far, by rank-one updates of the inverse C: g = C k / (1 + k^T C k); S <- S + g (v - k^T S)^T;
/// C <- C - g (C k)^T; C starts as I / lambda. O(K (K + V)) a step.
template <class S>
class recursive_least_squares : public detail::baseline<S> {
 public:
  static constexpr const char* name = "recursive_least_squares";

  /// Throws: domain_error for lambda = 0, which has no inverse to start from.
  recursive_least_squares(std::size_t key_dim, std::size_t value_dim, const S& lambda)
      : detail::baseline<S>(name, key_dim, value_dim),
        inverse_(key_dim, key_dim),
        image_(key_dim, zero<S>()),
        gain_(key_dim, zero<S>()),
        error_(value_dim, zero<S>()) {
    if (lambda == zero<S>()) {
      throw domain_error(
          "recursive_least_squares: lambda is 0, but the recurrence starts from I / lambda; give a lambda other than 0");
    }
    for (std::size_t i = 0; i < key_dim; ++i) inverse_(i, i) = one<S>() / lambda;
  }

  void step(std::span<const S> k, std::span<const S> v) {
    this->require(k, v);
    detail::read_into(inverse_, k, std::span<S>(image_));  // C is symmetric
    S norm = zero<S>();
    for (std::size_t i = 0; i < k.size(); ++i) norm = norm + k[i] * image_[i];
    const S denominator = one<S>() + norm;
    for (std::size_t i = 0; i < k.size(); ++i) gain_[i] = image_[i] / denominator;
    detail::read_into(this->state_, k, std::span<S>(error_));
    for (std::size_t j = 0; j < v.size(); ++j) error_[j] = v[j] - error_[j];
    detail::add_outer(this->state_, std::span<const S>(gain_), std::span<const S>(error_));
    for (std::size_t i = 0; i < k.size(); ++i) {
      for (std::size_t j = 0; j < k.size(); ++j) inverse_(i, j) = inverse_(i, j) - gain_[i] * image_[j];
    }
  }

  /// (K^T K + lambda I)^-1.
  [[nodiscard]] const matrix<S>& inverse() const noexcept { return inverse_; }

 private:
  matrix<S> inverse_;
  std::vector<S> image_, gain_, error_;
};

namespace detail {

/// S <- (I - erase k k^T) S + write k v^T as S <- S + k (write v - erase k^T S)^T.
template <class S>
class two_strength : public baseline<S> {
 public:
  using baseline<S>::baseline;

 protected:
  void update(std::span<const S> k, std::span<const S> v, const S& erase, const S& write) {
    this->require(k, v);
    std::vector<S> change(v.size(), zero<S>());
    read_into(this->state_, k, std::span<S>(change));
    for (std::size_t j = 0; j < v.size(); ++j) change[j] = write * v[j] - erase * change[j];
    add_outer(this->state_, k, std::span<const S>(change));
  }
};

}  // namespace detail

/// "Negative eigenvalues" as printed in a blog: only the transition is doubled,
/// S <- (I - 2 beta k k^T) S + beta k v^T.
template <class S>
class negative_eigenvalues_erase : public detail::two_strength<S> {
 public:
  static constexpr const char* name = "negative_eigenvalues_erase";
  negative_eigenvalues_erase(std::size_t key_dim, std::size_t value_dim) : detail::two_strength<S>(name, key_dim, value_dim) {}
  void step(std::span<const S> k, std::span<const S> v, const S& beta) { this->update(k, v, beta + beta, beta); }
};

/// "Negative eigenvalues" as in public code: both terms are doubled, S <- (I - 2 beta k k^T) S + 2 beta k v^T;
/// the delta rule with step 2 beta.
template <class S>
class negative_eigenvalues_both : public detail::two_strength<S> {
 public:
  static constexpr const char* name = "negative_eigenvalues_both";
  negative_eigenvalues_both(std::size_t key_dim, std::size_t value_dim) : detail::two_strength<S>(name, key_dim, value_dim) {}
  void step(std::span<const S> k, std::span<const S> v, const S& beta) { this->update(k, v, beta + beta, beta + beta); }
};

/// Longhorn as published: the implicit step with k k^T replaced by its diagonal, one strength beta_j for
/// each value channel; delta_j = beta_j / (1 + beta_j |k|^2) and
/// S_ij <- (1 - delta_j k_i^2) S_ij + delta_j v_j k_i.
/// There v is the layer's input after its short convolution and beta a sigmoid; both are data here.
/// Source: Liu et al., "Longhorn: State Space Models are Amortized Online Learners", and its public code.
template <class S>
class diagonal_longhorn : public detail::baseline<S> {
 public:
  static constexpr const char* name = "diagonal_longhorn";
  diagonal_longhorn(std::size_t key_dim, std::size_t value_dim) : detail::baseline<S>(name, key_dim, value_dim) {}

  /// Shapes: beta of length 1 or V.
  void step(std::span<const S> k, std::span<const S> v, std::span<const S> beta) {
    this->require(k, v);
    if (beta.size() != 1) detail::require_length(name, "beta", beta.size(), "1 or value_dim", this->state_.cols());
    S norm = zero<S>();
    for (const S& x : k) norm = norm + x * x;
    for (std::size_t j = 0; j < v.size(); ++j) {
      const S& strength = beta.size() == 1 ? beta[0] : beta[j];
      const S denominator = one<S>() + strength * norm;
      const S delta = strength / denominator;
      for (std::size_t i = 0; i < k.size(); ++i) {
        const S kept = one<S>() - delta * (k[i] * k[i]);
        this->state_(i, j) = kept * this->state_(i, j) + delta * v[j] * k[i];
      }
    }
  }
};

}  // namespace deltaproof

// Theorems behind this file, by their names in proofs/README.md.
// proved: algebra.wy.negative_eigenvalue_conventions
