// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT

#include "study/scope.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <functional>
#include <kainjow/mustache.hpp>

#include "study/markdown.hpp"
#include "support/nearest_name.hpp"

namespace deltaproof::detail {
namespace {

using data = kainjow::mustache::data;

/// Asks for a tag's text when the template engine comes to it; the engine has no other use for a context here.
class asking final : public kainjow::mustache::basic_context<std::string> {
 public:
  explicit asking(std::function<std::string(const std::string&)> answer) : answer_(std::move(answer)) {}
  void push(const data*) override {}
  void pop() override {}
  const data* get(const std::string& tag) const override {
    last_ = data(answer_(tag));
    return &last_;
  }
  const data* get_partial(const std::string&) const override { return nullptr; }

 private:
  std::function<std::string(const std::string&)> answer_;
  mutable data last_;
};

/// Thrown out of a row's template by a value that is an empty cell.
struct empty_cell {};

/// A single line end is a space, an empty line stays one.
std::string joined(const std::string& text) {
  std::string out;
  for (std::size_t i = 0; i < text.size();) {
    if (text[i] != '\n') {
      out += text[i++];
      continue;
    }
    std::size_t ends = 0;
    for (; i < text.size() && (text[i] == '\n' || text[i] == ' '); ++i) ends += text[i] == '\n' ? 1 : 0;
    if (!out.empty() && i < text.size()) out += ends > 1 ? "\n\n" : " ";
  }
  return out;
}

std::size_t line_of_tag(const prose& p, const std::string& tag) {
  const std::size_t at = p.text.find(tag);
  const auto end = p.text.begin() + static_cast<std::ptrdiff_t>(at == std::string::npos ? 0 : at);
  return p.line + static_cast<std::size_t>(std::count(p.text.begin(), end, '\n'));
}

/// 1e6 as 10⁶, 6.25e-7 as 6.25·10⁻⁷.
std::string in_powers_of_ten(double x, int digits) {
  const std::string plain = number(x, digits);
  if (!std::isfinite(x) || x == 0) return plain;
  int exponent = static_cast<int>(std::floor(std::log10(std::fabs(x))));
  std::string mantissa = number(x / std::pow(10.0, exponent), digits);
  if (mantissa == "10" || mantissa == "-10") {
    mantissa.erase(mantissa.size() - 1);
    ++exponent;
  }
  return (mantissa == "1" ? "" : mantissa + "·") + power_of_ten(exponent);
}

// ---- Expectations: `worst < 1e-4`, `5.54 < limits.sixteen < 5.55`, `inside`, `store == 'fp32'`, `rule in 'euler', 'rk2'`. No
// arithmetic: numbers are made in the study.

struct bad_expectation {
  std::string what;
};

struct operand {
  std::string name;  // empty: written out
  cell value;
};

bool is_text(const cell& c) { return std::holds_alternative<std::string>(c.value()); }

class comparison {
 public:
  comparison(std::string_view text, const std::function<cell(const std::string&)>& value_of) : rest_(text), value_of_(value_of) {}

  bool decide() {
    operand left = next();
    if (const std::string first = sign(); first.empty()) {
      demand_end();
      if (!std::holds_alternative<bool>(left.value.value()))
        throw bad_expectation{"'" + (left.name.empty() ? left.value.text() : left.name) +
                              "' stands alone but is neither true nor false; compare it with < <= > >= == != or `in`"};
      return std::get<bool>(left.value.value());
    } else if (first == "in") {
      return among(left);
    } else {
      bool all = true;
      for (std::string op = first; !op.empty(); op = sign()) {
        operand right = next();
        all = compare(left.value, op, right.value) && all;
        left = std::move(right);
      }
      demand_end();
      return all;
    }
  }
  [[nodiscard]] const std::string& seen() const { return seen_; }

 private:
  void skip() { rest_.remove_prefix(std::min(rest_.find_first_not_of(' '), rest_.size())); }
  void demand_end() {
    skip();
    if (!rest_.empty()) throw bad_expectation{"'" + std::string(rest_) + "' is left over; compare with < <= > >= == != or `in`"};
  }

  std::string sign() {
    skip();
    for (const std::string_view op : {"<=", ">=", "==", "!=", "<", ">"}) {
      if (rest_.substr(0, op.size()) != op) continue;
      rest_.remove_prefix(op.size());
      return std::string(op);
    }
    if (rest_.substr(0, 3) != "in ") return {};
    rest_.remove_prefix(3);
    return "in";
  }

