// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
//
// From a plan with lists to concrete arithmetics: exceptions are applied, words become formats, and lists become one
// choice each.
#include <algorithm>
#include <numeric>

#include "deltaproof/files/stage_table.hpp"
#include "deltaproof/plan/plan.hpp"
#include "plan/plan_keys.hpp"
#include "support/text.hpp"

namespace deltaproof {

namespace {

using plan_detail::for_each_key;
using plan_detail::key;
using kind = format_choice::kind;

constexpr format_choice tf32_choice{kind::fixed, tf32, {}};

bool computes_step(const problem& p) { return p.rule != rule_kind::euler || p.beta_activation != activation_kind::none; }

/// Words as the formats they stand for on this problem; each format once.
void spell_out(plan& stated, const problem& p) {
  const format x = p.q.element_format();
  for_each_key(stated, [&](const key& k, auto& list) {
    if constexpr (std::is_same_v<std::decay_t<decltype(list)>, choices<format_choice>>) {
      format own = x;
      if (k.section == "beta") own = p.beta.element_format();
      if (k.section == "gate" && p.g) own = p.raw ? fp32 : p.g->element_format();
      if (k.section == plan_detail::backward_section && k.name == "dbeta") own = p.beta.element_format();
      choices<format_choice> spelled;
      for (format_choice one : list) {
        if (one.which == kind::x) one = {kind::fixed, x, {}};
        // A step that the kernel computes has no format of its own: rounded to that of beta or kept as computed, both are honest.
        const bool computed = one.which == kind::given && k.section == "beta" && computes_step(p);
        if (one.which == kind::given) one = {kind::fixed, own, {}};
        if (std::find(spelled.begin(), spelled.end(), one) == spelled.end()) spelled.push_back(one);
        if (computed && own.precision < fp32.precision) spelled.push_back({kind::fixed, fp32, {}});
      }
      list = std::move(spelled);
    }
  });
}

/// Whether a choice of this key of [backward] can change a bit of a gradient.
bool matters_backward(const key& k, const plan& first, const problem& p, path_kind path) {
  using enum plan_detail::needed;
  const bool chunked = path == path_kind::chunk;
  if (!first.backward.stated) return false;
  if (k.name == "l2norm_from" && !p.qk_l2norm) return false;
  if ((k.name == "dg_form" || k.name == "read_decay") && p.gate_per_channel()) return false;
  if (k.name == "blocks" && !p.gate_per_channel()) return false;
  switch (k.where) {
    case backward_chunk:
      return chunked;
    case backward_tokens:
      return !chunked;
    case backward_gate:
      return p.g.has_value();
    case backward_gate_chunk:
      return chunked && p.g.has_value();
    default:
      return true;
  }
}

/// Whether a choice of this key can change a bit on this problem and path.
bool matters(const key& k, const plan& first, const problem& p, path_kind path) {
  using enum plan_detail::needed;
  const bool merged = !first.inverse.method.empty() && first.inverse.method[0].block > 0;
  if (k.section == "l2norm" && !p.qk_l2norm) return false;
  if (k.section == "gate" && !p.g) return false;
  if (k.name == "shift" && !p.gate_per_channel()) return false;
  if (k.name == "decay" && (!p.g || p.gate_per_channel())) return false;
  if (k.section == plan_detail::split_section && (!p.g || p.gate_per_channel() || !first.split.truncation)) return false;
  if (k.section == plan_detail::backward_section) return matters_backward(k, first, p, path);
  switch (k.where) {
    case chunk_only:
      return path == path_kind::chunk;
    case gate_chunk:
      return path == path_kind::chunk;
    case merges:
      return path == path_kind::chunk && merged;
    default:
      return true;
  }
}

std::string word_of(const key& k, const format_choice& one, path_kind path) {
  const bool by_chunks = path == path_kind::chunk && k.name != plan_detail::between_calls;
  const std::string said = one.which == kind::none     ? "none"
                           : one.which == kind::stored ? "stored"
                           : one.which == kind::cache  ? text_of(one.cache, by_chunks ? "chunks" : "tokens")
                                                       : std::string(name_of(one.value));
  return k.text() + " " + said;
}
std::string word_of(const key& k, const std::optional<double>& epsilon) {
  return k.text() + " " + (epsilon ? detail::general(*epsilon, 3) : "given");
}
std::string word_of(const key& k, double number) { return k.text() + " " + detail::general(number, 3); }
std::string word_of(const key&, write_decay decay) {
  return "update with the decay on " + std::string(detail::name_in(write_decay_names, decay));
}
std::string word_of(const key&, read_decay decay) {
  return decay == read_decay::q ? "decay on q, before q is rounded" : "decay on the product q h";
}
std::string word_of(const key&, gate_form form) { return "gate " + std::string(detail::name_in(gate_form_names, form)); }
std::string word_of(const key&, sum_order order) { return "order " + std::string(detail::name_in(sum_order_names, order)); }
template <class Kind, std::size_t N>
std::string worded(const key& k, Kind kind, const detail::kind_names<Kind, N>& names) {
  return k.text() + " " + std::string(detail::name_in(names, kind));
}
std::string word_of(const key& k, change_form form) { return worded(k, form, change_form_names); }
std::string word_of(const key& k, step_factor factor) { return worded(k, factor, step_factor_names); }
std::string word_of(const key& k, read_scale factor) { return worded(k, factor, read_scale_names); }
std::string word_of(const key& k, cotangent_decay factor) { return worded(k, factor, cotangent_decay_names); }
std::string word_of(const key& k, tile_order order) { return worded(k, order, tile_order_names); }
std::string word_of(const key& k, gate_gradient form) { return worded(k, form, gate_gradient_names); }
std::string word_of(const key& k, diagonal_terms terms) { return worded(k, terms, diagonal_terms_names); }
std::string word_of(const key& k, step_gradient form) { return worded(k, form, step_gradient_names); }
std::string word_of(const key& k, norm_source source) { return worded(k, source, norm_source_names); }
std::string word_of(const key& k, std::size_t rows) {
  if (k.section == plan_detail::split_section)
    return rows == 0 ? "sequence in one part" : "sequence in parts of " + std::to_string(rows) + " chunks";
  return k.text() + " " + (rows == 0 ? "all" : std::to_string(rows));
}
std::string word_of(const key&, const inverse_method& method) { return "inverse " + name_of(method); }
std::string word_of(const key&, update_source source) {
  return source == update_source::stored ? "update by the stored v_new" : "update by v_new as computed";
}
std::string word_of(const key&, bool toward_zero) { return toward_zero ? "tf32 rz" : "tf32 rna"; }

bool uses_tf32(const plan& first, const problem& p, path_kind path, bool backward) {
  bool found = false;
  for_each_key(first, [&](const key& k, const auto& list) {
    if constexpr (std::is_same_v<std::decay_t<decltype(list)>, choices<format_choice>>) {
      const bool counts = backward || k.section != plan_detail::backward_section;
      found = found || (counts && matters(k, first, p, path) && !list.empty() && list[0] == tf32_choice);
    }
  });
  return found;
}

/// A plan each of whose lists has one entry, as a kernel's arithmetic.
class resolver {
 public:
  resolver(const plan& first, double epsilon) : p_(first), epsilon_(epsilon) {}

