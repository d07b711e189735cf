// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
//
// Chunk kernels: lengths of a chunk, inverses of I + A and their formats. What the inverse forms on the first chunks says which
// of them no kernel should run, before any is.
#include <algorithm>
#include <cmath>

#include "check/advise_parts.hpp"
#include "deltaproof/referee/inverse_cost.hpp"

namespace deltaproof::advise_detail {

namespace {

struct inverse_choice {
  const char* name;
  inverse_method method;
  const char* operand;
  const char* accumulate;
  const char* merge_operand;  ///< null where nothing is merged
};
constexpr inverse_choice inverses[] = {
    {"substitution-16-fp32", {diagonal_kind::forward, 16, merge_kind::block}, "fp32", "fp32", "fp32"},
    {"substitution-16-tf32-merges", {diagonal_kind::forward, 16, merge_kind::block}, "fp32", "fp32", "tf32"},
    {"substitution-16-bf16-merges", {diagonal_kind::forward, 16, merge_kind::block}, "fp32", "fp32", "bf16"},
    {"neumann-fp32", {diagonal_kind::neumann, 0, merge_kind::block}, "fp32", "fp32", nullptr},
    {"neumann-tf32", {diagonal_kind::neumann, 0, merge_kind::block}, "tf32", "fp32", nullptr},
    {"neumann-fp16", {diagonal_kind::neumann, 0, merge_kind::block}, "fp16", "fp16", nullptr},
    {"neumann-bf16", {diagonal_kind::neumann, 0, merge_kind::block}, "bf16", "fp32", nullptr},
    {"neumann-16-fp16", {diagonal_kind::neumann, 16, merge_kind::block}, "fp16", "fp32", "fp16"},
};
constexpr std::size_t lengths[] = {16, 32, 64, 128};

/// Sections [[when]] without the lines that set a key of the inverse, and without those that then set nothing or speak of chunks.
std::string without_exceptions(std::string text) {
  for (std::size_t at = text.find("[[when]]\n"); at != std::string::npos; at = text.find("[[when]]\n", at)) {
    const std::size_t end = std::min(text.find("\n[", at), text.size() - 1) + 1;
    const std::string section = text.substr(at, end - at);
    std::string kept;
    bool sets = false, of_chunks = false;
    for (std::size_t line = 0; line < section.size();) {
      const std::size_t next = std::min(section.find('\n', line), section.size() - 1) + 1;
      const std::string one = section.substr(line, next - line);
      of_chunks = of_chunks || one.starts_with("chunk = ");
      if (!one.starts_with("inverse.")) kept += one;
      sets = sets || (one.find('.') != std::string::npos && one.find('=') != std::string::npos && !one.starts_with("inverse.") &&
                      !one.starts_with("#"));
      line = next;
    }
    if (!sets || of_chunks) kept.clear();
    text.replace(at, end - at, kept);
    at += kept.size();
  }
  return text;
}

std::string quoted_word(const std::string& word) { return "\"" + word + "\""; }

std::string plan_of(const std::string& base, const std::string& name, const inverse_choice& i, std::size_t chunk) {
  const bool merged = i.method.block > 0 && i.method.block < chunk;
  inverse_method method = i.method;
  if (!merged) method.block = 0;
  std::string text = with_key(without_exceptions(base), "", "name", "\"" + name + "\"");
  text = with_key(text, "", "chunk", std::to_string(chunk));
  text = with_key(text, "inverse", "method", quoted_word(name_of(method)));
  text = with_key(text, "inverse", "operand", quoted_word(i.operand));
  text = with_key(text, "inverse", "accumulate", quoted_word(i.accumulate));
  text = with_key(text, "inverse", "merge_operand", merged ? quoted_word(i.merge_operand) : "");
  text = with_key(text, "inverse", "merge_accumulate", merged ? "\"fp32\"" : "");
  if (!merged) text = with_key(text, "inverse", "association", "");
  if (text.find("\ntf32 = ") == std::string::npos) text = with_key(text, "hardware", "tf32", "[\"rz\", \"rna\"]");
  return text;
}

/// Multiply-adds a token, those of wider operands counted by their bits / 16: the products of a chunk as whole tiles, the inverse
/// as its method makes it.
double operations_of(const plan_variant& v, double K, double V) {
  const auto weight = [](const format& f) { return f.storage_bits / 16.0; };
  const auto C = static_cast<double>(v.chunk),
             block = static_cast<double>(v.inverse.method.block == 0 ? v.chunk : v.inverse.method.block);
  const double blocks = C / block;
  double inverse = v.inverse.method.diagonal == diagonal_kind::forward
                       ? block * block / 6 * weight(v.inverse.operand.to)
                       : 2 * std::max(0.0, std::log2(block) - 1) * block * block * weight(v.inverse.operand.to);
  // A merge of blocks m apart is a sum of m products and one more.
  for (double apart = 1; apart < blocks; ++apart)
    inverse += (blocks - apart) * (apart + 1) * block * block * block / C * weight(v.inverse.merge_operand.to);
  return C * K * weight(v.A.operand.to) + inverse + C * V * weight(v.u.operand.to) + C * K * weight(v.w.operand.to) +
         K * V * weight(v.state.store.to) + K * V * weight(v.v_new.update_operand.to) +
         (K * V + C * K + C * V) * weight(v.o.operand.to);
}

/// What a chunk kernel writes and reads back a token, besides its inputs and o: Ai, w, u, v_new and its share of h.
double bytes_of(const plan_variant& v, double K, double V) {
  const auto C = static_cast<double>(v.chunk);
  const double bits = C * v.inverse.store.storage_bits + K * v.w.store.storage_bits + V * v.u.store.storage_bits +
                      V * v.v_new.store.storage_bits + K * V / C * v.state.store.to.storage_bits;
  return 2 * bits / 8;
}

}  // namespace

advised_kind advise_chunks(const problem& p, const looked_at& head, const std::string& base, const advise_options& options) {
  advised_kind out;
  out.kind = "chunk";
  out.base = base;
  const std::string text = text_of_plan(base);
  const plan declared = parse_plan(text, base);
  const std::size_t own_chunk = declared.chunk.empty() ? 64 : declared.chunk.back();
  const plan_variant own = variant_of(text, p, path_kind::chunk, own_chunk);
  const auto K = static_cast<double>(head.all().key_dim()), V = static_cast<double>(head.all().value_dim());
  set_limit(head, own, options, out);
  out.unchanged.bytes = bytes_of(own, K, V);
  out.unchanged.operations = operations_of(own, K, V);
  std::vector<candidate> all;
  for (const std::size_t chunk : lengths) {
    if (chunk > head.all().rows()) continue;
    for (const inverse_choice& i : inverses) {
      const bool merged = i.method.block > 0 && i.method.block < chunk;
      if (i.method.block >= chunk && std::string_view(i.name) != "substitution-16-fp32")
        continue;  // the whole chunk has its own rows
      candidate c;
      c.choice.name = "chunk-" + std::to_string(chunk) + "-" + i.name;
      c.choice.plan = plan_of(text, c.choice.name, i, chunk);
      const plan_variant v = variant_of(c.choice.plan, p, path_kind::chunk, chunk);
      c.choice.says = "chunks of " + std::to_string(chunk) + ", inverse " + name_of(v.inverse.method) + " in " + i.operand +
                      (merged ? ", merged in " + std::string(i.merge_operand) : "");
      c.choice.bytes = bytes_of(v, K, V);
      c.choice.operations = operations_of(v, K, V);
      const inverse_cost formed = cost_of_inverse(first_tokens(head.all(), std::min(head.all().tokens(), 8 * chunk)), v);
      if (formed.refused()) c.bound = std::numeric_limits<double>::infinity();
      c.run = [v](const head_input& in) { return emulate_head(in, v); };
      all.push_back(std::move(c));
    }
  }
  search(head, std::move(all), options, out);
  return out;
}

}  // namespace deltaproof::advise_detail
