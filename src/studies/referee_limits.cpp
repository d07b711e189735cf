// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT

#include "studies/referee_limits/limits.hpp"

namespace deltaproof {
namespace {

using namespace detail::referee_limits;

report run(const run_options& options) {
  report r;
  const limits found = run_limits(options);
  if (found.complete) {
    add_limits(found, r);
    r.answer = answer(found);
  } else {
    r.unfinished.emplace_back("Interrupted: no fault is shown.");
    r.answer = "Interrupted before the faults were scaled down.";
  }
  r.method =
      "The cases are those of the study `referee`. A planted fault f changes a correct result c, made with its sums disturbed by "
      "an ulp of fp32, into f(c); the results judged are round(c + s (f(c) − c)), o and final_state without intermediates, for "
      "eight seeds and s = 1, ½, ¼ …, with one half step at the end: a least s is known to a factor of √2. *Check* is "
      "`deltaproof check` at its defaults. The *matched filter* projects the error on f(c) − c of one seed, o and final_state in "
      "units of their error, and refuses beyond six standard deviations of 64 other correct runs; it knows the fault and the "
      "variant of the plan, which check does not.";
  r.not_claimed = {
      "The faults are those of the catalogue, scaled as a whole: a fault that grows otherwise has other limits.",
      "A filter that weighs each entry by its own spread may see less than this one's least s; none is a bound on what can be "
      "known.",
      "The eight results have independent roundings on the same inputs; other inputs of a law have other limits.",
  };
  r.parameters = {{"seeds", seeds}, {"correct_runs", correct_runs}, {"separation", separation}, {"checks", found.checks}};
  return r;
}

}  // namespace

extern const study referee_limits_study{
    "referee-limits", "How small may a planted fault be before the referee no longer sees it?", &run, true};

}  // namespace deltaproof
