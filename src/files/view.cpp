// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
#include "deltaproof/files/view.hpp"

#include <algorithm>
#include <span>
#include <system_error>

#include "deltaproof/support/write_file.hpp"

namespace deltaproof {
namespace {

/// A state as (K, V).
tensor state_kv(const tensor_view& view, layout_kind layout, std::string name) {
  return copied(layout == layout_kind::vk && view.shape().size() > 1 ? view.with_last_axes_swapped() : view, std::move(name));
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
  p.cu_seqlens = view.cu_seqlens;
  p.qk_l2norm = view.qk_l2norm;
  p.rule = view.rule;
  p.beta_activation = view.beta_activation;
  p.num_householder = view.num_householder;
  p.note = view.note;
  p.scale = view.scale.value_or(1);
  try {
    validate(p, "problem_view");
  } catch (const shape_error& e) {
    const std::string other = view.state_layout == layout_kind::kv ? "vk, for [N, HV, V, K]" : "kv, for [N, HV, K, V]";
    if (std::string_view(e.what()).find("tensor initial_state") == std::string_view::npos) throw;
    throw shape_error(std::string(e.what()) + "; it was read as state_layout " + std::string(name_of(view.state_layout)) +
                      ", and the other is " + other);
  }
  if (!view.scale) p.scale = default_scale(p.key_dim());
  return p;
}

void keep(result& r, std::string_view name, const tensor_view& view, layout_kind layout) {
  if (name == "o") {
    r.o = copied(view, "o");
  } else if (name == "final_state") {
    r.final_state = copied(view, "final_state");
    r.state_layout = layout;
  } else if (std::find(stage_names.begin(), stage_names.end(), name) != stage_names.end()) {
    const std::string key(name);
    r.stages.insert_or_assign(key, name == "h" ? state_kv(view, layout, key) : copied(view, key));
  } else {
    std::string known = "o, final_state";
    for (const std::string_view one : stage_names) known += ", " + std::string(one);
    throw format_error("unknown tensor " + in_quotes(name) + " of a result; the names are " + known);
  }
}

result copied(const result_view& view, const problem& p) {
  result r;
  keep(r, "o", view.o);
  if (view.final_state.given()) keep(r, "final_state", view.final_state, view.state_layout);
  for (const auto& [name, stage] : view.stages) keep(r, name, stage, view.state_layout);
  r.state_layout = view.state_layout;
  r.kernel = view.kernel;
  r.path = view.path;
  if (!r.path && view.chunk_size) r.path = path_kind::chunk;
  r.chunk_size = view.chunk_size;
  r.producer = view.producer;
  validate(r, p, "result_view");
  return r;
}

std::pair<std::filesystem::path, std::filesystem::path> record(const std::filesystem::path& path, const problem& p,
                                                               const result& r) {
  validate(p, "problem to record");
  validate(r, p, "result to record");
  const auto problem_file = named(path, ".problem.safetensors"), result_file = named(path, ".result.safetensors");
  if (path.has_parent_path()) {
    std::error_code failed;
    std::filesystem::create_directories(path.parent_path(), failed);
    if (failed) throw format_error(path.parent_path().string() + ": the folder cannot be made: " + failed.message());
  }
  const std::string given = problem_bytes(p);
  result stamped = r;
  stamped.problem_sha256 = sha256_hex(std::as_bytes(std::span(given)));
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
