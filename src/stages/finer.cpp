// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
#include <algorithm>
#include <array>
#include <bit>
#include <set>
#include <string>
#include <utility>

#include "deltaproof/stages/stages.hpp"

namespace deltaproof {

namespace {

// False where there is no rounding to leave out.
bool keep(format& f) { return f.precision < fp32.precision && (f = fp32, true); }
bool keep(narrowing& n) { return n.to.precision < fp32.precision && (n = {fp32, false}, true); }
bool keep(std::optional<format>& f) { return f && f->precision < fp32.precision && (f.reset(), true); }
/// A format of its own where nothing stands for `otherwise`.
bool keep(std::optional<narrowing>& n, const narrowing& otherwise) {
  n = n.value_or(otherwise);
  return keep(*n);
}

template <class Rounding>
struct left_out {
  const char* what;
  bool (*leave_out)(Rounding&);  ///< false: this alternative does not round there
};

/// Every alternative with any of its roundings left out, after those declared.
template <class Rounding>
std::vector<Rounding> with_fewer(const std::vector<Rounding>& declared, const std::vector<left_out<Rounding>>& roundings) {
  std::vector<Rounding> out = declared;
  std::set<std::string> names;
  for (const Rounding& one : declared) {
    for (std::size_t chosen = 1; chosen < std::size_t{1} << roundings.size(); ++chosen) {
      Rounding less = one;
      std::string what;
      bool all = true;
      for (std::size_t i = 0; i < roundings.size(); ++i) {
        if ((chosen >> i & 1) == 0) continue;
        all = all && roundings[i].leave_out(less);
        what += std::string(what.empty() ? "" : " and ") + roundings[i].what;
      }
      if (!all) continue;
      less.name += (less.name.empty() ? "" : ", ") + what + " not rounded";
      if (names.insert(less.name).second) out.push_back(std::move(less));
    }
  }
  return out;
}

const std::vector<left_out<gram_rounding>> of_gram{{"operands",
                                                    [](gram_rounding& r) {
                                                      const bool of_query = r.query_operand && keep(*r.query_operand);
                                                      return keep(r.operand) || of_query;
                                                    }},
                                                   {"q k^T", [](gram_rounding& r) { return keep(r.query_product_store); }},
                                                   {"k k^T", [](gram_rounding& r) { return keep(r.product_store); }},
                                                   {"the step times k", [](gram_rounding& r) { return r.rows && keep(*r.rows); }},
                                                   {"the step", [](gram_rounding& r) { return keep(r.step); }},
                                                   {"A", [](gram_rounding& r) { return keep(r.store); }}};
const std::vector<left_out<inverse_rounding>> of_inverse{
    {"operands of merges", [](inverse_rounding& r) { return keep(r.merge_operand); }}};
const std::vector<left_out<scaled_rounding>> of_scaled{
    {"beta times a row", [](scaled_rounding& r) { return keep(r.beta_product); }},
    {"Ai", [](scaled_rounding& r) { return keep(r.inverse_operand, r.operand); }},
    {"the row",
     [](scaled_rounding& r) {
       r.inverse_operand = r.inverse_operand.value_or(r.operand);
       return keep(r.operand);
     }},
    {"the step", [](scaled_rounding& r) { return keep(r.step); }}};
/// The product with a state multiplies the state itself and narrows neither factor, where it would have read h.
template <class Rounding>
bool reads_itself(Rounding& r, narrowing& operand) {
  if (r.reads == state_source::computed) return false;
  r.reads = state_source::computed;
  if (operand.to.precision < fp32.precision) operand = {fp32, false};
  return true;
}

/// Where v_new is not stored: what o and a later update read of it.
const left_out<state_rounding> copy_of_v_new{"v_new", [](state_rounding& r) {
                                               format f = r.value_copy.value_or(r.operand.to);
                                               if (!keep(f)) return false;
                                               r.value_copy = f;
                                               return true;
                                             }};
// The second operand stays as declared where the first is kept, and the other way round. A state read before it is stored
// leaves nothing of the next to leave out.
const std::vector<left_out<state_rounding>> of_state{
    {"the state that w multiplies",
     [](state_rounding& r) {
       r.update_operand = r.update_operand.value_or(r.operand);
       r.copy = r.copy.value_or(r.operand);
       return reads_itself(r, r.operand);
     }},
    {"w and the state",
     [](state_rounding& r) {
       r.update_operand = r.update_operand.value_or(r.operand);
       return keep(r.operand);
     }},
    {"k in the update", [](state_rounding& r) { return keep(r.key_operand, r.update_operand.value_or(r.operand)); }},
    {"v_new in the update",
     [](state_rounding& r) {
       r.key_operand = r.key_operand.value_or(r.update_operand.value_or(r.operand));
       const bool twice = r.update == update_kind::stored_value || r.update == update_kind::stored_key;
       if (twice) r.update = r.update == update_kind::stored_value ? update_kind::value : update_kind::key;
       return keep(r.update_operand, r.operand) || twice;
     }},
    {"the state between chunks", [](state_rounding& r) {
       const bool stored = r.cache || r.between_calls;
       r.cache.reset();
       r.between_calls.reset();
       return keep(r.between_chunks) || stored;
     }}};
const std::vector<left_out<output_rounding>> of_output{
    {"q with its decay", [](output_rounding& r) { return keep(r.query_operand, r.operand); }},
    {"q h", [](output_rounding& r) { return keep(r.read_store); }},
    {"the state that q multiplies",
     [](output_rounding& r) {
       r.state_operand = r.state_operand.value_or(r.operand);
       return reads_itself(r, *r.state_operand);
     }},
    {"the state", [](output_rounding& r) { return keep(r.state_operand, r.operand); }},
    {"v_new", [](output_rounding& r) { return keep(r.value_operand, r.operand); }},
    {"q k^T with its decay", [](output_rounding& r) {
       for (auto* other : {&r.query_operand, &r.state_operand, &r.value_operand}) *other = other->value_or(r.operand);
       return keep(r.operand);
     }}};

constexpr std::array<std::array<std::string_view, 3>, 2> share_a_choice{{{"A", "Aqk", ""}, {"h", "v_new", "final_state"}}};

/// Beyond its bound by more than overflow, which no rounding explains.
bool is_off(const stage_measurement& m) { return m.bad > m.nonfinite; }

/// Whether rows of q and k may hold more than an operand does: given in fp32, or normalised and kept as computed.
bool rows_hold_more(const problem& p) { return p.qk_l2norm || p.q.element_format().precision >= fp32.precision; }

/// o reads what is rebuilt from u and w: which state w multiplied decides it too.
bool output_of_rebuilt(const result& r) {
  const auto stored = [&](const char* stage) { return r.stages.count(stage) != 0; };
  return stored("u") && stored("w") && !(stored("h") && stored("v_new"));
}

/// `declared` and after each list of these stages its alternatives with fewer roundings.
stage_roundings finer(const problem& p, const result& given, const stage_roundings& declared,
                      const std::vector<std::string>& stages) {
  const auto any = [&](std::initializer_list<std::string_view> names) {
    return std::any_of(stages.begin(), stages.end(),
                       [&](const std::string& s) { return std::find(names.begin(), names.end(), s) != names.end(); });
  };
  stage_roundings r = declared;
  // o forms q k^T from rounded rows as A does; of that and its own rounding alone, as the list of o has the others.
  const std::vector<left_out<gram_rounding>> of_query(of_gram.begin(), of_gram.begin() + 2);
  const bool rounds_product =
      std::any_of(r.gram.begin(), r.gram.end(), [](const gram_rounding& g) { return g.query_product_store; });
  if (any({"A", "Aqk"})) {
    r.gram = with_fewer(r.gram, of_gram);
  } else if (any({"o"}) && (rows_hold_more(p) || rounds_product)) {
    r.gram = with_fewer(r.gram, of_query);
  }
  if (any({"Ai"})) r.inverse = with_fewer(r.inverse, of_inverse);
  if (any({"w"})) r.w = with_fewer(r.w, of_scaled);
  if (any({"u"})) r.u = with_fewer(r.u, of_scaled);
  const bool state = any({"h", "v_new", "final_state"});
  if (state || (any({"o"}) && output_of_rebuilt(given))) {
    // Of o alone only what it reads.
    std::vector<left_out<state_rounding>> fewer(of_state.begin(), state ? of_state.end() : of_state.begin() + 2);
    if (given.stages.count("v_new") == 0) fewer.push_back(copy_of_v_new);
    r.state = with_fewer(r.state, fewer);
  }
  if (any({"o"})) r.output = with_fewer(r.output, of_output);
  return r;
}

/// What a kernel may do to every stage at once.
struct everywhere {
  const char* what;
  bool (*concerns)(const problem&, const stage_roundings&);
  void (*apply)(stage_roundings&);
};
constexpr std::array<everywhere, 6> at_once{
    {{"normalised rows not rounded",
      [](const problem& p, const stage_roundings& r) {
        const auto rounds = [](const std::optional<format>& f) { return f && f->precision < fp32.precision; };
        return p.qk_l2norm &&
               (rounds(r.rows.store) || std::any_of(r.other_rows.begin(), r.other_rows.end(),
                                                    [&](const row_rounding& other) { return rounds(other.store); }));
      },
      [](stage_roundings& r) {
        r.rows.store.reset();
        for (row_rounding& other : r.other_rows) other.store.reset();
      }},
     // It is the same as the scale on o, but where products are rounded: those with the scale, or those without it.
     {"q times the scale not rounded",
      [](const problem&, const stage_roundings& r) {
        return r.rows.scale == read_scale::q && r.rows.scaled_query.to.precision < fp32.precision;
      },
      [](stage_roundings& r) { r.rows.scaled_query = {fp32, false}; }},
     {"the scale on o", [](const problem&, const stage_roundings& r) { return r.rows.scale != read_scale::o; },
      [](stage_roundings& r) { r.rows.scale = read_scale::o; }},
     {"the scale not rounded", [](const problem&, const stage_roundings& r) { return r.rows.scale_format.has_value(); },
      [](stage_roundings& r) { r.rows.scale_format.reset(); }},
     {"o computed from h of every chunk, not only of every n-th chunk",
      [](const problem&, const stage_roundings& r) { return r.output_span > 1; }, [](stage_roundings& r) { r.output_span = 1; }},
     {"gate sums other than the stored ones", [](const problem& p, const stage_roundings&) { return p.g.has_value(); },
      [](stage_roundings& r) { r.other_gate_sums = true; }}}};

/// Bit i for at_once[i]: nothing first, then each that makes a difference, then several.
std::vector<unsigned> ways(const problem& p, const stage_roundings& declared) {
  unsigned open = 0;
  for (unsigned i = 0; i < at_once.size(); ++i) open |= at_once[i].concerns(p, declared) ? 1U << i : 0U;
  std::vector<unsigned> out;
  for (unsigned way = 0; way < 1U << at_once.size(); ++way) {
    if ((way & ~open) == 0) out.push_back(way);
  }
  std::sort(out.begin(), out.end(),
            [](unsigned a, unsigned b) { return std::pair(std::popcount(a), a) < std::pair(std::popcount(b), b); });
  return out;
}

/// The stages of these that are nowhere off in `other`, with those that share their choice. What leaves more elements without
/// a bound than `declared` does explains nothing.
std::vector<std::string> that_fit(const std::vector<std::string>& stages, const stage_report& declared,
                                  const stage_report& other) {
  std::vector<std::string> out;
  for (const std::string& stage : stages) {
    std::vector<std::string_view> together{stage};
    for (const auto& group : share_a_choice) {
      if (std::find(group.begin(), group.end(), stage) != group.end()) together.assign(group.begin(), group.end());
    }
    const bool fits = std::none_of(together.begin(), together.end(), [&](std::string_view name) {
      const stage_measurement *const one = other.find(name), *const before = declared.find(name);
      return one != nullptr && (is_off(*one) || (before != nullptr && one->unbounded > before->unbounded));
    });
    if (fits) out.push_back(stage);
  }
  return out;
}

/// With the other stages of the state where one of them is there: what w h multiplies decides every state after it.
std::vector<std::string> with_state(std::vector<std::string> stages) {
  const auto& group = share_a_choice[1];
  const auto holds = [&](std::string_view name) { return std::find(stages.begin(), stages.end(), name) != stages.end(); };
  if (std::none_of(group.begin(), group.end(), holds)) return stages;
  for (const std::string_view name : group) {
    if (!holds(name)) stages.emplace_back(name);
  }
  return stages;
}

/// Up to the first place where each of these stages is off: most that no rounding explains show it there again.
stage_options up_to_what_is_off(const problem& p, std::size_t chunk, const stage_report& report,
                                const std::vector<std::string>& stages, const stage_options& options) {
  stage_options out = options;
  const auto sequences = p.sequences();
  out.judged_tokens.assign(sequences.size() * p.value_heads(), 0);
  for (const std::string& stage : stages) {
    const stage_place& at = *report.find(stage)->first_bad;
    const std::size_t lane = at.sequence * p.value_heads() + at.head, all = sequences[at.sequence].tokens;
    const std::size_t asked = options.judged_tokens.empty() ? all : options.judged_tokens[lane];
    const std::size_t wanted =
        stage == "final_state" ? all : ((at.chunk + 1) * chunk + p.num_householder - 1) / p.num_householder;
    out.judged_tokens[lane] = std::max(out.judged_tokens[lane], std::min(asked, wanted));
  }
  return out;
}

}  // namespace

stage_report measure_stages_at_least(const problem& p, const result& r, const stage_roundings& declared,
                                     const stage_options& options) {
  stage_report report = measure_stages(p, r, declared, options);
  for (const unsigned way : ways(p, declared)) {
    std::vector<std::string> off;
    for (const stage_measurement& m : report.stages) {
      if (is_off(m)) off.push_back(m.name);
    }
    if (off.empty()) break;
    const auto less_for = [&](const std::vector<std::string>& stages) {
      stage_roundings less = finer(p, r, declared, stages);
      for (unsigned i = 0; i < at_once.size(); ++i) {
        if ((way >> i & 1) != 0) at_once[i].apply(less);
      }
      return less;
    };
    off = that_fit(off, report,
                   measure_stages(p, r, less_for(off), up_to_what_is_off(p, r.chunk_size.value_or(1), report, off, options)));
    if (off.empty()) continue;
    const stage_report other = measure_stages(p, r, less_for(off), options);
    for (const std::string& stage : with_state(that_fit(off, report, other))) {
      const auto taken = std::find_if(report.stages.begin(), report.stages.end(),
                                      [&](const stage_measurement& one) { return one.name == stage; });
      const stage_measurement* const less = other.find(stage);
      if (taken == report.stages.end() || less == nullptr) continue;
      stage_measurement& m = *taken;
      m = *less;
      m.finer = true;
      for (unsigned i = 0; i < at_once.size(); ++i) {
        if ((way >> i & 1) != 0) m.rounding += std::string(m.rounding.empty() ? "" : ", ") + at_once[i].what;
      }
    }
  }
  return report;
}

}  // namespace deltaproof
