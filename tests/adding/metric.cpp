// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
//
// Uses the metric that a diff of examples/adding added, as the error limit of a check: it is read, measured and judged.

#include <iostream>
#include <vector>

#include "deltaproof/referee/judging.hpp"

int main() try {
  using namespace deltaproof;
  const std::vector<double> got{1, 2, 3, 4.5};
  const reference_tensor want{{4}, {1, 2.25, 3, 4.25}, {}, {0, 0, 0, 0}};
  const auto judged = [&](const char* limit) {
    const metric_bound asked = parse_tensor_bound(limit, because("a test")).limit;
    return judge(measure(got, want, fp32), {&asked, 1});
  };
  // The mean of 0, 1/4, 0 and 1/4.
  const bool right = judged("o:mean_abs=0.126") == verdict::holds && judged("o:mean_abs=0.124") == verdict::refuted &&
                     value_of(measure(got, want, fp32), metric_named("mean_abs")).value == 0.125;
  for (const named_metric& row : metrics) std::cout << row.name << "  " << row.what << '\n';
  return right ? 0 : 1;
} catch (const std::exception& wrong) {
  std::cerr << wrong.what() << '\n';
  return 1;
}
