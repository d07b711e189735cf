// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
//
// The rows of one head under a question: which elements each tier decided, and which rows the next one is asked for. A tier
// passes over the tokens in blocks: `begin_block`, `adopt` or `join` of what it found, `settle`, `end_block`, at last
// `end_pass`. The answer is kept as a whole, one block as long as the sequence, or its outputs are handed over block by block
// and forgotten, but for which of them are open.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <map>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "deltaproof/oracle/reference.hpp"
#include "oracle/solve/decided.hpp"
#include "oracle/solve/stream.hpp"
#include "oracle/tiers/head.hpp"

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
  bool run_whole = false;  // entry by entry
};

/// Whether a radius answers the part of a question that is about radii; `most` is the largest magnitude of its tensor.
/// Infinite magnitudes cannot be compared; an infinite radius answers only the question that asks for none.
[[nodiscard]] inline bool small_enough(double radius, double relative, double most) {
  constexpr double infinity = std::numeric_limits<double>::infinity();
  return relative == infinity ? radius < infinity : radius <= relative * most || radius == 0;
}

[[nodiscard]] double largest_of(const head_part& part, std::size_t count);

/// Which outputs of a head are open, chunk by chunk: nothing is stored for those of which all or none are.
class open_outputs {
 public:
  open_outputs(std::size_t tokens, std::size_t cols) : cols_{cols}, chunks_((tokens + chunk_tokens - 1) / chunk_tokens) {}

  /// Those of the chunk of token `first`, element (t - first) cols + c at bit i % 64 of word i / 64; nothing where all are open,
  /// no word where none is.
  [[nodiscard]] std::optional<std::span<const std::uint64_t>> of(std::size_t first) const {
    const chunk& c = chunks_[first / chunk_tokens];
    return c.all ? std::nullopt : std::optional(std::span(c.bits));
  }
  /// Of `count` tokens, `open` elements are now open: those that `rounded` leaves open from element `base` on.
  void keep(std::size_t first, std::size_t count, std::size_t open, std::size_t base, const rounded_part& rounded);

 private:
  struct chunk {
    bool all = true;
    std::vector<std::uint64_t> bits;
  };
  std::size_t cols_;
  std::vector<chunk> chunks_;
};

/// Takes a chunk of the outputs of a head: tokens [first, first + count), in `rounded` from element `base` on, and which of them
/// were open before.
using chunk_sink = std::function<void(std::size_t first, std::size_t count, const rounded_part& rounded, std::size_t base,
                                      std::optional<std::span<const std::uint64_t>> were_open)>;

class row_by_row {
 public:
  /// `sink`: takes blocks of `block_tokens` tokens; empty: the answer is kept, and a block is the whole sequence.
  row_by_row(const question& q, std::size_t tokens, std::size_t keys, std::size_t cols, unsigned threads,
             std::size_t block_tokens, chunk_sink sink);

  [[nodiscard]] std::size_t tokens() const { return tokens_; }
  [[nodiscard]] std::size_t block_tokens() const { return sink_ ? block_tokens_ : std::max<std::size_t>(tokens_, 1); }
  [[nodiscard]] const std::vector<std::size_t>& open() const { return open_; }
  /// Whether the radius of some open element is more than 2^-512 of it after the last pass.
  [[nodiscard]] bool some_vague() const { return vague_; }
  /// By open row: the tokens that must still be read; more than T where the final state is open.
  [[nodiscard]] const std::vector<std::size_t>& until() const { return until_; }
  [[nodiscard]] bool all_bounded() const;
  [[nodiscard]] head_answer& answer() { return out_; }
  /// Magnitude of what the vectorised tiers know, for estimates.
  [[nodiscard]] double largest() const;

  void begin_pass();
  void begin_block(std::size_t first, std::size_t count);
  /// Rows [from, from + rows.rows) of the open ones are replaced by those of a table, of a row that left its tier as far as it
  /// is known; the states after the last token. Returns whether every row that did not leave certainly stays within the range.
  /// From any thread, for different rows.
  [[nodiscard]] bool adopt(const tiers::tier_rows& rows, std::size_t from);
  /// Room for so many low parts, made before several threads write them.
  void reserve_low(std::size_t of_outputs, std::size_t of_state);
  /// The elements of one open row's tokens [first, ...), or of its state, replace what was known. From any thread, for
  /// different rows. `if_nearer`: only those whose radius becomes smaller.
  void join(std::size_t row, std::size_t first, const head_part& from, std::size_t count, bool if_nearer = false);
  void join_state(std::size_t row, const head_part& from, bool if_nearer = false);
  /// Which elements of the block, and after the last token of the state, of the open rows [from, from + rows) answer the
  /// question. From any thread, for different rows.
  void settle(std::size_t from, std::size_t rows);
  void settle_state(std::size_t from, std::size_t rows);
  void end_block();
  /// Keeps the rows open that do not answer the question yet.
  void end_pass(std::string tier, unsigned threads);

  /// Where an element of the block lies: rounded_o of the exact tier is written in place.
  [[nodiscard]] std::size_t element(std::size_t row, std::size_t token) const { return (token - base_) * cols_ + open_[row]; }
  [[nodiscard]] std::size_t state_element(std::size_t row, std::size_t channel) const { return channel * cols_ + open_[row]; }
  /// A row's magnitudes stay within the range.
  void note_bounded(std::size_t row) { bounded_[open_[row]] = 1; }

 private:
  static constexpr double infinity = std::numeric_limits<double>::infinity();

  /// The rows of one panel of a table that did not leave their tier, and the columns they are.
  struct panel {
    std::size_t count = 0;
    bool whole = false;  // eight neighbouring columns
    std::array<std::size_t, 8> lane{}, column{};
    std::array<std::uint64_t, 8> outside{};  // not 0: a magnitude may pass the limit

    void put(head_part& to, std::size_t at, const double* value, const double* low, const double* radius,
             std::optional<double> limit);
  };
  struct remains {
    std::size_t o = 0, state = 0, until = 0;
    bool vague = false;
  };

  /// Whether radii are all that is asked of the outputs, and any will do.
  [[nodiscard]] bool any_radius() const { return q_.relative_radius == infinity && !q_.round_output; }
  void adopt_part(const tiers::tier_rows& rows, std::size_t row, std::size_t column);
  [[nodiscard]] bool answers(const head_part& part, double most, std::size_t i, const std::optional<format>& to,
                             rounded_part& rounded, double& left) const;
  void settle_tokens(std::size_t from, std::size_t rows, double most, std::size_t begin, std::size_t end);
  void settle_channels(std::size_t from, std::size_t rows, double most, std::size_t begin, std::size_t end);
  void settle_all(unsigned threads);

  const question& q_;
  std::size_t tokens_;
  std::size_t keys_;
  std::size_t cols_;
  std::size_t block_tokens_;
  chunk_sink sink_;
  bool streams_;
  open_outputs open_outputs_;
  std::size_t first_ = 0;  // the block
  std::size_t count_ = 0;
  std::size_t base_ = 0;                 // the first token of out_.o
  std::vector<std::size_t> chunk_open_;  // by chunk of the block
  std::vector<std::size_t> open_;
  std::vector<std::size_t> until_;
  std::vector<std::uint8_t> bounded_;  // no magnitude of this row leaves the range
  std::vector<double> most_;           // by column: the largest magnitude of the last tier
  std::vector<double> pass_most_;      // the same in this pass
  std::vector<remains> left_;          // by open row, in this pass
  std::mutex lock_;
  std::size_t open_o_ = 0;
  std::size_t open_state_ = 0;
  bool vague_ = false;
  head_answer out_;
};

}  // namespace deltaproof
