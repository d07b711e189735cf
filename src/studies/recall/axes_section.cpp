// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "studies/recall/printed.hpp"
#include "studies/recall/runs.hpp"
#include "studies/recall/sections.hpp"
#include "studies/shared/keys.hpp"
#include "studies/shared/text.hpp"

namespace deltaproof::detail::recall {
namespace {

using shared::percent;

/// What the document leaves open before a memory sees a token. x: Gaussian; W: random d x d, entries N(0, 1/d).
struct preparation {
  const char* name;
  bool raw_function;    ///< f of x, before the norm; else f of x / |x|
  bool project_values;  ///< v = W_v f(...)
  bool project_keys;    ///< k = W_k x, q = W_q x of the same x, both normalised; f of x / |x|
};
constexpr std::array<preparation, 4> preparations{
    {{"f of the unit key, no projections, queries apart", false, false, false},
     {"f of the Gaussian vector, its key normalised", true, false, false},
     {"f of the unit key, v = W f(k)", false, true, false},
     {"k = W x, q = W′ x of one x, both normalised; v = W″ f(x/|x|)", false, true, true}}};

matrix<double> random_projection(std::size_t d, philox random) {
  matrix<double> w(d, d);
  const double scale = 1 / std::sqrt(static_cast<double>(d));
  for (double& x : w.entries()) x = scale * random.normal();
  return w;
}

void project(matrix<double>& rows, const matrix<double>& w) {
  std::vector<double> image(w.rows());
  for (std::size_t t = 0; t < rows.rows(); ++t) {
    for (std::size_t i = 0; i < w.rows(); ++i) {
      image[i] = 0;
      for (std::size_t j = 0; j < w.cols(); ++j) image[i] += w(i, j) * rows(t, j);
    }
    std::copy(image.begin(), image.end(), rows.row(t).begin());
  }
}

inputs prepare(const preparation& p, relation f, const settings& size, std::uint64_t seed, std::uint64_t run) {
  task t;
  t.f = f;
  t.key_dim = size.key_dim;
  t.tokens = size.tokens;
  inputs in = make_inputs(t, seed, run);
  if (p.raw_function) {
    // The key's direction times a length whose square is a sum of d squares of normals: a Gaussian vector again.
    philox lengths(seed, 3000 + run);
    for (std::size_t k = 0; k < in.k.rows(); ++k) {
      double square = 0;
      for (std::size_t j = 0; j < size.key_dim; ++j) {
        const double x = lengths.normal();
        square += x * x;
      }
      for (std::size_t j = 0; j < size.key_dim; ++j) in.v(k, j) = apply(f, std::sqrt(square) * in.k(k, j));
    }
  }
  if (p.project_keys) {
    in.q = in.k;
    project(in.q, random_projection(size.key_dim, philox(seed, 3101 + 10 * run)));
    project(in.k, random_projection(size.key_dim, philox(seed, 3102 + 10 * run)));
    unit_rows(in.q);
    unit_rows(in.k);
  }
  if (p.project_values) project(in.v, random_projection(size.key_dim, philox(seed, 3103 + 10 * run)));
  return in;
}

}  // namespace

void add_axes(const run_options& options, const settings& size, report& r) {
  const std::array<relation, 5> kinds{relation::identity, relation::quadratic, relation::cubic, relation::exponential,
                                      relation::sine};
  const std::size_t runs = std::max<std::size_t>(size.runs / 2, 2);
  struct outcome {
    double error = 0;
    double relative = 0;
    double own = 0;
  };
  std::vector<outcome> outcomes(preparations.size() * kinds.size() * runs);
  const std::size_t done = for_each_index(outcomes.size(), options, "axes", [&](std::size_t i) {
    const inputs in =
        prepare(preparations[i / runs / kinds.size()], kinds[i / runs % kinds.size()], size, options.seed, i % runs);
    const auto m = delta_rule(size.key_dim, size.key_dim, 1);
    const observation o = observe(*m, in);
    const double error = o.over_prefix(query::apart, when::after).error;
    outcomes[i] = {error, error / o.value_square, o.over_prefix(query::own_key, when::before).error / o.value_square};
  });
  if (done < outcomes.size()) {
    r.unfinished.emplace_back("Axes: interrupted before all runs were done.");
    return;
  }
  const auto over = [&](std::size_t p, std::size_t f, auto get) {
    std::vector<double> x;
    for (std::size_t run = 0; run < runs; ++run) x.push_back(outcomes[(p * kinds.size() + f) * runs + run].*get);
    return spread_of(x);
  };
  table t;
  t.id = "axes";
  t.title = "What the text leaves open before the memory: error of DeltaNet, values not normalised, mean over tokens (per E v²)";
  t.columns = {"tokens are made by"};
  for (const relation f : kinds) t.columns.push_back({name_of(f)});
  t.columns.push_back({"own key, before, per E v²: identity, quadratic"});
  double low = HUGE_VAL;
  double high = 0;
  for (std::size_t p = 0; p < preparations.size(); ++p) {
    std::vector<cell> row{preparations[p].name};
    for (std::size_t f = 0; f < kinds.size(); ++f) {
      const spread relative = over(p, f, &outcome::relative);
      low = std::min(low, relative.mean);
      high = std::max(high, relative.mean);
      row.emplace_back(text(over(p, f, &outcome::error)) + " (" + number(relative.mean, 3) + ")");
    }
    row.emplace_back(number(over(p, 0, &outcome::own).mean, 3) + ", " + number(over(p, 1, &outcome::own).mean, 3));
    t.rows.push_back(std::move(row));
  }
  t.note = "Printed: identity 0.026, quadratic 0.001, cubic 0.0001, exponential 1.92, sine 0.96. T = " + count(size.tokens) +
           ", " + std::to_string(runs) +
           " runs. f of the Gaussian vector is where a clipping of eᵏ would matter (elements to ±4 or so); f of a unit key stays "
           "within [1/e, e].";
  const double raw_quadratic = over(1, 1, &outcome::error).mean;
  const double raw_exponential = over(1, 3, &outcome::error).mean;
  const double projected = over(3, 1, &outcome::error).mean;
  const auto exponential = static_cast<std::size_t>(relation::exponential);
  const auto quadratic = static_cast<std::size_t>(relation::quadratic);
  const bool excluded =
      raw_exponential > 2 * printed_errors[exponential].raw.value && raw_quadratic > 100 * printed_errors[quadratic].raw.value;
  r.findings.push_back({"norm-before-f",
                        excluded
                            ? "f was applied to unit keys: applied to the Gaussian vector before its norm the errors would be " +
                                  number(raw_quadratic, 2) +
                                  " for k² (printed "
                                  "0.001) and " +
                                  number(raw_exponential, 3) + " for eᵏ (1.92), and there is nothing to clip on a unit key."
                            : "f of the Gaussian vector gives errors of " + number(raw_quadratic, 3) + " for k² and " +
                                  number(raw_exponential, 3) + " for eᵏ.",
                        evidence::sampled(runs, options.seed, "of a run: table"),
                        {{"raw_quadratic", raw_quadratic}, {"raw_exponential", raw_exponential}, {"excluded", excluded}},
                        "E v² of f of a standard normal: 3 for k², e² for eᵏ; twice that is the error."});
  r.findings.push_back(
      {"projections",
       low > 1.5 ? "Random projections do not turn it into recall: with v = W f(k), and with keys and queries that are two "
                   "projections of one token, the error per E v² "
                   "stays between " +
                       number(low, 3) + " and " + number(high, 3) + " over all relations and ways tried, where 0 has 1."
                 : "Per E v² the error lies between " + number(low, 3) + " and " + number(high, 3) +
                       " over the relations and ways tried.",
       evidence::sampled(runs, options.seed, "of a run: table"),
       {{"lowest", low}, {"highest", high}, {"projected_quadratic", projected}},
       "W with independent N(0, 1/d) entries, another for each run; two random projections of one x are all but orthogonal."});
  r.tables.push_back(std::move(t));
}

void add_successors(const run_options& options, const settings& size, report& r) {
  struct way {
    const char* name;
    bool keys, values, queries;
  };
  constexpr std::array<way, 5> ways{{{"none", false, false, false},
                                     {"k", true, false, false},
                                     {"v", false, true, false},
                                     {"k and v", true, true, false},
                                     {"q, k and v", true, true, true}}};
  const std::size_t words = size.key_dim / 2;
  const std::size_t runs = size.retrieval_runs;
  struct outcome {
    double hit = 0;
    double cosine = 0;
  };
  std::vector<outcome> outcomes(ways.size() * runs);
  const std::size_t done = for_each_index(outcomes.size(), options, "successors", [&](std::size_t i) {
    const way& w = ways[i / runs];
    philox random(options.seed, 7000 + i % runs);
    matrix<double> word(words, size.key_dim);
    for (std::size_t k = 0; k < words; ++k) {
      shared::draw(random, word.row(k));
      shared::normalise(word.row(k));
    }
    // One cycle through all words; its order is the order of drawing. Tokens start at a random word every third time.
    std::vector<std::size_t> tokens{static_cast<std::size_t>(random.below(words))};
    while (tokens.size() < 20 * words)
      tokens.push_back(tokens.size() % 3 == 0 ? static_cast<std::size_t>(random.below(words)) : (tokens.back() + 1) % words);
    const auto m = delta_rule(size.key_dim, size.key_dim, 1);
    const auto mean_with_past = [&](std::size_t t, bool on) {
      std::vector<double> x(word.row(tokens[t]).begin(), word.row(tokens[t]).end());
      if (on && t > 0) {
        for (std::size_t j = 0; j < x.size(); ++j) x[j] = (x[j] + word(tokens[t - 1], j)) / 2;
      }
      return x;
    };
    for (std::size_t t = 0; t < tokens.size(); ++t) {
      std::vector<double> k = mean_with_past(t, w.keys);
      shared::normalise(k);
      m->write(k, mean_with_past(t, w.values));
    }
    std::vector<double> o(size.key_dim);
    for (std::size_t now = 0; now < words; ++now) {
      std::vector<double> q(word.row(now).begin(), word.row(now).end());
      if (w.queries) {
        const std::size_t before = (now + words - 1) % words;
        for (std::size_t j = 0; j < q.size(); ++j) q[j] = (q[j] + word(before, j)) / 2;
        shared::normalise(q);
      }
      m->read(q, o);
      double length = 0;
      for (const double x : o) length += x * x;
      double best = -HUGE_VAL;
      std::size_t answer = words;
      for (std::size_t other = 0; other < words; ++other) {
        double overlap = 0;
        for (std::size_t j = 0; j < o.size(); ++j) overlap += o[j] * word(other, j);
        if (other == (now + 1) % words) outcomes[i].cosine += overlap / std::sqrt(length) / static_cast<double>(words);
        if (other == now || overlap <= best) continue;
        best = overlap;
        answer = other;
      }
      if (answer == (now + 1) % words) outcomes[i].hit += 1 / static_cast<double>(words);
    }
  });
  if (done < outcomes.size()) {
    r.unfinished.emplace_back("Successors: interrupted before all runs were done.");
    return;
  }
  table t;
  t.id = "successors";
  t.title = "Which word follows? A causal mean over 2 tokens on q, k, v";
  t.columns = {"mean over", "successor found", {"cosine with the successor", 3}};
  std::array<spread, ways.size()> hits{};
  for (std::size_t i = 0; i < ways.size(); ++i) {
    std::vector<double> hit;
    std::vector<double> cosine;
    for (std::size_t run = 0; run < runs; ++run) {
      hit.push_back(outcomes[i * runs + run].hit);
      cosine.push_back(outcomes[i * runs + run].cosine);
    }
    hits[i] = spread_of(hit);
    t.rows.push_back({ways[i].name, text(hits[i]), spread_of(cosine).mean});
  }
  t.note = "Each token is q, k and v at once: one of " + std::to_string(words) +
           " random unit words, two of three tokens followed by a fixed successor. DeltaNet, β = 1, " +
           std::to_string(20 * words) +
           " tokens; the final state is read with each word, the answer is the nearest other word. Chance: " +
           number(1 / static_cast<double>(words - 1), 2) + ". " + std::to_string(runs) + " runs.";
  const bool keys = hits[1].mean > 2 * hits[2].mean && hits[1].mean > 2 * hits[0].mean;
  r.findings.push_back({"convolution-on-keys",
                        keys ? "What a short convolution is for shows where the answer is the next token: averaged over two "
                               "tokens on k the successor is found in " +
                                   percent(hits[1].mean, 3) + " of the words, on v in " + percent(hits[2].mean, 3) +
                                   ", without it in " + percent(hits[0].mean, 3) +
                                   ". A key that holds the past links x to what follows it; a value that holds the past links it "
                                   "to what came before."
                             : "Averaged over two tokens on k the successor is found in " + percent(hits[1].mean, 3) +
                                   " of the words, on v in " + percent(hits[2].mean, 3) + ", without in " +
                                   percent(hits[0].mean, 3) + ".",
                        evidence::sampled(runs * words, options.seed, "standard deviation of a run: table"),
                        {{"keys", hits[1].mean}, {"values", hits[2].mean}, {"none", hits[0].mean}, {"both", hits[3].mean}},
                        "With q = k = v = x_t and no convolution the state learns x → x."});
  r.tables.push_back(std::move(t));
}

}  // namespace deltaproof::detail::recall
