// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
#include <algorithm>
#include <cmath>
#include <mutex>
#include <utility>

#include "emulate/fault.hpp"
#include "referee/parts.hpp"
#include "support/parallel.hpp"

namespace deltaproof::referee_detail {

namespace {

using flat = std::vector<float>;
using by_run = std::vector<std::vector<double>>;  ///< [variant][run]

/// Sum of x y; what is not finite in either counts as 0: a fault must show by its error.
double inner(const flat& x, const flat& y) {
  double sum = 0;
  for (std::size_t i = 0; i < x.size(); ++i) {
    const double product = static_cast<double>(x[i]) * static_cast<double>(y[i]);
    if (std::isfinite(product)) sum += product;
  }
  return sum;
}

flat difference(const double* a, const double* b, std::size_t count) {
  flat out(count);
  for (std::size_t i = 0; i < count; ++i) {
    const double d = a[i] - b[i];
    out[i] = std::isfinite(d) ? static_cast<float>(d) : 0.0F;
  }
  return out;
}

flat as_flat(const double* a, std::size_t count) {
  flat out(count);
  for (std::size_t i = 0; i < count; ++i) out[i] = std::isfinite(a[i]) ? static_cast<float>(a[i]) : 0.0F;
  return out;
}

/// One of the two judged tensors of a lane, as runs of the plan leave it.
struct part {
  flat base;                             ///< error of the plain run
  std::vector<std::vector<flat>> same;   ///< [variant][run]: run - plain run, on the same inputs
  std::vector<std::vector<flat>> moved;  ///< [variant][run]: errors of draws
  std::vector<flat> finer;               ///< [rounding left out]: run - plain run, on the same inputs
  flat mean_same;                        ///< of same
  by_run same_size, moved_size;          ///< sums of squares of the errors of these runs
};

/// Sums over lanes for one tensor: squared sizes of errors, [variant][run].
struct error_sizes {
  by_run same, moved;
};

/// Sums over lanes for one (fault, tensor).
struct sums {
  double own = 0;  ///< <d, d>
  double got = 0;
  double base = 0;
  double deviation = 0;  ///< <got - base - mean(same), d>
  double deviation_size = 0;
  by_run same, moved;
  std::vector<double> finer;  ///< by rounding left out
};

/// One planted fault in one lane; `difference` is faulty - plain in o and in the state.
struct fault_run {
  bool lost_tokens = false;
  std::array<flat, 2> difference;
  lane_norms finite_norms;  ///< of its error, where the whole lane was run
  std::array<sums, 2> own;  ///< what no result enters
};

/// The variant with one of its roundings left out, each in turn: kernels that keep the plan, and lie in a direction of their own.
std::vector<plan_variant> one_rounding_fewer(const plan_variant& v) {
  using leave_out = bool (*)(plan_variant&);
  static constexpr auto keep = [](format& f) { return f.precision < fp32.precision && (f = fp32, true); };
  static constexpr auto hold = [](narrowing& n) { return n.to.precision < fp32.precision && (n = {fp32, false}, true); };
  static constexpr auto drop = [](std::optional<format>& f) { return f && f->precision < fp32.precision && (f.reset(), true); };
  static constexpr auto before_it_is_stored = [](const plan_variant& x, std::optional<narrowing>& operand) {
    return x.path == path_kind::chunk && !operand && x.state.store.to.precision < fp32.precision &&
           (operand = narrowing{fp32, false}, true);
  };
  static constexpr leave_out all[] = {
      [](plan_variant& x) { return drop(x.l2norm_store); },
      [](plan_variant& x) { return keep(x.beta); },
      [](plan_variant& x) { return hold(x.A.operand); },
      [](plan_variant& x) { return keep(x.A.store); },
      [](plan_variant& x) { return hold(x.inverse.operand); },
      [](plan_variant& x) { return hold(x.inverse.merge_operand); },
      [](plan_variant& x) { return drop(x.inverse.between); },
      [](plan_variant& x) { return keep(x.inverse.store); },
      [](plan_variant& x) { return hold(x.u.operand); },
      [](plan_variant& x) { return hold(x.w.operand); },
      [](plan_variant& x) { return keep(x.u.store); },
      [](plan_variant& x) { return keep(x.w.store); },
      [](plan_variant& x) { return hold(x.state.store); },
      [](plan_variant& x) { return before_it_is_stored(x, x.v_new.state_operand); },
      [](plan_variant& x) { return drop(x.state.between_tokens); },
      [](plan_variant& x) {
        const bool stored = x.state.cache || x.state.between_calls;
        x.state.cache.reset();
        x.state.between_calls.reset();
        return stored;
      },
      [](plan_variant& x) { return before_it_is_stored(x, x.o.state_operand); },
      [](plan_variant& x) { return keep(x.v_new.store); },
      [](plan_variant& x) { return hold(x.v_new.update_operand); },
      [](plan_variant& x) { return hold(x.o.operand); },
  };
  std::vector<plan_variant> out;
  for (const leave_out one : all) {
    plan_variant finer = v;
    if (one(finer)) out.push_back(std::move(finer));
  }
  return out;
}

struct lane_runs {
  std::array<part, 2> parts;
  head_output plain;
  std::vector<fault_run> faults;  ///< empty unless they are kept
};

/// What the head reads with the fault, its first tokens only.
head_input read_with(const fault& f, const trial& t, const lane& at, std::size_t tokens) {
  head_input in = take_head(t.p, at.sequence, at.head);
  if (f.code->reads != nullptr) f.code->reads(t.p, at.sequence, at.head, t.variants.front(), in);
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

fault_run run_fault(const fault& f, const trial& t, const choice& c, const lane_runs& runs) {
  const lane& at = t.lanes[c.lane];
  const head_output& plain = runs.plain;
  emulation_options options;
  options.planted = &f;
  head_output faulty = emulate_head(read_with(f, t, at, c.tokens), t.variants.front(), options);
  fault_run out;
  const std::size_t o_count = c.tokens * t.p.value_dim();
  out.lost_tokens = faulty.o.size() < o_count;
  if (out.lost_tokens) return out;
  out.difference[0] = difference(faulty.o.data(), plain.o.data(), o_count);
  if (at.state && c.tokens == at.range.tokens)
    out.difference[1] = difference(faulty.final_state.data(), plain.final_state.data(), plain.final_state.size());
  for (std::size_t k = 0; k < 2; ++k) {
    const part& x = runs.parts[k];
    const flat& d = out.difference[k];
    sums& s = out.own[k];
    s.own = inner(d, d);
    s.base = inner(x.base, d);
    for (const flat& run : x.finer) s.finer.push_back(run.empty() ? 0 : inner(run, d));
    for (const auto* law : {&x.same, &x.moved}) {
      auto& to = law == &x.same ? s.same : s.moved;
      for (const auto& variant : *law) {
        to.emplace_back();
        for (const flat& run : variant) to.back().push_back(run.empty() ? 0 : inner(run, d));
      }
    }
  }
  if (c.tokens < at.judged) return out;
  for (std::size_t j = 0; j < faulty.o.size(); ++j) {
    if (!std::isfinite(faulty.o.data()[j])) faulty.o.data()[j] = plain.o.data()[j];
  }
  for (std::size_t j = 0; j < faulty.final_state.size(); ++j) {
    if (!std::isfinite(faulty.final_state.data()[j])) faulty.final_state.data()[j] = plain.final_state.data()[j];
  }
  out.finite_norms = norms(errors_of_run(t.p, faulty, t.truth, at), buckets(at.judged, t.unit), at.judged);
  return out;
}

/// The runs of a lane that projections are made of; the faulty ones only where they are kept.
lane_runs run_lane(const trial& t, const choice& c, const std::vector<const fault*>& planted, std::size_t per_variant) {
  const lane& at = t.lanes[c.lane];
  const head_input in = first_tokens(take_head(t.p, at.sequence, at.head), c.tokens);
  const std::size_t V = t.variants.size(), o_count = c.tokens * t.p.value_dim();
  lane_runs out;
  out.plain = emulate_head(in, t.variants.front());
  const head_output& plain = out.plain;
  const lane_errors base = errors_of_run(t.p, plain, t.truth, at);
  const bool state = at.state && c.tokens == at.range.tokens;
  const std::size_t state_count = state ? base.state.size() : 0;
  out.parts[0].base = as_flat(base.o.data(), o_count);
  out.parts[1].base = as_flat(base.state.data(), state_count);
  for (part& x : out.parts) x.same = x.moved = std::vector<std::vector<flat>>(V, std::vector<flat>(per_variant));
  const std::vector<plan_variant> finer = one_rounding_fewer(t.variants.front());
  for (part& x : out.parts) x.finer.resize(finer.size());
  parallel_for(finer.size(), t.options.threads, [&](std::size_t i) {
    if (t.stopped()) return;
    const head_output other = emulate_head(in, finer[i]);
    out.parts[0].finer[i] = difference(other.o.data(), plain.o.data(), o_count);
    if (state) out.parts[1].finer[i] = difference(other.final_state.data(), plain.final_state.data(), state_count);
  });
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
      const lane_errors e = errors_of_draw(in, t.variants[v], seed);
      out.parts[0].moved[v][run] = as_flat(e.o.data(), o_count);
      if (state) out.parts[1].moved[v][run] = as_flat(e.state.data(), state_count);
    }
    const std::lock_guard guard(lock);
    const double all = static_cast<double>(2 * V * per_variant);
    if (t.options.progress) t.options.progress("runs beside the planted faults", static_cast<double>(++done) / all);
  });
  for (part& x : out.parts) {
    const double base = inner(x.base, x.base);
    x.same_size = x.moved_size = by_run(V, std::vector<double>(per_variant, 0.0));
    for (std::size_t v = 0; v < V; ++v) {
      for (std::size_t r = 0; r < per_variant; ++r) {
        const flat &same = x.same[v][r], &moved = x.moved[v][r];
        if (!same.empty()) x.same_size[v][r] = std::max(0.0, base + 2 * inner(x.base, same) + inner(same, same));
        x.moved_size[v][r] = inner(moved, moved);
      }
    }
    x.mean_same.assign(x.base.size(), 0.0F);
    const float weight = 1.0F / static_cast<float>(V * per_variant);
    for (const auto& variant : x.same) {
      for (const flat& run : variant) {
        for (std::size_t i = 0; i < run.size() && i < x.mean_same.size(); ++i) x.mean_same[i] += weight * run[i];
      }
    }
  }
  if (t.options.memory) {
    out.faults.resize(planted.size());
    parallel_for(planted.size(), t.options.threads, [&](std::size_t i) {
      if (!t.stopped()) out.faults[i] = run_fault(*planted[i], t, c, out);
    });
  }
  return out;
}

