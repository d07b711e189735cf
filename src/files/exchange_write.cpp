// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT

#include <utility>

#include "deltaproof/files/exchange.hpp"
#include "support/text.hpp"

namespace deltaproof {
namespace {

std::vector<tensor> problem_tensors(const problem& p) {
  std::vector<tensor> tensors{p.q.named("q"), p.k.named("k"), p.v.named("v"), p.beta.named("beta")};
  if (p.initial_state) tensors.push_back(p.initial_state->named("initial_state"));
  if (p.raw) {
    tensors.push_back(p.raw->x.named("g"));
    tensors.push_back(p.raw->rate.named("A_log"));
    if (p.raw->bias) tensors.push_back(p.raw->bias->named("dt_bias"));
  } else if (p.g) {
    tensors.push_back(p.g->named("g"));
  }
  if (p.d_o) tensors.push_back(p.d_o->named("do"));
  if (p.d_final_state) tensors.push_back(p.d_final_state->named("dfinal_state"));
  if (!p.cu_seqlens.empty()) {
    tensors.push_back(tensor::from_integers({p.cu_seqlens.size()}, p.cu_seqlens, "cu_seqlens"));
  }
  return tensors;
}

safetensors_metadata problem_metadata(const problem& p, const safetensors_metadata& extra) {
  safetensors_metadata metadata{{"format", std::string(problem_format)},
                                {"op", std::string(name_of(p.op))},
                                {"scale", detail::shortest(p.scale)},
                                {"qk_l2norm", p.qk_l2norm ? "true" : "false"},
                                {"rule", std::string(name_of(p.rule))},
                                {"beta_activation", std::string(name_of(p.beta_activation))},
                                {"num_householder", std::to_string(p.num_householder)}};
  if (p.raw) {
    metadata.emplace_back("gate_activation", std::string(name_of(p.raw->activation)));
    if (p.raw->activation == gate_kind::bounded) metadata.emplace_back("gate_lower_bound", detail::shortest(p.raw->lower_bound));
  }
  if (p.l2norm_epsilon != reference_l2norm_epsilon) metadata.emplace_back("l2norm_eps", detail::shortest(p.l2norm_epsilon));
  if (!p.note.empty()) metadata.emplace_back("note", p.note);
  metadata.insert(metadata.end(), extra.begin(), extra.end());
  return metadata;
}

std::vector<tensor> tensors_of(const result& r, std::span<const tensor> extra_tensors) {
  std::vector<tensor> tensors;
  if (r.has_outputs()) tensors.push_back(r.o.named("o"));
  if (r.final_state) tensors.push_back(r.final_state->named("final_state"));
  for (const std::string_view name : stage_names) {
    if (const auto stage = r.stages.find(std::string(name)); stage != r.stages.end()) {
      tensors.push_back(stage->second.named(stage->first));
    }
  }
  for (const std::string_view name : backward_stage_names) {
    if (const auto stage = r.backward_stages.find(std::string(name)); stage != r.backward_stages.end())
      tensors.push_back(stage->second.named(stage->first));
  }
  for (const auto& [name, gradient] : r.gradients) tensors.push_back(gradient.named(name));
  tensors.insert(tensors.end(), extra_tensors.begin(), extra_tensors.end());
  return tensors;
}

}  // namespace

std::string problem_bytes(const problem& p, const safetensors_metadata& extra) {
  validate(p, "problem to write");
  return safetensors_bytes(problem_metadata(p, extra), problem_tensors(p));
}

void write_problem(const std::filesystem::path& path, const problem& p, const safetensors_metadata& extra) {
  validate(p, path.string());
  write_safetensors(path, problem_metadata(p, extra), problem_tensors(p));
}

safetensors_metadata result_metadata(const result& r, const safetensors_metadata& extra) {
  safetensors_metadata metadata{{"format", std::string(result_format)}};
  const auto add = [&](const char* key, const std::string& value) {
    if (!value.empty()) metadata.emplace_back(key, value);
  };
  add("kernel", r.kernel);
  if (r.path) add("path", std::string(name_of(*r.path)));
  if (r.chunk_size) add("chunk_size", std::to_string(*r.chunk_size));
  add("state_layout", std::string(name_of(r.state_layout)));
  add("problem_sha256", r.problem_sha256);
  add("producer", r.producer);
  for (const auto& [key, value] : r.metadata) metadata.emplace_back(key, value);
  metadata.insert(metadata.end(), extra.begin(), extra.end());
  return metadata;
}

std::string result_bytes(const result& r, const safetensors_metadata& extra, std::span<const tensor> extra_tensors) {
  return safetensors_bytes(result_metadata(r, extra), tensors_of(r, extra_tensors));
}

void write_result(const std::filesystem::path& path, const result& r, const safetensors_metadata& extra,
                  std::span<const tensor> extra_tensors) {
  write_safetensors(path, result_metadata(r, extra), tensors_of(r, extra_tensors));
}

}  // namespace deltaproof
