// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
#include "deltaproof/check/witness.hpp"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "deltaproof/support/errors.hpp"

namespace deltaproof {
namespace {

struct head_place {
  std::size_t sequence = 0;
  std::size_t head = 0;
  std::size_t tokens = 0;  ///< the evidence lies before this token; 0: not known
};

/// Heads that the report points at, the plainest evidence first, then all others.
std::vector<head_place> heads_to_try(const problem& p, const result& r, const check_report& found) {
  std::vector<head_place> out;
  std::set<std::pair<std::size_t, std::size_t>> known;
  const auto add = [&](const head_place& h) {
    if (known.emplace(h.sequence, h.head).second) out.push_back(h);
  };
  const std::size_t n = p.num_householder, C = r.chunk_size.value_or(1);
  if (found.conformance && found.conformance->measured_stages) {
    for (const stage_measurement& m : found.conformance->measured_stages->stages) {
      if (m.first_bad && m.name == found.conformance->first_bad_stage)
        add({m.first_bad->sequence, m.first_bad->head, (m.first_bad->chunk + 1) * C / n});
    }
  }
  for (const tensor_report& t : found.tensors) {
    if (t.first_nonfinite)
      add({t.first_nonfinite->sequence, t.first_nonfinite->head,
           t.first_nonfinite->token_in_sequence ? *t.first_nonfinite->token_in_sequence + 1 : 0});
  }
  if (found.conformance) {
    std::vector<const judged_statistic*> bad;
    for (const judged_statistic& s : found.conformance->statistics) {
      if (s.judged == verdict::refuted) bad.push_back(&s);
    }
    // By excess; those of equal excess in the order they were judged in.
    std::sort(bad.begin(), bad.end(), [](const judged_statistic* a, const judged_statistic* b) {
      const double left = a->got * b->limit.value, right = b->got * a->limit.value;
      return left > right || (left == right && a < b);
    });
    for (const judged_statistic* s : bad) add({s->sequence, s->head, s->last_token});
  }
  for (const tensor_report& t : found.tensors) {
    if (t.worst) add({t.worst->sequence, t.worst->head, 0});
  }
  for (std::size_t s = 0; s < p.sequence_count(); ++s) {
    for (std::size_t h = 0; h < p.value_heads(); ++h) add({s, h, 0});
  }
  return out;
}

bool is_gradient(const std::string& tensor) {
  return std::find(gradient_names.begin(), gradient_names.end(), tensor) != gradient_names.end();
}

/// Judges slices of one failure and remembers which still fail the same way.
class slicer {
 public:
  slicer(const problem& p, const result& r, const check_report& found, const check_options& options,
         const trial_progress& progress)
      : p_(p), r_(r), options_(options), wanted_(failure_of(found)), progress_(progress) {
    // What was remembered of runs belongs to another problem.
    options_.memory.reset();
    options_.solver = {};
    kept.given = p;
    kept.gave = r;
    kept.report = found;
    const auto sequences = p.sequences();
    single_ = sequences.size() == 1 && p.value_heads() == 1 && p.key_heads() == 1;
  }

  small_failure kept;

  [[nodiscard]] bool stopped() const { return options_.stop != nullptr && *options_.stop; }
  [[nodiscard]] bool single() const { return single_; }
  [[nodiscard]] const failure& wanted() const { return wanted_; }

  /// Whether the slice fails the same way; the smallest that does is kept.
  bool fails(const head_slice& at) {
    if (at.tokens == 0 || stopped()) return false;
    const auto key = std::make_tuple(at.sequence, at.value_head, at.tokens);
    if (const auto known = tried_.find(key); known != tried_.end()) return known->second;
    if (progress_) progress_(kept.judged, at);
    const problem p = slice(p_, at);
    const result r = slice(r_, p_, at);
    check_options how = options_;
    if (!r.final_state) std::erase_if(how.judge.bounds, [](const tensor_bound& b) { return b.tensor == "final_state"; });
    std::erase_if(how.judge.bounds, [](const tensor_bound& b) { return is_gradient(b.tensor); });
    ++kept.judged;
    check_report report = check(p, r, how);
    const bool same = same_failure(failure_of(report), wanted_);
    tried_[key] = same;
    if (same && (!kept.at || at.tokens < kept.at->tokens)) {
      kept.at = at;
      kept.from = {p_.sequences()[at.sequence].batch, at.sequence, at.value_head, p_.key_head(at.value_head)};
      kept.given = p;
      kept.gave = r;
      kept.report = std::move(report);
    }
    return same;
  }

