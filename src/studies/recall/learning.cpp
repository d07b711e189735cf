// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
//
// What the memories learn where the question has an answer: the value of the token's own key, before the update or long after;
// of which keys they bear.

#include "studies/recall/tasks.hpp"

namespace deltaproof::detail::recall {
namespace {

struct learner {
  std::string_view name;
  double beta;  ///< 0: least squares; negative: least squares of (1, k)
};
const grid_axis<learner> learners{"learner", {{"one", 1}, {"eighth", 0.125}, {"rls", 0}, {"constant", -1}}};

// A constant appended to the key: least squares with an intercept.
inputs with_constant(inputs in) {
  const matrix<double> k = in.k;
  in.k = matrix<double>(k.rows(), k.cols() + 1);
  for (std::size_t t = 0; t < k.rows(); ++t) {
    std::copy(k.row(t).begin(), k.row(t).end(), in.k.row(t).begin());
    in.k(t, k.cols()) = 1;
  }
  return in;
}

}  // namespace

void add_learning(const run_options& options, results& r) {
  // Past the transients: a step of 1/8 forgets its start in 8 d / 2 tokens.
  const std::size_t last = 3 * tokens, first = 3 * tokens / 2;
  const frame found = grid(
      options, "learning", {"linear", "affine", "expected", "square", "error", "cosine"},
      [&](relation f, const learner& who, std::size_t run) -> frame_row {
        inputs in = make_inputs({.f = f, .tokens = last}, options.seed, 200 + run);
        const double square = shared::squared_norm(in.v.entries()) / static_cast<double>(in.v.size());
        if (who.beta < 0) in = with_constant(std::move(in));
        const memory m = who.beta > 0 ? delta_rule(key_dim, key_dim, who.beta) : least_squares(in.k.cols(), key_dim, ridge);
        const score s = late_prediction(m, in, first, in.v);
        const moments exact = moments_of(f, key_dim);
        return {std::max(1 - exact.linear_share(key_dim), 0.0),
                std::max(1 - exact.affine_share(key_dim), 0.0),
                delta_own_before_limit(exact, key_dim, 1) / exact.square,
                exact.square,
                s.error / square,
                s.cosine};
      },
      formulas, learners, many_runs);
  const frame& law =
      r.table("learning", found.by({"formula", "linear", "affine", "expected", "square", "learner"}, means({"error", "cosine"})));
  const auto at = law.finder({"formula", "learner"});
  std::vector<double> off, ratios;
  for (const relation f : relations) {
    if (f == relation::identity) continue;
    const std::string name(name_of(f));
    off.push_back(at(name, "one", "error") / at(name, "one", "expected") - 1);
    ratios.push_back(at(name, "one", "error") / at(name, "rls", "error"));
  }
  const std::size_t cases = many_runs.values(options).size() * (last - first);
  const auto share = [](relation f) { return moments_of(f, key_dim).linear_share(key_dim); };
  r.values("own-key", evidence::measured(), {{"cubic", share(relation::cubic)}, {"exponential", share(relation::exponential)}});
  r.values("own-key-runs", evidence::sampled(cases, options.seed, {}), {{"worst", worst(off)}});
  const double lowest = as_number(least(ratios));
  r.values("least-squares-halves", evidence::sampled(cases, options.seed, {}),
           {{"lowest", lowest},
            {"highest", greatest(ratios)},
            {"expected", 2 / (1 + 2.0 * key_dim / static_cast<double>(last + first))}});
  r.values("constant-feature", evidence::sampled(cases, options.seed, {}),
           {{"without", at("exponential", "rls", "error")}, {"with", at("exponential", "constant", "error")}});
  // |grad_S of |S k - v|^2 / 2| = |S k - v| |k|.
  const auto gradient = [&](const char* f) { return std::sqrt(at(f, "one", "error") * at(f, "one", "square") * key_dim); };
  r.values("gradients", evidence::sampled(cases, options.seed, {}),
           {{"exponential", gradient("exponential")},
            {"quartic", gradient("quartic")},
            {"relative_exponential", std::sqrt(at("exponential", "one", "error"))},
            {"relative_quartic", std::sqrt(at("quartic", "one", "error"))}});
  r.values("learners", {{"first", first},
                        {"last", last},
                        {"share", 1 / lowest},
                        {"small_step", at("exponential", "eighth", "error") / at("exponential", "rls", "error")},
                        {"one_in", 1 / learners.quick[1].beta},
                        {"constant_sd", at("exponential", "constant", "error_sd")},
                        {"left", at("exponential", "one", "affine")},
                        {"gradient_ratio", gradient("exponential") / gradient("quartic")},
                        {"gradient_sd", at("exponential", "one", "error_sd") / at("exponential", "one", "error")}});
}

void add_retrieval(const run_options& options, results& r) {
  const std::array<std::size_t, 3> pairs{1, 10, tokens};
  const grid_axis<relation> kinds{"relation", {relation::identity, relation::quadratic, relation::exponential}};
  const grid_axis<std::string> who{"memory", {"delta", "rls"}};
  const frame runs = grid(
      options, "retrieval", {"square", "one", "ten", "all", "old"},
      [&](relation f, const std::string& name, std::size_t run) -> frame_row {
        const inputs in = make_inputs({.f = f}, options.seed, 400 + run);
        const matrix<double> o = recollect(make_memory(name, key_dim), in);
        std::vector<double> errors(tokens);
        double old = 0;  // over the first half
        for (std::size_t t = 0; t < tokens; ++t) {
          errors[t] = score_of(o.row(t), in.v.row(t)).error;
          if (2 * t < tokens) old += errors[t] / (tokens / 2);
        }
        const auto kind = static_cast<std::size_t>(std::find(kinds.quick.begin(), kinds.quick.end(), f) - kinds.quick.begin());
        const std::size_t stream = (2 * kind + (name == "rls" ? 1 : 0)) * retrieval_runs(options) + run;
        philox random(options.seed, 900 + stream);
        std::array<double, 3> asked{};
        for (std::size_t p = 0; p < pairs.size(); ++p) {
          for (std::size_t k = 0; k < pairs[p]; ++k) {
            const std::size_t t = pairs[p] == tokens ? k : static_cast<std::size_t>(random.below(tokens));
            asked[p] += errors[t] / static_cast<double>(pairs[p]);
          }
        }
        return {moments_of(f, key_dim).square, asked[0], asked[1], asked[2], old};
      },
      kinds, who, draws(24, 200));
  frame law = runs.by({"relation", "memory", "square"}, means({"one", "ten", "all", "old"}));
  for (const char* column : {"all", "old"}) {
    law.derive(std::string(column) + "_relative",
               [column](const auto& row) { return row.number(column) / row.number("square"); });
  }
  const auto at = law.finder({"relation", "memory"});
  const auto exponential = [&](const char* column) { return at("exponential", "delta", column); };
  const frame its_runs = runs.where("relation", "exponential").where("memory", "delta");
  const double root = std::sqrt(static_cast<double>(retrieval_runs(options)));
  const auto same = [&](const char* n, const char* sd) {
    return std::fabs(exponential(n) - exponential("all")) < 3 * exponential(sd) / root;
  };
  r.values("retrieval-does-not-depend-on-the-number", evidence::sampled(retrieval_runs(options), options.seed, {}),
           {{"one", exponential("one")},
            {"ten", exponential("ten")},
            {"all", exponential("all")},
            {"least_of_one", its_runs.over("one", least)},
            {"largest_of_ten", its_runs.over("ten", greatest)},
            {"same", same("one", "one_sd") && same("ten", "ten_sd")}});
  r.values("pairs", {{"ten", pairs[1]},
                     {"one_sd", exponential("one_sd")},
                     {"ten_sd", exponential("ten_sd")},
                     {"all_sd", exponential("all_sd")}});
  r.values("retrieval", evidence::sampled(retrieval_runs(options), options.seed, {}),
           {{"identity", at("identity", "delta", "all")}, {"quadratic_first_half", at("quadratic", "delta", "old_relative")}});
  r.values("retrieved", {{"expected", delta_own_before(moments_of(relation::identity, key_dim), key_dim, tokens + 1).last},
                         {"least_squares", at("quadratic", "rls", "all_relative")},
                         {"fitted", 1 - static_cast<double>(key_dim) / tokens}});
  r.table("retrieval", std::move(law));
}

void add_rules(const run_options& options, results& r) {
  struct condition {
    std::string_view name;
    double norm_spread;  ///< |k| = e^(this z), z standard normal
    double noise;        ///< on v, in units of its root mean square
  };
  constexpr double spread = 0.5;
  const grid_axis<condition> conditions{
      "condition", {{"unit", 0, 0}, {"unit, noisy", 0, 1}, {"spread", spread, 0}, {"spread, noisy", spread, 1}}};
  const std::size_t n = rule_tokens(options);
  const frame runs = grid(
      options, "rules", {"error", "cosine"},
      [&](relation f, const condition& c, const std::string& name, std::size_t run) -> frame_row {
        inputs in = make_inputs({.f = f, .tokens = n}, options.seed, 800 + run);
        const matrix<double> clean = in.v;
        const double square = shared::squared_norm(clean.entries()) / static_cast<double>(clean.size());
        philox random(options.seed, 5000 + run);
        for (std::size_t t = 0; t < n; ++t) {
          const double length = portable_exp(c.norm_spread * random.normal());
          for (double& x : in.k.row(t)) x *= length;
          for (double& x : in.v.row(t)) x += c.noise * std::sqrt(square) * random.normal();
        }
        const score s = late_prediction(make_memory(name, key_dim), in, n / 2, clean);
        return {s.error / square, s.cosine};
      },
      grid_axis<relation>{"relation", {relation::identity, relation::exponential}}, conditions,
      grid_axis<std::string>{"memory", {memories.begin(), memories.end()}}, draws(2, 4));
  frame law = runs.by({"relation", "condition", "memory"}, means({"error", "cosine"}));
  law.derive("shown", [](const auto& row) { return row.number("error") < diverged ? row["error"] : cell(); });
  const auto at = law.finder({"relation", "condition", "memory"});
  const auto of_identity = [&](const char* c, const char* name, const char* column = "error") {
    return at("identity", c, name, column);
  };
  const std::size_t cases = draws(2, 4).values(options).size() * n / 2;
  r.values("spread-norms", evidence::sampled(cases, options.seed, {}),
           {{"raw_diverges", !(of_identity("spread", "raw") < diverged)},
            {"efla", of_identity("spread", "efla")},
            {"longhorn", of_identity("spread", "longhorn")},
            {"normalised", of_identity("spread", "delta")}});
  r.values("spread", {{"cosine", of_identity("spread", "efla", "cosine")},
                      {"sd", of_identity("spread", "efla", "error_sd")},
                      {"of_length", spread},
                      {"runs", draws(2, 4).values(options).size()},
                      // |k|^2 = e^(2 spread z) > 2 for z > ln 2 / (2 spread)
                      {"expand", 0.5 * std::erfc(shared::ln(2) / (2 * spread) / std::sqrt(2.0))}});
  r.values("two-conventions-recall", evidence::sampled(cases, options.seed, {}),
           {{"erase", of_identity("unit", "erase")},
            {"both", of_identity("unit", "both")},
            {"noisy_both", of_identity("unit, noisy", "both")},
            {"noisy_delta", of_identity("unit, noisy", "delta")},
            {"noisy_rls", of_identity("unit, noisy", "rls")}});
  std::vector<double> spreads;
  for (const char* name : {"both", "delta", "rls"})
    spreads.push_back(of_identity("unit, noisy", name, "error_sd") / of_identity("unit, noisy", name));
  r.values("conventions",
           {{"beta", strong}, {"cosine", of_identity("unit", "erase", "cosine")}, {"sd", greatest(spreads)}, {"ridge", ridge}});
  r.table("rules", std::move(law));
}

}  // namespace deltaproof::detail::recall
