// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
//
// Problems and texts on which plans are tested.
#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "deltaproof/plan/plan.hpp"

namespace deltaproof::testing {

/// Two tokens of zeros: all that a plan asks of a problem is its op, its formats and what it computes.
inline problem small(op_kind op, format x, format beta = fp32, bool l2norm = true) {
  const auto zeros = [](format f, std::vector<std::size_t> shape) {
    const std::vector<double> x(element_count(shape), 0.0);
    return tensor::from_doubles(f, std::move(shape), x);
  };
  problem p;
  p.op = op;
  p.q = p.k = p.v = zeros(x, {1, 2, 1, 2});
  p.beta = zeros(beta, {1, 2, 1});
  p.qk_l2norm = l2norm;
  if (op == op_kind::kda) p.g = zeros(fp32, {1, 2, 1, 2});
  if (op == op_kind::gated_delta_rule || op == op_kind::gated_delta_product) p.g = zeros(fp32, {1, 2, 1});
  validate(p, "test");
  return p;
}

inline std::vector<std::string> names_of(const std::vector<plan_variant>& all) {
  std::vector<std::string> names;
  for (const plan_variant& v : all) names.push_back(v.name);
  return names;
}

/// A plan's text by section and key, to be changed line by line.
class plan_lines {
 public:
  /// Every key there is, with a merge, a gate of blocks, tf32 and a tensor core.
  static plan_lines full() {
    plan_lines t;
    t.lines_ = {
        {"",
         {{"name", "\"mine\""},
          {"what", "\"a plan\""},
          {"source", "\"here\""},
          {"kernels", "\"my kernel\""},
          {"ops", "\"kda\""},
          {"path", "\"chunk\""},
          {"dtypes", "\"bf16\""},
          {"chunk", "64"}}},
        {"l2norm", {{"compute", "\"fp32\""}, {"store", "\"X\""}, {"epsilon", "1e-5"}}},
        {"gate", {{"cumsum", "\"fp32\""}, {"form", "\"reference-block\""}, {"block", "16"}, {"contract", "[-5, 0.0]"}}},
        {"beta", {{"format", "\"given\""}}},
        {"A", {{"operand", "\"tf32\""}, {"accumulate", "\"fp32\""}, {"order", "\"tensor-core\""}, {"store", "\"fp32\""}}},
        {"inverse",
         {{"method", "\"forward16+block\""},
          {"operand", "\"fp32\""},
          {"accumulate", "\"fp32\""},
          {"merge_operand", "\"fp32\""},
          {"merge_accumulate", "\"fp32\""},
          {"association", "\"any\""},
          {"between", "\"none\""},
          {"store", "\"X\""}}},
        {"u", {{"operand_store", "\"X\""}, {"accumulate", "\"fp32\""}, {"store", "\"X\""}}},
        {"w", {{"operand_store", "\"X\""}, {"accumulate", "\"fp32\""}, {"store", "\"X\""}}},
        {"state",
         {{"accumulate", "\"fp32\""}, {"store", "\"X\""}, {"between_tokens", "\"none\""}, {"between_calls", "\"bf16\""}}},
        {"v_new",
         {{"store", "\"X\""},
          {"state_operand", "\"stored\""},
          {"update_operand", "\"X\""},
          {"key_operand", "\"X\""},
          {"decay", "\"k\""}}},
        {"o",
         {{"operand", "\"X\""},
          {"accumulate", "\"fp32\""},
          {"store", "\"X\""},
          {"decay", "\"q\""},
          {"state_operand", "\"stored\""},
          {"value_operand", "\"X\""},
          {"scale", "\"o\""},
          {"read_store", "\"none\""}}},
        {"backward",
         {{"accumulate", "\"fp32\""},
          {"operand", "\"X\""},
          {"read_operand", "\"tf32\""},
          {"intra_operand", "\"fp32\""},
          {"h", "\"stored\""},
          {"v_new", "\"stored\""},
          {"dh", "\"X\""},
          {"dv_local", "\"X\""},
          {"dv2", "\"X\""},
          {"dw", "\"X\""},
          {"ds", "\"fp32\""},
          {"dA_between", "\"X\""},
          {"dA", "\"fp32\""},
          {"state_sum", "\"X\""},
          {"state_sum_order", "\"4-warps\""},
          {"dg_form", "\"rows\""},
          {"diagonal", "\"numeric\""},
          {"dg", "\"fp32\""},
          {"dq", "\"fp32\""},
          {"dk", "\"fp32\""},
          {"dbeta", "\"given\""},
          {"dbeta_form", "\"sum\""},
          {"group_sum", "\"fp32\""},
          {"group_store", "\"X\""},
          {"l2norm_from", "\"stored\""}}},
        {"hardware",
         {{"exp2_ulps", "2"},
          {"rsqrt_ulps", "1.5"},
          {"flush_to_zero", "true"},
          {"accumulator_bits", "25"},
          {"truncation", "true"},
          {"block", "8"},
          {"tf32", "\"rz\""}}},
    };
    return t;
  }

  plan_lines& set(const std::string& section, const std::string& key, const std::string& value) {
    lines_[section][key] = value;
    return *this;
  }
  plan_lines& drop(const std::string& section, const std::string& key) {
    lines_.at(section).erase(key);
    return *this;
  }
  plan_lines& drop(const std::string& section) {
    lines_.erase(section);
    return *this;
  }
  plan_lines& append(const std::string& more) {
    after_ += more;
    return *this;
  }
  [[nodiscard]] const std::map<std::string, std::map<std::string, std::string>>& lines() const { return lines_; }

  [[nodiscard]] std::string str() const {
    std::string all;
    for (const auto& [section, keys] : lines_) {
      if (!section.empty()) all += "[" + section + "]\n";
      for (const auto& [key, value] : keys) all += key + " = " + value + "\n";
    }
    return all + after_;
  }
  [[nodiscard]] plan read() const { return parse_plan(str(), "mine.toml"); }

 private:
  std::map<std::string, std::map<std::string, std::string>> lines_;
  std::string after_;
};

}  // namespace deltaproof::testing
