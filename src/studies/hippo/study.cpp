// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT

#include "deltaproof/algebra/spectrum.hpp"
#include "deltaproof/rule/rules.hpp"
#include "deltaproof/scan/recurrent.hpp"
#include "studies/hippo/matrices.hpp"

namespace deltaproof {
namespace {

using namespace detail::hippo;
using shared::exponentials_of;
using shared::norm_1;
using shared::scaled;
using shared::sum;

constexpr int norm_bits = 128;          // whose bits do not depend on the machine, as those of a decomposition in double might
constexpr int smallest_exponent = -20;  // of the steps
constexpr int largest_exponent = 4;
constexpr int smallest_shown = -8;  // of the steps with norms
constexpr std::size_t key_dim = 8;

std::size_t size_of_matrices(const run_options& options) { return options.size(16, 32); }
std::size_t streams(const run_options& options) { return options.size(32, 400); }
std::size_t tokens(const run_options& options) { return options.size(200, 1000); }

matrix<wide> difference(const matrix<wide>& a, const matrix<wide>& b) { return sum(a, scaled(b, wide(-1))); }

/// In the 1-norm.
double relative(const matrix<wide>& computed, const matrix<wide>& truth) {
  return round_to<double>(wide(norm_1(difference(computed, truth)) / norm_1(truth)));
}

/// Of both parts, relative.
double radius_of(const shared::exponentials<wide>& e) {
  const auto part = [](const shared::bound_number& error, const matrix<wide>& m) {
    return round_to<double>(shared::bound_number(error / round_to<shared::bound_number>(norm_1(m))));
  };
  return std::max(part(e.exp_error, e.exp), part(e.phi_error, e.phi));
}

double norm_2(const matrix<wide>& m) {
  matrix<real<norm_bits>> rounded_once(m.rows(), m.cols());
  for (std::size_t i = 0; i < m.size(); ++i) rounded_once.data()[i] = round_to<real<norm_bits>>(m.data()[i]);
  return round_to<double>(spectral_norm(rounded_once));
}

/// The transition e^(tA) of one step by the rules over the bits of the ruler; it and phi_1(tA), which the input takes, in double.
frame_row compare(kind which, double step, std::size_t n) {
  const matrix<double> a = make(which, n);
  const matrix<wide> exact_a = lifted(a);
  const wide t = lift<wide>(step);
  const auto truth = exponentials_of(scaled(exact_a, t));
  const matrix<wide> bilinear = bilinear_step(exact_a, t);
  const matrix<wide> euler = euler_step(exact_a, t);

  const auto in_double = exponentials_of(scaled(a, step));
  const double exp_error = relative(lifted(in_double.exp), truth.exp);
  const double phi_error = relative(lifted(in_double.phi), truth.phi);
  // A^-1 (e^(tA) - I) / t, where A has an inverse.
  cell inverse;
  try {
    const matrix<double> minus_one = sum(in_double.exp, scaled(identity<double>(n), -1.0));
    inverse = relative(lifted(scaled(factored<double>(a).solve(minus_one), 1 / step)), truth.phi);
  } catch (const domain_error&) {
  }
  frame_row row{step * norm_1(a), radius_of(truth), relative(bilinear, truth.exp),  relative(euler, truth.exp),
                exp_error,        phi_error,        std::max(exp_error, phi_error), inverse};
  // Decompositions take most of the time: only those that are shown.
  const int exponent = std::ilogb(step);
  const bool shown = exponent >= smallest_shown && (which == kind::legs || which == kind::rank_one);
  for (const matrix<wide>* m : {&truth.exp, &bilinear, &euler})
    row.push_back(shown || exponent == 0 || exponent == largest_exponent ? cell(norm_2(*m)) : cell());
  return row;
}

void add_orders(const frame& errors, results& r) {
  frame slopes({"bilinear", "euler"});
  for (const kind which : kinds) {
    const frame one = errors.where("kind", name_of(which));
    const auto slope = [&](const char* rule) { return shared::ln(one[1].number(rule) / one[0].number(rule)) / shared::ln(2); };
    slopes.add({slope("bilinear"), slope("euler")});
  }
  const double low = slopes.over("bilinear", least), high = slopes.over("bilinear", greatest);
  const auto at_1 = [&](const char* which) { return errors.find({{"kind", which}, {"step", 1.0}}, "bilinear"); };
  r.values("bilinear-order", evidence::measured(),
           {{"slope_low", low},
            {"slope_high", high},
            {"euler_slope_low", slopes.over("euler", least)},
            {"euler_slope_high", slopes.over("euler", greatest)},
            {"order_two", low > 2.9 && high < 3.1},
            {"legs_at_1", at_1("legs")}});
  r.values("bilinear", {{"rank_one_at_1", at_1("rank_one")}, {"defective_at_1", at_1("defective")}});
}

void add_norms(const frame& errors, double largest, results& r) {
  const frame legs = errors.where("kind", "legs");
  const auto at = [&](double step, const char* column) { return legs.find({{"step", step}}, column); };
  r.values("bilinear-rings", evidence::measured(),
           {{"exact_norm_at_1", at(1, "norm_exact")},
            {"bilinear_norm_at_1", at(1, "norm_bilinear")},
            {"exact_norm", at(largest, "norm_exact")},
            {"bilinear_norm", at(largest, "norm_bilinear")},
            {"euler_norm_at_1", at(1, "norm_euler")},
            {"rings", at(largest, "norm_bilinear") > 0.5 && at(largest, "norm_exact") < 0.01}});
}

void add_inverse(const frame& errors, double smallest, results& r) {
  std::size_t refused = 0;
  for (const kind which : {kind::rank_one, kind::nilpotent, kind::singular}) {
    const frame one = errors.where("kind", name_of(which)).where("step", 1.0);
    refused += is_missing(one.at(0, "inverse")) ? 1 : 0;
  }
  const auto legs = [&](double step, const char* column) { return errors.find({{"kind", "legs"}, {"step", step}}, column); };
  r.values("inverse-formula", evidence::measured(),
           {{"legs_smallest_step", legs(smallest, "inverse")},
            {"legs_step_1", legs(1, "inverse")},
            {"refused", refused},
            {"unnoticed", 3 - refused}});
  r.values("series", {{"legs_smallest_step", legs(smallest, "phi")}, {"gain", legs(smallest, "inverse") / legs(1, "inverse")}});
}

void add_discretisations(const run_options& options, results& r) {
  const std::size_t n = size_of_matrices(options);
  grid_axis<double> steps{"step", {}};
  for (int i = smallest_exponent; i <= largest_exponent; ++i) steps.quick.push_back(detail::power_of_two(i));
  frame errors = grid(
      options, "matrix exponentials",
      {"length", "radius", "bilinear", "euler", "exp", "phi", "exact", "inverse", "norm_exact", "norm_bilinear", "norm_euler"},
      [&](kind which, double step) { return compare(which, step, n); }, grid_axis<kind>{"kind", {kinds.begin(), kinds.end()}},
      steps);
  // Rounding A already moves e^(tA) by |tA| u: errors are compared with that.
  for (const char* part : {"exp", "phi"}) {
    errors.derive(std::string(part) + "_units", [&](const auto& row) {
      return row.number(part) / (unit_roundoff(fp64) * std::max(1.0, row.number("length")));
    });
  }
  const double smallest = steps.quick.front(), largest = steps.quick.back();
  const double worst_exp = errors.over("exp_units", greatest), worst_phi = errors.over("phi_units", greatest);
  r.values("ruler", evidence::certified(), {{"largest_radius", errors.over("radius", greatest)}, {"pairs", errors.size()}});
  r.values("exact-needs-no-inverse", evidence::measured(),
           {{"worst_exp", worst_exp}, {"worst_phi", worst_phi}, {"accurate", worst_exp < 100 && worst_phi < 100}});
  double squares = 0;
  for (std::size_t i = 0; i < n; ++i) squares -= entry(kind::rank_one, n, i, i);
  r.values("steps", {{"smallest", smallest},
                     {"largest", largest},
                     {"shown", detail::power_of_two(smallest_shown)},
                     {"longest", errors.over("length", greatest)},
                     {"key_square", squares},
                     {"bits", ruler_bits},
                     {"norm_bits", norm_bits}});
  add_inverse(errors, smallest, r);
  add_orders(errors, r);
  add_norms(errors, largest, r);
  r.table("errors", std::move(errors));
}

/// Relative 1-norm error of f(x y^T) = f(0) I + x [(f(y^T x) - f(0))/(y^T x)] y^T against the series, for exp and phi_1; y^T x =
/// 0 reads the bracket as f'(0).
void add_rank_one(const run_options& options, results& r) {
  constexpr std::size_t cases = 24;
  philox random(options.seed, 0x6869707100000000U);
  double largest = 0, radius = 0;
  std::size_t zeros = 0;
  for (std::size_t i = 0; i < cases; ++i) {
    // Multiples of 1/8: y^T x is exact, and every fourth one is made 0.
    std::vector<double> x(key_dim), y(key_dim);
    for (auto* v : {&x, &y}) {
      for (double& one : *v) one = (static_cast<double>(random.below(33)) - 16) / 8;
    }
    for (std::size_t j = 0; j < key_dim; ++j) {
      if (i % 4 == 0) y[j] = j % 2 == 0 ? x[j + 1] : -x[j - 1];
      if (i % 4 == 1) y[j] = -x[j];
    }
    matrix<wide> m(key_dim, key_dim);
    wide s = 0;
    for (std::size_t j = 0; j < m.size(); ++j) m.data()[j] = lift<wide>(x[j / key_dim]) * lift<wide>(y[j % key_dim]);
    for (std::size_t j = 0; j < key_dim; ++j) s = s + m(j, j);
    const auto truth = exponentials_of(m);
    // (e^s - 1)/s and (phi_1(s) - 1)/s, at s = 0 the derivatives 1 and 1/2.
    const wide first = s == 0 ? wide(1) : wide(expm1(s) / s);
    const wide second = s == 0 ? wide(wide(1) / 2) : wide((first - 1) / s);
    largest = std::max({largest, relative(euler_step(m, first), truth.exp), relative(euler_step(m, second), truth.phi)});
    radius = std::max(radius, radius_of(truth));
    zeros += s == 0 ? 1 : 0;
  }
  // The closed form itself is rounded to the bits of the ruler, a few operations of it.
  r.values("rank-one-formula", evidence::worst_found(cases, options.seed),
           {{"largest_difference", largest},
            {"radius", radius},
            {"holds", largest <= radius + 0x1p-480},
            {"with_zero_product", zeros}});
  r.values("rank-one", {{"cases", cases}, {"bits", ruler_bits}});
}

/// Four readings of "the equation of token t holds on [t - eta_t, t]", each solved exactly by the exact flow of unit keys. clock:
/// token t's equation acts for a time eta_t, intervals laid end to end; this is the update formula. waiting: nothing happens
/// between t - 1 and t - eta_t; needs eta <= 1 and is the same. running: token t's equation holds on all of (t - 1, t] and eta is
/// only where one starts to look. lingering: token t - 1's equation goes on until t - eta_t; where eta > 1 the new equation
/// starts before the old one is over, and takes over at t - 1.
struct token {
  std::vector<double> k, v;
  double eta = 0;
};
matrix<double> solve(const std::string& how, const std::vector<token>& sequence) {
  recurrence<double> machine(key_dim, 2);
  const auto act = [&](const token& of, double time) {
    if (time == 0) return;
    machine.step(of.k, of.v, effective_step(exact_flow{}, rounded<fp64>::from_exact(time), rounded<fp64>::from_exact(1)).value());
  };
  for (std::size_t t = 0; t < sequence.size(); ++t) {
    const token& now = sequence[t];
    if (how == "running") {
      act(now, 1);
    } else if (how == "lingering") {
      if (t > 0) act(sequence[t - 1], std::max(0.0, 1 - now.eta));
      act(now, std::min(1.0, now.eta));
    } else {
      act(now, now.eta);
    }
  }
  return machine.state();
}

/// eta uniform in (low, high); where high = low it is that number.
struct eta_range {
  std::string name;
  double low = 0, high = 0;
};

/// |S' - S| / |S|, S by the clock, S' by the other reading, after all tokens, and how many of the tokens have eta > 1.
frame_row distance(const eta_range& etas, const std::string& how, std::size_t stream, const run_options& options) {
  philox random(options.seed, 0x6869707000000000U + stream);
  std::vector<token> sequence(tokens(options));
  std::size_t above = 0;
  for (token& one : sequence) {
    one.k.resize(key_dim);
    one.v.resize(2);
    shared::draw(random, one.k);
    (void)shared::normalise(one.k);
    shared::draw(random, one.v);
    one.eta = etas.low + (etas.high - etas.low) * random.uniform();
    above += one.eta > 1 ? 1 : 0;
  }
  if (how == "waiting" && etas.high > 1) return {cell(), above};
  return {shared::nearness_of(solve(how, sequence).entries(), solve("clock", sequence).entries()).error, above};
}

cell deviation(std::span<const double> x) {
  if (x.empty()) return {};
  const double middle = as_number(mean(x));
  return std::sqrt(std::max(0.0, shared::squared_norm(x) / static_cast<double>(x.size()) - middle * middle));
}

void add_intervals(const run_options& options, results& r) {
  // eta = 1, a sigmoid's range, and the range of "negative eigenvalues".
  const grid_axis<eta_range> ranges{
      "eta", {{"one", 1, 1}, {"short", 0.5, 0.5}, {"long", 0.9, 0.9}, {"sigmoid", 0, 1}, {"doubled", 0, 2}}};
  const grid_axis<std::string> readings{"reading", {"clock", "waiting", "running", "lingering"}};
  const frame all = grid(
      options, "intervals", {"gap", "above"},
      [&](const eta_range& etas, const std::string& how, std::size_t stream) { return distance(etas, how, stream, options); },
      ranges, readings, draws(streams(options), streams(options)));
  const auto looked_at = static_cast<double>(streams(options) * tokens(options));
  frame gaps = all.by({"eta", "reading"}, {{"mean", "gap", mean}, {"deviation", "gap", deviation}, {"above", "above", total}});
  gaps.derive("overlapping", [&](const auto& row) { return row.number("above") / looked_at; });
  const auto at = gaps.finder({"eta", "reading"});
  const double at_one = all.where("eta", "one").over("gap", worst);
  const double running = at("sigmoid", "running", "mean"), lingering = at("sigmoid", "lingering", "mean");
  r.values("intervals-assume-one", evidence::sampled(streams(options), options.seed, {}),
           {{"largest_at_one", at_one},
            {"running", running},
            {"lingering", lingering},
            {"only_at_one", at_one < 1e-12 && running > 0.05 && lingering > 0.05}});
  r.values("clock-reading", evidence::sampled(streams(options) * tokens(options), options.seed, {}),
           {{"overlapping_share", at("doubled", "clock", "overlapping")}});
  r.values("readings", {{"running_deviation", at("sigmoid", "running", "deviation")},
                        {"lingering_deviation", at("sigmoid", "lingering", "deviation")},
                        {"waiting", all.where("reading", "waiting").over("gap", worst)},
                        {"share_error", 0.5 / std::sqrt(looked_at)},
                        {"short", ranges.quick[1].low},
                        {"long", ranges.quick[2].low}});
  r.table("readings", std::move(gaps));
}

results run(const run_options& options) {
  results r =
      in_parts(options, {{"discretisations", &add_discretisations}, {"rank-one", &add_rank_one}, {"intervals", &add_intervals}});
  r.parameters = {{"size", size_of_matrices(options)},
                  {"smallest_exponent", smallest_exponent},
                  {"largest_exponent", largest_exponent},
                  {"streams", streams(options)},
                  {"tokens", tokens(options)},
                  {"key_dim", key_dim}};
  return r;
}

}  // namespace

extern const study hippo_study{"hippo", &run};

}  // namespace deltaproof
