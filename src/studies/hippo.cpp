// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT

#include <cmath>
#include <string>

#include "deltaproof/study/study.hpp"
#include "studies/hippo/sections.hpp"
#include "studies/shared/findings.hpp"

namespace deltaproof {

namespace detail::hippo {

using shared::value_of;

std::string answer(const report& r) {
  const double phi = value_of(r, "exact-needs-no-inverse", "worst_phi");
  if (std::isnan(phi)) return "Interrupted: the discretisations were not compared.";
  std::string text;
  if (phi < 100) {
    text = "Exact discretisation needs no inverse and errs by at most " + number(phi, 2) +
           " u max(1, |tA|) in double for every A tried, singular, nilpotent and defective ones too";
  } else {
    text = "Exact discretisation in double errs by up to " + number(phi, 2) + " u max(1, |tA|)";
  }
  if (value_of(r, "bilinear-rings", "rings") == 1) {
    text +=
        "; the bilinear rule is of order 2 and as stable, but reflects what is fast instead of damping it: one step of t = 1 "
        "leaves HiPPO-LegS a norm of " +
        number(value_of(r, "bilinear-rings", "bilinear_norm_at_1"), 5) + " instead of " +
        number(value_of(r, "bilinear-rings", "exact_norm_at_1"), 4);
  } else {
    text += "; the bilinear rule is off by " + number(100 * value_of(r, "bilinear-order", "legs_at_1"), 2) +
            " % at t = 1 for HiPPO-LegS";
  }
  const double running = value_of(r, "intervals-assume-one", "running");
  if (!std::isnan(running)) {
    text += running > 0.05
                ? "; and intervals [t − η, t] fit the update formula only for η = 1, or when η is read as the advance of a clock"
                : "; and how the intervals [t − η, t] are read hardly matters";
  }
  return text + ".";
}

}  // namespace detail::hippo

namespace {

using namespace detail::hippo;

report run(const run_options& options) {
  const settings size = settings_for(options);
  report r;
  add_discretisations(options, size, r);
  add_rank_one(options, size, r);
  add_intervals(options, size, r);
  r.answer = answer(r);
  r.method =
      "x′ = e^(tA) x + t φ₁(tA) B for five kinds of A over a range of steps. The ruler is scaling and squaring over 512 bits "
      "with a running bound; the bilinear and the Euler rule are judged over the same 512 "
      "bits, so that only the rule's own error shows, and the exact step once more in double, where only rounding shows. The "
      "intervals of the continuous view are solved in four "
      "readings, each exactly.";
  r.not_claimed = {
      "The matrices are of one size and kind each; nothing is said of every A. Double errors are measured, not bounded.",
      "Scaling and squaring here is plain Taylor with a small scaled norm: an optimised Padé code may be faster, or overscale; "
      "it is not compared.",
      "Nothing is said of which discretisation trains better, nor of diagonal approximations of HiPPO.",
      "Which reading of the intervals the source notes mean is not decided; only that the formula they arrive at is the clock's.",
  };
  r.parameters = {{"size", size.size},
                  {"smallest_exponent", size.smallest_exponent},
                  {"largest_exponent", size.largest_exponent},
                  {"streams", size.streams},
                  {"tokens", size.tokens},
                  {"key_dim", size.key_dim}};
  return r;
}

}  // namespace

extern const study hippo_study{
    "hippo",
    "What does exact discretisation give for a general A that the bilinear rule does not, and what do its time intervals assume?",
    &run};

}  // namespace deltaproof