  plan_variant run(path_kind path, std::size_t chunk) const {
    plan_variant v;
    v.path = path;
    v.chunk = path == path_kind::chunk ? chunk : 0;
    v.order = p_.A.order.front();
    v.l2norm_compute = p_.l2norm.compute.front().value;
    v.l2norm_store = optional(p_.l2norm.store);
    v.l2norm_epsilon = p_.l2norm.epsilon.empty() ? epsilon_ : p_.l2norm.epsilon.front().value_or(epsilon_);
    v.beta = p_.beta.format.front().value;
    v.state.accumulate = p_.state.accumulate.front().value;
    v.state.store = narrowed(p_.state.store, v.state.accumulate);
    const format_choice& kept_in = p_.state.between_tokens.front();
    if (kept_in.which == kind::cache) {
      v.state.cache = kept_in.cache;
    } else {
      v.state.between_tokens = optional(p_.state.between_tokens);
    }
    v.state.between_calls = between_calls();
    v.v_new.store = kept(p_.v_new.store, v.state.accumulate);
    v.v_new.update = p_.v_new.update.front();
    v.v_new.update_operand = v.v_new.update == update_source::stored ? narrowing{v.v_new.store, false}
                                                                     : narrowed(p_.v_new.update_operand, v.state.accumulate);
    v.o.operand = narrowed(p_.o.operand, fp32);
    v.o.accumulate = p_.o.accumulate.front().value;
    v.o.store = p_.o.store.front().value;
    if (!p_.o.scale.empty()) v.o.scale = p_.o.scale.front();
    v.o.scale_format = if_stated(p_.o.scale_format);
    if (!p_.o.scale_store.empty()) v.o.scale_store = kept(p_.o.scale_store, fp32);
    if (!p_.beta.into.empty()) v.step = p_.beta.into.front();
    v.exp2_ulps = p_.hardware.exp2_ulps;
    v.rsqrt_ulps = p_.hardware.rsqrt_ulps;
    v.flush_to_zero = p_.hardware.flush_to_zero;
    v.accumulator_bits = p_.hardware.accumulator_bits;
    v.core_block = p_.hardware.block;
    // Where no op of the plan has a gate there is no decay to compute, and 1 is exact in any format.
    v.cumsum = p_.gate.cumsum.empty() ? v.state.accumulate : p_.gate.cumsum.front().value;
    if (v.cumsum.precision < fp32.precision) v.decay = v.cumsum;
    v.gate_block = p_.gate.block;
    if (!p_.gate.shift.empty()) v.gate_shift = p_.gate.shift.front();
    v.contract = p_.gate.contract;
    v.clip = p_.gate.clip;
    if (!p_.gate.form.empty()) v.form = p_.gate.form.front();
    if (path == path_kind::chunk) chunk_stages(v);
    if (p_.backward.stated) v.backward = backward_pass(path);
    return v;
  }

