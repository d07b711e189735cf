// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
#include <algorithm>
#include <limits>
#include <numbers>
#include <utility>

#include "deltaproof/stages/stages.hpp"
#include "support/text.hpp"

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

/// Whether the plan says other things of q k^T than of k k^T. Where gates have channels [A] operand is that of both.
bool queries_apart(const std::vector<plan_variant>& all, bool channels) {
  return std::any_of(all.begin(), all.end(), [&](const plan_variant& v) {
    return std::none_of(all.begin(), all.end(), [&](const plan_variant& other) {
      return other.A.accumulate == v.o.accumulate && (channels || other.A.operand == v.o.operand);
    });
  });
}

option<gram_rounding> gram_of(const plan_variant& v, bool channels, format x, const std::string& step_text, bool apart) {
  gram_rounding g{
      "", gram_form::difference, v.A.operand, v.gate_block, v.gate_shift * std::numbers::log2e, unit_roundoff(v.A.accumulate)};
  std::string more(detail::name_in(gate_form_names, v.form));
  if (v.gate_shift != 0) more += " shifted by " + detail::general(v.gate_shift, 3);
  if (v.A.store.precision < v.A.accumulate.precision) g.store = v.A.store;
  if (channels && v.form == gate_form::reference_block) g.form = gram_form::reference_blocks;
  if (channels && v.form == gate_form::middle_block) g.form = gram_form::middle_blocks;
  if (channels && v.form == gate_form::first_block) g.form = gram_form::first_blocks;
  // A decay that each factor carries on its own is rounded with it; the checker knows that form only where gates have channels.
  const bool on_factors = v.form == gate_form::factored || (!channels && v.form != gate_form::difference);
  const auto of_sums = [&](const narrowing& operand, const format& accumulate) {
    const bool narrowed = v.form == gate_form::factored || operand.to.precision < accumulate.precision;
    return on_factors && narrowed ? no_bound : unit_roundoff(accumulate);
  };
  g.accumulate = of_sums(v.A.operand, v.A.accumulate);
  if (apart) {
    if (!channels) g.query_operand = v.o.operand;
    g.query_accumulate = of_sums(channels ? v.A.operand : v.o.operand, v.o.accumulate);
    more += ", q k^T " + text_of(g.query_operand.value_or(g.operand));
  }
  if (v.v_new.form == change_form::residual) {
    g.gated = false;
    more += ", no decay in A";
  }
  g.step = v.beta;
  g.rows = wider(v.beta, x);  // where the step multiplies rows: with_stores_of_products
  return {v.A.operand, more + step_text, g};
}

option<inverse_rounding> inverse_of(const plan_variant& v, std::size_t chunk) {
  const auto& i = v.inverse;
  const std::size_t block = i.method.block == 0 ? chunk : i.method.block;
  inverse_rounding r{"", block, unit_roundoff(i.accumulate), i.merge_operand, unit_roundoff(i.merge_accumulate), i.association};
  if (i.operand.to.precision < i.accumulate.precision) r.substitute_operand = unit(i.operand);
  if (i.between) r.between = unit_roundoff(*i.between);
  const bool ranges = has_range(i.operand.to) && has_range(i.accumulate) && (!i.between || has_range(*i.between)) &&
                      has_range(i.merge_operand.to) && has_range(i.merge_accumulate);
  const bool halves = block < chunk && i.method.merge == merge_kind::block2;
  if (i.method.diagonal != diagonal_kind::forward || halves || !ranges) r.substitute = no_bound;
  if (block >= chunk) r.name = name_of(inverse_method{i.method.diagonal, 0, i.method.merge});
  return {i.merge_operand, name_of(i.method), r};
}

option<scaled_rounding> scaled_of(const plan_variant::transform& t, format step, format x) {
  const format beta_product = wider(step, x);
  return {t.operand, std::string(name_of(beta_product)), {"", beta_product, t.operand, unit_roundoff(t.accumulate), step}};
}

