// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT

#include "deltaproof/number/elementary.hpp"
#include "deltaproof/number/rational.hpp"
#include "deltaproof/rule/baselines.hpp"
#include "studies/negative_eigenvalues/words.hpp"
#include "studies/shared/formats.hpp"

namespace deltaproof {
namespace {

using namespace detail::negative_eigenvalues;

struct symmetric_group {
  std::string_view name;
  std::size_t letters;
};

constexpr double safe_step = 1.984375;  // 2 (1 - 2u) of bf16
constexpr double coarse_step = 1.75;
constexpr double last_step = 1.5;    // of those at which an exchange still leaves a lead
constexpr double free_step = 1.875;  // of a margin that a model is free to choose
constexpr std::size_t reference_tokens = 20000;
constexpr std::size_t still_tokens = 64;  // of the reference at a step at which nothing decays

const grid_axis<symmetric_group> groups{"group", {{"S2", 2}, {"S3", 3}, {"S5", 5}}};
const grid_axis<execution> runs{"how", {executions.begin(), executions.end()}};
const grid_axis<double> steps{"b", {2, safe_step, 1.96875, 1.9375, free_step, coarse_step, last_step, 1}};

std::size_t tokens_of(const run_options& options) { return options.size(4096, 65536); }
std::size_t words_of(const run_options& options, bool reference) { return reference ? options.size(3, 9) : options.size(9, 25); }

/// Medians over words of each group, execution and step.
frame follow_words(const run_options& options) {
  const frame all = grid(
      options, "words", {"wrong", "faint", "lead"},
      [&](const symmetric_group& group, const execution& how, double b, std::size_t word) {
        std::vector<frame_row> rows;
        if (word >= words_of(options, how.reference)) return rows;
        const std::size_t tokens = !how.reference ? tokens_of(options) : b == 2 ? still_tokens : reference_tokens;
        const horizon h = follow_word(how, group.letters, b, true, tokens, options.seed, word);
        rows.push_back({h.wrong, h.faint, h.lead});
        return rows;
      },
      groups, runs, steps, draws(9, 25));
  frame table = all.by({"group", "how", "b"}, {{"wrong", "wrong", horizon_at(0.5)},
                                               {"faint", "faint", horizon_at(0.5)},
                                               {"least", "wrong", horizon_at(0)},
                                               {"most", "wrong", horizon_at(1)},
                                               {"lead", "lead", median}});
  table.derive("answered", [](const auto& row) { return row.number("wrong") == 0; });
  table.derive("margin", [](const auto& row) { return 2 - row.number("b"); });
  return table;
}

/// Parity, S3, S5.
void add_words(const run_options& options, results& r) {
  exactness all;
  for (const symmetric_group& group : groups.quick) {
    const exactness e = check_every_step(group.letters);
    all.cases += e.cases;
    all.exact += e.exact;
  }
  r.values("words-are-exact", evidence::exhaustive(all.cases), {{"exact", all.exact}, {"cases", all.cases}});
  r.values("without-negative-range", {{"determinant_sign", 1}});

  const frame& table = r.table("words", follow_words(options));
  const auto horizon_of = [&](const char* how, double b, const char* column) {
    return static_cast<std::size_t>(table.find({{"group", "S5"}, {"how", how}, {"b", b}}, column));
  };
  const auto lead_of = [&](const char* how, double b) { return table.find({{"group", "S5"}, {"how", how}, {"b", b}}, "lead"); };
  r.values("margin-costs-words", evidence::sampled(words_of(options, true), options.seed, {}),
           {{"wrong_margin", horizon_of("reference", safe_step, "wrong")},
            {"wrong_coarse", horizon_of("reference", coarse_step, "wrong")},
            {"faint_margin", horizon_of("reference", safe_step, "faint")},
            {"faint_coarse", horizon_of("reference", coarse_step, "faint")}});
  r.values("rounding-freezes-the-decay", evidence::sampled(words_of(options, false), options.seed, {}),
           {{"bf16_lead", lead_of("bf16", safe_step)},
            {"fp32_lead", lead_of("fp32", safe_step)},
            {"freezes", horizon_of("fp32", safe_step, "wrong") == 0 && horizon_of("bf16", safe_step, "wrong") == 0 &&
                            lead_of("bf16", safe_step) > 0}});
  r.values("unit-keys-at-two", evidence::sampled(words_of(options, false), options.seed, {}),
           {{"bf16_lead", lead_of("bf16", 2)}, {"mixed_lead", lead_of("mixed", 2)}, {"wrong", horizon_of("bf16", 2, "wrong")}});
  r.values("runs", {{"safe_step", safe_step},
                    {"coarse_step", coarse_step},
                    {"last_step", last_step},
                    {"parity_wrong", table.find({{"group", "S2"}, {"how", "reference"}, {"b", last_step}}, "wrong")},
                    {"still_tokens", still_tokens},
                    {"reference_tokens", reference_tokens},
                    {"longest", 2 * reference_tokens}});
  frame life({"margin", "life"});
  for (const double b : steps.quick) life.add({2 - b, half_life(exact(b - 1))});
  r.table("life", std::move(life));
}

/// Half-lives at steps b = 2 beta; why: the format whose rounded unit keys are safe there.
frame half_lives() {
  frame table({"b", "beta", "why", "lambda", "life"});
  const auto add = [&](const rational& b, const cell& why) {
    table.add({round_to<double>(b), round_to<double>(rational(b / 2)), why, std::fabs(round_to<double>(rational(1 - b))),
               half_life(1 - b)});
  };
  add(rational(2), "none");
  for (const format& f : {fp32, fp16, bf16}) add(2 * (1 - 2 * exact(unit_roundoff(f))), std::string(name_of(f)));
  add(exact(1.96875), "next");
  for (const double b : {1.9375, free_step, coarse_step, last_step}) add(exact(b), {});
  return table;
}

/// Half-lives, and which logits keep the margin.
void add_margins(const run_options&, results& r) {
  const frame& lives = r.table("half-life", half_lives());
  const auto life_of = [&](const char* f) { return lives.find({{"why", f}}, "life"); };
  r.values("margin-costs-memory", {{"bf16", life_of("bf16")},
                                   {"fp16", life_of("fp16")},
                                   {"fp32", life_of("fp32")},
                                   {"bf16_step", lives.find({{"why", "bf16"}}, "b")},
                                   {"free_step", free_step},
                                   {"free_lambda", free_step - 1},
                                   {"free", lives.find({{"b", free_step}}, "life")}});

  // Logits whose sigmoid keeps beta <= 1 - 2u, and saturates.
  constexpr double from = 0.5, to = 16;
  std::uint64_t cases = 0;
  double largest_safe = -HUGE_VAL, first_one = HUGE_VAL;
  for (std::int64_t i = shared::ordinal<bf16>(from); i <= shared::ordinal<bf16>(to); ++i, ++cases) {
    const auto x = rounded<bf16>::from_exact(shared::from_ordinal<bf16>(i));
    const double s = sigmoid(x).value();
    if (s <= 1 - 2 * unit_roundoff(bf16)) largest_safe = std::max(largest_safe, x.value());
    if (s == 1) first_one = std::min(first_one, x.value());
  }
  r.values("logit-margin", evidence::exhaustive(cases), {{"largest_safe", largest_safe}, {"first_one", first_one}});
  r.values("logits", {{"to", to}});
}

rational fraction(int numerator, int denominator) { return rational(numerator) / rational(denominator); }

/// One key with |k|^2 = 1 (3/5, 4/5), one value 1, for ever: k^T S after `steps`.
template <template <class> class Rule>
std::vector<rational> iterate(const rational& beta, std::size_t count) {
  const std::vector<rational> key{fraction(3, 5), fraction(4, 5)}, value{rational(1)};
  Rule<rational> machine(2, 1);
  std::vector<rational> result, o(1);
  for (std::size_t i = 0; i < count; ++i) {
    machine.step(key, value, beta);
    machine.read(key, o);
    result.push_back(o[0]);
  }
  return result;
}

/// The two conventions: fixed points.
void add_fixed_points(const run_options&, results& r) {
  constexpr std::size_t last = 24;
  constexpr std::size_t shown = 12;  // longer fractions are left out of the table
  frame table({"form", "beta", "s1", "s2", "s3", "s4", "last", "limit", "life"});
  bool erase_half = true, both_whole = true, cycles = true;
  for (const rational& beta : {fraction(1, 2), fraction(3, 4), fraction(15, 16), fraction(127, 128), rational(1)}) {
    for (const bool both : {false, true}) {
      const auto x = both ? iterate<negative_eigenvalues_both>(beta, last) : iterate<negative_eigenvalues_erase>(beta, last);
      const rational target = both ? rational(1) : fraction(1, 2);
      const rational lambda = 1 - 2 * beta;
      rational power(1);
      bool follows = true;
      for (const rational& s : x) {
        power *= lambda;
        follows = follows && s == target * (1 - power);
      }
      (both ? both_whole : erase_half) &= follows;
      if (beta == 1) cycles = cycles && x[1] == 0 && x[3] == 0 && x[0] == x[2] && x[0] == 2 * target;
      frame_row row{both ? "both" : "erase", beta.str()};
      for (std::size_t i = 0; i < 4; ++i) row.push_back(x[i].str().size() < shown ? cell(x[i].str()) : cell());
      row.insert(row.end(), {round_to<double>(x.back()), beta == 1 ? cell() : cell(round_to<double>(target)), half_life(lambda)});
      table.add(std::move(row));
    }
  }
  r.values("fixed-points", evidence::exhaustive(table.size() * last),
           {{"erase_half", erase_half}, {"both_whole", both_whole}, {"cycles", cycles}});
  r.values("iterates", {{"third", 3}, {"fourth", 4}, {"last", last}});
  r.table("fixed-points", std::move(table));
}

results run(const run_options& options) {
  results r = in_parts(options, {{"words", &add_words}, {"margins", &add_margins}, {"conventions", &add_fixed_points}});
  r.parameters = {
      {"tokens", tokens_of(options)}, {"words", words_of(options, false)}, {"reference_words", words_of(options, true)}};
  return r;
}

}  // namespace

extern const study negative_eigenvalues_study{"negative-eigenvalues", &run};

}  // namespace deltaproof
