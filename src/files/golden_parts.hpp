// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
//
// What the golden outputs that are kept in memory and those that go to a file share: the question, the elements that a chunk of
// outputs brings news of, and what is said about a tensor.
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <map>
#include <span>
#include <string>
#include <utility>

#include "deltaproof/files/golden.hpp"
#include "deltaproof/oracle/reference.hpp"
#include "oracle/solve/stream.hpp"

namespace deltaproof::detail {

/// Throws: format_error for bits of another format than fp64.
[[nodiscard]] question question_of(const golden_request& asked);

[[nodiscard]] inline std::size_t part_count(const golden_request& asked) { return asked.bits == 0 ? 1 : parts_of(asked.bits); }

/// The elements of part `part` of a chunk of so many outputs, the first at 0.
[[nodiscard]] inline std::span<const double> part_of(const decided_chunk& c, std::size_t part, std::size_t count) {
  return std::span(part == 0 ? c.rounded.value : c.rounded.low[part - 1]).subspan(c.base, count);
}

/// f(i) for each element that was open and of which these values are something.
template <class F>
void each_news(const decided_chunk& c, std::span<const double> values, const F& f) {
  for (std::size_t w = 0; 64 * w < values.size(); ++w) {
    const std::uint64_t open = c.were_open ? (*c.were_open)[w] : ~std::uint64_t{0};
    for (std::size_t i = 64 * w; open != 0 && i < values.size() && i < 64 * (w + 1); ++i) {
      if ((open >> (i % 64) & 1) != 0 && !std::isnan(values[i])) f(i);
    }
  }
}

/// Indices of the NaN of values that come one after the other.
class nan_list {
 public:
  explicit nan_list(std::size_t most_bytes) : most_{most_bytes} {}
  void add(std::span<const double> values);
  [[nodiscard]] index_list finish() &&;

 private:
  void end_run();

  std::size_t most_;
  bool cut_ = false;
  std::size_t at_ = 0, first_ = 0, run_ = 0;
  index_list out_;
};

/// How many of `elements` no tier decided.
[[nodiscard]] std::size_t undecided_of(const std::map<std::string, std::size_t>& decided, std::size_t elements);

/// All about a tensor but its parts, of which `list()` makes the indices of what is open where something is.
template <class List>
golden_tensor about(std::map<std::string, std::size_t> decided, std::size_t elements, double left, const List& list) {
  golden_tensor out;
  out.undecided = undecided_of(decided, elements);
  if (out.undecided > 0) {
    const index_list open = list();
    out.undecided = open.count;
    out.undecided_indices = open.text;
  }
  out.radius = out.undecided > 0 && out.undecided == elements ? std::numeric_limits<double>::infinity() : left;
  out.decided = std::move(decided);
  return out;
}

/// A result file's content without its tensors.
[[nodiscard]] result result_about(const golden& from, const golden_request& asked);

}  // namespace deltaproof::detail
