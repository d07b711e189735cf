// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
//
// After including this you can compute columns over every combination of some axes, on threads, with progress and interruption:
//     const grid_axis<std::size_t> chunks{"chunk", {16, 32, 64}, {16, 32, 64, 128}};  // quick, full
//     const grid_axis<format> stores{"store", {fp32, bf16}};
//     frame f = grid(options, "limits", {"found", "derived"},
//                    [&](std::size_t chunk, const format& store) -> frame_row { return {...}; }, chunks, stores);
// has the columns chunk, store, found, derived and one row for each combination, the last axis fastest. Draws are an axis:
// grid_axis<std::size_t> d = draws(4, 32). It exists so that no study carries index arithmetic, sizes of modes or threads.
#pragma once

#include <array>
#include <concepts>
#include <cstddef>
#include <numeric>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include "deltaproof/study/results.hpp"

namespace deltaproof {

template <class T>
struct grid_axis {
  std::string name;
  std::vector<T> quick;
  std::vector<T> full = {};  ///< empty: as quick

  [[nodiscard]] const std::vector<T>& values(const run_options& options) const {
    return options.full && !full.empty() ? full : quick;
  }
};

/// 0 ... n - 1 under the name "draw".
[[nodiscard]] inline grid_axis<std::size_t> draws(std::size_t quick, std::size_t full) {
  grid_axis<std::size_t> axis{"draw", std::vector<std::size_t>(quick), std::vector<std::size_t>(full)};
  std::iota(axis.quick.begin(), axis.quick.end(), std::size_t{0});
  std::iota(axis.full.begin(), axis.full.end(), std::size_t{0});
  return axis;
}

/// How a value of an axis stands in its column: as it is, by its `name`, or by `name_of`.
template <class T>
[[nodiscard]] cell axis_cell(const T& value) {
  if constexpr (std::convertible_to<const T&, cell>) {
    return value;
  } else if constexpr (requires { std::string(value.name); }) {
    return std::string(value.name);
  } else {
    return std::string(name_of(value));
  }
}

namespace detail {

/// f(index) for all of `axes`' combinations, each with the cells of its axes before what f gives.
[[nodiscard]] frame grid_over(const run_options&, std::string_view stage, std::vector<std::string> columns,
                              const std::vector<std::vector<cell>>& axes,
                              const std::function<std::vector<frame_row>(const std::vector<std::size_t>&)>& f);

}  // namespace detail

/// f(value of each axis) for every combination; it gives one frame_row, or a std::vector<frame_row> of several, or a frame of
/// several with these columns. Throws: interrupted_part once the run is interrupted; domain_error for a row of another length.
template <class Function, class... T>
[[nodiscard]] frame grid(const run_options& options, std::string_view stage, const std::vector<std::string>& columns,
                         Function&& f, const grid_axis<T>&... axes) {
  const std::tuple<const std::vector<T>&...> values{axes.values(options)...};
  std::vector<std::string> names{axes.name...};
  names.insert(names.end(), columns.begin(), columns.end());
  const auto cells_of = [](const auto& all) {
    std::vector<cell> cells;
    for (const auto& one : all) cells.push_back(axis_cell(one));
    return cells;
  };
  const auto at = [&](const std::vector<std::size_t>& index) {
    return [&]<std::size_t... I>(std::index_sequence<I...>) {
      auto made = f(std::get<I>(values)[index[I]]...);
      if constexpr (std::same_as<decltype(made), frame_row>) {
        return std::vector<frame_row>{std::move(made)};
      } else if constexpr (std::same_as<decltype(made), frame>) {
        return made.rows();
      } else {
        return made;
      }
    }(std::index_sequence_for<T...>{});
  };
  return detail::grid_over(options, stage, std::move(names), {cells_of(axes.values(options))...}, at);
}

}  // namespace deltaproof
