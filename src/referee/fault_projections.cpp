// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
#include "referee/fault_projections.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <utility>

#include "deltaproof/number/random.hpp"
#include "support/sums.hpp"
#include "support/widest_vectors.hpp"

namespace deltaproof::referee_detail {

namespace {

/// <x, y> / (|x| |y|) from the product and the squared norms; 0 where one of them is.
double cosine(double product, double x, double y) {
  return x > 0 && y > 0 ? std::clamp(product / std::sqrt(x * y), -1.0, 1.0) : 0;
}

void add(const std::vector<double>& x, std::vector<double>& to) {
  to.resize(x.size());
  for (std::size_t i = 0; i < x.size(); ++i) to[i] += x[i];
}

void add(const by_run& x, by_run& to) {
  for (std::size_t v = 0; v < to.size(); ++v) add(x[v], to[v]);
}

}  // namespace

double inner(const flat& x, const flat& y) {
  return detail::quick_sum(x.size(), [a = x.data(), b = y.data()](std::size_t i) __attribute__((always_inline)) {
    const double product = static_cast<double>(a[i]) * static_cast<double>(b[i]);
    return std::fabs(product) < std::numeric_limits<double>::infinity() ? product : 0;
  });
}

bool mend(std::span<double> faulty, std::span<const double> correct) {
  bool breaks = false;
  for (std::size_t i = 0; i < faulty.size(); ++i) {
    if (std::isfinite(faulty[i])) continue;
    breaks = breaks || std::isfinite(correct[i]);
    faulty[i] = correct[i];
  }
  return breaks;
}

bool is_far_from_the_end(const range_seen& range) {
  return range[static_cast<std::size_t>(formed::state)] < far_from_the_end &&
         range[static_cast<std::size_t>(formed::output)] < far_from_the_end;
}

void columns_beside::take(const std::vector<flat*>& x) {
  count_ = x.size();
  std::size_t length = 0;
  for (const flat* one : x) length = std::max(length, one->size());
  for (std::size_t first = 0; first < count_; first += width) {
    flat& group = groups_.emplace_back(length * width, 0.0F);
    for (std::size_t c = first; c < std::min(first + width, count_); ++c) {
      for (std::size_t i = 0; i < x[c]->size(); ++i) group[i * width + c - first] = (*x[c])[i];
      *x[c] = flat();
    }
  }
}

by_run columns_beside::inner(std::span<const flat* const> y) const {
  // Entries that stay in the nearest cache until every y has read them.
  constexpr std::size_t block = 256;
  by_run out(y.size());
  for (const flat& group : groups_) {
    std::vector<double> sums(y.size() * width, 0.0);
    const float* const x = group.data();
    const std::size_t entries = group.size() / width;
    for (std::size_t from = 0; from < entries; from += block) {
      for (std::size_t first = 0; first < y.size(); first += together) {
        const std::size_t count = std::min(together, y.size() - first);
        std::array<const float*, together> others{};
        for (std::size_t k = 0; k < together; ++k) others[k] = y[first + std::min(k, count - 1)]->data();
        const std::size_t end = std::min({from + block, y[first]->size(), entries});
        detail::in_widest_vectors([&]() __attribute__((always_inline)) {
          double own[together][width] = {};  // not seen from outside
          for (std::size_t k = 0; k < count; ++k) std::copy_n(&sums[(first + k) * width], width, own[k]);
          for (std::size_t i = from; i < end; ++i) {
            for (std::size_t k = 0; k < together; ++k) {
              const auto with = static_cast<double>(others[k][i]);
              for (std::size_t c = 0; c < width; ++c) own[k][c] += static_cast<double>(x[i * width + c]) * with;
            }
          }
          for (std::size_t k = 0; k < count; ++k) std::copy_n(own[k], width, &sums[(first + k) * width]);
        });
      }
    }
    for (std::size_t k = 0; k < y.size(); ++k) {
      const auto begin = sums.begin() + static_cast<std::ptrdiff_t>(k * width);
      out[k].insert(out[k].end(), begin, begin + static_cast<std::ptrdiff_t>(std::min(width, count_ - out[k].size())));
    }
  }
  return out;
}

namespace {

/// 0 where there is no such finite number.
float finite_float(double x) {
  const auto narrow = static_cast<float>(x);
  return std::isfinite(narrow) ? narrow : 0.0F;
}

}  // namespace

flat difference(const double* a, const double* b, std::size_t count) {
  flat out(count);
  for (std::size_t i = 0; i < count; ++i) out[i] = finite_float(a[i] - b[i]);
  return out;
}

flat as_flat(const double* a, std::size_t count) {
  flat out(count);
  for (std::size_t i = 0; i < count; ++i) out[i] = finite_float(a[i]);
  return out;
}

double directions_of(const flat& x, std::size_t columns) {
  constexpr std::size_t probes = 8, most_rows = 512;
  const std::size_t rows = x.size() / columns, stride = std::max<std::size_t>(1, rows / most_rows);
  std::vector<double> signs(columns * probes), gram_by_probe(columns * probes, 0.0);
  philox draw(columns, 0xd12);
  for (double& sign : signs) sign = draw.below(2) == 0 ? -1 : 1;
  double trace = 0;
  detail::in_widest_vectors([&]() __attribute__((always_inline)) {
    for (std::size_t i = 0; i < rows; i += stride) {
      const float* const row = x.data() + i * columns;
      double along[probes] = {}, squares = 0;
      for (std::size_t c = 0; c < columns; ++c) {
        const auto value = static_cast<double>(row[c]);
        squares += value * value;
        for (std::size_t p = 0; p < probes; ++p) along[p] += value * signs[c * probes + p];
      }
      for (std::size_t c = 0; c < columns; ++c) {
        for (std::size_t p = 0; p < probes; ++p) gram_by_probe[c * probes + p] += static_cast<double>(row[c]) * along[p];
      }
      trace += squares;
    }
  });
  double of_squares = 0;
  for (const double entry : gram_by_probe) of_squares += entry * entry / static_cast<double>(probes);
  return of_squares > 0 ? trace * trace / of_squares : 0;
}

void tensor_errors::sum_up() {
  const std::size_t V = same.size(), per_variant = V == 0 ? 0 : same.front().size();
  const double of_base = inner(base, base);
  same_size = moved_size = by_run(V, std::vector<double>(per_variant, 0.0));
  mean_same.assign(base.size(), 0.0F);
  const float weight = 1.0F / static_cast<float>(V * per_variant);
  for (std::size_t v = 0; v < V; ++v) {
    for (std::size_t r = 0; r < per_variant; ++r) {
      const flat &on_same = same[v][r], &on_moved = moved[v][r];
      if (!on_same.empty()) same_size[v][r] = std::max(0.0, of_base + 2 * inner(base, on_same) + inner(on_same, on_same));
      moved_size[v][r] = inner(on_moved, on_moved);
      for (std::size_t i = 0; i < on_same.size() && i < mean_same.size(); ++i) mean_same[i] += weight * on_same[i];
    }
  }
  std::vector<flat*> all;
  for (auto* law : {&same, &moved}) {
    for (auto& variant : *law) {
      for (flat& run : variant) all.push_back(&run);
    }
  }
  runs.take(all);
}

void run_without::take_finer(std::vector<flat>& runs) {
  std::vector<flat*> all;
  for (flat& run : runs) {
    finer_size.push_back(inner(run, run));
    all.push_back(&run);
  }
  finer.take(all);
}

void error_sizes::add(const tensor_errors& x) {
  referee_detail::add(x.same_size, same);
  referee_detail::add(x.moved_size, moved);
}

std::vector<double> tensor_errors::distances(const flat& error) const {
  const double of_error = inner(error, error), with_base = inner(error, base);
  const flat* const only = &error;
  const std::vector<double> products = std::move(runs.inner({&only, 1}).front());
  std::size_t at = 0;
  std::vector<double> out;
  for (const auto& sizes : same_size) {
    double apart = 0, size = 0;
    for (const double own : sizes) {
      apart += std::max(0.0, of_error - 2 * (with_base + products[at++]) + own);
      size += own;
    }
    out.push_back(size > 0 ? apart / size : 0);
  }
  return out;
}

std::vector<fault_sums> sums_of(const tensor_errors& x, const run_without& plain, std::span<const flat* const> differences) {
  by_run finer = plain.finer.inner(differences);
  const by_run products = x.runs.inner(differences);
  const double of_base = inner(x.base, x.base);
  std::vector<fault_sums> out(differences.size());
  for (std::size_t f = 0; f < out.size(); ++f) {
    const flat& d = *differences[f];
    fault_sums& s = out[f];
    s.own = inner(d, d);
    s.fourths = detail::quick_sum(d.size(), [entries = d.data()](std::size_t i) __attribute__((always_inline)) {
      const double square = static_cast<double>(entries[i]) * static_cast<double>(entries[i]);
      return square * square;
    });
    // Of no use for a fault that is no larger than rounding.
    s.directions = s.own > of_base ? directions_of(d, x.columns) : 0;
    s.without = inner(plain.error, d);
    s.finer = std::move(finer[f]);
    s.finer_size = plain.finer_size;
    s.base = inner(x.base, d);
    auto next = products[f].begin();
    const auto take = [&](std::size_t count) {
      next += static_cast<std::ptrdiff_t>(count);
      return std::vector<double>(next - static_cast<std::ptrdiff_t>(count), next);
    };
    for (const auto& variant : x.same) s.same.push_back(take(variant.size()));
    for (const auto& variant : x.moved) s.moved.push_back(take(variant.size()));
  }
  return out;
}

void take_sums(std::span<fault_run> runs, const std::vector<tensor_errors>& x, const std::vector<run_without>& plain) {
  std::vector<fault_run*> whole;
  for (fault_run& run : runs) {
    if (!run.lost_tokens) whole.push_back(&run);
  }
  for (std::size_t k = 0; k < x.size(); ++k) {
    std::vector<const flat*> differences;
    for (const fault_run* run : whole) differences.push_back(&run->difference[k]);
    std::vector<fault_sums> sums = sums_of(x[k], plain[k], differences);
    for (std::size_t f = 0; f < whole.size(); ++f) whole[f]->own.push_back(std::move(sums[f]));
  }
}

result_errors errors_beyond(const std::vector<tensor_errors>& runs, std::vector<flat> got) {
  result_errors out{std::move(got), {}, {}, {}, {}, {}};
  out.deviation = out.got;
  for (std::size_t k = 0; k < runs.size(); ++k) {
    flat& d = out.deviation[k];
    for (std::size_t i = 0; i < d.size(); ++i) d[i] -= runs[k].base[i];
    for (std::size_t i = 0; i < d.size(); ++i) d[i] -= runs[k].mean_same[i];
    out.deviation_size.push_back(inner(d, d));
  }
  return out;
}

void result_errors::compare_with(const std::vector<run_without>& plain, std::size_t updates) {
  // Tensor cores drop what is beyond a sum's last bits, and exponentials may lean to one side: 2^-24 at each of a few steps in a
  // product, and again at each update of the state.
  const double share = 0x1p-21 * (8 + static_cast<double>(updates));
  apart.clear();
  by_sums.clear();
  values.clear();
  for (std::size_t k = 0; k < plain.size(); ++k) {
    flat d = got[k];
    for (std::size_t i = 0; i < d.size(); ++i) d[i] -= plain[k].error[i];
    apart.push_back(inner(d, d));
    by_sums.push_back(share * share * plain[k].size);
    values.push_back(plain[k].size);
  }
}

void add_lane(const fault_run& run, const std::vector<tensor_errors>& runs, const result_errors& result,
              std::vector<fault_sums>& to) {
  for (std::size_t k = 0; k < runs.size(); ++k) {
    if (runs[k].base.empty()) continue;
    const flat& d = run.difference[k];
    fault_sums& s = to[k];
    s.own += run.own[k].own;
    s.fourths += run.own[k].fourths;
    s.directions = std::min(s.directions, run.own[k].directions);
    s.got += inner(result.got[k], d);
    s.base += run.own[k].base;
    s.without += run.own[k].without;
    s.departs = s.departs || run.own[k].departs;
    s.deviation += inner(result.deviation[k], d);
    s.deviation_size += result.deviation_size[k];
    s.apart += result.apart[k];
    s.by_sums += result.by_sums[k];
    s.values += result.values[k];
    add(run.own[k].same, s.same);
    add(run.own[k].moved, s.moved);
    add(run.own[k].finer, s.finer);
    add(run.own[k].finer_size, s.finer_size);
  }
}

fault_draws::projection projection_on(const fault& planted, const std::string& tensor, fault_sums s, const error_sizes& sizes) {
  fault_draws::projection x;
  x.planted = &planted;
  x.tensor = tensor;
  x.got = s.got / s.own;
  x.of_fault = 1 + s.without / s.own;
  x.fault_size = std::sqrt(s.own);
  x.departs = s.departs;
  x.finer_together = s.without / s.own;
  double squares = 0;
  for (std::size_t i = 0; i < s.finer.size(); ++i) {
    x.finer = std::max(x.finer, (s.without + s.finer[i]) / s.own);
    x.finer_together += std::max(0.0, s.finer[i] / s.own);
    const double along = std::max(0.0, cosine(s.finer[i], s.finer_size[i], s.own));
    squares += along * along;
  }
  x.finer_along = std::sqrt(squares);
  x.entries = s.own * s.own / s.fourths;
  x.directions = s.directions;
  x.apart = std::sqrt(s.apart);
  x.by_sums = std::sqrt(s.by_sums);
  x.values = std::sqrt(s.values);
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

statistic size_of_error(const std::string& tensor, const error_sizes& squares) {
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

std::size_t runs_beside_faults(std::size_t variants) { return std::max<std::size_t>(3, (24 + variants - 1) / variants); }

std::vector<plan_variant> one_rounding_fewer(const plan_variant& v) {
  using leave_out = bool (*)(plan_variant&);
  static constexpr auto keep = [](format& f) { return f.precision < fp32.precision && (f = fp32, true); };
  static constexpr auto hold = [](narrowing& n) { return n.to.precision < fp32.precision && (n = {fp32, false}, true); };
  static constexpr auto drop = [](std::optional<format>& f) { return f && f->precision < fp32.precision && (f.reset(), true); };
  static constexpr auto before_it_is_stored = [](const plan_variant& x, std::optional<narrowing>& operand) {
    return x.path == path_kind::chunk && !operand && x.state.store.to.precision < fp32.precision &&
           (operand = narrowing{fp32, false}, true);
  };
  static constexpr auto widen = [](std::optional<narrowing>& n) { return n && hold(*n); };
  static constexpr leave_out all[] = {
      [](plan_variant& x) { return keep(x.l2norm_compute); },
      [](plan_variant& x) { return drop(x.l2norm_store); },
      [](plan_variant& x) { return keep(x.cumsum); },
      [](plan_variant& x) { return keep(x.decay); },
      [](plan_variant& x) { return keep(x.beta); },
      [](plan_variant& x) { return hold(x.A.operand); },
      [](plan_variant& x) { return keep(x.A.accumulate); },
      [](plan_variant& x) { return keep(x.A.store); },
      [](plan_variant& x) { return drop(x.A.read); },
      [](plan_variant& x) { return hold(x.inverse.operand); },
      [](plan_variant& x) { return keep(x.inverse.accumulate); },
      [](plan_variant& x) { return hold(x.inverse.merge_operand); },
      [](plan_variant& x) { return keep(x.inverse.merge_accumulate); },
      [](plan_variant& x) { return drop(x.inverse.between); },
      [](plan_variant& x) { return keep(x.inverse.store); },
      [](plan_variant& x) { return drop(x.inverse.read); },
      [](plan_variant& x) { return hold(x.u.operand); },
      [](plan_variant& x) { return hold(x.w.operand); },
      [](plan_variant& x) { return keep(x.u.accumulate); },
      [](plan_variant& x) { return keep(x.w.accumulate); },
      [](plan_variant& x) { return keep(x.u.store); },
      [](plan_variant& x) { return keep(x.w.store); },
      [](plan_variant& x) { return drop(x.u.read); },
      [](plan_variant& x) { return drop(x.w.read); },
      [](plan_variant& x) { return keep(x.state.accumulate); },
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
      [](plan_variant& x) { return widen(x.v_new.key_operand); },
      [](plan_variant& x) { return hold(x.o.operand); },
      [](plan_variant& x) { return widen(x.o.value_operand); },
      [](plan_variant& x) { return keep(x.o.accumulate); },
      [](plan_variant& x) { return drop(x.o.scale_store); },
      [](plan_variant& x) { return drop(x.o.read_store); },
      [](plan_variant& x) { return x.o.scale != read_scale::o && (x.o.scale = read_scale::o, true); },
      [](plan_variant& x) { return drop(x.o.scale_format); },
      [](plan_variant& x) { return drop(x.o.product_store); },
      [](plan_variant& x) { return drop(x.A.product_store); },
      [](plan_variant& x) { return x.step == step_factor::rows && (x.step = step_factor::product, true); },
  };
  std::vector<plan_variant> out;
  for (const leave_out one : all) {
    plan_variant finer = v;
    if (one(finer)) out.push_back(std::move(finer));
  }
  return out;
}

plan_variant unrounded(plan_variant v) {
  for (std::vector<plan_variant> finer = one_rounding_fewer(v); !finer.empty(); finer = one_rounding_fewer(v)) v = finer.front();
  if (v.o.store.precision < fp32.precision) v.o.store = fp32;
  return v;
}

}  // namespace deltaproof::referee_detail
