// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
#include "deltaproof/testing/problem_case.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <functional>

#include "deltaproof/support/errors.hpp"

namespace deltaproof::testing {
namespace {

constexpr int attempts = 1000;
constexpr std::uint64_t seeds = 1 << 16;  // few digits to read; each regime still has enough
constexpr int steps_in_range = 64;

void require_limits(const case_limits& limits) {
  const auto some = [](const char* name, bool empty) {
    if (empty) throw domain_error(std::string("case_limits: ") + name + " is empty; give at least one");
  };
  some("dtypes", limits.dtypes.empty());
  some("key_dims", limits.key_dims.empty());
  some("value_dims", limits.value_dims.empty());
  some("chunk_sizes", limits.chunk_sizes.empty());
  const auto least = [](const char* name, std::size_t most, std::size_t low) {
    if (most < low)
      throw domain_error(std::string("case_limits: ") + name + " is " + std::to_string(most) + "; it must be at least " +
                         std::to_string(low) + (low > 1 ? ", the value of least_tokens" : ""));
  };
  least("most_tokens", limits.most_tokens, limits.least_tokens);
  least("most_batch", limits.most_batch, 1);
  least("most_key_heads", limits.most_key_heads, 1);
  least("most_group", limits.most_group, 1);
  least("most_steps_per_token", limits.most_steps_per_token, 1);
  if (limits.beta_range && !(limits.beta_range->first <= limits.beta_range->second)) {
    throw domain_error("case_limits: beta_range is [" + std::to_string(limits.beta_range->first) + ", " +
                       std::to_string(limits.beta_range->second) + "]; give the smaller number first");
  }
}

std::vector<std::string> names_of_regimes(const case_limits& limits) {
  if (!limits.regimes.empty()) return limits.regimes;
  std::vector<std::string> all{"typical"};
  for (const regime_info& r : regimes()) {
    if (r.name != "typical") all.emplace_back(r.name);
  }
  return all;
}

/// The step length of index i of the range, 0 its end nearest to 1: a decimal of at most four places.
std::string step_text(const std::pair<double, double>& range, int i) {
  const double near = std::clamp(1.0, range.first, range.second);
  const double far = near - range.first > range.second - near ? range.first : range.second;
  // From the near end outward, on both sides where 1 lies inside.
  const double other = far == range.first ? range.second : range.first;
  const double to = i % 2 == 0 ? far : other;
  const int steps = (i + 1) / 2;
  const double x = near + (to - near) * static_cast<double>(steps) / (steps_in_range / 2.0);
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), "%.4g", std::clamp(x, range.first, range.second));
  return text.data();
}

bool gated(const generation& w) { return !w.op || gates_of(*w.op) != gate_axes::none; }

/// Whether there is such a problem; `why` says why not.
bool exists(const generation& wanted, std::string* why = nullptr) {
  try {
    static_cast<void>(complete(wanted));
    return true;
  } catch (const error& e) {
    if (why != nullptr) *why = e.what();
    return false;
  }
}

/// Packed sequences have one batch.
void fit_regime(generation& w) {
  if (w.regime == "varlen") w.batch = 1;
}

template <class Value>
void add_smaller(std::vector<Value>& out, Value now, Value least) {
  if (now <= least) return;
  for (const Value next : {least, static_cast<Value>(least + (now - least) / 2), static_cast<Value>(now - 1)}) {
    if (next < now && std::find(out.begin(), out.end(), next) == out.end()) out.push_back(next);
  }
}

/// The entries before `now`; all of them where it is not among them.
template <class Value>
std::vector<Value> earlier(const std::vector<Value>& list, const Value& now) {
  return {list.begin(), std::find(list.begin(), list.end(), now)};
}

}  // namespace

case_recipe draw_case(philox& random, const case_limits& limits) {
  require_limits(limits);
  const auto index = [&random](std::size_t count) { return static_cast<std::size_t>(random.below(count)); };
  const auto any_of = [&](const auto& list) { return list[index(list.size())]; };
  const auto up_to = [&](std::size_t least, std::size_t most) { return least + index(most - least + 1); };
  const std::vector<std::string> names = names_of_regimes(limits);
  std::string why;
  for (int attempt = 0; attempt < attempts; ++attempt) {
    case_recipe out;
    generation& w = out.wanted;
    w.regime = any_of(names);
    w.seed = random.below(seeds);
    if (!limits.ops.empty()) w.op = any_of(limits.ops);
    if (!limits.rules.empty()) w.rule = any_of(limits.rules);
    w.dtype = any_of(limits.dtypes);
    out.chunk_size = any_of(limits.chunk_sizes);
    w.tokens = up_to(limits.least_tokens, limits.most_tokens);
    if (index(2) == 0) {
      const std::size_t edge =
          out.chunk_size * up_to(1, std::max<std::size_t>(1, limits.most_tokens / out.chunk_size)) + index(3) - 1;
      w.tokens = std::clamp(edge, limits.least_tokens, limits.most_tokens);
    }
    w.batch = up_to(1, limits.most_batch);
    w.key_heads = up_to(1, limits.most_key_heads);
    w.value_heads = *w.key_heads * up_to(1, limits.most_group);
    w.num_householder = up_to(1, limits.most_steps_per_token);
    w.key_dim = any_of(limits.key_dims);
    w.value_dim = any_of(limits.value_dims);
    fit_regime(w);
    if (!limits.betas.empty()) {
      w.beta = any_of(limits.betas);
    } else if (limits.beta_range) {
      w.beta = step_text(*limits.beta_range, static_cast<int>(index(steps_in_range + 1)));
    }
    if (!limits.initial_states.empty()) w.initial_state = any_of(limits.initial_states);
    if (exists(w, &why)) {
      w.op = complete(w).op;  // so that a gate drawn next does not change it
      if (!limits.gates.empty() && gated(w)) w.gate = any_of(limits.gates);
      if (exists(w, &why)) return out;
    }
  }
  throw domain_error("case_limits: no problem within these limits was found in " + std::to_string(attempts) +
                     " draws; widen the limits. The last draw was refused: " + why);
}

