// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
#include "deltaproof/check/invariant.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "check/check_parts.hpp"
#include "check/invariant_parts.hpp"
#include "check/state_equations.hpp"
#include "support/text.hpp"

namespace deltaproof {
namespace {

using namespace invariant_detail;

/// How many tokens the whole's sequences go on beyond the part's, at most. Throws: shape_error if a part is longer.
std::size_t require_shorter(const recorded_run& whole, const recorded_run& part) {
  require_sequences(whole, part);
  const auto w = whole.given.sequences(), p = part.given.sequences();
  std::size_t beyond = 0;
  for (std::size_t s = 0; s < w.size(); ++s) {
    if (p[s].tokens > w[s].tokens) {
      throw shape_error(part.problem_path + ": sequence " + std::to_string(s) + " has " + std::to_string(p[s].tokens) +
                        " tokens, more than the " + std::to_string(w[s].tokens) + " in " + whole.problem_path +
                        "; shorten the part, or give the longer run as the whole");
    }
    beyond = std::max(beyond, w[s].tokens - p[s].tokens);
  }
  return beyond;
}

/// prefix and pad: each sequence of each part beside the first tokens of the whole's.
void compare_first_tokens(invariant_kind kind, const recorded_run& whole, std::span<const recorded_run> parts,
                          invariant_report& out) {
  bit_comparison o{"o", 0, 0, 0, false, {}}, state{"final_state", 0, 0, 0, false, {}};
  std::size_t beyond = 0, shared = 0;
  const auto w = whole.given.sequences();
  for (std::size_t i = 0; i < parts.size(); ++i) {
    require_same_question(whole, parts[i]);
    require_same_kernel(whole, parts[i]);
    beyond = std::max(beyond, require_shorter(whole, parts[i]));
    const auto p = parts[i].given.sequences();
    for (std::size_t s = 0; s < w.size(); ++s) {
      const std::size_t from = flat_token(whole.given, w[s]), at = flat_token(parts[i].given, p[s]);
      require_same_state(whole, s, parts[i], s);
      require_same_tokens(whole, from, parts[i], at, p[s].tokens);
      if (kind == invariant_kind::pad) require_padding(whole, from + p[s].tokens, w[s].tokens - p[s].tokens);
      compare_o(o, whole, from, parts[i], at, p[s].tokens, i, s, 0);
      if (kind == invariant_kind::pad) compare_state(state, whole, s, parts[i], s, i);
      shared += p[s].tokens;
    }
  }
  out.bits.push_back(o);
  if (kind == invariant_kind::pad) out.bits.push_back(state);
  for (const bit_comparison& c : out.bits) {
    if (c.other_format)
      throw format_error(whole.result_path + ": " + c.tensor +
                         " has one format here and another in a part, so their bits cannot be compared; record " + c.tensor +
                         " in the same format in the whole and in every part");
    if (!c.first || out.judged == verdict::refuted) continue;
    out.judged = verdict::refuted;
    out.reason = c.tensor + " differs at " + describe(c) + "; " + std::to_string(c.differing) + " of " +
                 std::to_string(c.elements) + " elements differ" + by_up_to(c);
  }
  if (out.judged == verdict::refuted) {
    const bit_difference& d = out.bits.front().first ? *out.bits.front().first : *out.bits.back().first;
    const std::size_t C = whole.gave.chunk_size.value_or(0);
    // A kernel may read how long a partial chunk is; only there is that a reason. Chunks are of C rows of k, and where a token
    // has several rows some kernels make o of C tokens at a time: C tokens end both.
    if (path_of(whole.gave) == path_kind::chunk && C > 0) {
      const std::size_t tokens = sequence_at(parts[d.part].given, d.sequence).tokens;
      if (tokens % C != 0 && (!d.token || *d.token >= tokens / C * C)) {
        out.remedy =
            std::string(d.token ? "the first difference lies in the part's partial last chunk" : "the part ends inside a chunk") +
            ": end the part at a multiple of " + std::to_string(C) +
            " tokens to distinguish a leak of later tokens from different arithmetic in a partial chunk";
      }
    }
    return;
  }
  if (shared == 0 || beyond == 0) {
    out.judged = verdict::vacuous;
    out.reason = shared == 0 ? "the parts hold no token, so nothing was compared"
                             : "no part is shorter than the whole, so the test could not fail";
    out.remedy = shared == 0                   ? "give a part with at least one token"
                 : kind == invariant_kind::pad ? "append padding tokens to the problem of the whole, and record it again"
                                               : "give a part with fewer tokens than the whole";
    return;
  }
  if (kind == invariant_kind::pad && state.elements == 0) {
    out.judged = verdict::vacuous;
    std::string without = whole.gave.final_state ? "" : whole.result_path;
    for (const recorded_run& part : parts) {
      if (!part.gave.final_state) without += (without.empty() ? "" : ", ") + part.result_path;
    }
    out.reason =
        "o has the same bits with and without padding; whether padding changed the state is not known, because final_state is "
        "missing in " +
        without;
    out.remedy = "record these runs with final_state";
    return;
  }
  for (const bit_comparison& c : out.bits) {
    const std::string why = c.elements > 0 ? why_vacuous(c) : "";
    if (why.empty()) continue;
    out.judged = verdict::vacuous;
    out.reason = "no bit differs, but " + why;
    out.remedy = "record the runs on other inputs; a kernel whose outputs are like this on every input is wrong";
    return;
  }
  out.reason = "the bits are the same in all " + std::to_string(o.elements) + " elements of o" +
               (state.elements > 0 ? " and " + std::to_string(state.elements) + " of final_state" : "") +
               "; the whole goes on for up to " + std::to_string(beyond) + (kind == invariant_kind::pad ? " padding" : "") +
               (beyond == 1 ? " token" : " tokens") + " after a part ends";
}

void verify_split(const recorded_run& whole, std::span<const recorded_run> parts, notes_list& notes) {
  if (parts.size() < 2)
    throw format_error("invariant split: a split needs at least two parts, not " + std::to_string(parts.size()) +
                       "; give each with --part, or all with --parts-dir");
  const auto w = whole.given.sequences();
  std::vector<std::size_t> done(w.size(), 0);
  for (std::size_t i = 0; i < parts.size(); ++i) {
    require_same_question(whole, parts[i]);
    require_sequences(whole, parts[i]);
    if (i > 0) {
      require_carried(parts[i - 1], parts[i], notes);
    }
    const auto p = parts[i].given.sequences();
    for (std::size_t s = 0; s < w.size(); ++s) {
      if (done[s] + p[s].tokens > w[s].tokens) {
        throw shape_error(parts[i].problem_path + ": sequence " + std::to_string(s) + ": the parts up to this one hold " +
                          std::to_string(done[s] + p[s].tokens) + " tokens, but the whole, " + whole.problem_path +
                          ", has only " + std::to_string(w[s].tokens) +
                          "; give the whole run that these parts make up, or parts of this whole that do not overlap");
      }
      if (i == 0) require_same_state(whole, s, parts[i], s);
      require_same_tokens(whole, flat_token(whole.given, w[s]) + done[s], parts[i], flat_token(parts[i].given, p[s]),
                          p[s].tokens);
      done[s] += p[s].tokens;
    }
  }
  for (std::size_t s = 0; s < w.size(); ++s) {
    if (done[s] == w[s].tokens) continue;
    throw shape_error(whole.problem_path + ": sequence " + std::to_string(s) + " has " + std::to_string(w[s].tokens) +
                      " tokens and the parts together " + std::to_string(done[s]) +
                      "; give every part, in the order in which they ran");
  }
  if (!whole.gave.gradients.empty()) require_handed_back(whole, parts, notes);
}

void verify_and_compare_varlen(const recorded_run& whole, std::span<const recorded_run> parts, invariant_report& out) {
  const auto w = whole.given.sequences();
  if (w.size() != parts.size()) {
    throw shape_error("invariant varlen: " + std::to_string(parts.size()) + " parts and " + std::to_string(w.size()) +
                      " sequences in " + whole.problem_path + "; give one part for each sequence, in their order");
  }
  bit_comparison o{"o", 0, 0, 0, false, {}}, state{"final_state", 0, 0, 0, false, {}};
  for (std::size_t s = 0; s < w.size(); ++s) {
    require_same_question(whole, parts[s]);
    const auto p = parts[s].given.sequences();
    if (p.size() != 1 || p[0].tokens != w[s].tokens) {
      throw shape_error(parts[s].problem_path + ": " + part_name(s) + " must hold sequence " + std::to_string(s) + " of " +
                        whole.problem_path + " alone (" + std::to_string(w[s].tokens) + " tokens), but holds " +
                        std::to_string(p.size()) + (p.size() == 1 ? " sequence" : " sequences") + ", the first of " +
                        std::to_string(p.empty() ? 0 : p[0].tokens) +
                        " tokens; record that sequence alone, or put the parts in order");
    }
    require_same_state(whole, s, parts[s], 0);
    require_same_tokens(whole, flat_token(whole.given, w[s]), parts[s], 0, w[s].tokens);
    compare_o(o, whole, flat_token(whole.given, w[s]), parts[s], 0, w[s].tokens, s, s, 0);
    compare_state(state, whole, s, parts[s], 0, s);
  }
  out.bits = {o, state};
}

/// chunk-size and path: results of one problem.
void compare_results(invariant_kind kind, const recorded_run& whole, std::span<const recorded_run> parts, invariant_report& out) {
  bit_comparison o{"o", 0, 0, 0, false, {}}, state{"final_state", 0, 0, 0, false, {}};
  bool other = false;
  std::set<std::size_t> lengths;
  if (whole.gave.chunk_size) lengths.insert(*whole.gave.chunk_size);
  for (std::size_t i = 0; i < parts.size(); ++i) {
    require_same_question(whole, parts[i]);
    require_sequences(whole, parts[i]);
    const auto w = whole.given.sequences(), p = parts[i].given.sequences();
    for (std::size_t s = 0; s < w.size(); ++s) {
      if (w[s].tokens != p[s].tokens)
        throw shape_error(parts[i].problem_path + ": sequence " + std::to_string(s) + " has " + std::to_string(p[s].tokens) +
                          " tokens here, but " + std::to_string(w[s].tokens) + " in " + whole.problem_path + "; invariant " +
                          std::string(name_of(kind)) +
                          " compares results of one problem: run every one on the same problem file");
      const std::size_t from = flat_token(whole.given, w[s]), at = flat_token(parts[i].given, p[s]);
      require_same_state(whole, s, parts[i], s);
      require_same_tokens(whole, from, parts[i], at, w[s].tokens);
      compare_o(o, whole, from, parts[i], at, w[s].tokens, i, s, 0);
      compare_state(state, whole, s, parts[i], s, i);
    }
    other = other || (kind == invariant_kind::path && path_of(whole.gave) != path_of(parts[i].gave));
    if (parts[i].gave.chunk_size) lengths.insert(*parts[i].gave.chunk_size);
  }
  other = other || (kind == invariant_kind::chunk_size && lengths.size() > 1);
  if (!other && kind == invariant_kind::path) {
    throw format_error(whole.result_path + ": the path is " + std::string(name_of(path_of(whole.gave))) +
                       " in every result; invariant path compares the chunk path with the recurrent path: record a result of "
                       "each, and state its path in the metadata");
  }
  if (!other) {
    throw format_error(whole.result_path + ": " +
                       (lengths.empty()
                            ? "no result states chunk_size"
                            : "chunk_size is " + std::to_string(*lengths.begin()) + " in every result that states it") +
                       "; invariant chunk-size compares results of different chunk lengths: record them, and "
                       "state chunk_size in their metadata (invariant path compares the chunk path with the recurrent one)");
  }
  out.bits = {o, state};
}

std::vector<plan> plans_for(const recorded_run& run, const invariant_options& options) {
  if (options.no_plan) return {};
  const path_kind path = path_of(run.gave);
  const std::size_t chunk = run.gave.chunk_size.value_or(0);
  if (options.check.plans.empty()) {
    try {
      return plans_of(run.gave, run.given, "--plan", "or measure errors only with --no-plan");
    } catch (const format_error& e) {
      throw format_error(run.result_path + ": " + e.what());
    }
  }
  std::vector<plan> fitting;
  for (const plan& one : options.check.plans) {
    try {
      require_fit(one, run.given, path, chunk);
    } catch (const error&) {
      continue;
    }
    fitting.push_back(one);
  }
  if (fitting.empty()) {
    try {
      require_fit(options.check.plans.front(), run.given, path, chunk);
    } catch (const error& e) {
      throw format_error(run.result_path + ": " + e.what() + "; where results take different paths, give one --plan for each");
    }
  }
  return fitting;
}

/// Results that check may judge as one: what a plan looks at is the same.
std::string group_key(const recorded_run& run) {
  const result& r = run.gave;
  std::string key = r.kernel + "|" + std::string(name_of(path_of(r))) + "|" + std::to_string(r.chunk_size.value_or(0)) + "|" +
                    r.o.dtype() + "|" + (r.final_state ? r.final_state->dtype() : "") + "|" +
                    std::string(name_of(r.state_layout)) + "|" +
                    (run.given.initial_state ? run.given.initial_state->dtype() : "F32");
  for (const auto* list : {&r.stages, &r.backward_stages}) {
    for (const auto& [name, t] : *list) key += "|" + name + " " + t.dtype();
  }
  return key;
}

std::string listed(const std::vector<std::size_t>& indices) {
  std::string text = indices.size() == 1 ? "part " : "parts ";
  for (std::size_t i = 0; i < indices.size();) {
    std::size_t j = i;
    while (j + 1 < indices.size() && indices[j + 1] == indices[j] + 1) ++j;
    text += (i > 0 ? ", " : "") + std::to_string(indices[i] + 1) + (j > i ? "-" + std::to_string(indices[j] + 1) : "");
    i = j + 1;
  }
  return text;
}

std::vector<question_to_judge> questions(invariant_kind kind, const recorded_run& whole, std::span<const recorded_run> parts) {
  std::vector<question_to_judge> out;
  out.push_back({"the whole", 0, true, whole});
  std::map<std::string, std::vector<std::size_t>> groups;
  for (std::size_t i = 0; i < parts.size(); ++i) groups[group_key(parts[i])].push_back(i);
  std::vector<std::vector<std::size_t>> in_order;
  for (const auto& [key, members] : groups) in_order.push_back(members);
  std::sort(in_order.begin(), in_order.end());
  for (const std::vector<std::size_t>& members : in_order) {
    if (kind == invariant_kind::chunk_size || kind == invariant_kind::path) {
      for (const std::size_t i : members) out.push_back({part_name(i), 1, true, parts[i]});
      continue;
    }
    if (members.size() == 1) {
      out.push_back({part_name(members[0]), 1, false, parts[members[0]]});
      continue;
    }
    std::vector<const recorded_run*> list;
    for (const std::size_t i : members) list.push_back(&parts[i]);
    out.push_back({listed(members) + ", packed into one batch (its sequences are theirs in this order, counted from 0)",
                   members.size(), false, packed(list)});
  }
  if (kind == invariant_kind::split) {
    recorded_run together = whole;
    together.gave = concatenated(whole, parts);
    together.result_path = "the parts' outputs, concatenated";
    out.push_back({together.result_path + " and judged as the result of one call", parts.size(), true, std::move(together)});
  }
  return out;
}

void judge_runs(const std::vector<question_to_judge>& asked, const invariant_options& options, invariant_report& out) {
  check_options how = options.check;
  how.judge.sharing = asked.size();
  std::optional<verdict> judged;
  for (const question_to_judge& q : asked) {
    // Which faults would show is asked of the whole question: its cuts could show fewer, and that says nothing.
    how.judge.power = options.check.judge.power && (q.parts == 0 || q.against_whole);
    how.plans = plans_for(q.run, options);
    out.runs.push_back({q.what, q.parts, check_detail::judge(q.run.given, q.run.gave, how)});
    judged = judged ? combine(*judged, out.runs.back().report.judged) : out.runs.back().report.judged;
  }
  out.judged = *judged;
  for (const judged_run& run : out.runs) {
    if (run.report.judged != out.judged || out.judged == verdict::holds) continue;
    out.reason = out.judged == verdict::measured ? "no plan was used, so errors are measured and not judged"
                                                 : run.what + ": " + run.report.reason;
    out.remedy = run.report.remedy;
    break;
  }
  std::size_t elements = 0, differing = 0;
  for (const bit_comparison& c : out.bits) {
    elements += c.elements;
    differing += c.differing;
    if (c.other_format) out.notes.push_back(c.tensor + " has another format in some parts: its bits were not compared there");
  }
  if (out.judged == verdict::holds) {
    out.reason = "every result that a plan judges is within its limits; bits: " +
                 (differing == 0 ? "all " + std::to_string(elements) + " elements are the same"
                                 : std::to_string(differing) + " of " + std::to_string(elements) + " elements differ");
    for (const judged_run& run : out.runs) {
      if (const std::string left = not_judged_text(run.report); !left.empty())
        out.reason += "; not judged of " + run.what + ": " + left;
    }
  }
}

void judge_batches(const recorded_run& whole, std::span<const recorded_run> parts, const invariant_options& options,
                   invariant_report& out) {
  const std::vector<batch_match> matches = compare_batches(whole, parts, out);
  if (out.judged == verdict::vacuous) return;
  if (out.reason.empty()) judge_runs(questions(invariant_kind::batch, whole, parts), options, out);
  judge_batch_gradients(whole, parts, matches, options.check, out);
}

void require_outputs(const recorded_run& run) {
  if (!run.gave.has_outputs())
    throw format_error(run.result_path + ": tensor o is missing; this invariant compares outputs: record o");
}

void judge_identities(const recorded_run& whole, std::span<const recorded_run> parts, const invariant_options& options,
                      invariant_report& out) {
  if (!parts.empty()) throw format_error("invariant gradients judges one result: leave out --part and --parts-dir");
  try {
    out.gradients =
        check_gradient_identities(whole.given, whole.gave, {options.check.judge, options.check.threads, options.check.stop});
  } catch (const format_error& e) {
    throw format_error((whole.given.has_cotangents() ? whole.result_path : whole.problem_path) + ": " + e.what());
  }
  out.judged = out.gradients->judged;
  out.reason = out.gradients->reason;
  out.remedy = out.gradients->remedy;
}

}  // namespace

recorded_run read_run(const std::filesystem::path& problem, const std::filesystem::path& result, notes_list& notes) {
  recorded_run out;
  const safetensors_file given = read_safetensors(problem);
  out.given = parse_restored_problem(given, notes);
  out.problem_path = problem.string();
  out.problem_sha256 = sha256_hex(given.bytes());
  const safetensors_file gave = read_safetensors(result);
  out.gave = parse_result(gave, out.given, out.problem_sha256, notes);
  out.exchanged = parse_state_exchange(gave, out.given);
  out.result_path = result.string();
  out.result_sha256 = sha256_hex(gave.bytes());
  return out;
}

invariant_report check_invariant(invariant_kind kind, const recorded_run& whole, std::span<const recorded_run> parts,
                                 const invariant_options& options) {
  require_valid(options.check.judge, options.check.threads);
  invariant_report out;
  out.kind = kind;
  if (kind == invariant_kind::gradients) {
    (void)restored_nothing(whole, {}, out);
    judge_identities(whole, parts, options, out);
    return out;
  }
  if (parts.empty())
    throw format_error("invariant " + std::string(name_of(kind)) +
                       ": no part; give the whole with --whole and each part with --part");
  require_outputs(whole);
  for (const recorded_run& part : parts) require_outputs(part);
  if (restored_nothing(whole, parts, out)) return out;
  switch (kind) {
    case invariant_kind::prefix:
    case invariant_kind::pad:
      compare_first_tokens(kind, whole, parts, out);
      return out;
    case invariant_kind::repeat:
      compare_repeats(whole, parts, out);
      return out;
    case invariant_kind::split:
      verify_split(whole, parts, out.notes);
      out.bits = compare_in_turn(whole, parts);
      break;
    case invariant_kind::varlen:
      verify_and_compare_varlen(whole, parts, out);
      break;
    case invariant_kind::batch:
      judge_batches(whole, parts, options, out);
      return out;
    case invariant_kind::chunk_size:
    case invariant_kind::path:
      compare_results(kind, whole, parts, out);
      break;
    case invariant_kind::snapshot:
    case invariant_kind::rollback: {
      const auto asked = kept_parts(whole, parts, out);
      if (out.judged != verdict::vacuous) judge_runs(asked, options, out);
      return out;
    }
    case invariant_kind::flush: {
      const auto asked = compare_flushes(whole, parts, out);
      if (out.judged != verdict::refuted) judge_runs(asked, options, out);
      judge_flushes(whole, parts, options, out);
      return out;
    }
    case invariant_kind::cp: {
      judge_runs(compare_ranks(whole, parts, options, out), options, out);
      judge_ranks(whole, parts, options, plans_for(whole, options), out);
      return out;
    }
    case invariant_kind::gradients:
      break;
  }
  judge_runs(questions(kind, whole, parts), options, out);
  return out;
}

}  // namespace deltaproof
