// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT

#include <algorithm>
#include <cmath>
#include <map>
#include <string>

#include "deltaproof/number/format.hpp"
#include "studies/chunk_stability/sections.hpp"

namespace deltaproof::detail::chunk_stability {
namespace {

using chunks::key_kind;

std::string law_text(const chunks::step_law& law) {
  return law.low == law.high ? "β = " + number(law.low, 7) : "β in [" + number(law.low, 3) + ", " + number(law.high, 3) + ")";
}

}  // namespace

void add_ranges(const run_options& options, const chunk_survey& survey, std::span<const range_row> rows, const agreement& signs,
                report& r) {
  // Of the repeated key by chunk length, and the largest of all.
  std::map<std::size_t, double> repeated;
  double largest = 0;
  std::string where;
  std::uint64_t cases = 0;
  for (const range_row& row : rows) {
    cases += row.draws;
    if (row.keys == key_kind::repeated) repeated[row.chunk] = std::max(repeated[row.chunk], row.radius);
    if (row.radius <= largest) continue;
    largest = row.radius;
    where = std::string(name_of(row.keys)) + ", C = " + std::to_string(row.chunk) + ", " + law_text(row.steps);
  }
  std::string drawn;
  std::string fixed;
  bool helps = true;
  std::map<std::string, cell> values{{"largest", largest}};
  for (const auto& [chunk, radius] : repeated) {
    const double with_one_beta = survey.at(key_kind::repeated, "bf16", chunk).worst_radius();
    helps = helps && radius < with_one_beta;
    drawn += (drawn.empty() ? "" : " and ") + number(radius, 4) + " (C = " + std::to_string(chunk) + ")";
    fixed += (fixed.empty() ? "" : " and ") + number(with_one_beta, 4);
    values["repeated_C" + std::to_string(chunk)] = radius;
  }
  r.findings.push_back(
      {"one-step-is-worst",
       std::string(helps ? "One key needs one β to be at its worst: " : "One key is as bad with many β: ") +
           "where β is drawn anew for each token, from [0, 2), [1, 2) or [1.9, 2), the repeated key has radius " + drawn +
           ", against " + fixed +
           " with one β, because the roundings of the stored inverse then differ from row to row. Largest of all kinds: " +
           number(largest, 4) + " (" + where + ").",
       evidence::worst_found(cases, options.seed), values,
       "The same realised transitions, with steps uniform in the range, rounded down to multiples of 2⁻⁷."});
  r.findings.push_back({"alternating-is-repeated",
                        signs.equal == signs.cases
                            ? "Keys k, −k, k, … have the eigenvalue of the repeated key, bit for bit, in all " +
                                  std::to_string(signs.cases) + " cases."
                            : "Keys k, −k, k, … differ from the repeated key in " + std::to_string(signs.cases - signs.equal) +
                                  " of " + std::to_string(signs.cases) + " cases.",
                        evidence::worst_found(signs.cases, options.seed),
                        {{"equal", signs.equal}, {"cases", signs.cases}},
                        "Rounding to nearest is symmetric, and each sign appears twice in every product. bf16, C = 32, five β."});
  table t;
  t.id = "drawn-steps";
  t.title = "Steps drawn anew for each token, stored in bf16";
  t.columns = {"keys", "steps", "C", {"spectral radius", 5}, {"distance to the exact chunk", 3}};
  for (const range_row& row : rows)
    t.rows.push_back({std::string(name_of(row.keys)), law_text(row.steps), row.chunk, row.radius, row.distance});
  t.note = "Largest of " + std::to_string(rows.front().draws) + " draws (repeated: " + std::to_string(rows.back().draws) +
           "). Distance: Frobenius norm of P̂ − P.";
  r.tables.push_back(std::move(t));
}

void add_origins(const run_options& options, const settings& size, std::span<const origin_row> rows,
                 std::span<const arithmetic_row> others, report& r) {
  std::array<double, 3> worst{};
  double of_bound = 0;
  for (const origin_row& row : rows) {
    if (row.keys != key_kind::repeated) continue;
    for (std::size_t k = 0; k < worst.size(); ++k) worst[k] = std::max(worst[k], row.distance[k]);
    of_bound = std::max(of_bound, row.largest_of_bound);
  }
  const bool inverse_alone = worst[0] > 10 * worst[1] && worst[0] > 10 * worst[2];
  r.findings.push_back(
      {"stored-inverse-does-it",
       (inverse_alone ? "The stored inverse does it alone: with everything else exact, rounding Ai to bf16 moves the chunk of "
                        "one repeated key by "
                      : "No single stored stage stands out: rounding Ai to bf16 moves the chunk of one repeated key by ") +
           number(worst[0], 2) + " (C = 64, |P̂ − P|), rounding β k by " + number(worst[1], 2) + ", rounding w by " +
           number(worst[2], 2) + ".",
       evidence::worst_found(static_cast<std::uint64_t>(rows.size()) * size.repeated_seeds, options.seed),
       {{"inverse", worst[0]}, {"scaled_keys", worst[1]}, {"w", worst[2]}},
       "Each stage rounded by itself, once, the others in fp64; at β = 1, 1.75 and 1.984."});

  std::map<std::string, cell> safe;
  std::string list;
  for (const format& f : {bf16, fp16}) {
    list += (list.empty() ? "" : ", in ") + std::string(name_of(f)) + ": ";
    for (const std::size_t chunk : size.chunks) {
      const double x = proved_safe_x(chunk, unit_roundoff(f));
      safe[std::string(name_of(f)) + "_C" + std::to_string(chunk)] = x;
      list += (chunk == size.chunks.front() ? "" : ", ") + number(std::floor(1000 * x) / 1000, 4) +
              " (C = " + std::to_string(chunk) + ")";
    }
  }
  r.findings.push_back({"proved-safe",
                        "For one repeated key, x = β|k|² in [1, 2), storing Ai moves the eigenvalue along k by at most C u x² / "
                        "(2 − x). So a chunk whose only rounding is the "
                        "stored inverse cannot explode up to these x: " +
                            list + ". Below x = 1 it cannot while C u ≤ 1.",
                        evidence::proved("algebra.repeated_keys.stored_inverse_moves_eigenvalue"), safe,
                        "Ai has ones on its diagonal, stored exactly, and −x (1 − x)^(i−j−1) below it, each stored within a "
                        "relative u, underflow aside; a "
                        "row moves w·k by at most u x · x Σ (x − 1)^m ≤ u x² / (2 − x), and the eigenvalue is 1 minus the sum "
                        "over C rows. Exact part: |1 − x|^C. For x ≤ 1 the sum gives C u x, and "
                        "(1 − x)^C + C u x is convex, 1 at x = 0 and C u at x = 1."});
  r.findings.push_back(
      {"bound-attained",
       "The largest movement met is " + number(of_bound, 3) + " of that bound" +
           (of_bound <= 1 ? " (never above it): within a row roundings partly cancel, from row to row they add up."
                          : ": the bound is broken."),
       evidence::worst_found(3 * size.repeated_seeds, options.seed),
       {{"largest_of_bound", of_bound}},
       "Rounding Ai alone, C = 64, β = 1, 1.75, 1.984."});

  table stages;
  stages.id = "which-stage";
  stages.title = "Which stored stage moves the chunk (bf16, C = 64)";
  stages.columns = {"keys",
                    {"β", 7},
                    {"Ai: distance", 3},
                    {"β k: distance", 3},
                    {"w: distance", 3},
                    {"Ai: radius", 5},
                    {"β k: radius", 5},
                    {"w: radius", 5}};
  for (const origin_row& row : rows) {
    stages.rows.push_back({std::string(name_of(row.keys)), row.beta, row.distance[0], row.distance[1], row.distance[2],
                           row.radius[0], row.radius[1], row.radius[2]});
  }
  stages.note = "Each stage rounded alone. Largest of " + std::to_string(size.repeated_seeds) + " draws.";
  r.tables.push_back(std::move(stages));

  table t;
  t.id = "arithmetics";
  t.title = "The same chunk in other arithmetics (C = 64)";
  t.columns = {"arithmetic", "inverse", "keys", {"β", 7}, {"spectral radius", 5}, {"distance to the exact chunk", 3}};
  double kept_apart = 0;
  double inside = 0;
  std::uint64_t lost = 0;
  double native = 0;
  for (const arithmetic_row& row : others) {
    t.rows.push_back({std::string(row.arithmetic), std::string(row.inverse), std::string(name_of(row.keys)), row.beta, row.radius,
                      row.distance});
    if (row.keys == key_kind::repeated && row.arithmetic == "bf16") kept_apart = std::max(kept_apart, row.radius);
    if (row.arithmetic == "bf16, inverse bf16") inside = std::max(inside, row.radius);
    if (row.arithmetic == "bf16, inverse fp16 native" && !std::isfinite(row.distance)) ++lost;
    if (row.arithmetic == "bf16 native") native = std::max(native, row.radius);
  }
  t.note = "Largest of " + std::to_string(size.seeds) +
           " draws; inf: an entry of w is not finite. *merges tf32*: off-diagonal blocks of the inverse with tf32 operands. "
           "*inverse bf16*: the whole inverse with bf16 operands, so each entry sees the rounded ones before it. *native*: sums "
           "rounded too.";
  r.tables.push_back(std::move(t));
  r.findings.push_back({"rounding-inside-is-milder",
                        std::string(inside < explodes_at && kept_apart >= explodes_at
                                        ? "An inverse computed with bf16 operands is safer to store in bf16 than one computed in "
                                          "fp32: each entry is computed from the rounded entries before "
                                          "it, which corrects them; radius "
                                        : "Rounding inside the inverse does not help: radius ") +
                            number(inside, 5) + " against " + number(kept_apart, 4) +
                            " on the same inputs. With every sum in bf16 the radius reaches " + number(native, 3) +
                            "; a Neumann inverse in fp16 leaves its format in " + std::to_string(lost) + " of 12 cases.",
                        evidence::worst_found(static_cast<std::uint64_t>(others.size()) * size.seeds, options.seed),
                        {{"inverse_bf16", inside},
                         {"inverse_fp32_stored_bf16", kept_apart},
                         {"bf16_native", native},
                         {"fp16_neumann_not_finite", lost}},
                        "See the table; K = " + std::to_string(size.key_dim) + ", β = 1, 1.75 and 1.984."});
}

}  // namespace deltaproof::detail::chunk_stability
