// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <optional>
#include <thread>

#include "deltaproof/inverse/inverse_trial.hpp"
#include "deltaproof/number/visit_format.hpp"
#include "inputs/regime_draft.hpp"
#include "inverse/inverse_runs.hpp"
#include "support/parallel.hpp"
#include "support/text.hpp"

namespace deltaproof {
namespace {

struct named_family {
  std::string_view name;
  key_family family;
};
constexpr std::array<named_family, 5> families{{{"gaussian", key_family::gaussian},
                                                {"silu", key_family::silu},
                                                {"elu1", key_family::elu1},
                                                {"identical", key_family::identical},
                                                {"alternating", key_family::alternating}}};

std::optional<double> decimal(std::string_view text) {
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size() || !std::isfinite(value)) return std::nullopt;
  return value;
}

using detail::shortest;

// cos(k_i, k_j), i > j, as exact unit keys have it: 1 for a key and itself, whatever the length of its rounded entries.
matrix<double> draw_cosines(const inverse_problem& p, std::size_t sample, const std::atomic<bool>* stop) {
  matrix<double> cosines(p.chunk, p.chunk);
  const bool fixed = p.keys.family == key_family::identical || p.keys.family == key_family::alternating ||
                     (p.keys.family == key_family::cosine && p.keys.cosine == 1);
  const bool cosine = p.keys.family == key_family::cosine;
  const std::size_t dim = cosine ? p.key_dim - 1 : p.key_dim;  // the last coordinate is along m
  matrix<double> keys(fixed ? 0 : p.chunk, dim);
  philox random(p.seed, 2 * sample);
  detail::elementary math;
  for (std::size_t i = 0; i < keys.rows(); ++i) {
    detail::go_on(stop);
    const std::span<double> key = keys.row(i);
    detail::fill_normal(key, random);
    if (p.keys.family == key_family::silu) {
      for (double& x : key) x *= math.sigmoid(x);
    } else if (p.keys.family == key_family::elu1) {
      for (double& x : key) x = x > 0 ? x + 1 : math.exp(x);
    }
    detail::scale_to(key, 1);
  }
  for (std::size_t i = 0; i < p.chunk; ++i) {
    detail::go_on(stop);
    for (std::size_t j = 0; j < i; ++j) {
      if (fixed) {
        cosines(i, j) = p.keys.family == key_family::alternating && (i - j) % 2 != 0 ? -1 : 1;
        continue;
      }
      double sum = 0;
      for (std::size_t c = 0; c < dim; ++c) sum += keys(i, c) * keys(j, c);
      cosines(i, j) = cosine ? p.keys.cosine + (1 - p.keys.cosine) * sum : sum;
    }
  }
  return cosines;
}

// The computed column is exact for L + D with |D| <= g |L|, g < 9 C 2^-106 (3u^2 an addition, 5u^2 a product, u = 2^-53),
// and X - X^ = (I + L)^-1 D X^: at most C^2/2 terms. The other half covers max|X| <= 2 max|X^|.
double radius_of(const matrix<double>& lower, double largest) {
  double entry = 0;
  for (std::size_t i = 0; i < lower.rows(); ++i) {
    for (std::size_t j = 0; j < i; ++j) entry = std::max(entry, std::fabs(lower(i, j)));
  }
  const auto n = static_cast<double>(lower.rows());
  return 9 * n * 0x1p-106 * n * n * entry * largest * largest + 0x1p-500;
}

inverse_case make_case(matrix<double> lower, const std::atomic<bool>* stop) {
  inverse_case made;
  made.inverse = detail::true_inverse(lower, stop);
  for (std::size_t i = 0; i < made.inverse.size(); ++i)
    made.largest = std::max(made.largest, std::fabs(made.inverse.data()[i].hi()));
  made.radius = radius_of(lower, made.largest);
  // Eight u of fp64 is the smallest limit there is.
  if (!(made.radius <= 0x1p-62 * made.largest)) {
    throw domain_error("inverse: for a chunk of " + std::to_string(lower.rows()) +
                       " rows the true inverse is known only to within " + detail::general(made.radius, 3) +
                       ", too coarse to judge by; take a smaller --chunk");
  }
  made.lower = std::move(lower);
  return made;
}

}  // namespace

namespace detail {

matrix<double_double> true_inverse(const matrix<double>& lower, const std::atomic<bool>* stop) {
  const std::size_t n = lower.rows();
  matrix<double_double> inverse(n, n);
  std::vector<double_double> column(n);
  for (std::size_t j = 0; j < n; ++j) {
    column[j] = inverse(j, j) = double_double(1);
    for (std::size_t i = j + 1; i < n; ++i) {
      go_on(stop);
      double_double sum;
      for (std::size_t m = j; m < i; ++m) sum += double_double(lower(i, m)) * column[m];
      column[i] = inverse(i, j) = -sum;
    }
  }
  return inverse;
}

}  // namespace detail

