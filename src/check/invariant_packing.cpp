// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
#include <algorithm>
#include <map>
#include <memory>

#include "check/invariant_parts.hpp"

namespace deltaproof {

using namespace invariant_detail;

namespace {

using run_list = std::span<const recorded_run* const>;

/// The bytes of the tensors one after the other, each of its part. Throws: format_error if their dtypes differ.
tensor stacked(run_list parts, const std::vector<const tensor*>& list, std::vector<std::size_t> shape, const std::string& name) {
  std::size_t bytes = 0;
  const auto file = find_stage(name) == nullptr ? &recorded_run::problem_path : &recorded_run::result_path;
  for (std::size_t i = 0; i < list.size(); ++i) {
    if (list[i]->dtype() != list.front()->dtype())
      throw format_error(parts[i]->*file + ": tensor " + name + " is " + list[i]->dtype() + " here, but " +
                         list.front()->dtype() + " in " + parts.front()->*file +
                         "; record this tensor in the same format in every part");
    bytes += list[i]->bytes().size();
  }
  const std::shared_ptr<std::byte[]> buffer(new std::byte[std::max<std::size_t>(1, bytes)]);
  std::size_t at = 0;
  for (const tensor* t : list) {
    std::copy(t->bytes().begin(), t->bytes().end(), buffer.get() + at);
    at += t->bytes().size();
  }
  return {list.front()->element_format(), std::move(shape), buffer, bytes, name};
}

/// Batches lie one after the other as packed sequences do, so that bytes need only follow each other: [1, rows, ...].
template <class Of>
tensor stacked_rows(run_list parts, const std::string& name, const Of& of) {
  std::vector<const tensor*> list;
  std::size_t rows = 0;
  for (const recorded_run* part : parts) {
    list.push_back(&of(*part));
    rows += list.back()->dim(0) * list.back()->dim(1);
  }
  std::vector<std::size_t> shape = list.front()->shape();
  shape[0] = 1;
  shape[1] = rows;
  return stacked(parts, list, shape, name);
}

/// [N, HV, K, V] of all sequences.
tensor stacked_states(run_list parts, const std::vector<const tensor*>& list, std::size_t sequences, const std::string& name) {
  std::vector<std::size_t> shape = list.front()->shape();
  shape[0] = sequences;
  return stacked(parts, list, shape, name);
}

/// What a map of a result holds under `name`. Throws: format_error where it lacks it.
const tensor& held(const std::map<std::string, tensor>& of, const std::string& name, const char* kind, const recorded_run& r) {
  const auto found = of.find(name);
  if (found == of.end())
    throw format_error(r.result_path + ": the " + kind + " " + name +
                       " is missing, but another result holds it; record it in every result or in none");
  return found->second;
}

void stack_initial_states(run_list parts, std::size_t sequences, recorded_run& out) {
  std::vector<tensor> zeros;
  zeros.reserve(parts.size());
  std::vector<const tensor*> list;
  format of = fp32;
  for (const recorded_run* part : parts) {
    if (part->given.initial_state) of = part->given.initial_state->element_format();
  }
  for (const recorded_run* part : parts) {
    if (!part->given.initial_state) {
      const std::vector<std::size_t> shape{part->given.sequence_count(), out.given.value_heads(), out.given.key_dim(),
                                           out.given.value_dim()};
      zeros.push_back(tensor::from_doubles(of, shape, std::vector<double>(element_count(shape), 0.0), "initial_state"));
    }
    list.push_back(part->given.initial_state ? &*part->given.initial_state : &zeros.back());
  }
  out.given.initial_state = stacked_states(parts, list, sequences, "initial_state");
}

/// Cotangents and gradients. Throws: format_error where one part lacks what the first has.
void stack_gradients(run_list parts, std::size_t sequences, recorded_run& out) {
  const recorded_run& first = *parts.front();
  const auto needed = [](const std::optional<tensor>& t, const recorded_run& r, const char* name) -> const tensor& {
    if (!t)
      throw format_error(r.problem_path + ": tensor " + name +
                         " is missing, but other parts have it; record it in every part or in none");
    return *t;
  };
  const auto states = [&](const std::string& name, const auto& of) {
    std::vector<const tensor*> list;
    for (const recorded_run* part : parts) list.push_back(&of(*part));
    return stacked_states(parts, list, sequences, name);
  };
  if (first.given.d_o)
    out.given.d_o =
        stacked_rows(parts, "do", [&](const recorded_run& r) -> const tensor& { return needed(r.given.d_o, r, "do"); });
  if (first.given.d_final_state)
    out.given.d_final_state = states(
        "dfinal_state", [&](const recorded_run& r) -> const tensor& { return needed(r.given.d_final_state, r, "dfinal_state"); });
  for (auto& [name, t] : out.gave.gradients) {
    const auto of = [&name = name](const recorded_run& r) -> const tensor& {
      return held(r.gave.gradients, name, "gradient", r);
    };
    t = name == "dinitial_state" ? states(name, of) : stacked_rows(parts, name, of);
  }
}

}  // namespace

recorded_run packed(std::span<const recorded_run* const> parts) {
  if (parts.empty()) throw shape_error("packed: no parts; give at least one");
  recorded_run out = *parts.front();
  out.problem_sha256.clear();
  out.result_sha256.clear();
  out.gave.problem_sha256.clear();
  out.result_path = "packed parts";
  std::vector<std::int64_t> offsets{0};
  bool states = false;
  for (const recorded_run* part : parts) {
    require_same_question(*parts.front(), *part);
    states = states || part->given.initial_state.has_value();
    for (const sequence_range& s : part->given.sequences())
      offsets.push_back(offsets.back() + static_cast<std::int64_t>(s.tokens));
    if (part->gave.chunk_size != out.gave.chunk_size || part->gave.final_state.has_value() != out.gave.final_state.has_value() ||
        part->gave.stages.size() != out.gave.stages.size() ||
        part->gave.backward_stages.size() != out.gave.backward_stages.size() ||
        part->gave.state_layout != out.gave.state_layout) {
      throw format_error(part->result_path + ": chunk_size, state_layout or the tensors that it holds differ from " +
                         parts.front()->result_path + "; record both in the same way");
    }
  }
  const std::size_t sequences = offsets.size() - 1;
  out.given.q = stacked_rows(parts, "q", [](const recorded_run& r) -> const tensor& { return r.given.q; });
  out.given.k = stacked_rows(parts, "k", [](const recorded_run& r) -> const tensor& { return r.given.k; });
  out.given.v = stacked_rows(parts, "v", [](const recorded_run& r) -> const tensor& { return r.given.v; });
  out.given.beta = stacked_rows(parts, "beta", [](const recorded_run& r) -> const tensor& { return r.given.beta; });
  if (out.given.g) out.given.g = stacked_rows(parts, "g", [](const recorded_run& r) -> const tensor& { return *r.given.g; });
  out.gave.o = stacked_rows(parts, "o", [](const recorded_run& r) -> const tensor& { return r.gave.o; });
  for (const auto list : {&result::stages, &result::backward_stages}) {
    for (auto& [name, t] : out.gave.*list) {
      t = stacked_rows(parts, name, [&, &name = name](const recorded_run& r) -> const tensor& {
        return held(r.gave.*list, name, "stage", r);
      });
    }
  }
  stack_gradients(parts, sequences, out);
  if (out.gave.final_state) {
    std::vector<const tensor*> list;
    for (const recorded_run* part : parts) list.push_back(&*part->gave.final_state);
    out.gave.final_state = stacked_states(parts, list, sequences, "final_state");
  }
  if (states) stack_initial_states(parts, sequences, out);
  out.given.cu_seqlens = std::move(offsets);
  return out;
}

namespace {

/// A tensor of the whole's tokens: those of each part's sequences, one after the other. `steps`: rows a token.
template <class Of>
tensor joined_rows(const problem& p, std::span<const recorded_run> parts, const std::string& name, std::size_t steps,
                   const Of& of) {
  const tensor& last = of(parts.back());
  const auto w = p.sequences();
  std::vector<std::size_t> shape = last.shape();
  shape[0] = p.batch();
  shape[1] = p.tokens() * steps;
  const std::size_t row = rows{&last, 0, 0}.width() * element_bytes(last), bytes = element_count(shape) * element_bytes(last);
  const std::shared_ptr<std::byte[]> buffer(new std::byte[std::max<std::size_t>(1, bytes)]());
  std::vector<std::size_t> done(w.size(), 0);
  for (const recorded_run& part : parts) {
    const tensor& t = of(part);
    if (t.dtype() != last.dtype())
      throw format_error(part.result_path + ": " + name + " is " + t.dtype() + " here, but " + last.dtype() +
                         " in the last part; record it in the same format in every part");
    const auto own = part.given.sequences();
    for (std::size_t s = 0; s < w.size(); ++s) {
      const auto from = rows{&t, flat_token(part.given, own[s]) * steps, own[s].tokens * steps}.bytes();
      std::copy(from.begin(), from.end(), buffer.get() + (flat_token(p, w[s]) + done[s]) * steps * row);
      done[s] += own[s].tokens;
    }
  }
  return tensor(last.element_format(), shape, buffer, bytes, name);
}

}  // namespace

result concatenated(const recorded_run& whole, std::span<const recorded_run> parts) {
  const problem& p = whole.given;
  result out = parts.back().gave;
  out.stages.clear();
  out.gradients.clear();
  out.backward_stages.clear();
  out.metadata.clear();
  out.problem_sha256.clear();
  out.kernel = whole.gave.kernel;
  out.path = whole.gave.path;
  out.chunk_size = whole.gave.chunk_size;
  out.o = joined_rows(p, parts, "o", 1, [](const recorded_run& r) -> const tensor& { return r.gave.o; });
  for (const auto& [name, t] : whole.gave.gradients) {
    const auto of = [&name = name](const recorded_run& r) -> const tensor& {
      return held(r.gave.gradients, name, "gradient", r);
    };
    const std::size_t steps = name == "dq" || name == "dg" ? 1 : p.num_householder;
    out.gradients.emplace(name, name == "dinitial_state" ? of(parts.front()) : joined_rows(p, parts, name, steps, of));
  }
  return out;
}

}  // namespace deltaproof
