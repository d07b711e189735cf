// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT

#include "deltaproof/study/study.hpp"

#include <algorithm>
#include <string>
#include <vector>

#include "deltaproof/support/errors.hpp"
#include "study/render.hpp"
#include "support/nearest_name.hpp"

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
  throw domain_error("no study '" + std::string(name) + "'" +
                     (names.empty() ? "; this program contains no studies" : detail::suggestion(name, names)));
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
  throw domain_error("study '" + std::string(s.name) + "' has no page; set its page, or put page.md beside its study.cpp");
}

std::string command_of(const study& s, const run_options& options) {
  std::string command = "build/release/deltaproof study " + std::string(s.name) + " --seed " + std::to_string(options.seed);
  if (options.full) command += " --full";
  return command;
}

}  // namespace

std::string question_of(const study& s) { return page_for(s).question.text; }

report run_study(const study& s, const run_options& options) {
  const detail::page words = page_for(s);
  results numbers;
  try {
    numbers = s.compute(options);
  } catch (const interrupted_part& left) {
    numbers.unfinished.push_back({std::string(s.name), left.done, left.all});
  }
  numbers.parameters["seed"] = options.seed;
  numbers.parameters["mode"] = options.full ? "full" : "quick";
  report result = detail::rendered(words, numbers);
  result.study = s.name;
  result.command = command_of(s, options);
  if (options.stopped() && result.unfinished.empty()) {
    result.unfinished.emplace_back("The run was interrupted; some cases were left out.");
  }
  validate(result);
  return result;
}

}  // namespace deltaproof
