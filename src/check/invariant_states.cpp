// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
//
// The life of a state: snapshot and rollback of invariant.hpp.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <memory>

#include "check/check_parts.hpp"
#include "check/invariant_parts.hpp"
#include "support/text.hpp"

namespace deltaproof::invariant_detail {
namespace {

/// `counts[s] * steps` rows of sequence s, one sequence after the other: [1, rows, ...].
tensor first_rows(const tensor& t, const problem& p, const std::vector<std::size_t>& counts, std::size_t steps) {
  std::vector<std::size_t> shape = t.shape();
  shape[0] = 1;
  shape[1] = 0;
  std::vector<std::byte> bytes;
  for (std::size_t s = 0; s < counts.size(); ++s) {
    const auto kept = rows{&t, flat_token(p, sequence_at(p, s)) * steps, counts[s] * steps}.bytes();
    bytes.insert(bytes.end(), kept.begin(), kept.end());
    shape[1] += counts[s] * steps;
  }
  return {t.element_format(), shape, bytes, t.name()};
}

/// The first `counts[s]` tokens of each sequence of a run, packed, without stages and gradients, and `state` for what they leave.
recorded_run first_tokens(const recorded_run& part, const std::vector<std::size_t>& counts, const std::optional<tensor>& state) {
  recorded_run out = part;
  const problem& given = part.given;
  const std::size_t n = given.num_householder;
  problem& p = out.given;
  p.q = first_rows(given.q, given, counts, 1);
  p.k = first_rows(given.k, given, counts, n);
  p.v = first_rows(given.v, given, counts, n);
  p.beta = first_rows(given.beta, given, counts, n);
  if (p.g) p.g = first_rows(*given.g, given, counts, 1);
  p.d_o.reset();
  p.d_final_state.reset();
  result& r = out.gave;
  r.o = first_rows(part.gave.o, given, counts, 1);
  p.cu_seqlens.clear();
  if (counts.size() > 1 || !given.cu_seqlens.empty()) {
    p.cu_seqlens.push_back(0);
    for (const std::size_t count : counts) p.cu_seqlens.push_back(p.cu_seqlens.back() + static_cast<std::int64_t>(count));
  }
  r.stages.clear();
  r.gradients.clear();
  r.backward_stages.clear();
  r.problem_sha256.clear();
  const format stored = r.final_state ? r.final_state->element_format() : fp32;
  r.state_layout = layout_kind::kv;
  r.final_state.reset();
  if (state) {
    const std::vector<double> values = state->to_doubles();
    const format& to = is_lossless(state->element_format(), stored) ? stored : state->element_format();
    r.final_state = tensor::from_doubles(to, state->shape(), values, "final_state");
  }
  return out;
}

/// How many tokens of sequence `s` of the part are those of the whole from `from` on.
std::size_t shared_tokens(const recorded_run& whole, std::size_t s, std::size_t from, const recorded_run& part) {
  const problem &w = whole.given, &p = part.given;
  const sequence_range ws = sequence_at(w, s), ps = sequence_at(p, s);
  const std::size_t n = w.num_householder, first_w = flat_token(w, ws) + from, first_p = flat_token(p, ps);
  std::size_t count = std::min(ws.tokens - from, ps.tokens);
  const auto look = [&](const tensor& a, const tensor& b, std::size_t steps) {
    const auto at = first_difference({&a, first_w * steps, count * steps}, {&b, first_p * steps, count * steps});
    if (at) count = *at / rows{&a, 0, 0}.width() / steps;
  };
  look(w.q, p.q, 1);
  look(w.k, p.k, n);
  look(w.v, p.v, n);
  look(w.beta, p.beta, n);
  if (w.g) look(*w.g, *p.g, 1);
  return count;
}

/// " of sequence 2" where there are several.
std::string of_sequence(const problem& p, std::size_t s) {
  return p.sequence_count() > 1 ? " of sequence " + std::to_string(s) : std::string();
}

/// How many tokens each sequence of part `i` keeps; `done`: those of the parts before it. Throws: as kept_parts.
std::vector<std::size_t> kept_tokens(const recorded_run& whole, std::span<const recorded_run> parts, std::size_t i,
                                     const std::vector<std::size_t>& done, invariant_kind kind) {
  const recorded_run& part = parts[i];
  const bool last = i + 1 == parts.size();
  std::vector<std::size_t> counts;
  for (std::size_t s = 0; s < done.size(); ++s) {
    const std::size_t tokens = sequence_at(part.given, s).tokens, all = sequence_at(whole.given, s).tokens;
    const std::size_t shared = shared_tokens(whole, s, done[s], part);
    // Of two parts the second one's length says where it starts, whatever the draft has in common with what was accepted.
    const std::size_t rest = parts.size() == 2 ? sequence_at(parts[1].given, s).tokens : 0;
    const std::size_t count = last || parts.size() != 2 || rest > all || all - rest > shared ? shared : all - rest;
    if ((kind != invariant_kind::rollback || last) && count != tokens) {
      const std::string at = part.problem_path + ": token " + std::to_string(count) + of_sequence(whole.given, s);
      throw domain_error(at +
                         (done[s] + count < all ? " is not the same as token " + std::to_string(done[s] + count) + " of "
                                                : std::string(" lies beyond the last token of ")) +
                         whole.problem_path + "; " +
                         (last ? "the last part must hold the remaining tokens of the whole, and no others"
                               : "each part must go on where the part before it ended; if drafted tokens were rejected, use "
                                 "`deltaproof invariant rollback`"));
    }
    counts.push_back(count);
  }
  return counts;
}

/// Each of the kept parts with the state after it, and all of them as one result of the whole.
std::vector<question_to_judge> questions_of_kept(const recorded_run& whole, const std::vector<recorded_run>& kept,
                                                 std::size_t parts, invariant_report& out) {
  std::vector<question_to_judge> asked;
  asked.push_back({"the whole", 0, true, whole});
  for (std::size_t i = 0; i < kept.size(); ++i) {
    const bool last = i + 1 == kept.size();
    if (kept[i].given.tokens() == 0) continue;
    const bool several = kept[i].given.sequence_count() > 1;
    asked.push_back({part_name(i) + (last ? std::string()
                                          : ", its first " + std::to_string(kept[i].given.tokens()) + " tokens" +
                                                (several ? " (all sequences together)" : "") + ", with the state that " +
                                                part_name(i + 1) + " starts from taken as their final_state"),
                     1, false, kept[i]});
  }
  recorded_run together = whole;
  together.gave = concatenated(whole, kept);
  together.gave.gradients.clear();
  together.result_path = out.kind == invariant_kind::rollback ? "the parts' outputs for the accepted tokens, concatenated"
                                                              : "the parts' outputs, concatenated";
  out.bits = compare_in_turn(whole, kept);
  asked.push_back({together.result_path + " and judged as the result of one call", parts, true, std::move(together)});
  return asked;
}

}  // namespace

std::vector<bit_comparison> compare_in_turn(const recorded_run& whole, std::span<const recorded_run> parts) {
  bit_comparison o{"o", 0, 0, 0, false, {}}, state{"final_state", 0, 0, 0, false, {}};
  const auto w = whole.given.sequences();
  std::vector<std::size_t> done(w.size(), 0);
  for (std::size_t i = 0; i < parts.size(); ++i) {
    const auto p = parts[i].given.sequences();
    for (std::size_t s = 0; s < w.size(); ++s) {
      compare_o(o, whole, flat_token(whole.given, w[s]) + done[s], parts[i], flat_token(parts[i].given, p[s]), p[s].tokens, i, s,
                done[s]);
      done[s] += p[s].tokens;
    }
  }
  for (std::size_t s = 0; s < w.size(); ++s) compare_state(state, whole, s, parts.back(), s, parts.size() - 1);
  return {o, state};
}

std::string part_name(std::size_t i) { return "part " + std::to_string(i + 1); }

std::string by_up_to(const bit_comparison& c) {
  return c.largest > 0 ? ", by up to " + detail::general(c.largest, 4) : std::string();
}

/// Why equal bits of these elements say nothing; empty where they do.
std::string why_vacuous(const bit_comparison& c) {
  if (c.only_value && (c.elements > 1 || *c.only_value == 0 || !std::isfinite(*c.only_value))) {
    return "every element of " + c.tensor + " that was compared is " + detail::general(*c.only_value, 4) +
           ": a kernel that ignores its inputs gives the same bits";
  }
  if (static_cast<double>(c.nonfinite) > most_not_judged * static_cast<double>(c.elements))
    return detail::share_text(c.nonfinite, c.elements) + " of the elements of " + c.tensor + " that were compared are not finite";
  return {};
}

bool restored_nothing(const recorded_run& whole, std::span<const recorded_run> parts, invariant_report& out) {
  const auto holds_no_number = [](const recorded_run& run) -> std::string {
    if (!run.given.initial_state) return {};
    const tensor& state = *run.given.initial_state;
    const std::vector<double> x = state.to_doubles();
    const auto bad = std::find_if(x.begin(), x.end(), [](double value) { return !std::isfinite(value); });
    if (bad == x.end()) return {};
    const std::size_t at = static_cast<std::size_t>(bad - x.begin()), width = state.dim(3), size = state.dim(2) * width;
    return detail::general(*bad, 4) + " in sequence " + std::to_string(at / size / state.dim(1)) + ", head " +
           std::to_string(at / size % state.dim(1)) + ", k " + std::to_string(at % size / width) + ", v " +
           std::to_string(at % width);
  };
  const bool hands_on = out.kind == invariant_kind::split || out.kind == invariant_kind::snapshot ||
                        out.kind == invariant_kind::rollback || out.kind == invariant_kind::cp;
  const auto refuse = [](const recorded_run& run, const std::string& place) {
    if (!place.empty())
      throw domain_error(run.problem_path + ": tensor initial_state: " + place +
                         "; an initial state must be finite: repair the tensor");
  };
  refuse(whole, holds_no_number(whole));
  for (std::size_t i = 0; i < parts.size(); ++i) {
    const std::string place = holds_no_number(parts[i]);
    if (i == 0 || !hands_on) refuse(parts[i], place);
    if (place.empty() || out.judged == verdict::refuted) continue;
    out.judged = verdict::refuted;
    out.reason =
        part_name(i) + " starts from a state that holds " + place + ": a slot that was never written, or a state that overflowed";
  }
  return out.judged == verdict::refuted;
}

std::vector<question_to_judge> kept_parts(const recorded_run& whole, std::span<const recorded_run> parts, invariant_report& out) {
  const std::string kind(name_of(out.kind));
  if (parts.size() < 2)
    throw format_error("invariant " + kind + ": " + std::to_string(parts.size()) +
                       " part is not enough; give at least two, in the order in which they ran, each but the first starting from "
                       "a restored state");
  const std::size_t sequences = whole.given.sequence_count();
  for (const recorded_run& part : parts) {
    require_same_question(whole, part);
    require_sequences(whole, part);
  }
  std::vector<recorded_run> kept;
  std::vector<std::size_t> done(sequences, 0);
  std::size_t dropped = 0;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    const recorded_run& part = parts[i];
    const bool last = i + 1 == parts.size();
    const std::vector<std::size_t> counts = kept_tokens(whole, parts, i, done, out.kind);
    for (std::size_t s = 0; s < sequences && i == 0; ++s) require_same_state(whole, s, part, s);
    const bool begun = std::any_of(done.begin(), done.end(), [](std::size_t tokens) { return tokens > 0; });
    if (i > 0 && !part.given.initial_state && begun)
      out.notes.push_back(part.problem_path + ": initial_state is absent, so this part starts from a state of zeros");
    for (std::size_t s = 0; s < sequences; ++s) {
      dropped += sequence_at(part.given, s).tokens - counts[s];
      done[s] += counts[s];
    }
    std::optional<tensor> state = last ? part.gave.final_state_kv() : parts[i + 1].given.initial_state;
    if (!last && !state) {
      const std::vector<std::size_t> shape{sequences, whole.given.value_heads(), whole.given.key_dim(), whole.given.value_dim()};
      state = tensor::from_doubles(fp32, shape, std::vector<double>(element_count(shape), 0.0), "initial_state");
    }
    kept.push_back(first_tokens(part, counts, state));
  }
  for (std::size_t s = 0; s < sequences; ++s) {
    const std::size_t all = sequence_at(whole.given, s).tokens;
    if (done[s] == all) continue;
    throw shape_error(parts.back().problem_path + ": the parts together hold " + std::to_string(done[s]) + " tokens" +
                      of_sequence(whole.given, s) + ", and " + whole.problem_path + " has " + std::to_string(all) +
                      "; give every part, in the order in which they ran");
  }
  if (out.kind == invariant_kind::rollback && dropped == 0) {
    out.judged = verdict::vacuous;
    out.reason = "every token of every part was accepted: nothing was rolled back";
    out.remedy = "give a part with drafted tokens that differ from the whole's, or use invariant snapshot";
    return {};
  }
  return questions_of_kept(whole, kept, parts.size(), out);
}

}  // namespace deltaproof::invariant_detail
