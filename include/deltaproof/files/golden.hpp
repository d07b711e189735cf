// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
//
// The true outputs of a problem as a result file holds them: `make_golden` solves it and keeps every element rounded to a
// format, or known to as many bits as were asked for, as an unevaluated sum of doubles. Shapes are those of the exchange
// format; `write_golden` puts them into a file as they are decided. What nothing decided is NaN, counted and listed; nothing is
// rounded by guess. Memory, beside the problem: for each thread a head's state and a block of tokens, the states of all heads
// one by one, two numbers a step of any rule but Euler's, and for outputs one bit each where 128 tokens of a head hold an open
// one; make_golden holds the outputs too. A head that is run whole (at most 106 bits and magnitudes beyond their range) grows
// with T.
#pragma once

#include <atomic>
#include <cstddef>
#include <filesystem>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "deltaproof/files/exchange.hpp"
#include "deltaproof/number/format.hpp"
#include "deltaproof/oracle/problem.hpp"

namespace deltaproof {

struct golden_request {
  format round = fp64;
  /// Not 0: so many bits of every element, as a sum of parts_of(bits) fp64 numbers; `round` is fp64 then.
  std::size_t bits = 0;
  int max_bits = 1024;  ///< highest working precision; exact numbers are tried whatever it says
  unsigned threads = 0;
  const std::atomic<bool>* stop = nullptr;
  std::function<void(std::size_t, std::size_t)> progress;  ///< called with (part done, whole), never twice at a time
};

struct golden_tensor {
  /// One tensor, or the parts of a sum: each element the correctly rounded rest of what those before it leave, NaN from
  /// the first on that nothing decided.
  std::vector<tensor> parts;
  /// The largest bound over the elements that are decided, infinity where none is: on |exact - sum|; without `bits` on
  /// |exact - reference| of what was rounded.
  double radius = 0;
  std::map<std::string, std::size_t> decided;  ///< tier -> elements
  std::size_t undecided = 0;
  std::string undecided_indices;  ///< as nan_indices writes them
};

struct golden {
  golden_tensor o;
  golden_tensor final_state;
  std::map<std::string, std::size_t> tiers;      ///< as in reference
  std::map<std::string, std::size_t> fallbacks;  ///< likewise
  bool stopped = false;                          ///< then nothing else is filled in
};

/// How many doubles hold `bits` bits of any number: each leaves at most 2^-53 of what it rounds.
[[nodiscard]] constexpr std::size_t parts_of(std::size_t bits) { return (bits + 52) / 53; }

/// Throws: as solve; format_error for bits of another format than fp64.
[[nodiscard]] golden make_golden(const problem& p, const golden_request& asked);

/// The same as a result file at `path`, byte for byte the one of result_of and low_parts_of; the parts of the answer stay empty.
/// Outputs wait in a file without a name beside it, as large as they are, until all is known that its header says. `confirm` is
/// called before the file takes its name; nothing is written where it throws, or where the work was stopped.
/// Throws: as make_golden; format_error where files cannot be written.
[[nodiscard]] golden write_golden(const std::filesystem::path& path, const problem& p, const golden_request& asked,
                                  const std::string& problem_sha256, const std::function<void()>& confirm = {});

/// The result file's content: the first parts, path `reference`, and what is known of them as metadata: radius.*, tier.*,
/// undecided.*, fallbacks. The other parts are written beside it, under their names.
[[nodiscard]] result result_of(const golden& from, const golden_request& asked);
[[nodiscard]] std::vector<tensor> low_parts_of(const golden& from);

/// The gradients of a problem with cotangents, by their names; `decided` of each stays empty.
struct golden_gradients {
  std::map<std::string, golden_tensor> tensors;
  std::map<std::string, std::size_t> tiers;  ///< tier -> groups of heads that it answered
  bool stopped = false;                      ///< then nothing else is filled in
};
/// Throws: as solve_gradients; format_error for bits of another format than fp64.
[[nodiscard]] golden_gradients make_golden_gradients(const problem& p, const golden_request& asked);
/// The same as a result file of the backward pass at `path`: the gradients, `pass` = backward, path `reference`, radius.* and
/// undecided.*; the parts of the answer stay empty. Rounded gradients wait in files without a name beside it; memory, beside the
/// problem: for each thread a segment of tokens, a state every ceil(sqrt(T)) tokens, and two numbers a step of any rule but
/// Euler's; all of a group of heads with `bits`, in MPFR, or where magnitudes leave the range of fp64. `confirm`: as
/// write_golden.
[[nodiscard]] golden_gradients write_golden_gradients(const std::filesystem::path& path, const problem& p,
                                                      const golden_request& asked, const std::string& problem_sha256,
                                                      const std::function<void()>& confirm = {});

/// "exact: 6, fp64: 6"; "none" for no counts.
[[nodiscard]] std::string counts_text(const std::map<std::string, std::size_t>& counts);

/// The flat indices of all NaN of `t` in order, single or as the first and last of a run: "5,17-203". A list longer than
/// `most_bytes` is cut behind an index and ends in ",...": a file's header has a limit, the tensor itself has them all.
struct index_list {
  std::size_t count = 0;
  std::string text;
};
inline constexpr std::size_t most_index_bytes = 40'000'000;
[[nodiscard]] index_list nan_indices(const tensor& t, std::size_t most_bytes = most_index_bytes);

}  // namespace deltaproof
