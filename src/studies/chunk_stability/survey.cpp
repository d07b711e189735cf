// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT

#include "studies/chunk_stability/survey.hpp"

#include <algorithm>
#include <cmath>
#include <string>

#include "deltaproof/algebra/multiply.hpp"
#include "deltaproof/number/convert.hpp"
#include "deltaproof/number/errors.hpp"
#include "deltaproof/scan/transition.hpp"
#include "studies/chunk_stability/transition.hpp"
#include "studies/shared/chunks/arithmetics.hpp"
#include "studies/shared/keys.hpp"

namespace deltaproof::detail::chunk_stability {
namespace {

using chunks::key_kind;
using chunks::key_kinds;

// NaN counts as the worst there is.
void worsen(double& worst, double value) { worst = std::isnan(value) ? HUGE_VAL : std::max(worst, value); }

double radius_of(const sequence<double>& s, key_kind keys, const matrix<double>& w) {
  if (!one_direction(keys)) return chunk_radius(s, w, 0, s.rows());
  const double along = std::fabs(eigenvalue_along_key(s, w, 0, s.rows()));
  return along < 1 ? 1 : along;  // NaN stays
}

const inverse_method& kernel_inverse() {
  static const inverse_method method = inverse_named(inverse_name);
  return method;
}

struct part {
  double square = 0;
  double exact = 0;
};

part look_at(const run_options& options, const settings& size, chunk_curve& c) {
  part found;
  for (std::size_t i = 0; i < c.draws; ++i) {
    for (std::size_t b = 0; b < c.beta.size(); ++b) {
      const auto s = chunks::make_sequence(c.keys, {c.beta[b], c.beta[b]}, c.chunk, size.key_dim, 1, 0, draw_seed(options, i));
      for (std::size_t r = 0; r < s.rows(); ++r) found.square = std::max(found.square, shared::squared_norm(s.k_row(r)));
      const auto run = chunks::arithmetic_named(c.format).chunkwise(s, c.chunk, kernel_inverse());
      const matrix<double> realised = realised_transition(s, run.w, 0, c.chunk);
      const matrix<double> exact = exact_transition(s, 0, c.chunk);
      worsen(c.distance[b], distance(realised, exact));
      if (one_direction(c.keys)) worsen(c.along[b], std::fabs(eigenvalue_along_key(s, run.w, 0, c.chunk)));
      worsen(c.radius[b], radius_of(s, c.keys, run.w));
      if (c.norm.empty()) continue;
      worsen(c.norm[b], spectral_norm_by_squaring(realised, 20));
      if (c.exact_norm.empty()) continue;
      worsen(c.exact_norm[b], spectral_norm_by_squaring(exact, 20));
      found.exact = std::max(found.exact, c.exact_norm[b]);
    }
  }
  return found;
}

matrix<double> rounded_to_bf16(matrix<double> m) {
  for (double& x : m.entries()) x = round_to<bf16>(x).value();
  return m;
}

}  // namespace

settings settings_for(const run_options& options) {
  settings size;
  if (options.full) {
    size.seeds = 16;
    size.repeated_seeds = 64;
    size.tokens = 65536;
  }
  return size;
}

std::vector<double> betas_of(key_kind kind, std::string_view format) {
  if (format == "fp32") return {1, 1.5, 1.75, 1.9375, 1.984375, 1.9921875, 2};
  if (!one_direction(kind)) return {1, 1.25, 1.5, 1.75, 1.875, 1.9375, 1.96875, 1.9765625, 1.984375, 1.9921875, 2};
  std::vector<double> betas;
  for (int i = 128; i <= 256; ++i) {
    if (i <= 224 ? i % 4 == 0 : i <= 248 ? i % 2 == 0 : true) betas.push_back(i / 128.0);
  }
  return betas;
}

std::uint64_t draw_seed(const run_options& options, std::size_t i) { return 1000 * options.seed + i; }

double chunk_curve::first_explosion() const {
  for (std::size_t b = 0; b < beta.size(); ++b) {
    if (radius[b] >= explodes_at) return beta[b];
  }
  return 0;
}

double chunk_curve::worst_radius() const { return *std::max_element(radius.begin(), radius.end()); }

const chunk_curve& chunk_survey::at(key_kind keys, std::string_view format, std::size_t chunk) const {
  for (const chunk_curve& c : curves) {
    if (c.keys == keys && c.format == format && c.chunk == chunk) return c;
  }
  throw domain_error("chunk-stability: no curve for " + std::string(name_of(keys)) + ", " + std::string(format) +
                     ", C = " + std::to_string(chunk));
}

chunk_survey survey_chunks(const run_options& options, const settings& size) {
  chunk_survey survey;
  for (const key_kind keys : key_kinds) {
    if (keys == key_kind::alternating) continue;  // the same as repeated: a finding of its own
    for (const std::string_view format : stored_formats) {
      for (const std::size_t chunk : size.chunks) {
        chunk_curve c;
        c.keys = keys;
        c.format = format;
        c.chunk = chunk;
        c.draws = one_direction(keys) ? size.repeated_seeds : size.seeds;
        c.beta = betas_of(keys, format);
        const std::vector<double> zeros(c.beta.size(), 0);
        c.radius = c.distance = zeros;
        if (one_direction(keys)) c.along = zeros;
        if (chunk == 64 && !one_direction(keys)) c.norm = zeros;
        if (!c.norm.empty() && format == "bf16") c.exact_norm = zeros;  // the same for every format
        survey.curves.push_back(std::move(c));
      }
    }
  }
  std::vector<part> found(survey.curves.size());
  const std::size_t done = for_each_index(survey.curves.size(), options, "single chunks",
                                          [&](std::size_t i) { found[i] = look_at(options, size, survey.curves[i]); });
  survey.complete = done == survey.curves.size();
  for (const part& p : found) {
    survey.largest_square = std::max(survey.largest_square, p.square);
    survey.largest_exact = std::max(survey.largest_exact, p.exact);
  }
  for (const chunk_curve& c : survey.curves) survey.chunks += c.draws * c.beta.size();
  return survey;
}

double storage_bound(double x, std::size_t chunk, double unit_roundoff) {
  return static_cast<double>(chunk) * unit_roundoff * x * x / (2 - x);
}

double proved_safe_x(std::size_t chunk, double unit_roundoff) {
  const auto safe = [&](double x) {
    double power = 1;
    for (std::size_t i = 0; i < chunk; ++i) power *= x - 1;
    return power + storage_bound(x, chunk, unit_roundoff) <= 1;
  };
  double low = 1;
  double high = 2;
  if (!safe(low)) return 0;
  for (int i = 0; i < 20; ++i) {
    const double middle = 0.5 * (low + high);
    (safe(middle) ? low : high) = middle;
  }
  return low;
}

std::vector<origin_row> survey_origins(const run_options& options, const settings& size) {
  std::vector<origin_row> rows;
  for (const key_kind keys : {key_kind::fresh, key_kind::cosine_90, key_kind::cosine_99, key_kind::cosine_999,
                              key_kind::vocabulary, key_kind::repeated}) {
    for (const double beta : {1.0, 1.75, 1.984375}) rows.push_back({keys, beta, {}, {}, 0});
  }
  constexpr std::size_t chunk = 64;
  for_each_index(rows.size(), options, "which stage", [&](std::size_t i) {
    origin_row& row = rows[i];
    for (std::size_t draw = 0; draw < size.repeated_seeds; ++draw) {
      const auto s = chunks::make_sequence(row.keys, {row.beta, row.beta}, chunk, size.key_dim, 1, 0, draw_seed(options, draw));
      const auto run = chunks::arithmetic_named("fp64").chunkwise(s, chunk, kernel_inverse());
      const matrix<double> exact = realised_transition(s, run.w, 0, chunk);
      matrix<double> scaled(chunk, size.key_dim);
      for (std::size_t r = 0; r < chunk; ++r) {
        for (std::size_t c = 0; c < size.key_dim; ++c) scaled(r, c) = row.beta * s.k_row(r)[c];
      }
      const std::array<matrix<double>, 3> w{matmul<plain<double>>(rounded_to_bf16(run.Ai), scaled),
                                            matmul<plain<double>>(run.Ai, rounded_to_bf16(scaled)), rounded_to_bf16(run.w)};
      for (std::size_t which = 0; which < w.size(); ++which) {
        worsen(row.distance[which], distance(realised_transition(s, w[which], 0, chunk), exact));
        worsen(row.radius[which], radius_of(s, row.keys, w[which]));
      }
      if (!one_direction(row.keys)) continue;
      const double x = row.beta * shared::squared_norm(s.k_row(0));
      const double moved = std::fabs(eigenvalue_along_key(s, w[0], 0, chunk) - eigenvalue_along_key(s, run.w, 0, chunk));
      worsen(row.largest_of_bound, moved / storage_bound(x, chunk, unit_roundoff(bf16)));
    }
  });
  return rows;
}

std::vector<arithmetic_row> survey_arithmetics(const run_options& options, const settings& size) {
  struct configuration {
    std::string_view arithmetic;
    std::string_view inverse;
  };
  constexpr std::array<configuration, 8> configurations{{{"bf16", inverse_name},
                                                         {"bf16, merges tf32", inverse_name},
                                                         {"bf16, inverse bf16", inverse_name},
                                                         {"bf16, inverse fp16 native", "neumann16+block"},
                                                         {"bf16 native", inverse_name},
                                                         {"fp16", inverse_name},
                                                         {"tf32", inverse_name},
                                                         {"fp32", inverse_name}}};
  std::vector<arithmetic_row> rows;
  for (const configuration& c : configurations) {
    for (const key_kind keys : {key_kind::fresh, key_kind::cosine_99, key_kind::cosine_999, key_kind::repeated}) {
      for (const double beta : {1.0, 1.75, 1.984375}) rows.push_back({c.arithmetic, c.inverse, keys, beta, 0, 0});
    }
  }
  constexpr std::size_t chunk = 64;
  for_each_index(rows.size(), options, "arithmetics", [&](std::size_t i) {
    arithmetic_row& row = rows[i];
    const inverse_method method = inverse_named(row.inverse);
    for (std::size_t draw = 0; draw < size.seeds; ++draw) {
      const auto s = chunks::make_sequence(row.keys, {row.beta, row.beta}, chunk, size.key_dim, 1, 0, draw_seed(options, draw));
      const auto run = chunks::arithmetic_named(row.arithmetic).chunkwise(s, chunk, method);
      worsen(row.distance, distance(realised_transition(s, run.w, 0, chunk), exact_transition(s, 0, chunk)));
      worsen(row.radius, radius_of(s, row.keys, run.w));
    }
  });
  return rows;
}

std::vector<range_row> survey_ranges(const run_options& options, const settings& size) {
  std::vector<range_row> rows;
  for (const key_kind keys : key_kinds) {
    if (keys == key_kind::alternating) continue;
    for (const chunks::step_law steps : {chunks::step_law{0, 2}, chunks::step_law{1, 2}, chunks::step_law{1.9, 2}}) {
      for (const std::size_t chunk : size.chunks) {
        if (chunk >= 64) rows.push_back({keys, steps, chunk, (one_direction(keys) ? 4 : 1) * size.seeds, 0, 0});
      }
    }
  }
  for_each_index(rows.size(), options, "ranges of steps", [&](std::size_t i) {
    range_row& row = rows[i];
    for (std::size_t draw = 0; draw < row.draws; ++draw) {
      const auto s = chunks::make_sequence(row.keys, row.steps, row.chunk, size.key_dim, 1, 0, draw_seed(options, draw));
      const auto run = chunks::arithmetic_named("bf16").chunkwise(s, row.chunk, kernel_inverse());
      worsen(row.radius, radius_of(s, row.keys, run.w));
      worsen(row.distance, distance(realised_transition(s, run.w, 0, row.chunk), exact_transition(s, 0, row.chunk)));
    }
  });
  return rows;
}

agreement compare_alternating(const run_options& options, const settings& size) {
  agreement result;
  for (std::size_t draw = 0; draw < size.repeated_seeds; ++draw) {
    for (const double beta : {1.25, 1.75, 1.90625, 1.984375, 2.0}) {
      const auto along = [&](key_kind keys) {
        const auto s = chunks::make_sequence(keys, {beta, beta}, 32, size.key_dim, 1, 0, draw_seed(options, draw));
        return eigenvalue_along_key(s, chunks::arithmetic_named("bf16").chunkwise(s, 32, kernel_inverse()).w, 0, 32);
      };
      ++result.cases;
      if (along(key_kind::repeated) == along(key_kind::alternating)) ++result.equal;
    }
  }
  return result;
}

control_result survey_control(const run_options& options, const settings& size) {
  struct task {
    key_kind keys;
    std::size_t draw;
    std::array<double, 3> ratio{};
    std::uint64_t runs = 0;
  };
  std::vector<task> tasks;
  for (const key_kind keys : key_kinds) {
    for (std::size_t draw = 0; draw < (size.seeds + 1) / 2; ++draw) tasks.push_back({keys, draw, {}, 0});
  }
  for_each_index(tasks.size(), options, "the recurrence", [&](std::size_t i) {
    task& t = tasks[i];
    auto s = chunks::make_sequence(t.keys, {1, 1}, size.tokens, size.key_dim, 1, 0, draw_seed(options, t.draw));
    const double start = frobenius(s.initial_state);
    for (const double beta : betas_of(key_kind::fresh, "bf16")) {
      std::fill(s.step.begin(), s.step.end(), beta);
      const auto ratio = [&](std::string_view arithmetic, chunks::state_format state) {
        return frobenius(chunks::arithmetic_named(arithmetic).recurrent(s, state, 1, nullptr).final_state) / start;
      };
      worsen(t.ratio[0], ratio("fp32", chunks::state_format::accumulator));
      worsen(t.ratio[1], ratio("bf16", chunks::state_format::storage));
      worsen(t.ratio[2], ratio("fp16", chunks::state_format::storage));
      ++t.runs;
    }
  });
  control_result result;
  for (const task& t : tasks) {
    for (std::size_t k = 0; k < t.ratio.size(); ++k) {
      worsen(result.by_keys[static_cast<std::size_t>(t.keys)][k], t.ratio[k]);
      worsen(result.largest_ratio[k], t.ratio[k]);
    }
    result.runs += t.runs;
  }
  return result;
}

std::vector<horizon_case> survey_horizon(const run_options& options, const settings& size, const chunk_survey& survey) {
  // The draw of the repeated key that the survey found worst for this C and beta.
  const auto worst_draw = [&](std::size_t chunk, double beta) {
    std::size_t worst = 0;
    double largest = -1;
    for (std::size_t draw = 0; draw < size.repeated_seeds; ++draw) {
      const auto s = chunks::make_sequence(key_kind::repeated, {beta, beta}, chunk, size.key_dim, 1, 0, draw_seed(options, draw));
      const double along =
          std::fabs(eigenvalue_along_key(s, chunks::arithmetic_named("bf16").chunkwise(s, chunk, kernel_inverse()).w, 0, chunk));
      if (along > largest) worst = draw, largest = along;
    }
    return worst;
  };
  const double first = survey.at(key_kind::repeated, "bf16", 64).first_explosion();
  std::vector<horizon_case> cases;
  for (const double value_scale : {0.0, 1.0}) {
    if (first > 0) cases.push_back({key_kind::repeated, 64, {first, first}, value_scale, worst_draw(64, first), 0, {}});
    cases.push_back({key_kind::repeated, 64, {1.5, 2}, value_scale, 0, 0, {}});
    cases.push_back({key_kind::cosine_999, 64, {2, 2}, value_scale, 0, 0, {}});
    cases.push_back({key_kind::fresh, 64, {2, 2}, value_scale, 0, 0, {}});
  }
  for_each_index(cases.size(), options, "many chunks", [&](std::size_t i) {
    horizon_case& c = cases[i];
    const auto s = chunks::make_sequence(c.keys, c.steps, size.tokens, size.key_dim, size.value_dim, c.value_scale,
                                         draw_seed(options, c.draw));
    const double start = frobenius(s.initial_state);
    for (const std::string_view format : stored_formats) {
      const auto run = chunks::arithmetic_named(format).chunkwise(s, c.chunk, kernel_inverse());
      horizon_run r{format, true, {}};
      for (const auto& h : run.h) r.norm.push_back(frobenius(h));
      r.norm.push_back(frobenius(run.final_state));
      c.runs.push_back(std::move(r));
      if (format == "bf16")
        c.radius =
            one_direction(c.keys) ? std::fabs(eigenvalue_along_key(s, run.w, 0, c.chunk)) : chunk_radius(s, run.w, 0, c.chunk);
    }
    const auto control = [&](std::string_view label, std::string_view arithmetic, chunks::state_format state) {
      std::vector<matrix<double>> states;
      static_cast<void>(chunks::arithmetic_named(arithmetic).recurrent(s, state, c.chunk, &states));
      horizon_run r{label, false, {start}};
      for (const auto& m : states) r.norm.push_back(frobenius(m));
      c.runs.push_back(std::move(r));
    };
    control("fp32", "fp32", chunks::state_format::accumulator);
    control("bf16", "bf16", chunks::state_format::storage);
    control("fp16", "fp16", chunks::state_format::storage);
    control("fp64", "fp64", chunks::state_format::accumulator);
  });
  return cases;
}

}  // namespace deltaproof::detail::chunk_stability

// Theorems behind this file, by their names in proofs/README.md.
// proved: algebra.repeated_keys.inverse_is_geometric, algebra.repeated_keys.stored_inverse_moves_eigenvalue
