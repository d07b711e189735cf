// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
#include <charconv>

#include "deltaproof/support/write_file.hpp"
#include "deltaproof/sweep/sweep.hpp"

namespace deltaproof {
namespace {

std::optional<std::uint64_t> whole(std::string_view text) {
  std::uint64_t value = 0;
  const auto [end, bad] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (text.empty() || bad != std::errc{} || end != text.data() + text.size()) return {};
  return value;
}

using variables = std::function<const char*(const char*)>;

/// A whole number in a variable; nothing where it is not set. Throws: format_error where it holds anything else.
std::optional<std::uint64_t> number_in(const variables& variable, const std::string& name) {
  const char* const text = variable(name.c_str());
  if (text == nullptr || *text == '\0') return {};
  const auto value = whole(text);
  if (!value) throw format_error("sweep: " + name + "=" + in_quotes(text) + " is not a count; unset it, or give --shard I/N");
  return value;
}

sweep_shard valid(std::uint64_t index, std::uint64_t count, const std::string& from) {
  if (count == 0 || index >= count)
    throw format_error("sweep: " + from + " states part " + std::to_string(index) + " of " + std::to_string(count) +
                       " parts, numbered from 0: there is no such part; fix the variable, or give --shard I/N, I from 1 to N");
  return {index, count};
}

/// Bazel's runner asks for a sign that the shard is understood.
void say_understood(const variables& variable, const char* name) {
  const char* const file = variable(name);
  if (file != nullptr && *file != '\0') write_file(file, std::string_view());
}

}  // namespace

sweep_shard parse_shard(std::string_view text) {
  const std::size_t slash = text.find('/');
  const auto index = whole(text.substr(0, slash));
  const auto count = slash == std::string_view::npos ? std::nullopt : whole(text.substr(slash + 1));
  if (!index || !count || *index == 0 || *index > *count)
    throw format_error("sweep: --shard " + in_quotes(text) + " does not name a part; write 3/40 for the third of forty");
  return {*index - 1, *count};
}

std::optional<sweep_shard> shard_of_environment(std::optional<std::uint64_t> count, const variables& variable) {
  for (const std::string prefix : {"GTEST_", "TEST_"}) {
    const auto all = number_in(variable, prefix + "TOTAL_SHARDS");
    if (!all) continue;
    const auto index = number_in(variable, prefix + "SHARD_INDEX");
    if (!index)
      throw format_error("sweep: " + prefix + "TOTAL_SHARDS is set and " + prefix +
                         "SHARD_INDEX is not; set both, or give --shard I/N");
    say_understood(variable, (prefix + "SHARD_STATUS_FILE").c_str());
    return valid(*index, *all, prefix + "SHARD_INDEX");
  }
  if (const auto id = number_in(variable, "SLURM_ARRAY_TASK_ID")) {
    const auto least = number_in(variable, "SLURM_ARRAY_TASK_MIN"), most = number_in(variable, "SLURM_ARRAY_TASK_MAX");
    const std::uint64_t step = number_in(variable, "SLURM_ARRAY_TASK_STEP").value_or(1);
    const auto all = number_in(variable, "SLURM_ARRAY_TASK_COUNT");
    if (!least || !most || step == 0 || *id < *least || *most < *least || (*id - *least) % step != 0)
      throw format_error(
          "sweep: SLURM_ARRAY_TASK_ID is set, but SLURM_ARRAY_TASK_MIN, _MAX or _STEP is missing or does not fit it; give "
          "--shard I/N");
    const std::uint64_t steps = (*most - *least) / step + 1;
    // A list of ids has gaps: which of them this is, nobody says.
    if (all && *all != steps)
      throw format_error("sweep: the Slurm array has " + std::to_string(*all) + " tasks between " + std::to_string(*least) +
                         " and " + std::to_string(*most) + ", with gaps; use --array=1-N, or give --shard I/N");
    return valid((*id - *least) / step, steps, "SLURM_ARRAY_TASK_ID");
  }
  if (const auto index = number_in(variable, "JOB_COMPLETION_INDEX")) {
    if (!count)
      throw format_error(
          "sweep: JOB_COMPLETION_INDEX is set, but the number of parts is not known; give --shards N, with N the job's number of "
          "completions");
    if (*index >= *count)
      throw format_error("sweep: JOB_COMPLETION_INDEX is " + std::to_string(*index) + ", and --shards " + std::to_string(*count) +
                         " has no part of that number, counted from 0; give --shards the job's number of completions");
    return {{*index, *count}};
  }
  return {};
}

}  // namespace deltaproof