/// "more" with one thing more.
std::string joined(const std::string& more, const std::string& word) {
  return more.empty() || word.empty() ? more + word : more + ", " + word;
}

/// Whether the two products of the state share a format, which is what one card does, decides the list it goes to.
void add_states(const plan_variant& v, std::vector<option<state_rounding>>& uniform, std::vector<option<state_rounding>>& mixed) {
  const bool stored = v.v_new.update == update_source::stored;
  const double accumulate = unit_roundoff(v.state.accumulate);
  const auto state = [&](const narrowing& operand, const std::optional<narrowing>& of_update) {
    const std::string more = joined(stored ? "stored v_new" : "", of_update ? "update " + text_of(*of_update) : "");
    const update_kind update = stored ? update_kind::stored_value : update_kind::value;
    state_rounding how{"", update, operand, v.state.between_tokens, accumulate, of_update};
    how.cache = v.state.cache;
    how.between_calls = v.state.between_calls;
    return option<state_rounding>{operand, more, how};
  };
  if (v.state.store == v.v_new.update_operand) {
    uniform.push_back(state(v.state.store, std::nullopt));
  } else {
    mixed.push_back(state(v.state.store, v.v_new.update_operand));
  }
}

/// The values that the variants give one of their keys, each once.
template <class Read>
auto values_of(const std::vector<plan_variant>& all, const Read& read) {
  std::vector<std::decay_t<decltype(read(all.front()))>> out;
  for (const plan_variant& v : all) {
    if (std::find(out.begin(), out.end(), read(v)) == out.end()) out.push_back(read(v));
  }
  return out;
}

/// Every option with each of these values, since each key may be chosen whatever the others are; `set` changes the option
/// and says how, "" for what is the usual.
template <class Rounding, class Value, class Set>
void with_each(std::vector<option<Rounding>>& options, const std::vector<Value>& values, const Set& set) {
  std::vector<option<Rounding>> out;
  for (const option<Rounding>& one : options) {
    for (const Value& value : values) {
      option<Rounding> with = one;
      with.more = joined(with.more, set(with.value, value));
      out.push_back(std::move(with));
    }
  }
  options = std::move(out);
}

/// What the update and w h may do beside formats. Where gates have channels k carries their decay.
void with_ways_of_state(std::vector<option<state_rounding>>& options, const std::vector<plan_variant>& all, const problem& p) {
  const bool channels = p.gate_per_channel();
  const auto of_decay = [&](const plan_variant& v) {
    return channels ? write_decay::k : p.g ? v.v_new.decay : write_decay::v_new;
  };
  with_each(options, values_of(all, of_decay), [&](state_rounding& r, write_decay decay) {
    const bool on_keys = decay == write_decay::k;
    if (on_keys) r.update = r.update == update_kind::stored_value ? update_kind::stored_key : update_kind::key;
    return std::string(on_keys && !channels ? "decay on k" : "");
  });
  const std::vector<format> stored = values_of(all, [](const plan_variant& v) { return v.v_new.store; });
  with_each(options, stored, [&](state_rounding& r, const format& f) {
    r.value_copy = f;
    return stored.size() > 1 ? "v_new in " + std::string(name_of(f)) : std::string();
  });
  with_each(options, values_of(all, [](const plan_variant& v) { return v.v_new.key_operand; }),
            [](state_rounding& r, const std::optional<narrowing>& of_keys) {
              r.key_operand = of_keys;
              return of_keys ? "k " + text_of(*of_keys) : std::string();
            });
  with_each(options, values_of(all, [](const plan_variant& v) { return v.v_new.state_operand; }),
            [](state_rounding& r, const std::optional<narrowing>& of_state) {
              if (!of_state) return std::string();
              r.update_operand = r.update_operand.value_or(r.operand);
              r.copy = r.operand;
              r.operand = *of_state;
              r.reads = state_source::computed;
              return "the state itself in w h, " + text_of(*of_state);
            });
}

