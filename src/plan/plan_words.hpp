// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
//
// The words that the keys of a plan take, by the kind of what is chosen.
#pragma once

#include <string_view>
#include <vector>

#include "deltaproof/plan/plan.hpp"

namespace deltaproof::plan_detail {

using names = std::vector<std::string_view>;

inline constexpr std::string_view stored_word = "stored";
inline constexpr std::string_view all_columns = "all";
inline constexpr std::string_view one_part = "none";

template <class Kind, std::size_t N>
names names_in(const detail::kind_names<Kind, N>& table) {
  names all;
  for (const auto& [value, name] : table) all.push_back(name);
  return all;
}

// The words of each kind of choice.
constexpr const auto& words_of(gate_form) { return gate_form_names; }
constexpr const auto& words_of(write_decay) { return write_decay_names; }
constexpr const auto& words_of(read_decay) { return read_decay_names; }
constexpr const auto& words_of(step_factor) { return step_factor_names; }
constexpr const auto& words_of(read_scale) { return read_scale_names; }
constexpr const auto& words_of(change_form) { return change_form_names; }
constexpr const auto& words_of(cotangent_decay) { return cotangent_decay_names; }
constexpr const auto& words_of(sum_order) { return sum_order_names; }
constexpr const auto& words_of(tile_order) { return tile_order_names; }
constexpr const auto& words_of(gate_gradient) { return gate_gradient_names; }
constexpr const auto& words_of(diagonal_terms) { return diagonal_terms_names; }
constexpr const auto& words_of(step_gradient) { return step_gradient_names; }
constexpr const auto& words_of(norm_source) { return norm_source_names; }

}  // namespace deltaproof::plan_detail
