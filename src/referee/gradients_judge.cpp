// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
//
// What limits say of the gradients of a result, and what the plan's backward pass costs by itself.
#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <map>
#include <mutex>

#include "referee/gradients.hpp"
#include "referee/place_cost.hpp"
#include "support/parallel.hpp"
#include "support/text.hpp"

namespace deltaproof::referee_detail {

namespace {

struct tensor_reach {
  limit_reach counts;
  const judged_statistic* widest = nullptr;  ///< the rms whose limit exceeds the truth most
  std::string quiet;                         ///< the first tile that its place's limits do not reach, in words
};

double excess(const judged_statistic& s) { return s.truth > 0 ? s.limit.value / s.truth : infinity; }
bool refutes_zeros(const judged_statistic& s) { return s.judged == verdict::holds && s.limit.value < s.truth; }

/// Counts one place, and marks it where zeros would pass. A gradient that is a sum which cancels may be farther from the truth
/// than zeros and keep its plan: such a place is blind, and no more than that.
void count(judged_statistic& rms, judged_statistic& max, std::size_t elements, double rounds_to_zero, tensor_reach& to) {
  to.counts.elements += elements;
  if (rms.judged == verdict::refuted || max.judged == verdict::refuted) return;
  const bool has_limit = rms.judged == verdict::holds || max.judged == verdict::holds;
  if (has_limit && max.truth <= rounds_to_zero && rms.got <= rms.truth) {
    to.counts.zero += elements;
    return;
  }
  if (refutes_zeros(rms) || refutes_zeros(max)) return;
  to.counts.blind += elements;
  for (judged_statistic* s : {&rms, &max}) {
    if (s->judged == verdict::holds) s->judged = verdict::vacuous;
  }
  if (to.widest == nullptr || excess(rms) > excess(*to.widest)) to.widest = &rms;
}

std::string reason_of(const tensor_reach& x) {
  if (static_cast<double>(x.counts.blind) <= most_not_judged * static_cast<double>(x.counts.elements)) return {};
  const std::string share = detail::share_text(x.counts.blind, x.counts.elements) + " of " + x.counts.tensor;
  if (x.widest == nullptr && !x.quiet.empty()) return "a kernel that writes only zeros would pass for " + share + ": " + x.quiet;
  if (x.widest == nullptr) return overflows_in(share);
  return "a kernel that writes only zeros would pass for " + share + ": for " + place_text(*x.widest) + ", " +
         (x.widest->limit.finite ? "the plan's limit on the rms error is " + digits(x.widest->limit.value)
                                 : std::string("there is no finite limit")) +
         ", and the rms of the exact values is " + digits(x.widest->truth);
}

/// What the formats alone cost in the backward pass of each lane of the slice: [lane][draw][part].
using samples_of_formats = std::vector<std::vector<std::vector<lane_norms>>>;

samples_of_formats runs_of_formats(const gradient_trial& t, const plan_variant& alone) {
  samples_of_formats out(t.slice.size(), std::vector<std::vector<lane_norms>>(alone_draws));
  std::mutex lock;
  std::size_t done = 0;
  const std::size_t jobs = t.slice.size() * alone_draws;
  read_by_jobs<std::vector<gradient_head>> groups(std::vector<std::size_t>(t.slice.size(), alone_draws));
  parallel_for(jobs, t.options.threads, [&](std::size_t job) {
    if (t.stopped()) return;
    const std::size_t i = t.slice[job / alone_draws], draw = job % alone_draws;
    const gradient_lane& at = t.lanes[i];
    const auto group = groups.take(job / alone_draws, [&] { return take_group(t.p, at.sequence, at.key_head); });
    const std::uint64_t seed = t.seed(6, i, draw);
    const part_values errors = law_of_alone(draw) == 0 ? gradient_errors_on_given(t, at, *group, alone, seed)
                                                       : gradient_errors_of_draw(at, *group, alone, seed);
    std::vector<lane_norms> norms;
    for (std::size_t k = 0; k < at.parts.size(); ++k) norms.push_back(norms_of(at.parts[k], errors[k]));
    out[job / alone_draws][draw] = std::move(norms);
    const std::lock_guard guard(lock);
    if (t.options.progress) t.options.progress("adequacy of gradients", static_cast<double>(++done) / static_cast<double>(jobs));
  });
  return out;
}

/// The root mean square over all buckets of a part, from those of the buckets.
double over_all(const gradient_part& part, const std::function<double(std::size_t)>& rms) {
  double squares = 0, elements = 0, largest = 0;
  for (std::size_t b = 0; b < part.where.size(); ++b) largest = std::max(largest, rms(b));
  if (!(largest > 0) || std::isinf(largest)) return largest;
  for (std::size_t b = 0; b < part.where.size(); ++b) {
    const auto count = static_cast<double>(judged_elements(part, part.where[b]));
    squares += count * (rms(b) / largest) * (rms(b) / largest);
    elements += count;
  }
  return elements > 0 ? largest * std::sqrt(squares / elements) : 0;
}

/// What cancels in dg: it is a sum of <S, dS> and of o do, less v dv, and that is largest where the others are. Of one channel.
double largest_term_of_dg(const gradient_trial& t, const gradient_lane& at, std::size_t head, std::size_t channels) {
  const auto dv = std::find_if(at.parts.begin(), at.parts.end(),
                               [&](const gradient_part& part) { return part.name() == "dv" && part.head == head; });
  const std::vector<double>& exact = t.exact.truth.tensors.find("dv")->second.value;
  std::vector<double> v(dv->width);
  double largest = 0;
  for (std::size_t row = 0; row < dv->rows; ++row) {
    const std::size_t first = dv->first + row * dv->stride;
    t.p.v.read(first, v);
    double sum = 0;
    for (std::size_t j = 0; j < v.size(); ++j) sum += std::fabs(v[j] * exact[first + j]);
    largest = std::max(largest, std::isfinite(sum) ? sum : 0);
  }
  return largest / static_cast<double>(channels);
}

/// The gradients of one lane, `samples` those of its runs in the formats alone. Whoever uses a gradient adds it up over tokens:
/// each is looked at as a whole, for a few tokens that lose more than others lose nothing in the sum. `part_of`: the part that
/// each place is.
void add_costs(const gradient_trial& t, const drawn_gradients& runs, const plan_variant& alone, std::size_t i,
               const std::vector<std::vector<lane_norms>>& samples, std::vector<place_cost>& out,
               std::vector<std::size_t>& part_of) {
  const gradient_lane& at = t.lanes[i];
  std::size_t next = runs.first_place[i];
  for (std::size_t k = 0; k < at.parts.size(); ++k) {
    const gradient_part& part = at.parts[k];
    if (!part.judged) continue;
    const std::vector<std::vector<double>>& first = runs.statistics[next].samples;
    place_cost cost;
    for (std::size_t law = 0; law < first.size(); ++law) {
      double mean = 0;
      std::vector<double>& whole = cost.runs.emplace_back();
      for (std::size_t r = 0; r < first[law].size(); ++r) {
        whole.push_back(over_all(part, [&](std::size_t b) { return runs.statistics[next + 2 * b].samples[law][r]; }));
        mean += whole.back() / static_cast<double>(first[law].size());
      }
      cost.plan = std::max(cost.plan, mean);
    }
    cost.magnitude = over_all(part, [&](std::size_t b) { return runs.places[next + 2 * b].truth; });
    for (std::size_t d = 0; d < samples.size(); ++d)
      cost.alone[law_of_alone(d)].push_back(over_all(part, [&](std::size_t b) { return samples[d][k].rms[b]; }));
    const format stored = stored_gradient_format(alone, t.p, part.name());
    const double unit = unit_roundoff(stored);
    cost.least.fill(std::max(unit / 2 * cost.magnitude, smallest_subnormal(stored) / 2));
    // With no state before it, or none that gates leave, a token has a dg of 0. What cancels to it is made of numbers in the
    // formats of the other gradients, and has been rounded.
    if (cost.magnitude <= smallest_subnormal(stored) / 2 && part.name() == "dg") {
      cost.magnitude = largest_term_of_dg(t, at, part.head, part.width);
      const double factor = unit_roundoff(stored_gradient_format(alone, t.p, "dk"));
      cost.least.fill(std::max(std::max(unit, factor) * cost.magnitude, smallest_subnormal(stored) / 2));
    }
    cost.tensor = part.name();
    const double floor = over_all(part, [&](std::size_t b) { return runs.statistics[next + 2 * b].floor; });
    next += 2 * part.where.size();
    // Of what cancels to less than the floor of the reference nothing can be said.
    if (!(cost.plan > floor)) continue;
    out.push_back(std::move(cost));
    part_of.push_back(k);
  }
}

}  // namespace

void judge_gradient_statistics(const drawn_gradients& runs, const std::vector<threshold>& limits, plan_report& out) {
  for (std::size_t i = 0; i < runs.places.size(); ++i) {
    judged_statistic s = runs.places[i];
    s.limit = limits[i];
    if (!s.limit.finite || !s.limit.enough) {
      s.judged = verdict::undecided;
    } else if (!(s.got <= s.limit.value)) {
      s.judged = verdict::refuted;
    }
    out.statistics.push_back(std::move(s));
  }
}

/// The tiles of a place of this part that has limits which refute zeros of the whole of it.
void add_tiles(const gradient_part& part, const bucket& b, const std::vector<double>& exact, const judged_statistic& rms,
               const judged_statistic& max, double rounds_to_zero, const tiles_judged& judged, tensor_reach& to) {
  if (rms.judged == verdict::refuted || max.judged == verdict::refuted || !(refutes_zeros(rms) || refutes_zeros(max))) return;
  const bucket rows = part.rows_of(b);
  const std::span<const double> here = std::span(exact).subspan(rows.first * part.width, (rows.last - rows.first) * part.width);
  for (const tile& x : tiles_that_may_be_zeros(rms, max, here, part.width, part.tiles().height, rounds_to_zero)) {
    if (judged.refutes_zeros(x)) continue;
    to.counts.blind += x.elements();
    if (to.quiet.empty()) to.quiet = x.text(rms, part.steps);
  }
}

std::string judge_gradient_reach(const gradient_trial& t, const drawn_gradients& runs, std::size_t first, plan_report& out) {
  std::map<std::size_t, tensor_reach> tensors;
  std::map<std::size_t, std::size_t> tiles;  // by place of an rms
  for (std::size_t i = 0; i < runs.beside.size(); ++i)
    tiles[first + runs.beside[i]] = first + runs.places.size() - runs.beside.size() + i;
  std::size_t next = first;
  for (std::size_t i = 0; i < t.lanes.size(); ++i) {
    const gradient_lane& at = t.lanes[i];
    const part_values exact = exact_values(t, at);
    for (std::size_t k = 0; k < at.parts.size(); ++k) {
      const gradient_part& part = at.parts[k];
      if (!part.judged) continue;
      tensor_reach& to = tensors[part.tensor];
      to.counts.tensor = part.name();
      const format stored = t.r.gradients.find(to.counts.tensor)->second.element_format();
      for (const bucket& b : part.where) {
        judged_statistic &rms = out.statistics[next], &max = out.statistics[next + 1];
        const double rounds_to_zero = smallest_subnormal(stored) / 2;
        count(rms, max, judged_elements(part, b), rounds_to_zero, to);
        tiles_judged judged;
        if (const auto found = tiles.find(next); found != tiles.end())
          judged = {&out.statistics[found->second], &runs.scales[i][k], part.tiles(), part.rows_of(b).first};
        add_tiles(part, b, exact[k], rms, max, rounds_to_zero, judged, to);
        next += 2;
      }
    }
  }
  for (std::size_t i = next; i < out.statistics.size(); ++i) say_nothing_if_zeros_pass(out.statistics[i]);
  for (std::size_t tensor = 0; tensor < gradient_names.size(); ++tensor) {
    const auto found = t.without_limit.find(std::string(gradient_names[tensor]));
    if (found == t.without_limit.end() || found->second == 0) continue;
    limit_reach& counts = tensors[tensor].counts;
    counts.tensor = found->first;
    counts.elements += found->second;
    counts.blind += found->second;
    counts.overflow += found->second;
  }
  std::string reason;
  for (const auto& [tensor, reach] : tensors) {
    out.reach.push_back(reach.counts);
    if (reason.empty()) reason = reason_of(reach);
  }
  return reason;
}

void judge_gradient_adequacy(const gradient_trial& t, const drawn_gradients& runs, adequacy_report& out) {
  const plan_variant alone = formats_alone(t.variants.front(), t.p.l2norm_epsilon);
  const samples_of_formats samples = runs_of_formats(t, alone);
  if (t.stopped()) {
    out.judged = !out.adequate;
    return;
  }
  std::vector<place_cost> places;
  std::vector<std::size_t> first_place, part_of;
  for (std::size_t s = 0; s < t.slice.size(); ++s) {
    first_place.push_back(places.size());
    // A head that leaves its range is near the end of its formats anyway.
    if (t.lanes[t.slice[s]].whole) add_costs(t, runs, alone, t.slice[s], samples[s], places, part_of);
  }
  first_place.push_back(places.size());
  const auto errors = [&](std::size_t s, const plan_variant& v, std::uint64_t number) {
    const gradient_lane& at = t.lanes[t.slice[s]];
    const part_values run = gradient_errors_of_draw(at, take_group(t.p, at.sequence, at.key_head), v,
                                                    t.seed(&v == &alone ? 8 : 7, t.slice[s], number));
    std::vector<double> rms;
    for (std::size_t i = first_place[s]; i < first_place[s + 1]; ++i) {
      const gradient_part& part = at.parts[part_of[i]];
      const lane_norms of_part = norms_of(part, run[part_of[i]]);
      rms.push_back(over_all(part, [&](std::size_t b) { return of_part.rms[b]; }));
    }
    return rms;
  };
  const auto seconds = [&](std::size_t s) {
    return seconds_of_gradient_run(t.p, t.variants.front(), t.lanes[t.slice[s]].range.tokens);
  };
  const double each = alpha_of_place(t, places.size());
  const auto variant = [&](std::size_t law, std::size_t run) -> const plan_variant& {
    return t.variants[t.variant_of_run(t.slice.front(), law, run)];
  };
  const more_runs more{variant, alone, t.options, errors, seconds};
  if (!out.accuracy) draw_until_decided(more, each, first_place, places);
  // Behind the kinds stand those that differ in the order of <h, dh> alone.
  const std::size_t kinds = t.kinds.size();
  const auto name = [&](std::size_t number) {
    return t.variants[number < kinds ? t.kinds[number].front() : t.own + number - kinds].name;
  };
  judge_places(places, each, kinds + t.variants.size() - t.own, name, out);
  out.judged = !out.adequate || out.reason.empty();
}

}  // namespace deltaproof::referee_detail
