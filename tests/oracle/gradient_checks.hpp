// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
//
// Judges gradients of hostile problems in every tier: radii against derivatives that the forward pass itself carries.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <limits>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "deltaproof/number/random.hpp"
#include "deltaproof/oracle/gradients.hpp"
#include "oracle/gradient_judge.hpp"
#include "oracle/hostile_problems.hpp"

namespace deltaproof::testing {

using plain_bits = real<4200>;
using all_bits = real<20000>;

inline problem with_cotangents(problem p, std::uint64_t number) {
  philox random(77, number);
  const int exponents[] = {0, 0, 0, -30, 30, -500, 500, -1060, 900, -1074};
  const auto draw = [&](std::vector<std::size_t> shape, const char* name) {
    std::size_t count = 1;
    for (const std::size_t n : shape) count *= n;
    const int exponent = exponents[random.below(std::size(exponents))];
    std::vector<double> x(count);
    for (double& xi : x) {
      xi = random.below(5) == 0
               ? 0
               : std::ldexp(1 + random.uniform(), std::clamp(exponent + static_cast<int>(random.below(5)) - 2, -1074, 1000));
      if (random.below(2) == 0) xi = -xi;
    }
    return tensor::from_doubles(fp64, std::move(shape), x, name);
  };
  const auto which = random.below(4);
  if (which != 0) p.d_o = draw({1, p.tokens(), 1, p.value_dim()}, "do");
  if (which < 2) p.d_final_state = draw({1, 1, p.key_dim(), p.value_dim()}, "dfinal_state");
  return p;
}

template <class R>
R sum_of(const reference_tensor& t, std::size_t i) {
  R out(t.value[i]);
  for (const auto& low : t.low) out += R(low[i]);
  return out;
}

struct gradient_tally {
  std::size_t radii = 0, infinite = 0, exact = 0;
  std::vector<double> ratios;
};

/// The derivatives of one problem that were worked out so far, by tensor and element.
using slopes_so_far = std::map<std::pair<std::size_t, std::size_t>, plain_bits>;

inline void judge_element(const problem& p, const reference_tensor& t, const moved_input& at, const std::string& where,
                          gradient_tally& out, slopes_so_far& slopes) {
  ++out.radii;
  if (!std::isfinite(t.radius[at.element])) {
    ++out.infinite;
    return;
  }
  const auto [slope, is_new] = slopes.try_emplace({at.tensor, at.element});
  if (is_new) slope->second = slope_of_loss<plain_bits>(p, at);
  const plain_bits error = abs(slope->second - sum_of<plain_bits>(t, at.element));
  if (t.radius[at.element] == 0) ++out.exact;
  if (error <= t.radius[at.element]) {
    if (t.radius[at.element] > 0) out.ratios.push_back(static_cast<double>(error / plain_bits(t.radius[at.element])));
    return;
  }
  // What the judge itself rounds falls with its digits; an error stays.
  const all_bits sure = abs(slope_of_loss<all_bits>(p, at) - sum_of<all_bits>(t, at.element));
  EXPECT_TRUE(sure <= t.radius[at.element] || sure < all_bits(error) * pow(all_bits(2), -2000))
      << where << ", " << gradient_names[at.tensor] << "[" << at.element << "]: " << t.value[at.element] << " +- "
      << t.radius[at.element] << ", error " << static_cast<double>(sure);
}

inline void judge_problem(std::uint64_t number, gradient_tally& out) {
  const problem p = with_cotangents(hostile_problem(3, number), number);
  slopes_so_far slopes;
  for (const int bits : {53, 106, 1024}) {
    question q;
    q.max_bits = bits;
    q.threads = 1;
    if (bits > 53) q.round_output = q.round_state = fp64;  // no coarser tier answers that
    reference_gradients got;
    try {
      got = solve_gradients(p, q);
    } catch (const domain_error&) {
      return;  // at a pole
    }
    for (std::size_t i = 0; i < gradient_names.size(); ++i) {
      const auto found = got.tensors.find(gradient_names[i]);
      if (found == got.tensors.end() || found->second.value.empty()) continue;
      philox random(78, number * gradient_names.size() + i);  // the same elements in every tier
      for (int some = 0; some < 3; ++some) {
        const std::size_t element = static_cast<std::size_t>(random.below(found->second.value.size()));
        judge_element(p, found->second, {i, element},
                      "hostile problem " + std::to_string(number) + " at " + std::to_string(bits) + " bits", out, slopes);
      }
    }
  }
}

inline void judge_problems(std::uint64_t first, std::uint64_t count) {
  gradient_tally all;
  for (std::uint64_t i = first; i < first + count && !::testing::Test::HasFailure(); ++i) judge_problem(i, all);
  std::sort(all.ratios.begin(), all.ratios.end());
  const auto at = [&](double share) {
    return all.ratios.empty() ? 0 : all.ratios[static_cast<std::size_t>(share * static_cast<double>(all.ratios.size() - 1))];
  };
  std::printf("%zu radii: %zu infinite, %zu zero; error/radius median %.2g, 99 %% %.2g, largest %.2g\n", all.radii, all.infinite,
              all.exact, at(0.5), at(0.99), at(1));
}

}  // namespace deltaproof::testing
