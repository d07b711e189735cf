// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <span>

#include "referee/gradients.hpp"

namespace deltaproof::referee_detail {

namespace {

/// Elements of a part as they lie in the whole tensor.
template <class At>
void for_each_element(const gradient_part& part, const At& at) {
  std::size_t i = 0;
  for (std::size_t row = 0; row < part.rows; ++row) {
    for (std::size_t j = 0; j < part.width; ++j, ++i) at(i, part.first + row * part.stride + j);
  }
}

/// Which elements, and which tokens, are judged: of a mask over the whole tensor.
void take_mask(const std::vector<bool>* mask, std::size_t tokens, std::size_t unit, gradient_part& part) {
  std::size_t from = 0, until = tokens;
  if (mask != nullptr && !mask->empty()) {
    std::vector<bool> own(part.rows * part.width);
    for_each_element(part, [&](std::size_t i, std::size_t at) { own[i] = (*mask)[at]; });
    const auto is_judged = [](bool skipped) { return !skipped; };
    const auto first = std::find_if(own.begin(), own.end(), is_judged);
    if (first == own.end()) {
      part.judged = false;
      until = 0;
    } else if (std::find(own.begin(), own.end(), true) != own.end()) {
      if (!part.is_state()) {
        const std::size_t each = part.steps * part.width;
        from = static_cast<std::size_t>(first - own.begin()) / each;
        until = tokens - static_cast<std::size_t>(std::find_if(own.rbegin(), own.rend(), is_judged) - own.rbegin()) / each;
      }
      part.skip = std::move(own);
    }
  }
  if (part.is_state()) {
    part.where = {{0, tokens}};
  } else if (part.name() == "dq") {
    for (const bucket& b : buckets(until - from, unit)) part.where.push_back({from + b.first, from + b.last});
  } else {
    part.where = buckets_from_the_end(from, until, unit);
  }
  if (part.where.empty() || part.rows * part.width == 0) part.judged = false;
}

}  // namespace

std::string gradient_trial::lanes_key() const {
  std::string key = std::to_string(runs.given) + "+" + std::to_string(runs.moved);
  for (const gradient_lane& at : lanes) {
    for (const gradient_part& part : at.parts) {
      key += part.judged ? "/" : "/no ";
      if (!part.where.empty()) key += std::to_string(part.where.front().first) + "-" + std::to_string(part.where.back().last);
    }
  }
  for (const std::size_t i : slice) key += "," + std::to_string(i);
  return key;
}

std::optional<gradient_trial> gradient_trial_of(const trial& t, const gradient_reference& exact) {
  if (!t.declared.backward.stated) return std::nullopt;
  plan one_order = t.declared;
  auto& orders = one_order.backward.state_sum_order;
  if (orders.size() > 1) orders.erase(orders.begin() + 1, orders.end());
  std::vector<plan_variant> variants = gradient_variants(one_order, t.p, t.path, t.chunk);
  const std::size_t own = variants.size();
  for (plan_variant& v : gradient_variants(t.declared, t.p, t.path, t.chunk)) {
    if (std::none_of(variants.begin(), variants.end(), [&](const plan_variant& x) { return x.name == v.name; }))
      variants.push_back(std::move(v));
  }
  std::vector<gradient_lane> lanes = gradient_lanes_of(t.p, t.r, exact, t.unit);
  std::vector<run_kind> kinds = kinds_of(std::span(variants).first(own), t.p);
  gradient_trial out{
      t,  t.p, t.r, t.declared, exact, t.options, t.path, std::move(variants), own, std::move(kinds), t.unit, std::move(lanes),
      {}, {}};
  const bool any = std::any_of(out.lanes.begin(), out.lanes.end(), [](const gradient_lane& at) {
    return std::any_of(at.parts.begin(), at.parts.end(), [](const gradient_part& part) { return part.judged; });
  });
  if (!any || out.variants.empty()) return std::nullopt;
  return out;
}

std::vector<bucket> buckets_from_the_end(std::size_t from, std::size_t until, std::size_t unit) {
  std::vector<bucket> out;
  if (until <= from) return out;
  const std::size_t chunks = (until + unit - 1) / unit;
  for (std::size_t back = 0, width = 1; back < chunks && (out.empty() || out.back().first > from); width = back) {
    const std::size_t last = std::min(until, (chunks - back) * unit);
    back = std::min(chunks, back + width);
    out.push_back({std::max(from, (chunks - back) * unit), last});
  }
  return out;
}

std::vector<gradient_lane> gradient_lanes_of(const problem& p, const result& r, const gradient_reference& exact,
                                             std::size_t unit) {
  std::vector<gradient_lane> out;
  const auto sequences = p.sequences();
  const std::size_t H = p.key_heads(), HV = p.value_heads(), K = p.key_dim(), V = p.value_dim(), n = p.num_householder,
                    group = HV / H, channels = p.gate_per_channel() ? K : 1;
  for (std::size_t s = 0; s < sequences.size(); ++s) {
    const sequence_range& range = sequences[s];
    const std::size_t tokens = range.tokens, token = range.batch * p.tokens() + range.first_token;
    for (std::size_t key_head = 0; key_head < H; ++key_head) {
      gradient_lane at{s, key_head, range, {}, true};
      const auto add = [&](std::size_t tensor, std::size_t heads, std::size_t head, std::size_t steps, std::size_t width) {
        gradient_part part;
        part.tensor = tensor;
        part.head = head;
        part.pool = s * heads + head;
        part.rows = steps == 0 ? K : tokens * steps;
        part.width = width;
        part.steps = steps;
        part.first = steps == 0 ? part.pool * K * V : (token * steps * heads + head) * width;
        part.stride = steps == 0 ? V : heads * width;
        part.chunk = unit * steps;
        const std::string name(part.name());
        part.judged = r.gradients.count(name) != 0;
        const auto mask = exact.skip.find(name);
        take_mask(mask == exact.skip.end() ? nullptr : &mask->second, tokens, unit, part);
        at.whole = at.whole && part.skip.empty() && (part.judged || r.gradients.count(name) == 0 || tokens == 0);
        at.parts.push_back(std::move(part));
      };
      add(0, H, key_head, 1, K);
      add(1, H, key_head, n, K);
      for (std::size_t h = key_head * group; h < (key_head + 1) * group; ++h) {
        add(2, HV, h, n, V);
        add(3, HV, h, n, 1);
        if (p.g) add(4, HV, h, 1, channels);
        if (p.initial_state) add(5, HV, h, 0, V);
      }
      out.push_back(std::move(at));
    }
  }
  return out;
}

namespace {

/// Elements of a part less the exact ones.
std::vector<double> less_exact(const gradient_trial& t, const gradient_part& part, std::span<const double> values) {
  const reference_tensor& want = t.exact.truth.tensors.find(part.name())->second;
  std::vector<double> out(values.size());
  const auto exact = [&](const std::vector<double>& all, std::size_t row) { return all.data() + part.first + row * part.stride; };
  for (std::size_t row = 0; row < part.rows && !values.empty(); ++row) {
    double* const here = out.data() + row * part.width;
    const double *const from = values.data() + row * part.width, *const value = exact(want.value, row);
    for (std::size_t j = 0; j < part.width; ++j) here[j] = from[j] - value[j];
    for (const auto& low : want.low) {
      const double* const less = exact(low, row);
      for (std::size_t j = 0; j < part.width; ++j) here[j] -= less[j];
    }
  }
  return out;
}

}  // namespace

part_values errors_of_result(const gradient_trial& t, const gradient_lane& at) {
  part_values out;
  for (const gradient_part& part : at.parts) {
    const auto given = t.r.gradients.find(std::string(part.name()));
    std::vector<double> values(given == t.r.gradients.end() ? 0 : part.rows * part.width);
    for (std::size_t row = 0; row < part.rows && !values.empty(); ++row)
      given->second.read(part.first + row * part.stride, {values.data() + row * part.width, part.width});
    out.push_back(less_exact(t, part, values));
  }
  return out;
}

part_values exact_values(const gradient_trial& t, const gradient_lane& at) {
  part_values out;
  for (const gradient_part& part : at.parts) {
    const reference_tensor& want = t.exact.truth.tensors.find(part.name())->second;
    std::vector<double>& x = out.emplace_back(part.rows * part.width);
    for_each_element(part, [&](std::size_t i, std::size_t from) { x[i] = want.value[from]; });
  }
  return out;
}

namespace {

/// visit(k, what a run says of part k).
template <class Visit>
void for_each_part(const group_gradients& run, const gradient_lane& at, const Visit& visit) {
  const std::size_t first_head = at.parts[2].head;
  for (std::size_t k = 0; k < at.parts.size(); ++k) {
    const gradient_part& part = at.parts[k];
    const head_gradients& head = run.heads[part.tensor < 2 ? 0 : part.head - first_head];
    const std::array<std::span<const double>, 6> all{run.dq.entries(), run.dk.entries(),  head.dv.entries(),
                                                     head.dbeta,       head.dg.entries(), head.dinitial_state.entries()};
    visit(k, all[part.tensor]);
  }
}

}  // namespace

part_values values_of(const group_gradients& run, const gradient_lane& at) {
  part_values out;
  for_each_part(run, at, [&](std::size_t, std::span<const double> x) { out.emplace_back(x.begin(), x.end()); });
  return out;
}

part_values errors_of_values(const gradient_trial& t, const part_values& values, const gradient_lane& at) {
  part_values out;
  for (std::size_t k = 0; k < at.parts.size(); ++k) out.push_back(less_exact(t, at.parts[k], values[k]));
  return out;
}

namespace {

void widen(range_seen& to, const group_gradients& run) {
  for (const head_gradients& head : run.heads) referee_detail::widen(to, head.forward.range);
}

emulation_options another_build(std::uint64_t seed) {
  emulation_options options;
  options.noise_ulps = 1;
  options.seed = seed;
  return options;
}

/// The run, and what it says of dg in other orders.
group_gradients run_of(const gradient_lane& at, const std::vector<gradient_head>& group, const plan_variant& variant,
                       const emulation_options& options, other_sums* others) {
  if (others == nullptr) return emulate_group_gradients(group, variant, options);
  group_gradients run = emulate_group_gradients(group, variant, options, others->orders);
  others->less_own.clear();
  const std::size_t first_head = at.parts[2].head;
  for (std::size_t o = 0; o < others->orders.size(); ++o) {
    part_values& less = others->less_own.emplace_back(at.parts.size());
    for (std::size_t k = 0; k < at.parts.size(); ++k) {
      if (at.parts[k].name() != "dg") continue;
      const head_gradients& head = run.heads[at.parts[k].head - first_head];
      if (o >= head.dg_in_other_orders.size()) continue;
      const auto other = head.dg_in_other_orders[o].entries(), own = head.dg.entries();
      less[k].assign(other.begin(), other.end());
      for (std::size_t i = 0; i < own.size(); ++i) less[k][i] -= own[i];
    }
  }
  return run;
}

}  // namespace

part_values gradient_errors_on_given(const gradient_trial& t, const gradient_lane& at, const std::vector<gradient_head>& group,
                                     const plan_variant& variant, std::uint64_t seed, forward_pass* forward, other_sums* others) {
  group_gradients run = run_of(at, group, variant, another_build(seed), others);
  if (forward != nullptr) widen(forward->range, run);
  if (forward != nullptr && forward->errs != nullptr)
    forward->errors = errors_of_run(t.p, std::move(run.heads.front().forward), t.forward.truth, *forward->errs);
  part_values out(at.parts.size());
  for_each_part(run, at, [&](std::size_t k, std::span<const double> x) { out[k] = less_exact(t, at.parts[k], x); });
  return out;
}

part_values gradient_errors_of_draw(const gradient_lane& at, const std::vector<gradient_head>& group, const plan_variant& variant,
                                    std::uint64_t seed, forward_pass* forward, other_sums* others) {
  const std::vector<gradient_head> moved = perturbed(group, seed, narrowest_operand(variant));
  group_gradients run = run_of(at, moved, variant, another_build(seed), others);
  if (forward != nullptr) widen(forward->range, run);
  const bool outputs = forward != nullptr && forward->errs != nullptr;
  if (!measured_by_fp64(variant) || variant.backward->accumulate.precision > fp32.precision) {
    group_gradients errors = error_of_wide_gradients(moved, run);
    head_output& of_forward = errors.heads.front().forward;
    if (outputs) forward->errors = {std::move(of_forward.o), std::move(of_forward.final_state)};
    return values_of(errors, at);
  }
  const group_gradients truth = reference_group_gradients(moved);
  if (outputs) forward->errors = run_less_truth(std::move(run.heads.front().forward), truth.heads.front().forward);
  part_values out(at.parts.size());
  for_each_part(run, at, [&](std::size_t k, std::span<const double> x) { out[k].assign(x.begin(), x.end()); });
  for_each_part(truth, at, [&](std::size_t k, std::span<const double> x) {
    for (std::size_t i = 0; i < x.size(); ++i) out[k][i] -= x[i];
  });
  return out;
}

lane_norms norms_of(const gradient_part& part, const std::vector<double>& values) {
  lane_norms out;
  std::vector<double> judged;
  for (const bucket& b : part.where) {
    const bucket rows = part.rows_of(b);
    const std::size_t first = std::min(rows.first * part.width, values.size()),
                      last = std::min(rows.last * part.width, values.size());
    if (part.skip.empty()) {
      add_norms(values.data() + first, last - first, out);
      continue;
    }
    judged.clear();
    for (std::size_t i = first; i < last; ++i) {
      if (!part.skip[i]) judged.push_back(values[i]);
    }
    add_norms(judged.data(), judged.size(), out);
  }
  out.changes = changes_of(part, values);
  if (!values.empty()) out.tiles.push_back(tile_rms(part.tiles(), values.data(), part.skip));
  return out;
}

std::vector<double> changes_of(const gradient_part& part, const std::vector<double>& values, bool sums) {
  if (!part.has_changes()) return {};
  lane_norms out;
  std::vector<double> changes;
  for (const bucket& b : part.where) {
    changes.clear();
    for (std::size_t row = b.first + 1; row < b.last && !values.empty(); ++row) {
      if (row % part.chunk == 0) continue;
      for (std::size_t i = row * part.width; i < (row + 1) * part.width; ++i) {
        const std::size_t before = i - part.width;
        if (!part.skip.empty() && (part.skip[i] || part.skip[before])) continue;
        changes.push_back(sums ? values[i] + values[before] : values[i] - values[before]);
      }
    }
    add_norms(changes.data(), changes.size(), out);
  }
  return std::move(out.rms);
}

std::size_t judged_elements(const gradient_part& part, const bucket& b) {
  const bucket rows = part.rows_of(b);
  const std::size_t first = rows.first * part.width, last = rows.last * part.width;
  if (part.skip.empty()) return last - first;
  return static_cast<std::size_t>(std::count(part.skip.begin() + static_cast<std::ptrdiff_t>(first),
                                             part.skip.begin() + static_cast<std::ptrdiff_t>(last), false));
}

double seconds_of_gradient_run(const problem& p, const plan_variant& variant, std::size_t tokens) {
  // A backward pass makes each product of the forward pass again and two for each of its transposes; so does its truth.
  const std::size_t heads_of_a_key = p.value_heads() / p.key_heads();
  return 3 * seconds_of_run(p, variant, tokens) * static_cast<double>(heads_of_a_key);
}

}  // namespace deltaproof::referee_detail