/// What is rounded of a product before anything is done with it, and which copy of a stage the next one reads.
void with_stores_of_products(std::vector<option<gram_rounding>>& options, const std::vector<plan_variant>& all) {
  const auto said = [](const char* what, const std::optional<format>& to) {
    return to ? what + (" stored in " + std::string(name_of(*to))) : std::string();
  };
  with_each(options, values_of(all, [](const plan_variant& v) { return v.step; }), [](gram_rounding& r, step_factor factor) {
    if (factor == step_factor::product) r.rows.reset();
    return std::string(factor == step_factor::rows ? "the step on k" : "");
  });
  with_each(options, values_of(all, [](const plan_variant& v) { return v.A.product_store; }),
            [&](gram_rounding& r, const std::optional<format>& to) {
              r.product_store = to;
              return said("k k^T", to);
            });
  with_each(options, values_of(all, [](const plan_variant& v) { return v.o.product_store; }),
            [&](gram_rounding& r, const std::optional<format>& to) {
              r.query_product_store = to;
              return said("q k^T", to);
            });
}
template <class Rounding, class Read>
void with_readings(std::vector<option<Rounding>>& options, const std::vector<plan_variant>& all, const char* of, const Read& read,
                   std::optional<format> Rounding::* member) {
  with_each(options, values_of(all, read), [&](Rounding& r, const std::optional<format>& in) {
    r.*member = in;
    return in ? of + (" read in " + std::string(name_of(*in))) : std::string();
  });
}

/// Likewise of the read-out.
void with_ways_of_output(std::vector<option<output_rounding>>& options, const std::vector<plan_variant>& all, const problem& p) {
  const bool channels = p.gate_per_channel();
  const auto of_decay = [&](const plan_variant& v) { return channels ? read_decay::q : p.g ? v.o.decay : read_decay::product; };
  with_each(options, values_of(all, of_decay), [&](output_rounding& r, read_decay decay) {
    r.query_gated = decay == read_decay::q;
    return std::string(r.query_gated && !channels ? "decay on q" : "");
  });
  with_each(options, values_of(all, [](const plan_variant& v) { return v.o.state_operand; }),
            [](output_rounding& r, const std::optional<narrowing>& of_state) {
              if (!of_state) return std::string();
              r.state_operand = of_state;
              r.reads = state_source::computed;
              return "the state itself in q h, " + text_of(*of_state);
            });
  with_each(options, values_of(all, [](const plan_variant& v) { return v.o.value_operand; }),
            [](output_rounding& r, const std::optional<narrowing>& of_values) {
              r.value_operand = of_values;
              return of_values ? "v_new " + text_of(*of_values) : std::string();
            });
  with_each(options, values_of(all, [](const plan_variant& v) { return v.o.read_store; }),
            [](output_rounding& r, const std::optional<format>& to) {
              r.read_store = to;
              return to ? "q h stored in " + std::string(name_of(*to)) : std::string();
            });
}

/// How the rows of q and k are read: alternatives are named by what tells them from the first.
void add_rows(const std::vector<plan_variant>& all, const problem& p, stage_roundings& r) {
  const auto of = [&](const plan_variant& v) {
    row_rounding one;
    if (p.qk_l2norm) one = {"", v.l2norm_store, v.l2norm_epsilon};
    one.scale = v.o.scale;
    one.scale_format = v.o.scale_format;
    if (p.qk_l2norm && v.l2norm_compute.precision < fp32.precision) one.norm_roundoff = unit_roundoff(v.l2norm_compute);
    if (v.o.scale != read_scale::o)
      one.scaled_query = has_dtype(v.o.operand.to) ? v.o.operand : narrowing{stored_as(v.o.operand.to), false};
    if (v.o.scale_store) one.scaled_query = {*v.o.scale_store, false};
    return one;
  };
  const auto same = [](const row_rounding& a, const row_rounding& b) {
    return a.store == b.store && a.epsilon == b.epsilon && a.scale == b.scale && a.scaled_query == b.scaled_query &&
           a.scale_format == b.scale_format && a.norm_roundoff == b.norm_roundoff;
  };
  r.rows = of(all.front());
  for (const plan_variant& v : all) {
    row_rounding one = of(v);
    const auto known = [&](const row_rounding& other) { return same(one, other); };
    if (known(r.rows) || std::any_of(r.other_rows.begin(), r.other_rows.end(), known)) continue;
    const std::string store = one.store ? std::string(name_of(*one.store)) : "not rounded";
    if (p.qk_l2norm) one.name = "l2norm " + store + ", epsilon " + detail::general(one.epsilon, 3);
    if (one.scale != r.rows.scale)
      one.name = joined(one.name, "scale on " + std::string(detail::name_in(read_scale_names, one.scale)));
    if (one.scale_format != r.rows.scale_format)
      one.name = joined(one.name, "scale in " + std::string(one.scale_format ? name_of(*one.scale_format) : "fp64"));
    if (one.norm_roundoff != r.rows.norm_roundoff)
      one.name = joined(one.name, "norm in " + std::string(name_of(v.l2norm_compute)));
    r.other_rows.push_back(std::move(one));
  }
}

}  // namespace

