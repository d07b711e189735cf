// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT

#include "oracle/solve/row_by_row.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <utility>

#include "oracle/solve/fresh.hpp"
#include "support/parallel.hpp"

namespace deltaproof {

double largest_of(const head_part& part, std::size_t count) {
  double most = 0;
  for (std::size_t i = 0; i < count; ++i) most = std::max(most, std::fabs(part.value[i]));
  return most;
}

void open_outputs::keep(std::size_t first, std::size_t count, std::size_t open, std::size_t base, const rounded_part& rounded) {
  chunk& c = chunks_[first / chunk_tokens];
  const std::size_t n = count * cols_;
  c.all = open == n;
  if (c.all || open == 0) {
    c.bits = {};
    return;
  }
  c.bits.assign((n + 63) / 64, 0);
  for (std::size_t i = 0; i < n; ++i) c.bits[i / 64] |= std::uint64_t{rounded.open(base + i) ? 1U : 0U} << (i % 64);
}

row_by_row::row_by_row(const question& q, std::size_t tokens, std::size_t keys, std::size_t cols, unsigned threads,
                       std::size_t block_tokens, chunk_sink sink)
    : q_{q},
      tokens_{tokens},
      keys_{keys},
      cols_{cols},
      block_tokens_{block_tokens},
      sink_{std::move(sink)},
      streams_{static_cast<bool>(sink_)},
      open_outputs_{sink_ ? tokens : 0, cols} {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  open_.resize(cols_);
  std::iota(open_.begin(), open_.end(), std::size_t{0});
  until_.assign(cols_, tokens_ + 1);
  bounded_.assign(cols_, 0);
  most_.assign(cols_, 0);
  out_.state.value.assign(keys_ * cols_, nan);
  out_.state.radius.assign(keys_ * cols_, infinity);
  if (!sink_) fill_both(out_.o, tokens_ * cols_, threads);
  if (q.round_output && !sink_) out_.rounded_o.reset(out_.o.value.size(), q.parts);
  if (q.round_state) out_.rounded_state.reset(out_.state.value.size(), q.parts);
  open_o_ = tokens_ * cols_;
  open_state_ = keys_ * cols_;
}

bool row_by_row::all_bounded() const {
  return std::all_of(bounded_.begin(), bounded_.end(), [](std::uint8_t b) { return b != 0; });
}

double row_by_row::largest() const {
  if (sink_) return *std::max_element(most_.begin(), most_.end());
  return std::max(largest_of(out_.o, out_.o.value.size()), largest_of(out_.state, out_.state.value.size()));
}

void row_by_row::begin_pass() {
  left_.assign(open_.size(), {});
  pass_most_.assign(open_.size(), -1.0);
}

void row_by_row::begin_block(std::size_t first, std::size_t count) {
  first_ = first;
  count_ = count;
  if (!sink_) return;
  // Nothing is known of the block but which elements are closed: those must not look open.
  base_ = first;
  const std::size_t n = count * cols_;
  chunk_open_.assign((count + chunk_tokens - 1) / chunk_tokens, 0);
  out_.o.value.resize(n);
  out_.o.radius.assign(n, infinity);
  for (auto& low : out_.o.low) low.resize(n);
  out_.rounded_o.reset(n, q_.parts);
  std::vector<double>& last = out_.rounded_o.low.empty() ? out_.rounded_o.value : out_.rounded_o.low.back();
  for (std::size_t from = 0; from < count; from += chunk_tokens) {
    const auto open = open_outputs_.of(first + from);
    double* closed = last.data() + from * cols_;
    const std::size_t size = std::min(chunk_tokens, count - from) * cols_;
    if (open && open->empty()) std::fill_n(closed, size, 0.0);
    // This pass may end within the chunk, the one before behind it.
    for (std::size_t w = 0; open && w < open->size() && 64 * w < size; ++w) {
      const std::uint64_t word = (*open)[w];
      const std::size_t many = std::min<std::size_t>(64, size - 64 * w);
      for (std::size_t i = 0; i < many; ++i) closed[64 * w + i] = word == 0 || (word >> i & 1) == 0 ? 0.0 : closed[64 * w + i];
    }
  }
}

bool row_by_row::adopt(const tiers::tier_rows& rows, std::size_t from) {
  const bool ends = first_ + count_ == tokens_;
  std::vector<panel> panels((rows.rows + 7) / 8);
  for (std::size_t r = 0; r < rows.rows; ++r) {
    if (rows.valid[r] < count_ || (ends && rows.left[r] != 0)) {
      adopt_part(rows, r, from + r);
      continue;
    }
    panel& p = panels[r / 8];
    p.lane[p.count] = r % 8;
    p.column[p.count++] = open_[from + r];
  }
  for (panel& p : panels) {
    p.whole = p.count == 8;
    for (std::size_t n = 1; n < p.count; ++n) p.whole = p.whole && p.column[n] == p.column[0] + n;
  }
  // Token by token: what is written then lies together, and each page and line is touched once.
  double radius[8];
  for (std::size_t t = 0; t < count_; ++t) {
    for (std::size_t n = 0; n < panels.size(); ++n) {
      const std::size_t at = tiers::tier_rows::panel(t, 8 * n, count_);
      rows.radii(t, 8 * n, radius);
      panels[n].put(out_.o, t * cols_, &rows.o[at], rows.o_low.empty() ? nullptr : &rows.o_low[at], radius, q_.range.output);
    }
  }
  for (std::size_t j = 0; j < keys_ && ends; ++j) {
    for (std::size_t n = 0; n < panels.size(); ++n) {
      const std::size_t at = tiers::tier_rows::panel(j, 8 * n, keys_);
      const double* low = rows.final_state_low.empty() ? nullptr : &rows.final_state_low[at];
      std::copy_n(&rows.state_radius[8 * n], 8, radius);
      panels[n].put(out_.state, j * cols_, &rows.final_state[at], low, radius, std::nullopt);
    }
  }
  bool all_inside = true;
  for (std::size_t n = 0; n < panels.size(); ++n) {
    const panel& p = panels[n];
    for (std::size_t i = 0; i < p.count; ++i) {
      const bool inside = p.outside[i] == 0 && (!ends || rows.largest_norm[8 * n + p.lane[i]] <= q_.range.state);
      if (inside && ends) bounded_[p.column[i]] = 1;
      all_inside = all_inside && inside;
    }
  }
  if (!sink_) return all_inside;
  // Magnitudes, as the block will be forgotten.
  std::vector<std::size_t> row, column;
  for (std::size_t n = 0; n < panels.size(); ++n) {
    for (std::size_t i = 0; i < panels[n].count; ++i) {
      row.push_back(from + 8 * n + panels[n].lane[i]);
      column.push_back(panels[n].column[i]);
    }
  }
  std::vector<double> most(row.size(), 0.0);
  const auto look = [&](const double* x) {
    for (std::size_t i = 0; i < most.size(); ++i) most[i] = std::max(most[i], std::fabs(x[column[i]]));
  };
  for (std::size_t t = 0; t < count_; ++t) look(out_.o.value.data() + t * cols_);
  for (std::size_t j = 0; j < keys_ && ends; ++j) look(out_.state.value.data() + j * cols_);
  for (std::size_t i = 0; i < row.size(); ++i) pass_most_[row[i]] = std::max(pass_most_[row[i]], most[i]);
  return all_inside;
}

void row_by_row::adopt_part(const tiers::tier_rows& rows, std::size_t row, std::size_t open_row) {
  for (std::size_t t = 0; t < rows.valid[row]; ++t) {
    const std::size_t from = tiers::tier_rows::panel(t, row, count_), to = t * cols_ + open_[open_row];
    const double radius = rows.radius(t, row);
    if (!(radius < infinity)) continue;
    out_.o.value[to] = rows.o[from];
    out_.o.radius[to] = radius;
    if (!rows.o_low.empty()) out_.o.low[0][to] = rows.o_low[from];
    pass_most_[open_row] = std::max(pass_most_[open_row], std::fabs(rows.o[from]));
  }
}

void row_by_row::panel::put(head_part& to, std::size_t at, const double* value, const double* low, const double* radius,
                            std::optional<double> limit) {
  const auto each = [&](std::size_t n, std::size_t from, std::size_t i) {
    to.value[i] = value[from];
    to.radius[i] = radius[from];
    if (limit) outside[n] |= std::fabs(value[from]) + radius[from] <= *limit ? 0 : 1;
  };
  if (whole) {
    for (std::size_t n = 0; n < 8; ++n) each(n, n, at + column[0] + n);
  } else {
    for (std::size_t n = 0; n < count; ++n) each(n, lane[n], at + column[n]);
  }
  for (std::size_t n = 0; n < count && low != nullptr; ++n) to.low[0][at + column[n]] = low[lane[n]];
}

void row_by_row::reserve_low(std::size_t of_outputs, std::size_t of_state) {
  while (out_.o.low.size() < of_outputs) out_.o.low.emplace_back(out_.o.value.size(), 0.0);
  while (out_.state.low.size() < of_state) out_.state.low.emplace_back(out_.state.value.size(), 0.0);
}

namespace {

/// The first `count` elements of one row replace those of a column, from element `at` on.
void put_column(head_part& to, std::size_t at, std::size_t stride, const head_part& from, std::size_t count, bool if_nearer) {
  for (std::size_t i = 0; i < count; ++i) {
    if (if_nearer && !(from.radius[i] < to.radius[at + i * stride])) continue;
    to.value[at + i * stride] = from.value[i];
    to.radius[at + i * stride] = from.radius[i];
    for (std::size_t c = 0; c < to.low.size(); ++c) to.low[c][at + i * stride] = c < from.low.size() ? from.low[c][i] : 0.0;
  }
}

}  // namespace

void row_by_row::join(std::size_t row, std::size_t first, const head_part& from, std::size_t count, bool if_nearer) {
  put_column(out_.o, element(row, first), cols_, from, count, if_nearer);
}

void row_by_row::join_state(std::size_t row, const head_part& from, bool if_nearer) {
  put_column(out_.state, open_[row], cols_, from, keys_, if_nearer);
}

namespace {

/// Half of the bits of the finest grid; an open element that is known better is beside a tie.
bool few_digits(const head_part& part, std::size_t i) {
  return part.radius[i] > 0 && !(part.radius[i] < 0x1p-512 * std::fabs(part.value[i]));
}

}  // namespace

/// Whether element i answers the question; keeps its rounding. What the exact tier rounded stays.
bool row_by_row::answers(const head_part& part, double most, std::size_t i, const std::optional<format>& to,
                         rounded_part& rounded, double& left) const {
  const bool known = !to || keep_rounding(part, i, q_, *to, rounded, left);
  return known && (streams_ || small_enough(part.radius[i], q_.relative_radius, most));
}

void row_by_row::settle_tokens(std::size_t from, std::size_t rows, double most, std::size_t begin, std::size_t end) {
  std::vector<remains> own(rows);
  std::vector<std::size_t> open(chunk_open_.size(), 0);
  double left = 0;
  // Where any radius is an answer, a token is looked at as a whole first.
  const bool together = any_radius() && open_.size() == cols_;
  const auto finite = [&](std::size_t t) {
    const double* radius = out_.o.radius.data() + (t - base_) * cols_ + from;
    unsigned infinite = 0;
    for (std::size_t i = 0; i < rows; ++i) infinite += radius[i] < infinity ? 0 : 1;
    return infinite == 0;
  };
  for (std::size_t t = begin; t < end; ++t) {
    if (together && finite(t)) continue;
    for (std::size_t r = 0; r < rows; ++r) {
      if (answers(out_.o, most, element(from + r, t), q_.round_output, out_.rounded_o, left)) continue;
      ++own[r].o;
      own[r].vague = own[r].vague || few_digits(out_.o, element(from + r, t));
      own[r].until = t + 1;
      if (sink_) ++open[(t - base_) / chunk_tokens];
    }
  }
  const std::lock_guard guard(lock_);
  out_.rounded_o.left = std::max(out_.rounded_o.left, left);
  for (std::size_t c = 0; c < open.size(); ++c) chunk_open_[c] += open[c];
  for (std::size_t r = 0; r < rows; ++r) {
    left_[from + r].o += own[r].o;
    left_[from + r].vague = left_[from + r].vague || own[r].vague;
    left_[from + r].until = std::max(left_[from + r].until, own[r].until);
  }
}

void row_by_row::settle_channels(std::size_t from, std::size_t rows, double most, std::size_t begin, std::size_t end) {
  std::vector<std::size_t> own(rows, 0);
  std::vector<std::uint8_t> vague(rows, 0);
  double left = 0;
  for (std::size_t j = begin; j < end; ++j) {
    for (std::size_t r = 0; r < rows; ++r) {
      const std::size_t i = state_element(from + r, j);
      const bool known = !q_.round_state || keep_rounding(out_.state, i, q_, *q_.round_state, out_.rounded_state, left);
      if (known && small_enough(out_.state.radius[i], q_.relative_radius, most)) continue;
      ++own[r];
      if (few_digits(out_.state, i)) vague[r] = 1;
    }
  }
  const std::lock_guard guard(lock_);
  out_.rounded_state.left = std::max(out_.rounded_state.left, left);
  for (std::size_t r = 0; r < rows; ++r) {
    left_[from + r].state += own[r];
    left_[from + r].vague = left_[from + r].vague || vague[r] != 0;
  }
}

void row_by_row::settle(std::size_t from, std::size_t rows) {
  if (q_.relative_radius < infinity) return;  // asks for the largest of all: at the end
  settle_tokens(from, rows, 0, first_, first_ + count_);
}

void row_by_row::settle_state(std::size_t from, std::size_t rows) {
  if (q_.relative_radius < infinity) return;
  settle_channels(from, rows, 0, 0, keys_);
}

/// By tokens: what a thread reads and writes lies together. A few parts for each.
void row_by_row::settle_all(unsigned threads) {
  const double most_o = largest_of(out_.o, out_.o.value.size()), most_state = largest_of(out_.state, out_.state.value.size());
  const std::size_t parts = threads == 1 ? 1 : std::max<std::size_t>(1, std::min<std::size_t>(tokens_, 4 * threads));
  parallel_for(parts, threads, [&](std::size_t part) {
    settle_tokens(0, open_.size(), most_o, tokens_ * part / parts, tokens_ * (part + 1) / parts);
    settle_channels(0, open_.size(), most_state, keys_ * part / parts, keys_ * (part + 1) / parts);
  });
}

void row_by_row::end_block() {
  if (!sink_) return;
  for (std::size_t from = 0; from < count_; from += chunk_tokens) {
    const std::size_t first = first_ + from, count = std::min(chunk_tokens, count_ - from), base = from * cols_;
    const auto before = open_outputs_.of(first);
    if (before && before->empty()) continue;
    sink_(first, count, out_.rounded_o, base, before);
    open_outputs_.keep(first, count, chunk_open_[from / chunk_tokens], base, out_.rounded_o);
  }
}

void row_by_row::end_pass(std::string tier, unsigned threads) {
  if (q_.relative_radius < infinity) settle_all(threads);
  std::vector<std::size_t> open, until;
  std::size_t open_o = 0, open_state = 0;
  vague_ = false;
  for (std::size_t r = 0; r < open_.size(); ++r) {
    if (pass_most_[r] >= 0) most_[open_[r]] = pass_most_[r];
    open_o += left_[r].o;
    open_state += left_[r].state;
    vague_ = vague_ || left_[r].vague;
    const std::size_t last = left_[r].state > 0 ? tokens_ + 1 : left_[r].until;
    if (last == 0) continue;
    open.push_back(open_[r]);
    until.push_back(last);
  }
  if (open_o_ > open_o) out_.o_decided[tier] += open_o_ - open_o;
  if (open_state_ > open_state) out_.state_decided[tier] += open_state_ - open_state;
  open_o_ = open_o;
  open_state_ = open_state;
  out_.tier = std::move(tier);
  open_ = std::move(open);
  until_ = std::move(until);
  out_.answered = open_.empty();
}

}  // namespace deltaproof
