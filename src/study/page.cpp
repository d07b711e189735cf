// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT

#include "study/page.hpp"

#include <algorithm>
#include <array>
#include <map>
#include <sstream>

#include "deltaproof/support/errors.hpp"
#include "study/toml_section.hpp"

namespace deltaproof::detail {
namespace {

std::string trimmed(std::string_view text) {
  const std::size_t first = text.find_first_not_of(" \t\r");
  if (first == std::string_view::npos) return {};
  return std::string(text.substr(first, text.find_last_not_of(" \t\r") + 1 - first));
}

bool starts(std::string_view text, std::string_view with) { return text.substr(0, with.size()) == with; }

void append(prose& to, const std::string& text, std::size_t line) {
  if (to.empty()) {
    to = {text, line};
  } else {
    // As many line ends as in the file, so that a place in the text has its line.
    to.text.append(line - to.line - static_cast<std::size_t>(std::count(to.text.begin(), to.text.end(), '\n')), '\n');
    to.text += text;
  }
}

/// Reads line by line: each line belongs to the piece of prose that is open.
class reader {
 public:
  explicit reader(page& into) : page_(into) {}

  void read(std::string_view text) {
    std::istringstream lines{std::string(text)};
    for (std::string line; std::getline(lines, line);) {
      ++line_;
      if (fence_) {
        inside_fence(line);
      } else if (starts(line, "```")) {
        open_fence(trimmed(std::string_view(line).substr(3)));
      } else {
        outside(line);
      }
    }
    if (fence_) page_fails(page_.file, fence_line_, "this block is not closed by ```");
    if (page_.question.empty()) page_fails(page_.file, 1, "the page has no question; begin with `# What is ...?`");
  }

 private:
  [[noreturn]] void fail(const std::string& what) const { page_fails(page_.file, line_, what); }

  void open_fence(const std::string& info) {
    std::istringstream words(info);
    std::string language;
    words >> language >> kind_ >> id_;
    if (language != "toml" || kind_.empty()) fail("a block begins with ```toml and its kind: table, figure, constants or words");
    fence_ = true;
    fence_line_ = line_;
    block_.clear();
    open_ = nullptr;
  }

  void inside_fence(const std::string& line) {
    if (!starts(line, "```")) {
      block_ += line + "\n";
      return;
    }
    fence_ = false;
    read_block(fence_line_ + 1);
    id_.clear();
    kind_.clear();
  }

  void read_block(std::size_t first) {
    toml::table root = toml_section::parsed(page_.file, block_, first);
    const toml_section block(page_.file, root, first, kind_ + (id_.empty() ? "" : " '" + id_ + "'"));
    if (kind_ == "table" || kind_ == "figure") {
      if (id_.empty()) page_fails(page_.file, fence_line_, "give this " + kind_ + " an id");
      (kind_ == "table" ? page_.tables : page_.figures).push_back({id_, first, std::move(root)});
    } else if (kind_ == "constants") {
      block.in_order([&](const auto& key, const toml::node& value) { page_.constants[key] = block.any_of(value, key); });
    } else if (kind_ == "words") {
      block.in_order([&](const auto& column, const toml::node& list) { page_.words[column] = block.words_of(list, column); });
    } else {
      page_fails(page_.file, fence_line_,
                 "there is no kind of block '" + kind_ + "'; the kinds are table, figure, constants, words");
    }
  }

  void outside(const std::string& line) {
    const std::string text = trimmed(line);
    if (starts(text, "<!--") && text.ends_with("-->")) return;
    if (starts(line, "### ")) return begin_finding(trimmed(std::string_view(line).substr(4)));
    if (starts(line, "## ")) return begin_section(trimmed(std::string_view(line).substr(3)));
    if (starts(line, "# ")) return begin_page(trimmed(std::string_view(line).substr(2)));
    if (text.empty()) {
      if (in_directive_) open_ = section_text();
      in_directive_ = false;
      return;
    }
    if (section_ == "What is not claimed") {
      if (starts(text, "- ")) {
        page_.not_claimed.push_back({text.substr(2), line_});
      } else if (page_.not_claimed.empty()) {
        fail("the section What is not claimed must be a list: begin each claim with `- `");
      } else {
        append(page_.not_claimed.back(), text, line_);
      }
      return;
    }
    if (begin_directive(text)) return;
    if (open_ == nullptr)
      fail("this text belongs to no finding, table or figure; write findings under `### id`, tables and figures in blocks");
    append(*open_, text, line_);
  }

