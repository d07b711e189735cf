// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
#include "plan/state_cache_toml.hpp"

#include <algorithm>
#include <vector>

#include "support/nearest_name.hpp"
#include "support/printable.hpp"
#include "support/text.hpp"

namespace deltaproof {

namespace {

using detail::suggestion;
using names = std::vector<std::string_view>;

constexpr std::string_view no_scale = "none";
const names keys{"format", "scale", "scale_format", "rounding", "residual", "seed", "every"};

/// One table of a plan; each member reads one key, and says what is wrong with it.
class cache_reader {
 public:
  cache_reader(const toml::table& table, const plan_detail::key& k, const std::string& where)
      : table_{table}, section_{k.text()}, where_{where}, of_calls_{k.name == plan_detail::between_calls} {}

  state_cache read() const {
    for (const auto& [name, value] : table_) {
      if (std::find(keys.begin(), keys.end(), name.str()) != keys.end()) continue;
      fail("line " + std::to_string(value.source().begin.line) + ": " + section_ + ": there is no key " + in_quotes(name.str()) +
           suggestion(name.str(), keys));
    }
    state_cache cache;
    cache.format = format();
    cache.rounding = rounding();
    cache.residual = residual(cache.rounding);
    cache.seed = seed(cache.rounding);
    cache.every = every();
    return cache;
  }

 private:
  [[noreturn]] void fail(const std::string& what) const { throw format_error(where_ + ": " + what); }
  [[noreturn]] void fail(std::string_view name, const toml::node& value, const std::string& what) const {
    fail("line " + std::to_string(value.source().begin.line) + ": " + section_ + " " + std::string(name) +
         plan_detail::as_stated(value) + what);
  }
  [[noreturn]] void fail_unstated(std::string_view name, const std::string& needed_by) const {
    fail("line " + std::to_string(table_.source().begin.line) + ": " + section_ + " " + std::string(name) + " is not stated; " +
         needed_by);
  }
  std::string word(std::string_view name, const names& known, const std::string& needed_by) const {
    const toml::node* const node = table_.get(name);
    if (node == nullptr) {
      std::string all;
      for (const std::string_view one : known) all += (all.empty() ? ": " : ", ") + std::string(one);
      fail_unstated(name, needed_by + " needs it" + all);
    }
    if (!node->is_string()) fail(name, *node, "must be text");
    return *node->value<std::string>();
  }
  std::string word_among(std::string_view name, const names& known, const std::string& needed_by = "a stored state") const {
    const std::string value = word(name, known, needed_by);
    if (std::find(known.begin(), known.end(), value) == known.end())
      fail(name, *table_.get(name), "is not a valid value of this key" + suggestion(value, known));
    return value;
  }
  void refuse(std::string_view name, const std::string& why) const {
    if (const toml::node* node = table_.get(name)) fail(name, *node, "has no effect, so remove it: " + why);
  }

