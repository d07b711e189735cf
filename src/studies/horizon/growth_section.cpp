// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT

#include <algorithm>
#include <array>
#include <cmath>
#include <string>
#include <vector>

#include "deltaproof/number/convert.hpp"
#include "deltaproof/rule/rules.hpp"
#include "studies/horizon/growth.hpp"
#include "studies/horizon/sections.hpp"

namespace deltaproof::detail::horizon {
namespace {

constexpr std::array<double, 5> squared_norms{0.25, 1, 4, 16, 64};

constexpr double fp32_range = 38.531839444989587;  // log10 of the largest fp32

/// One rule at one x, or at a Gaussian key's own x for each token.
struct member {
  std::string rule;
  double squared_norm = 0;       // 0: keys with entries N(0, 1), not normalised
  double stability = 0;          // R(x), of the fixed norm
  std::vector<double> strength;  // x phi(x)
};

/// x phi(x), in fp64 with a correctly rounded exponential.
template <class Rule>
double strength_at(Rule, double x) {
  using number = rounded<fp64>;
  return (number::from_exact(x) * Rule::gain(number::from_exact(x))).value();
}

template <class Rule>
double stability_at(Rule, double x) {
  return Rule::stability(rounded<fp64>::from_exact(x)).value();
}

std::vector<member> fixed_members() {
  std::vector<member> result;
  for (const double n : squared_norms) {
    for_each_rule(
        [&](auto rule) { result.push_back({std::string(rule.name), n, stability_at(rule, n), {strength_at(rule, n)}}); });
  }
  return result;
}

std::vector<member> gaussian_members(const key_set& keys) {
  std::vector<member> result;
  for_each_rule([&](auto rule) {
    member m{std::string(rule.name), 0, 0, {}};
    m.strength.reserve(keys.tokens());
    for (std::size_t t = 0; t < keys.tokens(); ++t) {
      m.strength.push_back(strength_at(rule, keys.relative_square[keys.index[t]] * static_cast<double>(keys.key_dim)));
    }
    result.push_back(std::move(m));
  });
  return result;
}

double middle(const log_bracket& b) { return 0.5 * (b.lower + b.upper); }

series curve(std::string label, const growth& g) {
  series s{std::move(label), {}, {}};
  for (std::size_t i = 0; i < g.tokens.size(); ++i) {
    s.x.push_back(static_cast<double>(g.tokens[i]));
    s.y.push_back(middle(g.log10_norm[i]));
  }
  return s;
}

/// What all norms taken together say about the theorem |R|^(T/d) <= |P_T| <= max(1, |R|)^T.
struct theorem_check {
  std::uint64_t norms = 0;
  std::uint64_t outside = 0;
  double largest_above_one = 0;  // log10 |P_T|, over all |R| <= 1
};

void check(const member& m, const growth& g, std::size_t key_dim, theorem_check& into) {
  const double log_r = log10_of(std::fabs(m.stability));
  for (std::size_t i = 0; i < g.tokens.size(); ++i) {
    const double tokens = static_cast<double>(g.tokens[i]);
    const double high = log_r > 0 ? tokens * log_r : 0;
    const double low = tokens / static_cast<double>(key_dim) * log_r;
    // Twice d 2^-52 log10(e) a token, what rounding may add to a logarithm.
    const double slack = 1e-9 + static_cast<double>(key_dim) * tokens * 0x1p-52;
    ++into.norms;
    if (g.log10_norm[i].lower > high + slack || g.log10_norm[i].upper < low - slack) ++into.outside;
    if (log_r <= 0) into.largest_above_one = std::max(into.largest_above_one, g.log10_norm[i].lower);
  }
}

/// First of 1, 2, ... at which a straight line of that slope passes the range of fp32.
std::uint64_t leaves_fp32(double log10_per_token) { return static_cast<std::uint64_t>(std::ceil(fp32_range / log10_per_token)); }

struct growth_data {
  std::vector<member> members;
  std::vector<member> gaussian;
  std::array<std::vector<growth>, 4> by_kind;  // of `members`; one repeated: a short run as a check
  std::vector<growth> unnormalised;            // of `gaussian`
  std::vector<std::size_t> at;
  bool complete = false;
};

growth_data compute(const run_options& options, const settings& size) {
  growth_data data;
  data.members = fixed_members();
  data.at = checkpoints(size.tokens);
  const std::vector<std::size_t> short_run = checkpoints(std::min<std::size_t>(size.tokens, 1000));
  data.complete = true;
  for (std::size_t kind = 0; kind < key_kinds.size(); ++kind) {
    data.complete = data.complete && !options.stopped();
    if (!data.complete) break;
    const key_set keys = make_keys(key_kinds[kind], size.tokens, size.key_dim, options.seed);
    const auto& at = key_kinds[kind] == key_kind::repeated ? short_run : data.at;
    data.by_kind[kind].resize(data.members.size());
    const std::size_t extra = key_kinds[kind] == key_kind::fresh ? std::size_t{7} : 0;
    if (extra > 0) {
      data.gaussian = gaussian_members(keys);
      data.unnormalised.resize(extra);
    }
    const std::size_t jobs = data.members.size() + extra;
    const std::size_t done =
        for_each_index(jobs, options, "products, keys: " + std::string(name_of(key_kinds[kind])), [&](std::size_t i) {
          if (i < data.members.size())
            data.by_kind[kind][i] = product_growth(keys, data.members[i].strength, at);
          else
            data.unnormalised[i - data.members.size()] =
                product_growth(keys, data.gaussian[i - data.members.size()].strength, at);
        });
    data.complete = data.complete && done == jobs;
  }
  return data;
}

figure growth_figure(const growth_data& data, const settings& size) {
  figure f;
  f.id = "growth";
  f.title = "Norm of the product of T transitions, one panel for each key norm";
  f.columns = 3;
  f.shared_y = true;
  const std::string tokens = number(static_cast<double>(size.tokens), 6);
  f.caption = "log₁₀ of the spectral norm of the product of the first T factors I − βφ(x) k kᵀ, β = 1, d = " +
              std::to_string(size.key_dim) + ", T = 1 … " + tokens +
              ", the same fresh directions for every rule and panel; the height of a panel is the range of fp32. A rule whose "
              "|R(x)| exceeds 1 leaves it through the top; all others through the bottom, and the nearer |R| is to 1 the later. "
              "Only exact (EFLA), implicit and crank_nicolson never rise, whatever the norm. Last panel: Gaussian keys that are "
              "not normalised, each with its own |k|².";
  f.alt =
      "Six panels of curves against tokens. With squared norm one quarter and one every rule falls. From four on Euler and the "
      "Runge-Kutta rules rise without bound while exact, implicit and Crank-Nicolson fall.";
  const std::size_t rule_count = data.gaussian.size();
  for (std::size_t n = 0; n <= squared_norms.size(); ++n) {
    panel p;
    p.title = n < squared_norms.size() ? "|k|² = " + number(squared_norms[n])
                                       : "drawn: |k|² = " + std::to_string(size.key_dim) + " ± " +
                                             number(std::sqrt(2.0 * static_cast<double>(size.key_dim)), 2);
    p.x = {"tokens T", axis_scale::logarithmic, 1, static_cast<double>(size.tokens)};
    p.y = {"log₁₀ |product|", axis_scale::linear, -fp32_range, fp32_range};
    p.marks = {{mark_direction::horizontal, 0, ""}};
    for (std::size_t r = 0; r < rule_count; ++r) {
      p.curves.push_back(n < squared_norms.size()
                             ? curve(data.members[n * rule_count + r].rule, data.by_kind[0][n * rule_count + r])
                             : curve(data.gaussian[r].rule, data.unnormalised[r]));
    }
    f.panels.push_back(std::move(p));
  }
  return f;
}

figure keys_figure(const growth_data& data, const settings& size) {
  figure f;
  f.id = "keys";
  f.title = "The same two factors, four kinds of keys (|k|² = 4)";
  f.columns = 2;
  f.caption =
      "Left, Euler, R = −3: log₁₀ of the norm on a logarithmic axis. The shaded band is what is proved for every sequence of "
      "keys, 3^(T/d) ≤ |product| ≤ 3^T; one repeated key runs along its upper edge, fresh keys approach slope one near its lower "
      "edge. Right, EFLA, R = e⁻⁴: nothing rises. One repeated key and a vocabulary smaller than d leave directions untouched, "
      "so the norm is 1 for ever: what is stored there is neither lost nor healed. Fresh keys forget everything; clustered keys "
      "first along their centres, then slowly in the rest.";
  f.alt = "Left: four rising curves inside a band. Right: two curves stay at zero, two fall.";
  panel left;
  left.title = "Euler: growth";
  left.x = {"tokens T", axis_scale::logarithmic, 1, static_cast<double>(size.tokens)};
  left.y = {"log₁₀ |product|", axis_scale::logarithmic, 0.05, static_cast<double>(size.tokens)};
  panel right = left;
  right.title = "EFLA: decay";
  right.y = {"log₁₀ |product|", axis_scale::linear, -12, 1};
  const std::size_t rule_count = data.gaussian.size();
  const std::size_t euler_at = 2 * rule_count;  // |k|^2 = 4, first rule
  const std::size_t exact_at = euler_at + 1;
  const double log_r = log10_of(std::fabs(data.members[euler_at].stability));
  series band{"proved range", {}, {}, series_style::band, {}};
  series repeated_growth{std::string(name_of(key_kind::repeated)), {}, {}};
  series repeated_exact = repeated_growth;
  for (const std::size_t t : data.at) {
    const double tokens = static_cast<double>(t);
    band.x.push_back(tokens);
    band.y.push_back(tokens * log_r / static_cast<double>(size.key_dim));
    band.y_upper.push_back(tokens * log_r);
    repeated_growth.x.push_back(tokens);
    repeated_growth.y.push_back(tokens * log_r);
    repeated_exact.x.push_back(tokens);
    repeated_exact.y.push_back(0);
  }
  left.curves.push_back(std::move(band));
  for (std::size_t kind = 0; kind < key_kinds.size(); ++kind) {
    if (key_kinds[kind] == key_kind::repeated) {
      left.curves.push_back(repeated_growth);
      right.curves.push_back(repeated_exact);
    } else {
      left.curves.push_back(curve(std::string(name_of(key_kinds[kind])), data.by_kind[kind][euler_at]));
      right.curves.push_back(curve(std::string(name_of(key_kinds[kind])), data.by_kind[kind][exact_at]));
    }
  }
  f.panels = {std::move(left), std::move(right)};
  return f;
}

table growth_table(const growth_data& data, const settings& size) {
  table t;
  t.id = "growth";
  t.title = "log₁₀ of the norm after " + number(static_cast<double>(size.tokens), 6) + " tokens";
  t.columns = {"|k|²",
               "rule",
               "R(x)",
               {"max |λ| of a factor"},
               {"exponent, fresh keys (closed form)"},
               {"fresh", 6},
               {"one repeated (closed form)", 6},
               {"vocabulary of 8 (0: exact)", 6},
               {"8 clusters", 6}};
  for (std::size_t i = 0; i < data.members.size(); ++i) {
    const member& m = data.members[i];
    const double log_r = log10_of(std::fabs(m.stability));
    const auto last = [&](std::size_t kind) { return middle(data.by_kind[kind][i].log10_norm.back()); };
    t.rows.push_back({number(m.squared_norm), m.rule, m.stability, std::max(1.0, std::fabs(m.stability)),
                      fresh_exponent(m.stability, size.key_dim), last(0), std::max(0.0, log_r * static_cast<double>(size.tokens)),
                      log_r > 0 || vocabulary_size >= size.key_dim ? last(2) : 0.0, last(3)});
  }
  for (std::size_t r = 0; r < data.gaussian.size(); ++r) {
    t.rows.push_back({"drawn, mean " + std::to_string(size.key_dim), data.gaussian[r].rule, "", "", "",
                      middle(data.unnormalised[r].log10_norm.back()), "", "", ""});
  }
  t.note =
      "Exponent: natural logarithm a token. The products of fresh, vocabulary and cluster keys are whole d × d matrices in fp64, "
      "rescaled by powers of two; their norm is bracketed to 10⁻⁶ in log₁₀ and the middle is shown: neither a lower bound nor "
      "rounded up. One repeated key: max(1, |R|)^T, exact. A vocabulary smaller than d leaves a direction alone, so its norm is "
      "exactly 1 where |R| ≤ 1. Drawn: Gaussian keys, not normalised.";
  return t;
}

}  // namespace

void add_growth(const run_options& options, const settings& size, report& r) {
  const growth_data data = compute(options, size);
  if (!data.complete) {
    r.unfinished.emplace_back("Growth of the products of exact factors: interrupted before all rules and norms were run.");
    return;
  }
  const std::size_t rule_count = data.gaussian.size();
  theorem_check all;
  double repeated_off = 0;
  for (std::size_t i = 0; i < data.members.size(); ++i) {
    for (std::size_t kind = 0; kind < key_kinds.size(); ++kind) check(data.members[i], data.by_kind[kind][i], size.key_dim, all);
    const double log_r = std::max(0.0, log10_of(std::fabs(data.members[i].stability)));
    const growth& g = data.by_kind[1][i];
    for (std::size_t c = 0; c < g.tokens.size(); ++c) {
      repeated_off = std::max(repeated_off, std::fabs(middle(g.log10_norm[c]) - log_r * static_cast<double>(g.tokens[c])));
    }
  }
  r.findings.push_back(
      {"product-bracket",
       "Where every token has the same R = R(β|k|²), every sequence of keys obeys |R|^(T/d) ≤ |product of T factors| ≤ max(1, "
       "|R|)^T. So with keys of one norm the product is bounded for all key sequences if |R| ≤ 1 and for none if |R| > 1.",
       evidence::proved("algebra.non_expansive.run_norm"),
       {},
       "Each factor is symmetric with eigenvalues R and 1, d − 1 times: its norm is max(1, |R|), and |det|^(1/d), at most the "
       "norm, is |R|^(T/d). One repeated key attains the upper bound, an orthonormal basis in turn the lower one. "
       "(The theorem is the upper bound; the lower one is checked by machine with a factor d!: algebra.non_expansive.product_growth_at_least.)"});
  r.findings.push_back(
      {"product-norms",
       std::string(all.outside == 0 ? "All" : "Not all") +
           " computed norms lie inside the proved range: " + count(all.norms - all.outside) + " of " + count(all.norms) +
           " (rules × norms × kinds of keys × token counts); with |R| ≤ 1 the largest is 1 + " +
           number(all.largest_above_one * 2.302585092994046, 2) +
           ". The runs with one repeated key agree with max(1, |R|)^T to " + number(repeated_off, 2) + " in log₁₀.",
       evidence::measured(),
       {{"norms", all.norms},
        {"outside", all.outside},
        {"largest_log10_with_R_at_most_1", all.largest_above_one},
        {"repeated_key_log10_deviation", repeated_off}},
       "Products in fp64 with exact powers of two taken out; norms from both sides by repeated squaring of the Gram matrix."});
  const growth& euler_fresh = data.by_kind[0][2 * rule_count];
  const double euler_rate = middle(euler_fresh.log10_norm.back()) / static_cast<double>(size.tokens);
  const double closed = fresh_exponent(data.members[2 * rule_count].stability, size.key_dim) * 0.43429448190325182765;
  double bounded_worst = -1;
  for (std::size_t i = 0; i < data.members.size(); ++i) {
    const std::string& rule = data.members[i].rule;
    if (rule != "exact" && rule != "implicit" && rule != "crank_nicolson") continue;
    for (std::size_t kind = 0; kind < key_kinds.size(); ++kind) {
      for (const log_bracket& b : data.by_kind[kind][i].log10_norm) bounded_worst = std::max(bounded_worst, b.lower);
    }
  }
  for (std::size_t i = 0; i < rule_count; ++i) {
    const std::string& rule = data.gaussian[i].rule;
    if (rule != "exact" && rule != "implicit" && rule != "crank_nicolson") continue;
    for (const log_bracket& b : data.unnormalised[i].log10_norm) bounded_worst = std::max(bounded_worst, b.lower);
  }
  r.findings.push_back(
      {"euler-against-efla",
       "On the same fresh keys with |k|² = 4 Euler (DeltaNet) grows by 10^" + number(euler_rate, 4) + " a token (theory 10^" +
           number(closed, 4) + ") and leaves the range of fp32 after " + count(leaves_fp32(euler_rate)) +
           " tokens, with one repeated key after " + count(leaves_fp32(log10_of(3))) +
           "; exact (EFLA), implicit and crank_nicolson " +
           (bounded_worst < 1e-6 ? "never exceed norm 1 at any |k|², normalised or not." : "exceed norm 1 somewhere."),
       evidence::measured(),
       {{"euler_log10_per_token", euler_rate},
        {"theory_log10_per_token", closed},
        {"euler_fresh_tokens_to_fp32_overflow", leaves_fp32(euler_rate)},
        {"euler_repeated_tokens_to_fp32_overflow", leaves_fp32(log10_of(3))},
        {"largest_log10_of_bounded_rules", bounded_worst}},
       "Slope of the fresh-key run to T = " + count(size.tokens) + ", seed " + std::to_string(options.seed) +
           ". That |R| ≤ 1 for every x ≥ 0 for these three rules is elementary: e^(−x), 1/(1+x), (2−x)/(2+x)."});
  r.figures.push_back(growth_figure(data, size));
  r.figures.push_back(keys_figure(data, size));
  r.tables.push_back(growth_table(data, size));
}

}  // namespace deltaproof::detail::horizon
