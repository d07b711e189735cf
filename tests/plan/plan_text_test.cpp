// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "plan/plan_cases.hpp"

namespace deltaproof {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::names_of;
using testing::plan_lines;
using testing::small;
using ::testing::ThrowsMessage;

void expect_refused(const plan_lines& t, const std::vector<std::string>& all_of) {
  try {
    (void)t.read();
    ADD_FAILURE() << "read:\n" << t.str();
  } catch (const format_error& e) {
    EXPECT_THAT(e.what(), HasSubstr("mine.toml"));
    for (const std::string& part : all_of) EXPECT_THAT(e.what(), HasSubstr(part));
  }
}

TEST(plan_text, has_every_key) {
  const plan p = plan_lines::full().read();
  EXPECT_EQ(p.name, "mine");
  EXPECT_THAT(p.kernels, ElementsAre("my kernel"));
  EXPECT_EQ(p.gate.block, 16U);
  EXPECT_EQ(*p.gate.contract, (std::pair{-5.0, 0.0}));
  const plan_variant v = variants(p, small(op_kind::kda, bf16, bf16), path_kind::chunk, 64).front();
  EXPECT_EQ(v.order, sum_order::tensor_core);
  EXPECT_EQ(v.accumulator_bits, 25);
  EXPECT_EQ(v.core_block, 8U);
  EXPECT_TRUE(v.flush_to_zero);
  EXPECT_EQ(v.exp2_ulps, 2);
  EXPECT_EQ(v.rsqrt_ulps, 1.5);
  EXPECT_EQ(v.A.operand, (narrowing{tf32, true}));
  EXPECT_EQ(v.beta, bf16);
}

TEST(plan_text, misspelt_keys_and_sections_are_refused_with_the_nearest) {
  const plan_lines full = plan_lines::full();
  for (const auto& [section, keys] : full.lines()) {
    for (const auto& [key, value] : keys) {
      plan_lines t = full;
      t.drop(section, key).set(section, key + "z", value);
      expect_refused(t, {"\"" + key + "z\"", "did you mean \"" + key + "\"?"});
    }
    if (section.empty()) continue;
    plan_lines t = full;
    t.drop(section).append("[" + section + "x]\naccumulate = \"fp32\"\n");
    expect_refused(t, {"section \"" + section + "x\"", "did you mean \"" + section + "\"?"});
  }
}

TEST(plan_text, leaves_nothing_implicit) {
  const std::set<std::string> optional{".what",
                                       ".source",
                                       ".kernels",
                                       "gate.contract",
                                       "l2norm.epsilon",
                                       "state.between_calls",
                                       "v_new.state_operand",
                                       "v_new.key_operand",
                                       "v_new.decay",
                                       "o.decay",
                                       "o.state_operand",
                                       "o.value_operand",
                                       "o.scale",
                                       "o.read_store",
                                       "inverse.association",
                                       "hardware.exp2_ulps",
                                       "hardware.rsqrt_ulps",
                                       "hardware.flush_to_zero",
                                       "hardware.truncation",
                                       "hardware.block"};
  const plan_lines full = plan_lines::full();
  for (const auto& [section, keys] : full.lines()) {
    for (const auto& [key, value] : keys) {
      plan_lines t = full;
      t.drop(section, key);
      if (optional.count(section + "." + key) > 0) {
        EXPECT_NO_THROW((void)t.read()) << section << "." << key;
      } else {
        expect_refused(t, {key, "is not stated"});
      }
    }
  }
  // Every preset too.
  for (const plan& preset : plans()) {
    const std::string all(plan_text(preset.name));
    for (std::size_t at = all.find("\naccumulate = "); at != std::string::npos; at = all.find("\naccumulate = ", at + 1)) {
      const std::string less = all.substr(0, at) + all.substr(all.find('\n', at + 1));
      EXPECT_THAT([&] { (void)parse_plan(less, "less"); }, ThrowsMessage<format_error>(HasSubstr("accumulate is not stated")))
          << preset.name;
    }
  }
}

TEST(plan_text, takes_a_list_wherever_it_takes_a_format) {
  const plan_lines full = plan_lines::full();
  for (const auto& [section, keys] : full.lines()) {
    for (const auto& [key, value] : keys) {
      const bool format_key = !section.empty() && section != "hardware" && key != "form" && key != "order" && key != "method" &&
                              key != "block" && key != "contract" && key != "association" && key != "decay" && key != "epsilon" &&
                              key != "state_sum_order" && key != "dg_form" && key != "diagonal" && key != "dbeta_form" &&
                              key != "l2norm_from" && key != "scale";
      if (!format_key) continue;
      for (const std::string list : {"[\"fp32\", \"bf16\"]", "[\"X\", \"fp16\"]", "[\"given\"]"}) {
        plan_lines t = full;
        EXPECT_NO_THROW((void)t.set(section, key, list).read()) << section << "." << key;
      }
      plan_lines t = full;
      expect_refused(t.set(section, key, "\"bf17\""), {key, "\"bf17\"", "did you mean \"bf16\"?"});
      expect_refused(t.set(section, key, "[]"), {key, "= [] is empty"});
      expect_refused(t.set(section, key, "32"), {key, "= 32", "must be text"});
      expect_refused(t.set(section, key, "[\"X\", \"X\"]"), {key, "twice"});
    }
  }
}

TEST(plan_text, refuses_values_that_mean_nothing) {
  const auto refused = [](const char* section, const char* key, const char* value, const std::vector<std::string>& why) {
    plan_lines t = plan_lines::full();
    expect_refused(t.set(section, key, value), why);
  };
  refused("", "ops", "\"kdaa\"", {"ops", "did you mean \"kda\"?"});
  refused("", "path", "\"reference\"", {"path", "; choose from "});
  refused("", "dtypes", "\"tf32\"", {"dtypes", "bf16, fp16, fp32, fp64"});
  refused("", "chunk", "0", {"chunk = 0", "must be a whole number, 1 or more"});
  refused("", "chunk", "\"all\"", {"chunk = \"all\"", "\"any\""});
  refused("", "chunk", "-64", {"chunk = -64"});
  refused("", "name", "\"\"", {"name", "empty"});
  refused("gate", "contract", "[0, -5]", {"contract", "below"});
  refused("gate", "contract", "[0.0, 0.0]", {"contract", "below"});
  refused("gate", "contract", "-5", {"contract", "two numbers"});
  refused("gate", "block", "0", {"block", "must be a whole number, 1 or more"});
  refused("gate", "block", "[16, 32]", {"[gate] block = [16, 32] must be a whole number"});
  refused("hardware", "block", "[8]", {"[hardware] block = [8] must be a whole number"});
  refused("hardware", "exp2_ulps", "-1e-7", {"[hardware] exp2_ulps = -1e-07 must be"});
  refused("gate", "shift", "\"-15\"", {"shift", "from -1000 to 1000"});
  refused("gate", "shift", "nan", {"shift", "from -1000 to 1000"});
  refused("gate", "shift", "-15", {"[gate] shift has no effect", "first-block"});
  refused("gate", "form", "\"factor\"", {"form", "did you mean \"factored\"?"});
  refused("A", "order", "\"block-of-16\"", {"order", "did you mean \"blocks-of-16\"?"});
  refused("A", "accumulate", "\"tf32\"", {"accumulate", "operands only"});
  refused("A", "operand", "\"none\"", {"operand", "nothing is rounded"});
  refused("u", "operand_store", "\"x\"", {"operand_store", "did you mean \"X\"?"});
  refused("inverse", "method", "\"newton\"", {"method", "; choose from "});
  refused("inverse", "block", "\"all\"", {"there is no key \"block\""});
  refused("hardware", "tf32", "\"rn\"", {"tf32", "rz, rna"});
  refused("hardware", "exp2_ulps", "-1", {"exp2_ulps", "ulps"});
  refused("hardware", "exp2_ulps", "inf", {"exp2_ulps", "ulps"});
  refused("hardware", "flush_to_zero", "1", {"flush_to_zero", "true or false"});
  refused("hardware", "accumulator_bits", "60", {"accumulator_bits", "28"});
  refused("hardware", "truncation", "false", {"truncation", "tensor-core"});
  EXPECT_THAT([] { (void)parse_plan("name = \"x\"\nops = [\n", "mine.toml"); },
              ThrowsMessage<format_error>(AllOf(HasSubstr("mine.toml: line "), HasSubstr("not valid TOML"))));
  // A line of the file is named.
  EXPECT_THAT([] { (void)parse_plan("name = \"x\"\n\nkernel = \"y\"\n", "mine.toml"); },
              ThrowsMessage<format_error>(AllOf(HasSubstr("line 3"), HasSubstr("did you mean \"kernels\"?"))));
}

TEST(plan_text, refuses_keys_that_can_mean_nothing) {
  plan_lines t = plan_lines::full();
  expect_refused(t.set("", "path", "\"recurrent\""), {"\"chunk\" has no effect", "path is recurrent"});
  expect_refused(t.drop("", "chunk"), {"[gate] form has no effect", "path is recurrent"});
  t.drop("gate", "form").drop("gate", "block");
  expect_refused(t, {"[A] operand has no effect"});
  t.drop("A", "operand").drop("A", "accumulate").drop("A", "store");
  expect_refused(t, {"[inverse] method has no effect"});
  t.drop("inverse").drop("u").drop("w");
  for (const char* key : {"state_operand", "key_operand", "decay"}) {
    expect_refused(t, {std::string("[v_new] ") + key + " has no effect", "path is recurrent"});
    t.drop("v_new", key);
  }
  for (const char* key : {"decay", "state_operand", "value_operand", "read_store"}) {
    expect_refused(t, {std::string("[o] ") + key + " has no effect", "path is recurrent"});
    t.drop("o", key);
  }
  expect_refused(t, {"[backward] operand has no effect", "path is recurrent"});
  EXPECT_NO_THROW((void)t.drop("backward").drop("hardware", "tf32").read());
  t = plan_lines::full().set("", "ops", "\"delta_rule\"");
  expect_refused(t, {"[gate] cumsum has no effect", "no op"});
  expect_refused(t.drop("gate"), {"[v_new] decay has no effect", "no op"});
  expect_refused(t.drop("v_new", "decay"), {"[o] decay has no effect", "no op"});
  expect_refused(t.drop("o", "decay"), {"[backward] state_sum has no effect", "no op"});
  for (const char* key : {"state_sum", "state_sum_order", "dg_form", "diagonal"}) t.drop("backward", key);
  expect_refused(t, {"[backward] dg has no effect", "no op"});
  EXPECT_NO_THROW((void)t.drop("backward", "dg").read());
  t = plan_lines::full().set("inverse", "method", "\"forward\"");
  expect_refused(t, {"merge_operand has no effect", "whole chunk"});
  t.drop("inverse", "merge_operand").drop("inverse", "merge_accumulate");
  expect_refused(t, {"association has no effect"});
  EXPECT_NO_THROW((void)t.drop("inverse", "association").read());
  t = plan_lines::full().set("gate", "form", "\"difference\"");
  expect_refused(t, {"[gate] block has no effect"});
  EXPECT_NO_THROW((void)t.drop("gate", "block").read());
}

TEST(plan_text, states_what_hardware_its_words_need) {
  plan_lines t = plan_lines::full();
  expect_refused(t.drop("hardware", "tf32"), {"[hardware] tf32 is not stated"});
  EXPECT_NO_THROW((void)t.set("A", "operand", "\"X\"").set("backward", "read_operand", "\"X\"").read());
  expect_refused(t.append("[[when]]\nchunk = 64\nA.operand = \"tf32\"\n"), {"[hardware] tf32 is not stated"});
  t = plan_lines::full().drop("hardware", "accumulator_bits");
  expect_refused(t, {"accumulator_bits is not stated"});
  EXPECT_NO_THROW((void)t.set("A", "order", "[\"pairwise\", \"sequential\"]").read());
  // A run that no products are emulated for is refused before it begins.
  t = plan_lines::full();
  expect_refused(plan_lines(t).set("hardware", "accumulator_bits", "29"), {"accumulator_bits = 29 must be between 1 and 28"});
  expect_refused(plan_lines(t).set("u", "accumulate", "[\"fp32\", \"fp64\"]"),
                 {"[A] order = \"tensor-core\" needs sums in fp32", "[u] accumulate is fp64"});
  expect_refused(plan_lines(t).append("[[when]]\nchunk = 64\nbackward.dg = \"fp64\"\n"), {"[backward] dg is fp64"});
  const std::string wide = "[[when]]\nchunk = 64\nu.accumulate = \"fp64\"\nA.order = ";
  expect_refused(plan_lines(t).append(wide + "\"tensor-core\"\n"), {"[u] accumulate is fp64"});
  EXPECT_NO_THROW((void)plan_lines(t).append(wide + "\"pairwise\"\n").read()) << "never both at once";
  t.set("", "dtypes", "[\"bf16\", \"fp64\"]").set("o", "accumulate", "\"X\"");
  expect_refused(t, {"[o] accumulate is fp64 where the inputs are"});
  EXPECT_NO_THROW((void)t.set("A", "order", "\"pairwise\"").read());
}

TEST(plan_text, an_exception_replaces_lists_where_it_holds) {
  plan_lines t = plan_lines::full().set("", "chunk", "[32, 64]").set("", "dtypes", "[\"bf16\", \"fp32\"]");
  t.append(
      "[[when]]\nchunk = 64\ndtypes = \"fp32\"\ninverse.merge_operand = [\"tf32\", \"fp32\"]\nv_new.update_operand = "
      "\"stored\"\n");
  t.append("[[when]]\nops = \"kda\"\nchunk = 64\n[when.o]\noperand = \"fp32\"\n");
  const plan p = t.read();
  const auto merges = [&](format x, std::size_t chunk) {
    return variants(p, small(op_kind::kda, x), path_kind::chunk, chunk).front().inverse.merge_operand;
  };
  EXPECT_EQ(merges(fp32, 64), (narrowing{tf32, true}));
  EXPECT_EQ(merges(fp32, 32), (narrowing{fp32, false}));
  EXPECT_EQ(merges(bf16, 64), (narrowing{fp32, false}));
  const plan_variant both = variants(p, small(op_kind::kda, fp32), path_kind::chunk, 64).front();
  EXPECT_EQ(both.v_new.update, update_source::stored);
  EXPECT_EQ(both.o.operand.to, fp32);
  EXPECT_EQ(variants(p, small(op_kind::kda, bf16), path_kind::chunk, 32).front().o.operand.to, bf16);

  const auto refused = [](const std::string& exception, const std::vector<std::string>& why) {
    plan_lines wrong = plan_lines::full();
    expect_refused(wrong.append("[[when]]\n" + exception), why);
  };
  refused("A.store = \"X\"\n", {"line ", "[[when]] states no condition; state ops, dtypes or chunk in it"});
  refused("chunk = 32\nA.store = \"X\"\n", {"[[when]] chunk lists 32, which the plan's own chunk does not list"});
  refused("dtypes = \"fp64\"\nA.store = \"X\"\n", {"[[when]] dtypes lists fp64, which the plan's own dtypes does not list"});
  refused("chunks = 64\n", {"did you mean \"chunk\"?"});
  refused("chunk = 64\nA.stor = \"X\"\n", {"did you mean \"store\"?"});
  refused("chunk = 64\ngate.block = 8\n", {"[[when]] may not replace [gate] block", "it may replace cumsum, form, shift"});
  refused("chunk = 64\nhardware.exp2_ulps = 1\n", {"[[when]] may not replace [hardware] exp2_ulps", "it may replace tf32"});
}

// What an exception chooses asks for its keys, and takes them.
TEST(plan_text, an_exception_leaves_nothing_implicit) {
  plan_lines t = plan_lines::full().set("gate", "form", "\"difference\"").append("[[when]]\nchunk = 64\n");
  expect_refused(t, {"[gate] block has no effect"});
  EXPECT_NO_THROW((void)plan_lines(t).append("gate.form = \"middle-block\"\ngate.shift = 1\n").read());
  expect_refused(plan_lines(t).append("gate.form = \"middle-block\"\n").drop("gate", "block"), {"[gate] block is not stated"});

  t = plan_lines::full().set("inverse", "method", "\"forward\"").append("[[when]]\nchunk = 64\n");
  EXPECT_NO_THROW((void)plan_lines(t).append("inverse.method = \"forward16+block\"\n").read());
  t.drop("inverse", "merge_operand").drop("inverse", "merge_accumulate").drop("inverse", "association");
  EXPECT_NO_THROW((void)t.read());
  expect_refused(plan_lines(t).append("inverse.merge_operand = \"fp32\"\n"),
                 {"line ", "[[when]] [inverse] merge_operand has no effect", "nothing is merged"});
  t.append("inverse.method = \"forward16+block\"\n");
  expect_refused(t, {"line ", "[[when]] [inverse] merge_operand is not stated"});
  t.append("inverse.merge_operand = \"fp32\"\n");
  expect_refused(t, {"[[when]] [inverse] merge_accumulate is not stated"});
  EXPECT_NO_THROW((void)t.append("inverse.merge_accumulate = \"fp32\"\n").read());

  expect_refused(plan_lines::full().append("[[when]]\nchunk = 64\nsplit.chunks = 2\n"),
                 {"line ", "[[when]] [split] chunks has no effect without a section [split]"});
}

TEST(plan_text, the_stored_v_new_can_carry_the_update) {
  plan_lines t = plan_lines::full();
  const problem p = small(op_kind::kda, bf16);
  auto all = variants(t.set("v_new", "update_operand", "\"stored\"").read(), p, path_kind::chunk, 64);
  ASSERT_EQ(all.size(), 1U);
  EXPECT_EQ(all[0].v_new.update, update_source::stored);
  EXPECT_EQ(all[0].v_new.update_operand.to, bf16);
  all = variants(t.set("v_new", "update_operand", "[\"fp32\", \"stored\"]").read(), p, path_kind::chunk, 64);
  ASSERT_EQ(all.size(), 2U);
  EXPECT_EQ(all[0].v_new.update, update_source::computed);
  EXPECT_EQ(all[0].v_new.update_operand.to, fp32);
  EXPECT_EQ(all[1].v_new.update, update_source::stored);
  EXPECT_EQ(all[1].v_new.update_operand.to, bf16);
}

TEST(plan_text, says_what_carries_a_decay_and_which_state_is_multiplied) {
  plan_lines t = plan_lines::full().set("", "ops", "[\"kda\", \"gated_delta_rule\"]");
  t.drop("hardware", "accumulator_bits").set("A", "order", "\"pairwise\"");
  t.set("v_new", "decay", "[\"v_new\", \"k\"]")
      .set("o", "decay", "[\"q\", \"product\"]")
      .set("l2norm", "epsilon", "[\"given\", 1e-5]");
  t.set("v_new", "state_operand", "[\"stored\", \"fp32\"]").set("o", "state_operand", "\"none\"");
  t.set("o", "read_store", "[\"none\", \"X\"]");
  t.drop("backward").set("o", "scale", "[\"l2norm\", \"o\", \"q\"]");
  const auto all = variants(t.read(), small(op_kind::gated_delta_rule, bf16), path_kind::chunk, 64);
  EXPECT_THAT(names_of(all), ElementsAre("mine", "mine ([l2norm] epsilon 1e-05)", "mine ([v_new] state_operand fp32)",
                                         "mine (update with the decay on k)", "mine (decay on the product q h)",
                                         "mine ([o] scale o)", "mine ([o] scale q)", "mine ([o] read_store bf16)"));
  EXPECT_EQ(all[0].v_new.decay, write_decay::v_new);
  EXPECT_EQ(all[0].o.decay, read_decay::q);
  EXPECT_FALSE(all[0].v_new.state_operand);
  EXPECT_EQ(all[0].o.state_operand, (narrowing{fp32, false}));
  EXPECT_EQ(all[0].v_new.key_operand, (narrowing{bf16, false}));
  EXPECT_EQ(all[0].l2norm_epsilon, 1e-6);
  EXPECT_FALSE(all[0].o.read_store);
  EXPECT_EQ(all[1].l2norm_epsilon, 1e-5);
  EXPECT_EQ(all[2].v_new.state_operand, (narrowing{fp32, false}));
  EXPECT_EQ(all[3].v_new.decay, write_decay::k);
  EXPECT_EQ(all[4].o.decay, read_decay::product);
  EXPECT_EQ(all[4].o.scale, read_scale::l2norm);
  EXPECT_EQ(all[5].o.scale, read_scale::o);
  EXPECT_EQ(all[6].o.scale, read_scale::q);
  EXPECT_EQ(all[7].o.read_store, bf16);
  // A gate of channels leaves no choice; without the norm its epsilon is none.
  EXPECT_THAT(names_of(variants(t.read(), small(op_kind::kda, bf16, fp32, false), path_kind::chunk, 64)),
              ElementsAre("mine", "mine ([v_new] state_operand fp32)", "mine ([o] scale o)", "mine ([o] scale q)",
                          "mine ([o] read_store bf16)"));
  // What is left out is what the public kernels do.
  for (const char* key : {"state_operand", "key_operand", "decay"}) t.drop("v_new", key);
  for (const char* key : {"decay", "state_operand", "value_operand", "read_store", "scale"}) t.drop("o", key);
  const auto usual = variants(t.drop("l2norm", "epsilon").read(), small(op_kind::gated_delta_rule, bf16), path_kind::chunk, 64);
  ASSERT_EQ(usual.size(), 1U);
  EXPECT_EQ(usual[0].l2norm_epsilon, 1e-6);
  EXPECT_EQ(usual[0].v_new.decay, write_decay::v_new);
  EXPECT_EQ(usual[0].o.decay, read_decay::product);
  EXPECT_EQ(usual[0].o.scale, read_scale::o);
  problem other = small(op_kind::gated_delta_rule, bf16);
  other.l2norm_epsilon = 1e-5;
  EXPECT_EQ(variants(t.read(), other, path_kind::chunk, 64)[0].l2norm_epsilon, 1e-5);
  EXPECT_FALSE(usual[0].v_new.state_operand || usual[0].v_new.key_operand);
  EXPECT_FALSE(usual[0].o.state_operand || usual[0].o.value_operand || usual[0].o.read_store);
}

TEST(plan_text, refuses_decays_and_states_that_cannot_be) {
  const auto refused = [](const char* section, const char* key, const char* value, const std::vector<std::string>& why) {
    plan_lines t = plan_lines::full();
    expect_refused(t.set(section, key, value), why);
  };
  refused("v_new", "decay", "\"key\"", {"[v_new] decay = \"key\"", "v_new, k"});
  refused("o", "decay", "\"query\"", {"[o] decay = \"query\"", "product, q"});
  refused("v_new", "decay", "true", {"[v_new] decay = true", "must be text"});
  refused("v_new", "decay", "\"v_new\"",
          {"[v_new] decay = \"v_new\"", "contradicts ops = \"kda\"", "state [v_new] decay = \"k\""});
  refused("o", "decay", "[\"q\", \"product\"]",
          {"[o] decay = \"product\"", "contradicts ops = \"kda\"", "state [o] decay = \"q\""});
  refused("v_new", "state_operand", "\"store\"", {"[v_new] state_operand = \"store\"", "did you mean \"stored\"?"});
  refused("o", "value_operand", "\"stored\"", {"[o] value_operand = \"stored\"", "not a valid value of this key"});
  refused("v_new", "key_operand", "\"stored\"", {"[v_new] key_operand = \"stored\"", "not a valid value of this key"});
  refused("o", "scale", "\"k\"", {"[o] scale = \"k\"", "o, q, l2norm"});
  refused("o", "scale", "\"q\"", {"[o] scale", "in a plan with [backward]"});
  refused("o", "scale", "[\"o\", \"l2norm\"]", {"[o] scale", "in a plan with [backward]"});
  refused("o", "read_store", "\"tf32\"", {"[o] read_store = \"tf32\"", "operands only"});
  refused("o", "read_store", "\"stored\"", {"[o] read_store = \"stored\""});
  for (const char* value : {"0", "-1e-6", "1", "inf", "nan", "\"1e-6\"", "true", "[1e-6, 2]"}) {
    refused("l2norm", "epsilon", value, {"[l2norm] epsilon", "above 0 and below 1", "\"given\""});
  }
  refused("l2norm", "epsilon", "[1e-6, 1e-6]", {"[l2norm] epsilon", "twice"});
  refused("l2norm", "epsilon", "[]", {"[l2norm] epsilon = [] is empty"});
  // In an exception too, where the ops it holds for have channels alone.
  plan_lines t = plan_lines::full().set("", "ops", "[\"kda\", \"gated_delta_rule\"]").drop("v_new", "decay");
  EXPECT_NO_THROW((void)plan_lines(t).append("[[when]]\nops = \"gated_delta_rule\"\nv_new.decay = \"v_new\"\n").read());
  expect_refused(plan_lines(t).append("[[when]]\nops = \"kda\"\nv_new.decay = \"v_new\"\n"), {"[v_new] decay", "contradicts"});
  // tf32 says how it is rounded, here too.
  t = plan_lines::full().drop("hardware", "tf32").set("A", "operand", "\"X\"").set("backward", "read_operand", "\"X\"");
  expect_refused(t.set("v_new", "state_operand", "\"tf32\""), {"[hardware] tf32 is not stated"});
}

// What rounds a product, a scale or a row before it is read, and which copy of a stage is read.
TEST(plan_text, says_what_is_rounded_on_the_way_to_a_stage) {
  const std::vector<std::array<const char*, 3>> keys{
      {"beta", "into", "\"rows\""}, {"gate", "clip", "[-20, 20]"},      {"A", "product_store", "\"X\""},
      {"A", "read", "\"fp32\""},    {"inverse", "read", "\"none\""},    {"u", "read", "\"stored\""},
      {"w", "read", "\"fp16\""},    {"o", "product_store", "\"none\""}, {"o", "scale_format", "\"X\""}};
  plan_lines all = plan_lines::full().drop("backward");
  for (const auto& [section, key, value] : keys) {
    all.set(section, key, value);
    expect_refused(plan_lines::full().set(section, key, value), {key, "contradicts [backward]"});
  }
  const plan_variant v = variants(all.read(), small(op_kind::kda, bf16, bf16), path_kind::chunk, 64).front();
  EXPECT_EQ(v.step, step_factor::rows);
  EXPECT_EQ(*v.clip, (std::pair{-20.0, 20.0}));
  EXPECT_EQ(v.A.product_store, bf16);
  EXPECT_EQ(v.A.read, fp32);
  EXPECT_EQ(v.inverse.read, fp32);
  EXPECT_FALSE(v.u.read || v.o.product_store || v.o.scale_store);
  EXPECT_EQ(v.w.read, fp16);
  EXPECT_EQ(v.o.scale_format, bf16);
  expect_refused(plan_lines(all).set("o", "scale_store", "\"X\""), {"[o] scale_store has no effect", "[o] scale is \"o\""});
  all.set("o", "scale", "\"q\"");
  EXPECT_FALSE(variants(all.read(), small(op_kind::kda, bf16), path_kind::chunk, 64).front().o.scale_store);
  all.set("o", "scale_store", "\"fp16\"").set("beta", "into", "[\"product\", \"rows\"]");
  const auto two = variants(all.read(), small(op_kind::kda, bf16), path_kind::chunk, 64);
  EXPECT_EQ(two[0].o.scale_store, fp16);
  EXPECT_EQ(two[1].name, "mine ([beta] into rows)");
  expect_refused(plan_lines(all).set("gate", "clip", "[20, -20]"),
                 {"[gate] clip = [20, -20] must be two numbers, the first below the second"});
  expect_refused(plan_lines(all).set("gate", "clip", "-20"), {"[gate] clip", "must be two numbers"});
  expect_refused(plan_lines(all).set("beta", "into", "\"row\""), {"[beta] into = \"row\"", "product, rows"});
}

TEST(plan_text, words_are_formats_of_the_problem) {
  plan_lines t = plan_lines::full()
                     .set("", "dtypes", "[\"bf16\", \"fp16\"]")
                     .set("beta", "format", "[\"given\", \"X\"]")
                     .set("gate", "cumsum", "\"given\"");
  t.set("A", "store", "\"none\"").set("state", "store", "\"none\"").set("state", "accumulate", "\"fp64\"");
  t.set("A", "order", "\"pairwise\"");  // tensor cores have no sums in fp64
  const auto all = variants(t.read(), small(op_kind::kda, fp16, fp32), path_kind::chunk, 64);
  EXPECT_EQ(all[0].beta, fp32);
  EXPECT_EQ(all[1].beta, fp16);
  EXPECT_EQ(all[1].name, "mine ([beta] format fp16)");
  EXPECT_EQ(all[0].cumsum, fp32);
  EXPECT_EQ(all[0].A.store, fp32);
  EXPECT_EQ(all[0].state.store.to, fp64);
  EXPECT_EQ(all[0].u.operand.to, fp16);
  // One format by two words is one choice.
  EXPECT_EQ(variants(t.read(), small(op_kind::kda, fp16, fp16), path_kind::chunk, 64).size(), 1U);
}

TEST(plan_text, tf32_that_only_an_alternative_has_is_tried_in_both_directions) {
  plan_lines t = plan_lines::full().set("A", "operand", "[\"X\", \"tf32\"]").set("hardware", "tf32", "[\"rz\", \"rna\"]");
  const auto all = variants(t.read(), small(op_kind::kda, bf16), path_kind::chunk, 64);
  EXPECT_THAT(names_of(all), ElementsAre("mine", "mine ([A] operand tf32)", "mine ([A] operand tf32, tf32 rna)"));
  EXPECT_EQ(all[1].A.operand, (narrowing{tf32, true}));
  EXPECT_EQ(all[2].A.operand, (narrowing{tf32, false}));
}

}  // namespace
}  // namespace deltaproof
