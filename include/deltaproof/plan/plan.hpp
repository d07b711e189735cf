// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
//
// A precision plan: what a kernel promises about its arithmetic, stage by stage. Read one with `read_plan` or take a
// preset (`plan_named`, `plans_for_kernel`), then ask `variants(plan, problem, chunk)` for the concrete arithmetics it
// allows on a problem: every format spelled out, nothing left to a default. A value may be a list, any of which the kernel
// may do. It exists so that nothing about precision is implicit; emulator and stage checker both start from it and share
// nothing else. Source of the keys and of the presets' fields: what the public kernels' sources say, named in each preset.
//
// What must be stated: on the chunk path every key of every section; on the recurrent path l2norm, beta, state, v_new, o and
// the order of sums ([A] order). [gate] only where an op has a gate, its `block` only where its form has blocks; the merges
// of the inverse only where its blocks are shorter than the chunk; `tf32` where an operand is tf32, `accumulator_bits` where
// the order is that of tensor cores. What can mean nothing is refused: [A] operand on the recurrent path, [gate] without a
// gate. May be left out: what, source, kernels, contract, association (any), and of [hardware] exp2_ulps and rsqrt_ulps (1.5
// beyond the half: the approximate units of public cards), flush_to_zero (no), truncation (yes) and block (16). "chunk" may
// be "any", an update_operand "stored". [[when]] replaces lists where a condition holds:
//     [[when]]
//     chunk = 64
//     inverse.merge_operand = ["tf32", "fp32"]
//
// Of the products with a state or v_new on the chunk path these may be left out; each is followed by what it then is:
//     [l2norm] epsilon = "given"         that of the problem; or a number: x / sqrt(sum x^2 + epsilon)
//     [gate] clip                        every exponent (a natural logarithm) is brought into [first, second]; without it, not
//     [A] product_store = "none"         k k^T is rounded to this before its decay and beta
//     [A] read = "stored"                the inverse reads A as stored; or a format: as computed, rounded to it. Likewise
//     [inverse] read, [u] read, [w] read
//     [v_new] state_operand = "stored"   w h multiplies h as stored; or a format: the state itself, narrowed to it, and w too
//     [v_new] decay = "v_new"            which factor of k^T v_new carries e^{G_C-G_i} and is narrowed with it; or "k"
//     [v_new] key_operand                of k in k^T v_new: as update_operand
//     [o] decay = "product"              q h is multiplied by e^G; or "q": q e^G is narrowed to [o] operand, then multiplied
//     [o] state_operand = "stored"       q h multiplies h as stored, narrowed to [o] operand; or a format: the state itself
//     [o] value_operand                  of v_new in (q k^T) v_new: as [o] operand
//     [o] scale = "o"                    the finished sums are multiplied; or "q": q is, and narrowed to `scale_store`; or
//                                        "l2norm": q is before its l2norm narrows it, and without one as "q"
//     [o] product_store = "none"         q k^T is rounded to this before its decay
//     [o] read_store = "none"            q h is rounded to this as it leaves its product, before decay, scale and sum
// On either path may be left out [state] between_calls = "none", [o] scale, [o] scale_format = "none" (the scale itself is not
// rounded), [o] scale_store (as [o] operand), and [beta] into = "product": beta multiplies the finished product of A, on the
// recurrent path v - S^T k; or "rows": k before it, on the recurrent path k and v, each rounded as in b k and b v.
// A gate of channels is always carried by k and q: there "v_new" and "product" are refused.
//
// [backward] may be left out: then the plan says nothing of gradients. Where it is there, each of its keys that the path has must
// be stated; docs/plan-keys.md says what each means.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "deltaproof/algebra/triangular.hpp"
#include "deltaproof/files/exchange.hpp"
#include "deltaproof/number/block_format.hpp"
#include "deltaproof/number/format.hpp"
#include "deltaproof/oracle/problem.hpp"

namespace deltaproof {

/// How a value is brought to the format it is multiplied in: to nearest, a tie to even (in tf32, rna, away from zero), or
/// (tf32 rz) toward zero.
struct narrowing {
  format to = fp32;
  bool toward_zero = false;

