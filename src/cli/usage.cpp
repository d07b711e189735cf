// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT

#include "cli/usage.hpp"

#include <string_view>

#include "support/nearest_name.hpp"

namespace deltaproof::cli {
namespace {

/// The verb whose words were wrong; `app` itself where it is none's.
const CLI::App& parsed_of(const CLI::App& app) {
  const auto parsed = app.get_subcommands();
  return parsed.empty() ? app : *parsed.front();
}

std::vector<std::string> option_names(const CLI::App& command) {
  std::vector<std::string> names;
  for (const CLI::Option* option : command.get_options()) {
    for (const std::string& name : option->get_lnames()) names.push_back("--" + name);
    for (const std::string& name : option->get_snames()) names.push_back("-" + name);
  }
  return names;
}

/// "PROBLEM [RESULT]"
std::string positionals_of(const CLI::App& command) {
  std::string out;
  for (const CLI::Option* option : command.get_options([](const CLI::Option* o) { return o->get_positional(); })) {
    const std::string name = option->get_name(true, false) + (option->get_expected_max() > 1 ? "..." : "");
    out += (out.empty() ? "" : " ") + (option->get_required() ? name : "[" + name + "]");
  }
  return out;
}

std::string unexpected(const CLI::App& command, const std::string& word) {
  if (word.size() < 2 || word.front() != '-') {
    const std::string taken = positionals_of(command);
    return "'" + word + "' is one word too many; " +
           (taken.empty() ? "this command takes options only" : "this command takes " + taken);
  }
  const std::string name = word.substr(0, word.find('='));
  if (name == "--no-color" || name == "--no-colour") return "there is no option " + name + "; set NO_COLOR=1 for plain text";
  const std::vector<std::string> names = option_names(command);
  const std::vector<std::string_view> known(names.begin(), names.end());
  const std::string_view near = detail::nearest_name(name, known);
  return "there is no option " + name + (near.empty() ? "" : "; did you mean " + std::string(near) + "?");
}

}  // namespace

std::string verb_suggestion(const CLI::App& app, const std::string& wrong) {
  std::vector<std::string> names;
  for (const CLI::App* verb : app.get_subcommands([](const CLI::App*) { return true; })) names.push_back(verb->get_name());
  return detail::suggestion(wrong, std::vector<std::string_view>(names.begin(), names.end()));
}

std::string usage_error(const CLI::App& app, const CLI::ParseError& e) {
  const CLI::App& command = parsed_of(app);
  const std::string prefix = &command == &app ? "" : command.get_name() + ": ";
  std::string said;
  if (dynamic_cast<const CLI::ExtrasError*>(&e) != nullptr) {
    // Behind an unknown option its value is one word too many as well, and no second mistake.
    const std::vector<std::string> words = app.remaining(true);
    for (const std::string& word : words) {
      if (word.size() > 1 && word.front() == '-') said += (said.empty() ? "" : "\n") + prefix + unexpected(command, word);
    }
    if (said.empty() && !words.empty()) said = prefix + unexpected(command, words.front());
  }
  const bool no_verb = &command == &app && dynamic_cast<const CLI::RequiredError*>(&e) != nullptr;
  if (said.empty() && no_verb) said = "no command was given" + verb_suggestion(app, "");
  if (said.empty()) said = prefix + e.what();
  return said + "\nRun deltaproof " + (&command == &app ? "" : command.get_name() + " ") + "--help for more information.";
}

}  // namespace deltaproof::cli
