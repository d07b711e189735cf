// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
//
// The equations of gradients on true, rounded, emulated and faulty gradients. What they are compared with is the oracle's adjoint
// and a chunkwise backward pass of support/faulty_gradient.hpp; neither knows of the equations.
#include "deltaproof/check/gradient_identities.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <iomanip>
#include <iostream>
#include <limits>
#include <string>
#include <vector>

#include "check/identity_equations.hpp"
#include "deltaproof/inputs/regimes.hpp"
#include "deltaproof/number/visit_format.hpp"
#include "deltaproof/oracle/gradients.hpp"
#include "deltaproof/oracle/lower.hpp"
#include "deltaproof/oracle/reference.hpp"
#include "support/cotangents.hpp"
#include "support/faulty_gradient.hpp"
#include "support/thrown.hpp"

namespace deltaproof {
namespace {

generation asked(op_kind op, const std::string& regime = "typical") {
  generation g = testing::small_with_cotangents(op, 75, regime);
  g.initial_state = "normal";
  return g;
}

tensor in_format(const format& f, const tensor& like, std::vector<double> values) {
  for (double& x : values) x = round_nearest(x, f);
  return tensor::from_doubles(f, like.shape(), values, like.name());
}

/// The exact outputs and gradients of p, each rounded once: o, dq, dk, dv and dbeta to `narrow`, the others to fp32.
result exact_result(const problem& p, const format& narrow) {
  const reference truth = solve(p);
  result r;
  const auto rounded = [](const format& f, const reference_tensor& t, const std::string& name) {
    std::vector<double> values = t.value;
    for (double& x : values) x = round_nearest(x, f);
    return tensor::from_doubles(f, t.shape, values, name);
  };
  const format& wide = narrow == fp64 ? fp64 : fp32;
  r.o = rounded(narrow, truth.o, "o");
  r.final_state = rounded(wide, truth.final_state, "final_state");
  for (const auto& [name, gradient] : solve_gradients(p).tensors) {
    const bool sums = name == "dg" || name == "dinitial_state";
    r.gradients.emplace(name, rounded(sums ? wide : narrow, gradient, name));
  }
  return r;
}

std::vector<problem> problems_of_every_kind() {
  std::vector<problem> out;
  for (const op_kind op : {op_kind::delta_rule, op_kind::gated_delta_rule, op_kind::kda, op_kind::gated_delta_product}) {
    generation g = asked(op);
    if (op == op_kind::gated_delta_product) g.num_householder = 2;
    out.push_back(generate(g));
    for (const rule_kind rule : {rule_kind::exact, rule_kind::implicit, rule_kind::crank_nicolson, rule_kind::rk4}) {
      out.push_back(out.front());
      out.back() = generate(g);
      out.back().rule = rule;
    }
    for (const activation_kind activation : {activation_kind::sigmoid, activation_kind::two_sigmoid}) {
      out.push_back(generate(g));
      out.back().beta_activation = activation;
    }
    out.push_back(generate(g));
    out.back().qk_l2norm = true;
    g.cu_seqlens = std::vector<std::int64_t>{0, 20, 20, 75};
    out.push_back(generate(g));
    g.cu_seqlens.reset();
    g.initial_state = "none";
    out.push_back(generate(g));
    out.back().d_final_state.reset();
    out.push_back(generate(g));
    out.back().d_o.reset();
  }
  return out;
}

TEST(gradient_identities, hold_for_true_gradients_of_every_kind_of_problem) {
  std::size_t formed = 0;
  for (const problem& p : problems_of_every_kind()) {
    SCOPED_TRACE(std::string(name_of(p.op)) + " " + std::string(name_of(p.rule)) + " " + std::string(name_of(p.beta_activation)) +
                 (p.qk_l2norm ? " l2norm" : ""));
    const result r = exact_result(p, fp64);
    check_detail::answers given;
    const auto take = [&](check_detail::quantity x, const tensor& t) {
      given.value[x] = t.to_doubles();
      given.stored[x] = t.element_format();
    };
    take(check_detail::of_o, r.o);
    take(check_detail::of_final_state, *r.final_state);
    for (std::size_t x = check_detail::of_dq; x < check_detail::quantities; ++x) {
      const auto found = r.gradients.find(std::string(check_detail::quantity_names[x]));
      if (found != r.gradients.end()) take(static_cast<check_detail::quantity>(x), found->second);
    }
    const check_detail::inputs_as_doubles inputs(p);
    for (const check_detail::identity_equations& identity : check_detail::equations_of(inputs, given)) {
      if (!identity.missing.empty()) continue;
      ++formed;
      for (const check_detail::head_equations& head : identity.heads) {
        const double largest = *std::max_element(head.residual.begin(), head.residual.end(),
                                                 [](double a, double b) { return std::fabs(a) < std::fabs(b); });
        EXPECT_LE(std::fabs(largest), 1e-11 * std::sqrt(head.terms())) << identity.name << " head " << head.head;
      }
    }
  }
  EXPECT_GT(formed, 200U);
}

TEST(gradient_identities, hold_for_gradients_that_are_rounded_once) {
  for (const problem& p : problems_of_every_kind()) {
    for (const format& f : {bf16, fp32}) {
      const gradient_identities found = check_gradient_identities(p, exact_result(p, f));
      EXPECT_EQ(found.judged, verdict::holds) << found.reason;
      for (const identity_report& i : found.identities) {
        EXPECT_LE(i.residual, i.limit) << i.name;
        EXPECT_LE(i.rounding, i.expected) << i.name;
      }
    }
  }
}

using edit = std::function<void(std::vector<double>&)>;
struct edited_gradient {
  const char* name;
  const char* what;
  edit change;
};
const std::vector<edited_gradient>& edits() {
  static const auto scale = [](double by) {
    return [by](std::vector<double>& x) {
      for (double& e : x) e *= by;
    };
  };
  static const std::vector<edited_gradient> all{
      {"dq", "is zero", scale(0)},
      {"dq", "times 1.1", scale(1.1)},
      {"dk", "is zero", scale(0)},
      {"dk", "negated", scale(-1)},
      {"dk", "times 1.1", scale(1.1)},
      {"dv", "times 1.1", scale(1.1)},
      {"dv", "of one token is zero", [](std::vector<double>& x) { std::fill_n(x.begin() + 40 * 12, 12, 0.0); }},
      {"dbeta", "times 1.1", scale(1.1)},
      {"dbeta", "of one token negated", [](std::vector<double>& x) { x[60] = -x[60]; }},
      {"dg", "is zero", scale(0)},
      {"dg", "times ln 2", scale(0.6931471805599453)},
      {"dg", "a token late", [](std::vector<double>& x) { std::rotate(x.begin(), x.end() - 2, x.end()); }},
      {"dg", "off by a constant from token 64 on",
       [](std::vector<double>& x) {
         for (std::size_t i = 128; i < x.size(); ++i) x[i] += 0.7;
       }},
      {"dinitial_state", "is zero", scale(0)},
      {"dinitial_state", "times 1.1", scale(1.1)},
      {"dk", "is NaN in one place", [](std::vector<double>& x) { x[7] = std::numeric_limits<double>::quiet_NaN(); }},
      {"dv", "is infinite in one place", [](std::vector<double>& x) { x[7] = std::numeric_limits<double>::infinity(); }},
  };
  return all;
}

TEST(gradient_identities, fail_for_gradients_that_are_wrong) {
  const problem p = generate(asked(op_kind::gated_delta_rule));
  for (const edited_gradient& each : edits()) {
    result r = exact_result(p, bf16);
    tensor& gradient = r.gradients.at(each.name);
    std::vector<double> values = gradient.to_doubles();
    each.change(values);
    gradient = in_format(gradient.element_format(), gradient, values);
    const gradient_identities found = check_gradient_identities(p, r);
    EXPECT_EQ(found.judged, verdict::refuted) << each.name << " " << each.what;
    EXPECT_THAT(found.reason, ::testing::ContainsRegex("fails in sequence 0, (key )?head")) << each.what;
  }
}

TEST(gradient_identities, say_which_token) {
  const problem p = generate(asked(op_kind::gated_delta_rule));
  result r = exact_result(p, bf16);
  std::vector<double> values = r.gradients.at("dbeta").to_doubles();
  values[2 * 31 + 1] += 3;
  r.gradients.at("dbeta") = in_format(bf16, r.gradients.at("dbeta"), values);
  const gradient_identities found = check_gradient_identities(p, r);
  ASSERT_EQ(found.judged, verdict::refuted);
  EXPECT_THAT(found.reason, ::testing::HasSubstr("I2"));
  EXPECT_THAT(found.reason, ::testing::HasSubstr("token 31"));
}

TEST(gradient_identities, name_the_equations_at_the_ends_of_a_sequence) {
  const problem p = generate(asked(op_kind::gated_delta_rule));
  const auto spoilt = [](tensor& t) { t = in_format(t.element_format(), t, std::vector<double>(t.size(), std::nan(""))); };
  result r = exact_result(p, bf16);
  spoilt(r.gradients.at("dinitial_state"));
  EXPECT_THAT(
      check_gradient_identities(p, r).reason,
      ::testing::HasSubstr("I3 (dg_0 = <initial_state, dinitial_state>) fails in sequence 0, head 0: an infinity or NaN"));
  r = exact_result(p, bf16);
  spoilt(*r.final_state);
  EXPECT_THAT(
      check_gradient_identities(p, r).reason,
      ::testing::HasSubstr("I3 (dg_t - <final_state, dfinal_state> = o_t . do_t - v_t . dv_t) fails in sequence 0, head 0, "
                           "token " +
                           std::to_string(p.tokens() - 1)));
}

// What an error would have to be is told by the exact gradient: the one that is judged may be 0.
TEST(gradient_identities, say_of_a_gradient_that_was_never_written_what_they_detect) {
  const problem p = generate(asked(op_kind::gated_delta_rule));
  result r = exact_result(p, bf16);
  const double before = check_gradient_identities(p, r).visible.at("dinitial_state");
  tensor& t = r.gradients.at("dinitial_state");
  t = in_format(fp32, t, std::vector<double>(t.size(), 0.0));
  const gradient_identities found = check_gradient_identities(p, r);
  EXPECT_EQ(found.judged, verdict::refuted);
  EXPECT_LT(found.visible.at("dinitial_state"), 2 * before);
  EXPECT_LT(before, 1);
}

TEST(gradient_identities, of_nothing_are_vacuous) {
  problem p = generate(asked(op_kind::gated_delta_rule));
  const auto zeros = [](const tensor& t) {
    return tensor::from_doubles(t.element_format(), t.shape(), std::vector<double>(t.size(), 0.0), t.name());
  };
  p.d_o = zeros(*p.d_o);
  p.d_final_state = zeros(*p.d_final_state);
  const gradient_identities found = check_gradient_identities(p, exact_result(p, bf16));
  EXPECT_EQ(found.judged, verdict::vacuous);
  EXPECT_THAT(found.remedy, ::testing::HasSubstr("cotangents"));
}

TEST(gradient_identities, name_what_the_files_lack) {
  const problem p = generate(asked(op_kind::gated_delta_rule));
  result r = exact_result(p, bf16);
  r.gradients.erase("dk");
  r.gradients.erase("dv");
  const gradient_identities found = check_gradient_identities(p, r);
  EXPECT_EQ(found.judged, verdict::holds);
  EXPECT_THAT(found.reason, ::testing::HasSubstr("errors of dbeta, dg, dinitial_state would not be detected"));
  for (const identity_report& i : found.identities) EXPECT_EQ(i.missing.empty(), i.name == "I1") << i.name << ": " << i.missing;
  r.gradients.clear();
  EXPECT_THAT(testing::thrown([&] { (void)check_gradient_identities(p, r); }),
              ::testing::HasSubstr("none of dq, dk, dv, dbeta, dg and dinitial_state"));
  problem silent = p;
  silent.d_o.reset();
  silent.d_final_state.reset();
  EXPECT_THAT(testing::thrown([&] { (void)check_gradient_identities(silent, exact_result(p, bf16)); }),
              ::testing::HasSubstr("neither do nor dfinal_state"));
}

/// One head without normalisation, as a problem and as what a backward pass runs on.
struct planted_case {
  problem p;
  testing::gradient_case<double> scan;
};
planted_case planted(op_kind op, const std::string& gate) {
  generation g = asked(op);
  g.value_heads = 1;
  g.value_dim = g.key_dim;
  if (op != op_kind::delta_rule) g.gate = gate;
  if (op == op_kind::gated_delta_product) g.num_householder = 2;
  problem p = generate(g);
  p.scale = 1;
  testing::gradient_case<double> scan(testing::sequence_recipe{});
  scan.s = lower(p, 0, 0).scan;
  scan.chunk = 16;
  scan.with.o = matrix<double>(p.tokens(), p.value_dim());
  scan.with.final_state = matrix<double>(p.key_dim(), p.value_dim());
  const std::vector<double> d_o = p.d_o->to_doubles(), d_state = p.d_final_state->to_doubles();
  std::copy(d_o.begin(), d_o.end(), scan.with.o.data());
  std::copy(d_state.begin(), d_state.end(), scan.with.final_state.data());
  return {std::move(p), std::move(scan)};
}
result as_result(const planted_case& c, const sequence<double>& d) {
  result r = exact_result(c.p, bf16);
  const auto put = [&](const char* name, const std::vector<double>& values) {
    const auto found = r.gradients.find(name);
    if (found != r.gradients.end()) found->second = in_format(found->second.element_format(), found->second, values);
  };
  put("dq", d.q);
  put("dk", d.k);
  put("dv", d.v);
  put("dbeta", d.step);
  put("dg", d.decay);
  put("dinitial_state", std::vector<double>(d.initial_state.entries().begin(), d.initial_state.entries().end()));
  return r;
}

TEST(gradient_identities, refute_the_planted_faults_of_a_chunkwise_backward_pass) {
  const struct {
    const char* name;
    op_kind op;
    const char* gate;
  } columns[] = {{"delta", op_kind::delta_rule, ""},
                 {"g = 0", op_kind::gated_delta_rule, "0"},
                 {"-.001", op_kind::gated_delta_rule, "-0.001"},
                 {"-.05", op_kind::gated_delta_rule, "-0.05"},
                 {"-2", op_kind::gated_delta_rule, "-2"},
                 {"kda", op_kind::kda, "-0.05"},
                 {"product", op_kind::gated_delta_product, "-0.05"}};
  std::cout << std::left << std::setw(48) << "fault";
  std::vector<planted_case> cases;
  for (const auto& column : columns) {
    std::cout << std::setw(9) << column.name;
    cases.push_back(planted(column.op, column.gate));
  }
  std::cout << "\n";
  std::size_t killed = 0;
  const auto verdicts = [&](testing::gradient_fault fault) {
    std::vector<verdict> out;
    for (const planted_case& c : cases) {
      const auto forward = chunkwise<plain<double>>(c.scan.s, c.scan.chunk, inverse_named("forward"));
      out.push_back(
          check_gradient_identities(c.p, as_result(c, testing::faulty_gradient<double>(c.scan, forward, fault).run())).judged);
    }
    return out;
  };
  for (const verdict v : verdicts(testing::gradient_fault::none)) EXPECT_EQ(v, verdict::holds);
  for (const auto& fault : testing::gradient_faults) {
    const std::vector<verdict> seen = verdicts(fault.id);
    std::cout << std::setw(48) << fault.name;
    for (const verdict v : seen) std::cout << std::setw(9) << (v == verdict::refuted ? "refuted" : ".");
    std::cout << "\n";
    killed += std::count(seen.begin(), seen.end(), verdict::refuted) > 0 ? 1 : 0;
  }
  std::cout << killed << " of " << testing::gradient_faults.size() << " refuted in some column\n";
  // The diagonal of dA cancels in every identity.
  EXPECT_GE(killed, testing::gradient_faults.size() - 1);
}

}  // namespace
}  // namespace deltaproof
