// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
//
// The parts of judge_plan: what each question is asked of (`trial`), and one function a question.
#pragma once

#include <algorithm>
#include <any>
#include <array>
#include <cstddef>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "deltaproof/referee/overflow.hpp"
#include "referee/lanes.hpp"

namespace deltaproof {

struct referee_memory {
  std::mutex lock;
  std::map<std::string, std::any> kept;  ///< shared_ptr<const T> by what T depends on beyond problem, plan and options
};

}  // namespace deltaproof

namespace deltaproof::referee_detail {

/// What was kept under this key, or null.
template <class T>
[[nodiscard]] std::shared_ptr<const T> recall(const referee_options& options, const std::string& key) {
  if (!options.memory) return nullptr;
  const std::lock_guard guard(options.memory->lock);
  const auto at = options.memory->kept.find(key);
  return at == options.memory->kept.end() ? nullptr : std::any_cast<std::shared_ptr<const T>>(at->second);
}
template <class T>
void keep(const referee_options& options, const std::string& key, T value) {
  if (!options.memory) return;
  const std::lock_guard guard(options.memory->lock);
  options.memory->kept.emplace(key, std::shared_ptr<const T>(std::make_shared<T>(std::move(value))));
}

/// Variants, by number, whose runs are draws of one kind. Where a plan rounds to 16 bits, another order of its fp32 sums draws
/// those roundings anew, and runs take the orders in turn; otherwise each variant is a kind of its own.
using run_kind = std::vector<std::size_t>;
[[nodiscard]] std::vector<run_kind> kinds_of(std::span<const plan_variant> variants, const problem& p);
/// The most variants of one kind. A kernel has one of them: what a law of `n` variants, each drawn as often, exceeds with
/// probability alpha / n, none of them exceeds with more than alpha.
[[nodiscard]] std::size_t most_of_a_kind(const std::vector<run_kind>& kinds);
[[nodiscard]] inline false_alarm of_each_variant(const false_alarm& alarm, const std::vector<run_kind>& kinds) {
  return {alarm.family, alarm.statistics * most_of_a_kind(kinds)};
}

/// Whether some place has too few runs above its floor for a limit. Tiles are judged by the runs that the other norms need.
[[nodiscard]] bool need_more_runs(const std::vector<statistic>& all, double family, const std::vector<run_kind>& kinds);

/// Each kind runs by two laws, 2k on the given inputs and 2k + 1 on inputs moved by an ulp or two. Moved inputs show how
/// errors scatter; but repeated inputs repeat their errors, and an input can be special by less than an ulp: only runs on
/// the given ones know. The kernel is one more run of an even law.
[[nodiscard]] constexpr std::size_t laws_of_runs(std::size_t kinds) { return 2 * kinds; }
/// Two runs of a law show no skewness.
inline constexpr std::size_t fewest_runs = 3;
/// More runs than needed cost little where all of them take less than this share of the time for judging.
inline constexpr double cheap_share = 1.0 / 20;
/// Of a head that runs often. Runs on the given inputs repeat each other's roundings: one of each variant will do, and where they
/// cost little a few more narrow the limits. Of the moved runs the first `whole` cover all of its tokens. The others
/// stop early (early_end): they show how errors scatter, and the first tokens show that well enough. Each of the other heads runs
/// once on the given inputs, and with `few` its first kind runs a few times on moved ones; these stop early.
struct runs_of_kind {
  std::size_t given = 1, moved = 1, whole = 1;
  bool few = false;
  [[nodiscard]] std::size_t of(std::size_t law, const std::vector<run_kind>& kinds) const {
    return law % 2 == 1 ? moved : std::max(given, kinds[law / 2].size());
  }
};

/// What one run of a whole lane leaves of its forward pass.
struct forward_sample {
  lane_norms errors;
  std::size_t finite = 0;  ///< tokens before those at the end that are not finite
  range_seen range{};
};
/// By lane, law and number of the run.
using forward_samples = std::map<std::array<std::size_t, 3>, forward_sample>;

/// What is judged, and how much of it is emulated how often.
struct trial {
  const problem& p;
  const result& r;
  const plan& declared;
  const reference& truth;
  const referee_options& options;
  path_kind path;
  std::size_t chunk;  ///< 0 on the recurrent path
  std::vector<plan_variant> variants;
  std::vector<lane> lanes;
  std::size_t unit;                ///< tokens of the first bucket
  std::vector<std::size_t> slice;  ///< lanes emulated several times, by index
  std::vector<run_kind> kinds;     ///< of the variants
  runs_of_kind runs{};             ///< of those lanes
  forward_samples known;           ///< runs that were made already, for their gradients