/// <x, y> / (|x| |y|) from the product and the squared norms; 0 where one of them is.
double cosine(double product, double x, double y) {
  return x > 0 && y > 0 ? std::clamp(product / std::sqrt(x * y), -1.0, 1.0) : 0;
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
    (place.norm == norm_kind::rms ? out.rms : out.max).push_back(&limits[i]);
  }
  return out;
}

/// By the norms alone; what is not finite is left to the projections, which do not see it either.
bool is_beyond(const lane_norms& n, const lane_limits& limits) {
  for (std::size_t b = 0; b < n.rms.size() && b < limits.rms.size(); ++b) {
    if (n.rms[b] > limits.rms[b]->value || n.max[b] > limits.max[b]->value) return true;
  }
  return false;
}

void add(const by_run& x, by_run& to) {
  for (std::size_t v = 0; v < to.size(); ++v) {
    for (std::size_t r = 0; r < to[v].size(); ++r) to[v][r] += x[v][r];
  }
}

/// The result's errors in one lane, and what they are beyond those of the plan's runs.
struct result_errors {
  std::array<flat, 2> got, deviation;
  std::array<double, 2> deviation_size{};
};

result_errors errors_against(const trial& t, const choice& c, const std::array<part, 2>& parts) {
  const lane_errors errors = errors_of_result(t.p, t.r, t.truth, t.lanes[c.lane]);
  result_errors out;
  out.got = {as_flat(errors.o.data(), c.tokens * t.p.value_dim()), as_flat(errors.state.data(), parts[1].base.size())};
  out.deviation = out.got;
  for (std::size_t k = 0; k < 2; ++k) {
    flat& d = out.deviation[k];
    for (std::size_t i = 0; i < d.size(); ++i) d[i] -= parts[k].base[i];
    for (std::size_t i = 0; i < d.size(); ++i) d[i] -= parts[k].mean_same[i];
    out.deviation_size[k] = inner(d, d);
  }
  return out;
}

