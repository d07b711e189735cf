// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
#include <algorithm>
#include <nlohmann/json.hpp>

#include "deltaproof/sweep/merge.hpp"
#include "support/json_number.hpp"
#include "support/printable.hpp"
#include "support/text.hpp"

namespace deltaproof {
namespace {

using json = nlohmann::ordered_json;

json share_json(const std::optional<double>& share) { return share ? detail::json_number(*share) : json(nullptr); }

json json_of(const sweep_tally& t) {
  return {{"judged", t.judged()},       {"holds", t.holds},
          {"measured", t.measured},     {"vacuous", t.vacuous},
          {"undecided", t.undecided},   {"refuted", t.refuted},
          {"unexpected", t.unexpected}, {"skipped", t.skipped},
          {"failed", t.failed},         {"lost", t.lost},
          {"missing", t.missing},       {"worst_share", share_json(t.worst_share)}};
}

json json_of(const merged_case& c) {
  json j{{"task", c.line}, {"outcome", c.outcome}};
  if (c.outcome != "missing" && c.outcome != "lost" && c.outcome != "failed") {
    j["as_expected"] = c.as_expected;
    j["share"] = share_json(c.share);
  }
  return j;
}

json json_of(const std::vector<merged_detail>& list) {
  json out = json::array();
  for (const merged_detail& d : list) {
    json one = json_of(d.what);
    one["tensor"] = d.what.tensor.empty() ? json(nullptr) : json(d.what.tensor);
    one["norm"] = d.what.norm.empty() ? json(nullptr) : json(d.what.norm);
    one["key"] = d.key;
    one["reason"] = d.reason;
    one["command"] = d.command;
    out.push_back(std::move(one));
  }
  return out;
}

std::string counted(const sweep_report& r) {
  const sweep_tally& t = r.counts;
  std::string out = std::to_string(t.judged()) + " judged, " + std::to_string(t.judged() - t.unexpected) + " as expected";
  const auto add = [&out](std::uint64_t n, const char* what) {
    if (n > 0) out += ", " + std::to_string(n) + " " + what;
  };
  add(t.unexpected, "not as expected");
  add(t.skipped, "skipped (no such problem, or a plan or fault that does not fit it; their files below tasks/ say why)");
  add(t.failed, "failed (could not be judged)");
  add(t.lost, "lost");
  add(t.missing, "missing");
  add(r.other, "results of tasks that the campaign no longer has");
  return out;
}

std::string share_text(const std::optional<double>& share) { return share ? detail::general(*share, 3) : "-"; }

/// What the share of a case is of: a limit, or what a search makes large.
std::string share_phrase(const merged_case& c) {
  const std::string share = share_text(c.share);
  if (c.norm == name_of(search_goal::distance)) return c.tensor + " at the distance " + share;
  if (c.norm == name_of(search_goal::intermediate)) return c.tensor + " at " + share + " of its range";
  if (c.norm == name_of(search_goal::error))
    return "the plan's own error in " + c.tensor + " at " + share + " of what is allowed";
  if (c.norm == name_of(search_goal::limits)) return c.tensor + " at " + share + " of its limit";
  return c.tensor + " " + c.norm + " at " + share + " of its limit";
}

std::string line_of(const std::string& title, const merged_detail& d) {
  return detail::printable_line(d.what.line) + (d.what.outcome == title ? "" : ": " + d.what.outcome) +
         (d.what.as_expected ? "" : " (expected " + d.what.expected + ")") + (d.what.share ? ", " + share_phrase(d.what) : "") +
         "\n";
}

/// Of a search the shares are scores.
std::string largest_share(const sweep_report& r) {
  return r.kind == name_of(campaign_kind::search) ? "largest score" : "largest error/limit";
}

void list(std::string& out, const std::string& title, const std::vector<merged_detail>& details, std::size_t most) {
  for (std::size_t i = 0; i < std::min(details.size(), most); ++i) {
    out += detail::padded(title, 13) + line_of(title, details[i]) + "             " + detail::printable_line(details[i].reason) +
           "\n             by hand: " + detail::printable_line(details[i].command) + "\n";
  }
  if (details.size() > most) out += detail::padded(title, 13) + std::to_string(details.size() - most) + " more, in the JSON\n";
}

std::string cell(const std::string& text) { return "<td>" + detail::markup_escaped(text) + "</td>"; }

std::string html_table(const sweep_report& r) {
  std::string out;
  for (const auto& [name, values] : r.axes) {
    out += "<h2>By " + detail::markup_escaped(name) + "</h2>\n<table><tr><th>" + detail::markup_escaped(name) +
           "</th><th>holds</th><th>refuted</th><th>undecided</th><th>vacuous</th><th>measured</th><th>unexpected</th>"
           "<th>skipped</th><th>failed</th><th>lost</th><th>missing</th><th>" +
           largest_share(r) + "</th></tr>\n";
    for (const auto& [value, t] : values) {
      out += "<tr>" + cell(value);
      for (const std::uint64_t n :
           {t.holds, t.refuted, t.undecided, t.vacuous, t.measured, t.unexpected, t.skipped, t.failed, t.lost, t.missing})
        out += cell(n == 0 ? "" : std::to_string(n));
      out += cell(share_text(t.worst_share)) + "</tr>\n";
    }
    out += "</table>\n";
  }
  return out;
}

std::string html_list(const std::string& title, const std::vector<merged_detail>& details) {
  if (details.empty()) return "";
  std::string out = "<h2>" + title + "</h2>\n<ul>\n";
  for (const merged_detail& d : details) {
    out += "<li>" + detail::markup_escaped(line_of("", d)) + "<br>" + detail::markup_escaped(d.reason) + "<br><code>" +
           detail::markup_escaped(d.command) + "</code></li>\n";
  }
  return out + "</ul>\n";
}

}  // namespace

std::string to_json(const sweep_report& r) {
  json j{{"schema", "deltaproof.merge/1"},
         {"verdict", name_of(r.judged)},
         {"campaign", r.name},
         {"kind", r.kind},
         {"build", r.build},
         {"campaign_sha256", r.campaign_sha256},
         {"counts", json_of(r.counts)},
         {"results_of_other_tasks", r.other}};
  json axes = json::object();
  for (const auto& [name, values] : r.axes) {
    json rows = json::object();
    for (const auto& [value, tally] : values) rows[value] = json_of(tally);
    axes[name] = std::move(rows);
  }
  j["axes"] = std::move(axes);
  j["worst"] = json_of(r.worst);
  j["missing"] = json_of(r.missing);
  j["lost"] = json_of(r.lost);
  j["failed"] = json_of(r.failed);
  j["drift"] = r.drift_from ? json{{"file", *r.drift_from}, {"lines", r.drift}} : json(nullptr);
  json cases = json::array();
  for (const merged_case& c : r.cases) cases.push_back(json_of(c));
  j["cases"] = std::move(cases);
  return j.dump(1, ' ', false, json::error_handler_t::replace) + "\n";
}

std::string to_text(const sweep_report& r) {
  std::string out = "campaign     " + detail::printable_line(r.name) + " (" + r.kind + "), build " + r.build + "\n";
  for (const auto& [name, values] : r.axes) {
    for (const auto& [value, t] : values) {
      out += detail::padded(name, 13) + detail::padded(detail::printable_line(value), 24) + " " + std::to_string(t.holds) +
             " hold, " + std::to_string(t.refuted) + " refuted, " + std::to_string(t.judged() - t.holds - t.refuted) +
             " undecided, vacuous or measured, " + largest_share(r) + " " + share_text(t.worst_share);
      for (const auto& [count, what] :
           {std::pair(t.skipped, " skipped"), {t.failed, " failed"}, {t.lost, " lost"}, {t.missing, " missing"}}) {
        if (count > 0) out += ", " + std::to_string(count) + what;
      }
      out += "\n";
    }
  }
  constexpr std::size_t most = 5;
  list(out, "worst", r.worst, most);
  list(out, "failed", r.failed, most);
  list(out, "lost", r.lost, most);
  list(out, "missing", r.missing, most);
  for (const std::string& line : r.drift) out += "drift        " + detail::printable_line(line) + "\n";
  return out + "verdict      " + std::string(name_of(r.judged)) + ": " + counted(r) + "\n";
}

std::string to_html(const sweep_report& r) {
  std::string out =
      "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><meta name=\"viewport\" content=\"width=device-width\">"
      "<title>" +
      detail::markup_escaped(r.name) +
      "</title>\n<style>:root{color-scheme:light dark}body{margin:0 auto;max-width:70rem;"
      "padding:1rem;font:16px/1.5 "
      "system-ui,sans-serif}table{border-collapse:collapse;font-size:.88rem;display:block;overflow-x:auto}"
      "td,th{border-bottom:1px solid #8886;padding:.25rem .6rem;text-align:right}td:first-child,th:first-child{text-align:left}"
      "code{font-size:.85em;overflow-wrap:anywhere}li{margin:.6rem 0}</style></head><body>\n<h1>" +
      detail::markup_escaped(r.name) + ": " + std::string(name_of(r.judged)) + "</h1>\n<p>" + detail::markup_escaped(counted(r)) +
      "</p>\n<p>Kind " + r.kind + ", build <code>" + detail::markup_escaped(r.build) +
      "</code>. Run the commands below in the folder of the campaign file.</p>\n";
  out += html_list("Missing", r.missing) + html_list("Lost: the process ended without a verdict each time", r.lost) +
         html_list("Failed", r.failed);
  out += html_table(r) + html_list("Worst cases", r.worst);
  if (r.drift_from) {
    out += "<h2>Since an earlier merge</h2>\n<ul>\n";
    for (const std::string& line : r.drift) out += "<li>" + detail::markup_escaped(line) + "</li>\n";
    out += "</ul>\n";
  }
  return out + "</body></html>\n";
}

}  // namespace deltaproof
