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
      return "padding tokens, which cannot change the state, change no bit of o before them and none of final_state";
    case invariant_kind::split:
      return "several calls that hand the state on give what one call gives: each call is within its own limits, and their "
             "joined outputs are within the limits of the one call";
    case invariant_kind::varlen:
      return "packed sequences and the same sequences alone are each within the limits of their plan, against the same reference";
    case invariant_kind::chunk_size:
      return "results in chunks of any length are each within the limits of their plan, against the same reference";
    case invariant_kind::path:
      return "the chunk path and the recurrent path are each within the limits of their plan, against the same reference";
    case invariant_kind::repeat:
      return "the same call again gives the same bits of o, final_state and gradients";
    case invariant_kind::batch:
      return "a sequence gives the same bits alone, at another index and beside other sequences, or each result is within the "
             "limits of its plan, against the same reference";
    case invariant_kind::snapshot:
      return "a state that was stored and restored is judged as the final_state of the tokens before it: it, and the outputs "
             "computed from it, are within the limits";
    case invariant_kind::rollback:
      return "drafted tokens that were rejected leave no trace: the state after the accepted ones, and everything computed from "
             "it, is within the limits";
    case invariant_kind::flush:
      return "a ring of u, k and g that is replayed every L tokens gives what plain decode gives: bit for bit at L = 1, and at "
             "any L as close to the exact outputs as its formats allow";
    case invariant_kind::cp:
      return "ranks that each take some tokens of a sequence give what one call gives, and the state that a rank starts from "
             "follows from the rank_transition and rank_state of the ranks before it";
    case invariant_kind::gradients:
      return "gradients, outputs and inputs satisfy the equations that every correct backward pass satisfies";
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

/// The theorem that an identity of gradients follows from, by its name in the index of proofs/README.md.
std::string_view theorem_of(std::string_view identity) {
  if (identity == "I1") return "algebra.adjoint.reads_agree";
  if (identity == "I2") return "algebra.gradient_chain.rule_writes_agree";
  if (identity == "I3") return "algebra.adjoint_run.run_log_decays";
  if (identity == "I4") return "algebra.adjoint.run_sums";
  if (identity == "I4M") return "algebra.adjoint.run_value_sums";
  return "algebra.gradient_chain.rule_key_sums";
}

json identities_json(const gradient_identities& g) {
  json j{{"identities", json::array()}, {"visible_errors", json::object()}, {"blind", g.blind}};
  for (const identity_report& i : g.identities) {
    json one{{"name", i.name}, {"statement", i.statement}, {"missing", i.missing.empty() ? json(nullptr) : json(i.missing)}};
    one["because"] = theorem_of(i.name);
    one["verdict"] = i.missing.empty() ? json(name_of(i.judged)) : json(nullptr);
    one["equations"] = i.equations;
    one["heads"] = i.heads;
    one["blind_heads"] = i.blind_heads;
    one["residual"] = detail::json_number(i.residual);
    one["rounding_of_the_tensors"] = detail::json_number(i.rounding);
    one["inputs_rounded_once_more"] = detail::json_number(i.expected);
    one["limit"] = detail::json_number(i.limit);
    one["worst"] = nullptr;
    if (i.worst) {
      one["worst"] = {{"sequence", i.worst->sequence},
                      {"head", i.worst->head},
                      {"token", i.worst->token ? json(*i.worst->token) : json(nullptr)},
                      {"residual", detail::json_number(i.worst->residual)},
                      {"limit", detail::json_number(i.worst->limit)}};
    }
    j["identities"].push_back(one);
  }
  for (const auto& [name, error] : g.visible) j["visible_errors"][name] = detail::json_number(error);
  return j;
}

json equations_json(const std::vector<state_equation>& equations) {
  json list = json::array();
  for (const state_equation& e : equations) {
    json one{{"name", e.name}, {"statement", e.statement}, {"part", e.part + 1}};
    one["missing"] = e.missing.empty() ? json(nullptr) : json(e.missing);
    one["verdict"] = e.missing.empty() ? json(name_of(e.judged)) : json(nullptr);
    one["heads"] = e.heads;
    one["numbers"] = e.numbers;
    one["residual"] = detail::json_number(e.residual);
    one["formats_cost"] = detail::json_number(e.expected);
    one["limit"] = detail::json_number(e.limit);
    one["worst"] = nullptr;
    if (e.worst) {
      one["worst"] = {{"sequence", e.worst->sequence},
                      {"head", e.worst->head},
                      {"window", e.worst->window ? json(*e.worst->window) : json(nullptr)}};
    }
    list.push_back(one);
  }
  return list;
}

