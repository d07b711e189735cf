// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
//
// Which residuals stand behind a spread. A `cell` is the runs of one variant of one key; a `pool` adds up the residuals of
// several cells, each about its own mean; `pool_set` holds the cells of all keys of one tensor and norm, makes the near and
// wide pools of a key, with neighbouring buckets until enough degrees of freedom are there, and says what all keys together
// tell of the law's shape and of the variants.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <iterator>
#include <limits>
#include <map>
#include <optional>
#include <set>
#include <utility>
#include <vector>

namespace deltaproof::detail {

enum class run_scale { linear, log };

/// Runs that count: all of them on the linear scale, those above the floor on the log scale.
struct cell {
  std::size_t runs = 0;
  double mean = 0, squares = 0, cubes = 0;                 ///< sums of (x - mean)^2 and (x - mean)^3
  double least = std::numeric_limits<double>::infinity();  ///< of the samples as given
  double largest = -std::numeric_limits<double>::infinity();
  bool finite = true;
  bool counts = true;  ///< its residuals are evidence of the spread: no other cell has the same runs
};

[[nodiscard]] inline cell summed(const std::vector<double>& samples, double floor, run_scale scale) {
  cell c;
  std::vector<double> x;
  x.reserve(samples.size());
  for (const double sample : samples) {
    if (!std::isfinite(sample)) return {.finite = false};
    c.least = std::min(c.least, sample);
    c.largest = std::max(c.largest, sample);
    if (scale == run_scale::linear) {
      x.push_back(sample);
    } else if (sample > floor) {
      x.push_back(std::log(sample));
    }
  }
  if (x.empty()) return c;
  c.runs = x.size();
  for (const double value : x) c.mean += value;
  c.mean /= static_cast<double>(c.runs);
  for (const double value : x) {
    const double d = value - c.mean;
    c.squares += d * d;
    c.cubes += d * d * d;
  }
  return c;
}

struct pool {
  std::size_t degrees = 0;
  double squares = 0, cubes = 0, cube_weight = 0;  ///< E cubes = cube_weight times the third central moment

  void add(const cell& c) {
    if (!c.finite || c.runs < 2) return;
    const auto n = static_cast<double>(c.runs);
    degrees += c.runs - 1;
    squares += c.squares;
    cubes += c.cubes;
    cube_weight += (n - 1) * (n - 2) / n;
  }
  void add(const std::vector<cell>& cells) {
    for (const cell& c : cells) {
      if (c.counts) add(c);
    }
  }
  [[nodiscard]] double spread() const { return degrees == 0 ? 0 : std::sqrt(squares / static_cast<double>(degrees)); }
};

/// A pool and what is in it.
struct named_pool {
  pool residuals;
  std::optional<std::size_t> head;  ///< only this one
  std::size_t first_bucket = 0, last_bucket = 0;
};

/// What all residuals of one tensor and norm say, each in units of its key's near spread.
struct common_shape {
  double skewness = 0;
  double skewness_error = 0;     ///< standard error, sqrt(6 / degrees)
  std::vector<double> variants;  ///< spread of the variant of each law, at least 1
};

class pool_set {
 public:
  void add(std::size_t bucket, std::size_t head, std::vector<cell> cells, std::size_t laws_of_variant = 1,
           bool few_runs = false) {
    laws_ = cells.size();
    laws_of_variant_ = laws_of_variant;
    for (const cell& c : cells) {
      if (c.runs > 1 && !few_runs) repeated_heads_.insert(head);
    }
    buckets_[bucket].emplace(head, std::move(cells));
  }
  [[nodiscard]] const std::vector<cell>& cells(std::size_t bucket, std::size_t head) const {
    return buckets_.at(bucket).at(head);
  }
  /// Heads with two runs or more, above the floor, of one variant of one key, and not too few for a spread.
  [[nodiscard]] const std::set<std::size_t>& repeated_heads() const { return repeated_heads_; }

