// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <map>
#include <string>

#include "deltaproof/number/format.hpp"
#include "studies/efla/coefficient.hpp"

namespace deltaproof::detail::efla {
namespace {

const error_result& result_of(const error_survey& survey, std::string_view format_name, form how) {
  for (const error_result& r : survey.results) {
    if (r.format_name == format_name && r.how == how) return r;
  }
  throw domain_error("no survey of " + std::string(format_name));
}

figure error_figure(const error_survey& survey) {
  figure f;
  f.id = "coefficient";
  f.title = "Relative error of EFLA's coefficient against x";
  f.columns = 2;
  f.shared_x = true;
  f.shared_y = true;
  f.caption =
      "Largest relative error in each quarter of a decade of x, unit key, every operation rounded to the format. The naive form "
      "errs "
      "like u/x and is stuck at 1 (all of it lost) below x = u/2, where e^−x rounds to 1: the dead zone, left of the dashed "
      "line. Through expm1 "
      "the error stays below the format's u for every x; for small x it is smaller still, because the coefficient is nearly x, "
      "which is a number of the format, and "
      "for large x because it is nearly 1.";
  f.alt =
      "Four panels, one per format. A falling curve from one at small x down to the format's precision, and a flat curve at the "
      "precision.";
  for (const std::string_view name : format_names) {
    panel p;
    p.title = std::string(name);
    p.x = {"x = β|k|²", axis_scale::logarithmic, smallest_x, largest_x};
    p.y = {"relative error", axis_scale::logarithmic, 1e-17, 2};
    for (const form how : {form::naive, form::expm1}) {
      const error_result& r = result_of(survey, name, how);
      series s{std::string(name_of(how)), {}, {}};
      for (std::size_t i = 0; i < r.envelope.size(); ++i) {
        constexpr std::array<double, 4> centre{1.3335214321633240, 2.3713737056616555, 4.2169650342858231, 7.4989420933245583};
        double power = smallest_x;
        for (std::size_t d = 0; d < i / bins_per_decade; ++d) power *= 10;
        s.x.push_back(power * centre[i % bins_per_decade]);
        s.y.push_back(r.envelope[i] > 0 ? r.envelope[i] : std::numeric_limits<double>::quiet_NaN());
      }
      p.curves.push_back(std::move(s));
    }
    for (const dead_zone& z : survey.zones) {
      if (z.format_name == name && z.last_zero >= smallest_x) p.marks.push_back({mark_direction::vertical, z.last_zero, ""});
    }
    f.panels.push_back(std::move(p));
  }
  return f;
}

}  // namespace

void add_coefficient(const run_options& options, const settings& size, report& r) {
  const error_survey survey = survey_errors(options, size);
  if (!survey.complete) {
    r.unfinished.emplace_back("Errors of the coefficient: interrupted.");
    return;
  }
  bool zones_as_predicted = true;
  bool doubles_everywhere = true;
  std::map<std::string, cell> zone_values;
  for (const dead_zone& z : survey.zones) {
    const double u = unit_roundoff(format_named(z.format_name));
    zones_as_predicted = zones_as_predicted && z.last_zero == u / 2;
    doubles_everywhere = doubles_everywhere && z.error_there > 0.9 && z.error_there < 1;
    zone_values[z.format_name] = z.last_zero;
    zone_values[z.format_name + "_saturates_from"] = z.saturates_from;
  }
  zone_values["as_predicted"] = zones_as_predicted;
  const auto zone = [&](std::string_view name) -> const dead_zone& {
    return *std::find_if(survey.zones.begin(), survey.zones.end(), [&](const dead_zone& z) { return z.format_name == name; });
  };
  r.findings.push_back({"dead-zone",
                        std::string("The naive form is 0 for x ≤ ") +
                            (zones_as_predicted ? "u/2 exactly" : "a limit that is not u/2") + ": x ≤ " +
                            number(zone("bf16").last_zero) + " in bf16, " + number(zone("fp16").last_zero) + " in fp16, " +
                            number(zone("fp32").last_zero) + " in fp32 and " + number(zone("fp64").last_zero) +
                            " in fp64 (below 1e-12, so never in the range asked about). There the eigenvalue is exactly "
                            "1: the token is not written, whatever v is.",
                        evidence::proved(), zone_values,
                        "The largest number below 1 is 1 − u, so e^−x rounds to 1 exactly while 1 − e^−x ≤ u/2, and −ln(1 − u/2) "
                        "lies between u/2 and the next "
                        "number. Both neighbours were evaluated, by bisection over the ordered numbers."});
  const error_result& naive_bf16 = result_of(survey, "bf16", form::naive);
  const error_result& naive_fp16 = result_of(survey, "fp16", form::naive);
  r.findings.push_back(
      {"naive-error-exhaustive",
       "Over all bf16 and fp16 numbers x from 1e-12 to 1e3 the naive coefficient errs by up to " +
           number(100 * naive_bf16.worst_error, 3) + " % and " + number(100 * naive_fp16.worst_error, 3) +
           " %; for x in [0.001, 0.01) by up to " + number(100 * naive_bf16.worst[9], 3) + " % and " +
           number(100 * naive_fp16.worst[9], 3) + " %, in [0.1, 1) by up to " + number(100 * naive_bf16.worst[11], 3) +
           " % and " + number(100 * naive_fp16.worst[11], 3) + " %. Just above the dead zone it is " +
           (doubles_everywhere ? "almost twice too large in every format." : "not twice too large in every format."),
       evidence::exhaustive(naive_bf16.cases + naive_fp16.cases),
       {{"bf16_worst", naive_bf16.worst_error},
        {"fp16_worst", naive_fp16.worst_error},
        {"bf16_worst_in_tenths", naive_bf16.worst[11]},
        {"fp16_worst_in_tenths", naive_fp16.worst[11]},
        {"bf16_error_above_dead_zone", zone("bf16").error_there},
        {"doubles_above_dead_zone", doubles_everywhere}},
       "Each against −expm1(−x) over 192 bits; exp correctly rounded, every other operation rounded once."});
  const error_result& careful_bf16 = result_of(survey, "bf16", form::expm1);
  const error_result& careful_fp16 = result_of(survey, "fp16", form::expm1);
  const error_result& library_bf16 = result_of(survey, "bf16", form::library);
  const double careful = careful_bf16.worst_in_u;
  std::uint64_t careful_zeros = 0;
  for (const error_result& e : survey.results) {
    if (e.how == form::naive) continue;
    for (const std::uint64_t zeros : e.zeros) careful_zeros += zeros;
  }
  r.findings.push_back(
      {"expm1-error-exhaustive",
       "Through expm1 the same numbers give at most " + number(careful, 3) + " u in bf16 and " +
           number(careful_fp16.worst_in_u, 3) + " u in fp16 for a unit key; the form of the library, β times expm1(−x)/(−x), " +
           number(library_bf16.worst_in_u, 3) + " u in bf16. " +
           (careful_zeros == 0 ? "The coefficient is never 0."
                               : "The coefficient is 0 in " + std::to_string(careful_zeros) + " cases."),
       evidence::exhaustive(careful_bf16.cases + careful_fp16.cases),
       {{"bf16_worst_in_u", careful_bf16.worst_in_u},
        {"fp16_worst_in_u", careful_fp16.worst_in_u},
        {"bf16_library_worst_in_u", library_bf16.worst_in_u},
        {"zeros", careful_zeros}},
       "The theorem behind it for fp32 and bf16 with a less than perfect expm1: float.alpha.efla_coefficient_bf16."});
  const error_result& naive_fp32 = result_of(survey, "fp32", form::naive);
  const error_result& naive_fp64 = result_of(survey, "fp64", form::naive);
  const error_result& careful_fp32 = result_of(survey, "fp32", form::expm1);
  const error_result& careful_fp64 = result_of(survey, "fp64", form::expm1);
  r.findings.push_back({"wide-formats",
                        "In fp32 the naive coefficient errs by up to " + number(100 * naive_fp32.worst_error, 3) +
                            " % (at x = " + number(naive_fp32.worst_at, 3) + "), in fp64 by up to " +
                            number(naive_fp64.worst_error, 3) + "; through expm1 by at most " +
                            number(careful_fp32.worst_in_u, 3) + " u and " + number(careful_fp64.worst_in_u, 3) + " u.",
                        evidence::worst_found(naive_fp32.cases + naive_fp64.cases, options.seed),
                        {{"fp32_naive_worst", naive_fp32.worst_error},
                         {"fp64_naive_worst", naive_fp64.worst_error},
                         {"fp32_expm1_worst_in_u", careful_fp32.worst_in_u},
                         {"fp64_expm1_worst_in_u", careful_fp64.worst_in_u}},
                        "Random significands in every octave of x, and the edge of the dead zone; 192 bits behind them."});
  table t;
  t.id = "coefficient";
  t.title = "Largest relative error by decade of x, unit key";
  t.columns = {"x from"};
  for (const std::string_view name : format_names) {
    t.columns.push_back({std::string(name) + " naive", 3});
    t.columns.push_back({"expm1", 3});
  }
  double power = smallest_x;
  for (std::size_t d = 0; d < decades; ++d) {
    std::vector<cell> row{number(power, 1)};
    for (const std::string_view name : format_names) {
      for (const form how : {form::naive, form::expm1}) {
        const error_result& e = result_of(survey, name, how);
        row.push_back(e.looked_at[d] == 0 ? cell("no number") : cell(e.worst[d]));
      }
    }
    t.rows.push_back(std::move(row));
    power *= 10;
  }
  t.note =
      "1 means that all of it is lost (the coefficient is 0). fp16 has no numbers below 6e-8 and subnormal ones below 6.1e-5.";
  r.tables.push_back(std::move(t));
  r.figures.push_back(error_figure(survey));
}

}  // namespace deltaproof::detail::efla
