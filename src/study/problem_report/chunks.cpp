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

/// `worst`: by chunk of a sequence, over heads; `all`: over these.
void add_figure(const std::vector<chunk_values>& worst, const chunk_values& all, report& to) {
  const double most = largest(fp16);
  series entry{"entries of the inverse", {}, {}}, blocks{"powers on 16-row blocks", {}, {}},
      powers{"powers on the chunk", {}, {}}, condition{"condition of I + L", {}, {}};
  for (std::size_t c = 0; c < worst.size(); ++c) {
    for (auto* line : {&entry, &blocks, &powers, &condition}) line->x.push_back(static_cast<double>(c));
    entry.y.push_back(worst[c].entry);
    blocks.y.push_back(worst[c].blocks);
    powers.y.push_back(worst[c].powers);
    condition.y.push_back(worst[c].condition);
  }
  if (worst.size() == 1) {
    for (auto* line : {&entry, &blocks, &powers, &condition}) line->style = series_style::points;
  }
  panel p{"",
          {"chunk of its sequence"},
          {"largest magnitude over heads", axis_scale::logarithmic},
          {entry, blocks, powers, condition}};
  if (all.powers > most / 100) p.marks.push_back({mark_direction::horizontal, most, "fp16 ends"});
  to.figures.push_back({"chunk-inverses",
                        "Intermediates of inverting each chunk",
                        "Entries of the inverse stay small; the intermediates of algorithms that form powers of L may not.",
                        "Four curves over the chunks: largest entry of the inverse, largest intermediate of two power "
                        "algorithms, condition number.",
                        {p}});
}

}  // namespace

void add_chunks(const subject& of, report& to) {
  std::vector<chunk_values> worst;  // by chunk of a sequence, over heads
  std::vector<chunk_values> of_head(of.heads.size());
  std::size_t chunks = 0;
  const auto keep = [](chunk_values& most, const chunk_values& v) {
    most.condition = std::max(most.condition, v.condition);
    most.entry = std::max(most.entry, v.entry);
    most.blocks = std::max(most.blocks, v.blocks);
    most.powers = std::max(most.powers, v.powers);
  };
  for (std::size_t i = 0; i < of.heads.size(); ++i) {
    if (of.options.run.stopped()) {
      to.unfinished.push_back("Inverses of chunks: interrupted.");
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
  for (const chunk_values& v : worst) keep(all, v);
  table t{"chunk-inverses",
          "Inverses of the chunks of each head, the worst chunk",
          {"sequence",
           "head",
           {"condition of I + L", 3},
           {"largest entry of the inverse", 4},
           {"largest power of L on 16-row blocks", 4},
           {"largest power of L on the chunk", 4}},
          {}};
  for (std::size_t i = 0; i < of.heads.size() && i < 64; ++i) {
    t.rows.push_back(
        {of.heads[i].sequence, of.heads[i].head, of_head[i].condition, of_head[i].entry, of_head[i].blocks, of_head[i].powers});
  }
  if (of.heads.size() > 64) t.note = "The first 64 of " + count(of.heads.size()) + " heads.";
  to.tables.push_back(std::move(t));
  finding f{"chunk-inverses",
            "",
            evidence::measured(),
            {},
            "A of each chunk of " + std::to_string(of.chunk) +
                " rows, inverted in fp64 by each algorithm, every intermediate looked at"};
  const double most = largest(fp16);
  f.statement = "Inverses of " + count(chunks) + " chunks of " + std::to_string(of.chunk) + " rows have entries up to " +
                number(all.entry, 3) +
                "; a kernel that inverts by sums of powers of A (Neumann) would form intermediates up to " +
                number(all.blocks, 3) + " on 16-row blocks and " + number(all.powers, 3) + " on whole chunks" +
                (all.powers > most ? all.blocks > most ? ", both beyond fp16." : ", the latter beyond fp16." : ".");
  f.values = {{"chunks", chunks},
              {"condition", all.condition},
              {"largest_entry", all.entry},
              {"powers_on_blocks", all.blocks},
              {"powers_on_chunks", all.powers},
              {"chunk", of.chunk}};
  to.findings.push_back(std::move(f));
  add_figure(worst, all, to);
}

}  // namespace deltaproof::problem_report_detail
