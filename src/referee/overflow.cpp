// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
#include "deltaproof/referee/overflow.hpp"

#include <algorithm>
#include <cmath>
#include <optional>
#include <span>

#include "deltaproof/emulate/emulate_gradients.hpp"
#include "support/parallel.hpp"

namespace deltaproof {

namespace {

/// Every tensor of one pass of a run, final_state in (K, V) order.
std::map<std::string, tensor, std::less<>> tensors_of(const result& run, bool gradients) {
  std::map<std::string, tensor, std::less<>> out;
  if (!gradients) out.emplace("o", run.o);
  if (!gradients && run.final_state) out.emplace("final_state", *run.final_state_kv());
  for (const auto* tensors : {&run.stages, &run.gradients, &run.backward_stages}) {
    for (const auto& [name, t] : *tensors) {
      if ((tensors != &run.stages) == gradients) out.emplace(name, t);
    }
  }
  return out;
}

/// The value heads of a sequence that an element of a tensor is made of, as one number each: sequence * HV + head.
class head_numbers {
 public:
  explicit head_numbers(const problem& p, std::size_t chunk) : heads_{p.value_heads()}, of_token_(p.batch() * p.tokens()) {
    const auto sequences = p.sequences();
    for (std::size_t s = 0; s < sequences.size(); ++s) {
      const sequence_range& range = sequences[s];
      const std::size_t rows = range.tokens * p.num_householder;
      std::fill_n(of_token_.begin() + static_cast<std::ptrdiff_t>(range.batch * p.tokens() + range.first_token), range.tokens, s);
      if (chunk > 0) of_chunk_.insert(of_chunk_.end(), rows / chunk + (rows % chunk != 0 ? 1 : 0), s);
    }
  }
  /// visit(element, number) for each of them. `state`: one for each sequence, or one for each chunk, where it has five axes.
  template <class Visit>
  void for_each(const tensor& t, bool state, const Visit& visit) const {
    const std::vector<std::size_t>& shape = t.shape();
    if (t.size() == 0) return;
    const std::size_t axis = state ? 1 : 2, each = heads_ / shape[axis];
    std::size_t inner = 1, positions = 1;
    for (std::size_t i = 0; i < shape.size(); ++i) (i > axis ? inner : positions) *= i == axis ? 1 : shape[i];
    const std::size_t rows = state || shape.size() == 5 ? 1 : positions / of_token_.size();
    for (std::size_t i = 0; i < t.size(); ++i) {
      const std::size_t head = i / inner % shape[axis], position = i / inner / shape[axis] / rows;
      const std::size_t sequence = state ? position : shape.size() == 5 ? of_chunk_[position] : of_token_[position];
      for (std::size_t h = head * each; h < (head + 1) * each; ++h) visit(i, sequence * heads_ + h);
    }
  }

