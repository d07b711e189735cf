// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
//
// Emulated runs of a plan's backward pass, and what kind of error each place has.
#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <mutex>
#include <numeric>
#include <optional>

#include "referee/gradients.hpp"
#include "support/parallel.hpp"
#include "support/text.hpp"

namespace deltaproof::referee_detail {

namespace {

/// Groups and runs that the time allows: all equally often if it does, else some often and the others once. As for the heads of
/// a forward pass; each gradient has its own pool of residuals, and the one with the fewest places decides. A state has no
/// neighbours to fill its pool with: its near pool is all of it. Three runs are the fewest that show a skewness; how much more a
/// variant scatters than its pool is known by `variant_degrees` at least.
constexpr std::size_t variant_degrees = 12;
void plan_runs(gradient_trial& t) {
  const std::size_t kinds = t.kinds.size();
  const auto places_of = [](const gradient_lane& at, std::vector<std::size_t>& places) {
    for (const gradient_part& part : at.parts) {
      if (part.judged && !part.is_state()) places[part.tensor] += part.where.size();
    }
  };
  const auto enough = [&](const std::vector<std::size_t>& places) {
    std::size_t fewest = 0;
    for (const std::size_t count : places) {
      if (count > 0 && (fewest == 0 || count < fewest)) fewest = count;
    }
    const std::size_t near = 1 + (near_pool_degrees + kinds - 1) / kinds;
    if (fewest == 0) return std::max(fewest_runs, near);
    return std::max({fewest_runs, near, runs_needed(fewest, kinds), 1 + (variant_degrees + fewest - 1) / fewest});
  };
  std::vector<double> cost;
  std::vector<std::size_t> all(gradient_names.size());
  double total = 0;
  for (const gradient_lane& at : t.lanes) {
    places_of(at, all);
    cost.push_back(seconds_of_gradient_run(t.p, t.variants.front(), at.range.tokens) * static_cast<double>(kinds));
    total += cost.back();
  }
  const double allowed = t.options.judge.seconds * (t.options.judge.power ? 0.2 : 0.35);
  t.slice.clear();
  // Where they cost little, more runs narrow the limits: of dg a few roundings decide, and little known of their scatter is much.
  const double cheap = t.options.judge.seconds * cheap_share;
  const auto runs_of = [&](const std::vector<std::size_t>& places, double once) {
    runs_of_kind runs{1, enough(places)};
    while (runs.given < 4 && once * static_cast<double>(runs.given + 1) <= cheap) ++runs.given;
    while (runs.moved < runs_needed(1, kinds) && once * static_cast<double>(runs.moved + 1) <= cheap) ++runs.moved;
    return runs;
  };
  if (total * static_cast<double>(1 + enough(all)) <= allowed) {
    t.slice.resize(t.lanes.size());
    std::iota(t.slice.begin(), t.slice.end(), std::size_t{0});
    t.runs = runs_of(all, total);
    return;
  }
  std::vector<std::size_t> order(t.lanes.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    return std::pair(t.lanes[b].range.tokens, a) < std::pair(t.lanes[a].range.tokens, b);
  });
  double spent = total, often = 0;
  std::vector<std::size_t> places(gradient_names.size());
  for (const std::size_t i : order) {
    std::vector<std::size_t> with = places;
    places_of(t.lanes[i], with);
    const runs_of_kind runs = runs_of(with, often + cost[i]);
    if (!t.slice.empty() && spent + cost[i] * static_cast<double>(runs.moved) > allowed) break;
    spent += cost[i] * static_cast<double>(runs.moved);
    often += cost[i];
    t.slice.push_back(i);
    t.runs = runs;
    places = std::move(with);
  }
  std::sort(t.slice.begin(), t.slice.end());
}

/// How far rounding alone may take each entry of dg, even where no run shows it: one rounding in the format that stores dg, and
/// two of the largest dg of its chunk in the format of its sums. A parallel scan rounds six or seven times where a sum from row
/// to row rounds once.
std::vector<double> roundings_of_dg(const gradient_trial& t, const gradient_part& part, const std::vector<double>& exact) {
  const plan_variant& v = t.variants.front();
  const double stored = unit_roundoff(stored_gradient_format(v, t.p, "dg")), sums = unit_roundoff(v.backward->accumulate);
  std::vector<double> out(exact.size());
  for (std::size_t first = 0; first < part.rows; first += part.chunk) {
    const std::size_t last = std::min(first + part.chunk, part.rows);
    for (std::size_t m = 0; m < part.width; ++m) {
      double largest = 0;
      for (std::size_t row = first; row < last; ++row) largest = std::max(largest, std::fabs(exact[row * part.width + m]));
      for (std::size_t i = first * part.width + m; i < last * part.width; i += part.width)
        out[i] = stored * std::fabs(exact[i]) + 2 * sums * largest;
    }
  }
  return out;
}

/// By bucket, the norms of the radii of what is judged of a part, and at least half the smallest number of the format that the
/// plan stores it in.
lane_norms floors_of(const gradient_trial& t, const gradient_part& part) {
  const reference_tensor& truth = t.exact.truth.tensors.find(part.name())->second;
  const std::vector<double>&exact = truth.value, &radius = truth.radius;
  const double least = smallest_subnormal(stored_gradient_format(t.variants.front(), t.p, part.name())) / 2;
  const auto finite = [](double x) { return std::isfinite(x) ? x : 0; };
  std::vector<double> own, values;
  for (std::size_t row = 0; row < part.rows; ++row) {
    for (std::size_t j = 0; j < part.width; ++j) {
      own.push_back(finite(radius[part.first + row * part.stride + j]));
      if (part.has_changes()) values.push_back(finite(exact[part.first + row * part.stride + j]));
    }
  }
  lane_norms floors = norms_of(part, own);
  if (part.has_changes()) {
    const std::vector<double> rounded = roundings_of_dg(t, part, values);
    for (std::size_t i = 0; i < own.size(); ++i) own[i] += rounded[i];
  }
  floors.changes = changes_of(part, own, true);
  for (std::vector<double>* norm : {&floors.rms, &floors.max, &floors.changes}) {
    for (double& x : *norm) x = std::max(x, least);
  }
  return floors;
}

/// What runs leave of one lane: by norm, part and bucket, the errors of each law; and by part their tiles, if it ran often.
struct lane_samples {
  std::map<norm_kind, std::vector<std::vector<statistic>>> norms;
  std::vector<tile_runs> tiles;
};
constexpr std::array all_norms{norm_kind::rms, norm_kind::max, norm_kind::changes};

double typical_of(const statistic& s) {
  double typical = 0;
  for (const auto& law : s.samples) {
    if (!law.empty()) typical = std::max(typical, std::accumulate(law.begin(), law.end(), 0.0) / static_cast<double>(law.size()));
  }
  return typical;
}

/// Whether every format of the backward pass is fp32 or wider: its error is that of its sums.
bool adds_in_fp32(const backward_variant& b) {
  const auto wide = [](const format& f) { return f.precision >= fp32.precision; };
  for (const format& f : {b.accumulate, b.operand.to, b.read_operand.to, b.intra_operand.to, b.dh, b.dv_local, b.dv2, b.dw, b.ds,
                          b.dA, b.state_sum, b.residual, b.dv, b.dq, b.dk, b.dbeta, b.dg, b.group_sum, b.group_store}) {
    if (!wide(f)) return false;
  }
  return (!b.h || wide(b.h->to)) && (!b.v_new || wide(b.v_new->to)) && (!b.dA_between || wide(*b.dA_between)) &&
         (!b.gated_key || wide(*b.gated_key));
}

/// Whether the order in which the terms of dg are added is open, and rounds in 16 bits.
bool opens_state_sum(const gradient_trial& t) {
  return t.declared.backward.state_sum_order.size() > 1 &&
         std::any_of(t.variants.begin(), t.variants.end(),
                     [](const plan_variant& v) { return v.backward->state_sum.precision < fp32.precision; });
}

/// What is open in the order of sums.
void classify(const gradient_trial& t, const gradient_lane& at, const std::vector<lane_norms>& truth, lane_samples& drawn) {
  const bool sums = std::all_of(t.variants.begin(), t.variants.end(),
                                [&](const plan_variant& v) { return made_by_sums(v, t.p) && adds_in_fp32(*v.backward); });
  const bool order_is_open = t.declared.A.order.size() > 1, state_sum_is_open = opens_state_sum(t);
  for (std::size_t k = 0; k < at.parts.size(); ++k) {
    const gradient_part& part = at.parts[k];
    for (std::size_t b = 0; b < part.where.size(); ++b) {
      const auto in_sums = [&](norm_kind norm) {
        const double relative = share_of_truth(typical_of(drawn.norms[norm][k][b]), truth[k].in(norm)[b]);
        return order_is_open && (sums || relative <= 0x1p-16);
      };
      const bool open = in_sums(norm_kind::rms) || (state_sum_is_open && part.name() == "dg");
      for (const norm_kind norm : {norm_kind::rms, norm_kind::max}) drawn.norms[norm][k][b].allowance = open ? open_order : 1;
      if (part.has_changes()) drawn.norms[norm_kind::changes][k][b].allowance = in_sums(norm_kind::changes) ? open_order : 1;
    }
  }
}

/// Room for the errors of each law in every place of lane `i`. Other readings of runs are those of the first two laws.
lane_samples room_for(const gradient_trial& t, std::size_t i) {
  const gradient_lane& at = t.lanes[i];
  lane_samples out;
  for (const gradient_part& part : at.parts) {
    const std::size_t own = laws_of_runs(t.kinds.size()),
                      others = part.name() == "dg" ? laws_of_runs(t.variants.size() - t.own) : 0;
    const lane_norms floors = part.judged ? floors_of(t, part) : lane_norms{};
    out.tiles.emplace_back();
    for (std::size_t law = 0; law < own + others; ++law) {
      out.tiles.back().emplace_back(t.runs_of(i, law < own ? law : law % 2));
    }
    for (const norm_kind norm : all_norms) {
      auto& to = out.norms[norm].emplace_back();
      for (std::size_t b = 0; b < part.where.size() && (norm != norm_kind::changes || part.has_changes()); ++b) {
        statistic& s =
            to.emplace_back(statistic{std::string(part.name()), b, part.pool, norm, part.judged ? floors.in(norm)[b] : 0, {}});
        for (std::size_t law = 0; law < own + others; ++law) s.samples.emplace_back(t.runs_of(i, law < own ? law : law % 2), 0.0);
        s.independent = own;
        s.laws_of_variant = laws_of_runs(1);
        s.few_runs = !t.runs_often(i);
        if (part.is_state()) s.wide_degrees = near_pool_degrees;
      }
    }
  }
  return out;
}

/// The tiles of a part of a lane, whose rms has the places from `first` on: what the result errs in them, and the exact values.
struct tiles_of_part {
  std::size_t lane, part, first;
  std::vector<double> got, truth;
};

void add_tile_places(const gradient_trial& t, const tiles_of_part& at, const tile_runs& runs, typical_tiles& typical,
                     drawn_gradients& out, drawn_gradients& tiles) {
  const gradient_part& part = t.lanes[at.lane].parts[at.part];
  const format& stored = t.r.gradients.find(std::string(part.name()))->second.element_format();
  const tiles_of_head known(runs, tile_floors(floors_of(t, part).tiles.front(), at.truth, stored));
  out.scales[at.lane][at.part] = known.scales();
  for (std::size_t b = 0; b < part.where.size(); ++b) {
    const bucket rows = part.rows_of(part.where[b]);
    const tiling::range range = part.tiles().of_rows(rows.first, rows.last);
    const std::size_t place = at.first + 2 * b;
    auto samples = known.samples_of(range, out.statistics[place], typical);
    if (!samples) continue;
    if (t.runs_often(at.lane)) typical.add(*samples);
    tiles.beside.push_back(place);
    tiles.places.push_back(place_of_tiles(out.places[place], known, at.got, at.truth, part.tiles(), range, part.steps));
    tiles.statistics.push_back(std::move(*samples));
  }
}

/// The places of lane `i` with what the result errs there; the statistics of parts that it does not hold have served. `changes`:
/// those that follow all others; `tiles`: of the parts that it holds.
void add_lane(const gradient_trial& t, std::size_t i, const std::vector<lane_norms>& truth, lane_samples& samples,
              drawn_gradients& out, drawn_gradients& changes, std::vector<tiles_of_part>& tiles) {
  const gradient_lane& at = t.lanes[i];
  out.first_place.push_back(out.places.size());
  out.first_change.push_back(changes.places.size());
  out.scales.emplace_back(at.parts.size());
  const part_values errors = errors_of_result(t, at);
  for (std::size_t k = 0; k < at.parts.size(); ++k) {
    const gradient_part& part = at.parts[k];
    if (!part.judged) continue;
    const lane_norms got = norms_of(part, errors[k]);
    tiles.push_back({i, k, out.places.size(), got.tiles.front(), truth[k].tiles.front()});
    for (std::size_t b = 0; b < part.where.size(); ++b) {
      for (const norm_kind norm : all_norms) {
        if (norm == norm_kind::changes && !part.has_changes()) continue;
        drawn_gradients& to = norm == norm_kind::changes ? changes : out;
        judged_statistic& place = to.places.emplace_back();
        place.tensor = part.name();
        place.sequence = at.sequence;
        place.head = part.head;
        place.first_token = part.where[b].first;
        place.last_token = part.where[b].last;
        place.norm = norm;
        place.got = got.in(norm)[b];
        place.truth = truth[k].in(norm)[b];
        to.statistics.push_back(std::move(samples.norms[norm][k][b]));
      }
    }
  }
}

struct kept_runs {
  std::vector<lane_samples> samples;
  range_seen range{};
  forward_samples forward;
};

/// The lane and law of the forward pass that a run of a lane repeats: where the group is one head, the forward pass of its run
/// is the run of that number that a forward check makes. A variant of the backward pass alone has none.
struct same_forward {
  std::size_t lane, law;
};

std::optional<same_forward> forward_of(const gradient_trial& t, const gradient_lane& at, const plan_variant& v, std::size_t moved,
                                       std::size_t run) {
  const trial& f = t.forward;
  if (!t.r.has_outputs() || t.p.key_heads() != t.p.value_heads()) return std::nullopt;
  const auto lane = std::find_if(f.lanes.begin(), f.lanes.end(), [&](const auto& x) {
    return x.sequence == at.sequence && x.head == at.key_head && x.judged == x.range.tokens;
  });
  const auto is_same = [&](const plan_variant& x) { return x.name == v.name && x.o.store == v.o.store; };
  if (lane == f.lanes.end()) return std::nullopt;
  const auto number = static_cast<std::size_t>(lane - f.lanes.begin());
  for (std::size_t law = moved; law < laws_of_runs(f.kinds.size()); law += 2) {
    if (is_same(f.variants[f.variant_of_run(number, law, run)])) return same_forward{number, law};
  }
  return std::nullopt;
}

/// Of one run: for each law that it is one of, the norms of each part's errors; of the laws of other orders those of dg alone.
using norms_by_law = std::map<std::size_t, std::vector<std::optional<lane_norms>>>;

norms_by_law norms_of_run(const gradient_trial& t, const gradient_lane& at, std::size_t law, const part_values& errors,
                          const other_sums& others) {
  norms_by_law out;
  for (std::size_t k = 0; k < at.parts.size(); ++k) out[law].emplace_back(norms_of(at.parts[k], errors[k]));
  for (std::size_t o = 0; o < others.less_own.size(); ++o) {
    auto& of_law = out[laws_of_runs(t.kinds.size() + o) + law];
    of_law.resize(at.parts.size());
    for (std::size_t k = 0; k < at.parts.size(); ++k) {
      std::vector<double> error = others.less_own[o][k];
      if (error.empty()) continue;
      for (std::size_t i = 0; i < error.size(); ++i) error[i] += errors[k][i];
      of_law[k] = norms_of(at.parts[k], error);
    }
  }
  return out;
}

/// A lane that runs `once` has no second law: what its run on the given inputs says stands for both.
void put_samples(const norms_by_law& from, std::size_t run, bool once, lane_samples& to) {
  for (const auto& [law, parts] : from) {
    for (std::size_t k = 0; k < parts.size(); ++k) {
      if (!parts[k]) continue;
      if (!parts[k]->tiles.empty()) to.tiles[k][law][run] = parts[k]->tiles.front();
      for (const norm_kind norm : all_norms) {
        const std::vector<double>& values = parts[k]->in(norm);
        for (std::size_t b = 0; b < values.size(); ++b) {
          auto& samples = to.norms[norm][k][b].samples;
          samples[law][run] = values[b];
          if (once) samples[law + 1] = samples[law];
        }
      }
    }
  }
}

/// The errors of every run of every lane.
kept_runs draw_samples(const gradient_trial& t) {
  struct job {
    std::size_t lane, law, run;
  };
  kept_runs out;
  std::vector<job> jobs;
  std::vector<std::size_t> jobs_of_lane(t.lanes.size(), 0);
  for (std::size_t i = 0; i < t.lanes.size(); ++i) {
    out.samples.push_back(room_for(t, i));
    // A head that runs once has no spread of its own: the run on the given inputs says where it lies.
    for (std::size_t law = 0; law < laws_of_runs(t.kinds.size()); law += t.runs_often(i) ? 1 : 2) {
      for (std::size_t r = 0; r < t.runs_of(i, law); ++r, ++jobs_of_lane[i]) jobs.push_back({i, law, r});
    }
  }
  std::vector<tile_order> other_orders;
  for (std::size_t v = t.own; v < t.variants.size(); ++v) other_orders.push_back(t.variants[v].backward->state_sum_order);
  read_by_jobs<std::vector<gradient_head>> groups(jobs_of_lane);
  std::mutex lock;
  std::size_t done = 0;
  parallel_for(jobs.size(), t.options.threads, [&](std::size_t j) {
    if (t.stopped()) return;
    const auto [i, law, r] = jobs[j];
    const gradient_lane& at = t.lanes[i];
    const auto group = groups.take(i, [&] { return take_group(t.p, at.sequence, at.key_head); });
    const plan_variant& variant = t.variants[t.variant_of_run(i, law, r)];
    const auto same = forward_of(t, at, variant, law % 2, r);
    const std::size_t forward_law = same ? same->law : 0;
    const std::uint64_t seed = same ? t.forward.seed_of_run(same->lane, forward_law, r) : t.seed(5, i, law * 1024 + r);
    forward_pass forward;
    forward.errs = same ? &t.forward.lanes[same->lane] : nullptr;
    other_sums others;
    if (law < 2) others.orders = other_orders;
    const part_values errors = law % 2 == 0 ? gradient_errors_on_given(t, at, *group, variant, seed, &forward, &others)
                                            : gradient_errors_of_draw(at, *group, variant, seed, &forward, &others);
    const norms_by_law norms = norms_of_run(t, at, law, errors, others);
    forward_sample outputs;
    if (same) outputs = sample_of(t.forward, *forward.errs, std::move(forward.errors), forward.range);
    const std::lock_guard guard(lock);
    if (at.whole) widen(out.range, forward.range);
    if (same) out.forward.emplace(std::array{same->lane, forward_law, r}, std::move(outputs));
    put_samples(norms, r, !t.runs_often(i), out.samples[i]);
    if (t.options.progress)
      t.options.progress("emulation of gradients", static_cast<double>(++done) / static_cast<double>(jobs.size()));
  });
  return out;
}

drawn_gradients drawn_once(const gradient_trial& t) {
  // Beside outputs, runs are those that a check of outputs makes too.
  const std::string key = (t.r.has_outputs() ? "gradients beside outputs " : "gradients ") + t.lanes_key();
  // Which elements are left out depends on the formats of the result.
  const bool reusable = std::all_of(t.lanes.begin(), t.lanes.end(), [](const gradient_lane& at) { return at.whole; });
  kept_runs runs;
  if (const auto kept = reusable ? recall<kept_runs>(t.options, key) : nullptr) {
    runs = *kept;
  } else {
    runs = draw_samples(t);
    if (reusable && !t.stopped()) keep(t.options, key, runs);
  }
  drawn_gradients out, changes, tiles;
  std::vector<tiles_of_part> parts;
  out.range = runs.range;
  out.forward = std::move(runs.forward);
  for (std::size_t i = 0; i < t.lanes.size(); ++i) {
    const gradient_lane& at = t.lanes[i];
    const part_values exact = exact_values(t, at);
    std::vector<lane_norms> truth;
    for (std::size_t k = 0; k < at.parts.size(); ++k) truth.push_back(norms_of(at.parts[k], exact[k]));
    classify(t, at, truth, runs.samples[i]);
    add_lane(t, i, truth, runs.samples[i], out, changes, parts);
  }
  typical_tiles typical;
  for (const bool often : {true, false}) {
    for (const tiles_of_part& at : parts) {
      if (t.runs_often(at.lane) == often && !t.stopped())
        add_tile_places(t, at, runs.samples[at.lane].tiles[at.part], typical, out, tiles);
    }
  }
  for (std::size_t& first : out.first_change) first += out.places.size();
  out.beside = std::move(tiles.beside);
  for (drawn_gradients* more : {&changes, &tiles}) {
    std::move(more->places.begin(), more->places.end(), std::back_inserter(out.places));
    std::move(more->statistics.begin(), more->statistics.end(), std::back_inserter(out.statistics));
  }
  return out;
}

}  // namespace

