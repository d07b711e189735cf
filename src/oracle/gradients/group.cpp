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
#include "oracle/gradients/known.hpp"
#include "oracle/tiers/adjoint_columns.hpp"
#include "oracle/tiers/lower_double_double.hpp"

namespace deltaproof {
namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();

template <class Field>
certified_adjoint<Field> run_columns(const Field& field, const typename Field::radius& u,
                                     const lowered<typename Field::value>& in, const head_cotangents<Field>& with,
                                     std::size_t from, std::size_t count, double range, const std::atomic<bool>* stop) {
  const auto job = [&] {
    return adjoint_certifier<Field>(field, u, in, with.o, with.o_size, with.state, from, count, range).run(stop);
  };
  if constexpr (std::is_same_v<typename Field::radius, double>)
    return in_fused_vectors(job);
  else
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
        u_{unit_of<Field>(bits)},
        arithmetic_(field, u_) {
    const std::size_t group = p.value_heads() / p.key_heads();
    for (std::size_t h = key_head * group; h < (key_head + 1) * group; ++h) heads_.push_back(h);
  }

  [[nodiscard]] bool run(const std::atomic<bool>* stop, solved_group& out) {
    const std::size_t keys = p_.key_dim(), rows = range_.tokens * p_.num_householder;
    std::vector<number> dq, dk;
    for (const std::size_t h : heads_) {
      lowered<value> in;
      certified_adjoint<Field> raw;
      solved_group::head parts;
      const auto factors = factors_of(p_, sequence_, h, bits_);
      const bool alone = heads_.size() == 1, own_q = alone && factors.query_scale.empty(),
                 own_k = alone && factors.key_scale.empty() && factors.by_key.empty();
      if (!by_columns(h, stop, own_q ? &out.q : nullptr, own_k ? &out.k : nullptr, in, raw, parts)) {
        if (stop && stop->load()) return false;
        in = lower_head(h);
        if (in.underflowed) return false;
        raw = adjoint_of(in, cotangents_of(field_, p_, sequence_, h), stop);
        parts.v = part_of(std::exchange(raw.v, {}));
        parts.g = part_of(std::exchange(raw.decay, {}));
        if (p_.initial_state) parts.initial_state = part_of(std::exchange(raw.initial_state, {}));
        if (own_q) out.q = part_of(std::exchange(raw.q, {}));
        if (own_k) out.k = part_of(std::exchange(raw.k, {}));
      }
      if (stop && stop->load()) return false;
      parts.states_until = raw.states_until;
      parts.cotangents_from = raw.cotangents_from;
      parts.beta = part_of(through_rule(in, factors, raw));
      // Nothing is kept twice for long: a head of many tokens is large.
      if (!own_q) {
        add_rows(dq, range_.tokens * keys, in.scan.q, in.error.query, factors.query_scale, std::exchange(raw.q, {}));
      }
      if (!own_k) add_rows(dk, rows * keys, in.scan.k, in.error.key, factors.key_scale, std::exchange(raw.k, {}));
      out.heads.push_back(std::move(parts));
    }
    if (!dq.empty()) out.q = part_of(dq);
    if (!dk.empty()) out.k = part_of(dk);
    return true;
  }

 private:
  [[nodiscard]] lowered<value> lower_head(std::size_t h) const {
    if constexpr (std::is_same_v<value, double>)
      return lower(p_, sequence_, h);
    else if constexpr (std::is_same_v<value, double_pair>)
      return lower_pair(p_, sequence_, h);
    else
      return lower_mpfr(p_, sequence_, h, bits_);
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
      if (in_pairs) out.o_low.resize(tokens * cols);
    }
    for (std::size_t t = 0; p_.d_o && t < tokens; ++t) {
      p_.d_o->read(((range_.batch * p_.tokens() + range_.first_token + t) * p_.value_heads() + h) * cols, x);
      for (std::size_t v = 0; v < cols; ++v) {
        const double c = p_.scale * x[v];
        out.o[t * cols + v] = c;
        if (in_pairs) out.o_low[t * cols + v] = std::fma(p_.scale, x[v], -c);
        if (c != 0 || x[v] == 0 || p_.scale == 0) continue;
        // A product that underflows to 0 is none.
        out.o_size.resize(tokens * cols);
        out.o_size[t * cols + v] = std::numeric_limits<double>::denorm_min();
      }
    }
    for (std::size_t i = 0; i < out.o_size.size(); ++i) out.o_size[i] = std::max(out.o_size[i], std::fabs(out.o[i]));
    if (p_.d_final_state) out.state.resize(keys * cols);
    for (std::size_t i = 0; p_.d_final_state && i < keys; ++i) {
      p_.d_final_state->read(((sequence_ * p_.value_heads() + h) * keys + i) * cols, x);
      std::copy(x.begin(), x.end(), out.state.begin() + static_cast<std::ptrdiff_t>(i * cols));
    }
    return out;
  }

