// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
//
// Backward passes of correct kernels, to be judged: `correct_gradients(plan, i, k)` makes the i-th problem that fits a plan with
// a [backward] section, with cotangents, and what the k-th kernel that keeps the plan leaves on it; `gradient_alarms` judges
// many.
#pragma once

#include <algorithm>
#include <array>
#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include "deltaproof/check/check.hpp"
#include "deltaproof/emulate/emulate_gradients.hpp"
#include "deltaproof/inputs/regimes.hpp"
#include "deltaproof/number/random.hpp"
#include "referee/gradient_costs.hpp"
#include "referee/referee_cases.hpp"

namespace deltaproof::testing {

/// Drawn anew for gradients, so that they stand where `correct_run` does: shapes, regimes, laws, variants, builds. Every third
/// has a cotangent of the final state alone, or of the outputs alone. `kernel`: which variant of the plan, and which build of it.
inline correct_result correct_gradients(const plan& declared, std::size_t index, std::size_t kernel = 0) {
  philox draw(index, 0xbac4);
  const auto any_of = [&](const auto& list) { return list[static_cast<std::size_t>(draw.below(list.size()))]; };
  correct_result out;
  generation g;
  const regime_info* drawn = &regimes()[index % regimes().size()];
  // There a plan whose norm projects on rounded rows is not adequate, which is no false alarm.
  if (drawn->name == "along-q") drawn = &regime_named("typical");
  const regime_info& regime = *drawn;
  g.regime = std::string(regime.name);
  g.seed = index;
  g.op = any_of(declared.ops);
  g.dtype = any_of(declared.dtypes);
  const std::array<std::size_t, 3> widths{16, 32, 48};
  g.key_dim = any_of(widths);
  g.value_dim = any_of(widths);
  const std::array<std::size_t, 9> lengths{2, 17, 31, 63, 64, 65, 100, 128, 192};
  g.tokens = regime.name == "varlen" ? 192 : any_of(lengths);
  g.key_heads = 1;
  g.value_heads = regime.name == "gva" || index % 5 == 0 ? 2 : 1;
  g.cotangents = true;
  if (index % 4 == 1 && g.op != op_kind::delta_rule && regime.name != "exact") {
    const std::array<std::string, 5> laws{"zero", "typical", "slow", "alternating", "model"};
    g.gate = any_of(laws);
  }
  if (index % 7 == 6) g.initial_state = "none";
  try {
    out.p = generate(g);
  } catch (const error&) {  // a regime that needs more channels
    g.key_dim = g.value_dim = 64;
    out.p = generate(g);
  }
  if (index % 6 == 2 && out.p.d_o) out.p.d_final_state.reset();
  if (index % 6 == 5 && out.p.d_final_state) out.p.d_o.reset();
  out.made = complete(g);
  const path_kind path = any_of(declared.path);
  const std::array<std::size_t, 3> chunks{16, 32, 64};
  out.chunk = path == path_kind::recurrent ? 0 : declared.chunk.empty() ? any_of(chunks) : any_of(declared.chunk);
  const auto all = gradient_variants(declared, out.p, path, out.chunk);
  philox drawn_kernel(index, 0xbac5 + kernel);
  const plan_variant& kept = all[static_cast<std::size_t>(drawn_kernel.below(all.size()))];
  emulation_options options;
  options.noise_ulps = (index + kernel) % 2 == 1 ? 1 : 0;
  options.seed = drawn_kernel();
  out.r = emulate_gradients(out.p, kept, options, 1);
  if (index % 3 == 1) {  // the backward pass alone
    out.r.o = tensor();
    out.r.final_state.reset();
  }
  out.what = "gradients " + std::to_string(index) + ", kernel " + std::to_string(kernel) + ", of " + kept.name + ": " +
             options_text(out.made) + (out.chunk > 0 ? ", chunk " + std::to_string(out.chunk) : "");
  return out;
}

struct gradient_alarm_count {
  std::size_t judged = 0, alarms = 0, vacuous = 0, undecided = 0;
  std::size_t with_outputs = 0;  ///< of those judged; the others are of the backward pass alone
  /// Plans that were called inadequate for their error, and are: measured again, they cost more than 8 times their formats.
  std::size_t costly = 0;
  std::size_t inadequate = 0;  ///< those that are not
};

/// Kernels that are judged on one problem: what the plan's runs say of it is drawn once, each kernel has its own draw.
inline constexpr std::size_t kernels_of_a_problem = 4;

inline void judge_gradients_once(const plan& declared, std::size_t run_number, const std::shared_ptr<referee_memory>& memory,
                                 faults_looked_for looked, gradient_alarm_count& out) {
  const std::size_t index = run_number / kernels_of_a_problem;
  const correct_result run = correct_gradients(declared, index, run_number % kernels_of_a_problem);
  check_options options;
  options.plans = {declared};
  options.threads = 1;
  options.memory = memory;
  options.judge.seed = index;
  options.judge.power = looks_for_faults(looked, index);
  const check_report report = check(run.p, run.r, options);
  if (!report.conformance) {
    ++out.undecided;
    return;
  }
  const plan_report& plan = *report.conformance;
  ++out.judged;
  out.with_outputs += run.r.has_outputs() ? 1 : 0;
  out.vacuous += plan.conforms == verdict::vacuous ? 1 : 0;
  out.undecided += plan.conforms == verdict::undecided ? 1 : 0;
  if (!plan.adequacy.adequate) {
    // Gradients that leave the formats of the plan are no error of its, whichever ranges the forward pass keeps.
    const auto& ranges = plan.adequacy.ranges;
    const bool overflows =
        std::any_of(ranges.begin(), ranges.end(), [](const range_report& r) { return r.violated; }) ||
        std::any_of(plan.statistics.begin(), plan.statistics.end(), [](const judged_statistic& s) { return !s.limit.finite; });
    const double cost = overflows || !plan.adequacy.stage.starts_with('d')
                            ? 0
                            : cost_of_gradient(declared, run.p, run.chunk > 0 ? path_kind::chunk : path_kind::recurrent,
                                               run.chunk, plan.adequacy.stage);
    out.costly += cost > allowed_ratio ? 1 : 0;
    out.inadequate += overflows || cost > allowed_ratio ? 0 : 1;
    std::printf("inadequate (measured again: %.3g): %s: %s\n", cost, run.what.c_str(), plan.adequacy.reason.c_str());
  }
  if (plan.conforms == verdict::vacuous || plan.conforms == verdict::undecided)
    std::printf("%s: %s: %s\n", std::string(name_of(plan.conforms)).c_str(), run.what.c_str(), plan.reason.c_str());
  if (plan.conforms != verdict::refuted) return;
  ++out.alarms;
  std::string text = "false alarm: " + run.what;
  for (const std::string& line : alarms_of(plan)) text += "\n    " + line;
  std::printf("%s\n", text.c_str());
}

/// The runs first, first + 1, ...
inline gradient_alarm_count gradient_alarms(const plan& declared, std::size_t first, std::size_t runs,
                                            faults_looked_for looked = faults_looked_for::in_a_quarter) {
  gradient_alarm_count out;
  std::shared_ptr<referee_memory> memory;
  for (std::size_t i = first; i < first + runs; ++i) {
    if (!memory || i % kernels_of_a_problem == 0) memory = make_referee_memory();
    judge_gradients_once(declared, i, memory, looked, out);
  }
  std::printf(
      "%s: %zu false alarms in %zu runs with gradients (%zu judged, %zu of them with outputs), %zu plans called inadequate for "
      "an error that they do not "
      "have, %zu for one that they have; %zu undecided, %zu vacuous\n",
      declared.name.c_str(), out.alarms, runs, out.judged, out.with_outputs, out.inadequate, out.costly, out.undecided,
      out.vacuous);
  std::fflush(stdout);
  return out;
}

/// Presets with a [backward] section.
inline std::vector<std::string> backward_preset_names() {
  std::vector<std::string> names;
  for (const plan& x : plans()) {
    if (x.backward.stated) names.push_back(x.name);
  }
  return names;
}

}  // namespace deltaproof::testing
