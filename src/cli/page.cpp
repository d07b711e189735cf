// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
#include "cli/page.hpp"

#include <cmark.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cstdlib>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "deltaproof/study/claim.hpp"
#include "deltaproof/support/errors.hpp"
#include "support/printable.hpp"

namespace deltaproof::cli {
namespace {

constexpr std::string_view style = R"(
:root{color-scheme:light dark;--ink:#1c1f24;--soft:#565d68;--line:#d9dde3;--paper:#fff;--tint:#f3f5f8;--accent:#0f2cb1;--good:#00664f;--bad:#a02408;--open:#7a5600}
@media (prefers-color-scheme:dark){:root{--ink:#e6e9ee;--soft:#a3abb8;--line:#343a44;--paper:#15181d;--tint:#1d2128;--accent:#a3a1ff;--good:#59f09a;--bad:#ff8a5c;--open:#fad030}}
*{box-sizing:border-box}
body{margin:0 auto;max-width:68rem;padding:1rem 1.25rem 4rem;background:var(--paper);color:var(--ink);font:16px/1.55 system-ui,-apple-system,"Segoe UI",Roboto,"Noto Sans","DejaVu Sans",sans-serif}
h1{font-size:1.6rem;margin:1rem 0 .25rem}h2{font-size:1.3rem;margin:2.75rem 0 .5rem;padding-top:.75rem;border-top:1px solid var(--line)}h3{font-size:1rem;margin:1.5rem 0 .35rem}
p{margin:.35rem 0 .75rem}a{color:var(--accent)}code{font-family:ui-monospace,"DejaVu Sans Mono",monospace;font-size:.88em;background:var(--tint);padding:.05em .3em;border-radius:3px;overflow-wrap:anywhere}
.soft{color:var(--soft)}.question{color:var(--soft);margin:0}.answer{font-size:1.05rem}
.answers{list-style:none;padding:0;margin:1rem 0}.answers>li{padding:.75rem 0;border-top:1px solid var(--line)}
.findings{list-style:none;padding:0}.findings>li{margin:0 0 1rem;padding-left:.9rem;border-left:3px solid var(--line)}.findings p{margin:.1rem 0}
.kind{display:inline-block;font-size:.78rem;border:1px solid var(--line);border-radius:3px;padding:0 .4em;margin-right:.4em;color:var(--soft)}
.kind.v-refuted,.kind.v-fails_in_format,.kind.v-misprint,.kind.v-contradiction{color:var(--bad);border-color:currentColor}.kind.v-conditional,.kind.v-artefact{color:var(--open);border-color:currentColor}
.kind.proved,.kind.certified,.kind.exhaustive{color:var(--good);border-color:currentColor}
figure{margin:1.25rem 0}figure img{display:block;width:100%;max-width:60rem;height:auto}figcaption{color:var(--soft);font-size:.93rem;margin-top:.35rem}
.wide,pre{overflow-x:auto}table{border-collapse:collapse;font-size:.86rem;margin:.4rem 0}th,td{border-bottom:1px solid var(--line);padding:.28rem .6rem .28rem 0;text-align:left;vertical-align:top}th{color:var(--soft);font-weight:600}td.n,th.n{text-align:right;white-space:nowrap;font-variant-numeric:tabular-nums}
details{margin:.5rem 0}summary{cursor:pointer;color:var(--accent)}
.tally{display:flex;flex-wrap:wrap;gap:.4rem 1.4rem;padding:0;list-style:none}.tally b{font-variant-numeric:tabular-nums}
.v-holds{color:var(--good)}.v-refuted,.v-fails_in_format,.v-misprint,.v-contradiction{color:var(--bad)}.v-conditional,.v-artefact,.v-undecided,.v-vacuous{color:var(--open)}
.ledger td:first-child{max-width:12rem;overflow-wrap:anywhere}.ledger td{min-width:7rem}.ledger td.s{min-width:18rem}
@media (max-width:40rem){body{padding:.75rem .9rem 3rem}h1{font-size:1.35rem}.answer{font-size:1rem}}
)";

std::string escaped(std::string_view text) { return detail::markup_escaped(text); }

/// Blocks of CommonMark as HTML; raw HTML in it is left out.
std::string blocks(const std::string& markdown) {
  char* const html = cmark_markdown_to_html(markdown.data(), markdown.size(), CMARK_OPT_DEFAULT | CMARK_OPT_VALIDATE_UTF8);
  std::string out(html);
  std::free(html);  // NOLINT: cmark hands over memory of malloc
  return out;
}

/// One paragraph without its tags.
std::string line(const std::string& markdown) {
  std::string out = blocks(markdown);
  constexpr std::string_view open = "<p>", close = "</p>\n";
  if (out.starts_with(open) && out.ends_with(close) && out.find(open, 1) == std::string::npos)
    out = out.substr(open.size(), out.size() - open.size() - close.size());
  return out;
}

std::string base64(std::string_view bytes) {
  constexpr std::string_view digits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string out;
  for (std::size_t i = 0; i < bytes.size(); i += 3) {
    std::array<unsigned, 3> b{};
    const std::size_t n = std::min<std::size_t>(3, bytes.size() - i);
    for (std::size_t j = 0; j < n; ++j) b[j] = static_cast<unsigned char>(bytes[i + j]);
    const unsigned all = b[0] << 16 | b[1] << 8 | b[2];
    for (unsigned j = 0; j < 4; ++j) out += j <= n ? digits[all >> (18 - 6 * j) & 63U] : '=';
  }
  return out;
}

std::string title_of(const report& r) {
  std::string title = r.study;
  std::replace(title.begin(), title.end(), '-', ' ');
  if (!title.empty()) title[0] = static_cast<char>(std::toupper(static_cast<unsigned char>(title[0])));
  return title;
}

std::string spaced(std::string word) {
  std::replace(word.begin(), word.end(), '_', ' ');
  return word;
}

std::string evidence_text(const evidence& e) {
  std::string text = spaced(std::string(name_of(e.kind)));
  if (e.kind == evidence_kind::proved) text += e.theorem.empty() ? " on paper" : " by machine: " + e.theorem;
  if (e.n > 0) text += ", n = " + count(e.n);
  if (e.kind == evidence_kind::sampled || e.kind == evidence_kind::worst_found) text += ", seed " + std::to_string(e.seed);
  if (!e.spread.empty()) text += ", " + e.spread;
  return text;
}

std::string table_html(const table& t) {
  std::vector<bool> right;
  for (std::size_t c = 0; c < t.columns.size(); ++c) {
    right.push_back(std::any_of(t.rows.begin(), t.rows.end(), [c](const auto& row) { return row[c].is_number(); }));
  }
  std::string out = "<details><summary>" + escaped(t.title) + "</summary><div class=\"wide\"><table><thead><tr>";
  for (std::size_t c = 0; c < t.columns.size(); ++c)
    out += std::string("<th") + (right[c] ? " class=\"n\">" : ">") + escaped(t.columns[c].name) + "</th>";
  out += "</tr></thead><tbody>\n";
  for (const auto& row : t.rows) {
    out += "<tr>";
    for (std::size_t c = 0; c < row.size(); ++c)
      out += std::string("<td") + (right[c] ? " class=\"n\">" : ">") + escaped(row[c].text(t.columns[c].digits)) + "</td>";
    out += "</tr>\n";
  }
  out += "</tbody></table></div>";
  if (!t.note.empty()) out += "<p class=\"soft\">" + line(t.note) + "</p>";
  return out + "</details>\n";
}

std::string figure_html(const report& r, const figure& f, const std::filesystem::path& folder, const named_files& fresh) {
  const std::string svg = content_in(folder, r.study + "-" + f.id + ".svg", fresh);
  if (svg.empty()) return "<p class=\"soft\">The figure " + escaped(f.title) + " is not in this folder.</p>\n";
  // As an image: each figure keeps its own style sheet, which follows the reader's theme.
  return "<figure><h3>" + line(f.title) + "</h3><img loading=\"lazy\" alt=\"" + escaped(f.alt) +
         "\" src=\"data:image/svg+xml;base64," + base64(svg) + "\"><figcaption>" + line(f.caption) + "</figcaption></figure>\n";
}

std::string section(const report& r, const std::filesystem::path& folder, const named_files& fresh) {
  std::string out = "<section id=\"" + escaped(r.study) + "\"><h2>" + escaped(title_of(r)) + "</h2>\n<p class=\"question\">" +
                    line(r.question) + "</p>\n<p class=\"answer\">" + line(r.answer) + "</p>\n";
  for (const std::string& left : r.unfinished) out += "<p class=\"v-undecided\">Left out of this run: " + line(left) + "</p>\n";
  for (const figure& f : r.figures) out += figure_html(r, f, folder, fresh);
  out += "<h3>Findings</h3>\n<ul class=\"findings\">\n";
  for (const finding& f : r.findings) {
    out += "<li id=\"" + escaped(r.study + "." + f.id) + "\"><p>" + line(f.statement) +
           "</p><p class=\"soft\"><span class=\"kind " + std::string(name_of(f.kind.kind)) + "\">" +
           escaped(evidence_text(f.kind)) + "</span>" + line(f.because) + "</p><p class=\"soft\">Again: <code>" +
           escaped(f.replay.empty() ? r.command : f.replay) + "</code></p></li>\n";
  }
  out += "</ul>\n";
  if (!r.tables.empty()) out += "<h3>Tables</h3>\n";
  for (const table& t : r.tables) out += table_html(t);
  out += "<h3>How it was done</h3>\n" + blocks(r.method);
  std::string parameters;
  for (const auto& [name, value] : r.parameters) parameters += (parameters.empty() ? "" : ", ") + name + " = " + value.text(8);
  if (!parameters.empty()) out += "<p class=\"soft\">" + escaped(parameters) + "</p>\n";
  out += "<h3>What is not claimed</h3>\n<ul>\n";
  for (const std::string& sentence : r.not_claimed) out += "<li>" + line(sentence) + "</li>\n";
  return out + "</ul>\n<p class=\"soft\">Made by <code>" + escaped(r.command) + "</code>. In full precision: <a href=\"" +
         escaped(r.study) + ".json\">" + escaped(r.study) + ".json</a>; for readers of the repository: <a href=\"" +
         escaped(r.study) + ".md\">" + escaped(r.study) + ".md</a>.</p></section>\n";
}

/// A row of the ledger as the page shows it.
struct ledger_row {
  std::string id;
  std::string verdict;
  std::string statement;
  std::string conditions;
  std::string source;
  std::string evidence;
  bool first_to_read = false;  ///< shown before everything else
};

/// Every claim where the folder is that of the whole report; a page made again in it, of a study or of one's own tensors,
/// leaves the ledger where it was.
std::vector<ledger_row> ledger_of(const std::filesystem::path& folder, const named_files& fresh) {
  std::vector<ledger_row> rows;
  if (fresh.count("claims.md") == 0 && !std::filesystem::exists(folder / "claims.md")) return rows;
  for (const claim& c : claims()) {
    std::string evidence;
    for (const claim_evidence& e : c.evidence) evidence += (evidence.empty() ? "" : "; ") + title_of(e) + ": " + e.because;
    rows.push_back(
        {c.id, std::string(name_of(c.verdict)), c.statement, c.conditions, sentences_of(c), std::move(evidence),
         std::find(first_claims_to_read().begin(), first_claims_to_read().end(), c.id) != first_claims_to_read().end()});
  }
  return rows;
}

/// The claims a reader may not expect, each with its verdict and what it depends on.
std::string headlines_html(const std::vector<ledger_row>& ledger) {
  std::string out;
  for (const ledger_row& row : ledger) {
    if (!row.first_to_read) continue;
    out += "<li><p><span class=\"kind v-" + row.verdict + "\">" + spaced(row.verdict) + "</span><em>" + line(row.statement) +
           "</em></p><p class=\"soft\">" + line(row.conditions) + " <a href=\"#ledger\">" + escaped(row.id) + "</a></p></li>\n";
  }
  return out.empty() ? out
                     : "<h2>Claims to read first</h2>\n<p class=\"soft\">Others made these claims. The word before each is "
                       "our verdict. Conditional: true under the conditions named. Fails in format: true of real numbers, "
                       "not in the formats named. Artefact: the number has another cause than is said.</p>\n"
                       "<ul class=\"findings\">\n" +
                           out + "</ul>\n<h2>Answers</h2>\n";
}

std::string ledger_html(const std::vector<ledger_row>& ledger) {
  constexpr std::array<std::string_view, 8> order{"refuted",  "misprint",    "contradiction", "fails_in_format",
                                                  "artefact", "conditional", "holds",         "not_testable"};
  std::map<std::string, std::vector<const ledger_row*>, std::less<>> by_verdict;
  for (const ledger_row& row : ledger) by_verdict[row.verdict].push_back(&row);
  std::string out =
      "<section id=\"ledger\"><h2>The claims on trial</h2>\n<p>" + std::to_string(ledger.size()) +
      " claims, taken from the documents that <a href=\"claims.md\">claims.md</a> lists. Each claim is restated, and "
      "has a verdict. All but the not testable ones have evidence, which a test evaluates again.</p>\n<ul class=\"tally\">";
  for (const std::string_view v : order) {
    const auto found = by_verdict.find(v);
    if (found != by_verdict.end())
      out += "<li class=\"v-" + std::string(v) + "\"><b>" + std::to_string(found->second.size()) + "</b> " +
             spaced(std::string(v)) + "</li>";
  }
  out += "</ul>\n";
  for (const std::string_view v : order) {
    const auto found = by_verdict.find(v);
    if (found == by_verdict.end()) continue;
    out += "<details><summary><span class=\"v-" + std::string(v) + "\">" + spaced(std::string(v)) +
           "</span>: " + std::to_string(found->second.size()) +
           "</summary><div class=\"wide\"><table "
           "class=\"ledger\"><thead><tr><th>claim</th><th>restated</th><th>conditions</th><th>source</th><th>evidence</th></tr></"
           "thead><tbody>\n";
    for (const ledger_row* row : found->second) {
      out += "<tr id=\"claim." + escaped(row->id) + "\"><td><code>" + escaped(row->id) + "</code></td><td class=\"s\">" +
             line(row->statement) + "</td><td class=\"s\">" + line(row->conditions) + "</td><td>" + escaped(row->source) +
             "</td><td>" + escaped(row->evidence) + "</td></tr>\n";
    }
    out += "</tbody></table></div></details>\n";
  }
  return out +
         "<p class=\"soft\"><code>deltaproof list claims</code> lists all claims. <code>deltaproof explain ID</code> prints one "
         "claim and evaluates its evidence again.</p></section>\n";
}

}  // namespace

std::string page_of(const std::filesystem::path& folder, const named_files& fresh) {
  const std::vector<ledger_row> ledger = ledger_of(folder, fresh);
  const std::vector<report> reports = reports_in(folder, fresh);
  std::string out =
      "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><meta name=\"viewport\" "
      "content=\"width=device-width,initial-scale=1\"><title>deltaproof: stability report</title><style>" +
      std::string(style) +
      "</style></head><body>\n<header><h1>deltaproof: stability report</h1>\n<p class=\"soft\">Delta-rule linear attention in "
      "finite precision: what holds, what does not, and how each sentence was found. Claims of others come first, each with our "
      "verdict on it. Then each study has its findings: each states the kind of its evidence (proved, exhaustive, certified, "
      "sampled, worst found, measured) and the command that makes it again.</p></header>\n" +
      headlines_html(ledger) + "<ul class=\"answers\">\n";
  for (const report& r : reports) {
    out += "<li><p class=\"question\">" + line(r.question) + "</p><p class=\"answer\">" + line(r.answer) + " <a href=\"#" +
           escaped(r.study) + "\">" + escaped(title_of(r)) + "</a></p></li>\n";
  }
  if (reports.empty()) out += "<li>No report has been made yet.</li>\n";
  out += "</ul>\n";
  if (!ledger.empty()) out += ledger_html(ledger);
  for (const report& r : reports) out += section(r, folder, fresh);
  out += "</body></html>\n";
  return detail::printable(out);
}

bool is_report_file(std::string_view study, std::string_view name) {
  if (!name.starts_with(study)) return false;
  const std::string_view rest = name.substr(study.size());
  return rest == ".json" || rest == ".md" || (rest.starts_with("-") && rest.ends_with(".svg"));
}

}  // namespace deltaproof::cli
