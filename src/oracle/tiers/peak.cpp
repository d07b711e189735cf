// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT

#include "oracle/tiers/peak.hpp"

#include "oracle/tiers/simd.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "oracle/tiers/peak.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace deltaproof::tiers::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

std::size_t multiply_adds(std::size_t count, double& sink) {
  const hn::ScalableTag<double> d;
  constexpr std::size_t chains = 12;
  hn::Vec<decltype(d)> sum[chains];
  for (std::size_t i = 0; i < chains; ++i) sum[i] = hn::Set(d, static_cast<double>(i));
  const auto x = hn::Set(d, 0.999), y = hn::Set(d, 1e-3);
  const std::size_t each = chains * hn::Lanes(d), rounds = count / each + 1;
  for (std::size_t r = 0; r < rounds; ++r) {
    for (auto& s : sum) s = hn::MulAdd(s, x, y);
  }
  for (std::size_t i = 1; i < chains; ++i) sum[0] = hn::Add(sum[0], sum[i]);
  sink += hn::GetLane(sum[0]);
  return rounds * each;
}

}  // namespace deltaproof::tiers::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace deltaproof::tiers {

HWY_EXPORT(multiply_adds);

std::size_t run_multiply_adds(std::size_t count, double& sink) { return HWY_DYNAMIC_DISPATCH(multiply_adds)(count, sink); }

}  // namespace deltaproof::tiers
#endif
