// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT

#include "study/expectation.hpp"

#include <array>
#include <charconv>
#include <cmath>
#include <vector>

#include "deltaproof/study/results.hpp"

namespace deltaproof::detail {
namespace {

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

}  // namespace

std::optional<std::string> failed(std::string_view expectation, const std::function<cell(const std::string&)>& value_of) {
  comparison c(expectation, value_of);
  if (c.decide()) return std::nullopt;
  return c.seen();
}

}  // namespace deltaproof::detail
