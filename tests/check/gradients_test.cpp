// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
//
// Gradients through files and `check`: what is read, what is measured, what is refused.
#include "deltaproof/oracle/gradients.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <filesystem>
#include <string>
#include <vector>

#include "deltaproof/check/check.hpp"
#include "deltaproof/emulate/emulate.hpp"
#include "deltaproof/emulate/emulate_gradients.hpp"
#include "deltaproof/files/golden.hpp"
#include "deltaproof/inputs/regimes.hpp"
#include "support/cotangents.hpp"
#include "support/thrown.hpp"

namespace deltaproof {
namespace {

problem with_cotangents(op_kind op, const std::string& regime = "typical") {
  return generate(testing::small_with_cotangents(op, 37, regime));
}

/// A result whose gradients are the true ones, rounded to bf16.
result true_result(const problem& p) {
  result r;
  const reference truth = solve(p);
  r.o = tensor::from_doubles(fp64, truth.o.shape, truth.o.value, "o");
  golden_request asked;
  asked.round = bf16;
  for (const auto& [name, gradient] : make_golden_gradients(p, asked).tensors) r.gradients.emplace(name, gradient.parts.front());
  return r;
}

check_report checked(const problem& p, const result& r, const std::string& bound = "") {
  check_options options;
  if (!bound.empty()) options.judge.bounds.push_back(parse_tensor_bound(bound, because("a test")));
  return check(p, r, options);
}

TEST(gradients, that_are_rounded_once_are_within_half_an_ulp) {
  for (const op_kind op : {op_kind::delta_rule, op_kind::gated_delta_rule, op_kind::kda, op_kind::gated_delta_product}) {
    const problem p = with_cotangents(op);
    const check_report report = checked(p, true_result(p));
    std::size_t gradients = 0;
    for (const tensor_report& t : report.tensors) {
      if (t.name == "o") continue;
      ++gradients;
      EXPECT_LE(t.errors.ulps.upper, 0.5000001) << t.name;
      EXPECT_EQ(t.judged, verdict::measured) << t.name;
    }
    EXPECT_EQ(gradients, p.g ? 6U : 5U);
  }
}

TEST(gradients, that_are_wrong_are_refuted_where_a_bound_is_given) {
  const problem p = with_cotangents(op_kind::kda);
  for (const std::string_view name : gradient_names) {
    const std::string bound = std::string(name) + ":rel_fro=0.01";
    result r = true_result(p);
    EXPECT_EQ(checked(p, r, bound).judged, verdict::holds) << name;
    tensor& gradient = r.gradients.at(std::string(name));
    std::vector<double> values = gradient.to_doubles();
    for (double& x : values) x *= 1.05;
    gradient = tensor::from_doubles(fp64, gradient.shape(), values, std::string(name));
    const check_report report = checked(p, r, bound);
    EXPECT_EQ(report.judged, verdict::refuted) << name;
    EXPECT_THAT(report.reason, ::testing::HasSubstr(std::string(name) + " rel_fro")) << report.reason;
    for (double& x : values) x = 0;
    gradient = tensor::from_doubles(fp64, gradient.shape(), values, std::string(name));
    EXPECT_EQ(checked(p, r, bound).judged, verdict::refuted) << name;
  }
}

TEST(gradients, that_are_not_finite_are_refuted) {
  const problem p = with_cotangents(op_kind::gated_delta_rule);
  result r = true_result(p);
  std::vector<double> values = r.gradients.at("dbeta").to_doubles();
  values[3] = std::nan("");
  r.gradients.at("dbeta") = tensor::from_doubles(fp64, r.gradients.at("dbeta").shape(), values, "dbeta");
  const check_report report = checked(p, r);
  EXPECT_EQ(report.judged, verdict::refuted);
  EXPECT_THAT(report.reason, ::testing::HasSubstr("dbeta is nan at sequence 0, head 1, token 1 where")) << report.reason;
}

TEST(gradients, that_are_not_known_in_time_take_nothing_back) {
  const problem p = with_cotangents(op_kind::gated_delta_rule);
  result r = true_result(p);
  std::atomic<bool> stop{false};
  check_options options;
  options.stop = &stop;
  options.solver = [&stop](const problem& asked, const question& ask) {
    reference out = solve(asked, ask);
    stop = true;
    return out;
  };
  const check_report open = check(p, r, options);
  EXPECT_EQ(open.judged, verdict::undecided);
  EXPECT_EQ(open.reason, "the check was stopped before the exact gradients were computed");
  std::vector<double> o = r.o.to_doubles();
  o[3] = std::nan("");
  r.o = tensor::from_doubles(fp64, r.o.shape(), o, "o");
  stop = false;
  const check_report wrong = check(p, r, options);
  EXPECT_EQ(wrong.judged, verdict::refuted);
  EXPECT_THAT(wrong.reason, ::testing::HasSubstr("o is nan at")) << wrong.reason;
}

// Of two heads one diverges: what its inverse forms says nothing about the plan, whether the result holds o or not.
TEST(gradients, alone_leave_out_the_heads_that_they_leave_out_beside_o) {
  generation g;
  g.regime = "typical";
  g.op = op_kind::delta_rule;
  g.tokens = 128;
  g.key_dim = g.value_dim = 8;
  g.key_heads = 1;
  g.value_heads = 2;
  g.dtype = bf16;
  g.initial_state = "none";
  g.cotangents = true;
  problem p = generate(g);
  std::vector<double> beta = p.beta.to_doubles();
  for (std::size_t i = 1; i < beta.size(); i += 2) beta[i] = 60;
  p.beta = tensor::from_doubles(p.beta.element_format(), p.beta.shape(), beta, "beta");
  check_options options;
  options.plans = {plan_named("fla-chunk-delta")};
  options.judge.power = false;
  result r = emulate_gradients(p, gradient_variants(options.plans.front(), p, path_kind::chunk, 64).front(), {}, 1);
  const check_report both = check(p, r, options);
  ASSERT_FALSE(both.gradients_diverge.empty());
  EXPECT_TRUE(both.conformance->adequacy.adequate) << both.reason;
  r.o = tensor();
  r.final_state.reset();
  r.stages.clear();
  r.backward_stages.clear();
  const check_report alone = check(p, r, options);
  EXPECT_TRUE(alone.conformance->adequacy.adequate) << alone.reason;
}

TEST(gradients, of_other_shapes_or_of_nothing_are_named) {
  const auto read = [](const problem& p, const result& r) {
    notes_list notes;
    const auto path = std::filesystem::path(::testing::TempDir()) / "gradients.safetensors";
    write_result(path, r);
    return read_result(path, p, "", notes);
  };
  const problem p = with_cotangents(op_kind::delta_rule);
  result r = true_result(p);
  EXPECT_EQ(read(p, r).gradients.size(), 5U);
  r.gradients.at("dbeta") = tensor::from_doubles(fp32, {1, 37, 1}, std::vector<double>(37), "dbeta");
  EXPECT_THAT(testing::thrown([&] { (void)read(p, r); }), ::testing::HasSubstr("dbeta: shape [1, 37, 1] should be [1, 37, 2]"));
  r = true_result(p);
  r.gradients.emplace("dg", r.gradients.at("dbeta"));
  EXPECT_THAT(testing::thrown([&] { (void)read(p, r); }),
              ::testing::HasSubstr("dg is the gradient of g, which the problem does not have"));
}

TEST(gradients, cotangents_are_read_written_and_validated) {
  const problem p = with_cotangents(op_kind::kda);
  const auto path = std::filesystem::path(::testing::TempDir()) / "cotangents.safetensors";
  write_problem(path, p);
  notes_list notes;
  const problem again = read_problem(path, notes);
  ASSERT_TRUE(again.d_o && again.d_final_state);
  EXPECT_EQ(again.d_o->to_doubles(), p.d_o->to_doubles());
  EXPECT_EQ(again.d_final_state->to_doubles(), p.d_final_state->to_doubles());
  problem bad = p;
  bad.d_o = tensor::from_doubles(fp32, {1, 37, 2, 5}, std::vector<double>(370), "do");
  EXPECT_THAT(testing::thrown([&] { validate(bad, "P"); }),
              ::testing::HasSubstr("P: tensor do: shape [1, 37, 2, 5] should be [1, 37, 2, 6]"));
  bad = p;
  std::vector<double> x = p.d_final_state->to_doubles();
  x[0] = HUGE_VAL;
  bad.d_final_state = tensor::from_doubles(fp32, p.d_final_state->shape(), x, "dfinal_state");
  EXPECT_THAT(testing::thrown([&] { validate(bad, "P"); }), ::testing::HasSubstr("P: tensor dfinal_state: +inf at index"));
}

TEST(gradients, without_cotangents_are_a_note_and_a_bound_on_them_an_error) {
  problem p = with_cotangents(op_kind::kda);
  const result r = true_result(p);
  p.d_o.reset();
  p.d_final_state.reset();
  EXPECT_EQ(checked(p, r).tensors.size(), 1U);
  EXPECT_THAT(testing::thrown([&] { (void)checked(p, r, "dq:rel_fro=0.1"); }),
              ::testing::HasSubstr("neither do nor dfinal_state"));
}

// A head of q serves two of v; a packed problem has the gradients of its sequences.
/// |1 - b| = 2 at each step: states leave fp32 after some 127 tokens, cotangents as many from the end.
problem expansive() {
  generation g;
  g.regime = "collinear";
  g.op = op_kind::gated_delta_rule;
  g.beta = "3";
  g.gate = "0";
  g.tokens = 200;
  g.key_dim = 16;
  g.value_dim = 8;
  g.key_heads = g.value_heads = 1;
  g.cotangents = true;
  return generate(g);
}

TEST(gradients, beyond_the_range_are_not_judged) {
  const problem p = expansive();
  result r;
  golden_request asked;
  asked.round = fp32;
  for (const auto& [name, gradient] : make_golden_gradients(p, asked).tensors) r.gradients.emplace(name, gradient.parts.front());
  const check_report report = checked(p, r, "rel_fro=1e-6");
  EXPECT_EQ(report.judged, verdict::holds) << report.reason;
  ASSERT_EQ(report.gradients_diverge.size(), 1U);
  const gradient_divergence& d = report.gradients_diverge.front();
  EXPECT_GT(d.states_until, 110U);
  EXPECT_LT(d.states_until, 140U);
  EXPECT_GT(d.cotangents_from, 60U);
  EXPECT_LT(d.cotangents_from, 90U);
  const auto judged = [&](const std::string& name) {
    return std::find_if(report.tensors.begin(), report.tensors.end(), [&](const tensor_report& t) { return t.name == name; })
        ->errors.elements;
  };
  // dv = 3 G^T k leaves fp32 a little before the cotangent G does.
  EXPECT_LE(judged("dv"), (d.states_until - d.cotangents_from) * 8);
  EXPECT_GE(judged("dv"), (d.states_until - d.cotangents_from - 3) * 8);
  EXPECT_EQ(judged("dk"), 0U);  // states times cotangents: 2^200
  EXPECT_EQ(judged("dq"), d.states_until * 16);
  EXPECT_EQ(judged("dinitial_state"), 0U);
  // In reverse alone: the cotangent of the last state is large, the states are not.
  problem typical = with_cotangents(op_kind::delta_rule);
  typical.d_final_state = tensor::from_doubles(fp64, {1, 2, 8, 6}, std::vector<double>(96, 1e39), "dfinal_state");
  result given;
  for (const auto& [name, gradient] : make_golden_gradients(typical, asked).tensors)
    given.gradients.emplace(name, gradient.parts.front());
  const check_report reverse = checked(typical, given, "dq:rel_fro=1e-6");
  EXPECT_EQ(reverse.judged, verdict::holds) << reverse.reason;
  ASSERT_EQ(reverse.gradients_diverge.size(), 2U);
  EXPECT_EQ(reverse.gradients_diverge[1].value_head, 1U);
  EXPECT_EQ(reverse.gradients_diverge[0].states_until, 37U);
  EXPECT_EQ(reverse.gradients_diverge[0].cotangents_from, 37U);
}

TEST(gradients, that_are_finite_beyond_their_format_are_refuted) {
  problem p = with_cotangents(op_kind::delta_rule);
  p.d_final_state.reset();
  p.d_o = tensor::from_doubles(fp64, p.d_o->shape(), std::vector<double>(p.d_o->size(), 3e6), "do");
  result r;
  golden_request asked;
  asked.round = fp16;
  for (const auto& [name, gradient] : make_golden_gradients(p, asked).tensors) r.gradients.emplace(name, gradient.parts.front());
  std::vector<double> dv = r.gradients.at("dv").to_doubles();
  const auto infinite = std::find_if(dv.begin(), dv.end(), [](double x) { return std::isinf(x); });
  ASSERT_NE(infinite, dv.end());
  EXPECT_EQ(checked(p, r).judged, verdict::measured);
  *infinite = 1;
  r.gradients.at("dv") = tensor::from_doubles(fp16, r.gradients.at("dv").shape(), dv, "dv");
  const check_report report = checked(p, r);
  EXPECT_EQ(report.judged, verdict::refuted);
  EXPECT_THAT(report.reason, ::testing::HasSubstr("more than twice the largest number of F16"));
}

// A backward pass by itself: no o in the file. What `oracle --gradients` writes is one.
TEST(gradients, alone_in_a_file_are_judged) {
  const problem p = with_cotangents(op_kind::gated_delta_rule);
  result r = true_result(p);
  r.o = tensor();
  const std::string path = (std::filesystem::path(::testing::TempDir()) / "gradients_alone.safetensors").string();
  write_result(path, r);
  notes_list notes;
  const result back = read_result(path, p, "", notes);
  EXPECT_FALSE(back.has_outputs());
  EXPECT_THAT(notes, ::testing::Contains(::testing::HasSubstr("there is no o: only gradients are judged")));
  EXPECT_TRUE(plans_of(back, p).empty());
  EXPECT_EQ(checked(p, back).judged, verdict::measured);
  EXPECT_EQ(checked(p, back, "rel_fro=0.01").judged, verdict::holds);
  EXPECT_THAT(testing::thrown([&] { (void)checked(p, back, "o:rel_fro=0.01"); }),
              ::testing::HasSubstr("an error limit on o is given, but the result does not hold o; drop the limit or record o"));
  result some = back;
  some.gradients.erase("dg");
  some.gradients.erase("dk");
  EXPECT_THAT(checked(p, some, "rel_fro=0.01").reason,
              ::testing::HasSubstr("; gradients that the result lacks are not judged: dk, dg"));
  check_options by_plan;
  by_plan.plans = {plan_named("fp32")};
  by_plan.plans.front().backward = {};
  EXPECT_THAT(testing::thrown([&] { (void)check(p, back, by_plan); }), ::testing::HasSubstr("has no [backward] section"));
  result wrong = back;
  std::vector<double> dk = wrong.gradients.at("dk").to_doubles();
  for (double& x : dk) x = -x;
  wrong.gradients.at("dk") = tensor::from_doubles(fp32, wrong.gradients.at("dk").shape(), dk, "dk");
  EXPECT_EQ(checked(p, wrong, "rel_fro=0.01").judged, verdict::refuted);
  write_result(path, [&] {
    result state = back;
    state.final_state = tensor::from_doubles(fp32, {1, 2, 8, 6}, std::vector<double>(96), "final_state");
    return state;
  }());
  notes.clear();
  EXPECT_FALSE(read_result(path, p, "", notes).final_state.has_value());
  EXPECT_THAT(notes, ::testing::Contains(::testing::HasSubstr("ignored without o: final_state")));
}

TEST(gradients, of_packed_sequences_are_those_of_each_alone) {
  generation g;
  g.regime = "varlen";
  g.op = op_kind::gated_delta_rule;
  g.key_dim = g.value_dim = 4;
  g.key_heads = 1;
  g.value_heads = 2;
  g.tokens = 20;
  g.cu_seqlens = {0, 0, 1, 8, 20};
  g.cotangents = true;
  const problem p = generate(g);
  const reference_gradients packed = solve_gradients(p);
  const auto rows = [&](const tensor& t, std::size_t width, std::size_t first, std::size_t count, const char* name) {
    std::vector<double> x(count * width);
    t.read(first * width, x);
    std::vector<std::size_t> shape = t.shape();
    shape[1] = count;
    return tensor::from_doubles(t.element_format(), shape, x, name);
  };
  const auto state = [&](const tensor& t, std::size_t n, const char* name) {
    std::vector<double> x(2 * 16);
    t.read(n * x.size(), x);
    return tensor::from_doubles(t.element_format(), {1, 2, 4, 4}, x, name);
  };
  for (std::size_t n = 1; n < 4; ++n) {
    const auto first = static_cast<std::size_t>(p.cu_seqlens[n]), count = static_cast<std::size_t>(p.cu_seqlens[n + 1]) - first;
    problem one = p;
    one.cu_seqlens.clear();
    one.q = rows(p.q, 4, first, count, "q");
    one.k = rows(p.k, 4, first, count, "k");
    one.v = rows(p.v, 8, first, count, "v");
    one.beta = rows(p.beta, 2, first, count, "beta");
    one.g = rows(*p.g, 2, first, count, "g");
    one.d_o = rows(*p.d_o, 8, first, count, "do");
    one.initial_state = state(*p.initial_state, n, "initial_state");
    one.d_final_state = state(*p.d_final_state, n, "dfinal_state");
    const reference_gradients alone = solve_gradients(one);
    for (std::size_t i = 0; i < count * 4; ++i) {
      EXPECT_EQ(packed.tensors.at("dq").value[first * 4 + i], alone.tensors.at("dq").value[i]);
      EXPECT_EQ(packed.tensors.at("dk").value[first * 4 + i], alone.tensors.at("dk").value[i]);
    }
    for (std::size_t i = 0; i < count * 2; ++i)
      EXPECT_EQ(packed.tensors.at("dg").value[first * 2 + i], alone.tensors.at("dg").value[i]);
    for (std::size_t i = 0; i < 32; ++i)
      EXPECT_EQ(packed.tensors.at("dinitial_state").value[n * 32 + i], alone.tensors.at("dinitial_state").value[i]);
  }
}

}  // namespace
}  // namespace deltaproof
