// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
//
// What a plan costs in one place beside its formats alone, and whether that is too much, for outputs and gradients.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "deltaproof/referee/inverse_cost.hpp"
#include "referee/parts.hpp"

namespace deltaproof::referee_detail {

/// Runs of the formats alone in each place, half of them on the given inputs.
inline constexpr std::size_t alone_draws = 6;

/// The same formats of operands and stores; the inverse substituted, every sum and the state in fp32 at least, what cancels left
/// out, in the arithmetic of usual hardware.
[[nodiscard]] plan_variant formats_alone(plan_variant v, double l2norm_epsilon);

/// What the plan costs in one place beside its formats alone, law by law: on the given inputs and on moved ones, each with the
/// runs of the formats alone on such inputs. Inputs that happen to be special are so for both.
struct place_cost {
  double plan = 0;
  double magnitude = 0;           ///< what errors are relative to
  std::array<double, 2> least{};  ///< errors below it count as that, on the given inputs and on moved ones
  std::size_t first = 0;
  std::string tensor;
  std::array<std::vector<double>, 2> alone;  ///< on the given inputs, on moved ones
  std::vector<std::vector<double>> runs;     ///< of the plan: [law][run]

  /// The largest ratio of typical errors. On the given inputs two standard errors less: there one rounding that came out small by
  /// luck is so in every run.
  [[nodiscard]] double ratio() const;
  /// The ratio is above `allowed_ratio`, and finite.
  [[nodiscard]] bool is_above() const;
  /// It is, and so few runs may scatter so far by chance.
  [[nodiscard]] bool is_open(double alpha) const { return is_above() && !surely_above(alpha); }
  /// Whether one of the ratios is surely above `allowed_ratio`: beyond what so few runs scatter, at `alpha` for each law. Log
  /// errors, one spread for all, Student's law.
  [[nodiscard]] bool surely_above(double alpha) const;

 private:
  struct comparison {
    double log_ratio = 0, error = 0;
  };
  struct scatter {
    double spread = 0, degrees = 0;
  };
  [[nodiscard]] comparison compare(std::size_t law, double spread) const;
  [[nodiscard]] scatter scatter_of_runs() const;
};

/// How often places are looked at, each time with more runs, before what is still open stays so.
inline constexpr std::size_t adequacy_looks = 3;

/// The probability of one law of one place at one look. `t`: a trial of outputs or of gradients.
template <class Trial>
[[nodiscard]] double alpha_of_place(const Trial& t, std::size_t places) {
  const std::size_t laws = places * laws_of_runs(t.variants.size());
  return t.options.judge.false_alarm / static_cast<double>(adequacy_looks * std::max<std::size_t>(1, laws));
}

/// The runs on moved inputs that stand behind a place, of the plan and of its formats.
[[nodiscard]] double runs_behind(const place_cost& c);

/// Draws more runs where a plan would be refused, and again while what decides is what they scatter by chance: a plan's first few
/// runs may all lack a rounding that the others have. `first_place`: of each head, and the end of the last. `draw(head, look, its
/// places)` doubles the runs of a head; false where there is no time for it.
void close_places(double alpha, const std::vector<std::size_t>& first_place, std::span<place_cost> places,
                  const std::function<bool(std::size_t, std::size_t, std::span<place_cost>)>& draw);

/// Adds what one place says to `out`: that the plan is inadequate, or, as the reason alone, that this is not known.
void judge_place(const place_cost& c, double alpha, adequacy_report& out);

}  // namespace deltaproof::referee_detail
