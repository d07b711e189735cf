// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
//
// After including this you can say what a study computed: named values in groups of one kind of evidence, frames (rows under
// named columns), parameters. No words, no digits, no colours: those stand in the study's page, which names what is here. An
// empty cell is a value that is not there ("no limit", "never"); NaN and infinity are values. It exists so that a number is
// computed in one place and said in another.
#pragma once

#include <cstddef>
#include <functional>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "deltaproof/study/report.hpp"
#include "deltaproof/study/run_options.hpp"

namespace deltaproof {

/// A cell as a double: true is 1, false 0; NaN for text and for an empty cell.
[[nodiscard]] double as_number(const cell&);
/// Whether the cell is empty.
[[nodiscard]] bool is_missing(const cell&);

using frame_row = std::vector<cell>;

/// What is made of the numbers of a column; empty cells are left out before.
using aggregate_function = std::function<cell(std::span<const double>)>;
[[nodiscard]] cell least(std::span<const double>);
[[nodiscard]] cell greatest(std::span<const double>);  ///< of those that are not NaN; empty of none
[[nodiscard]] cell worst(std::span<const double>);     ///< the largest magnitude; infinite where one is not finite; 0 of none
[[nodiscard]] cell mean(std::span<const double>);      ///< first to last; empty of none
[[nodiscard]] cell total(std::span<const double>);     ///< first to last
[[nodiscard]] cell median(std::span<const double>);    ///< quantile 1/2 of the finite ones
[[nodiscard]] cell size_of(std::span<const double>);   ///< how many
/// The element at q (n - 1), rounded down, of the finite numbers in ascending order; empty of none.
[[nodiscard]] aggregate_function quantile(double q);

struct aggregate {
  std::string name;    ///< of the new column
  std::string column;  ///< that it is made of
  aggregate_function of;
};

/// Rows under named columns.
class frame {
 public:
  /// One row: its cells by the names of the columns. Throws: domain_error naming the columns there are.
  class row {
   public:
    row(const frame& f, std::size_t at) : frame_(&f), at_(at) {}
    [[nodiscard]] const cell& operator[](std::string_view column) const { return frame_->at(at_, column); }
    [[nodiscard]] double number(std::string_view column) const { return as_number(frame_->at(at_, column)); }

   private:
    const frame* frame_;
    std::size_t at_;
  };

  frame() = default;
  explicit frame(std::vector<std::string> columns) : columns_(std::move(columns)) {}
  /// Throws: domain_error unless there is a cell for each column.
  frame& add(frame_row cells);

  [[nodiscard]] const std::vector<std::string>& columns() const { return columns_; }
  [[nodiscard]] const std::vector<frame_row>& rows() const& { return rows_; }
  [[nodiscard]] std::vector<frame_row> rows() && { return std::move(rows_); }
  [[nodiscard]] std::size_t size() const { return rows_.size(); }
  [[nodiscard]] bool has(std::string_view column) const;
  [[nodiscard]] std::size_t position(std::string_view column) const;
  /// Throws: domain_error where there is no such row or column.
  [[nodiscard]] const cell& at(std::size_t row_at, std::string_view column) const;
  [[nodiscard]] row operator[](std::size_t row_at) const { return {*this, row_at}; }

  /// The numbers of a column, empty cells left out.
  [[nodiscard]] std::vector<double> numbers(std::string_view column) const;
  /// An aggregate of a column.
  [[nodiscard]] double over(std::string_view column, const aggregate_function& f) const { return as_number(f(numbers(column))); }
  /// The rows that have this value.
  [[nodiscard]] frame where(std::string_view column, const cell& value) const;
  [[nodiscard]] frame where(const std::function<bool(const row&)>& wanted) const;
  /// The number in `column` of the only row with these values. Throws: domain_error where there is none or are several.
  [[nodiscard]] double find(const std::vector<std::pair<std::string, cell>>& values, std::string_view column) const;
  /// `find` with its columns said once: at = f.finder({"rule", "x"}) makes at("euler", 2, "error"), while the frame is there.
  [[nodiscard]] auto finder(std::vector<std::string> keys) const {
    return [this, keys = std::move(keys)](const auto&... cells) { return find_in_order(keys, {cells...}); };
  }
  /// A further column, computed from each row.
  frame& derive(std::string name, const std::function<cell(const row&)>& f);
  /// One row for each combination of `keys` in order of appearance, with aggregates of the rows that have it.
  [[nodiscard]] frame by(const std::vector<std::string>& keys, const std::vector<aggregate>& aggregates) const;

 private:
  [[nodiscard]] double find_in_order(const std::vector<std::string>& keys, const frame_row& values_and_column) const;

  std::vector<std::string> columns_;
  std::vector<frame_row> rows_;
};

/// Named values of one kind of evidence. A finding of the page has the same name.
struct value_group {
  evidence kind = evidence::measured();
  std::map<std::string, cell> values;
};

/// A part of a study that did not come to its end.
struct unfinished_part {
  std::string name;
  std::size_t done = 0;  ///< cases, of `all`; both 0: not begun
  std::size_t all = 0;
  std::string why = {};  ///< what made it impossible; empty: an interruption
};

struct results {
  std::map<std::string, value_group, std::less<>> groups;
  std::map<std::string, frame, std::less<>> frames;
  std::map<std::string, cell> parameters;
  std::vector<unfinished_part> unfinished;

  /// A group of values, which a page calls `name.key`. Throws: domain_error for a name given before.
  void values(const std::string& name, const evidence& kind, std::map<std::string, cell> named);
  /// Values that belong to no finding.
  void values(const std::string& name, std::map<std::string, cell> named) {
    values(name, evidence::measured(), std::move(named));
  }
  /// A frame, by which tables and figures are drawn. Throws: domain_error for a name given before.
  const frame& table(const std::string& name, frame rows);
};

/// One part of a study: computed whole or, once the run is interrupted, left out.
struct study_part {
  std::string name;
  std::function<void(const run_options&, results&)> run;
};
/// The parts one after another. A part that an interruption ends leaves nothing but its name in `unfinished`.
[[nodiscard]] results in_parts(const run_options&, const std::vector<study_part>& parts);

/// Thrown by a grid that an interruption ended; in_parts and run_study turn it into an unfinished part.
struct interrupted_part {
  std::size_t done = 0;
  std::size_t all = 0;
};

}  // namespace deltaproof
