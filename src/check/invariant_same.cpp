// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
//
// One question asked twice: repeat (the same call) and batch (the same sequence among others) of invariant.hpp, forward and
// gradients.
#include <algorithm>
#include <cmath>

#include "check/check_parts.hpp"
#include "check/invariant_parts.hpp"
#include "deltaproof/oracle/gradients.hpp"
#include "support/text.hpp"

namespace deltaproof::invariant_detail {
namespace {

/// Gradients of one sequence in two batches: an error of this many times the other's is no rounding (three bits, as in adequacy).
constexpr double most_times = 8;

void refute_differences(invariant_report& out, const std::string& where) {
  for (const bit_comparison& c : out.bits) {
    if (c.other_format)
      throw format_error(where + ": " + c.tensor +
                         " has one format here and another in a part, so their bits cannot be compared; record " + c.tensor +
                         " in the same format in the whole and in every part");
    if (!c.first || out.judged == verdict::refuted) continue;
    out.judged = verdict::refuted;
    out.reason = c.tensor + " differs at " + describe(c) + "; " + std::to_string(c.differing) + " of " +
                 std::to_string(c.elements) + " elements differ" + by_up_to(c);
  }
}

/// Whether sequence `at` of the part is sequence `s` of the whole, input by input.
bool is_sequence(const recorded_run& whole, std::size_t s, const recorded_run& part, std::size_t at) {
  const sequence_range w = sequence_at(whole.given, s), p = sequence_at(part.given, at);
  if (w.tokens != p.tokens) return false;
  try {
    require_same_state(whole, s, part, at);
    require_same_tokens(whole, flat_token(whole.given, w), part, flat_token(part.given, p), p.tokens);
    if (!whole.gave.gradients.empty() && !part.gave.gradients.empty()) require_same_cotangents(whole, s, part, at);
  } catch (const error&) {
    return false;
  }
  return true;
}

std::string compared_text(const std::vector<bit_comparison>& bits) {
  std::string text;
  for (const bit_comparison& c : bits) {
    if (c.elements > 0) text += (text.empty() ? "" : ", ") + std::to_string(c.elements) + " elements of " + c.tensor;
  }
  return text;
}

/// Sum of (got - want)^2 and of want^2 over the elements of one head of a sequence; nothing is said where `want` is not known.
struct head_error {
  double error = 0, size = 0;
  bool nonfinite = false;
};

/// The elements of head `head` in `count` rows from `first` on, as [row][element]; of a state a row is a head.
template <class F>
void each_element(const tensor& t, bool state, std::size_t first, std::size_t count, std::size_t head, const F& f) {
  const std::size_t width = rows{&t, 0, 0}.width();
  if (state) {
    for (std::size_t i = 0; i < width; ++i) f((first + head) * width + i, i);
    return;
  }
  const std::size_t each = t.rank() > 3 ? t.dim(3) : 1;
  for (std::size_t row = 0; row < count; ++row) {
    for (std::size_t i = 0; i < each; ++i) f((first + row) * width + head * each + i, row * each + i);
  }
}

/// What one gradient of a sequence is in two batches, each beside the exact one. Empty where the part is no worse than allowed.
std::string worse_in_part(const std::string& name, const recorded_run& whole, const recorded_run& part, const batch_match& m,
                          const reference_tensor& want) {
  const tensor &w = whole.gave.gradients.at(name), &p = part.gave.gradients.at(name);
  const bool state = name == "dinitial_state", keys = name == "dq" || name == "dk";
  const std::size_t steps = name == "dq" || name == "dg" ? 1 : whole.given.num_householder;
  const std::size_t heads = keys ? whole.given.key_heads() : whole.given.value_heads();
  const sequence_range ws = sequence_at(whole.given, m.sequence), ps = sequence_at(part.given, m.at);
  const std::size_t from = state ? m.sequence * heads : flat_token(whole.given, ws) * steps;
  const std::size_t first = state ? m.at * heads : flat_token(part.given, ps) * steps;
  for (std::size_t head = 0; head < heads; ++head) {
    std::vector<std::size_t> in_part;
    each_element(p, state, first, ws.tokens * steps, head, [&](std::size_t flat, std::size_t) { in_part.push_back(flat); });
    head_error a, b;
    each_element(w, state, from, ws.tokens * steps, head, [&](std::size_t flat, std::size_t i) {
      const double exact = want.value[flat], x = w.at(flat), y = p.at(in_part[i]);
      if (!std::isfinite(exact) || !std::isfinite(want.radius[flat]) || !std::isfinite(x)) return;
      a.error += (x - exact) * (x - exact);
      a.size += exact * exact;
      if (std::isfinite(y)) {
        b.error += (y - exact) * (y - exact);
      } else {
        b.nonfinite = true;
      }
    });
    const double unit = std::ldexp(1.0, -w.element_format().precision) * std::sqrt(a.size);
    const double limit = most_times * std::max(std::sqrt(a.error), unit);
    if (!b.nonfinite && std::sqrt(b.error) <= limit) continue;
    return name + " of sequence " + std::to_string(m.sequence) + ", " + detail::head_text(name, head) + ", in " +
           part_name(m.part) +
           (b.nonfinite ? " is not finite where that of the whole is"
                        : " has a relative rms error of " + detail::general(std::sqrt(b.error / a.size), 3) + ", against " +
                              detail::general(std::sqrt(a.error / a.size), 3) + " in the whole: more than " +
                              detail::general(most_times, 2) + " times as much");
  }
  return {};
}

}  // namespace

void compare_repeats(const recorded_run& whole, std::span<const recorded_run> parts, invariant_report& out) {
  out.bits = comparisons_of(whole);
  for (std::size_t i = 0; i < parts.size(); ++i) {
    const recorded_run& part = parts[i];
    std::error_code ignored;
    if (std::filesystem::equivalent(whole.result_path, part.result_path, ignored))
      throw format_error(part.result_path +
                         ": this file is also the result of the whole; record a second call, and give its result");
    require_same_question(whole, part);
    require_same_kernel(whole, part);
    const auto w = whole.given.sequences(), p = part.given.sequences();
    if (w != p)
      throw shape_error(part.problem_path + ": its sequences differ in number, length or packing from those of " +
                        whole.problem_path + "; repeat compares two runs of one call: record both on the same inputs");
    for (std::size_t s = 0; s < w.size(); ++s) {
      require_same_state(whole, s, part, s);
      require_same_tokens(whole, flat_token(whole.given, w[s]), part, flat_token(part.given, p[s]), w[s].tokens);
      if (!whole.gave.gradients.empty() && !part.gave.gradients.empty()) require_same_cotangents(whole, s, part, s);
      compare_sequence(out.bits, whole, s, part, s, i);
    }
  }
  refute_differences(out, whole.result_path);
  if (out.judged == verdict::refuted) return;
  std::string compared;
  for (const bit_comparison& c : out.bits) {
    const std::string why = c.elements > 0 ? why_vacuous(c) : "";
    if (!why.empty() && (c.tensor == "o" || c.tensor == "final_state")) {
      out.judged = verdict::vacuous;
      out.reason = "nothing differs, but " + why;
      out.remedy = "record a run whose outputs are finite, are not all 0, and depend on its inputs";
      return;
    }
    if (c.elements > 0) compared += (compared.empty() ? "" : ", ") + c.tensor;
  }
  out.reason = "the " + std::to_string(parts.size() + 1) + " calls gave the same bits of " + compared;
}

std::vector<batch_match> compare_batches(const recorded_run& whole, std::span<const recorded_run> parts, invariant_report& out) {
  out.bits = comparisons_of(whole);
  const std::size_t sequences = whole.given.sequence_count();
  std::vector<batch_match> matches;
  bool elsewhere = false;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    require_same_question(whole, parts[i]);
    const std::size_t own = parts[i].given.sequence_count();
    elsewhere = elsewhere || own != sequences;
    for (std::size_t at = 0; at < own; ++at) {
      // Where the batch holds one sequence twice, its own index is the one that is meant.
      std::size_t s = at < sequences && is_sequence(whole, at, parts[i], at) ? at : 0;
      while (s < sequences && !is_sequence(whole, s, parts[i], at)) ++s;
      if (s == sequences)
        throw domain_error(parts[i].problem_path + ": sequence " + std::to_string(at) + " matches no sequence of " +
                           whole.problem_path + "; record both from the same tensors");
      elsewhere = elsewhere || s != at;
      matches.push_back({i, at, s});
      compare_sequence(out.bits, whole, s, parts[i], at, i);
    }
  }
  if (!elsewhere) {
    out.judged = verdict::vacuous;
    out.reason = "every part is the whole batch in the same order, so no difference could have shown";
    out.remedy = "give parts with fewer sequences, or the same ones at other indices";
    return matches;
  }
  const bit_comparison &o = out.bits[0], &state = out.bits[1];
  if (o.differing > 0 || state.differing > 0 || o.other_format || state.other_format || o.elements == 0) return matches;
  const std::string why = why_vacuous(o);
  if (!why.empty()) {
    out.judged = verdict::vacuous;
    out.reason = "nothing differs, but " + why;
    out.remedy = "record a run whose outputs are finite, are not all 0, and depend on its inputs";
    return matches;
  }
  std::vector<bit_comparison> same;
  std::copy_if(out.bits.begin(), out.bits.end(), std::back_inserter(same), [](const auto& c) { return c.differing == 0; });
  out.reason = "the bits are the same in all " + compared_text(same);
  return matches;
}