stage_roundings roundings_of(const plan& plan, const problem& p, path_kind path, std::size_t chunk) {
  if (path != path_kind::chunk) {
    throw domain_error("roundings_of: the path is " + std::string(name_of(path)) +
                       "; only a chunk kernel has stages: call it with path_kind::chunk and the kernel's chunk length");
  }
  const std::vector<plan_variant> all = variants(plan, p, path, chunk);
  const bool channels = p.gate_per_channel();
  const format x = p.q.element_format();
  stage_roundings r;
  r.exp2_ulps = plan.hardware.exp2_ulps + 0.5;
  r.rsqrt_ulps = plan.hardware.rsqrt_ulps + 0.5;
  r.output_span = p.num_householder;
  add_rows(all, p, r);
  r.clip = all.front().clip;
  // Gates in fewer bits than fp32 are no reason to think so of the rest.
  const auto of_the_rest = [](const plan_variant& v) {
    return unit_roundoff(v.cumsum.precision < fp32.precision ? fp32 : v.cumsum);
  };
  r.gates = unit_roundoff(all.front().cumsum);
  r.elementwise = of_the_rest(all.front());
  std::vector<option<gram_rounding>> gram;
  std::vector<option<inverse_rounding>> inverse;
  std::vector<option<scaled_rounding>> u, w;
  std::vector<option<state_rounding>> uniform, mixed;
  std::vector<option<output_rounding>> output;
  const bool steps_differ =
      std::any_of(all.begin(), all.end(), [&](const plan_variant& v) { return v.beta != all.front().beta; });
  const bool apart = queries_apart(all, channels);
  for (const plan_variant& v : all) {
    r.gates = std::max(r.gates, unit_roundoff(v.cumsum));
    r.elementwise = std::max(r.elementwise, of_the_rest(v));
    gram.push_back(gram_of(v, channels, p.qk_l2norm ? v.l2norm_store.value_or(v.l2norm_compute) : x,
                           steps_differ ? ", step " + std::string(name_of(v.beta)) : "", apart));
    inverse.push_back(inverse_of(v, chunk));
    u.push_back(scaled_of(v.u, v.beta, x));
    w.push_back(scaled_of(v.w, v.beta, x));
    add_states(v, uniform, mixed);
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
  for (auto* options : {&uniform, &mixed}) with_ways_of_state(*options, all, p);
  with_ways_of_output(output, all, p);
  with_stores_of_products(gram, all);
  with_readings(inverse, all, "A", [](const plan_variant& v) { return v.A.read; }, &inverse_rounding::reads);
  for (auto* options : {&u, &w})
    with_readings(*options, all, "Ai", [](const plan_variant& v) { return v.inverse.read; }, &scaled_rounding::reads);
  for (auto* options : {&uniform, &mixed}) {
    with_readings(*options, all, "u", [](const plan_variant& v) { return v.u.read; }, &state_rounding::reads_u);
    with_readings(*options, all, "w", [](const plan_variant& v) { return v.w.read; }, &state_rounding::reads_w);
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
