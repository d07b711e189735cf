// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
//
// Makes the table entry of one arithmetic: `entry<A>(name)` instantiates the chunkwise form and the recurrence in A's
// accumulator.
#pragma once

#include <string>
#include <utility>

#include "deltaproof/number/convert.hpp"
#include "deltaproof/scan/chunkwise.hpp"
#include "deltaproof/support/errors.hpp"
#include "studies/shared/chunks/arithmetics.hpp"

namespace deltaproof::detail::chunks {

/// 8- and 11-bit operands, sums in fp32. Products of two such significands are exact in fp32, so nothing rounds but sums
/// (and products below 2^-126).
template <format F>
using half_arithmetic = arithmetic<rounded<F>, float, float, sequential>;
using single_arithmetic = plain<float>;

template <class S>
[[nodiscard]] matrix<double> in_double(const matrix<S>& m) {
  matrix<double> result(m.rows(), m.cols());
  for (std::size_t i = 0; i < m.size(); ++i) result.data()[i] = static_cast<double>(m.data()[i]);
  return result;
}

template <class X>
[[nodiscard]] sequence<X> unrounded_sequence(const sequence<double>& s) {
  return convert<X>(s, [](double x) {
    const X value = stored<X>(x);
    if (static_cast<double>(value) != x) {
      throw domain_error("chunk study: the input " + std::to_string(x) + " is not a value of " + scalar_name<X>() +
                         "; round it with common_value first");
    }
    return value;
  });
}

template <class A>
[[nodiscard]] chunk_run run_chunkwise(const sequence<double>& s, std::size_t chunk, const inverse_method& method) {
  const auto stages = chunkwise<A>(unrounded_sequence<typename A::storage_type>(s), chunk, method);
  chunk_run run{in_double(stages.Ai), in_double(stages.w), {}, in_double(stages.o), in_double(stages.final_state)};
  for (const auto& h : stages.h) run.h.push_back(in_double(h));
  return run;
}

template <class A>
[[nodiscard]] trace<double> run_recurrent(const sequence<double>& in, state_format state, std::size_t every,
                                          std::vector<matrix<double>>* states) {
  using X = typename A::storage_type;
  using Y = typename A::sum_type;
  const auto s = convert<Y>(unrounded_sequence<X>(in), [](const X& x) { return lift<Y>(x); });
  recurrence<Y> machine(s.start());
  matrix<Y> o(s.tokens, s.value_dim);
  run_tokens(s, machine, [&](std::size_t t, recurrence<Y>& now) {
    if (state == state_format::storage) now.store([](const Y& x) { return lift<Y>(stored<X>(x)); });
    now.read(s.q_row(t), o.row(t));
    if (states != nullptr && (t + 1) % every == 0) states->push_back(in_double(now.state()));
  });
  return {in_double(o), in_double(machine.state())};
}

template <class A>
[[nodiscard]] chunk_arithmetic entry(std::string_view name) {
  return {name, format_of<typename A::storage_type>, &run_chunkwise<A>, &run_recurrent<A>};
}

}  // namespace deltaproof::detail::chunks
