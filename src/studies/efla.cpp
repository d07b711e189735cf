// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT

#include <cmath>
#include <string>

#include "deltaproof/study/study.hpp"
#include "studies/efla/sections.hpp"
#include "studies/shared/findings.hpp"

namespace deltaproof {

namespace detail::efla {

using shared::find;
using shared::value_of;

std::string answer(const report& r) {
  if (find(r, "naive-error-exhaustive") == nullptr) return "Interrupted: the coefficient was not measured.";
  const double naive = value_of(r, "naive-error-exhaustive", "bf16_worst");
  const double careful = value_of(r, "expm1-error-exhaustive", "bf16_worst_in_u");
  std::string text;
  if (careful < 10 && naive > 0.5) {
    text = "Only through expm1, where it errs by at most " + number(careful, 3) +
           " u in bf16 for every x; (1 − e^−x)/n computed as written is 0 for x ≤ " + number(value_of(r, "dead-zone", "bf16")) +
           " in bf16 (" + number(value_of(r, "dead-zone", "fp32")) + " in fp32), nearly double just above, and off by up to " +
           number(100 * value_of(r, "naive-error-exhaustive", "bf16_worst_in_tenths"), 2) + " % for x between 0.1 and 1";
  } else {
    text = "The two forms err by up to " + number(naive, 3) + " (naive) and " + number(careful, 3) + " u (expm1) in bf16";
  }
  const double full = value_of(r, "eigenvalue-ends", "smallest_full_x");
  if (!std::isnan(full)) {
    text += "; the eigenvalue then ends at 0 or a little below from x = " + number(full, 3) + " on";
  }
  const double l1 = value_of(r, "l1-writes-little", "written_at_one");
  if (!std::isnan(l1)) {
    text += ", and what reaches the formula is the normalisation's doing: L2 keys let EFLA write at most " +
            number(100 * value_of(r, "l2-caps-strength", "below_one"), 2) + " % a token, L1 keys about " + number(100 * l1, 2) +
            " % (d = 128)";
  }
  return text + ".";
}

}  // namespace detail::efla

namespace {

using namespace detail::efla;

report run(const run_options& options) {
  const settings size = settings_for(options);
  report r;
  add_coefficient(options, size, r);
  add_eigenvalue(options, size, r);
  add_strength(options, size, r);
  r.answer = answer(r);
  r.method =
      "The coefficient is formed in bf16, fp16, fp32 and fp64 with every operation rounded once to nearest even and exp and "
      "expm1 correctly rounded, and "
      "compared with 192 bits. For a unit key x = β is a number of the format: all of them from 1e-12 to 1e3 in the 16-bit "
      "formats, random ones in "
      "every octave in the others. The eigenvalue 1 − b n of the computed b is decided exactly over pairs (β, n).";
  r.not_claimed = {
      "A real exp or expm1 is not correctly rounded: its error comes on top, and a flush of subnormals would widen the fp16 "
      "columns.",
      "A kernel that forms the coefficient in fp32 and stores it in bf16 has fp32's dead zone and bf16's last rounding; that "
      "mixture is the theorem "
      "float.alpha.efla_coefficient_bf16, not this table.",
      "|k|² is given: what rounding the key and its norm does is in study `eigenvalues`.",
      "Keys are Gaussian and β uniform; a trained model's are not. Nothing is said about which strength learns best, nor about "
      "why EFLA scores higher where it does.",
      "For fp32 and fp64 the largest errors are the worst found, not the worst.",
  };
  r.parameters = {{"per_octave", size.per_octave}, {"pairs", size.pairs}, {"keys", size.keys}, {"fp16_stride", size.fp16_stride}};
  return r;
}

}  // namespace

extern const study efla_study{"efla", "How must EFLA's coefficient be computed, and what does it let a step write?", &run};

}  // namespace deltaproof
