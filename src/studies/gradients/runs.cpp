// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT

#include "studies/gradients/runs.hpp"

#include <type_traits>

#include "deltaproof/algebra/triangular.hpp"
#include "deltaproof/oracle/certify_adjoint.hpp"
#include "deltaproof/scan/chunk_adjoint.hpp"
#include "oracle/pair_field.hpp"
#include "studies/shared/chunks/instantiate.hpp"

namespace deltaproof::detail::gradients {
namespace {

// Streams beside those of make_sequence.
enum stream : std::uint64_t { of_cotangents = 21, of_shares = 22 };

double value_of(double x) { return x; }
double value_of(const double_pair& x) { return x.hi; }
double low_of(double) { return 0; }
double low_of(const double_pair& x) { return x.lo; }

template <class Field>
certified_gradients certified(const head& in, double unit) {
  using value = typename Field::value;
  const auto as_value = [](double x) {
    value out{};
    if constexpr (std::is_same_v<value, double>)
      out = x;
    else
      out.hi = x;
    return out;
  };
  lowered<value> given;
  given.scan = convert<value>(in.tokens, as_value);
  std::vector<value> d_o, d_state(in.tokens.key_dim * in.tokens.value_dim, as_value(0));
  std::vector<double> sizes;
  for (const double x : in.with.o.entries()) {
    d_o.push_back(as_value(x));
    sizes.push_back(std::fabs(x));
  }
  constexpr double any = std::numeric_limits<double>::infinity();
  const auto found = adjoint_certifier<Field>({}, unit, given, d_o, sizes, d_state, 0, in.tokens.value_dim, any).run();
  certified_gradients out;
  std::size_t kind = 0;
  for (const auto* part : {&found.q, &found.k, &found.v, &found.step, &found.decay, &found.initial_state}) {
    double squares = 0, errors = 0;
    for (std::size_t i = 0; i < part->value.size(); ++i) {
      out.value[kind].push_back(value_of(part->value[i]));
      if (!std::is_same_v<value, double>) out.low[kind].push_back(low_of(part->value[i]));
      const double radius = absolute_radius(part->error[i], unit);
      squares += out.value[kind].back() * out.value[kind].back();
      errors += radius * radius;
    }
    out.radius[kind++] = std::sqrt(errors / squares);
  }
  return out;
}

template <class A>
gradient_set run_in(const head& in) {
  using X = typename A::storage_type;
  const auto s = chunks::unrounded_sequence<X>(in.tokens);
  matrix<X> d_o(in.with.o.rows(), in.with.o.cols());
  for (std::size_t i = 0; i < d_o.size(); ++i) d_o.data()[i] = stored<X>(in.with.o.data()[i]);
  const auto forward = chunkwise<A>(s, chunk_length, inverse_named("forward16+block"));
  const auto found = chunk_adjoint(s, forward, {d_o, {}});
  const auto take = [](const auto& list, bool store) {
    std::vector<double> numbers;
    for (const auto& x : list) numbers.push_back(store ? static_cast<double>(stored<X>(x)) : static_cast<double>(x));
    return numbers;
  };
  const auto& g = found.gradient;
  return {take(g.q, true),     take(g.k, true),      take(g.v, true),
          take(g.step, false), take(g.decay, false), take(g.initial_state.entries(), false)};
}

}  // namespace

head make_head(const law& which, std::size_t tokens, std::size_t dim, std::uint64_t seed) {
  head out{chunks::make_sequence(which.keys, which.steps, tokens, dim, dim, 1, seed), {matrix<double>(tokens, dim), {}}};
  out.tokens.decay.assign(tokens, which.decay);
  philox random(seed, of_cotangents);
  for (double& x : out.with.o.entries()) x = chunks::common_value(random.normal());
  return out;
}

head first_tokens(const head& in, std::size_t count) {
  head out = in;
  sequence<double>& s = out.tokens;
  s.tokens = count;
  s.q.resize(count * s.key_dim);
  s.k.resize(count * s.key_dim);
  s.v.resize(count * s.value_dim);
  s.step.resize(count);
  s.decay.resize(count);
  out.with.o = matrix<double>(count, s.value_dim);
  std::copy_n(in.with.o.data(), out.with.o.size(), out.with.o.data());
  return out;
}

head before_rounding(const head& in, std::uint64_t seed) {
  head out = in;
  philox random(seed, of_shares);
  const auto move = [&](double& x) {
    const double share = random.uniform() - 0.5;
    if (x != 0) x += share * std::ldexp(1.0, std::ilogb(x) - 7);
  };
  sequence<double>& s = out.tokens;
  for (auto* list : {&s.q, &s.v, &s.step}) std::for_each(list->begin(), list->end(), move);
  std::for_each(out.with.o.entries().begin(), out.with.o.entries().end(), move);
  for (std::size_t row = 0; row < s.tokens; ++row) {
    double* const key = &s.k[row * s.key_dim];
    if (row > 0 && std::ranges::equal(in.tokens.k_row(row), in.tokens.k_row(row - 1))) {
      std::copy_n(key - s.key_dim, s.key_dim, key);
    } else {
      std::for_each(key, key + s.key_dim, move);
    }
  }
  return out;
}

certified_gradients exact_gradients(const head& in) { return certified<fp64_field>(in, fp64_field::unit_roundoff); }
certified_gradients exact_in_pairs(const head& in) { return certified<pair_field>(in, pair_field::unit_roundoff); }

double error_of(const std::vector<double>& x, const certified_gradients& exact, std::size_t kind) {
  const std::vector<double>& value = exact.value[kind];
  double difference = 0, square = 0;
  for (std::size_t i = 0; i < value.size(); ++i) {
    const double off = (x[i] - value[i]) - (exact.low[kind].empty() ? 0 : exact.low[kind][i]);
    difference += off * off;
    square += value[i] * value[i];
  }
  const double ratio = std::sqrt(difference / square);
  return std::isnan(ratio) ? HUGE_VAL : ratio;
}

gradient_set run_backward(std::string_view format, const head& in) {
  if (format == "bf16") return run_in<chunks::half_arithmetic<bf16>>(in);
  if (format == "fp16") return run_in<chunks::half_arithmetic<fp16>>(in);
  if (format == "fp32") return run_in<plain<float>>(in);
  if (format == "fp64") return run_in<plain<double>>(in);
  throw format_error("study gradients: no backward pass in '" + std::string(format) + "'");
}

}  // namespace deltaproof::detail::gradients
