// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
#include "deltaproof/oracle/problem.hpp"

#include <mpfr.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "deltaproof/support/errors.hpp"
#include "support/parallel.hpp"
#include "support/text.hpp"

namespace deltaproof {
namespace detail {
namespace {

constexpr std::size_t largest_state = std::size_t{1} << 40;

struct place {
  std::string_view where;

  std::string at(std::string_view tensor_name) const {
    return std::string(where) + ": tensor " + std::string(tensor_name) + ": ";
  }

  void rank(const tensor& t, std::string_view tensor_name, std::size_t expected, std::string_view layout) const {
    if (t.rank() != expected) {
      throw shape_error(at(tensor_name) + "shape " + shape_text(t.shape()) + " has " + std::to_string(t.rank()) +
                        " dimensions; it needs " + std::to_string(expected) + ", " + std::string(layout));
    }
  }

  void shape(const tensor& t, std::string_view tensor_name, const std::vector<std::size_t>& expected,
             std::string_view layout) const {
    if (t.shape() != expected) {
      throw shape_error(at(tensor_name) + "shape " + shape_text(t.shape()) + " should be " + shape_text(expected) + ", " +
                        std::string(layout));
    }
  }

  void floating(const tensor& t, std::string_view tensor_name) const {
    if (t.is_integer())
      throw format_error(at(tensor_name) + "dtype " + t.dtype() +
                         " is not a floating-point format; store it as BF16, F16, F32 or F64");
  }
};

std::string index_text(const std::vector<std::size_t>& shape, std::size_t flat) {
  std::vector<std::size_t> index(shape.size());
  for (std::size_t axis = shape.size(); axis-- > 0;) {
    index[axis] = flat % shape[axis];
    flat /= shape[axis];
  }
  return shape_text(index);
}

constexpr std::size_t kept_blocks = 256;  // of a mapped file, while it is looked at

void require_finite(const tensor& t, std::string_view name, bool minus_infinity_is_legal, const place& in) {
  std::vector<double> block(std::min<std::size_t>(t.size(), 4096));
  for (std::size_t first = 0; first < t.size(); first += block.size()) {
    const std::size_t count = std::min(block.size(), t.size() - first);
    t.read(first, std::span(block).first(count));
    if (first % (kept_blocks * block.size()) == 0) t.forget(0, first);
    for (std::size_t i = 0; i < count; ++i) {
      const double x = block[i];
      if (std::isfinite(x) || (minus_infinity_is_legal && x < 0)) continue;
      const std::string value = std::isnan(x) ? "NaN" : x > 0 ? "+inf" : "-inf";
      throw domain_error(in.at(name) + value + " at index " + index_text(t.shape(), first + i) + "; " +
                         (minus_infinity_is_legal ? "a log decay must be a finite number or -inf" : "inputs must be finite") +
                         "; correct the program that wrote this tensor");
    }
  }
  t.forget(0, t.size());
}

void validate_offsets(const problem& p, std::string_view where) {
  if (p.cu_seqlens.empty()) return;
  const std::string here = std::string(where) + ": tensor cu_seqlens: ";
  const std::vector<std::int64_t>& offsets = p.cu_seqlens;
  if (p.batch() != 1) {
    throw shape_error(here + "packed sequences need B = 1, and q of shape " + shape_text(p.q.shape()) +
                      " has B = " + std::to_string(p.batch()) + "; pack all tokens into one batch or drop cu_seqlens");
  }
  if (offsets.size() < 2) {
    throw shape_error(here +
                      "holds a single offset, which delimits no sequence; give N + 1 offsets for N sequences, from 0 to T = " +
                      std::to_string(p.tokens()));
  }
  if (offsets.front() != 0) {
    throw domain_error(here + "starts at " + std::to_string(offsets.front()) + "; the first offset must be 0");
  }
  for (std::size_t i = 1; i < offsets.size(); ++i) {
    if (offsets[i] < offsets[i - 1]) {
      throw domain_error(here + "offset " + std::to_string(i) + " is " + std::to_string(offsets[i]) + ", below " +
                         std::to_string(offsets[i - 1]) + " before it; offsets never decrease");
    }
  }
  if (static_cast<std::uint64_t>(offsets.back()) != p.tokens()) {
    throw domain_error(here + "ends at " + std::to_string(offsets.back()) + ", and q has T = " + std::to_string(p.tokens()) +
                       " tokens; the sequences must partition them");
  }
}

void validate_gate(const problem& p, const place& in) {
  if (!p.g) return;
  if (gates_of(p.op) == gate_axes::none) {
    throw shape_error(in.at("g") + "op " + std::string(name_of(p.op)) + " has no decay, but there is a g of shape " +
                      shape_text(p.g->shape()) + "; name an op with a gate (deltaproof list ops), or leave g out");
  }
  in.floating(*p.g, "g");
  std::vector<std::size_t> shape{p.batch(), p.tokens(), p.value_heads()};
  if (gates_of(p.op) == gate_axes::channels) shape.push_back(p.key_dim());
  in.shape(*p.g, "g", shape, std::string(gate_shape(p.op)) + " for op " + std::string(name_of(p.op)));
  require_finite(*p.g, "g", true, in);
}

/// Sequences without tokens, and states of them, cost a file nothing or 8 bytes each; heads and keys of them are free.
void require_paid_for(const problem& p, const place& in) {
  constexpr double free_heads = 0x1p20, free_states = 0x1p28;
  const auto real = [](std::size_t n) { return static_cast<double>(n); };
  const double sequences = std::max(real(p.batch()), real(p.sequence_count())), heads = sequences * real(p.value_heads());
  const double tokens = real(p.batch()) * real(p.tokens()) * real(p.value_heads());
  if (heads > free_heads && heads > 64 * (tokens + real(p.cu_seqlens.size()))) {
    throw shape_error(
        std::string(in.where) + ": " + std::to_string(p.sequence_count()) + " sequences of " + std::to_string(p.value_heads()) +
        " heads, nearly all of them empty; at most 2^20 pairs of sequence and head may be empty: leave empty sequences out, or "
        "split the problem");
  }
  const double states = heads * real(p.key_dim()) * real(p.value_dim());
  const double keys = real(p.batch()) * real(p.steps()) * real(p.key_heads()) * real(p.key_dim());
  const double elements = tokens * (real(p.value_dim()) + 1) + keys;
  const double given = p.initial_state ? states : 0;
  if (states > free_states && states > 4096 * (elements + given)) {
    throw shape_error(
        std::string(in.where) + ": a state of " + std::to_string(p.sequence_count()) + " x " + std::to_string(p.value_heads()) +
        " x " + std::to_string(p.key_dim()) + " x " + std::to_string(p.value_dim()) +
        " has more than 2^28 elements, and more than 4096 times as many as the inputs; use fewer sequences or heads, or smaller "
        "K and V");
  }
}

void validate_dimensions(const problem& p, const place& in) {
  const auto positive = [&](std::string_view tensor_name, std::string_view dimension, const tensor& t, std::size_t axis) {
    if (t.shape()[axis] == 0) {
      throw shape_error(in.at(tensor_name) + "shape " + shape_text(t.shape()) + " has " + std::string(dimension) +
                        " = 0; it must be at least 1");
    }
  };
  positive("q", "B", p.q, 0);
  positive("q", "H", p.q, 2);
  positive("q", "K", p.q, 3);
  positive("v", "HV", p.v, 2);
  positive("v", "V", p.v, 3);
  if (p.value_heads() % p.key_heads() != 0) {
    throw shape_error(in.at("v") + "HV = " + std::to_string(p.value_heads()) + " is not a multiple of H = " +
                      std::to_string(p.key_heads()) + " of q; each head of q and k serves HV/H heads of v");
  }
  if (p.num_householder == 0) {
    throw domain_error(std::string(in.where) + ": num_householder is 0; a token takes at least 1 step");
  }
  if (p.tokens() > std::numeric_limits<std::size_t>::max() / p.num_householder) {
    throw shape_error(std::string(in.where) + ": T = " + std::to_string(p.tokens()) + " times num_householder = " +
                      std::to_string(p.num_householder) + " is too large; num_householder is the number of steps of one token");
  }
  // Shapes without elements cost a file nothing, so without this a few bytes could ask for any amount of memory.
  const std::vector<std::size_t> state{std::max(p.batch(), p.sequence_count()), p.value_heads(), p.key_dim(), p.value_dim()};
  std::size_t room = largest_state;
  for (const std::size_t n : state) room /= n;
  if (room == 0) {
    throw shape_error(std::string(in.where) + ": a state of shape [N, HV, K, V] = " + shape_text(state) +
                      " has more than 2^40 elements; split the problem");
  }
  require_paid_for(p, in);
}

}  // namespace
}  // namespace detail

double default_scale(std::size_t key_dim) {
  mpfr_t x;
  mpfr_init2(x, 64);
  mpfr_set_ui(x, key_dim, MPFR_RNDN);
  mpfr_t root;
  mpfr_init2(root, std::numeric_limits<double>::digits);
  mpfr_rec_sqrt(root, x, MPFR_RNDN);
  const double result = mpfr_get_d(root, MPFR_RNDN);
  mpfr_clear(root);
  mpfr_clear(x);
  return result;
}

std::vector<sequence_range> problem::sequences() const {
  std::vector<sequence_range> result;
  result.reserve(sequence_count());
  if (cu_seqlens.empty()) {
    for (std::size_t b = 0; b < batch(); ++b) result.push_back({b, 0, tokens()});
    return result;
  }
  for (std::size_t i = 0; i + 1 < cu_seqlens.size(); ++i) {
    const auto first = static_cast<std::size_t>(cu_seqlens[i]);
    result.push_back({0, first, static_cast<std::size_t>(cu_seqlens[i + 1]) - first});
  }
  return result;
}

sequence_range sequence_at(const problem& p, std::size_t index) {
  if (index >= p.sequence_count()) {
    throw domain_error("sequence_at: there is no sequence " + std::to_string(index) + "; the problem has " +
                       std::to_string(p.sequence_count()) + ", counted from 0");
  }
  if (p.cu_seqlens.empty()) return {index, 0, p.tokens()};
  const auto first = static_cast<std::size_t>(p.cu_seqlens[index]);
  return {0, first, static_cast<std::size_t>(p.cu_seqlens[index + 1]) - first};
}

namespace detail {
namespace {

constexpr int gate_bits = 96;  // 2^-90 for x of any size that matters

/// softplus(x) = ln(1 + e^x); beyond 200 it is x to more than gate_bits.
void softplus(mpfr_ptr x) {
  if (mpfr_cmp_ui(x, 200) > 0) return;
  mpfr_exp(x, x, MPFR_RNDN);
  mpfr_log1p(x, x, MPFR_RNDN);
}

void validate_raw(const problem& p, const raw_gate& raw, const place& in) {
  const std::size_t heads = p.value_heads(), keys = p.key_dim();
  const bool channels = gates_of(p.op) == gate_axes::channels;
  const std::string for_op = " for op " + std::string(name_of(p.op));
  if (gates_of(p.op) == gate_axes::none)
    throw shape_error(in.at("g") + "op " + std::string(name_of(p.op)) + " has no decay; drop gate_activation");
  std::vector<std::size_t> shape{p.batch(), p.tokens(), heads}, bias{heads};
  if (channels) {
    shape.push_back(keys);
    bias.push_back(keys);
  }
  in.floating(raw.x, "g");
  in.shape(raw.x, "g", shape, std::string(gate_shape(p.op)) + for_op);
  in.floating(raw.rate, "A_log");
  in.shape(raw.rate, "A_log", {heads}, "[HV]");
  require_finite(raw.x, "g", false, in);
  require_finite(raw.rate, "A_log", false, in);
  if (raw.bias) {
    in.floating(*raw.bias, "dt_bias");
    in.shape(*raw.bias, "dt_bias", bias, (channels ? "[HV, K]" : "[HV]") + for_op);
    require_finite(*raw.bias, "dt_bias", false, in);
  }
  if (raw.activation == gate_kind::bounded && !(std::isfinite(raw.lower_bound) && raw.lower_bound < 0)) {
    throw domain_error(std::string(in.where) + ": gate_lower_bound is " + shortest(raw.lower_bound) +
                       "; with gate_activation = bounded it is the least log decay, a finite number below 0");
  }
  if (p.has_cotangents()) {
    throw domain_error(std::string(in.where) +
                       ": gradients through gate_activation are not computed; give the log decays themselves as g, without "
                       "gate_activation, or leave do and dfinal_state out");
  }
}

}  // namespace
}  // namespace detail

tensor gate_of(const problem& p, const raw_gate& raw, std::string_view where) {
  detail::validate_raw(p, raw, detail::place{where});
  const std::size_t channels = gates_of(p.op) == gate_axes::channels ? p.key_dim() : 1, width = p.value_heads() * channels;
  const std::vector<double> x = raw.x.to_doubles(), rates = raw.rate.to_doubles();
  const std::vector<double> bias = raw.bias ? raw.bias->to_doubles() : std::vector<double>(width, 0.0);
  std::vector<double> g(x.size());
  const std::size_t rows = width == 0 ? 0 : x.size() / width;
  parallel_for(rows, 0, [&](std::size_t row) {
    mpfr_t y, rate;
    mpfr_inits2(detail::gate_bits, y, rate, static_cast<mpfr_ptr>(nullptr));
    for (std::size_t i = 0; i < width; ++i) {
      mpfr_set_d(rate, rates[i / channels], MPFR_RNDN);
      mpfr_exp(rate, rate, MPFR_RNDN);
      mpfr_set_d(y, x[row * width + i], MPFR_RNDN);
      mpfr_add_d(y, y, bias[i], MPFR_RNDN);
      if (raw.activation == gate_kind::softplus) {
        detail::softplus(y);
        mpfr_mul(y, y, rate, MPFR_RNDN);
        mpfr_neg(y, y, MPFR_RNDN);
      } else {
        mpfr_mul(y, y, rate, MPFR_RNDN);
        mpfr_neg(y, y, MPFR_RNDN);
        mpfr_exp(y, y, MPFR_RNDN);
        mpfr_add_ui(y, y, 1, MPFR_RNDN);
        mpfr_d_div(y, raw.lower_bound, y, MPFR_RNDN);
      }
      g[row * width + i] = mpfr_get_d(y, MPFR_RNDN);
    }
    mpfr_clears(y, rate, static_cast<mpfr_ptr>(nullptr));
  });
  return tensor::from_doubles(fp64, raw.x.shape(), g, "g");
}

void validate(const problem& p, std::string_view where) {
  const detail::place in{where};
  in.rank(p.q, "q", 4, "[B, T, H, K]");
  in.rank(p.v, "v", 4, "[B, T*n, HV, V]");
  detail::validate_dimensions(p, in);
  const std::size_t batch = p.batch();
  const std::size_t heads = p.value_heads();
  const std::string n = " and n = num_householder = " + std::to_string(p.num_householder);
  in.shape(p.k, "k", {batch, p.steps(), p.key_heads(), p.key_dim()}, "[B, T*n, H, K] with B, T, H, K of q" + n);
  in.shape(p.v, "v", {batch, p.steps(), heads, p.value_dim()}, "[B, T*n, HV, V] with B, T of q" + n);
  in.shape(p.beta, "beta", {batch, p.steps(), heads}, "[B, T*n, HV] with HV of v" + n);
  in.floating(p.q, "q");
  if (p.q.dtype().starts_with("F8")) {
    throw format_error(in.at("q") + "dtype " + p.q.dtype() + " is not one of BF16, F16, F32, F64");
  }
  if (p.k.dtype() != p.q.dtype() || p.v.dtype() != p.q.dtype()) {
    throw format_error(std::string(where) + ": q is " + p.q.dtype() + ", k is " + p.k.dtype() + " and v is " + p.v.dtype() +
                       "; they must share one dtype: store each tensor as the kernel was given it");
  }
  in.floating(p.beta, "beta");
  detail::validate_offsets(p, where);
  if (p.initial_state) {
    in.floating(*p.initial_state, "initial_state");
    in.shape(*p.initial_state, "initial_state", {p.sequence_count(), heads, p.key_dim(), p.value_dim()}, "[N, HV, K, V]");
    detail::require_finite(*p.initial_state, "initial_state", false, in);
  }
  if (p.d_o) {
    in.floating(*p.d_o, "do");
    in.shape(*p.d_o, "do", {batch, p.tokens(), heads, p.value_dim()}, "[B, T, HV, V]");
    detail::require_finite(*p.d_o, "do", false, in);
  }
  if (p.d_final_state) {
    in.floating(*p.d_final_state, "dfinal_state");
    in.shape(*p.d_final_state, "dfinal_state", {p.sequence_count(), heads, p.key_dim(), p.value_dim()}, "[N, HV, K, V]");
    detail::require_finite(*p.d_final_state, "dfinal_state", false, in);
  }
  if (p.raw) detail::validate_raw(p, *p.raw, in);
  detail::validate_gate(p, in);
  detail::require_finite(p.q, "q", false, in);
  detail::require_finite(p.k, "k", false, in);
  detail::require_finite(p.v, "v", false, in);
  detail::require_finite(p.beta, "beta", false, in);
  // Smaller ones are lost beside the bounds of the reference, whose sums of squares reach down to 2^-960.
  constexpr double least_epsilon = 1e-30;
  if (!(p.l2norm_epsilon >= least_epsilon && p.l2norm_epsilon < 1)) {
    throw domain_error(std::string(where) + ": l2norm_eps is " + detail::shortest(p.l2norm_epsilon) +
                       "; give the number that the kernel adds to the sum of squares, from 1e-30 to below 1");
  }
  if (!std::isfinite(p.scale)) {
    throw domain_error(std::string(where) + ": scale is " + std::to_string(p.scale) + "; it must be a finite number");
  }
}

}  // namespace deltaproof
