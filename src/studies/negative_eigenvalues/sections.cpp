// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT

#include "studies/negative_eigenvalues/sections.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <utility>

#include "deltaproof/number/elementary.hpp"
#include "deltaproof/number/rational.hpp"
#include "deltaproof/rule/baselines.hpp"
#include "studies/negative_eigenvalues/words.hpp"
#include "studies/shared/formats.hpp"
#include "studies/shared/keys.hpp"

namespace deltaproof::detail::negative_eigenvalues {
namespace {

std::string horizon_text(std::size_t h, std::size_t tokens) { return h == 0 ? "none to " + count(tokens) : count(h); }

rational fraction(int numerator, int denominator) { return rational(numerator) / rational(denominator); }

/// One key with |k|^2 = 1 (3/5, 4/5), one value 1, for ever: k^T S after `steps`.
template <template <class> class Rule>
std::vector<rational> iterate(const rational& beta, std::size_t steps) {
  const std::vector<rational> key{fraction(3, 5), fraction(4, 5)};
  const std::vector<rational> value{rational(1)};
  Rule<rational> machine(2, 1);
  std::vector<rational> result;
  std::vector<rational> o(1);
  for (std::size_t i = 0; i < steps; ++i) {
    machine.step(key, value, beta);
    machine.read(key, o);
    result.push_back(o[0]);
  }
  return result;
}

/// S' of the first convention against the delta rule with step 2 beta and value v / 2, exactly: how many of the tokens agree.
std::size_t agreeing_states(std::size_t tokens, std::uint64_t seed) {
  philox random(seed, 7);
  const auto draw = [&] { return fraction(static_cast<int>(random.below(15)) - 7, 8); };
  negative_eigenvalues_erase<rational> erase(3, 2);
  negative_eigenvalues_both<rational> both(3, 2);
  std::size_t agree = 0;
  for (std::size_t t = 0; t < tokens; ++t) {
    const std::vector<rational> k{draw(), draw(), draw()};
    const std::vector<rational> v{draw(), draw()};
    const std::vector<rational> half{v[0] / 2, v[1] / 2};
    const rational beta = fraction(static_cast<int>(random.below(9)), 8);
    erase.step(k, v, beta);
    both.step(k, half, beta);
    if (erase.state() == both.state()) ++agree;
  }
  return agree;
}

template <template <class> class Rule>
double forced_square(double beta, std::size_t tokens, std::uint64_t seed) {
  constexpr std::size_t d = 16;
  philox random(seed, 8);
  Rule<double> machine(d, 1);
  std::vector<double> k(d);
  std::vector<double> v(1);
  std::vector<double> o(1);
  double sum = 0;
  std::size_t n = 0;
  for (std::size_t t = 0; t < tokens; ++t) {
    shared::draw(random, k);
    shared::normalise(k);
    if (t >= tokens / 4) {
      machine.read(k, o);
      sum += o[0] * o[0];
      ++n;
    }
    v[0] = random.normal();
    machine.step(k, v, beta);
  }
  return sum / static_cast<double>(n);
}

}  // namespace

std::size_t median_horizon(std::vector<std::size_t> horizons) {
  if (horizons.empty()) return 0;
  std::sort(horizons.begin(), horizons.end(), [](std::size_t a, std::size_t b) { return a - 1 < b - 1; });  // 0 last
  return horizons[horizons.size() / 2];
}

void add_conventions(const run_options& options, const settings&, report& r) {
  constexpr std::size_t steps = 24;
  table t;
  t.id = "fixed-points";
  t.title = "One unit key and the value 1 for ever: kᵀS after 1, 2, 3, 4, … 24 steps";
  t.columns = {"convention", "β", "1", "2", "3", "4", {"24", 10}, {"limit", 4}, {"half-life of the distance", 4}};
  bool erase_half = true;
  bool both_whole = true;
  bool cycles = true;
  for (const rational& beta : {fraction(1, 2), fraction(3, 4), fraction(15, 16), fraction(127, 128), rational(1)}) {
    for (const bool both : {false, true}) {
      const auto x = both ? iterate<negative_eigenvalues_both>(beta, steps) : iterate<negative_eigenvalues_erase>(beta, steps);
      const rational target = both ? rational(1) : fraction(1, 2);
      const rational lambda = 1 - 2 * beta;
      // s_t = target (1 - lambda^t), decided exactly.
      rational power(1);
      bool follows = true;
      for (const rational& s : x) {
        power *= lambda;
        follows = follows && s == target * (1 - power);
      }
      (both ? both_whole : erase_half) &= follows;
      if (beta == 1) cycles = cycles && x[1] == 0 && x[3] == 0 && x[0] == x[2] && x[0] == 2 * target;
      t.rows.push_back({both ? "both terms doubled (public code)" : "transition doubled (as printed)", beta.str(), x[0].str(),
                        x[1].str(), x[2].str().size() < 12 ? x[2].str() : "-", x[3].str().size() < 12 ? x[3].str() : "-",
                        round_to<double>(x.back()), beta == 1 ? cell("none") : cell(round_to<double>(target)),
                        half_life(lambda)});
    }
  }
  t.note = "In rationals, k = (3/5, 4/5). The half-life is that of |1 − 2β|.";
  r.findings.push_back({"fixed-points",
                        erase_half && both_whole && cycles
                            ? "With one pair for ever kᵀS after t steps is v (1 − (1 − 2β)ᵗ) where both terms are doubled and "
                              "half of that where only the transition "
                              "is: the printed form stores v/2. At β = 1 neither converges: the state alternates, for ever, "
                              "between 0 and v (printed form) or 0 and "
                              "2v (both doubled)."
                            : "The fixed points are not where the closed form puts them.",
                        evidence::exhaustive(10 * steps),
                        {{"erase_half", erase_half}, {"both_whole", both_whole}, {"cycles", cycles}},
                        "s′ = (1 − 2β) s + c v, c = β or 2β; every iterate decided in rationals."});
  constexpr std::size_t tokens = 200;
  const std::size_t agree = agreeing_states(tokens, options.seed);
  r.findings.push_back(
      {"conventions-differ-by-half-the-value",
       agree == tokens
           ? "The printed form is the public one with values v/2, for all keys, steps and lengths: the same transition, the same "
             "margin, half the memory. What is claimed of eigenvalues holds of both or of neither."
           : "The two forms differ by more than the factor 2 in v: " + std::to_string(agree) + " of " + std::to_string(tokens) +
                 " states agree.",
       evidence::proved("algebra.wy.negative_eigenvalue_conventions"),
       {{"agree", agree}, {"tokens", tokens}},
       "S(I − 2βkkᵀ) + βvkᵀ = S(I − bkkᵀ) + b(v/2)kᵀ with b = 2β. Also compared in rationals, token by token."});

  table forced;
  forced.id = "forced-state";
  forced.title = "E (kᵀS)² for fresh unit keys and independent values with E v² = 1";
  forced.columns = {"β", {"both doubled: b/(2 − b)", 4}, {"run", 3}, {"printed form: a quarter", 4}, {"run", 3}};
  const std::size_t length = options.full ? 400000 : 40000;
  double worst = 0;
  for (const double beta : {0.5, 0.75, 0.9, 0.96875, 0.9921875}) {
    const double expected = 2 * beta / (2 - 2 * beta);
    const double both = forced_square<negative_eigenvalues_both>(beta, length, options.seed);
    const double erase = forced_square<negative_eigenvalues_erase>(beta, length, options.seed);
    worst = std::max(worst, std::fabs(both / expected - 1));
    forced.rows.push_back({beta, expected, both, expected / 4, erase});
  }
  forced.note = "d = 16, " + count(length) +
                " tokens, the first quarter left out, one run: deviations of some per cent, more as β nears 1.";
  r.findings.push_back(
      {"forced-state",
       "The price of reflections in writing: with fresh keys and independent values the read-out's mean square "
       "is b/(2 − b) E v², b = 2β: 1 at β = "
       "½, 9 at 0.9, " +
           number(2 * 0.9921875 / (2 - 2 * 0.9921875), 3) +
           " at bf16's safe margin, a quarter of it in the printed form. |λ| ≤ 1 bounds the transition, not "
           "what values build up.",
       evidence::proved(),
       {{"at_safe_margin", 2 * 0.9921875 / (2 - 2 * 0.9921875)}},
       "|S′|² = |S|² − b(2 − b)|kᵀS|² + b²|v|² in expectation, keys fresh and uniform, values independent. For one "
       "repeated key see study `discretisation`."});
  r.findings.push_back({"forced-state-runs",
                        "The runs are within " + number(100 * worst, 2) + " % of that.",
                        evidence::sampled(length, options.seed, "of a run: that is the number"),
                        {{"worst", worst}},
                        "Five β, d = 16, both conventions; table `forced-state`."});
  r.tables.push_back(std::move(t));
  r.tables.push_back(std::move(forced));
}

void add_margins(const run_options&, const settings&, report& r) {
  table t;
  t.id = "half-life";
  t.title = "The price of the margin: |λ| = |1 − b| at b = 2β, and the half-life of an eigen-direction in reflections";
  t.columns = {"b", "β", "why", {"|λ|", 12}, {"half-life", 5}};
  const auto add = [&](const rational& b, const std::string& why) {
    const rational lambda = 1 - b;
    t.rows.push_back(
        {round_to<double>(b), round_to<double>(rational(b / 2)), why, std::fabs(round_to<double>(lambda)), half_life(lambda)});
    return half_life(lambda);
  };
  static_cast<void>(add(rational(2), "no margin"));
  const double fp32_life = add(2 * (1 - 2 * exact(unit_roundoff(fp32))), "safe for every rounded fp32 unit key");
  const double fp16_life = add(2 * (1 - 2 * exact(unit_roundoff(fp16))), "safe for every rounded fp16 unit key");
  const double bf16_life = add(2 * (1 - 2 * exact(unit_roundoff(bf16))), "safe for every rounded bf16 unit key");
  static_cast<void>(add(exact(1.96875), "bf16, one number further"));
  static_cast<void>(add(exact(1.9375), "1.9375"));
  static_cast<void>(add(exact(1.875), "1.875"));
  static_cast<void>(add(exact(1.75), "1.75"));
  static_cast<void>(add(exact(1.5), "1.5"));
  t.note = "ln 2 / −ln |λ|. The safe steps are those of study `eigenvalues` (2(1 − 2u)); doubling β is exact, so β ≤ 1 − 2u.";
  r.findings.push_back({"margin-costs-memory",
                        "The safe margin has a price in memory: at b = 2(1 − 2u) a reflected direction keeps |λ| = 1 − 4u a step "
                        "and loses half in " +
                            number(bf16_life, 3) + " reflections in bf16 (b = 1.984375), " + number(fp16_life, 3) + " in fp16, " +
                            number(fp32_life, 3) +
                            " in fp32. A margin that a model is free to choose costs more: |λ| = 0.875 at b = 1.875 halves in " +
                            number(half_life(fraction(7, 8)), 3) + ".",
                        evidence::proved("float.key_norm.safe_step"),
                        {{"bf16", bf16_life}, {"fp16", fp16_life}, {"fp32", fp32_life}},
                        "|λ|ᵗ = ½; the logarithm in 256 bits. (The theorem is the margin.)"});

  table keys;
  keys.id = "unit-key";
  keys.title = "Normalising costs exactness: the key (1, −1)/√2 rounded to a format, at b = 2";
  keys.columns = {"format", {"|k|² − 1", 4}, {"λ + 1", 4}, {"half-life, reflections", 5}};
  double bf16_unit = 0;
  for (const format& f : {bf16, fp16, fp32, fp64}) {
    const rational square = unit_key_square(f);
    const rational lambda = 1 - 2 * square;
    const double life = half_life(lambda);
    if (f == bf16) bf16_unit = life;
    keys.rows.push_back({std::string(name_of(f)), round_to<double>(rational(square - 1)), round_to<double>(rational(lambda + 1)),
                         life > 0 ? cell(life) : cell("doubles in " + number(-life, 4))});
  }
  keys.note =
      "Exact rationals of the rounded key; the same key not normalised, (1, −1) at b = 1, is a reflection in every format.";
  r.findings.push_back(
      {"unit-key-is-not-a-reflection",
       "A normalised key is no longer a reflection: (1, −1)/√2 in bf16 at b = 2 has |λ| < 1 with a half-life of " +
           number(bf16_unit, 4) + " reflections, the same in fp16; in fp64 its |λ| exceeds 1. (1, −1) with b = 1 is exact.",
       evidence::exhaustive(4),
       {{"bf16", bf16_unit}},
       "1 − 2|k|² of the rounded key, in rationals."});

  // Logits whose sigmoid keeps beta <= 1 - 2u, and saturates.
  std::uint64_t cases = 0;
  double largest_safe = -HUGE_VAL;
  double first_one = HUGE_VAL;
  const double limit = 1 - 2 * unit_roundoff(bf16);
  for (std::int64_t i = shared::ordinal<bf16>(0.5); i <= shared::ordinal<bf16>(16); ++i) {
    const auto x = rounded<bf16>::from_exact(shared::from_ordinal<bf16>(i));
    const double s = sigmoid(x).value();
    ++cases;
    if (s <= limit) largest_safe = std::max(largest_safe, x.value());
    if (s == 1) first_one = std::min(first_one, x.value());
  }
  r.findings.push_back({"logit-margin",
                        "For β = sigmoid(x) in bf16 the margin β ≤ 1 − 2u means a logit x ≤ " + number(largest_safe, 6) +
                            "; from " + number(first_one, 6) + " on β is exactly 1 and the sign of |k|² − 1 decides.",
                        evidence::exhaustive(cases),
                        {{"largest_safe", largest_safe}, {"first_one", first_one}},
                        "Every bf16 logit in [½, 16], the correctly rounded sigmoid, which is monotone."});
  r.tables.push_back(std::move(t));
  r.tables.push_back(std::move(keys));
}

void add_words(const run_options& options, const settings& size, report& r) {
  exactness all;
  for (const std::size_t n : size.groups) {
    const exactness e = check_every_step(n);
    all.cases += e.cases;
    all.exact += e.exact;
  }
  r.findings.push_back({"words-are-exact",
                        all.exact == all.cases ? "What the negative range is for: with k = e_i − e_j (|k|² = 2) and b = 1 the "
                                                 "step exchanges rows i and j exactly, over rationals and in "
                                                 "bf16, fp16 and e4m3 with every operation rounded. So parity and the word "
                                                 "problems of S₃ and S₅ are followed without error "
                                                 "for words of every length, n − 1 steps a token."
                                               : std::to_string(all.cases - all.exact) + " of " + std::to_string(all.cases) +
                                                     " steps are not exact.",
                        evidence::exhaustive(all.cases),
                        {{"exact", all.exact}, {"cases", all.cases}},
                        "Every element of S₂, S₃, S₅ times every transposition; by induction every word. Entries and products "
                        "are 0, ±1. (I − k kᵀ with |k|² = 2 is "
                        "a reflection: algebra.rank_one.step_reflection.)"});
  r.findings.push_back({"without-negative-range",
                        "With λ ≥ 0 none of this can be: det(I − b k kᵀ) = λ, so a product of such steps has determinant ≥ 0 and "
                        "never is an odd permutation; at λ = 0 "
                        "(b = 1, unit key) the first exchange leaves a tie.",
                        evidence::proved(),
                        {{"determinant_sign", 1}},
                        "The determinant is multiplicative; an odd permutation matrix has determinant −1. Grazzi et al., "
                        "\"Unlocking State-Tracking in Linear RNNs "
                        "Through Negative Eigenvalues\", prove more: no finite-precision recurrence with non-negative "
                        "eigenvalues counts parity."});

  struct job {
    std::size_t group, how, step, word;
  };
  std::vector<job> jobs;
  for (std::size_t g = 0; g < size.groups.size(); ++g) {
    for (std::size_t e = 0; e < executions.size(); ++e) {
      for (std::size_t b = 0; b < size.steps.size(); ++b) {
        const std::size_t words = executions[e].reference ? size.reference_words : size.words;
        for (std::size_t w = 0; w < words; ++w) jobs.push_back({g, e, b, w});
      }
    }
  }
  std::vector<horizon> outcomes(jobs.size());
  const std::size_t done = for_each_index(jobs.size(), options, "words", [&](std::size_t i) {
    const job& j = jobs[i];
    // The reference of a step at which nothing decays has nothing to show in a long run.
    const bool still = executions[j.how].reference && size.steps[j.step] == 2;
    const std::size_t tokens = still                         ? std::min<std::size_t>(size.tokens, 64)
                               : executions[j.how].reference ? size.reference_tokens
                                                             : size.tokens;
    outcomes[i] = follow_word(executions[j.how], size.groups[j.group], size.steps[j.step], true, tokens, options.seed, j.word);
  });
  if (done < jobs.size()) {
    r.unfinished.emplace_back("Words: interrupted before all runs were done.");
    return;
  }
  struct summary {
    std::size_t wrong = 0, faint = 0, least = 0, most = 0;
    double lead = 0;
  };
  const auto summarise = [&](std::size_t g, std::size_t e, std::size_t b) {
    std::vector<std::size_t> wrong;
    std::vector<std::size_t> faint;
    std::vector<double> lead;
    for (std::size_t i = 0; i < jobs.size(); ++i) {
      if (jobs[i].group != g || jobs[i].how != e || jobs[i].step != b) continue;
      wrong.push_back(outcomes[i].wrong);
      faint.push_back(outcomes[i].faint);
      lead.push_back(outcomes[i].lead);
    }
    std::sort(lead.begin(), lead.end());
    const auto later = [](std::size_t a, std::size_t c) { return a - 1 < c - 1; };
    return summary{median_horizon(wrong), median_horizon(faint), *std::min_element(wrong.begin(), wrong.end(), later),
                   *std::max_element(wrong.begin(), wrong.end(), later), lead[lead.size() / 2]};
  };
  table t;
  t.id = "words";
  t.title = "First wrong answer and first lead below ½, in tokens, medians (range of the first wrong answer)";
  t.columns = {"group", "execution"};
  for (const double b : size.steps) t.columns.push_back({"b = " + number(b, 8)});
  for (std::size_t g = 0; g < size.groups.size(); ++g) {
    for (std::size_t e = 0; e < executions.size(); ++e) {
      std::vector<cell> row{size.groups[g] == 2   ? "S₂ (parity)"
                            : size.groups[g] == 3 ? "S₃"
                                                  : "S₅",
                            std::string(executions[e].name)};
      for (std::size_t b = 0; b < size.steps.size(); ++b) {
        const summary s = summarise(g, e, b);
        row.emplace_back(s.wrong == 0 ? "none; faint " + (s.faint == 0 ? std::string("never") : count(s.faint)) + "; lead " +
                                            number(s.lead, 2)
                                      : count(s.wrong) + " (" + count(s.least) + "–" + (s.most == 0 ? "none" : count(s.most)) +
                                            "); faint " + count(s.faint));
      }
      t.rows.push_back(std::move(row));
    }
  }
  t.note = "Unit keys (e_i − e_j)/√2 rounded to the key's format, one word per run of up to " + count(size.tokens) +
           " uniformly random elements, " + std::to_string(size.words) +
           " words (256 bits: " + std::to_string(size.reference_words) +
           "). None: no wrong answer; lead: of the right entry over the next at the end. In 256 bits, b = 2 is run for 64 "
           "tokens. Parity is never wrong in exact arithmetic: its lead is |1 − b|ⁿ; that 256 bits are wrong at b = 1.5 is the "
           "256 bits.";

  const auto place = [&](double b) {
    return static_cast<std::size_t>(std::find(size.steps.begin(), size.steps.end(), b) - size.steps.begin());
  };
  const std::size_t s5 = size.groups.size() - 1;
  constexpr std::size_t bf16_run = 0;
  constexpr std::size_t fp32_run = 3;
  constexpr std::size_t reference_run = 5;
  const std::size_t margin = place(1.984375);
  const std::size_t coarse = place(1.75);
  const summary exact_margin = summarise(s5, reference_run, margin);
  const summary exact_coarse = summarise(s5, reference_run, coarse);
  const summary fp32_margin = summarise(s5, fp32_run, margin);
  const summary bf16_margin = summarise(s5, bf16_run, margin);
  r.findings.push_back({"margin-costs-words",
                        "A margin makes S₅ finite even in 256-bit arithmetic: an exchange with b < 2 leaves a mixture, and the "
                        "first wrong answer comes after " +
                            horizon_text(exact_margin.wrong, size.reference_tokens) + " tokens at b = 1.984375 and " +
                            horizon_text(exact_coarse.wrong, size.reference_tokens) +
                            " at 1.75 (256 bits, medians); the lead is below ½ after " +
                            horizon_text(exact_margin.faint, size.reference_tokens) + " and " +
                            horizon_text(exact_coarse.faint, size.reference_tokens) + ".",
                        evidence::sampled(size.reference_words, options.seed, "range in the table"),
                        {{"wrong_margin", exact_margin.wrong},
                         {"wrong_coarse", exact_coarse.wrong},
                         {"faint_margin", exact_margin.faint},
                         {"faint_coarse", exact_coarse.faint}},
                        "Each transposition shrinks the difference of two rows by |1 − b| and nothing else; doubly "
                        "stochastic products tend to 1/n."});
  const bool freezes = fp32_margin.wrong == 0 && bf16_margin.wrong == 0 && bf16_margin.lead > 0;
  r.findings.push_back(
      {"rounding-freezes-the-decay",
       freezes ? "A rounded state does not follow that decay to the end: at b = 1.984375 the lead of a bf16 state stops at " +
                     number(bf16_margin.lead, 2) + " and that of an fp32 state at " + number(fp32_margin.lead, 2) +
                     ", with no wrong answer in " + count(size.tokens) +
                     " tokens: once the mixing is below half a unit in the last place an exchange is exact again. The answer "
                     "survives, its lead does not."
               : "At b = 1.984375 the first wrong answer of S₅ comes after " + horizon_text(bf16_margin.wrong, size.tokens) +
                     " tokens with a bf16 state and " + horizon_text(fp32_margin.wrong, size.tokens) + " with an fp32 state.",
       evidence::sampled(size.words, options.seed, "range in the table"),
       {{"bf16_lead", bf16_margin.lead}, {"fp32_lead", fp32_margin.lead}, {"freezes", freezes}},
       "Medians over words; the state rounded to nearest after each step. See finding dead-zone of study `horizon`."});
  const summary unit_bf16 = summarise(s5, bf16_run, place(2));
  r.findings.push_back(
      {"unit-keys-at-two",
       "At b = 2 with unit keys rounded to bf16, whose |λ| falls short of 1 by 4·10⁻⁴, S₅ has " +
           (unit_bf16.wrong == 0 ? "no wrong answer in " + count(size.tokens) + " tokens"
                                 : "its first wrong answer after " + count(unit_bf16.wrong) + " tokens") +
           " and ends with a lead of " + number(unit_bf16.lead, 3) + " (bf16 state), " +
           number(summarise(s5, 2, place(2)).lead, 3) +
           " (fp32 state). No step looked at here has |λ| > 1; see `eigenvalues` for keys that have.",
       evidence::sampled(size.words, options.seed, "range in the table"),
       {{"bf16_lead", unit_bf16.lead}, {"mixed_lead", summarise(s5, 2, place(2)).lead}, {"wrong", unit_bf16.wrong}},
       "The same runs."});

  figure f;
  f.id = "words";
  f.title = "Tokens until the lead of the right answer is below ½, and until the first wrong answer";
  f.caption =
      "Medians over random words, against the margin 2 − b, unit keys. The lead fades as the half-life does (line: half-life in "
      "reflections). Where a "
      "point is missing there was no wrong answer within the run (" +
      count(size.tokens) + " tokens, 256 bits " + count(size.reference_tokens) +
      "). The order of the formats is the reverse of their precision: the coarser state stops decaying earlier and stays right "
      "longer.";
  f.alt = "Three panels, S2, S3 and S5; horizons fall as the margin grows, parallel to the half-life.";
  f.columns = 3;
  f.shared_y = true;
  for (std::size_t g = 0; g < size.groups.size(); ++g) {
    panel p;
    p.title = size.groups[g] == 2 ? "S₂ (parity)" : size.groups[g] == 3 ? "S₃" : "S₅";
    p.x = {"margin 2 − b", axis_scale::logarithmic, 0.01, 1};
    p.y = {"tokens", axis_scale::logarithmic, 0.8, static_cast<double>(2 * size.reference_tokens)};
    series life{"half-life", {}, {}};
    series faint{"lead below ½, 256 bits", {}, {}, series_style::points};
    series wrong{"wrong, 256 bits", {}, {}, series_style::points};
    series fp32_wrong{"wrong, fp32 state", {}, {}, series_style::points};
    series bf16_wrong{"wrong, bf16 state", {}, {}, series_style::points};
    for (std::size_t b = 0; b < size.steps.size(); ++b) {
      const double away = 2 - size.steps[b];
      if (away == 0 || away >= 1) continue;
      const auto at = [&](std::size_t h) { return h == 0 ? std::numeric_limits<double>::quiet_NaN() : static_cast<double>(h); };
      life.x.push_back(away);
      life.y.push_back(half_life(exact(size.steps[b] - 1)));
      for (series* s : {&faint, &wrong, &fp32_wrong, &bf16_wrong}) s->x.push_back(away);
      faint.y.push_back(at(summarise(g, reference_run, b).faint));
      wrong.y.push_back(at(summarise(g, reference_run, b).wrong));
      fp32_wrong.y.push_back(at(summarise(g, fp32_run, b).wrong));
      bf16_wrong.y.push_back(at(summarise(g, bf16_run, b).wrong));
    }
    p.curves = {std::move(life), std::move(faint), std::move(wrong), std::move(fp32_wrong), std::move(bf16_wrong)};
    f.panels.push_back(std::move(p));
  }
  r.tables.push_back(std::move(t));
  r.figures.push_back(std::move(f));
}

}  // namespace deltaproof::detail::negative_eigenvalues
