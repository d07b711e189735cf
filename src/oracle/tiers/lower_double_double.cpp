// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT

#include "oracle/tiers/lower_double_double.hpp"

#include <mpfr.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cmath>
#include <limits>
#include <span>

#include "oracle/lower_mpfr.hpp"
#include "oracle/mpfr_value.hpp"
#include "oracle/parallel.hpp"
#include "oracle/tiers/derived_pairs.hpp"
#include "oracle/tiers/fp64_rows.hpp"
#include "oracle/token_passing.hpp"

namespace deltaproof::tiers {
namespace {

constexpr int bits = 106;
constexpr std::size_t at_once = 512;        // exponentials: a multiple of eight
constexpr std::size_t least_tokens = 128;   // a thread costs more than these

/// A number of 106 bits as high + low, exactly. Returns whether it could.
bool split(const mpfr_value& x, mpfr_value& rest, double& high, double& low) {
  high = mpfr_get_d(x.get(), MPFR_RNDN);
  mpfr_sub_d(rest.get(), x.get(), high, MPFR_RNDN);
  low = mpfr_get_d(rest.get(), MPFR_RNDN);
  return mpfr_zero_p(x.get()) != 0 || std::fabs(high) >= smallest_pair;
}

/// Where one head's elements lie in the problem's tensors.
struct head_place {
  const problem& p;
  sequence_range range;
  std::size_t value_head;

