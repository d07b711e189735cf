// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT

#include "studies/recall/tasks.hpp"

namespace deltaproof {
namespace {

using namespace detail::recall;

constexpr std::size_t key_dim = 64;
constexpr std::size_t tokens = 1000;  // T of the document's tables
const grid_axis<std::size_t> many_runs = draws(6, 12), successor_runs = draws(24, 200), rule_runs = draws(2, 4);
std::size_t rule_tokens(const run_options& o) { return o.size(3000, 8000); }

const grid_axis<relation> formulas{"formula", {relations.begin(), relations.end()}};

/// A figure and the unit of its last printed digit.
struct printed {
  double value = 0;
  double unit = 0;
};

/// Table "Normalized MSE, Unnormalized MSE", DeltaNet.
printed printed_error(relation f, bool normalised) {
  constexpr std::array<printed, relations.size()> raw{
      {{0.026, 1e-3}, {0.001, 1e-3}, {0.0001, 1e-4}, {0.00001, 1e-5}, {1.92, 1e-2}, {0.96, 1e-2}}};
  if (normalised) return {f == relation::identity ? 0.028 : 0.030, 1e-3};
  return raw[static_cast<std::size_t>(f)];
}

/// DeltaNet's errors of every relation at queries apart, means over the runs, beside what is printed and expected.
void add_errors(const run_options& options, results& r) {
  const frame seen = grid(
      options, "printed errors", {"printed", "unit", "exact", "expected", "error", "cosine", "square"},
      [&](relation f, bool normalised, std::size_t run) -> frame_row {
        const inputs in = make_inputs({.f = f, .normalise_values = normalised}, options.seed, run);
        const score s = read_apart(delta_rule(key_dim, key_dim, 1), in);
        moments m = moments_of(f, key_dim);
        if (normalised) m.square = 1.0 / key_dim;
        const printed figure = printed_error(f, normalised);
        const double square = shared::squared_norm(in.v.entries()) / static_cast<double>(in.v.size());
        return {figure.value, figure.unit, m.square, delta_apart(m, key_dim, tokens), s.error, s.cosine, square};
      },
      formulas, grid_axis<bool>{"normalised", {true, false}}, many_runs);
  frame errors = seen.by({"formula", "normalised", "printed", "unit", "exact", "expected"}, means({"error", "cosine", "square"}));
  // Within half a unit of the last printed digit, or three standard deviations of a run, of the mean of the runs.
  errors.derive("met", [](const auto& row) {
    const double off = std::fabs(row.number("error") - row.number("printed"));
    return off <= 0.5 * row.number("unit") + 3 * row.number("error_sd") + 1e-12;
  });
  errors.derive("relative", [](const auto& row) { return row.number("error") / row.number("square"); });
  errors.derive("unrelated", [](const auto& row) { return 2 * row.number("exact"); });
  const auto of = errors.finder({"formula", "normalised"});
  const std::size_t runs = many_runs.values(options).size();
  const double lowest = errors.over("relative", least), highest = errors.over("relative", greatest);
  const frame unmet = errors.where("met", false);
  r.values("printed-errors-are-met", evidence::sampled(runs * errors.size(), options.seed, {}),
           {{"agreeing", errors.size() - unmet.size()}, {"not_met", unmet.size()}});
  r.values("errors", {{"number", errors.size()}, {"identity_not_met", unmet.where("formula", "identity").size()}});
  r.values("error-is-chance", evidence::sampled(runs * errors.size(), options.seed, {}),
           {{"lowest", lowest}, {"highest", highest}, {"cosine", errors.over("cosine", worst)}});
  r.values("polynomials-are-not-easier", evidence::sampled(runs * errors.size(), options.seed, {}),
           {{"spread", highest / lowest}});
  r.values("polynomials", {{"error", of("identity", false, "error") / of("quartic", false, "error")},
                           {"square", of("identity", false, "exact") / of("quartic", false, "exact")},
                           {"difference", highest / lowest - 1}});
  r.values("identity", {{"normalised", of("identity", true, "printed")},
                        {"raw", of("identity", false, "printed")},
                        {"elsewhere", printed_error(relation::quadratic, true).value},
                        {"sd", of("identity", true, "error_sd")}});
  frame lines({"x", "independent", "zero"});
  for (const double x : {3e-6, 10.0}) lines.add({x, x, x / 2});
  r.table("chance", std::move(lines));
  r.table("printed-errors", std::move(errors));
}

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

void add_learning(const run_options& options, results& r) {
  // Past the transients: a step of 1/8 forgets its start in 8 d / 2 tokens.
  const std::size_t last = 3 * tokens, first = 3 * tokens / 2;
  const frame found = grid(
      options, "learning", {"linear", "affine", "expected", "square", "error", "cosine"},
      [&](relation f, const learner& who, std::size_t run) -> frame_row {
        inputs in = make_inputs({.f = f, .tokens = last}, options.seed, 200 + run);
        const double square = shared::squared_norm(in.v.entries()) / static_cast<double>(in.v.size());
        if (who.beta < 0) in = with_constant(std::move(in));
        const memory m = who.beta > 0 ? delta_rule(key_dim, key_dim, who.beta) : least_squares(in.k.cols(), key_dim);
        const score s = late_prediction(m, in, first, in.v);
        const moments exact = moments_of(f, key_dim);
        return {std::max(1 - exact.linear_share(key_dim), 0.0),
                std::max(1 - exact.affine_share(key_dim), 0.0),
                delta_own_before(exact, key_dim) / exact.square,
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
  r.values("learners", {{"first", first},
                        {"last", last},
                        {"share", 1 / lowest},
                        {"small_step", at("exponential", "eighth", "error") / at("exponential", "rls", "error")},
                        {"one_in", 1 / learners.quick[1].beta},
                        {"constant_sd", at("exponential", "constant", "error_sd")},
                        {"left", at("exponential", "one", "affine")}});
}

/// Five memories on keys of one norm and of spread norms.
void add_rules(const run_options& options, results& r) {
  struct condition {
    std::string_view name;
    double norm_spread;  ///< |k| = e^(this z), z standard normal
  };
  constexpr double spread = 0.5;
  const grid_axis<condition> conditions{"condition", {{"unit", 0}, {"spread", spread}}};
  const std::size_t n = rule_tokens(options);
  const frame runs = grid(
      options, "rules", {"error", "cosine"},
      [&](relation f, const condition& c, const std::string& name, std::size_t run) -> frame_row {
        inputs in = make_inputs({.f = f, .tokens = n}, options.seed, 800 + run);
        const double square = shared::squared_norm(in.v.entries()) / static_cast<double>(in.v.size());
        philox random(options.seed, 5000 + run);
        for (std::size_t t = 0; t < n; ++t) {
          const double length = portable_exp(c.norm_spread * random.normal());
          for (double& x : in.k.row(t)) x *= length;
        }
        const score s = late_prediction(make_memory(name, key_dim), in, n / 2, in.v);
        return {s.error / square, s.cosine};
      },
      grid_axis<relation>{"relation", {relation::identity, relation::exponential}}, conditions,
      grid_axis<std::string>{"memory", {memories.begin(), memories.end()}}, rule_runs);
  frame law = runs.by({"relation", "condition", "memory"}, means({"error", "cosine"}));
  law.derive("shown", [](const auto& row) { return row.number("error") < diverged ? row["error"] : cell(); });
  const auto at = law.finder({"relation", "condition", "memory"});
  const auto of = [&](const char* name, const char* column = "error") { return at("identity", "spread", name, column); };
  const std::size_t draws_of = rule_runs.values(options).size();
  r.values("spread-norms", evidence::sampled(draws_of * n / 2, options.seed, {}),
           {{"raw_diverges", !(of("raw") < diverged)},
            {"efla", of("efla")},
            {"longhorn", of("longhorn")},
            {"normalised", of("delta")}});
  r.values("spread", {{"cosine", of("efla", "cosine")},
                      {"sd", of("efla", "error_sd")},
                      {"of_length", spread},
                      {"runs", draws_of},
                      {"ridge", ridge},
                      // |k|^2 = e^(2 spread z) > 2 for z > ln 2 / (2 spread)
                      {"expand", 0.5 * std::erfc(shared::ln(2) / (2 * spread) / std::sqrt(2.0))}});
  r.table("rules", std::move(law));
}

struct averaged {
  std::string_view name;
  bool keys, values, queries;
};
constexpr std::size_t words = key_dim / 2;

/// The share of words whose successor DeltaNet finds, and the mean cosine with it.
frame_row successors_found(const averaged& on, std::uint64_t seed, std::uint64_t run) {
  philox random(seed, 7000 + run);
  matrix<double> word(words, key_dim);
  for (std::size_t w = 0; w < words; ++w) shared::draw(random, word.row(w));
  unit_rows(word);
  // One cycle through all words; its order is the order of drawing. Tokens start at a random word every third time.
  std::vector<std::size_t> text{static_cast<std::size_t>(random.below(words))};
  while (text.size() < 20 * words)
    text.push_back(text.size() % 3 == 0 ? static_cast<std::size_t>(random.below(words)) : (text.back() + 1) % words);
  const auto mean_of = [&](std::size_t w, std::size_t before) {
    std::vector<double> x(word.row(w).begin(), word.row(w).end());
    for (std::size_t j = 0; j < key_dim && before < words; ++j) x[j] = (x[j] + word(before, j)) / 2;
    return x;
  };
  const memory m = make_memory("delta", key_dim);
  for (std::size_t t = 0; t < text.size(); ++t) {
    const auto past = [&](bool wanted) { return wanted && t > 0 ? text[t - 1] : words; };
    m.write(mean_of(text[t], past(on.keys)), mean_of(text[t], past(on.values)));
  }
  std::vector<double> o(key_dim);
  std::size_t hits = 0;
  double cosine = 0;
  for (std::size_t now = 0; now < words; ++now) {
    const std::size_t next = (now + 1) % words;
    m.read(mean_of(now, on.queries ? (now + words - 1) % words : words), o);
    std::size_t answer = words;
    double best = -HUGE_VAL;
    for (std::size_t other = 0; other < words; ++other) {
      const double close = score_of(o, word.row(other)).cosine;
      if (other == next) cosine += close / words;
      if (other == now || close <= best) continue;
      best = close;
      answer = other;
    }
    if (answer == next) ++hits;
  }
  return {static_cast<double>(hits) / words, cosine};
}

void add_successors(const run_options& options, results& r) {
  const frame runs = grid(
      options, "successors", {"hit", "cosine"},
      [&](const averaged& on, std::size_t run) { return successors_found(on, options.seed, run); },
      grid_axis<averaged>{"over",
                          {{"none", false, false, false},
                           {"k", true, false, false},
                           {"v", false, true, false},
                           {"both", true, true, false},
                           {"all", true, true, true}}},
      successor_runs);
  const frame& law = r.table("successors", runs.by({"over"}, means({"hit", "cosine"})));
  const auto found = [&](const char* over) { return law.find({{"over", over}}, "hit"); };
  r.values(
      "convolution-on-keys", evidence::sampled(successor_runs.values(options).size() * words, options.seed, {}),
      {{"keys", found("k")}, {"values", found("v")}, {"none", found("none")}, {"both", found("both")}, {"all", found("all")}});
  r.values("words", {{"number", words},
                     {"tokens", 20 * words},
                     {"chance", 1.0 / (words - 1)},
                     {"over_values", found("k") / found("v")},
                     {"over_none", found("k") / found("none")}});
}

results run(const run_options& options) {
  results r = in_parts(
      options,
      {{"printed errors", &add_errors}, {"learning", &add_learning}, {"successors", &add_successors}, {"rules", &add_rules}});
  r.parameters = {{"key_dim", key_dim},
                  {"tokens", tokens},
                  {"runs", many_runs.values(options).size()},
                  {"successor_runs", successor_runs.values(options).size()},
                  {"rule_tokens", rule_tokens(options)}};
  return r;
}

}  // namespace

extern const study recall_study{"recall", &run};

}  // namespace deltaproof