void add_lane(const fault_run& run, const std::array<part, 2>& parts, const result_errors& result, std::array<sums, 2>& to) {
  for (std::size_t k = 0; k < 2; ++k) {
    if (parts[k].base.empty()) continue;
    const flat& d = run.difference[k];
    sums& s = to[k];
    s.own += run.own[k].own;
    s.got += inner(result.got[k], d);
    s.base += run.own[k].base;
    s.deviation += inner(result.deviation[k], d);
    s.deviation_size += result.deviation_size[k];
    add(run.own[k].same, s.same);
    add(run.own[k].moved, s.moved);
    s.finer.resize(run.own[k].finer.size());
    for (std::size_t i = 0; i < s.finer.size(); ++i) s.finer[i] += run.own[k].finer[i];
  }
}

fault_draws::projection projection_on(const fault& planted, const char* tensor, sums s, const error_sizes& sizes) {
  fault_draws::projection x;
  x.planted = &planted;
  x.tensor = tensor;
  x.got = s.got / s.own;
  x.of_fault = 1 + s.base / s.own;
  x.fault_size = std::sqrt(s.own);
  for (const double finer : s.finer) x.finer = std::max(x.finer, (s.base + finer) / s.own);
  x.score = cosine(s.deviation, s.deviation_size, s.own);
  x.same_inputs.name = x.draws.name = std::string(planted.name) + " in " + tensor;
  x.same_inputs.two_sided = x.draws.two_sided = false;
  for (std::size_t v = 0; v < s.same.size(); ++v) {
    for (std::size_t r = 0; r < s.same[v].size(); ++r) {
      s.same[v][r] = cosine(s.base + s.same[v][r], sizes.same[v][r], s.own);
      s.moved[v][r] = cosine(s.moved[v][r], sizes.moved[v][r], s.own);
    }
  }
  x.same_inputs.samples = std::move(s.same);
  x.draws.samples = std::move(s.moved);
  return x;
}

