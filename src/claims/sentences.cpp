// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT

#include "claims/sentences.hpp"

#include <algorithm>
#include <array>
#include <cstddef>

namespace deltaproof::claim_detail {
namespace {

constexpr std::string_view blanks = " \t\r\n";

bool is_upper(char c) { return c >= 'A' && c <= 'Z'; }
bool is_digit(char c) { return c >= '0' && c <= '9'; }

std::string_view trimmed(std::string_view text) {
  const std::size_t first = text.find_first_not_of(blanks);
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(blanks) - first + 1);
}

/// Letters and digits of ASCII, and whatever lies beyond it.
bool says_something(std::string_view text) {
  return std::any_of(text.begin(), text.end(), [](char c) {
    return is_digit(c) || is_upper(c) || (c >= 'a' && c <= 'z') || static_cast<unsigned char>(c) >= 0x80;
  });
}

/// Lines; a line that opens a displayed formula takes those up to its end with it.
std::vector<std::string> lines_of(std::string_view text) {
  std::vector<std::string> lines;
  std::string_view closing;  // what ends the formula that is open
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    const std::string_view line = trimmed(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
    if (closing.empty()) {
      lines.emplace_back(line);
      if (line.starts_with("\\[")) closing = "\\]";
      if (line.starts_with("\\begin{")) closing = "\\end{";
    } else {
      lines.back().append(" ").append(line);
    }
    if (!closing.empty() && line.find(closing) != std::string_view::npos) closing = {};
  }
  return lines;
}

bool is_abbreviation(std::string_view before) {
  constexpr std::array<std::string_view, 6> known{"e.g", "i.e", "vs", "al", "Eq", "Fig"};
  return std::any_of(known.begin(), known.end(), [&](std::string_view word) {
    return before.ends_with(word) &&
           (before.size() == word.size() || blanks.find(before[before.size() - word.size() - 1]) != std::string_view::npos ||
            before[before.size() - word.size() - 1] == '(');
  });
}

/// "1" of a list's "1. GLA".
bool is_item_number(std::string_view before) { return !before.empty() && std::all_of(before.begin(), before.end(), is_digit); }

/// Past what closes with the sentence: quotes, brackets, emphasis.
std::size_t past_closing(std::string_view line, std::size_t at) {
  constexpr std::array<std::string_view, 10> closing{"\"", "'", ")", "]", "*", "_", "”", "’", "》", "）"};
  for (bool more = true; more;) {
    more = false;
    for (const std::string_view mark : closing) {
      if (!line.substr(at).starts_with(mark)) continue;
      at += mark.size();
      more = true;
    }
  }
  return at;
}

/// A space follows, and then what a sentence may begin with.
bool begins_anew(std::string_view line, std::size_t at) {
  if (at >= line.size() || blanks.find(line[at]) == std::string_view::npos) return false;
  const std::string_view rest = trimmed(line.substr(at));
  if (rest.empty()) return false;
  constexpr std::string_view openers = "\"'([$*_!\\";
  return is_upper(rest.front()) || openers.find(rest.front()) != std::string_view::npos ||
         static_cast<unsigned char>(rest.front()) >= 0x80;
}

}  // namespace

std::vector<std::string> sentences(std::string_view text) {
  std::vector<std::string> found;
  for (const std::string& held : lines_of(text)) {
    const std::string_view line = held;
    std::size_t first = 0;
    bool formula = false;  // inside $...$ or $$...$$
    int displayed = 0;     // inside \begin{equation} or \[ of a line that begins with it
    const auto cut = [&](std::size_t end) {
      const std::string_view sentence = trimmed(line.substr(first, end - first));
      if (says_something(sentence)) found.emplace_back(sentence);
      first = end;
    };
    if (line.starts_with("\\[")) displayed = 1;
    for (std::size_t i = 0; i < line.size(); ++i) {
      const std::string_view rest = line.substr(i);
      if (rest.starts_with("$$")) {
        formula = !formula;
        ++i;
      } else if (line[i] == '$' && (i == 0 || line[i - 1] != '\\')) {
        formula = !formula;
      } else if (rest.starts_with("\\begin{equation}")) {
        ++displayed;
      } else if (rest.starts_with("\\end{equation}")) {
        --displayed;
        i += std::string_view("end{equation}").size();
        if (displayed == 0 && begins_anew(line, i + 1)) cut(i + 1);
      } else if (!formula && displayed == 0) {
        for (const std::string_view mark : {std::string_view("。"), std::string_view("！"), std::string_view("？")}) {
          if (!rest.starts_with(mark)) continue;
          const std::size_t end = past_closing(line, i + mark.size());
          cut(end);
          i = end - 1;
          break;
        }
        if (line[i] != '.' && line[i] != '!' && line[i] != '?') continue;
        const std::size_t end = past_closing(line, i + 1);
        const std::string_view before = trimmed(line.substr(first, i - first));
        if (begins_anew(line, end) && !(line[i] == '.' && (is_abbreviation(before) || is_item_number(before)))) {
          cut(end);
          i = end - 1;
        }
      }
    }
    cut(line.size());
  }
  return found;
}

}  // namespace deltaproof::claim_detail
