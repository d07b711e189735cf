// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
//
// The study `referee` plants every fault of the catalogue in every case it can happen in, has the emulator make the tensors, and
// asks `check` and the field's rules about the same tensors; beside them correct runs, and inverses that kernels shipped with.
// The faults of the backward pass: gradients.cpp.

#include "deltaproof/check/check.hpp"
#include "deltaproof/emulate/faults.hpp"
#include "studies/referee/inverses.hpp"
#include "studies/referee/planted.hpp"

namespace deltaproof {
namespace {

using namespace detail::referee_study;
namespace trials = detail::trials;
using trials::bench;

/// Who refuses. `stages` is check on everything the result holds; `outputs` is check on o and final_state alone.
const std::vector<std::string> judges{"stages", "outputs", "fla", "flash_attention", "attention_gym", "allclose", "nmse"};
constexpr double fla_ratio = 0.005;
constexpr double eager_factor = 2;
constexpr double nmse_limit = 1e-7;
constexpr double alarm_probability = 1e-4;

judgement judge(const bench& b, const result& r, const fault* planted) {
  judgement out;
  result outputs = r;
  outputs.stages.clear();
  const check_report alone = check(b.p, outputs, b.options);
  bool fla = false, allclose = false, nmse = false, finite = true;
  for (const tensor_report& t : alone.tensors) {
    finite = finite && t.errors.nonfinite == 0;
    fla = fla || !(t.errors.fla_ratio.value < fla_ratio);
    allclose = allclose || t.errors.allclose_violations > 0;
    nmse = nmse || !(t.errors.nmse < nmse_limit);
  }
  const check_report full = r.stages.empty() ? alone : check(b.p, r, b.options);
  out.refuses = {full.judged == verdict::refuted,
                 alone.judged == verdict::refuted,
                 fla || !finite,
                 !finite || alone.flash_attention_factor.value_or(0) > eager_factor,
                 !finite || alone.attention_gym_factor.value_or(0) > eager_factor,
                 allclose || !finite,
                 nmse || !finite};
  take_diagnosis(full, planted, out);
  if (out.first_bad.empty() && !finite) out.first_bad = "o";
  return out;
}

bool changed(const bench& b, const result& r) {
  const auto differs = [&](const auto& stage) { return !same_bits(stage.second, b.correct.stages.at(stage.first)); };
  return !same_bits(r.o, b.correct.o) || !same_bits(*r.final_state, *b.correct.final_state) ||
         std::any_of(r.stages.begin(), r.stages.end(), differs);
}

/// The stage itself where the result holds it, else the next that it holds; what is read wrongly may show in any.
bool named(const fault& f, const bench&, const result& r, const std::string& first_bad) {
  if (f.stage == "inputs") return true;
  const auto own = std::find(stage_names.begin(), stage_names.end(), f.stage);
  for (auto name = own; name != stage_names.end(); ++name) {
    if (r.stages.count(std::string(*name)) != 0) return first_bad == *name;
  }
  return first_bad == (f.stage == "final_state" ? "final_state" : "o");
}

/// Sorts stages as they come: inputs, those of the chunk, o, final_state.
std::size_t place_of(std::string_view stage) {
  if (stage == "inputs") return 0;
  const auto at = std::find(stage_names.begin(), stage_names.end(), stage);
  return static_cast<std::size_t>(at - stage_names.begin()) + (at != stage_names.end() || stage == "o" ? 1 : 2);
}

double size_of_change(const bench& b, const result& r) {
  return std::max(relative_change(r.o, b.correct.o, b.o_error),
                  relative_change(*r.final_state, *b.correct.final_state, b.state_error));
}

void add_faults(const run_options& options, results& r) {
  const auto planted = faults(pass_kind::forward);
  add_planted(options,
              {"",
               judges,
               {planted.begin(), planted.end()},
               trials::cases(options),
               &judge,
               &changed,
               &size_of_change,
               &named,
               &place_of},
              r);
}

void add_inverses(const run_options& options, results& r) {
  const frame& all = r.table("inverses", survey_inverses(options));
  const frame powers = all.where("kind", "powers");
  const frame repaired = all.where("kind", "repaired");
  r.values("inverses-judged-before-running", evidence::measured(),
           {{"powers", powers.size()},
            {"powers_refuted", powers.where("verdict", "refuted").where("adequate", false).size()},
            {"repaired", repaired.size()},
            {"repaired_hold", repaired.where("verdict", "holds").size()}});
  const frame first = all.where("keys", key_laws.front().name);
  const frame between = first.where("of", "bf16-between-steps");
  const auto one = [](const frame& f, const char* plan) { return f.where("against", plan).where("of", plan); };
  const frame promised = between.where("against", "fla-chunk-gdn");
  r.values("promise-not-kept", evidence::measured(),
           {{"rms_over_limit", promised.at(0, "rms_ratio")},
            {"verdict", promised.at(0, "verdict")},
            {"first_bad_stage", promised.at(0, "first_bad")}});
  r.values("promise", {{"plan", promised.at(0, "against")},
                       {"own_verdict", one(between, "bf16-between-steps").at(0, "verdict")},
                       {"error", promised.at(0, "error")},
                       {"promised_error", one(first, "fla-chunk-gdn").at(0, "error")}});
}

results run(const run_options& options) {
  results r = in_parts(options, {{"planted faults", &add_faults}, {"gradients", &add_gradients}, {"inverses", &add_inverses}});
  r.values("limits", {{"fla", fla_ratio}, {"factor", eager_factor}, {"nmse", nmse_limit}});
  r.values(
      "law",
      {{"dim", dim}, {"first_tokens", key_laws[0].tokens}, {"second_tokens", key_laws[1].tokens}, {"judged", judged_tokens}});
  r.parameters = {{"cases", trials::cases(options).size()}, {"false_alarm", alarm_probability}};
  return r;
}

}  // namespace

extern const study referee_study{"referee", &run};

}  // namespace deltaproof
