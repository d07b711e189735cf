// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <mutex>
#include <numbers>

#include "deltaproof/inverse/inverse_trial.hpp"
#include "deltaproof/referee/inverse_cost.hpp"
#include "emulate/products.hpp"
#include "referee/parts.hpp"
#include "referee/place_cost.hpp"
#include "support/parallel.hpp"
#include "support/text.hpp"

namespace deltaproof::referee_detail {

namespace {

/// Exact sums, the plan's own algorithm: what it forms is then a property of the inputs.
plan_variant exact_intermediates(plan_variant v) {
  v.inverse.operand = v.inverse.merge_operand = {fp64, false};
  v.inverse.accumulate = v.inverse.merge_accumulate = fp64;
  v.inverse.between.reset();
  return v;
}

/// How the products with Ai read it, the coarser of the two.
narrowing reading_of_inverse(const plan_variant& v) {
  return v.u.operand.to.precision <= v.w.operand.to.precision ? v.u.operand : v.w.operand;
}

/// Largest exponent to base 2 that a gate factor of this form reaches, from the given gates in fp64.
double largest_gate_exponent(const trial& t, const matrix<double>& g) {
  const plan_variant& v = t.variants.front();
  double most = 0;
  if (g.cols() == 0 || v.path != path_kind::chunk) return most;
  const std::size_t n = t.p.num_householder, block = v.gate_block, all = g.rows() * n;
  const bool in_blocks = t.p.gate_per_channel() && v.form != gate_form::difference && v.form != gate_form::factored;
  const auto largest_of = [&](double x) { most = std::max(most, x); };
  for (std::size_t first = 0; first < all; first += v.chunk) {
    matrix<double> G(std::min(v.chunk, all - first), g.cols());
    std::vector<double> sum(g.cols(), 0.0);
    for (std::size_t r = 0; r < G.rows(); ++r) {
      for (std::size_t ch = 0; ch < g.cols(); ++ch) {
        if ((first + r) % n == 0) sum[ch] += g((first + r) / n, ch);
        G(r, ch) = sum[ch] * std::numbers::log2e;
      }
    }
    for (std::size_t r = 0; r < G.rows(); ++r) {
      const std::size_t start = r / block * block, inside = v.form == gate_form::middle_block ? block / 2 : 0;
      const auto reference = G.row(std::min(start + inside, G.rows() - 1));
      for (std::size_t ch = 0; ch < g.cols(); ++ch) {
        if (v.form == gate_form::factored) largest_of(std::fabs(G(r, ch)));
        if (in_blocks && v.form != gate_form::reference_block)
          largest_of(std::fabs(G(r, ch) - (reference[ch] + v.gate_shift * std::numbers::log2e)));
        if (in_blocks) largest_of(G(r, ch) - G(start, ch));
        if (r > 0) largest_of(G(r, ch) - G(r - 1, ch));
      }
    }
  }
  return most;
}

std::string place_of(const lane& at, std::size_t token) {
  return "sequence " + std::to_string(at.sequence) + ", head " + std::to_string(at.head) + ", token " + std::to_string(token) +
         " of the sequence";
}

void judge_contract(const trial& t, adequacy_report& out) {
  const auto& contract = t.variants.front().contract;
  if (!contract || !t.p.g) return;
  std::size_t outside = 0, all = 0;
  double worst = 0;
  std::string where;
  for (const lane& at : t.lanes) {
    const matrix<double> gates = gates_of_head(t.p, at.sequence, at.head);
    for (std::size_t i = 0; i < gates.size(); ++i, ++all) {
      const double g = gates.data()[i];
      if (g >= contract->first && g <= contract->second) continue;
      if (outside++ == 0) where = place_of(at, i / std::max<std::size_t>(1, gates.cols()));
      if (std::fabs(g) > std::fabs(worst)) worst = g;
    }
  }
  if (outside == 0) return;
  const std::string interval = "[" + digits(contract->first) + ", " + digits(contract->second) + "]";
  out.ranges.push_back({"gate contract", worst, contract->first, "", "contract", true,
                        "the inputs break the plan's [gate] contract: " + std::to_string(outside) + " of " + std::to_string(all) +
                            " log decays lie outside " + interval + " (the largest in magnitude is " + digits(worst) +
                            "; the first is at " + where + ")"});
}

/// As `explain` names it; sums of powers have two names in public, Neumann and doubling.
std::string inverse_text(const inverse_method& method) {
  return name_of(method) + (method.diagonal == diagonal_kind::neumann ? ": sums of powers by repeated squaring" : "");
}

/// The coarser of the formats that the inverse multiplies in, and that in which its result is read.
format coarse_operand(const plan_variant& v) {
  const bool merges = v.inverse.method.block > 0 && v.inverse.merge_operand.to.precision < v.inverse.operand.to.precision;
  return merges ? v.inverse.merge_operand.to : v.inverse.operand.to;
}
/// In which an intermediate overflows first.
format inverse_range(const plan_variant& v) {
  return largest(v.inverse.operand.to) <= largest(v.inverse.accumulate) ? v.inverse.operand.to : v.inverse.accumulate;
}
format read_format(const plan_variant& v) {
  const format operand = reading_of_inverse(v).to;
  const format kept = v.inverse.read.value_or(v.inverse.store);
  return operand.precision <= kept.precision ? operand : kept;
}

/// One rounding of what is formed, beside what the result may lose.
inverse_cost priced(inverse_cost c, const plan_variant& v) {
  c.roundoff = std::max({unit_roundoff(coarse_operand(v)), unit_roundoff(v.inverse.accumulate),
                         v.inverse.between ? unit_roundoff(*v.inverse.between) : 0.0});
  c.cost = c.formed * c.roundoff;
  c.budget = allowed_ratio * unit_roundoff(read_format(v)) * std::max(1.0, c.entry);
  c.overflows = c.formed > largest(v.inverse.operand.to) || c.formed > largest(v.inverse.accumulate);
  return c;
}

/// Tokens of a head of the slice that say what its inverses form: a few chunks.
std::size_t inspected_tokens(const trial& t, const lane& at) { return std::min(at.judged, 16 * t.unit); }

/// The rigorous bound on what the inverses of those chunks may form, through |A|, whatever the signs of its entries. It only
/// warns: it may be far above what is reached.
void warn_of_bound(const trial& t, adequacy_report& out) {
  const plan_variant& v = t.variants.front();
  if (v.path != path_kind::chunk || t.slice.empty()) return;
  inverse_plan plan{v.inverse.method, v.inverse.operand.to, v.inverse.accumulate, v.inverse.store, std::nullopt};
  if (v.inverse.merge_operand.to != v.inverse.operand.to) plan.merge = v.inverse.merge_operand.to;
  try {
    require_possible(plan);
  } catch (const format_error&) {
    return;  // formats for which no bound is compiled
  }
  // The bound grows with each |A_ij|: the largest of all chunks stand for them all.
  inverse_case one;
  one.lower = matrix<double>(v.chunk, v.chunk, 0.0);
  for (const std::size_t i : t.slice) {
    const lane& at = t.lanes[i];
    emulation_options stages;
    stages.stages = true;
    const head_output run =
        emulate_head(first_tokens(take_head(t.p, at.sequence, at.head), inspected_tokens(t, at)), exact_intermediates(v), stages);
    for (std::size_t row = 0; row < run.A.rows(); ++row) {
      const std::size_t r = row % v.chunk;
      for (std::size_t j = 0; j < r; ++j) {
        const double entry = std::fabs(emulation::narrowed(run.A(row, j), v.inverse.operand));
        if (!std::isfinite(entry)) return;
        one.lower(r, j) = std::max(one.lower(r, j), entry);
      }
    }
  }
  const growth bound = bound_growth(plan, {&one, 1});
  const double most = largest(inverse_range(v));
  if (bound.largest <= most) return;
  out.ranges.push_back({"inverse intermediate", bound.largest, most, std::string(name_of(inverse_range(v))), "bound", false,
                        "an intermediate of the inverse may reach " + digits(bound.largest) +
                            ", by a bound that is proved from |A| over the first 16 chunks of each head that is emulated more "
                            "than once; the largest number of " +
                            std::string(name_of(inverse_range(v))) + " is " + digits(most)});
}

/// What the inverse forms on these inputs, and what one rounding of it costs. `resets`: some log decay is -inf; `gates_overflow`:
/// which is said already, so an A that is not finite needs no reason of its own.
void judge_inverse(const trial& t, bool resets, bool gates_overflow, adequacy_report& out) {
  const plan_variant& v = t.variants.front();
  inverse_cost cost;
  // The inverse sees keys, steps and gates only: a few chunks of each head of the slice say what it forms on these inputs.
  std::mutex lock;
  parallel_for(t.slice.size(), t.options.threads, [&](std::size_t i) {
    const lane& at = t.lanes[t.slice[i]];
    const inverse_cost here = cost_of_inverse(first_tokens(take_head(t.p, at.sequence, at.head), inspected_tokens(t, at)), v);
    const std::lock_guard guard(lock);
    cost.formed = std::max(cost.formed, here.formed);
    cost.entry = std::max(cost.entry, here.entry);
    cost.of_nonfinite = cost.of_nonfinite || here.of_nonfinite;
  });
  cost = priced(cost, v);
  const double growth = cost.formed, entry = cost.entry, u = cost.roundoff, budget = cost.budget,
               most = largest(inverse_range(v));
  const format coarse = coarse_operand(v), read = read_format(v);
  const bool overflows = cost.overflows;
  if (resets && std::isinf(growth)) {
    out.ranges.push_back({"log decay", infinity, largest(v.cumsum), std::string(name_of(v.cumsum)), "predicted", true,
                          "a log decay of -inf makes G = -inf from its row to the end of its chunk, and e^{G_i - G_j} of two of "
                          "these rows is NaN"});
  } else if (cost.of_nonfinite) {
    const std::string sums(name_of(v.A.accumulate));
    if (!gates_overflow)
      out.ranges.push_back({"A", infinity, largest(v.A.accumulate), sums, "predicted", true,
                            "A, which is inverted, is not finite on these inputs; its sums are in " + sums});
  } else if (growth > 0) {
    out.ranges.push_back(
        {"inverse intermediate", growth, overflows ? most : budget / u,
         std::string(name_of(overflows ? inverse_range(v) : coarse)), "predicted", cost.refused(),
         "an intermediate of the inverse (" + inverse_text(v.inverse.method) + ") reaches " + digits(growth) +
             " on these inputs" +
             (overflows ? ", beyond the range of " + std::string(name_of(inverse_range(v)))
                        : ": one rounding of it (u = " + digits(u) + ") is an error of " + digits(cost.cost) +
                              ", and the error limit of Ai is " + digits(budget) +
                              " = 8 u max(1, m), with u = " + digits(unit_roundoff(read)) + " of " + std::string(name_of(read)) +
                              " and m = " + digits(entry) + " the largest entry of Ai")});
  }
}

void judge_ranges(const trial& t, const drawn& runs, adequacy_report& out) {
  const plan_variant& v = t.variants.front();
  judge_contract(t, out);
  if (auto epsilon = other_epsilon(t)) out.ranges.push_back(std::move(*epsilon));
  double exponent = 0, total = 0;
  bool resets = false;
  for (const lane& at : t.lanes) {
    const matrix<double> gates = gates_of_head(t.p, at.sequence, at.head);
    exponent = std::max(exponent, largest_gate_exponent(t, gates));
    for (const double g : gates.entries()) {
      if (std::isfinite(g)) total = std::max(total, std::fabs(g));
      resets = resets || std::isinf(g);
    }
  }
  const format in = v.A.operand.to.emax <= v.cumsum.emax ? v.A.operand.to : v.cumsum;
  const double limit = in.emax + 1;
  if (exponent > 0) {
    out.ranges.push_back({"gate exponent", exponent, limit, std::string(name_of(in)), "predicted", exponent >= limit,
                          "[gate] form \"" + std::string(detail::name_in(gate_form_names, v.form)) +
                              "\" makes a gate factor of 2^" + digits(exponent) + " on these inputs; the range of " +
                              std::string(name_of(in)) + " ends at 2^" + digits(limit)});
  }
  if (v.path == path_kind::chunk) judge_inverse(t, resets, exponent >= limit, out);
  warn_of_bound(t, out);
  if (v.path == path_kind::chunk && total > 64) {
    out.ranges.push_back({"log decay", total, infinity, std::string(name_of(v.cumsum)), "observed", false,
                          "one log decay has magnitude " + digits(total) +
                              ": every e^{G_i - G_j} of later rows of its chunk is off by about " +
                              digits(total * unit_roundoff(v.cumsum)) + ", which the error limits allow for"});
  }
  const auto observed = [&](formed what, const format& in) {
    const double reached = runs.range[static_cast<std::size_t>(what)];
    if (std::isfinite(reached) && reached <= largest(in)) return;
    const std::string name(detail::name_in(formed_names, what));
    const std::string article = what == formed::state         ? "the "
                                : what == formed::inverse     ? ""
                                : what == formed::gate_factor ? "a "
                                                              : "an ";
    out.ranges.push_back({name, reached, largest(in), std::string(name_of(in)), "observed", true,
                          "in emulated runs of the plan on these inputs, " + article + name + " reaches " + digits(reached) +
                              "; the range of " + std::string(name_of(in)) + " ends at " + digits(largest(in))});
  };
  observed(formed::gate_factor, v.cumsum);
  observed(formed::inverse_intermediate, v.inverse.accumulate);
  observed(formed::inverse, v.inverse.store);
  observed(formed::state, v.state.accumulate);
}

/// What the formats alone cost, from runs of the same heads, on the given inputs and on moved ones: for each head of the slice.
std::vector<std::vector<lane_norms>> runs_of_formats(const trial& t, const plan_variant& alone) {
  std::mutex lock;
  std::size_t done = 0;
  std::vector<std::vector<lane_norms>> samples(t.slice.size(), std::vector<lane_norms>(alone_draws));
  const std::size_t jobs = t.slice.size() * alone_draws;
  std::vector<std::size_t> jobs_of_lane(t.lanes.size(), 0);
  for (const std::size_t i : t.slice) jobs_of_lane[i] = alone_draws;
  heads_read heads(t.p, t.lanes, jobs_of_lane);
  parallel_for(jobs, t.options.threads, [&](std::size_t job) {
    if (t.stopped()) return;
    const lane& at = t.lanes[t.slice[job / alone_draws]];
    const auto in = heads.take(t.slice[job / alone_draws]);
    const std::uint64_t seed = t.seed(4, t.slice[job / alone_draws], job % alone_draws);
    lane_errors e = law_of_alone(job % alone_draws) == 0 ? errors_on_given_inputs(t.p, *in, alone, seed, t.truth, at)
                                                         : errors_of_draw(*in, alone, seed);
    if (!at.state) e.state = matrix<double>();
    leave_out(at, e.o, e.state);
    samples[job / alone_draws][job % alone_draws] = norms(e, buckets(at.judged, t.unit), at.judged);
    const std::lock_guard guard(lock);
    if (t.options.progress) t.options.progress("adequacy", static_cast<double>(++done) / static_cast<double>(jobs));
  });
  return samples;
}

/// What the true final state of a head loses in one store (root mean square): who keeps a state in a cache hands over as much.
double loss_of_one_store(const trial& t, const lane& at) {
  const std::size_t K = t.p.key_dim(), V = t.p.value_dim();
  const auto first =
      t.truth.final_state.value.begin() + static_cast<std::ptrdiff_t>((at.sequence * t.p.value_heads() + at.head) * K * V);
  const std::vector<double> truth(first, first + static_cast<std::ptrdiff_t>(K * V));
  double most = 0;
  std::vector<state_cache> caches;
  for (const plan_variant& v : t.variants) {
    for (const std::optional<state_cache>& cache : {v.state.cache, v.state.between_calls}) {
      if (cache && std::find(caches.begin(), caches.end(), *cache) == caches.end()) caches.push_back(*cache);
    }
  }
  for (const state_cache& cache : caches) {
    std::vector<double> kept = truth;
    block_store<double>(cache.format, block_rounding::nearest, cache.residual, 0, 0)(kept, K, V, 0);
    double squares = 0;
    for (std::size_t i = 0; i < kept.size(); ++i) squares += (kept[i] - truth[i]) * (kept[i] - truth[i]);
    const double lost = std::sqrt(squares / static_cast<double>(std::max<std::size_t>(1, kept.size())));
    most = std::isfinite(lost) ? std::max(most, lost) : most;
  }
  return most;
}

/// A plan is judged by the least accurate of its variants.
std::optional<format> coarsest_between_tokens(const trial& t) {
  std::optional<format> out;
  for (const plan_variant& v : t.variants) {
    const std::optional<format>& own = v.state.between_tokens;
    if (own && (!out || own->precision < out->precision)) out = own;
  }
  return out;
}

/// The places of one head of the slice, `samples` those of its runs in the formats alone.
void add_places(const trial& t, const drawn& runs, const std::vector<threshold>& limits, const plan_variant& alone,
                const lane& at, const std::vector<lane_norms>& samples, std::vector<place_cost>& places) {
  const auto where = buckets(at.judged, t.unit);
  const std::vector<double> truth = truth_rms(t.p, t.truth, at, where);
  const std::optional<format> carried = coarsest_between_tokens(t);
  std::size_t first_place = 0;
  while (first_place < runs.places.size() &&
         (runs.places[first_place].sequence != at.sequence || runs.places[first_place].head != at.head))
    ++first_place;
  double largest_output = 0;
  for (std::size_t b = 0; b < where.size(); ++b) largest_output = std::max(largest_output, truth[b]);
  const double one_store = at.state ? loss_of_one_store(t, at) : 0;
  for (std::size_t b = 0; b < truth.size() && b < samples[0].rms.size(); ++b) {
    const judged_statistic& place = runs.places[first_place + 2 * b];
    place_cost cost;
    const threshold& limit = limits[first_place + 2 * b];
    // A floor is the reference's radius, not an error: an empty sequence leaves its state as it was.
    const bool overflows = !limit.finite && limit.enough;  // not: of too few runs with an error
    cost.plan = overflows ? infinity : limit.at_floor ? 0 : limit.typical;
    // What is exactly 0 has cancelled: errors are relative to what such values are elsewhere in the head, or on moved inputs.
    const double elsewhere = place.tensor == "o" ? largest_output : runs.range[static_cast<std::size_t>(formed::state)];
    const double scale = std::isfinite(elsewhere) ? elsewhere : 0;
    cost.magnitude = truth[b] > 0 ? truth[b] : scale;
    // An error of a fraction of an ulp of what the plan stores it in is nobody's loss, though the formats alone may happen to be
    // exact: a state that is kept in bf16 between chunks is handed over in bf16.
    format stored = stored_format(alone, place.tensor);
    if (place.tensor == "final_state" && carried && carried->precision < stored.precision) stored = *carried;
    for (std::size_t i = 0; i < alone_draws; ++i) cost.alone[law_of_alone(i)].push_back(samples[i].rms[b]);
    for (std::size_t i = 0; i < 2; ++i) {
      const bool exact = std::all_of(cost.alone[i].begin(), cost.alone[i].end(), [](double x) { return x == 0; });
      cost.least[i] = std::max(unit_roundoff(stored) / 2 * (exact ? std::max(truth[b], scale) : cost.magnitude),
                               smallest_subnormal(stored) / 2);
      if (place.tensor == "final_state") cost.least[i] = std::max(cost.least[i], one_store);
    }
    cost.runs = runs.statistics[first_place + 2 * b].samples;
    cost.first = place.first_token;
    cost.tensor = place.tensor;
    places.push_back(cost);
  }
}

/// A range that is left is the reason, whatever else was found.
void judge_violations(adequacy_report& out) {
  const auto range = std::find_if(out.ranges.begin(), out.ranges.end(), [](const range_report& r) { return r.violated; });
  if (range == out.ranges.end()) return;
  out.adequate = false;
  out.reason = range->says;
  out.stage = range->what.starts_with("inverse") ? "Ai" : range->what == "A" || range->what == "gate exponent" ? "A" : "";
}

}  // namespace

adequacy_report judge_adequacy(const trial& t, const drawn& runs, const std::vector<threshold>& limits) {
  const std::string key = "adequacy " + t.lanes_key() + (limits.empty() ? "" : " " + detail::general(limits.front().alpha, 17));
  if (const auto kept = recall<adequacy_report>(t.options, key)) return *kept;
  adequacy_report out;
  out.accuracy = t.options.judge.accuracy;
  judge_ranges(t, runs, out);
  if (!t.r.has_outputs()) {
    judge_violations(out);
    out.judged = true;
    return out;
  }
  const plan_variant alone = formats_alone(t.variants.front(), t.p.l2norm_epsilon);
  const auto samples = runs_of_formats(t, alone);
  if (t.stopped()) {  // with some of the samples only
    judge_violations(out);
    out.judged = !out.adequate;
    return out;
  }
  std::vector<place_cost> places;
  std::vector<std::size_t> first_place;
  for (std::size_t s = 0; s < t.slice.size(); ++s) {
    const lane& at = t.lanes[t.slice[s]];
    first_place.push_back(places.size());
    // A diverging head is near the end of its formats' range anyway: nothing follows from its last bucket.
    if (at.stays_in_range()) add_places(t, runs, limits, alone, at, samples[s], places);
  }
  first_place.push_back(places.size());
  const auto errors = [&](std::size_t s, const plan_variant& v, std::uint64_t number) {
    const lane& at = t.lanes[t.slice[s]];
    lane_errors e = errors_of_draw(take_head(t.p, at.sequence, at.head), v, t.seed(&v == &alone ? 6 : 5, t.slice[s], number));
    if (!at.state) e.state = matrix<double>();
    return norms(e, buckets(at.judged, t.unit), at.judged).rms;
  };
  const auto seconds = [&](std::size_t s) { return seconds_of_run(t.p, t.variants.front(), t.lanes[t.slice[s]].judged); };
  const double each = alpha_of_place(t, places.size());
  const auto variant = [&](std::size_t law, std::size_t run) -> const plan_variant& {
    return t.variants[t.variant_of_run(t.slice.front(), law, run)];
  };
  const more_runs more{variant, alone, t.options, errors, seconds};
  if (!out.accuracy) draw_until_decided(more, each, first_place, places);
  const auto name = [&](std::size_t kind) { return t.variants[t.kinds[kind].front()].name; };
  judge_places(places, each, t.kinds.size(), name, out);
  judge_violations(out);
  out.judged = !out.adequate || out.reason.empty();
  if (!t.stopped()) keep(t.options, key, out);
  return out;
}

}  // namespace deltaproof::referee_detail

