// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
#include <algorithm>
#include <array>
#include <cmath>
#include <mutex>
#include <numeric>
#include <utility>
#include <vector>

#include "deltaproof/number/random.hpp"
#include "emulate/products.hpp"
#include "referee/parts.hpp"
#include "support/parallel.hpp"

namespace deltaproof::referee_detail {

void widen(range_seen& to, const range_seen& from) {
  for (std::size_t i = 0; i < to.size(); ++i) {
    if (!(from[i] <= to[i])) to[i] = to[i] != to[i] ? to[i] : from[i];
  }
}

namespace {

/// A run as the kernel recorded its own: the stages that the result holds, and no others.
result recorded_alike(result run, const result& like) {
  std::erase_if(run.stages, [&](const auto& stage) { return like.stages.find(stage.first) == like.stages.end(); });
  if (!like.final_state) run.final_state.reset();
  return run;
}

/// The stage in the format in which the plan stores it, where the kernel stored more bits: its error in units of a bound that
/// has the plan's half ulp is what the plan's own runs can be compared with.
std::optional<result> stored_as(const plan_variant& own, result r, const std::string& stage) {
  const format to = stored_format(own, stage), from = r.stages.at(stage).element_format();
  if (!is_lossless(to, from) || is_lossless(from, to)) return std::nullopt;
  std::vector<double> values = r.stages.at(stage).to_doubles();
  for (double& x : values) x = emulation::narrowed(x, {to, false});
  r.stages.at(stage) = tensor::from_doubles(to, r.stages.at(stage).shape(), values, stage);
  return r;
}

/// The same head with its channels in another order. A plan names how a sum is associated, not which channel comes first; where
/// a few channels are larger in every row, that decides how large the error of every sum is.
head_input shuffled(const head_input& in, std::uint64_t seed) {
  philox draw(seed, 0x5f1e);
  std::vector<std::size_t> from(in.key_dim());
  std::iota(from.begin(), from.end(), std::size_t{0});
  for (std::size_t i = from.size(); i > 1; --i) std::swap(from[i - 1], from[static_cast<std::size_t>(draw.below(i))]);
  head_input out = in;
  const auto columns = [&](matrix<double>& to, const matrix<double>& m) {
    for (std::size_t i = 0; i < m.rows(); ++i) {
      for (std::size_t c = 0; c < from.size(); ++c) to(i, c) = m(i, from[c]);
    }
  };
  columns(out.q, in.q);
  columns(out.k, in.k);
  if (in.gated() && in.channels()) columns(out.g, in.g);
  for (std::size_t c = 0; c < from.size(); ++c)
    std::copy(in.state.row(from[c]).begin(), in.state.row(from[c]).end(), out.state.row(c).begin());
  return out;
}

/// Which errors are made by sums: where the plan rounds nowhere else, or where what is left is as small as sums make it (inputs
/// that the plan's formats hold exactly). Their order may be open.
void classify(const trial& t, drawn& runs) {
  const bool sums =
      std::all_of(t.variants.begin(), t.variants.end(), [&](const plan_variant& v) { return made_by_sums(v, t.p); });
  for (std::size_t at = 0; at + 1 < runs.pairs(); at += 2) {
    statistic &rms = runs.statistics[at], &max = runs.statistics[at + 1];
    double typical = 0;
    for (const auto& law : rms.samples)
      typical = std::max(typical, std::accumulate(law.begin(), law.end(), 0.0) / static_cast<double>(law.size()));
    const bool own = sums && (rms.tensor == "final_state" || stored_format(t.variants.front(), "o").precision >= fp32.precision);
    rms.allowance = max.allowance = t.order_is_open() && (own || typical <= runs.places[at].truth * 0x1p-16) ? open_order : 1;
  }
}

/// Of one head.
struct head_norms {
  lane_norms got, truth, radius;
};

/// A result that is as near as half the smallest number of its format is rounded right.
double least_error(const trial& t, bool state) {
  return smallest_subnormal((state ? *t.r.final_state : t.r.o).element_format()) / 2;
}

/// The degrees of freedom behind the spread of a state, over all heads that run often.
std::size_t degrees_of_state(const trial& t) {
  std::size_t degrees = 0;
  for (const std::size_t i : t.slice) {
    const std::size_t whole = t.whole_runs_of(i, 1), early = t.runs_of(i, 1) - whole;
    degrees += (whole - 1 + (early > 0 ? early - 1 : 0)) * t.kinds.size();
  }
  return degrees;
}

/// The places of head `i` with what the result errs there, and room for the errors of each law. `degrees`: degrees_of_state.
head_norms add_head(const trial& t, std::size_t i, std::size_t degrees, drawn& out) {
  const lane& at = t.lanes[i];
  const auto where = buckets(at.judged, t.unit);
  const lane_norms got = norms(errors_of_result(t.p, t.r, t.truth, at), where, at.judged);
  const lane_norms truth = truth_norms(t.p, t.truth, at, where), radius = radius_norms(t.p, t.truth, at, where);
  for (std::size_t b = 0; b < got.rms.size(); ++b) {
    const bool state = b == where.size();
    for (const norm_kind norm : {norm_kind::rms, norm_kind::max}) {
      judged_statistic place;
      place.tensor = state ? "final_state" : "o";
      place.sequence = at.sequence;
      place.head = at.head;
      place.first_token = state ? 0 : where[b].first;
      place.last_token = state ? at.judged : where[b].last;
      place.norm = norm;
      place.got = norm == norm_kind::rms ? got.rms[b] : got.max[b];
      place.truth = norm == norm_kind::rms ? truth.rms[b] : truth.max[b];
      out.places.push_back(place);
      const double known = norm == norm_kind::rms ? radius.rms[b] : radius.max[b];
      statistic s{place.tensor, state ? 0 : b, i, norm, std::max(known, least_error(t, state)), {}};
      const bool early = !state && place.last_token <= early_end(at, t.unit);
      for (std::size_t law = 0; law < laws_of_runs(t.kinds.size()); ++law) {
        const std::size_t all = t.runs_of(i, law), whole = t.whole_runs_of(i, law);
        s.samples.emplace_back(std::max<std::size_t>(1, early ? all : whole), 0.0);
        // A run that stops early leaves a state too: a neighbour of the one that is judged.
        if (state) s.neighbours.emplace_back(all - whole, 0.0);
      }
      s.laws_of_variant = laws_of_runs(1);
      s.few_runs = !t.runs_often(i);
      // A state has no other neighbours to fill a pool with: the runs there are must do.
      if (state) s.wide_degrees = std::clamp(degrees, near_pool_degrees, wide_pool_degrees);
      out.statistics.push_back(std::move(s));
    }
  }
  return {got, truth, radius};
}

/// The places of tiles of head `i`, whose rms has the places from `first` on; `runs`: by law and run, its tiles.
void add_tile_places(const trial& t, std::size_t i, const head_norms& norms, std::size_t first,
                     const std::array<tile_runs, 2>& runs, typical_tiles& typical, drawn& out) {
  const lane& at = t.lanes[i];
  const auto where = buckets(at.judged, t.unit);
  const std::array<tiling, 2> tiles = tiles_of_outputs(at, where, t.p);
  std::size_t place = first;
  for (std::size_t tensor = 0; tensor < (at.state ? 2 : 1); ++tensor) {
    const std::size_t places = tensor == 0 ? where.size() : 1;
    const format& stored = (tensor == 0 ? t.r.o : *t.r.final_state).element_format();
    const std::vector<double>&got = norms.got.tiles[tensor], &truth = norms.truth.tiles[tensor];
    const tiles_of_head known(runs[tensor], tile_floors(norms.radius.tiles[tensor], truth, stored), t.whole_runs_of(i, 1));
    out.scales[i][tensor] = known.scales();
    for (std::size_t b = 0; b < places; ++b, place += 2) {
      const tiling::range range =
          tensor == 0 ? tiles[0].of_rows(where[b].first, where[b].last) : tiling::range{0, tiles[1].size()};
      auto samples = known.samples_of(range, out.statistics[place], typical);
      if (!samples) continue;
      if (t.runs_often(i)) typical.add(*samples);
      out.beside.push_back(place);
      out.places.push_back(place_of_tiles(out.places[place], known, got, truth, tiles[tensor], range, 1 - tensor));
      out.statistics.push_back(std::move(*samples));
    }
  }
}

}  // namespace

bool made_by_sums(const plan_variant& v, const problem& p) {
  const auto wide = [](const format& f) { return f.precision >= fp32.precision; };
  const auto kept = [&](const std::optional<format>& f) { return !f || wide(*f); };
  bool all = !v.state.cache && !v.state.between_calls && wide(v.state.accumulate) && wide(v.state.store.to) &&
             kept(v.state.between_tokens) && wide(v.v_new.store) && wide(v.v_new.update_operand.to) && wide(v.o.operand.to) &&
             wide(v.o.accumulate) && wide(v.cumsum) && kept(v.o.scale_format) && kept(v.o.scale_store) &&
             kept(v.o.product_store) && (!p.qk_l2norm || (kept(v.l2norm_store) && wide(v.l2norm_compute)));
  if (v.step == step_factor::rows)
    all = all && wide(v.beta.precision >= p.q.element_format().precision ? v.beta : p.q.element_format());
  if (v.path == path_kind::recurrent) return all;
  for (const auto& x : {v.A.operand, v.inverse.operand, v.inverse.merge_operand, v.u.operand, v.w.operand})
    all = all && wide(x.to);
  for (const format& f :
       {v.A.accumulate, v.A.store, v.inverse.accumulate, v.inverse.merge_accumulate, v.inverse.store, v.u.store, v.w.store})
    all = all && wide(f);
  return all && kept(v.inverse.between) && kept(v.A.product_store);
}

double share_of_truth(double error, double truth) {
  return error <= 0 ? 0 : truth > 0 ? error / truth : std::numeric_limits<double>::infinity();
}

std::vector<threshold> limits_beside_truth(std::vector<statistic> all, const std::vector<judged_statistic>& places,
                                           const false_alarm& alarm, const shares_of_factors& of) {
  // A ratio of two errors has the tail of neither.
  for (statistic& s : all) s.first_order = s.norm != norm_kind::tiles;
  std::vector<double> shares;
  const std::vector<threshold> first = thresholds(all, alarm);
  for (std::size_t i = 0; i < all.size(); ++i) {
    const bool zero = first[i].at_floor && places[i].truth <= all[i].floor;
    shares.push_back(zero ? 0 : share_of_truth(first[i].value, places[i].truth));
  }
  if (of) of(shares);
  for (std::size_t i = 0; i < all.size(); ++i) {
    all[i].first_order = shares[i] <= 0.5 && all[i].norm != norm_kind::tiles;
    if (all[i].first_order) all[i].second_order = 1 / (1 - shares[i]);
  }
  return thresholds(all, alarm);
}

bool need_more_runs(const std::vector<statistic>& all, double family, const std::vector<run_kind>& kinds) {
  const false_alarm alarm{family, std::max<std::size_t>(1, all.size())};
  const std::vector<threshold> limits = thresholds(all, of_each_variant(alarm, kinds));
  for (std::size_t i = 0; i < all.size(); ++i) {
    if (all[i].norm != norm_kind::tiles && limits[i].finite && !limits[i].at_floor && !limits[i].enough) return true;
  }
  return false;
}

std::vector<run_kind> kinds_of(std::span<const plan_variant> variants, const problem& p) {
  std::vector<run_kind> out;
  for (std::size_t v = 0; v < variants.size(); ++v) {
    if (v > 0 && variants[v].is_reordered && !made_by_sums(variants[v], p)) {
      out.front().push_back(v);
    } else {
      out.push_back({v});
    }
  }
  return out;
}

std::size_t most_of_a_kind(const std::vector<run_kind>& kinds) {
  std::size_t most = 1;
  for (const run_kind& kind : kinds) most = std::max(most, kind.size());
  return most;
}

namespace {

forward_sample forward_run(const trial& t, heads_read& heads, std::size_t i, std::size_t law, std::size_t run) {
  const lane& at = t.lanes[i];
  const auto where = buckets(at.judged, t.unit);
  if (const auto made = t.known.find({i, law, run}); made != t.known.end() && at.judged == at.range.tokens) {
    if (made->second.errors.rms.size() == where.size() + (at.state ? 1 : 0)) return made->second;
  }
  const auto in = heads.take(i);
  const plan_variant& variant = t.variants[t.variant_of_run(i, law, run)];
  const std::uint64_t seed = t.seed_of_run(i, law, run);
  range_seen range{};
  const bool early = run >= t.whole_runs_of(i, law);
  lane_errors e = law % 2 == 0 ? errors_on_given_inputs(t.p, *in, variant, seed, t.truth, at, &range)
                  : early      ? errors_of_draw(first_tokens(*in, early_end(at, t.unit)), variant, seed, &range)
                               : errors_of_draw(*in, variant, seed, &range);
  return sample_of(t, at, std::move(e), range);
}

}  // namespace

forward_sample sample_of(const trial& t, const lane& at, lane_errors errors, const range_seen& range) {
  if (!at.state) errors.state = matrix<double>();
  leave_out(at, errors.o, errors.state);
  return {norms(errors, buckets(at.judged, t.unit), at.judged), finite_tokens(errors.o), range};
}

namespace {

/// What runs say of every head: samples by place, law and run, and tiles.
struct drawn_outputs {
  range_seen range{};
  std::vector<std::size_t> finite;
  std::vector<std::vector<std::vector<double>>> samples, neighbours;
  std::vector<std::array<tile_runs, 2>> tiles;  ///< of o and of the state, by lane
};

}  // namespace

drawn draw_runs(const trial& t) {
  drawn out;
  struct job {
    std::size_t lane, law, run;
  };
  std::vector<job> jobs;
  std::vector<std::size_t> first_place(t.lanes.size()), jobs_of_lane(t.lanes.size(), 0);
  std::vector<head_norms> norms_of_head;
  const std::size_t degrees = degrees_of_state(t);
  for (std::size_t i = 0; i < t.lanes.size(); ++i) {
    out.finite.push_back(t.lanes[i].judged);
    first_place[i] = out.places.size();
    norms_of_head.push_back(add_head(t, i, degrees, out));
    for (std::size_t law = 0; law < laws_of_runs(t.kinds.size()); ++law) {
      for (std::size_t r = 0; r < t.runs_of(i, law); ++r, ++jobs_of_lane[i]) jobs.push_back({i, law, r});
    }
  }
  // What the result errs in its tiles is told by what runs err there.
  const auto finish = [&](const drawn_outputs& runs) {
    out.range = runs.range;
    out.finite = runs.finite;
    for (std::size_t i = 0; i < out.statistics.size(); ++i) {
      out.statistics[i].samples = runs.samples[i];
      out.statistics[i].neighbours = runs.neighbours[i];
    }
    out.scales.resize(t.lanes.size());
    typical_tiles typical;
    for (const bool often : {true, false}) {
      for (std::size_t i = 0; i < t.lanes.size() && !t.stopped(); ++i) {
        if (t.runs_often(i) == often) add_tile_places(t, i, norms_of_head[i], first_place[i], runs.tiles[i], typical, out);
      }
    }
    classify(t, out);
    return out;
  };
  const std::string key = "runs " + t.lanes_key();
  if (const auto kept = recall<drawn_outputs>(t.options, key)) return finish(*kept);
  drawn_outputs runs{{}, out.finite, {}, {}, std::vector<std::array<tile_runs, 2>>(t.lanes.size())};
  for (const statistic& s : out.statistics) {
    runs.samples.push_back(s.samples);
    runs.neighbours.push_back(s.neighbours);
  }
  for (std::size_t i = 0; i < t.lanes.size(); ++i) {
    for (std::size_t law = 0; law < laws_of_runs(t.kinds.size()); ++law) {
      for (tile_runs& tensor : runs.tiles[i]) tensor.emplace_back(std::max<std::size_t>(1, t.runs_of(i, law)));
    }
  }
  heads_read heads(t.p, t.lanes, jobs_of_lane);
  std::mutex lock;
  std::size_t done = 0;
  parallel_for(jobs.size(), t.options.threads, [&](std::size_t j) {
    if (t.stopped()) return;
    const auto [i, law, r] = jobs[j];
    const lane& at = t.lanes[i];
    auto [n, finite, range] = forward_run(t, heads, i, law, r);
    const std::size_t whole = t.whole_runs_of(i, law);
    const std::lock_guard guard(lock);
    if (r < whole || finite < early_end(at, t.unit)) runs.finite[i] = std::min(runs.finite[i], finite);
    // Where the exact recurrence itself leaves the range, what the plan forms there is not the plan's doing.
    if (at.stays_in_range()) widen(runs.range, range);
    for (std::size_t k = 0; k < n.tiles.size(); ++k) runs.tiles[i][k][law][r] = std::move(n.tiles[k]);
    for (std::size_t b = 0; b < n.rms.size(); ++b) {
      for (const norm_kind norm : {norm_kind::rms, norm_kind::max}) {
        const std::size_t place = first_place[i] + 2 * b + (norm == norm_kind::rms ? 0 : 1);
        auto &samples = runs.samples[place], &neighbours = runs.neighbours[place];
        if (r < samples[law].size()) {
          samples[law][r] = n.in(norm)[b];
        } else if (!neighbours.empty()) {
          neighbours[law][r - whole] = n.in(norm)[b];
        }
        // Where no run on moved inputs comes, the one on the given inputs says where the head lies.
        if (law % 2 == 0 && t.whole_runs_of(i, law + 1) == 0 && samples[law + 1].size() == 1) samples[law + 1] = samples[law];
      }
    }
    if (t.options.progress) t.options.progress("emulation", static_cast<double>(++done) / static_cast<double>(jobs.size()));
  });
  if (!t.stopped()) keep(t.options, key, runs);
  return finish(runs);
}

namespace {

/// The stages of one run. Its o, which is judged as an output, only where that says more: which state it was made of, or that it
/// overflows.
stage_report stages_of_run(const problem& p, const result& run, const stage_roundings& roundings) {
  const bool has_state = run.stages.count("h") != 0 && run.stages.count("v_new") != 0;
  const std::vector<double> o = run.o.to_doubles();
  const bool finite = std::all_of(o.begin(), o.end(), [](double x) { return std::isfinite(x); });
  return measure_stages(p, run, roundings, {{}, 1, !has_state || !finite});
}

/// What runs of the plan measure on the stages of a slice, [law][run].
std::vector<std::vector<stage_report>> draw_reports(const trial& t, const problem& p, const result& r,
                                                    const stage_roundings& roundings, std::size_t runs, const std::string& key) {
  if (const auto kept = recall<std::vector<std::vector<stage_report>>>(t.options, key)) return *kept;
  const head_input in = take_head(p, 0, 0);
  std::vector<std::vector<stage_report>> reports;
  std::vector<std::pair<std::size_t, std::size_t>> jobs;
  for (std::size_t law = 0; law < laws_of_runs(t.variants.size()); ++law) {
    reports.emplace_back(law % 2 == 0 ? 1 : runs);
    for (std::size_t r = 0; r < reports.back().size(); ++r) jobs.emplace_back(law, r);
  }
  std::mutex lock;
  std::size_t done = 0;
  parallel_for(jobs.size(), t.options.threads, [&](std::size_t job) {
    if (t.stopped()) return;
    const auto [law, run] = jobs[job];
    const std::size_t v = law / 2;
    const std::uint64_t seed = t.seed(2, law, run);
    emulation_options options;
    options.stages = true;
    options.noise_ulps = 1;
    options.seed = seed;
    if (law % 2 == 1) {
      options.natural_exponents = true;
      const problem moved = problem_of(shuffled(perturbed(in, seed, narrowest_operand(t.variants[v])), seed), p);
      reports[law][run] = stages_of_run(moved, recorded_alike(emulate(moved, t.variants[v], options, 1), r), roundings);
    } else {
      reports[law][run] = stages_of_run(p, recorded_alike(emulate(p, t.variants[v], options, 1), r), roundings);
    }
    const std::lock_guard guard(lock);
    const double all = static_cast<double>(jobs.size());
    if (t.options.progress) t.options.progress("stages of emulated runs", static_cast<double>(++done) / all);
  });
  if (!t.stopped()) keep(t.options, key, reports);
  return reports;
}

}  // namespace

stage_draws draw_stages(const trial& t, const stage_roundings& roundings) {
  stage_draws out;
  if (t.path != path_kind::chunk || t.r.stages.empty()) return out;
  // Two chunks of the longest judged head show every stage of the state pass. Short chunks hold few errors: up to four of them
  // are taken. More only sharpen a mean.
  const auto longest =
      std::max_element(t.lanes.begin(), t.lanes.end(), [](const lane& a, const lane& b) { return a.judged < b.judged; });
  if (longest == t.lanes.end() || longest->judged == 0) return out;
  const std::size_t n = t.p.num_householder;
  // Never a part of a chunk: a gate factored about the middle of its block rounds otherwise where the block is cut.
  const std::size_t chunk = std::max<std::size_t>(1, t.chunk / n);
  const std::size_t chunks = std::clamp<std::size_t>(128 / chunk, 2, 4);
  const std::size_t tokens = longest->judged < (chunks + 1) * chunk ? longest->judged : chunks * chunk;
  const head_slice at{longest->sequence, longest->head, tokens};
  const problem p = slice(t.p, at);
  const result r = slice(t.r, t.p, at);
  out.slice = "sequence " + std::to_string(at.sequence) + ", head " + std::to_string(at.value_head) + ", tokens 0-" +
              std::to_string(tokens - 1);
  const stage_report got = measure_stages(p, r, roundings);

  const std::size_t runs = std::max(fewest_runs, 1 + (near_pool_degrees + t.variants.size() - 1) / t.variants.size());
  std::string key = "stages " + std::to_string(at.sequence) + "/" + std::to_string(at.value_head) + "/" + std::to_string(tokens) +
                    (r.final_state ? "s" : "");
  for (const auto& stage : r.stages) key += " " + stage.first;
  const std::vector<std::vector<stage_report>> reports = draw_reports(t, p, r, roundings, runs, key);
  for (const auto& law : reports) {
    for (const stage_report& own : law) {
      for (const stage_measurement& m : own.stages) {
        if (m.nonfinite > 0) out.overflowing.insert(m.name);
      }
    }
  }
  for (const stage_measurement& as_stored : got.stages) {
    if (as_stored.name == "o" || as_stored.name == "final_state" || as_stored.judged == 0) continue;
    const auto narrower = stored_as(t.variants.front(), r, as_stored.name);
    if (narrower) out.stored_in_more_bits.insert(as_stored.name);
    const stage_measurement m = narrower ? *measure_stages(p, *narrower, roundings).find(as_stored.name) : as_stored;
    statistic rms{m.name, 0, 0, norm_kind::rms, 0, {}};
    rms.first_order = true;
    rms.laws_of_variant = laws_of_runs(1);
    rms.wide_degrees = near_pool_degrees;
    rms.allowance = t.order_is_open() ? 1 + (open_order - 1) * std::min(1.0, m.open_share) : 1;
    signed_statistic bias{m.name, true, 0, {}};
    bool everywhere = true;
    for (const auto& law : reports) {
      rms.samples.emplace_back();
      bias.samples.emplace_back();
      for (const stage_report& run : law) {
        const stage_measurement* own = run.find(m.name);
        everywhere = everywhere && own != nullptr && own->judged > 0;
        // As it would be on the result's own stored inputs.
        rms.samples.back().push_back(
            own != nullptr && own->rms_expected > 0 ? own->rms_ratio * (m.rms_expected / own->rms_expected) : 0);
        // In sums of two products no order of summation differs from another, and runs hardly scatter; a kernel whose inputs are
        // rounded otherwise throws all of its roundings anew.
        if (own != nullptr) rms.least_spread = std::max(rms.least_spread, own->rms_scatter);
        bias.samples.back().push_back(own != nullptr ? own->bias.mean : 0);
      }
    }
    if (!everywhere) continue;
    // Where no run errs at all (sums of two products, in the format they are looked at in) nothing is known of how errors of
    // another order scatter: the bounds alone judge.
    const bool any = std::any_of(rms.samples.begin(), rms.samples.end(), [](const std::vector<double>& law) {
      return std::any_of(law.begin(), law.end(), [](double x) { return x > 0; });
    });
    if (any) {
      out.rms.push_back(std::move(rms));
      out.rms_got.push_back(m.rms_ratio);
      out.rms_of_the_rest.push_back(m.rms_of_the_rest);
    }
    // A mean of fewer errors than a byte counts is no bias worth a test: its standard error alone is 0.018 ulp and more.
    if (m.bias.count < 256) continue;
    bias.floor = m.bias.allowance;
    out.bias.push_back(std::move(bias));
    out.bias_got.push_back(m.bias.mean);
  }
  return out;
}

}  // namespace deltaproof::referee_detail
