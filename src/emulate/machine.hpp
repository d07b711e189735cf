// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
//
// The emulator's core, compiled for float and double: `machine<Real>` runs one head through the stages of a plan's variant, on
// the chunk or the recurrent path. Each stage reads and writes a site and nothing else, so a planted fault can act between any
// two.
#pragma once

#include <algorithm>
#include <cmath>
#include <deque>
#include <limits>
#include <span>
#include <vector>

#include "deltaproof/number/block_format.hpp"
#include "emulate/fault.hpp"
#include "emulate/site.hpp"

namespace deltaproof::emulation_detail {

template <class Real>
class adjoint;

[[nodiscard]] inline matrix<double> widened(const matrix<double>& m) { return m; }
[[nodiscard]] inline matrix<double> widened(const matrix<float>& m) {
  return {m.rows(), m.cols(), std::vector<double>(m.entries().begin(), m.entries().end())};
}

template <class Real>
matrix<Real> narrow_copy(matrix<Real> m, const narrowing& to) {
  narrow(std::span<Real>(m.data(), m.size()), to);
  return m;
}

/// The first rows columns of a matrix with that many rows.
template <class Real>
matrix<Real> square_of(const matrix<Real>& m, std::size_t rows) {
  matrix<Real> out(rows, rows);
  for (std::size_t r = 0; r < rows; ++r) std::copy_n(m.row(r).begin(), rows, out.row(r).begin());
  return out;
}

/// c + a b. The sum begins at term `start` and wraps around.
template <class Real>
void multiply_from(product<Real> p, std::size_t start, const sum_rule& rule) {
  if (start > 0) {
    product<Real> first = p;
    first.a += start;
    first.b += start * first.b_stride;
    first.inner -= start;
    multiply(first, rule);
    p.inner = start;
  }
  multiply(p, rule);
}

/// c + a b, the terms with even numbers first: what two lanes that each add every second term keep apart until the end. Where
/// neighbours cancel, as in the inverse of repeated keys, this errs more than any other order that was tried.
template <class Real>
void multiply_in_two_lanes(product<Real> p, const sum_rule& rule) {
  const std::size_t inner = p.inner;
  const Real *const a = p.a, *const b = p.b;
  const std::size_t stride = p.a_stride;
  p.b_stride *= 2;
  std::vector<Real> every_second;
  for (const std::size_t first : {0U, 1U}) {
    p.inner = (inner + 1 - first) / 2;
    every_second.resize(p.rows * p.inner);
    for (std::size_t i = 0; i < p.rows; ++i) {
      for (std::size_t k = 0; k < p.inner; ++k) every_second[i * p.inner + k] = a[i * stride + first + 2 * k];
    }
    p.a = every_second.data();
    p.a_stride = p.inner;
    p.b = b + first * (p.b_stride / 2);
    multiply(p, rule);
  }
}

/// What a sum may come to on the way, in any order of its terms and however they are paired: the sum of those above zero, or of
/// those below it.
class partial_sums {
 public:
  void add(double term) { (term < 0 ? below_ : above_) += term; }
  /// x, or NaN where a partial sum may leave `accumulate`. An eighth of its range is left to the errors of the terms.
  template <class Real>
  [[nodiscard]] Real guarded(Real x, const format& accumulate) const {
    const double most = largest(accumulate) * 0.875;
    return above_ <= most && -below_ <= most ? x : std::numeric_limits<Real>::quiet_NaN();
  }

