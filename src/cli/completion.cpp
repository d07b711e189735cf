// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT

#include "cli/completion.hpp"

#include "cli/program.hpp"
#include "cli/verbs.hpp"
#include "deltaproof/support/errors.hpp"

namespace deltaproof::cli {
namespace {

/// What stands for a value on the command line, by the type an option states: words, files or folders.
struct completed_values {
  std::string words;
  std::string action;  ///< of compgen
};

completed_values values_of(const CLI::Option& option) {
  const std::string stated = option.get_type_name();
  const std::string type = stated == "TEXT" ? option.get_name(true, false) : stated;
  completed_values out;
  for (const std::string& name : names_of_type(type)) out.words += (out.words.empty() ? "" : " ") + name;
  if (type == "DIR") out.action = "-d";
  if (type == "FILE" || type == "PLAN") out.action = "-f";  // a plan is a name or a file
  return out;
}

std::string case_line(const std::string& pattern, const completed_values& values) {
  return "    " + pattern + ") words=\"" + values.words + "\"; action=" + (values.action.empty() ? "\"\"" : values.action) +
         " ;;\n";
}

/// Names without "'" or blanks: nothing to quote.
std::string bash_script(const CLI::App& app) {
  std::string verbs, options, values, positionals;
  for (const CLI::App* verb : app.get_subcommands([](const CLI::App*) { return true; })) {
    const std::string& name = verb->get_name();
    verbs += (verbs.empty() ? "" : " ") + name;
    std::string own;
    for (const CLI::Option* option : verb->get_options()) {
      if (option->get_positional()) {
        if (positionals.find("    " + name + ")") == std::string::npos) positionals += case_line(name, values_of(*option));
        if (option->get_lnames().empty()) continue;
      }
      std::string patterns;
      for (const std::string& one : option->get_lnames()) patterns += (patterns.empty() ? "" : "|") + name + ",--" + one;
      for (const std::string& one : option->get_lnames()) own += (own.empty() ? "" : " ") + ("--" + one);
      for (const std::string& one : option->get_snames()) patterns += (patterns.empty() ? "" : "|") + name + ",-" + one;
      if (option->get_type_size() != 0 && !patterns.empty()) values += case_line(patterns, values_of(*option));
    }
    options += "    " + name + ") options=\"" + own + "\" ;;\n";
  }
  return "# bash completion of deltaproof " DELTAPROOF_VERSION
         "; to use it: source <(deltaproof completion bash)\n"
         "_deltaproof() {\n"
         "  local current=\"${COMP_WORDS[COMP_CWORD]}\" before=\"${COMP_WORDS[COMP_CWORD-1]}\"\n"
         "  local verb=\"\" options=\"\" words=\"\" action=\"\"\n"
         "  [ \"$COMP_CWORD\" -gt 1 ] && verb=\"${COMP_WORDS[1]}\"\n"
         "  if [ -z \"$verb\" ]; then\n"
         "    mapfile -t COMPREPLY < <(compgen -W \"" +
         verbs +
         " --help --version\" -- \"$current\")\n"
         "    return\n"
         "  fi\n"
         "  case \"$verb\" in\n" +
         options +
         "  esac\n"
         "  case \"$verb,$before\" in\n" +
         values +
         "    *)\n"
         "      if [ \"${current:0:1}\" = - ]; then words=\"$options\"; else\n"
         "      case \"$verb\" in\n" +
         positionals +
         "      esac; fi ;;\n"
         "  esac\n"
         "  # shellcheck disable=SC2086\n"
         "  mapfile -t COMPREPLY < <(compgen $action ${words:+-W \"$words\"} -- \"$current\")\n"
         "}\n"
         "complete -o default -o filenames -F _deltaproof deltaproof\n";
}

}  // namespace

verb add_completion(CLI::App* command, common_options& common) {
  const auto shell = std::make_shared<std::string>();
  command->add_option("SHELL", *shell, "Must be bash; zsh cannot run the script, which uses mapfile")->required();
  return [shell, command, &common] {
    if (*shell != "bash") throw format_error("completion: there is no script for '" + *shell + "'; give bash");
    say(common, bash_script(*command->get_parent()), true);
    return 0;
  };
}

}  // namespace deltaproof::cli
