// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT

#include "referee/tiles.hpp"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <utility>

#include "referee/parts.hpp"

namespace deltaproof::referee_detail {

std::string tile::text(const judged_statistic& place, std::size_t steps) const {
  std::string out = "the plan's limit on the rms error of " + place_text(place) + " is " + digits(place.limit.value) +
                    ", and the rms of the exact values ";
  // Of a state, its own rows.
  const std::size_t start = steps > 0 ? place.first_token : 0, each = std::max<std::size_t>(1, steps);
  out += (steps > 0 ? "of tokens " : "of rows ") + std::to_string(start + first_row / each) + "-" +
         std::to_string(start + (first_row + rows - 1) / each) + " ";
  if (columns > 1) out += "in columns " + std::to_string(first_column) + "-" + std::to_string(first_column + columns - 1) + " ";
  return out + "is " + digits(rms);
}

tile tiling::at(std::size_t i) const {
  const std::size_t row = i / across() * each(), column = i % across() * width;
  return {row, std::min(each(), rows - row), column, std::min(width, columns - column)};
}

tiling::range tiling::of_rows(std::size_t first, std::size_t last) const {
  if (last <= first) return {};
  return {first / each() * across(), ((last - 1) / each() + 1) * across()};
}

std::vector<double> tile_rms(const tiling& where, const double* values, const std::vector<bool>& skip) {
  lane_norms norms;
  std::vector<double> own;
  for (std::size_t i = 0; i < where.size(); ++i) {
    const tile x = where.at(i);
    own.clear();
    for (std::size_t row = x.first_row; row < x.first_row + x.rows; ++row) {
      const std::size_t first = row * where.columns + x.first_column;
      if (skip.empty()) own.insert(own.end(), values + first, values + first + x.columns);
      for (std::size_t j = first; !skip.empty() && j < first + x.columns; ++j) {
        if (!skip[j]) own.push_back(values[j]);
      }
    }
    add_norms(own.data(), own.size(), norms);
  }
  return std::move(norms.rms);
}

void typical_tiles::add(const statistic& s) {
  for (std::size_t law = 0; law < s.samples.size(); ++law) {
    double sum = 0, count = 0;
    for (const double x : s.samples[law]) {
      if (!(x > s.floor)) continue;
      sum += std::log(x);
      count += 1;
    }
    double& largest = largest_[{s.tensor, law}].try_emplace(s.bucket, s.floor).first->second;
    if (count > 0) largest = std::max(largest, std::exp(sum / count));
  }
}

std::optional<double> typical_tiles::find(const std::string& tensor, std::size_t bucket, std::size_t law) const {
  const auto of = largest_.find({tensor, law});
  if (of == largest_.end()) return std::nullopt;
  const auto behind = of->second.upper_bound(bucket);
  return (behind == of->second.begin() ? behind : std::prev(behind))->second;
}

namespace {

tiles_of_head::worst_tile worst(const std::vector<double>& tiles, const std::vector<double>& scales, const tiling::range& place) {
  tiles_of_head::worst_tile out{0, place.first};
  for (std::size_t i = place.first; i < place.last; ++i) {
    const double ratio = std::isfinite(tiles[i]) ? (tiles[i] > 0 ? tiles[i] / scales[i] : 0) : infinity;
    if (ratio > out.ratio) out = {ratio, i};
  }
  return out;
}

void raise(std::vector<double>& scales, const std::vector<double>& tiles) {
  for (std::size_t i = 0; i < tiles.size(); ++i) scales[i] = std::max(scales[i], tiles[i]);
}

}  // namespace

tiles_of_head::tiles_of_head(const tile_runs& runs, const std::vector<double>& floors, std::size_t whole)
    : runs_{runs}, scales_{floors}, whole_{whole} {
  for (std::size_t law = 0; law < runs_.size(); law += laws_of_runs(1)) raise(scales_, runs_[law].front());
  for (std::size_t law = 1; law < runs_.size(); law += laws_of_runs(1)) {
    const std::size_t n = runs_[law].size();
    if (n < 2) continue;
    of_next_run_.resize(std::max(n, of_next_run_.size()), floors);
    const std::size_t all = std::min(whole, n);
    for (std::size_t r = 0; r < n; ++r)
      raise(of_next_run_[r], runs_[law][r < all ? (r + 1) % all : all + (r - all + 1) % (n - all)]);
  }
}

tiles_of_head::worst_tile tiles_of_head::worst_of(const std::vector<double>& tiles, const tiling::range& place) const {
  return worst(tiles, scales_, place);
}

double tiles_of_head::ratio_in(std::size_t law, std::size_t run, const tiling::range& place) const {
  const std::vector<double>& tiles = runs_[law][run];
  const double ratio = worst(tiles, scales_, place).ratio;
  const bool has_next = law % laws_of_runs(1) == 1 && run < of_next_run_.size();
  return has_next ? std::max(ratio, worst(tiles, of_next_run_[run], place).ratio) : ratio;
}

std::optional<statistic> tiles_of_head::samples_of(const tiling::range& place, statistic like,
                                                   const typical_tiles& of_others) const {
  like.norm = norm_kind::tiles;
  like.floor = 0.5;  // half of what runs err, or of the floor of the tile
  // One tile holds few sums: in another order it may err by more than norms over many tiles do.
  like.allowance = open_order;
  for (std::size_t law = 0; law < runs_.size(); ++law) {
    const std::size_t judged = like.samples[law].size(), all = runs_[law].size();
    const bool none_here = law % laws_of_runs(1) == 1 && whole_ == 0 && judged < all;
    for (std::size_t r = 0; r < judged; ++r) {
      const std::optional<double> ratio = none_here || runs_[law][r].empty() ? of_others.find(like.tensor, like.bucket, law)
                                                                             : std::optional(ratio_in(law, r, place));
      if (!ratio) return std::nullopt;
      like.samples[law][r] = *ratio;
    }
    const std::size_t ended_early = like.neighbours.empty() ? 0 : like.neighbours[law].size();
    for (std::size_t r = all - ended_early; r < all; ++r)
      like.neighbours[law][r + ended_early - all] = worst(runs_[law][r], of_next_run_[r], place).ratio;
  }
  return like;
}

judged_statistic place_of_tiles(judged_statistic place, const tiles_of_head& tiles, const std::vector<double>& got,
                                const std::vector<double>& truth, const tiling& where, const tiling::range& range,
                                std::size_t steps) {
  const auto most = tiles.worst_of(got, range);
  const tile x = where.at(most.at);
  const std::size_t each = std::max<std::size_t>(1, steps);
  place.norm = norm_kind::tiles;
  place.got = most.ratio;
  place.truth = tiles.worst_of(truth, range).ratio;
  place.worst = {x.first_row / each, (x.first_row + x.rows) / each, x.first_column, x.first_column + x.columns};
  return place;
}

std::vector<double> tile_floors(std::vector<double> radii, const std::vector<double>& truth, const format& stored) {
  for (std::size_t i = 0; i < radii.size(); ++i)
    radii[i] = std::max({radii[i], smallest_subnormal(stored) / 2, unit_roundoff(stored) / 2 * truth[i]});
  return radii;
}

bool tiles_judged::refutes_zeros(const tile& x) const {
  if (limit == nullptr || limit->judged != verdict::holds) return false;
  const std::size_t row = first_row + x.first_row;
  const double scale = (*scales)[where.of_rows(row, row + 1).first + x.first_column / tiling::width];
  return x.rms > limit->limit.value * scale;
}

}  // namespace deltaproof::referee_detail
