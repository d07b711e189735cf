// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
#include "deltaproof/files/slice.hpp"

#include <algorithm>
#include <string>

#include "deltaproof/support/errors.hpp"
#include "support/text.hpp"

namespace deltaproof {

namespace {

/// Rows [first, first + count) of head `head` of batch `batch` of [B, rows, heads, ...], as [1, count, 1, ...].
tensor rows_of_head(const tensor& t, std::size_t batch, std::size_t first, std::size_t count, std::size_t head) {
  const std::size_t rows = t.dim(1), heads = t.dim(2);
  std::vector<std::size_t> shape = t.shape();
  std::size_t width = 1;
  for (std::size_t axis = 3; axis < shape.size(); ++axis) width *= shape[axis];
  shape[0] = 1;
  shape[1] = count;
  shape[2] = 1;
  std::vector<double> values(count * width);
  for (std::size_t i = 0; i < count; ++i)
    t.read(((batch * rows + first + i) * heads + head) * width, {values.data() + i * width, width});
  return tensor::from_doubles(t.element_format(), shape, values, t.name());
}

tensor state_of_head(const tensor& t, std::size_t sequence, std::size_t head) {
  const std::size_t heads = t.dim(1), entries = t.dim(2) * t.dim(3);
  std::vector<double> values(entries);
  t.read((sequence * heads + head) * entries, values);
  return tensor::from_doubles(t.element_format(), {1, 1, t.dim(2), t.dim(3)}, values, t.name());
}

sequence_range range_of(const problem& p, const head_slice& at) {
  const auto sequences = p.sequences();
  if (at.sequence >= sequences.size() || at.value_head >= p.value_heads() || at.tokens > sequences[at.sequence].tokens) {
    throw shape_error(
        "slice: sequence " + std::to_string(at.sequence) + ", head " + std::to_string(at.value_head) + ", " +
        std::to_string(at.tokens) + " tokens were asked for (sequences and heads are counted from 0); the problem has " +
        detail::counted(sequences.size(), "sequence") + " and " + detail::counted(p.value_heads(), "head") +
        (at.sequence < sequences.size() ? ", and this sequence has " + detail::counted(sequences[at.sequence].tokens, "token")
                                        : ""));
  }
  return sequences[at.sequence];
}

}  // namespace

problem slice(const problem& p, const head_slice& at) {
  const sequence_range range = range_of(p, at);
  const std::size_t n = p.num_householder, key_head = p.key_head(at.value_head);
  problem out = p;
  out.q = rows_of_head(p.q, range.batch, range.first_token, at.tokens, key_head);
  out.k = rows_of_head(p.k, range.batch, range.first_token * n, at.tokens * n, key_head);
  out.v = rows_of_head(p.v, range.batch, range.first_token * n, at.tokens * n, at.value_head);
  out.beta = rows_of_head(p.beta, range.batch, range.first_token * n, at.tokens * n, at.value_head);
  if (p.g) out.g = rows_of_head(*p.g, range.batch, range.first_token, at.tokens, at.value_head);
  if (p.initial_state) out.initial_state = state_of_head(*p.initial_state, at.sequence, at.value_head);
  out.raw.reset();
  out.cu_seqlens.clear();
  out.d_o.reset();
  out.d_final_state.reset();
  return out;
}

result slice(const result& r, const problem& p, const head_slice& at) {
  const sequence_range range = range_of(p, at);
  const std::size_t n = p.num_householder;
  result out = r;
  out.problem_sha256.clear();
  out.o = rows_of_head(r.o, range.batch, range.first_token, at.tokens, at.value_head);
  out.final_state.reset();
  if (r.final_state && at.tokens == range.tokens) out.final_state = state_of_head(*r.final_state, at.sequence, at.value_head);
  out.stages.clear();
  out.gradients.clear();
  out.backward_stages.clear();
  for (const auto& [name, t] : r.stages) {
    if (name != "h") {
      out.stages.emplace(name, rows_of_head(t, range.batch, range.first_token * n, at.tokens * n, at.value_head));
      continue;
    }
    const std::size_t C = r.chunk_size.value_or(1);
    std::size_t first = 0;
    const auto sequences = p.sequences();
    for (std::size_t s = 0; s < at.sequence; ++s) {
      if (sequences[s].batch == range.batch) first += (sequences[s].tokens * n + C - 1) / C;
    }
    out.stages.emplace(name, rows_of_head(t, range.batch, first, (at.tokens * n + C - 1) / C, at.value_head));
  }
  return out;
}

}  // namespace deltaproof