  friend bool operator==(const narrowing&, const narrowing&) = default;
};

/// How decay enters a product of rows i and j. `difference`: e^{G_i-G_j} on the finished product, or term by term where the
/// gate has channels. `factored`: x e^{G_i} times k e^{-G_j}. `reference_block`: outside the diagonal blocks x e^{G_i-R}
/// times k e^{R-G_j}, R the gate of the first row of i's block; inside term by term. `middle_block`: inside the diagonal
/// blocks too, R the gate of the block's middle row. `first_block`: so, but R the gate of the block's first row.
enum class gate_form { difference, factored, reference_block, middle_block, first_block };
inline constexpr detail::kind_names<gate_form, 5> gate_form_names{{
    {gate_form::difference, "difference"},
    {gate_form::factored, "factored"},
    {gate_form::reference_block, "reference-block"},
    {gate_form::middle_block, "middle-block"},
    {gate_form::first_block, "first-block"},
}};

/// Order in which a product's terms are added. `blocks_of_16`: sums of 16 terms, each from zero, added to the accumulator;
/// `chain_of_16`: 16 interleaved partial sums, then a tree over them; `tensor_core`: the block model [hardware] names.
enum class sum_order { sequential, pairwise, blocks_of_16, chain_of_16, tensor_core };
inline constexpr detail::kind_names<sum_order, 5> sum_order_names{{
    {sum_order::sequential, "sequential"},
    {sum_order::pairwise, "pairwise"},
    {sum_order::blocks_of_16, "blocks-of-16"},
    {sum_order::chain_of_16, "chain-of-16"},
    {sum_order::tensor_core, "tensor-core"},
}};

/// Which factors of a merge are multiplied first, which matters where operands are narrowed: -X_ii (sum L_im X_mj), over the
/// blocks j <= m < i, with the sum first (`sum_then_left`); so, but (X_ii L_ij) X_jj for a block next to the diagonal
/// (`neighbours_left`); -(sum X_im L_mj) X_jj, over j < m <= i (`sum_then_right`); or any of them.
enum class merge_order { any, neighbours_left, sum_then_left, sum_then_right };
inline constexpr detail::kind_names<merge_order, 4> merge_order_names{{
    {merge_order::any, "any"},
    {merge_order::neighbours_left, "neighbours-left"},
    {merge_order::sum_then_left, "sum-then-left"},
    {merge_order::sum_then_right, "sum-then-right"},
}};

/// What carries v_new into the state: the value before it is stored, narrowed once, or the stored one.
enum class update_source { computed, stored };

/// How v_new is made: u - w h, or (Ai b e^{G_i - G_j}) (v - e^G (k h)), with A and Ai without a gate, and no w and no u. The gate
/// of the second is one number.
enum class change_form { transforms, residual };
inline constexpr detail::kind_names<change_form, 2> change_form_names{
    {{change_form::transforms, "transforms"}, {change_form::residual, "residual"}}};

/// Which factor of k^T v_new carries the decay to the end of the chunk where the gate is one number a token. Channels force k.
enum class write_decay { v_new, k };
inline constexpr detail::kind_names<write_decay, 2> write_decay_names{{{write_decay::v_new, "v_new"}, {write_decay::k, "k"}}};

/// What e^G is multiplied into when the state is read, likewise: the product q h or q before it. Channels force q.
enum class read_decay { product, q };
inline constexpr detail::kind_names<read_decay, 2> read_decay_names{{{read_decay::product, "product"}, {read_decay::q, "q"}}};

/// What the scale is multiplied into: `o`, the sums that give o; `q`, q, which is then narrowed to [o] operand; `l2norm`, q as
/// its l2norm leaves it and before that is stored, so that both are narrowed once; without an l2norm as `q`.
enum class read_scale { o, q, l2norm };
inline constexpr detail::kind_names<read_scale, 3> read_scale_names{
    {{read_scale::o, "o"}, {read_scale::q, "q"}, {read_scale::l2norm, "l2norm"}}};

/// What the step is multiplied into where A is formed: `product`, the finished product k k^T (on the recurrent path v - S^T k),
/// or `rows`, k before it (there k and v), rounded to the wider of its format and the row's.
enum class step_factor { product, rows };
inline constexpr detail::kind_names<step_factor, 2> step_factor_names{
    {{step_factor::product, "product"}, {step_factor::rows, "rows"}}};

/// In which order a kernel adds the products of two matrices that it holds as one tile. `warps_*`: the tile lies in vectors of 8
/// entries of a row, dealt to 32 threads a warp in turn; each thread adds what it has, then threads add by halves.
enum class tile_order { sequential, pairwise, warps_2, warps_4, warps_8 };
inline constexpr detail::kind_names<tile_order, 5> tile_order_names{{
    {tile_order::sequential, "sequential"},
    {tile_order::pairwise, "pairwise"},
    {tile_order::warps_2, "2-warps"},
    {tile_order::warps_4, "4-warps"},
    {tile_order::warps_8, "8-warps"},
}};

/// The terms i = j of a chunk's products give the gate of row i as much as they take from it: added and taken, or left out.
enum class diagonal_terms { numeric, excluded };
inline constexpr detail::kind_names<diagonal_terms, 2> diagonal_terms_names{
    {{diagonal_terms::numeric, "numeric"}, {diagonal_terms::excluded, "excluded"}}};

/// What the products of a chunk give the gate: `rows`, q . dq - k . dk of each row; `products`, of each product its gradient
/// times itself, to the row of its first factor, from that of its second. A gate of channels forces rows.
enum class gate_gradient { rows, products };
inline constexpr detail::kind_names<gate_gradient, 2> gate_gradient_names{
    {{gate_gradient::rows, "rows"}, {gate_gradient::products, "products"}}};

/// What e^G is multiplied into in scale (q e^G)^T do: q, or do together with the scale. A gate of channels forces q.
enum class cotangent_decay { q, d_o };
inline constexpr detail::kind_names<cotangent_decay, 2> cotangent_decay_names{
    {{cotangent_decay::q, "q"}, {cotangent_decay::d_o, "do"}}};

/// dbeta as the sum over what beta multiplies, or as the gradient of beta times that, divided by beta.
enum class step_gradient { sum, divide };
inline constexpr detail::kind_names<step_gradient, 2> step_gradient_names{
    {{step_gradient::sum, "sum"}, {step_gradient::divide, "divide"}}};

/// Which rows the l2norm's backward projects on: the normalised ones as they were stored, or those before that rounding.
enum class norm_source { stored, computed };
inline constexpr detail::kind_names<norm_source, 2> norm_source_names{
    {{norm_source::stored, "stored"}, {norm_source::computed, "computed"}}};

/// How a state is kept where it waits for the next tokens or the next call: stored, and read back (block_format.hpp).
struct state_cache {
  block_format format;
  block_rounding rounding = block_rounding::nearest;
  element_format residual;  ///< of what error feedback carries from one store to the next
  std::uint64_t seed = 0;   ///< of stochastic rounding
  std::size_t every = 1;    ///< tokens (on the chunk path chunks) from one store to the next; of calls: tokens, 0 for one call

