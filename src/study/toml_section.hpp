// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
//
// Tables of TOML in which a key that is not known is refused by name, with file and line.
#pragma once

#include <algorithm>
#include <cstddef>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "deltaproof/study/report.hpp"
#include "study/page.hpp"
#include "support/nearest_name.hpp"
#include "support/toml.hpp"

namespace deltaproof::detail {

/// One table, which knows its line in the file and which keys were asked for.
class toml_section {
 public:
  toml_section(std::string file, const toml::table& table, std::size_t first_line, std::string what)
      : file_(std::move(file)), table_(&table), first_(first_line), what_(std::move(what)) {}

  [[nodiscard]] static toml::table parsed(std::string_view file, std::string_view text, std::size_t first_line) {
    try {
      return toml::parse(text);
    } catch (const toml::parse_error& bad) {
      page_fails(file, first_line + bad.source().begin.line - 1, std::string(bad.description()));
    }
  }

  [[nodiscard]] std::size_t line() const { return line_of(*table_); }
  [[nodiscard]] std::size_t line_of(const toml::node& node) const {
    const auto at = node.source().begin.line;
    return at == 0 ? first_ : first_ + at - 1;
  }
  [[noreturn]] void fail(const toml::node& node, const std::string& what) const {
    page_fails(file_, line_of(node), (what_.empty() ? "" : what_ + ": ") + what);
  }
  [[noreturn]] void fail(const std::string& what) const { fail(*table_, what); }
  const toml::node* node(const char* key) {
    asked_.push_back(key);
    return table_->get(key);
  }
  prose text(const char* key, bool needed = false) {
    const toml::node* const found = node(key);
    if (found == nullptr && needed) fail(std::string("lacks ") + key);
    return found == nullptr ? prose{} : text_of(*found, key);
  }
  prose text_of(const toml::node& found, const std::string& key) const {
    const auto* const text = found.as_string();
    if (text == nullptr) fail(found, key + " must be text");
    // The lines of """ begin after it.
    return {text->get(), line_of(found)};
  }
  /// Not empty where it is needed.
  std::string name(const char* key, bool needed = false) {
    std::string found = text(key, needed).text;
    if (needed && found.empty()) fail(std::string(key) + " is empty");
    return found;
  }
  /// A number, or a text that names one.
  prose quantity(const char* key) {
    const toml::node* const found = node(key);
    if (found != nullptr && found->is_number()) return {deltaproof::number(found->value_or(0.0), 17), line_of(*found)};
    return found == nullptr ? prose{} : text_of(*found, key);
  }
  bool flag(const char* key) {
    const toml::node* const found = node(key);
    if (found == nullptr) return false;
    if (!found->is_boolean()) fail(*found, std::string(key) + " must be true or false");
    return found->value_or(false);
  }
  std::optional<double> number(const char* key) {
    const toml::node* const found = node(key);
    if (found == nullptr) return {};
    if (!found->is_number()) fail(*found, std::string(key) + " must be a number");
    return found->value<double>();
  }
  double number(const char* key, double otherwise) { return number(key).value_or(otherwise); }
  cell any_of(const toml::node& found, const std::string& key) const {
    if (const auto* truth = found.as_boolean()) return truth->get();
    if (const auto* whole = found.as_integer()) return whole->get();
    if (const auto* real = found.as_floating_point()) return real->get();
    if (const auto* text = found.as_string()) return text->get();
    fail(found, key + " must be a truth value, a number or a text");
  }
  std::optional<cell> any(const char* key) {
    const toml::node* const found = node(key);
    return found == nullptr ? std::nullopt : std::optional(any_of(*found, key));
  }
  /// One text or an array of them.
  std::vector<prose> texts(const char* key) {
    const toml::node* const found = node(key);
    std::vector<prose> result;
    if (found == nullptr) return result;
    if (const auto* const array = found->as_array()) {
      for (const toml::node& one : *array) result.push_back(text_of(one, key));
    } else {
      result.push_back(text_of(*found, key));
    }
    return result;
  }
  std::vector<std::string> names(const char* key) {
    std::vector<std::string> result;
    for (const prose& one : texts(key)) result.push_back(one.text);
    return result;
  }
  toml_section inner(const toml::node& found, const std::string& key) const {
    const toml::table* const table = found.as_table();
    if (table == nullptr) fail(found, key + " must be a table of keys");
    return {file_, *table, first_, what_.empty() ? key : what_ + ", " + key};
  }
  /// f(toml_section) for each table of an array of tables, or for the one table.
  void each(const char* key, const std::function<void(toml_section)>& f) {
    const toml::node* const found = node(key);
    if (found == nullptr) return;
    if (const auto* const array = found->as_array()) {
      for (const toml::node& one : *array) f(inner(one, key));
    } else {
      f(inner(*found, key));
    }
  }
  /// f(key, value) in the order of the page, which TOML's own tables do not keep.
  void in_order(const std::function<void(const std::string&, const toml::node&)>& f) const {
    std::vector<std::pair<std::string, const toml::node*>> entries;
    for (const auto& [key, value] : *table_) entries.emplace_back(std::string(key.str()), &value);
    std::sort(entries.begin(), entries.end(), [](const auto& a, const auto& b) {
      const auto& x = a.second->source().begin;
      const auto& y = b.second->source().begin;
      return std::pair(x.line, x.column) < std::pair(y.line, y.column);
    });
    for (const auto& [key, value] : entries) f(key, *value);
  }
  word_list words(const char* key) {
    const toml::node* const found = node(key);
    return found == nullptr ? word_list{} : words_of(*found, key);
  }
  word_list words_of(const toml::node& found, const std::string& key) const {
    word_list result;
    const toml_section list = inner(found, key);
    list.in_order([&](const std::string& from, const toml::node& to) { result[from] = list.text_of(to, from); });
    return result;
  }
  /// Refuses a key that nobody asked for.
  void done() const {
    for (const auto& [key, value] : *table_) {
      if (std::find(asked_.begin(), asked_.end(), key.str()) != asked_.end()) continue;
      fail(value, "no key '" + std::string(key.str()) + "'" + suggestion(key.str(), asked_));
    }
  }

 private:
  std::string file_;
  const toml::table* table_;
  std::size_t first_;
  std::string what_;
  std::vector<std::string_view> asked_;
};

}  // namespace deltaproof::detail
