// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
//
// What the kinds of advice share: a head with its exact outputs, errors by ranges of tokens, and the search, cheapest first.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "deltaproof/check/advise.hpp"
#include "deltaproof/emulate/emulate.hpp"

namespace deltaproof::advise_detail {

/// Relative errors of a run: the largest of o's ranges of tokens and of the final state, and where the first is beyond a limit.
struct run_errors {
  double worst = 0;
  std::optional<std::size_t> until;
};

/// The head that is looked at, on its first tokens and on all of them.
class looked_at {
 public:
  looked_at(const problem& p, std::size_t sequence, std::size_t head);

  [[nodiscard]] const head_input& all() const { return in_; }
  [[nodiscard]] const head_input& beginning() const { return beginning_; }
  [[nodiscard]] const matrix<double>& final_state() const { return truth_.final_state; }
  /// The exact state after the beginning.
  [[nodiscard]] const matrix<double>& early_state() const { return early_.final_state; }
  /// Whether the exact outputs and state are.
  [[nodiscard]] bool finite() const;
  /// Of a run on `all` or on the beginning, by its number of tokens. The final state counts on all tokens only.
  [[nodiscard]] run_errors errors(const head_output& run, double limit) const;

 private:
  head_input in_, beginning_;
  head_output truth_, early_;
};

/// A choice before anything is run: its costs, what the inputs alone say of its error, and the run.
struct candidate {
  advised_choice choice;
  double bound = 0;  ///< no run of it errs less than about this; 0: nothing is known
  std::function<head_output(const head_input&)> run;
};

/// Tries candidates, cheapest first, until `options.wanted` are adequate; fills `out.choices` and counts.
void search(const looked_at& head, std::vector<candidate> all, const advise_options& options, advised_kind& out);

/// The limit, and the plan as it is.
void set_limit(const looked_at& head, const plan_variant& base, const advise_options& options, advised_kind& out);

[[nodiscard]] advised_kind advise_states(const problem& p, const looked_at& head, const advise_options& options);
[[nodiscard]] advised_kind advise_decays(const problem& p, const looked_at& head, const advise_options& options);
[[nodiscard]] advised_kind advise_chunks(const problem& p, const looked_at& head, const std::string& base,
                                         const advise_options& options);

/// The text of a preset or of a file.
[[nodiscard]] std::string text_of_plan(const std::string& name);
/// The first variant of a plan's text on the problem.
[[nodiscard]] plan_variant variant_of(const std::string& text, const problem& p, path_kind path, std::size_t chunk);

/// An error above this many times the limit is not borderline, below its inverse neither: single runs scatter.
inline constexpr double sure = 1.2;

}  // namespace deltaproof::advise_detail
