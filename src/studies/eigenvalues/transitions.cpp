// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdlib>

#include "deltaproof/algebra/spectrum.hpp"
#include "deltaproof/number/real.hpp"
#include "deltaproof/scan/transition.hpp"
#include "studies/eigenvalues/parts.hpp"

namespace deltaproof::detail::eigenvalues {
namespace {

using wide = real<128>;

/// To three significant digits: decompositions differ in their last bits between compilers.
double three_digits(double x) { return std::strtod(number(x, 3).c_str(), nullptr); }

template <class S, format F>
matrix<S> lifted(const matrix<rounded<F>>& m) {
  matrix<S> result(m.rows(), m.cols());
  for (std::size_t i = 0; i < m.size(); ++i) result.data()[i] = lift<S>(m.data()[i]);
  return result;
}

/// |M| - 1 for a symmetric M: its largest |eigenvalue|.
template <class S>
S excess_over_one(const matrix<S>& m) {
  const std::vector<S> values = symmetric_eigenvalues(m);
  const S bottom = -values.front();
  const S top = values.back();
  return (bottom > top ? bottom : top) - 1;
}

/// A 2 x 2 principal part (1 c; c m) with c != 0 has an eigenvalue above 1, and so has M (interlacing).
template <format F>
bool has_expansive_row(const matrix<rounded<F>>& m) {
  for (std::size_t i = 0; i < m.rows(); ++i) {
    if (m(i, i).value() < 1) continue;
    for (std::size_t j = 0; j < m.cols(); ++j) {
      if (j != i && m(i, j).value() != 0) return true;
    }
  }
  return false;
}

struct sample {
  double norm_excess = 0;
  double radius_excess = 0;
  double added = 0;
  bool expansive = false;
  bool proved = false;
  bool checked = false;
  double disagreement = 0;
};

/// fp64 needs more than double to show its own roundings.
template <format F>
constexpr bool needs_wide = F.precision > 40;
constexpr std::size_t wide_share = 10;

template <format F>
sample examine(std::span<const double> k, double beta, bool check) {
  sample s;
  const matrix<rounded<F>> m = materialised_transition<F>(k, beta);
  const rational n = exact_squared_norm(k);
  const double u = unit_roundoff(F);
  const rational lambda = 1 - exact(beta) * n;
  const double exact_excess = lambda < -1 ? to_double(-1 - lambda) / u : 0;
  double radius_excess = 0;
  double noise = static_cast<double>(k.size()) * 0x1p-48;
  if constexpr (needs_wide<F>) {
    radius_excess = round_to<double>(excess_over_one(lifted<wide>(m)));
    noise = 0x1p-100;
  } else {
    radius_excess = excess_over_one(lifted<double>(m));
    if (check) {
      s.checked = true;
      s.disagreement = std::fabs(radius_excess - round_to<double>(excess_over_one(lifted<wide>(m))));
    }
  }
  s.norm_excess = to_double(n - 1) / u;
  s.radius_excess = three_digits(radius_excess / u);
  s.added = three_digits(radius_excess / u - exact_excess);
  s.expansive = radius_excess > noise;
  s.proved = has_expansive_row(m);
  return s;
}

}  // namespace

transition_survey survey_transitions(const run_options& options, std::size_t keys) {
  struct job {
    std::size_t result;
    std::size_t index;
    sample (*run)(std::span<const double>, double, bool);
  };
  transition_survey survey;
  std::vector<job> jobs;
  for_each_format([&](auto tag, std::size_t) {
    constexpr format F = decltype(tag)::value;
    const std::size_t count = needs_wide<F> ? std::max<std::size_t>(1, keys / wide_share) : keys;
    for (const std::size_t dim : transition_dims) {
      for (const double beta : transition_betas) {
        transition_result r;
        r.format_name = name_of(F);
        r.dim = dim;
        r.beta = beta;
        for (std::size_t i = 0; i < count; ++i) jobs.push_back({survey.results.size(), i, &examine<F>});
        survey.results.push_back(std::move(r));
      }
    }
  });
  std::vector<sample> samples(jobs.size());
  const std::size_t done = for_each_index(jobs.size(), options, "materialised transitions", [&](std::size_t i) {
    const transition_result& r = survey.results[jobs[i].result];
    const std::vector<double> k = unit_key(r.format_name, options.seed, r.dim, jobs[i].index);
    samples[i] = jobs[i].run(k, r.beta, jobs[i].index == 0);
  });
  for (std::size_t i = 0; i < done; ++i) {
    transition_result& r = survey.results[jobs[i].result];
    const sample& s = samples[i];
    r.largest_added = r.keys == 0 ? s.added : std::max(r.largest_added, s.added);
    ++r.keys;
    r.expansive += s.expansive ? 1 : 0;
    r.proved += s.proved ? 1 : 0;
    r.norm_excess.push_back(s.norm_excess);
    r.radius_excess.push_back(s.radius_excess);
    if (s.checked) {
      ++survey.spot_checks;
      survey.worst_disagreement = std::max(survey.worst_disagreement, s.disagreement);
    }
  }
  survey.complete = done == jobs.size();
  return survey;
}

}  // namespace deltaproof::detail::eigenvalues
