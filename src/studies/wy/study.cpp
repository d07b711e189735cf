// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT

#include "studies/shared/chunks/arithmetics.hpp"
#include "studies/wy/cost.hpp"
#include "studies/wy/errors.hpp"

namespace deltaproof {
namespace {

using namespace detail::wy;
namespace chunk_inputs = detail::chunks;

constexpr std::uint64_t head = 128;  // K = V of the operations: what kernels are tuned for; they need no run
constexpr std::size_t key_dim = 64;  // of the runs
constexpr std::size_t value_dim = 8;
constexpr double stage_bytes = 2;

const grid_axis<std::size_t> chunks{"chunk", {1, 2, 4, 8, 16, 32, usual_chunk, 128}};
const grid_axis<regime> inputs{"regime", {regimes.begin(), regimes.end()}};
const grid_axis<std::size_t> counted_tokens{"T", {1, 2, 7, 16, 33, 40}};
const grid_axis<std::size_t> counted_chunks{"C", {1, 2, 3, 5, 8, 16, 33}};
const grid_axis<std::size_t> counted_keys{"K", {1, 3, 8}};
const grid_axis<std::size_t> counted_values{"V", {1, 2, 5}};

std::size_t tokens_of(const run_options& options) { return options.size(1024, 4096); }
std::size_t draws_of(const run_options& options) { return options.size(2, 4); }

std::string listed(const grid_axis<std::size_t>& axis) {
  std::string text;
  for (const std::size_t x : axis.quick) text += (text.empty() ? "{" : ", ") + std::to_string(x);
  return text + "}";
}

double over(std::uint64_t operations, std::uint64_t tokens) {
  return static_cast<double>(operations) / static_cast<double>(tokens);
}
double token_of_recurrence() { return over(recurrent_operations(1, head, head).total(), 1); }

/// Operations and bytes of a token, in each form.
frame costs_of_a_token() {
  frame table({"form", "chunk", "products", "sums", "operations", "ratio", "bytes", "density", "recurrence", "fused", "memory"});
  const double one = token_of_recurrence();
  const auto add = [&](const char* form, const cell& chunk, const operation_counts& c, std::uint64_t n, double bytes) {
    const traffic t = traffic_of(static_cast<double>(n), head, head, stage_bytes);
    const double all = over(c.total(), n);
    table.add({form, chunk, over(c.multiplications, n), over(c.additions + c.subtractions, n), all, all / one, bytes, all / bytes,
               one, t.chunk_fused, t.recurrent_in_memory});
  };
  const traffic any = traffic_of(1, head, head, stage_bytes);
  add("memory", {}, recurrent_operations(1, head, head), 1, any.recurrent_in_memory);
  add("chip", {}, recurrent_operations(1, head, head), 1, any.recurrent_on_chip);
  for (const std::size_t c : chunks.quick) {
    add("chunk", c, chunk_operations(c, head, head), c, traffic_of(static_cast<double>(c), head, head, stage_bytes).chunk_stages);
  }
  return table;
}

void add_cost(const run_options& options, results& r) {
  const frame chunked = grid(
      options, "counts of chunks", {"equal"},
      [](std::size_t tokens, std::size_t k, std::size_t v, std::size_t chunk) -> frame_row {
        return {counted_chunkwise(tokens, chunk, k, v, inverse_named("forward")) == chunkwise_operations(tokens, chunk, k, v)};
      },
      counted_tokens, counted_keys, counted_values, counted_chunks);
  const frame stepped = grid(
      options, "counts of recurrences", {"equal"},
      [](std::size_t tokens, std::size_t k, std::size_t v) -> frame_row {
        return {counted_recurrent(tokens, k, v) == recurrent_operations(tokens, k, v)};
      },
      counted_tokens, counted_keys, counted_values);
  const std::size_t cases = chunked.size() + stepped.size();
  r.values("counts-are-polynomials", evidence::exhaustive(cases),
           {{"equal", static_cast<std::size_t>(chunked.over("equal", total) + stepped.over("equal", total))}, {"cases", cases}});
  r.values(
      "counted",
      {{"T", listed(counted_tokens)}, {"C", listed(counted_chunks)}, {"K", listed(counted_keys)}, {"V", listed(counted_values)}});
  const traffic t = traffic_of(usual_chunk, head, head, stage_bytes);
  const double of_chunk = over(chunk_operations(usual_chunk, head, head).total(), usual_chunk);
  r.values("operations-for-bytes", {{"operations_ratio", of_chunk / token_of_recurrence()},
                                    {"bytes_saved", t.recurrent_in_memory / t.chunk_stages},
                                    {"bytes_more", t.chunk_stages / t.recurrent_on_chip},
                                    {"chunk", of_chunk},
                                    {"recurrence", token_of_recurrence()}});
  r.values("head", {{"dim", head}, {"bytes", stage_bytes}, {"chunk", usual_chunk}, {"longest", chunks.quick.back()}});
  r.table("cost", costs_of_a_token());

  const std::uint64_t rest =
      chunk_operations(usual_chunk, head, head).total() - counted_inverse(usual_chunk, inverse_named("forward")).total();
  r.table("inverse-operations", grid(
                                    options, "inverses", {"operations", "share"},
                                    [&](const named_inverse& one, std::size_t chunk) -> frame_row {
                                      const std::uint64_t of_shown = counted_inverse(usual_chunk, one.method).total();
                                      return {counted_inverse(chunk, one.method).total(), over(of_shown, rest + of_shown)};
                                    },
                                    grid_axis<named_inverse>{"method", {inverse_methods.begin(), inverse_methods.end()}},
                                    grid_axis<std::size_t>{"chunk", {16, 32, usual_chunk, 128}}));
}

cell root_mean_square(std::span<const double> squares) { return std::sqrt(as_number(mean(squares))); }

double roundoff(const frame::row& r) {
  return unit_roundoff(chunk_inputs::arithmetic_named(std::get<std::string>(r["arithmetic"].value())).storage);
}

sequence<double> draw(const run_options& options, const regime& which, std::size_t tokens, std::size_t i) {
  return chunk_inputs::make_sequence(which.keys, which.steps, tokens, key_dim, value_dim, 1, 1000 * options.seed + i);
}

/// Errors over chunk length, root mean squares of the draws.
frame errors_by_chunk(const run_options& options) {
  const frame squares = grid(
      options, "chunk lengths", error_columns,
      [&](const regime& which, std::size_t i) {
        return squared_errors(draw(options, which, tokens_of(options), i), chunks.quick);
      },
      inputs, draws(2, 4));
  frame errors =
      squares.by({"regime", "arithmetic", "chunk"}, shared::each({"o", "state", "accumulator", "storage"}, root_mean_square));
  const frame all = errors;
  errors.derive("shown_state", [&](const frame::row& r) {
    return all.find({{"regime", r["regime"]}, {"arithmetic", r["arithmetic"]}, {"chunk", usual_chunk}}, "state");
  });
  errors.derive("units", [](const frame::row& r) { return r.number("o") / roundoff(r); });
  errors.derive("storage_units", [](const frame::row& r) { return r.number("storage") / roundoff(r); });
  return errors;
}

void add_errors(const run_options& options, results& r) {
  const frame& errors = r.table("errors", errors_by_chunk(options));
  const std::size_t longest = chunks.quick.back();
  const auto of = [&](const char* which, const char* arithmetic, std::size_t chunk) {
    return errors.find({{"regime", which}, {"arithmetic", arithmetic}, {"chunk", chunk}}, "o");
  };
  const auto ratio = [&](const char* which, const char* arithmetic) {
    return of(which, arithmetic, longest) / of(which, arithmetic, 1);
  };
  r.values("stages-and-chunk-length", {{"longest", static_cast<double>(longest)},
                                       {"ordinary_ratio", ratio("ordinary", "bf16")},
                                       {"hard_ratio", ratio("hard", "bf16")},
                                       {"ordinary_C64", of("ordinary", "bf16", usual_chunk)},
                                       {"hard_C64", of("hard", "bf16", usual_chunk)}});
  r.values("ends", {{"ordinary_1", of("ordinary", "bf16", 1)},
                    {"ordinary_longest", of("ordinary", "bf16", longest)},
                    {"hard_1", of("hard", "bf16", 1)},
                    {"hard_longest", of("hard", "bf16", longest)},
                    {"fp64_hard", ratio("hard", "fp64")},
                    {"native_hard", ratio("hard", "bf16 native")}});
  r.values("one-format-and-chunk-length", {{"fp32_hard", ratio("hard", "fp32")},
                                           {"fp32_ordinary", ratio("ordinary", "fp32")},
                                           {"bf16_native_hard", of("hard", "bf16 native", longest)}});
  const frame stages = errors.where("arithmetic", "bf16");
  frame proportion({"ratio"});
  frame against({"gain", "over"});
  for (std::size_t i = 0; i < stages.size(); ++i) {
    const frame::row one = stages[i];
    for (const char* other : {"fp16", "tf32"}) {
      proportion.add(
          {one.number("o") / errors.find({{"regime", one["regime"]}, {"arithmetic", other}, {"chunk", one["chunk"]}}, "o")});
    }
    if (one.number("chunk") == usual_chunk) {
      against.add({one.number("storage") / one.number("o"), one.number("o") / one.number("accumulator")});
    }
  }
  r.values("error-is-proportional-to-u",
           {{"lowest", proportion.over("ratio", least)}, {"highest", proportion.over("ratio", greatest)}});
  r.values("against-the-recurrence", {{"lowest", against.over("gain", least)},
                                      {"highest", against.over("gain", greatest)},
                                      {"fp32_state", stages.over("accumulator", greatest)},
                                      {"over_fp32_state", against.over("over", least)}});
  r.values(
      "inputs",
      {{"large", regimes[1].steps.low}, {"roundoffs", unit_roundoff(bf16) / unit_roundoff(fp16)}, {"inverse", inverse_name}});
}

results run(const run_options& options) {
  results r = in_parts(options, {{"cost", &add_cost}, {"errors", &add_errors}});
  r.parameters = {{"key_dim", key_dim}, {"value_dim", value_dim}, {"tokens", tokens_of(options)}, {"draws", draws_of(options)}};
  return r;
}

}  // namespace

extern const study wy_study{"wy", &run};

}  // namespace deltaproof
