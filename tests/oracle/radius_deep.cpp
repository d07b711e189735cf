// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
//
// No radius below a true error: ten thousand problems of every regime, rule, op and format, T up to 4096 and d up to 128,
// each at every tier, against the plain recurrence in reals of 430 bits. Prints radius / true error as a distribution.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstdio>
#include <map>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "deltaproof/inputs/regimes.hpp"
#include "deltaproof/number/random.hpp"
#include "deltaproof/oracle/reference.hpp"
#include "oracle/slow_reference.hpp"
#include "support/multiplier.hpp"

namespace deltaproof {
namespace {

using real = boost::multiprecision::number<boost::multiprecision::mpfr_float_backend<130, boost::multiprecision::allocate_stack>,
                                           boost::multiprecision::et_off>;

struct tier_bits {
  const char* name;
  int bits;
};
constexpr tier_bits tier_list[] = {{"fp64", 53}, {"double-double", 106}, {"128 bits", 128}, {"256 bits", 256}};

/// Sizes whose recurrence costs at most `budget` multiply-adds; what a regime does not come in is drawn again.
problem draw(std::uint64_t number, std::string& what) {
  for (std::uint64_t attempt = 0;; ++attempt) {
    philox random(number, attempt);
    const auto pick = [&](std::size_t n) { return static_cast<std::size_t>(random.below(n)); };
    const auto size = [&](double most) { return static_cast<std::size_t>(std::exp2(random.uniform() * std::log2(most + 0.99))); };
    generation g;
    g.regime = std::string(regimes()[pick(regimes().size())].name);
    g.seed = number;
    g.op = std::array{op_kind::delta_rule, op_kind::gated_delta_rule, op_kind::kda, op_kind::gated_delta_product}[pick(4)];
    g.dtype = std::array{bf16, bf16, fp16, fp32, fp64}[pick(5)];
    if (pick(3) == 0) g.beta = std::string(beta_laws()[pick(beta_laws().size())].name);
    if (pick(3) == 0) g.gate = std::string(gate_laws()[pick(gate_laws().size())].name);
    if (pick(3) == 0) g.initial_state = std::string(initial_state_laws()[pick(initial_state_laws().size())].name);
    // One in a hundred at full size.
    const double budget = number % 100 == 0 ? 2e6 : 1e5;
    g.tokens = size(4096);
    g.key_dim = size(128);
    g.value_dim = 1 + pick(3);
    if (static_cast<double>(*g.tokens * *g.key_dim * *g.value_dim) > budget) continue;
    g.key_heads = g.value_heads = 1;
    try {
      problem p = generate(g);
      if (static_cast<double>(p.batch() * p.tokens() * p.value_heads() * p.num_householder * p.key_dim() * p.value_dim()) >
          2 * budget)
        continue;
      if (pick(2) == 0) p.rule = rule_names[pick(rule_names.size())].first;
      if (!p.qk_l2norm) p.qk_l2norm = pick(4) == 0;
      what = "problem " + std::to_string(number) + ": regime " + g.regime + ", T = " + std::to_string(p.tokens()) +
             ", K = " + std::to_string(p.key_dim()) + ", V = " + std::to_string(p.value_dim()) + (p.g ? ", gate" : "") +
             (p.qk_l2norm ? ", l2norm" : "") + ", rule " + std::string(detail::name_in(rule_names, p.rule));
      return p;
    } catch (const error&) {
      continue;  // the regime does not come in this shape
    }
  }
}

/// log10 of radius / true error.
using ratios = std::vector<double>;

/// The first element outside its radius, or nothing.
std::string outside(const char* tensor, const reference_tensor& got, const std::vector<real>& want, ratios& seen) {
  const std::size_t stride = std::max<std::size_t>(1, want.size() / 32);
  // What 430 bits leave uncertain of the reference itself, by far.
  real own = 0;
  for (const real& x : want) own = std::max(own, real(abs(x)));
  own *= real("1e-90");
  for (std::size_t i = 0; i < want.size(); ++i) {
    if (!(got.radius[i] < std::numeric_limits<double>::infinity())) continue;
    real error = want[i] - got.value[i];
    for (const auto& low : got.low) error -= low[i];
    error = abs(error);
    if (error > real(got.radius[i]) + own) {
      return std::string(tensor) + " element " + std::to_string(i) + ": error " + error.str(6) + " beyond the radius " +
             std::to_string(std::log10(got.radius[i])) + " (log10)";
    }
    if (i % stride == 0 && error > own) seen.push_back(std::log10(got.radius[i]) - static_cast<double>(log10(error)));
  }
  return {};
}

TEST(radius, of_every_tier_contains_the_truth_of_ten_thousand_problems) {
  const std::size_t problems = scaled(10000);
  std::map<std::string, ratios> by_tier;
  std::map<std::string, std::size_t> unbounded;
  std::mutex lock;
  std::atomic<std::size_t> next{0}, failures{0};
  const auto work = [&] {
    for (std::size_t i = next++; i < problems && failures < 10; i = next++) {
      std::string what;
      const problem p = draw(i, what);
      const auto want = testing::slow_solve<real>(p);
      for (const tier_bits& tier : tier_list) {
        question q;
        q.threads = 1;
        q.min_bits = q.max_bits = tier.bits;
        const reference ref = solve(p, q);
        ratios seen;
        std::string wrong = outside("o", ref.o, want.o, seen);
        if (wrong.empty()) wrong = outside("final_state", ref.final_state, want.final_state, seen);
        const std::lock_guard guard(lock);
        auto& all = by_tier[tier.name];
        all.insert(all.end(), seen.begin(), seen.end());
        for (const double r : ref.o.radius) unbounded[tier.name] += r < std::numeric_limits<double>::infinity() ? 0 : 1;
        if (wrong.empty()) continue;
        ++failures;
        ADD_FAILURE() << what << ", tier " << tier.name << ": " << wrong;
      }
    }
  };
  std::vector<std::thread> threads;
  for (unsigned t = 0; t < std::max(1U, std::thread::hardware_concurrency()); ++t) threads.emplace_back(work);
  for (auto& t : threads) t.join();
  std::printf("%zu problems; log10(radius / true error): least, 5 %%, median, 95 %%, largest; outputs without a finite radius\n",
              problems);
  for (auto& [name, all] : by_tier) {
    std::sort(all.begin(), all.end());
    const auto at = [&](double share) { return all[static_cast<std::size_t>(share * static_cast<double>(all.size() - 1))]; };
    std::printf("%-14s %7.2f %7.2f %7.2f %7.2f %7.2f   %zu\n", name.c_str(), all.front(), at(0.05), at(0.5), at(0.95), all.back(),
                unbounded[name]);
    EXPECT_GE(all.front(), 0);
    EXPECT_GE(all.size(), problems) << name;
  }
}

}  // namespace
}  // namespace deltaproof
