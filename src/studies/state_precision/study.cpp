// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT

#include "studies/state_precision/runs.hpp"

namespace deltaproof {
namespace {

using namespace detail::state_precision;

constexpr double good = 0.01;
constexpr double bad = 0.1;
constexpr double level_from = 100;  // tokens, with beta near 1/2
constexpr shape dims;

std::size_t tokens_of(const run_options& options) { return options.size(100000, 1000000); }

cell first(std::span<const double> x) { return x.empty() ? std::size_t{0} : static_cast<std::size_t>(x.front()); }

/// Every head, checkpoint and choice. good, bad: the checkpoint where the error is above that limit.
frame all_runs(const run_options& options) {
  const std::vector<std::size_t> at = shared::checkpoints(tokens_of(options));
  return grid(
      options, "heads", {"choice", "at", "error", "kept", "radius", "half_life", "gated", "good", "bad"},
      [&](const head& h) {
        const head_run run = run_head(h, dims, at, options.seed);
        std::vector<frame_row> rows;
        for (std::size_t c = 0; c < choices.size(); ++c) {
          for (std::size_t i = 0; i < at.size(); ++i) {
            const double error = run.runs[c].error[i];
            const auto above = [&](double limit) { return error <= limit ? cell() : cell(at[i]); };
            rows.push_back({std::string(choices[c].name), at[i], error, run.runs[c].kept[i],
                            run.radius[i] / std::sqrt(shared::squared_norm(run.states[i].entries())), run.half_life, h.rate != 0,
                            above(good), above(bad)});
          }
        }
        return rows;
      },
      grid_axis<head>{"head", {heads.begin(), heads.end()}});
}

void add_runs(const run_options& options, results& r) {
  const frame& all = r.table("runs", all_runs(options));
  const frame& worsts = r.table("worst", all.by({"head", "gated", "half_life", "choice"},
                                                {{"error", "error", greatest}, {"good", "good", first}, {"bad", "bad", first}}));
  const auto error_of = [&](const char* choice) { return worsts.where("choice", choice).over("error", greatest); };
  const auto head_of = [&](const char* choice, const char* column = "head") -> cell {
    const frame of_choice = worsts.where("choice", choice);
    return shared::top(of_choice, "error")[column];
  };
  const auto at_end = [&](const char* head, const char* choice, const char* column) {
    return all.find({{"head", head}, {"choice", choice}, {"at", tokens_of(options)}}, column);
  };

  r.values("reference", evidence::certified(), {{"relative_radius", all.over("radius", greatest)}});
  r.values("fp32", {{"worst", error_of("fp32")}, {"head", head_of("fp32")}});
  double ordinary = 0;
  for (const head& h : heads) {
    if (h.logit == 0) ordinary = std::max(ordinary, worsts.find({{"head", h.name}, {"choice", "state-bf16"}}, "error"));
  }
  const double in_bf16 = error_of("state-bf16");
  const double in_fp16 = error_of("state-fp16");
  r.values("sixteen-bit-state", {{"ordinary", ordinary},
                                 {"bf16_worst", in_bf16},
                                 {"fp16_worst", in_fp16},
                                 {"times", in_bf16 / in_fp16},
                                 {"head", head_of("state-bf16")},
                                 {"first_bad", head_of("state-bf16", "bad")}});
  // One checkpoint of one head scatters by a third; over all that are level the ratio is steady.
  const auto level_of = [&](const char* choice) {
    double squares = 0;
    for (const head& h : heads) {
      if (h.logit != 0) continue;
      const frame level =
          all.where("head", h.name).where("choice", choice).where([](const auto& row) { return row.number("at") >= level_from; });
      for (const double error : level.numbers("error")) squares += error * error;
    }
    return std::sqrt(squares);
  };
  const double nearest = at_end("long-slow", "state-bf16", "error");
  const double stochastic = at_end("long-slow", "state-bf16-stochastic", "error");
  r.values("stochastic-state", {{"nearest", nearest},
                                {"stochastic", stochastic},
                                {"times", nearest / stochastic},
                                {"kept_nearest", at_end("long-slow", "state-bf16", "kept")},
                                {"kept_stochastic", at_end("long-slow", "state-bf16-stochastic", "kept")},
                                {"noise", level_of("state-bf16-stochastic") / level_of("state-bf16")},
                                {"level_from", level_from}});
  r.values("decay", {{"exponential_bf16", error_of("decay-bf16")},
                     {"exponential_fp16", error_of("decay-fp16")},
                     {"logarithm_bf16", error_of("log-decay-bf16")},
                     {"times", error_of("decay-bf16") / error_of("log-decay-bf16")},
                     {"head", head_of("decay-bf16")}});
  r.values("beta", {{"worst", error_of("beta-bf16")}});

  std::map<std::string, cell> good_heads;
  std::size_t everywhere = 0;
  for (std::size_t c = 0; c < choices.size(); ++c) {
    const frame of_choice = worsts.where("choice", choices[c].name);
    const std::size_t n = of_choice.where([](const auto& row) { return row.number("error") <= good; }).size();
    good_heads["choice_" + std::to_string(c)] = n;
    if (n == heads.size()) ++everywhere;
  }
  good_heads["good_everywhere"] = everywhere;
  r.values("which-choice", good_heads);
  const double output = unit_roundoff(bf16);
  r.values("limits", {{"good", good}, {"bad", bad}, {"output", output}, {"times", good / output}});
  double slow = 0;
  for (const head& h : heads) slow = std::max(slow, -h.logit);
  r.values("heads",
           {{"number", heads.size()}, {"slow", slow}, {"beta", 1 / (1 + shared::exp64(slow))}, {"block", longest_block}});
}

results run(const run_options& options) {
  results r = in_parts(options, {{"heads", &add_runs}});
  r.parameters = {
      {"key_dim", dims.key_dim}, {"value_dim", dims.value_dim}, {"words", dims.words}, {"tokens", tokens_of(options)}};
  return r;
}

}  // namespace

extern const study state_precision_study{"state-precision", &run};

}  // namespace deltaproof
