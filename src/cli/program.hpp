// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
//
// What the verbs of the program share: the common options, where their output goes, progress on a terminal, and the
// clock and signals that end long work early. Each verb is a row of verbs.hpp and one file that adds its options and hands
// back what to run. stdout is data, stderr is messages.
#pragma once

#include <CLI/CLI.hpp>
#include <atomic>
#include <charconv>
#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "cli/progress.hpp"
#include "cli/run_files.hpp"

namespace deltaproof::cli {

/// Options that every verb takes.
struct common_options {
  std::string json;  ///< file, "-" for stdout, empty for none
  std::string junit;
  std::string markdown;
  unsigned threads = 0;
  double max_seconds = 0;  ///< 0: no limit
  std::uint64_t seed = 1;
  bool seed_given = false;
  std::vector<std::string> arguments;  ///< the command line as given, for "reproduce"
  std::chrono::steady_clock::time_point began = std::chrono::steady_clock::now();
  run_files files;  ///< what the verb's options say is read and written
};

/// Refuses the empty word, which an unset variable of a shell leaves behind.
[[nodiscard]] inline CLI::Validator not_empty() {
  return {[](const std::string& word) {
            return std::string(word.empty() ? "is empty; give a value" : "");  // usage_error says where none may be given
          },
          ""};
}

/// A count as written, without the sign that an unsigned conversion would wrap.
[[nodiscard]] inline CLI::Validator whole_number() {
  return {[](const std::string& word) {
            if (word.empty() || word.find_first_not_of("0123456789") != std::string::npos)
              return "'" + word + "' is not a count; give an integer, 0 or more";
            std::uint64_t value = 0;
            const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), value);
            return error == std::errc{} ? std::string() : word + " is too large; give a smaller integer";
          },
          ""};
}

/// Exit codes beside those of a verdict.
inline constexpr int refuted_exit = 1;
inline constexpr int bad_usage = 2;
inline constexpr int interrupted_exit = 130;

/// Set by Ctrl-C and by the clock of --max-seconds; long work watches it.
[[nodiscard]] const std::atomic<bool>& stop_requested();
/// Whether it was Ctrl-C.
[[nodiscard]] bool was_interrupted();

/// Why work ended early: "interrupted", or "--max-seconds 5 ran out".
[[nodiscard]] std::string why_stopped(const common_options& common);

/// Writes the human text, as a terminal shows it best where it goes to one: to stdout, or to stderr where one of the views takes
/// stdout. `to_copy`: lines stay whole. Throws: format_error if it cannot be written.
void say(const common_options& common, const std::string& text, bool to_copy = false);

/// The command line, quoted for a shell.
[[nodiscard]] std::string command_line(const common_options& common);

/// One test case of a JUnit file; `failure` is empty where it passed, `skipped` says why it was not run, `error` why there is no
/// answer.
struct junit_case {
  std::string name;
  std::string failure;
  std::string output;  ///< the body of a failure or an error, else what the case printed
  std::string skipped = {};
  std::string error = {};
  std::optional<double> seconds = {};  ///< nothing: its share of the whole time
};

/// What a verb hands to its users. Markdown is the text in a code block, JUnit one passed case, unless given.
struct output {
  std::string verb;
  std::string text;
  std::string json;
  std::string markdown = {};
  std::vector<junit_case> cases = {};
  bool to_copy = false;  ///< the text is a file or a command: a terminal shows it as it is
};

/// Every view that was asked for, then the text. Markdown goes behind what its file holds already. A view that cannot be written
/// is said and remembered; the others, and the text, come all the same.
void publish(const common_options& common, const output& out);

/// Says on stderr that something asked for could not be written, and remembers it.
void lost_output(const std::string& why);
/// The verb's exit code; bad_usage where an output was lost, unless the verdict is refuted, which matters more.
[[nodiscard]] int exit_with_outputs(int code);

/// What a verb does once its options are parsed; gives the exit code.
using verb = std::function<int()>;

/// Why a build has neither `study` nor `report`.
inline constexpr std::string_view without_studies =
    "not in this build: the program of the Python package has no studies, claims or reports; to get them, run ./run build in the "
    "source tree";

}  // namespace deltaproof::cli
