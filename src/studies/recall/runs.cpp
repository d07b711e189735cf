// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT

#include "studies/recall/runs.hpp"

#include <cmath>
#include <string>
#include <utility>

#include "deltaproof/number/errors.hpp"
#include "deltaproof/rule/baselines.hpp"
#include "deltaproof/rule/rules.hpp"
#include "deltaproof/scan/recurrent.hpp"
#include "deltaproof/study/report.hpp"
#include "studies/shared/keys.hpp"

namespace deltaproof::detail::recall {
namespace {

using row = std::span<const double>;
using shared::squared_norm;

/// A baseline of the library; `step(machine, k, v)` says how it is written.
template <class Machine, class Step>
class adapted final : public memory {
 public:
  adapted(Machine machine, Step step, bool normalise, std::size_t key_dim)
      : machine_(std::move(machine)), step_(std::move(step)), normalise_{normalise}, key_(key_dim), query_(key_dim) {}
  void write(row k, row v) override {
    key_.assign(k.begin(), k.end());
    if (normalise_) shared::normalise(key_);
    step_(machine_, row(key_), v);
  }
  void read(row q, std::span<double> o) const override {
    if (!normalise_) return machine_.read(q, o);
    query_.assign(q.begin(), q.end());
    shared::normalise(query_);
    machine_.read(row(query_), o);
  }

