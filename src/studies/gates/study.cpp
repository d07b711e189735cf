// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT

#include "deltaproof/inputs/regimes.hpp"
#include "deltaproof/number/elementary.hpp"
#include "studies/gates/ratios.hpp"

namespace deltaproof {
namespace {

using namespace detail::gates;

constexpr double ln2 = 0.69314718055994530942;
constexpr double infinity = std::numeric_limits<double>::infinity();
constexpr std::size_t block = 16;  // the smallest chunk, and the blocks inside longer ones
constexpr std::size_t half_block = block / 2;
constexpr std::size_t long_chunk = 64;
constexpr double contract = 5;  // the kernel that factors at the middle of a block promises gates in [-5, 0]
constexpr double off_by = 0.1;  // share of a head's log decay from which its memory counts as off
constexpr std::size_t reset_row = 12;
constexpr double small_gate = 0.02;  // the gates around a reset
constexpr double near_reset = 1e4;
constexpr double far_reset = 1e6;
constexpr double enough = 100;  // nats, of a reset that empties any state

const grid_axis<named_factorisation> forms{"how", {factorisations.begin(), factorisations.end()}};
const grid_axis<std::size_t> chunks{"chunk", {block, 32, long_chunk}, {block, 32, long_chunk, 128}};
const grid_axis<format> stores{"store", {fp32, bf16, fp16}};

std::size_t heads_of(const run_options& options) { return options.size(64, 512); }
std::size_t tokens_of(const run_options& options) { return options.size(256, 1024); }

/// Gates of the library's regime `model-gates`, [head][token].
std::vector<std::vector<double>> model_gates(const run_options& options) {
  const std::size_t heads = heads_of(options), tokens = tokens_of(options);
  generation wanted;
  wanted.regime = "model-gates";
  wanted.seed = options.seed;
  wanted.batch = wanted.key_dim = wanted.value_dim = 1;
  wanted.tokens = tokens;
  wanted.key_heads = wanted.value_heads = heads;
  const problem p = generate(wanted);
  std::vector<std::vector<double>> result(heads, std::vector<double>(tokens));
  for (std::size_t t = 0; t < tokens; ++t) {
    for (std::size_t h = 0; h < heads; ++h) result[h][t] = p.g->at(t * heads + h);
  }
  return result;
}

/// Limits found by running beside the derived ones; no limit is an empty cell.
void add_limits(const run_options& options, results& r) {
  constexpr double searched = 1024;
  const auto derived = [](const named_factorisation& how, std::size_t chunk, const format& store) {
    const auto times = static_cast<double>(largest_exponent(how.id, chunk));
    return times == 0 ? cell() : cell(overflow_exponent(store) / times);
  };
  const auto beside_found = [&](const named_factorisation& how, std::size_t chunk, const format& store) -> frame_row {
    const double found = measured_limit(how.id, chunk, store);
    const cell limit = derived(how, chunk, store);
    const bool free = found == searched;
    if (is_missing(limit)) return {free ? cell() : cell(found), free ? cell() : cell(-found), {}, {}, free};
    return {found, -found, -as_number(limit), found / as_number(limit) - 1, {}};
  };
  const frame& limits = r.table("limits", grid(options, "limits", {"found", "gate_found", "gate_derived", "off", "free"},
                                               beside_found, forms, chunks, stores));
  r.table("derived", grid(
                         options, "limits derived", {"derived"}, [&](const auto&... of) -> frame_row { return {derived(of...)}; },
                         forms, grid_axis<std::size_t>{"chunk", chunks.full}, stores));

  const double in_fp32 = overflow_exponent(fp32);
  const double in_fp16 = overflow_exponent(fp16);
  r.values("limits-derived", evidence::measured(),
           {{"fp32", in_fp32},
            {"bf16", overflow_exponent(bf16)},
            {"fp16", in_fp16},
            {"worst", limits.over("off", worst)},
            {"limits", limits.numbers("off").size()}});
  r.values("limits-found-by-hand", evidence::proved(),
           {{"sixteen", in_fp32 / block},
            {"sixty_four", in_fp32 / long_chunk},
            {"middle", in_fp32 / half_block},
            {"fp16_sixteen", in_fp16 / block}});
  r.values("chunk", {{"short", block}, {"half", half_block}, {"long", long_chunk}});
  r.values("contract", {{"spare", in_fp32 / half_block / contract}, {"promised", contract}, {"searched", searched}});
  r.values("difference-is-safe", evidence::measured(),
           {{"unbounded", limits.over("free", least) == 1},
            {"masked_16", in_fp32 / (block - 1)},
            {"masked_64", in_fp32 / (long_chunk - 1)}});
}

/// Which chunks of model-like gates overflow the factored form.
void add_models(const run_options& options, results& r) {
  const auto gates_of = model_gates(options);
  const auto overflowing = [&](std::size_t chunk, const format& store) -> frame_row {
    const double edge = overflow_exponent(store);
    std::vector<double> sums;
    double heads = 0;
    for (const auto& head : gates_of) {
      bool overflows = false;
      for (std::size_t first = 0; first + chunk <= head.size(); first += chunk) {
        double sum = 0;
        for (std::size_t i = 0; i < chunk; ++i) sum -= head[first + i];
        sums.push_back(sum);
        overflows = overflows || sum > edge;
      }
      heads += overflows ? 1 : 0;
    }
    const auto beyond = std::count_if(sums.begin(), sums.end(), [&](double s) { return s > edge; });
    return {greatest(sums), static_cast<double>(beyond) / static_cast<double>(sums.size()),
            heads / static_cast<double>(gates_of.size())};
  };
  const frame& over = r.table("model-gates", grid(options, "model-like gates", {"largest", "chunks", "heads"}, overflowing,
                                                  grid_axis<std::size_t>{"chunk", {block, long_chunk}}, stores));
  const auto share = [&](std::size_t chunk) { return over.find({{"chunk", chunk}, {"store", "fp32"}}, "chunks"); };
  r.values("model-gates-overflow", evidence::sampled(heads_of(options) * tokens_of(options) / long_chunk, options.seed, {}),
           {{"sixteen", share(block)}, {"sixty_four", share(long_chunk)}});
}

/// The worst relative error of the ratios behind a reset gate -R at row 12, the others small.
double error_behind(double reset, factorisation how, std::uint64_t seed) {
  philox random(seed, 60);
  std::vector<double> g(long_chunk);
  for (double& x : g) x = round_to<fp32>(-small_gate * random.uniform()).value();
  g[reset_row] = -reset;
  const matrix<double> exact = exact_ratios(g);
  const matrix<double> found = ratios(how, g, fp32);
  std::vector<double> errors;
  for (std::size_t i = reset_row + 1; i < long_chunk; ++i) {
    for (std::size_t j = reset_row; j <= i; ++j) errors.push_back((found(i, j) - exact(i, j)) / exact(i, j));
  }
  return as_number(worst(errors));
}

void add_resets(const run_options& options, results& r) {
  const grid_axis<named_factorisation> compared{
      "how", {factorisations[0], factorisations[2], factorisations[3], factorisations[4], factorisations[5]}};
  const frame& errors = r.table(
      "reset",
      grid(
          options, "resets", {"error"},
          [&](double reset, const named_factorisation& how) -> frame_row { return {error_behind(reset, how.id, options.seed)}; },
          grid_axis<double>{"reset", {0, 10, 80, 1000, near_reset, 1e5, far_reset, 1e8, infinity}}, compared));
  const auto by_difference = [&](double reset) { return errors.find({{"reset", reset}, {"how", "difference"}}, "error"); };
  r.values("reset-gates", evidence::measured(),
           {{"difference_1e2", error_behind(enough, factorisation::difference, options.seed)},
            {"difference_1e4", by_difference(near_reset)},
            {"difference_1e6", by_difference(far_reset)},
            {"product", errors.where("how", "product").over("error", worst)},
            {"infinite_is_nan", std::isinf(by_difference(infinity))}});
  r.values("reset", {{"factor", shared::exp64(-enough)},
                     {"near", near_reset},
                     {"far", far_reset},
                     {"enough", enough},
                     {"row", reset_row},
                     {"around", small_gate},
                     {"least", small_gate * (long_chunk - 1 - reset_row)}});
  frame line({"reset", "error"});
  for (const double reset : {1.0, 1e8}) line.add({reset, reset * unit_roundoff(fp32)});
  r.table("reset-law", std::move(line));
}

double decay_in(const format& f, double g) { return round_nearest(shared::exp64(g), f); }

/// What storing e^g does to the memory of model-like gates: gates that become 1, heads that are off, the worst head's ratio.
frame_row memory_of(const format& store, const std::vector<std::vector<double>>& gates_of) {
  std::size_t ones = 0, all = 0, off = 0;
  double worst_ratio = 1;
  for (const auto& head : gates_of) {
    double truth = 0, kept = 0;
    for (const double g : head) {
      const double a = decay_in(store, g);
      ones += a == 1 ? 1 : 0;
      ++all;
      truth += g;
      kept += a > 0 ? shared::ln(a) : g;
    }
    const double ratio = truth == 0 ? 1 : kept / truth + 0.0;
    off += std::fabs(ratio - 1) > off_by ? 1 : 0;
    const auto distance = [](double x) { return std::fabs(shared::ln(std::max(x, 1e-9))); };
    if (distance(ratio) > distance(worst_ratio)) worst_ratio = ratio;
  }
  return {static_cast<double>(ones) / static_cast<double>(all), static_cast<double>(off) / static_cast<double>(gates_of.size()),
          worst_ratio};
}

void add_decays(const run_options& options, results& r) {
  const auto gates_of = model_gates(options);
  const grid_axis<format> kept{"store", {bf16, fp16, fp32}};
  const auto edge_of = [&](const format& store) {
    const double edge = rounds_to_one(store).last_below;
    frame_row row{edge, -ln2 / edge, ln2 / -shared::ln(1 - unit_roundoff(store))};
    for (const cell& c : memory_of(store, gates_of)) row.push_back(c);
    return row;
  };
  const frame& edges =
      r.table("rounds-to-one", grid(options, "decays", {"edge", "life", "step", "share", "heads", "ratio"}, edge_of, kept));
  std::map<std::string, cell> values, lives;
  for (const format& f : kept.quick) {
    const std::string name(name_of(f));
    values[name + "_threshold"] = edges.find({{"store", name}}, "edge");
    values[name + "_share"] = edges.find({{"store", name}}, "share");
    lives[name] = edges.find({{"store", name}}, "life");
  }
  r.values("decays-round-to-one", evidence::exhaustive(6), values);
  r.values("life", lives);
  const auto gates = heads_of(options) * tokens_of(options);
  r.values("model-gates-round-to-one", evidence::sampled(gates, options.seed, {}),
           {{"share", values["bf16_share"]}, {"heads", edges.find({{"store", "bf16"}}, "heads")}});
  r.values("model",
           {{"gates", gates}, {"off_by", off_by}, {"standard_error", 0.5 / std::sqrt(static_cast<double>(heads_of(options)))}});
}

results run(const run_options& options) {
  results r = in_parts(
      options, {{"limits", &add_limits}, {"model-like gates", &add_models}, {"resets", &add_resets}, {"decays", &add_decays}});
  r.parameters = {{"heads", heads_of(options)}, {"tokens", tokens_of(options)}, {"longest_chunk", chunks.values(options).back()}};
  return r;
}

}  // namespace

extern const study gates_study{"gates", &run};

}  // namespace deltaproof
