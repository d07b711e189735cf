// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
#include "deltaproof/stages/stages.hpp"

#include <algorithm>
#include <cmath>
#include <iomanip>
#include <limits>
#include <numeric>
#include <sstream>

#include "deltaproof/support/errors.hpp"
#include "stages/head_stages.hpp"
#include "support/parallel.hpp"
#include "support/text.hpp"

namespace deltaproof {

namespace {

using stages_detail::alternatives;
using stages_detail::head_place;
using stages_detail::stage_inputs;
using stages_detail::tallies;
using stages_detail::tally;

/// Why a stage is not judged; empty if it is.
std::string why_not(std::string_view stage, const problem& p, const stage_inputs& stored) {
  if (stored.find(stage) == nullptr) return "not stored";
  if (stage == "g_cumsum_log2" && !p.g) return "the problem has no gate";
  const auto& needs = find_stage(stage)->needs;
  std::string missing;
  for (const std::string_view need : needs) {
    if (!need.empty() && stored.find(need) == nullptr) missing += (missing.empty() ? "" : " and ") + std::string(need);
  }
  if (!missing.empty())
    return "needs " + missing + ", which " + (missing.find(' ') == std::string::npos ? "is" : "are") + " not stored";
  if (stage == "o" && !stored.has_output()) return "needs h and v_new, or u and w to rebuild them; neither pair is stored";
  return {};
}

void require_alternatives(std::string_view stage, const stage_roundings& r) {
  const auto require = [stage](bool there, const char* list) {
    if (!there) {
      throw domain_error("measure_stages: stage " + std::string(stage) + " is stored and stage_roundings::" + list +
                         " is empty; name at least one way of rounding");
    }
  };
  if (stage == "A" || stage == "Aqk" || stage == "Ai" || stage == "o") require(!r.gram.empty(), "gram");
  if (stage == "Ai") require(!r.inverse.empty(), "inverse");
  if (stage == "w") require(!r.w.empty(), "w");
  if (stage == "u") require(!r.u.empty(), "u");
  if (stage == "h" || stage == "v_new" || stage == "final_state") require(!r.state.empty(), "state");
  if (stage == "o") require(!r.output.empty(), "output");
}

void require_sound(const problem& p, const stage_roundings& r, bool has_aqk) {
  if (r.output_span == 0 || (r.output_span > 1 && has_aqk)) {
    throw domain_error("measure_stages: output_span is " + std::to_string(r.output_span) +
                       "; it must be at least 1, and it must be 1 if Aqk is stored, because Aqk covers one chunk");
  }
  for (const gram_rounding& g : r.gram) {
    if (g.block == 0) throw domain_error("measure_stages: a gram_rounding has blocks of 0 rows; 16 is usual");
  }
  for (const inverse_rounding& i : r.inverse) {
    if (i.block == 0) throw domain_error("measure_stages: an inverse_rounding has blocks of 0 rows; 16 is usual");
  }
  for (const state_rounding& s : r.state) {
    if (p.gate_per_channel() && s.update != update_kind::key && s.update != update_kind::stored_key) {
      throw domain_error(
          "measure_stages: the decay of a gate per channel cannot be carried by v_new; use update_kind::key or stored_key");
    }
  }
  for (const output_rounding& o : r.output) {
    if (p.gate_per_channel() && !o.query_gated) {
      throw domain_error("measure_stages: the decay of a gate per channel goes into q; set output_rounding::query_gated");
    }
  }
}

std::vector<head_place> places(const problem& p, std::size_t chunk_size, const stage_options& options) {
  const std::vector<sequence_range> sequences = p.sequences();
  const std::size_t heads = p.value_heads();
  if (!options.judged_tokens.empty() && options.judged_tokens.size() != sequences.size() * heads) {
    throw shape_error("measure_stages: judged_tokens has " + std::to_string(options.judged_tokens.size()) + " entries for " +
                      std::to_string(sequences.size()) + " sequences of " + std::to_string(heads) +
                      " heads; it needs one for each head of each sequence");
  }
  std::vector<head_place> result;
  std::size_t first_chunk = 0;
  for (std::size_t s = 0; s < sequences.size(); ++s) {
    if (p.cu_seqlens.empty()) first_chunk = 0;
    for (std::size_t h = 0; h < heads; ++h) {
      const std::size_t limit = options.judged_tokens.empty() ? sequences[s].tokens : options.judged_tokens[s * heads + h];
      result.push_back({sequences[s], s, h, first_chunk, limit});
    }
    first_chunk += (sequences[s].tokens * p.num_householder + chunk_size - 1) / chunk_size;
  }
  return result;
}

/// The place of the best of list[first], ..., list[first + count - 1]: the fewest bad elements, then the first.
std::size_t best_of(const std::vector<tally>& list, std::size_t first, std::size_t count) {
  const auto begin = list.begin() + static_cast<std::ptrdiff_t>(first);
  const auto best = std::min_element(begin, begin + static_cast<std::ptrdiff_t>(count),
                                     [](const tally& a, const tally& b) { return a.bad() < b.bad(); });
  return static_cast<std::size_t>(best - list.begin());
}

/// The alternative of `count` that fits the stages which share it best: the fewest bad elements of all, then the first. A
/// stage may have several variants of each.
std::size_t best_shared(const tallies& all, std::size_t count, std::initializer_list<std::string_view> stages) {
  std::size_t best = 0;
  std::size_t least = std::numeric_limits<std::size_t>::max();
  for (std::size_t a = 0; a < count; ++a) {
    std::size_t bad = 0;
    for (const std::string_view stage : stages) {
      const auto found = all.find(stage);
      if (found == all.end()) continue;
      const std::size_t variants = found->second.size() / count;
      bad += found->second[best_of(found->second, a * variants, variants)].bad();
    }
    if (bad < least) {
      best = a;
      least = bad;
    }
  }
  return best;
}

/// Bad elements of these stages under one alternative.
std::size_t bad_of(const tallies& all, std::size_t alternative, std::initializer_list<std::string_view> stages) {
  std::size_t bad = 0;
  for (const std::string_view stage : stages) {
    const auto found = all.find(stage);
    if (found != all.end() && alternative < found->second.size()) bad += found->second[alternative].bad();
  }
  return bad;
}

/// `output_states`: between how many states o chooses. Where that is one, o says nothing about the alternatives of the state.
/// `tried`: the others of a gram or an inverse were measured where the first of these has bad elements.
std::size_t choice(const tallies& all, std::string_view stage, std::size_t output_states, const alternatives& tried) {
  const std::vector<tally>& list = all.find(stage)->second;
  if (stage == "A" || stage == "Aqk") {
    const bool fits = list.size() == tried.gram.size() && bad_of(all, tried.gram.front(), {"A", "Aqk"}) == 0;
    return fits ? tried.gram.front() : best_shared(all, list.size(), {"A", "Aqk"});
  }
  if (stage == "Ai" && list.size() == tried.inverse.size() && list[tried.inverse.front()].bad() == 0)
    return tried.inverse.front();
  if (stage == "o") {
    const std::size_t state = output_states == 1 ? 0 : best_shared(all, output_states, {"h", "v_new", "o", "final_state"});
    const std::size_t variants = list.size() / output_states;
    return best_of(list, state * variants, variants);
  }
  if (stage == "h" || stage == "v_new" || stage == "final_state") {
    if (output_states > 1) return best_shared(all, output_states, {"h", "v_new", "o", "final_state"});
    return best_shared(all, list.size(), {"h", "v_new", "final_state"});
  }
  return best_of(list, 0, list.size());
}

void merge(tallies& all, const tallies& more) {
  for (const auto& [stage, list] : more) {
    for (std::size_t a = 0; a < list.size(); ++a) all.find(stage)->second[a].merge(list[a]);
  }
}

using indices = std::vector<std::size_t>;
const indices none;
std::size_t front_of(const indices& x) { return x.empty() ? 0 : x.front(); }
indices behind_first(const indices& x) { return x.empty() ? none : indices(x.begin() + 1, x.end()); }
alternatives first_of(const alternatives& x) {
  return {x.gram.empty() ? none : indices{x.gram.front()}, x.inverse.empty() ? none : indices{x.inverse.front()}};
}

/// Those that a file with these stages can be measured under.
alternatives alternatives_of(const stage_inputs& stored, const stage_roundings& r) {
  const std::size_t grams = stages_detail::gram_choices(stored.a != nullptr, r);
  alternatives out{indices(r.gram.size()), indices(stored.ai != nullptr ? grams * r.inverse.size() : 0)};
  std::iota(out.gram.begin(), out.gram.end(), std::size_t{0});
  std::iota(out.inverse.begin(), out.inverse.end(), std::size_t{0});
  return out;
}

/// The best has the fewest bad elements, then comes first: so one without any that comes first among those is the best, and the
/// beginning of each head tells, but for few kernels, which that is.
template <class Begin>
alternatives best_first(alternatives all, const Begin& of_beginning) {
  struct list {
    indices* of;
    std::initializer_list<std::string_view> stages;
    std::size_t best = 0, least = std::numeric_limits<std::size_t>::max();

    [[nodiscard]] bool is_open(std::size_t i) const { return of->size() > 1 && i < of->size() && least > 0; }
  };
  list lists[2] = {{&all.gram, {"A", "Aqk"}}, {&all.inverse, {"Ai"}}};
  for (std::size_t i = 0; lists[0].is_open(i) || lists[1].is_open(i); ++i) {
    const auto one = [i](const list& x) { return x.is_open(i) ? indices{i} : none; };
    const tallies found = of_beginning(alternatives{one(lists[0]), one(lists[1])});
    for (list& x : lists) {
      if (!x.is_open(i)) continue;
      const std::size_t bad = bad_of(found, i, x.stages);
      if (bad < x.least) x.best = i, x.least = bad;
    }
  }
  for (const list& x : lists) std::rotate(x.of->begin(), x.of->begin() + static_cast<std::ptrdiff_t>(x.best), x.of->end());
  return all;
}

std::string number(double x, int digits = 4) {
  std::ostringstream out;
  out << std::setprecision(digits) << x;
  return out.str();
}

stage_report measure_of_one_reading(const problem& p, const result& r, const stage_roundings& roundings,
                                    const stage_options& options) {
  if (!r.chunk_size || *r.chunk_size == 0) {
    throw domain_error(
        "measure_stages: the result states no chunk_size, and stages are those of chunks; if the kernel works in chunks, write "
        "chunk_size to the result's metadata; the outputs of one that works token by token are judged by check alone");
  }
  const stage_inputs stored(r, options.output);
  require_sound(p, roundings, stored.aqk != nullptr);
  stage_report report;
  tallies empty;
  for (const std::string_view stage : judged_stages) {
    const std::string reason = why_not(stage, p, stored);
    const bool is_stored = stored.find(stage) != nullptr;
    if (!reason.empty()) report.unjudged.push_back({std::string(stage), reason, is_stored});
    if (!is_stored || (stage == "g_cumsum_log2" && !p.g)) continue;
    if (reason.empty()) require_alternatives(stage, roundings);
    const std::size_t count = reason.empty() ? stages_detail::alternative_names(stage, stored, roundings).size() : 1;
    empty.emplace(stage, std::vector<tally>(count, tally(stored.find(stage)->element_format())));
  }
  if (stored.has_state() && roundings.state.empty()) require_alternatives("h", roundings);

  const std::vector<head_place> heads = places(p, *r.chunk_size, options);
  const auto over_heads = [&](const auto& measure) {
    std::vector<tallies> of_heads(heads.size(), empty);
    parallel_for(heads.size(), options.threads, [&](std::size_t i) { measure(heads[i], of_heads[i]); });
    tallies all = empty;
    for (const tallies& one : of_heads) merge(all, one);
    return all;
  };
  const auto alone = [&](const alternatives& of, std::size_t chunks) {
    return over_heads([&](const head_place& place, tallies& out) {
      stages_detail::measure_alternatives(p, stored, *r.chunk_size, roundings, place, of, chunks, out);
    });
  };
  const alternatives tried = best_first(alternatives_of(stored, roundings), [&](const alternatives& of) { return alone(of, 1); });
  tallies all = over_heads([&](const head_place& place, tallies& out) {
    stages_detail::measure_head(p, stored, *r.chunk_size, roundings, place, first_of(tried), out);
  });
  const alternatives others = {bad_of(all, front_of(tried.gram), {"A", "Aqk"}) > 0 ? behind_first(tried.gram) : none,
                               bad_of(all, front_of(tried.inverse), {"Ai"}) > 0 ? behind_first(tried.inverse) : none};
  if (!others.gram.empty() || !others.inverse.empty()) merge(all, alone(others, std::numeric_limits<std::size_t>::max()));
  const std::size_t states = stages_detail::output_states(stored, roundings);
  for (const std::string_view stage : judged_stages) {
    const auto found = all.find(stage);
    if (found == all.end()) continue;
    const std::size_t best = choice(all, stage, states, tried);
    stage_measurement m = found->second[best].finish();
    const bool unjudged = !why_not(stage, p, stored).empty();
    if (unjudged && m.bad == 0) continue;
    m.name = stage;
    m.dtype = stored.find(stage)->dtype();
    if (!unjudged) m.rounding = stages_detail::alternative_names(stage, stored, roundings)[best];
    report.stages.push_back(std::move(m));
  }
  return report;
}

std::size_t all_bad(const stage_report& report) {
  std::size_t count = 0;
  for (const stage_measurement& m : report.stages) count += m.bad;
  return count;
}

}  // namespace

stage_report measure_stages(const problem& p, const result& r, const stage_roundings& roundings, const stage_options& options) {
  stage_report best = measure_of_one_reading(p, r, roundings, options);
  for (const row_rounding& other : roundings.other_rows) {
    if (all_bad(best) == 0) break;
    stage_roundings with = roundings;
    with.rows = other;
    stage_report report = measure_of_one_reading(p, r, with, options);
    if (all_bad(report) >= all_bad(best)) continue;
    for (stage_measurement& m : report.stages) m.rounding += (m.rounding.empty() ? "" : ", ") + other.name;
    best = std::move(report);
  }
  return best;
}

const stage_measurement* stage_report::find(std::string_view name) const {
  const auto found = std::find_if(stages.begin(), stages.end(), [&](const stage_measurement& m) { return m.name == name; });
  return found == stages.end() ? nullptr : &*found;
}

std::size_t stage_report::judged() const {
  std::size_t count = 0;
  for (const stage_measurement& m : stages) count += m.judged;
  return count;
}

stage_outcome stage_report::outcome() const {
  if (first_bad_stage(*this) != nullptr) return stage_outcome::bad;
  if (judged() == 0) return stage_outcome::nothing_judged;
  const bool partly = std::any_of(unjudged.begin(), unjudged.end(), [](const unjudged_stage& u) { return u.stored; }) ||
                      std::any_of(stages.begin(), stages.end(), [](const stage_measurement& m) { return m.unbounded > 0; });
  return partly ? stage_outcome::inconclusive : stage_outcome::within;
}

std::string_view name_of(stage_outcome outcome) {
  switch (outcome) {
    case stage_outcome::within:
      return "within";
    case stage_outcome::bad:
      return "bad";
    case stage_outcome::nothing_judged:
      return "nothing judged";
    case stage_outcome::inconclusive:
      return "inconclusive";
  }
  return "";
}

// h of a chunk comes before v_new of that chunk and after v_new of the chunks before it.
const stage_measurement* first_bad_stage(const stage_report& report) {
  const auto bad = [](const stage_measurement& m) { return m.first_bad.has_value(); };
  const auto first = std::find_if(report.stages.begin(), report.stages.end(), bad);
  if (first == report.stages.end()) return nullptr;
  if (first->name == "h") {
    const stage_measurement* const v_new = report.find("v_new");
    if (v_new != nullptr && v_new->first_bad && v_new->first_bad->chunk < first->first_bad->chunk) return v_new;
  }
  return &*first;
}

std::string describe(const stage_measurement& stage) {
  if (!stage.first_bad) return stage.name + ": every element is within its bound";
  const stage_place& at = *stage.first_bad;
  const bool whole = stage.name == "final_state" || stage.name == "dinitial_state";
  const bool state = find_stage(stage.name)->axes == stage_axes::states;
  std::string text = stage.name + ": sequence " + std::to_string(at.sequence) + ", " + detail::head_text(stage.name, at.head);
  if (!whole) text += ", chunk " + std::to_string(at.chunk);
  text += std::string(state ? ", k " : ", row ") + std::to_string(at.row) + (state ? ", v " : ", column ") +
          std::to_string(at.element);
  text += ": " + number(at.got, 9);
  const std::string count =
      std::to_string(stage.bad) + " of " + std::to_string(stage.judged) + " elements are beyond their bounds or not finite)";
  if (std::isinf(at.bound))
    return text +
           " where a finite number was expected; it has no bound, because an input of this stage is not finite, its "
           "recomputation overflows, or no bound is known for the arithmetic (" +
           count;
  return text + " where " + number(at.want, 9) + " +- " + number(at.bound, 3) + " was expected (ratio to the bound " +
         number(at.ratio, 3) + "; " + count;
}

std::string to_text(const stage_report& report) {
  std::ostringstream out;
  out << "error/bound    count     p50     p90     p99     max        bias in ulps          format, best-fitting rounding\n";
  for (const stage_measurement& m : report.stages) {
    out << std::left << std::setw(14) << m.name << std::right << std::setw(7) << m.judged;
    for (const double q : {0.5, 0.9, 0.99}) out << std::setw(8) << number(m.ratios.quantile(q), 3);
    out << std::setw(10) << number(m.worst ? m.worst->ratio : 0, 4) << "  ";
    if (m.bias.count > 0) {
      out << std::showpos << std::fixed << std::setprecision(4) << m.bias.mean << std::noshowpos << " +- "
          << m.bias.standard_error << std::defaultfloat << " (" << m.bias.count << ")";
    } else {
      out << "not measured: no error comes mainly from the store";
    }
    out << "  " << m.dtype << (m.rounding.empty() ? "" : " " + m.rounding);
    if (m.nonfinite > 0) out << ", " << m.nonfinite << " not finite";
    if (m.unbounded > 0) out << ", " << m.unbounded << " without bound";
    if (m.skipped > 0) out << ", " << m.skipped << " skipped";
    if (m.exactly_bf16 > 0) out << ", " << number(100 * m.exactly_bf16, 3) << " % exactly bf16";
    out << "\n";
  }
  for (const unjudged_stage& u : report.unjudged)
    out << std::left << std::setw(14) << u.name << "not judged: " << u.reason << "\n";
  out << "outcome: " << name_of(report.outcome()) << "\n";
  return out.str();
}

}  // namespace deltaproof
