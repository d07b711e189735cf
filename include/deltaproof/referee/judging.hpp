// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
//
// How a result is judged: `judging` is all that decides a verdict beside the problem, the result and the plan. The program,
// suites, invariants, witnesses, pages, Python and the matchers fill this one record, and every way to a verdict passes its
// `require_valid`.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "deltaproof/oracle/measure.hpp"

namespace deltaproof {

/// A limit on one metric of one tensor, or of every tensor where `tensor` is empty.
struct tensor_bound {
  std::string tensor;
  metric_bound limit;
};

/// "[TENSOR:]METRIC=E" with the reason for E. Throws: format_error naming the part that is wrong.
[[nodiscard]] tensor_bound parse_tensor_bound(std::string_view text, const because& reason);

struct judging {
  double false_alarm = 1e-4;            ///< probability that a kernel which keeps the plan is refuted, for the whole check
  std::optional<double> accuracy = {};  ///< relative error the plan itself may have; nothing: 8 times that of its formats alone
  bool power = true;                    ///< run the planted faults; without them no limits on their shapes and no diagnosis
  std::uint64_t seed = 1;               ///< of every random number
  double seconds = 30;  ///< of CPU for emulation, about: larger problems are emulated on fewer heads and tokens, and it is said
  int max_bits = 1024;  ///< of the reference
  bool strict_padding = false;            ///< refute what is not 0 in entries of the stages that nobody reads; else it is noted
  std::vector<tensor_bound> bounds = {};  ///< on errors against the reference, beside the plan or without one
  std::size_t sharing = 1;                ///< checks that share false_alarm, in equal parts

  /// Of this check alone.
  [[nodiscard]] double own_false_alarm() const { return false_alarm / static_cast<double>(sharing); }
};

/// Throws: format_error that names the first member which is no number, or outside what it may be; as require_threads.
void require_valid(const judging& judge, unsigned threads = 0);
/// Throws: format_error for more threads than a machine has.
void require_threads(unsigned threads);
/// Why this is no accuracy that can be asked of a plan; nothing where it is one.
[[nodiscard]] std::optional<std::string> wrong_accuracy(double accuracy);

/// The options of `deltaproof check` for what is not as by default, each with a space before it.
[[nodiscard]] std::string options_text(const judging& judge);

/// `word` as a POSIX shell reads it back.
[[nodiscard]] std::string shell_quoted(const std::string& word);

}  // namespace deltaproof
