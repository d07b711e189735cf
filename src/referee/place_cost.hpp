// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
//
// What a plan costs in one place beside its formats alone, and whether that is too much, for outputs and gradients.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "deltaproof/referee/inverse_cost.hpp"
#include "referee/parts.hpp"

namespace deltaproof::referee_detail {

/// Runs of the formats alone in each place: the first on the given inputs, where a second would repeat it.
inline constexpr std::size_t alone_draws = 1 + fewest_runs;
[[nodiscard]] constexpr std::size_t law_of_alone(std::size_t draw) { return draw == 0 ? 0 : 1; }

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
  /// Of one law alone.
  [[nodiscard]] double ratio_of(std::size_t law) const;
  /// Whether laws 2 `number` and 2 `number` + 1, those of one variant, would be allowed by themselves. Who has fewer laws has one
  /// number for all behind.
  [[nodiscard]] bool allows(std::size_t number, const std::optional<double>& accuracy) const;
  /// The ratio is above `allowed_ratio`, and finite.
  [[nodiscard]] bool is_above() const;
  /// It is above, but not surely: more runs may bring it down.
  [[nodiscard]] bool is_undecided(double alpha) const { return is_above() && !surely_above(alpha); }
  /// Whether one of the ratios is surely above `allowed_ratio`: beyond what so few runs scatter, at `alpha` for each law. Log
  /// errors, one spread for the plan's and another for those of its formats, Student's law.
  [[nodiscard]] bool surely_above(double alpha) const;
};

/// How often the places of a head are judged, each time with twice as many runs, before what is still undecided stays so.
inline constexpr std::size_t adequacy_looks = 3;

/// The probability of one law of one place at one look. `t`: a trial of outputs or of gradients.
template <class Trial>
[[nodiscard]] double alpha_of_place(const Trial& t, std::size_t places) {
  const std::size_t laws = places * laws_of_runs(t.kinds.size());
  return t.options.judge.own_false_alarm() / static_cast<double>(adequacy_looks * std::max<std::size_t>(1, laws));
}

/// Where more runs of a head come from. Heads are counted in the slice.
struct more_runs {
  std::function<const plan_variant&(std::size_t law, std::size_t run)> variant;
  const plan_variant& alone;  ///< the formats alone
  const referee_options& options;
  /// The rms error in each place of a head, of one run on perturbed inputs of its own. Called from several threads.
  std::function<std::vector<double>(std::size_t head, const plan_variant& v, std::uint64_t number)> errors;
  std::function<double(std::size_t head)> seconds;  ///< of one run
};
/// Draws more runs of the heads where a plan would be refused, and again while the runs scatter too much to decide: the first few
/// may all lack a rounding that the others have. A quarter of the time that judging may take is spent at most. `first_place`: of
/// each head, and the end of the last.
void draw_until_decided(const more_runs& from, double alpha, const std::vector<std::size_t>& first_place,
                        std::span<place_cost> places);

/// Adds what one place says to `out`: that the plan is inadequate, or, as the reason alone, that this is not known.
void judge_place(const place_cost& c, double alpha, adequacy_report& out);

/// Judges each, and says of a plan that they make inadequate which of the arithmetics that it allows do not: a plan promises what
/// the worst of them keeps, but a kernel has one. `name`: of the variant with laws 2i and 2i + 1, of `numbers`.
void judge_places(std::span<const place_cost> places, double alpha, std::size_t numbers,
                  const std::function<std::string(std::size_t number)>& name, adequacy_report& out);

}  // namespace deltaproof::referee_detail
