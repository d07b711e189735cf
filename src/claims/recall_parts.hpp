// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
//
// What is known in closed form of the experiments of document `recall`: keys uniform on the unit sphere of 64 channels,
// values f(k) element by element, DeltaNet with β = 1, a query independent of the keys, the error of S_t q_t against the
// token's own value, after its update, averaged over tokens and channels.
#pragma once

#include <cstddef>

#include "claims/parts.hpp"

namespace deltaproof::claim_detail {

inline constexpr long recall_channels = 64;

enum class relationship { identity, quadratic, cubic, quartic, exponential, sine };

/// E k_i^(2m) of a coordinate on the unit sphere of `channels`: (2m − 1)!! / (d (d + 2) ... (d + 2m − 2)).
[[nodiscard]] rational coordinate_moment(long m, long channels = recall_channels);

/// f of one coordinate.
[[nodiscard]] double value_of(relationship f, double k);

/// E f(k)², E f(k) and E k f(k) of one coordinate, in double, relative error below 10^−12.
struct value_moments {
  double square;
  double mean;
  double with_key;
};
[[nodiscard]] value_moments moments_of(relationship);

/// Mean over t = 1 ... T of (1 − 1/d)^t.
[[nodiscard]] double mean_survival(double tokens);
/// DeltaNet: E f² (2 − mean_survival), exact for every f.
[[nodiscard]] double delta_error(relationship, double tokens);
/// Linear attention: E f² ((T + 1)/(2d) + 1) + (T² − 1)/3 (E k f)² / d.
[[nodiscard]] double hebbian_error(relationship, double tokens);
/// Of a unit value, whatever it has to do with its key: delta_error with E f² = 1/d.
[[nodiscard]] double delta_error_of_unit_values(double tokens);

/// Unit keys of three channels, v = k: DeltaNet after six, least squares after three.
[[nodiscard]] claim_values identity_state();
/// By symmetry: E v k^T of even powers is 0, so the state expected of any linear fit is 0 and its output says nothing of v.
[[nodiscard]] claim_values nothing_linear_in_even_powers();

}  // namespace deltaproof::claim_detail
