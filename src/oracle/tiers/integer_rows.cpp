// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT

#include "oracle/tiers/integer_rows.hpp"

#include <algorithm>
#include <cmath>

#include "oracle/tiers/integer_engine_steps.hpp"

namespace deltaproof::tiers {

using namespace integer_detail;

integer_outcome run_integers(const problem& p, std::size_t sequence_index, std::size_t value_head, const integer_request& request,
                             const integer_sink& output, const integer_sink& state) {
  const integer_lowering from(p, sequence_index, value_head, request.bits);
  const engine run(p, from, request, output, state);
  const std::size_t rows = request.columns.size(), T = from.tokens();
  integer_outcome out;
  std::vector<row_state> states(rows);
  for (std::size_t r = 0; r < rows; ++r) run.begin(states[r], request.columns[r]);
  std::size_t last = 0;
  for (const std::size_t until : request.until) last = std::max(last, std::min(until, T));
  integer_block block;
  std::vector<std::size_t> reached(rows, 0);
  for (std::size_t first = 0; first < last; first += block_tokens) {
    if (request.stop && request.stop->load(std::memory_order_relaxed)) return out;
    const std::size_t count = std::min(block_tokens, last - first);
    if (request.before) request.before(first, count);
    const bool all_left = std::all_of(states.begin(), states.end(), [](const row_state& row) { return row.left; });
    if (all_left && !request.after) break;
    if (all_left) {
      request.after(first, count, reached);
      continue;
    }
    from.block(first, count, request.threads, block);
    out.wide += block.wide;
    out.rounded += block.rounded;
    parallel_for(rows, request.threads, [&](std::size_t r) {
      if (states[r].left || states[r].reached >= request.until[r]) return;
      scratch s;
      for (std::size_t i = 0; i < block.tokens.size(); ++i) {
        if (!run.token(states[r], r, block, i, s)) return;
      }
      if (block.tokens.size() < count) states[r].left = true;
    });
    for (std::size_t r = 0; r < rows; ++r) reached[r] = states[r].reached;
    if (request.after) request.after(first, count, reached);
  }
  scratch s;
  for (std::size_t r = 0; r < rows; ++r) {
    row_state& row = states[r];
    if (!row.left && request.until[r] > T && row.reached == T) run.finish(row, r, s);
    out.reached.push_back(row.reached);
    out.within = out.within && row.within;
    out.moved += row.moved;
  }
  return out;
}

double exact_cost(const problem& p, std::size_t sequence_index, std::size_t value_head, const std::vector<std::size_t>& until,
                  double size, double limit) {
  const integer_lowering from(p, sequence_index, value_head, 0);
  std::vector<std::size_t> ends;
  for (const std::size_t row : until) ends.push_back(std::min(row, from.tokens()));
  std::sort(ends.begin(), ends.end());
  ends.erase(std::unique(ends.begin(), ends.end()), ends.end());
  const std::vector<double> sum = from.exact_limbs(ends, size, static_cast<double>(exact_bits_cap), limit);
  double cost = 0;
  for (const std::size_t row : until) {
    const auto end =
        static_cast<std::size_t>(std::lower_bound(ends.begin(), ends.end(), std::min(row, from.tokens())) - ends.begin());
    cost += end < sum.size() ? sum[end] : infinity;
  }
  return cost;
}

double fixed_cost(const std::vector<std::size_t>& until, int bits) {
  const int limbs = bits / 64 + 1;
  double cost = 0;
  for (const std::size_t last : until) cost += static_cast<double>(last) * limbs;
  return cost;
}

}  // namespace deltaproof::tiers
