// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
#include "stages/head_measurement.hpp"

#include <algorithm>
#include <limits>

namespace deltaproof::stages_detail {

void head_measurement::run() {
  std::size_t begin = 0;
  for (; begin < in_.rows; begin += c_, ++chunk_) {
    const std::size_t rows = std::min(c_, in_.rows - begin);
    if (begin + rows > limit()) break;
    run_chunk(begin, rows);
  }
  if (span_.rows > 0) judge_output(nullptr);
  if (begin < in_.rows) {
    skip_from(begin);
  } else if (stored_.final_state) {
    judge_states("final_state", *stored_.final_state, (place_.number * p_.value_heads() + place_.head) * p_.key_dim());
  }
}

void head_measurement::run_alternatives(std::size_t chunks) {
  for (std::size_t begin = 0; begin < in_.rows && chunk_ < chunks; begin += c_, ++chunk_) {
    const std::size_t rows = std::min(c_, in_.rows - begin);
    if (begin + rows > limit()) return;
    chunk_decays decays = begin_chunk(begin, rows);
    judge_gram(decays);
    judge_inverse(decays);
  }
}

balls head_measurement::initial_state() const {
  if (!p_.initial_state) return balls(keys(), values());
  return load_rows(*p_.initial_state, (place_.number * heads() + place_.head) * keys(), keys(), values(), 0, values());
}

balls head_measurement::unknown(std::size_t rows, std::size_t cols) {
  balls out(rows, cols);
  out.value.assign(rows * cols, std::numeric_limits<double>::quiet_NaN());
  return out;
}

void head_measurement::judge_unknown(std::string_view stage, const balls& got) {
  const balls want = unknown(1, got.cols);
  for (std::size_t i = 0; i < got.rows; ++i) judge_row(stage, 0, at(i), got, i, want, 0, got.cols);
}

balls head_measurement::rows_of(const tensor& t, std::size_t width, std::size_t used) const {
  return load_rows(t, first_row_ + begin_, rows_, heads() * width, place_.head * width, used);
}

balls head_measurement::lower_of(const tensor& t, bool strict) const {
  balls out(rows_, rows_);
  for (std::size_t i = strict ? 1 : 0; i < rows_; ++i) {
    const std::size_t count = i + (strict ? 0 : 1);
    t.read(((first_row_ + begin_ + i) * heads() + place_.head) * c_, std::span(out.value).subspan(i * rows_, count));
  }
  return out;
}

stage_place head_measurement::at(std::size_t row, std::size_t element) const {
  stage_place here;
  here.batch = place_.sequence.batch;
  here.sequence = place_.number;
  here.head = place_.head;
  here.chunk = chunk_;
  here.row = row;
  here.element = element;
  return here;
}

void head_measurement::judge_row(std::string_view stage, std::size_t alternative, const stage_place& where, const balls& got,
                                 std::size_t got_row, const balls& want, std::size_t want_row, std::size_t count) {
  const auto cut = [count](const std::vector<double>& from, std::size_t first) { return std::span(from).subspan(first, count); };
  if (zeros_.size() < count) zeros_.assign(count, 0);
  out_.find(stage)->second[alternative].add(where, cut(got.value, got_row * got.cols), cut(want.value, want_row * want.cols),
                                            want.exact() ? cut(zeros_, 0) : cut(want.radius, want_row * want.cols));
}

chunk_decays head_measurement::begin_chunk(std::size_t begin, std::size_t rows) {
  begin_ = begin;
  rows_ = rows;
  k_ = in_.k.slice(begin, rows);
  v_ = in_.v.slice(begin, rows);
  step_ = in_.step.slice(begin, rows);
  limits_.clear();
  for (std::size_t i = 0; i < rows; ++i) limits_.push_back(i + 1);
  const balls gates = in_.log_gates.slice(begin, rows);
  if (stored_.cumsum == nullptr || gates.cols == 0) return {gates, nullptr, errors_};
  const balls stored = rows_of(*stored_.cumsum, gates.cols, gates.cols);
  return {gates, &stored, errors_};
}

void head_measurement::run_chunk(std::size_t begin, std::size_t rows) {
  chunk_decays decays = begin_chunk(begin, rows);
  if (stored_.cumsum != nullptr && decays.channels() > 0)
    judge_cumsum(decays, rows_of(*stored_.cumsum, decays.channels(), decays.channels()));
  judge_gram(decays);
  judge_inverse(decays);
  judge_scaled(decays);
  run_states(decays);
}

reading head_measurement::read(std::size_t begin, std::size_t rows) const {
  const std::size_t n = p_.num_householder;
  reading r;
  r.begin = begin;
  r.rows = rows;
  for (std::size_t i = 0; i < rows; ++i) {
    if ((begin + i) % n != n - 1) continue;
    r.row_of.push_back(i);
    r.limits.push_back(i + 1);
  }
  r.q = in_.q.slice(begin / n, r.row_of.size());
  r.k = in_.k.slice(begin, rows);
  return r;
}

void head_measurement::judge_cumsum(const chunk_decays& decays, const balls& got) {
  balls want(rows_, got.cols);
  for (std::size_t i = 0; i < rows_; ++i) {
    for (std::size_t c = 0; c < got.cols; ++c) want.set(i, c, decays.cumulative(i, c));
    judge_row("g_cumsum_log2", 0, at(i), got, i, want, i, got.cols);
  }
}

balls head_measurement::rounded_step(const std::optional<format>& to) const { return to ? narrow(step_, {*to, false}) : step_; }

balls head_measurement::key_gram(chunk_decays& of_gates, const gram_rounding& how) const {
  chunk_decays none(balls(rows_, 0), nullptr, errors_);
  chunk_decays& decays = how.gated ? of_gates : none;
  std::vector<std::size_t> all(rows_);
  for (std::size_t i = 0; i < rows_; ++i) all[i] = i;
  const bool channels = p_.gate_per_channel();
  if (!how.rows) return decayed_gram(k_, all, k_, decays, channels, rounded_step(how.step), 1, true, how, errors_);
  balls ones(rows_, 1);
  ones.value.assign(rows_, 1);
  return decayed_gram(stepped_rows(k_, rounded_step(how.step), *how.rows), all, k_, decays, channels, ones, 1, true, how,
                      errors_);
}

balls head_measurement::query_gram(const reading& at, chunk_decays& decays, const gram_rounding& how, bool scaled) const {
  balls multiplier(at.row_of.size(), 1);
  for (double& m : multiplier.value) m = scaled ? scale_of_sums() : 1;
  gram_rounding of_query = how;
  of_query.product_store = how.query_product_store;
  of_query.operand = how.query_operand.value_or(how.operand);
  of_query.accumulate = how.query_accumulate.value_or(how.accumulate);
  return decayed_gram(at.q, at.row_of, at.k, decays, p_.gate_per_channel(), multiplier, 1, false, of_query, errors_);
}

void head_measurement::judge_gram(chunk_decays& decays) {
  if (stored_.a != nullptr) {
    const balls got = lower_of(*stored_.a, true);
    for (const std::size_t a : tried_.gram) {
      const balls want = key_gram(decays, r_.gram[a]);
      for (std::size_t i = 1; i < rows_; ++i) judge_row("A", a, at(i), got, i, want, i, i);
    }
  }
  if (stored_.aqk == nullptr) return;
  const balls got = lower_of(*stored_.aqk, false);
  const reading here = read(begin_, rows_);
  for (const std::size_t a : tried_.gram) {
    const balls want = query_gram(here, decays, r_.gram[a], true);
    for (std::size_t i = 0; i < here.row_of.size(); ++i) {
      judge_row("Aqk", a, at(here.row_of[i]), got, here.row_of[i], want, i, here.limits[i]);
    }
  }
}

void head_measurement::judge_inverse(chunk_decays& decays) {
  if (stored_.ai == nullptr) return;
  const balls got = lower_of(*stored_.ai, false);
  std::optional<balls> a;
  std::size_t made_by = 0;  // gram
  for (const std::size_t pair : tried_.inverse) {
    const std::size_t gram = pair / r_.inverse.size();  // 0 where A is stored
    if (!a || gram != made_by) a = stored_.a != nullptr ? lower_of(*stored_.a, true) : key_gram(decays, r_.gram[gram]);
    made_by = gram;
    judge_inverse_by(r_.inverse[pair % r_.inverse.size()], pair, got, *a, r_.gram[gram].store);
  }
}

void head_measurement::judge_inverse_by(const inverse_rounding& how, std::size_t number, const balls& got, balls overlaps,
                                        const std::optional<format>& kept) {
  if (stored_.a != nullptr) {
    overlaps = as_read(overlaps, stored_.a->element_format(), how.reads);
  } else if (const std::optional<format> to = how.reads ? how.reads : kept) {
    overlaps = narrow(std::move(overlaps), narrowing{*to, false});
  }
  const balls want = inverse_of(overlaps, how, errors_);
  for (std::size_t i = 0; i < rows_; ++i) judge_row("Ai", number, at(i), got, i, want, i, i + 1);
}

void head_measurement::judge_scaled(const chunk_decays& decays) {
  if (stored_.ai == nullptr) {
    if (stored_.w != nullptr) judge_unknown("w", rows_of(*stored_.w, keys(), keys()));
    if (stored_.u != nullptr) judge_unknown("u", rows_of(*stored_.u, values(), values()));
    return;
  }
  const balls ai = lower_of(*stored_.ai, false);
  const auto judge = [&](std::string_view stage, const tensor* t, const balls& x, const chunk_decays* gate,
                         const std::vector<scaled_rounding>& list) {
    if (t == nullptr) return;
    const balls got = rows_of(*t, x.cols, x.cols);
    for (std::size_t a = 0; a < list.size(); ++a) {
      balls read = as_read(ai, stored_.ai->element_format(), list[a].reads);
      for (std::size_t i = 0; i < rows_ && !read.exact(); ++i) read.set(i, i, ai.at(i, i));  // 1, which every format holds
      const balls operand = narrow(std::move(read), list[a].inverse_operand.value_or(list[a].operand));
      product sum = multiply(operand, scaled_rows(x, rounded_step(list[a].step), gate, list[a], errors_), limits_);
      balls want(rows_, x.cols);
      want.radius.assign(want.value.size(), 0);
      want.value = std::move(sum.value);
      for (std::size_t i = 0; i < rows_; ++i) {
        const sum_bound of_row(errors_, i + 1, list[a].accumulate);  // i + 1 products and their additions
        for (std::size_t j = i * x.cols; j < (i + 1) * x.cols; ++j) want.radius[j] = of_row.of(sum.terms[j], sum.upper[j]);
        judge_row(stage, a, at(i), got, i, want, i, x.cols);
      }
    }
  };
  judge("w", stored_.w, k_, &decays, r_.w);
  judge("u", stored_.u, v_, nullptr, r_.u);
}

void head_measurement::skip_from(std::size_t begin) {
  const std::size_t rows = in_.rows - begin;
  const std::size_t n = p_.num_householder;
  const std::size_t tokens = in_.tokens - begin / n;
  const std::size_t chunks = (rows + c_ - 1) / c_;
  for (auto& [stage, list] : out_) {
    const stage_axes axes = find_stage(stage)->axes;
    std::size_t count = (stage == "o" ? tokens : rows) * values();
    if (axes == stage_axes::keys) count = rows * keys();
    if (axes == stage_axes::gates) count = rows * in_.log_gates.cols;
    if (axes == stage_axes::states) count = (stage == "final_state" ? 1 : chunks) * keys() * values();
    if (axes == stage_axes::pairs) {
      count = 0;
      for (std::size_t i = begin; i < in_.rows; ++i) count += i % c_ + (stage == "A" ? 0 : 1);
    }
    for (tally& t : list) t.skip(count);
  }
}

}  // namespace deltaproof::stages_detail
