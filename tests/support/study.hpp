// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
//
// What the tests of studies share: a report for sections to fill, its findings by name, the same report with one value
// changed, and the two runs every study is given, on one and two threads and interrupted before it begins.
#pragma once

#include <gtest/gtest.h>

#include <atomic>
#include <string>
#include <string_view>

#include "deltaproof/kernel/read_file.hpp"
#include "deltaproof/number/errors.hpp"
#include "deltaproof/study/study.hpp"

namespace deltaproof::reports {

/// Lacks nothing but findings.
inline report empty(std::string_view study) {
  report r;
  r.study = study;
  r.question = "?";
  r.answer = "a";
  r.not_claimed = {"b"};
  return r;
}

/// Throws: domain_error naming a finding that is not there.
inline const finding& found(const report& r, std::string_view id) {
  for (const finding& f : r.findings) {
    if (f.id == id) return f;
  }
  throw domain_error("the report has no finding '" + std::string(id) + "'");
}
inline const cell& value(const report& r, std::string_view id, const std::string& key) { return found(r, id).values.at(key); }

inline void expect_value(const report& r, const char* id, const char* key, const cell& expected) {
  EXPECT_EQ(value(r, id, key), expected) << id << ' ' << key;
}

/// The same report with one value changed.
inline report with(report r, std::string_view id, const std::string& key, const cell& value) {
  for (finding& f : r.findings) {
    if (f.id == id) f.values.at(key) = value;
  }
  return r;
}

/// run(options) on one thread: a valid report, and the same one on two.
template <class Run>
report alike_on_two_threads(Run&& run) {
  run_options two;
  two.threads = 2;
  const report one = run(run_options{});
  EXPECT_NO_THROW(validate(one));
  EXPECT_EQ(to_json(one), to_json(run(two)));
  return one;
}

/// The report of a study as reports/ has it.
inline report committed(const std::string& study) {
  return report_from_json(read_file(std::string(DELTAPROOF_SOURCE_DIR) + "/reports/" + study + ".json", report_limit));
}

/// The report of a study that is stopped before it begins.
inline report interrupted(std::string_view study) {
  const std::atomic<bool> stop{true};
  run_options options;
  options.interrupted = &stop;
  return run_study(study_named(study), options);
}

}  // namespace deltaproof::reports
