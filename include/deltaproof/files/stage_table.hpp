// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
//
// The one table of the tensors that a kernel may leave, forward and backward, in the order in which it computes them: name, axes,
// meaning and what each is recomputed from. Files, the emulator, the stage checker and their texts go through it.
#pragma once

#include <array>
#include <cstddef>
#include <string_view>
#include <utility>

namespace deltaproof {

/// Which part of a result holds it.
enum class stage_part { stages, outputs, backward_stages, gradients };

/// [B, T*n, HV] alone or with K where gates have channels; with K; with V; with C; [B, NT, HV, K, V]; those of an input.
enum class stage_axes { gates, keys, values, pairs, states, input };

struct stage_row {
  std::string_view name;
  stage_part part;
  stage_axes axes;
  std::string_view meaning;                    ///< in the words of a formula
  std::array<std::string_view, 5> needs = {};  ///< the stored stages that it is recomputed from, besides the inputs
};

inline constexpr auto stage_table = std::to_array<stage_row>({
    {"g_cumsum_log2", stage_part::stages, stage_axes::gates, "the running sum of the gates inside a chunk, divided by ln 2"},
    {"A", stage_part::stages, stage_axes::pairs, "beta_i <k_i, k_j> with its decay, j < i"},
    {"Ai", stage_part::stages, stage_axes::pairs, "the inverse (I + A)^-1 of a chunk"},
    {"w", stage_part::stages, stage_axes::keys, "Ai (beta e^G k)", {"Ai"}},
    {"u", stage_part::stages, stage_axes::values, "Ai (beta v)", {"Ai"}},
    {"h", stage_part::stages, stage_axes::states, "the state before each chunk", {"u", "w"}},
    {"v_new", stage_part::stages, stage_axes::values, "u - w h", {"u", "w"}},
    {"Aqk", stage_part::stages, stage_axes::pairs, "scale <q_i, k_j> with its decay, j <= i"},
    {"o", stage_part::outputs, stage_axes::values, "the read-out"},  // of h and v_new, or of u and w
    {"final_state", stage_part::outputs, stage_axes::states, "the state after the last token", {"u", "w"}},
    {"dv_local", stage_part::backward_stages, stage_axes::values, "(scale q k^T with its decay)^T do"},
    {"dh", stage_part::backward_stages, stage_axes::states, "the cotangent of the state after each chunk", {"w", "dv2"}},
    {"dv2", stage_part::backward_stages, stage_axes::values, "the gradient of v_new", {"dh", "dv_local"}},
    {"dw", stage_part::backward_stages, stage_axes::keys, "-dv2 h^T", {"dv2", "h"}},
    {"dAqk", stage_part::backward_stages, stage_axes::pairs, "the gradient of Aqk", {"v_new"}},
    {"dAkk", stage_part::backward_stages, stage_axes::pairs, "the gradient of A", {"h", "v_new", "dh", "dv2", "Ai"}},
    {"dg_local",
     stage_part::backward_stages,
     stage_axes::gates,
     "the gradient of the running sums of the gates",
     {"h", "v_new", "dh", "dv2", "Ai"}},
    {"dv", stage_part::gradients, stage_axes::input, "the gradient of v", {"Ai", "dv2"}},
    {"dbeta", stage_part::gradients, stage_axes::input, "the gradient of beta", {"h", "v_new", "dh", "dv2", "Ai"}},
    {"dq_hat", stage_part::backward_stages, stage_axes::input, "the gradient of the normalised q", {"h", "v_new"}},
    {"dk_hat",
     stage_part::backward_stages,
     stage_axes::input,
     "the gradient of the normalised k",
     {"h", "v_new", "dh", "dv2", "Ai"}},
    {"dq", stage_part::gradients, stage_axes::input, "the gradient of q", {"h", "v_new"}},  // of dq_hat, if q is normalised
    {"dk", stage_part::gradients, stage_axes::input, "the gradient of k", {"h", "v_new", "dh", "dv2", "Ai"}},
    {"dg",
     stage_part::gradients,
     stage_axes::input,
     "the sum of dg_local from each token's first row to the end of its chunk",
     {"dg_local"}},
    {"dinitial_state", stage_part::gradients, stage_axes::states, "the gradient of the initial state", {"w", "dv2"}},
});

/// The row of that name; null for another name.
constexpr const stage_row* find_stage(std::string_view name) {
  for (const stage_row& row : stage_table) {
    if (row.name == name) return &row;
  }
  return nullptr;
}

namespace detail {

template <stage_part... Parts>
consteval auto names_of_parts() {
  constexpr auto belongs = [](const stage_row& row) { return ((row.part == Parts) || ...); };
  constexpr std::size_t count = [belongs] {
    std::size_t n = 0;
    for (const stage_row& row : stage_table) n += belongs(row) ? 1 : 0;
    return n;
  }();
  std::array<std::string_view, count> names;
  std::size_t at = 0;
  for (const stage_row& row : stage_table) {
    if (belongs(row)) names[at++] = row.name;
  }
  return names;
}

constexpr std::string_view key_of(std::string_view name) { return name; }
template <class T>
constexpr std::string_view key_of(const std::pair<std::string_view, T>& row) {
  return row.first;
}

}  // namespace detail

/// Whether a table, of names or of pairs that begin with one, has each of these stages.
template <class Table, class Stages>
[[nodiscard]] constexpr bool has_each(const Table& table, const Stages& stages) {
  for (const std::string_view stage : stages) {
    bool found = false;
    for (const auto& row : table) found = found || detail::key_of(row) == stage;
    if (!found) return false;
  }
  return true;
}

/// The optional stages of a result, in the order a chunk kernel computes them.
inline constexpr auto stage_names = detail::names_of_parts<stage_part::stages>();
/// Those of a backward pass.
inline constexpr auto backward_stage_names = detail::names_of_parts<stage_part::backward_stages>();
/// What the stage checker recomputes: each reads only those before it, but v_new reads h of its own chunk.
inline constexpr auto judged_stages = detail::names_of_parts<stage_part::stages, stage_part::outputs>();
/// Of a backward pass.
inline constexpr auto judged_backward_stages = detail::names_of_parts<stage_part::backward_stages, stage_part::gradients>();

}  // namespace deltaproof
