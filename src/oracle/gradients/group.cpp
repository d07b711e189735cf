// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
#include "oracle/gradients/group.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <type_traits>
#include <utility>

#include "deltaproof/oracle/certify_adjoint.hpp"
#include "oracle/gradients/chain.hpp"
#include "oracle/lower_mpfr.hpp"
#include "oracle/pair_field.hpp"
#include "oracle/tiers/adjoint_columns.hpp"
#include "oracle/tiers/lower_double_double.hpp"

namespace deltaproof {
namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();

/// A number of a field and its error in units of u.
template <class Field>
struct known {
  typename Field::value x;
  typename Field::radius error = 0;
};

/// Arithmetic on such numbers. An exact 0 stays one.
template <class Field>
class known_arithmetic {
 public:
  using value = typename Field::value;
  using radius = typename Field::radius;
  using number = known<Field>;

  known_arithmetic(const Field& field, const radius& u) : field_{field}, u_{u} {}

  [[nodiscard]] number zero() const { return {field_.zero(), 0}; }
  [[nodiscard]] number from(const mpfr_ball& b, int bits) const {
    number out = zero();
    const wide_bound scaled_error = b.error() * wide_bound::scaled(1, bits);
    if constexpr (std::is_same_v<radius, double>) {
      if constexpr (std::is_same_v<value, double>) {
        out.x = mpfr_get_d(b.value(), MPFR_RNDN);
      } else {
        out.x.hi = mpfr_get_d(b.value(), MPFR_RNDN);
        mpfr_value rest(mpfr_get_prec(b.value()));
        mpfr_sub_d(rest.get(), b.value(), out.x.hi, MPFR_RNDN);  // exact
        out.x.lo = mpfr_get_d(rest.get(), MPFR_RNDN);
      }
      out.error = scaled_error.above() + Field::magnitude(out.x);
      if (!b.is_exact_zero()) out.error += Field::underflow_unit;
    } else {
      mpfr_set(out.x.get(), b.value(), MPFR_RNDN);
      out.error = scaled_error + Field::magnitude(out.x);
    }
    return out;
  }
  [[nodiscard]] number product(const number& a, const number& b) const {
    if (is_exact_zero(a) || is_exact_zero(b)) return zero();
    number out{field_.product(a.x, b.x), 0};
    const radius size_a = Field::magnitude(a.x), size_b = Field::magnitude(b.x);
    out.error = closed(size_a * b.error + a.error * size_b + u_ * a.error * b.error + Field::magnitude(out.x) +
                       Field::underflow_unit * (1 + size_a + size_b));
    return out;
  }
  [[nodiscard]] number sum(const number& a, const number& b) const {
    if (is_exact_zero(a)) return b;
    if (is_exact_zero(b)) return a;
    number out{field_.sum(a.x, b.x), 0};
    out.error = closed(a.error + b.error + Field::magnitude(out.x));
    return out;
  }
  [[nodiscard]] number difference(const number& a, const number& b) const { return sum(a, {field_.negated(b.x), b.error}); }

 private:
  [[nodiscard]] static bool is_exact_zero(const number& a) { return Field::is_zero(a.x) && a.error == radius(0); }
  [[nodiscard]] static radius closed(const radius& e) { return detail::finite_or_infinite(e * detail::radius_slack); }

  Field field_;
  radius u_;
};

/// x . d_x chain: dx^ is the gradient with respect to x^ = r x, and becomes that with respect to x.
template <class Field>
void through_norm(const known_arithmetic<Field>& at, const known<Field>& r, const typename Field::value* normalised,
                  double relative_error, known<Field>* d, std::size_t keys) {
  std::vector<known<Field>> x;
  auto along = at.zero();
  for (std::size_t i = 0; i < keys; ++i) {
    x.push_back({normalised[i], Field::magnitude(normalised[i]) * relative_error});
    along = at.sum(along, at.product(x[i], d[i]));
  }
  for (std::size_t i = 0; i < keys; ++i) d[i] = at.product(r, at.difference(d[i], at.product(x[i], along)));
}

template <class Field>
struct columns_run {
  const Field& field;
  typename Field::radius u;
  const lowered<typename Field::value>& in;
  const std::vector<typename Field::value>& d_o;
  const std::vector<typename Field::radius>& d_o_size;
  const std::vector<typename Field::value>& d_state;
  std::size_t from, count;
  double range;
  const std::atomic<bool>* stop;

