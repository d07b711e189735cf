// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT

#include "deltaproof/number/real.hpp"
#include "deltaproof/rule/rules.hpp"
#include "deltaproof/scan/recurrent.hpp"
#include "studies/discretisation/forced.hpp"
#include "studies/discretisation/limits.hpp"

namespace deltaproof {
namespace {

constexpr int wide_bits = 256;
using wide = real<wide_bits>;

/// The exact state at time 1 under the key (cos t, sin t) and the value 1, from 0. In the frame that turns with the key,
/// z = (S k, S k'), k' the derivative of k: z' = M z + (1, 0), M = (-1 1; -1 0), so z(1) = M^-1 (e^M - I) (1, 0), and
/// e^M = e^-1/2 (cos w I + sin w / w (M + I/2)), w = sqrt(3)/2.
std::array<wide, 2> turned_exactly() {
  const wide w = sqrt(wide(3)) / 2, shrinks = exp(wide(wide(-1) / 2));
  const wide turns = sin(w) / w;
  const wide along = shrinks * turns, across = shrinks * (cos(w) + turns / 2) - 1;
  const wide c = cos(wide(1));
  const wide s = sin(wide(1));
  return {wide(along * c - across * s), wide(along * s + across * c)};
}

/// Of the state at time 1, the key frozen within each step at a place of it: 1 its end.
template <class Rule>
wide turning_error(std::size_t steps, const wide& place) {
  const wide h = wide(1) / static_cast<unsigned>(steps);
  const wide b = effective_step(Rule{}, h, wide(1));
  recurrence<wide> machine(2, 1);
  const std::array<wide, 1> value{wide(1)};
  for (std::size_t i = 0; i < steps; ++i) {
    const wide t = (wide(static_cast<unsigned>(i)) + place) * h;
    machine.step(std::array<wide, 2>{wide(cos(t)), wide(sin(t))}, value, b);
  }
  static const std::array<wide, 2> truth = turned_exactly();
  const wide dx = machine.state()(0, 0) - truth[0];
  const wide dy = machine.state()(1, 0) - truth[1];
  return sqrt(wide(dx * dx + dy * dy));
}

using namespace detail::discretisation;

constexpr double one_over_e = 0.36787944117144232160;
constexpr std::size_t fine_steps = 256;  // x = 1/256, where orders are measured
// 2(1 - 2u) for bf16, the largest step that is safe for every rounded unit key (study eigenvalues).
constexpr double safe_in_bf16 = 1.984375;

int largest_degree(const run_options& options) { return options.full ? 48 : 32; }
std::size_t tokens(const run_options& options) { return options.size(2000, 20000); }

const grid_axis<std::string> all_rules = shared::rule_axis();

cell order_of(int order) { return order == exact_order ? cell() : cell(order); }

void add_limits(const run_options&, results& r) {
  frame limits({"rule", "order", "limit", "beyond", "end"});
  std::map<std::string, cell> values;
  bool constants_agree = true;
  for_each_rule([&](auto rule) {
    using Rule = decltype(rule);
    // The value at a very large x: where R goes.
    const double far = rule.stability(rounded<fp64>::from_exact(1e9)).value();
    const cell end = std::fabs(far) > 2 ? cell(std::copysign(HUGE_VAL, far)) : cell(std::round(far));
    if constexpr (Rule::limit == std::numeric_limits<double>::infinity()) {
      limits.add({rule.name, order_of(Rule::order), cell(), cell(), end});
    } else {
      const rational beyond = Rule::stability(exact(std::nextafter(Rule::limit, 4.0)));
      constants_agree = constants_agree && inside(Rule::stability(exact(Rule::limit))) && !inside(beyond);
      values[std::string(rule.name)] = Rule::limit;
      limits.add({rule.name, order_of(Rule::order), Rule::limit, beyond < 0 ? "below" : "above", end});
    }
  });
  values["constants_agree"] = constants_agree;
  r.values("stability-limits", evidence::certified(), std::move(values));
  r.values("limits", {{"grid", limit_grid}, {"taylor_digits", limit_digits}, {"one_over_e", one_over_e}});
  r.table("limits", std::move(limits));

  frame curves({"rule", "x", "y"});  // R(x) until it leaves the figure
  for_each_rule([&](auto rule) {
    for (int i = 0; i <= 160; ++i) {
      const double x = i / 20.0, y = rule.stability(rounded<fp64>::from_exact(x)).value();
      if (!(std::fabs(y) <= 3.2)) break;
      curves.add({rule.name, x, y});
    }
  });
  r.table("stability", std::move(curves));
}

void add_taylor(const run_options& options, results& r) {
  grid_axis<int> degrees{"degree", {}};
  for (int i = 1; i <= largest_degree(options); ++i) degrees.quick.push_back(i);
  frame limits = grid(
      options, "Taylor polynomials", {"limit"}, [](int degree) -> frame_row { return {round_to<double>(taylor_limit(degree))}; },
      degrees);
  const std::vector<double> limit = limits.numbers("limit");
  const std::size_t last = limit.size() - 1;
  limits.derive("per_degree", [](const auto& row) { return row.number("limit") / row.number("degree"); });
  limits.derive("line", [&](const auto& row) {
    return limit[last] + (row.number("degree") - static_cast<double>(limit.size())) * one_over_e;
  });
  r.values("order-buys-little", evidence::certified(),
           {{"gain_per_order", (limit[last] - limit[last / 2]) / static_cast<double>(last - last / 2)},
            {"largest_order", limit.size()},
            {"limit_of_largest_order", limit[last]},
            {"never_less", std::is_sorted(limit.begin(), limit.end())}});
  r.table("taylor", std::move(limits));
}

/// The error at time 1 under the turning key, frozen within each step at its end, or in its middle.
wide error_of(std::string_view rule, std::string_view frozen, std::size_t steps) {
  wide result = 0;
  visit_rule(rule, [&](auto one) { result = turning_error<decltype(one)>(steps, frozen == "turning" ? wide(1) : wide(1) / 2); });
  return result;
}

void add_orders(const run_options& options, results& r) {
  std::map<std::string, int> orders;
  for_each_rule([&](auto rule) { orders[std::string(rule.name)] = rule.order; });
  const frame& measured = r.table(
      "orders", grid(
                    options, "orders of accuracy", {"order", "measured"},
                    [&](const std::string& rule, const std::string& frozen) -> frame_row {
                      // log2 of the ratio of the errors at two steps, the second half the first.
                      const wide coarse = error_of(rule, frozen, fine_steps), fine = error_of(rule, frozen, 2 * fine_steps);
                      return {order_of(orders.at(rule)), round_to<double>(wide(log2(wide(coarse / fine))))};
                    },
                    all_rules, grid_axis<std::string>{"sense", {"turning", "turning_middle"}}));
  const auto of_exact = [&](const char* frozen) { return measured.find({{"rule", "exact"}, {"sense", frozen}}, "measured"); };
  r.values("exact-for-frozen-keys", evidence::measured(),
           {{"order_frozen_at_end", of_exact("turning")}, {"order_frozen_in_middle", of_exact("turning_middle")}});
  r.values("measured", {{"steps", fine_steps}, {"more_steps", 2 * fine_steps}, {"bits", wide_bits}});
  grid_axis<std::size_t> steps{"steps", {}};
  for (std::size_t n = fine_steps; n >= 1; n /= 2) steps.quick.push_back(n);
  r.table("errors", grid(
                        options, "errors", {"x", "error"},
                        [](const std::string& rule, std::size_t n) -> frame_row {
                          return {1 / static_cast<double>(n), round_to<double>(error_of(rule, "turning", n))};
                        },
                        all_rules, steps));
}

/// DeltaNet at x = 1 against the flow, correctly rounded from the bits: |R - e^-x|, |R / e^-x - 1|, phi / phi_exact - 1.
void add_errors_at_one(const run_options&, results& r) {
  const wide one = 1, decay = exp(wide(-one)), off = euler::stability(one) - decay;
  r.values("deltanet-against-flow", evidence::certified(),
           {{"absolute", round_to<double>(wide(abs(off)))},
            {"relative", round_to<double>(wide(abs(wide(off / decay))))},
            {"written", round_to<double>(wide(euler::gain(one) / exact_flow::gain(one) - 1))}});
}

/// ln|R| a step, by rule and for Taylor polynomials.
void add_trial(const run_options&, results& r) {
  constexpr std::array<double, 6> strengths{1.5, 2.25, 2.75, 4, 16, 64};
  constexpr double longest = strengths.back();
  constexpr int highest = 32;
  frame growth({"method", "order", "explicit", "x", "growth"});
  const auto add = [&](const std::string& name, int order, bool is_explicit, const auto& stability) {
    for (const double x : strengths) {
      const wide size = abs(wide(stability(lift<wide>(x))));
      growth.add({name, order_of(order), is_explicit, x, size == 0 ? -HUGE_VAL : round_to<double>(wide(log(size)))});
    }
  };
  for_each_rule([&](auto rule) {
    add(std::string(rule.name), rule.order, rule.name == "euler" || rule.name.starts_with("rk"),
        [&](const wide& x) { return wide(rule.stability(x)); });
  });
  for (const int degree : {8, 16, highest})
    add("Taylor " + std::to_string(degree), degree, true, [&](const wide& x) { return detail::taylor_stability(x, degree); });

  const auto at = [&](const std::string& method, double x) { return growth.find({{"method", method}, {"x", x}}, "growth"); };
  const auto explodes = [&](const std::string& method) { return at(method, longest) > 0; };
  const std::string sharpest = "Taylor " + std::to_string(highest);
  // One pair of equal order with different fates refutes that order decides.
  const bool first_pair = explodes("euler") && !explodes("implicit");
  const bool second_pair = explodes("rk2") && !explodes("crank_nicolson");
  r.values("order-or-stability", evidence::certified(),
           {{"euler_and_implicit_part", first_pair},
            {"rk2_and_crank_nicolson_part", second_pair},
            {"order_32_explodes", explodes(sharpest)},
            {"stability_decides", (first_pair || second_pair) && explodes(sharpest)},
            {"taylor_32_growth", at(sharpest, longest)},
            {"implicit_growth", at("implicit", longest)}});
  const std::vector<double> explicit_ones = growth.where("explicit", true).where("x", longest).numbers("growth");
  r.values("explicit-always-explodes", evidence::measured(),
           {{"explicit_methods", explicit_ones.size()},
            {"exploding", std::count_if(explicit_ones.begin(), explicit_ones.end(), [](double g) { return g > 0; })}});
  r.values("trial", {{"shortest", strengths.front()},
                     {"longest", longest},
                     {"highest", highest},
                     {"implicit_divisor", 1 / implicit_euler::stability(longest)}});
  r.table("trial", std::move(growth));
}

/// DeltaNet with step beta and unit keys.
frame_row forced(double beta, const run_options& options) {
  const double stability = 1 - beta, gain = energy_gain(stability);
  const double repeated = worst_values(stability, 4000).back();
  const double grown = adversary(stability, tokens(options)).back() / (static_cast<double>(tokens(options)) * gain);
  return {stability, gain, repeated, std::fabs(repeated / repeated_gain(stability) - 1), grown};
}

void add_forced(const run_options& options, results& r) {
  const grid_axis<double> betas{"beta", {0.5, 1, 1.5, 1.75, 1.875, 1.9375, safe_in_bf16}};
  const std::size_t after = tokens(options);
  frame rows = grid(
      options, "forced states", {"R", "gain", "repeated", "repeated_error", "adversary"},
      [&](double beta) { return forced(beta, options); }, betas);
  const auto grown_to = [&](double stability) { return std::sqrt(adversary(stability, after).back()); };
  const double exact_at_1 = shared::stability_of("exact", 1);
  r.values("forced-bound-runs", evidence::worst_found(rows.size() * after, options.seed),
           {{"largest_share", rows.over("adversary", greatest)}, {"adversary_share", rows.over("adversary", least)}});
  r.values("forced-repeated-key", evidence::measured(),
           {{"gain_at_safe_beta", repeated_gain(1 - safe_in_bf16)},
            {"alternating_at_two", worst_values(-1, after).back()},
            {"tokens", after},
            {"largest_relative_error_of_runs", rows.over("repeated_error", greatest)}});
  r.values("forced-all-rules", evidence::measured(),
           {{"exact_at_1", grown_to(exact_at_1)}, {"euler_at_1", grown_to(0)}, {"tokens", after}, {"euler_at_2", grown_to(-1)}});
  r.values("steps", {{"least", betas.quick.front()}, {"safe", safe_in_bf16}});
  r.table("forced", std::move(rows));

  frame lines({"beta", "one_key"});
  for (int i = 1; i <= 399; ++i) {
    lines.add({i / 200.0, repeated_gain(1 - i / 200.0)});
  }
  r.table("forced-lines", std::move(lines));
  frame grown({"how", "token", "length"});
  for (const auto& [how, stability] : {std::pair{"delta_2", -1.0}, std::pair{"delta_1", 0.0}, std::pair{"efla_1", exact_at_1}}) {
    const std::vector<double> squares = adversary(stability, after);
    for (const std::size_t t : shared::checkpoints(after)) grown.add({how, t, std::sqrt(squares[t - 1])});
  }
  r.table("grown", std::move(grown));
}

results run(const run_options& options) {
  results r = in_parts(options, {{"limits", &add_limits},
                                 {"taylor", &add_taylor},
                                 {"orders", &add_orders},
                                 {"errors", &add_errors_at_one},
                                 {"trial", &add_trial},
                                 {"forced", &add_forced}});
  r.parameters = {{"tokens", tokens(options)}, {"largest_degree", largest_degree(options)}};
  return r;
}

}  // namespace

extern const study discretisation_study{"discretisation", &run};

}  // namespace deltaproof