  /// What runs of the plan depend on in the result: how much of each lane is judged.
  [[nodiscard]] std::string lanes_key() const {
    std::string key =
        std::to_string(runs.given) + "+" + std::to_string(runs.whole) + "+" + std::to_string(runs.moved) + (runs.few ? "f" : "");
    for (const lane& at : lanes) {
      key += "/" + std::to_string(at.judged) + (at.state ? "s" : "");
      for (const auto* mask : {&at.left_out_o, &at.left_out_state}) {
        if (!mask->empty()) key += " without " + std::to_string(std::hash<std::vector<bool>>()(*mask));
      }
    }
    for (const std::size_t i : slice) key += "," + std::to_string(i);
    return key;
  }
  /// A plan that lists several orders of summation leaves the order open: runs have some of them, a kernel may have another.
  [[nodiscard]] bool order_is_open() const { return declared.A.order.size() > 1; }
  [[nodiscard]] bool stopped() const { return options.stop != nullptr && options.stop->load(std::memory_order_relaxed); }
  [[nodiscard]] std::uint64_t seed(std::uint64_t what, std::uint64_t lane, std::uint64_t run) const {
    return (options.judge.seed << 40) ^ (what << 56) ^ (lane << 16) ^ run;
  }
  /// Which variant a run has. Heads that run once have those of a kind in turn.
  [[nodiscard]] std::size_t variant_of_run(std::size_t lane, std::size_t law, std::size_t run) const {
    const run_kind& kind = kinds[law / 2];
    return kind[(run + (runs_often(lane) ? 0 : lane)) % kind.size()];
  }
  [[nodiscard]] bool runs_often(std::size_t lane) const { return std::find(slice.begin(), slice.end(), lane) != slice.end(); }
  [[nodiscard]] std::size_t runs_of(std::size_t lane, std::size_t law) const {
    if (runs_often(lane)) return runs.of(law, kinds);
    return law % 2 == 0 ? 1 : law == 1 && runs.few ? few_runs(lanes[lane], unit) : 0;
  }
  /// Of these runs, those that cover all tokens of the head.
  [[nodiscard]] std::size_t whole_runs_of(std::size_t lane, std::size_t law) const {
    const std::size_t all = runs_of(lane, law);
    if (law % 2 == 0 || early_end(lanes[lane], unit) == 0) return all;
    return runs_often(lane) ? std::min(runs.whole, all) : 0;
  }
  /// Of a run of a head.
  [[nodiscard]] std::uint64_t seed_of_run(std::size_t lane, std::size_t law, std::size_t run) const {
    return seed(1, lane, law * 1024 + run);
  }
};

/// Every head runs on the given inputs. As many as the time allows run on moved inputs too, the longest first, as they have
/// the most buckets; one at least. `may_stop_early`: not where gradients are judged, whose
/// runs are whole and leave outputs as well.
void plan_runs(trial& t, bool may_stop_early);
/// Which of `heads` ran often, and what stands behind the limits of the others, in words. `often`: sequence and number of each.
/// `head`: "head" or "key head". `with_few`: how many of the others have few runs on perturbed inputs.
[[nodiscard]] std::string slice_text(std::span<const std::pair<std::size_t, std::size_t>> often, std::size_t heads,
                                     const std::string& head, std::size_t with_few = 0);
[[nodiscard]] std::string slice_text(const trial& t);

/// The largest of both; a NaN stays.
void widen(range_seen& to, const range_seen& from);
[[nodiscard]] forward_sample sample_of(const trial& t, const lane& at, lane_errors errors, const range_seen& range);

/// Errors of emulated draws as samples, and what the plan formed in them.
struct drawn {
  std::vector<statistic> statistics;     ///< in the order of `places`
  std::vector<judged_statistic> places;  ///< with `got`, without limits
  range_seen range{};
  std::vector<std::size_t> finite;  ///< by lane: tokens before which every run is finite
  /// Places of tiles follow all others. Of each, the place of its rms; and by lane what runs err in the tiles of o and of the
  /// state.
  std::vector<std::size_t> beside;
  std::vector<std::array<std::vector<double>, 2>> scales;

