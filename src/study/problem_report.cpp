// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
#include "deltaproof/study/problem_report.hpp"

#include "study/problem_report/parts.hpp"

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

const finding* found(const report& r, std::string_view id) {
  for (const finding& f : r.findings) {
    if (f.id == id) return &f;
  }
  return nullptr;
}

}  // namespace

report report_on(const problem& p, const problem_identity& identity, std::span<const named_result> results,
                 const problem_report_options& options) {
  subject of{p, identity, {}, chunk_of(results, options.chunk), options};
  const std::size_t sequences = p.sequences().size();
  for (std::size_t n = 0; n < sequences; ++n) {
    for (std::size_t h = 0; h < p.value_heads(); ++h) {
      options.run.progress("inputs", static_cast<double>(of.heads.size()) / static_cast<double>(sequences * p.value_heads()));
      of.heads.push_back({n, h, lower(p, n, h)});
    }
  }
  report r;
  r.study = identity.name;
  r.question = "What do these inputs demand of a kernel" + std::string(results.empty() ? "?" : ", and do these results meet it?");
  r.command = identity.command;
  const std::vector<std::string> verdicts = add_results(of, results, r);
  add_inputs(of, r);
  add_chunks(of, r);
  add_gates(of, r);
  add_memory(of, r);
  for (const std::string& v : verdicts) r.answer += v + " ";
  for (const char* id : {"steps", "chunk-inverses", "gate-factors"}) {
    if (const finding* f = found(r, id)) r.answer += f->statement + " ";
  }
  if (!r.answer.empty()) r.answer.pop_back();
  r.method =
      "Inputs are read exactly as they are in the file; then the problem's own activations and normalisation are applied. The "
      "numbers that describe the inputs are computed in fp64 and are estimates; whether a step is expansive is decided "
      "exactly where the inputs are exact. Errors are distances to the certified reference "
      "(`proofs/notes/oracle-radius.md`), verdicts those of `deltaproof check` with the same options.";
  r.not_claimed = {
      "Anything about other inputs: this is one file. Each verdict says which planted faults it could not show.",
      "The intermediates of an inverse are those of fp64 on these chunks: the rounding of another format is not included "
      "(`deltaproof inverse` includes it).",
      "The rate of forgetting is that of one random start over this many tokens, not the rate for ever more tokens.",
  };
  r.parameters = {{"batch", p.batch()},
                  {"tokens", p.tokens()},
                  {"sequences", sequences},
                  {"key_heads", p.key_heads()},
                  {"value_heads", p.value_heads()},
                  {"key_dim", p.key_dim()},
                  {"value_dim", p.value_dim()},
                  {"chunk", of.chunk},
                  {"rule", std::string(name_of(p.rule))},
                  {"seed", options.judge.seed}};
  validate(r);
  return r;
}

}  // namespace deltaproof
