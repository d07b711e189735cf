// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
//
// What the names of a page mean at one place of it: the columns of a row, the values of a finding, `group.value`, constants and
// parameters, in this order. Fills placeholders and decides expectations.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "deltaproof/study/results.hpp"
#include "deltaproof/support/errors.hpp"
#include "study/page.hpp"

namespace deltaproof::detail {

/// A name that means nothing here: an error, unless the run was interrupted before it was computed.
class missing_value : public format_error {
 public:
  using format_error::format_error;
};

class scope {
 public:
  /// `failed`: where sentences that lack a value are listed; without it, and in an interrupted run, they are refused.
  scope(const page& p, const results& r, std::vector<std::string>* failed) : page_(&p), results_(&r), failed_(failed) {}

  [[nodiscard]] scope in_group(std::string name) const;
  /// Where `words` hold instead of the page's for a column shown as `name`.
  [[nodiscard]] scope on_row(const frame& rows, std::size_t at) const;

  /// The value of a name. Throws: missing_value naming page and line.
  [[nodiscard]] cell value_of(const std::string& name, std::size_t line) const;
  /// The text with its placeholders filled and its lines joined: `{{name|digits|unit}}`. "nothing" for an empty cell.
  [[nodiscard]] std::string fill(const prose&) const;
  /// The same; nothing where a value of the row is an empty cell.
  [[nodiscard]] std::optional<std::string> fill_unless_missing(const prose&) const;
  /// A number, or the name of one.
  [[nodiscard]] double quantity(const prose&) const;
  [[nodiscard]] std::optional<double> optional_quantity(const prose& p) const {
    return p.empty() ? std::nullopt : std::optional(quantity(p));
  }
  /// Nothing where the comparison holds; otherwise the values that it compared.
  [[nodiscard]] std::optional<std::string> failure(const prose& comparison) const;
  [[nodiscard]] bool holds(const std::vector<prose>& all) const;

  /// A cell as the page's words for its column put it.
  [[nodiscard]] std::string shown(const std::string& column, const cell& c) const;

  [[nodiscard]] const page& words() const { return *page_; }
  [[nodiscard]] const results& numbers() const { return *results_; }
  /// Throws: missing_value.
  [[nodiscard]] const frame& frame_named(const prose& name) const;

 private:
  [[nodiscard]] const cell* in_results(const std::string& name) const;
  [[nodiscard]] std::string filled(const prose&, const std::function<std::string(const std::string&)>& without) const;
  [[nodiscard]] std::string placeholder(const std::string& tag, std::size_t line) const;

  const page* page_;
  const results* results_;
  std::vector<std::string>* failed_;
  std::string group_;
  const frame* rows_ = nullptr;
  std::size_t row_ = 0;
};

}  // namespace deltaproof::detail
