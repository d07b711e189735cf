// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT

#include "deltaproof/number/elementary.hpp"
#include "studies/eigenvalues/parts.hpp"

namespace deltaproof::detail::eigenvalues {
namespace {

/// Correctly rounded, so monotone: the exact function is, and so is rounding.
template <format Out>
double correct(double x) {
  return sigmoid(rounded<Out>::from_exact(x)).value();
}

/// The first ordinal in [low, high] with `holds`, which stays true from there on; nothing if there is none.
std::optional<std::int64_t> first_with(std::int64_t low, std::int64_t high, const std::function<bool(std::int64_t)>& holds) {
  if (!holds(high)) return std::nullopt;
  while (low < high) {
    const std::int64_t middle = std::midpoint(low, high);
    holds(middle) ? high = middle : low = middle + 1;
  }
  return low;
}

struct case_of {
  std::string name;
  frame_row (*run)();
};

template <format In, format Out>
frame_row examine() {
  static_assert(is_lossless(In, Out));
  constexpr bool exhaustive = In.storage_bits <= 16;  // every input is evaluated; else what is monotone is so on paper
  const std::int64_t top = ordinal<In>(largest(In));
  const auto value_at = [](std::int64_t i) { return correct<Out>(from_ordinal<In>(i)); };
  const auto one = first_with(-top, top, [&](std::int64_t i) { return value_at(i) == 1; });
  const auto above_zero = first_with(-top, top, [&](std::int64_t i) { return value_at(i) > 0; });
  bool monotone = true;
  for (std::int64_t i = -top; exhaustive && i < top; ++i) monotone = monotone && value_at(i + 1) >= value_at(i);
  const auto evaluations = static_cast<std::uint64_t>(exhaustive ? 2 * top + 1 : 0);
  const auto at = [&](const std::optional<std::int64_t>& i, int offset) {
    return i && *i > -top ? cell(from_ordinal<In>(*i + offset)) : cell();
  };
  return {name_of(In), name_of(Out), exhaustive, evaluations, monotone, at(one, 0), at(one, -1), at(above_zero, -1)};
}

}  // namespace

frame survey_sigmoid(const run_options& options) {
  const grid_axis<case_of> cases{"case",
                                 {{"bf16", &examine<bf16, bf16>},
                                  {"fp16", &examine<fp16, fp16>},
                                  {"tf32", &examine<tf32, tf32>},
                                  {"e4m3", &examine<e4m3, e4m3>},
                                  {"e5m2", &examine<e5m2, e5m2>},
                                  {"fp32", &examine<fp32, fp32>},
                                  {"fp64", &examine<fp64, fp64>},
                                  {"bf16 to fp32", &examine<bf16, fp32>},
                                  {"fp16 to fp32", &examine<fp16, fp32>}}};
  return grid(
      options, "sigmoid",
      {"input", "output", "exhaustive", "evaluations", "monotone", "one_from", "last_below_one", "zero_until"},
      [](const case_of& c) { return c.run(); }, cases);
}

}  // namespace deltaproof::detail::eigenvalues

// Theorems behind this file, by their names in proofs/README.md.
// proved: float.sigmoid.sigmoid_saturates_from, code.constants.sigmoid_bf16_saturates
