// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
//
// Whether a state that the plan keeps in fp32 was rounded to a narrower format.
#include <algorithm>
#include <cmath>

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
  std::string names;
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
    names += (names.empty() ? "" : " and in ") + std::string(name_of(coarse));
    apart = std::max(apart, telling);
    if (coarse == bf16) break;  // its numbers are numbers of tf32
  }
  if (names.empty()) return {};
  return "final_state: every value is representable in " + names +
         ", so the kernel seems to have rounded the state, but the plan keeps the state in fp32 or wider (" +
         std::to_string(apart) + " exact values, rounded to fp32, are not representable in " + names +
         "); if the kernel is meant to round the state, write its format into the plan, as [state] between_calls";
}

}  // namespace deltaproof::referee_detail
