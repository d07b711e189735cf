// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT

#include "studies/eigenvalues/views.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "deltaproof/rule/rules.hpp"

namespace deltaproof::detail::eigenvalues {
namespace {

constexpr double nothing = std::numeric_limits<double>::quiet_NaN();

std::string_view words(rounding_place place) {
  switch (place) {
    case rounding_place::step_only:
      return "b once";
    case rounding_place::every_operation:
      return "every operation";
    case rounding_place::norm_too:
      return "|k|² too";
  }
  return {};
}

cell or_dash(const std::optional<double>& x) { return x ? cell(*x) : cell("-"); }

double share(std::uint64_t part, std::uint64_t whole) {
  return whole == 0 ? nothing : static_cast<double>(part) / static_cast<double>(whole);
}

double in_units(const norm_result& r, const rational& squared_norm) {
  return to_double(squared_norm - 1) / unit_roundoff(format_named(r.format_name));
}

/// Worst distance from an interval, rule by rule and format by format; "never" where lambda stays inside.
table distance_table(const rule_survey& survey, bool decay) {
  table t;
  t.id = decay ? "outside-0-1" : "outside-unit-interval";
  t.title = decay ? "Largest distance of λ from [0, 1], in u, for the rules that promise 0 < λ ≤ 1"
                  : "Largest distance of λ from [-1, 1], in u";
  t.note = decay ? "0 means that λ reaches 0 (the state along k is erased) and no further."
                 : "Only steps with |R(x)| ≤ 1 are counted: beyond its stability limit a rule leaves by itself.";
  t.columns = {"rule", "rounded"};
  for (const named_format& f : formats) t.columns.emplace_back(std::string(f.name), 3);
  for (const rule_result& r : survey.results) {
    if (decay && !r.promises_decay) continue;
    if (r.format_name == formats.front().name) {
      t.rows.push_back({r.rule, words(r.place)});
      t.rows.back().resize(2 + formats.size());
    }
    const auto row = std::find_if(t.rows.begin(), t.rows.end(), [&](const std::vector<cell>& x) {
      return x[0] == cell(r.rule) && x[1] == cell(words(r.place));
    });
    const auto at = std::find_if(formats.begin(), formats.end(), [&](const named_format& f) { return f.name == r.format_name; });
    const std::uint64_t times = decay ? r.outside_decay : r.outside_unit;
    (*row)[2 + static_cast<std::size_t>(at - formats.begin())] =
        times == 0 ? cell("never") : cell(decay ? r.worst_decay : r.worst_unit);
  }
  return t;
}

table bf16_table(const rule_survey& survey) {
  table t;
  t.id = "rules-bf16";
  t.title = "Every rule in bf16, all pairs of significands";
  t.columns = {"rule",
               "rounded",
               "steps",
               "outside [-1, 1]",
               {"from x", 4},
               {"by, in u", 4},
               "outside (0, 1]",
               "of these < 0",
               {"from x", 4},
               {"by, in u", 4},
               {"largest |λ - R|, in u", 4}};
  for (const rule_result& r : survey.results) {
    if (r.format_name != name_of(bf16)) continue;
    t.rows.push_back({r.rule, words(r.place), r.cases, r.outside_unit, or_dash(r.first_unit),
                      r.outside_unit > 0 ? cell(r.worst_unit) : cell("-"),
                      r.promises_decay ? cell(r.outside_decay) : cell("no promise"),
                      r.promises_decay ? cell(r.negative) : cell("-"), or_dash(r.first_decay),
                      r.outside_decay > 0 ? cell(r.worst_decay) : cell("-"), r.worst_error});
  }
  return t;
}

panel distance_panel(const rule_survey& survey, bool decay) {
  heat_map heat;
  heat.label = "u";
  heat.minimum = 0;
  heat.digits = 2;
  for (const named_format& f : formats) heat.column_names.emplace_back(f.name);
  heat.columns = formats.size();
  for (const rule_result& r : survey.results) {
    if (r.place != rounding_place::norm_too || (decay && !r.promises_decay)) continue;
    if (heat.row_names.empty() || heat.row_names.back() != r.rule) heat.row_names.push_back(r.rule);
    heat.values.push_back(decay ? r.worst_decay : r.worst_unit);
  }
  heat.rows = heat.row_names.size();
  panel p;
  p.title = decay ? "Distance from [0, 1], where (0, 1] is promised" : "Distance from [-1, 1]";
  p.heat = std::move(heat);
  return p;
}

figure error_figure(const rule_survey& survey) {
  figure f;
  f.id = "error-against-x";
  f.title = "How far the eigenvalue lies from R(x) in bf16";
  f.caption =
      "Largest |λ − R(x)| over all bf16 significands of β and n in a bin of x, in units of u = 2⁻⁸. One rounding of the step "
      "costs at most u(1 − R); rounding every operation of β φ(βn), and n = |k|² before it, costs a few times as much. Curves "
      "end where |R(x)| > 1. "
      "`euler` is left out: its error is zero.";
  f.alt =
      "Six panels, one per rule, error in units of u against x; one rounding stays below 2, all roundings together reach "
      "several.";
  f.columns = 3;
  f.shared_x = true;
  f.shared_y = true;
  for (const rule_envelope& e : survey.envelopes) {
    if (e.rule == euler::name) continue;
    if (f.panels.empty() || f.panels.back().title != e.rule) {
      panel p;
      p.title = e.rule;
      p.x = {"x = βn", axis_scale::logarithmic};
      p.y = {"|λ − R(x)|, in u", axis_scale::linear, 0.0};
      f.panels.push_back(std::move(p));
    }
    series s;
    s.label = std::string(e.place == rounding_place::step_only         ? "b rounded once"
                          : e.place == rounding_place::every_operation ? "every operation rounded"
                                                                       : "|k|² too");
    s.x = e.x;
    s.y = e.error;
    f.panels.back().curves.push_back(std::move(s));
  }
  return f;
}

table norm_table(const norm_survey& survey, normalisation how) {
  table t;
  t.id = how == normalisation::once          ? "keys-rounded-once"
         : how == normalisation::inside_fp32 ? "keys-fp32-inside"
                                             : "keys-in-format";
  t.title = how == normalisation::once          ? "Unit vectors, each entry rounded once"
            : how == normalisation::inside_fp32 ? "Rounded vectors, normalised in fp32, rounded again"
                                                : "Rounded vectors, normalised with every operation in the format";
  t.columns = {"format",
               "d",
               "keys",
               {"share |k|² > 1", 3},
               {"mean of (|k|² − 1)/u", 2},
               {"deviation", 3},
               {"smallest", 4},
               {"largest", 4},
               {"largest safe β", 17},
               "β = 2(1 − u) leaves",
               "β = 2(1 − 2u) leaves",
               {"subnormal or 0", 2}};
  t.note =
      "λ = 1 − β|k|² leaves [-1, 1] at β = 2 exactly where |k|² > 1. The largest safe β is the largest number of the format with "
      "β|k|² ≤ 2 for every key found.";
  for (const norm_result& r : survey.results) {
    if (r.how != how || r.keys == 0) continue;
    t.rows.push_back({r.format_name, r.dim, r.keys, share(r.above_one, r.keys), r.mean, r.deviation, in_units(r, r.smallest),
                      in_units(r, r.largest), r.safe_beta, r.leaves_below_two, r.leaves_at_safe,
                      share(r.subnormal, r.keys * r.dim)});
  }
  return t;
}

table safe_table(const norm_survey& survey) {
  table t;
  t.id = "safe-beta";
  t.title = "The largest safe β for unit keys rounded once: proved, refuted, found";
  t.columns = {"format",
               {"u", 4},
               {"2/(1+u)²", 17},
               {"safe by proof: 2(1 − 2u)", 17},
               {"unsafe by example: 2(1 − u)", 17},
               {"|k|² of the example, (|k|² − 1)/u", 4},
               {"largest (|k|² − 1)/u found", 4},
               {"safe for every key found", 17}};
  t.note =
      "Proved for unit vectors of up to 256 entries rounded elementwise to nearest; the example has d = 16. "
      "β itself may have any format.";
  for (const named_format& f : formats) {
    const double u = unit_roundoff(f.value);
    const norm_witness w = make_witness(f.name, key_dims.front());
    double found = -std::numeric_limits<double>::infinity();
    double safe = std::numeric_limits<double>::infinity();
    for (const norm_result& r : survey.results) {
      if (r.format_name != f.name || r.how != normalisation::once || r.keys == 0) continue;
      found = std::max(found, in_units(r, r.largest));
      safe = std::min(safe, r.safe_beta);
    }
    const rational bound = 2 / ((1 + exact(u)) * (1 + exact(u)));
    t.rows.push_back({f.name, u, to_double(bound), 2 * (1 - 2 * u), 2 * (1 - u), to_double(w.squared_norm - 1) / u, found, safe});
  }
  return t;
}

figure norm_figure(const norm_survey& survey) {
  figure f;
  f.id = "unit-keys";
  f.title = "The squared norm of a unit key after one rounding of its entries";
  f.caption =
      "Share of keys per bin of 0.05 u. In units of u the formats agree: the spread is about u√(2/d). Right of a dashed line the "
      "β written on it gives "
      "λ < −1: at β = 2 half of the keys do. No unit vector rounded once lies right of 2 + u. tf32 is fp16 "
      "with other exponents and looks the same.";
  f.alt =
      "Six histograms of squared norm minus one in units of u, centred at zero, narrower for larger d, all inside plus or minus "
      "two.";
  f.columns = 3;
  f.shared_x = true;
  f.shared_y = true;
  for (const norm_result& r : survey.results) {
    if (r.how != normalisation::once || r.format_name == name_of(tf32) || (r.dim != 16 && r.dim != 64 && r.dim != 256)) continue;
    if (f.panels.empty() || f.panels.back().title != r.format_name) {
      panel p;
      p.title = r.format_name;
      p.x = {"(|k|² − 1) / u", axis_scale::linear, -2.0, 2.0};
      p.y = {"share of keys", axis_scale::linear, 0.0};
      const bool first = f.panels.empty();
      p.marks = {{mark_direction::vertical, 0, first ? "β = 2" : ""}, {mark_direction::vertical, 1, first ? "β = 2(1 − u)" : ""}};
      f.panels.push_back(std::move(p));
    }
    series s;
    s.label = "d = " + std::to_string(r.dim);
    s.style = series_style::steps;
    for (std::size_t i = 0; i < bin_count; ++i) {
      s.x.push_back(-bin_limit + bin_width * static_cast<double>(i));
      s.y.push_back(share(r.histogram[i], r.keys));
    }
    f.panels.back().curves.push_back(std::move(s));
  }
  return f;
}

figure normalisation_figure(const norm_survey& survey) {
  figure f;
  f.id = "where-normalised";
  f.title = "The largest squared norm found, by where the key was normalised";
  f.caption =
      "Largest (|k|² − 1)/u over the keys drawn. Rounded once, long keys are safer, since roundings average out. Normalised from "
      "a key "
      "that is itself in the format they average less, most where √d is a power of two: then many quotients round back the same "
      "way. Normalised in the format itself, the "
      "sum of squares loses digits as it grows, and |k|² leaves 1 by many u.";
  f.alt = "Three panels against d on logarithmic axes: falling below one, about one, and rising to tens of u.";
  f.columns = 3;
  f.shared_y = true;
  for (const normalisation how : normalisations) {
    panel p;
    p.title = how == normalisation::once          ? "unit vector rounded once"
              : how == normalisation::inside_fp32 ? "normalised in fp32"
                                                  : "normalised in the format";
    p.x = {"d", axis_scale::logarithmic, 14.0, 290.0, {16, 32, 64, 128, 256}};
    p.y = {"largest (|k|² − 1) / u", axis_scale::logarithmic};
    p.marks = {{mark_direction::horizontal, 2, how == normalisation::once ? "bound, rounded once" : ""}};
    for (const named_format& format : formats) {
      series s;
      s.label = format.name;
      for (const norm_result& r : survey.results) {
        if (r.how != how || r.format_name != format.name || r.keys == 0) continue;
        s.x.push_back(static_cast<double>(r.dim));
        s.y.push_back(in_units(r, r.largest));
      }
      if (!s.x.empty()) p.curves.push_back(std::move(s));
    }
    f.panels.push_back(std::move(p));
  }
  return f;
}

figure transition_figure(const transition_survey& survey) {
  figure f;
  f.id = "materialised";
  f.title = "Spectral radius of I − βkkᵀ with every entry rounded";
  f.caption =
      "One dot per unit key; radius and |k|² as distances from 1 in units of u. The matrix is symmetric, so its radius is its "
      "norm. The "
      "line is the radius of the exact factor for the same k and β, which never exceeds 1 for β ≤ 1. Rounding the entries adds "
      "about u/2 "
      "whatever β is, in every format.";
  f.alt = "Six clouds, d = 16 and 64, beta a half, one and two, all above the line of the exact factor by about half a u.";
  f.columns = 3;
  f.shared_x = true;
  f.shared_y = true;
  for (const std::size_t dim : transition_dims) {
    for (const double beta : transition_betas) {
      panel p;
      p.title = "d = " + std::to_string(dim) + ", β = " + number(beta);
      p.x = {"(|k|² − 1) / u", axis_scale::linear, -1.5, 1.5};
      p.y = {"(radius − 1) / u", axis_scale::linear, -0.25};
      series line;
      line.label = "exact factor";
      line.x = {-1.5, 0, 1.5};
      line.y = {0, 0, beta == 2 ? 3.0 : 0.0};
      p.curves.push_back(std::move(line));
      for (const transition_result& r : survey.results) {
        if (r.dim != dim || r.beta != beta ||
            (r.format_name != "bf16" && r.format_name != "fp16" && r.format_name != "e4m3" && r.format_name != "fp32"))
          continue;
        series s;
        s.label = r.format_name;
        s.style = series_style::cloud;
        s.x = r.norm_excess;
        s.y = r.radius_excess;
        p.curves.push_back(std::move(s));
      }
      f.panels.push_back(std::move(p));
    }
  }
  return f;
}

}  // namespace

void add_views(const rule_survey& survey, report& into) {
  figure heat;
  heat.id = "outside-by-rule";
  heat.title = "How far rounding takes the eigenvalue out of its interval";
  heat.caption =
      "Largest distance found, in units of the format's u, with |k|² and every operation of β φ(β|k|²) rounded, over steps with "
      "|R(x)| ≤ 1. "
      "Crank–Nicolson and rk3 leave [−1, 1] where R approaches −1, rk4 at its limit, where R = 1 again; the exact flow and "
      "implicit Euler pass 0 where R approaches 0. 0: never, or not "
      "further than the end itself.";
  heat.alt =
      "Two tables of colours, rules by formats, of the largest distance in u; only Crank-Nicolson, rk3 and rk4 leave minus one "
      "to one.";
  heat.columns = 1;
  heat.panels = {distance_panel(survey, false), distance_panel(survey, true)};
  into.figures.push_back(std::move(heat));
  into.figures.push_back(error_figure(survey));
  into.tables.push_back(bf16_table(survey));
  into.tables.push_back(distance_table(survey, false));
  into.tables.push_back(distance_table(survey, true));
}

void add_views(const norm_survey& survey, report& into) {
  into.figures.push_back(norm_figure(survey));
  into.figures.push_back(normalisation_figure(survey));
  into.tables.push_back(safe_table(survey));
  for (const normalisation how : normalisations) into.tables.push_back(norm_table(survey, how));
}

void add_views(const saturation_survey& survey, report& into) {
  table t;
  t.id = "sigmoid";
  t.title = "Where sigmoid(x) rounds to 1 and to 0";
  t.columns = {"input",
               "output",
               "decided by",
               {"1 from x =", 17},
               {"last x below 1", 17},
               {"0 up to x =", 17},
               {"1/(1 + e⁻ˣ), each operation rounded: 1 from", 17},
               {"0 up to", 17}};
  t.note =
      "2·sigmoid(x) is 2 from the same x on, since doubling is exact. e4m3 has no infinity: there e⁻ˣ turns into NaN, and the "
      "quotient with it.";
  for (const saturation& s : survey.results) {
    t.rows.push_back({s.input, s.output, s.exhaustive ? "all inputs" : "bisection", or_dash(s.one_from),
                      or_dash(s.last_below_one), or_dash(s.zero_until), or_dash(s.naive_one_from), or_dash(s.naive_zero_until)});
  }
  into.tables.push_back(std::move(t));
}

void add_views(const transition_survey& survey, report& into) {
  table t;
  t.id = "materialised";
  t.title = "Materialised transitions: spectral radius = norm (the matrix is symmetric)";
  t.columns = {"format",
               "d",
               {"β", 3},
               "keys",
               "radius > 1",
               "of these by proof",
               {"(radius − 1)/u: least", 3},
               {"median", 3},
               {"largest", 3},
               {"most above the exact factor", 3}};
  for (const transition_result& r : survey.results) {
    std::vector<double> sorted = r.radius_excess;
    std::sort(sorted.begin(), sorted.end());
    t.rows.push_back({r.format_name, r.dim, r.beta, r.keys, r.expansive, r.proved, sorted.front(), sorted[sorted.size() / 2],
                      sorted.back(), r.largest_added});
  }
  into.figures.push_back(transition_figure(survey));
  into.tables.push_back(std::move(t));
}

void add_views(const recording_survey& survey, report& into) {
  if (survey.results.empty()) return;
  table t;
  t.id = "recordings";
  t.title = "λ = R(β|k|²) of every step of the recorded problems";
  t.columns = {"recording",
               "k",
               "β",
               "rule",
               "steps",
               {"smallest λ", 6},
               {"largest λ", 6},
               "outside [-1, 1]",
               "first",
               "outside (0, 1]",
               "keys with |k|² > 1",
               "of"};
  t.note = "Decays are not part of λ.";
  for (const recording_result& r : survey.results) {
    t.rows.push_back({r.name, r.key_format, r.beta_format, r.rule, r.steps, r.smallest, r.largest, r.outside_unit,
                      r.first.empty() ? "-" : r.first, r.outside_decay, r.norm_above_one, r.rows});
  }
  into.tables.push_back(std::move(t));
}

}  // namespace deltaproof::detail::eigenvalues

// Theorems behind this file, by their names in proofs/README.md.
// proved: float.key_norm.safe_step, code.constants.safe_beta_bf16_is_safe, code.constants.unsafe_beta_bf16_is_not
