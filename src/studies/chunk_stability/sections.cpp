// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT

#include "studies/chunk_stability/sections.hpp"

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>

namespace deltaproof::detail::chunk_stability {
namespace {

using chunks::key_kind;

constexpr double norm_accuracy = 2e-6;  // of the norm of a chunk: Gelfand's formula with n = 2^20, and a square root

constexpr std::array<key_kind, 7> shown_keys{key_kind::fresh,      key_kind::signs,      key_kind::cosine_90, key_kind::cosine_99,
                                             key_kind::cosine_999, key_kind::vocabulary, key_kind::repeated};

std::string text(std::string_view s) { return std::string(s); }

/// "1.797", or "none" where no beta explodes.
cell first_cell(const chunk_curve& c) {
  const double first = c.first_explosion();
  return first > 0 ? cell(first) : cell("none");
}

std::string first_text(const chunk_curve& c) {
  const double first = c.first_explosion();
  return first > 0 ? number(first, 7) : "none";
}

std::string list_of_firsts(const settings& size, const chunk_survey& survey, key_kind keys, std::string_view format) {
  std::string result;
  for (const std::size_t chunk : size.chunks) {
    result += (result.empty() ? "" : ", ") + first_text(survey.at(keys, format, chunk)) + " (C = " + std::to_string(chunk) + ")";
  }
  return result;
}

figure repeated_figure(const settings& size, const chunk_survey& survey) {
  figure f;
  f.id = "repeated";
  f.title = "One key repeated through a chunk: the eigenvalue along it";
  f.caption = "|1 − Σ w·k| of one realised chunk against β, the largest of " + std::to_string(size.repeated_seeds) +
              " keys, K = " + std::to_string(size.key_dim) +
              ". Exact: |1 − β|k|²|^C for |k|² = 1, below 1 for every β < 2. Above the line 1 the same chunk, met again and "
              "again, grows by "
              "that factor each time. Nothing but the format of the stored inverse and of w, u, h differs between the curves: "
              "the inverse "
              "itself is computed in fp32. The error is C times a rounding that is the same in every row; left of "
              "the mark one repeated key with one step cannot cross 1 where only the inverse is rounded, to bf16 (proved).";
  f.alt =
      "Four panels for chunk lengths 16 to 128. The bf16 curve crosses one, at smaller beta the longer the chunk; fp16 stays "
      "below one "
      "until beta is almost 2, the fp32 points lie on the exact curve until it falls below 10⁻³.";
  f.columns = 2;
  f.shared_x = f.shared_y = true;
  for (const std::size_t chunk : size.chunks) {
    panel p;
    p.title = "C = " + std::to_string(chunk);
    p.x = {"β", axis_scale::linear, 1, 2};
    p.y = {"eigenvalue along k", axis_scale::logarithmic, 1e-4, 20};
    for (const std::string_view format : stored_formats) {
      const chunk_curve& c = survey.at(key_kind::repeated, format, chunk);
      p.curves.push_back(
          {text(format) + " stored", c.beta, c.along, format == "fp32" ? series_style::points : series_style::line});
    }
    series exact{"exact", {}, {}};
    for (const double beta : survey.at(key_kind::repeated, "bf16", chunk).beta) {
      double power = 1;
      for (std::size_t i = 0; i < chunk; ++i) power *= beta - 1;
      exact.x.push_back(beta);
      exact.y.push_back(power);
    }
    p.curves.push_back(std::move(exact));
    p.marks.push_back({mark_direction::horizontal, 1, ""});
    p.marks.push_back({mark_direction::vertical, proved_safe_x(chunk, unit_roundoff(bf16)), "safe"});
    f.panels.push_back(std::move(p));
  }
  return f;
}

figure norm_figure(const settings& size, const chunk_survey& survey) {
  figure f;
  f.id = "norms";
  f.title = "Norm of one realised chunk, C = 64: how far above 1";
  f.caption = "‖P̂‖ − 1 against 2 − β, the largest of " + std::to_string(size.seeds) +
              " draws; the exact norm is 1 at most. Points at β = 2 are drawn at the left edge (2⁻⁸). Near β = 2 a bf16 chunk "
              "can lengthen a "
              "state at once, most where keys almost coincide; whether that accumulates the spectral radius tells. fp32 lies "
              "below the lower "
              "edge.";
  f.alt = "Two panels, bf16 and fp16, of curves that fall with the distance of beta from 2; clustered keys lie highest.";
  f.columns = 2;
  f.shared_x = f.shared_y = true;
  for (const std::string_view format : {stored_formats[0], stored_formats[1]}) {
    panel p;
    p.title = text(format) + " stored";
    p.x = {"2 − β", axis_scale::logarithmic, 0x1p-8, 1};
    p.y = {"norm − 1", axis_scale::logarithmic, 1e-6, 1};
    for (const key_kind keys : shown_keys) {
      if (one_direction(keys)) continue;
      const chunk_curve& c = survey.at(keys, format, 64);
      series s{text(name_of(keys)), {}, {}};
      for (std::size_t b = c.beta.size(); b-- > 0;) {
        s.x.push_back(c.beta[b] == 2 ? 0x1p-8 : 2 - c.beta[b]);
        s.y.push_back(c.norm[b] - 1);
      }
      p.curves.push_back(std::move(s));
    }
    f.panels.push_back(std::move(p));
  }
  return f;
}

figure radius_figure(const settings& size, const chunk_survey& survey) {
  figure f;
  f.id = "radius";
  f.title = "Largest spectral radius of a realised chunk, over all β from 1 to 2";
  f.caption =
      "Rows: keys; columns: chunk length. 1 (or less) is what the exact chunk has. Random keys show nothing at any C; one key, "
      "repeated with one β, multiplies the state by up to " +
      number(survey.at(key_kind::repeated, "bf16", size.chunks.back()).worst_radius(), 3) + " every " +
      std::to_string(size.chunks.back()) + " tokens.";
  f.alt =
      "Two tables of colours, bf16 and fp16. In bf16 the row of the repeated key is dark and grows darker with the chunk length; "
      "all else is near one.";
  f.columns = 2;
  for (const std::string_view format : {stored_formats[0], stored_formats[1]}) {
    panel p;
    p.title = text(format) + " stored";
    heat_map h;
    h.rows = shown_keys.size();
    h.columns = size.chunks.size();
    h.label = "spectral radius";
    h.scale = axis_scale::logarithmic;
    h.minimum = 0.9;
    h.maximum = 20;
    h.digits = 4;
    for (const key_kind keys : shown_keys) {
      h.row_names.push_back(text(name_of(keys)));
      for (const std::size_t chunk : size.chunks) h.values.push_back(survey.at(keys, format, chunk).worst_radius());
    }
    for (const std::size_t chunk : size.chunks) h.column_names.push_back("C = " + std::to_string(chunk));
    p.heat = std::move(h);
    f.panels.push_back(std::move(p));
  }
  return f;
}

}  // namespace

void add_single_chunks(const run_options& options, const settings& size, const chunk_survey& survey, report& r) {
  const std::uint64_t seed = options.seed;
  const bool contractive = survey.largest_square <= 1;
  r.findings.push_back({"inputs-are-contractive",
                        contractive ? "Every key drawn has |k|² ≤ 1, so every exact transition has norm 1 at most for all β ≤ 2: "
                                      "whatever grows here is the "
                                      "kernel's doing. The largest norm computed for an exact chunk of 64 is 1 + " +
                                          number(survey.largest_exact - 1, 1) + ", the accuracy of the norm."
                                    : "Some keys have |k|² > 1: growth at β = 2 may be the inputs'.",
                        evidence::proved("algebra.non_expansive.run_non_expansive"),
                        {{"largest_squared_norm", survey.largest_square}, {"largest_exact_norm", survey.largest_exact}},
                        "|k|² is decided exactly: entries are multiples of 2⁻²⁴. I − β k kᵀ is symmetric with eigenvalues 1 and "
                        "1 − β|k|² in [−1, 1]; the "
                        "norm of a product is at most the product of the norms."});

  table t;
  t.id = "first-explosion";
  t.title = "The first β at which a chunk explodes: spectral radius ≥ " + number(explodes_at, 3);
  t.columns = {"keys", "stored as"};
  for (const std::size_t chunk : size.chunks) t.columns.push_back({"C = " + std::to_string(chunk), 7});
  t.columns.push_back({"largest radius", 6});
  t.columns.push_back("draws");
  t.columns.push_back("β looked at");
  bool any_fp32 = false;
  for (const key_kind keys : shown_keys) {
    for (const std::string_view format : stored_formats) {
      std::vector<cell> row{text(name_of(keys)), text(format)};
      double worst = 0;
      for (const std::size_t chunk : size.chunks) {
        const chunk_curve& c = survey.at(keys, format, chunk);
        row.push_back(first_cell(c));
        worst = std::max(worst, c.worst_radius());
        any_fp32 = any_fp32 || (format == "fp32" && c.first_explosion() > 0);
      }
      const chunk_curve& c = survey.at(keys, format, size.chunks.front());
      row.insert(row.end(), {cell(worst), cell(c.draws), cell(c.beta.size())});
      t.rows.push_back(std::move(row));
    }
  }
  t.note =
      "One chunk, met for ever; β is a number of bf16, the same for all rows. *none*: no draw and no β ≤ 2 reaches " +
      number(explodes_at, 3) +
      ". The recurrence on the same keys: none in any format (finding `recurrence-survives`). The inverse is " +
      text(inverse_name) +
      " in fp32; inverse, w, u, h, v_new stored as named; sums and state fp32. Alternating keys k, −k: as repeated, bit for bit.";
  r.tables.push_back(std::move(t));

  const chunk_curve& bf = survey.at(key_kind::repeated, "bf16", 64);
  const chunk_curve& hf = survey.at(key_kind::repeated, "fp16", 64);
  std::map<std::string, cell> values;
  for (const std::size_t chunk : size.chunks) {
    values["bf16_C" + std::to_string(chunk)] = first_cell(survey.at(key_kind::repeated, "bf16", chunk));
    values["fp16_C" + std::to_string(chunk)] = first_cell(survey.at(key_kind::repeated, "fp16", chunk));
  }
  values["bf16_C64_largest"] = bf.worst_radius();
  values["fp16_C64_largest"] = hf.worst_radius();
  values["fp32_explodes"] = any_fp32;
  std::uint64_t looked_at = 0;
  for (const chunk_curve& c : survey.curves) {
    if (c.keys == key_kind::repeated) looked_at += c.draws * c.beta.size();
  }
  r.findings.push_back({"one-key-explodes",
                        bf.first_explosion() > 0
                            ? "On one repeated key a chunk stored in bf16 first explodes at β = " +
                                  list_of_firsts(size, survey, key_kind::repeated, "bf16") +
                                  ", where the exact eigenvalue is below 1 (not at every β above: the roundings depend on β); "
                                  "the largest radius at C = 64 is " +
                                  number(bf.worst_radius(), 3) +
                                  ". In fp16: " + list_of_firsts(size, survey, key_kind::repeated, "fp16") +
                                  ". In fp32: " + (any_fp32 ? "somewhere too." : "nowhere.")
                            : "On one repeated key no chunk of 64 stored in bf16 explodes at any β looked at.",
                        evidence::worst_found(looked_at, seed), values,
                        "The eigenvalue along k, 1 − Σ w·k, from the w that the kernel stored and the bits of k, in fp64."});

  double worst_fresh = 0;
  double worst_cluster = 0;
  std::uint64_t fresh_cases = 0;
  for (const std::size_t chunk : size.chunks) {
    for (const key_kind keys : {key_kind::fresh, key_kind::signs}) {
      worst_fresh = std::max(worst_fresh, survey.at(keys, "bf16", chunk).worst_radius());
      fresh_cases += survey.at(keys, "bf16", chunk).draws * survey.at(keys, "bf16", chunk).beta.size();
    }
    worst_cluster = std::max(worst_cluster, survey.at(key_kind::cosine_999, "bf16", chunk).worst_radius());
  }
  r.findings.push_back(
      {"random-keys-hide-it",
       worst_fresh < explodes_at
           ? "Fresh random keys show none of it: the largest radius at any C and any β ≤ 2 is " + number(worst_fresh, 5) +
                 " in bf16. A kernel tested on random keys passes; with keys of cosine 0.999 the radius reaches " +
                 number(worst_cluster, 4) + ", first at β = " + list_of_firsts(size, survey, key_kind::cosine_999, "bf16") + "."
           : "Even fresh random keys explode in bf16: radius " + number(worst_fresh, 5) + ".",
       evidence::worst_found(fresh_cases, seed),
       {{"fresh_bf16", worst_fresh}, {"cosine_999_bf16", worst_cluster}},
       "Spectral radius of I − Kᵀ W by Gelfand's formula with n = 2²⁰; below K rows the complement has eigenvalue 1 exactly."});

  std::array<double, 3> norm{};
  std::array<std::string, 3> where;
  std::uint64_t cases = 0;
  for (std::size_t k = 0; k < stored_formats.size(); ++k) {
    for (const key_kind keys : shown_keys) {
      if (one_direction(keys)) continue;
      const chunk_curve& c = survey.at(keys, stored_formats[k], 64);
      cases += c.draws * c.beta.size();
      for (std::size_t b = 0; b < c.beta.size(); ++b) {
        if (c.norm[b] <= norm[k]) continue;
        norm[k] = c.norm[b];
        where[k] = text(name_of(keys)) + ", β = " + number(c.beta[b], 7);
      }
    }
  }
  r.findings.push_back({"norm-of-one-chunk",
                        "A realised chunk of 64 lengthens some state at once by up to " + number(100 * (norm[0] - 1), 3) +
                            " % in bf16 (" + where[0] + "), " + number(100 * (norm[1] - 1), 3) + " % in fp16 (" + where[1] +
                            "); in fp32 " +
                            (norm[2] - 1 <= norm_accuracy ? "by no more than the accuracy of the norm"
                                                          : "by up to " + number(100 * (norm[2] - 1), 2) + " %") +
                            "; the exact one by nothing.",
                        evidence::worst_found(cases, seed),
                        {{"bf16", norm[0]}, {"fp16", norm[1]}, {"fp32", norm[2]}},
                        "sqrt of the spectral radius of P̂ᵀP̂, relative accuracy 2·10⁻⁶."});
  r.figures.push_back(repeated_figure(size, survey));
  r.figures.push_back(radius_figure(size, survey));
  r.figures.push_back(norm_figure(size, survey));
}

}  // namespace deltaproof::detail::chunk_stability
