// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
#include "emulate/filling.hpp"

#include <algorithm>
#include <utility>

#include "deltaproof/emulate/faults.hpp"

namespace deltaproof::emulation_detail {

const matrix<double>& tensor_of(const head_output& out, std::string_view name) {
  std::string names;
  for (const auto& [known, member] : head_tensors) {
    if (known == name) return out.*member;
    names += (names.empty() ? "" : ", ") + std::string(known);
  }
  throw domain_error("an emulated head has no tensor named " + std::string(name) + "; name one of " + names);
}

filling::filling(const format& f, std::vector<std::size_t> s) : of{f}, shape{std::move(s)}, values(element_count(shape), 0.0) {}

void filling::put(const matrix<double>& from, std::size_t batch, std::size_t first, std::size_t head) {
  const std::size_t rows = shape[1], heads = shape[2], width = from.cols();
  for (std::size_t i = 0; i < from.rows(); ++i) {
    std::copy(from.row(i).begin(), from.row(i).end(),
              values.begin() + static_cast<std::ptrdiff_t>(((batch * rows + first + i) * heads + head) * width));
  }
}

void filling::put_block(std::span<const double> from, std::size_t index) {
  std::copy(from.begin(), from.end(), values.begin() + static_cast<std::ptrdiff_t>(index * from.size()));
}

forward_tensors::forward_tensors(const problem& p, const plan_variant& variant, bool stages)
    : p_{p},
      variant_{variant},
      chunks_{stages ? chunk_count(p, variant.chunk) : 0},
      o_(stored_format(variant, "o"), {p.batch(), p.tokens(), p.value_heads(), p.value_dim()}),
      states_(stored_format(variant, "final_state"), {p.sequence_count(), p.value_heads(), p.key_dim(), p.value_dim()}) {
  if (!stages) return;
  const bool transforms = variant.v_new.form == change_form::transforms;
  const auto is_kept = [&](std::string_view name) {
    if (name == "g_cumsum_log2") return p.g.has_value();
    if (name == "Aqk") return p.gate_per_channel() && p.num_householder == 1;
    return transforms || name == "v_new" || name == "h";
  };
  for (const std::string_view name : stage_names) {
    if (is_kept(name)) kept_.emplace(name, filling(stored_format(variant, name), shape_of_stage(name, p, variant.chunk).shape));
  }
}

void forward_tensors::put(const head_output& out, std::size_t sequence, const sequence_range& range, std::size_t head,
                          std::size_t first_chunk) {
  const std::size_t heads = p_.value_heads(), K = p_.key_dim(), size = K * p_.value_dim();
  o_.put(out.o, range.batch, range.first_token, head);
  states_.put_block(out.final_state.entries(), sequence * heads + head);
  for (auto& [name, to] : kept_) {
    if (name == "h") {
      for (std::size_t c = 0; c * K < out.h.rows(); ++c)
        to.put_block({out.h.data() + c * size, size}, (range.batch * chunks_ + first_chunk + c) * heads + head);
      continue;
    }
    to.put(tensor_of(out, name), range.batch, range.first_token * p_.num_householder, head);
  }
}

result forward_tensors::finished(const emulation_options& options) const {
  result r;
  r.o = o_.finished("o");
  r.final_state = states_.finished("final_state");
  for (const auto& [name, t] : kept_) r.stages.emplace(name, t.finished(name));
  r.path = variant_.path;
  if (variant_.path == path_kind::chunk) r.chunk_size = variant_.chunk;
  r.kernel = "deltaproof emulate " + variant_.name;
  r.producer = "deltaproof, an emulation of the plan " + variant_.name +
               (options.planted ? " with the fault " + std::string(options.planted->name) : "");
  return r;
}

std::vector<std::size_t> first_chunks(const problem& p, const std::vector<sequence_range>& sequences, std::size_t chunk) {
  std::vector<std::size_t> first(sequences.size(), 0);
  for (std::size_t s = 1; s < sequences.size() && chunk > 0; ++s) {
    const auto& before = sequences[s - 1];
    first[s] = sequences[s].batch != before.batch ? 0 : first[s - 1] + (before.tokens * p.num_householder + chunk - 1) / chunk;
  }
  return first;
}

}  // namespace deltaproof::emulation_detail
