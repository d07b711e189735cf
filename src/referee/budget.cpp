// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
#include "deltaproof/referee/budget.hpp"

#include <algorithm>
#include <boost/math/tools/minima.hpp>
#include <cmath>
#include <limits>
#include <map>
#include <set>
#include <string_view>
#include <tuple>
#include <utility>

#include "deltaproof/support/errors.hpp"
#include "referee/budget_reach.hpp"
#include "support/text.hpp"

namespace deltaproof {

double false_alarm::each() const {
  if (!(family > 0 && family <= 0.1)) {
    throw domain_error("false_alarm: the probability over all tests is " + detail::general(family, 6) + "; give one in (0, 0.1]");
  }
  if (statistics == 0) throw domain_error("false_alarm: statistics is 0; give the number of statistics that the check tests");
  return family / static_cast<double>(statistics);
}

std::size_t runs_needed(std::size_t keys, std::size_t variants) {
  if (keys == 0 || variants == 0) {
    throw domain_error("runs_needed: " + std::to_string(keys) + " keys (head and bucket pairs that are run more than once) and " +
                       std::to_string(variants) + " variants; give at least 1 of each");
  }
  const auto ceiling = [](std::size_t a, std::size_t b) { return (a + b - 1) / b; };
  return 1 + std::max(ceiling(wide_pool_degrees, keys * variants), ceiling(near_pool_degrees, variants));
}

namespace {

using detail::cell;
using detail::counted;
using detail::general;
using detail::limit_over_mean;
using detail::named_pool;
using detail::pool;
using detail::pool_set;
using detail::quantile_table;
using detail::run_scale;
using detail::student_quantile;
using detail::widest_reach;

constexpr double infinity = std::numeric_limits<double>::infinity();

std::string key_text(const statistic& s) {
  return s.tensor + ", bucket " + std::to_string(s.bucket) + ", head " + std::to_string(s.head) + ", " +
         std::string(name_of(s.norm));
}

void require_floor(double floor, const char* where, const std::string& name) {
  if (floor >= 0 && !std::isinf(floor)) return;
  throw domain_error(std::string(where) + " is " + general(floor, 6) + " for " + name + "; give a finite number >= 0");
}

void require_runs(const std::vector<std::vector<double>>& samples, const char* where, const std::string& name) {
  if (samples.empty()) throw shape_error(std::string(where) + ": no variants for " + name);
  for (std::size_t v = 0; v < samples.size(); ++v) {
    if (!samples[v].empty()) continue;
    throw shape_error(std::string(where) + ": variant " + std::to_string(v) + " has no run for " + name +
                      "; each variant needs one, because the limit is that of the worst variant");
  }
}

void require_valid(const statistic& s) {
  require_floor(s.floor, "thresholds: floor", key_text(s));
  require_floor(s.least_spread, "thresholds: least_spread", key_text(s));
  if (!(s.allowance >= 1 && s.allowance <= 16)) {
    throw domain_error("thresholds: the allowance of " + key_text(s) + " is " + general(s.allowance, 6) +
                       "; give one in [1, 16]");
  }
  if (!(s.second_order >= 1 && s.second_order <= 16)) {
    throw domain_error("thresholds: second_order is " + general(s.second_order, 6) + " for " + key_text(s) +
                       "; it multiplies the limit, so give a factor in [1, 16]");
  }
  require_runs(s.samples, "thresholds", key_text(s));
  if (s.independent == 0 || s.wide_degrees == 0 || s.laws_of_variant == 0) {
    throw domain_error("thresholds: " +
                       std::string(s.independent == 0    ? "independent"
                                   : s.wide_degrees == 0 ? "wide_degrees"
                                                         : "laws_of_variant") +
                       " is 0 for " + key_text(s) + "; give at least 1");
  }
  if (!s.neighbours.empty() && s.neighbours.size() != s.samples.size()) {
    throw shape_error("thresholds: samples of " + key_text(s) + " have " + counted(s.samples.size(), "variant") +
                      ", and its neighbours have " + std::to_string(s.neighbours.size()) + "; give both the same variants");
  }
  for (const auto* list : {&s.samples, &s.neighbours}) {
    for (const auto& runs : *list) {
      const auto negative = std::find_if(runs.begin(), runs.end(), [](double x) { return x < 0; });
      if (negative == runs.end()) continue;
      throw domain_error("thresholds: an error norm of " + general(*negative, 6) + " for " + key_text(s) +
                         "; norms are >= 0, use signed_thresholds for numbers with a sign");
    }
  }
}

std::string degrees_text(std::size_t n) { return counted(n, "degree") + " of freedom"; }

std::size_t count_runs(const std::vector<std::vector<double>>& samples) {
  std::size_t runs = 0;
  for (const auto& v : samples) runs += v.size();
  return runs;
}
std::string emulated(const std::vector<std::vector<double>>& samples) {
  return "emulated: " + counted(count_runs(samples), "run") + " in " + counted(samples.size(), "group") +
         ", by arithmetic and by inputs (given or perturbed)";
}

std::string pool_text(const named_pool& p, std::size_t key_head) {
  std::string text = degrees_text(p.residuals.degrees) + " (";
  text += !p.head ? "all heads" : *p.head == key_head ? "this head" : "head " + std::to_string(*p.head) + ", the noisiest";
  text += p.first_bucket == p.last_bucket ? ", bucket " + std::to_string(p.first_bucket)
                                          : ", buckets " + std::to_string(p.first_bucket) + "-" + std::to_string(p.last_bucket);
  return text + ")";
}

// How many standard errors are added to the skewness that the runs show: where one element stands out, few runs show too little.
constexpr double skewness_margin = 3;

threshold no_budget(const statistic& s, double alpha, std::size_t variant, const std::string& why) {
  threshold t;
  t.value = infinity;
  t.finite = false;
  t.variant = variant;
  t.alpha = alpha;
  t.provenance = emulated(s.samples) + "; there is no finite limit: " + why;
  return t;
}

/// The keys of one tensor and norm, and what is the same for all of their heads that were run once: the widest reach among the
/// heads that were run more often, by bucket, variant, runs and least spread. Looked for anew for each head it would cost heads
/// times heads.
struct key_group {
  struct reach {
    widest_reach widest;
    std::size_t pooled = std::numeric_limits<std::size_t>::max();
  };
  pool_set keys;
  std::map<std::tuple<std::size_t, std::size_t, std::size_t, double>, reach> of_repeated_heads;
};

using tensor_and_norm = std::pair<std::string, norm_kind>;

/// How many times more a head of few runs scatters than the noisiest of those that ran often, over all tensors; at least 1.
double scatter_of_few(std::map<tensor_and_norm, key_group>& groups, const statistic& s) {
  pool beside;
  for (auto& [of, group] : groups) {
    if (of.second != s.norm) continue;
    const pool here = group.keys.beside_noisiest(s.head);
    beside.degrees += here.degrees;
    beside.squares += here.squares;
  }
  return std::max(1.0, beside.spread());
}

constexpr const char* scatter_unknown =
    "the scatter of the runs is unknown: no head and bucket of this tensor has two runs of one group with errors above the "
    "reference's radius";

/// What a limit was made of, and what is missing.
std::string where_from(const statistic& s, const threshold& t, const widest_reach& decides, double alpha) {
  std::string text =
      emulated(s.samples) + "; group " + std::to_string(t.variant) + " decides: typical error " + general(t.typical, 3) +
      ", log spread " + general(t.spread, 3) + " with " + pool_text(*decides.from, s.head) +
      (decides.times > 1 ? ", " + general(decides.times, 3) + " times theirs, as the few runs of this head scatter more" : "") +
      ", " + std::string(decides.law) + " quantile " + general(t.quantile, 3) + " at probability " + general(alpha, 2);
  if (s.first_order)
    text +=
        ", the tail of the error taken on the linear scale, not on that of its log, because the error is of first order in the "
        "roundings";
  if (s.allowance > 1)
    text += "; the limit is multiplied by " + general(s.allowance, 3) + ", because sums may be made in any order";
  if (s.second_order > 1)
    text +=
        "; the limit is multiplied by " + general(s.second_order, 3) + ", because errors are not small beside the exact values";
  if (!t.finite) text += "; there is no finite limit: the computed limit overflows fp64";
  if (!t.enough)
    text += "; undecided: even with all heads and buckets pooled, the spread has only " + degrees_text(t.pooled) + ", and " +
            std::to_string(s.wide_degrees) + " are needed: give longer sequences or more heads";
  return text;
}

/// `scatter`: scatter_of_few, of a head of few runs.
threshold limit_of(const statistic& s, key_group& group, double scatter, double alpha, quantile_table& table) {
  pool_set& keys = group.keys;
  const std::vector<cell>& cells = keys.cells(s.bucket, s.head);
  const auto broken = std::find_if(cells.begin(), cells.end(), [](const cell& c) { return !c.finite; });
  if (broken != cells.end()) {
    const auto v = static_cast<std::size_t>(broken - cells.begin());
    return no_budget(s, alpha, v, "a run of group " + std::to_string(v) + " is not finite");
  }
  threshold t;
  t.alpha = alpha;
  t.value = s.floor;
  t.pooled = std::numeric_limits<std::size_t>::max();
  double decisive = -infinity;
  widest_reach decides;
  for (std::size_t v = 0; v < cells.size(); ++v) {
    const cell& c = cells[v];
    t.value = std::max(t.value, c.largest);
    if (c.runs == 0) continue;  // at the floor
    const auto runs = static_cast<double>(c.runs);
    const detail::common_shape& shape = keys.shape(near_pool_degrees);
    // The mean of n runs is low as easily as its skewness, 1/sqrt(n) of theirs, says: a long left tail counts where n is small.
    const auto law = table.known_spread(
        s.norm, std::max(shape.skewness + skewness_margin * shape.skewness_error, -shape.skewness / std::sqrt(runs)));
    const auto consider = [&](std::size_t head, key_group::reach& into) {
      const named_pool& wide = keys.wide(s.bucket, head, s.wide_degrees);
      into.widest.consider(keys.near(s.bucket, head, near_pool_degrees), law, shape.variants[v], runs, s.least_spread, table);
      into.widest.consider(wide, law, shape.variants[v], runs, s.least_spread, table);
      into.pooled = std::min(into.pooled, wide.residuals.degrees);
    };
    key_group::reach found;
    if (keys.repeated_heads().count(s.head) != 0) {
      consider(s.head, found);
    } else {
      const auto [known, is_new] = group.of_repeated_heads.try_emplace({s.bucket, v, c.runs, s.least_spread});
      if (is_new) {
        for (const std::size_t head : keys.repeated_heads()) consider(head, known->second);
      }
      found = known->second;
      found.widest.scatters(scatter);
    }
    const widest_reach& widest = found.widest;
    t.pooled = std::min(t.pooled, found.pooled);
    if (widest.from == nullptr) {
      threshold none = no_budget(s, alpha, v, scatter_unknown);
      none.enough = false;
      none.typical = std::exp(c.mean);
      return none;
    }
    const double own_share = table.known_spread(s.norm, 0).first / law.first;
    const double here =
        c.mean + std::log(limit_over_mean(s, widest, own_share, runs, shape.skewness - shape.skewness_error, table));
    if (here > decisive) {
      decisive = here;
      decides = widest;
      t.typical = std::exp(c.mean);
      t.variant = v;
    }
  }
  if (decides.from == nullptr) {
    t.typical = s.floor;
    t.at_floor = true;
    t.pooled = 0;
    t.provenance =
        emulated(s.samples) +
        "; no error exceeds what the reference and the format can tell from 0, which is the limit: " + general(s.floor, 3);
    return t;
  }
  // Never below a run that was seen: exp(log x) may be less than x.
  t.value = std::max(t.value, std::exp(decisive) * s.allowance * s.second_order);
  t.spread = decides.spread;
  t.degrees = decides.from->residuals.degrees;
  t.quantile = decides.quantile;
  t.finite = std::isfinite(t.value);
  t.enough = t.pooled >= s.wide_degrees;
  t.provenance = where_from(s, t, decides, alpha);
  return t;
}

signed_threshold interval_of(const signed_statistic& s, double alpha) {
  require_floor(s.floor, "signed_thresholds: floor", s.name);
  require_runs(s.samples, "signed_thresholds", s.name);
  detail::pool residuals;
  std::vector<cell> cells;
  for (const auto& runs : s.samples) cells.push_back(detail::summed(runs, 0, run_scale::linear));
  residuals.add(cells);
  signed_threshold t;
  t.alpha = alpha;
  t.degrees = residuals.degrees;
  t.spread = residuals.spread();
  t.lower = t.least_mean = infinity;
  t.upper = t.largest_mean = -infinity;
  const bool broken = std::any_of(cells.begin(), cells.end(), [](const cell& c) { return !c.finite; });
  if (broken || residuals.degrees == 0) {
    t.finite = false;
    t.lower = t.least_mean = -infinity;
    t.upper = t.largest_mean = infinity;
    t.provenance =
        emulated(s.samples) + "; there is no finite limit: " + (broken ? "a run is not finite" : "no variant was run twice");
    return t;
  }
  const double side = s.two_sided ? alpha / 2 : alpha;
  t.quantile = student_quantile(t.degrees, side);
  const auto all = static_cast<double>(count_runs(s.samples));
  for (const cell& c : cells) {
    const auto n = static_cast<double>(c.runs);
    const double predictive = t.spread * std::sqrt(1 + 1 / n);
    const double reach = std::max(s.floor, t.quantile * predictive);
    t.predictive = std::max(t.predictive, predictive);
    t.mean += c.mean * (n / all);
    t.least_mean = std::min(t.least_mean, c.mean);
    t.largest_mean = std::max(t.largest_mean, c.mean);
    // Never inside a run that was seen.
    t.lower = std::min({t.lower, c.least, c.mean - reach});
    t.upper = std::max({t.upper, c.largest, c.mean + reach});
  }
  if (!s.two_sided) t.lower = -infinity;
  t.finite = std::isfinite(t.upper);
  t.provenance = emulated(s.samples) + "; mean " + general(t.mean, 3) + ", spread " + general(t.spread, 3) + " with " +
                 degrees_text(t.degrees) + ", Student quantile " + general(t.quantile, 3) + " at probability " +
                 general(side, 2) + (s.two_sided ? " on each side" : "");
  return t;
}

}  // namespace

std::vector<threshold> thresholds(std::span<const statistic> statistics, const false_alarm& alarm) {
  const double alpha = alarm.each();
  std::map<tensor_and_norm, key_group> groups;
  std::map<tensor_and_norm, std::size_t> variants;
  std::set<std::tuple<std::string, norm_kind, std::size_t, std::size_t>> seen;
  for (const statistic& s : statistics) {
    require_valid(s);
    if (!seen.emplace(s.tensor, s.norm, s.bucket, s.head).second) throw domain_error("thresholds: given twice: " + key_text(s));
    const std::size_t expected = variants.try_emplace({s.tensor, s.norm}, s.samples.size()).first->second;
    if (expected != s.samples.size()) {
      throw shape_error("thresholds: " + counted(s.samples.size(), "variant") + " for " + key_text(s) + ", but " +
                        std::to_string(expected) +
                        " for the first statistic of this tensor and norm; give every statistic the same variants");
    }
    std::vector<cell> cells;
    cells.reserve(s.samples.size());
    for (const auto& runs : s.samples) {
      const bool repeats = s.laws_of_variant > 1 && cells.size() % s.laws_of_variant == 0;
      const bool counts = cells.size() < s.independent && !repeats;
      cells.push_back(detail::summed(runs, s.floor, run_scale::log));
      cells.back().counts = counts;
    }
    pool_set& keys = groups[{s.tensor, s.norm}].keys;
    keys.add(s.bucket, s.head, std::move(cells), s.laws_of_variant, s.few_runs);
    if (s.neighbours.empty()) continue;
    if (!seen.emplace(s.tensor, s.norm, s.bucket + 1, s.head).second)
      throw domain_error("thresholds: " + key_text(s) +
                         " has neighbours, which stand for its next bucket, and that bucket is given "
                         "too; give one of them");
    cells.clear();
    for (const auto& runs : s.neighbours) cells.push_back(detail::summed(runs, s.floor, run_scale::log));
    keys.add(s.bucket + 1, s.head, std::move(cells), s.laws_of_variant, s.few_runs);
  }
  quantile_table table(alpha);
  std::vector<threshold> result;
  result.reserve(statistics.size());
  std::map<std::pair<norm_kind, std::size_t>, double> scatters;
  for (const statistic& s : statistics) {
    double scatter = 1;
    if (s.few_runs) {
      const auto [known, is_new] = scatters.try_emplace({s.norm, s.head}, 1.0);
      if (is_new) known->second = scatter_of_few(groups, s);
      scatter = known->second;
    }
    result.push_back(limit_of(s, groups[{s.tensor, s.norm}], scatter, alpha, table));
  }
  return result;
}

std::vector<signed_threshold> signed_thresholds(std::span<const signed_statistic> statistics, const false_alarm& alarm) {
  const double alpha = alarm.each();
  std::vector<signed_threshold> result;
  result.reserve(statistics.size());
  for (const signed_statistic& s : statistics) result.push_back(interval_of(s, alpha));
  return result;
}

double projection_limit(const signed_threshold& cosine, const threshold& size) {
  if (!cosine.finite || !size.finite) return infinity;
  if (size.at_floor || cosine.upper <= 0) return std::max(0.0, cosine.upper) * size.value;
  // In units of their limits' distances from the means cosine and log size are normal and independent, and what lies beyond a
  // limit on the product is a convex set: kept off the unit disk, it lies behind a tangent, as far out as either limit.
  const double turn = cosine.upper - cosine.largest_mean, grow = std::log(size.value / size.typical);
  const auto at = [&](double angle) {
    return std::min(1.0, cosine.largest_mean + turn * std::cos(angle)) * size.typical * std::exp(grow * std::sin(angle));
  };
  // Its logarithm is concave where the cosine is positive: one maximum.
  constexpr double quarter = 1.5707963267948966;
  const auto [where, least] = boost::math::tools::brent_find_minima([&](double angle) { return -at(angle); }, 0.0, quarter, 24);
  return std::max({-least, at(0), at(quarter)});
}

double signed_threshold::z_score(double value) const {
  if (value >= least_mean && value <= largest_mean) return 0;
  return (value - (value < least_mean ? least_mean : largest_mean)) / predictive;
}

std::string budget_argument(const false_alarm& alarm) {
  return "Under the assumptions below, a kernel that conforms to the plan is refuted with probability at most " +
         general(alarm.family, 3) + ": " + general(alarm.each(), 3) + " for each of " + counted(alarm.statistics, "statistic") +
         ", added up; independence is not assumed.\n"
         "Assumed: the kernel is one more run of one of the plan's variants, and runs are independent of each other. Where the "
         "plan\n"
         "does not fix the order of sums, and sums make the error, the error may be " +
         general(open_order, 3) +
         " times as large as in the runs.\n"
         "Assumed: the right tail of the log of an rms error is no heavier than that of the normal distribution, and for a max "
         "error no\n"
         "heavier than that of the Gumbel distribution. Where the Gamma distribution with the skewness of the runs plus three "
         "standard\n"
         "errors has a heavier right tail, the tail may be as heavy as that.\n"
         "Assumed: an error that is small beside the truth is a sum of the effects of many independent roundings. On the "
         "linear\n"
         "scale its tail is no heavier than if each rounding were normally distributed.\n"
         "Assumed: in each bucket, the errors of a head scatter no more than its pool of runs shows. A variant that scatters "
         "more than\n"
         "its pool gets a wider limit in proportion. The pool has the head's runs in this bucket, and in neighbouring buckets "
         "until\n"
         "there are " +
         std::to_string(near_pool_degrees) +
         " degrees of freedom. Of a state, the states that runs leave which stop early stand for\n"
         "a neighbouring bucket. No bucket is taken to scatter less than its own runs do. A second limit is made from a pool "
         "with " +
         std::to_string(wide_pool_degrees) +
         " degrees, of all heads if the head\n"
         "has too few, and the larger limit counts. A head that was run once scatters no more than the noisiest head that was "
         "run\n"
         "more often; if a few runs of its first tokens scatter more than that head's do there, it scatters as many times more "
         "in all tokens.\n"
         "Its one run may err less than typical by as much as the Gamma distribution with the skewness of the runs, less one\n"
         "standard error, allows.\n"
         "Assumed: biases of stages and cosines of the error with planted faults are normally distributed. A few roundings of\n"
         "a kernel fall otherwise than in an emulated run. The difference that this makes has a cosine of at most 1/4, or at "
         "most\n"
         "what that distribution allows, with any fault of at least 4 times the error limit (the bound is larger for a fault\n"
         "that sits in few entries or few directions).\n"
         "Assumed: an error that is at or below the radius of the reference in every run is at or below it in every kernel that\n"
         "conforms.\n"
         "No theorem stands behind these limits: they are measured (proofs/notes/false-alarm.md).";
}

}  // namespace deltaproof
