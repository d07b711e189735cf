// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
#include "deltaproof/files/view.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>

#include <filesystem>
#include <functional>

#include "deltaproof/emulate/emulate_gradients.hpp"
#include "deltaproof/inputs/regimes.hpp"
#include "support/thrown.hpp"

namespace deltaproof {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using testing::thrown;
namespace fs = std::filesystem;

/// K and V apart, so that a state in the wrong order is seen.
problem some_problem() {
  generation g;
  g.op = op_kind::gated_delta_rule;
  g.tokens = 40;
  g.key_dim = 16;
  g.value_dim = 8;
  g.key_heads = 1;
  g.value_heads = 2;
  return generate(g);
}

result some_result(const problem& p) {
  const plan declared = plan_named("fla-chunk-gdn");
  emulation_options how;
  how.stages = true;
  return emulate(p, variants(declared, p, path_kind::chunk, 16).front(), how);
}

problem_view view_of(const problem& p) {
  problem_view out;
  out.op = p.op;
  out.q = tensor_view(p.q);
  out.k = tensor_view(p.k);
  out.v = tensor_view(p.v);
  out.beta = tensor_view(p.beta);
  out.g = tensor_view(*p.g);
  out.initial_state = tensor_view(*p.initial_state);
  out.scale = p.scale;
  out.note = p.note;
  return out;
}

result_view view_of(const result& r) {
  result_view out;
  out.o = tensor_view(r.o);
  out.final_state = tensor_view(*r.final_state);
  for (const auto& [name, stage] : r.stages) out.stages.emplace(name, tensor_view(stage));
  out.chunk_size = r.chunk_size;
  return out;
}

/// The same tensor with its last two axes in the other order in memory.
tensor swapped(const tensor& t) { return copied(tensor_view(t).with_last_axes_swapped(), t.name()); }

TEST(problem_view, is_copied_exactly_in_both_state_layouts) {
  const problem p = some_problem();
  const std::string bytes = problem_bytes(p);
  problem_view view = view_of(p);
  EXPECT_EQ(problem_bytes(copied(view)), bytes);
  const tensor vk = swapped(*p.initial_state);
  view.initial_state = tensor_view(vk);
  view.state_layout = layout_kind::vk;
  EXPECT_EQ(problem_bytes(copied(view)), bytes);
  // No scale: that of the head dimension. Strided q: heads that were padded to 24 channels.
  view.scale.reset();
  const std::vector<std::uint16_t> dense = words_of<std::uint16_t>(p.q);
  std::vector<std::uint16_t> padded(40 * 24, 0x7fc0);
  for (std::size_t t = 0; t < 40; ++t)
    std::copy_n(dense.begin() + static_cast<std::ptrdiff_t>(16 * t), 16, padded.begin() + static_cast<std::ptrdiff_t>(24 * t));
  view.q = {bf16, padded, {1, 40, 1, 16}, {40 * 24, 24, 24, 1}};
  EXPECT_EQ(problem_bytes(copied(view)), bytes);
}

TEST(problem_view, says_which_tensor_is_wrong_and_what_to_do) {
  const problem p = some_problem();
  problem_view view = view_of(p);
  view.state_layout = layout_kind::vk;
  EXPECT_THAT(thrown([&] { static_cast<void>(copied(view)); }),
              AllOf(HasSubstr("problem_view: tensor initial_state: shape [1, 2, 16, 8] should be [1, 2, 8, 16], [N, HV, V, K]"),
                    HasSubstr("if your buffer is [N, HV, K, V], set layout_kind::kv")));
  view = view_of(p);
  view.k = {};
  EXPECT_THAT(thrown([&] { static_cast<void>(copied(view)); }),
              HasSubstr("tensor k: it was not given; set its pointer, format and shape"));
  view = view_of(p);
  view.v = {bf16, p.v.bytes().data(), {1, 40, 8, 2}};
  EXPECT_THAT(thrown([&] { static_cast<void>(copied(view)); }), HasSubstr("problem_view: tensor "));
}

TEST(result_view, is_copied_exactly_in_both_state_layouts) {
  const problem p = some_problem();
  const result r = some_result(p);
  const result same = copied(view_of(r), p);
  EXPECT_TRUE(same_bits(same.o, r.o) && same_bits(*same.final_state, *r.final_state));
  EXPECT_EQ(same.path, path_kind::chunk);
  ASSERT_EQ(same.stages.size(), r.stages.size());
  for (const auto& [name, stage] : r.stages) EXPECT_TRUE(same_bits(same.stages.at(name), stage)) << name;

  const tensor state = swapped(*r.final_state), h = swapped(r.stages.at("h"));
  result_view view = view_of(r);
  view.state_layout = layout_kind::vk;
  view.final_state = tensor_view(state);
  view.stages["h"] = tensor_view(h);
  const result other = copied(view, p);
  EXPECT_TRUE(same_bits(*other.final_state, state));
  EXPECT_EQ(other.state_layout, layout_kind::vk);
  EXPECT_TRUE(same_bits(*other.final_state_kv(), *r.final_state));
  EXPECT_TRUE(same_bits(other.stages.at("h"), r.stages.at("h")));  // in files h is (K, V) always
}

TEST(result_view, says_which_tensor_is_wrong_and_what_to_do) {
  const problem p = some_problem();
  const result r = some_result(p);
  const auto refusal = [&](const std::function<void(result_view&)>& change) {
    result_view view = view_of(r);
    change(view);
    return thrown([&] { static_cast<void>(copied(view, p)); });
  };
  EXPECT_EQ(refusal([](result_view&) {}), "nothing was thrown");
  EXPECT_THAT(
      refusal([](result_view& v) { v.state_layout = layout_kind::vk; }),
      HasSubstr(
          "result_view: tensor final_state: shape [1, 2, 16, 8] should be [1, 2, 8, 16] for this problem, [N, HV, V, K] with "
          "state_layout vk (if yours is [N, HV, K, V], set state_layout to kv)"));
  const tensor state = swapped(*r.final_state);
  EXPECT_THAT(
      refusal([&](result_view& v) {
        v.state_layout = layout_kind::vk;
        v.final_state = tensor_view(state);
      }),
      AllOf(HasSubstr("tensor h: shape"), HasSubstr("state_layout is vk, so the last two axes of your buffer were swapped")));
  EXPECT_THAT(refusal([&](result_view& v) { v.o = tensor_view(p.q); }),
              HasSubstr("result_view: tensor o: shape [1, 40, 1, 16] should be [1, 40, 2, 8]"));
  EXPECT_THAT(refusal([](result_view& v) { v.chunk_size.reset(); }), HasSubstr("add chunk_size"));
  EXPECT_THAT(refusal([](result_view& v) { v.stages["W"] = v.stages["w"]; }),
              HasSubstr("unknown tensor \"W\" of a result; the names are o, final_state, g_cumsum_log2, A"));
}

TEST(result_view, holds_gradients_and_stages_of_a_backward_pass) {
  generation g;
  g.op = op_kind::gated_delta_rule;
  g.tokens = 40;
  g.key_dim = 16;
  g.value_dim = 8;
  g.key_heads = 1;
  g.value_heads = 2;
  g.cotangents = true;
  const problem p = generate(g);
  problem_view given = view_of(p);
  given.d_o = tensor_view(*p.d_o);
  given.d_final_state = tensor_view(*p.d_final_state);
  EXPECT_EQ(copied(given).d_o->to_doubles(), p.d_o->to_doubles());
  EXPECT_EQ(copied(given).d_final_state->to_doubles(), p.d_final_state->to_doubles());
  emulation_options how;
  how.stages = true;
  const result r = emulate_gradients(p, gradient_variants(plan_named("fla-chunk-gdn"), p, path_kind::chunk, 16).front(), how);
  result_view view = view_of(r);
  for (const auto& [name, t] : r.backward_stages) view.stages.emplace(name, tensor_view(t));
  for (const auto& [name, t] : r.gradients) view.gradients.emplace(name, tensor_view(t));
  const result same = copied(view, p);
  ASSERT_EQ(same.gradients.size(), r.gradients.size());
  ASSERT_EQ(same.backward_stages.size(), r.backward_stages.size());
  for (const auto& [name, t] : r.gradients) EXPECT_EQ(same.gradients.at(name).to_doubles(), t.to_doubles()) << name;
  for (const auto& [name, t] : r.backward_stages) EXPECT_EQ(same.backward_stages.at(name).to_doubles(), t.to_doubles()) << name;
  // Of a backward pass alone, states as (V, K).
  result_view alone;
  alone.state_layout = layout_kind::vk;
  const tensor turned = copied(tensor_view(r.gradients.at("dinitial_state")).with_last_axes_swapped(), "dinitial_state");
  alone.gradients = {{"dq", tensor_view(r.gradients.at("dq"))}, {"dinitial_state", tensor_view(turned)}};
  const result backward = copied(alone, p);
  EXPECT_FALSE(backward.has_outputs());
  EXPECT_EQ(backward.gradients.at("dinitial_state").to_doubles(), r.gradients.at("dinitial_state").to_doubles());
  alone.gradients.emplace("dz", tensor_view(r.o));
  EXPECT_THAT(thrown([&] { (void)copied(alone, p); }), AllOf(HasSubstr("dz"), HasSubstr("dinitial_state")));
}

TEST(keep, copies_a_buffer_before_it_is_written_over) {
  const problem p = some_problem();
  const result r = some_result(p);
  std::vector<std::uint16_t> scratch = words_of<std::uint16_t>(r.stages.at("w"));
  result kept;
  keep(kept, "w", {bf16, scratch, r.stages.at("w").shape()});
  scratch.assign(scratch.size(), 0x7fc0);
  EXPECT_TRUE(same_bits(kept.stages.at("w"), r.stages.at("w")));
  EXPECT_THAT(thrown([&] { keep(kept, "W", {bf16, scratch, {1}}); }), HasSubstr("unknown tensor \"W\""));
}

TEST(record, writes_two_files_that_read_back_as_the_same_case) {
  const testing::temporary_folder box;
  const fs::path& folder = box.path;
  const problem p = some_problem();
  const result r = some_result(p);
  const auto [problem_file, result_file] = record(folder / "new" / "case1", view_of(p), view_of(r));
  EXPECT_EQ(problem_file, folder / "new" / "case1.problem.safetensors");
  EXPECT_EQ(result_file, folder / "new" / "case1.result.safetensors");
  notes_list notes;
  const safetensors_file stored = read_safetensors(problem_file);
  const problem back = parse_problem(stored, notes);
  EXPECT_EQ(problem_bytes(back), problem_bytes(p));
  const result gave = read_result(result_file, back, sha256_hex(stored.bytes()), notes);
  EXPECT_TRUE(notes.empty()) << notes.front();
  EXPECT_TRUE(same_bits(gave.o, r.o) && same_bits(*gave.final_state, *r.final_state));
  EXPECT_EQ(gave.stages.size(), r.stages.size());
  // What is no result of the problem leaves no file.
  result wrong = r;
  wrong.o = p.q;
  EXPECT_THAT(thrown([&] { record(folder / "case2", p, wrong); }), HasSubstr("result to record: tensor o"));
  EXPECT_FALSE(fs::exists(folder / "case2.problem.safetensors"));
}

}  // namespace
}  // namespace deltaproof
