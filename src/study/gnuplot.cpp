// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT

#include "study/gnuplot.hpp"

#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <string_view>
#include <utility>

#include "deltaproof/number/canary.hpp"
#include "deltaproof/support/read_file.hpp"
#include "deltaproof/support/write_file.hpp"

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

std::string run(const std::string& script) {
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

// The value of an attribute of the element that opens `element`, as name="v", name='v' or name = 'v'.
std::string_view attribute(std::string_view element, std::string_view name) {
  for (std::size_t at = element.find(name); at != std::string_view::npos; at = element.find(name, at + 1)) {
    const char before = at > 0 ? element[at - 1] : ' ';
    if (before != ' ' && before != '\t' && before != '\n') continue;
    std::size_t open = at + name.size();
    while (open < element.size() && (element[open] == ' ' || element[open] == '=')) ++open;
    if (open >= element.size() || (element[open] != '"' && element[open] != '\'')) continue;
    const std::size_t close = element.find(element[open], open + 1);
    if (close == std::string_view::npos) return {};
    return element.substr(open + 1, close - open - 1);
  }
  return {};
}

std::vector<double> numbers(std::string_view text) {
  std::vector<double> result;
  const char* const end = text.data() + text.size();
  for (const char* at = text.data(); at != end;) {
    double value = 0;
    const auto read = std::from_chars(at, end, value);
    if (read.ec == std::errc()) result.push_back(value);
    at = read.ec == std::errc() ? read.ptr : at + 1;
  }
  return result;
}

/// A mark whose colour, "rgb(4, 0, 1)", says what it is.
paper_mark mark_of(paper_mark::shape kind, std::string_view colour, std::vector<paper_point> points) {
  const auto values = numbers(colour);
  if (kind == paper_mark::shape::point || kind == paper_mark::shape::text) points.resize(1, {0, 0});
  if (!colour.starts_with("rgb(") || values.size() != 3) return {kind, role::none, 0, 0, std::move(points)};
  const auto whole = [&](std::size_t i) { return static_cast<int>(values[i]); };
  return {kind, static_cast<role>(whole(0)), static_cast<std::size_t>(whole(1)), whole(2), std::move(points)};
}

std::vector<paper_point> points_of(std::string_view text) {
  const auto values = numbers(text);
  std::vector<paper_point> result;
  for (std::size_t i = 0; i + 1 < values.size(); i += 2) result.push_back({values[i], values[i + 1]});
  return result;
}

// A path is moves and lines; each move starts a polyline, a polyline of one point shows nothing.
void add_path(std::string_view element, std::vector<paper_mark>& marks) {
  const std::string_view colour = attribute(element, "stroke");
  const std::string_view d = attribute(element, "d");
  for (std::size_t at = d.find('M'); at != std::string_view::npos;) {
    const std::size_t next = d.find('M', at + 1);
    const auto points = points_of(d.substr(at, next == std::string_view::npos ? next : next - at));
    if (points.size() > 1) marks.push_back(mark_of(paper_mark::shape::line, colour, points));
    at = next;
  }
}

}  // namespace

std::vector<paper_mark> project(const std::string& script) {
  const std::string svg = run(script);
  std::vector<paper_mark> marks;
  std::string_view text_group;
  std::size_t at = svg.find("</defs>");
  if (!svg.empty() && svg.find("</svg>") == std::string::npos) {
    throw environment_error("gnuplot's drawing was cut short; is there room in the folder for temporary files?");
  }
  if (at == std::string::npos) {
    throw environment_error("gnuplot gave no SVG; install the Debian package gnuplot-nox");
  }
  while ((at = svg.find('<', at)) != std::string::npos) {
    const std::size_t close = std::min(svg.find('>', at), svg.size() - 1);
    const std::string_view element = std::string_view(svg).substr(at, close - at + 1);
    at = close + 1;
    if (element.starts_with("<path")) {
      add_path(element, marks);
    } else if (element.starts_with("<polygon")) {
      marks.push_back(mark_of(paper_mark::shape::area, attribute(element, "fill"), points_of(attribute(element, "points"))));
    } else if (element.starts_with("<use")) {
      marks.push_back(mark_of(paper_mark::shape::point, attribute(element, "color"),
                              points_of(std::string(attribute(element, "x")) + " " + std::string(attribute(element, "y")))));
    } else if (element.starts_with("<g transform")) {
      text_group = element;
    } else if (element.starts_with("<text") && !text_group.empty()) {
      paper_mark label =
          mark_of(paper_mark::shape::text, attribute(text_group, "fill"), points_of(attribute(text_group, "transform")));
      label.text = svg.substr(at, svg.find("</text>", at) - at);
      label.anchor = attribute(text_group, "text-anchor");
      marks.push_back(std::move(label));
    }
  }
  return marks;
}

}  // namespace deltaproof::detail
