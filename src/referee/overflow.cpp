// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
#include "deltaproof/referee/overflow.hpp"

#include <algorithm>
#include <cmath>
#include <optional>

#include "deltaproof/emulate/emulate_gradients.hpp"

namespace deltaproof {

namespace {

using tensor_values = std::map<std::string, std::vector<double>, std::less<>>;

/// Every tensor of one pass of a run, final_state in (K, V) order.
tensor_values values_of(const result& run, bool gradients) {
  tensor_values out;
  if (!gradients) out.emplace("o", run.o.to_doubles());
  if (!gradients && run.final_state) out.emplace("final_state", run.final_state_kv()->to_doubles());
  for (const auto* tensors : {&run.stages, &run.gradients, &run.backward_stages}) {
    for (const auto& [name, t] : *tensors) {
      if ((tensors != &run.stages) == gradients) out.emplace(name, t.to_doubles());
    }
  }
  return out;
}

/// Adds what is not finite in `guarded` though it is in `plain`, where there is such a run.
void add(const result& guarded, const std::optional<result>& plain, bool gradients, overflow_places& to) {
  const tensor_values in_one_order = plain ? values_of(*plain, gradients) : tensor_values();
  for (const auto& [name, values] : values_of(guarded, gradients)) {
    for (std::size_t i = 0; i < values.size(); ++i) {
      if (std::isfinite(values[i]) || (plain && !std::isfinite(in_one_order.find(name)->second[i]))) continue;
      std::vector<bool>& places = to.tensors[name];
      if (places.empty()) places.assign(values.size(), false);
      places[i] = true;
    }
  }
}

/// Rows of a token: o, dq and dg have one, what belongs to rows of k as many as it has steps.
std::size_t steps_of(std::string_view tensor, const problem& p) {
  if (tensor == "o" || tensor == "dq" || tensor == "dg") return 1;
  return tensor == "dk" || tensor == "dv" || tensor == "dbeta" ? p.num_householder : 0;
}

/// Each column of a chunk that holds such an element has them in all of its rows.
void spread_over_chunks(const problem& p, std::size_t chunk, std::size_t steps, std::vector<bool>& places) {
  const std::size_t rows = p.batch() * p.tokens() * steps, width = rows == 0 ? 0 : places.size() / rows;
  for (const sequence_range& range : p.sequences()) {
    const std::size_t begin = (range.batch * p.tokens() + range.first_token) * steps, end = begin + range.tokens * steps;
    for (std::size_t first = begin; first < end; first += chunk) {
      const std::size_t last = std::min(first + chunk, end);
      for (std::size_t column = 0; column < width; ++column) {
        bool any = false;
        for (std::size_t row = first; row < last; ++row) any = any || places[row * width + column];
        for (std::size_t row = first; row < last && any; ++row) places[row * width + column] = true;
      }
    }
  }
}

double largest_of(const tensor& t) {
  double largest = 0;
  for (const double x : t.to_doubles()) largest = std::max(largest, std::isnan(x) ? 0.0 : std::fabs(x));
  return largest;
}

/// Whether a sum of what the recurrence itself forms comes near the end of the range, by its largest numbers in fp64. Where none
/// does, the form that the plan gives it makes the infinity, as e^-G of a strong gate does: that is the plan's doing.
bool comes_near_the_end(const problem& p, const result& r, bool wide, unsigned threads, const std::atomic<bool>* stop) {
  const plan exact = plan_named("fp64");
  const plan_variant variant = variants(exact, p, path_kind::recurrent, 0).front();
  emulation_options each_token;
  each_token.in_any_order = true;
  each_token.stop = stop;
  const auto stopped = [stop] { return stop != nullptr && stop->load(std::memory_order_relaxed); };
  double state = std::max({1.0, largest_of(p.v), p.initial_state ? largest_of(*p.initial_state) : 0.0});
  for (std::size_t s = 0; s < p.sequence_count(); ++s) {
    for (std::size_t h = 0; h < p.value_heads() && !stopped(); ++h)
      state = std::max(state, emulate_head(p, s, h, variant, each_token).range[static_cast<std::size_t>(formed::state)]);
  }
  double factor = std::max({1.0, largest_of(p.q), largest_of(p.k)});
  if (!r.gradients.empty() && p.has_cotangents()) {
    emulation_options backward;
    backward.stop = stop;
    const result run = emulate_gradients(p, gradient_variants(exact, p, path_kind::recurrent, 0).front(), backward, threads);
    for (const auto& [name, gradient] : run.gradients) factor = std::max(factor, largest_of(gradient));
    for (const auto* cotangent : {&p.d_o, &p.d_final_state})
      factor = *cotangent ? std::max(factor, largest_of(**cotangent)) : factor;
  }
  const auto terms = static_cast<double>(p.key_dim() * p.value_dim() * std::max<std::size_t>(1, r.chunk_size.value_or(1)));
  return !(state * factor * terms * 256 < largest(wide ? fp64 : fp32));
}

class overflow_runs {
 public:
  overflow_runs(const problem& p, const result& r, unsigned threads, const std::atomic<bool>* stop)
      : p_{p}, path_{path_of(r)}, threads_{threads} {
    if (path_ == path_kind::chunk && r.chunk_size.value_or(0) == 0) path_ = path_kind::recurrent;
    chunk_ = path_ == path_kind::chunk ? *r.chunk_size : 0;
    guarded_.in_any_order = true;
    guarded_.stages = path_ == path_kind::chunk;
    for (emulation_options* run : {&guarded_, &plain_}) run->stop = stop;
    plain_.stages = guarded_.stages;
  }

  void run(const plan& declared, bool gradients, overflow_places& to) const {
    const bool narrow = !reaches_as_far_as_fp32(declared, p_);
    const auto emulated = [&](const plan_variant& v, const emulation_options& how) {
      return gradients ? emulate_gradients(p_, v, how, threads_) : emulate(p_, v, how, threads_);
    };
    for (const plan_variant& v :
         gradients ? gradient_variants(declared, p_, path_, chunk_) : variants(declared, p_, path_, chunk_)) {
      const result guarded = emulated(v, guarded_);
      const std::optional<result> plain = narrow ? std::optional(emulated(v, plain_)) : std::nullopt;
      add(guarded, plain, gradients, to);
    }
  }
  void spread(overflow_places& places) const {
    if (path_ != path_kind::chunk) return;
    for (auto& [name, of_tensor] : places.tensors) {
      if (const std::size_t steps = steps_of(name, p_); steps > 0) spread_over_chunks(p_, chunk_, steps, of_tensor);
    }
  }

 private:
  const problem& p_;
  path_kind path_;
  std::size_t chunk_ = 0;
  unsigned threads_;
  emulation_options guarded_, plain_;
};

}  // namespace

plan everything_wide(const result& r) {
  bool wide = r.has_outputs() && r.o.element_format() == fp64;
  for (const auto& [name, t] : r.gradients) wide = wide || t.element_format() == fp64;
  return plan_named(wide ? "fp64" : "fp32");
}

overflow_places sums_that_may_overflow(const problem& p, const result& r, const plan& plan, unsigned threads,
                                       const std::atomic<bool>* stop) {
  overflow_places out;
  const auto otherwise = everything_wide(r);
  if (!comes_near_the_end(p, r, otherwise.name == "fp64", threads, stop)) return out;
  const overflow_runs all(p, r, threads, stop);
  if (r.has_outputs()) all.run(plan, false, out);
  if (!r.gradients.empty() && p.has_cotangents()) {
    all.run(plan.backward.stated ? plan : otherwise, true, out);
  }
  all.spread(out);
  return out;
}

}  // namespace deltaproof
