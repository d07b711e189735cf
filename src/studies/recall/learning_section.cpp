// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT

#include <algorithm>
#include <array>
#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "studies/recall/printed.hpp"
#include "studies/recall/runs.hpp"
#include "studies/recall/sections.hpp"
#include "studies/recall/theory.hpp"
#include "studies/shared/text.hpp"

namespace deltaproof::detail::recall {
namespace {

using shared::percent;

struct learner {
  const char* name;
  double beta;  ///< 0: least squares; negative: least squares of (1, k)
};
constexpr std::array<learner, 4> learners{
    {{"DeltaNet, β = 1", 1}, {"DeltaNet, β = 1/8", 0.125}, {"RLS", 0}, {"RLS of (1, k)", -1}}};

// A constant appended to the key: least squares with an intercept.
inputs with_constant(const inputs& in) {
  inputs result = in;
  result.k = matrix<double>(in.k.rows(), in.k.cols() + 1);
  for (std::size_t t = 0; t < in.k.rows(); ++t) {
    std::copy(in.k.row(t).begin(), in.k.row(t).end(), result.k.row(t).begin());
    result.k(t, in.k.cols()) = 1;
  }
  return result;
}

}  // namespace

void add_learning(const run_options& options, const settings& size, report& r) {
  // Past the transients: β = 1/8 forgets its start in 8 d / 2 tokens.
  const std::size_t tokens = 3 * size.tokens;
  const std::size_t first = 3 * size.tokens / 2;
  const std::size_t jobs = relations.size() * learners.size() * size.runs;
  std::vector<score> scores(jobs);
  std::vector<double> squares(jobs);
  const std::size_t done = for_each_index(jobs, options, "learning", [&](std::size_t i) {
    const std::size_t run = i % size.runs;
    const learner& who = learners[i / size.runs % learners.size()];
    task t;
    t.f = relations[i / size.runs / learners.size()].id;
    t.key_dim = size.key_dim;
    t.tokens = tokens;
    inputs in = make_inputs(t, options.seed, 200 + run);
    double square = 0;
    for (const double x : in.v.entries()) square += x * x;
    squares[i] = square / static_cast<double>(in.v.size());
    if (who.beta < 0) in = with_constant(in);
    const auto m =
        who.beta > 0 ? delta_rule(in.k.cols(), size.key_dim, who.beta) : least_squares(in.k.cols(), size.key_dim, 1e-6);
    scores[i] = late_prediction(*m, in, first);
  });
  if (done < jobs) {
    r.unfinished.emplace_back("Learning: interrupted before all runs were done.");
    return;
  }
  const auto over = [&](std::size_t f, std::size_t who, bool cosine) {
    std::vector<double> x;
    for (std::size_t run = 0; run < size.runs; ++run) {
      const std::size_t i = (f * learners.size() + who) * size.runs + run;
      x.push_back(cosine ? scores[i].cosine : scores[i].error / squares[i]);
    }
    return spread_of(x);
  };
  table t;
  t.id = "learning";
  t.title = "Predicting the value of a fresh key, before it is written: error / E v² and cosine";
  t.columns = {"values", {"best linear map", 4}, {"best affine map", 4}};
  for (const learner& who : learners) {
    t.columns.push_back({who.name, 4});
    t.columns.push_back({"cosine", 3});
  }
  t.columns.push_back({"2(1 − c²), expected of β = 1", 4});
  double worst = 0;
  double low = HUGE_VAL;
  double high = 0;
  for (std::size_t f = 0; f < relations.size(); ++f) {
    const moments m = moments_of(relations[f].id, size.key_dim);
    const double unexplained = 1 - m.linear_share(size.key_dim);
    std::vector<cell> row{std::string(relations[f].formula), std::max(unexplained, 0.0),
                          std::max(1 - m.affine_share(size.key_dim), 0.0)};
    for (std::size_t who = 0; who < learners.size(); ++who) {
      row.emplace_back(over(f, who, false).mean);
      row.emplace_back(over(f, who, true).mean);
    }
    const double expected = delta_own_before_limit(m, size.key_dim, 1) / m.square;
    row.emplace_back(expected);
    if (relations[f].id != relation::identity) {
      const spread found = over(f, 0, false);
      worst = std::max(worst, std::fabs(found.mean - expected) / expected);
      const double ratio = found.mean / over(f, 2, false).mean;
      low = std::min(low, ratio);
      high = std::max(high, ratio);
    }
    t.rows.push_back(std::move(row));
  }
  const auto n_tokens = static_cast<double>(tokens + first) / 2;
  const double predicted = 2 / (1 + static_cast<double>(size.key_dim) / n_tokens);
  t.note = "Own key, before the update, mean over tokens " + count(first) + " … " + count(tokens) + ", " +
           std::to_string(size.runs) +
           " runs; keys of unit norm, values not normalised. 1 is the error of the predictor 0. c² is the share of E v² that a "
           "linear map "
           "of k explains; the affine map also has a constant.";
  const std::uint64_t cases = size.runs * (tokens - first);
  r.findings.push_back(
      {"own-key",
       "Read with the token's own key the question has an answer. After the update DeltaNet (β = 1, |k| = 1) is exact for every "
       "f, S k = v; before it, its error tends to 2(1 − c²)/(2 − β) of E v², c² the share that a linear map explains: 1 for k, " +
           number(moments_of(relation::cubic, size.key_dim).linear_share(size.key_dim), 3) + " for k³, " +
           number(moments_of(relation::exponential, size.key_dim).linear_share(size.key_dim), 2) +
           " for eᵏ, 0 for k² and k⁴. Where c² < ½ DeltaNet with β = 1 predicts worse than 0 does.",
       evidence::proved(),
       {{"cubic", moments_of(relation::cubic, size.key_dim).linear_share(size.key_dim)},
        {"exponential", moments_of(relation::exponential, size.key_dim).linear_share(size.key_dim)}},
       "(S + (v − S k)kᵀ)k = v. Stationary second moments of the linear recurrence, keys independent and uniform; E f(k_i)k_j = "
       "0 "
       "for i ≠ j."});
  r.findings.push_back({"own-key-runs",
                        "The runs are within " + percent(worst, 2) + " of that for the five nonlinear relations.",
                        evidence::sampled(cases, options.seed, "of a run: that is the number"),
                        {{"worst", worst}},
                        "β = 1, mean over tokens " + count(first) + " … " + count(tokens) + "; table `learning`."});
  r.findings.push_back(
      {"least-squares-halves",
       high < 2.05 && low > 1.5
           ? "Least squares then halves the error of DeltaNet: ratio " + number(low, 3) + " to " + number(high, 3) +
                 " over the five nonlinear relations (2/(1 + d/t) = " + number(predicted, 3) +
                 " expected), not 1.03. What least squares gains is averaging, and a smaller step gains it too: β = 1/8 needs " +
                 number(over(4, 1, false).mean / over(4, 2, false).mean, 3) + " times the error of least squares for eᵏ."
           : "DeltaNet's error is " + number(low, 3) + " to " + number(high, 3) + " times that of least squares.",
       evidence::sampled(cases, options.seed, "between the relations: the range"),
       {{"lowest", low}, {"highest", high}, {"expected", predicted}},
       "1 − c² times (1 + d/t) for least squares after t tokens, twice 1 − c² for β = 1."});
  const double linear = over(4, 2, false).mean;
  const double affine = over(4, 3, false).mean;
  r.findings.push_back(
      {"constant-feature",
       affine < 0.01 * linear
           ? "That eᵏ resists linear memories is the missing constant: least squares of k leaves " + percent(linear, 3) +
                 " of E v², least squares of (1, k) leaves " + percent(affine, 2) +
                 ", since over a unit key eᵏ is 1 + k to within " +
                 percent(1 - moments_of(relation::exponential, size.key_dim).affine_share(size.key_dim), 2) + "."
           : "A constant feature takes the error of least squares for eᵏ from " + percent(linear, 3) + " to " +
                 percent(affine, 3) + " of E v².",
       evidence::sampled(cases, options.seed, "standard deviation of a run " + number(over(4, 3, false).deviation, 2)),
       {{"without", linear}, {"with", affine}},
       "The same tokens with a 65th coordinate 1 appended to the key."});
  // |grad_S of |S k - v|^2 / 2| = |S k - v| |k|.
  const auto gradient = [&](std::size_t f) {
    return std::sqrt(over(f, 0, false).mean * moments_of(relations[f].id, size.key_dim).square *
                     static_cast<double>(size.key_dim));
  };
  const auto relative = [&](std::size_t f) { return std::sqrt(over(f, 0, false).mean); };
  r.findings.push_back(
      {"gradients",
       "The gradient of |S k − v|²/2 in S has norm |S k − v||k|: " + number(gradient(4), 3) + " for eᵏ, " +
           number(gradient(3), 2) + " for k⁴, a ratio of " + number(gradient(4) / gradient(3), 3) + "; divided by |v| they are " +
           number(relative(4), 3) + " and " + number(relative(3), 3) +
           ". Large and vanishing gradients are the scale of v, which one scalar per layer removes; the 1.9 of "
           "the document is 2 E v² with E v² = " +
           number(moments_of(relation::exponential, size.key_dim).square, 4) + ", no explosion.",
       evidence::sampled(cases, options.seed,
                         "standard deviation of a run's mean square, relative: " +
                             number(over(4, 0, false).deviation / over(4, 0, false).mean, 2)),
       {{"exponential", gradient(4)},
        {"quartic", gradient(3)},
        {"relative_exponential", relative(4)},
        {"relative_quartic", relative(3)}},
       "Root mean square over the same tokens, β = 1; the rank-one gradient (S k − v)kᵀ has Frobenius norm |S k − v||k|."});
  figure f;
  f.id = "learning";
  f.title = "The same memories, asked a question that has an answer";
  f.caption =
      "Error / E v² of predicting v = f(k) for a fresh key before it is written, beside the best linear and the best affine map. "
      "1 is the "
      "predictor 0. With β = 1 DeltaNet makes twice the error of the best linear map, least squares reaches it, and one constant "
      "feature "
      "solves eᵏ. (Identity is learnt exactly by all and lies below the scale.)";
  f.alt =
      "A table of colours, relations by memories: DeltaNet with beta one is near two for all but the cubic, least squares near "
      "one, with a constant near zero for the exponential.";
  heat_map h;
  h.label = "error / E v²";
  h.digits = 2;
  h.minimum = 0;
  h.maximum = 2;
  h.columns = learners.size() + 2;
  for (const learner& who : learners) h.column_names.emplace_back(who.name);
  h.column_names.emplace_back("best linear");
  h.column_names.emplace_back("best affine");
  for (std::size_t i = 1; i < relations.size(); ++i) {
    ++h.rows;
    h.row_names.emplace_back(relations[i].formula);
    const moments m = moments_of(relations[i].id, size.key_dim);
    for (std::size_t who = 0; who < learners.size(); ++who) h.values.push_back(over(i, who, false).mean);
    h.values.push_back(1 - m.linear_share(size.key_dim));
    h.values.push_back(1 - m.affine_share(size.key_dim));
  }
  panel p;
  p.title = "before the update, own key";
  p.heat = std::move(h);
  f.panels = {std::move(p)};
  r.tables.push_back(std::move(t));
  r.figures.push_back(std::move(f));
}

void add_retrieval(const run_options& options, const settings& size, report& r) {
  const std::array<relation, 3> kinds{relation::identity, relation::quadratic, relation::exponential};
  const std::array<const char*, 2> who{"DeltaNet", "RLS"};
  const std::array<std::size_t, 4> pairs{1, 10, 50, 1000};
  const std::size_t jobs = kinds.size() * who.size() * size.retrieval_runs;
  struct outcome {
    std::array<double, 4> error{};
    double cosine = 0;
    double recent = 0;  ///< over the last d/2 tokens
    double old = 0;     ///< over the first half
  };
  std::vector<outcome> outcomes(jobs);
  const std::size_t done = for_each_index(jobs, options, "retrieval", [&](std::size_t i) {
    const std::size_t run = i % size.retrieval_runs;
    task t;
    t.f = kinds[i / size.retrieval_runs / who.size()];
    t.key_dim = size.key_dim;
    t.tokens = size.tokens;
    const inputs in = make_inputs(t, options.seed, 400 + run);
    const auto m = make_memory(who[i / size.retrieval_runs % who.size()], size.key_dim, size.key_dim);
    const matrix<double> o = recollect(*m, in);
    std::vector<double> errors(size.tokens);
    for (std::size_t k = 0; k < size.tokens; ++k) {
      double overlap = 0;
      double length = 0;
      double value = 0;
      for (std::size_t j = 0; j < o.cols(); ++j) {
        errors[k] += (o(k, j) - in.v(k, j)) * (o(k, j) - in.v(k, j)) / static_cast<double>(o.cols());
        overlap += o(k, j) * in.v(k, j);
        length += o(k, j) * o(k, j);
        value += in.v(k, j) * in.v(k, j);
      }
      outcomes[i].cosine += overlap / std::sqrt(length * value) / static_cast<double>(size.tokens);
      if (k + size.key_dim / 2 >= size.tokens) outcomes[i].recent += errors[k] / (static_cast<double>(size.key_dim) / 2);
      if (2 * k < size.tokens) outcomes[i].old += errors[k] / (static_cast<double>(size.tokens) / 2);
    }
    philox random(options.seed, 900 + i);
    for (std::size_t p = 0; p < pairs.size(); ++p) {
      for (std::size_t k = 0; k < pairs[p]; ++k) {
        const std::size_t token = pairs[p] >= size.tokens ? k % size.tokens : static_cast<std::size_t>(random.below(size.tokens));
        outcomes[i].error[p] += errors[token] / static_cast<double>(pairs[p]);
      }
    }
  });
  if (done < jobs) {
    r.unfinished.emplace_back("Retrieval: interrupted before all runs were done.");
    return;
  }
  const auto over = [&](std::size_t f, std::size_t m, auto get) {
    std::vector<double> x;
    for (std::size_t run = 0; run < size.retrieval_runs; ++run)
      x.push_back(get(outcomes[(f * who.size() + m) * size.retrieval_runs + run]));
    return spread_of(x);
  };
  const auto extreme = [&](std::size_t f, std::size_t m, std::size_t p, bool least) {
    double result = least ? HUGE_VAL : 0;
    for (std::size_t run = 0; run < size.retrieval_runs; ++run) {
      const double x = outcomes[(f * who.size() + m) * size.retrieval_runs + run].error[p];
      result = least ? std::min(result, x) : std::max(result, x);
    }
    return result;
  };
  table t;
  t.id = "retrieval";
  t.title = "Error of reading the final state with keys of the past, T = 1000";
  t.columns = {"values",
               "memory",
               "1 pair",
               "10 pairs",
               "50 pairs",
               "all pairs",
               {"error / E v²", 3},
               {"cosine", 3},
               {"first half / E v²", 3},
               {"last d/2 tokens / E v²", 3}};
  const auto text = [](const spread& s) { return number(s.mean, 3) + " ± " + number(s.deviation, 2); };
  for (std::size_t f = 0; f < kinds.size(); ++f) {
    const double square = moments_of(kinds[f], size.key_dim).square;
    for (std::size_t m = 0; m < who.size(); ++m) {
      std::vector<cell> row{name_of(kinds[f]), who[m]};
      for (std::size_t p = 0; p < pairs.size(); ++p)
        row.emplace_back(text(over(f, m, [p](const outcome& o) { return o.error[p]; })));
      row.emplace_back(over(f, m, [](const outcome& o) { return o.error[3]; }).mean / square);
      row.emplace_back(over(f, m, [](const outcome& o) { return o.cosine; }).mean);
      row.emplace_back(over(f, m, [](const outcome& o) { return o.old; }).mean / square);
      row.emplace_back(over(f, m, [](const outcome& o) { return o.recent; }).mean / square);
      t.rows.push_back(std::move(row));
    }
  }
  t.note = "Mean ± standard deviation over " + std::to_string(size.retrieval_runs) +
           " runs, pairs drawn at random. Printed: quadratic 0.001 (RLS 0.0007); exponential 0.004 for one pair, 2.9 for ten, "
           "RLS about 1.0.";
  const spread one = over(2, 0, [](const outcome& o) { return o.error[0]; });
  const spread ten = over(2, 0, [](const outcome& o) { return o.error[1]; });
  const spread all = over(2, 0, [](const outcome& o) { return o.error[3]; });
  const double low = extreme(2, 0, 0, true);
  const double high = extreme(2, 0, 1, false);
  const bool same = std::fabs(one.mean - all.mean) < 3 * one.deviation / std::sqrt(static_cast<double>(size.retrieval_runs)) &&
                    std::fabs(ten.mean - all.mean) < 3 * ten.deviation / std::sqrt(static_cast<double>(size.retrieval_runs));
  r.findings.push_back(
      {"retrieval-does-not-depend-on-the-number",
       same ? "Asking for ten pairs is no harder than asking for one: for eᵏ the mean error is " + text(one) + " for one pair, " +
                  text(ten) + " for ten, " + text(all) +
                  " for all. Single draws spread like (1 − z)², z standard normal, times E v² (from " + number(low, 2) +
                  " for one pair to " + number(high, 3) + " for ten, over these runs); the printed 0.004 and 2.9 are two draws."
            : "For eᵏ the mean error is " + text(one) + " for one pair, " + text(ten) + " for ten, " + text(all) + " for all.",
       evidence::sampled(size.retrieval_runs, options.seed, "standard deviation of a run " + number(one.deviation, 2)),
       {{"one", one.mean}, {"ten", ten.mean}, {"all", all.mean}, {"least_of_one", low}, {"largest_of_ten", high}, {"same", same}},
       "Reading does not change the state, so each pair has the same expected error whoever else is asked for."});
  const double identity = over(0, 0, [](const outcome& o) { return o.error[3]; }).mean;
  const double forgotten =
      over(1, 0, [](const outcome& o) { return o.old; }).mean / moments_of(relation::quadratic, size.key_dim).square;
  r.findings.push_back(
      {"retrieval",
       "Of v = k everything is retrieved (error " + number(identity, 2) + ", expected (1 − 1/d)^T/d = " +
           number(delta_own_before(moments_of(relation::identity, size.key_dim), size.key_dim, size.tokens + 1).last, 2) +
           ", as S → I: a map is learnt, no pair is stored). Of v = k² nothing is, but for the last few tokens: the first half "
           "comes back "
           "with an error of " +
           number(forgotten, 3) + " E v², worse than 0; least squares gives 0 back (error " +
           number(over(1, 1, [](const outcome& o) { return o.error[3]; }).mean /
                      moments_of(relation::quadratic, size.key_dim).square,
                  3) +
           " E v², 1 − d/T from fitting its own tokens).",
       evidence::sampled(size.retrieval_runs, options.seed, "table"),
       {{"identity", identity}, {"quadratic_first_half", forgotten}},
       "State after 1000 tokens, read with the keys it was written with."});
  r.tables.push_back(std::move(t));
}

}  // namespace deltaproof::detail::recall
