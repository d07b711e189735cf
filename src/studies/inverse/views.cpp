// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT

#include <algorithm>
#include <cmath>
#include <limits>

#include "studies/inverse/survey.hpp"
#include "studies/shared/functions.hpp"

namespace deltaproof::detail::inverse {
namespace {

constexpr double nan = std::numeric_limits<double>::quiet_NaN();

double correlation(std::size_t keys) { return correlation_of(key_law_named(key_laws[keys])); }

std::vector<std::string> names(const auto& of) { return {of.begin(), of.end()}; }

std::vector<std::string> arithmetic_names() {
  std::vector<std::string> out;
  for (const arithmetic_plan& a : arithmetics) out.push_back(name_of(a));
  return out;
}

std::string chunk_text(std::size_t chunk) { return "C = " + std::to_string(chunk); }

std::size_t chunk_index(const survey& s, std::size_t chunk) {
  return static_cast<std::size_t>(std::find(s.size.chunks.begin(), s.size.chunks.end(), chunk) - s.size.chunks.begin());
}

std::size_t step_index(std::string_view name) {
  return static_cast<std::size_t>(std::find(step_laws.begin(), step_laws.end(), name) - step_laws.begin());
}

cell safe_text(std::size_t prefix) {
  if (prefix == 0) return "none";
  if (prefix == key_laws.size()) return "all";
  return "≤ " + number(correlation(prefix - 1));
}

table safe_table(const survey& s) {
  table t;
  t.id = "where-safe";
  t.title = "Which inverse is safe where: up to which mean cosine of the keys";
  t.columns = {"C", "β", "inverse"};
  for (const std::string& name : arithmetic_names()) t.columns.emplace_back(name);
  for (std::size_t c = 0; c < s.size.chunks.size(); ++c) {
    for (const std::size_t steps : {moderate_steps, step_laws.size()}) {
      for (std::size_t m = 0; m < methods.size(); ++m) {
        std::vector<cell> row{s.size.chunks[c], steps == moderate_steps ? "≤ 1" : "≤ 2", methods[m]};
        for (std::size_t a = 0; a < arithmetics.size(); ++a) row.push_back(safe_text(safe_prefix(s, c, steps, m, a)));
        t.rows.push_back(std::move(row));
      }
    }
  }
  t.note =
      "*all*: safe for every kind of keys tried, from Gaussian to identical and alternating. *≤ c*: safe for all kinds up to "
      "mean cosine c, not for "
      "the next one. *none*: not even for Gaussian keys. The kinds and their mean cosines: gaussian 0, silu " +
      number(correlation(1)) + ", cos=0.3, elu1 " + number(correlation(3)) +
      ", cos=0.9, 0.99, 0.9999, identical and alternating 1 (in absolute value). β ≤ 1: U(0,1), 0.9 and 1; "
      "β ≤ 2: these and U(1.9,2), 2. A column is operands/sums to result; what is not named is as the operands.";
  return t;
}

table growth_table(const survey& s) {
  table t;
  t.id = "largest-intermediate";
  t.title = "The largest |entry| an inverse forms on the way, β = 1 and β = 2";
  t.columns = {"C", "β", "inverse"};
  for (const std::string_view keys : key_laws) t.columns.emplace_back(std::string(keys), 3);
  for (std::size_t c = 0; c < s.size.chunks.size(); ++c) {
    for (const std::string_view step : {"1", "2"}) {
      const std::size_t b = step_index(step);
      std::vector<cell> own{s.size.chunks[c], step, "the true inverse"};
      for (std::size_t k = 0; k < key_laws.size(); ++k) own.emplace_back(s.entry(c, k, b));
      t.rows.push_back(std::move(own));
      for (std::size_t m = 0; m < methods.size(); ++m) {
        std::vector<cell> row{s.size.chunks[c], step, methods[m]};
        for (std::size_t k = 0; k < key_laws.size(); ++k) row.emplace_back(s.at(c, k, b, m, 0).observed);
        t.rows.push_back(std::move(row));
      }
    }
  }
  t.note = "Observed in fp64, where nothing overflows; what a narrower format would have to hold.";
  return t;
}

table error_table(const survey& s, std::size_t first, std::size_t end, const std::string& id, const std::string& title) {
  table t;
  t.id = id;
  t.title = title;
  t.columns = {"inverse", "arithmetic"};
  for (const std::string_view keys : key_laws) t.columns.emplace_back(std::string(keys), 2);
  const std::size_t c = chunk_index(s, 64);
  if (c == s.size.chunks.size()) return t;
  for (std::size_t m = 0; m < methods.size(); ++m) {
    for (std::size_t a = 0; a < arithmetics.size(); ++a) {
      std::vector<cell> row{methods[m], name_of(arithmetics[a])};
      for (std::size_t k = 0; k < key_laws.size(); ++k) {
        double worst = 0;
        bool safe = true;
        for (std::size_t b = first; b < end; ++b) {
          const outcome& o = s.at(c, k, b, m, a);
          worst = std::max(worst, o.error);
          safe = safe && o.safe;
        }
        row.push_back(safe ? number(worst, 2) : number(worst, 2) + " ✗");
      }
      t.rows.push_back(std::move(row));
    }
  }
  t.note =
      "max|X − (I+L)⁻¹| in units of 8 u max(1, max|(I+L)⁻¹|), u that of the stored format: the worst of the draws and steps. "
      "✗: unsafe, by an "
      "error above 1, an overflow (inf) or because the powers of L promise no better (then the number may be small).";
  return t;
}

figure intermediates_figure(const survey& s) {
  figure f;
  f.id = "intermediates";
  f.title = "The inverse is small, what is formed on the way is not";
  f.caption =
      "log₁₀ of the largest |entry|, β = 1, by algorithm (rows) and keys (columns, by rising correlation), observed in fp64. "
      "First row: the inverse "
      "itself, whose entries never exceed 1. Forward substitution and block recursion form nothing larger. Summing powers of L "
      "forms numbers as large as binomials on each block it is applied to, and rounds at that size: one rounding of 10³ in fp16 "
      "is an error of 0.5. "
      "Gaussian keys (first column; d = " +
      std::to_string(s.size.key_dim) + ") show nothing of it.";
  f.alt =
      "Two tables of colours. The rows of the inverse itself, of forward substitution and of the block methods are zero "
      "throughout; the Neumann rows rise "
      "from zero for Gaussian keys to 18 for identical ones.";
  f.columns = 1;
  for (const std::size_t chunk : {16U, 64U}) {
    const std::size_t c = chunk_index(s, chunk);
    if (c == s.size.chunks.size()) continue;
    heat_map h;
    h.label = "log₁₀ of the largest intermediate";
    h.digits = 2;
    h.minimum = 0;
    h.maximum = 18;
    h.column_names = names(key_laws);
    h.columns = key_laws.size();
    h.row_names = {"the inverse itself"};
    const std::size_t one = step_index("1");
    for (std::size_t k = 0; k < key_laws.size(); ++k) h.values.push_back(shared::log10_of(s.entry(c, k, one)));
    for (std::size_t m = 0; m < methods.size(); ++m) {
      h.row_names.emplace_back(methods[m]);
      for (std::size_t k = 0; k < key_laws.size(); ++k) h.values.push_back(shared::log10_of(s.at(c, k, one, m, 0).observed));
    }
    for (double& x : h.values) x = std::max(0.0, x);  // an inverse in fp64 may exceed 1 by a rounding
    h.rows = h.row_names.size();
    panel p;
    p.title = chunk_text(chunk);
    p.heat = std::move(h);
    f.panels.push_back(std::move(p));
  }
  return f;
}

figure safe_figure(const survey& s) {
  figure f;
  f.id = "where-safe";
  f.title = "Safe up to which mean cosine of the keys, C = 64";
  f.caption =
      "Each cell: the mean cosine up to which every kind of keys tried is safe (1: all, identical and alternating keys included; "
      "grey: not even "
      "Gaussian keys). Columns: operands/sums to result. Top, β ≤ 1: without powers every algorithm is safe in every format; "
      "with powers it depends on "
      "the keys, unless bf16 results are made in fp32 on blocks of 16 rows or fewer, or in tf32 or fp16 on blocks of 8. "
      "Bottom, β up to 2: I + L itself becomes "
      "ill-conditioned, so an algorithm needs "
      "a u smaller than that of its result: without powers fp32, tf32 or fp16 operands with fp32 sums, stored as bf16, or forward "
      "substitution with fp32 sums.";
  f.alt =
      "Two tables of colours, algorithms by formats. Above, the rows without powers are 1 throughout and the Neumann rows mostly "
      "below 0.7. "
      "Below, 1 remains in the "
      "columns with fp32 sums of operands finer than bf16, stored as bf16, except in the Neumann rows, and in the forward row with "
      "fp32 sums.";
  f.columns = 1;
  const std::size_t c = chunk_index(s, 64);
  for (const std::size_t steps : {moderate_steps, step_laws.size()}) {
    if (c == s.size.chunks.size()) continue;
    heat_map h;
    h.label = "mean cosine";
    h.digits = 2;
    h.minimum = 0;
    h.maximum = 1;
    h.row_names = names(methods);
    h.rows = methods.size();
    h.column_names = arithmetic_names();
    h.columns = arithmetics.size();
    for (std::size_t m = 0; m < methods.size(); ++m) {
      for (std::size_t a = 0; a < arithmetics.size(); ++a) {
        const std::size_t prefix = safe_prefix(s, c, steps, m, a);
        h.values.push_back(prefix == 0 ? nan : correlation(prefix - 1));
      }
    }
    panel p;
    p.title = steps == moderate_steps ? "β ≤ 1" : "β ≤ 2";
    p.heat = std::move(h);
    f.panels.push_back(std::move(p));
  }
  return f;
}

// Predicted as a line, two draws in fp64 as points.
void add_growth_curve(panel& p, const std::string& label, std::string_view method,
                      const std::vector<std::pair<double, inverse_problem>>& at) {
  series line{label, {}, {}};
  series seen{label, {}, {}, series_style::points};
  const inverse_plan plan{inverse_named(method), fp64, fp64, fp64};
  std::size_t n = 0;
  for (const auto& [x, problem] : at) {
    line.x.push_back(x);
    line.y.push_back(predict_growth(plan.method, problem).largest);
    if (n++ % 4 != 0) continue;
    const auto cases = inverse_inputs(problem).rounded_to(fp64);
    double largest = 0;
    for (const growth& g : run_cases(plan, cases).observed) largest = std::max(largest, g.largest);
    seen.x.push_back(x);
    seen.y.push_back(largest);
  }
  p.curves.push_back(std::move(line));
  p.curves.push_back(std::move(seen));
}

figure law_figure(const run_options& options, std::size_t key_dim) {
  figure f;
  f.id = "law";
  f.title = "What the powers of L reach: predicted and observed, β = 1";
  f.caption =
      "Lines: predicted from correlation and length alone; points: the largest of two draws in fp64. Left, a block of b rows "
      "against the mean cosine c of the "
      "keys: about c^p C(b−2, p−1), p = 1, 2, 4 … Right, against C at c = 0.9. A stored error within 8 u allows intermediates up "
      "to 8 where operands and "
      "result share a format (lower mark), 64 in tf32 or fp16 for a result in bf16, 5·10⁵ in fp32 for one in bf16 (upper mark); "
      "fp16 "
      "overflows above 65 504. Substitution and block recursion stay at 1.";
  f.alt =
      "Left: curves for blocks of 8, 16, 32 and 64 rows rise with the mean cosine, the longer the steeper. Right: the "
      "whole-chunk Neumann curve rises "
      "without bound with C, the ones of blocks of 16 and 8 level off, forward substitution stays at one.";
  f.columns = 2;
  f.shared_y = true;
  panel left;
  left.title = "one block of b rows";
  left.x = {"mean cosine c", axis_scale::linear, 0, 1};
  left.y = {"largest |entry|", axis_scale::logarithmic, 0.5, 1e18};
  left.marks = {{mark_direction::horizontal, 8, "8"}, {mark_direction::horizontal, 524288, "5·10⁵"}};
  panel right = left;
  right.title = "c = 0.9";
  right.x = {"chunk length C", axis_scale::logarithmic, 4, 128, {4, 8, 16, 32, 64, 128}};
  for (const std::size_t rows : {8U, 16U, 32U, 64U}) {
    std::vector<std::pair<double, inverse_problem>> at;
    for (int i = 0; i <= 40; ++i) {
      const double c = i / 40.0;
      at.push_back({c, {{key_family::cosine, c}, {1, 1}, key_dim, rows, 2, options.seed}});
    }
    add_growth_curve(left, "b = " + std::to_string(rows), "neumann", at);
  }
  for (const std::string_view method : {"neumann", "neumann16+block", "neumann8+block", "forward"}) {
    std::vector<std::pair<double, inverse_problem>> at;
    for (const std::size_t chunk :
         {4U, 5U, 6U, 7U, 8U, 10U, 12U, 14U, 16U, 20U, 24U, 28U, 32U, 40U, 48U, 56U, 64U, 80U, 96U, 112U, 128U}) {
      at.push_back({static_cast<double>(chunk), {{key_family::cosine, 0.9}, {1, 1}, key_dim, chunk, 2, options.seed}});
    }
    add_growth_curve(right, std::string(method), method, at);
  }
  f.panels = {std::move(left), std::move(right)};
  return f;
}

figure error_figure(const survey& s) {
  figure f;
  f.id = "error-law";
  f.title = "The error follows the growth: every configuration with C = 64";
  f.caption =
      "Across: the predicted growth, or the observed where that is larger, times u of the operands; up: the error observed; both in "
      "units of the limit 8 u max(1, "
      "max|(I+L)⁻¹|) of the stored "
      "format, logarithmic. Safe is the lower left quadrant alone. Algorithms that sum powers lie along the diagonal: what the "
      "growth promises is what one gets; "
      "above it where an error beyond 1 was made on the diagonal blocks and the merges multiplied it. "
      "Below the horizontal line and right of the vertical one: luck, mostly keys so alike that every power is nearly an "
      "integer; an error of exactly 0 "
      "(identical keys, β = 1) and an infinite one cannot be drawn. Left of the vertical line and above the horizontal: β near "
      "2, where conditioning costs more than any intermediate.";
  f.alt =
      "Two clouds. That of the Neumann forms stretches along the diagonal over thirty decades; that of the others is a narrow "
      "column left of one, "
      "crossing the horizontal line only with large steps.";
  const std::size_t c = chunk_index(s, 64);
  panel p;
  p.title = "";
  p.x = {"growth × u, over the limit", axis_scale::logarithmic, 1e-8, 1e30};
  p.y = {"error, over the limit", axis_scale::logarithmic, 1e-4, 1e30};
  p.tall = true;
  p.marks = {{mark_direction::horizontal, 1, "limit"}, {mark_direction::vertical, 1, "limit"}};
  series with{"sums powers", {}, {}, series_style::cloud};
  series without{"forms no powers", {}, {}, series_style::cloud};
  series same{"sums powers; identical or alternating keys", {}, {}, series_style::cloud};
  for (std::size_t k = 0; c < s.size.chunks.size() && k < key_laws.size(); ++k) {
    for (std::size_t b = 0; b < step_laws.size(); ++b) {
      for (std::size_t m = 0; m < methods.size(); ++m) {
        for (std::size_t a = 0; a < arithmetics.size(); ++a) {
          const outcome& o = s.at(c, k, b, m, a);
          series& into = !methods[m].starts_with("neumann") ? without : correlation(k) == 1 ? same : with;
          into.x.push_back(std::max(o.promised_error, o.observed_error));
          into.y.push_back(o.error);
        }
      }
    }
  }
  for (series* one : {&with, &same, &without}) {
    if (!one->x.empty()) p.curves.push_back(std::move(*one));
  }
  f.panels = {std::move(p)};
  return f;
}

}  // namespace

void add_tables(const survey& s, report& r) {
  r.tables.push_back(safe_table(s));
  r.tables.push_back(growth_table(s));
  if (chunk_index(s, 64) == s.size.chunks.size()) return;
  r.tables.push_back(
      error_table(s, 0, moderate_steps, "error-moderate", "Error over its limit, C = 64, the worst of β = U(0,1), 0.9 and 1"));
  r.tables.push_back(error_table(s, moderate_steps, step_laws.size(), "error-large-steps",
                                 "Error over its limit, C = 64, the worst of β = U(1.9,2) and 2"));
}

void add_figures(const survey& s, const run_options& options, report& r) {
  if (chunk_index(s, 64) < s.size.chunks.size()) {
    r.figures.push_back(intermediates_figure(s));
    r.figures.push_back(safe_figure(s));
  }
  r.figures.push_back(law_figure(options, s.size.key_dim));
  if (chunk_index(s, 64) < s.size.chunks.size()) r.figures.push_back(error_figure(s));
}

}  // namespace deltaproof::detail::inverse
