// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
//
// A verdict from plain C++, without a test framework: a token loop in fp32 is the kernel, `answer` judges it by a plan and prints
// what `deltaproof check` prints.

#include <cmath>
#include <cstdio>
#include <vector>

#include "deltaproof/deltaproof.hpp"

// S <- e^g S; S <- S + k beta (v - k^T S); o = scale S^T q, for B = H = 1. Layouts: q, k, v [T, D]; beta, g [T]; S [D, D].
void gated_delta_rule(const std::vector<double>& q, const std::vector<double>& k, const std::vector<double>& v,
                      const std::vector<double>& beta, const std::vector<double>& g, float scale, std::size_t D,
                      std::vector<float>& S, std::vector<float>& o) {
  const auto f = [](double x) { return static_cast<float>(x); };  // the inputs are fp32: exact
  for (std::size_t t = 0; t < beta.size(); ++t) {
    for (float& s : S) s *= std::exp(f(g[t]));
    for (std::size_t j = 0; j < D; ++j) {
      float read = 0;
      for (std::size_t i = 0; i < D; ++i) read += f(k[t * D + i]) * S[i * D + j];
      const float write = f(beta[t]) * (f(v[t * D + j]) - read);
      for (std::size_t i = 0; i < D; ++i) S[i * D + j] += f(k[t * D + i]) * write;
      float sum = 0;
      for (std::size_t i = 0; i < D; ++i) sum += scale * f(q[t * D + i]) * S[i * D + j];
      o[t * D + j] = sum;
    }
  }
}

int main() {
  using namespace deltaproof;
  constexpr std::size_t T = 128, D = 32;
  generation wanted;
  wanted.op = op_kind::gated_delta_rule;
  wanted.dtype = fp32;
  wanted.tokens = T;
  wanted.key_dim = wanted.value_dim = D;
  wanted.key_heads = wanted.value_heads = 1;
  const problem p = generate(wanted);

  const std::vector<double> start = p.initial_state->to_doubles();
  std::vector<float> o(T * D), S(start.begin(), start.end());
  gated_delta_rule(p.q.to_doubles(), p.k.to_doubles(), p.v.to_doubles(), p.beta.to_doubles(), p.g->to_doubles(),
                   static_cast<float>(p.scale), D, S, o);
  const result r = copied(result_view{.o = {o, {1, T, 1, D}}, .final_state = {S, {1, 1, D, D}}, .kernel = "token loop"}, p);

  check_request asked;
  asked.plan = "fp32";
  const answered_check verdict = answer(p, r, asked, {});
  std::fputs(to_text(verdict.report, verdict.identity).c_str(), stdout);
  return exit_code(verdict.report.judged);
}
