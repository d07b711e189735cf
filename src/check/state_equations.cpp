// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
#include "check/state_equations.hpp"

#include <algorithm>
#include <limits>
#include <utility>

#include "support/text.hpp"

namespace deltaproof::invariant_detail {

measured_equation::measured_equation(std::string name, std::string statement, std::size_t part) {
  out_.name = std::move(name);
  out_.statement = std::move(statement);
  out_.part = part;
}

void measured_equation::sums::take(double got, wide want, double computing_error, const format& stored) {
  const auto exact = static_cast<double>(want);
  size += exact * exact;
  if (std::isfinite(computing_error)) computing += computing_error * computing_error;
  // A number that happens to be of the format costs nothing to store; one computed beside it does.
  const double rounding = static_cast<double>(static_cast<wide>(round_nearest(exact, stored)) - want);
  const double usual = 0.3 * unit_roundoff(stored) * std::fabs(exact);
  const double spent = std::isfinite(rounding) ? std::max(std::fabs(rounding), usual) : usual;
  storing += spent * spent;
  const auto difference = static_cast<double>(static_cast<wide>(got) - want);
  if (std::isfinite(difference)) {
    residual += difference * difference;
  } else if (std::isfinite(exact) && std::isfinite(rounding)) {
    nonfinite = true;
  }
  ++numbers;
}

void measured_equation::sums::join(const sums& other) {
  residual += other.residual;
  computing += other.computing;
  storing += other.storing;
  size += other.size;
  nonfinite = nonfinite || other.nonfinite;
}

void measured_equation::begin(std::size_t sequence, std::size_t head, double floor) {
  floor_ = floor;
  if (head_ == std::pair(sequence, head)) return;
  close_head();
  head_ = {sequence, head};
  of_head_ = {};
  nearest_window_ = -1;
  window_.reset();
  ++out_.heads;
}

void measured_equation::end(const sums& s, std::optional<std::size_t> window) {
  out_.numbers += s.numbers;
  of_head_.join(s);
  if (!window) return;
  const double share = look(s, most_of_place, window);
  if (share <= nearest_window_) return;
  nearest_window_ = share;
  window_ = window;
}

double measured_equation::look(const sums& s, double times, std::optional<std::size_t> window) {
  constexpr double infinity = std::numeric_limits<double>::infinity();
  const double size = std::sqrt(s.size), computing = std::max(std::sqrt(s.computing), floor_ * size);
  const double limit = times * computing + most_of_storing * std::sqrt(s.storing), residual = std::sqrt(s.residual);
  const double share = s.nonfinite || (residual > 0 && limit == 0) ? infinity : limit > 0 ? residual / limit : 0;
  if (share > 1) out_.judged = verdict::refuted;
  if (share <= nearest_) return share;
  nearest_ = share;
  const double unit = size > 0 ? size : 1;
  out_.residual = s.nonfinite ? std::numeric_limits<double>::quiet_NaN() : residual / unit;
  out_.expected = std::hypot(computing, std::sqrt(s.storing)) / unit;
  out_.limit = limit / unit;
  out_.worst = state_place{head_->first, head_->second, window};
  return share;
}

void measured_equation::close_head() {
  if (head_) (void)look(of_head_, most_of_head, window_);
}

state_equation measured_equation::done() && {
  close_head();
  if (out_.numbers == 0 && out_.missing.empty()) out_.missing = "on these inputs the equation has no numbers to compare";
  if (out_.missing.empty() && out_.judged != verdict::refuted) out_.judged = verdict::holds;
  return std::move(out_);
}

std::vector<double> numbers_of(const tensor& t, std::size_t first, std::size_t count) {
  std::vector<double> out(count);
  if (count > 0) t.read(first, out);
  return out;
}

std::vector<double> head_rows(const tensor& t, std::size_t first, std::size_t count, std::size_t head) {
  const std::size_t width = rows{&t, 0, 0}.width(), each = t.dim(2) == 0 ? 0 : width / t.dim(2);
  std::vector<double> out;
  out.reserve(count * each);
  for (std::size_t row = first; row < first + count; ++row) {
    const std::vector<double> one = numbers_of(t, row * width + head * each, each);
    out.insert(out.end(), one.begin(), one.end());
  }
  return out;
}

void join_equations(invariant_report& out) {
  for (const state_equation& e : out.equations) {
    if (!e.missing.empty()) continue;
    if (e.judged == verdict::refuted && out.judged != verdict::refuted) {
      out.judged = verdict::refuted;
      const std::string window = e.worst->window ? ", window " + std::to_string(*e.worst->window) : "";
      out.reason = (e.of_all_parts ? "all parts" : part_name(e.part)) + ": '" + e.name + "' (" + e.statement +
                   ") fails in sequence " + std::to_string(e.worst->sequence) + ", " + (e.by_key_head ? "key head " : "head ") +
                   std::to_string(e.worst->head) + window +
                   (std::isfinite(e.residual) ? ": off by " + detail::scientific(e.residual, 3) + " of the exact values, where " +
                                                    detail::scientific(e.expected, 3) + " is expected and " +
                                                    detail::scientific(e.limit, 3) + " allowed"
                                              : ": an infinity or NaN where a number is expected");
      out.remedy.clear();
    }
  }
}

}  // namespace deltaproof::invariant_detail
