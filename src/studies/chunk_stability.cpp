// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT

#include <algorithm>
#include <string>
#include <variant>

#include "deltaproof/study/study.hpp"
#include "studies/chunk_stability/sections.hpp"
#include "studies/chunk_stability/survey.hpp"

namespace deltaproof {
namespace {

using namespace detail::chunk_stability;
using detail::chunks::key_kind;

std::string answer(const settings& size, const chunk_survey& survey, const report& r) {
  const auto first = [&](std::string_view format, std::size_t chunk) {
    return survey.at(key_kind::repeated, format, chunk).first_explosion();
  };
  std::string where;
  for (const std::size_t chunk : size.chunks) {
    if (first("bf16", chunk) == 0) continue;
    where += (where.empty() ? "" : ", ") + number(first("bf16", chunk), 4) + " (C = " + std::to_string(chunk) + ")";
  }
  if (where.empty()) return "None of the chunks looked at explodes for β ≤ 2.";
  double fp16 = 2.5;
  double cluster = 2.5;
  double random = 0;
  bool fp32 = false;
  for (const std::size_t chunk : size.chunks) {
    const double half = first("fp16", chunk);
    const double close = survey.at(key_kind::cosine_999, "bf16", chunk).first_explosion();
    if (half > 0) fp16 = std::min(fp16, half);
    if (close > 0) cluster = std::min(cluster, close);
    random = std::max(random, survey.at(key_kind::fresh, "bf16", chunk).worst_radius());
    fp32 = fp32 || first("fp32", chunk) > 0;
  }
  // What the control says, if it ran.
  std::string recurrence;
  for (const finding& f : r.findings) {
    if (f.id != "recurrence-survives") continue;
    const double* bf16_state = std::get_if<double>(&f.values.at("bf16").value());
    if (bf16_state != nullptr) {
      recurrence = *bf16_state < 2 ? ", where the recurrence with a bf16 state ends at most at " + number(*bf16_state, 4) + " times its start"
                                   : std::string(", where the recurrence with a bf16 state grows too");
    }
  }
  const auto from = [](double beta) { return beta <= 2 ? "at β = " + number(beta, 4) : std::string("nowhere"); };
  return "Where the inverse is stored in bf16 and one key repeats with one β: of the β tried, first (radius " +
         number(explodes_at, 3) + " or more) at " + where + recurrence + "; keys of cosine 0.999 first explode " + from(cluster) +
         ", random keys " + (random < explodes_at ? "never, so they hide it" : "too") +
         "; stored in fp16 one repeated key first explodes " + from(fp16) + ", in fp32 " + (fp32 ? "too." : "nowhere.");
}

report run(const run_options& options) {
  const settings size = settings_for(options);
  report r;
  const chunk_survey survey = survey_chunks(options, size);
  r.answer = "Interrupted before all chunks were looked at.";
  if (survey.complete) {
    add_single_chunks(options, size, survey, r);
  } else {
    r.unfinished.emplace_back("Single chunks: interrupted before all were looked at.");
  }
  const auto add = [&](const char* interrupted, auto&& f) {
    if (survey.complete && !options.stopped()) {
      report piece = r;
      f(piece);
      if (!options.stopped()) {
        r = std::move(piece);
        return;
      }
    }
    r.unfinished.emplace_back(interrupted);
  };
  add("Steps drawn anew: interrupted.",
      [&](report& to) { add_ranges(options, survey, survey_ranges(options, size), compare_alternating(options, size), to); });
  add("Which stage: interrupted.",
      [&](report& to) { add_origins(options, size, survey_origins(options, size), survey_arithmetics(options, size), to); });
  add("Many chunks: interrupted.",
      [&](report& to) { add_horizon(options, size, survey_control(options, size), survey_horizon(options, size, survey), to); });
  if (survey.complete) r.answer = answer(size, survey, r);
  r.method =
      "Keys are unit vectors rounded to bf16 (and fp16: subnormals), then pushed below |k|² = 1 one unit of the last place at a "
      "time; β is a number of bf16, the same "
      "for all rows of a chunk unless said otherwise. Each chunk runs through the library's chunkwise form: products of operands "
      "in the stored format, sums in fp32, "
      "the inverse by " +
      std::string(inverse_name) +
      " in fp32 and stored in the format, then w. From the stored w and the bits of k the realised transition I − Σ k wᵀ is "
      "formed in fp64, its spectral radius and norm by repeated "
      "squaring; beside it the exact product of the steps from the same bits. Many chunks: the same kernel and the recurrence on "
      "the same tokens.";
  r.not_claimed = {
      "The table of first explosions is what was found on the stated draws and grid of β; other keys may explode earlier.",
      "Above β = 1 only: β below 1 was not scanned. No gates: a decay below 1 multiplies the eigenvalue by its product over the "
      "chunk.",
      "Radii and norms are fp64 computations, relative accuracy 2·10⁻⁶, not enclosures.",
      "One repeated key with one β is the worst regime known here, not a typical one.",
      "The sums are sequential in fp32; tensor cores add in blocks and truncate. The proved bound concerns the storing of the "
      "inverse alone.",
      "Nothing is said about the outputs' accuracy where nothing explodes: that is study `wy`.",
  };
  r.parameters = {{"key_dim", size.key_dim},
                  {"value_columns", size.value_dim},
                  {"draws", size.seeds},
                  {"draws_of_the_repeated_key", size.repeated_seeds},
                  {"tokens", size.tokens}};
  return r;
}

}  // namespace

extern const study chunk_stability_study{"chunk-stability",
                                         "From which β on does a chunk kernel explode that the recurrence survives?", &run};

}  // namespace deltaproof