  [[nodiscard]] certified_adjoint<Field> operator()() const {
    return adjoint_certifier<Field>(field, u, in, d_o, d_o_size, d_state, from, count, range).run(stop);
  }
};

// The same text, compiled for wider vectors with all that it calls: contraction is off, so the bits are the same.
#if DELTAPROOF_CHOOSES_VECTORS && defined(__GNUC__) && !defined(__clang__)
template <class Field>
[[gnu::target("avx2,fma"), gnu::flatten]] certified_adjoint<Field> run_in_vectors(const columns_run<Field>& job) {
  return job();
}
#else
template <class Field>
certified_adjoint<Field> run_in_vectors(const columns_run<Field>& job) {
  return job();
}
#endif

template <class Field>
certified_adjoint<Field> run_columns(const Field& field, const typename Field::radius& u,
                                     const lowered<typename Field::value>& in, const std::vector<typename Field::value>& d_o,
                                     const std::vector<typename Field::radius>& d_o_size,
                                     const std::vector<typename Field::value>& d_state, std::size_t from, std::size_t count,
                                     double range, const std::atomic<bool>* stop) {
  const columns_run<Field> job{field, u, in, d_o, d_o_size, d_state, from, count, range, stop};
#if DELTAPROOF_CHOOSES_VECTORS
  static const bool wide = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
  if (std::is_same_v<typename Field::radius, double> && wide) return run_in_vectors(job);
#endif
  return job();
}

template <class Field>
class group_run {
 public:
  using value = typename Field::value;
  using radius = typename Field::radius;
  using number = known<Field>;

  group_run(const problem& p, std::size_t sequence_index, std::size_t key_head, const Field& field, int bits, double range)
      : p_{p},
        sequence_{sequence_index},
        range_{sequence_at(p, sequence_index)},
        field_{field},
        bits_{bits},
        limit_{range},
        u_{unit_of(bits)},
        arithmetic_(field, u_) {
    const std::size_t group = p.value_heads() / p.key_heads();
    for (std::size_t h = key_head * group; h < (key_head + 1) * group; ++h) heads_.push_back(h);
  }

  [[nodiscard]] bool run(const std::atomic<bool>* stop, group_gradients& out) {
    const std::size_t keys = p_.key_dim(), rows = range_.tokens * p_.num_householder;
    std::vector<number> dq, dk;
    for (const std::size_t h : heads_) {
      lowered<value> in;
      certified_adjoint<Field> raw;
      if (!by_columns(h, stop, in, raw)) {
        if (stop && stop->load()) return false;
        in = lower_head(h);
        if (in.underflowed) return false;
        raw = adjoint_of(in, cotangents_at(h), stop);
      }
      if (stop && stop->load()) return false;
      const auto factors = factors_of(p_, sequence_, h, bits_);
      const std::vector<number> dbeta = through_rule(in, factors, raw);
      // Nothing is kept twice for long: a head of many tokens is large.
      if (heads_.size() == 1 && factors.query_scale.empty())
        out.q = part_of(std::exchange(raw.q, {}));
      else
        add_rows(dq, range_.tokens * keys, in.scan.q, in.error.query, factors.query_scale, std::exchange(raw.q, {}));
      if (heads_.size() == 1 && factors.key_scale.empty())
        out.k = part_of(std::exchange(raw.k, {}));
      else
        add_rows(dk, rows * keys, in.scan.k, in.error.key, factors.key_scale, std::exchange(raw.k, {}));
      out.heads.push_back({part_of(std::exchange(raw.v, {})), part_of(dbeta), part_of(std::exchange(raw.decay, {})),
                           p_.initial_state ? part_of(raw.initial_state) : head_part{}, raw.states_until, raw.cotangents_from});
    }
    if (!dq.empty()) out.q = part_of(dq);
    if (!dk.empty()) out.k = part_of(dk);
    return true;
  }

 private:
  [[nodiscard]] static radius unit_of(int bits) {
    if constexpr (std::is_same_v<radius, double>)
      return std::ldexp(1.0, -bits);
    else
      return wide_bound::scaled(1, -bits);
  }

  struct cotangents_of_head {
    std::vector<value> o, state;
    std::vector<radius> o_size;
  };

  [[nodiscard]] lowered<value> lower_head(std::size_t h) const {
    if constexpr (std::is_same_v<value, double>)
      return lower(p_, sequence_, h);
    else if constexpr (std::is_same_v<value, double_pair>)
      return lower_pair(p_, sequence_, h);
    else
      return lower_mpfr(p_, sequence_, h, bits_);
  }
  [[nodiscard]] value given(double x) const {
    value out = field_.zero();
    if constexpr (std::is_same_v<value, double>)
      out = x;
    else if constexpr (std::is_same_v<value, double_pair>)
      out.hi = x;
    else
      mpfr_set_d(out.get(), x, MPFR_RNDN);
    return out;
  }