 private:
  std::optional<state_cache> between_calls() const {
    if (p_.state.between_calls.empty() || p_.state.between_calls.front().which == kind::none) return std::nullopt;
    const format_choice& one = p_.state.between_calls.front();
    if (one.which == kind::cache) return one.cache;
    if (one.value.precision > fp32.precision) return std::nullopt;  // holds every state
    return state_cache{block_format_named(name_of(one.value)), block_rounding::nearest, element_formats[0], 0, 0};
  }

  void chunk_stages(plan_variant& v) const {
    v.A.operand = narrowed(p_.A.operand, fp32);
    v.A.accumulate = p_.A.accumulate.front().value;
    v.A.product_store = if_stated(p_.A.product_store);
    v.A.store = kept(p_.A.store, v.A.accumulate);
    v.A.read = read_of(p_.A.read, v.A.accumulate);
    v.inverse.method = p_.inverse.method.front();
    v.inverse.operand = narrowed(p_.inverse.operand, fp32);
    v.inverse.accumulate = p_.inverse.accumulate.front().value;
    // Nothing is merged where the plan states no merges.
    const bool merged = !p_.inverse.merge_operand.empty();
    v.inverse.merge_operand = merged ? narrowed(p_.inverse.merge_operand, fp32) : v.inverse.operand;
    v.inverse.merge_accumulate = merged ? p_.inverse.merge_accumulate.front().value : v.inverse.accumulate;
    v.inverse.association = p_.inverse.association.empty() ? merge_order::any : p_.inverse.association.front();
    v.inverse.between = optional(p_.inverse.between);
    v.inverse.store = kept(p_.inverse.store, merged ? v.inverse.merge_accumulate : v.inverse.accumulate);
    v.inverse.read = read_of(p_.inverse.read, merged ? v.inverse.merge_accumulate : v.inverse.accumulate);
    v.u = transformed(p_.u);
    v.w = transformed(p_.w);
    v.v_new.state_operand = unless_stored(p_.v_new.state_operand, v.state.accumulate);
    v.v_new.key_operand = unless_stored(p_.v_new.key_operand, v.state.accumulate);
    if (!p_.v_new.decay.empty()) v.v_new.decay = p_.v_new.decay.front();
    if (!p_.v_new.form.empty()) v.v_new.form = p_.v_new.form.front();
    if (!p_.split.chunks.empty() && p_.split.truncation) v.split = {p_.split.chunks.front(), *p_.split.truncation};
    v.o.state_operand = unless_stored(p_.o.state_operand, v.state.accumulate);
    v.o.value_operand = unless_stored(p_.o.value_operand, v.state.accumulate);
    if (!p_.o.decay.empty()) v.o.decay = p_.o.decay.front();
    v.o.read_store = if_stated(p_.o.read_store);
    v.o.product_store = if_stated(p_.o.product_store);
  }

