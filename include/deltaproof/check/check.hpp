// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
//
// Judges a kernel's result against the certified reference: `check(problem, result, options)` gives a verdict for
// each tensor and for the whole, where the worst element lies, the field's own numbers, and what decided. With plans (see
// referee/referee.hpp) it says whether the kernel keeps one and whether that is adequate; with bounds, whether each metric is
// within its own; with neither the verdict is `measured`. A non-finite value where the exact one is finite and in range is
// `refuted` whatever was asked. Where the exact recurrence leaves its formats' range, tokens from there on are counted, not
// judged. Views: `to_json` (schema deltaproof.verdict/1) and `to_text`.
#pragma once

#include <atomic>
#include <cstddef>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "deltaproof/files/exchange.hpp"
#include "deltaproof/oracle/gradients.hpp"
#include "deltaproof/oracle/inspect.hpp"
#include "deltaproof/oracle/measure.hpp"
#include "deltaproof/referee/referee.hpp"

namespace deltaproof {

struct check_options {
  judging judge;
  std::vector<plan> plans;  ///< any of which the kernel may keep: the first that it keeps is reported, else the first
  unsigned threads = 0;     ///< 0: one for each core
  const std::atomic<bool>* stop = nullptr;                 ///< set: end early; the verdict is then undecided
  std::function<void(const char*, double)> progress = {};  ///< what is done, and the share of it
  /// Answers in solve's place, where many results share a problem.
  std::function<reference(const problem&, const question&)> solver = {};
  std::shared_ptr<referee_memory> memory = {};  ///< as in referee_options
};

/// Where an element lies. `token` is the index along T of the tensor, null for a state; `element` is [v] or [k, v].
struct element_location {
  std::size_t batch = 0;
  std::size_t sequence = 0;
  std::size_t head = 0;
  std::optional<std::size_t> token;
  std::optional<std::size_t> token_in_sequence;
  std::vector<std::size_t> element;
  double got = 0;
  double want = 0;
  double radius = 0;  ///< the exact value lies within it of `want`
};

/// What the verdict on a tensor rests on, in elements.
struct tensor_coverage {
  std::size_t elements = 0;         ///< of the tensor
  std::size_t out_of_range = 0;     ///< finite where the exact recurrence has left its formats: not judged
  std::size_t overflowed = 0;       ///< not finite there, as is due
  std::size_t overflowed_sums = 0;  ///< not finite where a sum may overflow (referee/overflow.hpp): not judged
  std::size_t blind = 0;            ///< the limit is no smaller than the exact values: zeros would pass
  std::size_t zero = 0;             ///< the exact values are 0, or round to it: only zeros pass, and zeros say little

  [[nodiscard]] std::size_t not_judged() const { return out_of_range + overflowed_sums + blind; }
  /// Of elements; 0 where there are none.
  [[nodiscard]] double share_not_judged() const;
  /// Elements for which something else than nothing, or zeros, was asked.
  [[nodiscard]] std::size_t telling() const;
};

/// Entries of a stage that nobody reads: above the diagonal, and columns past a partial chunk.
struct unread_entries {
  std::string stage;
  std::size_t elements = 0;
  std::size_t nonzero = 0;  ///< not finite ones included
  std::size_t nonfinite = 0;
  std::optional<stage_place> first;  ///< the first that is not finite, else the first that is not 0
};

struct tensor_report {
  std::string name;
  std::string dtype;
  std::vector<std::size_t> shape;  ///< as stored
  verdict judged = verdict::measured;
  measurement errors;
  std::vector<metric_bound> bounds;
  std::optional<element_location> worst;
  std::optional<element_location> first_nonfinite;
  tensor_coverage coverage;
  bool bounds_are_blind = false;  ///< zeros would keep every bound on this tensor
  bool exact_is_zero = false;     ///< every exact value that was judged is 0; known where bounds_are_blind
  /// Finite elements where the exact value is more than twice the largest number of the format: infinity, NaN or that largest
  /// number is due.
  std::size_t beyond_range = 0;
  std::optional<element_location> first_beyond_range;  ///< `want`: the exact value
};

struct divergence_report {
  divergence first;         ///< the earliest token, then sequence, then head
  std::size_t token = 0;    ///< along T
  std::size_t heads = 0;    ///< how many diverge
  std::size_t skipped = 0;  ///< elements of o counted, not judged
};

struct check_report {
  verdict judged = verdict::measured;
  std::string reason;
  std::string remedy;  ///< after undecided or vacuous
  std::vector<tensor_report> tensors;
  std::optional<divergence_report> diverges;
  std::vector<gradient_divergence> gradients_diverge;  ///< where the result has gradients
  std::vector<precondition> preconditions;
  std::map<std::string, std::size_t> tiers;  ///< of the reference, heads each
  /// max|error| of o over that of a low-precision token loop on the same inputs; nothing if that has no finite error.
  std::optional<double> flash_attention_factor;
  std::optional<double> attention_gym_factor;
  std::optional<plan_report> conformance;  ///< nothing where no plan was given or the reference is not complete
  std::vector<std::string> other_plans;    ///< what came of the other plans tried, a line each
  std::vector<unread_entries> unread;      ///< of the stages that have any which is not 0
  bool stopped = false;  ///< by `stop`, before the reference or the plan was done: what is not refuted is undecided
};

/// The presets that list the result's kernel. Throws: format_error where none does, with the candidates and how the caller is
/// told of a plan, or of none.
[[nodiscard]] std::vector<plan> plans_of(
    const result& r, const problem& p, std::string_view naming = "--plan",
    std::string_view without = "measure errors only with --no-plan, or give an error limit with --max-error");

/// How much of which tensor is not judged, and why; empty where all of it is.
[[nodiscard]] std::string not_judged_text(const check_report& report);

/// Throws: domain_error for a bound on a tensor the result does not have, as require_valid and as solve.
[[nodiscard]] check_report check(const problem& p, const result& r, const check_options& options = {});

/// A plan and the text it was read from.
struct plan_source {
  std::string name;
  std::string path;  ///< of a file; empty: a preset
  std::string text;
};

/// What makes the same verdict again, beside the two files.
struct check_record {
  bool no_plan = false;
  judging judge;
  std::vector<plan_source> plans;
};

/// What a report needs to be a file of its own.
struct check_identity {
  std::string version = {};
  std::string problem_path = {}, problem_sha256 = {};
  std::string result_path = {}, result_sha256 = {};
  std::string kernel = {}, producer = {}, path = {};
  std::string reproduce = {};  ///< one command line
  std::vector<std::string> notes = {};
  std::optional<check_record> record = {};  ///< written as `options` and `plan`, for `replay`
};

/// Schema `deltaproof.verdict/1`; numbers that are not finite are "nan", "inf", "-inf".
[[nodiscard]] std::string to_json(const check_report& report, const check_identity& identity);
/// About a dozen lines for a terminal.
[[nodiscard]] std::string to_text(const check_report& report, const check_identity& identity);

/// Largest |error| of o of two eager runs; NaN or infinite where one overflows.
struct eager_errors {
  double same_format_state;  ///< the state is kept in q's format, as in FlashAttention's tests
  double fp32_state;         ///< the state is kept in fp32, as in attention-gym's
};

/// The token recurrence with every elementwise result and matvec rounded to q's format, against `want`. Elements of o
/// marked in `skip` are left out.
[[nodiscard]] eager_errors measure_eager(const problem& p, const reference_tensor& want, const std::vector<bool>& skip,
                                         unsigned threads);

}  // namespace deltaproof