/// The size of the error itself, from the sums of its squares.
statistic size_of_error(const char* tensor, const error_sizes& squares) {
  const auto roots = [](std::vector<double> x) {
    for (double& xi : x) xi = std::sqrt(xi);
    return x;
  };
  statistic size{.tensor = tensor, .samples = {}};
  for (std::size_t v = 0; v < squares.same.size(); ++v) {
    size.samples.push_back(roots(squares.same[v]));
    size.samples.push_back(roots(squares.moved[v]));
  }
  return size;
}

}  // namespace

fault_draws draw_faults(const trial& t, const drawn& runs, const std::vector<threshold>& limits) {
  fault_draws out;
  for (const fault& f : faults()) {
    if (applies(f, t.p, t.path)) out.all.push_back(&f);
  }
  const std::size_t V = t.variants.size();
  // 24 runs leave at least near_pool_degrees behind the spread of a projection for up to eight variants.
  const std::size_t per_variant = std::max<std::size_t>(3, (24 + V - 1) / V);
  const auto lanes = choose(t, out.all.size(), 2 * per_variant * V);
  if (lanes.empty()) return out;
  const by_run none(V, std::vector<double>(per_variant, 0.0));
  sums nothing;
  nothing.same = nothing.moved = none;
  std::vector<std::array<sums, 2>> all(out.all.size(), {nothing, nothing});
  std::vector<char> beyond(out.all.size(), 0);
  std::array<error_sizes, 2> sizes;
  sizes.fill({none, none});

  for (const choice& c : lanes) {
    if (t.stopped()) return out;
    const lane& at = t.lanes[c.lane];
    const bool whole = c.tokens == at.range.tokens;
    out.slice += (out.slice.empty() ? "" : "; ") + std::string("sequence ") + std::to_string(at.sequence) + " head " +
                 std::to_string(at.head) + (whole ? "" : " tokens 0-" + std::to_string(c.tokens - 1));
    const std::string key = "faults " + t.lanes_key() + " " + std::to_string(c.lane) + " " + std::to_string(c.tokens);
    auto lane_drawn = recall<lane_runs>(t.options, key);
    const bool recalled = lane_drawn != nullptr;
    if (!lane_drawn) lane_drawn = std::make_shared<lane_runs>(run_lane(t, c, out.all, per_variant));
    if (!recalled && t.options.memory && !t.stopped()) keep(t.options, key, lane_runs(*lane_drawn));
    const std::array<part, 2>& parts = lane_drawn->parts;
    for (std::size_t k = 0; k < 2; ++k) {
      add(parts[k].same_size, sizes[k].same);
      add(parts[k].moved_size, sizes[k].moved);
    }
    const result_errors result = errors_against(t, c, parts);
    const lane_limits limits_here = limits_of(at, runs, limits);
    std::mutex lock;
    std::size_t done = 0;
    parallel_for(out.all.size(), t.options.threads, [&](std::size_t i) {
      if (t.stopped()) return;
      const fault_run fresh = lane_drawn->faults.empty() ? run_fault(*out.all[i], t, c, *lane_drawn) : fault_run{};
      const fault_run& run = lane_drawn->faults.empty() ? fresh : lane_drawn->faults[i];
      if (run.lost_tokens) return;  // another shape, which no kernel's file has
      add_lane(run, parts, result, all[i]);
      if (is_beyond(run.finite_norms, limits_here)) beyond[i] = 1;
      const std::lock_guard guard(lock);
      if (t.options.progress)
        t.options.progress("planted faults", static_cast<double>(++done) / static_cast<double>(out.all.size()));
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
