// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
#include <algorithm>
#include <array>
#include <cmath>
#include <unordered_map>

#include "deltaproof/check/suite.hpp"
#include "deltaproof/support/read_file.hpp"
#include "support/nearest_name.hpp"
#include "support/toml.hpp"

namespace deltaproof {
namespace {

using names = std::vector<std::string_view>;

constexpr std::array verdicts{verdict::holds, verdict::measured, verdict::vacuous, verdict::undecided, verdict::refuted};

class suite_reader {
 public:
  explicit suite_reader(const std::filesystem::path& file) : file_(file) {}

  suite read(const toml::table& root, names known) const {
    known.emplace_back("case");
    require_known(root, known);
    const toml::node* const list = root.get("case");
    if (list == nullptr) fail("there is no [[case]]; write one for each result");
    const toml::array* const sections = list->as_array();
    if (sections == nullptr || sections->empty()) fail(*list, "case must be a list of sections [[case]]");
    suite s;
    s.file = file_;
    std::unordered_map<std::string, std::size_t> lines;
    for (const toml::node& one : *sections) {
      const toml::table* const table = one.as_table();
      if (table == nullptr) fail(one, "case must be a list of sections [[case]]");
      s.cases.push_back(read_case(*table));
      name_by_plan(s, *table);
      const suite_case& last = s.cases.back();
      if (const auto [same, is_new] = lines.try_emplace(last.name, last.line); !is_new) {
        fail(one, "two cases are called " + in_quotes(last.name) + ", the first in line " + std::to_string(same->second) +
                      "; give one of them another name");
      }
    }
    return s;
  }

 private:
  [[noreturn]] void fail(const std::string& what) const { throw format_error(file_.string() + ": " + what); }
  [[noreturn]] void fail(const toml::node& at, const std::string& what) const {
    fail("line " + std::to_string(at.source().begin.line) + ": " + what);
  }

  void require_known(const toml::table& table, const names& known) const {
    for (const auto& [name, value] : table) {
      if (std::find(known.begin(), known.end(), name.str()) != known.end()) continue;
      fail(value, "there is no key " + in_quotes(name.str()) + detail::suggestion(name.str(), known));
    }
  }

  std::string text(const toml::table& table, const std::string& key) const {
    const toml::node* const node = table.get(key);
    if (node == nullptr) return "";
    if (!node->is_string()) fail(*node, key + " must be text");
    std::string value = *node->value<std::string>();
    if (value.empty()) fail(*node, key + " is empty; remove the key, or give a value");
    if (value.find('\0') != std::string::npos)
      fail(*node, key + " = " + in_quotes(value) + " contains a NUL character, which no name may have");
    return value;
  }

  std::string required(const toml::table& table, const std::string& key) const {
    std::string value = text(table, key);
    if (value.empty()) fail(table, "this [[case]] has no key " + key + "; add " + key + " = \"FILE\"");
    return value;
  }

  verdict expected(const toml::table& table, bool no_plan) const {
    const std::string word = text(table, "expect");
    if (word.empty()) return no_plan ? verdict::measured : verdict::holds;
    names known;
    for (const verdict v : verdicts) {
      if (name_of(v) != word) {
        known.push_back(name_of(v));
        continue;
      }
      if (v == verdict::holds && no_plan)
        fail(*table.get("expect"),
             "a case with no_plan = true is never judged \"holds\"; expect \"measured\", or remove no_plan");
      if (v == verdict::measured && !no_plan)
        fail(*table.get("expect"),
             "only a case with no_plan = true is \"measured\"; set no_plan = true, or expect another verdict");
      return v;
    }
    fail(*table.get("expect"), "expect = " + in_quotes(word) + " is not a verdict" + detail::suggestion(word, known));
  }

  suite_case read_case(const toml::table& table) const {
    require_known(table, {"problem", "result", "plan", "expect", "accuracy", "name", "no_plan"});
    const std::filesystem::path folder = file_.parent_path();
    suite_case c;
    c.line = table.source().begin.line;
    const std::string result = required(table, "result");
    c.problem = folder / required(table, "problem");
    c.result = folder / result;
    c.name = text(table, "name");
    if (c.name.empty()) c.name = default_name(result);
    c.plan = text(table, "plan");
    if (c.plan.ends_with(".toml")) c.plan = (folder / c.plan).string();
    if (const toml::node* node = table.get("no_plan")) {
      if (!node->is_boolean()) fail(*node, "no_plan must be true or false");
      c.no_plan = *node->value<bool>();
    }
    if (const toml::node* node = table.get("accuracy")) {
      const auto value = node->is_number() ? node->value<double>() : std::nullopt;
      if (!value || wrong_accuracy(*value))
        fail(*node, "accuracy must be a number above 0 and at most 1: the relative error a plan may have");
      c.accuracy = value;
    }
    if (c.no_plan && !c.plan.empty()) fail(*table.get("plan"), "plan and no_plan = true are both given; give one of them");
    if (c.no_plan && c.accuracy)
      fail(*table.get("accuracy"), "accuracy is a limit on the plan, and no_plan = true; remove one of them");
    c.expect = expected(table, c.no_plan);
    return c;
  }

  /// A result judged by a further plan is a further case: its name, where none is given, says by which. The first keeps its own.
  void name_by_plan(suite& s, const toml::table& table) const {
    suite_case& last = s.cases.back();
    const auto first = std::find_if(s.cases.begin(), s.cases.end(), [&](const suite_case& c) { return c.name == last.name; });
    if (table.contains("name") || first == s.cases.end() - 1) return;
    if (first->plan == last.plan && first->no_plan == last.no_plan) return;
    last.name += " (" + (last.no_plan ? "no plan" : last.plan.empty() ? "its kernel's plan" : text(table, "plan")) + ")";
  }

  static std::string default_name(std::string name) {
    for (const std::string_view ending : {".safetensors", ".result"}) {
      if (name.size() > ending.size() && name.ends_with(ending)) name.resize(name.size() - ending.size());
    }
    return name;
  }

  std::filesystem::path file_;
};

}  // namespace

suite parse_suite(std::string_view text, const std::filesystem::path& file, const std::vector<std::string_view>& beside) {
  detail::require_shallow_toml(text, file.string());
  try {
    return suite_reader(file).read(toml::parse(text), beside);
  } catch (const toml::parse_error& e) {
    throw format_error(file.string() + ": line " + std::to_string(e.source().begin.line) +
                       ": not valid TOML: " + std::string(e.description()));
  }
}

suite read_suite(const std::filesystem::path& file) { return parse_suite(read_file(file, suite_limit), file); }

}  // namespace deltaproof
