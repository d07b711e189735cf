// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
//
// What a kernel author includes in a test: a problem and a result over the buffers the kernel has anyway, and `record`,
// which writes them as two exchange files in one call, for `deltaproof check` on another machine. Views own nothing; `copied`
// makes of them the `problem` and `result` that everything else takes, bit for bit. States may lie as (K, V), as in fla, or
// as (V, K), as in FlashInfer: `state_layout` says which. Shapes are those of oracle/problem.hpp and files/exchange.hpp. Memory
// is the host's: copy from the device first.
//
//     problem_view given{.op = op_kind::gated_delta_rule, .q = {bf16, q, {B, T, H, K}}, .k = {bf16, k, {B, T, H, K}}, ...};
//     result_view gave{.o = {bf16, o, {B, T, HV, V}}, .final_state = {s, {N, HV, V, K}}, .state_layout = layout_kind::vk};
//     record("out/case1", given, gave);
//
// Stages make a verdict say which step is wrong. Where a chunk kernel launches its parts one by one, three places have them:
//
//   1. after the solve of I + L:  A, Ai      [B, T*n, HV, C]
//   2. after the vectors:         w, u       [B, T*n, HV, K], [B, T*n, HV, V]
//   3. after the states:          h, v_new   [B, NT, HV, K, V], [B, T*n, HV, V]
//
// and g_cumsum_log2 and Aqk where they exist. A buffer that a later launch writes over is kept with `keep` when it is complete.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "deltaproof/algebra/tensor_view.hpp"
#include "deltaproof/files/exchange.hpp"
#include "deltaproof/oracle/problem.hpp"

namespace deltaproof {

/// What a kernel was given. A tensor that is not set is absent: g and initial_state may be.
struct problem_view {
  op_kind op = op_kind::delta_rule;
  tensor_view q = {};              ///< [B, T, H, K]
  tensor_view k = {};              ///< [B, T*n, H, K]
  tensor_view v = {};              ///< [B, T*n, HV, V]
  tensor_view beta = {};           ///< [B, T*n, HV]
  tensor_view g = {};              ///< [B, T, HV] or [B, T, HV, K]: natural log of each token's own decay
  tensor_view initial_state = {};  ///< [N, HV, K, V], or [N, HV, V, K] for layout vk
  layout_kind state_layout = layout_kind::kv;
  std::vector<std::int64_t> cu_seqlens = {};  ///< empty: not packed
  std::optional<double> scale = {};           ///< nothing: default_scale(K)
  bool qk_l2norm = false;
  double l2norm_epsilon = reference_l2norm_epsilon;
  rule_kind rule = rule_kind::euler;
  activation_kind beta_activation = activation_kind::none;
  std::size_t num_householder = 1;
  std::string note = {};
  tensor_view d_o = {};            ///< [B, T, HV, V]: do, of a backward pass
  tensor_view d_final_state = {};  ///< as initial_state, in its layout
};

/// What came out. `kernel`: a name of yours, or one that a plan lists, which then is judged by that plan.
struct result_view {
  tensor_view o = {};                              ///< [B, T, HV, V]
  tensor_view final_state = {};                    ///< [N, HV, K, V], or [N, HV, V, K] for layout vk
  layout_kind state_layout = layout_kind::kv;      ///< of final_state, dinitial_state and the stages h and dh
  std::map<std::string, tensor_view> stages = {};  ///< by the names in stage_names and backward_stage_names
  std::string kernel = {};
  std::optional<path_kind> path = {};                 ///< nothing: chunk where a chunk_size is stated
  std::optional<std::size_t> chunk_size = {};         ///< C, in rows of k
  std::string producer = {};                          ///< commit, compiler, card
  std::map<std::string, tensor_view> gradients = {};  ///< by the names in gradient_names; with these o may be absent
};

/// The problem of the same bits, initial_state as (K, V). Throws: as copied(tensor_view) and as validate.
[[nodiscard]] problem copied(const problem_view& view);
/// The result of the same bits; final_state keeps its layout; h, dh and dinitial_state are (K, V). Throws: as
/// copied(tensor_view); shape_error or format_error where it is no result of `p`.
[[nodiscard]] result copied(const result_view& view, const problem& p);

/// Copies a tensor into `r` now: "o", "final_state" (which sets r.state_layout), a stage or a gradient by its name.
/// Throws: as copied(tensor_view); format_error for another name.
void keep(result& r, std::string_view name, const tensor_view& view, layout_kind layout = layout_kind::kv);

/// Writes PATH.problem.safetensors and PATH.result.safetensors, each by rename, the second with the hash of the first; returns
/// their names. Folders on the way are made. Throws: as validate; format_error if they cannot be written.
std::pair<std::filesystem::path, std::filesystem::path> record(const std::filesystem::path& path, const problem& p,
                                                               const result& r);
std::pair<std::filesystem::path, std::filesystem::path> record(const std::filesystem::path& path, const problem_view& p,
                                                               const result_view& r);

}  // namespace deltaproof
