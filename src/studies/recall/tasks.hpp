// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
//
// Associative recall as the second source document states it: unit keys of Gaussian direction, values f(k) element by element,
// queries that are drawn apart from the keys. `make_inputs` draws one run; `moments_of` gives the moments of f of a coordinate
// on the sphere to within a radius, from E k^2m = (2m-1)!! / (d (d+2) ... (d+2m-2)). exp and sin are sums and products, so that
// the inputs have the same bits on every machine.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "deltaproof/algebra/matrix.hpp"
#include "deltaproof/number/rational.hpp"

namespace deltaproof::detail::recall {

enum class relation { identity, quadratic, cubic, quartic, exponential, sine };
struct named_relation {
  relation id{};
  std::string_view name;
  std::string_view formula;
};
inline constexpr std::array<named_relation, 6> relations{{{relation::identity, "identity", "k"},
                                                          {relation::quadratic, "quadratic", "k²"},
                                                          {relation::cubic, "cubic", "k³"},
                                                          {relation::quartic, "quartic", "k⁴"},
                                                          {relation::exponential, "exponential", "eᵏ"},
                                                          {relation::sine, "sine", "sin(10πk)"}}};

/// e^x and sin(2 pi x), by + - * alone. Error: below 2^-43 relative, 2^-46 absolute, for |x| <= 20 and |x| <= 10.
[[nodiscard]] double portable_exp(double x);
[[nodiscard]] double sine_of_turns(double x);
/// f(k). Rounds: a few operations in double.
[[nodiscard]] double apply(relation f, double k);

/// E k^2m of one coordinate of a uniform unit vector in d dimensions, exactly.
[[nodiscard]] rational even_moment(std::size_t key_dim, int m);

/// Of v = f(k) for one coordinate k. |exact - value| <= radius for each of the three.
struct moments {
  double mean = 0;      ///< E v
  double square = 0;    ///< E v^2
  double with_key = 0;  ///< E v k
  double radius = 0;

  /// The squared cosine of f(k) and k over the law of k: the share of E v^2 that a linear map of k explains.
  [[nodiscard]] double linear_share(std::size_t key_dim) const {
    return with_key * with_key * static_cast<double>(key_dim) / square;
  }
  /// The same of a map of (1, k).
  [[nodiscard]] double affine_share(std::size_t key_dim) const { return linear_share(key_dim) + mean * mean / square; }
};
/// Error: as the radius says; series in 256 bits, the tail and the rounding bounded.
[[nodiscard]] moments moments_of(relation f, std::size_t key_dim);

/// Where a causal mean over `width` tokens is applied before anything else. 1: nowhere.
struct convolution {
  std::size_t width = 1;
  bool on_keys = true;
  bool on_values = true;
};

struct task {
  relation f{};
  bool normalise_values = false;  ///< to length 1, after the convolution
  std::size_t key_dim = 64;
  std::size_t tokens = 1000;
  convolution conv = {};
};

/// Rows are tokens. Keys are unit vectors (normalised again after a convolution), queries unit vectors.
struct inputs {
  matrix<double> q, k, v;
};
/// Normalises every row.
void unit_rows(matrix<double>&);
/// The keys and queries of a run depend on (seed, run, key_dim, tokens) alone, so that relations can be compared on them.
[[nodiscard]] inputs make_inputs(const task&, std::uint64_t seed, std::uint64_t run);

}  // namespace deltaproof::detail::recall
