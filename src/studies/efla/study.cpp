// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT

#include <numbers>
#include <tuple>

#include "deltaproof/rule/rules.hpp"
#include "studies/efla/coefficient.hpp"

namespace deltaproof {
namespace {

using namespace detail::efla;

constexpr double smallest_x = 1e-12;
constexpr double largest_x = 1e3;
constexpr std::array<double, 15> decades{1e-12, 1e-11, 1e-10, 1e-9, 1e-8, 1e-7, 1e-6, 1e-5, 1e-4, 1e-3, 1e-2, 1e-1, 1, 1e1, 1e2};
constexpr int lowest_octave = -40;  // of x
constexpr int highest_octave = 9;
constexpr std::size_t shown_dim = 128;
constexpr double off_by = 0.1;  // from which a coefficient counts as off

const grid_axis<format> stores{"format", {bf16, fp16, fp32, fp64}};

std::size_t per_octave(const run_options& options) { return options.size(150, 2000); }
std::size_t fp16_stride(const run_options& options) { return options.size(16, 1); }
std::size_t pairs(const run_options& options) { return options.size(300, 4000); }
std::size_t keys(const run_options& options) { return options.size(4000, 50000); }

using shared::with_studied_format;

/// All numbers of the range in a format of 16 bits, random ones of every octave in the others.
template <format F>
std::vector<double> arguments(const run_options& options) {
  std::vector<double> result;
  if constexpr (F.storage_bits <= 16) {
    const auto first = std::max<std::int64_t>(shared::ordinal<F>(round_to<F>(smallest_x).value()), 1);
    const auto last = shared::ordinal<F>(round_to<F>(largest_x).value());
    for (std::int64_t i = first; i <= last; ++i) result.push_back(shared::from_ordinal<F>(i));
  } else {
    for (int octave = lowest_octave; octave <= highest_octave; ++octave) {
      philox random(options.seed, 0x65666c6100000000U + static_cast<std::uint64_t>(F.precision * 256 + octave + 64));
      for (std::size_t i = 0; i < per_octave(options); ++i)
        result.push_back(detail::power_of_two(octave) * significand<F>(random.below(significands<F>)));
    }
    // The edge of the dead zone, where chance would not land.
    for (const double factor : {1.0, significand<F>(1), 1.5, 3.0}) result.push_back(factor * unit_roundoff(F) / 2);
  }
  std::erase_if(result, [](double x) { return x < smallest_x || x > largest_x; });
  return result;
}

/// Rows of each form and quarter of a decade; n = 1, so that x = beta is a number of the format.
template <format F>
std::vector<frame_row> errors_of(const run_options& options) {
  struct quarter {
    std::uint64_t cases = 0, zeros = 0;
    double worst = NAN, at = NAN;
  };
  constexpr std::array<double, 3> edges{1.7782794100389228, 3.1622776601683795, 5.6234132519034912};  // 10^(1/4), ...
  constexpr std::array<double, 4> centres{1.3335214321633240, 2.3713737056616555, 4.2169650342858231, 7.4989420933245583};
  std::array<std::array<quarter, 4 * decades.size()>, forms.size()> found;
  exponentials<F> at;
  for (const double x : arguments<F>(options)) {
    const auto argument = rounded<F>::from_exact(x);
    const auto values = at(argument);
    const auto decade = std::upper_bound(decades.begin(), decades.end(), x) - 1;
    const auto part = std::count_if(edges.begin(), edges.end(), [&](double edge) { return x >= *decade * edge; });
    for (std::size_t i = 0; i < forms.size(); ++i) {
      quarter& q = found[i][static_cast<std::size_t>(4 * (decade - decades.begin()) + part)];
      const double c = formed<F>(forms[i].id, argument, rounded<F>(1), argument, values).value();
      const double error = error_of(c, x);
      ++q.cases;
      q.zeros += c == 0 ? 1 : 0;
      if (!(error <= q.worst)) std::tie(q.worst, q.at) = std::pair(error, x);
    }
  }
  std::vector<frame_row> rows;
  for (std::size_t i = 0; i < forms.size(); ++i) {
    for (std::size_t part = 0; part < found[i].size(); ++part) {
      const quarter& q = found[i][part];
      rows.push_back({forms[i].name, decades[part / 4], decades[part / 4] * centres[part % 4], q.worst, q.at, q.cases, q.zeros});
    }
  }
  return rows;
}

void add_coefficient(const run_options& options, results& r) {
  frame zones({"format", "dead", "error", "predicted"});
  std::map<std::string, cell> ends;
  for (const format& f : stores.quick) {
    const dead_zone z = dead_zone_of(name_of(f));
    const double there = error_of(coefficient(name_of(f), form::naive, z.first_alive, 1), z.first_alive);
    ends[std::string(name_of(f))] = z.last_zero;
    ends[std::string(name_of(f)) + "_saturates_from"] = z.saturates_from;
    zones.add({name_of(f), z.last_zero, there, z.last_zero == unit_roundoff(f) / 2});
  }
  ends["as_predicted"] = zones.over("predicted", least) == 1;
  r.values("dead-zone", evidence::measured(), std::move(ends));
  frame errors = grid(
      options, "coefficients", {"form", "from", "x", "error", "at", "cases", "zeros"},
      [&](const format& f) { return with_studied_format(f, [&]<format F>() { return errors_of<F>(options); }); }, stores);
  const frame& by_decade = r.table("decades", errors.by({"format", "form", "from"}, {{"error", "error", greatest}}));
  const frame all =
      errors.by({"format", "form"},
                {{"error", "error", greatest}, {"cases", "cases", shared::count_of}, {"zeros", "zeros", shared::count_of}});
  const auto of = [&](const format& f, const char* how, const char* column = "error") {
    return all.find({{"format", name_of(f)}, {"form", how}}, column);
  };
  const auto in_u = [&](const format& f, const char* how) { return of(f, how) / unit_roundoff(f); };
  const auto cases = [&](const format& a, const format& b) {
    return static_cast<std::uint64_t>(of(a, "naive", "cases") + of(b, "naive", "cases"));
  };
  const auto naive_from = [&](const format& f, double from) {
    return by_decade.find({{"format", name_of(f)}, {"form", "naive"}, {"from", from}}, "error");
  };
  constexpr double thousandth = 1e-3, tenth = 1e-1;
  r.values("naive-error-exhaustive", evidence::exhaustive(cases(bf16, fp16)),
           {{"bf16_worst", of(bf16, "naive")},
            {"fp16_worst", of(fp16, "naive")},
            {"bf16_worst_in_tenths", naive_from(bf16, tenth)},
            {"fp16_worst_in_tenths", naive_from(fp16, tenth)},
            {"bf16_error_above_dead_zone", zones.find({{"format", "bf16"}}, "error")},
            {"doubles_above_dead_zone", zones.over("error", least) > 0.9 && zones.over("error", greatest) < 1}});
  r.values("naive", {{"bf16_in_thousandths", naive_from(bf16, thousandth)},
                     {"fp16_in_thousandths", naive_from(fp16, thousandth)},
                     {"thousandth", thousandth},
                     {"hundredth", 10 * thousandth},
                     {"tenth", tenth}});
  const frame careful = all.where([](const auto& row) { return row["form"].text() != "naive"; });
  r.values("expm1-error-exhaustive", evidence::exhaustive(cases(bf16, fp16)),
           {{"bf16_worst_in_u", in_u(bf16, "expm1")},
            {"fp16_worst_in_u", in_u(fp16, "expm1")},
            {"bf16_library_worst_in_u", in_u(bf16, "library")},
            {"zeros", shared::count_of(careful.numbers("zeros"))}});
  const frame worst_there = errors.where("format", "fp32").where("form", "naive").where("error", of(fp32, "naive"));
  r.values("wide-formats", evidence::worst_found(cases(fp32, fp64), options.seed),
           {{"fp32_naive_worst", of(fp32, "naive")},
            {"fp64_naive_worst", of(fp64, "naive")},
            {"fp32_expm1_worst_in_u", in_u(fp32, "expm1")},
            {"fp64_expm1_worst_in_u", in_u(fp64, "expm1")}});
  r.values("range", {{"fp32_worst_at", worst_there.at(0, "at")},
                     {"smallest", smallest_x},
                     {"largest", largest_x},
                     {"bits", ruler_bits},
                     {"fp16_subnormal", smallest_subnormal(fp16)},
                     {"fp16_normal", smallest_normal(fp16)}});
  r.table("errors", std::move(errors));
  r.table("zones", std::move(zones));
}

/// One octave of n, beta in [1, 2): a row for each form with what lambda = 1 - b n is, decided exactly for the computed b.
template <format F>
std::vector<frame_row> eigenvalues_of(int octave, const run_options& options) {
  struct seen {
    std::uint64_t cases = 0, ones = 0, zeros = 0, negative = 0, above_one = 0;
    double dead_x = NAN, full_x = NAN, lowest = NAN;
  };
  std::array<seen, forms.size()> found;
  exponentials<F> at;
  const auto look_at = [&](double beta_value, double n_value) {
    const auto beta = rounded<F>::from_exact(beta_value);
    const auto n = rounded<F>::from_exact(n_value);
    const auto x = beta * n;
    const auto values = at(x);
    for (std::size_t i = 0; i < forms.size(); ++i) {
      seen& s = found[i];
      const double b = formed<F>(forms[i].id, beta, n, x, values).value();
      // Exact in sign; for significands of at most 26 bits, or near 0, exact.
      const double lambda = std::fma(-b, n_value, 1.0);
      const double exact_x = beta_value * n_value;
      ++s.cases;
      s.ones += b == 0 ? 1 : 0;
      if (b == 0) s.dead_x = std::fmax(s.dead_x, exact_x);
      s.zeros += lambda == 0 ? 1 : 0;
      s.negative += lambda < 0 ? 1 : 0;
      s.above_one += b < 0 ? 1 : 0;
      if (lambda < 0) s.lowest = std::fmin(s.lowest, lambda / unit_roundoff(F));
      if (lambda <= 0) s.full_x = std::fmin(s.full_x, exact_x);
    }
  };
  if constexpr (F.storage_bits <= 16) {
    if (detail::power_of_two(octave) < smallest_normal(F)) return {};
    for (std::uint64_t i = 0; i < significands<F>; i += F == bf16 ? 1 : fp16_stride(options)) {
      for (std::uint64_t j = 0; j < significands<F>; ++j) look_at(significand<F>(i), std::ldexp(significand<F>(j), octave));
    }
  } else {
    philox random(options.seed, 0x65666c6200000000U + static_cast<std::uint64_t>(F.precision * 256 + octave + 64));
    for (std::size_t i = 0; i < pairs(options); ++i) {
      const double beta = significand<F>(random.below(significands<F>));
      look_at(beta, std::ldexp(significand<F>(random.below(significands<F>)), octave));
    }
  }
  std::vector<frame_row> rows;
  for (std::size_t i = 0; i < forms.size(); ++i) {
    const seen& s = found[i];
    rows.push_back({forms[i].name, s.cases, s.ones, s.dead_x, s.zeros, s.negative, s.lowest, s.full_x, s.above_one});
  }
  return rows;
}

/// What the exact rule writes at x: 1 - e^-x.
double written(double x) {
  const auto in_fp64 = rounded<fp64>::from_exact(x);
  return (in_fp64 * exact_flow::gain(in_fp64)).value();
}

void add_eigenvalue(const run_options& options, results& r) {
  grid_axis<int> octaves{"octave", {}};
  for (int octave = lowest_octave; octave <= highest_octave; ++octave) octaves.quick.push_back(octave);
  const frame found = grid(
      options, "eigenvalues", {"form", "pairs", "ones", "dead_x", "zeros", "negative", "lowest", "full_x", "above_one"},
      [&](const format& f, int octave) {
        return with_studied_format(f, [&]<format F>() { return eigenvalues_of<F>(octave, options); });
      },
      stores, octaves);
  std::vector<aggregate> made = shared::each({"pairs", "ones", "zeros", "negative", "above_one"}, shared::count_of);
  made.insert(made.end(), {{"dead_x", "dead_x", greatest}, {"lowest", "lowest", least}, {"full_x", "full_x", least}});
  const frame& all = r.table("eigenvalue", found.by({"format", "form"}, made));
  const frame in_bf16 = all.where("format", "bf16");
  const frame plain = in_bf16.where([](const auto& row) { return row["form"].text() != "library"; });
  const auto of = [&](const char* how, const char* column) { return in_bf16.where("form", how).at(0, column); };
  r.values("eigenvalue-ends", evidence::exhaustive(static_cast<std::uint64_t>(in_bf16.over("pairs", total))),
           {{"naive_exactly_one", of("naive", "ones")},
            {"expm1_exactly_one", of("expm1", "ones")},
            {"largest_dead_x", of("naive", "dead_x")},
            {"smallest_full_x", plain.over("full_x", least)},
            {"lowest_in_u", -plain.over("lowest", least)},
            {"library_lowest_in_u", -as_number(of("library", "lowest"))},
            {"above_one", shared::count_of(all.numbers("above_one"))}});
}

/// |k|^2 of Gaussian keys, and what steps with beta uniform in (0, 1) do in bf16. The same keys for every normalisation.
frame_row sampled_norms(std::size_t dim, const std::string& how, const run_options& options) {
  philox random(options.seed, 0x65666c6300000000U + dim);
  std::vector<double> k(dim);
  std::vector<double> norms;
  double squares = 0;
  std::size_t unstable = 0, dead = 0, off = 0, full = 0;
  for (std::size_t i = 0; i < keys(options); ++i) {
    shared::draw(random, k);
    const double beta = random.uniform();
    double absolute = 0;
    for (const double x : k) absolute += std::fabs(x);
    const double square = shared::squared_norm(k);
    const double n = how == "L2"    ? 1
                     : how == "L1"  ? square / (absolute * absolute)
                     : how == "RMS" ? static_cast<double>(dim)
                                    : square;
    norms.push_back(n);
    squares += n * n;
    unstable += beta * n > euler::limit ? 1 : 0;
    const double b = round_to<bf16>(beta).value();
    const double m = round_to<bf16>(n).value();
    if (b == 0) continue;
    const double naive = coefficient("bf16", form::naive, b, m);
    const double truth = effective_step(exact_flow{}, rounded<fp64>::from_exact(b), rounded<fp64>::from_exact(m)).value();
    dead += naive == 0 ? 1 : 0;
    off += std::fabs(naive / truth - 1) > off_by ? 1 : 0;
    full += coefficient("bf16", form::expm1, b, m) * m >= 1 ? 1 : 0;
  }
  const auto share = [&](std::size_t part) { return static_cast<double>(part) / static_cast<double>(norms.size()); };
  const double middle = as_number(mean(norms));
  const double deviation = std::sqrt(std::max(0.0, squares / static_cast<double>(norms.size()) - middle * middle));
  return {middle,      deviation,  least(norms), greatest(norms), share(unstable),
          share(dead), share(off), share(full),  written(middle)};
}

void add_strength(const run_options& options, results& r) {
  frame norms = grid(
      options, "normalisations", {"mean", "deviation", "least", "largest", "unstable", "dead", "off", "full", "written"},
      [&](std::size_t dim, const std::string& how) { return sampled_norms(dim, how, options); },
      grid_axis<std::size_t>{"d", {16, 64, shown_dim}}, grid_axis<std::string>{"how", {"L2", "L1", "RMS", "none"}});
  const auto at = [&](const char* how, const char* column) { return norms.find({{"d", shown_dim}, {"how", how}}, column); };
  r.values("l2-caps-strength", evidence::certified(), {{"below_one", written(1)}, {"below_two", written(2)}});
  const std::size_t n = keys(options);
  r.values("l1-writes-little", evidence::sampled(n, options.seed, {}),
           {{"mean", at("L1", "mean")},
            {"deviation", at("L1", "deviation")},
            {"written_at_one", at("L1", "written")},
            {"naive_dead_share", at("L1", "dead")},
            {"naive_off_share", at("L1", "off")}});
  r.values("sample", {{"dim", shown_dim},
                      {"off_by", off_by},
                      {"share_error", 0.5 / std::sqrt(static_cast<double>(n))},
                      {"l1_expected", std::numbers::pi / (2 * shown_dim)},
                      {"l1_floor", 1.0 / shown_dim},
                      {"l1_least", at("L1", "least")},
                      {"l1_largest", at("L1", "largest")},
                      {"l2_dead", at("L2", "dead")},
                      {"l2_off", at("L2", "off")},
                      {"raw_deviation", at("none", "deviation")}});
  r.values(
      "raw-keys", evidence::sampled(n, options.seed, {}),
      {{"mean", at("none", "mean")}, {"euler_unstable_share", at("none", "unstable")}, {"saturated_share", at("none", "full")}});
  frame strengths({"how", "beta", "euler", "exact"});
  for (const char* how : {"L2", "L1", "RMS"}) {
    for (int i = 1; i <= 400; ++i) {
      const double x = i / 200.0 * at(how, "mean");
      strengths.add({how, i / 200.0, x <= 3 ? cell(x) : cell(), written(x)});
    }
  }
  r.table("strength", std::move(strengths));
  r.table("normalisation", std::move(norms));
}

results run(const run_options& options) {
  results r =
      in_parts(options, {{"coefficient", &add_coefficient}, {"eigenvalue", &add_eigenvalue}, {"strength", &add_strength}});
  r.parameters = {{"per_octave", per_octave(options)},
                  {"pairs", pairs(options)},
                  {"keys", keys(options)},
                  {"fp16_stride", fp16_stride(options)}};
  return r;
}

}  // namespace

extern const study efla_study{"efla", &run};

}  // namespace deltaproof
