// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
#include <array>
#include <charconv>
#include <cmath>
#include <string>

#include "deltaproof/support/errors.hpp"
#include "inputs/regime_draft.hpp"
#include "support/nearest_name.hpp"
#include "support/text.hpp"

namespace deltaproof {
namespace detail {
namespace {

enum parameter : std::size_t {
  cosine,
  flip,
  repeat,
  span_of_repeats,
  key_norm,
  key_spread,
  beta_top,
  beta_logit,
  beta_spread,
  gate_log,
  gate_spread,
  value_cosine,
  value_spread,
  state_scale,
  parameters
};
using law_values = std::array<double, parameters>;

constexpr std::array<law_parameter, parameters> parameter_table{{
    {"cosine", 0, 0, 1,
     "c, where a key points along sqrt(c) m + sqrt(1 - c) z: m is one unit vector for each head, z a random unit vector for each "
     "key"},
    {"flip", 0, 0, 1, "probability that a key that repeats no earlier one is negated"},
    {"repeat", 0, 0, 1, "probability that a key repeats an earlier key of its sequence"},
    {"span", 64, 1, 4096, "largest distance, in keys, between a key and the earlier key that it repeats"},
    {"key_norm", 1, 0x1p-20, 0x1p10, "median of the norms of the keys"},
    {"key_spread", 0, 0, 8, "standard deviation of the logarithms of the norms of the keys"},
    {"beta_top", 1, 0, 4, "scale of beta: beta = beta_top sigmoid(beta_logit + beta_spread N(0,1))"},
    {"beta_logit", 0, -20, 20, "mean of the logit of beta / beta_top: see beta_top"},
    {"beta_spread", 1, 0, 20, "standard deviation of the logit of beta / beta_top: see beta_top"},
    {"gate_log", -3, -20, 5, "log decays are -exp(gate_log + gate_spread N(0,1))"},
    {"gate_spread", 1, 0, 5, "standard deviation of ln(-g), where g is a log decay: see gate_log"},
    {"value_cosine", 0, 0, 1,
     "c, where a row of v is sqrt(c) m + sqrt(1 - c) z, times the factor of value_spread: m is one vector for each head, z a new "
     "vector for each row, both with entries N(0,1)"},
    {"value_spread", 0, 0, 8, "each vector v is multiplied by a factor of its own, exp(value_spread N(0,1))"},
    {"state_scale", 1, 0, 0x1p10, "factor that multiplies the initial state"},
}};

double value_in(const law_parameter& p, std::string_view word) {
  double value = 0;
  const auto [end, bad] = std::from_chars(word.data(), word.data() + word.size(), value);
  // Not: value < least, which no NaN is.
  if (bad != std::errc{} || end != word.data() + word.size() || !(value >= p.least && value <= p.most))
    throw format_error("law: " + std::string(p.name) + " = " + in_quotes(word) + "; it must be a number from " +
                       shortest(p.least) + " to " + shortest(p.most));
  return value == 0 ? 0 : value;  // -0 is 0
}

law_values parsed_law(std::string_view text) {
  law_values out{};
  std::array<bool, parameters> stated{};
  std::vector<std::string_view> names;
  for (std::size_t i = 0; i < parameters; ++i) {
    out[i] = parameter_table[i].usual;
    names.push_back(parameter_table[i].name);
  }
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t comma = std::min(text.find(',', at), text.size());
    const std::string_view one = text.substr(at, comma - at);
    const std::size_t equals = std::min(one.find('='), one.size());
    const std::string_view name = one.substr(0, equals);
    const auto found = std::find(names.begin(), names.end(), name);
    if (equals == one.size())
      throw format_error("law: " + in_quotes(one) + " is not of the form parameter=value; write for example cosine=0.9,flip=0.5");
    if (found == names.end()) throw format_error("law: there is no parameter " + in_quotes(name) + suggestion(name, names));
    const auto i = static_cast<std::size_t>(found - names.begin());
    if (stated[i]) throw format_error("law: " + std::string(name) + " is stated twice; state it once");
    stated[i] = true;
    out[i] = value_in(parameter_table[i], one.substr(equals + 1));
    at = comma + 1;
    if (at == text.size()) throw format_error("law: " + in_quotes(text) + " ends with a comma; remove it");
  }
  return out;
}

/// One direction in n dimensions for each head, one after the other.
std::vector<double> directions(std::size_t heads, std::size_t n, philox& random) {
  std::vector<double> out(heads * n);
  for (std::size_t h = 0; h < heads; ++h) fill_unit(std::span(out).subspan(h * n, n), random);
  return out;
}

void keys_of_law(draft& d, const law_values& at) {
  philox random = d.random(stream::k), heads = d.random(stream::heads), plan = d.random(stream::plan);
  const std::vector<double> mean = directions(d.key_heads, d.key_dim, heads);
  const double common = std::sqrt(at[cosine]), own = std::sqrt(1 - at[cosine]);
  d.for_each_key([&](std::size_t b, std::size_t row, std::size_t h, std::size_t local) {
    const std::span<double> key = d.k_at(b, row, h);
    fill_unit(key, random);
    const double norm = at[key_norm] * d.math.exp(at[key_spread] * random.normal());
    const bool turned = plan.uniform() < at[flip], again = plan.uniform() < at[repeat];
    const auto back = 1 + static_cast<std::size_t>(plan.below(static_cast<std::uint64_t>(at[span_of_repeats])));
    if (again && local > 0) {
      copy(d.k_at(b, row - std::min(back, local), h), key);
      return;
    }
    for (std::size_t c = 0; c < d.key_dim; ++c) key[c] = common * mean[h * d.key_dim + c] + own * key[c];
    scale_to(key, turned ? -norm : norm);
  });
}

void values_of_law(draft& d, const law_values& at) {
  philox random = d.random(stream::v);
  std::vector<double> mean(d.value_heads * d.value_dim);
  fill_normal(mean, random);
  const double common = std::sqrt(at[value_cosine]), own = std::sqrt(1 - at[value_cosine]);
  for (std::size_t i = 0; i < d.v.size(); i += d.value_dim) {
    const std::size_t head = i / d.value_dim % d.value_heads;
    const std::span<double> value = std::span(d.v).subspan(i, d.value_dim);
    fill_normal(value, random);
    const double factor = d.math.exp(at[value_spread] * random.normal());
    for (std::size_t c = 0; c < d.value_dim; ++c) value[c] = factor * (common * mean[head * d.value_dim + c] + own * value[c]);
  }
}

}  // namespace

std::string law_text(std::string_view text) {
  const law_values at = parsed_law(text);
  std::string out;
  for (std::size_t i = 0; i < parameters; ++i) {
    if (at[i] == parameter_table[i].usual) continue;
    out += (out.empty() ? "" : ",") + std::string(parameter_table[i].name) + "=" + shortest(at[i]);
  }
  return out;
}

void law_task(draft& d) {
  const law_values at = parsed_law(*d.spec.law);
  keys_of_law(d, at);
  values_of_law(d, at);
  if (d.spec.beta == beta_of_task) {
    philox random = d.random(stream::beta);
    for (double& b : d.beta) b = at[beta_top] * d.math.sigmoid(at[beta_logit] + at[beta_spread] * random.normal());
  }
  if (d.spec.gate == beta_of_task) {
    philox random = d.random(stream::g);
    d.fill_gate(
        [&](std::size_t, std::size_t, std::size_t) { return -d.math.exp(at[gate_log] + at[gate_spread] * random.normal()); });
  }
  for (double& x : d.initial_state) x *= at[state_scale];
}

}  // namespace detail

std::span<const law_parameter> law_parameters() { return detail::parameter_table; }

}  // namespace deltaproof