  [[nodiscard]] std::size_t pairs() const { return places.size() - beside.size(); }
};
[[nodiscard]] drawn draw_runs(const trial& t);
/// Both norms of one place; infinite where only the truth is 0.
[[nodiscard]] double share_of_truth(double error, double truth);
/// Lowers the shares of the truth that limits of first order are, where more is known of what the factors are off by.
using shares_of_factors = std::function<void(std::vector<double>& shares)>;
/// One for each place: the limit of first order, times what errors of second order and beyond add to it, where it is at most half
/// of the truth; beyond that the limit of the log scale (false-alarm.md, "First order").
[[nodiscard]] std::vector<threshold> limits_beside_truth(std::vector<statistic> all, const std::vector<judged_statistic>& places,
                                                         const false_alarm& alarm, const shares_of_factors& of = {});

/// sums_that_may_overflow of a plan, asked for when it is needed.
class overflow_question {
 public:
  overflow_question(const problem& p, const result& r, const plan& declared, const referee_options& options,
                    const overflow_places* known)
      : p_{p}, r_{r}, declared_{declared}, options_{options} {
    if (known != nullptr) places_ = *known;
  }
  [[nodiscard]] const overflow_places& places() {
    if (!places_) places_ = sums_that_may_overflow(p_, r_, declared_, options_.threads, options_.stop);
    return *places_;
  }

