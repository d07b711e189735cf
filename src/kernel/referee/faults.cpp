// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
#include <algorithm>
#include <cmath>
#include <mutex>

#include "kernel/emulate/fault.hpp"
#include "kernel/referee/parts.hpp"
#include "oracle/parallel.hpp"

namespace deltaproof::referee_detail {

namespace {

using flat = std::vector<float>;

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

/// One of the two judged tensors of a lane.
struct part {
  flat got;                                ///< the kernel's error
  flat base;                               ///< error of the plain run
  std::vector<std::vector<flat>> same;     ///< [variant][run]: run - plain run, on the same inputs
  std::vector<std::vector<flat>> moved;    ///< [variant][run]: errors of draws
};

/// Sums over lanes for one (fault, tensor).
struct sums {
  double own = 0;  ///< <d, d>
  double got = 0;
  double base = 0;
  double deviation = 0;    ///< <got - base - mean(same), d>
  double deviation_size = 0;
  std::vector<std::vector<double>> same, moved;
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
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return novelty(a) < novelty(b); });
  const double each = static_cast<double>(faults + runs);
  const double allowed = t.options.seconds * 0.5;
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

}  // namespace

fault_draws draw_faults(const trial& t, const drawn& runs, const std::vector<threshold>& limits) {
  fault_draws out;
  for (const fault& f : faults()) {
    if (applies(f, t.p, t.path)) out.all.push_back(&f);
  }
  const std::size_t V = t.variants.size();
  const std::size_t per_variant = std::max<std::size_t>(3, (24 + V - 1) / V);
  const auto lanes = choose(t, out.all.size(), 2 * per_variant * V);
  if (lanes.empty()) return out;
  const char* const tensors[2] = {"o", "final_state"};
  std::vector<std::array<sums, 2>> all(out.all.size());
  std::vector<char> beyond(out.all.size(), 0);
  const auto shaped = [&] { return std::vector<std::vector<double>>(V, std::vector<double>(per_variant, 0.0)); };
  for (auto& pair : all) {
    for (sums& s : pair) s.same = s.moved = shaped();
  }

  for (const choice& c : lanes) {
    if (t.stopped()) return out;
    const lane& at = t.lanes[c.lane];
    const bool whole = c.tokens == at.range.tokens;
    out.slice += (out.slice.empty() ? "" : "; ") + std::string("sequence ") + std::to_string(at.sequence) + " head " + std::to_string(at.head) +
                 (whole ? "" : " tokens 0-" + std::to_string(c.tokens - 1));
    const head_input in = first_tokens(take_head(t.p, at.sequence, at.head), c.tokens);
    const head_output plain = emulate_head(in, t.variants.front());
    lane_errors base = errors_of_run(t.p, plain, t.truth, at);
    lane_errors got = errors_of_result(t.p, t.r, t.truth, at);
    const std::size_t o_count = c.tokens * t.p.value_dim();
    const bool state = at.state && whole;
    const std::size_t state_count = state ? base.state.size() : 0;
    std::array<part, 2> parts;
    parts[0].got = as_flat(got.o.data(), o_count);
    parts[0].base = as_flat(base.o.data(), o_count);
    if (state) {
      parts[1].got = as_flat(got.state.data(), state_count);
      parts[1].base = as_flat(base.state.data(), state_count);
    }
    for (part& x : parts) x.same = x.moved = std::vector<std::vector<flat>>(V, std::vector<flat>(per_variant));
    parallel_for(2 * V * per_variant, t.options.threads, [&](std::size_t job) {
      if (t.stopped()) return;
      const std::size_t v = job / 2 / per_variant, run = job / 2 % per_variant;
      const std::uint64_t seed = t.seed(3, c.lane, job);
      if (job % 2 == 0) {
        emulation_options options;
        options.noise_ulps = 1;
        options.seed = seed;
        const head_output other = emulate_head(in, t.variants[v], options);
        parts[0].same[v][run] = difference(other.o.data(), plain.o.data(), o_count);
        if (state) parts[1].same[v][run] = difference(other.final_state.data(), plain.final_state.data(), state_count);
      } else {
        const lane_errors e = errors_of_draw(in, t.variants[v], seed);
        parts[0].moved[v][run] = as_flat(e.o.data(), o_count);
        if (state) parts[1].moved[v][run] = as_flat(e.state.data(), state_count);
      }
    });
    std::array<flat, 2> deviation;
    for (std::size_t k = 0; k < 2; ++k) {
      flat& d = deviation[k];
      d = parts[k].got;
      const float weight = 1.0F / static_cast<float>(V * per_variant);
      for (std::size_t i = 0; i < d.size(); ++i) d[i] -= parts[k].base[i];
      for (const auto& variant : parts[k].same) {
        for (const flat& run : variant) {
          for (std::size_t i = 0; i < run.size() && i < d.size(); ++i) d[i] -= weight * run[i];
        }
      }
    }
    const auto where = buckets(at.judged, t.unit);
    // The limits of this lane, in the order of norms().
    std::vector<const threshold*> rms_limits, max_limits;
    for (std::size_t i = 0; i < runs.places.size(); ++i) {
      const judged_statistic& place = runs.places[i];
      if (place.sequence != at.sequence || place.head != at.head) continue;
      (place.norm == norm_kind::rms ? rms_limits : max_limits).push_back(&limits[i]);
    }
    std::mutex lock;
    std::size_t done = 0;
    parallel_for(out.all.size(), t.options.threads, [&](std::size_t i) {
      if (t.stopped()) return;
      emulation_options options;
      options.planted = out.all[i];
      const head_output faulty = emulate_head(read_with(*out.all[i], t, at, c.tokens), t.variants.front(), options);
      if (faulty.o.size() < o_count) return;  // it lost tokens: another shape, which no kernel's file has
      for (std::size_t k = 0; k < 2; ++k) {
        const part& x = parts[k];
        if (x.got.empty()) continue;
        const flat d = k == 0 ? difference(faulty.o.data(), plain.o.data(), o_count) : difference(faulty.final_state.data(), plain.final_state.data(), state_count);
        sums& s = all[i][k];
        s.own += inner(d, d);
        s.got += inner(x.got, d);
        s.base += inner(x.base, d);
        s.deviation += inner(deviation[k], d);
        s.deviation_size += inner(deviation[k], deviation[k]);
        for (std::size_t v = 0; v < V; ++v) {
          for (std::size_t run = 0; run < per_variant; ++run) {
            s.same[v][run] += inner(x.same[v][run], d);
            s.moved[v][run] += inner(x.moved[v][run], d);
          }
        }
      }
      // Its error by the norms alone; what is not finite is left to the projections, which do not see it either.
      if (c.tokens >= at.judged) {
        head_output finite = faulty;
        for (std::size_t j = 0; j < finite.o.size(); ++j) {
          if (!std::isfinite(finite.o.data()[j])) finite.o.data()[j] = plain.o.data()[j];
        }
        for (std::size_t j = 0; j < finite.final_state.size(); ++j) {
          if (!std::isfinite(finite.final_state.data()[j])) finite.final_state.data()[j] = plain.final_state.data()[j];
        }
        const lane_norms n = norms(errors_of_run(t.p, finite, t.truth, at), where, at.judged);
        for (std::size_t b = 0; b < n.rms.size() && b < rms_limits.size(); ++b) {
          if (n.rms[b] > rms_limits[b]->value || n.max[b] > max_limits[b]->value) beyond[i] = 1;
        }
      }
      const std::lock_guard guard(lock);
      if (t.options.progress) t.options.progress("planted faults", static_cast<double>(++done) / static_cast<double>(out.all.size()));
    });
  }

  for (std::size_t i = 0; i < out.all.size(); ++i) {
    if (beyond[i] != 0) out.by_norm.push_back(out.all[i]);
    for (std::size_t k = 0; k < 2; ++k) {
      sums& s = all[i][k];
      if (!(s.own > 0)) continue;
      fault_draws::projection x;
      x.planted = out.all[i];
      x.tensor = tensors[k];
      x.got = s.got / s.own;
      x.of_fault = 1 + s.base / s.own;
      x.cosine = s.deviation_size > 0 ? s.deviation / std::sqrt(s.own * s.deviation_size) : 0;
      x.same_inputs.name = x.draws.name = std::string(x.planted->name) + " in " + x.tensor;
      x.same_inputs.two_sided = x.draws.two_sided = false;
      for (auto& variant : s.same) {
        for (double& y : variant) y = (s.base + y) / s.own;
      }
      for (auto& variant : s.moved) {
        for (double& y : variant) y /= s.own;
      }
      x.same_inputs.samples = std::move(s.same);
      x.draws.samples = std::move(s.moved);
      out.projections.push_back(std::move(x));
    }
  }
  return out;
}

}  // namespace deltaproof::referee_detail