  void begin_page(const std::string& question) {
    if (!page_.question.empty()) fail("a page has one question; sections begin with ##");
    page_.question = {question, line_};
    open_ = section_text();
  }

  void begin_section(const std::string& title) {
    constexpr std::array<std::string_view, 5> known{"Findings", "Tables", "Figures", "How it was done", "What is not claimed"};
    if (std::find(known.begin(), known.end(), title) == known.end()) {
      fail("no section '" + title + "'; there are Findings, Tables, Figures, How it was done, What is not claimed");
    }
    section_ = title;
    in_directive_ = false;
    open_ = section_text();
  }

  void begin_finding(const std::string& id) {
    if (section_ != "Findings") fail("a finding must stand in the section Findings");
    page_.findings.push_back({});
    page_.findings.back().id = id;
    page_.findings.back().line = line_;
    in_directive_ = false;
    open_ = section_text();
  }

  prose* section_text() {
    if (section_.empty()) return page_.question.empty() ? nullptr : &page_.answer;
    if (section_ == "How it was done") return &page_.method;
    if (section_ == "Findings" && !page_.findings.empty()) return &page_.findings.back().statement;
    return nullptr;
  }

  bool begin_directive(const std::string& text) {
    const std::size_t colon = text.find(':');
    if (colon == std::string::npos) return false;
    const std::string word = text.substr(0, colon);
    prose* to = nullptr;
    page_finding* const f = section_ == "Findings" && !page_.findings.empty() ? &page_.findings.back() : nullptr;
    if (word == "expect") {
      if (f == nullptr && !section_.empty())
        fail("write an expectation under the answer or a finding; in a block write expect = [\"...\"]");
      to = &(f != nullptr ? f->expects : page_.expects).emplace_back();
    } else if (f != nullptr) {
      to = word == "because"  ? &f->because
           : word == "spread" ? &f->spread
           : word == "replay" ? &f->replay
           : word == "values" ? &f->values
                              : nullptr;
      if (word == "theorem") to = &f->theorem.emplace();
    }
    if (to == nullptr) return false;
    if (!to->empty()) fail("'" + word + "' occurs twice");
    *to = {trimmed(text.substr(colon + 1)), line_};
    open_ = to;
    in_directive_ = true;
    return true;
  }

  page& page_;
  std::size_t line_ = 0, fence_line_ = 0;
  bool fence_ = false, in_directive_ = false;
  std::string section_, kind_, id_, block_;
  prose* open_ = nullptr;
};

void add(std::vector<prose>& all, const std::vector<prose>& more) { all.insert(all.end(), more.begin(), more.end()); }

/// What a reader reads of a block: texts under some keys, titles of columns and words.
void add_block(std::vector<prose>& all, const toml::node& node, std::string_view key, std::string_view above, std::size_t first) {
  constexpr std::array<std::string_view, 7> read{"title", "note", "caption", "alt", "label", "text", "missing"};
  if (const auto* const table = node.as_table()) {
    for (const auto& [inner, value] : *table) add_block(all, value, inner.str(), key, first);
  } else if (const auto* const array = node.as_array()) {
    for (const toml::node& one : *array) add_block(all, one, key, above, first);
  } else if (const auto* const text = node.as_string()) {
    if (above == "columns" || above == "words" || std::find(read.begin(), read.end(), key) != read.end())
      all.push_back({text->get(), first + node.source().begin.line - 1});
  }
}

}  // namespace

void page_fails(std::string_view file, std::size_t line, const std::string& what) {
  throw format_error(std::string(file) + ":" + std::to_string(line) + ": " + what);
}

page read_page(std::string_view file, std::string_view text) {
  page p;
  p.file = file;
  reader(p).read(text);
  return p;
}

std::vector<prose> page::texts() const {
  std::vector<prose> all{question, answer, method};
  for (const page_finding& f : findings) add(all, {f.statement, f.because, f.spread});
  for (const auto* const blocks : {&tables, &figures}) {
    for (const page_block& b : *blocks) add_block(all, b.toml, "", "", b.line);
  }
  add(all, not_claimed);
  for (const auto& [column, list] : words) {
    for (const auto& [from, to] : list) all.push_back(to);
  }
  std::multimap<std::size_t, prose> by_line;
  for (prose& one : all) {
    if (!one.empty()) by_line.emplace(one.line, std::move(one));
  }
  all.clear();
  for (auto& [line, one] : by_line) all.push_back(std::move(one));
  return all;
}

}  // namespace deltaproof::detail
