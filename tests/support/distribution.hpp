// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
//
// Counts which recipes ran: `distribution d; d.add(recipe);` then `out << d` says how many had long chunks, tails, gates
// of each kind, a decay of 0, repeated keys and so on. A test without such a table cannot say what it has seen.
#pragma once

#include <array>
#include <cstddef>
#include <iomanip>
#include <ostream>
#include <string>
#include <utility>

#include "support/recipes.hpp"

namespace deltaproof::testing {

class distribution {
 public:
  void add(const sequence_recipe& r) {
    const std::size_t rows = r.tokens * r.steps_per_token;
    ++recipes_;
    if (rows == 0) ++empty_;
    const auto count = [this](std::size_t i, bool yes) { counts_[i] += yes ? 1 : 0; };
    const bool exact_family = r.regime == key_regime::unit_signs || r.regime == key_regime::hadamard;
    const std::size_t key_dim = exact_family ? power_of_four(r.key_dim) : r.key_dim;
    count(0, r.chunk == 1);
    count(1, r.chunk > 1 && r.chunk <= 8);
    count(2, r.chunk > 8 && r.chunk < 64);
    count(3, r.chunk >= 64);
    count(4, rows > r.chunk);
    count(5, rows % r.chunk != 0);
    count(6, rows > r.chunk && r.chunk % r.steps_per_token != 0);
    count(7, key_dim != r.value_dim);
    count(8, r.steps_per_token > 1);
    count(9, r.decays == decay_kind::none);
    count(10, r.decays == decay_kind::per_token);
    count(11, r.decays == decay_kind::per_channel);
    count(12, has_zero_decay(r));
    count(13, r.initial_state);
    count(14, r.regime == key_regime::one_key || r.regime == key_regime::vocabulary || r.regime == key_regime::alternating);
    count(15, r.regime == key_regime::zero_keys);
    count(16, exact_family);
    count(17, r.step_from < 0);
  }

  [[nodiscard]] std::size_t recipes() const { return recipes_; }
  [[nodiscard]] std::size_t empty() const { return empty_; }

  friend std::ostream& operator<<(std::ostream& out, const distribution& d) {
    constexpr std::array<const char*, 18> names{"C = 1",
                                                "C 2..8",
                                                "C 9..63",
                                                "C = 64",
                                                "several chunks",
                                                "with a tail",
                                                "chunk ends inside a token",
                                                "K != V",
                                                "several steps a token",
                                                "no gate",
                                                "gate per token",
                                                "gate per channel",
                                                "a decay of 0",
                                                "initial state",
                                                "repeated keys",
                                                "zero keys",
                                                "unit sign keys",
                                                "steps outside [0, 2]"};
    out << "  what ran, in % of " << d.recipes_ << " recipes:";
    for (std::size_t i = 0; i < names.size(); ++i) {
      const double share = d.recipes_ == 0 ? 0 : 100.0 * static_cast<double>(d.counts_[i]) / static_cast<double>(d.recipes_);
      out << (i % 4 == 0 ? "\n    " : "   ") << std::left << std::setw(26) << names[i] << std::right << std::setw(5) << std::fixed
          << std::setprecision(1) << share;
    }
    return out << "\n    without a row: " << d.empty_ << "\n";
  }

 private:
  [[nodiscard]] static bool has_zero_decay(const sequence_recipe& r) {
    if (r.decays == decay_kind::none) return false;
    for (const float a : make_sequence<float>(r).decay) {
      if (a == 0) return true;
    }
    return false;
  }

  std::size_t recipes_ = 0;
  std::size_t empty_ = 0;
  std::array<std::size_t, 18> counts_{};
};

}  // namespace deltaproof::testing