 private:
  std::size_t heads_;
  std::vector<std::size_t> of_token_, of_chunk_;
};

bool is_state(std::string_view tensor) { return tensor == "final_state" || tensor == "dinitial_state"; }

/// Adds what is not finite in `guarded` though it is in `plain`, where there is such a run, in heads that are `near`.
void add(const result& guarded, const std::optional<result>& plain, bool gradients, const head_numbers& heads,
         const std::vector<bool>& near, overflow_places& to) {
  const auto in_one_order = plain ? tensors_of(*plain, gradients) : std::map<std::string, tensor, std::less<>>();
  for (const auto& [name, t] : tensors_of(guarded, gradients)) {
    const std::vector<double> values = t.to_doubles(),
                              others = plain ? in_one_order.find(name)->second.to_doubles() : std::vector<double>();
    heads.for_each(t, is_state(name), [&, &name = name](std::size_t i, std::size_t head) {
      if (!near[head] || std::isfinite(values[i]) || (plain && !std::isfinite(others[i]))) return;
      std::vector<bool>& places = to.tensors[name];
      if (places.empty()) places.assign(values.size(), false);
      places[i] = true;
    });
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

double largest_of(std::span<const double> values) {
  double largest = 0;
  for (const double x : values) largest = std::max(largest, std::isnan(x) ? 0.0 : std::fabs(x));
  return largest;
}
double largest_of(const matrix<double>& m) { return largest_of(m.entries()); }

/// Whether a sum of what the recurrence of a head forms comes near the end of the range, by its largest numbers in fp64. Where
/// none does, the form that the plan gives it makes the infinity, as e^-G of a strong gate does: that is the plan's doing.
bool comes_near_the_end(const problem& p, std::size_t sequence, std::size_t head, bool gradients, double terms, double end) {
  const plan exact = plan_named("fp64");
  const gradient_head own{take_head(p, sequence, head), gradients ? take_cotangents(p, sequence, head) : head_cotangents()};
  emulation_options each_token;
  each_token.in_any_order = true;
  const range_seen range = emulate_head(own.in, variants(exact, p, path_kind::recurrent, 0).front(), each_token).range;
  const double state =
      std::max({1.0, largest_of(own.in.v), largest_of(own.in.state), range[static_cast<std::size_t>(formed::state)]});
  double factor = std::max({1.0, largest_of(own.in.q), largest_of(own.in.k)});
  if (gradients) {
    const group_gradients run = emulate_group_gradients({&own, 1}, gradient_variants(exact, p, path_kind::recurrent, 0).front());
    const head_gradients& d = run.heads.front();
    factor = std::max({factor, largest_of(own.d.d_o), largest_of(own.d.d_final_state), largest_of(run.dq), largest_of(run.dk),
                       largest_of(d.dv), largest_of(d.dbeta), largest_of(d.dg), largest_of(d.dinitial_state)});
  }
  return !(state * factor * terms * 256 < end);
}

/// Of each head of each sequence; none once the search is told to stop.
std::vector<bool> near_the_end(const problem& p, const result& r, double end, unsigned threads, const std::atomic<bool>* stop) {
  const bool gradients = !r.gradients.empty() && p.has_cotangents();
  const auto terms = static_cast<double>(p.key_dim() * p.value_dim() * std::max<std::size_t>(1, r.chunk_size.value_or(1)));
  std::vector<char> near(p.sequence_count() * p.value_heads(), 0);
  parallel_for(near.size(), threads, [&](std::size_t i) {
    if (stop != nullptr && stop->load(std::memory_order_relaxed)) return;
    near[i] = comes_near_the_end(p, i / p.value_heads(), i % p.value_heads(), gradients, terms, end) ? 1 : 0;
  });
  return {near.begin(), near.end()};
}

class overflow_runs {
 public:
  overflow_runs(const problem& p, std::size_t chunk, unsigned threads, const std::atomic<bool>* stop)
      : p_{p}, path_{chunk > 0 ? path_kind::chunk : path_kind::recurrent}, chunk_{chunk}, threads_{threads} {
    guarded_.in_any_order = true;
    guarded_.stages = path_ == path_kind::chunk;
    for (emulation_options* run : {&guarded_, &plain_}) run->stop = stop;
    plain_.stages = guarded_.stages;
  }

  void run(const plan& declared, bool gradients, const head_numbers& heads, const std::vector<bool>& near,
           overflow_places& to) const {
    const bool narrow = !reaches_as_far_as_fp32(declared, p_);
    const auto emulated = [&](const plan_variant& v, const emulation_options& how) {
      return gradients ? emulate_gradients(p_, v, how, threads_) : emulate(p_, v, how, threads_);
    };
    for (const plan_variant& v :
         gradients ? gradient_variants(declared, p_, path_, chunk_) : variants(declared, p_, path_, chunk_)) {
      const result guarded = emulated(v, guarded_);
      const std::optional<result> plain = narrow ? std::optional(emulated(v, plain_)) : std::nullopt;
      add(guarded, plain, gradients, heads, near, to);
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
  std::size_t chunk_;
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
  const std::size_t chunk = path_of(r) == path_kind::chunk ? r.chunk_size.value_or(0) : 0;
  const head_numbers heads(p, chunk);
  const std::vector<bool> near = near_the_end(p, r, largest(otherwise.name == "fp64" ? fp64 : fp32), threads, stop);
  if (std::find(near.begin(), near.end(), true) == near.end()) return out;
  const overflow_runs all(p, chunk, threads, stop);
  if (r.has_outputs()) all.run(plan, false, heads, near, out);
  if (!r.gradients.empty() && p.has_cotangents()) all.run(plan.backward.stated ? plan : otherwise, true, heads, near, out);
  all.spread(out);
  return out;
}

}  // namespace deltaproof
