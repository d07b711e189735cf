// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
#include "deltaproof/files/exchange.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstring>
#include <functional>
#include <memory>
#include <utility>

#include "deltaproof/files/state_exchange.hpp"
#include "deltaproof/oracle/gradients.hpp"
#include "deltaproof/support/errors.hpp"
#include "support/text.hpp"

namespace deltaproof {
namespace detail {
namespace {

// The keys of one file: hands out values, remembers which keys had a meaning.
class key_reader {
 public:
  key_reader(const safetensors_file& file, std::string_view expected_format, std::string_view other_format) : file_(file) {
    const std::optional<std::string_view> stated = take("format");
    if (stated == expected_format) return;
    const std::string wanted(expected_format);
    if (!stated) fail("format", "is absent; the file must say " + wanted + " in its metadata");
    if (stated == other_format) {
      const bool problem = expected_format == problem_format;
      throw format_error(file_.where() + ": is a " + (problem ? "result" : "problem") + " file (metadata key format is " +
                         in_quotes(*stated) + "), where a " + (problem ? "problem" : "result") + " file is needed");
    }
    fail("format", "is " + in_quotes(*stated) + "; only " + wanted + " is read here");
  }

  std::optional<std::string_view> take(std::string_view key) {
    taken_.push_back(key);
    return file_.metadata(key);
  }

  std::string text(std::string_view key) { return std::string(take(key).value_or("")); }

  template <class Kind>
  std::optional<Kind> kind(std::string_view key, Kind (*named)(std::string_view)) {
    const std::optional<std::string_view> value = take(key);
    if (!value) return std::nullopt;
    try {
      return named(*value);
    } catch (const format_error& e) {
      throw format_error(file_.where() + ": metadata key " + std::string(key) + ": " + e.what());
    }
  }

  std::optional<bool> truth(std::string_view key) {
    const std::optional<std::string_view> value = take(key);
    if (value && *value != "true" && *value != "false") fail(key, "is " + in_quotes(*value) + "; use true or false");
    return value ? std::optional<bool>(*value == "true") : std::nullopt;
  }

  std::optional<std::size_t> count(std::string_view key) {
    const std::optional<std::string_view> value = take(key);
    if (!value) return std::nullopt;
    std::size_t number = 0;
    if (!whole(*value, number) || number == 0) fail(key, "is " + in_quotes(*value) + "; use a whole number, 1 or more");
    return number;
  }

  std::optional<double> decimal(std::string_view key) {
    const std::optional<std::string_view> value = take(key);
    if (!value) return std::nullopt;
    double number = 0;
    if (!whole(*value, number) || !std::isfinite(number)) {
      fail(key, "is " + in_quotes(*value) + "; use a finite decimal number within the range of fp64");
    }
    return number;
  }

  [[noreturn]] void fail(std::string_view key, const std::string& reason) const {
    throw format_error(file_.where() + ": metadata key " + std::string(key) + " " + reason);
  }

  [[nodiscard]] bool has_meaning(std::string_view key) const {
    return std::find(taken_.begin(), taken_.end(), key) != taken_.end();
  }

 private:
  template <class Number>
  static bool whole(std::string_view text, Number& number) {
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
    return error == std::errc() && end == text.data() + text.size();
  }

