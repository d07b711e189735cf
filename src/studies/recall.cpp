// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT

#include <algorithm>
#include <string>

#include "deltaproof/study/study.hpp"
#include "studies/recall/runs.hpp"
#include "studies/recall/sections.hpp"
#include "studies/shared/findings.hpp"
#include "studies/shared/text.hpp"

namespace deltaproof {

namespace detail::recall {

settings settings_for(const run_options& options) {
  settings size;
  if (options.full) {
    size.runs = 12;
    size.retrieval_runs = 200;
    size.longest_runs = 4;
    size.rule_tokens = 8000;
  }
  return size;
}

std::string name_of(relation f) { return std::string(relations[static_cast<std::size_t>(f)].name); }

}  // namespace detail::recall

namespace {

using namespace detail::recall;
using detail::shared::percent;
using detail::shared::value_of;

std::string answer(const report& r) {
  std::string text = value_of(r, "protocol", "found") == 1
                         ? "The printed figures reproduce once queries are drawn apart from the keys, and then"
                         : "No protocol tried reproduces the printed figures; under the nearest one";
  const double lowest = value_of(r, "error-is-chance", "lowest");
  const double highest = value_of(r, "error-is-chance", "highest");
  if (lowest > 1.7 && highest < 2.2) {
    text += " what was measured is chance: every error of DeltaNet is " + number(lowest, 3) + " to " + number(highest, 3) +
            " times E v², where the answer 0 has 1 and an answer unrelated to the question 2";
  } else {
    text += " errors lie between " + number(lowest, 3) + " and " + number(highest, 3) + " times E v²";
  }
  const double gap = value_of(r, "least-squares-halves", "lowest");
  const double constant = value_of(r, "constant-feature", "with");
  if (gap == gap)
    text += "; asked with the key itself, least squares makes " + number(1 / gap, 2) + " of DeltaNet's error (β = 1)";
  if (constant == constant) text += ", one constant feature leaves " + percent(constant, 1) + " of eᵏ";
  const double direction = value_of(r, "hebbian-direction", "at_end");
  if (direction == direction) {
    text += direction > 0.99 ? ", and linear attention, whose error explodes, still answers in the right direction"
                             : ", and linear attention loses the direction too";
  }
  return text + ".";
}

report run(const run_options& options) {
  const settings size = settings_for(options);
  report r;
  add_protocol(options, size, r);
  add_axes(options, size, r);
  add_moments(options, size, r);
  add_scaling(options, size, r);
  add_learning(options, size, r);
  add_retrieval(options, size, r);
  add_convolution(options, size, r);
  add_successors(options, size, r);
  add_information(options, size, r);
  add_rules(options, size, r);
  add_cost(size, r);
  r.answer = answer(r);
  r.method =
      "Keys and queries: Gaussian directions of unit length in fp64, d = 64; values f(k) element by element. Linear attention, "
      "the delta rule, "
      "least squares by rank-one updates and the other rules are the library's templates. Every run is read with the token's own "
      "key and with "
      "a query drawn apart, before and after the update. Printed figures are those of source document 002_418f562d8c03bf58, read "
      "from one "
      "table in the code. Closed forms come from the moments of the sphere.";
  r.not_claimed = {
      "That the document's code did this: only that this protocol, among those its text allows, gives its figures. Those of the "
      "identity at "
      "T = 1000 (0.028, 0.026), the ridge of least squares, the weights of the convolution and the cells of the histogram stay "
      "guesses.",
      "Anything about trained models: keys are independent and uniform, values are functions of single elements, projections are "
      "random ones; learned projections could mix elements before and after f.",
      "Rounding: everything here is fp64; what formats add is the subject of studies `horizon` and `state-precision`.",
      "The closed forms for the delta rule need independent uniform unit keys; with a short convolution they do not hold.",
      "Mutual information of a continuous function is infinite; estimates are those of the stated histogram.",
      "Gradients are those of one step's loss in the state, not those through time that training sees.",
  };
  r.parameters = {{"key_dim", size.key_dim}, {"tokens", size.tokens},
                  {"runs", size.runs},       {"retrieval_runs", size.retrieval_runs},
                  {"longest", size.longest}, {"rule_tokens", size.rule_tokens}};
  return r;
}

}  // namespace

extern const study recall_study{"recall",
                                "What do the recall experiments with values f(k) measure, and do their conclusions hold?", &run};

}  // namespace deltaproof
