// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
//
// Errors by tile, which is what a kernel writes at a time. A norm over many tiles sees little of one in which alone something is
// wrong, and nothing of one whose values are small beside those of the others. So each tile is measured by what emulated runs
// err in it, and the largest of a place is a statistic of its own.
#pragma once

#include <cstddef>
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "deltaproof/number/format.hpp"
#include "deltaproof/referee/budget.hpp"
#include "deltaproof/referee/referee.hpp"

namespace deltaproof::referee_detail {

/// Rows of one chunk, 16 columns or fewer.
struct tile {
  std::size_t first_row = 0, rows = 0, first_column = 0, columns = 0;
  double rms = 0;  ///< of its exact values

  [[nodiscard]] std::size_t elements() const { return rows * columns; }
  /// Where it lies, and how small it is beside the limit, in words. `steps`: rows a token; 0: rows are not tokens.
  [[nodiscard]] std::string text(const judged_statistic& place, std::size_t steps) const;
};

/// `rows` x `columns` values as tiles: those of the first chunk, from the first column on, then those of the next chunk.
struct tiling {
  static constexpr std::size_t width = 16;
  std::size_t rows = 0, columns = 0;
  std::size_t height = 0;  ///< rows of a chunk; 0: all of them are one

  [[nodiscard]] std::size_t across() const { return (columns + width - 1) / width; }
  [[nodiscard]] std::size_t each() const { return height == 0 ? rows : height; }
  [[nodiscard]] std::size_t size() const { return rows == 0 ? 0 : (rows + each() - 1) / each() * across(); }
  [[nodiscard]] tile at(std::size_t i) const;
  /// Tiles [first, last) of the chunks that rows [first, last) lie in.
  struct range {
    std::size_t first = 0, last = 0;
  };
  [[nodiscard]] range of_rows(std::size_t first, std::size_t last) const;
};

/// The rms of each tile: infinite where something in it is not finite, 0 where nothing is judged. `skip`: elements that are not
/// judged; empty: none.
[[nodiscard]] std::vector<double> tile_rms(const tiling& where, const double* values, const std::vector<bool>& skip = {});

/// The rms of each tile in the runs of one head: [law][run][tile], no tiles where there was no such run.
using tile_runs = std::vector<std::vector<std::vector<double>>>;

/// What the largest tile of a place typically is in the runs of heads that ran often, by tensor, bucket and law: the largest over
/// these heads of the geometric mean.
class typical_tiles {
 public:
  void add(const statistic& s);
  /// Of this bucket, or of the nearest before it; nothing where no head that ran often has the tensor.
  [[nodiscard]] std::optional<double> find(const std::string& tensor, std::size_t bucket, std::size_t law) const;

 private:
  std::map<std::pair<std::string, std::size_t>, std::map<std::size_t, double>> largest_;  ///< by tensor and law, by bucket
};

/// What is known of the tiles of one tensor of a head. `runs`: of a head that does not run often, those on the given inputs and
/// few or none on perturbed ones. What runs err in a tile is the error of the first run of each kind on the given inputs, the
/// largest of them, and at least `floors`. On perturbed inputs only the first `whole` runs of a kind have all tokens.
class tiles_of_head {
 public:
  tiles_of_head(const tile_runs& runs, const std::vector<double>& floors,
                std::size_t whole = std::numeric_limits<std::size_t>::max());

  /// By tile.
  [[nodiscard]] const std::vector<double>& scales() const { return scales_; }
  /// The largest tile of `tiles` among those of a place, in units of its scale.
  struct worst_tile {
    double ratio = 0;
    std::size_t at = 0;
  };
  [[nodiscard]] worst_tile worst_of(const std::vector<double>& tiles, const tiling::range& place) const;
  /// That ratio in each run, in the place of those of `like`, whose pools are otherwise its own. A run on perturbed inputs is
  /// measured by those on the given ones and by the next run: what a tile is measured by may be small by chance. What runs leave
  /// that end early is a neighbour of `like`, measured by the next of them alone. Where no run on perturbed
  /// inputs of a head has the place, those of heads that ran often stand for them: nothing where there are none.
  [[nodiscard]] std::optional<statistic> samples_of(const tiling::range& place, statistic like,
                                                    const typical_tiles& of_others) const;

 private:
  const tile_runs& runs_;
  std::vector<double> scales_;
  std::size_t whole_;
  std::vector<std::vector<double>> of_next_run_;  ///< by number of a run on perturbed inputs

  [[nodiscard]] double ratio_in(std::size_t law, std::size_t run, const tiling::range& place) const;
};

/// The place of tiles beside `place`, which is that of their rms. `steps`: rows a token; 0: of a state.
[[nodiscard]] judged_statistic place_of_tiles(judged_statistic place, const tiles_of_head& tiles, const std::vector<double>& got,
                                              const std::vector<double>& truth, const tiling& where, const tiling::range& range,
                                              std::size_t steps);

/// The limit on the tiles of one place, if it has one.
struct tiles_judged {
  const judged_statistic* limit = nullptr;
  const std::vector<double>* scales = nullptr;  ///< of all tiles of its tensor
  tiling where{};
  std::size_t first_row = 0;  ///< of the place

  /// `x`: of the place.
  [[nodiscard]] bool refutes_zeros(const tile& x) const;
};

/// Marks a statistic whose limit zeros would keep.
inline void say_nothing_if_zeros_pass(judged_statistic& s) {
  if (s.judged == verdict::holds && s.truth > 0 && !(s.limit.value < s.truth)) s.judged = verdict::vacuous;
}

/// What errors in the tiles of a tensor mean nothing: the radius of the reference, half the smallest number of the format that
/// stores it, and half the unit roundoff of the exact values.
[[nodiscard]] std::vector<double> tile_floors(std::vector<double> radii, const std::vector<double>& truth, const format& stored);

}  // namespace deltaproof::referee_detail
