// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
//
// The words that the keys of a plan take, by the kind of what is chosen.
#pragma once

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include "deltaproof/plan/plan.hpp"

namespace deltaproof::plan_detail {

using names = std::vector<std::string_view>;

inline constexpr std::string_view stored_word = "stored";
inline constexpr std::string_view all_columns = "all";
inline constexpr std::string_view one_part = "none";

template <class Kind, std::size_t N>
names names_in(const detail::kind_names<Kind, N>& table) {
  names all;
  for (const auto& [value, name] : table) all.push_back(name);
  return all;
}

// The words of each kind of choice.
constexpr const auto& words_of(gate_form) { return gate_form_names; }
constexpr const auto& words_of(write_decay) { return write_decay_names; }
constexpr const auto& words_of(read_decay) { return read_decay_names; }
constexpr const auto& words_of(step_factor) { return step_factor_names; }
constexpr const auto& words_of(read_scale) { return read_scale_names; }
constexpr const auto& words_of(change_form) { return change_form_names; }
constexpr const auto& words_of(cotangent_decay) { return cotangent_decay_names; }
constexpr const auto& words_of(sum_order) { return sum_order_names; }
constexpr const auto& words_of(tile_order) { return tile_order_names; }
constexpr const auto& words_of(gate_gradient) { return gate_gradient_names; }
constexpr const auto& words_of(diagonal_terms) { return diagonal_terms_names; }
constexpr const auto& words_of(step_gradient) { return step_gradient_names; }
constexpr const auto& words_of(norm_source) { return norm_source_names; }

/// Why this plan cannot be; empty where it can. The backward pass multiplies sums by the scale; a gate of channels is a factor of
/// each term: neither a product nor a row of v_new can carry it.
inline std::string contradiction(const plan& p) {
  std::string why;
  const auto on_query = [](const plan& stated) {
    return std::any_of(stated.o.scale.begin(), stated.o.scale.end(), [](read_scale at) { return at != read_scale::o; });
  };
  const bool scaled = on_query(p) || std::any_of(p.when.begin(), p.when.end(), [&](const auto& e) { return on_query(e.change); });
  if (scaled && p.backward.stated)
    return "[o] scale must be \"o\" in a plan with [backward], whose sums are multiplied by the scale; set it to \"o\", or leave "
           "[backward] out";
  const auto without_backward = [](const plan& stated) {
    const auto rows = std::find(stated.beta.into.begin(), stated.beta.into.end(), step_factor::rows);
    if (rows != stated.beta.into.end()) return "[beta] into = \"rows\"";
    if (stated.gate.clip) return "[gate] clip";
    for (const auto& [list, key] : {std::pair{&stated.A.product_store, "[A] product_store"},
                                    {&stated.A.read, "[A] read"},
                                    {&stated.inverse.read, "[inverse] read"},
                                    {&stated.u.read, "[u] read"},
                                    {&stated.w.read, "[w] read"},
                                    {&stated.o.product_store, "[o] product_store"},
                                    {&stated.o.scale_format, "[o] scale_format"}}) {
      if (!list->empty()) return key;
    }
    return "";
  };
  for (std::size_t i = 0; p.backward.stated && i <= p.when.size(); ++i) {
    const std::string key = without_backward(i == 0 ? p : p.when[i - 1].change);
    if (!key.empty()) return key + " contradicts [backward], whose formulas do not contain it; leave one of them out";
  }
  const auto within = [](const choices<gate_form>& forms) {
    return std::any_of(forms.begin(), forms.end(),
                       [](gate_form f) { return f == gate_form::middle_block || f == gate_form::first_block; });
  };
  const auto shifts = [](const plan& stated) { return !stated.gate.shift.empty(); };
  if (!within(p.gate.form) && !within(p.backward.blocks) &&
      (shifts(p) || std::any_of(p.when.begin(), p.when.end(), [&](const auto& e) { return shifts(e.change); })))
    return "[gate] shift has no effect, so remove it: no form is \"middle-block\" or \"first-block\"";
  const auto keeps_query = [](const plan& stated) { return !stated.o.scale_store.empty(); };
  if (!scaled &&
      (keeps_query(p) || std::any_of(p.when.begin(), p.when.end(), [&](const auto& e) { return keeps_query(e.change); })))
    return "[o] scale_store has no effect, so remove it: [o] scale is \"o\", so q is not multiplied by the scale";
  const bool others = std::any_of(p.ops.begin(), p.ops.end(), [](op_kind op) { return gates_of(op) == gate_axes::heads; });
  const auto refuse = [&](const choices<op_kind>& ops, const auto& list, const auto& impossible, const std::string& key,
                          const auto& names, const std::string& only) {
    const bool only_channels =
        !ops.empty() && std::all_of(ops.begin(), ops.end(), [](op_kind op) { return gates_of(op) == gate_axes::channels; });
    const bool channels_alone = !others || only_channels;
    if (!channels_alone || std::find(list.begin(), list.end(), impossible) == list.end()) return;
    why = key + " = \"" + std::string(detail::name_in(names, impossible)) +
          "\" contradicts ops = \"kda\": with one gate per channel only \"" + only + "\" is possible; state " + key + " = \"" +
          only + "\"";
  };
  const auto both = [&](const choices<op_kind>& ops, const plan& stated) {
    refuse(ops, stated.v_new.decay, write_decay::v_new, "[v_new] decay", write_decay_names, "k");
    refuse(ops, stated.o.decay, read_decay::product, "[o] decay", read_decay_names, "q");
    refuse(ops, stated.backward.dg_form, gate_gradient::products, "[backward] dg_form", gate_gradient_names, "rows");
    refuse(ops, stated.backward.read_decay, cotangent_decay::d_o, "[backward] read_decay", cotangent_decay_names, "q");
    refuse(ops, stated.v_new.form, change_form::residual, "[v_new] form", change_form_names, "transforms");
  };
  both({}, p);
  for (const plan_exception& e : p.when) both(e.ops, e.change);
  return why;
}

}  // namespace deltaproof::plan_detail
