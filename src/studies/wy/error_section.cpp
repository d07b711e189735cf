// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>

#include "studies/shared/chunks/arithmetics.hpp"
#include "studies/wy/sections.hpp"

namespace deltaproof::detail::wy {
namespace {

double roundoff(std::string_view arithmetic) { return unit_roundoff(chunks::arithmetic_named(arithmetic).storage); }

/// Kernels keep sums in a wider format than stages; these keep one format throughout.
bool one_format(std::string_view arithmetic) {
  const chunks::chunk_arithmetic& a = chunks::arithmetic_named(arithmetic);
  return a.storage == a.accumulator;
}

std::string label_of(std::string_view arithmetic) {
  return std::string(arithmetic) + (one_format(arithmetic) && arithmetic != "bf16 native" ? " throughout" : "");
}

figure chunk_figure(const settings& size, const error_survey& survey) {
  figure f;
  f.id = "chunk-length";
  f.title = "Error of the outputs against chunk length, in units of u";
  f.caption = "|o′ − o| / |o| (Frobenius, T = " + count(size.tokens) +
              ") divided by the unit roundoff of the format that stages are stored in. In these units the formats fall into two "
              "groups. Where stages are rounded "
              "to bf16, fp16 or tf32 and summed in fp32 the error is that of the storing and depends little on C. Where "
              "everything is one format the sums count, and on clustered keys with β "
              "near 2 the longer chunk loses more. Horizontal line: the recurrence whose state is rounded to bf16 at each token.";
  f.alt =
      "Four panels. The curves of bf16, fp16 and tf32 coincide and are almost flat; those of fp32, fp64 and native bf16 lie "
      "higher and rise with the chunk "
      "length in the last panel.";
  f.columns = 2;
  f.shared_x = f.shared_y = true;
  for (std::size_t which = 0; which < regimes.size(); ++which) {
    panel p;
    p.title = std::string(regimes[which].title);
    p.x = {"chunk length C", axis_scale::logarithmic, 1, static_cast<double>(size.chunks.back()), {1, 2, 4, 8, 16, 32, 64, 128}};
    p.y = {"error / u", axis_scale::logarithmic, 0.5, 200};
    for (const std::string_view arithmetic : studied) {
      const error_curve& c = survey.at(which, arithmetic);
      series s{label_of(arithmetic), {}, {}};
      for (std::size_t k = 0; k < size.chunks.size(); ++k) {
        s.x.push_back(static_cast<double>(size.chunks[k]));
        s.y.push_back(c.by_chunk[k].o / roundoff(arithmetic));
      }
      p.curves.push_back(std::move(s));
    }
    p.marks.push_back({mark_direction::horizontal, survey.at(which, "bf16").recurrent_storage.o / roundoff("bf16"), ""});
    f.panels.push_back(std::move(p));
  }
  return f;
}

figure horizon_figure(const settings& size, const error_survey& survey) {
  figure f;
  f.id = "horizon";
  f.title = "Error of the outputs against the horizon, C = 64";
  f.caption =
      "|o′ − o| / |o| over the tokens (T/2, T], in units of u of the stored format. Chunkwise with C = 64, and beside it the "
      "recurrence that keeps its state in the same format, rounded at every token. "
      "Errors level off once the state has forgotten its past: early for β in [0, 1), later the nearer β is to 2.";
  f.alt =
      "Four panels of curves that rise slowly and become flat; the chunkwise bf16 curve mostly lies below that of the recurrence "
      "with a bf16 state.";
  f.columns = 2;
  f.shared_x = f.shared_y = true;
  for (std::size_t which = 0; which < regimes.size(); ++which) {
    panel p;
    p.title = std::string(regimes[which].title);
    p.x = {"tokens T", axis_scale::logarithmic, 64, static_cast<double>(size.horizon_tokens)};
    p.y = {"error / u", axis_scale::logarithmic, 0.5, 200};
    std::vector<double> at(survey.horizons.begin(), survey.horizons.end());
    const auto add = [&](std::string label, std::string_view arithmetic, const std::vector<double>& errors) {
      series s{std::move(label), at, {}};
      for (const double e : errors) s.y.push_back(e / roundoff(arithmetic));
      p.curves.push_back(std::move(s));
    };
    for (const std::string_view arithmetic : {studied[0], studied[1], studied[3]}) {
      add("chunk, " + label_of(arithmetic), arithmetic, survey.at(which, arithmetic).by_horizon);
      add("recurrence, " + std::string(arithmetic) + " state", arithmetic, survey.at(which, arithmetic).recurrent_by_horizon);
    }
    f.panels.push_back(std::move(p));
  }
  return f;
}

table error_table(const settings& size, const error_survey& survey) {
  table t;
  t.id = "errors";
  t.title = "Relative error of the outputs (Frobenius), T = " + count(size.tokens);
  t.columns = {"inputs", "arithmetic"};
  for (const std::size_t chunk : size.chunks) t.columns.push_back({"C = " + std::to_string(chunk), 2});
  t.columns.push_back({"recurrence, state as sums", 2});
  t.columns.push_back({"recurrence, state as stored", 2});
  t.columns.push_back({"final state, C = 64", 2});
  for (std::size_t which = 0; which < regimes.size(); ++which) {
    for (const std::string_view arithmetic : studied) {
      const error_curve& c = survey.at(which, arithmetic);
      std::vector<cell> row{std::string(regimes[which].title), std::string(arithmetic)};
      double state = 0;
      for (std::size_t k = 0; k < size.chunks.size(); ++k) {
        row.emplace_back(c.by_chunk[k].o);
        if (size.chunks[k] == 64) state = c.by_chunk[k].state;
      }
      row.insert(row.end(), {cell(c.recurrent_accumulator.o), cell(c.recurrent_storage.o), cell(state)});
      t.rows.push_back(std::move(row));
    }
  }
  t.note =
      "bf16, fp16, tf32: operands and the stages Ai, w, u, h, v_new in that format; sums, state and inverse fp32. fp32, fp64, "
      "bf16 native: one format for all. Root mean square over " +
      std::to_string(size.draws) + " draws; v and q normal, S₀ = 0; o itself is not rounded.";
  return t;
}

}  // namespace

void add_errors(const run_options& options, const settings& size, const error_survey& survey, report& r) {
  const std::string seed = "Seed " + std::to_string(options.seed) + ", " + std::to_string(size.draws) +
                           " draws; the reference is the recurrence in double-double on the same bits.";
  const auto of = [&](std::size_t which, std::string_view arithmetic, std::size_t chunk) {
    const auto at = std::find(size.chunks.begin(), size.chunks.end(), chunk);
    return survey.at(which, arithmetic).by_chunk[static_cast<std::size_t>(at - size.chunks.begin())].o;
  };
  const std::size_t longest = size.chunks.back();
  const double flat = of(0, "bf16", longest) / of(0, "bf16", 1);
  const double flat_hard = of(3, "bf16", longest) / of(3, "bf16", 1);
  const double rise = of(3, "fp32", longest) / of(3, "fp32", 1);
  const double rise_ordinary = of(0, "fp32", longest) / of(0, "fp32", 1);
  r.findings.push_back({"stages-and-chunk-length",
                        "Where stages are stored in bf16 the error grows " + number(flat, 3) +
                            " times from C = 1 to C = " + std::to_string(longest) + " on random keys with β in [0, 1) and " +
                            number(flat_hard, 3) + " times on clustered keys with β near 2: " + number(of(0, "bf16", 1), 2) +
                            " at C = 1, " + number(of(0, "bf16", 64), 2) + " at 64, " + number(of(0, "bf16", longest), 2) +
                            " at " + std::to_string(longest) + "; and " + number(of(3, "bf16", 1), 2) + ", " +
                            number(of(3, "bf16", 64), 2) + ", " + number(of(3, "bf16", longest), 2) + ".",
                        evidence::measured(),
                        {{"longest", static_cast<double>(longest)},
                         {"ordinary_ratio", flat},
                         {"hard_ratio", flat_hard},
                         {"ordinary_C64", of(0, "bf16", 64)},
                         {"hard_C64", of(3, "bf16", 64)}},
                        seed + " C = 1 stores the same stages, one row at a time: it rounds h, w and v_new at every token."});
  r.findings.push_back(
      {"one-format-and-chunk-length",
       std::string(rise > 2 ? "Where one format does everything, the chunkwise form costs digits on hard inputs"
                            : "Where one format does everything, the chunk length matters little") +
           ": in fp32 the error at C = " + std::to_string(longest) + " is " + number(rise, 2) +
           " times that at C = 1 on clustered keys with β near 2 and " + number(rise_ordinary, 2) +
           " times on ordinary ones; in fp64 " + number(of(3, "fp64", longest) / of(3, "fp64", 1), 2) +
           " times, in native bf16 " + number(of(3, "bf16 native", longest) / of(3, "bf16 native", 1), 2) +
           " times, where it reaches " + number(of(3, "bf16 native", longest), 2) + ".",
       evidence::measured(),
       {{"fp32_hard", rise}, {"fp32_ordinary", rise_ordinary}, {"bf16_native_hard", of(3, "bf16 native", longest)}},
       seed});
  double low = HUGE_VAL;
  double high = 0;
  for (std::size_t which = 0; which < regimes.size(); ++which) {
    for (const std::size_t chunk : size.chunks) {
      for (const std::string_view arithmetic : {studied[1], studied[2]}) {
        const double ratio = of(which, "bf16", chunk) / of(which, arithmetic, chunk);
        low = std::min(low, ratio);
        high = std::max(high, ratio);
      }
    }
  }
  r.findings.push_back(
      {"error-is-proportional-to-u",
       "The error of bf16 stages is " + number(low, 3) + " to " + number(high, 3) +
           " times that of fp16 or tf32 stages, over all inputs and chunk lengths; their roundoffs stand 8 to 1: " +
           (low > 4 && high < 16 ? "the storing of stages sets the error, not the fp32 sums."
                                 : "more than the storing of stages is at work."),
       evidence::measured(),
       {{"lowest", low}, {"highest", high}},
       seed});
  double gain_low = HUGE_VAL;
  double gain_high = 0;
  double fp32_state = 0;
  double over_fp32 = HUGE_VAL;
  for (std::size_t which = 0; which < regimes.size(); ++which) {
    const error_curve& c = survey.at(which, "bf16");
    const double gain = c.recurrent_storage.o / of(which, "bf16", 64);
    gain_low = std::min(gain_low, gain);
    gain_high = std::max(gain_high, gain);
    fp32_state = std::max(fp32_state, c.recurrent_accumulator.o);
    over_fp32 = std::min(over_fp32, of(which, "bf16", 64) / c.recurrent_accumulator.o);
  }
  r.findings.push_back(
      {"against-the-recurrence",
       "The chunk form with bf16 stages (C = 64) and the recurrence whose state is rounded to bf16 at each token: the latter "
       "errs " +
           number(gain_low, 2) + " to " + number(gain_high, 2) +
           " times as much. The recurrence with an fp32 state stays below " + number(fp32_state, 2) + " on all inputs.",
       evidence::measured(),
       {{"lowest", gain_low}, {"highest", gain_high}, {"fp32_state", fp32_state}, {"over_fp32_state", over_fp32}},
       seed + " A chunk kernel keeps its state in fp32 and rounds a copy once a chunk."});
  double growth = 0;
  std::string where;
  const std::size_t last = survey.horizons.size() - 1;
  for (std::size_t which = 0; which < regimes.size(); ++which) {
    const error_curve& c = survey.at(which, "bf16");
    const double ratio = c.by_horizon[last] / c.by_horizon[last / 2];
    if (ratio <= growth) continue;
    growth = ratio;
    where = std::string(regimes[which].title);
  }
  r.findings.push_back(
      {"horizon-levels-off",
       "Over the horizon the relative error of bf16 chunks of 64 grows by at most " + number(growth, 3) +
           " times from T = " + count(survey.horizons[last / 2]) + " to " + count(survey.horizons[last]) + " (" + where +
           "); with β in [0, 1) it changes by " +
           number(survey.at(0, "bf16").by_horizon[last] / survey.at(0, "bf16").by_horizon[last / 2], 3) + " times.",
       evidence::measured(),
       {{"largest_growth", growth},
        {"ordinary_growth", survey.at(0, "bf16").by_horizon[last] / survey.at(0, "bf16").by_horizon[last / 2]}},
       "Seed " + std::to_string(options.seed) +
           ", one draw. The exact transitions have norm 1 at most, so errors add and are forgotten with the state."});
  r.figures.push_back(chunk_figure(size, survey));
  r.figures.push_back(horizon_figure(size, survey));
  r.tables.push_back(error_table(size, survey));
}

}  // namespace deltaproof::detail::wy