 private:
  double above_ = 0, below_ = 0;
};

/// The largest magnitude in a matrix whose rows are `stride` apart. NaN is passed over: a product of it is NaN anyway.
template <class Real>
[[nodiscard]] double largest_magnitude(const Real* entries, std::size_t stride, std::size_t rows, std::size_t cols) {
  Real most = 0;
  for (std::size_t i = 0; i < rows; ++i) {
    for (std::size_t j = 0; j < cols; ++j) most = std::max(most, std::abs(entries[i * stride + j]));
  }
  return static_cast<double>(most);
}

/// Whether every partial sum of c + a b is within half of what `partial_sums` allows, by the largest entries.
template <class Real>
[[nodiscard]] bool far_from_overflow(const product<Real>& p, const format& accumulate) {
  const double terms = static_cast<double>(p.inner) * largest_magnitude(p.a, p.a_stride, p.rows, p.inner) *
                       largest_magnitude(p.b, p.b_stride, p.inner, p.cols);
  return terms + largest_magnitude(p.c, p.c_stride, p.rows, p.cols) <= largest(accumulate) * 0.4375;
}

/// c + a b, or NaN where a sum may overflow in some order.
template <class Real>
void multiply_in_any_order(const product<Real>& p, const sum_rule& rule) {
  if (far_from_overflow(p, rule.accumulate)) return multiply(p, rule);
  matrix<partial_sums> sums(p.rows, p.cols);
  for (std::size_t i = 0; i < p.rows; ++i) {
    const auto row = sums.row(i);
    for (std::size_t j = 0; j < p.cols; ++j) row[j].add(static_cast<double>(p.c[i * p.c_stride + j]));
    for (std::size_t k = 0; k < p.inner; ++k) {
      const double a = static_cast<double>(p.a[i * p.a_stride + k]);
      const Real* const b = p.b + k * p.b_stride;
      for (std::size_t j = 0; j < p.cols; ++j) row[j].add(a * static_cast<double>(b[j]));
    }
  }
  multiply(p, rule);
  for (std::size_t i = 0; i < p.rows; ++i) {
    for (std::size_t j = 0; j < p.cols; ++j) {
      Real& sum = p.c[i * p.c_stride + j];
      sum = sums(i, j).guarded(sum, rule.accumulate);
    }
  }
}

/// The term at which another build may begin a sum of `inner` terms. Blocks of tensor cores are not split.
[[nodiscard]] inline std::size_t drawn_start(std::size_t inner, const sum_rule& rule, philox& draw) {
  if (inner < 2) return 0;
  if (rule.order == sum_order::tensor_core)
    return rule.block * static_cast<std::size_t>(draw.below((inner + rule.block - 1) / rule.block));
  return static_cast<std::size_t>(draw.below(inner));
}

/// Tensor cores multiply operands of at most 11 bits. Sums of wider operands are sequential.
[[nodiscard]] inline sum_rule rule_for(sum_rule rule, const format& operand, const format& accumulate) {
  rule.accumulate = accumulate;
  rule.operand = operand;
  if (rule.order == sum_order::tensor_core && (operand.precision > tf32.precision || accumulate != fp32))
    rule.order = sum_order::sequential;
  return rule;
}

/// The error of an approximate unit (exp2, rsqrt), as a share of the error that the plan allows. A unit is a function: equal
/// arguments have equal errors, which add up over the tokens of a constant gate. Its errors need not have a mean of 0. So where a
/// unit keeps its promise, all errors of a run have one sign and at least half of the allowed size: the worst case that the plan
/// permits. Where a unit is worse than promised, its errors have both signs.
class approximate_unit {
 public:
  approximate_unit(std::uint64_t seed, std::uint64_t stream, bool one_sign) : one_sign_{one_sign} {
    philox draw(seed, stream);
    key_ = draw();
    sign_ = (draw() & 1) != 0 ? -1 : 1;
  }
  /// In [-1, 1); the bits of the argument decide.
  [[nodiscard, gnu::always_inline]] float of(std::uint32_t argument) const {
    std::uint32_t x = (argument ^ static_cast<std::uint32_t>(key_)) * 0x9e3779b1U;
    x = (x ^ (x >> 15)) * 0x85ebca77U;
    x = (x ^ (x >> 13)) * 0xc2b2ae3dU;
    const float drawn = static_cast<float>(static_cast<std::int32_t>(x)) * 0x1p-31F;
    return one_sign_ ? sign_ * (0.75F + 0.25F * drawn) : drawn;
  }
  [[nodiscard, gnu::always_inline]] double of(std::uint64_t argument) const {
    return of(static_cast<std::uint32_t>(argument ^ (argument >> 32) ^ (key_ >> 32)));
  }

 private:
  std::uint64_t key_;
  float sign_;
  bool one_sign_;
};

/// One visit of a chunk. Where a plan splits a sequence into parts, the chunks before a part are run again, for its first state.
struct chunk_visit {
  std::size_t chunk = 0;
  bool kept = true;        ///< its outputs are part of the result
  bool from_zero = false;  ///< the state (the cotangent of the state) before it is 0
};
/// The visits of a run in order; `backward`: from the last chunk to the first.
[[nodiscard]] std::vector<chunk_visit> visits_of(const head_input& in, const plan_variant& plan, bool backward);

template <class Real>
class machine {
 public:
  machine(const head_input& in, const plan_variant& plan, const plan_variant& promised, const emulation_options& options)
      : site_{in, plan, promised, {}, {}, std::nullopt, {}, 0},
        options_{options},
        inexact_units_{options.noise_ulps > 0 || plan.exp2_ulps > promised.exp2_ulps},
        noise_{options.seed, 0x6e01},
        exp2_unit_{options.seed, 0x6e02, plan.exp2_ulps <= promised.exp2_ulps},
        rsqrt_unit_{options.seed, 0x6e03, plan.rsqrt_ulps <= promised.rsqrt_ulps} {
    rule_.order = options.in_any_order ? sum_order::sequential : plan.order;
    rule_.fraction_bits = plan.accumulator_bits > 0 ? plan.accumulator_bits : 25;
    rule_.block = plan.core_block;
    if (options.noise_ulps > 0) {
      const std::uint64_t bits = philox(options.seed, 0x6a7e)();
      scans_gates_ = (bits & 1) != 0;
      scales_gates_first_ = (bits & 2) != 0;
    }
    // Another build draws other random numbers for stochastic rounding.
    const std::uint64_t stream = options.cache_stream ^ (options.noise_ulps > 0 ? philox(options.seed, 0xcac4)() : 0);
    const auto open = [&](const state_cache& c) { return block_store<Real>(c.format, c.rounding, c.residual, c.seed, stream); };
    if (plan.state.cache) cache_.emplace(open(*plan.state.cache));
    if (plan.state.between_calls) calls_.emplace(open(*plan.state.between_calls));
  }

