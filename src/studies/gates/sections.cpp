// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT

#include "studies/gates/sections.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <map>
#include <string>
#include <utility>

#include "deltaproof/kernel/regimes.hpp"
#include "deltaproof/number/convert.hpp"
#include "deltaproof/number/elementary.hpp"
#include "deltaproof/number/random.hpp"
#include "studies/gates/ratios.hpp"
#include "studies/shared/functions.hpp"

namespace deltaproof::detail::gates {
namespace {

constexpr std::array<format, 3> stores{fp32, bf16, fp16};
constexpr double ln2 = 0.69314718055994530942;

double decay_in(const format& f, double g) {
  const auto exact = shared::exp64(g);
  if (f == bf16) return round_to<bf16>(exact).value();
  if (f == fp16) return round_to<fp16>(exact).value();
  return round_to<fp32>(exact).value();
}

/// Gates of the library's regime `model-gates`, [head][token].
std::vector<std::vector<double>> model_gates(const run_options& options, const settings& size) {
  generation wanted;
  wanted.regime = "model-gates";
  wanted.seed = options.seed;
  wanted.batch = 1;
  wanted.tokens = size.tokens;
  wanted.key_dim = 1;
  wanted.value_dim = 1;
  wanted.key_heads = size.heads;
  wanted.value_heads = size.heads;
  const problem p = generate(wanted);
  std::vector<std::vector<double>> result(size.heads, std::vector<double>(size.tokens));
  for (std::size_t t = 0; t < size.tokens; ++t) {
    for (std::size_t h = 0; h < size.heads; ++h) result[h][t] = p.g->at(t * size.heads + h);
  }
  return result;
}

}  // namespace

void add_decays(const run_options& options, const settings& size, report& r) {
  if (options.stopped()) {
    r.unfinished.emplace_back("Decays: interrupted before anything was run.");
    return;
  }
  const auto gates_of = model_gates(options, size);
  const std::uint64_t n = size.heads * size.tokens;
  table t;
  t.id = "rounds-to-one";
  t.title = "Where e^g, stored, is 1: longer memories become endless ones";
  t.columns = {"format",
               {"largest g below 1", 9},
               {"true half-life there, tokens", 5},
               {"half-life of 1 − u, tokens", 5},
               {"model-like gates stored as 1", 3},
               {"heads with memory off by 10 %", 3},
               {"worst head: stored / true log decay", 4}};
  std::map<std::string, cell> values;
  double bf16_share = 0;
  double bf16_life = 0;
  double bf16_heads = 0;
  for (const format& f : {bf16, fp16, fp32}) {
    const rounding_to_one edge = rounds_to_one(f);
    std::uint64_t ones = 0;
    std::uint64_t off = 0;
    double worst = 1;
    for (const auto& head : gates_of) {
      double truth = 0;
      double kept = 0;
      for (const double g : head) {
        const double a = decay_in(f, g);
        if (a == 1) ++ones;
        truth += g;
        kept += a > 0 ? shared::ln(a) : g;
      }
      const double ratio = truth == 0 ? 1 : kept / truth + 0.0;
      if (std::fabs(ratio - 1) > 0.1) ++off;
      if (std::fabs(shared::ln(std::max(ratio, 1e-9))) > std::fabs(shared::ln(std::max(worst, 1e-9)))) worst = ratio;
    }
    const double life = -ln2 / edge.last_below;
    const double step = ln2 / -shared::ln(1 - unit_roundoff(f));
    const double share = static_cast<double>(ones) / static_cast<double>(n);
    const double heads = static_cast<double>(off) / static_cast<double>(size.heads);
    if (f == bf16) {
      bf16_share = share;
      bf16_life = life;
      bf16_heads = heads;
    }
    values[std::string(name_of(f)) + "_threshold"] = edge.last_below;
    values[std::string(name_of(f)) + "_share"] = share;
    t.rows.push_back({std::string(name_of(f)), edge.last_below, life, step, share, heads, worst});
  }
  t.note = "Numbers below 1 stand u apart, so e^g rounds to 1 for g > ln(1 − u/2). Model-like: " + count(n) + " gates of " +
           std::to_string(size.heads) + " heads, regime `model-gates`, seed " + std::to_string(options.seed) +
           "; log decay: sum of ln of the stored decays over the sum of g.";
  r.findings.push_back(
      {"decays-round-to-one",
       "A decay stored as e^g is 1 for g > ln(1 − u/2): in bf16 above " +
           number(std::get<double>(values["bf16_threshold"].value()), 4) + ", so a memory with a half-life of " +
           number(bf16_life, 4) + " tokens or more becomes endless; in fp16 from " +
           number(ln2 / -std::get<double>(values["fp16_threshold"].value()), 4) + " tokens, in fp32 from " +
           number(ln2 / -std::get<double>(values["fp32_threshold"].value()), 3) +
           ". The log decay g itself has no such edge: bf16 keeps it to one part in 256 at every size.",
       evidence::exhaustive(6), values,
       "Two neighbouring fp32 gates on either side of the step, e^g in 256 bits, per format; e^g and rounding are monotone."});
  r.findings.push_back({"model-gates-round-to-one",
                        "Of model-like gates " + number(100 * bf16_share, 3) +
                            " % are stored as 1 in bf16, and the log decay of " + number(100 * bf16_heads, 3) +
                            " % of the heads is off by more than a tenth (the table has the other formats).",
                        evidence::sampled(n, options.seed,
                                          "standard error of the share at most " +
                                              number(50 / std::sqrt(static_cast<double>(size.heads)), 2) + " % (heads differ)"),
                        {{"share", bf16_share}, {"heads", bf16_heads}},
                        "g = −A softplus(N(0,1) + bias), A in (0, 16), dt in [0.001, 0.1], as gated DeltaNet models start."});
  r.tables.push_back(std::move(t));

  figure f;
  f.id = "half-life";
  f.title = "Half-life of a decay stored as e^g against the half-life that was meant";
  f.caption =
      "ln 2 / −ln of the stored decay. On the diagonal nothing is lost. The stair ends where the next stored decay is 1: to its "
      "right the memory is "
      "endless. fp32 lies on the diagonal here.";
  f.alt = "Stairs that leave the diagonal upward, in bf16 from a hundred tokens on, in fp16 from a thousand.";
  panel p;
  p.title = "memory of one decay";
  p.x = {"half-life meant (tokens)", axis_scale::logarithmic, 10, 1e5};
  p.y = {"half-life stored (tokens)", axis_scale::logarithmic, 10, 1e5};
  for (const format& store : {bf16, fp16, fp32}) {
    series s{std::string(name_of(store)), {}, {}};
    double meant = 10;
    while (meant < 1e5) {
      const double a = decay_in(store, -ln2 / meant);
      s.x.push_back(meant);
      s.y.push_back(a < 1 ? ln2 / -shared::ln(a) : std::numeric_limits<double>::infinity());
      meant *= 1.02;
    }
    p.curves.push_back(std::move(s));
  }
  f.panels = {std::move(p)};
  r.figures.push_back(std::move(f));
}

void add_limits(const run_options& options, const settings& size, report& r) {
  struct job {
    std::size_t how, chunk, store;
  };
  std::vector<job> jobs;
  for (std::size_t h = 0; h < factorisations.size(); ++h) {
    for (std::size_t c = 0; c < size.chunks.size(); ++c) {
      for (std::size_t s = 0; s < stores.size(); ++s) jobs.push_back({h, c, s});
    }
  }
  std::vector<double> limits(jobs.size());
  const std::size_t done = for_each_index(jobs.size(), options, "limits", [&](std::size_t i) {
    limits[i] = measured_limit(factorisations[jobs[i].how].id, size.chunks[jobs[i].chunk], stores[jobs[i].store]);
  });
  if (done < jobs.size()) {
    r.unfinished.emplace_back("Limits: interrupted before all were found.");
    return;
  }
  std::array<double, 3> edge{};
  for (std::size_t s = 0; s < stores.size(); ++s) edge[s] = overflow_exponent(stores[s]);
  table t;
  t.id = "limits";
  t.title = "The most negative constant gate a factorisation bears, nats a token: found by running it | derived";
  t.columns = {"factorisation", "largest exponent"};
  for (const std::size_t c : size.chunks) {
    for (const format& s : stores) t.columns.push_back({"C = " + std::to_string(c) + ", " + std::string(name_of(s))});
  }
  double worst = 0;
  bool unbounded = true;
  std::size_t bounded = 0;
  for (std::size_t h = 0; h < factorisations.size(); ++h) {
    const factorisation id = factorisations[h].id;
    std::vector<cell> row{std::string(factorisations[h].name), id == factorisation::masked         ? "(C − 1)|g|"
                                                               : id == factorisation::factored     ? "C|g|"
                                                               : id == factorisation::middle_block ? "8|g|"
                                                                                                   : "0"};
    for (std::size_t i = 0; i < jobs.size(); ++i) {
      if (jobs[i].how != h) continue;
      const auto times = static_cast<double>(largest_exponent(id, size.chunks[jobs[i].chunk]));
      if (times == 0) {
        unbounded = unbounded && limits[i] == 1024;
        row.emplace_back(limits[i] == 1024 ? "none" : number(-limits[i], 4));
      } else {
        ++bounded;
        const double derived = edge[jobs[i].store] / times;
        worst = std::max(worst, std::fabs(limits[i] / derived - 1));
        row.emplace_back(number(-limits[i], 5) + " | " + number(-derived, 5));
      }
    }
    t.rows.push_back(std::move(row));
  }
  t.note =
      "G summed in fp32, exponentials correctly rounded fp32, factors then stored in the format named; found by bisection over "
      "fp32 gates. Derived: the "
      "largest x with a finite stored e^x, divided by the number of gates in the largest exponent.";
  const double sixteen = edge[0] / 16;
  r.findings.push_back({"limits-derived",
                        worst < 1e-4
                            ? "Every limit is one number divided by a count: a factor overflows once its exponent exceeds the "
                              "largest x with a finite e^x, " +
                                  number(edge[0], 8) + " in fp32, " + number(edge[1], 8) + " in bf16, " + number(edge[2], 8) +
                                  " in fp16; the exponent is C|g| for e^G_i · e^−G_j over a chunk of C rows. All " +
                                  std::to_string(bounded) + " limits found by running the factorisations agree to " +
                                  number(worst, 1) + " (relative)."
                            : "The derived limits miss those found by running by up to " + number(worst, 2) + " (relative).",
                        evidence::measured(),
                        {{"fp32", edge[0]}, {"bf16", edge[1]}, {"fp16", edge[2]}, {"worst", worst}, {"limits", bounded}},
                        "e^x is monotone, so two neighbouring fp32 numbers on either side prove each edge; the rest of the "
                        "difference is the rounding of the sum G."});
  r.findings.push_back(
      {"limits-found-by-hand",
       "The limit of −5.5 nats a token that users report for factored chunks of 16 rows in fp32 is −" + number(edge[0], 4) +
           "/16 = −" + number(sixteen, 5) + "; for 64 rows it is −" + number(edge[0] / 64, 4) + ", for 16 rows stored in fp16 −" +
           number(edge[2] / 16, 3) + ". Factoring at the middle of 16 rows doubles it to −" + number(edge[0] / 8, 4) +
           ", so that kernel's contract of [−5, 0) has a factor " + number(edge[0] / 8 / 5, 2) + " to spare.",
       evidence::proved(),
       {{"sixteen", sixteen}, {"sixty_four", edge[0] / 64}, {"middle", edge[0] / 8}, {"fp16_sixteen", edge[2] / 16}},
       "Reports: flashinfer #5032, attention-gym #394, tokamax #1327, fla #701. Inclusive sums: row C has exponent C|g|."});
  r.findings.push_back({"difference-is-safe",
                        unbounded ? "What is safe forms no positive exponent: the difference G_i − G_j for i ≥ j, the product of "
                                    "the decays, and q e^(G−R), k e^(R−G) with R "
                                    "the first row of the query's block have no limit (tested to −1024). A difference taken for "
                                    "all lanes and masked afterwards by a "
                                    "product is not among them: the lanes above the diagonal overflow from −" +
                                        number(edge[0] / 15, 4) + " (C = 16) and −" + number(edge[0] / 63, 4) +
                                        " (C = 64) on, and 0 · ∞ is NaN."
                                  : "A factorisation without positive exponents has a limit too: see the table.",
                        evidence::measured(),
                        {{"unbounded", unbounded}, {"masked_16", edge[0] / 15}, {"masked_64", edge[0] / 63}},
                        "g ≤ 0 makes G fall, so the exponent of a lower lane is at most 0."});
  const double subnormal = -subnormal_exponent(fp32);
  r.findings.push_back(
      {"digits-go-first",
       "Where subnormals are flushed the factored form fails earlier and silently: e^G_i is 0 once C|g| exceeds " +
           number(subnormal, 6) + ", at −" + number(subnormal / 16, 5) +
           " a token for C = 16: the row reads nothing, with no inf or NaN to tell; in fp16 storage from C|g| = " +
           number(-subnormal_exponent(fp16), 4) + ".",
       evidence::exhaustive(2),
       {{"fp32", subnormal}, {"fp16", -subnormal_exponent(fp16)}},
       "The largest x with e^x below the smallest normal number; bisection over fp32, monotone."});

  const auto gates_of = model_gates(options, size);
  table m;
  m.id = "model-gates";
  m.title = "Chunks of model-like gates that overflow the factored form";
  m.columns = {"C", "stored in", {"largest |G| of a chunk", 4}, {"share of chunks", 3}, {"share of heads", 3}};
  double share16 = 0;
  double share64 = 0;
  for (const std::size_t c : {std::size_t{16}, std::size_t{64}}) {
    for (std::size_t s = 0; s < stores.size(); ++s) {
      std::uint64_t chunks = 0;
      std::uint64_t over = 0;
      std::uint64_t heads = 0;
      double largest = 0;
      for (const auto& head : gates_of) {
        bool any = false;
        for (std::size_t first = 0; first + c <= head.size(); first += c) {
          double sum = 0;
          for (std::size_t i = 0; i < c; ++i) sum -= head[first + i];
          largest = std::max(largest, sum);
          ++chunks;
          if (sum > edge[s]) {
            ++over;
            any = true;
          }
        }
        if (any) ++heads;
      }
      const double share = static_cast<double>(over) / static_cast<double>(chunks);
      if (s == 0) (c == 16 ? share16 : share64) = share;
      m.rows.push_back(
          {c, std::string(name_of(stores[s])), largest, share, static_cast<double>(heads) / static_cast<double>(size.heads)});
    }
  }
  m.note = "Regime `model-gates`: the gates gated DeltaNet models start with; " + std::to_string(size.heads) + " heads, " +
           count(size.tokens) + " tokens.";
  r.findings.push_back(
      {"model-gates-overflow",
       "It is not a matter of strange inputs: of chunks with the gates a model starts with, " + number(100 * share16, 3) +
           " % of 16 rows and " + number(100 * share64, 3) + " % of 64 overflow the factored form in fp32.",
       evidence::sampled(size.heads * size.tokens / 64, options.seed, "heads differ: " + std::to_string(size.heads) + " drawn"),
       {{"sixteen", share16}, {"sixty_four", share64}},
       "|G_C| > 88.72 decided from the sum of the chunk's gates in fp64."});
  r.tables.push_back(std::move(t));
  r.tables.push_back(std::move(m));

  figure f;
  f.id = "limits";
  f.title = "The most negative gate each factorisation bears";
  f.caption =
      "|g| in nats a token at which the first factor overflows, against the rows of a chunk. Lines: derived, ln of the largest "
      "number over the count of gates; "
      "points: found by running the factorisation. The horizontal line is the limit people found by hand, −5.5 for 16 rows "
      "factored. "
      "Difference, product and first-row factors have no limit and are not drawn.";
  f.alt = "Falling lines with points on them, in fp32 eight times lower in fp16; 16 rows factored meet the line at 5.5.";
  f.columns = 2;
  f.shared_y = true;
  for (const std::size_t s : {std::size_t{0}, std::size_t{2}}) {
    panel p;
    p.title = "factors stored in " + std::string(name_of(stores[s]));
    p.x = {"rows of a chunk C", axis_scale::logarithmic, 12, 160, {16, 32, 64, 128}};
    p.y = {"|g| (nats a token)", axis_scale::logarithmic, 0.05, 20};
    if (s == 0) p.marks = {{mark_direction::horizontal, 5.5, "5.5, by hand"}};
    for (std::size_t h = 0; h < factorisations.size(); ++h) {
      const factorisation id = factorisations[h].id;
      if (largest_exponent(id, 16) == 0) continue;
      series line{std::string(factorisations[h].name), {}, {}};
      for (const std::size_t c : {std::size_t{16}, std::size_t{32}, std::size_t{64}, std::size_t{128}}) {
        line.x.push_back(static_cast<double>(c));
        line.y.push_back(edge[s] / static_cast<double>(largest_exponent(id, c)));
      }
      p.curves.push_back(std::move(line));
    }
    series found{"found by running", {}, {}, series_style::points};
    for (std::size_t c = 0; c < size.chunks.size(); ++c) {
      for (std::size_t i = 0; i < jobs.size(); ++i) {
        if (jobs[i].chunk != c || jobs[i].store != s || limits[i] == 1024) continue;
        found.x.push_back(static_cast<double>(size.chunks[c]));
        found.y.push_back(limits[i]);
      }
    }
    p.curves.push_back(std::move(found));
    f.panels.push_back(std::move(p));
  }
  r.figures.push_back(std::move(f));
}

void add_sums(const run_options& options, const settings& size, report& r) {
  if (options.stopped()) {
    r.unfinished.emplace_back("Sums: interrupted before anything was run.");
    return;
  }
  constexpr std::size_t chunk = 64;
  const double u = unit_roundoff(fp32);
  // Gates of one size: error of the ratios in units of |G_C| u.
  table law;
  law.id = "cumulative-sums";
  law.title = "Error of e^(G_i − G_j) by difference in fp32, C = 64, gates uniform in (−s, 0)";
  law.columns = {
      "s", {"|G_C|", 4}, {"worst relative error", 3}, {"/ (|G_C| u)", 3}, {"worst, ratios ≥ 1/2", 3}, {"/ (|G_C| u)", 3}};
  double largest_unit = 0;
  double smallest_unit = HUGE_VAL;
  bool inside = true;
  for (const double s : {0.01, 0.1, 1.0, 5.0, 20.0}) {
    double worst = 0;
    double near = 0;
    double total = 0;
    for (std::size_t d = 0; d < size.draws; ++d) {
      philox random(options.seed, 30 + d);
      std::vector<double> g(chunk);
      double sum = 0;
      for (double& x : g) {
        x = round_to<fp32>(-s * random.uniform()).value();
        sum -= x;
      }
      const matrix<double> exact = exact_ratios(g);
      const matrix<double> found = ratios(factorisation::difference, g, fp32);
      worst = std::max(worst, compare(found, exact, 1e-30).worst);
      near = std::max(near, compare(found, exact, 0.5).worst);
      total = std::max(total, sum);
    }
    const double unit = worst / (total * u);
    if (total > 4) {
      largest_unit = std::max(largest_unit, unit);
      smallest_unit = std::min(smallest_unit, unit);
      inside = inside && unit <= 2.0 * chunk + 4;
    }
    law.rows.push_back({s, total, worst, unit, near, near / (total * u)});
  }
  law.note = "Worst of " + std::to_string(size.draws) +
             " draws; ratios of at least 10⁻³⁰. At most 2C|G_C| u for the two sums, u|G_i − G_j| for the difference, u for "
             "the exponential.";
  r.findings.push_back(
      {"sums-lose-their-size",
       "A ratio taken from cumulative sums loses |G| u whatever the ratio itself is: between " + number(smallest_unit, 2) +
           " and " + number(largest_unit, 2) + " times |G_C| 2⁻²⁴ in the runs with |G_C| > 4" +
           (inside ? ", inside the proved 2C + 4." : ", outside the proved bound."),
       evidence::worst_found(size.draws * 5, options.seed),
       {{"largest", largest_unit}, {"smallest", smallest_unit}, {"inside", inside}},
       "Each of C additions errs by at most u|G_C|, the subtraction by u|G_i − G_j|; e^(x + δ) = e^x (1 + δ + …)."});

  // A reset token: g = -R in the middle, small gates after it.
  table t;
  t.id = "reset";
  t.title =
      "One reset gate −R at row 12 of 64, the others uniform in (−0.02, 0): worst relative error of the ratios after it (fp32)";
  t.columns = {"R", "difference", "factored, whole chunk", "factored, middle of 16", "first row of 16", "product of decays"};
  constexpr std::array<factorisation, 5> forms{factorisation::difference, factorisation::factored, factorisation::middle_block,
                                               factorisation::first_block, factorisation::product};
  const std::array<double, 9> resets{0, 10, 80, 1000, 1e4, 1e5, 1e6, 1e8, HUGE_VAL};
  std::vector<double> difference_errors;
  double difference_at_1e4 = 0;
  double difference_at_1e6 = 0;
  double product_worst = 0;
  bool infinite_is_nan = false;
  figure f;
  f.id = "reset";
  f.title = "What a reset gate costs the ratios after it";
  f.caption =
      "Worst relative error of e^(G_i − G_j) over pairs that lie after a reset −R in the same chunk, fp32; the exact ratios are "
      "near 1. The cumulative sum "
      "carries R through the rest of the chunk and loses a few R·2⁻²⁴ (line) in each ratio; the product of decays never sees it. "
      "Where a curve ends the next "
      "value is not finite.";
  f.alt = "A rising line of slope one for the difference, a flat one for the product; factored curves end early.";
  panel p;
  p.title = "fp32, C = 64";
  p.x = {"reset R (nats)", axis_scale::logarithmic, 1, 1e8};
  p.y = {"relative error", axis_scale::logarithmic, 1e-8, 10};
  std::vector<series> curves;
  for (const factorisation id : forms) {
    for (const named_factorisation& named : factorisations) {
      if (named.id == id) curves.push_back({std::string(named.name), {}, {}});
    }
  }
  for (const double reset : resets) {
    std::vector<cell> row{std::isinf(reset) ? cell("∞") : cell(reset)};
    philox random(options.seed, 60);
    std::vector<double> g(chunk);
    for (double& x : g) x = round_to<fp32>(-0.02 * random.uniform()).value();
    g[12] = -reset;
    const matrix<double> exact = exact_ratios(g);
    for (std::size_t k = 0; k < forms.size(); ++k) {
      const matrix<double> found = ratios(forms[k], g, fp32);
      // Pairs behind the reset.
      double worst = 0;
      for (std::size_t i = 13; i < chunk; ++i) {
        for (std::size_t j = 12; j <= i; ++j) {
          const double error = std::fabs(found(i, j) - exact(i, j)) / exact(i, j);
          worst = std::isfinite(error) ? std::max(worst, error) : std::numeric_limits<double>::infinity();
          if (std::isinf(worst)) break;
        }
        if (std::isinf(worst)) break;
      }
      row.emplace_back(std::isinf(worst) ? "not finite" : number(worst, 2));
      if (forms[k] == factorisation::difference && reset == 1e4) difference_at_1e4 = worst;
      if (forms[k] == factorisation::difference && reset == 1e6) difference_at_1e6 = worst;
      if (forms[k] == factorisation::difference && std::isinf(reset)) infinite_is_nan = std::isinf(worst);
      if (forms[k] == factorisation::product) product_worst = std::max(product_worst, worst);
      if (reset > 0 && std::isfinite(reset)) {
        curves[k].x.push_back(reset);
        curves[k].y.push_back(worst);
      }
    }
    t.rows.push_back(std::move(row));
  }
  t.note =
      "One draw. Pairs i > 12, j ≥ 12: row 12 itself carries the reset, so its G holds it. The exact ratios lie between e^−1.1 "
      "and 1.";
  series line{"R · 2⁻²⁴", {1, 1e8}, {u, 1e8 * u}};
  p.curves = std::move(curves);
  p.curves.push_back(std::move(line));
  f.panels = {std::move(p)};
  r.findings.push_back({"reset-gates",
                        "A reset gate −R spoils what comes after it in its chunk: by difference the later ratios err by " +
                            number(difference_at_1e4, 2) + " at R = 10⁴ and " + number(difference_at_1e6, 2) +
                            " at 10⁶, and g = −∞ " + (infinite_is_nan ? "makes them NaN (∞ − ∞)" : "is survived") +
                            "; the product of decays errs by at most " + number(product_worst, 2) +
                            " for every R, ∞ included. A reset of 100 nats is as good as any (e⁻¹⁰⁰ = 4·10⁻⁴⁴, 0 in fp32 with "
                            "flush) and costs 6·10⁻⁶.",
                        evidence::measured(),
                        {{"difference_1e4", difference_at_1e4},
                         {"difference_1e6", difference_at_1e6},
                         {"product", product_worst},
                         {"infinite_is_nan", infinite_is_nan}},
                        "Seed " + std::to_string(options.seed) + "; 256-bit ratios of the same fp32 gates."});
  r.tables.push_back(std::move(law));
  r.tables.push_back(std::move(t));
  r.figures.push_back(std::move(f));
}

}  // namespace deltaproof::detail::gates