  [[nodiscard]] std::size_t token(std::size_t t) const { return range.batch * p.tokens() + range.first_token + t; }
  [[nodiscard]] std::size_t row(std::size_t r) const { return range.batch * p.steps() + range.first_token * p.num_householder + r; }
  [[nodiscard]] std::size_t key(std::size_t i) const { return (i * p.key_heads() + p.key_head(value_head)) * p.key_dim(); }
  [[nodiscard]] std::size_t value(std::size_t i) const { return i * p.value_heads() + value_head; }
};

/// f(first, last) for parts of `count` tokens.
template <class F>
void in_parts(std::size_t count, unsigned threads, const F& f) {
  const std::size_t parts = std::max<std::size_t>(1, std::min<std::size_t>(threads, count / least_tokens));
  parallel_for(parts, threads, [&](std::size_t i) { f(count * i / parts, count * (i + 1) / parts); });
}

/// In units of 2^-53: the cut to the high part, and far below it the error of high + low.
void cut_to_high(double_double_head& head) {
  const auto cut = [](double pairs) { return pairs > 0 ? 1 + 0x1p-20 : 0; };
  const lowering_error& e = head.error;
  head.high.error = {cut(e.key), cut(e.query), cut(e.step), cut(e.decay), e.step_floor * 0x1p-53, e.decay_floor * 0x1p-53};
}

/// Beyond it an exponential is not one of these numbers.
constexpr double largest_exponent = 600;

/// What one gate does to the facts of its head.
void note_gate(double g, lowering_facts& facts) {
  if (g != 0 && !std::isinf(g)) facts.gates_derived = true;
  if (g > largest_exponent && !std::isinf(g)) facts.fits = false;
  if (g < -largest_exponent && !std::isinf(g)) facts.floored = true;
}

/// e^g of each gate.
void decays_of(std::span<const double> gates, double* high, double* low, lowering_facts& facts) {
  std::array<double, at_once> x, e, e_low;
  for (std::size_t first = 0; first < gates.size(); first += at_once) {
    const std::size_t n = std::min(at_once, gates.size() - first);
    const double* given = gates.data() + first;
    for (std::size_t i = 0; i < n; ++i) {
      note_gate(given[i], facts);
      x[i] = std::fabs(given[i]) <= largest_exponent ? given[i] : 0;
    }
    std::fill(x.begin() + static_cast<std::ptrdiff_t>(n), x.begin() + static_cast<std::ptrdiff_t>((n + 7) / 8 * 8), 0.0);
    exponentials(std::span<const double>(x).first((n + 7) / 8 * 8), e.data(), e_low.data());
    for (std::size_t i = 0; i < n; ++i) {
      // Nearly nothing becomes nothing, and the floor says what that leaves out.
      const bool nothing = given[i] < -largest_exponent;
      high[first + i] = given[i] == 0 ? 1 : nothing ? 0 : e[i];
      low[first + i] = given[i] == 0 || nothing ? 0 : e_low[i];
    }
  }
}

/// Tokens [first, first + count) where no rule but Euler's asks for more; the facts of these tokens come out.
lowering_facts lower_tokens(const head_place& at, std::size_t sequence_index, std::size_t first, std::size_t count, unsigned threads,
                            double_double_head& out) {
  const problem& p = at.p;
  const std::size_t n = p.num_householder, rows = count * n, K = p.key_dim(), cols = p.value_dim();
  const bool derived_step = p.beta_activation != activation_kind::none;
  const std::size_t channels = !p.g ? 0 : p.gate_per_channel() ? K : 1;
  out.high.scale = p.scale;
  auto& s = out.high.scan;
  s.tokens = count;
  s.steps_per_token = n;
  s.key_dim = K;
  s.value_dim = cols;
  s.q.resize(count * K);
  s.k.resize(rows * K);
  s.v.resize(rows * cols);
  s.step.resize(rows);
  s.decay.resize(count * channels);
  out.q_low.resize(p.qk_l2norm ? s.q.size() : 0);
  out.k_low.resize(p.qk_l2norm ? s.k.size() : 0);
  out.step_low.resize(derived_step ? rows : 0);
  out.decay_low.resize(s.decay.size());
  std::atomic<bool> fits = true, gates_derived = false, floored = false;
  in_parts(count, threads, [&](std::size_t from, std::size_t to) {
    lowering_facts facts;
    std::vector<double> x(K), room;
    const auto key = [&](const tensor& given, std::size_t place, std::size_t i, std::vector<double>& high, std::vector<double>& low) {
      if (!p.qk_l2norm) return given.read(at.key(place), std::span(high).subspan(i * K, K));
      given.read(at.key(place), x);
      if (!normalise(x, high.data() + i * K, low.data() + i * K, room)) facts.fits = false;
    };
    for (std::size_t t = from; t < to; ++t) key(p.q, at.token(first + t), t, s.q, out.q_low);
    for (std::size_t r = from * n; r < to * n; ++r) {
      const std::size_t place = at.row(first * n + r);
      key(p.k, place, r, s.k, out.k_low);
      p.v.read(at.value(place) * cols, std::span(s.v).subspan(r * cols, cols));
      s.step[r] = p.beta.at(at.value(place));
    }
    std::array<double, at_once> minus, e, e_low;
    const double top = p.beta_activation == activation_kind::two_sigmoid ? 2 : 1;
    for (std::size_t r = from * n; r < to * n && derived_step; r += at_once) {
      const std::size_t some = std::min(at_once, to * n - r);
      minus.fill(0);
      for (std::size_t i = 0; i < some; ++i) {
        const bool small = std::fabs(s.step[r + i]) <= largest_exponent;
        if (!small) facts.fits = false;
        minus[i] = small ? -s.step[r + i] : 0;
      }
      exponentials(std::span<const double>(minus).first((some + 7) / 8 * 8), e.data(), e_low.data());
      for (std::size_t i = 0; i < some; ++i) {
        const two_parts b = over_one_plus(top, e[i], e_low[i]);
        s.step[r + i] = b.high;
        out.step_low[r + i] = b.low;
      }
    }
    // Gates of a head lie apart; exponentials are made many at a time.
    std::vector<double> gates;
    for (std::size_t t = from; t < to && p.g; ++t) {
      const std::size_t some = std::min<std::size_t>(to - t, channels == 1 ? at_once : 1);
      gates.resize(some * channels);
      for (std::size_t i = 0; i < some; ++i) p.g->read(at.value(at.token(first + t + i)) * channels, std::span(gates).subspan(i * channels, channels));
      decays_of(gates, s.decay.data() + t * channels, out.decay_low.data() + t * channels, facts);
      t += some - 1;
    }
    if (!facts.fits) fits = false;
    if (facts.gates_derived) gates_derived = true;
    if (facts.floored) floored = true;
  });
  s.initial_state = first == 0 ? matrix<double>(K, cols) : matrix<double>();
  if (p.initial_state && first == 0) {
    const std::size_t base = (sequence_index * p.value_heads() + at.value_head) * K;
    for (std::size_t j = 0; j < K; ++j) p.initial_state->read((base + j) * cols, s.initial_state.row(j));
  }
  return {fits, gates_derived, floored};
}

/// The error constants of a head with these facts.
void conclude(const problem& p, const lowering_facts& facts, double_double_head& out) {
  out.error = {};
  if (p.qk_l2norm) out.error.key = out.error.query = normalised_error(p.key_dim());
  if (p.beta_activation != activation_kind::none) out.error.step = sigmoid_error;
  if (facts.floored) out.error.decay_floor = 0x1p-860 / pair_unit;
  if (facts.gates_derived) out.error.decay = exponential_error;
  if (!facts.gates_derived) out.decay_low.clear();
  out.underflowed = !facts.fits;
  cut_to_high(out);
}

/// Whether every normalised entry is large enough for its low part; the numbers of formats below 64 bits are.
bool normalises(const tensor& given, std::size_t at, std::vector<double>& x, std::vector<double>& high, std::vector<double>& low,
                std::vector<double>& room) {
  given.read(at, x);
  const bool plain = std::all_of(x.begin(), x.end(), [](double xi) { return xi == 0 || (std::fabs(xi) >= 0x1p-400 && std::fabs(xi) <= 0x1p400); });
  return plain || normalise(x, high.data(), low.data(), room);
}

/// The facts of a head, without lowering it.
lowering_facts survey(const head_place& at, unsigned threads) {
  const problem& p = at.p;
  const std::size_t n = p.num_householder, K = p.key_dim(), channels = !p.g ? 0 : p.gate_per_channel() ? K : 1;
  const bool keys = p.qk_l2norm && p.q.element_format() == fp64;
  std::atomic<bool> fits = true, gates_derived = false, floored = false;
  in_parts(at.range.tokens, threads, [&](std::size_t from, std::size_t to) {
    lowering_facts facts;
    std::vector<double> x(K), high(K), low(K), room, g(channels);
    token_passing passing(p, at.range, from);
    for (std::size_t t = from; t < to; ++t) {
      passing.through(t);
      if (keys) facts.fits = normalises(p.q, at.key(at.token(t)), x, high, low, room) && facts.fits;
      for (std::size_t r = t * n; r < (t + 1) * n; ++r) {
        if (keys) facts.fits = normalises(p.k, at.key(at.row(r)), x, high, low, room) && facts.fits;
        if (p.beta_activation != activation_kind::none && !(std::fabs(p.beta.at(at.value(at.row(r)))) <= largest_exponent)) facts.fits = false;
      }
      if (p.g) p.g->read(at.value(at.token(t)) * channels, g);
      for (const double x_g : g) note_gate(x_g, facts);
    }
    if (!facts.fits) fits = false;
    if (facts.gates_derived) gates_derived = true;
    if (facts.floored) floored = true;
  });
  return {fits, gates_derived, floored};
}

double_double_head lower_by_mpfr(const problem& p, std::size_t sequence_index, std::size_t value_head) {
  double_double_head out;
  const auto fine = lower_mpfr(p, sequence_index, value_head, bits);
  const lowering_error& e = fine.error;
  out.error = e;
  mpfr_value rest(bits);
  out.high.scale = fine.scale;
  auto& s = out.high.scan;
  s.tokens = fine.scan.tokens;
  s.steps_per_token = fine.scan.steps_per_token;
  s.key_dim = fine.scan.key_dim;
  s.value_dim = fine.scan.value_dim;
  const auto all = [&](const std::vector<mpfr_value>& from, std::vector<double>& high, std::vector<double>& low, bool derived) {
    high.resize(from.size());
    if (derived) low.resize(from.size());
    double none = 0;
    bool fits = true;
    for (std::size_t i = 0; i < from.size(); ++i) {
      const bool whole = split(from[i], rest, high[i], derived ? low[i] : none);
      fits = fits && (whole || !derived);
    }
    return fits;
  };
  std::vector<double> none;
  bool fits = all(fine.scan.q, s.q, out.q_low, e.query > 0);
  fits = all(fine.scan.k, s.k, out.k_low, e.key > 0) && fits;
  fits = all(fine.scan.step, s.step, out.step_low, e.step > 0) && fits;
  all(fine.scan.v, s.v, none, false);
  s.initial_state = matrix<double>(s.key_dim, s.value_dim);
  for (std::size_t i = 0; i < s.initial_state.size(); ++i) {
    s.initial_state.data()[i] = mpfr_get_d(fine.scan.initial_state.data()[i].get(), MPFR_RNDN);
  }
  if (!all(fine.scan.decay, s.decay, out.decay_low, e.decay > 0)) {
    // A decay that is nearly nothing becomes nothing, and the floor says what that leaves out.
    for (std::size_t i = 0; i < s.decay.size(); ++i) {
      if (std::fabs(s.decay[i]) < smallest_pair) s.decay[i] = out.decay_low[i] = 0;
    }
    out.error.decay_floor = smallest_pair / pair_unit;
  }
  out.underflowed = !fits || fine.underflowed;
  cut_to_high(out);
  return out;
}

/// Tokens [first, first + count) of a head that is lowered.
void cut_out(const double_double_head& from, std::size_t first, std::size_t count, double_double_head& out) {
  const auto& s = from.high.scan;
  auto& t = out.high.scan;
  const auto some = [&](const std::vector<double>& all, std::vector<double>& to) {
    const std::size_t each = s.tokens == 0 ? 0 : all.size() / s.tokens;
    to.assign(all.begin() + static_cast<std::ptrdiff_t>(first * each), all.begin() + static_cast<std::ptrdiff_t>((first + count) * each));
  };
  out.high.scale = from.high.scale;
  out.high.error = from.high.error;
  out.error = from.error;
  out.underflowed = from.underflowed;
  t.tokens = count;
  t.steps_per_token = s.steps_per_token;
  t.key_dim = s.key_dim;
  t.value_dim = s.value_dim;
  some(s.q, t.q);
  some(s.k, t.k);
  some(s.v, t.v);
  some(s.step, t.step);
  some(s.decay, t.decay);
  some(from.q_low, out.q_low);
  some(from.k_low, out.k_low);
  some(from.step_low, out.step_low);
  some(from.decay_low, out.decay_low);
  t.initial_state = first == 0 ? s.initial_state : matrix<double>();
}

}  // namespace

double_double_head lower_double_double(const problem& p, std::size_t sequence_index, std::size_t value_head, unsigned threads) {
  if (p.rule != rule_kind::euler) return lower_by_mpfr(p, sequence_index, value_head);
  const head_place at{p, p.sequences().at(sequence_index), value_head};
  double_double_head out;
  conclude(p, lower_tokens(at, sequence_index, 0, at.range.tokens, threads, out), out);
  return out;
}

head_lowering::head_lowering(const problem& p, std::size_t sequence_index, std::size_t value_head, unsigned threads, std::size_t block_tokens)
    : p_{p}, sequence_{sequence_index}, head_{value_head}, threads_{threads}, range_{p.sequences().at(sequence_index)} {
  if (p.rule == rule_kind::euler && block_tokens < range_.tokens) {
    facts_ = survey({p, range_, value_head}, threads);
    return;
  }
  whole_ = lower_double_double(p, sequence_index, value_head, threads);
  facts_.fits = !whole_->underflowed;
  largest_value_ = tiers::largest_value(whole_->high);
}

const double_double_head& head_lowering::block(std::size_t first, std::size_t count) {
  if (whole_ && count == range_.tokens) return *whole_;
  if (whole_) {
    cut_out(*whole_, first, count, block_);
    return block_;
  }
  lower_tokens({p_, range_, head_}, sequence_, first, count, threads_, block_);
  conclude(p_, facts_, block_);
  return block_;
}

}  // namespace deltaproof::tiers
