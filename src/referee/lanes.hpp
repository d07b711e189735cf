// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
//
// One head of one sequence at a time: its errors, those of emulated runs of it, and both as norms over horizon buckets.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "deltaproof/emulate/emulate.hpp"
#include "deltaproof/referee/referee.hpp"
#include "referee/tiles.hpp"
#include "support/text.hpp"

namespace deltaproof::referee_detail {

inline constexpr double infinity = std::numeric_limits<double>::infinity();
/// A number in a sentence.
[[nodiscard]] inline std::string digits(double x) { return detail::general(x, 4); }
/// "dk at sequence 0, key head 1, tokens 64-127"; of tiles, where the largest is.
[[nodiscard]] std::string place_text(const judged_statistic& s);

/// A head of a sequence, and how much of it is judged.
struct lane {
  std::size_t sequence = 0;
  std::size_t head = 0;
  sequence_range range;
  std::size_t judged = 0;  ///< leading tokens
  bool state = false;      ///< final_state is there and judged
  std::size_t lost =
      0;  ///< tokens behind `judged` in which runs of the plan are not finite, though the exact values are in range
  /// Elements that nothing is asked of, for a sum of the plan may overflow there (overflow.hpp): of o (T x V) and of the state
  /// (K x V); empty: none. `without_limit`: of these, those in which the result is finite.
  std::vector<bool> left_out_o = {}, left_out_state = {};
  std::size_t without_limit_o = 0, without_limit_state = 0;

  /// Whether neither the exact recurrence nor a sum of the plan leaves the range.
  [[nodiscard]] bool stays_in_range() const { return judged == range.tokens && left_out_o.empty() && left_out_state.empty(); }
};
/// 0 in the place of what is left out.
void leave_out(const lane& at, matrix<double>& o, matrix<double>& state);

/// Tokens [first, last) of a sequence: [0, unit), [unit, 2 unit), [2 unit, 4 unit), ...
struct bucket {
  std::size_t first = 0;
  std::size_t last = 0;
};
[[nodiscard]] std::vector<bucket> buckets(std::size_t tokens, std::size_t unit);
/// Where runs that stop early do so: behind a bucket, within the first eighth of the tokens; 0: no run of this head stops early.
[[nodiscard]] std::size_t early_end(const lane& at, std::size_t unit);
/// How many runs that stop early show how much a head scatters: over all places that they reach, near_pool_degrees; 0: none of
/// this head stops early.
[[nodiscard]] std::size_t few_runs(const lane& at, std::size_t unit);
/// Tokens of the first bucket: those of a chunk, or 64.
[[nodiscard]] std::size_t unit_of(const plan_variant& v, std::size_t steps_per_token);

/// Distances to the truth; `state` has no entries where it is not judged.
struct lane_errors {
  matrix<double> o;
  matrix<double> state;
};

[[nodiscard]] std::vector<lane> lanes_of(const problem& p, const result& r, const std::vector<bool>& skip_o,
                                         const std::vector<bool>& skip_state);

/// The format of fewest bits in which the plan reads rows: what inputs are moved in units of, so that its roundings are drawn
/// anew.
[[nodiscard]] format narrowest_operand(const plan_variant& v);

/// What a result, or the truth, says of one head: o (T x V) and the state (K x V).
[[nodiscard]] lane_errors errors_of_result(const problem& p, const result& r, const reference& truth, const lane& at);
/// Leading tokens before those at the end in each of which something is not finite: a recurrence that has overflowed stays so.
[[nodiscard]] std::size_t finite_tokens(const matrix<double>& o);
/// A run's distance to the truth of the unperturbed problem.
[[nodiscard]] lane_errors errors_of_run(const problem& p, head_output run, const reference& truth, const lane& at);
/// The error of one run on the inputs as given, its sums in another build's order.
[[nodiscard]] lane_errors errors_on_given_inputs(const problem& p, const head_input& in, const plan_variant& variant,
                                                 std::uint64_t seed, const reference& truth, const lane& at,
                                                 range_seen* range = nullptr);
/// The error of one run on its own, perturbed, inputs, with what its lane leaves out; `range` if asked for.
[[nodiscard]] lane_errors errors_of_draw(const head_input& in, const plan_variant& variant, std::uint64_t seed,
                                         range_seen* range = nullptr);
[[nodiscard]] lane_errors run_less_truth(head_output run, const head_output& truth);

/// {rms, max} for each bucket of o, then of the state if there is one; infinite where something is not finite.
struct lane_norms {
  std::vector<double> rms;
  std::vector<double> max;
  std::vector<double> changes = {};             ///< of dg alone (changes_of)
  std::vector<std::vector<double>> tiles = {};  ///< the rms of each (tiles.hpp), of o and of the state; of a gradient

  [[nodiscard]] const std::vector<double>& in(norm_kind norm) const {
    return norm == norm_kind::rms ? rms : norm == norm_kind::max ? max : changes;
  }
};
/// Of o, the judged tokens of which lie in these buckets, and of the state.
[[nodiscard]] std::array<tiling, 2> tiles_of_outputs(const lane& at, const std::vector<bucket>& where, const problem& p);
[[nodiscard]] lane_norms norms(const lane_errors& e, const std::vector<bucket>& at, std::size_t judged);
/// The truth in the same places: what the errors of zeros would be.
[[nodiscard]] lane_norms truth_norms(const problem& p, const reference& truth, const lane& at, const std::vector<bucket>& where);
/// The radii there, as far as they are finite: what the norms of errors are known to.
[[nodiscard]] lane_norms radius_norms(const problem& p, const reference& truth, const lane& at, const std::vector<bucket>& where);
/// Adds the pair of `count` values to `to`.
void add_norms(const double* from, std::size_t count, lane_norms& to);
/// Its rms alone.
[[nodiscard]] std::vector<double> truth_rms(const problem& p, const reference& truth, const lane& at,
                                            const std::vector<bucket>& where);

/// What jobs read of each lane, made once: by the first job that asks, kept until the last one is done. Jobs may ask from any
/// thread.
template <class T>
class read_by_jobs {
 public:
  /// `jobs`: how often each lane will be asked for.
  explicit read_by_jobs(const std::vector<std::size_t>& jobs) : places_(jobs.size()) {
    for (std::size_t i = 0; i < jobs.size(); ++i) places_[i].jobs = jobs[i];
  }
  template <class Make>
  [[nodiscard]] std::shared_ptr<const T> take(std::size_t lane, const Make& make) {
    place& here = places_[lane];
    const std::lock_guard guard(here.lock);
    if (!here.made) here.made = std::make_shared<const T>(make());
    std::shared_ptr<const T> out = here.made;
    if (--here.jobs == 0) here.made.reset();
    return out;
  }

 private:
  struct place {
    std::mutex lock;
    std::size_t jobs = 0;
    std::shared_ptr<const T> made;
  };
  std::vector<place> places_;
};

/// The judged tokens of the heads that jobs are to read.
class heads_read {
 public:
  heads_read(const problem& p, const std::vector<lane>& lanes, const std::vector<std::size_t>& jobs)
      : p_{p}, lanes_{lanes}, heads_(jobs) {}
  [[nodiscard]] std::shared_ptr<const head_input> take(std::size_t lane);

 private:
  const problem& p_;
  const std::vector<lane>& lanes_;
  read_by_jobs<head_input> heads_;
};

/// About how long one run of these tokens takes on one core, in seconds.
[[nodiscard]] double seconds_of_run(const problem& p, const plan_variant& variant, std::size_t tokens);

}  // namespace deltaproof::referee_detail
