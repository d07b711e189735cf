// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "deltaproof/files/golden.hpp"
#include "deltaproof/oracle/gradients.hpp"
#include "support/text.hpp"

namespace deltaproof {
namespace {

/// One gradient as it is written: rounded once, or the parts of a sum.
golden_tensor as_written(const std::string& name, const reference_tensor& from, const golden_request& asked) {
  const std::size_t parts = asked.bits == 0 ? 1 : parts_of(asked.bits), count = from.value.size();
  std::vector<std::vector<double>> values(parts, std::vector<double>(count, std::numeric_limits<double>::quiet_NaN()));
  golden_tensor out;
  bool any = false;
  std::vector<double> sum(parts);
  for (std::size_t i = 0; i < count; ++i) {
    double left = from.radius[i];
    if (asked.bits == 0) {
      if (const auto one = decided_rounding(from, i, asked.round)) values[0][i] = *one;
    } else {
      left = decided_parts(from, i, sum);
      for (std::size_t c = 0; c < parts && !std::isnan(sum[c]); ++c) values[c][i] = sum[c];
    }
    if (std::isnan(values.back()[i])) {
      ++out.undecided;
      continue;
    }
    any = true;
    out.radius = std::max(out.radius, left);
  }
  if (!any && count > 0) out.radius = std::numeric_limits<double>::infinity();
  for (std::size_t c = 0; c < parts; ++c) out.parts.push_back(tensor::from_doubles(asked.round, from.shape, values[c], part_name(name, c)));
  out.undecided_indices = nan_indices(out.parts.back()).text;
  return out;
}

}  // namespace

golden_gradients make_golden_gradients(const problem& p, const golden_request& asked) {
  if (asked.bits != 0 && !(asked.round == fp64)) throw format_error("make_golden_gradients: bits of fp64 sums with another format");
  question q;
  q.round_output = q.round_state = asked.round;
  if (asked.bits != 0) q.relative_radius = std::ldexp(1.0, -static_cast<int>(53 * parts_of(asked.bits)) - 8);
  q.max_bits = asked.max_bits;
  q.threads = asked.threads;
  q.stop = asked.stop;
  q.progress = asked.progress;
  const reference_gradients from = solve_gradients(p, q);
  golden_gradients out;
  out.stopped = from.stopped;
  if (out.stopped) return out;
  out.tiers = from.tiers;
  for (const auto& [name, gradient] : from.tensors) out.tensors.emplace(name, as_written(name, gradient, asked));
  return out;
}

void write_golden_gradients(const std::filesystem::path& path, const golden_gradients& from, const std::string& problem_sha256) {
  safetensors_metadata metadata{{"format", std::string(result_format)}, {"pass", "backward"}, {"path", "reference"},
                                {"kernel", "certified adjoint"}, {"problem_sha256", problem_sha256}};
  std::vector<tensor> tensors;
  for (const auto& [name, gradient] : from.tensors) {
    metadata.emplace_back("radius." + name, detail::general(gradient.radius, 17));
    metadata.emplace_back("undecided." + name, std::to_string(gradient.undecided));
    if (gradient.undecided > 0) metadata.emplace_back("undecided." + name + ".indices", gradient.undecided_indices);
    tensors.insert(tensors.end(), gradient.parts.begin(), gradient.parts.end());
  }
  write_safetensors(path, metadata, tensors);
}

}  // namespace deltaproof