  /// scale d_o, each product rounded once, and d_final_state.
  [[nodiscard]] cotangents_of_head cotangents_at(std::size_t h) const {
    const std::size_t cols = p_.value_dim(), keys = p_.key_dim();
    cotangents_of_head out;
    std::vector<double> x(cols);
    const value scale = given(p_.scale);
    for (std::size_t t = 0; t < range_.tokens; ++t) {
      const std::size_t row = range_.batch * p_.tokens() + range_.first_token + t;
      if (p_.d_o) p_.d_o->read((row * p_.value_heads() + h) * cols, x);
      for (const double one : x) {
        out.o.push_back(field_.product(scale, given(one)));
        radius size = Field::magnitude(out.o.back());
        // A product that underflows to 0 is none.
        if (Field::is_zero(out.o.back()) && one != 0 && p_.scale != 0) size = radius(std::numeric_limits<double>::denorm_min());
        out.o_size.push_back(size);
      }
    }
    std::fill(x.begin(), x.end(), 0.0);
    for (std::size_t i = 0; i < keys; ++i) {
      if (p_.d_final_state) p_.d_final_state->read(((sequence_ * p_.value_heads() + h) * keys + i) * cols, x);
      for (const double one : x) out.state.push_back(given(one));
    }
    return out;
  }

  static constexpr bool has_columns = std::is_same_v<radius, double>;
  static constexpr bool in_pairs = std::is_same_v<value, double_pair>;

  /// The same cotangents for the columns' tier.
  [[nodiscard]] tiers::column_cotangents column_cotangents_at(std::size_t h) const {
    const std::size_t cols = p_.value_dim(), keys = p_.key_dim(), tokens = range_.tokens;
    tiers::column_cotangents out;
    std::vector<double> x(cols);
    if (p_.d_o) {
      out.o.resize(tokens * cols);
      out.o_size.resize(tokens * cols);
      if (in_pairs) out.o_low.resize(tokens * cols);
    }
    for (std::size_t t = 0; p_.d_o && t < tokens; ++t) {
      p_.d_o->read(((range_.batch * p_.tokens() + range_.first_token + t) * p_.value_heads() + h) * cols, x);
      for (std::size_t v = 0; v < cols; ++v) {
        const double c = p_.scale * x[v];
        out.o[t * cols + v] = c;
        if (in_pairs) out.o_low[t * cols + v] = std::fma(p_.scale, x[v], -c);
        // A product that underflows to 0 is none.
        out.o_size[t * cols + v] =
            c == 0 && x[v] != 0 && p_.scale != 0 ? std::numeric_limits<double>::denorm_min() : std::fabs(c);
      }
    }
    if (p_.d_final_state) out.state.resize(keys * cols);
    for (std::size_t i = 0; p_.d_final_state && i < keys; ++i) {
      p_.d_final_state->read(((sequence_ * p_.value_heads() + h) * keys + i) * cols, x);
      std::copy(x.begin(), x.end(), out.state.begin() + static_cast<std::ptrdiff_t>(i * cols));
    }
    return out;
  }

