// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT

#include <algorithm>
#include <fstream>
#include <sstream>
#include <utility>

#include "deltaproof/kernel/write_file.hpp"
#include "deltaproof/number/errors.hpp"
#include "deltaproof/study/report.hpp"
#include "study/markdown.hpp"

namespace deltaproof {
namespace {

namespace fs = std::filesystem;

void make_folder(const fs::path& directory) {
  std::error_code error;
  fs::create_directories(directory, error);
  if (error) throw format_error("cannot make the folder " + directory.string() + ": " + error.message());
}

std::string content_of(const fs::path& file) {
  std::ifstream in(file, std::ios::binary);
  std::ostringstream text;
  text << in.rdbuf();
  return std::move(text).str();
}

fs::path figure_file(const report& r, const figure& f) { return r.study + "-" + f.id + ".svg"; }

}  // namespace

void write_report(const report& r, const fs::path& directory) {
  validate(r);
  std::vector<std::pair<fs::path, std::string>> drawn;
  for (const figure& f : r.figures) drawn.emplace_back(figure_file(r, f), svg(f));
  make_folder(directory);
  std::vector<fs::path> former;
  const fs::path json_file = directory / (r.study + ".json");
  try {
    const report before = report_from_json(content_of(json_file));
    for (const figure& f : before.figures) former.push_back(figure_file(before, f));
  } catch (const format_error&) {
    // No report of ours there: nothing to tidy.
  }
  for (const auto& [name, text] : drawn) write_file(directory / name, text);
  write_file(directory / (r.study + ".md"), to_markdown(r));
  write_file(json_file, to_json(r));
  for (const fs::path& name : former) {
    const bool kept = std::any_of(drawn.begin(), drawn.end(), [&](const auto& d) { return d.first == name; });
    std::error_code ignored;
    if (!kept && name.filename() == name) fs::remove(directory / name, ignored);
  }
}

void write_index(const fs::path& directory) {
  make_folder(directory);
  std::vector<report> reports;
  for (const auto& entry : fs::directory_iterator(directory)) {
    if (entry.path().extension() != ".json") continue;
    try {
      reports.push_back(report_from_json(content_of(entry.path())));
    } catch (const format_error&) {
      // Some other JSON; the index lists reports only.
    }
  }
  std::sort(reports.begin(), reports.end(), [](const report& a, const report& b) { return a.study < b.study; });
  std::string out =
      "# Reports\n\nThe pages of this folder are the output of a program. Under each stands the command that makes it again; a\n"
      "study writes its page where `-o FOLDER` is added. Each finding says what kind of evidence stands behind it (proved,\n"
      "exhaustive, worst found, sampled, certified, measured) and each page ends with what is not claimed. The `.json` beside a\n"
      "page holds the same numbers in full precision.\n";
  if (fs::exists(directory / "claims.md")) out += "\nEvery claim of the source documents, with its verdict and evidence: [the ledger](claims.md).\n";
  for (const report& r : reports) {
    out += "\n## [" + detail::title_of(r) + "](" + r.study + ".md)\n\n**" + r.question + "**\n\n" + r.answer + "\n\n";
    if (!r.unfinished.empty())
      out += "Not complete: this run was interrupted or lacked input; the page says what is left out.\n\n";
    for (const figure& f : r.figures) out += "- [" + detail::escaped(f.title) + "](" + figure_file(r, f).string() + ")\n";
    if (!r.figures.empty()) out += "\n";
    out += "Made by `" + r.command + "`.\n";
  }
  if (reports.empty()) out += "\nNo report has been made yet.\n";
  write_file(directory / "README.md", out);
}

}  // namespace deltaproof
