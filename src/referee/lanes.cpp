// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
#include "referee/lanes.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <span>
#include <utility>

#include "support/sums.hpp"
#include "support/widest_vectors.hpp"

namespace deltaproof::referee_detail {

namespace {

std::size_t row_of(const problem& p, const lane& at, std::size_t t) {
  return ((at.range.batch * p.tokens() + at.range.first_token + t) * p.value_heads() + at.head) * p.value_dim();
}
std::size_t state_of(const problem& p, const lane& at) {
  return (at.sequence * p.value_heads() + at.head) * p.key_dim() * p.value_dim();
}

/// x - exact, the values from `first` on: as `distance` of each.
void subtract(std::span<double> x, const reference_tensor& truth, std::size_t first) {
  const auto minus = [&](const std::vector<double>& part) {
    for (std::size_t i = 0; i < x.size(); ++i) x[i] -= part[first + i];
  };
  minus(truth.value);
  for (const auto& low : truth.low) minus(low);
}

/// got - exact, with the low part of the reference.
double distance(double got, const reference_tensor& truth, std::size_t i) {
  double e = got - truth.value[i];
  for (const auto& low : truth.low) e -= low[i];
  return e;
}

}  // namespace

std::string place_text(const judged_statistic& s) {
  std::string text = s.tensor + " at sequence " + std::to_string(s.sequence) + ", " + detail::head_text(s.tensor, s.head);
  const bool is_state = s.tensor == "final_state" || s.tensor == "dinitial_state";
  const auto add = [&text](const char* what, std::size_t first, std::size_t last) {
    text += std::string(", ") + what + " " + std::to_string(first) + "-" + std::to_string(last - 1);
  };
  if (s.worst) {
    add(is_state ? "rows" : "tokens", s.worst->first_row, s.worst->last_row);
    if (s.worst->last_column > 1) add("columns", s.worst->first_column, s.worst->last_column);
  } else if (!is_state) {
    add("tokens", s.first_token, s.last_token);
  }
  return text;
}

std::vector<bucket> buckets(std::size_t tokens, std::size_t unit) {
  std::vector<bucket> out;
  for (std::size_t first = 0, last = unit; first < tokens; first = last, last *= 2)
    out.push_back({first, std::min(last, tokens)});
  return out;
}

std::vector<lane> lanes_of(const problem& p, const result& r, const std::vector<bool>& skip_o,
                           const std::vector<bool>& skip_state) {
  std::vector<lane> out;
  const auto sequences = p.sequences();
  for (std::size_t s = 0; s < sequences.size(); ++s) {
    for (std::size_t h = 0; h < p.value_heads(); ++h) {
      lane at{s, h, sequences[s], sequences[s].tokens, r.final_state.has_value()};
      if (!skip_o.empty()) {
        at.judged = 0;
        while (at.judged < at.range.tokens && !skip_o[row_of(p, at, at.judged)]) ++at.judged;
      }
      if (at.state && !skip_state.empty() && skip_state[state_of(p, at)]) at.state = false;
      out.push_back(at);
    }
  }
  return out;
}

std::size_t early_end(const lane& at, std::size_t unit) {
  if (!at.stays_in_range()) return 0;
  std::size_t end = 0;
  for (const bucket& b : buckets(at.judged, unit)) end = b.last <= at.judged / 8 ? b.last : end;
  return end;
}

std::size_t few_runs(const lane& at, std::size_t unit) {
  const std::size_t end = early_end(at, unit);
  if (end == 0) return 0;
  const std::size_t places = buckets(end, unit).size() + (at.state ? 1 : 0);
  return 1 + (near_pool_degrees + places - 1) / places;
}

lane_errors errors_of_result(const problem& p, const result& r, const reference& truth, const lane& at) {
  lane_errors out{matrix<double>(at.range.tokens, p.value_dim()), matrix<double>()};
  for (std::size_t t = 0; t < at.range.tokens; ++t) {
    const std::size_t from = row_of(p, at, t);
    const auto row = out.o.row(t);
    r.o.read(from, row);
    subtract(row, truth.o, from);
  }
  if (!at.state) {
    leave_out(at, out.o, out.state);
    return out;
  }
  const std::size_t K = p.key_dim(), V = p.value_dim(), from = state_of(p, at);
  std::vector<double> stored(K * V);
  r.final_state->read(from, stored);
  out.state = matrix<double>(K, V);
  const bool vk = r.state_layout == layout_kind::vk;
  for (std::size_t i = 0; i < K; ++i) {
    for (std::size_t j = 0; j < V; ++j)
      out.state(i, j) = distance(stored[vk ? j * K + i : i * V + j], truth.final_state, from + i * V + j);
  }
  leave_out(at, out.o, out.state);
  return out;
}

void leave_out(const lane& at, matrix<double>& o, matrix<double>& state) {
  for (std::size_t i = 0; i < std::min(o.size(), at.left_out_o.size()); ++i) o.data()[i] = at.left_out_o[i] ? 0 : o.data()[i];
  for (std::size_t i = 0; i < std::min(state.size(), at.left_out_state.size()); ++i)
    state.data()[i] = at.left_out_state[i] ? 0 : state.data()[i];
}

std::size_t finite_tokens(const matrix<double>& o) {
  const auto is_finite = [&](std::size_t t) {
    const auto row = o.row(t);
    return std::all_of(row.begin(), row.end(), [](double x) { return std::isfinite(x); });
  };
  std::size_t t = o.rows();
  while (t > 0 && !is_finite(t - 1)) --t;
  return t;
}

lane_errors errors_of_run(const problem& p, head_output run, const reference& truth, const lane& at) {
  lane_errors out{std::move(run.o), matrix<double>()};
  for (std::size_t t = 0; t < out.o.rows(); ++t) subtract(out.o.row(t), truth.o, row_of(p, at, t));
  if (at.state && out.o.rows() >= at.range.tokens) {
    out.state = std::move(run.final_state);
    subtract(out.state.entries(), truth.final_state, state_of(p, at));
  }
  leave_out(at, out.o, out.state);
  return out;
}

std::size_t unit_of(const plan_variant& v, std::size_t steps_per_token) {
  return v.path == path_kind::chunk ? std::max<std::size_t>(1, v.chunk / steps_per_token) : 64;
}

format narrowest_operand(const plan_variant& v) {
  format narrowest = v.o.operand.to;
  const auto consider = [&](const format& f) {
    if (f.precision < narrowest.precision) narrowest = f;
  };
  consider(v.state.store.to);
  consider(v.v_new.update_operand.to);
  if (v.path == path_kind::chunk) {
    for (const auto& x : {v.A.operand, v.u.operand, v.w.operand}) consider(x.to);
  }
  return narrowest;
}

lane_errors errors_on_given_inputs(const problem& p, const head_input& in, const plan_variant& variant, std::uint64_t seed,
                                   const reference& truth, const lane& at, range_seen* range) {
  emulation_options options;
  options.noise_ulps = 1;
  options.seed = seed;
  head_output run = emulate_head(in, variant, options);
  if (range != nullptr) *range = run.range;
  return errors_of_run(p, std::move(run), truth, at);
}

namespace {

/// Whether the recurrence in fp32 may stand for the exact one. It rounds each decay and each key alike at every token, so after n
/// tokens it may be n 2^-24 of its values off: in each stretch of tokens, and in the state, the run must err by eight times that,
/// and by 2^-14 at least. A stretch has 64 tokens, or as many as the first bucket if that has fewer, because the
/// run may err less there. Not where something is infinite or NaN, or too small for the full precision of fp32.
bool dwarfs_fp32(const head_output& run, const head_output& truth, std::size_t unit, std::size_t steps_per_token) {
  const auto large = [&](const double* got, const double* value, std::size_t count, std::size_t tokens) {
    const double share = std::max(0x1p-14, static_cast<double>(tokens * steps_per_token) * 0x1p-21);
    double errors = 0, values = 0;
    for (std::size_t i = 0; i < count; ++i) {
      errors += (got[i] - value[i]) * (got[i] - value[i]);
      values += value[i] * value[i];
    }
    return errors >= share * share * values && values >= 0x1p-200 * static_cast<double>(count) && errors < infinity;
  };
  const std::size_t tokens = run.o.rows(), cols = run.o.cols();
  bool all = large(run.final_state.data(), truth.final_state.data(), run.final_state.size(), tokens);
  const std::size_t stretch = std::min<std::size_t>(64, unit);
  for (std::size_t t = 0; t < tokens && all; t += stretch) {
    const std::size_t end = std::min(t + stretch, tokens);
    all = large(run.o.data() + t * cols, truth.o.data() + t * cols, (end - t) * cols, end);
  }
  return all;
}

}  // namespace

lane_errors errors_of_draw(const head_input& in, const plan_variant& variant, std::uint64_t seed, range_seen* range) {
  const head_input moved = perturbed(in, seed, narrowest_operand(variant));
  emulation_options options;
  options.noise_ulps = 1;
  options.seed = seed;
  head_output run = emulate_head(moved, variant, options);
  if (range != nullptr) *range = run.range;
  if (measured_by_fp64(variant) && narrowest_operand(variant).precision < fp32.precision) {
    const head_output truth = reference_run_in_fp32(moved);
    if (dwarfs_fp32(run, truth, unit_of(variant, in.steps_per_token), in.steps_per_token))
      return run_less_truth(std::move(run), truth);
  }
  if (measured_by_fp64(variant)) return run_less_truth(std::move(run), reference_run(moved));
  head_output e = error_of_wide_run(moved, run);
  return {std::move(e.o), std::move(e.final_state)};
}

lane_errors run_less_truth(head_output run, const head_output& truth) {
  lane_errors out{std::move(run.o), std::move(run.final_state)};
  for (std::size_t i = 0; i < out.o.size(); ++i) out.o.data()[i] -= truth.o.data()[i];
  for (std::size_t i = 0; i < out.state.size(); ++i) out.state.data()[i] -= truth.final_state.data()[i];
  return out;
}

void add_norms(const double* from, std::size_t count, lane_norms& to) {
  // Magnitudes are ordered as their bits are; what is not finite lies above all.
  std::uint64_t bits = 0;
  detail::in_widest_vectors([&]() __attribute__((always_inline)) {
    std::uint64_t most = 0;
    for (std::size_t i = 0; i < count; ++i) most = std::max(most, std::bit_cast<std::uint64_t>(std::fabs(from[i])));
    bits = most;
  });
  const double largest = std::bit_cast<double>(bits);
  const bool finite = std::isfinite(largest);
  // Scaled: squares of errors may leave the range of fp64 where the errors do not.
  const double squares = detail::quick_sum(finite && largest > 0 ? count : 0, [=](std::size_t i) __attribute__((always_inline)) {
    const double x = from[i] / largest;
    return x * x;
  });
  to.rms.push_back(!finite ? infinity : count == 0 ? 0 : largest * std::sqrt(squares / static_cast<double>(count)));
  to.max.push_back(finite ? largest : infinity);
}

namespace {

tiling tiles_of_tokens(const std::vector<bucket>& where, std::size_t tokens, std::size_t columns) {
  return where.empty() ? tiling{} : tiling{tokens, columns, where.front().last};
}

}  // namespace

std::array<tiling, 2> tiles_of_outputs(const lane& at, const std::vector<bucket>& where, const problem& p) {
  return {tiles_of_tokens(where, at.judged, p.value_dim()), tiling{p.key_dim(), p.value_dim(), tiling::width}};
}

lane_norms norms(const lane_errors& e, const std::vector<bucket>& at, std::size_t judged) {
  lane_norms out;
  for (const bucket& b : at) {
    const std::size_t last = std::min({b.last, judged, e.o.rows()});
    add_norms(e.o.data() + b.first * e.o.cols(), last > b.first ? (last - b.first) * e.o.cols() : 0, out);
  }
  if (e.state.size() > 0) add_norms(e.state.data(), e.state.size(), out);
  out.tiles.push_back(tile_rms(tiles_of_tokens(at, std::min(judged, e.o.rows()), e.o.cols()), e.o.data()));
  if (e.state.size() > 0) out.tiles.push_back(tile_rms({e.state.rows(), e.state.cols(), tiling::width}, e.state.data()));
  return out;
}

namespace {

/// Norms of what `o` and `state`, laid out as the tensors are, say of a lane.
lane_norms norms_of_lane(const problem& p, const lane& at, const std::vector<bucket>& where, const std::vector<double>& o,
                         const std::vector<double>& state, bool finite_alone) {
  lane_errors values{matrix<double>(at.range.tokens, p.value_dim()), matrix<double>()};
  for (std::size_t t = 0; t < at.range.tokens; ++t) {
    std::copy_n(o.begin() + static_cast<std::ptrdiff_t>(row_of(p, at, t)), p.value_dim(), values.o.row(t).begin());
  }
  if (at.state) {
    values.state = matrix<double>(p.key_dim(), p.value_dim());
    std::copy_n(state.begin() + static_cast<std::ptrdiff_t>(state_of(p, at)), values.state.size(), values.state.data());
  }
  for (matrix<double>* m : {&values.o, &values.state}) {
    for (std::size_t i = 0; finite_alone && i < m->size(); ++i) m->data()[i] = std::isfinite(m->data()[i]) ? m->data()[i] : 0;
  }
  leave_out(at, values.o, values.state);
  return norms(values, where, at.judged);
}

}  // namespace

lane_norms truth_norms(const problem& p, const reference& truth, const lane& at, const std::vector<bucket>& where) {
  return norms_of_lane(p, at, where, truth.o.value, truth.final_state.value, false);
}

lane_norms radius_norms(const problem& p, const reference& truth, const lane& at, const std::vector<bucket>& where) {
  return norms_of_lane(p, at, where, truth.o.radius, truth.final_state.radius, true);
}

std::shared_ptr<const head_input> heads_read::take(std::size_t i) {
  return heads_.take(i, [&] {
    head_input in = take_head(p_, lanes_[i].sequence, lanes_[i].head);
    return in.tokens() > lanes_[i].judged ? first_tokens(in, lanes_[i].judged) : in;
  });
}

std::vector<double> truth_rms(const problem& p, const reference& truth, const lane& at, const std::vector<bucket>& where) {
  return truth_norms(p, truth, at, where).rms;
}

double seconds_of_run(const problem& p, const plan_variant& variant, std::size_t tokens) {
  const double K = static_cast<double>(p.key_dim()), V = static_cast<double>(p.value_dim()),
               C = static_cast<double>(variant.chunk);
  const double rows = static_cast<double>(tokens * p.num_householder);
  // Multiply-adds of the products of a chunk, or of a token; the reference of a draw adds 3 K V of its own. Half a
  // nanosecond each, all around them included, is on the high side and only chooses the slice, which is stated; double-doubles
  // are taken to cost twenty times that.
  const double own = variant.path == path_kind::chunk ? 2 * C * K + 2 * C * (K + V) + 3 * K * V : 3 * K * V;
  const double gates = p.gate_per_channel() ? 8 * C * K : 0;
  return rows * (own + gates + 3 * K * V) * 0.5e-9 * (measured_by_fp64(variant) ? 1 : 20);
}

}  // namespace deltaproof::referee_detail
