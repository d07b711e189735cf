// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <set>
#include <tuple>

#include "referee/parts.hpp"

namespace deltaproof::referee_detail {
namespace {

/// What a backward pass leaves, in the order in which a kernel makes it.
constexpr std::array<std::string_view, 15> backward_order{"dv_local", "dAqk",   "dh",    "dv2",      "dinitial_state",
                                                          "dw",       "dq_hat", "dq",    "dAkk",     "dv",
                                                          "dk_hat",   "dk",     "dbeta", "dg_local", "dg"};

static_assert(has_each(backward_order, judged_backward_stages));

/// Whether what is wrong in one stage can be in another. v_new and h take turns, as do dh and dv2; Aqk reaches o alone, and o
/// nothing else.
bool reaches(std::string_view stage, std::string_view other) {
  const auto place = std::find(backward_order.begin(), backward_order.end(), stage);
  if (place != backward_order.end())
    return std::find(place, backward_order.end(), other) != backward_order.end() || (stage == "dv2" && other == "dh");
  if (stage == "inputs" || stage == stage_names.front() || stage == other) return true;
  if (stage == "o" || stage == "final_state") return false;
  if (stage == "Aqk") return other == "o";
  if (other == "o" || other == "final_state" || (stage == "v_new" && other == "h")) return true;
  return other != "Aqk" &&
         std::find(stage_names.begin(), stage_names.end(), stage) < std::find(stage_names.begin(), stage_names.end(), other);
}

bool is_refuted(const plan_report& report, const std::string& tensor) {
  return std::any_of(report.statistics.begin(), report.statistics.end(),
                     [&](const judged_statistic& s) { return s.tensor == tensor && s.judged == verdict::refuted; });
}

/// Whether errors drawn anew point in many directions, of which that of the fault is one: where a few directions have all of an
/// error, a few runs do not show both of its signs.
bool is_spread(const signed_statistic& cosines) {
  return std::all_of(cosines.samples.begin(), cosines.samples.end(), [](const std::vector<double>& runs) {
    double squares = 0;
    for (const double c : runs) squares += c * c;
    return squares <= static_cast<double>(runs.size()) / 64;
  });
}

/// What emulation and kernel do differently besides roundings to 16 bits, as shares of the limit of the error's size: the most
/// along any direction, of the whole error and of what is left of it beside a run on the same inputs.
constexpr double unlike_runs = 1.0 / 8, unlike_one_run = 1.0 / 512;
/// The least cosine of that rest with a fault that refutes. A few roundings that fall otherwise may point nearer to a fault that
/// is nearly all in a few entries, or in the few directions of a row in which each of them is carried on.
double least_alike(double entries, double directions) {
  return std::max({0.25, 8 / std::sqrt(entries), 1 / std::sqrt(directions)});
}
/// How much larger than the limit of the error's size such a fault is. One that grows without bound is nearly all in a few
/// places.
constexpr double least_gross = 4, most_gross = 0x1p20;
/// Whether roundings to 16 bits make the errors of the tensor. Sums do where they are too small for that, and their order may be
/// open.
bool made_by_roundings(const fault_draws& draws, const fault_draws::projection& x, const threshold& size) {
  return !draws.by_sums && size.finite && !size.at_floor && size.typical > x.values * 0x1p-16;
}

/// The share of a fault above which the whole error refutes: nearer to the faulty run than to the same run without the fault, and
/// beyond what correct runs and correct draws project.
double whole_error_limit(const fault_draws::projection& x, const signed_threshold& same, const signed_threshold& moved,
                         const threshold& size, bool by_roundings) {
  const double nearer = x.departs && is_spread(x.draws) ? std::min(0.5, x.of_fault - 0.5) : 0.5;
  const double projects = std::max(projection_limit(same, size), projection_limit(moved, size));
  // A kernel that rounds once less than the plan projects too; two such roundings at once, or another variant, at most twice
  // that.
  const double like_rounding = std::max(nearer, 2 * x.finer);
  // A fault far larger than rounding shows by a small share: beyond all roundings left out, and what is unlike the runs.
  const double gross = by_roundings ? std::max(x.finer_together, unlike_runs * size.value / x.fault_size) : infinity;
  return std::max(projects / x.fault_size, std::min(like_rounding, gross));
}

/// What the error has of a fault beside a run on the same inputs.
double rest_of(const fault_draws::projection& x) { return x.got - (x.of_fault - 1); }

/// The share above which that refutes. A kernel repeats most roundings of the run, so little is left of its error, and this
/// points, as draws do, nowhere near a fault that is far larger than rounding.
double rest_limit(const fault_draws::projection& x, double largest_cosine, const threshold& size) {
  const bool gross = x.fault_size > least_gross * size.value && x.fault_size <= most_gross * size.value;
  if (!gross || !is_spread(x.draws)) return infinity;
  const double along = (x.finer_along + std::max(least_alike(x.entries, x.directions), largest_cosine)) * x.apart;
  return std::max({along, unlike_one_run * size.value, x.by_sums}) / x.fault_size;
}

/// Whether the error is that of this fault: of the same shape and size in each tensor in which the fault is no smaller than
/// rounding (in any where it is smaller in both), and nothing is refuted where it is.
bool explains(const fault& planted, const fault_draws& draws, const std::vector<threshold>& sizes, const plan_report& report) {
  // What is wrong before the backward pass begins is not made by it.
  if (planted.pass == pass_kind::backward && (is_refuted(report, "o") || is_refuted(report, "final_state"))) return false;
  bool fitting = false;
  for (std::size_t k = 0; k < draws.sizes.size(); ++k) {
    const std::string& tensor = draws.sizes[k].tensor;
    const auto x = std::find_if(draws.projections.begin(), draws.projections.end(),
                                [&](const fault_draws::projection& p) { return p.planted == &planted && p.tensor == tensor; });
    if (x == draws.projections.end()) {
      if (is_refuted(report, tensor)) return false;
      continue;
    }
    const bool fits = x->score >= least_score_named && std::fabs(x->got - x->of_fault) <= most_off_share;
    const bool shows = x->fault_size > sizes[k].value;
    fitting = fitting || fits;
    if (!fits && (shows || is_refuted(report, tensor))) return false;
  }
  return fitting;
}

}  // namespace

void order_suspects(plan_report& out) {
  for (suspect& s : out.suspects) s.comes_later = !out.first_bad_stage.empty() && !reaches(s.planted->stage, out.first_bad_stage);
  std::sort(out.suspects.begin(), out.suspects.end(), [](const suspect& a, const suspect& b) {
    return std::tuple(a.comes_later, !a.explains, -a.score, a.planted->name, a.tensor) <
           std::tuple(b.comes_later, !b.explains, -b.score, b.planted->name, b.tensor);
  });
}

void judge_faults(const fault_draws& draws, const false_alarm& family, plan_report& out) {
  // The result chose one of several sets of faults: each of them is tested with its part of the probability.
  const false_alarm alarm{family.family, family.statistics * draws.variants};
  std::vector<signed_statistic> same, moved;
  for (const auto& x : draws.projections) {
    same.push_back(x.same_inputs);
    moved.push_back(x.draws);
  }
  const auto same_limits = signed_thresholds(same, alarm), moved_limits = signed_thresholds(moved, alarm);
  const auto sizes = thresholds(draws.sizes, alarm);
  std::set<const fault*> seen(draws.by_norm.begin(), draws.by_norm.end());
  for (std::size_t i = 0; i < draws.projections.size(); ++i) {
    const auto& x = draws.projections[i];
    const auto of_tensor =
        std::find_if(draws.sizes.begin(), draws.sizes.end(), [&](const statistic& size) { return size.tensor == x.tensor; });
    const threshold& size = sizes[static_cast<std::size_t>(of_tensor - draws.sizes.begin())];
    const bool by_roundings = made_by_roundings(draws, x, size);
    const double limit = whole_error_limit(x, same_limits[i], moved_limits[i], size, by_roundings);
    if (x.of_fault > limit) seen.insert(x.planted);
    // Within its limits a tensor's error is rounding: what that is like, another variant of the plan say, is no diagnosis
    // unless the stage of that fault is refuted too.
    const bool wrong = is_refuted(out, x.tensor) || std::any_of(out.stages.begin(), out.stages.end(), [&](const judged_stage& s) {
                         return s.name == x.planted->stage && s.judged == verdict::refuted;
                       });
    const double of_rest = by_roundings ? rest_limit(x, std::max(same_limits[i].upper, moved_limits[i].upper), size) : infinity;
    const bool by_whole = draws.tests_shares && x.got > limit;
    const bool by_rest = draws.tests_shares && !by_whole && rest_of(x) > of_rest;
    if (!by_whole && !by_rest && !(x.score >= 0.5 && wrong)) continue;
    const bool named = x.score >= least_score_named && explains(*x.planted, draws, sizes, out);
    suspect s{x.planted, x.got, draws.tests_shares ? limit : infinity, x.score, x.tensor, false, named};
    if (by_rest) {
      s.share = rest_of(x);
      s.limit = of_rest;
      s.beside_run = true;
    }
    out.suspects.push_back(std::move(s));
  }
  order_suspects(out);
  out.power.ran = true;
  if (!draws.slice.empty()) out.power.slice += (out.power.slice.empty() ? "" : "; ") + draws.slice;
  for (const fault* f : draws.all) (seen.count(f) != 0 ? out.power.visible : out.power.invisible).push_back(f);
}

}  // namespace deltaproof::referee_detail