  /// One head, all variants, buckets until `wanted` degrees. Its spread is at least that of the bucket itself.
  [[nodiscard]] const named_pool& near(std::size_t bucket, std::size_t head, std::size_t wanted) {
    return kept(near_, bucket, head, [&] {
      named_pool p = grown(bucket, wanted, [&](pool& into, const head_cells& heads) {
        if (const auto found = heads.find(head); found != heads.end()) into.add(found->second);
      });
      pool own;
      if (const auto found = buckets_.at(bucket).find(head); found != buckets_.at(bucket).end()) own.add(found->second);
      if (own.degrees > 0 && own.spread() > p.residuals.spread())
        p.residuals.squares = own.squares / static_cast<double>(own.degrees) * static_cast<double>(p.residuals.degrees);
      p.head = head;
      return p;
    });
  }
  /// The same if this head has so many, otherwise all heads, buckets until `wanted` degrees.
  [[nodiscard]] const named_pool& wide(std::size_t bucket, std::size_t head, std::size_t wanted) {
    return kept(wide_, bucket, head, [&] {
      named_pool p = grown(bucket, wanted, [&](pool& into, const head_cells& heads) {
        if (const auto found = heads.find(head); found != heads.end()) into.add(found->second);
      });
      p.head = head;
      if (p.residuals.degrees >= wanted) return p;
      return all_heads(bucket, wanted);
    });
  }
  /// All heads, buckets until `wanted` degrees: added up once for all heads that ask.
  [[nodiscard]] const named_pool& all_heads(std::size_t bucket, std::size_t wanted) {
    return kept(all_, bucket, wanted, [&] {
      return grown(bucket, wanted, [](pool& into, const head_cells& heads) {
        for (const auto& [any_head, cells] : heads) into.add(cells);
      });
    });
  }
  /// What a head of few runs scatters: residuals in units of the noisiest head that ran often, over the buckets that the first
  /// has runs of.
  [[nodiscard]] pool beside_noisiest(std::size_t head) {
    pool own;
    std::vector<std::size_t> where;
    for (const auto& [bucket, heads] : buckets_) {
      const std::size_t before = own.degrees;
      if (const auto found = heads.find(head); found != heads.end()) own.add(found->second);
      if (own.degrees > before) where.push_back(bucket);
    }
    const double noisiest = noisiest_in(where);
    if (!(noisiest > 0)) return {};
    own.squares /= noisiest * noisiest;
    return own;
  }
  /// Noisier keys weigh more in the skewness, all the same in the spread of a variant. `wanted`: of the near pools.
  [[nodiscard]] const common_shape& shape(std::size_t wanted) {
    if (shape_) return *shape_;
    pool all;
    double unit = 0;
    std::vector<pool> laws(laws_);
    for (const auto& [bucket, heads] : buckets_) {
      for (const auto& [head, cells] : heads) {
        const double spread = near(bucket, head, wanted).residuals.spread();
        if (!(spread > 0)) continue;
        for (std::size_t v = 0; v < cells.size(); ++v) {
          pool own;
          own.add(cells[v]);
          if (cells[v].counts) {
            all.cubes += own.cubes;
            all.degrees += own.degrees;
            unit += own.cube_weight * spread * spread * spread;
          }
          laws[v].degrees += own.degrees;
          laws[v].squares += own.squares / (spread * spread);
        }
      }
    }
    shape_ = common_shape{};
    if (unit > 0) {
      shape_->skewness = all.cubes / unit;
      shape_->skewness_error = std::sqrt(6 / static_cast<double>(all.degrees));
    }
    shape_->variants.assign(laws_, 1.0);
    for (std::size_t first = 0; first < laws_; first += laws_of_variant_) {
      const std::size_t last = std::min(first + laws_of_variant_, laws_);
      double most = 1;
      for (std::size_t law = first; law < last; ++law) most = std::max(most, laws[law].spread());
      for (std::size_t law = first; law < last; ++law) shape_->variants[law] = most;
    }
    return *shape_;
  }

 private:
  using head_cells = std::map<std::size_t, std::vector<cell>>;

  /// The largest spread of a head that ran often over these buckets, found once for all heads that ask.
  [[nodiscard]] double noisiest_in(const std::vector<std::size_t>& where) {
    const auto [place, is_new] = noisiest_.try_emplace(where, 0.0);
    if (!is_new) return place->second;
    for (const std::size_t head : repeated_heads_) {
      pool there;
      for (const std::size_t bucket : where) {
        const head_cells& heads = buckets_.at(bucket);
        if (const auto found = heads.find(head); found != heads.end()) there.add(found->second);
      }
      place->second = std::max(place->second, there.spread());
    }
    return place->second;
  }

  using pools = std::map<std::pair<std::size_t, std::size_t>, named_pool>;

  template <class Make>
  static const named_pool& kept(pools& all, std::size_t bucket, std::size_t which, Make make) {
    const auto [place, is_new] = all.try_emplace({bucket, which});
    if (is_new) place->second = make();
    return place->second;
  }
  // The bucket, then +-1, +-2 ... until `wanted` degrees are there or all buckets are in.
  template <class Add>
  [[nodiscard]] named_pool grown(std::size_t bucket, std::size_t wanted, Add add) const {
    named_pool p;
    auto first = buckets_.find(bucket);
    auto last = first;
    add(p.residuals, first->second);
    while (p.residuals.degrees < wanted) {
      const bool more_before = first != buckets_.begin();
      const bool more_after = std::next(last) != buckets_.end();
      if (!more_before && !more_after) break;
      const std::size_t before = more_before ? bucket - std::prev(first)->first : std::numeric_limits<std::size_t>::max();
      const std::size_t after = more_after ? std::next(last)->first - bucket : std::numeric_limits<std::size_t>::max();
      if (before <= after) add(p.residuals, (--first)->second);
      if (after <= before) add(p.residuals, (++last)->second);
    }
    p.first_bucket = first->first;
    p.last_bucket = last->first;
    return p;
  }

  std::map<std::size_t, head_cells> buckets_;
  std::set<std::size_t> repeated_heads_;
  std::size_t laws_ = 0, laws_of_variant_ = 1;
  pools near_, wide_, all_;
  std::map<std::vector<std::size_t>, double> noisiest_;
  std::optional<common_shape> shape_;
};

}  // namespace deltaproof::detail
