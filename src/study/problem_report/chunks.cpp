// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
#include <algorithm>
#include <cmath>

#include "deltaproof/algebra/growth.hpp"
#include "deltaproof/scan/chunkwise.hpp"
#include "study/problem_report/parts.hpp"

namespace deltaproof::problem_report_detail {
namespace {

/// What one chunk's inverse is like.
struct chunk_values {
  double condition = 1;  ///< |I + L|_1 |(I + L)^-1|_1
  double entry = 1;      ///< largest of the inverse
  double blocks = 1;     ///< largest intermediate of sums of powers on 16 x 16 diagonal blocks, then merges
  double powers = 1;     ///< of sums of powers on the whole chunk
};

double one_norm(const matrix<double>& m) {
  double most = 0;
  for (std::size_t c = 0; c < m.cols(); ++c) {
    double sum = 0;
    for (std::size_t r = 0; r < m.rows(); ++r) sum += std::fabs(m(r, c));
    most = std::max(most, sum);
  }
  return most;
}

double formed_by(std::string_view method, const matrix<double>& lower) {
  largest_intermediate seen;
  seen("result", run_inverse<plain<double>>(inverse_named(method), lower, seen));
  return seen.found().largest;
}

chunk_values look_at(const matrix<double>& A, std::size_t first, std::size_t rows) {
  matrix<double> lower(rows, rows, 0.0), sum(rows, rows, 0.0);
  for (std::size_t i = 0; i < rows; ++i) {
    sum(i, i) = 1;
    for (std::size_t j = 0; j < i; ++j) sum(i, j) = lower(i, j) = A(first + i, j);
  }
  largest_intermediate ignored;
  const auto inverse = run_inverse<plain<double>>(inverse_named("forward"), lower, ignored);
  chunk_values v;
  v.condition = one_norm(sum) * one_norm(inverse);
  for (std::size_t i = 0; i < inverse.size(); ++i) v.entry = std::max(v.entry, std::fabs(inverse.data()[i]));
  v.blocks = formed_by("neumann16+block", lower);
  v.powers = formed_by("neumann", lower);
  return v;
}

void keep(chunk_values& most, const chunk_values& v) {
  for (auto one : {&chunk_values::condition, &chunk_values::entry, &chunk_values::blocks, &chunk_values::powers})
    most.*one = std::max(most.*one, v.*one);
}

}  // namespace

void add_chunks(const subject& of, results& to) {
  std::vector<chunk_values> worst;  // by chunk of a sequence, over heads
  std::vector<chunk_values> of_head(of.heads.size());
  std::size_t chunks = 0;
  for (std::size_t i = 0; i < of.heads.size(); ++i) {
    if (of.options.run.stopped()) {
      to.unfinished.push_back({"Inverses of chunks", 0, 0, "interrupted."});
      return;
    }
    of.options.run.progress("inverses", static_cast<double>(i) / static_cast<double>(of.heads.size()));
    sequence<double> s = of.heads[i].in.scan;
    if (s.tokens == 0) continue;
    // Only A is looked at: one column of v is enough.
    s.value_dim = 1;
    s.v.assign(s.rows(), 0.0);
    s.initial_state = matrix<double>(s.key_dim, 1);
    const auto A = chunkwise<plain<double>>(s, of.chunk, inverse_named("forward")).A;
    for (std::size_t first = 0, c = 0; first < A.rows(); first += of.chunk, ++c) {
      const chunk_values v = look_at(A, first, std::min(of.chunk, A.rows() - first));
      if (c == worst.size()) worst.emplace_back();
      keep(worst[c], v);
      keep(of_head[i], v);
      ++chunks;
    }
  }
  if (chunks == 0) return;
  chunk_values all;
  frame by_chunk({"chunk", "condition", "entry", "blocks", "powers"});
  for (const chunk_values& v : worst) {
    keep(all, v);
    by_chunk.add({by_chunk.size(), v.condition, v.entry, v.blocks, v.powers});
  }
  to.table("chunks", std::move(by_chunk));
  frame by_head({"sequence", "head", "condition", "entry", "blocks", "powers"});
  for (std::size_t i = 0; i < of.heads.size() && i < listed; ++i) {
    const chunk_values& v = of_head[i];
    by_head.add({of.heads[i].sequence, of.heads[i].head, v.condition, v.entry, v.blocks, v.powers});
  }
  to.table("inverses", std::move(by_head));
  const double most = largest(fp16);
  to.values("chunk-inverses", {{"chunks", chunks},
                               {"condition", all.condition},
                               {"largest_entry", all.entry},
                               {"powers_on_blocks", all.blocks},
                               {"powers_on_chunks", all.powers},
                               {"chunk", of.chunk},
                               {"near_the_end_of_fp16", all.powers > most / 100},
                               {"beyond_fp16", all.powers <= most  ? "neither"
                                               : all.blocks > most ? "both"
                                                                   : "chunks"}});
}

}  // namespace deltaproof::problem_report_detail
