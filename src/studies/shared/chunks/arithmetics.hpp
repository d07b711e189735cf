// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
//
// The arithmetics of the chunk studies, each compiled once: `arithmetic_named("bf16").chunkwise(sequence, C, inverse)` runs
// the library's chunkwise form, `.recurrent(sequence, ...)` its recurrence, with inputs and results as doubles. Inputs must
// be values of the storage format (chunks/keys.hpp makes such): then converting them rounds nothing.
#pragma once

#include <cstddef>
#include <span>
#include <string_view>
#include <vector>

#include "deltaproof/algebra/matrix.hpp"
#include "deltaproof/algebra/triangular.hpp"
#include "deltaproof/number/format.hpp"
#include "deltaproof/scan/recurrent.hpp"
#include "deltaproof/scan/sequence.hpp"

namespace deltaproof::detail::chunks {

/// The stages that the studies read, exact in double; shapes as in chunkwise_stages.
struct chunk_run {
  matrix<double> Ai;
  matrix<double> w;
  std::vector<matrix<double>> h;
  matrix<double> o;
  matrix<double> final_state;
};

/// Which format the state of a recurrence has between two tokens.
enum class state_format { accumulator, storage };

struct chunk_arithmetic {
  std::string_view name;
  format storage;
  chunk_run (*chunkwise)(const sequence<double>&, std::size_t chunk, const inverse_method&);
  /// Products and sums in the accumulator's format. `states` receives, where not null, the state after every `every` tokens.
  trace<double> (*recurrent)(const sequence<double>&, state_format, std::size_t every, std::vector<matrix<double>>* states);
};

/// Those that differ in the format of operands and stages: bf16, fp16, tf32, with sums, state and inverse in fp32, fp32 and fp64;
/// and everything in bf16.
[[nodiscard]] std::span<const chunk_arithmetic> arithmetics();
/// Throws: domain_error for an unknown name.
[[nodiscard]] const chunk_arithmetic& arithmetic_named(std::string_view name);

}  // namespace deltaproof::detail::chunks