  backward_variant backward_pass(path_kind path) const {
    const auto& p = p_.backward;
    backward_variant b;
    b.accumulate = p.accumulate.front().value;
    b.dq = kept(p.dq, b.accumulate);
    b.dk = kept(p.dk, b.accumulate);
    b.dbeta = kept(p.dbeta, b.accumulate);
    b.dbeta_form = p.dbeta_form.front();
    b.group_sum = p.group_sum.front().value;
    b.group_store = kept(p.group_store, b.group_sum);
    b.l2norm_from = p.l2norm_from.front();
    b.dg = p.dg.empty() ? b.accumulate : p.dg.front().value;
    if (path == path_kind::chunk) {
      backward_chunks(b);
    } else {
      b.residual = kept(p.residual, b.accumulate);
      b.dv = kept(p.dv, b.accumulate);
      b.value_tile = p.value_tile.front();
    }
    return b;
  }

  void backward_chunks(backward_variant& b) const {
    const auto& p = p_.backward;
    b.operand = narrowed(p.operand, b.accumulate);
    b.read_operand = narrowed(p.read_operand, b.accumulate);
    b.intra_operand = narrowed(p.intra_operand, b.accumulate);
    b.h = unless_stored(p.h, b.accumulate);
    b.v_new = unless_stored(p.v_new, b.accumulate);
    b.dh = kept(p.dh, b.accumulate);
    b.dv_local = kept(p.dv_local, b.accumulate);
    b.dv2 = kept(p.dv2, b.accumulate);
    b.dw = kept(p.dw, b.accumulate);
    b.ds = kept(p.ds, b.accumulate);
    b.dA_between = optional(p.dA_between);
    b.gated_key = if_stated(p.gated_key);
    b.dA = kept(p.dA, b.accumulate);
    b.state_sum = p.state_sum.empty() ? b.accumulate : p.state_sum.front().value;
    if (!p.state_sum_order.empty()) b.state_sum_order = p.state_sum_order.front();
    if (!p.dg_form.empty()) b.dg_form = p.dg_form.front();
    if (!p.read_decay.empty()) b.read_decay = p.read_decay.front();
    if (!p.blocks.empty()) b.blocks = p.blocks.front();
    if (!p.diagonal.empty()) b.diagonal = p.diagonal.front();
  }

  /// What has its own operand; nothing where the key is left out or says "stored".
  std::optional<narrowing> unless_stored(const choices<format_choice>& list, format computed) const {
    if (list.empty() || list.front().which == kind::stored) return std::nullopt;
    return narrowed(list, computed);
  }

  plan_variant::transform transformed(const plan::transform& t) const {
    const format accumulate = t.accumulate.front().value;
    return {narrowed(t.operand_store, fp32), accumulate, kept(t.store, accumulate), read_of(t.read, accumulate)};
  }

  /// In what a later stage reads a tensor; nothing: as it is stored.
  static std::optional<format> read_of(const choices<format_choice>& list, format computed) {
    if (list.empty() || list.front().which == kind::stored) return std::nullopt;
    return kept(list, computed);
  }
  static std::optional<format> if_stated(const choices<format_choice>& list) {
    return list.empty() ? std::nullopt : optional(list);
  }

