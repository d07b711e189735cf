// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
#include "deltaproof/plan/plan.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>
#include <set>

#include "plan/plan_cases.hpp"

namespace deltaproof {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::names_of;
using testing::small;
using ::testing::ThrowsMessage;

std::string word(const narrowing& n) { return std::string(name_of(n.to)) + (n.toward_zero ? " rz" : ""); }
std::string word(const format& f) { return std::string(name_of(f)); }
std::string word(const std::optional<format>& f) { return f ? word(*f) : "none"; }

/// Every choice of a variant by its key.
std::map<std::string, std::string> described(const plan_variant& v) {
  std::map<std::string, std::string> all{
      {"l2norm.compute", word(v.l2norm_compute)},
      {"l2norm.store", word(v.l2norm_store)},
      {"gate.cumsum", word(v.cumsum)},
      {"gate.form", std::string(detail::name_in(gate_form_names, v.form))},
      {"gate.shift", std::to_string(v.gate_shift)},
      {"beta", word(v.beta)},
      {"A.operand", word(v.A.operand)},
      {"A.accumulate", word(v.A.accumulate)},
      {"A.store", word(v.A.store)},
      {"order", std::string(detail::name_in(sum_order_names, v.order))},
      {"inverse", name_of(v.inverse.method)},
      {"inverse.operand", word(v.inverse.operand)},
      {"inverse.accumulate", word(v.inverse.accumulate)},
      {"inverse.merge_operand", word(v.inverse.merge_operand)},
      {"inverse.merge_accumulate", word(v.inverse.merge_accumulate)},
      {"inverse.between", word(v.inverse.between)},
      {"inverse.store", word(v.inverse.store)},
      {"u.operand_store", word(v.u.operand)},
      {"u.accumulate", word(v.u.accumulate)},
      {"u.store", word(v.u.store)},
      {"w.operand_store", word(v.w.operand)},
      {"w.accumulate", word(v.w.accumulate)},
      {"w.store", word(v.w.store)},
      {"state.accumulate", word(v.state.accumulate)},
      {"state.store", word(v.state.store)},
      {"state.between_tokens", word(v.state.between_tokens)},
      {"v_new.store", word(v.v_new.store)},
      {"v_new.update_operand", word(v.v_new.update_operand)},
      {"v_new.update", v.v_new.update == update_source::stored ? "stored" : "computed"},
      {"o.operand", word(v.o.operand)},
      {"o.accumulate", word(v.o.accumulate)},
      {"o.store", word(v.o.store)},
      {"l2norm.epsilon", std::to_string(v.l2norm_epsilon)},
      {"v_new.decay", v.v_new.decay == write_decay::k ? "k" : "v_new"},
      {"v_new.state_operand", v.v_new.state_operand ? word(*v.v_new.state_operand) : "stored"},
      {"v_new.key_operand", v.v_new.key_operand ? word(*v.v_new.key_operand) : "as v_new"},
      {"o.decay", v.o.decay == read_decay::q ? "q" : "product"},
      {"o.state_operand", v.o.state_operand ? word(*v.o.state_operand) : "stored"},
      {"o.value_operand", v.o.value_operand ? word(*v.o.value_operand) : "as q k^T"},
      {"o.scale", std::string(detail::name_in(read_scale_names, v.o.scale))},
      {"o.read_store", word(v.o.read_store)},
  };
  if (v.contract) all["gate.contract"] = std::to_string(v.contract->first) + ".." + std::to_string(v.contract->second);
  return all;
}

plan_variant first_of(const std::string& name, const problem& p, std::size_t chunk) {
  const plan declared = plan_named(name);
  return variants(declared, p, declared.path.front(), chunk).front();
}

/// What others may name; their facts stand below a second time.
const std::set<std::string> published{"bf16-between-steps",
                                      "decode-fp32",
                                      "doubling-128",
                                      "fla-chunk-delta",
                                      "fla-chunk-gdn",
                                      "fla-chunk-gdp",
                                      "fla-chunk-kda",
                                      "fla-chunk-kda-safe-gate",
                                      "fla-chunk-kda-shifted-gate",
                                      "fla-recurrent-delta",
                                      "fla-recurrent-gdn",
                                      "fla-recurrent-kda",
                                      "flashkda-fp16-neumann",
                                      "flashkda-repaired",
                                      "fp32",
                                      "fp64",
                                      "neumann-64"};

TEST(plans, are_the_presets_by_name) {
  std::vector<std::string> names;
  for (const plan& p : plans()) names.push_back(p.name);
  EXPECT_THAT(names, ::testing::IsSupersetOf(published));
  EXPECT_TRUE(std::is_sorted(names.begin(), names.end()));
  EXPECT_EQ(std::adjacent_find(names.begin(), names.end()), names.end());
  for (const plan& p : plans()) {
    EXPECT_EQ(plan_named(p.name).name, p.name);
    EXPECT_FALSE(p.what.empty() || p.source.empty() || p.kernels.empty()) << p.name;
    // Only the order of its sums is open in every plan.
    EXPECT_EQ(p.A.order.size(), 4U) << p.name;
  }
}

TEST(plans, are_read_from_a_copy_of_their_text) {
  const auto file = std::filesystem::path(::testing::TempDir()) / "copied_plan.toml";
  for (const plan& preset : plans()) {
    std::ofstream(file) << plan_text(preset.name);
    const plan copy = plan_named(file.string());
    EXPECT_EQ(copy.name, preset.name);
    for (const op_kind op : preset.ops) {
      for (const format x : preset.dtypes) {
        const problem p = small(op, x);
        const std::size_t chunk = preset.chunk.empty() ? 64 : preset.chunk.back();
        const auto ours = variants(preset, p, preset.path.front(), chunk);
        const auto theirs = variants(copy, p, preset.path.front(), chunk);
        ASSERT_EQ(ours.size(), theirs.size());
        for (std::size_t i = 0; i < ours.size(); ++i) EXPECT_EQ(described(ours[i]), described(theirs[i])) << ours[i].name;
      }
    }
  }
  std::filesystem::remove(file);
}

/// Facts of a preset's first arithmetic on a problem.
struct fact {
  const char* preset;
  op_kind op;
  format x;
  format beta;
  std::size_t chunk;
  std::map<std::string, std::string> said;
};

TEST(plans, say_what_the_public_kernels_do) {
  using enum op_kind;
  const std::map<std::string, std::string> shared{{"l2norm.compute", "fp32"},
                                                  {"l2norm.store", "bf16"},
                                                  {"beta", "bf16"},
                                                  {"A.operand", "bf16"},
                                                  {"A.accumulate", "fp32"},
                                                  {"A.store", "fp32"},
                                                  {"inverse", "forward16+block"},
                                                  {"inverse.operand", "fp32"},
                                                  {"inverse.accumulate", "fp32"},
                                                  {"inverse.merge_operand", "fp32"},
                                                  {"inverse.between", "none"},
                                                  {"inverse.store", "bf16"},
                                                  {"u.operand_store", "bf16"},
                                                  {"u.accumulate", "fp32"},
                                                  {"u.store", "bf16"},
                                                  {"w.operand_store", "bf16"},
                                                  {"w.store", "bf16"},
                                                  {"state.accumulate", "fp32"},
                                                  {"state.store", "bf16"},
                                                  {"state.between_tokens", "none"},
                                                  {"v_new.store", "bf16"},
                                                  {"v_new.update", "computed"},
                                                  {"v_new.update_operand", "bf16"},
                                                  {"o.operand", "bf16"},
                                                  {"o.accumulate", "fp32"},
                                                  {"o.store", "bf16"}};
  const auto with = [&](std::map<std::string, std::string> changed) {
    changed.insert(shared.begin(), shared.end());
    return changed;
  };
  const std::map<std::string, std::string> registers{
      {"beta", "fp32"},        {"state.accumulate", "fp32"}, {"state.store", "fp32"},  {"state.between_tokens", "none"},
      {"v_new.store", "fp32"}, {"o.operand", "fp32"},        {"o.accumulate", "fp32"}, {"o.store", "bf16"},
      {"gate.cumsum", "fp32"}};
  const auto recurrent = [&](const char* l2norm) {
    std::map<std::string, std::string> all = registers;
    all["l2norm.store"] = l2norm;
    return all;
  };
  const std::string unit = "-5.000000..0.000000";
  const std::vector<fact> facts{
      {"fla-chunk-delta", delta_rule, bf16, bf16, 64, shared},
      {"fla-chunk-delta", delta_rule, fp16, fp32, 16, {{"beta", "fp32"}, {"w.operand_store", "fp16"}, {"inverse.store", "fp16"}}},
      {"fla-chunk-gdp", gated_delta_product, bf16, bf16, 64, with({{"gate.form", "difference"}, {"gate.cumsum", "fp32"}})},
      {"fla-chunk-gdn", gated_delta_rule, bf16, bf16, 32, with({{"gate.form", "difference"}})},
      {"fla-chunk-gdn", gated_delta_rule, bf16, bf16, 64, with({{"inverse.merge_operand", "tf32 rz"}})},
      {"fla-chunk-gdn",
       gated_delta_rule,
       fp32,
       fp32,
       64,
       {{"A.operand", "tf32 rz"},
        {"u.operand_store", "fp32"},
        {"w.operand_store", "tf32 rz"},
        {"state.store", "tf32 rz"},
        {"o.operand", "tf32 rz"},
        {"inverse.store", "fp32"},
        {"v_new.store", "fp32"}}},
      {"fla-chunk-kda", kda, bf16, bf16, 64,
       with({{"gate.form", "reference-block"}, {"A.operand", "tf32 rz"}, {"inverse.merge_operand", "tf32 rz"}})},
      {"fla-chunk-kda", kda, fp32, fp32, 64, {{"u.operand_store", "tf32 rz"}, {"w.operand_store", "tf32 rz"}}},
      {"fla-chunk-kda-safe-gate", kda, bf16, bf16, 64,
       with({{"gate.form", "middle-block"},
             {"gate.contract", unit},
             {"A.operand", "tf32 rz"},
             {"inverse.merge_operand", "tf32 rz"}})},
      {"fla-chunk-kda-shifted-gate", kda, bf16, bf16, 64,
       with({{"gate.form", "first-block"},
             {"gate.shift", "-15.000000"},
             {"gate.contract", unit},
             {"A.operand", "tf32 rz"},
             {"inverse.merge_operand", "tf32 rz"}})},
      {"fla-recurrent-delta", delta_rule, bf16, bf16, 0, recurrent("bf16")},
      {"fla-recurrent-gdn", gated_delta_rule, bf16, bf16, 0, recurrent("none")},
      {"fla-recurrent-kda", kda, bf16, bf16, 0, recurrent("none")},
      {"decode-fp32", gated_delta_rule, bf16, bf16, 0, registers},
      {"flashkda-fp16-neumann", kda, bf16, fp32, 16,
       with({{"inverse", "neumann"},
             {"inverse.operand", "fp16"},
             {"inverse.accumulate", "fp16"},
             {"inverse.merge_operand", "fp16"},
             {"inverse.between", "fp16"},
             {"A.store", "fp16"},
             {"gate.form", "factored"},
             {"gate.contract", unit},
             {"state.between_tokens", "bf16"}})},
      {"flashkda-repaired", kda, bf16, bf16, 16,
       with({{"inverse", "forward8+block"},
             {"inverse.merge_operand", "bf16"},
             {"gate.form", "factored"},
             {"state.between_tokens", "bf16"}})},
      {"neumann-64",
       delta_rule,
       bf16,
       bf16,
       64,
       {{"inverse", "neumann"}, {"inverse.operand", "bf16"}, {"inverse.accumulate", "fp32"}}},
      {"doubling-128",
       gated_delta_rule,
       bf16,
       bf16,
       128,
       {{"inverse", "neumann"}, {"inverse.operand", "fp16"}, {"inverse.accumulate", "fp16"}}},
      {"bf16-between-steps", delta_rule, bf16, bf16, 64, with({{"inverse.between", "bf16"}})},
  };
  std::set<std::string> covered{"fp32", "fp64"};
  for (const fact& f : facts) {
    covered.insert(f.preset);
    const auto got = described(first_of(f.preset, small(f.op, f.x, f.beta), f.chunk));
    for (const auto& [key, value] : f.said) EXPECT_EQ(got.at(key), value) << f.preset << " " << name_of(f.x) << ": " << key;
  }
  EXPECT_EQ(covered, published);
}

TEST(plans, fp32_and_fp64_are_in_that_format_throughout) {
  for (const std::string name : {"fp32", "fp64"}) {
    for (const auto& [op, op_name] : op_names) {
      for (const format x : {bf16, fp16, fp32, fp64}) {
        for (const path_kind path : {path_kind::chunk, path_kind::recurrent}) {
          for (const plan_variant& v : variants(plan_named(name), small(op, x, x), path, 37)) {
            for (const auto& [key, value] : described(v)) {
              const std::set<std::string> formats{"bf16", "fp16", "fp32", "fp64"};
              if (formats.count(value) == 0) continue;
              // The inputs are what they are; o is stored as it is asked for.
              const bool unused =
                  path == path_kind::recurrent && (key[0] == 'A' || key.starts_with("inverse") || key[0] == 'u' || key[0] == 'w');
              EXPECT_TRUE(unused || value == (key == "o.store" ? name_of(x) : name))
                  << v.name << " " << op_name << ": " << key << " is " << value;
            }
          }
        }
      }
    }
  }
}

TEST(plans, have_one_variant_for_each_other_choice_that_can_matter) {
  const auto of = [](const char* name, const problem& p, std::size_t chunk) {
    const plan declared = plan_named(name);
    return variants(declared, p, declared.path.front(), chunk);
  };
  EXPECT_THAT(names_of(of("fla-chunk-delta", small(op_kind::delta_rule, bf16), 64)),
              ElementsAre("fla-chunk-delta", "fla-chunk-delta (order pairwise)", "fla-chunk-delta (order blocks-of-16)",
                          "fla-chunk-delta (order chain-of-16)"));
  const problem gated = small(op_kind::gated_delta_rule, bf16);
  EXPECT_EQ(of("fla-chunk-gdn", gated, 32).size(), 4U);
  const auto tf32_merges = of("fla-chunk-gdn", gated, 64);
  ASSERT_EQ(tf32_merges.size(), 6U);
  EXPECT_EQ(tf32_merges[4].name, "fla-chunk-gdn ([inverse] merge_operand fp32)");
  EXPECT_EQ(tf32_merges[4].inverse.merge_operand, (narrowing{fp32, false}));
  EXPECT_EQ(tf32_merges[5].name, "fla-chunk-gdn (tf32 rna)");
  EXPECT_EQ(tf32_merges[5].inverse.merge_operand, (narrowing{tf32, false}));
  EXPECT_EQ(tf32_merges[0].inverse.merge_operand, (narrowing{tf32, true}));
  // A diagonal block as long as the chunk is the whole chunk.
  EXPECT_EQ(of("fp32", small(op_kind::delta_rule, fp32), 64).size(), 6U);
  EXPECT_EQ(of("fp32", small(op_kind::delta_rule, fp32), 32).size(), 5U);
  EXPECT_EQ(of("fp32", small(op_kind::delta_rule, fp32), 16).size(), 4U);
  EXPECT_EQ(of("fp32", small(op_kind::kda, fp32), 16).size(), 5U);
  // A step that the kernel computes is rounded to the format of beta or kept as computed.
  problem logits = small(op_kind::delta_rule, bf16);
  logits.beta_activation = activation_kind::sigmoid;
  logits.beta = tensor::from_doubles(bf16, logits.beta.shape(), logits.beta.to_doubles(), "beta");
  const auto computed = of("fla-chunk-delta", logits, 64);
  ASSERT_EQ(computed.size(), 5U);
  EXPECT_EQ(computed[1].name, "fla-chunk-delta ([beta] format fp32)");
  EXPECT_EQ(computed[0].beta, bf16);
  EXPECT_EQ(computed[1].beta, fp32);
  const auto recurrent = variants(plan_named("fp32"), small(op_kind::kda, fp32), path_kind::recurrent, 0);
  EXPECT_EQ(recurrent.size(), 4U);
  EXPECT_EQ(recurrent[0].chunk, 0U);
}

TEST(plans, are_found_by_kernel_and_by_problem) {
  const auto names = [](const std::vector<const plan*>& found) {
    std::vector<std::string> all;
    for (const plan* p : found) all.push_back(p->name);
    return all;
  };
  const problem kda = small(op_kind::kda, bf16);
  const problem delta = small(op_kind::delta_rule, bf16);
  EXPECT_THAT(names(plans_for_kernel("fla chunk_kda", kda, path_kind::chunk)),
              ElementsAre("fla-chunk-kda", "fla-chunk-kda-safe-gate", "fla-chunk-kda-shifted-gate"));
  EXPECT_THAT(names(plans_for_kernel("fla chunk_kda with tilelang", kda, path_kind::chunk)),
              ElementsAre("fla-chunk-kda-tilelang"));
  EXPECT_THAT(names(plans_for_kernel("fla fused_recurrent_kda", kda, path_kind::recurrent)), ElementsAre("fla-recurrent-kda"));
  EXPECT_THAT(names(plans_for_kernel("fla chunk_delta_rule", delta, path_kind::chunk)), ElementsAre("fla-chunk-delta"));
  EXPECT_THAT(names(plans_for_kernel("fla fused_recurrent_delta_rule", delta, path_kind::recurrent)),
              ElementsAre("fla-recurrent-delta"));
  const problem gated = small(op_kind::gated_delta_rule, bf16);
  EXPECT_THAT(names(plans_for_kernel("fla chunk_gated_delta_rule", gated, path_kind::chunk)), ElementsAre("fla-chunk-gdn"));
  EXPECT_THAT(names(plans_for_kernel("fla fused_recurrent_gated_delta_rule", gated, path_kind::recurrent)),
              ElementsAre("fla-recurrent-gdn"));
  EXPECT_THAT(
      names(plans_for_kernel("fla chunk_gated_delta_product", small(op_kind::gated_delta_product, bf16), path_kind::chunk)),
      ElementsAre("fla-chunk-gdp"));
  EXPECT_THAT(names(plans_for_kernel("flashkda", kda, path_kind::chunk)),
              ElementsAre("flashkda-fp16-neumann", "flashkda-repaired"));
  // A kernel of that name that was given something else, and one that no plan lists.
  EXPECT_TRUE(plans_for_kernel("fla chunk_delta_rule", small(op_kind::delta_rule, fp32), path_kind::chunk).empty());
  EXPECT_TRUE(plans_for_kernel("fla chunk_delta_rule", delta, path_kind::recurrent).empty());
  EXPECT_TRUE(plans_for_kernel("mine", delta, path_kind::chunk).empty());
  EXPECT_THAT(names(candidate_plans(small(op_kind::delta_rule, fp64), std::nullopt)), ElementsAre("fp32", "fp64"));
  const auto of_delta = names(candidate_plans(delta, path_kind::chunk));
  EXPECT_THAT(of_delta,
              ::testing::IsSupersetOf({"bf16-between-steps", "doubling-128", "fla-chunk-delta", "fp32", "fp64", "neumann-64"}));
  for (const char* other : {"fla-chunk-gdn", "fla-chunk-kda", "fla-recurrent-delta", "decode-fp32", "flashkda-repaired"})
    EXPECT_THAT(of_delta, ::testing::Not(::testing::Contains(other)));
}

TEST(plans, refuse_what_they_do_not_fit) {
  const auto refuses = [](const char* name, const problem& p, path_kind path, std::size_t chunk, const std::string& a,
                          const std::string& b) {
    EXPECT_THAT([&] { require_fit(plan_named(name), p, path, chunk); },
                ThrowsMessage<format_error>(AllOf(HasSubstr(name), HasSubstr(a), HasSubstr(b))));
    EXPECT_THROW((void)variants(plan_named(name), p, path, chunk), format_error);
  };
  refuses("fla-chunk-delta", small(op_kind::kda, bf16), path_kind::chunk, 64, "op is kda", "delta_rule");
  refuses("fla-chunk-delta", small(op_kind::delta_rule, fp32), path_kind::chunk, 64, "fp32", "bf16, fp16");
  refuses("fla-chunk-delta", small(op_kind::delta_rule, bf16), path_kind::recurrent, 0, "path is recurrent", "chunk");
  refuses("fla-chunk-delta", small(op_kind::delta_rule, bf16), path_kind::chunk, 48, "48", "16, 32, 64");
  refuses("fp32", small(op_kind::delta_rule, bf16), path_kind::chunk, 0, "chunk length", "does not state");
  refuses("fp32", small(op_kind::delta_rule, bf16), path_kind::reference, 0, "reference", "chunk, recurrent");
  EXPECT_THAT([] { (void)plan_named("fla-chunk-kdaa"); },
              ThrowsMessage<format_error>(HasSubstr("did you mean \"fla-chunk-kda\"?")));
  EXPECT_THAT([] { (void)plan_named("FP32"); }, ThrowsMessage<format_error>(HasSubstr("did you mean \"fp32\"?")));
  EXPECT_THAT([] { (void)plan_named("/nowhere/mine.toml"); }, ThrowsMessage<format_error>(HasSubstr("/nowhere/mine.toml")));
}

}  // namespace
}  // namespace deltaproof