  head_output run();
  /// Appends what a backward pass reads of each chunk to `to`, from now on.
  void keep_chunks(std::vector<saved_chunk<Real>>& to) { kept_ = &to; }
  /// Appends what each chunk makes of its rows, whatever the state, to `to`: g_cumsum_log2, A, Ai, w, u and Aqk.
  void keep_rows(std::vector<chunk_state<Real>>& to) { of_rows_ = &to; }
  /// Takes what keep_rows kept of a run of the same inputs and variant, as far as the planted fault leaves it alone.
  void take_rows(const std::vector<chunk_state<Real>>& from) {
    known_ = &from;
    for (const planted_hook& h : options_.planted->code->hooks) first_change_ = std::min(first_change_, h.at);
  }

 private:
  template <class R>
  friend class adjoint;

  void load();
  void run_chunks();
  /// Runs one chunk from the current state; `kept`: its outputs are part of the result.
  void run_chunk(std::size_t first, std::size_t rows, bool kept);
  void run_tokens();
  void step_token(std::size_t t, matrix<Real>& state);
  /// Stores the state in the plan's caches and reads it back, where the plan does so after `steps` steps of the path (tokens or
  /// chunks) or `tokens` tokens; `tokens` is 0 inside a token.
  void store_state(std::size_t steps, std::size_t tokens);
  void finish();

  // Stages of a chunk.
  void begin_chunk(std::size_t first, std::size_t rows);
  void gate(chunk_state<Real>& c);
  void overlaps(chunk_state<Real>& c);
  void invert(chunk_state<Real>& c);
  void transform_keys(chunk_state<Real>& c);
  void transform_values(chunk_state<Real>& c);
  void correct(chunk_state<Real>& c);
  matrix<Real> gated_inverse(const matrix<Real>& Ai, std::span<const Real> step, const matrix<Real>& G);
  matrix<Real> residual(const matrix<Real>& v, matrix<Real> read, const matrix<Real>& G);
  void weigh(chunk_state<Real>& c);
  /// Makes q what the products read, in place: multiplied by the scale and narrowed, where the plan says so.
  void scale_query(std::span<Real> q);
  [[nodiscard]] bool scales_query() const { return site_.plan.o.scale != read_scale::o; }
  void read_out(chunk_state<Real>& c);
  void update(chunk_state<Real>& c);
  void keep_stages(const chunk_state<Real>& c);
  void keep_for_backward(chunk_state<Real>& c);
  void keep_for_faults(const chunk_state<Real>& c);

  /// Decays relative to a reference, as the products of one block of A or Aqk take them: 2^(G - reference) for `rows`,
  /// 2^(reference - G) for the keys from `first` to `last`, channel by channel.
  struct decays_of_block {
    std::vector<std::size_t> rows;
    std::size_t first, last;
    std::vector<Real> reference;
    matrix<Real> left, right;
  };
  /// Decays within the chunk at hand: several of its stages take the same.
  struct kept_decays {
    matrix<Real> of;                      ///< sums of gates
    matrix<Real> channels;                ///< the same, transposed
    std::vector<std::vector<Real>> rows;  ///< of a gate of channels: between a row and those of its block, channel by channel
    std::vector<Real> pairs;              ///< of a gate of heads
    matrix<Real> from_start;              ///< 2^G
    std::deque<decays_of_block> blocks;
  };
  /// Those of G, as far as they were computed before.
  kept_decays& decays_of(const matrix<Real>& G);
  const matrix<Real>& decays_from_start(const matrix<Real>& G);
  const decays_of_block& decays_by_reference(const matrix<Real>& G, std::span<const std::size_t> rows, std::size_t first,
                                             std::size_t last, const std::vector<Real>& reference);
  /// Of a gate of heads: the decay from row j to row i, for all j <= i, at i (i + 1) / 2 + j.
  std::span<const Real> decays_of_pairs(const matrix<Real>& G);
  /// x_i . k_j times the decay between the rows: row i of x belongs to row `row_of[i]` of k, and j runs below `columns[i]`.
  matrix<Real> decayed_products(const matrix<Real>& x, const std::vector<std::size_t>& row_of,
                                const std::vector<std::size_t>& columns, const matrix<Real>& k, const matrix<Real>& G,
                                const narrowing& operand, format accumulate, const std::optional<format>& store);

