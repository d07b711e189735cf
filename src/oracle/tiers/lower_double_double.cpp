// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT

#include "oracle/tiers/lower_double_double.hpp"

#include <mpfr.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cmath>
#include <limits>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "oracle/lower_mpfr.hpp"
#include "oracle/mpfr_value.hpp"
#include "oracle/rule_gain.hpp"
#include "oracle/tiers/derived_pairs.hpp"
#include "oracle/tiers/fp64_rows.hpp"
#include "oracle/token_passing.hpp"
#include "oracle/upward.hpp"
#include "support/parallel.hpp"

namespace deltaproof::tiers {
namespace {

constexpr int bits = 106;
constexpr std::size_t at_once = 512;       // exponentials: a multiple of eight
constexpr std::size_t least_tokens = 128;  // a thread costs more than these

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
  [[nodiscard]] std::size_t row(std::size_t r) const {
    return range.batch * p.steps() + range.first_token * p.num_householder + r;
  }
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

/// |k|^2 of a given key, or of the key that the kernel normalises.
void set_squared_norm(mpfr_ptr sum, mpfr_ptr part, std::span<const double> k, const problem& p) {
  square_sum(sum, part, k);
  if (!p.qk_l2norm) return;
  set_decimal(part, p.l2norm_epsilon);
  mpfr_add(part, part, sum, MPFR_RNDN);
  mpfr_div(sum, sum, part, MPFR_RNDN);
}

/// The effective steps of a head whose rule is not Euler's: one gain each is all that MPFR evaluates, and no pass over the
/// tokens evaluates it again.
derived_steps steps_of(const head_place& at, std::size_t sequence_index, unsigned threads) {
  const problem& p = at.p;
  const std::size_t n = p.num_householder, K = p.key_dim();
  derived_steps out;
  out.high.resize(at.range.tokens * n);
  out.low.resize(out.high.size());
  std::mutex lock;
  in_parts(at.range.tokens, threads, [&](std::size_t from, std::size_t to) {
    constexpr int working = bits + 64;
    std::vector<double> x(K), v(p.value_dim());
    mpfr_value beta(working), sum(working), part(working), kept(bits), rest(bits);
    double floor = 0, most = 0;
    bool fits = true;
    token_passing passing(p, at.range, from);
    for (std::size_t r = from * n; r < to * n; ++r) {
      if (r % n == 0) passing.through(r / n);
      p.k.read(at.key(at.row(r)), x);
      set_squared_norm(sum.get(), part.get(), x, p);
      const double given = p.beta.at(at.value(at.row(r)));
      mpfr_set_d(beta.get(), given, MPFR_RNDN);
      floor = std::max(floor, activate_step(beta.get(), p.beta_activation));
      const double length = std::fabs(mpfr_get_d(beta.get(), MPFR_RNDA));
      mpfr_mul(part.get(), beta.get(), sum.get(), MPFR_RNDN);
      const std::string where = "lower: tensors beta and k, sequence " + std::to_string(sequence_index) + ", value head " +
                                std::to_string(at.value_head) + ", row " + std::to_string(r) + " of k";
      const double amplification = apply_gain(beta.get(), part.get(), p.rule, bits, where).above();
      if (std::isinf(amplification)) {
        refuse_if_at_pole(p, given, x, where);
        fits = false;
      }
      // |beta| 2^-(106+40) A in units of 2^-106.
      floor = std::max(floor, product({length, amplification}, -40));
      mpfr_set(kept.get(), beta.get(), MPFR_RNDN);
      fits = split(kept, rest, out.high[r], out.low[r]) && fits;
      p.v.read(at.value(at.row(r)) * v.size(), v);
      for (const double one : v) most = std::max(most, std::fabs(one));
    }
    const std::lock_guard guard(lock);
    out.largest_value = std::max(out.largest_value, most);
    out.floor = std::max(out.floor, floor);
    out.fits = out.fits && fits;
  });
  return out;
}

/// Tokens [first, first + count); the facts of these tokens come out. `steps`: of a rule that is not Euler's.
lowering_facts lower_tokens(const head_place& at, std::size_t sequence_index, std::size_t first, std::size_t count,
                            unsigned threads, const derived_steps& steps, double_double_head& out) {
  const problem& p = at.p;
  const std::size_t n = p.num_householder, rows = count * n, K = p.key_dim(), cols = p.value_dim();
  const bool gained = p.rule != rule_kind::euler, activated = !gained && p.beta_activation != activation_kind::none;
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
  out.step_low.resize(gained || activated ? rows : 0);
  out.decay_low.resize(s.decay.size());
  const three_parts epsilon = parts_of_decimal(p.l2norm_epsilon);
  std::atomic<bool> fits = true, gates_derived = false, floored = false;
  in_parts(count, threads, [&](std::size_t from, std::size_t to) {
    lowering_facts facts;
    std::vector<double> x(K), room;
    const auto key = [&](const tensor& given, std::size_t place, std::size_t i, std::vector<double>& high,
                         std::vector<double>& low) {
      if (!p.qk_l2norm) return given.read(at.key(place), std::span(high).subspan(i * K, K));
      given.read(at.key(place), x);
      if (!normalise(x, epsilon, high.data() + i * K, low.data() + i * K, room)) facts.fits = false;
    };
    for (std::size_t t = from; t < to; ++t) key(p.q, at.token(first + t), t, s.q, out.q_low);
    for (std::size_t r = from * n; r < to * n; ++r) {
      const std::size_t place = at.row(first * n + r);
      key(p.k, place, r, s.k, out.k_low);
      p.v.read(at.value(place) * cols, std::span(s.v).subspan(r * cols, cols));
      s.step[r] = gained ? steps.high[first * n + r] : p.beta.at(at.value(place));
      if (gained) out.step_low[r] = steps.low[first * n + r];
    }
    std::array<double, at_once> minus, e, e_low;
    const double top = p.beta_activation == activation_kind::two_sigmoid ? 2 : 1;
    for (std::size_t r = from * n; r < to * n && activated; r += at_once) {
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
      for (std::size_t i = 0; i < some; ++i)
        p.g->read(at.value(at.token(first + t + i)) * channels, std::span(gates).subspan(i * channels, channels));
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
  return {fits && steps.fits, gates_derived, floored};
}

/// The error constants of a head with these facts.
void conclude(const problem& p, const lowering_facts& facts, const derived_steps& steps, double raw_gate,
              double_double_head& out) {
  out.error = {};
  if (p.qk_l2norm) out.error.key = out.error.query = normalised_error(p.key_dim());
  if (p.beta_activation != activation_kind::none) out.error.step = sigmoid_error;
  if (p.rule != rule_kind::euler) {
    out.error.step = 1 + 0x1p-20;  // rounded once to 106 bits
    out.error.step_floor = steps.floor;
  }
  if (facts.floored) out.error.decay_floor = 0x1p-860 / pair_unit;
  if (facts.gates_derived) out.error.decay = exponential_error;
  if (!facts.gates_derived) out.decay_low.clear();
  out.underflowed = !facts.fits;
  cut_to_high(out);
  out.error.decay += std::ldexp(raw_gate, 106);
  out.high.error.decay += std::ldexp(raw_gate, 53);
}

/// Whether every normalised entry is large enough for its low part; the numbers of formats below 64 bits are.
bool normalises(const tensor& given, std::size_t at, const three_parts& epsilon, std::vector<double>& x,
                std::vector<double>& high, std::vector<double>& low, std::vector<double>& room) {
  given.read(at, x);
  const bool plain = std::all_of(x.begin(), x.end(),
                                 [](double xi) { return xi == 0 || (std::fabs(xi) >= 0x1p-400 && std::fabs(xi) <= 0x1p400); });
  return plain || normalise(x, epsilon, high.data(), low.data(), room);
}

/// The facts of a head, without lowering it.
lowering_facts survey(const head_place& at, const derived_steps& steps, unsigned threads) {
  const problem& p = at.p;
  const std::size_t n = p.num_householder, K = p.key_dim(), channels = !p.g ? 0 : p.gate_per_channel() ? K : 1;
  const bool keys = p.qk_l2norm && p.q.element_format() == fp64;
  const three_parts epsilon = parts_of_decimal(p.l2norm_epsilon);
  const bool activated = p.rule == rule_kind::euler && p.beta_activation != activation_kind::none;
  std::atomic<bool> fits = true, gates_derived = false, floored = false;
  in_parts(at.range.tokens, threads, [&](std::size_t from, std::size_t to) {
    lowering_facts facts;
    std::vector<double> x(K), high(K), low(K), room, g(channels);
    token_passing passing(p, at.range, from);
    for (std::size_t t = from; t < to; ++t) {
      passing.through(t);
      if (keys) facts.fits = normalises(p.q, at.key(at.token(t)), epsilon, x, high, low, room) && facts.fits;
      for (std::size_t r = t * n; r < (t + 1) * n; ++r) {
        if (keys) facts.fits = normalises(p.k, at.key(at.row(r)), epsilon, x, high, low, room) && facts.fits;
        if (activated && !(std::fabs(p.beta.at(at.value(at.row(r)))) <= largest_exponent)) facts.fits = false;
      }
      if (p.g) p.g->read(at.value(at.token(t)) * channels, g);
      for (const double x_g : g) note_gate(x_g, facts);
    }
    if (!facts.fits) fits = false;
    if (facts.gates_derived) gates_derived = true;
    if (facts.floored) floored = true;
  });
  return {fits && steps.fits, gates_derived, floored};
}

derived_steps steps_if_gained(const head_place& at, std::size_t sequence_index, unsigned threads) {
  return at.p.rule == rule_kind::euler ? derived_steps{} : steps_of(at, sequence_index, threads);
}

}  // namespace

double_double_head lower_double_double(const problem& p, std::size_t sequence_index, std::size_t value_head, unsigned threads) {
  const head_place at{p, sequence_at(p, sequence_index), value_head};
  const derived_steps steps = steps_if_gained(at, sequence_index, threads);
  double_double_head out;
  conclude(p, lower_tokens(at, sequence_index, 0, at.range.tokens, threads, steps, out), steps,
           raw_gate_error(p, sequence_index, value_head), out);
  return out;
}

head_lowering::head_lowering(const problem& p, std::size_t sequence_index, std::size_t value_head, unsigned threads,
                             std::size_t block_tokens)
    : p_{p}, sequence_{sequence_index}, head_{value_head}, threads_{threads}, range_{sequence_at(p, sequence_index)} {
  const head_place at{p, range_, value_head};
  steps_ = steps_if_gained(at, sequence_index, threads);
  raw_gate_ = raw_gate_error(p, sequence_index, value_head);
  if (block_tokens < range_.tokens) {
    facts_ = survey(at, steps_, threads);
    return;
  }
  facts_ = lower_tokens(at, sequence_index, 0, range_.tokens, threads, steps_, block_);
  conclude(p, facts_, steps_, raw_gate_, block_);
  is_whole_ = true;
}

const double_double_head& head_lowering::block(std::size_t first, std::size_t count) {
  if (is_whole_ && count == range_.tokens) return block_;
  is_whole_ = false;
  lower_tokens({p_, range_, head_}, sequence_, first, count, threads_, steps_, block_);
  conclude(p_, facts_, steps_, raw_gate_, block_);
  return block_;
}

}  // namespace deltaproof::tiers
