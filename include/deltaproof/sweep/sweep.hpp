// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
//
// Runs a campaign's tasks and keeps their results in a folder. A result is one small file named by the task's key; it states its
// own length and hash, and it is the same bytes whoever made it, so that any number of processes and machines may fill one
// folder, twice or in any order. `run_sweep` runs what is missing of a shard in child processes: a task that ends its process
// costs no other one anything, and is tried three times. `work_off` is the loop of such a child.
//     DIR/campaign.json     the campaign: its text, its plan files, and the build
//     DIR/tasks/ab/KEY.json results
//     DIR/proposals.json    the points of a search so far, which are its tasks
//     DIR/tries/KEY.json    how runs of a task ended that left none
#pragma once

#include <atomic>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <iosfwd>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "deltaproof/sweep/campaign.hpp"

namespace deltaproof {

/// How often a task that ends its process is begun.
inline constexpr std::size_t most_tries = 3;

/// `payload`, one JSON value on one line, as a file that can tell whether it is whole: its length and hash stand before it.
[[nodiscard]] std::string sealed(std::string_view schema, std::string_view payload);
/// The payload; nothing where a byte is missing, added or changed.
[[nodiscard]] std::optional<std::string> unsealed(std::string_view schema, std::string_view text);

inline constexpr std::string_view task_schema = "deltaproof.task/1";
inline constexpr std::string_view tries_schema = "deltaproof.tries/1";
inline constexpr std::string_view proposals_schema = "deltaproof.proposals/1";
inline constexpr std::string_view campaign_schema = "deltaproof.campaign/1";

/// What a task gives: the payload of its result. State `judged`; `skipped` where the combination is no problem, or none of the
/// plan's; `failed` where files of a recording cannot be read or judged. A function of the task alone, apart from recordings.
/// Nothing where `stop` was set.
[[nodiscard]] std::optional<std::string> run_task(const campaign& c, const sweep_task& t,
                                                  const std::atomic<bool>* stop = nullptr);

/// Part `index` of `count`, from 0: every count-th task. Every task is in one of them.
struct sweep_shard {
  std::uint64_t index = 0, count = 1;
};
/// "3/40": the third of forty. Throws: format_error.
[[nodiscard]] sweep_shard parse_shard(std::string_view text);
/// What the environment says: GTEST_TOTAL_SHARDS and GTEST_SHARD_INDEX, TEST_TOTAL_SHARDS and TEST_SHARD_INDEX (Bazel), a Slurm
/// array, or JOB_COMPLETION_INDEX (a Kubernetes Indexed Job, which does not state how many there are: `count` of them).
/// Nothing where there is none of these. Throws: format_error where they contradict themselves.
[[nodiscard]] std::optional<sweep_shard> shard_of_environment(std::optional<std::uint64_t> count,
                                                              const std::function<const char*(const char*)>& variable);

/// A folder of results.
class sweep_folder {
 public:
  explicit sweep_folder(std::filesystem::path folder) : folder_{std::move(folder)} {}
  /// Writes the campaign where it is not there. Throws: format_error if another build's is.
  void open(const campaign& c) const;
  /// Throws: format_error if another build's campaign is there.
  void refuse_another_build(const campaign& c) const;
  /// The campaign whose results these are. Throws: format_error if it is not there, damaged or another build's.
  [[nodiscard]] campaign read(const std::string& build) const;

  /// Gives a search the points that were proposed in this folder. Throws: format_error where they are damaged, another build's
  /// or another campaign's.
  void take_proposals(campaign& c) const;
  void keep_proposals(const campaign& c) const;

  enum class state { missing, damaged, other_build, failed, done };
  /// What is there of a task; its payload too, where `payload` is asked for.
  [[nodiscard]] state look(const campaign& c, const std::string& key, std::string* payload = nullptr) const;
  void keep(const std::string& key, std::string_view payload) const;

  /// How tries ended that left no result.
  [[nodiscard]] std::vector<std::string> tries(const std::string& key) const;
  void add_try(const campaign& c, const sweep_task& t, const std::string& how) const;
  void forget_tries(const std::string& key) const;

  [[nodiscard]] std::filesystem::path file_of(const std::string& key) const;
  /// The keys of all files there, in no order.
  [[nodiscard]] std::vector<std::string> keys() const;
  [[nodiscard]] const std::filesystem::path& path() const { return folder_; }

 private:
  [[nodiscard]] std::filesystem::path tries_of(const std::string& key) const;
  std::filesystem::path folder_;
};

struct sweep_progress {
  std::uint64_t done = 0, all = 0, failed = 0, lost = 0;
};
struct sweep_options {
  sweep_shard shard;
  std::vector<std::uint64_t> only;  ///< indices; empty: all of the shard
  unsigned threads = 0;             ///< processes; 0: one for each core
  std::vector<std::string> worker;  ///< the program and its arguments; it must call work_off on stdin and stdout
  const std::atomic<bool>* stop = nullptr;
  std::function<void(const sweep_progress&)> progress = {};
};
struct sweep_outcome {
  std::uint64_t tasks = 0;    ///< of the shard
  std::uint64_t before = 0;   ///< whose results were there
  std::uint64_t ran = 0;      ///< now, with a result
  std::uint64_t damaged = 0;  ///< whose results were no longer whole: run again
  std::uint64_t failed = 0;   ///< of those run: judged nothing, and say why
  std::vector<sweep_task> lost;
  std::uint64_t left = 0;  ///< not run, or not even looked at, because it was stopped
};
/// Runs what is missing. Throws: format_error as sweep_folder::open and where workers do not start.
[[nodiscard]] sweep_outcome run_sweep(const campaign& c, const sweep_folder& folder, const sweep_options& options);

/// Gives the payload of a task's result, as run_task does.
using task_runner = std::function<std::optional<std::string>(const campaign&, const sweep_task&, const std::atomic<bool>*)>;

/// Says "ready", then for each line "INDEX KEY" of `in` runs that task, keeps its result and says "KEY state".
void work_off(const campaign& c, const sweep_folder& folder, std::istream& in, std::ostream& out,
              const std::atomic<bool>* stop = nullptr, const task_runner& runner = run_task);

/// The beginning of a payload: key, build, task, axes, what is expected, and the state "judged".
[[nodiscard]] std::string payload_head(const campaign& c, const sweep_task& t);

/// The commands that make this task's verdict again, on one line, in the campaign's folder.
[[nodiscard]] std::string command_of(const campaign& c, const sweep_task& t);

}  // namespace deltaproof
