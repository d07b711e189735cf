// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
//
// The study `referee-limits` scales each planted fault of each case of the study `referee` down, round(correct + s (faulty -
// correct)), and finds the least s at which all of eight results are refuted, beside the least s of a matched filter, which
// knows the fault and 64 correct runs.

#include "deltaproof/emulate/faults.hpp"
#include "emulate/products.hpp"
#include "studies/shared/common.hpp"
#include "studies/shared/trials.hpp"

namespace deltaproof {
namespace {

namespace trials = detail::trials;
using trials::bench;
using trials::trial_case;

constexpr std::size_t seeds = 8;          // results that must all be refuted
constexpr std::size_t correct_runs = 64;  // behind the filter's mean and spread
constexpr double separation = 6;          // standard deviations that the filter asks for
constexpr int halvings = 16;              // the smallest s tried is 2^-16

/// o, then final_state, each in units of the rms error of a correct run, so that neither drowns the other.
std::vector<double> scaled_errors(const bench& b, const result& r) {
  std::vector<double> out;
  const auto add = [&](const tensor& got, const reference_tensor& want, double unit) {
    const std::vector<double> x = got.to_doubles();
    for (std::size_t i = 0; i < x.size(); ++i) out.push_back((x[i] - want.value[i]) / (unit > 0 ? unit : 1));
  };
  add(r.o, b.truth.o, b.o_error);
  add(*r.final_state, b.truth.final_state, b.state_error);
  return out;
}

tensor blended(const tensor& correct, const tensor& faulty, double s) {
  std::vector<double> x = correct.to_doubles();
  const std::vector<double> y = faulty.to_doubles();
  for (std::size_t i = 0; i < x.size(); ++i) x[i] += s * (y[i] - x[i]);
  const format store = correct.element_format();
  emulation::narrow(std::span<double>(x), {store, false});
  return tensor::from_doubles(store, correct.shape(), x, correct.name());
}

/// round(correct + s (faulty - correct)), o and final_state.
result blended(const result& correct, const result& faulty, double s) {
  result out = correct;
  out.o = blended(correct.o, faulty.o, s);
  out.final_state = blended(*correct.final_state, *faulty.final_state, s);
  return out;
}

bool all_finite(const result& r) {
  const auto finite = [](const tensor& t) {
    const std::vector<double> x = t.to_doubles();
    return std::all_of(x.begin(), x.end(), [](double v) { return std::isfinite(v); });
  };
  return finite(r.o) && finite(*r.final_state);
}

/// Halves s from 1 while `seen` accepts it, then tries the half step between: s is known to a factor of sqrt(2). Empty: not even
/// the whole fault is seen.
cell least_scale(const std::function<bool(double)>& seen) {
  if (!seen(1)) return {};
  double s = 1;
  for (int i = 0; i < halvings && seen(s / 2); ++i) s /= 2;
  const double between = s * std::sqrt(0.5);
  return s > std::ldexp(1.0, -halvings) && seen(between) ? between : s;
}

struct prepared {
  trial_case made_of;
  bench b;
  std::vector<result> correct;              // `seeds` runs to be made faulty
  std::vector<std::vector<double>> spread;  // errors of `correct_runs` other runs
};

emulation_options disturbed(const run_options& options, std::size_t at, std::size_t run) {
  emulation_options how;
  how.noise_ulps = 1;
  how.seed = (options.seed << 24) ^ (at << 12) ^ (run + 1);
  return how;
}

prepared prepare(const run_options& options, const trial_case& c, std::size_t at) {
  prepared out{c, trials::make_bench(c), {}, {}};
  out.b.correct.stages.clear();
  const auto run = [&](std::size_t i) { return emulated(out.b, c, out.b.allowed.front(), disturbed(options, at, i)); };
  for (std::size_t i = 0; i < seeds; ++i) out.correct.push_back(run(i));
  for (std::size_t i = 0; i < correct_runs; ++i) out.spread.push_back(scaled_errors(out.b, run(seeds + i)));
  // Leaves the plan's own draws for all that follow.
  (void)check(out.b.p, out.correct.front(), out.b.options);
  return out;
}

/// The projection of an error on a fault, beside those of correct runs.
struct filter {
  std::vector<double> along;
  double mean = 0;
  double deviation = 0;

