// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
//
// What a number format adds over a long horizon. A `regime` states tokens (keys of unit length rounded to bf16, a
// step length, values); `run_reference` runs them in fp64 with the oracle's row-norm radius; `run_executed` runs
// them with a state that is rounded to a format after each step, or with transitions materialised in one.
#pragma once

#include "deltaproof/algebra/matrix.hpp"
#include "deltaproof/number/rounding.hpp"
#include "studies/horizon/growth.hpp"

namespace deltaproof::detail::horizon {

struct regime {
  std::string_view name;
  key_kind keys = key_kind::fresh;  ///< fresh, repeated or vocabulary
  double step = 1;                  ///< b, a value of bf16 with b |k|^2 <= 2
  bool fixed_target = false;        ///< v = W^T k for one W, rounded to fp32; else fresh bf16 normals
};

/// The regimes of the study, in the order of its figure.
[[nodiscard]] std::span<const regime> regimes();

/// The tokens of a regime, one after the other; two sources with equal arguments give equal tokens.
class token_source {
 public:
  token_source(const regime&, std::size_t key_dim, std::size_t value_dim, std::uint64_t seed);
  /// Makes the next token; k and v are exact in float.
  void next();
  [[nodiscard]] std::span<const double> k() const { return k_; }
  [[nodiscard]] std::span<const double> v() const { return v_; }

 private:
  void draw_key(philox& random, std::span<double> key);

  regime regime_;
  std::size_t key_dim_;
  philox key_random_;
  philox choice_random_;
  philox value_random_;
  std::vector<double> words_;
  matrix<double> target_;
  std::vector<double> k_;
  std::vector<double> v_;
};

/// States at the checkpoints. |exact - states[i]| <= radius[i] in the Frobenius norm, the radius proved: fp64 with
/// the row-norm radius of the oracle between checkpoints, added up because every factor has norm 1 (b |k|^2 <= 2,
/// checked at each token).
struct reference_run {
  std::vector<std::size_t> tokens;
  std::vector<matrix<double>> states;
  std::vector<double> radius;
};
[[nodiscard]] reference_run run_reference(const regime&, std::size_t key_dim, std::size_t value_dim, std::uint64_t seed,
                                          std::span<const std::size_t> at);

enum class execution {
  nearest,       ///< step in fp32, state rounded to nearest even
  stochastic,    ///< step in fp32 (a state kept in fp32: in fp64), state rounded stochastically
  materialised,  ///< I - b k k^T rounded entry by entry; M S + (b k) v^T in fp32, state fp32
};
[[nodiscard]] std::string_view name_of(execution);

/// Against a reference, at its checkpoints.
struct executed_run {
  std::vector<double> error;  ///< |S' - S|_F / |S|_F; infinite where S' is not finite
  std::vector<double> scale;  ///< <S', S> / <S, S>: 1 where nothing is lost along S, 0 where all is
};

/// `stream` chooses the random numbers of stochastic rounding. `state_format` is one of bf16, fp16, fp32; for
/// materialised transitions it is the format of their entries.
[[nodiscard]] executed_run run_executed(const regime&, execution, format state_format, const reference_run&, std::size_t key_dim,
                                        std::size_t value_dim, std::uint64_t seed, std::uint64_t stream);

/// I - b k k^T, each entry rounded once to F to nearest even, as floats. Needs b k_i k_j exact in double, which
/// bf16 inputs give. The same values as materialised_transition<F>, faster.
template <format F>
void materialise(std::span<const double> k, double b, matrix<float>& m) {
  nearest_even mode;
  for (std::size_t i = 0; i < k.size(); ++i) {
    const double scaled = b * k[i];
    for (std::size_t j = 0; j < i; ++j) {
      const auto entry = static_cast<float>(round_value<F>(0.0 - scaled * k[j], mode));
      m(i, j) = entry;
      m(j, i) = entry;
    }
    m(i, i) = static_cast<float>(round_value<F>(odd_sum(1, -(scaled * k[i])), mode));
  }
}

}  // namespace deltaproof::detail::horizon

// Theorems behind this file, by their names in proofs/README.md.
// proved: algebra.error_accumulation.forced_state_bound, algebra.error_accumulation.delta_errors_only_add