  /// m rounded to `operand`: m itself where it was stored in that format. Not where a fault is planted: it may have put other
  /// values there.
  const matrix<Real>& as_operand(const matrix<Real>& m, const format& stored, const narrowing& operand, matrix<Real>& own) const {
    return stored == operand.to && options_.planted == nullptr ? m : own = narrow_copy(m, operand);
  }
  /// Ai as it is multiplied, as many columns as rows.
  const matrix<Real>& inverse_operand(const chunk_state<Real>& c, const narrowing& operand, matrix<Real>& own) const {
    const auto& inverse = site_.plan.inverse;
    if (c.Ai.cols() == c.rows) return as_operand(c.Ai, inverse.read.value_or(inverse.store), operand, own);
    return own = narrow_copy(square_of(c.Ai, c.rows), operand);
  }
  [[nodiscard]] sum_rule sums(const format& operand, const format& accumulate) const {
    return rule_for(rule_, operand, accumulate);
  }
  /// c + a b as another build computes it: the sum begins at a drawn term, and is disturbed as options_.noise_ulps says.
  void accumulate(product<Real> p, const sum_rule& rule);
  /// a b; every entry of both is a value of `operand`.
  matrix<Real> times(const matrix<Real>& a, const matrix<Real>& b, const format& operand, const format& accumulate);
  /// Where options_.noise_ulps is above 1: changes each sum by up to that many ulps.
  void disturb(std::span<Real> sums);
  /// Adds the errors of an approximate unit to y = 2^exponents, within the variant's exp2_ulps.
  void unit_errors(std::span<Real> y, std::span<const Real> exponents);
  [[nodiscard]] Real exp2_of(Real x);
  void exp2_of_all(std::span<Real> x);  ///< each entry of x by exp2_of
  /// x, clipped if the plan clips exponents; `unit` is a natural logarithm of 1 in the units of x.
  [[nodiscard]] Real clipped(Real x, Real unit) const;
  /// The format in which rows of k are read.
  [[nodiscard]] format key_format() const;
  /// Multiplies a row of format `of_row` by the step, and rounds to the wider of the two formats.
  void step_row(std::span<Real> row, Real step, const format& of_row) const;
  /// Multiplies entry c of the row by 2^(to_c - from_c). An empty `from` is 0. A gate without channels has one number for the
  /// row.
  void decay_row(std::span<Real> row, std::span<const Real> to, std::span<const Real> from);
  [[nodiscard]] Real exp_of(Real x);
  void see(formed what, Real x) {
    double& most = range_[static_cast<std::size_t>(what)];
    const double size = std::fabs(static_cast<double>(x));
    if (!(size <= most)) most = most != most ? most : size;
  }
  void see(formed what, const matrix<Real>& m) {
    for (const Real x : m.entries()) see(what, x);
  }

  /// Runs one stage, with the planted fault before it (it changes what this stage reads, and no other) or after it.
  template <class Compute, class Keep>
  void stage(step_kind which, const Compute& compute, const Keep& keep);
  void planted(step_kind which, bool input, chunk_state<Real>& c);

  site<Real> site_;
  emulation_options options_;
  // Without noise, and with units as good as promised, a run depends on its inputs alone, not on how chunks or calls divide them.
  bool inexact_units_;
  philox noise_;
  approximate_unit exp2_unit_, rsqrt_unit_;
  // A plan does not say how gates are summed: row by row or by a parallel scan, and multiplied by 1/ln 2 before or after.
  bool scans_gates_ = false;
  bool scales_gates_first_ = false;
  sum_rule rule_;
  std::optional<block_store<Real>> cache_, calls_;
  range_seen range_{};
  std::vector<Real> exponents_;  // scratch of exp2_of_all
  std::vector<Real> decays_;     // scratch of decay_row
  kept_decays kept_decays_;
  Real largest_exponent_ = 0;  // of the gates; computed so often that `see` would cost more than the exponential
  Real largest_factor_ = 0;
  head_output out_;
  std::vector<saved_chunk<Real>>* kept_ = nullptr;
  std::vector<chunk_state<Real>>* of_rows_ = nullptr;
  const std::vector<chunk_state<Real>>* known_ = nullptr;
  step_kind first_change_ = step_kind::token;  // by the planted fault
};

extern template class machine<float>;
extern template class machine<double>;

}  // namespace deltaproof::emulation_detail
