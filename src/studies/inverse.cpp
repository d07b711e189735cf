// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT

#include <string>

#include "studies/inverse/survey.hpp"
#include "studies/shared/findings.hpp"

namespace deltaproof {
namespace {

using namespace detail::inverse;
using detail::shared::text_of;
using detail::shared::value_of;

std::string answer(const report& r) {
  const auto every = [&](std::string_view id, const std::string& safe, const std::string& all) {
    return value_of(r, id, all) > 0 && value_of(r, id, safe) == value_of(r, id, all);
  };
  std::string text =
      "That the entries of (I + L)⁻¹ are small is no argument: it bounds the result, not what an algorithm forms on the way, and "
      "sums of powers of L form binomials. ";
  if (every("no-powers-no-danger", "safe", "configurations")) {
    text +=
        "With β ≤ 1, forward substitution, block recursion and substitution on diagonal blocks with block merges were safe in "
        "every format tried, for every kind of keys, up to C = 128; ";
  }
  const auto powers = [&](const std::string& key) { return text_of(r, "powers-need-uncorrelated-keys", key); };
  if (value_of(r, "powers-need-uncorrelated-keys", "whole") > 0) {
    text += "for keys of mean cosine 0.68 or more it was safe to sum powers (Neumann, by doubling) in " + powers("whole_safe") +
            " of " + powers("whole") + " configurations on the whole chunk, " + powers("blocks_of_16_safe") + " of " +
            powers("blocks_of_16") + " on blocks of 16 rows, " + powers("blocks_of_8_safe") + " of " + powers("blocks_of_8") +
            " on blocks of 8. ";
    const bool sixteen = every("coarse-result-forgives", "blocks_of_16_safe", "blocks_of_16");
    const bool eight = every("coarse-result-forgives", "blocks_of_8_beta_1_safe", "blocks_of_8_beta_1");
    if (sixteen) text += "Blocks of 16 were always safe in fp32 for a result in bf16";
    if (sixteen && eight) text += ", blocks of 8 in tf32 and fp16 too";
    if (!sixteen && eight) text += "Blocks of 8 were always safe in fp32, tf32 and fp16 for a result in bf16";
    if (sixteen || eight) text += " (β ≤ 1). ";
  }
  if (every("large-steps-need-spare-bits", "fp32_to_bf16_safe", "fp32_to_bf16")) {
    text +=
        "With β near 2 and correlated keys the arithmetic must be finer than the result: fp32 for bf16 was always safe without "
        "powers. ";
  }
  if (every("random-keys-hide-it", "safe", "configurations")) {
    text += "Gaussian keys of d = " + text_of(r, "random-keys-hide-it", "key_dim") +
            " with β ≤ 1 show none of this: every algorithm was safe there.";
  }
  return text;
}

report run(const run_options& options) {
  const settings size = settings_for(options);
  report r;
  const survey s = run_survey(options, size);
  add_findings(s, options, r);
  if (s.complete) {
    add_figures(s, options, r);
    add_tables(s, r);
  } else {
    r.unfinished.emplace_back(
        "The grid of algorithms, formats, keys, steps and chunks was interrupted: no table, figure or count is given.");
  }
  r.answer = answer(r);
  std::string draws;
  for (std::size_t c = 0; c < size.chunks.size(); ++c) {
    draws += (c == 0 ? "" : ", ") + std::to_string(size.samples[c]) + (c == 0 ? " draws at C = " : " at C = ") +
             std::to_string(size.chunks[c]);
  }
  r.method =
      "**Safe** means: in every draw no intermediate leaves its format, max|X − (I+L)⁻¹| ≤ 8 u max(1, max|(I+L)⁻¹|) with u of "
      "the stored format, and the growth predicted from the "
      "nominal mean cosine, d and β, or the largest intermediate seen where that is larger, times u of the operands, is within "
      "the smallest of these limits too. L = diag(β) (K Kᵀ) below the diagonal from unit "
      "keys, d = " +
      std::to_string(size.key_dim) +
      ", in fp64, then rounded once to the operand format; X is compared with the inverse of that rounded L (double-double "
      "substitution, proved to 2⁻⁶²). Products are exact, each "
      "addition is rounded once to the accumulator, in sequence, and every operand of a product is rounded to the operand "
      "format. The grid: " +
      std::to_string(methods.size()) + " algorithms × " + std::to_string(arithmetics.size()) + " arithmetics × " +
      std::to_string(key_laws.size()) + " kinds of keys × " + std::to_string(step_laws.size()) + " laws of β, with " + draws +
      ". The verb `deltaproof inverse` asks the same of one configuration, with 16 draws unless told otherwise.";
  r.not_claimed = {
      "Safe is seen in a few draws and predicted from a nominal mean cosine; it is not proved for every L. What is proved holds for all: "
      "the two theorems, and the bound through |L| for every L no larger entry by entry.",
      "The sums are sequential with one rounding an addition. Tensor cores truncate and add in blocks; other orders change the "
      "errors of safe algorithms by small factors, not the powers.",
      "Gates are not in L here. Decays in [0, 1] only shrink its entries, but what that does to the errors is not measured.",
      "The error of the inverse is not the error of the kernel's output: β, K and V are multiplied afterwards. Nor is 8 u a law "
      "of nature: it is what substitution and block recursion kept at β ≤ 1 in the draws made here, d = " +
          std::to_string(size.key_dim) + ", " + std::to_string(size.samples.back()) +
          (size.samples.back() == 1 ? " draw" : " draws") + " at C = " + std::to_string(size.chunks.back()) +
          ", results no finer than the operands.",
      "The rounding of L itself is left out, as the input's affair: where I + L is ill-conditioned (β near 2) it alone may cost "
      "more than the algorithm.",
  };
  r.parameters = {{"key_dim", size.key_dim}};
  for (std::size_t c = 0; c < size.chunks.size(); ++c)
    r.parameters["samples_at_chunk_" + std::to_string(size.chunks[c])] = size.samples[c];
  return r;
}

}  // namespace

extern const study inverse_study{"inverse", "Which inverse of I + L is safe, for which keys and steps, in which formats?", &run};

}  // namespace deltaproof
