// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
//
// The verbs list and explain alone, and the page of a study: what a changed source costs to compile and no more.

#include "cli/list.cpp"
#include "cli/program.cpp"
#include "cli/terminal.cpp"

bool deltaproof::cli::was_interrupted() { return false; }

int main(int argc, char** argv) try {
  using namespace deltaproof::cli;
  if (argc == 3 && std::string_view(argv[1]) == "study") {
    const deltaproof::report r = run_study(deltaproof::study_named(argv[2]), {});
    std::cout << to_markdown(r);
    return r.failed.empty() ? 0 : 1;
  }
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