 private:
  const problem& p_;
  const result& r_;
  const plan& declared_;
  const referee_options& options_;
  std::optional<overflow_places> places_;
};
/// Why nothing is said of so much.
[[nodiscard]] inline std::string overflows_in(const std::string& share) {
  return "sums that the plan forms may overflow, depending on the order of their terms, in " + share +
         ": these elements have no error limit";
}
/// Why a value of a stage that is not finite is the plan's doing: some order of its sums, or every run of it.
[[nodiscard]] inline std::string whose_overflow(bool every_run) {
  return every_run ? "; emulated runs of the plan are not finite in this stage either, or in one before it"
                   : "; sums that the plan forms may overflow there too, depending on the order of their terms";
}
/// Why not one element of a stage was judged.
[[nodiscard]] inline std::string why_unjudged(const stage_measurement& m) {
  if (m.unbounded > 0)
    return m.name +
           ": no element could be judged: a tensor that it is computed from is missing or not finite, its recomputation "
           "overflows, "
           "or no bound is known for the arithmetic";
  return m.name + (m.skipped > 0 ? ": every element lies where the exact recurrence diverges or runs of the plan overflow"
                                 : ": there is no element to judge");
}
/// Leaves out what is not finite in the result where a sum of the plan may overflow.
void leave_out_overflowed(trial& t, overflow_question& overflow);
/// Whether each element of a stored stage that is not finite is one where a sum of the plan may overflow.
[[nodiscard]] bool overflow_explains(const result& r, const std::string& stage, overflow_question& overflow);
/// Leaves out every place where a sum may overflow in the heads in which runs are not finite, for no limit can be drawn there.
/// Whether there were any.
[[nodiscard]] bool leave_out_overflowing(trial& t, const drawn& runs, overflow_question& overflow);
/// Whether everything that a kernel forms before o is stored in fp32 or wider: its error is that of its sums.
[[nodiscard]] bool made_by_sums(const plan_variant& v, const problem& p);

/// Stage statistics of the plan's own runs and of the result on one slice; empty where no stage is stored.
struct stage_draws {
  std::vector<statistic> rms;  ///< tensor: the stage's name
  std::vector<double> rms_got;
  std::vector<double> rms_of_the_rest;
  std::vector<signed_statistic> bias;
  std::vector<double> bias_got;
  std::set<std::string> overflowing;  ///< stages in which the plan's own runs are not finite either
  std::string slice;
  std::set<std::string> stored_in_more_bits;  ///< stages of the result, than the plan says
};
[[nodiscard]] stage_draws draw_stages(const trial& t, const stage_roundings& roundings);

/// Projections of errors on each planted fault, in shares of it.
struct fault_draws {
  struct projection {
    const fault* planted = nullptr;
    std::string tensor;
    double got = 0;                ///< of the kernel's error
    double of_fault = 0;           ///< of the faulty run's error
    double finer = 0;              ///< the most of kernels that leave one rounding out
    double finer_together = 0;     ///< of one that leaves out all roundings which then add to the share
    double finer_along = 0;        ///< the most that the cosine of what such a kernel differs by can be
    double score = 0;              ///< cosine of (error - mean error of correct runs)
    double apart = 0;              ///< norm of (result - the run that the fault is planted in)
    double by_sums = 0;            ///< the most of that which sums in fp32 make
    double values = 0;             ///< norm of the tensor itself
    double fault_size = 0;         ///< norm of (faulty - correct)
    double entries = 0;            ///< over which the fault is spread, <d, d>^2 / sum of d^4
    double directions = 0;         ///< likewise
    bool departs = false;          ///< by more than the plan's sums in another order
    signed_statistic same_inputs;  ///< cosines of errors with it: of correct runs on the same inputs
    signed_statistic draws;        ///< of correct draws
  };
  std::vector<projection> projections;
  std::vector<statistic> sizes;       ///< norm of the error over all lanes projected, by tensor; by two laws, as `drawn`
  std::vector<const fault*> all;      ///< that apply
  std::vector<const fault*> by_norm;  ///< those whose error is beyond a threshold by itself
  std::string slice;
  /// Whether a large share refutes: the errors of the runs are those of the result, none of which came from before the slice.
  bool tests_shares = true;
  bool by_sums = false;      ///< errors of some variant are made by sums
  std::size_t variants = 1;  ///< that the faults could have been planted in: the result decided in which
};
/// `limits` belong to `runs.statistics`.
[[nodiscard]] fault_draws draw_faults(const trial& t, const drawn& runs, const std::vector<threshold>& limits);

/// How far the epsilon of the plan's l2norm alone moves rows of these inputs; nothing where it is the problem's.
[[nodiscard]] std::optional<range_report> other_epsilon(const trial& t);
/// The tiles of one place that are below its limits and could be zeros, because what is larger elsewhere in it makes these.
/// `exact`: of the place, `columns` wide; a chunk has `unit` rows, 0 where rows are not tokens. Values up to `rounds_to_zero` are
/// zeros rightly.
[[nodiscard]] std::vector<tile> tiles_that_may_be_zeros(const judged_statistic& rms, const judged_statistic& max,
                                                        std::span<const double> exact, std::size_t columns, std::size_t unit,
                                                        double rounds_to_zero);
/// Marks the statistics that say nothing (`vacuous`) and counts what is left in `out.reach`. `out.statistics`: as draw_runs laid
/// them out, judged. `roundings`: of the stages, where they were judged. Answers why no `holds` may rest on the statistics; empty
/// where it may.
[[nodiscard]] std::string judge_reach(const trial& t, const drawn& runs, const stage_roundings* roundings, plan_report& out);

/// A state that the plan keeps in fp32 and whose every value is one of a narrower format was rounded to it, unless runs of the
/// plan have such a state too: of values that the truth does not make so, each comes out so by chance once in 2^13 or more; ten
/// are beyond any probability that may be declared. Empty: it was not, or this is not known.
[[nodiscard]] std::string coarser_state(const trial& t);
/// Of a result without outputs its ranges alone: `runs` has no places then.
[[nodiscard]] adequacy_report judge_adequacy(const trial& t, const drawn& runs, const std::vector<threshold>& limits);

/// What the projections say: which faults would show, and which the error is like. Added to what `out` has of others.
void judge_faults(const fault_draws& draws, const false_alarm& alarm, plan_report& out);
/// The suspects of stages that can be the first bad one come first.
void order_suspects(plan_report& out);

}  // namespace deltaproof::referee_detail
