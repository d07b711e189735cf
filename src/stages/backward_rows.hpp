// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
//
// What the stages of a backward pass are read from, and those of its stages that several heads make together.
#pragma once

#include <algorithm>
#include <cmath>
#include <map>
#include <string>
#include <string_view>

#include "stages/head_stages.hpp"
#include "stages/parts.hpp"
#include "stages/tally.hpp"

namespace deltaproof::stages_detail {

using tallies_of = std::map<std::string, tally, std::less<>>;

/// What is stored of the stages that are judged and of what they are made of; null: not.
struct stored_tensors {
  std::map<std::string_view, const tensor*> all;

  explicit stored_tensors(const result& r) {
    for (const auto* list : {&r.stages, &r.backward_stages, &r.gradients}) {
      for (const auto& [name, t] : *list) all[name] = &t;
    }
  }
  [[nodiscard]] const tensor* find(std::string_view name) const {
    const auto found = all.find(name);
    return found == all.end() ? nullptr : found->second;
  }
  /// The first of these that is not stored; empty if all are.
  [[nodiscard]] std::string_view missing(std::span<const std::string_view> names) const {
    for (const std::string_view name : names) {
      if (!name.empty() && find(name) == nullptr) return name;
    }
    return {};
  }
};

/// dq and dk of the heads that share q and k, and through the l2norm: what no head has alone.
class backward_group_rows {
 public:
  backward_group_rows(const problem& p, const stored_tensors& stored, const plan_variant& v, const arithmetic_errors& errors,
                      const head_place& place, tallies_of& out)
      : p_{p}, stored_{stored}, b_{*v.backward}, v_{v}, errors_{errors}, place_{place}, out_{out} {}

  /// What one head gave, in the order of heads; its inputs stay where they are.
  void add(const balls& dq, const balls& dk, const head_inputs& in) {
    join(dq_, dq);
    join(dk_, dk);
    if (in_ == nullptr) in_ = &in;
  }
  void judge() {
    judge_rows("dq", "dq_hat", dq_, in_->q, p_.q, 1);
    judge_rows("dk", "dk_hat", dk_, in_->k, p_.k, p_.num_householder);
  }

 private:
  void join(balls& all, const balls& one) const {
    if (all.rows == 0) {
      all = one;
      return;
    }
    for (std::size_t i = 0; i < all.rows; ++i) {
      for (std::size_t m = 0; m < all.cols; ++m) {
        const ball x = all.at(i, m), y = one.at(i, m);
        all.set(i, m, {x.value + y.value, x.radius + y.radius + (x.upper() + y.upper()) * unit_roundoff(b_.group_sum)});
      }
    }
  }
  void judge_rows(const char* name, const char* before_norm, const balls& sum, const balls& y, const tensor& x,
                  std::size_t steps) {
    const char* const of_sum = p_.qk_l2norm ? before_norm : name;
    if (out_.find(of_sum) != out_.end()) compare(of_sum, narrow(sum, {b_.group_store, false}), steps);
    if (!p_.qk_l2norm || out_.find(name) == out_.end()) return;
    compare(name, through_norm(rows_of(before_norm, steps), y, read_rows(x, steps)), steps);
  }
  [[nodiscard]] balls read_rows(const tensor& t, std::size_t steps) const {
    const std::size_t first = (place_.sequence.batch * p_.tokens() + place_.sequence.first_token) * steps, K = p_.key_dim();
    return load_rows(t, first, place_.sequence.tokens * steps, p_.key_heads() * K, key_head() * K, K);
  }
  [[nodiscard]] balls rows_of(std::string_view name, std::size_t steps) const { return read_rows(*stored_.find(name), steps); }
  [[nodiscard]] std::size_t key_head() const { return place_.head / (p_.value_heads() / p_.key_heads()); }

  void compare(const char* name, const balls& want, std::size_t steps) {
    const balls got = rows_of(name, steps);
    const std::vector<double> none(want.cols, 0.0);
    const std::size_t rows_of_chunk = std::max<std::size_t>(1, v_.chunk * steps / p_.num_householder);
    for (std::size_t i = 0; i < got.rows; ++i) {
      stage_place at;
      at.batch = place_.sequence.batch;
      at.sequence = place_.number;
      at.head = key_head();
      at.chunk = i / rows_of_chunk;
      at.row = i % rows_of_chunk;
      out_.find(name)->second.add(
          at, std::span(got.value).subspan(i * got.cols, got.cols), std::span(want.value).subspan(i * got.cols, got.cols),
          want.exact() ? std::span(none) : std::span<const double>(want.radius).subspan(i * got.cols, got.cols));
    }
  }

  /// With y = r x, r = (|x|^2 + epsilon)^(-1/2): dx = r (dy - y <dy, y>).
  [[nodiscard]] balls through_norm(const balls& dy, const balls& y, const balls& x) const {
    const std::size_t K = x.cols;
    const double u = std::max(errors_.elementwise, unit_roundoff(v_.l2norm_compute));
    const double of_root = gamma(K + 4, u) + (v_.rsqrt_ulps + 1) * u + static_cast<double>(K) * own_roundoff;
    balls out(x.rows, K);
    for (std::size_t i = 0; i < x.rows; ++i) {
      double squares = 0, along = 0, upper = 0, terms = 0;
      for (std::size_t m = 0; m < K; ++m) squares += x.at(i, m).value * x.at(i, m).value;
      const double root = 1 / std::sqrt(squares + v_.l2norm_epsilon);
      const auto row = [&](std::size_t m) {
        if (b_.l2norm_from == norm_source::stored) return y.at(i, m);
        const double value = x.at(i, m).value * root;
        return ball{value, std::fabs(value) * (of_root + u)};
      };
      for (std::size_t m = 0; m < K; ++m) {
        along += dy.at(i, m).value * row(m).value;
        terms += std::fabs(dy.at(i, m).value * row(m).value);
        upper += dy.at(i, m).upper() * row(m).upper();
      }
      const double along_error = errors_.bound(terms, upper, 1, 1, K + 1, u);
      for (std::size_t m = 0; m < K; ++m) {
        const ball n = row(m);
        const double value = dy.at(i, m).value - n.value * along;
        const double size = dy.at(i, m).upper() + n.upper() * (std::fabs(along) + along_error);
        const double error = n.upper() * along_error + n.radius * std::fabs(along) + size * 4 * u;
        out.set(i, m, {root * value, root * (error * (1 + of_root) + size * (of_root + 2 * u)) + errors_.underflow});
      }
    }
    return out;
  }

  const problem& p_;
  const stored_tensors& stored_;
  const backward_variant& b_;
  const plan_variant& v_;
  const arithmetic_errors& errors_;
  const head_place& place_;
  tallies_of& out_;
  const head_inputs* in_ = nullptr;
  balls dq_, dk_;
};

}  // namespace deltaproof::stages_detail
