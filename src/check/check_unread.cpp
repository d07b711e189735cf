// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
//
// What a kernel left in entries of its stages that nobody reads. No verdict depends on it unless it is asked for: a mask that is
// right today leaves garbage that the next kernel reads.
#include <cmath>

#include "check/check_parts.hpp"
#include "support/text.hpp"

namespace deltaproof::check_detail {
namespace {

/// The first column of a row that nobody reads: A is strictly lower, Ai and Aqk are read up to their diagonal.
std::size_t first_unread(const std::string& stage, std::size_t row) { return row + (stage == "A" ? 0 : 1); }

void look(const problem& p, const tensor& stage, unread_entries& out) {
  const std::size_t columns = stage.shape()[3], heads = p.value_heads(), n = p.num_householder, rows = p.tokens() * n;
  std::vector<double> row(columns);
  bool first_is_finite = true;
  const auto sequences = p.sequences();
  for (std::size_t s = 0; s < sequences.size(); ++s) {
    const sequence_range& range = sequences[s];
    for (std::size_t h = 0; h < heads; ++h) {
      for (std::size_t i = 0; i < range.tokens * n; ++i) {
        const std::size_t at = (range.batch * rows + range.first_token * n + i) * heads + h;
        stage.read(at * columns, row);
        for (std::size_t j = first_unread(out.stage, i % columns); j < columns; ++j) {
          ++out.elements;
          if (row[j] == 0) continue;
          ++out.nonzero;
          const bool finite = std::isfinite(row[j]);
          out.nonfinite += finite ? 0 : 1;
          if (out.first && (finite || !first_is_finite)) continue;
          out.first = stage_place{range.batch, s, h, i / columns, i % columns, j, row[j], 0, 0, 0};
          first_is_finite = finite;
        }
      }
    }
  }
}

}  // namespace

std::vector<unread_entries> find_unread(const problem& p, const result& r) {
  std::vector<unread_entries> out;
  for (const stage_row& row : stage_table) {
    if (row.part != stage_part::stages || row.axes != stage_axes::pairs) continue;
    const std::string name(row.name);
    const auto stage = r.stages.find(name);
    if (stage == r.stages.end() || stage->second.shape().size() != 4 || stage->second.shape()[3] == 0) continue;
    unread_entries found{.stage = name, .first = {}};
    look(p, stage->second, found);
    if (found.nonzero > 0) out.push_back(std::move(found));
  }
  return out;
}

std::string describe(const unread_entries& x) {
  const stage_place& at = *x.first;
  return std::to_string(x.nonzero) + " of " + std::to_string(x.elements) + " entries of " + x.stage +
         " that no kernel reads are not 0" + (x.nonfinite > 0 ? ", " + std::to_string(x.nonfinite) + " of them not finite" : "") +
         "; the first, sequence " + std::to_string(at.sequence) + ", head " + std::to_string(at.head) + ", chunk " +
         std::to_string(at.chunk) + ", row " + std::to_string(at.row) + ", column " + std::to_string(at.element) + ", is " +
         detail::general(at.got, 4);
}

}  // namespace deltaproof::check_detail
