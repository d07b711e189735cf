// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
#include "stages/head_stages.hpp"

#include <algorithm>
#include <utility>

#include "stages/head_measurement.hpp"

namespace deltaproof::stages_detail {

stage_inputs::stage_inputs(const result& r, bool output) : o(output ? &r.o : nullptr), final_state(r.final_state_kv()) {
  const auto stage = [&r](const char* name) {
    const auto found = r.stages.find(name);
    return found == r.stages.end() ? nullptr : &found->second;
  };
  cumsum = stage("g_cumsum_log2");
  a = stage("A");
  ai = stage("Ai");
  w = stage("w");
  u = stage("u");
  h = stage("h");
  v_new = stage("v_new");
  aqk = stage("Aqk");
}

const tensor* stage_inputs::find(std::string_view name) const {
  if (name == "g_cumsum_log2") return cumsum;
  if (name == "A") return a;
  if (name == "Ai") return ai;
  if (name == "w") return w;
  if (name == "u") return u;
  if (name == "h") return h;
  if (name == "v_new") return v_new;
  if (name == "Aqk") return aqk;
  if (name == "o") return o;
  return name == "final_state" && final_state ? &*final_state : nullptr;
}

std::size_t output_states(const stage_inputs& stored, const stage_roundings& roundings) {
  const bool both = stored.h != nullptr && stored.v_new != nullptr;
  return stored.has_state() && !both ? roundings.state.size() : 1;
}

std::vector<std::string> alternative_names(std::string_view stage, const stage_inputs& stored, const stage_roundings& roundings) {
  std::vector<std::string> names;
  const auto list = [&names](const auto& alternatives) {
    for (const auto& one : alternatives) names.push_back(one.name);
  };
  const auto pairs = [&](std::size_t choices, const auto& alternatives) {
    for (std::size_t g = 0; g < choices; ++g) {
      for (const auto& one : alternatives) names.push_back(choices == 1 ? one.name : roundings.gram[g].name + ", " + one.name);
    }
  };
  if (stage == "g_cumsum_log2") names.emplace_back();
  if (stage == "A" || stage == "Aqk") list(roundings.gram);
  if (stage == "Ai") pairs(gram_choices(stored.a != nullptr, roundings), roundings.inverse);
  if (stage == "w") list(roundings.w);
  if (stage == "u") list(roundings.u);
  if (stage == "h" || stage == "v_new" || stage == "final_state") list(roundings.state);
  if (stage == "o") {
    pairs(gram_choices(stored.aqk != nullptr, roundings), roundings.output);
    const std::size_t states = output_states(stored, roundings);
    if (states < 2) return names;
    const std::vector<std::string> of_one_state = std::exchange(names, {});
    for (std::size_t s = 0; s < states; ++s) {
      for (const std::string& one : of_one_state) names.push_back(roundings.state[s].name + ", " + one);
    }
  }
  return names;
}

void measure_head(const problem& p, const stage_inputs& stored, std::size_t chunk_size, const stage_roundings& roundings,
                  const head_place& place, const alternatives& tried, tallies& out) {
  head_measurement(p, stored, chunk_size, roundings, place, tried, out).run();
}

void measure_alternatives(const problem& p, const stage_inputs& stored, std::size_t chunk_size, const stage_roundings& roundings,
                          const head_place& place, const alternatives& tried, std::size_t chunks, tallies& out) {
  head_place beginning = place;
  const std::size_t n = p.num_householder, tokens = place.sequence.tokens, rows = tokens * n;
  if (chunks < rows / chunk_size) beginning.sequence.tokens = std::min(tokens, (chunks * chunk_size + n - 1) / n);
  head_measurement(p, stored, chunk_size, roundings, beginning, tried, out).run_alternatives(chunks);
}

}  // namespace deltaproof::stages_detail
