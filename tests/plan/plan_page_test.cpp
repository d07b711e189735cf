// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
//
// docs/plan-keys.md against the code: the same sections, keys and words, and for each key of the table when it must be stated.
// What the code takes is read from what it refuses: a refusal lists every name and every word that would do.
#include <gtest/gtest.h>

#include <fstream>
#include <map>
#include <regex>
#include <set>
#include <sstream>

#include "plan/plan_keys.hpp"

namespace deltaproof {
namespace {

using words = std::set<std::string>;

struct row {
  std::string values, required;
};

const std::string stored_state = "a stored state";

/// Of each heading, "" for the plan itself, "when" for exceptions, its rows by key.
struct plan_page {
  std::map<std::string, std::map<std::string, row>> sections;
  std::map<std::string, std::string> classes;  ///< *format*, *operand*
};

plan_page read_page() {
  std::ifstream file(DELTAPROOF_SOURCE_DIR "/docs/plan-keys.md");
  plan_page page;
  std::string line, section;
  const std::regex heading(R"(###? (\[(\w+)\].*|The plan itself|Exceptions|A stored state|.*))"),
      key_row(R"(\| `(\w+)` \| (.*) \| .* \| (.*) \|)"), class_row(R"(\| \*(\w+)\* \| (.*) \|)");
  std::smatch m;
  while (std::getline(file, line)) {
    if (std::regex_match(line, m, heading)) {
      section = m[2].matched ? m[2].str() : m[1] == "Exceptions" ? "when" : m[1] == "A stored state" ? stored_state : "";
    } else if (std::regex_match(line, m, class_row)) {
      page.classes[m[1]] = m[2];
    } else if (std::regex_match(line, m, key_row)) {
      EXPECT_TRUE(page.sections[section].try_emplace(m[1], row{m[2], m[3]}).second) << section << " " << m[1] << " stands twice";
    }
  }
  return page;
}

/// The words in quotes, and true and false, with *operand* and *format* spelled out.
words words_of(const std::string& values, const plan_page& page) {
  words out;
  const std::regex part(R"re(`"([^"]*)"`|`(true|false)`|\*(\w+)\*)re");
  for (std::sregex_iterator at(values.begin(), values.end(), part), end; at != end; ++at) {
    if ((*at)[1].matched) out.insert((*at)[1]);
    if ((*at)[2].matched) out.insert((*at)[2]);
    if ((*at)[3].matched) out.merge(words_of(page.classes.at((*at)[3]), page));
  }
  return out;
}

std::string refusal_of(const std::string& text) {
  try {
    (void)parse_plan(text, "page");
  } catch (const format_error& e) {
    return e.what();
  }
  ADD_FAILURE() << "taken:\n" << text;
  return {};
}

/// "...; did you mean "a"? Choose from a, b, c", or the words in quotes after the refused value.
words named_in(const std::string& refusal, const std::string& value) {
  words out;
  std::smatch m;
  if (std::regex_search(refusal, m, std::regex(R"([Cc]hoose from (\S+(, \S+)*)$)"))) {
    std::istringstream list(m[1].str());
    for (std::string one; std::getline(list >> std::ws, one, ',');) out.insert(one);
    return out;
  }
  const std::string rest = refusal.substr(refusal.find(value) + value.size());
  const std::regex quoted(R"re("(\w+)"|\b(true|false)\b)re");
  for (std::sregex_iterator at(rest.begin(), rest.end(), quoted), end; at != end; ++at)
    out.insert((*at)[1].matched ? (*at)[1] : (*at)[2]);
  return out;
}

const std::string head = "name = \"x\"\nops = \"kda\"\npath = \"chunk\"\ndtypes = \"bf16\"\nchunk = 64\n";

/// A plan that stops at this line of this section.
std::string plan_with(const std::string& section, const std::string& key, const std::string& value) {
  if (section == stored_state) {
    std::map<std::string, std::string> table{{"format", "\"int8\""}, {"scale", "\"row\""}, {"scale_format", "\"fp32\""}};
    table["rounding"] = key == "residual" ? "\"error-feedback\"" : key == "seed" ? "\"stochastic\"" : "\"nearest\"";
    table[key] = value;
    std::string text;
    for (const auto& [name, said] : table) text += (text.empty() ? "" : ", ") + name + " = " + said;
    return head + "[state]\nbetween_tokens = {" + text + "}\n";
  }
  if (section == "when") return head + "[[when]]\n" + key + " = " + value + "\n";
  if (!section.empty()) return head + "[" + section + "]\n" + key + " = " + value + "\n";
  std::string text = head;
  const std::size_t at = text.find(key + " = ");
  if (at != std::string::npos) text.erase(at, text.find('\n', at) + 1 - at);
  return text + key + " = " + value + "\n";
}

words keys_of(const std::string& section) { return named_in(refusal_of(plan_with(section, "nonsense", "1")), "nonsense"); }

TEST(the_page_of_plan_keys, has_every_section_and_key_of_the_code_and_no_other) {
  plan_page page = read_page();
  words top = keys_of(""), when = keys_of("when");
  for (auto& [section, rows] : page.sections) {
    words stated;
    for (const auto& [key, _] : rows) stated.insert(key);
    if (section.empty() || section == "when") {
      // Sections are keys of the file too, and exceptions may hold any of them.
      for (const auto& [other, unused] : page.sections) {
        if (!other.empty() && other != "when" && other != stored_state) stated.insert(other);
      }
    }
    EXPECT_EQ(stated, section.empty() ? top : section == "when" ? when : keys_of(section)) << "[" << section << "]";
  }
  EXPECT_GT(page.sections.size(), 10U);
}

TEST(the_page_of_plan_keys, has_every_word_of_every_key_and_no_other) {
  const plan_page page = read_page();
  std::size_t compared = 0;
  for (const auto& [section, rows] : page.sections) {
    for (const auto& [key, said] : rows) {
      if (said.values == "text" || said.values.starts_with("sections")) continue;
      const std::string value = "\"nonsense\"";
      EXPECT_EQ(words_of(said.values, page), named_in(refusal_of(plan_with(section, key, value)), value))
          << "[" << section << "] " << key;
      compared += words_of(said.values, page).size();
    }
  }
  EXPECT_GT(compared, 200U);
}

TEST(the_page_of_plan_keys, says_when_each_must_be_stated) {
  using enum plan_detail::needed;
  const std::map<plan_detail::needed, std::string> spelt{{always, "always"},
                                                         {chunk_only, "chunk path"},
                                                         {gate, "gate"},
                                                         {gate_chunk, "gate, chunk path"},
                                                         {merges, "merges"},
                                                         {tf32, "tf32"},
                                                         {backward, "always"},
                                                         {backward_chunk, "chunk path"},
                                                         {backward_tokens, "recurrent path"},
                                                         {backward_gate, "gate"},
                                                         {backward_gate_chunk, "gate, chunk path"}};
  const plan_page page = read_page();
  plan p;
  plan_detail::for_each_key(p, [&](const plan_detail::key& k, const auto&) {
    const std::string required = page.sections.at(std::string(k.section)).at(std::string(k.name)).required;
    if (k.has_default) {
      EXPECT_TRUE(required.starts_with("no: ")) << k.text() << ": " << required;
    } else {
      EXPECT_EQ(required, spelt.at(k.where)) << k.text();
    }
  });
}

}  // namespace
}  // namespace deltaproof
