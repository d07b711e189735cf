// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT

#include "cli/terminal.hpp"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdlib>
#include <string_view>
#include <utility>
#include <vector>

namespace deltaproof::cli {
namespace {

/// Where the text of a labelled line begins.
constexpr std::size_t label_width = 13;

constexpr std::string_view red = "31", green = "32", yellow = "33", bold = "1";

/// The mark a suite's row begins with, in a column of six.
std::string_view colour_of_mark(std::string_view mark) {
  if (mark == "ok    ") return green;
  if (mark == "BAD   " || mark == "error ") return red;
  return mark == "skip  " || mark == "stop  " ? yellow : std::string_view();
}

/// Columns that UTF-8 takes, wide characters aside.
std::size_t columns_of(std::string_view text) {
  const auto begins = [](char c) { return (static_cast<unsigned char>(c) & 0xC0U) != 0x80U; };
  return static_cast<std::size_t>(std::count_if(text.begin(), text.end(), begins));
}

/// A command is copied as one line or not at all.
bool is_command(std::string_view line) { return line.starts_with("again ") || line.starts_with("deltaproof "); }

/// Where what does not fit goes on: below the last column of the line, below its second where the last is too narrow.
std::size_t continued_at(std::string_view line, std::size_t columns) {
  constexpr std::size_t narrow = 20;
  std::vector<std::size_t> cells;
  for (std::size_t i = 2; i < line.size(); ++i) {
    if (line[i] != ' ' && line[i - 1] == ' ' && line[i - 2] == ' ') cells.push_back(i);
  }
  if (!cells.empty() && cells.back() + narrow <= columns) return cells.back();
  if (!cells.empty() && cells.front() <= columns / 2) return cells.front();
  return colour_of_mark(line.substr(0, 6)).empty() ? 2 : 6;
}

std::vector<std::string> wrapped(std::string_view line, std::size_t columns) {
  std::vector<std::string> out;
  if (is_command(line)) return {std::string(line)};
  const std::size_t hang = continued_at(line, columns);
  std::string_view rest = line;
  std::size_t indent = 0;
  while (indent + columns_of(rest) > columns) {
    // The last space that leaves a line within the width; else the first after it: a long path stays whole.
    std::size_t cut = std::string_view::npos, seen = indent;
    const std::size_t text_from = rest.find_first_not_of(' ');
    for (std::size_t i = 0; i < rest.size(); ++i) {
      if (rest[i] == ' ' && i > text_from && (out.empty() ? i > hang : true)) {
        if (seen <= columns) cut = i;
        if (seen > columns) {
          if (cut == std::string_view::npos) cut = i;
          break;
        }
      }
      seen += columns_of(rest.substr(i, 1));
    }
    if (cut == std::string_view::npos) break;
    std::string_view here = rest.substr(0, cut);
    here = here.substr(0, here.find_last_not_of(' ') + 1);
    out.push_back(std::string(indent, ' ') + std::string(here));
    const std::size_t next = rest.find_first_not_of(' ', cut);
    rest = next == std::string_view::npos ? std::string_view() : rest.substr(next);
    indent = hang;
  }
  if (!rest.empty() || out.empty()) out.push_back(std::string(indent, ' ') + std::string(rest));
  return out;
}

void paint(std::string& line, std::size_t from, std::size_t count, std::string_view colour) {
  line.insert(from + count, "\033[0m");
  line.insert(from, "\033[" + std::string(colour) + "m");
}

std::string_view colour_of(std::string_view verdict) {
  static constexpr std::array<std::pair<std::string_view, std::string_view>, 10> words{{{"holds", green},
                                                                                        {"safe", green},
                                                                                        {"reproduced", green},
                                                                                        {"refuted", red},
                                                                                        {"unsafe", red},
                                                                                        {"not reproduced", red},
                                                                                        {"undecided", yellow},
                                                                                        {"vacuous", yellow},
                                                                                        {"measured", bold},
                                                                                        {"witness", bold}}};
  const auto found = std::find_if(words.begin(), words.end(), [&](const auto& row) { return row.first == verdict; });
  return found == words.end() ? std::string_view() : found->second;
}

/// The first line of what `line` was wrapped to.
void colour_key_words(std::string& line) {
  if (const std::string_view colour = colour_of_mark(line.substr(0, 6)); !colour.empty()) {
    paint(line, 0, line.find(' '), colour);
    return;
  }
  if (line.size() <= label_width || line[label_width - 1] != ' ') return;
  std::string label = line.substr(0, label_width);
  label.resize(label.find_last_not_of(' ') + 1);
  if (label == "verdict" || label == "replay") {
    const std::size_t end = std::min(line.find(':', label_width), line.size());
    const std::string_view colour = colour_of(std::string_view(line).substr(label_width, end - label_width));
    if (!colour.empty()) paint(line, label_width, end - label_width, colour == bold ? bold : "1;" + std::string(colour));
  }
  for (const char* const key : {"verdict", "first bad", "diagnosis", "remedy", "again", "witness"}) {
    if (label == key) paint(line, 0, label.size(), bold);
  }
}

}  // namespace

screen screen_of(int descriptor) {
  screen out;
  if (isatty(descriptor) == 0) return out;
  winsize size{};
  const char* const stated = std::getenv("COLUMNS");
  if (ioctl(descriptor, TIOCGWINSZ, &size) == 0 && size.ws_col > 0)
    out.columns = size.ws_col;
  else if (stated != nullptr)
    out.columns = static_cast<std::size_t>(std::clamp(std::atoi(stated), 0, 1000));
  if (out.columns == 0) out.columns = 80;
  out.columns = std::max<std::size_t>(out.columns, 40);
  const char* const no_colour = std::getenv("NO_COLOR");
  const char* const kind = std::getenv("TERM");
  out.colour = (no_colour == nullptr || *no_colour == '\0') && kind != nullptr && std::string_view(kind) != "dumb";
  return out;
}

std::string fitted(const std::string& text, const screen& on) {
  if (on.columns == 0) return text;
  std::string out;
  for (std::size_t first = 0; first < text.size();) {
    const std::size_t end = std::min(text.find('\n', first), text.size());
    std::vector<std::string> lines = wrapped(std::string_view(text).substr(first, end - first), on.columns);
    if (on.colour) colour_key_words(lines.front());
    for (std::size_t i = 0; i < lines.size(); ++i) out += (i > 0 ? "\n" : "") + lines[i];
    if (end < text.size()) out += '\n';
    first = end + 1;
  }
  return out;
}

std::string duration_text(double seconds) {
  const auto whole = static_cast<long long>(std::max(0.0, std::min(std::round(seconds), 1e15)));
  if (whole < 100) return std::to_string(whole) + " s";
  if (whole < 3600) return std::to_string(whole / 60) + " min " + std::to_string(whole % 60) + " s";
  return std::to_string(whole / 3600) + " h " + std::to_string(whole % 3600 / 60) + " min";
}

}  // namespace deltaproof::cli
