// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT

#include "deltaproof/study/results.hpp"

#include <algorithm>
#include <cmath>
#include <exception>
#include <limits>
#include <mutex>

#include "deltaproof/study/grid.hpp"
#include "deltaproof/support/errors.hpp"
#include "support/nearest_name.hpp"
#include "support/parallel.hpp"

namespace deltaproof {
namespace {

std::vector<double> finite(std::span<const double> x) {
  std::vector<double> kept;
  std::copy_if(x.begin(), x.end(), std::back_inserter(kept), [](double one) { return std::isfinite(one); });
  std::sort(kept.begin(), kept.end());
  return kept;
}

/// f(0) ... f(n - 1), each once, on `options.threads` threads; after an interruption no further call starts. Each f writes to its
/// own slot, so nothing depends on the number of threads. Returns how many calls were made, a prefix. The exception of the least
/// index is thrown on.
std::size_t for_each_index(std::size_t n, const run_options& options, std::string_view stage,
                           const std::function<void(std::size_t)>& f) {
  std::mutex guard;
  std::size_t next = 0;
  std::size_t finished = 0;
  std::size_t failed_at = n;
  std::exception_ptr failure;
  const auto work = [&] {
    for (;;) {
      std::size_t index = 0;
      {
        const std::lock_guard lock(guard);
        if (next == n || failure || options.stopped()) return;
        index = next++;
      }
      try {
        f(index);
        const std::lock_guard lock(guard);
        ++finished;
        options.progress(stage, static_cast<double>(finished) / static_cast<double>(n));
      } catch (...) {
        const std::lock_guard lock(guard);
        if (index < failed_at) {
          failed_at = index;
          failure = std::current_exception();
        }
      }
    }
  };
  helpers others;
  const std::size_t workers = std::min<std::size_t>(std::max(1U, options.threads), std::max<std::size_t>(1, n));
  others.start(workers - 1, work);
  work();
  others.join();
  if (failure) std::rethrow_exception(failure);
  return next;
}

std::string known(std::string_view wrong, const std::vector<std::string>& names) {
  return detail::suggestion(wrong, std::vector<std::string_view>(names.begin(), names.end()));
}

}  // namespace

double as_number(const cell& c) {
  return std::visit(
      [](const auto& x) {
        if constexpr (std::is_same_v<std::decay_t<decltype(x)>, std::string>) {
          return std::numeric_limits<double>::quiet_NaN();
        } else {
          return static_cast<double>(x);
        }
      },
      c.value());
}

bool is_missing(const cell& c) {
  const auto* text = std::get_if<std::string>(&c.value());
  return text != nullptr && text->empty();
}

cell least(std::span<const double> x) {
  cell result;
  for (const double one : x) {
    if (!std::isnan(one) && (is_missing(result) || one < as_number(result))) result = one;
  }
  return result;
}

cell greatest(std::span<const double> x) {
  cell result;
  for (const double one : x) {
    if (!std::isnan(one) && (is_missing(result) || one > as_number(result))) result = one;
  }
  return result;
}

cell worst(std::span<const double> x) {
  double result = 0;
  for (const double one : x) result = std::isfinite(one) ? std::max(result, std::fabs(one)) : HUGE_VAL;
  return result;
}

cell total(std::span<const double> x) {
  double sum = 0;
  for (const double one : x) sum += one;
  return sum;
}

cell mean(std::span<const double> x) { return x.empty() ? cell() : cell(as_number(total(x)) / static_cast<double>(x.size())); }
cell median(std::span<const double> x) { return quantile(0.5)(x); }
cell size_of(std::span<const double> x) { return x.size(); }

aggregate_function quantile(double q) {
  return [q](std::span<const double> x) -> cell {
    const std::vector<double> ascending = finite(x);
    if (ascending.empty()) return {};
    return ascending[static_cast<std::size_t>(q * static_cast<double>(ascending.size() - 1))];
  };
}

frame& frame::add(frame_row cells) {
  if (cells.size() != columns_.size()) {
    throw domain_error("a frame of " + std::to_string(columns_.size()) + " columns got a row of " + std::to_string(cells.size()) +
                       "; give each column a cell, an empty one where there is no value");
  }
  rows_.push_back(std::move(cells));
  return *this;
}

bool frame::has(std::string_view column) const { return std::find(columns_.begin(), columns_.end(), column) != columns_.end(); }

std::size_t frame::position(std::string_view column) const {
  const auto at = std::find(columns_.begin(), columns_.end(), column);
  if (at == columns_.end()) throw domain_error("no column '" + std::string(column) + "'" + known(column, columns_));
  return static_cast<std::size_t>(at - columns_.begin());
}

const cell& frame::at(std::size_t row_at, std::string_view column) const {
  if (row_at >= rows_.size()) {
    throw domain_error("a frame of " + std::to_string(rows_.size()) + " rows has no row " + std::to_string(row_at) +
                       ", from which column '" + std::string(column) +
                       "' was asked for; give an index below the number of rows (where() gives a frame of 0 rows if no "
                       "row matches)");
  }
  return rows_[row_at][position(column)];
}

std::vector<double> frame::numbers(std::string_view column) const {
  const std::size_t at = position(column);
  std::vector<double> result;
  for (const frame_row& r : rows_) {
    if (!is_missing(r[at])) result.push_back(as_number(r[at]));
  }
  return result;
}

frame frame::where(std::string_view column, const cell& value) const {
  const std::size_t at = position(column);
  frame result(columns_);
  std::copy_if(rows_.begin(), rows_.end(), std::back_inserter(result.rows_), [&](const frame_row& r) { return r[at] == value; });
  return result;
}

frame frame::where(const std::function<bool(const row&)>& wanted) const {
  frame result(columns_);
  for (std::size_t i = 0; i < rows_.size(); ++i) {
    if (wanted((*this)[i])) result.rows_.push_back(rows_[i]);
  }
  return result;
}

double frame::find(const std::vector<std::pair<std::string, cell>>& values, std::string_view column) const {
  frame left = *this;
  std::string said;
  for (const auto& [name, value] : values) {
    left = left.where(name, value);
    said += (said.empty() ? "" : ", ") + name + " = " + value.text(17);
  }
  if (left.size() != 1) throw domain_error(std::to_string(left.size()) + " rows have " + said + "; exactly one is needed");
  return left[0].number(column);
}

double frame::find_in_order(const std::vector<std::string>& keys, const frame_row& values_and_column) const {
  if (values_and_column.size() != keys.size() + 1) {
    throw domain_error("a finder over " + std::to_string(keys.size()) + " columns was called with " +
                       std::to_string(values_and_column.size()) +
                       " arguments; give a value for each of these columns, then the name of the column to read");
  }
  std::vector<std::pair<std::string, cell>> values;
  for (std::size_t i = 0; i < keys.size(); ++i) values.emplace_back(keys[i], values_and_column[i]);
  return find(values, values_and_column.back().text());
}

frame& frame::derive(std::string name, const std::function<cell(const row&)>& f) {
  std::vector<cell> made;
  for (std::size_t i = 0; i < rows_.size(); ++i) made.push_back(f((*this)[i]));
  columns_.push_back(std::move(name));
  for (std::size_t i = 0; i < rows_.size(); ++i) rows_[i].push_back(std::move(made[i]));
  return *this;
}

frame frame::by(const std::vector<std::string>& keys, const std::vector<aggregate>& aggregates) const {
  std::vector<std::size_t> at;
  std::vector<std::string> names = keys;
  for (const std::string& key : keys) at.push_back(position(key));
  for (const aggregate& a : aggregates) names.push_back(a.name);
  std::vector<std::pair<frame_row, frame>> groups;
  for (const frame_row& r : rows_) {
    frame_row key;
    for (const std::size_t i : at) key.push_back(r[i]);
    auto group = std::find_if(groups.begin(), groups.end(), [&](const auto& g) { return g.first == key; });
    if (group == groups.end()) group = groups.insert(groups.end(), {std::move(key), frame(columns_)});
    group->second.rows_.push_back(r);
  }
  frame result(std::move(names));
  for (auto& [key, rows] : groups) {
    for (const aggregate& a : aggregates) key.push_back(a.of(rows.numbers(a.column)));
    result.rows_.push_back(std::move(key));
  }
  return result;
}

void results::values(const std::string& name, const evidence& kind, std::map<std::string, cell> named) {
  if (!groups.emplace(name, value_group{kind, std::move(named)}).second) {
    throw domain_error("results::values was called twice with the name '" + name +
                       "'; call it once for each name, with all of its values");
  }
}

const frame& results::table(const std::string& name, frame rows) {
  const auto [at, fresh] = frames.emplace(name, std::move(rows));
  if (!fresh)
    throw domain_error("results::table was called twice with the name '" + name + "'; give each frame a name of its own");
  return at->second;
}

results in_parts(const run_options& options, const std::vector<study_part>& parts) {
  results all;
  for (const study_part& part : parts) {
    if (options.stopped()) {
      all.unfinished.push_back({part.name, 0, 0});
      continue;
    }
    const results before = all;
    try {
      part.run(options, all);
    } catch (const interrupted_part& left) {
      all = before;
      all.unfinished.push_back({part.name, left.done, left.all});
    }
  }
  return all;
}

frame detail::grid_over(const run_options& options, std::string_view stage, std::vector<std::string> columns,
                        const std::vector<std::vector<cell>>& axes,
                        const std::function<std::vector<frame_row>(const std::vector<std::size_t>&)>& f) {
  std::size_t cases = 1;
  for (const auto& one : axes) cases *= one.size();
  const auto index_of = [&](std::size_t i) {
    std::vector<std::size_t> index(axes.size());
    for (std::size_t a = axes.size(); a-- > 0; i /= axes[a].size()) index[a] = i % axes[a].size();
    return index;
  };
  std::vector<std::vector<frame_row>> made(cases);
  const std::size_t done = for_each_index(cases, options, stage, [&](std::size_t i) { made[i] = f(index_of(i)); });
  if (done < cases) throw interrupted_part{done, cases};
  frame result(std::move(columns));
  for (std::size_t i = 0; i < cases; ++i) {
    const std::vector<std::size_t> index = index_of(i);
    for (frame_row& values : made[i]) {
      frame_row row;
      for (std::size_t a = 0; a < axes.size(); ++a) row.push_back(axes[a][index[a]]);
      row.insert(row.end(), std::make_move_iterator(values.begin()), std::make_move_iterator(values.end()));
      result.add(std::move(row));
    }
  }
  return result;
}

}  // namespace deltaproof
