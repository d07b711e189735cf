// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT

#include "deltaproof/oracle/lower.hpp"

#include <mpfr.h>

#include <cmath>
#include <limits>
#include <optional>
#include <string>
#include <type_traits>
#include <vector>

#include "oracle/lower_mpfr.hpp"
#include "oracle/pair_field.hpp"
#include "oracle/rule_gain.hpp"
#include "oracle/upward.hpp"
#include "support/text.hpp"

namespace deltaproof {
namespace {

constexpr int guard_bits = 64;

[[noreturn]] void irrational(const std::string& what) {
  throw domain_error("lower_exact: " + what + " is not rational; use lower or solve");
}

/// Where lowered values go: the target scalar decides how a given double and a derived MPFR number are stored.
struct fp64_target {
  using value = double;
  static constexpr int bits = 53;
  static constexpr double decay_floor = 0x1p-1021;
  static constexpr double smallest_normal = 0x1p-1022;
  static void given(double& x, double from) { x = from; }
  static void derived(double& x, mpfr_srcptr from) { x = mpfr_get_d(from, MPFR_RNDN); }
};

struct mpfr_target {
  using value = mpfr_value;
  int bits;
  static constexpr double decay_floor = 0x1p-1021;
  static constexpr double smallest_normal = 0;
  void given(mpfr_value& x, double from) const {
    x = mpfr_value(bits);
    mpfr_set_d(x.get(), from, MPFR_RNDN);
  }
  void derived(mpfr_value& x, mpfr_srcptr from) const {
    x = mpfr_value(bits);
    mpfr_set(x.get(), from, MPFR_RNDN);
  }
};

/// Rounded to 106 bits; both parts are normal numbers from 2^-900 on.
struct pair_target {
  using value = double_pair;
  static constexpr int bits = 106;
  static constexpr double smallest_normal = 0x1p-900;
  static constexpr double decay_floor = 0x1p-970;  // below it half of the least double, in units of 2^-103
  static void given(double_pair& x, double from) { x = {from, 0}; }
  static void derived(double_pair& x, mpfr_srcptr from) {
    x.hi = mpfr_get_d(from, MPFR_RNDN);
    mpfr_value rest(mpfr_get_prec(from));
    mpfr_sub_d(rest.get(), from, x.hi, MPFR_RNDN);  // exact
    x.lo = mpfr_get_d(rest.get(), MPFR_RNDN);
  }
};

struct exact_target {
  using value = rational;
  static constexpr int bits = 53;
  static constexpr double smallest_normal = 0;
  static void given(rational& x, double from) { x = exact(from); }
  [[noreturn]] static void derived(rational&, mpfr_srcptr) { irrational("a derived value"); }
};

/// Where one head's elements lie in the problem's tensors.
struct head_view {
  const problem& p;
  sequence_range range;
  std::size_t value_head;

  [[nodiscard]] std::size_t token(std::size_t t) const { return range.batch * p.tokens() + range.first_token + t; }
  [[nodiscard]] std::size_t row(std::size_t r) const {
    return range.batch * p.steps() + range.first_token * p.num_householder + r;
  }
  [[nodiscard]] std::size_t q_at(std::size_t t) const {
    return (token(t) * p.key_heads() + p.key_head(value_head)) * p.key_dim();
  }
  [[nodiscard]] std::size_t k_at(std::size_t r) const { return (row(r) * p.key_heads() + p.key_head(value_head)) * p.key_dim(); }
  [[nodiscard]] std::size_t v_at(std::size_t r) const { return (row(r) * p.value_heads() + value_head) * p.value_dim(); }
  [[nodiscard]] std::size_t beta_at(std::size_t r) const { return row(r) * p.value_heads() + value_head; }
  [[nodiscard]] std::size_t g_at(std::size_t t) const { return token(t) * p.value_heads() + value_head; }
};

/// Scratch of one lowering at working precision `bits` + guard_bits.
class workspace {
 public:
  workspace(int bits, const problem& p) : sum_(bits + guard_bits), part_(bits + guard_bits), epsilon_(bits + guard_bits) {
    if (p.qk_l2norm) set_decimal(epsilon_.get(), p.l2norm_epsilon);
  }

  /// sum x^2, into the result.
  mpfr_ptr square_sum(const std::vector<double>& x) {
    deltaproof::square_sum(sum_.get(), part_.get(), x);
    return sum_.get();
  }

