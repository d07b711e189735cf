// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
//
// The rows of one head under a question: which elements each tier decided, and which rows the next one is asked for.
#pragma once

#include <mpfr.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cmath>
#include <cstdint>
#include <limits>
#include <map>
#include <mutex>
#include <numeric>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "deltaproof/oracle/reference.hpp"
#include "oracle/decided.hpp"
#include "oracle/fresh.hpp"
#include "oracle/mpfr_value.hpp"
#include "oracle/parallel.hpp"
#include "oracle/tiers/head.hpp"
#include "oracle/tiers/integer_rows.hpp"

namespace deltaproof {

using counts = std::map<std::string, std::size_t>;

struct head_answer {
  head_part o;
  head_part state;
  rounded_part rounded_o;
  rounded_part rounded_state;
  std::optional<std::size_t> diverges_at;
  std::string tier;
  counts o_decided, state_decided, fallbacks;
  bool answered = false;
};

/// Whether a radius answers the part of a question that is about radii; `most` is the largest magnitude of its tensor.
/// Infinite magnitudes cannot be compared; an infinite radius answers only the question that asks for none.
inline bool small_enough(double radius, double relative, double most) {
  return relative == std::numeric_limits<double>::infinity() ? radius < std::numeric_limits<double>::infinity() : radius <= relative * most || radius == 0;
}

inline double largest_of(const head_part& part, std::size_t count) {
  double most = 0;
  for (std::size_t i = 0; i < count; ++i) most = std::max(most, std::fabs(part.value[i]));
  return most;
}

/// Components that show the sign of what is left of a number beside a tie.
inline constexpr std::size_t rounding_components = 3;

/// The rows of one head that a question leaves open, answered tier after tier; a row that is decided stays as it is.
class row_by_row {
 public:
  row_by_row(const question& q, std::size_t tokens, std::size_t keys, std::size_t cols, unsigned threads)
      : q_{q}, tokens_{tokens}, keys_{keys}, cols_{cols} {
    open_.resize(cols_);
    std::iota(open_.begin(), open_.end(), std::size_t{0});
    until_.assign(cols_, tokens_ + 1);
    bounded_.assign(cols_, 0);
    out_.state.value.assign(keys_ * cols_, std::numeric_limits<double>::quiet_NaN());
    out_.state.radius.assign(keys_ * cols_, infinity);
    fill_both(out_.o, tokens_ * cols_, threads);
    if (q.round_output) out_.rounded_o.reset(out_.o.value.size(), q.parts);
    if (q.round_state) out_.rounded_state.reset(out_.state.value.size(), q.parts);
    open_o_ = tokens_ * cols_;
    open_state_ = keys_ * cols_;
  }

  [[nodiscard]] const std::vector<std::size_t>& open() const { return open_; }
  /// By open row: the tokens that must still be read; more than T where the final state is open.
  [[nodiscard]] const std::vector<std::size_t>& until() const { return until_; }
  [[nodiscard]] bool all_bounded() const {
    return std::all_of(bounded_.begin(), bounded_.end(), [](std::uint8_t b) { return b != 0; });
  }
  [[nodiscard]] head_answer& answer() { return out_; }
  /// Magnitude of what is known, for estimates.
  [[nodiscard]] double largest() const {
    return std::max(largest_of(out_.o, out_.o.value.size()), largest_of(out_.state, out_.state.value.size()));
  }

  /// Rows [from, from + rows.rows) of the open ones are replaced by those of a table; rows that left their tier stay as
  /// they were. Returns whether every row that did not leave certainly stays within the range. Token by token: what is
  /// written then lies together, and each page and line is touched once.
  bool adopt(const tiers::tier_rows& rows, std::size_t from) {
    std::vector<panel> panels((rows.rows + 7) / 8);
    for (std::size_t r = 0; r < rows.rows; ++r) {
      panel& p = panels[r / 8];
      if (rows.left[r] != 0) continue;
      p.lane[p.count] = r % 8;
      p.column[p.count++] = open_[from + r];
    }
    for (panel& p : panels) {
      p.whole = p.count == 8;
      for (std::size_t n = 1; n < p.count; ++n) p.whole = p.whole && p.column[n] == p.column[0] + n;
    }
    double radius[8];
    for (std::size_t t = 0; t < tokens_; ++t) {
      for (std::size_t n = 0; n < panels.size(); ++n) {
        const std::size_t at = tiers::tier_rows::panel(t, 8 * n, tokens_);
        rows.radii(t, 8 * n, radius);
        panels[n].put(out_.o, t * cols_, &rows.o[at], rows.o_low.empty() ? nullptr : &rows.o_low[at], radius, q_.range.output);
      }
    }
    for (std::size_t j = 0; j < keys_; ++j) {
      for (std::size_t n = 0; n < panels.size(); ++n) {
        const std::size_t at = tiers::tier_rows::panel(j, 8 * n, keys_);
        const double* low = rows.final_state_low.empty() ? nullptr : &rows.final_state_low[at];
        std::copy_n(&rows.state_radius[8 * n], 8, radius);
        panels[n].put(out_.state, j * cols_, &rows.final_state[at], low, radius, std::nullopt);
      }
    }
    bool all_inside = true;
    for (std::size_t n = 0; n < panels.size(); ++n) {
      for (std::size_t i = 0; i < panels[n].count; ++i) {
        const bool inside = panels[n].outside[i] == 0 && rows.largest_norm[8 * n + panels[n].lane[i]] <= q_.range.state;
        if (inside) bounded_[panels[n].column[i]] = 1;
        all_inside = all_inside && inside;
      }
    }
    return all_inside;
  }
  /// Room for low parts, made before several threads adopt.
  void reserve_low() {
    for (head_part* part : {&out_.o, &out_.state}) {
      if (part->low.empty()) part->low.emplace_back(part->value.size(), 0.0);
    }
  }