  /// The head by columns where its numbers are in their range; `in` is then the head that was run.
  [[nodiscard]] bool by_columns(std::size_t h, const std::atomic<bool>* stop, lowered<value>& in,
                                certified_adjoint<Field>& out) const {
    if constexpr (has_columns) {
      auto head = tiers::lower_double_double(p_, sequence_, h);
      tiers::column_gradients found;
      if (!tiers::run_adjoint(head, column_cotangents_at(h), in_pairs, limit_, stop, found)) return false;
      const auto& s = head.high.scan;
      const std::size_t values = s.v.size(), decays = s.decay.size();
      const double units = (in_pairs ? tiers::adjoint_pair_unit : tiers::fp64_unit) / u_;
      const auto take = [&](tiers::table& high, tiers::table& low, std::size_t count, const std::vector<double>& errors,
                            certified_entries<Field>& to) {
        to.value.resize(count);
        to.error.resize(count);
        const std::size_t each = errors.empty() ? 1 : count / errors.size();
        for (std::size_t i = 0; i < count; ++i) {
          if constexpr (in_pairs)
            to.value[i] = {high[i], low[i]};
          else
            to.value[i] = high[i];
          to.error[i] = errors[i / each] * units;
        }
        high = low = tiers::table();
      };
      for (auto* done : {&head.high.scan.v, &head.high.scan.decay, &head.decay_low}) *done = {};
      const std::vector<double> of_states = by_entry(found.state_error, p_.key_dim());
      take(found.q, found.q_low, s.q.size(), found.q_error, out.q);
      take(found.k, found.k_low, s.k.size(), found.k_error, out.k);
      take(found.v, found.v_low, values, found.v_error, out.v);
      take(found.step, found.step_low, s.step.size(), found.step_error, out.step);
      take(found.decay, found.decay_low, decays, found.decay_error, out.decay);
      take(found.state, found.state_low, of_states.size(), of_states, out.initial_state);
      out.states_until = s.tokens;
      in = given_as_field(std::move(head));
      return true;
    }
    return false;
  }
  [[nodiscard]] static std::vector<double> by_entry(const std::vector<double>& of_columns, std::size_t keys) {
    std::vector<double> out;
    for (std::size_t i = 0; i < keys; ++i) out.insert(out.end(), of_columns.begin(), of_columns.end());
    return out;
  }
  /// What the chain behind the recurrence reads of a head: keys and queries, with their errors in units of u.
  [[nodiscard]] lowered<value> given_as_field(tiers::double_double_head head) const {
    if constexpr (std::is_same_v<value, double>) {
      return std::move(head.high);
    } else if constexpr (in_pairs) {
      lowered<value> out;
      const auto join = [](const std::vector<double>& high, const std::vector<double>& low, std::vector<value>& to) {
        for (std::size_t i = 0; i < high.size(); ++i) to.push_back({high[i], low.empty() ? 0 : low[i]});
      };
      join(head.high.scan.q, head.q_low, out.scan.q);
      join(head.high.scan.k, head.k_low, out.scan.k);
      out.error.query = head.error.query * (tiers::pair_unit / u_);
      out.error.key = head.error.key * (tiers::pair_unit / u_);
      return out;
    } else {
      return {};
    }
  }

  /// Block of columns after block, so that a state stays near; what all columns add to is summed.
  [[nodiscard]] certified_adjoint<Field> adjoint_of(const lowered<value>& in, const cotangents_of_head& with,
                                                    const std::atomic<bool>* stop) const {
    constexpr std::size_t block = 32;
    const std::size_t keys = p_.key_dim(), cols = p_.value_dim(), rows = in.scan.rows();
    certified_adjoint<Field> out;
    const auto empty = [&](certified_entries<Field>& to, std::size_t count) {
      to.value.assign(count, field_.zero());
      to.error.assign(count, radius(0));
    };
    empty(out.q, in.scan.q.size());
    empty(out.k, in.scan.k.size());
    empty(out.v, in.scan.v.size());
    empty(out.step, rows);
    empty(out.decay, in.scan.decay.size());
    empty(out.initial_state, keys * cols);
    out.states_until = in.scan.tokens;
    const auto add = [&](certified_entries<Field>& to, const certified_entries<Field>& from) {
      for (std::size_t i = 0; i < to.value.size(); ++i) {
        number sum = arithmetic_.sum({std::move(to.value[i]), to.error[i]}, {from.value[i], from.error[i]});
        to.value[i] = std::move(sum.x);
        to.error[i] = sum.error;
      }
    };
    for (std::size_t first = 0; first < cols; first += block) {
      const std::size_t count = std::min(block, cols - first);
      const auto put = [&](certified_entries<Field>& to, const certified_entries<Field>& from) {
        for (std::size_t i = 0; i < from.value.size(); ++i) {
          to.value[i / count * cols + first + i % count] = from.value[i];
          to.error[i / count * cols + first + i % count] = from.error[i];
        }
      };
      const auto part = run_columns(field_, u_, in, with.o, with.o_size, with.state, first, count, limit_, stop);
      if (stop && stop->load()) return out;
      add(out.q, part.q);
      add(out.k, part.k);
      add(out.step, part.step);
      add(out.decay, part.decay);
      put(out.v, part.v);
      put(out.initial_state, part.initial_state);
      out.states_until = std::min(out.states_until, part.states_until);
      out.cotangents_from = std::max(out.cotangents_from, part.cotangents_from);
    }
    return out;
  }

