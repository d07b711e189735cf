// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
#include <algorithm>
#include <limits>
#include <utility>

#include "deltaproof/kernel/stages.hpp"

namespace deltaproof {

namespace {

constexpr double no_bound = std::numeric_limits<double>::infinity();

/// The smallest format of the table that holds both.
format wider(format a, format b) {
  if (is_lossless(a, b)) return b;
  return is_lossless(b, a) ? a : fp32;
}

std::string text_of(const narrowing& n) {
  if (n.to == tf32) return n.toward_zero ? "tf32 rz" : "tf32 rna";
  return std::string(name_of(n.to));
}

double unit(const narrowing& n) { return unit_roundoff(n.to) * (n.toward_zero ? 2 : 1); }

/// Bounds of the inverse take what falls below the normal range to be as small as in fp32.
bool has_range(format f) { return f.emin <= fp32.emin; }

/// One alternative: what it is named after, and what it is.
template <class Rounding>
struct option {
  narrowing operand;
  std::string more;  ///< beside the operand
  Rounding value;
};

/// Each once, operands of more bits first, which are the tighter; named by what tells them apart.
template <class Rounding>
std::vector<Rounding> listed(const std::vector<option<Rounding>>& all, const std::string& after = "") {
  std::vector<option<Rounding>> distinct;
  for (const option<Rounding>& one : all) {
    const auto same = [&](const option<Rounding>& other) { return other.operand == one.operand && other.more == one.more; };
    if (std::any_of(distinct.begin(), distinct.end(), same)) continue;
    const auto before = [](const auto& a, const auto& b) {
      return std::pair{-a.operand.to.precision, a.operand.toward_zero} <
             std::pair{-b.operand.to.precision, b.operand.toward_zero};
    };
    distinct.insert(std::upper_bound(distinct.begin(), distinct.end(), one, before), one);
  }
  const bool operands_differ =
      std::any_of(distinct.begin(), distinct.end(), [&](const auto& one) { return !(one.operand == distinct[0].operand); });
  const bool rest_differs =
      std::any_of(distinct.begin(), distinct.end(), [&](const auto& one) { return one.more != distinct[0].more; });
  std::vector<Rounding> out;
  for (option<Rounding>& one : distinct) {
    std::string& name = one.value.name;
    if (name.empty() && (operands_differ || !after.empty())) name = text_of(one.operand) + after;
    if (rest_differs && !one.more.empty() && name != one.more) name += (name.empty() ? "" : ", ") + one.more;
    out.push_back(std::move(one.value));
  }
  return out;
}

option<gram_rounding> gram_of(const plan_variant& v, bool channels, const std::string& step_text) {
  gram_rounding g{"", gram_form::difference, v.A.operand, v.gate_block, unit_roundoff(v.A.accumulate), std::nullopt};
  if (v.A.store.precision < v.A.accumulate.precision) g.store = v.A.store;
  if (channels && v.form == gate_form::reference_block) g.form = gram_form::reference_blocks;
  if (channels && v.form == gate_form::middle_block) g.form = gram_form::middle_blocks;
  // A decay that each factor carries on its own is rounded with it; the checker knows that form only where gates have channels.
  const bool on_factors = v.form == gate_form::factored || (!channels && v.form != gate_form::difference);
  if (on_factors && (v.form == gate_form::factored || v.A.operand.to.precision < v.A.accumulate.precision))
    g.accumulate = no_bound;
  g.step = v.beta;
  return {v.A.operand, std::string(detail::name_in(gate_form_names, v.form)) + step_text, g};
}

option<inverse_rounding> inverse_of(const plan_variant& v, std::size_t chunk) {
  const auto& i = v.inverse;
  const std::size_t block = i.method.block == 0 ? chunk : i.method.block;
  inverse_rounding r{"", block, unit_roundoff(i.accumulate), i.merge_operand, unit_roundoff(i.merge_accumulate), i.association};
  if (i.operand.to.precision < i.accumulate.precision) r.substitute_operand = unit(i.operand);
  if (i.between) r.between = unit_roundoff(*i.between);
  const bool ranges = has_range(i.operand.to) && has_range(i.accumulate) && (!i.between || has_range(*i.between)) &&
                      has_range(i.merge_operand.to) && has_range(i.merge_accumulate);
  if (i.method.diagonal != diagonal_kind::forward || !ranges) r.substitute = no_bound;
  if (block >= chunk) r.name = name_of(inverse_method{i.method.diagonal, 0, i.method.merge});
  return {i.merge_operand, name_of(i.method), r};
}

option<scaled_rounding> scaled_of(const plan_variant::transform& t, format step, format x) {
  const format beta_product = wider(step, x);
  return {t.operand, std::string(name_of(beta_product)), {"", beta_product, t.operand, unit_roundoff(t.accumulate), step}};
}

/// Whether the two products of the state share a format, which is what one card does, decides the list it goes to.
void add_states(const plan_variant& v, bool channels, std::vector<option<state_rounding>>& uniform,
                std::vector<option<state_rounding>>& mixed) {
  const update_kind update = channels                                  ? update_kind::key
                             : v.v_new.update == update_source::stored ? update_kind::stored_value
                                                                       : update_kind::value;
  const double accumulate = unit_roundoff(v.state.accumulate);
  const auto state = [&](const narrowing& operand, const std::optional<narrowing>& of_update) {
    std::string more = v.v_new.update == update_source::stored ? "stored v_new" : "";
    if (of_update) more += (more.empty() ? "" : ", ") + std::string("update ") + text_of(*of_update);
    return option<state_rounding>{operand, more, {"", update, operand, v.state.between_tokens, accumulate, of_update}};
  };
  if (v.state.store == v.v_new.update_operand) {
    uniform.push_back(state(v.state.store, std::nullopt));
  } else {
    mixed.push_back(state(v.state.store, v.v_new.update_operand));
  }
}

}  // namespace

stage_roundings roundings_of(const plan& plan, const problem& p, path_kind path, std::size_t chunk) {
  if (path != path_kind::chunk) {
    throw domain_error("roundings_of: the path is " + std::string(name_of(path)) + "; stages are those of a chunk kernel");
  }
  const std::vector<plan_variant> all = variants(plan, p, path, chunk);
  const bool channels = p.gate_per_channel();
  const format x = p.q.element_format();
  stage_roundings r;
  r.exp2_ulps = plan.hardware.exp2_ulps + 0.5;
  r.rsqrt_ulps = plan.hardware.rsqrt_ulps + 0.5;
  r.output_span = p.num_householder;
  if (p.qk_l2norm) r.l2norm_store = all.front().l2norm_store;
  r.elementwise = unit_roundoff(all.front().cumsum);
  std::vector<option<gram_rounding>> gram;
  std::vector<option<inverse_rounding>> inverse;
  std::vector<option<scaled_rounding>> u, w;
  std::vector<option<state_rounding>> uniform, mixed;
  std::vector<option<output_rounding>> output;
  const bool steps_differ = std::any_of(all.begin(), all.end(), [&](const plan_variant& v) { return v.beta != all.front().beta; });
  for (const plan_variant& v : all) {
    r.elementwise = std::max(r.elementwise, unit_roundoff(v.cumsum));
    gram.push_back(gram_of(v, channels, steps_differ ? ", step " + std::string(name_of(v.beta)) : ""));
    inverse.push_back(inverse_of(v, chunk));
    u.push_back(scaled_of(v.u, v.beta, x));
    w.push_back(scaled_of(v.w, v.beta, x));
    add_states(v, channels, uniform, mixed);
    output.push_back({v.o.operand, "", {"", channels, v.o.operand, unit_roundoff(v.o.accumulate)}});
  }
  // A list allows each of its formats for each product; what one card does to all of them is not among single changes.
  if (!uniform.empty()) {
    const option<state_rounding> first = uniform.front();
    for (const option<state_rounding>& one : mixed) {
      for (const narrowing& operand : {one.operand, *one.value.update_operand}) {
        option<state_rounding> alike = first;
        alike.operand = alike.value.operand = operand;
        uniform.push_back(std::move(alike));
      }
    }
  }
  r.gram = listed(gram);
  for (const inverse_rounding& one : listed(inverse, " merges")) {
    r.inverse.push_back(one);
    // Without narrowed operands the order is within the bound.
    for (const merge_order order : plan.inverse.association) {
      if (order == one.order || !(one.merge_operand.to.precision < fp32.precision)) continue;
      r.inverse.push_back(one);
      r.inverse.back().order = order;
      r.inverse.back().name += ", " + std::string(detail::name_in(merge_order_names, order));
    }
  }
  r.u = listed(u);
  r.w = listed(w);
  r.state = listed(uniform);
  for (state_rounding& one : listed(mixed)) r.state.push_back(std::move(one));
  r.output = listed(output);
  return r;
}

}  // namespace deltaproof