 private:
  Machine machine_;
  Step step_;
  bool normalise_;
  std::vector<double> key_;
  mutable std::vector<double> query_;
};

template <class Machine, class Step>
std::unique_ptr<memory> adapt(Machine machine, Step step, std::size_t key_dim, bool normalise = false) {
  return std::make_unique<adapted<Machine, Step>>(std::move(machine), std::move(step), normalise, key_dim);
}

template <class Rule>
std::unique_ptr<memory> by_rule(std::size_t key_dim, std::size_t value_dim, double beta) {
  // e^x correctly rounded, so that the bits are those of every machine.
  return adapt(
      recurrence<double>(key_dim, value_dim),
      [beta](recurrence<double>& m, row k, row v) {
        const auto strength = rounded<fp64>::from_exact(beta);
        m.step(k, v, effective_step(Rule{}, strength, rounded<fp64>::from_exact(squared_norm(k))).value());
      },
      key_dim);
}

void add(score& to, row o, row v) {
  double error = 0;
  double overlap = 0;
  double length = 0;
  for (std::size_t j = 0; j < v.size(); ++j) {
    error += (o[j] - v[j]) * (o[j] - v[j]);
    overlap += o[j] * v[j];
    length += o[j] * o[j];
  }
  to.error += error / static_cast<double>(v.size());
  const double lengths = std::sqrt(length * squared_norm(v));
  if (lengths > 0) to.cosine += overlap / lengths;
}

void divide(score& s, double n) {
  s.error /= n;
  s.cosine /= n;
}

// (K^T K)^-1 by Gauss-Jordan without pivots, which a positive matrix does not need.
template <class S>
matrix<S> inverted(matrix<S> a) {
  const std::size_t n = a.rows();
  for (std::size_t p = 0; p < n; ++p) {
    const S pivot = one<S>() / a(p, p);
    for (std::size_t i = 0; i < n; ++i) {
      if (i == p) continue;
      const S factor = a(i, p) * pivot;
      for (std::size_t j = 0; j < n; ++j) {
        if (j != p) a(i, j) = a(i, j) - factor * a(p, j);
      }
      a(i, p) = -factor;
    }
    for (std::size_t j = 0; j < n; ++j) a(p, j) = j == p ? pivot : pivot * a(p, j);
  }
  return a;
}

}  // namespace

std::unique_ptr<memory> delta_rule(std::size_t key_dim, std::size_t value_dim, double beta) {
  return adapt(
      recurrence<double>(key_dim, value_dim), [beta](recurrence<double>& m, row k, row v) { m.step(k, v, beta); }, key_dim);
}

std::unique_ptr<memory> least_squares(std::size_t key_dim, std::size_t value_dim, double ridge) {
  return adapt(
      recursive_least_squares<double>(key_dim, value_dim, ridge), [](auto& m, row k, row v) { m.step(k, v); }, key_dim);
}

std::unique_ptr<memory> make_memory(std::string_view name, std::size_t d, std::size_t v) {
  const auto plain = [](auto& m, row k, row value) { m.step(k, value); };
  const auto strong = [](auto& m, row k, row value) { m.step(k, value, 0.9); };
  if (name == "Hebbian") return adapt(hebbian<double>(d, v), plain, d);
  if (name == "DeltaNet") {
    return adapt(
        recurrence<double>(d, v), [](recurrence<double>& m, row k, row value) { m.step(k, value, 1.0); }, d, true);
  }
  if (name == "DeltaNet, raw keys") return delta_rule(d, v, 1);
  if (name == "EFLA") return by_rule<exact_flow>(d, v, 1);
  if (name == "Longhorn") return by_rule<implicit_euler>(d, v, 1);
  if (name == "Longhorn, diagonal") {
    return adapt(
        diagonal_longhorn<double>(d, v),
        [](diagonal_longhorn<double>& m, row k, row value) {
          const std::array<double, 1> beta{1};
          m.step(k, value, beta);
        },
        d);
  }
  if (name == "± erase") return adapt(negative_eigenvalues_erase<double>(d, v), strong, d, true);
  if (name == "± both") return adapt(negative_eigenvalues_both<double>(d, v), strong, d, true);
  if (name == "RLS") return least_squares(d, v, 1e-6);
  throw domain_error("recall: no memory is named '" + std::string(name) + "'");
}

observation observe(memory& m, const inputs& in) {
  observation result;
  const std::size_t tokens = in.k.rows();
  const std::size_t width = in.v.cols();
  std::vector<double> o(width);
  std::vector<double> mean(width);
  const auto look = [&](query q, when w, std::size_t t) {
    m.read(q == query::own_key ? in.k.row(t) : in.q.row(t), o);
    score& total = result.prefix[std::size_t(q)][std::size_t(w)];
    add(total, o, in.v.row(t));
    if (t + 1 == tokens) add(result.last[std::size_t(q)][std::size_t(w)], o, in.v.row(t));
  };
  for (std::size_t t = 0; t < tokens; ++t) {
    look(query::own_key, when::before, t);
    look(query::apart, when::before, t);
    m.write(in.k.row(t), in.v.row(t));
    look(query::own_key, when::after, t);
    look(query::apart, when::after, t);
    result.value_square += squared_norm(in.v.row(t)) / static_cast<double>(width);
    for (std::size_t j = 0; j < width; ++j) mean[j] += in.v(t, j) / static_cast<double>(tokens);
    score other;
    add(other, in.v.row((t + 1) % tokens), in.v.row(t));
    result.shuffled += other.error;
  }
  for (std::size_t t = 0; t < tokens; ++t) {
    m.read(in.k.row(t), o);
    add(result.final_state[0], o, in.v.row(t));
    m.read(in.q.row(t), o);
    add(result.final_state[1], o, in.v.row(t));
  }
  const auto n = static_cast<double>(tokens);
  for (auto& by_query : result.prefix) {
    for (score& s : by_query) divide(s, n);
  }
  for (score& s : result.final_state) divide(s, n);
  result.value_square /= n;
  result.shuffled /= n;
  result.value_variance = result.value_square - squared_norm(mean) / static_cast<double>(width);
  return result;
}

score late_prediction(memory& m, const inputs& in, std::size_t first) {
  score result;
  std::vector<double> o(in.v.cols());
  for (std::size_t t = 0; t < in.k.rows(); ++t) {
    if (t >= first) {
      m.read(in.k.row(t), o);
      add(result, o, in.v.row(t));
    }
    m.write(in.k.row(t), in.v.row(t));
  }
  divide(result, static_cast<double>(in.k.rows() - first));
  if (!std::isfinite(result.error)) result = {HUGE_VAL, 0};
  return result;
}

std::vector<score> growth(memory& m, const inputs& in, std::span<const std::size_t> at) {
  std::vector<score> result;
  score total;
  std::vector<double> o(in.v.cols());
  std::size_t next = 0;
  for (std::size_t t = 0; t < in.k.rows() && next < at.size(); ++t) {
    m.write(in.k.row(t), in.v.row(t));
    m.read(in.q.row(t), o);
    add(total, o, in.v.row(t));
    if (t + 1 < at[next]) continue;
    result.push_back(total);
    divide(result.back(), static_cast<double>(t + 1));
    // The direction of what comes out, against the query itself: for v = k the right answer to any query.
    score direction;
    add(direction, o, in.q.row(t));
    result.back().cosine = direction.cosine;
    ++next;
  }
  return result;
}

matrix<double> recollect(memory& m, const inputs& in) {
  for (std::size_t t = 0; t < in.k.rows(); ++t) m.write(in.k.row(t), in.v.row(t));
  matrix<double> o(in.v.rows(), in.v.cols());
  for (std::size_t t = 0; t < in.k.rows(); ++t) m.read(in.k.row(t), o.row(t));
  return o;
}

spread spread_of(std::span<const double> x) {
  spread result;
  if (x.empty()) return result;
  const auto n = static_cast<double>(x.size());
  for (const double value : x) result.mean += value / n;
  for (const double value : x) result.deviation += (value - result.mean) * (value - result.mean);
  result.deviation = x.size() > 1 ? std::sqrt(result.deviation / (n - 1)) : 0;
  return result;
}

std::string text(const spread& s) { return number(s.mean, 3) + " ± " + number(s.deviation, 2); }

costs count_costs(std::size_t dim, std::size_t tokens) {
  using counted = counting<double>;
  const std::vector<counted> k(dim, counted(0.5));
  const std::vector<counted> v(dim, counted(0.25));
  const std::span<const counted> key(k);
  const std::span<const counted> value(v);
  costs result;
  {
    hebbian<counted> m(dim, dim);
    result.hebbian = count_operations([&] { m.step(key, value); });
  }
  {
    recurrence<counted> m(dim, dim);
    result.delta = count_operations([&] { m.step(key, value, counted(1)); });
  }
  {
    recursive_least_squares<counted> m(dim, dim, counted(1));
    result.least_squares = count_operations([&] { m.step(key, value); });
  }
  result.least_squares_anew = count_operations([&] {
    matrix<counted> gram(dim, dim);
    matrix<counted> cross(dim, dim);
    for (std::size_t t = 0; t < tokens; ++t) {
      add_outer(gram, key, key);
      add_outer(cross, key, value);
    }
    for (std::size_t i = 0; i < dim; ++i) gram(i, i) = counted(gram(i, i).value() + 1);  // the count needs no true inverse
    const matrix<counted> inverse = inverted(std::move(gram));
    std::vector<counted> image(dim);
    for (std::size_t i = 0; i < dim; ++i) read_into(cross, inverse.row(i), std::span<counted>(image));
  });
  return result;
}

}  // namespace deltaproof::detail::recall
