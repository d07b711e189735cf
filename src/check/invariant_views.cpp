// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
#include <nlohmann/json.hpp>

#include "check/invariant_parts.hpp"
#include "deltaproof/check/invariant.hpp"
#include "support/json_number.hpp"
#include "support/printable.hpp"
#include "support/text.hpp"

namespace deltaproof {
namespace {

using json = nlohmann::ordered_json;

std::string_view asks(invariant_kind kind) {
  switch (kind) {
    case invariant_kind::prefix:
      return "o of the first tokens has the same bits whatever follows them";
    case invariant_kind::pad:
      return "tokens that cannot change the state change no bit of o before them and none of final_state";
    case invariant_kind::split:
      return "calls that carry the state are one call: each within its budget, and all together within that of the whole";
    case invariant_kind::varlen:
      return "packed sequences and the same sequences alone are within the budget of one oracle";
    case invariant_kind::chunk_size:
      return "results in chunks of any length are within the budget of one oracle";
  }
  return "";
}

using detail::printable_line;

json run_json(const recorded_run& run) {
  const result& r = run.gave;
  return {{"problem", {{"path", run.problem_path}, {"sha256", run.problem_sha256}}},
          {"result",
           {{"path", run.result_path},
            {"sha256", run.result_sha256},
            {"kernel", r.kernel},
            {"producer", r.producer},
            {"kernel_path", name_of(path_of(r))},
            {"chunk_size", r.chunk_size ? json(*r.chunk_size) : json(nullptr)}}},
          {"tokens", run.given.batch() * run.given.tokens()}};
}

json bits_json(const bit_comparison& c) {
  json j{{"tensor", c.tensor},
         {"elements", c.elements},
         {"differing", c.differing},
         {"largest_difference", detail::json_number(c.largest)},
         {"other_format", c.other_format},
         {"first", nullptr}};
  if (c.first) {
    const bit_difference& d = *c.first;
    j["first"] = {{"part", d.part + 1},
                  {"sequence", d.sequence},
                  {"head", d.head},
                  {"token", d.token ? json(*d.token) : json(nullptr)},
                  {"element", d.element.size() == 1 ? json(d.element[0]) : json(d.element)},
                  {"whole", {{"bits", d.whole_bits}, {"value", detail::json_number(d.whole_value)}}},
                  {"in_part", {{"bits", d.part_bits}, {"value", detail::json_number(d.part_value)}}}};
  }
  return j;
}

json judged_json(const judged_run& run) {
  const check_report& c = run.report;
  json j{{"what", run.what},
         {"parts", run.parts},
         {"verdict", name_of(c.judged)},
         {"reason", c.reason},
         {"remedy", c.remedy.empty() ? json(nullptr) : json(c.remedy)}};
  j["plan"] = c.conformance ? json(c.conformance->plan) : json(nullptr);
  j["false_alarm"] = c.conformance ? json(c.conformance->false_alarm) : json(nullptr);
  j["first_bad_stage"] =
      c.conformance && !c.conformance->first_bad_stage.empty() ? json(c.conformance->first_bad_stage) : json(nullptr);
  j["diagnosis"] = json::array();
  if (c.conformance) {
    for (const suspect& s : c.conformance->suspects) {
      if (!s.is_alike()) continue;
      j["diagnosis"].push_back({{"fault", s.planted->name}, {"score", detail::json_number(s.score)}, {"what", s.planted->what}});
    }
  }
  j["tensors"] = json::array();
  for (const tensor_report& t : c.tensors) {
    const bool measured = t.errors.elements > t.errors.unknown;
    j["tensors"].push_back({{"name", t.name},
                            {"verdict", name_of(t.judged)},
                            {"max_abs", measured ? detail::json_number(t.errors.max_abs.value) : json(nullptr)},
                            {"rel_fro", measured ? detail::json_number(t.errors.rel_fro.value) : json(nullptr)},
                            {"radius", detail::json_number(t.errors.radius)},
                            {"nonfinite", t.errors.nonfinite}});
  }
  return j;
}

std::string run_text(const recorded_run& run) {
  const result& r = run.gave;
  return run.result_path + ": " + std::to_string(run.given.batch() * run.given.tokens()) + " tokens, " +
         (r.kernel.empty() ? "kernel not stated" : r.kernel) + " (" + std::string(name_of(path_of(r))) +
         (r.chunk_size ? ", chunks of " + std::to_string(*r.chunk_size) : "") + ")";
}

}  // namespace

std::string to_json(const invariant_report& report, const recorded_run& whole, std::span<const recorded_run> parts,
                    const check_identity& identity) {
  json j{{"schema", "deltaproof.invariant/1"},
         {"invariant", name_of(report.kind)},
         {"asks", asks(report.kind)},
         {"verdict", name_of(report.judged)},
         {"reason", report.reason}};
  j["remedy"] = report.remedy.empty() ? json(nullptr) : json(report.remedy);
  j["bits"] = json::array();
  for (const bit_comparison& c : report.bits) j["bits"].push_back(bits_json(c));
  j["judged"] = json::array();
  for (const judged_run& run : report.runs) j["judged"].push_back(judged_json(run));
  j["whole"] = run_json(whole);
  j["parts"] = json::array();
  for (const recorded_run& part : parts) j["parts"].push_back(run_json(part));
  j["notes"] = identity.notes;
  for (const std::string& note : report.notes) j["notes"].push_back(note);
  j["version"] = identity.version;
  j["reproduce"] = identity.reproduce;
  return j.dump(2, ' ', false, json::error_handler_t::replace) + "\n";
}

std::string to_text(const invariant_report& report, const recorded_run& whole, std::span<const recorded_run> parts,
                    const check_identity& identity) {
  std::string out;
  const auto line = [&](const std::string& label, const std::string& text) {
    out += detail::padded(label, 13) + printable_line(text) + "\n";
  };
  line("verdict", std::string(name_of(report.judged)) + ": " + report.reason);
  if (!report.remedy.empty()) line("remedy", report.remedy);
  line("invariant", std::string(name_of(report.kind)) + ": " + std::string(asks(report.kind)));
  line("whole", run_text(whole));
  constexpr std::size_t shown = 3;
  for (std::size_t i = 0; i < parts.size() && i < shown; ++i) line("part " + std::to_string(i + 1), run_text(parts[i]));
  if (parts.size() > shown) line("", "and " + std::to_string(parts.size() - shown) + " more, the last " + run_text(parts.back()));
  for (const bit_comparison& c : report.bits) {
    if (c.elements == 0) continue;
    line("bits",
         c.tensor + ": " +
             (c.first ? std::to_string(c.differing) + " of " + std::to_string(c.elements) + " elements differ, by up to " +
                            detail::general(c.largest, 4) + "; the first at " + invariant_detail::describe(*c.first)
                      : "all " + std::to_string(c.elements) + " elements the same"));
  }
  for (const judged_run& run : report.runs) line(std::string(name_of(run.report.judged)), run.what + ": " + run.report.reason);
  constexpr std::size_t most_notes = 4;
  std::vector<std::string> notes = identity.notes;
  notes.insert(notes.end(), report.notes.begin(), report.notes.end());
  for (std::size_t i = 0; i < notes.size() && i < most_notes; ++i) line("note", notes[i]);
  if (notes.size() > most_notes) line("", "and " + std::to_string(notes.size() - most_notes) + " more notes, in the JSON");
  line("again", identity.reproduce);
  return out;
}

}  // namespace deltaproof
