// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
#include <algorithm>
#include <array>
#include <cmath>
#include <memory>
#include <mutex>
#include <optional>
#include <utility>

#include "emulate/fault.hpp"
#include "referee/fault_projections.hpp"
#include "support/parallel.hpp"

namespace deltaproof::referee_detail {

namespace {

/// Runs of the plan.
struct lane_runs {
  std::vector<tensor_errors> parts;  ///< o, the state
};

/// Runs of the first tokens without a rounding but those of sums.
struct exact_runs {
  plan_variant variant;
  std::optional<head_runs> runs;
  std::array<double, 2> another_build{};  ///< squared distance of other builds, the most: o, the state

  /// From the run without a fault.
  [[nodiscard]] std::array<double, 2> distances(const head_output& other) const {
    const auto squared = [](const matrix<double>& a, const matrix<double>& b) {
      double sum = 0;
      for (std::size_t i = 0; i < std::min(a.size(), b.size()); ++i) {
        const double d = a.data()[i] - b.data()[i];
        sum += std::isfinite(d) ? d * d : infinity;
      }
      return sum;
    };
    const head_output& plain = runs->without_fault();
    return {squared(other.o, plain.o), squared(other.final_state, plain.final_state)};
  }
};

/// A run of the variant that faults are planted in, and these.
struct lane_faults {
  std::size_t variant = 0;
  std::optional<head_runs> runs;   ///< empty where the faults are kept
  std::vector<run_without> parts;  ///< o, the state
  exact_runs exact{};
  std::vector<fault_run> faults;  ///< empty unless they are kept
};

/// What the head reads with a fault that reads otherwise, its first tokens only.
head_input read_with(const fault& f, const trial& t, const lane& at, std::size_t tokens, const plan_variant& variant) {
  head_input in = take_head(t.p, at.sequence, at.head);
  f.code->reads(t.p, at.sequence, at.head, variant, in);
  return in.tokens() > tokens ? first_tokens(in, tokens) : in;
}

struct choice {
  std::size_t lane;
  std::size_t tokens;
};

/// As many heads as the time allows, those that differ in length or key head first; the first one may be shortened to whole
/// chunks and the tail it has.
std::vector<choice> choose(const trial& t, std::size_t faults, std::size_t runs) {
  std::vector<std::size_t> order(t.lanes.size());
  for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
  const auto novelty = [&](std::size_t i) {
    for (std::size_t j = 0; j < i; ++j) {
      if (t.lanes[j].judged == t.lanes[i].judged && t.p.key_head(t.lanes[j].head) == t.p.key_head(t.lanes[i].head)) return 1;
    }
    return 0;
  };
  std::sort(order.begin(), order.end(),
            [&](std::size_t a, std::size_t b) { return std::pair(novelty(a), a) < std::pair(novelty(b), b); });
  const double each = static_cast<double>(faults + runs);
  const double allowed = t.options.judge.seconds * 0.5;
  double spent = 0;
  std::vector<choice> out;
  for (const std::size_t i : order) {
    std::size_t tokens = t.lanes[i].judged;
    if (tokens == 0) continue;
    double cost = each * seconds_of_run(t.p, t.variants.front(), tokens);
    if (out.empty() && cost > allowed) {
      const std::size_t whole = std::max<std::size_t>(1, t.unit);
      const auto fit = static_cast<std::size_t>(static_cast<double>(tokens) * allowed / cost);
      tokens = std::min(tokens, std::max(2 * whole, fit / whole * whole) + tokens % whole);
      cost = allowed;
    }
    if (!out.empty() && spent + cost > allowed) continue;
    spent += cost;
    out.push_back({i, tokens});
  }
  return out;
}

/// Two chunks suffice: a fault that shows in neither is not tested by so little.
exact_runs run_exactly(const trial& t, const head_input& head, std::size_t variant) {
  exact_runs out;
  out.variant = unrounded(t.variants[variant]);
  const head_input& in = out.runs.emplace(first_tokens(head, std::min(head.tokens(), 2 * t.unit)), out.variant).input();
  for (const plan_variant& v : t.variants) {
    emulation_options options;
    options.noise_ulps = 1;
    const std::array<double, 2> apart = out.distances(emulate_head(in, unrounded(v), options));
    for (std::size_t k = 0; k < 2; ++k) out.another_build[k] = std::max(out.another_build[k], apart[k]);
  }
  return out;
}

/// Without what take_sums adds.
fault_run run_fault(const fault& f, const trial& t, const choice& c, const lane_faults& planted) {
  const lane& at = t.lanes[c.lane];
  const head_output& plain = planted.runs->without_fault();
  const plan_variant& variant = t.variants[planted.variant];
  emulation_options options;
  options.planted = &f;
  head_output faulty =
      f.code->reads != nullptr ? emulate_head(read_with(f, t, at, c.tokens, variant), variant, options) : planted.runs->with(f);
  fault_run out;
  const std::size_t o_count = c.tokens * t.p.value_dim();
  out.lost_tokens = faulty.o.size() < o_count;
  if (out.lost_tokens) return out;
  out.difference.resize(2);
  out.difference[0] = difference(faulty.o.data(), plain.o.data(), o_count);
  if (at.state && c.tokens == at.range.tokens)
    out.difference[1] = difference(faulty.final_state.data(), plain.final_state.data(), plain.final_state.size());
  if (c.tokens < at.judged) return out;
  const bool breaks_o = mend(faulty.o.entries(), plain.o.entries());
  const bool breaks_state = mend(faulty.final_state.entries(), plain.final_state.entries());
  out.breaks = at.stays_in_range() && (breaks_o || (at.state && breaks_state));
  out.finite_norms = norms(errors_of_run(t.p, std::move(faulty), t.truth, at), buckets(at.judged, t.unit), at.judged);
  return out;
}

std::vector<fault_run> run_faults(std::span<const fault* const> faults, const trial& t, const choice& c, const lane_runs& runs,
                                  const lane_faults& planted) {
  std::vector<fault_run> out;
  for (const fault* f : faults) out.push_back(run_fault(*f, t, c, planted));
  take_sums(out, runs.parts, planted.parts);
  const auto redraws = [](const fault_sums& x) { return x.without < 0; };
  for (std::size_t i = 0; i < out.size(); ++i) {
    if (std::none_of(out[i].own.begin(), out[i].own.end(), redraws)) continue;
    const fault& f = *faults[i];
    const exact_runs& exact = planted.exact;
    emulation_options options;
    options.planted = &f;
    const std::size_t tokens = exact.runs->input().tokens();
    const std::array<double, 2> apart = exact.distances(
        f.code->reads != nullptr
            ? emulate_head(read_with(f, t, t.lanes[c.lane], tokens, t.variants[planted.variant]), exact.variant, options)
            : exact.runs->with(f));
    for (std::size_t k = 0; k < 2; ++k) out[i].own[k].departs = apart[k] > 64 * exact.another_build[k];
  }
  return out;
}

/// The runs of a lane that projections are made of.
lane_runs run_lane(const trial& t, const choice& c, std::size_t per_variant) {
  const lane& at = t.lanes[c.lane];
  const head_input in = first_tokens(take_head(t.p, at.sequence, at.head), c.tokens);
  const std::size_t V = t.variants.size(), o_count = c.tokens * t.p.value_dim();
  lane_runs out;
  const head_output plain = emulate_head(in, t.variants.front());
  const lane_errors base = errors_of_run(t.p, plain, t.truth, at);
  const bool state = at.state && c.tokens == at.range.tokens;
  const std::size_t state_count = state ? base.state.size() : 0;
  out.parts.resize(2);
  out.parts[0].base = as_flat(base.o.data(), o_count);
  out.parts[1].base = as_flat(base.state.data(), state_count);
  for (tensor_errors& x : out.parts) x.columns = t.p.value_dim();
  for (tensor_errors& x : out.parts) x.same = x.moved = std::vector<std::vector<flat>>(V, std::vector<flat>(per_variant));
  std::mutex lock;
  std::size_t done = 0;
  parallel_for(2 * V * per_variant, t.options.threads, [&](std::size_t job) {
    if (t.stopped()) return;
    const std::size_t v = job / 2 / per_variant, run = job / 2 % per_variant;
    const std::uint64_t seed = t.seed(3, c.lane, job);
    if (job % 2 == 0) {
      emulation_options options;
      options.noise_ulps = 1;
      options.seed = seed;
      const head_output other = emulate_head(in, t.variants[v], options);
      out.parts[0].same[v][run] = difference(other.o.data(), plain.o.data(), o_count);
      if (state) out.parts[1].same[v][run] = difference(other.final_state.data(), plain.final_state.data(), state_count);
    } else {
      lane_errors e = errors_of_draw(in, t.variants[v], seed);
      leave_out(at, e.o, e.state);
      out.parts[0].moved[v][run] = as_flat(e.o.data(), o_count);
      if (state) out.parts[1].moved[v][run] = as_flat(e.state.data(), state_count);
    }
    const std::lock_guard guard(lock);
    const double all = static_cast<double>(2 * V * per_variant);
    if (t.options.progress) t.options.progress("runs without planted faults", static_cast<double>(++done) / all);
  });
  for (tensor_errors& x : out.parts) x.sum_up();
  return out;
}

double square(const flat& x) { return inner(x, x); }

/// The faulty runs only where they are kept.
lane_faults plant(const trial& t, const choice& c, const lane_runs& runs, std::size_t variant,
                  const std::vector<const fault*>& planted) {
  const lane& at = t.lanes[c.lane];
  lane_faults out{variant,
                  head_runs(first_tokens(take_head(t.p, at.sequence, at.head), c.tokens), t.variants[variant]),
                  std::vector<run_without>(2),
                  {},
                  {}};
  const head_input& in = out.runs->input();
  const head_output& without = out.runs->without_fault();
  const std::array<std::size_t, 2> counts{runs.parts[0].base.size(), runs.parts[1].base.size()};
  const lane_errors error = errors_of_run(t.p, without, t.truth, at);
  out.parts[0].error = as_flat(error.o.data(), counts[0]);
  out.parts[1].error = as_flat(error.state.data(), counts[1]);
  out.parts[0].size = square(as_flat(without.o.data(), counts[0]));
  out.parts[1].size = square(as_flat(without.final_state.data(), counts[1]));
  const std::vector<plan_variant> finer = one_rounding_fewer(t.variants[variant]);
  std::array<std::vector<flat>, 2> beside{std::vector<flat>(finer.size()), std::vector<flat>(finer.size())};
  parallel_for(finer.size(), t.options.threads, [&](std::size_t i) {
    if (t.stopped()) return;
    const head_output other = emulate_head(in, finer[i]);
    beside[0][i] = difference(other.o.data(), without.o.data(), counts[0]);
    beside[1][i] = difference(other.final_state.data(), without.final_state.data(), counts[1]);
  });
  for (std::size_t k = 0; k < 2; ++k) out.parts[k].take_finer(beside[k]);
  out.exact = run_exactly(t, in, variant);
  if (!t.options.memory) return out;
  out.faults.resize(planted.size());
  for_blocks(planted.size(), faults_together, t.options.threads, [&](std::size_t first, std::size_t count) {
    if (t.stopped()) return;
    std::vector<fault_run> made = run_faults(std::span(planted).subspan(first, count), t, c, runs, out);
    std::move(made.begin(), made.end(), out.faults.begin() + static_cast<std::ptrdiff_t>(first));
  });
  out.runs.reset();
  return out;
}

/// The variant whose runs are most like the result: the first one, unless another with the same order of sums is clearly nearer.
/// Faults that redraw roundings of the plan, and do little else, show beside runs with the same roundings alone.
std::size_t nearest_variant(const trial& t, const std::vector<tensor_errors>& parts, const std::vector<flat>& errors) {
  std::vector<double> apart(t.variants.size(), 0.0);
  for (std::size_t k = 0; k < parts.size(); ++k) {
    const std::vector<double> here = parts[k].distances(errors[k]);
    for (std::size_t v = 0; v < here.size(); ++v) apart[v] += here[v];
  }
  std::size_t nearest = 0;
  double least = 0.9 * apart.front();
  for (std::size_t v = 1; v < apart.size(); ++v) {
    if (t.variants[v].order != t.variants.front().order || !(apart[v] < least)) continue;
    least = apart[v];
    nearest = v;
  }
  return nearest;
}

/// What `make` gives, kept where results share what was drawn.
template <class T, class Make>
std::shared_ptr<const T> made_once(const trial& t, const std::string& key, const Make& make) {
  if (auto kept = recall<T>(t.options, key)) return kept;
  auto made = std::make_shared<T>(make());
  if (!t.options.memory || t.stopped()) return made;
  keep(t.options, key, std::move(*made));
  return recall<T>(t.options, key);
}

/// The limits of one lane, in the order of norms().
struct lane_limits {
  std::vector<const threshold*> rms, max;
};

lane_limits limits_of(const lane& at, const drawn& runs, const std::vector<threshold>& limits) {
  lane_limits out;
  for (std::size_t i = 0; i < runs.places.size(); ++i) {
    const judged_statistic& place = runs.places[i];
    if (place.sequence != at.sequence || place.head != at.head) continue;
    if (place.norm == norm_kind::tiles) continue;
    (place.norm == norm_kind::rms ? out.rms : out.max).push_back(&limits[i]);
  }
  return out;
}

/// By the norms alone, of what is finite.
bool is_beyond(const lane_norms& n, const lane_limits& limits) {
  for (std::size_t b = 0; b < n.rms.size() && b < limits.rms.size(); ++b) {
    if (n.rms[b] > limits.rms[b]->value || n.max[b] > limits.max[b]->value) return true;
  }
  return false;
}

}  // namespace

fault_draws draw_faults(const trial& t, const drawn& runs, const std::vector<threshold>& limits) {
  fault_draws out;
  for (const fault& f : faults(pass_kind::forward)) {
    if (applies(f, t.p, t.path)) out.all.push_back(&f);
  }
  const std::size_t V = t.variants.size();
  const std::size_t per_variant = runs_beside_faults(V);
  const auto lanes = choose(t, out.all.size(), 2 * per_variant * V);
  if (lanes.empty()) return out;
  const by_run none(V, std::vector<double>(per_variant, 0.0));
  fault_sums nothing;
  nothing.same = nothing.moved = none;
  std::vector<std::vector<fault_sums>> all(out.all.size(), {nothing, nothing});
  std::vector<char> beyond(out.all.size(), 0);
  std::array<error_sizes, 2> sizes;
  sizes.fill({none, none});
  out.by_sums = std::any_of(t.variants.begin(), t.variants.end(), [&](const plan_variant& v) { return made_by_sums(v, t.p); });
  out.variants = static_cast<std::size_t>(std::count_if(
      t.variants.begin(), t.variants.end(), [&](const plan_variant& v) { return v.order == t.variants.front().order; }));
  std::optional<std::size_t> variant;  // of the first lane: a kernel has one
  const bool far = is_far_from_the_end(runs.range);

  for (const choice& c : lanes) {
    if (t.stopped()) return out;
    const lane& at = t.lanes[c.lane];
    const bool whole = c.tokens == at.range.tokens;
    out.slice += (out.slice.empty() ? "" : "; ") + std::string("sequence ") + std::to_string(at.sequence) + " head " +
                 std::to_string(at.head) + (whole ? "" : " tokens 0-" + std::to_string(c.tokens - 1));
    const std::string key = "faults " + t.lanes_key() + " " + std::to_string(c.lane) + " " + std::to_string(c.tokens);
    const auto lane_drawn = made_once<lane_runs>(t, key, [&] { return run_lane(t, c, per_variant); });
    if (t.stopped()) return out;
    const std::vector<tensor_errors>& parts = lane_drawn->parts;
    for (std::size_t k = 0; k < 2; ++k) sizes[k].add(parts[k]);
    const lane_errors errors = errors_of_result(t.p, t.r, t.truth, at);
    result_errors result = errors_beyond(
        parts, {as_flat(errors.o.data(), c.tokens * t.p.value_dim()), as_flat(errors.state.data(), parts[1].base.size())});
    if (!variant) variant = nearest_variant(t, parts, result.got);
    const auto planted = made_once<lane_faults>(t, key + " " + std::to_string(*variant),
                                                [&] { return plant(t, c, *lane_drawn, *variant, out.all); });
    result.compare_with(planted->parts, c.tokens * t.p.num_householder / std::max<std::size_t>(1, t.chunk));
    const lane_limits limits_here = limits_of(at, runs, limits);
    std::mutex lock;
    std::size_t done = 0;
    for_blocks(out.all.size(), faults_together, t.options.threads, [&](std::size_t first, std::size_t count) {
      if (t.stopped()) return;
      std::vector<fault_run> fresh;
      if (planted->faults.empty()) fresh = run_faults(std::span(out.all).subspan(first, count), t, c, *lane_drawn, *planted);
      for (std::size_t i = first; i < first + count; ++i) {
        const fault_run& run = planted->faults.empty() ? fresh[i - first] : planted->faults[i];
        if (run.lost_tokens) continue;  // another shape, which no kernel's file has
        add_lane(run, parts, result, all[i]);
        if (is_beyond(run.finite_norms, limits_here) || (run.breaks && far)) beyond[i] = 1;
      }
      const std::lock_guard guard(lock);
      done += count;
      if (t.options.progress)
        t.options.progress("planted faults", static_cast<double>(done) / static_cast<double>(out.all.size()));
    });
  }

  const char* const tensors[2] = {"o", "final_state"};
  for (std::size_t i = 0; i < out.all.size(); ++i) {
    if (beyond[i] != 0) out.by_norm.push_back(out.all[i]);
    for (std::size_t k = 0; k < 2; ++k) {
      if (all[i][k].own > 0) out.projections.push_back(projection_on(*out.all[i], tensors[k], std::move(all[i][k]), sizes[k]));
    }
  }
  for (std::size_t k = 0; k < 2; ++k) out.sizes.push_back(size_of_error(tensors[k], sizes[k]));
  return out;
}

}  // namespace deltaproof::referee_detail