  operand next() {
    skip();
    if (rest_.empty()) throw bad_expectation{"a value is missing at its end"};
    if (rest_.front() == '\'') {
      const std::size_t end = rest_.find('\'', 1);
      if (end == std::string_view::npos) throw bad_expectation{"a text is not closed by '"};
      operand o{{}, cell(rest_.substr(1, end - 1))};
      rest_.remove_prefix(end + 1);
      return o;
    }
    double number = 0;
    const auto [end, bad] = std::from_chars(rest_.data(), rest_.data() + rest_.size(), number);
    const std::size_t length = std::min(rest_.find_first_of(" <>=!,"), rest_.size());
    const std::string word(rest_.substr(0, length));
    rest_.remove_prefix(length);
    if (bad == std::errc{} && end == rest_.data()) return {{}, cell(number)};
    if (word == "true" || word == "false") return {{}, cell(word == "true")};
    if (word.empty()) throw bad_expectation{"a value is missing before '" + std::string(rest_) + "'"};
    operand o{word, value_of_(word)};
    seen_ += (seen_.empty() ? "" : ", ") + word + " = " + (is_missing(o.value) ? "nothing" : o.value.text(6));
    return o;
  }

  bool among(const operand& left) {
    for (;;) {
      const operand one = next();
      found_ = found_ || compare(left.value, "==", one.value);
      skip();
      if (rest_.empty()) return found_;
      if (rest_.front() != ',')
        throw bad_expectation{"there is no comma before " + std::string(rest_) + "; separate the values after `in` by commas"};
      rest_.remove_prefix(1);
    }
  }

  static bool compare(const cell& a, const std::string& op, const cell& b) {
    if (is_text(a) && is_text(b)) {
      if (op == "==") return a == b;
      if (op == "!=") return !(a == b);
    }
    if (is_missing(a) || is_missing(b)) return op == "!=";
    if (is_text(a) || is_text(b)) {
      throw bad_expectation{"'" + (is_text(a) ? a : b).text() + "' is text; texts are compared with texts, by == or !="};
    }
    const double x = as_number(a);
    const double y = as_number(b);
    if (op == "<") return x < y;
    if (op == "<=") return x <= y;
    if (op == ">") return x > y;
    if (op == ">=") return x >= y;
    return op == "==" ? x == y : x != y;
  }

