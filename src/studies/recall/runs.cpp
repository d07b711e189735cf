// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT

#include <memory>

#include "deltaproof/rule/baselines.hpp"
#include "deltaproof/rule/rules.hpp"
#include "deltaproof/scan/recurrent.hpp"
#include "studies/recall/tasks.hpp"

namespace deltaproof::detail::recall {
namespace {

using row = std::span<const double>;
using shared::squared_norm;

/// A baseline of the library; `step(machine, k, v)` says how it is written.
template <class Machine, class Step>
memory adapt(Machine made, Step step, bool normalise = false) {
  const auto machine = std::make_shared<Machine>(std::move(made));
  const auto key = [normalise](row x) {
    std::vector<double> k(x.begin(), x.end());
    if (normalise) shared::normalise(k);
    return k;
  };
  return {[=](row k, row v) { step(*machine, row(key(k)), v); },
          [=](row q, std::span<double> o) { machine->read(row(key(q)), o); }};
}

template <class Rule>
memory by_rule(std::size_t dim) {
  // e^x correctly rounded, so that the bits are those of every machine.
  return adapt(recurrence<double>(dim, dim), [](recurrence<double>& m, row k, row v) {
    const auto one = rounded<fp64>::from_exact(1);
    m.step(k, v, effective_step(Rule{}, one, rounded<fp64>::from_exact(squared_norm(k))).value());
  });
}

void add(score& to, const score& s) { to = {to.error + s.error, to.cosine + s.cosine}; }
void divide(score& s, double n) { s = {s.error / n, s.cosine / n}; }

}  // namespace

memory delta_rule(std::size_t key_dim, std::size_t value_dim, double beta) {
  return adapt(recurrence<double>(key_dim, value_dim), [beta](recurrence<double>& m, row k, row v) { m.step(k, v, beta); });
}

memory least_squares(std::size_t key_dim, std::size_t value_dim, double ridge_of) {
  return adapt(recursive_least_squares<double>(key_dim, value_dim, ridge_of), [](auto& m, row k, row v) { m.step(k, v); });
}

memory make_memory(std::string_view name, std::size_t d) {
  const auto one = [](auto& m, row k, row v) { m.step(k, v, 1.0); };
  const auto stronger = [](auto& m, row k, row v) { m.step(k, v, strong); };
  if (name == "hebbian") return adapt(hebbian<double>(d, d), [](auto& m, row k, row v) { m.step(k, v); });
  if (name == "delta") return adapt(recurrence<double>(d, d), one, true);
  if (name == "raw") return delta_rule(d, d, 1);
  if (name == "efla") return by_rule<exact_flow>(d);
  if (name == "longhorn") return by_rule<implicit_euler>(d);
  if (name == "erase") return adapt(negative_eigenvalues_erase<double>(d, d), stronger, true);
  if (name == "both") return adapt(negative_eigenvalues_both<double>(d, d), stronger, true);
  if (name == "rls") return least_squares(d, d, ridge);
  throw domain_error("recall: no memory is named '" + std::string(name) + "'");
}

score score_of(row o, row v) {
  score s;
  for (std::size_t j = 0; j < v.size(); ++j) s.error += (o[j] - v[j]) * (o[j] - v[j]);
  s.error /= static_cast<double>(v.size());
  const double lengths = std::sqrt(squared_norm(o) * squared_norm(v));
  if (lengths > 0) s.cosine = shared::dot(o, v) / lengths;
  return s;
}

const reading& reading_named(std::string_view name) {
  const auto at = std::find_if(readings.begin(), readings.end(), [&](const reading& r) { return r.name == name; });
  if (at == readings.end()) throw domain_error("recall: no reading is named '" + std::string(name) + "'");
  return *at;
}

observation observe(const memory& m, const inputs& in) {
  observation result;
  const std::size_t tokens = in.k.rows(), width = in.v.cols();
  std::vector<double> o(width);
  const auto look = [&](reading::moment now, std::size_t t) {
    for (const bool own : {true, false}) {
      m.read(own ? in.k.row(t) : in.q.row(t), o);
      const score s = score_of(o, in.v.row(t));
      for (std::size_t i = 0; i < readings.size(); ++i) {
        if (readings[i].own_key == own && readings[i].when == now && (!readings[i].last || t + 1 == tokens))
          add(result.scores[i], s);
      }
    }
  };
  for (std::size_t t = 0; t < tokens; ++t) {
    look(reading::before, t);
    m.write(in.k.row(t), in.v.row(t));
    look(reading::after, t);
    result.value_square += squared_norm(in.v.row(t)) / static_cast<double>(width);
  }
  for (std::size_t t = 0; t < tokens; ++t) look(reading::at_the_end, t);
  const auto n = static_cast<double>(tokens);
  for (std::size_t i = 0; i < readings.size(); ++i) {
    if (!readings[i].last) divide(result.scores[i], n);
  }
  result.value_square /= n;
  return result;
}

score late_prediction(const memory& m, const inputs& in, std::size_t first, const matrix<double>& truth) {
  score result;
  std::vector<double> o(in.v.cols());
  for (std::size_t t = 0; t < in.k.rows(); ++t) {
    if (t >= first) {
      m.read(in.k.row(t), o);
      add(result, score_of(o, truth.row(t)));
    }
    m.write(in.k.row(t), in.v.row(t));
  }
  divide(result, static_cast<double>(in.k.rows() - first));
  if (!(result.error < diverged)) result = {HUGE_VAL, 0};
  return result;
}

std::vector<score> growth(const memory& m, const inputs& in, std::span<const std::size_t> at) {
  std::vector<score> result;
  double error = 0;
  std::vector<double> o(in.v.cols());
  for (std::size_t t = 0; t < in.k.rows() && result.size() < at.size(); ++t) {
    m.write(in.k.row(t), in.v.row(t));
    m.read(in.q.row(t), o);
    error += score_of(o, in.v.row(t)).error;
    if (t + 1 < at[result.size()]) continue;
    result.push_back({error / static_cast<double>(t + 1), score_of(o, in.q.row(t)).cosine});
  }
  return result;
}

matrix<double> recollect(const memory& m, const inputs& in) {
  for (std::size_t t = 0; t < in.k.rows(); ++t) m.write(in.k.row(t), in.v.row(t));
  matrix<double> o(in.v.rows(), in.v.cols());
  for (std::size_t t = 0; t < in.k.rows(); ++t) m.read(in.k.row(t), o.row(t));
  return o;
}

std::vector<aggregate> means(const std::vector<std::string>& columns) {
  const auto deviation = [](row x) -> cell {
    const auto n = static_cast<double>(x.size());
    double mean = 0, squares = 0;
    for (const double value : x) mean += value / n;
    for (const double value : x) squares += (value - mean) * (value - mean);
    return x.size() > 1 ? std::sqrt(squares / (n - 1)) : 0;
  };
  std::vector<aggregate> result;
  for (const std::string& column : columns) {
    result.push_back({column, column, mean});
    result.push_back({column + "_sd", column, deviation});
  }
  return result;
}

}  // namespace deltaproof::detail::recall
