// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT

#include "cli/program.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cmath>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <iostream>

#include "cli/terminal.hpp"
#include "deltaproof/check/request.hpp"
#include "deltaproof/support/errors.hpp"
#include "deltaproof/support/write_file.hpp"
#include "support/printable.hpp"
#include "support/text.hpp"

namespace deltaproof::cli {
namespace {

/// Seconds as JUnit writes them, never as a power of ten.
std::string junit_time(double seconds) {
  std::array<char, 64> text{};
  std::snprintf(text.data(), text.size(), "%.3f", std::clamp(seconds, 0.0, 1e9));
  return text.data();
}

/// `seconds`: of the whole. A case that states no time of its own has an equal share of what the others leave.
std::string junit_xml(const std::string& suite, const std::vector<junit_case>& cases, double seconds) {
  const auto count = [&](std::string junit_case::* what) {
    return std::to_string(std::count_if(cases.begin(), cases.end(), [what](const junit_case& c) { return !(c.*what).empty(); }));
  };
  const double share = cases.empty() ? 0 : seconds / static_cast<double>(cases.size());
  std::string out = "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites>\n  <testsuite name=\"" +
                    detail::markup_escaped(suite) + "\" tests=\"" + std::to_string(cases.size()) + "\" failures=\"" +
                    count(&junit_case::failure) + "\" errors=\"" + count(&junit_case::error) + "\" skipped=\"" +
                    count(&junit_case::skipped) + "\" time=\"" + junit_time(seconds) + "\">\n";
  for (const junit_case& c : cases) {
    out += "    <testcase classname=\"" + detail::markup_escaped(suite) + "\" name=\"" + detail::markup_escaped(c.name) +
           "\" time=\"" + junit_time(c.seconds.value_or(share)) + "\">\n";
    const bool bad = !c.failure.empty() || !c.error.empty();
    // Some viewers show the message, some the body: each says what is wrong.
    for (const auto& [element, message] : {std::pair{"failure", &c.failure}, std::pair{"error", &c.error}}) {
      if (message->empty()) continue;
      const std::string body = c.output.empty() ? *message + "\n" : c.output;
      const std::string type = message->substr(0, message->find_first_of(":,"));
      out += std::string("      <") + element + " message=\"" + detail::markup_escaped(*message) + "\" type=\"" +
             detail::markup_escaped(type) + "\">" + detail::markup_escaped(body) + "</" + element + ">\n";
    }
    if (!c.skipped.empty()) out += "      <skipped message=\"" + detail::markup_escaped(c.skipped) + "\"/>\n";
    if (!bad && !c.output.empty()) out += "      <system-out>" + detail::markup_escaped(c.output) + "</system-out>\n";
    out += "    </testcase>\n";
  }
  return out + "  </testsuite>\n</testsuites>\n";
}

void write_view(const std::string& file, const std::string& data) { write_file(file, data); }

/// Writes behind what a regular file holds: a summary that several steps of a job share. Throws: format_error; the file is then
/// as it was.
void append_or_write(const std::string& file, const std::string& data) {
  std::error_code none;
  if (!std::filesystem::is_regular_file(file, none) || std::filesystem::file_size(file, none) == 0) {
    write_file(file, data);
    return;
  }
  const auto refuse = [&file] { return format_error(file + ": cannot be appended to: " + std::string(std::strerror(errno))); };
  const int to = open(file.c_str(), O_RDWR | O_APPEND | O_CLOEXEC);
  if (to < 0) throw refuse();
  struct stat before{};
  char last = '\n';
  bool good = fstat(to, &before) == 0 && pread(to, &last, 1, before.st_size - 1) == 1;
  const std::string added = std::string(last == '\n' ? "\n" : "\n\n") + data;
  for (std::size_t at = 0; good && at < added.size();) {
    const ssize_t wrote = write(to, added.data() + at, added.size() - at);
    if (wrote < 0 && errno == EINTR) continue;
    good = wrote > 0;
    at += good ? static_cast<std::size_t>(wrote) : 0;
  }
  const format_error failed = refuse();
  if (!good && ftruncate(to, before.st_size) != 0) good = false;
  if (close(to) != 0 || !good) throw failed;
}

}  // namespace

std::string why_stopped(const common_options& common) {
  return was_interrupted() ? "interrupted" : "--max-seconds " + detail::general(common.max_seconds, 6) + " ran out";
}

void say(const common_options& common, const std::string& text, bool to_copy) {
  const bool stdout_taken = common.json == "-" || common.junit == "-" || common.markdown == "-";
  std::ostream& out = stdout_taken ? std::cerr : std::cout;
  const std::string shown = detail::printable(text);
  out << (to_copy ? shown : fitted(shown, screen_of(stdout_taken ? STDERR_FILENO : STDOUT_FILENO))) << std::flush;
  if (!out) throw format_error(std::string(stdout_taken ? "stderr" : "stdout") + ": could not be written");
}

void publish(const common_options& common, const output& out) {
  const auto cases = out.cases.empty() ? std::vector<junit_case>{{out.verb, "", out.text}} : out.cases;
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - common.began).count();
  const std::pair<const std::string&, std::string> views[] = {
      {common.json, out.json},
      {common.junit, junit_xml("deltaproof " + out.verb, cases, seconds)},
      {common.markdown, detail::printable(out.markdown.empty() ? "```\n" + out.text + "```\n" : out.markdown)}};
  for (const auto& [file, data] : views) {
    if (file.empty()) continue;
    try {
      if (file != "-") {
        (&file == &common.markdown ? append_or_write : write_view)(file, data);
        continue;
      }
      std::cout << data << std::flush;
      if (!std::cout) throw format_error("stdout: could not be written");
    } catch (const format_error& e) {
      lost_output(e.what());  // what was found out is still said
    }
  }
  say(common, out.text, out.to_copy);
}

namespace {
bool output_is_lost = false;
}  // namespace

void lost_output(const std::string& why) {
  output_is_lost = true;
  std::cerr << "deltaproof: " << detail::printable(why) << '\n';
}

int exit_with_outputs(int code) { return output_is_lost && code != refuted_exit ? bad_usage : code; }

std::string command_line(const common_options& common) {
  std::string out = "deltaproof";
  for (const std::string& word : common.arguments) out += " " + shell_quoted(word);
  return out;
}

}  // namespace deltaproof::cli
