// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
//
// Runs a kernel that keeps a precision plan, or one with a planted fault: `emulate(problem, variant)` gives the result such
// a kernel may give, stages included, each rounded where the plan says and nowhere else. `emulate_head` is one head of one
// sequence, `perturbed` moves its inputs by less than their own precision so that runs are independent draws of the same
// rounding errors, and `reference_run` is what such a draw is measured against. It exists to be the source of a budget:
// what a plan costs on these inputs. Shapes: those of the exchange format, per head: o T x V, states K x V, stages one row
// a row of k. Sums are made in the order the variant names; float where its accumulators are fp32 or narrower, else double.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string_view>
#include <vector>

#include "deltaproof/algebra/matrix.hpp"
#include "deltaproof/files/exchange.hpp"
#include "deltaproof/oracle/problem.hpp"
#include "deltaproof/plan/plan.hpp"

namespace deltaproof {

struct fault;

/// What a problem says about the numbers of a head.
struct head_input_kind {
  std::size_t steps_per_token = 1;   ///< n
  std::optional<double> gate_slack;  ///< the kernel makes g itself, and errs by this besides some units in the last place
  double scale = 1;
  bool qk_l2norm = false;
  double l2norm_epsilon = reference_l2norm_epsilon;  ///< of the problem; a plan may have one of its own
  rule_kind rule = rule_kind::euler;
  activation_kind activation = activation_kind::none;
  format x = bf16;  ///< of q, k and v
  format beta_format = bf16;
  format g_format = fp32;
  format state_format = fp32;
  bool per_channel = false;  ///< the gate has one decay for each channel, even where K = 1
};

/// One head of one sequence as a kernel receives it: the given numbers, exactly, and what the problem says about them.
struct head_input : head_input_kind {
  matrix<double> q;          ///< T x K
  matrix<double> k;          ///< T n x K
  matrix<double> v;          ///< T n x V
  std::vector<double> beta;  ///< T n, as given
  matrix<double> g;          ///< T x (0, 1 or K), natural logarithms
  matrix<double> state;      ///< K x V

