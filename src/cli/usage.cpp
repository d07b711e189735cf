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

/// Every misspelt option, wherever it stands. Behind an unknown option its value is one word too many as well, and no second
/// mistake.
std::string unknown_options(const CLI::App& app, const CLI::App& command, const std::string& prefix) {
  std::string said;
  for (const std::string& word : app.remaining(true)) {
    if (word.size() > 1 && word.front() == '-') said += (said.empty() ? "" : "\n") + prefix + unexpected(command, word);
  }
  return said;
}

/// What is wrong with the number of an option's words.
std::string miscounted(const CLI::App& command, const CLI::Option& option, const std::string& name, bool missing) {
  if (missing) {
    // The type may have the names to choose from behind it: "FORMAT:{bf16,fp16}".
    std::string type = option.get_type_name();
    if (const std::size_t names = type.find(":{"); names != std::string::npos) type.replace(names, 1, ", one of ");
    if (option.get_type_size() == 1) return name + " needs a value, " + type;
    const std::string& what = option.get_description();
    return name + " needs " + std::to_string(option.get_type_size()) + " values: " + what.substr(0, what.find(';'));
  }
  if (option.get_expected_max() > 1) return unexpected(command, option.results().back());
  return name + " is given " + std::to_string(option.count()) + " times; give it once";
}

/// The parser's own sentence where it says what to do, else a better one.
std::string reworded(const CLI::App& command, const CLI::ParseError& e) {
  const std::string what = e.what();
  constexpr std::string_view excludes = " excludes ", empty = ": is empty; give a value";
  if (dynamic_cast<const CLI::ExcludesError*>(&e) != nullptr) {
    const std::size_t at = what.find(excludes);
    return what.substr(0, at) + " and " + what.substr(at + excludes.size()) + " cannot be given together; leave one out";
  }
  const std::string name = what.substr(0, what.find(": "));
  const CLI::Option* const option = command.get_option_no_throw(name);
  if (option == nullptr) return what;
  if (dynamic_cast<const CLI::ArgumentMismatch*>(&e) != nullptr)
    return miscounted(command, *option, name, what.ends_with(" missing"));
  return what.ends_with(empty) && !option->get_required() ? what + ", or leave " + name + " out" : what;
}

}  // namespace

std::shared_ptr<CLI::Formatter> help_formatter() {
  // "FILES..." in place of the parser's "FILES(1x)".
  class formatter : public CLI::Formatter {
   public:
    std::string make_option_usage(const CLI::Option* option) const override {
      const std::string name = make_option_name(option, true) + (option->get_expected_max() > 1 ? "..." : "");
      return option->get_required() ? name : "[" + name + "]";
    }
  };
  return std::make_shared<formatter>();
}

std::string verb_suggestion(const CLI::App& app, const std::string& wrong) {
  std::vector<std::string> names;
  for (const CLI::App* verb : app.get_subcommands([](const CLI::App*) { return true; })) names.push_back(verb->get_name());
  return detail::suggestion(wrong, std::vector<std::string_view>(names.begin(), names.end()));
}

std::string usage_error(const CLI::App& app, const CLI::ParseError& e) {
  const CLI::App& command = parsed_of(app);
  const std::string prefix = &command == &app ? "" : command.get_name() + ": ";
  const bool extras = dynamic_cast<const CLI::ExtrasError*>(&e) != nullptr;
  const bool required = dynamic_cast<const CLI::RequiredError*>(&e) != nullptr;
  // Where an option is required that was misspelt, the misspelt one is the mistake.
  std::string said = extras || required ? unknown_options(app, command, prefix) : "";
  if (const auto words = app.remaining(true); said.empty() && extras && !words.empty())
    said = prefix + unexpected(command, words.front());
  if (said.empty() && required && &command == &app) said = "no command was given" + verb_suggestion(app, "");
  if (said.empty()) said = prefix + reworded(command, e);
  return said + "\nRun deltaproof " + (&command == &app ? "" : command.get_name() + " ") + "--help for more information.";
}

}  // namespace deltaproof::cli
