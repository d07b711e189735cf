// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
//
// Runs the backward pass of a kernel that keeps a precision plan: `emulate_gradients(problem, variant)` gives the result such a
// kernel may give, and `emulate_group_gradients` the gradients of the value heads that share q and k in one sequence, each
// rounded where the [backward] section of the plan says and nowhere else. What is a gradient of what: oracle/gradients.hpp.
// `perturbed` moves a head and its cotangents by less than their own precision; `reference_group_gradients` is what such a draw
// is measured against. A variant without `backward` has no gradients: every function here refuses it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "deltaproof/emulate/emulate.hpp"

namespace deltaproof {

/// Derivatives of a loss with respect to what one head returned.
struct head_cotangents {
  matrix<double> d_o;            ///< T x V
  matrix<double> d_final_state;  ///< K x V
  format d_o_format = bf16;
  format d_final_state_format = fp32;
};

/// One value head and what is given back for it.
struct gradient_head {
  head_input in;
  head_cotangents d;
};

[[nodiscard]] head_cotangents take_cotangents(const problem& p, std::size_t sequence, std::size_t value_head);
/// The value heads that read `key_head`, in their order. Each holds its own copy of the q and k that they share.
[[nodiscard]] std::vector<gradient_head> take_group(const problem& p, std::size_t sequence, std::size_t key_head);
/// As `perturbed` of a head: q and k alike in every head, all else of each head by itself, cotangents as q and the state are.
[[nodiscard]] std::vector<gradient_head> perturbed(std::span<const gradient_head> group, std::uint64_t seed,
                                                   const format& read = fp64);

/// What is one value head's own. Stages are there if they were asked for, on the chunk path, by their names in files, one row a
/// row of k (dh: chunks * K x V, the cotangent of the state at the end of each chunk).
struct head_gradients {
  matrix<double> dv;                                          ///< T n x V
  std::vector<double> dbeta;                                  ///< T n
  matrix<double> dg;                                          ///< T x (0, 1 or K)
  matrix<double> dinitial_state;                              ///< K x V
  std::vector<matrix<double>> dg_in_other_orders;             ///< as dg, for each order that was asked for beside the plan's own
  std::map<std::string, matrix<double>, std::less<>> stages;  ///< of backward_stage_names but dq_hat and dk_hat
  head_output forward;                                        ///< of the same run, its stages if they were asked for
};

struct group_gradients {
  matrix<double> dq;  ///< T x K, heads added up
  matrix<double> dk;  ///< T n x K, likewise
  matrix<double> dq_hat,
      dk_hat;  ///< before the l2norm's backward, as stored; empty without a norm, or if no stages were asked for
  std::vector<head_gradients> heads;
};

/// Rounds: as the variant says. Error: what the plan costs. NaN and inf are results. The planted fault of the options may be one
/// of the forward or of the backward pass. Throws: format_error if the variant has no `backward`.
/// `other_orders`: dg is returned for each of these in place of [backward] state_sum_order too, of the same run, bit for bit as a
/// run with that order has it; on the chunk path, without a planted fault.
[[nodiscard]] group_gradients emulate_group_gradients(std::span<const gradient_head> group, const plan_variant& variant,
                                                      const emulation_options& options = {},
                                                      std::span<const tile_order> other_orders = {});
/// The same on heads of a problem, with faults that concern how heads and sequences are found.
[[nodiscard]] group_gradients emulate_group_gradients(const problem& p, std::size_t sequence, std::size_t key_head,
                                                      const plan_variant& variant, const emulation_options& options = {});

/// The adjoint of the token recurrence in fp64, and what the recurrence itself gives (`forward`: o and final_state), without a
/// certificate: the measure of perturbed runs in formats of half the precision, never of a kernel.
[[nodiscard]] group_gradients reference_group_gradients(std::span<const gradient_head> group);
/// The same in double-doubles, minus `run`: the error of a run in fp64.
[[nodiscard]] group_gradients error_of_wide_gradients(std::span<const gradient_head> group, const group_gradients& run);

/// In which a kernel of this arithmetic returns a gradient, or stores a stage of the backward pass, of this problem.
/// Throws: domain_error for another name.
[[nodiscard]] format stored_gradient_format(const plan_variant& variant, const problem& p, std::string_view name);

/// Every head as a result file of the variant: o, final_state and the gradients, with stages of both passes if options say so.
/// Throws: format_error for a variant without `backward`, a problem without do and dfinal_state, and as emulate.
[[nodiscard]] result emulate_gradients(const problem& p, const plan_variant& variant, const emulation_options& options = {},
                                       unsigned threads = 0);

}  // namespace deltaproof