 private:
  const problem& p_;
  const result& r_;
  check_options options_;
  failure wanted_;
  const trial_progress& progress_;
  std::map<std::tuple<std::size_t, std::size_t, std::size_t>, bool> tried_;
  bool single_ = false;
};

std::size_t unit_of(const problem& p, const result& r) {
  return path_of(r) == path_kind::chunk && r.chunk_size ? std::max<std::size_t>(1, *r.chunk_size / p.num_householder) : 64;
}

/// Fewest tokens in (lo, hi] that fail, by bisection in steps of `unit`; hi fails, lo does not.
std::size_t bisect(slicer& s, head_slice at, std::size_t lo, std::size_t hi, std::size_t unit) {
  while (hi - lo > unit) {
    const std::size_t middle = lo + std::max<std::size_t>(1, (hi - lo) / unit / 2) * unit;
    at.tokens = middle;
    (s.fails(at) ? hi : lo) = middle;
    if (s.stopped()) break;
  }
  return hi;
}

/// A head that fails as the whole does, or nothing.
std::optional<head_place> failing_head(slicer& s, const problem& p, const std::vector<head_place>& heads, std::size_t most,
                                       std::size_t& tried) {
  const auto sequences = p.sequences();
  for (const head_place& h : heads) {
    if (tried == most || s.stopped()) break;
    ++tried;
    if (s.single() || s.fails({h.sequence, h.head, sequences[h.sequence].tokens})) return h;
  }
  return std::nullopt;
}

std::string kept_text(const slicer& s, const problem& p, std::size_t heads_tried) {
  const std::size_t heads = p.value_heads() * p.sequence_count();
  const std::string stop = s.stopped() ? "; the search was stopped early, so a smaller part may exist" : "";
  if (!s.kept.at) {
    if (s.single())
      return "the whole problem, which has one head: no smaller part was found that is refuted in the same way" + stop;
    if (heads_tried == 0) return "the whole problem: no head was judged alone" + stop;
    return "the whole problem: none of the " + std::to_string(heads_tried) + " heads tried (of " + std::to_string(heads) +
           ") is refuted in the same way when judged alone" + stop;
  }
  const head_slice& at = *s.kept.at;
  const std::size_t all = p.sequences()[at.sequence].tokens;
  return "head " + std::to_string(at.value_head) + " of sequence " + std::to_string(at.sequence) + ", " +
         (at.tokens == all ? "all " + std::to_string(all) + " tokens"
                           : "the first " + std::to_string(at.tokens) + " of " + std::to_string(all) + " tokens") +
         "; found by judging " + std::to_string(s.kept.judged) + (s.kept.judged == 1 ? " smaller part" : " smaller parts") +
         " of the problem" + stop;
}

}  // namespace

std::string renumbered(std::string text, const original_head& of) {
  const std::string sequence = std::to_string(of.sequence), head = std::to_string(of.head),
                    key_head = std::to_string(of.key_head);
  const std::pair<std::string, std::string> forms[] = {
      {"sequence 0, head 0", "sequence " + sequence + ", head " + head},
      {"sequence 0 head 0", "sequence " + sequence + " head " + head},
      {"sequence 0, key head 0", "sequence " + sequence + ", key head " + key_head},
      {"sequence 0 key head 0", "sequence " + sequence + " key head " + key_head},
      {"head 0 of sequence 0", "head " + head + " of sequence " + sequence}};
  for (const auto& [from, to] : forms) {
    for (std::size_t at = text.find(from); at != std::string::npos; at = text.find(from, at)) {
      const std::size_t after = at + from.size();
      const bool whole = after == text.size() || text[after] < '0' || text[after] > '9';
      if (whole) text.replace(at, from.size(), to);
      at += whole ? to.size() : from.size();
    }
  }
  return text;
}

check_report renumbered(check_report report, const original_head& of) {
  const auto said = [&of](std::string& text) { text = renumbered(std::move(text), of); };
  const auto moved = [&of](auto& place) {
    if (!place) return;
    place->batch = of.batch;
    place->sequence = of.sequence;
    place->head = of.head;
  };
  said(report.reason);
  for (std::string& other : report.other_plans) said(other);
  for (tensor_report& t : report.tensors) {
    moved(t.worst);
    moved(t.first_nonfinite);
    moved(t.first_beyond_range);
  }
  for (unread_entries& x : report.unread) moved(x.first);
  for (precondition& p : report.preconditions) {
    for (auto* const place : {&p.first, &p.worst_at}) {
      moved(*place);
      if (*place && p.name == "key_norm") (*place)->head = of.key_head;
    }
  }
  if (report.diverges) {
    report.diverges->first.sequence = of.sequence;
    report.diverges->first.value_head = of.head;
  }
  if (!report.conformance) return report;
  plan_report& plan = *report.conformance;
  for (std::string* text : {&plan.reason, &plan.slice, &plan.adequacy.reason, &plan.power.slice}) said(*text);
  for (range_report& r : plan.adequacy.ranges) said(r.says);
  for (judged_stage& s : plan.stages) said(s.reason);
  for (judged_statistic& s : plan.statistics) {
    s.sequence = of.sequence;
    s.head = s.tensor == "dq" || s.tensor == "dk" ? of.key_head : of.head;
  }
  if (plan.measured_stages) {
    for (stage_measurement& m : plan.measured_stages->stages) {
      moved(m.worst);
      moved(m.first_bad);
    }
  }
  return report;
}

failure failure_of(const check_report& report) {
  failure out;
  out.refuted = report.judged == verdict::refuted;
  if (report.conformance) {
    out.first_bad = report.conformance->first_bad_stage;
    out.inadequate = !report.conformance->adequacy.adequate;
  }
  for (const tensor_report& t : report.tensors) {
    if (out.first_bad.empty() && t.judged == verdict::refuted) out.first_bad = t.name;
  }
  if (out.refuted && out.first_bad.empty() && !out.inadequate && !report.unread.empty()) out.first_bad = "unread entries";
  return out;
}

bool same_failure(const failure& a, const failure& b) {
  return a.refuted && b.refuted && a.first_bad == b.first_bad && (!a.first_bad.empty() || a.inadequate == b.inadequate);
}

small_failure smallest_failure(const problem& p, const result& r, const check_report& found, const check_options& options,
                               std::size_t most_heads, const trial_progress& progress) {
  slicer s(p, r, found, options, progress);
  if (is_gradient(s.wanted().first_bad)) {
    s.kept.says =
        "the whole problem: " + s.wanted().first_bad + " is refuted, and gradients are not cut to fewer heads or tokens";
    return std::move(s.kept);
  }
  std::size_t tried = 0;
  const auto head = failing_head(s, p, heads_to_try(p, r, found), most_heads, tried);
  // A final state is that of all tokens: with fewer there is none.
  if (head && s.wanted().first_bad != "final_state") {
    const std::size_t all = p.sequences()[head->sequence].tokens, unit = unit_of(p, r);
    head_slice at{head->sequence, head->head, all};
    std::size_t hi = all;
    if (const std::size_t hint = (head->tokens + unit - 1) / unit * unit; hint > 0 && hint < all) {
      at.tokens = hint;
      if (s.fails(at)) hi = hint;
    }
    hi = bisect(s, at, 0, hi, unit);
    // The bisection may have stepped over a whole chunk that fails; the tail is cut inside the last one.
    bisect(s, at, hi > unit ? hi - unit : 0, hi, 1);
  }
  s.kept.says = kept_text(s, p, tried);
  return std::move(s.kept);
}

small_failure shrunk(const problem& p, const result& r, const check_report& found, const check_options& options,
                     const trial_progress& progress) {
  slicer s(p, r, found, options, progress);
  if (is_gradient(s.wanted().first_bad)) {
    s.kept.says =
        "the whole problem: " + s.wanted().first_bad + " is refuted, and gradients are not cut to fewer heads or tokens";
    return std::move(s.kept);
  }
  std::size_t tried = 0;
  const auto head = failing_head(s, p, heads_to_try(p, r, found), p.value_heads() * p.sequence_count(), tried);
  if (head && s.wanted().first_bad != "final_state") {
    std::size_t tokens = p.sequences()[head->sequence].tokens;
    // Each length that fails starts over with steps of half of it; a cut that is one token short fails no more.
    for (std::size_t step = tokens / 2; step >= 1 && !s.stopped();) {
      if (tokens > step && s.fails({head->sequence, head->head, tokens - step})) {
        tokens -= step;
        step = std::min(step, tokens / 2);
      } else {
        step /= 2;
      }
    }
  }
  s.kept.says = kept_text(s, p, tried);
  return std::move(s.kept);
}

check_options options_of(const check_record& record) {
  check_options out;
  out.judge = record.judge;
  for (const plan_source& source : record.plans)
    out.plans.push_back(parse_plan(source.text, source.path.empty() ? source.name : source.path));
  return out;
}

}  // namespace deltaproof