  block_format format() const {
    names known;
    for (const element_format& e : element_formats) {
      if (e.name != "e2m1") known.push_back(e.name);
    }
    known.insert(known.end(), fixed_block_formats.begin(), fixed_block_formats.end());
    const std::string name = word_among("format", known);
    if (std::find(fixed_block_formats.begin(), fixed_block_formats.end(), name) != fixed_block_formats.end()) {
      refuse("scale", name + " fixes its scales");
      refuse("scale_format", name + " fixes its scales");
      return block_format_named(name);
    }
    const names layouts{no_scale, "tensor", "row", "column", "tile:RxC", "block:N"};
    const std::string layout = word("scale", layouts, "a stored state");
    if (layout == no_scale) {
      refuse("scale_format", "there is no scale");
      return taken([&] { return unscaled(name); });
    }
    try {
      (void)scaled("int8", layout, scale_format::fp32);
    } catch (const format_error&) {
      fail("scale", *table_.get("scale"), "is not a valid value of this key" + suggestion(layout, layouts));
    }
    const std::string stored_in = word_among("scale_format", {scale_format_names.begin(), scale_format_names.end()}, "a scale");
    const auto at = std::find(scale_format_names.begin(), scale_format_names.end(), stored_in) - scale_format_names.begin();
    return taken([&] { return scaled(name, layout, static_cast<scale_format>(at)); });
  }
  template <class Make>
  block_format taken(const Make& make) const {
    try {
      return make();
    } catch (const format_error& e) {
      fail("scale", *table_.get("scale"), std::string("cannot be used: ") + e.what());
    }
  }
  block_rounding rounding() const {
    const std::string said = word_among("rounding", {block_rounding_names.begin(), block_rounding_names.end()});
    return static_cast<block_rounding>(std::find(block_rounding_names.begin(), block_rounding_names.end(), said) -
                                       block_rounding_names.begin());
  }
  element_format residual(block_rounding how) const {
    if (how != block_rounding::error_feedback) {
      refuse("residual", "only rounding = \"error-feedback\" carries a residual");
      return element_formats[0];
    }
    return element_named(word_among("residual", {"fp32", "bf16", "fp16", "e4m3", "e5m2"}, "rounding = \"error-feedback\""));
  }
  std::uint64_t seed(block_rounding how) const {
    if (how != block_rounding::stochastic) {
      refuse("seed", "only rounding = \"stochastic\" draws random numbers");
      return 0;
    }
    if (table_.get("seed") == nullptr) fail_unstated("seed", "rounding = \"stochastic\" needs it");
    return number("seed", 0);
  }
  std::size_t every() const { return table_.get("every") == nullptr ? (of_calls_ ? 0 : 1) : number("every", 1); }
  std::uint64_t number(std::string_view name, std::int64_t least) const {
    const toml::node& node = *table_.get(name);
    const auto value = node.value<std::int64_t>();
    if (!node.is_integer() || *value < least) fail(name, node, "must be a whole number, " + std::to_string(least) + " or more");
    return static_cast<std::uint64_t>(*value);
  }

  const toml::table& table_;
  std::string section_;
  const std::string& where_;
  bool of_calls_;
};

/// A list that a message can quote.
bool is_short(const toml::node& node) {
  const toml::array* const list = node.as_array();
  constexpr std::size_t most = 4;
  return list != nullptr && list->size() <= most &&
         std::all_of(list->begin(), list->end(), [](const toml::node& one) { return one.is_value(); });
}

}  // namespace

std::string plan_detail::quoted(const toml::node& node) {
  if (const auto text = node.value<std::string>(); text && node.is_string()) return in_quotes(*text);
  if (const auto whole = node.value<std::int64_t>(); whole && node.is_integer()) return std::to_string(*whole);
  if (const auto number = node.value<double>(); number && node.is_floating_point()) return detail::shortest(*number);
  if (const auto truth = node.value<bool>(); truth && node.is_boolean()) return *truth ? "true" : "false";
  if (!is_short(node)) return node.is_table() ? "a table" : node.is_array() ? "a list" : "a date";
  std::string all;
  for (const toml::node& one : *node.as_array()) all += (all.empty() ? "" : ", ") + quoted(one);
  return "[" + all + "]";
}

std::string plan_detail::as_stated(const toml::node& node) {
  const bool shown = is_short(node) || node.is_string() || node.is_number() || node.is_boolean();
  return shown ? " = " + quoted(node) + " " : " is " + quoted(node) + "; it ";
}

state_cache plan_detail::read_state_cache(const toml::table& table, const key& k, const std::string& where) {
  return cache_reader(table, k, where).read();
}

std::string text_of(const state_cache& c, std::string_view steps) {
  std::string text = text_of(c.format) + ", rounding " + std::string(name_of(c.rounding));
  if (c.rounding == block_rounding::error_feedback) text += " with a residual in " + std::string(c.residual.name);
  if (c.rounding == block_rounding::stochastic) text += " with seed " + std::to_string(c.seed);
  return text + (c.every > 1 ? ", stored every " + std::to_string(c.every) + " " + std::string(steps) : "");
}

}  // namespace deltaproof