  /// x_i / sqrt(sum x^2 + epsilon), one number at a time through `store(i, number)`. Leaves |k|^2 of the normalised
  /// key, sum / (sum + epsilon), in `squared_norm`.
  template <class Store>
  void normalise(const std::vector<double>& x, mpfr_ptr squared_norm, Store&& store) {
    mpfr_ptr sum = square_sum(x);
    mpfr_set(squared_norm, sum, MPFR_RNDN);
    mpfr_add(sum, sum, epsilon_.get(), MPFR_RNDN);
    mpfr_div(squared_norm, squared_norm, sum, MPFR_RNDN);
    mpfr_sqrt(sum, sum, MPFR_RNDN);
    for (std::size_t i = 0; i < x.size(); ++i) {
      mpfr_set_d(part_.get(), x[i], MPFR_RNDN);
      mpfr_div(part_.get(), part_.get(), sum, MPFR_RNDN);
      store(i, part_.get());
    }
  }

 private:
  mpfr_value sum_;
  mpfr_value part_;
  mpfr_value epsilon_;
};

}  // namespace

void square_sum(mpfr_ptr sum, mpfr_ptr part, std::span<const double> x) {
  mpfr_set_zero(sum, 1);
  for (const double xi : x) {
    mpfr_set_d(part, xi, MPFR_RNDN);
    mpfr_sqr(part, part, MPFR_RNDN);
    mpfr_add(sum, sum, part, MPFR_RNDN);
  }
}

double raw_gate_error(const problem& p, std::size_t sequence_index, std::size_t value_head) {
  if (!p.raw) return 0;
  const head_view view{p, sequence_at(p, sequence_index), value_head};
  const std::size_t channels = p.gate_per_channel() ? p.key_dim() : 1;
  std::vector<double> g(channels);
  double most = 0;
  for (std::size_t t = 0; t < view.range.tokens; ++t) {
    p.g->read(view.g_at(t) * channels, g);
    for (const double one : g) most = std::max(most, std::isinf(one) ? 0 : std::fabs(one));
  }
  // e^d - 1 <= 2 d up to 1; what underflows to 0 is less than the smallest double.
  const double moved = 2 * most * raw_gate_roundoff;
  return moved < 1 ? moved + 0x1p-1000 : std::numeric_limits<double>::infinity();
}

void set_decimal(mpfr_ptr to, double x) { mpfr_set_str(to, detail::shortest(x).c_str(), 10, MPFR_RNDN); }

double activate_step(mpfr_ptr beta, activation_kind activation) {
  if (activation == activation_kind::none) return 0;
  mpfr_neg(beta, beta, MPFR_RNDN);
  mpfr_exp(beta, beta, MPFR_RNDN);
  mpfr_add_ui(beta, beta, 1, MPFR_RNDN);
  mpfr_ui_div(beta, activation == activation_kind::two_sigmoid ? 2 : 1, beta, MPFR_RNDN);
  return mpfr_zero_p(beta) != 0 ? 0x1p-900 : 0;
}

std::string refusal_in(const std::string& file, const std::string& said) {
  constexpr std::string_view from = "lower: ";
  return said.starts_with(from) ? (file.empty() ? "" : file + ": ") + said.substr(from.size()) : said;
}

namespace {

std::string place_of(std::size_t sequence_index, std::size_t value_head, std::size_t r) {
  return "lower: tensors beta and k, sequence " + std::to_string(sequence_index) + ", value head " + std::to_string(value_head) +
         ", row " + std::to_string(r) + " of k";
}

template <class Target>
lowered<typename Target::value> lower_into(const Target& target, const head_view& view, std::size_t sequence_index,
                                           double raw_error, std::span<const std::size_t> columns = {}) {
  using value = typename Target::value;
  constexpr double one_rounding = 1 + 0x1p-20;  // epsilon / u
  const problem& p = view.p;
  const std::size_t tokens = view.range.tokens, n = p.num_householder, rows = tokens * n, value_head = view.value_head;
  const std::size_t keys = p.key_dim(), cols = columns.empty() ? p.value_dim() : columns.size();
  const auto column = [&](std::size_t i) { return columns.empty() ? i : columns[i]; };
  const std::size_t decays = !p.g ? 0 : p.gate_per_channel() ? tokens * keys : tokens;

  lowered<value> out;
  out.scale = p.scale;
  auto& s = out.scan;
  s.tokens = tokens;
  s.steps_per_token = n;
  s.key_dim = keys;
  s.value_dim = cols;
  s.q.resize(tokens * keys);
  s.k.resize(rows * keys);
  s.v.resize(rows * cols);
  s.step.resize(rows);
  s.decay.resize(decays);
  s.initial_state = matrix<value>(keys, cols);

  std::vector<double> x(keys);
  workspace work(target.bits, p);
  mpfr_value smallest(53);
  mpfr_set_d(smallest.get(), Target::smallest_normal, MPFR_RNDN);
  const auto derive = [&](value& to, mpfr_srcptr from) {
    target.derived(to, from);
    if (mpfr_zero_p(from) == 0 && mpfr_cmpabs(from, smallest.get()) < 0) out.underflowed = true;
  };
  const auto working = [&] { return mpfr_value(target.bits + guard_bits); };
  mpfr_value beta = working(), squared_norm = working(), stretched = working();

  if (p.qk_l2norm) {
    out.error.key = out.error.query = one_rounding;
    if constexpr (std::is_same_v<value, rational>) irrational("in-kernel normalisation (qk_l2norm)");
  }
  for (std::size_t t = 0; t < tokens; ++t) {
    p.q.read(view.q_at(t), x);
    value* q = s.q.data() + t * keys;
    if (p.qk_l2norm) {
      work.normalise(x, squared_norm.get(), [&](std::size_t i, mpfr_srcptr qi) { derive(q[i], qi); });
    } else {
      for (std::size_t i = 0; i < keys; ++i) target.given(q[i], x[i]);
    }
  }

  const std::size_t before = (view.range.first_token - sequence_at(p, sequence_index).first_token) * n;
  const auto place = [&](std::size_t r) { return place_of(sequence_index, value_head, before + r); };
  const bool derived_step = p.rule != rule_kind::euler || p.beta_activation != activation_kind::none;
  if (derived_step) out.error.step = one_rounding;
  if (derived_step && std::is_same_v<Target, mpfr_target>) out.step_floor.resize(rows);
  for (std::size_t r = 0; r < rows; ++r) {
    p.k.read(view.k_at(r), x);
    value* k = s.k.data() + r * keys;
    if (p.qk_l2norm) {
      work.normalise(x, squared_norm.get(), [&](std::size_t i, mpfr_srcptr ki) { derive(k[i], ki); });
    } else {
      for (std::size_t i = 0; i < keys; ++i) target.given(k[i], x[i]);
      if (p.rule != rule_kind::euler) mpfr_set(squared_norm.get(), work.square_sum(x), MPFR_RNDN);
    }
    const double given_beta = p.beta.at(view.beta_at(r));
    if (!derived_step) {
      target.given(s.step[r], given_beta);
      continue;
    }
    if constexpr (std::is_same_v<value, rational>) {
      if (p.beta_activation != activation_kind::none) irrational("beta after its activation");
      rational norm = 0;
      for (const double xi : x) norm += exact(xi) * exact(xi);
      const std::optional<rational> step = rational_step(p.rule, exact(given_beta), norm, place(r));
      if (!step) irrational("the gain of rule " + std::string(name_of(p.rule)));
      s.step[r] = *step;
      out.error.step = 0;
    } else {
      mpfr_set_d(beta.get(), given_beta, MPFR_RNDN);
      const double sunk = activate_step(beta.get(), p.beta_activation);
      out.error.step_floor = std::max(out.error.step_floor, sunk);
      wide_bound floor = sunk > 0 ? mpfr_field::underflow_unit : wide_bound();
      if (p.rule != rule_kind::euler) {
        const double step_length = std::fabs(mpfr_get_d(beta.get(), MPFR_RNDA));
        const wide_bound length = magnitude_bound(beta.get());
        mpfr_mul(stretched.get(), beta.get(), squared_norm.get(), MPFR_RNDN);
        const wide_bound amplification = apply_gain(beta.get(), stretched.get(), p.rule, target.bits, place(r));
        if (!amplification.finite()) refuse_if_at_pole(p, given_beta, x, place(r));
        // |beta| 2^-(P+40) A in units of u = 2^-P.
        out.error.step_floor = std::max(out.error.step_floor, tiers::product({step_length, amplification.above()}, -40));
        floor += length * amplification * (0x1p-40 * tiers::up);
        // A product below MPFR's exponents.
        if (mpfr_zero_p(beta.get()) != 0 && length > wide_bound()) floor += mpfr_field::underflow_unit;
      }
      if (std::is_same_v<Target, mpfr_target>) out.step_floor[r] = floor;
      derive(s.step[r], beta.get());
    }
  }

  x.resize(p.value_dim());
  for (std::size_t r = 0; r < rows; ++r) {
    p.v.read(view.v_at(r), x);
    for (std::size_t i = 0; i < cols; ++i) target.given(s.v[r * cols + i], x[column(i)]);
  }

  mpfr_value alpha(target.bits);
  const std::size_t channels = p.gate_per_channel() ? keys : 1;
  x.resize(channels);
  for (std::size_t t = 0; t < tokens && p.g; ++t) {
    p.g->read(view.g_at(t) * channels, x);
    for (std::size_t i = 0; i < channels; ++i) {
      value& a = s.decay[t * channels + i];
      if (x[i] == 0 || std::isinf(x[i])) {  // validated: an infinite g is -inf
        target.given(a, x[i] == 0 ? 1.0 : 0.0);
        continue;
      }
      if constexpr (std::is_same_v<value, rational>) {
        irrational("e^g of a gate other than 0 or -inf");
      } else {
        mpfr_set_d(alpha.get(), x[i], MPFR_RNDN);
        mpfr_exp(alpha.get(), alpha.get(), MPFR_RNDN);
        if (std::is_same_v<Target, mpfr_target> && mpfr_zero_p(alpha.get()) != 0) {  // e^g is positive
          mpfr_nextabove(alpha.get());
          out.error.decay_floor = Target::decay_floor;
        }
        target.derived(a, alpha.get());
        out.error.decay = one_rounding;
        if (mpfr_cmp_d(alpha.get(), Target::smallest_normal) < 0 || mpfr_zero_p(alpha.get()))
          out.error.decay_floor = Target::decay_floor;
      }
    }
  }

  if (p.raw) {
    if constexpr (std::is_same_v<value, rational>) irrational("a gate after its activation");
    out.error.decay += std::ldexp(raw_error, target.bits);
  }
  if (p.initial_state) {
    x.resize(p.value_dim());
    const std::size_t base = (sequence_index * p.value_heads() + value_head) * keys;
    for (std::size_t i = 0; i < keys; ++i) {
      p.initial_state->read((base + i) * p.value_dim(), x);
      for (std::size_t j = 0; j < cols; ++j) target.given(s.initial_state(i, j), x[column(j)]);
    }
  } else {
    for (auto& entry : s.initial_state.entries()) target.given(entry, 0.0);
  }
  return out;
}

}  // namespace

void refuse_poles(const problem& p) {
  if (p.rule == rule_kind::euler || p.beta_activation != activation_kind::none) return;  // a sigmoid is positive
  std::vector<double> k(p.key_dim());
  for (std::size_t n = 0; n < p.sequence_count(); ++n) {
    for (std::size_t h = 0; h < p.value_heads(); ++h) {
      const head_view view{p, sequence_at(p, n), h};
      for (std::size_t r = 0; r < view.range.tokens * p.num_householder; ++r) {
        const double beta = p.beta.at(view.beta_at(r));
        if (!(beta < 0)) continue;
        p.k.read(view.k_at(r), k);
        double norm = 0;
        for (const double x : k) norm += x * x;
        if (p.qk_l2norm) norm /= norm + p.l2norm_epsilon;
        // Beside a pole the gain is large: rationals tell whether it is one.
        if (std::isinf(norm) || !(std::fabs(gain(p.rule, beta * norm)) < 0x1p20))
          refuse_if_at_pole(p, beta, k, place_of(n, h, r));
      }
    }
  }
}

namespace {

template <class Target>
lowered<typename Target::value> lower_head(const Target& target, const problem& p, std::size_t sequence_index,
                                           std::size_t value_head, std::span<const std::size_t> columns = {}) {
  return lower_into(target, {p, sequence_at(p, sequence_index), value_head}, sequence_index,
                    raw_gate_error(p, sequence_index, value_head), columns);
}

}  // namespace

lowered<double> lower(const problem& p, std::size_t sequence_index, std::size_t value_head) {
  return lower_head(fp64_target{}, p, sequence_index, value_head);
}

lowered<mpfr_value> lower_mpfr(const problem& p, std::size_t sequence_index, std::size_t value_head, int bits,
                               std::span<const std::size_t> columns) {
  return lower_head(mpfr_target{bits}, p, sequence_index, value_head, columns);
}

lowered<mpfr_value> lower_mpfr_tokens(const problem& p, std::size_t sequence_index, std::size_t value_head, int bits,
                                      std::size_t first, std::size_t count) {
  sequence_range range = sequence_at(p, sequence_index);
  range.first_token += first;
  range.tokens = count;
  return lower_into(mpfr_target{bits}, {p, range, value_head}, sequence_index, 0);
}

lowered<double_pair> lower_pair(const problem& p, std::size_t sequence_index, std::size_t value_head) {
  return lower_head(pair_target{}, p, sequence_index, value_head);
}

lowered<rational> lower_exact(const problem& p, std::size_t sequence_index, std::size_t value_head) {
  return lower_head(exact_target{}, p, sequence_index, value_head);
}

}  // namespace deltaproof
