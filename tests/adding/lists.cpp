// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
//
// The verbs list and explain alone: what a changed source costs to compile and no more.

#include "cli/list.cpp"
#include "cli/program.cpp"
#include "cli/terminal.cpp"

bool deltaproof::cli::was_interrupted() { return false; }

int main(int argc, char** argv) try {
  using namespace deltaproof::cli;
  CLI::App app;
  common_options common;
  const registered_verb verbs[] = {add_list(app, common), add_explain(app, common)};
  CLI11_PARSE(app, argc, argv);
  for (const registered_verb& verb : verbs) {
    if (verb.command->parsed()) return verb.run();
  }
  return 2;
} catch (const std::exception& refused) {
  std::cerr << refused.what() << '\n';
  return 2;
}
