// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
//
// What is not judged because a sum of the plan may overflow there, of the outputs and of the gradients.
#include <algorithm>
#include <cmath>

#include "referee/gradients.hpp"

namespace deltaproof::referee_detail {

namespace {

bool any_infinite(const statistic& s) {
  return std::any_of(s.samples.begin(), s.samples.end(), [](const std::vector<double>& law) {
    return std::any_of(law.begin(), law.end(), [](double x) { return !std::isfinite(x); });
  });
}

/// Tensors of a result as its lanes read them.
struct outputs_of_result {
  std::vector<double> o, state;

  explicit outputs_of_result(const result& r) : o(r.o.to_doubles()) {
    if (r.final_state) state = r.final_state_kv()->to_doubles();
  }
};

/// Adds the elements that `asks` for, of what is judged of the lane, and that may overflow. Whether there were any.
template <class Asks>
bool add_places(const trial& t, const outputs_of_result& got, const Asks& asks, overflow_question& overflow, lane& at) {
  const std::size_t V = t.p.value_dim(), K = t.p.key_dim(), heads = t.p.value_heads();
  bool added = false;
  const auto add = [&](std::string_view tensor, std::size_t in_tensor, double value, std::size_t i, std::size_t size,
                       std::vector<bool>& mask, std::size_t& without_limit) {
    if ((!mask.empty() && mask[i]) || !asks(value) || !overflow.places().may_overflow(tensor, in_tensor)) return;
    if (mask.empty()) mask.assign(size, false);
    mask[i] = added = true;
    without_limit += std::isfinite(value) ? 1 : 0;
  };
  for (std::size_t token = 0; token < at.judged; ++token) {
    const std::size_t row = ((at.range.batch * t.p.tokens() + at.range.first_token + token) * heads + at.head) * V;
    for (std::size_t v = 0; v < V; ++v)
      add("o", row + v, got.o[row + v], token * V + v, at.range.tokens * V, at.left_out_o, at.without_limit_o);
  }
  const std::size_t first = (at.sequence * heads + at.head) * K * V;
  for (std::size_t i = 0; i < K * V && at.state; ++i)
    add("final_state", first + i, got.state[first + i], i, K * V, at.left_out_state, at.without_limit_state);
  return added;
}

/// As add_places, of one gradient of the result.
template <class Asks>
bool add_gradient_places(gradient_trial& t, const std::string& name, const Asks& asks, overflow_question& overflow) {
  const std::vector<double> got = t.r.gradients.at(name).to_doubles();
  bool added = false;
  for (std::size_t i = 0; i < got.size(); ++i) {
    std::vector<bool>& skip = t.exact.skip[name];
    if ((!skip.empty() && skip[i]) || !asks(got[i]) || !overflow.places().may_overflow(name, i)) continue;
    if (skip.empty()) skip.assign(got.size(), false);
    skip[i] = added = true;
    t.without_limit[name] += std::isfinite(got[i]) ? 1 : 0;
  }
  return added;
}

constexpr auto not_finite = [](double x) { return !std::isfinite(x); };
constexpr auto all_of_them = [](double) { return true; };

}  // namespace

void leave_out_overflowed(trial& t, overflow_question& overflow) {
  if (!t.r.has_outputs()) return;
  const outputs_of_result got(t.r);
  for (lane& at : t.lanes) static_cast<void>(add_places(t, got, not_finite, overflow, at));
}

bool leave_out_overflowing(trial& t, const drawn& runs, overflow_question& overflow) {
  bool added = false;
  std::optional<outputs_of_result> got;
  for (lane& at : t.lanes) {
    for (std::size_t i = 0; i < runs.places.size(); ++i) {
      if (runs.places[i].sequence != at.sequence || runs.places[i].head != at.head || !any_infinite(runs.statistics[i])) continue;
      if (!got) got.emplace(t.r);
      added = add_places(t, *got, all_of_them, overflow, at) || added;
      break;
    }
  }
  return added;
}

bool overflow_explains(const result& r, const std::string& stage, overflow_question& overflow) {
  const std::vector<double> values = stage == "o"             ? r.o.to_doubles()
                                     : stage == "final_state" ? r.final_state_kv()->to_doubles()
                                                              : r.stages.at(stage).to_doubles();
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (!std::isfinite(values[i]) && !overflow.places().may_overflow(stage, i)) return false;
  }
  return true;
}

void leave_out_overflowed_gradients(gradient_trial& t, overflow_question& overflow) {
  bool added = false;
  for (const auto& [name, gradient] : t.r.gradients) added = add_gradient_places(t, name, not_finite, overflow) || added;
  if (added) t.lanes = gradient_lanes_of(t.p, t.r, t.exact, t.unit);
}

bool leave_out_overflowing_gradients(gradient_trial& t, const drawn_gradients& runs, overflow_question& overflow) {
  std::set<std::string> tensors;
  for (const statistic& s : runs.statistics) {
    if (any_infinite(s)) tensors.insert(s.tensor);
  }
  bool added = false;
  for (const std::string& name : tensors) added = add_gradient_places(t, name, all_of_them, overflow) || added;
  if (added) t.lanes = gradient_lanes_of(t.p, t.r, t.exact, t.unit);
  return added;
}

}  // namespace deltaproof::referee_detail
