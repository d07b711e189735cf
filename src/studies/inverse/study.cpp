// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT

#include <tuple>

#include "studies/inverse/survey.hpp"

namespace deltaproof {
namespace {

using namespace detail::inverse;

constexpr std::size_t key_dim = 128;
constexpr std::size_t shown = 64;    // the chunk of figures and of the tables of errors
constexpr double allowed = 8;        // u of the stored format: the limit of judge_inverse
constexpr double cosine = 0.9;       // of the plans, the bound and the right panel of the law
constexpr std::size_t few_dims = 8;  // keys so short that even random ones are correlated

const grid_axis<std::size_t> chunks{"chunk", {16, 32, shown, 128}};

std::size_t samples_of(const run_options& o, std::size_t chunk) { return o.size(chunk <= 32 ? 4 : chunk <= 64 ? 2 : 1, 16); }

using row = frame::row;
const std::string& text(const row& r, std::string_view column) { return std::get<std::string>(r[column].value()); }
bool is(const row& r, std::string_view column, std::string_view name) { return text(r, column) == name; }
bool yes(const row& r, std::string_view column) { return r.number(column) == 1; }
const arithmetic_plan& arithmetic_of(const row& r) {
  return *std::find_if(arithmetics.begin(), arithmetics.end(), [&](const auto& a) { return is(r, "arithmetic", a.name); });
}

/// Every chunk, kind of keys, law of steps, algorithm and arithmetic.
frame all_places(const run_options& options) {
  frame all = grid(
      options, "grid of inverses", judged_columns,
      [&](std::size_t chunk, std::string_view keys, std::string_view steps) {
        return judge_all({key_law_named(keys), step_law_named(steps), key_dim, chunk, samples_of(options, chunk), options.seed});
      },
      chunks, grid_axis<std::string_view>{"keys", {key_laws.begin(), key_laws.end()}},
      grid_axis<std::string_view>{"steps", {step_laws.begin(), step_laws.end()}});
  all.derive("powers", [](const row& r) { return sums_powers(text(r, "method")); });
  all.derive("cosine", [](const row& r) { return correlation_of(key_law_named(text(r, "keys"))); });
  all.derive("moderate", [](const row& r) { return step_law_named(text(r, "steps")).high <= 1; });
  return all;
}

/// For each chunk, range of steps, algorithm and arithmetic: up to which mean cosine all kinds of keys are safe.
frame where_safe(const frame& all, const run_options& options) {
  std::map<std::tuple<double, bool, std::string, std::string>, std::size_t> safe_before;
  const auto place = [](const row& r, bool moderate) {
    return std::tuple{r.number("chunk"), moderate, text(r, "method"), text(r, "arithmetic")};
  };
  for (std::size_t i = 0; i < all.size(); ++i) {
    const row r = all[i];
    const auto keys = static_cast<std::size_t>(
        std::find_if(key_laws.begin(), key_laws.end(), [&](std::string_view k) { return is(r, "keys", k); }) - key_laws.begin());
    for (const bool moderate : {true, false}) {
      if (moderate && !yes(r, "moderate")) continue;
      auto& before = safe_before.try_emplace(place(r, moderate), key_laws.size()).first->second;
      if (!yes(r, "safe")) before = std::min(before, keys);
    }
  }
  frame table({"chunk", "steps", "method", "arithmetic", "prefix", "cosine"});
  for (const std::size_t chunk : chunks.values(options)) {
    for (const bool moderate : {true, false}) {
      for (const std::string& method : sorted_methods()) {
        for (const arithmetic_plan& a : arithmetics) {
          const std::size_t n = safe_before.at({static_cast<double>(chunk), moderate, method, std::string(a.name)});
          table.add({chunk, moderate ? "moderate" : "any", method, std::string(a.name),
                     n == 0                 ? "none"
                     : n == key_laws.size() ? "all"
                                            : "some",
                     n == 0 ? cell() : cell(correlation_of(key_law_named(key_laws[n - 1])))});
        }
      }
    }
  }
  return table;
}

/// What algorithms form on the way in fp64, and before them the inverse itself, at beta = 1 and 2.
frame largest_intermediates(const frame& all) {
  frame table({"chunk", "steps", "keys", "method", "largest", "log"});
  const std::string first = sorted_methods().front();
  for (std::size_t i = 0; i < all.size(); ++i) {
    const row r = all[i];
    if (!is(r, "arithmetic", "fp64") || !(is(r, "steps", "1") || is(r, "steps", "2"))) continue;
    const auto add = [&](const cell& method, double x) {
      // The inverse in fp64 may exceed 1 by a rounding.
      table.add({r["chunk"], r["steps"], r["keys"], method, x, std::max(0.0, shared::log10_of(x))});
    };
    if (is(r, "method", first)) add("inverse", r.number("largest_entry"));
    add(r["method"], r.number("observed"));
  }
  return table;
}

struct tally {
  std::size_t safe, all;
  double largest_error;
};
tally count_where(const frame& all, const std::function<bool(const row&)>& wanted) {
  const frame some = all.where(wanted);
  return {static_cast<std::size_t>(some.over("safe", total)), some.size(), some.over("error", greatest)};
}

/// name_safe and name of each, with what else is said.
std::map<std::string, cell> counts(const std::vector<std::pair<std::string, tally>>& tallies, std::map<std::string, cell> also) {
  for (const auto& [name, one] : tallies) {
    also[name + "_safe"] = one.safe;
    also[name] = one.all;
  }
  return also;
}

void count_correlated(const frame& all, std::uint64_t seed, results& r) {
  const tally plain = count_where(all, [](const row& p) { return !yes(p, "powers") && yes(p, "moderate"); });
  r.values("no-powers-no-danger", evidence::worst_found(plain.all, seed),
           {{"configurations", plain.all}, {"safe", plain.safe}, {"largest_error_over_limit", plain.largest_error}});
  const double from = correlation_of(key_law_named("elu1"));
  const frame correlated =
      all.where([&](const row& p) { return yes(p, "powers") && yes(p, "moderate") && p.number("cosine") >= from; });
  const auto by = [&](const char* method) {
    return count_where(correlated, [&](const row& p) { return is(p, "method", method); });
  };
  const tally whole = by("neumann"), sixteen = by("neumann16+block"), eight = by("neumann8+block");
  const tally own = count_where(correlated, [](const row& p) { return arithmetic_of(p).store == arithmetic_of(p).operand; });
  r.values("powers-need-uncorrelated-keys", evidence::worst_found(whole.all + sixteen.all + eight.all, seed),
           counts({{"whole", whole}, {"blocks_of_16", sixteen}, {"blocks_of_8", eight}, {"one_format", own}}, {}));
  const frame gaussian = all.where("keys", "gaussian");
  const tally mild = count_where(gaussian, [](const row& p) { return yes(p, "moderate"); });
  const tally powers = count_where(gaussian, [](const row& p) { return yes(p, "moderate") && yes(p, "powers"); });
  const tally large = count_where(gaussian, [](const row& p) { return !yes(p, "moderate") && yes(p, "powers"); });
  const inverse_problem narrow{key_law_named("gaussian"), step_law_named("1"), few_dims, shown, 1, seed};
  r.values("random-keys-hide-it", evidence::worst_found(mild.all + large.all, seed),
           counts({{"with_powers", powers}, {"with_powers_large_steps", large}},
                  {{"safe", mild.safe},
                   {"configurations", mild.all},
                   {"key_dim", key_dim},
                   {"predicted_growth_d_8_chunk_64", predict_growth(inverse_named("neumann"), narrow).largest}}));
  r.values("cosines", {{"silu", correlation_of(key_law_named("silu"))},
                       {"elu1", from},
                       {"of_random", 1 / std::sqrt(static_cast<double>(key_dim))},
                       {"few_dims", few_dims}});
}

/// Unsafe configurations with powers in one arithmetic, and how many of them are safe in another.
tally rescued(const frame& all, const std::vector<std::pair<std::string_view, std::string_view>>& pairs) {
  tally t{0, 0, 0};
  for (const auto& [from, to] : pairs) {
    const frame before = all.where("arithmetic", from);
    const frame after = all.where("arithmetic", to);  // the same places in the same order
    for (std::size_t i = 0; i < before.size(); ++i) {
      if (yes(before[i], "safe") || !yes(before[i], "powers")) continue;
      ++t.all;
      t.safe += yes(after[i], "safe") ? 1 : 0;
    }
  }
  return t;
}

void count_remedies(const frame& all, std::uint64_t seed, results& r) {
  const tally wide = rescued(all, {{"fp16", "fp16-fp32"}, {"fp16-bf16", "fp16-fp32-bf16"}, {"bf16", "bf16-fp32"}});
  r.values("accumulator-is-no-remedy", evidence::worst_found(wide.all, seed),
           {{"unsafe_with_16_bit_sums", wide.all}, {"safe_with_fp32_sums", wide.safe}});
  r.values("remedied", {{"share", static_cast<double>(wide.safe) / static_cast<double>(wide.all)}});
  const auto to_bf16 = [](const row& p) { return is(p, "arithmetic", "fp32-bf16"); };
  const frame of_8 = all.where("method", "neumann8+block");
  const frame of_8_finer = of_8.where(
      [](const row& p) { return yes(p, "moderate") && arithmetic_of(p).operand != bf16 && arithmetic_of(p).store == bf16; });
  const tally eight = count_where(of_8, to_bf16);
  const tally sixteen =
      count_where(all.where("method", "neumann16+block"), [&](const row& p) { return yes(p, "moderate") && to_bf16(p); });
  const tally eight_finer = count_where(of_8_finer, [](const row&) { return true; });
  const tally wide_sums = count_where(of_8_finer, [](const row& p) { return arithmetic_of(p).accumulate == fp32; });
  r.values("finer", counts({{"fp32_sums", wide_sums}},
                           {{"share", static_cast<double>(eight_finer.safe) / static_cast<double>(eight_finer.all)}}));
  const tally coarse = rescued(all, {{"fp32", "fp32-bf16"}});
  r.values("coarse-result-forgives", evidence::worst_found(eight.all + sixteen.all + eight_finer.all, seed),
           counts({{"blocks_of_8", eight}, {"blocks_of_16", sixteen}, {"blocks_of_8_beta_1", eight_finer}},
                  {{"unsafe_in_fp32", coarse.all}, {"safe_to_bf16", coarse.safe}}));
  const frame large = all.where([](const row& p) { return !yes(p, "powers") && !yes(p, "moderate"); });
  const tally native = count_where(large, [](const row& p) {
    return arithmetic_of(p).store == arithmetic_of(p).operand && arithmetic_of(p).accumulate == arithmetic_of(p).operand;
  });
  const tally forward = count_where(large, [](const row& p) {
    return is(p, "method", "forward") && arithmetic_of(p).accumulate == fp32 && arithmetic_of(p).operand != fp32;
  });
  const tally spare = count_where(large, to_bf16);
  r.values("large-steps-need-spare-bits", evidence::worst_found(native.all + spare.all + forward.all, seed),
           counts({{"own_format", native}, {"fp32_to_bf16", spare}, {"forward_fp32_sums", forward}},
                  {{"own_format_largest_error_over_limit", native.largest_error}}));
}

void add_grid(const run_options& options, results& r) {
  const frame all = all_places(options);
  count_correlated(all, options.seed, r);
  count_remedies(all, options.seed, r);
  r.table("where-safe", where_safe(all, options));
  r.table("largest-intermediate", largest_intermediates(all));
  const frame points = all.where("chunk", shown);
  frame errors =
      points.by({"method", "arithmetic", "keys", "moderate"}, {{"error", "error", greatest}, {"safes", "safe", least}});
  errors.derive("safe", [](const row& p) { return p.number("safes") == 1; });
  r.table("errors", std::move(errors));
  r.values("chunks", {{"short", chunks.quick.front()}, {"shown", shown}, {"longest", chunks.quick.back()}});
  std::map<std::string, cell> sizes{{"methods", sorted_methods().size()},
                                    {"arithmetics", arithmetics.size()},
                                    {"keys", key_laws.size()},
                                    {"steps", step_laws.size()}};
  for (std::size_t c = 0; c < chunks.quick.size(); ++c) {
    sizes["chunk_" + std::to_string(c + 1)] = chunks.quick[c];
    sizes["draws_" + std::to_string(c + 1)] = samples_of(options, chunks.quick[c]);
  }
  r.values("grid", sizes);
}

void add_powers(const run_options&, results& r) {
  std::map<std::string, cell> blocks;
  for (const std::size_t rows : {8U, 16U, 64U}) {
    blocks["block_" + std::to_string(rows)] = estimate_growth(inverse_named("neumann"), rows, {cosine, 0, 0}).largest;
  }
  r.values("powers-are-binomials", blocks);
  constexpr double large = 1000;
  r.values("limits", {{"own", allowed},
                      {"to_bf16_from_fp16", allowed * unit_roundoff(bf16) / unit_roundoff(fp16)},
                      {"to_bf16_from_fp32", allowed * unit_roundoff(bf16) / unit_roundoff(fp32)},
                      {"large", large},
                      {"rounding_of_large", large * unit_roundoff(fp16)}});
}

/// Plans of kernels, each as the verb `inverse` judges it.
void add_plans(const run_options& options, results& r) {
  struct named_plan {
    std::string_view id, method;
    format operand, accumulate, store;
    std::size_t chunk;
    std::optional<format> merge = std::nullopt;
  };
  for (const named_plan& p : {named_plan{"fp16-product-of-powers", "neumann16+block", fp16, fp16, bf16, 16},
                              named_plan{"substitution-on-8", "forward8+block", fp32, fp32, bf16, 16},
                              named_plan{"substitution-on-16-tf32", "forward16+block", tf32, fp32, bf16, 64},
                              named_plan{"substitution-on-16-fp32-merges-tf32", "forward16+block", fp32, fp32, bf16, 64, tf32},
                              named_plan{"whole-chunk-squaring", "neumann", fp32, fp32, fp32, 64}}) {
    const inverse_plan plan{inverse_named(p.method), p.operand, p.accumulate, p.store, p.merge};
    const inverse_problem problem{{key_family::cosine, cosine}, {1, 1}, key_dim, p.chunk, 16, options.seed};
    const inverse_trial t = try_inverse(plan, problem);
    r.values("plan-" + std::string(p.id), evidence::worst_found(problem.samples, options.seed),
             {{"safe", t.verdict.safe},
              {"error", t.verdict.error},
              {"limit", t.verdict.limit},
              {"predicted_growth", t.predicted.largest},
              {"observed_growth", t.verdict.observed.largest},
              {"largest_entry_of_the_inverse", t.verdict.largest_entry},
              {"reason", t.verdict.reason},
              {"chunk", p.chunk},
              {"block", plan.method.block}});
  }
  r.values("plans", {{"cosine", cosine}});
}

results run(const run_options& options) {
  results r = in_parts(options, {{"powers", &add_powers}, {"plans", &add_plans}, {"grid", &add_grid}});
  r.parameters = {{"key_dim", key_dim}};
  for (const std::size_t chunk : chunks.quick) {
    r.parameters["samples_at_chunk_" + std::to_string(chunk)] = samples_of(options, chunk);
  }
  return r;
}

}  // namespace

extern const study inverse_study{"inverse", &run};

}  // namespace deltaproof
