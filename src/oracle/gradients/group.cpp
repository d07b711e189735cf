// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
#include "oracle/gradients/group.hpp"

#include <algorithm>
#include <cmath>
#include <deque>
#include <limits>
#include <optional>
#include <span>
#include <type_traits>
#include <utility>

#include "deltaproof/oracle/certify_adjoint.hpp"
#include "deltaproof/support/write_file.hpp"
#include "oracle/gradients/chain.hpp"
#include "oracle/gradients/columns.hpp"
#include "oracle/gradients/known.hpp"

namespace deltaproof {
namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();

/// Sums over the heads of a group, which come one after the other in the same slices: in a file where there is one, which doubles
/// take, else in memory.
template <class Field>
class sums_over_heads {
 public:
  using number = known<Field>;
  static constexpr bool is_plain = std::is_trivially_copyable_v<number>;

  sums_over_heads(const known_arithmetic<Field>& arithmetic, const std::filesystem::path* beside) : arithmetic_{arithmetic} {
    if (is_plain && beside != nullptr) file_.emplace(*beside);
  }
  /// Numbers from element `first` on of one head join those of the heads before it, which are kept for the next.
  void add(std::size_t first, std::vector<number>& numbers, bool is_first, bool is_last) {
    if (!is_first) {
      std::vector<number> sums = read(first, numbers.size());
      for (std::size_t i = 0; i < sums.size(); ++i) numbers[i] = arithmetic_.sum(sums[i], numbers[i]);
    }
    if (!is_last) write(first, numbers);
  }

 private:
  [[nodiscard]] std::vector<number> read(std::size_t first, std::size_t count) const {
    std::vector<number> out(count, arithmetic_.zero());
    if constexpr (is_plain) {
      if (file_) {
        file_->read(first * sizeof(number), std::as_writable_bytes(std::span(out)));
        return out;
      }
    }
    std::copy_n(kept_.begin() + static_cast<std::ptrdiff_t>(first), count, out.begin());
    return out;
  }
  void write(std::size_t first, const std::vector<number>& numbers) {
    if constexpr (is_plain) {
      if (file_) return file_->write(first * sizeof(number), std::as_bytes(std::span(numbers)));
    }
    if (kept_.size() < first + numbers.size()) kept_.resize(first + numbers.size(), arithmetic_.zero());
    std::copy(numbers.begin(), numbers.end(), kept_.begin() + static_cast<std::ptrdiff_t>(first));
  }

  const known_arithmetic<Field>& arithmetic_;
  std::optional<scratch_file> file_;
  std::vector<number> kept_;
};

template <class Field>
class group_run {
 public:
  using value = typename Field::value;
  using radius = typename Field::radius;
  using number = known<Field>;

  group_run(const problem& p, std::size_t sequence_index, std::size_t key_head, const Field& field, int bits, double range,
            const std::filesystem::path* beside, const slice_sink& sink)
      : p_{p},
        sequence_{sequence_index},
        range_{sequence_at(p, sequence_index)},
        field_{field},
        bits_{bits},
        limit_{range},
        beside_{beside},
        sink_{sink},
        u_{unit_of<Field>(bits)},
        arithmetic_(field, u_) {
    const std::size_t group = p.value_heads() / p.key_heads();
    for (std::size_t h = key_head * group; h < (key_head + 1) * group; ++h) heads_.push_back(h);
  }

