// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
//
// Judges a result against a precision plan: does the kernel keep it (`conforms`), and is the plan itself accurate enough on
// these inputs (`adequate`)? Gradients are judged where the plan has a [backward] section. `judge_plan` emulates the plan on the
// inputs at hand, takes from the runs a threshold for every tensor, head, horizon bucket and norm at a declared family-wise
// false-alarm probability, recomputes every stored stage from its stored inputs, and asks of each planted fault whether these
// inputs could show it and whether the error is like it. All errors, of runs and of the kernel, are distances to the oracle.
// What the probability rests on: proofs/notes/ false-alarm.md; `plan_report::argument` is the text a program prints.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "deltaproof/emulate/faults.hpp"
#include "deltaproof/files/exchange.hpp"
#include "deltaproof/files/slice.hpp"
#include "deltaproof/oracle/gradients.hpp"
#include "deltaproof/oracle/reference.hpp"
#include "deltaproof/oracle/verdict.hpp"
#include "deltaproof/plan/plan.hpp"
#include "deltaproof/referee/budget.hpp"
#include "deltaproof/referee/judging.hpp"
#include "deltaproof/referee/overflow.hpp"
#include "deltaproof/stages/stages.hpp"

namespace deltaproof {

/// What runs of a plan gave, kept between results: nothing of it depends on the result that is judged.
struct referee_memory;
[[nodiscard]] std::shared_ptr<referee_memory> make_referee_memory();

struct referee_options {
  judging judge;
  unsigned threads = 0;  ///< 0: one for each core
  const std::atomic<bool>* stop = nullptr;
  std::function<void(const char*, double)> progress = {};  ///< what is done, and the share of it
  /// For further results of the same problem and plan with the same options otherwise: the same reports, in a fraction of the
  /// time. Several threads may share one. Nothing: each call draws its own runs.
  std::shared_ptr<referee_memory> memory = {};
};

/// The exact gradients of the tensors that a result holds.
struct gradient_reference {
  const reference_gradients& truth;
  std::map<std::string, std::vector<bool>> skip = {};  ///< by tensor: elements that are not judged; none, or empty: all are
};

/// The largest share of a tensor's elements that may go unjudged where a verdict is `holds`.
inline constexpr double most_not_judged = 0.05;

/// Rows (tokens, in the sequence; of a state: channels of k) and columns of one head, the ends past the last.
struct tile_place {
  std::size_t first_row = 0, last_row = 0, first_column = 0, last_column = 0;
};

/// One error norm of one head in one horizon bucket beside its threshold. `vacuous`: zeros in the place of these values would
/// not be refuted, or are nearer to the truth than they are.
struct judged_statistic {
  std::string tensor;
  std::size_t sequence = 0;
  std::size_t head = 0;         ///< of v; of q and k where the tensor is dq or dk
  std::size_t first_token = 0;  ///< of the bucket, inside its sequence
  std::size_t last_token = 0;   ///< past the end
  norm_kind norm = norm_kind::rms;
  double got = 0;
  threshold limit;                       ///< its variant 2v is arithmetic v of the plan on the given inputs, 2v + 1 on moved ones
  double truth = 0;                      ///< the exact values in the same norm: the error of zeros
  std::optional<tile_place> worst = {};  ///< of norm_kind::tiles
  verdict judged = verdict::holds;
};

/// How many of a tensor's elements the limits of a plan say something of.
struct limit_reach {
  std::string tensor;
  std::size_t elements = 0;  ///< that have limits
  std::size_t blind = 0;     ///< of these: zeros would not be refuted, or there is no finite limit
  std::size_t zero = 0;      ///< of these: the exact values are 0, or round to it
  std::size_t overflow = 0;  ///< of `blind`: without a limit, for a sum of the plan may overflow there
};

/// The error of a stage beside the emulated one, on the slice: the root mean square of error/bound, and the bias.
struct judged_stage {
  std::string name;
  verdict judged = verdict::holds;  ///< by derived bounds, by rms and by bias together
  double rms_ratio = 0;
  std::optional<threshold> rms_limit;
  double bias = 0;
  std::optional<signed_threshold> bias_limit;
  std::string reason;  ///< what decided, where it is refuted
};

/// A fault is named where it explains the error. Its score is at least `least_score_named` and the error's share of it is that of
/// the fault itself within `most_off_share`, in o and in final_state, wherever the fault shows; and nothing is refuted that it
/// does not touch. tests/referee/diagnosis_test.cpp counts right and wrong names. A score alone is not enough: zeros point the
/// same way as a scale that is applied twice.
inline constexpr double least_score_named = 0.9;
inline constexpr double most_off_share = 0.1;

/// How much the kernel's error is like one planted fault.
struct suspect {
  const fault* planted = nullptr;
  double share = 0;  ///< projection of the error on (faulty - correct): 0 for a correct kernel, 1 for this fault
  double limit = 1;  ///< what a correct kernel's share exceeds with the probability of one statistic
  double score = 0;  ///< cosine between (error - mean error of correct runs) and (faulty - correct)
  std::string tensor;
  bool comes_later = false;  ///< its stage is made after the first bad one, or beside it: it is not what went wrong first
  bool explains = false;     ///< the error is this fault's, in every tensor
  bool beside_run = false;   ///< share and limit are of the error less that of an emulated run on the same inputs

