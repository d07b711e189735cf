// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <string>
#include <vector>

#include "deltaproof/rule/rules.hpp"
#include "studies/efla/sections.hpp"
#include "studies/efla/strength.hpp"

namespace deltaproof::detail::efla {
namespace {

constexpr std::array<std::size_t, 3> dims{16, 64, 128};

/// pi / 2
constexpr double half_pi = 1.57079632679489661923;

double written(double x) {
  const auto wide = rounded<fp64>::from_exact(x);
  return (wide * exact_flow::gain(wide)).value();
}

figure normalisation_figure(const std::vector<norm_sample>& samples) {
  figure f;
  f.id = "normalisation";
  f.title = "How much of the new value a step writes, by normalisation of the key (d = 128)";
  f.columns = 2;
  f.shared_x = true;
  f.shared_y = true;
  f.caption =
      "1 − R(β|k|²) at the mean |k|² of Gaussian keys. L2: |k|² = 1, so x = β; DeltaNet can write all of v at β = 1, EFLA at "
      "most 63 % for β < 1 and 86 % for "
      "β < 2. L1: |k|² is about π/(2d), and both write about 1 % a token. RMS: |k|² = d; DeltaNet leaves the stable range at β = "
      "2/d, EFLA writes everything.";
  f.alt =
      "Two log panels. L1 lies near one hundredth in both; L2 rises to two in the left and to below one in the right; RMS leaves "
      "the left panel and sits at one in the right.";
  panel left;
  left.title = "DeltaNet (Euler)";
  left.x = {"β", axis_scale::linear, 0, 2};
  left.y = {"1 − R", axis_scale::logarithmic, 1e-4, 3};
  left.marks = {{mark_direction::horizontal, 1, ""}};
  panel right = left;
  right.title = "EFLA (exact)";
  for (const norm_sample& s : samples) {
    if (s.key_dim != 128 || s.how == normalisation::none) continue;
    series euler{std::string(name_of(s.how)), {}, {}};
    series flow = euler;
    for (int i = 1; i <= 400; ++i) {
      const double beta = i / 200.0;
      if (beta * s.mean <= 3) {
        euler.x.push_back(beta);
        euler.y.push_back(beta * s.mean);
      }
      flow.x.push_back(beta);
      flow.y.push_back(written(beta * s.mean));
    }
    left.curves.push_back(std::move(euler));
    right.curves.push_back(std::move(flow));
  }
  f.panels = {std::move(left), std::move(right)};
  return f;
}

}  // namespace

void add_strength(const run_options& options, const settings& size, report& r) {
  std::vector<norm_sample> samples(dims.size() * normalisations.size());
  const std::size_t done = for_each_index(samples.size(), options, "normalisations", [&](std::size_t i) {
    samples[i] =
        sample_norms(normalisations[i % normalisations.size()], dims[i / normalisations.size()], size.keys, options.seed);
  });
  if (done < samples.size()) {
    r.unfinished.emplace_back("Normalisations: interrupted.");
    return;
  }
  const identity_check identity = efla_is_deltanet();
  r.findings.push_back(
      {"efla-is-deltanet",
       std::string("EFLA is DeltaNet on the unit key k/|k| with value v/|k| and strength 1 − e^−x: ") +
           (identity.equal == identity.cases ? "the states are equal, number for number, in all cases"
                                             : std::to_string(identity.cases - identity.equal) + " cases differ") +
           ". So it adds no transition that DeltaNet lacks; what it keeps of |k| is a strength and a scale of the value, and "
           "strength 1, an exact "
           "overwrite, is out of its reach.",
       evidence::exhaustive(identity.cases),
       {{"cases", identity.cases}, {"equal", identity.equal}},
       "Both recurrences in rationals, e^−x a free number, keys of rational norm; the identity is algebraic, (1 − E)/|k|² · k kᵀ "
       "= (1 − E) (k/|k|)(k/|k|)ᵀ."});
  const double most_below_one = written(1);
  const double most_below_two = written(2);
  r.findings.push_back(
      {"l2-caps-strength",
       "With L2-normalised keys x = β: for β < 1 EFLA writes less than " + number(100 * most_below_one, 4) +
           " % of a new value, for β < 2 less than " + number(100 * most_below_two, 4) + " %; DeltaNet writes β of it.",
       evidence::certified(),
       {{"below_one", most_below_one}, {"below_two", most_below_two}},
       "1 − e^−1 and 1 − e^−2, each operation of x φ(x) rounded once in fp64 (radius 2^−51); 1 − e^−x is monotone."});
  const auto sample = [&](normalisation how, std::size_t d) -> const norm_sample& {
    return *std::find_if(samples.begin(), samples.end(), [&](const norm_sample& s) { return s.how == how && s.key_dim == d; });
  };
  const norm_sample& l1 = sample(normalisation::l1, 128);
  r.findings.push_back({"l1-range",
                        "|k|₁ = 1 puts |k|² in [1/d, 1]: x ≤ β, so every rule that is stable for L2-normalised keys is for "
                        "L1-normalised ones, and x may be as small as β/d.",
                        evidence::proved(),
                        {},
                        "|k|₂² ≤ |k|₁² (no negative cross terms) and |k|₁² ≤ d |k|₂² (Cauchy–Schwarz, "
                        "float.vectors.cauchy_schwarz); one entry, and d equal ones, attain them."});
  r.findings.push_back(
      {"l1-writes-little",
       "Gaussian keys under L1 have |k|² = " + number(l1.mean, 3) + " ± " + number(l1.deviation, 2) +
           " at d = 128 (π/(2d) = " + number(half_pi / 128, 3) + "), so that even β = 1 writes " +
           number(100 * written(l1.mean), 3) + " % a token. With β uniform in (0, 1) the naive bf16 coefficient is 0 for " +
           number(100 * static_cast<double>(l1.naive_dead) / static_cast<double>(l1.keys), 3) +
           " % of the tokens and off by more than a tenth for " +
           number(100 * static_cast<double>(l1.naive_off) / static_cast<double>(l1.keys), 3) + " %; under L2 for " +
           number(100 * static_cast<double>(sample(normalisation::l2, 128).naive_dead) / static_cast<double>(l1.keys), 3) +
           " % and " +
           number(100 * static_cast<double>(sample(normalisation::l2, 128).naive_off) / static_cast<double>(l1.keys), 3) + " %.",
       evidence::sampled(l1.keys, options.seed,
                         "standard deviation of |k|² " + number(l1.deviation, 3) + "; of a share at most " +
                             number(0.5 / std::sqrt(static_cast<double>(l1.keys)), 2)),
       {{"mean", l1.mean},
        {"deviation", l1.deviation},
        {"written_at_one", written(l1.mean)},
        {"naive_dead_share", static_cast<double>(l1.naive_dead) / static_cast<double>(l1.keys)},
        {"naive_off_share", static_cast<double>(l1.naive_off) / static_cast<double>(l1.keys)}},
       "Gaussian keys in fp64, |k|² and β rounded to bf16, truth in fp64."});
  const norm_sample& raw = sample(normalisation::none, 128);
  r.findings.push_back({"raw-keys",
                        "Without normalisation Gaussian keys have |k|² = " + number(raw.mean, 4) + " ± " +
                            number(raw.deviation, 3) + " at d = 128: DeltaNet is unstable in " +
                            number(100 * static_cast<double>(raw.euler_unstable) / static_cast<double>(raw.keys), 3) +
                            " % of the steps with β uniform in (0, 1), and EFLA's bf16 step erases "
                            "everything along the key, λ ≤ 0, in " +
                            number(100 * static_cast<double>(raw.saturated) / static_cast<double>(raw.keys), 3) +
                            " %: stable, but as an overwrite of v/|k| whatever β is.",
                        evidence::sampled(raw.keys, options.seed, "standard deviation of |k|² " + number(raw.deviation, 3)),
                        {{"mean", raw.mean},
                         {"euler_unstable_share", static_cast<double>(raw.euler_unstable) / static_cast<double>(raw.keys)},
                         {"saturated_share", static_cast<double>(raw.saturated) / static_cast<double>(raw.keys)}},
                        "The same keys as under L1."});
  table t;
  t.id = "normalisation";
  t.title = "x and what it does under each normalisation, Gaussian keys, β uniform in (0, 1)";
  t.columns = {"normalisation",
               "d",
               {"mean |k|²", 4},
               {"standard deviation", 3},
               {"least", 3},
               {"largest", 4},
               {"x > 2 (Euler unstable) %", 3},
               {"naive bf16: nothing written %", 3},
               {"off by > 10 % %", 3},
               {"expm1 bf16: λ ≤ 0 %", 3},
               {"EFLA writes at β = 1, %", 4}};
  for (const norm_sample& s : samples) {
    const auto n = static_cast<double>(s.keys);
    const auto share = [&](std::uint64_t count) { return 100 * static_cast<double>(count) / n; };
    t.rows.push_back({std::string(name_of(s.how)), s.key_dim, s.mean, s.deviation, s.smallest, s.largest, share(s.euler_unstable),
                      share(s.naive_dead), share(s.naive_off), share(s.saturated), 100 * written(s.mean)});
  }
  t.note = "n = " + std::to_string(size.keys) + " keys a row, seed " + std::to_string(options.seed) +
           ", the same keys in every row of one d.";
  r.tables.push_back(std::move(t));
  r.figures.push_back(normalisation_figure(samples));
}

}  // namespace deltaproof::detail::efla
