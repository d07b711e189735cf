// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT

#include "deltaproof/study/study.hpp"

#include <algorithm>
#include <exception>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "deltaproof/number/errors.hpp"
#include "kernel/nearest_name.hpp"
#include "oracle/parallel.hpp"
#include "study/render.hpp"
#include "study/table.hpp"

namespace deltaproof {

std::span<const study* const> studies() {
  static const std::vector<const study*> sorted = [] {
    const auto table = detail::study_table();
    std::vector<const study*> result;
    for (const detail::study_entry& e : table) result.push_back(e.found);
    std::sort(result.begin(), result.end(), [](const study* a, const study* b) { return a->name < b->name; });
    return result;
  }();
  return sorted;
}

const study& study_named(std::string_view name) {
  std::vector<std::string_view> names;
  for (const study* s : studies()) {
    if (s->name == name) return *s;
    names.push_back(s->name);
  }
  throw domain_error("no study '" + std::string(name) + "'" + (names.empty() ? "; there is none" : detail::suggestion(name, names)));
}

namespace {

detail::page page_for(const study& s) {
  if (!s.page.empty()) return detail::read_page(std::string(s.name) + "/page.md", s.page);
  for (const detail::study_entry& e : detail::study_table()) {
    if (e.found != &s) continue;
    std::string folder(s.name);
    std::replace(folder.begin(), folder.end(), '-', '_');
    return detail::read_page("src/studies/" + folder + "/page.md", e.page);
  }
  throw domain_error("study '" + std::string(s.name) + "' has no page; give it one, or page.md beside its study.cpp");
}

report report_of(const study& s, const run_options& options) {
  if (s.run != nullptr) {
    report made = s.run(options);
    made.question = s.question;
    return made;
  }
  const detail::page words = page_for(s);
  results numbers;
  try {
    numbers = s.compute(options);
  } catch (const interrupted_part& left) {
    numbers.unfinished.push_back({std::string(s.name), left.done, left.all});
  }
  numbers.parameters["seed"] = options.seed;
  numbers.parameters["mode"] = options.full ? "full" : "quick";
  return detail::rendered(words, numbers);
}

}  // namespace

std::string question_of(const study& s) { return s.run != nullptr ? std::string(s.question) : page_for(s).question.text; }

report run_study(const study& s, const run_options& options) {
  report result = report_of(s, options);
  result.study = s.name;
  result.parameters["seed"] = options.seed;
  result.parameters["mode"] = options.full ? "full" : "quick";
  if (result.command.empty()) {
    result.command = "build/release/deltaproof study " + result.study + " --seed " + std::to_string(options.seed);
    if (options.full) result.command += " --full";
    // The program's default folder needs no word; another machine's absolute path helps nobody.
    if (!options.recordings.empty() && options.recordings != "tests/recordings") {
      result.command += " --recordings " + (options.recordings.is_absolute() ? "DIR" : options.recordings.generic_string());
    }
  }
  if (options.stopped() && result.unfinished.empty()) {
    result.unfinished.emplace_back("The run was interrupted; some cases were left out.");
  }
  validate(result);
  return result;
}

std::size_t for_each_index(std::size_t n, const run_options& options, std::string_view stage,
                           const std::function<void(std::size_t)>& f) {
  std::mutex guard;
  std::size_t next = 0;
  std::size_t finished = 0;
  std::size_t failed_at = n;
  std::exception_ptr failure;
  const auto work = [&] {
    for (;;) {
      std::size_t index = 0;
      {
        const std::lock_guard lock(guard);
        if (next == n || failure || options.stopped()) return;
        index = next++;
      }
      try {
        f(index);
        const std::lock_guard lock(guard);
        ++finished;
        options.progress(stage, static_cast<double>(finished) / static_cast<double>(n));
      } catch (...) {
        const std::lock_guard lock(guard);
        if (index < failed_at) {
          failed_at = index;
          failure = std::current_exception();
        }
      }
    }
  };
  helpers others;
  const std::size_t workers = std::min<std::size_t>(std::max(1U, options.threads), std::max<std::size_t>(1, n));
  others.start(workers - 1, work);
  work();
  others.join();
  if (failure) std::rethrow_exception(failure);
  return next;
}

}  // namespace deltaproof
