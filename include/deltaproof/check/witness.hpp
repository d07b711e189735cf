// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
//
// Makes a failure small and keeps it: `smallest_failure` looks for one head of one sequence and the fewest leading tokens
// that are still refuted for the same first bad stage, `write_witness` puts that into a folder with all that judges it
// again, `replay` judges a recorded verdict once more and says what came out differently. A witness folder holds
// problem.safetensors, result.safetensors, plan.toml (where there is a plan), verdict.json and README.txt. It exists so that
// a failure can be sent to someone else.
#pragma once

#include <cstddef>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "deltaproof/check/check.hpp"
#include "deltaproof/files/slice.hpp"

namespace deltaproof {

/// How a result fails, as far as a smaller one must fail the same way.
struct failure {
  bool refuted = false;
  std::string first_bad;    ///< stage or tensor; empty: only the plan is inadequate
  bool inadequate = false;  ///< told apart only where nothing else is bad
};
[[nodiscard]] failure failure_of(const check_report& report);
/// Refuted for the same first bad stage.
[[nodiscard]] bool same_failure(const failure& a, const failure& b);

/// The head that a witness was cut from, by its numbers there. In its own files it is head 0 of sequence 0.
struct original_head {
  std::size_t batch = 0;
  std::size_t sequence = 0;
  std::size_t head = 0;
  std::size_t key_head = 0;  ///< that it reads
};
/// What is said of a witness, with the numbers of the original: "sequence 0, head 0" and the like.
[[nodiscard]] std::string renumbered(std::string text, const original_head& of);
/// The same of all that a report says and points at; to be shown, as its numbers are no longer those of the witness's tensors.
[[nodiscard]] check_report renumbered(check_report report, const original_head& of);

/// The problem and result that are left, and their verdict.
struct small_failure {
  std::optional<head_slice> at;  ///< of the given problem; nothing: all of it is kept
  original_head from;            ///< the same head, with all its numbers
  problem given;
  result gave;
  check_report report;
  std::size_t judged = 0;  ///< slices that were tried
  std::string says;        ///< one sentence: what is kept, and why no less
};

/// Called before each trial: how many were made, and of what.
using trial_progress = std::function<void(std::size_t, const head_slice&)>;

/// `found`: what check said of (p, r) under `options`, refuted. Heads are tried from the one the report points at, at most
/// `most_heads` of them; tokens by bisection over whole chunks, then inside the last. Throws: as check.
[[nodiscard]] small_failure smallest_failure(const problem& p, const result& r, const check_report& found,
                                             const check_options& options, std::size_t most_heads = 8,
                                             const trial_progress& progress = {});
/// The same without the assumption that fewer tokens fail less: from half of the tokens down to one, whatever can be left
/// off is. Every head is tried.
[[nodiscard]] small_failure shrunk(const problem& p, const result& r, const check_report& found, const check_options& options,
                                   const trial_progress& progress = {});

/// A preset or a file ending in .toml with its text. Throws: format_error if there is none.
[[nodiscard]] plan_source source_of(const std::string& plan);
/// The options a record states; its plans are parsed from their texts. Throws: as parse_plan.
[[nodiscard]] check_options options_of(const check_record& record);

/// Whether a witness folder holds a file of this name.
[[nodiscard]] bool is_witness_file(const std::string& name);
/// Throws: format_error if something is there that is neither an empty folder nor a witness.
void require_witness_place(const std::filesystem::path& folder);
/// Throws: format_error if something is there that is no empty folder: a witness found before is not lost to another.
void require_new_witness_place(const std::filesystem::path& folder);
/// Throws: format_error if no witness is there.
void require_witness(const std::filesystem::path& folder);
/// Verdict and README have the head numbers of the original. Writes the folder beside its place and moves it there; a witness
/// that was there is replaced. `whole`: the record and paths of the check that found the failure; `earlier`:
/// recorded_verdict::witness where that was a witness itself. Throws: format_error.
void write_witness(const std::filesystem::path& folder, const small_failure& kept, const check_identity& whole,
                   const std::string& earlier = {});

/// What a verdict.json says: enough to judge again.
struct recorded_verdict {
  std::filesystem::path file;
  std::string judged, reason, first_bad_stage, version;
  check_identity identity;          ///< with its record
  std::string witness;              ///< its `witness` object as JSON; empty: none
  std::optional<original_head> of;  ///< where it is a witness of one head of several
  std::string plan_sha256;          ///< of the witness's plan.toml; empty: none
};
/// Throws: format_error where the text is no verdict or lacks its options; `file` names it.
[[nodiscard]] recorded_verdict parse_verdict(std::string_view json, const std::filesystem::path& file);
/// Reads FILE, or DIR/verdict.json. Throws: format_error where it is no verdict or lacks its options.
[[nodiscard]] recorded_verdict read_verdict(const std::filesystem::path& where);

/// The verdict's own file and those that it names, as replay finds them. Throws: format_error if one is not there.
[[nodiscard]] std::vector<std::filesystem::path> files_of(const recorded_verdict& v);

struct replayed {
  recorded_verdict recorded;
  problem given;
  result gave;
  check_options options;  ///< as judged
  check_identity identity;
  check_report report;
  bool reproduced = false;
  std::vector<std::string> differences;  ///< empty where reproduced
};
/// Judges again with the recorded files, options and plans. `how`: threads, stop and progress alone are taken from it.
/// Throws: format_error naming each file that is missing or whose hash is not the recorded one; as check.
[[nodiscard]] replayed replay(const std::filesystem::path& where, const check_options& how, const std::string& version);

/// Schema deltaproof.replay/1.
[[nodiscard]] std::string to_json(const replayed& again);
[[nodiscard]] std::string to_text(const replayed& again);

}  // namespace deltaproof
