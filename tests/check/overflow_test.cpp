// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
//
// Sums whose terms leave the range of fp32 while their values do not: what a correct kernel may give there, and that nothing else
// may. Rows 0 ... 3 of a state or of its cotangent add up to 1e37 though they are beyond 2e38; the keys leave them alone.
#include "deltaproof/referee/overflow.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cmath>
#include <functional>
#include <limits>
#include <string>

#include "deltaproof/check/check.hpp"
#include "deltaproof/emulate/emulate_gradients.hpp"
#include "deltaproof/inputs/regimes.hpp"
#include "deltaproof/number/rounded.hpp"

namespace deltaproof {
namespace {

using ::testing::HasSubstr;

constexpr double infinite = std::numeric_limits<double>::infinity();
// With fewer tokens too large a part of dg is left out for a verdict.
constexpr std::size_t T = 480, K = 16, V = 16, at = 150;
constexpr std::array<double, 4> terms{2.5e38, 2.5e38, -2.5e38, -2.4e38};

using change = std::function<double(std::size_t row, std::size_t column, double)>;
/// Rows of `width` entries; B = H = 1, so a row is a token, or a row of a state.
void edit(tensor& t, std::size_t width, const change& f) {
  std::vector<double> values = t.to_doubles();
  for (std::size_t i = 0; i < values.size(); ++i) {
    const double x = f(i / width, i % width, values[i]);
    values[i] = !std::isfinite(x)            ? x
                : t.element_format() == bf16 ? round_to<bf16>(x).value()
                                             : static_cast<double>(round_to<fp32>(x).value());
  }
  t = tensor::from_doubles(t.element_format(), t.shape(), values, t.name());
}

/// Rows 0 ... 3 of the state are not written, and only token `at` reads them. All values are large, so that those of these rows
/// do not stand alone.
problem quiet_rows(op_kind op, double scale = 0x1p118) {
  generation g;
  g.regime = "typical";
  g.op = op;
  g.tokens = T;
  g.key_dim = K;
  g.value_dim = V;
  g.key_heads = g.value_heads = 1;
  g.initial_state = "normal";
  g.cotangents = true;
  problem p = generate(g);
  p.qk_l2norm = false;
  for (tensor* values : {&p.v, &*p.initial_state})
    edit(*values, V, [&](std::size_t, std::size_t, double x) { return x * scale; });
  for (tensor* rows : {&p.q, &p.k}) edit(*rows, K, [](std::size_t, std::size_t c, double x) { return c < 4 ? 0 : x; });
  return p;
}

/// o of token `at`, column 0, is a sum over the large rows.
problem with_large_outputs(op_kind op) {
  problem p = quiet_rows(op);
  if (p.g) edit(*p.g, 1, [](std::size_t, std::size_t, double x) { return x / 1e6; });
  edit(*p.initial_state, V, [](std::size_t i, std::size_t j, double x) { return i < 4 && j == 0 ? terms[i] : x; });
  edit(p.q, K, [](std::size_t t, std::size_t c, double x) { return t == at && c < 4 ? 4 : x; });
  return p;
}

check_report judged(const problem& p, const result& r, const std::string& plan) {
  check_options options;
  if (!plan.empty()) options.plans = {plan_named(plan)};
  options.judge.power = false;
  options.threads = 1;
  return check(p, r, options);
}
const tensor_report& tensor_of(const check_report& report, const std::string& name) {
  for (const tensor_report& t : report.tensors) {
    if (t.name == name) return t;
  }
  throw std::runtime_error(name);
}

plan_variant variant_of(const std::string& plan, const problem& p, path_kind path, bool backward = false) {
  const std::size_t chunk = path == path_kind::chunk ? 64 : 0;
  return (backward ? gradient_variants(plan_named(plan), p, path, chunk) : variants(plan_named(plan), p, path, chunk)).front();
}

struct kernel {
  const char* plan;
  op_kind op;
  path_kind path;
};
void PrintTo(const kernel& k, std::ostream* out) { *out << k.plan; }

class overflow : public ::testing::TestWithParam<kernel> {};
INSTANTIATE_TEST_SUITE_P(kernels, overflow,
                         ::testing::Values(kernel{"fla-recurrent-delta", op_kind::delta_rule, path_kind::recurrent},
                                           kernel{"fla-chunk-delta", op_kind::delta_rule, path_kind::chunk},
                                           kernel{"fla-chunk-gdn", op_kind::gated_delta_rule, path_kind::chunk}));

TEST_P(overflow, of_o_is_not_judged_where_its_terms_leave_the_range) {
  const kernel k = GetParam();
  const problem p = with_large_outputs(k.op);
  result r = emulate(p, variant_of(k.plan, p, k.path), {}, 1);
  std::vector<double> got = r.o.to_doubles();
  ASSERT_FALSE(std::isfinite(got[at * V])) << "the plan's own order overflows";
  const check_report report = judged(p, r, k.plan);
  EXPECT_EQ(report.judged, verdict::holds) << report.reason;
  EXPECT_EQ(tensor_of(report, "o").coverage.overflowed_sums, 1U);
  EXPECT_THAT(report.reason, HasSubstr("1 of 7680 elements of o"));
  EXPECT_NE(judged(p, r, "").judged, verdict::refuted) << "without a plan";

  edit(r.o, V, [](std::size_t t, std::size_t j, double x) { return t == at && j == 0 ? 1e37 : x; });
  const check_report right = judged(p, r, k.plan);
  EXPECT_EQ(right.judged, verdict::holds) << right.reason;
  EXPECT_EQ(tensor_of(right, "o").coverage.overflowed_sums, 0U);

  for (const auto& [t, j] : {std::pair<std::size_t, std::size_t>{at, 1}, {at - 64, 0}, {10, 0}}) {
    result wrong = r;
    edit(wrong.o, V, [&, t = t, j = j](std::size_t row, std::size_t c, double x) { return row == t && c == j ? infinite : x; });
    for (const char* plan : {k.plan, ""}) {
      const check_report refuted = judged(p, wrong, plan);
      EXPECT_EQ(refuted.judged, verdict::refuted) << t << ", " << j << ": " << refuted.reason;
      EXPECT_THAT(refuted.reason, HasSubstr("o is inf "));
    }
  }
}

/// Row 4 of the state is overwritten by 2.5e38, 0, 2.5e38, 1e38: a chunk adds up what each token changes, in any order.
TEST(overflow_of_a_state, is_excused_in_a_chunk_and_not_token_by_token) {
  problem p = quiet_rows(op_kind::delta_rule, 0x1p122);
  edit(p.k, K, [](std::size_t t, std::size_t c, double x) { return t >= at && t < at + 4 ? (c == 4 ? 1 : 0) : c == 4 ? 0 : x; });
  edit(p.q, K, [](std::size_t, std::size_t c, double x) { return c == 4 ? 0 : x; });
  edit(p.beta, 1, [](std::size_t t, std::size_t, double x) { return t >= at && t < at + 4 ? 1 : x; });
  edit(p.v, V, [](std::size_t t, std::size_t j, double x) {
    const double set[] = {2.5e38, 0, 2.5e38, 1e38};
    return t >= at && t < at + 4 && j == 0 ? set[t - at] : x;
  });
  for (const auto& [plan, path] :
       {std::pair{"fla-chunk-delta", path_kind::chunk}, {"fla-recurrent-delta", path_kind::recurrent}}) {
    result r = emulate(p, variant_of(plan, p, path), {}, 1);
    EXPECT_EQ(judged(p, r, plan).judged, verdict::holds) << judged(p, r, plan).reason;
    edit(*r.final_state, V, [](std::size_t i, std::size_t j, double x) { return i == 4 && j == 0 ? infinite : x; });
    const check_report report = judged(p, r, plan);
    EXPECT_EQ(report.judged, path == path_kind::chunk ? verdict::holds : verdict::refuted) << plan << ": " << report.reason;
    EXPECT_EQ(tensor_of(report, "final_state").coverage.overflowed_sums, path == path_kind::chunk ? 1U : 0U);
    edit(*r.final_state, V, [](std::size_t i, std::size_t j, double x) { return i == 4 && j == 1 ? infinite : x; });
    EXPECT_EQ(judged(p, r, plan).judged, verdict::refuted);
  }
}

/// dq of token `at`, channel 0, is a sum over a row of the state. Its q is 0, so no other gradient depends on that.
problem with_large_gradients(op_kind op) {
  problem p = quiet_rows(op);
  if (p.g) edit(*p.g, 1, [](std::size_t, std::size_t, double x) { return x / 1e6; });
  edit(*p.initial_state, V, [](std::size_t i, std::size_t j, double x) { return i == 0 && j < 4 ? terms[j] : i < 4 ? 0 : x; });
  edit(p.q, K, [](std::size_t t, std::size_t, double x) { return t == at ? 0 : x; });
  edit(*p.d_final_state, V, [](std::size_t, std::size_t j, double x) { return j < 4 ? 0 : x; });
  edit(*p.d_o, V, [](std::size_t t, std::size_t j, double x) { return t == at ? (j < 4 ? 4 : 0) : j < 4 ? 0 : x; });
  return p;
}

TEST_P(overflow, of_a_gradient_is_not_judged_where_its_terms_leave_the_range) {
  const kernel k = GetParam();
  const problem p = with_large_gradients(k.op);
  result r = emulate_gradients(p, variant_of(k.plan, p, k.path, true), {}, 1);
  const std::vector<double> got = r.gradients.at("dq").to_doubles();
  ASSERT_FALSE(std::isfinite(got[at * K]));
  const check_report report = judged(p, r, k.plan);
  EXPECT_EQ(report.judged, verdict::holds) << report.reason;
  EXPECT_GE(tensor_of(report, "dq").coverage.overflowed_sums, 1U);
  EXPECT_THAT(report.reason, HasSubstr("elements of dq"));
  EXPECT_NE(judged(p, r, "").judged, verdict::refuted) << judged(p, r, "").reason;
  for (const auto& [name, gradient] : r.gradients) {
    const overflow_places places = sums_that_may_overflow(p, r, plan_named(k.plan), 1);
    result wrong = r;
    std::vector<double> values = gradient.to_doubles();
    std::size_t i = 0;
    while (i < values.size() && (places.may_overflow(name, i) || !std::isfinite(values[i]))) ++i;
    ASSERT_LT(i, values.size()) << name;
    values[i] = infinite;
    wrong.gradients.at(name) = tensor::from_doubles(gradient.element_format(), gradient.shape(), values, name);
    for (const char* plan : {k.plan, ""}) {
      const check_report refuted = judged(p, wrong, plan);
      EXPECT_EQ(refuted.judged, verdict::refuted) << name << " " << i << ": " << refuted.reason;
      EXPECT_THAT(refuted.reason, HasSubstr(name + " is inf "));
    }
  }
}

/// The cotangent of the final state has `terms` in row 0, which the last token reads and the one before it writes: dbeta, dk and
/// dg of the last token are sums over them. With `by_rows` they are in column 0, and the last token's key makes dv of them.
problem with_large_cotangents(bool by_rows) {
  problem p = quiet_rows(op_kind::gated_delta_rule, 0x1p-4);
  const auto last = [](std::size_t t) { return t + 1 == T; };
  const auto both = [](std::size_t t) { return t + 2 >= T; };
  edit(*p.g, 1, [](std::size_t, std::size_t, double x) { return x / 1e6; });
  edit(p.q, K, [&](std::size_t t, std::size_t, double x) { return both(t) ? 0 : x; });
  edit(p.k, K, [&](std::size_t t, std::size_t c, double x) {
    return both(t) ? (by_rows ? (last(t) && c < 4 ? 1 : 0) : c == 0 ? 1 : 0) : x;
  });
  edit(p.v, V, [&](std::size_t t, std::size_t, double x) { return by_rows ? x : last(t) ? 5 : both(t) ? 4 : x; });
  edit(p.beta, 1, [&](std::size_t t, std::size_t, double x) { return last(t) ? 0.5 : both(t) ? 1 : x; });
  edit(*p.initial_state, V, [](std::size_t i, std::size_t, double x) { return i < 4 ? 0 : x; });
  edit(*p.d_o, V, [](std::size_t, std::size_t, double x) { return x * 0x1p112; });
  edit(*p.d_final_state, V, [&](std::size_t i, std::size_t j, double x) {
    if (i >= 4) return x * 0x1p112;
    return by_rows ? (j == 0 ? terms[i] : 0) : i == 0 && j < 4 ? terms[j] : 0;
  });
  return p;
}

TEST(overflow_of_gradients, is_found_in_each_tensor_and_nowhere_else) {
  for (const bool by_rows : {false, true}) {
    const problem p = with_large_cotangents(by_rows);
    for (const path_kind path : {path_kind::recurrent, path_kind::chunk}) {
      const result r = emulate_gradients(p, variant_of("fp32", p, path, true), {}, 1);
      const overflow_places places = sums_that_may_overflow(p, r, plan_named("fp32"), 1);
      for (const auto& [name, element] :
           by_rows ? std::vector<std::pair<std::string, std::size_t>>{{"dv", (T - 1) * V}}
                   : std::vector<std::pair<std::string, std::size_t>>{{"dbeta", T - 1}, {"dk", (T - 1) * K}, {"dg", T - 1}}) {
        EXPECT_TRUE(places.may_overflow(name, element)) << name;
        // An infinite dv makes its column of the cotangent NaN, for all tokens before.
        const std::size_t beside = by_rows ? 1 : 0;
        EXPECT_FALSE(places.may_overflow(name, beside)) << name;
        result other = r;
        std::vector<double> values = r.gradients.at(name).to_doubles();
        values[element] = infinite;
        other.gradients.at(name) =
            tensor::from_doubles(r.gradients.at(name).element_format(), r.gradients.at(name).shape(), values, name);
        const check_report excused = judged(p, other, "fp32");
        EXPECT_NE(excused.judged, verdict::refuted) << name << ": " << excused.reason;
        EXPECT_GE(tensor_of(excused, name).coverage.overflowed_sums, 1U) << name;
        values[beside] = infinite;
        other.gradients.at(name) =
            tensor::from_doubles(r.gradients.at(name).element_format(), r.gradients.at(name).shape(), values, name);
        EXPECT_EQ(judged(p, other, "fp32").judged, verdict::refuted) << name;
      }
    }
  }
}

/// A stage that is not finite is the plan's doing where its sums may overflow, and a fault elsewhere.
TEST(overflow_of_stages, is_no_fault_of_the_kernel) {
  const problem p = with_large_outputs(op_kind::delta_rule);
  emulation_options how;
  how.stages = true;
  result r = emulate(p, variant_of("fla-chunk-delta", p, path_kind::chunk), how, 1);
  const check_report report = judged(p, r, "fla-chunk-delta");
  EXPECT_EQ(report.judged, verdict::holds) << report.reason;
  tensor& v_new = r.stages.at("v_new");
  edit(v_new, V, [](std::size_t t, std::size_t j, double x) { return t == 3 && j == 1 ? infinite : x; });
  const check_report refuted = judged(p, r, "fla-chunk-delta");
  EXPECT_EQ(refuted.judged, verdict::refuted);
  EXPECT_EQ(refuted.conformance->first_bad_stage, "v_new");
}

TEST(overflow_of_stages, is_not_looked_for_once_the_check_is_stopped) {
  const problem p = with_large_outputs(op_kind::delta_rule);
  const result r = emulate(p, variant_of("fla-chunk-delta", p, path_kind::chunk), {}, 1);
  const plan declared = plan_named("fla-chunk-delta");
  std::atomic<bool> stop{false};
  EXPECT_FALSE(sums_that_may_overflow(p, r, declared, 1, &stop).tensors.empty());
  stop = true;
  EXPECT_TRUE(sums_that_may_overflow(p, r, declared, 1, &stop).tensors.empty());
}

/// What fp16 cannot hold is no matter of the order of a sum: a state of 1e5 that the plan stores in it stays a fault.
TEST(overflow_of_fp16, is_not_excused) {
  generation g;
  g.regime = "typical";
  g.op = op_kind::delta_rule;
  g.dtype = fp16;
  g.tokens = T;
  g.key_dim = K;
  g.value_dim = V;
  g.key_heads = g.value_heads = 1;
  g.initial_state = "normal";
  problem p = generate(g);
  p.qk_l2norm = false;
  std::vector<double> state = p.initial_state->to_doubles();
  state[0] = 1e5;
  p.initial_state = tensor::from_doubles(fp32, p.initial_state->shape(), state, "initial_state");
  const result r = emulate(p, variant_of("fla-chunk-delta", p, path_kind::chunk), {}, 1);
  const std::vector<double> o = r.o.to_doubles();
  ASSERT_FALSE(std::all_of(o.begin(), o.end(), [](double x) { return std::isfinite(x); }));
  for (const char* plan : {"fla-chunk-delta", ""}) EXPECT_EQ(judged(p, r, plan).judged, verdict::refuted);
}

// e^-G of gates far outside a plan's contract overflows in every product with it. The recurrence comes nowhere near the end.
TEST(overflow_of_a_form, is_the_plans_doing_where_the_recurrence_stays_small) {
  generation g;
  g.regime = "strong-decay";
  g.op = op_kind::kda;
  g.tokens = 64;
  g.key_dim = g.value_dim = 16;
  g.key_heads = g.value_heads = 1;
  const problem p = generate(g);
  const plan declared = plan_named("fla-chunk-kda-safe-gate");
  const result r = emulate(p, variants(declared, p, path_kind::chunk, 64).front(), {}, 1);
  const std::vector<double> o = r.o.to_doubles();
  ASSERT_FALSE(std::all_of(o.begin(), o.end(), [](double x) { return std::isfinite(x); }));
  EXPECT_TRUE(sums_that_may_overflow(p, r, declared, 1).tensors.empty());
  EXPECT_EQ(judged(p, r, declared.name).judged, verdict::refuted);
}

// The same, beside a sequence and a head whose states are near the end: only those may overflow.
TEST(overflow_of_a_form, is_asked_of_each_head_of_each_sequence) {
  for (const bool packed : {false, true}) {
    generation g;
    g.regime = "strong-decay";
    g.op = op_kind::kda;
    g.tokens = 64;
    g.key_dim = g.value_dim = 16;
    g.key_heads = 1;
    g.value_heads = packed ? 1 : 2;
    if (packed) g.cu_seqlens = {{0, 31, 64}};
    g.initial_state = "normal";
    g.cotangents = true;
    problem p = generate(g);
    const std::size_t state = 16 * 16;
    // Of head 0, or of sequence 0: what it reads of its state is beyond the range, and no gate forgets it.
    edit(*p.initial_state, state, [](std::size_t head, std::size_t, double x) { return head == 0 ? x * 0x1p125 : x; });
    const auto quiet = [&](std::size_t row) { return packed ? row < 31 : row % 2 == 0; };
    edit(*p.g, 16, [&](std::size_t row, std::size_t, double x) { return quiet(row) ? 0 : x; });
    const plan declared = plan_named("fla-chunk-kda-safe-gate");
    const result r = emulate_gradients(p, gradient_variants(declared, p, path_kind::chunk, 64).front(), {}, 1);
    const overflow_places places = sums_that_may_overflow(p, r, declared, 1);
    std::size_t near = 0;
    for (const auto& [name, tensor] : places.tensors) {
      // Of either problem two, one for each head or sequence.
      const bool of_state = name == "final_state" || name == "dinitial_state" || name == "h" || name == "dh";
      const bool of_keys = !packed && (name == "dq" || name == "dk");
      const std::size_t width = tensor.size() / (of_state ? 2 : packed || of_keys ? 64 : 128);
      for (std::size_t i = 0; i < tensor.size(); ++i) {
        const bool own = of_state ? i / width == 0 : of_keys || quiet(i / width);
        EXPECT_TRUE(own || !tensor[i]) << name << " " << i;
        near += tensor[i] ? 1 : 0;
      }
    }
    EXPECT_GT(near, 0U);
    EXPECT_EQ(judged(p, r, declared.name).judged, verdict::refuted) << packed;
  }
}

}  // namespace
}  // namespace deltaproof