  [[nodiscard]] std::size_t tokens() const noexcept { return q.rows(); }
  [[nodiscard]] std::size_t rows() const noexcept { return k.rows(); }
  [[nodiscard]] std::size_t key_dim() const noexcept { return k.cols(); }
  [[nodiscard]] std::size_t value_dim() const noexcept { return v.cols(); }
  [[nodiscard]] bool gated() const noexcept { return g.cols() > 0; }
  [[nodiscard]] bool channels() const noexcept { return g.cols() > 1 || per_channel; }
};

[[nodiscard]] head_input take_head(const problem& p, std::size_t sequence, std::size_t value_head);
/// head_input::g of that head.
[[nodiscard]] matrix<double> gates_of_head(const problem& p, std::size_t sequence, std::size_t value_head);
/// The first `tokens` tokens of a head.
[[nodiscard]] head_input first_tokens(const head_input& in, std::size_t tokens);
/// A head as a problem of its own, with the op, rule and formats of `like`.
[[nodiscard]] problem problem_of(const head_input& in, const problem& like);

/// The same head with every nonzero number of q, k, v, beta and the state multiplied by 1 + d, d uniform within two units
/// in the last place of q's format (of fp32 where that is finer: a plan may read in fp32 what is given in fp64; of `read` where
/// that is coarser: less would leave every rounding to it as it is), and rounded to its own format again; beta and gates likewise
/// in units of their own. Zero, one and infinite gates stay what they are. A function of the seed.
[[nodiscard]] head_input perturbed(const head_input& in, std::uint64_t seed, const format& read = fp64);

/// What a kernel forms, and the largest magnitude each reached (before it was rounded to its format). The state of the recurrent
/// path is looked at at its end, and at each token where emulation_options::in_any_order is set.
enum class formed { gate_exponent, gate_factor, inverse_intermediate, inverse, state, output };
inline constexpr detail::kind_names<formed, 6> formed_names{{
    {formed::gate_exponent, "gate exponent"},
    {formed::gate_factor, "gate factor"},
    {formed::inverse_intermediate, "inverse intermediate"},
    {formed::inverse, "Ai"},
    {formed::state, "state"},
    {formed::output, "o"},
}};
using range_seen = std::array<double, formed_names.size()>;  ///< infinite or NaN where that was formed

/// What one head's run leaves; stages are empty unless they were asked for, and on the recurrent path.
struct head_output {
  matrix<double> o;            ///< T x V, scale included
  matrix<double> final_state;  ///< K x V
  matrix<double> g_cumsum_log2;
  matrix<double> A;
  matrix<double> Ai;
  matrix<double> w;
  matrix<double> u;
  matrix<double> h;  ///< chunks * K x V
  matrix<double> v_new;
  matrix<double> Aqk;
  range_seen range{};
};

struct emulation_options {
  const fault* planted = nullptr;
  bool stages = false;
  /// Above 0 the run is another build of the same arithmetic: each product takes its terms in turn from a place of its own on,
  /// half of those of the inverse the terms with even numbers first, and so does each sum of dbeta and dg, where products are
  /// fused with their additions; the approximate units of the variant err as it declares, and gates are summed row after row or
  /// by a scan, scaled by 1/ln 2 before or after. Above 1 every finished sum is moved besides, by up to this many units in the
  /// last place of fp32 (fp64 in double), which is more than an order of summation may do to a sum of few terms. At 0 sums begin
  /// with their first terms, units are exact, and gates are summed in turn, then scaled.
  double noise_ulps = 0;
  std::uint64_t seed = 1;  ///< of both
  /// Of the random numbers of a state cache that rounds stochastically, besides the plan's own seed: heads differ in it.
  std::uint64_t cache_stream = 0;
  /// Gates are summed as natural logarithms and e^x is taken of them, another way to the same decays; the stage g_cumsum_log2 is
  /// a copy in the other unit, rounded, that no later stage reads.
  bool natural_exponents = false;
  /// A sum whose terms of one sign add up to more than 7/8 of the largest number of its accumulator is NaN, and with it what is
  /// made of it: in some order of its terms it may overflow, though the sum itself need not be large. What is finite then is
  /// finite in every order that the variant allows.
  bool in_any_order = false;
  const std::atomic<bool>* stop = nullptr;          ///< once true no further head starts: the result is then incomplete
  std::function<void(double share)> progress = {};  ///< of heads, from any one thread at a time
};

/// Rounds: as the variant says. Error: what the plan costs. NaN and inf are results.
[[nodiscard]] head_output emulate_head(const head_input& in, const plan_variant& variant, const emulation_options& options = {});
/// The same on a head of a problem, with faults that concern how heads and sequences are found.
[[nodiscard]] head_output emulate_head(const problem& p, std::size_t sequence, std::size_t value_head,
                                       const plan_variant& variant, const emulation_options& options = {});

/// Runs of one head without noise, each with another fault. What a chunk makes of its rows alone (g_cumsum_log2, A, Ai, w, u,
/// Aqk) is computed once, as far as a fault leaves it alone; every run has the bits that emulate_head gives.
class head_runs {
 public:
  head_runs(head_input in, plan_variant variant);
  [[nodiscard]] const head_input& input() const;
  [[nodiscard]] const head_output& without_fault() const;
  /// A fault of what a head reads (the overload of emulate_head for problems) changes nothing here.
  [[nodiscard]] head_output with(const fault& f) const;

 private:
  struct known;
  std::shared_ptr<const known> known_;
};

/// The token recurrence on the same inputs: o and final_state. Its own error is some roundings of fp64, without a
/// certificate: the measure of perturbed runs in formats of half the precision, never of a kernel.
[[nodiscard]] head_output reference_run(const head_input& in);
/// The same in fp32: half the time, and some 2^-24 of its values off.
[[nodiscard]] head_output reference_run_in_fp32(const head_input& in);
/// The same in double-doubles, minus `run`: the error of a run in fp64. exp, sqrt and gains are those of fp64.
[[nodiscard]] head_output error_of_wide_run(const head_input& in, const head_output& run);

/// Whether every sum of the variant is in fp32 or narrower, so that fp64 measures it.
[[nodiscard]] bool measured_by_fp64(const plan_variant& variant);

/// Every head as a result file of the variant. Stages that the path has are among `stages` if options say so.
/// Throws: format_error for noise that is no number from 0 to 2^20, or a chunk path without a chunk length; domain_error where a
/// step is at a pole of its rule.
[[nodiscard]] result emulate(const problem& p, const plan_variant& variant, const emulation_options& options = {},
                             unsigned threads = 0);

}  // namespace deltaproof