  /// Whether the fault may be named.
  [[nodiscard]] bool is_alike() const { return explains; }
};

struct power_report {
  bool ran = false;
  std::vector<const fault*> visible;
  std::vector<const fault*> invisible;
  std::string slice;  ///< which heads and tokens
};

/// A quantity the plan forms, and the format it must fit.
struct range_report {
  std::string what;
  double reaches = 0;
  double limit = 0;
  std::string format;
  std::string known;  ///< predicted, bound, observed, contract
  bool violated = false;
  std::string says;
};

struct adequacy_report {
  bool judged = false;  ///< false: time ran out, or the runs scatter too much; what was seen until then is adequate
  bool adequate = true;
  std::string reason;              ///< why it is not adequate, or why that is not known
  std::string stage;               ///< in which the plan is inadequate: "Ai", "o", "final_state"; empty where it is none of these
  std::optional<double> accuracy;  ///< asked for
  double worst_error = 0;          ///< largest relative error of the plan in a bucket
  double worst_ratio = 0;          ///< to that of the same formats with a substituted inverse, sums and state in fp32 at least
  std::string worst_tensor;
  std::optional<std::size_t> until_token;  ///< T*: the plan is adequate before this token; nothing: throughout
  std::vector<range_report> ranges;
};

struct plan_report {
  std::string plan;
  std::vector<std::string> variants;
  bool judged = false;   ///< false: nothing could be compared
  bool stopped = false;  ///< time ran out: what was not refuted until then is undecided
  verdict conforms = verdict::holds;
  std::string reason;  ///< what decided conformance
  adequacy_report adequacy;
  std::vector<judged_statistic> statistics;
  std::optional<stage_report> measured_stages;
  std::vector<judged_stage> stages;
  std::string first_bad_stage;  ///< a stage that was recomputed from stored ones, else the tensor that is refuted; empty: none
  bool first_bad_is_stage = false;
  std::vector<std::string> stages_missing;  ///< that a kernel of this path has and the result does not hold: they would say more
  std::vector<limit_reach> reach;           ///< of o, final_state and the gradients, as far as they are judged
  std::vector<suspect> suspects;  ///< the faults the error is like: those that can have made the first bad stage, then the
                                  ///< others; each by falling score
  power_report power;
  double false_alarm = 0;
  std::size_t tests = 0;       ///< thresholds the probability is shared by
  std::size_t runs = 0;        ///< of each variant on moved inputs, shared by those that differ only in the order of sums
  std::size_t whole_runs = 0;  ///< of these, those that do not stop within the first eighth of the tokens
  std::string slice;           ///< of heads that were emulated more than once
  std::string argument;
  struct {
    bool stated = false;    ///< the plan has a [backward] section
    bool judged = false;    ///< it has, and the result gradients with an element to judge, the problem cotangents
    std::size_t tests = 0;  ///< of `tests` above
    std::size_t runs = 0;
    std::string slice;
  } gradients;
};

/// The verdict of the two questions together.
[[nodiscard]] verdict combined(const plan_report& report);

/// `skip`: elements of o, and of final_state in (K, V) order, that are not judged (empty: none). Of a result without o, `truth`
/// is not looked at. `gradients`: nothing where none are judged. What is not finite where sums_that_may_overflow has a place is
/// not judged either; `known_overflow`: these places, where the caller has them. Throws: format_error if the plan does not fit
/// (require_fit).
[[nodiscard]] plan_report judge_plan(const problem& p, const result& r, const plan& plan, const reference& truth,
                                     const std::vector<bool>& skip_o, const std::vector<bool>& skip_state,
                                     const referee_options& options,
                                     const std::optional<gradient_reference>& gradients = std::nullopt,
                                     const overflow_places* known_overflow = nullptr);

}  // namespace deltaproof
