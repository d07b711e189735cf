// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
#include <array>
#include <charconv>
#include <optional>
#include <string>

#include "deltaproof/number/visit_format.hpp"
#include "deltaproof/support/errors.hpp"
#include "inputs/regime_draft.hpp"

namespace deltaproof {
namespace detail {
namespace {

template <int Scale>
void sigmoid_steps(draft& d, double mean) {
  philox random = d.random(stream::beta);
  for (double& b : d.beta) b = Scale * d.math.sigmoid(mean + random.normal());
}

void logit_steps(draft& d, activation_kind activation) {
  philox random = d.random(stream::beta);
  for (double& b : d.beta) b = random.normal();
  d.activation = activation;
}

struct beta_law {
  law_info info;
  void (*fill)(draft&);
};

constexpr std::array<beta_law, 9> beta_table{{
    {{"sigmoid", "sigmoid(N(0,1)), in (0, 1)"}, [](draft& d) { sigmoid_steps<1>(d, 0); }},
    {{"near-one", "sigmoid(4 + N(0,1)), median 0.98"}, [](draft& d) { sigmoid_steps<1>(d, 4); }},
    {{"near-zero", "sigmoid(-6 + N(0,1)), median 0.0025"}, [](draft& d) { sigmoid_steps<1>(d, -6); }},
    {{"two-sigmoid", "2 sigmoid(N(0,1)), in (0, 2)"}, [](draft& d) { sigmoid_steps<2>(d, 0); }},
    {{"near-two", "2 sigmoid(4 + N(0,1)), median 1.96"}, [](draft& d) { sigmoid_steps<2>(d, 4); }},
    {{"saturated", "2 sigmoid(8 + N(0,1)), which nearly always rounds to 2 in bf16"}, [](draft& d) { sigmoid_steps<2>(d, 8); }},
    {{"logit", "N(0,1), and the kernel applies sigmoid"}, [](draft& d) { logit_steps(d, activation_kind::sigmoid); }},
    {{"two-logit", "N(0,1), and the kernel applies 2 sigmoid"}, [](draft& d) { logit_steps(d, activation_kind::two_sigmoid); }},
    {{"regime",
      "beta as the regime itself sets it (only mqar, mad-copy, regbench, exact, law, rewritten, beta-zero and along-q do)"},
     nullptr},
}};

// g = -A softplus(N + dt_bias) with A in (0, 16) for each head and dt in [0.001, 0.1], as gated DeltaNet models start.
void model_gates(draft& d) {
  philox heads = d.random(stream::heads);
  constexpr double log_ratio = 4.605170185988092;  // ln(0.1 / 0.001)
  std::vector<double> rate(d.value_heads);
  std::vector<double> bias(d.value_heads * d.channels);
  for (double& a : rate) a = 16 * (heads.uniform() + 0x1p-54);
  for (double& b : bias) {
    const double dt = 0.001 * d.math.exp(log_ratio * heads.uniform());
    b = dt + d.math.log1p(-d.math.exp(-dt));  // softplus(b) = dt
  }
  philox random = d.random(stream::g);
  d.fill_gate([&](std::size_t, std::size_t h, std::size_t c) {
    return -rate[h] * d.math.softplus(random.normal() + bias[h * d.channels + c]);
  });
}

struct gate_law {
  law_info info;
  void (*fill)(draft&);
};

template <class Law>
void random_gates(draft& d, Law law) {
  philox random = d.random(stream::g);
  d.fill_gate([&](std::size_t, std::size_t, std::size_t) { return law(random, d.math); });
}

constexpr std::array<gate_law, 11> gate_table{{
    {{"none", "no tensor g"}, [](draft&) {}},
    {{"zero", "g = 0 exactly: no decay, but the kernel's code for the decay runs"},
     [](draft& d) { d.fill_gate([](std::size_t, std::size_t, std::size_t) { return 0.0; }); }},
    {{"typical", "log sigmoid(N(0,1)) / 16: a memory of about 20 tokens"},
     [](draft& d) { random_gates(d, [](philox& r, elementary& m) { return m.log_sigmoid(r.normal()) / 16; }); }},
    {{"slow", "-0.001 exp(N(0,1)): a memory of about 1000 tokens"},
     [](draft& d) { random_gates(d, [](philox& r, elementary& m) { return -0.001 * m.exp(r.normal()); }); }},
    {{"strong", "uniform in (-25, -5]: a memory of less than one token"},
     [](draft& d) { random_gates(d, [](philox& r, elementary&) { return -5 - 20 * r.uniform(); }); }},
    {{"narrow", "uniform in (-0.034, -0.012]: a memory of about 40 tokens"},
     [](draft& d) { random_gates(d, [](philox& r, elementary&) { return -0.012 - 0.022 * r.uniform(); }); }},
    {{"alternating", "0 and -20 in turn from token to token, and from channel to channel"},
     [](draft& d) { d.fill_gate([](std::size_t t, std::size_t, std::size_t c) { return (t + c) % 2 == 0 ? 0.0 : -20.0; }); }},
    {{"reset", "0, and about once in 32 tokens -inf (the state is forgotten)"},
     [](draft& d) {
       random_gates(d, [](philox& r, elementary&) { return r.below(32) == 0 ? -std::numeric_limits<double>::infinity() : 0.0; });
     }},
    {{"resets", "log sigmoid(N(0,1)) / 16, but -inf about once in 64 tokens, and -10000 as often"},
     [](draft& d) {
       random_gates(d, [](philox& r, elementary& m) {
         const std::uint64_t which = r.below(64);
         return which == 0 ? -std::numeric_limits<double>::infinity() : which == 1 ? -10000.0 : m.log_sigmoid(r.normal()) / 16;
       });
     }},
    {{"growing", "0.001 exp(N(0,1)), above 0: the state grows"},
     [](draft& d) { random_gates(d, [](philox& r, elementary& m) { return 0.001 * m.exp(r.normal()); }); }},
    {{"model", "-A softplus(N(0,1) + dt_bias), A in (0, 16) for each head, softplus(dt_bias) in [0.001, 0.1]"}, model_gates},
}};

std::optional<double> constant_law(std::string_view text) {
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || std::isnan(value)) return std::nullopt;
  return value;
}

// The row of that name; nothing for a decimal, which is a law that gives one value throughout.
template <class Table>
const typename Table::value_type* law_row(const Table& table, std::string_view what, std::string_view name) {
  std::string known;
  for (const auto& row : table) {
    if (row.info.name == name) return &row;
    known += std::string(row.info.name) + ", ";
  }
  if (constant_law(name)) return nullptr;
  throw format_error("unknown " + std::string(what) + " \"" + std::string(name) + "\"; use one of " + known +
                     "or a decimal number");
}

template <class Table>
auto infos_of(const Table& table) {
  std::array<law_info, std::tuple_size_v<Table>> result{};
  std::transform(table.begin(), table.end(), result.begin(), [](const auto& row) { return row.info; });
  return result;
}

const beta_law* beta_row(std::string_view name) { return law_row(beta_table, "beta law", name); }
const gate_law* gate_row(std::string_view name) { return law_row(gate_table, "gate law", name); }

[[noreturn]] void refuse_constant(const std::string& option, std::string_view name, const format& f) {
  throw domain_error(option + " " + std::string(name) + " is infinite in " + std::string(name_of(f)) +
                     "; give a number that the format holds");
}

}  // namespace

void require_beta_law(std::string_view name, const format& f) {
  if (beta_row(name) == nullptr && !std::isfinite(round_nearest(*constant_law(name), f))) refuse_constant("--beta", name, f);
}
void require_gate_law(std::string_view name, const format& f) {
  // A log decay of -inf forgets everything.
  if (gate_row(name) == nullptr && round_nearest(*constant_law(name), f) > largest(f)) refuse_constant("--gate", name, f);
}

tensor tensor_in(const format& f, std::vector<std::size_t> shape, std::vector<double> values, std::string name) {
  for (double& x : values) {
    const double rounded = round_nearest(x, f);
    if (std::isfinite(x) && std::isinf(rounded) && (name != "g" || rounded > 0))
      throw domain_error("tensor " + name + ": a number is beyond the range of " + std::string(name_of(f)) +
                         "; choose another --dtype, or a regime or law of smaller numbers");
    x = rounded;
  }
  return tensor::from_doubles(f, std::move(shape), values, std::move(name));
}

void fill_steps(draft& d) {
  if (const std::optional<double> constant = constant_law(*d.spec.beta)) {
    std::fill(d.beta.begin(), d.beta.end(), *constant);
  } else if (const beta_law* law = beta_row(*d.spec.beta); law->fill != nullptr) {
    law->fill(d);
  }
}

void fill_gates(draft& d) {
  if (d.spec.gate == beta_of_task) return;
  const gate_law* law = gate_row(*d.spec.gate);
  if (law != nullptr) {
    law->fill(d);
  } else {
    const double constant = *constant_law(*d.spec.gate);
    d.fill_gate([&](std::size_t, std::size_t, std::size_t) { return constant; });
  }
}

}  // namespace detail

std::span<const law_info> beta_laws() {
  static const auto infos = detail::infos_of(detail::beta_table);
  return infos;
}

std::span<const law_info> gate_laws() {
  static const auto infos = detail::infos_of(detail::gate_table);
  return infos;
}

}  // namespace deltaproof
