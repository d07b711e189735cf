// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT

#include "cli/program.hpp"

#include <unistd.h>

#include <cmath>
#include <csignal>
#include <cstdio>
#include <iostream>

#include "deltaproof/kernel/request.hpp"
#include "deltaproof/kernel/write_file.hpp"
#include "deltaproof/number/errors.hpp"
#include "deltaproof/study/report.hpp"

namespace deltaproof::cli {
namespace {

std::string xml_escaped(std::string_view text) {
  std::string out;
  for (const char c : text) {
    switch (c) {
      case '&': out += "&amp;"; break;
      case '<': out += "&lt;"; break;
      case '>': out += "&gt;"; break;
      case '"': out += "&quot;"; break;
      default:
        // Control characters are not allowed in XML 1.0 at all.
        out += static_cast<unsigned char>(c) < 0x20 && c != '\n' && c != '\t' ? '?' : c;
    }
  }
  return out;
}

std::string junit_xml(const std::string& suite, const std::vector<junit_case>& cases) {
  std::size_t failures = 0, skipped = 0;
  for (const junit_case& c : cases) failures += c.failure.empty() ? 0 : 1;
  for (const junit_case& c : cases) skipped += c.skipped.empty() ? 0 : 1;
  std::string out = "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites>\n  <testsuite name=\"" + xml_escaped(suite) + "\" tests=\"" +
                    std::to_string(cases.size()) + "\" failures=\"" + std::to_string(failures) + "\" skipped=\"" + std::to_string(skipped) + "\">\n";
  for (const junit_case& c : cases) {
    out += "    <testcase classname=\"" + xml_escaped(suite) + "\" name=\"" + xml_escaped(c.name) + "\">\n";
    if (!c.failure.empty()) out += "      <failure message=\"" + xml_escaped(c.failure) + "\"/>\n";
    if (!c.skipped.empty()) out += "      <skipped message=\"" + xml_escaped(c.skipped) + "\"/>\n";
    if (!c.output.empty()) out += "      <system-out>" + xml_escaped(c.output) + "</system-out>\n";
    out += "    </testcase>\n";
  }
  return out + "  </testsuite>\n</testsuites>\n";
}

}  // namespace

progress_line::progress_line(std::string stage) : stage_{std::move(stage)}, start_{std::chrono::steady_clock::now()}, last_{start_} {}

progress_line::~progress_line() {
  if (shown_) std::fprintf(stderr, "\r\033[K");
}

void progress_line::stage(const std::string& name) {
  if (name == stage_) return;
  stage_ = name;
  start_ = std::chrono::steady_clock::now();
}

void progress_line::update(double fraction) {
  static const bool terminal = isatty(STDERR_FILENO) != 0;
  const auto now = std::chrono::steady_clock::now();
  if (!terminal || now - last_ < std::chrono::milliseconds(200)) return;
  last_ = now;
  shown_ = true;
  const double spent = std::chrono::duration<double>(now - start_).count();
  std::fprintf(stderr, "\r\033[K%s  %.0f %%", stage_.c_str(), 100 * fraction);
  if (fraction > 0.02) std::fprintf(stderr, "  ETA %.0f s", std::ceil(spent * (1 - fraction) / fraction));
  std::fflush(stderr);
}

void say(const common_options& common, const std::string& text) {
  const bool stdout_taken = common.json == "-" || common.junit == "-" || common.markdown == "-";
  std::ostream& out = stdout_taken ? std::cerr : std::cout;
  out << text << std::flush;
  if (!out) throw format_error(std::string(stdout_taken ? "stderr" : "stdout") + ": could not be written");
}

void publish(const common_options& common, const output& out) {
  const auto cases = out.cases.empty() ? std::vector<junit_case>{{out.verb, "", out.text}} : out.cases;
  const std::pair<const std::string&, std::string> views[] = {
      {common.json, out.json},
      {common.junit, junit_xml("deltaproof " + out.verb, cases)},
      {common.markdown, out.markdown.empty() ? "```\n" + out.text + "```\n" : out.markdown}};
  int on_stdout = 0;
  for (const auto& [file, data] : views) on_stdout += file == "-" ? 1 : 0;
  if (on_stdout > 1) throw format_error("--json, --junit and --markdown: only one of them can be - (stdout)");
  for (const auto& [file, data] : views) {
    if (file.empty()) continue;
    if (file != "-") {
      write_file(file, data);
      continue;
    }
    std::cout << data << std::flush;
    if (!std::cout) throw format_error("stdout: could not be written");
  }
  say(common, out.text);
}

std::string command_line(const common_options& common) {
  std::string out = "deltaproof";
  for (const std::string& word : common.arguments) out += " " + shell_quoted(word);
  return out;
}

}  // namespace deltaproof::cli