namespace deltaproof {

inverse_cost cost_of_inverse(const head_input& in, const plan_variant& v) {
  const plan_variant exact = referee_detail::exact_intermediates(v);
  const head_output run = emulate_head(in, exact);
  // Powers that grow to 1e17 spoil the entries of the inverse in fp64 too: those come from a substitution.
  plan_variant substituted = exact;
  substituted.inverse.method = {diagonal_kind::forward, 0, exact.inverse.method.merge};
  const bool spoilt = exact.inverse.method.diagonal != diagonal_kind::forward;
  inverse_cost cost;
  cost.entry = (spoilt ? emulate_head(in, substituted) : run).range[static_cast<std::size_t>(formed::inverse)];
  const double formed_there = run.range[static_cast<std::size_t>(formed::inverse_intermediate)];
  cost.formed = formed_there == formed_there ? formed_there : std::numeric_limits<double>::infinity();
  if (std::isinf(cost.formed)) {
    emulation_options stages;
    stages.stages = true;
    const head_output again = emulate_head(in, exact, stages);
    for (std::size_t i = 0; i < again.A.size(); ++i) cost.of_nonfinite = cost.of_nonfinite || !std::isfinite(again.A.data()[i]);
  }
  return referee_detail::priced(cost, v);
}

}  // namespace deltaproof
