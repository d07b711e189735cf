// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT

#include "oracle/tiers/peak.hpp"

#include <hwy/aligned_allocator.h>

#include <algorithm>

#include "oracle/tiers/simd.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "oracle/tiers/peak.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace deltaproof::tiers::HWY_NAMESPACE {
#include "oracle/tiers/lanes.inc"
#include "oracle/tiers/pass_two.inc"

std::size_t multiply_adds(std::size_t count, double& sink) {
  constexpr std::size_t chains = 12;
  V sum[chains];
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

std::size_t passes(std::size_t key_dim, std::size_t count, double& sink) {
  constexpr std::size_t sets = 2;  // in turn, as in the tier
  const std::size_t each = 6 * key_dim * lanes(), rounds = count / (sets * each) + 1;
  const auto memory = hwy::AllocateAligned<double>(key_dim * (sets * lanes() + 6));
  double* const keys = memory.get() + key_dim * sets * lanes();
  std::fill(memory.get(), keys, 0.0);
  std::fill(keys, keys + 6 * key_dim, 0x1p-10);
  const V w[1] = {hn::Set(d, 0x1p-10)};
  for (std::size_t r = 0; r < rounds; ++r) {
    for (std::size_t set = 0; set < sets; ++set) {
      V p0[1], p1[1], o0[1], o1[1];
      pass_two<1>(key_dim, memory.get() + set * key_dim * lanes(), keys, keys + 2 * key_dim, keys + 4 * key_dim, w, w, p0, p1, o0,
                  o1);
      sink += hn::GetLane(hn::Add(hn::Add(p0[0], p1[0]), hn::Add(o0[0], o1[0])));
    }
  }
  return rounds * sets * each;
}

}  // namespace deltaproof::tiers::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace deltaproof::tiers {

HWY_EXPORT(multiply_adds);
HWY_EXPORT(passes);

std::size_t run_multiply_adds(std::size_t count, double& sink) { return HWY_DYNAMIC_DISPATCH(multiply_adds)(count, sink); }

std::size_t run_passes(std::size_t key_dim, std::size_t count, double& sink) {
  return HWY_DYNAMIC_DISPATCH(passes)(key_dim, count, sink);
}

}  // namespace deltaproof::tiers
#endif
