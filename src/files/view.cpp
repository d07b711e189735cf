// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
#include "deltaproof/files/view.hpp"

#include <algorithm>
#include <array>
#include <span>
#include <system_error>

#include "deltaproof/files/text_hash.hpp"
#include "deltaproof/oracle/gradients.hpp"
#include "deltaproof/support/write_file.hpp"

namespace deltaproof {
namespace {

/// A state as (K, V).
tensor state_kv(const tensor_view& view, layout_kind layout, std::string name) {
  return copied(layout == layout_kind::vk && view.shape().size() > 1 ? view.with_last_axes_swapped() : view, std::move(name));
}

/// A refusal of a shape. Where the caller's axes were swapped before they were looked at, it says so.
shape_error refusal(const shape_error& e, layout_kind layout) {
  std::string text = e.what();
  for (const char* name : {"dfinal_state", "h", "dh", "dinitial_state"}) {
    if (layout == layout_kind::vk && text.find("tensor " + std::string(name) + ":") != std::string::npos)
      text += "; state_layout is vk, so the last two axes of your buffer were swapped first";
  }
  return shape_error(text);
}

std::filesystem::path named(const std::filesystem::path& path, const char* ending) {
  std::filesystem::path out = path;
  out += ending;
  return out;
}

}  // namespace

problem copied(const problem_view& view) {
  problem p;
  p.op = view.op;
  p.q = copied(view.q, "q");
  p.k = copied(view.k, "k");
  p.v = copied(view.v, "v");
  p.beta = copied(view.beta, "beta");
  if (view.g.given()) p.g = copied(view.g, "g");
  if (view.initial_state.given()) p.initial_state = state_kv(view.initial_state, view.state_layout, "initial_state");
  if (view.d_o.given()) p.d_o = copied(view.d_o, "do");
  if (view.d_final_state.given()) p.d_final_state = state_kv(view.d_final_state, view.state_layout, "dfinal_state");
  p.cu_seqlens = view.cu_seqlens;
  p.qk_l2norm = view.qk_l2norm;
  p.l2norm_epsilon = view.l2norm_epsilon;
  p.rule = view.rule;
  p.beta_activation = view.beta_activation;
  p.num_householder = view.num_householder;
  p.note = view.note;
  p.scale = view.scale.value_or(1);
  try {
    validate(p, "problem_view");
  } catch (const shape_error& e) {
    if (std::string_view(e.what()).find("tensor initial_state") == std::string_view::npos) throw refusal(e, view.state_layout);
    if (view.state_layout == layout_kind::kv)
      throw shape_error(std::string(e.what()) + "; state_layout is kv: if your buffer is [N, HV, V, K], set layout_kind::vk");
    const std::array<std::size_t, 4> expected{p.sequence_count(), p.value_heads(), p.value_dim(), p.key_dim()};
    throw shape_error("problem_view: tensor initial_state: shape " + shape_text(view.initial_state.shape()) + " should be " +
                      shape_text(expected) +
                      ", [N, HV, V, K]; state_layout is vk: if your buffer is [N, HV, K, V], set layout_kind::kv");
  }
  if (!view.scale) p.scale = default_scale(p.key_dim());
  return p;
}

void keep(result& r, std::string_view name, const tensor_view& view, layout_kind layout) {
  const auto one_of = [&](const auto& names) { return std::find(names.begin(), names.end(), name) != names.end(); };
  const std::string key(name);
  const bool state = name == "h" || name == "dh" || name == "dinitial_state";
  if (name == "o") {
    r.o = copied(view, "o");
  } else if (name == "final_state") {
    r.final_state = copied(view, "final_state");
    r.state_layout = layout;
  } else if (one_of(stage_names) || one_of(backward_stage_names) || one_of(gradient_names)) {
    auto& list = one_of(stage_names) ? r.stages : one_of(gradient_names) ? r.gradients : r.backward_stages;
    list.insert_or_assign(key, state ? state_kv(view, layout, key) : copied(view, key));
  } else {
    std::string known = "o, final_state";
    for (const std::string_view one : stage_names) known += ", " + std::string(one);
    for (const std::string_view one : gradient_names) known += ", " + std::string(one);
    for (const std::string_view one : backward_stage_names) known += ", " + std::string(one);
    throw format_error("unknown tensor " + in_quotes(name) + " of a result; the names are " + known);
  }
}

result copied(const result_view& view, const problem& p) {
  result r;
  if (view.o.given() || view.gradients.empty()) keep(r, "o", view.o);
  if (view.final_state.given()) keep(r, "final_state", view.final_state, view.state_layout);
  for (const auto* list : {&view.stages, &view.gradients}) {
    for (const auto& [name, one] : *list) keep(r, name, one, view.state_layout);
  }
  r.state_layout = view.state_layout;
  r.kernel = view.kernel;
  r.path = view.path;
  if (!r.path && view.chunk_size) r.path = path_kind::chunk;
  r.chunk_size = view.chunk_size;
  r.producer = view.producer;
  try {
    validate(r, p, "result_view");
  } catch (const shape_error& e) {
    throw refusal(e, view.state_layout);
  }
  return r;
}

std::pair<std::filesystem::path, std::filesystem::path> record(const std::filesystem::path& path, const problem& p,
                                                               const result& r) {
  validate(p, "problem to record");
  validate(r, p, "result to record");
  const auto problem_file = named(path, ".problem.safetensors"), result_file = named(path, ".result.safetensors");
  if (path.has_parent_path()) make_folder(path.parent_path());
  const std::string given = problem_bytes(p);
  result stamped = r;
  stamped.problem_sha256 = sha256_hex(given);
  const std::string gave = result_bytes(stamped);
  file_batch both;
  both.add(problem_file, given);
  both.add(result_file, gave);
  both.finish();
  return {problem_file, result_file};
}

std::pair<std::filesystem::path, std::filesystem::path> record(const std::filesystem::path& path, const problem_view& p,
                                                               const result_view& r) {
  const problem given = copied(p);
  return record(path, given, copied(r, given));
}

}  // namespace deltaproof
