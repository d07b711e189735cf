// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
//
// The one table of the program's verbs: name, help line, what --max-seconds leaves of its work, its default seed, its exit codes,
// and the function that adds its options. The command line, --help, completion and suggestions go through it. A new verb is a row
// here, the declaration of its function above the table, and src/cli/<name>.cpp.
#pragma once

#include <array>
#include <string_view>

#include "cli/program.hpp"

namespace deltaproof::cli {

verb add_check(CLI::App* command, common_options& common);
verb add_inspect(CLI::App* command, common_options& common);
verb add_oracle(CLI::App* command, common_options& common);
verb add_gen(CLI::App* command, common_options& common);
verb add_emulate(CLI::App* command, common_options& common);
verb add_invariant(CLI::App* command, common_options& common);
verb add_advise(CLI::App* command, common_options& common);
verb add_replay(CLI::App* command, common_options& common);
verb add_shrink(CLI::App* command, common_options& common);
verb add_inverse(CLI::App* command, common_options& common);
verb add_sweep(CLI::App* command, common_options& common);
verb add_merge(CLI::App* command, common_options& common);
verb add_study(CLI::App* command, common_options& common);
verb add_report(CLI::App* command, common_options& common);
verb add_list(CLI::App* command, common_options& common);
verb add_explain(CLI::App* command, common_options& common);
verb add_completion(CLI::App* command, common_options& common);

inline constexpr std::string_view not_judged_is_undecided = "whatever is not judged by then is undecided";
inline constexpr std::string_view no_effect = "no effect on this command";
inline constexpr std::string_view from_one = "default 1";
inline constexpr std::string_view of_a_verdict = "0 holds or measured, 1 refuted, 2 bad usage or input, 3 undecided or vacuous";
inline constexpr std::string_view of_no_verdict = "0 done, 2 bad usage or input",
                                  of_long_work = "0 done, 2 bad usage or input, 3 the time ran out";

struct verb_row {
  std::string_view name;
  std::string_view help;
  std::string_view when_stopped;  ///< what --max-seconds leaves of its work
  std::string_view seed;          ///< of --seed; empty: it is recorded or in a file, and the option is refused
  std::string_view exit_codes;
  verb (*add)(CLI::App* command, common_options& common);
};

inline constexpr auto verb_table = std::to_array<verb_row>({
    {"check", "Judge a kernel's result against its precision plan and the certified reference", not_judged_is_undecided, from_one,
     of_a_verdict, add_check},
    {"inspect", "List what a problem's inputs are like and what looks wrong", no_effect, no_effect, of_no_verdict, add_inspect},
    {"oracle", "Write the exact outputs or gradients of a problem, correctly rounded or to a given number of bits",
     "nothing is written then", no_effect,
     "0 every element is decided, 2 bad usage or input, 3 elements are undecided, or the time ran out", add_oracle},
    {"gen", "Generate a problem of a regime; options not given take the regime's defaults, which are printed",
     "no effect without --all; with --all, nothing is written if the time runs out", "default 0", of_long_work, add_gen},
    {"emulate", "Write a result that a kernel conforming to a plan may give, or one with a planted fault",
     "nothing is written then", from_one, of_long_work, add_emulate},
    {"invariant",
     "Judge results of one kernel against each other (prefix, split, pad, varlen, chunk-size, path, repeat, batch, snapshot, "
     "rollback, flush, cp), or the gradients of one result against the equations of every correct backward pass (gradients)",
     not_judged_is_undecided, from_one, of_a_verdict, add_invariant},
    {"advise", "Name the cheapest state cache, inverse, chunk length and stored decay that are adequate on a problem's tensors",
     "what was found by then is listed", no_effect, of_long_work, add_advise},
    {"replay", "Judge the result of a witness or of a stored verdict again, and say whether the verdict is the same",
     not_judged_is_undecided, "",
     "0 holds or measured, 1 refuted, 2 bad usage or input, or the verdict is not the same, 3 undecided or vacuous, or the time "
     "ran out",
     add_replay},
    {"shrink", "Make a witness smaller, in place: look for fewer tokens on which the first bad stage is the same",
     "the smallest witness found by then is written", "",
     "0 done, 2 bad usage or input, 3 the time ran out before the witness was judged once", add_shrink},
    {"inverse", "Say whether an algorithm for (I + L)^-1 is safe for given keys, beta and formats", "there is no verdict then",
     from_one, "0 safe, 1 unsafe, 2 bad usage or input, 3 the time ran out", add_inverse},
    {"sweep",
     "Run all tasks of a campaign, or one part of them, and keep each result in a folder; a task whose result is there is not "
     "run again",
     "what is finished is kept, and the same command runs the rest", "",
     "0 every task was run, 2 a task could not be judged, or bad usage or input, 3 tasks are lost or left to run", add_sweep},
    {"merge", "Join the results of a sweep into one report: counts by axis, the worst cases, and missing tasks", no_effect,
     no_effect,
     "0 every task is as expected, 1 one is not, 2 a task failed, or bad usage or input, 3 tasks are missing, lost or undecided",
     add_merge},
    {"study", "Run studies by name and print their answers", "finished studies are written, the others are listed", from_one,
     "0 done, 1 a study failed, 2 bad usage or input, 3 the time ran out", add_study},
    {"report",
     "Run the studies and write the stability report; or, for a PROBLEM and its RESULTs, write a page on your own tensors",
     "finished studies are written, the others are listed; with PROBLEM, nothing is written", from_one,
     "0 done, 1 a study failed, 2 bad usage or input, 3 the time ran out; with RESULT, those of the worst verdict: 1 refuted, 3 "
     "undecided or vacuous",
     add_report},
    {"list", "List all names of one kind (AXIS), for example plans, faults, regimes or formats", no_effect, no_effect,
     of_no_verdict, add_list},
    {"explain", "Explain anything that can be listed, by name", no_effect, no_effect, of_no_verdict, add_explain},
    {"completion", "Print a script that completes commands and options in a shell: source <(deltaproof completion bash)",
     no_effect, no_effect, of_no_verdict, add_completion},
});

}  // namespace deltaproof::cli
