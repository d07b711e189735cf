// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
#include "studies/referee/survey.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "deltaproof/kernel/emulate.hpp"
#include "deltaproof/kernel/faults.hpp"
#include "studies/shared/trials/bench.hpp"

namespace deltaproof::detail::referee_study {
namespace {

using trials::bench;

/// rms(got - correct) / rms(correct - exact); infinite where got is not finite.
double relative_change(const tensor& got, const tensor& correct, double error_rms) {
  const std::vector<double> x = got.to_doubles(), y = correct.to_doubles();
  double squares = 0;
  for (std::size_t i = 0; i < x.size(); ++i) squares += (x[i] - y[i]) * (x[i] - y[i]);
  const double rms = std::sqrt(squares / static_cast<double>(std::max<std::size_t>(1, x.size())));
  return rms == rms && error_rms > 0 ? rms / error_rms : std::numeric_limits<double>::infinity();
}

judgement judge(const bench& b, const result& r, const fault* planted) {
  judgement out;
  result outputs = r;
  outputs.stages.clear();
  const auto refuse = [&](judge_kind who, bool yes) { out.refuses[static_cast<std::size_t>(who)] = yes; };
  const check_report alone = check(b.p, outputs, b.options);
  refuse(judge_kind::outputs, alone.judged == verdict::refuted);
  bool fla = false, allclose = false, nmse = false, finite = true;
  for (const tensor_report& t : alone.tensors) {
    finite = finite && t.errors.nonfinite == 0;
    fla = fla || !(t.errors.fla_ratio.value < 0.005);
    allclose = allclose || t.errors.allclose_violations > 0;
    nmse = nmse || !(t.errors.nmse < 1e-7);
  }
  refuse(judge_kind::fla, fla || !finite);
  refuse(judge_kind::allclose, allclose || !finite);
  refuse(judge_kind::nmse, nmse || !finite);
  refuse(judge_kind::flash_attention, !finite || alone.flash_attention_factor.value_or(0) > 2);
  refuse(judge_kind::attention_gym, !finite || alone.attention_gym_factor.value_or(0) > 2);

  const check_report full = r.stages.empty() ? alone : check(b.p, r, b.options);
  refuse(judge_kind::stages, full.judged == verdict::refuted);
  out.word = name_of(full.judged);
  if (full.conformance) {
    out.first_bad = full.conformance->first_bad_stage;
    const auto& suspects = full.conformance->suspects;
    if (!suspects.empty()) out.suspect = suspects.front().planted->name;
    for (const suspect& s : suspects) {
      if (s.planted != planted) continue;
      out.suspected = true;
      // Two faults may do the same thing to these inputs; then nothing tells them apart.
      out.diagnosed = out.diagnosed || (s.comes_later == suspects.front().comes_later && s.score >= suspects.front().score - 1e-6);
    }
  }
  if (out.first_bad.empty() && !finite) out.first_bad = "o";
  return out;
}

void compare(const bench& b, const result& r, judgement& out) {
  out.changed = !same_bits(r.o, b.correct.o) || !same_bits(*r.final_state, *b.correct.final_state);
  for (const auto& [name, stage] : r.stages) out.changed = out.changed || !same_bits(stage, b.correct.stages.at(name));
  out.size = std::max(relative_change(r.o, b.correct.o, b.o_error),
                      relative_change(*r.final_state, *b.correct.final_state, b.state_error));
}

/// The stage itself where the result holds it, else the next that it holds.
std::string shown_in(std::string_view stage, const result& r) {
  if (stage == "inputs") return "";
  const auto own = std::find(stage_names.begin(), stage_names.end(), stage);
  for (auto name = own; name != stage_names.end(); ++name) {
    if (r.stages.count(std::string(*name)) != 0) return std::string(*name);
  }
  return stage == "final_state" ? "final_state" : "o";
}

}  // namespace

survey run_survey(const run_options& options) {
  survey out;
  out.cases = trials::cases(options);
  std::vector<bench> benches(out.cases.size());
  const auto all = faults();
  // One correct run of each case first: it leaves the plan's own draws for all that follow.
  std::size_t done = for_each_index(out.cases.size(), options, "cases", [&](std::size_t i) {
    benches[i] = make_bench(out.cases[i]);
    (void)judge(benches[i], benches[i].correct, nullptr);
  });
  if (done < out.cases.size()) return out;

  for (std::size_t i = 0; i < out.cases.size(); ++i) {
    for (std::size_t f = 0; f < all.size(); ++f) {
      if (applies(all[f], benches[i].p, out.cases[i].path)) out.faulty.push_back({f, i, {}, {}});
    }
    for (const plan_variant& v : benches[i].allowed) {
      for (const std::uint64_t seed : {std::uint64_t{0}, std::uint64_t{1}}) out.correct.push_back({i, v.name, seed, {}, {}});
    }
  }
  done = for_each_index(out.faulty.size(), options, "planted faults", [&](std::size_t i) {
    faulty_run& run = out.faulty[i];
    const bench& b = benches[run.at];
    emulation_options how;
    how.stages = true;
    how.planted = &all[run.fault];
    const result r = emulated(b, out.cases[run.at], b.allowed.front(), how);
    run.judged = judge(b, r, how.planted);
    run.shown_in = shown_in(all[run.fault].stage, r);
    compare(b, r, run.judged);
  });
  if (done < out.faulty.size()) return out;
  done = for_each_index(out.correct.size(), options, "correct runs", [&](std::size_t i) {
    correct_run& run = out.correct[i];
    const bench& b = benches[run.at];
    emulation_options how;
    how.stages = true;
    how.noise_ulps = run.seed == 0 ? 0 : 1;
    how.seed = (options.seed << 20) ^ (1000003 * run.seed + i);
    const auto v = std::find_if(b.allowed.begin(), b.allowed.end(), [&](const plan_variant& x) { return x.name == run.variant; });
    const result r = emulated(b, out.cases[run.at], *v, how);
    run.judged = judge(b, r, nullptr);
    if (run.judged.refused_by(judge_kind::stages) || run.judged.refused_by(judge_kind::outputs))
      run.reason = check(b.p, r, b.options).reason;
  });
  out.complete = done == out.correct.size();
  return out;
}

}  // namespace deltaproof::detail::referee_study
