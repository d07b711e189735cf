// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT

#include "deltaproof/scan/recurrent.hpp"
#include "studies/gradients/runs.hpp"

namespace deltaproof {
namespace {

using namespace detail::gradients;
namespace chunks = detail::chunks;

constexpr std::size_t shortest = 64;
constexpr std::size_t growth_span = 8;  // exponents are taken over the last such factor of the horizon

std::size_t horizon_of(const run_options& options) { return options.size(4096, 32768); }
grid_axis<std::size_t> runs() { return draws(2, 8); }

double log2_of(double x) { return shared::ln(x) / shared::ln(2); }
cell name(std::size_t kind) { return std::string(gradient_names[kind]); }

/// Root mean squares of the states of the first `at` tokens, for each of the horizons.
std::map<std::size_t, double> sizes_of_states(const head& in) {
  std::map<std::size_t, double> found;
  double squares = 0;
  recurrence<double> machine(in.tokens.start());
  run_tokens(in.tokens, machine, [&](std::size_t t, const recurrence<double>& now) {
    squares += shared::squared_norm(now.state().entries());
    found[t + 1] = std::sqrt(squares / static_cast<double>((t + 1) * dim * dim));
  });
  return found;
}

/// A strong decay levels everything at once; clustered keys near two grow as random ones do.
grid_axis<law> growing() {
  grid_axis<law> axis{"law", {laws.begin(), laws.end()}};
  std::erase_if(axis.quick, [](const law& one) { return one.name == "fast-gate" || one.name == "clustered-near-two"; });
  return axis;
}

/// Root mean squares of every gradient, and of the states, over the horizon.
frame sizes(const run_options& options) {
  const frame all = grid(
      options, "horizons", {"gradient", "at", "size", "radius"},
      [&](const law& which, std::size_t draw) {
        const head whole = make_head(which, horizon_of(options), dim, seed_of(options, draw));
        const auto states = sizes_of_states(whole);
        std::vector<frame_row> rows;
        for (std::size_t at = shortest; at <= horizon_of(options); at *= 2) {
          const head part = first_tokens(whole, at);
          const certified_gradients exact = exact_gradients(part);
          for (std::size_t kind = 0; kind < kinds; ++kind) {
            rows.push_back({name(kind), at, as_number(shared::root_mean_square(exact.value[kind])), exact.radius[kind]});
          }
          rows.push_back({"state", at, states.at(at), cell()});
        }
        return rows;
      },
      growing(), runs());
  return all.by({"law", "gradient", "at"}, {{"size", "size", shared::root_mean_square}, {"radius", "radius", greatest}});
}

void add_growth(const run_options& options, results& r) {
  const frame& growth = r.table("growth", sizes(options));
  const std::size_t last = horizon_of(options), first = last / growth_span;
  const auto size = growth.finder({"law", "gradient", "at"});
  frame exponents({"law", "gradient", "exponent", "size"});
  for (const law& which : growing().quick) {
    const auto add = [&](const cell& of) {
      const double end = size(std::string(which.name), of, last, "size");
      const double ratio = end / size(std::string(which.name), of, first, "size");
      exponents.add({std::string(which.name), of, log2_of(ratio) / log2_of(growth_span), end});
    };
    add("state");
    for (std::size_t kind = 0; kind < kinds; ++kind) add(name(kind));
  }
  const frame& found = r.table("exponents", exponents);
  const auto exponent = [&](const char* which, const char* of) {
    return found.find({{"law", which}, {"gradient", of}}, "exponent");
  };
  const frame::row worst_one = shared::top(found, "exponent");
  r.values("reference", evidence::certified(), {{"radius", growth.over("radius", greatest)}});
  r.values("stable", {{"largest", worst_one["exponent"]}, {"law", worst_one["law"]}, {"gradient", worst_one["gradient"]}});
  std::map<std::string, cell> at_two, of_one_key;
  for (const char* of : {"state", "dq", "dk", "dv", "dbeta", "dg", "dinitial_state"}) {
    at_two[of] = exponent("reflecting", of);
    of_one_key[of] = exponent("repeated", of);
  }
  const auto times = [&](const char* of) { return size("near-two", of, last, "size") / size("ordinary", of, last, "size"); };
  r.values("at-two", std::move(at_two));
  r.values("near-two", {{"dk", times("dk")}, {"dg", times("dg")}, {"dq", times("dq")}});
  r.values("one-key", std::move(of_one_key));
  constexpr double left = 2 - near_two.low;
  r.values("horizon", {{"first", first},
                       {"last", last},
                       {"span", growth_span},
                       {"shortest", shortest},
                       // A step forgets b (2 - b) / K of the squares, b = 2 - x with x uniform below `left`.
                       {"memory", dim / (left - left * left / 3)},
                       {"one_key_start", size("repeated", "dinitial_state", last, "size")},
                       {"one_key_state", size("repeated", "state", last, "size")},
                       {"dk_at_two", size("reflecting", "dk", last, "size")},
                       {"dg_at_two", size("reflecting", "dg", last, "size")}});
}

/// Errors of every gradient: of a backward pass in each format, and what it changes that the inputs were rounded to bf16.
frame errors_of_formats(const run_options& options) {
  const frame all = grid(
      options, "formats", {"format", "gradient", "error", "radius"},
      [&](const law& which, std::size_t draw) {
        const head in = make_head(which, tokens_of(options), dim, seed_of(options, draw));
        const certified_gradients exact = exact_in_pairs(in);
        std::vector<frame_row> rows;
        const auto add = [&](std::string_view format, const gradient_set& got) {
          for (std::size_t kind = 0; kind < kinds; ++kind) {
            rows.push_back({std::string(format), name(kind), error_of(got[kind], exact, kind), exact.radius[kind]});
          }
        };
        add("inputs", exact_gradients(before_rounding(in, seed_of(options, draw))).value);
        for (const std::string_view format : stage_formats) {
          add(format, run_backward(format, in));
        }
        return rows;
      },
      all_laws, runs());
  frame found =
      all.by({"law", "format", "gradient"}, {{"error", "error", shared::root_mean_square}, {"radius", "radius", greatest}});
  const frame errors = found;
  const auto inputs = errors.finder({"law", "gradient", "format"});
  found.derive("of_inputs",
               [&](const auto& row) { return row.number("error") / inputs(row["law"], row["gradient"], "inputs", "error"); });
  found.derive("bits", [](const auto& row) { return -log2_of(row.number("error")); });
  return found;
}

void add_formats(const run_options& options, results& r) {
  const frame& errors = r.table("errors", errors_of_formats(options));
  const auto found = errors.finder({"law", "format", "gradient"});
  const auto one_key = [](const auto& row) { return row["law"].text().starts_with("repeated"); };
  const auto keys = [&](const auto& row) { return !one_key(row); };
  const frame of_keys = errors.where(keys).by({"format", "gradient"}, {{"error", "error", greatest}});
  frame worst_errors = errors.by({"format", "gradient"}, {{"error", "error", greatest}, {"bits", "bits", least}});
  worst_errors.derive("many_keys", [&](const auto& row) {
    return of_keys.find({{"format", row["format"]}, {"gradient", row["gradient"]}}, "error");
  });
  const frame& worsts = r.table("worst", std::move(worst_errors));
  const auto worst_of = worsts.finder({"format", "gradient"});
  r.values("pairs", evidence::certified(), {{"radius", errors.over("radius", greatest)}});
  std::map<std::string, cell> values;
  for (const std::string_view format : stage_formats) {
    const frame of_format = worsts.where("format", format);
    const frame::row largest = shared::top(of_format, "error");
    values[std::string(format)] = largest["error"];
    values[std::string(format) + "_gradient"] = largest["gradient"];
  }
  const frame bf16_errors = errors.where("format", "bf16");
  const frame many_keys = bf16_errors.where(keys);
  values["many_keys"] = many_keys.over("error", greatest);
  r.values("formats", values);
  r.values("inputs", {{"least", errors.where("format", "inputs").over("error", least)},
                      {"many_keys", errors.where("format", "inputs").where(keys).over("error", greatest)},
                      {"one_key", found("repeated", "inputs", "dg", "error")},
                      {"dg_bits", worst_of("inputs", "dg", "bits")},
                      {"bf16_ratio", many_keys.over("of_inputs", greatest)},
                      {"bf16_ratio_one_key", bf16_errors.where(one_key).over("of_inputs", greatest)},
                      {"fp16_ratio", errors.where("format", "fp16").over("of_inputs", greatest)}});
  r.values("one-key-in-bf16", {{"bf16", found("repeated", "bf16", "dg", "error")},
                               {"fp16", found("repeated", "fp16", "dg", "error")},
                               {"fp32", found("repeated", "fp32", "dg", "error")},
                               {"two_bf16", found("repeated-near-two", "bf16", "dg", "error")},
                               {"two_bf16_dbeta", found("repeated-near-two", "bf16", "dbeta", "error")},
                               {"two_fp16", found("repeated-near-two", "fp16", "dg", "error")},
                               {"two_fp32", found("repeated-near-two", "fp32", "dg", "error")}});
}

results run(const run_options& options) {
  results r = in_parts(options, {{"growth", &add_growth}, {"formats", &add_formats}});
  r.values("laws", {{"cosine", chunks::cosine_of(chunks::key_kind::cosine_90)}, {"low", near_two.low}, {"number", laws.size()}});
  r.parameters = {{"dim", dim},
                  {"tokens", tokens_of(options)},
                  {"horizon_tokens", horizon_of(options)},
                  {"chunk", chunk_length},
                  {"draws", runs().values(options).size()}};
  return r;
}

}  // namespace

extern const study gradients_study{"gradients", &run};

}  // namespace deltaproof
