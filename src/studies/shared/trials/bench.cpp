// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
#include "studies/shared/trials/bench.hpp"

#include <algorithm>
#include <cmath>
#include <memory>
#include <mutex>

#include "deltaproof/emulate/emulate_gradients.hpp"
#include "deltaproof/oracle/gradients.hpp"

namespace deltaproof::detail::trials {
namespace {

double rms_error(const tensor& got, const reference_tensor& want) {
  const std::vector<double> x = got.to_doubles();
  double squares = 0;
  for (std::size_t i = 0; i < x.size(); ++i) squares += (x[i] - want.value[i]) * (x[i] - want.value[i]);
  return std::sqrt(squares / static_cast<double>(std::max<std::size_t>(1, x.size())));
}

}  // namespace

result emulated(const bench& b, const trial_case& c, const plan_variant& v, const emulation_options& options) {
  result r = c.inputs.cotangents ? emulate_gradients(b.p, v, options, 1) : emulate(b.p, v, options, 1);
  r.kernel = b.declared.kernels.empty() ? b.declared.name : b.declared.kernels.front();
  r.path = c.path;
  if (c.path == path_kind::chunk) r.chunk_size = c.chunk;
  return r;
}

bench make_bench(const trial_case& c) {
  bench b;
  b.p = generate(c.inputs);
  b.declared = plan_named(c.plan);
  b.allowed =
      c.inputs.cotangents ? gradient_variants(b.declared, b.p, c.path, c.chunk) : variants(b.declared, b.p, c.path, c.chunk);
  emulation_options with_stages;
  with_stages.stages = true;
  b.correct = emulated(b, c, b.allowed.front(), with_stages);
  b.truth = solve(b.p, {});
  b.o_error = rms_error(b.correct.o, b.truth.o);
  b.state_error = rms_error(*b.correct.final_state, b.truth.final_state);
  if (c.inputs.cotangents) {
    const reference_gradients exact = solve_gradients(b.p);
    for (const auto& [name, gradient] : b.correct.gradients)
      b.gradient_errors[name] = rms_error(gradient, exact.tensors.find(name)->second);
  }
  b.options.plans = {b.declared};
  b.options.threads = 1;
  b.options.memory = make_referee_memory();
  // The inputs are the same for every result, so is the truth.
  b.options.solver = [kept = std::make_shared<std::map<double, reference>>(), lock = std::make_shared<std::mutex>()](
                         const problem& p, const question& q) {
    const std::lock_guard guard(*lock);
    const auto at = kept->find(q.relative_radius);
    return at != kept->end() ? at->second : kept->emplace(q.relative_radius, solve(p, q)).first->second;
  };
  return b;
}

}  // namespace deltaproof::detail::trials
