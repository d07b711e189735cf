// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT

#include "study/gnuplot.hpp"

#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <regex>
#include <string_view>

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

}  // namespace

std::string drawn(const std::string& script, const figure& f) {
  std::string svg = output_of_gnuplot(script);
  if (svg.find("</svg>") == std::string::npos) {
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
  // Tick marks of no length, groups of nothing, and those that say nothing of the one thing in them.
  for (const auto& [what, by] : {std::pair(R"(<path [^>]*'M[0-9.,]+  '/>)", ""), std::pair(R"(<g[^>]*>\s*</g>\s*)", ""),
                                 std::pair(R"(<g>\s*(<path [^>]*/>|<g [^>]*>\s*<text>.*</text>\s*</g>)\s*</g>)", "$1")})
    svg = std::regex_replace(svg, std::regex(what), by);
  return svg;
}

}  // namespace deltaproof::detail
