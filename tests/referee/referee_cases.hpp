// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
//
// Results of correct kernels, to be judged: `correct_run(plan, i, how)` makes the i-th problem that fits a plan (regimes,
// ops, formats, chunks, lengths and laws of steps and gates in turn) and what a kernel that keeps the plan leaves on it,
// with roundings of its own. `how` says in what it differs from the first variant of the emulator. It exists because the
// number of false alarms is worth something only over problems nobody chose.
#pragma once

#include <algorithm>
#include <array>
#include <string>
#include <string_view>
#include <vector>

#include "deltaproof/check/check.hpp"
#include "deltaproof/emulate/emulate.hpp"
#include "deltaproof/inputs/regimes.hpp"
#include "deltaproof/number/random.hpp"
#include "deltaproof/plan/plan.hpp"
#include "deltaproof/support/errors.hpp"
#include "referee/native_run.hpp"

namespace deltaproof::testing {

/// In what a legitimate implementation differs from an emulated run without noise.
enum class build {
  ordinary,  ///< any variant: with stages as it is, or each sum moved by an ulp of fp32
  rough,     ///< any variant, each sum moved by 4 ulps where stages are stored in 16 bits, else by one
  wide,      ///< every sum and the state in fp64 where the plan says fp32: better than promised
  finer,     ///< one of the plan's roundings left out, drawn for each run: better than promised
  any,       ///< all of this together: small shapes, stages, another build or a native kernel, at times a rounding left out
  lengthy,   ///< another build of any variant, or a native kernel, on long heads
};
inline constexpr std::array<std::string_view, 6> build_names{"ordinary", "rough", "wide", "finer", "any", "lengthy"};

/// Looking for each planted fault takes most of the time, and most of what is tested besides does not depend on it.
enum class faults_looked_for { in_a_quarter, always };
/// Not in step with what a run draws from its number.
inline bool looks_for_faults(faults_looked_for how, std::size_t index) {
  return how == faults_looked_for::always || philox(index, 0x70).below(4) == 0;
}

struct correct_result {
  generation made;
  problem p;
  result r;
  std::size_t chunk = 0;
  std::string what;  ///< one line: how to make it again
};

/// The same roundings of operands and stores, every sum in fp64.
inline plan_variant with_wide_sums(plan_variant v) {
  for (format* f : {&v.A.accumulate, &v.u.accumulate, &v.w.accumulate, &v.state.accumulate, &v.o.accumulate}) {
    if (*f == fp32) *f = fp64;
  }
  return v;
}

/// The roundings that a kernel may leave out and still keep its plan, each by name; false where the variant has none there.
struct rounding_left_out {
  std::string_view what;
  bool (*leave_out)(plan_variant&);
};
inline bool kept_in_fp32(format& f) { return f.precision < fp32.precision && (f = fp32, true); }
inline bool kept_in_fp32(narrowing& n) { return n.to.precision < fp32.precision && (n = {fp32, false}, true); }
inline bool kept_in_fp32(std::optional<format>& f) { return f && f->precision < fp32.precision && (f.reset(), true); }
/// The product takes the state itself where the plan has it take the stored copy.
inline bool multiplied_before_it_is_stored(const plan_variant& v, std::optional<narrowing>& operand) {
  if (v.path != path_kind::chunk || operand || v.state.store.to.precision >= fp32.precision) return false;
  operand = narrowing{fp32, false};
  return true;
}
inline const std::vector<rounding_left_out>& roundings_to_leave_out() {
  static const std::vector<rounding_left_out> all{
      {"normalised q and k", [](plan_variant& v) { return kept_in_fp32(v.l2norm_store); }},
      {"the step", [](plan_variant& v) { return kept_in_fp32(v.beta); }},
      {"operands of A", [](plan_variant& v) { return kept_in_fp32(v.A.operand); }},
      {"A", [](plan_variant& v) { return kept_in_fp32(v.A.store); }},
      {"operands of the inverse", [](plan_variant& v) { return kept_in_fp32(v.inverse.operand); }},
      {"operands of merges", [](plan_variant& v) { return kept_in_fp32(v.inverse.merge_operand); }},
      {"steps of the inverse", [](plan_variant& v) { return kept_in_fp32(v.inverse.between); }},
      {"Ai", [](plan_variant& v) { return kept_in_fp32(v.inverse.store); }},
      {"operands of u", [](plan_variant& v) { return kept_in_fp32(v.u.operand); }},
      {"operands of w", [](plan_variant& v) { return kept_in_fp32(v.w.operand); }},
      {"u", [](plan_variant& v) { return kept_in_fp32(v.u.store); }},
      {"w", [](plan_variant& v) { return kept_in_fp32(v.w.store); }},
      {"the copy of the state", [](plan_variant& v) { return kept_in_fp32(v.state.store); }},
      {"the state that w multiplies", [](plan_variant& v) { return multiplied_before_it_is_stored(v, v.v_new.state_operand); }},
      {"the state that q multiplies", [](plan_variant& v) { return multiplied_before_it_is_stored(v, v.o.state_operand); }},
      {"the state between tokens", [](plan_variant& v) { return kept_in_fp32(v.state.between_tokens); }},
      {"v_new", [](plan_variant& v) { return kept_in_fp32(v.v_new.store); }},
      {"operands of the update", [](plan_variant& v) { return kept_in_fp32(v.v_new.update_operand); }},
      {"operands of o", [](plan_variant& v) { return kept_in_fp32(v.o.operand); }},
  };
  return all;
}

/// Leaves out the first rounding that the variant has, from a drawn place of the list on.
inline void leave_one_out(plan_variant& v, philox& draw) {
  const auto& all = roundings_to_leave_out();
  const auto from = static_cast<std::size_t>(draw.below(all.size()));
  for (std::size_t i = 0; i < all.size(); ++i) {
    const rounding_left_out& one = all[(from + i) % all.size()];
    if (!one.leave_out(v)) continue;
    v.name += std::string(", not rounded: ") + std::string(one.what);
    return;
  }
}

/// A problem of a few numbers, of the same law; as it was where its regime needs more of them.
inline problem made_small(generation& g, philox& draw) {
  const auto any_of = [&](const auto& list) { return list[static_cast<std::size_t>(draw.below(list.size()))]; };
  generation small = g;
  constexpr std::array<std::size_t, 6> widths{1, 2, 3, 5, 16, 32};
  constexpr std::array<std::size_t, 8> lengths{1, 2, 3, 5, 8, 17, 33, 70};
  small.key_dim = any_of(widths);
  small.value_dim = any_of(widths);
  if (g.regime != "varlen") small.tokens = any_of(lengths);
  try {
    problem p = generate(small);
    g = small;
    return p;
  } catch (const error&) {
    return generate(g);
  }
}

inline correct_result correct_run(const plan& declared, std::size_t index, build how, std::uint64_t seed = 0) {
  philox draw(seed * 1000003 + index, 0xfa15e);
  const auto any_of = [&](const auto& list) { return list[static_cast<std::size_t>(draw.below(list.size()))]; };
  correct_result out;
  generation g;
  // Tests name runs by number: the first thousand draw from the regimes that there were when they were numbered.
  const std::size_t drawn_from = index < 1000 ? 23 : regimes().size();
  const regime_info& regime = regimes()[index % drawn_from];
  g.regime = std::string(regime.name);
  g.seed = seed * 1000003 + index;
  g.op = any_of(declared.ops);
  g.dtype = any_of(declared.dtypes);
  g.key_dim = 64;
  g.value_dim = 64;
  const std::array<std::size_t, 14> lengths{1, 2, 15, 17, 31, 63, 64, 65, 100, 127, 128, 129, 192, 256};
  g.tokens = any_of(lengths);
  if (regime.name == "varlen") g.tokens = 256;
  g.key_heads = 1;
  g.value_heads = regime.name == "gva" || index % 5 == 0 ? 2 : 1;
  // Every fourth problem has steps or gates that its regime would not have.
  if (index % 4 == 3 && regime.name != "mqar" && regime.name != "mad-copy" && regime.name != "regbench" &&
      regime.name != "exact") {
    const std::array<std::string, 6> laws{"near-one", "near-zero", "two-sigmoid", "saturated", "logit", "two-logit"};
    g.beta = any_of(laws);
  }
  if (index % 4 == 1 && g.op != op_kind::delta_rule && regime.name != "exact") {
    const std::array<std::string, 7> laws{"zero", "typical", "slow", "alternating", "reset", "growing", "model"};
    g.gate = any_of(laws);
  }
  if (index % 7 == 6) g.initial_state = "none";
  if (how == build::lengthy) {
    g.tokens = any_of(std::array<std::size_t, 4>{512, 700, 1024, 1536});
    g.key_dim = g.value_dim = 16;
    g.value_heads = 2;
  }
  const bool any = how == build::any, lengthy = how == build::lengthy;
  philox more(seed * 1000003 + index, 0xa27);
  out.p = any && index % 2 == 0 ? made_small(g, more) : generate(g);
  out.made = complete(g);

  const path_kind path = any_of(declared.path);
  const std::array<std::size_t, 4> chunks{16, 24, 32, 64};
  out.chunk = path == path_kind::recurrent ? 0 : declared.chunk.empty() ? any_of(chunks) : any_of(declared.chunk);
  const auto all = variants(declared, out.p, path, out.chunk);
  const std::size_t which = static_cast<std::size_t>(draw.below(all.size()));
  emulation_options options;
  // Four ulps of a sum vanish where its result is stored in 16 bits; in an fp32 state they are more than any order of 64 terms,
  // and more than the bound of a sum of few.
  const double rough = path == path_kind::chunk && all[which].u.store.precision < fp32.precision ? 4 : 1;
  options.noise_ulps = how == build::rough ? rough : any || lengthy || (how == build::ordinary && index % 2 == 1) ? 1 : 0;
  options.stages = path == path_kind::chunk && options.noise_ulps <= 1 && !lengthy;
  options.seed = draw();
  plan_variant kept = how == build::wide ? with_wide_sums(all[which]) : all[which];
  if (how == build::finer) leave_one_out(kept, draw);
  if (any && more.below(3) == 0) leave_one_out(kept, more);
  std::string by;
  if ((any || lengthy) && more.below(2) == 0 && is_native(out.p, all[which])) {
    const native_style style = drawn_style(more);
    out.r = native_run(out.p, kept, style, options.stages);
    by = ", natively: " + style.text();
  } else {
    out.r = emulate(out.p, kept, options, 1);
  }
  const format state = all[which].state.accumulate;
  if (out.r.final_state->element_format() != state) {
    auto values = out.r.final_state->to_doubles();
    for (double& x : values) x = static_cast<double>(static_cast<float>(x));
    out.r.final_state = tensor::from_doubles(state, out.r.final_state->shape(), values, "final_state");
  }
  out.what = std::string(build_names[static_cast<std::size_t>(how)]) + " run " + std::to_string(index) + " of " + kept.name + by +
             ": " + options_text(out.made) + (out.chunk > 0 ? ", chunk " + std::to_string(out.chunk) : "");
  return out;
}

/// Everything that says no, one line each.
inline std::vector<std::string> alarms_of(const plan_report& report) {
  std::vector<std::string> out;
  const auto number = [](double x) {
    std::array<char, 32> text{};
    std::snprintf(text.data(), text.size(), "%.4g", x);
    return std::string(text.data());
  };
  for (const judged_statistic& s : report.statistics) {
    if (s.judged != verdict::refuted) continue;
    out.push_back(s.tensor + (s.norm == norm_kind::rms ? " rms" : " max") + " tokens " + std::to_string(s.first_token) + "-" +
                  std::to_string(s.last_token) + " sequence " + std::to_string(s.sequence) + " head " + std::to_string(s.head) +
                  ": " + number(s.got) + " above " + number(s.limit.value) + " (typical " + number(s.limit.typical) +
                  ", spread " + number(s.limit.spread) + ", degrees " + std::to_string(s.limit.degrees) + ")");
  }
  for (const judged_stage& s : report.stages) {
    if (s.judged == verdict::refuted) out.push_back("stage " + s.name + ": " + s.reason);
  }
  for (const suspect& s : report.suspects) {
    if (s.share > s.limit)
      out.push_back("fault " + std::string(s.planted->name) + " in " + s.tensor + ": share " + number(s.share) + " above " +
                    number(s.limit) + ", score " + number(s.score));
  }
  return out;
}

}  // namespace deltaproof::testing
