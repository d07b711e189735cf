// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
//
// What a plan's backward pass costs beside its formats alone, measured again by runs that the referee does not make:
// `cost_of_gradient(plan, p, path, chunk, "dg")` is the largest ratio of typical errors, over heads, variants and both laws of
// runs. A plan that is called inadequate where this is small is wronged. Where the exact gradient is 0 there is no ratio: 0.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <string_view>
#include <vector>

#include "deltaproof/emulate/emulate_gradients.hpp"
#include "referee/lanes.hpp"
#include "referee/place_cost.hpp"

namespace deltaproof::testing {

/// By head: one matrix of all that is asked for.
inline std::vector<matrix<double>> entries_of(const group_gradients& run, std::string_view gradient) {
  if (gradient == "dq") return {run.dq};
  if (gradient == "dk") return {run.dk};
  std::vector<matrix<double>> out;
  for (const head_gradients& head : run.heads) {
    if (gradient == "dv") out.push_back(head.dv);
    if (gradient == "dg") out.push_back(head.dg);
    if (gradient == "dinitial_state") out.push_back(head.dinitial_state);
    if (gradient != "dbeta") continue;
    out.emplace_back(1, head.dbeta.size());
    std::copy(head.dbeta.begin(), head.dbeta.end(), out.back().data());
  }
  return out;
}

inline double norm_of(const matrix<double>& m) {
  double squares = 0;
  for (const double x : m.entries()) squares += x * x;
  return std::isfinite(squares) ? std::sqrt(squares) : std::numeric_limits<double>::infinity();
}

/// Logarithms of the errors of one head, on the given inputs and on moved ones: the mean of each.
inline std::array<std::vector<double>, 2> typical_errors(const std::vector<gradient_head>& group, const plan_variant& v,
                                                         std::string_view gradient) {
  constexpr std::size_t runs = 8;
  std::array<std::vector<double>, 2> out;
  for (std::size_t law = 0; law < 2; ++law) {
    for (std::size_t i = 0; i < runs; ++i) {
      emulation_options build;
      build.noise_ulps = 1;
      build.seed = 0x5eed + i;
      const auto given = law == 0 ? group : perturbed(group, 0xfade + i, referee_detail::narrowest_operand(v));
      const auto errors = entries_of(error_of_wide_gradients(given, emulate_group_gradients(given, v, build)), gradient);
      out[law].resize(errors.size());
      for (std::size_t head = 0; head < errors.size(); ++head) out[law][head] += std::log(norm_of(errors[head])) / runs;
    }
  }
  return out;
}

inline double cost_of_gradient(const plan& declared, const problem& p, path_kind path, std::size_t chunk,
                               std::string_view gradient) {
  const std::vector<plan_variant> all = gradient_variants(declared, p, path, chunk);
  const plan_variant alone = referee_detail::formats_alone(all.front(), p.l2norm_epsilon);
  double largest = 0;
  for (std::size_t sequence = 0; sequence < p.sequences().size(); ++sequence) {
    for (std::size_t key_head = 0; key_head < p.key_heads(); ++key_head) {
      const std::vector<gradient_head> group = take_group(p, sequence, key_head);
      const auto exact = entries_of(reference_group_gradients(group), gradient);
      const auto formats = typical_errors(group, alone, gradient);
      for (const plan_variant& v : all) {
        const auto own = typical_errors(group, v, gradient);
        for (std::size_t law = 0; law < 2; ++law) {
          for (std::size_t head = 0; head < exact.size(); ++head) {
            if (norm_of(exact[head]) > 0) largest = std::max(largest, std::exp(own[law][head] - formats[law][head]));
          }
        }
      }
    }
  }
  return largest;
}

}  // namespace deltaproof::testing
