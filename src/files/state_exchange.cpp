// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
#include "deltaproof/files/state_exchange.hpp"

#include <charconv>
#include <vector>

#include "support/text.hpp"

namespace deltaproof {
namespace {

template <class Number>
std::optional<Number> number_of(const safetensors_file& file, std::string_view key, const char* what, bool (*valid)(Number)) {
  const std::optional<std::string_view> text = file.metadata(key);
  if (!text) return std::nullopt;
  Number x{};
  const auto [end, error] = std::from_chars(text->data(), text->data() + text->size(), x);
  if (error != std::errc() || end != text->data() + text->size() || !valid(x))
    throw format_error(file.where() + ": metadata key " + std::string(key) + " is " + in_quotes(*text) + "; use " + what);
  return x;
}

template <class Read>
auto in_file(const safetensors_file& file, const char* key, const Read& read) {
  try {
    return read();
  } catch (const format_error& e) {
    throw format_error(file.where() + ": metadata key " + key + ": " + e.what());
  }
}

std::vector<std::size_t> shape_of(std::string_view name, const problem& p, std::size_t every) {
  const std::size_t rows = p.steps(), HV = p.value_heads(), K = p.key_dim(), V = p.value_dim(), N = p.sequence_count();
  if (name == "ring_k") return {p.batch(), rows, p.key_heads(), K};
  if (name == "ring_u") return {p.batch(), rows, HV, V};
  if (name == "ring_state") return {p.batch(), chunk_count(p, every * p.num_householder), HV, K, V};
  if (name == "rank_transition") return {N, HV, K, K};
  if (name == "rank_state") return {N, HV, K, V};
  return p.g ? p.g->shape() : std::vector<std::size_t>{};
}

}  // namespace

const tensor* state_exchange::find(std::string_view name) const {
  const auto found = tensors.find(name);
  return found == tensors.end() ? nullptr : &found->second;
}

state_exchange parse_state_exchange(const safetensors_file& file, const problem& p) {
  state_exchange x;
  x.flush_every = number_of<std::size_t>(file, "flush_every",
                                         "a whole number of tokens, 1 or more, or leave the key out if the kernel has no ring",
                                         [](std::size_t n) { return n > 0; });
  x.drop_below =
      number_of<double>(file, "drop_below", "a factor above 0 and at most 1, or leave the key out if nothing is left out",
                        [](double f) { return f > 0 && f <= 1; });
  if (const auto fold = file.metadata("fold")) x.fold = in_file(file, "fold", [&] { return fold_named(*fold); });
  if (const auto operand = file.metadata("fold_operand"))
    x.fold_operand = in_file(file, "fold_operand", [&] { return format_named(*operand); });
  for (const std::string_view name : state_exchange_tensors) {
    const safetensors_entry* entry = file.find(name);
    if (entry == nullptr) continue;
    tensor t = file.load(*entry);
    const std::string own = file.where() + ": tensor " + std::string(name) + ": ";
    if (t.is_integer())
      throw format_error(own + "dtype " + t.dtype() + " is not a floating-point format; store it as BF16, F16, F32 or F64");
    if (name == "ring_g" && !p.g)
      throw format_error(own + "the problem has no g; remove ring_g from the result, or add g to the problem");
    if (name == "ring_state" && !x.flush_every)
      throw format_error(own +
                         "its shape depends on the number of tokens between two flushes, and the metadata does not state it; add "
                         "flush_every to the metadata");
    const std::vector<std::size_t> shape = shape_of(name, p, x.flush_every.value_or(1));
    if (t.shape() != shape)
      throw shape_error(own + "shape " + shape_text(t.shape()) + " should be " + shape_text(shape) +
                        "; see docs/exchange-format.md");
    x.tensors.emplace(name, std::move(t));
  }
  return x;
}

safetensors_metadata state_exchange_metadata(const state_exchange& x) {
  safetensors_metadata out;
  if (x.flush_every) out.emplace_back("flush_every", std::to_string(*x.flush_every));
  if (x.find("rank_state") != nullptr || x.find("rank_transition") != nullptr) {
    out.emplace_back("fold", std::string(name_of(x.fold)));
    out.emplace_back("fold_operand", std::string(name_of(x.fold_operand)));
  }
  if (x.drop_below) out.emplace_back("drop_below", detail::shortest(*x.drop_below));
  return out;
}

}  // namespace deltaproof
