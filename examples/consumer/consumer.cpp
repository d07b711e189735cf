// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
//
// A project of its own on the installed package: makes a problem, asks the oracle for it, and judges a "kernel" that
// is the reference rounded to bf16.

#include <algorithm>
#include <cstdio>
#include <vector>

#include "deltaproof/inputs/regimes.hpp"
#include "deltaproof/number/convert.hpp"
#include "deltaproof/number/rounded.hpp"
#include "deltaproof/oracle/measure.hpp"
#include "deltaproof/oracle/reference.hpp"

int main() {
  using namespace deltaproof;
  generation wanted;
  wanted.regime = "typical";
  wanted.tokens = 64;
  const problem p = generate(wanted);
  const reference truth = solve(p);

  std::vector<double> kernel(truth.o.value.size());
  std::transform(truth.o.value.begin(), truth.o.value.end(), kernel.begin(),
                 [](double x) { return lift<double>(round_to<bf16>(x)); });
  const measurement m = measure(kernel, truth.o, bf16);
  const metric_bound half_an_ulp[] = {{metric::ulps, bound(0.5 + 1e-3, because("one rounding to nearest"))}};
  std::printf("%zu outputs, largest error %.3g ulp: %s\n", m.elements, m.ulps.value,
              std::string(name_of(judge(m, half_an_ulp))).c_str());
  return exit_code(judge(m, half_an_ulp));
}
