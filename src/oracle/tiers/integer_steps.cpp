// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT

#include "oracle/tiers/integer_steps.hpp"

#include <mpfr.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <optional>
#include <string>

#include "deltaproof/number/rational.hpp"
#include "oracle/lower_mpfr.hpp"
#include "oracle/mpfr_value.hpp"
#include "oracle/rule_gain.hpp"
#include "oracle/token_passing.hpp"
#include "oracle/upward.hpp"
#include "support/parallel.hpp"

namespace deltaproof::tiers {
namespace {

constexpr int extra_bits = 128;  // derived numbers beyond the working precision
constexpr int guard_bits = 64;   // their evaluation beyond that
constexpr double one_rounding = 1 + 0x1p-20;

/// x = m 2^exponent with odd m.
struct odd_double {
  std::int64_t m = 0;
  long exponent = 0;

  explicit odd_double(double x) {
    if (x == 0) return;
    int e = 0;
    m = static_cast<std::int64_t>(std::ldexp(std::frexp(x, &e), 53));
    const int zeros = std::countr_zero(static_cast<std::uint64_t>(m));
    m /= std::int64_t{1} << zeros;
    exponent = e - 53 + zeros;
  }
  [[nodiscard]] mp_limb_t magnitude() const { return static_cast<mp_limb_t>(m < 0 ? -m : m); }
  [[nodiscard]] long top() const { return exponent + static_cast<long>(std::bit_width(magnitude())); }
};

/// m 2^exponent from a derived number, exactly, with its error.
void derived(integer_scalar& to, mpfr_srcptr from) {
  to.exponent = mpfr_zero_p(from) != 0 ? 0 : static_cast<long>(mpfr_get_z_2exp(to.m.get(), from));
  if (mpfr_zero_p(from) != 0) mpz_set_ui(to.m.get(), 0);
  to.relative = std::ldexp(one_rounding, -extra_bits);
  to.size = std::fabs(mpfr_get_d(from, MPFR_RNDA));
}

}  // namespace

void integer_scalar::set(double x) {
  const odd_double odd(x);
  mpz_set_si(m.get(), odd.m);
  exponent = odd.exponent;
  relative = floor = 0;
  size = std::fabs(x);
}

void integer_vector::set(std::span<const double> x, std::size_t most_limbs) {
  long low = std::numeric_limits<long>::max(), high = std::numeric_limits<long>::min();
  channel.clear();
  for (std::size_t j = 0; j < x.size(); ++j) {
    if (x[j] == 0) continue;
    const odd_double odd(x[j]);
    low = std::min(low, odd.exponent);
    high = std::max(high, odd.top());
    if (x[j] > 0) channel.push_back(static_cast<std::uint32_t>(j));
  }
  positive = channel.size();
  for (std::size_t j = 0; j < x.size(); ++j) {
    if (x[j] < 0) channel.push_back(static_cast<std::uint32_t>(j));
  }
  norm = rounded = 0;
  limbs = 0;
  exponent = 0;
  if (channel.empty()) return;
  const auto bits = static_cast<std::size_t>(high - low);
  limbs = std::min((bits + 63) / 64, most_limbs);
  exponent = bits <= 64 * most_limbs ? low : high - 64 * static_cast<long>(most_limbs);
  magnitude.assign(channel.size() * limbs, 0);
  double squares = 0;
  std::size_t inexact = 0;
  for (std::size_t i = 0; i < channel.size(); ++i) {
    const odd_double odd(x[channel[i]]);
    mp_limb_t* m = magnitude.data() + i * limbs;
    const long shift = odd.exponent - exponent;
    if (shift >= 0) {
      const auto at = static_cast<std::size_t>(shift / 64);
      const auto by = static_cast<unsigned>(shift % 64);
      m[at] = odd.magnitude() << by;
      if (by != 0 && at + 1 < limbs) m[at + 1] = odd.magnitude() >> (64 - by);
    } else {
      ++inexact;
      // A rounding that would carry out of a limb is at most 2^53 and cannot.
      if (shift >= -54) m[0] = (odd.magnitude() + (mp_limb_t{1} << (-shift - 1))) >> -shift;
    }
    const double size = std::ldexp(static_cast<double>(odd.magnitude()),
                                   static_cast<int>(std::max(shift - 64 * (static_cast<long>(limbs) - 1), -2000L)));
    squares += size * size;
  }
  const auto n = static_cast<double>(channel.size());
  norm = std::sqrt(squares * (1 + (n + 16) * 0x1p-52) + n * 0x1p-1000) * up;
  if (inexact > 0) rounded = 0.5 * std::sqrt(static_cast<double>(inexact)) * up;
}

integer_lowering::integer_lowering(const problem& p, std::size_t sequence_index, std::size_t value_head, int bits)
    : p_{p}, sequence_{sequence_index}, head_{value_head}, range_{sequence_at(p, sequence_index)}, bits_{bits} {}

std::string integer_lowering::place_of(std::size_t row) const {
  return "lower: tensors beta and k, sequence " + std::to_string(sequence_) + ", value head " + std::to_string(head_) + ", row " +
         std::to_string(row) + " of k";
}

double integer_lowering::start(std::size_t channel, std::size_t column) const {
  if (!p_.initial_state) return 0;
  return p_.initial_state->at(((sequence_ * p_.value_heads() + head_) * p_.key_dim() + channel) * p_.value_dim() + column);
}

bool integer_lowering::exact_step(std::size_t row, std::span<const double> key, integer_scalar& out) const {
  double beta = p_.beta.at(row_at(row) * p_.value_heads() + head_);
  if (p_.beta_activation != activation_kind::none) {
    if (beta != 0) return false;
    beta = p_.beta_activation == activation_kind::two_sigmoid ? 1 : 0.5;  // sigmoid(0)
  }
  const bool still = std::all_of(key.begin(), key.end(), [](double x) { return x == 0; });
  if (p_.rule == rule_kind::euler || still || beta == 0) {
    out.set(beta);
    return true;
  }
  rational norm = 0;
  for (const double x : key) norm += exact(x) * exact(x);
  const std::optional<rational> step = rational_step(p_.rule, exact(beta), norm, place_of(row));
  if (!step) return false;
  const mpq_srcptr data = step->backend().data();
  const mp_bitcnt_t zeros = mpz_scan1(mpq_denref(data), 0);
  if (mpz_sizeinbase(mpq_denref(data), 2) != zeros + 1) return false;  // not dyadic
  mpz_set(out.m.get(), mpq_numref(data));
  out.exponent = -static_cast<long>(zeros);
  out.relative = out.floor = 0;
  out.size = std::fabs(mpq_get_d(data)) * up;
  return true;
}

bool integer_lowering::lower_step(std::size_t row, integer_step& out) const {
  const std::size_t K = p_.key_dim();
  std::vector<double> x(K);
  p_.k.read((row_at(row) * p_.key_heads() + p_.key_head(head_)) * K, x);
  out.key.set(x, bits_ == 0 ? std::numeric_limits<std::size_t>::max() / 64 : static_cast<std::size_t>(bits_) / 64 + 2);
  out.rho = 1;
  out.normalised = false;
  if (bits_ == 0) {
    if (p_.qk_l2norm && out.key.limbs > 0) return false;
    return exact_step(row, x, out.write);
  }
  const double given = p_.beta.at(row_at(row) * p_.value_heads() + head_);
  const bool derives = p_.rule != rule_kind::euler || p_.beta_activation != activation_kind::none;
  double step_floor = 0;
  out.normalised = p_.qk_l2norm && out.key.limbs > 0;
  if (!derives && !out.normalised) {
    out.write.set(given);
  } else {
    const int kept = bits_ + extra_bits, working = kept + guard_bits;
    mpfr_value beta(working), sum(working), part(working), inverse(working), stored(kept);
    mpfr_set_d(beta.get(), given, MPFR_RNDN);
    activate_step(beta.get(), p_.beta_activation);
    if (out.normalised || p_.rule != rule_kind::euler) square_sum(sum.get(), part.get(), x);
    if (out.normalised) {
      set_decimal(part.get(), p_.l2norm_epsilon);
      mpfr_add(part.get(), part.get(), sum.get(), MPFR_RNDN);
      mpfr_div(sum.get(), sum.get(), part.get(), MPFR_RNDN);  // |k|^2 of the normalised key
      mpfr_rec_sqrt(inverse.get(), part.get(), MPFR_RNDN);
      mpfr_set(stored.get(), inverse.get(), MPFR_RNDN);
      derived(out.inverse, stored.get());
    }
    if (p_.rule != rule_kind::euler) {
      const double length = std::fabs(mpfr_get_d(beta.get(), MPFR_RNDA));
      mpfr_mul(part.get(), beta.get(), sum.get(), MPFR_RNDN);
      // |beta| 2^-(kept + 40) A, in units of 2^-bits.
      const double amplification = apply_gain(beta.get(), part.get(), p_.rule, kept, place_of(row)).above();
      if (std::isinf(amplification)) refuse_if_at_pole(p_, given, x, place_of(row));
      step_floor = product({length, amplification}, -extra_bits - 40);
    }
    if (out.normalised) {
      mpfr_mul(beta.get(), beta.get(), inverse.get(), MPFR_RNDN);
      step_floor = product({step_floor, out.inverse.size});
    }
    mpfr_set(stored.get(), beta.get(), MPFR_RNDN);
    derived(out.write, stored.get());
    out.write.floor = step_floor * up;
  }
  if (out.key.limbs == 0) return true;
  // Line R, with x = write inverse |k|^2 of the key as it is given.
  const integer_vector& k = out.key;
  double square = 0;
  for (std::size_t i = 0; i < k.channel.size(); ++i) {
    const double m = static_cast<double>(k.magnitude[(i + 1) * k.limbs - 1]) +
                     (k.limbs > 1 ? std::ldexp(static_cast<double>(k.magnitude[(i + 1) * k.limbs - 2]), -64) : 0);
    square += m * m;
  }
  const int sign = mpz_sgn(out.write.m.get());
  const double inverse_size = out.normalised ? out.inverse.size : 1;
  const double stretch = product({square, out.write.size, inverse_size}, 2 * k.top_exponent());
  const double off = stretch * (static_cast<double>(x.size()) + 32) * 0x1p-52 + 0x1p-1000 +
                     product({out.write.floor, inverse_size, k.norm, k.norm}, 2 * k.top_exponent() - bits_ + 1);
  out.rho = std::max(1.0, (std::fabs(1 - (sign < 0 ? -stretch : stretch)) + off) * up);
  if (std::isnan(out.rho)) out.rho = std::numeric_limits<double>::infinity();
  return true;
}

bool integer_lowering::lower_token(std::size_t t, std::size_t limbs, integer_token& out) const {
  const std::size_t K = p_.key_dim();
  std::vector<double> x(K);
  p_.q.read((token_at(t) * p_.key_heads() + p_.key_head(head_)) * K, x);
  out.query.set(x, bits_ == 0 ? std::numeric_limits<std::size_t>::max() / 64 : static_cast<std::size_t>(bits_) / 64 + 2);
  out.normalised = p_.qk_l2norm && out.query.limbs > 0;
  if (out.normalised) {
    if (bits_ == 0) return false;
    const int kept = bits_ + extra_bits, working = kept + guard_bits;
    mpfr_value sum(working), part(working), stored(kept);
    for (const double xi : x) {
      mpfr_set_d(part.get(), xi, MPFR_RNDN);
      mpfr_sqr(part.get(), part.get(), MPFR_RNDN);
      mpfr_add(sum.get(), sum.get(), part.get(), MPFR_RNDN);
    }
    set_decimal(part.get(), p_.l2norm_epsilon);
    mpfr_add(sum.get(), sum.get(), part.get(), MPFR_RNDN);
    mpfr_rec_sqrt(sum.get(), sum.get(), MPFR_RNDN);
    mpfr_set(stored.get(), sum.get(), MPFR_RNDN);
    derived(out.inverse, stored.get());
  }
  out.decay.clear();
  out.decay_largest = 0;
  if (!p_.g) return true;
  const std::size_t channels = p_.gate_per_channel() ? K : 1;
  x.resize(channels);
  p_.g->read((token_at(t) * p_.value_heads() + head_) * channels, x);
  out.decay.resize(channels);
  out.decay_m.assign(channels * limbs, 0);
  out.decay_shift.assign(channels, 0);
  mpfr_value alpha(static_cast<int>(64 * limbs) + guard_bits);
  integer m;
  out.fits = true;
  for (std::size_t i = 0; i < channels; ++i) {
    if (x[i] == 0 || std::isinf(x[i])) {
      out.decay[i] = x[i] == 0 ? decay_value::one : decay_value::zero;
      if (x[i] == 0) out.decay_largest = std::max(out.decay_largest, 1.0);
      continue;
    }
    if (bits_ == 0) return false;
    out.decay[i] = decay_value::other;
    if (x[i] > 600) {
      out.fits = false;
      continue;
    }
    mpfr_set_d(alpha.get(), x[i], MPFR_RNDN);
    mpfr_exp(alpha.get(), alpha.get(), MPFR_RNDN);
    out.decay_largest = std::max(out.decay_largest, mpfr_get_d(alpha.get(), MPFR_RNDU) * up);
    const long whole = mpfr_zero_p(alpha.get()) != 0 ? 0 : std::max(0L, (static_cast<long>(mpfr_get_exp(alpha.get())) + 64) / 64);
    const long shift = static_cast<long>(limbs) - (mpfr_cmp_ui(alpha.get(), 1) < 0 ? 0 : whole);
    out.decay_shift[i] = shift;
    if (mpfr_zero_p(alpha.get()) != 0) continue;
    mpfr_mul_2si(alpha.get(), alpha.get(), 64 * shift, MPFR_RNDN);
    mpfr_get_z(m.get(), alpha.get(), MPFR_RNDN);
    const std::size_t size = mpz_size(m.get());
    if (size > limbs) {  // 1 - 2^-200, say, rounds up to 1
      out.decay_shift[i] = shift - 1;
      mpz_fdiv_q_2exp(m.get(), m.get(), 64);
    }
    std::copy_n(mpz_limbs_read(m.get()), mpz_size(m.get()), out.decay_m.data() + i * limbs);
  }
  return true;
}

void integer_lowering::block(std::size_t first, std::size_t count, unsigned threads, integer_block& out) const {
  const std::size_t n = p_.num_householder;
  out.first = first;
  out.decay_limbs = static_cast<std::size_t>(bits_) / 64 + 2;
  out.tokens.resize(count);
  out.steps.resize(count * n);
  std::vector<std::uint8_t> whole(count, 0);
  const auto lower_one = [&](std::size_t i) {
    bool done = lower_token(first + i, out.decay_limbs, out.tokens[i]);
    for (std::size_t j = 0; j < n && done; ++j) done = lower_step((first + i) * n + j, out.steps[i * n + j]);
    whole[i] = done ? 1 : 0;
  };
  parallel_for(count, threads, lower_one);
  const auto good = static_cast<std::size_t>(std::find(whole.begin(), whole.end(), std::uint8_t{0}) - whole.begin());
  out.tokens.resize(good);
  out.steps.resize(good * n);
  out.wide = out.rounded = 0;
  const auto note = [&](const integer_vector& v) {
    out.wide += v.limbs > 1 ? 1 : 0;
    out.rounded += v.rounded > 0 ? 1 : 0;
  };
  for (const integer_token& token : out.tokens) note(token.query);
  for (const integer_step& step : out.steps) note(step.key);
}

std::vector<double> integer_lowering::exact_limbs(std::span<const std::size_t> ends, double size, double cap,
                                                  double limit) const {
  const std::size_t n = p_.num_householder, K = p_.key_dim(), V = p_.value_dim();
  constexpr long none = std::numeric_limits<long>::max() / 4;
  const std::size_t last = ends.empty() ? 0 : ends.back();
  std::vector<double> out;
  double sum = 0;
  const auto give = [&](std::size_t tokens) {
    while (out.size() < ends.size() && ends[out.size()] <= tokens) out.push_back(sum);
  };
  give(0);
  std::vector<double> k(K), v(V);
  const auto lowest = [](std::span<const double> x) {
    long low = none;
    for (const double xi : x) {
      if (xi != 0) low = std::min(low, odd_double(xi).exponent);
    }
    return low;
  };
  long grid = none;
  if (p_.initial_state) {
    for (std::size_t j = 0; j < K; ++j) {
      p_.initial_state->read(((sequence_ * p_.value_heads() + head_) * K + j) * V, v);
      grid = std::min(grid, lowest(v));
    }
  }
  const std::size_t channels = p_.g && p_.gate_per_channel() ? K : 1;
  std::vector<double> g(channels, 0.0);
  integer_scalar step;
  token_passing passing(p_, range_);
  for (std::size_t t = 0; t < std::min(last, range_.tokens); ++t) {
    if (p_.qk_l2norm) return out;
    passing.through(t);
    if (p_.g) p_.g->read((token_at(t) * p_.value_heads() + head_) * channels, g);
    if (!std::all_of(g.begin(), g.end(), [](double x) { return x == 0 || std::isinf(x); })) return out;
    if (std::all_of(g.begin(), g.end(), [](double x) { return std::isinf(x); })) grid = none;
    for (std::size_t j = 0; j < n; ++j) {
      const std::size_t row = t * n + j;
      p_.k.read((row_at(row) * p_.key_heads() + p_.key_head(head_)) * K, k);
      if (!exact_step(row, k, step)) return out;
      const long key = lowest(k);
      if (key == none || mpz_sgn(step.m.get()) == 0) continue;
      p_.v.read(value_base(row), v);
      const long r = std::min(lowest(v), grid == none ? none : grid + key);
      if (r == none) continue;
      grid = std::min(grid, r + step.exponent + static_cast<long>(mpz_scan1(step.m.get(), 0)) + key);
    }
    const double bits = grid == none ? 0 : std::max(0.0, size - static_cast<double>(grid));
    if (bits > cap || sum > limit) return out;
    sum = sum + bits / 64 + 1;
    give(t + 1);
  }
  return out;
}

}  // namespace deltaproof::tiers