  /// Keeps the rows open that do not answer the question yet.
  void settle(std::string tier, unsigned threads) {
    const double most_o = q_.relative_radius < infinity ? largest_of(out_.o, out_.o.value.size()) : 0;
    const double most_state = q_.relative_radius < infinity ? largest_of(out_.state, out_.state.value.size()) : 0;
    struct remains {
      std::size_t o = 0, state = 0, until = 0;
    };
    std::vector<remains> left(open_.size());
    // Where any radius is an answer, a token is looked at as a whole first.
    const bool all_by_radius = q_.relative_radius == infinity && !q_.round_output && open_.size() == cols_;
    // By tokens: what a thread reads and writes lies together. A few parts for each.
    const std::size_t parts = threads == 1 ? 1 : std::max<std::size_t>(1, std::min<std::size_t>(tokens_, 4 * threads));
    std::mutex lock;
    parallel_for(parts, threads, [&](std::size_t part) {
      std::vector<remains> own(open_.size());
      double left_o = 0, left_state = 0;
      for (std::size_t t = tokens_ * part / parts; t < tokens_ * (part + 1) / parts; ++t) {
        if (all_by_radius && finite(out_.o, t)) continue;
        for (std::size_t r = 0; r < open_.size(); ++r) {
          if (answers(out_.o, most_o, t * cols_ + open_[r], q_.round_output, out_.rounded_o, left_o)) continue;
          ++own[r].o;
          own[r].until = t + 1;
        }
      }
      for (std::size_t j = keys_ * part / parts; j < keys_ * (part + 1) / parts; ++j) {
        for (std::size_t r = 0; r < open_.size(); ++r) {
          if (!answers(out_.state, most_state, j * cols_ + open_[r], q_.round_state, out_.rounded_state, left_state))
            ++own[r].state;
        }
      }
      const std::lock_guard guard(lock);
      out_.rounded_o.left = std::max(out_.rounded_o.left, left_o);
      out_.rounded_state.left = std::max(out_.rounded_state.left, left_state);
      for (std::size_t r = 0; r < open_.size(); ++r) {
        left[r].o += own[r].o;
        left[r].state += own[r].state;
        left[r].until = std::max(left[r].until, left[r].state > 0 ? tokens_ + 1 : own[r].until);
      }
    });
    std::vector<std::size_t> open, until;
    std::size_t open_o = 0, open_state = 0;
    for (std::size_t r = 0; r < open_.size(); ++r) {
      open_o += left[r].o;
      open_state += left[r].state;
      if (left[r].until == 0) continue;
      open.push_back(open_[r]);
      until.push_back(left[r].until);
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

  /// Runs the open rows as integers, with `bits` or (0) exactly. Returns whether everything that was reached certainly
  /// stays within the range.
  bool run_integers(const problem& p, std::size_t sequence_index, std::size_t value_head, int bits, unsigned threads) {
    tiers::integer_request ask;
    ask.bits = bits;
    ask.columns = open_;
    ask.until = until_;
    ask.range = q_.range;
    ask.threads = threads;
    ask.stop = q_.stop;
    // Rows are split by the threads that compute them, then joined: a component more is a table more for all.
    std::vector<head_part> o(open_.size()), state(open_.size());
    for (std::size_t r = 0; r < open_.size(); ++r) {
      for (const auto& [part, count] :
           {std::pair{&o[r], std::min(until_[r], tokens_)}, std::pair{&state[r], until_[r] > tokens_ ? keys_ : 0}}) {
        part->value.resize(count);
        part->radius.resize(count);
      }
    }
    const bool rounds = q_.relative_radius == infinity && (q_.round_output || q_.round_state);
    const std::size_t components = rounds ? rounding_components + std::max<std::size_t>(q_.parts, 1) - 1 : most_components;
    std::vector<double> left_o(open_.size()), left_state(open_.size());  // of the exact numbers of each row
    const auto into = [&](std::vector<head_part>& rows, rounded_part& rounded, const std::optional<format>& to,
                          std::vector<double>& left) {
      return [&, components, bits](std::size_t r, std::size_t at, mpfr_srcptr x, double radius) {
        mpfr_value rest(mpfr_get_prec(x));
        split(rows[r], at, x, rest.get(), radius, components);
        if (bits != 0 || !to) return;
        const std::size_t i = at * cols_ + open_[r];
        if (q_.parts == 0) rounded.value[i] = round_nearest(x, *to);
        else left[r] = std::max(left[r], keep_exact(x, i, rounded));
      };
    };
    const auto outcome =
        tiers::run_integers(p, sequence_index, value_head, ask, into(o, out_.rounded_o, q_.round_output, left_o),
                            into(state, out_.rounded_state, q_.round_state, left_state));
    if (q_.stop && q_.stop->load()) return false;
    for (const double left : left_o) out_.rounded_o.left = std::max(out_.rounded_o.left, left);
    for (const double left : left_state) out_.rounded_state.left = std::max(out_.rounded_state.left, left);
    for (std::size_t r = 0; r < open_.size(); ++r) {
      join(out_.o, o[r], open_[r], std::min(outcome.reached[r], tokens_));
      if (outcome.reached[r] > tokens_) {
        join(out_.state, state[r], open_[r], keys_);
        if (outcome.within) bounded_[open_[r]] = 1;
      }
    }
    const auto note = [&](const char* what, std::size_t count) {
      if (count > 0) out_.fallbacks[what] += count;
    };
    note("fixed point: grids moved up", outcome.moved);
    if (bits != 0) note("fixed point: keys and queries of several limbs", outcome.wide);
    note("fixed point: keys and queries rounded", outcome.rounded);
    settle(bits == 0 ? "exact" : "fixed-" + std::to_string(bits), threads);
    return outcome.within;
  }

 private:
  static constexpr double infinity = std::numeric_limits<double>::infinity();

  /// The rows of one panel of a table that did not leave their tier, and the columns they are.
  struct panel {
    std::size_t count = 0;
    bool whole = false;  // eight neighbouring columns
    std::array<std::size_t, 8> lane{}, column{};
    std::array<std::uint64_t, 8> outside{};  // not 0: a magnitude may pass the limit

    void put(head_part& to, std::size_t at, const double* value, const double* low, const double* radius, std::optional<double> limit) {
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
  };

  /// The first `count` elements of one row replace those of a column.
  void join(head_part& to, const head_part& from, std::size_t column, std::size_t count) {
    while (to.low.size() < from.low.size()) to.low.emplace_back(to.value.size(), 0.0);
    for (std::size_t i = 0; i < count; ++i) {
      to.value[i * cols_ + column] = from.value[i];
      to.radius[i * cols_ + column] = from.radius[i];
      for (std::size_t c = 0; c < to.low.size(); ++c) to.low[c][i * cols_ + column] = c < from.low.size() ? from.low[c][i] : 0.0;
    }
  }

  /// Whether every radius of token t is finite.
  [[nodiscard]] bool finite(const head_part& part, std::size_t t) const {
    const double* radius = part.radius.data() + t * cols_;
    unsigned infinite = 0;
    for (std::size_t i = 0; i < cols_; ++i) infinite += radius[i] < infinity ? 0 : 1;
    return infinite == 0;
  }

  /// Whether element i answers the question; keeps its rounding. What the exact tier rounded stays.
  [[nodiscard]] bool answers(const head_part& part, double most, std::size_t i, const std::optional<format>& to,
                             rounded_part& rounded, double& left) const {
    const bool known = !to || keep_rounding(part, i, q_, *to, rounded, left);
    return known && small_enough(part.radius[i], q_.relative_radius, most);
  }

  const question& q_;
  std::size_t tokens_;
  std::size_t keys_;
  std::size_t cols_;
  std::vector<std::size_t> open_;
  std::vector<std::size_t> until_;
  std::vector<std::uint8_t> bounded_;  // no magnitude of this row leaves the range
  std::size_t open_o_ = 0;
  std::size_t open_state_ = 0;
  head_answer out_;
};

}  // namespace deltaproof