  static std::optional<format> optional(const choices<format_choice>& list) {
    return list.front().which == kind::none ? std::nullopt : std::optional<format>(list.front().value);
  }
  static format kept(const choices<format_choice>& list, format computed) { return optional(list).value_or(computed); }
  narrowing narrowed(const choices<format_choice>& list, format computed) const {
    const format to = kept(list, computed);
    return {to, to == tf32 && !p_.hardware.tf32_toward_zero.empty() && p_.hardware.tf32_toward_zero.front()};
  }

  const plan& p_;
  double epsilon_;  // that of the problem
};

}  // namespace

plan plan_detail::with_exceptions(const plan& stated, const problem& p, path_kind path, std::size_t chunk) {
  plan out = stated;
  const auto allows = [](const auto& list, const auto& value) {
    return list.empty() || std::find(list.begin(), list.end(), value) != list.end();
  };
  for (const plan_exception& e : stated.when) {
    if (!allows(e.ops, p.op) || !allows(e.dtypes, p.q.element_format())) continue;
    if (!e.chunk.empty() && (path != path_kind::chunk || !allows(e.chunk, chunk))) continue;
    // Both visits come in the same order.
    std::vector<const void*> lists;
    for_each_key(e.change, [&](const key&, const auto& list) { lists.push_back(&list); });
    std::size_t at = 0;
    for_each_key(out, [&](const key&, auto& list) {
      const auto& changed = *static_cast<const std::decay_t<decltype(list)>*>(lists[at++]);
      if (!changed.empty()) list = changed;
    });
    if (!e.change.v_new.update.empty()) out.v_new.update_operand = e.change.v_new.update_operand;
  }
  return out;
}

namespace {

/// A call that ends inside a chunk would make other chunks of the tokens after it.
void require_whole_chunks(const plan& stated, std::size_t steps_per_token, std::size_t chunk) {
  for (const format_choice& one : stated.state.between_calls) {
    if (one.which != kind::cache || one.cache.every * steps_per_token % chunk == 0) continue;
    throw format_error("plan " + stated.name + ": [state] between_calls stores the state every " +
                       std::to_string(one.cache.every) + " tokens, which is not a whole number of chunks of " +
                       std::to_string(chunk) + " rows; set the key every to a multiple of " +
                       std::to_string(chunk / std::gcd(chunk, steps_per_token)) + " tokens, or use another chunk length");
  }
}

/// With lists of [backward], or those of the forward pass alone.
std::vector<plan_variant> all_variants(const plan& stated, const problem& p, path_kind path, std::size_t chunk, bool backward) {
  require_fit(stated, p, path, chunk);
  plan all = plan_detail::with_exceptions(stated, p, path, chunk);
  if (path == path_kind::chunk) require_whole_chunks(all, p.num_householder, chunk);
  spell_out(all, p);
  // A block of the whole chunk by any name.
  choices<inverse_method> methods;
  for (inverse_method method : all.inverse.method) {
    if (method.diagonal != diagonal_kind::split && method.block >= chunk) method = {method.diagonal, 0, merge_kind::block};
    if (std::find(methods.begin(), methods.end(), method) == methods.end()) methods.push_back(method);
  }
  all.inverse.method = std::move(methods);
  plan first = all;
  for_each_key(first, [](const key&, auto& list) {
    if (list.size() > 1) list.erase(list.begin() + 1, list.end());
  });

  std::vector<plan_variant> out;
  const auto add = [&](const plan& one, const std::string& chosen) {
    out.push_back(resolver(one, p.l2norm_epsilon).run(path, chunk));
    out.back().name = stated.name + (chosen.empty() ? "" : " (" + chosen + ")");
  };
  const bool tf32_first = uses_tf32(first, p, path, backward);
  add(first, "");
  std::vector<void*> chosen;
  for_each_key(first, [&](const key&, auto& list) { chosen.push_back(&list); });
  std::size_t at = 0;
  for_each_key(all, [&](const key& k, const auto& list) {
    using list_type = std::decay_t<decltype(list)>;
    auto& choice = *static_cast<list_type*>(chosen[at++]);
    if (list.size() < 2 || !matters(k, first, p, path)) return;
    if (!backward && k.section == plan_detail::backward_section) return;
    if (std::is_same_v<list_type, choices<bool>> && !tf32_first) return;
    const list_type before = choice;
    for (std::size_t i = 1; i < list.size(); ++i) {
      choice = {list[i]};
      std::string word;
      if constexpr (std::is_same_v<list_type, choices<format_choice>>) {
        word = word_of(k, list[i], path);
      } else {
        word = word_of(k, static_cast<const typename list_type::value_type&>(list[i]));
      }
      add(first, word);
      out.back().is_reordered = k.name == "order" || k.name == "association";
      // A product that is in tf32 in this alternative only is in each of its directions.
      if constexpr (std::is_same_v<list_type, choices<format_choice>>) {
        if (tf32_first || !(list[i] == tf32_choice)) continue;
        const choices<bool> direction = first.hardware.tf32_toward_zero;
        for (std::size_t d = 1; d < all.hardware.tf32_toward_zero.size(); ++d) {
          first.hardware.tf32_toward_zero = {all.hardware.tf32_toward_zero[d]};
          add(first, word + ", " + word_of(k, bool{all.hardware.tf32_toward_zero[d]}));
        }
        first.hardware.tf32_toward_zero = direction;
      }
    }
    choice = before;
  });
  return out;
}

}  // namespace

std::vector<plan_variant> variants(const plan& stated, const problem& p, path_kind path, std::size_t chunk) {
  return all_variants(stated, p, path, chunk, false);
}

std::vector<plan_variant> gradient_variants(const plan& stated, const problem& p, path_kind path, std::size_t chunk) {
  if (!stated.backward.stated) {
    require_fit(stated, p, path, chunk);
    return {};
  }
  return all_variants(stated, p, path, chunk, true);
}

bool reaches_as_far_as_fp32(const plan& stated, const problem& p) {
  const auto reaches = [](const format& f) { return f.emax >= fp32.emax; };
  bool all = reaches(p.q.element_format()) && reaches(p.beta.element_format()) && (!p.g || reaches(p.g->element_format()));
  const auto look = [&](const plan& one) {
    for_each_key(one, [&](const key&, const auto& list) {
      if constexpr (std::is_same_v<std::decay_t<decltype(list)>, choices<format_choice>>) {
        for (const format_choice& choice : list)
          all = all && choice.which != kind::cache && (choice.which != kind::fixed || reaches(choice.value));
      }
    });
  };
  look(stated);
  for (const plan_exception& exception : stated.when) look(exception.change);
  return all;
}

namespace {

// Files have no sums of gates that are narrower than fp32.
constexpr auto formats_of_stages = std::to_array<std::pair<std::string_view, format (*)(const plan_variant&)>>({
    {"g_cumsum_log2", [](const plan_variant& v) { return v.cumsum.precision < fp32.precision ? fp32 : v.cumsum; }},
    {"A", [](const plan_variant& v) { return v.A.store; }},
    {"Ai", [](const plan_variant& v) { return v.inverse.store; }},
    {"w", [](const plan_variant& v) { return v.w.store; }},
    {"u", [](const plan_variant& v) { return v.u.store; }},
    {"h", [](const plan_variant& v) { return v.state.store.to; }},
    {"v_new", [](const plan_variant& v) { return v.v_new.store; }},
    {"Aqk", [](const plan_variant& v) { return v.o.operand.to; }},
    {"o", [](const plan_variant& v) { return v.o.store; }},
    {"final_state", [](const plan_variant& v) { return v.state.accumulate; }},
});
static_assert(has_each(formats_of_stages, judged_stages));

}  // namespace

format stored_format(const plan_variant& variant, std::string_view tensor) {
  std::string known;
  for (const auto& [name, of] : formats_of_stages) {
    if (name == tensor) return stored_as(of(variant));
    known += (known.empty() ? "" : ", ") + std::string(name);
  }
  throw domain_error("stored_format: there is no tensor named " + std::string(tensor) + "; name one of " + known);
}

}  // namespace deltaproof