key_law key_law_named(std::string_view text) {
  for (const named_family& row : families) {
    if (row.name == text) return {row.family, 0};
  }
  if (text.starts_with("cos=")) {
    const auto value = decimal(text.substr(4));
    if (value && *value >= 0 && *value <= 1) return {key_family::cosine, *value};
    throw format_error("keys '" + std::string(text) + "': the mean cosine must be a decimal in [0, 1], as in cos=0.9");
  }
  std::string names;
  for (const named_family& row : families) names += std::string(row.name) + ", ";
  throw format_error("unknown keys '" + std::string(text) + "'; there are " + names + "and cos=C with 0 <= C <= 1");
}

std::string name_of(const key_law& law) {
  for (const named_family& row : families) {
    if (row.family == law.family) return std::string(row.name);
  }
  return "cos=" + shortest(law.cosine);
}

step_law step_law_named(std::string_view text) {
  const auto inside = [](double x) { return x >= 0 && x <= 2; };
  if (const auto value = decimal(text); value && inside(*value)) return {*value, *value};
  if (text.starts_with("U(") && text.ends_with(")")) {
    const std::string_view ends = text.substr(2, text.size() - 3);
    const std::size_t comma = ends.find(',');
    if (comma != std::string_view::npos) {
      std::string_view second = ends.substr(comma + 1);
      while (second.starts_with(' ')) second.remove_prefix(1);
      const auto low = decimal(ends.substr(0, comma));
      const auto high = decimal(second);
      if (low && high && inside(*low) && inside(*high) && *low <= *high) return {*low, *high};
    }
  }
  throw format_error(
      "beta '" + std::string(text) +
      "': give a decimal from 0 to 2, or U(a,b) with 0 <= a <= b <= 2 (uniform between a and b); with unit keys a step beyond 2 "
      "makes the recurrence itself diverge");
}

std::string name_of(const step_law& law) {
  return law.low == law.high ? shortest(law.low) : "U(" + shortest(law.low) + "," + shortest(law.high) + ")";
}

double correlation_of(const key_law& law) {
  switch (law.family) {
    case key_family::gaussian:
      return 0;
    // (E f)^2 / E f^2 for f = z / (1 + e^-z), by quadrature; a test repeats it.
    case key_family::silu:
      return 0.11999764021101127;
    // (phi(0) + 1/2 + e^(1/2) Phi(-1))^2 / (1 + 2 phi(0) + e^2 Phi(-2)), phi and Phi of the normal distribution.
    case key_family::elu1:
      return 0.6850545291957387;
    case key_family::cosine:
      return law.cosine;
    case key_family::identical:
    case key_family::alternating:
      return 1;
  }
  return 0;
}

double bytes_needed(const inverse_problem& problem, unsigned threads) {
  const auto rows = static_cast<double>(problem.chunk);
  const auto samples = static_cast<double>(problem.samples);
  const double busy =
      std::min(samples, static_cast<double>(threads == 0 ? std::max(1U, std::thread::hardware_concurrency()) : threads));
  return rows * rows * (40 * samples + 64 * busy) + 8 * rows * static_cast<double>(problem.key_dim);
}

inverse_inputs::inverse_inputs(const inverse_problem& problem, const std::atomic<bool>* stop) : problem_{problem} {
  for (const auto& [value, name] :
       {std::pair{problem.chunk, "chunk"}, std::pair{problem.samples, "samples"}, std::pair{problem.key_dim, "d"}}) {
    if (value == 0) throw domain_error(std::string("inverse: ") + name + " is 0; it must be at least 1");
  }
  if (problem.keys.family == key_family::cosine && problem.keys.cosine < 1 && problem.key_dim < 2) {
    throw domain_error("inverse: keys of mean cosine " + shortest(problem.keys.cosine) + " need d = 2 or more, d is 1");
  }
  double sum = 0;
  for (std::size_t s = 0; s < problem.samples; ++s) {
    matrix<double> lower = draw_cosines(problem, s, stop);
    philox random(problem.seed, 2 * s + 1);
    for (std::size_t i = 0; i < problem.chunk; ++i) {
      const double beta = problem.beta.low + (problem.beta.high - problem.beta.low) * random.uniform();
      for (std::size_t j = 0; j < i; ++j) {
        sum += lower(i, j);
        lower(i, j) *= beta;
      }
    }
    drawn_.push_back(std::move(lower));
  }
  const std::size_t pairs_of_a_draw = problem.chunk * (problem.chunk - 1) / 2;
  const auto pairs = static_cast<double>(problem.samples * pairs_of_a_draw);
  mean_cosine_ = pairs > 0 ? sum / pairs : 0;
}

std::vector<inverse_case> inverse_inputs::rounded_to(format operand, unsigned threads, const std::atomic<bool>* stop) const {
  std::vector<inverse_case> cases(drawn_.size());
  parallel_for(drawn_.size(), threads, [&](std::size_t s) {
    matrix<double> lower = drawn_[s];
    for (double& x : lower.entries()) x = round_nearest(x, operand);
    cases[s] = make_case(std::move(lower), stop);
  });
  return cases;
}

}  // namespace deltaproof