  friend bool operator==(const state_cache&, const state_cache&) = default;
};
/// "int8, scale row in fp32, rounding error-feedback with a residual in bf16, stored every 16 tokens"; `steps` is what it counts.
[[nodiscard]] std::string text_of(const state_cache& cache, std::string_view steps = "tokens");

/// The backward pass of one concrete arithmetic. Tensors by their names in files; dS is the cotangent of the state, held in
/// `accumulate`, and dh its stored copy at the end of each chunk.
struct backward_variant {
  format accumulate = fp32;  ///< every sum of a product, dS, and what is multiplied entry by entry

  // By chunks.
  narrowing operand;       ///< of each product that no other member names
  narrowing read_operand;  ///< of q e^G and do in dS += scale (q e^G)^T do
  cotangent_decay read_decay = cotangent_decay::q;
  narrowing intra_operand;         ///< of ds, dA, and of decayed q, k and b k in ds k, ds^T q, dA k and dA^T (b k)
  std::optional<narrowing> h;      ///< the state before a chunk as it is multiplied; nothing: h as the forward pass stores it
  std::optional<narrowing> v_new;  ///< likewise
  format dh = bf16;
  format dv_local = bf16;
  format dv2 = bf16;
  format dw = bf16;
  format ds = bf16;  ///< the gradient of q k^T; of a gate of channels dAqk
  std::optional<format> dA_between;
  std::optional<format> gated_key;  ///< k e^G as Ai^T dw multiplies it for db and dg
  format dA = bf16;                 ///< the gradient of A before beta; of a gate of channels dAkk
  format state_sum = fp32;
  tile_order state_sum_order = tile_order::sequential;
  gate_gradient dg_form = gate_gradient::rows;
  diagonal_terms diagonal = diagonal_terms::numeric;
  step_gradient dbeta_form = step_gradient::sum;
  std::optional<gate_form> blocks;  ///< of the products inside a chunk, of a gate of channels; nothing: as the forward pass

