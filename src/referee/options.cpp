// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT

#include "deltaproof/referee/referee.hpp"
#include "deltaproof/support/errors.hpp"
#include "support/parallel.hpp"
#include "support/text.hpp"

namespace deltaproof {
namespace {

[[noreturn]] void refuse(const std::string& what, const std::string& value, const std::string& use) {
  throw format_error("check: " + what + " of " + value + "; use " + use);
}

}  // namespace

std::optional<std::string> wrong_accuracy(double accuracy) {
  if (accuracy > 0 && accuracy <= 1) return std::nullopt;
  return "an accuracy of " + detail::general(accuracy, 6) + "; use a relative error above 0 and at most 1, which is that of zeros";
}

void require_threads(unsigned threads) {
  if (threads <= most_threads) return;
  refuse("a number of threads", std::to_string(threads), "at most " + std::to_string(most_threads) + ", or 0: one for each core");
}

void require_valid(const referee_options& options) {
  if (!(options.false_alarm >= 1e-12 && options.false_alarm <= 0.1))
    refuse("a false-alarm probability", detail::general(options.false_alarm, 6), "a number within [1e-12, 0.1]");
  if (options.accuracy) {
    if (const auto wrong = wrong_accuracy(*options.accuracy)) throw format_error("check: " + *wrong);
  }
  if (!(options.seconds > 0 && options.seconds <= 1e8))
    refuse("a time for emulation", detail::general(options.seconds, 6) + " seconds", "a number above 0 and at most 1e8");
  require_threads(options.threads);
}

}  // namespace deltaproof
