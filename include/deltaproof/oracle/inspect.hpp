// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
//
// What a problem's inputs look like before any kernel runs: key norms, x = beta |k|^2, the factor 1 - b |k|^2 of each
// step after the problem's own normalisation, gates, and what looks wrong (a beta that looks like a logit, keys
// nobody normalised, padding rows). Nothing here is an error: an expansive step is legal, and said.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "deltaproof/oracle/problem.hpp"

namespace deltaproof {

/// Where in a problem; `step` counts the steps of the token.
struct row_location {
  std::size_t batch = 0;
  std::size_t sequence = 0;
  std::size_t head = 0;  ///< of v, beta, g; of k for key norms
  std::size_t token = 0;
  std::size_t step = 0;
};

enum class remark { fine, notice, warning };
[[nodiscard]] std::string_view name_of(remark r);

/// One property of the inputs. `count` of `rows` rows have what `says` describes; `first` is the first of them and
/// `worst` the value furthest out, at `worst_at`.
struct precondition {
  std::string name;
  remark level = remark::fine;
  std::string says;
  double least = 0;
  double largest = 0;
  std::size_t count = 0;
  std::size_t rows = 0;
  std::optional<row_location> first;
  std::optional<row_location> worst_at;
};

/// Every precondition of `p`, in a fixed order: key_norm, beta, step_stretch (x = b |k|^2), transition_factor (1 - x),
/// padding, nothing_to_see where nothing can be seen, gate where there is one, cotangent where there are some, gate_sums where
/// inspect_gate_sums has one. Rounds:
/// fp64, for display; whether a step is expansive is decided in rationals where its inputs are exact and fp64 cannot tell.
/// Throws: as lower.
[[nodiscard]] std::vector<precondition> inspect(const problem& p);

/// A warning where cumulative sums of these gates, in which chunk kernels form decays, lose much more of a weight than the
/// recurrence does; else nothing.
[[nodiscard]] std::optional<precondition> inspect_gate_sums(const problem& p);

}  // namespace deltaproof
