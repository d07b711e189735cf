// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
//
// The one table of a plan's keys that hold lists: `for_each_key(plan, visit)` calls `visit(key, list)` for each, in the order
// of a plan's text. Reading, exceptions and variants go through it. What a key means: plan.hpp and docs/plan-keys.md.
#pragma once

#include <string>
#include <string_view>

#include "deltaproof/plan/plan.hpp"

namespace deltaproof::plan_detail {

/// Where a key must be stated; elsewhere it has no effect. Those of [backward] only if that section is there.
enum class needed {
  always,
  chunk_only,
  gate,
  gate_chunk,
  merges,
  tf32,
  backward,
  backward_chunk,
  backward_tokens,
  backward_gate,
  backward_gate_chunk
};
inline constexpr std::string_view backward_section = "backward";
inline constexpr std::string_view split_section = "split";

struct key {
  std::string_view section;
  std::string_view name;
  needed where = needed::always;
  bool may_be_none = false;
  bool is_operand = false;     ///< of a product, so that it may be tf32
  bool has_default = false;    ///< may be left out where it can be stated: plan.hpp says what holds then
  bool may_be_stored = false;  ///< "stored" stands for the stored copy of what is multiplied
  bool may_be_cache = false;   ///< or a table that says how a state is stored

  [[nodiscard]] std::string text() const { return "[" + std::string(section) + "] " + std::string(name); }
};

inline constexpr std::string_view update_operand = "update_operand";
inline constexpr std::string_view between_calls = "between_calls";

template <class Plan, class Visit>
void for_each_backward_key(Plan& p, Visit&& visit) {
  using enum needed;
  constexpr bool none = true;
  constexpr bool operand = true;
  constexpr bool left_out = true;
  constexpr bool stored = true;
  visit(key{backward_section, "accumulate", backward}, p.backward.accumulate);
  visit(key{backward_section, "operand", backward_chunk, false, operand}, p.backward.operand);
  visit(key{backward_section, "read_operand", backward_chunk, false, operand}, p.backward.read_operand);
  visit(key{backward_section, "read_decay", backward_gate_chunk, false, false, left_out}, p.backward.read_decay);
  visit(key{backward_section, "blocks", backward_gate_chunk, false, false, left_out}, p.backward.blocks);
  visit(key{backward_section, "intra_operand", backward_chunk, false, operand}, p.backward.intra_operand);
  visit(key{backward_section, "h", backward_chunk, none, operand, false, stored}, p.backward.h);
  visit(key{backward_section, "v_new", backward_chunk, none, operand, false, stored}, p.backward.v_new);
  visit(key{backward_section, "dh", backward_chunk, none}, p.backward.dh);
  visit(key{backward_section, "dv_local", backward_chunk, none}, p.backward.dv_local);
  visit(key{backward_section, "dv2", backward_chunk, none}, p.backward.dv2);
  visit(key{backward_section, "dw", backward_chunk, none}, p.backward.dw);
  visit(key{backward_section, "ds", backward_chunk, none}, p.backward.ds);
  visit(key{backward_section, "dA_between", backward_chunk, none}, p.backward.dA_between);
  visit(key{backward_section, "dA", backward_chunk, none}, p.backward.dA);
  visit(key{backward_section, "gated_key", backward_gate_chunk, none, false, left_out}, p.backward.gated_key);
  visit(key{backward_section, "state_sum", backward_gate_chunk}, p.backward.state_sum);
  visit(key{backward_section, "state_sum_order", backward_gate_chunk}, p.backward.state_sum_order);
  visit(key{backward_section, "dg_form", backward_gate_chunk}, p.backward.dg_form);
  visit(key{backward_section, "diagonal", backward_gate_chunk}, p.backward.diagonal);
  visit(key{backward_section, "dg", backward_gate}, p.backward.dg);
  visit(key{backward_section, "residual", backward_tokens, none}, p.backward.residual);
  visit(key{backward_section, "dv", backward_tokens, none}, p.backward.dv);
  visit(key{backward_section, "value_tile", backward_tokens}, p.backward.value_tile);
  visit(key{backward_section, "dq", backward, none}, p.backward.dq);
  visit(key{backward_section, "dk", backward, none}, p.backward.dk);
  visit(key{backward_section, "dbeta", backward, none}, p.backward.dbeta);
  visit(key{backward_section, "dbeta_form", backward}, p.backward.dbeta_form);
  visit(key{backward_section, "group_sum", backward}, p.backward.group_sum);
  visit(key{backward_section, "group_store", backward, none}, p.backward.group_store);
  visit(key{backward_section, "l2norm_from", backward}, p.backward.l2norm_from);
}

template <class Plan, class Visit>
void for_each_key(Plan& p, Visit&& visit) {
  using enum needed;
  constexpr bool none = true;
  constexpr bool operand = true;
  constexpr bool left_out = true;
  constexpr bool stored = true;
  constexpr bool cache = true;
  visit(key{"l2norm", "compute"}, p.l2norm.compute);
  visit(key{"l2norm", "store", always, none}, p.l2norm.store);
  visit(key{"l2norm", "epsilon", always, false, false, left_out}, p.l2norm.epsilon);
  visit(key{"gate", "cumsum", gate}, p.gate.cumsum);
  visit(key{"gate", "form", gate_chunk}, p.gate.form);
  visit(key{"gate", "shift", gate_chunk, false, false, left_out}, p.gate.shift);
  visit(key{"beta", "format"}, p.beta.format);
  visit(key{"beta", "into", always, false, false, left_out}, p.beta.into);
  visit(key{"A", "operand", chunk_only, false, operand}, p.A.operand);
  visit(key{"A", "accumulate", chunk_only}, p.A.accumulate);
  visit(key{"A", "order"}, p.A.order);
  visit(key{"A", "product_store", chunk_only, none, false, left_out}, p.A.product_store);
  visit(key{"A", "store", chunk_only, none}, p.A.store);
  visit(key{"A", "read", chunk_only, none, false, left_out, stored}, p.A.read);
  visit(key{"inverse", "method", chunk_only}, p.inverse.method);
  visit(key{"inverse", "operand", chunk_only, false, operand}, p.inverse.operand);
  visit(key{"inverse", "accumulate", chunk_only}, p.inverse.accumulate);
  visit(key{"inverse", "merge_operand", merges, false, operand}, p.inverse.merge_operand);
  visit(key{"inverse", "merge_accumulate", merges}, p.inverse.merge_accumulate);
  visit(key{"inverse", "between", chunk_only, none}, p.inverse.between);
  visit(key{"inverse", "store", chunk_only, none}, p.inverse.store);
  visit(key{"inverse", "read", chunk_only, none, false, left_out, stored}, p.inverse.read);
  visit(key{"u", "operand_store", chunk_only, false, operand}, p.u.operand_store);
  visit(key{"u", "accumulate", chunk_only}, p.u.accumulate);
  visit(key{"u", "store", chunk_only, none}, p.u.store);
  visit(key{"u", "read", chunk_only, none, false, left_out, stored}, p.u.read);
  visit(key{"w", "operand_store", chunk_only, false, operand}, p.w.operand_store);
  visit(key{"w", "accumulate", chunk_only}, p.w.accumulate);
  visit(key{"w", "store", chunk_only, none}, p.w.store);
  visit(key{"w", "read", chunk_only, none, false, left_out, stored}, p.w.read);
  visit(key{"state", "accumulate"}, p.state.accumulate);
  visit(key{"state", "store", always, none, operand}, p.state.store);
  visit(key{"state", "between_tokens", always, none, false, false, false, cache}, p.state.between_tokens);
  visit(key{"state", between_calls, always, none, false, left_out, false, cache}, p.state.between_calls);
  visit(key{"v_new", "store", always, none}, p.v_new.store);
  visit(key{"v_new", "state_operand", chunk_only, none, operand, left_out, stored}, p.v_new.state_operand);
  visit(key{"v_new", update_operand, always, none, operand}, p.v_new.update_operand);
  visit(key{"v_new", update_operand}, p.v_new.update);
  visit(key{"v_new", "key_operand", chunk_only, none, operand, left_out}, p.v_new.key_operand);
  visit(key{"v_new", "decay", gate_chunk, false, false, left_out}, p.v_new.decay);
  visit(key{"v_new", "form", chunk_only, false, false, left_out}, p.v_new.form);
  visit(key{"o", "operand", always, false, operand}, p.o.operand);
  visit(key{"o", "accumulate"}, p.o.accumulate);
  visit(key{"o", "store"}, p.o.store);
  visit(key{"o", "decay", gate_chunk, false, false, left_out}, p.o.decay);
  visit(key{"o", "state_operand", chunk_only, none, operand, left_out, stored}, p.o.state_operand);
  visit(key{"o", "value_operand", chunk_only, none, operand, left_out}, p.o.value_operand);
  visit(key{"o", "product_store", chunk_only, none, false, left_out}, p.o.product_store);
  visit(key{"o", "scale", always, false, false, left_out}, p.o.scale);
  visit(key{"o", "scale_format", always, none, false, left_out}, p.o.scale_format);
  visit(key{"o", "scale_store", always, none, false, left_out}, p.o.scale_store);
  visit(key{"o", "read_store", chunk_only, none, false, left_out}, p.o.read_store);
  visit(key{split_section, "chunks", gate_chunk, false, false, left_out}, p.split.chunks);
  for_each_backward_key(p, visit);
  visit(key{"hardware", "tf32", tf32}, p.hardware.tf32_toward_zero);
}

/// The plan's own text and name of each preset, sorted by name.
struct preset {
  std::string_view name;
  std::string_view text;
};
[[nodiscard]] std::span<const preset> preset_table();

/// `p` with every exception that holds for the problem (on the chunk path, for chunks of `chunk` rows) applied.
[[nodiscard]] plan with_exceptions(const plan& stated, const problem& p, path_kind path, std::size_t chunk);

}  // namespace deltaproof::plan_detail
