// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT

#include <unistd.h>
#if defined(__GLIBC__)
#include <malloc.h>
#endif

#include <algorithm>
#include <charconv>
#include <condition_variable>
#include <csignal>
#include <cstring>
#include <exception>
#include <iostream>
#include <mutex>
#include <new>
#include <sstream>
#include <system_error>
#include <thread>

#include "cli/numbers.hpp"
#include "cli/program.hpp"
#include "cli/terminal.hpp"
#include "cli/usage.hpp"
#include "cli/verbs.hpp"
#include "deltaproof/number/canary.hpp"
#include "deltaproof/oracle/lower.hpp"
#include "deltaproof/support/errors.hpp"
#include "support/mapped_bytes.hpp"
#include "support/parallel.hpp"
#include "support/printable.hpp"

namespace deltaproof::cli {
namespace {

std::atomic<bool> stop{false};
std::atomic<bool> interrupted{false};

extern "C" void on_interrupt(int) {
  // A second Ctrl-C does not wait for the work to notice the first.
  if (interrupted.exchange(true)) std::_Exit(interrupted_exit);
  stop = true;
}

/// A mapped file was cut short by somebody else: its pages are gone, and there is no going on.
extern "C" void on_bus_error(int, siginfo_t* info, void*) {
  const char* const file = detail::mapped_file_at(info->si_addr);
  if (file == nullptr) {
    std::signal(SIGBUS, SIG_DFL);  // not that: the instruction is tried again, and ends the program
    return;
  }
  for (const char* const part :
       {"deltaproof: ", file, ": was cut short while it was read; no output was written: run the same command again\n"}) {
    if (::write(STDERR_FILENO, part, std::strlen(part)) < 0) break;
  }
  std::_Exit(bad_usage);
}

/// A verdict makes and frees the same matrices thousands of times. By default the C library returns their pages to the operating
/// system each time and gets them back cleared, which costs a check of gradients much of its time.
void keep_freed_pages() {
#if defined(__GLIBC__)
  mallopt(M_MMAP_THRESHOLD, 32 << 20);
  mallopt(M_TRIM_THRESHOLD, 1 << 30);
#endif
}

void handle_signals() {
  // Calls that wait (for the reader of a pipe) are not begun again: Ctrl-C ends them.
  struct sigaction action{};
  action.sa_handler = on_interrupt;
  sigaction(SIGINT, &action, nullptr);
  sigaction(SIGTERM, &action, nullptr);
  struct sigaction bus{};
  bus.sa_sigaction = on_bus_error;
  bus.sa_flags = SA_SIGINFO;
  sigaction(SIGBUS, &bus, nullptr);
  // A file that may not grow further is an error of write, said with its name; the partial file goes.
  std::signal(SIGXFSZ, SIG_IGN);
}

/// Sets `stop` after --max-seconds, unless the work is done before.
class clock_guard {
 public:
  explicit clock_guard(double seconds) {
    if (seconds <= 0) return;
    try {
      thread_ = std::thread([this, seconds] {
        std::unique_lock lock(lock_);
        if (!done_.wait_for(lock, std::chrono::duration<double>(seconds), [this] { return finished_; })) stop = true;
      });
    } catch (const std::system_error& e) {
      throw environment_error("--max-seconds needs one more thread, which could not be started: " + e.code().message() +
                              "; leave --max-seconds out, or allow this process more threads");
    }
  }
  ~clock_guard() {
    {
      const std::lock_guard lock(lock_);
      finished_ = true;
    }
    done_.notify_all();
    if (thread_.joinable()) thread_.join();
  }
  clock_guard(const clock_guard&) = delete;
  clock_guard& operator=(const clock_guard&) = delete;