void judge_batch_gradients(const recorded_run& whole, std::span<const recorded_run> parts, std::span<const batch_match> matches,
                           const check_options& options, invariant_report& out) {
  const bool differ = std::any_of(out.bits.begin() + 2, out.bits.end(), [](const auto& c) { return c.differing > 0; });
  if (!differ || out.judged == verdict::refuted) return;
  question ask;
  ask.max_bits = options.judge.max_bits;
  ask.threads = options.threads;
  ask.stop = options.stop;
  const reference_gradients exact = solve_gradients(whole.given, ask);
  if (exact.stopped) {
    out.stopped = true;
    out.judged = combine(out.judged, verdict::undecided);
    out.reason =
        "gradients differ in bits, and the check was stopped before the exact gradients were computed, so they were not judged";
    out.remedy = "allow more time: give a larger --max-seconds, or leave it out";
    return;
  }
  std::string differing;
  for (std::size_t i = 2; i < out.bits.size(); ++i) {
    const bit_comparison& c = out.bits[i];
    if (c.differing == 0) continue;
    differing += (differing.empty() ? "" : ", ") + c.tensor;
    for (const batch_match& m : matches) {
      if (!parts[m.part].gave.gradients.contains(c.tensor)) continue;
      const std::string worse = worse_in_part(c.tensor, whole, parts[m.part], m, exact.tensors.find(c.tensor)->second);
      if (worse.empty()) continue;
      out.judged = verdict::refuted;
      out.reason = worse + "; the first bits that differ: " + describe(c);
      out.remedy.clear();
      return;
    }
  }
  out.reason += "; " + differing + " differ in bits; in no part is their error more than " + detail::general(most_times, 2) +
                " times the larger of that in the whole and one rounding";
}

}  // namespace deltaproof::invariant_detail
