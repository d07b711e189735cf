// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT

#include "deltaproof/referee/judging.hpp"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cmath>

#include "deltaproof/oracle/gradients.hpp"
#include "deltaproof/support/errors.hpp"
#include "support/parallel.hpp"
#include "support/text.hpp"

namespace deltaproof {
namespace {

[[noreturn]] void refuse(const std::string& what, const std::string& value, const std::string& use) {
  throw format_error("check: " + what + " is " + value + "; use " + use);
}

}  // namespace

tensor_bound parse_tensor_bound(std::string_view text, const because& reason) {
  const auto fail = [&](const std::string& why) -> format_error {
    return format_error("--max-error " + std::string(text) + ": " + why +
                        "; write [TENSOR:]METRIC=E, for example o:rel_fro=0.005 (metrics: " + metric_list() + ")");
  };
  const auto equals = text.find('=');
  if (equals == std::string_view::npos) throw fail("there is no '='");
  std::string_view left = text.substr(0, equals), right = text.substr(equals + 1);
  std::string tensor_name;
  if (const auto colon = left.find(':'); colon != std::string_view::npos) {
    tensor_name = left.substr(0, colon);
    left = left.substr(colon + 1);
    const bool gradient = std::find(gradient_names.begin(), gradient_names.end(), tensor_name) != gradient_names.end();
    if (tensor_name != "o" && tensor_name != "final_state" && !gradient) {
      throw fail("tensor '" + tensor_name +
                 "' is neither o nor final_state nor a gradient (dq, dk, dv, dbeta, dg, dinitial_state)");
    }
  }
  double limit = 0;
  const auto [end, error] = std::from_chars(right.data(), right.data() + right.size(), limit);
  if (error != std::errc{} || end != right.data() + right.size() || !(limit >= 0) || std::isinf(limit)) {
    throw fail("'" + std::string(right) + "' is not a finite number >= 0");
  }
  metric which{};
  try {
    which = metric_named(left);
  } catch (const format_error&) {
    throw fail("there is no metric '" + std::string(left) + "'");
  }
  return {std::move(tensor_name), {which, bound(limit, reason)}};
}

std::optional<std::string> wrong_accuracy(double accuracy) {
  if (accuracy > 0 && accuracy <= 1) return std::nullopt;
  return "the accuracy is " + detail::general(accuracy, 6) +
         "; use a relative error above 0 and at most 1 (an output of zeros has the relative error 1)";
}

void require_threads(unsigned threads) {
  if (threads <= most_threads) return;
  refuse("the number of threads", std::to_string(threads),
         "at most " + std::to_string(most_threads) + ", or 0: one for each core");
}

void require_valid(const judging& judge, unsigned threads) {
  require_threads(threads);
  if (!(judge.false_alarm >= 1e-12 && judge.false_alarm <= 0.1))
    refuse("the false-alarm probability", detail::general(judge.false_alarm, 6), "a number within [1e-12, 0.1]");
  if (judge.accuracy) {
    if (const auto wrong = wrong_accuracy(*judge.accuracy)) throw format_error("check: " + *wrong);
  }
  if (!(judge.seconds > 0 && judge.seconds <= 1e8))
    refuse("the processor time for emulation", detail::general(judge.seconds, 6) + " seconds",
           "a number above 0 and at most 1e8");
  if (judge.max_bits < 53 || judge.max_bits > 1024)
    refuse("the largest precision of the reference (max_bits)", std::to_string(judge.max_bits) + " bits",
           "a number within [53, 1024]");
  for (const tensor_bound& b : judge.bounds) {
    const bool gradient = std::find(gradient_names.begin(), gradient_names.end(), b.tensor) != gradient_names.end();
    if (!b.tensor.empty() && b.tensor != "o" && b.tensor != "final_state" && !gradient)
      throw format_error("check: an error limit names the tensor " + in_quotes(b.tensor) +
                         "; name o, final_state or a gradient, or no tensor to limit all of them");
    if (!(b.limit.limit.value >= 0 && std::isfinite(b.limit.limit.value)))
      refuse("the bound on " + std::string(name_of(b.limit.which)), detail::general(b.limit.limit.value, 6),
             "a finite number >= 0");
  }
}

std::string options_text(const judging& judge) {
  std::string out;
  const auto add = [&out](const char* option, const std::string& value) {
    out += std::string(" ") + option + " " + shell_quoted(value);
  };
  for (const tensor_bound& b : judge.bounds) {
    add("--max-error", (b.tensor.empty() ? "" : b.tensor + ":") + std::string(name_of(b.limit.which)) + "=" +
                           detail::shortest(b.limit.limit.value));
  }
  if (!judge.bounds.empty()) add("--because", judge.bounds.front().limit.limit.provenance.text());
  const judging usual;
  if (judge.false_alarm != usual.false_alarm) add("--false-alarm", detail::shortest(judge.false_alarm));
  if (judge.accuracy) add("--accuracy", detail::shortest(*judge.accuracy));
  if (!judge.power) out += " --no-power";
  if (judge.max_bits != usual.max_bits) add("--max-bits", std::to_string(judge.max_bits));
  if (judge.strict_padding) out += " --strict-padding";
  if (judge.seed != usual.seed) add("--seed", std::to_string(judge.seed));
  return out;
}

std::string shell_quoted(const std::string& word) {
  const auto plain = [](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) != 0 || std::string_view("._-/=:,+@%").find(c) != std::string_view::npos;
  };
  if (!word.empty() && std::all_of(word.begin(), word.end(), plain)) return word;
  std::string out = "'";
  for (const char c : word) out += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return out + "'";
}

}  // namespace deltaproof
