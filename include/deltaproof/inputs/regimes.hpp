// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
//
// Makes problems: name a regime (what the keys, gates and steps are like), state what should differ from its
// defaults, and get tensors that are the same bytes on every machine: numbers come from a counter-based generator,
// pass through + - * / and sqrt alone, with exp and log1p rounded correctly by MPFR, and are rounded once to the
// format of their tensor. It exists because random keys hide the faults kernels have shipped with; each regime says
// which fault it brings to light. A new regime is one row of a table in inputs/regimes.cpp, a new law of steps
// or gates one in inputs/regime_laws.cpp.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "deltaproof/number/format.hpp"
#include "deltaproof/oracle/problem.hpp"

namespace deltaproof {

/// What to generate. What is not set takes the regime's default.
struct generation {
  std::string regime = "typical";
  std::uint64_t seed = 0;
  std::optional<op_kind> op = {};
  std::optional<rule_kind> rule = {};
  std::optional<std::size_t> batch = {};                     ///< B
  std::optional<std::size_t> tokens = {};                    ///< T
  std::optional<std::size_t> key_dim = {};                   ///< K
  std::optional<std::size_t> value_dim = {};                 ///< V
  std::optional<std::size_t> key_heads = {};                 ///< H
  std::optional<std::size_t> value_heads = {};               ///< HV
  std::optional<std::size_t> num_householder = {};           ///< n
  std::optional<format> dtype = {};                          ///< of q, k, v, beta; g and initial_state are fp32 (fp64 with fp64)
  std::optional<std::string> beta = {};                      ///< a name in beta_laws(), or a decimal: that step length throughout
  std::optional<std::string> gate = {};                      ///< a name in gate_laws(), or a decimal: that log decay throughout
  std::optional<std::string> initial_state = {};             ///< a name in initial_state_laws()
  std::optional<std::string> law = {};                       ///< "cosine=0.9,flip=0.5", of the regime law: see law_parameters()
  std::optional<std::vector<std::int64_t>> cu_seqlens = {};  ///< empty: not packed
  bool cotangents = false;  ///< do in dtype and dfinal_state in the format of initial_state too, standard normal

  friend bool operator==(const generation&, const generation&) = default;
};

/// One regime: what it is like and which fault it brings to light.
struct regime_info {
  std::string_view name;
  std::string_view what;
  std::string_view why;
  bool unit_keys;       ///< each key has norm 1 before it is rounded to its format
  double least_cosine;  ///< the mean cosine between two keys of a head lies in [least, most] for T >= 64, K >= 16
  double most_cosine;
};

/// A named law, in one sentence.
struct law_info {
  std::string_view name;
  std::string_view meaning;
};

/// A number that the regime `law` takes: what keys, steps, gates and values are drawn from.
struct law_parameter {
  std::string_view name;
  double usual, least, most;
  std::string_view meaning;
};

[[nodiscard]] std::span<const regime_info> regimes();
[[nodiscard]] std::span<const law_parameter> law_parameters();
[[nodiscard]] std::span<const law_info> beta_laws();
[[nodiscard]] std::span<const law_info> gate_laws();
[[nodiscard]] std::span<const law_info> initial_state_laws();

/// The regime of that name. Throws: format_error that lists the names there are.
[[nodiscard]] const regime_info& regime_named(std::string_view name);

/// `wanted` with every field set. Throws: format_error (names), shape_error or domain_error (what does not fit).
[[nodiscard]] generation complete(generation wanted);

/// The options of `deltaproof gen` that state a completed generation: "--regime typical --op delta_rule ...".
[[nodiscard]] std::string options_text(const generation& completed);

/// The problem; complete(wanted) is done inside. Its note names regime and seed.
/// Throws: as complete.
[[nodiscard]] problem generate(const generation& wanted);

}  // namespace deltaproof