  /// The head by columns where its numbers are in their range. Parts that nothing is done to are given as such, dq and dk to `q`
  /// and `k` where those are; what the chain behind the recurrence reads joins `in` and `out`.
  [[nodiscard]] bool by_columns(std::size_t h, const std::atomic<bool>* stop, head_part* q, head_part* k, lowered<value>& in,
                                certified_adjoint<Field>& out, solved_group::head& parts) const {
    if constexpr (has_columns) {
      tiers::column_gradients found;
      {
        auto head = tiers::lower_double_double(p_, sequence_, h);
        if (!tiers::run_adjoint(head, column_cotangents_at(h), in_pairs, limit_, stop, found)) return false;
        auto& s = head.high.scan;
        out.states_until = s.tokens;
        for (auto* done : {&s.v, &s.decay, &head.decay_low}) *done = {};
        if (q != nullptr) s.q = head.q_low = {};
        if (k != nullptr) s.k = head.k_low = {};
        in = given_as_field(std::move(head));
      }
      give(found.q, q, out.q);
      give(found.k, k, out.k);
      give(found.step, nullptr, out.step);
      give(found.v, &parts.v, out.v);
      give(found.decay, &parts.g, out.decay);
      if (p_.initial_state) give(found.state, &parts.initial_state, out.initial_state);
      return true;
    }
    return false;
  }
  /// One gradient by columns as a part, where there is one, or as entries. Errors lie side by side as the numbers do, one for so
  /// many of them; those of a state one for each column.
  void give(tiers::column_numbers& from, head_part* part, certified_entries<Field>& entries) const {
    if constexpr (has_columns) {
      const std::size_t count = from.high.size(), errors = from.error.size();
      const double unit = in_pairs ? tiers::adjoint_pair_unit : tiers::fp64_unit;
      const auto at = [&, each = errors == 0 ? 1 : count / errors](std::size_t i) {
        return from.by_column ? i % errors : i / each;
      };
      if (part == nullptr) {
        entries.value.resize(count);
        entries.error.resize(count);
        for (std::size_t i = 0; i < count; ++i) {
          if constexpr (in_pairs)
            entries.value[i] = {from.high[i], from.low[i]};
          else
            entries.value[i] = from.high[i];
          entries.error[i] = from.error[at(i)] * (unit / u_);
        }
      } else {
        for (double& e : from.error) e = detail::absolute_radius(e, unit);
        part->value = std::move(from.high);
        if (in_pairs) part->low = {std::move(from.low)};
        std::vector<double> radius(errors == count ? 0 : count);
        for (std::size_t i = 0; i < radius.size(); ++i) radius[i] = from.error[at(i)];
        part->radius = errors == count ? std::move(from.error) : std::move(radius);
        for (std::size_t i = 0; i < count; ++i) {
          if (!std::isfinite(part->value[i]) || (in_pairs && !std::isfinite(part->low[0][i]))) part->radius[i] = infinity;
        }
      }
      from = {};
    }
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
  [[nodiscard]] certified_adjoint<Field> adjoint_of(const lowered<value>& in, const head_cotangents<Field>& with,
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
      const auto part = run_columns(field_, u_, in, with, first, count, limit_, stop);
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

  [[nodiscard]] head_part part_of(const std::vector<number>& numbers) const {
    head_part part{{}, std::vector<double>(numbers.size()), {}, std::vector<double>(numbers.size())};
    mpfr_value rest(std::max<mpfr_prec_t>(bits_, MPFR_PREC_MIN));
    for (std::size_t i = 0; i < numbers.size(); ++i) put_number<Field>(part, i, numbers[i].x, numbers[i].error, u_, rest.get());
    return part;
  }
  [[nodiscard]] head_part part_of(const certified_entries<Field>& entries) const {
    head_part part{{}, std::vector<double>(entries.value.size()), {}, std::vector<double>(entries.value.size())};
    mpfr_value rest(std::max<mpfr_prec_t>(bits_, MPFR_PREC_MIN));
    for (std::size_t i = 0; i < entries.value.size(); ++i)
      put_number<Field>(part, i, entries.value[i], entries.error[i], u_, rest.get());
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
               const std::atomic<bool>* stop, solved_group& out) {
  out = {};
  if (bits <= 53) {
    out.tier = "fp64";
    return group_run<fp64_field>(p, sequence_index, key_head, {}, 53, range).run(stop, out);
  }
  if (bits <= 106) {
    out.tier = "double-double";
    return group_run<pair_field>(p, sequence_index, key_head, {}, pair_field::bits, range).run(stop, out);
  }
  begin_exact_run(p);
  const bool ran = group_run<mpfr_field>(p, sequence_index, key_head, mpfr_field{bits}, bits, range).run(stop, out);
  out.tier = nothing_was_rounded() ? "exact" : "mpfr-" + std::to_string(bits);
  return ran;
}

}  // namespace deltaproof
