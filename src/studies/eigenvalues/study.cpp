// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
//
// The study `eigenvalues`: what rounding does to the one eigenvalue of I - b k k^T that a rule controls.

#include "deltaproof/rule/rules.hpp"
#include "studies/eigenvalues/parts.hpp"

namespace deltaproof {
namespace {

using namespace detail::eigenvalues;
using detail::shared::top;

constexpr std::size_t longest = 256;  // entries of a key

std::size_t keys_of(const run_options& o) { return o.size(10'000, 100'000); }
std::size_t samples_of(const run_options& o) { return o.size(200, 5'000); }
std::size_t matrices_of(const run_options& o) { return o.size(100, 1'000); }

std::uint64_t sum_of(const frame& f, std::string_view column) { return static_cast<std::uint64_t>(f.over(column, total)); }

/// The rules that leave their interval, with `rule_from` and `rule_by` for each.
std::map<std::string, cell> leavers(const frame& rows, std::string_view from, std::string_view by) {
  std::map<std::string, cell> result;
  std::string names;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    if (is_missing(rows.at(i, by))) continue;
    const std::string rule = rows.at(i, "rule").text();
    names += (names.empty() ? "" : ", ") + rule;
    result[rule + "_from"] = rows.at(i, from);
    result[rule + "_by"] = rows.at(i, by);
  }
  result["rules"] = names;
  return result;
}

std::map<std::string, cell> worst_case(const frame::row& row, std::string_view worst) {
  return {{"worst_rule", row["rule"]},
          {"worst_in_u", row[worst]},
          {"beta", row["worst_beta"]},
          {"rounded_norm", row["worst_n"]},
          {"lambda", row["worst_lambda"]}};
}

void add_bf16_rules(const frame& everything, results& r) {
  const frame rows = everything.where("format", "bf16");
  r.values("bf16-rules-outside-unit-interval", evidence::exhaustive(sum_of(rows, "cases")),
           worst_case(top(rows, "worst_unit"), "worst_unit"));
  r.values("bf16-unit", leavers(rows, "first_unit", "unit_by"));
  const frame exact = rows.where("rule", exact_flow::name);
  std::map<std::string, cell> decay = worst_case(top(rows, "worst_decay"), "worst_decay");
  decay["steps_outside"] = sum_of(rows, "outside_decay");
  decay["steps_negative"] = sum_of(rows, "negative");
  decay["exact_leaves_from"] = exact.at(0, "first_decay");
  decay["exact_leaves_by_u"] = exact.at(0, "worst_decay");
  r.values("bf16-rules-outside-zero-one", evidence::exhaustive(sum_of(rows.where("promises_decay", true), "cases")), decay);
  r.values("bf16-decay", leavers(rows, "first_decay", "decay_by"));
}

void add_rules(const run_options& options, results& r) {
  const frame& all = r.table("rules", survey_rules(options, samples_of(options)));

  const frame eulers = all.where("rule", euler::name);
  r.values("euler-adds-nothing", evidence::proved(),
           {{"largest_error_in_u", eulers.over("worst_error", worst)}, {"steps_checked", sum_of(eulers, "cases")}});
  const frame once = all.where("rounded", "step_only");
  r.values("one-rounding-of-the-step", evidence::proved(),
           {{"steps_checked", sum_of(once, "cases")}, {"steps_beyond", sum_of(once, "beyond_bound")}});

  const frame everything = all.where("rounded", "norm_too");
  add_bf16_rules(everything, r);
  const frame eight = everything.where([](const auto& row) { return format_named(row["format"].text()).storage_bits == 8; });
  const frame::row unit = top(eight, "worst_unit"), decay = top(eight, "worst_decay");
  r.values("eight-bit-rules", evidence::exhaustive(sum_of(eight, "cases")),
           {{"unit_in_u", unit["worst_unit"]}, {"decay_in_u", decay["worst_decay"]}});
  r.values("eight", {{"unit_rule", unit["rule"]},
                     {"unit_format", unit["format"]},
                     {"lambda", to_double(rational(unit["worst_lambda"].text()))},
                     {"decay_rule", decay["rule"]},
                     {"decay_format", decay["format"]}});

  const frame wide = everything.where("exhaustive", false);
  const frame::row wide_unit = top(wide, "worst_unit"), wide_decay = top(wide, "worst_decay");
  r.values("wider-formats-rules", evidence::worst_found(sum_of(wide, "cases"), options.seed),
           {{"unit_in_u", wide_unit["worst_unit"]}, {"decay_in_u", wide_decay["worst_decay"]}});
  r.values("wider", {{"unit_rule", wide_unit["rule"]},
                     {"unit_format", wide_unit["format"]},
                     {"decay_rule", wide_decay["rule"]},
                     {"decay_format", wide_decay["format"]}});
}

/// What is proved of a safe beta.
void add_safe_beta(const run_options& options, const frame& once, results& r) {
  bool proved = true;
  for (const format& f : all_formats().quick) {
    for (const std::size_t dim : key_dims().quick) proved = proved && safe_step_is_proved(f, dim);
  }
  const auto safe = [](const format& f) { return 2 * (1 - 2 * unit_roundoff(f)); };
  r.values("safe-beta", evidence::proved(),
           {{"keys_that_leave", sum_of(once, "leaves_at_safe")},
            {"condition_holds", proved},
            {"bf16_half_life", detail::shared::ln(2) / -detail::shared::ln(1 - 4 * unit_roundoff(bf16))}});
  r.values("safe", {{"bf16", safe(bf16)}, {"fp32", safe(fp32)}});
  frame all = grid(
      options, "safe beta", {"u", "bound", "safe", "unsafe", "found", "safe_for_found"},
      [&](const format& f) -> frame_row {
        const double u = unit_roundoff(f), bound = to_double(2 / ((1 + exact(u)) * (1 + exact(u))));
        const frame own = once.where("format", name_of(f));
        const cell unsafe = f.precision < 8 ? cell() : cell(2 * (1 - u));
        return {u, bound, safe(f), unsafe, own.over("largest", greatest), own.over("safe_beta", least)};
      },
      all_formats());
  r.table("safe-beta", std::move(all));
}

void add_keys(const run_options& options, results& r) {
  const frame& drawn = r.table("keys", survey_norms(options, keys_of(options)));
  const frame once = drawn.where("bin", 0);
  const std::uint64_t keys = sum_of(once, "keys");
  const frame::row most = top(once, "share_above_one"), fewest = top(once, "share_above_one", -1);
  const auto share_above_one = [](const frame& of) {
    return static_cast<double>(sum_of(of, "above_one")) / static_cast<double>(sum_of(of, "keys"));
  };
  r.values("beta-two-leaves", evidence::sampled(keys, options.seed, {}),
           {{"share", share_above_one(once)},
            {"bf16", share_above_one(once.where("format", "bf16"))},
            {"least_share", fewest["share_above_one"]},
            {"largest_share", most["share_above_one"]}});
  r.values("share", {{"least_format", fewest["format"]},
                     {"least_dim", fewest["dim"]},
                     {"largest_format", most["format"]},
                     {"largest_dim", most["dim"]},
                     {"standard_error", 0.5 / std::sqrt(static_cast<double>(keys_of(options)))}});
  const frame::row longest_key = top(once, "largest");
  r.values("largest-norm-found", evidence::worst_found(keys, options.seed),
           {{"excess_in_u", longest_key["largest"]},
            {"squared_norm", longest_key["largest_norm"]},
            {"leave_below_two", sum_of(once, "leaves_below_two")}});
  r.values("largest-norm", {{"format", longest_key["format"]}, {"dim", longest_key["dim"]}, {"keys", keys}});
  add_safe_beta(options, once, r);
}

void add_sigmoid(const run_options& options, results& r) {
  const frame& all = r.table("sigmoid", survey_sigmoid(options));
  const auto at = all.finder({"case"});
  const frame exhaustive = all.where("exhaustive", true);
  r.values("sigmoid-saturates", evidence::exhaustive(sum_of(exhaustive, "evaluations")),
           {{"bf16", at("bf16", "one_from")},
            {"fp16", at("fp16", "one_from")},
            {"bf16_through_fp32", at("bf16 to fp32", "one_from")},
            {"monotone", exhaustive.over("monotone", least) == 1}});
  r.values("sigmoid-saturates-wide", evidence::proved(),
           {{"fp32_one", at("fp32", "one_from")},
            {"fp64_one", at("fp64", "one_from")},
            {"fp32_zero", at("fp32", "zero_until")},
            {"fp64_zero", at("fp64", "zero_until")}});
}

void add_transitions(const run_options& options, results& r) {
  const frame& all = r.table("transitions", survey_transitions(options, matrices_of(options)));
  frame law = all.by({"format", "dim", "beta"}, {{"keys", "added", size_of},
                                                 {"expansive", "expansive", shared::count_of},
                                                 {"proved", "proved", shared::count_of},
                                                 {"least", "radius_excess", least},
                                                 {"median", "radius_excess", median},
                                                 {"largest", "radius_excess", greatest},
                                                 {"added", "added", greatest}});
  constexpr std::size_t shown_dim = 64;
  const frame bf16_rows = all.where(
      [](const auto& row) { return row["format"] == cell("bf16") && row.number("dim") == shown_dim && row.number("beta") <= 1; });
  const double middle = bf16_rows.over("radius_excess", median);
  const std::vector<double> disagreements = all.numbers("disagreement");
  r.values("materialised-expands", evidence::sampled(all.size(), options.seed, {}),
           {{"expansive", sum_of(all, "expansive")},
            {"bf16_median_in_u", middle},
            {"double_agrees_to_1e-12", as_number(worst(disagreements)) < 1e-12}});
  r.values("bf16-excess", {{"dim", shown_dim},
                           {"least", bf16_rows.over("radius_excess", least)},
                           {"largest", bf16_rows.over("radius_excess", greatest)},
                           {"doubles_in", std::round(detail::shared::ln(2) / (middle * unit_roundoff(bf16)))}});
  const frame contradicting = law.where([](const auto& row) { return row.number("proved") > row.number("expansive"); });
  r.values("materialised-expands-surely", evidence::proved(),
           {{"decided", sum_of(all, "proved")},
            {"matrices", all.size()},
            {"contradicting", sum_of(contradicting, "proved") - sum_of(contradicting, "expansive")}});
  r.table("materialised", std::move(law));
  frame exact_factor({"beta", "x", "y"});
  for (const double beta : {0.5, 1.0, 2.0}) {
    for (const double x : {-1.5, 0.0, 1.5}) exact_factor.add({beta, x, beta == 2 ? std::max(0.0, 2 * x) : 0.0});
  }
  r.table("exact-factor", std::move(exact_factor));
}

results run(const run_options& options) {
  results r = in_parts(options, {{"rules", &add_rules},
                                 {"unit keys", &add_keys},
                                 {"sigmoids", &add_sigmoid},
                                 {"materialised transitions", &add_transitions}});
  const auto dims = key_dims().quick;
  r.values("dims", {{"least", dims.front()}, {"most", longest}});
  r.values("bins", {{"width", bin_width}});
  r.parameters = {{"keys_per_dim", keys_of(options)},
                  {"rule_samples_per_octave", samples_of(options)},
                  {"transition_keys", matrices_of(options)}};
  return r;
}

}  // namespace

extern const study eigenvalues_study{"eigenvalues", &run};

}  // namespace deltaproof

// Theorems behind this file, by their names in proofs/README.md.
// proved: float.key_norm.safe_step, code.constants.safe_beta_bf16_is_safe, code.constants.unsafe_beta_bf16_is_not
