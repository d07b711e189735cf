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
  const overflow_runs all(p, r, threads, stop);
  if (r.has_outputs()) all.run(plan, false, out);
  if (!r.gradients.empty() && p.has_cotangents()) {
    all.run(plan.backward.stated ? plan : everything_wide(r), true, out);
  }
  all.spread(out);
  return out;
}

}  // namespace deltaproof
