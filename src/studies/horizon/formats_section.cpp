// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "studies/horizon/formats.hpp"
#include "studies/horizon/sections.hpp"

namespace deltaproof::detail::horizon {
namespace {

constexpr std::array<format, 3> state_formats{fp32, fp16, bf16};
constexpr std::array<execution, 3> executions{execution::nearest, execution::stochastic, execution::materialised};

struct job {
  std::size_t regime = 0;
  std::size_t format = 0;
  execution how = execution::nearest;
  std::uint64_t stream = 0;
};

/// Runs of one curve: several for stochastic rounding.
struct curve_data {
  std::vector<executed_run> runs;

  /// Root mean square over the runs, at checkpoint i.
  [[nodiscard]] double error(std::size_t i) const {
    double square = 0;
    for (const executed_run& r : runs) square += r.error[i] * r.error[i] / static_cast<double>(runs.size());
    return std::sqrt(square);
  }
  [[nodiscard]] double scale(std::size_t i) const {
    double sum = 0;
    for (const executed_run& r : runs) sum += r.scale[i] / static_cast<double>(runs.size());
    return sum;
  }
};

struct format_data {
  std::vector<std::size_t> at;
  std::vector<reference_run> references;
  std::vector<std::array<std::array<curve_data, 3>, 3>> curves;  // [regime][format][execution]
  bool complete = false;
};

format_data compute(const run_options& options, const settings& size) {
  format_data data;
  data.at = checkpoints(size.format_tokens);
  const auto all = regimes();
  data.references.resize(all.size());
  data.curves.resize(all.size());
  std::vector<job> jobs;
  // The long ones first.
  for (const execution how : {execution::materialised, execution::stochastic, execution::nearest}) {
    const std::size_t runs = how == execution::stochastic ? size.rounding_streams : 1;
    for (std::size_t r = 0; r < all.size(); ++r) {
      for (std::size_t f = 0; f < state_formats.size(); ++f) {
        data.curves[r][f][static_cast<std::size_t>(how)].runs.resize(runs);
        for (std::size_t s = 0; s < runs; ++s) jobs.push_back({r, f, how, s});
      }
    }
  }
  const std::size_t references = for_each_index(all.size(), options, "references", [&](std::size_t r) {
    data.references[r] = run_reference(all[r], size.key_dim, size.value_rows, options.seed, data.at);
  });
  if (references < all.size()) return data;
  const std::size_t done = for_each_index(jobs.size(), options, "formats", [&](std::size_t i) {
    const job& j = jobs[i];
    data.curves[j.regime][j.format][static_cast<std::size_t>(j.how)].runs[j.stream] =
        run_executed(all[j.regime], j.how, state_formats[j.format], data.references[j.regime], size.key_dim, size.value_rows,
                     options.seed, j.stream);
  });
  data.complete = done == jobs.size();
  return data;
}

double square_length(const matrix<double>& m) {
  double sum = 0;
  for (const double x : m.entries()) sum += x * x;
  return sum;
}

figure formats_figure(const format_data& data, const settings& size) {
  figure f;
  f.id = "formats";
  f.title = "What the format adds: relative error of the state against the horizon";
  f.columns = 3;
  f.shared_x = true;
  f.shared_y = true;
  f.caption =
      "|S′ − S| / |S| (Frobenius) after T tokens against the certified reference; d = " + std::to_string(size.key_dim) + ", " +
      std::to_string(size.value_rows) +
      " value columns, unit keys rounded to bf16. One row for each regime, one column for each format. *Overwrite* (fresh keys, "
      "b = 1, new values): the writes replace the state and its errors with it; they stay level. *8 keys for ever* (b = 1, new "
      "values): errors in the directions that no key reaches are never corrected and add up like √T. *Slow learning* (fresh "
      "keys, b = 1/64, v = Wᵀk): a state rounded to nearest stops where a step is below half a unit of the last place, "
      "stochastic rounding goes on. *Near reflection* (fresh keys, b = 1.96875, new values): errors are forgotten slowly, then "
      "stay level. Rounded transitions lose most: rounding moves eigenvalues off 1 in directions where nothing pulls back.";
  f.alt =
      "Twelve panels of error curves. fp32 lies near 1e-7 to 1e-5, fp16 near 1e-3, bf16 near 1e-2 and above; in the second row "
      "errors rise steadily, in the third the curve of rounding to nearest is flat while the others fall.";
  const auto all = regimes();
  for (std::size_t r = 0; r < all.size(); ++r) {
    for (std::size_t k = 0; k < state_formats.size(); ++k) {
      panel p;
      p.title = std::string(deltaproof::name_of(state_formats[k])) + ": " + std::string(all[r].title);
      p.x = {"tokens T", axis_scale::logarithmic, 1, static_cast<double>(size.format_tokens)};
      p.y = {"relative error", axis_scale::logarithmic, 1e-8, 10};
      for (const execution how : executions) {
        series s{std::string(name_of(how)), {}, {}};
        const curve_data& c = data.curves[r][k][static_cast<std::size_t>(how)];
        for (std::size_t i = 0; i < data.at.size(); ++i) {
          s.x.push_back(static_cast<double>(data.at[i]));
          s.y.push_back(c.error(i));
        }
        p.curves.push_back(std::move(s));
      }
      f.panels.push_back(std::move(p));
    }
  }
  return f;
}

/// Index of the checkpoint 10^decade, or the last.
std::size_t checkpoint_at(const format_data& data, std::size_t tokens) {
  const auto found = std::find(data.at.begin(), data.at.end(), tokens);
  return found == data.at.end() ? data.at.size() - 1 : static_cast<std::size_t>(found - data.at.begin());
}

table formats_table(const format_data& data) {
  table t;
  t.id = "formats";
  t.title = "Relative error of the state against the horizon";
  t.columns = {"regime", "format", "executed", {"runs"}};
  std::vector<std::size_t> shown;
  for (std::size_t tokens = 100; tokens <= data.at.back(); tokens *= 10) shown.push_back(checkpoint_at(data, tokens));
  if (shown.empty() || shown.back() != data.at.size() - 1) shown.push_back(data.at.size() - 1);
  for (const std::size_t i : shown) t.columns.push_back({"T = " + count(data.at[i]), 3});
  t.columns.push_back({"kept along S", 3});
  const auto all = regimes();
  for (std::size_t r = 0; r < all.size(); ++r) {
    for (std::size_t k = 0; k < state_formats.size(); ++k) {
      for (const execution how : executions) {
        const curve_data& c = data.curves[r][k][static_cast<std::size_t>(how)];
        std::vector<cell> row{std::string(all[r].id), std::string(deltaproof::name_of(state_formats[k])),
                              std::string(name_of(how)), c.runs.size()};
        for (const std::size_t i : shown) row.emplace_back(c.error(i));
        row.emplace_back(c.scale(data.at.size() - 1));
        t.rows.push_back(std::move(row));
      }
    }
  }
  t.note =
      "Error: |S′ − S| / |S|, Frobenius; several runs: root mean square. Kept along S: ⟨S′, S⟩ / ⟨S, S⟩ at the end, 1 if nothing "
      "is lost. Steps in fp32 (a state rounded stochastically to fp32: in fp64); materialised: entries of I − b k kᵀ in the "
      "format, products and state in fp32.";
  return t;
}

/// Slope of log error against log T between two checkpoints.
double slope(const format_data& data, const curve_data& c, std::size_t from, std::size_t to) {
  return (ln(c.error(to)) - ln(c.error(from))) / (ln(static_cast<double>(data.at[to])) - ln(static_cast<double>(data.at[from])));
}

}  // namespace

void add_formats(const run_options& options, const settings& size, report& r) {
  const format_data data = compute(options, size);
  if (!data.complete) {
    r.unfinished.emplace_back("Errors of the formats over the horizon: interrupted before all runs were done.");
    return;
  }
  const auto all = regimes();
  const std::size_t last = data.at.size() - 1;
  const std::size_t first = checkpoint_at(data, 1000);
  const auto at = [&](std::size_t reg, std::size_t fmt, execution how) -> const curve_data& {
    return data.curves[reg][fmt][static_cast<std::size_t>(how)];
  };

  double worst_radius = 0;
  for (const reference_run& run : data.references) {
    for (std::size_t i = 0; i < run.states.size(); ++i)
      worst_radius = std::max(worst_radius, run.radius[i] / std::sqrt(square_length(run.states[i])));
  }
  const std::string horizon = count(data.at[last]);
  r.findings.push_back(
      {"reference",
       "The reference states are within " + number(worst_radius, 2) +
           " (relative, Frobenius) of the exact ones at every token count up to " + horizon + ", in all " +
           std::to_string(all.size()) + " regimes.",
       evidence::certified(),
       {{"largest_relative_radius", worst_radius}},
       "fp64 recurrence with the oracle's row-norm radius; b|k|² ≤ 2 at every token, checked, so errors of pieces add."});

  const auto level = [&](std::size_t fmt) { return at(0, fmt, execution::nearest).error(last); };
  r.findings.push_back(
      {"error-stays-level",
       "Where fresh keys overwrite the state (b = 1) the error does not grow with the horizon: rounded to nearest it is " +
           number(level(2), 2) + " in bf16, " + number(level(1), 2) + " in fp16 and " + number(level(0), 2) + " in fp32 after " +
           horizon + " tokens, " + number(level(2) / at(0, 2, execution::nearest).error(first), 2) + " times its value after " +
           count(data.at[first]) + " in bf16.",
       evidence::measured(),
       {{"bf16", level(2)},
        {"fp16", level(1)},
        {"fp32", level(0)},
        {"bf16_growth_since_1000", level(2) / at(0, 2, execution::nearest).error(first)}},
       "Seed " + std::to_string(options.seed) +
           "; each token contracts an error by (1 − c²), c² = 1/d on average, so errors older than a few d tokens are gone."});

  const double walk = slope(data, at(1, 1, execution::nearest), first, last);
  const curve_data& vocabulary_bf16 = at(1, 2, execution::nearest);
  r.findings.push_back(
      {"error-walks",
       "With eight keys for ever the error grows like T^" + number(walk, 2) + " (fp16): in the " +
           std::to_string(size.key_dim - vocabulary_size) +
           " directions that no key reaches the exact product is the identity and no step corrects a rounding. After " + horizon +
           " tokens the error of a bf16 state is " + number(vocabulary_bf16.error(last), 3) + " |S|, rounded stochastically " +
           number(at(1, 2, execution::stochastic).error(last), 3) + " |S|.",
       evidence::measured(),
       {{"slope_fp16", walk},
        {"bf16_nearest", vocabulary_bf16.error(last)},
        {"bf16_stochastic", at(1, 2, execution::stochastic).error(last)},
        {"fp32_nearest", at(1, 0, execution::nearest).error(last)}},
       "With norm 1 nothing amplifies an error and nothing removes it: small against |S| it is a random walk; once it is as "
       "large as "
       "S, each rounding is relative to the error itself."});

  const double kept_nearest = at(2, 2, execution::nearest).scale(last);
  const double kept_stochastic = at(2, 2, execution::stochastic).scale(last);
  r.findings.push_back(
      {"nearest-stagnates",
       "With b = 1/64 a bf16 state rounded to nearest all but stops: after " + horizon + " tokens it holds " +
           number(100 * kept_nearest, 3) + " % of the map it learns (error " +
           number(at(2, 2, execution::nearest).error(last), 3) +
           "), because b k_i (v − p) falls below half a unit of the last place and is lost whole; rounded stochastically it "
           "holds " +
           number(100 * kept_stochastic, 4) + " % (error " + number(at(2, 2, execution::stochastic).error(last), 3) +
           "), noisy but not biased. In fp16 the error to nearest is " + number(at(2, 1, execution::nearest).error(last), 3) +
           ".",
       evidence::measured(),
       {{"bf16_nearest_kept", kept_nearest},
        {"bf16_stochastic_kept", kept_stochastic},
        {"bf16_nearest", at(2, 2, execution::nearest).error(last)},
        {"bf16_stochastic", at(2, 2, execution::stochastic).error(last)},
        {"fp16_nearest", at(2, 1, execution::nearest).error(last)},
        {"fp16_stochastic", at(2, 1, execution::stochastic).error(last)}},
       "Regime slow; the share kept is ⟨S′, S⟩/⟨S, S⟩. See finding dead-zone for the exact threshold."});

  double low = std::numeric_limits<double>::infinity();
  double high = 0;
  for (const executed_run& run : at(2, 2, execution::stochastic).runs) {
    low = std::min(low, run.scale[last]);
    high = std::max(high, run.scale[last]);
  }
  r.findings.push_back(
      {"stochastic-unbiased",
       "Over " + std::to_string(size.rounding_streams) +
           " streams of stochastic rounding the share of the map a bf16 state holds is " + number(kept_stochastic, 4) +
           (std::fabs(kept_stochastic - 1) <= high - low ? ": no drift that exceeds the spread of the streams."
                                                         : ": it drifts by more than the spread of the streams."),
       evidence::sampled(size.rounding_streams, options.seed, "between " + number(low, 4) + " and " + number(high, 4)),
       {{"kept", kept_stochastic}, {"lowest", low}, {"highest", high}},
       "The rounding is unbiased at each step and the recurrence is linear in S, so the mean of the state follows the exact "
       "recurrence but for the fp32 arithmetic of the step."});

  // One unit key, b = 1: the transition is a projection; rounded, its powers tell the whole story.
  token_source source({"", "", key_kind::repeated, 1, false}, size.key_dim, 1, options.seed);
  source.next();
  matrix<float> m(size.key_dim, size.key_dim);
  materialise<bf16>(source.k(), 1, m);
  const double norm_bf16 = certified_norm_at_least(m);
  materialise<fp16>(source.k(), 1, m);
  const double norm_fp16 = certified_norm_at_least(m);
  materialise<fp32>(source.k(), 1, m);
  const double norm_fp32 = certified_norm_at_least(m);
  const auto doubling = [](double norm) {
    return norm > 1 ? std::ceil(ln(2) / ln(norm)) : std::numeric_limits<double>::infinity();
  };
  r.findings.push_back(
      {"materialised-expands",
       std::string(norm_bf16 > 1 ? "Materialising breaks stability: " : "Materialising does not break stability for this key: ") +
           "for one unit key, b = 1, the exact I − k kᵀ is a projection; rounded entry by entry it has an eigenvalue of modulus "
           "at least 1 + " +
           number(norm_bf16 - 1, 3) + " in bf16, 1 + " + number(norm_fp16 - 1, 3) + " in fp16, 1 + " + number(norm_fp32 - 1, 3) +
           " in fp32, so the norm of the product for one repeated key doubles at least every " + number(doubling(norm_bf16), 4) +
           ", " + number(doubling(norm_fp16), 5) + " and " + number(doubling(norm_fp32), 4) + " tokens.",
       evidence::certified(),
       {{"bf16_norm_at_least", norm_bf16},
        {"fp16_norm_at_least", norm_fp16},
        {"fp32_norm_at_least", norm_fp32},
        {"bf16_tokens_to_double", doubling(norm_bf16)}},
       "Rayleigh quotient of the rounded matrix, which is symmetric, in rationals, rounded down."});
  const curve_data& lost = at(1, 2, execution::materialised);
  r.findings.push_back(
      {"materialised-runs",
       "With bf16 transitions and eight keys for ever " +
           (std::isfinite(lost.error(last)) ? "the error is " + number(lost.error(last), 2) + " |S|"
                                            : std::string("the state leaves fp32")) +
           " after " + horizon +
           " tokens; with fresh keys and b = 1/64, where every diagonal entry rounds to 1 and nothing is forgotten, " +
           number(at(2, 2, execution::materialised).error(last), 2) + " |S|; with fresh keys and b = 1 it stays at " +
           number(at(0, 2, execution::materialised).error(last), 2) + " |S|.",
       evidence::measured(),
       {{"vocabulary_bf16", lost.error(last)},
        {"overwrite_bf16", at(0, 2, execution::materialised).error(last)},
        {"slow_bf16", at(2, 2, execution::materialised).error(last)},
        {"vocabulary_fp32", at(1, 0, execution::materialised).error(last)}},
       "Seed " + std::to_string(options.seed) +
           "; the state and all sums are fp32, only the entries of the transition are rounded."});
  r.figures.push_back(formats_figure(data, size));
  r.tables.push_back(formats_table(data));
}

}  // namespace deltaproof::detail::horizon
