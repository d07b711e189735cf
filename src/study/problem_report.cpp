// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
#include "deltaproof/study/problem_report.hpp"

#include <algorithm>
#include <cmath>

#include "study/problem_report/parts.hpp"
#include "study/render.hpp"

namespace deltaproof {
namespace {

using namespace problem_report_detail;

std::size_t chunk_of(std::span<const named_result> results, std::size_t asked) {
  if (asked != 0) return asked;
  for (const named_result& r : results) {
    if (r.values.chunk_size) return *r.values.chunk_size;
  }
  return 64;
}

/// Whether a block of the page draws a frame that is not there.
bool lacks_data(const results& r, const toml::node& node) {
  const auto lacks = [&](const auto& key, const toml::node& value) {
    return key == "data" ? !r.frames.contains(value.value_or(std::string())) : lacks_data(r, value);
  };
  if (const auto* const table = node.as_table())
    return std::any_of(table->begin(), table->end(), [&](const auto& one) { return lacks(one.first.str(), one.second); });
  const auto* const array = node.as_array();
  return array != nullptr && std::any_of(array->begin(), array->end(), [&](const auto& one) { return lacks_data(r, one); });
}

/// The page without what these inputs do not have: a problem without gates, or without tokens.
detail::page page_for(const results& r) {
  detail::page words = detail::read_page("src/study/problem_report/page.md", detail::problem_report_page());
  const auto lacks = [&](const detail::page_block& b) {
    return lacks_data(r, b.toml) || (b.toml.contains("columns") && !b.toml.contains("data") && !r.frames.contains(b.id));
  };
  std::erase_if(words.findings, [&](const auto& f) { return !r.groups.contains(f.id); });
  std::erase_if(words.tables, lacks);
  std::erase_if(words.figures, lacks);
  return words;
}

/// Whether a logarithmic axis shows something of a panel.
bool is_drawable(const panel& p) {
  const auto shown = [&](double y) { return std::isfinite(y) && (y > 0 || p.y.scale == axis_scale::linear); };
  return std::ranges::any_of(p.curves, [&](const series& s) { return std::ranges::any_of(s.y, shown); });
}

}  // namespace

report report_on(const problem& p, const problem_identity& identity, std::span<const named_result> judged,
                 const problem_report_options& options) {
  subject of{p, {}, chunk_of(judged, options.chunk), options};
  const std::size_t sequences = p.sequences().size();
  for (std::size_t n = 0; n < sequences; ++n) {
    for (std::size_t h = 0; h < p.value_heads(); ++h) {
      options.run.progress("inputs", static_cast<double>(of.heads.size()) / static_cast<double>(sequences * p.value_heads()));
      of.heads.push_back({n, h, lower(p, n, h)});
    }
  }
  results numbers;
  numbers.values("sizes", {{"also", judged.empty() ? "none" : "results"},
                           {"block", block},
                           {"listed", listed},
                           {"heads", of.heads.size()},
                           {"shown", of.heads.size() > listed ? "first" : "all"},
                           {"fp16_largest", largest(fp16)},
                           {"tokens_in_chunk", std::max<std::size_t>(1, of.chunk / p.num_householder)}});
  numbers.parameters = {{"batch", p.batch()},
                        {"tokens", p.tokens()},
                        {"sequences", sequences},
                        {"key_heads", p.key_heads()},
                        {"value_heads", p.value_heads()},
                        {"key_dim", p.key_dim()},
                        {"value_dim", p.value_dim()},
                        {"chunk", of.chunk},
                        {"rule", name_of(p.rule)},
                        {"seed", options.judge.seed}};
  std::vector<finding> findings = add_results(of, judged, numbers);
  add_inputs(of, numbers);
  add_chunks(of, numbers);
  add_gates(of, numbers);
  add_memory(of, numbers);
  report r = detail::rendered(page_for(numbers), numbers);
  r.study = identity.name;
  r.command = identity.command;
  r.answer.clear();
  findings.insert(findings.end(), r.findings.begin(), r.findings.end());
  r.findings = std::move(findings);
  for (const finding& f : r.findings) {
    if (f.id != "forgetting") r.answer += (r.answer.empty() ? "" : " ") + f.statement;
  }
  for (figure& f : r.figures) {
    std::erase_if(f.panels, [](const panel& one) { return !is_drawable(one); });
  }
  std::erase_if(r.figures, [](const figure& f) { return f.panels.empty(); });
  validate(r);
  return r;
}

}  // namespace deltaproof
