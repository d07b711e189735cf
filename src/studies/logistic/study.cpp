// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT

#include "deltaproof/number/rational.hpp"
#include "studies/logistic/constants.hpp"
#include "studies/logistic/orbits.hpp"
#include "studies/shared/maps.hpp"

namespace deltaproof {
namespace {

using namespace detail::logistic;
using shared::one_step;
using wide = real<256>;

constexpr double onset = 3.5699456718709449;  // of chaos, rounded; only which grid points lie beyond it matters
constexpr double shown_from = 2.8;            // r in the figures
constexpr double shown_to = 4;
constexpr std::size_t settling = 2000;  // steps before an orbit is drawn
constexpr std::size_t raced_steps = 800;
constexpr double longest_significand = 170;  // bits, of the lines in the figure
constexpr double cut_off = 4;                // of ln|R| in the figure

const grid_axis<double> chaotic{"r", {3.75, 3.875, 4}};

std::size_t terms(const run_options& o) { return o.size(60, 120); }        // of g in the functional equation
std::size_t doublings(const run_options& o) { return o.size(36, 70); }     // of the family, for the accumulation point
std::size_t superstable(const run_options& o) { return o.size(16, 19); }   // last n of R_n
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

std::string digits(const wide& x, int count) { return x.str(count, std::ios_base::fmtflags(0)); }

/// How many leading digits two decimals share.
std::size_t shared_digits(const std::string& a, const std::string& b) {
  std::size_t n = 0;
  while (n < a.size() && n < b.size() && a[n] == b[n]) ++n;
  return n > 1 ? n - 1 : n;  // the point
}

/// Where the period doubles and where it is superstable, n = 1 ... `last`.
frame doubling_points(const run_options& options, const cascade& c, std::size_t last) {
  std::vector<std::size_t> n(last);
  std::iota(n.begin(), n.end(), std::size_t{1});
  const auto& stable = c.superstable;
  const auto points = [&](std::size_t i) -> frame_row {
    const orbit_point doubles = orbit_of_multiplier(std::size_t{1} << (i - 1), -1, wide(1) / 2, stable[i - 1]);
    const wide ratio = (stable[i] - stable[i - 1]) / (stable[i + 1] - stable[i]);
    return {"2^" + std::to_string(i),
            doubles.converged ? cell(digits(doubles.r, 26)) : cell(),
            digits(stable[i], 26),
            round_to<double>(ratio),
            doubles.converged && abs(wide(doubles.r - 1 - sqrt(wide(6)))) < wide(1e-40),
            round_to<double>(doubles.r)};
  };
  return grid(options, "period doubling", {"period", "doubles", "superstable", "ratio", "is_one_plus_root_six", "r"}, points,
              grid_axis<std::size_t>{"n", n});
}

/// The first `length` characters, and "…" where that is not all.
std::string shortened(const std::string& digits, std::size_t length) {
  return digits.size() <= length ? digits : digits.substr(0, length) + "…";
}

void add_constants(const run_options& options, results& r) {
  options.progress("functional equation", 0);
  const universal u = universal_constants(terms(options), doublings(options), options.full);
  r.values(
      "feigenbaum-delta", evidence::measured(),
      {{"delta", u.delta.text}, {"alpha", u.alpha.text}, {"delta_digits", u.delta.digits}, {"alpha_digits", u.alpha.digits}});
  constexpr std::size_t shown = 52;
  r.values("shown", {{"delta", shortened(u.delta.text, shown)},
                     {"alpha", shortened(u.alpha.text, shown)},
                     {"r_infinity", shortened(u.r_infinity.text, shown)},
                     {"r_infinity_in_short", shortened(u.r_infinity.text, 12)}});
  r.values("truncation", {{"finer", terms(options) + 6}, {"bits", u.bits}});

  if (options.stopped()) throw interrupted_part{};
  options.progress("superstable orbits", 0.6);
  const cascade c = superstable_cascade(superstable(options));
  const std::size_t common = shared_digits(u.r_infinity.text, c.r_infinity.text);
  const auto fewest = static_cast<std::size_t>(std::min(c.r_infinity.digits, u.r_infinity.digits));
  r.values("accumulation-point", evidence::measured(),
           {{"r_infinity", u.r_infinity.text},
            {"digits", u.r_infinity.digits},
            {"from_superstable_orbits", c.r_infinity.text},
            {"methods_agree", common + 1 >= fewest},
            {"digits_in_common", common}});
  r.values("superstable-orbits",
           {{"digits", c.r_infinity.digits}, {"delta_digits_in_common", shared_digits(u.delta.text, c.delta.text)}});

  const frame& points = r.table("period-doubling", doubling_points(options, c, options.size(8, 10)));
  r.values("doubling-points", evidence::measured(),
           {{"second_is_one_plus_root_six", points.at(1, "is_one_plus_root_six")},
            {"third", points.at(2, "doubles")},
            {"last_ratio", points.at(points.size() - 1, "ratio")}});
  r.values("doubling", {{"points", points.size()},
                        {"first_r", points.at(0, "r")},
                        {"second", points.at(1, "doubles")},
                        {"second_r", points.at(1, "r")},
                        {"third_r", points.at(2, "r")},
                        {"limit", onset}});
}

void add_windows(const run_options& options, results& r) {
  const grid_axis<std::size_t> periods{"period", {3, 5, 7}};
  const auto windows_of = [](std::size_t period) {
    std::vector<frame_row> rows;
    for (const wide& stable : superstable_parameters(period)) {
      const orbit_point opens = orbit_of_multiplier(period, 1, wide(1) / 2, stable);
      const orbit_point doubles = orbit_of_multiplier(period, -1, wide(1) / 2, stable);
      if (!opens.converged || !doubles.converged) continue;
      rows.push_back({digits(opens.r, 22), digits(stable, 22), digits(doubles.r, 22), round_to<double>(wide(doubles.r - opens.r)),
                      digits(opens.r, 30), abs(wide(opens.r - 1 - sqrt(wide(8)))) < wide(1e-30)});
    }
    return rows;
  };
  const frame& windows = r.table(
      "windows", grid(options, "windows", {"opens", "superstable", "doubles", "width", "opens_at", "is_one_plus_root_eight"},
                      windows_of, periods));
  std::map<std::string, cell> known;
  bool counts_agree = true;
  for (const std::size_t prime : periods.quick) {
    // Superstable orbits of a prime period: (2^(p-1) - 1)/p, a classical count.
    const std::size_t expected = ((std::size_t{1} << (prime - 1)) - 1) / prime;
    counts_agree = counts_agree && windows.where("period", prime).size() == expected;
    known["of_" + std::to_string(prime)] = expected;
    known["period_" + std::to_string(prime)] = prime;
  }
  known["grid"] = window_grid;
  r.values("windows", evidence::measured(),
           {{"period_three_opens", windows.at(0, "opens_at")},
            {"is_one_plus_root_eight", windows.at(0, "is_one_plus_root_eight")},
            {"windows", windows.size()},
            {"counts_agree", counts_agree}});
  r.values("known", known);
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
  // The map of study horizon in the unit x = (r - 1)/r u.
  r.table("attractor", grid(
                           options, "attractor", {"x"},
                           [](double at) {
                             std::vector<double> x = shared::orbit(one_step::logistic_euler, at - 1, settling, 60);
                             for (double& u : x) u = u * (at - 1) / at;
                             return column_of(x);
                           },
                           sweep));
  r.table("exponents", grid(
                           options, "exponents", {"exponent"},
                           [](double at) -> frame_row {
                             return {shared::logistic_exponent(one_step::logistic_euler, at - 1, settling, 4000)};
                           },
                           sweep));
}

void add_cycles(const run_options& options, results& r) {
  const grid_axis<double> parameters{"r", bf16_parameters()};
  const grid_axis<format> formats{"format", {bf16, fp16}};
  frame all = grid(
      options, "cycles",
      {"starts", "cycles", "longest_cycle", "longest_transient", "mean_transient", "share_at_zero", "basin_cycle", "basin_share"},
      [](double at, const format& f) -> frame_row {
        const cycle_census c = census(name_of(f), at);
        const double share_at_zero = static_cast<double>(c.ends_at_zero) / static_cast<double>(c.starts);
        return {c.starts,         c.cycles,      c.longest_cycle,       c.longest_transient,
                c.mean_transient, share_at_zero, c.largest_basin_cycle, c.largest_basin};
      },
      parameters, formats);
  grid_axis<double> drawn{"r", {}};
  std::copy_if(parameters.quick.begin(), parameters.quick.end(), std::back_inserter(drawn.quick),
               [](double at) { return at >= shown_from; });
  r.table("on-cycles",
          grid(
              options, "numbers on cycles", {"x"},
              [](double at, const format& f) { return column_of(census(name_of(f), at).on_cycles); }, drawn, formats));
  std::map<std::string, cell> longest, at_four, basins;
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
    basins[name] = last.at(0, "basin_cycle");
  }
  const auto cases = [](const frame& f) { return static_cast<std::uint64_t>(f.over("starts", total)); };
  longest["cases"] = cases(all.where("format", "bf16"));
  r.values("finite-cycles", evidence::exhaustive(cases(all)), longest);
  r.values("finite-at-four", evidence::exhaustive(cases(all.where("r", shown_to))), at_four);
  r.values("most-visited", basins);
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
        options, "maps", {"u"}, [&](double at) { return column_of(shared::orbit(map, at, settling, kept)); },
        grid_axis<double>{"x", x});
  };
  r.table("euler-orbits", orbits(one_step::logistic_euler, 600, 60));
  r.table("exact-orbits", orbits(one_step::logistic_exact, 60, 4));
}

results run(const run_options& options) {
  results r = in_parts(options, {{"constants of period doubling", &add_constants},
                                 {"windows", &add_windows},
                                 {"Lyapunov exponents and decorrelation", &add_chaos},
                                 {"cycles in short formats", &add_cycles},
                                 {"exact map", &add_flow},
                                 {"analogy with the delta rule", &add_analogy}});
  r.values("chaos", {{"r", shown_to}, {"x", shown_to - 1}, {"true_bits", true_bits}});
  r.values("shown-range", {{"from", shown_from}, {"to", shown_to}, {"settling", settling}});
  r.parameters = {{"terms", terms(options)},   {"doublings", doublings(options)},  {"superstable", superstable(options)},
                  {"starts", starts(options)}, {"exponent_steps", steps(options)}, {"exponent_streams", streams}};
  return r;
}

}  // namespace

extern const study logistic_study{"logistic", &run};

}  // namespace deltaproof
