// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
//
// How a planted fault of the backward pass is written down: as fault.hpp has it, between the stages of backward_site.hpp.
#pragma once

#include "emulate/backward_site.hpp"
#include "emulate/fault.hpp"

namespace deltaproof::emulation_detail {

/// The same change in both precisions of the emulator.
struct backward_hook {
  void (*single)(backward_site<float>&) = nullptr;
  void (*wide)(backward_site<double>&) = nullptr;
};
inline void call(const backward_hook& h, backward_site<float>& s) { h.single(s); }
inline void call(const backward_hook& h, backward_site<double>& s) { h.wide(s); }

struct group_hook {
  void (*single)(backward_group<float>&) = nullptr;
  void (*wide)(backward_group<double>&) = nullptr;
};
inline void call(const group_hook& h, backward_group<float>& g) { h.single(g); }
inline void call(const group_hook& h, backward_group<double>& g) { h.wide(g); }

struct planted_backward_hook {
  backward_step at;
  bool before;  ///< the stage reads a changed copy; otherwise what it leaves is changed
  backward_hook change;
};
struct planted_group_hook {
  backward_step at;  ///< group or norm: after it
  group_hook change;
};

struct backward_fault_code {
  /// Of the backward pass alone: the forward pass keeps its own.
  void (*arithmetic)(backward_variant&, const head_input&) = nullptr;
  /// What the kernel reads for (sequence, head) instead.
  void (*reads)(const problem&, std::size_t sequence, std::size_t head, const plan_variant&, head_cotangents&) = nullptr;
  std::vector<planted_backward_hook> hooks;
  std::vector<planted_group_hook> group_hooks;
};

}  // namespace deltaproof::emulation_detail
