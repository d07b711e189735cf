// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
//
// Names the cheapest arithmetic that is adequate on a problem's own tensors: `advise(problem, options)` goes through a grid of
// state caches (format, scales, rounding, period), of chunk kernels (length, inverse and its formats) and of stored decays,
// cheapest first. What the inputs alone exclude is refused before anything is emulated; the rest is emulated once, on the first
// tokens before on all, until enough is found. Each choice is a change of one plan, whose text comes with it, so that `check`
// judges a kernel, or an emulation, by the same words: adequate is what `check --accuracy LIMIT` finds adequate.
#pragma once

#include <atomic>
#include <cstddef>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "deltaproof/oracle/problem.hpp"
#include "deltaproof/plan/plan.hpp"

namespace deltaproof {

struct advise_options {
  std::optional<double> accuracy = {};         ///< relative error allowed; nothing: 8 times that of the plan without the choice
  std::string recurrent_plan = "decode-fp32";  ///< state caches and decays change this one
  std::string chunk_plan = {};  ///< chunk lengths and inverses change this one; empty: the first of fla's that fits
  std::size_t wanted = 3;       ///< adequate choices of each kind
  unsigned threads = 0;
  const std::atomic<bool>* stop = nullptr;
  std::function<void(const char*, double)> progress = {};
};

/// Multiply-adds of 16-bit operands that an accelerator makes in the time in which it moves a byte: 989 / 2 teraflops dense in
/// bf16 by 3.35 TB/s (H100 SXM, NVIDIA's data sheet).
inline constexpr double operations_per_byte = 148;

/// `borderline`: within a sixth of the limit, where single runs do not decide.
enum class advice_word { adequate, borderline, inadequate };
inline constexpr detail::kind_names<advice_word, 3> advice_words{
    {{advice_word::adequate, "adequate"}, {advice_word::borderline, "borderline"}, {advice_word::inadequate, "inadequate"}}};

/// One way to compute, beside what it costs and loses.
struct advised_choice {
  std::string name;       ///< also of its plan: "state-int8-row-error-feedback-1"
  std::string says;       ///< in words
  double bytes = 0;       ///< moved a token and head
  double operations = 0;  ///< multiply-adds a token and head, those of wider operands counted by their bits / 16
  [[nodiscard]] double cost() const { return bytes + operations / operations_per_byte; }
  advice_word word = advice_word::inadequate;
  std::string known;  ///< "bound": of the inputs alone; "emulated"
  double error = 0;   ///< the largest relative error of o over ranges of tokens, or of the final state: predicted or found
  std::optional<std::size_t> until_token;  ///< T*: within the limit before this token (by a bound: or fewer); nothing: throughout
  std::string plan;                        ///< its text; empty where no plan says it
};

/// The choices of one kind, in the order of their cost, bytes and operations together: every one that was emulated, and those
/// refused by bounds that are cheaper than the first adequate one.
struct advised_kind {
  std::string kind;  ///< "state cache", "chunk", "decay"
  std::string base;  ///< the plan that is changed
  double limit = 0;  ///< on relative errors
  std::string limit_says;
  advised_choice unchanged;  ///< the plan as it is
  std::vector<advised_choice> choices;
  std::size_t grid = 0, refused_by_bounds = 0, emulated = 0;
};

/// Of the adequate choices the first; null where there is none.
[[nodiscard]] const advised_choice* best_of(const advised_kind& kind);
/// The inadequate choice next to the best one in the order: what one step too far would be. Null where there is none.
[[nodiscard]] const advised_choice* refused_beside(const advised_kind& kind);

struct advice {
  std::size_t sequence = 0, head = 0;  ///< which was looked at: the one that forgets least, which keeps errors longest
  std::size_t tokens = 0;
  double memory = 0;  ///< tokens after which its state has lost all but 1/e, by gates and writes; infinite where nothing is lost
  std::vector<advised_kind> kinds;
  bool stopped = false;
};

/// Throws: format_error for an accuracy that cannot be asked of a plan, or a plan that does not fit or has another path than its
/// role; domain_error for a problem without tokens.
[[nodiscard]] advice advise(const problem& p, const advise_options& options);

/// A preset's or a plan's text with one key set, in its section; `value` empty: without the key. [[when]] may not speak of it
/// then.
[[nodiscard]] std::string with_key(std::string text, std::string_view section, std::string_view key, std::string_view value);

/// A table as the program prints it, and the answer of --json. `command` gives the check of a choice.
[[nodiscard]] std::string advice_text(const advice& found,
                                      const std::function<std::string(const advised_kind&, const advised_choice&)>& command);
[[nodiscard]] std::string advice_json(const advice& found,
                                      const std::function<std::string(const advised_kind&, const advised_choice&)>& command);

}  // namespace deltaproof