 private:
  std::mutex lock_;
  std::condition_variable done_;
  bool finished_ = false;
  std::thread thread_;
};

constexpr const char* version = "deltaproof " DELTAPROOF_VERSION;
constexpr const char* environment =
    "Environment: NO_COLOR=1: plain text on a terminal. DELTAPROOF_PROGRESS_SECONDS=N: seconds between progress lines where "
    "stderr "
    "is not a terminal (default 30; 0: no such lines).";

/// The oracle names the tensors that it refuses, not their file.
std::string with_file(const CLI::App& verb, const std::string& said) {
  for (const char* const name : {"PROBLEM", "FILE"}) {
    const CLI::Option* const file = verb.get_option_no_throw(name);
    if (file != nullptr && !file->empty()) return refusal_in(file->as<std::string>(), said);
  }
  return refusal_in("", said);
}

void add_common(CLI::App* command, const verb_row& row, common_options& common) {
  command->set_version_flag("--version", version);
  common.files.writes(command->add_option("--json", common.json, "Write JSON to FILE (- for stdout)")->type_name("FILE"));
  common.files.writes(command->add_option("--junit", common.junit, "Write JUnit XML to FILE")->type_name("FILE"));
  common.files.writes(command->add_option("--markdown", common.markdown, "Append Markdown to FILE")->type_name("FILE"));
  // Each process of a sweep has one thread.
  command
      ->add_option("--threads", common.threads,
                   (row.name == "sweep" ? "Processes" : "Threads") + std::string(" (0: one for each core)"))
      ->type_name("N")
      ->check(integer_within(0, most_threads));
  command->add_option("--max-seconds", common.max_seconds, "Stop after S seconds (0: no limit); " + std::string(row.when_stopped))
      ->type_name("S")
      ->check(number_within(0, 1e8));
  const auto take_seed = [&common](const std::string& text) {
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), common.seed);
    if (error != std::errc{} || end != text.data() + text.size())
      throw CLI::ValidationError("--seed " + text, "give an integer from 0 to 18446744073709551615");
    common.seed_given = true;
  };
  command->add_option_function<std::string>("--seed", take_seed, "Seed of every random number (" + std::string(row.seed) + ")")
      ->type_name("N")
      ->group(row.seed.empty() ? "" : "Options");
  const std::string own = command->get_footer();
  command->footer((own.empty() ? "" : own + "\n") + "Exit codes: " + std::string(row.exit_codes) + ", 130 interrupted.\n" +
                  environment);
}

void complain(const std::string& what) {
  std::cerr << fitted("deltaproof: " + detail::printable(what) + "\n", screen_of(STDERR_FILENO));
}

int run(int argc, char** argv) {
  require_sound_environment();
  CLI::App app{"deltaproof: judges whether kernels of delta-rule linear attention conform to their precision plans",
               "deltaproof"};
  app.set_version_flag("--version", version);
  app.formatter(help_formatter());
  app.require_subcommand(1);
  common_options common;
  for (int i = 1; i < argc; ++i) common.arguments.emplace_back(argv[i]);

  struct added_verb {
    CLI::App* command;
    verb run;
  };
  std::vector<added_verb> verbs;
  for (const verb_row& row : verb_table) {
    CLI::App* const command = app.add_subcommand(std::string(row.name), std::string(row.help));
    verbs.push_back({command, row.add(command, common)});
    add_common(command, row, common);
  }
  app.footer(
      "Exit codes of a verdict: 0 holds or measured, 1 refuted, 2 bad usage or input, 3 undecided or vacuous, 130 interrupted. "
      "Those of a command: deltaproof COMMAND --help.\n" +
      std::string(environment));
  if (argc > 1 && argv[1][0] != '-' &&
      std::none_of(verb_table.begin(), verb_table.end(), [&](const verb_row& row) { return row.name == argv[1]; })) {
    throw format_error("there is no command '" + std::string(argv[1]) + "'" + verb_suggestion(app, argv[1]));
  }
  try {
    app.parse(argc, argv);
  } catch (const CLI::Success& e) {
    std::ostringstream asked;  // --help, --version
    (void)app.exit(e, asked, asked);
    say({}, asked.str());
    return 0;
  } catch (const CLI::ParseError& e) {
    throw format_error(usage_error(app, e));
  }
  if ((common.json == "-") + (common.junit == "-") + (common.markdown == "-") > 1) {
    throw format_error("--json, --junit and --markdown: only one of them can be - (stdout)");
  }
  keep_freed_pages();
  handle_signals();
  common.files.require_apart();
  const clock_guard clock(common.max_seconds);
  for (const added_verb& v : verbs) {
    if (!v.command->parsed()) continue;
    const int code = [&v] {
      try {
        return v.run();
      } catch (const domain_error& e) {
        throw domain_error(with_file(*v.command, e.what()));
      }
    }();
    if (was_interrupted()) complain("interrupted");
    return was_interrupted() ? interrupted_exit : exit_with_outputs(code);
  }
  return bad_usage;
}

}  // namespace

const std::atomic<bool>& stop_requested() { return stop; }
bool was_interrupted() { return interrupted; }

/// The program, with a word for whatever ends it.
int start(int argc, char** argv) {
  try {
    return run(argc, argv);
  } catch (const std::bad_alloc&) {
    complain("out of memory; take a smaller problem or a machine with more");
  } catch (const std::exception& e) {
    complain(e.what());
  }
  return was_interrupted() ? interrupted_exit : bad_usage;
}

}  // namespace deltaproof::cli

int main(int argc, char** argv) { return deltaproof::cli::start(argc, argv); }
