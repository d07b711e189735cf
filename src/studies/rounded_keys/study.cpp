// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT

#include "studies/shared/chunks/arithmetics.hpp"
#include "studies/shared/common.hpp"

namespace deltaproof {
namespace {

namespace chunks = detail::chunks;

constexpr std::size_t key_dim = 64;
constexpr std::size_t tokens = 4096;
constexpr std::size_t chunk = 64;
constexpr std::size_t words = 8;
constexpr double reflecting = 2;  // beta
constexpr double grown = 10;      // times the start: counted as grown
constexpr double explodes_at = 1.01;
constexpr double rounded_to = 0x1p-8;  // unit roundoff of bf16, in which the keys are given

enum class repetition { repeated, vocabulary, fresh };
std::string_view name_of(repetition r) {
  return r == repetition::repeated ? "repeated" : r == repetition::vocabulary ? "vocabulary" : "fresh";
}

struct state_kind {
  std::string name;
  std::string_view arithmetic;
  chunks::state_format kept;
};
const grid_axis<state_kind> states{"state",
                                   {{"fp32", "bf16", chunks::state_format::accumulator},
                                    {"bf16", "bf16", chunks::state_format::storage},
                                    {"fp16", "fp16", chunks::state_format::storage}}};

/// Unit vectors, each entry rounded once to bf16 (and fp16, which changes subnormals alone).
std::vector<double> rounded_keys(repetition how, std::size_t rows, std::uint64_t seed) {
  philox random(seed, 1), choices(seed, 2);
  std::vector<double> keys(rows * key_dim);
  const std::size_t different = how == repetition::repeated ? 1 : how == repetition::vocabulary ? words : rows;
  for (std::size_t r = 0; r < rows; ++r) {
    const auto key = std::span(keys).subspan(r * key_dim, key_dim);
    if (r >= different) {
      const auto first = static_cast<std::ptrdiff_t>(choices.below(different) * key_dim);
      std::copy_n(keys.begin() + first, key_dim, key.begin());
      continue;
    }
    shared::draw(random, key);
    shared::normalise(key);
    for (double& x : key) x = round_to<fp16>(round_to<bf16>(x)).value();
  }
  return keys;
}

/// No values; the state begins as the first key.
sequence<double> run_of(repetition how, double beta, std::size_t rows, std::uint64_t seed) {
  auto s = sequence<double>::zeros(rows, 1, key_dim, 1);
  s.k = rounded_keys(how, rows, seed);
  s.step.assign(rows, beta);
  std::copy_n(s.k.begin(), key_dim, s.initial_state.data());
  return s;
}

std::uint64_t seed_of(const run_options& options, std::size_t draw) { return 100000 * options.seed + draw; }

cell grown_share(std::span<const double> growths) {
  const auto many = std::count_if(growths.begin(), growths.end(), [](double x) { return !(x < grown); });
  return static_cast<double>(many) / static_cast<double>(growths.size());
}

void add_recurrence(const run_options& options, results& r) {
  frame all = grid(
      options, "recurrence", {"square", "growth"},
      [&](repetition how, const state_kind& state, std::size_t draw) -> frame_row {
        const auto s = run_of(how, reflecting, tokens, seed_of(options, draw));
        const auto end = chunks::arithmetic_named(state.arithmetic).recurrent(s, state.kept, tokens, nullptr).final_state;
        const double square = shared::squared_norm(s.k_row(0));
        return {square, std::sqrt(shared::squared_norm(end.entries()) / square)};
      },
      grid_axis<repetition>{"keys", {repetition::repeated, repetition::vocabulary, repetition::fresh}}, states, draws(300, 4000));
  all.derive("excess", [](const auto& row) { return (row.number("square") - 1) / rounded_to; });
  all.derive("rate", [](const auto& row) { return shared::ln(row.number("growth")) / tokens; });
  // 2 |k|^2 - 1 a token, in exact arithmetic on one key
  all.derive("expected", [](const auto& row) { return shared::ln(2 * row.number("square") - 1); });
  all.derive("off", [](const auto& row) { return tokens * std::fabs(row.number("rate") - row.number("expected")); });
  const frame one_key = all.where("keys", "repeated").where("state", "fp32");
  const frame longer = one_key.where([](const auto& row) { return row.number("square") > 1; });
  const frame& ends = r.table("growth", all.by({"keys", "state"}, {{"least", "growth", least},
                                                                   {"median", "growth", median},
                                                                   {"largest", "growth", greatest},
                                                                   {"share", "growth", grown_share}}));
  const auto end = ends.finder({"keys", "state"});
  const auto found = evidence::worst_found(one_key.size(), options.seed);
  r.values("one-key-grows", found,
           {{"fp32", end("repeated", "fp32", "largest")},
            {"bf16", end("repeated", "bf16", "largest")},
            {"fp16", end("repeated", "fp16", "largest")},
            {"share", end("repeated", "fp32", "share")},
            {"share_bf16", end("repeated", "bf16", "share")},
            {"off", longer.over("off", greatest)}});
  r.values("other-keys", found,
           {{"vocabulary", end("vocabulary", "fp32", "largest")},
            {"vocabulary_share", end("vocabulary", "fp32", "share")},
            {"fresh", end("fresh", "fp32", "largest")},
            {"fresh_bf16", end("fresh", "bf16", "largest")}});
  r.values("recurrence", {{"beta", reflecting}, {"grown", grown}, {"words", words}});
  r.table("one-key", one_key);
  frame law({"excess", "growth"});
  for (double excess = -0.25; excess <= 0.25; excess += 0.5) law.add({excess, std::pow(1 + 2 * excess * rounded_to, tokens)});
  r.table("law", std::move(law));
}

/// One chunk of one key with the inverse stored in bf16, met for ever: the eigenvalue along the key.
void add_chunks(const run_options& options, results& r) {
  const grid_axis<double> betas{"beta", {1.5, 1.625, 1.6875, 1.71875, 1.734375, 1.765625, 1.796875, 1.984375}};
  frame all = grid(
      options, "chunks", {"along"},
      [&](double beta, std::size_t draw) -> frame_row {
        const auto s = run_of(repetition::repeated, beta, chunk, seed_of(options, draw));
        const auto run = chunks::arithmetic_named("bf16").chunkwise(s, chunk, inverse_named("forward16+block"));
        return {std::fabs(1 - shared::dot(run.w.entries(), s.k))};
      },
      betas, draws(1000, 4000));
  all.derive("explodes", [](const auto& row) { return row.number("along") >= explodes_at; });
  frame by_beta = all.by({"beta"}, {{"share", "explodes", mean}, {"largest", "along", greatest}});
  by_beta.derive("exploding", [](const auto& row) { return row.number("share") > 0 ? row["beta"] : cell(); });
  const double first = by_beta.over("exploding", least);
  r.values(
      "chunks-explode-sooner", evidence::worst_found(all.size(), options.seed),
      {{"first", first}, {"share", by_beta.find({{"beta", first}}, "share")}, {"largest", by_beta.over("largest", greatest)}});
  r.values("chunk",
           {{"rows", chunk}, {"keys", options.size(1000, 4000)}, {"explodes_at", explodes_at}, {"lowest", betas.quick.front()}});
  r.table("chunks", std::move(by_beta));
}

results run(const run_options& options) {
  results r = in_parts(options, {{"recurrence", &add_recurrence}, {"chunks", &add_chunks}});
  r.parameters = {{"key_dim", key_dim}, {"tokens", tokens}, {"keys", options.size(300, 4000)}};
  return r;
}

}  // namespace

extern const study rounded_keys_study{"rounded-keys", &run};

}  // namespace deltaproof