  // Token by token.
  format residual = fp32;      ///< v - S^T k as the forward pass saves it
  format dv = fp32;            ///< dv as it is read again for dk
  std::size_t value_tile = 0;  ///< columns of V that give a partial sum of dq, dk and dbeta; 0: all

  // Of both paths.
  format dq = bf16;     ///< each partial sum of one head
  format dk = bf16;     ///< likewise, after each addition of a part
  format dbeta = bf16;  ///< before the activation's backward
  format dg = fp32;     ///< the sums that give dg, and the reversed cumulative sum
  format group_sum = fp32;
  format group_store = bf16;  ///< dq and dk with their heads added up, before the l2norm's backward
  norm_source l2norm_from = norm_source::stored;

  friend bool operator==(const backward_variant&, const backward_variant&) = default;
};

/// One concrete arithmetic: what a kernel that keeps the plan may do on one problem. Where a format is optional, nothing
/// means that the value is not rounded there.
struct plan_variant {
  std::string name;  ///< of the plan and of what was chosen where it leaves a choice: "fla-chunk-kda (tf32 rz merges)"
  path_kind path = path_kind::chunk;
  std::size_t chunk = 64;     ///< in rows of k; 0 on the recurrent path
  bool is_reordered = false;  ///< differs from the first variant of its plan in the order of sums alone
  sum_order order = sum_order::sequential;

  format l2norm_compute = fp32;
  std::optional<format> l2norm_store;
  double l2norm_epsilon = reference_l2norm_epsilon;

  format cumsum = fp32;  ///< of G
  format decay = fp32;   ///< of differences of G and of exponentials, and what g is rounded to first, where narrower than fp32
  gate_form form = gate_form::difference;
  std::size_t gate_block = 16;
  double gate_shift = 0;  ///< added to the reference of products inside a diagonal block, as a natural logarithm
  std::optional<std::pair<double, double>> contract;  ///< each given g lies in [first, second]
  std::optional<std::pair<double, double>> clip;      ///< exponents, as natural logarithms, are brought into [first, second]

  format beta = fp32;  ///< the effective step is rounded to this; beta times a row to the wider of this and the row's format
  step_factor step = step_factor::product;

  struct {
    narrowing operand;
    format accumulate = fp32;
    std::optional<format> product_store;  ///< k k^T is rounded to this before its decay and the step
    format store = fp32;
    std::optional<format> read;  ///< what the inverse reads: A rounded to this, and stored after that; nothing: A as stored
  } A;

  struct {
    inverse_method method;     ///< diagonal blocks and merges; block 0 is the whole chunk
    narrowing operand;         ///< of the products inside a diagonal block
    format accumulate = fp32;  ///< likewise
    narrowing merge_operand;
    format merge_accumulate = fp32;
    merge_order association = merge_order::any;
    std::optional<format> between;  ///< each finished row (or power, or block) is rounded to this before it is used on
    format store = bf16;
    std::optional<format> read;  ///< likewise of Ai in u and w
  } inverse;

  struct transform {
    narrowing operand;  ///< beta v, or beta e^G k, as it enters the product
    format accumulate = fp32;
    format store = bf16;
    std::optional<format> read;  ///< likewise in v_new
  };
  transform u;
  transform w;

  struct {
    format accumulate = fp32;                  ///< the state is kept in this
    narrowing store;                           ///< the copy that is stored (h) and multiplied
    std::optional<format> between_tokens;      ///< the state is rounded to this after each token, or chunk on the chunk path
    std::optional<state_cache> cache;          ///< likewise stored and read back, on the recurrent path after o was read
    std::optional<state_cache> between_calls;  ///< the same after each call, so that final_state is what was read back
  } state;

