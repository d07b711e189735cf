// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
//
// What the document says beside its main tables: what is left open before the memory, short convolution.

#include "deltaproof/algebra/multiply.hpp"
#include "studies/recall/tasks.hpp"

namespace deltaproof::detail::recall {
namespace {

/// What is open before a memory sees a token. x: Gaussian; W: random d x d, entries N(0, 1/d).
struct preparation {
  std::string_view name;
  bool raw_function;    ///< f of x, before the norm; else f of x / |x|
  bool project_values;  ///< v = W_v f(...)
  bool project_keys;    ///< k = W_k x, q = W_q x of the same x, both normalised; f of x / |x|
};

void project(matrix<double>& rows, philox random) {
  matrix<double> w(rows.cols(), rows.cols());
  const double scale = 1 / std::sqrt(static_cast<double>(rows.cols()));
  for (double& x : w.entries()) x = scale * random.normal();
  rows = matmul<plain<double>>(rows, transpose(w));
}

inputs prepare(const preparation& p, relation f, std::uint64_t seed, std::uint64_t run) {
  inputs in = make_inputs({.f = f}, seed, run);
  if (p.raw_function) {
    // The key's direction times a length whose square is a sum of d squares of normals: a Gaussian vector again.
    philox lengths(seed, 3000 + run);
    std::vector<double> x(key_dim);
    for (std::size_t t = 0; t < tokens; ++t) {
      shared::draw(lengths, x);
      const double length = std::sqrt(shared::squared_norm(x));
      for (std::size_t j = 0; j < key_dim; ++j) in.v(t, j) = apply(f, length * in.k(t, j));
    }
  }
  if (p.project_keys) {
    in.q = in.k;
    project(in.q, philox(seed, 3101 + 10 * run));
    project(in.k, philox(seed, 3102 + 10 * run));
    unit_rows(in.q);
    unit_rows(in.k);
  }
  if (p.project_values) project(in.v, philox(seed, 3103 + 10 * run));
  return in;
}

const grid_axis<preparation> preparations{
    "preparation",
    {{"plain", false, false, false}, {"raw", true, false, false}, {"values", false, true, false}, {"all", false, true, true}}};

}  // namespace

void add_axes(const run_options& options, results& r) {
  const frame runs = grid(
      options, "axes", {"error", "relative"},
      [&](const preparation& p, relation f, std::size_t run) -> frame_row {
        const observation o = observe(delta_rule(key_dim, key_dim, 1), prepare(p, f, options.seed, run));
        const double error = o.by(chosen).error;
        return {error, error / o.value_square};
      },
      preparations,
      grid_axis<relation>{"relation",
                          {relation::identity, relation::quadratic, relation::cubic, relation::exponential, relation::sine}},
      few_runs);
  frame law = runs.by({"preparation", "relation"}, means({"error", "relative"}));
  const auto at = law.finder({"preparation", "relation"});
  const std::size_t n = few_runs.values(options).size();
  const double raw_quadratic = at("raw", "quadratic", "error"), raw_exponential = at("raw", "exponential", "error");
  r.values("norm-before-f", evidence::sampled(n, options.seed, {}),
           {{"raw_quadratic", raw_quadratic},
            {"raw_exponential", raw_exponential},
            {"excluded", raw_exponential > 2 * printed_error(relation::exponential, false).value &&
                             raw_quadratic > 100 * printed_error(relation::quadratic, false).value}});
  std::map<std::string, cell> raw{{"runs", n}};
  for (const relation f : relations) raw.emplace(name_of(f), printed_error(f, false).value);
  r.values("raw", std::move(raw));
  r.values("projections", evidence::sampled(n, options.seed, {}),
           {{"lowest", law.over("relative", least)}, {"highest", law.over("relative", greatest)}});
  r.table("axes", std::move(law));
}

void add_convolution(const run_options& options, results& r) {
  constexpr std::size_t widest = 7;
  const frame runs = grid(
      options, "short convolution", {"raw", "raw_relative", "scaled", "scaled_relative"},
      [&](relation f, std::size_t width, std::size_t run) {
        frame_row row;
        for (const bool normalised : {false, true}) {
          const task t{.f = f, .normalise_values = normalised, .averaged = width};
          const observation o = observe(delta_rule(key_dim, key_dim, 1), make_inputs(t, options.seed, run));
          const double error = o.by(chosen).error;
          row.insert(row.end(), {error, error / o.value_square});
        }
        return row;
      },
      grid_axis<relation>{"relation", {relation::exponential, relation::quadratic, relation::identity}},
      grid_axis<std::size_t>{"width", {1, 3, 5, widest}}, few_runs);
  frame law = runs.by({"relation", "width"}, means({"raw", "raw_relative", "scaled", "scaled_relative"}));
  const auto at = law.finder({"relation", "width"});
  const std::size_t n = few_runs.values(options).size();
  r.values("convolution-changes-the-unit", evidence::sampled(n, options.seed, {}),
           {{"before", at("exponential", 1, "raw")},
            {"after_raw", at("exponential", widest, "raw")},
            {"after_normalised", at("exponential", widest, "scaled")},
            {"relative_before", at("exponential", 1, "raw_relative")},
            {"relative_after", at("exponential", widest, "scaled_relative")},
            {"quadratic", at("quadratic", widest, "scaled")}});
  // Text on short convolution of width 7: without, with.
  const double without = 1.92, with = 0.033;
  r.values("convolution", {{"width", widest},
                           {"runs", n},
                           {"exponential_without", without},
                           {"exponential_with", with},
                           {"ratio", without / with},
                           {"unit", key_dim * moments_of(relation::exponential, key_dim).square}});
  r.table("convolution", std::move(law));
}

namespace {

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

}  // namespace

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
      draws(24, 200));
  const frame& law = r.table("successors", runs.by({"over"}, means({"hit", "cosine"})));
  const auto found = [&](const char* over) { return law.find({{"over", over}}, "hit"); };
  r.values("convolution-on-keys", evidence::sampled(retrieval_runs(options) * words, options.seed, {}),
           {{"keys", found("k")}, {"values", found("v")}, {"none", found("none")}, {"both", found("both")}});
  r.values("words", {{"number", words},
                     {"tokens", 20 * words},
                     {"chance", 1.0 / (words - 1)},
                     {"over_values", found("k") / found("v")},
                     {"over_none", found("k") / found("none")}});
}

}  // namespace deltaproof::detail::recall