  filter(const prepared& given, std::vector<double> direction) : along(std::move(direction)) {
    std::vector<double> shares;
    for (const auto& e : given.spread) shares.push_back(shared::dot(e, along));
    for (const double x : shares) mean += x / static_cast<double>(shares.size());
    double squares = 0;
    for (const double x : shares) squares += (x - mean) * (x - mean);
    deviation = std::sqrt(squares / static_cast<double>(shares.size() - 1));
  }
  [[nodiscard]] double separated(const std::vector<double>& error) const {
    const double away = shared::dot(error, along) - mean;
    return deviation > 0 ? away / deviation : away > 0 ? std::numeric_limits<double>::infinity() : 0;
  }
};

const std::vector<std::string> found{"possible", "checks", "visible",     "refuted",     "separated",
                                     "check",    "filter", "shown_check", "shown_filter"};

/// A fault that cannot happen, changes no bit, or leaves nothing finite is not scaled; then both are shown by the same word.
frame_row unscaled(bool possible, const cell& word) { return {possible, 0, false, false, {}, {}, {}, word, word}; }

frame_row limits_of(const run_options& options, const fault& planted, const prepared& given, std::size_t at) {
  const bench& b = given.b;
  if (!applies(planted, b.p, given.made_of.path)) return unscaled(false, {});
  std::vector<result> faulty;
  bool changed = false, finite = true;
  for (std::size_t i = 0; i < seeds; ++i) {
    const result& correct = given.correct[i];
    emulation_options how = disturbed(options, at, i);
    how.planted = &planted;
    faulty.push_back(emulated(b, given.made_of, b.allowed.front(), how));
    const result& made = faulty.back();
    if (made.o.shape() != correct.o.shape() || made.final_state->shape() != correct.final_state->shape())
      return unscaled(true, changed ? "nan" : "same");
    changed = changed || !same_bits(made.o, correct.o) || !same_bits(*made.final_state, *correct.final_state);
    finite = finite && all_finite(made);
  }
  if (!changed || !finite) return unscaled(true, changed ? "nan" : "same");

  const auto each = [&](const auto& accepts) {
    return [&, accepts](double s) {
      for (std::size_t i = 0; i < seeds; ++i) {
        if (!accepts(blended(given.correct[i], faulty[i], s))) return false;
      }
      return true;
    };
  };
  std::size_t checks = 0;
  const cell by_check = least_scale(each([&](const result& r) {
    ++checks;
    return check(b.p, r, b.options).judged == verdict::refuted;
  }));
  std::vector<double> direction = scaled_errors(b, faulty.front());
  const std::vector<double> without = scaled_errors(b, given.correct.front());
  for (std::size_t i = 0; i < direction.size(); ++i) direction[i] -= without[i];
  const filter matched(given, std::move(direction));
  double separated = std::numeric_limits<double>::infinity();
  for (const result& r : faulty) separated = std::min(separated, matched.separated(scaled_errors(b, r)));
  const cell by_filter = least_scale(each([&](const result& r) { return matched.separated(scaled_errors(b, r)) > separation; }));
  const auto shown = [](const cell& s) { return is_missing(s) ? cell("–") : s; };
  return {true,     checks,    separated > separation, !is_missing(by_check), separated,
          by_check, by_filter, shown(by_check),        shown(by_filter)};
}

/// What both see.
frame compared(const frame& rows) {
  return rows.where([](const auto& row) { return row["refuted"] == cell(true) && !is_missing(row["filter"]); });
}

void add_cases(const std::vector<prepared>& cases, const frame& all, results& r) {
  frame summary({"number", "case", "plan", "gen", "visible", "refuted", "check", "filter"});
  frame missed({"fault", "case", "separated"});
  for (std::size_t i = 0; i < cases.size(); ++i) {
    const trial_case& c = cases[i].made_of;
    const frame visible = all.where("number", i + 1).where("visible", true);
    const frame refuted = visible.where("refuted", true);
    const frame both = compared(visible);
    summary.add({i + 1, c.id, c.plan, describe(c), visible.size(), refuted.size(), median(both.numbers("check")),
                 median(both.numbers("filter"))});
    const frame slipped = visible.where("refuted", false);
    for (std::size_t k = 0; k < slipped.size(); ++k) missed.add({slipped.at(k, "fault"), c.id, slipped.at(k, "separated")});
  }
  r.table("cases", std::move(summary));
  r.table("not-refuted", std::move(missed));
}

void add_limits(const run_options& options, results& r) {
  const std::vector<trial_case> chosen = trials::cases(options);
  std::vector<prepared> cases(chosen.size());
  grid_axis<std::size_t> numbers{"number", std::vector<std::size_t>(chosen.size())};
  std::iota(numbers.quick.begin(), numbers.quick.end(), std::size_t{1});
  (void)grid(
      options, "cases", {},
      [&](std::size_t number) -> frame_row {
        cases[number - 1] = prepare(options, chosen[number - 1], number - 1);
        return {};
      },
      numbers);
  const auto planted = faults(pass_kind::forward);
  const frame& all =
      r.table("least-scales",
              grid(
                  options, "faults scaled down", found,
                  [&](const fault& f, std::size_t number) { return limits_of(options, f, cases[number - 1], number - 1); },
                  grid_axis<fault>{"fault", {planted.begin(), planted.end()}}, numbers));
  add_cases(cases, all, r);

  const frame visible = all.where("visible", true);
  const frame faults_seen = visible.by({"fault"}, {{"refuted", "refuted", greatest}});
  std::string never;
  const frame not_refuted = faults_seen.where("refuted", 0.0);
  for (const frame_row& row : not_refuted.rows()) never += (never.empty() ? "" : ", ") + row.front().text();
  const auto caught = static_cast<std::uint64_t>(visible.over("refuted", total));
  r.values("visible-faults", evidence::measured(),
           {{"visible_faults", faults_seen.size()},
            {"refuted_faults", static_cast<std::uint64_t>(faults_seen.over("refuted", total))},
            {"visible", visible.size()},
            {"refuted", caught}});
  r.values("never", {{"faults", never.empty() ? "none" : never},
                     {"share", static_cast<double>(caught) / static_cast<double>(visible.size())}});
  frame both = compared(all);
  both.derive("ratio", [](const auto& row) { return row.number("check") / row.number("filter"); });
  r.values("distance-to-the-filter", evidence::measured(),
           {{"median", both.over("ratio", median)},
            {"percentile_90", both.over("ratio", quantile(0.9))},
            {"largest", both.over("ratio", greatest)},
            {"compared", both.size()}});
  frame equal({"filter", "check"});
  for (const double s : {1e-5, 1.0}) equal.add({s, s});
  r.table("equal", std::move(equal));
  r.parameters["checks"] = static_cast<std::uint64_t>(all.over("checks", total));
}

results run(const run_options& options) {
  results r = in_parts(options, {{"faults scaled down", &add_limits}});
  r.parameters["seeds"] = seeds;
  r.parameters["correct_runs"] = correct_runs;
  r.parameters["separation"] = separation;
  return r;
}

}  // namespace

extern const study referee_limits_study{"referee-limits", &run, true};

}  // namespace deltaproof
