// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
//
// Faults of precision alone: a format, a rounding mode or an algorithm that the plan does not promise. Where the plan
// promises what the fault does, nothing changes.
#include "emulate/faults.hpp"

namespace deltaproof::emulation_detail {
namespace {

/// Formats of a store are rounded to nearest: one that is wider than the machine's numbers leaves them for a hook to cut.
template <class Real>
void cut(matrix<Real>& m, const format& to) {
  narrow_all(m, {to, true});
}

/// More bits than promised are no fault.
format coarser(const format& promised, const format& x) { return x.precision < promised.precision ? x : promised; }

narrowing coarser(const narrowing& promised, const format& x) {
  return x.precision < promised.to.precision ? narrowing{x, false} : promised;
}

void invert_with_operands(plan_variant& v, const format& f) {
  v.inverse.operand = coarser(v.inverse.operand, f);
  v.inverse.merge_operand = coarser(v.inverse.merge_operand, f);
}
void invert_in(plan_variant& v, const format& f) {
  invert_with_operands(v, f);
  v.inverse.accumulate = coarser(v.inverse.accumulate, f);
  v.inverse.merge_accumulate = coarser(v.inverse.merge_accumulate, f);
}

/// Parts of the inverse are rounded to bf16 when they are finished.
template <class Which>
fault_code cutting(Which) {
  return hooks(always, {before(step_kind::Ai, [](auto& s) { s.cut = Which{}; })});
}

fault_code cut_after(step_kind at, void (*widen)(plan_variant&, const head_input&), hook change) {
  return {widen, nullptr, {{at, false, change}}, always};
}

fault_table roundings() {
  return {
      {"Ai-truncated", "Ai", "the inverse is truncated to its format, not rounded", paths::chunk,
       cut_after(
           step_kind::Ai, [](plan_variant& v, const head_input&) { v.inverse.store = fp64; },
           make_hook([](auto& s) { cut(s.now.Ai, s.promised.inverse.store); }))},
      {"w-truncated", "w", "w is truncated to its format, not rounded", paths::chunk,
       cut_after(
           step_kind::w, [](plan_variant& v, const head_input&) { v.w.store = fp64; },
           make_hook([](auto& s) { cut(s.now.w, s.promised.w.store); }))},
      {"u-truncated", "u", "u is truncated to its format, not rounded", paths::chunk,
       cut_after(
           step_kind::u, [](plan_variant& v, const head_input&) { v.u.store = fp64; },
           make_hook([](auto& s) { cut(s.now.u, s.promised.u.store); }))},
      {"v_new-truncated", "v_new", "v_new is truncated to its format, not rounded", paths::chunk,
       cut_after(
           step_kind::v_new, [](plan_variant& v, const head_input&) { v.v_new.store = fp64; },
           make_hook([](auto& s) { cut(s.now.v_new, s.promised.v_new.store); }))},
      {"h-truncated", "h", "h, the state that a chunk reads, is truncated to its format, not rounded", paths::chunk,
       arithmetic(always, [](plan_variant& v, const head_input&) { v.state.store.toward_zero = true; })},
      {"update-truncated", "h", "k and v_new are truncated, not rounded, to the formats in which they update the state",
       paths::chunk,
       arithmetic(always,
                  [](plan_variant& v, const head_input&) {
                    v.v_new.update_operand.toward_zero = true;
                    if (v.v_new.key_operand) v.v_new.key_operand->toward_zero = true;
                  })},
      {"o-truncated", "o", "o is truncated to its format, not rounded", paths::both,
       cut_after(
           step_kind::finish, [](plan_variant& v, const head_input&) { v.o.store = fp64; },
           make_hook([](auto& s) { cut(s.o, s.promised.o.store); }))},
      {"Aqk-in-fp8", "Aqk", "q k^T is rounded to e4m3; entries above 448 are NaN", paths::chunk,
       hooks(always, {after(step_kind::Aqk, [](auto& s) { narrow_all(s.now.Aqk, {e4m3, false}); })})},
      {"A-stored-in-x", "A", "A is stored in the format of q", paths::chunk,
       arithmetic(always, [](plan_variant& v, const head_input& in) { v.A.store = in.x; })},
      {"Ai-stored-in-fp8", "Ai", "the inverse is stored in e4m3; entries above 448 are NaN", paths::chunk,
       arithmetic(always, [](plan_variant& v, const head_input&) { v.inverse.store = e4m3; })},
      {"state-kept-in-bf16", "h", "the state is rounded to bf16 after each chunk, on the recurrent path after each token",
       paths::both, arithmetic(always, [](plan_variant& v, const head_input&) { v.state.between_tokens = bf16; })},
      {"state-kept-in-fp16", "h",
       "the state is rounded to fp16 after each chunk, on the recurrent path after each token; a large state becomes infinite",
       paths::both, arithmetic(always, [](plan_variant& v, const head_input&) { v.state.between_tokens = fp16; })},
  };
}

fault_table accumulators() {
  return {
      {"A-accumulated-in-x", "A", "the products that form A are accumulated in the format of q", paths::chunk,
       arithmetic(always, [](plan_variant& v, const head_input& in) { v.A.accumulate = coarser(v.A.accumulate, in.x); })},
      {"w-accumulated-in-x", "w", "the products that form w are accumulated in the format of q", paths::chunk,
       arithmetic(always, [](plan_variant& v, const head_input& in) { v.w.accumulate = coarser(v.w.accumulate, in.x); })},
      {"u-accumulated-in-x", "u", "the products that form u are accumulated in the format of q", paths::chunk,
       arithmetic(always, [](plan_variant& v, const head_input& in) { v.u.accumulate = coarser(v.u.accumulate, in.x); })},
      {"o-accumulated-in-x", "Aqk", "the products of the read-out are accumulated in the format of q", paths::both,
       arithmetic(always, [](plan_variant& v, const head_input& in) { v.o.accumulate = coarser(v.o.accumulate, in.x); })},
      {"accumulators-of-13-bits", "A", "tensor cores align the terms of a sum to 13 fraction bits, as they do for fp8 operands",
       paths::chunk,
       arithmetic(always,
                  [](plan_variant& v, const head_input&) {
                    if (!measured_by_fp64(v)) return;  // tensor cores add in fp32
                    v.order = sum_order::tensor_core;
                    v.accumulator_bits = 13;
                  })},
  };
}

fault_table inverse_formats() {
  return {
      {"inverse-in-fp16", "Ai", "the inverse is computed in fp16; correlated keys may make it infinite", paths::chunk,
       arithmetic(always, [](plan_variant& v, const head_input&) { invert_in(v, fp16); })},
      {"inverse-in-x", "Ai", "the inverse is computed in the format of q", paths::chunk,
       arithmetic(always, [](plan_variant& v, const head_input& in) { invert_in(v, in.x); })},
      {"inverse-in-tf32", "Ai", "each product inside the computation of the inverse has tf32 operands", paths::chunk,
       arithmetic(always, [](plan_variant& v, const head_input&) { invert_with_operands(v, tf32); })},
      {"inverse-bf16-between-steps", "Ai", "each finished row and block of the inverse is rounded to bf16 before it is used",
       paths::chunk, arithmetic(always, [](plan_variant& v, const head_input&) { v.inverse.between = bf16; })},
      {"inverse-row-in-bf16", "Ai", "the middle row of each diagonal block of the inverse is rounded to bf16 before it is used",
       paths::chunk, cutting([](const inverse_part& x) { return x.rows == 1 && x.cols > 1 && x.row - x.col == x.cols / 2; })},
      {"inverse-diagonal-in-bf16", "Ai", "the diagonal blocks of the inverse are rounded to bf16 before they are merged",
       paths::chunk, cutting([](const inverse_part& x) { return x.row == x.col && x.rows == x.cols; })},
      {"inverse-block-in-bf16", "Ai", "the first merged block of the inverse is rounded to bf16 before it is used", paths::chunk,
       cutting([](const inverse_part& x) { return x.rows > 1 && x.col == 0 && x.row == x.cols; })},
      {"inverse-neumann", "Ai",
       "the inverse is computed as a sum of powers of -A, with operands in the format of q; correlated keys may make it infinite "
       "or NaN",
       paths::chunk,
       arithmetic(always,
                  [](plan_variant& v, const head_input& in) {
                    v.inverse.method = {diagonal_kind::neumann, 0, merge_kind::block};
                    v.inverse.operand = coarser(v.inverse.operand, in.x);
                  })},
      {"inverse-neumann-fp16", "Ai",
       "the inverse is computed as a sum of powers of -A in fp16; correlated keys make it infinite or NaN", paths::chunk,
       arithmetic(always,
                  [](plan_variant& v, const head_input&) {
                    v.inverse.method = {diagonal_kind::neumann, 0, merge_kind::block};
                    invert_in(v, fp16);
                  })},
      {"inverse-doubling-fp16", "Ai",
       "the inverse is computed by recursive halving down to single rows, in fp16; correlated keys may make it infinite",
       paths::chunk,
       arithmetic(always,
                  [](plan_variant& v, const head_input&) {
                    v.inverse.method = {diagonal_kind::split, 1, merge_kind::block2};
                    invert_in(v, fp16);
                  })},
  };
}

}  // namespace

fault_table precision_faults() {
  fault_table all = roundings();
  for (auto* table : {accumulators, inverse_formats}) {
    fault_table part = table();
    std::move(part.begin(), part.end(), std::back_inserter(all));
  }
  return all;
}

}  // namespace deltaproof::emulation_detail