namespace {

/// Takes one change of a recipe and keeps what comes of it where that can be made.
using considering = std::function<void(const std::function<void(case_recipe&)>&)>;

void consider_shapes(const case_recipe& from, const case_limits& limits, const considering& consider) {
  const generation& w = from.wanted;
  const auto smaller = [](std::size_t now, std::size_t least) {
    std::vector<std::size_t> list;
    add_smaller(list, now, least);
    return list;
  };
  for (const std::size_t tokens : smaller(*w.tokens, limits.least_tokens))
    consider([&](case_recipe& c) { c.wanted.tokens = tokens; });
  for (const std::string& regime : earlier(names_of_regimes(limits), w.regime))
    consider([&](case_recipe& c) {
      c.wanted.regime = regime;
      if (limits.ops.empty()) {  // the regime's own, and no gate that its op has not
        generation bare = c.wanted;
        bare.op.reset();
        bare.gate.reset();
        c.wanted.op = complete(bare).op;
        if (!gated(c.wanted)) c.wanted.gate.reset();
      }
    });
  for (const std::size_t batch : smaller(*w.batch, 1)) consider([&](case_recipe& c) { c.wanted.batch = batch; });
  const std::size_t group = *w.value_heads / *w.key_heads;
  for (const std::size_t heads : smaller(*w.key_heads, 1))
    consider([&](case_recipe& c) {
      c.wanted.key_heads = heads;
      c.wanted.value_heads = heads * group;
    });
  for (const std::size_t wide : smaller(group, 1)) consider([&](case_recipe& c) { c.wanted.value_heads = *w.key_heads * wide; });
  for (const std::size_t steps : smaller(*w.num_householder, 1))
    consider([&](case_recipe& c) { c.wanted.num_householder = steps; });
  for (const std::size_t d : earlier(limits.key_dims, *w.key_dim)) consider([&](case_recipe& c) { c.wanted.key_dim = d; });
  for (const std::size_t d : earlier(limits.value_dims, *w.value_dim)) consider([&](case_recipe& c) { c.wanted.value_dim = d; });
  for (const std::size_t chunk : earlier(limits.chunk_sizes, from.chunk_size))
    consider([&](case_recipe& c) { c.chunk_size = chunk; });
}

void consider_laws(const generation& w, const case_limits& limits, const considering& consider) {
  for (const format& f : earlier(limits.dtypes, *w.dtype)) consider([&](case_recipe& c) { c.wanted.dtype = f; });
  if (w.op) {
    for (const op_kind op : earlier(limits.ops, *w.op)) {
      if (limits.ops.empty()) break;
      consider([&](case_recipe& c) {
        c.wanted.op = op;
        if (!gated(c.wanted)) c.wanted.gate.reset();
      });
    }
  }
  if (w.rule) {
    for (const rule_kind rule : earlier(limits.rules, *w.rule)) consider([&](case_recipe& c) { c.wanted.rule = rule; });
  }
  if (w.beta && !limits.betas.empty()) {
    for (const std::string& beta : earlier(limits.betas, *w.beta)) consider([&](case_recipe& c) { c.wanted.beta = beta; });
  } else if (w.beta && limits.beta_range) {
    std::vector<std::string> grid;
    for (int i = 0; i <= steps_in_range; ++i) grid.push_back(step_text(*limits.beta_range, i));
    const std::vector<std::string> nearer = earlier(grid, *w.beta);
    for (std::size_t i = 0; i < nearer.size(); i = 2 * i + 1) consider([&](case_recipe& c) { c.wanted.beta = nearer[i]; });
    // One place nearer, on the same side of 1 and on the other.
    for (std::size_t back = 2; back >= 1; --back) {
      if (nearer.size() >= back) consider([&](case_recipe& c) { c.wanted.beta = nearer[nearer.size() - back]; });
    }
  }
  if (w.gate) {
    for (const std::string& gate : earlier(limits.gates, *w.gate)) consider([&](case_recipe& c) { c.wanted.gate = gate; });
  }
  if (w.initial_state) {
    for (const std::string& state : earlier(limits.initial_states, *w.initial_state))
      consider([&](case_recipe& c) { c.wanted.initial_state = state; });
  }
}

}  // namespace

std::vector<case_recipe> simpler(const case_recipe& from, const case_limits& limits) {
  std::vector<case_recipe> out;
  const auto consider = [&](const std::function<void(case_recipe&)>& change) {
    case_recipe next = from;
    try {
      change(next);
    } catch (const error&) {
      return;  // the regime does not come in this shape
    }
    fit_regime(next.wanted);
    if (next != from && exists(next.wanted)) out.push_back(std::move(next));
  };
  const generation& w = from.wanted;
  consider_shapes(from, limits, consider);
  consider_laws(w, limits, consider);
  for (const std::uint64_t seed : {std::uint64_t{0}, std::uint64_t{1}, w.seed / 2}) {
    if (seed < w.seed) consider([&](case_recipe& c) { c.wanted.seed = seed; });
  }
  return out;
}

problem_case make_case(const case_recipe& recipe) {
  problem_case out;
  out.made = complete(recipe.wanted);
  out.chunk_size = recipe.chunk_size;
  out.given = generate(out.made);
  return out;
}

std::string gen_command(const generation& completed) {
  return "deltaproof gen " + options_text(completed) + " -o case.problem.safetensors";
}

}  // namespace deltaproof::testing