  struct {
    format store = bf16;
    std::optional<narrowing> state_operand;  ///< of w and the state itself in w h; nothing: h as stored, and w in its format
    update_source update = update_source::computed;
    narrowing update_operand;
    std::optional<narrowing> key_operand;  ///< of k in k^T v_new; nothing: update_operand
    change_form form = change_form::transforms;
    write_decay decay = write_decay::v_new;
  } v_new;

  struct {
    narrowing operand;  ///< of q k^T (decayed), of q, and of q e^G where q carries the decay
    format accumulate = fp32;
    format store = bf16;
    read_decay decay = read_decay::product;
    read_scale scale = read_scale::o;
    std::optional<format> scale_format;      ///< the scale itself is rounded to this
    std::optional<format> scale_store;       ///< q times the scale is, where q is multiplied; nothing: `operand`
    std::optional<format> product_store;     ///< q k^T is rounded to this before its decay
    std::optional<narrowing> state_operand;  ///< of the state itself in q h; nothing: h as stored, narrowed to `operand`
    std::optional<narrowing> value_operand;  ///< of v_new; nothing: `operand`
    std::optional<format> read_store;        ///< q h is rounded to this before its decay, the scale and the sum
  } o;

  /// A sequence in parts of so many chunks, each from a state of its own: 0 is no part but the whole. Where the log decays of the
  /// last chunks of a part add up to less than `truncation`, the next part begins with what they write into a state of zeros; in
  /// the backward pass likewise from behind. Where they never do, the state is carried as within a part.
  struct {
    std::size_t chunks = 0;
    double truncation = 0;
  } split;

  double exp2_ulps = 0;  ///< error of an exponential and of 1/sqrt beyond half an ulp of `cumsum`, uniform in +- this
  double rsqrt_ulps = 0;
  bool flush_to_zero = false;
  int accumulator_bits = 0;  ///< fraction bits a tensor core aligns to (order tensor_core)
  std::size_t core_block = 16;

  std::optional<backward_variant> backward;  ///< nothing: the plan says nothing of gradients
};

/// A format as a plan states it: one of the table, "X" (that of q, k, v), "given" (that of beta or g itself, and for a step
/// that the kernel computes, by an activation or a rule, that of beta or fp32; elsewhere X, and of o the result's own, which
/// the caller knows), "none" (kept as computed) or, of a state that is multiplied, "stored" (its stored copy).
struct format_choice {
  enum class kind { fixed, x, given, none, stored, cache } which = kind::fixed;
  format value = fp32;
  state_cache cache{};  ///< of kind cache: a stored state that is more than one format