  /// dbeta from db, and what k does to b added to dk.
  [[nodiscard]] std::vector<number> through_rule(const lowered<value>& in, const chain_factors& factors,
                                                 certified_adjoint<Field>& raw) const {
    const std::size_t keys = p_.key_dim();
    std::vector<number> dbeta;
    for (std::size_t row = 0; row < raw.step.value.size(); ++row) {
      const number db{raw.step.value[row], raw.step.error[row]};
      dbeta.push_back(factors.by_beta.empty() ? db : arithmetic_.product(arithmetic_.from(factors.by_beta[row], bits_), db));
      if (factors.by_key.empty()) continue;
      const number along = arithmetic_.product(arithmetic_.from(factors.by_key[row], bits_), db);
      for (std::size_t i = row * keys; i < (row + 1) * keys; ++i) {
        const number k{in.scan.k[i], Field::magnitude(in.scan.k[i]) * in.error.key};
        const number dk = arithmetic_.sum({raw.k.value[i], raw.k.error[i]}, arithmetic_.product(along, k));
        raw.k.value[i] = dk.x;
        raw.k.error[i] = dk.error;
      }
    }
    return dbeta;
  }

  /// The head's part of dq or dk, through the normalisation if there is one, joins those of the other heads.
  void add_rows(std::vector<number>& sum, std::size_t count, const std::vector<value>& normalised, double relative_error,
                const std::vector<mpfr_ball>& scale, const certified_entries<Field>& raw) const {
    const std::size_t keys = p_.key_dim();
    sum.resize(count, arithmetic_.zero());
    std::vector<number> row(keys, arithmetic_.zero());
    for (std::size_t first = 0; first < sum.size(); first += keys) {
      for (std::size_t i = 0; i < keys; ++i) row[i] = {raw.value[first + i], raw.error[first + i]};
      if (!scale.empty()) {
        through_norm(arithmetic_, arithmetic_.from(scale[first / keys], bits_), &normalised[first], relative_error, row.data(),
                     keys);
      }
      for (std::size_t i = 0; i < keys; ++i) sum[first + i] = arithmetic_.sum(sum[first + i], row[i]);
    }
  }

  void put(head_part& part, std::size_t i, const value& x, const radius& error, mpfr_ptr rest) const {
    const double absolute = detail::absolute_radius(error, u_);
    if constexpr (std::is_same_v<value, double>) {
      part.value[i] = x;
      part.radius[i] = std::isfinite(x) ? absolute : infinity;
    } else if constexpr (std::is_same_v<value, double_pair>) {
      part.value[i] = x.hi;
      part.radius[i] = std::isfinite(x.hi) && std::isfinite(x.lo) ? absolute : infinity;
      if (x.lo == 0 || !std::isfinite(x.lo)) return;
      if (part.low.empty()) part.low.emplace_back(part.value.size(), 0.0);
      part.low[0][i] = x.lo;
    } else {
      split(part, i, x.get(), rest, absolute);
    }
  }
  [[nodiscard]] head_part part_of(const std::vector<number>& numbers) const {
    head_part part{{}, std::vector<double>(numbers.size()), {}, std::vector<double>(numbers.size())};
    mpfr_value rest(std::max<mpfr_prec_t>(bits_, MPFR_PREC_MIN));
    for (std::size_t i = 0; i < numbers.size(); ++i) put(part, i, numbers[i].x, numbers[i].error, rest.get());
    return part;
  }
  [[nodiscard]] head_part part_of(const certified_entries<Field>& entries) const {
    head_part part{{}, std::vector<double>(entries.value.size()), {}, std::vector<double>(entries.value.size())};
    mpfr_value rest(std::max<mpfr_prec_t>(bits_, MPFR_PREC_MIN));
    for (std::size_t i = 0; i < entries.value.size(); ++i) put(part, i, entries.value[i], entries.error[i], rest.get());
    return part;
  }

  const problem& p_;
  std::size_t sequence_;
  sequence_range range_;
  Field field_;
  int bits_;
  double limit_;  // of states and cotangents
  radius u_;
  known_arithmetic<Field> arithmetic_;
  std::vector<std::size_t> heads_;
};

}  // namespace

bool run_group(const problem& p, std::size_t sequence_index, std::size_t key_head, int bits, double range,
               const std::atomic<bool>* stop, group_gradients& out) {
  out = {};
  if (bits <= 53) {
    out.tier = "fp64";
    return group_run<fp64_field>(p, sequence_index, key_head, {}, 53, range).run(stop, out);
  }
  if (bits <= 106) {
    out.tier = "double-double";
    return group_run<pair_field>(p, sequence_index, key_head, {}, pair_field::bits, range).run(stop, out);
  }
  out.tier = "mpfr-" + std::to_string(bits);
  return group_run<mpfr_field>(p, sequence_index, key_head, mpfr_field{bits}, bits, range).run(stop, out);
}

}  // namespace deltaproof
