// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
//
// The verbs list and explain alone, the added one, and the page of a study: what a changed source costs to compile and no more.

#include <algorithm>

#include "cli/list.cpp"
#include "cli/program.cpp"
#include "cli/run_files.cpp"
#include "cli/terminal.cpp"

bool deltaproof::cli::was_interrupted() { return false; }

namespace {

// Looked up by the compiler: a table in memory would need every verb of the program.
constexpr deltaproof::cli::verb_row added =
    *std::ranges::find(deltaproof::cli::verb_table, "hash", &deltaproof::cli::verb_row::name);

}  // namespace

int main(int argc, char** argv) try {
  using namespace deltaproof::cli;
  if (argc == 3 && std::string_view(argv[1]) == "study") {
    const deltaproof::report r = run_study(deltaproof::study_named(argv[2]), {});
    std::cout << to_markdown(r);
    return r.failed.empty() ? 0 : 1;
  }
  CLI::App app;
  common_options common;
  CLI::App* const list = app.add_subcommand("list");
  CLI::App* const explain = app.add_subcommand("explain");
  CLI::App* const other = app.add_subcommand(std::string(added.name), std::string(added.help));
  const verb lists = add_list(list, common), explains = add_explain(explain, common), adds = added.add(other, common);
  CLI11_PARSE(app, argc, argv);
  if (list->parsed()) return lists();
  if (explain->parsed()) return explains();
  if (other->parsed()) return adds();
  return 2;
} catch (const std::exception& refused) {
  std::cerr << refused.what() << '\n';
  return 2;
}
