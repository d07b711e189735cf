// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
//
// How a planted fault is written down: as a change of the arithmetic, of what a head reads, or of what one stage reads or
// leaves. A hook before a stage works on a copy that only this stage sees; a hook after it changes what everyone reads.
#pragma once

#include <array>
#include <cstddef>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "deltaproof/emulate/faults.hpp"
#include "emulate/site.hpp"

namespace deltaproof::emulation_detail {

/// The same change in both precisions of the emulator.
struct hook {
  void (*single)(site<float>&) = nullptr;
  void (*wide)(site<double>&) = nullptr;
};
/// From a generic lambda without captures.
template <class F>
[[nodiscard]] hook make_hook(F) {
  return {[](site<float>& s) { F{}(s); }, [](site<double>& s) { F{}(s); }};
}
inline void call(const hook& h, site<float>& s) { h.single(s); }
inline void call(const hook& h, site<double>& s) { h.wide(s); }

struct planted_hook {
  step_kind at;
  bool before;  ///< the stage reads a changed copy; otherwise what it leaves is changed
  hook change;
};

struct backward_fault_code;

/// All that a problem must have for a fault to happen; none: any problem can have it.
class condition {
 public:
  constexpr condition() = default;
  constexpr condition(std::string_view what, bool (*met)(const problem&)) : needs_{{{what, met}}}, count_{1} {}
  [[nodiscard]] constexpr condition operator&(const condition& other) const {
    condition both = *this;
    for (const fault_need& n : other.needs()) both.needs_.at(both.count_++) = n;
    return both;
  }
  [[nodiscard]] constexpr std::span<const fault_need> needs() const { return {needs_.data(), count_}; }

 private:
  std::array<fault_need, 3> needs_ = {};
  std::size_t count_ = 0;
};

struct fault_code {
  void (*arithmetic)(plan_variant&, const head_input&) = nullptr;
  /// What the kernel reads for (sequence, head) instead. The plan is that of the run.
  void (*reads)(const problem&, std::size_t sequence, std::size_t head, const plan_variant&, head_input&) = nullptr;
  std::vector<planted_hook> hooks;
  condition needs;
  std::shared_ptr<const backward_fault_code> backward = {};  ///< of a fault of the backward pass: then the forward pass is right
};

}  // namespace deltaproof::emulation_detail