std::string equations_text(const std::vector<state_equation>& equations) {
  std::string out = detail::padded("equation", 13) + detail::padded("part", 6);
  for (const char* title : {"residual", "expected", "limit"}) out += detail::padded(title, 11);
  out +=
      "residual: by how much the stored tensors are off; expected: the error of a correct kernel with these formats; all are "
      "relative to the exact values\n";
  for (const state_equation& e : equations) {
    out += detail::padded(e.name, 13) + detail::padded(e.of_all_parts ? "all" : std::to_string(e.part + 1), 6);
    if (!e.missing.empty()) {
      out += "not checked: " + printable_line(e.missing) + "\n";
      continue;
    }
    for (const double x : {e.residual, e.expected, e.limit}) out += detail::padded(detail::scientific(x, 3), 11);
    out += (e.judged == verdict::refuted ? "refuted: " : "") + e.statement + "\n";
  }
  return out;
}

std::string identities_text(const gradient_identities& g) {
  std::string out = detail::padded("identity", 13);
  for (const char* title : {"residual", "rounding", "expected", "limit"}) out += detail::padded(title, 11);
  out += "equation, and where the residual is largest beside its limit\n";
  for (const identity_report& i : g.identities) {
    out += detail::padded(i.name, 13);
    if (!i.missing.empty()) {
      out += "not checked: " + i.missing + "; " + i.statement + "\n";
      continue;
    }
    for (const double x : {i.residual, i.rounding, i.expected, i.limit}) out += detail::padded(detail::scientific(x, 3), 11);
    out += (i.judged == verdict::refuted ? "refuted: " : "") + i.statement;
    if (i.worst) {
      out += "; worst: seq " + std::to_string(i.worst->sequence) + (i.by_key_head ? " key head " : " head ") +
             std::to_string(i.worst->head) + (i.worst->token ? " token " + std::to_string(*i.worst->token) : "") +
             (i.worst->equation.empty() ? "" : ", " + i.worst->equation);
    }
    out += "\n";
  }
  out +=
      detail::padded("", 13) +
      "residual: by how much the two sides differ; rounding: the difference that rounding the stored tensors explains; "
      "expected: that and one more rounding of the inputs; limit: 8 times expected (for one token 32 times), or --accuracy; all "
      "are relative to the rms of the terms; h0, dh0: initial_state, dinitial_state; S_T, dS_T: final_state, dfinal_state\n";
  std::string seen;
  for (const auto& [name, error] : g.visible) {
    if (error < 1) seen += (seen.empty() ? "" : ", ") + name + " " + detail::general(error, 2);
  }
  if (!g.stopped)
    out += detail::padded("detects", 13) +
           (seen.empty() ? std::string("nothing on these inputs") : "relative errors of at least: " + seen) + "\n";
  for (const std::string& line : g.blind) out += detail::padded("not detected", 13) + printable_line(line) + "\n";
  return out;
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
  if (!report.equations.empty()) j["equations"] = equations_json(report.equations);
  if (report.gradients) j["gradients"] = identities_json(*report.gradients);
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
    line("bits", c.tensor + ": " +
                     (c.first ? std::to_string(c.differing) + " of " + std::to_string(c.elements) + " elements differ" +
                                    invariant_detail::by_up_to(c) + "; the first at " + invariant_detail::describe(c)
                              : "all " + std::to_string(c.elements) + " elements are the same"));
  }
  if (report.gradients) out += identities_text(*report.gradients);
  if (!report.equations.empty()) out += equations_text(report.equations);
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

// Theorems behind this file, by their names in proofs/README.md.
// proved: algebra.adjoint.reads_agree, algebra.adjoint.run_value_sums, algebra.adjoint_run.run_log_decays,
// proved: algebra.gradient_chain.rule_writes_agree, algebra.gradient_chain.rule_key_sums
