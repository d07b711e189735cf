// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT

#include <algorithm>

#include "deltaproof/kernel/exchange.hpp"
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

recording_result examine(const std::filesystem::path& file) {
  notes_list notes;
  const problem p = read_problem(file, notes);
  recording_result r;
  const std::string name = file.filename().string();
  r.name = name.substr(0, name.size() - suffix.size());
  r.key_format = name_of(p.k.element_format());
  r.beta_format = name_of(p.beta.element_format());
  r.rule = name_of(p.rule);
  r.exact = p.beta_activation == activation_kind::none && p.rule != rule_kind::exact;
  r.normalised_inside = p.qk_l2norm;

  const std::size_t rows = p.batch() * p.steps();
  std::vector<double> k(p.key_dim());
  std::vector<rational> norms;
  for (std::size_t i = 0; i < rows * p.key_heads(); ++i) {
    p.k.read(i * p.key_dim(), k);
    norms.push_back(squared_norm(p, k));
    if (norms.back() > 1) ++r.norm_above_one;
  }
  r.rows = norms.size();
  for (std::size_t row = 0; row < rows; ++row) {
    for (std::size_t head = 0; head < p.value_heads(); ++head) {
      const rational& n = norms[row * p.key_heads() + p.key_head(head)];
      const double beta = p.beta.at(row * p.value_heads() + head);
      each_eigenvalue(p, r.rule, r.exact, n, beta, [&](const auto& lambda) {
        const double value = round_to<double>(lambda);
        r.smallest = r.steps == 0 ? value : std::min(r.smallest, value);
        r.largest = r.steps == 0 ? value : std::max(r.largest, value);
        ++r.steps;
        if (lambda > 1 || lambda <= 0) ++r.outside_decay;
        if (!(lambda > 1 || lambda < -1)) return;
        ++r.outside_unit;
        if (!r.first.empty()) return;
        const std::size_t step = row % p.steps();
        r.first = (p.batch() > 1 ? "batch " + std::to_string(row / p.steps()) + ", " : "") + "token " +
                  std::to_string(step / p.num_householder) +
                  (p.num_householder > 1 ? ", step " + std::to_string(step % p.num_householder) : "") +
                  (p.value_heads() > 1 ? ", head " + std::to_string(head) : "");
      });
    }
  }
  return r;
}

}  // namespace

recording_survey survey_recordings(const run_options& options) {
  recording_survey survey;
  std::vector<std::filesystem::path> files;
  if (!options.recordings.empty() && std::filesystem::is_directory(options.recordings)) {
    for (const auto& entry : std::filesystem::directory_iterator(options.recordings)) {
      if (entry.path().filename().string().ends_with(suffix)) files.push_back(entry.path());
    }
  }
  std::sort(files.begin(), files.end());
  std::vector<recording_result> results(files.size());
  std::vector<std::string> faults(files.size());
  const std::size_t done = for_each_index(files.size(), options, "recordings", [&](std::size_t i) {
    try {
      results[i] = examine(files[i]);
    } catch (const error& e) {
      faults[i] = files[i].filename().string() + ": " + e.what();
    }
  });
  for (std::size_t i = 0; i < done; ++i) {
    if (faults[i].empty())
      survey.results.push_back(std::move(results[i]));
    else
      survey.unreadable.push_back(std::move(faults[i]));
  }
  survey.complete = done == files.size();
  return survey;
}

}  // namespace deltaproof::detail::eigenvalues