  friend bool operator==(const format_choice&, const format_choice&) = default;
};
template <class T>
using choices = std::vector<T>;  ///< any of these; never empty

struct plan_exception;

/// The plan as written. Names of members are the keys of the TOML file; a list that is not stated is empty.
struct plan {
  std::string name;
  std::string what;                  ///< one sentence
  std::string source;                ///< where the fields were read
  std::vector<std::string> kernels;  ///< values of a result's `kernel` it fits
  choices<op_kind> ops;
  choices<path_kind> path;
  choices<format> dtypes;
  std::vector<std::size_t> chunk;  ///< empty: any
  struct {
    choices<format_choice> compute, store;
    choices<std::optional<double>> epsilon;  ///< nothing: that of the problem
  } l2norm;
  struct {
    choices<format_choice> cumsum;
    choices<gate_form> form;
    choices<double> shift;
    std::size_t block = 16;
    std::optional<std::pair<double, double>> contract, clip;
  } gate;
  struct {
    choices<format_choice> format;
    choices<step_factor> into;
  } beta;
  struct {
    choices<format_choice> operand, accumulate, product_store, store, read;
    choices<sum_order> order;  ///< of every product of the plan
  } A;
  struct {
    choices<inverse_method> method;  ///< block 0: of the whole chunk
    choices<format_choice> operand, accumulate, merge_operand, merge_accumulate, between, store, read;
    choices<merge_order> association;  ///< runs take the first; stages are compared with each. Empty: any
  } inverse;
  struct transform {
    choices<format_choice> operand_store, accumulate, store, read;
  };
  transform u, w;
  struct {
    choices<format_choice> accumulate, store, between_tokens, between_calls;
  } state;
  struct {
    choices<format_choice> store, state_operand, update_operand, key_operand;
    choices<update_source> update;
    choices<write_decay> decay;
    choices<change_form> form;
  } v_new;
  struct {
    choices<format_choice> operand, accumulate, store, state_operand, value_operand, read_store, product_store, scale_format,
        scale_store;
    choices<read_decay> decay;
    choices<read_scale> scale;
  } o;
  struct {
    choices<std::size_t> chunks;       ///< 0: one part
    std::optional<double> truncation;  ///< a log decay below 0; nothing: no part forgets what was before it
  } split;
  struct {
    bool stated = false;
    choices<format_choice> accumulate, operand, read_operand, intra_operand, h, v_new, dh, dv_local, dv2, dw, ds, dA_between,
        gated_key, dA, state_sum, residual, dv, dq, dk, dbeta, dg, group_sum, group_store;
    choices<cotangent_decay> read_decay;
    choices<gate_form> blocks;  ///< empty: as the forward pass
    choices<tile_order> state_sum_order;
    choices<gate_gradient> dg_form;
    choices<diagonal_terms> diagonal;
    choices<step_gradient> dbeta_form;
    choices<std::size_t> value_tile;  ///< 0: all columns
    choices<norm_source> l2norm_from;
  } backward;
  struct {
    double exp2_ulps = 1.5, rsqrt_ulps = 1.5;
    bool flush_to_zero = false;
    int accumulator_bits = 0;
    bool truncation = true;  ///< of what lies below those bits; tensor cores do
    std::size_t block = 16;
    choices<bool> tf32_toward_zero;  ///< rz, rna, or both
  } hardware;
  std::vector<plan_exception> when;  ///< applied in their order
};

/// Where every condition that is stated holds, the lists stated in `change` stand in for the plan's own.
struct plan_exception {
  choices<op_kind> ops;
  choices<format> dtypes;
  std::vector<std::size_t> chunk;
  plan change;
};

/// Every preset, in the order of `list plans`.
[[nodiscard]] std::span<const plan> plans();
/// The preset of that name, or the plan in the file if `name` ends in .toml. Throws: format_error naming the nearest preset,
/// or what is wrong in the file.
[[nodiscard]] plan plan_named(std::string_view name);
/// Throws: format_error with `where`, the key, its value and the nearest valid one.
[[nodiscard]] plan parse_plan(std::string_view toml, std::string_view where);
/// The text of a preset, to copy and change.
[[nodiscard]] std::string_view plan_text(std::string_view preset);
/// The presets whose `kernels` hold this kernel and that fit the problem; empty if none.
[[nodiscard]] std::vector<const plan*> plans_for_kernel(std::string_view kernel, const problem& p, path_kind path);
/// The presets that fit op, path and dtype, whatever the kernel.
[[nodiscard]] std::vector<const plan*> candidate_plans(const problem& p, std::optional<path_kind> path);

/// Throws: format_error if the plan does not fit this problem or path (op, dtype, path, chunk), naming both.
void require_fit(const plan& plan, const problem& p, path_kind path, std::size_t chunk);
/// The arithmetics the plan allows on this problem: first of each list, then one for each other entry of a list with the
/// rest as in the first. Throws: as require_fit.
[[nodiscard]] std::vector<plan_variant> variants(const plan& plan, const problem& p, path_kind path, std::size_t chunk);
/// Those that may give other gradients: those of `variants` and, with the rest as in the first, each other entry of a list of
/// [backward]. Empty where the plan says nothing of gradients. Throws: as require_fit.
[[nodiscard]] std::vector<plan_variant> gradient_variants(const plan& plan, const problem& p, path_kind path, std::size_t chunk);
/// Whether every format of the plan on this problem, X among them, reaches as far as fp32.
[[nodiscard]] bool reaches_as_far_as_fp32(const plan& plan, const problem& p);
/// In which a kernel of this arithmetic stores a stage (stage_names), o or final_state; files have no tf32: fp32 then.
/// Throws: domain_error for another name.
[[nodiscard]] format stored_format(const plan_variant& variant, std::string_view tensor);

}  // namespace deltaproof