  const safetensors_file& file_;
  std::vector<std::string_view> taken_;
};

tensor required(const safetensors_file& file, std::string_view name, const std::string& needed = "it is required") {
  const safetensors_entry* entry = file.find(name);
  if (entry == nullptr) throw format_error(file.where() + ": tensor " + std::string(name) + " is missing; " + needed);
  return file.load(*entry);
}

std::optional<tensor> optional_tensor(const safetensors_file& file, std::string_view name) {
  const safetensors_entry* entry = file.find(name);
  return entry == nullptr ? std::nullopt : std::optional<tensor>(file.load(*entry));
}

// Notes every tensor that is not `known`.
template <class Name>
void note_tensors(const safetensors_file& file, std::span<const Name> known, notes_list& notes) {
  for (const safetensors_entry& entry : file.entries()) {
    if (std::find(known.begin(), known.end(), entry.name) != known.end()) continue;
    notes.push_back(file.where() + ": tensor " + in_quotes(entry.name) + " is unknown; ignored");
  }
}

std::vector<std::int64_t> offsets_of(const safetensors_file& file) {
  const safetensors_entry* const entry = file.find("cu_seqlens");
  if (entry == nullptr) return {};
  if (entry->dtype != "I64") {
    throw format_error(file.where() + ": tensor cu_seqlens: dtype " + entry->dtype + " where I64 is required; save it as int64");
  }
  const tensor t = file.load(*entry);
  if (t.rank() != 1 || t.size() < 2) {
    throw shape_error(file.where() + ": tensor cu_seqlens: shape " + shape_text(t.shape()) +
                      " should be [N+1], the N+1 offsets of N >= 1 sequences");
  }
  return t.to_integers();
}

void require_floating(const tensor& t, const std::string& where) {
  if (t.is_integer()) {
    throw format_error(where + ": tensor " + t.name() + ": dtype " + t.dtype() +
                       " is not a floating-point format; store it as BF16, F16, F32 or F64");
  }
}

void require_shape(const tensor& t, const std::vector<std::size_t>& expected, std::string_view layout, const std::string& where) {
  require_floating(t, where);
  if (t.shape() != expected) {
    throw shape_error(where + ": tensor " + t.name() + ": shape " + shape_text(t.shape()) + " should be " + shape_text(expected) +
                      " for this problem, " + std::string(layout));
  }
}

// C as the metadata states it, else the number of columns of A, Ai or Aqk.
std::optional<std::size_t> chunk_size_of(const safetensors_file& file, key_reader& keys, notes_list& notes) {
  if (const std::optional<std::size_t> stated = keys.count("chunk_size")) return stated;
  for (const stage_row& row : stage_table) {
    const std::string_view name = row.name;
    const safetensors_entry* entry = row.part == stage_part::stages && row.axes == stage_axes::pairs ? file.find(name) : nullptr;
    if (entry != nullptr && entry->shape.size() == 4 && entry->shape[3] != 0) {
      notes.push_back(file.where() + ": metadata key chunk_size is absent; " + std::to_string(entry->shape[3]) +
                      " is taken from the columns of " + std::string(name));
      return entry->shape[3];
    }
  }
  return std::nullopt;
}

/// The shape of a stage must be right; that of some follows from the chunk length.
void require_stage(const tensor& t, const result& r, const problem& p, const std::string& where) {
  const stage_axes axes = find_stage(t.name())->axes;
  const bool chunks = axes == stage_axes::pairs || axes == stage_axes::states;
  if (chunks && !r.chunk_size) {
    throw format_error(
        where + ": tensor " + t.name() +
        ": its shape depends on the chunk length, and the metadata does not state it; add chunk_size to the metadata");
  }
  const auto [shape, layout] = shape_of_stage(t.name(), p, r.chunk_size.value_or(1));
  require_shape(t, shape, std::string(layout) + (chunks ? " with chunk_size = " + std::to_string(*r.chunk_size) : ""), where);
}

void validate_stages(const result& r, const problem& p, const std::string& where) {
  for (const auto& [name, stage] : r.stages) {
    if (std::find(stage_names.begin(), stage_names.end(), name) != stage_names.end()) continue;
    std::string known;
    for (const std::string_view one : stage_names) known += (known.empty() ? "" : ", ") + std::string(one);
    throw format_error(where + ": stage " + in_quotes(name) + " is unknown; the stages are " + known);
  }
  for (const std::string_view name : stage_names) {
    const auto found = r.stages.find(std::string(name));
    if (found == r.stages.end()) continue;
    const tensor stage = found->second.named(found->first);
    require_stage(stage, r, p, where);
    if (name == "g_cumsum_log2" && stage.dtype() != "F32" && stage.dtype() != "F64") {
      throw format_error(where + ": tensor g_cumsum_log2: dtype " + stage.dtype() + " where F32 or F64 is required");
    }
  }
}

void validate_backward_stages(const result& r, const problem& p, const std::string& where) {
  for (const auto& [name, stage] : r.backward_stages) {
    if (std::find(backward_stage_names.begin(), backward_stage_names.end(), name) == backward_stage_names.end()) {
      std::string known;
      for (const std::string_view one : backward_stage_names) known += (known.empty() ? "" : ", ") + std::string(one);
      throw format_error(where + ": stage " + in_quotes(name) + " of the backward pass is unknown; the stages are " + known);
    }
    require_stage(stage.named(name), r, p, where);
  }
}

// What each gradient is the gradient of, by name.
const tensor* differentiated(const problem& p, std::string_view gradient) {
  if (gradient == "dq") return &p.q;
  if (gradient == "dk") return &p.k;
  if (gradient == "dv") return &p.v;
  if (gradient == "dbeta") return &p.beta;
  if (gradient == "dg") return p.g ? &*p.g : nullptr;
  return p.initial_state ? &*p.initial_state : nullptr;
}

void validate_gradients(const result& r, const problem& p, const std::string& where) {
  for (const auto& [name, gradient] : r.gradients) {
    const tensor* of = differentiated(p, name);
    if (of == nullptr) {
      throw format_error(where + ": tensor " + name + " is the gradient of " + name.substr(1) +
                         ", which the problem does not have; leave " + name + " out of the result");
    }
    require_shape(gradient.named(name), of->shape(), "the shape of " + name.substr(1), where);
  }
}

}  // namespace
}  // namespace detail

stage_shape shape_of_stage(std::string_view name, const problem& p, std::size_t chunk_size) {
  const stage_row* const row = find_stage(name);
  if (row == nullptr) throw domain_error("shape_of_stage: there is no stage " + std::string(name));
  const std::size_t B = p.batch(), R = p.steps(), HV = p.value_heads(), K = p.key_dim(), V = p.value_dim();
  switch (row->axes) {
    case stage_axes::gates:
      if (gates_of(p.op) == gate_axes::channels) return {{B, R, HV, K}, "[B, T*n, HV, K]"};
      return {{B, R, HV}, "[B, T*n, HV]"};
    case stage_axes::keys:
      return {{B, R, HV, K}, "[B, T*n, HV, K]"};
    case stage_axes::values:
      return {{B, R, HV, V}, "[B, T*n, HV, V]"};
    case stage_axes::pairs:
      return {{B, R, HV, chunk_size}, "[B, T*n, HV, C]"};
    case stage_axes::states:
      return {{B, chunk_count(p, chunk_size), HV, K, V}, "[B, chunks, HV, K, V]"};
    case stage_axes::input:
      if (name == "dq_hat") return {p.q.shape(), "the shape of q"};
      if (name == "dk_hat") return {p.k.shape(), "the shape of k"};
  }
  throw domain_error("shape_of_stage: " + std::string(name) + " is a gradient; take the shape of the problem's tensor " +
                     std::string(name.substr(1)));
}

std::string part_name(std::string_view name, std::size_t c) {
  return std::string(name) + (c == 0 ? "" : c == 1 ? "_lo" : "_lo" + std::to_string(c));
}

std::vector<tensor> sum_parts(const safetensors_file& file, std::string_view name) {
  std::vector<tensor> parts;
  for (std::size_t c = 0;; ++c) {
    std::optional<tensor> part = detail::optional_tensor(file, part_name(name, c));
    if (!part) return parts;
    parts.push_back(std::move(*part));
    if (c == 0) continue;
    const std::string own = file.where() + ": tensor " + parts[c].name() + ": ";
    if (parts[0].dtype() != "F64" || parts[c].dtype() != "F64") {
      throw format_error(own + "dtype is " + parts[c].dtype() + ", that of " + std::string(name) + " is " + parts[0].dtype() +
                         "; both are parts of one sum, and such parts must be F64");
    }
    if (parts[c].shape() != parts[0].shape()) {
      throw shape_error(own + "shape " + shape_text(parts[c].shape()) + " should be " + shape_text(parts[0].shape()) +
                        ", that of " + std::string(name));
    }
  }
}

std::size_t chunk_count(const problem& p, std::size_t chunk_size) {
  if (chunk_size == 0) throw domain_error("chunk_count: the chunk length is 0; give 1 row or more");
  std::size_t chunks = 0;
  for (const sequence_range& s : p.sequences()) {
    if (s.batch != 0) break;
    const std::size_t rows = s.tokens * p.num_householder;
    chunks += rows / chunk_size + (rows % chunk_size != 0 ? 1 : 0);
  }
  return chunks;
}

std::optional<tensor> result::final_state_kv() const {
  if (!final_state || state_layout == layout_kind::kv) return final_state;
  std::vector<std::size_t> shape = final_state->shape();
  const std::size_t value_dim = final_state->dim(2);
  const std::size_t key_dim = final_state->dim(3);
  std::swap(shape[2], shape[3]);
  const std::span<const std::byte> stored = final_state->bytes();
  const std::size_t width = final_state->size() == 0 ? 0 : stored.size() / final_state->size();
  const std::size_t matrix = key_dim * value_dim;
  std::vector<std::byte> transposed(stored.size());
  for (std::size_t first = 0; first < final_state->size(); first += matrix) {
    for (std::size_t i = 0; i < key_dim; ++i) {
      for (std::size_t j = 0; j < value_dim; ++j) {
        std::memcpy(transposed.data() + (first + i * value_dim + j) * width, stored.data() + (first + j * key_dim + i) * width,
                    width);
      }
    }
  }
  return tensor(final_state->element_format(), shape, transposed, final_state->name());
}

namespace {

/// Throws: as validate, but for what the initial state holds.
void validate_but_for_state(const problem& p, std::string_view where) {
  problem other = p;
  if (p.initial_state && !p.initial_state->is_integer())
    other.initial_state = tensor::from_doubles(p.initial_state->element_format(), p.initial_state->shape(),
                                               std::vector<double>(p.initial_state->size(), 0.0), "initial_state");
  validate(other, where);
}

problem parsed(const safetensors_file& file, notes_list& notes, void (*validated)(const problem&, std::string_view)) {
  detail::key_reader keys(file, problem_format, result_format);
  problem p;
  const std::optional<op_kind> op = keys.kind("op", op_named);
  if (!op) keys.fail("op", "is absent; name the recurrence, one of " + op_list());
  p.op = *op;
  p.qk_l2norm = keys.truth("qk_l2norm").value_or(false);
  if (const std::optional<double> epsilon = keys.decimal("l2norm_eps")) p.l2norm_epsilon = *epsilon;
  p.rule = keys.kind("rule", rule_named).value_or(rule_kind::euler);
  p.beta_activation = keys.kind("beta_activation", activation_named).value_or(activation_kind::none);
  p.num_householder = keys.count("num_householder").value_or(1);
  p.note = keys.text("note");
  const gate_kind gate = keys.kind("gate_activation", gate_named).value_or(gate_kind::none);
  const std::optional<double> lower_bound = keys.decimal("gate_lower_bound");
  const std::optional<double> scale = keys.decimal("scale");

  p.q = detail::required(file, "q");
  p.k = detail::required(file, "k");
  p.v = detail::required(file, "v");
  p.beta = detail::required(file, "beta");
  p.g = detail::optional_tensor(file, "g");
  p.initial_state = detail::optional_tensor(file, "initial_state");
  p.d_o = detail::optional_tensor(file, "do");
  p.d_final_state = detail::optional_tensor(file, "dfinal_state");
  p.cu_seqlens = detail::offsets_of(file);
  if (gate != gate_kind::none) {
    if (gate == gate_kind::bounded && !lower_bound)
      keys.fail("gate_lower_bound",
                "is absent; gate_activation = bounded needs it: the least log decay, a finite number below 0");
    const std::string needed = "gate_activation = " + std::string(name_of(gate)) + " needs it";
    p.raw = raw_gate{gate, detail::required(file, "g", needed), detail::required(file, "A_log", needed),
                     detail::optional_tensor(file, "dt_bias"), lower_bound.value_or(0)};
    p.g.reset();
    validated(p, file.where());
    p.g = gate_of(p, *p.raw, file.where());
  }
  validated(p, file.where());
  p.scale = scale ? *scale : default_scale(p.key_dim());
  if (!scale) {
    notes.push_back(file.where() + ": metadata key scale is absent; K^(-1/2) = " + detail::shortest(p.scale) + " is used");
  }

  constexpr std::array<std::string_view, 11> known{
      "q", "k", "v", "beta", "g", "initial_state", "cu_seqlens", "do", "dfinal_state", "A_log", "dt_bias"};
  detail::note_tensors(file, std::span<const std::string_view>(known), notes);
  for (const std::string_view name : std::span(known).last(2)) {
    if (!p.raw && file.find(name) != nullptr)
      notes.push_back(file.where() + ": tensor " + in_quotes(name) + " is ignored: gate_activation is none");
  }
  for (const auto& [key, value] : file.metadata()) {
    if (!keys.has_meaning(key)) notes.push_back(file.where() + ": metadata key " + in_quotes(key) + " is unknown; ignored");
  }
  return p;
}

}  // namespace

problem parse_problem(const safetensors_file& file, notes_list& notes) { return parsed(file, notes, &validate); }
problem parse_restored_problem(const safetensors_file& file, notes_list& notes) {
  return parsed(file, notes, &validate_but_for_state);
}

problem read_problem(const std::filesystem::path& path, notes_list& notes) {
  return parse_problem(read_safetensors(path), notes);
}

path_kind path_of(const result& r) {
  if (r.path == path_kind::chunk || (!r.path && r.chunk_size)) return path_kind::chunk;
  return path_kind::recurrent;
}

void validate(const result& r, const problem& p, std::string_view where_view) {
  const std::string where(where_view);
  detail::validate_backward_stages(r, p, where);
  if (r.o.shape() == tensor().shape() && !r.gradients.empty() && !r.final_state && r.stages.empty()) return;
  detail::require_shape(r.o.named("o"), {p.batch(), p.tokens(), p.value_heads(), p.value_dim()}, "[B, T, HV, V]", where);
  if (r.final_state) {
    const bool kv = r.state_layout == layout_kind::kv;
    detail::require_shape(
        r.final_state->named("final_state"),
        {p.sequence_count(), p.value_heads(), kv ? p.key_dim() : p.value_dim(), kv ? p.value_dim() : p.key_dim()},
        kv ? "[N, HV, K, V] with state_layout kv (if yours is [N, HV, V, K], set state_layout to vk)"
           : "[N, HV, V, K] with state_layout vk (if yours is [N, HV, K, V], set state_layout to kv)",
        where);
  }
  detail::validate_stages(r, p, where);
}

result parse_result(const safetensors_file& file, const problem& p, std::string_view problem_sha256, notes_list& notes) {
  detail::key_reader keys(file, result_format, problem_format);
  const std::string& where = file.where();
  result r;
  r.kernel = keys.text("kernel");
  r.path = keys.kind("path", path_named);
  r.state_layout = keys.kind("state_layout", layout_named).value_or(layout_kind::kv);
  r.producer = keys.text("producer");
  r.problem_sha256 = keys.text("problem_sha256");
  r.chunk_size = detail::chunk_size_of(file, keys, notes);
  if (!keys.take("problem_sha256")) {
    notes.push_back(where +
                    ": metadata key problem_sha256 is absent, so it is not checked whether this result belongs to this problem");
  } else if (r.problem_sha256 != problem_sha256) {
    keys.fail("problem_sha256", "is " + in_quotes(r.problem_sha256) + ", but the SHA-256 of the problem file is " +
                                    std::string(problem_sha256) + "; this is a result of another problem: give its problem file");
  }
  if (!r.path)
    notes.push_back(where + ": metadata key path is absent; " +
                    (r.chunk_size ? "the chunk path is assumed, as the chunk length is known"
                                  : "the recurrent path is assumed, as no chunk length is known"));
  if (r.path == path_kind::chunk && !r.chunk_size) {
    notes.push_back(where +
                    ": path is chunk, but metadata key chunk_size is absent, so it is not known where the chunks begin; add it");
  }

  for (const std::string_view name : gradient_names) {
    if (std::optional<tensor> gradient = detail::optional_tensor(file, name)) r.gradients.emplace(name, std::move(*gradient));
  }
  for (const std::string_view name : backward_stage_names) {
    if (std::optional<tensor> stage = detail::optional_tensor(file, name)) r.backward_stages.emplace(name, std::move(*stage));
  }
  std::string beside;  // what means nothing without o
  if (r.gradients.empty() || file.find("o") != nullptr) {
    r.o = detail::required(file, "o");
    r.final_state = detail::optional_tensor(file, "final_state");
    for (const std::string_view name : stage_names) {
      if (std::optional<tensor> stage = detail::optional_tensor(file, name)) r.stages.emplace(name, std::move(*stage));
    }
  } else {
    if (file.find("final_state") != nullptr) beside = "final_state";
    for (const std::string_view name : stage_names) {
      if (file.find(name) != nullptr) beside += (beside.empty() ? "" : ", ") + std::string(name);
    }
    notes.push_back(where + ": there is no o: only gradients are judged" +
                    (beside.empty() ? "" : "; ignored without o: " + beside));
  }
  std::vector<std::string> known{"o", "final_state"};
  // What `invariant` reads beside a result.
  known.insert(known.end(), state_exchange_tensors.begin(), state_exchange_tensors.end());
  for (const std::string_view key : state_exchange_keys) (void)keys.take(key);
  known.insert(known.end(), stage_names.begin(), stage_names.end());
  if (r.path == path_kind::reference) {
    for (const char* name : {"o", "final_state"}) {
      for (const tensor& part : sum_parts(file, name)) known.push_back(part.name());
    }
  }
  validate(r, p, where);

  known.insert(known.end(), gradient_names.begin(), gradient_names.end());
  if (const auto pass = keys.take("pass"); pass && *pass != "forward" && *pass != "backward" && *pass != "both") {
    keys.fail("pass", "is " + in_quotes(*pass) + "; use forward, backward or both");
  }
  known.insert(known.end(), backward_stage_names.begin(), backward_stage_names.end());
  detail::validate_gradients(r, p, where);
  if (!r.gradients.empty() && !p.has_cotangents()) {
    notes.push_back(where + ": tensor " + in_quotes(r.gradients.begin()->first) +
                    " is a gradient; to have it judged, record the do or dfinal_state of the backward pass in the problem");
  }
  detail::note_tensors(file, std::span<const std::string>(known), notes);
  for (const auto& [key, value] : file.metadata()) {
    if (keys.has_meaning(key)) continue;
    // What `oracle` writes about each tensor belongs to a reference and is carried along.
    const bool of_reference = key.starts_with("radius.") || key.starts_with("tier.") || key.starts_with("undecided.") ||
                              (key == "fallbacks" && r.path == path_kind::reference);
    if (!of_reference) notes.push_back(where + ": metadata key " + in_quotes(key) + " is unknown; ignored");
    r.metadata.emplace(key, value);
  }
  return r;
}

result read_result(const std::filesystem::path& path, const problem& p, std::string_view problem_sha256, notes_list& notes) {
  return parse_result(read_safetensors(path), p, problem_sha256, notes);
}

}  // namespace deltaproof