  std::string_view rest_;
  const std::function<cell(const std::string&)>& value_of_;
  std::string seen_;
  bool found_ = false;
};

/// Nothing where it holds; otherwise its named values, "worst = 0.02". NaN and an empty cell hold in no comparison.
/// Throws: bad_expectation where it is not one.
std::optional<std::string> failed(std::string_view expectation, const std::function<cell(const std::string&)>& value_of) {
  comparison c(expectation, value_of);
  if (c.decide()) return std::nullopt;
  return c.seen();
}

}  // namespace

scope scope::in_group(std::string name) const {
  scope s = *this;
  s.group_ = std::move(name);
  return s;
}

scope scope::on_row(const frame& rows, std::size_t at) const {
  scope s = *this;
  s.rows_ = &rows;
  s.row_ = at;
  return s;
}

const cell* scope::in_results(const std::string& name) const {
  const auto value_in = [&](const std::string& group, const std::string& key) -> const cell* {
    const auto at = results_->groups.find(group);
    if (at == results_->groups.end()) return nullptr;
    const auto value = at->second.values.find(key);
    return value == at->second.values.end() ? nullptr : &value->second;
  };
  if (const cell* found = value_in(group_, name)) return found;
  if (const std::size_t dot = name.find('.'); dot != std::string::npos) {
    if (const cell* found = value_in(name.substr(0, dot), name.substr(dot + 1))) return found;
  }
  const auto parameter = results_->parameters.find(name);
  return parameter == results_->parameters.end() ? nullptr : &parameter->second;
}

cell scope::value_of(const std::string& name, std::size_t line) const {
  if (rows_ != nullptr && rows_->has(name)) return rows_->at(row_, name);
  if (const cell* found = in_results(name)) return *found;
  if (const auto constant = page_->constants.find(name); constant != page_->constants.end()) return constant->second;
  std::vector<std::string> names;
  if (rows_ != nullptr) names = rows_->columns();
  for (const auto& [group, values] : results_->groups) {
    for (const auto& [key, value] : values.values) names.push_back(group == group_ ? key : group + "." + key);
  }
  for (const auto& [key, value] : page_->constants) names.push_back(key);
  for (const auto& [key, value] : results_->parameters) names.push_back(key);
  throw missing_value(page_->file + ":" + std::to_string(line) + ": no value '" + name + "'" +
                      suggestion(name, std::vector<std::string_view>(names.begin(), names.end())));
}

std::string scope::shown(const std::string& column, const cell& c) const {
  if (const auto list = page_->words.find(column); list != page_->words.end()) {
    if (const auto word = list->second.find(c.text()); word != list->second.end()) return fill(word->second);
  }
  return c.text();
}

std::string scope::placeholder(const std::string& tag, std::size_t line) const {
  std::vector<std::string> parts(1);
  for (const char c : tag) {
    if (c == '|') {
      parts.emplace_back();
    } else {
      parts.back() += c;
    }
  }
  const cell value = value_of(parts.front(), line);
  if (is_missing(value)) throw empty_cell{};
  // A value group.key is called as the column key is.
  if (parts.size() == 1) return shown(parts.front().substr(parts.front().find('.') + 1), value);
  int digits = 4;
  std::string unit;
  for (std::size_t i = 1; i < parts.size(); ++i) {
    const std::string& part = parts[i];
    if (!part.empty() && std::all_of(part.begin(), part.end(), [](char c) { return c >= '0' && c <= '9'; })) {
      std::from_chars(part.data(), part.data() + part.size(), digits);
    } else {
      unit = part;
    }
  }
  const double x = as_number(value);
  if (unit.empty()) return value.text(digits);
  if (unit == "%") return number(100 * x, digits) + " %";
  if (unit == "minus") return number(-x, digits);
  if (unit == "ten") return in_powers_of_ten(x, digits);
  if (unit == "plain") return number(x, 17);
  if (unit == "count") return count(static_cast<std::uint64_t>(x));
  page_fails(page_->file, line,
             "no unit '" + unit + "' in {{" + tag + "}}; there are %, minus, ten, plain, count, and a number of digits");
}

std::string scope::filled(const prose& p, const std::function<std::string(const std::string&)>& without) const {
  if (p.text.find("{{") == std::string::npos) return joined(p.text);
  for (const char* choice : {"{{#", "{{^", "{{/", "{{>", "{{="}) {
    if (p.text.find(choice) != std::string::npos) {
      page_fails(p.line == 0 ? "" : page_->file, line_of_tag(p, choice),
                 std::string(choice) +
                     "...}}: a page may hold only placeholders {{name}}, no choice between texts; write one text, and "
                     "state with expect what must hold for it");
    }
  }
  kainjow::mustache::mustache engine(p.text);
  engine.set_custom_escape([](const std::string& text) { return text; });
  if (!engine.is_valid()) page_fails(page_->file, p.line, engine.error_message());
  asking context([&](const std::string& tag) {
    try {
      return placeholder(tag, line_of_tag(p, tag));
    } catch (const empty_cell&) {
      return without(tag);
    }
  });
  return joined(engine.render(context));
}

std::string scope::fill(const prose& p) const {
  return filled(p, [&](const std::string& tag) -> std::string {
    const std::string what = page_->file + ":" + std::to_string(line_of_tag(p, tag)) + ": {{" + tag +
                             "}} stands in a sentence, but the study computed no value for it (an empty cell), so the sentence "
                             "would say \"nothing\"; give it a value in study.cpp, or reword the sentence without it";
    if (failed_ == nullptr || !results_->unfinished.empty()) throw missing_value(what);
    failed_->push_back(what);
    return "nothing";
  });
}

std::optional<std::string> scope::fill_unless_missing(const prose& p) const {
  try {
    return filled(p, [](const std::string&) -> std::string { throw empty_cell{}; });
  } catch (const empty_cell&) {
    return std::nullopt;
  }
}

double scope::quantity(const prose& p) const {
  double x = 0;
  const auto [end, bad] = std::from_chars(p.text.data(), p.text.data() + p.text.size(), x);
  if (bad == std::errc{} && end == p.text.data() + p.text.size()) return x;
  return as_number(value_of(p.text, p.line));
}

const frame& scope::frame_named(const prose& name) const {
  const auto at = results_->frames.find(name.text);
  if (at != results_->frames.end()) return at->second;
  std::vector<std::string_view> names;
  for (const auto& [one, rows] : results_->frames) names.push_back(one);
  throw missing_value(page_->file + ":" + std::to_string(name.line) + ": no frame '" + name.text + "'" +
                      suggestion(name.text, names));
}

std::optional<std::string> scope::failure(const prose& comparison) const {
  const prose one{joined(comparison.text), comparison.line};
  try {
    return failed(one.text, [&](const std::string& name) { return value_of(name, one.line); });
  } catch (const bad_expectation& bad) {
    page_fails(page_->file, one.line, "`" + one.text + "`: " + bad.what);
  }
}

bool scope::holds(const std::vector<prose>& all) const {
  return std::all_of(all.begin(), all.end(), [&](const prose& one) { return !failure(one); });
}

}  // namespace deltaproof::detail
