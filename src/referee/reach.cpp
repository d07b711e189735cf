// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
//
// Which limits say something: one that zeros would keep does not.
#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <map>

#include "referee/parts.hpp"
#include "support/text.hpp"

namespace deltaproof::referee_detail {

namespace {

/// One head in one bucket, by both norms.
struct place {
  judged_statistic& rms;
  judged_statistic& max;

  [[nodiscard]] bool refuted() const { return rms.judged == verdict::refuted || max.judged == verdict::refuted; }
  [[nodiscard]] bool has_limit() const { return rms.judged == verdict::holds || max.judged == verdict::holds; }
  [[nodiscard]] bool refutes_zeros() const {
    return (rms.judged == verdict::holds && rms.limit.value < rms.truth) ||
           (max.judged == verdict::holds && max.limit.value < max.truth);
  }
  [[nodiscard]] bool is_farther_than_zeros() const { return rms.got > rms.truth; }
  void say_nothing() {
    for (judged_statistic* s : {&rms, &max}) {
      if (s->judged == verdict::holds) s->judged = verdict::vacuous;
    }
  }
};

/// Elements [first, first + count), and each `stride` elements behind them, `rows` times, of o or final_state.
struct blind_elements {
  std::size_t first = 0, count = 0, stride = 0, rows = 0;
};

struct tensor_reach {
  limit_reach counts;
  std::vector<blind_elements> blind;          ///< of counts.blind, those of places that have limits
  const lane* lost = nullptr;                 ///< the first head in which the plan's own runs overflow for good
  const judged_statistic* farther = nullptr;  ///< the first place that is farther from the truth than zeros
  const judged_statistic* widest = nullptr;   ///< the place whose limit exceeds the truth most
  std::string quiet;                          ///< the first tile that its place's limits do not reach, in words
};

double excess(const judged_statistic& s) { return s.truth > 0 ? s.limit.value / s.truth : 0; }

void add(place at, const blind_elements& own, double rounds_to_zero, tensor_reach& to) {
  const std::size_t elements = own.count * own.rows;
  to.counts.elements += elements;
  if (at.refuted()) return;
  if (at.has_limit() && at.max.truth <= rounds_to_zero && !at.is_farther_than_zeros()) {
    to.counts.zero += elements;
    return;
  }
  const bool farther = at.has_limit() && at.is_farther_than_zeros();
  if (at.refutes_zeros() && !farther) return;
  to.counts.blind += elements;
  if (!farther) to.blind.push_back(own);
  at.say_nothing();
  if (farther && to.farther == nullptr) to.farther = &at.rms;
  if (to.widest == nullptr || excess(at.rms) > excess(*to.widest)) to.widest = &at.rms;
}

std::string reason_of(const tensor_reach& x) {
  const std::string& tensor = x.counts.tensor;
  if (x.farther != nullptr) {
    return "the rms error of " + place_text(*x.farther) + " is " + digits(x.farther->got) +
           ", and an output of zeros would err by only " + digits(x.farther->truth) + "; the plan's limit there is " +
           digits(x.farther->limit.value) + ", too wide to refute either";
  }
  const bool much = static_cast<double>(x.counts.blind) > most_not_judged * static_cast<double>(x.counts.elements);
  if (much && x.lost != nullptr) {
    return "emulated runs of the plan overflow (sequence " + std::to_string(x.lost->sequence) + ", head " +
           std::to_string(x.lost->head) + ", from token " + std::to_string(x.lost->judged) + " on), so " +
           detail::share_text(x.counts.blind, x.counts.elements) + " of " + tensor + " has no error limit and is not judged";
  }
  if (much && x.widest == nullptr && x.quiet.empty())
    return overflows_in(detail::share_text(x.counts.blind, x.counts.elements) + " of " + tensor);
  if (much) {
    return "a kernel that writes only zeros would pass for " + detail::share_text(x.counts.blind, x.counts.elements) + " of " +
           tensor + ": " +
           (x.widest == nullptr
                ? x.quiet
                : "for " + place_text(*x.widest) + ", the plan's limit on the rms error is " + digits(x.widest->limit.value) +
                      ", and the rms of the exact values is " + digits(x.widest->truth));
  }
  if (tensor == "o" && x.counts.zero + x.counts.blind == x.counts.elements && x.counts.elements > 0)
    return "every exact value of o is 0 or rounds to 0: a kernel that writes only zeros would pass";
  return {};
}

/// Whether each element of every stage on the way to the outputs was within its bound.
bool every_stage_was_judged(const plan_report& out) {
  if (!out.measured_stages) return false;
  static constexpr std::array chain = {"Ai", "w", "u", "h", "v_new", "o"};
  return std::all_of(chain.begin(), chain.end(), [&](const char* name) {
    const stage_measurement* const m = out.measured_stages->find(name);
    return m != nullptr && m->judged > 0 && m->unbounded + m->nonfinite + m->bad == 0;
  });
}

/// How many of these elements their stage would refute if they were 0.
std::size_t refuted_as_zeros(const trial& t, const stage_roundings& roundings, const std::string& name,
                             const std::vector<blind_elements>& places) {
  result zeros = t.r;
  tensor& own = name == "o" ? zeros.o : *zeros.final_state;
  std::vector<double> values = own.to_doubles();
  for (const blind_elements& x : places) {
    for (std::size_t row = 0; row < x.rows; ++row)
      std::fill_n(values.begin() + static_cast<std::ptrdiff_t>(x.first + row * x.stride), x.count, 0.0);
  }
  own = tensor::from_doubles(own.element_format(), own.shape(), values, name);
  stage_options how;
  how.threads = t.options.threads;
  for (const lane& at : t.lanes) how.judged_tokens.push_back(at.judged);
  const stage_report report = measure_stages_at_least(t.p, zeros, roundings, how);
  const stage_measurement* const m = report.find(name);
  return m == nullptr ? 0 : m->bad;
}

/// A limit that zeros would keep matters little where their stage would not, and every stage before it was judged.
void ask_the_stages(const trial& t, const stage_roundings& roundings, tensor_reach& of) {
  limit_reach& counts = of.counts;
  if (of.farther != nullptr || of.blind.empty()) return;
  std::size_t blind = 0;
  for (const blind_elements& x : of.blind) blind += x.count * x.rows;
  const auto few = static_cast<std::size_t>(most_not_judged * static_cast<double>(counts.elements));
  if (refuted_as_zeros(t, roundings, counts.tensor, of.blind) + few < blind) return;
  counts.blind -= blind;
  of.widest = nullptr;
  of.quiet.clear();
}

/// The tiles of a place that has limits which refute zeros of the whole of it.
void add_tiles(const trial& t, place at, bool state, const blind_elements& own, double rounds_to_zero, const tiles_judged& judged,
               tensor_reach& to) {
  if (at.refuted() || !at.refutes_zeros() || at.is_farther_than_zeros()) return;
  const std::size_t V = t.p.value_dim(), rows = state ? t.p.key_dim() : own.rows, stride = state ? V : own.stride;
  const std::vector<double>& values = (state ? t.truth.final_state : t.truth.o).value;
  std::vector<double> exact;
  exact.reserve(rows * V);
  for (std::size_t i = 0; i < rows; ++i) {
    const auto from = values.begin() + static_cast<std::ptrdiff_t>(own.first + i * stride);
    exact.insert(exact.end(), from, from + static_cast<std::ptrdiff_t>(V));
  }
  for (const tile& x : tiles_that_may_be_zeros(at.rms, at.max, exact, V, state ? tiling::width : t.unit, rounds_to_zero)) {
    if (judged.refutes_zeros(x)) continue;
    to.counts.blind += x.elements();
    to.blind.push_back({own.first + x.first_row * stride + x.first_column, x.columns, stride, x.rows});
    if (to.quiet.empty()) to.quiet = x.text(at.rms, state ? 0 : 1);
  }
}

}  // namespace

std::vector<tile> tiles_that_may_be_zeros(const judged_statistic& rms, const judged_statistic& max, std::span<const double> exact,
                                          std::size_t columns, std::size_t unit, double rounds_to_zero) {
  constexpr std::size_t width = 16;
  const std::size_t rows = exact.size() / columns;
  // The square of the rms error may be larger by this, summed over the place.
  const double room = rms.judged == verdict::holds
                          ? static_cast<double>(exact.size()) * (rms.limit.value - rms.got) * (rms.limit.value + rms.got)
                          : std::numeric_limits<double>::infinity();
  const double most = max.judged == verdict::holds ? max.limit.value : std::numeric_limits<double>::infinity();
  std::vector<tile> out;
  for (std::size_t r = 0, height = 0; r < rows; r += height) {
    height = std::min(unit == 0 ? rows : unit, rows - r);
    for (std::size_t c = 0; c < columns; c += width) {
      tile x{r, height, c, std::min(width, columns - c)};
      double largest = 0, squares = 0;
      for (std::size_t i = r; i < r + height; ++i) {
        for (std::size_t j = c; j < c + x.columns; ++j) {
          const double value = exact[i * columns + j];
          largest = std::max(largest, std::fabs(value));
          squares += value * value;
        }
      }
      x.rms = std::sqrt(squares / static_cast<double>(x.elements()));
      const bool is_quiet = rms.judged != verdict::holds || x.rms <= rms.limit.value;
      if (is_quiet && largest > rounds_to_zero && largest <= most && squares <= room) out.push_back(x);
    }
  }
  return out;
}

std::string judge_reach(const trial& t, const drawn& runs, const stage_roundings* roundings, plan_report& out) {
  std::map<std::string, tensor_reach> tensors;
  std::vector<judged_statistic>& all = out.statistics;
  std::map<std::size_t, std::size_t> tiles;  // by place of an rms
  for (std::size_t i = 0; i < runs.beside.size(); ++i) tiles[runs.beside[i]] = runs.pairs() + i;
  std::size_t next = 0;
  for (std::size_t i = 0; i < t.lanes.size(); ++i) {
    const lane& at = t.lanes[i];
    const auto where = buckets(at.judged, t.unit);
    const std::array<tiling, 2> outputs = tiles_of_outputs(at, where, t.p);
    for (std::size_t b = 0; b < where.size() + (at.state ? 1 : 0); ++b, next += 2) {
      const bool state = b == where.size();
      place here{all[next], all[next + 1]};
      const std::size_t V = t.p.value_dim(), KV = t.p.key_dim() * V, row = t.p.value_heads() * V;
      const blind_elements own =
          state ? blind_elements{(at.sequence * t.p.value_heads() + at.head) * KV, KV, KV, 1}
                : blind_elements{(at.range.batch * t.p.tokens() + at.range.first_token + where[b].first) * row + at.head * V, V,
                                 row, where[b].last - where[b].first};
      const format& stored = (state ? *t.r.final_state : t.r.o).element_format();
      tensor_reach& to = tensors[here.rms.tensor];
      to.counts.tensor = here.rms.tensor;
      add(here, own, smallest_subnormal(stored) / 2, to);
      tiles_judged judged;
      if (const auto found = tiles.find(next); found != tiles.end()) {
        judged = {&all[found->second], &runs.scales[i][state ? 1 : 0], outputs[state ? 1 : 0], state ? 0 : where[b].first};
      }
      add_tiles(t, here, state, own, smallest_subnormal(stored) / 2, judged, to);
    }
  }
  for (const auto& [rms, at] : tiles) say_nothing_if_zeros_pass(all[at]);
  for (const lane& at : t.lanes) {
    for (const auto& [name, count] : {std::pair("o", at.without_limit_o), {"final_state", at.without_limit_state}}) {
      if (count == 0) continue;
      tensors[name].counts.blind += count;
      tensors[name].counts.overflow += count;
    }
    if (at.lost == 0) continue;
    tensor_reach& o = tensors["o"];
    o.counts.tensor = "o";
    o.counts.elements += at.lost * t.p.value_dim();
    o.counts.blind += at.lost * t.p.value_dim();
    if (o.lost == nullptr) o.lost = &at;
  }
  std::string reason;
  for (const char* name : {"o", "final_state"}) {
    const auto found = tensors.find(name);
    if (found == tensors.end()) continue;
    if (roundings != nullptr && every_stage_was_judged(out)) ask_the_stages(t, *roundings, found->second);
    out.reach.push_back(found->second.counts);
    if (reason.empty()) reason = reason_of(found->second);
  }
  return reason;
}

}  // namespace deltaproof::referee_detail
