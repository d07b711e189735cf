// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
#include <algorithm>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <map>
#include <mutex>
#include <span>
#include <utility>
#include <vector>

#include "deltaproof/files/golden.hpp"
#include "oracle/gradients/by_group.hpp"
#include "support/text.hpp"

namespace deltaproof {
namespace {

/// One gradient while groups of heads are rounded into it: once, or to the parts of a sum; NaN where that is open. What a float
/// holds is kept as one.
struct rounded_gradient {
  std::vector<std::size_t> shape;
  std::vector<float> narrow;
  std::vector<std::vector<double>> values;
  std::mutex lock;
  bool any = false;
  double radius = 0;

  rounded_gradient(const tensor& like, const golden_request& asked) : shape(like.shape()) {
    if (asked.bits == 0 && asked.round.precision <= fp32.precision) {
      narrow.assign(like.size(), std::numeric_limits<float>::quiet_NaN());
    } else {
      values.assign(asked.bits == 0 ? 1 : parts_of(asked.bits),
                    std::vector<double>(like.size(), std::numeric_limits<double>::quiet_NaN()));
    }
  }

  void take(const solved_gradient& from, const golden_request& asked) {
    std::vector<double> sum(values.size());
    double largest = 0;
    bool some = false;
    const std::size_t count = from.part.value.size();
    if (!narrow.empty()) {
      for (std::size_t i = 0, at = from.first; i < count; at += from.stride, i += from.width) {
        const double *one = &from.part.value[i], *left = &from.part.radius[i];
        for (std::size_t j = 0; j < from.width; ++j) {
          const bool is_known = !std::isnan(one[j]);
          narrow[at + j] = static_cast<float>(one[j]);
          some = some || is_known;
          largest = std::max(largest, is_known ? left[j] : 0);
        }
      }
      return join(some, largest);
    }
    for (std::size_t i = 0, at = from.first; i < count; at += from.stride) {
      for (std::size_t j = 0; j < from.width; ++j, ++i) {
        double left = from.part.radius[i], one = from.part.value[i];
        if (asked.bits != 0) {
          left = decided_parts(from.part, i, sum);
          for (std::size_t c = 0; c < sum.size() && !std::isnan(sum[c]); ++c) values[c][at + j] = sum[c];
          one = values.back()[at + j];
        } else {
          values[0][at + j] = one;
        }
        if (std::isnan(one)) continue;
        some = true;
        largest = std::max(largest, left);
      }
    }
    join(some, largest);
  }
  void join(bool some, double largest) {
    const std::lock_guard guard(lock);
    any = any || some;
    radius = std::max(radius, largest);
  }

  /// What is kept in floats. fp32 and bf16 are bytes of those as they lie.
  [[nodiscard]] tensor narrow_tensor(const format& to, const std::string& name) {
    const std::vector<float> from = std::exchange(narrow, {});
    if (std::endian::native == std::endian::little && to == fp32)
      return {to, shape, std::as_bytes(std::span(from)), part_name(name, 0)};
    if (std::endian::native == std::endian::little && to == bf16) {
      std::vector<std::uint16_t> upper(from.size());
      for (std::size_t i = 0; i < from.size(); ++i)
        upper[i] = static_cast<std::uint16_t>(std::bit_cast<std::uint32_t>(from[i]) >> 16);
      return {to, shape, std::as_bytes(std::span(upper)), part_name(name, 0)};
    }
    return tensor::from_doubles(to, shape, std::vector<double>(from.begin(), from.end()), part_name(name, 0));
  }
  /// What no group answered is open as well.
  [[nodiscard]] golden_tensor written(const std::string& name, const golden_request& asked) {
    golden_tensor out;
    const auto count_open = [](const auto& list) {
      return static_cast<std::size_t>(std::count_if(list.begin(), list.end(), [](double x) { return std::isnan(x); }));
    };
    const std::size_t count = values.empty() ? narrow.size() : values[0].size();
    out.radius = any || count == 0 ? radius : std::numeric_limits<double>::infinity();
    out.undecided = values.empty() ? count_open(narrow) : count_open(values.back());
    if (values.empty()) out.parts.push_back(narrow_tensor(asked.round, name));
    for (std::size_t c = 0; c < values.size(); ++c) {
      out.parts.push_back(tensor::from_doubles(asked.round, shape, values[c], part_name(name, c)));
      values[c] = {};
    }
    out.undecided_indices = nan_indices(out.parts.back()).text;
    return out;
  }
};

}  // namespace

golden_gradients make_golden_gradients(const problem& p, const golden_request& asked) {
  if (asked.bits != 0 && !(asked.round == fp64))
    throw format_error("make_golden_gradients: bits of fp64 sums with another format");
  question q;
  q.round_output = q.round_state = asked.round;
  if (asked.bits != 0) q.relative_radius = std::ldexp(1.0, -static_cast<int>(53 * parts_of(asked.bits)) - 8);
  q.max_bits = asked.max_bits;
  q.always_exact = true;
  q.threads = asked.threads;
  q.stop = asked.stop;
  q.progress = asked.progress;
  std::map<std::string, rounded_gradient, std::less<>> rounded;
  const auto add = [&](const char* name, const tensor& like) { rounded.try_emplace(name, like, asked); };
  add("dq", p.q);
  add("dk", p.k);
  add("dv", p.v);
  add("dbeta", p.beta);
  if (p.g) add("dg", *p.g);
  if (p.initial_state) add("dinitial_state", *p.initial_state);
  const reference_gradients from =
      solve_gradients_by_group(p, q, asked.bits == 0 ? gradient_form::roundings : gradient_form::numbers,
                               [&](const solved_gradient& part) { rounded.find(part.name)->second.take(part, asked); });
  golden_gradients out;
  out.stopped = from.stopped;
  if (out.stopped) return out;
  out.tiers = from.tiers;
  for (auto& [name, gradient] : rounded) out.tensors.emplace(name, gradient.written(name, asked));
  return out;
}

void write_golden_gradients(const std::filesystem::path& path, const golden_gradients& from, const std::string& problem_sha256) {
  safetensors_metadata metadata{{"format", std::string(result_format)},
                                {"pass", "backward"},
                                {"path", "reference"},
                                {"kernel", "certified adjoint"},
                                {"problem_sha256", problem_sha256}};
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
