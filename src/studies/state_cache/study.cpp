// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT

#include "studies/state_cache/runs.hpp"

namespace deltaproof {
namespace {

using namespace detail::state_cache;

constexpr double good = 0.01;
constexpr double bad = 0.1;
constexpr shape dims{32, 32, 256};
constexpr std::size_t first_checkpoint = 32;

std::size_t tokens_of(const run_options& options) { return options.size(10000, 100000); }
double bytes_of(const choice& c) { return static_cast<double>(stored_bits(stored_as(c), 128, 128)) / (8.0 * 128 * 128); }
/// Every head, cache and checkpoint.
frame all_runs(const run_options& options) {
  std::vector<std::size_t> at = shared::checkpoints(tokens_of(options));
  // The o of a single token may be near 0, and its relative error anything.
  std::erase_if(at, [](std::size_t t) { return t < first_checkpoint; });
  return grid(
      options, "heads", {"choice", "bytes", "at", "error", "half_life", "dead", "good", "bad"},
      [&](const head& h) {
        const token_list drawn = draw_tokens(h, dims, tokens_of(options), options.seed);
        const head_runs found = run_tokens(drawn, dims, stored_choices, at, options.seed);
        std::vector<frame_row> rows;
        for (std::size_t c = 0; c < stored_choices.size(); ++c) {
          for (std::size_t i = 0; i < at.size(); ++i) {
            const double error = found.runs[c].error[i];
            const auto above = [&](double limit) { return error <= limit ? cell() : cell(at[i]); };
            rows.push_back({std::string(stored_choices[c].name), bytes_of(stored_choices[c]), at[i], error, found.half_life,
                            found.dead, above(good), above(bad)});
          }
        }
        return rows;
      },
      grid_axis<head>{"head", {heads.begin(), heads.end()}});
}

cell first(std::span<const double> x) { return x.empty() ? std::size_t{0} : static_cast<std::size_t>(x.front()); }

void add_runs(const run_options& options, results& r) {
  const frame& all = r.table("runs", all_runs(options));
  const frame& worsts = r.table("worst", all.by({"head", "half_life", "dead", "choice", "bytes"},
                                                {{"error", "error", greatest}, {"good", "good", first}, {"bad", "bad", first}}));
  const auto worst_of = [&](const char* name) { return worsts.where("choice", name).over("error", greatest); };
  const auto on = [&](const char* head, const char* name) { return worsts.find({{"head", head}, {"choice", name}}, "error"); };
  const auto at_end = [&](const char* head, const char* name) {
    return all.find({{"head", head}, {"choice", name}, {"at", tokens_of(options)}}, "error");
  };
  r.values("feedback", {{"int8", worst_of("int8-feedback")},
                        {"int8_without", worst_of("int8-nearest")},
                        {"bf16", worst_of("bf16-feedback")},
                        {"bf16_without", worst_of("bf16-nearest")},
                        {"e4m3", worst_of("e4m3-feedback")},
                        {"mxfp8", worst_of("mxfp8-feedback")},
                        {"grows", at_end("long-slow", "int8-feedback") / at_end("short", "int8-feedback")},
                        {"grows_without", at_end("long-slow", "int8-nearest") / at_end("short", "int8-nearest")}});
  r.values("horizon", {{"int8_medium", worsts.find({{"head", "medium"}, {"choice", "int8-nearest"}}, "good")},
                       {"int8_long", worsts.find({{"head", "long"}, {"choice", "int8-nearest"}}, "good")},
                       {"int8_bad", worsts.find({{"head", "long-slow"}, {"choice", "int8-nearest"}}, "bad")},
                       {"int8_short", on("short", "int8-nearest")}});
  r.values("period", {{"every", std::size_t{16}},
                      {"each", at_end("long", "int8-nearest")},
                      {"rarely", at_end("long", "int8-nearest-16")},
                      {"times", at_end("long", "int8-nearest") / at_end("long", "int8-nearest-16")}});
  double least_of_four_bits = 1;
  for (const choice& c : stored_choices) {
    if (stored_as(c).element.bits == 4)
      least_of_four_bits = std::min(least_of_four_bits, worsts.where("choice", std::string(c.name)).over("error", least));
  }
  r.values("four-bits", {{"int4", worst_of("int4-feedback")},
                         {"nvfp4", worst_of("nvfp4-feedback")},
                         {"int4_without", worst_of("int4-nearest")},
                         {"nvfp4_without", worst_of("nvfp4-nearest")},
                         {"least", least_of_four_bits}});
  r.values("scales", {{"row", on("long", "int8-nearest")},
                      {"tensor", on("long", "int8-tensor-nearest")},
                      {"times", on("long", "int8-tensor-nearest") / on("long", "int8-nearest")}});
  const auto ratio = [&](const char* head, const char* format) {
    return at_end(head, (std::string(format) + "-stochastic").c_str()) / at_end(head, (std::string(format) + "-nearest").c_str());
  };
  const auto dead = [&](const char* head) { return worsts.find({{"head", head}, {"choice", "int8-nearest"}}, "dead"); };
  r.values("two-laws", {{"usual", ratio("medium", "int8")},
                        {"usual_long", ratio("long", "int8")},
                        {"slow", ratio("long-slow", "int8")},
                        {"slow_bf16", ratio("long-slow", "bf16")},
                        {"dead_medium", dead("medium")},
                        {"dead_long", dead("long")},
                        {"dead_slow", dead("long-slow")}});
  r.values("limits", {{"good", good}, {"bad", bad}, {"first", first_checkpoint}});
}

results run(const run_options& options) {
  results r = in_parts(options, {{"heads", &add_runs}});
  r.parameters = {
      {"key_dim", dims.key_dim}, {"value_dim", dims.value_dim}, {"words", dims.words}, {"tokens", tokens_of(options)}};
  return r;
}

}  // namespace

extern const study state_cache_study{"state-cache", &run};

}  // namespace deltaproof