drawn_gradients draw_gradients(gradient_trial& t, overflow_question& overflow) {
  plan_runs(t);
  drawn_gradients runs = drawn_once(t);
  if (!t.stopped() && leave_out_overflowing_gradients(t, runs, overflow)) {
    plan_runs(t);
    runs = drawn_once(t);
  }
  // A place whose runs are not finite, or lie at the floor, leaves the pool: the others then need more of them.
  for (int more = 0; more < 3 && !t.stopped(); ++more) {
    if (!need_more_runs(runs.statistics, t.options.judge.own_false_alarm(), t.kinds)) break;
    t.runs.moved *= 2;
    runs = drawn_once(t);
  }
  return runs;
}

std::vector<threshold> gradient_limits(const drawn_gradients& runs, const false_alarm& alarm) {
  return limits_beside_truth(runs.statistics, runs.places, alarm, [&](std::vector<double>& shares) {
    for (std::size_t lane = 0; lane < runs.first_place.size(); ++lane) {
      const std::size_t begin = runs.first_place[lane];
      const std::size_t end = lane + 1 < runs.first_place.size() ? runs.first_place[lane + 1]
                              : runs.first_change.empty()        ? shares.size()
                                                                 : runs.first_change.front();
      std::map<std::string, double> of_rows{{"dq", -1}, {"dk", -1}, {"dv", -1}};
      for (std::size_t i = begin; i < end; ++i) {
        const auto row = of_rows.find(runs.places[i].tensor);
        if (row != of_rows.end() && runs.places[i].norm == norm_kind::rms) row->second = std::max(row->second, shares[i]);
      }
      // What a result does not hold shows nothing.
      double of_factors = 0;
      for (const auto& [tensor, share] : of_rows) of_factors = share < 0 ? infinity : std::max(of_factors, share);
      for (std::size_t i = begin; i < end; ++i) {
        if (runs.places[i].tensor == "dg" || runs.places[i].tensor == "dbeta") shares[i] = std::min(shares[i], of_factors);
      }
    }
  });
}

std::string gradient_slice_text(const gradient_trial& t) {
  std::vector<std::pair<std::size_t, std::size_t>> often;
  for (const std::size_t i : t.slice) often.emplace_back(t.lanes[i].sequence, t.lanes[i].key_head);
  return slice_text(often, t.lanes.size(), "key head");
}

}  // namespace deltaproof::referee_detail
