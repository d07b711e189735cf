// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
//
// The true outputs of a problem, each with a rigorous radius: `solve(problem, question)` is the oracle's one entry.
// A question says how small the radius must be, or to which format every output must be roundable without doubt;
// precision rises value row by value row (fp64, double-double, fixed point with 128, 256, 512, 1024 bits, exact dyadic
// numbers, MPFR where the grids of these do not reach) until it is answered. Nothing here is trusted further than its radius.
// `solve_by_head` hands the same answers over head by head and keeps none. Shapes are those of the exchange format:
// o [B, T, HV, V], final_state [N, HV, K, V].
#pragma once

#include <atomic>
#include <cstddef>
#include <functional>
#include <limits>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "deltaproof/number/format.hpp"
#include "deltaproof/oracle/problem.hpp"
#include "deltaproof/oracle/range_limits.hpp"

namespace deltaproof {

/// |exact[i] - (value[i] + low[0][i] + low[1][i] + ...)| <= radius[i]: an unevaluated sum of doubles, each component
/// below half a unit in the last place of the one before; as many as the radius is worth, none where one double says
/// enough.
struct reference_tensor {
  std::vector<std::size_t> shape;
  std::vector<double> value;
  std::vector<std::vector<double>> low;
  std::vector<double> radius;
};

/// Where a head's exact recurrence leaves the range of its formats.
struct divergence {
  std::size_t sequence = 0;
  std::size_t value_head = 0;
  std::size_t token = 0;  ///< within its sequence

  friend bool operator==(const divergence&, const divergence&) = default;
};

/// The most doubles an answer is a sum of: what 1024 bits need.
inline constexpr std::size_t most_parts = 20;

struct question {
  /// For each head: every radius at most this times the largest magnitude of its tensor in that head.
  double relative_radius = std::numeric_limits<double>::infinity();
  /// Every output and state entry certainly rounds to one value of these formats.
  std::optional<format> round_output;
  std::optional<format> round_state;
  /// Not 0: what is rounded to fp64 is known as an unevaluated sum of so many doubles, each the correctly rounded rest of
  /// what those before it leave. At most most_parts.
  std::size_t parts = 0;
  /// Magnitudes at which a head is said to diverge; nothing is computed from there on.
  range_limits range;
  /// Precision is not raised beyond this, answered or not; where it is 1024 and the numbers of a row spread over more bits than
  /// that, as far as they do, at most to 16384.
  int max_bits = 1024;
  /// Nothing below this tier is tried: 53 starts at fp64.
  int min_bits = 53;
  /// The exact tier may answer whatever max_bits says; without it only from 128 bits on.
  bool always_exact = false;
  unsigned threads = 0;  ///< 0: one for each core
  const std::atomic<bool>* stop = nullptr;
  /// Called with (part done, whole), from any thread but never twice at a time.
  std::function<void(std::size_t, std::size_t)> progress;
};

struct reference {
  reference_tensor o;
  reference_tensor final_state;
  std::vector<divergence> divergences;  ///< by sequence, then head
  /// Last tier a row of the head needed -> heads: "fp64", "double-double", "fixed-128", ..., "exact"; "mpfr-128", ... where
  /// a head may leave its range and is run whole, or rows left the grids of the others.
  std::map<std::string, std::size_t> tiers;
  std::map<std::string, std::size_t> o_decided;      ///< tier -> elements of o for which it answered the question
  std::map<std::string, std::size_t> state_decided;  ///< the same for final_state
  std::map<std::string, std::size_t> fallbacks;      ///< what a tier had to do again or in a slower way -> how often
  std::size_t unanswered = 0;                        ///< heads whose question max_bits did not answer
  bool stopped = false;
};

/// The reference that answers `q`, as far as max_bits reaches.
/// Error: as the radius says; proofs/notes/oracle-radius.md. Throws: domain_error as lower.
[[nodiscard]] reference solve(const problem& p, const question& q = {});

/// One head as it was answered. Elements in the order o: T x V, final_state: K x V, without shapes. Where a rounding was
/// asked for, `rounded_o` and `rounded_state` hold each element's, NaN where it is not decided; final_state is empty where
/// the head diverges. Where sums were asked for, these are their first parts and the `_low` the others, NaN from the first
/// on that is not decided. The `_left` bound |exact - what was rounded| over the decided elements, of sums what they leave out.
struct solved_head {
  std::size_t sequence = 0;
  std::size_t value_head = 0;
  const reference_tensor& o;
  const reference_tensor& final_state;
  const std::vector<double>& rounded_o;
  const std::vector<double>& rounded_state;
  const std::vector<std::vector<double>>& rounded_o_low;
  const std::vector<std::vector<double>>& rounded_state_low;
  double o_left = 0;
  double state_left = 0;
};

/// `solve` without the tensors: each head goes to `sink` when it is done, from any thread but never twice at a time.
/// Memory: a lowered head and its answer for each thread; fixed-point and exact rows take their states and 128 tokens. Roundings
/// without radii are had in less: write_golden of files/golden.hpp.
reference solve_by_head(const problem& p, const question& q, const std::function<void(const solved_head&)>& sink);

/// Whether every number within radius[i] of element i of `t` rounds to one value of `to`, and which. The sign of a zero
/// is not decided: +0 stands for both. Rounds: to nearest even, once.
[[nodiscard]] std::optional<double> decided_rounding(const reference_tensor& t, std::size_t i, const format& to);

/// The leading parts of element i that are the same for every number within its radius: parts[0] = fp64(x), parts[1] =
/// fp64(x - parts[0]), ...; NaN from the first on that is not. Returns a bound on |x - sum of the parts|, infinity where one
/// is NaN. Rounds: each part to nearest even, once; the sign of a zero is +.
[[nodiscard]] double decided_parts(const reference_tensor& t, std::size_t i, std::span<double> parts);

}  // namespace deltaproof
