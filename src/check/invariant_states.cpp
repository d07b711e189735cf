// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
//
// The life of a state: repeat, batch, snapshot and rollback of invariant.hpp.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <memory>

#include "check/check_parts.hpp"
#include "check/invariant_parts.hpp"
#include "support/text.hpp"

namespace deltaproof::invariant_detail {
namespace {

/// Every element of two tensors of one shape; the place of a difference is its index [B, T, heads, ...].
void compare_tensor(bit_comparison& to, const tensor& w, const tensor& p, std::size_t part) {
  if (w.dtype() != p.dtype() || w.shape() != p.shape()) {
    to.other_format = true;
    return;
  }
  const std::size_t bytes = element_bytes(w);
  std::optional<double> only = w.size() > 0 ? std::optional(w.at(0)) : std::nullopt;
  for (std::size_t i = 0; i < w.size(); ++i) {
    const double x = w.at(i), y = p.at(i);
    if (only && !(x == *only)) only.reset();
    if (!std::isfinite(x)) ++to.nonfinite;
    if (std::memcmp(w.bytes().data() + i * bytes, p.bytes().data() + i * bytes, bytes) == 0) continue;
    ++to.differing;
    if (std::isfinite(x) && std::isfinite(y)) to.largest = std::max(to.largest, std::abs(x - y));
    if (to.first) continue;
    bit_difference place{part, 0, 0, {}, {}, bits_of(w, i), bits_of(p, i), x, y};
    std::size_t rest = i;
    for (std::size_t axis = w.rank(); axis-- > 0; rest /= w.dim(axis)) {
      const std::size_t index = rest % w.dim(axis);
      if (axis == 0) place.sequence = index;
      if (axis == 1) place.token = index;
      if (axis == 2) place.head = index;
      if (axis > 2) place.element.insert(place.element.begin(), index);
    }
    to.first = place;
  }
  to.elements += w.size();
  to.only_value = only;
}

void refute_differences(invariant_report& out, const std::string& where) {
  for (const bit_comparison& c : out.bits) {
    if (c.other_format)
      throw format_error(where + ": " + c.tensor +
                         " has another format in a part; the bits of two formats cannot be compared: " + "record one format");
    if (!c.first || out.judged == verdict::refuted) continue;
    out.judged = verdict::refuted;
    out.reason = c.tensor + " differs at " + describe(*c.first) + "; " + std::to_string(c.differing) + " of " +
                 std::to_string(c.elements) + " elements differ, by up to " + detail::general(c.largest, 4);
  }
}

/// Whether sequence `at` of the part is sequence `s` of the whole, input by input.
bool is_sequence(const recorded_run& whole, std::size_t s, const recorded_run& part, std::size_t at) {
  const sequence_range w = sequence_at(whole.given, s), p = sequence_at(part.given, at);
  if (w.tokens != p.tokens) return false;
  try {
    require_same_state(whole, s, part, at);
    require_same_tokens(whole, flat_token(whole.given, w), part, flat_token(part.given, p), p.tokens);
  } catch (const error&) {
    return false;
  }
  return true;
}

tensor first_rows(const tensor& t, std::size_t count) {
  std::vector<std::size_t> shape = t.shape();
  shape[1] = count;
  const rows kept{&t, 0, count};
  return {t.element_format(), shape, kept.bytes(), t.name()};
}

/// The first `count` tokens of a run of one sequence, without stages and gradients, and `state` for what they leave.
recorded_run first_tokens(const recorded_run& part, std::size_t count, const std::optional<tensor>& state) {
  recorded_run out = part;
  const std::size_t n = part.given.num_householder;
  problem& p = out.given;
  p.q = first_rows(p.q, count);
  p.k = first_rows(p.k, count * n);
  p.v = first_rows(p.v, count * n);
  p.beta = first_rows(p.beta, count * n);
  if (p.g) p.g = first_rows(*p.g, count);
  p.d_o.reset();
  p.d_final_state.reset();
  if (!p.cu_seqlens.empty()) p.cu_seqlens = {0, static_cast<std::int64_t>(count)};
  result& r = out.gave;
  r.o = first_rows(r.o, count);
  r.stages.clear();
  r.gradients.clear();
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

/// How many of the part's tokens are those of the whole from `from` on.
std::size_t shared_tokens(const recorded_run& whole, std::size_t from, const recorded_run& part) {
  const problem &w = whole.given, &p = part.given;
  const std::size_t n = w.num_householder;
  std::size_t count = std::min(w.tokens() - from, p.tokens());
  const auto look = [&](const tensor& a, const tensor& b, std::size_t steps) {
    const auto at = first_difference({&a, from * steps, count * steps}, {&b, 0, count * steps});
    if (at) count = *at / rows{&a, 0, 0}.width() / steps;
  };
  look(w.q, p.q, 1);
  look(w.k, p.k, n);
  look(w.v, p.v, n);
  look(w.beta, p.beta, n);
  if (w.g) look(*w.g, *p.g, 1);
  return count;
}

void require_one_sequence(const recorded_run& run) {
  if (run.given.sequence_count() != 1 || run.given.batch() != 1)
    throw shape_error(run.problem_path + ": " + std::to_string(run.given.sequence_count()) +
                      " sequences; snapshot and rollback follow one, record each by itself");
}

}  // namespace

std::string part_name(std::size_t i) { return "part " + std::to_string(i + 1); }

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

void compare_repeats(const recorded_run& whole, std::span<const recorded_run> parts, invariant_report& out) {
  bit_comparison o{"o", 0, 0, 0, false, {}}, state{"final_state", 0, 0, 0, false, {}};
  std::vector<bit_comparison> gradients;
  for (const auto& [name, t] : whole.gave.gradients) gradients.push_back({name, 0, 0, 0, false, {}});
  for (std::size_t i = 0; i < parts.size(); ++i) {
    const recorded_run& part = parts[i];
    std::error_code ignored;
    if (std::filesystem::equivalent(whole.result_path, part.result_path, ignored))
      throw format_error(part.result_path + ": is the whole's own file; record a second call");
    require_same_question(whole, part);
    require_same_kernel(whole, part);
    const auto w = whole.given.sequences(), p = part.given.sequences();
    if (w != p)
      throw shape_error(part.problem_path + ": other sequences than in " + whole.problem_path + "; repeat is one call again");
    for (std::size_t s = 0; s < w.size(); ++s) {
      require_same_state(whole, s, part, s);
      require_same_tokens(whole, flat_token(whole.given, w[s]), part, flat_token(part.given, p[s]), w[s].tokens);
      compare_o(o, whole, flat_token(whole.given, w[s]), part, flat_token(part.given, p[s]), w[s].tokens, i, s, 0);
      compare_state(state, whole, s, part, s, i);
    }
    for (bit_comparison& c : gradients) {
      const auto found = part.gave.gradients.find(c.tensor);
      if (found != part.gave.gradients.end()) compare_tensor(c, whole.gave.gradients.at(c.tensor), found->second, i);
    }
  }
  out.bits = {o, state};
  out.bits.insert(out.bits.end(), gradients.begin(), gradients.end());
  refute_differences(out, whole.result_path);
  if (out.judged == verdict::refuted) return;
  std::string compared;
  for (const bit_comparison& c : out.bits) {
    const std::string why = c.elements > 0 ? why_vacuous(c) : "";
    if (!why.empty() && (c.tensor == "o" || c.tensor == "final_state")) {
      out.judged = verdict::vacuous;
      out.reason = "nothing differs, but " + why;
      out.remedy = "record a run whose outputs are finite and depend on its inputs";
      return;
    }
    if (c.elements > 0) compared += (compared.empty() ? "" : ", ") + c.tensor;
  }
  out.reason = "the same bits in " + compared + " of " + std::to_string(parts.size() + 1) + " calls";
}

void compare_batches(const recorded_run& whole, std::span<const recorded_run> parts, invariant_report& out) {
  bit_comparison o{"o", 0, 0, 0, false, {}}, state{"final_state", 0, 0, 0, false, {}};
  const auto w = whole.given.sequences();
  bool elsewhere = false;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    require_same_question(whole, parts[i]);
    const auto p = parts[i].given.sequences();
    elsewhere = elsewhere || p.size() != w.size();
    for (std::size_t at = 0; at < p.size(); ++at) {
      std::size_t s = 0;
      while (s < w.size() && !is_sequence(whole, s, parts[i], at)) ++s;
      if (s == w.size())
        throw domain_error(parts[i].problem_path + ": sequence " + std::to_string(at) + " is none of " + whole.problem_path +
                           "; record both from the same tensors");
      elsewhere = elsewhere || s != at;
      compare_o(o, whole, flat_token(whole.given, w[s]), parts[i], flat_token(parts[i].given, p[at]), p[at].tokens, i, s, 0);
      compare_state(state, whole, s, parts[i], at, i);
    }
  }
  out.bits = {o, state};
  if (!elsewhere) {
    out.judged = verdict::vacuous;
    out.reason = "every part is the whole batch in its own order: nothing could have changed";
    out.remedy = "give parts with fewer sequences, or the same ones at other indices";
    return;
  }
  if (o.differing > 0 || state.differing > 0 || o.other_format || state.other_format || o.elements == 0) return;
  const std::string why = why_vacuous(o);
  if (!why.empty()) {
    out.judged = verdict::vacuous;
    out.reason = "nothing differs, but " + why;
    out.remedy = "record a run whose outputs are finite and depend on its inputs";
    return;
  }
  out.reason = "the same bits in all " + std::to_string(o.elements) + " elements of o" +
               (state.elements > 0 ? " and " + std::to_string(state.elements) + " of final_state" : "");
}

std::vector<question_to_judge> kept_parts(const recorded_run& whole, std::span<const recorded_run> parts, invariant_report& out) {
  const std::string kind(name_of(out.kind));
  if (parts.size() < 2)
    throw format_error("invariant " + kind + ": " + std::to_string(parts.size()) +
                       " part; give at least two, in the order of time, each starting from a restored state");
  require_one_sequence(whole);
  std::vector<recorded_run> kept;
  std::size_t done = 0, dropped = 0;
  const std::size_t all = whole.given.tokens();
  for (std::size_t i = 0; i < parts.size(); ++i) {
    const recorded_run& part = parts[i];
    require_same_question(whole, part);
    require_one_sequence(part);
    const std::size_t tokens = part.given.tokens(), shared = shared_tokens(whole, done, part);
    const bool last = i + 1 == parts.size();
    // Of two parts the second one's length says where it starts, whatever the draft has in common with what was accepted.
    const std::size_t rest = parts.size() == 2 ? parts[1].given.tokens() : 0;
    const std::size_t count = last || parts.size() != 2 || rest > all || all - rest > shared ? shared : all - rest;
    if ((out.kind == invariant_kind::snapshot || last) && count != tokens) {
      throw domain_error(part.problem_path + ": token " + std::to_string(count) + " is not token " +
                         std::to_string(done + count) + " of " + whole.problem_path + "; " +
                         (last ? "the last part ends with the whole" : "where drafted tokens were not accepted ask rollback"));
    }
    if (i == 0) require_same_state(whole, 0, part, 0);
    if (i > 0 && !part.given.initial_state && done > 0)
      out.notes.push_back(part.problem_path + ": initial_state is absent: restored as zeros");
    dropped += tokens - count;
    done += count;
    std::optional<tensor> state = last ? part.gave.final_state_kv() : parts[i + 1].given.initial_state;
    if (!last && !state) {
      const std::vector<std::size_t> shape{1, whole.given.value_heads(), whole.given.key_dim(), whole.given.value_dim()};
      state = tensor::from_doubles(fp32, shape, std::vector<double>(element_count(shape), 0.0), "initial_state");
    }
    kept.push_back(first_tokens(part, count, state));
  }
  if (done != all)
    throw shape_error(parts.back().problem_path + ": ends at token " + std::to_string(done) + " of the parts together and " +
                      whole.problem_path + " has " + std::to_string(all) + "; give every part, in the order of time");
  if (out.kind == invariant_kind::rollback && dropped == 0) {
    out.judged = verdict::vacuous;
    out.reason = "every token of every part was accepted: nothing was rolled back";
    out.remedy = "give a part with drafted tokens that differ from the whole's, or ask snapshot";
    return {};
  }
  std::vector<question_to_judge> asked;
  asked.push_back({"the whole", 0, true, whole});
  for (std::size_t i = 0; i < kept.size(); ++i) {
    const bool last = i + 1 == kept.size();
    if (kept[i].given.tokens() == 0) continue;
    asked.push_back({part_name(i) + (last ? std::string()
                                          : ", its first " + std::to_string(kept[i].given.tokens()) +
                                                " tokens, with the state that " + part_name(i + 1) + " starts from"),
                     1, false, kept[i]});
  }
  recorded_run together = whole;
  together.gave = concatenated(whole, kept);
  together.gave.gradients.clear();
  together.result_path = "what was kept of the parts, one after the other";
  bit_comparison o{"o", 0, 0, 0, false, {}}, state{"final_state", 0, 0, 0, false, {}};
  compare_o(o, whole, 0, together, 0, all, 0, 0, 0);
  compare_state(state, whole, 0, together, 0, 0);
  out.bits = {o, state};
  asked.push_back({together.result_path + ", against the whole", parts.size(), true, std::move(together)});
  return asked;
}

}  // namespace deltaproof::invariant_detail
