// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT

#include "study/gnuplot.hpp"

#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <string_view>
#include <utility>

#include "deltaproof/number/canary.hpp"
#include "deltaproof/support/read_file.hpp"
#include "deltaproof/support/write_file.hpp"
#include "support/printable.hpp"

extern char** environ;

namespace deltaproof::detail {
namespace {

namespace fs = std::filesystem;

class temporary_folder {
 public:
  temporary_folder() {
    std::string pattern = (fs::temp_directory_path() / "deltaproof-figure-XXXXXX").string();
    if (::mkdtemp(pattern.data()) == nullptr)
      throw environment_error("cannot make a temporary folder: " + pattern + ": " + std::strerror(errno));
    path_ = pattern;
  }
  temporary_folder(const temporary_folder&) = delete;
  temporary_folder& operator=(const temporary_folder&) = delete;
  ~temporary_folder() {
    std::error_code ignored;
    fs::remove_all(path_, ignored);
  }
  [[nodiscard]] const fs::path& path() const { return path_; }

 private:
  fs::path path_;
};

std::string output_of_gnuplot(const std::string& script) {
  const temporary_folder folder;
  const std::string script_file = (folder.path() / "figure.gp").string();
  const std::string output_file = (folder.path() / "figure.svg").string();
  const std::string error_file = (folder.path() / "errors").string();
  write_file(script_file, script);

  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_addopen(&actions, 1, output_file.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
  posix_spawn_file_actions_addopen(&actions, 2, error_file.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
  std::string program = "gnuplot";
  std::string no_user_settings = "-d";
  std::string file = script_file;
  char* const arguments[] = {program.data(), no_user_settings.data(), file.data(), nullptr};
  pid_t child = 0;
  // Its own process group: Ctrl-C in a terminal reaches us, and the figure at hand is still finished.
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP);
  posix_spawnattr_setpgroup(&attributes, 0);
  const int failure = posix_spawnp(&child, program.c_str(), &actions, &attributes, arguments, environ);
  posix_spawnattr_destroy(&attributes);
  posix_spawn_file_actions_destroy(&actions);
  if (failure != 0) {
    throw environment_error("figures are drawn by the program gnuplot, which cannot be started (" +
                            std::string(std::strerror(failure)) + "); install the Debian package gnuplot-nox");
  }
  int status = 0;
  while (::waitpid(child, &status, 0) < 0) {
    if (errno != EINTR) throw environment_error("lost the child process gnuplot: " + std::string(std::strerror(errno)));
  }
  if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) {
    throw environment_error("gnuplot could not draw a figure: " + read_file(error_file, report_limit));
  }
  return read_file(output_file, report_limit);
}

void erase_all(std::string& text, std::string_view what) {
  for (std::size_t at = 0; (at = text.find(what, at)) != std::string::npos;) text.erase(at, what.size());
}

/// "rgb( 15,  44, 177)" as "#0f2cb1".
void shorten_colours(std::string& text) {
  for (std::size_t at = 0; (at = text.find("rgb(", at)) != std::string::npos;) {
    unsigned red = 0, green = 0, blue = 0;
    if (std::sscanf(text.c_str() + at, "rgb(%u, %u, %u)", &red, &green, &blue) != 3) break;
    std::array<char, 8> colour{};
    std::snprintf(colour.data(), colour.size(), "#%02x%02x%02x", red % 256, green % 256, blue % 256);
    text.replace(at, text.find(')', at) + 1 - at, colour.data());
  }
}

/// What each colour of a light page is on a dark one.
std::string dark_style(const std::string& svg) {
  std::string rules =
      "image{image-rendering:pixelated}text{stroke:none;fill:#000}[fill=\"#000001\"] text{fill:#000001}\n@media "
      "(prefers-color-scheme:dark){\ntext{fill:#a3acb7}\n";
  const auto add = [&](const std::string& light, const std::string& dark) {
    if (svg.find(light) == std::string::npos) return;
    for (const std::string property : {"stroke", "fill", "color"})
      rules += "[" + property + "=\"" + light + "\"]{" + property + ":" + dark + "}";
    rules += "\n";
  };
  for (const look& l : looks) add(l.light, l.dark);
  add("#ffffff", "#14181d");
  add("#e6e9ed", "#2a3038");
  add("#9aa3ad", "#6b7480");
  add("#59616b", "#a3acb7");
  return rules + "}\n";
}

/// The first place from `at` on that is no white space.
std::size_t behind_space(const std::string& s, std::size_t at) { return std::min(s.find_first_not_of(" \t\r\n", at), s.size()); }
bool has(const std::string& s, std::size_t at, std::string_view what) { return s.compare(at, what.size(), what) == 0; }

/// `match` answers for a place of `opening` where what it replaces ends, and by what; 0: nothing is replaced there.
template <class Match>
std::string rewritten(const std::string& s, std::string_view opening, Match match) {
  std::string out;
  std::size_t done = 0;
  for (std::size_t at; (at = s.find(opening, done)) != std::string::npos;) {
    const auto [end, by] = match(at);
    out.append(s, done, (end == 0 ? at + opening.size() : at) - done).append(by);
    done = end == 0 ? at + opening.size() : end;
  }
  return out.append(s, done);
}

/// Without tick marks of no length, groups of nothing, and those that say nothing of the one thing in them. Not by std::regex: it
/// recurses at every character, and long curves overflowed the stack.
std::string thinned(std::string svg) {
  using change = std::pair<std::size_t, std::string>;
  svg = rewritten(svg, "<path ", [&](std::size_t at) -> change {
    const std::size_t end = svg.find('>', at) + 1;
    const std::string_view mark = std::string_view(svg).substr(at, end - at);
    if (end == 0 || !mark.ends_with("  '/>")) return {0, ""};
    const std::size_t moved = mark.find_last_not_of("0123456789.,", mark.size() - 6);
    return {moved + 6 < mark.size() && mark[moved] == 'M' && mark[moved - 1] == '\'' ? end : 0, ""};
  });
  svg = rewritten(svg, "<g", [&](std::size_t at) -> change {
    const std::size_t close = behind_space(svg, svg.find('>', at) + 1);
    return {has(svg, close, "</g>") ? behind_space(svg, close + 4) : 0, ""};
  });
  return rewritten(svg, "<g>", [&](std::size_t at) -> change {
    const std::size_t begin = behind_space(svg, at + 3), tag = svg.find('>', begin);
    if (tag == std::string::npos) return {0, ""};
    std::size_t end = tag + 1;
    if (has(svg, begin, "<g ") && has(svg, behind_space(svg, end), "<text>")) {
      const std::size_t text = svg.rfind("</text>", svg.find('\n', behind_space(svg, end)));
      end = text == std::string::npos || text < tag ? 0 : behind_space(svg, text + 7);
      if (end == 0 || !has(svg, end, "</g>")) return {0, ""};
      end += 4;
    } else if (!has(svg, begin, "<path ") || svg[tag - 1] != '/') {
      return {0, ""};
    }
    const std::size_t close = behind_space(svg, end);
    return {has(svg, close, "</g>") ? close + 4 : 0, has(svg, close, "</g>") ? svg.substr(begin, end - begin) : ""};
  });
}

}  // namespace

std::string drawn(const std::string& script, const figure& f) {
  std::string svg = output_of_gnuplot(script);
  const auto lacks = [&](const char* part) { return svg.find(part) == std::string::npos; };
  if (lacks("</svg>") || lacks("width=") || lacks("<rect") || lacks("<defs>") || lacks("</defs>") || lacks("<filter")) {
    throw environment_error(
        "gnuplot's drawing was cut short: make room in the folder for temporary files, or, if there is room, install the Debian "
        "package gnuplot-nox");
  }
  // What every group says is said once, for all.
  constexpr std::array usual{R"( fill="none")",
                             R"( color="black")",
                             R"( stroke="currentColor")",
                             R"( stroke-width="1.00")",
                             R"( stroke-linecap="round" stroke-linejoin="round")",
                             R"( font-family="sans-serif")"};
  std::string group = "<g";
  for (const char* one : usual) {
    group += one;
    erase_all(svg, one);
  }
  for (const char* one : {" font-size=\"11.00\"", " stroke=\"none\"", " fill=\"black\"", " class=\"gridline\"",
                          "<tspan font-size=\"11.0\" dy=\"5.50\"></tspan>", "\t"})
    erase_all(svg, one);
  shorten_colours(svg);
  const std::size_t size = svg.find("width="), page = svg.find("<rect"), points = svg.find("<defs>"), marks = svg.find("</defs>"),
                    unused = svg.find("<use", marks) == std::string::npos ? points + 6 : svg.find("<filter");
  svg = "<svg role=\"img\" aria-label=\"" + markup_escaped(f.alt) + "\" " + svg.substr(size, svg.find('>', size) + 1 - size) +
        "\n<title>" + markup_escaped(f.title) + "</title>\n<style>" + dark_style(svg) + "</style>\n" +
        svg.substr(page, points - page) + group + " font-size=\"11\">\n" + svg.substr(points, unused - points) +
        svg.substr(marks);
  erase_all(svg, " fill=\"#000000\"");
  return thinned(svg);
}

}  // namespace deltaproof::detail
