// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT

#include "deltaproof/number/rational.hpp"
#include "studies/logistic/maps.hpp"
#include "studies/logistic/orbits.hpp"

namespace deltaproof {
namespace {

using namespace detail::logistic;

constexpr double onset = 3.5699456718709449;  // of chaos (Feigenbaum 1978); only which grid points lie beyond it matters
constexpr double shown_from = 2.8;            // r in the figures
constexpr double shown_to = 4;
constexpr std::size_t settling = 2000;  // steps before an orbit is drawn
constexpr std::size_t raced_steps = 800;
constexpr double longest_significand = 170;  // bits, of the lines in the figure
constexpr double cut_off = 4;                // of ln|R| in the figure

const grid_axis<double> chaotic{"r", {3.75, 3.875, 4}};

std::size_t starts(const run_options& o) { return o.size(200, 2000); }     // of the decorrelation
std::size_t steps(const run_options& o) { return o.size(20000, 200000); }  // of a stream of the exponent
constexpr std::size_t streams = 32;

std::vector<double> between(double from, double to, std::size_t n) {
  std::vector<double> result;
  for (std::size_t i = 0; i <= n; ++i) result.push_back(from + (to - from) * static_cast<double>(i) / static_cast<double>(n));
  return result;
}

/// A row for each number.
std::vector<frame_row> column_of(const std::vector<double>& x) {
  std::vector<frame_row> rows;
  for (const double one : x) rows.push_back({one});
  return rows;
}

/// The exponent and, for each format, how long it follows an orbit; then what is drawn over all r.
void add_chaos(const run_options& options, results& r) {
  const auto race = [&](double at) {
    const estimate e = lyapunov(at, steps(options), streams, options.seed);
    const frame formats = decorrelation(at, starts(options), raced_steps, options.seed);
    std::vector<frame_row> rows;
    for (frame_row row : formats.rows()) {
      row.insert(row.end(), {e.mean, e.standard_error(), e.deviation});
      rows.push_back(std::move(row));
    }
    return rows;
  };
  frame all = grid(options, "decorrelation",
                   {"format", "precision", "starts", "mean", "deviation", "least", "most", "never", "exponent", "exponent_error",
                    "exponent_deviation"},
                   race, chaotic);
  const auto per_bit = [](const auto& row) { return shared::ln(2) / row.number("exponent"); };
  all.derive("law", [&](const auto& row) { return row.number("precision") * per_bit(row); });
  all.derive("lower", [](const auto& row) { return row.number("mean") - row.number("deviation"); });
  all.derive("upper", [](const auto& row) { return row.number("mean") + row.number("deviation"); });

  const frame at_four = all.where("r", chaotic.quick.back());
  const double exponent = at_four[0].number("exponent"), error = at_four[0].number("exponent_error");
  const double distance = std::fabs(exponent - shared::ln(2)) / error;
  r.values("lyapunov-at-four", evidence::sampled(streams, options.seed, {}),
           {{"exponent", exponent}, {"standard_error", error}, {"agrees", distance < 4}});
  r.values("exponent", {{"ln2", shared::ln(2)}, {"distance", distance}, {"deviation", at_four[0].number("exponent_deviation")}});

  std::map<std::string, cell> values;
  for (std::size_t i = 0; i < at_four.size(); ++i) values[at_four.at(i, "format").text() + "_steps"] = at_four.at(i, "mean");
  double worst_slope = 0;
  frame lines({"r", "precision", "steps"});
  for (const double at : chaotic.quick) {
    const frame one = all.where("r", at);
    const double law = per_bit(one[0]);
    worst_slope = std::max(worst_slope, std::fabs(slope_of(one.numbers("precision"), one.numbers("mean")) / law - 1));
    for (const double bits : {0.0, longest_significand}) lines.add({at, bits, bits * law});
  }
  values["largest_deviation_of_slope"] = worst_slope;
  values["never"] = static_cast<std::uint64_t>(all.over("never", total));
  r.values("decorrelation-law", evidence::sampled(starts(options) * chaotic.quick.size(), options.seed, {}), values);
  r.values("race", {{"first_r", chaotic.quick[0]},
                    {"second_r", chaotic.quick[1]},
                    {"fewest_bits", all.over("precision", least)},
                    {"most_bits", all.over("precision", greatest)},
                    {"far", far},
                    {"steps", raced_steps},
                    {"lost_bits", 2 * raced_steps},
                    {"least_start", least_start},
                    {"greatest_start", greatest_start},
                    {"longest", longest_significand}});
  r.table("decorrelation", std::move(all));
  r.table("decorrelation-law", std::move(lines));

  const grid_axis<double> sweep{"r", between(shown_from, shown_to, 600)};
  // The Euler map in the unit x = (r - 1)/r u.
  r.table("attractor", grid(
                           options, "attractor", {"x"},
                           [](double at) {
                             std::vector<double> x = orbit(one_step::logistic_euler, at - 1, settling, 60);
                             for (double& u : x) u = u * (at - 1) / at;
                             return column_of(x);
                           },
                           sweep));
  r.table(
      "exponents",
      grid(
          options, "exponents", {"exponent"},
          [](double at) -> frame_row { return {logistic_exponent(one_step::logistic_euler, at - 1, settling, 4000)}; }, sweep));
}

void add_cycles(const run_options& options, results& r) {
  const grid_axis<double> parameters{"r", bf16_parameters()};
  const grid_axis<format> formats{"format", {bf16, fp16}};
  frame all = grid(
      options, "cycles", {"starts", "cycles", "longest_cycle", "longest_transient", "share_at_zero"},
      [](double at, const format& f) -> frame_row {
        const cycle_census c = census(name_of(f), at);
        const double share_at_zero = static_cast<double>(c.ends_at_zero) / static_cast<double>(c.starts);
        return {c.starts, c.cycles, c.longest_cycle, c.longest_transient, share_at_zero};
      },
      parameters, formats);
  grid_axis<double> drawn{"r", {}};
  std::copy_if(parameters.quick.begin(), parameters.quick.end(), std::back_inserter(drawn.quick),
               [](double at) { return at >= shown_from; });
  r.table("on-cycles",
          grid(
              options, "numbers on cycles", {"x"},
              [](double at, const format& f) { return column_of(census(name_of(f), at).on_cycles); }, drawn, formats));
  std::map<std::string, cell> longest, at_four;
  for (const std::string name : {"bf16", "fp16"}) {
    const frame one = all.where("format", name);
    const double length = one.over("longest_cycle", greatest);
    longest[name + "_longest_cycle"] = static_cast<std::uint64_t>(length);
    if (name == "bf16")
      longest["bf16_longest_cycle_at"] = one.where("longest_cycle", longest.at("bf16_longest_cycle")).at(0, "r");
    longest[name + "_longest_chaotic_transient"] = static_cast<std::uint64_t>(
        one.where([](const auto& row) { return row.number("r") > onset; }).over("longest_transient", greatest));
    const frame last = one.where("r", shown_to);
    at_four[name + "_share_at_zero"] = last.at(0, "share_at_zero");
    at_four[name + "_cycles"] = last.at(0, "cycles");
  }
  const auto cases = [](const frame& f) { return static_cast<std::uint64_t>(f.over("starts", total)); };
  longest["cases"] = cases(all.where("format", "bf16"));
  r.values("finite-cycles", evidence::exhaustive(cases(all)), longest);
  r.values("finite-at-four", evidence::exhaustive(cases(all.where("r", shown_to))), at_four);
  r.table("cycles", std::move(all));
}

void add_flow(const run_options& options, results& r) {
  const frame& all = r.table("exact-map", survey_flow(options));
  const auto count = [&](const char* column) { return static_cast<std::uint64_t>(all.over(column, total)); };
  const auto at = all.finder({"format"});
  r.values("exact-map-safe", evidence::measured(),
           {{"cases", count("cases")},
            {"safe_not_finite", count("second_not_finite")},
            {"safe_worst_in_u", all.over("second_worst", worst)},
            {"fp16_naive_fails_from", at("fp16", "from")},
            {"fp32_naive_fails_from", at("fp32", "from")},
            {"fp64_naive_fails_from", at("fp64", "from")},
            {"fp32_naive_fails_from_one", at("fp32", "from_one")},
            {"holds_at_zero", all.over("holds_at_zero", least) == 1},
            {"out_of_order", count("out_of_order")}});
  r.values("flow", {{"x", large_x}});
}

/// y -> r y (1 - y), y = b h/(1 + a h) x, r = 1 + a h, against x -> x + h (a x - b x^2), in rationals.
void add_conjugacy(results& r) {
  std::uint64_t cases = 0, equal = 0;
  for (const rational& a : {rational(1, 3), rational(2), rational(-5, 7)}) {
    for (const rational& b : {rational(1, 2), rational(3), rational(-4, 9)}) {
      for (const rational& h : {rational(1, 10), rational(1), rational(7, 2)}) {
        for (const rational& x : {rational(0), rational(1, 5), rational(-2), rational(13, 11)}) {
          const rational parameter = 1 + a * h;
          const rational unit = b * h / parameter;
          const rational y = unit * x;
          ++cases;
          if (unit * (x + h * (a * x - b * x * x)) == parameter * y * (1 - y)) ++equal;
        }
      }
    }
  }
  r.values("euler-map-is-logistic", evidence::proved(), {{"cases", cases}, {"equal", equal}});
}

void add_analogy(const run_options& options, results& r) {
  add_conjugacy(r);
  constexpr std::size_t side = 80;
  grid_axis<double> norms{"norm", {}}, betas{"beta", {}};
  for (std::size_t i = 0; i < side; ++i) {
    norms.quick.push_back(4 * (static_cast<double>(i) + 0.5) / side);
    betas.quick.push_back(2 * (static_cast<double>(i) + 0.5) / side);
  }
  frame phase = grid(
      options, "phase", {"euler", "exact"},
      [](double n, double beta) -> frame_row {
        const double x = beta * n;
        return {std::max(shared::ln(std::fabs(1 - x)), -cut_off), std::max(-x, -cut_off)};
      },
      norms, betas);
  r.table("phase", std::move(phase));
  r.values("growth", {{"floor", -cut_off}, {"cut_off", cut_off}});
  frame hyperbola({"beta", "norm"});
  for (int j = 50; j <= 200; ++j) hyperbola.add({j / 100.0, 2 / (j / 100.0)});
  r.table("hyperbola", std::move(hyperbola));
  const auto orbits = [&](one_step map, std::size_t points, std::size_t kept) {
    std::vector<double> x = between(0, 3, points);
    x.erase(x.begin());
    return grid(
        options, "maps", {"u"}, [&](double at) { return column_of(orbit(map, at, settling, kept)); }, grid_axis<double>{"x", x});
  };
  r.table("euler-orbits", orbits(one_step::logistic_euler, 600, 60));
  r.table("exact-orbits", orbits(one_step::logistic_exact, 60, 4));
}

/// The exponents of both maps and of the delta rule on one key at the same x.
void add_parting(const run_options& options, results& r) {
  constexpr double right_end = 3;
  frame table = grid(
      options, "logistic maps", {"points", "map_euler", "rule_euler", "map_exact", "rule_exact"},
      [](double x) -> frame_row {
        const std::size_t period = attractor_period(x);
        return {period == 0 ? cell() : cell(period), logistic_exponent(one_step::logistic_euler, x, settling, 20000),
                shared::ln(std::fabs(1 - x)), logistic_exponent(one_step::logistic_exact, x, settling, 100), -x};
      },
      grid_axis<double>{"x", {0.5, 1.5, 1.9, 2.2, 2.5, 2.55, 2.6, 2.8, 2.84, right_end}});
  frame off = table;
  off.derive("euler", [](const auto& row) {
    return row.number("x") < 2 ? cell(row.number("map_euler") - row.number("rule_euler")) : cell();
  });
  off.derive("exact", [](const auto& row) { return row.number("map_exact") - row.number("rule_exact"); });
  r.values("logistic-parts", evidence::measured(),
           {{"largest_difference_below_2", std::max(off.over("euler", worst), off.over("exact", worst))},
            {"logistic_exponent_at_3", logistic_exponent(one_step::logistic_euler, right_end, settling, 100000)}});
  r.values("maps", {{"end", right_end}, {"rate", shared::ln(std::fabs(1 - right_end))}});
  r.table("logistic", std::move(table));
}

results run(const run_options& options) {
  results r = in_parts(options, {{"Lyapunov exponents and decorrelation", &add_chaos},
                                 {"cycles in short formats", &add_cycles},
                                 {"exact map", &add_flow},
                                 {"analogy with the delta rule", &add_analogy},
                                 {"where it ends", &add_parting}});
  r.values("chaos", {{"r", shown_to}, {"x", shown_to - 1}, {"true_bits", true_bits}});
  r.values("shown-range", {{"from", shown_from}, {"to", shown_to}, {"settling", settling}});
  r.parameters = {{"starts", starts(options)}, {"exponent_steps", steps(options)}, {"exponent_streams", streams}};
  return r;
}

}  // namespace

extern const study logistic_study{"logistic", &run};

}  // namespace deltaproof
