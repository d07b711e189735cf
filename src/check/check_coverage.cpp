// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
//
// What a verdict rests on: elements that were judged by something that not everything passes.
#include <algorithm>
#include <cmath>

#include "check/check_parts.hpp"
#include "deltaproof/files/slice.hpp"
#include "support/text.hpp"

namespace deltaproof {
namespace {

using check_detail::pairing;

/// A value beyond the format is stored as infinity or, by a kernel that saturates, as its largest number; NaN comes of
/// infinities.
bool is_due_beyond(double got, double exact, double most) {
  return !std::isfinite(got) || (std::fabs(got) == most && std::signbit(got) == std::signbit(exact));
}

/// Elements of one tensor of one head, as the wide reference has them.
struct head_elements {
  const reference_tensor& exact;
  std::size_t begin = 0, end = 0;  ///< in `exact`
  std::size_t row = 1;             ///< elements that lie together in the whole tensor
  std::size_t first = 0;           ///< where begin lies in the whole tensor
  std::size_t stride = 1;          ///< from row to row in the whole tensor
};

void look(const problem& p, const head_elements& head, const pairing& pair, tensor_report& out) {
  const format stored = pair.stored->element_format();
  // Twice: a kernel whose error is below a half still overflows there.
  const double most = largest(stored), beyond = 2 * most;
  for (std::size_t i = head.begin; i < head.end; ++i) {
    const double x = head.exact.value[i];
    if (!std::isfinite(x) || !(std::fabs(x) - head.exact.radius[i] > beyond)) continue;
    const std::size_t at = head.first + (i - head.begin) / head.row * head.stride + (i - head.begin) % head.row;
    if (is_due_beyond(pair.got[at], x, most)) continue;
    if (out.beyond_range++ == 0)
      out.first_beyond_range = check_detail::locate(p, pair.name == "final_state", {at, pair.got[at], x});
    out.judged = verdict::refuted;
  }
}

}  // namespace

void check_detail::mark_skipped(const problem& p, const result& r, const reference& ref, pairing& o, pairing* state) {
  if (ref.divergences.empty()) return;
  const auto sequences = p.sequences();
  const std::size_t heads = p.value_heads(), cols = p.value_dim(), n = p.num_householder;
  o.skip.assign(o.got.size(), false);
  if (state) state->skip.assign(state->got.size(), false);
  for (const divergence& d : ref.divergences) {
    std::size_t from = d.token;
    if (r.path == path_kind::chunk && r.chunk_size) from = from * n / *r.chunk_size * *r.chunk_size / n;
    const auto& range = sequences[d.sequence];
    for (std::size_t t = from; t < range.tokens; ++t) {
      const std::size_t at = ((range.batch * p.tokens() + range.first_token + t) * heads + d.value_head) * cols;
      std::fill_n(o.skip.begin() + static_cast<std::ptrdiff_t>(at), cols, true);
    }
    if (!state) continue;
    const std::size_t entries = p.key_dim() * cols;
    std::fill_n(state->skip.begin() + static_cast<std::ptrdiff_t>((d.sequence * heads + d.value_head) * entries), entries, true);
  }
}

double tensor_coverage::share_not_judged() const {
  return elements == 0 ? 0 : static_cast<double>(not_judged()) / static_cast<double>(elements);
}

std::size_t tensor_coverage::telling() const {
  return elements - std::min(elements, out_of_range + overflowed + overflowed_sums + blind + zero);
}

std::vector<bool> check_detail::overflow_of_plans::excused(std::string_view tensor, const std::vector<double>& got,
                                                           const std::vector<bool>& skip) {
  std::vector<bool> out;
  for (std::size_t i = 0; i < got.size(); ++i) {
    if (std::isfinite(got[i]) || (!skip.empty() && skip[i])) continue;
    if (places_.empty()) {
      for (const plan& one : options_.plans)
        places_.push_back(sums_that_may_overflow(p_, r_, one, options_.threads, options_.stop));
      if (places_.empty())
        places_.push_back(sums_that_may_overflow(p_, r_, everything_wide(r_), options_.threads, options_.stop));
    }
    const bool may = std::any_of(places_.begin(), places_.end(),
                                 [&](const overflow_places& places) { return places.may_overflow(tensor, i); });
    if (!may) continue;
    if (out.empty()) out.assign(got.size(), false);
    out[i] = true;
  }
  return out;
}

std::vector<bool> check_detail::either(std::vector<bool> a, const std::vector<bool>& b) {
  if (a.empty()) return b;
  for (std::size_t i = 0; i < b.size(); ++i) a[i] = a[i] || b[i];
  return a;
}

namespace {

bool is_gradient(const tensor_report& t) {
  return std::find(gradient_names.begin(), gradient_names.end(), t.name) != gradient_names.end();
}

/// Of all tensors, or of the gradients: those of one reason together.
std::string text_of_what_is_left(const check_report& report, bool gradients_alone) {
  std::vector<std::pair<std::string, std::string>> reasons;
  for (const tensor_report& t : report.tensors) {
    if (gradients_alone && !is_gradient(t)) continue;
    const tensor_coverage& c = t.coverage;
    const auto add = [&](std::size_t count, const std::string& why) {
      if (count == 0) return;
      const std::string what = std::to_string(count) + " of " + std::to_string(c.elements) + " elements of " + t.name + " (" +
                               detail::share_text(count, c.elements) + ")";
      const auto known = std::find_if(reasons.begin(), reasons.end(), [&](const auto& r) { return r.first == why; });
      if (known == reasons.end())
        reasons.emplace_back(why, what);
      else
        known->second += ", " + what;
    };
    add(c.out_of_range, "finite where " + check_detail::range_is_left(t.name));
    add(c.overflowed_sums, std::string(check_detail::not_finite_by_sums));
    add(c.blind, "the plan gives no limit there, or a limit that zeros would pass");
  }
  std::string text;
  for (const auto& [why, what] : reasons) text += (text.empty() ? "" : "; ") + what + ": " + why;
  return text;
}

}  // namespace

std::string check_detail::range_is_left(std::string_view tensor) {
  if (tensor == "o")
    return "the exact recurrence leaves the range of its formats at that token, before it, or later in its chunk";
  if (tensor == "final_state") return "the exact recurrence of that head leaves the range of its formats";
  return "an exact state, its cotangent or the gradient itself leaves the range of its format";
}

std::string not_judged_text(const check_report& report) { return text_of_what_is_left(report, false); }

void check_detail::refute_finite_beyond_range(const problem& p, const reference& ref, const std::vector<pairing>& pairs,
                                              const check_options& options, check_report& out) {
  const auto sequences = p.sequences();
  const std::size_t heads = p.value_heads(), cols = p.value_dim(), entries = p.key_dim() * cols;
  for (const divergence& d : ref.divergences) {
    if (options.stop != nullptr && *options.stop) return;
    const sequence_range& range = sequences[d.sequence];
    question ask;
    // Beyond 2^1000 nothing is asked; before, fp64 knows enough: only what is certain counts.
    ask.range.output = ask.range.state = 0x1p1000;
    ask.relative_radius = 0x1p-4;
    ask.max_bits = 53;
    ask.threads = options.threads;
    ask.stop = options.stop;
    const reference wide = solve(slice(p, {d.sequence, d.value_head, range.tokens}), ask);
    if (wide.stopped) return;
    const bool leaves = !wide.divergences.empty();
    const std::size_t last = leaves ? wide.divergences.front().token : range.tokens;
    const std::size_t row = (range.batch * p.tokens() + range.first_token) * heads + d.value_head;
    const std::size_t begin = d.token * cols, end = std::max(last, d.token) * cols;
    look(p, {wide.o, begin, end, cols, (row + d.token * heads) * cols, heads * cols}, pairs[0], out.tensors[0]);
    if (pairs.size() < 2 || leaves) continue;
    look(p, {wide.final_state, 0, entries, entries, (d.sequence * heads + d.value_head) * entries, entries}, pairs[1],
         out.tensors[1]);
  }
  for (const tensor_report& t : out.tensors) {
    if (t.beyond_range > 0) out.judged = combine(out.judged, verdict::refuted);
  }
}

void check_detail::count_coverage(const std::vector<pairing>& pairs, check_report& out) {
  for (std::size_t i = 0; i < pairs.size() && i < out.tensors.size(); ++i) {
    tensor_coverage& c = out.tensors[i].coverage;
    const pairing& pair = pairs[i];
    c = {};
    c.elements = pair.got.size();
    for (std::size_t j = 0; j < pair.skip.size(); ++j) {
      if (pair.skip[j]) ++(std::isfinite(pair.got[j]) ? c.out_of_range : c.overflowed);
    }
    c.overflowed_sums = static_cast<std::size_t>(std::count(pair.overflowed.begin(), pair.overflowed.end(), true));
    if (!out.conformance) continue;
    for (const limit_reach& reach : out.conformance->reach) {
      if (reach.tensor != pair.name) continue;
      c.blind = reach.blind;
      c.zero = reach.zero;
    }
  }
}

void check_detail::judge_coverage(check_report& out) {
  const std::string text = not_judged_text(out);
  const bool limited = out.conformance || std::any_of(out.tensors.begin(), out.tensors.end(),
                                                      [](const tensor_report& t) { return !t.bounds.empty(); });
  const std::string so_far = limited ? "no limit is exceeded, but " : "no limit was given, and ";
  const auto passes = [](verdict v) { return v == verdict::holds || v == verdict::measured; };
  for (tensor_report& t : out.tensors) {
    if (!passes(t.judged)) continue;
    const bool little = t.coverage.share_not_judged() > most_not_judged || t.coverage.telling() == 0;
    const bool farther = out.judged == verdict::holds && t.errors.elements > t.errors.unknown && t.errors.rel_fro.lower > 1;
    const bool mostly_beyond = t.name == "o" && 2 * (t.coverage.overflowed + t.coverage.out_of_range) > t.coverage.elements;
    if (little || farther || mostly_beyond) t.judged = verdict::vacuous;
    if (!passes(out.judged)) continue;
    if (t.coverage.share_not_judged() > most_not_judged) {
      out.judged = verdict::vacuous;
      out.reason = so_far + "more than " + detail::general(100 * most_not_judged, 2) + " % of a tensor was not judged: " + text;
    } else if (mostly_beyond) {
      const std::size_t beyond = t.coverage.overflowed + t.coverage.out_of_range;
      out.judged = verdict::vacuous;
      out.reason = so_far + std::to_string(beyond) + " of " + std::to_string(t.coverage.elements) + " elements of o (" +
                   detail::share_text(beyond, t.coverage.elements) +
                   ") are not judged: the exact recurrence has left the range of its formats there or in the same chunk";
    } else if (farther) {
      out.judged = verdict::vacuous;
      out.reason = "no limit is exceeded, but the relative error of " + t.name + " is " +
                   detail::general(t.errors.rel_fro.value, 6) +
                   ": zeros would be closer to the exact values, so limits this wide judge nothing";
    }
  }
  if (passes(out.judged) && !text.empty()) out.reason += "; not judged: " + text;
}

void check_detail::judge_gradient_coverage(check_report& out) {
  if (!out.conformance || !out.conformance->gradients.judged) return;
  const auto passes = [](verdict v) { return v == verdict::holds || v == verdict::measured; };
  for (tensor_report& t : out.tensors) {
    if (!is_gradient(t)) continue;
    for (const limit_reach& reach : out.conformance->reach) {
      if (reach.tensor != t.name) continue;
      t.coverage.blind = reach.blind;
      t.coverage.zero = reach.zero;
    }
    if (passes(t.judged) && (t.coverage.share_not_judged() > most_not_judged || t.coverage.telling() == 0))
      t.judged = verdict::vacuous;
    if (!passes(out.judged) || !(t.coverage.share_not_judged() > most_not_judged)) continue;
    out.judged = verdict::vacuous;
    out.reason = "no limit is exceeded, but too little of " + t.name + " was judged";
  }
  const std::string text = text_of_what_is_left(out, true);
  if ((passes(out.judged) || out.judged == verdict::vacuous) && !text.empty()) out.reason += "; not judged: " + text;
}

std::string check_detail::remedy_for(const check_report& out, int max_bits) {
  if (out.judged == verdict::undecided) {
    if (out.stopped) return "allow more time: give a larger --max-seconds, or leave it out";
    if (out.conformance && !out.conformance->adequacy.judged)
      return "state the accuracy that you need with --accuracy, or judge by another plan";
    if (out.conformance && out.conformance->conforms == verdict::undecided) {
      const bool overflows =
          std::any_of(out.conformance->statistics.begin(), out.conformance->statistics.end(),
                      [](const judged_statistic& s) { return s.judged == verdict::undecided && s.limit.enough; });
      return (overflows ? "use inputs on which emulating the plan does not overflow" : "use longer sequences or more heads") +
             std::string(", or judge by another plan");
    }
    return max_bits < 1024 ? "give the reference more bits: a larger --max-bits, up to 1024"
                           : "the reference's radius is too wide at 1024 bits: use fewer tokens or larger limits";
  }
  if (out.judged != verdict::vacuous) return "";
  if (!out.tensors.empty() && out.tensors.front().errors.elements + out.tensors.front().errors.skipped == 0)
    return "use a problem with at least one token";
  const auto sums_overflow = [](const tensor_report& t) {
    return static_cast<double>(t.coverage.overflowed_sums) > most_not_judged * static_cast<double>(t.coverage.elements);
  };
  const auto no_limit = [](const limit_reach& x) {
    return static_cast<double>(x.overflow) > most_not_judged * static_cast<double>(x.elements);
  };
  if (std::any_of(out.tensors.begin(), out.tensors.end(), sums_overflow) ||
      (out.conformance && std::any_of(out.conformance->reach.begin(), out.conformance->reach.end(), no_limit)))
    return "use smaller inputs, on which no sum comes near the end of its format's range";
  const auto zeros_pass = [](const tensor_report& t) { return t.bounds_are_blind || t.errors.rel_fro.lower > 1; };
  if (!out.diverges && !out.conformance && std::any_of(out.tensors.begin(), out.tensors.end(), zeros_pass))
    return "lower --max-error until zeros would exceed it, use inputs whose exact outputs are not 0, or judge by a plan";
  return !out.diverges && out.conformance && out.conformance->judged
             ? std::string("use inputs that can show a fault, for example those of: deltaproof gen --regime typical -o FILE") +
                   (out.conformance->stages_missing.empty()
                        ? ""
                        : "; or store every stage of the kernel: each element is then judged by a bound of its own")
             : "use inputs whose recurrence stays in range, for example those of: deltaproof gen --regime typical -o FILE";
}

}  // namespace deltaproof
