// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
#include "stages/tally.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <numeric>
#include <tuple>

#include "emulate/products.hpp"
#include "stages/parts.hpp"
#include "support/sums.hpp"
#include "support/widest_vectors.hpp"

namespace deltaproof {

void ratio_histogram::add(double ratio) {
  ++counts_[bin_of(ratio)];
  ++count_;
}

void ratio_histogram::add(std::span<const double> ratios) {
  constexpr std::size_t block = 64;
  std::int32_t bins_of[block];
  for (std::size_t first = 0; first < ratios.size(); first += block) {
    const std::size_t count = std::min(block, ratios.size() - first);
    const double* const ratio = ratios.data() + first;
    deltaproof::detail::in_widest_vectors([&]() __attribute__((always_inline)) {
      for (std::size_t i = 0; i < count; ++i) {
        const double at = (ratio[i] > 0 ? ratio[i] : 0) * 64;  // as bin_of
        const auto bin = static_cast<std::int32_t>(at < 129 ? at : 129);
        bins_of[i] = bin - (((bin > 0) & (static_cast<double>(bin) == at)) ? 1 : 0);
      }
    });
    for (std::size_t i = 0; i < count; ++i) ++counts_[ratio[i] <= 2 ? static_cast<std::size_t>(bins_of[i]) : bin_of(ratio[i])];
  }
  count_ += ratios.size();
}

void ratio_histogram::merge(const ratio_histogram& other) {
  for (std::size_t i = 0; i < bins; ++i) counts_[i] += other.counts_[i];
  count_ += other.count_;
}

std::size_t ratio_histogram::bin_of(double ratio) {
  if (ratio <= 2) {  // its upper edge belongs to a bin
    const double at = ratio * 64;
    const auto bin = static_cast<std::size_t>(at > 0 ? at : 0);
    return bin > 0 && static_cast<double>(bin) == at ? bin - 1 : bin;
  }
  if (!std::isfinite(ratio)) return bins - 1;
  return std::min(linear_bins + static_cast<std::size_t>(std::ilogb(ratio)) - 1, bins - 1);
}

double ratio_histogram::upper_edge(std::size_t bin) {
  if (bin < linear_bins) return static_cast<double>(bin + 1) / 64;
  return bin + 1 == bins ? std::numeric_limits<double>::infinity() : std::ldexp(1.0, static_cast<int>(bin - linear_bins) + 2);
}

double ratio_histogram::quantile(double probability) const {
  if (count_ == 0) return 0;
  const double due = probability * static_cast<double>(count_);
  std::size_t seen = 0;
  for (std::size_t i = 0; i < bins; ++i) {
    seen += counts_[i];
    if (seen > 0 && static_cast<double>(seen) >= due) return upper_edge(i);
  }
  return upper_edge(bins - 1);
}

double ratio_histogram::share_above(double edge) const {
  std::size_t above = 0;
  for (std::size_t i = 0; i < bins; ++i) {
    if (i > 0 && upper_edge(i - 1) >= edge) above += counts_[i];
  }
  return count_ == 0 ? 0 : static_cast<double>(above) / static_cast<double>(count_);
}

namespace stages_detail {

namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();

bool earlier(const stage_place& a, const stage_place& b) {
  return std::tie(a.sequence, a.head, a.chunk, a.row, a.element) < std::tie(b.sequence, b.head, b.chunk, b.row, b.element);
}

}  // namespace

void worst_lines::add(const stage_place& first, std::span<const double> ratios, double squares) {
  const auto chunk = [](const stage_place& x) { return std::tie(x.sequence, x.head, x.chunk); };
  if (first.row != at_.row || chunk(first) != chunk(at_)) end_row();
  if (chunk(first) != chunk(at_)) end_chunk();
  at_ = first;
  if (columns_.size() < first.element + ratios.size()) columns_.resize(first.element + ratios.size());
  double* const column = columns_.data() + first.element;
  const double* const ratio = ratios.data();
  const std::size_t count = ratios.size();
  deltaproof::detail::in_widest_vectors([&]() __attribute__((always_inline)) {
    for (std::size_t i = 0; i < count; ++i) column[i] += ratio[i] < infinity ? ratio[i] * ratio[i] : 0;
  });
  row_ += squares;
}

void worst_lines::end_row() {
  note(row_);
  row_ = 0;
}

void worst_lines::end_chunk() {
  for (const double x : columns_) note(x);
  columns_.clear();
}

void worst_lines::note(double squares) {
  if (!(squares > largest_.front())) return;
  largest_.front() = squares;
  std::sort(largest_.begin(), largest_.end());
}

void worst_lines::merge(const worst_lines& later) {
  worst_lines other = later;
  for (worst_lines* x : {this, &other}) x->end_row(), x->end_chunk();
  for (const double x : other.largest_) note(x);
}

double worst_lines::sum() const {
  worst_lines all = *this;
  all.end_row();
  all.end_chunk();
  return std::accumulate(all.largest_.begin(), all.largest_.end(), 0.0);
}

tally::tally(const format& stored)
    : stored_(stored),
      overflows_from_(largest(stored) + half_ulp(largest(stored), stored)),
      wide_(stored.precision > bf16.precision),
      half_ulp_(stored) {}

void tally::add(stage_place place, std::span<const double> got, std::span<const double> want, std::span<const double> error) {
  const std::size_t count = got.size(), first = place.element;
  stored_want_.assign(want.begin(), want.end());
  emulation::narrow(std::span(stored_want_), {stored_, false});
  bool plain = half_ulp_.at(0) > 0x1p-900;  // its inverse is in range; fp64 has smaller steps
  for (std::size_t i = 0; i < count; ++i) {
    const double most = std::fabs(want[i]) + error[i];
    plain = plain & (std::fabs(got[i]) < infinity) & (most < overflows_from_);
  }
  if (plain) {
    add_plain(place, got, want, error);
  } else {
    for (std::size_t i = 0; i < count; ++i) {
      place.element = first + i;
      place.got = got[i];
      place.want = want[i];
      add_one(place, error[i], stored_want_[i]);
    }
  }
  if (!wide_) return;
  in_bf16_.assign(got.begin(), got.end());
  emulation::narrow(std::span(in_bf16_), {bf16, false});
  for (std::size_t i = 0; i < count; ++i) {
    if (!std::isfinite(got[i]) || got[i] == 0) continue;
    ++nonzero_;
    bf16_values_ += in_bf16_[i] == got[i] ? 1 : 0;
  }
}

/// As add_one of each up to roundings of its sums, where all is finite and nothing overflows: in loops without branches.
void tally::add_plain(stage_place place, std::span<const double> got, std::span<const double> want,
                      std::span<const double> error) {
  const std::size_t count = got.size(), first = place.element;
  for (std::vector<double>* x : {&storing_, &ratio_, &open_, &lost_, &ulps_}) x->resize(count);
  double *const storing = storing_.data(), *const ratio = ratio_.data(), *const open = open_.data(), *const lost = lost_.data(),
                *const ulps = ulps_.data();
  const double* const stored = stored_want_.data();
  double most = 0, squares = 0;
  std::size_t biased = 0;
  deltaproof::detail::in_widest_vectors([&]() __attribute__((always_inline)) {
    const half_ulps half = half_ulp_;  // that the rows cannot alias
    const double finest = half.at(0);
    std::size_t telling = 0;
    std::uint64_t largest = 0;
    for (std::size_t i = 0; i < count; ++i) {
      storing[i] = half.at(std::fabs(want[i]) + error[i]);
      const double inverse = 1 / (storing[i] + error[i]);  // divisions are slow: one for all three
      ratio[i] = std::fabs(got[i] - want[i]) * inverse;
      open[i] = error[i] * inverse;
      lost[i] = (stored[i] - want[i]) * inverse;
    }
    for (std::size_t i = 0; i < count; ++i) {
      const double around = error[i], lost_there = std::fabs(stored[i] - want[i]);
      const bool tells = (16 * around <= storing[i]) & (lost_there > around) & (storing[i] > finest);
      const double off = want[i] < 0 ? want[i] - got[i] : got[i] - want[i];
      // 1 / (2 storing), a power of two: 2^(1022 - e) of 2^(e - 1023).
      const auto per_ulp = std::bit_cast<double>((std::uint64_t{2045} << 52) - std::bit_cast<std::uint64_t>(storing[i]));
      ulps[i] = tells ? off * per_ulp : 0.0;
      telling += tells ? 1 : 0;
      largest = std::max(largest, std::bit_cast<std::uint64_t>(ratio[i]));  // ordered as ratios are
    }
    biased = telling;
    most = std::bit_cast<double>(largest);
    const auto square = [=](std::size_t i) __attribute__((always_inline)) { return ratio[i] * ratio[i]; };
    const auto sums = deltaproof::detail::sums_side_by_side(
        count, square, [=](std::size_t i) __attribute__((always_inline)) { return square(i) * square(i); },
        [=](std::size_t i) __attribute__((always_inline)) { return open[i] * open[i]; },
        [=](std::size_t i) __attribute__((always_inline)) { return open[i] * open[i] + lost[i] * lost[i]; },
        [=](std::size_t i) __attribute__((always_inline)) { return ulps[i]; },
        [=](std::size_t i) __attribute__((always_inline)) { return ulps[i] * ulps[i]; });
    squares = sums[0];
    ratio_fourths_ += sums[1];
    open_squares_ += sums[2];
    expected_squares_ += sums[3];
    bias_sum_ += sums[4];
    bias_squares_ += sums[5];
  });
  measured_.judged += count;
  measured_.bias.count += biased;
  measured_.ratios.add({ratio, count});
  ratio_squares_ += squares;
  worst_.add(place, {ratio, count}, squares);
  // `ratio` is within 2^-50 of the quotient; those that may be noted are divided exactly.
  const auto passes = [this](double about) {
    about *= 1 + 0x1p-50;
    return !measured_.worst || about > measured_.worst->ratio || about > 1;
  };
  if (!passes(most)) return;
  for (std::size_t i = 0; i < count; ++i) {
    if (!passes(ratio[i])) continue;
    place.element = first + i;
    place.got = got[i];
    place.want = want[i];
    place.bound = storing[i] + error[i];
    place.ratio = std::fabs(got[i] - want[i]) / place.bound;
    note(place);
  }
}

void tally::note(const stage_place& place) {
  if (!measured_.worst || place.ratio > measured_.worst->ratio) measured_.worst = place;
  if (!(place.ratio > 1)) return;
  ++measured_.bad;
  if (!measured_.first_bad || earlier(place, *measured_.first_bad)) measured_.first_bad = place;
}

// A value computed within `error` of want is at most |want| + error, and storing it costs half an ulp there.
void tally::add_one(stage_place& place, double error, double stored_want) {
  const bool unknown = std::isnan(place.want) || !(error < infinity);
  if (unknown && std::isfinite(place.got)) {
    ++measured_.unbounded;
    return;
  }
  // The inputs of a problem are finite: that the value cannot be recomputed does not excuse NaN or inf.
  if (unknown) error = infinity;
  ++measured_.judged;
  const double most = std::fabs(place.want) + error;
  const double storing = unknown ? 0 : half_ulp(most, stored_);
  place.bound = storing + error;
  const double distance = std::fabs(place.got - place.want);
  const bool may_overflow = !unknown && most >= overflows_from_;
  const bool overflowed = may_overflow && std::isinf(place.got) && std::signbit(place.got) == std::signbit(place.want);
  if (!unknown && (place.got == place.want || overflowed)) {
    place.ratio = 0;
  } else if (!std::isfinite(distance)) {
    place.ratio = infinity;
    measured_.nonfinite += std::isfinite(place.got) ? 0 : 1;
  } else {
    place.ratio = distance / place.bound;
  }
  measured_.ratios.add(place.ratio);
  const double square = std::isfinite(place.ratio) ? place.ratio * place.ratio : 0;
  worst_.add(place, {&place.ratio, 1}, square);
  ratio_squares_ += square;
  ratio_fourths_ += square * square;
  if (!unknown && place.bound > 0) {
    const double open = error / place.bound, stored = (stored_want - place.want) / place.bound;
    open_squares_ += open * open;
    expected_squares_ += open * open + (std::isfinite(stored) ? stored * stored : 0);
  }
  note(place);
  if (std::isfinite(place.got) && std::isfinite(place.want)) add_bias(place.got, place.want, error, storing, stored_want);
}

// A value the format holds is stored without error by any rounding and says nothing. Nor does one in its smallest steps: few
// numbers lie there, and what many values are rounded to is no chance.
void tally::add_bias(double got, double want, double error, double storing, double stored_want) {
  if (!(16 * error <= storing) || std::fabs(stored_want - want) <= error || !(storing > half_ulp_.at(0))) return;
  const double ulps = (want < 0 ? want - got : got - want) / (2 * storing);
  ++measured_.bias.count;
  bias_sum_ += ulps;
  bias_squares_ += ulps * ulps;
}

void tally::merge(const tally& later) {
  measured_.judged += later.measured_.judged;
  measured_.unbounded += later.measured_.unbounded;
  measured_.skipped += later.measured_.skipped;
  measured_.nonfinite += later.measured_.nonfinite;
  measured_.bad += later.measured_.bad;
  measured_.ratios.merge(later.measured_.ratios);
  measured_.bias.count += later.measured_.bias.count;
  ratio_squares_ += later.ratio_squares_;
  ratio_fourths_ += later.ratio_fourths_;
  worst_.merge(later.worst_);
  open_squares_ += later.open_squares_;
  expected_squares_ += later.expected_squares_;
  bias_sum_ += later.bias_sum_;
  bias_squares_ += later.bias_squares_;
  nonzero_ += later.nonzero_;
  bf16_values_ += later.bf16_values_;
  if (later.measured_.worst && (!measured_.worst || later.measured_.worst->ratio > measured_.worst->ratio)) {
    measured_.worst = later.measured_.worst;
  }
  if (later.measured_.first_bad && (!measured_.first_bad || earlier(*later.measured_.first_bad, *measured_.first_bad))) {
    measured_.first_bad = later.measured_.first_bad;
  }
}

// Rounding to nearest inside a cell of one ulp h around c, where the values have density f: the mean error is
// -f'(c)/f(c) h^2/12. With |x f'/f| <= 4 on average and h <= 2^(1-p) |x| that is at most 2^(1-p)/3 ulps.
stage_measurement tally::finish() const {
  stage_measurement result = measured_;
  if (result.judged > 0) {
    const auto count = static_cast<double>(result.judged);
    result.rms_ratio = std::sqrt(ratio_squares_ / count);
    result.rms_of_the_rest = std::sqrt(std::max(0.0, ratio_squares_ - worst_.sum()) / count);
  }
  if (ratio_squares_ > 0) {
    const double around = ratio_fourths_ - ratio_squares_ * ratio_squares_ / static_cast<double>(result.judged);
    result.rms_scatter = std::sqrt(std::max(0.0, around)) / (2 * ratio_squares_);
  }
  if (result.judged > 0) result.rms_expected = std::sqrt(expected_squares_ / static_cast<double>(result.judged));
  if (result.judged > 0) result.open_share = std::sqrt(open_squares_ / static_cast<double>(result.judged));
  const auto n = static_cast<double>(result.bias.count);
  if (result.bias.count > 0) {
    result.bias.mean = bias_sum_ / n;
    result.bias.standard_error = std::sqrt(std::max(1.0 / 12, bias_squares_ / n - result.bias.mean * result.bias.mean) / n);
    result.bias.allowance = std::ldexp(1.0, 1 - stored_.precision) / 3;
  }
  if (nonzero_ > 0) result.exactly_bf16 = static_cast<double>(bf16_values_) / static_cast<double>(nonzero_);
  return result;
}

}  // namespace stages_detail
}  // namespace deltaproof
