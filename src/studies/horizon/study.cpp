// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT

#include "studies/horizon/growth.hpp"

namespace deltaproof {
namespace {

using namespace detail::horizon;

constexpr std::size_t horizon = 100000;
constexpr double fp32_range = 38.531839444989587;  // log10 of the largest fp32
constexpr double chosen_norm = 4;                  // |k|^2 of the figure of four kinds of keys
constexpr double log10_e = 0.43429448190325182765;

const grid_axis<key_kind> kinds{"kind", {key_kinds.begin(), key_kinds.end()}};
const grid_axis<double> norms{"norm", {0.25, 1, chosen_norm, 16, 64}};
/// x phi(x), in fp64 with a correctly rounded exponential.
double strength_at(const std::string& rule, double x) {
  double result = 0;
  visit_rule(rule, [&](auto r) {
    const auto number = rounded<fp64>::from_exact(x);
    result = (number * r.gain(number)).value();
  });
  return result;
}

/// Rows of tokens, both bounds of log10 of the norm, and their middle.
std::vector<frame_row> course(const key_set& keys, std::span<const double> strength, std::span<const std::size_t> at) {
  std::vector<frame_row> rows;
  for (const auto& [lower, upper] : product_growth(keys, strength, at))
    rows.push_back({at[rows.size()], lower, upper, 0.5 * (lower + upper)});
  return rows;
}

/// First of 1, 2, ... at which a straight line of that slope passes the range of fp32.
std::uint64_t leaves_fp32(double log10_per_token) { return static_cast<std::uint64_t>(std::ceil(fp32_range / log10_per_token)); }

/// Norms of products of every rule and norm on every kind of keys, beside |R|^(T/d) <= |P_T| <= max(1, |R|)^T.
frame all_products(const run_options& options, const std::vector<key_set>& keys, const grid_axis<std::string>& rules) {
  const std::vector<std::size_t> at = checkpoints(horizon), short_run = checkpoints(1000);
  frame all = grid(
      options, "products", {"tokens", "lower", "upper", "middle", "log_r"},
      [&](key_kind kind, double norm, const std::string& rule) {
        const double strength = strength_at(rule, norm);
        const double log_r = log10_of(std::fabs(shared::stability_of(rule, norm)));
        // One repeated key has a closed form: a short run checks it.
        auto rows = course(keys[static_cast<std::size_t>(kind)], {&strength, 1}, kind == key_kind::repeated ? short_run : at);
        for (frame_row& row : rows) row.emplace_back(log_r);
        return rows;
      },
      kinds, norms, rules);
  all.derive("high", [](const auto& row) { return row.number("tokens") * std::max(0.0, row.number("log_r")); });
  all.derive("outside", [](const auto& row) {
    // Twice d 2^-52 log10(e) a token, what rounding may add to a logarithm.
    const double slack = 1e-9 + static_cast<double>(key_dim) * row.number("tokens") * 0x1p-52;
    const double low = row.number("tokens") / static_cast<double>(key_dim) * row.number("log_r");
    return row.number("lower") > row.number("high") + slack || row.number("upper") < low - slack;
  });
  return all;
}

void add_growth(const run_options& options, results& r) {
  const grid_axis<std::string> rules = rule_axis();
  std::vector<key_set> keys;
  for (const key_kind kind : key_kinds) keys.push_back(make_keys(kind, horizon, key_dim, options.seed));
  const frame all = all_products(options, keys, rules);
  const frame last = all.where("tokens", horizon);
  const auto end = last.finder({"kind", "norm", "rule"});
  frame table = grid(
      options, "norms at the end", {"R", "largest", "exponent", "fresh", "repeated", "vocabulary", "clusters"},
      [&](double norm, const std::string& rule) -> frame_row {
        const double stability = shared::stability_of(rule, norm), size = std::fabs(stability);
        return {stability,
                std::max(1.0, size),
                fresh_exponent(stability, key_dim),
                end("fresh", norm, rule, "middle"),
                std::max(0.0, log10_of(size) * horizon),
                size > 1 ? end("vocabulary", norm, rule, "middle") : 0.0,
                end("clusters", norm, rule, "middle")};
      },
      norms, rules);
  const frame inside = all.where([](const auto& row) { return row.number("log_r") <= 0; });
  const double above_one = std::max(0.0, inside.over("lower", greatest));
  frame repeated = all.where("kind", "repeated");
  repeated.derive("off", [](const auto& row) { return row.number("middle") - row.number("high"); });
  const std::size_t outside = all.where("outside", true).size();
  r.values("product-norms", evidence::measured(),
           {{"norms", all.size()},
            {"outside", outside},
            {"largest_log10_with_R_at_most_1", above_one},
            {"repeated_key_log10_deviation", repeated.over("off", worst)}});
  const auto bounded = [](const auto& row) {
    const std::string rule = row["rule"].text();
    return rule == "exact" || rule == "implicit" || rule == "crank_nicolson";
  };
  const auto at_the_end = table.finder({"norm", "rule"});
  const double euler = at_the_end(chosen_norm, "euler", "R");
  const double rate = at_the_end(chosen_norm, "euler", "fresh") / static_cast<double>(horizon);
  r.values("euler-against-efla", evidence::measured(),
           {{"euler_log10_per_token", rate},
            {"theory_log10_per_token", fresh_exponent(euler, key_dim) * log10_e},
            {"euler_fresh_tokens_to_fp32_overflow", leaves_fp32(rate)},
            {"euler_repeated_tokens_to_fp32_overflow", leaves_fp32(log10_of(std::fabs(euler)))},
            {"largest_log10_of_bounded_rules", all.where(bounded).over("lower", greatest)}});
  r.values("growth", {{"inside", all.size() - outside},
                      {"excess", above_one / log10_e},
                      {"norm", chosen_norm},
                      {"top", fp32_range},
                      {"bottom", -fp32_range},
                      {"words", vocabulary_size}});
  r.table("products", all.where("kind", "fresh"));
  r.table("growth", std::move(table));
}

results run(const run_options& options) {
  results r = in_parts(options, {{"growth of products", &add_growth}, {"exponents", &add_exponents}});
  r.parameters = {{"key_dim", key_dim}, {"tokens", horizon}, {"exponent_tokens", exponent_tokens(options)}};
  return r;
}

}  // namespace

extern const study horizon_study{"horizon", &run};

}  // namespace deltaproof
