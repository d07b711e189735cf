// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT

#include "studies/chunk_stability/parts.hpp"
#include "studies/chunk_stability/transition.hpp"

namespace deltaproof::detail::chunk_stability {
namespace {

/// One way to run the same tokens, chunkwise or as a recurrence.
struct executed {
  std::string name;
  key_kind keys{};
  std::string steps_name;
  chunks::step_law steps;
  std::size_t draw = 0;
};

/// |S| after 0, C, 2 C, ... tokens in each arithmetic, beside the radius of the first realised bf16 chunk.
std::vector<frame_row> execute(const run_options& options, const executed& c) {
  const auto s = chunks::make_sequence(c.keys, c.steps, tokens(options), key_dim, value_dim, 0, 1000 * options.seed + c.draw);
  std::vector<frame_row> rows;
  cell radius;
  const auto add = [&](const std::string& how, std::size_t chunk, const matrix<double>& state) {
    rows.push_back({name_of(c.keys), c.steps_name, radius, how, chunk * middle, frobenius(state)});
  };
  for (const format& store : stores.quick) {
    const auto run = run_chunk(name_of(store), s, middle);
    if (store == bf16)
      radius =
          c.keys == key_kind::repeated ? std::fabs(eigenvalue_along_key(s, run.w, 0, middle)) : chunk_radius(s, run.w, 0, middle);
    for (std::size_t i = 0; i < run.h.size(); ++i) add("chunk_" + std::string(name_of(store)), i, run.h[i]);
    add("chunk_" + std::string(name_of(store)), run.h.size(), run.final_state);
  }
  for (const char* arithmetic : {"fp32", "bf16", "fp16", "fp64"}) {
    const std::string name = arithmetic;
    const bool kept = name == "bf16" || name == "fp16";
    std::vector<matrix<double>> states;
    static_cast<void>(chunks::arithmetic_named(name).recurrent(
        s, kept ? chunks::state_format::storage : chunks::state_format::accumulator, middle, &states));
    add("state_" + name, 0, s.initial_state);
    for (std::size_t i = 0; i < states.size(); ++i) add("state_" + name, i + 1, states[i]);
  }
  return rows;
}

}  // namespace

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

double beta_of_many_chunks(const results& r) {
  const double first = r.frames.at("first-explosion").find({{"keys", "repeated"}, {"store", "bf16"}, {"chunk", middle}}, "first");
  return std::isnan(first) ? 2 : first;
}

void add_horizon(const run_options& options, results& r) {
  const double first = beta_of_many_chunks(r);
  // The draw that was worst there.
  const frame of_bf16 = r.frames.at("chunks").where("keys", "repeated").where("store", "bf16");
  const std::vector<double> along = of_bf16.where("chunk", middle).where("beta", first).numbers("along");
  const auto worst_draw = static_cast<std::size_t>(std::max_element(along.begin(), along.end()) - along.begin());
  const grid_axis<executed> cases{
      "case",
      {{"first", key_kind::repeated, "first", {first, first}, worst_draw}, {"close", key_kind::cosine_999, "two", {2, 2}}}};
  const frame all = grid(
      options, "many chunks", {"keys", "steps", "radius", "how", "token", "length"},
      [&](const executed& c) { return execute(options, c); }, cases);
  const auto run_of = [&](const cell& name, const cell& how) {
    return all.where("case", name).where("how", how).numbers("length");
  };
  const std::vector<double> grown = run_of("first", "chunk_bf16");
  const auto overflow = std::find_if(grown.begin(), grown.end(), [](double x) { return !std::isfinite(x); });
  const auto run = static_cast<std::size_t>(overflow - grown.begin());
  const std::size_t half = run / 2, last = run - 1;
  const double rate = (shared::ln(grown[last]) - shared::ln(grown[half])) / static_cast<double>(last - half);
  const double predicted = shared::ln(all.where("case", "first")[0].number("radius"));
  r.values(
      "kernel-follows-the-radius", evidence::measured(),
      {{"rate", rate}, {"predicted", predicted}, {"ratio", grown[last] / run_of("first", "state_fp64")[last]}, {"beta", first}});
  r.values("executed", {{"tokens", last * middle}, {"agreement", rate / predicted}, {"all_tokens", tokens(options)}});

  const std::vector<std::string> ways{"state_fp64", "chunk_bf16", "chunk_fp16", "chunk_fp32",
                                      "state_fp32", "state_bf16", "state_fp16"};
  frame ends = all.by({"case", "keys", "steps", "radius"}, {{"start", "length", [](auto x) { return cell(x.front()); }}});
  for (const std::string& how : ways) ends.derive(how, [&](const auto& row) { return run_of(row["case"], how).back(); });
  r.table("many-chunks", std::move(ends));
  r.table("executed", all);
}

}  // namespace deltaproof::detail::chunk_stability
