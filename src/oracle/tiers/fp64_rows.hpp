// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
//
// The first tier of the oracle: value rows of one lowered head in fp64, a row to a SIMD lane, each with the row-norm
// radius. Without a decay and with one step a token two steps share one pass over the state. Bits may differ between
// machines (fused or separate multiply-add); the radius covers both. Source: proofs/notes/oracle-radius.md,
// "The vectorised tiers", lines G and H beside D W S R O N U F.
#pragma once

#include <atomic>
#include <cstddef>
#include <span>

#include "oracle/tiers/head.hpp"

namespace deltaproof::tiers {

/// Rows columns[0..] of the head into `out`, whose memory is kept between calls. With `stop` set the run is given up
/// and the tables are void.
/// Reads: `in` with its error constants in units of 2^-53. Throws: shape_error (sequence::validate).
void run_fp64(const lowered<double>& in, std::span<const std::size_t> columns, tier_rows& out,
              const std::atomic<bool>* stop = nullptr);

/// The next `tokens` tokens of these rows: `in` begins with them and ends with the tokens_ahead behind them, or where the head
/// ends; its error constants are those of the whole head, and `largest_v` is the largest_value of it. A state comes out, and
/// stands in `in` for a start, at the ends of the head alone. Bits and radii are those of one run over all tokens.
void run_fp64(const lowered<double>& in, std::size_t tokens, double largest_v, std::span<const std::size_t> columns,
              carried_rows& carried, tier_rows& out, const std::atomic<bool>* stop = nullptr);

/// The largest |v| where the certificate asks for it: where a step has an absolute error. 0 elsewhere.
[[nodiscard]] double largest_value(const lowered<double>& in);

/// The same values without any radius: what the certificate costs is measured against it.
void run_fp64_uncertified(const lowered<double>& in, std::span<const std::size_t> columns, tier_rows& out);

/// Whether two steps share one pass.
[[nodiscard]] inline bool runs_in_pairs(const sequence<double>& s) { return s.decay.empty() && s.steps_per_token == 1; }

}  // namespace deltaproof::tiers
