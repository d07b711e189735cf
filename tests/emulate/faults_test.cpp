// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
#include "deltaproof/emulate/faults.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cmath>
#include <cstring>
#include <limits>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "deltaproof/emulate/emulate.hpp"
#include "deltaproof/inputs/regimes.hpp"
#include "emulate/filling.hpp"

namespace deltaproof {
namespace {

constexpr std::size_t C = 32;

struct trial {
  std::string name;
  problem p;
  bool ordinary = true;  ///< a correct kernel's faults, unless they say so, stay finite here
};

generation base(op_kind op, std::size_t tokens) {
  generation g;
  g.op = op;
  g.tokens = tokens;
  g.key_dim = 16;
  g.value_dim = 12;
  g.key_heads = 1;
  g.value_heads = 1;
  g.dtype = bf16;
  g.initial_state = "normal";
  if (op != op_kind::delta_rule) g.gate = "typical";
  return g;
}

std::vector<trial> make_trials() {
  std::vector<trial> all;
  const auto add = [&](std::string name, const generation& g, bool ordinary = true) -> problem& {
    all.push_back({std::move(name), generate(g), ordinary});
    return all.back().p;
  };
  add("delta, 3C + 1", base(op_kind::delta_rule, 3 * C + 1));
  add("delta, C - 1", base(op_kind::delta_rule, C - 1));
  generation g = base(op_kind::delta_rule, C + 1);
  g.dtype = fp32;
  add("delta, C + 1, fp32", g);
  g = base(op_kind::gated_delta_rule, 2 * C);
  g.value_dim = 16;
  g.key_heads = g.value_heads = 2;
  add("gated, 2C, K = V, two heads", g);
  add("gated, C + 1", base(op_kind::gated_delta_rule, C + 1));
  add("kda, 3C + 1", base(op_kind::kda, 3 * C + 1));
  g = base(op_kind::gated_delta_product, C + 9);
  g.num_householder = 2;
  add("delta product, n = 2", g);
  g = base(op_kind::gated_delta_rule, 0);
  g.tokens = 3 * C + 3;
  g.cu_seqlens = std::vector<std::int64_t>{0, 1, 1, C + 3, C + 4, 3 * C + 3};
  add("packed", g);
  g = base(op_kind::gated_delta_rule, C);
  g.key_heads = 2;
  g.value_heads = 4;
  add("grouped heads", g);
  g = base(op_kind::delta_rule, C + 5);
  g.regime = "tiny-keys";
  add("tiny keys, normalised", g);
  g = base(op_kind::delta_rule, C + 5);
  g.rule = rule_kind::exact;
  g.beta = "two-logit";
  add("exact rule of normalised keys, 2 sigmoid", g).qk_l2norm = true;
  g = base(op_kind::delta_rule, C + 5);
  g.regime = "huge-keys";
  g.rule = rule_kind::exact;
  add("exact rule of long keys, normalised", g).qk_l2norm = true;
  g = base(op_kind::gated_delta_rule, C + 9);
  g.gate = "zero";
  add("gated without decay", g);
  g = base(op_kind::kda, C + 9);
  g.gate = "strong";
  add("strong decay", g, false);
  g = base(op_kind::delta_rule, 2 * C);
  g.regime = "collinear";
  add("collinear", g, false);
  return all;
}

const std::vector<trial>& trials() {
  static const std::vector<trial> made = make_trials();
  return made;
}

/// As the chunk and recurrent kernels of fla, with chunks of 32 and diagonal blocks of 8.
plan_variant plan_for(const problem& p, path_kind path) {
  const format x = p.q.element_format();
  plan_variant v;
  v.name = "test";
  v.path = path;
  v.chunk = path == path_kind::chunk ? C : 0;
  v.l2norm_store = x;
  v.beta = p.rule == rule_kind::euler && p.beta_activation == activation_kind::none ? p.beta.element_format() : fp32;
  if (p.gate_per_channel()) v.form = gate_form::reference_block;
  v.A.operand = p.gate_per_channel() ? narrowing{tf32, false} : narrowing{x, false};
  v.inverse.method = {diagonal_kind::forward, 8, merge_kind::block};
  v.inverse.store = x;
  v.u = v.w = {{x, false}, fp32, x, {}};
  v.state.store = {x, false};
  v.v_new.store = x;
  v.v_new.update_operand = {x, false};
  v.o.operand = {x, false};
  v.o.store = x;
  return v;
}

plan_variant fp64_plan(path_kind path) {
  plan_variant v;
  v.path = path;
  v.chunk = path == path_kind::chunk ? C : 0;
  v.l2norm_compute = v.cumsum = v.beta = fp64;
  v.A = {{fp64, false}, fp64, {}, fp64, {}};
  v.inverse.method = {diagonal_kind::forward, 8, merge_kind::block};
  v.inverse.operand = v.inverse.merge_operand = {fp64, false};
  v.inverse.accumulate = v.inverse.merge_accumulate = v.inverse.store = fp64;
  v.u = v.w = {{fp64, false}, fp64, fp64, {}};
  v.state.accumulate = fp64;
  v.state.store = {fp64, false};
  v.v_new.store = fp64;
  v.v_new.update_operand = {fp64, false};
  v.o.operand = {fp64, false};
  v.o.accumulate = v.o.store = fp64;
  return v;
}

using runs = std::vector<head_output>;

runs run(const problem& p, const plan_variant& v, const fault* planted = nullptr) {
  runs out;
  emulation_options options;
  options.planted = planted;
  options.stages = true;
  for (std::size_t s = 0; s < p.sequence_count(); ++s) {
    for (std::size_t head = 0; head < p.value_heads(); ++head) out.push_back(emulate_head(p, s, head, v, options));
  }
  return out;
}

const runs& correct(const trial& t, path_kind path) {
  static std::map<std::pair<std::string, path_kind>, runs> kept;
  const auto [at, fresh] = kept.try_emplace({t.name, path});
  if (fresh) at->second = run(t.p, plan_for(t.p, path));
  return at->second;
}

/// What a kernel leaves under the name of a stage, without entries that mean nothing.
matrix<double> left(const head_output& out, std::string_view stage) {
  matrix<double> m = emulation_detail::tensor_of(out, stage);
  const std::size_t kept = stage == "A" ? 0 : stage == "Ai" || stage == "Aqk" ? 1 : m.cols();
  for (std::size_t i = 0; i < m.rows(); ++i) {
    for (std::size_t j = stage.starts_with("A") ? i % C + kept : m.cols(); j < m.cols(); ++j) m(i, j) = 0;
  }
  return m;
}

bool same_bits(const matrix<double>& a, const matrix<double>& b, std::size_t rows) {
  const std::size_t count = std::min(rows, a.rows()) * a.cols();
  return a.size() == b.size() && (count == 0 || std::memcmp(a.data(), b.data(), count * sizeof(double)) == 0);
}

bool same_stage(const head_output& a, const head_output& b, std::string_view stage,
                std::size_t rows = static_cast<std::size_t>(-1)) {
  return same_bits(left(a, stage), left(b, stage), rows);
}

bool same_everywhere(const runs& a, const runs& b) {
  for (std::size_t i = 0; i < a.size(); ++i) {
    for (const auto stage : judged_stages) {
      if (!same_stage(a[i], b[i], stage)) return false;
    }
  }
  return true;
}

bool finite(const matrix<double>& m) {
  return std::all_of(m.entries().begin(), m.entries().end(), [](double x) { return std::isfinite(x); });
}

double distance(const matrix<double>& a, const matrix<double>& b) {
  double sum = 0;
  for (std::size_t i = 0; i < a.size(); ++i) sum += (a.data()[i] - b.data()[i]) * (a.data()[i] - b.data()[i]);
  return std::sqrt(sum);
}

std::string where(const fault& f, const trial& t, path_kind path) {
  return std::string(f.name) + " on " + t.name + (path == path_kind::chunk ? ", chunk path" : ", recurrent path");
}

constexpr std::array both{path_kind::chunk, path_kind::recurrent};

TEST(faults, have_unique_names_known_stages_and_a_sentence) {
  std::set<std::string_view> names, stages(judged_stages.begin(), judged_stages.end());
  stages.insert("inputs");
  std::size_t chunk = 0, recurrent = 0;
  for (const fault& f : faults(pass_kind::forward)) {
    EXPECT_TRUE(names.insert(f.name).second) << f.name;
    EXPECT_TRUE(stages.contains(f.stage)) << f.name << ": " << f.stage;
    EXPECT_TRUE(f.chunk || f.recurrent) << f.name;
    EXPECT_FALSE(f.what.empty()) << f.name;
    EXPECT_NE(f.what.back(), '.') << f.name;
    EXPECT_TRUE(std::all_of(f.name.begin(), f.name.end(), [](char c) {
      return std::isalnum(static_cast<unsigned char>(c)) || c == '-' || c == '_';
    })) << f.name;
    EXPECT_EQ(&fault_named(f.name), &f);
    chunk += f.chunk ? 1 : 0;
    recurrent += f.recurrent ? 1 : 0;
  }
  EXPECT_GE(faults(pass_kind::forward).size(), 75U);
  EXPECT_GE(chunk, 60U);
  EXPECT_GE(recurrent, 15U);
  RecordProperty("faults", static_cast<int>(faults(pass_kind::forward).size()));
  RecordProperty("chunk", static_cast<int>(chunk));
  RecordProperty("recurrent", static_cast<int>(recurrent));
}

TEST(faults, of_an_unknown_name_are_refused_with_the_nearest) {
  EXPECT_THAT([] { (void)fault_named("inverse-sine"); },
              ::testing::ThrowsMessage<format_error>(::testing::HasSubstr("\"inverse-sign\"")));
}

TEST(faults, that_do_not_apply_change_no_bit) {
  for (const trial& t : trials()) {
    for (const path_kind path : both) {
      const plan_variant plan = plan_for(t.p, path);
      for (const fault& f : faults(pass_kind::forward)) {
        if (applies(f, t.p, path)) continue;
        EXPECT_TRUE(same_everywhere(correct(t, path), run(t.p, plan, &f))) << where(f, t, path);
        // A head alone knows nothing of its problem: the fault runs, and finds nothing to change.
        emulation_options options;
        options.planted = &f;
        options.stages = true;
        runs heads;
        for (std::size_t i = 0; i < correct(t, path).size(); ++i) {
          heads.push_back(emulate_head(take_head(t.p, i / t.p.value_heads(), i % t.p.value_heads()), plan, options));
        }
        EXPECT_TRUE(same_everywhere(correct(t, path), heads)) << where(f, t, path) << ", head alone";
      }
    }
  }
}

// In fp64 a mistake has the same consequences whether it is made in chunks or token by token, and the two paths share no
// stage: an independent statement of what a fault is.
TEST(faults, are_the_same_mistake_on_both_paths) {
  const std::map<std::string_view, std::string_view> pairs{{"gate-at-every-step", "token-decays-at-every-step"},
                                                           {"gate-at-last-step", "token-decays-at-last-step"},
                                                           {"Aqk-of-first-step", "token-reads-after-first-step"}};
  // Rounded where the paths round at different places, or wrong between chunks only where the chunk path has it.
  const std::set<std::string_view> different{"gate-of-neighbouring-column", "gate-on-columns-of-state", "update-sign",
                                             "state-kept-in-bf16",          "state-kept-in-fp16",       "exp2-of-few-bits",
                                             "o-accumulated-in-x"};
  std::size_t compared = 0;
  for (const fault& f : faults(pass_kind::forward)) {
    const auto pair = pairs.find(f.name);
    const bool paired = pair != pairs.end();
    if (!paired && (!f.chunk || !f.recurrent || different.contains(f.name))) continue;
    const fault& other = paired ? fault_named(pair->second) : f;
    for (const trial& t : trials()) {
      if (!applies(f, t.p, path_kind::chunk)) continue;
      const runs chunk = run(t.p, fp64_plan(path_kind::chunk), &f), token = run(t.p, fp64_plan(path_kind::recurrent), &other);
      for (std::size_t i = 0; i < chunk.size(); ++i) {
        if (!finite(chunk[i].o) || !finite(chunk[i].final_state)) continue;
        const matrix<double> no_o(chunk[i].o.rows(), chunk[i].o.cols()),
            no_state(chunk[i].final_state.rows(), chunk[i].final_state.cols());
        EXPECT_LE(distance(chunk[i].o, token[i].o), 1e-9 * distance(token[i].o, no_o)) << where(f, t, path_kind::chunk);
        EXPECT_LE(distance(chunk[i].final_state, token[i].final_state), 1e-9 * distance(token[i].final_state, no_state))
            << where(f, t, path_kind::chunk);
        ++compared;
      }
    }
  }
  EXPECT_GT(compared, 100U);
}

/// Shown on inputs of its own: those on which a chunk kernel makes NaN.
constexpr std::string_view of_nan_alone = "nan-to-num";

TEST(faults, that_replace_nan_do_so_where_a_reset_makes_it_and_nowhere_else) {
  const fault& f = fault_named(of_nan_alone);
  for (const op_kind op : {op_kind::gated_delta_rule, op_kind::kda}) {
    generation g = base(op, 2 * C);
    g.gate = "reset";
    const problem p = generate(g);
    ASSERT_TRUE(applies(f, p, path_kind::chunk));
    EXPECT_FALSE(f.recurrent);
    const runs right = run(p, plan_for(p, path_kind::chunk)), wrong = run(p, plan_for(p, path_kind::chunk), &f);
    std::size_t replaced = 0;
    for (std::size_t i = 0; i < right.size(); ++i) {
      EXPECT_TRUE(finite(wrong[i].o) && finite(wrong[i].final_state));
      for (std::size_t j = 0; j < right[i].o.size(); ++j) {
        const double was = right[i].o.data()[j], is = wrong[i].o.data()[j];
        EXPECT_TRUE(std::isnan(was) ? is == 0 : is == was);
        replaced += std::isnan(was) ? 1 : 0;
      }
    }
    EXPECT_GT(replaced, 0U);
  }
  EXPECT_FALSE(applies(f, trials()[4].p, path_kind::chunk)) << "no gate of it is -inf";
}

TEST(faults, begin_at_the_stage_they_name) {
  for (const path_kind path : both) {
    for (const fault& f : faults(pass_kind::forward)) {
      if (f.name == of_nan_alone || (path == path_kind::chunk ? !f.chunk : !f.recurrent)) continue;
      bool reached = false;
      for (const trial& t : trials()) {
        if (!applies(f, t.p, path)) continue;
        const runs& right = correct(t, path);
        const runs wrong = run(t.p, plan_for(t.p, path), &f);
        for (std::size_t i = 0; i < right.size(); ++i) {
          for (const auto stage : judged_stages) {
            if (stage == f.stage || f.stage == "inputs") break;
            // A wrong v_new is in the state before the next chunk.
            const std::size_t rows = f.stage == "v_new" && stage == "h" ? t.p.key_dim() : static_cast<std::size_t>(-1);
            EXPECT_TRUE(same_stage(right[i], wrong[i], stage, rows)) << where(f, t, path) << " changes " << stage;
          }
          // The recurrent path has no stages, and only a gate per channel leaves the scale in Aqk.
          if (f.stage == "inputs" || path == path_kind::recurrent || f.stage == "Aqk") {
            for (const auto stage : judged_stages) reached = reached || !same_stage(right[i], wrong[i], stage);
          } else {
            reached = reached || !same_stage(right[i], wrong[i], f.stage);
          }
        }
      }
      EXPECT_TRUE(reached) << f.name << (path == path_kind::chunk ? " on the chunk path" : " on the recurrent path")
                           << " is not in " << f.stage;
    }
  }
}

TEST(faults, show_in_the_results_they_name_and_stay_finite_unless_they_say_so) {
  // One rounding more among thousands: the results alone do not tell these from a correct kernel, their stage does.
  const std::set<std::string_view> seen_in_stages_only{
      "l2norm-in-x",          "gate-rounded-to-bf16", "exp2-of-few-bits",     "v_new-cancelled-in-x", "update-uses-stored-v_new",
      "w-truncated",          "v_new-truncated",      "h-truncated",          "update-truncated",     "o-truncated",
      "A-stored-in-x",        "A-accumulated-in-x",   "w-accumulated-in-x",   "u-accumulated-in-x",   "accumulators-of-13-bits",
      "inverse-in-x",         "inverse-neumann",      "gate-rounded-to-fp16", "inverse-row-in-bf16",  "inverse-diagonal-in-bf16",
      "inverse-block-in-bf16"};
  std::map<std::string_view, std::set<std::string_view>> changed;
  for (const path_kind path : both) {
    for (const fault& f : faults(pass_kind::forward)) {
      if (f.name == of_nan_alone || (path == path_kind::chunk ? !f.chunk : !f.recurrent)) continue;
      double most = 0;
      for (const trial& t : trials()) {
        if (!applies(f, t.p, path)) continue;
        const runs& right = correct(t, path);
        const runs wrong = run(t.p, plan_for(t.p, path), &f);
        if (f.name == "v_new-truncated") {  // into the state only where the update reads what was stored
          plan_variant reads_stored = plan_for(t.p, path);
          reads_stored.v_new.update = update_source::stored;
          if (!same_stage(run(t.p, reads_stored).front(), run(t.p, reads_stored, &f).front(), "final_state"))
            changed[f.name].insert("final_state");
        }
        for (std::size_t i = 0; i < right.size(); ++i) {
          const std::size_t s = i / t.p.value_heads(), head = i % t.p.value_heads();
          for (const std::string_view result : {"o", "final_state"}) {
            if (!same_stage(right[i], wrong[i], result)) changed[f.name].insert(result);
          }
          const bool sound = finite(wrong[i].o) && finite(wrong[i].final_state);
          const bool says = f.what.find("infinite") != std::string_view::npos || f.what.find("NaN") != std::string_view::npos;
          EXPECT_TRUE(sound || says || !t.ordinary) << where(f, t, path);
          const head_output truth = reference_run(take_head(t.p, s, head));
          const double own_o = distance(right[i].o, truth.o), own_state = distance(right[i].final_state, truth.final_state);
          if (!sound) most = std::numeric_limits<double>::infinity();
          if (own_o > 0) most = std::max(most, distance(wrong[i].o, truth.o) / own_o);
          if (own_state > 0) most = std::max(most, distance(wrong[i].final_state, truth.final_state) / own_state);
        }
      }
      EXPECT_TRUE(most > 2 || seen_in_stages_only.contains(f.name))
          << f.name << ": " << most << " times a correct kernel's error";
    }
  }
  for (const fault& f : faults(pass_kind::forward)) {
    if (f.name == of_nan_alone) continue;
    EXPECT_EQ(changed[f.name], std::set<std::string_view>(f.tensors.begin(), f.tensors.end())) << f.name;
  }
}

// Tensor cores refuse operands that are not values of their format: what a fault hands on must still have been narrowed.
TEST(faults, run_whatever_the_plan) {
  for (const trial& t : trials()) {
    for (const path_kind path : both) {
      std::vector<plan_variant> plans{plan_for(t.p, path), fp64_plan(path)};
      plans[0].order = sum_order::tensor_core;
      plans[0].accumulator_bits = 25;
      plans[0].v_new.update = update_source::stored;
      plans[0].inverse.operand = plans[0].inverse.merge_operand = {tf32, true};
      plans[0].exp2_ulps = plans[0].rsqrt_ulps = 2;
      for (const plan_variant& plan : plans) {
        for (const fault& f : faults(pass_kind::forward)) {
          if (!applies(f, t.p, path)) continue;
          EXPECT_NO_THROW(run(t.p, plan, &f)) << where(f, t, path);
        }
      }
    }
  }
}

TEST(faults, of_runs_that_share_what_they_leave_alone_have_the_bits_of_runs_by_themselves) {
  const auto same = [](const matrix<double>& a, const matrix<double>& b) {
    return a.rows() == b.rows() && a.cols() == b.cols() && std::memcmp(a.data(), b.data(), a.size() * sizeof(double)) == 0;
  };
  for (const trial& t : trials()) {
    for (const path_kind path : both) {
      std::vector<plan_variant> plans(4, plan_for(t.p, path));
      plans[1] = fp64_plan(path);
      plans[2].split = {1, -1.0};
      plans[2].o.scale = read_scale::q;
      if (path == path_kind::chunk && !t.p.gate_per_channel()) plans[3].v_new.form = change_form::residual;
      for (const plan_variant& plan : plans) {
        const head_runs runs(take_head(t.p, 0, 0), plan);
        for (const fault& f : faults(pass_kind::forward)) {
          if (!applies(f, t.p, path)) continue;
          emulation_options options;
          options.planted = &f;
          const head_output alone = emulate_head(runs.input(), plan, options), shared = runs.with(f);
          EXPECT_TRUE(same(alone.o, shared.o) && same(alone.final_state, shared.final_state)) << where(f, t, path);
        }
      }
    }
  }
}

TEST(emulation, without_a_fault_is_a_function_of_its_inputs) {
  for (const trial& t : trials()) {
    for (const path_kind path : both) EXPECT_TRUE(same_everywhere(correct(t, path), run(t.p, plan_for(t.p, path)))) << t.name;
  }
}

TEST(emulation, in_fp64_is_the_token_recurrence) {
  for (const trial& t : trials()) {
    for (const path_kind path : both) {
      const runs got = run(t.p, fp64_plan(path));
      for (std::size_t i = 0; i < got.size(); ++i) {
        const head_output truth = reference_run(take_head(t.p, i / t.p.value_heads(), i % t.p.value_heads()));
        const matrix<double> no_o(truth.o.rows(), truth.o.cols()), no_state(truth.final_state.rows(), truth.final_state.cols());
        EXPECT_LE(distance(got[i].o, truth.o), 1e-9 * distance(truth.o, no_o)) << t.name << " " << i;
        EXPECT_LE(distance(got[i].final_state, truth.final_state), 1e-9 * distance(truth.final_state, no_state))
            << t.name << " " << i;
      }
    }
  }
}

}  // namespace
}  // namespace deltaproof
