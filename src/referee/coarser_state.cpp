// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
//
// Whether a state that the plan keeps in fp32 was rounded to a narrower format.
#include <algorithm>
#include <cmath>
#include <optional>

#include "emulate/products.hpp"
#include "referee/parts.hpp"

namespace deltaproof::referee_detail {

namespace {

bool is_number_of(const format& coarse, double x) { return !std::isfinite(x) || emulation::narrowed(x, {coarse, false}) == x; }

/// Keys of one entry write their rows as they are, and v_new is a number of the format that it was rounded to.
bool own_runs_are_coarse(const trial& t, const format& coarse) {
  return std::any_of(t.variants.begin(), t.variants.end(), [&](const plan_variant& v) {
    const std::vector<double> own = emulate(t.p, v, {}, t.options.threads).final_state->to_doubles();
    return std::all_of(own.begin(), own.end(), [&](double x) { return is_number_of(coarse, x); });
  });
}

}  // namespace

std::string coarser_state(const trial& t) {
  if (!t.r.final_state) return {};
  for (const plan_variant& v : t.variants) {
    if (v.state.accumulate.precision < fp32.precision || v.state.between_tokens || v.state.cache || v.state.between_calls)
      return {};
  }
  const std::vector<double> got = t.r.final_state_kv()->to_doubles();
  std::optional<format> found;
  bool also_tf32 = false;
  std::size_t apart = 0;
  for (const format& coarse : {bf16, fp16, tf32}) {
    std::size_t telling = 0;
    const bool all = std::all_of(got.begin(), got.end(), [&](const double& x) {
      if (x == 0 || !std::isfinite(x)) return true;
      const double truth = t.truth.final_state.value[static_cast<std::size_t>(&x - got.data())];
      telling += is_number_of(coarse, emulation::narrowed(truth, {fp32, false})) ? 0 : 1;
      return is_number_of(coarse, x);
    });
    if (!all || telling < 10 || own_runs_are_coarse(t, coarse)) continue;
    if (!found) found = coarse, apart = telling;
    also_tf32 = found != coarse;
    if (coarse == bf16) break;  // its numbers are numbers of tf32
  }
  if (!found) return {};
  const std::string name(name_of(*found));
  // A state is not stored in tf32, so no plan can say so.
  return "final_state: every value is a number of " + name + (also_tf32 ? " (and of tf32)" : "") + ", and " +
         std::to_string(apart) + " exact values, rounded to fp32, are none of " + name +
         "; the plan rounds the state to no such format. Record the state as the kernel hands it on" +
         (found == tf32 ? ""
                        : "; if the kernel rounds it, state its format in the plan: [state] between_tokens (after each token or "
                          "chunk) or between_calls (at the end of a call)");
}

}  // namespace deltaproof::referee_detail