  [[nodiscard]] bool run(const std::atomic<bool>* stop, group_outcome& out) {
    const auto stopped = [&] { return stop && stop->load(); };
    std::vector<bool> by_columns(heads_.size(), has_columns);
    for (bool whole = false; !whole;) {
      sink_.begin();
      out.heads.clear();
      sums_.clear();
      // What one head gives needs no sum over heads.
      for (std::size_t i = 0; i < 2 && heads_.size() > 1; ++i) sums_.emplace_back(arithmetic_, beside_);
      until_ = range_.tokens;
      from_ = 0;
      whole = true;
      for (std::size_t i = 0; i < heads_.size() && whole; ++i) {
        if (by_columns[i]) {
          // Out of the columns' range: the slices so far are void, and this head is no more tried by columns.
          whole = by_columns[i] = run_by_columns(i, stop);
        } else if (!run_by_entries(i, stop)) {
          return false;
        }
        if (stopped()) return false;
        if (whole) out.heads.push_back(limits_);
      }
    }
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
  static constexpr double column_unit = in_pairs ? tiers::adjoint_pair_unit : tiers::fp64_unit;

  /// The rows of a slice that the chain behind the recurrence reads, and what it makes of them.
  struct chained_rows {
    std::size_t first = 0;  // token
    lowered<value> in;      // keys and queries, with their errors in units of u
    chain_factors factors;
    certified_adjoint<Field> raw;
  };
  void give(std::size_t tensor, std::size_t head, std::size_t first, head_part part) const {
    if (part.value.empty()) return;
    const bool shared = tensor < 2;
    sink_.take({tensor, shared ? 0 : head, first, std::move(part), shared ? until_ : limits_.states_until,
                shared ? from_ : limits_.cotangents_from});
  }
  /// Behind a decay of 0 its logarithm changes nothing: exactly 0, of which the radius of a column says no more than that it is
  /// small.
  void give_log_decays(std::size_t head, std::size_t first, head_part part) const {
    const std::size_t channels = p_.gate_per_channel() ? p_.key_dim() : 1, count = part.value.size() / channels;
    const std::size_t row = range_.batch * p_.tokens() + range_.first_token + first / channels;
    std::vector<double> g(channels);
    for (std::size_t t = 0; t < count && !p_.raw; ++t) {
      p_.g->read(((row + t) * p_.value_heads() + heads_[head]) * channels, g);
      for (std::size_t c = 0; c < channels; ++c) {
        if (g[c] != -infinity) continue;
        part.value[t * channels + c] = part.radius[t * channels + c] = 0;
        for (std::vector<double>& low : part.low) low[t * channels + c] = 0;
      }
    }
    give(4, head, first, std::move(part));
  }
  /// Behind a first decay of 0 the initial state changes nothing, or the rows of it whose channels have one.
  void give_initial_state(std::size_t head, head_part part) const {
    const std::size_t channels = p_.gate_per_channel() ? p_.key_dim() : 1, each = part.value.size() / channels;
    std::vector<double> g(channels);
    if (p_.g && !p_.raw && range_.tokens > 0) {
      const std::size_t row = range_.batch * p_.tokens() + range_.first_token;
      p_.g->read((row * p_.value_heads() + heads_[head]) * channels, g);
    }
    for (std::size_t i = 0; i < part.value.size(); ++i) {
      if (g[i / each] != -infinity) continue;
      part.value[i] = part.radius[i] = 0;
      for (std::vector<double>& low : part.low) low[i] = 0;
    }
    give(5, head, 0, std::move(part));
  }
  void set_limits(std::size_t states_until, std::size_t cotangents_from) {
    limits_ = {states_until, cotangents_from};
    until_ = std::min(until_, states_until);
    from_ = std::max(from_, cotangents_from);
  }
  [[nodiscard]] bool gives_own_q(const chain_factors& factors) const { return heads_.size() == 1 && factors.query_scale.empty(); }
  [[nodiscard]] bool gives_own_k(const chain_factors& factors) const {
    return heads_.size() == 1 && factors.key_scale.empty() && factors.by_key.empty();
  }
  /// dbeta, dq and dk of head i, unless those were given as they are.
  void give_chained(std::size_t i, chained_rows& rows) {
    const std::size_t keys = p_.key_dim(), n = p_.num_householder;
    give(3, i, rows.first * n, part_of(through_rule(rows.in, rows.factors, rows.raw)));
    std::vector<number> dq, dk;
    if (!gives_own_q(rows.factors)) dq = through_norms(rows.in.scan.q, rows.in.error.query, rows.factors.query_scale, rows.raw.q);
    if (!gives_own_k(rows.factors)) dk = through_norms(rows.in.scan.k, rows.in.error.key, rows.factors.key_scale, rows.raw.k);
    const bool is_last = i + 1 == heads_.size();
    if (!sums_.empty()) {
      sums_[0].add(rows.first * keys, dq, i == 0, is_last);
      sums_[1].add(rows.first * n * keys, dk, i == 0, is_last);
    }
    if (!is_last) return;
    give(0, i, rows.first * keys, part_of(dq));
    give(1, i, rows.first * n * keys, part_of(dk));
  }

  [[nodiscard]] bool run_by_columns(std::size_t i, const std::atomic<bool>* stop) {
    if constexpr (has_columns) {
      set_limits(range_.tokens, 0);
      column_reader reader(p_, sequence_, heads_[i], in_pairs);
      return tiers::run_adjoint(reader.source(), in_pairs, limit_, stop,
                                [&](tiers::column_gradients& found) { take_columns(i, reader, found); });
    }
    return false;
  }
  void take_columns(std::size_t i, const column_reader& reader, tiers::column_gradients& found) {
    const std::size_t n = p_.num_householder, keys = p_.key_dim(), first = found.first, count = found.step.error.size() / n;
    const std::size_t channels = p_.gate_per_channel() ? keys : 1;
    chained_rows rows{first, {}, factors_of(p_, sequence_, heads_[i], bits_, first, count), {}};
    const bool own_q = gives_own_q(rows.factors), own_k = gives_own_k(rows.factors);
    if (!own_q || !own_k) rows.in = given_as_field(reader, first, count);
    if (own_q)
      give(0, i, first * keys, as_part(found.q));
    else
      rows.raw.q = as_entries(found.q);
    if (own_k)
      give(1, i, first * n * keys, as_part(found.k));
    else
      rows.raw.k = as_entries(found.k);
    rows.raw.step = as_entries(found.step);
    give(2, i, first * n * p_.value_dim(), as_part(found.v));
    give_log_decays(i, first * channels, as_part(found.decay));
    if (p_.initial_state) give_initial_state(i, as_part(found.state));
    give_chained(i, rows);
  }
  /// Errors lie side by side as the numbers do, one for so many of them; those of a state one for each column.
  [[nodiscard]] static std::size_t place_of_error(const tiers::column_numbers& from, std::size_t i) {
    return from.by_column ? i % from.error.size() : i / (from.high.size() / from.error.size());
  }
  [[nodiscard]] certified_entries<Field> as_entries(const tiers::column_numbers& from) const {
    certified_entries<Field> out;
    if constexpr (has_columns) {
      const std::size_t count = from.high.size();
      out.value.resize(count);
      out.error.resize(count);
      for (std::size_t i = 0; i < count; ++i) {
        if constexpr (in_pairs)
          out.value[i] = {from.high[i], from.low[i]};
        else
          out.value[i] = from.high[i];
        out.error[i] = from.error[place_of_error(from, i)] * (column_unit / u_);
      }
    }
    return out;
  }
  [[nodiscard]] static head_part as_part(tiers::column_numbers& from) {
    const std::size_t count = from.high.size(), errors = from.error.size();
    for (double& e : from.error) e = detail::absolute_radius(e, column_unit);
    std::vector<double> radius(errors == count ? 0 : count);
    for (std::size_t i = 0; i < radius.size(); ++i) radius[i] = from.error[place_of_error(from, i)];
    head_part part;
    part.radius = errors == count ? from.error : std::move(radius);
    part.value = std::move(from.high);
    if (in_pairs) part.low = {std::move(from.low)};
    for (std::size_t i = 0; i < count; ++i) {
      if (!std::isfinite(part.value[i]) || (in_pairs && !std::isfinite(part.low[0][i]))) part.radius[i] = infinity;
    }
    return part;
  }
  /// Keys and queries of tokens [first, first + count) of what was read last.
  [[nodiscard]] lowered<value> given_as_field(const column_reader& reader, std::size_t first, std::size_t count) const {
    lowered<value> out;
    const tiers::double_double_head& head = reader.head();
    const std::size_t n = p_.num_householder, keys = p_.key_dim(), at = first - reader.first();
    const auto join = [&](const std::vector<double>& high, const std::vector<double>& low, std::size_t rows,
                          std::vector<value>& to) {
      for (std::size_t i = at * rows * keys; i < (at + count) * rows * keys; ++i) {
        if constexpr (in_pairs)
          to.push_back({high[i], low.empty() ? 0 : low[i]});
        else if constexpr (has_columns)
          to.push_back(high[i]);
      }
    };
    join(head.high.scan.q, head.q_low, 1, out.scan.q);
    join(head.high.scan.k, head.k_low, n, out.scan.k);
    if constexpr (in_pairs) {
      out.error.query = head.error.query * (tiers::pair_unit / u_);
      out.error.key = head.error.key * (tiers::pair_unit / u_);
    } else {
      out.error = head.high.error;
    }
    return out;
  }

  /// Entry by entry, as a whole.
  [[nodiscard]] bool run_by_entries(std::size_t i, const std::atomic<bool>* stop) {
    const std::size_t h = heads_[i];
    chained_rows rows{0, lower_head(h), factors_of(p_, sequence_, h, bits_, 0, range_.tokens), {}};
    if (rows.in.underflowed) return false;
    auto& raw = rows.raw = adjoint_of(rows.in, h, stop);
    if (stop && stop->load()) return false;
    set_limits(raw.states_until, raw.cotangents_from);
    give(2, i, 0, part_of(std::exchange(raw.v, {})));
    give_log_decays(i, 0, part_of(std::exchange(raw.decay, {})));
    if (p_.initial_state) give_initial_state(i, part_of(std::exchange(raw.initial_state, {})));
    if (gives_own_q(rows.factors)) give(0, i, 0, part_of(std::exchange(raw.q, {})));
    if (gives_own_k(rows.factors)) give(1, i, 0, part_of(std::exchange(raw.k, {})));
    give_chained(i, rows);
    return true;
  }
  /// Block of columns after block, so that a state stays near; what all columns add to is summed.
  [[nodiscard]] certified_adjoint<Field> adjoint_of(const lowered<value>& in, std::size_t h,
                                                    const std::atomic<bool>* stop) const {
    constexpr std::size_t block = 32;
    const std::size_t keys = p_.key_dim(), cols = p_.value_dim(), rows = in.scan.rows();
    const auto with = cotangents_of(field_, p_, sequence_, h, 0, range_.tokens);
    const auto state = state_cotangent_of(field_, p_, sequence_, h);
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
      const auto part = adjoint_certifier<Field>(field_, u_, in, with.o, with.o_size, state, first, count, limit_).run(stop);
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

  /// Rows of dq or dk through the normalisation, if there is one.
  [[nodiscard]] std::vector<number> through_norms(const std::vector<value>& normalised, double relative_error,
                                                  const std::vector<mpfr_ball>& scale,
                                                  const certified_entries<Field>& raw) const {
    const std::size_t keys = p_.key_dim();
    std::vector<number> out(raw.value.size(), arithmetic_.zero());
    for (std::size_t first = 0; first < out.size(); first += keys) {
      for (std::size_t i = first; i < first + keys; ++i) out[i] = {raw.value[i], raw.error[i]};
      if (scale.empty()) continue;
      through_norm(arithmetic_, arithmetic_.from(scale[first / keys], bits_), &normalised[first], relative_error, &out[first],
                   keys);
    }
    return out;
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
  const std::filesystem::path* beside_;
  const slice_sink& sink_;
  radius u_;
  known_arithmetic<Field> arithmetic_;
  std::vector<std::size_t> heads_;
  std::deque<sums_over_heads<Field>> sums_;  // dq and dk, of several heads
  group_outcome::head limits_;               // of the head at work
  std::size_t until_ = 0, from_ = 0;         // of the heads so far
};

}  // namespace

bool run_group(const problem& p, std::size_t sequence_index, std::size_t key_head, int bits, double range,
               const std::atomic<bool>* stop, const std::filesystem::path* beside, const slice_sink& sink, group_outcome& out) {
  out = {};
  if (bits <= 53) {
    out.tier = "fp64";
    return group_run<fp64_field>(p, sequence_index, key_head, {}, 53, range, beside, sink).run(stop, out);
  }
  if (bits <= 106) {
    out.tier = "double-double";
    return group_run<pair_field>(p, sequence_index, key_head, {}, pair_field::bits, range, beside, sink).run(stop, out);
  }
  begin_exact_run(p);
  const bool ran = group_run<mpfr_field>(p, sequence_index, key_head, mpfr_field{bits}, bits, range, beside, sink).run(stop, out);
  out.tier = nothing_was_rounded() ? "exact" : "mpfr-" + std::to_string(bits);
  return ran;
}

}  // namespace deltaproof
