// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT

#include <string>

#include "deltaproof/study/study.hpp"
#include "studies/gates/sections.hpp"
#include "studies/shared/findings.hpp"

namespace deltaproof {

namespace detail::gates {

settings settings_for(const run_options& options) {
  settings size;
  if (options.full) {
    size.chunks = {16, 32, 64, 128};
    size.heads = 512;
    size.tokens = 1024;
    size.draws = 32;
  }
  return size;
}

}  // namespace detail::gates

namespace {

using namespace detail::gates;
using detail::shared::value_of;

std::string answer(const report& r) {
  std::string text = "A gate is safe as a difference of sums, never as a quotient of exponentials: ";
  if (value_of(r, "difference-is-safe", "unbounded") == 1 && value_of(r, "limits-derived", "worst") < 1e-4) {
    text += "e^G_i · e^−G_j over C rows overflows at |g| = ln(largest)/C, " +
            number(value_of(r, "limits-found-by-hand", "sixteen"), 4) +
            " nats a token for 16 rows in fp32 (people found 5.5) and " +
            number(value_of(r, "limits-found-by-hand", "sixty_four"), 3) +
            " for 64, while differences and products of decays have no limit";
  } else if (value_of(r, "limits-derived", "worst") == value_of(r, "limits-derived", "worst")) {
    text += "the limits found by running do not follow the derived ones";
  } else {
    text += "the limits were not computed";
  }
  const double reset = value_of(r, "reset-gates", "difference_1e6");
  if (reset == reset) text += "; differences lose |G| 2⁻²⁴, " + number(reset, 1) + " after a reset of 10⁶";
  const double threshold = value_of(r, "decays-round-to-one", "bf16_threshold");
  if (threshold == threshold) {
    text += "; and a decay stored in bf16 is 1 above g = " + number(threshold, 3) + ", which makes " +
            number(100 * value_of(r, "model-gates-round-to-one", "share"), 2) + " % of model-like gates endless memories";
  }
  return text + ".";
}

report run(const run_options& options) {
  const settings size = settings_for(options);
  report r;
  add_limits(options, size, r);
  add_sums(options, size, r);
  add_decays(options, size, r);
  r.answer = answer(r);
  r.method =
      "G is the inclusive chunk-local sum of g in fp32; exponentials are correctly rounded fp32 values, factors are rounded to "
      "the format they are stored in, "
      "products are fp32. Ratios are compared with those of the same fp32 gates in 256 bits. Limits are found by bisection over "
      "fp32 gates of one value, and "
      "beside them derived. Model-like gates come from the library's regime `model-gates`.";
  r.not_claimed = {
      "Errors of an exp2 unit, flushing, and tf32 truncation come on top; the plans of `deltaproof list plans` state them per "
      "kernel.",
      "Constant gates give each limit; gates that vary overflow once their sum over the rows of a factor does.",
      "The factored operands are also multiplied by q and k: their size moves a limit by ln|k|/C, which is left out.",
      "What a wrong ratio does to an output depends on keys and values; the referee judges that on tensors.",
      "Model-like gates are those of initialisation; trained models have others.",
  };
  r.parameters = {{"heads", size.heads}, {"tokens", size.tokens}, {"draws", size.draws}, {"longest_chunk", size.chunks.back()}};
  return r;
}

}  // namespace

extern const study gates_study{"gates", "Which gates break which way of forming decays inside a chunk?", &run};

}  // namespace deltaproof
