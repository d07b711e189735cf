// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
//
// What regimes promise holds for any seed, shape, op and format.
#include <algorithm>
#include <array>
#include <cmath>
#include <iostream>
#include <limits>
#include <memory>

#include "deltaproof/files/exchange.hpp"
#include "deltaproof/inputs/regimes.hpp"
#include "deltaproof/testing/rapidcheck.hpp"
#include "support/sequence_generators.hpp"

namespace deltaproof {
namespace {

using testing::check_property;

rc::Gen<std::size_t> size_in(std::size_t first, std::size_t last) { return rc::gen::inRange(first, last + 1); }

testing::case_limits all_of_them() {
  testing::case_limits out;
  for (const auto& [op, name] : op_names) out.ops.push_back(op);
  out.dtypes = {bf16, fp16, fp32, fp64};
  out.least_tokens = 0;
  out.most_tokens = 65;
  out.most_batch = 2;
  out.most_group = 3;
  out.most_steps_per_token = 3;
  out.key_dims = {4, 16};
  out.value_dims = {1, 2, 3, 4, 5, 6, 7, 8, 9};
  out.chunk_sizes = {16, 64};
  for (const law_info& law : initial_state_laws()) out.initial_states.emplace_back(law.name);
  return out;
}

TEST(any_regime, makes_a_valid_problem_that_survives_its_file) {
  check_property(150, 51, [] {
    const testing::problem_case drawn = *testing::problem_cases(all_of_them());
    const generation& g = drawn.made;
    const problem& p = drawn.given;
    validate(p, "generated");
    const std::string bytes = problem_bytes(p);
    RC_ASSERT(problem_bytes(generate(g)) == bytes);
    std::shared_ptr<std::byte[]> buffer(new std::byte[bytes.size()]);
    std::copy(bytes.begin(), bytes.end(), reinterpret_cast<char*>(buffer.get()));
    notes_list notes;
    RC_ASSERT(problem_bytes(parse_problem(safetensors_file(buffer, bytes.size(), "generated"), notes)) == bytes);
    RC_ASSERT(notes.empty());
    RC_ASSERT(p.tokens() == *g.tokens && p.key_dim() == *g.key_dim && p.value_dim() == *g.value_dim);
    RC_ASSERT(p.value_heads() == *g.value_heads && p.num_householder == *g.num_householder);
  });
}

struct key_statistics {
  double worst_norm = 0;   // largest | |k|^2 - 1 |
  double mean_cosine = 0;  // over pairs of non-zero keys of head 0
};

key_statistics statistics_of(const problem& p) {
  const std::vector<double> k = p.k.to_doubles();
  const std::size_t dim = p.key_dim();
  key_statistics result;
  std::vector<double> sum(dim, 0);
  double count = 0;
  for (std::size_t row = 0; row < p.steps(); ++row) {
    const double* key = k.data() + row * p.key_heads() * dim;
    double square = 0;
    for (std::size_t c = 0; c < dim; ++c) square += key[c] * key[c];
    result.worst_norm = std::max(result.worst_norm, std::abs(square - 1));
    if (square == 0) continue;
    for (std::size_t c = 0; c < dim; ++c) sum[c] += key[c] / std::sqrt(square);
    ++count;
  }
  double square = 0;
  for (const double x : sum) square += x * x;
  result.mean_cosine = (square - count) / (count * (count - 1));
  return result;
}

TEST(any_regime, keeps_its_promises_about_norm_and_cosine) {
  std::cout << "seeds 0 ... " << scaled(12) - 1 << "\n";
  for (const regime_info& r : regimes()) {
    for (std::size_t seed = 0; seed < scaled(12); ++seed) {
      generation g;
      g.regime = r.name;
      g.seed = seed;
      g.tokens = std::array<std::size_t, 3>{64, 128, 200}[seed % 3];
      g.key_dim = seed % 2 == 0 ? 16 : 64;
      g.dtype = std::array<format, 3>{bf16, fp16, fp32}[seed / 2 % 3];
      const key_statistics got = statistics_of(generate(g));
      SCOPED_TRACE(options_text(complete(g)));
      // (1 + u)^2 - 1 from the roundings of k, and room for subnormals of fp16.
      const double allowed = r.unit_keys ? 2.01 * unit_roundoff(*g.dtype) + 1e-6 : std::numeric_limits<double>::infinity();
      EXPECT_LE(got.worst_norm, allowed);
      EXPECT_LE(r.least_cosine, got.mean_cosine);
      EXPECT_LE(got.mean_cosine, r.most_cosine);
    }
  }
}

// The recurrence of one value head in the arithmetic of Number.
template <class Number>
std::vector<Number> state_and_outputs(const problem& p, std::size_t head) {
  const std::size_t key_dim = p.key_dim();
  const std::size_t value_dim = p.value_dim();
  const auto at = [](const tensor& t, std::size_t i) { return static_cast<Number>(t.at(i)); };
  std::vector<Number> s(key_dim * value_dim, 0);
  if (p.initial_state) {
    for (std::size_t i = 0; i < s.size(); ++i) s[i] = at(*p.initial_state, head * s.size() + i);
  }
  std::vector<Number> all;
  for (std::size_t row = 0; row < p.steps(); ++row) {
    const std::size_t key = (row * p.key_heads() + p.key_head(head)) * key_dim;
    const std::size_t value = row * p.value_heads() + head;
    for (std::size_t j = 0; j < value_dim; ++j) {
      Number predicted = 0;
      for (std::size_t i = 0; i < key_dim; ++i) predicted += at(p.k, key + i) * s[i * value_dim + j];
      const Number write = at(p.beta, value) * (at(p.v, value * value_dim + j) - predicted);
      for (std::size_t i = 0; i < key_dim; ++i) s[i * value_dim + j] += at(p.k, key + i) * write;
      if ((row + 1) % p.num_householder != 0) continue;
      Number out = 0;
      const std::size_t query = (row / p.num_householder * p.key_heads() + p.key_head(head)) * key_dim;
      for (std::size_t i = 0; i < key_dim; ++i) out += at(p.q, query + i) * s[i * value_dim + j];
      all.push_back(out);
    }
  }
  all.insert(all.end(), s.begin(), s.end());
  return all;
}

TEST(exact_regime, is_never_rounded_in_fp32) {
  check_property(30, 53, [] {
    generation g;
    g.regime = "exact";
    g.seed = *rc::gen::arbitrary<std::uint64_t>();
    g.tokens = *size_in(1, 300);
    g.key_dim = *rc::gen::element<std::size_t>(4, 16, 64);
    g.value_dim = 3;
    g.num_householder = *size_in(1, 2);
    g.key_heads = 1;
    g.value_heads = 2;
    g.initial_state = *rc::gen::element<std::string>("none", "normal");
    const problem p = generate(g);
    for (std::size_t head = 0; head < 2; ++head) {
      const std::vector<float> narrow = state_and_outputs<float>(p, head);
      const std::vector<double> wide = state_and_outputs<double>(p, head);
      RC_ASSERT(
          std::equal(narrow.begin(), narrow.end(), wide.begin(), [](float a, double b) { return static_cast<double>(a) == b; }));
    }
  });
}

}  // namespace
}  // namespace deltaproof
