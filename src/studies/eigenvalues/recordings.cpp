// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT

#include <algorithm>

#include "deltaproof/files/exchange.hpp"
#include "deltaproof/number/real.hpp"
#include "deltaproof/rule/rules.hpp"
#include "studies/eigenvalues/parts.hpp"

namespace deltaproof::detail::eigenvalues {
namespace {

using wide = real<256>;
constexpr std::string_view suffix = ".problem.safetensors";

rational squared_norm(const problem& p, std::span<const double> k) {
  const rational sum = exact_squared_norm(k);
  // The square of x / sqrt(sum + 10^-6) is rational.
  return p.qk_l2norm ? rational(sum / (sum + rational(1, 1000000))) : sum;
}

wide activated(activation_kind activation, const wide& beta) {
  if (activation == activation_kind::none) return beta;
  const wide sigmoid = 1 / (1 + exp(-beta));
  return activation == activation_kind::sigmoid ? sigmoid : 2 * sigmoid;
}

/// R(beta n): in rationals where it is rational. A transcendental value equals none of -1, 0, 1, and 256 bits
/// put it on the right side unless it comes closer than 2^-200; at n = 0 it is 1 exactly.
template <class Visit>
void each_eigenvalue(const problem& p, std::string_view rule_name, bool rational_values, const rational& n, double beta,
                     Visit&& visit) {
  visit_rule(rule_name, [&](auto rule) {
    using Rule = decltype(rule);
    if constexpr (RuleOver<Rule, rational>) {
      if (rational_values) {
        visit(Rule::stability(rational(exact(beta) * n)));
        return;
      }
    }
    const wide x = activated(p.beta_activation, lift<wide>(beta)) * round_to<wide>(n);
    visit(Rule::stability(x));
  });
}

frame_row examine(const std::string& file) {
  notes_list notes;
  const problem p = read_problem(file, notes);
  const std::string name = std::filesystem::path(file).filename().string();
  const std::string_view rule = name_of(p.rule);
  const bool exact = p.beta_activation == activation_kind::none && p.rule != rule_kind::exact;  // else with 256 bits

  const std::size_t rows = p.batch() * p.steps();
  std::vector<double> k(p.key_dim());
  std::vector<rational> norms;
  for (std::size_t i = 0; i < rows * p.key_heads(); ++i) {
    p.k.read(i * p.key_dim(), k);
    norms.push_back(squared_norm(p, k));
  }
  std::vector<double> lambdas;
  std::uint64_t outside_unit = 0, outside_decay = 0;
  std::string first;
  for (std::size_t t = 0; t < rows; ++t) {
    for (std::size_t head = 0; head < p.value_heads(); ++head) {
      const rational& n = norms[t * p.key_heads() + p.key_head(head)];
      const double beta = p.beta.at(t * p.value_heads() + head);
      each_eigenvalue(p, rule, exact, n, beta, [&](const auto& lambda) {
        lambdas.push_back(round_to<double>(lambda));
        if (lambda > 1 || lambda <= 0) ++outside_decay;
        if (!(lambda > 1 || lambda < -1)) return;
        ++outside_unit;
        if (!first.empty()) return;
        const std::size_t step = t % p.steps();
        first = (p.batch() > 1 ? "batch " + std::to_string(t / p.steps()) + ", " : "") + "token " +
                std::to_string(step / p.num_householder) +
                (p.num_householder > 1 ? ", step " + std::to_string(step % p.num_householder) : "") +
                (p.value_heads() > 1 ? ", head " + std::to_string(head) : "");
      });
    }
  }
  const auto above_one = std::count_if(norms.begin(), norms.end(), [](const rational& n) { return n > 1; });
  const std::string keys_in(name_of(p.k.element_format())), beta_in(name_of(p.beta.element_format()));
  frame_row row{name.substr(0, name.size() - suffix.size()), cell(), keys_in, beta_in, rule, exact};
  row.insert(row.end(), {lambdas.size(), least(lambdas), greatest(lambdas), outside_unit, first});
  row.insert(row.end(), {outside_decay, above_one, norms.size()});
  return row;
}

}  // namespace

frame survey_recordings(const run_options& options) {
  grid_axis<std::string> files{"file", {}};
  if (!options.recordings.empty() && std::filesystem::is_directory(options.recordings)) {
    for (const auto& entry : std::filesystem::directory_iterator(options.recordings)) {
      if (entry.path().filename().string().ends_with(suffix)) files.quick.push_back(entry.path().string());
    }
  }
  std::sort(files.quick.begin(), files.quick.end());
  const auto row = [](const std::string& file) -> frame_row {
    try {
      return examine(file);
    } catch (const error& e) {
      frame_row unread(14);
      unread[0] = std::filesystem::path(file).filename().string();
      unread[1] = e.what();
      return unread;
    }
  };
  return grid(options, "recordings",
              {"name", "fault", "keys_in", "beta_in", "rule", "exact", "steps", "smallest", "largest", "outside_unit", "first",
               "outside_decay", "above_one", "keys"},
              row, files);
}

}  // namespace deltaproof::detail::eigenvalues
