// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT

#include "deltaproof/algebra/multiply.hpp"
#include "studies/chunk_stability/transition.hpp"
#include "studies/shared/chunks/arithmetics.hpp"
#include "studies/shared/chunks/keys.hpp"

namespace deltaproof {
namespace {

using namespace detail::chunk_stability;
namespace chunks = detail::chunks;
using chunks::key_kind;

constexpr std::size_t key_dim = 64;
constexpr std::size_t middle = 64;  // the chunk that is looked at most closely
constexpr std::string_view inverse_name = "forward16+block";
constexpr double hard_beta = 1.984375;

const grid_axis<format> stores{"store", {bf16, fp16, fp32}};

std::size_t some_draws(const run_options& options) { return options.size(4, 16); }
std::size_t many_draws(const run_options& options) { return options.size(8, 64); }
std::size_t tokens(const run_options& options) { return options.size(4096, 65536); }

sequence<double> inputs(const run_options& options, key_kind keys, const chunks::step_law& steps, std::size_t chunk,
                        std::size_t draw) {
  return chunks::make_sequence(keys, steps, chunk, key_dim, 1, 0, 1000 * options.seed + draw);
}

chunks::chunk_run run_chunk(std::string_view arithmetic, const sequence<double>& s, std::size_t chunk) {
  return chunks::arithmetic_named(arithmetic).chunkwise(s, chunk, inverse_named(inverse_name));
}

/// Multiples of 2^-7 from 1 to 2: fine where one key repeats, coarse elsewhere, fewest in fp32.
std::vector<double> betas_of(key_kind kind, const format& store) {
  if (store == fp32) return {1, 1.5, 1.75, 1.9375, hard_beta, 1.9921875, 2};
  if (kind != key_kind::repeated) return {1, 1.25, 1.5, 1.75, 1.875, 1.9375, 1.96875, 1.9765625, hard_beta, 1.9921875, 2};
  std::vector<double> betas;
  for (int i = 128; i <= 256; ++i) {
    if (i <= 224 ? i % 4 == 0 : i <= 248 ? i % 2 == 0 : true) betas.push_back(i / 128.0);
  }
  return betas;
}

// A chunk that is met for ever explodes where its spectral radius is at least this: it doubles every 70 chunks or sooner.
constexpr double explodes_at = 1.01;

const grid_axis<key_kind> kinds{"keys",
                                {key_kind::fresh, key_kind::signs, key_kind::cosine_90, key_kind::cosine_99, key_kind::cosine_999,
                                 key_kind::vocabulary, key_kind::repeated}};
const grid_axis<std::size_t> lengths{"chunk", {16, 32, middle, 128}};
const grid_axis<double> three_betas{"beta", {1, 1.75, hard_beta}};

double along_key(const sequence<double>& s, const matrix<double>& w) {
  return std::fabs(eigenvalue_along_key(s, w, 0, s.rows()));
}
double radius_of(const sequence<double>& s, key_kind keys, const matrix<double>& w) {
  if (keys != key_kind::repeated) return chunk_radius(s, w, 0, s.rows());
  const double along = along_key(s, w);
  return along < 1 ? 1 : along;  // NaN stays
}

/// One chunk with one beta.
frame_row look_at(const sequence<double>& s, key_kind keys, const format& store) {
  const chunks::chunk_run run = run_chunk(name_of(store), s, s.rows());
  double square = 0;
  for (std::size_t r = 0; r < s.rows(); ++r) square = std::max(square, shared::squared_norm(s.k_row(r)));
  return {square, radius_of(s, keys, run.w), keys == key_kind::repeated ? cell(along_key(s, run.w)) : cell()};
}

/// The first beta of each kind, format and length whose radius explodes, in the frame of that name.
void add_firsts(const frame& all, const frame& curves, const run_options& options, results& r) {
  frame firsts = curves.by({"keys", "store", "chunk", "draws"},
                           {{"first", "exploding", least}, {"radius", "radius", worst}, {"betas", "beta", size_of}});
  const frame largest = firsts.by({"keys", "store"}, {{"radius", "radius", worst}});
  firsts.derive("largest",
                [at = largest.finder({"keys", "store"})](const auto& row) { return at(row["keys"], row["store"], "radius"); });
  const auto of = [&](key_kind keys, const char* store) { return firsts.where("keys", name_of(keys)).where("store", store); };
  std::map<std::string, cell> values, cluster;
  const auto list = [&](std::map<std::string, cell>& to, const std::string& prefix, const frame& rows) {
    for (std::size_t i = 0; i < rows.size(); ++i)
      to[prefix + "C" + rows.at(i, "chunk").text()] = is_missing(rows.at(i, "first")) ? cell("none") : rows.at(i, "first");
  };
  for (const char* store : {"bf16", "fp16"}) {
    const frame rows = of(key_kind::repeated, store);
    list(values, std::string(store) + "_", rows);
    values[std::string(store) + "_C64_largest"] = rows.find({{"chunk", middle}}, "radius");
  }
  values["fp32_explodes"] = !firsts.where("store", "fp32").numbers("first").empty();
  const frame one_key = of(key_kind::repeated, "bf16");
  const frame close_keys = of(key_kind::cosine_999, "bf16");
  list(cluster, "", close_keys);
  cluster["first"] = least(close_keys.numbers("first"));
  r.values("one-key-explodes", evidence::worst_found(all.where("keys", name_of(key_kind::repeated)).size(), options.seed),
           std::move(values));
  r.values("cluster", std::move(cluster));
  const auto random = [](const auto& row) {
    return row["store"].text() == "bf16" && (row["keys"].text() == "fresh" || row["keys"].text() == "signs");
  };
  r.values("random-keys-hide-it", evidence::worst_found(all.where(random).size(), options.seed),
           {{"fresh_bf16", firsts.where(random).over("radius", worst)}, {"cosine_999_bf16", close_keys.over("radius", worst)}});
  r.values("first", {{"bf16_earliest", least(one_key.numbers("first"))},
                     {"fp16_earliest", least(of(key_kind::repeated, "fp16").numbers("first"))},
                     {"longest", lengths.quick.back()},
                     {"at_longest", one_key.find({{"chunk", lengths.quick.back()}}, "radius")},
                     {"all_bf16", one_key.numbers("first").size() == one_key.size()}});
  r.table("first-explosion", std::move(firsts));
}

void add_single_chunks(const run_options& options, results& r) {
  frame all = grid(
      options, "single chunks", {"beta", "draws", "square", "radius", "along"},
      [&](key_kind keys, const format& store, std::size_t chunk) {
        const std::size_t draws = keys == key_kind::repeated ? many_draws(options) : some_draws(options);
        std::vector<frame_row> rows;
        for (const double beta : betas_of(keys, store)) {
          for (std::size_t draw = 0; draw < draws; ++draw) {
            rows.push_back({beta, draws});
            for (cell& one : look_at(inputs(options, keys, {beta, beta}, chunk, draw), keys, store))
              rows.back().push_back(std::move(one));
          }
        }
        return rows;
      },
      kinds, stores, lengths);
  frame curves = all.by({"keys", "store", "chunk", "beta", "draws"}, shared::each({"radius", "along"}, worst));
  curves.derive("exploding", [](const auto& row) { return row.number("radius") >= explodes_at ? row["beta"] : cell(); });
  curves.derive("exact", [](const auto& row) {
    double power = 1;
    for (double i = 0; i < row.number("chunk"); ++i) power *= row.number("beta") - 1;
    return power;
  });
  r.values("inputs-are-contractive", evidence::measured(), {{"largest_squared_norm", all.over("square", greatest)}});
  add_firsts(all, curves, options, r);
  r.values("keys", {{"ninety", chunks::cosine_of(key_kind::cosine_90)},
                    {"ninety_nine", chunks::cosine_of(key_kind::cosine_99)},
                    {"closest", chunks::cosine_of(key_kind::cosine_999)},
                    {"vocabulary", chunks::vocabulary_size}});
  r.values("chunk", {{"middle", middle}, {"explodes_at", explodes_at}, {"inverse", inverse_name}});
  r.values("lengths", {{"a", lengths.quick[0]}, {"b", lengths.quick[1]}, {"c", lengths.quick[2]}, {"d", lengths.quick[3]}});
  r.table("curves", std::move(curves));

  std::map<std::string, cell> safe, shown;
  frame marks({"chunk", "safe"});
  for (const std::size_t chunk : lengths.quick) {
    for (const format& f : {bf16, fp16}) {
      const double x = proved_safe_x(chunk, unit_roundoff(f));
      const std::string key = std::string(name_of(f)) + "_C" + std::to_string(chunk);
      safe[key] = x;
      shown[key] = std::floor(1000 * x) / 1000;
      if (f == bf16) marks.add({chunk, x});
    }
  }
  r.values("proved-safe", evidence::measured(), std::move(safe));
  r.values("safe", std::move(shown));
  r.table("safe", std::move(marks));
}

matrix<double> rounded_to_bf16(matrix<double> m) {
  for (double& x : m.entries()) x = round_to<bf16>(x).value();
  return m;
}

/// What rounding one thing alone, in bf16 and the rest in fp64, does to one chunk: Ai stored, beta k rounded, w stored; and for
/// one repeated key the eigenvalue's error by Ai alone, of storage_bound.
frame_row origin(const run_options& options, key_kind keys, double beta, std::size_t draw) {
  const auto s = inputs(options, keys, {beta, beta}, middle, draw);
  const auto run = run_chunk("fp64", s, middle);
  const matrix<double> exact = realised_transition(s, run.w, 0, middle);
  matrix<double> scaled(middle, key_dim);
  for (std::size_t i = 0; i < scaled.size(); ++i) scaled.data()[i] = beta * s.k_row(i / key_dim)[i % key_dim];
  const std::array<matrix<double>, 3> stored{matmul<plain<double>>(rounded_to_bf16(run.Ai), scaled),
                                             matmul<plain<double>>(run.Ai, rounded_to_bf16(scaled)), rounded_to_bf16(run.w)};
  frame_row row;
  for (const matrix<double>& w : stored) {
    row.push_back(distance(realised_transition(s, w, 0, middle), exact));
    row.push_back(radius_of(s, keys, w));
  }
  const double x = beta * shared::squared_norm(s.k_row(0));
  const double moved = std::fabs(eigenvalue_along_key(s, stored[0], 0, middle) - eigenvalue_along_key(s, run.w, 0, middle));
  row.push_back(keys == key_kind::repeated ? cell(moved / storage_bound(x, middle, unit_roundoff(bf16))) : cell());
  return row;
}

void add_origins(const run_options& options, results& r) {
  const std::vector<std::string> columns{"Ai", "Ai_radius", "scaled", "scaled_radius", "w", "w_radius", "of_bound"};
  const frame all = grid(
      options, "which stage", columns,
      [&](key_kind keys, double beta, std::size_t draw) { return origin(options, keys, beta, draw); },
      grid_axis<key_kind>{"keys",
                          {key_kind::fresh, key_kind::cosine_90, key_kind::cosine_99, key_kind::cosine_999, key_kind::vocabulary,
                           key_kind::repeated}},
      three_betas, draws(many_draws(options), many_draws(options)));
  const frame& stages = r.table("which-stage", all.by({"keys", "beta"}, shared::each(columns, worst)));
  const frame repeated = stages.where("keys", "repeated");
  const double inverse = repeated.over("Ai", worst), scaled = repeated.over("scaled", worst), w = repeated.over("w", worst);
  r.values("stored-inverse-does-it", evidence::worst_found(all.size(), options.seed),
           {{"inverse", inverse}, {"scaled_keys", scaled}, {"w", w}});
  r.values("stages", {{"alone", inverse / std::max(scaled, w)}, {"beta", three_betas.quick[1]}, {"hard_beta", hard_beta}});
  r.values("bound-attained", evidence::worst_found(all.where("keys", "repeated").size(), options.seed),
           {{"largest_of_bound", repeated.over("of_bound", worst)}});
}

/// The control: |S_T| / |S_0| of the recurrence, v = 0, for every kind and the coarse betas.
void add_control(const run_options& options, results& r) {
  const frame all = grid(
      options, "the recurrence", {"fp32", "bf16", "fp16"},
      [&](key_kind keys, std::size_t draw) {
        auto s = inputs(options, keys, {1, 1}, tokens(options), draw);
        const double start = frobenius(s.initial_state);
        std::vector<frame_row> rows;
        for (const double beta : betas_of(key_kind::fresh, bf16)) {
          std::fill(s.step.begin(), s.step.end(), beta);
          const auto ratio = [&](std::string_view arithmetic, chunks::state_format state) {
            return frobenius(chunks::arithmetic_named(arithmetic).recurrent(s, state, 1, nullptr).final_state) / start;
          };
          rows.push_back({ratio("fp32", chunks::state_format::accumulator), ratio("bf16", chunks::state_format::storage),
                          ratio("fp16", chunks::state_format::storage)});
        }
        return rows;
      },
      grid_axis<key_kind>{"keys", {chunks::key_kinds.begin(), chunks::key_kinds.end()}},
      draws((some_draws(options) + 1) / 2, (some_draws(options) + 1) / 2));
  frame beside = all.by({"keys"}, shared::each({"fp32", "bf16", "fp16"}, worst));
  beside.derive("doubles",
                [](const auto& row) { return std::max({row.number("fp32"), row.number("bf16"), row.number("fp16")}) >= 2; });
  r.values("recurrence-survives", evidence::worst_found(3 * all.size(), options.seed),
           {{"fp32", all.over("fp32", worst)},
            {"bf16", all.over("bf16", worst)},
            {"fp16", all.over("fp16", worst)},
            {"tokens", tokens(options)}});
  r.table("recurrence", std::move(beside));
}

results run(const run_options& options) {
  results r = in_parts(options, {{"single-chunks", &add_single_chunks}, {"stages", &add_origins}, {"recurrence", &add_control}});
  r.parameters = {{"key_dim", key_dim},
                  {"draws", some_draws(options)},
                  {"draws_of_the_repeated_key", many_draws(options)},
                  {"tokens", tokens(options)}};
  return r;
}

}  // namespace

extern const study chunk_stability_study{"chunk-stability", &run};

}  // namespace deltaproof
