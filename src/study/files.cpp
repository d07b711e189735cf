// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT

#include <algorithm>
#include <set>
#include <utility>

#include "deltaproof/study/report_files.hpp"
#include "deltaproof/support/errors.hpp"
#include "deltaproof/support/read_file.hpp"
#include "deltaproof/support/write_file.hpp"
#include "study/markdown.hpp"
#include "support/printable.hpp"

namespace deltaproof {
namespace {

namespace fs = std::filesystem;

std::string figure_file(const report& r, const figure& f) { return r.study + "-" + f.id + ".svg"; }

}  // namespace

named_files report_files(const report& r) {
  validate(r);
  named_files files;
  for (const figure& f : r.figures) files[figure_file(r, f)] = svg(f);
  files[r.study + ".md"] = to_markdown(r);
  files[r.study + ".json"] = to_json(r);
  return files;
}

std::string content_in(const fs::path& directory, const std::string& name, const named_files& fresh) {
  if (const auto found = fresh.find(name); found != fresh.end()) return found->second;
  std::error_code none;
  return fs::is_regular_file(directory / name, none) ? read_file(directory / name, report_limit) : std::string();
}

std::vector<report> reports_in(const fs::path& directory, const named_files& fresh) {
  std::set<std::string> names;
  for (const auto& [name, text] : fresh) names.insert(name);
  std::error_code none;
  for (fs::directory_iterator entry(directory, none), end; !none && entry != end; entry.increment(none)) {
    names.insert(entry->path().filename().string());
  }
  std::vector<report> reports;
  for (const std::string& name : names) {
    if (fs::path(name).extension() != ".json") continue;
    try {
      reports.push_back(report_from_json(content_in(directory, name, fresh)));
    } catch (const format_error&) {
      continue;  // some other JSON; only reports are listed
    }
  }
  std::sort(reports.begin(), reports.end(), [](const report& a, const report& b) { return a.study < b.study; });
  return reports;
}

void write_together(const fs::path& directory, const named_files& files) {
  std::error_code none;
  const bool made = !fs::exists(directory, none);
  make_folder(directory);
  std::set<std::string> former;
  for (const report& before : reports_in(directory)) {
    if (files.count(before.study + ".json") == 0) continue;
    for (const figure& f : before.figures) former.insert(figure_file(before, f));
  }
  try {
    file_batch batch;
    for (const auto& [name, text] : files) batch.add(directory / name, text);
    batch.finish();
  } catch (...) {
    if (made) fs::remove(directory, none);
    throw;
  }
  for (const std::string& name : former) {
    if (files.count(name) == 0 && fs::path(name).filename() == name) fs::remove(directory / name, none);
  }
}

void write_report(const report& r, const fs::path& directory) { write_together(directory, report_files(r)); }

std::string index_of(const fs::path& directory, const named_files& fresh) {
  const std::vector<report> reports = reports_in(directory, fresh);
  std::string out =
      "# Reports\n\nThe pages of this folder are the output of a program. Under each stands the command that makes it again;\n"
      "to write the page of a study, add `-o FOLDER`. Each finding says what kind of evidence stands behind it (proved,\n"
      "exhaustive, worst found, sampled, certified, measured) and each page ends with what is not claimed. The `.json` beside a\n"
      "page holds the same numbers in full precision.\n";
  if (fresh.count("claims.md") > 0 || fs::exists(directory / "claims.md")) {
    out +=
        "\nEach checkable claim of the texts that were examined (a blog post, a report of experiments, reading notes), with its\n"
        "verdict and evidence: [the ledger](claims.md).\n";
  }
  for (const report& r : reports) {
    out += "\n## [" + detail::title_of(r) + "](" + r.study + ".md)\n\n**" + r.question + "**\n\n" + r.answer + "\n\n";
    if (!r.unfinished.empty())
      out += "Not complete: this run was interrupted or lacked input; the page says what is left out.\n\n";
    for (const figure& f : r.figures) out += "- [" + detail::escaped(f.title) + "](" + figure_file(r, f) + ")\n";
    if (!r.figures.empty()) out += "\n";
    out += "Made by `" + r.command + "`.\n";
  }
  if (reports.empty()) out += "\nNo report has been made yet.\n";
  return detail::printable(out);
}

void write_index(const fs::path& directory) { write_together(directory, {{"README.md", index_of(directory)}}); }

}  // namespace deltaproof
