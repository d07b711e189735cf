// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
//
// Servers on trial: for each invariant a correct one and faulty ones, each run over the calls that `gen --for` would ask for.
// `trials()` lists them, `judged(trial, seed)` runs one and asks the invariant.
#pragma once

#include "deltaproof/check/invariant.hpp"
#include "studies/shared/common.hpp"

namespace deltaproof::detail::state_life {

/// What stands in a trial's place of a fault where the server is correct, and where its inputs can show nothing.
inline constexpr std::string_view correct = "correct", silent = "silent";

struct trial {
  invariant_kind kind;
  std::string_view fault;  ///< or `correct`, or `silent`: a correct server on inputs that make the invariant vacuous
};

[[nodiscard]] std::vector<trial> trials();
[[nodiscard]] invariant_report judged(const trial& t, std::uint64_t seed);
/// What of a refuted report does not hold: its equations or identities, else the first of its runs, else tensors whose bits
/// differ.
[[nodiscard]] std::string refuted_by(const invariant_report& report);

}  // namespace deltaproof::detail::state_life
