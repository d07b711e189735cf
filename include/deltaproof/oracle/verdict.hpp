// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
//
// The five verdicts, their exit codes, how several combine, and `bound`: a limit that cannot be written without the reason
// for it. `judge_interval` judges a number that is known to lie in [lower, upper] against a bound. The limits of a plan are
// judged in referee/referee.hpp, the bounds of stages in stages/stages.hpp.
#pragma once

#include <charconv>
#include <string>
#include <string_view>

#include "deltaproof/support/errors.hpp"

namespace deltaproof {

/// holds: within every budget, radius included. refuted: certainly outside. undecided: the reference's radius is
/// too wide. vacuous: nothing could have shown a fault. measured: errors only, no budget was given.
enum class verdict { holds, measured, vacuous, undecided, refuted };

[[nodiscard]] constexpr std::string_view name_of(verdict v) {
  switch (v) {
    case verdict::holds:
      return "holds";
    case verdict::measured:
      return "measured";
    case verdict::vacuous:
      return "vacuous";
    case verdict::undecided:
      return "undecided";
    case verdict::refuted:
      return "refuted";
  }
  return "refuted";
}

/// holds and measured 0, refuted 1, undecided and vacuous 3; bad usage or input is 2, and no verdict.
[[nodiscard]] constexpr int exit_code(verdict v) {
  switch (v) {
    case verdict::holds:
    case verdict::measured:
      return 0;
    case verdict::vacuous:
    case verdict::undecided:
      return 3;
    case verdict::refuted:
      return 1;
  }
  return 1;
}

/// The verdict on two findings together: refuted > undecided > vacuous > measured, holds. A budget that holds
/// beside tensors that were only measured is a verdict: holds.
[[nodiscard]] constexpr verdict combine(verdict a, verdict b) {
  if ((a == verdict::holds && b == verdict::measured) || (a == verdict::measured && b == verdict::holds)) return verdict::holds;
  return a < b ? b : a;
}

/// Why a bound may be believed: the id of a theorem, claim or measurement, or the caller's own words.
class because {
 public:
  /// Throws: domain_error if there are no words.
  explicit because(std::string_view reason) : reason_{reason} {
    if (reason_.find_first_not_of(" \t\n") == std::string::npos) {
      throw domain_error(
          "the reason for the error limit (because) is empty; say which theorem, claim or measurement the limit comes from");
    }
  }
  [[nodiscard]] const std::string& text() const noexcept { return reason_; }

 private:
  std::string reason_;
};

/// A limit on an error and the reason it may be believed; there is no bound without one.
struct bound {
  bound(double limit, because reason) : value{limit}, provenance{std::move(reason)} {
    if (!(limit >= 0)) {
      char digits[32];
      char* const end = std::to_chars(digits, digits + sizeof(digits), limit).ptr;
      throw domain_error("the limit of an error is " + std::string(digits, end) + "; it must be a number >= 0");
    }
  }
  double value;
  because provenance;
};

/// A number known to lie in [lower, upper], and the estimate that is printed.
struct enclosure {
  double lower = 0;
  double value = 0;
  double upper = 0;
};

/// holds if all of it is within the limit, refuted if none of it is, undecided otherwise; NaN is refuted.
[[nodiscard]] constexpr verdict judge_interval(const enclosure& error, const bound& limit) {
  if (error.upper <= limit.value) return verdict::holds;
  if (error.lower > limit.value || error.lower != error.lower) return verdict::refuted;
  return verdict::undecided;
}

}  // namespace deltaproof
