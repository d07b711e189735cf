// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
//
// What every option of judging may be, said once for all who ask for a verdict.
#include "deltaproof/oracle/gradients.hpp"

#include <algorithm>
#include <cmath>

#include "deltaproof/check/check.hpp"
#include "support/text.hpp"

namespace deltaproof {
namespace {

std::string text(double x) { return detail::general(x, 6); }

[[noreturn]] void refuse(const std::string& what, const std::string& value, const std::string& use) {
  throw format_error("check: " + what + " of " + value + "; use " + use);
}

}  // namespace

void require_valid(const check_options& options) {
  require_valid(options.referee);
  require_threads(options.threads);
  if (options.max_bits < 53 || options.max_bits > 1024)
    refuse("a precision", std::to_string(options.max_bits) + " bits", "a max_bits within [53, 1024]");
  for (const tensor_bound& b : options.bounds) {
    const bool gradient = std::find(gradient_names.begin(), gradient_names.end(), b.tensor) != gradient_names.end();
    if (!b.tensor.empty() && b.tensor != "o" && b.tensor != "final_state" && !gradient)
      throw format_error("check: a bound on " + in_quotes(b.tensor) + "; it is on o, on final_state, on a gradient, or on all where it names none");
    if (!(b.limit.limit.value >= 0 && std::isfinite(b.limit.limit.value)))
      refuse("a bound on " + std::string(name_of(b.limit.which)), text(b.limit.limit.value), "a finite number >= 0");
  }
}

}  // namespace deltaproof
